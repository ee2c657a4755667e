"""The loops of the explicit scheme and of scoring, over all users, in plain NumPy.

Arrays named in a function's first line are changed in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isplitlbi.data.layout import Slots
from isplitlbi.kernels import Flow, Gradient, Problem
from isplitlbi.kernels.numpy_blocks import Block
from isplitlbi.model import metrics
from isplitlbi.model.answering import Answering, LogThreshold
from isplitlbi.model.links import threshold_of
from isplitlbi.model.temperature import log_probability_at
from isplitlbi.typing import Floats, Mask

__all__ = [
    "explicit_step",
    "loss_and_gradient",
    "margins",
    "project_thresholds",
    "score",
    "shrink_groups",
    "threshold_curvature",
]


def margins(problem: Problem, consensus: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return the margin and the threshold of every edge."""
    slots = problem.slots
    block = Block(slots, problem.edges, (0, slots.n_users))
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
    block = Block(slots, edges, (0, slots.n_users))
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
    person = consensus
    if len(problem.reference):
        person = consensus + (problem.shares @ deviation[block.sharpness]) * problem.toward
    held = problem.precision * person
    if len(problem.reference):
        gradient.slots[block.sharpness] += problem.shares * float(held @ problem.toward)
    gradient.consensus[:] = (of_consensus + held) * problem.common
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
    precision: float,
) -> tuple[float, Floats]:
    """Take one step of Eq. 9, without its projections; return the old loss and the dual's norms."""
    consensus, deviation, dual, sparse = flow
    loss = loss_and_gradient(link, problem, consensus, deviation, gradient)
    consensus -= kappa * step * gradient.consensus
    pull = (deviation - sparse) / nu
    deviation -= kappa * step * (gradient.slots + pull + precision * deviation)
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
    if not problem.bounded:
        return _log_threshold_curvature(link, problem, consensus, deviation)
    own = consensus[slots.common_threshold] + deviation[slots.threshold]
    win_bound, tie_by_margin, tie_by_threshold = _bounds(link, own)
    per_user = decided * win_bound + np.where(ties > 0, ties * tie_by_threshold, 0.0)
    steepest = np.max(np.where(ties > 0, tie_by_margin, 0.0), initial=0.0)
    return float(np.sum(per_user) + np.max(per_user, initial=0.0)), float(steepest)


def _log_threshold_curvature(
    link: Answering, problem: Problem, consensus: Floats, deviation: Floats
) -> tuple[float, float]:
    """Return the same where thresholds are told by their logarithms, and items have habits.

    By its logarithm, a threshold t bends the loss by t^2 times what it does by itself, and by t
    times the slope; of the latter half counts, since the former is doubled (see `Explicit`).
    """
    if not isinstance(link, LogThreshold):
        return 0.0, 0.0  # there is no threshold
    slots, edges = problem.slots, problem.edges
    block = Block(slots, edges, (0, slots.n_users))
    margin, level = margins(problem, consensus, deviation)
    by_level = link.vote_terms(margin, level, *edges.counts)[2]
    threshold, ties = threshold_of(level), edges.ties
    win_bound, tie_by_margin, tie_by_threshold = _bounds(link, threshold)
    bent = (edges.first_wins + edges.second_wins) * win_bound
    bent = bent + np.where(ties > 0, ties * tie_by_threshold, 0.0)
    bent = threshold**2 * bent + 0.5 * np.abs(by_level)
    per_user = np.bincount(block.owner, bent, slots.n_users)
    bound = np.sum(bent) + problem.scales[-1] ** 2 * np.max(per_user, initial=0.0)
    if habits := block.habits:
        degree = np.bincount(np.concatenate(habits), np.tile(bent, 2), len(consensus))
        bound += np.max(degree[habits[0]] + degree[habits[1]], initial=0.0)
    return float(bound), float(np.max(np.where(ties > 0, tie_by_margin, 0.0), initial=0.0))


def _bounds(link: Any, threshold: Floats) -> tuple[Floats, Floats, Floats]:
    """Bound how much one vote bends, given thresholds as they are."""
    bounds: tuple[Floats, Floats, Floats] = getattr(link, "link", link).curvature_bounds(threshold)
    return bounds


# --- scoring ---------------------------------------------------------------------------------


def score(
    link: Answering,
    problem: Problem,
    consensus: Floats,
    deviation: Floats,
    deviates: Mask,
    by_threshold: bool,
    power: float,
    confusion: Floats,
) -> tuple[float, float, float]:
    """Fill the confusion of predicted votes with the truth.

    The first item of an edge is the one on the left. Users who do not deviate vote like the
    consensus. Predicted is a tie within the threshold, or else the most probable outcome.

    Returns
    -------
    the sum of the losses of the votes; and, where probabilities are raised to that power and sum to
    one again, the first and second derivative of that sum by the power
    """
    edges = problem.edges
    own = deviation * np.repeat(deviates, np.diff(problem.slots.start))
    margin, threshold = margins(problem, consensus, own)
    log_probabilities = np.stack(np.broadcast_arrays(*link.outcomes(margin, threshold)), axis=-1)
    predicted = (
        metrics.decide(margin, link.tie_within(threshold))
        if by_threshold
        else metrics.most_probable(log_probabilities)
    )
    counts = np.stack(edges.counts, axis=1)
    for place, outcome in enumerate((1, 0, -1)):
        confusion[:, place] = counts[predicted == outcome].sum(axis=0)
    happened, n_votes = float(np.sum(counts * log_probabilities)), counts.sum(axis=1)
    expected, variance = log_probability_at(log_probabilities, power)
    slope = float(np.sum(n_votes * expected)) - happened
    return -happened, slope, float(np.sum(n_votes * variance))
