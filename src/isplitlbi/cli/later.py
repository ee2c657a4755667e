"""The commands for what comes after a fit: place new people, update a model with new votes."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from isplitlbi.cli.exits import Interrupted
from isplitlbi.cli.models import RowsFile, load
from isplitlbi.cli.options import (
    As,
    Call,
    Model,
    Quiet,
    Threads,
    VotesToRead,
    reads_votes,
    refuse_existing_file,
)
from isplitlbi.cli.votes import ForceModel, ModelOutput, Resume, show_fit
from isplitlbi.errors import InvalidSetting
from isplitlbi.markup import printable
from isplitlbi.output.terminal import (
    Format,
    late_bar,
    listen_to_remarks,
    model_bar,
    remark,
    standard_output,
)

if TYPE_CHECKING:
    import polars as pl

    from isplitlbi.estimators.isplitlbi import ISplitLBI

# --- place ---------------------------------------------------------------------------------

PeopleAs = Annotated[
    Format,
    typer.Option(
        "--format",
        help="How to write to standard output. csv and json are written while the file is read, "
        "a table at the end.",
    ),
]
WithoutTests = Annotated[
    bool, typer.Option("--without-tests", help="Do not test the people: no p-value, no kind.")
]


@reads_votes
def place(
    model: Model,
    votes: VotesToRead,
    output: RowsFile = None,
    without_tests: WithoutTests = False,
    call: Call = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    format: PeopleAs = Format.table,
) -> None:
    """Place people who came after the fit: each by their own votes, nothing is fitted again.

    Each person gets all that a user of the model has: scores with intervals, a ranking, the time
    of leaving the consensus, tests, kind and quality. csv and json have one row per user: the
    columns of abnormal, then those of rank --user as lists, the best item first.
    Name one file. It may be larger than memory; then all votes of a user must stand together in it.
    With --drop-invalid, votes on unknown items are left out and counted, too.
    """
    from isplitlbi.data.options import Options
    from isplitlbi.data.people import stream_people
    from isplitlbi.data.vocabulary import counted
    from isplitlbi.output.placing import as_text_cells, for_people, place_in_bulk
    from isplitlbi.output.rows import refuse_unknown_ending, rows_to_file, rows_to_output

    if output is not None:
        refuse_unknown_ending(output)
        refuse_existing_file(output, force=force)
    listen_to_remarks(quiet)
    fitted = _with_path(model, call, threads)
    votes = _with_features(votes, fitted)
    people = stream_people(votes.only_file(), Options(**votes.options))
    is_text = format is Format.csv if output is None else output.suffix.lower() == ".csv"
    is_table = output is None and format is Format.table
    rows = rows_to_output(format, fitted.nouns) if output is None else rows_to_file(output)
    shows_rows = output is None and not is_table and sys.stdout.isatty()
    with late_bar("Placing", quiet or shows_rows) as progress, rows as write:

        def write_as_asked(table: pl.DataFrame) -> None:
            write(for_people(table) if is_table else as_text_cells(table) if is_text else table)

        found = place_in_bulk(
            fitted, people, write_as_asked, progress,
            with_tests=not without_tests, drops_unknown=votes.options["drop_invalid"],
        )  # fmt: skip
    if output is not None:
        placed = f"{fitted.nouns.n_users(found.n_users)}, {counted(found.n_votes, 'vote')}"
        print(f"People: {printable(str(output))} ({placed}).")
    if not quiet:
        for note in found.notes:
            remark(str(note))
        for sentence in found.sentences(fitted.nouns):
            remark(sentence)


def _with_path(model: Path, call: list[str] | None, threads: int | None) -> ISplitLBI:
    """Read a model of a path; others cannot go on."""
    from isplitlbi.estimators.isplitlbi import ISplitLBI

    fitted = load(model, call, threads)
    if not isinstance(fitted, ISplitLBI):
        raise InvalidSetting(
            f"{model}: a model of {type(fitted).__name__} has no path to go on from. Fit ISplitLBI."
        )
    return fitted


def _with_features(votes: VotesToRead, model: ISplitLBI) -> VotesToRead:
    """Let votes be read with the features of a model, unless others are named."""
    units = model.summary_.units
    if units is None or votes.options["features"]:
        return votes
    return votes._replace(options=votes.options | {"features": list(units.names)})


# --- update --------------------------------------------------------------------------------

Reselect = Annotated[
    bool,
    typer.Option(
        "--reselect",
        help="Choose everything anew, as a new fit would. By default nu, kappa, the scales and the "
        "time stay those of the model, and so there is no cross-validation.",
    ),
]
DropRepeated = Annotated[
    bool,
    typer.Option(
        "--drop-repeated",
        help="Leave out new votes that the model has already: those with the same id (--id) or, "
        "without ids, those that are the same in everything.",
    ),
]
Retest = Annotated[
    bool,
    typer.Option(
        "--retest",
        help="Test all users anew. By default, where there are few new votes and no new items, "
        "users are tested who have a tenth more votes than when they were tested.",
    ),
]


@reads_votes
def update(
    model: Model,
    votes: VotesToRead,
    output: ModelOutput,
    reselect: Reselect = False,
    drop_repeated: DropRepeated = False,
    retest: Retest = False,
    force: ForceModel = False,
    resume: Resume = False,
    threads: Threads = None,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Fit the votes of a model and new ones together, and write another model.

    There may be new users and new items. What was chosen for the model stays. The model itself is
    left as it is. See what changed with compare, or with report --since.
    """
    from isplitlbi.storage import save_model
    from isplitlbi.unfinished import Unfinished

    listen_to_remarks(quiet)
    unfinished = Unfinished.fit_of(output, resume=resume, force=force)
    fitted = _with_path(model, None, threads)
    new = _with_features(votes, fitted).read(quiet=quiet).votes
    begun = perf_counter()
    try:
        with unfinished:
            with model_bar("Updating", quiet) as progress:
                updated = fitted.update(
                    new, reselect=reselect, repeated="drop" if drop_repeated else "keep",
                    retest=retest,
                    progress=progress, checkpoints=unfinished.folder,
                )  # fmt: skip
            save_model(updated, output, force=force)
    except KeyboardInterrupt:
        if unfinished.can_be_resumed:
            raise Interrupted("go on with the same command and --resume.") from None
        raise
    if format is Format.table:
        standard_output().print(_added(fitted, updated), highlight=False)
    show_fit(updated, output, perf_counter() - begun, format)


def _added(before: ISplitLBI, after: ISplitLBI) -> str:
    """Say what is new."""
    from isplitlbi.data.vocabulary import counted

    nouns = after.nouns
    n_users, n_items = (
        len(getattr(after, name)) - len(getattr(before, name)) for name in ("users_", "items_")
    )
    n_votes = counted(after.summary_.n_votes - before.summary_.n_votes, "vote")
    return (
        f"New: {n_votes}, with {nouns.n_users(n_users)} and {nouns.n_items(n_items)} that are new."
    )
