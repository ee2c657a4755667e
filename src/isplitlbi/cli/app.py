"""The application: all commands, in the order in which --help lists them."""

from __future__ import annotations

from typing import Annotated

import typer

import isplitlbi
from isplitlbi.cli import (
    agreeing,
    comparing,
    decomposing,
    demo,
    grouping,
    later,
    models,
    planning,
    votes,
)

__all__ = ["app"]

app = typer.Typer(
    name="isplitlbi",
    help="Turn votes on pairs, with ties, into a consensus ranking, a ranking for every user, and "
    "lists of abnormal users.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

COMMANDS = (
    votes.check,
    agreeing.agree,
    votes.fit,
    votes.evaluate,
    votes.simulate,
    models.rank,
    models.abnormal,
    decomposing.decompose,
    grouping.groups,
    models.predict,
    models.recommend,
    models.report,
    later.place,
    later.update,
    comparing.compare,
    planning.next_,
    planning.plan,
    demo.demo,
)
for command in COMMANDS:
    app.command(command.__name__.rstrip("_"))(command)  # next is a word of Python's


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"isplitlbi {isplitlbi.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Turn votes on pairs into rankings with ties: a common one, and one for every user."""
