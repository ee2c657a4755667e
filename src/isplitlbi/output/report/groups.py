"""Whether people fall into groups that want the same: a section of the report, with a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isplitlbi.errors import InvalidVotes
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.groups import Groups
from isplitlbi.output.groups import members_in_cells, tried_in_cells
from isplitlbi.output.report.ids import isolated_id, plain_id

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["groups_of"]

# Squares of the numbers of items that users have compared, added up: of so many, the search takes a
# few seconds. Of more, the section says which command finds groups.
MOST_WORK = 250_000

MOST_ITEMS = 30  # of the picture
WIDTH, NAMES, RIGHT, ROW, ABOVE, BELOW = 640, 150, 24, 24, 6, 34
LONGEST_NAME = 20  # characters
RADIUS = 8.5


def groups_of(model: ScoreEstimator) -> dict[str, Any] | None:
    """Return what the section says: sentences, tables, and where items stand in each group.

    There is nothing of an anonymous crowd, and of too few votes.
    """
    if not model.has_users or not model.has_votes():
        return None
    if int(np.sum(model.parameters_.slots.sizes.astype(np.int64) ** 2)) > MOST_WORK:
        return {"sentences": [], "tried": [], "members": [], "picture": None}
    try:
        found = model.groups()
    except InvalidVotes:
        return None
    several = len(found) > 1
    return {
        "sentences": found.sentences(isolated_id),
        "tried": tried_in_cells(found)[1:],
        "members": members_in_cells(found)[1:] if several else [],
        "picture": _dots(found) if several else None,
    }


def _dots(found: Groups) -> Markup:
    """Draw the scores of all items in every group as SVG, a dot with the number of each group."""
    from markupsafe import Markup

    scores = {
        each.number: dict(
            zip(each.ranking.items.tolist(), each.ranking.scores.tolist(), strict=True)
        )
        for each in found.groups
    }
    spread = {item: np.ptp([each[item] for each in scores.values()]).item() for item in scores[1]}
    shown = sorted(spread, key=lambda item: -spread[item])[:MOST_ITEMS]
    shown.sort(key=lambda item: -float(np.mean([each[item] for each in scores.values()])))
    values = [each[item] for each in scores.values() for item in shown]
    low, high = min(values), max(values)
    scale = (WIDTH - NAMES - RIGHT) / max(high - low, 1e-9)
    height, parts = ABOVE + ROW * len(shown) + BELOW, []
    line = Markup('<line class="mark" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>')
    text = Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
    dot = Markup(
        '<g><title>{}</title><circle cx="{:.1f}" cy="{:.1f}" r="{}"/>'
        '<text class="inside" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text></g>'
    )
    for row, item in enumerate(shown):
        y = ABOVE + ROW * (row + 0.5)
        parts.append(line.format(NAMES, WIDTH - RIGHT + 10, y, y))
        parts.append(text.format(NAMES - 14, y + 4, "end", plain_id(item, LONGEST_NAME)))
        for number, each in scores.items():
            x = NAMES + scale * (each[item] - low)
            told = f"{plain_id(item)}, group {number}: {each[item]:+.2f}"
            parts.append(dot.format(told, x, y, RADIUS, x, y + 4, number))
    bottom = height - BELOW + 16
    parts.append(text.format(NAMES, bottom, "start", f"{low:+.1f}"))
    parts.append(text.format(WIDTH - RIGHT, bottom, "end", f"{high:+.1f}"))
    middle = 0.5 * (NAMES + WIDTH - RIGHT)
    parts.append(text.format(middle, bottom + 12, "middle", "score in the group"))
    told = f"Scores of {len(shown)} {found.nouns.items} in each of {len(found)} groups."
    drawing = Markup('<svg class="groups" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return drawing.format(WIDTH, height, told, Markup("").join(parts))
