"""The Newton method of `kernels.newton`, with users in blocks that work side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.layout import Layout, Slots
from isplitlbi.kernels import Anchor, Problem, Sums, System, Users, newton
from isplitlbi.kernels.newton import ERROR_FLOOR
from isplitlbi.kernels.numpy_loops import is_free
from isplitlbi.model.links import Link
from isplitlbi.runtime.base import Runtime
from isplitlbi.runtime.blocks import Blocks
from isplitlbi.typing import Floats

__all__ = ["Solver"]


class Solver:
    """Minimises problems of one layout, in one piece where all users are in one block."""

    def __init__(self, layout: Layout, link: Link, delta: float, runtime: Runtime) -> None:
        self.link, self.problem = link, Problem.of(layout, delta)
        self.blocks = Blocks(layout, runtime)
        self.loops: Any = runtime.loops
        self.system = System.room(layout)
        in_one = self.blocks.is_single
        self._work: Any = self.problem
        if not in_one:
            partial = np.empty((2, len(self.blocks), layout.vector.width))
            self._work = Work(self.problem, self.loops, self.blocks, partial)
        self._minimise = self.loops.minimise if in_one else minimise
        self._relative = self.loops.relative if in_one else relative

    def solve(
        self, anchor: Anchor, enough: float, consensus: Floats, deviation: Floats
    ) -> tuple[Floats, Floats, int, int]:
        """Minimise (see `kernels.newton.minimise`), from a guess of consensus and deviations.

        Within, users' thresholds are coordinates themselves, so that their bounds are boxes.
        """
        slots, delta = self.problem.slots, self.problem.delta
        at, own = slots.common_threshold, deviation
        own[slots.threshold] = np.maximum(own[slots.threshold] + consensus[at], delta)
        consensus, own, n_evaluations, n_conjugate_steps = self._minimise(
            self.link, self._work, anchor, enough, consensus, own, self.system
        )
        own[slots.threshold] -= consensus[at]
        return consensus, own, n_evaluations, n_conjugate_steps

    def relative(
        self, one: tuple[Floats, Floats], other: tuple[Floats, Floats], weight: float
    ) -> float:
        """Return how far two points (consensus, users) are apart, relative to the second."""
        return float(self._relative(self._work, *one, *other, weight))


# --- users in blocks -------------------------------------------------------------------------


class Work(NamedTuple):
    """A problem whose users come in blocks, which work side by side."""

    problem: Problem
    loops: Any  # a module of kernels
    blocks: Blocks
    partial: Floats  # (2, n_blocks, width) room for what each block adds to the consensus

    @property
    def slots(self) -> Slots:
        """Where the parameters of the users lie."""
        return self.problem.slots

    @property
    def delta(self) -> float:
        """Smallest threshold."""
        return self.problem.delta


def evaluate(
    link: Link,
    work: Work,
    anchor: Anchor,
    consensus: Floats,
    own: Floats,
    system: System,
    sums: Sums,
) -> float:
    """Assemble the system; fill gradient and diagonal of the consensus, return the objective."""

    def assemble(block: int, users: Users) -> float:
        value: float = work.loops.assemble(
            link, work.problem, users, anchor, consensus, own, system, tuple(work.partial[:, block])
        )
        return value

    values = work.blocks.run(assemble)
    value, gradient, diagonal = work.blocks.total(sum(values), *work.partial.sum(axis=1))
    moved = consensus - anchor.consensus
    sums[0][:] = gradient + anchor.damping * moved
    sums[1][:] = diagonal + anchor.damping
    return float(value + 0.5 * anchor.damping * np.sum(moved * moved))


def eliminate(work: Work, own: Floats, system: System, taken: Floats) -> None:
    """Begin the solution; fill what eliminating every slot by itself takes from the consensus."""

    def of_block(block: int, users: Users) -> None:
        work.loops.eliminate_users(work.problem, users, own, system, work.partial[0, block])

    work.blocks.run(of_block)
    (taken[:],) = work.blocks.total(work.partial[0].sum(axis=0))


def update(work: Work, length: float, system: System, coupled: Floats) -> float:
    """Move along the direction; fill what the new residual means for the consensus."""

    def of_block(block: int, users: Users) -> float:
        size: float = work.loops.conjugate_update(
            work.slots, users, length, system, work.partial[0, block]
        )
        return size

    sizes = work.blocks.run(of_block)
    size, coupled[:] = work.blocks.total(sum(sizes), work.partial[0].sum(axis=0))
    return float(size)


def multiply(
    work: Work,
    anchor: Anchor,
    system: System,
    preconditioned: Floats,
    direction: Floats,
    momentum: float,
    product: Floats,
) -> float:
    """Take the next direction; fill what the curvature makes of it for the consensus."""

    def of_block(block: int, users: Users) -> float:
        along: float = work.loops.curvature_product(
            work.problem, users, anchor, system, preconditioned, direction, momentum,
            work.partial[0, block],
        )  # fmt: skip
        return along

    curvatures = work.blocks.run(of_block)
    along, product[:] = work.blocks.total(sum(curvatures), work.partial[0].sum(axis=0))
    return float(along)


def move(work: Work, own: Floats, system: System, length: float, moved: Floats) -> None:
    """Fill the users' coordinates after a step of that length, thresholds within their boxes."""

    def of_block(_block: int, users: Users) -> None:
        work.loops.move_users(work.problem, users, own, system.solution, length, moved)

    work.blocks.run(of_block)


def relative(
    work: Work,
    consensus: Floats,
    own: Floats,
    other_consensus: Floats,
    other_own: Floats,
    weight: float,
) -> float:
    """Return how far two points are apart, relative to the second; the consensus has a weight."""

    def of_block(_block: int, users: Users) -> tuple[float, float]:
        found: tuple[float, float] = work.loops.squares(work.slots, users, own, other_own)
        return found

    (squares,) = work.blocks.total(np.sum(work.blocks.run(of_block), axis=0))
    off, size = np.sqrt(squares)
    of_users = off / (size + ERROR_FLOOR)
    off = np.sqrt(np.sum((consensus - other_consensus) ** 2))
    size = np.sqrt(np.sum(other_consensus**2))
    return max(float(of_users), float(weight * off / (size + ERROR_FLOOR)))


_METHOD = newton.bound(
    newton.METHOD,
    {each.__name__: each for each in (evaluate, eliminate, update, multiply, move, relative)}
    | {"is_free": is_free},
)
minimise = _METHOD["minimise"]
