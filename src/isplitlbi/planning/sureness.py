"""How certain an order is: the whole of it, its first places, and the borders of its tiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from isplitlbi.planning.open_questions import quadratic, ranks_of_draws
from isplitlbi.typing import Floats, Places

__all__ = ["Sureness", "expected_tau", "how_sure"]


class Sureness(NamedTuple):
    """How certain an order is, beside the one that infinitely many votes would give.

    Attributes
    ----------
    n_wrong : float
        How many pairs of items are expected to stand in the wrong order.
    tau : float
        Kendall's tau that is expected with the true order.
    first : float
        The probability that the first item is the best one.
    top : float
        The probability that the first places hold the right items, in whichever order.
    borders : tuple of float
        For each border between two tiers, the probability that all items above it are better than
        all items below.
    """

    n_wrong: float
    tau: float
    first: float
    top: float
    borders: tuple[float, ...] = ()


def how_sure(
    order: Places,
    estimate: Floats,
    covariance: Floats,
    freedom: float = np.inf,
    *,
    n_places: int = 1,
    borders: Sequence[int] = (),
) -> Sureness:
    """Say how certain an order is, where scores are known up to errors.

    Parameters
    ----------
    order : (n_items,)
        The items, the best first.
    estimate, covariance, freedom
        The scores, and of their errors (Student's distribution where the freedom is finite).
    n_places
        How many first places are asked for.
    borders
        After how many items there is a border.

    Examples
    --------
    >>> sure = how_sure(np.array([0, 1]), np.array([1.0, 0.0]), 0.5 * np.eye(2))
    >>> round(sure.tau, 2), round(sure.first, 2)
    (0.68, 0.84)
    """
    tau = expected_tau(estimate[order], covariance[np.ix_(order, order)], freedom)
    n_pairs = len(order) * (len(order) - 1) / 2
    ranks = ranks_of_draws(estimate, covariance, freedom)[:, order]

    def holds_after(n: int) -> float:
        if n == 0 or n == len(order):
            return 1.0
        return float(np.mean(ranks[:, :n].max(axis=1) < ranks[:, n:].min(axis=1)))

    return Sureness(
        0.5 * (1.0 - tau) * n_pairs, tau, holds_after(1), holds_after(min(n_places, len(order))),
        tuple(holds_after(border) for border in borders),
    )  # fmt: skip


def expected_tau(estimate: Floats, covariance: Floats, freedom: float = np.inf) -> float:
    """Return Kendall's tau that is expected of an order; estimates are given in that order."""
    n_items = len(estimate)
    if n_items < 2:
        return 1.0
    first, second = np.triu_indices(n_items, 1)
    variance = quadratic(covariance, first, second)
    far = (estimate[first] - estimate[second]) / np.sqrt(np.maximum(variance, 1e-300))
    right = scipy.special.ndtr(far) if np.isinf(freedom) else scipy.special.stdtr(freedom, far)
    return float(2.0 * np.mean(right) - 1.0)
