"""Two quick fits that need no path: the consensus alone, and the state before anybody leaves it.

They tell where on the time axis things will happen, and serve as points of comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from isplitlbi import kernels
from isplitlbi.comparisons import Comparisons, Edges, Slots
from isplitlbi.links import Link
from isplitlbi.solvers.driver import Dynamics, Machine, State
from isplitlbi.solvers.implicit import Implicit

Floats = NDArray[np.float64]

# Keeps the score of an item that always wins finite and centres the scores; far too wide to matter
# otherwise.
SCORE_VARIANCE = 1e4

# Kappa times the step of a fit that nothing should damp.
UNDAMPED = 1e8

# A user whose votes differ from the consensus by less than this share of one vote has nothing to
# say; if all are like that, the times must still be finite.
SMALLEST_RESIDUAL = 1e-3


def fit_consensus(
    votes: Comparisons, link: Link, delta: float = 1e-3, backend: str | None = None
) -> Floats:
    """Fit one score per item and one threshold, by maximum likelihood, as if all users were one."""
    slots, edges = _pooled(votes)
    loops = kernels.backend(backend)
    nobody = np.zeros(votes.n_items + 1)
    gradient, unused = np.empty(votes.n_items + 1), np.empty(votes.n_items + 1)

    def objective(consensus: Floats) -> tuple[float, Floats]:
        loss = loops.loss_and_gradient(link, slots, edges, consensus, nobody, gradient, unused)
        loss += 0.5 * consensus[:-1] @ consensus[:-1] / SCORE_VARIANCE
        gradient[:-1] += consensus[:-1] / SCORE_VARIANCE
        return loss, gradient.copy()

    start = np.zeros(votes.n_items + 1)
    start[-1] = max(1.0, delta)
    return _minimum(objective, start, np.array([votes.n_items]), delta, precision=1e-14)


def fit_before_entries(
    votes: Comparisons,
    link: Link,
    dynamics: Dynamics,
    backend: str | None = None,
    tol: float = 1e-4,
) -> tuple[Floats, Floats]:
    """Fit consensus and deviations with every user still in the consensus (Gamma = 0).

    This is where the path rests before the first entry: deviations under a ridge of variance nu. It
    is one step of the implicit scheme, so damped by nothing, and so short that nobody leaves.
    """
    step = 1e-6 * dynamics.nu
    undamped = Dynamics(dynamics.nu, UNDAMPED / step, dynamics.delta)
    machine = Machine(kernels.backend(backend), n_threads=1)
    state = State.initial(votes.slots, votes.n_items, dynamics.delta)
    Implicit(tol).prepare(votes, link, undamped, machine).step(state, step, step)
    return state.consensus, state.deviation


def default_times(
    votes: Comparisons,
    link: Link,
    dynamics: Dynamics,
    n_times: int = 60,
    backend: str | None = None,
) -> Floats:
    """Return geometric times from before the first entry to well past the last useful one.

    Before the entries the dual grows as Z = t P / nu, so that user u leaves at about nu / |P_u|:
    the inverse of what the consensus leaves unexplained of that user's votes.
    Users who say little that is their own leave very late, and waiting for them teaches nothing:
    the range ends at a multiple of the time by which nine in ten of the active users have left.
    """
    _, deviation = fit_before_entries(votes, link, dynamics, backend)
    norm = np.sqrt(np.add.reduceat(deviation**2, votes.slots.start[:-1]))
    residual = norm[votes.votes_per_user > 0] / dynamics.nu
    entry = 1.0 / np.maximum(residual, SMALLEST_RESIDUAL)
    first, late = np.min(entry), np.quantile(entry, 0.9)
    return np.geomspace(0.5 * first, max(4.0 * late, 8.0 * first), n_times)


def _minimum(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    boxed: NDArray[np.integer],
    delta: float,
    precision: float,
) -> Floats:
    lower = np.full(len(start), -np.inf)
    lower[boxed] = delta
    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(lower, [None] * len(start), strict=True)),
        options={"maxiter": 2000, "maxfun": 4000, "ftol": precision, "gtol": 1e-8},
    )
    return np.asarray(result.x)


def _pooled(votes: Comparisons) -> tuple[Slots, Edges]:
    """Return the votes as those of a single user."""
    item, edges = votes.slots.coordinate, votes.edges
    one, two = item[edges.first], item[edges.second]  # a user's slots are in the items' order
    pairs, which = np.unique(one.astype(np.int64) * votes.n_items + two, return_inverse=True)
    first, second = np.divmod(pairs, votes.n_items)

    def pooled(count: Floats) -> Floats:
        return np.asarray(np.bincount(which, count, len(pairs)), dtype=np.float64)

    width = votes.n_items + 1
    return (
        Slots(np.array([0, width]), np.arange(width, dtype=np.int32)),
        Edges(
            np.array([0, len(pairs)]),
            first.astype(np.int32),
            second.astype(np.int32),
            pooled(edges.first_wins),
            pooled(edges.ties),
            pooled(edges.second_wins),
        ),
    )
