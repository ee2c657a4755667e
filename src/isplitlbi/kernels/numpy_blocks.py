"""The votes and parameters of some users, as arrays: what the loops in plain NumPy are made of."""

from __future__ import annotations

import numpy as np

from isplitlbi.data.layout import Edges, Slots
from isplitlbi.kernels import Problem, Users
from isplitlbi.typing import Floats, Integers, Places

__all__ = ["Block"]


class Block:
    """The votes and parameters of a block of users, counted from its first slot."""

    def __init__(self, slots: Slots, edges: Edges, users: Users) -> None:
        begin, end = users
        self.first_slot, last_slot = slots.start[begin], slots.start[end]
        self.part = slice(self.first_slot, last_slot)
        self.edges = slice(edges.start[begin], edges.start[end])
        self.n_slots = int(last_slot - self.first_slot)
        self.start = slots.start[begin:end] - self.first_slot
        self.sizes = np.diff(slots.start[begin : end + 1])
        self.thresholds = slots.threshold[begin:end] - self.first_slot
        self.coordinate = slots.coordinate[self.part]
        self.first_habit = slots.first_habit
        self.first = edges.first[self.edges] - self.first_slot
        self.second = edges.second[self.edges] - self.first_slot
        self.columns = edges.columns[:, self.edges]
        self.counts = [amount[self.edges] for amount in edges.counts]
        n_edges = np.diff(edges.start[begin : end + 1])
        self.owner = np.repeat(np.arange(len(n_edges)), n_edges)
        self.threshold = np.repeat(self.thresholds, n_edges)
        # The traits that have a column stand right before the threshold, sharpness before them.
        self.sharpness = self.thresholds - len(self.columns) - 1
        self.traits: Places = (
            self.threshold - len(self.columns) + np.arange(len(self.columns))[:, None]
        )

    def margin(self, total: Floats) -> Floats:
        """Return the margin of every edge."""
        margin = total[self.first] - total[self.second]
        return np.asarray(margin + np.sum(self.columns * total[self.traits], axis=0))

    def level(self, total: Floats, consensus: Floats) -> Floats:
        """Return the threshold of every edge: the user's own, and what the items add."""
        level = total[self.threshold]
        for habit in self.habits:
            level = level + consensus[habit]
        return np.asarray(level)

    @property
    def habits(self) -> list[Integers]:
        """Where the habits of the first and of the second item lie, if there are any."""
        if not self.first_habit:
            return []
        return [self.first_habit + self.coordinate[each] for each in (self.first, self.second)]

    def own_to_total(self, problem: Problem) -> Floats:
        """Return what an own coordinate counts for; sharpness counts through the items."""
        scale = self.by_term(np.append(1.0, problem.scales[1:]))
        if len(problem.reference):
            scale[self.sharpness] = 0.0
        return scale

    def consensus_to_total(self, problem: Problem) -> Floats:
        """Return whether the consensus counts beside it, which a bounded threshold does not let."""
        counts = np.ones(self.n_slots)
        counts[self.thresholds] = 1.0 - problem.bounded
        return counts

    def scatter(self, by_margin: Floats, by_threshold: Floats) -> Floats:
        """Return what a number per margin and per threshold means for every slot."""
        of_slots = (
            np.bincount(self.first, by_margin, self.n_slots)
            - np.bincount(self.second, by_margin, self.n_slots)
            + np.bincount(self.threshold, by_threshold, self.n_slots)
        )
        for column, trait in zip(self.columns, self.traits, strict=True):
            of_slots += np.bincount(trait, column * by_margin, self.n_slots)
        return np.asarray(of_slots)

    def scatter_squares(self, by_margin: Floats, by_threshold: Floats) -> Floats:
        """Return the same for second derivatives, of every slot with itself."""
        of_slots = (
            np.bincount(self.first, by_margin, self.n_slots)
            + np.bincount(self.second, by_margin, self.n_slots)
            + np.bincount(self.threshold, by_threshold, self.n_slots)
        )
        for column, trait in zip(self.columns, self.traits, strict=True):
            of_slots += np.bincount(trait, column * column * by_margin, self.n_slots)
        return np.asarray(of_slots)

    def by_term(self, values: Floats) -> Floats:
        """Return, for every slot, the number of its term."""
        spread = np.full(self.n_slots, values[0])
        for back, value in enumerate(values[:0:-1]):  # the threshold, and before it the traits
            spread[self.thresholds - back] = value
        return spread

    def by_sharpness(self, problem: Problem, own: Floats) -> Floats:
        """Return what their sharpness adds to the items of users."""
        if len(problem.reference) == 0:
            return np.zeros(self.n_slots)
        added = self.of_reference(problem) * np.repeat(own[self.sharpness], self.sizes)
        return np.asarray(added)

    def of_reference(self, problem: Problem) -> Floats:
        """Return what sharpness multiplies in every slot: nothing but in those of items."""
        return np.asarray(problem.reference[self.part])

    def sum_by_user(self, values: Floats) -> Floats:
        """Add up numbers per slot."""
        return np.asarray(np.add.reduceat(values, self.start))
