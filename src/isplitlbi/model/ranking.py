"""Rankings with ties, and recommendations from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isplitlbi.typing import Floats

__all__ = ["Ranking", "Relation", "as_good_as", "better_than", "relation"]

Relation = Literal["better", "tied", "worse"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Items from best to worst, in tiers.

    One item beats another when their scores differ by more than the threshold; otherwise they tie.
    Being tied is not transitive (this is a *semiorder*), so tiers are a summary: a tier starts at
    its best item and takes in all that tie with it. `relation` is exact.

    Attributes
    ----------
    items, scores, tier : (n_items,)
        Best first; tiers are counted from 1.
    threshold : float
    compared : (n_items,) bool
        Whether this user ever compared the item; everywhere true for the consensus. An item that
        was not compared stands where the consensus puts it.
    """

    items: NDArray[Any]
    scores: Floats
    threshold: float
    tier: NDArray[np.intp]
    compared: NDArray[np.bool_]

    @classmethod
    def of(
        cls, items: NDArray[Any], scores: Floats, threshold: float, compared: NDArray[np.bool_]
    ) -> Ranking:
        """Rank items by score.

        Examples
        --------
        >>> names, seen = np.array(["a", "b", "c"]), np.ones(3, dtype=bool)
        >>> Ranking.of(names, np.array([0.0, 2.0, 1.5]), 1.0, seen).tiers
        [['b', 'c'], ['a']]
        """
        order = np.argsort(-scores, kind="stable")
        tier = np.empty(len(order), dtype=np.intp)
        current, best = 0, np.inf
        for place, score in enumerate(scores[order]):
            if best - score > threshold:
                current, best = current + 1, score
            tier[place] = current
        return cls(items[order], scores[order], threshold, tier, compared[order])

    @property
    def tiers(self) -> list[list[Any]]:
        """The items, tier by tier."""
        ends = np.flatnonzero(np.diff(self.tier)) + 1
        return [part.tolist() for part in np.split(self.items, ends)]

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        """Show one line per tier."""
        width = len(str(len(self.tiers)))
        unseen = set(self.items[~self.compared].tolist())
        lines = [
            f"{number:>{width}}  " + ", ".join(f"({i})" if i in unseen else str(i) for i in tier)
            for number, tier in enumerate(self.tiers, start=1)
        ]
        if unseen:
            lines.append("(in brackets: never compared by this user, placed by the consensus)")
        return "\n".join(lines)


def relation(scores: Floats, threshold: float, a: int, b: int) -> Relation:
    """Say how item a stands to item b."""
    difference = scores[a] - scores[b]
    if abs(difference) <= threshold:
        return "tied"
    return "better" if difference > 0 else "worse"


def as_good_as(scores: Floats, threshold: float, item: int) -> NDArray[np.intp]:
    """Return the items that tie with one, nearest first."""
    distance = np.abs(scores - scores[item])
    near = np.argsort(distance, kind="stable")
    tied = (distance[near] <= threshold) & (near != item)
    return np.asarray(near[tied])


def better_than(scores: Floats, threshold: float, item: int) -> NDArray[np.intp]:
    """Return the items that beat one, the slightest step up first."""
    gain = scores - scores[item]
    near = np.argsort(gain, kind="stable")
    return np.asarray(near[gain[near] > threshold])
