"""One ranking for everybody, under a ridge that folds choose: what a fit should never lose to.

Scores by Bradley-Terry, with one tie threshold where there are ties. Run as a script, this prints
the ridge that every file of the fixed splits chooses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data import NAMES, load_fixed_split
from isplitlbi import Comparisons
from isplitlbi.data.splits import folds_within_user
from isplitlbi.model.links import Logistic
from isplitlbi.model.metrics import log_loss
from isplitlbi.model.parameters import Consensus
from isplitlbi.solvers import fit_consensus

LINK = Logistic()

# From next to none to scores with a standard deviation of .3; the loss is flat between two of them.
RIDGES = np.geomspace(0.003, 10.0, 13)

Parts = Iterable[tuple[Comparisons, Comparisons]]


class OneRanking(NamedTuple):
    """Scores and threshold of all, and the ridge they were held by."""

    items: NDArray[np.object_]
    consensus: Consensus
    ridge: float
    has_ties: bool

    @classmethod
    def fit(cls, votes: Comparisons, ridge: float) -> OneRanking:
        consensus = fit_consensus(votes, LINK, variance=1.0 / ridge)
        return cls(votes.items, consensus, ridge, bool((votes.outcome == 0).any()))

    @classmethod
    def tuned(cls, votes: Comparisons, parts: Parts | None = None) -> OneRanking:
        """Fit with the ridge that predicts parts best: by default, five folds within users."""
        parts = folds_within_user(votes, 5, rng=0) if parts is None else parts
        losses = [
            [len(held_out) * cls.fit(training, ridge).loss(held_out) for ridge in RIDGES]
            for training, held_out in parts
        ]
        return cls.fit(votes, float(RIDGES[np.argmin(np.sum(losses, axis=0))]))

    def log_probabilities(self, votes: Comparisons) -> NDArray[np.float64]:
        """Return those of left, tie and right; every item must be one of the training votes."""
        place = np.searchsorted(self.items, votes.items)
        left, right = place[votes.left], place[votes.right]
        margin, threshold = self.consensus.margin_and_threshold(left, right)
        if self.has_ties:
            return LINK.log_probabilities(margin, threshold)
        never = np.full(len(margin), -np.inf)
        return np.column_stack([LINK.log_cdf(margin), never, LINK.log_cdf(-margin)])

    def loss(self, votes: Comparisons) -> float:
        return log_loss(votes.outcome, self.log_probabilities(votes))


def main() -> int:
    for name in NAMES:
        split = load_fixed_split(name)
        if split is not None:
            training, test = split
            found = OneRanking.tuned(training)
            print(f"{name:<14} ridge {found.ridge:.3f}, log-loss {found.loss(test):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
