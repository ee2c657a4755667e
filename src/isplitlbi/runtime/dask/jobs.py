"""What all shards do together: find times, follow a path, score it on held-out votes, test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from isplitlbi.abnormal import Abnormality, find_abnormal
from isplitlbi.model.links import Link
from isplitlbi.path import Ending, RegularizationPath
from isplitlbi.runtime.dask.shard import Shard, Stretch, Talk
from isplitlbi.selection import HeldOut, Rule
from isplitlbi.solvers import (
    Checkpoint,
    Dynamics,
    Exchange,
    Scheme,
    Share,
    State,
    follow,
    residuals,
)
from isplitlbi.typing import Floats


class SharedCheckpoint(Checkpoint):
    """The checkpoint of one shard, in a folder that all workers reach.

    All shards write at the same times of the path, each beside its last one, which it deletes only
    when all have written: whatever happens, there is a time at which all have one.
    """

    def __init__(
        self, folder: Path, shard: int, n_shards: int, every: float, exchange: Exchange,
        results: dict[str, Floats],
    ) -> None:  # fmt: skip
        super().__init__(folder, every, results)
        self._folder, self._name = folder, f"shard-{shard}"
        self._n_shards, self._exchange = n_shards, exchange

    def restore(self) -> Any:
        """Return what all shards have written last; nothing if there is no such time."""
        written = {int(file.stem.rpartition("-")[2]): file for file in self._files()}
        has = np.zeros(1 + int(self._exchange(np.array([max(written, default=0.0)]))[0]))
        has[list(written)] = 1.0
        common = np.flatnonzero(self._exchange(has) == self._n_shards)
        if len(common) == 0:
            return None
        self.file = written[int(common[-1])]
        return super().restore()

    def offer(self, state: State, n_done: int, extra: Any, *, last: bool = False) -> None:
        """Write a state if it is time to, on any of the machines."""
        late = last or monotonic() >= self._due
        if not self._exchange(np.array([float(late)]))[0] > 0.0:
            return
        old = self._files()
        self._folder.mkdir(parents=True, exist_ok=True)
        self.file = self._folder / f"{self._name}-{n_done}.npz"
        super().offer(state, n_done, extra, last=True)
        self._exchange(np.zeros(1))  # until all have written
        for file in old:
            if file != self.file:
                file.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._name}-[0-9]*.npz"))


@dataclass(frozen=True)
class Keeping:
    """Where the checkpoints of a job are, if anywhere."""

    folder: Path | None
    every: float
    n_shards: int

    def of(self, shard: Shard, exchange: Exchange, **results: Floats) -> SharedCheckpoint | None:
        """Return the checkpoint of one shard."""
        if self.folder is None:
            return None
        return SharedCheckpoint(
            self.folder, shard.number, self.n_shards, self.every, exchange, results
        )


@dataclass(frozen=True)
class PilotJob:
    """Find what the consensus leaves unexplained of every user."""

    link: Link
    dynamics: Dynamics
    n_threads: int
    backend: str | None

    def run(self, shard: Shard, exchange: Exchange, reporter: Talk) -> Floats:
        """Return the residuals of the shard's users."""
        return residuals(
            shard.votes, self.link, self.dynamics, self.n_threads, self.backend, exchange
        )


@dataclass(frozen=True)
class PathJob:
    """Follow a path, of which some snapshots are kept, on the shard."""

    link: Link
    dynamics: Dynamics
    scheme: Scheme
    times: Floats
    kept: tuple[int, ...]  # places of the snapshots among the times
    keeping: Keeping
    n_threads: int
    backend: str | None

    def run(self, shard: Shard, exchange: Exchange, reporter: Talk) -> RegularizationPath:
        """Return the path of the shard's users, without the snapshots."""
        deviation, sparse = np.zeros((2, len(self.kept), len(shard.votes.slots.coordinate)))

        def observe(index: int, state: State) -> None:
            if index in self.kept:
                row = self.kept.index(index)
                deviation[row], sparse[row] = state.deviation, state.sparse

        path = follow(
            shard.votes, self.link, self.dynamics, self.scheme, self.times, observe=observe,
            keep=False, reporter=reporter, n_threads=self.n_threads, backend=self.backend,
            checkpoint=self.keeping.of(shard, exchange, deviation=deviation, sparse=sparse),
            exchange=exchange,
        )  # fmt: skip
        shard.snapshots = {"deviation": deviation, "sparse": sparse}
        return path


@dataclass(frozen=True)
class FoldJob:
    """Follow a path without the votes of one fold, which it predicts."""

    link: Link
    dynamics: Dynamics
    scheme: Scheme
    times: Floats
    fold: int
    n_folds: int
    stretches: tuple[Stretch, ...]
    rule: Rule
    keeping: Keeping
    n_threads: int
    backend: str | None

    def run(
        self, shard: Shard, exchange: Exchange, reporter: Talk
    ) -> tuple[Ending, Floats, Floats, float]:
        """Return how the path ended; sums of losses, confusions, and the weight of the votes."""
        fold = shard.folds(self.n_folds, self.stretches[shard.number])
        ordered = shard.votes.in_order
        training, votes = ordered.subset(fold != self.fold), ordered.subset(fold == self.fold)
        held_out = HeldOut(votes, self.link, self.rule, len(self.times), self.backend)
        path = follow(
            training, self.link, self.dynamics, self.scheme.rough(), self.times,
            observe=held_out.observe, keep=False, reporter=reporter,
            n_threads=self.n_threads, backend=self.backend,
            checkpoint=self.keeping.of(
                shard, exchange, losses=held_out.losses, tables=held_out.tables
            ),
            exchange=exchange,
        )  # fmt: skip
        return path.ending, held_out.losses * held_out.weight, held_out.tables, held_out.weight


@dataclass(frozen=True)
class AbnormalJob:
    """Test every user against the consensus."""

    link: Link
    consensus: Floats
    fdr: float
    seed: int
    delta: float
    n_users: int
    n_votes: int
    stretches: tuple[Stretch, ...]
    n_threads: int

    def run(self, shard: Shard, exchange: Exchange, reporter: Talk) -> Abnormality:
        """Return what is found of the shard's users."""
        stretch = self.stretches[shard.number]
        share = Share(
            exchange, shard.first, self.n_users, self.n_votes,
            lambda seed: stretch._replace(seed=seed).numbers(),
        )  # fmt: skip
        return find_abnormal(
            shard.votes, self.link, self.consensus, fdr=self.fdr, seed=self.seed,
            n_threads=self.n_threads, delta=self.delta, progress=reporter.reached, share=share,
        )  # fmt: skip
