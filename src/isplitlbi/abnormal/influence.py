"""Does it matter? The consensus with and without some users, and how sure its ranks are anyway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.errors import InvalidVotes
from isplitlbi.model.links import Link
from isplitlbi.model.ranking import Ranking
from isplitlbi.solvers import bootstrap_consensus, fit_consensus
from isplitlbi.typing import Floats

N_BOOTSTRAP = 200
INTERVAL = (0.025, 0.975)


@dataclass(frozen=True)
class Effect:
    """What leaving users out does to the consensus, item by item, best first.

    ``rank_low`` and ``rank_high`` hold 95 % of the ranks that the consensus with everybody takes
    when users are drawn anew, with replacement.
    """

    items: NDArray[Any]
    left_out: list[Any]
    score_with: Floats
    score_without: Floats
    rank_with: NDArray[np.int64]
    rank_without: NDArray[np.int64]
    rank_low: NDArray[np.int64]
    rank_high: NDArray[np.int64]
    tier_with: NDArray[np.int64]
    tier_without: NDArray[np.int64]

    @property
    def most_moved(self) -> int:
        """The largest change of a rank."""
        return int(np.abs(self.rank_without - self.rank_with).max(initial=0))

    @property
    def regrouped(self) -> int:
        """How many pairs of items share a tier in one of the two rankings only."""
        together = [tier[:, None] == tier for tier in (self.tier_with, self.tier_without)]
        return int(np.count_nonzero(together[0] != together[1])) // 2

    def sentence(self) -> str:
        """Say whether it matters."""
        n = len(self.left_out)
        if n == 0:
            return "Nobody was left out, so the consensus stays as it is."
        who = f"Without {n} user{'s' if n > 1 else ''}"
        moved = int(np.count_nonzero(self.rank_with != self.rank_without))
        if moved == 0 and self.regrouped == 0:
            return f"{who} the consensus has the same order and the same tiers."
        beyond = (self.rank_without < self.rank_low) | (self.rank_without > self.rank_high)
        beyond &= self.rank_with != self.rank_without
        tiers = (
            f"; {self.regrouped} pair{'s' if self.regrouped != 1 else ''} of items "
            "come to share a tier or cease to"
            if self.regrouped
            else ""
        )
        if moved == 0:
            return f"{who} the consensus has the same order{tiers}."
        sure = (
            f"{int(beyond.sum())} of these moves go{'es' if beyond.sum() == 1 else ''} beyond what "
            "drawing other users would do"
            if beyond.any()
            else "no move goes beyond what drawing other users would do"
        )
        return (
            f"{who} {moved} of {len(self.items)} items change their rank, by at most "
            f"{self.most_moved}{tiers}; {sure}."
        )


def find_effect(
    votes: Comparisons,
    link: Link,
    left_out: NDArray[np.bool_],
    *,
    delta: float = 1e-3,
    n_bootstrap: int = N_BOOTSTRAP,
    seed: int = 0,
    drawn: Floats | None = None,
) -> Effect:
    """Fit the consensus with everybody and without some users, by maximum likelihood.

    ``drawn`` are the consensuses of other draws of users, where they are known already.
    """
    kept = ~left_out[votes.user]
    if not kept.any():
        raise InvalidVotes("nobody would be left to make a consensus; leave out fewer users.")
    everybody = fit_consensus(votes, link, delta)
    others = fit_consensus(votes.subset(kept), link, delta) if left_out.any() else everybody
    if drawn is None:
        drawn = bootstrap_consensus(votes, link, n_bootstrap, seed, delta)
    ranks = np.stack([_ranks(scores) for scores in drawn[:, :-1]])
    low, high = np.quantile(ranks, INTERVAL, axis=0, method="nearest")
    order = np.argsort(-everybody[:-1], kind="stable")
    # Only differences of scores matter: the two are put beside each other at the same mean.
    shift = np.mean(everybody[:-1] - others[:-1])
    return Effect(
        votes.items[order],
        votes.users[left_out].tolist(),
        everybody[:-1][order],
        (others[:-1] + shift)[order],
        _ranks(everybody[:-1])[order],
        _ranks(others[:-1])[order],
        low.astype(np.int64)[order],
        high.astype(np.int64)[order],
        _tiers(votes, everybody)[order],
        _tiers(votes, others)[order],
    )


def _ranks(scores: Floats) -> NDArray[np.int64]:
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def _tiers(votes: Comparisons, consensus: Floats) -> NDArray[np.int64]:
    everything = np.ones(votes.n_items, dtype=np.bool_)
    place = np.arange(votes.n_items)
    ranking = Ranking.of(place, consensus[:-1], float(consensus[-1]), everything)
    tiers = np.empty(votes.n_items, dtype=np.int64)
    tiers[ranking.items.astype(np.int64)] = ranking.tier
    return tiers
