"""The client's side: shards on workers, the rounds between them, and workers that are lost."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

import isplitlbi
from isplitlbi.comparisons import Comparisons
from isplitlbi.distributed.shard import Heard, Job, Piece, Shard, Stretch
from isplitlbi.selection import PathFailed
from isplitlbi.solvers import Checkpoints, Progress

if TYPE_CHECKING:
    from distributed import Client

Floats = NDArray[np.float64]

log = logging.getLogger("isplitlbi")

MOST_LOSSES = 10  # of workers in one fit, before it is given up
PATIENCE = 60.0  # seconds to wait for a worker when none is left
PULSE = 2.0  # seconds without an answer after which one asks whether the worker is still there
SETTLING = 0.5  # seconds after which the scheduler, too, knows of a worker that is gone
CONNECT_TIMEOUT = 5.0


class WorkersLost(PathFailed):
    """There are no workers left to go on with; the message says what to do."""


@contextmanager
def client_of(scheduler: str | None = None, workers: int | None = None) -> Iterator[Client]:
    """Give a client of a scheduler, or of so many workers that are started on this machine."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError(
            "a fit on a cluster needs dask; install it with: pip install 'isplitlbi[dask]'"
        ) from None
    if scheduler is None:
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None,
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster, direct_to_workers=True) as client,
        ):  # fmt: skip
            yield client
        return
    try:
        connected = Client(scheduler, timeout=CONNECT_TIMEOUT, direct_to_workers=True)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"the scheduler {scheduler} cannot be reached ({type(error).__name__}); is it running?"
        ) from None
    with connected as client:
        yield client


@dataclass
class Costs:
    """What the rounds of a fit came to."""

    rounds: int = 0
    bytes_sent: int = 0
    seconds: float = 0.0
    losses: int = 0


class Source(Protocol):
    """Votes that can be put on workers, again and again."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    def cut(self, n_shards: int) -> list[int]:
        """Return the bounds of users between the shards."""

    def pieces(self, client: Client, bounds: list[int], workers: list[str]) -> list[list[Any]]:
        """Return for every shard its pieces, or the futures of them."""


class VotesInMemory:
    """Votes that the client holds."""

    def __init__(self, votes: Comparisons) -> None:
        self.votes = votes

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.votes.n_items

    def cut(self, n_shards: int) -> list[int]:
        """Return bounds of users with about as many votes in between."""
        return cut_evenly(self.votes.votes_per_user, n_shards)

    def pieces(self, client: Client, bounds: list[int], workers: list[str]) -> list[list[Any]]:
        """Send every shard's votes to its worker."""
        votes = self.votes
        sent = []
        for (first, end), worker in zip(pairwise(bounds), workers, strict=True):
            rows = np.flatnonzero((votes.user >= first) & (votes.user < end))
            columns = (votes.left, votes.right, votes.outcome, votes.weight, votes.group)
            piece = Piece(
                votes.user[rows] - np.int32(first),
                *(None if column is None else column[rows] for column in columns),  # type: ignore[arg-type]
            )
            sent.append([client.scatter(piece, workers=[worker], direct=True, hash=False)])
        return sent


def cut_evenly(votes_per_user: NDArray[np.int64], n_shards: int) -> list[int]:
    """Return bounds of users, first and last included, with about as many votes in between."""
    n_users = len(votes_per_user)
    ends = np.cumsum(votes_per_user)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_shards) / n_shards) + 1
    bounds: list[int] = np.unique([0, *np.minimum(cuts, n_users), n_users]).tolist()
    return bounds


class Cluster:
    """The shards of some votes on the workers of a client, and the rounds between them.

    Parameters
    ----------
    client
        Of Dask.
    source
        The votes.
    checkpoints
        Where the fit is kept, if it is: there the number of shards is that of its start. Otherwise
        it is the number of workers.
    """

    def __init__(
        self, client: Client, source: Source, checkpoints: Checkpoints | None = None
    ) -> None:
        self.client, self.source, self.costs = client, source, Costs()
        _check_versions(client)
        n_shards = len(_workers(client))
        if n_shards == 0:
            raise ValueError("the scheduler has no workers; start some (dask worker).")
        if checkpoints is not None:
            note = checkpoints.folder / "shards.json"
            if note.exists():
                n_shards = int(json.loads(note.read_text(encoding="utf-8")))
            else:
                note.write_text(json.dumps(n_shards), encoding="utf-8")
        self.bounds = source.cut(n_shards)
        self._lock, self._generation = threading.Lock(), 0
        self._shards: list[_Placed] = []
        self._place()
        described = self.ask("describe")
        n_votes, self._units, n_slots = zip(*described, strict=True)
        self.n_votes, self.n_slots = sum(n_votes), sum(n_slots)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def n_threads(self) -> int:
        """Threads that every shard may use."""
        return min(self.client.nthreads().values(), default=1)

    def stretches(self, seed: int) -> tuple[Stretch, ...]:
        """Return the part of every shard in the random numbers of a fit."""
        before = np.concatenate([[0], np.cumsum(self._units)]).tolist()
        return tuple(
            Stretch(seed, units, before[-1], first)
            for units, first in zip(before[:-1], self.bounds[:-1], strict=True)
        )

    def ask(self, method: str, *arguments: Sequence[Any]) -> list[Any]:
        """Call a method of every shard; every argument is a list of one for each."""

        def call(shards: list[_Placed]) -> list[Any]:
            rows = zip(shards, *arguments, strict=True)
            asked = [getattr(shard.actor, method)(*own) for shard, *own in rows]
            return self._hear(shards, asked)

        return self._insist(call)

    def run(self, job: Job, tell: Callable[[Progress], None] | None = None) -> list[Any]:
        """Let all shards do a job together; return their results, in order."""
        return self._insist(lambda shards: self._converse(shards, job, tell))

    def _converse(
        self, shards: list[_Placed], job: Job, tell: Callable[[Progress], None] | None
    ) -> list[Any]:
        key = uuid.uuid4().hex
        try:
            asked = [shard.actor.begin(key, job) for shard in shards]
            while True:
                begun = perf_counter()
                heard: list[Heard] = self._hear(shards, asked)
                if failed := [each.value for each in heard if each.what == "failed"]:
                    raise _Failed(failed[0])
                if all(each.what == "result" for each in heard):
                    return [each.value for each in heard]
                if tell is not None:
                    out = sum(each.progress.users_out for each in heard)
                    tell(heard[0].progress._replace(users_out=out))
                total = _added(heard)
                asked = [shard.actor.answer(key, total) for shard in shards]
                self.costs.rounds += 1
                self.costs.bytes_sent += 2 * len(shards) * total.nbytes
                self.costs.seconds += perf_counter() - begun
        finally:
            for shard in shards:
                with suppress(Exception):  # lost already
                    shard.actor.close(key)

    def _hear(self, shards: list[_Placed], asked: list[Any]) -> list[Any]:
        """Wait for what all shards say, or until a worker of theirs is gone."""
        heard = []
        for shard, future in zip(shards, asked, strict=True):
            while True:
                try:
                    heard.append(future.result(timeout=PULSE))
                    break
                except TimeoutError:
                    # Dask itself would try to reach it for half a minute.
                    if shard.host not in _workers(self.client):
                        raise OSError(f"the worker {shard.host} is gone") from None
        return heard

    def _insist(self, call: Callable[[list[_Placed]], list[Any]]) -> list[Any]:
        """Call until no worker is lost on the way."""
        while True:
            with self._lock:
                generation, shards = self._generation, list(self._shards)
            try:
                return call(shards)
            except _Failed as failed:
                raise failed.args[0] from None
            except Exception as error:
                if not _is_loss(error):
                    raise
                self._replace_lost(generation, error)

    def _replace_lost(self, generation: int, error: Exception) -> None:
        with self._lock:
            if generation != self._generation:  # another job has noticed before
                return
            self.costs.losses += 1
            if self.costs.losses > MOST_LOSSES:
                raise WorkersLost(f"workers were lost {MOST_LOSSES} times; the last: {error}.")
            log.warning("a worker was lost (%s); its users are placed anew.", error)
            sleep(SETTLING)
            self._place()
            self._generation += 1

    def _place(self) -> None:
        """Make the shards on the workers there are now."""
        deadline = monotonic() + PATIENCE
        while True:
            workers = _workers(self.client)
            try:
                if not workers:
                    raise OSError("there is none")
                self._shards = self._made_on(
                    [workers[number % len(workers)] for number in range(len(self))]
                )
                return
            except Exception as error:
                if not _is_loss(error):
                    raise
                if monotonic() > deadline:
                    raise WorkersLost(
                        f"no worker has answered for {PATIENCE:g} s ({error}); start workers and "
                        "fit again, with --resume where there are checkpoints."
                    ) from None
                sleep(SETTLING)

    def _made_on(self, hosts: list[str]) -> list[_Placed]:
        pieces = self.source.pieces(self.client, self.bounds, hosts)
        made = [
            self.client.submit(
                Shard, number, end - first, self.source.n_items, *own,
                actor=True, workers=[host], pure=False,
            )
            for number, ((first, end), own, host) in enumerate(
                zip(pairwise(self.bounds), pieces, hosts, strict=True)
            )
        ]  # fmt: skip
        return [
            _Placed(future.result(timeout=600), host)
            for future, host in zip(made, hosts, strict=True)
        ]


class _Placed(NamedTuple):
    """A shard on a worker."""

    actor: Any
    host: str


def _added(heard: list[Heard]) -> Floats:
    """Add up the sums of all shards, in their order."""
    shapes = {each.value.shape if each.what == "sum" else each.what for each in heard}
    if len(shapes) > 1:
        raise PathFailed("the workers disagree about the next step: use machines of one kind.")
    return np.sum(np.stack([each.value for each in heard]), axis=0)  # type: ignore[no-any-return]


class _Failed(Exception):
    """A job that went wrong, for a reason of its own."""


def _is_loss(error: Exception) -> bool:
    """Say whether an error tells of workers and their network, not of the votes or the fit."""
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker, NoValidWorkerError

    losses = (OSError, TimeoutError, FutureCancelledError, KilledWorker, NoValidWorkerError)
    return isinstance(error, losses) or "Actor was lost" in str(error)


def _workers(client: Client) -> list[str]:
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def _version() -> str:
    return isplitlbi.__version__


def _check_versions(client: Client) -> None:
    try:
        found = client.run(_version)
    except Exception as error:
        raise ValueError(
            f"isplitlbi cannot be used on the workers ({error}); install it there, too."
        ) from None
    for worker, version in sorted(found.items()):
        if version != isplitlbi.__version__:
            raise ValueError(
                f"the worker {worker} has isplitlbi {version}, this is {isplitlbi.__version__}; "
                "install the same everywhere."
            )


class Overall:
    """How far a fit of several paths has got, as of one piece of work."""

    def __init__(self, n_paths: int, tell: Callable[[Progress], None] | None) -> None:
        self._n_paths, self._tell = n_paths, tell
        self._done, self._lock = 0.0, threading.Lock()

    def path(self) -> Callable[[Progress], None] | None:
        """Return what is to be told of one of the paths."""
        tell = self._tell
        if tell is None:
            return None
        before = 0.0

        def told(progress: Progress) -> None:
            nonlocal before
            with self._lock:
                self._done += (progress.done - before) / self._n_paths
                before = progress.done
                tell(progress._replace(done=min(self._done, 1.0)))

        return told
