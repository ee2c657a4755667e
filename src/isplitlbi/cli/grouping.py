"""The command on all users of a model together: groups."""

from __future__ import annotations

from typing import Annotated

import typer

from isplitlbi.cli.models import load
from isplitlbi.cli.options import As, Call, Model, Quiet
from isplitlbi.output.groups import print_groups
from isplitlbi.output.terminal import (
    Format,
    emit,
    late_bar,
    listen_to_remarks,
    print_json,
    standard_output,
)


def groups(
    model: Model,
    most: Annotated[
        int, typer.Option(metavar="K", help="How many groups there may be, from 1 to 8.")
    ] = 5,
    call: Call = None,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Show whether people fall into groups that want the same, and what the groups disagree on.

    There are several groups only if they predict held-out votes clearly better than one group, and
    better than people who differ by degrees; the usual answer is one group. With --format csv, it
    writes every user, the user's group, and how probable that is.
    """
    from isplitlbi.output.tables import as_polars

    listen_to_remarks(quiet)
    fitted = load(model, call)
    with late_bar("Grouping", quiet) as progress:
        found = fitted.groups(most, progress=lambda share: progress(share, fitted.nouns.users))
    if format is Format.table:
        print_groups(standard_output(), found)
    elif format is Format.csv:
        emit(as_polars(found), format)
    else:
        print_json(found.as_dict())
