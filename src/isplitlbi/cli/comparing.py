"""The command on two models: compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isplitlbi.cli.models import load, refuse_same_folder
from isplitlbi.cli.options import As, Call, Quiet, VotesToRead, may_read_votes
from isplitlbi.output.changes import print_changes
from isplitlbi.output.terminal import (
    Format,
    emit,
    listen_to_remarks,
    print_json,
    remark,
    standard_output,
)

if TYPE_CHECKING:
    from isplitlbi.data.comparisons import Comparisons
    from isplitlbi.estimators.base import ScoreEstimator

Before = Annotated[Path, typer.Argument(help="Model folder: the model before.")]
After = Annotated[Path, typer.Argument(help="Model folder: the model after.")]


@may_read_votes
def compare(
    before: Before,
    after: After,
    votes: VotesToRead | None,
    call: Call = None,
    quiet: Quiet = False,
    format: As = Format.table,
) -> None:
    """Show what changed between two models of a study, and whether it is more than chance.

    That is ranks and scores with intervals, pairs that changed order, users who became abnormal or
    ceased to be. With --votes, it also says which model predicts these votes better; the options
    on columns say how that file is read.
    """
    from isplitlbi.estimators.comparing import compare as compared
    from isplitlbi.output.tables import as_polars

    listen_to_remarks(quiet)
    refuse_same_folder(before, after)
    models = load(before, call), load(after, call)
    found = compared(*models, None if votes is None else _read(votes, models, quiet))
    if format is Format.table:
        print_changes(standard_output(), found)
        return
    if format is Format.csv:
        emit(as_polars(found), format)
    else:
        print_json(found.as_dict())
    if found.held_out is not None and not quiet:
        for sentence in found.held_out.remarks(found.nouns):
            remark(sentence)


def _read(
    votes: VotesToRead, models: tuple[ScoreEstimator, ScoreEstimator], quiet: bool
) -> Comparisons:
    """Read votes to predict, with the features of the models unless others are asked for."""
    if votes.options.get("features") is None:
        units = [model.summary_.units for model in models]
        names = sorted({name for each in units if each is not None for name in each.names})
        votes = votes._replace(options=votes.options | {"features": names or None})
    return votes.read(quiet=quiet).votes
