"""Heat maps of users' deviations, by item: all of them, and the parts that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage

from isplitlbi.data.layout import SHARPNESS
from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.model.decomposition import Decomposition
from isplitlbi.output.drawing import (
    INK,
    MOST_ITEMS,
    MOST_USERS,
    name_columns,
    new_axes,
    new_figure,
    of_all,
    short_id,
)
from isplitlbi.output.parts import PartsShown
from isplitlbi.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    from isplitlbi.nouns import Nouns

__all__ = ["decomposition", "deviations"]

GROUND = "#dfe3e9"  # where a panel has no number


def deviations(
    model: ScoreEstimator,
    axes: Axes | None = None,
    order: bool = True,
    most: int | None = MOST_USERS,
) -> Axes:
    """Draw the deviations of users (columns) by item (rows); white is the consensus.

    Items are ordered by the consensus; of more than 60, those with the largest deviations are
    shown.

    Parameters
    ----------
    order
        Whether alike users stand side by side; otherwise those who deviate most come first.
    most
        How many users to show: those who deviate most. None for all of them; of more than 40, there
        are no names.
    """
    table, nouns = _score_deviations(model), model.nouns
    users = np.argsort(-np.linalg.norm(table, axis=1), kind="stable")[:most]
    most_moved = np.argsort(-np.linalg.norm(table[users], axis=0), kind="stable")[:MOST_ITEMS]
    best = np.argsort(-model.consensus_, kind="stable")
    items = best[np.isin(best, most_moved)]
    if order and len(users) > 2:
        tree = linkage(table[users], "average", optimal_ordering=len(users) <= 500)
        users = users[leaves_list(tree)]
    shown = table[np.ix_(users, items)]
    axes = new_axes(axes, (8, 2.5 + 0.14 * len(items)))
    largest = float(np.quantile(np.abs(shown), 0.995)) or 1.0
    image = axes.imshow(
        shown.T, aspect="auto", cmap="RdBu", vmin=-largest, vmax=largest, interpolation="nearest"
    )
    axes.figure.colorbar(image, ax=axes, label="own score minus consensus")
    name_columns(axes, model.users_[users])
    axes.set_yticks(range(len(items)), [short_id(item, 36) for item in model.items_[items]], size=7)
    across = "similar ones side by side" if order else "the furthest first"
    axes.set_xlabel(f"{nouns.users}, {across}{of_all('furthest', users, model.users_)}")
    axes.set_ylabel(f"{nouns.items}, best on top{of_all('most moved', items, best)}")
    return axes


def decomposition(
    model: ScoreEstimator,
    axes: NDArray[Any] | None = None,
    noise_level: float = 2.0,
    most: int | None = MOST_USERS,
) -> NDArray[Any]:
    """Draw P as the sum of its parts: strong, personal and noise (the paper's Figure 2).

    Four panels on one scale, on which weak deviations can be seen beside strong ones (colours
    follow the root of a number): all of P, then each part. Users are columns, in the order in which
    they leave; a line stands after those who have left at the chosen time. Items are rows, best
    first; below them are the threshold and the other terms of one number, in units of their terms.
    Grey is what a panel has no number for. Of more than 60 items, those with the largest deviations
    are shown.

    Parameters
    ----------
    axes
        Four axes, such as ``figure.subplots(2, 2)``; an array of them is returned.
    noise_level
        As for ``model.decompose``.
    most
        How many users to show; of more, the first who left and the first of the others, half of
        each as far as there are so many. None for all of them; of more than 40, there are no names.
        The numbers in the titles are those of all users.
    """
    parts, nouns = model.decompose(noise_level), model.nouns
    shown = PartsShown.of(model, parts, most, MOST_ITEMS)
    if axes is None:
        size = (12, 3.6 + 0.24 * (len(shown.items) + len(shown.traits)))
        axes = new_figure(size).subplots(2, 2, sharex=True, sharey=True)
    four = np.asarray(axes, dtype=object)
    if four.size != 4:
        raise InvalidSetting(f"the decomposition has four panels, but {four.size} axes were given.")
    tables = shown.panels(parts)
    finite = np.abs(tables[0][np.isfinite(tables[0])])
    largest = float(np.quantile(finite, 0.99)) if len(finite) else 1.0
    names = [short_id(item, 30) for item in model.items_[shown.items]]
    names += [short_id(parts.traits[place], 30) for place in shown.traits]
    for panel, table, title in zip(four.flat, tables, _titles(parts, shown, nouns), strict=True):
        image = _draw_part(panel, table, largest, shown)
        panel.set_title(title, size=9, loc="left")
        name_columns(panel, model.users_[shown.users])
        panel.set_yticks(range(len(names)), names, size=7)
        panel.label_outer()
    units = "" if model.terms_.ties == "bounded" else ", in units of the terms"
    figure = four.flat[0].figure
    figure.colorbar(
        image, ax=list(four.flat), extend="both", label=f"deviation from the consensus{units}",
        shrink=0.7, aspect=40, ticks=_ticks(largest), format="%g",
    )  # fmt: skip
    figure.supxlabel(_columns_in_words(shown, nouns), size=9)
    chosen = of_all("most moved", shown.items, model.items_)
    figure.supylabel(f"{nouns.items}, best on top{chosen}", size=9)
    return four


def _draw_part(panel: Axes, table: Floats, largest: float, shown: PartsShown) -> AxesImage:
    """Draw a table, with a line after those who have left and one below the items."""
    from matplotlib.colors import FuncNorm

    panel.set_facecolor(GROUND)
    if 0 < shown.n_left < len(shown.users):
        panel.axvline(shown.n_left - 0.5, color=INK, lw=1, ls=(0, (4, 3)))
    if len(shown.traits):
        panel.axhline(len(shown.items) - 0.5, color=INK, lw=0.8)
    scale = FuncNorm((_signed_root, _signed_square), -largest, largest)
    return panel.imshow(table, aspect="auto", cmap="RdBu", norm=scale, interpolation="nearest")


def _ticks(largest: float) -> list[float]:
    """Return round numbers on both sides of 0, closer to each other where they are small."""
    step = 10.0 ** np.floor(np.log10(largest))
    step = next(step * each for each in (5.0, 2.0, 1.0) if step * each <= largest)
    return [sign * step / part for part in (1, 5, 25) for sign in (-1, 1)] + [0.0]


def _signed_root(value: Any) -> Any:
    return np.sign(value) * np.sqrt(np.abs(value))


def _signed_square(root: Any) -> Any:
    return root * np.abs(root)


def _titles(parts: Decomposition, shown: PartsShown, nouns: Nouns) -> list[str]:
    """Say what each panel holds, with the counts of all users."""
    strong, personal, noise = (part.nnz for part in parts)
    n_personal = int(np.count_nonzero(np.diff(parts.personal.indptr)))
    left = shown.n_left_of_all
    have = f"{nouns.n_users(left)} who {'has' if left == 1 else 'have'} left the consensus"
    whose = f"{strong:,}, all of {have}" if left else "nothing, because nobody has left"
    return [
        f"P: all {strong + personal + noise:,} deviations of {nouns.n_users(shown.n_users_of_all)}",
        f"= strong: {whose}\n(the paper's abnormal part)",
        f"+ personal: {personal:,} others that stand out from noise, of "
        f"{nouns.n_users(n_personal)}",
        f"+ noise: {noise:,}, the rest",
    ]


def _columns_in_words(shown: PartsShown, nouns: Nouns) -> str:
    """Say which users are shown, and in which order."""
    have, others = shown.counts_in_words()
    return (
        f"{nouns.users}, in the order in which they leave: {have} who have left at the chosen "
        f"time, then {others} who have not"
    )


def _score_deviations(model: ScoreEstimator) -> Floats:
    """Return own score minus consensus of all users and items."""
    found, reference = model.parameters_, model.terms_.reference
    table = found.table()[:, found.vector.scores] * model.terms_.scales[0]
    if reference is not None:
        table = table + found.all_of(SHARPNESS)[:, None] * reference
    return table
