"""Sharpness: how clearly a user tells items apart that everybody tells apart."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isplitlbi.data.layout import Shown
from isplitlbi.model.terms.base import Trait
from isplitlbi.typing import Floats

__all__ = ["Sharpness"]


@dataclass(frozen=True)
class Sharpness(Trait):
    """What a user adds to the slope on a reference consensus: -1 is careless, -2 reversed.

    The reference stays the same all along a path, which keeps the margin linear. In the consensus
    there is no such number: the scores themselves are as far apart as people tell them.
    """

    reference: Floats | None = field(default=None, compare=False)

    name = "sharpness"
    consensus_variance = 0.0

    def column(self, shown: Shown) -> Floats:
        """Return the margin of the reference; nothing as long as there is none."""
        if self.reference is None:
            return np.zeros(len(shown.first))
        return np.asarray(self.reference[shown.first] - self.reference[shown.second])
