"""Taste: what a user thinks of every item."""

from __future__ import annotations

from dataclasses import dataclass

from isplitlbi.model.terms.base import Term

__all__ = ["Taste"]


@dataclass(frozen=True)
class Taste(Term):
    """A score for every item; that of the first counts for it in the margin, the other against."""

    name = "taste"
