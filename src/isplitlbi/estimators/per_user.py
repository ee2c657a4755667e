"""Users by themselves, without a consensus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.labels import labels_of
from isplitlbi.data.layout import Layout
from isplitlbi.data.outcomes import Sides
from isplitlbi.data.splits import held_out_parts
from isplitlbi.data.summary import Summary
from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators.base import ScoreEstimator
from isplitlbi.estimators.inputs import as_votes, check_choice, check_delta, check_seed
from isplitlbi.fitting import Fitted
from isplitlbi.model.links import Link, link_named
from isplitlbi.model.parameters import Consensus, Parameters
from isplitlbi.runtime.local import Local
from isplitlbi.selection import Rule, score_votes
from isplitlbi.solvers import fit_consensus, fit_users

__all__ = ["PerUser"]


class PerUser(ScoreEstimator):
    """Every user's own Bradley-Terry model with ties, as if nobody else had voted.

    Scores are held towards zero and thresholds towards everybody's, by a ridge that is the same for
    all users. A user who is not known is indifferent between all items.

    Parameters
    ----------
    ridge : float or list of float
        Strength of the ridge: the inverse of a score's prior variance. Of several, the best is
        chosen by cross-validation (log-loss); the strongest, where votes are too few to hold any
        out.
    link, rule, delta, sides
        As in `MarginMLE`.
    n_folds : int, default 5
        Folds of the cross-validation, within users.
    backend : {"numba", "numpy"}, optional
        What runs the loops.
    random_state : int or None, default 0
        Seed of the folds.
    """

    _knows_others = False

    def __init__(
        self,
        ridge: float | Sequence[float] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        link: str | Link = "logistic",
        rule: Rule = "map",
        n_folds: int = 5,
        delta: float = 1e-3,
        backend: str | None = None,
        random_state: int | None = 0,
        sides: Sides = "known",
    ) -> None:
        self.ridge = ridge
        self.link = link
        self.rule = rule
        self.n_folds = n_folds
        self.delta = delta
        self.backend = backend
        self.random_state = random_state
        self.sides = sides

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on `Comparisons`, a frame of votes, or on pairs X with outcomes y."""
        check_seed(self.random_state)
        check_choice("rule", self.rule)
        check_choice("sides", self.sides, get_args(Sides))
        check_delta(self.delta)
        labels, votes = labels_of(y), as_votes(X, y, sample_weight)
        ridges = [float(ridge) for ridge in np.atleast_1d(self.ridge)]
        if not ridges or not all(0 < ridge < np.inf for ridge in ridges):
            raise InvalidSetting(f"ridge is {self.ridge}; it must be positive and finite.")
        link = link_named(self.link)
        ridge = ridges[0] if len(ridges) == 1 else self._choose(votes, link, ridges)
        parameters = self._fit(votes, link, ridge)
        summary = Summary.of(votes)
        summary.tell_if_uneven(votes)
        return self.adopt(
            Fitted(votes, summary, link, None, None, parameters, chosen={"ridge": ridge}),
            labels=labels,
        )

    def _choose(self, votes: Comparisons, link: Link, ridges: list[float]) -> float:
        loss = np.zeros(len(ridges))
        for training, held_out in held_out_parts(votes, self.n_folds, self.random_state):
            # From the strongest on, each fit is a good start for the next.
            parameters = None
            for place in np.argsort(ridges)[::-1]:
                parameters = self._fit(training, link, ridges[place], parameters)
                scores = score_votes(
                    held_out, parameters, link, loops=kernels.backend(self.backend)
                )
                amount = len(held_out) if held_out.weight is None else held_out.weight.sum()
                loss[place] += scores["log_loss"] * amount
        return ridges[int(np.argmin(loss))] if loss.any() else max(ridges)

    def _fit(
        self, votes: Comparisons, link: Link, ridge: float, start: Parameters | None = None
    ) -> Parameters:
        """Fit all users; the consensus of these parameters is indifference."""
        vector, slots, _ = Layout.of(votes)
        common = np.zeros(vector.width)
        common[vector.threshold] = fit_consensus(votes, link, self.delta).threshold
        centre, guess = Consensus(vector, common), None if start is None else start.deviation
        own = fit_users(
            votes, link, ridge, centre, self.delta, guess, Local(votes, backend=self.backend)
        )
        return Parameters(vector, slots, common, own)
