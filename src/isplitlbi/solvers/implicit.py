"""The implicit scheme: second-order backward differences, so that steps may grow with time.

A step of backward Euler of length h from (c_old, P_old, Z_old) minimises::

    L(c, P) + |c - c_old|^2 / (2 kappa h) + |P - P_old|^2 / (2 kappa h) + sum_u phi_u(P_u)

where phi_u comes from eliminating the new Z and Gamma in closed form (`kernels.plain.assemble`).
The second-order formula (BDF2) is the same problem with a shorter h and an old state drawn from the
last two. The problem is convex. It is solved by a semismooth Newton method with a line search;
every Newton system by conjugate gradients, without forming a matrix. Thresholds have boxes, kept by
an active set. The length of the steps follows an estimate of the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isplitlbi.comparisons import Comparisons
from isplitlbi.links import Link
from isplitlbi.solvers.blocks import Blocks
from isplitlbi.solvers.driver import Dynamics, Machine, Momentum, State

Floats = NDArray[np.float64]

FIRST_STEP = 1e-3  # of the first requested time
SMALLEST_STEP = 1e-9  # of the time reached
MOST_GROWTH = 2.0  # of a step over the last; the formula is stable up to 2.4
NEWTON_ACCURACY = 1.0  # of the tolerance: a step shorter than this is the last
# Of the residual. Late on the path the consensus moves by the small difference of what its users
# pull, so that a rougher solution would drift.
CONJUGATE_ACCURACY = 3e-3
ERROR_FLOOR = 1e-2
MOST_NEWTON_STEPS = 30
MOST_CONJUGATE_STEPS = 200


@dataclass(frozen=True)
class Implicit:
    """Second-order backward differences with adaptive steps.

    Attributes
    ----------
    tol : float
        Relative error allowed in one step.
    max_steps : int
        Number of steps after which a path is given up.
    """

    tol: float = 3e-3
    max_steps: int = 100_000

    def __post_init__(self) -> None:
        """Refuse settings that make no step."""
        if not 0.0 < self.tol < 1.0:
            raise ValueError(f"tol is {self.tol}; it must lie between 0 and 1.")
        if self.max_steps < 1:
            raise ValueError(f"max_steps is {self.max_steps}; it must be at least 1.")

    def prepare(
        self, votes: Comparisons, link: Link, dynamics: Dynamics, machine: Machine
    ) -> _ImplicitStepper:
        """Return a stepper for these votes."""
        return _ImplicitStepper(self, votes, link, dynamics, machine)


@dataclass
class _Point:
    """A trial solution of one step: the consensus, and the users' own coordinates."""

    consensus: Floats
    own: Floats
    value: float = np.inf


@dataclass(frozen=True)
class _Origin:
    """What a step starts from: an old state and the length of a backward Euler step from it."""

    consensus: Floats
    deviation: Floats
    dual: Floats
    step: float


class _ImplicitStepper:
    def __init__(
        self,
        scheme: Implicit,
        votes: Comparisons,
        link: Link,
        dynamics: Dynamics,
        machine: Machine,
    ) -> None:
        self.scheme, self.link, self.dynamics, self.loops = scheme, link, dynamics, machine.loops
        self.slots, self.edges = votes.slots, votes.edges
        self.thresholds = votes.slots.threshold
        ties = np.bincount(votes.edges.owner, votes.edges.ties, votes.n_users)
        self.has_ties = ties > 0
        self.blocks = Blocks(votes, machine.n_threads)
        n_slots, width = len(votes.slots.coordinate), votes.n_items + 1
        self.gradient, self.diagonal = np.empty(n_slots), np.empty(n_slots)
        self.coupling, self.pushed = np.empty(n_slots), np.empty(n_slots)
        self.product, self.total = np.empty(n_slots), np.empty(n_slots)
        self.direction, self.newton = np.empty(n_slots), np.empty(n_slots)
        self.curvature = np.empty((len(votes.edges.first), 3))
        self.bend = np.empty((votes.n_users, 2))
        self.partial = np.empty((2, len(self.blocks), width))
        self.newton_steps = self.conjugate_steps = 0

    # --- one step in time ------------------------------------------------------------------

    def step(self, state: State, until: float, last: float) -> None:
        """Advance by one accepted step, at most to the last time."""
        momentum = state.momentum
        wanted = FIRST_STEP * until if momentum is None else momentum.next_step
        while True:
            landing = state.time + 1.5 * wanted >= last
            step = last - state.time if landing else wanted
            origin = self._origin(state, step)
            guess = self._predict(state, step)
            solved = self._solve(guess, origin)
            error = self._error(state, step, guess, solved)
            growth = 0.9 * (self.scheme.tol / max(error, 1e-12)) ** (1.0 / 3.0)
            # An error that is not a number is let through, for the driver to see.
            if not error > 2.0 * self.scheme.tol or step <= SMALLEST_STEP * until:
                break
            # Well below the step refused: two thirds of it could be rounded up to it again.
            wanted = step * min(max(growth, 0.2), 0.6)
        self._accept(state, origin, step, solved, step * min(growth, MOST_GROWTH))
        state.time = last if landing else state.time + step

    def _origin(self, state: State, step: float) -> _Origin:
        """Return the old state of the second-order formula; the first step is of first order."""
        if state.momentum is None:
            return _Origin(state.consensus, state.deviation, state.dual, step)
        momentum = state.momentum
        ratio = step / momentum.last_steps[0]
        # Written from the last state on: x_n + step ratio/(1 + 2 ratio) (x_n - x_{n-1}) / h_n.
        reach = step * ratio / (1.0 + 2.0 * ratio)
        return _Origin(
            state.consensus + reach * momentum.consensus_rate,
            state.deviation + reach * momentum.deviation_rate,
            state.dual + reach * momentum.dual_rate,
            step * (1.0 + ratio) / (1.0 + 2.0 * ratio),
        )

    def _predict(self, state: State, step: float) -> _Point:
        """Continue the last steps by a parabola."""
        consensus, own = state.consensus.copy(), state.deviation.copy()
        if state.momentum is not None:
            momentum = state.momentum
            bent = step * (step + momentum.last_steps[0])
            consensus += step * momentum.consensus_rate + bent * momentum.consensus_bend
            own += step * momentum.deviation_rate + bent * momentum.deviation_bend
        own[self.thresholds] += consensus[-1]
        now = state.consensus[-1] + state.deviation[self.thresholds]
        self._keep_bounds(consensus, own, now)
        return _Point(consensus, own)

    def _error(self, state: State, step: float, guess: _Point, solved: _Point) -> float:
        """Estimate the relative error of the step from how far the prediction was off.

        Both errors are multiples of the third derivative, so that their difference gives either.
        """
        if state.momentum is None:
            return 0.0
        last, before = state.momentum.last_steps
        of_formula = step * (step + last) / (2.0 * step + last)
        share = of_formula / (of_formula + step + last + before)
        deviation = solved.own.copy()
        deviation[self.thresholds] -= solved.consensus[-1]
        off_own = _norm(guess.own - solved.own)
        off_consensus = _norm(guess.consensus - solved.consensus)
        of_users = off_own / (_norm(deviation) + ERROR_FLOOR)
        of_consensus = off_consensus / (_norm(solved.consensus) + ERROR_FLOOR)
        return share * max(of_users, 2.0 * of_consensus)

    def _accept(
        self, state: State, origin: _Origin, step: float, solved: _Point, next_step: float
    ) -> None:
        deviation = solved.own
        deviation[self.thresholds] -= solved.consensus[-1]
        nu, kappa = self.dynamics.nu, self.dynamics.kappa
        dual, sparse = np.empty_like(deviation), np.empty_like(deviation)
        norms = np.empty_like(state.dual_norm)
        pushed = origin.dual + (origin.step / nu) * deviation

        def finish(_block: int, begin: int, end: int) -> None:
            self.loops.finish_step(
                self.slots, begin, end, pushed, kappa * origin.step / nu, kappa,
                dual, sparse, norms,
            )  # fmt: skip

        self.blocks.run(finish)
        consensus_rate = (solved.consensus - state.consensus) / step
        deviation_rate = (deviation - state.deviation) / step
        consensus_bend, deviation_bend = np.zeros_like(consensus_rate), np.zeros_like(deviation)
        last = step
        if state.momentum is not None:
            last = state.momentum.last_steps[0]
            consensus_bend = (consensus_rate - state.momentum.consensus_rate) / (step + last)
            deviation_bend = (deviation_rate - state.momentum.deviation_rate) / (step + last)
        state.momentum = Momentum(
            next_step,
            (step, last),
            consensus_rate,
            deviation_rate,
            (dual - state.dual) / step,
            consensus_bend,
            deviation_bend,
        )
        state.consensus, state.deviation = solved.consensus, deviation
        state.dual, state.sparse, state.dual_norm = dual, sparse, norms

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

    def _solve(self, guess: _Point, origin: _Origin) -> _Point:
        """Minimise the step's objective from a first guess, to a fraction of the tolerance."""
        point = _Point(guess.consensus.copy(), guess.own.copy())
        gradient = self._assemble(point, origin)
        if not np.isfinite(point.value):
            point.own[:] = np.nan
            return point
        for _ in range(MOST_NEWTON_STEPS):
            self.newton_steps += 1
            toward, slope = self._newton_direction(gradient, point, origin)
            length = 1.0
            while True:
                trial = _Point(point.consensus + length * toward, point.own + length * self.newton)
                self._keep_bounds(trial.consensus, trial.own, point.own[self.thresholds])
                if length == 1.0 and self._is_close(point, trial):
                    return trial  # Newton's method squares the error: this one is negligible
                next_gradient = self._assemble(trial, origin)
                gain = point.value - trial.value
                # Near the solution the gain drowns in rounding, and a full step is right.
                if gain >= 1e-4 * length * slope or slope <= 1e-10 * abs(point.value):
                    break
                length *= 0.5
                if length < 1e-6:
                    return point
            point, gradient = trial, next_gradient
        return point

    def _is_close(self, one: _Point, other: _Point) -> bool:
        enough = NEWTON_ACCURACY * self.scheme.tol
        of_users = _norm(one.own - other.own) / (_norm(other.own) + ERROR_FLOOR)
        of_consensus = _norm(one.consensus - other.consensus) / (
            _norm(other.consensus) + ERROR_FLOOR
        )
        return max(of_users, 2.0 * of_consensus) <= enough

    def _assemble(self, point: _Point, origin: _Origin) -> Floats:
        """Evaluate the objective at a point; return the consensus's gradient."""
        nu, kappa = self.dynamics.nu, self.dynamics.kappa
        of_gradient, of_diagonal = self.partial

        def assemble(block: int, begin: int, end: int) -> float:
            value: float = self.loops.assemble(
                self.link, self.slots, self.edges, begin, end,
                point.consensus, point.own, origin.deviation, origin.dual, origin.step, nu, kappa,
                self.gradient, self.diagonal, self.coupling, self.curvature, self.pushed, self.bend,
                self.total, of_gradient[block], of_diagonal[block],
            )  # fmt: skip
            return value

        moved = point.consensus - origin.consensus
        damping = 1.0 / (kappa * origin.step)
        point.value = sum(self.blocks.run(assemble)) + 0.5 * damping * _inner(moved, moved)
        self.consensus_diagonal = of_diagonal.sum(axis=0) + damping
        return np.asarray(of_gradient.sum(axis=0) + damping * moved)

    def _newton_direction(
        self, consensus_gradient: Floats, point: _Point, origin: _Origin
    ) -> tuple[Floats, float]:
        """Solve the Newton system by preconditioned conjugate gradients.

        The preconditioner couples every slot with its place in the consensus and nothing else, so
        that users are eliminated exactly: consensus and deviations may trade places freely, and
        without this their sum would be found long before their shares.

        Thresholds on their way to the bound, or at it and wanting to go below, would spoil the
        directions of the others: they go their own way. The users' part goes to ``self.newton``;
        returned are the consensus's part and the slope of the objective, negated.
        """
        delta = self.dynamics.delta
        damping = 1.0 / (self.dynamics.kappa * origin.step)
        residual, consensus_residual = -self.gradient, -consensus_gradient
        downhill = residual[self.thresholds] / self.diagonal[self.thresholds]
        free = (point.own[self.thresholds] + downhill > delta) | (downhill > 0.0)
        bound = self.thresholds[~free]
        residual[bound] = 0.0
        self.coupling[bound] = 0.0
        consensus_free = np.ones(len(consensus_residual), dtype=np.bool_)
        consensus_free[-1] = point.consensus[-1] > delta or consensus_residual[-1] > 0.0
        consensus_residual *= consensus_free

        partial = self.partial[0]

        def eliminate(block: int, begin: int, end: int) -> None:
            self.loops.eliminate_users(
                self.slots, begin, end, self.diagonal, self.coupling, partial[block]
            )

        def multiply(block: int, begin: int, end: int) -> float:
            total: float = self.loops.curvature_product(
                self.slots, self.edges, begin, end, self.curvature, self.pushed, self.bend, damping,
                free, self.diagonal, self.coupling, residual, preconditioned, direction, momentum,
                self.direction, self.total, self.product, partial[block],
            )  # fmt: skip
            return total

        def update(block: int, begin: int, end: int) -> float:
            total: float = self.loops.conjugate_update(
                self.slots, begin, end, length, self.direction, self.product, self.diagonal,
                self.coupling, self.newton, residual, partial[block],
            )  # fmt: skip
            return total

        def precondition() -> tuple[Floats, float]:
            of_users = sum(self.blocks.run(update))
            left = (consensus_residual - partial.sum(axis=0)) * consensus_free
            return left / schur, of_users + _inner(left, left / schur)

        self.blocks.run(eliminate)
        schur = self.consensus_diagonal - partial.sum(axis=0)
        self.newton[:] = self.direction[:] = self.product[:] = 0.0
        toward, direction = np.zeros_like(schur), np.zeros_like(schur)
        length = momentum = slope = 0.0
        preconditioned, size = precondition()
        target = CONJUGATE_ACCURACY**2 * size
        for _ in range(MOST_CONJUGATE_STEPS):
            if size <= target:
                break
            self.conjugate_steps += 1
            direction *= momentum
            direction += preconditioned
            along = sum(self.blocks.run(multiply))
            product = (partial.sum(axis=0) + damping * direction) * consensus_free
            along += _inner(direction, product)
            length = size / along
            slope += length * size
            toward += length * direction
            consensus_residual -= length * product
            preconditioned, new_size = precondition()
            size, momentum = new_size, new_size / size
        self.newton[bound] = downhill[~free]
        return toward, slope


# Not BLAS: for vectors this short its threads cost more than they save, and its sums may differ in
# their last bits with the number of threads.


def _inner(one: Floats, other: Floats) -> float:
    return float(np.sum(one * other))


def _norm(vector: Floats) -> float:
    return float(np.sqrt(_inner(vector, vector)))
