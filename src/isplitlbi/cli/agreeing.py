"""The command on how far people agree: agree."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from isplitlbi.cli.options import As, Call, Quiet, Seed, VotesToRead, called, reads_votes
from isplitlbi.output.agreement import print_agreement
from isplitlbi.output.terminal import (
    Format,
    emit,
    late_bar,
    listen_to_remarks,
    print_json,
    remark,
    standard_output,
)


class By(StrEnum):
    """Whose agreement is listed."""

    users = "users"
    pairs = "pairs"


Listed = Annotated[
    By | None,
    typer.Option(
        "--by",
        help="List each user beside all others (users), or every two users with five common pairs "
        "of items or more (pairs).",
    ),
]
Splits = Annotated[
    int, typer.Option(min=1, help="How many times people are split at random in halves.")
]


@reads_votes
def agree(
    votes: VotesToRead,
    by: Listed = None,
    splits: Splits = 40,
    call: Call = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Say how far people agree: on the same pairs of items, and in the scores that they give.

    That is agreement and Krippendorff's alpha, with 95 % intervals for other people, and whether
    halves of the people, drawn at random, give the same scores. Who agrees least is named. With
    --format csv, it writes a row for each number: measure, value, low, high; json has everything.
    """
    from isplitlbi.diagnostics.agreement import agreement
    from isplitlbi.output.tables import as_polars

    listen_to_remarks(quiet)
    words = called(call)
    read = votes.read(quiet=quiet).votes
    with late_bar("Comparing", quiet) as progress:
        found = agreement(read, n_splits=splits, seed=seed, call=words, progress=progress)
    if by is not None:
        table = found.users_table() if by is By.users else found.pairs_table()
        emit(table, format, found.nouns)
    elif format is Format.table:
        print_agreement(standard_output(), found)
        return
    elif format is Format.csv:
        emit(as_polars(found), format)
    else:
        print_json(found.as_dict())
        return
    if not quiet:
        for sentence in found.remarks:
            remark(sentence)
