"""Users in blocks, blocks on threads, sums in a fixed order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from isplitlbi.data.layout import Layout
from isplitlbi.runtime.base import Runtime

__all__ = ["Blocks"]

# Large enough to hide the cost of handing a block to a thread, small enough to share the work out.
EDGES_PER_BLOCK = 1 << 14
MOST_BLOCKS = 64


class Blocks:
    """Contiguous ranges of users with about as many edges each.

    Where the blocks lie depends on the votes alone, and what they return is summed block after
    block: results do not depend on the number of threads. Where other machines hold other users,
    `total` adds up over all of them.
    """

    def __init__(self, layout: Layout, runtime: Runtime) -> None:
        ends = layout.edges.start[1:]
        n_blocks = int(np.clip(ends[-1] // EDGES_PER_BLOCK, 1, MOST_BLOCKS))
        cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_blocks) / n_blocks) + 1
        bounds = np.unique(np.concatenate([[0], cuts, [layout.n_users]])).tolist()
        self.ranges = list(pairwise(bounds))
        self._runtime = runtime
        self._n_others = min(runtime.n_threads, len(self.ranges)) - 1
        self._pool = ThreadPoolExecutor(self._n_others) if self._n_others > 0 else None

    def __len__(self) -> int:
        return len(self.ranges)

    @property
    def is_single(self) -> bool:
        """Whether all users of the fit are in one block."""
        return len(self) == 1 and self._runtime.is_alone

    def total(self, *parts: Any) -> list[Any]:
        """Add up numbers and vectors of all blocks here over all machines."""
        return self._runtime.total(*parts)

    def run(self, work: Callable[[int, tuple[int, int]], Any]) -> list[Any]:
        """Call ``work(block, users)`` for every block; return the results in order."""
        if self._pool is None:
            return [work(block, users) for block, users in enumerate(self.ranges)]
        results: list[Any] = [None] * len(self.ranges)
        left = iter(list(enumerate(self.ranges)))  # each thread takes the next one

        def take() -> None:
            for block, users in left:
                results[block] = work(block, users)

        others = [self._pool.submit(take) for _ in range(self._n_others)]
        take()
        for other in others:
            other.result()
        return results
