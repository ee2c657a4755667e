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
from isplitlbi.data import comparisons
from isplitlbi.data.vocabulary import Vocabulary
from votes import arrays_of, as_tuples, assert_same, from_rows, multiset, random_votes, rebuilt
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
    assert Comparisons.from_frame(frame).weight.tolist() == TABLE["weight"]
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


@given(st.lists(st.text(min_size=1), min_size=2, max_size=20, unique=True))
def test_any_text_is_an_id(ids):
    votes = Comparisons.from_arrays(ids, ids, ids[1:] + ids[:1], [0] * len(ids))
    assert votes.users[votes.user].tolist() == ids
    assert votes.items[votes.right].tolist() == ids[1:] + ids[:1]


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
         "labels={'draw': 'tie'}", "--label draw=tie"]),
    "winner in capitals": ({"winner": ["left", "Left", "tie", "tie", "tie"]},
        ["row 2", "winner 'Left'", "labels={'Left': "]),
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
        ["user", "do not fit", "of type str"]),
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
    "user,left,right,winner\nu,a,b,left\nu,a,b,draw\n": ["row 2", "winner 'draw'", "--label"],
    "user,left,right,winner\nu,a,b,left\nu,,b,tie\n": ["row 2", "left is missing"],
    "user,left,right,winner\nu,a,b,left\nu,b,b,tie\n": ["row 2", "item 'b'", "itself"],
    "user,left,right,winner,weight\nu,a,b,tie,1\nu,a,b,tie,nan\n": ["row 2", "weight nan"],
    "user,left,right,winner,weight\nu,a,b,tie,-1\n": ["row 1", "weight -1.0"],
    "user,left,right\nu,a,b\n": ["no column 'winner'", "found: user, left, right", "--winner"],
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


@pytest.mark.parametrize("role", ["user", "left", "right", "winner"])
def test_a_missing_column_is_named_with_those_found_and_how_to_name_another(role):
    frame = pl.DataFrame(TABLE).drop(role)
    with pytest.raises(InvalidVotes) as caught:
        Comparisons.from_frame(frame)
    for fragment in (f"no column '{role}'", ", ".join(frame.columns), f"{role}=...", f"--{role}"):
        assert fragment in str(caught.value)


@pytest.mark.parametrize("role", ["weight", "group"])
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


@pytest.mark.parametrize("target", ["draw", "", None, 0])
def test_a_label_mapped_to_nonsense_is_refused(target):
    with pytest.raises(InvalidVotes, match=r"a label is mapped to .* not one of left, tie, right"):
        Comparisons.from_arrays(**columns(), labels={"draw": target})


def test_a_very_long_id_does_not_drown_the_message():
    long = "x" * 10_000
    with pytest.raises(InvalidVotes) as caught:
        Comparisons.from_arrays(["u"], [long], [long], ["tie"])
    assert "itself" in str(caught.value) and len(str(caught.value)) < 300


# --- edges and slots -----------------------------------------------------------------------


def brute_tally(votes):
    """Count outcomes per (user, pair) one vote after another, the lower item first."""
    tally = {}
    weights = np.ones(len(votes)) if votes.weight is None else votes.weight
    for user, left, right, outcome, weight in zip(
        votes.user, votes.left, votes.right, votes.outcome, weights, strict=True
    ):
        pair, mirrored = (user, min(left, right), max(left, right)), left > right
        counts = tally.setdefault(pair, [0.0, 0.0, 0.0])
        counts[1 - (-outcome if mirrored else outcome)] += weight
    return tally


def edge_table(votes):
    edges, item = votes.edges, votes.slots.coordinate
    counts = np.stack([edges.first_wins, edges.ties, edges.second_wins], axis=-1)
    keys = zip(edges.owner, item[edges.first], item[edges.second], strict=True)
    return dict(zip(keys, counts, strict=True))


@given(vote_rows, st.booleans())
def test_edges_count_the_votes_of_one_user_on_one_pair(rows, weighted):
    votes = from_rows(rows, weighted=weighted)
    found, expected = edge_table(votes), brute_tally(votes)
    assert list(found) == sorted(expected)
    assert len(votes.edges.first) == len(expected)
    for key, counts in expected.items():
        np.testing.assert_allclose(found[key], counts, rtol=1e-14)


@given(vote_rows)
def test_edges_lie_in_their_users_slots_first_before_second(rows):
    votes = from_rows(rows)
    slots, edges = votes.slots, votes.edges
    assert edges.start[0] == 0 and edges.start[-1] == len(edges.first)
    assert (edges.first < edges.second).all()
    assert (slots.owner[edges.first] == edges.owner).all()
    assert (slots.owner[edges.second] == edges.owner).all()
    assert (slots.coordinate[edges.second] < votes.n_items).all()


def test_a_vote_of_weight_two_is_that_vote_twice():
    twice = Comparisons.from_arrays(["u"] * 3, list("aab"), list("bbc"), [1, 1, 0])
    weighted = Comparisons.from_arrays(["u"] * 2, list("ab"), list("bc"), [1, 0], weight=[2, 1])
    for one, other in zip(twice.edges, weighted.edges, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@given(vote_rows)
def test_slots_are_the_items_each_user_compared_and_a_threshold_last(rows):
    votes = from_rows(rows)
    slots = votes.slots
    for user in range(votes.n_users):
        mine = votes.user == user
        compared = sorted({*votes.left[mine].tolist(), *votes.right[mine].tolist()})
        own = slots.coordinate[slots.start[user] : slots.start[user + 1]]
        assert own.tolist() == [*compared, votes.n_items]
    assert slots.n_users == votes.n_users
    assert (slots.coordinate[slots.threshold] == votes.n_items).all()
    assert (slots.coordinate[votes.left_slot] == votes.left).all()
    assert (slots.coordinate[votes.right_slot] == votes.right).all()
    assert (slots.owner[votes.left_slot] == votes.user).all()


@given(vote_rows, st.booleans())
def test_slots_and_edges_are_the_same_with_and_without_a_table_of_all_of_them(rows, weighted):
    def laid():
        votes = from_rows(rows, weighted=weighted)
        return votes, votes.subset(np.arange(0, len(votes), 2))

    expected = laid()
    assert len(expected[0].edges.first) and len(expected[1].edges.first)
    with pytest.MonkeyPatch.context() as patch:
        for per_vote, bits in ((10**6, 63), (0, 63), (10**6, 0), (0, 0)):
            patch.setattr(comparisons, "TABLE_PER_VOTE", per_vote)
            patch.setattr(comparisons, "PACKED_BITS", bits)
            for here, there in zip(laid(), expected, strict=True):
                assert_same(here, there)


def test_memory_grows_with_the_votes_and_not_with_users_times_items():
    n = 2000
    votes = Comparisons.from_arrays(range(n), range(n), range(1, n + 1), [1] * n)
    assert len(votes.slots.coordinate) == 3 * n
    assert len(votes.edges.first) == n


@given(vote_rows, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows, weighted, random):
    votes = from_rows(rows, weighted=weighted)
    shuffled = list(rows)
    random.shuffle(shuffled)
    here, there = arrays_of(votes), arrays_of(from_rows(shuffled, weighted=weighted))
    for name, array in here.items():
        if name in ("users", "items") or "." in name:
            np.testing.assert_array_equal(array, there[name], err_msg=name, strict=True)


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_many_weights_do_not_depend_on_the_order_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    votes = random_votes(rng, n_users=1, n_items=2, n_votes=200, weighted=True)
    other = rebuilt(votes, order=rng.permutation(200), swapped=rng.random(200) < 0.5)
    for name, array in votes.edges._asdict().items():
        np.testing.assert_array_equal(array, getattr(other.edges, name), err_msg=name, strict=True)
    for one, two in zip(
        votes.split_within_user(0.3, seed),
        rebuilt(votes, order=rng.permutation(200)).split_within_user(0.3, seed),
        strict=True,
    ):
        assert multiset(one) == multiset(two)


@given(vote_rows, st.data())
def test_swapping_the_sides_of_any_votes_leaves_the_edges_unchanged(rows, data):
    votes = from_rows(rows)
    n = votes.n_votes
    swapped = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    other = rebuilt(votes, swapped=swapped)
    assert (other.left[swapped] == votes.right[swapped]).all()
    for name, array in votes.edges._asdict().items():
        np.testing.assert_array_equal(array, getattr(other.edges, name), err_msg=name, strict=True)


def test_votes_say_what_they_are():
    votes = Comparisons.from_arrays(**columns())
    assert repr(votes) == "Comparisons: 5 votes (40.0 % ties) by 3 users on 4 items"
    assert (len(votes), votes.n_votes, votes.n_users, votes.n_items) == (5, 5, 3, 4)
    assert votes.votes_per_user.tolist() == [3, 1, 1]
    assert repr(votes.subset([])) == "Comparisons: 0 votes by 3 users on 4 items"


# --- immutability and parts ----------------------------------------------------------------


def test_votes_cannot_be_changed():
    whole = Comparisons.from_arrays(**columns())
    for votes in (whole, whole.subset([0, 2]), *whole.split_within_user(0.5, 0)):
        for name, array in arrays_of(votes).items():
            assert not array.flags.writeable, name
        with pytest.raises(FrozenInstanceError):
            votes.user = np.zeros(5)


def test_votes_do_not_share_memory_with_what_they_came_from():
    given = {name: np.array(values) for name, values in columns(winner=[1, -1, 0, 0, -1]).items()}
    votes = Comparisons.from_arrays(**given)
    before = as_tuples(votes)
    for array in given.values():
        array[:] = array[0]
    assert as_tuples(votes) == before


@pytest.mark.parametrize(
    "chosen", [[4, 0], np.array([True, False, False, False, True]), np.array([-1, 0])]
)
def test_a_subset_keeps_the_vocabularies_and_slots_of_the_whole(chosen):
    votes = Comparisons.from_arrays(**columns())
    part = votes.subset(chosen)
    assert part.users is votes.users and part.items is votes.items and part.slots is votes.slots
    everything = as_tuples(votes)
    assert Counter(as_tuples(part)) == Counter([everything[0], everything[4]])
    assert edge_table(part).keys() == brute_tally(part).keys()
    assert part.edges.start.shape == votes.edges.start.shape


def test_a_subset_of_a_subset_is_a_subset():
    votes = random_votes(0, weighted=True, group_size=3)
    assert_same(votes.subset([5, 9, 2]).subset([True, False, True]), votes.subset([5, 2]))


def test_the_empty_subset_has_no_edges_and_all_slots():
    votes = random_votes(0)
    part = votes.subset(np.zeros(len(votes), dtype=bool))
    assert len(part) == 0 and len(part.edges.first) == 0
    assert part.edges.start.tolist() == [0] * (votes.n_users + 1)
    assert part.slots is votes.slots


@pytest.mark.parametrize("length", [0, 4, 6])
def test_a_mask_of_the_wrong_length_is_refused(length):
    votes = Comparisons.from_arrays(**columns())
    with pytest.raises(ValueError, match=f"mask of {length} rows does not fit 5 votes"):
        votes.subset(np.ones(length, dtype=bool))


def test_an_index_beyond_the_votes_is_refused():
    with pytest.raises(IndexError):
        Comparisons.from_arrays(**columns()).subset([5])


# --- splits and folds ----------------------------------------------------------------------

SHARES = st.floats(0.05, 0.95)
SEEDS = st.integers(0, 2**32 - 1)


def sizes(votes, by_outcome):
    """The number of votes of every user, or of every user and outcome."""
    keys = votes.user * 3 + (votes.outcome + 1 if by_outcome else 0)
    return np.bincount(keys, minlength=3 * votes.n_users)


@given(vote_rows, SHARES, SEEDS)
def test_a_split_gives_every_user_and_outcome_its_share_within_one_vote(rows, share, seed):
    votes = from_rows(rows, weighted=False)
    _, test = votes.split_within_user(share, seed)
    for by_outcome in (False, True):
        difference = sizes(test, by_outcome) - share * sizes(votes, by_outcome)
        assert np.abs(difference).max() < 1.0 + 1e-9


@given(vote_rows, SHARES, SEEDS, st.booleans())
def test_the_parts_of_a_split_are_disjoint_and_complete(rows, share, seed, grouped):
    votes = from_rows(rows, grouped=grouped)
    train, test = votes.split_within_user(share, seed)
    assert multiset(train) + multiset(test) == multiset(votes)
    for part in (train, test):
        assert part.users is votes.users and part.items is votes.items
        assert part.slots is votes.slots


@given(vote_rows, SHARES, SEEDS, st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_a_split_does_not_depend_on_the_order_of_the_rows(
    rows, share, seed, weighted, grouped, random
):
    votes = from_rows(rows, weighted=weighted, grouped=grouped)
    order = list(range(len(rows)))
    random.shuffle(order)
    other = rebuilt(votes, order=order)
    for one, two in zip(
        votes.split_within_user(share, seed), other.split_within_user(share, seed), strict=True
    ):
        assert multiset(one) == multiset(two)


def test_the_same_seed_gives_the_same_split_and_another_seed_another():
    votes = random_votes(0, n_votes=200)
    splits = [votes.split_within_user(0.3, seed) for seed in (1, 1, 2)]
    generated = votes.split_within_user(0.3, np.random.default_rng(1))
    assert_same(splits[0][1], splits[1][1])
    assert_same(splits[0][1], generated[1])
    assert multiset(splits[0][1]) != multiset(splits[2][1])


def test_every_vote_has_the_same_chance_to_be_in_the_test_part():
    votes = Comparisons.from_arrays(["u"] * 7, ["a"] * 7, list("bcdefgh"), [1, 1, 1, 1, 0, 0, -1])
    rng = np.random.default_rng(0)
    draws = 3000
    counts = np.zeros(votes.n_items)
    for _ in range(draws):
        counts[votes.split_within_user(0.3, rng)[1].right] += 1
    # Five standard deviations of a proportion of 0.3.
    assert np.abs(counts[1:] / draws - 0.3).max() < 5 * np.sqrt(0.21 / draws)


def test_one_generator_gives_one_split_after_another():
    votes, rng = random_votes(0, n_votes=200), np.random.default_rng(1)
    first, second = (votes.split_within_user(0.3, rng)[1] for _ in range(2))
    assert multiset(first) != multiset(second)


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
    assert len(Comparisons.joined(plain, other)) == len(plain) + len(other)


def test_votes_are_not_renumbered_by_vocabularies_that_lack_their_ids():
    one = Comparisons.from_arrays(["u"], ["a"], ["b"], [1])
    users, items = Vocabulary(np.array(["u"], object)), Vocabulary(np.array(["a", "c"], object))
    with pytest.raises(InvalidVotes, match="is not among those that are known"):
        one.renumbered(users, items)


@given(vote_rows, SHARES, SEEDS, st.integers(2, 6))
def test_votes_of_one_group_stay_together(rows, share, seed, n_folds):
    votes = from_rows(rows, grouped=True)
    parts = [votes.split_within_user(share, seed)]
    if n_folds <= len(votes):
        parts += votes.folds_within_user(n_folds, seed)
    for train, test in parts:
        both = {(u, g) for u, g in zip(train.user, train.group, strict=True)} & {
            (u, g) for u, g in zip(test.user, test.group, strict=True)
        }
        assert not both


def test_groups_are_split_to_within_one_group_per_user():
    user = np.repeat(np.arange(4), 60)
    group = np.tile(np.repeat(np.arange(20), 3), 4)
    votes = Comparisons.from_arrays(user, ["a"] * 240, ["b"] * 240, [1, 0, -1] * 80, group=group)
    _, test = votes.split_within_user(0.25, 0)
    assert (test.votes_per_user == 15).all()
    for _, held_out in votes.folds_within_user(5, 0):
        assert (held_out.votes_per_user == 12).all()


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(ValueError, match=r"test_share is .* must lie between 0 and 1"):
        random_votes(0).split_within_user(share)


@given(vote_rows, st.integers(2, 7), SEEDS, st.booleans())
def test_every_vote_is_held_out_in_exactly_one_fold(rows, n_folds, seed, grouped):
    votes = from_rows(rows * 2, grouped=grouped)
    n_folds = min(n_folds, len(votes))
    folds = votes.folds_within_user(n_folds, seed)
    assert len(folds) == n_folds
    assert sum((multiset(held_out) for _, held_out in folds), Counter()) == multiset(votes)
    for train, held_out in folds:
        assert multiset(train) + multiset(held_out) == multiset(votes)
        for part in (train, held_out):
            assert part.users is votes.users and part.items is votes.items
            assert part.slots is votes.slots


@given(vote_rows, st.integers(2, 7), SEEDS)
def test_folds_share_every_user_and_outcome_to_within_one_vote(rows, n_folds, seed):
    votes = from_rows(rows * 2, weighted=False)
    folds = votes.folds_within_user(min(n_folds, len(votes)), seed)
    for by_outcome in (False, True):
        counts = np.array([sizes(held_out, by_outcome) for _, held_out in folds])
        assert (counts.max(axis=0) - counts.min(axis=0) <= 1).all()


@given(vote_rows, SEEDS, st.booleans(), st.randoms(use_true_random=False))
def test_folds_do_not_depend_on_the_order_of_the_rows(rows, seed, grouped, random):
    votes = from_rows(rows * 2, grouped=grouped)
    order = list(range(len(votes)))
    random.shuffle(order)
    other = rebuilt(votes, order=order)
    for one, two in zip(
        votes.folds_within_user(2, seed), other.folds_within_user(2, seed), strict=True
    ):
        assert multiset(one[1]) == multiset(two[1])


@pytest.mark.parametrize("n_folds", [-1, 0, 1, 6])
def test_a_number_of_folds_that_cannot_be_dealt_is_refused(n_folds):
    with pytest.raises(ValueError, match=rf"n_folds is {n_folds}; .* from 2 to the 5 votes"):
        Comparisons.from_arrays(**columns()).folds_within_user(n_folds)


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
    counts = [votes.edges.first_wins, votes.edges.ties, votes.edges.second_wins]
    assert sum(count.sum() for count in counts) == votes.n_votes
    assert len(votes.slots.coordinate) <= 2 * votes.n_votes + votes.n_users


def test_real_rankings_stay_together(shared_data):
    votes = Comparisons.read(shared_data / "wmt16_cze-eng.csv", group="ranking")
    train, test = votes.split_within_user(0.2, 0)
    assert not set(zip(train.user, train.group, strict=True)) & set(
        zip(test.user, test.group, strict=True)
    )
    assert len(test) / len(votes) == pytest.approx(0.2, abs=0.01)
