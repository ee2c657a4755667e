"""The loops over votes in plain NumPy: slow, short, and the meaning of the compiled ones.

Conventions
-----------
consensus  (n_items + 1,) scores of the items, then the tie threshold: c in Eq. 5
deviation  (n_slots,) what a user adds to the consensus: P
dual       (n_slots,) Z in Eq. 9; `sparse` is Gamma = kappa * shrink(Z)

Arrays named in a function's first line are changed in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Edges, Integers, Slots
from isplitlbi.kernels import Origin, System
from isplitlbi.model import metrics
from isplitlbi.model.links import Link
from isplitlbi.typing import Floats


def margins(
    slots: Slots, edges: Edges, consensus: Floats, deviation: Floats
) -> tuple[Floats, Floats]:
    """Return the margin and the threshold of every edge."""
    own = consensus[slots.coordinate] + deviation
    margin = own[edges.first] - own[edges.second]
    threshold = np.repeat(own[slots.threshold], np.diff(edges.start))
    return margin, threshold


def loss_and_gradient(
    link: Link,
    slots: Slots,
    edges: Edges,
    consensus: Floats,
    deviation: Floats,
    consensus_gradient: Floats,
    slot_gradient: Floats,
) -> float:
    """Fill the gradients of the loss (Eq. 6, the sum over votes); return the loss."""
    margin, threshold = margins(slots, edges, consensus, deviation)
    loss, by_margin, by_threshold, *_ = link.vote_terms(
        margin, threshold, edges.first_wins, edges.ties, edges.second_wins
    )
    n_slots = len(slots.coordinate)
    threshold_slot = np.repeat(slots.threshold, np.diff(edges.start))
    slot_gradient[:] = (
        np.bincount(edges.first, by_margin, n_slots)
        - np.bincount(edges.second, by_margin, n_slots)
        + np.bincount(threshold_slot, by_threshold, n_slots)
    )
    consensus_gradient[:] = np.bincount(slots.coordinate, slot_gradient, len(consensus))
    return float(np.sum(loss))


def shrink_groups(slots: Slots, dual: Floats, kappa: float, sparse: Floats) -> Floats:
    """Fill sparse = kappa * shrink(dual), the group soft threshold at 1; return the dual's norms.

    A user's whole vector, scores and threshold together, is one group (Eq. 7).
    """
    norm = np.sqrt(np.add.reduceat(dual * dual, slots.start[:-1]))
    factor = np.where(norm > 1.0, 1.0 - 1.0 / np.maximum(norm, 1.0), 0.0)
    sparse[:] = kappa * np.repeat(factor, np.diff(slots.start)) * dual
    return norm


def explicit_step(
    link: Link,
    slots: Slots,
    edges: Edges,
    consensus: Floats,
    deviation: Floats,
    dual: Floats,
    sparse: Floats,
    consensus_gradient: Floats,
    slot_gradient: Floats,
    step: float,
    nu: float,
    kappa: float,
) -> tuple[float, Floats]:
    """Take one step of Eq. 9, without its projections; return the old loss and the dual's norms."""
    loss = loss_and_gradient(
        link, slots, edges, consensus, deviation, consensus_gradient, slot_gradient
    )
    consensus -= kappa * step * consensus_gradient
    pull = (deviation - sparse) / nu
    deviation -= kappa * step * (slot_gradient + pull)
    dual += step * pull
    norm = shrink_groups(slots, dual, kappa, sparse)
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
    own = deviation[slots.threshold]
    center = consensus[-1]
    if joint:
        while True:
            short = delta - own > center
            moved = (consensus[-1] + np.sum(delta - own[short])) / (1.0 + np.sum(short))
            if moved <= center:
                break
            center = moved
    consensus[-1] = max(center, delta)
    # Own - center + center can round below the bound; the larger of both sums cannot.
    deviation[slots.threshold] = np.maximum(own, delta - consensus[-1])


def threshold_curvature(
    link: Link, slots: Slots, consensus: Floats, deviation: Floats, decided: Floats, ties: Floats
) -> tuple[float, float]:
    """Bound the loss's curvature in the thresholds, and a tie's in the margin.

    ``decided`` and ``ties`` count every user's votes. The first bound is for the consensus and all
    users together: their sum, plus the largest.
    """
    own = consensus[-1] + deviation[slots.threshold]
    win_bound, tie_by_margin, tie_by_threshold = link.curvature_bounds(own)
    per_user = decided * win_bound + np.where(ties > 0, ties * tie_by_threshold, 0.0)
    steepest = np.max(np.where(ties > 0, tie_by_margin, 0.0), initial=0.0)
    return float(np.sum(per_user) + np.max(per_user, initial=0.0)), float(steepest)


# --- scoring -------------------------------------------------------------------------------------


def score(
    link: Link,
    slots: Slots,
    user: Integers,
    left_slot: Integers,
    right_slot: Integers,
    counts: Floats,
    consensus: Floats,
    deviation: Floats,
    deviates: NDArray[np.bool_],
    by_threshold: bool,
    confusion: Floats,
) -> float:
    """Fill the confusion of predicted votes with the truth; return the sum of their losses.

    ``counts`` has a row for every (user, left, right): how often left won, a tie, right won. Users
    who do not deviate vote like the consensus. Predicted is a tie within the threshold, or else the
    most probable outcome.
    """
    own = consensus[slots.coordinate] + deviation * np.repeat(deviates, np.diff(slots.start))
    margin, threshold = own[left_slot] - own[right_slot], own[slots.threshold][user]
    log_probabilities = link.log_probabilities(margin, threshold)
    predicted = (
        metrics.decide(margin, threshold)
        if by_threshold
        else metrics.most_probable(log_probabilities)
    )
    for place, outcome in enumerate((1, 0, -1)):
        confusion[:, place] = counts[predicted == outcome].sum(axis=0)
    return -float(np.sum(counts * log_probabilities))


# --- the implicit scheme -------------------------------------------------------------------------
#
# One step solves a convex problem in the consensus c and, per user, the ``own`` coordinates: the
# deviation P of every score, and the user's threshold itself (not its deviation), so that its bound
# is a box. All functions work on the users from ``begin`` to ``end``; what they add to the
# consensus goes to an array of its own, for the caller to sum in a fixed order.


def assemble(
    link: Link,
    slots: Slots,
    edges: Edges,
    begin: int,
    end: int,
    consensus: Floats,
    own: Floats,
    origin: Origin,
    system: System,
    consensus_gradient: Floats,
    consensus_diagonal: Floats,
) -> float:
    """Fill the system with gradient and curvature of a step's objective; return its value.

    With W = Z_old + (step/nu) P and a = kappa step / nu, eliminating the new Z and Gamma leaves a
    convex function of P whose gradient is (Z(W) - Z_old) / step.
    """
    first_edge, last_edge = edges.start[begin], edges.start[end]
    first_slot, last_slot = slots.start[begin], slots.start[end]
    part, part_edges = slice(first_slot, last_slot), slice(first_edge, last_edge)
    sizes, n_edges = np.diff(slots.start[begin : end + 1]), np.diff(edges.start[begin : end + 1])
    thresholds = slots.start[begin + 1 : end + 1] - 1 - first_slot
    coordinate, n_slots = slots.coordinate[part], last_slot - first_slot

    total = consensus[coordinate] + own[part]
    total[thresholds] = own[part][thresholds]
    i, j = edges.first[part_edges] - first_slot, edges.second[part_edges] - first_slot
    at = np.repeat(thresholds, n_edges)
    terms = link.vote_terms(
        total[i] - total[j],
        total[at],
        edges.first_wins[part_edges],
        edges.ties[part_edges],
        edges.second_wins[part_edges],
    )
    loss, by_margin, by_threshold, mm, _, tt = terms
    system.curvature[:, part_edges] = terms[3:]

    def scatter(first: Floats, second: Floats, threshold: Floats) -> Floats:
        return np.asarray(
            np.bincount(i, first, n_slots)
            + np.bincount(j, second, n_slots)
            + np.bincount(at, threshold, n_slots)
        )

    of_loss = scatter(by_margin, -by_margin, by_threshold)
    bend_of_loss = scatter(mm, mm, tt)

    deviation = own[part].copy()
    deviation[thresholds] -= consensus[-1]
    moved = deviation - origin.deviation[part]
    step, nu, kappa, damping = origin.step, origin.nu, origin.kappa, origin.damping
    a = kappa * step / nu
    w = origin.dual[part] + (step / nu) * deviation
    system.pushed[part] = w
    norm = np.sqrt(np.add.reduceat(w * w, slots.start[begin:end] - first_slot))
    out, safe = norm > 1.0, np.maximum(norm, 1.0)
    factor = np.where(out, (1.0 + a / safe) / (1.0 + a), 1.0)
    bend = system.bend[begin:end]
    bend[:, 0] = factor / nu
    bend[:, 1] = np.where(out, a / (nu * (1.0 + a) * safe**3), 0.0)
    # The function itself, up to a constant, in a form that cancels no large terms.
    relief = 0.5 * kappa / (step * (1.0 + a)) * (safe - 1.0) ** 2
    pull = (np.repeat(factor, sizes) * w - origin.dual[part]) / step
    pull += damping * moved
    stiffness = damping + np.repeat(bend[:, 0], sizes) - np.repeat(bend[:, 1], sizes) * w * w

    system.residual[part] = -(of_loss + pull)
    system.inverse[part] = 1.0 / (bend_of_loss + stiffness)
    # A threshold's own coordinate takes the votes; the consensus threshold meets them only
    # through the deviation.
    of_loss[thresholds] = -pull[thresholds]
    bend_of_loss[thresholds] = stiffness[thresholds]
    system.coupling[part] = bend_of_loss
    system.coupling[part][thresholds] *= -1.0
    consensus_gradient[:] = np.bincount(coordinate, of_loss, len(consensus))
    consensus_diagonal[:] = np.bincount(coordinate, bend_of_loss, len(consensus))
    value = np.sum(loss) + 0.5 * damping * (moved @ moved)
    return float(value + 0.5 * (deviation @ deviation) / nu - np.sum(relief))


def eliminate_users(
    slots: Slots,
    begin: int,
    end: int,
    own: Floats,
    delta: float,
    system: System,
    eliminated: Floats,
) -> None:
    """Begin the solution; fill what eliminating every slot by itself takes from the consensus.

    Thresholds that are not free go their own way.
    """
    part = slice(slots.start[begin], slots.start[end])
    system.solution[part] = system.direction[part] = system.product[part] = 0.0
    thresholds = slots.threshold[begin:end]
    downhill = system.residual[thresholds] * system.inverse[thresholds]
    free = is_free(own[thresholds], downhill, delta)
    system.free[begin:end] = free
    bound = thresholds[~free]
    system.solution[bound] = downhill[~free]
    system.residual[bound] = system.coupling[bound] = 0.0
    taken = system.coupling[part] ** 2 * system.inverse[part]
    eliminated[:] = np.bincount(slots.coordinate[part], taken, len(eliminated))


def is_free(threshold: Any, downhill: Any, delta: float) -> Any:
    """Tell whether a threshold is off its bound, given the step it would take by itself.

    One near the bound, or on its way to it, would spoil the directions of the others.
    """
    return (downhill > 0.0) | ((threshold > 1.01 * delta) & (threshold + downhill > delta))


def curvature_product(
    slots: Slots,
    edges: Edges,
    begin: int,
    end: int,
    system: System,
    damping: float,
    consensus_preconditioned: Floats,
    consensus_direction: Floats,
    momentum: float,
    consensus_product: Floats,
) -> float:
    """Take the next conjugate direction and apply the curvature to it; return their product.

    The direction is the preconditioned residual plus ``momentum`` times the last one.
    """
    first_slot, last_slot = slots.start[begin], slots.start[end]
    part, part_edges = slice(first_slot, last_slot), slice(edges.start[begin], edges.start[end])
    sizes, n_edges = np.diff(slots.start[begin : end + 1]), np.diff(edges.start[begin : end + 1])
    thresholds = slots.start[begin + 1 : end + 1] - 1 - first_slot
    coordinate, n_slots = slots.coordinate[part], last_slot - first_slot

    left = system.residual[part] - system.coupling[part] * consensus_preconditioned[coordinate]
    d = left * system.inverse[part] + momentum * system.direction[part]
    system.direction[part] = d
    total = consensus_direction[coordinate] + d
    total[thresholds] = d[thresholds]
    i, j = edges.first[part_edges] - first_slot, edges.second[part_edges] - first_slot
    at = np.repeat(thresholds, n_edges)
    mm, mt, tt = system.curvature[:, part_edges]
    margin, threshold = total[i] - total[j], total[at]
    by_margin, by_threshold = mm * margin + mt * threshold, mt * margin + tt * threshold
    of_loss = (
        np.bincount(i, by_margin, n_slots)
        - np.bincount(j, by_margin, n_slots)
        + np.bincount(at, by_threshold, n_slots)
    )
    deviation = d.copy()
    deviation[thresholds] -= consensus_direction[-1]
    w, bend = system.pushed[part], system.bend[begin:end]
    along = np.add.reduceat(w * deviation, slots.start[begin:end] - first_slot)
    pull = (damping + np.repeat(bend[:, 0], sizes)) * deviation
    pull -= np.repeat(bend[:, 1] * along, sizes) * w
    product = of_loss + pull
    product[thresholds] *= system.free[begin:end]
    system.product[part] = product
    of_loss[thresholds] = -pull[thresholds]
    consensus_product[:] = np.bincount(coordinate, of_loss, len(consensus_product))
    return float(d @ product)


def conjugate_update(
    slots: Slots, begin: int, end: int, length: float, system: System, consensus_coupled: Floats
) -> float:
    """Move along the direction by a length.

    Fills what the users' new residual means for the consensus, sum of coupling residual / diagonal,
    and returns the sum of residual^2 / diagonal: what the preconditioner needs.
    """
    part = slice(slots.start[begin], slots.start[end])
    system.solution[part] += length * system.direction[part]
    system.residual[part] -= length * system.product[part]
    scaled = system.residual[part] * system.inverse[part]
    consensus_coupled[:] = np.bincount(
        slots.coordinate[part], system.coupling[part] * scaled, len(consensus_coupled)
    )
    return float(system.residual[part] @ scaled)


def finish_step(
    slots: Slots,
    begin: int,
    end: int,
    origin: Origin,
    old_deviation: Floats,
    old_dual: Floats,
    length: float,
    bending: float,
    deviation: Floats,
    dual: Floats,
    sparse: Floats,
    norms: Floats,
    deviation_rate: Floats,
    dual_rate: Floats,
    deviation_bend: Floats,
) -> None:
    """Fill the new Z and Gamma at the end of a step, the norms of Z, and the rates of change.

    ``length`` is that of the step, ``bending`` what turns a change of rates into their bend.
    """
    part = slice(slots.start[begin], slots.start[end])
    sizes = np.diff(slots.start[begin : end + 1])
    w = origin.dual[part] + (origin.step / origin.nu) * deviation[part]
    norm = np.sqrt(np.add.reduceat(w * w, slots.start[begin:end] - part.start))
    ratio = origin.kappa * origin.step / origin.nu
    out, safe = norm > 1.0, np.maximum(norm, 1.0)
    factor = np.where(out, (1.0 + ratio / safe) / (1.0 + ratio), 1.0)
    norms[begin:end] = factor * norm
    dual[part] = np.repeat(factor, sizes) * w
    shrunk = np.where(out, origin.kappa * (1.0 - 1.0 / np.maximum(norms[begin:end], 1.0)), 0.0)
    sparse[part] = np.repeat(shrunk, sizes) * dual[part]
    rate = (deviation[part] - old_deviation[part]) / length
    deviation_bend[part] = bending * (rate - deviation_rate[part])
    deviation_rate[part] = rate
    dual_rate[part] = (dual[part] - old_dual[part]) / length


def extrapolate(
    slots: Slots,
    begin: int,
    end: int,
    base: Floats,
    rate: Floats,
    bend: Floats,
    length: float,
    bending: float,
    out: Floats,
) -> None:
    """Fill out = base + length * rate + bending * bend."""
    part = slice(slots.start[begin], slots.start[end])
    out[part] = base[part] + length * rate[part] + bending * bend[part]


def squares(slots: Slots, begin: int, end: int, one: Floats, other: Floats) -> tuple[float, float]:
    """Return the squared norms of a difference and of its second part."""
    part = slice(slots.start[begin], slots.start[end])
    apart = one[part] - other[part]
    # Not BLAS, whose threads may change the last bits, and wait for each other.
    return float(np.sum(apart * apart)), float(np.sum(other[part] * other[part]))
