"""One ranking for everybody: margin-based maximum likelihood (Xu et al., MM 2018)."""

from __future__ import annotations

from typing import Any, Self, get_args

from numpy.typing import ArrayLike

from isplitlbi.data.labels import labels_of
from isplitlbi.data.outcomes import Sides
from isplitlbi.estimators.base import ScoreEstimator
from isplitlbi.estimators.inputs import as_votes, check_choice, check_delta
from isplitlbi.fitting import Fitted
from isplitlbi.model.links import Link, link_named
from isplitlbi.model.parameters import Parameters
from isplitlbi.runtime.local import Local
from isplitlbi.selection import Rule
from isplitlbi.solvers import fit_consensus

__all__ = ["MarginMLE"]


class MarginMLE(ScoreEstimator):
    """One score per item and one tie threshold, by maximum likelihood, as if all users were one.

    Parameters
    ----------
    link : {"logistic", "probit", "uniform"} or Link, default "logistic"
        Bradley-Terry, Thurstone-Mosteller or uniform noise.
    rule : {"map", "threshold"}, default "map"
        Predict the most probable outcome, or a tie whenever the margin is within the threshold.
    delta : float, default 1e-3
        Smallest tie threshold.
    sides : {"known", "unknown"}, default "known"
        Whether left and right mean something to the tests of users; the scores do not depend on it.
    backend : {"numba", "numpy"}, optional
        Compiled or plain loops; the environment's ISPLITLBI_BACKEND, or compiled ones.
    """

    def __init__(
        self,
        link: str | Link = "logistic",
        rule: Rule = "map",
        delta: float = 1e-3,
        sides: Sides = "known",
        backend: str | None = None,
    ) -> None:
        self.link = link
        self.rule = rule
        self.delta = delta
        self.sides = sides
        self.backend = backend

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on `Comparisons`, a frame of votes, or on pairs X with outcomes y."""
        check_choice("rule", self.rule)
        check_choice("sides", self.sides, get_args(Sides))
        check_delta(self.delta)
        labels, votes = labels_of(y), as_votes(X, y, sample_weight)
        link = link_named(self.link)
        runtime = Local(votes, backend=self.backend)
        consensus = fit_consensus(votes, link, self.delta, runtime=runtime)
        parameters = Parameters.of_consensus(votes, consensus)
        runtime.summary.tell_if_uneven(votes)
        fitted = Fitted(votes, runtime.summary, link, None, None, parameters)
        return self.adopt(fitted, labels=labels)
