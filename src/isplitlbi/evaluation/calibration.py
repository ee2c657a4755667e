"""Are probabilities right? The calibration error, and the temperature that would help most.

Probabilities have one column per class, in any order; ``happened`` is the column of what happened.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isplitlbi.typing import Floats

__all__ = ["at_temperature", "best_temperature", "calibration_error"]

# Temperatures that are tried, as logarithms: a factor of ten either way.
_COLDEST, _WARMEST = np.log(0.1), np.log(10.0)


def calibration_error(happened: ArrayLike, probabilities: ArrayLike, n_bins: int = 15) -> float:
    """Return the expected calibration error of the predicted class.

    Votes are put into bins of equal width by the probability of their most probable class; the
    error is the mean over votes of how far, in a bin, the mean probability is from the share of
    predictions that came true.

    Examples
    --------
    >>> calibration_error([0, 0, 1, 0], [[0.75, 0.25]] * 4)
    0.0
    >>> round(calibration_error([0, 1, 1, 0], [[0.75, 0.25]] * 4), 2)
    0.25
    """
    predicted = np.asarray(probabilities, dtype=np.float64)
    said = predicted.max(axis=1)
    came_true = predicted.argmax(axis=1) == np.asarray(happened)
    place = np.minimum((said * n_bins).astype(np.int64), n_bins - 1)
    excess = np.bincount(place, weights=said - came_true, minlength=n_bins)
    return float(np.abs(excess).sum() / len(said))


def at_temperature(log_probabilities: ArrayLike, temperature: float) -> Floats:
    """Return log-probabilities times a temperature, normalised: below 1, they are less certain.

    Examples
    --------
    >>> np.exp(at_temperature(np.log([[0.8, 0.2]]), 0.5)).round(3)
    array([[0.667, 0.333]])
    """
    scaled = temperature * np.asarray(log_probabilities, dtype=np.float64)
    largest = scaled.max(axis=1, keepdims=True)
    total = np.log(np.exp(scaled - largest).sum(axis=1, keepdims=True)) + largest
    return np.asarray(scaled - total)


def best_temperature(happened: ArrayLike, log_probabilities: ArrayLike) -> float:
    """Return the temperature of the smallest log-loss on these votes.

    Examples
    --------
    >>> round(best_temperature([0, 0, 1], np.log([[0.8, 0.2]] * 3)), 3)
    0.5
    """
    from scipy.optimize import minimize_scalar

    logs = np.asarray(log_probabilities, dtype=np.float64)
    rows, column = np.arange(len(logs)), np.asarray(happened)

    def loss(log_temperature: float) -> float:
        return -float(at_temperature(logs, float(np.exp(log_temperature)))[rows, column].mean())

    found = minimize_scalar(loss, bounds=(_COLDEST, _WARMEST), method="bounded",
                            options={"xatol": 1e-6})  # fmt: skip
    return float(np.exp(found.x))
