"""Sides that mean nothing: the diagnosis says nothing of them."""

import numpy as np
import pytest

from diagnosed import codes, healthy, looked_at, with_outcomes
from isplitlbi.diagnostics.individual import verdict_on
from isplitlbi.errors import InvalidSetting
from votes import rebuilt

OF_SIDES = {
    "position-bias", "fixed-sides", "winner-first", "one-sided-users", "one-answer-users",
}  # fmt: skip


def leaning():
    """Draw a study that leans to the left, and a user who always votes left."""
    votes = healthy(n_users=40)
    outcome = np.where(np.random.default_rng(0).random(len(votes)) < 0.2, 1, votes.outcome)
    return with_outcomes(votes, np.where(votes.user == 3, 1, outcome))


def test_nothing_is_said_of_sides_that_mean_nothing():
    votes = leaning()
    assert {"position-bias", "one-answer-users"} <= set(codes(looked_at(votes)))
    assert not OF_SIDES & set(codes(looked_at(votes, sides="unknown")))


def test_winners_that_come_first_are_no_finding_then():
    votes = leaning()
    first = rebuilt(votes, swapped=votes.outcome < 0)
    assert "winner-first" in codes(looked_at(first))
    assert not OF_SIDES & set(codes(looked_at(first, sides="unknown")))


def test_who_always_says_tie_is_named_all_the_same():
    votes = leaning()
    votes = with_outcomes(votes, np.where(votes.user == 5, 0, votes.outcome))
    (found,) = (
        finding
        for finding in looked_at(votes, sides="unknown").findings
        if finding.code == "one-answer-users"
    )
    assert list(found.users) == ["tie"]


def test_the_verdict_does_not_change_when_votes_are_mirrored():
    votes = leaning()
    mirrored = rebuilt(votes, swapped=np.random.default_rng(1).random(len(votes)) < 0.5)
    here, there = (verdict_on(each, sides="unknown") for each in (votes, mirrored))
    assert here == there


def test_copies_are_told_without_a_word_of_sides():
    votes = healthy(n_items=40, votes_per_user=(10, 10))
    twice = rebuilt(votes, order=np.tile(np.arange(len(votes)), 2))
    known, unknown = (
        next(each.sentence for each in looked_at(twice, sides=sides).findings
             if each.code == "duplicate-rows")
        for sides in ("known", "unknown")
    )  # fmt: skip
    assert "sides" in known and "sides" not in unknown


def test_other_words_are_refused():
    with pytest.raises(InvalidSetting, match="sides 'top' is not one of known, unknown"):
        looked_at(healthy(), sides="top")
