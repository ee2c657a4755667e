"""The client's side: shards on workers, the rounds between them, and workers that are lost."""

from __future__ import annotations

import json
import logging
import signal
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

import isplitlbi
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.summary import Overview
from isplitlbi.errors import InvalidVotes, PathFailed, UnreadableCheckpoint, WorkersLost
from isplitlbi.files import written_whole
from isplitlbi.runtime.dask.shard import Counted, Heard, Job, Piece, Shard, Stretch
from isplitlbi.solvers import Progress, Stopped
from isplitlbi.typing import Floats

if TYPE_CHECKING:
    from distributed import Client

Found = TypeVar("Found")
Fetch = Callable[..., Any]  # the number of a shard, a method of it, its arguments

log = logging.getLogger("isplitlbi")

MOST_LOSSES = 10  # of workers in one fit, before it is given up
PATIENCE = 60.0  # seconds to wait for a worker when none is left
PULSE = 2.0  # seconds without an answer after which one asks whether the worker is still there
SETTLING = 0.5  # seconds after which the scheduler, too, knows of a worker that is gone
CONNECT_TIMEOUT = 5.0
SHARDS = "shards.json"  # beside the checkpoints: how many shards there are


def nobody_answers(error: Exception) -> WorkersLost:
    """Return what to raise after waiting in vain."""
    return WorkersLost(
        f"no worker has answered for {PATIENCE:g} s ({error}); start workers and fit again, "
        "with --resume where there are checkpoints."
    )


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
        with _deaf_to_interrupts():
            local = LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0",
                silence_logs=logging.ERROR,
            )  # fmt: skip
        with local, Client(local, direct_to_workers=True) as client:
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


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start processes that a Ctrl-C in the terminal does not reach: they are closed in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    def users(self) -> NDArray[Any]:
        """The ids of all users, sorted."""

    @property
    def items(self) -> NDArray[Any]:
        """The ids of all items, sorted."""

    @property
    def votes_per_user(self) -> NDArray[np.int64]:
        """Number of votes of every user."""

    def pieces(self, bounds: list[int], hosts: Mapping[int, str]) -> dict[int, list[Any]]:
        """Return the futures of the pieces of some shards, each for its host.

        Shard number k has the users from ``bounds[k]`` to ``bounds[k + 1]``.
        """

    def release(self) -> None:
        """Forget what is kept on the workers besides: the shards are made."""


class VotesInMemory:
    """Votes that the client holds."""

    def __init__(self, client: Client, votes: Comparisons) -> None:
        self._client, self._votes = client, votes
        self.users, self.items = votes.users, votes.items
        self.votes_per_user = votes.votes_per_user

    def pieces(self, bounds: list[int], hosts: Mapping[int, str]) -> dict[int, list[Any]]:
        """Send every shard's votes to its host."""
        votes, sent = self._votes, {}
        for number, host in hosts.items():
            first, end = bounds[number : number + 2]
            mine = votes.subset((votes.user >= first) & (votes.user < end))
            piece = Piece.of(mine, first)
            sent[number] = [self._client.scatter(piece, workers=[host], direct=True, hash=False)]
        return sent

    def release(self) -> None:
        """Keep nothing."""


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
    folder
        Where checkpoints of the fit are kept, if they are: there the number of shards is that of
        its start. Otherwise it is the number of workers.
    """

    def __init__(self, client: Client, source: Source, folder: Path | None = None) -> None:
        self.client, self.source, self.costs = client, source, Costs()
        self._n_shards = len(workers_of(client))
        if folder is not None and (folder / SHARDS).exists():
            self._n_shards = _shards_in(folder)
        self.bounds = cut_evenly(source.votes_per_user, self._n_shards)
        self._lock, self._generation = threading.Lock(), 0
        self._stopped = threading.Event()
        self._shards: list[_Placed] = []
        self._counted: list[Counted] = []
        self._place()
        self.n_votes = sum(each.n_votes for each in self._counted)
        self.n_slots = sum(each.n_slots for each in self._counted)
        digests = np.array([each.digest for each in self._counted], dtype=np.uint64)
        self.overview = Overview(
            source.users, source.items, source.votes_per_user,
            sum(each.n_ties for each in self._counted), digests.sum(axis=0, dtype=np.uint64),
        )  # fmt: skip

    def remember_shards(self, folder: Path) -> None:
        """Note the number of shards where the checkpoints are: with another they are of no use."""
        with written_whole(folder / SHARDS) as unfinished:
            unfinished.write_text(json.dumps(self._n_shards), encoding="utf-8")

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def n_threads(self) -> int:
        """Threads that every shard may use."""
        return min(self.client.nthreads().values(), default=1)

    def stretches(self, seed: int) -> tuple[Stretch, ...]:
        """Return the part of every shard in the random numbers of a fit."""
        before = np.cumsum([0, *(each.n_units for each in self._counted)]).tolist()
        return tuple(
            Stretch(seed, units, before[-1], first)
            for units, first in zip(before[:-1], self.bounds[:-1], strict=True)
        )

    def ask(self, method: str, *arguments: Sequence[Any]) -> list[Any]:
        """Call a method of every shard; every argument is a list of one for each."""

        def call(shards: list[_Placed]) -> list[Any]:
            rows = zip(shards, *arguments, strict=True)
            return self._hear(shards, [shard.asked(method, *own) for shard, *own in rows])

        return self._insist(call)

    def run(self, job: Job, tell: Callable[[Progress], None] | None = None) -> list[Any]:
        """Let all shards do a job together; return their results, in order."""
        return self._insist(lambda shards: self._converse(shards, job, tell))

    def collect(
        self, job: Job, tell: Callable[[Progress], None] | None, take: Callable[[Fetch, Any], Found]
    ) -> Found:
        """Let all shards do a job whose results are taken from them one by one, not all at once.

        ``take`` gets the results, and a way to call a method of one of the shards.
        """

        def call(shards: list[_Placed]) -> Found:
            def fetch(number: int, method: str, *arguments: Any) -> Any:
                shard = shards[number]
                return self._hear([shard], [shard.asked(method, *arguments)])[0]

            return take(fetch, self._converse(shards, job, tell))

        return self._insist(call)

    def stop(self) -> None:
        """Let all jobs end at their next round; nothing is done here any more."""
        self._stopped.set()

    def _converse(
        self, shards: list[_Placed], job: Job, tell: Callable[[Progress], None] | None
    ) -> list[Any]:
        key = uuid.uuid4().hex
        try:
            asked = [shard.asked("begin", key, job) for shard in shards]
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
                asked = [shard.asked("answer", key, total) for shard in shards]
                with self._lock:  # of paths that are followed side by side
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
                if self._stopped.is_set():
                    raise Stopped
                try:
                    heard.append(future.result(timeout=PULSE))
                    break
                except TimeoutError:
                    # Dask itself would try to reach it for half a minute.
                    if shard.host not in workers_of(self.client):
                        raise _Lost(f"the worker {shard.host} is gone") from None
                except Exception as error:
                    raise _lost(error) from None
        return heard

    def _insist(self, call: Callable[[list[_Placed]], Found]) -> Found:
        """Call until no worker is lost on the way."""
        while True:
            with self._lock:
                generation, shards = self._generation, list(self._shards)
            try:
                return call(shards)
            except _Failed as failed:
                raise failed.args[0] from None
            except _Lost as error:
                self._replace_lost(generation, error)

    def _replace_lost(self, generation: int, error: Exception) -> None:
        with self._lock:
            if generation != self._generation:  # another job has noticed before
                return
            self._note_loss(error)
            self._place()
            self._generation += 1

    def _note_loss(self, error: Exception) -> None:
        self.costs.losses += 1
        if self.costs.losses > MOST_LOSSES:
            raise WorkersLost(f"workers were lost {MOST_LOSSES} times; the last: {error}.")
        log.warning("a worker was lost (%s); its users are placed anew.", error)
        sleep(SETTLING)

    def _place(self) -> None:
        """Make the shards that are not on any worker, on the workers there are now."""
        deadline = monotonic() + PATIENCE
        while True:
            try:
                kept = self._alive()
                hosts = self._hosts(kept)
                lost = [number for number in range(len(self)) if number not in kept]
                wanted = {number: hosts[place % len(hosts)] for place, number in enumerate(lost)}
                made = kept | self._made_on(wanted)
                placed = [made[number] for number in range(len(self))]
                counted = self._hear(placed, [shard.asked("count") for shard in placed])
                if self._counted and counted != self._counted:
                    raise InvalidVotes("the votes have changed during the fit; fit them again.")
                self._shards, self._counted = placed, counted
                self.source.release()
                return
            except Exception as error:
                if not is_loss(error):
                    raise
                if workers_of(self.client):
                    self._note_loss(error)
                    deadline = monotonic() + PATIENCE
                elif monotonic() > deadline:
                    raise nobody_answers(error) from None
                else:
                    sleep(SETTLING)

    def _alive(self) -> dict[int, _Placed]:
        """Return the shards that still answer, by their number."""
        workers, alive = workers_of(self.client), {}
        for number, shard in enumerate(self._shards):
            if shard.host in workers:
                try:
                    shard.actor.answers().result(timeout=PATIENCE)
                    alive[number] = shard
                except Exception as error:
                    if not is_loss(error):
                        raise
        return alive

    def _hosts(self, kept: Mapping[int, _Placed]) -> list[str]:
        """Return the workers there are, those with the fewest shards first."""
        workers = workers_of(self.client)
        if not workers:
            raise OSError("there is none")
        holds = Counter(shard.host for shard in kept.values())
        return sorted(workers, key=lambda worker: (holds[worker], worker))

    def _made_on(self, hosts: Mapping[int, str]) -> dict[int, _Placed]:
        pieces = self.source.pieces(self.bounds, hosts)
        made = {
            number: self.client.submit(
                Shard, number, *self.bounds[number : number + 2], len(self.source.items),
                *pieces[number], actor=True, workers=[host], pure=False,
            )
            for number, host in hosts.items()
        }  # fmt: skip
        return {
            number: _Placed(result_of(self.client, future, hosts[number]), hosts[number])
            for number, future in made.items()
        }


def _shards_in(folder: Path) -> int:
    try:
        n_shards = int(json.loads((folder / SHARDS).read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        n_shards = 0
    if n_shards < 1:
        raise UnreadableCheckpoint(
            f"{folder / SHARDS}: this checkpoint is damaged; start the fit anew."
        )
    return n_shards


def result_of(client: Client, future: Any, host: str | None = None) -> Any:
    """Wait for a result, as long as there is a worker, or the one that it must come from."""
    waited = 0.0
    while True:
        try:
            return future.result(timeout=PULSE)
        except TimeoutError:
            there = workers_of(client)
            waited = 0.0 if there else waited + PULSE
            if (host is not None and host not in there) or waited > PATIENCE:
                raise OSError(f"the worker {host} is gone" if host else "there is none") from None


class _Placed(NamedTuple):
    """A shard on a worker."""

    actor: Any
    host: str

    def asked(self, method: str, *arguments: Any) -> Any:
        """Call a method; return the future of what it says."""
        try:
            return getattr(self.actor, method)(*arguments)
        except Exception as error:
            raise _lost(error) from None


def _added(heard: list[Heard]) -> Floats:
    """Add up the sums of all shards, in their order."""
    shapes = {each.value.shape if each.what == "sum" else each.what for each in heard}
    if len(shapes) > 1:
        raise PathFailed("the workers disagree about the next step: use machines of one kind.")
    return np.sum(np.stack([each.value for each in heard]), axis=0)  # type: ignore[no-any-return]


class _Failed(Exception):
    """A job that went wrong, for a reason of its own."""


class _Lost(OSError):
    """A worker that no longer answers."""


def _lost(error: Exception) -> Exception:
    """Return the error, as a loss where it tells of one."""
    return _Lost(str(error) or type(error).__name__) if is_loss(error) else error


def is_loss(error: Exception) -> bool:
    """Say whether an error tells of workers and their network, not of the votes or the fit."""
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker, NoValidWorkerError

    losses = (OSError, TimeoutError, FutureCancelledError, KilledWorker, NoValidWorkerError)
    return isinstance(error, losses) or "Actor was lost" in str(error)


def workers_of(client: Client) -> list[str]:
    """Return the addresses of all workers."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def _version() -> str:
    return isplitlbi.__version__


def refuse_unfit(client: Client) -> None:
    """Refuse a scheduler without workers, and workers with another version of the package."""
    if not workers_of(client):
        raise ValueError("the scheduler has no workers; start some (dask worker).")
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
