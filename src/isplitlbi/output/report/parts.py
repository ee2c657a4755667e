"""What deviations are made of: a section of the report, with a picture of each part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isplitlbi.estimators import ScoreEstimator
from isplitlbi.output.parts import PartsShown, parts_by_user, parts_in_words
from isplitlbi.output.report.ids import plain_id
from isplitlbi.output.report.people import joined
from isplitlbi.typing import Floats, Mask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markupsafe import Markup

    from isplitlbi.nouns import Nouns

__all__ = ["parts_of"]

# So that the section is no larger for a large study.
MOST_USERS, MOST_ITEMS = 40, 30

WIDTH, NAMES, ROW, GAP = 480, 110, 13, 6
LONGEST_NAME = 16  # characters
N_SHADES = 12  # of each colour
TITLES = ("All deviations", "= Strong", "+ Personal", "+ Noise")


def parts_of(model: ScoreEstimator) -> dict[str, Any] | None:
    """Return what deviations are made of: a sentence, four pictures and a table.

    There is nothing where nobody can leave: of an anonymous crowd, and of a fit without a path.
    """
    if not model.has_users or model.path_ is None:
        return None
    parts, nouns = model.decompose(), model.nouns
    shown = PartsShown.of(model, parts, MOST_USERS, MOST_ITEMS)
    tables = shown.panels(parts)
    finite = np.abs(tables[0][np.isfinite(tables[0])])
    largest = float(np.quantile(finite, 0.99)) if len(finite) else 1.0
    rows = [plain_id(item, LONGEST_NAME) for item in model.items_[shown.items]]
    rows += [plain_id(parts.traits[place], LONGEST_NAME) for place in shown.traits]
    users = [plain_id(user) for user in model.users_[shown.users]]
    counts = [sum(part.nnz for part in parts), *(part.nnz for part in parts)]
    told = _told(nouns, [plain_id(parts.traits[place]) for place in shown.traits])
    pictures = [
        {
            "title": f"{title} ({count:,}).",
            "told": words,
            "picture": _picture(table, largest, rows, users, shown, f"{title}: {count:,} numbers."),
        }
        for title, words, table, count in zip(TITLES, told, tables, counts, strict=True)
    ]
    return {
        "sentence": parts_in_words(parts, shown.n_users_of_all, nouns),
        "some": _some_in_words(shown, len(model.items_), nouns),
        "pictures": pictures,
        "rows": [row._asdict() for row in parts_by_user(model, parts, shown.users)],
        "is_part": len(shown.users) < shown.n_users_of_all,
    }


def _told(nouns: Nouns, traits: list[str]) -> tuple[str, ...]:
    below = f", then {joined(traits)}" if traits else ""
    return (
        f"Columns are {nouns.users}, in the order in which they leave the consensus; rows are "
        f"{nouns.items}, best first{below}.",
        f"All of the {nouns.users} who have left (the paper calls this part abnormal).",
        f"What stands out from noise, of {nouns.users} who have not left.",
        "The rest: no larger than chance alone may give.",
    )


def _some_in_words(shown: PartsShown, n_items: int, nouns: Nouns) -> str:
    """Say who is shown of many; nothing where everybody is."""
    said = []
    if len(shown.users) < shown.n_users_of_all:
        left, others = shown.counts_in_words()
        said.append(f"Shown are {left} {nouns.users} who have left and {others} who have not.")
    if len(shown.items) < n_items:
        said.append(
            f"Shown are the {len(shown.items)} of {nouns.n_items(n_items)} with the largest "
            "deviations."
        )
    return " ".join(said)


def _picture(
    table: Floats, largest: float, rows: list[str], users: list[str], shown: PartsShown, label: str
) -> Markup:
    """Draw a table as SVG, which follows the colours of the page.

    Cells of the same shade are one path: a picture of many cells is still small.
    """
    from markupsafe import Markup

    column = (WIDTH - NAMES) / max(len(users), 1)
    is_trait = np.arange(len(rows)) >= len(shown.items)
    top = ROW * np.arange(len(rows)) + np.where(is_trait, GAP, 0)
    height = ROW * len(rows) + (GAP if is_trait.any() else 0)
    # The root, so that weak deviations can be seen beside strong ones.
    share = np.sqrt(np.minimum(np.abs(np.nan_to_num(table)) / largest, 1.0))
    shade = np.ceil(share * N_SHADES) * np.sign(np.nan_to_num(table))
    parts = []
    for level in np.unique(shade).tolist():
        path = "".join(
            f"M{NAMES + column * begin:.1f} {top[row]}h{column * length:.1f}v{ROW}"
            f"h-{column * length:.1f}z"
            for row, begin, length in _runs(shade == level)
        )
        kind = "none" if level == 0.0 else "more" if level > 0.0 else "less"
        opacity = f"{abs(level) / N_SHADES:.2f}" if level else "1"
        cells = Markup('<path class="{}" fill-opacity="{}" d="{}"/>')
        parts.append(cells.format(kind, opacity, path))
    if 0 < shown.n_left < len(users):
        mark = Markup('<line class="mark" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}"/>')
        parts.append(mark.format(NAMES + column * shown.n_left, height))
    parts += [
        Markup('<text x="{}" y="{}">{}</text>').format(NAMES - 6, y + ROW - 3, name)
        for y, name in zip(top.tolist(), rows, strict=True)
    ]
    whose = Markup(
        '<rect class="whose" x="{:.1f}" y="0" width="{:.1f}" height="{}"><title>{}</title></rect>'
    )
    parts += [  # what the mouse points at
        whose.format(NAMES + column * place, column, height, user)
        for place, user in enumerate(users)
    ]
    drawing = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return drawing.format(WIDTH, height, label, Markup("").join(parts))


def _runs(mask: Mask) -> Iterator[tuple[int, int, int]]:
    """Return where cells stand side by side: the row, the first column, and how many.

    >>> list(_runs(np.array([[True, True, False, True], [False] * 4])))
    [(0, 0, 2), (0, 3, 1)]
    """
    for row, cells in enumerate(mask):
        edges = np.diff(cells.astype(np.int8), prepend=0, append=0)
        begins, ends = np.flatnonzero(edges > 0).tolist(), np.flatnonzero(edges < 0).tolist()
        for begin, end in zip(begins, ends, strict=True):
            yield row, begin, end - begin
