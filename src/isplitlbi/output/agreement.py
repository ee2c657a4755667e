"""How far people agree, on a terminal and in cells for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isplitlbi.markup import printable
from isplitlbi.nouns import Nouns, capitalized
from isplitlbi.output.terminal import of_ids, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from rich.console import Console

    from isplitlbi.diagnostics.agreement import Agreement

__all__ = ["counts_in_words", "measures_in_cells", "print_agreement", "users_in_cells"]

MOST_SHOWN = 5  # users, and pairs of users; --by lists all

# What each number is called, and what it says.
MEASURES = {
    "agreement": ("agreement", "how often two users give the same answer to the same pair"),
    "chance": ("chance", "how often two answers are the same, whatever pairs they are about"),
    "alpha": ("alpha", "Krippendorff's: 0 is agreement by chance alone, 1 is full agreement"),
    "alpha_of_distances": (
        "alpha, ties half way",
        "the same where a tie is half way between left and right",
    ),
    "same_again": ("same again", "how often a user who judges a pair again says the same"),
    "split_half": (
        "split half",
        "whether two halves of the users give the same scores (1: they do); 95 % of the splits "
        "lie between",
    ),
    "separation": (
        "separation",
        "SSR: the share of the differences between scores that is not error, if all votes are "
        "independent",
    ),
    "separation_of_people": (
        "separation, users",
        "the same if users are drawn, each with all their votes",
    ),
}


def print_agreement(console: Console, found: Agreement) -> None:
    """Print the sentence, every number with its meaning, and who agrees with whom."""
    from rich.text import Text

    console.print(Text(found.sentence()))
    console.print(Text(counts_in_words(found)))
    cells = measures_in_cells(found)
    if cells:
        console.print()
        heads = ("", "value", "95 %")
        _print_cells(console, heads, [each[:3] for each in cells], n_names=1)
        console.print()
        width = max(len(name) for name, *_ in cells)
        for name, *_, means in cells:
            console.print(f"{name:<{width}}  {means}.", markup=False)
    nouns, alone = found.nouns, found.users_table()
    _print_users(
        console, f"{capitalized(nouns.users)} who agree least with the others", alone, nouns
    )
    both = found.pairs_table()
    _print_users(console, f"{capitalized(nouns.users)} with the most common pairs", both, nouns)
    if max(len(alone), len(both)) > MOST_SHOWN:
        console.print("\n--by users and --by pairs list all.", markup=False)
    for sentence in found.remarks:
        if sentence != found.sentence():
            console.print()
            console.print(Text(sentence))


def counts_in_words(found: Agreement) -> str:
    """Say what the numbers are about."""
    nouns, common = found.nouns, found.common
    judged = f"{nouns.n_users(found.n_users)} judged {found.n_pairs:,} pairs of {nouns.items}"
    if common is None:
        return f"{judged}."
    drawn = nouns.users if common.drawn == "users" else "pairs"
    return (
        f"{judged}; at least two {nouns.users} judged {common.n_pairs:,} of these. Intervals are "
        f"for other {drawn} like these."
    )


def measures_in_cells(found: Agreement) -> list[tuple[str, str, str, str]]:
    """Return what every number is called, the number, its interval, and what it says."""
    rows = []
    for name, each in found.measures().items():
        title, means = (found.nouns.in_text(text) for text in MEASURES[name])
        between = "-"
        if each.low is not None and each.high is not None:
            between = f"{_number(each.low)} to {_number(each.high)}"
        rows.append((title, _number(each.value), between, means))
    return rows


def users_in_cells(table: pl.DataFrame, most: int = MOST_SHOWN) -> list[list[Any]]:
    """Return the first rows of a table of users, or of two users each; ids stay as they are."""
    rows = []
    for row in table.head(most).iter_rows(named=True):
        ids = [row[name] for name in ("user", "other") if name in row]
        between = f"{_number(row['low'])} to {_number(row['high'])}"
        alpha = "-" if row["alpha"] is None else _number(row["alpha"])
        rows.append([*ids, f"{row['pairs']:,}", _number(row["agreement"]), between, alpha])
    return rows


def _number(value: float) -> str:
    """Return a number with two digits; of two zeros, the positive one."""
    return f"{round(value, 2) + 0.0:.2f}"


def _print_users(console: Console, title: str, table: pl.DataFrame, nouns: Nouns) -> None:
    from rich.text import Text

    if not len(table):
        return
    names = [nouns.user, "other"] if "other" in table.columns else [nouns.user]
    console.print()
    console.print(Text(title, style="italic"))
    heads = (*names, "pairs", "agreement", "95 %", "alpha")
    _print_cells(console, heads, users_in_cells(table), n_names=len(names))


def _print_cells(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[object]], n_names: int
) -> None:
    """Print rows of texts: names on the left, numbers on the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, head in enumerate(heads):
        if place < n_names:
            table.add_column(head, **of_ids(console))
        else:
            table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    print_table(console, table)
