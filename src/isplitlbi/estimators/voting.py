"""What every estimator takes and gives.

`VoteEstimator` learns from votes and predicts outcomes of pairs, as scikit-learn asks for it.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.vocabulary import Vocabulary, as_series, first_of, show
from isplitlbi.errors import InvalidVotes
from isplitlbi.estimators.inputs import as_votes, pair_columns
from isplitlbi.typing import Indices, Labels

__all__ = ["VoteEstimator"]


class VoteEstimator(ClassifierMixin, BaseEstimator):
    """Learns from votes and predicts 1 (left wins), 0 (tie) or -1 for any (user, left, right)."""

    users_: Labels
    items_: Labels

    def _know(self, users: Labels, items: Labels, *, has_ties: bool = True) -> Self:
        """Remember whom and what the votes are about."""
        self.users_, self.items_ = users, items
        self.classes_ = np.array([-1, 0, 1] if has_ties else [-1, 1])
        self.n_features_in_ = 3
        return self

    def predict(self, X: Any) -> NDArray[np.int8]:
        """Predict the outcome of each (user, left, right): 1, 0 or -1.

        An unknown user votes like the consensus; an unknown item is an error.
        """
        raise NotImplementedError

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of votes predicted correctly (= micro-F1)."""
        votes = as_votes(X, y, sample_weight)
        return float(np.average(self.predict(votes) == votes.outcome, weights=votes.weight))

    def user_index(self, user: Any) -> int:
        """Return the place of a user in ``users_``; -1 for one who is not known, or for None."""
        check_is_fitted(self)
        return -1 if user is None else int(self._user_vocabulary.encode([user])[0])

    def _indices(self, X: Any) -> tuple[Indices, Indices, Indices]:
        """Return users (-1 where unknown), left and right items as indices."""
        check_is_fitted(self)
        if isinstance(X, Comparisons):
            columns = (X.users[X.user], X.items[X.left], X.items[X.right])
        else:
            columns = pair_columns(X)
        users = as_series(columns[0], "user", "X")
        if row := first_of(users.is_null()):
            raise InvalidVotes(f"X, row {row}: user is missing. Fill it in or remove the row.")
        user = self._user_vocabulary.encode(users)
        return user, self._known_items(columns[1]), self._known_items(columns[2])

    @property
    def _user_vocabulary(self) -> Vocabulary:
        return Vocabulary(self.users_, "user")

    def _known_items(self, items: Any) -> Indices:
        check_is_fitted(self)
        vocabulary = Vocabulary(self.items_, "item")
        index = vocabulary.encode(items)
        unknown = np.flatnonzero(index < 0)
        if len(unknown):
            item = np.asarray(items, dtype=object)[unknown[0]]
            raise InvalidVotes(
                f"item {show(item)} is not among the {len(vocabulary)} items of this model; "
                f"the nearest is {show(vocabulary.nearest(item))}."
            )
        return index
