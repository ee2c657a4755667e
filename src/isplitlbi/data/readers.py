"""Files to votes: any common format, any known layout; `Comparisons` checks what comes out.

Everything in a file is read as text, whatever its format, so that the same votes are the same
whether they come as CSV, TSV, Parquet, JSON lines or through a pipe; in one file, or in the parts
of a folder.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import polars as pl

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.formats import FORMATS, Dropping, Source, Table, read_table
from isplitlbi.data.presets import (
    PRESETS,
    ROLES,
    lay_out,
    read_labels,
    read_outcomes,
    require,
    settle_both_bad,
)
from isplitlbi.data.vocabulary import counted, show
from isplitlbi.errors import InvalidRows, InvalidVotes

__all__ = ["FORMATS", "Parts", "Reading", "read_pairs", "read_votes"]

IDS = ("user", "left", "right", "group", "item3", "item4", "item5")


class NoVotes(InvalidVotes):
    """A file without a single vote, and the notes on what was in it."""

    def __init__(self, source: str, notes: tuple[str, ...]) -> None:
        why = f"no votes are left. {' '.join(notes)}" if notes else "there are no votes in it."
        super().__init__(f"{source}: {why}")
        self.notes = notes or ("There are no votes in it.",)


class Reading(NamedTuple):
    """Votes from a file, and what was understood of it."""

    votes: Comparisons
    preset: str  # the layout that was recognised or asked for
    notes: tuple[str, ...]  # what was dropped or merged and how often, in plain sentences


def read_votes(
    source: str | Path,
    *,
    format: str | None = None,
    preset: str | None = None,
    user: str | None = None,
    left: str | None = None,
    right: str | None = None,
    winner: str | None = None,
    weight: str | None = None,
    group: str | None = None,
    labels: Mapping[str, str] | None = None,
    both_bad: Literal["tie", "drop"] = "tie",
    drop_invalid: bool = False,
) -> Reading:
    """Read votes from a file, from all files of a folder, or from standard input.

    Parameters
    ----------
    source
        A path, or ``-`` for standard input; compressed with gzip or not. Of a folder see `Parts`.
    format
        One of `FORMATS`; recognised from the first bytes by default.
    preset
        One of `PRESETS`; recognised from the names of the columns by default.
    user, left, right, winner, weight, group
        Names of columns, where they are not those of the preset.
    labels
        Other words for the outcomes, such as ``{"draw": "tie"}``.
    both_bad
        Whether votes that neither item is good count as ties or are dropped.
    drop_invalid
        Whether rows that cannot be used are dropped (the notes say how many and why); by default
        they are an error.
    """
    if Path(source).is_dir():
        return Parts.of(
            source, format=format, preset=preset, user=user, left=left, right=right,
            winner=winner, weight=weight, group=group, labels=labels, both_bad=both_bad,
            drop_invalid=drop_invalid,
        ).read()  # fmt: skip
    if both_bad not in ("tie", "drop"):
        raise InvalidVotes(f"both_bad is {both_bad!r}; it must be tie or drop.")
    named = dict(zip(ROLES, (user, left, right, winner, weight, group), strict=True))
    asked = {role: name for role, name in named.items() if name is not None}
    notes: list[str] = []
    file = Source.of(source)
    name = file.name
    known = frozenset().union(*(each.known for each in PRESETS.values()), asked.values())
    table = read_table(file, format, known, Dropping(drop_invalid, notes, "rows"))
    layout, names = lay_out(table.columns, asked, preset, name, notes)
    frame = layout.pairs(_take(table, names, name))
    expanded = "row" in frame.columns
    if expanded and (empty := table.frame.height - frame["row"].n_unique()):
        notes.append(f"{counted(empty, 'row')} dropped: all counts are 0.")
    if layout.both_bad:
        frame = settle_both_bad(frame, layout, labels or {}, both_bad, notes)
    names = {role: role for role in (*ROLES, *frame.columns)} | dict(layout.called) | names
    asked_labels = read_labels(labels or {}, name)
    dropping = Dropping(drop_invalid, notes, "pairs" if expanded else "rows")
    while True:
        if frame.is_empty():
            raise NoVotes(name, tuple(dict.fromkeys(notes)))
        try:
            series = frame.drop("row", "outcome", strict=False).to_dict()
            series["winner"] = read_outcomes(frame, layout, names, asked_labels, name)
            votes = Comparisons.from_series(series, names, source=name)
        except InvalidRows as error:
            dropping.note_or_raise(
                error, frame["row"].to_numpy() if "row" in frame.columns else None
            )
            frame = frame.filter(pl.Series(~error.rows))
        else:
            return Reading(votes, layout.name, tuple(dict.fromkeys(notes)))


def read_pairs(
    source: str | Path,
    *,
    format: str | None = None,
    user: str | None = None,
    left: str | None = None,
    right: str | None = None,
) -> pl.DataFrame:
    """Read pairs to predict: a frame with the columns user, left and right, as text."""
    names = {"user": user or "user", "left": left or "left", "right": right or "right"}
    file = Source.of(source)
    name = file.name
    known = frozenset(names.values())
    table = read_table(file, format, known, Dropping(False, [], "rows", offer=False))
    require(names, table.columns, name)
    frame = _take(table, names, name)
    if frame.is_empty():
        raise InvalidVotes(f"{name}: there are no pairs in it. Give at least one row.")
    for role, column in names.items():
        if (missing := frame[role].is_null() | (frame[role] == "")).any():
            raise InvalidRows.of(
                name, missing, f"{column} is missing", "Fill it in or remove the row"
            )
    if (same := frame["left"] == frame["right"]).any():
        item = show(frame["left"].filter(same)[0])
        raise InvalidRows.of(name, same, f"item {item} is compared with itself", "Remove the row")
    return frame


# --- parts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """The files of a folder, whose votes belong together, and the options to read them with.

    Every file is a part, unless its name begins with a dot or an underscore, as those do that
    other programs leave beside their output. Parts are of one layout; the same id in two of them is
    the same user or item. A part without any vote is passed over, with a note.
    """

    folder: Path
    files: tuple[Path, ...]
    options: Mapping[str, Any]

    @classmethod
    def of(cls, folder: str | Path, **options: Any) -> Self:
        """Find the parts in a folder; the options are those of `read_votes`."""
        place = Path(folder).absolute()
        if not str(folder):
            raise InvalidVotes("the name of the folder of votes is empty.")
        if not place.is_dir():
            raise InvalidVotes(f"{folder}: there is no such folder.")
        found = sorted(file for file in place.iterdir() if file.name[0] not in "._")
        if inner := next((file for file in found if file.is_dir()), None):
            raise InvalidVotes(
                f"{folder}: it holds another folder, {inner.name}. Put all parts into one."
            )
        if not found:
            raise InvalidVotes(f"{folder}: there are no files of votes in this folder.")
        return cls(place, tuple(found), options)

    def read(self) -> Reading:
        """Read all parts, one after another, into one set of votes."""
        found = [read_part(file, self.options) for file in self.files]
        notes = self.agree([described(part) for part in found])
        there = [part for part in found if isinstance(part, Reading)]
        votes = Comparisons.joined(*(part.votes for part in there))
        return Reading(votes, there[0].preset, notes)

    def agree(self, descriptions: Sequence[Described]) -> tuple[str, ...]:
        """Refuse parts that do not go together; return the notes on all of them.

        Parts of different kinds would lose votes, or weigh them by different scales.
        """
        names = [file.name for file in self.files]
        kinds = {n: each.kind for n, each in zip(names, descriptions, strict=True) if each.kind}
        if not kinds:
            raise InvalidVotes(f"{self.folder}: there are no votes in any of its files.")
        first = next(iter(kinds))
        for name, kind in kinds.items():
            if kind != kinds[first]:
                raise InvalidVotes(
                    f"{name}: it has {kind}, and {first} has {kinds[first]}. Give all parts the "
                    "same columns."
                )
        return gathered(names, [each.notes for each in descriptions])


class Described(NamedTuple):
    """What is to be known of a part beside the others."""

    kind: str  # in words, what all parts must have in common; empty where there are no votes
    notes: tuple[str, ...]


def read_part(file: Path, options: Mapping[str, Any]) -> Reading | Described:
    """Read one part; where there is no vote in it, there is only what to say of that."""
    try:
        return read_votes(file, **options)
    except NoVotes as nothing:
        return Described("", nothing.notes)


def described(part: Reading | Described) -> Described:
    """Describe a part."""
    if isinstance(part, Described):
        return part
    columns = {"weights": part.votes.weight, "groups": part.votes.group}
    there = [name for name, column in columns.items() if column is not None]
    kind = f"the layout {part.preset}, {' and '.join(there) or 'no weights or groups'}"
    return Described(kind, part.notes)


_COUNT = re.compile(r"([\d,]+) (.+?)s? ((?:dropped|counted).*)", re.DOTALL)


def gathered(names: Sequence[str], notes: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Put the notes on all parts together: what is said of several is said once, with the sum."""
    where: dict[tuple[str, str], dict[str, int]] = {}
    for name, of_part in zip(names, notes, strict=True):
        for note in of_part:
            found = _COUNT.fullmatch(note)
            count, unit, rest = found.groups() if found else ("0", "", note)
            what = unit, rest.replace("as a tie.", "as ties.")
            where.setdefault(what, {})[name] = int(count.replace(",", ""))
    told = []
    for (unit, rest), counts in where.items():
        first, others = next(iter(counts)), len(counts) - 1
        beside = f" and {counted(others, 'other part')}" if others else ""
        amount = f"{counted(sum(counts.values()), unit)} " if unit else ""
        told.append(f"{first}{beside}: {amount}{rest}")
    return tuple(told)


def _take(table: Table, names: Mapping[str, str], source: str) -> pl.DataFrame:
    """Return the columns of all roles as text."""
    taken = {}
    for role, name in names.items():
        column = table.frame[name]
        kind = column.dtype
        if isinstance(kind, pl.Categorical | pl.Enum) or kind.is_integer() or kind == pl.Null:
            column = column.cast(pl.String)
        elif role == "weight" and kind.is_float():
            column = column.fill_nan(None)
        elif role not in IDS and (kind.is_float() or kind == pl.Boolean):
            column = (column.fill_nan(None) if kind.is_float() else column).cast(pl.String)
        elif kind != pl.String:
            raise InvalidVotes(
                f"{source}: {name} holds values of type {kind}, such as "
                f"{show(column.drop_nulls().first())}; expected text or whole numbers. "
                "Convert the column."
            )
        taken[role] = column.alias(role)
    return pl.DataFrame(taken)


# What `Parts` may be read with.
OPTIONS = tuple(inspect.signature(read_votes).parameters)[1:]
