"""What users answered to the pairs that others judged, too: all that agreement is counted from.

Conventions
-----------
unit       a pair of items, whichever was on the left, that at least two users judged
answer     what one user said to one unit: the shares of first, tie and second in the user's votes
           on it, the item of the lower index being first. An answer counts once, however many votes
           it is made of: two votes of the same user say nothing about agreement between people.
distance   how far two votes are from each other: (3, 3), and zero where they are the same
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from isplitlbi.data.layout import Tally
from isplitlbi.typing import Floats, Indices, Places

__all__ = [
    "INTERVAL",
    "NOMINAL",
    "Answers",
    "Distances",
    "Sums",
    "added",
    "distance_between",
    "pair_numbers",
]

NOMINAL: Floats = 1.0 - np.eye(3)
INTERVAL: Floats = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])


class Sums(NamedTuple):
    """What alpha is made of; of several sets of answers, every field has an axis more.

    Every unit counts in both directions, as (a, b) and as (b, a) with the answer turned round: what
    is expected by chance must not depend on which item happens to be named first.
    """

    n_answers: Floats
    apart: Floats  # what the answers of each unit have of mean distance, summed over answers
    counts: Floats  # (..., 3) of first, tie and second
    own: Floats  # the distances of every answer to itself, which is none of a single vote

    def observed(self) -> Floats:
        """Return the mean distance between answers of two users to the same unit."""
        return np.asarray(self.apart / _or_nan(self.n_answers))

    def expected(self, distance: Floats) -> Floats:
        """Return the mean distance between any two answers, whatever they are answers to."""
        both = self.counts + self.counts[..., ::-1]
        n_both = 2.0 * self.n_answers
        total = distance_between(both, both, distance) - 2.0 * self.own
        return np.asarray(total / _or_nan(n_both * (n_both - 1.0)))

    def alpha(self, distance: Floats) -> Floats:
        """Return Krippendorff's alpha; nothing (nan) where all answers are ties."""
        return np.asarray(1.0 - self.observed() / _or_nan(self.expected(distance)))


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to all units, by user and unit.

    Attributes
    ----------
    user, unit : (n_answers,)
    shares : (n_answers, 3)
    cell : (n_answers,)
        Which of the cells of the tally an answer is.
    pair : (n_units,)
        The number of the pair among all that were judged.
    """

    user: Indices
    unit: Places
    shares: Floats
    cell: Places
    pair: Places

    @classmethod
    def of(cls, cells: Tally, pair: Places) -> Self:
        """Take the answers to pairs that at least two users judged, from votes by user and pair."""
        is_shared = np.bincount(pair) > 1
        there = np.flatnonzero(is_shared[pair])
        counts = np.array(cells.counts)[:, there].T
        unit = (np.cumsum(is_shared) - 1)[pair[there]]
        shares = counts / counts.sum(axis=1, keepdims=True)
        return cls(cells.user[there], unit, shares, there, np.flatnonzero(is_shared))

    def __len__(self) -> int:
        """Return the number of answers."""
        return len(self.user)

    @property
    def n_units(self) -> int:
        """Number of pairs that at least two users judged."""
        return len(self.pair)

    @cached_property
    def n_of_unit(self) -> Floats:
        """Number of users who judged each unit."""
        return added(self.unit, None, self.n_units)

    @cached_property
    def sums_of_unit(self) -> Floats:
        """The answers to each unit, added up: (n_units, 3)."""
        return np.column_stack([added(self.unit, each, self.n_units) for each in self.shares.T])

    def of_others(self) -> Floats:
        """Return the mean answer of all others to the unit of each answer: (n_answers, 3)."""
        others = self.sums_of_unit[self.unit] - self.shares
        return np.asarray(others / (self.n_of_unit[self.unit] - 1.0)[:, None])

    def at(self, distance: Floats) -> Distances:
        """Return how far the answers to each unit are from each other."""
        own = distance_between(self.shares, self.shares, distance)
        sums, own_of_unit = self.sums_of_unit, added(self.unit, own, self.n_units)
        between = distance_between(sums, sums, distance) - own_of_unit
        return Distances(self, distance, own, own_of_unit, between)


class Distances(NamedTuple):
    """How far the answers to each unit are from each other.

    Attributes
    ----------
    answers : Answers
    distance : (3, 3)
        Between two votes.
    own : (n_answers,)
        How far every answer is from itself: two votes of it, drawn at random.
    own_of_unit : (n_units,)
        The same, added up.
    between : (n_units,)
        The distances of all ordered pairs of two users, added up.
    """

    answers: Answers
    distance: Floats
    own: Floats
    own_of_unit: Floats
    between: Floats

    def sums(self) -> Sums:
        """Return what alpha is made of."""
        answers = self.answers
        apart = self.between / (answers.n_of_unit - 1.0)
        n_answers = np.asarray(float(len(answers)))
        return Sums(n_answers, apart.sum(), answers.shares.sum(axis=0), self.own.sum())

    def without_users(self) -> Sums:
        """Return what alpha would be made of without each user in turn.

        A unit that only one user is left of goes with the user who is left out.
        """
        answers, unit = self.answers, self.answers.unit
        n, sums = answers.n_of_unit[unit], answers.sums_of_unit[unit]
        last, between = n == 2.0, self.between[unit]
        mine = distance_between(answers.shares, sums - answers.shares, self.distance)
        rest = np.where(last, 0.0, (between - 2.0 * mine) / np.maximum(n - 2.0, 1.0))
        gone = np.where(last[:, None], sums, answers.shares)
        n_users = int(answers.user.max()) + 1
        lost = Sums(
            added(answers.user, np.where(last, 2.0, 1.0), n_users),
            added(answers.user, between / (n - 1.0) - rest, n_users),
            np.column_stack([added(answers.user, each, n_users) for each in gone.T]),
            added(answers.user, np.where(last, self.own_of_unit[unit], self.own), n_users),
        )
        is_there = lost.n_answers > 0.0
        return self._without(Sums(*(each[is_there] for each in lost)))

    def without_units(self) -> Sums:
        """Return what alpha would be made of without each unit in turn."""
        answers = self.answers
        apart = self.between / (answers.n_of_unit - 1.0)
        return self._without(Sums(answers.n_of_unit, apart, answers.sums_of_unit, self.own_of_unit))

    def _without(self, lost: Sums) -> Sums:
        return Sums(*(whole - less for whole, less in zip(self.sums(), lost, strict=True)))


def pair_numbers(cells: Tally, n_items: int) -> Places:
    """Return the number of the pair of every cell, from 0 on."""
    key = cells.first.astype(np.int64) * n_items + cells.second
    return np.asarray(np.unique(key, return_inverse=True)[1], dtype=np.int64)


def distance_between(one: Floats, other: Floats, distance: Floats) -> Floats:
    """Return the distance between answers: (..., 3) and (..., 3)."""
    found = np.zeros(one.shape[:-1])
    for here, there in zip(*np.nonzero(distance), strict=True):
        found += distance[here, there] * one[..., here] * other[..., there]
    return found


def added(index: Indices, values: Floats | None, size: int) -> Floats:
    """Add up values by index, or count where there are none."""
    return np.bincount(index, values, size).astype(np.float64, copy=False)


def _or_nan(number: Floats) -> Floats:
    """Return what is divided by, and nan in place of what is not above zero."""
    return np.where(np.asarray(number) > 1e-12, number, np.nan)
