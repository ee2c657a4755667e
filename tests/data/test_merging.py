"""Old votes and new ones together."""

import logging

import numpy as np
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
