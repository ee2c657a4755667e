"""The tie threshold: how readily a user calls two items equal."""

from __future__ import annotations

from dataclasses import dataclass

from isplitlbi.model.terms.base import Term

__all__ = ["Threshold"]


@dataclass(frozen=True)
class Threshold(Term):
    """The one term of users that enters the threshold."""

    name = "threshold"
