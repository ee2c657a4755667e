"""What estimators are given: votes, pairs and settings, checked before they are used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.features import LEFT_AND_RIGHT, Features, differences_of, find_columns
from isplitlbi.data.frames import kind_of
from isplitlbi.data.loading import frame_of
from isplitlbi.data.notes import log_changes
from isplitlbi.data.presets import Preset
from isplitlbi.data.readers import Parts
from isplitlbi.data.recognition import find_pairs, respelled_columns
from isplitlbi.data.several import are_paths
from isplitlbi.data.vocabulary import as_series
from isplitlbi.errors import InvalidSetting, InvalidVotes, Setting
from isplitlbi.runtime.local import available_threads
from isplitlbi.selection import RULES
from isplitlbi.typing import Floats

__all__ = [
    "Pairs",
    "as_given",
    "as_votes",
    "check_choice",
    "check_delta",
    "check_seed",
    "pair_columns",
    "pair_features",
    "threads_of",
]


class Pairs(NamedTuple):
    """Pairs that somebody might vote on, besides their items."""

    features: Features | None


def check_choice(name: str, value: Any, allowed: tuple[str, ...] = RULES) -> None:
    """Refuse a word that is none of those allowed."""
    if value not in allowed:
        raise InvalidSetting(f"{name} {value!r} is not one of {', '.join(allowed)}.")


def check_delta(delta: float) -> None:
    """Refuse a smallest threshold that is none."""
    if not (np.isfinite(delta) and delta > 0):
        raise InvalidSetting(f"delta is {delta}; it must be positive and finite.")


def check_seed(random_state: Any) -> None:
    """Refuse a seed that is not a whole number, nor None."""
    is_number = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if random_state is not None and not (is_number and random_state >= 0):
        raise InvalidSetting(
            f"random_state is {random_state!r}; it must be an integer from 0 on, or None."
        )


def threads_of(n_jobs: int | None) -> int:
    """Return how many threads to use: by default, or with -1, all that there are."""
    if n_jobs is None or n_jobs == -1:
        return available_threads()
    if n_jobs < 1:
        raise InvalidSetting(f"n_jobs is {n_jobs}; it must be at least 1, or -1 for all.")
    return int(n_jobs)


def as_votes(X: Any, y: Any, sample_weight: ArrayLike | None) -> Comparisons:
    """Take votes as they are, read files and frames, or index pairs together with outcomes."""
    is_files = isinstance(X, Parts | str | Path) or (y is None and are_paths(X))
    if is_files or isinstance(X, Comparisons):
        if y is not None or sample_weight is not None:
            raise InvalidVotes("votes already have outcomes and weights: give no y.")
        if isinstance(X, Comparisons):
            return X
        return X.read().votes if isinstance(X, Parts) else Comparisons.read(X)
    if y is None:
        return _votes_in_frame(X, sample_weight)
    user, left, right = pair_columns(X)
    votes = Comparisons.from_arrays(user, left, right, y, weight=sample_weight)
    frame = frame_of(X, "X")
    return votes if frame is None else votes.framed_as(kind_of(frame))


def _votes_in_frame(X: Any, sample_weight: ArrayLike | None) -> Comparisons:
    """Read a frame that has outcomes in it."""
    if frame_of(X, "X") is None:
        raise InvalidVotes(
            "give y, the outcomes (1, 0, -1), or fit on Comparisons or on a frame with outcomes."
        )
    if sample_weight is not None:
        raise InvalidVotes("a frame of votes has its weights in a column weight: give no others.")
    try:
        return Comparisons.from_frame(X, source="X")
    except InvalidVotes as error:
        if any(isinstance(part, Setting) for part in error.args):
            raise InvalidVotes(
                *error.args,
                " Say so to Comparisons.from_frame and fit on what it returns, or give y.",
            ) from None
        raise


def as_given(X: Any, y: Any, sample_weight: ArrayLike | None) -> Comparisons | Parts:
    """Do the same, but leave the files of a folder to whoever reads them in parts."""
    if isinstance(X, str | Path) and Path(X).is_dir():
        X = Parts.of(X)
    return X if isinstance(X, Parts) else as_votes(X, y, sample_weight)


def pair_columns(X: Any) -> tuple[Any | None, Any, Any]:
    """Return the columns user, left, right of a frame in any layout, or the only three.

    Whatever else is in a frame of a known layout is passed over, such as outcomes. Where no column
    of such a frame can be the user, there is none.
    """
    if isinstance(X, str | Path | Parts):
        raise InvalidVotes(
            "X is a file, not pairs; read it first, with isplitlbi.data.readers.read_pairs."
        )
    table = frame_of(X, "X")
    if table is not None:
        known = _layout_of_pairs(table)
        if known is not None:
            log_changes(respelled_columns(*known, {}), "X")
        names = table.columns if known is None else list(known[1].values())
        columns = [table.get_column(name).to_native() for name in names]
        if known is not None and "user" not in known[1]:
            columns = [None, *columns]
        found = ", ".join(map(str, table.columns))
    else:
        array = X if isinstance(X, np.ndarray) else np.array(list(X), dtype=object)
        columns = list(array.T) if array.ndim == 2 else []
        found = f"an array of shape {array.shape}"
    if len(columns) != 3:
        raise InvalidVotes(
            f"X needs the columns user, left, right, or left and right; found {found}. Name them "
            "as in any layout of votes, or give the three alone, in that order."
        )
    return columns[0], columns[1], columns[2]


def _layout_of_pairs(table: Any) -> tuple[Preset, dict[str, str]] | None:
    names = [name for name in table.columns if isinstance(name, str)]
    return find_pairs(names, {}, "X")


def pair_features(X: Any, names: Sequence[str], scale: Floats) -> Floats | None:
    """Return the features of pairs in units of ``scale``, (n_pairs, n_features).

    A feature that X has no columns of is 0, both sides alike; there is nothing to return where X
    has none of them. Columns are those of `Comparisons.from_frame`.
    """
    if isinstance(X, Comparisons):
        n_pairs, found = len(X), {}
        if X.features is not None:
            found = dict(zip(X.features.names, X.features.columns, strict=True))
    else:
        table = frame_of(X, "X")
        if table is None:
            return None
        found, n_pairs = {}, len(table)
        known = _layout_of_pairs(table)
        sides = [LEFT_AND_RIGHT] if known is None else known[0].sides
        for name in names:
            columns = find_columns(name, table.columns, sides, "X")
            if columns is not None:
                series = {
                    role: as_series(table.get_column(column).to_native(), column, "X")
                    for role, column in columns.roles.items()
                }
                found[name] = differences_of(series, columns, "X")
    if not set(names) & set(found):
        return None
    alike = np.zeros(n_pairs)
    return np.column_stack([found.get(name, alike) for name in names]) / scale
