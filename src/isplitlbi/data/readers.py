"""What people call to read files: votes with what was understood of them, and pairs to predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.loading import Described, Folder, NoVotes, load, load_frame
from isplitlbi.data.notes import Note
from isplitlbi.data.options import OPTIONS, Options
from isplitlbi.data.pairs import read_pairs
from isplitlbi.data.several import load_any

__all__ = [
    "OPTIONS",
    "Described",
    "Parts",
    "Reading",
    "described",
    "read_pairs",
    "read_part",
    "read_votes",
]


class Reading(NamedTuple):
    """Votes from a file or from several, and what was understood of it."""

    votes: Comparisons
    preset: str  # the layout that was recognised or asked for; of several files, all of them
    notes: tuple[Note, ...]  # what was dropped or merged, how often and why; say it with `str`


def read_votes(
    source: Any,
    *,
    format: str | None = None,
    preset: str | None = None,
    user: str | None = None,
    left: str | None = None,
    right: str | None = None,
    winner: str | None = None,
    weight: str | None = None,
    count: str | None = None,
    group: str | None = None,
    labels: Mapping[str, str] | None = None,
    both_bad: Literal["tie", "drop"] = "tie",
    drop_invalid: bool = False,
    features: Sequence[str] | None = None,
    time: str | None = None,
    duration: str | None = None,
    in_order: bool = False,
    since: Any = None,
    until: Any = None,
    anonymous: bool = False,
    id: str | None = None,
) -> Reading:
    """Read votes from files, from all files of a folder, from standard input or a data frame.

    Parameters
    ----------
    source
        A path, or ``-`` for standard input; compressed with gzip or not. Of a folder see `Parts`.
        Or a list of paths, each in a layout of its own. Or a data frame: ids stay what they are.
    format, preset
        One of `FORMATS` and one of `PRESETS`; recognised by default.
    user, left, right, winner, weight, count, group, id
        Names of columns, where they are not those of the preset. A row of count 3 is three votes.
        Ids are of the votes themselves: they tell votes that came twice.
    labels, both_bad
        Other words for the outcomes, such as ``{"draw": "tie"}``; and whether votes that neither
        item is good count as ties or are dropped.
    drop_invalid
        Whether rows that cannot be used are dropped, with a note; by default they are an error.
    features
        Names of features: ``length`` has the columns ``length_left`` and ``length_right``, or one
        column ``length`` of differences, left minus right.
    time, duration
        Names of columns: when votes were given, and how many seconds the answers took.
    in_order
        Whether the rows of a file are in the order in which every user voted.
    since, until
        Use only votes from this time on, and up to it: dates (a day is the whole day) or numbers.
    anonymous
        Whether users are set aside; where no column can be the user, they are.
    """
    options = Options(
        format, preset, user, left, right, winner, weight, count, group, labels, both_bad,
        drop_invalid, features, time, duration, in_order, since, until, anonymous, id,
    )  # fmt: skip
    if not isinstance(source, str | Path | list | tuple):
        return Reading(*load_frame(Comparisons, source, "votes", options))
    return _of_file(Reading(*load_any(Comparisons, source, options)), source)


def _of_file(reading: Reading, source: str | Path | Sequence[str | Path]) -> Reading:
    return reading._replace(votes=reading.votes.read_from(source))


class Parts(Folder):
    """The files of a folder, whose votes belong together, and the options to read them with.

    Every file is a part, unless its name begins with a dot or an underscore, as those do that
    other programs leave beside their output. Parts are of one layout; the same id in two of them is
    the same user or item. A part without any vote is passed over, with a note.
    """

    def read(self) -> Reading:
        """Read all parts, one after another, into one set of votes."""
        return _of_file(Reading(*self.load(Comparisons)), self.folder)


def read_part(file: Path, options: Mapping[str, Any]) -> Reading | Described:
    """Read one part; where there is no vote in it, there is only what to say of that."""
    try:
        return Reading(*load(Comparisons, file, Options(**options), is_part=True))
    except NoVotes as nothing:
        return Described("", nothing.notes)


def described(part: Reading | Described) -> Described:
    """Return what is to be known of a part beside the others."""
    return part if isinstance(part, Described) else Described.of(*part)
