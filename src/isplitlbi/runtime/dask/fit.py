"""A fit on a cluster, and tests of its users: as on one machine, from the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isplitlbi import abnormal
from isplitlbi.abnormal import Abnormality
from isplitlbi.data.comparisons import Slots
from isplitlbi.errors import InvalidVotes, PathFailed
from isplitlbi.model.links import Link
from isplitlbi.path import MOST_SNAPSHOTS, Ending, RegularizationPath, spread_out
from isplitlbi.runtime.dask.cluster import Cluster, Fetch, Overall
from isplitlbi.runtime.dask.jobs import AbnormalJob, FoldJob, Keeping, PathJob, PilotJob
from isplitlbi.selection import ESTIMATES, SCORINGS, Curves, HeldOut, Rule, Scoring, Selection
from isplitlbi.solvers import (
    Checkpoints,
    Dynamics,
    Implicit,
    Progress,
    Scheme,
    room_for_snapshots,
    times_of,
)
from isplitlbi.typing import Floats

SIDE_BY_SIDE = 2  # paths of a cross-validation: one computes while the other waits for a total


class Fitted(NamedTuple):
    """What a fit on a cluster comes to."""

    selection: Selection | None
    path: RegularizationPath
    dynamics: Dynamics
    time: float


@dataclass(frozen=True)
class Fit:
    """A fit on a cluster; the settings are those of `ISplitLBI`."""

    cluster: Cluster
    link: Link
    scheme: Scheme
    candidates: Sequence[Dynamics]
    times: Floats | None
    time: float | None
    n_folds: int
    scoring: Scoring
    rule: Rule
    seed: int
    checkpoints: Checkpoints | None = None
    backend: str | None = None
    snapshots: Path | None = None
    progress: Callable[[Progress], None] | None = None

    def run(self) -> Fitted:
        """Choose the time, unless it is given, and follow the whole path."""
        if not isinstance(self.scheme, Implicit):
            raise ValueError("on a cluster only the implicit solver is practical.")
        n_folds = len(self.candidates) * self.n_folds if self.time is None else 0
        overall = Overall(1 + n_folds, self.progress)
        grids = [
            self._default_times(each) if self.times is None else self.times
            for each in self.candidates
        ]
        if self.time is None:
            selection = self._cross_validate(grids, overall)
            dynamics, stop, times = selection.dynamics, selection.time, selection.chosen.times
            return Fitted(selection, self._follow(dynamics, times, stop, overall), dynamics, stop)
        if len(self.candidates) > 1:
            raise ValueError("several nu or kappa need cross-validation: leave time unset.")
        times = np.union1d(grids[0], [self.time])
        path = self._follow(self.candidates[0], times, self.time, overall)
        return Fitted(None, path, self.candidates[0], self.time)

    def _default_times(self, dynamics: Dynamics) -> Floats:
        pilot = PilotJob(self.link, dynamics, self.cluster.n_threads, self.backend)
        return times_of(np.concatenate(self.cluster.run(pilot)))

    def _cross_validate(self, grids: list[Floats], overall: Overall) -> Selection:
        """Score the path of every candidate on every fold, as `selection.select` does."""
        cluster, n_folds = self.cluster, self.n_folds
        if not 2 <= n_folds <= cluster.n_votes:
            raise ValueError(
                f"n_folds is {n_folds}; it must be an integer from 2 to the {cluster.n_votes} "
                "votes."
            )
        stretches = cluster.stretches(self.seed)
        sizes = np.sum(cluster.ask("fold_sizes", [n_folds] * len(cluster), stretches), axis=0)
        folds = np.flatnonzero((sizes > 0) & (sizes < cluster.n_votes)).tolist()
        if not folds:
            raise InvalidVotes(
                f"{cluster.n_votes} votes are too few to hold any out: give more, or set the time."
            )

        def scores_of(candidate: int, fold: int) -> tuple[float, dict[str, dict[str, Floats]]]:
            job = FoldJob(
                self.link, self.candidates[candidate], self.scheme, grids[candidate], fold,
                n_folds, stretches, self.rule,
                self._keeping(f"candidate-{candidate}-fold-{fold}"), cluster.n_threads,
                self.backend,
            )  # fmt: skip
            found = cluster.run(job, overall.path())
            if (ending := found[0][0]) is not Ending.COMPLETE:
                raise PathFailed(ending.value)
            losses, tables, weight = (sum(each[place] for each in found) for place in (1, 2, 3))
            return float(weight), HeldOut.scores_of(losses / weight, tables)

        pool = ThreadPoolExecutor(SIDE_BY_SIDE)
        try:
            scored = list(
                pool.map(scores_of, *zip(*product(range(len(grids)), folds), strict=True))
            )
        except BaseException:
            cluster.stop()  # the other path need not be followed to its end
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        curves = []
        for number, (dynamics, grid) in enumerate(zip(self.candidates, grids, strict=True)):
            weights, scores = zip(*scored[number * len(folds) :][: len(folds)], strict=True)
            by_fold = {
                estimate: {
                    name: np.stack([each[estimate][name] for each in scores]) for name in SCORINGS
                }
                for estimate in ESTIMATES
            }
            curves.append(Curves(dynamics, grid, np.array(weights), by_fold))
        return Selection.best_of(curves, self.scoring, self.rule)

    def _follow(
        self, dynamics: Dynamics, times: Floats, chosen: float, overall: Overall
    ) -> RegularizationPath:
        """Follow the whole path; of its times, as many come back as memory allows."""
        n_kept = int(MOST_SNAPSHOTS / (2 * 8 * self.cluster.n_slots)) - 1
        n_kept = int(np.clip(n_kept, 0, len(times)))
        kept = spread_out(len(times), n_kept, int(np.searchsorted(times, chosen)))
        job = PathJob(
            self.link, dynamics, self.scheme, times, tuple(kept.tolist()), self._keeping("path"),
            self.cluster.n_threads, self.backend,
        )  # fmt: skip

        def take(fetch: Fetch, parts: list[RegularizationPath]) -> RegularizationPath:
            if parts[0].ending is not Ending.COMPLETE:
                raise PathFailed(parts[0].ending.value)
            return joined(fetch, parts, kept, self.snapshots)

        return self.cluster.collect(job, overall.path(), take)

    def _keeping(self, name: str) -> Keeping:
        if self.checkpoints is None:
            return Keeping(None, 0.0, len(self.cluster))
        folder = self.checkpoints.folder.absolute() / name
        return Keeping(folder, self.checkpoints.every, len(self.cluster))


def abnormality_on(
    cluster: Cluster,
    link: Link,
    consensus: Floats,
    *,
    fdr: float,
    seed: int,
    delta: float,
    progress: Callable[[float], None] | None = None,
) -> Abnormality:
    """Test every user on the workers; the parameters are those of `abnormal.find_abnormal`."""
    job = AbnormalJob(
        link, consensus, fdr, seed, delta, len(cluster.source.users), cluster.n_votes,
        cluster.stretches(seed), cluster.n_threads,
    )  # fmt: skip
    tell = None if progress is None else lambda reached: progress(reached.done)
    return abnormal.joined(cluster.run(job, tell))


def joined(
    fetch: Fetch,
    parts: Sequence[RegularizationPath],
    kept: NDArray[np.intp],
    folder: Path | None,
) -> RegularizationPath:
    """Put the paths of all shards together, user after user, at the times that were kept.

    Snapshots are fetched from the shards one at a time, so that no more than their sum is held.
    """
    first, before = parts[0], np.cumsum([0, *(part.slots.start[-1] for part in parts)])
    snapshots: dict[str, Any] = {
        name: room_for_snapshots((len(kept), int(before[-1])), name, folder)
        for name in ("deviation", "sparse")
    }
    for number, (begin, end) in enumerate(pairwise(before.tolist())):
        for name, values in snapshots.items():
            for row in range(len(kept)):
                values[row, begin:end] = fetch(number, "snapshot", name, row)
        fetch(number, "forget_snapshots")
    start = [part.slots.start[1:] + slots for part, slots in zip(parts, before, strict=False)]
    return replace(
        first,
        times=first.times[kept],
        consensus=first.consensus[kept],
        slots=Slots(
            np.concatenate([[0], *start]),
            np.concatenate([part.slots.coordinate for part in parts]),
        ),
        entry_times=np.concatenate([part.entry_times for part in parts]),
        **snapshots,
    )
