"""The workers of a Dask cluster as a workforce."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Summary
from isplitlbi.runtime.base import Job
from isplitlbi.runtime.dask.client import Connection
from isplitlbi.runtime.dask.placement import Placement, remember_shards, remembered_shards
from isplitlbi.runtime.dask.rounds import Costs, Failed, Rounds
from isplitlbi.runtime.dask.shards import Whole
from isplitlbi.runtime.dask.sources import VotesInMemory, VotesInParts, VoteSource
from isplitlbi.runtime.progress import Reporter

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Cluster"]

SIDE_BY_SIDE = 2  # jobs: one computes while the other waits for a total


class Cluster:
    """The shards of some votes on the workers of a client: they do jobs together.

    Parameters
    ----------
    client
        Of Dask.
    votes
        Those that the client holds, or parts that the workers read.
    backend
        Compiled loops or plain ones, on the workers.
    checkpoints
        Where checkpoints of the fit are kept, if they are: there the number of shards is that of
        its start. Otherwise it is the number of workers.
    again
        Whether the votes were there before; then nothing more is noted on them.
    """

    is_alone = False

    def __init__(
        self,
        client: Client,
        votes: Comparisons | Parts,
        backend: str | None = None,
        checkpoints: Path | None = None,
        *,
        again: bool = False,
    ) -> None:
        self._there = there = Connection(client)
        there.refuse_unfit()
        self.backend = backend
        self._n_shards = len(there.workers())
        if checkpoints is not None:
            self._n_shards = remembered_shards(checkpoints) or self._n_shards
        source: VoteSource
        if isinstance(votes, Parts):
            source = VotesInParts(there, votes, again)
        else:
            source = VotesInMemory(there, votes)
        self._placement, self._rounds = Placement(there, source, self._n_shards), Rounds(there)

    @cached_property
    def summary(self) -> Summary:
        """What is known of all votes."""
        return self._placement.summary()

    @property
    def costs(self) -> Costs:
        """What the rounds came to by now."""
        return replace(self._rounds.costs, losses=self._placement.losses)

    def run(self, job: Job, reporter: Reporter) -> Any:
        """Let all shards do a job; where a worker is lost, they do it again."""
        summary, n_threads = self.summary, self._there.n_threads()
        whole = Whole(
            len(self._placement), len(summary.users), summary.n_votes, n_threads, self.backend
        )
        try:
            return self._placement.insist(
                lambda shards: self._rounds.do(shards, job, whole, reporter)
            )
        except Failed as failed:
            raise failed.args[0] from None

    def side_by_side(self, jobs: Sequence[tuple[Job, Reporter]], reporter: Reporter) -> list[Any]:
        """Do a few jobs at a time."""
        pool = ThreadPoolExecutor(SIDE_BY_SIDE)
        try:
            return list(pool.map(self.run, *zip(*jobs, strict=True)))
        except BaseException:
            reporter.stop()  # the other job need not be done to its end
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def settle(self, folder: Path) -> None:
        """Note the number of shards beside the checkpoints."""
        remember_shards(folder, self._n_shards)
