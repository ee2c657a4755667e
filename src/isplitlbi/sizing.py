"""Choosing how large terms are: a few multiples of what the votes tell, on held-out votes.

Where votes are few, variances that agree with the estimates are too small or too large, by much;
held-out votes know better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from isplitlbi.jobs import Fold, ScoreSizes, SizesScore
from isplitlbi.model.links import Link
from isplitlbi.runtime.base import Workforce
from isplitlbi.runtime.progress import Reporter
from isplitlbi.solvers.scales import Sizes
from isplitlbi.typing import Floats

__all__ = ["Search"]

MULTIPLE, MOST_MOVES = 4.0, 3  # of a variance, up or down
USUAL_TRIALS = 16  # of sizes, for telling how far the work is
# Held-out votes that are enough to decide: where a few folds have as many, these decide alone.
ENOUGH_VOTES, FEWEST_FOLDS = 40_000, 2


class Search:
    """Looks for sizes that predict held-out votes best, before anybody leaves."""

    def __init__(
        self, runtime: Workforce, link: Link, folds: list[Fold], reporter: Reporter
    ) -> None:
        self.runtime, self.link, self.folds, self.reporter = runtime, link, folds, reporter
        self.starts: list[Floats | None] = [None] * len(folds)
        per_fold = runtime.summary.n_votes / max(len(folds), 1)
        self.n_deciding = max(FEWEST_FOLDS, math.ceil(ENOUGH_VOTES / max(per_fold, 1.0)))

    def best_from(self, sizes: Sizes, names: Sequence[str]) -> Sizes:
        """Return the best multiples of some variances, one after the other."""
        if not self.folds:
            return sizes
        best = sizes, self._losses(sizes)
        for name in names:
            best = self._best_along(name, *best)
        return best[0]

    def _best_along(self, name: str, sizes: Sizes, losses: Floats) -> tuple[Sizes, Floats]:
        """Go where the folds lose less, then to the bottom of a parabola through what was tried.

        What is larger has to prove itself, since folds differ by chance.
        """
        here = sizes, losses

        def beside(factor: float) -> tuple[Sizes, Floats]:
            other = here[0].resized({name: factor})
            return other, self._losses(other)

        below, above = beside(1.0 / MULTIPLE), beside(MULTIPLE)
        for _ in range(MOST_MOVES):
            if _is_clear(here[1] - above[1]):
                below, here = here, above
                above = beside(MULTIPLE)
            elif np.sum(below[1]) < np.sum(here[1]):
                above, here = here, below
                below = beside(1.0 / MULTIPLE)
            else:
                break
        slope, bend = below[1] - above[1], np.sum(below[1] - 2.0 * here[1] + above[1])
        if bend <= 0.0 or (np.sum(slope) > 0.0 and not _is_clear(slope)):
            return here
        bottom = beside(MULTIPLE ** float(np.clip(0.5 * np.sum(slope) / bend, -1.0, 1.0)))
        return min(here, bottom, key=lambda each: float(np.sum(each[1])))

    def lowered(self, sizes: Sizes) -> Sizes:
        """Return the same, or less of everything as long as the folds lose less by it."""
        if not self.folds:
            return sizes
        here, losses = sizes, self._losses(sizes)
        for _ in range(2 * MOST_MOVES):
            below = here.resized(dict.fromkeys(here.terms.names, 1.0 / MULTIPLE))
            found = self._losses(below)
            if np.sum(found) >= np.sum(losses):
                break
            here, losses = below, found
        return here

    def references(self, sizes: Sizes) -> list[Floats | None]:
        """Return the reference of the sharpness in every fold."""
        if self.folds and self.starts[0] is None:
            self._losses(sizes)
        n_items = len(self.runtime.summary.items)
        return [None if start is None else start[:n_items] for start in self.starts]

    def _losses(self, sizes: Sizes) -> Floats:
        """Return the losses of the folds that decide."""
        is_first = self.starts[0] is None
        jobs = [
            (ScoreSizes(self.link, sizes, fold, start), Reporter())
            for fold, start in zip(self.folds, self.starts, strict=True)
        ]
        found: list[SizesScore] = self.runtime.side_by_side(
            jobs if is_first else jobs[: self.n_deciding], self.reporter
        )
        if is_first:  # the consensus of the first sizes serves the others
            self.starts = [each.consensus for each in found]
        self.reporter.advance(0.7 / USUAL_TRIALS)
        return np.array([each.loss for each in found[: self.n_deciding]])


def _is_clear(gains: Floats) -> bool:
    """Say whether gains of the folds are more than their noise."""
    noise = np.sqrt(len(gains) * np.var(gains, ddof=1)) if len(gains) > 1 else 0.0
    return bool(np.sum(gains) > noise)
