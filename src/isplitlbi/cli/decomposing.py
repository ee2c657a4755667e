"""The command on what users' deviations are made of: decompose."""

from __future__ import annotations

from typing import Annotated

import typer

from isplitlbi.cli.models import known, load
from isplitlbi.cli.options import As, Call, Model
from isplitlbi.output.terminal import Format, emit, standard_output

NoiseLevel = Annotated[
    float,
    typer.Option(
        help="How many standard deviations of noise a number must exceed to be personal; 0 or more."
    ),
]
WhoseParts = Annotated[
    str | None, typer.Option("--user", help="Show only this user, with all numbers of the user.")
]


def decompose(
    model: Model,
    user: WhoseParts = None,
    noise_level: NoiseLevel = 2.0,
    call: Call = None,
    format: As = Format.table,
) -> None:
    """Show what users' deviations from the consensus are made of: strong, personal, noise.

    Strong is all of a user who has left the consensus at the chosen time. Those who left come
    first. With --format csv or json, it writes every number: user, term, item, part, deviation.
    """
    import polars as pl

    from isplitlbi.output.parts import print_parts, print_parts_of_user
    from isplitlbi.output.tables import as_polars

    fitted = load(model, call)
    who = known(fitted, "user", user)
    parts = fitted.decompose(noise_level)
    if who is None and format is Format.table:
        print_parts(standard_output(), fitted, parts, noise_level)
        return
    table = as_polars(parts)
    if who is not None:
        table = table.filter(pl.col("user") == who)
    if format is Format.table:
        print_parts_of_user(standard_output(), fitted, parts, who)
        largest_first = table.sort(pl.col("deviation").abs(), descending=True, maintain_order=True)
        table = largest_first.drop("user")
    emit(table, format, fitted.nouns)
