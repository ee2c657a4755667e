"""What is on a worker: the votes of some users, and the jobs that are done with them."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.features import Features
from isplitlbi.data.summary import digest_of, sums_of_weights
from isplitlbi.data.vocabulary import Vocabulary
from isplitlbi.lazy import pl
from isplitlbi.runtime.base import Found, Job, Numbers, Runtime, Stored
from isplitlbi.runtime.progress import Progress, Reporter, Stopped
from isplitlbi.typing import Floats, Integers

__all__ = ["Counted", "Heard", "Piece", "Shard", "Whole"]

Exchange = Callable[[Floats], Floats]  # adds up over all shards; all get the same sum


class Piece(NamedTuple):
    """Some votes of one shard; users are counted from the shard's first."""

    user: Integers
    left: Integers
    right: Integers
    outcome: NDArray[np.int8]
    weight: Floats | None
    time: Floats | None
    duration: Floats | None
    features: Features | None  # in units of all votes
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
        columns = user, votes.left, votes.right, votes.outcome, votes.weight
        return cls(*columns, votes.time, votes.duration, votes.features, group)


class Counted(NamedTuple):
    """What a shard holds, and what is to be known of the votes as a whole."""

    n_votes: int
    n_ties: int
    digest: tuple[int, ...]  # see `data.summary`
    weights: tuple[float, float]  # their sum, and that of their squares


class Whole(NamedTuple):
    """What a shard must know of all of them, and what it works with."""

    n_shards: int
    n_users: int
    n_votes: int
    n_threads: int
    backend: str | None


class Heard(NamedTuple):
    """What a shard says: a sum to be added up, a result, or what went wrong."""

    what: str  # "sum", "result", "stored", "failed" or "closed"
    value: Any
    progress: Progress


CLOSED = Heard("closed", None, Progress(0.0))


class ShardRuntime(Runtime):
    """The runtime of one shard: all that it learns of the others goes through the exchange."""

    def __init__(self, number: int, first: int, whole: Whole, exchange: Exchange) -> None:
        self.loops, self.n_threads = kernels.backend(whole.backend), whole.n_threads
        self.first, self.n_users, self.n_votes = first, whole.n_users, whole.n_votes
        self._number, self._n_shards, self._exchange = number, whole.n_shards, exchange

    @property
    def is_alone(self) -> bool:
        """Whether all users are here; a shard does not count on it."""
        return False

    def numbers(self, seed: int | None) -> Numbers:
        """Return what draws the shard's part of one generator's numbers."""
        assert seed is not None, "all shards must draw from the same seed"
        return _Numbers(seed, self)

    def kept(self, key: Hashable, make: Callable[[], Found]) -> Found:
        """Return what is made, each time: a worker needs its memory for the votes."""
        return make()

    def counts(self, n: int) -> Floats:
        """Return how many every shard has, in their order, from how many there are here."""
        counts = np.zeros(self._n_shards)
        counts[self._number] = n
        return self._added(counts)

    def before(self, counts: Floats) -> int:
        """Return how many the shards before this one have together."""
        return int(counts[: self._number].sum())

    def _added(self, values: Floats) -> Floats:
        return self._exchange(values)


class _Numbers:
    """A stand-in for a generator: it passes over the numbers that other shards draw."""

    def __init__(self, seed: int, runtime: ShardRuntime) -> None:
        self._seed, self._runtime, self._drawn = seed, runtime, 0

    def random(self, n: int) -> Floats:
        """Return the shard's part of the next numbers."""
        counts = self._runtime.counts(n)
        begin = self._drawn + self._runtime.before(counts)
        self._drawn += int(counts.sum())
        generator = np.random.default_rng(self._seed)
        generator.bit_generator.advance(begin)  # type: ignore[attr-defined]
        return generator.random(n)


class Shard:
    """The votes of some users, on a worker, and what is being done with them (a Dask actor)."""

    def __init__(self, number: int, first: int, end: int, n_items: int, *pieces: Piece) -> None:
        self.number, self.first = number, first
        *columns, features, groups = zip(*pieces, strict=True)
        of_votes: dict[str, Any] = {
            name: None if parts[0] is None else np.concatenate(parts)
            for name, parts in zip(Piece._fields, columns, strict=False)
        }
        group = None
        if groups[0] is not None:
            _, (group,) = Vocabulary.indexed(pl.concat(groups), what="group")
        self.votes = Comparisons(
            np.arange(end - first), np.arange(n_items), **of_votes, group=group,
            features=None if features[0] is None else Features.joined(features),
        )  # fmt: skip
        self._conversations: dict[str, Conversation] = {}
        self._closed: set[str] = set()

    def answers(self) -> bool:
        """Say that the shard is there."""
        return True

    def count(self) -> Counted:
        """Say what there is."""
        votes = self.votes
        digest = tuple(digest_of(votes, self.first).tolist())
        n_ties = int(np.sum(votes.outcome == 0))
        return Counted(len(votes), n_ties, digest, sums_of_weights(votes))

    async def begin(self, key: str, job: Job, whole: Whole) -> Heard:
        """Begin a job, and return what it first has to say."""
        if key in self._closed:
            return CLOSED
        self._conversations[key] = Conversation(self, job, whole)
        return await self._conversations[key].listen()

    async def answer(self, key: str, total: Floats) -> Heard:
        """Give a job the total it waits for, and return what it says next."""
        conversation = self._conversations.get(key)
        if conversation is None:  # it was closed; messages may overtake each other
            return CLOSED
        conversation.told.put(total)
        return await conversation.listen()

    def row(self, key: str, name: str, row: int) -> Floats:
        """Return one row of an array that a job has stored here."""
        stored = self._conversations[key].stored
        assert stored is not None
        return stored.row(name, row)

    def close(self, key: str) -> None:
        """Give up a job, and what it has stored here."""
        self._closed.add(key)
        if key in self._conversations:
            self._conversations.pop(key).told.put(None)


class Conversation:
    """A job in a thread of its own, and the exchange between it and the client."""

    def __init__(self, shard: Shard, job: Job, whole: Whole) -> None:
        self.told: queue.SimpleQueue[Floats | None] = queue.SimpleQueue()
        self.stored: Stored | None = None
        self._said: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._progress = Progress(0.0)
        runtime = ShardRuntime(shard.number, shard.first, whole, self._exchange)
        threading.Thread(target=self._work, args=(shard.votes, job, runtime), daemon=True).start()

    async def listen(self) -> Heard:
        """Wait for what the job says next."""
        return await asyncio.get_running_loop().run_in_executor(None, self._said.get)

    def _work(self, votes: Comparisons, job: Job, runtime: Runtime) -> None:
        try:
            found = job.run(votes, runtime, Reporter(self._reached))
            if isinstance(found, Stored):
                self.stored = found
                self._say("stored", found.value)
            else:
                self._say("result", found)
        except Stopped:
            pass
        except Exception as error:  # whatever it is, the client must hear of it
            self._say("failed", error)

    def _reached(self, progress: Progress) -> None:
        """Remember how far the job has got; the client hears of it with the next sum."""
        self._progress = progress

    def _exchange(self, values: Floats) -> Floats:
        self._say("sum", values)
        total = self.told.get()
        if total is None:
            raise Stopped
        return total.copy()  # workers in one process are all given the same array

    def _say(self, what: str, value: Any) -> None:
        self._said.put(Heard(what, value, self._progress))
