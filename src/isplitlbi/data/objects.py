"""JSON object by object: as a table, with the row of whatever cannot be read or is no id.

A table of texts is read at once, and hides what stood there: a list, a truth or a fraction becomes
its text, half of a character something else, and of two values of one name one is gone. Such values
are looked for in the bytes, which takes next to no time; where there may be some, every object is
looked at.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.vocabulary import is_half, show
from isplitlbi.errors import InvalidVotes, ISplitLBIError
from isplitlbi.lazy import pl
from isplitlbi.typing import Mask

__all__ = [
    "Objects",
    "Odd",
    "first_object",
    "not_too_deep",
    "objects_in",
    "table_of_objects",
]

_START, _SPACE = re.compile(rb"\[?\s*"), re.compile(r"\s*")  # which are everywhere
_BETWEEN = re.compile(r"\s*([],])\s*")  # what follows an element of an array

# A list, an object, true or false; a fraction.
_NO_ID = rb"(?:[\[{tf]|-?[0-9]+[.eE])"
_HALF = rb'"(?:[^"\\]|\\.)*?\\u[dD][89a-fA-F]'  # a text with half of a pair of surrogates
_ESCAPED_NAME = re.compile(rb'[{,]\s*("[^"\\]*\\(?:[^"\\]|\\.)*")\s*:')

_BEYOND = 2**127  # whole numbers that are too large to be read


# --- one after another -----------------------------------------------------------------------


def first_object(data: bytes, name: str) -> dict[str, Any]:
    """Return the first object of some JSON; an empty one where there is none."""
    start = _end_of(_START.match(data))
    for size in (2**20, len(data)):
        try:
            with not_too_deep(name):
                head = data[start : start + size].decode("utf-8", "ignore")
                found, _ = json.JSONDecoder().raw_decode(head)
        except ValueError as error:
            if isinstance(error, ISplitLBIError):
                raise
            continue  # it may be longer
        return found if isinstance(found, dict) else {}
    return {}


def objects_in(
    text: str, name: str, parse_constant: Callable[[str], Any] | None = None
) -> Iterator[Any]:
    """Read what stands in an array, or one after another; what cannot be read has its row."""
    decoder = json.JSONDecoder(parse_constant=parse_constant, object_pairs_hook=_without_twice)
    place, number, is_inside = _end_of(_SPACE.match(text)), 0, False
    while place < len(text):
        if text[place] == "[" and not is_inside:
            place = _end_of(_SPACE.match(text, place + 1))
            is_inside = text[place : place + 1] != "]"
            place = place if is_inside else _end_of(_SPACE.match(text, place + 1))
            continue
        number += 1
        with _readable(f"{name}, row {number}"):
            found, place = decoder.raw_decode(text, place)
            if is_inside:
                after = _BETWEEN.match(text, place)
                if after is None:
                    raise json.JSONDecodeError("Expecting ',' delimiter", text, place)
                place, is_inside = after.end(), after[1] == ","
            else:
                place = _end_of(_SPACE.match(text, place))
        yield found
    if is_inside:
        raise InvalidVotes(
            f"{name}: this is not readable JSON (its array has no end). Export it again."
        )


def _end_of(found: re.Match[Any] | None) -> int:
    return found.end() if found else 0


def _without_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"{show(twice)} is there twice in an object")
    return found


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


@contextmanager
def _readable(where: str) -> Iterator[None]:
    """Say in a sentence that some JSON cannot be read, and why."""
    try:
        with not_too_deep(where):
            yield
    except ValueError as error:
        if isinstance(error, ISplitLBIError):
            raise
        raise InvalidVotes(
            f"{where}: this is not readable JSON ({_reason(error)}). Export it again."
        ) from None


def _reason(error: ValueError) -> str:
    is_long = str(error).startswith("Exceeds the limit")
    return "a number has thousands of digits" if is_long else str(error)


@contextmanager
def not_too_deep(where: str) -> Iterator[None]:
    """Say in a sentence that objects cannot be read because they hold too many others."""
    try:
        yield
    except RecursionError:
        raise InvalidVotes(
            f"{where}: its objects hold one another so deeply that they cannot be read. Leave out "
            "what is not about votes."
        ) from None


# --- all of them as a table ------------------------------------------------------------------


def table_of_objects(
    data: bytes, name: str, schema: dict[str, Any], *, is_array: bool, rows_before: int = 0
) -> pl.DataFrame:
    """Return some columns of objects as texts; lists and objects as theirs. The bytes are UTF-8.

    What is no object, or cannot be read, is refused with its row.
    """
    try:
        return (pl.read_json if is_array else pl.read_ndjson)(data, schema=schema)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        lines = list(_in_lines(data, name, rows_before, is_array))
    if (found := _table_of_lines(lines, schema)) is not None:
        return found
    readable, beyond = 0, len(lines)  # so many can be read, and so many cannot
    while beyond - readable > 1:
        middle = (readable + beyond) // 2
        can_be = _table_of_lines(lines[readable:middle], schema) is not None
        readable, beyond = (middle, beyond) if can_be else (readable, middle)
    why = _why_unreadable(json.loads(lines[readable])) if lines else "there is no object in it"
    where = f", row {rows_before + beyond}" if lines else ""
    raise InvalidVotes(f"{name}{where}: this is not readable JSON ({why}). Write it again.")


def _table_of_lines(lines: Sequence[bytes], schema: dict[str, Any]) -> pl.DataFrame | None:
    try:
        return pl.read_ndjson(b"\n".join(lines), schema=schema)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None


def _in_lines(data: bytes, name: str, rows_before: int, is_array: bool) -> Iterator[bytes]:
    """Return all objects, a line each; refuse the first that is none, or cannot be read."""
    return (_elements if is_array else _lines)(data, name, rows_before)


def _elements(data: bytes, name: str, rows_before: int) -> Iterator[bytes]:
    """Return the objects of an array, a line each; refuse what is none."""
    found = objects_in(data.decode("utf-8"), name, _refuse_constant)
    for number, each in enumerate(found, start=rows_before + 1):
        if not isinstance(each, dict):
            raise InvalidVotes(
                f"{name}, row {number}: this is not a JSON object (but {show(each)}). Write an "
                "array of objects."
            )
        with not_too_deep(f"{name}, row {number}"):
            yield json.dumps(each).encode()


def _lines(data: bytes, name: str, rows_before: int) -> Iterator[bytes]:
    """Return the lines of objects; refuse the first that holds none, or more than one."""
    lines = filter(None, map(bytes.strip, data.split(b"\n")))
    for number, line in enumerate(lines, start=rows_before + 1):
        where = f"{name}, row {number}"
        try:
            with not_too_deep(where):
                found = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
            is_object = isinstance(found, dict)
            reason = "but another value"
        except ValueError as error:
            if isinstance(error, ISplitLBIError):
                raise
            is_object, reason = False, _reason(error)
        if not is_object:
            raise InvalidVotes(
                f"{where}: this is not a JSON object ({reason}). Write one object per line."
            )
        yield line


def _why_unreadable(value: Any) -> str:
    """Return what may stand in JSON and cannot be read into a table."""
    held = [value]
    while held:
        each = held.pop()
        if isinstance(each, dict):
            held += [*each, *each.values()]
        elif isinstance(each, list):
            held += each
        elif isinstance(each, str) and is_half(each):
            return "there is half of a character in it, a lone surrogate"
        elif isinstance(each, float) and not math.isfinite(each):
            return "a number in it is too large"
        elif isinstance(each, int) and abs(each) >= _BEYOND:
            return "a number in it has too many digits; such an id can be a text"
    return "it is not of a known form"


# --- what a table would hide -----------------------------------------------------------------


class Odd(NamedTuple):
    """The rows in which a column holds what a table would hide, and what the first one is."""

    rows: Mask
    problem: str
    remedy: str


@dataclass(frozen=True)
class Objects:
    """The bytes of objects, in which a table of them may have hidden something."""

    data: bytes
    source: str  # what errors call them
    is_array: bool
    rows_before: int

    def odd(self, column: pl.Series, *, is_id: bool) -> Odd | None:
        """Return which objects hold in a column what its texts do not tell, if there are any.

        The ``column`` is as it was read, and has its name. Ids are texts or whole numbers.
        """
        if not (self._has_odd(column.name, is_id=is_id) or self._may_be_twice(column)):
            return None
        found = [_oddity(each, column.name, is_id=is_id) for each in self._one_by_one()]
        rows = np.array([each is not None for each in found])
        first = next((each for each in found if each is not None), None)
        return None if first is None else Odd(rows, *first)

    def _has_odd(self, name: str, *, is_id: bool) -> bool:
        values = _NO_ID if is_id else rb"\{"
        values = rb"(?:%s|%s)" % (values, _HALF) if self._has_halves else values
        return re.search(rb"%s\s*:\s*%s" % (_as_written(name), values), self.data) is not None

    def _may_be_twice(self, column: pl.Series) -> bool:
        """Tell whether a name may be there twice in an object, or spelled in another way."""
        if column.null_count():
            return True
        # Every row has a value; where the name is there as often, it is nowhere twice.
        name = re.compile(rb"%s\s*:" % _as_written(column.name))
        if len(name.findall(self.data)) != len(column):
            return True
        may_be_escaped = self._has_escaped_ascii or not column.name.isascii()
        return may_be_escaped and column.name in self._escaped_names

    @cached_property
    def _has_halves(self) -> bool:
        return re.search(rb"\\u[dD][89a-fA-F]", self.data) is not None

    @cached_property
    def _has_escaped_ascii(self) -> bool:
        return re.search(rb"\\(?:u00[2-7]|/)", self.data) is not None

    @cached_property
    def _escaped_names(self) -> frozenset[str | None]:
        """All names of values in which a character is escaped, as they are meant."""
        return frozenset(map(_unescaped, set(_ESCAPED_NAME.findall(self.data))))

    def _one_by_one(self) -> Iterator[_Object]:
        try:
            if self.is_array:
                yield from json.loads(self.data, object_pairs_hook=_Object.of)
            else:
                lines = (line for line in self.data.split(b"\n") if line.strip())
                yield from (json.loads(line, object_pairs_hook=_Object.of) for line in lines)
        except RecursionError:  # of what polars 2 would have refused; told with its row
            with not_too_deep(self.source):
                list(_in_lines(self.data, self.source, self.rows_before, self.is_array))
                raise


def _as_written(name: str) -> bytes:
    return re.escape(json.dumps(name, ensure_ascii=False).encode("utf-8", "replace"))


def _unescaped(text: bytes) -> str | None:
    try:
        return str(json.loads(text))
    except ValueError:
        return None


class _Object(dict[str, Any]):
    """An object of JSON, and the names that it has more than once."""

    twice: frozenset[str] = frozenset()

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> _Object:
        found = cls(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            found.twice = frozenset(name for name in found if names.count(name) > 1)
        return found


def _oddity(some: _Object, name: str, *, is_id: bool) -> tuple[str, str] | None:
    """Return what a text of a value would hide, and what to do about it."""
    value = some.get(name)
    if name in some.twice:
        return f"{name} is there twice", "Keep one of the two"
    if isinstance(value, str) and is_half(value):
        what = f"{name} is {show(value)}, which holds half of a character"
        return f"{what} (a lone surrogate)", "Write it again as UTF-8"
    if is_id and isinstance(value, bool | float | list | dict):
        return f"{name} is {show(value)}, which is no id", "Write ids as texts or whole numbers"
    if isinstance(value, dict):
        return f"{name} is {show(value)}, which is an object", "Write its value"
    return None
