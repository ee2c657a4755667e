"""Everything that follows from scores, whichever way an estimator finds them.

`ScoreEstimator` has scores and tie thresholds; whatever one wants to know of them is here, so that
an estimator of that kind only says how it finds them: its ``fit`` hands a `Fitted` to ``adopt``.
Nothing with a trailing underscore computes: all of it is set by ``fit`` and ``test_users``. What
tests users is imported where they are tested, because a stored model knows its users already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isplitlbi.abnormal import DIFFERENT, LISTS, UNRELIABLE, Abnormality, check_fdr
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.labels import NUMBERS, OutcomeLabels
from isplitlbi.data.outcomes import Sides
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators.cards import OwnScores, effect_of_features, own_scores
from isplitlbi.estimators.certainty import Standing
from isplitlbi.estimators.contract import check_is_fitted, clone
from isplitlbi.estimators.effect import Effect
from isplitlbi.estimators.grouped import GroupedEstimator
from isplitlbi.estimators.inputs import (
    check_choice,
    threads_of,
)
from isplitlbi.estimators.leaderboard import Leaderboard
from isplitlbi.estimators.lists import Recommendations, VotesThatTell
from isplitlbi.estimators.measured import leaderboard_of
from isplitlbi.estimators.notebook import shown_in_notebook
from isplitlbi.estimators.standing import standing_of
from isplitlbi.estimators.tested import Everybody, TestedUsers
from isplitlbi.fitting import Fitted
from isplitlbi.model import ranking as rankings
from isplitlbi.model.ranking import Ranking, Relation
from isplitlbi.model.terms import Side
from isplitlbi.path import RegularizationPath
from isplitlbi.runtime.base import Workforce
from isplitlbi.runtime.choice import runtime_for
from isplitlbi.selection import Estimate, Rule, Selection
from isplitlbi.typing import Floats, Mask

if TYPE_CHECKING:
    from distributed import Client

    from isplitlbi.model.decomposition import Decomposition


__all__ = ["ScoreEstimator"]

# What there is once users are tested.
_OF_TESTS = ("abnormality_", "abnormal_users_", "unreliable_users_", "different_users_")


class ScoreEstimator(GroupedEstimator):
    """One whose outcomes follow from scores and a tie threshold (``parameters_``), by a link.

    Attributes
    ----------
    users_, items_ : arrays of ids, sorted
        Where the votes are those of an anonymous crowd, the only user is ``everybody``.
    classes_ : array
        What may be predicted: -1, 0 and 1, or -1 and 1 where there are no ties; where y was words,
        those words, sorted.
    outcome_labels_ : OutcomeLabels
        Which outcome each of them stands for.
    consensus_ : (n_items,) scores
        Where both sides are alike in all features.
    threshold_ : float or None
        None where there are no ties.
    habits_ : (n_items,)
        By which factor each item changes the threshold of its pairs; 1 without tie habits.
    side_ : float
        What everybody adds to the margin of the left item, in logits.
    terms_ : Terms
        In which ways users may differ, and by how much.
    spreads_ : dict
        By how much users do differ in each term, in logits, where that was estimated.
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
    abnormality_ : TestedUsers
        What is known of every user; there once users are tested.
    abnormal_users_ : list of ids
        Users who are unreliable or different, those with the largest effect first; there once users
        are tested.
    unreliable_users_ : list of ids
        Those of them whose votes tell little about the items.
    different_users_ : list of ids
        Those who are unlike the group by more than is ordinary here, and not surely unreliable.
    fitted_ : Fitted
        All that the fit has found, as one record.
    """

    rule: Rule
    # What an estimator without such a parameter uses.
    fdr: float = 0.05
    delta: float = 1e-3
    random_state: int | None = 0
    n_jobs: int | None = None

    spreads_: dict[str, float]
    consensus_: Floats
    threshold_: float | None
    habits_: Floats
    side_: float
    path_: RegularizationPath | None
    selection_: Selection | None
    time_: float | None
    entry_times_: Floats
    left_consensus_: list[Any]
    abnormality_: TestedUsers
    abnormal_users_: list[Any]
    unreliable_users_: list[Any]
    different_users_: list[Any]
    costs_: Any

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what an attribute waits for; this is asked only where there is none."""
            if name in _OF_TESTS:
                check_is_fitted(self, "fitted_")
                if self._is_anonymous:
                    raise AttributeError(
                        f"there is no {name}: the votes of this model have no users to test."
                    )
                raise AttributeError(
                    f"there is no {name} yet: the users of this model have not been tested. "
                    "Call test_users() first."
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def adopt(
        self,
        fitted: Fitted,
        abnormality: Abnormality | None = None,
        *,
        labels: OutcomeLabels = NUMBERS,
        standing: Standing | None = None,
        without: Mapping[bytes, Leaderboard] | None = None,
    ) -> Self:
        """Take over what was fitted, what was found of users, and what outcomes are called.

        Besides, where the items stand, and leaderboards without some users, if known already.
        """
        terms, common = fitted.parameters.terms, fitted.parameters.common
        self._know(
            fitted.summary.users, fitted.summary.items, labels, has_ties=terms.has_ties,
            is_anonymous=fitted.summary.is_anonymous,
        )  # fmt: skip
        self.fitted_, self.summary_, self.link_ = fitted, fitted.summary, fitted.link
        self.parameters_, self.terms_, self.spreads_ = fitted.parameters, terms, {**fitted.spreads}
        self.consensus_, self.habits_ = common.scores, common.habits
        self.threshold_ = common.threshold if terms.has_ties else None
        self.side_ = common.trait(Side.name) if Side.name in terms.names else 0.0
        self.path_, self.selection_, self.time_ = fitted.path, fitted.selection, fitted.time
        if self.selection_ is not None:
            self.selection_.framed_as(self._frame_kind)
        self.entry_times_ = np.full(len(self.users_), np.inf)
        self.left_consensus_, self._outside, self._sparse, self._populations = [], None, None, {}
        if fitted.path is not None and fitted.time is not None:
            self.entry_times_ = fitted.path.entry_times
            outside = fitted.path.support_at(fitted.time)
            self.left_consensus_ = self.users_[outside].tolist()
            self._outside = np.isin(np.arange(len(self.users_)), outside)
        elif fitted.summary.is_anonymous:
            self._outside = np.zeros(len(self.users_), dtype=np.bool_)
        if fitted.dynamics is not None:
            self.nu_, self.kappa_ = fitted.dynamics.nu, fitted.dynamics.kappa
        for name, value in fitted.chosen.items():
            setattr(self, f"{name}_", value)
        for name in (*_OF_TESTS, "costs_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if fitted.costs is not None:
            self.costs_ = fitted.costs
        self._tested: dict[float, TestedUsers] = {}
        self._certainty, self._standing, self._board = None, standing, None
        self._boards_without: dict[bytes, Leaderboard] = {
            who: board.framed_as(self._frame_kind) for who, board in (without or {}).items()
        }
        if abnormality is not None:
            self._remember(abnormality)
        return self

    def _repr_html_(self) -> str:
        """Show a notebook what was fitted, in short; settings, where nothing was."""
        return shown_in_notebook(self)

    @property
    def has_sides(self) -> bool:
        """Whether left and right are said to mean something; see ``sides`` of `ISplitLBI`."""
        sides: Sides = getattr(self, "sides", "known")
        return sides == "known"

    # --- rankings ---------------------------------------------------------------------------

    def scores(self, user: Any = None, estimate: Estimate = "dense") -> Floats:
        """Return a user's score for every one of ``items_``; the consensus without a user.

        Here and below, an unknown user is an error that names the nearest id, and an estimate is
        that of `predict`.
        """
        index = self.user_index(user)
        return self.estimated(estimate).scores_of(index)

    def threshold(self, user: Any = None, estimate: Estimate = "dense") -> float | None:
        """Return a user's tie threshold; the consensus's without a user. None without ties."""
        index, found = self.user_index(user), self.estimated(estimate)
        return found.threshold_of(index) if self.terms_.has_ties else None

    def ranking(self, user: Any = None, estimate: Estimate = "dense") -> Ranking:
        """Return the partial ranking of the consensus, or of one user, in tiers.

        Both sides are alike in all features. Without ties there are no tiers.
        """
        return self._ranking(user, self.scores(user, estimate), self.threshold(user, estimate))

    def ranking_as_shown(self, user: Any = None) -> Ranking:
        """Return the ranking of the items with the features that they had in the votes.

        To every score is added what the mean of its features, as far as they differed from those of
        the other items, counts for. Beside `ranking`, this shows what features do.
        """
        index = self.user_index(user)
        added = effect_of_features(self.votes(), self.parameters_.of_user(index))
        return self._ranking(user, self.scores(user) + added, self.threshold(user))

    def _ranking(self, user: Any, scores: Floats, threshold: float | None) -> Ranking:
        index = self.user_index(user)
        compared = np.ones(len(self.items_), dtype=np.bool_)
        if index >= 0:
            compared = self.parameters_.compared_by(index)
        habits = self.habits_ if self.terms_.has_habits else None
        found = Ranking.of(self.items_, scores, threshold, compared, habits, user)
        return found.framed_as(self._frame_kind)

    def own_scores(self, user: Any) -> OwnScores:
        """Return the scores of a user with 95 % intervals, beside the mean of all items.

        They also say which differ from the consensus by more than chance.
        """
        index = self._voter(user)
        found = own_scores(self.certainty(), index, self.ranking(user))
        return found.framed_as(self._frame_kind)

    def decompose(self, noise_level: float = 2.0) -> Decomposition:
        """Split the users' deviations into strong, personal and noise parts, where users leave.

        Users leave on a path; a model without one refuses.
        """
        check_is_fitted(self, "fitted_")
        self.refuse_without_users("nobody whose deviations could be split")
        raise InvalidSetting(
            f"a model of {type(self).__name__} has no path that users leave the consensus on, so "
            "their deviations have no parts. Fit ISplitLBI."
        )

    def relation(self, a: Any, b: Any, user: Any = None) -> Relation:
        """Say how item a stands to item b for a user: better, tied or worse."""
        first, second = self._known_items([a, b])
        scores, threshold = self.scores(user), self.threshold(user)
        return rankings.relation(scores, threshold, first, second, self.habits_)

    def recommend(
        self, user: Any = None, *, same_as: Any = None, better_than: Any = None
    ) -> Recommendations:
        """Recommend items as good as one, or slightly better than one; nearest first.

        That is a list of ids, and a table of their scores (``to_frame``). For a user, it says which
        items the user has compared; the consensus places the others.
        """
        if (same_as is None) == (better_than is None):
            raise InvalidSetting("give exactly one of same_as and better_than.")
        if better_than is None and self.threshold(user) is None:
            raise InvalidSetting(
                "no item is as good as another here: the votes of this model have no ties, so "
                "there is no tie threshold. Ask for items better than one."
            )
        choose = rankings.as_good_as if better_than is None else rankings.better_than
        (item,) = self._known_items([same_as if better_than is None else better_than])
        scores = self.scores(user)
        found = choose(scores, self.threshold(user), item, self.habits_)
        index = self.user_index(user)
        compared = self.parameters_.compared_by(index) if index >= 0 else None
        recommended = Recommendations(self.items_, scores, found, item, compared)
        return recommended.framed_as(self._frame_kind)

    # --- users ------------------------------------------------------------------------------

    def distance_to_consensus(self) -> Floats:
        """Return the Euclidean distance of every user's scores to the consensus."""
        check_is_fitted(self, "fitted_")
        return self.parameters_.distance_to_consensus()

    def everybody(self) -> Everybody:
        """Return what the fit says of every user, before any test."""
        check_is_fitted(self, "fitted_")
        votes_per_user, distance = self.summary_.votes_per_user, self.distance_to_consensus()
        return Everybody(self.users_, votes_per_user, self.entry_times_, distance)

    def test_users(
        self,
        fdr: float | None = None,
        progress: Callable[[float], None] | None = None,
        client: Client | None = None,
    ) -> TestedUsers:
        """Test every user, and say how and how carefully they vote.

        What is found at the model's own false discovery rate becomes ``abnormality_``, and the
        lists of users. Users are tested once for each rate: asked again, the model knows.

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
        self.refuse_without_users("nobody to test")
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
        from isplitlbi.abnormal.job import FindAbnormal, find_abnormal_on

        seed, consensus = self.random_state or 0, self.parameters_.common
        job = FindAbnormal(self.link_, consensus, fdr, seed, self.delta, self.has_sides)
        self._remember(find_abnormal_on(runtime, job, progress))

    def _remember(self, found: Abnormality) -> None:
        """Keep what was found of the users, and show it where it is of the model's own rate."""
        tested = TestedUsers.of(found, self.everybody()).framed_as(self._frame_kind)
        self._tested[found.fdr] = tested
        if found.fdr == self.fdr:
            order = np.lexsort((self.entry_times_, -found.effect))
            self.abnormality_ = tested
            self.abnormal_users_, self.unreliable_users_, self.different_users_ = (
                self.users_[order[listed[order]]].tolist()
                for listed in (found.flagged, found.on(UNRELIABLE), found.on(DIFFERENT))
            )

    def telling_votes(self, user: Any, most: int = 10) -> VotesThatTell:
        """Return the votes of a user that the consensus least expected, the least likely first.

        That is a list, and a table (``to_frame``).
        """
        from isplitlbi.abnormal import TellingVote, find_telling_votes

        index, votes = self._voter(user), self.votes()
        own = votes.subset(votes.user == index)
        consensus = self.test_users().consensus
        found = find_telling_votes(own, self.link_, consensus, most, has_sides=self.has_sides)
        told = [
            TellingVote(self.items_[left], self.items_[right], *vote)
            for _, left, right, *vote in zip(*(column.tolist() for column in found), strict=True)
        ]
        return VotesThatTell(told).framed_as(self._frame_kind)

    def effect_of_leaving_out(
        self,
        kinds: Sequence[str] | None = None,
        fdr: float | None = None,
        lists: Sequence[str] | None = None,
    ) -> Effect:
        """Compare the leaderboard with that of the others, if users were left out.

        Both are found in the same way: see `leaderboard` and `leaderboard_without`.

        Parameters
        ----------
        kinds
            Only users of some kinds, such as those of `isplitlbi.abnormal.KINDS`.
        fdr
            False discovery rate, where it is not to be the model's own; users are tested at it.
        lists
            Of which lists; by default of the unreliable users or, where kinds are given, of both.
        """
        left_out = self._left_out(kinds, fdr, lists)
        others = self._leaderboard_without(left_out)
        effect = Effect(self.users_[left_out].tolist(), self.leaderboard(), others)
        return effect.framed_as(self._frame_kind)

    def without_unreliable(self) -> tuple[Mask, Leaderboard] | None:
        """Return who is on that list, and the leaderboard of the others; None where it is empty."""
        left_out = self._left_out(None, None, None)
        is_some = left_out.any() and not left_out[self.votes().user].all()
        return (left_out, self._leaderboard_without(left_out)) if is_some else None

    def _left_out(
        self, kinds: Sequence[str] | None, fdr: float | None, lists: Sequence[str] | None
    ) -> Mask:
        """Say which users are of some kinds and on some lists."""
        from isplitlbi.abnormal import KINDS

        check_is_fitted(self, "fitted_")
        if lists is None:
            lists = (UNRELIABLE,) if kinds is None else LISTS
        for kind in kinds or ():
            check_choice("kind", kind, tuple(KINDS))
        for name in lists:
            check_choice("list", name, LISTS)
        found = self.test_users(fdr)
        return np.array([
            name in lists and (kinds is None or kind in kinds)
            for name, kind in zip(found.list, found.kind, strict=True)
        ])  # fmt: skip

    def leaderboard_without(self, users: Any) -> Leaderboard:
        """Return the leaderboard of the votes of all but some users, fitted again without them.

        Nothing is chosen anew: the settings are those that were chosen for this model, and so is
        the time on the path. It is fitted once for the same users.

        Parameters
        ----------
        users
            Ids, or one id. An unknown one is an error that names the nearest.
        """
        check_is_fitted(self, "fitted_")
        self.refuse_without_users("nobody to leave out")
        one = isinstance(users, str | int | np.integer)
        left_out = np.zeros(len(self.users_), dtype=np.bool_)
        left_out[self._user_vocabulary.require([users] if one else list(users))] = True
        return self._leaderboard_without(left_out)

    def _leaderboard_without(self, left_out: Mask) -> Leaderboard:
        votes = self.votes()
        kept = ~left_out[votes.user]
        if kept.all():
            return self.leaderboard()
        if not kept.any():
            raise InvalidVotes("nobody would be left to make a consensus; leave out fewer users.")
        who = left_out.tobytes()
        if who not in self._boards_without:
            others = votes.subset(kept)
            fitted = self._fit_again(others)
            board = leaderboard_of(others, fitted, standing_of(others, fitted))
            self._boards_without[who] = board.framed_as(self._frame_kind)
        return self._boards_without[who]

    def _fit_again(self, votes: Comparisons) -> Fitted:
        """Fit other votes by the same estimator with the same choices."""
        again: ScoreEstimator = clone(self).set_params(**self.fitted_.chosen).fit(votes)
        return again.fitted_
