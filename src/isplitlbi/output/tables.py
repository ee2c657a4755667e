"""What a model says, as tables: the same rows for the screen, for files and for other programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isplitlbi.abnormal import LISTS, Abnormality
from isplitlbi.data.outcomes import WINNERS
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.cards import Measured, UserCard
from isplitlbi.estimators.leaderboard import HeadToHead, Leaderboard
from isplitlbi.lazy import pl
from isplitlbi.model.terms import Feature, Side
from isplitlbi.selection import SCORINGS

if TYPE_CHECKING:
    from isplitlbi.abnormal import Effect

__all__ = [
    "effect_table",
    "head_to_head_table",
    "leaderboard_table",
    "main_figures",
    "predictions_table",
    "ranking_table",
    "recommendations_table",
    "telling_votes_table",
    "users_table",
    "with_cards",
]


def main_figures(model: ScoreEstimator) -> dict[str, Any]:
    """Return the main figures of a fitted model: one number for each, by name."""
    votes = model.summary_
    found: dict[str, Any] = {
        "votes": votes.n_votes,
        "users": len(votes.users),
        "items": len(votes.items),
        "ties": votes.tie_share,
        "threshold": model.threshold_,
        "side": model.side_,
        "left_consensus": len(model.left_consensus_),
    }
    if hasattr(model, "abnormality_"):
        found["abnormal_users"] = len(model.abnormal_users_)
        found["unreliable_users"] = len(model.unreliable_users_)
        found["different_users"] = len(model.different_users_)
    for name, spread in model.spreads_.items():
        found[f"spread_{name}"] = spread
    if model.path_ is not None:
        found["steps"] = model.path_.n_steps
    if model.selection_ is not None:
        curves = model.selection_.chosen
        best = int(np.argmin(np.abs(curves.times - model.selection_.time)))
        found["held_out"] = {
            scoring: float(curves.mean(scoring)[best])  # type: ignore[arg-type]
            for scoring in SCORINGS
        }
    return found


def leaderboard_table(board: Leaderboard) -> pl.DataFrame:
    """Return the consensus item by item, best first, with intervals, votes, tiers and groups.

    Items with too few votes to be ranked come last: their ranks, tier and group are empty. Tiers
    are empty where there are no ties. Where items have tie habits, there is also by which factor
    each changes the threshold of its pairs.
    """
    nothing = [None] * len(board)
    columns = {
        "rank": _or_empty(board.rank),
        "rank_low": _or_empty(board.rank_low),
        "rank_high": _or_empty(board.rank_high),
        "item": pl.Series(board.items),
        "score": pl.Series(board.score),
        "low": pl.Series(board.low),
        "high": pl.Series(board.high),
        "votes": pl.Series(board.votes),
        "wins": pl.Series(board.wins),
        "ties": pl.Series(board.ties),
        "losses": pl.Series(board.losses),
        "tier": pl.Series(nothing, dtype=pl.Int64) if board.tier is None else _or_empty(board.tier),
        "group": pl.Series([group or None for group in board.group], dtype=pl.String),
    }
    if board.tie_factor is not None:
        columns["tie_factor"] = pl.Series(board.tie_factor)
    return pl.DataFrame(columns)


def _or_empty(numbers: NDArray[Any]) -> pl.Series:
    """Return numbers from 1 on; zeros, which stand for none, are empty."""
    return pl.Series([int(number) or None for number in numbers], dtype=pl.Int64)


def head_to_head_table(pairs: HeadToHead) -> pl.DataFrame:
    """Return every pair that was compared: shares of votes, observed and predicted."""
    shares = {
        f"{before}{name}": values[:, place]
        for before, values in (("", pairs.observed), ("predicted_", pairs.predicted))
        for place, name in enumerate(("wins", "ties", "losses"))
    }
    return pl.DataFrame({"item": pairs.item, "other": pairs.other, "votes": pairs.votes, **shares})


def ranking_table(model: ScoreEstimator, user: Any = None) -> pl.DataFrame:
    """Return tier, item and score, best first; tiers are empty where there are no ties.

    For a user there are also the intervals of the scores beside the mean of all items, whether the
    score differs from the consensus by more than chance, and whether the item was compared; the
    first three are empty where the votes are elsewhere. Where items have tie habits, there is by
    which factor each changes the threshold of its pairs.
    """
    ranking = model.ranking(user)
    tier = [None] * len(ranking) if ranking.tier is None else ranking.tier.tolist()
    columns = {
        "tier": pl.Series(tier, dtype=pl.Int64),
        "item": ranking.items,
        "score": ranking.scores,
    }
    if user is not None:
        columns |= _own_scores(model, user)
        columns["compared"] = ranking.compared
    if model.terms_.has_habits:
        columns["tie_factor"] = ranking.habits
    return pl.DataFrame(columns)


def _own_scores(model: ScoreEstimator, user: Any) -> dict[str, pl.Series]:
    """Return what is known of a user's scores, in the order of the user's ranking."""
    kinds = {"low": pl.Float64, "high": pl.Float64, "differs": pl.Boolean}
    if model.user_index(user) < 0 or not model.has_votes():
        nothing = [None] * len(model.items_)
        return {name: pl.Series(nothing, dtype=kind) for name, kind in kinds.items()}
    found = model.own_scores(user)
    order = np.argsort(-found.score, kind="stable")
    return {name: pl.Series(getattr(found, name)[order]) for name in kinds}


def users_table(model: ScoreEstimator, fdr: float | None = None) -> pl.DataFrame:
    """Return every user: the unreliable first, then the different, then the others.

    Those on a list stand in order of their effect, the largest first; the others in order of entry.
    Who never left the consensus has no entry time and no rank; among those, the furthest from the
    consensus stands first. List, kind and explanation are those of abnormal users; where a user has
    too few votes to be called abnormal, the explanation says how many it would take. Where users
    were not tested, all that comes from the tests is empty.

    Parameters
    ----------
    fdr
        False discovery rate, where it is not to be the model's own; users are tested at it.
    """
    found = model.test_users(fdr) if fdr is not None else getattr(model, "abnormality_", None)
    entry, distance = model.entry_times_, model.distance_to_consensus()
    by_entry = np.lexsort([-distance, entry])
    rank = np.empty(len(by_entry), dtype=np.int64)
    rank[by_entry] = np.arange(1, len(by_entry) + 1)
    order = by_entry if found is None else _by_list(found, rank)
    left = np.isfinite(entry[order])
    return pl.DataFrame(
        {
            "user": model.users_[order],
            "votes": model.summary_.votes_per_user[order],
            "entry_time": pl.Series(entry[order]).set(pl.Series(~left), None),
            "entry_rank": pl.Series(rank[order]).set(pl.Series(~left), None),
            "distance": distance[order],
            **_tests(found, order),
        }
    )


def _by_list(found: Abnormality, rank: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return users list by list, each by effect; who is on none in order of entry."""
    places = np.array([LISTS.index(name) if name else len(LISTS) for name in found.list])
    effect = np.where(found.flagged, found.effect, 0.0)
    return np.lexsort((rank, -effect, places))


def with_cards(table: pl.DataFrame, model: ScoreEstimator) -> pl.DataFrame:
    """Return a table of users with what each is like beside the group, and 95 % intervals.

    Sharpness is a slope on the consensus, 1 for the group; the tie factor is that on the group's
    threshold. Columns are those of the terms that the model has; one of the paper has none.
    """
    if model.terms_.ties == "bounded" or not model.has_votes():
        return table
    cards = {card.user: card for card in model.user_cards()}  # of those who have voted
    of_rows = [cards.get(user) for user in table["user"]]
    terms = model.terms_
    measures: dict[str, Callable[[UserCard], Measured | None]] = {}
    if terms.has_sharpness:
        measures["sharpness"] = lambda card: card.slope
    if Side.name in terms.names:
        measures["side"] = lambda card: card.side
    if terms.has_ties:
        measures["tie_factor"] = lambda card: card.tie_factor
    for term in terms.all:
        if isinstance(term, Feature):
            measures[f"feature_{term.name}"] = partial(_of_feature, term.name)
    found = []
    for name, measure in measures.items():
        values = [None if card is None else measure(card) for card in of_rows]
        found += [
            pl.Series(f"{name}{ending}", [each and each[part] for each in values], pl.Float64)
            for part, ending in enumerate(("", "_low", "_high"))
        ]
    taste = [None if card is None else card.taste for card in of_rows]
    return table.with_columns(*found, pl.Series("taste", taste, pl.Float64))


def _of_feature(name: str, card: UserCard) -> Measured | None:
    return card.features.get(name)


_NUMBERS = (
    "p_value", "q_value", "p_unreliable", "q_unreliable", "effect", "effect_low", "effect_high",
    "quality",
)  # fmt: skip


def _types_of_tests() -> dict[str, Any]:
    """Return what the tests say of users, in the order of columns, and of which type it is."""
    return {
        "p_value": pl.Float64, "q_value": pl.Float64, "abnormal": pl.Boolean, "kind": pl.String,
        "quality": pl.Float64, "explanation": pl.String, "list": pl.String, "effect": pl.Float64,
        "effect_low": pl.Float64, "effect_high": pl.Float64, "p_unreliable": pl.Float64,
        "q_unreliable": pl.Float64,
    }  # fmt: skip


def _tests(found: Abnormality | None, order: NDArray[np.intp]) -> dict[str, pl.Series]:
    """Return what the tests say of users, in this order; nothing where there were none."""
    types = _types_of_tests()
    if found is None:
        return {name: pl.Series([None] * len(order), dtype=kind) for name, kind in types.items()}
    explained = [
        said or _too_few(needed)
        for said, needed in zip(found.explanation, found.votes_needed, strict=True)
    ]
    values: dict[str, Any] = {name: getattr(found, name)[order] for name in _NUMBERS}
    values["abnormal"] = found.flagged[order]
    for name, texts in (("list", found.list), ("kind", found.kind), ("explanation", explained)):
        values[name] = [texts[user] or None for user in order]
    columns = {name: pl.Series(values[name], dtype=kind) for name, kind in types.items()}
    return columns | {name: columns[name].fill_nan(None) for name in _NUMBERS}


def _too_few(votes_needed: int) -> str | None:
    if not votes_needed:
        return None
    return f"has too few votes to be called abnormal; it would take about {votes_needed}"


def telling_votes_table(model: ScoreEstimator, user: Any, most: int = 10) -> pl.DataFrame:
    """Return the votes of a user that the consensus least expected, the least likely first."""
    rows = [
        {
            "left": vote.left,
            "right": vote.right,
            "winner": WINNERS[vote.outcome],
            "times": vote.times,
            "probability": vote.probability,
        }
        for vote in model.telling_votes(user, most)
    ]
    return pl.DataFrame(rows)


def effect_table(effect: Effect) -> pl.DataFrame:
    """Return every item with its rank, score and tier, with and without the users left out."""
    return pl.DataFrame(
        {
            "item": effect.items,
            "rank": effect.rank_with,
            "rank_low": effect.rank_low,
            "rank_high": effect.rank_high,
            "rank_without": effect.rank_without,
            "score": effect.score_with,
            "score_without": effect.score_without,
            "tier": effect.tier_with,
            "tier_without": effect.tier_without,
        }
    )


def predictions_table(model: ScoreEstimator, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the likeliest outcome of every (user, left, right), and the probability of each.

    Pairs may have columns of the model's features; both sides are alike otherwise. Without ties
    there is no probability of one.
    """
    probabilities = model.predict_proba(pairs)
    words = [WINNERS[outcome] for outcome in model.predict_outcomes(pairs).tolist()]
    outcomes = model.outcome_labels_.outcomes
    chances = {WINNERS[k]: probabilities[:, place] for place, k in enumerate(outcomes)}
    return pairs.select("user", "left", "right").with_columns(
        pl.Series("winner", words),
        *(pl.Series(f"p_{k}", chances[k]) for k in ("left", "tie", "right") if k in chances),
    )


def recommendations_table(
    model: ScoreEstimator, user: Any = None, *, same_as: Any = None, better_than: Any = None
) -> pl.DataFrame:
    """Return the items recommended in place of one, nearest first, and by how much they differ."""
    items = model.recommend(user, same_as=same_as, better_than=better_than)
    scores = dict(zip(model.items_.tolist(), model.scores(user).tolist(), strict=True))
    of_item = scores[same_as if better_than is None else better_than]
    return pl.DataFrame(
        {
            "item": pl.Series(items, dtype=pl.Series(model.items_).dtype),
            "score": pl.Series([scores[item] for item in items], dtype=pl.Float64),
            "difference": pl.Series([scores[item] - of_item for item in items], dtype=pl.Float64),
        }
    )
