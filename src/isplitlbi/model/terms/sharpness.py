"""Sharpness: how clearly a user tells items apart that everybody tells apart."""

from __future__ import annotations

from dataclasses import dataclass, field

from isplitlbi.data.layout import SHARPNESS
from isplitlbi.model.terms.base import Term
from isplitlbi.typing import Floats

__all__ = ["Sharpness"]


@dataclass(frozen=True)
class Sharpness(Term):
    """What a user adds to the slope on a reference consensus: -1 is careless, -2 reversed.

    The reference stays the same all along a path, which keeps the margin linear. In the consensus
    there is no such number: the scores themselves are as far apart as people tell them.
    """

    reference: Floats | None = field(default=None, compare=False)

    name = SHARPNESS
