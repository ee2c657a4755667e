"""The part of a model folder that holds the cross-validation: curves, and what was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from isplitlbi.model.temperature import Powers
from isplitlbi.selection import ESTIMATES, SCORINGS, Curves, Selection
from isplitlbi.solvers.settings import Dynamics

__all__ = ["selection_as_arrays", "selection_from", "selection_in_words"]

_ONE_RANKING = "one_ranking"


def selection_in_words(selection: Selection) -> dict[str, Any]:
    """Return what is compared and chosen, and by what, in plain values."""
    candidates = selection.candidates
    return {
        "scoring": selection.scoring,
        "rule": selection.rule,
        "estimate": selection.estimate,
        "candidates": [asdict(curves.dynamics) for curves in candidates],
        "chosen": candidates.index(selection.chosen),
    }


def selection_as_arrays(selection: Selection) -> dict[str, Any]:
    """Return all scores by name."""
    arrays: dict[str, Any] = {}
    for number, curves in enumerate(selection.candidates):
        arrays[f"{number}_times"] = curves.times
        arrays[f"{number}_fold_weight"] = curves.fold_weight
        for estimate, scores in curves.scores.items():
            arrays |= {f"{number}_{estimate}_{name}": values for name, values in scores.items()}
        for estimate, powers in curves.powers.items():
            stored = powers._asdict().items()
            arrays |= {f"{number}_{estimate}_power_{name}": values for name, values in stored}
    if selection.one_ranking_by_fold is not None:
        arrays[_ONE_RANKING] = selection.one_ranking_by_fold
    return arrays


def selection_from(
    arrays: Mapping[str, Any], described: Mapping[str, Any], time: float
) -> Selection:
    """Return what both have told of; older folders know less."""
    names = dict.fromkeys((*SCORINGS, described["scoring"]))
    candidates = tuple(
        Curves(
            Dynamics(**dynamics),
            arrays[f"{number}_times"],
            arrays[f"{number}_fold_weight"],
            {
                estimate: {name: arrays[f"{number}_{estimate}_{name}"] for name in names}
                for estimate in ESTIMATES
            },
            {
                estimate: Powers(*(arrays[name] for name in _of_powers(number, estimate)))
                for estimate in ESTIMATES
                if _of_powers(number, estimate)[0] in arrays
            },
        )
        for number, dynamics in enumerate(described["candidates"])
    )
    return Selection(
        candidates, described["scoring"], described["rule"], candidates[described["chosen"]], time,
        described.get("estimate", "dense"),  # the only one in older folders
        arrays.get(_ONE_RANKING),
    )  # fmt: skip


def _of_powers(number: int, estimate: str) -> list[str]:
    return [f"{number}_{estimate}_power_{name}" for name in Powers._fields]
