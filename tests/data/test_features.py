"""Features of votes: from columns to numbers in units, and with the votes wherever these go."""

import io
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.features import Features, Squares, Units, feature_names
from isplitlbi.data.notes import FeatureTaken
from isplitlbi.data.presets import PRESETS
from isplitlbi.data.readers import Parts, read_pairs, read_part, read_votes
from isplitlbi.data.splits import folds_within_user, in_order, split_within_user
from isplitlbi.data.summary import Summary
from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators.inputs import pair_features
from votes import assert_same, random_votes, rebuilt

FOUR = (["ann", "ann", "bob", "bob"], ["a", "b", "a", "c"], ["b", "c", "c", "b"], [1, 0, -1, 1])
LEFT, RIGHT = [10.0, 0.0, 30.0, 7.0], [7.0, 4.0, 30.0, 7.0]
ROOT = 2.5  # of the mean of 9, 16, 0 and 0

TABLE = pl.DataFrame(
    {
        "user": FOUR[0], "left": FOUR[1], "right": FOUR[2],
        "winner": ["left", "tie", "right", "left"],
        "length_left": LEFT, "length_right": RIGHT, "price": [0.1, -0.25, 1e-7, 3e12],
    }
)  # fmt: skip


def of_length(differences, **more):
    return Comparisons.from_arrays(*FOUR, features={"length": differences}, **more)


def parquet(frame):
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


WAYS = {
    "csv": lambda frame: frame.write_csv().encode(),
    "tsv": lambda frame: frame.write_csv(separator="\t").encode(),
    "parquet": parquet,
    "jsonl": lambda frame: "\n".join(map(json.dumps, frame.to_dicts())).encode(),
    "json array": lambda frame: json.dumps(frame.to_dicts()).encode(),
}


def written(folder, content, name="votes.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- numbers in units ----------------------------------------------------------------------


def test_values_are_differences_in_units_of_their_root_mean_square():
    votes = Comparisons.from_arrays(*FOUR, features={"length": (LEFT, RIGHT)})
    features = votes.features
    assert features.names == ("length",) and features.scale.tolist() == [ROOT]
    assert features.differences.tolist() == [[3.0], [-4.0], [0.0], [0.0]]
    assert features.values.tolist() == [[1.2], [-1.6], [0.0], [0.0]]
    assert np.mean(features.values**2) == pytest.approx(1.0)
    assert len(features) == 4 and "length of 4 votes" in repr(features)


def test_columns_of_both_sides_are_the_same_as_differences():
    both = Comparisons.from_arrays(*FOUR, features={"length": (LEFT, RIGHT)})
    assert_same(both, of_length(np.subtract(LEFT, RIGHT)))
    assert_same(both, of_length([3, -4, 0, 0]))
    assert_same(both, Comparisons.from_frame(TABLE, features=["length"]))
    assert_same(both, Comparisons.from_frame(TABLE.to_pandas(), features="length"))
    assert_same(both, of_length(pd.Series([3.0, -4.0, 0.0, -0.0])))


def test_two_differences_in_a_tuple_are_no_two_columns():
    votes = Comparisons.from_arrays(
        ["u", "u"], ["a", "a"], ["b", "b"], [1, 0], features={"x": (1.0, 2.0)}
    )
    assert votes.features.differences.tolist() == [[1.0], [2.0]]


def test_a_vote_with_its_sides_exchanged_has_the_other_sign():
    votes = Comparisons.from_arrays(*FOUR, features={"length": (LEFT, RIGHT)})
    user, left, right, outcome = FOUR
    swapped = Comparisons.from_arrays(
        user, right, left, np.negative(outcome), features={"length": (RIGHT, LEFT)}
    )
    assert np.array_equal(swapped.features.values, -votes.features.values)
    assert np.array_equal(swapped.features.scale, votes.features.scale)


def test_values_are_not_centred():
    features = of_length([5.0, 5.0, 5.0, 5.0]).features
    assert features.values.tolist() == [[1.0]] * 4


def test_a_vote_of_weight_2_counts_as_that_vote_twice():
    twice = [[*column, column[0]] for column in FOUR]
    one = Comparisons.from_arrays(*twice, features={"x": [3.0, 1.0, 0.0, 0.3, 3.0]})
    other = Comparisons.from_arrays(
        *FOUR, weight=[2, 1, 1, 1], features={"x": [3.0, 1.0, 0.0, 0.3]}
    )
    assert one.features.scale == other.features.scale


numbers = st.floats(-1e100, 1e100)


@given(st.lists(st.tuples(numbers, st.floats(1e-300, 1e300)), min_size=1, max_size=40), st.data())
def test_the_scale_is_exact_whatever_the_order_and_the_parts(rows, data):
    differences, weight = (np.array(column) for column in zip(*rows, strict=True))
    cut = data.draw(st.integers(0, len(rows)))
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    found = Squares.of(differences[:, None], weight).root_of_mean()
    parts = [
        Squares.of(differences[some][:, None], weight[some]) for some in (order[:cut], order[cut:])
    ]
    assert (parts[0] + parts[1]).root_of_mean() == found
    exact = sum(Fraction(d) ** 2 * Fraction(w) for d, w in rows) / sum(Fraction(w) for _, w in rows)
    assert found == pytest.approx(math.sqrt(exact), rel=1e-14, abs=1e-150)


def test_votes_without_features_have_nothing():
    votes = Comparisons.from_arrays(*FOUR)
    assert votes.features is None and votes.subset([0]).features is None
    for nothing in ({}, None):
        assert Comparisons.from_arrays(*FOUR, features=nothing).features is None
    assert Comparisons.from_frame(TABLE, features=[]).features is None
    assert in_order(votes).features is None and Summary.of(votes).units is None


def test_features_cannot_be_changed():
    features = of_length([3.0, -4.0, 0.0, 0.0]).features
    for array in (features.differences, features.scale):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


# --- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "differences, message",
    [
        ([1.0, None, 2.0, 3.0], "votes, row 2: length is missing. Fill it in"),
        ([1.0, 2.0, math.nan, math.nan], "rows 3 and 4: length is missing"),
        (["1", "2", "", "3"], "row 3: length is missing"),
        ([1.0, 2.0, 3.0, -math.inf], "row 4: length -inf is not a finite number"),
        ([1.0, 2.0, 3.0, 1e200], r"row 4: length 1e\+200 is not a finite number up to 1e\+150"),
        (["1", "two", "3", "4"], "row 2: length 'two' is not a number. Correct it"),
        ([True, False, True, True], "length holds values of type Boolean; expected numbers"),
        ([0.0, 0, -0.0, 0], r"length is 0 in every vote, .* Leave out features=\['length'\]"),
        (([1, 2, 3, 4], [1, 2, 3, 4]), "the feature length is 0 in every vote"),
        ([1.0, 2.0], "'length' has 2 rows, 'user' has 4"),
        (([1, 2, 3, 4], [1, 2, 3]), "'length_right' has 3 rows"),
        (([1, 2, 3, 4], [1, None, 3, 4]), "row 2: length_right is missing"),
        (np.ones((4, 2)), "length must be one column, found 2 dimensions"),
    ],
)  # fmt: skip
def test_numbers_that_are_none_are_refused_with_their_rows(differences, message):
    with pytest.raises(InvalidVotes, match=message):
        of_length(differences)


@pytest.mark.parametrize(
    "names, message",
    [
        (["length", "price", "length"], "the feature length is given more than once"),
        (["side"], "a feature cannot be called side"),
        (["left"], "a feature cannot be called left"),
        ("winner", "a feature cannot be called winner"),
        (["threshold"], "cannot be called threshold"),
        ([""], "'' is not a name of a feature"),
        ([3], "3 is not a name of a feature"),
    ],
)
def test_names_that_mean_something_else_are_refused(names, message, tmp_path):
    path = written(tmp_path, TABLE.write_csv())
    for read in (
        feature_names,
        lambda names: Comparisons.from_frame(TABLE, features=names),
        lambda names: read_votes(path, features=names),
        lambda names: read_pairs(path, features=names),
    ):
        with pytest.raises(InvalidSetting, match=message):
            read(names)


def test_features_of_arrays_have_names():
    with pytest.raises(InvalidSetting, match="give features as a mapping"):
        Comparisons.from_arrays(*FOUR, features=[LEFT])


# --- votes go elsewhere --------------------------------------------------------------------


def test_a_part_keeps_the_units_of_the_whole():
    votes = random_votes(0, features=("x", "y"))
    rows = [3, 1, 4, 1]
    part = votes.subset(rows)
    assert np.array_equal(part.features.values, votes.features.values[rows])
    assert part.features.scale is votes.features.scale


@pytest.mark.parametrize("weighted", [False, True])
def test_joined_votes_are_scaled_anew(weighted):
    votes = random_votes(1, features=("x", "y"), weighted=weighted)
    parts = [rebuilt(votes, order=np.arange(60)[some]) for some in (slice(0, 25), slice(25, 60))]
    assert not np.array_equal(parts[0].features.scale, votes.features.scale)
    assert_same(Comparisons.joined(*parts), rebuilt(votes))


def test_only_votes_with_the_same_features_are_joined():
    one, other = (random_votes(2, features=names) for names in (("x", "y"), ("y", "x")))
    joined = Comparisons.joined(one, other)
    assert joined.features.names == ("x", "y")
    assert np.array_equal(joined.features.differences[60:], other.features.differences[:, ::-1])
    with pytest.raises(InvalidVotes, match="all have features or none has"):
        Comparisons.joined(one, random_votes(3))
    with pytest.raises(InvalidVotes, match="all have the same features"):
        Comparisons.joined(one, random_votes(3, features=("x",)))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_the_rows_changes_nothing(weighted):
    # Few users and items, so that votes differ in their features alone.
    votes = random_votes(4, 2, 2, 200, features=("x", "y"), weighted=weighted)
    shuffled = rebuilt(votes, order=np.random.default_rng(0).permutation(200))
    assert Summary.of(shuffled).fingerprint == Summary.of(votes).fingerprint
    assert_same(in_order(shuffled), in_order(votes))
    for split in (
        lambda some: split_within_user(some, 0.3, 7),
        lambda some: folds_within_user(some, 4, 7)[2],
    ):
        for one, other in zip(split(votes), split(shuffled), strict=True):
            assert_same(in_order(one), in_order(other))


def test_the_fingerprint_is_that_of_the_features_too():
    known = {Summary.of(Comparisons.from_arrays(*FOUR)).fingerprint}
    one, other = [3.0, -4.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]
    for features in (
        {"x": one}, {"y": one}, {"x": [3.0, -4.0, 1e-9, 0.0]}, {"x": [-4.0, 3.0, 0.0, 0.0]},
        {"x": one, "y": other}, {"x": other, "y": one}, {"x": np.multiply(one, 2.0)},
    ):  # fmt: skip
        votes = Comparisons.from_arrays(*FOUR, features=features)
        known.add(Summary.of(votes).fingerprint)
    known.add(Summary.of(votes.subset([0, 1, 2, 3])).fingerprint)  # the last ones again
    assert len(known) == 8
    assert Summary.of(votes).units.names == ("x",)


# --- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_features_are_the_same_in_every_format(way, tmp_path):
    expected = Comparisons.from_frame(TABLE, features=["length", "price"])
    path = written(tmp_path, WAYS[way](TABLE), "votes")
    reading = read_votes(path, features=["length", "price"])
    assert_same(reading.votes, expected)
    assert_same(Comparisons.read(path, features=["length", "price"]), expected)
    assert list(map(str, reading.notes)) == [
        "Feature length: from length_left and length_right; one unit is 2.5.",
        "Feature price: from price, left minus right; one unit is 1,500,000,000,000.",
    ]
    assert read_votes(path).votes.features is None and read_votes(path).notes == ()


@pytest.mark.parametrize("way", ["csv", "parquet", "jsonl"])
def test_a_missing_number_in_a_file_is_refused_with_its_row_or_dropped(way, tmp_path):
    table = TABLE.with_columns(pl.Series("length_right", [None, 4.0, 30.0, 7.0]))
    path = written(tmp_path, WAYS[way](table), "votes")
    with pytest.raises(InvalidVotes, match=r"row 1: length_right is missing.*drop_invalid=True"):
        read_votes(path, features=["length"])
    reading = read_votes(path, features=["length"], drop_invalid=True)
    assert len(reading.votes) == 3 and reading.votes.features.differences.tolist() == [
        [-4],
        [0],
        [0],
    ]
    assert str(reading.notes[0]) == "1 row dropped: length_right is missing."


@pytest.mark.parametrize(
    "header, message",
    [
        ("width", "no columns 'length_left' and 'length_right' for the feature length, nor one of "
         "differences, 'length'; found: user, left, right, winner, width"),
        ("length_left", "has a column 'length_left' but no column 'length_right'. Add it, or"),
        ("length_right", "has a column 'length_right' but no column 'length_left'"),
    ],
)  # fmt: skip
def test_a_feature_without_its_columns_is_refused(header, message, tmp_path):
    path = written(tmp_path, f"user,left,right,winner,{header}\nu,a,b,tie,1\n")
    for read in (
        read_votes,
        Comparisons.read,
        lambda path, **o: Comparisons.from_frame(pl.read_csv(path), **o),
    ):
        with pytest.raises(InvalidVotes, match=message):
            read(path, features=["length"])


ROWS = {
    "canonical": ("user,left,right,winner", "u,a,b,left"),
    "evalica": ("worker,left,right,winner", "u,a,b,left"),
    "crowd-kit": ("worker,left,right,label", "u,a,b,a"),
    "arena": ("judge,model_a,model_b,winner", "u,a,b,model_a"),
    "alpaca-eval": ("annotator,generator_1,generator_2,preference", "u,a,b,1"),
    "gavel": ("Annotator ID,Winner ID,Loser ID", "u,a,b"),
    "winner-loser": ("user,winner,loser", "u,a,b"),
    "counts": ("user,item1,item2,win1,win2,tied", "u,a,b,2,1,0"),
    "pwcmp": ("observer,condition_A,condition_B,is_A_selected", "u,a,b,1"),
    "comparative-judgement": ("judge,candidate_chosen,candidate_not_chosen", "u,a,b"),
    "label-studio": ("completed_by,left,right,selected", "u,a,b,left"),
    "potato": ("user_id,left,right,selection", "u,a,b,A"),
    "rapidata": ("user,left,right,votedFor", "u,a,b,a"),
}


@pytest.mark.parametrize("name", [preset.name for preset in PRESETS.values() if preset.sides])
def test_every_layout_of_pairs_carries_features(name, tmp_path):
    header, row = ROWS[name]
    for one, other in PRESETS[name].sides:
        content = f"{header},length_{one},length_{other}\n{row},5,2\n"
        reading = read_votes(written(tmp_path, content), features=["length"])
        assert reading.preset == PRESETS[name].name
        assert set(reading.votes.features.differences.ravel()) == {3.0}
        assert len(reading.votes.features) == len(reading.votes)
    reading = read_votes(written(tmp_path, f"{header},length\n{row},-3\n"), features=["length"])
    assert set(reading.votes.features.differences.ravel()) == {-3.0}


def test_who_won_is_not_who_was_on_the_left(tmp_path):
    path = written(tmp_path, "user,winner,loser,length_left,length_right\nu,a,b,5,2\n")
    with pytest.raises(InvalidVotes, match="no columns 'length_winner' and 'length_loser'"):
        read_votes(path, features=["length"])


def test_pairs_of_rankings_have_no_features(tmp_path):
    header = "judgeID,system1Id,system1rank,system2Id,system2rank,length_left,length_right"
    path = written(tmp_path, f"{header}\nj,a,1,b,2,5,2\n")
    assert len(read_votes(path).votes) == 1
    with pytest.raises(InvalidVotes, match=r"the layout wmt makes pairs of rankings.*features=\["):
        read_votes(path, features=["length"])


def test_a_feature_may_be_called_as_a_column_of_some_layout(tmp_path):
    path = written(tmp_path, "user,left,right,winner,rank3,item3\nu,a,b,tie,2,7\n")
    votes = read_votes(path, features=["rank3", "item3"]).votes
    assert votes.features.differences.tolist() == [[2.0, 7.0]]


# --- folders -------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    written(parts, TABLE[:2].write_csv(), "one.csv")
    written(parts, parquet(TABLE[2:]), "two.parquet")  # where length is 0 everywhere
    written(parts, TABLE[:0].write_csv(), "zero.csv")
    return parts


def test_parts_of_a_folder_have_the_units_of_all(folder, tmp_path):
    whole = read_votes(written(tmp_path, TABLE.write_csv()), features=["length"])
    for reading in (
        read_votes(folder, features=["length"]),
        Parts.of(folder, features=["length"]).read(),
    ):
        assert_same(reading.votes, whole.votes)
        notes = list(map(str, reading.notes))
        assert (
            "one.csv and 1 other part: Feature length: from length_left and length_right; "
            in notes[0]
        )
        assert notes[0].endswith("one unit is 2.5.") and "zero.csv: There are no votes" in notes[1]


def test_a_part_may_be_zero_but_not_all_of_them(folder):
    part = read_part(folder / "two.parquet", {"features": ["length"]})
    assert part.votes.features.scale.tolist() == [1.0]
    (folder / "one.csv").unlink()
    with pytest.raises(InvalidVotes, match="the feature length is 0 in every vote"):
        read_votes(folder, features=["length"])


# --- pairs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_pairs_come_with_their_features(way, tmp_path):
    path = written(tmp_path, WAYS[way](TABLE), "pairs")
    names = ["length", "price", "width"]
    pairs = read_pairs(path, features=names)
    assert pairs.equals(TABLE.drop("winner"))
    scale = np.array([2.0, 0.5, 7.0])
    found = pair_features(pairs, names, scale)
    assert found[:, 0].tolist() == [1.5, -2.0, 0.0, 0.0]
    assert np.array_equal(found[:, 1], TABLE["price"].to_numpy() / 0.5)
    assert not found[:, 2].any()
    assert read_pairs(path).columns == ["user", "left", "right"]


@pytest.mark.parametrize(
    "columns, message",
    [
        ("length_left\nu,a,b,1\n", "has a column 'length_left' but no column 'length_right'"),
        ("length\nu,a,b,1\nu,a,b,\n", "row 2: length is missing"),
        ("length\nu,a,b,1\nu,a,b,long\n", "row 2: length 'long' is not a number"),
        ("length\nu,a,b,1\nu,a,b,inf\n", "row 2: length inf is not a finite number"),
    ],
)
def test_bad_features_of_pairs_are_refused_with_their_row(columns, message, tmp_path):
    content = f"user,left,right,{columns}"
    with pytest.raises(InvalidVotes, match=message):
        read_pairs(written(tmp_path, content), features=["length"])
    frame = pl.read_csv(io.BytesIO(content.encode()))
    with pytest.raises(InvalidVotes, match=message):
        pair_features(frame, ["length"], np.ones(1))


def test_pairs_without_features_are_alike_on_both_sides():
    pairs = TABLE.select("user", "left", "right")
    for given_pairs in (pairs, pairs.to_numpy(), pairs.rows(), Comparisons.from_arrays(*FOUR)):
        assert pair_features(given_pairs, ["length"], np.ones(1)) is None


def test_votes_are_pairs_with_the_features_that_they_have():
    votes = random_votes(5, features=("x", "y"))
    names, scale = votes.features.units
    assert np.array_equal(pair_features(votes, names, scale), votes.features.values)
    found = pair_features(votes, ["y", "z"], np.ones(2))
    assert np.array_equal(found[:, 0], votes.features.differences[:, 1]) and not found[:, 1].any()


# --- notes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit, told", [(123.4321, "123.4"), (0.00012, "0.00012"), (45678.9, "45,679"), (1.0, "1")]
)
def test_a_note_tells_what_one_unit_is(unit, told):
    note = FeatureTaken("length", ("length",), unit)
    assert str(note) == f"Feature length: from length, left minus right; one unit is {told}."


def test_what_is_offered_is_at_hand():
    features = Features.of(["x"], [[3.0], [4.0]], np.array([1.0, 3.0]))
    assert features.units == Units(("x",), features.scale)
    assert features.scale[0] == pytest.approx(math.sqrt((9 + 3 * 16) / 4))
