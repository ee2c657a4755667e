"""The connection to a cluster: a client, its workers, and what tells that one of them is gone."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import isplitlbi
from isplitlbi.errors import ClusterUnavailable, MissingLibrary, Setting, WorkersLost

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["client_of", "is_loss", "nobody_answers", "refuse_unfit", "result_of", "workers_of"]

PATIENCE = 60.0  # seconds to wait for a worker when none is left
PULSE = 2.0  # seconds without an answer after which one asks whether the worker is still there
CONNECT_TIMEOUT = 5.0


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
    try:
        connected = Client(scheduler, timeout=CONNECT_TIMEOUT, direct_to_workers=True)
    except (OSError, ValueError) as error:
        raise ClusterUnavailable(
            f"the scheduler {scheduler} cannot be reached ({type(error).__name__}); is it running?"
        ) from None
    with connected as client:
        yield client


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


def refuse_unfit(client: Client) -> None:
    """Refuse a scheduler without workers, and workers with another version of the package."""
    if not workers_of(client):
        raise ClusterUnavailable("the scheduler has no workers; start some (dask worker).")
    try:
        found = client.run(_version)
    except Exception as error:
        raise ClusterUnavailable(
            f"isplitlbi cannot be used on the workers ({error}); install it there, too."
        ) from None
    for worker, version in sorted(found.items()):
        if version != isplitlbi.__version__:
            raise ClusterUnavailable(
                f"the worker {worker} has isplitlbi {version}, this is {isplitlbi.__version__}; "
                "install the same everywhere."
            )


def _version() -> str:
    return isplitlbi.__version__


def workers_of(client: Client) -> list[str]:
    """Return the addresses of all workers."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


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
