"""Whether one can stop, and what more votes would give: a section of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.plans import Plan, percent
from isplitlbi.output.report.boards import is_large
from isplitlbi.output.report.ids import isolated_id
from isplitlbi.planning.ahead import WAYS
from isplitlbi.typing import Floats

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["plan_of"]

WIDTH, HEIGHT, LEFT, BELOW, ABOVE, RIGHT = 640, 220, 44, 38, 10, 130
NAMES = {"asked": "asked for", "random": "random pairs"}
APART = 14.0  # of two labels, at least


def plan_of(model: ScoreEstimator) -> dict[str, Any] | None:
    """Return what the section says; nothing of very large studies, which it would take long for."""
    if is_large(model) or len(model.items_) < 2:
        return None
    try:
        plan = model.plan()
    except InvalidSetting:  # parts that nobody has compared; what the votes are like says so
        return None
    return {
        "sentences": plan.sentences(isolated_id),
        "borders": [
            {"tier": tier, "above": n_above, "sure": percent(sure)}
            for tier, n_above, sure in plan.borders()
        ],
        "picture": _curves(plan),
    }


def _curves(plan: Plan) -> Markup:
    """Draw Kendall's tau by further votes as SVG, which follows the colours of the page."""
    from markupsafe import Markup

    n_more = plan.ahead.asked.n_more
    means = {way: getattr(plan.ahead, way).tau.mean(axis=0) for way in WAYS}
    low = float(min(np.floor(20.0 * min(each.min() for each in means.values())) / 20.0, 0.95))
    x = _across(np.log1p(n_more / max(n_more[1], 1.0)))
    parts, line = [], Markup('<line class="mark" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>')
    for tick in np.linspace(low, 1.0, 6):
        y = float(_up(np.array([tick]), low)[0])
        parts.append(line.format(LEFT, WIDTH - RIGHT, y))
        parts.append(_text(LEFT - 6, y + 4, f"{tick:.2f}", "end"))
    for at in range(0, len(n_more), 2):
        parts.append(_text(x[at], HEIGHT - BELOW + 16, f"{int(n_more[at]):,}", "middle"))
    middle = 0.5 * (LEFT + WIDTH - RIGHT)
    parts.append(_text(middle, HEIGHT - 4, "more votes", "middle"))
    ends = {way: float(_up(mean[-1:], low)[0]) for way, mean in means.items()}
    if abs(ends["asked"] - ends["random"]) < APART:
        ends = {"asked": ends["random"] - APART, "random": ends["random"]}
    for way, mean in means.items():
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, _up(mean, low), strict=True))
        parts.append(Markup('<polyline class="{}" points="{}"/>').format(way, points))
        parts.append(_text(WIDTH - RIGHT + 6, ends[way] + 4, NAMES[way], "start"))
    told = (
        f"Kendall's tau with the true order, now {means['asked'][0]:.2f}, by more votes: "
        f"{means['asked'][-1]:.2f} after {int(n_more[-1]):,} votes that are asked for, "
        f"{means['random'][-1]:.2f} on random pairs."
    )
    drawing = Markup('<svg class="plan" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return drawing.format(WIDTH, HEIGHT, told, Markup("").join(parts))


def _across(values: Floats) -> Floats:
    return np.asarray(LEFT + (WIDTH - RIGHT - LEFT) * values / values[-1])


def _up(values: Floats, low: float) -> Floats:
    room = HEIGHT - BELOW - ABOVE
    return np.asarray(ABOVE + room * (1.0 - (values - low) / (1.0 - low)))


def _text(x: float, y: float, words: str, anchor: str) -> Markup:
    from markupsafe import Markup

    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, words
    )
