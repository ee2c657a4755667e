"""Rounds: all shards say a sum, and all are told the total, until they have a result."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from isplitlbi.errors import PathFailed
from isplitlbi.runtime.base import Job, Stored
from isplitlbi.runtime.dask.client import Connection, Lost
from isplitlbi.runtime.dask.placement import Placed, hear
from isplitlbi.runtime.dask.shards import Heard, Whole
from isplitlbi.runtime.progress import Reporter
from isplitlbi.typing import Floats

__all__ = ["Costs", "Failed", "Rounds"]


@dataclass
class Costs:
    """What the rounds of a fit came to."""

    rounds: int = 0
    bytes_sent: int = 0
    seconds: float = 0.0
    losses: int = 0


class Failed(Exception):
    """A job that went wrong, for a reason of its own."""


class Rounds:
    """The client's side of jobs that all shards do together; several may go on side by side."""

    def __init__(self, there: Connection) -> None:
        self.costs = Costs()
        self._there, self._lock = there, threading.Lock()

    def do(self, shards: list[Placed], job: Job, whole: Whole, reporter: Reporter) -> Any:
        """Let all shards do a job; return what their results are joined to."""
        key = uuid.uuid4().hex
        try:
            heard = self._converse(shards, key, job, whole, reporter)
            return job.join([self._part(key, *each) for each in zip(shards, heard, strict=True)])
        finally:
            for shard in shards:
                with suppress(Exception):  # lost already
                    shard.actor.close(key)

    def _converse(
        self, shards: list[Placed], key: str, job: Job, whole: Whole, reporter: Reporter
    ) -> list[Heard]:
        """Add up, round after round, until there are results."""
        asked = [shard.asked("begin", key, job, whole) for shard in shards]
        while True:
            begun = perf_counter()
            heard: list[Heard] = hear(self._there, shards, asked, reporter)
            if failed := [each.value for each in heard if each.what == "failed"]:
                raise Failed(failed[0])
            if any(each.what == "closed" for each in heard):
                raise Lost("a worker was started again")
            if all(each.what in ("result", "stored") for each in heard):
                return heard
            out = sum(each.progress.users_out for each in heard)
            reporter.reach(heard[0].progress._replace(users_out=out))
            total = added(heard)
            asked = [shard.asked("answer", key, total) for shard in shards]
            with self._lock:  # of jobs that are done side by side
                self.costs.rounds += 1
                self.costs.bytes_sent += 2 * len(shards) * total.nbytes
                self.costs.seconds += perf_counter() - begun

    def _part(self, key: str, shard: Placed, heard: Heard) -> Any:
        if heard.what == "result":
            return heard.value

        def fetch(name: str, row: int) -> Floats:
            (found,) = hear(self._there, [shard], [shard.asked("row", key, name, row)])
            taken: Floats = found
            return taken

        return _StoredThere(heard.value, fetch)


class _StoredThere(Stored):
    """A result whose arrays are on a worker."""

    def __init__(self, value: Any, fetch: Callable[[str, int], Floats]) -> None:
        super().__init__(value, {})
        self._fetch = fetch

    def row(self, name: str, row: int) -> Floats:
        """Fetch one row of an array."""
        return self._fetch(name, row)


def added(heard: list[Heard]) -> Floats:
    """Add up the sums of all shards, in their order."""
    shapes = {each.value.shape if each.what == "sum" else each.what for each in heard}
    if len(shapes) > 1:
        raise PathFailed("the workers disagree about the next step: use machines of one kind.")
    return np.sum(np.stack([each.value for each in heard]), axis=0)  # type: ignore[no-any-return]
