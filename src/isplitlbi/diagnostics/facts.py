"""What several checks ask of the votes, counted once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Tally, tally
from isplitlbi.data.splits import n_units
from isplitlbi.model.answering import log_probabilities
from isplitlbi.model.links import Logistic
from isplitlbi.model.terms import PAPER
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.common import common_terms, fit_common
from isplitlbi.solvers.likelihood import SCORE_VARIANCE
from isplitlbi.typing import Floats, Indices, Mask, Places

__all__ = ["FEWEST_DECIDED", "Facts", "fewest_first", "most_first", "runtime_for", "sums"]

FEWEST_DECIDED = 10  # votes before anything is said about sides

# Compiling the loops takes longer than a diagnosis of so few votes without: who looks at a file for
# the first time should not wait for it. By the number of votes alone: what is found must not depend
# on what this machine has compiled before.
FEWEST_COMPILED = 20_000

# Two votes on one pair show it the same way round (1), or as often one way as the other (0). From
# these values on, over pairs and over items, sides are taken as fixed.
FIXED_PAIRS, FIXED_ITEMS = 0.25, 0.1
SURE_FIXED = 4.0


@dataclass(frozen=True, eq=False)
class Facts:
    """Votes in one order, and what is counted of them. Ids that occur in no vote stay out."""

    votes: Comparisons
    has_sides: bool = True  # whether left and right are said to mean something

    @classmethod
    def of(cls, votes: Comparisons, *, has_sides: bool = True) -> Self:
        """Put votes in order: sums over them round alike, and rows that are alike come together."""
        keys: list[NDArray[Any]] = [votes.outcome, votes.right, votes.left, votes.user]
        keys[:0] = [column for column in (votes.group, votes.weight) if column is not None]
        keys[:0] = [] if votes.features is None else votes.features.columns
        return cls(votes.subset(np.lexsort(keys)), has_sides)

    @cached_property
    def weight(self) -> Floats:
        """What every vote counts for."""
        weight = self.votes.weight
        return np.ones(len(self.votes)) if weight is None else weight

    @cached_property
    def answers(self) -> Floats:
        """Amounts of left, tie and right per user, shape (n_users, 3)."""
        votes = self.votes
        cell = votes.user.astype(np.int64) * 3 + (1 - votes.outcome)
        return sums(cell, votes.weight, 3 * votes.n_users).reshape(-1, 3)

    @cached_property
    def per_user(self) -> Floats:
        """Amount of votes of every user."""
        return np.asarray(self.answers.sum(axis=1))

    @cached_property
    def active_users(self) -> Places:
        """Users who voted."""
        return np.flatnonzero(self.per_user)

    @cached_property
    def per_item(self) -> Floats:
        """Amount of votes on every item."""
        votes = self.votes
        as_left = sums(votes.left, votes.weight, votes.n_items)
        return as_left + sums(votes.right, votes.weight, votes.n_items)

    @cached_property
    def active_items(self) -> Places:
        """Items that were compared."""
        return np.flatnonzero(self.per_item)

    @cached_property
    def pairs(self) -> Tally:
        """Distinct pairs of items and the amounts of their outcomes."""
        return tally(self.votes)

    @cached_property
    def decided(self) -> float:
        """Amount of votes that are no ties."""
        return float(self.answers[:, [0, 2]].sum())

    @cached_property
    def has_ties(self) -> bool:
        """Whether any vote is a tie."""
        return bool(self.answers[:, 1].any())

    @cached_property
    def is_winner_first(self) -> bool:
        """Whether all decided votes are for the same side."""
        left, _, right = self.answers.sum(axis=0)
        return bool(self.decided >= FEWEST_DECIDED and min(left, right) == 0)

    @cached_property
    def sides_are_fixed(self) -> bool:
        """Whether items keep their side: then a habit looks like a preference."""
        votes = self.votes
        as_left, as_right = (sums(side, None, votes.n_items) for side in (votes.left, votes.right))
        # The same for pairs: if the left item always won, their counts would be those of sides.
        left_wins = replace(votes, outcome=np.ones_like(votes.outcome))
        sides = tally(left_wins, weighted=False)
        return _keep_side(sides.first_wins, sides.second_wins, FIXED_PAIRS) or _keep_side(
            as_left, as_right, FIXED_ITEMS
        )

    @cached_property
    def expected_left(self) -> Floats:
        """Amount of decided votes per user that would go left if only the items mattered."""
        votes, link = self.votes, Logistic()
        terms = common_terms(PAPER, has_ties=self.has_ties)
        consensus = fit_common(
            votes, link, terms, variance=SCORE_VARIANCE, runtime=runtime_for(votes)
        )
        margin = consensus.scores[votes.left] - consensus.scores[votes.right]
        answer = log_probabilities(link, margin, consensus.threshold, has_ties=self.has_ties)
        left, _, right = answer.T
        share = np.where(votes.outcome == 0, 0.0, scipy.special.expit(left - right))
        return sums(votes.user, share * self.weight, votes.n_users)

    @cached_property
    def votes_per_unit(self) -> float:
        """Votes per group: those of one group are no more independent than one vote."""
        return len(self.votes) / n_units(self.votes)

    @cached_property
    def improbability(self) -> Floats:
        """Chance of as one-sided votes, per user, from somebody with any taste but no habit.

        Binomial tails on both sides; real numbers of votes come from weights and groups.
        """
        left, right = self.answers[:, 0], self.answers[:, 2]
        decided = left + right
        by_items = self.expected_left / np.maximum(decided, 1e-300)
        # What the items alone would bring to one side, for who agrees with the consensus and for
        # who turns it upside down; with random sides, half.
        share = np.clip(0.5 + np.abs(by_items - 0.5), 0.5, 1.0)
        more, less = np.maximum(left, right), np.minimum(left, right)
        unit = self.votes_per_unit
        tail = scipy.special.betainc(np.maximum(more / unit, 1e-9), less / unit + 1.0, share)
        return np.where(decided > 0, np.minimum(2.0 * tail, 1.0), 1.0)

    @cached_property
    def copies(self) -> int:
        """Number of rows that are exact copies of another."""
        votes = self.votes
        columns: list[NDArray[Any] | None] = [votes.user, votes.left, votes.right, votes.outcome]
        columns += [votes.group, votes.weight]
        columns.extend([] if votes.features is None else votes.features.columns)
        alike: list[Mask] = [c[1:] == c[:-1] for c in columns if c is not None]
        return int(np.count_nonzero(np.all(alike, axis=0)))

    def users(self, which: Indices) -> list[Any]:
        """Return the ids of users."""
        return list(self.votes.users[which].tolist())

    def items(self, which: Indices) -> list[Any]:
        """Return the ids of items."""
        return list(self.votes.items[which].tolist())


def runtime_for(votes: Comparisons) -> Local:
    """Return a runtime for a diagnosis: with compiled loops only where there are many votes."""
    return Local(votes, backend="numpy" if len(votes) < FEWEST_COMPILED else None)


def sums(index: Indices, values: Floats | None, size: int) -> Floats:
    """Sum values by index, or count where there are none."""
    return np.bincount(index, values, size).astype(np.float64)


def fewest_first(found: Places, amount: Floats) -> Places:
    """Return what was found in the order of its amounts."""
    return found[np.argsort(amount[found], kind="stable")]


def most_first(found: Places, amount: Floats) -> Places:
    """Return what was found, that of the largest amount first."""
    return found[np.argsort(-amount[found], kind="stable")]


def _keep_side(as_left: Floats, as_right: Floats, least: float) -> bool:
    """Tell whether things shown so often left and right do not change sides at random."""
    times = as_left + as_right
    excess = float(np.sum((as_left - as_right) ** 2 - times))  # zero on average at random
    most = float(np.sum(times * (times - 1.0)))
    return bool(excess > SURE_FIXED * np.sqrt(2.0 * most) and excess > least * most)
