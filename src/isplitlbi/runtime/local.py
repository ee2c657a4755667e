"""All users on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from copy import copy
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.summary import Summary
from isplitlbi.runtime.base import Found, Job, Numbers, Runtime
from isplitlbi.runtime.progress import Reporter
from isplitlbi.typing import Floats

__all__ = ["Local", "available_threads"]


def available_threads() -> int:
    """Return how many threads this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Local(Runtime):
    """The machine at hand, which holds all users: runtime and workforce in one.

    Parameters
    ----------
    votes
        Of all users.
    n_threads
        Threads to use. The result is the same for any number.
    backend
        Compiled loops or plain ones (see `kernels.backend`).
    """

    costs = None

    def __init__(self, votes: Comparisons, n_threads: int = 1, backend: str | None = None) -> None:
        self.votes, self.n_threads, self.backend = votes, n_threads, backend
        self.loops = kernels.backend(backend)
        self.first, self.n_users, self.n_votes = 0, votes.n_users, len(votes)
        self._kept: dict[Hashable, Any] = {}
        self._memory: dict[Hashable, Any] = {}
        self._lock = Lock()

    @property
    def is_alone(self) -> bool:
        """Whether all users are here."""
        return True

    @cached_property
    def summary(self) -> Summary:
        """What is known of all votes."""
        return Summary.of(self.votes)

    def any(self, found: bool) -> bool:
        """Say whether something was found here: there is nobody else to ask."""
        return found

    def numbers(self, seed: int | None) -> Numbers:
        """Return a generator."""
        return np.random.default_rng(seed)

    @property
    def memory(self) -> dict[Hashable, Any]:
        """What jobs leave for later ones."""
        return self._memory

    def kept(self, key: Hashable, make: Callable[[], Found]) -> Found:
        """Return what is made, once."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            found: Found = self._kept[key]
            return found

    def with_threads(self, n_threads: int) -> Local:
        """Return the same with another number of threads; what one keeps, the other has."""
        other = copy(self)
        other.n_threads = n_threads
        return other

    def run(self, job: Job, reporter: Reporter) -> Any:
        """Do a job here."""
        return job.join([job.run(self.votes, self, reporter)])

    def side_by_side(self, jobs: Sequence[tuple[Job, Reporter]], reporter: Reporter) -> list[Any]:
        """Do as many jobs at a time as there are threads."""
        single = self.with_threads(1)
        with ThreadPoolExecutor(self.n_threads) as pool:
            started = [pool.submit(single.run, *each) for each in jobs]
            try:
                for done in as_completed(started):
                    done.result()
            except BaseException:
                reporter.stop()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return [each.result() for each in started]

    def settle(self, folder: Path) -> None:
        """Do nothing: checkpoints of one machine depend on nothing else."""

    def _added(self, values: Floats) -> Floats:
        return values
