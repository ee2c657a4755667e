"""Among whom users are tested: all users of a study together, or one more beside a study.

Whoever comes after a study is tested by what was ordinary there, and among its users, as if nobody
else had come: what is found of a newcomer does not depend on other newcomers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

import numpy as np

from isplitlbi.runtime.base import Runtime
from isplitlbi.typing import Floats, Labels, Mask

__all__ = ["Company", "Newcomers", "Ordinary", "Together", "benjamini_hochberg"]


@dataclass(frozen=True, eq=False)
class Ordinary:
    """What was ordinary in a study: all that it takes to test others later, without its votes.

    Attributes
    ----------
    means, variances : (n_traits + 1,)
        Of ordinary users' deviations: slope, side, features, the threshold's logarithm, taste.
    covariance : (n_items + 1, n_items + 1), or (n_items + 1,) of each by itself
        Of the errors of the consensus that users were compared with.
    noisier : float
        How many times as much these vary as the votes tell, where votes have weights.
    of_habits : (n_items,)
        How much is known of the tie habit of every item; empty where there are none.
    unit : float
        The weight of a vote, on average.
    has_sides : bool
        Whether left and right mean something.
    duration : float
        Seconds that a user in the middle takes for a vote; zero where that is not known.
    n_votes : int
        Of the study.
    """

    means: Floats
    variances: Floats
    covariance: Floats
    noisier: float
    of_habits: Floats
    unit: float
    has_sides: bool
    duration: float
    n_votes: int


class Company(Protocol):
    """Those among whom users are tested."""

    @property
    def has_rings(self) -> bool:
        """Whether users may belong to a ring of others who are tested."""

    def q_value(self, test: int, p_value: Floats, *, of_different: bool = False) -> Floats:
        """Return the q-values of users, given their p-values in a test (nan: not tested).

        Of the different: of those who are on no other list.
        """

    def count(self, users: Mask) -> Floats:
        """Count users, (2, n_users) for both tests; a newcomer is one more beside the study."""

    def cut(self, may_be: Floats, voted: Mask, fdr: float) -> Floats:
        """Return, for both tests, how small a p-value must be if so many are flagged: (2, 1)."""

    def n_voted(self, voted: Mask) -> float:
        """Count the users who have votes."""

    def chances(self, n_users: int, seed: int) -> Floats:
        """Return three numbers between 0 and 1 for every user: (3, n_users)."""

    def number(self, user: int) -> int:
        """Return a number that is a user's own: draws begin with it."""

    def middle(self, durations: Floats) -> float:
        """Return what a user in the middle takes for a vote; zero where that is not known."""


@dataclass(frozen=True, eq=False)
class Together:
    """All users of a study, on this machine or on several."""

    runtime: Runtime
    has_rings = True

    def q_value(self, test: int, p_value: Floats, *, of_different: bool = False) -> Floats:
        """Return those of the users here, among all."""
        everybody = benjamini_hochberg(self.runtime.everybody(p_value))
        return everybody[self.runtime.first : self.runtime.first + len(p_value)]

    def count(self, users: Mask) -> Floats:
        """Count users."""
        (found,) = self.runtime.total(np.sum(users, axis=1).astype(np.float64))
        return np.asarray(found)

    def cut(self, may_be: Floats, voted: Mask, fdr: float) -> Floats:
        """Return how small a p-value must be."""
        cut = fdr * np.maximum(may_be, 1.0) / max(self.n_voted(voted), 1.0)
        return np.asarray(cut[:, None])

    def n_voted(self, voted: Mask) -> float:
        """Count the users who have votes."""
        return float(self.runtime.total(float(voted.sum()))[0])

    def chances(self, n_users: int, seed: int) -> Floats:
        """Draw all users' numbers, and take those of the users here."""
        numbers = np.random.default_rng(seed).random((3, self.runtime.n_users))
        return numbers[:, self.runtime.first : self.runtime.first + n_users]

    def number(self, user: int) -> int:
        """Return the place of a user among all."""
        return self.runtime.first + user

    def middle(self, durations: Floats) -> float:
        """Return the median of everybody's durations."""
        everybody = self.runtime.everybody(np.where(np.isnan(durations), -1.0, durations))
        known = everybody[everybody >= 0.0]
        return float(np.median(known)) if len(known) else 0.0


class Newcomers:
    """Each alone beside the users of a study, whose p-values are known."""

    has_rings = False

    def __init__(
        self,
        users: Labels,
        ordinary: Ordinary,
        p_values: Sequence[Floats],
        is_unreliable: Mask,
        fdr: float,
    ) -> None:
        self._users, self._duration = users, ordinary.duration
        others = np.where(is_unreliable, np.nan, p_values[0])
        self._known = [np.sort(each[~np.isnan(each)]) for each in (*p_values, others)]
        flagged = [np.sum(benjamini_hochberg(each) <= fdr) for each in self._known[:2]]
        self._n_flagged = np.array(flagged, dtype=np.float64)

    def q_value(self, test: int, p_value: Floats, *, of_different: bool = False) -> Floats:
        """Return the q-value of each, if only that one is added to the study."""
        known = self._known[2 if of_different else test]
        rank = np.arange(1, len(known) + 1)
        # Of those further back in order, each may be flagged together with all before it.
        later = np.append(known * (len(known) + 1) / (rank + 1), np.inf)
        later = np.minimum.accumulate(later[::-1])[::-1]
        before = np.searchsorted(known, p_value, side="right")
        own = p_value * (len(known) + 1) / (before + 1)
        return np.where(np.isnan(p_value), np.nan, np.minimum(np.minimum(own, later[before]), 1.0))

    def count(self, users: Mask) -> Floats:
        """Return how many of the study are flagged, and one."""
        return self._n_flagged + 1.0

    def cut(self, may_be: Floats, voted: Mask, fdr: float) -> Floats:
        """Return how small a p-value must be."""
        return np.asarray(fdr * may_be / self.n_voted(voted))[:, None]

    def n_voted(self, voted: Mask) -> float:
        """Count the users of the study, and one."""
        return float(len(self._known[0]) + 1)

    def chances(self, n_users: int, seed: int) -> Floats:
        """Draw every newcomer's own numbers."""
        drawn = [np.random.default_rng([seed, self.number(u)]).random(3) for u in range(n_users)]
        return np.array(drawn).reshape(n_users, 3).T

    def number(self, user: int) -> int:
        """Return a digest of the id, whoever else is there."""
        return crc32(str(self._users[user]).encode("utf-8", "surrogatepass"))

    def middle(self, durations: Floats) -> float:
        """Return what a user in the middle of the study takes."""
        return self._duration


def benjamini_hochberg(p_value: Floats) -> Floats:
    """Return q-values: the false discovery rate at which each would just be flagged."""
    known = np.flatnonzero(~np.isnan(p_value))
    order = known[np.argsort(p_value[known], kind="stable")]
    q_value = np.full(len(p_value), np.nan)
    scaled = p_value[order] * len(order) / np.arange(1, len(order) + 1)
    q_value[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(max=1.0)
    return q_value
