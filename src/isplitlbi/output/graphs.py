"""Graphs of items: how often pairs were compared, and every vote of a small example."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Tally, tally
from isplitlbi.errors import InvalidVotes
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.output.drawing import INK, MOST_ITEMS, MOST_ON_CIRCLE, new_axes, short_id
from isplitlbi.typing import Floats, Places

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["comparison_graph", "votes_graph"]

# Of a graph in which every vote can be seen.
MOST_VOTES = 60
MOST_VOTERS = 10
COLOURS = (
    "#1f6fb4", "#d9542b", "#2b8a4b", "#8e5bb5", "#b8860b",
    "#c2378a", "#0f8b8d", "#7a4a2b", "#5b6470", "#7f9c1f",
)  # fmt: skip
RADIUS, LETTER = 1.9, 0.068  # inches: of the circle, and what a letter of a name takes
BEND = 0.22  # between two lines of a pair, as a share of its length


def comparison_graph(model: ScoreEstimator, axes: Axes | None = None) -> Axes:
    """Draw which items were compared with which, and how often.

    A few items stand on a circle, in the order of the consensus: a line is as strong as votes are
    many, an item is as large as its votes. On a circle of many, nobody could follow a line: more
    than 24 are a table instead, the best first, with the votes on each pair as its colour.
    """
    found = tally(model.votes(), weighted=False)
    order = np.argsort(-model.consensus_, kind="stable")
    draw = _pairs_on_circle if len(order) <= MOST_ON_CIRCLE else _pairs_in_table
    return draw(model, found, order, axes)


def _pairs_on_circle(model: ScoreEstimator, found: Tally, order: Places, axes: Axes | None) -> Axes:
    from matplotlib.collections import LineCollection

    axes, n_items = new_axes(axes, (6, 6)), len(order)
    first, second, amount = found.first, found.second, found.amount
    angle = np.empty(n_items)
    angle[order] = np.pi / 2 - 2 * np.pi * np.arange(n_items) / n_items
    x, y = np.cos(angle), np.sin(angle)
    lines = np.stack(
        [np.column_stack([x[first], y[first]]), np.column_stack([x[second], y[second]])], 1
    )
    strength = amount / amount.max()
    axes.add_collection(
        LineCollection(list(lines), linewidths=0.2 + 2.5 * strength, colors=INK, alpha=0.25)
    )
    votes_of = np.bincount(first, amount, n_items) + np.bincount(second, amount, n_items)
    axes.scatter(
        x, y, s=20 + 130 * votes_of / votes_of.max(), c=model.consensus_, cmap="viridis", zorder=3
    )
    for item in range(n_items):
        side = "left" if x[item] >= 0 else "right"
        axes.text(1.08 * x[item], 1.08 * y[item], short_id(model.items_[item]), ha=side,
                  va="center", size=7)  # fmt: skip
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.3, 1.3), aspect="equal")
    axes.axis("off")
    return axes


def _pairs_in_table(model: ScoreEstimator, found: Tally, order: Places, axes: Axes | None) -> Axes:
    n_items = len(order)
    side = min(2.5 + 0.12 * n_items, 14.0)
    axes = new_axes(axes, (side + 0.8, side))
    votes = np.full((n_items, n_items), np.nan)  # of pairs that were never compared
    place = np.argsort(order)
    first, second = place[found.first], place[found.second]
    votes[first, second] = votes[second, first] = found.amount
    image = axes.imshow(votes, cmap="viridis_r", vmin=0.0, interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, label="votes on the pair", shrink=0.6)
    every = max(1, int(np.ceil(n_items / (2 * MOST_ITEMS))))
    names = [short_id(item, 36) for item in model.items_[order[::every]]]
    axes.set_yticks(range(0, n_items, every), names, size=6)
    axes.set_xticks(range(0, n_items, every), names, size=6, rotation=90)
    axes.set_xlabel(f"{model.nouns.items}, best first; white where nobody compared the two")
    return axes


def votes_graph(votes: Comparisons, axes: Axes | None = None) -> Axes:
    """Draw every vote of a small example: a colour for each user (the paper's Figure 1).

    An arrow goes from the better item to the worse, a dotted line is a tie. Votes on the same pair
    are curved apart. There is room for 60 votes of 10 users on 24 items; more are refused.
    """
    voters, users = np.unique(votes.user, return_inverse=True)
    compared, ends = np.unique([votes.left, votes.right], return_inverse=True)
    _refuse_many(votes.n_votes, len(voters), len(compared))
    names = [short_id(item) for item in votes.items[compared]]
    users_named = [short_id(user) for user in votes.users[voters]]
    room = _Room.of(names, users_named)
    axes = new_axes(axes, room.size())
    left, right = ends.reshape(2, -1)
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(compared)) / len(compared)
    place = np.column_stack([np.cos(angle), np.sin(angle)])
    bends = _bends(left, right)
    for vote in range(votes.n_votes):
        outcome, bend = votes.outcome[vote], bends[vote]
        begin, end = (right, left) if outcome < 0 else (left, right)
        _draw_vote(
            axes, place[begin[vote]], place[end[vote]], -bend if outcome < 0 else bend,
            COLOURS[users[vote]], is_tie=outcome == 0,
        )  # fmt: skip
    axes.scatter(place[:, 0], place[:, 1], s=70, color=INK, zorder=3)
    for (x, y), name in zip(place.tolist(), names, strict=True):
        side = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
        axes.text(1.14 * x, 1.14 * y, name, ha=side, va="center", size=8)
    _legend_of_votes(axes, users_named)
    axes.set(aspect="equal", **room.limits())
    axes.axis("off")
    return axes


class _Room(NamedTuple):
    """How many inches names beside the circle and the legend of users take."""

    beside: float
    legend: float

    @classmethod
    def of(cls, items: list[str], users: list[str]) -> _Room:
        longest_item, longest_user = (max(map(len, names)) for names in (items, users))
        return cls(LETTER * longest_item, 0.5 + LETTER * longest_user)

    def size(self) -> tuple[float, float]:
        return 2.4 * RADIUS + 2 * self.beside + self.legend, 2.4 * RADIUS + 0.4

    def limits(self) -> dict[str, tuple[float, float]]:
        right = 1.2 + (self.beside + self.legend) / RADIUS
        return {
            "xlim": (-1.2 - self.beside / RADIUS, right),
            "ylim": (-1.2 - 0.4 / RADIUS, 1.2),
        }


def _refuse_many(n_votes: int, n_users: int, n_items: int) -> None:
    if n_votes > MOST_VOTES or n_users > MOST_VOTERS or n_items > MOST_ON_CIRCLE:
        raise InvalidVotes(
            f"a graph of every vote has room for {MOST_VOTES} votes of {MOST_VOTERS} users on "
            f"{MOST_ON_CIRCLE} items, but there are {n_votes:,} of {n_users:,} on {n_items:,}: "
            "draw some of the votes (votes.subset), or plots.comparison_graph of a model."
        )


def _bends(left: Places, right: Places) -> Floats:
    """Return how far to bend the line of every vote, from the left item to the right one.

    The lines of a pair lie side by side around the straight one, whichever item is on the left.
    """
    bends = np.zeros(len(left))
    pairs: dict[tuple[int, int], list[int]] = {}
    for vote, pair in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        pairs.setdefault((min(pair), max(pair)), []).append(vote)
    for same in pairs.values():
        step = min(BEND, 1.2 / len(same))
        for number, vote in enumerate(same):
            bend = step * (number - 0.5 * (len(same) - 1))
            bends[vote] = bend if left[vote] < right[vote] else -bend
    return bends


def _draw_vote(
    axes: Axes, begin: Floats, end: Floats, bend: float, colour: str, *, is_tie: bool
) -> None:
    from matplotlib.patches import FancyArrowPatch

    axes.add_patch(
        FancyArrowPatch(
            (begin[0], begin[1]), (end[0], end[1]), connectionstyle=f"arc3,rad={bend:.4f}",
            arrowstyle="-" if is_tie else "-|>", mutation_scale=11, shrinkA=6, shrinkB=6, lw=1.5,
            linestyle=(0, (1, 1.6)) if is_tie else "-", color=colour,
        )
    )  # fmt: skip


def _legend_of_votes(axes: Axes, users: list[str]) -> None:
    """Say which colour is whose, and what arrows and dotted lines mean."""
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], color=colour, lw=3) for colour in COLOURS[: len(users)]]
    whose = axes.legend(
        marks, users, frameon=False, fontsize=8, loc="upper right", borderaxespad=0.0
    )
    axes.add_artist(whose)  # the next legend would take its place
    kinds = [
        Line2D([], [], color=INK, lw=1.5, marker=">", markevery=[1], ms=5),
        Line2D([], [], color=INK, lw=1.5, ls=(0, (1, 1.6))),
    ]
    axes.legend(
        kinds, ["from the better to the worse", "tie"], frameon=False, fontsize=8, ncols=2,
        loc="lower center", borderaxespad=0.0,
    )  # fmt: skip
