"""Files, folders and frames to votes, of whatever class one names: the way to checked columns.

Everything in a file is read as text, whatever its format, so that the same votes are the same
whether they come as CSV, TSV, Parquet, JSON lines or through a pipe; in one file, or in the parts
of a folder. The class that holds the votes checks what comes out; rows that it refuses are dropped
here, where that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from isplitlbi.data.features import FeatureColumns, Features, feature_names
from isplitlbi.data.formats import Dropping, RawFile, Table, read_table, refuse_many
from isplitlbi.data.frames import kind_of
from isplitlbi.data.ids import stand_before
from isplitlbi.data.notes import (
    CountTaken,
    DurationTaken,
    FeatureTaken,
    IdsAgain,
    IdsInSeveral,
    Note,
    NothingThere,
    OutsideSpan,
    PairsTaken,
    RowsInOrder,
    TimeTaken,
    added_up,
    gathered,
    on_weights,
    with_units,
)
from isplitlbi.data.options import Options
from isplitlbi.data.outcomes import (
    Wording,
    outcomes_of_labels,
    outcomes_of_text,
    respelled,
    settle_both_bad,
)
from isplitlbi.data.presets import ROLES, Preset
from isplitlbi.data.rankings import numbered
from isplitlbi.data.recognition import lay_out
from isplitlbi.data.rows import as_text, rows_of_votes
from isplitlbi.data.times import Span, are_dates, row_numbers
from isplitlbi.data.vocabulary import as_series
from isplitlbi.errors import InvalidRows, InvalidSetting, InvalidVotes, Setting
from isplitlbi.lazy import nw, pl
from isplitlbi.typing import Floats, Integers, Places

__all__ = [
    "Described",
    "Folder",
    "Loaded",
    "NoVotes",
    "Votes",
    "frame_of",
    "load",
    "load_frame",
    "load_table",
    "notes_on_shared_ids",
    "with_notes_on_all",
]

COUNTS = ("count", "left_wins", "right_wins", "ties")  # roles of columns that count votes


class Votes(Protocol):
    """What a class must offer so that votes can be loaded into it."""

    @property
    def weight(self) -> Floats | None:
        """A weight per vote, or none."""

    @property
    def weight_unit(self) -> float:
        """What the weights were divided by."""

    @property
    def group(self) -> Integers | None:
        """A group per vote, or none."""

    @property
    def is_anonymous(self) -> bool:
        """Whether nobody knows whose votes they are."""

    @property
    def features(self) -> Features | None:
        """Features of the votes, or none."""

    @property
    def time(self) -> Floats | None:
        """A time per vote, or none."""

    @property
    def duration(self) -> Floats | None:
        """A duration per vote, or none."""

    @property
    def id(self) -> pl.Series | None:
        """An id per vote, null where it has none; or no ids at all."""

    def __len__(self) -> int:
        """Return the number of votes."""

    @classmethod
    def from_series(
        cls,
        series: Mapping[str, pl.Series],
        names: Mapping[str, str],
        labels: Mapping[Any, str] | None = None,
        source: str = "votes",
        *,
        features: Sequence[FeatureColumns] = (),
        is_part: bool = False,
    ) -> Self:
        """Check columns by their role; rows that cannot be used are `InvalidRows`."""

    @classmethod
    def joined(cls, *parts: Self) -> Self:
        """Put votes from several places together."""

    def framed_as(self, kind: str) -> Self:
        """Return the same votes, whose results are frames of that kind."""

    def alone(self, rows: Places, source: str = "votes", *, is_part: bool = False) -> Self:
        """Return some of the votes, as if there were no others."""


V = TypeVar("V", bound=Votes)


class Loaded(NamedTuple, Generic[V]):
    """Votes, the layout that was recognised or asked for, and what was done to them."""

    votes: V
    preset: str
    notes: tuple[Note, ...]


class NoVotes(InvalidVotes):
    """A file without a single vote, and the notes on what was in it."""

    notes: tuple[Note, ...]

    @classmethod
    def of(cls, source: str, notes: tuple[Note, ...]) -> Self:
        """Say why there are none."""
        told = " ".join(map(str, notes))
        error = cls(
            f"{source}: ", f"no votes are left. {told}" if notes else "there are no votes in it."
        )
        error.notes = notes or (NothingThere(),)
        return error


def load(
    kind: type[V],
    source: str | Path,
    options: Options,
    *,
    is_part: bool = False,
    lenient: bool = False,
    name: str | None = None,
) -> Loaded[V]:
    """Load votes from a file, from all files of a folder, or from standard input.

    A file may be a part of votes, of which more is to come. One that is ``lenient`` need not have
    the columns that options name: notes then tell which it has not. Errors call it by its ``name``.
    """
    if Path(source).is_dir():
        return Folder.of(source, **vars(options)).load(kind, lenient=lenient)
    file = RawFile.of(source)
    name = name or file.name
    dropping = Dropping(options.drop_invalid, [], "row")
    table = read_table(file, options.format, options.known, dropping)
    if lenient:
        options = _fitting(table.columns, options, name, dropping.notes)
    return load_table(kind, table, name, options, dropping, is_part=is_part)


def _fitting(columns: list[str], options: Options, name: str, notes: list[Note]) -> Options:
    """Return options without the columns that a file has not, where it has a layout without."""
    fitting, absent = options.fitting(columns)
    notes.extend(absent)
    try:
        lay_out(columns, fitting.columns, fitting.preset, name, [])
    except InvalidVotes:
        lay_out(columns, options.columns, options.preset, name, [])  # it tells what was named
        raise
    return fitting


def frame_of(thing: Any, source: str) -> Any | None:
    """Return a data frame (pandas, polars, pyarrow, ...) as narwhals has it; None for no frame."""
    try:
        found: Any = nw.from_native(thing, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InvalidVotes(
            f"{source}: two of its columns have the same name. Rename one of them."
        ) from None
    return found if isinstance(found, nw.DataFrame) else None


def load_frame(kind: type[V], frame: Any, source: str, options: Options) -> Loaded[V]:
    """Load votes from a data frame; its ids stay what they are, text or integers."""
    given = frame_of(frame, source)
    if given is None:
        raise InvalidVotes(
            f"{source}: expected a data frame, found {type(frame).__name__}. "
            "Use Comparisons.from_arrays for separate columns."
        )
    if options.format is not None:
        raise InvalidSetting("a data frame has no format. Leave out ", Setting("format"), ".")
    columns = [name for name in given.columns if isinstance(name, str)]
    refuse_many(columns, source)

    def column(name: str) -> pl.Series:
        return as_series(given.get_column(name).to_native(), name, source)

    table = Table(column, columns, len(given), keeps_ids=True)
    dropping = Dropping(options.drop_invalid, [], "row")
    votes, preset, notes = load_table(kind, table, source, options, dropping)
    return Loaded(votes.framed_as(kind_of(given)), preset, notes)


def load_table(
    kind: type[V],
    table: Table,
    source: str,
    options: Options,
    dropping: Dropping,
    *,
    is_part: bool = False,
) -> Loaded[V]:
    """Make votes of a table, wherever it comes from."""
    notes, declared = dropping.notes, outcomes_of_labels(options.labels, source)
    layout, names = lay_out(
        table.columns, options.columns, options.preset, source, notes, anonymous=options.anonymous
    )
    features = layout.features(feature_names(options.features), table.columns, source)
    for feature in features:
        names |= feature.roles
    text = as_text(table, names, source, dropping)
    text = numbered(text) if "id" in names else text
    if options.in_order:
        _refuse_without_times(layout, source)
        text = text.with_columns(row_numbers(text.height))
    about_times = _notes_on_times(text, options)
    frame = rows_of_votes(text, layout, names, source, dropping)
    counted_by = tuple(names[role] for role in COUNTS if role in names)
    names = {role: role for role in (*ROLES, *frame.columns)} | dict(layout.called) | names
    frame = respelled(frame, layout.wording, declared, names["winner"], notes)
    frame = settle_both_bad(frame, layout.wording, options.labels or {}, options.both_bad, notes)
    rows = _Rows(frame, layout.wording, names, features, source, is_part)
    votes, row = rows.usable(kind, declared, dropping._replace(unit=layout.unit))
    if counted_by:
        notes.append(CountTaken(counted_by, count=len(votes)))
    notes += [PairsTaken(layout.holds, count=len(votes))] if layout.holds else []
    notes += about_times
    inside = _in_span(votes, options, notes, source)
    if inside is not None:
        votes = votes.alone(inside, source, is_part=is_part)
    if votes.id is not None and row is not None:
        notes += _notes_on_ids(votes.id, row if inside is None else row[inside])
    notes += [FeatureTaken(*feature) for feature in features]
    return Loaded(
        votes, layout.name, added_up(notes if is_part else with_notes_on_all(votes, notes))
    )


def _refuse_without_times(layout: Preset, source: str) -> None:
    """Refuse rows in order where a row stands for votes in no known order."""
    if "time" not in layout.optional:
        raise InvalidVotes(
            f"{source}: a row of the layout {layout.name} ({layout.about}) stands for several "
            "votes, and their order is not known. Leave out ", Setting("in_order", True), ".",
        )  # fmt: skip


def _notes_on_times(text: pl.DataFrame, options: Options) -> list[Note]:
    notes: list[Note] = [RowsInOrder()] if options.in_order else []
    if options.time is not None:
        notes.append(TimeTaken(options.time, "dates" if are_dates(text["time"]) else "numbers"))
    if options.duration is not None:
        notes.append(DurationTaken(options.duration))
    return notes


def _in_span(votes: Votes, options: Options, notes: list[Note], source: str) -> Places | None:
    """Return the places of votes from the time that was asked for, if any was; tell how many."""
    if not options.span or options.time is None or votes.time is None:
        return None
    dates = any(isinstance(note, TimeTaken) and note.values == "dates" for note in notes)
    first, last = options.span.bounds(options.time, dates=dates)
    inside = np.flatnonzero((first <= votes.time) & (votes.time <= last))
    notes.append(OutsideSpan(*options.span, count=len(votes) - len(inside)))
    if not len(inside):
        raise NoVotes.of(source, added_up(notes))
    return inside


def _notes_on_ids(ids: pl.Series, row: Places) -> list[Note]:
    """Tell of votes of one file that have the id of a vote before them."""
    again = np.flatnonzero(stand_before(ids))
    return [IdsAgain(int(row[again[0]]), count=len(again))] if len(again) else []


def notes_on_shared_ids(votes: Votes, parts: Sequence[Votes]) -> list[Note]:
    """Tell of votes that have the id of a vote of another part; the parts are all votes."""
    n_again, *of_parts = (
        0 if some.id is None else int(stand_before(some.id).sum()) for some in (votes, *parts)
    )
    shared = n_again - sum(of_parts)
    return [IdsInSeveral(count=shared)] if shared else []


class _Rows(NamedTuple):
    """Rows of a file that are to be votes."""

    frame: pl.DataFrame
    wording: Wording
    names: Mapping[str, str]
    features: Sequence[FeatureColumns]
    source: str
    is_part: bool

    def usable(
        self, kind: type[V], declared: Mapping[Any, int], dropping: Dropping
    ) -> tuple[V, Places | None]:
        """Build votes from the rows that can be used; return also their numbers, if any."""
        frame, source = self.frame, self.source
        while not frame.is_empty():
            row = frame["row"].to_numpy() if "row" in frame.columns else None
            try:
                series = frame.drop("row", "outcome", strict=False).to_dict()
                series["winner"] = outcomes_of_text(
                    frame, self.wording, self.names, declared, source
                )
                votes = kind.from_series(
                    series, self.names, source=source, features=self.features, is_part=self.is_part
                )
                return votes, row
            except InvalidRows as error:
                dropping.note_or_raise(error, row)
                frame = frame.filter(pl.Series(~error.rows))
        raise NoVotes.of(source, added_up(dropping.notes))


def with_notes_on_all(votes: Votes, notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return notes with what is known of all votes only: units of features and of weights."""
    told = (*notes, *on_weights(votes.weight_unit))
    return told if votes.features is None else with_units(told, votes.features.units)


# --- folders ---------------------------------------------------------------------------------


class Described(NamedTuple):
    """What is to be known of a part beside the others."""

    kind: str  # in words, what all parts must have in common; empty where there are no votes
    notes: tuple[Note, ...]

    @classmethod
    def of(cls, votes: Votes, preset: str, notes: tuple[Note, ...]) -> Self:
        """Describe a part with votes."""
        columns = {"weights": votes.weight, "groups": votes.group}
        there = [name for name, column in columns.items() if column is not None]
        there += [f"times as {note.values}" for note in notes if isinstance(note, TimeTaken)]
        kind = f"the layout {preset}, {' and '.join(there) or 'no weights or groups'}"
        kind += ", no users" if votes.is_anonymous else ""
        return cls(kind, notes)


@dataclass(frozen=True)
class Folder:
    """The files of a folder, whose votes belong together, and the options to read them with."""

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
        if options.get("in_order"):  # which file comes first is not known
            raise InvalidSetting(
                f"{folder}: the rows of several files have no common order. Leave out ",
                Setting("in_order", True), ", and name a column of times with ",
                Setting("time", of="column"), ".",
            )  # fmt: skip
        # As texts, which a model keeps.
        ends = Span.of(options.get("since"), options.get("until"))._asdict()
        options |= {name: end for name, end in ends.items() if name in options}
        return cls(place, tuple(found), options)

    def load(self, kind: type[V], *, lenient: bool = False) -> Loaded[V]:
        """Load all parts, one after another, into one set of votes."""
        options, found = Options(**self.options), []
        descriptions = []
        for file in self.files:
            try:
                found.append(load(kind, file, options, is_part=True, lenient=lenient))
                descriptions.append(Described.of(*found[-1]))
            except NoVotes as nothing:
                descriptions.append(Described("", nothing.notes))
        notes = self.agree(descriptions)
        parts = [part.votes for part in found]
        votes = kind.joined(*parts)
        notes += tuple(notes_on_shared_ids(votes, parts))
        return Loaded(votes, found[0].preset, with_notes_on_all(votes, notes))

    def agree(self, descriptions: Sequence[Described]) -> tuple[Note, ...]:
        """Refuse parts that do not go together; return the notes on all of them.

        Parts of different kinds would lose votes, or weigh them by different scales.
        """
        names = [file.name for file in self.files]
        kinds = {n: each.kind for n, each in zip(names, descriptions, strict=True) if each.kind}
        if not kinds:
            told = gathered(names, [each.notes for each in descriptions])
            why = " ".join(str(note) for note in told if not isinstance(note, NothingThere))
            raise InvalidVotes(
                f"{self.folder}: there are no votes in any of its files.", f" {why}" if why else ""
            )
        first = next(iter(kinds))
        for name, kind in kinds.items():
            if kind != kinds[first]:
                raise InvalidVotes(
                    f"{name}: it has {kind}, and {first} has {kinds[first]}. Give all parts the "
                    "same columns."
                )
        return gathered(names, [each.notes for each in descriptions])
