"""The commands on votes that are not there yet: next, and plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isplitlbi.cli.models import RowsFile, known, load
from isplitlbi.cli.options import As, Call, Model, Quiet, refuse_existing_file
from isplitlbi.errors import InvalidSetting
from isplitlbi.markup import printable
from isplitlbi.output.terminal import (
    Format,
    emit,
    late_bar,
    listen_to_remarks,
    print_json,
    remark,
    standard_output,
)

if TYPE_CHECKING:
    from isplitlbi.estimators.base import ScoreEstimator
    from isplitlbi.evaluation.first_plan import FirstPlan

Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
AimOfVotes = Annotated[
    str,
    typer.Option(
        metavar="ranking|person|'top K'",
        help="What is to be known: the order of all items, the user's own order, or the first K "
        "places ('top 3' or top3).",
    ),
]

# --- next ----------------------------------------------------------------------------------

Whom = Annotated[
    list[str] | None,
    typer.Option(
        "--users",
        metavar="FILE|ID",
        help="Whom to ask: a file with a column user, or an id. May be repeated. By default all "
        "but the unreliable.",
    ),
]
Among = Annotated[
    Path | None,
    typer.Option(
        help="File of pairs to choose from, as for predict (user, left, right). Sides stay as they "
        "are there."
    ),
]


def next_(
    model: Model,
    n: Annotated[int, typer.Option("-n", help="How many votes to ask for.")] = 20,
    users: Whom = None,
    aim: AimOfVotes = "ranking",
    per_user: Annotated[
        int | None,
        typer.Option(help="How many votes to ask of a user, at most. By default they are spread."),
    ] = None,
    new_only: Annotated[
        bool, typer.Option("--new-only", help="Only pairs that the user has not voted on before.")
    ] = False,
    among: Among = None,
    output: RowsFile = None,
    force: Force = False,
    call: Call = None,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Choose the votes to ask for next: whom, about which two items.

    Each vote is chosen for what it is expected to tell beside those before it (gain, in bits).
    Votes that connect parts of a study come first. Every item stands on the left about as often as
    on the right.
    """
    from isplitlbi.output.rows import refuse_unknown_ending, rows_to_file
    from isplitlbi.output.tables import as_polars

    if output is not None:
        refuse_unknown_ending(output)
        refuse_existing_file(output, force=force)
    listen_to_remarks(quiet)
    fitted = load(model, call)
    with late_bar("Choosing", quiet) as progress:
        found = fitted.next_pairs(
            n, users=_named(fitted, users), aim=aim, per_user=per_user, new_only=new_only,
            among=None if among is None else _pairs(among),
            progress=lambda share: progress(share, ""),
        )  # fmt: skip
    table = as_polars(found)
    if not quiet:
        for user, worth in list(found.worth_little.items())[:5]:
            remark(
                f"A vote of {printable(str(user))} tells {worth:.2f} times as much as one of the "
                f"{fitted.nouns.user} in the middle."
            )
    if output is not None:
        with rows_to_file(output) as write:
            write(table)
        print(f"Votes to ask for: {printable(str(output))} ({len(found):,}).")
    else:
        emit(table, format, fitted.nouns)


def _named(model: ScoreEstimator, names: list[str] | None) -> list[Any] | None:
    """Return the users that are named, by id or in files."""
    from isplitlbi.data.leaving import read_ids

    if not names:
        return None
    found: list[Any] = []
    for name in names:
        if not Path(name).is_file():
            found.append(known(model, "user", name))
            continue
        kind, ids = read_ids(name)
        if kind != "user":
            raise InvalidSetting(f"{name}: it has a column of items; give one with a column user.")
        found += [known(model, "user", each) for each in ids.to_list()]
    return found


def _pairs(file: Path) -> Any:
    from isplitlbi.data.pairs import read_pairs

    return read_pairs(file)


# --- plan ----------------------------------------------------------------------------------

Target = Annotated[
    float,
    typer.Option(
        help="Between 0 and 1: Kendall's tau with the true order (aim ranking), or the probability "
        "that the first places are right (aim top K)."
    ),
]
AimOfPlan = Annotated[
    str,
    typer.Option(metavar="ranking|'top K'", help="What is to be known ('top 3' or top3)."),
]
OF_STUDY = "Of a study without votes: "
Spread = Annotated[
    float, typer.Option(help=f"{OF_STUDY}standard deviation of the scores, in logits.")
]
OwnTaste = Annotated[
    float, typer.Option(help=f"{OF_STUDY}standard deviation of users' own tastes, in logits.")
]
FirstDesign = Annotated[
    Path | None,
    typer.Option(
        help=f"{OF_STUDY}file for a balanced first design, with a block of pairs per user (.csv, "
        ".jsonl or .parquet)."
    ),
]
VotesOfDesign = Annotated[
    int | None,
    typer.Option(help="How many votes the design has; by default as many as are enough."),
]


def plan(
    model: Annotated[
        Path | None, typer.Argument(help="Model folder; none for a study without votes.")
    ] = None,
    aim: AimOfPlan = "ranking",
    target: Target = 0.9,
    items: Annotated[int | None, typer.Option(help=f"{OF_STUDY}how many items.")] = None,
    users: Annotated[int | None, typer.Option(help=f"{OF_STUDY}how many users.")] = None,
    ties: Annotated[float, typer.Option(help=f"{OF_STUDY}the share of ties.")] = 0.2,
    spread: Spread = 1.0,
    taste: OwnTaste = 0.3,
    seed: Annotated[int, typer.Option(help=f"{OF_STUDY}the seed.")] = 0,
    design: FirstDesign = None,
    votes: VotesOfDesign = None,
    force: Force = False,
    call: Call = None,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Say how certain the order is, how many more votes are needed, and whether you can stop.

    Without a model, studies of a given size are simulated: how many votes would be enough.
    """
    from isplitlbi.evaluation.first_plan import plan_study
    from isplitlbi.output.rows import refuse_unknown_ending

    listen_to_remarks(quiet)
    if model is not None:
        if items is not None or users is not None or design is not None:
            raise InvalidSetting(
                "--items, --users and --design are of a study without votes: leave out the model, "
                "or leave out these."
            )
        _plan_of_model(model, aim, target, call, quiet=quiet, format=format)
        return
    if items is None or users is None:
        raise InvalidSetting(
            "name a model folder; or give --items and --users, for a study without votes."
        )
    if votes is not None and votes < 1:
        raise InvalidSetting(f"--votes is {votes}; it must be a whole number from 1 on.")
    if design is not None:
        refuse_unknown_ending(design)
        refuse_existing_file(design, force=force)
    with late_bar("Simulating", quiet) as progress:
        found = plan_study(
            items, users, ties=ties, spread=spread, taste=taste, aim=aim, target=target,
            random_state=seed, progress=lambda share: progress(share, ""),
        )  # fmt: skip
    _show_first_plan(found, format)
    if design is not None:
        said = _write_design(found, design, votes, seed)
        if format is Format.table:
            print(printable(said))
        elif not quiet:
            remark(said)


def _show_first_plan(plan: FirstPlan, format: Format) -> None:
    from isplitlbi.output.planning import print_first_plan
    from isplitlbi.output.tables import as_polars

    if format is Format.table:
        print_first_plan(standard_output(), plan)
    else:
        emit(as_polars(plan), format)


def _write_design(plan: FirstPlan, file: Path, votes: int | None, seed: int) -> str:
    from isplitlbi.output.rows import rows_to_file

    table = plan.design(votes, seed)
    with rows_to_file(file) as write:
        write(table)
    return f"First design: {file} ({table.height:,} votes)."


def _plan_of_model(
    folder: Path, aim: str, target: float, call: list[str] | None, *, quiet: bool, format: Format
) -> None:
    from isplitlbi.output.planning import plan_as_dict, print_plan
    from isplitlbi.output.tables import as_polars

    fitted = load(folder, call)
    with late_bar("Looking ahead", quiet) as progress:
        found = fitted.plan(aim, target, progress=lambda share: progress(share, ""))
    if format is Format.csv:
        emit(as_polars(found), format)
    elif format is Format.json:
        print_json(plan_as_dict(found))
    else:
        print_plan(standard_output(), found)
