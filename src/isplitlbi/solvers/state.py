"""Where a path has got to."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isplitlbi.data.layout import Layout, Slots
from isplitlbi.kernels import Flow
from isplitlbi.typing import Floats

__all__ = ["State", "time_to_leave"]


@dataclass
class State:
    """Where a path has got to. Only the driver and the scheme change it."""

    time: float
    consensus: Floats
    deviation: Floats
    dual: Floats
    sparse: Floats
    dual_norm: Floats
    entry_times: Floats
    n_steps: int = 0
    memory: Any = None  # what a scheme remembers of its last steps; only that scheme looks at it

    @classmethod
    def initial(cls, layout: Layout, consensus: Floats) -> Self:
        """Return the beginning of a path: everybody in that consensus."""
        n_slots, n_users = layout.n_slots, layout.n_users
        return cls(
            time=0.0,
            consensus=consensus.copy(),
            deviation=np.zeros(n_slots),
            dual=np.zeros(n_slots),
            sparse=np.zeros(n_slots),
            dual_norm=np.zeros(n_users),
            entry_times=np.full(n_users, np.inf),
        )

    @property
    def flow(self) -> Flow:
        """What moves along the path."""
        return Flow(self.consensus, self.deviation, self.dual, self.sparse)

    def copy(self) -> State:
        """Return a state that shares nothing with this one."""
        return State(
            self.time,
            self.consensus.copy(),
            self.deviation.copy(),
            self.dual.copy(),
            self.sparse.copy(),
            self.dual_norm.copy(),
            self.entry_times.copy(),
            self.n_steps,
            deepcopy(self.memory),
        )

    def toward(self, later: State, time: float, slots: Slots) -> State:
        """Return the state at a time between this one and a later one, linearly.

        It is for looking at; a path goes on from the states that steps end in.
        """
        share = (time - self.time) / (later.time - self.time)

        def between(one: Floats, other: Floats) -> Floats:
            result = other - one  # in place from here on: these arrays may be large
            result *= share
            result += one
            return result

        norm = between(self.dual_norm, later.dual_norm)
        sparse = between(self.sparse, later.sparse)
        sparse[np.repeat(norm <= 1.0, slots.sizes)] = 0.0
        return State(
            time,
            between(self.consensus, later.consensus),
            between(self.deviation, later.deviation),
            between(self.dual, later.dual),
            sparse,
            norm,
            np.where(later.entry_times <= time, later.entry_times, np.inf),
            later.n_steps,
        )

    def record_entries(self, since: float, old_norm: Floats) -> None:
        """Date the users whose dual passed 1 in the last step, linearly within it."""
        new = np.flatnonzero((self.dual_norm > 1.0) & np.isinf(self.entry_times))
        if len(new):
            share = (1.0 - old_norm[new]) / (self.dual_norm[new] - old_norm[new])
            self.entry_times[new] = since + np.clip(share, 0.0, 1.0) * (self.time - since)


def time_to_leave(dual: Floats, rate: Floats, slots: Slots) -> Floats:
    """Return how long it takes the dual of every user to reach size 1, at a constant rate.

    It is infinite for users who never leave like that, and of no meaning for those who have left.
    """
    speed, along, room = (
        np.add.reduceat(one * other, slots.start[:-1])
        for one, other in ((rate, rate), (dual, rate), (dual, dual))
    )
    room = np.maximum(1.0 - room, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The root of a quadratic equation, in the form that loses no digits where speed is small.
        return np.where(speed > 0.0, room / (along + np.sqrt(along**2 + speed * room)), np.inf)
