"""Plans on a terminal and in plain values: how certain an order is, how many votes it needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from isplitlbi.estimators.plans import Needed, percent
from isplitlbi.output.terminal import print_whole, text_table
from isplitlbi.planning.ahead import WAYS

if TYPE_CHECKING:
    from rich.console import Console

    from isplitlbi.estimators.plans import Plan
    from isplitlbi.evaluation.first_plan import FirstPlan

__all__ = ["borders_in_cells", "plan_as_dict", "print_first_plan", "print_plan"]


def print_plan(console: Console, plan: Plan) -> None:
    """Print the sentences, how certain the borders of tiers are, and what more votes would give."""
    from rich.text import Text

    for sentence in plan.sentences():
        console.print(Text(sentence))
    if len(borders := borders_in_cells(plan)) > 1:
        console.print()
        print_whole(console, text_table(borders, plan.nouns))
    console.print()
    print_whole(console, text_table(plan.cells(), plan.nouns))
    console.print("80 %  of all futures that were drawn lie between these.", markup=False)


def borders_in_cells(plan: Plan) -> list[list[str]]:
    """Return how certain the border below every tier is as texts, the headings first."""
    rows = [["border below tier", f"{plan.nouns.items} above", "certain"]]
    return rows + [
        [str(tier), str(n_above), percent(sure)] for tier, n_above, sure in plan.borders()
    ]


def plan_as_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan in plain values; a number of votes that is not foreseen is null."""
    return {
        "aim": str(plan.aim),
        "target": plan.target,
        "now": plan.now,
        "is_reached": plan.is_reached,
        "tau": plan.sure.tau,
        "pairs_wrong": plan.sure.n_wrong,
        "first": {"item": plan.items[0], "probability": plan.sure.first},
        "top": {"places": max(plan.aim.n_places, 1), "probability": plan.sure.top},
        "borders": [
            {"below_tier": tier, "items_above": n_above, "probability": sure}
            for tier, n_above, sure in plan.borders()
        ],
        "votes": plan.n_votes,
        "users": plan.n_users,
        "more_votes": {way: _votes(plan.needed(way)) for way in WAYS},
        "with_infinitely_many": plan.best,
        "curve": plan.to_frame("polars").to_dicts(),
    }


def _votes(needed: Needed) -> dict[str, float | None]:
    return {
        name: value if math.isfinite(value) else None for name, value in needed._asdict().items()
    }


def print_first_plan(console: Console, plan: FirstPlan) -> None:
    """Print what every size gives, and which one is enough."""
    from rich.text import Text

    title = "first right" if plan.aim.n_places < 2 else f"first {plan.aim.n_places} right"
    rows = [["votes", "per user", "per item", "tau", "80 %", title, "enough"]]
    for row in plan.to_frame("polars").to_dicts():
        rows.append([
            f"{row['votes']:,}", f"{row['votes_per_user']:.1f}", f"{row['votes_per_item']:.0f}",
            f"{row['tau']:.3f}", f"{row['tau_low']:.2f} to {row['tau_high']:.2f}",
            percent(row["top"]), "yes" if row["is_enough"] else "no",
        ])  # fmt: skip
    print_whole(console, text_table(rows))
    console.print("tau   Kendall's tau with the true order, the mean of all simulated studies.")
    console.print("80 %  of the studies lie between these.", markup=False)
    console.print()
    for sentence in plan.sentences():
        console.print(Text(sentence))
