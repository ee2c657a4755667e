"""A quick fit that needs no path: the state before anybody leaves the consensus.

It tells where on the time axis things will happen.
"""

from __future__ import annotations

import numpy as np

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Link
from isplitlbi.runtime.blocks import Exchange
from isplitlbi.solvers.driver import Dynamics, Machine
from isplitlbi.solvers.implicit import FIRST_STEP, Implicit
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats

# Kappa times the step of a fit that nothing should damp.
UNDAMPED = 1e5

# A user whose votes differ from the consensus by less than this share of one vote has nothing to
# say; if all are like that, the times must still be finite.
SMALLEST_RESIDUAL = 1e-3


def fit_before_entries(
    votes: Comparisons,
    link: Link,
    dynamics: Dynamics,
    n_threads: int = 1,
    backend: str | None = None,
    tol: float = 1e-4,
    exchange: Exchange | None = None,
) -> tuple[Floats, Floats]:
    """Fit consensus and deviations with every user still in the consensus (Gamma = 0).

    This is where the path rests before the first entry: deviations under a ridge of variance nu. It
    is one step of the implicit scheme, so damped by nothing, and so short that nobody leaves.
    """
    step = 1e-6 * dynamics.nu
    undamped = Dynamics(dynamics.nu, UNDAMPED / step, dynamics.delta)
    machine = Machine(kernels.backend(backend), n_threads, exchange)
    state = State.initial(votes.slots, votes.n_items, dynamics.delta)
    Implicit(tol).prepare(votes, link, undamped, machine).step(state, step / FIRST_STEP, np.inf)
    return state.consensus, state.deviation


def default_times(
    votes: Comparisons,
    link: Link,
    dynamics: Dynamics,
    n_times: int = 60,
    n_threads: int = 1,
    backend: str | None = None,
) -> Floats:
    """Return geometric times from before the first entry to well past the last useful one.

    Before the entries the dual grows as Z = t P / nu, so that user u leaves at about nu / |P_u|:
    the inverse of what the consensus leaves unexplained of that user's votes.
    Users who say little that is their own leave very late, and waiting for them teaches nothing:
    the range ends at a multiple of the time by which nine in ten of the active users have left.
    """
    found = residuals(votes, link, dynamics, n_threads, backend)
    return times_of(found, n_times)


def residuals(
    votes: Comparisons,
    link: Link,
    dynamics: Dynamics,
    n_threads: int = 1,
    backend: str | None = None,
    exchange: Exchange | None = None,
) -> Floats:
    """Return what the consensus leaves unexplained of the votes of every user who has some."""
    _, deviation = fit_before_entries(votes, link, dynamics, n_threads, backend, exchange=exchange)
    norm = np.sqrt(np.add.reduceat(deviation**2, votes.slots.start[:-1]))
    return norm[votes.votes_per_user > 0] / dynamics.nu


def times_of(residual: Floats, n_times: int = 60) -> Floats:
    """Return the times that `default_times` finds from the residuals of all users."""
    entry = 1.0 / np.maximum(residual, SMALLEST_RESIDUAL)
    first, late = np.min(entry), np.quantile(entry, 0.9)
    return np.geomspace(0.5 * first, max(4.0 * late, 8.0 * first), n_times)
