"""Whether users change the result: the consensus with and without them, how sure ranks are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.errors import InvalidVotes
from isplitlbi.model.parameters import Consensus
from isplitlbi.model.ranking import Ranking
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Floats, Labels, Mask, Places

__all__ = ["N_BOOTSTRAP", "Effect", "find_effect"]

N_BOOTSTRAP = 200
INTERVAL = (0.025, 0.975)


@dataclass(frozen=True)
class Effect:
    """What leaving users out does to the consensus, item by item, best first.

    ``rank_low`` and ``rank_high`` hold 95 % of the ranks that the consensus with everybody takes
    when users are drawn anew, with replacement. Without ties there are no tiers.
    """

    items: Labels
    left_out: list[Any]
    score_with: Floats
    score_without: Floats
    rank_with: Places
    rank_without: Places
    rank_low: Places
    rank_high: Places
    tier_with: Places | None
    tier_without: Places | None

    @property
    def most_moved(self) -> int:
        """The largest change of a rank."""
        return int(np.abs(self.rank_without - self.rank_with).max(initial=0))

    @property
    def pairs_joined(self) -> int:
        """How many pairs of items share a tier only without the users left out."""
        return _pairs_that_share_a_tier(self.tier_without, but_not=self.tier_with)

    @property
    def pairs_parted(self) -> int:
        """How many pairs of items share a tier only with them."""
        return _pairs_that_share_a_tier(self.tier_with, but_not=self.tier_without)

    def sentence(self, nouns: Nouns = NOUNS) -> str:
        """Say whether it matters, to a person who calls items and users by these nouns."""
        n = len(self.left_out)
        if n == 0:
            return "Nobody was left out, so the consensus stays as it is."
        who = f"Without {nouns.n_users(n)}"
        moved = self.rank_with != self.rank_without
        tiers = [
            f"{_pairs(amount, nouns)} into {where}"
            for amount, where in (
                (self.pairs_joined, "the same tier"),
                (self.pairs_parted, "different tiers"),
            )
            if amount
        ]
        if not moved.any():
            has_same_tiers = self.tier_with is not None and not tiers
            same = "the same order" + (" and the same tiers" if has_same_tiers else "")
            return f"{'; '.join([f'{who} the consensus has {same}', *tiers])}."
        beyond = moved & (
            (self.rank_without < self.rank_low) | (self.rank_without > self.rank_high)
        )
        n_beyond = int(np.count_nonzero(beyond))
        parts = [
            f"{who} {np.count_nonzero(moved)} of {nouns.n_items(len(self.items))} change their "
            f"rank, by at most {self.most_moved}",
            f"{n_beyond} of these moves go{'es' if n_beyond == 1 else ''} beyond what drawing "
            f"other {nouns.users} would do"
            if n_beyond
            else f"no move goes beyond what drawing other {nouns.users} would do",
            *tiers,
        ]
        return f"{'; '.join(parts)}."


def find_effect(
    votes: Comparisons,
    left_out: Mask,
    everybody: Consensus,
    fit: Callable[[Comparisons], Consensus],
    drawn: Floats,
) -> Effect:
    """Compare the consensus of everybody with that of the others.

    Parameters
    ----------
    votes
        Of everybody.
    left_out
        Which users are left out.
    everybody
        The consensus that a model has found.
    fit
        Finds the consensus of the other votes, in the same way.
    drawn
        The scores of other draws of users, a row for each. Only their spread counts: it is put
        around the scores of the consensus.
    """
    kept = ~left_out[votes.user]
    if not kept.any():
        raise InvalidVotes("nobody would be left to make a consensus; leave out fewer users.")
    others = everybody if kept.all() else fit(votes.subset(kept))
    around = everybody.scores + drawn - np.median(drawn, axis=0)
    ranks = np.stack([_ranks(scores) for scores in around])
    low, high = np.quantile(ranks, INTERVAL, axis=0, method="nearest")
    order = np.argsort(-everybody.scores, kind="stable")
    # Only differences of scores matter: the two are put beside each other at the same mean.
    shift = np.mean(everybody.scores - others.scores)
    return Effect(
        votes.items[order],
        votes.users[left_out].tolist(),
        everybody.scores[order],
        (others.scores + shift)[order],
        _ranks(everybody.scores)[order],
        _ranks(others.scores)[order],
        low.astype(np.int64)[order],
        high.astype(np.int64)[order],
        _tiers(everybody, order),
        _tiers(others, order),
    )


def _pairs(amount: int, nouns: Nouns) -> str:
    if amount == 1:
        return f"one pair of {nouns.items} moves"
    return f"{amount} pairs of {nouns.items} move"


def _pairs_that_share_a_tier(tier: Places | None, *, but_not: Places | None) -> int:
    if tier is None or but_not is None:
        return 0
    shared = (tier[:, None] == tier) & (but_not[:, None] != but_not)
    return int(np.count_nonzero(shared)) // 2


def _ranks(scores: Floats) -> Places:
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def _tiers(consensus: Consensus, order: Places) -> Places | None:
    """Return the tiers of all items, in some order; nothing without ties."""
    if not consensus.terms.has_ties:
        return None
    n_items = len(order)
    everything = np.ones(n_items, dtype=np.bool_)
    ranking = Ranking.of(
        np.arange(n_items), consensus.scores, consensus.threshold, everything, consensus.habits
    )
    tiers = np.empty(n_items, dtype=np.int64)
    if ranking.tier is not None:
        tiers[ranking.items.astype(np.int64)] = ranking.tier
    return tiers[order]
