"""The terms of a model: in which ways users differ. A new one goes into `TERMS`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from isplitlbi.data.layout import Vector
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.terms.base import Term, Trait
from isplitlbi.model.terms.taste import Taste
from isplitlbi.model.terms.threshold import Threshold
from isplitlbi.typing import Floats

__all__ = ["PAPER", "TERMS", "Taste", "Term", "Terms", "Threshold", "Trait"]

TERMS: dict[str, type[Term]] = {term.name: term for term in (Taste, Threshold)}

REQUIRED = (Taste.name, Threshold.name)


@dataclass(frozen=True)
class Terms:
    """The terms of one model."""

    all: tuple[Term, ...]

    @classmethod
    def named(cls, names: str | Iterable[str]) -> Terms:
        """Return the terms of some names; ``paper`` stands for those of the paper.

        Examples
        --------
        >>> Terms.named("paper").names
        ('taste', 'threshold')
        """
        asked = REQUIRED if names == "paper" else (names,) if isinstance(names, str) else names
        chosen = tuple(dict.fromkeys(asked))
        for name in chosen:
            if name not in TERMS:
                raise InvalidSetting(f"term {name!r} is not one of paper, {', '.join(TERMS)}.")
        if missing := [name for name in REQUIRED if name not in chosen]:
            raise InvalidSetting(f"a model cannot do without the term {missing[0]!r}.")
        return cls(tuple(TERMS[name]() for name in chosen))

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(term.name for term in self.all)

    @property
    def traits(self) -> tuple[Trait, ...]:
        """Those of one number per user that enter the margin: what a layout needs to know."""
        return tuple(term for term in self.all if isinstance(term, Trait))

    def start(self, vector: Vector, delta: float) -> Floats:
        """Return the consensus at the beginning of a path."""
        start = np.zeros(vector.width)
        for term in self.all:
            if term.name in vector.traits:
                at_least = delta if term.is_bounded else -np.inf
                start[vector.place(term.name)] = max(term.start, at_least)
        return start


PAPER = Terms.named("paper")
