"""Parameters of the model: a consensus, and what each user adds to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import THRESHOLD, Shown, Slots, Vector
from isplitlbi.model.links import HIGHEST_LOG, LOWEST_LOG, threshold_of
from isplitlbi.model.terms import PAPER, Sharpness, Terms
from isplitlbi.typing import Floats, Indices, Mask

__all__ = ["Consensus", "Course", "Parameters", "margins_and_thresholds"]

_LEAST_AND_MOST = np.exp([LOWEST_LOG, HIGHEST_LOG])  # thresholds, where they are logarithms


@dataclass(frozen=True)
class Consensus:
    """What everybody has in common, or what one user has instead, by name.

    Thresholds are told as they are, on whatever scale the terms add up; without ties they are zero.
    """

    vector: Vector
    values: Floats  # (vector.width,)
    terms: Terms = PAPER

    @property
    def scores(self) -> Floats:
        """The score of every item."""
        return self.values[self.vector.scores]

    @property
    def threshold(self) -> float:
        """The tie threshold of two items without a habit of their own."""
        return float(_as_threshold(self.values[self.vector.threshold], self.terms))

    @property
    def habits(self) -> Floats:
        """By which factor every item changes the threshold of its pairs."""
        if not self.vector.has_habits:
            return np.ones(self.vector.n_items)
        return np.exp(self.values[self.vector.habits])

    def trait(self, name: str) -> float:
        """Return a trait."""
        if name == THRESHOLD:
            return self.threshold
        return float(self.values[self.vector.place(name)])

    def margin_and_threshold(
        self, left: Indices, right: Indices, shown: Shown | None = None
    ) -> tuple[Floats, Floats]:
        """Return the margin and the threshold of pairs of items, as they were shown."""
        shown = shown or Shown(left, right)
        return margins_and_thresholds(self.vector, self.values, self.habits, self.terms, shown)


class Course(NamedTuple):
    """The consensus at all steps of a path, however few snapshots of users are kept.

    Given this, users are independent: whoever comes later can be followed beside it.
    """

    times: Floats  # (n,) increasing, from the beginning of the path on
    consensus: Floats  # (n, width)
    pull: Floats  # (n,) of the prior on everybody's sharpness, per unit of what votes tell of it


@dataclass(frozen=True)
class Parameters:
    """Scores, thresholds and other traits of the consensus and of every user (Eq. 5).

    ``consensus`` holds one number per place of the vector, ``deviation`` one per slot, in units of
    its term. User -1 stands for nobody in particular, who has the consensus; what is probable for
    somebody unknown is another question, see `isplitlbi.model.population`.
    """

    vector: Vector
    slots: Slots
    consensus: Floats
    deviation: Floats
    terms: Terms = PAPER

    @classmethod
    def of_consensus(cls, votes: Comparisons, consensus: Consensus) -> Parameters:
        """Return parameters in which nobody deviates."""
        layout, terms = consensus.terms.layout(votes), consensus.terms
        nothing = np.zeros(layout.n_slots)
        return cls(layout.vector, layout.slots, consensus.values, nothing, terms)

    @property
    def common(self) -> Consensus:
        """The consensus, by name."""
        return Consensus(self.vector, self.consensus, self.terms)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.vector.n_items

    @property
    def units(self) -> Floats:
        """How large the unit of every slot is."""
        return self._unit_of(self.slots.coordinate)

    def only_of(self, users: Mask) -> Parameters:
        """Return the same with the deviations of some users alone: others have the consensus."""
        return replace(self, deviation=np.where(users[self.slots.owner], self.deviation, 0.0))

    def of_user(self, user: int) -> Consensus:
        """Return all that a user has instead of the consensus; the scores tell the sharpness."""
        own = self.consensus.copy()
        if user >= 0:
            begin, end = self.slots.start[user : user + 2]
            coordinate = self.slots.coordinate[begin:end]
            own[coordinate] += self._unit_of(coordinate) * self.deviation[begin:end]
            reference = self.terms.reference
            if reference is not None:
                own[self.vector.scores] += own[self.vector.place(Sharpness.name)] * reference
        return Consensus(self.vector, own, self.terms)

    def scores_of(self, user: int) -> Floats:
        """Return a user's score for every item: the consensus where the user never compared it."""
        return self.of_user(user).scores

    def threshold_of(self, user: int) -> float:
        """Return a user's tie threshold."""
        return self.of_user(user).threshold

    def all_of(self, trait: str) -> Floats:
        """Return a trait, such as the threshold, of every user."""
        place = self.vector.place(trait)
        back = self.vector.threshold - place  # a user's slots end as the traits do
        own = self._unit_of(place) * self.deviation[self.slots.threshold - back]
        values = np.asarray(self.consensus[place] + own)
        return _as_threshold(values, self.terms) if trait == THRESHOLD else values

    def compared_by(self, user: int) -> Mask:
        """Say which items a user has compared at least once."""
        compared = np.zeros(self.vector.width, dtype=np.bool_)
        if user >= 0:
            begin, end = self.slots.start[user : user + 2]
            compared[self.slots.coordinate[begin:end]] = True
        return compared[self.vector.scores]

    def margin_and_threshold(
        self, user: Indices, left: Indices, right: Indices, shown: Shown | None = None
    ) -> tuple[Floats, Floats]:
        """Return the margin and the threshold of any (user, left item, right item).

        What belongs to a vote besides its items is in ``shown``; without, both sides are alike.
        """
        shown = shown or Shown(left, right)

        def own(where: Indices) -> Floats:
            deviation = self._unit_of(where) * self._deviation_at(user, where)
            return np.asarray(self.consensus[where] + deviation)

        def own_trait(name: str) -> Floats:
            return own(np.full(len(user), self.vector.place(name)))

        margin = own(left) - own(right)
        reference = self.terms.reference
        if reference is not None:
            margin += (reference[left] - reference[right]) * own_trait(Sharpness.name)
        for trait in self.terms.traits:
            margin += trait.column(shown) * own_trait(trait.name)
        threshold = _as_threshold(own_trait(THRESHOLD), self.terms)
        habits = self.common.habits
        return margin, _within_reach(threshold * habits[left] * habits[right], self.terms)

    def distance_to_consensus(self) -> Floats:
        """Return the Euclidean norm of every user's score deviations (paper, Sec. 3.1)."""
        slots = self.slots
        is_score = slots.coordinate < self.n_items
        off = np.where(is_score, self.deviation, 0.0) * self.terms.scales[0]
        reference = self.terms.reference
        if reference is not None:  # another sharpness is another distance, too
            item = np.where(is_score, slots.coordinate, 0)
            by_sharpness = self.all_of(Sharpness.name)[slots.owner] * reference[item]
            off += np.where(is_score, by_sharpness, 0.0)
        return np.sqrt(np.add.reduceat(off**2, slots.start[:-1]))

    def table(self) -> Floats:
        """Return the deviations as a table of users and all places of the vector."""
        table = np.zeros((self.slots.n_users, self.vector.width))
        table[self.slots.owner, self.slots.coordinate] = self.deviation
        return table

    def _unit_of(self, coordinate: Indices | int) -> Floats:
        """Return how large a unit is of what lies at some places of the vector."""
        scales = np.array(self.terms.scales)
        place = np.asarray(coordinate) - self.n_items + 1
        return np.asarray(scales[np.maximum(place, 0)])

    def _deviation_at(self, user: Indices, coordinate: Indices) -> Floats:
        width = self.vector.width
        known = self.slots.keys(width)
        wanted = np.asarray(user, dtype=np.int64) * width + coordinate
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, self.deviation[place], 0.0)


def margins_and_thresholds(
    vector: Vector, values: Floats, habits: Floats, terms: Terms, shown: Shown
) -> tuple[Floats, Floats]:
    """Return the margin and the threshold of pairs for one or several people.

    The last axis of ``values`` is the vector of each person, as in `Consensus`. The last axis of
    what is returned are the pairs. All people share the habits of the items.
    """
    left, right = shown.first, shown.second
    scores = values[..., vector.scores]
    margin = scores[..., left] - scores[..., right]
    for trait in terms.traits:
        place = vector.place(trait.name)
        margin = margin + trait.column(shown) * values[..., place : place + 1]
    place = vector.threshold
    threshold = _as_threshold(values[..., place : place + 1], terms)
    factor = habits[left] * habits[right]
    return np.asarray(margin), _within_reach(threshold * factor, terms)


def _as_threshold(value: Floats, terms: Terms) -> Floats:
    """Return thresholds as they are, from the scale that terms add up on."""
    if terms.ties == "bounded":
        return value
    return np.asarray(threshold_of(value)) if terms.has_ties else np.zeros_like(value)


def _within_reach(threshold: Floats, terms: Terms) -> Floats:
    """Return thresholds of pairs, no smaller and no larger than makes a difference."""
    return np.clip(threshold, *_LEAST_AND_MOST) if terms.ties == "log" else threshold
