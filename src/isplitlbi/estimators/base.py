"""What every estimator takes and gives, and everything that follows from scores.

`VoteEstimator` learns from votes and predicts outcomes of pairs, as scikit-learn asks for it.
`ScoreEstimator` has scores and tie thresholds; whatever one wants to know of them is here, so that
an estimator of that kind only says how it finds them: its ``fit`` hands a `Fitted` to ``adopt``.
Nothing with a trailing underscore computes: all of it is set by ``fit`` and ``test_users``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from isplitlbi.abnormal import (
    KINDS,
    N_BOOTSTRAP,
    Abnormality,
    Effect,
    TellingVote,
    check_fdr,
    find_effect,
    find_telling_votes,
)
from isplitlbi.abnormal.job import FindAbnormal, find_abnormal_on
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Summary
from isplitlbi.data.vocabulary import Vocabulary, as_series, first_of, show
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators.inputs import as_votes, check_choice, pair_columns, threads_of
from isplitlbi.fitting import Fitted
from isplitlbi.model import ranking as rankings
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.ranking import Ranking, Relation
from isplitlbi.path import RegularizationPath
from isplitlbi.runtime.base import Workforce
from isplitlbi.runtime.choice import runtime_for
from isplitlbi.selection import Rule, Selection, predict_outcomes
from isplitlbi.solvers import bootstrap_consensus
from isplitlbi.typing import Floats, Indices, Labels

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["ScoreEstimator", "VoteEstimator"]


class VoteEstimator(ClassifierMixin, BaseEstimator):
    """Learns from votes and predicts 1 (left wins), 0 (tie) or -1 for any (user, left, right)."""

    users_: Labels
    items_: Labels

    def _know(self, users: Labels, items: Labels) -> Self:
        """Remember whom and what the votes are about."""
        self.users_, self.items_ = users, items
        self.classes_ = np.array([-1, 0, 1])
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


class ScoreEstimator(VoteEstimator):
    """One whose outcomes follow from scores and a tie threshold (``parameters_``), by a link.

    Attributes
    ----------
    users_, items_ : arrays of ids, sorted
    consensus_ : (n_items,) scores
    threshold_ : float
    parameters_ : Parameters
        Consensus and deviations.
    link_ : Link
    summary_ : Summary
        The main figures of the votes.
    path_, selection_, time_
        Of an estimator that follows a path; None for others.
    entry_times_ : (n_users,)
        When each user left the consensus, infinite for who did not.
    left_consensus_ : list of ids
        Users outside the consensus at the chosen time, in order of entry.
    abnormality_ : Abnormality
        What is known of every user; there once users are tested.
    abnormal_users_ : list of ids
        Users who do not vote like the consensus, flagged at ``fdr``, in order of entry; there once
        users are tested.
    fitted_ : Fitted
        All that the fit has found, as one record.
    """

    rule: Rule
    # What an estimator without such a parameter uses.
    fdr: float = 0.05
    delta: float = 1e-3
    random_state: int | None = 0
    n_jobs: int | None = None

    fitted_: Fitted
    summary_: Summary
    link_: Link
    parameters_: Parameters
    consensus_: Floats
    threshold_: float
    path_: RegularizationPath | None
    selection_: Selection | None
    time_: float | None
    entry_times_: Floats
    left_consensus_: list[Any]
    abnormality_: Abnormality
    abnormal_users_: list[Any]
    costs_: Any

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what an attribute waits for; this is asked only where there is none."""
            if name in ("abnormality_", "abnormal_users_"):
                check_is_fitted(self, "fitted_")
                raise AttributeError(
                    f"there is no {name} yet: the users of this model have not been tested. "
                    "Call test_users() first."
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def adopt(self, fitted: Fitted, abnormality: Abnormality | None = None) -> Self:
        """Take over what was fitted and, where users were tested, what was found of them."""
        self._know(fitted.summary.users, fitted.summary.items)
        self.fitted_, self.summary_, self.link_ = fitted, fitted.summary, fitted.link
        self.parameters_ = fitted.parameters
        self.consensus_ = fitted.parameters.common.scores
        self.threshold_ = fitted.parameters.common.threshold
        self.path_, self.selection_, self.time_ = fitted.path, fitted.selection, fitted.time
        self.entry_times_ = np.full(len(self.users_), np.inf)
        self.left_consensus_ = []
        if fitted.path is not None and fitted.time is not None:
            self.entry_times_ = fitted.path.entry_times
            self.left_consensus_ = self.users_[fitted.path.support_at(fitted.time)].tolist()
        if fitted.dynamics is not None:
            self.nu_, self.kappa_ = fitted.dynamics.nu, fitted.dynamics.kappa
        for name, value in fitted.chosen.items():
            setattr(self, f"{name}_", value)
        for name in ("abnormality_", "abnormal_users_", "costs_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if fitted.costs is not None:
            self.costs_ = fitted.costs
        self._tested: dict[float, Abnormality] = {}
        self._drawn: Floats | None = None
        if abnormality is not None:
            self._remember(abnormality)
        return self

    # --- votes ------------------------------------------------------------------------------

    def has_votes(self) -> bool:
        """Say whether the votes are here; otherwise `votes` must read them first."""
        check_is_fitted(self, "fitted_")
        return isinstance(self.fitted_.votes, Comparisons)

    def votes(self) -> Comparisons:
        """Return the votes; where workers of a cluster have read them, they are read here now."""
        check_is_fitted(self, "fitted_")
        found = self.fitted_.votes
        if isinstance(found, Parts):
            try:
                read = found.read().votes
            except InvalidVotes as error:
                raise InvalidVotes(
                    "the votes of this model are not stored with it, and this needs them: ",
                    *error.args,
                ) from None
            self._refuse_others(Summary.of(read))
            self.fitted_ = replace(self.fitted_, votes=read)
            return read
        return found

    def _refuse_others(self, found: Summary) -> None:
        """Refuse votes, read once more, that have changed since the fit."""
        if found.fingerprint != self.summary_.fingerprint:
            votes = self.fitted_.votes
            where = f"{votes.folder}: " if isinstance(votes, Parts) else ""
            raise InvalidVotes(f"{where}these are not the votes of this model any more.")

    # --- predictions ------------------------------------------------------------------------

    def predict(self, X: Any, rule: Rule | None = None) -> NDArray[np.int8]:
        """Predict the outcome of each (user, left, right): 1, 0 or -1.

        An unknown user votes like the consensus; an unknown item is an error. The rule is the
        estimator's own unless another is given.
        """
        rule = self.rule if rule is None else rule
        check_choice("rule", rule)
        margin, threshold = self._margins(X)
        log_probabilities = self.link_.log_probabilities(margin, threshold)
        return predict_outcomes(rule, margin, threshold, log_probabilities)

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

    # --- rankings ---------------------------------------------------------------------------

    def scores(self, user: Any = None) -> Floats:
        """Return a user's score for every one of ``items_``; the consensus without a user."""
        index = self.user_index(user)
        return self.parameters_.scores_of(index)

    def threshold(self, user: Any = None) -> float:
        """Return a user's tie threshold; the consensus's without a user."""
        index = self.user_index(user)
        return self.parameters_.threshold_of(index)

    def ranking(self, user: Any = None) -> Ranking:
        """Return the partial ranking of the consensus, or of one user, in tiers."""
        index = self.user_index(user)
        everywhere = np.ones(len(self.items_), dtype=np.bool_)
        return Ranking.of(
            self.items_,
            self.parameters_.scores_of(index),
            self.parameters_.threshold_of(index),
            everywhere if index < 0 else self.parameters_.compared_by(index),
        )

    def relation(self, a: Any, b: Any, user: Any = None) -> Relation:
        """Say how item a stands to item b for a user: better, tied or worse."""
        first, second = self._known_items([a, b])
        return rankings.relation(self.scores(user), self.threshold(user), first, second)

    def recommend(
        self, user: Any = None, *, same_as: Any = None, better_than: Any = None
    ) -> list[Any]:
        """Recommend items as good as one, or slightly better than one; nearest first."""
        if (same_as is None) == (better_than is None):
            raise InvalidSetting("give exactly one of same_as and better_than.")
        choose = rankings.as_good_as if better_than is None else rankings.better_than
        (item,) = self._known_items([same_as if better_than is None else better_than])
        found = choose(self.scores(user), self.threshold(user), item)
        return list(self.items_[found].tolist())

    def consensus_intervals(self) -> tuple[Floats, Floats]:
        """Return between what scores of the consensus lie, in 95 % of draws of other users.

        Users are drawn anew with replacement. The spread is that of the plain maximum likelihood,
        put around the scores of the consensus.
        """
        check_is_fitted(self, "fitted_")
        drawn = self._drawn_anew()
        low, high = np.quantile(drawn - np.median(drawn, axis=0), (0.025, 0.975), axis=0)
        return self.consensus_ + low, self.consensus_ + high

    def _drawn_anew(self) -> Floats:
        """Return the scores of the consensus of many other draws of users; found on first use."""
        if self._drawn is None:
            seed = self.random_state or 0
            self._drawn = bootstrap_consensus(
                self.votes(), self.link_, N_BOOTSTRAP, seed, self.delta
            )
        return self._drawn

    # --- users ------------------------------------------------------------------------------

    def distance_to_consensus(self) -> Floats:
        """Return the Euclidean distance of every user's scores to the consensus."""
        check_is_fitted(self, "fitted_")
        return self.parameters_.distance_to_consensus()

    def test_users(
        self,
        fdr: float | None = None,
        progress: Callable[[float], None] | None = None,
        client: Client | None = None,
    ) -> Abnormality:
        """Test every user, and say how and how carefully they vote.

        What is found at the model's own false discovery rate becomes ``abnormality_`` and
        ``abnormal_users_``. Users are tested once for each rate: asked again, the model knows.

        Parameters
        ----------
        fdr
            False discovery rate, where it is not to be the model's own.
        progress
            Called now and then with the share of the work done.
        client
            Of Dask: users are tested on its workers, which get the votes as for a fit.
        """
        check_is_fitted(self, "fitted_")
        fdr = self.fdr if fdr is None else fdr
        check_fdr(fdr)
        if fdr not in self._tested:
            votes = self.votes() if client is None else self.fitted_.votes
            n_threads = threads_of(self.n_jobs)
            runtime = runtime_for(votes, client, n_threads=n_threads, again=True)
            if client is not None:
                self._refuse_others(runtime.summary)
            self._test_on(runtime, fdr, progress)
        return self._tested[fdr]

    def _test_on(
        self, runtime: Workforce, fdr: float, progress: Callable[[float], None] | None
    ) -> None:
        """Test every user, where the votes are already."""
        seed, consensus = self.random_state or 0, self.parameters_.common
        has_sides = getattr(self, "sides", "known") == "known"
        job = FindAbnormal(self.link_, consensus, fdr, seed, self.delta, has_sides)
        self._remember(find_abnormal_on(runtime, job, progress))

    def _remember(self, found: Abnormality) -> None:
        """Keep what was found of the users, and show it where it is of the model's own rate."""
        self._tested[found.fdr] = found
        if found.fdr == self.fdr:
            order = np.lexsort((-self.distance_to_consensus(), self.entry_times_))
            self.abnormality_ = found
            self.abnormal_users_ = self.users_[order[found.flagged[order]]].tolist()

    def telling_votes(self, user: Any, most: int = 10) -> list[TellingVote]:
        """Return the votes of a user that the consensus least expected, the least likely first."""
        index = self.user_index(user)
        if index < 0:
            raise InvalidVotes(f"user {show(user)} has no votes in this model.")
        votes = self.votes()
        own = votes.subset(votes.user == index)
        found = find_telling_votes(own, self.link_, self.test_users().consensus, most)
        return [
            TellingVote(self.items_[left], self.items_[right], *vote)
            for _, left, right, *vote in zip(*(column.tolist() for column in found), strict=True)
        ]

    def effect_of_leaving_out(
        self, kinds: Sequence[str] | None = None, fdr: float | None = None
    ) -> Effect:
        """Compare the consensus with and without the users who are flagged.

        Parameters
        ----------
        kinds
            Only those of some kinds, such as those of `isplitlbi.abnormal.KINDS` that are
            untrustworthy.
        fdr
            False discovery rate, where it is not to be the model's own; users are tested at it.
        """
        for kind in kinds or ():
            check_choice("kind", kind, tuple(KINDS))
        found = self.test_users(fdr)
        of_kind = [kinds is None or kind in kinds for kind in found.kind]
        return find_effect(
            self.votes(),
            self.link_,
            found.flagged & of_kind,
            terms=found.consensus.terms,
            delta=self.delta,
            drawn=self._drawn_anew(),
        )
