"""What a vote says, and what labels may say of it."""

import numpy as np
import polars as pl
import pytest

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.outcomes import (
    OUTCOMES,
    WINNERS,
    Wording,
    likely_labels,
    outcomes_of_column,
    outcomes_of_labels,
    outcomes_of_text,
    settle_both_bad,
)
from isplitlbi.data.readers import read_votes
from isplitlbi.errors import InvalidRows, InvalidSetting, Setting


def test_words_and_outcomes_are_each_others_reverse():
    assert OUTCOMES == {"left": 1, "tie": 0, "right": -1}
    assert {WINNERS[outcome]: outcome for outcome in (1, 0, -1)} == OUTCOMES


# --- labels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "outcome"),
    [("Right", "right"), ("LEFT ", "left"), ("1", "left"), ("2", "right"), ("-1", "right"),
     ("0", "tie"), ("0.5", "tie"), ("Tied", "tie"), ("no idea", "tie")],
)  # fmt: skip
def test_the_remedy_for_an_unknown_word_is_what_it_most_likely_means(word, outcome):
    assert likely_labels(word).value == {word: outcome}


def test_labels_stand_for_outcomes():
    labels = {"draw": "tie", 2: "right"}
    assert outcomes_of_labels(labels, "votes") == {"draw": 0, 2: -1}
    assert outcomes_of_labels(None, "votes") == {}


@pytest.mark.parametrize("target", ["draw", "", None, 0, ["tie"]])
def test_a_label_mapped_to_nonsense_is_refused_wherever_votes_come_from(target, tmp_path):
    message = r"^.*: the label 'draw' is mapped to .* not one of left, tie, right"
    with pytest.raises(InvalidSetting, match=message):
        Comparisons.from_arrays(["u"], ["a"], ["b"], ["tie"], labels={"draw": target})
    with pytest.raises(InvalidSetting, match=message):
        votes_saying(tmp_path, "left", labels={"draw": target})


# --- columns at hand -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.Float32, pl.Float64])
def test_numbers_of_any_type_are_outcomes(dtype):
    column = pl.Series([1, 0, -1], dtype=pl.Int64).cast(dtype)
    found = outcomes_of_column(column, "winner", None, "votes")
    assert found.tolist() == [1, 0, -1] and found.dtype == np.int8


def test_labels_go_before_the_usual_meaning():
    swapped = outcomes_of_column(pl.Series(["left", "tie"]), "w", {"left": "right"}, "votes")
    assert swapped.tolist() == [-1, 0]
    small = pl.Series([1, 0], dtype=pl.Int8)
    assert outcomes_of_column(small, "w", {1: "right"}, "votes").tolist() == [-1, 0]


def test_an_unknown_word_is_refused_with_a_setting_that_maps_it():
    with pytest.raises(InvalidRows) as caught:
        outcomes_of_column(pl.Series(["left", "draw"]), "winner", None, "votes")
    assert Setting("labels", {"draw": "tie"}) in caught.value.remedy
    assert caught.value.rows.tolist() == [False, True]


# --- text of files ---------------------------------------------------------------------------

NAMES = {"user": "user", "winner": "says"}
PLAIN = Wording({"left": "left", "right": "right", "tie": "tie"}, numbers=True)


def text(*said, **more):
    n = len(said)
    return pl.DataFrame({"left": ["a"] * n, "right": ["b"] * n, "winner": said, **more})


def test_what_is_decided_needs_no_word():
    frame = text("?", "tie", outcome=pl.Series([1, None], dtype=pl.Int8))
    assert outcomes_of_text(frame, PLAIN, NAMES, {}, "votes").to_list() == [1, 0]


def test_words_that_take_no_label_are_to_be_corrected():
    wording = Wording(expected="a number from 1 on", takes_labels=False)
    with pytest.raises(InvalidRows, match=r"says '\?' is not a number from 1 on. Correct it\."):
        outcomes_of_text(text("?"), wording, NAMES, {}, "votes")


def test_the_command_line_may_spell_the_remedies_in_its_own_way():
    def flag(setting):
        return f"--{setting.name} {setting.value}"

    with pytest.raises(InvalidVotes) as caught:
        outcomes_of_text(text("a", "b"), PLAIN, NAMES, {}, "votes")
    assert caught.value.told(flag).endswith(
        "Read it with --preset crowd-kit --user user --winner says."
    )


def test_votes_that_both_are_bad_keep_the_numbers_of_their_rows():
    wording, notes = Wording({"tie": "tie"}, both_bad=("bad",)), []
    kept = settle_both_bad(text("tie", "bad", "tie"), wording, {}, "drop", notes)
    assert kept["row"].to_list() == [1, 3] and [note.count for note in notes] == [1]
    same = settle_both_bad(text("tie", "bad"), wording, {"bad": "left"}, "drop", notes)
    assert same.height == 2 and len(notes) == 1


# --- numbers in files -------- ------------------------------------------------------------------

AMBIGUOUS = ["0 1 2", "0 0.5 1", "1 2", "0 1", "1", "0", "0.0 1.0", "1 2 3", "-2 2"]


def votes_saying(folder, values, column="winner", **options):
    rows = "".join(f"u,a,b,{value}\n" for value in values.split())
    path = folder / "votes.csv"
    path.write_text(f"user,left,right,{column}\n{rows}")
    return read_votes(path, **options)


@pytest.mark.parametrize("values", AMBIGUOUS)
def test_numbers_that_can_mean_more_than_one_thing_are_refused(values, tmp_path):
    for drop_invalid in (False, True):
        with pytest.raises(InvalidVotes, match=r"holds the numbers .* Declare each .* labels="):
            votes_saying(tmp_path, values, drop_invalid=drop_invalid)


@pytest.mark.parametrize("values", ["0 1 2", "0 0.5 1", "1 2", "2", "0.5"])
def test_a_column_called_outcome_has_only_1_0_and_minus_1(values, tmp_path):
    with pytest.raises(InvalidVotes, match="outcome holds the numbers"):
        votes_saying(tmp_path, values, "outcome")


@pytest.mark.parametrize("column", ["winner", "outcome"])
@pytest.mark.parametrize("values", ["1 0 -1", "1.0 0.0 -1.0", "+1 -0 -1.00", "-1 1", "-1"])
def test_minus_one_says_what_the_other_numbers_mean(values, column, tmp_path):
    reading = votes_saying(tmp_path, values, column)
    assert reading.votes.outcome.tolist() == [int(float(value)) for value in values.split()]
    assert reading.notes == ()


def test_an_outcome_that_is_never_minus_one_may_be_a_defeat_and_is_refused(tmp_path):
    with pytest.raises(InvalidVotes, match="outcome holds the numbers 0 and 1"):
        votes_saying(tmp_path, "1 0 1 0", "outcome")
    declared = votes_saying(tmp_path, "1 0 1 0", "outcome", labels={"1": "left", "0": "right"})
    assert declared.votes.outcome.tolist() == [1, -1, 1, -1]


@pytest.mark.parametrize("values", ["0 1 2", "0.0 1.0 2.0", "0 1.0 2e0"])
def test_numbers_mean_what_is_declared(values, tmp_path):
    labels = {"0": "left", "1": "tie", "2": "right"}
    reading = votes_saying(tmp_path, values, labels=labels)
    assert reading.votes.outcome.tolist() == [1, 0, -1]
    with pytest.raises(InvalidVotes, match="holds the numbers 2, which"):
        votes_saying(tmp_path, values, labels={"0": "left", "1": "tie"})


def test_what_is_declared_goes_before_any_convention(tmp_path):
    labels = {"1": "right", "-1": "left", "0": "tie"}
    assert votes_saying(tmp_path, "1 0 -1", labels=labels).votes.outcome.tolist() == [-1, 0, 1]
    assert votes_saying(tmp_path, "left tie", labels={"left": "right"}).votes.outcome[0] == -1


def test_a_strange_number_among_clear_ones_is_a_bad_row(tmp_path):
    with pytest.raises(InvalidVotes, match="row 3: winner '7' is not one of left, right, tie"):
        votes_saying(tmp_path, "1 -1 7")
    reading = votes_saying(tmp_path, "1 -1 7", drop_invalid=True)
    assert reading.votes.outcome.tolist() == [1, -1] and len(reading.notes) == 1


def test_numbers_among_words_are_bad_rows(tmp_path):
    with pytest.raises(InvalidVotes, match="rows 2 and 3: winner '1' is not one of"):
        votes_saying(tmp_path, "left 1 -1")
