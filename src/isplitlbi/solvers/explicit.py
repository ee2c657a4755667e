"""The explicit scheme: Eq. 9 as it stands. Simple, slow, and the specification of the path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from isplitlbi.data.comparisons import Comparisons, Edges
from isplitlbi.model.links import Link
from isplitlbi.solvers.driver import Dynamics, Machine
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats


@dataclass(frozen=True)
class Explicit:
    """Forward Euler with projections onto thresholds of at least delta.

    Attributes
    ----------
    step_scale : float
        Step in units of 1 / (kappa * curvature), the paper's choice. The curvature is bounded anew
        at every step, because that of the thresholds grows like ties / threshold**2. Up to 1 the
        scheme is stable; the bound has some slack, so that a little above 1 it often still is.
    projection : {"joint", "separate"}
        ``joint`` projects the thresholds of consensus and users together, which is the constraint
        of Eq. 8. ``separate`` is the paper's literal rule (Eq. 9a, 9b): there users who never
        declare a tie pull the consensus threshold down with them.
    max_steps : int
        Number of steps after which a path is given up.
    """

    step_scale: float = 1.0
    projection: Literal["joint", "separate"] = "joint"
    max_steps: int = 10_000_000

    def __post_init__(self) -> None:
        """Refuse settings that make no step."""
        if not 0.0 < self.step_scale <= 8.0:
            raise ValueError(f"step_scale is {self.step_scale}; it must lie in (0, 8].")
        if self.projection not in ("joint", "separate"):
            raise ValueError(f"projection {self.projection!r} is not one of joint, separate.")
        if self.max_steps < 1:
            raise ValueError(f"max_steps is {self.max_steps}; it must be at least 1.")

    def rough(self) -> Explicit:
        """Return settings for paths that only score held-out votes: the same."""
        return self

    def prepare(
        self, votes: Comparisons, link: Link, dynamics: Dynamics, machine: Machine
    ) -> _ExplicitStepper:
        """Return a stepper for these votes."""
        return _ExplicitStepper(self, votes, link, dynamics, machine)


class _ExplicitStepper:
    def __init__(
        self,
        scheme: Explicit,
        votes: Comparisons,
        link: Link,
        dynamics: Dynamics,
        machine: Machine,
    ) -> None:
        self.scheme, self.link, self.dynamics, self.loops = scheme, link, dynamics, machine.loops
        self.slots, self.edges = votes.slots, votes.edges
        decided = self.edges.first_wins + self.edges.second_wins
        self.decided_spread = _laplacian_bound(votes, decided)
        self.tie_spread = _laplacian_bound(votes, self.edges.ties)
        owner = self.edges.owner
        self.decided = np.bincount(owner, decided, votes.n_users)
        self.ties = np.bincount(owner, self.edges.ties, votes.n_users)
        self.consensus_gradient = np.empty(votes.n_items + 1)
        self.slot_gradient = np.empty(len(self.slots.coordinate))

    def step(self, state: State, until: float, last: float) -> None:
        """Take one step of Eq. 9, at most to ``until``."""
        nu, kappa = self.dynamics.nu, self.dynamics.kappa
        # The last step to a requested time lands on it exactly, without a sliver of a step after.
        step = self.scheme.step_scale / (kappa * self._curvature(state))
        if state.time + step * (1.0 + 1e-9) >= until:
            step, time = until - state.time, until
        else:
            time = state.time + step
        _, state.dual_norm = self.loops.explicit_step(
            self.link,
            self.slots,
            self.edges,
            state.consensus,
            state.deviation,
            state.dual,
            state.sparse,
            self.consensus_gradient,
            self.slot_gradient,
            step,
            nu,
            kappa,
        )
        self.loops.project_thresholds(
            self.slots,
            state.consensus,
            state.deviation,
            self.dynamics.delta,
            self.scheme.projection == "joint",
        )
        state.time = time

    def _curvature(self, state: State) -> float:
        """Bound half the curvature of the whole objective, so that a step of its inverse is stable.

        A vote's curvature in (margin, threshold) is at most twice its diagonal, which leaves the
        larger of the scores' and the thresholds'. P and Gamma together relax at the rate 2/nu.
        """
        of_thresholds, of_a_tie = self.loops.threshold_curvature(
            self.link, self.slots, state.consensus, state.deviation, self.decided, self.ties
        )
        of_a_win = self.link.curvature_bounds(1.0)[0]
        of_scores = of_a_win * self.decided_spread + of_a_tie * self.tie_spread
        return float(max(of_scores, of_thresholds) + 2.0 / self.dynamics.nu)


def _laplacian_bound(votes: Comparisons, weight: Floats) -> float:
    """Bound the largest eigenvalue of the graph Laplacian of the consensus plus that of any user.

    It is at most the largest sum of the degrees of two neighbours.
    """
    edges: Edges = votes.edges
    item = votes.slots.coordinate
    bound = 0.0
    for ends in ((item[edges.first], item[edges.second]), (edges.first, edges.second)):
        degree = np.bincount(np.concatenate(ends), np.tile(weight, 2))
        neighbours = (degree[ends[0]] + degree[ends[1]])[weight > 0]
        bound += float(np.max(neighbours, initial=0.0))
    return bound
