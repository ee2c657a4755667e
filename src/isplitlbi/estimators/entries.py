"""Rows that are zero but for a few places: what numbers count for in margins and levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isplitlbi.typing import Floats, Indices

__all__ = ["Entries"]


class Entries(NamedTuple):
    """Rows, one for every edge, that are zero but for a few places: where, and how much."""

    columns: list[tuple[Indices, Floats]]

    def within(self, units: Floats) -> Entries:
        """Return those in the first places, in some units."""
        n = len(units)
        return Entries([
            (at, amount * units[at]) for at, amount in self.columns if at.max(initial=-1) < n
        ])  # fmt: skip

    def added(self, by: Floats, n: int) -> Floats:
        """Return the sum of the rows, each times a number: (n,)."""
        return _filled(self.columns, by, n)

    def crossed(self, other: Entries, by: Floats, n: int) -> Floats:
        """Return the sum of the products of rows, each times a number: (n, n)."""
        products = [
            (at * n + place, amount * more)
            for at, amount in self.columns
            for place, more in other.columns
        ]
        return _filled(products, by, n * n).reshape(n, n)

    def spread(self, other: Entries, covariance: Floats) -> Floats:
        """Return what a covariance makes of every row and its other one."""
        found = [
            amount * more * covariance[at, place]
            for at, amount in self.columns
            for place, more in other.columns
        ]
        return np.asarray(sum(found), dtype=np.float64)


def _filled(columns: Sequence[tuple[Indices, Floats]], by: Floats, n: int) -> Floats:
    where = np.concatenate([at for at, _ in columns])
    amounts = np.concatenate([amount * by for _, amount in columns])
    return np.bincount(where, amounts, n).astype(np.float64, copy=False)
