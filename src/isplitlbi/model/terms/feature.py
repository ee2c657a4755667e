"""Features: what belongs to a vote besides its items, such as the length of two answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isplitlbi.data.layout import Sees, Shown
from isplitlbi.model.terms.base import Trait
from isplitlbi.typing import Floats

__all__ = ["Feature"]


@dataclass(frozen=True)
class Feature(Trait):
    """What one unit more of a feature on the left counts for in the margin."""

    name: str
    place: int  # among the features of the votes

    sees = Sees.VOTE
    consensus_variance = 1.0

    def column(self, shown: Shown) -> Floats:
        """Return the difference of left and right; none where nothing is said of the vote."""
        features = None if shown.votes is None else shown.votes.features
        if features is None:
            return np.zeros(len(shown.first))
        return np.asarray(features.values[shown.row, self.place])
