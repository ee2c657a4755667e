"""What results look like on a terminal, in CSV and in JSON; and the bar while one waits.

rich is imported where it prints, because importing it takes longer than answering --help.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from isplitlbi.markup import printable, printable_sentence
from isplitlbi.nouns import NOUNS, Nouns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl
    from rich.console import Console
    from rich.table import Table

    from isplitlbi.data.readers import Reading
    from isplitlbi.diagnostics.findings import Diagnosis
    from isplitlbi.evaluation.protocol import Evaluation
    from isplitlbi.evaluation.simulate import Study
    from isplitlbi.runtime.progress import Progress

__all__ = [
    "IDS",
    "MOST_ROWS",
    "Format",
    "as_json",
    "emit",
    "fits",
    "in_cell",
    "late_bar",
    "listen_to_remarks",
    "model_bar",
    "of_ids",
    "print_check",
    "print_evaluation",
    "print_json",
    "print_notes",
    "print_scores",
    "print_simulation",
    "print_table",
    "print_whole",
    "progress_bar",
    "remark",
    "say_rest",
    "standard_output",
    "text_table",
    "titled_table",
    "write_csv",
]


WIDEST = 100_000  # columns
MOST_ROWS = 1_000  # of a table: nobody reads more on a screen, and more take long to lay out
IDS = ("user", "item", "left", "right")  # columns of ids in tables
PATIENCE = 2.0  # seconds that need no bar


class Format(StrEnum):
    """How a result is written."""

    table = "table"
    csv = "csv"
    json = "json"


def emit(table: pl.DataFrame, format: Format, nouns: Nouns = NOUNS) -> None:
    """Write a table to standard output; only headings for people are in the words of the study."""
    if format is Format.csv:
        write_csv(table)
    elif format is Format.json:
        print_json(table.to_dicts())
    else:
        console = standard_output()
        shown = _table_of(console, table, nouns)
        if not fits(console, shown):  # headings may take several lines, names should not
            shown = _table_of(console, table, nouns, between="\n", gap=1)
        print_table(console, shown)


def _table_of(
    console: Console, table: pl.DataFrame, nouns: Nouns, between: str = " ", gap: int = 2
) -> Table:
    """Return any table as it is shown, with a sign between the words of headings."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for name, kind in table.schema.items():
        side: Any = "right" if kind.is_numeric() else "left"
        shown.add_column(
            nouns.heading(name).replace("_", between), justify=side,
            **(of_ids(console) if name in IDS else {"overflow": "fold"}),
        )  # fmt: skip
    for row in table.head(MOST_ROWS).iter_rows():
        shown.add_row(*(Text(in_cell(value)) for value in row))
    say_rest(shown, table.height)
    return shown


def say_rest(shown: Table, n_rows: int) -> None:
    """Say below a table of how many rows it is the beginning, where it is not the whole."""
    if n_rows > MOST_ROWS:
        shown.caption = (
            f"... and {n_rows - MOST_ROWS:,} more rows: --format csv or json has them all."
        )
        shown.caption_justify = "left"


def of_ids(console: Console) -> dict[str, Any]:
    """Return how a column of ids is shown: folded on a terminal, whole everywhere else."""
    return {"overflow": "fold", "no_wrap": not console.is_terminal}


def print_table(console: Console, table: Table) -> None:
    """Print a table; where there is no terminal, no id in it is broken into lines."""
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


def fits(console: Console, table: Table) -> bool:
    """Say whether a screen has the room that a table needs; a file always has."""
    from rich.measure import Measurement

    unbounded = console.options.update(max_width=WIDEST)
    needed = Measurement.get(console, unbounded, table).maximum
    return not console.is_terminal or needed <= console.width


def text_table(cells: Sequence[Sequence[str]], nouns: Nouns = NOUNS, *, gap: int = 2) -> Table:
    """Return a table of texts, the headings first: names on the left, numbers on the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for name in cells[0]:
        is_name, is_id = name in ("item", "other", "group"), name in ("item", "other")
        table.add_column(
            nouns.heading(name), justify="left" if is_name else "right", overflow="fold",
            no_wrap=not is_id,
        )  # fmt: skip
    for row in cells[1 : 1 + MOST_ROWS]:
        table.add_row(*map(Text, row))
    say_rest(table, len(cells) - 1)
    return table


def in_cell(value: Any) -> str:
    """Return a value as it is shown in a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return printable(str(value))


def print_json(value: Any) -> None:
    """Write a value to standard output as JSON."""
    print(as_json(value))


def as_json(value: Any) -> str:
    """Return a value as JSON, in which nothing does anything to a terminal."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text
    )


def write_csv(table: pl.DataFrame, *, header: bool = True) -> None:
    """Write a table to standard output as CSV: as it is, but to a person with ids spelled out."""
    import polars as pl

    if sys.stdout.isatty():
        shown = pl.col(pl.String).map_elements(printable, return_dtype=pl.String)
        table = table.with_columns(shown)
    sys.stdout.write(table.write_csv(include_header=header))


def standard_output() -> Console:
    """Return where results are printed.

    What goes to a file or another program is not broken into lines, unless COLUMNS asks for it.
    Where the encoding of the output lacks a sign, people read its number instead.
    """
    import os

    from rich.console import Console

    console = Console(highlight=False, emoji=False)
    if console.options.ascii_only and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = WIDEST
    return console


def listen_to_remarks(quiet: bool) -> None:
    """Let remarks of the library through to standard error, or not."""
    import logging

    logging.getLogger("isplitlbi").setLevel(logging.ERROR if quiet else logging.WARNING)


def remark(sentence: str) -> None:
    """Write a sentence to standard error, beside the results."""
    print(printable(sentence), file=sys.stderr)


def print_notes(reading: Reading) -> None:
    """Print what was noted while votes were read."""
    for note in reading.notes:
        remark(str(note))


def print_check(
    console: Console, reading: Reading, diagnosis: Diagnosis, nouns: Nouns = NOUNS
) -> None:
    """Print what `check` found."""
    from rich.table import Table
    from rich.text import Text

    from isplitlbi.data.summary import Summary

    console.print(f"{Summary.of(reading.votes).in_words(nouns)} ({reading.preset}).", markup=False)
    for note in reading.notes:
        console.print(printable(str(note)), markup=False)
    if not reading.votes.is_anonymous:
        least, median, most = (
            diagnosis.summary[f"votes_per_user_{what}"] for what in ("min", "median", "max")
        )
        console.print(
            f"Votes per {nouns.user}: {least:g} to {most:g}; half of the {nouns.users} gave at "
            f"most {median:g}."
        )
    findings = Table.grid(padding=(0, 2, 1, 0))
    for finding in diagnosis.findings:
        severity = finding.severity.name.lower()
        findings.add_row(
            Text(severity, style="bold"), Text(printable_sentence(finding.in_words(nouns)))
        )
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


def print_scores(console: Console, scores: dict[str, dict[str, float]]) -> None:
    """Print scores on held-out votes."""
    table = titled_table("On held-out votes")
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
        "Log-loss, the published program's F1s, seconds": [
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
    table = titled_table(title)
    table.add_column("")
    for metric, statistic in pairs:
        name = _SHORT.get(metric, metric.replace("_", "\n"))
        table.add_column(f"{name}\n{statistic}", justify="right")
    for method in evaluation.methods:
        figures = [evaluation.statistics(method, metric)[statistic] for metric, statistic in pairs]
        table.add_row(method, *map(in_cell, figures))
    console.print(table)
    console.print()


def _print_reliability(console: Console, evaluation: Evaluation) -> None:
    for method, bins in evaluation.reliability.items():
        table = titled_table(f"Reliability of {method}")
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


def titled_table(title: str) -> Table:
    """Return an empty table with a title above."""
    from rich.table import Table

    return Table(title=title, title_justify="left", box=None, pad_edge=False)


@contextmanager
def late_bar(what: str, quiet: bool) -> Iterator[Callable[[float | None, str], None]]:
    """Show a bar once the work has gone on for two seconds."""
    from time import monotonic

    begun = monotonic()
    bars: list[Callable[[float | None, str], None] | None] = []
    with ExitStack() as stack:

        def tell(done: float | None, doing: str) -> None:
            if not bars and monotonic() - begun >= PATIENCE:
                bars.append(stack.enter_context(progress_bar(what, quiet)))
            for bar in bars:
                if bar is not None:
                    bar(done, doing)

        yield tell


@contextmanager
def progress_bar(what: str, quiet: bool) -> Iterator[Callable[[float | None, str], None] | None]:
    """Show a bar on standard error while the work goes on: the share done, and what is done.

    Where nobody knows how much there is to do, the share is None.
    """
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

        def tell(done: float | None, doing: str) -> None:
            if done is None:  # the bar then only says that something is going on
                bar.tasks[0].total = None
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
