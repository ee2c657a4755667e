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

from dataclasses import dataclass, replace

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.kernels import Origin, System
from isplitlbi.model.links import Link
from isplitlbi.runtime.blocks import Blocks
from isplitlbi.solvers.driver import Dynamics, Machine
from isplitlbi.solvers.newton import bounded, minimise, relative
from isplitlbi.solvers.state import Momentum, State
from isplitlbi.typing import Floats

FIRST_STEP = 1e-3  # of the first requested time
SMALLEST_STEP = 1e-9  # of the time reached
MOST_GROWTH = 2.0  # of a step over the last; the formula is stable up to 2.4
ROUGHNESS = 5.0  # of paths in cross-validation, in their tolerance
NEWTON_ACCURACY = 3.0  # of the tolerance: a Newton step shorter than this is the last


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

    tol: float = 2e-3
    max_steps: int = 100_000

    def __post_init__(self) -> None:
        """Refuse settings that make no step."""
        if not 0.0 < self.tol < 1.0:
            raise ValueError(f"tol is {self.tol}; it must lie between 0 and 1.")
        if self.max_steps < 1:
            raise ValueError(f"max_steps is {self.max_steps}; it must be at least 1.")

    def rough(self) -> Implicit:
        """Return settings for paths that only score held-out votes.

        The noise of such a score is much larger than what the longer steps change in it.
        """
        return replace(self, tol=max(self.tol, min(ROUGHNESS * self.tol, 0.1)))

    def prepare(
        self, votes: Comparisons, link: Link, dynamics: Dynamics, machine: Machine
    ) -> _ImplicitStepper:
        """Return a stepper for these votes."""
        return _ImplicitStepper(self, votes, link, dynamics, machine)


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
        self.blocks = Blocks(votes, machine.n_threads, machine.exchange)
        self.system = System.room(votes)
        self.evaluations = self.conjugate_steps = 0

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
            consensus, deviation = self._solve(guess[0].copy(), guess[1].copy(), origin)
            error = self._error(state, step, guess, (consensus, deviation))
            growth = 0.9 * (self.scheme.tol / max(error, 1e-12)) ** (1.0 / 3.0)
            # An error that is not a number is let through, for the driver to see.
            if not error > 2.0 * self.scheme.tol or step <= SMALLEST_STEP * until:
                break
            # Well below the step refused: two thirds of it could be rounded up to it again.
            wanted = step * min(max(growth, 0.2), 0.6)
        next_step = step * min(growth, MOST_GROWTH)
        self._accept(state, origin, step, consensus, deviation, next_step)
        state.time = last if landing else state.time + step

    def _origin(self, state: State, step: float) -> Origin:
        """Return the old state of the second-order formula; the first step is of first order."""
        nu, kappa = self.dynamics.nu, self.dynamics.kappa
        if state.momentum is None:
            return Origin(state.consensus, state.deviation, state.dual, step, nu, kappa)
        momentum = state.momentum
        ratio = step / momentum.last_steps[0]
        # Written from the last state on: x_n + step ratio/(1 + 2 ratio) (x_n - x_{n-1}) / h_n.
        reach = step * ratio / (1.0 + 2.0 * ratio)
        return Origin(
            state.consensus + reach * momentum.consensus_rate,
            self._extrapolate(state.deviation, momentum.deviation_rate, reach),
            self._extrapolate(state.dual, momentum.dual_rate, reach),
            step * (1.0 + ratio) / (1.0 + 2.0 * ratio),
            nu,
            kappa,
        )

    def _predict(self, state: State, step: float) -> tuple[Floats, Floats]:
        """Continue the last steps of consensus and deviations by a parabola."""
        if state.momentum is None:
            return state.consensus, state.deviation
        momentum = state.momentum
        bent = step * (step + momentum.last_steps[0])
        consensus = (
            state.consensus + step * momentum.consensus_rate + bent * momentum.consensus_bend
        )
        deviation = self._extrapolate(
            state.deviation, momentum.deviation_rate, step, momentum.deviation_bend, bent
        )
        consensus[-1] = max(consensus[-1], self.dynamics.delta)
        own = bounded(
            deviation[self.thresholds] + consensus[-1],
            state.deviation[self.thresholds] + state.consensus[-1],
            self.has_ties,
            self.dynamics.delta,
        )
        deviation[self.thresholds] = own - consensus[-1]
        return consensus, deviation

    def _error(
        self,
        state: State,
        step: float,
        guess: tuple[Floats, Floats],
        solved: tuple[Floats, Floats],
    ) -> float:
        """Estimate the relative error of the step from how far the prediction was off.

        Both errors are multiples of the third derivative, so that their difference gives either.
        """
        if state.momentum is None:
            return 0.0
        last, before = state.momentum.last_steps
        of_formula = step * (step + last) / (2.0 * step + last)
        share = of_formula / (of_formula + step + last + before)
        return share * relative(self.slots, *guess, *solved, 2.0, self.loops, self.blocks)

    def _accept(
        self,
        state: State,
        origin: Origin,
        step: float,
        consensus: Floats,
        deviation: Floats,
        next_step: float,
    ) -> None:
        dual, sparse = np.empty_like(deviation), np.empty_like(deviation)
        norms = np.empty_like(state.dual_norm)
        old = state.momentum
        if old is None:
            like = (consensus, deviation, dual, consensus, deviation)
            old = Momentum(next_step, (step, step), *map(np.zeros_like, like))
            bending = 0.0  # nothing is known yet of how the rates change
        else:
            bending = 1.0 / (step + old.last_steps[0])
        momentum = replace(old, next_step=next_step, last_steps=(step, old.last_steps[0]))

        def finish(_block: int, begin: int, end: int) -> None:
            self.loops.finish_step(
                self.slots, begin, end, origin, state.deviation, state.dual, step, bending,
                deviation, dual, sparse, norms,
                momentum.deviation_rate, momentum.dual_rate, momentum.deviation_bend,
            )  # fmt: skip

        self.blocks.run(finish)
        rate = (consensus - state.consensus) / step
        momentum.consensus_bend[:] = bending * (rate - momentum.consensus_rate)
        momentum.consensus_rate[:] = rate
        state.momentum = momentum
        state.consensus, state.deviation = consensus, deviation
        state.dual, state.sparse, state.dual_norm = dual, sparse, norms

    def _extrapolate(
        self,
        base: Floats,
        rate: Floats,
        length: float,
        bend: Floats | None = None,
        bending: float = 0.0,
    ) -> Floats:
        reached = np.empty_like(base)

        def extrapolate(_block: int, begin: int, end: int) -> None:
            self.loops.extrapolate(
                self.slots, begin, end, base, rate, base if bend is None else bend,
                length, bending, reached,
            )  # fmt: skip

        self.blocks.run(extrapolate)
        return reached

    def _solve(self, consensus: Floats, deviation: Floats, origin: Origin) -> tuple[Floats, Floats]:
        """Solve one step's problem, to a fraction of the tolerance, from a guess that is used up.

        A user's own coordinates are the deviations of the scores and the threshold itself.
        """
        delta = self.dynamics.delta
        own = deviation
        own[self.thresholds] = np.maximum(own[self.thresholds] + consensus[-1], delta)
        consensus, own, n_evaluations, n_conjugate_steps = minimise(
            self.link, self.slots, self.edges, origin, self.has_ties, delta,
            NEWTON_ACCURACY * self.scheme.tol, consensus, own, self.system,
            self.loops, self.blocks,
        )  # fmt: skip
        self.evaluations += n_evaluations
        self.conjugate_steps += n_conjugate_steps
        own[self.thresholds] -= consensus[-1]
        return consensus, own
