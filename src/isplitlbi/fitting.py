"""One fit, wherever it is done: votes and settings in, `Fitted` out.

What is to be done is stated as `jobs`; a runtime does them, on this machine or on all machines that
hold users.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.cross_validation import CrossValidation
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.data.splits import DEFAULT_FOLDS
from isplitlbi.data.summary import Summary
from isplitlbi.data.vocabulary import counted
from isplitlbi.errors import InvalidSetting, PathFailed
from isplitlbi.jobs import (
    CountFolds,
    EstimateSizes,
    FindSizesOfMany,
    FindTimes,
    Fold,
    Folding,
    FollowPath,
    Foretell,
    RefreshReference,
)
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.terms import PAPER, Terms
from isplitlbi.path import MOST_SNAPSHOTS, Ending, RegularizationPath
from isplitlbi.runtime.base import Job, Runtime, Workforce
from isplitlbi.runtime.local import Local
from isplitlbi.runtime.progress import Progress, Reporter
from isplitlbi.selection import Estimate, Rule, Scoring, Selection
from isplitlbi.sizing import Search
from isplitlbi.solvers.average import less_sharp
from isplitlbi.solvers.beside import follow_beside
from isplitlbi.solvers.checkpoints import Checkpoints
from isplitlbi.solvers.driver import follow
from isplitlbi.solvers.implicit import Implicit
from isplitlbi.solvers.likelihood import fit_before_entries, fit_consensus
from isplitlbi.solvers.scales import SCORES, Given, estimate_sizes
from isplitlbi.solvers.settings import Dynamics, PathSettings, Scheme
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats, Indices

__all__ = ["HELD_OUT", "FitSettings", "Fitted", "fit", "fit_again", "fit_beside", "fit_crowd"]

# Where the user in the middle deviates by less than this share of what all do, few differ by much,
# and nu is what fits the others. It was settled on simulated studies: benchmarks/sizes.py. Below
# the second share, less damping than there only makes paths longer.
FEW_DIFFER, LEAST_ORDINARY = 0.75, 0.3
MANY_USERS = 15  # of fewer, the one in the middle says little of the others
SHARE_OF_SIZING = 0.4  # of the work of a fit

log = logging.getLogger("isplitlbi")
HELD_OUT = "held_out"  # the logger of warnings about predictions of held-out votes


@dataclass(frozen=True, eq=False)
class FitSettings:
    """Everything that decides a fit, besides the votes.

    Attributes
    ----------
    link : Link
    candidates : tuple of Dynamics
        What to choose from; with a sizing, nu is what it finds.
    sizing : Given or None
        What is known of how large the terms are, where the rest is to be estimated.
    scheme : Scheme
        How paths are followed.
    terms : Terms
        In which ways users may differ.
    times : (n_times,), optional
        Times of the path; by default found from the votes.
    time : float, optional
        Where to stop. By default chosen by cross-validation.
    n_folds : int
        Folds of the cross-validation. With fewer than five votes, or none to hold out, no time is
        chosen.
    folds : (n_votes,), optional
        The fold of every vote, where it is not to be drawn.
    scoring, rule, estimate
        What the cross-validation optimises, how outcomes are predicted in it, and by what.
    seed : int or None
        Of the folds.
    has_sides : bool
        Whether left and right mean something; folds do not depend on them otherwise.
    keeps_kappa : bool
        Whether kappa is as given, where few differ by much, too.
    stops_at_time : bool
        Whether the path is followed no further than to a time that is given. Nothing is predicted
        by what comes later, and it takes most of the work.
    snapshots : Path, optional
        Folder for the snapshots of the users; in memory by default.
    """

    link: Link
    candidates: tuple[Dynamics, ...] = (Dynamics(),)
    sizing: Given | None = None
    scheme: Scheme = field(default_factory=Implicit)
    terms: Terms = PAPER
    times: Floats | None = None
    time: float | None = None
    n_folds: int = DEFAULT_FOLDS
    folds: Indices | None = None
    scoring: Scoring = "log_loss"
    rule: Rule = "map"
    estimate: Estimate = "dense"
    seed: int | None = 0
    has_sides: bool = True
    keeps_kappa: bool = True
    stops_at_time: bool = False
    snapshots: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        if self.sizing is not None and len(self.candidates) > 1:
            raise InvalidSetting(
                "several nu or kappa can be compared where the scales are not estimated: give "
                "scales, or one nu and one kappa."
            )
        if self.time is not None and len(self.candidates) > 1:
            raise InvalidSetting("several nu or kappa need cross-validation: leave time unset.")

    def path(self, model: Model, times: Floats) -> PathSettings:
        """Return the settings of one path."""
        return PathSettings(self.link, model.dynamics, self.scheme, times, model.terms)

    def identity(self) -> dict[str, Any]:
        """Return all that decides the result, in plain values."""
        if self.seed is None:
            raise InvalidSetting("checkpoints need a random_state, or the folds would be others.")
        return {
            "link": self.link.name,
            "candidates": [asdict(each) for each in self.candidates],
            "sizing": None if self.sizing is None else self.sizing.as_dict(),
            "scheme": repr(self.scheme),
            "terms": self.terms.as_dict(),
            "times": None if self.times is None else self.times.tolist(),
            "time": self.time,
            "n_folds": self.n_folds,
            "folds": None if self.folds is None else self.folds.tolist(),
            "scoring": self.scoring,
            "rule": self.rule,
            "estimate": self.estimate,
            "seed": self.seed,
            "keeps_kappa": self.keeps_kappa,
            "stops_at_time": self.stops_at_time,
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
    spreads : mapping
        By how much users differ in each term, where that was estimated: a standard deviation of
        margins or, of the threshold, of thresholds.
    date : str
        The day of the fit (UTC), such as 2026-01-31; empty where it is not known.
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
    spreads: Mapping[str, float] = field(default_factory=dict)
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())


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


def fit_again(fitted: Fitted, scheme: Scheme, local: Local) -> Fitted:
    """Fit the votes at hand by the settings of another fit, up to its time.

    Nothing is chosen anew. Terms, nu, kappa and all times of the path are those of that fit: on its
    own votes, the parameters are the same to the last bit. The path has one snapshot, at the time.
    """
    path, dynamics, time = fitted.path, fitted.dynamics, fitted.time
    if path is None or dynamics is None or time is None:
        raise InvalidSetting("this fit follows no path.")
    times = np.union1d(path.times, path.known_course().times[-1])
    settings = PathSettings(fitted.link, dynamics, scheme, times, path.terms, stop=time)
    at, there = int(np.searchsorted(path.times, time)), []

    def look(index: int, state: State) -> None:
        if index == at:
            there.append(state.copy())

    again = follow(local.votes, settings, local, observe=look, keep=False)
    if again.ending is not Ending.COMPLETE:
        raise PathFailed(again.ending.value)
    state = there[0]
    here = replace(
        again, times=path.times[[at]], consensus=state.consensus[None],
        deviation=state.deviation[None], sparse=state.sparse[None],
    )  # fmt: skip
    return replace(
        fitted, votes=local.votes, summary=Summary.of(local.votes), parameters=here.at(time),
        path=here, selection=None, costs=None,
    )  # fmt: skip


def fit_beside(fitted: Fitted, scheme: Scheme, local: Local) -> Fitted:
    """Follow the users of other votes beside the path of a fit, of which nothing changes.

    The votes have the items of the fit, and features in its units. The path of what is returned has
    one snapshot, at the time of the fit.
    """
    path, dynamics, time = fitted.path, fitted.dynamics, fitted.time
    if path is None or dynamics is None or time is None:
        raise InvalidSetting("this fit follows no path.")
    settings = PathSettings(fitted.link, dynamics, scheme, path.times, path.terms)
    found = follow_beside(local.votes, settings, path.known_course(), time, local)
    layout = path.terms.layout(local.votes)
    own = less_sharp(layout, path.terms, path.sharper_by(time), *found[:2], found.has_left(time))
    beside = replace(
        path, slots=layout.slots, times=np.array([time]),
        consensus=path.consensus_at(time).values[None], deviation=own[0][None],
        sparse=own[1][None], entry_times=found.entry_times, course=None,
    )  # fmt: skip
    return replace(
        fitted, votes=local.votes, summary=Summary.of(local.votes), parameters=beside.at(time),
        path=beside, selection=None, costs=None,
    )  # fmt: skip


def fit_crowd(votes: Comparisons, settings: FitSettings, runtime: Runtime) -> Fitted:
    """Fit one ranking for all, where nobody knows whose votes they are.

    There is nothing of users' own, and so no path to follow and no time to choose. The prior of
    scores and habits is as wide as the votes tell; the paper's terms have none.
    """
    link, terms = settings.link, settings.terms
    if terms.ties == "bounded":
        delta = settings.candidates[0].delta
        common = fit_consensus(votes, link, delta, runtime=runtime)
        parameters = Parameters.of_consensus(votes, common)
    else:
        sizes = estimate_sizes(votes, link, terms.of_crowd(), runtime, seed=settings.seed or 0)
        found = fit_before_entries(votes, link, Dynamics(sizes.nu), runtime, terms=sizes.terms)
        parameters = replace(found, deviation=np.zeros_like(found.deviation))
    return Fitted(votes, Summary.of(votes), link, None, None, parameters)


def _refuse_on_a_cluster(settings: FitSettings) -> None:
    if settings.folds is not None:
        raise InvalidSetting("folds cannot be given together with a client.")
    if settings.seed is None:
        raise InvalidSetting("a fit on a cluster needs a random_state.")
    if not settings.scheme.works_together:
        raise InvalidSetting("on a cluster only the implicit solver is practical.")


class Model(NamedTuple):
    """One choice of all that a path is made from, besides its times."""

    dynamics: Dynamics
    terms: Terms


@dataclass(frozen=True)
class _Fit:
    """The order in which things are done."""

    votes: Comparisons | Parts
    settings: FitSettings
    runtime: Workforce
    checkpoints: Checkpoints | None
    reporter: Reporter

    def run(self) -> Fitted:
        settings, path, found = self.settings, None, None
        folds, share, time = [], 1.0, settings.time
        if time is None:
            folds = self._folds()
        models = [Model(each, settings.terms) for each in settings.candidates]
        if settings.sizing is not None:
            share = 1.0 - SHARE_OF_SIZING
            found = self._size(folds, self.reporter.part(SHARE_OF_SIZING))
            models = [found.model]
        grids = [self._times(each) for each in models]
        walk = self.reporter.part(share)
        if not settings.scheme.works_together:
            n_paths = 1 + len(models) * len(folds)
            of_a_path = Foretell(settings.path(models[0], grids[0]), n_paths)
            self.runtime.run(of_a_path, Reporter())
        if folds:
            selection, path, model = self._cross_validate(models, grids, folds, found, walk)
            time, times = selection.time, selection.chosen.times
        else:
            selection, model = None, models[0]
            time = float(grids[0][0] if time is None else time)
            times = np.union1d(grids[0], [time])
        if path is None:
            job = self._whole_path(model, times, time)
            path = self.runtime.run(job, walk.part(1.0 / (1 + len(models) * len(folds))))
        return Fitted(
            self.votes, self.runtime.summary, settings.link, model.dynamics, time, path.at(time),
            path, selection, self.runtime.costs, spreads={} if found is None else found.spreads,
        )  # fmt: skip

    def _folds(self) -> list[Fold]:
        """Return the folds that hold out some votes.

        There are none where the votes are too few. No time is chosen then: it is the first of the
        path.
        """
        settings = self.settings
        # Folds in which everybody ties as often as elsewhere flatter thresholds of their own.
        stratified = settings.terms.ties == "bounded"
        folding = Folding(
            settings.n_folds, settings.seed, settings.folds, stratified, settings.has_sides
        )
        n_votes = self.runtime.summary.n_votes
        folding.check(n_votes)
        n_folds: int = self.runtime.run(CountFolds(folding), Reporter())
        if n_folds == 0:
            log.warning(
                "%s %s too few to hold some out and choose a time on the path, so the time is the "
                "first, at which nobody has left the consensus. Give more votes, or set the time.",
                counted(n_votes, "vote"), "is" if n_votes == 1 else "are",
            )  # fmt: skip
        return [Fold(folding, number) for number in range(n_folds)]

    def _size(self, folds: list[Fold], reporter: Reporter) -> Sizing:
        """Find out how large terms are: from all votes, and then by what predicts others best."""
        settings, given = self.settings, self.settings.sizing or Given()
        link, first = settings.link, settings.candidates[0]
        job = EstimateSizes(link, settings.terms, given, settings.seed or 0)
        sizes = self.runtime.run(job, Reporter())
        reporter.advance(0.3)
        search, kappa = Search(self.runtime, link, folds, reporter.part(0.7)), first.kappa
        is_many = len(self.runtime.summary.users) >= MANY_USERS
        if given.nu is None and is_many and sizes.ordinary < FEW_DIFFER:
            if not settings.keeps_kappa:  # whoever leaves goes further, and sooner
                kappa /= max(sizes.ordinary, LEAST_ORDINARY) ** 2
            sizes = self.runtime.run(
                FindSizesOfMany(link, sizes, given, settings.seed or 0), Reporter()
            )
            sizes = search.best_from(search.lowered(sizes), (SCORES,))
        else:
            sizes = search.best_from(sizes, given.unknown(sizes.terms))
        sizes = self.runtime.run(RefreshReference(link, sizes), Reporter())
        references = search.references(sizes)
        reporter.reach(Progress(1.0, 0.0, 0))
        model = Model(replace(first, nu=sizes.nu, kappa=kappa), sizes.terms)
        return Sizing(model, sizes.spreads, references)

    def _times(self, model: Model) -> Floats:
        if self.settings.times is not None:
            return np.asarray(self.settings.times, dtype=np.float64)
        sizing = self.settings.sizing
        knows_nu = sizing is not None and sizing.nu is None
        job = FindTimes(self.settings.link, model.dynamics, model.terms, knows_nu)
        times: Floats = self.runtime.run(job, Reporter())
        return times

    def _cross_validate(
        self,
        models: list[Model],
        grids: list[Floats],
        folds: list[Fold],
        found: Sizing | None,
        reporter: Reporter,
    ) -> tuple[Selection, RegularizationPath | None, Model]:
        """Score the path of every model on every fold; follow the whole one if it may be."""
        settings = self.settings

        def path(number: int, fold: Fold) -> PathSettings:
            model = models[number]
            if found is not None:
                model = model._replace(terms=model.terms.referring(found.references[fold.number]))
            return settings.path(model, grids[number])

        candidates = [[path(number, fold) for fold in folds] for number in range(len(models))]
        compared = CrossValidation(
            candidates, folds, settings.scoring, settings.rule, settings.estimate,
            cautious=settings.sizing is not None, checkpoints=self.checkpoints,
        )  # fmt: skip
        # Where all snapshots are kept, the path of the only model need not wait for the folds.
        beside: list[Job] = []
        if len(models) == 1 and self.runtime.is_alone:
            beside = [self._whole_path(models[0], grids[0], None)]
        selection, paths = compared.run(self.runtime, beside, reporter)
        for sentence in selection.warnings():
            log.getChild(HELD_OUT).warning("%s", sentence)
        chosen = models[selection.candidates.index(selection.chosen)]
        return selection, paths[0] if paths else None, chosen

    def _whole_path(self, model: Model, times: Floats, chosen: float | None) -> FollowPath:
        path = self.settings.path(model, times)
        if self.settings.stops_at_time and chosen is not None:
            path = replace(path, stop=chosen)
        return FollowPath(path, chosen, self.settings.snapshots, MOST_SNAPSHOTS, self.checkpoints)


class Sizing(NamedTuple):
    """A model whose sizes were found from the votes."""

    model: Model
    spreads: Mapping[str, float]
    references: Sequence[Floats | None]  # of the sharpness, by fold
