"""What results look like on a terminal, in CSV and in JSON; and the bar while one waits.

rich is imported where it prints, because importing it takes longer than answering --help.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from isplitlbi.markup import printable
from isplitlbi.nouns import NOUNS, Nouns

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
    "fits",
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
]


WIDEST = 100_000  # columns
IDS = ("user", "item", "left", "right")  # columns of ids in tables


class Format(StrEnum):
    """How a result is written."""

    table = "table"
    csv = "csv"
    json = "json"


def emit(table: pl.DataFrame, format: Format, nouns: Nouns = NOUNS) -> None:
    """Write a table to standard output; only headings for people are in the words of the study."""
    if format is Format.csv:
        sys.stdout.write(table.write_csv())
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
    for row in table.iter_rows():
        shown.add_row(*(Text(_shown(value)) for value in row))
    return shown


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


def fits(console: Console, table: Table) -> bool:
    """Say whether a screen has the room that a table needs; a file always has."""
    from rich.console import Console

    roomy = Console(width=WIDEST)
    return not console.is_terminal or roomy.measure(table).maximum <= console.width


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


def print_check(
    console: Console, reading: Reading, diagnosis: Diagnosis, nouns: Nouns = NOUNS
) -> None:
    """Print what `check` found."""
    from rich.table import Table
    from rich.text import Text

    from isplitlbi.data.summary import Summary

    console.print(f"{Summary.of(reading.votes).in_words(nouns)} ({reading.preset}).", markup=False)
    for note in reading.notes:
        console.print(str(note), markup=False)
    figures = diagnosis.summary
    least, median, most = (figures[f"votes_per_user_{what}"] for what in ("min", "median", "max"))
    console.print(
        f"Votes per {nouns.user}: {least:g} to {most:g}, half of them at most {median:g}."
    )
    findings = Table.grid(padding=(0, 2, 1, 0))
    for finding in diagnosis.findings:
        severity = finding.severity.name.lower()
        findings.add_row(Text(severity, style="bold"), Text(printable(finding.in_words(nouns))))
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
    named = lists_in_words(n_unreliable, n_different, len(model.users_), model.nouns)
    console.print(f"{named}.\n")
    truly = dict(zip(model.users_.tolist(), truth.kind, strict=True))
    table = users_table(model).filter("abnormal")
    names = [truly[user] for user in table["user"]]
    table = table.with_columns(truly=pl.Series(names, dtype=pl.String))
    columns = ("user", "entry_rank", "effect", "kind", "quality", "truly")
    _print_lists(console, table, columns, model.nouns)
    found = set(model.abnormal_users_)
    true = set(model.users_[truth.abnormal].tolist())
    console.print(
        f"{len(found & true)} of the {len(true)} truly abnormal users found, "
        f"{len(found - true)} other{'' if len(found - true) == 1 else 's'} named.\n"
    )


def print_abnormal(
    console: Console, model: ScoreEstimator, found: Abnormality, shown: pl.DataFrame
) -> None:
    """Print which users are abnormal, in which way, and whether that changes the result."""
    from isplitlbi.abnormal import DIFFERENT, LEAST_USERS, UNRELIABLE
    from isplitlbi.output.words import chance_in_words, lists_in_words

    n_users = int((model.summary_.votes_per_user > 0).sum())
    n_unreliable, n_different = (int(found.on(name).sum()) for name in (UNRELIABLE, DIFFERENT))
    nouns = model.nouns
    named = lists_in_words(n_unreliable, n_different, n_users, nouns)
    console.print(f"{named}; {chance_in_words(found.fdr)}.\n")
    if n_users < LEAST_USERS:
        console.print(
            f"With fewer than three {nouns.users}, nobody can tell who is unlike the others."
        )
    columns = ("user", "votes", "effect", "kind", "quality", "explanation")
    _print_lists(console, shown, columns, nouns)
    if few := int((found.votes_needed > 0).sum()):
        most = int(found.votes_needed.max())
        console.print(
            f"{nouns.n_users(few)} {'has' if few == 1 else 'have'} too few votes to be named at "
            f"all; it would take up to {most} votes."
        )
    if n_unreliable == n_users:
        console.print(f"Nobody is left to make a consensus without the unreliable {nouns.users}.")
    elif n_unreliable and model.has_votes():
        console.print(model.effect_of_leaving_out(fdr=found.fdr).sentence(nouns))
    elif n_unreliable:
        console.print("What leaving them out would change: --effect reads the votes and tells.")
    if n_different:
        console.print(
            "Different is not bad: a taste of one's own, or a steady hand, is named too. "
            f"Such {nouns.users} stay in the consensus."
        )


_HEADINGS = {"entry_rank": "left as"}
_ON_THE_RIGHT = ("votes", "entry_rank", "quality")
NOTE_INDENT, LEAST_OF_IDS = 4, 8  # columns


def _print_lists(
    console: Console, shown: pl.DataFrame, columns: Sequence[str], nouns: Nouns
) -> None:
    """Print some users list by list; those who are on none come last."""
    from isplitlbi.output.words import meaning_of_lists

    for name, words in meaning_of_lists(nouns).items():
        title = f"{name.capitalize()}: {words}"
        _print_users(console, shown.filter(shown["list"] == name), title, columns, nouns)
    rest = shown.filter(shown["list"].is_null())
    _print_users(console, rest, "On neither list", columns, nouns)


def _print_users(
    console: Console, shown: pl.DataFrame, title: str, columns: Sequence[str], nouns: Nouns
) -> None:
    """Print some users; where a screen is too narrow, explanations stand below the figures."""
    from rich.padding import Padding
    from rich.text import Text

    if len(shown) == 0:
        return
    headings = [_HEADINGS.get(name, nouns.heading(name)) for name in columns]
    rows = [_told(row, columns) for row in shown.iter_rows(named=True)]
    table = _table_of_users(console, title, columns, [headings, *rows])
    if columns[-1] != "explanation" or fits(console, table):
        print_table(console, table)
    else:
        widths = _widths(console, [[*row[:-1]] for row in [headings, *rows]])
        for place, row in enumerate(rows):
            table = _table_of_users(console, title, columns[:-1], [headings, row])
            table.title, table.show_header = (title, True) if place == 0 else (None, False)
            for column, width in zip(table.columns, widths, strict=True):
                column.width = width
            console.print(table)
            console.print(Padding(Text(row[-1]), (0, 0, 0, NOTE_INDENT)))
    console.print()


def _told(row: dict[str, Any], columns: Sequence[str]) -> list[str]:
    """Return what is said of a user, column by column."""
    from isplitlbi.output.words import effect_in_words

    told = {name: _shown(row[name]) for name in columns}
    told["effect"] = effect_in_words(row["effect"], row["effect_low"], row["effect_high"])
    told["quality"] = "-" if row["quality"] is None else f"{row['quality']:.2f}"
    return [told[name] for name in columns]


def _table_of_users(
    console: Console, title: str, columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> Table:
    """Return a table of users, the headings first."""
    from rich.text import Text

    table = _table(title)
    for name, heading in zip(columns, cells[0], strict=False):
        side = "right" if name in _ON_THE_RIGHT else "left"
        how = {"overflow": "fold", "no_wrap": name in ("effect", "kind")}
        how = of_ids(console) if name in IDS else how
        table.add_column(heading, justify=side, **how)  # type: ignore[arg-type]
    for row in cells[1:]:
        table.add_row(*(Text(cell) for cell in row[: len(columns)]))
    return table


def _widths(console: Console, cells: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide columns are; the first, of ids, has at most what the others leave."""
    from rich.cells import cell_len

    first, *others = (max(map(cell_len, column)) for column in zip(*cells, strict=True))
    room = console.width - sum(others) - 2 * len(others)
    return [max(min(first, room), min(first, LEAST_OF_IDS)), *others]


def print_user(console: Console, table: pl.DataFrame, user: str, nouns: Nouns = NOUNS) -> None:
    """Print what is known of one user, before the votes that tell most."""
    from isplitlbi.output.words import effect_in_words, meaning_of_lists, p_in_words

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
        console.print(f"{row['list'].capitalize()}: {meaning_of_lists(nouns)[row['list']]}{also}.")
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
    console.print(evaluation.verdict(), markup=False)


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
