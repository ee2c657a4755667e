"""Parameters of the model: a consensus, and what each user adds to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Slots
from isplitlbi.typing import Floats, Indices


@dataclass(frozen=True)
class Parameters:
    """Scores and thresholds of the consensus and of every user (Eq. 5).

    ``consensus`` holds the scores of the items and, last, the tie threshold; ``deviation`` holds
    one number per slot. User -1 stands for somebody unknown, who has the consensus.
    """

    slots: Slots
    consensus: Floats
    deviation: Floats

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.consensus) - 1

    def scores_of(self, user: int) -> Floats:
        """Return a user's score for every item: the consensus where the user never compared it."""
        return self._own(user)[:-1]

    def threshold_of(self, user: int) -> float:
        """Return a user's tie threshold."""
        return float(self._own(user)[-1])

    def compared_by(self, user: int) -> NDArray[np.bool_]:
        """Say which items a user has compared at least once."""
        compared = np.zeros(self.n_items + 1, dtype=np.bool_)
        if user >= 0:
            compared[self._coordinates(user)] = True
        return compared[:-1]

    def margin_and_threshold(
        self, user: Indices, left: Indices, right: Indices
    ) -> tuple[Floats, Floats]:
        """Return the margin and the threshold of any (user, left item, right item)."""
        coordinates = (left, right, np.full(len(user), self.n_items))
        own_left, own_right, threshold = (
            self.consensus[where] + self._deviation_at(user, where) for where in coordinates
        )
        return own_left - own_right, threshold

    def distance_to_consensus(self) -> Floats:
        """Return the Euclidean norm of every user's score deviations (paper, Sec. 3.1)."""
        square = self.deviation**2
        square[self.slots.threshold] = 0.0
        return np.sqrt(np.add.reduceat(square, self.slots.start[:-1]))

    def _coordinates(self, user: int) -> Indices:
        return self.slots.coordinate[self.slots.start[user] : self.slots.start[user + 1]]

    def _own(self, user: int) -> Floats:
        own = self.consensus.copy()
        if user >= 0:
            begin, end = self.slots.start[user : user + 2]
            own[self._coordinates(user)] += self.deviation[begin:end]
        return own

    def _deviation_at(self, user: Indices, coordinate: Indices) -> Floats:
        width = self.n_items + 1
        known = self.slots.owner.astype(np.int64) * width + self.slots.coordinate
        wanted = np.asarray(user, dtype=np.int64) * width + coordinate
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, self.deviation[place], 0.0)
