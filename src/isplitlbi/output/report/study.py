"""What the page's script works on: users, their rankings along the path, pairs of items.

Conventions
-----------
users      in the order of `users_table`: who is on a list stands first, then who left first
packed     an array as the base64 of its compressed bytes, little-endian, row after row
kept       the times of the path at which everybody's deviation is in the file; the script is
           linear between them
place      where a score or a trait lies in a consensus; the scores come first, in the order of the
           items
natural    deviations are in the file as they add up, in logits or on the scale of thresholds, not
           in units of their terms. What a user's sharpness adds to scores, and what the threshold
           is that its logarithm stands for, the script works out.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isplitlbi.abnormal import KINDS, find_telling_votes
from isplitlbi.data.layout import SHARPNESS, THRESHOLD
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.output.report.people import Cards
from isplitlbi.output.tables import users_table
from isplitlbi.output.words import is_bound, meaning_of_lists
from isplitlbi.path import spread_out
from isplitlbi.selection import ESTIMATES, SCORINGS
from isplitlbi.typing import Floats, Places

__all__ = ["packed", "study_of", "times_shown"]

# What a page holds in memory without effort: beyond it, fewer times and then fewer users.
MOST_VALUES = 2_000_000
MOST_SCORES = 2_000_000  # of the consensus at all times
MOST_SLOTS = 4_000_000
FEWEST_KEPT = 4
MOST_TELLING = 10  # before those on the same pair are put together
STEP = 0.002  # of a score along the path; at the chosen time scores are exact
DIGITS = 5
MOST_IN_MATRIX = 100  # items of the head-to-head matrix: those on top
LARGEST = 2**53 - 1  # a whole number that the script can tell from its neighbours


def packed(raw: bytes) -> str:
    """Compress bytes into a text that the page can unpack."""
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def study_of(model: ScoreEstimator, cards: Cards = ()) -> dict[str, Any]:
    """Return everything, ready for JSON; what users are like as far as there are cards."""
    table = users_table(model)
    if not model.has_users:
        table = table.clear()
    places = {user: place for place, user in enumerate(model.users_.tolist())}
    order = np.array([places[user] for user in table["user"]], dtype=np.intp)
    kinds = list(KINDS)
    return {
        "items": _exact(model.items_.tolist()),
        "kinds": [{"name": kind.name, "colour": kind.colour} for kind in KINDS.values()],
        "users": {
            **{
                name: [_rounded(value) for value in table[name]]
                for name in table.columns
                if name not in ("user", "entry_time", "kind")
            },
            "user": _exact(table["user"].to_list()),
            # Not rounded: the script compares it with the times of the path.
            "entry_time": table["entry_time"].to_list(),
            "kind": [-1 if kind is None else kinds.index(kind) for kind in table["kind"]],
            "is_bound": [p is not None and is_bound(p) for p in table["p_value"]],
            **_ties(model, order),
        },
        "list_words": meaning_of_lists(model.nouns),
        "nouns": asdict(model.nouns),
        "consensus_tie_share": _consensus_tie_share(model),
        "words": packed(json.dumps(_words(model, order, cards)).encode()),
        "path": _path(model, order),
        "telling": _telling(model, order),
        "curves": _curves(model),
        "pairs": _pairs(model),
    }


class _Along(NamedTuple):
    """Consensus and deviations at one time or at many."""

    times: list[float]
    chosen: int
    consensus: Floats  # (n_times, width)
    deviation: Floats  # (n_times, n_slots)

    @classmethod
    def of(cls, model: ScoreEstimator) -> _Along:
        """Take the path, or all that there is where there is none."""
        path, found, shown = model.path_, model.parameters_, times_shown(model)
        if path is None or model.time_ is None:
            return cls([0.0], 0, found.consensus[None], found.deviation[None])
        times = path.times[shown]
        chosen = int(np.searchsorted(times, model.time_))
        if len(shown) == len(path.times):
            return cls(times.tolist(), chosen, path.consensus, path.deviation)
        return cls(times.tolist(), chosen, path.consensus[shown], path.deviation[shown])


def times_shown(model: ScoreEstimator) -> Places:
    """Return the places of the times of the path that the page knows: fewer, of very many items."""
    path = model.path_
    if path is None or model.time_ is None:
        return np.zeros(0, dtype=np.intp)
    n_times, width = path.consensus.shape
    n_shown = int(np.clip(MOST_SCORES // width, min(FEWEST_KEPT, n_times), n_times))
    return spread_out(n_times, n_shown, int(np.searchsorted(path.times, model.time_)))


def _path(model: ScoreEstimator, order: NDArray[np.intp]) -> dict[str, Any]:
    """Return the consensus at every time, and the users' deviations at some."""
    along, (vector, slots) = _Along.of(model), (model.parameters_.vector, model.parameters_.slots)
    n_slots = slots.sizes[order]
    n_detailed = int(np.searchsorted(np.cumsum(n_slots), MOST_SLOTS, side="right"))
    order, n_slots = order[:n_detailed], n_slots[:n_detailed]
    start = np.concatenate([[0], np.cumsum(n_slots)])
    chosen_slots = np.repeat(slots.start[order] - start[:-1], n_slots) + np.arange(start[-1])
    n_times = len(along.times)
    n_kept = int(np.clip(MOST_VALUES // max(int(start[-1]), 1), FEWEST_KEPT, n_times))
    kept = spread_out(n_times, n_kept, along.chosen)
    units = model.parameters_.units[chosen_slots]
    some = np.stack([along.deviation[time][chosen_slots] * units for time in kept])
    step = max(STEP, float(np.abs(some).max(initial=0.0)) / 30_000)
    # Differences from one time to the next are small, and compress well. One that does not fit into
    # 16 bits wraps around, and so does the script's sum, which comes out right.
    in_steps = np.round(some / step).astype(np.int64)
    differences = np.diff(in_steps, axis=0, prepend=0).astype(np.int16)
    return {
        "times": along.times,
        "chosen": along.chosen,
        "width": vector.width,
        "n_items": vector.n_items,
        **_meaning(model),
        "consensus": _packed(along.consensus, "f8"),
        "start": _packed(start, "u4"),
        "coordinate": _packed(slots.coordinate[chosen_slots], "u4"),
        "at_chosen": _packed(along.deviation[along.chosen][chosen_slots] * units, "f4"),
        "kept": kept.tolist(),
        "step": step,
        "differences": _packed(differences, "i2"),
    }


def _meaning(model: ScoreEstimator) -> dict[str, Any]:
    """Return what the numbers of a consensus are, and what else scores and thresholds need."""
    terms, vector = model.terms_, model.parameters_.vector
    reference = terms.reference
    return {
        "threshold": vector.threshold,
        "ties": terms.ties,
        "habits": vector.own_width if vector.has_habits else None,
        "sharpness": None if reference is None else vector.place(SHARPNESS),
        "reference": None if reference is None else _packed(reference, "f8"),
    }


def _words(model: ScoreEstimator, order: NDArray[np.intp], cards: Cards) -> list[list[str]]:
    """Return what every user is like beside the group, as far as there are cards."""
    words = {card.user: card.words for card in cards}
    return [words.get(user, []) for user in model.users_[order].tolist()] if words else []


def _telling(model: ScoreEstimator, order: NDArray[np.intp]) -> dict[str, Any]:
    if not model.has_users:
        return {"start": _packed(np.zeros(1), "u4")}
    # Votes of different weights are the same thing said again.
    votes = model.votes().changed(weight=None)
    found = find_telling_votes(
        votes, model.link_, model.abnormality_.consensus, MOST_TELLING, has_sides=model.has_sides
    )
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    by_place = np.argsort(place[found.user], kind="stable")
    columns = {name: column[by_place] for name, column in found._asdict().items()}
    return {
        "start": _packed(
            np.searchsorted(place[columns.pop("user")], np.arange(len(order) + 1)), "u4"
        ),
        "probability": _packed(columns.pop("probability"), "f4"),
        **{name: _packed(column, "i4") for name, column in columns.items()},
    }


def _curves(model: ScoreEstimator) -> dict[str, Any] | None:
    if model.selection_ is None:
        return None
    chosen = model.selection_.chosen
    known = slice(chosen.n_known)
    times = chosen.times[known].tolist()
    curves: dict[str, Any] = {"times": times, "time": model.selection_.time}
    for scoring in SCORINGS:
        for estimate in ESTIMATES:
            mean = chosen.mean(scoring, estimate)[known]  # type: ignore[arg-type]
            spread = np.nan_to_num(chosen.spread(scoring, estimate)[known])  # type: ignore[arg-type]
            rounded = [[_rounded(value) for value in part.tolist()] for part in (mean, spread)]
            curves[f"{scoring} {estimate}"] = dict(zip(("mean", "spread"), rounded, strict=True))
    return curves


def _pairs(model: ScoreEstimator) -> dict[str, Any]:
    """Return how the items on top fared against each other, in the order of the leaderboard.

    Shares are wins, ties and losses of the first of a pair, the one that stands higher.
    """
    found, items = model.head_to_head(), model.leaderboard().items[:MOST_IN_MATRIX].tolist()
    index = {item: place for place, item in enumerate(model.items_.tolist())}
    place_of = {item: place for place, item in enumerate(items)}
    first, second = (
        np.array([place_of.get(item, -1) for item in each.tolist()], dtype=np.int64)
        for each in (found.item, found.other)
    )
    there = (first >= 0) & (second >= 0)
    is_turned = first > second  # items without a rank stand last
    observed, predicted = (
        np.where(is_turned[:, None], each[:, ::-1], each)[there]
        for each in (found.observed, found.predicted)
    )
    return {
        "items": [index[item] for item in items],
        "first": _packed(np.minimum(first, second)[there], "u4"),
        "second": _packed(np.maximum(first, second)[there], "u4"),
        "votes": _packed(found.votes[there], "f4"),
        "observed": _packed(observed, "f4"),
        "predicted": _packed(predicted, "f4"),
    }


def _ties(model: ScoreEstimator, order: NDArray[np.intp]) -> dict[str, Any]:
    """Return how readily every user calls a tie; nothing where there is none."""
    if not model.terms_.has_ties:
        return {}
    shares = _tie_share(model, model.parameters_.all_of(THRESHOLD)[order])
    return {"tie_share": [_rounded(share) for share in shares.tolist()]}


def _consensus_tie_share(model: ScoreEstimator) -> float | None:
    if model.threshold_ is None:
        return None
    return float(_rounded(float(_tie_share(model, np.array([model.threshold_]))[0])))


def _tie_share(model: ScoreEstimator, threshold: Floats) -> Floats:
    """Return how often somebody of such a threshold would call two equally good items a tie."""
    return np.exp(model.link_.log_probabilities(np.zeros(len(threshold)), threshold)[:, 1])


def _packed(array: NDArray[Any], kind: str) -> dict[str, str]:
    raw = np.ascontiguousarray(array, dtype=f"<{kind}").tobytes()
    return {"type": kind, "bytes": packed(raw)}


def _exact(ids: list[Any]) -> list[Any]:
    """Return ids as the script can hold them: numbers too large for it as text."""
    if any(isinstance(label, int) and abs(label) > LARGEST for label in ids):
        return [str(label) for label in ids]
    return ids


def _rounded(value: Any) -> Any:
    """Return a number with the digits that anybody needs; anything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
