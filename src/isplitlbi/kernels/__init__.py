"""The loops over votes, twice: readable in `numpy_loops` (NumPy), fast in `numba_loops` (numba).

Both modules hold the same functions with the same signatures; tests hold them equal. The compiled
one is used unless ``ISPLITLBI_BACKEND=numpy`` is set. It is imported on first use, because
importing numba takes longer than most commands.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.typing import Floats

BACKENDS = {"numba": "numba_loops", "numpy": "numpy_loops"}

# How hard one step of the implicit scheme is worked at. The residual of a Newton system: late on
# the path the consensus moves by the small difference of what its users pull, so that a rougher
# solution would drift.
CONJUGATE_ACCURACY = 3e-3
MOST_CONJUGATE_STEPS = 200
MOST_NEWTON_STEPS = 30
SHORTEST_MOVE = 1e-6  # of a Newton step: a line search that gets there has met rounding
# How much more closely the consensus must be solved for than its users, for the same reason.
CLOSE_CONSENSUS = 8.0
ERROR_FLOOR = 1e-2  # added to the size of what an error is relative to


def backend(name: str | None = None) -> Any:
    """Return the module with the loops; by default the compiled one."""
    chosen = name or os.environ.get("ISPLITLBI_BACKEND", "numba")
    if chosen not in BACKENDS:
        raise ValueError(f"backend {chosen!r} is not one of {', '.join(BACKENDS)}.")
    return importlib.import_module(f"{__name__}.{BACKENDS[chosen]}")


class Origin(NamedTuple):
    """What a step of the implicit scheme starts from, and its length."""

    consensus: Floats  # (n_items + 1,)
    deviation: Floats  # (n_slots,)
    dual: Floats  # (n_slots,)
    step: float
    nu: float
    kappa: float

    @property
    def damping(self) -> float:
        """What holds every coordinate back."""
        return 1.0 / (self.kappa * self.step)


class System(NamedTuple):
    """The Newton system of one step, as far as it belongs to the users.

    A user's coordinates are the deviations of the scores and the threshold itself.
    """

    residual: Floats  # (n_slots,) minus the objective's gradient, until a direction is found
    inverse: Floats  # (n_slots,) of the second derivative of every slot with itself
    coupling: Floats  # (n_slots,) second derivative with the slot's place in the consensus
    pushed: Floats  # (n_slots,) W = Z_old + (step / nu) P
    bend: Floats  # (n_users, 2) the dual term's second derivative is bend0 I - bend1 W W'
    curvature: Floats  # (3, n_edges) second derivatives of the losses: mm, mt, tt
    free: NDArray[np.bool_]  # (n_users,) whether the threshold is off its bound
    direction: Floats  # (n_slots,) of the conjugate gradients
    product: Floats  # (n_slots,) of the curvature with that direction
    solution: Floats  # (n_slots,)

    @classmethod
    def room(cls, votes: Comparisons) -> Self:
        """Return a system to be filled."""
        n_slots, n_edges, n_users = (
            len(votes.slots.coordinate),
            len(votes.edges.first),
            votes.n_users,
        )
        residual, inverse, coupling, pushed, direction, product, solution = (
            np.empty(n_slots) for _ in range(7)
        )
        bend, curvature = np.empty((n_users, 2)), np.empty((3, n_edges))
        free = np.empty(n_users, dtype=np.bool_)
        return cls(
            residual, inverse, coupling, pushed, bend, curvature, free, direction, product, solution
        )
