"""Users on a terminal: who is abnormal and in which way, and what is known of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isplitlbi.markup import printable
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.output.terminal import (
    IDS,
    MOST_ROWS,
    fits,
    in_cell,
    of_ids,
    print_table,
    say_rest,
    titled_table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from rich.console import Console
    from rich.table import Table

    from isplitlbi.abnormal import Abnormality
    from isplitlbi.estimators.base import ScoreEstimator
    from isplitlbi.estimators.isplitlbi import ISplitLBI
    from isplitlbi.evaluation.simulate import Truth

__all__ = ["print_abnormal", "print_entries", "print_user"]

_HEADINGS = {"entry_rank": "left as"}
_ON_THE_RIGHT = ("votes", "entry_rank", "quality")
NOTE_INDENT, LEAST_OF_IDS = 4, 8  # columns


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
            f"With fewer than three {nouns.users}, nobody can tell who differs from the others."
        )
    columns = ("user", "votes", "effect", "kind", "quality", "explanation")
    _print_lists(console, shown, columns, nouns)
    if few := int((found.votes_needed > 0).sum()):
        most = int(found.votes_needed.max())
        console.print(
            f"{nouns.n_users(few)} {'has' if few == 1 else 'have'} too few votes to be on a list; "
            f"up to {most} votes would be needed."
        )
    if n_unreliable == n_users:
        console.print(f"Nobody is left to make a consensus without the unreliable {nouns.users}.")
    elif n_unreliable and model.has_votes():
        console.print(model.effect_of_leaving_out(fdr=found.fdr).sentence(nouns))
    elif n_unreliable:
        console.print("To see what changes without them, use --effect: it reads the votes.")
    if n_different:
        console.print(
            f"Different is not bad: {nouns.users} with their own taste, or with very steady votes, "
            "are on this list, too. They stay in the consensus."
        )


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
    rows = [_told(row, columns) for row in shown.head(MOST_ROWS).iter_rows(named=True)]
    table = _table_of_users(console, title, columns, [headings, *rows])
    say_rest(table, len(shown))
    if columns[-1] != "explanation" or fits(console, table):
        print_table(console, table)
    else:
        console.print(Text(title, style="italic"))
        widths = _widths(console, [[*row[:-1]] for row in [headings, *rows]])
        for place, row in enumerate(rows):
            table = _table_of_users(console, title, columns[:-1], [headings, row])
            table.title, table.show_header = None, place == 0
            for column, width in zip(table.columns, widths, strict=True):
                column.width = width
            console.print(table)
            console.print(Padding(Text(row[-1]), (0, 0, 0, NOTE_INDENT)))
    console.print()


def _told(row: dict[str, Any], columns: Sequence[str]) -> list[str]:
    """Return what is said of a user, column by column."""
    from isplitlbi.output.words import effect_in_words

    told = {name: in_cell(row[name]) for name in columns}
    told["effect"] = effect_in_words(row["effect"], row["effect_low"], row["effect_high"])
    told["quality"] = "-" if row["quality"] is None else f"{row['quality']:.2f}"
    return [told[name] for name in columns]


def _table_of_users(
    console: Console, title: str, columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> Table:
    """Return a table of users, the headings first."""
    from rich.text import Text

    table = titled_table(title)
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
