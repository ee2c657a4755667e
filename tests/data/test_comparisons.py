from collections import Counter
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.vocabulary import Vocabulary
from isplitlbi.errors import InvalidSetting
from votes import arrays_of, as_tuples, assert_same, from_rows, letters, random_votes
from votes import rows as vote_rows

TABLE = {
    "user": ["ann", "ann", "bob", "ann", "eve"],
    "left": ["tea", "milk", "milk", "tea", "water"],
    "right": ["milk", "tea", "coffee", "coffee", "tea"],
    "winner": ["left", "right", "tie", "tie", "right"],
    "weight": [1.0, 2.0, 0.5, 1.0, 3.0],
    "group": [1, 1, 2, 2, 1],
}


def columns(**changes):
    """The table as arguments of `from_arrays`, some columns changed."""
    table = TABLE | changes
    return {("outcome" if name == "winner" else name): table[name] for name in table}


def csv_file(folder, table):
    path = folder / "votes.csv"
    pd.DataFrame(table).to_csv(path, index=False)
    return path


# --- the ways in ---------------------------------------------------------------------------

FRAMES = {
    "pandas": pd.DataFrame,
    "pandas, pyarrow types": lambda table: pd.DataFrame(table).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "pandas, nullable types": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas, categories": lambda table: pd.DataFrame(table).astype(
        dict.fromkeys(("user", "left", "right", "winner"), "category")
    ),
    "pandas, another index": lambda table: pd.DataFrame(table, index=[9, 9, 7, 0, 3]),
    "polars": pl.DataFrame,
    "polars, categories": lambda table: pl.DataFrame(table).with_columns(
        pl.col("user", "left", "right", "winner").cast(pl.Categorical)
    ),
    "pyarrow": pa.table,
    "pyarrow, dictionaries": lambda table: pa.table(
        {
            name: pa.array(values).dictionary_encode() if name == "left" else pa.array(values)
            for name, values in table.items()
        }
    ),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_every_kind_of_frame_gives_the_same_votes_as_arrays(frame):
    assert_same(Comparisons.from_frame(FRAMES[frame](TABLE)), Comparisons.from_arrays(**columns()))


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pl.Series, pa.array])
def test_every_kind_of_column_gives_the_same_votes(kind):
    given = {name: kind(values) for name, values in columns().items()}
    assert_same(Comparisons.from_arrays(**given), Comparisons.from_arrays(**columns()))


def test_a_csv_file_gives_the_same_votes_as_arrays(tmp_path):
    group = [str(value) for value in TABLE["group"]]
    expected = Comparisons.from_arrays(**columns(group=group))
    assert_same(Comparisons.read(csv_file(tmp_path, TABLE)), expected)
    assert_same(Comparisons.read(str(csv_file(tmp_path, TABLE))), expected)


def test_words_and_numbers_are_the_same_outcomes():
    words = Comparisons.from_arrays(**columns())
    for numbers in ([1, -1, 0, 0, -1], [1.0, -1.0, 0.0, 0.0, -1.0]):
        assert_same(Comparisons.from_arrays(**columns(winner=numbers)), words)
        small = np.array(numbers, dtype=np.int8)
        assert_same(Comparisons.from_arrays(**columns(winner=small)), words)
    assert words.outcome.tolist() == [1, -1, 0, 0, -1]


def test_an_unsigned_outcome_column_can_still_say_left_and_tie():
    votes = Comparisons.from_arrays(
        ["u", "u"], ["a", "a"], ["b", "b"], np.array([1, 0], dtype=np.uint8)
    )
    assert votes.outcome.tolist() == [1, 0]


def test_columns_may_have_other_names():
    names = {"user": "worker", "left": "a", "right": "b", "winner": "says", "weight": "w"}
    frame = pl.DataFrame(TABLE).rename(names | {"group": "ranking"})
    found = Comparisons.from_frame(frame, **names, group="ranking")
    assert_same(found, Comparisons.from_arrays(**columns()))


def test_other_columns_are_left_alone_and_optional_ones_used_where_present():
    frame = pl.DataFrame(TABLE).with_columns(comment=pl.lit("fine"))
    assert Comparisons.from_frame(frame).weight_as_given.tolist() == TABLE["weight"]
    plain = Comparisons.from_frame(frame.drop("weight", "group"))
    assert plain.weight is None and plain.group is None


def test_weights_may_be_whole_numbers_and_fractions_and_text():
    for weight in ([1, 2, 0.5, 1, 3], ["1", "2.0", "0.5", "1e0", "3"]):
        assert_same(
            Comparisons.from_arrays(**columns(weight=weight)), Comparisons.from_arrays(**columns())
        )


def test_labels_map_other_words_to_outcomes():
    words = ["A", "B", "draw", "both bad", "right"]
    labels = {"A": "left", "B": "right", "draw": "tie", "both bad": "tie"}
    found = Comparisons.from_arrays(**columns(winner=words), labels=labels)
    assert_same(found, Comparisons.from_arrays(**columns()))


def test_labels_map_other_numbers_to_outcomes():
    labels = {2: "right", 3: "tie"}
    found = Comparisons.from_arrays(**columns(winner=[1, 2, 3, 0, 2]), labels=labels)
    assert_same(found, Comparisons.from_arrays(**columns()))


# --- ids -----------------------------------------------------------------------------------

IDS = {
    "text": ["b", "a", "c"],
    "text that looks like numbers": ["007", "7", "7.0"],
    "unicode": ["żółw", "日本", "😀 émoji"],
    "quotes, commas, newlines": ['say "hi"', "a,b", "two\nlines"],
    "spaces and case": [" a", "a", "A"],
    "words that mean nothing elsewhere": ["null", "NaN", "None"],
    "integers": [10, 9, -1],
    "large integers": [2**53 + 1, 2**53, 2**53 + 2],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_come_back_unchanged(ids):
    user, left, right = [ids[0], ids[1], ids[2]], [ids[0]] * 3, [ids[1], ids[2], ids[1]]
    votes = Comparisons.from_arrays(user, left, right, [1, 0, -1])
    assert [row[:3] for row in as_tuples(votes)] == list(zip(user, left, right, strict=True))
    assert votes.users.tolist() == sorted(ids) and votes.items.tolist() == sorted(ids)


@pytest.mark.parametrize("ids", [ids for ids in IDS.values() if isinstance(ids[0], str)])
def test_ids_come_back_unchanged_from_a_csv_file(ids, tmp_path):
    table = {"user": ids, "left": ids, "right": ids[1:] + ids[:1], "winner": ["tie"] * 3}
    votes = Comparisons.read(csv_file(tmp_path, table))
    assert votes.users[votes.user].tolist() == ids
    assert votes.items[votes.right].tolist() == ids[1:] + ids[:1]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.int64, np.uint64])
def test_integer_ids_of_any_width_come_back_as_the_same_numbers(dtype):
    largest = min(np.iinfo(dtype).max, 2**63 - 1)
    ids = np.array([largest, largest - 1, 3, largest - 2], dtype=dtype)
    votes = Comparisons.from_arrays(ids, ids, np.roll(ids, 1), [1, 0, -1, 1])
    assert votes.users[votes.user].tolist() == ids.tolist()
    assert votes.items[votes.left].tolist() == ids.tolist()


@given(st.lists(st.text(letters, min_size=1), min_size=2, max_size=20, unique=True))
def test_any_text_is_an_id(ids):
    votes = Comparisons.from_arrays(ids, ids, ids[1:] + ids[:1], [0] * len(ids))
    assert votes.users[votes.user].tolist() == ids
    assert votes.items[votes.right].tolist() == ids[1:] + ids[:1]


@pytest.mark.parametrize("column", ["user", "left", "right", "group", "id"])
@pytest.mark.parametrize("text", ["\0", "tea\0", "\0tea", "te\0a"])
def test_a_text_with_a_nul_is_no_id(column, text):
    columns = TABLE | {"id": list("abcde")} | {column: ["x", "y", text, "z", text]}
    columns |= {} if column == "group" else {"group": ["g"] * 5}
    columns["outcome"] = columns.pop("winner")
    with pytest.raises(InvalidVotes, match=r"^votes, rows 3 and 5: .* has a NUL in it, which"):
        Comparisons.from_arrays(**columns)


@pytest.mark.parametrize("value", [["a"], ("a", "b"), {"a": 1}, np.array([1, 2]), np.array([])])
def test_a_value_that_holds_others_is_no_id_and_no_panic(value):
    users = np.empty(2, dtype=object)
    users[:] = ["ann", "bob"]
    users[1] = value
    with pytest.raises(InvalidVotes, match=r"^votes: user holds values of type .*; use strings or"):
        Comparisons.from_arrays(users, ["a", "b"], ["b", "a"], [1, 0])


# --- errors --------------------------------------------------------------------------------

BAD_COLUMNS = {
    "user is None": ({"user": ["ann", None, "bob", None, "eve"]},
        ["rows 2 and 4: user is missing", "Fill it in or remove"]),
    "user is NaN": ({"user": ["ann", "bob", float("nan"), "bob", "eve"]},
        ["row 3", "user is missing", "remove the row"]),
    "user is pandas.NA": ({"user": ["ann", "bob", pd.NA, "bob", "eve"]},
        ["row 3", "user is missing", "remove the row"]),
    "user is empty text": ({"user": ["ann", "bob", "bob", "", "eve"]},
        ["row 4", "user is missing", "remove the row"]),
    "left is missing": ({"left": ["tea", "milk", "milk", "tea", None]},
        ["row 5", "left is missing", "remove the row"]),
    "right is empty text": ({"right": ["", "tea", "coffee", "coffee", "tea"]},
        ["row 1", "right is missing", "remove the row"]),
    "winner is missing": ({"winner": ["left", "right", None, "tie", "tie"]},
        ["row 3", "winner is missing", "remove the row"]),
    "winner is not a number": ({"winner": [1, float("nan"), 0, 0, 1]},
        ["row 2", "winner is missing", "remove the row"]),
    "winner is empty text": ({"winner": ["left", "right", "tie", "", "tie"]},
        ["row 4", "winner ''", "not one of left, tie, right"]),
    "unknown winner": ({"winner": ["left", "draw", "tie", "draw", "tie"]},
        ["rows 2 and 4: winner 'draw'", "not one of left, tie, right",
         "Map it with labels={'draw': 'tie'}, or left, or right."]),
    "winner not quite known": ({"winner": ["left", "Lefty", "tie", "tie", "tie"]},
        ["row 2", "winner 'Lefty'", "labels={'Lefty': 'left'}, or tie, or right."]),
    "unknown number": ({"winner": [1, 0, -1, 2, 1]},
        ["row 4", "winner 2", "1 (left), 0 (tie), -1 (right)", "labels={2: 'tie'}"]),
    "half a win": ({"winner": [1, 0.5, 0, 0, 1]},
        ["row 2", "winner 0.5", "1 (left), 0 (tie), -1 (right)"]),
    "true and false": ({"winner": [True, False, True, True, False]},
        ["winner", "Boolean", "expected left, right, tie"]),
    "words and numbers": ({"winner": ["left", 0, "tie", "tie", "tie"]},
        ["winner mixes", "int, str", "use one type"]),
    "item against itself": ({"left": ["tea", "milk", "coffee", "coffee", "water"]},
        ["rows 3 and 4: item 'coffee'", "itself", "Remove the row or correct"]),
    "weight 0": ({"weight": [1, 0, 1, 1, 1]},
        ["row 2", "weight 0.0", "positive, finite", "Correct it, or remove"]),
    "negative weight": ({"weight": [1, 1, -2.5, 1, 1]},
        ["row 3", "weight -2.5", "positive, finite", "Correct it, or remove"]),
    "infinite weight": ({"weight": [1, 1, 1, np.inf, -np.inf]},
        ["rows 4 and 5: weight inf", "Correct it, or remove"]),
    "weight is NaN": ({"weight": [1.0, np.nan, 1.0, 1.0, 1.0]},
        ["row 2", "weight is missing", "remove the row"]),
    "weight is text": ({"weight": ["1", "heavy", "2", "", "1"]},
        ["rows 2 and 4: weight 'heavy'", "not a number", "Correct it or remove"]),
    "weight is a list": ({"weight": pl.Series([[1], [1], [2], [1], [1]])},
        ["weight", "List", "expected positive numbers"]),
    "weight is true": ({"weight": [True] * 5},
        ["weight", "Boolean", "expected positive numbers"]),
    "group is missing": ({"group": [1, 2, None, 1, 2]},
        ["row 3", "group is missing", "remove the row"]),
    "group is a fraction": ({"group": [1.5, 2, 1, 1, 2]},
        ["group", "strings or integers"]),
    "columns of unequal length": ({"right": ["milk", "tea"]},
        ["'right' has 2 rows", "'user' has 5", "equal length"]),
    "a table in place of a column": ({"left": np.ones((5, 2))},
        ["left must be one column", "2 dimensions"]),
    "float ids": ({"user": [1.0, 2.0, 3.0, 4.0, 5.0]},
        ["user", "Float64", "such as 1.0", "strings or integers", "Convert"]),
    "bool ids": ({"user": [True, False, True, True, False]},
        ["user", "Boolean", "such as True", "strings or integers", "Convert"]),
    "bytes": ({"user": [b"a", b"b", b"a", b"a", b"b"]},
        ["user", "Binary", "strings or integers", "Convert"]),
    "ids of mixed types": ({"user": ["ann", 3, "bob", "bob", "eve"]},
        ["user mixes", "int, str", "use one type"]),
    "text against integers": ({"right": [1, 2, 3, 4, 5]},
        ["left/right", "text in one column and integers in the other", "'tea' and 1", "Convert"]),
    "ids beyond 64 bits": ({"user": np.array([1, 2, 3, 4, 2**63], dtype=np.uint64)},
        ["user", str(2**63), "64-bit", "as text"]),
    "ids far beyond 64 bits": ({"user": [1, 2, 3, 4, 2**70]},
        ["user", "do not fit", "at most 64 bits"]),
    "broken text": ({"user": ["ann", "\ud800", "bob", "bob", "eve"]},
        ["row 2: user '\\ud800'", "half of a character"]),
    "no votes": ({name: [] for name in TABLE},
        ["there are no votes", "at least one row"]),
}  # fmt: skip


@pytest.mark.parametrize("changes, fragments", BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_bad_votes_are_refused_with_the_row_the_value_and_the_remedy(changes, fragments):
    with pytest.raises(InvalidVotes) as caught:
        Comparisons.from_arrays(**columns(**changes), source="study 3")
    for fragment in ["study 3", *fragments]:
        assert fragment in str(caught.value)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_missing_values_are_found_in_every_kind_of_frame(frame):
    for name in TABLE:
        table = TABLE | {name: [*TABLE[name][:3], None, TABLE[name][4]]}
        with pytest.raises(InvalidVotes, match=f"votes, row 4: {name} is missing.* remove the row"):
            Comparisons.from_frame(frame(table))


BAD_CSV = {
    "user,left,right,winner\nu,a,b,left\nu,a,b,draw\n": ["row 2", "winner 'draw'", "labels="],
    "user,left,right,winner\nu,a,b,left\nu,,b,tie\n": ["row 2", "left is missing"],
    "user,left,right,winner\nu,a,b,left\nu,b,b,tie\n": ["row 2", "item 'b'", "itself"],
    "user,left,right,winner,weight\nu,a,b,tie,1\nu,a,b,tie,nan\n": ["row 2", "weight nan"],
    "user,left,right,winner,weight\nu,a,b,tie,-1\n": ["row 1", "weight -1.0"],
    "user,left,right\nu,a,b\n": ["no column 'winner'", "found: user, left, right", "winner=..."],
    "user,left,right,winner\n": ["there are no votes"],
}


@pytest.mark.parametrize("text, fragments", BAD_CSV.items())
def test_bad_votes_in_a_file_are_refused_with_the_name_of_the_file(text, fragments, tmp_path):
    path = tmp_path / "study.csv"
    path.write_text(text)
    with pytest.raises(InvalidVotes) as caught:
        Comparisons.read(path)
    for fragment in ["study.csv", *fragments]:
        assert fragment in str(caught.value)


@pytest.mark.parametrize("role", ["left", "right", "winner"])
def test_a_missing_column_is_named_with_those_found_and_how_to_name_another(role):
    frame = pl.DataFrame(TABLE).drop(role)
    with pytest.raises(InvalidVotes) as caught:
        Comparisons.from_frame(frame)
    for fragment in (f"no column '{role}'", ", ".join(frame.columns), f"with {role}=..."):
        assert fragment in str(caught.value)


@pytest.mark.parametrize("role", ["weight", "group", "time", "duration"])
def test_an_optional_column_asked_for_by_name_must_exist(role):
    with pytest.raises(InvalidVotes, match=f"no column 'w' for the {role}"):
        Comparisons.from_frame(pl.DataFrame(TABLE), **{role: "w"})


def test_errors_name_columns_as_their_frame_does():
    frame = pl.DataFrame(TABLE).rename({"winner": "verdict", "user": "worker"})
    bad = frame.with_columns(verdict=pl.lit("first"))
    with pytest.raises(
        InvalidVotes, match="rows 1, 2, 3 and 2 more: verdict 'first' is not one of"
    ):
        Comparisons.from_frame(bad, user="worker", winner="verdict")
    bad = frame.with_columns(worker=pl.lit(None))
    with pytest.raises(InvalidVotes, match="rows 1, 2, 3 and 2 more: worker is missing"):
        Comparisons.from_frame(bad, user="worker", winner="verdict")


@pytest.mark.parametrize("thing", [[1, 2], {"user": ["u"]}, 3, None, pl.LazyFrame(TABLE)])
def test_what_is_not_a_frame_is_refused_with_what_it_is(thing):
    with pytest.raises(InvalidVotes, match=f"found {type(thing).__name__}.*from_arrays"):
        Comparisons.from_frame(thing)


def test_a_very_long_id_does_not_drown_the_message():
    long = "x" * 10_000
    with pytest.raises(InvalidVotes) as caught:
        Comparisons.from_arrays(["u"], [long], [long], ["tie"])
    assert "itself" in str(caught.value) and len(str(caught.value)) < 300


# --- what they look like -------------------------------------------------------------------


def test_votes_say_what_they_are():
    votes = Comparisons.from_arrays(**columns())
    assert repr(votes) == "Comparisons: 5 votes (40.0 % ties) by 3 users on 4 items"
    assert (len(votes), votes.n_votes, votes.n_users, votes.n_items) == (5, 5, 3, 4)
    assert votes.votes_per_user.tolist() == [3, 1, 1]
    assert repr(votes.subset([])) == "Comparisons: 0 votes by 3 users on 4 items"


# --- immutability and parts ----------------------------------------------------------------


def test_votes_cannot_be_changed():
    whole = Comparisons.from_arrays(**columns(time=[1, 2, 3, 4, 5], duration=[0.5] * 5))
    for votes in (whole, whole.subset([0, 2])):
        for name, array in arrays_of(votes).items():
            assert not array.flags.writeable, name
        with pytest.raises(FrozenInstanceError):
            votes.user = np.zeros(5)


def test_votes_do_not_share_memory_with_what_they_came_from():
    numbers = {
        "winner": [1, -1, 0, 0, -1],
        "time": [1.0, 2, 3, 4, 5],
        "duration": [5.0, 4, 3, 2, 1],
    }
    given = {name: np.array(values) for name, values in columns(**numbers).items()}
    votes = Comparisons.from_arrays(**given)
    before = as_tuples(votes)
    for array in given.values():
        array[:] = array[0]
    assert as_tuples(votes) == before
    assert votes.time.tolist() == [1, 2, 3, 4, 5] and votes.duration.tolist() == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    "chosen", [[4, 0], np.array([True, False, False, False, True]), np.array([-1, 0])]
)
def test_a_subset_keeps_the_vocabularies_of_the_whole(chosen):
    votes = Comparisons.from_arrays(**columns())
    part = votes.subset(chosen)
    assert part.users is votes.users and part.items is votes.items and part.whole is votes
    everything = as_tuples(votes)
    assert Counter(as_tuples(part)) == Counter([everything[0], everything[4]])


def test_a_subset_of_a_subset_is_a_subset():
    votes = random_votes(0, weighted=True, group_size=3)
    part = votes.subset([5, 9, 2]).subset([True, False, True])
    assert_same(part, votes.subset([5, 2]))
    assert part.whole is votes


@pytest.mark.parametrize("length", [0, 4, 6])
def test_a_mask_of_the_wrong_length_is_refused(length):
    votes = Comparisons.from_arrays(**columns())
    with pytest.raises(InvalidSetting, match=f"mask of {length} rows does not fit 5 votes"):
        votes.subset(np.ones(length, dtype=bool))


def test_an_index_beyond_the_votes_is_refused():
    with pytest.raises(IndexError):
        Comparisons.from_arrays(**columns()).subset([5])


# --- votes from several places -------------------------------------------------------------

SEEDS = st.integers(0, 2**32 - 1)


@given(vote_rows, st.integers(1, 4), st.booleans(), st.booleans(), SEEDS)
def test_votes_from_several_places_are_those_from_one(rows, n_parts, weighted, grouped, seed):
    part = np.random.default_rng(seed).integers(n_parts, size=len(rows))
    parts = [[row for row, p in zip(rows, part, strict=True) if p == k] for k in range(n_parts)]
    ordered = [row for part in parts for row in part]
    how = {"weighted": weighted, "grouped": grouped}
    together = Comparisons.joined(*(from_rows(part, **how) for part in parts if part))
    assert_same(together, from_rows(ordered, **how))


def test_votes_that_do_not_go_together_are_not_joined():
    plain, other = (random_votes(seed) for seed in (1, 2))
    with pytest.raises(InvalidVotes, match="all have a weight or none has"):
        Comparisons.joined(plain, random_votes(3, weighted=True))
    grouped = random_votes(4, group_size=2)
    with pytest.raises(InvalidVotes, match="all have a group or none has"):
        Comparisons.joined(grouped, plain)
    with pytest.raises(InvalidVotes, match="groups have no names"):
        Comparisons.joined(grouped, replace(grouped, groups=None))
    for name in ("time", "duration"):
        with pytest.raises(InvalidVotes, match=f"all have a {name} or none has"):
            Comparisons.joined(plain, replace(other, **{name: np.arange(60.0)}))
    assert len(Comparisons.joined(plain, other)) == len(plain) + len(other)


def test_votes_are_not_renumbered_by_vocabularies_that_lack_their_ids():
    one = Comparisons.from_arrays(["u"], ["a"], ["b"], [1])
    users, items = Vocabulary(np.array(["u"], object)), Vocabulary(np.array(["a", "c"], object))
    with pytest.raises(InvalidVotes, match="is not among those that are known"):
        one.renumbered(users, items)


# --- real votes ----------------------------------------------------------------------------

REAL = {  # users, items, votes, ties in per cent: the table of the data's README
    "simulation": (50, 20, 14_783, 13.3),
    "age": (91, 25, 9_589, 8.3),
    "college": (435, 261, 11_012, 14.6),
    "llmfao": (124, 59, 8_931, 38.9),
    "wmt16_cze-eng": (73, 12, 43_991, 22.4),
}


@pytest.mark.parametrize("name", REAL)
def test_real_votes_are_read_whole(name, shared_data):
    votes = Comparisons.read(shared_data / f"{name}.csv")
    ties = round(100 * float(np.mean(votes.outcome == 0)), 1)
    assert (votes.n_users, votes.n_items, votes.n_votes, ties) == REAL[name]
