"""Choosing how large terms are: a few multiples of what the votes tell, on held-out votes.

Where votes are few, variances that agree with the estimates are too small or too large, by much;
held-out votes know better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isplitlbi.jobs import Fold, ScoreSizes, SizesScore
from isplitlbi.model.links import Link
from isplitlbi.runtime.base import Workforce
from isplitlbi.runtime.progress import Reporter
from isplitlbi.solvers.scales import SCORES, Sizes
from isplitlbi.typing import Floats

__all__ = ["Search"]

MULTIPLE, MOST_MOVES = 4.0, 3  # of a variance, up or down
TOLD_BY_A_TRIAL = 0.12  # of the work that is left: nobody knows how many trials there will be
# Held-out votes that are enough to decide: where a few folds have as many, these decide alone.
ENOUGH_VOTES, FEWEST_FOLDS = 40_000, 2


class Trial(NamedTuple):
    """Sizes that were tried, how much the folds lose by them, and the consensus of each fold."""

    sizes: Sizes
    losses: Floats
    consensus: list[Floats]

    @property
    def loss(self) -> float:
        """Of all folds that decide."""
        return float(np.sum(self.losses))


class Search:
    """Looks for sizes that predict held-out votes best, before anybody leaves."""

    def __init__(
        self, runtime: Workforce, link: Link, folds: list[Fold], reporter: Reporter
    ) -> None:
        self.runtime, self.link, self.folds, self.reporter = runtime, link, folds, reporter
        self.left = 1.0  # of the work
        # A consensus without the votes of each fold: where its fits begin, and what sharpness
        # refers to in them.
        self.starts: list[Floats | None] = [None] * len(folds)
        per_fold = runtime.summary.n_votes / max(len(folds), 1)
        self.n_deciding = max(FEWEST_FOLDS, math.ceil(ENOUGH_VOTES / max(per_fold, 1.0)))

    def best_from(self, sizes: Sizes, names: Sequence[str]) -> Sizes:
        """Return the best multiples of some variances, one after the other."""
        if not self.folds:
            return sizes
        best = self._first(sizes)
        for name in names:
            best = self._best_along(name, best)
            self.starts[: len(best.consensus)] = best.consensus
        return best.sizes

    def _best_along(self, name: str, here: Trial) -> Trial:
        """Go where the folds lose less, then to the bottom of a parabola through what was tried.

        What is larger has to prove itself, since folds differ by chance. So has what is smaller, of
        the scores: tastes would take over what these lose, and the consensus would be nobody's.
        """
        may_fall = _is_clear if name == SCORES else _is_some

        def beside(factor: float) -> Trial:
            other = here.sizes.resized({name: factor})
            same = np.array_equal(other.variances, here.sizes.variances)
            if same and other.terms.score_variance == here.sizes.terms.score_variance:
                return here  # it is as large, or as small, as it may be
            return self._try(other)

        below, above = beside(1.0 / MULTIPLE), beside(MULTIPLE)
        for _ in range(MOST_MOVES):
            if _is_clear(here.losses - above.losses):
                below, here = here, above
                above = beside(MULTIPLE)
            elif may_fall(here.losses - below.losses):
                above, here = here, below
                below = beside(1.0 / MULTIPLE)
            else:
                break
        slope, bend = below.losses - above.losses, below.loss - 2.0 * here.loss + above.loss
        may_move = _is_clear(slope) if np.sum(slope) > 0.0 else may_fall(-slope)
        if bend <= 0.0 or not may_move:
            return here
        bottom = beside(MULTIPLE ** float(np.clip(0.5 * np.sum(slope) / bend, -1.0, 1.0)))
        return min(here, bottom, key=lambda each: each.loss)

    def lowered(self, sizes: Sizes) -> Sizes:
        """Return the same, or less of everything as long as the folds lose less by it."""
        if not self.folds:
            return sizes
        here = self._first(sizes)
        for _ in range(2 * MOST_MOVES):
            factors = dict.fromkeys(sizes.terms.names, 1.0 / MULTIPLE)
            below = self._try(here.sizes.resized(factors))
            if below.loss >= here.loss:
                break
            here = below
        return here.sizes

    def references(self, sizes: Sizes) -> list[Floats | None]:
        """Return the reference of the sharpness in every fold."""
        if not self.folds:
            return []
        n_items = len(self.runtime.summary.items)
        return [found[:n_items] for found in self._try(sizes, len(self.folds)).consensus]

    def _first(self, sizes: Sizes) -> Trial:
        """Try sizes on all folds, whose consensus then serves other trials."""
        found = self._try(sizes, len(self.folds))
        self.starts = list(found.consensus)
        return Trial(sizes, found.losses[: self.n_deciding], found.consensus[: self.n_deciding])

    def _try(self, sizes: Sizes, n_folds: int | None = None) -> Trial:
        """Try sizes on the folds that decide, or on so many."""
        n_folds = self.n_deciding if n_folds is None else n_folds
        jobs = [
            (ScoreSizes(self.link, sizes, fold, start), Reporter())
            for fold, start in zip(self.folds[:n_folds], self.starts[:n_folds], strict=True)
        ]
        found: list[SizesScore] = self.runtime.side_by_side(jobs, self.reporter)
        self.reporter.advance(TOLD_BY_A_TRIAL * self.left)
        self.left *= 1.0 - TOLD_BY_A_TRIAL
        losses = np.array([each.loss for each in found])
        return Trial(sizes, losses, [each.consensus for each in found])


def _is_some(gains: Floats) -> bool:
    """Say whether the folds gain anything."""
    return bool(np.sum(gains) > 0.0)


def _is_clear(gains: Floats) -> bool:
    """Say whether gains of the folds are more than their noise."""
    noise = np.sqrt(len(gains) * np.var(gains, ddof=1)) if len(gains) > 1 else 0.0
    return bool(np.sum(gains) > noise)
