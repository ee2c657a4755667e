"""Texts as they can be shown: short HTML for notebooks, all of it escaped, and ids on one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["as_html", "printable"]

LONGEST = 60  # characters of a text that is shown


def as_html(sentences: Iterable[str], head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return sentences and, below them, a small table.

    Examples
    --------
    >>> as_html(["One vote."], ["user"], [["<ann>"]])
    '<div><p>One vote.</p><table><tr><th>user</th></tr><tr><td>&lt;ann&gt;</td></tr></table></div>'
    """
    said = "".join(f"<p>{_shown(sentence, None)}</p>" for sentence in sentences)
    body = "".join(_row("td", row) for row in rows)
    return f"<div>{said}<table>{_row('th', head)}{body}</table></div>"


def _row(tag: str, cells: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_shown(cell, LONGEST)}</{tag}>' for cell in cells)}</tr>"


def _shown(value: Any, longest: int | None) -> str:
    text = str(value)
    text = text if longest is None or len(text) <= longest else f"{text[: longest - 3]}..."
    return escape(printable(text))


def printable(text: str) -> str:
    """Return an id as it is, or with what would break a line or a terminal spelled out.

    >>> printable("tea"), printable(chr(7))[1:]
    ('tea', 'x07')
    """
    return text if text.isprintable() else ascii(text)[1:-1]
