"""Simulated votes, and the paper's protocol on any votes.

`simulate.simulate` draws votes of known truth; `protocol.evaluate` compares methods on any. Names
are loaded on first use: the simulation needs no estimator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isplitlbi.lazy import lazily

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

__getattr__, __dir__ = lazily(__name__, _HOMES)
