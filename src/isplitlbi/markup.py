"""Texts as they can be shown: short HTML for notebooks, all of it escaped, and ids on one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["as_html", "printable", "printable_sentence"]

LONGEST = 60  # characters of a text that is shown
# Of a longer id, the beginning and the end are shown, each so long: it must not fill a screen.
LONGEST_ID, BEGINNING, END = 200, 100, 60


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
    return escape(printable_sentence(text))


def printable(text: str) -> str:
    """Return an id as it is, or with what would break a line or a terminal spelled out.

    Of a very long one, that is its beginning, its end, and how long it is: tables in CSV and JSON
    have it whole.

    >>> printable("tea"), printable(chr(7))[1:]
    ('tea', 'x07')
    >>> len(printable("tea" * 5_000))
    184
    """
    shown = printable_sentence(text)
    if len(shown) <= LONGEST_ID:
        return shown
    return f"{shown[:BEGINNING]} ... {shown[-END:]} ({len(text):,} characters)"


def printable_sentence(text: str) -> str:
    """Return the same of a sentence, however long it is."""
    return text if text.isprintable() else ascii(text)[1:-1]
