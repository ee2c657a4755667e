"""Old votes and new ones together."""

import logging

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.merging import repeated_votes, with_new_votes
from isplitlbi.errors import InvalidVotes

ROWS = st.lists(
    st.tuples(
        st.sampled_from("uv"), st.sampled_from(["ab", "ba", "ac"]), st.sampled_from([1, 0, -1])
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def votes_of(rows, **columns):
    user, pair, outcome = zip(*rows, strict=True)
    left, right = zip(*pair, strict=True)
    return Comparisons.from_arrays(user, left, right, outcome, **columns)


@given(ROWS, ROWS)
def test_every_old_vote_accounts_for_one_new_vote(old, new):
    together = Comparisons.joined(votes_of(old), votes_of(new))
    found = repeated_votes(together, len(old))
    assert not found[: len(old)].any()
    for row in set(new):
        n_repeated = sum(one == row for one, is_found in zip(new, found[len(old) :], strict=True)
                         if is_found)  # fmt: skip
        assert n_repeated == min(old.count(row), new.count(row))


def test_a_vote_at_another_time_is_another_vote():
    row = [("u", "ab", 1)]
    monday, tuesday = (votes_of(row, time=[when]) for when in ("2026-01-05", "2026-01-06"))
    assert len(with_new_votes(monday, tuesday, "drop")) == 2
    assert repeated_votes(Comparisons.joined(monday, monday), 1).tolist() == [False, True]


def test_repeated_votes_are_told_and_kept(caplog):
    old, new = votes_of([("u", "ab", 1)]), votes_of([("u", "ab", 1), ("w", "ad", 0)])
    with caplog.at_level(logging.WARNING, "isplitlbi"):
        assert len(with_new_votes(old, new)) == 3
    assert "1 of 2 new votes is the same as votes that the model has already" in caplog.text
    assert "kept" in caplog.text


def test_repeated_votes_are_left_out_where_that_is_asked_for(caplog):
    old, new = votes_of([("u", "ab", 1)]), votes_of([("u", "ab", 1), ("w", "ad", 0)])
    with caplog.at_level(logging.WARNING, "isplitlbi"):
        together = with_new_votes(old, new, "drop")
    assert np.array_equal(together.users, ["u", "w"])
    assert len(together) == 2
    assert "left out" in caplog.text


def test_nothing_new_is_an_error():
    votes = votes_of([("u", "ab", 1), ("u", "ac", 0)])
    with pytest.raises(InvalidVotes, match="nothing new"):
        with_new_votes(votes, votes, "drop")


def test_nothing_is_said_of_votes_that_are_all_new(caplog):
    with caplog.at_level(logging.WARNING, "isplitlbi"):
        with_new_votes(votes_of([("u", "ab", 1)]), votes_of([("u", "ab", -1)]))
    assert not caplog.text


# --- votes that have ids -------------------------------------------------------------------

IDS = st.one_of(st.none(), st.integers(0, 4))


def with_ids(rows, ids):
    ids = ids if any(one is not None for one in ids) else None
    votes = votes_of(rows)
    return votes if ids is None else votes.changed(id=pl.Series("id", ids, pl.Int64))


@given(ROWS, ROWS, st.data())
def test_ids_alone_decide_where_both_votes_have_one(old, new, data):
    old_ids, new_ids = (
        data.draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows)))
        for rows in (old, new)
    )
    together = Comparisons.joined(with_ids(old, old_ids), with_ids(new, new_ids))
    found = repeated_votes(together, len(old)).tolist()
    assert found == [False] * len(old) + [one in old_ids for one in new_ids]


@given(ROWS, ROWS, st.data())
def test_the_same_row_decides_where_one_of_two_votes_has_no_id(old, new, data):
    old_ids, new_ids = (
        data.draw(st.lists(IDS, min_size=len(rows), max_size=len(rows))) for rows in (old, new)
    )
    together = Comparisons.joined(with_ids(old, old_ids), with_ids(new, new_ids))
    found = repeated_votes(together, len(old))[len(old) :].tolist()
    known = {one for one in old_ids if one is not None}
    assert all(is_found for one, is_found in zip(new_ids, found, strict=True) if one in known)
    for row in set(new):
        # Old votes by their rows: those with an id that no new vote has, and those without.
        theirs = [one for one, each in zip(old_ids, old, strict=True) if each == row]
        free = sum(one is not None and one not in new_ids for one in theirs)
        n_without = new_count(new, new_ids, row, lambda one: one is None)
        n_other = new_count(new, new_ids, row, lambda one: one is not None and one not in known)
        by_free = min(free, n_without)
        expected = by_free + min(theirs.count(None), n_without - by_free + n_other)
        n_found = sum(is_found for is_found, each, one in zip(found, new, new_ids, strict=True)
                      if each == row and one not in known)  # fmt: skip
        assert n_found == expected


def new_count(rows, ids, row, chosen):
    return sum(each == row and chosen(one) for each, one in zip(rows, ids, strict=True))


OLD = [("u", "ab", 1), ("v", "ab", 0)]
NEW = [("u", "ab", 1), ("v", "ab", 1), ("u", "ab", 1)]


def test_a_vote_with_an_old_id_that_says_something_else_is_told_apart(caplog):
    old, new = votes_of(OLD, id=["x", "y"]), votes_of(NEW, id=["x", "y", "z"])
    with caplog.at_level(logging.WARNING, "isplitlbi"):
        kept = with_new_votes(old, new)
    assert [record.message for record in caplog.records] == [
        "1 of 3 new votes is the same as votes that the model has already. "
        "It is kept and counts again.",
        "1 new vote has the id of an old vote and says something else; it is kept beside it.",
    ]
    assert kept.id.to_list() == ["x", "y", "x", "y", "z"]


def test_the_old_vote_stays_where_repeated_votes_are_dropped(caplog):
    old, new = votes_of(OLD, id=["x", "y"]), votes_of(NEW, id=["y", "x", "z"])
    with caplog.at_level(logging.WARNING, "isplitlbi"):
        together = with_new_votes(old, new, "drop")
    assert together.id.to_list() == ["x", "y", "z"]
    assert together.outcome.tolist() == [1, 0, 1]
    assert [record.message for record in caplog.records] == [
        "2 new votes have the id of an old vote and say something else; "
        "they are left out, and the old votes stay.",
    ]
    with pytest.raises(InvalidVotes, match="nothing new"):
        with_new_votes(old, new.alone(np.array([0, 1])), "drop")


@pytest.mark.parametrize("has_ids", ["old", "new"])
def test_votes_with_ids_and_votes_without_are_compared_by_their_rows(has_ids, caplog):
    old = votes_of(OLD, id=["x", "y"] if has_ids == "old" else None)
    new = votes_of(NEW, id=["z", "x", "y"] if has_ids == "new" else None)
    with caplog.at_level(logging.WARNING, "isplitlbi"):
        together = with_new_votes(old, new, "drop")
    assert len(together) == 4
    assert f"The {has_ids} votes have ids" in caplog.records[0].message
    assert together.id.null_count() == 2
