"""The same fit on several machines, with Dask (it needs ``isplitlbi[dask]``).

Given the consensus, users are independent. A worker holds the votes of some users, a *shard*, and
follows the whole path for them with the loops of one machine. Wherever the fit adds up over users,
a shard hands its sum to the client and waits; the client adds up the sums of all shards, in their
order, and sends every shard the same total. That is a *round*: a few vectors of items + 1 numbers,
whatever the number of votes and users. Votes, parameters and held-out scores stay on the workers.

Conventions
-----------
shard      users next to each other in the vocabulary; how many there are is settled at the start,
           and a worker may hold several
job        something that all shards do together, such as to follow a path
heard      what a shard says when it is asked: a sum, a result, or what went wrong
lost       a worker that no longer answers; its shards are made again from the votes, and the job
           goes on from the last checkpoint that all shards have written, or from its start

`shard` is what is on a worker, `jobs` are what it does, `parts` are files that workers read,
`cluster` is the client's side of the rounds, and `fit` makes a fit of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.errors import WorkersLost
from isplitlbi.runtime.dask.cluster import (
    Cluster,
    Costs,
    Source,
    VotesInMemory,
    client_of,
    refuse_unfit,
)
from isplitlbi.runtime.dask.fit import Fit, abnormality_on
from isplitlbi.runtime.dask.parts import VotesInParts

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "Cluster",
    "Costs",
    "Fit",
    "VotesInMemory",
    "VotesInParts",
    "WorkersLost",
    "abnormality_on",
    "client_of",
    "cluster_of",
]


def cluster_of(
    client: Client,
    votes: Comparisons | Parts,
    folder: Path | None = None,
    *,
    again: bool = False,
) -> Cluster:
    """Put votes on the workers of a client: those that it holds, or parts that the workers read.

    Votes that were there before go there ``again`` without further notes on them.
    """
    refuse_unfit(client)
    source: Source
    if isinstance(votes, Parts):
        source = VotesInParts(client, votes, again)
    else:
        source = VotesInMemory(client, votes)
    return Cluster(client, source, folder)
