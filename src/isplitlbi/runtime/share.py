"""One machine's users among those of all machines that work together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.runtime.blocks import Exchange, total
from isplitlbi.typing import Floats


@dataclass(frozen=True)
class Share:
    """Which users are here, and how to learn of the others.

    All machines call the same methods in the same order.

    Attributes
    ----------
    exchange : callable, optional
        Adds up over all machines; none where everybody is here.
    first : int
        Index, among all users, of the first one here.
    n_users, n_votes : int
        Of all machines.
    numbers : callable
        For a seed, gives an object whose ``random(n)`` draws the part that belongs here of the
        numbers that one generator would give to all.
    """

    exchange: Exchange | None
    first: int
    n_users: int
    n_votes: int
    numbers: Callable[[int], Any]

    @classmethod
    def alone(cls, votes: Comparisons) -> Self:
        """Return the share of a machine that holds all users."""
        return cls(None, 0, votes.n_users, len(votes), np.random.default_rng)

    def total(self, *parts: Any) -> list[Any]:
        """Add up numbers and vectors over all machines."""
        return total(self.exchange, *parts)

    def any(self, found: bool) -> bool:
        """Say whether something was found on any machine."""
        return bool(self.total(float(found))[0] > 0.0)

    def everybody(self, values: Floats) -> Floats:
        """Return the values of all users, in order, from those of the users here."""
        everyone: Floats = np.zeros(self.n_users)
        everyone[self.first : self.first + len(values)] = values
        return everyone if self.exchange is None else self.exchange(everyone)
