"""Individualized partial ranking with ties, by Split LBI.

Votes of many users on pairs of items become a consensus ranking with honest ties, each user's own
ranking, and the list of users who leave the consensus.

What is listed here is public, and so is what the modules list in ``__all__``; the rest may change.

>>> from isplitlbi import Comparisons
>>> Comparisons.from_arrays(user=["ann"], left=["tea"], right=["milk"], outcome=["tie"])
Comparisons: 1 vote (100.0 % ties) by 1 user on 2 items
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isplitlbi.lazy import lazily

if TYPE_CHECKING:
    from isplitlbi.data.comparisons import Comparisons as Comparisons
    from isplitlbi.diagnostics.agreement import agreement as agreement
    from isplitlbi.errors import InvalidVotes as InvalidVotes
    from isplitlbi.errors import ISplitLBIError as ISplitLBIError
    from isplitlbi.estimators.alpha_cut import AlphaCut as AlphaCut
    from isplitlbi.estimators.comparing import compare as compare
    from isplitlbi.estimators.isplitlbi import ISplitLBI as ISplitLBI
    from isplitlbi.estimators.lbi import LBI as LBI
    from isplitlbi.estimators.margin_mle import MarginMLE as MarginMLE
    from isplitlbi.estimators.per_user import PerUser as PerUser
    from isplitlbi.evaluation.protocol import evaluate as evaluate
    from isplitlbi.evaluation.simulate import simulate as simulate
    from isplitlbi.path import RegularizationPath as RegularizationPath
    from isplitlbi.storage import load_model as load_model
    from isplitlbi.storage import save_model as save_model

__version__ = "0.1.0"

# Loaded on first use: importing scikit-learn or polars takes longer than answering --help.
_HOMES = {
    "AlphaCut": "estimators.alpha_cut",
    "Comparisons": "data.comparisons",
    "ISplitLBI": "estimators.isplitlbi",
    "ISplitLBIError": "errors",
    "InvalidVotes": "errors",
    "LBI": "estimators.lbi",
    "MarginMLE": "estimators.margin_mle",
    "PerUser": "estimators.per_user",
    "RegularizationPath": "path",
    "agreement": "diagnostics.agreement",
    "compare": "estimators.comparing",
    "evaluate": "evaluation.protocol",
    "load_model": "storage",
    "save_model": "storage",
    "simulate": "evaluation.simulate",
}

__all__ = [
    "LBI",
    "AlphaCut",
    "Comparisons",
    "ISplitLBI",
    "ISplitLBIError",
    "InvalidVotes",
    "MarginMLE",
    "PerUser",
    "RegularizationPath",
    "agreement",
    "compare",
    "evaluate",
    "load_model",
    "save_model",
    "simulate",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
