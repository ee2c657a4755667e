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

`client` connects, `sources` are the votes, `shards` are what is on a worker, `placement` says where
they are, `rounds` are what they say to each other, and `cluster` makes a workforce of them.
"""

from __future__ import annotations

from isplitlbi.runtime.dask.client import client_of
from isplitlbi.runtime.dask.cluster import Cluster
from isplitlbi.runtime.dask.rounds import Costs

__all__ = ["Cluster", "Costs", "client_of"]
