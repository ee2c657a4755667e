"""What is on a worker: the votes of some users, and the jobs that are done with them."""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.summary import digest_of
from isplitlbi.data.vocabulary import Vocabulary
from isplitlbi.solvers import Exchange, Progress, Reporter, State, Stopped
from isplitlbi.typing import Floats


class Piece(NamedTuple):
    """Some votes of one shard; users are counted from the shard's first."""

    user: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]
    weight: Floats | None
    group: pl.Series | None  # what the user's groups are called

    @classmethod
    def of(cls, votes: Comparisons, first: int) -> Piece:
        """Take votes of users from a first one on."""
        group = None
        if votes.group is not None:
            names = votes.group if votes.groups is None else votes.groups[votes.group]
            kind = pl.Int64 if names.dtype.kind == "i" else pl.String
            group = pl.Series(names.tolist(), dtype=kind)
        user = votes.user - np.int32(first)
        return cls(user, votes.left, votes.right, votes.outcome, votes.weight, group)


class Counted(NamedTuple):
    """What a shard holds, and what is to be known of the votes as a whole."""

    n_votes: int
    n_units: int
    n_slots: int
    n_ties: int
    digest: tuple[int, ...]  # see `Overview`


class Heard(NamedTuple):
    """What a shard says: a sum to be added up, a result, or what went wrong."""

    what: str  # "sum", "result", "failed" or "closed"
    value: Any
    progress: Progress


CLOSED = Heard("closed", None, Progress(0.0, 0.0, 0))


class Job(Protocol):
    """Something that all shards do together."""

    def run(self, shard: Shard, exchange: Exchange, reporter: Talk) -> Any:
        """Do the shard's part of it; sums over all users come from the exchange."""


class Shard:
    """The votes of some users, on a worker, and what is being done with them (a Dask actor)."""

    def __init__(self, number: int, first: int, end: int, n_items: int, *pieces: Piece) -> None:
        self.number, self.first = number, first
        *columns, groups = zip(*pieces, strict=True)
        of_votes: dict[str, Any] = {
            name: None if parts[0] is None else np.concatenate(parts)
            for name, parts in zip(Piece._fields, columns, strict=False)
        }
        group = None
        if groups[0] is not None:
            _, (group,) = Vocabulary.indexed(pl.concat(groups), what="group")
        self.votes = Comparisons(
            np.arange(end - first), np.arange(n_items), **of_votes, group=group
        )
        self.snapshots: dict[str, Floats] = {}
        self._talks: dict[str, Talk] = {}
        self._closed: set[str] = set()

    def answers(self) -> bool:
        """Say that the shard is there."""
        return True

    def count(self) -> Counted:
        """Say what there is."""
        votes = self.votes
        return Counted(
            len(votes), votes.n_units, len(votes.slots.coordinate),
            int(np.sum(votes.outcome == 0)), tuple(digest_of(votes, self.first).tolist()),
        )  # fmt: skip

    def snapshot(self, name: str, row: int) -> Floats:
        """Return one of the snapshots that were kept of the path that was followed last."""
        values: Floats = self.snapshots[name][row]
        return values

    def forget_snapshots(self) -> None:
        """Free their memory."""
        self.snapshots = {}

    def fold_sizes(self, n_folds: int, stretch: Stretch) -> NDArray[np.int64]:
        """Return how many votes each fold holds out."""
        return np.bincount(self.folds(n_folds, stretch), minlength=n_folds)

    def folds(self, n_folds: int, stretch: Stretch) -> NDArray[np.int64]:
        """Return the fold of every vote; the same as if all users were here."""
        return self.votes.in_order.fold_of_votes(n_folds, stretch.numbers())

    async def begin(self, key: str, job: Job) -> Heard:
        """Begin a job, and return what it first has to say."""
        if key in self._closed:
            return CLOSED
        self._talks[key] = Talk(self, job)
        return await self._talks[key].listen()

    async def answer(self, key: str, total: Floats) -> Heard:
        """Give a job the total it waits for, and return what it says next."""
        talk = self._talks.get(key)
        if talk is None:  # it was closed; messages may overtake each other
            return CLOSED
        talk.told.put(total)
        return await talk.listen()

    def close(self, key: str) -> None:
        """Give up a job."""
        self._closed.add(key)
        if key in self._talks:
            self._talks.pop(key).told.put(None)


class Talk(Reporter):
    """A job in a thread of its own, and the exchange between it and the client."""

    def __init__(self, shard: Shard, job: Job) -> None:
        super().__init__(1, None)
        self.told: queue.SimpleQueue[Floats | None] = queue.SimpleQueue()
        self._said: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._progress = Progress(0.0, 0.0, 0)
        threading.Thread(target=self._work, args=(shard, job), daemon=True).start()

    async def listen(self) -> Heard:
        """Wait for what the job says next."""
        return await asyncio.get_running_loop().run_in_executor(None, self._said.get)

    def advance(self, share: float, state: State) -> None:
        """Remember how far the job has got; the client hears of it with the next sum."""
        out = int(np.isfinite(state.entry_times).sum())
        self._progress = Progress(self._progress.done + share, state.time, out)

    def reached(self, done: float) -> None:
        """Remember the same of a job that is no path."""
        self._progress = self._progress._replace(done=done)

    def _work(self, shard: Shard, job: Job) -> None:
        try:
            self._say("result", job.run(shard, self._exchange, self))
        except Stopped:
            pass
        except Exception as error:  # whatever it is, the client must hear of it
            self._say("failed", error)

    def _exchange(self, values: Floats) -> Floats:
        self._say("sum", values)
        total = self.told.get()
        if total is None:
            raise Stopped
        return total.copy()  # workers in one process are all given the same array

    def _say(self, what: str, value: Any) -> None:
        self._said.put(Heard(what, value, self._progress))


class Stretch(NamedTuple):
    """Where the random numbers of one shard lie among those of all.

    From one generator every unit of votes takes a number, and then every user.
    """

    seed: int
    units_before: int
    all_units: int
    users_before: int

    def numbers(self) -> _Numbers:
        """Return a stand-in for the generator, which draws the shard's numbers alone."""
        return _Numbers(self)


class _Numbers:
    def __init__(self, stretch: Stretch) -> None:
        self._seed = stretch.seed
        self._begins = iter((stretch.units_before, stretch.all_units + stretch.users_before))

    def random(self, n: int) -> Floats:
        """Return the shard's part of the next numbers."""
        generator = np.random.PCG64(self._seed).advance(next(self._begins))
        return np.random.Generator(generator).random(n)
