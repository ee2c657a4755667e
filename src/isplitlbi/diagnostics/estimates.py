"""Numbers with their 95 % intervals, as far as the votes tell these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isplitlbi.model.differences import student
from isplitlbi.typing import Floats

__all__ = ["Estimate", "by_leaving_out", "of_share"]

LEVEL = 0.975  # of a quantile: 95 % lie between


class Estimate(NamedTuple):
    """A number with a 95 % interval; both ends are None where the votes do not tell them."""

    value: float
    low: float | None = None
    high: float | None = None


def by_leaving_out(value: float, without: Floats, least: float = 0.0) -> Estimate:
    """Return an estimate with its interval, from what it is without each of those it is made of.

    They are a draw from many (jackknife, with Student's quantiles): the interval holds for others
    like them, too. Numbers lie between ``least`` and 1. There is no interval where nobody makes any
    difference: that all are the same does not tell how much others would differ.

    >>> by_leaving_out(0.5, np.array([0.4, 0.5, 0.6]))
    Estimate(value=0.5, low=0.003..., high=0.996...)
    """
    n = len(without)
    if n < 3 or not np.isfinite(value) or not np.isfinite(without).all():
        return Estimate(float(value))
    variance = (n - 1) / n * float(np.sum((without - without.mean()) ** 2))
    if variance < 1e-20:
        return Estimate(float(value))
    reach = student(float(n - 1), LEVEL) * np.sqrt(variance)
    return Estimate(float(value), float(max(value - reach, least)), float(min(value + reach, 1.0)))


def of_share(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return between what shares of so many lie (Wilson's interval); ``n`` need not be whole.

    >>> low, high = of_share(np.array([1.0]), np.array([10.0]))
    >>> f"{low[0]:.2f} {high[0]:.2f}"
    '0.72 1.00'
    """
    z = student(float("inf"), LEVEL)
    more = z**2 / np.maximum(n, 1e-12)
    middle = (share + more / 2.0) / (1.0 + more)
    spread = np.sqrt(share * (1.0 - share) * more + more**2 / 4.0) / (1.0 + more)
    return np.clip(middle - spread, 0.0, 1.0), np.clip(middle + spread, 0.0, 1.0)
