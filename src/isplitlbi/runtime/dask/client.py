"""The connection to a cluster: a client, its workers, and what tells that one of them is gone."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import isplitlbi
from isplitlbi.errors import ClusterUnavailable, MissingLibrary, Setting, WorkersLost

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Connection", "Lost", "client_of", "is_loss", "nobody_answers"]

log = logging.getLogger("isplitlbi")

PATIENCE = 60.0  # seconds to wait for whoever does not answer: a worker, or the scheduler
WORRY = 10.0  # seconds after which one says who is waited for
PULSE = 2.0  # seconds without an answer after which one asks whether the worker is still there
CONNECT_TIMEOUT = 5.0


class Lost(OSError):
    """A worker that no longer answers."""


@contextmanager
def client_of(scheduler: str | None = None, workers: int | None = None) -> Iterator[Client]:
    """Give a client of a scheduler, or of so many workers that are started on this machine."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingLibrary(
            "a fit on a cluster needs dask; install it with: pip install 'isplitlbi[dask]'"
        ) from None
    if scheduler is None:
        with _ignore_interrupts():
            local = LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0",
                silence_logs=logging.ERROR,
            )  # fmt: skip
        with local, Client(local, direct_to_workers=True) as client:
            yield client
        return
    _refuse_unreachable(scheduler)
    with (
        _silent_logs(),
        Client(scheduler, timeout=CONNECT_TIMEOUT, direct_to_workers=True) as client,
    ):
        yield client


def _refuse_unreachable(address: str) -> None:
    """Refuse an address at which no scheduler answers: a client would wait for an answer."""

    async def asked() -> str:
        from distributed.core import rpc
        from distributed.security import Security

        how = Security().get_connection_args("client")
        async with rpc(address, connection_args=how) as there:
            kind: str = (await there.identity())["type"]
            return kind

    try:
        kind = asyncio.run(asyncio.wait_for(asked(), CONNECT_TIMEOUT))
    except Exception as error:  # what is not a scheduler may answer anything
        has_tls = address.startswith("tls:")
        is_bare = has_tls and isinstance(error, TypeError)
        reason = "Dask has no certificates" if is_bare else type(error).__name__
        tls = ", and are the certificates of Dask's configuration those that it knows"
        raise ClusterUnavailable(
            f"the scheduler {address} cannot be reached ({reason}); is it running"
            f"{tls if has_tls else ''}?"
        ) from None
    if kind != "Scheduler":
        raise ClusterUnavailable(f"{address} is not a Dask scheduler, but a {kind.lower()}.")


@contextmanager
def _silent_logs() -> Iterator[None]:
    """Let Dask say nothing of a lost connection: it ends the fit with a sentence of ours."""
    before = {
        log: log.level for log in map(logging.getLogger, ("distributed", "distributed.client"))
    }
    try:
        for each in before:
            each.setLevel(logging.CRITICAL)
        yield
    finally:
        for each, level in before.items():
            each.setLevel(level)


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Start processes that a Ctrl-C in the terminal does not reach: they are closed in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Connection:
    """A client, and what is known of its workers: who is there, and who has fallen silent.

    The scheduler hears of every worker about once a second, also while the worker computes. A
    worker of which it has heard nothing for a minute counts as gone, although the scheduler itself
    may list it for longer: its process is stopped, or its machine cannot be reached.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._known: dict[str, _Seen] = {}
        self._asked = monotonic()
        self._unanswered: float | None = None  # since when the scheduler has not answered

    def workers(self) -> list[str]:
        """Return the addresses of all workers that have been heard of lately."""
        return sorted(each for each, seen in self._ask().items() if seen.is_there)

    def ready(self) -> list[str]:
        """Return those of them that begin new tasks: a worker with too little memory does not."""
        return sorted(each for each, seen in self._ask().items() if seen.is_ready)

    def n_threads(self) -> int:
        """Return how many threads every worker has, at least."""
        return min((seen.n_threads for seen in self._ask().values()), default=1)

    def result_of(self, future: Any, *hosts: str) -> Any:
        """Wait for a result, as long as the workers are there that it must come from, or any is."""
        last_ready = monotonic()
        while True:
            try:
                return future.result(timeout=PULSE)
            except TimeoutError:
                seen = self._ask()
                if lost := [host for host in hosts if host not in seen or not seen[host].is_there]:
                    raise Lost(self.absence_of(lost[0])) from None
                waiting = [host for host in hosts or seen if not seen[host].is_ready]
                if len(waiting) < (1 if hosts else len(seen)):
                    last_ready = monotonic()
                elif monotonic() - last_ready > PATIENCE:
                    raise Lost(self.absence_of(waiting[0] if hosts else None)) from None

    def scattered(self, values: Sequence[Any], hosts: Sequence[str]) -> Any:
        """Put values on workers; return their futures."""
        scattering = self.client.scatter(
            values, workers=hosts, direct=True, hash=False, broadcast=len(hosts) > 1,
            asynchronous=True,
        )  # fmt: skip
        return self._done(scattering, hosts)

    def _done(self, doing: Any, hosts: Sequence[str]) -> Any:
        """Wait for what the client does with some workers."""
        client: Any = self.client
        return self.result_of(
            asyncio.run_coroutine_threadsafe(doing, client.loop.asyncio_loop), *hosts
        )

    def absence_of(self, host: str | None = None) -> str:
        """Say why a worker, or all of them, cannot be worked with."""
        seen = [seen for each, seen in self._known.items() if host in (None, each)]
        who = f"the worker {host}" if host else "every worker"
        if not seen:
            return f"{who} is gone" if host else "there is none"
        if all(each.is_paused for each in seen):
            return f"{who} is paused, as its memory is too full"
        return f"{who} is silent"

    def refuse_unfit(self) -> None:
        """Refuse a scheduler without workers, and workers with another version of the package."""
        there = self.workers()
        if not there:
            raise ClusterUnavailable("the scheduler has no workers; start some (dask worker).")
        try:
            found = self._done(self.client.run(_version, workers=there, asynchronous=True), there)
        except Lost:
            return self.refuse_unfit()  # without those that have fallen silent
        except Exception as error:
            raise ClusterUnavailable(
                f"isplitlbi cannot be used on the workers ({error}); install it there, too."
            ) from None
        for worker, version in sorted(found.items()):
            if version != isplitlbi.__version__:
                raise ClusterUnavailable(
                    f"the worker {worker} has isplitlbi {version}, this is "
                    f"{isplitlbi.__version__}; install the same everywhere."
                )

    def _ask(self) -> dict[str, _Seen]:
        """Ask the scheduler who is there; while it does not answer, all is as it was."""
        client: Any = self.client
        try:
            if client.status == "closed":  # it has given up the connection
                raise OSError
            found = client.sync(client.scheduler.identity, callback_timeout=CONNECT_TIMEOUT)
        except (OSError, TimeoutError):
            self._unanswered = self._unanswered or monotonic()
            if client.status == "closed" or monotonic() - self._unanswered > PATIENCE:
                raise WorkersLost(
                    "the scheduler does not answer any more; start it and its workers, and fit "
                    "again, with ", Setting("checkpoints"), " where there are checkpoints.",
                ) from None  # fmt: skip
            return self._known
        # What nobody has looked at for long may have happened just now.
        passed = min(monotonic() - self._asked, WORRY)
        self._asked, self._unanswered = monotonic(), None
        known = {}
        for worker, told in found["workers"].items():
            beat, is_paused = told["last_seen"], told["status"] == "paused"
            before = self._known.get(worker)
            is_same = before is not None and before.beat == beat
            silence = before.silence + passed if before is not None and is_same else 0.0
            known[worker] = _Seen(beat, silence, told["nthreads"], is_paused)
            if before is not None and before.silence < WORRY <= silence:
                log.warning(
                    "the worker %s has been silent for %.0f s; the fit waits for it.",
                    worker, silence,
                )  # fmt: skip
        self._known = known
        return known


class _Seen(NamedTuple):
    """What the scheduler last said of a worker."""

    beat: float  # when the scheduler last heard of it, by its own clock
    silence: float  # seconds for which that has been so, as far as we have looked
    n_threads: int
    is_paused: bool

    @property
    def is_there(self) -> bool:
        """Whether the scheduler has heard of it lately."""
        return self.silence < PATIENCE

    @property
    def is_ready(self) -> bool:
        """Whether it begins new tasks."""
        return self.is_there and not self.is_paused


def _version() -> str:
    return isplitlbi.__version__


def is_loss(error: Exception) -> bool:
    """Say whether an error tells of workers and their network, not of the votes or the fit."""
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker, NoValidWorkerError

    losses = (OSError, TimeoutError, FutureCancelledError, KilledWorker, NoValidWorkerError)
    return isinstance(error, losses) or "Actor was lost" in str(error)


def nobody_answers(error: Exception) -> WorkersLost:
    """Return what to raise after waiting in vain."""
    return WorkersLost(
        f"no worker has answered for {PATIENCE:g} s ({error}); start workers and fit again, with ",
        Setting("checkpoints"),
        " where there are checkpoints.",
    )
