"""What a model says, as tables: the same rows for the screen, for files and for other programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from isplitlbi.abnormal import Effect
from isplitlbi.estimators.isplitlbi import ISplitLBI

WINNERS = {1: "left", 0: "tie", -1: "right"}


def ranking_table(model: ISplitLBI, user: Any = None) -> pl.DataFrame:
    """Return tier, item and score, best first; for a user also whether the item was compared."""
    ranking = model.ranking(user)
    columns = {"tier": ranking.tier, "item": ranking.items, "score": ranking.scores}
    if user is not None:
        columns["compared"] = ranking.compared
    return pl.DataFrame(columns)


def users_table(model: ISplitLBI, fdr: float | None = None) -> pl.DataFrame:
    """Return every user in order of entry: who left the consensus first stands first.

    Who never left has no entry time and no rank; among those, the furthest from the consensus
    stands first. Kind and explanation are those of abnormal users; where a user has too few votes
    to be called abnormal, the explanation says how many it would take.
    """
    found = model.abnormality(fdr)
    entry, distance = model.entry_times_, model.distance_to_consensus()
    order = np.lexsort([-distance, entry])
    left = np.isfinite(entry[order])
    rank = np.arange(1, len(order) + 1)
    return pl.DataFrame(
        {
            "user": model.users_[order],
            "votes": model.overview_.votes_per_user[order],
            "entry_time": pl.Series(entry[order]).set(pl.Series(~left), None),
            "entry_rank": pl.Series(rank).set(pl.Series(~left), None),
            "distance": distance[order],
            "p_value": pl.Series(found.p_value[order]).fill_nan(None),
            "q_value": pl.Series(found.q_value[order]).fill_nan(None),
            "abnormal": found.flagged[order],
            "kind": pl.Series([found.kind[user] or None for user in order], dtype=pl.String),
            "quality": pl.Series(found.quality[order]).fill_nan(None),
            "explanation": pl.Series(
                [found.explanation[user] or _too_few(found.votes_needed[user]) for user in order],
                dtype=pl.String,
            ),
        }
    )


def _too_few(votes_needed: int) -> str | None:
    if not votes_needed:
        return None
    return f"has too few votes to be called abnormal; it would take about {votes_needed}"


def telling_votes_table(model: ISplitLBI, user: Any, most: int = 10) -> pl.DataFrame:
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


def predictions_table(model: ISplitLBI, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the likeliest outcome of every (user, left, right), and the three probabilities."""
    probabilities = model.predict_proba(pairs)
    words = [WINNERS[outcome] for outcome in model.predict(pairs).tolist()]
    chances = {f"p_{WINNERS[k]}": probabilities[:, place] for place, k in enumerate((-1, 0, 1))}
    return pairs.select("user", "left", "right").with_columns(
        pl.Series("winner", words),
        *(pl.Series(name, chances[name]) for name in ("p_left", "p_tie", "p_right")),
    )


def recommendations_table(
    model: ISplitLBI, user: Any = None, *, same_as: Any = None, better_than: Any = None
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
