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
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.terms import Terms
from isplitlbi.selection import ESTIMATES, Estimate, Rule, predict_outcomes
from isplitlbi.typing import Floats, Mask

__all__ = ["ScorePredictor"]


class ScorePredictor(VoteEstimator):
    """One whose outcomes follow from scores and a tie threshold (``parameters_``), by a link."""

    rule: Rule
    estimate: Estimate = "dense"  # of an estimator without such a parameter
    summary_: Summary
    link_: Link
    parameters_: Parameters
    terms_: Terms

    # Who is outside the consensus at the chosen time; None without a path.
    _outside: Mask | None
    _sparse: Parameters | None  # found on first use

    def predict(
        self, X: Any, rule: Rule | None = None, estimate: Estimate | None = None
    ) -> NDArray[Any]:
        """Predict the outcome of each (user, left, right): 1, 0 or -1, or the words of y.

        An unknown user votes like the consensus, and so does everybody where no column of X can be
        the user; an unknown item is an error.

        Parameters
        ----------
        X
            Users, left and right items.
        rule : {"map", "threshold"}, optional
            The estimator's own by default.
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

        That is right, tie and left, unless y was words.
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

    def _predicted(
        self, X: Any, rule: Rule | None, estimate: Estimate | None
    ) -> tuple[NDArray[np.int8], Floats]:
        """Return outcomes, and the logarithms of the probabilities of all classes."""
        rule = self.rule if rule is None else rule
        check_choice("rule", rule)
        margin, threshold = self._margins(X, self.estimate if estimate is None else estimate)
        classes = self.outcome_labels_.outcomes
        if not self.terms_.has_ties:  # one of two wins; of equals, the one on the left
            wins = {1: margin, -1: -margin}
            of_classes = np.column_stack([self.link_.win(wins[each])[0] for each in classes])
            return np.where(margin >= 0.0, 1, -1).astype(np.int8), of_classes
        found = self.link_.log_probabilities(margin, threshold)
        outcomes = predict_outcomes(rule, margin, threshold, found)
        return outcomes, found[:, [1 - outcome for outcome in classes]]

    def _margins(self, X: Any, estimate: Estimate) -> tuple[Floats, Floats]:
        """Return margins and thresholds; features that X does not tell of are equal."""
        user, left, right = self._indices(X)
        shown, units = None, self.summary_.units
        if units is not None:
            values = pair_features(X, units.names, units.scale)
            if values is not None:
                features = Features(units.names, values * units.scale, units.scale)
                shown = Shown(left, right, Pairs(features), np.arange(len(left)))
        return self.estimated(estimate).margin_and_threshold(user, left, right, shown)
