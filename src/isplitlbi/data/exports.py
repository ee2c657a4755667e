"""What other platforms export as nested JSON, as tables that have one of the known layouts.

An export is recognised by its first object. Every vote in it becomes a row of text, which knows the
number of the object that it comes from. What is no vote (skipped, discarded, a draft) is told, and
what cannot be understood is refused with the number of its object. The platforms are in
`platforms`.

Conventions
-----------
object    a task, a record or a result: what the export has one of after another, from 1
question  what somebody was asked about an object. Its answers have a column of its name; where
          there is one question only, they are also in the column that a layout has for the outcome
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from isplitlbi.data.notes import Dropped, Note
from isplitlbi.data.objects import Odd
from isplitlbi.data.vocabulary import LONGEST, is_half, show
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.lazy import pl

__all__ = [
    "Export",
    "Found",
    "Object",
    "are_objects",
    "as_text",
    "as_word",
    "is_id",
    "is_plain",
    "objects_of",
    "plain",
]

Object = Mapping[str, Any]


class Export(NamedTuple):
    """A kind of export: how to know it, and how to find the votes in its objects."""

    name: str
    is_one: Callable[[Object], bool]
    find: Callable[[Iterable[Object], Found], None]
    columns: tuple[str, ...]  # of a layout, where there is not a single vote

    def read(self, objects: Iterable[Any], source: str) -> Found:
        """Find the votes in all objects."""
        found = Found(source, self.columns)
        self.find(objects, found)
        return found


class _Fraction(str):
    """The text of a fraction, which is no id."""

    __slots__ = ()


class _Bad(NamedTuple):
    """Objects that cannot be used, for a reason that all of them share."""

    problem: str  # of the first of them
    remedy: str
    objects: set[int]


@dataclass
class Found:
    """What has been found in an export so far."""

    source: str
    columns: tuple[str, ...]
    rows: list[dict[str, str | None]] = field(default_factory=list)
    objects: list[int] = field(default_factory=list)  # the number of each row's object
    notes: list[Note] = field(default_factory=list)
    n_objects: int = 0
    _bad: dict[str, _Bad] = field(default_factory=dict)
    _passed_over: Counter[tuple[str, str]] = field(default_factory=Counter)

    def numbered(self, objects: Iterable[Any]) -> Iterator[tuple[int, Object]]:
        """Return objects with their numbers; refuse what is none."""
        for number, each in enumerate(objects, start=1):
            self.n_objects = number
            if isinstance(each, dict):
                yield number, each
            else:
                self.refuse(number, "this is not a JSON object", "Remove it or write it again")

    def add(self, number: int, row: Mapping[str, Any]) -> None:
        """Add a row: texts and whole numbers; other values are refused."""
        odd = {name: why for name, value in row.items() if (why := _why_odd(value)) is not None}
        for name, (problem, remedy) in odd.items():
            self.refuse(number, f"{name} is {show(row[name])}, which {problem}", remedy, kind=name)
        if not odd:
            self.rows.append({k: str(v) if isinstance(v, int) else v for k, v in row.items()})
            self.objects.append(number)

    def refuse(self, number: int, problem: str, remedy: str, *, kind: str = "") -> None:
        """Note that an object cannot be used; those of one kind are refused together."""
        bad = self._bad.setdefault(kind or problem, _Bad(problem, remedy, set()))
        bad.objects.add(number)

    def pass_over(self, unit: str, why: str) -> None:
        """Note that something is no vote."""
        self._passed_over[unit, why] += 1

    def name_only_question(self, questions: Sequence[str], column: str) -> None:
        """Write the answers to the only question into the column of a layout, too."""
        if len(questions) == 1:
            for row in self.rows:
                row[column] = row.get(questions[0])

    def errors(self) -> Iterator[InvalidRows]:
        """Return an error for every reason to refuse objects."""
        for bad in self._bad.values():
            mask = np.zeros(self.n_objects, dtype=np.bool_)
            mask[np.array(sorted(bad.objects)) - 1] = True
            yield InvalidRows.of(self.source, mask, bad.problem, bad.remedy)

    def told(self) -> list[Note]:
        """Return all notes."""
        passed = self._passed_over.items()
        return [*(Dropped(unit, why, count=n) for (unit, why), n in passed), *self.notes]

    def odd(self, column: str, *, is_id: bool) -> Odd | None:
        """Return which rows of the table have a fraction where there should be an id."""
        values = [row.get(column) for row in self._usable()[1]]
        rows = np.array([isinstance(value, _Fraction) for value in values], dtype=np.bool_)
        if not (is_id and rows.any()):
            return None
        first = values[int(rows.argmax())]
        return Odd(rows, f"{column} is {first}, which is no id", "Write ids as texts")

    def _usable(self) -> tuple[list[int], list[dict[str, str | None]]]:
        """Return the objects that can be used, and the row of each."""
        bad = {number for each in self._bad.values() for number in each.objects}
        kept = [k for k, number in enumerate(self.objects) if number not in bad]
        return [self.objects[k] for k in kept], [self.rows[k] for k in kept]

    def table(self) -> tuple[pl.DataFrame, pl.Series]:
        """Return the rows of all objects that can be used, and the number of each one's object."""
        objects, rows = self._usable()
        columns = dict.fromkeys(name for row in rows for name in row) or self.columns
        try:
            frame = pl.DataFrame(
                {name: [row.get(name) for row in rows] for name in columns},
                schema=dict.fromkeys(columns, pl.String),
            )
        except UnicodeEncodeError:
            raise InvalidVotes(
                f"{self.source}: it holds half of a character (a lone surrogate), which is no "
                "text. Export it again as UTF-8."
            ) from None
        return frame, pl.Series("row", objects, dtype=pl.Int64)


def is_id(value: Any) -> TypeGuard[str | int]:
    """Tell whether this is text or a whole number."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def _why_odd(value: Any) -> tuple[str, str] | None:
    """Return what is wrong with the value of a column, and what to do about it, if anything is."""
    if not is_plain(value):
        return "is neither text nor a whole number", "Write it as text"
    if isinstance(value, str) and is_half(value):
        return "holds half of a character (a lone surrogate)", "Export it again as UTF-8"
    return None


def is_plain(value: Any) -> bool:
    """Tell whether this can be an id, or nothing."""
    return value is None or is_id(value)


def plain(some: Object) -> dict[str, Any]:
    """Return the texts and numbers of an object; fractions as text, since they are no ids."""
    return {name: as_text(value) for name, value in some.items() if is_plain(as_text(value))}


def as_text(value: Any) -> Any:
    """Return a fraction as text, such as a time or a feature; and other values as they are."""
    return _Fraction(repr(value)) if isinstance(value, float) else value


def as_word(value: Any) -> str:
    """Return a word as it can stand in a sentence, whatever else it is."""
    is_word = isinstance(value, str) and value.isprintable() and 0 < len(value) <= LONGEST
    return str(value) if is_word else show(value)


def are_objects(value: Any) -> bool:
    """Tell whether this is a list of objects, and of nothing else."""
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def objects_of(value: Any) -> list[Object]:
    """Return the objects of a list; what is no list has none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
