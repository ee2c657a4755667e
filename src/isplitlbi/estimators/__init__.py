"""The methods that iSplit LBI is measured against, under the same contract."""

from isplitlbi.estimators.alpha_cut import LEARNERS, AlphaCut
from isplitlbi.estimators.margin_mle import MarginMLE
from isplitlbi.estimators.per_user import LBI, PerUser

__all__ = ["LBI", "LEARNERS", "AlphaCut", "MarginMLE", "PerUser"]
