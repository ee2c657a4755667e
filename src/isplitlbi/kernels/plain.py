"""The loops over votes in plain NumPy: slow, short, and the meaning of the compiled ones.

Conventions
-----------
consensus  (n_items + 1,) scores of the items, then the tie threshold: c in Eq. 6
deviation  (n_slots,) what a user adds to the consensus: P
dual       (n_slots,) Z in Eq. 9; `sparse` is Gamma = kappa * shrink(Z)

Arrays named in a function's first line are changed in place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isplitlbi.comparisons import Edges, Slots
from isplitlbi.links import Link

Floats = NDArray[np.float64]


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
    """Fill the gradients of the loss (Eq. 7, the sum over votes); return the loss."""
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

    A user's whole vector, scores and threshold together, is one group (Eq. 5).
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
