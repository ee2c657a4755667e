"""A picture of one number per user: a dot for each, or bars where there are too many."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isplitlbi.output.report.ids import plain_id
from isplitlbi.typing import Floats

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Strip", "strip_of"]

WIDTH, HEIGHT, BELOW, MARGIN = 480, 72, 22, 16
EDGE = 14  # half of the width of a number
RADII = (4.5, 3.5, 2.6, 1.9)  # of dots; where the smallest do not fit, there are bars
MOST_DOTS = 600
N_BARS = 80
LARGEST_FACTOR = 16.0


class Strip(NamedTuple):
    """What is drawn."""

    users: list[Any]
    values: Floats
    marks: tuple[float, ...]  # values that mean something, such as that of the group
    is_factor: bool = False  # on a scale on which twice and half are as far from one


def strip_of(strip: Strip, label: str) -> Markup:
    """Draw it as SVG, which follows the colours of the page."""
    from markupsafe import Markup

    at, low, high = _positions(strip)
    parts = [
        Markup('<line class="mark" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}"/>').format(x, HEIGHT)
        for x in _place(np.array(_on_scale(strip, strip.marks)), low, high)
    ]
    parts += _dots(strip, at) or _bars(at)
    parts.append(
        Markup('<line class="axis" x1="0" x2="{}" y1="{}" y2="{}"/>').format(WIDTH, HEIGHT, HEIGHT)
    )
    for value, text in _factor_ticks(low, high) if strip.is_factor else _ticks(low, high):
        (x,) = _place(np.array([value]), low, high)
        if not EDGE <= x <= WIDTH - EDGE:  # it would be cut
            continue
        parts.append(
            Markup('<text x="{:.1f}" y="{}">{}</text>').format(x, HEIGHT + BELOW - 6, text)
        )
    drawing = Markup('<svg viewBox="0 -4 {} {}" role="img" aria-label="{}">{}</svg>')
    return drawing.format(WIDTH, HEIGHT + BELOW + 4, label, Markup("").join(parts))


def _on_scale(strip: Strip, values: Any) -> Floats:
    if not strip.is_factor:
        return np.asarray(values, dtype=np.float64)
    return np.asarray(np.log2(np.clip(values, 1.0 / LARGEST_FACTOR, LARGEST_FACTOR)))


def _positions(strip: Strip) -> tuple[Floats, float, float]:
    """Return where users lie, and between which values the picture is."""
    values, marks = _on_scale(strip, strip.values), _on_scale(strip, strip.marks)
    low, high = float(min(values.min(), marks.min())), float(max(values.max(), marks.max()))
    around = max(0.02 * (high - low), 0.1 if high - low < 0.2 else 0.0)
    low, high = low - around, high + around
    return _place(values, low, high), low, high


def _place(values: Floats, low: float, high: float) -> Floats:
    return MARGIN + (WIDTH - 2 * MARGIN) * (values - low) / (high - low)


def _dots(strip: Strip, at: Floats) -> list[Markup]:
    """Return a dot for every user, those of about the same value upon each other."""
    from markupsafe import Markup

    if len(at) > MOST_DOTS:
        return []
    for radius in RADII:
        column = np.floor(at / (2 * radius)).astype(np.intp)
        highest = np.bincount(column).max()
        if 2 * radius * highest <= HEIGHT:
            break
    step = min(2 * radius, HEIGHT / highest)  # where all are alike, dots overlap
    dot = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}: {}</title></circle>')
    sign, dots = "x" if strip.is_factor else "", []
    below: dict[int, int] = {}
    for place in np.argsort(at, kind="stable"):
        height = below.get(int(column[place]), 0)
        below[int(column[place])] = height + 1
        x, y = (column[place] + 0.5) * 2 * radius, HEIGHT - (height + 0.5) * step
        told = f"{sign}{strip.values[place]:.2f}"
        dots.append(dot.format(x, y, radius - 0.4, plain_id(strip.users[place]), told))
    return dots


def _bars(at: Floats) -> list[Markup]:
    """Return bars as high as users are many."""
    from markupsafe import Markup

    count, edge = np.histogram(at, N_BARS, (MARGIN, WIDTH - MARGIN))
    width, most = edge[1] - edge[0], max(int(count.max()), 1)
    bar = Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>')
    return [
        bar.format(x, HEIGHT * (1 - n / most), width - 0.8, HEIGHT * n / most)
        for x, n in zip(edge[:-1].tolist(), count.tolist(), strict=True)
        if n
    ]


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return some round numbers between two.

    >>> [text for _, text in _ticks(-0.3, 1.2)]
    ['0', '0.5', '1']
    """
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= rough)
    step = max(step, 0.01)
    first = math.ceil(low / step)
    numbers = [step * k for k in range(first, math.floor(high / step) + 1)]
    return [(number, f"{number + 0.0:.4g}".replace("-", "\u2212")) for number in numbers]


def _factor_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return factors between two logarithms to base two.

    >>> [text for _, text in _factor_ticks(-1.2, 3.4)]
    ['x0.5', 'x1', 'x2', 'x5', 'x10']
    >>> [text for _, text in _factor_ticks(-0.4, 0.3)]
    ['x0.8', 'x1', 'x1.2']
    """
    steps = (1.0, 2.0, 5.0) if high - low >= 2.0 else (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 6.0, 8.0)
    factors = [step * 10.0**power for power in range(-2, 3) for step in steps]
    ticks = [(math.log2(factor), f"x{factor:.2g}") for factor in factors]
    return [(place, text) for place, text in ticks if low <= place <= high]
