"""Weights: how much every vote matters beside the others.

Only how weights compare with each other counts. So they are divided by their mean where votes come
in, once, and parts of these votes keep what they have: a fold does not scale its weights anew. To
put votes together, or to leave some out for good, starts from the weights as they were given.

Conventions
-----------
given      a weight as it came in
unit       what the weights are divided by: their mean over all votes (rows of count n are n votes)
weight     given / unit: what a vote counts for; the sum over all votes is their number
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from isplitlbi.data.features import cast_to_numbers, exact_sum, exact_total
from isplitlbi.data.vocabulary import counted, first_of
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.lazy import pl
from isplitlbi.typing import Floats, Mask, Places

__all__ = [
    "Unevenness",
    "Weighed",
    "WeightSum",
    "is_one",
    "unevenness",
    "weights_of",
]

ROUNDING = 4 * np.finfo(np.float64).eps  # a mean so near to 1 is 1, but for how numbers are rounded
# Of votes with a smaller weight, a billion count less than one vote, so that there are never enough
# for a say; they count as this one, and nothing that is divided by a weight overflows. The inverse
# is the largest weight: only votes in the unit of other votes reach it.
SMALLEST = 1e-9
UNEVEN = 0.1  # votes that count for less than this share of their number rest on a few of them


def weights_of(column: pl.Series, name: str, source: str) -> Floats:
    """Return the weights in a column; what is no positive number is refused with its row."""
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise InvalidVotes(
            f"{source}: {name} holds values of type {column.dtype}; expected positive numbers."
        )
    weight = cast_to_numbers(column, name, source)
    bad = ~(np.isfinite(weight) & (weight > 0))
    if row := first_of(bad):
        raise InvalidRows.of(
            source, bad, f"{name} {weight[row - 1]} is not a positive, finite number",
            "Correct it, or remove votes that should not count",
        )  # fmt: skip
    return weight


class WeightSum(NamedTuple):
    """The exact sum of given weights: it depends neither on the order of votes nor on their parts.

    So it neither overflows nor is rounded: the mean of weights that are all the same is that weight
    to the last bit, and the mean of weights that are all doubled is doubled.
    """

    digits: Places
    n_votes: int

    @classmethod
    def of(cls, given: Floats) -> Self:
        """Add up weights."""
        return cls(exact_sum(given), len(given))

    @classmethod
    def sum(cls, parts: Sequence[WeightSum | None]) -> WeightSum | None:
        """Add up those of several parts; of votes without weights there is none."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        digits = np.sum([part.digits for part in known], axis=0)
        return cls(digits, sum(part.n_votes for part in known))

    def mean(self) -> float:
        """Return the mean of all weights."""
        numerator, denominator = exact_total(self.digits)
        mean = numerator / (denominator * self.n_votes) if self.n_votes else 1.0
        return 1.0 if abs(mean - 1.0) <= ROUNDING else mean


class Weighed(NamedTuple):
    """What votes count for, and where that came from; the names are those of `Comparisons`."""

    weight: Floats | None
    given_weight: Floats | None  # None where the weights are as they were given
    weight_unit: float

    @classmethod
    def of(cls, given: Floats | None, unit: float | None = None) -> Self:
        """Divide weights by a unit; by default, by their mean."""
        if given is None:
            return cls(None, None, 1.0)
        unit = WeightSum.of(given).mean() if unit is None else unit
        with np.errstate(over="ignore", under="ignore"):
            weight = np.clip(given / unit, SMALLEST, 1.0 / SMALLEST)
        for each in (weight, given):
            each.setflags(write=False)
        return cls(given, None, unit) if np.array_equal(weight, given) else cls(weight, given, unit)

    @classmethod
    def joined(cls, given: Sequence[Floats | None]) -> Self:
        """Divide the weights of several parts, as they were given, by the mean of all."""
        known = [each for each in given if each is not None]
        return cls.of(np.concatenate(known) if known else None)

    @classmethod
    def alone(cls, given: Floats | None, rows: Places | Mask, *, is_part: bool) -> Self:
        """Divide the weights of some votes by their mean, or leave that to the whole of a part."""
        return cls.of(None if given is None else given[rows], 1.0 if is_part else None)


def is_one(unit: float) -> bool:
    """Say whether a unit reads as 1, so that a person need not hear of it."""
    return f"{unit:.4g}" == "1"


class Unevenness(NamedTuple):
    """Votes of which a few weigh so much that the others hardly count."""

    effective: float  # as many votes of equal weight would tell as much
    votes: int

    def __str__(self) -> str:
        """Say so, and what to do."""
        few = max(round(self.effective), 1)
        return (
            f"the weights are so uneven that {counted(self.votes, 'vote')} tell about as much as "
            f"{few:,} of equal weight would: limit the largest weights, or leave the weights out."
        )


def unevenness(n_effective: float | None, n_votes: int) -> Unevenness | None:
    """Return what is to be said of weights that are too uneven, if they are."""
    if n_effective is None or n_effective >= UNEVEN * n_votes:
        return None
    return Unevenness(n_effective, n_votes)
