"""What a model folder holds of people: their tests, and the leaderboard without some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from isplitlbi.abnormal import Abnormality, Ordinary
from isplitlbi.data.layout import Vector
from isplitlbi.errors import UnreadableModel
from isplitlbi.estimators.leaderboard import Leaderboard
from isplitlbi.files import read_arrays
from isplitlbi.fitting import Fitted
from isplitlbi.model.parameters import Consensus
from isplitlbi.model.terms import Terms
from isplitlbi.typing import Mask

__all__ = ["board_as_arrays", "board_of", "tests_as_arrays", "tests_of"]

_ORDINARY = "ordinary_"  # begins the names of what was ordinary among the users
_OPTIONAL = ("tier", "tie_factor")  # of a leaderboard
_COLUMNS = [  # of a leaderboard; what things are called is a setting, and there are users
    field.name for field in fields(Leaderboard) if field.name not in ("nouns", "is_of_crowd")
]


def tests_as_arrays(found: Abnormality, fingerprint: str) -> dict[str, Any]:
    """Return the tests of the users as plain arrays."""
    names = [field.name for field in fields(Abnormality) if field.name != "ordinary"]
    values = {name: getattr(found, name) for name in names}
    if found.ordinary is not None:
        values |= {_ORDINARY + name: each for name, each in vars(found.ordinary).items()}
    common = {
        "consensus": found.consensus.values,
        "traits": list(found.consensus.vector.traits),
        "has_habits": found.consensus.vector.has_habits,
        "terms": found.consensus.terms.as_dict(),
        "fingerprint": fingerprint,
    }
    return values | common


def tests_of(source: Path, fitted: Fitted) -> Abnormality:
    """Return the tests of the users."""
    values = read_arrays(source / "abnormal.npz")
    known = {name for name in values if name.startswith(_ORDINARY)}
    ordinary = {name.removeprefix(_ORDINARY): values.pop(name) for name in known}
    same_votes = values.pop("fingerprint") == fitted.summary.fingerprint
    has_habits = bool(values.pop("has_habits"))
    vector = Vector(fitted.parameters.n_items, tuple(values.pop("traits")), has_habits)
    terms = Terms.from_dict(values.pop("terms"))
    consensus = Consensus(vector, values.pop("consensus"), terms)
    fdr = float(values.pop("fdr"))
    values.setdefault("n_votes", fitted.summary.votes_per_user)  # older folders do not know it
    lengths = {len(value) for value in values.values()}
    if not same_votes or lengths != {len(fitted.summary.users)}:
        raise UnreadableModel(f"{source}: its files do not belong together; fit the model again.")
    found = None if not ordinary else _ordinary_of(ordinary, source, fitted)
    return Abnormality(fdr=fdr, consensus=consensus, ordinary=found, **values)


def _ordinary_of(values: dict[str, Any], source: Path, fitted: Fitted) -> Ordinary:
    """Return what was ordinary among the users; older folders do not know it."""
    plain: dict[str, Any] = {
        name: float(values[name]) for name in ("noisier", "unit", "duration")
    } | {"n_votes": int(values["n_votes"])}
    found = Ordinary(**values | plain | {"has_sides": bool(values["has_sides"])})
    n_items = fitted.parameters.n_items
    if set(found.covariance.shape) != {n_items + 1} or len(found.of_habits) not in (0, n_items):
        raise UnreadableModel(f"{source}: its files do not belong together; fit the model again.")
    return found


def board_as_arrays(left_out: Mask, board: Leaderboard, fingerprint: str) -> dict[str, Any]:
    """Return a leaderboard without some users, and who these are, as plain arrays."""
    values = {name: getattr(board, name) for name in _COLUMNS if getattr(board, name) is not None}
    values |= {"items": board.items.tolist(), "group": list(board.group)}
    return values | {"left_out": left_out, "fingerprint": fingerprint}


def board_of(source: Path, fitted: Fitted) -> Mapping[bytes, Leaderboard]:
    """Return that leaderboard by who was left out, if it was stored."""
    if not (source / "without.npz").is_file():
        return {}
    values = read_arrays(source / "without.npz")
    same_votes = values.pop("fingerprint") == fitted.summary.fingerprint
    left_out: Mask = values.pop("left_out")
    items, group = values.pop("items"), tuple(values.pop("group"))
    lengths = {len(group), *map(len, values.values())}
    if not same_votes or lengths != {len(items)} or left_out.shape != fitted.summary.users.shape:
        raise UnreadableModel(f"{source}: its files do not belong together; fit the model again.")
    columns: dict[str, Any] = dict.fromkeys(_OPTIONAL) | values
    columns |= {"items": np.array(items, dtype=fitted.summary.items.dtype), "group": group}
    board = Leaderboard(**columns)
    return {left_out.tobytes(): board}
