"""Whether users change the result: the leaderboard with and without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.frames import Tabular, numbers_or_empty
from isplitlbi.estimators.leaderboard import Leaderboard
from isplitlbi.lazy import pl
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Floats, Labels, Mask, Places

__all__ = ["Effect"]


@dataclass(frozen=True, eq=False, repr=False)
class Effect(Tabular):
    """What leaving users out does to the consensus, item by item, in the order of everybody's.

    Attributes
    ----------
    left_out : list of ids
    everybody, others : Leaderboard
        With and without these users: the same estimator with the same settings, intervals of the
        same kind.
    """

    left_out: list[Any]
    everybody: Leaderboard
    others: Leaderboard

    _shown = ("item", "rank", "rank_low", "rank_high", "rank_without", "score", "score_without")

    @property
    def items(self) -> Labels:
        """The items, best first with everybody."""
        return self.everybody.items

    @property
    def score_with(self) -> Floats:
        """The scores with everybody."""
        return self.everybody.score

    @property
    def score_without(self) -> Floats:
        """Those of the others, at the same mean: only differences of scores matter."""
        return self._of_others(self.others.score + np.mean(self.score_with - self.others.score))

    @property
    def rank_with(self) -> Places:
        """The ranks with everybody; 0 for an item that is not ranked."""
        return self.everybody.rank

    @property
    def rank_without(self) -> Places:
        """Those of the others; 0 for an item on which they have too few votes."""
        return self._of_others(self.others.rank)

    @property
    def rank_low(self) -> Places:
        """From which rank on an item may stand, with everybody: 95 % for all items at once."""
        return self.everybody.rank_low

    @property
    def rank_high(self) -> Places:
        """Up to which rank."""
        return self.everybody.rank_high

    @property
    def tier_with(self) -> Places | None:
        """The tiers with everybody; nothing without ties."""
        return self.everybody.tier

    @property
    def tier_without(self) -> Places | None:
        """Those of the others."""
        return None if self.others.tier is None else self._of_others(self.others.tier)

    @property
    def most_moved(self) -> int:
        """The largest change of a rank."""
        return int(np.abs(self.rank_without - self.rank_with)[self._moved].max(initial=0))

    @property
    def pairs_joined(self) -> int:
        """How many pairs of items share a tier only without the users left out."""
        return _pairs_that_share_a_tier(self.tier_without, but_not=self.tier_with)

    @property
    def pairs_parted(self) -> int:
        """How many pairs of items share a tier only with them."""
        return _pairs_that_share_a_tier(self.tier_with, but_not=self.tier_without)

    @property
    def _moved(self) -> Mask:
        """Which items are ranked on both sides, and differently."""
        both = (self.rank_with > 0) & (self.rank_without > 0)
        return np.asarray(both & (self.rank_with != self.rank_without))

    def _of_others(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what is known of every item without these users, in the order of everybody's."""
        place = {item: place for place, item in enumerate(self.others.items.tolist())}
        return values[[place[item] for item in self.items.tolist()]]

    def sentence(self, nouns: Nouns = NOUNS) -> str:
        """Say whether it matters, to a person who calls items and users by these nouns."""
        n = len(self.left_out)
        if n == 0:
            return "Nobody was left out, so the consensus stays as it is."
        who, moved = f"Without {nouns.n_users(n)}", self._moved
        tiers, lost = self._tiers_in_words(nouns), self._unranked_in_words(nouns)
        if not moved.any():
            has_same_tiers = self.tier_with is not None and not tiers
            same = "the same order" + (" and the same tiers" if has_same_tiers else "")
            return f"{'; '.join([f'{who} the consensus has {same}', *lost, *tiers])}."
        without = self.rank_without
        beyond = int(np.sum(moved & ((without < self.rank_low) | (without > self.rank_high))))
        parts = [
            f"{who} {np.count_nonzero(moved)} of {nouns.n_items(len(self.items))} change their "
            f"rank, by at most {self.most_moved}",
            f"{beyond} of these moves go{'es' if beyond == 1 else ''} beyond the 95 % interval of "
            "the rank"
            if beyond
            else "no move goes beyond the 95 % interval of the rank",
            *lost,
            *tiers,
        ]
        return f"{'; '.join(parts)}."

    def __repr__(self) -> str:
        """Say whether it matters."""
        return f"Effect: {self.sentence()}"

    def _said(self) -> list[str]:
        return [self.sentence()]

    def _table(self) -> pl.DataFrame:
        """Return every item with its rank, score and tier, with and without the users left out.

        Ranks and tiers are empty where there are too few votes to rank the item, tiers also where
        there are no ties.
        """
        nothing = np.zeros(len(self.items), dtype=np.int64)
        tiers = (nothing if tier is None else tier for tier in (self.tier_with, self.tier_without))
        tier_with, tier_without = map(numbers_or_empty, tiers)
        return pl.DataFrame(
            {
                "item": self.items,
                "rank": numbers_or_empty(self.rank_with),
                "rank_low": numbers_or_empty(self.rank_low),
                "rank_high": numbers_or_empty(self.rank_high),
                "rank_without": numbers_or_empty(self.rank_without),
                "score": self.score_with,
                "score_without": self.score_without,
                "tier": tier_with,
                "tier_without": tier_without,
            }
        )

    def _unranked_in_words(self, nouns: Nouns) -> list[str]:
        n_lost = int(np.sum((self.rank_with > 0) & (self.rank_without == 0)))
        if n_lost == 0:
            return []
        lost = f"one {nouns.item} then has" if n_lost == 1 else f"{n_lost} {nouns.items} then have"
        return [f"{lost} too few votes to be ranked"]

    def _tiers_in_words(self, nouns: Nouns) -> Sequence[str]:
        where = {"the same tier": self.pairs_joined, "different tiers": self.pairs_parted}
        return [
            f"{_pairs(amount, nouns)} into {place}" for place, amount in where.items() if amount
        ]


def _pairs(amount: int, nouns: Nouns) -> str:
    if amount == 1:
        return f"one pair of {nouns.items} moves"
    return f"{amount} pairs of {nouns.items} move"


def _pairs_that_share_a_tier(tier: Places | None, *, but_not: Places | None) -> int:
    if tier is None or but_not is None:
        return 0
    is_ranked = (tier > 0) & (but_not > 0)
    tier, but_not = tier[is_ranked], but_not[is_ranked]
    shared = (tier[:, None] == tier) & (but_not[:, None] != but_not)
    return int(np.count_nonzero(shared)) // 2
