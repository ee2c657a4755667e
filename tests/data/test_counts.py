"""Rows that stand for several votes: they are these votes, whatever is told of them besides."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data import counts as counting
from isplitlbi.data.readers import Parts, read_votes
from isplitlbi.data.splits import in_order
from isplitlbi.data.summary import Summary
from isplitlbi.errors import InvalidRows, InvalidSetting
from votes import as_tuples, assert_same, multiset

HEADER = "user,left,right,winner,count\n"
ROWS = HEADER + "ann,tea,milk,left,3\nann,milk,tea,tie,1\nbob,tea,milk,right,2.0\n"
STAND_FOR = "By 'count', the rows stand for 6 votes."


def written(folder, content, name="votes.csv"):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def told(reading):
    return [str(note) for note in reading.notes]


# --- they are the same votes -----------------------------------------------------------------

counted_rows = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "eve"]),
        st.sampled_from([("tea", "milk"), ("milk", "tea"), ("tea", "rum")]),
        st.sampled_from([1, 0, -1]),
        st.integers(0, 4),
        st.sampled_from(["g1", "g2"]),
        st.sampled_from([0.5, 1.0, 2.0]),
        st.integers(0, 3),
        st.sampled_from([-1.0, 0.1, 3.0]),
    ),
    min_size=1,
    max_size=12,
).filter(lambda rows: any(row[3] for row in rows))


@given(counted_rows, st.sets(st.sampled_from(["weight", "group", "time", "duration", "x"])))
def test_counted_rows_are_the_rows_written_out(rows, told_besides):
    user, pair, outcome, count, group, weight, time, x = zip(*rows, strict=True)
    columns = {
        "user": user, "left": [a for a, _ in pair], "right": [b for _, b in pair],
        "outcome": outcome,
    }  # fmt: skip
    more = {"weight": weight, "group": group, "time": time, "duration": time}
    columns |= {name: column for name, column in more.items() if name in told_besides}
    features = {"x": x} if "x" in told_besides else {}

    def out(column):
        return [value for value, times in zip(column, count, strict=True) for _ in range(times)]

    expected = Comparisons.from_arrays(
        **{name: out(column) for name, column in columns.items()},
        features={name: out(column) for name, column in features.items()},
    )
    found = Comparisons.from_arrays(**columns, count=count, features=features)
    assert_same(found, expected)
    assert Summary.of(found).fingerprint == Summary.of(expected).fingerprint


def test_a_column_count_is_taken_for_counts_and_that_is_told(tmp_path):
    reading = read_votes(written(tmp_path, ROWS))
    assert told(reading) == [STAND_FOR]
    assert reading.votes.weight is None
    assert [row[:4] for row in as_tuples(reading.votes)] == [
        *[("ann", "tea", "milk", 1)] * 3,
        ("ann", "milk", "tea", 0),
        *[("bob", "tea", "milk", -1)] * 2,
    ]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float64, pl.String])
def test_counts_are_the_same_in_files_and_frames_of_every_type(dtype, tmp_path):
    expected = read_votes(written(tmp_path, ROWS)).votes
    frame = pl.read_csv(tmp_path / "votes.csv").with_columns(pl.col("count").cast(dtype))
    frame.write_parquet(tmp_path / "votes.parquet")
    frame.write_ndjson(tmp_path / "votes.jsonl")
    renamed = frame.rename({"count": "n"})
    for votes in (
        Comparisons.from_frame(frame),
        Comparisons.from_frame(renamed, count="n"),
        Comparisons.from_frame(renamed.to_pandas(), count="n"),
        Comparisons.read(tmp_path / "votes.parquet"),
        Comparisons.read(tmp_path / "votes.jsonl"),
    ):
        assert_same(votes, expected)


def test_three_ways_to_write_votes_are_one(tmp_path):
    """Rows, rows with a count, and the layout counts."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "user": [f"u{k}" for k in rng.integers(5, size=300)],
            "left": [f"i{k}" for k in rng.integers(3, size=300)],
            "right": [f"j{k}" for k in rng.integers(3, size=300)],
            "winner": rng.choice(["left", "tie", "right"], size=300).tolist(),
        }
    )
    frame.write_csv(tmp_path / "rows.csv")
    by_row = frame.group_by(frame.columns).agg(count=pl.len())
    by_row.sample(fraction=1.0, shuffle=True, seed=1).write_csv(tmp_path / "count.csv")
    outcomes = {"left": "win1", "right": "win2", "tie": "tied"}
    parts = {
        outcomes[word]: by_row.filter(winner=word).drop("winner").rename({"count": outcomes[word]})
        for word in outcomes
    }
    table = frame.select("user", "left", "right").unique()
    for part in parts.values():
        table = table.join(part, on=["user", "left", "right"], how="left")
    table = table.rename({"left": "item1", "right": "item2"})
    table.fill_null(0).write_csv(tmp_path / "counts.csv")
    found = [read_votes(tmp_path / f"{name}.csv") for name in ("rows", "count", "counts")]
    assert [reading.preset for reading in found] == ["canonical", "canonical", "counts"]
    for reading in found[1:]:
        assert_same(in_order(reading.votes), in_order(found[0].votes))
        assert Summary.of(reading.votes).fingerprint == Summary.of(found[0].votes).fingerprint


def test_a_ranking_that_is_counted_is_that_many_rankings(tmp_path):
    header = "judgeID,system1Id,system1rank,system2Id,system2rank,system3Id,system3rank"
    one, other = "j,a,1,b,2,c,3", "j,c,1,b,2,a,2"
    rows = "\n".join([header, one, one, other])
    counted = f"{header},count\n{one},2\n{other},0\n{other},1\n"
    expected, found = (read_votes(written(tmp_path, content)).votes for content in (rows, counted))
    assert expected.n_votes == 9 and len(expected.groups) == 3
    assert multiset(found) == multiset(expected)
    assert Summary.of(found).fingerprint == Summary.of(expected).fingerprint


def test_both_bad_votes_are_counted_as_votes(tmp_path):
    header = "judge,model_a,model_b,winner,count\n"
    path = written(tmp_path, header + "j,x,y,both_bad,5\nj,x,y,model_a,2\nj,y,x,oops,1\n")
    reading = read_votes(path, drop_invalid=True)
    assert reading.votes.outcome.tolist() == [0] * 5 + [1] * 2
    assert told(reading)[0] == "5 both-bad votes counted as ties."
    reading = read_votes(path, drop_invalid=True, both_bad="drop")
    assert reading.votes.outcome.tolist() == [1] * 2
    assert told(reading)[0] == "5 both-bad votes dropped."
    with pytest.raises(InvalidVotes, match="row 3: winner 'oops' is not one of"):
        read_votes(path, both_bad="drop")


def test_all_votes_of_a_row_have_its_time(tmp_path):
    path = written(tmp_path, ROWS.replace("count", "count,when").replace("\n", ",7\n"))
    content = path.read_text().replace("when,7", "when").replace("2.0,7", "2.0,9")
    votes = read_votes(written(tmp_path, content), time="when").votes
    assert votes.time.tolist() == [7, 7, 7, 7, 9, 9]
    votes = read_votes(written(tmp_path, ROWS), in_order=True).votes
    assert votes.time.tolist() == [1, 1, 1, 2, 3, 3]
    votes = read_votes(written(tmp_path, ROWS.replace("tie,1", "tie,0")), in_order=True).votes
    assert votes.time.tolist() == [1, 1, 1, 3, 3]


def test_parts_of_a_folder_may_be_counted_or_not(tmp_path):
    folder = tmp_path / "votes"
    folder.mkdir()
    written(folder, ROWS, "part-0.csv")
    written(folder, HEADER.replace(",count", "") + "eve,tea,milk,tie\n", "part-1.csv")
    written(folder, HEADER + "eve,tea,rum,tie,4\n", "part-2.csv")
    written(folder, HEADER + "eve,tea,gin,tie,0\n", "part-3.csv")
    reading = Parts.of(folder).read()
    assert len(reading.votes) == 11 and "gin" not in reading.votes.items
    assert told(reading) == [
        "part-0.csv and 1 other part: By 'count', the rows stand for 10 votes.",
        "part-3.csv: 1 row dropped: count is 0.",
    ]


def test_a_feature_may_be_0_in_all_counted_votes_of_a_part(tmp_path):
    folder = tmp_path / "votes"
    folder.mkdir()
    header = "user,left,right,winner,count,x\n"
    written(folder, header + "ann,tea,milk,left,3,0\n", "part-0.csv")
    with pytest.raises(InvalidVotes, match="the feature x is 0 in every vote"):
        read_votes(folder / "part-0.csv", features=["x"])
    written(folder, header + "ann,tea,milk,left,1,4\n", "part-1.csv")
    votes = read_votes(folder, features=["x"]).votes
    assert votes.features.scale.tolist() == [2.0]  # the root of a fourth of 16


# --- what is no count ------------------------------------------------------------------------


def test_rows_of_count_0_are_dropped_and_told(tmp_path):
    reading = read_votes(written(tmp_path, ROWS + "eve,,rum,what,0\n"))
    assert told(reading) == ["1 row dropped: count is 0.", STAND_FOR]
    assert "eve" not in reading.votes.users
    with pytest.raises(InvalidVotes, match=r"no votes are left\. 1 row dropped: count is 0"):
        read_votes(written(tmp_path, HEADER + "eve,tea,rum,tie,0\n"))
    with pytest.raises(InvalidVotes, match="there are no votes in it"):
        Comparisons.from_arrays(["eve"], ["tea"], ["rum"], [1], count=[0])


BAD = {
    "-1": "count -1 is not a whole number from 0 on. Correct it, or use weight=... for a column",
    "0.5": "count 0.5 is not a whole number from 0 on",
    "inf": "count inf is not a whole number from 0 on",
    "nan": "count nan is not a whole number from 0 on",
    "": "count is missing",
    "many": "count 'many' is not a number",
}


@pytest.mark.parametrize("count", BAD)
def test_what_is_no_count_is_refused_with_the_row_of_the_file(count, tmp_path):
    path = written(tmp_path, ROWS + f"eve,tea,milk,left,0\neve,tea,milk,left,{count}\n")
    with pytest.raises(InvalidRows) as caught:
        read_votes(path)
    assert str(caught.value).startswith(f"votes.csv, row 5: {BAD[count]}")
    reading = read_votes(path, drop_invalid=True)
    assert len(reading.votes) == 6
    assert told(reading)[1].startswith("1 row dropped: count ")


def test_other_errors_keep_the_numbers_of_the_rows(tmp_path):
    rows = "eve,tea,milk,left,0\neve,tea,tea,left,2\n"
    with pytest.raises(InvalidVotes, match="row 5: item 'tea' is compared with itself"):
        read_votes(written(tmp_path, ROWS + rows))
    with pytest.raises(InvalidVotes, match="study, row 2: item 'tea' is compared with itself"):
        Comparisons.from_arrays(
            ["eve"] * 2, ["tea"] * 2, ["milk", "tea"], [1, 1], count=[0, 2], source="study"
        )
    with pytest.raises(InvalidVotes, match="'count' has 1 rows, 'user' has 2"):
        Comparisons.from_arrays(["eve"] * 2, ["tea"] * 2, ["milk"] * 2, [1, 1], count=[1])
    with pytest.raises(InvalidVotes, match="count holds values of type Date"):
        day = pl.Series(["2024-01-31"]).str.to_date()
        Comparisons.from_arrays(["eve"], ["tea"], ["milk"], [1], count=day)


@pytest.mark.parametrize("rows", [["3e9"], ["1e300"], ["1e308", "1e308"], [str(2**31)]])
@pytest.mark.parametrize("layout", ["canonical", "wmt", "counts"])
def test_more_votes_than_can_be_held_are_refused_before_they_are_made(rows, layout, tmp_path):
    content = {
        "canonical": (HEADER, "eve,tea,milk,left,{}"),
        "wmt": ("judgeID,system1Id,system1rank,system2Id,system2rank,system3Id,system3rank,count\n",
                "j,a,1,b,2,c,3,{}"),
        "counts": ("user,item1,item2,win1,win2\n", "eve,tea,milk,0,{}"),
    }[layout]  # fmt: skip
    lines = "\n".join(content[1].format(count) for count in rows)
    with pytest.raises(InvalidVotes, match="votes, which is more than can be held here"):
        read_votes(written(tmp_path, content[0] + lines), drop_invalid=True)


def test_more_votes_than_there_is_memory_for_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "_memory", lambda: 200.0)
    with pytest.raises(InvalidVotes, match="its rows stand for 6 votes, which is more than can"):
        read_votes(written(tmp_path, ROWS))


def test_a_feature_cannot_be_called_count(tmp_path):
    with pytest.raises(InvalidSetting, match="a feature cannot be called count"):
        read_votes(written(tmp_path, ROWS), features=["count"])
