"""The Newton method of `kernels.newton`, with users in blocks that work side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.layout import Layout, Slots
from isplitlbi.kernels import (
    Anchor,
    Problem,
    Sums,
    System,
    Users,
    newton,
    numpy_loops,
    sharpness_told,
)
from isplitlbi.kernels.numpy_loops import is_free
from isplitlbi.model.answering import Answering
from isplitlbi.model.links import Link
from isplitlbi.model.terms import PAPER, Terms
from isplitlbi.runtime.base import Runtime
from isplitlbi.runtime.blocks import Blocks
from isplitlbi.typing import Floats

__all__ = ["Solver", "problem_of"]

LEAST_TOLD = 1e-300  # of sharpness: where votes tell nothing, nobody has a share


def problem_of(layout: Layout, delta: float, terms: Terms, runtime: Runtime) -> Problem:
    """Return the problem of votes, in which users share the average person by what they tell."""
    told = sharpness_told(layout, terms)
    (of_all,) = runtime.total(float(told.sum()))
    shares = terms.scales[1] * told / max(of_all, LEAST_TOLD)
    return Problem.of(layout, delta, terms, runtime.n_users, shares)


class Solver:
    """Minimises problems of one layout, in one piece where all users are in one block."""

    def __init__(
        self,
        layout: Layout,
        link: Link,
        delta: float,
        runtime: Runtime,
        terms: Terms = PAPER,
    ) -> None:
        self.link = terms.answering(link)
        self.problem = problem_of(layout, delta, terms, runtime)
        self.blocks = Blocks(layout, runtime)
        self.loops: Any = runtime.loops
        self.system = System.room(layout)
        in_one = self.blocks.is_single
        self._work: Any = self.problem
        if not in_one:
            partial = np.empty((2, len(self.blocks), layout.vector.width))
            self._work = Work(self.problem, self.loops, self.blocks, partial)
        self._solve = self.loops.solve if in_one else solve
        self._relative = numpy_loops.relative if in_one else relative

    def solve(
        self, anchor: Anchor, enough: float, consensus: Floats, deviation: Floats
    ) -> tuple[Floats, Floats, int, int]:
        """Minimise (see `kernels.newton.solve`), from a guess that is used up."""
        found: tuple[Floats, Floats, int, int] = self._solve(
            self.link, self._work, anchor, enough, consensus, deviation, self.system
        )
        return found

    def relative(
        self, one: tuple[Floats, Floats], other: tuple[Floats, Floats], weight: float
    ) -> float:
        """Return how far two points (consensus, users) are apart, relative to the second."""
        return float(self._relative(self._work, *one, *other, weight))


# --- the loops, with users in blocks ---------------------------------------------------------
#
# They are called as loops over all users; every block adds to arrays of its own, which are summed
# in the order of the blocks, and then over all machines.


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
    def reference(self) -> Floats:
        """What sharpness multiplies."""
        return self.problem.reference

    @property
    def n_users(self) -> int:
        """Number of users of all machines."""
        return self.problem.n_users

    @property
    def bounded(self) -> float:
        """1 where thresholds have a bound."""
        return self.problem.bounded

    @property
    def precision(self) -> Floats:
        """Of the prior on the average person."""
        return self.problem.precision

    @property
    def toward(self) -> Floats:
        """What sharpness multiplies, in the consensus."""
        return self.problem.toward

    @property
    def scales(self) -> Floats:
        """How large the unit of each term is."""
        return self.problem.scales

    @property
    def common(self) -> Floats:
        """1 for what the consensus has a number of."""
        return self.problem.common

    @property
    def delta(self) -> float:
        """Smallest threshold."""
        return self.problem.delta


def assemble(
    link: Answering,
    work: Work,
    _everybody: Users,
    anchor: Anchor,
    consensus: Floats,
    own: Floats,
    system: System,
    sums: Sums,
) -> float:
    """See `numpy_loops.assemble`."""

    def of_block(block: int, users: Users) -> float:
        value: float = work.loops.assemble(
            link, work.problem, users, anchor, consensus, own, system, tuple(work.partial[:, block])
        )
        return value

    values = work.blocks.run(of_block)
    value, sums[0][:], sums[1][:] = work.blocks.total(sum(values), *work.partial.sum(axis=1))
    return float(value)


def eliminate_users(
    work: Work, _everybody: Users, own: Floats, system: System, eliminated: Floats, along: Floats
) -> float:
    """See `numpy_loops.eliminate_users`."""

    def of_block(block: int, users: Users) -> float:
        reach: float = work.loops.eliminate_users(
            work.problem, users, own, system, *work.partial[:, block]
        )
        return reach

    reaches = work.blocks.run(of_block)
    reach, eliminated[:], along[:] = work.blocks.total(sum(reaches), *work.partial.sum(axis=1))
    return float(reach)


def conjugate_update(
    work: Work, _everybody: Users, length: float, system: System, coupled: Floats
) -> float:
    """See `numpy_loops.conjugate_update`."""

    def of_block(block: int, users: Users) -> float:
        size: float = work.loops.conjugate_update(
            work.problem, users, length, system, work.partial[0, block]
        )
        return size

    sizes = work.blocks.run(of_block)
    size, coupled[:] = work.blocks.total(sum(sizes), work.partial[0].sum(axis=0))
    return float(size)


def curvature_product(
    work: Work,
    _everybody: Users,
    anchor: Anchor,
    system: System,
    preconditioned: Floats,
    direction: Floats,
    momentum: float,
    product: Floats,
) -> float:
    """See `numpy_loops.curvature_product`."""

    def of_block(block: int, users: Users) -> float:
        along: float = work.loops.curvature_product(
            work.problem, users, anchor, system, preconditioned, direction, momentum,
            work.partial[0, block],
        )  # fmt: skip
        return along

    curvatures = work.blocks.run(of_block)
    along, product[:] = work.blocks.total(sum(curvatures), work.partial[0].sum(axis=0))
    return float(along)


def move_users(
    work: Work,
    _everybody: Users,
    own: Floats,
    direction: Floats,
    length: float,
    pace: Floats,
    moved: Floats,
) -> None:
    """See `numpy_loops.move_users`."""

    def of_block(_block: int, users: Users) -> None:
        work.loops.move_users(work.problem, users, own, direction, length, pace, moved)

    work.blocks.run(of_block)


def hold_back(work: Work, _everybody: Users, before: Floats, value: Floats, pace: Floats) -> float:
    """See `numpy_loops.hold_back`."""

    def of_block(_block: int, users: Users) -> float:
        n_grown: float = work.loops.hold_back(work.problem, users, before, value, pace)
        return n_grown

    (n_grown,) = work.blocks.total(sum(work.blocks.run(of_block)))
    return float(n_grown)


def squares(work: Work, _everybody: Users, one: Floats, other: Floats) -> tuple[float, float]:
    """See `numpy_loops.squares`."""

    def of_block(_block: int, users: Users) -> tuple[float, float]:
        found: tuple[float, float] = work.loops.squares(work.problem, users, one, other)
        return found

    (sums,) = work.blocks.total(np.sum(work.blocks.run(of_block), axis=0))
    return float(sums[0]), float(sums[1])


def pull_sharpness(work: Work, _everybody: Users, pull: float, per_slot: Floats) -> None:
    """See `numpy_loops.pull_sharpness`."""

    def of_block(_block: int, users: Users) -> None:
        work.loops.pull_sharpness(work.problem, users, pull, per_slot)

    work.blocks.run(of_block)


def turn(work: Work, _everybody: Users, consensus: Floats, own: Floats, sign: float) -> None:
    """See `numpy_loops.turn`."""

    def of_block(_block: int, users: Users) -> None:
        work.loops.turn(work.problem, users, consensus, own, sign)

    work.blocks.run(of_block)


_LOOPS = (
    assemble,
    eliminate_users,
    curvature_product,
    conjugate_update,
    move_users,
    hold_back,
    squares,
    turn,
    is_free,
    pull_sharpness,
)
_METHOD = newton.bound({loop.__name__: loop for loop in _LOOPS})
solve, relative = _METHOD["solve"], _METHOD["relative"]
