"""Choosing how large terms are: a few multiples of what the votes tell, on held-out votes."""

from __future__ import annotations

import numpy as np

from isplitlbi.data.layout import TASTE, THRESHOLD
from isplitlbi.jobs import Fold, ScoreSizes, SizesScore
from isplitlbi.model.links import Link
from isplitlbi.runtime.base import Workforce
from isplitlbi.runtime.progress import Reporter
from isplitlbi.solvers.scales import Given, Sizes
from isplitlbi.typing import Floats

__all__ = ["Search"]

# Multiples of a variance that are tried, and how often at most.
MULTIPLES = ((4.0, 3), (2.0, 1))
USUAL_TRIALS = 12  # of sizes, for telling how far the work is


class Search:
    """Looks for sizes that predict held-out votes best, before anybody leaves."""

    def __init__(
        self, runtime: Workforce, link: Link, folds: list[Fold], reporter: Reporter
    ) -> None:
        self.runtime, self.link, self.folds, self.reporter = runtime, link, folds, reporter
        self.starts: list[Floats | None] = [None] * len(folds)

    def best_from(self, sizes: Sizes, given: Given) -> Sizes:
        """Return the best of a few multiples, of taste and of the threshold."""
        losses = self._losses(sizes)
        for multiple, most in MULTIPLES:
            for name in (TASTE, THRESHOLD):
                known = given.nu is not None if name == TASTE else name in given.scales
                if not known and sizes.terms.scale(name) > 0.0:
                    sizes, losses = self._along(name, multiple, most, sizes, losses)
        return sizes

    def _along(
        self, name: str, multiple: float, most: int, sizes: Sizes, losses: Floats
    ) -> tuple[Sizes, Floats]:
        """Go up as long as that is clearly better or, if it is not at all, down."""
        for factor in (multiple, 1.0 / multiple):
            start = sizes
            for _ in range(most):
                other = sizes.resized({name: factor})
                found = self._losses(other)
                gains = losses - found
                # What is larger has to prove itself: folds differ by chance.
                noise = np.sqrt(len(gains) * np.var(gains, ddof=1)) if len(gains) > 1 else 0.0
                if not np.sum(gains) > (noise if factor > 1.0 else 0.0):
                    break
                sizes, losses = other, found
            if sizes is not start:
                break
        return sizes, losses

    def references(self, sizes: Sizes) -> list[Floats | None]:
        """Return the reference of the sharpness in every fold."""
        if self.folds and self.starts[0] is None:
            self._losses(sizes)
        n_items = len(self.runtime.summary.items)
        return [None if start is None else start[:n_items] for start in self.starts]

    def _losses(self, sizes: Sizes) -> Floats:
        """Return the loss of every fold."""
        jobs = [
            (ScoreSizes(self.link, sizes, fold, start), Reporter())
            for fold, start in zip(self.folds, self.starts, strict=True)
        ]
        found: list[SizesScore] = self.runtime.side_by_side(jobs, self.reporter)
        if self.starts[0] is None:  # those of the first sizes serve the others
            self.starts = [each.consensus for each in found]
        self.reporter.advance(0.7 / USUAL_TRIALS)
        return np.array([each.loss for each in found])
