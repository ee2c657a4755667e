"""The options that several commands share, and how votes are read."""

from __future__ import annotations

import functools
import inspect
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from isplitlbi.errors import InvalidSetting, PlaceTaken, Setting
from isplitlbi.output.terminal import Format, print_notes

if TYPE_CHECKING:
    from collections.abc import Callable

    from isplitlbi.data.readers import Parts, Reading

__all__ = [
    "As",
    "Call",
    "FileFormat",
    "LeftColumn",
    "Model",
    "Quiet",
    "RightColumn",
    "Rule",
    "Seed",
    "Threads",
    "User",
    "UserColumn",
    "VotesToRead",
    "called",
    "gathers",
    "may_read_votes",
    "reads_votes",
    "refuse_existing_file",
]


class BothBad(StrEnum):
    """What becomes of votes that both sides are bad."""

    tie = "tie"
    drop = "drop"


Votes = Annotated[
    list[str],
    typer.Argument(
        help="File of votes, or folder of such files: CSV, TSV, Parquet or JSON lines; - for "
        "standard input. Several are read together, each in a layout of its own."
    ),
]
Model = Annotated[Path, typer.Argument(help="Model folder, as written by fit.")]
As = Annotated[Format, typer.Option("--format", help="How to write the result.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed for all random numbers.")]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Number of threads; by default all there are.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no remarks.")]
Preset = Annotated[
    str | None, typer.Option(help="Layout of the file; recognised from its columns by default.")
]
FileFormat = Annotated[
    str | None,
    typer.Option("--input-format", help="csv, tsv, parquet or jsonl; recognised by default."),
]
UserColumn = Annotated[str | None, typer.Option("--user", help="Column of the users.")]
LeftColumn = Annotated[str | None, typer.Option("--left", help="Column of the left items.")]
RightColumn = Annotated[str | None, typer.Option("--right", help="Column of the right items.")]
WinnerColumn = Annotated[str | None, typer.Option("--winner", help="Column of the outcomes.")]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", help="Column of weights: how important each vote is.")
]
CountColumn = Annotated[
    str | None,
    typer.Option("--count", help="Column of counts: how many equal votes a row stands for."),
]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group", help="Column of groups: votes that stay together in splits."),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(
        "--time-column",
        help="Column that says when votes were given: dates, or numbers that increase with time.",
    ),
]
DurationColumn = Annotated[
    str | None,
    typer.Option("--duration-column", help="Column of the seconds that the answers took."),
]
InOrder = Annotated[
    bool,
    typer.Option("--in-order", help="Rows are in the order in which each user voted."),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Use only votes from this time on: a date such as 2024-01-31, or a number where the "
        "times are numbers.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Use only votes up to this time, which is included; a date is the whole day.",
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id", help="Column of the ids of the votes themselves, which tell votes that came twice."
    ),
]
FeatureNames = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        help="A feature of the votes, such as length: columns length_left and length_right, or one "
        "column length of differences; may be repeated.",
    ),
]
Anonymous = Annotated[
    bool,
    typer.Option(
        "--anonymous",
        help="All votes are those of one crowd; a column of users is set aside. This is so where "
        "no column can be the user, too.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", help="What a word means, such as draw=tie; may be repeated."),
]
BothBadVotes = Annotated[
    BothBad,
    typer.Option(
        "--both-bad",
        help="What to do with votes that say both sides are bad: count them as ties or drop them.",
    ),
]
DropInvalid = Annotated[
    bool, typer.Option("--drop-invalid", help="Drop rows that cannot be votes, and say how many.")
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="FILE|ID",
        help="Leave out a user or an item, by id. Or name a file, such as the CSV that abnormal "
        "writes: all ids in its column user or item are left out. May be repeated.",
    ),
]
Call = Annotated[
    list[str] | None,
    typer.Option(
        "--call",
        metavar="THING=WORD",
        help="Other words for items or users, such as items=models or users=person/people; may be "
        "repeated. Columns of files keep their names.",
    ),
]
User = Annotated[
    str | None, typer.Option(help="Use this user's own ranking; the consensus by default.")
]
EstimateBy = Annotated[
    str,
    typer.Option(
        "--estimate",
        help="By what to predict: dense (all that users deviate from the consensus) or sparse "
        "(only users who have left the consensus at the chosen time deviate).",
    ),
]
Rule = Annotated[
    str,
    typer.Option(
        help="How to predict: map (the most probable outcome) or threshold (a tie whenever scores "
        "differ by at most the threshold)."
    ),
]


# --- how votes are read --------------------------------------------------------------------


class VotesToRead(NamedTuple):
    """Where votes are, and how to read them."""

    places: list[str]
    options: dict[str, Any]
    without: list[str]  # users and items, and files of them

    def read(self, *, quiet: bool) -> Reading:
        """Read the votes here, and tell what was noted about them."""
        from isplitlbi.data.leaving import leave_out
        from isplitlbi.data.readers import read_votes

        reading = read_votes(self.places, **self.options)
        if self.without:
            reading = leave_out(reading, self.without)
        if not quiet:
            print_notes(reading)
        return reading

    def only_file(self) -> str:
        """Return the file, where it is read as it comes: no folder, and nobody is left out."""
        if self.without:
            raise InvalidSetting("--without does not go with a file that is read as it comes.")
        if len(self.places) > 1:
            raise InvalidSetting("name one file: it is read as it comes.")
        if Path(self.places[0]).is_dir():
            raise InvalidSetting(f"{self.places[0]} is a folder; name one file.")
        return self.places[0]

    def parts(self) -> Parts | None:
        """Return the parts of a folder, for workers to read; nothing of files.

        Where something is left out, nobody knows all ids before all parts are read: they are then
        read here, too.
        """
        from isplitlbi.data.readers import Parts

        if self.without or len(self.places) > 1 or not Path(self.places[0]).is_dir():
            return None
        return Parts.of(self.places[0], **self.options)


def gathers(name: str, gather: Callable[..., Any]) -> Callable[..., Callable[..., None]]:
    """Return a decorator: a command has the options of ``gather`` in place of one parameter."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        options, own = (
            inspect.signature(function, eval_str=True) for function in (gather, command)
        )

        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            asked = {option: arguments.pop(option) for option in options.parameters}
            command(**{name: gather(**asked)}, **arguments)

        kept = [
            option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in own.parameters.values()
            for option in (options.parameters.values() if each.name == name else [each])
        ]
        run.__signature__ = own.replace(parameters=kept)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in kept}
        return run

    return decorate


def _votes_to_read(
    votes: Votes,
    input_format: FileFormat = None,
    preset: Preset = None,
    user: UserColumn = None,
    left: LeftColumn = None,
    right: RightColumn = None,
    winner: WinnerColumn = None,
    weight: WeightColumn = None,
    count: CountColumn = None,
    group: GroupColumn = None,
    time_column: TimeColumn = None,
    duration_column: DurationColumn = None,
    in_order: InOrder = False,
    since: Since = None,
    until: Until = None,
    anonymous: Anonymous = False,
    id: IdColumn = None,
    feature: FeatureNames = None,
    label: Labels = None,
    both_bad: BothBadVotes = BothBad.tie,
    drop_invalid: DropInvalid = False,
    without: Without = None,
) -> VotesToRead:
    if not all(votes):
        raise InvalidSetting("the name of the file of votes is empty.")
    options = {
        "format": input_format, "preset": preset, "user": user, "left": left, "right": right,
        "winner": winner, "weight": weight, "count": count, "group": group,
        "labels": _labels(label or []), "both_bad": both_bad.value, "drop_invalid": drop_invalid,
        "features": feature or None, "time": time_column, "duration": duration_column,
        "in_order": in_order, "since": since, "until": until, "anonymous": anonymous, "id": id,
    }  # fmt: skip
    return VotesToRead(votes, options, without or [])


def reads_votes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of how votes are read in place of its parameter ``votes``."""
    return gathers("votes", _votes_to_read)(command)


def may_read_votes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command --votes, and the options of how they are read; nothing without --votes."""
    asked = inspect.signature(_votes_to_read, eval_str=True)
    option = typer.Option("--votes", help="File of votes to predict by both models.")
    first, *others = asked.parameters.values()
    held_out = first.replace(default=None, annotation=Annotated[str | None, option])

    def gather(**given: Any) -> VotesToRead | None:
        if given["votes"] is not None:
            return _votes_to_read(**given)
        for each in others:
            if given[each.name] != each.default:
                name = each.name.replace("_", "-")
                raise InvalidSetting(f"--{name} says how votes are read; give --votes, too.")
        return None

    whole = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (held_out, *others)]
    gather.__signature__ = asked.replace(parameters=whole)  # type: ignore[attr-defined]
    return gathers("votes", gather)(command)


def _labels(pairs: list[str]) -> dict[str, str]:
    """Take words and their meanings apart; which meanings there are, the library knows."""
    labels = {}
    for pair in pairs:
        word, equals, meaning = pair.rpartition("=")
        if not equals:
            raise InvalidSetting(
                f"--label {pair} is not of the form word=left, word=tie or word=right."
            )
        labels[word] = meaning
    return labels


def called(given: list[str] | None) -> dict[str, str] | None:
    """Take things and what they are called apart; nothing where nothing is given."""
    from isplitlbi.nouns import Nouns

    call: dict[str, str] = {}
    for each in given or ():
        thing, equals, word = each.partition("=")
        if not equals:
            raise InvalidSetting(f"--call {each}: expected THING=WORD, such as items=models.")
        if thing in call:
            raise InvalidSetting(f"--call {thing} is given twice; give it once.")
        call[thing] = word
    Nouns.of(call)
    return call or None


# --- files to write ------------------------------------------------------------------------


def refuse_existing_file(file: Path, *, force: bool) -> None:
    """Refuse to write where something is, unless forced, and then only over a file."""
    if file.is_dir():
        raise PlaceTaken(f"{file} is a folder; name a file in it.")
    if not file.parent.is_dir():
        raise InvalidSetting(f"{file.parent}: there is no such folder.")
    if file.exists() and not force:
        raise PlaceTaken(
            f"{file} exists already; choose another name or use ", Setting("force", True), "."
        )
