"""Features of votes: numbers that belong to a vote, such as how much longer the left answer is.

Conventions
-----------
difference  what the left item has more of than the right one, in units of the file; zero where both
            sides are alike. It is never centred, and it changes its sign when sides are swapped.
scale       the root mean square of the differences over all votes, each as often as its weight; a
            subset keeps that of the whole
value       difference / scale: what a model sees
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from isplitlbi.data.vocabulary import listed, show
from isplitlbi.errors import InvalidRows, InvalidSetting, InvalidVotes, Setting
from isplitlbi.lazy import pl
from isplitlbi.markup import printable
from isplitlbi.typing import Floats, Places

__all__ = [
    "FEATURE",
    "LEFT_AND_RIGHT",
    "FeatureColumns",
    "Features",
    "HasFeatures",
    "Squares",
    "Units",
    "cast_to_numbers",
    "differences_of",
    "exact_sum",
    "exact_total",
    "feature_names",
    "find_columns",
    "numbers_of",
    "require_columns",
]

LEFT_AND_RIGHT = ("left", "right")
FEATURE = "feature:"  # what the role of a column begins with

# What else has a name in a table of votes, or in a model.
TAKEN = (
    "user", "left", "right", "winner", "outcome", "weight", "count", "group", "item",
    "taste", "threshold", "sharpness", "side", "ties", "score", "scores",
    "feature", "features", "paper", "all",
)  # fmt: skip

LARGEST = 1e150  # a difference whose square is still a number
PRECISION, HALF = 53, 26  # bits of a number, and of its low digits
LOWEST, SPAN = 3300, 6600  # more than the exponents of products of three numbers


def feature_names(given: Any) -> tuple[str, ...]:
    """Return the names of features as they were given, one or several; refuse bad ones."""
    names = (given,) if isinstance(given, str) else tuple(given or ())
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InvalidSetting(f"{name!r} is not a name of a feature; give a text.")
        if name in TAKEN:
            raise InvalidSetting(
                f"a feature cannot be called {name}: that is the name of something else. "
                "Rename its columns."
            )
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise InvalidSetting(f"the feature {twice[0]} is given more than once.")
    return names


# --- columns ---------------------------------------------------------------------------------


class FeatureColumns(NamedTuple):
    """The columns that a feature is taken from: of both sides, or one of differences."""

    name: str
    columns: tuple[str, ...]

    @property
    def roles(self) -> dict[str, str]:
        """The columns by their roles, which are no names of other columns."""
        return {f"{FEATURE}{column}": column for column in self.columns}


def find_columns(
    name: str, columns: Collection[str], sides: Sequence[tuple[str, str]], source: str
) -> FeatureColumns | None:
    """Find the columns of a feature: those of both sides, or the one of its own name.

    Sides are what the names of columns may end in; one of two is refused.
    """
    for pair in sides:
        of_sides = tuple(f"{name}_{side}" for side in pair)
        there = [column for column in of_sides if column in columns]
        if len(there) == 2:
            return FeatureColumns(name, of_sides)
        if there:
            (other,) = set(of_sides) - set(there)
            raise InvalidVotes(
                f"{source}: the feature {name} has a column {there[0]!r} but no column {other!r}. "
                "Add it, or give one column of differences."
            )
    return FeatureColumns(name, (name,)) if name in columns else None


def require_columns(
    names: Sequence[str], columns: Collection[str], sides: Sequence[tuple[str, str]], source: str
) -> list[FeatureColumns]:
    """Find the columns of all features; refuse a table without some of them."""
    required = []
    for name in names:
        found = find_columns(name, columns, sides, source)
        if found is None:
            one, other = (f"{name}_{side}" for side in sides[0])
            raise InvalidVotes(
                f"{source}: no columns {one!r} and {other!r} for the feature {name}, nor one of "
                f"differences, {name!r}; found: {listed(columns)}. Add them, or leave out ",
                Setting("features", [name]), ".",
            )  # fmt: skip
        required.append(found)
    return required


def numbers_of(column: pl.Series, name: str, source: str) -> Floats:
    """Return the numbers in a column of numbers or text; every one must be there and finite."""
    is_text = column.dtype == pl.String
    missing = column.is_null() | (column == "") if is_text else column.is_null()
    if missing.any():
        raise InvalidRows.of(source, missing, f"{name} is missing", "Fill it in or remove the row")
    if not (is_text or column.dtype.is_numeric()):
        raise InvalidVotes(
            f"{source}: {name} holds values of type {column.dtype}; expected numbers. "
            "Convert the column."
        )
    found = cast_to_numbers(column, name, source)
    too_large = ~(np.abs(found) <= LARGEST)
    if too_large.any():
        raise InvalidRows.of(
            source, too_large, f"{name} {found[too_large][0]} is not a finite number up to "
            f"{LARGEST:g}", "Correct it or remove the row",
        )  # fmt: skip
    return found


def cast_to_numbers(column: pl.Series, name: str, source: str) -> Floats:
    """Return the numbers in a column of numbers or text; what is none is refused with its row."""
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count():
        value = column.filter(numbers.is_null())[0]
        raise InvalidRows.of(
            source, numbers.is_null(), f"{name} {show(value)} is not a number",
            "Correct it or remove the row",
        )  # fmt: skip
    return numbers.to_numpy(writable=True)


def differences_of(series: Mapping[str, pl.Series], feature: FeatureColumns, source: str) -> Floats:
    """Return left minus right of one feature."""
    numbers = [numbers_of(series[role], name, source) for role, name in feature.roles.items()]
    return numbers[0] - numbers[1] if len(numbers) == 2 else numbers[0]


# --- what votes have -------------------------------------------------------------------------


class Units(NamedTuple):
    """The names of features, and what one unit of each is."""

    names: tuple[str, ...]
    scale: Floats


class Squares(NamedTuple):
    """Exact sums of squares, which depend neither on the order of votes nor on their parts.

    Numbers of one exponent are added up as integers, their high and their low digits apart.
    """

    digits: Places  # (n_features + 1, 2, SPAN), the sum of the weights last

    @classmethod
    def of(cls, differences: Floats, weight: Floats | None = None) -> Self:
        """Add up the weighted squares of differences, (n_votes, n_features)."""
        weights = np.ones(len(differences)) if weight is None else weight
        sums = [exact_sum(weights, column, column) for column in differences.T]
        return cls(np.array([*sums, exact_sum(weights)]))

    def __add__(self, other: object) -> Squares:
        """Add up those of two parts."""
        return Squares(self.digits + other.digits) if isinstance(other, Squares) else NotImplemented

    def root_of_mean(self) -> Floats:
        """Return the root mean square of every feature."""
        *squares, weights = (exact_total(digits)[0] for digits in self.digits)
        return np.array([math.sqrt(total / max(weights, 1)) for total in squares])

    def units(self, names: Sequence[str], source: str, *, is_part: bool = False) -> Units:
        """Return the units of features; one that is zero in every vote has none and is refused.

        Where these are only a part of the votes, it has to wait for the others.
        """
        scale = self.root_of_mean()
        if not is_part and not scale.all():
            name = names[int(np.argmin(scale))]
            raise InvalidVotes(
                f"{source}: the feature {name} is 0 in every vote, so nothing can be learnt about "
                "it. Leave out ", Setting("features", [name]), ".",
            )  # fmt: skip
        return Units(tuple(names), np.where(scale > 0, scale, 1.0))


def exact_sum(*factors: Floats) -> Places:
    """Return the sum of products of numbers, as digits by their exponent."""
    fraction, exponent = np.ones(len(factors[0])), np.full(len(factors[0]), LOWEST)
    for factor in factors:  # each from 1/2 on, so that a product is never too large or too small
        of_factor, power = np.frexp(factor)
        fraction, exponent = fraction * of_factor, exponent + power
    fraction, power = np.frexp(fraction)
    exponent += power
    digits = np.ldexp(fraction, PRECISION).astype(np.int64)
    sums = np.zeros((2, SPAN), dtype=np.int64)
    np.add.at(sums[0], exponent, digits >> HALF)
    np.add.at(sums[1], exponent, digits & (2**HALF - 1))
    return sums


def exact_total(digits: Places) -> tuple[int, int]:
    """Return a sum of one number per vote as a fraction: numerator and denominator."""
    high, low = digits
    total = sum(((int(high[at]) << HALF) + int(low[at])) << int(at) for at in np.flatnonzero(high))
    return total, 1 << (LOWEST + PRECISION)


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """Features of votes; see the conventions above.

    Attributes
    ----------
    names : tuple of str
    differences : (n_votes, n_features)
        Left minus right, as given.
    scale : (n_features,)
    """

    names: tuple[str, ...]
    differences: Floats
    scale: Floats

    def __post_init__(self) -> None:
        """Forbid changes."""
        self.differences.setflags(write=False)
        self.scale.setflags(write=False)

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        differences: ArrayLike,
        weight: Floats | None = None,
        source: str = "votes",
        *,
        is_part: bool = False,
    ) -> Self:
        """Scale differences (n_votes, n_features) by their (weighted) root mean squares.

        One that is zero in every vote is refused, unless these are only a part of the votes.
        """
        known = np.asarray(differences, dtype=np.float64) + 0.0  # of two zeros, the positive one
        units = Squares.of(known, weight).units(names, source, is_part=is_part)
        return cls(units.names, known, units.scale)

    @classmethod
    def from_series(
        cls,
        series: Mapping[str, pl.Series],
        found: Sequence[FeatureColumns],
        weight: Floats | None,
        source: str,
        *,
        is_part: bool = False,
    ) -> Self:
        """Check the columns of features, which are known by their roles."""
        differences = np.empty((len(next(iter(series.values()))), len(found)))
        for k, feature in enumerate(found):
            differences[:, k] = differences_of(series, feature, source)
        names = [each.name for each in found]
        return cls.of(names, differences, weight, source, is_part=is_part)

    @classmethod
    def joined(cls, parts: Sequence[Features]) -> Self:
        """Put the features of several parts together, in units of the first."""
        first = parts[0]
        if any(set(part.names) != set(first.names) for part in parts):
            raise InvalidVotes("votes can only be joined if all have the same features.")
        differences = np.concatenate(
            [
                part.differences[:, [part.names.index(name) for name in first.names]]
                for part in parts
            ]
        )
        return cls(first.names, differences, first.scale)

    @property
    def values(self) -> Floats:
        """What a model sees, (n_votes, n_features): differences in units of their scale."""
        return self.differences / self.scale

    @property
    def units(self) -> Units:
        """What one unit of each is."""
        return Units(self.names, self.scale)

    @property
    def columns(self) -> list[Floats]:
        """The differences, feature by feature."""
        return list(self.differences.T)

    def __len__(self) -> int:
        """Return the number of votes."""
        return len(self.differences)

    def __repr__(self) -> str:
        """Say what is in it."""
        return f"Features: {', '.join(map(printable, self.names))} of {len(self):,} votes"

    def subset(self, rows: Places) -> Self:
        """Return those of some votes, in the same units."""
        return replace(self, differences=self.differences[rows])


class HasFeatures(Protocol):
    """Votes, or pairs that somebody might vote on."""

    @property
    def features(self) -> Features | None:
        """What belongs to each of them besides its items."""
