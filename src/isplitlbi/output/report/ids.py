"""Ids of strangers, so that they can be read and do nothing."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from isplitlbi.markup import is_unseen

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["LONGEST_ID", "isolated_id", "plain_id", "shown_id"]

LONGEST_ID = 80


def plain_id(label: Any, most: int = LONGEST_ID) -> str:
    """Return an id as text: what is invisible spelled out, and not too long."""
    text = _spelled(label)
    return text if len(text) <= most else f"{text[:most]}…"


def _spelled(label: Any) -> str:
    text = str(label)
    if all(unicodedata.category(sign)[0] in "ZC" for sign in text):
        return ascii(text)
    return "".join(
        ascii(sign)[1:-1] if is_unseen(text, place) else sign for place, sign in enumerate(text)
    )


def shown_id(label: Any) -> Markup:
    """Return an id as an element: its direction stays its own, and a long one has a title."""
    from markupsafe import Markup

    text = _spelled(label)
    if len(text) <= LONGEST_ID:
        return Markup("<bdi>{}</bdi>").format(text)
    return Markup("<bdi title='{}'>{}…</bdi>").format(text[:1000], text[:LONGEST_ID])


def isolated_id(label: Any) -> str:
    """Return an id whose direction is its own, in a sentence."""
    return f"\N{FIRST STRONG ISOLATE}{plain_id(label)}\N{POP DIRECTIONAL ISOLATE}"
