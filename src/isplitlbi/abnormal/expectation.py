"""Every user's votes beside what a consensus expects of them."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Link
from isplitlbi.typing import Floats, Integers

ONE_OF_EACH = np.eye(3)


class Ballots(NamedTuple):
    """Votes of one user on one pair, the same way round and of the same weight, user after user.

    Which side an item was shown on matters here, so that these are not the edges of the fit.
    """

    start: NDArray[np.int64]  # (n_users + 1,) a user's ballots are start[u]:start[u + 1]
    user: Integers
    left: Integers
    right: Integers
    weight: Floats  # of one vote
    counts: NDArray[np.int64]  # (n_ballots, 3) votes for left, tie, right
    n_votes: NDArray[np.int64]  # the sum of these

    @classmethod
    def of(cls, votes: Comparisons) -> Self:
        """Collapse votes; their order does not matter."""
        weight = np.ones(len(votes)) if votes.weight is None else votes.weight
        order = np.lexsort((weight, votes.right, votes.left, votes.user))
        columns: list[Any] = [
            votes.user[order],
            votes.left[order],
            votes.right[order],
            weight[order],
        ]
        is_new = np.ones(len(order), dtype=np.bool_)
        is_new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        place = np.cumsum(is_new) - 1
        n_ballots = int(is_new.sum())
        counts = np.bincount(3 * place + 1 - votes.outcome[order], minlength=3 * n_ballots)
        counts = counts.reshape(-1, 3)
        user, left, right, weight = (column[is_new] for column in columns)
        start = np.searchsorted(user, np.arange(votes.n_users + 1))
        return cls(start, user, left, right, weight, counts, counts.sum(axis=1))

    def margin(self, consensus: Floats) -> Floats:
        """Return by how much the consensus prefers the left item."""
        return np.asarray(consensus[self.left] - consensus[self.right])

    def sum_by_user(self, values: Floats) -> Floats:
        """Add up numbers per ballot."""
        return np.bincount(self.user, values, len(self.start) - 1).astype(np.float64, copy=False)


class TellingVote(NamedTuple):
    """A vote that speaks against the consensus, and how likely the consensus found it."""

    left: Any
    right: Any
    outcome: int
    times: int
    probability: float


class TellingVotes(NamedTuple):
    """The same of many users, user after user, by index."""

    user: Integers
    left: Integers
    right: Integers
    outcome: NDArray[np.int64]
    times: NDArray[np.int64]
    probability: Floats


def find_telling_votes(
    votes: Comparisons, link: Link, consensus: Floats, most: int = 10
) -> TellingVotes:
    """Return the votes of every user that the consensus least expected, the least likely first."""
    ballots = Ballots.of(votes)
    chance = np.exp(link.log_probabilities(ballots.margin(consensus), consensus[-1]))
    ballot, said = np.nonzero(ballots.counts)
    order = np.lexsort((chance[ballot, said], ballots.user[ballot]))
    user = ballots.user[ballot[order]]
    place = np.arange(len(user)) - np.searchsorted(user, user)  # among the votes of its user
    ballot, said = ballot[order][place < most], said[order][place < most]
    return TellingVotes(
        ballots.user[ballot],
        ballots.left[ballot],
        ballots.right[ballot],
        1 - said,
        ballots.counts[ballot, said],
        chance[ballot, said],
    )


class Expectation(NamedTuple):
    """What a consensus expects of every ballot; outcomes in the order left, tie, right."""

    margin: Floats
    probability: Floats  # (n_ballots, 3)
    by_margin: Floats  # (n_ballots, 3) slope of an outcome's log-probability in the margin
    by_threshold: Floats  # (n_ballots, 3) and in the threshold

    @classmethod
    def of(cls, ballots: Ballots, consensus: Floats, link: Link) -> Self:
        """Compare ballots with a consensus: a score per item, and the threshold last."""
        margin, threshold = ballots.margin(consensus), consensus[-1]
        probability = np.exp(link.log_probabilities(margin, threshold))
        slopes = [
            -np.asarray(slope)
            for outcome in ONE_OF_EACH
            for slope in link.vote_terms(margin, threshold, *outcome)[1:3]
        ]
        return cls(margin, probability, np.stack(slopes[::2], 1), np.stack(slopes[1::2], 1))
