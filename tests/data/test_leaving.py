"""Votes without some users and items: from Python, by name and from files."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.leaving import leave_out, read_ids
from isplitlbi.data.readers import read_votes
from votes import assert_same, from_rows
from votes import rows as vote_rows

TABLE = pl.DataFrame(
    {
        "user": ["ann", "ann", "bob", "eve", "eve"],
        "left": ["tea", "milk", "milk", "tea", "rum"],
        "right": ["milk", "tea", "rum", "milk", "tea"],
        "winner": ["left", "tie", "tie", "right", "right"],
        "weight": [1.0, 2.0, 0.5, 1.0, 3.0],
        "group": ["g1", "g1", "g2", "g3", "g4"],
        "when": [5, 4, 3, 2, 1],
        "length": [1.0, -2.0, 3.0, 4.0, 0.5],
    }
)


def read(frame):
    return Comparisons.from_frame(frame, time="when", features=["length"])


@pytest.mark.parametrize(
    "users, items", [(["ann"], []), ([], ["rum"]), (["ann"], ["rum"]), (["eve", "bob"], [])]
)
def test_what_remains_is_what_a_file_without_such_rows_gives(users, items):
    left = pl.col("left").is_in(items) | pl.col("right").is_in(items)
    rest = TABLE.filter(~(pl.col("user").is_in(users) | left))
    found = read(TABLE).without(users=users, items=items)
    assert_same(found, read(rest))
    assert found.whole is None and not set(found.users) & set(users)
    assert found.groups.tolist() == sorted(rest["group"].unique())
    with pytest.raises(ValueError, match="read-only"):
        found.user[0] = 1


@given(vote_rows, st.data())
def test_votes_without_users_are_those_of_the_others(rows, data):
    votes = from_rows(rows)
    users = data.draw(st.lists(st.sampled_from(votes.users.tolist()), unique=True))
    kept = [row for row in rows if row[0] not in users]
    if not kept:
        with pytest.raises(InvalidVotes, match="no votes are left"):
            votes.without(users=users)
    else:
        assert_same(votes.without(users=users), from_rows(kept))


def test_one_id_may_be_given_alone_and_nothing_leaves_all():
    votes = read(TABLE)
    assert_same(votes.without(users="ann"), votes.without(users=np.array(["ann"], dtype=object)))
    assert votes.without() is votes
    numbers = Comparisons.from_arrays([1, 2], [5, 5], [6, 6], [1, 0])
    assert numbers.without(users=2).users.tolist() == [1]


@pytest.mark.parametrize("what, label, near", [("users", "anne", "ann"), ("items", "ann", "rum")])
def test_an_unknown_id_is_an_error_that_names_the_nearest(what, label, near):
    message = f"{what[:-1]} '{label}' is not among the 3 {what} of these votes; the nearest is "
    with pytest.raises(InvalidVotes, match=message):
        read(TABLE).without(**{what: [label]})


def test_nobody_is_left_where_all_are_left_out():
    with pytest.raises(InvalidVotes, match="no votes are left without these users and items"):
        read(TABLE).without(items=["tea", "milk"])


# --- names and files -----------------------------------------------------------------------


@pytest.fixture
def reading():
    return read_votes(TABLE.drop("group", "weight"))


def written(folder, text, name="bad.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def told(reading):
    return [str(note) for note in reading.notes]


def test_names_and_files_are_left_out_together_and_counted(reading, tmp_path):
    file = written(tmp_path, 'user,kind,why\nann,careless,"so, so"\nann,reversed,x\n')
    found = leave_out(reading, [file, "rum"])
    assert_same(found.votes, reading.votes.without(users=["ann"], items=["rum"]))
    assert told(found) == [
        "Left out: 4 votes of 1 user and 1 item. "
        "Without these votes, 1 other user had no votes left."
    ]
    items = leave_out(reading, [written(tmp_path, "tier,item\n1,rum\n")])
    assert items.votes.items.tolist() == ["milk", "tea"]
    assert told(leave_out(reading, ["eve"])) == ["Left out: 2 votes of 1 user."]


def test_a_file_that_names_nobody_leaves_all(reading, tmp_path):
    found = leave_out(reading, [written(tmp_path, "user,kind\n")])
    assert found.votes is reading.votes
    assert told(found) == ["Nothing was left out: no user and no item is named."]


def test_a_file_may_be_of_any_format(tmp_path):
    pl.DataFrame({"Item": [3, 4, 3]}).write_parquet(tmp_path / "bad.parquet")
    kind, ids = read_ids(tmp_path / "bad.parquet")
    assert (kind, ids.to_list()) == ("item", ["3", "4"])


@pytest.mark.parametrize(
    "content, message",
    [
        ("id\nann\n", "bad.csv: it has no column user, and none item; found: id"),
        ("user,item\nann,tea\n", "bad.csv: it has a column user and a column item"),
        ('user,kind\nann,x\n"",y\n', "bad.csv, row 2: user is missing"),
        ("user\nanna\n", "bad.csv: user 'anna' is not among the 3 users of these votes; the near"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(content, message, reading, tmp_path):
    with pytest.raises(InvalidVotes, match=message):
        leave_out(reading, [written(tmp_path, content)])


def test_a_name_that_is_nothing_or_two_things_is_refused(reading, tmp_path, monkeypatch):
    message = "'anne' is neither a file, nor a user, nor an item of these votes; the nearest is 'a"
    with pytest.raises(InvalidVotes, match=message):
        leave_out(reading, ["anne"])
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "user\nann\n", "eve")
    with pytest.raises(InvalidVotes, match="'eve' is a file and a user, so it is not clear"):
        leave_out(reading, ["eve"])
    both = read_votes(TABLE.with_columns(user=pl.lit("tea")))
    with pytest.raises(InvalidVotes, match="'tea' is a user and an item"):
        leave_out(both, ["tea"])
