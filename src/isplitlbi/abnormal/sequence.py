"""What the order of a user's votes tells: answers that follow a pattern, votes that tire.

Only where votes have a time. Evidences are in nats, beside those of `evidence`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isplitlbi.abnormal.expectation import Inputs, of_answers, share_of_group
from isplitlbi.data.layout import Shown
from isplitlbi.model.answering import log_probabilities
from isplitlbi.typing import Floats, Mask

__all__ = ["Sequence", "explain_by_order", "typical_duration"]


EARLIEST = 0.2  # share of votes before and after a change: with fewer there is none to be told


class Sequence(NamedTuple):
    """How likely every user's answers are by their order; -inf for those not asked about."""

    pattern: Floats
    tiring: Floats


def explain_by_order(inputs: Inputs, asked: Mask) -> Sequence | None:
    """Return the evidences of a pattern and of a change; nothing where votes have no time."""
    votes, has_ties = inputs.votes, inputs.consensus.terms.has_ties
    if votes.time is None:
        return None
    found = Sequence(*np.full((2, votes.n_users), -np.inf))
    theirs = votes.subset(asked[votes.user])
    theirs = theirs.subset(theirs.in_time_order())
    weight = np.ones(len(theirs)) if theirs.weight is None else theirs.weight / inputs.unit
    if theirs.group is not None:
        weight = weight * share_of_group(theirs)
    shown = Shown(theirs.left, theirs.right, theirs, np.arange(len(theirs)))
    known = inputs.consensus.margin_and_threshold(theirs.left, theirs.right, shown)
    said = log_probabilities(inputs.link, *known, has_ties=has_ties)
    answer = 1 - theirs.outcome.astype(np.int64)
    likely = weight * said[np.arange(len(said)), answer]
    given = np.eye(3)[answer] * weight[:, None]
    ends = np.searchsorted(theirs.user, np.arange(votes.n_users + 1))
    for user in np.flatnonzero(asked):
        mine = slice(*ends[user : user + 2])
        found.tiring[user] = _tiring(likely[mine], given[mine], inputs)
        found.pattern[user] = _pattern(answer[mine], given[mine], inputs)
    return found


def _answers(amounts: Floats, inputs: Inputs) -> Floats:
    has_ties, has_sides = inputs.consensus.terms.has_ties, inputs.answers.has_sides
    return of_answers(amounts, has_ties=has_ties, has_sides=has_sides)


def _tiring(likely: Floats, given: Floats, inputs: Inputs) -> float:
    """Return the evidence of the consensus up to some vote, any in the middle, and answers then."""
    middle = slice(int(np.ceil(EARLIEST * len(likely))), int((1.0 - EARLIEST) * len(likely)))
    before = np.cumsum(likely)[middle]
    after = (given.sum(axis=0) - np.cumsum(given, axis=0))[middle]
    if not len(before):
        return -np.inf
    total = np.logaddexp.reduce(before + _answers(after, inputs))
    return float(total - np.log(len(before)))


def _pattern(answer: np.ndarray, given: Floats, inputs: Inputs) -> float:
    """Return the evidence of answers that depend on the one before."""
    after = [given[1:][answer[:-1] == before].sum(axis=0) for before in range(3)]
    return float(np.sum(_answers(np.array([given[0], *after]), inputs)))


def typical_duration(inputs: Inputs) -> Floats:
    """Return how long users take for a vote, in the middle; nan where that is not known."""
    votes = inputs.votes
    if votes.duration is None:
        return np.full(votes.n_users, np.nan)
    order = np.lexsort((votes.duration, votes.user))
    start = np.searchsorted(votes.user[order], np.arange(votes.n_users + 1))
    middle = np.minimum((start[:-1] + start[1:]) // 2, max(len(order) - 1, 0))
    return np.where(np.diff(start) > 0, votes.duration[order][middle], np.nan)
