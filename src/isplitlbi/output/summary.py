"""A fitted model on a terminal: what a fit came to, rankings, and what one user is like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isplitlbi.markup import printable, printable_sentence
from isplitlbi.output.terminal import (
    MOST_ROWS,
    fits,
    in_cell,
    print_table,
    print_whole,
    say_rest,
    text_table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from isplitlbi.estimators.base import ScoreEstimator
    from isplitlbi.estimators.isplitlbi import ISplitLBI
    from isplitlbi.estimators.lists import Recommendations
    from isplitlbi.model.ranking import Ranking
    from isplitlbi.nouns import Nouns
    from isplitlbi.selection import Estimate

__all__ = [
    "print_card",
    "print_differences",
    "print_fit",
    "print_leaderboard",
    "print_pairs",
    "print_ranking",
    "print_recommended",
    "print_tiers",
]

LONGEST_BAR = 30
MOST_WITHOUT_TIERS = 10  # items of a ranking without tiers that a summary shows
MOST_IN_SUMMARY = 50  # items of a tier that it shows

_NEVER_COMPARED = "never compared by this {user}: placed by the consensus."


def print_fit(console: Console, model: ISplitLBI, folder: Path, seconds: float) -> None:
    """Print what a fit came to, and where to go on."""
    from isplitlbi.output.words import chosen_in_words, held_out_in_words, lists_in_words

    nouns = model.nouns
    console.print(f"Fitted in {seconds:.1f} s: {model.summary_.in_words(nouns)}.", markup=False)
    if model.has_users:
        n_unreliable, n_different = len(model.unreliable_users_), len(model.different_users_)
        named = lists_in_words(n_unreliable, n_different, nouns=nouns)
        console.print(
            f"Stopped at t = {model.time_:.3g} of the path ({chosen_in_words(model)}); "
            f"{len(model.left_consensus_)} of {nouns.n_users(len(model.users_))} have left the "
            f"consensus at that time. {named}."
        )
        if model.selection_ is not None:
            console.print(held_out_in_words(model.selection_))
        console.print()
    else:
        console.print(f"There are no {nouns.users}, so there is one ranking for all.\n")
    print_differences(console, model)
    print_tiers(console, model, most=6)
    console.print(f"Written to {printable(str(folder))}. Go on with:", markup=False)
    of_users = [f"abnormal {folder}"] if model.has_users else []
    for command in (f"rank {folder}", *of_users, f"report {folder} -o report.html"):
        console.print(f"  isplitlbi {printable(command)}", markup=False)


def print_differences(console: Console, model: ScoreEstimator) -> None:
    """Print in what people differ, and what else everybody has in common."""
    from isplitlbi.output.words import NO_TIES, side_in_words, spread_in_words

    if model.spreads_:
        _print_spreads(console, model.spreads_, spread_in_words(model.spreads_))
    said = [side_in_words(model.side_)] if "side" in model.terms_.names else []
    if model.threshold_ is None:
        said.append(NO_TIES)
    for sentence in said:
        console.print(f"{sentence[0].upper()}{sentence[1:]}.")
    _print_features(console, model)
    if model.spreads_ or said:
        console.print()


def _print_spreads(console: Console, spreads: dict[str, float], sentence: str) -> None:
    from rich.table import Table
    from rich.text import Text

    from isplitlbi.output.words import name_of_term, sorted_spreads

    console.print(f"{sentence[0].upper()}{sentence[1:]} (standard deviations, in logits):")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", max_width=38)
    table.add_column(justify="right")
    table.add_column()
    most = max(spreads.values()) or 1.0
    full, least = ("#", "") if console.options.ascii_only else ("█", "▏")
    for name, spread in sorted_spreads(spreads).items():
        bar = full * round(LONGEST_BAR * spread / most) or least
        table.add_row(Text(f"  {printable(name_of_term(name))}"), f"{spread:.2f}", bar)
    console.print(table)


def _print_features(console: Console, model: ScoreEstimator) -> None:
    from rich.table import Table
    from rich.text import Text

    if model.summary_.units is None or not model.has_votes():
        return
    effects = model.features()
    if not effects:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("feature", overflow="fold")
    for name in ("logits", "95 % interval", "one unit is", "logits for 1"):
        table.add_column(name, justify="right")
    for each in effects:
        interval = f"{each.low:.2f} to {each.high:.2f}"
        figures = (f"{each.effect:+.2f}", interval, f"{each.unit:.4g}", f"{each.per_unit:+.2g}")
        table.add_row(Text(printable(each.name)), *figures)
    console.print("\nThe effect of one more unit on the left, in logits:")
    console.print(table)


# --- rankings ------------------------------------------------------------------------------


def print_leaderboard(console: Console, model: ScoreEstimator) -> None:
    """Print the consensus item by item, then items with too few votes, then what the words mean.

    Where a screen is too narrow for whole names, wins, ties and losses are left out, and columns
    stand closer; where that is not enough, votes are left out, too.
    """
    from rich.text import Text

    from isplitlbi.estimators.leaderboard import TOO_FEW

    board, nouns = model.leaderboard(), model.nouns
    tables = {
        (): text_table(board.cells(), nouns),
        ("W/T/L",): text_table(board.cells(with_counts=False), nouns, gap=1),
        ("votes", "W/T/L"): text_table(
            board.cells(with_counts=False, with_votes=False), nouns, gap=1
        ),
    }
    left_out = next((each for each, table in tables.items() if fits(console, table)), ("W/T/L",))
    console.print(Text("Consensus", style="italic"))
    print_whole(console, tables[left_out])
    if rest := board.cells_of_unranked():
        console.print(f"\n{TOO_FEW}")
        print_whole(console, text_table(rest, nouns))
    console.print()
    for word, means in board.legend(with_counts=not left_out).items():
        console.print(f"{word:<5}  {means}.")
    if left_out:
        console.print(f"On a wider screen there are also: {', '.join(left_out)}.")
    _print_below(console, model, model.ranking(), with_habits=True)


def print_pairs(console: Console, model: ScoreEstimator) -> None:
    """Print every pair that was compared, better items first."""
    from rich.text import Text

    nouns = model.nouns
    title = f"Head to head: what the {nouns.item} did against the other"
    console.print(Text(title, style="italic"))
    print_whole(console, _whole_or_closer(console, model.head_to_head().cells(), nouns))
    console.print(
        f"W/T/L: wins, ties and losses of the {nouns.item}, in per cent of the votes on the pair."
    )
    console.print("Predicted: what is expected of the same votes from people like these.")


def print_tiers(
    console: Console, model: ScoreEstimator, user: Any = None, most: int | None = None
) -> None:
    """Print a ranking in short, at most so many tiers of it; without ties, item by item."""
    from rich.table import Table
    from rich.text import Text

    from isplitlbi.data.vocabulary import counted

    ranking = model.ranking(user)
    if ranking.tier is None:
        print_ranking(console, model, user, MOST_WITHOUT_TIERS if most else None)
        return
    console.print(_title(ranking, user))
    table = Table(box=None, pad_edge=False)
    table.add_column("tier", justify="right")
    table.add_column(f"{model.nouns.items} (score)", overflow="fold")
    by_tier: dict[int, list[str]] = {}
    for tier, item, score, seen in zip(
        ranking.tier, ranking.items, ranking.scores, ranking.compared, strict=True
    ):
        star = "" if seen else "*"
        by_tier.setdefault(int(tier), []).append(f"{printable(str(item))}{star} ({score:z.2f})")
    most_members = MOST_ROWS if most is None else MOST_IN_SUMMARY
    for tier, members in list(by_tier.items())[: MOST_ROWS if most is None else most]:
        shown, n_more = members[:most_members], len(members) - most_members
        rest = [f"... and {n_more:,} more"] if n_more > 0 else []
        table.add_row(str(tier), Text(", ".join([*shown, *rest])))
    if most is None:
        say_rest(table, len(by_tier))
    print_table(console, table)
    if most is not None and len(by_tier) > most:
        console.print(f"... and {counted(len(by_tier) - most, 'more tier')}.")
    _print_below(console, model, ranking, with_habits=user is None)


def print_ranking(
    console: Console,
    model: ScoreEstimator,
    user: Any = None,
    most: int | None = None,
    estimate: Estimate = "dense",
) -> None:
    """Print a ranking item by item: the tier at its first, the score, and the tie habit.

    The scores of a user come with their intervals, and with whether they differ from the consensus,
    where the votes are at hand. Those of the sparse estimate have no intervals.
    """
    from isplitlbi.output.tables import ranking_table
    from isplitlbi.output.words import factor

    ranking, has_habits = model.ranking(user, estimate), model.terms_.has_habits
    console.print(_title(ranking, user))
    has_own = user is not None and estimate == "dense"
    own = ranking_table(model, user).to_dicts() if has_own else []
    has_intervals = bool(own) and own[0]["low"] is not None
    heads = ["rank" if ranking.tier is None else "tier", "item", "score"]
    heads += ["95 %", "differs"] if has_intervals else []
    cells = [[*heads, *(["ties"] if has_habits else [])]]
    for place, item in enumerate(ranking.items[:most].tolist()):
        star = "" if ranking.compared[place] else "*"
        number = str(place + 1)
        if ranking.tier is not None:
            opens = place == 0 or ranking.tier[place] != ranking.tier[place - 1]
            number = str(ranking.tier[place]) if opens else ""
        row = [number, f"{printable(str(item))}{star}", f"{ranking.scores[place]:z.2f}"]
        if has_intervals:
            row.append(f"{own[place]['low']:.2f} to {own[place]['high']:.2f}")
            row.append("yes" if own[place]["differs"] else "no")
        cells.append([*row, *([factor(ranking.habits[place])] if has_habits else [])])
    print_whole(console, _whole_or_closer(console, cells, model.nouns))
    if most is not None and len(ranking) > most:
        console.print(f"... and {len(ranking) - most} more {model.nouns.items}.")
    if has_intervals:
        console.print(
            f"95 %: interval of this {model.nouns.user}'s score, relative to the mean of all "
            f"{model.nouns.items}."
        )
        console.print("differs: whether it differs from the consensus by more than chance.")
    _print_below(console, model, ranking)


def print_recommended(console: Console, model: ScoreEstimator, found: Recommendations) -> None:
    """Print recommended items, and mark those that the user never compared."""
    from isplitlbi.output.tables import as_polars

    cells = [["item", "score", "difference"]]
    for (item, score, difference, *_), seen in zip(
        as_polars(found).iter_rows(), found.compared, strict=True
    ):
        star = "" if seen else "*"
        cells.append([f"{printable(str(item))}{star}", in_cell(score), in_cell(difference)])
    print_whole(console, _whole_or_closer(console, cells, model.nouns))
    if not all(found.compared):
        console.print(f"* {_NEVER_COMPARED.format(user=model.nouns.user)}")


def _whole_or_closer(console: Console, cells: Sequence[Sequence[str]], nouns: Nouns) -> Table:
    """Return a table, with columns closer to each other where the screen is too narrow."""
    table = text_table(cells, nouns)
    return table if fits(console, table) else text_table(cells, nouns, gap=1)


def _title(ranking: Ranking, user: Any) -> Any:
    from rich.text import Text

    whose = "Consensus" if user is None else f"{printable(str(user))}'s own ranking"
    title = whose if ranking.tier is None else f"{whose}, in tiers"
    return Text(title, style="italic")


def _print_below(
    console: Console, model: ScoreEstimator, ranking: Ranking, *, with_habits: bool = False
) -> None:
    """Print what the signs in a ranking mean and, where the table has none, the tie factors."""
    from isplitlbi.output.words import habits_in_words, threshold_in_words

    if not ranking.compared.all():
        console.print(f"* {_NEVER_COMPARED.format(user=model.nouns.user)}")
    if ranking.threshold is not None:
        console.print(threshold_in_words(ranking.threshold, model.terms_.has_habits, model.nouns))
    if with_habits and model.terms_.has_habits:
        console.print(habits_in_words(ranking), markup=False)
    if model.summary_.units is not None:
        names = ", ".join(model.summary_.units.names)
        console.print(f"Scores are for two sides that are equal in {names}.", markup=False)
    console.print()


# --- one user ------------------------------------------------------------------------------


def print_card(console: Console, model: ScoreEstimator, user: Any) -> None:
    """Print what one user is like, beside the group."""
    from rich.table import Table
    from rich.text import Text

    from isplitlbi.data.vocabulary import counted

    if model.terms_.ties == "bounded":
        return  # all that the paper's model knows of a user is the ranking itself
    if not model.has_votes():
        return  # a card needs them, and a ranking must not wait for files to be read
    card = model.user_card(user)
    console.print(f"{printable(str(user))}, {counted(card.n_votes, 'vote')}:", markup=False)
    table = Table.grid(padding=(0, 1, 0, 0))
    for sentence in card.words:
        table.add_row("-", Text(printable_sentence(sentence)))
    console.print(table)
    console.print()
