"""Tables of texts, on a screen and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from isplitlbi.nouns import NOUNS, Nouns

__all__ = ["aligned", "amount", "as_html"]


def aligned(cells: Sequence[Sequence[str]], nouns: Nouns = NOUNS) -> list[str]:
    """Return a table as lines: ids and groups on the left of a column, numbers on the right."""
    from rich.cells import cell_len

    rows = _headed(cells, nouns)
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    is_left = [name in ("item", "other", "group") for name in cells[0]]
    lines = []
    for row in rows:
        parts = []
        for text, width, left in zip(row, widths, is_left, strict=True):
            space = " " * (width - cell_len(text))
            parts.append(text + space if left else space + text)
        lines.append("  ".join(parts).rstrip())
    return lines


def _headed(cells: Sequence[Sequence[str]], nouns: Nouns) -> list[Sequence[str]]:
    """Return a table with headings in the words of the study."""
    return [[nouns.heading(name) for name in cells[0]], *cells[1:]]


def as_html(cells: Sequence[Sequence[str]], nouns: Nouns = NOUNS) -> str:
    """Return the same for a notebook; an id is text there, whatever is in it."""
    head, *rows = ([escape(text) for text in row] for row in _headed(cells, nouns))
    lines = ["<table>", f"<thead><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr></thead>"]
    lines += [
        "<tbody>",
        *(f"<tr>{''.join(f'<td>{text}</td>' for text in row)}</tr>" for row in rows),
    ]
    return "\n".join([*lines, "</tbody>", "</table>"])


def amount(votes: float) -> str:
    """Return a number of votes, or a sum of weights."""
    return f"{votes:.0f}" if float(votes).is_integer() else f"{votes:.1f}"
