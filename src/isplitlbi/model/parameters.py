"""Parameters of the model: a consensus, and what each user adds to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout, Shown, Slots, Vector
from isplitlbi.model.terms import PAPER, Terms
from isplitlbi.typing import Floats, Indices, Mask

__all__ = ["Consensus", "Parameters"]


@dataclass(frozen=True)
class Consensus:
    """What everybody has in common, by name."""

    vector: Vector
    values: Floats  # (vector.width,)

    @property
    def scores(self) -> Floats:
        """The score of every item."""
        return self.values[self.vector.scores]

    @property
    def threshold(self) -> float:
        """The tie threshold."""
        return float(self.values[self.vector.threshold])

    def trait(self, name: str) -> float:
        """Return a trait."""
        return float(self.values[self.vector.place(name)])


@dataclass(frozen=True)
class Parameters:
    """Scores, thresholds and other traits of the consensus and of every user (Eq. 5).

    ``consensus`` holds one number per place of the vector, ``deviation`` one per slot. User -1
    stands for somebody unknown, who has the consensus.
    """

    vector: Vector
    slots: Slots
    consensus: Floats
    deviation: Floats
    terms: Terms = PAPER

    @classmethod
    def of_consensus(cls, votes: Comparisons, consensus: Consensus) -> Parameters:
        """Return parameters in which nobody deviates."""
        layout = Layout.of(votes)
        return cls(layout.vector, layout.slots, consensus.values, np.zeros(layout.n_slots))

    @property
    def common(self) -> Consensus:
        """The consensus, by name."""
        return Consensus(self.vector, self.consensus)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.vector.n_items

    def of_user(self, user: int) -> Consensus:
        """Return all that a user has instead of the consensus."""
        own = self.consensus.copy()
        if user >= 0:
            begin, end = self.slots.start[user : user + 2]
            own[self.slots.coordinate[begin:end]] += self.deviation[begin:end]
        return Consensus(self.vector, own)

    def scores_of(self, user: int) -> Floats:
        """Return a user's score for every item: the consensus where the user never compared it."""
        return self.of_user(user).scores

    def threshold_of(self, user: int) -> float:
        """Return a user's tie threshold."""
        return self.of_user(user).threshold

    def all_of(self, trait: str) -> Floats:
        """Return a trait, such as the threshold, of every user."""
        place = self.vector.place(trait)
        back = self.vector.threshold - place  # a user's slots end as the vector does
        return np.asarray(self.consensus[place] + self.deviation[self.slots.threshold - back])

    def compared_by(self, user: int) -> Mask:
        """Say which items a user has compared at least once."""
        compared = np.zeros(self.vector.width, dtype=np.bool_)
        if user >= 0:
            begin, end = self.slots.start[user : user + 2]
            compared[self.slots.coordinate[begin:end]] = True
        return compared[self.vector.scores]

    def margin_and_threshold(
        self, user: Indices, left: Indices, right: Indices
    ) -> tuple[Floats, Floats]:
        """Return the margin and the threshold of any (user, left item, right item)."""

        def own(where: Indices) -> Floats:
            return np.asarray(self.consensus[where] + self._deviation_at(user, where))

        def own_trait(name: str) -> Floats:
            return own(np.full(len(user), self.vector.place(name)))

        margin = own(left) - own(right)
        for trait in self.terms.traits:
            margin += trait.column(Shown(left, right)) * own_trait(trait.name)
        return margin, own(np.full(len(user), self.vector.threshold))

    def distance_to_consensus(self) -> Floats:
        """Return the Euclidean norm of every user's score deviations (paper, Sec. 3.1)."""
        is_score = self.slots.coordinate < self.n_items
        square = np.where(is_score, self.deviation, 0.0) ** 2
        return np.sqrt(np.add.reduceat(square, self.slots.start[:-1]))

    def table(self) -> Floats:
        """Return the deviations as a table of users and all places of the vector."""
        table = np.zeros((self.slots.n_users, self.vector.width))
        table[self.slots.owner, self.slots.coordinate] = self.deviation
        return table

    def _deviation_at(self, user: Indices, coordinate: Indices) -> Floats:
        width = self.vector.width
        known = self.slots.keys(width)
        wanted = np.asarray(user, dtype=np.int64) * width + coordinate
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, self.deviation[place], 0.0)
