"""Texts as they can be shown: short HTML for notebooks, all of it escaped, and ids on one line."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["as_html", "is_unseen", "printable", "printable_sentence"]

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

    >>> printable("tea"), printable("thé" + chr(7)) == "thé" + chr(92) + "x07"
    ('tea', True)
    >>> len(printable("tea" * 5_000))
    185
    """
    shown = printable_sentence(text)
    if len(shown) <= LONGEST_ID:
        return shown
    return f"{shown[:BEGINNING]} ... {shown[-END:]} ({len(text):,} characters)"


def printable_sentence(text: str) -> str:
    """Return the same of a sentence, however long it is."""
    if text.isprintable():
        return text
    return "".join(
        ascii(sign)[1:-1] if is_unseen(text, place) or _is_no_sign(sign) else sign
        for place, sign in enumerate(text)
    )


_JOINERS = "\u200c\u200d"  # between letters of some scripts, and between the parts of an emoji
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format, surrogates, ends of lines


def _is_no_sign(sign: str) -> bool:
    return not sign.isprintable() and sign not in _JOINERS


def is_unseen(text: str, place: int) -> bool:
    """Tell whether a character does something in place of being seen, or nothing at all."""
    if text[place] in _JOINERS:
        around = text[max(place - 1, 0) : place] + text[place + 1 : place + 2]
        return len(around) < 2 or any(sign.isascii() or sign in _JOINERS for sign in around)
    return unicodedata.category(text[place]) in _UNSEEN
