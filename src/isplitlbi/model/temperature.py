"""How sure a model is of what it predicts: too sure, not sure enough, or just right.

Conventions
-----------
power        what probabilities are raised to before they are made to sum to one again
temperature  its inverse: above 1 where the model was too sure, below 1 where it could be surer
the best     the power with which votes that the model has not seen are predicted best
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from isplitlbi.model.answering import NEVER
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Floats

__all__ = [
    "USEFUL_GAIN",
    "Powers",
    "best_power",
    "log_probability_at",
    "warning_of_one_ranking",
    "warning_of_temperature",
]

# Powers that are told apart: beyond these, probabilities are as good as even, or as good as sure.
LEAST_POWER, MOST_POWER = 1.0 / 16.0, 16.0
# A Newton step shorter than this share of the power is the last: the next would be about its
# square, far below what votes tell.
LAST_STEP = 0.02
MOST_STEPS = 50  # of which a handful are needed; rounding may keep the last from being short

# Outside these, and if that is not by chance, a person is told.
TOO_SURE, NOT_SURE_ENOUGH = 1.2, 0.8
NOT_BY_CHANCE = 2.0  # standard errors

USEFUL_GAIN = 0.01  # of log-loss per vote: people would not see a smaller one


def log_probability_at(log_probabilities: Floats, power: float) -> tuple[Floats, Floats]:
    """Return mean and variance of the log-probability of an outcome, for outcomes on the last axis.

    The outcome is drawn by the probabilities raised to that power. Mean and variance are the first
    two derivatives, by the power, of the logarithm of what these sum to.

    Examples
    --------
    >>> even = np.log([0.5, 0.5])
    >>> [float(value) for value in np.round(log_probability_at(even, 2.0), 3)]
    [-0.693, 0.0]
    """
    occurs, most = log_probabilities > 0.5 * NEVER, log_probabilities.max(axis=-1)
    beside = np.where(occurs, log_probabilities - most[..., None], 0.0)
    drawn = np.exp(power * beside) * occurs
    drawn /= drawn.sum(axis=-1, keepdims=True)
    mean = np.sum(drawn * beside, axis=-1)
    return most + mean, np.sum(drawn * (beside - mean[..., None]) ** 2, axis=-1)


def best_power(
    derivatives: Callable[[float], tuple[float, float]], start: float = 1.0
) -> tuple[float, float]:
    """Return the best power, and how the loss bends there, by Newton's method.

    The loss is convex in the power. A step at most halves or doubles it, since the bend may vanish
    where probabilities are as good as sure; and it never leaves what is known to hold the best.

    Parameters
    ----------
    derivatives
        Gives the first and second derivative of the loss by the power.
    start
        Where to begin.
    """
    power, low, high, bend = start, LEAST_POWER, MOST_POWER, 0.0
    for _ in range(MOST_STEPS):
        slope, bend = derivatives(power)
        low, high = (low, power) if slope > 0.0 else (power, high)
        wanted = power - slope / bend if bend > 0.0 else power
        moved = min(max(wanted, 0.5 * power, LEAST_POWER), 2.0 * power, MOST_POWER)
        if not low <= moved <= high:
            moved = float(np.sqrt(low * high))
        if abs(moved - power) <= LAST_STEP * power:
            return moved, bend
        power = moved
    return power, bend


class Powers(NamedTuple):
    """The best power of every fold, and how its loss bends there; folds are on the first axis."""

    best: Floats
    bend: Floats

    @property
    def temperature(self) -> Floats:
        """The temperature that is best for all folds together, nearly.

        It is from a mean of the logarithms of powers. With a slope of bend x best x (log power -
        log best) the losses of folds add up to a minimum there; without the factor best, or with
        its square, large powers would count too much or too little where folds are small.
        """
        weight = self.bend * self.best
        total = weight.sum(axis=0)
        mean = np.sum(weight * np.log(self.best), axis=0) / np.where(total > 0.0, total, 1.0)
        return np.asarray(np.exp(-mean))

    @property
    def error(self) -> Floats:
        """The standard error of the temperature's logarithm."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.sqrt(np.sum(self.bend * self.best**2, axis=0)))


# --- what to tell a person ---------------------------------------------------------------------


def warning_of_temperature(temperature: float, error: float, nouns: Nouns = NOUNS) -> str | None:
    """Say what a temperature far from 1 means; nothing where it is not, or may be so by chance.

    Examples
    --------
    >>> warning_of_temperature(1.1, 0.01)
    >>> print(warning_of_temperature(2.0, 0.1)[:33])
    The model is too sure of itself:
    """
    if NOT_SURE_ENOUGH <= temperature <= TOO_SURE:
        return None
    if abs(np.log(temperature)) <= NOT_BY_CHANCE * error:
        return None
    if temperature > TOO_SURE:
        return (
            f"The model is too sure of itself: where it says 90 %, about "
            f"{_comes_true(0.9, temperature)} % come true (temperature {temperature:.2f}). Trust "
            "the order more than the probabilities and intervals, and ask for more votes of every "
            f"{nouns.user}, or let {nouns.users} differ in fewer terms."
        )
    return (
        f"The model is not sure enough of itself: where it says 70 %, about "
        f"{_comes_true(0.7, temperature)} % come true (temperature {temperature:.2f}). Differences "
        "are larger than its probabilities say: where nu, scales or terms were given, leave them "
        "to the fit."
    )


def warning_of_one_ranking(
    own: float, one_ranking: float, error: float, nouns: Nouns = NOUNS
) -> str | None:
    """Say what it means that one ranking for all predicts usefully better, and not by chance."""
    if own - one_ranking <= max(NOT_BY_CHANCE * error, USEFUL_GAIN):
        return None
    return (
        f"One ranking for all predicts held-out votes better than this model (log-loss "
        f"{one_ranking:.3f} and {own:.3f}; less is better). Do not rely on the rankings of single "
        f"{nouns.users}, and ask for more votes of every {nouns.user}, or let {nouns.users} differ "
        "in fewer terms."
    )


def _comes_true(said: float, temperature: float) -> int:
    """Return how many of 100 predictions with such a probability come true, of two outcomes."""
    odds: float = (said / (1.0 - said)) ** (1.0 / temperature)
    return round(100.0 * odds / (1.0 + odds))
