"""What results look like on a terminal, in CSV and in JSON; and the bar while one waits.

rich is imported where it prints, because importing it takes longer than answering --help.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from isplitlbi.markup import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl
    from rich.console import Console
    from rich.table import Table

    from isplitlbi.abnormal import Abnormality
    from isplitlbi.data.readers import Reading
    from isplitlbi.diagnostics.findings import Diagnosis
    from isplitlbi.estimators.base import ScoreEstimator
    from isplitlbi.estimators.isplitlbi import ISplitLBI
    from isplitlbi.evaluation.protocol import Evaluation
    from isplitlbi.evaluation.simulate import Study, Truth
    from isplitlbi.runtime.progress import Progress

__all__ = [
    "Format",
    "emit",
    "listen_to_remarks",
    "model_bar",
    "of_ids",
    "print_abnormal",
    "print_check",
    "print_entries",
    "print_evaluation",
    "print_json",
    "print_notes",
    "print_scores",
    "print_simulation",
    "print_table",
    "print_user",
    "print_whole",
    "progress_bar",
    "remark",
    "standard_output",
    "text_table",
    "width_of",
]


WIDEST = 100_000  # columns
IDS = ("user", "item", "left", "right")  # columns of ids in tables


class Format(StrEnum):
    """How a result is written."""

    table = "table"
    csv = "csv"
    json = "json"


def emit(table: pl.DataFrame, format: Format) -> None:
    """Write a table to standard output."""
    if format is Format.csv:
        sys.stdout.write(table.write_csv())
    elif format is Format.json:
        print_json(table.to_dicts())
    else:
        from rich.table import Table
        from rich.text import Text

        console, shown = standard_output(), Table(box=None, pad_edge=False)
        for name, kind in table.schema.items():
            shown.add_column(
                name.replace("_", " "), justify="right" if kind.is_numeric() else "left",
                **(of_ids(console) if name in IDS else {"overflow": "fold"}),
            )  # fmt: skip
        for row in table.iter_rows():
            shown.add_row(*(Text(_shown(value)) for value in row))
        print_table(console, shown)


def of_ids(console: Console) -> dict[str, Any]:
    """Return how a column of ids is shown: folded on a terminal, whole everywhere else."""
    return {"overflow": "fold", "no_wrap": not console.is_terminal}


def print_table(console: Console, table: Table) -> None:
    """Print a table; where there is no terminal, no id in it is broken, however long."""
    from rich.measure import Measurement

    if not console.is_terminal:
        unbounded = console.options.update(max_width=WIDEST)
        for column in table.columns:
            if column.no_wrap:
                cells = (Measurement.get(console, unbounded, cell) for cell in column.cells)
                column.min_width = max((cell.maximum for cell in cells), default=0)
        needed = Measurement.get(console, unbounded, table).minimum
        if needed > console.width:
            usual, console.width = console.width, needed
            console.print(table)
            console.width = usual
            return
    console.print(table)


def print_whole(console: Console, table: Table) -> None:
    """Print a table; where there is no terminal, no cell in it is broken."""
    for column in table.columns:
        column.no_wrap = column.no_wrap or not console.is_terminal
    print_table(console, table)


def width_of(table: Table) -> int:
    """Return how wide a table is that has all the room that it needs."""
    from rich.console import Console

    roomy = Console(width=WIDEST)
    return roomy.measure(table).maximum


def text_table(cells: Sequence[Sequence[str]], gap: int = 2) -> Table:
    """Return a table of texts, the headings first: names on the left, numbers on the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for name in cells[0]:
        is_name, is_id = name in ("item", "other", "group"), name in ("item", "other")
        table.add_column(
            name, justify="left" if is_name else "right", overflow="fold", no_wrap=not is_id
        )
    for row in cells[1:]:
        table.add_row(*map(Text, row))
    return table


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return printable(str(value))


def print_json(value: Any) -> None:
    """Write a value to standard output as JSON."""
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def standard_output() -> Console:
    """Return where results are printed.

    What goes to a file or another program is not broken into lines, unless COLUMNS asks for it.
    """
    import os

    from rich.console import Console

    console = Console(highlight=False, emoji=False)
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = WIDEST
    return console


def listen_to_remarks(quiet: bool) -> None:
    """Let remarks of the library through to standard error, or not."""
    import logging

    logging.getLogger("isplitlbi").setLevel(logging.ERROR if quiet else logging.WARNING)


def remark(sentence: str) -> None:
    """Write a sentence to standard error, beside the results."""
    print(sentence, file=sys.stderr)


def print_notes(reading: Reading) -> None:
    """Print what was noted while votes were read."""
    for note in reading.notes:
        remark(str(note))


def print_check(console: Console, reading: Reading, diagnosis: Diagnosis) -> None:
    """Print what `check` found."""
    from rich.table import Table
    from rich.text import Text

    from isplitlbi.data.summary import Summary

    console.print(f"{Summary.of(reading.votes)} ({reading.preset}).", markup=False)
    for note in reading.notes:
        console.print(str(note), markup=False)
    figures = diagnosis.summary
    least, median, most = (figures[f"votes_per_user_{what}"] for what in ("min", "median", "max"))
    console.print(f"Votes per user: {least:g} to {most:g}, half of them at most {median:g}.")
    findings = Table.grid(padding=(0, 2, 1, 0))
    for finding in diagnosis.findings:
        severity = finding.severity.name.lower()
        findings.add_row(Text(severity, style="bold"), Text(printable(finding.sentence)))
    console.print()
    console.print(findings)


def print_simulation(console: Console, study: Study, seed: int, n_held_out: int) -> None:
    """Print what a simulated study consists of."""
    from isplitlbi.data.summary import Summary

    console.print(f"[bold]Simulated study[/], seed {seed}: {Summary.of(study.votes)}.")
    console.print(
        f"{int(study.truth.abnormal.sum())} users have a taste of their own; the others share one. "
        f"{n_held_out:,} votes are held out.\n"
    )


def print_entries(console: Console, model: ISplitLBI, truth: Truth) -> None:
    """Print who is abnormal, beside the truth of a simulation."""
    import polars as pl

    from isplitlbi.output.tables import users_table
    from isplitlbi.output.words import lists_in_words

    n_unreliable, n_different = len(model.unreliable_users_), len(model.different_users_)
    console.print(f"{lists_in_words(n_unreliable, n_different, len(model.users_))}.\n")
    truly = dict(zip(model.users_.tolist(), truth.kind, strict=True))
    table = users_table(model).filter("abnormal")
    names = [truly[user] for user in table["user"]]
    table = table.with_columns(truly=pl.Series(names, dtype=pl.String))
    _print_lists(console, table, ("user", "entry_rank", "effect", "kind", "quality", "truly"))
    named = set(model.abnormal_users_)
    true = set(model.users_[truth.abnormal].tolist())
    console.print(
        f"{len(named & true)} of the {len(true)} truly abnormal users found, "
        f"{len(named - true)} other{'' if len(named - true) == 1 else 's'} named.\n"
    )


def print_abnormal(
    console: Console, model: ScoreEstimator, found: Abnormality, shown: pl.DataFrame
) -> None:
    """Print which users are abnormal, in which way, and whether that changes the result."""
    from isplitlbi.abnormal import DIFFERENT, LEAST_USERS, UNRELIABLE
    from isplitlbi.output.words import chance_in_words, lists_in_words

    n_users = int((model.summary_.votes_per_user > 0).sum())
    n_unreliable, n_different = (int(found.on(name).sum()) for name in (UNRELIABLE, DIFFERENT))
    named = lists_in_words(n_unreliable, n_different, n_users)
    console.print(f"{named}; {chance_in_words(found.fdr)}.\n")
    if n_users < LEAST_USERS:
        console.print("With fewer than three users, nobody can tell who is unlike the others.")
    _print_lists(console, shown, ("user", "votes", "effect", "kind", "quality", "explanation"))
    if few := int((found.votes_needed > 0).sum()):
        most = int(found.votes_needed.max())
        users = "user has" if few == 1 else "users have"
        console.print(
            f"{few} {users} too few votes to be named at all; it would take up to {most} votes."
        )
    if n_unreliable == n_users:
        console.print("Nobody is left to make a consensus without the unreliable users.")
    elif n_unreliable and model.has_votes():
        console.print(model.effect_of_leaving_out(fdr=found.fdr).sentence())
    elif n_unreliable:
        console.print("What leaving them out would change: --effect reads the votes and tells.")
    if n_different:
        console.print(
            "Different is not bad: a taste of one's own, or a steady hand, is named too. "
            "Such users stay in the consensus."
        )


_HEADINGS = {"entry_rank": "left as"}
_ON_THE_RIGHT = ("votes", "entry_rank", "quality")


def _print_lists(console: Console, shown: pl.DataFrame, columns: Sequence[str]) -> None:
    """Print some users list by list; those who are on none come last."""
    from isplitlbi.output.words import LISTS_IN_WORDS

    for name, words in LISTS_IN_WORDS.items():
        title = f"{name.capitalize()}: {words}"
        _print_users(console, shown.filter(shown["list"] == name), title, columns)
    _print_users(console, shown.filter(shown["list"].is_null()), "On neither list", columns)


def _print_users(console: Console, shown: pl.DataFrame, title: str, columns: Sequence[str]) -> None:
    from rich.text import Text

    from isplitlbi.output.words import effect_in_words

    if len(shown) == 0:
        return
    table = _table(title)
    for name in columns:
        side = "right" if name in _ON_THE_RIGHT else "left"
        how = {"overflow": "fold", "no_wrap": name in ("effect", "kind")}
        how = of_ids(console) if name in IDS else how
        table.add_column(_HEADINGS.get(name, name), justify=side, **how)  # type: ignore[arg-type]
    for row in shown.iter_rows(named=True):
        told = {name: _shown(row[name]) for name in columns}
        told["effect"] = effect_in_words(row["effect"], row["effect_low"], row["effect_high"])
        told["quality"] = "-" if row["quality"] is None else f"{row['quality']:.2f}"
        table.add_row(*(Text(told[name]) for name in columns))
    print_table(console, table)
    console.print()


def print_user(console: Console, table: pl.DataFrame, user: str) -> None:
    """Print what is known of one user, before the votes that tell most."""
    from isplitlbi.output.words import LISTS_IN_WORDS, effect_in_words, p_in_words

    row = table.filter(table["user"].cast(str) == user).row(0, named=True)
    left = "never left" if row["entry_rank"] is None else f"left as number {row['entry_rank']}"
    figures = "no votes"
    if row["votes"]:
        effect = effect_in_words(row["effect"], row["effect_low"], row["effect_high"])
        figures = (
            f"{row['votes']} votes, {left}; effect {effect}, {p_in_words(row['p_value'])}, "
            f"q = {row['q_value']:.2g}, quality {row['quality']:.2f}"
        )
    console.print(f"{printable(user)}: {figures}.", markup=False)
    if row["list"]:
        also = f" ({p_in_words(row['p_unreliable'])})" if row["list"] == "unreliable" else ""
        console.print(f"{row['list'].capitalize()}: {LISTS_IN_WORDS[row['list']]}{also}.")
    if row["explanation"]:
        kind = f"{row['kind']}: " if row["kind"] else ""
        console.print(f"{kind}{row['explanation']}.", markup=False)
    console.print("\nWhat the consensus least expected:")


def print_scores(console: Console, scores: dict[str, dict[str, float]]) -> None:
    """Print scores on held-out votes."""
    table = _table("On held-out votes")
    table.add_column("")
    for name in ("micro-F1", "macro-F1", "log-loss"):
        table.add_column(name, justify="right")
    for name, values in scores.items():
        row = (values["micro_f1"], values["macro_f1"], values["log_loss"])
        table.add_row(name, *(f"{value:.3f}" for value in row))
    console.print(table)


def print_evaluation(console: Console, evaluation: Evaluation, with_reliability: bool) -> None:
    """Print what `evaluate` found: the paper's tables, the rest of the figures, the verdict."""
    from isplitlbi.evaluation.protocol import METRICS, SIDES, STATISTICS

    every = list(STATISTICS)
    classes = [side for side in SIDES if side != "tie" or evaluation.settings.get("ties") != "none"]
    sides = [f"{what}_{side}" for what in ("precision", "recall") for side in classes]
    blocks: dict[str, list[tuple[str, list[str]]]] = {
        "F1 (standard)": [("micro_f1", every), ("macro_f1", every)],
        "Log-loss, the paper's own F1s, seconds": [
            ("log_loss", every), *((metric, ["median"]) for metric in METRICS[-3:])
        ],
        "Precision and recall by class, medians": [(metric, ["median"]) for metric in sides],
    }  # fmt: skip
    for title, columns in blocks.items():
        _print_metrics(console, evaluation, title, columns)
    if with_reliability:
        _print_reliability(console, evaluation)
    console.print(evaluation.comparison(), markup=False)
    if (verdict := evaluation.verdict()) is not None:
        console.print(f"\n{verdict}", markup=False)


def _print_metrics(
    console: Console, evaluation: Evaluation, title: str, columns: list[tuple[str, list[str]]]
) -> None:
    """Print a table with a row for each method, and a column for each statistic of each metric."""
    pairs = [(metric, statistic) for metric, statistics in columns for statistic in statistics]
    table = _table(title)
    table.add_column("")
    for metric, statistic in pairs:
        name = _SHORT.get(metric, metric.replace("_", "\n"))
        table.add_column(f"{name}\n{statistic}", justify="right")
    for method in evaluation.methods:
        figures = [evaluation.statistics(method, metric)[statistic] for metric, statistic in pairs]
        table.add_row(method, *map(_shown, figures))
    console.print(table)
    console.print()


def _print_reliability(console: Console, evaluation: Evaluation) -> None:
    for method, bins in evaluation.reliability.items():
        table = _table(f"Reliability of {method}")
        for name in ("from", "to", "predictions", "mean predicted", "came true"):
            table.add_column(name, justify="right")
        for place, (count, predicted, happened) in enumerate(bins):
            low, high = place / len(bins), (place + 1) / len(bins)
            means = ("-" if count == 0 else f"{value:.3f}" for value in (predicted, happened))
            table.add_row(f"{low:.1f}", f"{high:.1f}", f"{count:,.0f}", *means)
        console.print(table)
        console.print()


_SHORT = {
    "micro_f1": "micro",
    "macro_f1": "macro",
    "log_loss": "loss",
    "paper_micro_f1": "paper\nmicro",
    "paper_macro_f1": "paper\nmacro",
}


def _table(title: str) -> Table:
    from rich.table import Table

    return Table(title=title, title_justify="left", box=None, pad_edge=False)


@contextmanager
def progress_bar(what: str, quiet: bool) -> Iterator[Callable[[float, str], None] | None]:
    """Show a bar on standard error while the work goes on: the share done, and what is done."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(f"{what} (the first run compiles the loops)", total=1.0)

        def tell(done: float, doing: str) -> None:
            bar.update(task, completed=done, description=f"{what}: {doing}")

        yield tell


@contextmanager
def model_bar(what: str, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show such a bar while a model is fitted or its users are tested."""
    with progress_bar(what, quiet) as tell:
        if tell is None:
            yield None
        else:
            yield lambda progress: tell(
                progress.done, progress.doing or f"{progress.users_out} users have left"
            )
