"""What all figures share: colours, how many names have room, new axes, and ids in short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from isplitlbi.errors import MissingLibrary
from isplitlbi.markup import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BAND",
    "INK",
    "MOST_BESIDE",
    "MOST_ITEMS",
    "MOST_ON_CIRCLE",
    "MOST_USERS",
    "PALE",
    "name_columns",
    "new_axes",
    "new_figure",
    "of_all",
    "short_id",
]

INK, PALE, BAND = "#2f3640", "#b4bdc9", "#eef1f5"
MOST_USERS = 40  # names along an axis that lies
MOST_ITEMS = 60  # names along one that stands
MOST_BESIDE = 40  # names beside the scores that they belong to
MOST_ON_CIRCLE = 24


def new_axes(axes: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or new ones that need no display."""
    if axes is not None:
        return axes
    axes = new_figure(size).subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def new_figure(size: tuple[float, float]) -> Figure:
    """Return a figure that needs no display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingLibrary(
            "figures need matplotlib; install it with: pip install 'isplitlbi[plots]'"
        ) from None
    figure = Figure(figsize=size, layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    return figure


def of_all(which: str, shown: NDArray[Any], everything: NDArray[Any]) -> str:
    """Say which of many are shown; nothing where all of them are."""
    n, n_all = len(shown), len(everything)
    return f": the {which} {n} of {n_all:,}" if n < n_all else ""


def name_columns(axes: Axes, names: NDArray[Any]) -> None:
    """Write names below the columns of a picture, unless they are too many to be read."""
    if len(names) > MOST_USERS:
        axes.set_xticks([])
    else:
        axes.set_xticks(
            range(len(names)), [short_id(name, 18) for name in names], size=7, rotation=90
        )


def short_id(label: Any, most: int = 28) -> str:
    """Return an id short enough for a figure; nothing in it is taken for a formula."""
    text = str(label)
    text = printable(text)
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return text.replace("$", r"\$")
