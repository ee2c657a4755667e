"""The explicit scheme: Eq. 9, simple and slow, the specification of the path.

It departs from the letter of Eq. 9 in two places. The thresholds have one joint constraint instead
of two projections, and Gamma is that of the new Z, where Eq. 9d has the old one. `Explicit` has an
option for the letter of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from isplitlbi.data.layout import Layout
from isplitlbi.errors import InvalidSetting
from isplitlbi.kernels import Gradient, Problem
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.newton import problem_of
from isplitlbi.solvers.settings import PathSettings
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats

__all__ = ["Explicit"]


@dataclass(frozen=True)
class Explicit:
    """Forward Euler, with projections onto thresholds of at least delta where these have a bound.

    Attributes
    ----------
    step_scale : float
        Step in units of 1 / (kappa * curvature), where the curvature is a bound on the norm of the
        Hessian. The paper prints the square of that norm. Then the step would depend on the unit of
        the loss and, with a sum of losses, be far smaller than needed. The curvature is bounded
        anew at every step, because that of the thresholds grows like
        ties / threshold**2, or with their logarithms like votes * threshold**2. Up to 1 the scheme
        is stable; the bound has some slack, so that a little above 1 it often still is.
    projection : {"joint", "separate"}
        ``joint`` projects the thresholds of consensus and users together, which is the constraint
        of Eq. 8. ``separate`` is the paper's literal rule (Eq. 9a, 9b): there users who never
        declare a tie pull the consensus threshold down with them.
    sparse_from : {"new", "old"}
        Which Z the sparse Gamma of a step is made of. ``new`` is the Z of the same step. ``old`` is
        the Z of the step before, as Eq. 9d has it: Gamma then comes one step later.
    max_steps : int
        Number of steps after which a path is given up.
    """

    works_together: ClassVar[bool] = False  # its many short steps would each cost a round

    step_scale: float = 1.0
    projection: Literal["joint", "separate"] = "joint"
    sparse_from: Literal["new", "old"] = "new"
    max_steps: int = 10_000_000

    def __post_init__(self) -> None:
        """Refuse settings that make no step."""
        if not 0.0 < self.step_scale <= 8.0:
            raise InvalidSetting(f"step_scale is {self.step_scale}; it must lie in (0, 8].")
        if self.projection not in ("joint", "separate"):
            raise InvalidSetting(f"projection {self.projection!r} is not one of joint, separate.")
        if self.sparse_from not in ("new", "old"):
            raise InvalidSetting(f"sparse_from {self.sparse_from!r} is not one of new, old.")
        if self.max_steps < 1:
            raise InvalidSetting(f"max_steps is {self.max_steps}; it must be at least 1.")

    def rough(self) -> Explicit:
        """Return settings for paths that only score held-out votes: the same."""
        return self

    def prepare(self, layout: Layout, settings: PathSettings, runtime: Runtime) -> _ExplicitStepper:
        """Return a stepper for these votes."""
        if not runtime.is_alone:
            raise InvalidSetting("on a cluster only the implicit solver is practical.")
        return _ExplicitStepper(self, layout, settings, runtime)

    def pack(self, memory: None) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Return nothing: an explicit step remembers nothing."""
        return {}, {}

    def unpack(self, header: Mapping[str, Any], arrays: Mapping[str, Floats]) -> None:
        """Return nothing."""


class _ExplicitStepper:
    def __init__(
        self, scheme: Explicit, layout: Layout, settings: PathSettings, runtime: Runtime
    ) -> None:
        self.scheme, self.dynamics, self.loops = scheme, settings.dynamics, runtime.loops
        self.link = settings.terms.answering(settings.link)
        delta = settings.dynamics.delta
        self.problem = problem_of(layout, delta, settings.terms, runtime)
        decided = layout.edges.first_wins + layout.edges.second_wins
        self.decided_spread = _curvature_bound(layout, self.problem, decided)
        self.tie_spread = _curvature_bound(layout, self.problem, layout.edges.ties)
        self.decided = layout.sum_by_user(decided)
        self.ties = layout.sum_by_user(layout.edges.ties)
        self.of_a_win = settings.link.curvature_bounds(1.0)[0]
        # What holds deviations and consensus by themselves; P and Gamma relax at the rate 2/nu.
        held = float(np.max(self.problem.precision))
        toward, shares = (np.sum(x * x) for x in (self.problem.toward, self.problem.shares))
        held *= (1.0 + float(np.sqrt(toward * shares))) ** 2  # it holds the average person
        coupling, _, precision = settings.dynamics.numbers
        self.of_priors = max(2.0 / coupling + 0.5 * precision, 0.5 * held)
        self.gradient = Gradient(np.empty(layout.vector.width), np.empty(layout.n_slots))

    def step(self, state: State, until: float, last: float) -> None:
        """Take one step of Eq. 9, at most to ``until``."""
        # The last step to a requested time lands on it exactly, without a sliver of a step after.
        step = self.scheme.step_scale / (self.dynamics.kappa * self._curvature(state))
        if state.time + step * (1.0 + 1e-9) >= until:
            step, time = until - state.time, until
        else:
            time = state.time + step
        old_dual = state.dual.copy() if self.scheme.sparse_from == "old" else None
        _, state.dual_norm = self.loops.explicit_step(
            self.link, self.problem, state.flow, self.gradient, step, *self.dynamics.numbers
        )
        if old_dual is not None:
            state.dual_norm = self.loops.shrink_groups(
                self.problem.slots, old_dual, self.dynamics.kappa, state.sparse
            )
        if self.problem.bounded:
            self.loops.project_thresholds(
                self.problem.slots,
                state.consensus,
                state.deviation,
                self.dynamics.delta,
                self.scheme.projection == "joint",
            )
        state.time = time

    def _curvature(self, state: State) -> float:
        """Bound half the curvature of the whole objective, so that a step of its inverse is stable.

        A vote's curvature in (margin, threshold) is at most twice its diagonal, which leaves the
        larger of the margin's and the thresholds'; and each is at most the sum of what it is in
        every part of the consensus and in every term of one user.
        """
        of_thresholds, of_a_tie = self.loops.threshold_curvature(
            self.link, self.problem, state.consensus, state.deviation, self.decided, self.ties
        )
        of_margin = self.of_a_win * self.decided_spread + of_a_tie * self.tie_spread
        return float(max(of_margin, of_thresholds) + self.of_priors)


def _curvature_bound(layout: Layout, problem: Problem, weight: Floats) -> float:
    """Bound how much a sum of weighted squares of margins bends, in the consensus and in any user.

    For scores that is the largest eigenvalue of a graph Laplacian, at most the largest sum of the
    degrees of two neighbours; for other traits, at most the sum of their squared columns. What is
    users' own counts by the square of its unit.
    """
    edges, item = layout.edges, layout.slots.coordinate
    units, bound = problem.scales**2, 0.0
    of_items, of_slots = (item[edges.first], item[edges.second]), (edges.first, edges.second)
    for ends, unit in ((of_items, 1.0), (of_slots, units[0])):
        degree = np.bincount(np.concatenate(ends), np.tile(weight, 2))
        neighbours = (degree[ends[0]] + degree[ends[1]])[weight > 0]
        bound += unit * float(np.max(neighbours, initial=0.0))
    if len(problem.reference):
        apart = problem.reference[edges.first] - problem.reference[edges.second]
        bound += float(np.max(layout.sum_by_user(weight * apart**2), initial=0.0))
    for column, unit in zip(edges.columns, units[-1 - len(edges.columns) : -1], strict=True):
        of_users = layout.sum_by_user(weight * column**2)
        bound += float(np.sum(of_users) + unit * np.max(of_users, initial=0.0))
    return bound
