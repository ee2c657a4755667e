"""Where a fit is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.runtime.base import Workforce
from isplitlbi.runtime.local import Local

__all__ = ["runtime_for"]

if TYPE_CHECKING:
    from distributed import Client


def runtime_for(
    votes: Comparisons | Parts,
    client: Client | None = None,
    *,
    n_threads: int = 1,
    backend: str | None = None,
    checkpoints: Path | None = None,
    again: bool = False,
) -> Workforce:
    """Return who works on votes: this machine, or the workers of a client of Dask.

    Parameters
    ----------
    votes
        Parts are read here, or by the workers.
    n_threads
        Threads on this machine; workers use those that they were started with.
    backend
        Compiled loops or plain ones.
    checkpoints
        Folder of the checkpoints of the fit, if there are any.
    again
        Whether these votes were used before; then what is noted on them is not told again.
    """
    if client is None:
        at_hand = votes.read().votes if isinstance(votes, Parts) else votes
        return Local(at_hand, n_threads, backend)
    from isplitlbi.runtime.dask.cluster import Cluster

    return Cluster(client, votes, backend, checkpoints, again=again)
