"""Figures of a fitted model, good enough for a paper (they need ``isplitlbi[plots]``).

Every function takes the model (`changes` takes a comparison of two, `votes_graph` takes votes) and,
if wanted, the axes to draw on, and returns the axes. No display is needed: save the figure with
``axes.figure.savefig(file)``. `decomposition` has four panels: it takes and returns an array of
four axes, so that this is ``axes[0, 0].figure.savefig(file)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isplitlbi.abnormal import KINDS
from isplitlbi.data.layout import SHARPNESS, TASTE, THRESHOLD
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.changes import Changes
from isplitlbi.output.drawing import (
    BAND,
    INK,
    MOST_BESIDE,
    MOST_ITEMS,
    MOST_USERS,
    PALE,
    name_columns,
    new_axes,
    of_all,
    short_id,
)
from isplitlbi.output.graphs import comparison_graph, votes_graph
from isplitlbi.output.heat_maps import decomposition, deviations
from isplitlbi.output.words import factor, name_of_term
from isplitlbi.selection import Scoring
from isplitlbi.typing import Floats, Mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "changes",
    "comparison_graph",
    "consensus_ladder",
    "cross_validation",
    "decomposition",
    "deviations",
    "distances",
    "path",
    "terms",
    "user_against_consensus",
    "votes_graph",
]


def path(model: ScoreEstimator, axes: Axes | None = None) -> Axes:
    """Draw every user's distance to the consensus along the path.

    Abnormal users are coloured by kind, a circle marks where a user leaves the consensus, and a
    line the time chosen.
    """
    along, found = model.path_, model.abnormality_
    if along is None or model.time_ is None:
        raise InvalidSetting(f"this model has no path: it is a {type(model).__name__}.")
    if len(along.times) < 2:
        raise InvalidSetting("this model keeps a single time of its path: too large to be drawn.")
    axes = new_axes(axes, (8, 4.2))
    distance = np.array([along.at(time).distance_to_consensus() for time in along.times])
    for user in np.argsort(found.flagged, kind="stable"):
        colour = _colour(found.kind[user])
        axes.plot(along.times, distance[:, user], color=colour, lw=1.2, zorder=2 + bool(colour))
        entry = model.entry_times_[user]
        if along.times[0] <= entry <= along.times[-1]:
            height = np.interp(np.log(entry), np.log(along.times), distance[:, user])
            axes.plot(entry, height, "o", ms=3.5, mfc="white", mec=colour, mew=1.2, zorder=4)
    axes.axvline(model.time_, color=INK, lw=1, ls=(0, (4, 3)), zorder=1)
    axes.text(model.time_, 1.0, " chosen", transform=axes.get_xaxis_transform(), va="top", size=8)
    _legend_of_kinds(axes, found.kind)
    axes.set(ylabel="distance to the consensus")
    _log_of_time(axes)
    return axes


def cross_validation(
    model: ScoreEstimator, scoring: Scoring = "log_loss", axes: Axes | None = None
) -> Axes:
    """Draw the held-out scores along the path, with their standard error over the folds.

    They end where the path of the first fold has ended, long past its best.
    """
    if model.selection_ is None:
        why = "it has no path" if model.path_ is None else "its time was given"
        raise InvalidSetting(f"this model has no cross-validation: {why}.")
    axes, curves = new_axes(axes, (6, 3.6)), model.selection_.chosen
    names = {
        "dense": "with all deviations",
        "sparse": f"with those of {model.nouns.users} who left",
    }
    for estimate, colour in (("dense", "#2166ac"), ("sparse", "#d9762b")):
        mean = curves.mean(scoring, estimate)  # type: ignore[arg-type]
        spread = np.nan_to_num(curves.spread(scoring, estimate))  # type: ignore[arg-type]
        axes.plot(curves.times, mean, color=colour, lw=1.5, label=names[estimate])
        axes.fill_between(
            curves.times, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0
        )
    axes.axvline(model.selection_.time, color=INK, lw=1, ls=(0, (4, 3)))
    axes.set(ylabel=f"held-out {scoring.replace('_f1', '-F1').replace('_', '-')}")
    _log_of_time(axes)
    axes.legend(frameon=False)
    return axes


def consensus_ladder(model: ScoreEstimator, axes: Axes | None = None) -> Axes:
    """Draw the consensus scores, best on top: tiers as bands, with 95 % intervals.

    The bar at the bottom is as long as the threshold: items that are no further apart tie. On the
    right is how readily items tie, as a factor on the threshold of their pairs. Without ties there
    are neither tiers nor a threshold.
    """
    ranking = model.ranking()
    n_items = len(ranking.items)
    axes = new_axes(axes, (6, min(2.0 + 0.22 * n_items, 14.0)))
    low, high = model.consensus_intervals()
    order = np.argsort(-model.consensus_, kind="stable")
    place = np.arange(n_items)
    for tier in () if ranking.tier is None else np.unique(ranking.tier):
        rows = place[ranking.tier == tier]
        if tier % 2:
            axes.axhspan(rows[0] - 0.5, rows[-1] + 0.5, color=BAND, lw=0, zorder=0)
    errors = np.abs(np.stack([low[order], high[order]]) - ranking.scores)
    axes.errorbar(
        ranking.scores, place, xerr=errors, fmt="o", ms=4, color=INK, ecolor=PALE, elinewidth=2
    )
    every = max(1, int(np.ceil(n_items / (2 * MOST_ITEMS))))
    axes.set_yticks(place[::every], [short_id(item) for item in ranking.items[::every]], size=8)
    axes.set_ylim(n_items + (-0.4 if ranking.threshold is None else 0.6), -0.7)
    if ranking.threshold is not None:
        start = float(np.min(ranking.scores))
        axes.plot([start, start + ranking.threshold], [n_items, n_items], color="#a50026", lw=3)
        axes.text(start + ranking.threshold, n_items, "  threshold", va="center", size=8)
    if model.terms_.has_habits:
        _habits(axes, place[::every], ranking.habits[::every])
    axes.set_xlabel("score in the consensus")
    return axes


def user_against_consensus(model: ScoreEstimator, user: Any, axes: Axes | None = None) -> Axes:
    """Draw one user's ranking beside the consensus; items the user never compared are grey.

    Of more than 40 items, only those that stand elsewhere for the user are named; they are blue.
    """
    index = model.user_index(user)
    if index < 0:
        raise InvalidVotes("name a user to draw beside the consensus.")
    items, own, common = model.items_, model.scores(user), model.scores()
    compared, has_moved = model.parameters_.compared_by(index), _has_moved(model, own, common)
    axes = new_axes(axes, (6, min(2.0 + 0.18 * len(items), 12.0)))
    moved = compared & has_moved
    colours = [INK if each else PALE for each in compared]
    for item, colour in enumerate(colours):
        axes.plot(
            [0, 1], [common[item], own[item]], "-o", ms=3,
            color="#2166ac" if moved[item] else colour, lw=1.4 if moved[item] else 0.8,
        )  # fmt: skip
    named = np.flatnonzero(moved | (len(items) <= MOST_BESIDE))
    named = named[np.argsort(-np.abs(own - common)[named], kind="stable")][:MOST_BESIDE]
    apart = float(np.ptp([own, common])) / max(MOST_BESIDE, 1.3 * len(items))
    for x, scores, side in ((-0.04, common, "right"), (1.04, own, "left")):
        for place, height in zip(named, _spread(scores[named], apart), strict=True):
            axes.text(x, height, short_id(items[place]), ha=side, va="center", size=7,
                      color=colours[place])  # fmt: skip
    axes.set(xlim=(-0.85, 1.85), ylabel="score")
    axes.set_xticks([0, 1], ["consensus", short_id(user)])
    return axes


def distances(
    model: ScoreEstimator,
    axes: Axes | None = None,
    share: float | None = None,
    most: int | None = MOST_USERS,
) -> Axes:
    """Draw users' distances to the consensus, the largest first, coloured by kind.

    Parameters
    ----------
    share
        Instead: only the first and the last to leave, as many as that share of the users.
    most
        How many users to show: the furthest. None for all of them; of more than 40, there are no
        names.
    """
    axes = new_axes(axes, (8, 3.4))
    distance, found = model.distance_to_consensus(), model.abnormality_
    voted = model.summary_.votes_per_user > 0
    order = np.lexsort((-distance, model.entry_times_))
    order = order[voted[order]]
    users = model.nouns.users
    if share is None:
        shown = order[np.argsort(-distance[order], kind="stable")][:most]
        told = f"{users}, the furthest first{of_all('first', shown, order)}"
    else:
        told = f"{users}, in the order in which they leave"
        some = max(1, round(share * len(order)))
        shown = np.concatenate([order[:some], order[-some:]])
        axes.axvline(some - 0.5, color=INK, lw=1, ls=(0, (4, 3)))
        percent = f"{100 * share:g} %"
        for x, name in ((0.25, f"first {percent} to leave"), (0.75, f"last {percent}")):
            axes.text(x, 0.97, name, transform=axes.transAxes, ha="center",
                      va="top", size=9)  # fmt: skip
    colours = [_colour(found.kind[user]) for user in shown]
    axes.bar(np.arange(len(shown)), distance[shown], color=colours, width=0.85)
    _legend_of_kinds(axes, [found.kind[user] for user in shown])
    axes.set(xlabel=told, ylabel="distance to the consensus")
    axes.set_xlim(-0.8, len(shown) - 0.2)
    name_columns(axes, model.users_[shown])
    return axes


def terms(model: ScoreEstimator, axes: Axes | None = None) -> Axes:
    """Draw how far every user is from the group in each term, in logits, and how far most are.

    A dot is a user, a bar holds the middle half of them. Terms stand in the order in which people
    differ. Sharpness is told at a margin that is ordinary in these votes: to the left of the group
    are users who tell items apart less clearly.
    """
    rows = _distances_by_term(model)
    if not rows:
        raise InvalidSetting("this model has no terms to draw: it is the model of the paper.")
    axes = new_axes(axes, (8, 1.0 + 0.75 * len(rows)))
    rng = np.random.default_rng(0)
    for place, values in enumerate(rows.values()):
        beside = place + rng.uniform(-0.28, 0.28, len(values))
        axes.plot(values, beside, "o", ms=3, color="#2166ac", mew=0, zorder=2,
                  alpha=float(np.clip(40 / len(values), 0.05, 0.6)))  # fmt: skip
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
        axes.plot([low, high], [place, place], color=INK, lw=5, solid_capstyle="butt", zorder=3)
        axes.plot(middle, place, "o", ms=5, mfc="white", mec=INK, zorder=4)
    axes.axvline(0.0, color=INK, lw=1, ls=(0, (4, 3)), zorder=1)
    axes.set_yticks(range(len(rows)), [short_id(name) for name in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"{model.nouns.users} compared with the group, in logits")
    return axes


def _distances_by_term(model: ScoreEstimator) -> dict[str, Floats]:
    """Return by how many logits users differ from the group in each term of one number."""
    found, common = model.parameters_, model.parameters_.common
    if model.terms_.ties == "bounded":
        return {}
    voted = model.summary_.votes_per_user > 0
    rows: dict[str, Floats] = {}
    for name in model.terms_.names:
        if name == TASTE or (name == THRESHOLD and not model.terms_.has_ties):
            continue
        off = found.all_of(name)[voted] - common.trait(name)
        if name == SHARPNESS:  # at a margin as they are between two items
            off = off * _ordinary_margin(model)
        rows[name] = off
    order = sorted(rows, key=lambda name: -model.spreads_.get(name, 0.0))
    return {name_of_term(name): rows[name] for name in order}


def _ordinary_margin(model: ScoreEstimator) -> float:
    reference = model.terms_.reference
    return float(np.sqrt(2.0) * np.std(model.consensus_ if reference is None else reference))


def changes(found: Changes, axes: Axes | None = None) -> Axes:
    """Draw by how much scores changed between two models (`isplitlbi.compare`), best on top.

    Thick bars are 95 % intervals of each item by itself, thin ones hold for all items at once.
    Items whose thin bar leaves out 0 have changed, and are dark.
    """
    n_items = len(found.items)
    axes = new_axes(axes, (6, min(1.2 + 0.24 * n_items, 14.0)))
    place = np.arange(n_items)
    colours = np.where(found.changed, INK, "#7f8b99")
    axes.axvline(0.0, color=INK, lw=1, ls=(0, (4, 3)), zorder=1)
    axes.hlines(place, found.low_of_all, found.high_of_all, color=PALE, lw=1, zorder=2)
    axes.hlines(place, found.low, found.high, color=PALE, lw=3.5, zorder=2)
    axes.scatter(found.change, place, s=22, c=colours.tolist(), zorder=3)
    every = max(1, int(np.ceil(n_items / (2 * MOST_ITEMS))))
    axes.set_yticks(place[::every], [short_id(item) for item in found.items[::every]], size=8)
    axes.set_ylim(n_items - 0.4, -0.6)
    axes.set_xlabel("change of the score (95 %: one by one, all at once)")
    return axes


def _habits(axes: Axes, place: NDArray[np.intp], habits: Floats) -> None:
    """Write how readily items tie beside their rows."""
    at = axes.get_yaxis_transform()
    axes.text(1.02, -0.7, "ties", transform=at, size=8, va="bottom")
    for row, habit in zip(place.tolist(), habits.tolist(), strict=True):
        colour = INK if abs(np.log(habit)) > np.log(1.1) else PALE
        axes.text(1.02, row, factor(habit), transform=at, size=8, va="center", color=colour)


def _has_moved(model: ScoreEstimator, own: Floats, common: Floats) -> Mask:
    """Say which items stand elsewhere for a user: beyond the threshold or, without, in rank."""
    if model.threshold_ is not None:
        return np.asarray(np.abs(own - common) > model.threshold_)
    rank, rank_in_common = (np.argsort(np.argsort(-each, kind="stable")) for each in (own, common))
    return np.asarray(rank != rank_in_common)


def _colour(kind: str) -> str:
    return KINDS[kind].colour if kind else PALE


def _log_of_time(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(xscale="log", xlabel="time on the path")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: f"{time:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _spread(heights: Floats, apart: float) -> Floats:
    """Move labels as little as needed for them to be so far apart, in their order.

    Labels that would overlap stand together around the middle of where they belong.
    """
    order = np.argsort(heights, kind="stable")
    groups: list[list[float]] = []
    for height in heights[order].tolist():
        groups.append([height])
        while len(groups) > 1 and _lowest(groups[-1], apart) < _highest(groups[-2], apart) + apart:
            groups[-2:] = [groups[-2] + groups[-1]]
    spread = np.empty(len(heights))
    spread[order] = [
        _lowest(group, apart) + apart * place for group in groups for place in range(len(group))
    ]
    return spread


def _lowest(group: list[float], apart: float) -> float:
    return sum(group) / len(group) - 0.5 * apart * (len(group) - 1)


def _highest(group: list[float], apart: float) -> float:
    return sum(group) / len(group) + 0.5 * apart * (len(group) - 1)


def _legend_of_kinds(axes: Axes, kinds: list[str]) -> None:
    from matplotlib.lines import Line2D

    present = [kind for kind in KINDS if kind in kinds]
    marks = [Line2D([], [], color=_colour(kind), lw=3) for kind in present]
    if "" in kinds:
        present, marks = [*present, "not abnormal"], [*marks, Line2D([], [], color=PALE, lw=3)]
    counts = [sum(kind == (name if name in KINDS else "") for kind in kinds) for name in present]
    labels = [f"{name} ({count})" for name, count in zip(present, counts, strict=True)]
    axes.legend(
        marks, labels, frameon=False, fontsize=8, ncols=4, loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
    )  # fmt: skip
