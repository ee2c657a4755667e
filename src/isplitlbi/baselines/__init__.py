"""The methods that iSplit LBI is measured against, under the same contract."""

from isplitlbi.baselines.alpha_cut import LEARNERS, AlphaCut
from isplitlbi.baselines.common import MarginMLE
from isplitlbi.baselines.individual import LBI, PerUser

__all__ = ["LBI", "LEARNERS", "AlphaCut", "MarginMLE", "PerUser"]
