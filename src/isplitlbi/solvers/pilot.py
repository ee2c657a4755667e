"""Two quick fits that need no path: the consensus alone, and the state before anybody leaves it.

They tell where on the time axis things will happen, and serve as points of comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import coo_array
from scipy.sparse.linalg import LinearOperator, cg

from isplitlbi import kernels
from isplitlbi.comparisons import Comparisons, tally
from isplitlbi.links import Link
from isplitlbi.solvers.driver import Dynamics, Machine
from isplitlbi.solvers.implicit import FIRST_STEP, Implicit
from isplitlbi.solvers.state import State

Floats = NDArray[np.float64]

# Keeps the score of an item that always wins finite and centres the scores; far too wide to matter
# otherwise.
SCORE_VARIANCE = 1e4

# A step shorter than this is the last of the consensus's fit: Newton's method squares the error.
NEWTON_ACCURACY = 1e-7
MOST_NEWTON_STEPS = 200
MOST_HALVINGS = 40  # of one such step
# Beyond, conjugate gradients are as fast as factors, and do not set all cores to work.
MOST_DENSE_ITEMS = 128

# Kappa times the step of a fit that nothing should damp.
UNDAMPED = 1e5

# A user whose votes differ from the consensus by less than this share of one vote has nothing to
# say; if all are like that, the times must still be finite.
SMALLEST_RESIDUAL = 1e-3


def fit_consensus(votes: Comparisons, link: Link, delta: float = 1e-3) -> Floats:
    """Fit one score per item and one threshold, by maximum likelihood, as if all users were one.

    Votes collapse to counts per pair, so few that NumPy needs no compiled loop.
    """
    n_items = votes.n_items
    pairs, counts = tally(votes.left, votes.right, votes.outcome, votes.weight, n_items)
    first, second = np.divmod(pairs, n_items)

    def evaluate(at: Floats) -> tuple[float, Floats, Curvature]:
        margin = at[first] - at[second]
        loss, by_margin, by_threshold, *curvature = link.vote_terms(margin, at[-1], *counts)
        gradient = np.append(at[:-1] / SCORE_VARIANCE, np.sum(by_threshold))
        gradient[:-1] += np.bincount(first, by_margin, n_items)
        gradient[:-1] -= np.bincount(second, by_margin, n_items)
        value = float(np.sum(loss)) + 0.5 * float(at[:-1] @ at[:-1]) / SCORE_VARIANCE
        return value, gradient, Curvature(n_items, first, second, *curvature)

    start = np.zeros(n_items + 1)
    start[-1] = max(1.0, delta)
    return _minimum(evaluate, start, delta)


def fit_before_entries(
    votes: Comparisons,
    link: Link,
    dynamics: Dynamics,
    n_threads: int = 1,
    backend: str | None = None,
    tol: float = 1e-4,
) -> tuple[Floats, Floats]:
    """Fit consensus and deviations with every user still in the consensus (Gamma = 0).

    This is where the path rests before the first entry: deviations under a ridge of variance nu. It
    is one step of the implicit scheme, so damped by nothing, and so short that nobody leaves.
    """
    step = 1e-6 * dynamics.nu
    undamped = Dynamics(dynamics.nu, UNDAMPED / step, dynamics.delta)
    machine = Machine(kernels.backend(backend), n_threads)
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
    _, deviation = fit_before_entries(votes, link, dynamics, n_threads, backend)
    norm = np.sqrt(np.add.reduceat(deviation**2, votes.slots.start[:-1]))
    residual = norm[votes.votes_per_user > 0] / dynamics.nu
    entry = 1.0 / np.maximum(residual, SMALLEST_RESIDUAL)
    first, late = np.min(entry), np.quantile(entry, 0.9)
    return np.geomspace(0.5 * first, max(4.0 * late, 8.0 * first), n_times)


class Curvature(NamedTuple):
    """The second derivatives of a consensus's loss, pair by pair."""

    n_items: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    by_margin: Floats
    mixed: Floats
    by_threshold: Floats

    def solve(self, right: Floats, threshold_free: bool) -> Floats:
        """Solve for a Newton direction; a threshold that is not free stays where it is."""
        n_items, width = self.n_items, self.n_items + 1
        upper = coo_array((-self.by_margin, (self.first, self.second)), shape=(width, width))
        diagonal = np.empty(width)
        diagonal[:-1] = self._at_items(self.by_margin, 1.0) + 1.0 / SCORE_VARIANCE
        diagonal[-1] = np.sum(self.by_threshold)
        border = self._at_items(self.mixed, -1.0)
        if not threshold_free or diagonal[-1] <= 0.0:
            diagonal[-1], border[:] = 1.0, 0.0
        if n_items <= MOST_DENSE_ITEMS:
            dense = upper.toarray()
            dense[:-1, -1] = border
            np.fill_diagonal(dense, diagonal)
            return np.asarray(cho_solve(cho_factor(dense, check_finite=False), right))
        half = upper.tocsr()
        transposed = half.T.tocsr()

        def multiply(x: Floats) -> Floats:
            product = half @ x + transposed @ x + diagonal * x
            product[:-1] += border * x[-1]
            product[-1] += border @ x[:-1]
            return np.asarray(product)

        shape = (width, width)
        solution, _ = cg(
            LinearOperator(shape, matvec=multiply, dtype=np.float64),
            right,
            rtol=1e-8,
            maxiter=10 * width,
            M=LinearOperator(shape, matvec=lambda x: x / diagonal, dtype=np.float64),
        )
        return np.asarray(solution)

    def _at_items(self, of_pairs: Floats, sign: float) -> Floats:
        """Sum what pairs give to their first item and, with a sign, to their second."""
        of_first = np.bincount(self.first, of_pairs, self.n_items)
        return np.asarray(of_first + sign * np.bincount(self.second, of_pairs, self.n_items))


def _minimum(
    evaluate: Callable[[Floats], tuple[float, Floats, Curvature]], point: Floats, delta: float
) -> Floats:
    """Minimise a convex function of scores and a threshold of at least delta by Newton's method."""
    value, gradient, curvature = evaluate(point)
    for _ in range(MOST_NEWTON_STEPS):
        free = point[-1] > delta or gradient[-1] < 0.0
        step = curvature.solve(np.append(-gradient[:-1], -gradient[-1] * free), free)
        step[:-1] -= np.mean(step[:-1])  # the prior centres the scores, rounding moves them
        for halvings in range(MOST_HALVINGS):
            trial = point + 0.5**halvings * step
            trial[-1] = max(trial[-1], delta)
            new = evaluate(trial)
            slope = float(gradient @ (point - trial))
            # Near the solution the gain drowns in rounding, and a full step is right.
            if value - new[0] >= 1e-4 * slope or slope <= 1e-12 * abs(value):
                break
        moved = float(np.max(np.abs(trial - point)))
        point, (value, gradient, curvature) = trial, new
        if moved <= NEWTON_ACCURACY:
            break
    return point
