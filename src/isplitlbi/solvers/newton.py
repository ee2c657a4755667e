"""One step of the implicit scheme: the minimum of a convex function of consensus and users.

A semismooth Newton method with a line search; every Newton system by conjugate gradients, without
forming a matrix. The users come in blocks, which work side by side; with all of them in one block,
the compiled loops have all of this in one piece.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Edges, Slots
from isplitlbi.kernels import (
    CLOSE_CONSENSUS,
    CONJUGATE_ACCURACY,
    ERROR_FLOOR,
    MOST_CONJUGATE_STEPS,
    MOST_NEWTON_STEPS,
    SHORTEST_MOVE,
    Origin,
    System,
)
from isplitlbi.model.links import Link
from isplitlbi.runtime.blocks import Blocks
from isplitlbi.typing import Floats


def minimise(
    link: Link,
    slots: Slots,
    edges: Edges,
    origin: Origin,
    has_ties: NDArray[np.bool_],
    delta: float,
    enough: float,
    consensus: Floats,
    own: Floats,
    system: System,
    loops: Any,
    blocks: Blocks,
) -> tuple[Floats, Floats, int, int]:
    """Minimise a step's objective, from a first guess that is used up.

    Parameters
    ----------
    has_ties
        Which users declared a tie.
    enough
        A Newton step shorter than this, relative to where it leads, is the last.

    Returns
    -------
    consensus, the users' own coordinates, and how often the objective was evaluated and its
    curvature multiplied.
    """
    if blocks.is_single and hasattr(loops, "minimise"):
        found: tuple[Floats, Floats, int, int] = loops.minimise(
            link, slots, edges, origin, has_ties, delta, enough, consensus, own, system
        )
        return found
    partial = np.empty((2, len(blocks), len(consensus)))
    thresholds = slots.threshold

    def evaluate(consensus: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Assemble the system; return the objective, and gradient and diagonal of the consensus."""

        def assemble(block: int, begin: int, end: int) -> float:
            value: float = loops.assemble(
                link, slots, edges, begin, end, consensus, own, origin, system, *partial[:, block]
            )
            return value

        values = blocks.run(assemble)
        value, gradient, diagonal = blocks.total(sum(values), *partial.sum(axis=1))
        moved = consensus - origin.consensus
        value += 0.5 * origin.damping * float(np.sum(moved * moved))
        return value, gradient + origin.damping * moved, diagonal + origin.damping

    def move(_block: int, begin: int, end: int) -> None:
        loops.extrapolate(slots, begin, end, own, system.solution, own, length, 0.0, trial_own)

    value, gradient, diagonal = evaluate(consensus, own)
    n_evaluations, n_conjugate_steps = 1, 0
    trial_own = np.empty_like(own)
    if not np.isfinite(value):
        own[:] = np.nan
        return consensus, own, n_evaluations, n_conjugate_steps
    for _ in range(MOST_NEWTON_STEPS):
        toward, slope, n_steps = newton_direction(
            slots, edges, origin, delta, consensus, own, system, gradient, diagonal,
            loops, blocks, partial[0],
        )  # fmt: skip
        n_conjugate_steps += n_steps
        length = 1.0
        while True:
            trial = consensus + length * toward
            trial[-1] = max(trial[-1], delta)
            blocks.run(move)
            trial_own[thresholds] = bounded(trial_own[thresholds], own[thresholds], has_ties, delta)
            if length == 1.0:
                shift = relative(
                    slots, consensus, own, trial, trial_own, CLOSE_CONSENSUS, loops, blocks
                )
                if shift <= enough:  # Newton's method squares the error: it is negligible now
                    return trial, trial_own, n_evaluations, n_conjugate_steps
            n_evaluations += 1
            trial_value, gradient, diagonal = evaluate(trial, trial_own)
            enough_gain = value - trial_value >= 1e-4 * length * slope
            # Near the solution the gain drowns in rounding, and a full step is right.
            if enough_gain or slope <= 1e-10 * abs(value):
                break
            length *= 0.5
            if length < SHORTEST_MOVE:
                return consensus, own, n_evaluations, n_conjugate_steps
        consensus, own, trial_own, value = trial, trial_own, own, trial_value
    return consensus, own, n_evaluations, n_conjugate_steps


def newton_direction(
    slots: Slots,
    edges: Edges,
    origin: Origin,
    delta: float,
    consensus: Floats,
    own: Floats,
    system: System,
    gradient: Floats,
    diagonal: Floats,
    loops: Any,
    blocks: Blocks,
    partial: Floats,
) -> tuple[Floats, float, int]:
    """Solve the system by preconditioned conjugate gradients.

    The preconditioner couples every slot with its place in the consensus and nothing else, so that
    users are eliminated exactly: consensus and deviations may trade places freely, and without this
    their sum would be found long before their shares.

    The users' part goes to ``system.solution``; ``partial`` is room for what each block adds to the
    consensus.

    Returns
    -------
    the consensus's part, the slope of the objective along the direction, negated, and the number of
    steps.
    """
    residual = -gradient
    downhill = residual[-1] / diagonal[-1]
    free = loops.is_free(consensus[-1], downhill, delta)

    def eliminate(block: int, begin: int, end: int) -> None:
        loops.eliminate_users(slots, begin, end, own, delta, system, partial[block])

    def update(block: int, begin: int, end: int) -> float:
        size: float = loops.conjugate_update(slots, begin, end, length, system, partial[block])
        return size

    def multiply(block: int, begin: int, end: int) -> float:
        along: float = loops.curvature_product(
            slots, edges, begin, end, system, origin.damping,
            preconditioned, direction, momentum, partial[block],
        )  # fmt: skip
        return along

    blocks.run(eliminate)
    (eliminated,) = blocks.total(partial.sum(axis=0))
    schur = diagonal - eliminated
    solution, direction, product = (np.zeros_like(residual) for _ in range(3))
    solution[-1] = 0.0 if free else downhill
    length = momentum = slope = size = target = 0.0
    n_steps = 0
    while True:
        residual -= length * product
        sizes = blocks.run(update)
        new_size, left = blocks.total(sum(sizes), partial.sum(axis=0))
        left = residual - left
        left[-1] *= free
        preconditioned = left / schur
        new_size += float(np.sum(left * preconditioned))
        if n_steps == 0:
            target = CONJUGATE_ACCURACY**2 * new_size
        else:
            momentum = new_size / size
        size = new_size
        if not size > target or n_steps == MOST_CONJUGATE_STEPS:
            return solution, slope, n_steps

        direction = momentum * direction + preconditioned
        curvatures = blocks.run(multiply)
        along, product = blocks.total(sum(curvatures), partial.sum(axis=0))
        product += origin.damping * direction
        product[-1] *= free
        along += float(np.sum(direction * product))
        length = size / along
        slope += length * size
        solution += length * direction
        n_steps += 1


# --- what the users' vectors need ----------------------------------------------------------


def bounded(thresholds: Floats, now: Floats, has_ties: NDArray[np.bool_], delta: float) -> Floats:
    """Move the users' thresholds into their boxes.

    A user with ties feels a barrier at zero, far from which Newton's method overshoots: such a
    threshold goes at most nine tenths of the way to the bound at once.
    """
    return np.maximum(thresholds, delta + np.where(has_ties, 0.1 * (now - delta), 0.0))


def relative(
    slots: Slots,
    consensus: Floats,
    users: Floats,
    other_consensus: Floats,
    other_users: Floats,
    weight: float,
    loops: Any,
    blocks: Blocks,
) -> float:
    """Return how far two points are apart, relative to the second; the consensus has a weight."""
    if blocks.is_single and hasattr(loops, "relative"):
        in_one: float = loops.relative(
            slots, consensus, users, other_consensus, other_users, weight
        )
        return in_one

    def of_block(_block: int, begin: int, end: int) -> tuple[float, float]:
        found: tuple[float, float] = loops.squares(slots, begin, end, users, other_users)
        return found

    (squares,) = blocks.total(np.sum(blocks.run(of_block), axis=0))
    off, size = np.sqrt(squares)
    of_users = off / (size + ERROR_FLOOR)
    off = np.sqrt(np.sum((consensus - other_consensus) ** 2))
    size = np.sqrt(np.sum(other_consensus**2))
    return max(float(of_users), float(weight * off / (size + ERROR_FLOOR)))
