"""Choosing a model and its time: paths without a part of the votes, which they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from isplitlbi.jobs import Fold, ScoreFold, ScoreOneRanking
from isplitlbi.model.temperature import Powers
from isplitlbi.runtime.base import Job, Workforce
from isplitlbi.runtime.progress import Reporter
from isplitlbi.selection import (
    ESTIMATES,
    SCORINGS,
    Curves,
    Estimate,
    FoldScores,
    Rule,
    Scoring,
    Selection,
)
from isplitlbi.solvers.checkpoints import Checkpoints
from isplitlbi.solvers.settings import PathSettings

__all__ = ["CrossValidation"]


@dataclass(frozen=True)
class CrossValidation:
    """What is compared, on which votes, and by what.

    Attributes
    ----------
    candidates : sequence of sequence of PathSettings
        Of every candidate, the path without each fold.
    folds : sequence of Fold
    scoring, rule, estimate
        What is optimised, how outcomes are predicted, and by what.
    cautious : bool
        Whether a later time has to be better by more than noise.
    checkpoints : Checkpoints or None
    """

    candidates: Sequence[Sequence[PathSettings]]
    folds: Sequence[Fold]
    scoring: Scoring
    rule: Rule
    estimate: Estimate
    cautious: bool
    checkpoints: Checkpoints | None

    @property
    def n_paths(self) -> int:
        """Number of paths that are followed."""
        return len(self.candidates) * len(self.folds)

    def run(
        self, runtime: Workforce, beside: Sequence[Job], reporter: Reporter
    ) -> tuple[Selection, list[Any]]:
        """Return what is chosen, and what other jobs come to that may be done at the same time.

        Each of these takes as long as a path.
        """
        share = 1.0 / (1 + self.n_paths)
        n_folds, n_beside = len(self.folds), len(beside)
        places = list(product(range(len(self.candidates)), range(n_folds)))
        paths: list[Job] = [*beside, *(self._job(*place) for place in places)]
        jobs = [(each, reporter.part(share)) for each in paths]
        jobs += [
            (ScoreOneRanking(settings, fold), reporter.part(0.0))
            for settings, fold in zip(self.candidates[0], self.folds, strict=True)
        ]
        results = runtime.side_by_side(jobs, reporter)
        found = dict(zip(places, results[n_beside : len(paths)], strict=True))
        one_ranking = np.array(results[len(paths) :])
        early = [
            (number, int(fold))
            for number in range(len(self.candidates))
            for fold in self._curves(number, found).ended_too_early(self.estimate)
        ]
        again = [(self._job(*each, whole=True), reporter.part(0.0)) for each in early]
        found |= zip(early, runtime.side_by_side(again, reporter), strict=True)
        curves = [self._curves(number, found) for number in range(len(self.candidates))]
        selection = Selection.best_of(
            curves, self.scoring, self.rule, self.estimate,
            cautious=self.cautious, one_ranking=one_ranking,
        )  # fmt: skip
        return selection, results[:n_beside]

    def _job(self, number: int, fold: int, *, whole: bool = False) -> ScoreFold:
        """Return the job of a path, which ends when it may; or of the whole path."""
        # What else is optimised may be best where the log-loss has long been worse.
        ends_by = self.estimate if self.scoring == "log_loss" and not whole else None
        name = f"candidate-{number}-fold-{self.folds[fold].number}{'-whole' if whole else ''}"
        return ScoreFold(
            self.candidates[number][fold], self.folds[fold], self.rule, ends_by, name,
            self.checkpoints,
        )  # fmt: skip

    def _curves(self, number: int, found: dict[tuple[int, int], FoldScores]) -> Curves:
        scored = [found[number, fold] for fold in range(len(self.folds))]
        by_fold, path = [each.by_name() for each in scored], self.candidates[number][0]
        names = dict.fromkeys((*SCORINGS, self.scoring))
        scores = {
            estimate: {name: np.stack([fold[estimate][name] for fold in by_fold]) for name in names}
            for estimate in ESTIMATES
        }
        powers = {
            estimate: Powers(
                np.stack([each.powers[row] for each in scored]),
                np.stack([each.bends[row] for each in scored]),
            )
            for row, estimate in enumerate(ESTIMATES)
        }
        weight = np.array([each.weight for each in scored])
        return Curves(path.dynamics, path.times, weight, scores, powers)
