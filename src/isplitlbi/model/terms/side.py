"""Side: how much somebody prefers what is on the left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isplitlbi.data.layout import Sees, Shown
from isplitlbi.model.terms.base import Trait
from isplitlbi.typing import Floats

__all__ = ["Side"]


@dataclass(frozen=True)
class Side(Trait):
    """What is added to the margin of the left item, whichever it is."""

    name = "side"
    sees = Sees.SIDE
    consensus_variance = 1.0

    def column(self, shown: Shown) -> Floats:
        """Return one for every pair."""
        return np.ones(len(shown.first))
