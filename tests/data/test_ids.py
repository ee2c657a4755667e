"""Ids that votes have of their own."""

import logging

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.ids import stand_before
from isplitlbi.data.layout import tally
from isplitlbi.data.readers import Parts, read_votes
from isplitlbi.data.summary import Summary
from isplitlbi.errors import InvalidVotes
from votes import random_votes

HEADER = "vote,user,left,right,winner\n"
MONDAY = HEADER + "7,ann,tea,milk,left\n007,bob,milk,tea,tie\n"


def votes_of(ids, **columns):
    n = len(ids)
    rng = np.random.default_rng(0)
    users = rng.choice(["u", "v", "w"], n)
    return Comparisons.from_arrays(
        users, ["a"] * n, rng.choice(["b", "c"], n), rng.integers(-1, 2, n), id=ids, **columns
    )


def ids_of(votes):
    return votes.id.to_list()


def written(folder, content, name="votes.csv"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def told(reading):
    return [str(note) for note in reading.notes]


# --- with the votes -----------------------------------------------------------------------


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.data())
def test_ids_stay_with_their_votes(ids, data):
    votes = votes_of(ids)
    rows = data.draw(st.lists(st.sampled_from(range(len(ids))), min_size=1, max_size=9))
    mask = np.isin(np.arange(len(ids)), rows)
    assert (
        ids_of(votes.subset(rows)) == ids_of(votes.alone(np.array(rows))) == [ids[r] for r in rows]
    )
    assert (
        ids_of(votes.subset(mask)) == ids_of(votes.alone(mask)) == votes.id.filter(mask).to_list()
    )
    assert ids_of(Comparisons.joined(votes, votes.subset(rows))) == ids + [ids[r] for r in rows]
    renamed = votes.with_items([f"new {item}" for item in votes.items])
    assert ids_of(renamed) == ids_of(votes.changed(weight=np.ones(len(ids)))) == ids


def test_votes_without_ids_stay_without_beside_others():
    with_ids, without = votes_of(["x", "y"]), votes_of([1]).changed(id=None)
    assert ids_of(Comparisons.joined(with_ids, without)) == ["x", "y", None]
    assert ids_of(Comparisons.joined(without, votes_of([3]))) == [None, 3]
    assert Comparisons.joined(without, without).id is None


def test_text_and_integers_are_not_joined():
    with pytest.raises(InvalidVotes, match="such as 'x' and 3"):
        Comparisons.joined(votes_of(["x"]), votes_of([3]))


def test_ids_change_neither_the_fingerprint_nor_the_counts():
    votes = random_votes(5)
    named = votes.changed(id=pl.Series("id", range(len(votes))))
    assert Summary.of(named).fingerprint == Summary.of(votes).fingerprint
    for one, other in zip(tally(named), tally(votes), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["x", None], "row 2: id is missing"),
        (["x", ""], "row 2: id is missing"),
        ([0.5, 1.5], "ids are strings or integers"),
        ([True, False], "ids are strings or integers"),
        (np.array([1, 2**64 - 1], dtype=np.uint64), "beyond 64-bit integers"),
        (["x"], "'id' has 1 rows"),
    ],
)
def test_what_is_no_id_is_refused(ids, said):
    with pytest.raises(InvalidVotes, match=said):
        Comparisons.from_arrays(["u", "v"], ["a", "a"], ["b", "b"], [1, 0], id=ids)


def test_a_row_of_several_votes_cannot_have_one_id():
    columns = ["u", "v", "w"], ["a"] * 3, ["b"] * 3, [1, 0, -1]
    with pytest.raises(InvalidVotes, match="row 2: count is 3, and so many votes cannot all have"):
        Comparisons.from_arrays(*columns, id=["x", "y", "z"], count=[1, 3, 0])
    votes = Comparisons.from_arrays(*columns, id=["x", "y", "z"], count=[1, 0, 1])
    assert ids_of(votes) == ["x", "z"]


def test_only_an_id_that_stands_before_is_there_again():
    ids = pl.Series(["x", None, "y", "x", None, "x"])
    assert stand_before(ids).tolist() == [False, False, False, True, False, True]


# --- reading ------------------------------------------------------------------------------


def test_ids_are_read_where_they_are_named_and_only_there(tmp_path):
    file = written(tmp_path, MONDAY.replace("vote,", "id,"))
    assert read_votes(file).votes.id is None
    assert ids_of(read_votes(file, id="id").votes) == ["7", "007"]
    assert ids_of(Comparisons.from_frame(pl.read_csv(file), id="id")) == [7, 7]
    with pytest.raises(InvalidVotes, match="no column 'vote' for the id"):
        read_votes(file, id="vote")


def test_an_id_that_comes_twice_in_a_file_is_told_with_its_row(tmp_path, caplog):
    rows = "7,ann,tea,rum,tie\n8,ann,tea,rum,oops\n007,bob,tea,rum,tie\n"
    file = written(tmp_path, MONDAY + rows)
    reading = read_votes(file, id="vote", drop_invalid=True)
    assert ids_of(reading.votes) == ["7", "007", "7", "007"]
    said = "2 votes have the id of a vote before them, the first in row 3. They are kept."
    assert told(reading)[-1] == said
    with caplog.at_level(logging.WARNING, "isplitlbi"):
        Comparisons.read(file, id="vote", drop_invalid=True)
    assert said in caplog.text


def test_the_row_is_that_of_the_file_whatever_is_left_out(tmp_path):
    rows = ["x,ann,0,1", "x,ann,1,2", "y,bob,1,9", "x,cyd,0,5", "y,cyd,1,5", "x,cyd,1,5"]
    file = written(tmp_path, "vote,user,count,t,left,right,winner\n" + "".join(
        f"{row},tea,milk,tie\n" for row in rows))  # fmt: skip
    reading = read_votes(file, id="vote", time="t", until=8)
    assert ids_of(reading.votes) == ["x", "y", "x"]
    assert "1 vote has the id of a vote before it, in row 6. It is kept." in told(reading)


def test_ids_of_several_files_are_compared(tmp_path):
    first = written(tmp_path, MONDAY, "folder/a.csv")
    second = written(tmp_path, HEADER + "7,eve,tea,rum,tie\n9,eve,tea,rum,tie\n", "folder/b.csv")
    said = "1 vote has the id of a vote in another file. It is kept."
    for source in ([first, second], tmp_path / "folder", Parts.of(tmp_path / "folder", id="vote")):
        is_parts = isinstance(source, Parts)
        reading = source.read() if is_parts else read_votes(source, id="vote")
        assert ids_of(reading.votes) == ["7", "007", "7", "9"]
        assert told(reading)[-1 if source != [first, second] else 2] == said


def test_a_file_without_ids_stays_without_beside_others(tmp_path):
    first = written(tmp_path, MONDAY, "a.csv")
    second = written(tmp_path, "user,left,right,winner\neve,tea,rum,tie\n", "b.csv")
    reading = read_votes([first, second], id="vote")
    assert ids_of(reading.votes) == ["7", "007", None]
    assert any("b.csv: There is no column 'vote' for the id" in note for note in told(reading))


@pytest.mark.parametrize(
    "content",
    [
        "n,user,item1,item2,win1,win2\n1,ann,tea,milk,1,1\n",
        "n,judgeID,system1Id,system1rank,system2Id,system2rank\n1,ann,tea,1,milk,2\n",
    ],
)
def test_layouts_whose_rows_are_several_votes_have_no_ids(tmp_path, content):
    with pytest.raises(InvalidVotes, match="has no column for the id"):
        read_votes(written(tmp_path, content), id="n")
