"""When votes were given, and how long each took: columns that become numbers.

Conventions
-----------
time       numbers that increase with time; dates become seconds since 1970. Dates without a time
           zone are read as UTC, which keeps their order.
duration   seconds, 0 or more
span       from a first to a last time, both included; a day is meant from its first to its last
           moment. Where times are dates, its ends are, and so with numbers.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidRows, InvalidSetting, InvalidVotes, Setting
from isplitlbi.lazy import pl
from isplitlbi.typing import Floats

__all__ = [
    "TIMES",
    "Span",
    "are_dates",
    "durations_of",
    "refuse_two_orders",
    "row_numbers",
    "times_of",
]

TIMES = ("time", "duration")  # the roles of these columns

# The date, the clock, a fraction of a second and the time zone, as ISO 8601 writes them.
_DATE = (
    r"^(?<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d)(?::(?<second>[0-5]\d)(?:[.,](?<part>\d+))?)?"
    r" ?(?<zone>[Zz]|(?<sign>[+-])(?<ahead>[01]\d|2[0-3])(?::?(?<more>[0-5]\d))?)?)?$"
)
_SUCH_AS = "a date such as 2024-01-31 or 2024-01-31T12:30:00"
_REMEDY = "Correct it or remove the row"
MICROSECONDS = 1_000_000  # a second has so many; numbers of today's seconds keep no finer parts
DAY = 86_400  # seconds
DIGITS = 6  # of a second, for microseconds


def refuse_two_orders(time: str | None, in_order: bool) -> None:
    """Refuse a column of times together with the order of the rows."""
    if time is not None and in_order:
        raise InvalidSetting(
            "the order of the votes is given twice. Use either ",
            Setting("time", time, of="column"), " or ", Setting("in_order", True), ".",
        )  # fmt: skip


class Span(NamedTuple):
    """A span of time as a person gives it, each end as text; None where it has no end."""

    since: str | None
    until: str | None

    @classmethod
    def of(cls, since: Any, until: Any) -> Span:
        """Take dates, numbers or texts."""
        return cls(_as_text(since, "since"), _as_text(until, "until"))

    def __bool__(self) -> bool:
        """Tell whether it has an end at all."""
        return self.since is not None or self.until is not None

    def refuse_without_times(self, time: str | None) -> None:
        """Refuse it where votes have no times that were read from a column."""
        if self and time is None:
            end = "until" if self.since is None else "since"
            raise InvalidSetting(
                Setting(end, getattr(self, end)), " needs the times of the votes. Name their "
                "column with ", Setting("time", of="column"), ".",
            )  # fmt: skip

    def bounds(self, column: str, *, dates: bool) -> tuple[float, float]:
        """Return the first and the last time in it, as numbers like those of a column."""
        read = _end_of_dates if dates else _end_of_numbers
        first = -math.inf if self.since is None else read(self.since, "since", column)
        last = math.inf if self.until is None else read(self.until, "until", column)
        if first > last:
            raise InvalidSetting(
                Setting("since", self.since), " is later than ", Setting("until", self.until),
                ". Exchange the two.",
            )  # fmt: skip
        return first, last


def _as_text(end: Any, name: str) -> str | None:
    if end is None or isinstance(end, str):
        return end
    if isinstance(end, dt.date):  # and what has a clock, too
        return end.isoformat()
    if isinstance(end, np.datetime64):
        return str(end)
    if isinstance(end, int | float | np.number) and not isinstance(end, bool):
        return repr(float(end))
    raise InvalidSetting(f"{name} is {end!r}; give a date, a number, or a text of one.")


def _end_of_dates(end: str, name: str, column: str) -> float:
    found, _ = _microseconds(pl.Series([end.strip()]))
    if found[0] is None:
        raise InvalidSetting(
            Setting(name, end), f": the times in {show(column)} are dates; give {_SUCH_AS}."
        )
    is_day = re.fullmatch(r"[\d-]+", end.strip()) is not None
    whole = DAY * MICROSECONDS - 1 if is_day and name == "until" else 0
    return float((found[0] + whole) / MICROSECONDS)


def _end_of_numbers(end: str, name: str, column: str) -> float:
    try:
        number = float(end)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidSetting(
            Setting(name, end), f": the times in {show(column)} are numbers; give a number."
        )
    return number


def row_numbers(n_rows: int) -> pl.Series:
    """Return the times of rows that are in order: their numbers, from 1."""
    return pl.Series("time", np.arange(1.0, n_rows + 1.0))


def are_dates(column: pl.Series) -> bool:
    """Tell whether most values of a column are dates, and not numbers."""
    if column.dtype != pl.String:
        return column.dtype.is_temporal()
    n_numbers = _numbers(column).count()
    return n_numbers < column.count() and _microseconds(column)[0].count() > n_numbers


def times_of(column: pl.Series, name: str, source: str) -> Floats:
    """Return the times in a column of numbers, dates or text; bad ones are refused by row."""
    _refuse_missing(column, name, source)
    kind = column.dtype
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        return column.dt.epoch("us").to_numpy() / MICROSECONDS
    if kind == pl.String and are_dates(column):
        return _seconds(column, name, source)
    if not (kind == pl.String or kind.is_numeric()):
        raise _other_type(column, name, source, "numbers, or dates with their time")
    found = _numbers(column)
    others = f"a number, or {_SUCH_AS}" if found.null_count() == len(found) else "a number"
    return _finite(column, found, name, source, others)


def durations_of(column: pl.Series, name: str, source: str) -> Floats:
    """Return the seconds in a column of numbers, time spans or text; bad ones are refused."""
    _refuse_missing(column, name, source)
    kind = column.dtype
    if isinstance(kind, pl.Duration):
        found = column.dt.total_microseconds() / MICROSECONDS
    elif kind == pl.String or kind.is_numeric():
        found = _numbers(column)
    else:
        raise _other_type(column, name, source, "seconds as numbers")
    seconds = _finite(column, found, name, source, "a number of seconds")
    negative = seconds < 0
    if negative.any():
        raise InvalidRows.of(
            source, negative, f"{name} {seconds[negative][0]} is less than 0 seconds", _REMEDY
        )
    return seconds


def _numbers(column: pl.Series) -> pl.Series:
    return column.cast(pl.Float64, strict=False)


def _finite(column: pl.Series, found: pl.Series, name: str, source: str, expected: str) -> Floats:
    """Return numbers; refuse rows where there is none, and those that are not finite."""
    bad = ~found.is_finite().fill_null(False)
    if bad.any():
        if found.filter(bad)[0] is not None:
            expected = "a finite number"
        value = show(column.filter(bad)[0])
        raise InvalidRows.of(source, bad, f"{name} {value} is not {expected}", _REMEDY)
    return found.to_numpy() + 0.0  # of two zeros, the positive one


def _seconds(column: pl.Series, name: str, source: str) -> Floats:
    """Return the seconds since 1970 of dates that are written as text."""
    found, has_zone = _microseconds(column)
    if found.null_count():
        value = show(column.filter(found.is_null())[0])
        raise InvalidRows.of(
            source, found.is_null(), f"{name} {value} is not {_SUCH_AS}", _REMEDY
        )  # fmt: skip
    if has_zone.any() and not has_zone.all():  # nobody knows which of the two was first
        value = show(column.filter(~has_zone)[0])
        raise InvalidRows.of(
            source, ~has_zone, f"{name} {value} has no time zone, and others have one",
            "Write all with a time zone, or none",
        )  # fmt: skip
    return found.to_numpy() / MICROSECONDS


def _microseconds(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return microseconds since 1970, null where there is no date, and whether a zone is given."""
    parts = column.str.extract_groups(_DATE).struct.unnest()
    number = {
        name: parts[name].cast(pl.Int64).fill_null(0)
        for name in ("hour", "minute", "second", "ahead", "more")
    }
    fraction = parts["part"].fill_null("").str.pad_end(DIGITS, "0").str.slice(0, DIGITS)
    days = parts["day"].str.to_date("%Y-%m-%d", strict=False).cast(pl.Int64)
    ahead = (number["ahead"] * 60 + number["more"]) * 60
    clock = (number["hour"] * 60 + number["minute"]) * 60 + number["second"]
    east = pl.Series(np.where((parts["sign"] == "-").fill_null(False), -1, 1))
    seconds = days * DAY + clock - ahead * east
    return seconds * MICROSECONDS + fraction.cast(pl.Int64), parts["zone"].is_not_null()


def _refuse_missing(column: pl.Series, name: str, source: str) -> None:
    missing = column.is_null()
    if column.dtype == pl.String:
        missing |= (column == "").fill_null(False)
    if missing.any():
        raise InvalidRows.of(source, missing, f"{name} is missing", "Fill it in or remove the row")


def _other_type(column: pl.Series, name: str, source: str, expected: str) -> InvalidVotes:
    return InvalidVotes(
        f"{source}: {name} holds values of type {column.dtype}; expected {expected}. "
        "Convert the column."
    )
