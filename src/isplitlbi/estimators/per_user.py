"""Users by themselves, without a consensus; and users who leave it wholly or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.estimators.base import MarginClassifier, as_votes, check_choice
from isplitlbi.estimators.isplitlbi import ISplitLBI
from isplitlbi.model.links import Link, link_named
from isplitlbi.model.parameters import Parameters
from isplitlbi.data.splits import held_out_parts
from isplitlbi.selection import Rule, Scoring, score_votes
from isplitlbi.solvers import fit_consensus, fit_each_user


class PerUser(MarginClassifier):
    """Every user's own Bradley-Terry model with ties, as if nobody else had voted.

    Scores are held towards zero and thresholds towards everybody's, by a ridge that is the same for
    all users. A user who is not known is indifferent between all items.

    Parameters
    ----------
    ridge : float or list of float
        Strength of the ridge: the inverse of a score's prior variance. Of several, the best is
        chosen by cross-validation (log-loss).
    link, rule, delta
        As in `MarginMLE`.
    n_folds : int, default 5
        Folds of the cross-validation, within users.
    backend : {"numba", "numpy"}, optional
        What runs the loops.
    random_state : int or None, default 0
        Seed of the folds.
    """

    def __init__(
        self,
        ridge: float | Sequence[float] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        link: str | Link = "logistic",
        rule: Rule = "map",
        n_folds: int = 5,
        delta: float = 1e-3,
        backend: str | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.ridge = ridge
        self.link = link
        self.rule = rule
        self.n_folds = n_folds
        self.delta = delta
        self.backend = backend
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on `Comparisons`, or on pairs X with outcomes y."""
        check_choice("rule", self.rule)
        votes = as_votes(X, y, sample_weight)
        ridges = [float(ridge) for ridge in np.atleast_1d(self.ridge)]
        if not ridges or not all(ridge > 0 for ridge in ridges):
            raise ValueError(f"ridge is {self.ridge}; it must be positive.")
        self.link_ = link_named(self.link)
        self.ridge_ = ridges[0] if len(ridges) == 1 else self._choose(votes, ridges)
        self.parameters_ = self._fit(votes, self.ridge_)
        return self._know(votes)

    def _choose(self, votes: Comparisons, ridges: list[float]) -> float:
        loss = np.zeros(len(ridges))
        for training, held_out in held_out_parts(votes, self.n_folds, self.random_state):
            # From the strongest on, each fit is a good start for the next.
            parameters = None
            for place in np.argsort(ridges)[::-1]:
                parameters = self._fit(training, ridges[place], parameters)
                scores = score_votes(held_out, parameters, self.link_, backend=self.backend)
                amount = len(held_out) if held_out.weight is None else held_out.weight.sum()
                loss[place] += scores["log_loss"] * amount
        return ridges[int(np.argmin(loss))]

    def _fit(self, votes: Comparisons, ridge: float, start: Parameters | None = None) -> Parameters:
        """Fit all users; the consensus of these parameters is indifference."""
        nothing = np.zeros(votes.n_items + 1)
        nothing[-1] = fit_consensus(votes, self.link_, self.delta)[-1]
        centre = nothing[votes.slots.coordinate]
        own = fit_each_user(
            votes,
            self.link_,
            ridge,
            nothing,
            self.delta,
            None if start is None else centre + start.deviation,
        )
        return Parameters(votes.slots, nothing, own - centre)


class LBI(ISplitLBI):
    """The limit of iSplit LBI for small nu: users who have not left have no deviation at all.

    The parameters are those of `ISplitLBI`. P and Gamma become one, and both carry kappa, so that
    this is LBI with half of it.
    """

    def __init__(
        self,
        nu: float = 3e-3,
        kappa: float | Sequence[float] = 60.0,
        link: str | Link = "logistic",
        rule: Rule = "map",
        n_folds: int = 5,
        scoring: Scoring = "log_loss",
        n_jobs: int | None = None,
        backend: str | None = None,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(
            nu=nu,
            kappa=kappa,
            link=link,
            rule=rule,
            n_folds=n_folds,
            scoring=scoring,
            n_jobs=n_jobs,
            backend=backend,
            random_state=random_state,
        )
