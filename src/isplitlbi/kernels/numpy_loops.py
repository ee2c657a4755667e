"""The loops over votes in plain NumPy: slow, short, and the meaning of the compiled ones.

Consensus and users' parameters lie as `data.layout` says: what enters the margin first, and the
threshold after it. Arrays named in a function's first line are changed in place. Users are those of
a block; what a block adds to the consensus goes to an array of its own, for the caller to sum in a
fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isplitlbi.data.layout import Edges, Slots
from isplitlbi.kernels import (
    MOST_TAKEN,
    Anchor,
    Flow,
    Gradient,
    Problem,
    Rates,
    Sums,
    System,
    Users,
    newton,
)
from isplitlbi.model import metrics
from isplitlbi.model.answering import Answering
from isplitlbi.typing import Floats, Mask, Places


class _Block:
    """The votes and parameters of a block of users, counted from its first slot."""

    def __init__(self, slots: Slots, edges: Edges, users: Users) -> None:
        begin, end = users
        self.first_slot, last_slot = slots.start[begin], slots.start[end]
        self.part = slice(self.first_slot, last_slot)
        self.edges = slice(edges.start[begin], edges.start[end])
        self.n_slots = int(last_slot - self.first_slot)
        self.start = slots.start[begin:end] - self.first_slot
        self.sizes = np.diff(slots.start[begin : end + 1])
        self.thresholds = slots.threshold[begin:end] - self.first_slot
        self.coordinate = slots.coordinate[self.part]
        self.first_habit = slots.first_habit
        self.first = edges.first[self.edges] - self.first_slot
        self.second = edges.second[self.edges] - self.first_slot
        self.columns = edges.columns[:, self.edges]
        self.counts = [amount[self.edges] for amount in edges.counts]
        n_edges = np.diff(edges.start[begin : end + 1])
        self.owner = np.repeat(np.arange(len(n_edges)), n_edges)
        self.threshold = np.repeat(self.thresholds, n_edges)
        # The traits that have a column stand right before the threshold, sharpness before them.
        self.sharpness = self.thresholds - len(self.columns) - 1
        self.traits: Places = (
            self.threshold - len(self.columns) + np.arange(len(self.columns))[:, None]
        )

    def margin(self, total: Floats) -> Floats:
        """Return the margin of every edge."""
        margin = total[self.first] - total[self.second]
        return np.asarray(margin + np.sum(self.columns * total[self.traits], axis=0))

    def level(self, total: Floats, consensus: Floats) -> Floats:
        """Return the threshold of every edge: the user's own, and what the items add."""
        level = total[self.threshold]
        for habit in self.habits:
            level = level + consensus[habit]
        return np.asarray(level)

    @property
    def habits(self) -> list[Integers]:
        """Where the habits of the first and of the second item lie, if there are any."""
        if not self.first_habit:
            return []
        return [self.first_habit + self.coordinate[each] for each in (self.first, self.second)]

    def own_to_total(self, problem: Problem) -> Floats:
        """Return what an own coordinate counts for; sharpness counts through the items."""
        scale = self.by_term(np.append(1.0, problem.scales[1:]))
        if len(problem.reference):
            scale[self.sharpness] = 0.0
        return scale

    def consensus_to_total(self, problem: Problem) -> Floats:
        """Return whether the consensus counts beside it, which a bounded threshold does not let."""
        counts = np.ones(self.n_slots)
        counts[self.thresholds] = 1.0 - problem.bounded
        return counts

    def scatter(self, by_margin: Floats, by_threshold: Floats) -> Floats:
        """Return what a number per margin and per threshold means for every slot."""
        of_slots = (
            np.bincount(self.first, by_margin, self.n_slots)
            - np.bincount(self.second, by_margin, self.n_slots)
            + np.bincount(self.threshold, by_threshold, self.n_slots)
        )
        for column, trait in zip(self.columns, self.traits, strict=True):
            of_slots += np.bincount(trait, column * by_margin, self.n_slots)
        return np.asarray(of_slots)

    def scatter_squares(self, by_margin: Floats, by_threshold: Floats) -> Floats:
        """Return the same for second derivatives, of every slot with itself."""
        of_slots = (
            np.bincount(self.first, by_margin, self.n_slots)
            + np.bincount(self.second, by_margin, self.n_slots)
            + np.bincount(self.threshold, by_threshold, self.n_slots)
        )
        for column, trait in zip(self.columns, self.traits, strict=True):
            of_slots += np.bincount(trait, column * column * by_margin, self.n_slots)
        return np.asarray(of_slots)

    def by_term(self, values: Floats) -> Floats:
        """Return, for every slot, the number of its term."""
        spread = np.full(self.n_slots, values[0])
        for back, value in enumerate(values[:0:-1]):  # the threshold, and before it the traits
            spread[self.thresholds - back] = value
        return spread

    def by_sharpness(self, problem: Problem, own: Floats) -> Floats:
        """Return what their sharpness adds to the items of users."""
        if len(problem.reference) == 0:
            return np.zeros(self.n_slots)
        return self.of_reference(problem) * np.repeat(own[self.sharpness], self.sizes)

    def of_reference(self, problem: Problem) -> Floats:
        """Return what sharpness multiplies in every slot: nothing but in those of items."""
        return problem.reference[self.part]

    def sum_by_user(self, values: Floats) -> Floats:
        """Add up numbers per slot."""
        return np.asarray(np.add.reduceat(values, self.start))


def margins(problem: Problem, consensus: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return the margin and the threshold of every edge."""
    slots = problem.slots
    block = _Block(slots, problem.edges, (0, slots.n_users))
    own = consensus[slots.coordinate] + block.by_term(problem.scales) * deviation
    own += block.by_sharpness(problem, deviation)
    return block.margin(own), block.level(own, consensus)


def loss_and_gradient(
    link: Answering, problem: Problem, consensus: Floats, deviation: Floats, gradient: Gradient
) -> float:
    """Fill the gradient of the loss (Eq. 6, the sum over votes, and the prior on the consensus).

    Returns
    -------
    the loss of the votes
    """
    slots, edges = problem.slots, problem.edges
    block = _Block(slots, edges, (0, slots.n_users))
    margin, threshold = margins(problem, consensus, deviation)
    loss, by_margin, by_threshold, *_ = link.vote_terms(margin, threshold, *edges.counts)
    of_slots = block.scatter(by_margin, by_threshold)
    gradient.slots[:] = block.by_term(problem.scales) * of_slots
    if len(problem.reference):
        by_sharpness = block.sum_by_user(block.of_reference(problem) * of_slots)
        gradient.slots[block.sharpness] = by_sharpness
    of_consensus = np.bincount(slots.coordinate, of_slots, len(consensus))
    for habit in block.habits:
        of_consensus += np.bincount(habit, by_threshold, len(consensus))
    gradient.consensus[:] = (of_consensus + problem.precision * consensus) * problem.common
    return float(np.sum(loss))


def shrink_groups(slots: Slots, dual: Floats, kappa: float, sparse: Floats) -> Floats:
    """Fill sparse = kappa * shrink(dual), the group soft threshold at 1; return the dual's norms.

    A user's whole vector, scores, threshold and all, is one group (Eq. 7).
    """
    norm = np.sqrt(np.add.reduceat(dual * dual, slots.start[:-1]))
    factor = np.where(norm > 1.0, 1.0 - 1.0 / np.maximum(norm, 1.0), 0.0)
    sparse[:] = kappa * np.repeat(factor, np.diff(slots.start)) * dual
    return norm


def explicit_step(
    link: Answering,
    problem: Problem,
    flow: Flow,
    gradient: Gradient,
    step: float,
    nu: float,
    kappa: float,
) -> tuple[float, Floats]:
    """Take one step of Eq. 9, without its projections; return the old loss and the dual's norms."""
    consensus, deviation, dual, sparse = flow
    loss = loss_and_gradient(link, problem, consensus, deviation, gradient)
    consensus -= kappa * step * gradient.consensus
    pull = (deviation - sparse) / nu
    deviation -= kappa * step * (gradient.slots + pull)
    dual += step * pull
    norm = shrink_groups(problem.slots, dual, kappa, sparse)
    return loss, norm


def project_thresholds(
    slots: Slots, consensus: Floats, deviation: Floats, delta: float, joint: bool
) -> None:
    """Move the thresholds onto {consensus >= delta, every user's own >= delta}.

    Jointly, this is the Euclidean projection of (c, p_1, ..., p_U). Its only unknown is c: users
    below the bound share the move with the consensus, and Newton's method on that piecewise linear
    equation climbs to its root in a few exact steps. Otherwise it is the paper's rule, first the
    consensus and then every user.
    """
    at, own = slots.common_threshold, deviation[slots.threshold]
    center = consensus[at]
    if joint:
        while True:
            short = delta - own > center
            moved = (consensus[at] + np.sum(delta - own[short])) / (1.0 + np.sum(short))
            if not moved > center:  # nor is what is not a number
                break
            center = moved
    consensus[at] = max(center, delta)
    # Own - center + center can round below the bound; the larger of both sums cannot.
    deviation[slots.threshold] = np.maximum(own, delta - consensus[at])


def threshold_curvature(
    link: Answering,
    problem: Problem,
    consensus: Floats,
    deviation: Floats,
    decided: Floats,
    ties: Floats,
) -> tuple[float, float]:
    """Bound the loss's curvature in the thresholds, and a tie's in the margin.

    ``decided`` and ``ties`` count every user's votes. The first bound is for the consensus and all
    users together: their sum, plus the largest.
    """
    slots = problem.slots
    own = consensus[slots.common_threshold] + deviation[slots.threshold]
    win_bound, tie_by_margin, tie_by_threshold = link.curvature_bounds(own)
    per_user = decided * win_bound + np.where(ties > 0, ties * tie_by_threshold, 0.0)
    steepest = np.max(np.where(ties > 0, tie_by_margin, 0.0), initial=0.0)
    return float(np.sum(per_user) + np.max(per_user, initial=0.0)), float(steepest)


# --- scoring ---------------------------------------------------------------------------------


def score(
    link: Answering,
    problem: Problem,
    consensus: Floats,
    deviation: Floats,
    deviates: Mask,
    by_threshold: bool,
    confusion: Floats,
) -> float:
    """Fill the confusion of predicted votes with the truth; return the sum of their losses.

    The first item of an edge is the one on the left. Users who do not deviate vote like the
    consensus. Predicted is a tie within the threshold, or else the most probable outcome.
    """
    edges = problem.edges
    own = deviation * np.repeat(deviates, np.diff(problem.slots.start))
    margin, threshold = margins(problem, consensus, own)
    log_probabilities = np.stack(np.broadcast_arrays(*link.outcomes(margin, threshold)), axis=-1)
    predicted = (
        metrics.decide(margin, threshold)
        if by_threshold
        else metrics.most_probable(log_probabilities)
    )
    counts = np.stack(edges.counts, axis=1)
    for place, outcome in enumerate((1, 0, -1)):
        confusion[:, place] = counts[predicted == outcome].sum(axis=0)
    return -float(np.sum(counts * log_probabilities))


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

    ``sums`` are gradient and diagonal of the consensus, as far as these users make them.

    With W = Z_old + (step/nu) P and a = kappa step / nu, eliminating the new Z and Gamma leaves a
    convex function of P whose gradient is (Z(W) - Z_old) / step.
    """
    block = _Block(problem.slots, problem.edges, users)
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
    moved = deviation - anchor.deviation[part]
    step, nu, kappa, damping = anchor.step, anchor.nu, anchor.kappa, anchor.damping
    a = kappa * step / nu
    w = anchor.dual[part] + (step / nu) * deviation
    held = block.by_term(anchor.holds)
    system.pushed[part] = w
    norm = np.sqrt(block.sum_by_user(w * w))
    out, safe = norm > 1.0, np.maximum(norm, 1.0)
    factor = np.where(out, (1.0 + a / safe) / (1.0 + a), 1.0)
    bend = system.bend[slice(*users)]
    bend[:, 0] = factor / nu
    bend[:, 1] = np.where(out, a / (nu * (1.0 + a) * safe**3), 0.0)
    # The function itself, up to a constant, in a form that cancels no large terms.
    relief = 0.5 * kappa / (step * (1.0 + a)) * (safe - 1.0) ** 2
    pull = (np.repeat(factor, block.sizes) * w - anchor.dual[part]) / step
    pull = held * (pull + damping * moved)
    stiffness = damping + np.repeat(bend[:, 0], block.sizes)
    stiffness = held * (stiffness - np.repeat(bend[:, 1], block.sizes) * w * w)

    system.residual[part] = -(scale * of_loss + pull)
    system.inverse[part] = 1.0 / (scale * scale * bend_of_loss + stiffness)
    # A bounded threshold's own coordinate takes the votes; the consensus threshold meets them only
    # through the deviation.
    apart = 1.0 - counts
    if len(problem.reference):
        _lean(problem, block, system, mm, pull, stiffness)
    system.coupling[part] = counts * scale * bend_of_loss - apart * stiffness
    of_loss, bend_of_loss = counts * of_loss - apart * pull, counts * bend_of_loss
    bend_of_loss += apart * stiffness
    sums[0][:] = np.bincount(block.coordinate, of_loss, len(consensus))
    sums[1][:] = np.bincount(block.coordinate, bend_of_loss, len(consensus))
    for habit in block.habits:
        sums[0][:] += np.bincount(habit, by_threshold, len(consensus))
        sums[1][:] += np.bincount(habit, tt, len(consensus))
    value = np.sum(loss) + 0.5 * damping * np.sum(held * moved * moved)
    return float(value + 0.5 * np.sum(held * deviation * deviation) / nu - np.sum(relief))


def _lean(
    problem: Problem,
    block: _Block,
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
    block = _Block(slots, problem.edges, users)
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
    the users are in the system.
    """
    block = _Block(problem.slots, problem.edges, users)
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
    block = _Block(slots, problem.edges, users)
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


def _solved(problem: Problem, block: _Block, system: System, consensus: Floats) -> Floats:
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
    problem: Problem, users: Users, own: Floats, direction: Floats, length: float, moved: Floats
) -> None:
    """Fill moved = own + length * direction, thresholds within their boxes."""
    slots, (begin, end) = problem.slots, users
    part = slice(slots.start[begin], slots.start[end])
    moved[part] = own[part] + length * direction[part]
    at = slots.threshold[begin:end]
    has_ties = problem.has_ties[begin:end]
    moved[at] = within_box(moved[at], own[at], has_ties, problem.delta)


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


def lean(problem: Problem, users: Users, own: Floats, sign: float) -> None:
    """Add, to the slots of items in ``own``, what sharpness adds, with a sign."""
    block = _Block(problem.slots, problem.edges, users)
    own[block.part] += sign * block.by_sharpness(problem, own[block.part])


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
            squares,
            is_free,
        )
    },
)
minimise, relative = _IN_ONE["minimise"], _IN_ONE["relative"]
