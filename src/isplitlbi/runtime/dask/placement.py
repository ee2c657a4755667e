"""Shards on workers: where they are, and where they go when a worker is lost."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.summary import Summary, n_effective
from isplitlbi.errors import InvalidVotes, UnreadableCheckpoint, WorkersLost
from isplitlbi.files import written_whole
from isplitlbi.runtime.base import Found
from isplitlbi.runtime.dask import client as connection
from isplitlbi.runtime.dask.client import Connection, Lost, is_loss, nobody_answers
from isplitlbi.runtime.dask.shards import Counted, Shard
from isplitlbi.runtime.dask.sources import VoteSource
from isplitlbi.runtime.progress import Reporter, Stopped
from isplitlbi.typing import Places

__all__ = ["Placed", "Placement", "hear", "remember_shards", "remembered_shards"]

log = logging.getLogger("isplitlbi")

MOST_LOSSES = 10  # of workers in one fit, before it is given up
SETTLING = 0.5  # seconds after which the scheduler, too, knows of a worker that is gone
SHARDS = "shards.json"  # beside the checkpoints: how many shards there are


class Placed(NamedTuple):
    """A shard on a worker."""

    actor: Any
    host: str

    def asked(self, method: str, *arguments: Any) -> Any:
        """Call a method; return the future of what it says."""
        try:
            return getattr(self.actor, method)(*arguments)
        except Exception as error:
            raise _lost(error) from None

    def refuse_lost(self) -> None:
        """Refuse a shard that is gone from its worker: what it was asked is never answered."""
        try:
            self.actor.answers  # noqa: B018
        except Exception as error:
            raise _lost(error) from None


def hear(
    there: Connection, shards: list[Placed], asked: list[Any], reporter: Reporter | None = None
) -> list[Any]:
    """Wait for what all shards say, or until a worker of theirs is gone or nobody wants to know."""
    heard = []
    for shard, future in zip(shards, asked, strict=True):
        while True:
            if reporter is not None and reporter.is_stopped:
                raise Stopped
            try:
                heard.append(future.result(timeout=connection.PULSE))
                break
            except TimeoutError:
                # Dask itself would try to reach it for half a minute.
                if shard.host not in there.workers():
                    raise Lost(there.absence_of(shard.host)) from None
                shard.refuse_lost()
            except Exception as error:
                raise _lost(error) from None
    return heard


class Placement:
    """The shards of some votes on the workers of a client, made again when they are lost.

    Parameters
    ----------
    there
        The workers.
    source
        The votes.
    n_shards
        How many there are to be; fewer where there are not enough users.
    """

    def __init__(self, there: Connection, source: VoteSource, n_shards: int) -> None:
        self.there, self.source, self.losses = there, source, 0
        self.bounds = cut_evenly(source.votes_per_user, n_shards)
        self._lock, self._generation = threading.Lock(), 0
        self._shards: list[Placed] = []
        self._counted: list[Counted] = []
        self._place()

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def summary(self) -> Summary:
        """Return what is known of all votes."""
        source, digests = self.source, [each.digest for each in self._counted]
        of_weights = np.sum([each.weights for each in self._counted], axis=0)
        return Summary(
            source.users, source.items, source.votes_per_user,
            sum(each.n_ties for each in self._counted),
            np.array(digests, dtype=np.uint64).sum(axis=0, dtype=np.uint64), source.units,
            weight_unit=source.weight_unit, n_effective=float(n_effective(*of_weights)),
        )  # fmt: skip

    def insist(self, call: Callable[[list[Placed]], Found]) -> Found:
        """Call with all shards, until no worker is lost on the way."""
        while True:
            with self._lock:
                generation, shards = self._generation, list(self._shards)
            try:
                return call(shards)
            except Lost as error:
                self._replace_lost(generation, error)

    def _replace_lost(self, generation: int, error: Exception) -> None:
        with self._lock:
            if generation != self._generation:  # another job has noticed before
                return
            self._note_loss(error)
            self._place()
            self._generation += 1

    def _note_loss(self, error: Exception) -> None:
        self.losses += 1
        if self.losses > MOST_LOSSES:
            raise WorkersLost(
                f"workers were lost {MOST_LOSSES} times; the last: {error}. Their logs say why."
            )
        log.warning("a worker was lost (%s); its users get new places.", error)
        sleep(SETTLING)

    def _place(self) -> None:
        """Make the shards that are not on any worker, on the workers there are now."""
        deadline = monotonic() + connection.PATIENCE
        while True:
            try:
                self._make_missing()
                return
            except Exception as error:
                if not is_loss(error):
                    raise
                if self.there.ready():
                    self._note_loss(error)
                    deadline = monotonic() + connection.PATIENCE
                elif monotonic() > deadline:
                    raise nobody_answers(error) from None
                else:
                    sleep(SETTLING)

    def _make_missing(self) -> None:
        kept = self._alive()
        hosts = self._hosts(kept)
        lost = [number for number in range(len(self)) if number not in kept]
        wanted = {number: hosts[place % len(hosts)] for place, number in enumerate(lost)}
        made = kept | self._made_on(wanted)
        placed = [made[number] for number in range(len(self))]
        counted = hear(self.there, placed, [shard.asked("count") for shard in placed])
        if self._counted and counted != self._counted:
            raise InvalidVotes("the votes have changed during the fit; fit them again.")
        self._shards, self._counted = placed, counted
        self.source.release()

    def _alive(self) -> dict[int, Placed]:
        """Return the shards that still answer, by their number."""
        workers, alive = self.there.workers(), {}
        for number, shard in enumerate(self._shards):
            if shard.host in workers:
                try:
                    self.there.result_of(shard.asked("answers"), shard.host)
                    alive[number] = shard
                except Exception as error:
                    if not is_loss(error):
                        raise
        return alive

    def _hosts(self, kept: Mapping[int, Placed]) -> list[str]:
        """Return the workers there are, those with the fewest shards first."""
        workers = self.there.ready()
        if not workers:
            raise Lost(self.there.absence_of())
        holds = Counter(shard.host for shard in kept.values())
        return sorted(workers, key=lambda worker: (holds[worker], worker))

    def _made_on(self, hosts: Mapping[int, str]) -> dict[int, Placed]:
        from distributed import Actor

        pieces = self.source.pieces(self.bounds, hosts)
        made = {
            number: self.there.client.submit(
                Shard, number, *self.bounds[number : number + 2], len(self.source.items),
                *pieces[number], actor=True, workers=[host], pure=False,
            )
            for number, host in hosts.items()
        }  # fmt: skip
        for number, future in made.items():
            self.there.result_of(future, hosts[number])
        # The result itself would belong to the newest client of this process, whoever's that is.
        with self.there.client.as_current():
            return {
                number: Placed(Actor(Shard, hosts[number], future.key), hosts[number])
                for number, future in made.items()
            }


def cut_evenly(votes_per_user: Places, n_shards: int) -> list[int]:
    """Return bounds of users, first and last included, with about as many votes in between."""
    n_users = len(votes_per_user)
    ends = np.cumsum(votes_per_user)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_shards) / n_shards) + 1
    bounds: list[int] = np.unique([0, *np.minimum(cuts, n_users), n_users]).tolist()
    return bounds


def remember_shards(folder: Path, n_shards: int) -> None:
    """Note the number of shards where the checkpoints are: with another they are of no use."""
    with written_whole(folder / SHARDS) as unfinished:
        unfinished.write_text(json.dumps(n_shards), encoding="utf-8")


def remembered_shards(folder: Path) -> int | None:
    """Return the number of shards that checkpoints are of; nothing where there are none."""
    if not (folder / SHARDS).exists():
        return None
    try:
        n_shards = int(json.loads((folder / SHARDS).read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        n_shards = 0
    if n_shards < 1:
        raise UnreadableCheckpoint(
            f"{folder / SHARDS}: this checkpoint is damaged; start a new fit."
        )
    return n_shards


def _lost(error: Exception) -> Exception:
    """Return the error, as a loss where it tells of one."""
    return Lost(str(error) or type(error).__name__) if is_loss(error) else error
