"""Votes of people, some at a time."""

import io
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.data import people as module
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.options import Options
from isplitlbi.data.people import stream_people
from isplitlbi.errors import InvalidRows, InvalidVotes

HEADER = "user,left,right,winner\n"


def rows_of(votes):
    columns = votes.users[votes.user], votes.items[votes.left], votes.items[votes.right]
    return list(zip(*(c.tolist() for c in columns), votes.outcome.tolist(), strict=True))


def written(tmp_path, *users, name="votes.csv"):
    """Write two votes for every user named, one user after another."""
    lines = [f"{user},a,b,left\n{user},b,c,tie\n" for user in users]
    file = tmp_path / name
    file.write_text(HEADER + "".join(lines))
    return file


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(20, 200))
def test_everybody_is_there_once_with_all_their_votes(tmp_path_factory, n_votes, block):
    file = tmp_path_factory.mktemp("people") / "votes.csv"
    lines = [
        f"u{user:02},{'ab'[k % 2]},c,{('left', 'tie', 'right')[k % 3]}\n"
        for user, n in enumerate(n_votes)
        for k in range(n)
    ]
    file.write_text(HEADER + "".join(lines))
    whole = Comparisons.read(file)
    found = list(stream_people(file, block=block))
    users = [user for people in found for user in people.users]
    assert users == [f"u{user:02}" for user in range(len(n_votes))]  # as in the file
    assert sorted(row for people in found for row in rows_of(people.votes)) == sorted(
        rows_of(whole)
    )
    for people in found:
        assert set(people.users) == set(people.votes.users.tolist())


def test_in_a_small_file_votes_may_stand_anywhere(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text(HEADER + "b,x,y,left\na,x,y,tie\nb,y,z,right\na,y,z,left\n")
    (ended, last) = stream_people(file)
    assert ended.users + last.users == ["b", "a"]
    assert len(ended.votes) == len(last.votes) == 2


def test_people_come_not_too_many_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "USERS_AT_ONCE", 2)
    found = list(stream_people(written(tmp_path, "d", "b", "c", "a", "e")))
    assert [people.users for people in found] == [["d", "b"], ["c", "a"], ["e"]]


def test_who_votes_again_after_others_is_refused_in_a_large_file(tmp_path):
    file = written(tmp_path, "ann", "bob", "cid", "dan", "ann")
    with pytest.raises(InvalidVotes, match=r"from row \d+ on: user 'ann' votes again.*Sort"):
        list(stream_people(file, block=40))


def test_a_bad_row_is_named_by_its_number_in_the_file(tmp_path):
    file = written(tmp_path, *"abcdefgh")
    file.write_text(file.read_text() + "i,a,b,nobody\n")
    with pytest.raises(InvalidRows, match="row 17"):
        list(stream_people(file, block=60))
    found = list(stream_people(file, Options(drop_invalid=True), block=60))
    assert [user for people in found for user in people.users] == list("abcdefgh")
    assert "1 row" in " ".join(map(str, found[-1].notes))


@pytest.mark.parametrize("content", [HEADER, "", "\n\n"])
def test_a_file_without_votes_is_refused(tmp_path, content):
    file = tmp_path / "votes.csv"
    file.write_text(content)
    with pytest.raises(InvalidVotes, match=r"empty|no votes"):
        list(stream_people(file))


def test_they_come_from_standard_input_and_from_parquet(tmp_path, monkeypatch):
    file = written(tmp_path, "ann", "bob")
    table = pl.read_csv(file)
    table.write_parquet(tmp_path / "votes.parquet")
    (expected,) = ([p.users for p in stream_people(file)],)
    assert [p.users for p in stream_people(tmp_path / "votes.parquet")] == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert [p.users for p in stream_people("-")] == expected


def test_other_layouts_and_counts_are_read_as_elsewhere(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("worker,left,right,label,count\nw1,a,b,a,2\nw2,a,b,b,1\n")
    found = list(stream_people(file))
    assert [p.users for p in found] == [["w1"], ["w2"]]
    assert [len(p.votes) for p in found] == [2, 1]
    assert np.array_equal(found[0].votes.outcome, [1, 1])
