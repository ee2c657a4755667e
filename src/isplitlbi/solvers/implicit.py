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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from isplitlbi.data.layout import Layout
from isplitlbi.errors import InvalidSetting
from isplitlbi.kernels import Anchor, Flow, Rates, Users
from isplitlbi.kernels.numpy_loops import within_box
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.newton import Solver
from isplitlbi.solvers.settings import PathSettings
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats

__all__ = ["NEWTON_ACCURACY", "Implicit"]

FIRST_STEP = 1e-3  # of the first requested time
BEFORE_ENTRY = 0.5  # of the time until the first user leaves
SMALLEST_STEP = 1e-9  # of the time reached
MOST_GROWTH = 2.0  # of a step over the last; the formula is stable up to 2.4
ROUGHNESS = 5.0  # of paths in cross-validation, in their tolerance
NEWTON_ACCURACY = 3.0  # of the tolerance: a Newton step shorter than this is the last
# A step shorter than this, of the time reached, may be so for what Newton's method left undone:
# where the density of a link has a corner, that is taken for an error in time, and no shorter step
# mends it. Such a step is solved for more closely.
SHORT_STEP, MORE_ACCURATE = 2e-3, 1e-2


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

    works_together: ClassVar[bool] = True

    tol: float = 2e-3
    max_steps: int = 100_000

    def __post_init__(self) -> None:
        """Refuse settings that make no step."""
        if not 0.0 < self.tol < 1.0:
            raise InvalidSetting(f"tol is {self.tol}; it must lie between 0 and 1.")
        if self.max_steps < 1:
            raise InvalidSetting(f"max_steps is {self.max_steps}; it must be at least 1.")

    def rough(self) -> Implicit:
        """Return settings for paths that only score held-out votes.

        The noise of such a score is much larger than what the longer steps change in it.
        """
        return replace(self, tol=max(self.tol, min(ROUGHNESS * self.tol, 0.1)))

    def prepare(self, layout: Layout, settings: PathSettings, runtime: Runtime) -> _ImplicitStepper:
        """Return a stepper for these votes."""
        return _ImplicitStepper(self, layout, settings, runtime)

    def pack(self, memory: Memory | None) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Return what a checkpoint must hold of the last steps."""
        if memory is None:
            return {}, {}
        header = {"next_step": memory.next_step, "last_steps": list(memory.last_steps)}
        of_consensus = {"rate": memory.consensus_rate, "bend": memory.consensus_bend}
        return header, of_consensus | memory.rates._asdict()

    def unpack(self, header: Mapping[str, Any], arrays: Mapping[str, Floats]) -> Memory | None:
        """Return the memory of the last steps from what `pack` has made of it."""
        if not header:
            return None
        last, before = header["last_steps"]
        rates = Rates(*(arrays[name] for name in Rates._fields))
        return Memory(header["next_step"], (last, before), arrays["rate"], arrays["bend"], rates)


@dataclass(frozen=True)
class Memory:
    """What is remembered of the last steps.

    Rates are differences over the last step; bends are second divided differences.
    """

    next_step: float
    last_steps: tuple[float, float]
    consensus_rate: Floats
    consensus_bend: Floats
    rates: Rates  # those of the users


class _ImplicitStepper:
    def __init__(
        self, scheme: Implicit, layout: Layout, settings: PathSettings, runtime: Runtime
    ) -> None:
        self.scheme, self.numbers, self.loops = scheme, settings.dynamics.numbers, runtime.loops
        self.slots, self.threshold_at = layout.slots, layout.vector.threshold
        self.runtime = runtime
        self.holds = settings.terms.holds
        self.solver = Solver(
            layout, settings.link, settings.dynamics.delta, runtime, settings.terms
        )
        self.evaluations = self.conjugate_steps = 0

    # --- one step in time ------------------------------------------------------------------

    def step(self, state: State, until: float, last: float) -> None:
        """Advance by one accepted step, at most to the last time."""
        memory: Memory | None = state.memory
        wanted = self._first_step(state, until) if memory is None else memory.next_step
        while True:
            landing = state.time + 1.5 * wanted >= last
            step = last - state.time if landing else wanted
            anchor = self._anchor(state, step)
            guess = self._predict(state, step)
            is_short = step < SHORT_STEP * state.time
            solved = self._solve(guess[0].copy(), guess[1].copy(), anchor, is_short)
            error = self._error(memory, step, guess, solved)
            growth = 0.9 * (self.scheme.tol / max(error, 1e-12)) ** (1.0 / 3.0)
            # An error that is not a number is let through, for the driver to see.
            if not error > 2.0 * self.scheme.tol or step <= SMALLEST_STEP * until:
                break
            # Well below the step refused: two thirds of it could be rounded up to it again.
            wanted = step * min(max(growth, 0.2), 0.6)
        self._accept(state, anchor, step, solved, step * min(growth, MOST_GROWTH))
        state.time = last if landing else state.time + step

    def _first_step(self, state: State, until: float) -> float:
        """Return the length of the first step.

        Where consensus and deviations rest, only duals move, as straight lines, until somebody is
        about to leave.
        """
        square = np.add.reduceat(state.deviation**2, self.slots.start[:-1])
        largest = float(np.sqrt(np.max(self.runtime.everybody(square), initial=0.0)))
        if state.time > 0.0 or not largest > 0.0:
            return FIRST_STEP * until
        coupling, *_ = self.numbers
        return min(until, BEFORE_ENTRY * coupling / largest)

    def _anchor(self, state: State, step: float) -> Anchor:
        """Return the old state of the second-order formula; the first step is of first order."""
        memory: Memory | None = state.memory
        if memory is None:
            return Anchor.of_step(state.flow, step, self.numbers, self.holds)
        ratio = step / memory.last_steps[0]
        # Written from the last state on: x_n + step ratio/(1 + 2 ratio) (x_n - x_{n-1}) / h_n.
        ahead = step * ratio / (1.0 + 2.0 * ratio)
        flow = Flow(
            state.consensus + ahead * memory.consensus_rate,
            self._extrapolate(state.deviation, memory.rates.deviation, ahead),
            self._extrapolate(state.dual, memory.rates.dual, ahead),
            state.sparse,
        )
        step = step * (1.0 + ratio) / (1.0 + 2.0 * ratio)
        return Anchor.of_step(flow, step, self.numbers, self.holds)

    def _predict(self, state: State, step: float) -> tuple[Floats, Floats]:
        """Continue the last steps of consensus and deviations by a parabola."""
        memory: Memory | None = state.memory
        if memory is None:
            return state.consensus, state.deviation
        bent = step * (step + memory.last_steps[0])
        consensus = state.consensus + step * memory.consensus_rate + bent * memory.consensus_bend
        deviation = self._extrapolate(
            state.deviation, memory.rates.deviation, step, memory.rates.deviation_bend, bent
        )
        problem = self.solver.problem
        if not problem.bounded:
            return consensus, deviation
        at, delta = self.threshold_at, problem.delta
        consensus[at] = max(consensus[at], delta)
        own = within_box(
            deviation[self.slots.threshold] + consensus[at],
            state.deviation[self.slots.threshold] + state.consensus[at],
            problem.has_ties,
            delta,
        )
        deviation[self.slots.threshold] = own - consensus[at]
        return consensus, deviation

    def _error(
        self,
        memory: Memory | None,
        step: float,
        guess: tuple[Floats, Floats],
        solved: tuple[Floats, Floats],
    ) -> float:
        """Estimate the relative error of the step from how far the prediction was off.

        Both errors are multiples of the third derivative, so that their difference gives either.
        """
        if memory is None:
            return 0.0
        last, before = memory.last_steps
        of_formula = step * (step + last) / (2.0 * step + last)
        share = of_formula / (of_formula + step + last + before)
        return share * self.solver.relative(guess, solved, 2.0)

    def _accept(
        self,
        state: State,
        anchor: Anchor,
        step: float,
        solved: tuple[Floats, Floats],
        next_step: float,
    ) -> None:
        consensus, deviation = solved
        old, new = state.flow, Flow(*solved, np.empty_like(deviation), np.empty_like(deviation))
        norms = np.empty_like(state.dual_norm)
        before: Memory | None = state.memory
        if before is None:
            rates = Rates(*(np.zeros_like(deviation) for _ in Rates._fields))
            nothing = np.zeros_like(consensus)
            before = Memory(next_step, (step, step), nothing, nothing.copy(), rates)
            bending = 0.0  # nothing is known yet of how the rates change
        else:
            bending = 1.0 / (step + before.last_steps[0])
        memory = replace(before, next_step=next_step, last_steps=(step, before.last_steps[0]))
        times = (step, bending)

        def finish(_block: int, users: Users) -> None:
            self.loops.finish_step(self.slots, users, anchor, old, new, norms, memory.rates, times)

        self.solver.blocks.run(finish)
        rate = (consensus - state.consensus) / step
        memory.consensus_bend[:] = bending * (rate - memory.consensus_rate)
        memory.consensus_rate[:] = rate
        state.memory, state.dual_norm = memory, norms
        state.consensus, state.deviation, state.dual, state.sparse = new

    def _extrapolate(
        self,
        base: Floats,
        rate: Floats,
        length: float,
        bend: Floats | None = None,
        bending: float = 0.0,
    ) -> Floats:
        reached = np.empty_like(base)
        second = base if bend is None else bend

        def extrapolate(_block: int, users: Users) -> None:
            self.loops.extrapolate(
                self.slots, users, base, rate, second, (length, bending), reached
            )

        self.solver.blocks.run(extrapolate)
        return reached

    def _solve(
        self, consensus: Floats, deviation: Floats, anchor: Anchor, is_short: bool
    ) -> tuple[Floats, Floats]:
        """Solve a step's problem, to a fraction of the tolerance, from a guess that is used up."""
        enough = NEWTON_ACCURACY * self.scheme.tol * (MORE_ACCURATE if is_short else 1.0)
        consensus, deviation, n_evaluations, n_conjugate_steps = self.solver.solve(
            anchor, enough, consensus, deviation
        )
        self.evaluations += n_evaluations
        self.conjugate_steps += n_conjugate_steps
        return consensus, deviation
