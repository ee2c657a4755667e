"""Ids and their indices. Ids are strings or integers, never converted into one another."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.lazy import nw, pl
from isplitlbi.markup import printable
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Integers, Labels, Mask, Places

__all__ = [
    "LONGEST",
    "Vocabulary",
    "as_series",
    "counted",
    "first_of",
    "folded",
    "is_half",
    "listed",
    "main_figures",
    "refuse_nul",
    "show",
    "together",
]

# Ids are numbered in blocks of rows that double, since most ids are new in the first rows only, and
# found in tables that fit a processor's cache.
FIRST_BLOCK = 2**14
PLACE_BITS = 18
PLACES = 2**PLACE_BITS

LONGEST = 60  # characters of a stranger's text in a message


class Vocabulary:
    """A sorted list of distinct ids, and the index of each.

    Examples
    --------
    >>> fruit = Vocabulary.of(pl.Series(["pear", "apple", "pear"]))
    >>> fruit.labels
    array(['apple', 'pear'], dtype=object)
    >>> fruit.encode(["pear", "plum"])
    array([ 1, -1], dtype=int32)
    >>> fruit.nearest("aple")
    'apple'
    """

    def __init__(self, labels: Labels, what: str = "id") -> None:
        self.labels = labels
        self.labels.setflags(write=False)
        self.what = what

    @cached_property
    def _sorted(self) -> pl.Series:
        kind = pl.Int64 if self.labels.dtype.kind == "i" else pl.String
        return pl.Series(self.what, self.labels.tolist(), dtype=kind)

    @classmethod
    def indexed(
        cls, *columns: pl.Series, what: str = "id", source: str = "votes"
    ) -> tuple[Self, list[Integers]]:
        """Collect the ids of some columns without missing values, and return their indices too."""
        if all(column.dtype == pl.String for column in columns):
            numbering = _Numbering()
            numbers = [numbering.number(column) for column in columns]
            if len(numbering.texts) <= PLACES:
                refuse_nul(numbering.texts, columns, what, source)
                order = numbering.texts.arg_sort(nulls_last=False).to_numpy()[1:]
                indices = np.empty(len(order) + 1, dtype=np.int32)
                indices[order] = np.arange(len(order), dtype=np.int32)
                labels = numbering.texts.gather(order).to_numpy(writable=True)
                return cls(labels, what), [indices.take(some) for some in numbers]
        vocabulary = cls.of(*columns, what=what, source=source)
        refuse_nul(vocabulary._sorted, columns, what, source)
        return vocabulary, [vocabulary.encode(column) for column in columns]

    @classmethod
    def of(cls, *columns: pl.Series, what: str = "id", source: str = "votes") -> Self:
        """Collect the ids of some columns."""
        distinct = []
        for column in columns:
            if column.dtype.is_integer():
                try:
                    distinct.append(column.unique(maintain_order=True).cast(pl.Int64))
                except pl.exceptions.PolarsError:
                    raise InvalidVotes(
                        f"{source}: {what} {show(column.max())} is beyond 64-bit integers. "
                        "Give such ids as text."
                    ) from None
            elif column.dtype == pl.String:
                distinct.append(column.unique(maintain_order=True))  # which is faster
            else:
                raise InvalidVotes(
                    f"{source}: {what} holds values of type {column.dtype}, such as "
                    f"{show(column[0])}; ids are strings or integers. Convert the column to one."
                )
        if len({column.dtype for column in distinct}) > 1:
            raise InvalidVotes(
                f"{source}: {what} has text in one column and integers in the other, such as "
                f"{show(columns[0][0])} and {show(columns[1][0])}. Convert both to one type."
            )
        labels = pl.concat([column.rename("") for column in distinct]).unique().sort()
        return cls(labels.to_numpy(writable=True), what)

    @classmethod
    def merged(cls, *vocabularies: Vocabulary) -> Self:
        """Collect the ids of several vocabularies."""
        first = vocabularies[0]
        return cls.of(*(each._sorted for each in vocabularies), what=first.what)

    def __len__(self) -> int:
        """Return the number of ids."""
        return len(self.labels)

    def encode(self, ids: Any) -> Integers:
        """Return the index of every id, -1 where it is not in the vocabulary."""
        column = as_series(ids, self.what, "ids")
        if len(column) == 0:
            return np.empty(0, dtype=np.int32)
        text = self._sorted.dtype == pl.String
        if (column.dtype == pl.String) != text or not (text or column.dtype.is_integer()):
            kinds = ("strings", "integers") if text else ("integers", "strings")
            raise InvalidVotes(
                f"{self.what}: the ids are {kinds[0]}, such as {show(self._sorted[0])}, "
                f"but {show(column[0])} was asked for. Ask with {kinds[0]}."
            )
        if text:
            codes = column.cast(pl.Enum(self._sorted), strict=False).to_physical()
            return codes.cast(pl.Int32).fill_null(-1).to_numpy(writable=True)
        # All as int64: NumPy compares signed with unsigned through floats, which blurs large ids.
        wanted = column.cast(pl.Int64, strict=False)
        known, ids = wanted.is_not_null().to_numpy(), wanted.fill_null(0).to_numpy()
        lowest, highest = int(self.labels[0]), int(self.labels[-1])
        if highest - lowest < 2 * (len(self) + len(ids)):  # a table is small, and far faster
            table = np.zeros(highest - lowest + 1, dtype=np.int32)
            table[self.labels - lowest] = np.arange(len(self), dtype=np.int32)
            place = table[np.clip(ids, lowest, highest) - lowest]
        else:
            place = np.minimum(np.searchsorted(self.labels, ids), len(self) - 1).astype(np.int32)
        return np.where(known & (self.labels[place] == ids), place, np.int32(-1))

    def require(self, ids: Any, of: str = "this model") -> Integers:
        """Return the index of every id; one that is not known is an error that names the nearest.

        What the ids are ``of`` is said in the error.
        """
        index = self.encode(ids)
        unknown = np.flatnonzero(index < 0)
        if len(unknown):
            raise self.unknown(as_series(ids, self.what, "ids")[int(unknown[0])], of)
        return index

    def place(self, label: Any, of: str = "this model") -> int:
        """Return the index of one id, which must be known; it does not look at all of them."""
        is_text = self.labels.dtype.kind == "O"
        if isinstance(label, str) if is_text else isinstance(label, int | np.integer):
            at = bisect_left(self.labels, label)
            if at < len(self) and self.labels[at] == label:
                return at
        return int(self.require([label], of)[0])

    def spelled(self, text: str, of: str = "this model") -> Any:
        """Return the id that a text stands for: a number where ids are numbers."""
        if self._sorted.dtype == pl.String:
            spelled: Any = text
        else:
            try:
                spelled = int(text)
            except ValueError:
                raise self.unknown(text, of) from None
        self.require([spelled], of)
        return spelled

    def unknown(self, label: Any, of: str) -> InvalidVotes:
        """Return the error on an id that is not known."""
        return InvalidVotes(
            f"{self.what} {show(label)} is not among the {len(self)} {self.what}s of {of}; the "
            f"nearest is {show(self.nearest(label))}."
        )

    def nearest(self, label: Any) -> Any:
        """Return the known id that looks most like this one."""
        by_text = {str(known): known for known in self.labels}
        close = difflib.get_close_matches(str(label), by_text, n=1, cutoff=0.0)
        return by_text[close[0]]


def refuse_nul(ids: pl.Series, columns: Sequence[pl.Series], what: str, source: str) -> None:
    """Refuse rows whose ids have a NUL in them: to many programs, a text ends there.

    The ids are those of the columns, each once at least.
    """
    if ids.dtype != pl.String or not ids.str.contains(_NUL, literal=True).any():
        return
    rows = [column.str.contains(_NUL, literal=True).fill_null(False) for column in columns]
    found = next(
        column.filter(of_it)[0] for column, of_it in zip(columns, rows, strict=True) if of_it.any()
    )
    raise InvalidRows.of(
        source, reduce(or_, rows), f"{what} {show(found)} has a NUL in it, which is no id",
        "Write the id without it",
    )  # fmt: skip


_NUL = chr(0)


class _Numbering:
    """Numbers for texts in the order in which they come.

    A text's number stands in a table at the place that one end of its hash gives, or the other end
    where another text was there before. What is found is compared with the text, so a hash never
    decides; the few texts without a place, and those not met before, are looked up in full.
    """

    def __init__(self) -> None:
        self.texts = pl.Series([None], dtype=pl.String)  # where an empty place leads to
        self._tables = np.zeros((2, PLACES), dtype=np.int32)
        self._without_place = self.texts.clear()
        self._numbers_without_place = np.empty(0, dtype=np.int32)

    def number(self, column: pl.Series) -> Integers:
        """Return the number of every text, from 1; stop where there are too many of them."""
        column = column.rechunk()
        numbers = np.empty(len(column), dtype=np.int32)
        start = 0
        while start < len(column) and len(self.texts) <= PLACES:
            block = column.slice(start, max(start, FIRST_BLOCK))
            numbers[start : start + len(block)] = self._number_block(block)
            start += len(block)
        return numbers

    def _number_block(self, block: pl.Series) -> Integers:
        hashes = block.hash().to_numpy()
        first, second = self._tables
        numbers: Integers = first.take(_high_place(hashes))
        differs = self._differs(numbers, block)
        if differs.any():
            rows, rest = np.flatnonzero(differs.to_numpy()), block.filter(differs)
            found = second.take(_low_place(hashes[rows]))
            differs = self._differs(found, rest)
            if differs.any():
                found[differs.to_numpy()] = self._look_up(rest.filter(differs))
            numbers[rows] = found
        return numbers

    def _differs(self, numbers: Integers, texts: pl.Series) -> pl.Series:
        return self.texts.gather(pl.Series(numbers.view(np.uint32))).ne_missing(texts)

    def _look_up(self, rest: pl.Series) -> Integers:
        """Return numbers for texts that the tables do not know: new, or without a place."""
        distinct = rest.unique()
        new = distinct.filter(~distinct.is_in(self._without_place.implode()))
        if len(new):
            numbers = np.arange(len(self.texts), len(self.texts) + len(new), dtype=np.int32)
            self.texts = pl.concat([self.texts, new], rechunk=True)
            self._give_places(new.hash().to_numpy(), numbers)
            return self._number_block(rest)
        known = rest.cast(pl.Enum(self._without_place)).to_physical().to_numpy()
        return self._numbers_without_place.take(known)

    def _give_places(self, hashes: NDArray[np.uint64], numbers: Integers) -> None:
        for table, place in zip(self._tables, (_high_place, _low_place), strict=True):
            places = place(hashes)
            free = table[places] == 0
            table[places[free]] = numbers[free]
            left_over = table[places] != numbers
            hashes, numbers = hashes[left_over], numbers[left_over]
        self._without_place = pl.concat([self._without_place, self.texts.gather(numbers)])
        self._numbers_without_place = np.concatenate([self._numbers_without_place, numbers])


def _high_place(hashes: NDArray[np.uint64]) -> Places:
    return (hashes >> np.uint64(64 - PLACE_BITS)).view(np.int64)


def _low_place(hashes: NDArray[np.uint64]) -> Places:
    return (hashes & np.uint64(PLACES - 1)).view(np.int64)


def as_series(values: Any, name: str, source: str) -> pl.Series:
    """Take a column in whatever form it comes; nulls stay nulls, nothing is converted."""
    if isinstance(values, pl.Series):
        series = values
    elif hasattr(values, "__arrow_c_array__"):
        series = pl.Series(name, values)
    else:
        column = nw.from_native(values, allow_series=True, series_only=False, pass_through=True)
        if not isinstance(column, nw.Series):
            series = _from_objects(values, name, source)
        elif column.implementation.is_pyarrow():
            series = pl.Series(name, pl.from_arrow(column.to_native()))
        elif _is_arrow(column.to_native().dtype):
            series = pl.Series(name, pl.from_arrow(column.to_native().array.__arrow_array__()))
        else:
            array = column.to_numpy()
            missing = column.is_null().to_numpy()
            if missing.any() and array.dtype.kind not in "fmM":
                array = array.astype(object)
                array[missing] = None
            series = _from_objects(array, name, source)
    if isinstance(series.dtype, pl.Categorical | pl.Enum):
        series = series.cast(pl.String)
    if series.dtype.is_float():
        series = series.fill_nan(None)
    return series.alias(name)


def _is_arrow(dtype: Any) -> bool:
    """Tell whether a pandas type keeps its values in arrow's layout, nulls included."""
    return getattr(dtype, "storage", None) == "pyarrow" or hasattr(dtype, "pyarrow_dtype")


_HOLDING = (np.ndarray, list, tuple, set, dict)  # what holds others, and is no value of a column


def _from_objects(values: Any, name: str, source: str) -> pl.Series:
    array = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=object)
    if array.ndim != 1:
        raise InvalidVotes(f"{source}: {name} must be one column, found {array.ndim} dimensions.")
    if array.dtype.kind in "iufb":
        return pl.Series(name, array)
    if array.dtype.kind in "mM":  # dates and time spans, which NumPy keeps in units of its own
        return pl.Series(name, array.astype(f"{array.dtype.kind}8[us]"))
    try:  # the common case
        return pl.Series(name, array.tolist(), dtype=pl.String, strict=True)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        objects = array.tolist()
    if holding := [value for value in objects if isinstance(value, _HOLDING)]:
        raise InvalidVotes(
            f"{source}: {name} holds values of type {type(holding[0]).__name__}, such as "
            f"{show(holding[0])}; use strings or integers."
        )
    objects = [None if _is_missing(value) else value for value in objects]
    try:
        return pl.Series(name, objects, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        _refuse_halves(objects, name, source)
        kinds = sorted({type(value).__name__ for value in objects if value is not None})
    if kinds == ["float", "int"]:
        return pl.Series(name, objects, dtype=pl.Float64, strict=False)
    found = "mixes values" if len(kinds) > 1 else "holds values that do not fit,"
    raise InvalidVotes(
        f"{source}: {name} {found} of type {', '.join(kinds)}; "
        "use one type, strings or integers of at most 64 bits."
    )


def _refuse_halves(values: list[Any], name: str, source: str) -> None:
    halves = [isinstance(value, str) and is_half(value) for value in values]
    if any(halves):
        first = show(values[halves.index(True)])
        raise InvalidRows.of(
            source, halves, f"{name} {first} holds half of a character (a lone surrogate)",
            "Write it again as UTF-8",
        )  # fmt: skip


def _is_missing(value: Any) -> bool:
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA will not even say
        return True


def folded(text: str) -> str:
    """Return a name without what people write differently: case, outer spaces, and ``_ -``."""
    return re.sub(r"[\s_-]+", " ", text.strip().casefold())


def is_half(text: str) -> bool:
    """Tell whether there is half of a character in a text: a surrogate without the other one."""
    return not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text)


def first_of(mask: pl.Series | Mask) -> int:
    """Return the first row where the mask holds, counted from 1; 0 where it never does."""
    found = np.flatnonzero(np.asarray(mask))
    return int(found[0]) + 1 if len(found) else 0


def show(value: Any) -> str:
    """Show a value in a message, shortened where a stranger's id would drown the sentence."""
    if isinstance(value, pl.Series | np.ndarray):  # an element of a column of lists
        value = value.to_list() if isinstance(value, pl.Series) else value.tolist()
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def counted(n: int, unit: str) -> str:
    """Say how many there are: 1 row, 12 rows."""
    return f"{n:,} {unit}" if n == 1 else f"{n:,} {unit}s"


def together(names: Sequence[str]) -> str:
    """Name several things in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def main_figures(
    n_votes: int, n_ties: int, n_users: int, n_items: int, nouns: Nouns = NOUNS
) -> str:
    """Say in one line what some votes are; there are no users of an anonymous crowd."""
    ties = f" ({n_ties / n_votes:.1%} ties)".replace("%", " %") if n_votes else ""
    people = f"by {nouns.n_users(n_users)}" if n_users else "of one anonymous crowd"
    return f"{counted(n_votes, 'vote')}{ties} {people} on {nouns.n_items(n_items)}"


def listed(columns: Collection[str]) -> str:
    """List the names of columns, the first of many."""
    names = list(columns)
    shown = [name if name.strip() == name != "" else repr(name) for name in names[:20]]
    shown = [
        printable(name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}...") for name in shown
    ]
    more = [f"and {len(names) - 20} more"] if len(names) > 20 else []
    return ", ".join(shown + more) or "no columns at all"
