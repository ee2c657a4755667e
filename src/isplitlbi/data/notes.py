"""Notes: what was done to votes while they were read, as records; words are made here, once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from isplitlbi.data.features import Units
from isplitlbi.data.vocabulary import counted, show, together
from isplitlbi.data.weights import is_one
from isplitlbi.markup import printable

__all__ = [
    "AnswersTaken",
    "ColumnAbsent",
    "ColumnTaken",
    "CountTaken",
    "CountedAsTies",
    "Dropped",
    "DurationTaken",
    "FeatureTaken",
    "FileRead",
    "GroupsApart",
    "IdsAgain",
    "IdsInSeveral",
    "ItemsTaken",
    "LeftOut",
    "NoUsers",
    "Note",
    "NothingThere",
    "OutsideSpan",
    "PairsTaken",
    "ReadAs",
    "RowsInOrder",
    "SeparatorTaken",
    "Supplied",
    "TimeTaken",
    "UsersSetAside",
    "WeightsScaled",
    "added_up",
    "gathered",
    "log_changes",
    "on_weights",
    "with_units",
]

log = logging.getLogger("isplitlbi")


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something to know of votes that were read; each kind of it is a class.

    Attributes
    ----------
    count : int
        How often it was done, where that can be counted.
    files : tuple of str
        The parts of a folder that it is said of; empty where there is only one file.
    changes_votes : bool
        Whether the votes are not quite what was given.
    """

    changes_votes: ClassVar[bool] = False

    count: int = 0
    files: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Say it, whichever files it is said of."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Say it, with the files."""
        if not self.files:
            return printable(self.sentence())
        others = len(self.files) - 1
        beside = f" and {counted(others, 'other part')}" if others else ""
        return printable(f"{self.files[0]}{beside}: {self.sentence()}")

    def __add__(self, other: Note) -> Self:
        """Say it once of both: they differ in counts and files only."""
        files = tuple(dict.fromkeys((*self.files, *other.files)))
        return replace(self, count=self.count + other.count, files=files)


@dataclass(frozen=True)
class Dropped(Note):
    """Some rows, pairs or votes were not used."""

    changes_votes = True

    unit: str
    why: str = ""

    def sentence(self) -> str:
        """Say how many, and why unless the unit says it."""
        return f"{counted(self.count, self.unit)} dropped{f': {self.why}' if self.why else ''}."


@dataclass(frozen=True)
class LeftOut(Note):
    """Votes of some users, and on some items, were left out, as was asked for."""

    changes_votes = True

    users: int
    items: int
    other_users: int = 0  # who have no votes left
    other_items: int = 0

    def sentence(self) -> str:
        """Say how many votes, of how many users and items."""
        if not self.users + self.items:
            return "Nothing was left out: no user and no item is named."
        votes, named = counted(self.count, "vote"), _numbers(self.users, self.items)
        if not self.other_users + self.other_items:
            return f"Left out: {votes} of {named}."
        others = _numbers(self.other_users, self.other_items, "other ")
        return f"Left out: {votes} of {named}. Without these votes, {others} had no votes left."


def _numbers(users: int, items: int, which: str = "") -> str:
    named = ((users, "user"), (items, "item"))
    return " and ".join(counted(n, f"{which}{unit}") for n, unit in named if n)


@dataclass(frozen=True)
class CountedAsTies(Note):
    """Some votes that are not quite ties were taken for ties."""

    changes_votes = True

    unit: str

    def sentence(self) -> str:
        """Say how many."""
        ties = "a tie" if self.count == 1 else "ties"
        return f"{counted(self.count, self.unit)} counted as {ties}."


@dataclass(frozen=True)
class ColumnTaken(Note):
    """There were two columns for one role, and one of them was used."""

    role: str
    column: str
    instead_of: str

    def sentence(self) -> str:
        """Say which."""
        return (
            f"The {self.role} is taken from {show(self.column)}, not from {show(self.instead_of)}."
        )


@dataclass(frozen=True)
class ReadAs(Note):
    """A name was spelled a little differently from the one that is known."""

    changes_votes = True

    what: str  # that has the name: the header, or a column of words
    found: str
    known: str

    def sentence(self) -> str:
        """Say which, and how often where that is counted."""
        times = f", {counted(self.count, 'time')}" if self.count else ""
        return f"In {self.what}, {show(self.found)} is read as {show(self.known)}{times}."


@dataclass(frozen=True)
class SeparatorTaken(Note):
    """Fields were separated by something else than commas."""

    changes_votes = True

    separator: str

    def sentence(self) -> str:
        """Say by what."""
        return f"The fields are separated by {show(self.separator)}."


@dataclass(frozen=True)
class CountTaken(Note):
    """Rows stand for several votes each."""

    columns: tuple[str, ...]  # that tell how many

    def sentence(self) -> str:
        """Say for how many in all."""
        named = together([show(column) for column in self.columns])
        return f"By {named}, the rows stand for {counted(self.count, 'vote')}."


@dataclass(frozen=True)
class PairsTaken(Note):
    """Rows are of several items each, and stand for votes on their pairs."""

    holds: str  # what a row is

    def sentence(self) -> str:
        """Say what the rows are, and for how many votes in all."""
        return f"Every row is {self.holds}. Its pairs are votes: {self.count:,} in all."


@dataclass(frozen=True)
class AnswersTaken(Note):
    """An export holds rankings that answer a question."""

    question: str
    has_ranks: bool
    has_status: bool  # whether it is known which of them were submitted

    def sentence(self) -> str:
        """Say which question, and what its answers do not tell."""
        told = f"The rankings are the answers to {show(self.question)}."
        if not self.has_ranks:
            told += " They have an order and no ranks: equal ranks, if any, are not seen."
        if not self.has_status:
            told += " They do not say whether they were submitted: all of them are used."
        return told


@dataclass(frozen=True)
class ItemsTaken(Note):
    """The two items of a task were found in its data."""

    columns: tuple[str, str]

    def sentence(self) -> str:
        """Say which."""
        left, right = map(show, self.columns)
        return f"The left item of a task is {left} in its data, and the right one {right}."


@dataclass(frozen=True)
class TimeTaken(Note):
    """A column of times was asked for, and found."""

    column: str
    values: str  # what is in it: numbers or dates

    def sentence(self) -> str:
        """Say which, and how it was understood."""
        return f"The times of the votes are the {self.values} in {show(self.column)}."


@dataclass(frozen=True)
class RowsInOrder(Note):
    """The order of the rows was said to be that of the votes."""

    def sentence(self) -> str:
        """Say so."""
        return "The rows are taken to be in the order in which every user voted."


@dataclass(frozen=True)
class DurationTaken(Note):
    """A column of durations was asked for, and found."""

    column: str

    def sentence(self) -> str:
        """Say which."""
        return f"The durations of the votes are the seconds in {show(self.column)}."


@dataclass(frozen=True)
class FeatureTaken(Note):
    """A feature of the votes was asked for, and found."""

    feature: str
    columns: tuple[str, ...]  # of both sides, or of differences
    unit: float = 0.0  # its scale, where that is known

    def sentence(self) -> str:
        """Say from which columns, and what one unit of it is."""
        origin = " and ".join(self.columns) + (
            "" if len(self.columns) > 1 else ", left minus right"
        )
        unit = f"{self.unit:.4g}" if self.unit < UNITS_IN_FULL else f"{self.unit:,.0f}"
        return (
            f"Feature {self.feature}: from {origin}{f'; one unit is {unit}' if self.unit else ''}."
        )


UNITS_IN_FULL = 1e4  # from here on, without decimals


@dataclass(frozen=True)
class IdsAgain(Note):
    """Some votes have the id of a vote before them."""

    changes_votes = True  # not by reading; but they may count twice

    row: int  # of the first of them

    def sentence(self) -> str:
        """Say how many, and where the first is."""
        if self.count == 1:
            return f"1 vote has the id of a vote before it, in row {self.row:,}. It is kept."
        return (
            f"{self.count:,} votes have the id of a vote before them, the first in row "
            f"{self.row:,}. They are kept."
        )


@dataclass(frozen=True)
class IdsInSeveral(Note):
    """Some votes have the id of a vote in another file."""

    changes_votes = True  # as above

    def sentence(self) -> str:
        """Say how many."""
        if self.count == 1:
            return "1 vote has the id of a vote in another file. It is kept."
        return f"{self.count:,} votes have the id of a vote in another file. They are kept."


@dataclass(frozen=True)
class OutsideSpan(Note):
    """Votes from before or after some span of time were left out, as was asked for."""

    changes_votes = True

    since: str | None
    until: str | None

    def sentence(self) -> str:
        """Say how many."""
        ends = (("before", self.since), ("after", self.until))
        beyond = " or ".join(f"{side} {end}" for side, end in ends if end is not None)
        return f"Left out: {counted(self.count, 'vote')} from {beyond}."


@dataclass(frozen=True)
class FileRead(Note):
    """One of several files was read."""

    preset: str

    def sentence(self) -> str:
        """Say how it was understood, and how many votes are in it."""
        return f"{counted(self.count, 'vote')}; the layout is {self.preset}."


@dataclass(frozen=True)
class ColumnAbsent(Note):
    """A column that was named is not in one of several files."""

    changes_votes = True

    role: str
    column: str

    def sentence(self) -> str:
        """Say which, and what is used instead."""
        return (
            f"There is no column {show(self.column)} for the {self.role} in it, so that this file "
            "is read as its layout says."
        )


@dataclass(frozen=True)
class NoUsers(Note):
    """Votes were read as those of one anonymous crowd, because nothing tells the users apart."""

    changes_votes = True

    def sentence(self) -> str:
        """Say so, and what to do where it is not right."""
        return (
            "No column can be the user, so all votes are those of one anonymous crowd. If there is "
            "a column of users, name it."
        )


@dataclass(frozen=True)
class Supplied(Note):
    """Other files have weights, or groups, and this one has none."""

    changes_votes = True

    what: str

    def sentence(self) -> str:
        """Say what every vote of it has instead."""
        instead = {"weights": "has the weight 1", "groups": "is a group of its own"}[self.what]
        return f"There are no {self.what} in it, so that every vote of it {instead}."


@dataclass(frozen=True)
class GroupsApart(Note):
    """Several files have groups."""

    def sentence(self) -> str:
        """Say that the same id is not the same group."""
        return "Groups of different files are different groups, also where their ids are the same."


@dataclass(frozen=True)
class UsersSetAside(Note):
    """Votes were read as those of one anonymous crowd, as was asked for."""

    column: str

    def sentence(self) -> str:
        """Say which column was not read."""
        return f"The users in {show(self.column)} are set aside: all votes are those of one crowd."


@dataclass(frozen=True)
class WeightsScaled(Note):
    """Weights were not 1 on average."""

    changes_votes = True

    unit: float

    def sentence(self) -> str:
        """Say what they were on average, and that this does not matter."""
        return (
            f"The weights are {self.unit:.4g} on average. Only how they compare with each other "
            "counts: a fit divides them by their mean."
        )


def on_weights(unit: float) -> list[Note]:
    """Return the note on weights that were divided by a unit, where that is needed."""
    return [] if is_one(unit) else [WeightsScaled(unit=unit)]


@dataclass(frozen=True)
class NothingThere(Note):
    """There was not a single vote."""

    def sentence(self) -> str:
        """Say so."""
        return "There are no votes in it."


def log_changes(notes: Iterable[Note], source: str) -> None:
    """Log what changes votes, where nobody is handed the notes."""
    for note in notes:
        if note.changes_votes:
            log.warning("%s: %s", source, note)


def added_up(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Put notes that differ in counts and files only into one, which has the sum."""
    found: dict[Note, Note] = {}
    for note in notes:
        kind = replace(note, count=0, files=())
        found[kind] = found[kind] + note if kind in found else note
    return tuple(found.values())


def gathered(files: Sequence[str], notes: Sequence[Iterable[Note]]) -> tuple[Note, ...]:
    """Put the notes on all parts together: what is said of several is said once, with the sum."""
    return added_up(
        replace(note, files=(file,))
        for file, of_file in zip(files, notes, strict=True)
        for note in of_file
    )


def with_units(notes: Iterable[Note], units: Units) -> tuple[Note, ...]:
    """Add to notes on features what one unit of each is."""
    scale = dict(zip(units.names, units.scale.tolist(), strict=True))
    return tuple(
        replace(note, unit=scale[note.feature]) if isinstance(note, FeatureTaken) else note
        for note in notes
    )
