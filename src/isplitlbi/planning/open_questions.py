"""What is still open in an order: of every two items, which one is better.

Scores are known up to errors of some covariance. Of every two items it is a question which one is
better, and what is known of the answer is told in bits: nothing where both are as likely, all where
the difference of their scores is far beyond its error.

Conventions
-----------
question   which of two items is better
open       how much a question would gain, in bits, from a little less error of the difference
told       covariance times open questions times covariance: what all questions gain from a vote
           along any direction is a quadratic form of it
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from isplitlbi.model.differences import root_of
from isplitlbi.typing import Floats, Places

__all__ = ["OpenQuestions", "chances_to_be_among", "quadratic", "ranks_of_draws"]

N_DRAWS, SEED = 2_000, 0
LEAST_ERROR = 1e-12  # the variance of a difference below which there is nothing left to ask
LOG_DENSITY_AT_0 = -0.5 * np.log(2.0 * np.pi)


def quadratic(matrix: Floats, first: Places, second: Places) -> Floats:
    """Return the form of a matrix along the difference of two places, for many pairs.

    Examples
    --------
    >>> quadratic(np.diag([1.0, 2.0, 3.0]), np.array([0, 1]), np.array([1, 2]))
    array([3., 5.])
    """
    own = np.diag(matrix)
    crossed = matrix[first, second] + matrix[second, first]
    return np.asarray(own[first] + own[second] - crossed)


@dataclass
class OpenQuestions:
    """Scores whose order is asked for, as far as they are known; votes may be learned.

    Attributes
    ----------
    estimate : (n_items,)
        The best estimate of the scores.
    covariance : (n_items, n_items)
        Of its errors. Only differences of scores count.
    importance : (n_items, n_items) or None
        How much the question of every two items matters; one where it is not said.
    """

    estimate: Floats
    covariance: Floats
    importance: Floats | None = None

    def __post_init__(self) -> None:
        """Find out what is open."""
        self.n_learned = 0
        self.covariance = np.array(self.covariance)
        self.look_again()

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.estimate)

    def look_again(self) -> None:
        """Weigh all questions by what is known now.

        The gain of a question from a little less variance of its difference is the square of the
        density at zero, over the variance of a coin that is tossed for the answer: the information
        that the difference has about its own sign.
        """
        apart = self.estimate[:, None] - self.estimate
        own = np.diag(self.covariance)
        variance = own[:, None] + own - 2.0 * self.covariance
        is_open = variance > LEAST_ERROR
        variance = np.where(is_open, variance, 1.0)
        far = apart / np.sqrt(variance)
        log_density = 2.0 * (LOG_DENSITY_AT_0 - 0.5 * far**2)
        log_coin = scipy.special.log_ndtr(far) + scipy.special.log_ndtr(-far)
        weight = np.where(is_open, np.exp(log_density - log_coin) / (2.0 * variance), 0.0)
        if self.importance is not None:
            weight = weight * self.importance
        weight = -weight / np.log(2.0)
        np.fill_diagonal(weight, 0.0)
        np.fill_diagonal(weight, -weight.sum(axis=1))
        self.open = weight
        self.told = self.covariance @ weight @ self.covariance

    def learn(self, direction: Floats, variance: float) -> None:
        """Take in one vote whose margin varies along a direction of the scores.

        Questions keep their weights: what is expected of a vote is that errors shrink, not where
        the estimate goes.

        Parameters
        ----------
        direction : (n_items,)
            How the margin moves with the scores.
        variance
            Of the margin and of the vote around it, together.
        """
        along = self.covariance @ direction
        opened = self.open @ along
        seen = self.covariance @ opened
        crossed = np.outer(along, seen) / variance
        self.told += np.outer(along, along) * (along @ opened / variance**2) - crossed - crossed.T
        self.covariance -= np.outer(along, along) / variance
        self.n_learned += 1


# --- places ----------------------------------------------------------------------------------


def ranks_of_draws(
    estimate: Floats, covariance: Floats, freedom: float = np.inf, n_draws: int = N_DRAWS
) -> Places:
    """Draw scores that may be the true ones; return the ranks of the items from 0, a row a draw."""
    rng = np.random.default_rng(SEED)
    errors = rng.standard_normal((n_draws, len(estimate))) @ root_of(covariance)
    if np.isfinite(freedom):
        errors /= np.sqrt(rng.chisquare(freedom, (n_draws, 1)) / freedom)
    order = np.argsort(-(estimate + errors), axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(estimate))[None, :], axis=1)
    return ranks


def chances_to_be_among(n_places: int, ranks: Places) -> Floats:
    """Return how probable it is, of every two items, that one of them is among the first places.

    Examples
    --------
    >>> chances_to_be_among(1, np.array([[0, 1, 2], [1, 0, 2]]))
    array([[0.5, 1. , 0.5],
           [1. , 0.5, 0.5],
           [0.5, 0.5, 0. ]])
    """
    outside = (ranks >= n_places).astype(np.float64)
    return np.asarray(1.0 - outside.T @ outside / len(ranks))
