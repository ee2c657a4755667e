"""What is known of votes without holding them: whose, about what, how many, and which."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.features import Units
from isplitlbi.data.splits import units
from isplitlbi.data.times import TIMES
from isplitlbi.data.vocabulary import main_figures
from isplitlbi.data.weights import Unevenness, unevenness
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Labels, Places

__all__ = ["Summary", "digest_of", "n_effective", "sums_of_weights"]

log = logging.getLogger("isplitlbi")

Words = NDArray[np.uint64]

# Constants of SplitMix64, which turns numbers that are alike into numbers that are not.
GOLDEN, MIX_ONE, MIX_TWO = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

# What tells times from durations and from weights: each votes may have without the others.
MARKS = {name: int.from_bytes(name.encode()) for name in TIMES}


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """The main figures of some votes.

    Attributes
    ----------
    users, items : arrays of ids, sorted
    votes_per_user : (n_users,)
    n_ties : int
    digest : (2,)
        Sums of one number per vote: those of parts add up to that of the whole.
    units : Units, optional
        Of the features of the votes, where they have some.
    is_anonymous : bool
        Whether nobody knows whose votes they are; there is one user then, who stands for all.
    weight_unit : float
        What the weights of the votes were divided by: their mean.
    n_effective : float, optional
        How many votes of equal weight would tell as much, where that is known.
    """

    users: Labels
    items: Labels
    votes_per_user: Places
    n_ties: int
    digest: Words
    units: Units | None = None
    is_anonymous: bool = False
    weight_unit: float = 1.0
    n_effective: float | None = None

    @classmethod
    def of(cls, votes: Comparisons) -> Self:
        """Summarise votes that are at hand."""
        return cls(
            votes.users, votes.items, votes.votes_per_user, int(np.sum(votes.outcome == 0)),
            digest_of(votes), None if votes.features is None else votes.features.units,
            votes.is_anonymous, votes.weight_unit, n_effective(*sums_of_weights(votes)),
        )  # fmt: skip

    @property
    def n_votes(self) -> int:
        """Number of votes."""
        return int(self.votes_per_user.sum())

    @property
    def tie_share(self) -> float:
        """Share of ties."""
        return self.n_ties / max(self.n_votes, 1)

    @property
    def fingerprint(self) -> str:
        """A digest of votes and ids that does not depend on the order of the votes."""
        digest = sha256()
        for ids in (self.users, self.items):
            digest.update(json.dumps(ids.tolist()).encode())
        for counts in (self.digest, self.votes_per_user, np.array([self.n_ties])):
            digest.update(counts.astype("<u8").tobytes())
        if self.units is not None:
            digest.update(json.dumps(self.units.names).encode())
            digest.update(self.units.scale.astype("<f8").tobytes())
        if self.is_anonymous:
            digest.update(b"anonymous")
        return digest.hexdigest()

    @property
    def unevenness(self) -> Unevenness | None:
        """What is to be said of the weights, where they are too uneven."""
        return unevenness(self.n_effective, self.n_votes)

    def tell_if_uneven(self, votes: Comparisons | Any) -> None:
        """Warn of weights that are too uneven; say nothing of folds, which are parts of votes."""
        if self.unevenness is not None and getattr(votes, "whole", None) is None:
            log.warning("%s", self.unevenness)

    def __str__(self) -> str:
        """Say what is in the votes."""
        return self.in_words(NOUNS)

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person who calls items and users by these nouns."""
        n_users = 0 if self.is_anonymous else len(self.users)
        return main_figures(self.n_votes, self.n_ties, n_users, len(self.items), nouns)


def sums_of_weights(votes: Comparisons) -> tuple[float, float]:
    """Return the sum of the weights of votes, and of their squares."""
    weight = votes.weight
    squares = votes.n_votes if weight is None else weight @ weight
    return votes.total_weight, float(squares)


def n_effective(total: float, squares: float) -> float:
    """Return how many votes of equal weight tell as much as votes whose weights have these sums."""
    return total**2 / squares if squares else 0.0


def digest_of(votes: Comparisons, first_user: int = 0) -> Words:
    """Return sums of one number per vote, in which users are counted from the first one's index."""
    columns: list[NDArray[Any]] = [votes.user + first_user, votes.left, votes.right, votes.outcome]
    if votes.weight is not None:
        columns.append(votes.weight.view(np.int64))
    if votes.group is not None:
        # By the place among the user's own groups: that is known without those of other users.
        group = units(votes)
        first_group = np.full(votes.n_users, len(votes))
        np.minimum.at(first_group, votes.user, group)
        columns.append(group - first_group[votes.user])
    for name, mark in MARKS.items():
        if (values := getattr(votes, name)) is not None:
            columns.append(values.view(np.int64) ^ mark)
    if votes.features is not None:
        columns += [np.ascontiguousarray(each).view(np.int64) for each in votes.features.columns]
    sums = np.empty(2, dtype=np.uint64)
    for place in range(2):
        mixed = np.full(len(votes), place, dtype=np.uint64)
        for column in columns:
            mixed = _mix(mixed ^ column.astype(np.int64).view(np.uint64))
        sums[place] = mixed.sum(dtype=np.uint64)
    return sums


def _mix(words: Words) -> Words:
    words = words + np.uint64(GOLDEN)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(MIX_ONE)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(MIX_TWO)
    return words ^ (words >> np.uint64(31))
