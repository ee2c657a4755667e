"""What outcomes are called: the words of y, sorted, and back."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.labels import NUMBERS, OutcomeLabels, labels_of
from isplitlbi.data.outcomes import OUTCOMES, meaning

outcomes = st.lists(st.sampled_from([1, 0, -1]), min_size=1)


@given(outcomes)
def test_numbers_stay_numbers(y):
    for given_as in (y, np.array(y, dtype=np.int8), np.array(y, dtype=float)):
        assert labels_of(given_as) is NUMBERS
    outcome = np.array(y, dtype=np.int8)
    assert NUMBERS.name(outcome) is outcome


@given(outcomes, st.sampled_from([str, str.upper, str.title, str.capitalize]),
       st.sampled_from([["left", "tie", "right"], ["model_a", "tie", "model_b"]]))  # fmt: skip
def test_words_come_back_as_they_were_and_are_sorted(y, manner, words):
    said = dict(zip([1, 0, -1], map(manner, words), strict=True))
    labels = labels_of([said[outcome] for outcome in y])
    assert list(labels.labels) == sorted(labels.labels)
    assert labels.name(np.array(y)).tolist() == [said[outcome] for outcome in y]
    assert {meaning(label) for label in labels.labels} == {1, 0, -1}
    pairs = zip(*labels.without_ties(), strict=True)
    assert dict(pairs) == {label: k for k, label in labels.by_outcome().items() if k}


def test_an_outcome_that_does_not_occur_has_the_word_that_goes_with_the_others():
    assert labels_of(["model_a", "model_a"]).labels == ("model_a", "model_b", "tie")
    assert labels_of(["RIGHT"]).labels == ("LEFT", "RIGHT", "TIE")
    assert labels_of(["both_bad", "left"]).labels == ("both_bad", "left", "right")
    assert labels_of(pd.Series(["tie"], dtype="category")).labels == ("left", "right", "tie")
    assert labels_of([]).outcomes == labels_of(None).outcomes == (-1, 0, 1)


def test_two_words_for_one_outcome_are_refused():
    with pytest.raises(InvalidVotes, match="two words for one outcome, 'both_bad' and 'tie' for"):
        labels_of(["tie", "left", "both_bad"])
    with pytest.raises(InvalidVotes, match="'Left' and 'left' for left"):
        labels_of(["left", "Left"])


def test_labels_are_sorted_with_their_outcomes():
    assert OutcomeLabels.of({1: "b", 0: "a", -1: "c"}) == (("a", "b", "c"), (0, 1, -1))


def test_arrays_may_have_the_words_of_readers_and_what_is_not_quite_said_so_is_logged(caplog):
    votes = Comparisons.from_arrays(
        ["u"] * 6, ["a"] * 6, ["b"] * 6, ["left", "Right ", "TIE", "model_b", "both bad", "left"]
    )
    assert votes.outcome.tolist() == [1, -1, 0, -1, 0, 1]
    assert [record.getMessage() for record in caplog.records] == [
        "votes: In winner, 'Right ' is read as 'right', 1 time.",
        "votes: In winner, 'TIE' is read as 'tie', 1 time.",
        "votes: 1 both-bad vote counted as a tie.",
    ]
    caplog.clear()
    Comparisons.from_arrays(["u"], ["a"], ["b"], ["left"])
    assert not caplog.records


@given(st.text())
def test_every_word_means_one_outcome_or_none(word):
    assert meaning(word) in (1, 0, -1, None)
    if word in OUTCOMES:
        assert meaning(word) == OUTCOMES[word]
