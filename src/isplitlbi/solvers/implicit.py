"""The implicit scheme: backward Euler, so that steps may grow with time.

Given the state at t and a step h, the new consensus c and deviations P minimise::

    L(c, P) + |c - c_old|^2 / (2 kappa h) + |P - P_old|^2 / (2 kappa h) + sum_u phi_u(P_u)

where phi_u comes from eliminating the new Z and Gamma in closed form (`kernels.plain.assemble`).
The problem is convex. It is solved by a semismooth Newton method with a line search; every Newton
system by conjugate gradients, without forming a matrix. Thresholds have boxes, kept by an active
set. The length of the steps follows an estimate of the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isplitlbi.comparisons import Comparisons
from isplitlbi.links import Link
from isplitlbi.solvers.blocks import Blocks, available_threads
from isplitlbi.solvers.driver import Dynamics, Momentum, State

Floats = NDArray[np.float64]

FIRST_STEP = 1e-3  # of the first requested time
SMALLEST_STEP = 1e-9  # of the time reached
MOST_NEWTON_STEPS = 30
MOST_CONJUGATE_STEPS = 200


@dataclass(frozen=True)
class Implicit:
    """Backward Euler with adaptive steps.

    Attributes
    ----------
    tol : float
        Relative error allowed in one step; halving it adds about 40 % more steps.
    n_threads : int, optional
        Threads that share the users; all that the process may use by default. The result is the
        same for any number.
    max_steps : int
        Number of steps after which a path is given up.
    """

    tol: float = 2e-3
    n_threads: int | None = None
    max_steps: int = 100_000

    def __post_init__(self) -> None:
        """Refuse settings that make no step."""
        if not 0.0 < self.tol < 1.0:
            raise ValueError(f"tol is {self.tol}; it must lie between 0 and 1.")
        if self.n_threads is not None and self.n_threads < 1:
            raise ValueError(f"n_threads is {self.n_threads}; it must be at least 1.")
        if self.max_steps < 1:
            raise ValueError(f"max_steps is {self.max_steps}; it must be at least 1.")

    def prepare(
        self, votes: Comparisons, link: Link, dynamics: Dynamics, loops: Any
    ) -> _ImplicitStepper:
        """Return a stepper for these votes."""
        return _ImplicitStepper(self, votes, link, dynamics, loops)


@dataclass
class _Point:
    """A trial solution of one step, with what `assemble` says of it."""

    consensus: Floats
    own: Floats
    value: float = np.inf


class _ImplicitStepper:
    def __init__(
        self, scheme: Implicit, votes: Comparisons, link: Link, dynamics: Dynamics, loops: Any
    ) -> None:
        self.scheme, self.link, self.dynamics, self.loops = scheme, link, dynamics, loops
        self.slots, self.edges = votes.slots, votes.edges
        self.thresholds = votes.slots.threshold
        ties = np.bincount(votes.edges.owner, votes.edges.ties, votes.n_users)
        self.has_ties = ties > 0
        self.blocks = Blocks(votes, scheme.n_threads or available_threads())
        n_slots, width = len(votes.slots.coordinate), votes.n_items + 1
        self.gradient, self.diagonal = np.empty(n_slots), np.empty(n_slots)
        self.pushed, self.product = np.empty(n_slots), np.empty(n_slots)
        self.direction, self.newton = np.empty(n_slots), np.empty(n_slots)
        self.curvature = np.empty((len(votes.edges.first), 3))
        self.bend = np.empty((votes.n_users, 2))
        self.partial = np.empty((2, len(self.blocks), width))
        self.newton_steps = self.conjugate_steps = 0

    # --- one step in time ------------------------------------------------------------------

    def step(self, state: State, until: float) -> None:
        """Advance by one accepted step, at most to ``until``."""
        momentum = state.momentum
        wanted = FIRST_STEP * until if momentum is None else momentum.next_step
        while True:
            landing = state.time + wanted * (1.0 + 1e-6) >= until
            step = until - state.time if landing else wanted
            guess = self._predict(state, step)
            predicted = _Point(guess.consensus.copy(), guess.own.copy())
            solved = self._solve(guess, state, step)
            error = self._error(state, step, predicted, solved)
            growth = 0.9 * np.sqrt(self.scheme.tol / max(error, 1e-12))
            if error <= 2.0 * self.scheme.tol or step <= SMALLEST_STEP * until:
                break
            wanted = step * max(growth, 0.2)
        self._accept(state, step, until if landing else state.time + step, solved)
        # A step cut short to land on a requested time says nothing against the longer one.
        proposed = step * min(growth, 2.0)
        next_step = max(proposed, wanted) if landing and growth >= 1.0 else proposed
        assert state.momentum is not None
        state.momentum = Momentum(
            next_step,
            step,
            state.momentum.consensus_rate,
            state.momentum.deviation_rate,
        )

    def _predict(self, state: State, step: float) -> _Point:
        consensus, deviation = state.consensus.copy(), state.deviation.copy()
        if state.momentum is not None:
            consensus += step * state.momentum.consensus_rate
            deviation += step * state.momentum.deviation_rate
        own = deviation
        own[self.thresholds] += consensus[-1]
        now = state.consensus[-1] + state.deviation[self.thresholds]
        self._keep_bounds(consensus, own, now)
        return _Point(consensus, own)

    def _error(self, state: State, step: float, predicted: _Point, solved: _Point) -> float:
        """Estimate the relative error of the step from how far the prediction was off."""
        if state.momentum is None:
            return 0.0
        share = step / (step + state.momentum.last_step)
        off_own = predicted.own - solved.own
        off_consensus = predicted.consensus - solved.consensus
        deviation = solved.own.copy()
        deviation[self.thresholds] -= solved.consensus[-1]
        floor = 1e-2
        of_users = np.linalg.norm(off_own) / (np.linalg.norm(deviation) + floor)
        of_consensus = np.linalg.norm(off_consensus) / (np.linalg.norm(solved.consensus) + floor)
        return float(share * max(of_users, 2.0 * of_consensus))

    def _accept(self, state: State, step: float, time: float, solved: _Point) -> None:
        deviation = solved.own
        deviation[self.thresholds] -= solved.consensus[-1]
        state.momentum = Momentum(
            step, step, (solved.consensus - state.consensus) / step,
            (deviation - state.deviation) / step,
        )  # fmt: skip
        nu, kappa = self.dynamics.nu, self.dynamics.kappa
        norms = np.empty_like(state.dual_norm)

        def finish(_block: int, begin: int, end: int) -> None:
            self.loops.finish_step(
                self.slots, begin, end, self.pushed, kappa * step / nu, kappa,
                state.dual, state.sparse, norms,
            )  # fmt: skip

        self.blocks.run(finish)
        state.consensus, state.deviation = solved.consensus, deviation
        state.dual_norm, state.time = norms, time

    def _keep_bounds(self, consensus: Floats, own: Floats, now: Floats) -> None:
        """Move thresholds into their boxes.

        A user with ties feels a barrier at zero, far from which Newton's method overshoots: such a
        threshold goes at most nine tenths of the way to the bound at once.
        """
        delta = self.dynamics.delta
        lowest = np.where(self.has_ties, delta + 0.1 * (now - delta), delta)
        consensus[-1] = max(consensus[-1], delta)
        own[self.thresholds] = np.maximum(own[self.thresholds], lowest)

    # --- Newton ----------------------------------------------------------------------------

    def _solve(self, point: _Point, state: State, step: float) -> _Point:
        """Minimise the step's objective from a first guess, to a fraction of the tolerance."""
        accuracy = 0.5 * self.scheme.tol
        scale = max(1.0, float(np.linalg.norm(point.own)))
        gradient = self._assemble(point, state, step)
        for _ in range(MOST_NEWTON_STEPS):
            self.newton_steps += 1
            toward, slope = self._newton_direction(gradient, point, step)
            length = 1.0
            while True:
                trial = _Point(point.consensus + length * toward, point.own + length * self.newton)
                self._keep_bounds(trial.consensus, trial.own, point.own[self.thresholds])
                next_gradient = self._assemble(trial, state, step)
                gain = point.value - trial.value
                # Near the solution the gain drowns in rounding, and a full step is right.
                if gain >= 1e-4 * length * slope or slope <= 1e-10 * abs(point.value):
                    break
                length *= 0.5
                if length < 1e-6:
                    self._assemble(point, state, step)
                    return point
            moved = np.hypot(
                np.linalg.norm(trial.own - point.own),
                np.linalg.norm(trial.consensus - point.consensus),
            )
            point, gradient = trial, next_gradient
            if length == 1.0 and moved <= accuracy * scale:
                break
        return point

    def _assemble(self, point: _Point, state: State, step: float) -> Floats:
        """Evaluate the objective at a point; return the consensus's gradient."""
        nu, kappa = self.dynamics.nu, self.dynamics.kappa
        of_gradient, of_diagonal = self.partial

        def assemble(block: int, begin: int, end: int) -> float:
            value: float = self.loops.assemble(
                self.link, self.slots, self.edges, begin, end,
                point.consensus, point.own, state.deviation, state.dual, step, nu, kappa,
                self.gradient, self.diagonal, self.curvature, self.pushed, self.bend,
                of_gradient[block], of_diagonal[block],
            )  # fmt: skip
            return value

        moved = point.consensus - state.consensus
        damping = 1.0 / (kappa * step)
        point.value = sum(self.blocks.run(assemble)) + 0.5 * damping * float(moved @ moved)
        self.consensus_diagonal = of_diagonal.sum(axis=0) + damping
        return np.asarray(of_gradient.sum(axis=0) + damping * moved)

    def _newton_direction(
        self, consensus_gradient: Floats, point: _Point, step: float
    ) -> tuple[Floats, float]:
        """Solve the Newton system by preconditioned conjugate gradients.

        Thresholds on their way to the bound, or at it and wanting to go below, would spoil the
        directions of the others: they go their own way. The users' part goes to ``self.newton``;
        returned are the consensus's part and the slope of the objective, negated.
        """
        delta = self.dynamics.delta
        damping = 1.0 / (self.dynamics.kappa * step)
        residual, consensus_residual = -self.gradient, -consensus_gradient
        downhill = residual[self.thresholds] / self.diagonal[self.thresholds]
        free = (point.own[self.thresholds] + downhill > delta) | (downhill > 0.0)
        residual[self.thresholds[~free]] = 0.0
        consensus_free = point.consensus[-1] > delta or consensus_residual[-1] > 0.0
        if not consensus_free:
            consensus_residual[-1] = 0.0

        self.newton[:] = 0.0
        self.direction[:] = 0.0
        toward = np.zeros_like(consensus_gradient)
        consensus_direction = np.zeros_like(consensus_gradient)
        products = self.partial[0]

        def multiply(block: int, begin: int, end: int) -> float:
            total: float = self.loops.curvature_product(
                self.slots, self.edges, begin, end, self.curvature, self.pushed, self.bend, damping,
                free, consensus_direction, self.direction, residual, self.diagonal, momentum,
                self.product, products[block],
            )  # fmt: skip
            return total

        def update(_block: int, begin: int, end: int) -> float:
            total: float = self.loops.conjugate_update(
                self.slots, begin, end, length, self.direction, self.product, self.diagonal,
                self.newton, residual,
            )  # fmt: skip
            return total

        size = float(residual @ (residual / self.diagonal)) + float(
            consensus_residual @ (consensus_residual / self.consensus_diagonal)
        )
        target, momentum, slope = 1e-2 * size, 0.0, 0.0
        for _ in range(MOST_CONJUGATE_STEPS):
            if size <= target or size == 0.0:
                break
            self.conjugate_steps += 1
            consensus_direction *= momentum
            consensus_direction += consensus_residual / self.consensus_diagonal
            along = sum(self.blocks.run(multiply))
            consensus_product = products.sum(axis=0) + damping * consensus_direction
            if not consensus_free:
                consensus_product[-1] = 0.0
            along += float(consensus_direction @ consensus_product)
            length = size / along
            slope += length * size
            toward += length * consensus_direction
            consensus_residual -= length * consensus_product
            new_size = sum(self.blocks.run(update)) + float(
                consensus_residual @ (consensus_residual / self.consensus_diagonal)
            )
            size, momentum = new_size, new_size / size
        bound = self.thresholds[~free]
        self.newton[bound] = downhill[~free]
        return toward, slope
