"""The truth behind simulated votes: who votes by which scores, how sharply, leaning to which side.

The margin of a user's vote on two items is

    slope * (difference of the consensus) + (difference of the user's own taste)
    + common side + own side + sum over features of (common + own effect) * (their difference)

and the threshold of the pair is the user's, times the exponential of both items' tie habits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from isplitlbi.typing import Floats, Indices, Mask, Places

__all__ = ["TrueFeatures", "Truth"]


@dataclass(frozen=True, eq=False)
class TrueFeatures:
    """What features of a vote add to its margin, in logits per unit of the raw difference.

    Parameters
    ----------
    names : tuple of str
        In the order of the columns of the votes.
    effects : array of shape (n_features,)
        What they add for everybody.
    own : array of shape (n_users, n_features)
        What each user adds to these effects.
    """

    names: tuple[str, ...]
    effects: Floats
    own: Floats


@dataclass(frozen=True, eq=False)
class Truth:
    """What the votes were drawn from; rows and columns as in ``votes.users``, ``votes.items``.

    Parameters
    ----------
    scores : array of shape (n_items,)
        Consensus scores. Only their differences matter.
    threshold : float
        Consensus tie threshold; 0 where every vote names a winner.
    deviations : array of shape (n_users, n_items)
        What each user adds to the consensus scores, in whichever slope: zero for consensus users,
        unless everybody has a taste. The malicious are put in the same terms where these can say
        it: a reversed user's own scores are minus the consensus, those of a random one are all
        zero. The rows of users who always give one answer are nan, since no scores describe them.
    threshold_deviations : array of shape (n_users,)
        What each user adds to the consensus threshold; nan as above.
    abnormal : array of bool, shape (n_users,)
        Whether the user has a different taste or is malicious. The terms below, and a taste that
        everybody has, do not count.
    kind : tuple of str
        Per user: consensus, different taste, reversed, random, always-left or always-tie.
    sharpness : array of shape (n_users,), optional
        The slope of each user on the consensus scores; 1 by default and for the malicious.
    side : array of shape (n_users,), optional
        What each user adds to the common side; positive is left. 0 by default; nan as above.
    common_side : float, default 0
        What every margin has more for being on the left.
    habits : array of shape (n_items,), optional
        Tie habit of each item, on a log scale; 0 by default. Random users do not know it.
    features : TrueFeatures, optional
        What the features of a vote add; no features by default.
    """

    scores: Floats
    threshold: float
    deviations: Floats
    threshold_deviations: Floats
    abnormal: Mask
    kind: tuple[str, ...]
    # The arrays that are not given are filled in below.
    sharpness: Floats = field(default=None, kw_only=True)  # type: ignore[arg-type]
    side: Floats = field(default=None, kw_only=True)  # type: ignore[arg-type]
    common_side: float = field(default=0.0, kw_only=True)
    habits: Floats = field(default=None, kw_only=True)  # type: ignore[arg-type]
    features: TrueFeatures = field(default=None, kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Fill in what is the same for everybody."""
        n_users, n_items = self.deviations.shape
        neutral = {
            "sharpness": np.ones(n_users),
            "side": np.zeros(n_users),
            "habits": np.zeros(n_items),
            "features": TrueFeatures((), np.zeros(0), np.zeros((n_users, 0))),
        }
        for name, value in neutral.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def user_scores(self) -> Floats:
        """Return the scores each user votes by, shape (n_users, n_items)."""
        return self.sharpness[:, None] * self.scores + self.deviations

    def user_thresholds(self) -> Floats:
        """Return the tie threshold of each user, shape (n_users,); a pair's depends on its items.

        See `thresholds`.
        """
        return self.threshold + self.threshold_deviations

    def margins(
        self, user: Places, left: Places, right: Places, features: Sequence[Floats] = ()
    ) -> Floats:
        """Return the true margins of votes, given the raw differences of each feature."""
        scores, deviations = self.scores, self.deviations
        margin = self.sharpness[user] * (scores[left] - scores[right])
        margin = margin + deviations[user, left] - deviations[user, right]
        margin = margin + self.common_side + self.side[user]
        effects = self.features.effects + self.features.own
        for place, values in enumerate(features):
            margin = margin + effects[user, place] * values
        return np.asarray(margin)

    def thresholds(self, user: Places, left: Places, right: Places) -> Floats:
        """Return the true thresholds of votes: of the user on this pair."""
        threshold = self.user_thresholds()[user] * np.exp(self.habits[left] + self.habits[right])
        return np.asarray(threshold)

    def of_items(self, items: Indices) -> Truth:
        """Return the truth about some of the items."""
        return replace(
            self, scores=self.scores[items], deviations=self.deviations[:, items],
            habits=self.habits[items],
        )  # fmt: skip
