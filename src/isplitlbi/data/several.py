"""Several files that are read as one set of votes, whatever the layout and format of each.

The same id is the same user or item in all files. What one file has and another has not is supplied
where that can only mean one thing (weights, groups), and refused where it cannot (times, durations,
features). Votes of a file without ids stay without them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from isplitlbi.data.loading import (
    Folder,
    Loaded,
    NoVotes,
    Votes,
    load,
    notes_on_shared_ids,
    with_notes_on_all,
)
from isplitlbi.data.notes import (
    ColumnAbsent,
    FileRead,
    GroupsApart,
    Note,
    Supplied,
    TimeTaken,
)
from isplitlbi.data.options import Options
from isplitlbi.data.vocabulary import together
from isplitlbi.errors import InvalidSetting, InvalidVotes, Setting
from isplitlbi.typing import Integers, Labels, Places

__all__ = ["are_paths", "load_any", "name_of_all"]

STANDARD_INPUT = "-"
IN_ALL = ("time", "duration", "feature")  # roles of columns that all files have, or none


class VotesOfFile(Votes, Protocol):
    """What several files ask of a class of votes besides."""

    @property
    def groups(self) -> Labels | None:
        """The ids of the groups."""

    def in_time_order(self) -> Places:
        """Return the places of the votes in an order that does not depend on the rows."""

    def changed(self, **columns: Any) -> Self:
        """Return the same votes with other columns."""


V = TypeVar("V", bound=VotesOfFile)


def are_paths(source: Any) -> bool:
    """Tell whether these are the paths of several files, and not one path, nor a table."""
    is_list = isinstance(source, list | tuple) and len(source) > 0
    return is_list and all(isinstance(each, str | Path) for each in source)


def load_any(kind: type[V], source: Any, options: Options) -> Loaded[V]:
    """Load votes from a file, a folder or standard input; or from several of these."""
    if isinstance(source, str | Path):
        return load(kind, source, options)
    if not are_paths(source):
        raise InvalidVotes(f"expected the path of a file, or a list of paths; found {source!r}.")
    if len(source) == 1:
        return load(kind, source[0], options)
    _refuse_twice(source)
    if options.in_order:
        raise InvalidSetting(
            "the rows of several files have no common order. Leave out ",
            Setting("in_order", True), ", and name a column of times with ",
            Setting("time", of="column"), ".",
        )  # fmt: skip
    names = _names(source)
    found: dict[str, Loaded[V]] = {}
    told: dict[str, tuple[Note, ...]] = {}
    for name, each in zip(names, source, strict=True):
        try:
            found[name] = load(kind, each, options, is_part=True, lenient=True, name=name)
            told[name] = found[name].notes
        except NoVotes as nothing:
            told[name] = nothing.notes
    _refuse_absent_columns(told)
    _refuse_unlike_times(told)
    if not found:
        why = " ".join(str(note) for note in _notes_of(told))
        raise InvalidVotes(f"{together(names)}: there are no votes in any of these files. {why}")
    notes: list[Note] = [
        FileRead(each.preset, count=len(each.votes), files=(name,)) for name, each in found.items()
    ]
    votes = kind.joined(*_beside_each_other(found, _order_of(source, names), notes))
    notes += notes_on_shared_ids(votes, [each.votes for each in found.values()])
    presets = dict.fromkeys(each.preset for each in found.values())
    all_notes = with_notes_on_all(votes, (*notes, *_notes_of(told)))
    return Loaded(votes, ", ".join(presets), all_notes)


def name_of_all(source: Any) -> str | None:
    """Return what votes of these files are called; of standard input alone, there is no name."""
    if isinstance(source, str | Path):
        return None if str(source) == STANDARD_INPUT else Path(source).resolve().name
    return name_of_all(source[0]) if len(source) == 1 else together(_names(source))


# --- which files ------------------------------------------------------------------------------


def _names(sources: Sequence[str | Path]) -> list[str]:
    """Return what to call files: by their names, or by their paths where two names are alike."""
    short = [
        "standard input" if str(each) == STANDARD_INPUT else Path(each).resolve().name
        for each in sources
    ]
    often = Counter(short)
    pairs = zip(short, sources, strict=True)
    return [name if often[name] == 1 else str(each) for name, each in pairs]


def _refuse_twice(sources: Sequence[str | Path]) -> None:
    """Refuse a file that is given twice, by whatever name: its votes would count twice."""
    if any(not str(each) for each in sources):
        raise InvalidSetting("the name of a file of votes is empty.")
    seen: dict[Any, str] = {}
    for each in sources:
        path = Path(each)
        is_folder = str(each) != STANDARD_INPUT and path.is_dir()
        for file in Folder.of(each).files if is_folder else [each]:
            key = _identity(file)
            if key in seen:
                where = "" if seen[key] == str(each) else f", as {seen[key]} and as {each}"
                raise InvalidVotes(
                    f"{Path(file).name if is_folder else each} is given twice{where}. Give every "
                    "file once: its votes would count twice."
                )
            seen[key] = str(each)


def _identity(file: str | Path) -> Any:
    try:
        status = os.stat(file)
        return status.st_dev, status.st_ino
    except (OSError, ValueError):  # standard input, or what is refused when it is read
        return str(file)


def _order_of(sources: Sequence[str | Path], names: list[str]) -> dict[str, int]:
    """Return the place of every file in an order that does not depend on how they are given."""
    known = [(name, str(Path(each).absolute())) for name, each in zip(names, sources, strict=True)]
    return {name: place for place, (name, _) in enumerate(sorted(known))}


# --- what goes together -----------------------------------------------------------------------


def _notes_of(told: Mapping[str, Sequence[Note]]) -> list[Note]:
    """Return the notes on every file, with its name unless they have one already."""
    return [
        note if note.files else replace(note, files=(name,))
        for name, notes in told.items()
        for note in notes
    ]


def _refuse_absent_columns(told: Mapping[str, Sequence[Note]]) -> None:
    """Refuse a column that was named and that no file has, or one that all files must have."""
    absent = {
        name: {(note.role, note.column) for note in notes if isinstance(note, ColumnAbsent)}
        for name, notes in told.items()
    }
    for role, column in sorted(set.union(*absent.values())):
        without = [name for name in told if (role, column) in absent[name]]
        there = [name for name in told if name not in without]
        is_feature = role == "feature"
        setting = Setting("features", [column]) if is_feature else Setting(role, of="column")
        what = f"columns for the feature {column}" if is_feature else f"column {column!r}"
        if not there:
            raise InvalidVotes(
                f"there are no {what} " if is_feature else f"there is no {what} for the {role} ",
                f"in any of {together(without)}. Name the right one with ", setting, ".",
            )  # fmt: skip
        if role in IN_ALL:
            raise InvalidVotes(
                f"{there[0]} has {what if is_feature else 'a ' + what}, and {without[0]} has not. "
                f"All files have a {role}, or none: add it, or leave out ", setting, ".",
            )  # fmt: skip


def _refuse_unlike_times(told: Mapping[str, Sequence[Note]]) -> None:
    """Refuse dates in one file and numbers in another."""
    values = {
        note.values: name
        for name, notes in told.items()
        for note in notes
        if isinstance(note, TimeTaken)
    }
    if len(values) > 1:
        raise InvalidVotes(
            f"the times in {values['dates']} are dates, and those in {values['numbers']} are "
            "numbers. Write all of them in the same way."
        )


def _beside_each_other(
    found: Mapping[str, Loaded[V]], order: Mapping[str, int], notes: list[Note]
) -> list[V]:
    """Return the votes of all files, with weights and groups in all where one has some."""
    votes = {name: each.votes for name, each in found.items()}
    weighted, grouped = (
        [name for name, each in votes.items() if getattr(each, attribute) is not None]
        for attribute in ("weight", "group")
    )
    for name in votes if weighted else ():
        if name not in weighted:
            notes.append(Supplied("weights", files=(name,)))
            votes[name] = votes[name].changed(weight=np.ones(len(votes[name])))
    for name in votes if grouped and len(votes) > 1 else ():
        if name not in grouped:
            notes.append(Supplied("groups", files=(name,)))
        group, groups = _groups_of(votes[name], order[name])
        votes[name] = votes[name].changed(group=group, groups=groups)
    if len(grouped) > 1:
        notes.append(GroupsApart())
    return list(votes.values())


def _groups_of(votes: V, place: int) -> tuple[Integers, Labels]:
    """Return the groups of a file by ids that no other file has, or a group for every vote."""
    if votes.group is not None and votes.groups is not None:
        ids = [f"{place} {each}" for each in votes.groups.tolist()]
        return votes.group, np.array(ids, dtype=object)
    group = np.empty(len(votes), dtype=np.int32)
    group[votes.in_time_order()] = np.arange(len(votes))  # votes alike aside, whatever the rows
    width = len(str(len(votes)))
    ids = [f"{place} {number:0{width}d}" for number in range(len(votes))]
    return group, np.array(ids, dtype=object)
