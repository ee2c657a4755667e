"""What a fit consists of: jobs that a runtime does, on this machine or on all that hold users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Slots
from isplitlbi.data.splits import DEFAULT_FOLDS, check_folds, held_out_parts, lower_first
from isplitlbi.errors import PathFailed
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.terms import Terms
from isplitlbi.path import Ending, RegularizationPath, spread_out
from isplitlbi.runtime.base import Runtime, Stored
from isplitlbi.runtime.progress import Reporter
from isplitlbi.selection import Estimate, FoldScores, HeldOut, Rule, score_votes
from isplitlbi.solvers.before_entry import residuals, times_of
from isplitlbi.solvers.checkpoints import Checkpoints
from isplitlbi.solvers.common import common_terms, fit_common
from isplitlbi.solvers.driver import follow, foretell, room_for_snapshots
from isplitlbi.solvers.likelihood import SCORE_VARIANCE
from isplitlbi.solvers.scales import (
    Given,
    Sizes,
    estimate_sizes,
    fit_sized,
    of_the_many,
    refreshed,
)
from isplitlbi.solvers.settings import Dynamics, PathSettings
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats, Indices

__all__ = [
    "CountFolds",
    "EstimateSizes",
    "FindSizesOfMany",
    "FindTimes",
    "Fold",
    "Folding",
    "FollowPath",
    "Foretell",
    "RefreshReference",
    "ScoreFold",
    "ScoreOneRanking",
    "ScoreSizes",
    "SizesScore",
]


class _FoundByAll:
    """A job of which every machine finds the whole result, since they exchange sums on the way."""

    def join(self, parts: Sequence[Any]) -> Any:
        """Return what they have found."""
        return parts[0]


@dataclass(frozen=True)
class FindTimes:
    """Find the times of a path, from what the consensus leaves unexplained of every user."""

    link: Link
    dynamics: Dynamics
    terms: Terms
    knows_nu: bool = False  # whether nu is what the votes tell

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> Floats:
        """Return what is unexplained of the users here."""
        return residuals(votes, self.link, self.dynamics, runtime, self.terms)

    def join(self, parts: Sequence[Floats]) -> Floats:
        """Return the times."""
        return times_of(np.concatenate(parts), knows_nu=self.knows_nu)


@dataclass(frozen=True)
class Foretell(_FoundByAll):
    """Say how long so many paths will take, where that may be long."""

    settings: PathSettings
    n_paths: int

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> None:
        """Try some steps, and say it."""
        foretell(votes, self.settings, runtime, self.n_paths)


@dataclass(frozen=True)
class EstimateSizes(_FoundByAll):
    """Estimate how large the terms of a model are."""

    link: Link
    terms: Terms
    given: Given
    seed: int

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> Sizes:
        """Return what all machines find together."""
        return estimate_sizes(votes, self.link, self.terms, runtime, self.given, self.seed)


@dataclass(frozen=True)
class FindSizesOfMany(_FoundByAll):
    """Find sizes that fit the users in the middle, where others differ by far more."""

    link: Link
    sizes: Sizes
    given: Given
    seed: int

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> Sizes:
        """Return what all machines find together."""
        return of_the_many(votes, self.link, self.sizes, runtime, self.given, self.seed)


@dataclass(frozen=True)
class RefreshReference(_FoundByAll):
    """Find the reference of the sharpness once more, now that sizes are known."""

    link: Link
    sizes: Sizes

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> Sizes:
        """Return what all machines find together."""
        return refreshed(votes, self.link, self.sizes, runtime)


@dataclass(frozen=True, eq=False)
class Folding:
    """How votes are dealt to folds."""

    n_folds: int
    seed: int | None
    given: Indices | None = None
    stratified: bool = True  # by outcome, as in the paper
    has_sides: bool = True  # whether left and right mean something; else they do not count

    def check(self, n_votes: int) -> None:
        """Refuse a number of folds that cannot be."""
        if self.given is None and not n_votes < self.n_folds == DEFAULT_FOLDS:
            check_folds(self.n_folds, n_votes)

    def parts(self, votes: Comparisons, runtime: Runtime) -> list[tuple[Comparisons, Comparisons]]:
        """Return training and held-out votes of every fold that holds out any."""
        others = None if runtime.is_alone else runtime

        def deal() -> list[tuple[Comparisons, Comparisons]]:
            numbers: Any = runtime.numbers(self.seed)
            dealt = votes if self.has_sides else lower_first(votes)
            return held_out_parts(dealt, self.n_folds, numbers, self.given, others, self.stratified)

        return runtime.kept(self, deal)


@dataclass(frozen=True)
class CountFolds(_FoundByAll):
    """Count the folds that hold out some votes."""

    folding: Folding

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> int:
        """Return their number, which is the same everywhere."""
        return len(self.folding.parts(votes, runtime))


class Fold(NamedTuple):
    """Votes that are held out together, and all others."""

    folding: Folding
    number: int

    def parts(self, votes: Comparisons, runtime: Runtime) -> tuple[Comparisons, Comparisons]:
        """Return training and held-out votes of the users here."""
        return self.folding.parts(votes, runtime)[self.number]


class SizesScore(NamedTuple):
    """How well the fit before anybody leaves predicts the votes of one fold."""

    loss: float  # sum over votes
    consensus: Floats  # found without them


@dataclass(frozen=True, eq=False)
class ScoreSizes:
    """Fit what is before anybody leaves without the votes of one fold, and predict these."""

    link: Link
    sizes: Sizes
    fold: Fold
    start: Floats | None  # a consensus that was found without these votes

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> SizesScore:
        """Return how well sizes predict the users here."""
        training, held_out = self.fold.parts(votes, runtime)
        fitted = fit_sized(training, self.link, self.sizes, runtime, self.start)
        score = score_votes(held_out, fitted, self.link, loops=runtime.loops)
        return SizesScore(score["log_loss"] * held_out.total_weight, fitted.consensus)

    def join(self, parts: Sequence[SizesScore]) -> SizesScore:
        """Add up what was found of the users of several machines."""
        return SizesScore(sum(part.loss for part in parts), parts[0].consensus)


class LossOfFold(NamedTuple):
    """How well something predicts the votes of one fold."""

    loss: float  # sum over votes
    weight: float  # of the votes


@dataclass(frozen=True, eq=False)
class ScoreOneRanking:
    """Fit one ranking for all without the votes of one fold, and predict these."""

    settings: PathSettings  # of which link, terms and delta count
    fold: Fold

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> LossOfFold:
        """Return how well it predicts the users here."""
        training, held_out = self.fold.parts(votes, runtime)
        link, terms = self.settings.link, self.settings.terms
        terms = common_terms(terms, has_ties=terms.has_ties)
        # The paper's terms do not hold scores.
        variance = min(terms.score_variance, SCORE_VARIANCE)
        consensus = fit_common(
            training, link, terms, variance=variance, delta=self.settings.dynamics.delta,
            runtime=runtime,
        )  # fmt: skip
        alike = Parameters.of_consensus(held_out, consensus)
        score = score_votes(held_out, alike, link, loops=runtime.loops)
        weight = held_out.total_weight
        return LossOfFold(score["log_loss"] * weight, weight)

    def join(self, parts: Sequence[LossOfFold]) -> float:
        """Return the mean loss of the votes of all machines."""
        return sum(part.loss for part in parts) / sum(part.weight for part in parts)


@dataclass(frozen=True)
class ScoreFold:
    """Follow a path without the votes of one fold, which it predicts.

    It ends when the log-loss of an estimate has long passed its best, where one is named.
    """

    settings: PathSettings
    fold: Fold
    rule: Rule
    ends_by: Estimate | None
    name: str  # of the checkpoint
    checkpoints: Checkpoints | None

    def run(
        self, votes: Comparisons, runtime: Runtime, reporter: Reporter
    ) -> tuple[Ending, FoldScores]:
        """Return how the path ended, and how well it predicts all users."""
        training, others = self.fold.parts(votes, runtime)
        settings = replace(self.settings, scheme=self.settings.scheme.rough())
        held_out = HeldOut(others, settings, self.rule, runtime, self.ends_by)
        checkpoint = None
        if self.checkpoints is not None:
            filled = held_out.found.arrays
            checkpoint = self.checkpoints.of_path(self.name, settings.scheme, runtime, filled)
        path = follow(
            training, settings, runtime, observe=held_out.observe, keep=False,
            checkpoint=checkpoint, reporter=reporter,
        )  # fmt: skip
        return path.ending, held_out.found

    def join(self, parts: Sequence[tuple[Ending, FoldScores]]) -> FoldScores:
        """Return what all machines have found."""
        ending, scores = parts[0]
        _refuse_incomplete(ending)
        return scores


class _PartOfPath(NamedTuple):
    """A path as far as it belongs to the users of one machine, without their snapshots."""

    path: RegularizationPath
    kept: Indices  # places of the snapshots among the times


@dataclass(frozen=True)
class FollowPath:
    """Follow a path and keep snapshots of it: all, or as many as may be sent.

    Attributes
    ----------
    settings : PathSettings
    chosen : float or None
        A time of which there must be a snapshot.
    folder : Path or None
        For the snapshots.
    most_sent : float
        Bytes of snapshots that other machines send.
    checkpoints : Checkpoints or None
    """

    settings: PathSettings
    chosen: float | None
    folder: Path | None
    most_sent: float
    checkpoints: Checkpoints | None

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> Any:
        """Return the path; its snapshots stay where they are if that is not here."""
        if runtime.is_alone:
            return follow(
                votes, self.settings, runtime, keep=self.folder or True,
                checkpoint=self._checkpoint(runtime), reporter=reporter,
            )  # fmt: skip
        layout = self.settings.terms.layout(votes)
        (n_slots,) = runtime.total(float(layout.n_slots))
        kept = self._kept(n_slots)
        deviation, sparse = np.zeros((2, len(kept), layout.n_slots))

        def observe(index: int, state: State) -> None:
            for row in np.flatnonzero(kept == index):
                deviation[row], sparse[row] = state.deviation, state.sparse

        snapshots = {"deviation": deviation, "sparse": sparse}
        path = follow(
            votes, self.settings, runtime, observe=observe, keep=False,
            checkpoint=self._checkpoint(runtime, snapshots), reporter=reporter,
        )  # fmt: skip
        return Stored(_PartOfPath(path, kept), snapshots)

    def join(self, parts: Sequence[Any]) -> RegularizationPath:
        """Put the paths of all users together, at the times of which there are snapshots."""
        if isinstance(parts[0], RegularizationPath):  # there is no other
            path: RegularizationPath = parts[0]
            _refuse_incomplete(path.ending)
            return path
        _refuse_incomplete(parts[0].value.path.ending)
        return _joined(parts, self.folder)

    def _kept(self, n_slots: float) -> Indices:
        times = self.settings.followed
        n_kept = int(np.clip(int(self.most_sent / (2 * 8 * n_slots)) - 1, 0, len(times)))
        chosen = times[-1] if self.chosen is None else self.chosen
        return spread_out(len(times), n_kept, int(np.searchsorted(times, chosen)))

    def _checkpoint(self, runtime: Runtime, filled: dict[str, Floats] | None = None) -> Any:
        if self.checkpoints is None:
            return None
        return self.checkpoints.of_path("path", self.settings.scheme, runtime, filled)


def _refuse_incomplete(ending: Ending) -> None:
    if ending is not Ending.COMPLETE:
        raise PathFailed(ending.value)


def _joined(parts: Sequence[Stored], folder: Path | None) -> RegularizationPath:
    """Put the paths of all machines together, user after user.

    Snapshots are taken from the machines one at a time, so that no more than their sum is held.
    """
    paths: list[RegularizationPath] = [part.value.path for part in parts]
    first, kept = paths[0], parts[0].value.kept
    before = np.cumsum([0, *(path.slots.start[-1] for path in paths)])
    snapshots: dict[str, Any] = {
        name: room_for_snapshots((len(kept), int(before[-1])), name, folder)
        for name in ("deviation", "sparse")
    }
    for part, begin, end in zip(parts, before[:-1], before[1:], strict=True):
        for name, values in snapshots.items():
            for row in range(len(kept)):
                values[row, begin:end] = part.row(name, row)
    starts = [path.slots.start[1:] + slots for path, slots in zip(paths, before, strict=False)]
    coordinates = np.concatenate([path.slots.coordinate for path in paths])
    return replace(
        first,
        slots=Slots.of(np.concatenate([[0], *starts]), coordinates, first.vector),
        times=first.times[kept],
        consensus=first.consensus[kept],
        entry_times=np.concatenate([path.entry_times for path in paths]),
        **snapshots,
    )
