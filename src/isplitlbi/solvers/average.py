"""The average person: what the prior on scores holds, and what is shown as the consensus.

Scores that are further apart and users who are all less sharp predict the same. So coordinates may
be chosen. On a path, the prior holds the scores of the average person, by how much votes tell of
sharpness (see `kernels.Problem`), and the mean of what no strong part explains is zero. What is
shown is the average of those who have not left the consensus.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isplitlbi.data.layout import Layout
from isplitlbi.kernels import sharpness_told
from isplitlbi.model.terms import Terms
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats, Mask

__all__ = ["AveragePerson", "less_sharp"]


class AveragePerson:
    """Knows the average of users' sharpness on a path.

    Parameters
    ----------
    layout
        The votes of the users here.
    terms
        Those of the path; without sharpness, or with nothing of it, there is nothing to do.
    runtime
        Knows the sums over all users.
    """

    def __init__(self, layout: Layout, terms: Terms, runtime: Runtime) -> None:
        self.layout, self.terms, self.runtime = layout, terms, runtime
        told = sharpness_told(layout, terms)
        (of_all,) = runtime.total(float(told.sum()))
        self.is_idle = not of_all > 0.0
        if not self.is_idle:
            self.toward, self.shares, self.of_all = terms.per_sharpness, told / of_all, of_all
            self.places = layout.slots.threshold - len(terms.traits) - 1
            self.voted = np.diff(layout.edges.start) > 0

    def pull(self, state: State) -> float:
        """Return how strongly the prior on the average person pulls at the users' sharpness.

        It is told per unit of what votes tell of it: whoever comes later meets the same.
        """
        if self.is_idle:
            return 0.0
        (mean,) = self.runtime.total(float(np.sum(self.shares * state.deviation[self.places])))
        scores = state.consensus[self.layout.vector.scores] + mean * self.toward
        return float(np.sum(scores * self.toward) / self.terms.score_variance / self.of_all)

    def shown(self, state: State) -> State:
        """Return the same state, seen from the average of those who have not left."""
        if self.is_idle:
            return state
        stay = self.voted & (state.dual_norm <= 1.0)
        own = state.deviation[self.places]
        n_stay, total = self.runtime.total(float(stay.sum()), float(np.sum(own[stay])))
        by = total / max(n_stay, 1.0)
        consensus = state.consensus.copy()
        consensus[self.layout.vector.scores] += by * self.toward
        deviation, sparse = less_sharp(
            self.layout, self.terms, by, state.deviation, state.sparse, state.dual_norm > 1.0
        )
        return replace(state, consensus=consensus, deviation=deviation, sparse=sparse)


def less_sharp(
    layout: Layout, terms: Terms, by: float, deviation: Floats, sparse: Floats, left: Mask
) -> tuple[Floats, Floats]:
    """Return deviations and strong parts of users who are all less sharp by so much.

    Whoever has given no vote has the consensus, whatever that is; whoever has not left has no
    strong part.
    """
    if by == 0.0:
        return deviation, sparse
    places = layout.slots.threshold - len(terms.traits) - 1
    voted = np.diff(layout.edges.start) > 0
    deviation, sparse = deviation.copy(), sparse.copy()
    deviation[places[voted]] -= by
    sparse[places[voted & left]] -= by
    return deviation, sparse
