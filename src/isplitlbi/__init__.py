"""Individualized partial ranking with ties, by Split LBI.

Votes of many users on pairs of items become a consensus ranking with honest ties, each user's own
ranking, and the list of users who leave the consensus.

>>> from isplitlbi import Comparisons
>>> Comparisons.from_arrays(user=["ann"], left=["tea"], right=["milk"], outcome=["tie"])
Comparisons: 1 votes (100.0 % ties) by 1 users on 2 items
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isplitlbi.data.comparisons import Comparisons as Comparisons
    from isplitlbi.errors import InvalidVotes as InvalidVotes
    from isplitlbi.estimators.isplitlbi import ISplitLBI as ISplitLBI
    from isplitlbi.path import RegularizationPath as RegularizationPath

__version__ = "0.1.0"

# Loaded on first use: importing scikit-learn or polars takes longer than answering --help.
_HOMES = {
    "Comparisons": "data.comparisons",
    "InvalidVotes": "errors",
    "ISplitLBI": "estimators.isplitlbi",
    "RegularizationPath": "path",
}

__all__ = ["Comparisons", "ISplitLBI", "InvalidVotes", "RegularizationPath"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
