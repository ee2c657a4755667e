"""The command line: parse, call the library, print.

Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

import isplitlbi

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from isplitlbi.estimators import ISplitLBI
    from isplitlbi.simulate import Truth
    from isplitlbi.solvers import Progress

app = typer.Typer(
    name="isplitlbi",
    help="From votes on pairs, with ties, to a consensus ranking, everyone's own, and the abnormal "
    "users.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    app()


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"isplitlbi {isplitlbi.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """From votes on pairs to rankings with ties, one for everybody and one for each."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the simulated votes and of the folds.")] = 0,
    users: Annotated[int, typer.Option(min=2, help="Number of users.")] = 50,
    items: Annotated[int, typer.Option(min=2, help="Number of items.")] = 20,
) -> None:
    """Run the paper's simulated study end to end; no input needed."""
    from rich.console import Console

    from isplitlbi.estimators import ISplitLBI
    from isplitlbi.links import Logistic
    from isplitlbi.parameters import Parameters
    from isplitlbi.selection import score_votes
    from isplitlbi.simulate import simulate
    from isplitlbi.solvers import fit_consensus

    console = Console(highlight=False)
    votes, truth = simulate(n_users=users, n_items=items, random_state=seed)
    training, held_out = votes.split_within_user(0.2, rng=seed)
    console.print(f"[bold]Simulated study[/], seed {seed}: {repr(votes).split(': ')[1]}.")
    console.print(
        f"{int(truth.abnormal.sum())} users have a taste of their own; the others share one. "
        f"{len(held_out):,} votes are held out.\n"
    )
    begun = perf_counter()
    with _progress_bar("Fitting") as progress:
        model = ISplitLBI(random_state=seed).fit(training, progress=progress)
    seconds = perf_counter() - begun

    _print_tiers(console, model)
    _print_entries(console, model, truth)

    link = Logistic()
    alone = fit_consensus(training, link, model.delta)
    nobody = Parameters(votes.slots, alone, 0.0 * model.parameters_.deviation)
    scores = {
        "consensus only": score_votes(held_out, nobody, link),
        "iSplit LBI": score_votes(held_out, model.parameters_, link),
    }
    _print_scores(console, scores)
    console.print(
        f"\nFitted in {seconds:.1f} s: {model.n_folds} folds and the final path, "
        f"{model.path_.n_steps} steps of it; stopped at t = {model.time_:.3g}."
    )


def _print_tiers(console: Console, model: ISplitLBI) -> None:
    from rich.table import Table

    ranking = model.ranking()
    table = Table(title="Consensus, in tiers", title_justify="left", box=None, pad_edge=False)
    table.add_column("tier", justify="right")
    table.add_column("items (score)", overflow="fold")
    by_tier: dict[int, list[str]] = {}
    for tier, item, score in zip(ranking.tier, ranking.items, ranking.scores, strict=True):
        by_tier.setdefault(int(tier), []).append(f"{item} ({score:.2f})")
    for tier, members in by_tier.items():
        table.add_row(str(tier), ", ".join(members))
    console.print(table)
    console.print(f"Two items tie when their scores differ by at most {ranking.threshold:.2f}.\n")


def _print_entries(console: Console, model: ISplitLBI, truth: Truth) -> None:
    from rich.table import Table

    table = Table(
        title="Users who left the consensus, in order", title_justify="left", box=None,
        pad_edge=False,
    )  # fmt: skip
    for name, justify in (("user", "left"), ("entry time", "right"), ("distance", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("truly")
    index = {user: place for place, user in enumerate(model.users_.tolist())}
    distance = model.distance_to_consensus()
    for user in model.abnormal_users_:
        place = index[user]
        table.add_row(
            user, f"{model.entry_times_[place]:.3f}", f"{distance[place]:.1f}", truth.kind[place]
        )
    console.print(table)
    found = {index[user] for user in model.abnormal_users_}
    true = {place for place, abnormal in enumerate(truth.abnormal) if abnormal}
    console.print(
        f"{len(found & true)} of the {len(true)} truly abnormal users found, "
        f"{len(found - true)} others named.\n"
    )


def _print_scores(console: Console, scores: dict[str, dict[str, float]]) -> None:
    from rich.table import Table

    table = Table(title="On held-out votes", title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in ("micro-F1", "macro-F1", "log-loss"):
        table.add_column(name, justify="right")
    for name, values in scores.items():
        row = (values["micro_f1"], values["macro_f1"], values["log_loss"])
        table.add_row(name, *(f"{value:.3f}" for value in row))
    console.print(table)


@contextmanager
def _progress_bar(what: str) -> Iterator[Callable[[Progress], None]]:
    """Show a bar on standard error while the work goes on."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"{what} (the first run compiles the loops)", total=1.0)

        def tell(progress: Progress) -> None:
            bar.update(
                task,
                completed=progress.done,
                description=f"{what}: {progress.users_out} users out",
            )

        yield tell
