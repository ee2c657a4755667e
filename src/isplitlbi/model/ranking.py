"""Rankings with ties, and recommendations from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.frames import FIRST, Tabular, numbers_or_empty
from isplitlbi.lazy import pl
from isplitlbi.markup import as_html, printable
from isplitlbi.typing import Floats

__all__ = ["Ranking", "Relation", "as_good_as", "better_than", "relation"]

Relation = Literal["better", "tied", "worse"]


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Tabular):
    """Items from best to worst, in tiers where there can be ties.

    One item beats another when their scores differ by more than the threshold of the pair, which is
    the common one times the tie habits of both; otherwise they tie. Being tied is not transitive
    (this is a *semiorder*), so tiers are a summary: a tier starts at its best item and goes on to
    before the first item that does not tie with it. `relation` is exact.

    Attributes
    ----------
    items, scores : (n_items,)
        Best first.
    threshold : float or None
        None where there are no ties; then there are no tiers either.
    tier : (n_items,) or None
        Counted from 1.
    compared : (n_items,) bool
        Whether this user ever compared the item; everywhere true for the consensus. An item that
        was not compared stands where the consensus puts it.
    habits : (n_items,)
        By which factor each item changes the threshold of its pairs; 1 where items have no habits.
    has_habits : bool
        Whether they have.
    user
        Whose ranking it is; None for the consensus.
    """

    items: NDArray[Any]
    scores: Floats
    threshold: float | None
    tier: NDArray[np.intp] | None
    compared: NDArray[np.bool_]
    habits: Floats
    has_habits: bool = field(default=False, kw_only=True)
    user: Any = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls,
        items: NDArray[Any],
        scores: Floats,
        threshold: float | None,
        compared: NDArray[np.bool_],
        habits: Floats | None = None,
        user: Any = None,
    ) -> Ranking:
        """Rank items by score.

        Examples
        --------
        >>> names, seen = np.array(["a", "b", "c"]), np.ones(3, dtype=bool)
        >>> Ranking.of(names, np.array([0.0, 2.0, 1.5]), 1.0, seen).tiers
        [['b', 'c'], ['a']]
        >>> Ranking.of(names, np.array([0.0, 2.0, 1.5]), None, seen).tiers
        [['b'], ['c'], ['a']]
        """
        order = np.argsort(-scores, kind="stable")
        ranked, factors = scores[order], _factors(scores, habits)[order]
        tier = None
        if threshold is not None:
            tier = np.empty(len(order), dtype=np.intp)
            current = best = 0
            for place, score in enumerate(ranked):
                enough = threshold * factors[best] * factors[place]
                if place == 0 or ranked[best] - score > enough:
                    current, best = current + 1, place
                tier[place] = current
        return cls(
            items[order], ranked, threshold, tier, compared[order], factors,
            has_habits=habits is not None, user=user,
        )  # fmt: skip

    @property
    def tiers(self) -> list[list[Any]]:
        """The items, tier by tier; each by itself where there are no tiers."""
        if self.tier is None:
            return [[item] for item in self.items.tolist()]
        ends = np.flatnonzero(np.diff(self.tier)) + 1
        return [part.tolist() for part in np.split(self.items, ends)]

    def __len__(self) -> int:
        return len(self.items)

    def _table(self) -> pl.DataFrame:
        """Return tier, item and score, best first; tiers are empty where there are no ties.

        Of a user there is also whether the item was compared. Where items have tie habits, there is
        by which factor each changes the threshold of its pairs.
        """
        tier = np.zeros(len(self), dtype=np.int64) if self.tier is None else self.tier
        columns = {
            "tier": numbers_or_empty(tier),
            "item": pl.Series(self.items),
            "score": pl.Series(self.scores),
        }
        if self.user is not None:
            columns["compared"] = pl.Series(self.compared)
        if self.has_habits:
            columns["tie_factor"] = pl.Series(self.habits)
        return pl.DataFrame(columns)

    def __repr__(self) -> str:
        """Say whose it is, and of how many items."""
        whose = "" if self.user is None else f" of {self.user!r}"
        tiers = "" if self.tier is None else f" in {len(self.tiers)} tiers"
        return f"Ranking{whose}: {len(self)} items{tiers}"

    def _repr_html_(self) -> str:
        """Show a notebook the first tiers."""
        tiers = [[number, ", ".join(map(str, tier))] for number, tier in enumerate(self.tiers, 1)]
        more = [["..."] * 2] if len(tiers) > FIRST else []
        head = ["rank" if self.tier is None else "tier", "items"]
        return as_html(self._said(), head, [*tiers[:FIRST], *more])

    def __str__(self) -> str:
        """Show one line per tier."""
        width = len(str(len(self.tiers)))
        unseen = set(self.items[~self.compared].tolist())
        named = [
            [printable(f"({i})" if i in unseen else str(i)) for i in tier] for tier in self.tiers
        ]
        lines = [f"{number:>{width}}  {', '.join(tier)}" for number, tier in enumerate(named, 1)]
        if unseen:
            lines.append("(in brackets: never compared by this user, placed by the consensus)")
        return "\n".join(lines)


def relation(
    scores: Floats, threshold: float | None, a: int, b: int, habits: Floats | None = None
) -> Relation:
    """Say how item a stands to item b; without a threshold, only equal scores are tied."""
    difference = scores[a] - scores[b]
    factors = _factors(scores, habits)
    if abs(difference) <= (threshold or 0.0) * factors[a] * factors[b]:
        return "tied"
    return "better" if difference > 0 else "worse"


def as_good_as(
    scores: Floats, threshold: float | None, item: int, habits: Floats | None = None
) -> NDArray[np.intp]:
    """Return the items that tie with one, nearest first."""
    distance, enough = np.abs(scores - scores[item]), _thresholds(scores, threshold, item, habits)
    near = np.argsort(distance, kind="stable")
    tied = (distance[near] <= enough[near]) & (near != item)
    return np.asarray(near[tied])


def better_than(
    scores: Floats, threshold: float | None, item: int, habits: Floats | None = None
) -> NDArray[np.intp]:
    """Return the items that beat one, the slightest step up first."""
    gain, enough = scores - scores[item], _thresholds(scores, threshold, item, habits)
    near = np.argsort(gain, kind="stable")
    return np.asarray(near[gain[near] > enough[near]])


def _factors(scores: Floats, habits: Floats | None) -> Floats:
    return np.ones(len(scores)) if habits is None else np.asarray(habits)


def _thresholds(
    scores: Floats, threshold: float | None, item: int, habits: Floats | None
) -> Floats:
    """Return the threshold of every item beside one."""
    factors = _factors(scores, habits)
    return np.asarray((threshold or 0.0) * factors[item] * factors)
