"""The command that needs no input: the paper's simulated study from votes to a report."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from isplitlbi.cli.models import save_report
from isplitlbi.cli.options import Quiet, Seed, Threads, refuse_existing_file
from isplitlbi.cli.settings import ModelSettings, refuse_unknown_scales, takes_settings
from isplitlbi.output.people import print_entries
from isplitlbi.output.summary import print_differences, print_tiers
from isplitlbi.output.terminal import (
    listen_to_remarks,
    model_bar,
    print_scores,
    print_simulation,
    standard_output,
)

if TYPE_CHECKING:
    from isplitlbi.data.comparisons import Comparisons
    from isplitlbi.estimators.isplitlbi import ISplitLBI


@takes_settings
def demo(
    settings: ModelSettings,
    seed: Seed = 0,
    users: Annotated[int, typer.Option(min=2, help="Number of users.")] = 50,
    items: Annotated[int, typer.Option(min=2, help="Number of items.")] = 20,
    output: Annotated[
        Path | None, typer.Option("--report", help="Also write the report to this HTML file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing report.")] = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Run the paper's simulated study, from votes to results. It needs no input."""
    from isplitlbi.data.splits import split_within_user
    from isplitlbi.estimators.isplitlbi import ISplitLBI
    from isplitlbi.evaluation.simulate import simulate

    listen_to_remarks(quiet)
    refuse_unknown_scales(settings)
    if output is not None:
        refuse_existing_file(output, force=force)
    study = simulate(n_users=users, n_items=items, random_state=seed)
    training, held_out = split_within_user(study.votes, 0.2, rng=seed)
    console = standard_output()
    print_simulation(console, study, seed, len(held_out))
    begun = perf_counter()
    with model_bar("Fitting", quiet) as progress:
        model = ISplitLBI(random_state=seed, n_jobs=threads, **settings).fit(
            training, progress=progress
        )
    seconds = perf_counter() - begun
    print_differences(console, model)
    print_tiers(console, model)
    print_entries(console, model, study.truth)
    print_scores(console, _scores(model, training, held_out))
    console.print(
        f"\nFitted in {seconds:.1f} s: {model.n_folds} folds and the final path, "
        f"{model.path_.n_steps} steps of it; stopped at t = {model.time_:.3g}."
    )
    if output is not None:
        save_report(model, output, "The simulated study of isplitlbi demo", quiet)


def _scores(
    model: ISplitLBI, training: Comparisons, held_out: Comparisons
) -> dict[str, dict[str, float]]:
    """Score the model on held-out votes, and one consensus for everybody.

    With plain loops: to compile them for nothing but this would take longer than all of it.
    """
    from isplitlbi.estimators.margin_mle import MarginMLE
    from isplitlbi.runtime.local import Local
    from isplitlbi.selection import score_votes

    plain = "numpy"
    one_for_all = MarginMLE(delta=model.delta, backend=plain).fit(training)
    loops = Local(held_out, backend=plain).loops
    return {
        name: score_votes(held_out, each.parameters_, each.link_, loops=loops)
        for name, each in {"consensus only": one_for_all, "iSplit LBI": model}.items()
    }
