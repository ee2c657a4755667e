"""The loops over votes in plain NumPy: slow, short, and the meaning of the compiled ones.

Consensus and users' parameters lie as `data.layout` says: what enters the margin first, and the
threshold after it. Arrays named in a function's first line are changed in place. Users are those of
a block; what a block adds to the consensus goes to an array of its own, for the caller to sum in a
fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isplitlbi.data.layout import Slots
from isplitlbi.kernels import (
    HOLD_BACK,
    MOST_TAKEN,
    Anchor,
    Flow,
    Problem,
    Rates,
    Sums,
    System,
    Users,
    beside,
    newton,
)
from isplitlbi.kernels.numpy_blocks import Block
from isplitlbi.kernels.numpy_explicit import (
    explicit_step,
    loss_and_gradient,
    margins,
    project_thresholds,
    score,
    shrink_groups,
    threshold_curvature,
)
from isplitlbi.model.answering import Answering
from isplitlbi.typing import Floats, Mask

__all__ = [
    "assemble",
    "conjugate_update",
    "curvature_product",
    "eliminate_users",
    "explicit_step",
    "extrapolate",
    "finish_step",
    "follow_user",
    "hold_back",
    "is_free",
    "loss_and_gradient",
    "margins",
    "move_users",
    "project_thresholds",
    "pull_sharpness",
    "relative",
    "score",
    "shrink_groups",
    "solve",
    "squares",
    "threshold_curvature",
    "turn",
    "within_box",
]


# --- the implicit scheme ---------------------------------------------------------------------
#
# One step solves a convex problem in the consensus c and, per user, the ``own`` coordinates: the
# deviation P of all that enters the margin, and the user's threshold itself (not its deviation), so
# that its bound is a box.


def assemble(
    link: Answering,
    problem: Problem,
    users: Users,
    anchor: Anchor,
    consensus: Floats,
    own: Floats,
    system: System,
    sums: Sums,
) -> float:
    """Fill the system with gradient and curvature of a step's objective; return its value.

    ``sums`` are gradient and diagonal of the consensus, as far as these users make them. At the
    place of sharpness, of which the consensus has no number, the first is the average of users'.

    With W = Z_old + (step/nu) P and a = kappa step / nu, eliminating the new Z and Gamma leaves a
    convex function of P whose gradient is (Z(W) - Z_old) / step.
    """
    block = Block(problem.slots, problem.edges, users)
    part, thresholds = block.part, block.thresholds
    counts, scale = block.consensus_to_total(problem), block.own_to_total(problem)
    total = counts * consensus[block.coordinate] + scale * own[part]
    level = block.level(total, consensus)
    terms = link.vote_terms(block.margin(total), level, *block.counts)
    loss, by_margin, by_threshold, mm, _, tt = terms
    system.curvature[:, block.edges] = terms[3:]
    of_loss = block.scatter(by_margin, by_threshold)
    bend_of_loss = block.scatter_squares(mm, tt)

    deviation = own[part].copy()
    deviation[thresholds] -= problem.bounded * consensus[problem.slots.common_threshold]
    deviation -= block.by_sharpness(problem, own[part])
    pull, stiffness, cost = _cost_of_deviations(anchor, block, users, deviation, system)
    value = np.bincount(block.owner, loss, len(block.sizes)) + cost
    system.value[slice(*users)] = value

    system.residual[part] = -(scale * of_loss + pull)
    system.inverse[part] = 1.0 / (scale * scale * bend_of_loss + stiffness)
    # A bounded threshold's own coordinate takes the votes; the consensus threshold meets them only
    # through the deviation.
    apart = 1.0 - counts
    if len(problem.reference):
        _lean(problem, block, system, mm, pull, stiffness)
        of_loss[block.sharpness] = problem.shares[slice(*users)] * own[part][block.sharpness]
    system.coupling[part] = counts * scale * bend_of_loss - apart * stiffness
    of_loss, bend_of_loss = counts * of_loss - apart * pull, counts * bend_of_loss
    bend_of_loss += apart * stiffness
    sums[0][:] = np.bincount(block.coordinate, of_loss, len(consensus))
    sums[1][:] = np.bincount(block.coordinate, bend_of_loss, len(consensus))
    for habit in block.habits:
        sums[0][:] += np.bincount(habit, by_threshold, len(consensus))
        sums[1][:] += np.bincount(habit, tt, len(consensus))
    return float(np.sum(value))


def _cost_of_deviations(
    anchor: Anchor, block: Block, users: Users, deviation: Floats, system: System
) -> tuple[Floats, Floats, Floats]:
    """Return how much deviations cost more for moving, first and second, and what users pay."""
    part, held = block.part, block.by_term(anchor.holds)
    moved = deviation - anchor.deviation[part]
    step, nu, kappa, damping = anchor.step, anchor.nu, anchor.kappa, anchor.damping
    a = kappa * step / nu
    w = anchor.dual[part] + (step / nu) * deviation
    system.pushed[part] = w
    norm = np.sqrt(block.sum_by_user(w * w))
    out, safe = norm > 1.0, np.maximum(norm, 1.0)
    factor = np.where(out, (1.0 + a / safe) / (1.0 + a), 1.0)
    bend = system.bend[slice(*users)]
    bend[:, 0] = factor / nu + anchor.precision
    bend[:, 1] = np.where(out, a / (nu * (1.0 + a) * safe**3), 0.0)
    # The function itself, up to a constant, in a form that cancels no large terms.
    relief = 0.5 * kappa / (step * (1.0 + a)) * (safe - 1.0) ** 2
    pull = (np.repeat(factor, block.sizes) * w - anchor.dual[part]) / step
    pull = held * (pull + damping * moved + anchor.precision * deviation)
    stiffness = damping + np.repeat(bend[:, 0], block.sizes)
    stiffness = held * (stiffness - np.repeat(bend[:, 1], block.sizes) * w * w)
    cost = 0.5 * damping * block.sum_by_user(held * moved * moved) - relief
    square = block.sum_by_user(held * deviation * deviation)
    return pull, stiffness, cost + 0.5 * square / nu + 0.5 * anchor.precision * square


def _lean(
    problem: Problem,
    block: Block,
    system: System,
    mm: Floats,
    pull: Floats,
    stiffness: Floats,
) -> None:
    """Fill what belongs to sharpness, which only the cost of deviations knows: see `Problem`.

    To solve for it, taste is a coordinate instead of all that a user adds to the consensus. There
    votes do know of sharpness: they bend by it, and by it and taste together.
    """
    reference, part = block.of_reference(problem), block.part
    sharpness, inverse = block.sharpness, system.inverse[part]
    system.residual[part][sharpness] = block.sum_by_user(reference * pull) - pull[sharpness]
    apart = reference[block.first] - reference[block.second]
    with_taste = block.scatter(mm * apart, np.zeros(len(mm)))
    with_taste[block.thresholds] = 0.0
    for trait in block.traits:
        with_taste[trait] = 0.0
    alone = np.bincount(block.owner, mm * apart * apart, len(block.sizes)) + stiffness[sharpness]
    taken = block.sum_by_user(with_taste**2 * inverse)
    # Items that are compared with few others would seem to take more than there is.
    less = np.sqrt(np.minimum(1.0, MOST_TAKEN * alone / np.maximum(taken, 1e-300)))
    inverse[sharpness] = 1.0 / (alone - less**2 * taken)
    answer = np.repeat(less, block.sizes) * with_taste * inverse
    system.lean[part] = reference - answer
    system.pull[part] = with_taste - answer / inverse * (1.0 - stiffness * inverse)


def eliminate_users(
    problem: Problem,
    users: Users,
    own: Floats,
    system: System,
    eliminated: Floats,
    along: Floats,
) -> float:
    """Begin the solution; fill what eliminating every slot by itself takes from the consensus.

    Thresholds that are not free go their own way. What eliminating sharpness takes is told along
    the reference: as a vector, which is filled, and its product with the reference.
    """
    slots, (begin, end) = problem.slots, users
    part = slice(slots.start[begin], slots.start[end])
    system.solution[part] = system.direction[part] = system.product[part] = 0.0
    thresholds = slots.threshold[begin:end]
    downhill = system.residual[thresholds] * system.inverse[thresholds]
    free = is_free(own[thresholds], downhill, problem.delta)
    system.free[begin:end] = free
    bound = thresholds[~free]
    system.solution[bound] = downhill[~free]
    system.residual[bound] = system.coupling[bound] = 0.0
    taken = system.coupling[part] ** 2 * system.inverse[part]
    eliminated[:] = np.bincount(slots.coordinate[part], taken, len(eliminated))
    along[:] = 0.0
    if len(problem.reference) == 0:
        return 0.0
    block = Block(slots, problem.edges, users)
    pulls = system.pull[part]
    of_user = block.sum_by_user(pulls * problem.toward[block.coordinate])
    scaled = of_user * system.inverse[part][block.sharpness]
    pulls = pulls * np.repeat(scaled, block.sizes)
    along[:] = np.bincount(slots.coordinate[part], pulls, len(along))
    return float(np.sum(of_user * scaled))


def is_free(threshold: Any, downhill: Any, delta: float) -> Any:
    """Tell whether a threshold is off its bound, given the step it would take by itself.

    One near the bound, or on its way to it, would spoil the directions of the others.
    """
    return (downhill > 0.0) | ((threshold > 1.01 * delta) & (threshold + downhill > delta))


def curvature_product(
    problem: Problem,
    users: Users,
    anchor: Anchor,
    system: System,
    preconditioned: Floats,
    direction: Floats,
    momentum: float,
    product: Floats,
) -> float:
    """Take the next conjugate direction and apply the curvature to it; return their product.

    The direction is the preconditioned residual plus ``momentum`` times the last one. What is
    preconditioned, the direction and the product are given and filled for the consensus; those of
    the users are in the system. The product has the average sharpness as in `assemble`.
    """
    block = Block(problem.slots, problem.edges, users)
    part, thresholds = block.part, block.thresholds
    d = _solved(problem, block, system, preconditioned) + momentum * system.direction[part]
    system.direction[part] = d
    counts, scale = block.consensus_to_total(problem), block.own_to_total(problem)
    total = counts * direction[block.coordinate] + scale * d
    mm, mt, tt = system.curvature[:, block.edges]
    margin, threshold = block.margin(total), block.level(total, direction)
    by_threshold = mt * margin + tt * threshold
    of_loss = block.scatter(mm * margin + mt * threshold, by_threshold)
    deviation = d.copy()
    deviation[thresholds] -= problem.bounded * direction[problem.slots.common_threshold]
    deviation -= block.by_sharpness(problem, d)
    w, bend = system.pushed[part], system.bend[slice(*users)]
    along = block.sum_by_user(w * deviation)
    pull = (anchor.damping + np.repeat(bend[:, 0], block.sizes)) * deviation
    pull -= np.repeat(bend[:, 1] * along, block.sizes) * w
    pull *= block.by_term(anchor.holds)
    own_product = scale * of_loss + pull
    if len(problem.reference):
        own_product[block.sharpness] -= block.sum_by_user(block.of_reference(problem) * pull)
    own_product[thresholds] *= system.free[slice(*users)]
    system.product[part] = own_product
    of_loss = counts * of_loss - (1.0 - counts) * pull
    if len(problem.reference):
        of_loss[block.sharpness] = problem.shares[slice(*users)] * d[block.sharpness]
    product[:] = np.bincount(block.coordinate, of_loss, len(product))
    for habit in block.habits:
        product += np.bincount(habit, by_threshold, len(product))
    return float(d @ own_product)


def conjugate_update(
    problem: Problem, users: Users, length: float, system: System, coupled: Floats
) -> float:
    """Move along the direction by a length.

    Fills what the users' new residual means for the consensus, sum of coupling residual / diagonal,
    and returns the sum of residual^2 / diagonal: what the preconditioner needs.
    """
    slots = problem.slots
    block = Block(slots, problem.edges, users)
    part = block.part
    system.solution[part] += length * system.direction[part]
    system.residual[part] -= length * system.product[part]
    nothing = np.zeros_like(coupled)
    scaled = _solved(problem, block, system, nothing)
    alone = system.residual[part] * system.inverse[part]
    if len(problem.reference):
        alone[block.sharpness] = 0.0
    pulled = system.coupling[part] * alone
    if len(problem.reference):
        pulled += system.pull[part] * np.repeat(scaled[block.sharpness], block.sizes)
    coupled[:] = np.bincount(slots.coordinate[part], pulled, len(coupled))
    return float(system.residual[part] @ scaled)


def _solved(problem: Problem, block: Block, system: System, consensus: Floats) -> Floats:
    """Solve for users, given the consensus: every slot alone, but for what leans on sharpness."""
    part, of_consensus = block.part, consensus[block.coordinate]
    residual = system.residual[part]
    solved = (residual - system.coupling[part] * of_consensus) * system.inverse[part]
    if len(problem.reference):
        lean, sharpness = system.lean[part], block.sharpness
        total = lean * residual - system.pull[part] * of_consensus
        total = residual[sharpness] + block.sum_by_user(total)
        solved[sharpness] = total * system.inverse[part][sharpness]
        solved += lean * np.repeat(solved[sharpness], block.sizes)
    return np.asarray(solved)


def move_users(
    problem: Problem,
    users: Users,
    own: Floats,
    direction: Floats,
    length: float,
    pace: Floats,
    moved: Floats,
) -> None:
    """Fill moved = own + length * pace * direction, thresholds within their boxes."""
    slots, (begin, end) = problem.slots, users
    part = slice(slots.start[begin], slots.start[end])
    far = length * np.repeat(pace[begin:end], np.diff(slots.start[begin : end + 1]))
    moved[part] = own[part] + far * direction[part]
    at = slots.threshold[begin:end]
    has_ties = problem.has_ties[begin:end]
    moved[at] = within_box(moved[at], own[at], has_ties, problem.delta)


def hold_back(problem: Problem, users: Users, before: Floats, value: Floats, pace: Floats) -> float:
    """Slow down users whose part of the objective has grown; return how many they are."""
    these = slice(*users)
    grown = ~(value[these] <= before[these])  # what is not a number has grown, too
    pace[these][grown] *= HOLD_BACK
    return float(np.sum(grown))


def within_box(threshold: Floats, now: Floats, has_ties: Mask, delta: float) -> Floats:
    """Return thresholds moved into their boxes.

    A user with ties feels a barrier at zero, far from which Newton's method overshoots: such a
    threshold goes at most nine tenths of the way to the bound at once.
    """
    return np.maximum(threshold, delta + np.where(has_ties, 0.1 * (now - delta), 0.0))


def finish_step(
    slots: Slots,
    users: Users,
    anchor: Anchor,
    old: Flow,
    new: Flow,
    norms: Floats,
    rates: Rates,
    times: tuple[float, float],
) -> None:
    """Fill the new Z and Gamma at the end of a step, the norms of Z, and the rates of change.

    ``times`` are the length of the step, and what turns a change of rates into their bend.
    """
    begin, end = users
    part = slice(slots.start[begin], slots.start[end])
    sizes, (length, bending) = np.diff(slots.start[begin : end + 1]), times
    w = anchor.dual[part] + (anchor.step / anchor.nu) * new.deviation[part]
    norm = np.sqrt(np.add.reduceat(w * w, slots.start[begin:end] - part.start))
    ratio = anchor.kappa * anchor.step / anchor.nu
    out, safe = norm > 1.0, np.maximum(norm, 1.0)
    factor = np.where(out, (1.0 + ratio / safe) / (1.0 + ratio), 1.0)
    norms[begin:end] = factor * norm
    new.dual[part] = np.repeat(factor, sizes) * w
    shrunk = np.where(out, anchor.kappa * (1.0 - 1.0 / np.maximum(norms[begin:end], 1.0)), 0.0)
    new.sparse[part] = np.repeat(shrunk, sizes) * new.dual[part]
    rate = (new.deviation[part] - old.deviation[part]) / length
    rates.deviation_bend[part] = bending * (rate - rates.deviation[part])
    rates.deviation[part] = rate
    rates.dual[part] = (new.dual[part] - old.dual[part]) / length


def extrapolate(
    slots: Slots,
    users: Users,
    base: Floats,
    rate: Floats,
    bend: Floats,
    times: tuple[float, float],
    out: Floats,
) -> None:
    """Fill out = base + times[0] * rate + times[1] * bend."""
    part = slice(slots.start[users[0]], slots.start[users[1]])
    out[part] = base[part] + times[0] * rate[part] + times[1] * bend[part]


def pull_sharpness(problem: Problem, users: Users, pull: float, per_slot: Floats) -> None:
    """Add a pull on the average person's sharpness to everybody's, by their share in it."""
    sharpness = problem.slots.threshold[slice(*users)] - (len(problem.scales) - 2)
    per_slot[sharpness] += pull * problem.shares[slice(*users)]


def turn(problem: Problem, users: Users, consensus: Floats, own: Floats, sign: float) -> None:
    """Turn users' deviations into their own coordinates (see `kernels.Problem`), or back: -1."""
    block = Block(problem.slots, problem.edges, users)
    turned, last = own[block.part], block.thresholds
    common = problem.bounded * consensus[problem.slots.common_threshold]
    if sign > 0.0:
        turned[last] = np.maximum(turned[last] + common, problem.delta)
    else:
        turned[last] -= common
    turned += sign * block.by_sharpness(problem, turned)


def squares(problem: Problem, users: Users, one: Floats, other: Floats) -> tuple[float, float]:
    """Return the squared norms of a difference and of its second part."""
    slots = problem.slots
    part = slice(slots.start[users[0]], slots.start[users[1]])
    apart = one[part] - other[part]
    # Not BLAS, whose threads may change the last bits, and wait for each other.
    return float(np.sum(apart * apart)), float(np.sum(other[part] * other[part]))


# --- one block, in one piece -----------------------------------------------------------------

_IN_ONE = newton.bound(
    {
        each.__name__: each
        for each in (
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
    },
)
solve, relative = _IN_ONE["solve"], _IN_ONE["relative"]

follow_user = newton.bound(
    {each.__name__: each for each in (solve, finish_step, extrapolate)},
    method=beside.METHOD,
)["follow_user"]
