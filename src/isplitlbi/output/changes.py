"""What changed between two models, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isplitlbi.markup import printable
from isplitlbi.nouns import capitalized
from isplitlbi.output.terminal import fits, print_whole, text_table, titled_table

if TYPE_CHECKING:
    from rich.console import Console

    from isplitlbi.estimators.changes import Changes, Verdict

__all__ = ["figures_of_held_out", "print_changes", "users_in_cells", "verdict_in_words"]


def print_changes(console: Console, changes: Changes) -> None:
    """Print the sentences, then the items in both models, those in one, users and predictions."""
    from rich.text import Text

    nouns = changes.nouns
    for sentence in changes.sentences():
        console.print(Text(sentence))
    console.print()
    _print_items(console, changes)
    for title, items in (
        (f"New {nouns.items}", changes.new_items),
        (f"{capitalized(nouns.items)} that are gone", changes.gone_items),
    ):
        if items:
            console.print(Text(title, style="italic"))
            print_whole(console, text_table(changes.cells_of_one_sided(items), nouns))
            console.print()
    if changes.users:
        title = f"{capitalized(nouns.users)} who are on another list than before"
        _print_users(console, changes, title)
    if changes.held_out is not None:
        table = titled_table("On the votes to predict")
        heads, *rows = figures_of_held_out(changes)
        for place, name in enumerate(heads):
            table.add_column(name, justify="right" if place else "left")
        for row in rows:
            table.add_row(*row)
        console.print(table)


def _print_items(console: Console, changes: Changes) -> None:
    """Print the items in both models; where a screen is too narrow, without moves of ranks."""
    cells, nouns = changes.cells(), changes.nouns
    short = [[text for place, text in enumerate(row) if place not in (2, 3)] for row in cells]
    tables = {
        (): text_table(cells, nouns),
        (1,): text_table(cells, nouns, gap=1),
        ("moved",): text_table(short, nouns, gap=1),
    }
    shown = next((each for each, table in tables.items() if fits(console, table)), ("moved",))
    print_whole(console, tables[shown])
    console.print()
    width = max(map(len, changes.legend()))
    for word, means in changes.legend().items():
        if word not in shown:
            console.print(f"{word:<{width}}  {means}.")
    if "moved" in shown:
        console.print("On a wider screen there are also: moved.")
    console.print()


def _print_users(console: Console, changes: Changes, title: str) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print(Text(title, style="italic"))
    heads, *rows = users_in_cells(changes)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(heads):
        table.add_column(
            name, justify="right" if name == "votes" else "left", overflow="fold",
            no_wrap=0 < place < len(heads) - 1,
        )  # fmt: skip
    for row in rows:
        table.add_row(*map(Text, row))
    print_whole(console, table)
    console.print()


def users_in_cells(changes: Changes) -> list[list[str]]:
    """Return who is on another list as texts, the headings first: a row before, and one after."""
    rows = [[changes.nouns.user, "change", "", "votes", "verdict"]]
    for each in changes.users:
        names = [printable(str(each.user)), each.change]
        for which, votes, verdict in (
            ("before", each.votes_before, each.before),
            ("after", each.votes_after, each.after),
        ):
            if verdict is not None:
                rows.append([*names, which, str(votes), verdict_in_words(verdict)])
                names = ["", ""]
    return rows


def verdict_in_words(verdict: Verdict | None) -> str:
    """Return what the tests say of a user: the list, the kind, the effect and the q-value."""
    if verdict is None:
        return "-"
    said = [verdict.list or "on no list", *([verdict.kind] if verdict.kind else [])]
    if verdict.effect is not None:
        said.append(f"effect {verdict.effect:.2f}")
    if verdict.q_value is not None:
        said.append(f"q {verdict.q_value:.2g}")
    return ", ".join(said)


def figures_of_held_out(changes: Changes) -> list[list[str]]:
    """Return how well both models predict as texts, the headings first."""
    found = changes.held_out
    rows = [["", "before", "after", "change", "95 %"]]
    if found is None:
        return rows
    for name, each in (("log-loss", found.log_loss), ("accuracy", found.accuracy)):
        ends = "-"
        if each.low is not None and each.high is not None:
            ends = f"{each.low:+.3f} to {each.high:+.3f}"
        rows.append([name, f"{each.before:.3f}", f"{each.after:.3f}", f"{each.change:+.3f}", ends])
    return rows
