"""Simulated votes, and the paper's protocol on any votes.

`simulate.simulate` draws votes of known truth; `protocol.evaluate` compares methods on any. Names
are loaded on first use: the simulation needs no estimator.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isplitlbi.evaluation.protocol import DEFAULT_METHODS as DEFAULT_METHODS
    from isplitlbi.evaluation.protocol import FAMILIES as FAMILIES
    from isplitlbi.evaluation.protocol import METHODS as METHODS
    from isplitlbi.evaluation.protocol import Evaluation as Evaluation
    from isplitlbi.evaluation.protocol import evaluate as evaluate
    from isplitlbi.evaluation.simulate import Study as Study
    from isplitlbi.evaluation.simulate import Truth as Truth

_HOMES = {
    "DEFAULT_METHODS": "protocol",
    "Evaluation": "protocol",
    "FAMILIES": "protocol",
    "METHODS": "protocol",
    "Study": "simulate",
    "Truth": "simulate",
    "evaluate": "protocol",
}

__all__ = ["DEFAULT_METHODS", "FAMILIES", "METHODS", "Evaluation", "Study", "Truth", "evaluate"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
