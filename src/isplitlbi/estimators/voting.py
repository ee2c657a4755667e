"""What every estimator takes and gives.

`VoteEstimator` learns from votes and predicts outcomes of pairs, as scikit-learn asks for it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.labels import NUMBERS, OutcomeLabels
from isplitlbi.data.vocabulary import Vocabulary, as_series, first_of
from isplitlbi.errors import InvalidRows, InvalidSetting, InvalidVotes
from isplitlbi.estimators.contract import Estimator, check_is_fitted
from isplitlbi.estimators.inputs import as_votes, pair_columns
from isplitlbi.nouns import Nouns
from isplitlbi.typing import Indices, Labels

__all__ = ["VoteEstimator"]

log = logging.getLogger("isplitlbi")


class VoteEstimator(Estimator):
    """Learns from votes and predicts the outcome of any (user, left, right).

    Outcomes are 1 (left wins), 0 (tie) and -1; or the words of y, where a fit was given words.
    """

    # Of an estimator without such a parameter; it may be set to a mapping there, too.
    call: Mapping[str, str] | None = None

    users_: Labels
    items_: Labels
    classes_: NDArray[Any]
    outcome_labels_: OutcomeLabels  # what each of the classes stands for

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from votes, or from pairs and their outcomes."""
        raise NotImplementedError

    def _know(
        self,
        users: Labels,
        items: Labels,
        labels: OutcomeLabels = NUMBERS,
        *,
        has_ties: bool = True,
        is_anonymous: bool = False,
    ) -> Self:
        """Remember whom and what the votes are about, and what outcomes are called."""
        self.users_, self.items_ = users, items
        self.outcome_labels_ = labels if has_ties else labels.without_ties()
        self.classes_ = np.array(self.outcome_labels_.labels)
        self.n_features_in_ = 3
        self._is_anonymous, self._has_told = is_anonymous, False
        return self

    @property
    def nouns(self) -> Nouns:
        """What items and users are called in tables, sentences and figures: by ``call``."""
        return Nouns.of(self.call)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the outcome of each (user, left, right): 1, 0 or -1, or the words of y.

        Where no column of X can be the user, everybody is an unknown user. An unknown item is an
        error.
        """
        return self._named(self.predict_outcomes(X))

    def predict_outcomes(self, X: Any) -> NDArray[np.int8]:
        """Predict the outcome of each (user, left, right): 1, 0 or -1, whatever y was."""
        raise NotImplementedError

    def _named(self, outcome: NDArray[np.int8]) -> NDArray[Any]:
        return self.outcome_labels_.name(outcome)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of votes predicted correctly (= micro-F1)."""
        votes = as_votes(X, y, sample_weight)
        return float(
            np.average(self.predict_outcomes(votes) == votes.outcome, weights=votes.weight)
        )

    def user_index(self, user: Any) -> int:
        """Return the place of a user in ``users_``, -1 for None: the consensus.

        An unknown user is an error that names the nearest id.
        """
        check_is_fitted(self)
        if user is not None:
            self.refuse_without_users("no user to ask for")
        return -1 if user is None else self._user_vocabulary.place(user)

    def refuse_without_users(self, lacking: str) -> None:
        """Refuse what needs users, where the votes are those of an anonymous crowd."""
        if self._is_anonymous:
            raise InvalidSetting(f"the votes of this model have no users, so there is {lacking}.")

    def _indices(self, X: Any) -> tuple[Indices, Indices, Indices]:
        """Return users (-1 where unknown), left and right items as indices."""
        check_is_fitted(self)
        columns: tuple[Any, Any, Any]
        if isinstance(X, Comparisons):
            columns = (X.users[X.user], X.items[X.left], X.items[X.right])
        else:
            columns = pair_columns(X)
        left, right = map(self._items_of_pairs, columns[1:])
        if columns[0] is None:
            self._tell_that_nobody_is_named()
            return np.full(len(left), -1, dtype=np.int32), left, right
        users = as_series(columns[0], "user", "X")
        if row := first_of(users.is_null()):
            raise InvalidVotes(f"X, row {row}: user is missing. Fill it in or remove the row.")
        return self._user_vocabulary.encode(users), left, right

    def _items_of_pairs(self, items: Any) -> Indices:
        """Return items as indices; the rows of those that are not known are an error."""
        vocabulary = Vocabulary(self.items_, "item")
        column = as_series(items, "item", "X")
        index = vocabulary.encode(column)
        if row := first_of(index < 0):
            unknown = str(vocabulary.unknown(column[row - 1], "this model")).rstrip(".")
            raise InvalidRows.of("X", index < 0, unknown, "Correct it or remove the row")
        return index

    def _tell_that_nobody_is_named(self) -> None:
        """Say once that all are taken for unknown, where there are users who could be asked for."""
        if not (self._is_anonymous or self._has_told):
            log.warning(
                "there is no column of users, so everybody is predicted as an unknown user."
            )
        self._has_told = True

    @property
    def _user_vocabulary(self) -> Vocabulary:
        return Vocabulary(self.users_, "user")

    def _known_items(self, items: Any) -> Indices:
        check_is_fitted(self)
        return Vocabulary(self.items_, "item").require(items)
