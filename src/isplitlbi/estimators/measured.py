"""What an estimator knows of its votes, and how surely: leaderboard, intervals, cards of users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.frames import DEFAULT_KIND
from isplitlbi.data.layout import Shown
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Summary
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators.cards import (
    UserCard,
    feature_effects,
    habit_intervals,
    user_cards,
)
from isplitlbi.estimators.certainty import Certainty, Standing
from isplitlbi.estimators.contract import check_is_fitted
from isplitlbi.estimators.crowd import certainty_of
from isplitlbi.estimators.head_to_head import HeadToHead, head_to_head
from isplitlbi.estimators.leaderboard import (
    Counts,
    Leaderboard,
    score_intervals,
)
from isplitlbi.estimators.lists import FeatureEffects, UserCards
from isplitlbi.estimators.predicting import ScorePredictor
from isplitlbi.estimators.standing import Footing, footing_of
from isplitlbi.fitting import Fitted
from isplitlbi.model.terms import Feature
from isplitlbi.typing import Floats

__all__ = ["MeasuredEstimator", "leaderboard_of"]

FEW = 5_000  # numbers of users' own: beside so many, it takes about a second where items stand


class MeasuredEstimator(ScorePredictor):
    """One that has taken over a fit, and says how surely its numbers are known."""

    fitted_: Fitted

    # Found on first use.
    _certainty: Certainty | None
    _standing: Standing | None
    _board: Leaderboard | None

    @property
    def _frame_kind(self) -> str:
        """Of which kind frames of results are: that of the votes."""
        votes = self.fitted_.votes
        return votes.frame_kind if isinstance(votes, Comparisons) else DEFAULT_KIND

    @property
    def has_users(self) -> bool:
        """Whether it is known whose votes they are; otherwise there is the consensus alone."""
        check_is_fitted(self, "fitted_")
        return not self._is_anonymous

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

    # --- the consensus ----------------------------------------------------------------------

    def leaderboard(self) -> Leaderboard:
        """Return the consensus item by item, with intervals of ranks and scores, and groups.

        The order is that of `ranking`. Items with too few votes to be ranked come last. Intervals
        hold for other users who might have voted, too. Of a single user there are no others: the
        intervals are then those of the model's own curvature. Those of an anonymous crowd hold for
        other votes that might have been given.
        """
        check_is_fitted(self, "fitted_")
        if self._board is None:
            board = leaderboard_of(self.votes(), self.fitted_, self.standing())
            self._board = board.framed_as(self._frame_kind)
        if self._board.nouns != self.nouns:  # since then, items are called something else
            board = replace(self._board, nouns=self.nouns)
            self._board = board.framed_as(self._frame_kind)
        return self._board

    def standing(self) -> Standing:
        """Return the best estimate of the scores, with the covariance of its errors.

        Intervals of ranks, scores and differences are made of it. It is found once, and stored
        with the model.
        """
        check_is_fitted(self, "fitted_")
        return self.footing().standing if self._standing is None else self._standing

    def footing(self) -> Footing:
        """Return the same with what every user has to do with it, which is not stored."""
        check_is_fitted(self, "fitted_")
        found = footing_of(self.votes(), self.fitted_)
        if self._standing is None:
            self._standing = found.standing
        return found

    @property
    def stands_already(self) -> bool:
        """Whether `standing` is known, or takes next to no time to find."""
        is_here = isinstance(self.fitted_.votes, Comparisons)
        return self._standing is not None or (is_here and len(self.parameters_.deviation) <= FEW)

    def head_to_head(self) -> HeadToHead:
        """Return every pair that was compared: what the votes say, and what is to be expected.

        That is expected from people like these, whoever they are: by the probabilities that
        `predict_proba` has for somebody unknown.
        """
        votes, anybody = self.votes(), np.full(len(self.votes()), -1)
        shown = Shown(votes.left, votes.right, votes, np.arange(len(votes)))
        expected = self.log_probabilities(anybody, shown)
        found = head_to_head(votes, self.parameters_.common, expected, self.nouns)
        return found.framed_as(self._frame_kind)

    def consensus_intervals(self) -> tuple[Floats, Floats]:
        """Return the intervals of the leaderboard (95 %), in the order of ``items_``."""
        check_is_fitted(self, "fitted_")
        return score_intervals(self.parameters_.common.scores, self.standing())

    def features(self) -> FeatureEffects:
        """Return what features count for in the consensus, with 95 % intervals.

        Intervals hold for other users who might have voted, too. There is nothing to return where
        the model has no features.
        """
        check_is_fitted(self, "fitted_")
        if self.summary_.units is None or not any(
            isinstance(term, Feature) for term in self.terms_.all
        ):
            return FeatureEffects().framed_as(self._frame_kind)
        found = feature_effects(self.certainty(), self.summary_.units)
        return FeatureEffects(found).framed_as(self._frame_kind)

    def habit_intervals(self) -> tuple[Floats, Floats]:
        """Return between what the tie habits of the items lie, as factors, in 95 % of draws."""
        check_is_fitted(self, "fitted_")
        return habit_intervals(self.certainty())

    # --- users ------------------------------------------------------------------------------

    def user_card(self, user: Any) -> UserCard:
        """Say in which ways a user differs from the group, with 95 % intervals and in words."""
        return self._cards([self._voter(user)])[0]

    def user_cards(self) -> UserCards:
        """Write the cards of all users who have voted, in the order of ``users_``."""
        check_is_fitted(self, "fitted_")
        cards = self._cards(np.flatnonzero(self.summary_.votes_per_user).tolist())
        return UserCards(cards).framed_as(self._frame_kind)

    def _cards(self, users: list[int]) -> tuple[UserCard, ...]:
        self.refuse_without_users("no card of a user")
        if self.fitted_.dynamics is None:
            raise InvalidSetting(
                f"there are no cards of users: {type(self).__name__} does not say by how much "
                "users differ. Fit ISplitLBI."
            )
        return user_cards(self.votes(), self.certainty(), users, self.nouns)

    def certainty(self) -> Certainty:
        """Return how surely all that was fitted is known, at the parameters of the fit."""
        check_is_fitted(self, "fitted_")
        if self._certainty is None:
            self._certainty = certainty_of(self.votes(), self.fitted_)
        return self._certainty

    def _voter(self, user: Any) -> int:
        """Return the place of a user; refuse one who is not known, and nobody at all."""
        if user is None:
            raise InvalidSetting("name a user: the consensus has no votes of its own.")
        return self.user_index(user)


def leaderboard_of(votes: Comparisons, fitted: Fitted, standing: Standing) -> Leaderboard:
    """Return the consensus of a fit of these votes, item by item."""
    # Threads would wait for each other longer than these small matrices take.
    with threadpool_limits(1, user_api="blas"):
        common = fitted.parameters.common
        return Leaderboard.of(
            votes.items, common, standing, Counts.of(votes), is_of_crowd=votes.is_anonymous
        )
