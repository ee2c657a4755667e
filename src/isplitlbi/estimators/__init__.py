"""Estimators: iSplit LBI and the methods it is measured against, under one contract.

`voting` and `base` hold what they share: all that follows from votes, and all from scores. Names
are loaded on first use, because scikit-learn takes its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isplitlbi.lazy import lazily

if TYPE_CHECKING:
    from isplitlbi.estimators.alpha_cut import LEARNERS as LEARNERS
    from isplitlbi.estimators.alpha_cut import AlphaCut as AlphaCut
    from isplitlbi.estimators.base import ScoreEstimator as ScoreEstimator
    from isplitlbi.estimators.isplitlbi import ISplitLBI as ISplitLBI
    from isplitlbi.estimators.lbi import LBI as LBI
    from isplitlbi.estimators.margin_mle import MarginMLE as MarginMLE
    from isplitlbi.estimators.per_user import PerUser as PerUser
    from isplitlbi.estimators.voting import VoteEstimator as VoteEstimator

_HOMES = {
    "AlphaCut": "alpha_cut",
    "ISplitLBI": "isplitlbi",
    "LBI": "lbi",
    "LEARNERS": "alpha_cut",
    "MarginMLE": "margin_mle",
    "PerUser": "per_user",
    "ScoreEstimator": "base",
    "VoteEstimator": "voting",
}

__all__ = [
    "LBI",
    "LEARNERS",
    "AlphaCut",
    "ISplitLBI",
    "MarginMLE",
    "PerUser",
    "ScoreEstimator",
    "VoteEstimator",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
