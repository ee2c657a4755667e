"""What scores and tie thresholds say of pairs: predictions, and how probable each outcome is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.features import Features
from isplitlbi.data.layout import Shown
from isplitlbi.data.summary import Summary
from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators.inputs import Pairs, check_choice, pair_features
from isplitlbi.estimators.voting import VoteEstimator
from isplitlbi.model.answering import log_probabilities
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.population import Population, rows_of
from isplitlbi.model.terms import Terms
from isplitlbi.selection import ESTIMATES, Estimate, Rule, predict_outcomes
from isplitlbi.typing import Floats, Indices, Mask

__all__ = ["ScorePredictor"]


class ScorePredictor(VoteEstimator):
    """One whose outcomes follow from scores and a tie threshold (``parameters_``), by a link."""

    rule: Rule
    estimate: Estimate = "dense"  # of an estimator without such a parameter
    summary_: Summary
    link_: Link
    parameters_: Parameters
    terms_: Terms

    _knows_others = True  # whether its users tell what to expect of others

    # Who is outside the consensus at the chosen time; None without a path.
    _outside: Mask | None
    # Found on first use.
    _sparse: Parameters | None
    _populations: dict[Estimate, Population]

    def predict(
        self, X: Any, rule: Rule | None = None, estimate: Estimate | None = None
    ) -> NDArray[Any]:
        """Predict the outcome of each (user, left, right): 1, 0 or -1, or the words of y.

        Of an unknown user, and of everybody where no column of X can be the user, the probabilities
        are averages over the users of the model. An unknown item is an error.

        Parameters
        ----------
        X
            Users, left and right items.
        rule : {"map", "threshold"}, optional
            The estimator's own by default. By the threshold, an unknown user votes like the
            consensus.
        estimate : {"dense", "sparse"}, optional
            By all that users deviate; or by the deviations of those who have left the consensus at
            the chosen time, while all others vote like the consensus (paper, Sec. 2.2). The
            estimator's own by default.
        """
        return self._named(self.predict_outcomes(X, rule, estimate))

    def predict_outcomes(
        self, X: Any, rule: Rule | None = None, estimate: Estimate | None = None
    ) -> NDArray[np.int8]:
        """Predict the outcome of each (user, left, right): 1, 0 or -1, whatever y was."""
        return self._predicted(X, rule, estimate)[0]

    def predict_both(
        self, X: Any, rule: Rule | None = None, estimate: Estimate | None = None
    ) -> tuple[NDArray[np.int8], Floats]:
        """Return the predicted outcomes and the probabilities of all classes, in one go."""
        outcomes, log_probabilities = self._predicted(X, rule, estimate)
        return outcomes, np.exp(log_probabilities)

    def predict_proba(self, X: Any, estimate: Estimate | None = None) -> Floats:
        """Return the probability of every class, in the order of ``classes_``.

        That is right, tie and left, unless y was words. Of an unknown user, each is the average
        over the users of the model of their own probabilities: see `isplitlbi.model.population`.
        """
        return np.exp(self.predict_log_proba(X, estimate))

    def predict_log_proba(self, X: Any, estimate: Estimate | None = None) -> Floats:
        """Return their logarithms, which stay finite where the probabilities vanish."""
        return self._predicted(X, None, estimate)[1]

    def estimated(self, estimate: Estimate = "dense") -> Parameters:
        """Return consensus and deviations by an estimate: ``parameters_``, or its sparse part.

        The sparse estimate is the projection of P on the support of Gamma at the chosen time: users
        who have left the consensus keep all their deviations, others have none.
        """
        check_choice("estimate", estimate, ESTIMATES)
        if estimate == "dense":
            return self.parameters_
        if self._outside is None:
            raise InvalidSetting(
                f"there is no sparse estimate: {type(self).__name__} follows no path here, so "
                "nobody leaves the consensus."
            )
        if self._sparse is None:
            self._sparse = self.parameters_.only_of(self._outside)
        return self._sparse

    def population(self, estimate: Estimate | None = None) -> Population | None:
        """Return the people whom somebody unknown may be like, by an estimate; None in a crowd.

        They are looked at once.
        """
        estimate = self.estimate if estimate is None else estimate
        if self._is_anonymous or not self._knows_others:
            return None
        if estimate not in self._populations:
            self._populations[estimate] = Population.of(self.estimated(estimate), self.link_)
        return self._populations[estimate]

    def _predicted(
        self, X: Any, rule: Rule | None, estimate: Estimate | None
    ) -> tuple[NDArray[np.int8], Floats]:
        """Return outcomes, and the logarithms of the probabilities of all classes."""
        rule = self.rule if rule is None else rule
        check_choice("rule", rule)
        user, shown = self.asked(X)
        margin, threshold, found = self._told(user, shown, estimate)
        classes = found[:, [1 - outcome for outcome in self.outcome_labels_.outcomes]]
        if self.terms_.has_ties:
            return predict_outcomes(rule, margin, threshold, found), classes
        # One of two wins; of equals, the one on the left.
        ahead = found[:, 0] - found[:, 2] if rule == "map" else margin
        return np.where(ahead >= 0.0, 1, -1).astype(np.int8), classes

    def log_probabilities(
        self, user: Indices, shown: Shown, estimate: Estimate | None = None
    ) -> Floats:
        """Return those of left, tie and right for users by index; -1 is somebody unknown."""
        return self._told(user, shown, estimate)[2]

    def _told(
        self, user: Indices, shown: Shown, estimate: Estimate | None
    ) -> tuple[Floats, Floats, Floats]:
        """Return margins and thresholds, an unknown user's by the consensus; and probabilities."""
        known = self.estimated(self.estimate if estimate is None else estimate)
        margin, threshold = known.margin_and_threshold(user, shown.first, shown.second, shown)
        found = log_probabilities(self.link_, margin, threshold, has_ties=self.terms_.has_ties)
        unknown = np.flatnonzero(user < 0)
        if len(unknown) and (people := self.population(estimate)) is not None:
            found[unknown] = people.log_probabilities(rows_of(shown, unknown))
        return margin, threshold, found

    def asked(self, X: Any) -> tuple[Indices, Shown]:
        """Return users (-1 where unknown) and pairs; features that X does not tell of are equal."""
        user, left, right = self._indices(X)
        units = self.summary_.units
        values = None if units is None else pair_features(X, units.names, units.scale)
        if units is None or values is None:
            return user, Shown(left, right)
        features = Features(units.names, values * units.scale, units.scale)
        return user, Shown(left, right, Pairs(features), np.arange(len(left)))
