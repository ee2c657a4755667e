"""One fit, wherever it is done: votes and settings in, `Fitted` out.

What is to be done is stated as `jobs`; a runtime does them, on this machine or on all machines that
hold users.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Summary
from isplitlbi.errors import InvalidSetting
from isplitlbi.jobs import CountFolds, FindTimes, Folding, FollowPath, ScoreFold
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.terms import PAPER, Terms
from isplitlbi.path import MOST_SNAPSHOTS, RegularizationPath
from isplitlbi.runtime.base import Workforce
from isplitlbi.runtime.progress import Progress, Reporter
from isplitlbi.selection import (
    ESTIMATES,
    SCORINGS,
    Curves,
    FoldScores,
    Rule,
    Scoring,
    Selection,
)
from isplitlbi.solvers.checkpoints import Checkpoints
from isplitlbi.solvers.implicit import Implicit
from isplitlbi.solvers.settings import Dynamics, PathSettings, Scheme
from isplitlbi.typing import Floats, Indices

__all__ = ["FitSettings", "Fitted", "fit"]


@dataclass(frozen=True, eq=False)
class FitSettings:
    """Everything that decides a fit, besides the votes.

    Attributes
    ----------
    link : Link
    candidates : tuple of Dynamics
        What to choose from.
    scheme : Scheme
        How paths are followed.
    terms : Terms
        In which ways users may differ.
    times : (n_times,), optional
        Times of the path; by default found from the votes.
    time : float, optional
        Where to stop. By default chosen by cross-validation.
    n_folds : int
        Folds of the cross-validation.
    folds : (n_votes,), optional
        The fold of every vote, where it is not to be drawn.
    scoring, rule
        What the cross-validation optimises, and how outcomes are predicted in it.
    seed : int or None
        Of the folds.
    snapshots : Path, optional
        Folder for the snapshots of the users; in memory by default.
    """

    link: Link
    candidates: tuple[Dynamics, ...] = (Dynamics(),)
    scheme: Scheme = field(default_factory=Implicit)
    terms: Terms = PAPER
    times: Floats | None = None
    time: float | None = None
    n_folds: int = 5
    folds: Indices | None = None
    scoring: Scoring = "log_loss"
    rule: Rule = "map"
    seed: int | None = 0
    snapshots: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        if self.time is not None and len(self.candidates) > 1:
            raise InvalidSetting("several nu or kappa need cross-validation: leave time unset.")

    def path(self, dynamics: Dynamics, times: Floats) -> PathSettings:
        """Return the settings of one path."""
        return PathSettings(self.link, dynamics, self.scheme, times, self.terms)

    def identity(self) -> dict[str, Any]:
        """Return all that decides the result, in plain values."""
        if self.seed is None:
            raise InvalidSetting("checkpoints need a random_state, or the folds would be others.")
        return {
            "link": self.link.name,
            "candidates": [[each.nu, each.kappa, each.delta] for each in self.candidates],
            "scheme": repr(self.scheme),
            "terms": self.terms.as_dict(),
            "times": None if self.times is None else self.times.tolist(),
            "time": self.time,
            "n_folds": self.n_folds,
            "folds": None if self.folds is None else self.folds.tolist(),
            "scoring": self.scoring,
            "rule": self.rule,
            "seed": self.seed,
        }


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit has found, and what it was found from.

    Attributes
    ----------
    votes : Comparisons or Parts
        The votes, or the files that hold them.
    summary : Summary
        The main figures of the votes.
    dynamics, time, path, selection
        Of a fit that follows a path; None for others, and without cross-validation.
    parameters : Parameters
        Consensus and deviations, at the chosen time where there is one.
    costs : Costs or None
        What the rounds of a fit on a cluster came to.
    chosen : mapping
        Other numbers that were chosen, by name.
    """

    votes: Comparisons | Parts
    summary: Summary
    link: Link
    dynamics: Dynamics | None
    time: float | None
    parameters: Parameters
    path: RegularizationPath | None = None
    selection: Selection | None = None
    costs: Any = None
    chosen: Mapping[str, float] = field(default_factory=dict)


def fit(
    votes: Comparisons | Parts,
    settings: FitSettings,
    runtime: Workforce,
    *,
    progress: Callable[[Progress], None] | None = None,
    checkpoints: Path | None = None,
    checkpoint_every: float = 10.0,
) -> Fitted:
    """Choose the time, unless it is given, and follow the whole path.

    Parameters
    ----------
    votes
        What the runtime works on (see `runtime.choice.runtime_for`).
    settings
        What decides the result.
    runtime
        Who does the work; the result does not depend on it.
    progress
        Called now and then.
    checkpoints
        Folder in which the state of a long fit is kept. A fit of the same votes with the same
        settings that was interrupted goes on from there.
    checkpoint_every
        Seconds between two writings, at least.
    """
    if not runtime.is_alone:
        _refuse_on_a_cluster(settings)
    kept = None
    if checkpoints is not None:
        identity = {
            "votes": runtime.summary.fingerprint,
            "settings": settings.identity(),
            "backend": runtime.backend,
        }
        kept = Checkpoints.of_fit(checkpoints, identity, checkpoint_every)
        runtime.settle(checkpoints)
    return _Fit(votes, settings, runtime, kept, Reporter(progress)).run()


def _refuse_on_a_cluster(settings: FitSettings) -> None:
    if settings.folds is not None:
        raise InvalidSetting("folds cannot be given together with a client.")
    if settings.seed is None:
        raise InvalidSetting("a fit on a cluster needs a random_state.")
    if not settings.scheme.works_together:
        raise InvalidSetting("on a cluster only the implicit solver is practical.")


@dataclass(frozen=True)
class _Fit:
    """The order in which things are done."""

    votes: Comparisons | Parts
    settings: FitSettings
    runtime: Workforce
    checkpoints: Checkpoints | None
    reporter: Reporter

    def run(self) -> Fitted:
        settings, path = self.settings, None
        grids = [self._times(each) for each in settings.candidates]
        if settings.time is None:
            selection, path = self._cross_validate(grids)
            dynamics, time, times = selection.dynamics, selection.time, selection.chosen.times
            done = 1.0 - self._share_of_a_path(len(grids))
        else:
            selection, dynamics, time = None, settings.candidates[0], float(settings.time)
            times, done = np.union1d(grids[0], [time]), 0.0
        if path is None:
            job = self._whole_path(dynamics, times, time)
            path = self.runtime.run(job, self.reporter.part(1.0 - done))
        return Fitted(
            self.votes, self.runtime.summary, settings.link, dynamics, time, path.at(time), path,
            selection, self.runtime.costs,
        )  # fmt: skip

    def _times(self, dynamics: Dynamics) -> Floats:
        if self.settings.times is not None:
            return np.asarray(self.settings.times, dtype=np.float64)
        job = FindTimes(self.settings.link, dynamics, self.settings.terms)
        times: Floats = self.runtime.run(job, Reporter())
        return times

    def _cross_validate(self, grids: list[Floats]) -> tuple[Selection, RegularizationPath | None]:
        """Score the path of every candidate on every fold; follow the whole one if it may be."""
        settings, share = self.settings, self._share_of_a_path(len(grids))
        folding = Folding(settings.n_folds, settings.seed, settings.folds)
        folding.check(self.runtime.summary.n_votes)
        n_folds: int = self.runtime.run(CountFolds(folding), Reporter())
        jobs: list[Any] = [
            ScoreFold(
                settings.path(settings.candidates[candidate], grids[candidate]), folding, fold,
                settings.rule, f"candidate-{candidate}-fold-{fold}", self.checkpoints,
            )
            for candidate, fold in product(range(len(grids)), range(n_folds))
        ]  # fmt: skip
        # Where all snapshots are kept, the path of the only candidate need not wait for the folds.
        beside = []
        if len(grids) == 1 and self.runtime.is_alone:
            beside = [self._whole_path(settings.candidates[0], grids[0], None)]
        found = self.runtime.side_by_side(
            [(job, self.reporter.part(share)) for job in (*beside, *jobs)], self.reporter
        )
        scored = found[len(beside) :]
        curves = [
            _curves(dynamics, times, scored[number * n_folds :][:n_folds])
            for number, (dynamics, times) in enumerate(zip(settings.candidates, grids, strict=True))
        ]
        selection = Selection.best_of(curves, settings.scoring, settings.rule)
        return selection, found[0] if beside else None

    def _share_of_a_path(self, n_candidates: int) -> float:
        """Return the share of one path in all the work of a cross-validated fit."""
        folds = self.settings.folds
        n_folds = self.settings.n_folds if folds is None else len(np.unique(folds))
        return 1.0 / (1.0 + n_candidates * n_folds)

    def _whole_path(self, dynamics: Dynamics, times: Floats, chosen: float | None) -> FollowPath:
        path = self.settings.path(dynamics, times)
        return FollowPath(path, chosen, self.settings.snapshots, MOST_SNAPSHOTS, self.checkpoints)


def _curves(dynamics: Dynamics, times: Floats, scored: Sequence[FoldScores]) -> Curves:
    by_fold = [each.by_name() for each in scored]
    scores = {
        estimate: {
            scoring: np.stack([fold[estimate][scoring] for fold in by_fold]) for scoring in SCORINGS
        }
        for estimate in ESTIMATES
    }
    return Curves(dynamics, times, np.array([each.weight for each in scored]), scores)
