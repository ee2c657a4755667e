"""What every estimator here takes and gives: votes in, outcomes of pairs out (scikit-learn)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Overview
from isplitlbi.data.vocabulary import Vocabulary, as_series, first_of, show
from isplitlbi.errors import InvalidVotes
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.selection import RULES, Rule, predict_outcomes
from isplitlbi.typing import Floats, Indices


class VoteClassifier(ClassifierMixin, BaseEstimator):
    """Learns from votes and predicts 1 (left wins), 0 (tie) or -1 for any (user, left, right)."""

    def _know(self, votes: Comparisons | Parts, overview: Overview | None = None) -> Self:
        """Remember the votes, or where they are, and whom and what they are about."""
        self._votes, self._overview = votes, overview
        about: Any = overview or votes
        self.users_, self.items_ = about.users, about.items
        self.classes_ = np.array([-1, 0, 1])
        self.n_features_in_ = 3
        return self

    @property
    def overview_(self) -> Overview:
        """The main figures of the votes."""
        check_is_fitted(self, "users_")
        if self._overview is None:
            self._overview = Overview.of(self.votes_)
        return self._overview

    @property
    def votes_at_hand_(self) -> bool:
        """Whether the votes are here; otherwise `votes_` must read them first."""
        check_is_fitted(self, "users_")
        return isinstance(self._votes, Comparisons)

    @property
    def votes_(self) -> Comparisons:
        """The votes; where the workers of a cluster have read them, they are read here only now."""
        check_is_fitted(self, "users_")
        if isinstance(self._votes, Parts):
            try:
                votes = self._votes.read().votes
            except InvalidVotes as error:
                raise InvalidVotes(
                    f"the votes of this model are not stored with it, and this needs them: {error}"
                ) from None
            self._refuse_others(Overview.of(votes))
            self._votes = votes
        return self._votes

    def _refuse_others(self, found: Overview) -> None:
        """Refuse votes, read once more, that have changed since the fit."""
        if found.fingerprint != self.overview_.fingerprint:
            where = f"{self._votes.folder}: " if isinstance(self._votes, Parts) else ""
            raise InvalidVotes(f"{where}these are not the votes of this model any more.")

    def predict(self, X: Any) -> NDArray[np.int8]:
        """Predict the outcome of each (user, left, right): 1, 0 or -1.

        An unknown user votes like the consensus; an unknown item is an error.
        """
        raise NotImplementedError

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of votes predicted correctly (= micro-F1)."""
        votes = as_votes(X, y, sample_weight)
        return float(np.average(self.predict(votes) == votes.outcome, weights=votes.weight))

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

    def _user_index(self, user: Any) -> int:
        check_is_fitted(self)
        return -1 if user is None else int(self._user_vocabulary.encode([user])[0])

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


class MarginClassifier(VoteClassifier):
    """One whose outcomes follow from scores and a tie threshold (``parameters_``), by a link."""

    rule: Rule
    link_: Link
    parameters_: Parameters

    def predict(self, X: Any, rule: Rule | None = None) -> NDArray[np.int8]:
        """Predict the outcome of each (user, left, right): 1, 0 or -1.

        An unknown user votes like the consensus; an unknown item is an error. The rule is the
        estimator's own unless another is given.
        """
        margin, threshold = self._margins(X)
        log_probabilities = self.link_.log_probabilities(margin, threshold)
        return predict_outcomes(rule or self.rule, margin, threshold, log_probabilities)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of right, tie and left: in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return their logarithms, which stay finite where the probabilities vanish."""
        margin, threshold = self._margins(X)
        return self.link_.log_probabilities(margin, threshold)[:, ::-1]

    def _margins(self, X: Any) -> tuple[Floats, Floats]:
        indices = self._indices(X)
        return self.parameters_.margin_and_threshold(*indices)


def check_choice(name: str, value: Any, allowed: tuple[str, ...] = RULES) -> None:
    """Refuse a word that is none of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name} {value!r} is not one of {', '.join(allowed)}.")


def as_votes(X: Any, y: Any, sample_weight: ArrayLike | None) -> Comparisons:
    """Take votes as they are, read files, or index a frame of pairs together with its outcomes."""
    if isinstance(X, Comparisons | Parts | str | Path):
        if y is not None or sample_weight is not None:
            raise ValueError("votes already have outcomes and weights: give no y.")
        if isinstance(X, Comparisons):
            return X
        return X.read().votes if isinstance(X, Parts) else Comparisons.read(X)
    if y is None:
        raise ValueError("give y, the outcomes (1, 0, -1), or fit on Comparisons.")
    return Comparisons.from_arrays(*pair_columns(X), y, weight=sample_weight)


def pair_columns(X: Any) -> tuple[Any, Any, Any]:
    """Return the columns user, left, right of a frame, or the only three of an array."""
    if isinstance(X, str | Path | Parts):
        raise InvalidVotes(
            "X is a file, not pairs; read it first, with isplitlbi.data.readers.read_pairs."
        )
    table: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(table, nw.DataFrame):
        named = {"user", "left", "right"} <= set(table.columns)
        names = ["user", "left", "right"] if named else table.columns
        columns = [table.get_column(name).to_native() for name in names]
        found = ", ".join(map(str, table.columns))
    else:
        array = table if isinstance(table, np.ndarray) else np.array(list(table), dtype=object)
        columns = list(array.T) if array.ndim == 2 else []
        found = f"an array of shape {array.shape}"
    if len(columns) != 3:
        raise InvalidVotes(f"X needs the columns user, left, right; found {found}.")
    return columns[0], columns[1], columns[2]
