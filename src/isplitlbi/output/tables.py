"""What a model says, as tables: the same rows for the screen, for files and for other programs.

Columns are those of the results themselves (``to_frame``); here is what takes more than one result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isplitlbi.data.frames import Tabular
from isplitlbi.data.outcomes import WINNERS
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.cards import own_scores_table
from isplitlbi.lazy import pl
from isplitlbi.selection import SCORINGS, Estimate

__all__ = [
    "as_polars",
    "main_figures",
    "predictions_table",
    "ranking_table",
    "users_table",
    "with_cards",
]


def as_polars(result: Tabular) -> pl.DataFrame:
    """Return the table of a result as files and the command line have it."""
    table: pl.DataFrame = result.to_frame("polars")
    return table


def main_figures(model: ScoreEstimator) -> dict[str, Any]:
    """Return the main figures of a fitted model: one number for each, by name."""
    votes = model.summary_
    of_users = {"users": len(votes.users)} if model.has_users else {}
    found: dict[str, Any] = {
        "votes": votes.n_votes,
        **of_users,
        "items": len(votes.items),
        "ties": votes.tie_share,
        "threshold": model.threshold_,
        "side": model.side_,
    }
    if model.has_users:
        found["left_consensus"] = len(model.left_consensus_)
    if hasattr(model, "abnormality_"):
        found["abnormal_users"] = len(model.abnormal_users_)
        found["unreliable_users"] = len(model.unreliable_users_)
        found["different_users"] = len(model.different_users_)
    for name, spread in model.spreads_.items():
        found[f"spread_{name}"] = spread
    if model.path_ is not None:
        found["steps"] = model.path_.n_steps
    if model.selection_ is not None:
        selection = model.selection_
        curves = selection.chosen
        best = int(np.argmin(np.abs(curves.times - selection.time)))
        found["held_out"] = {
            scoring: float(curves.mean(scoring, selection.estimate)[best])  # type: ignore[arg-type]
            for scoring in SCORINGS
        }
        found["temperature"] = selection.temperature
        found["one_ranking"] = selection.one_ranking
    return found


def ranking_table(model: ScoreEstimator, user: Any = None) -> pl.DataFrame:
    """Return tier, item and score, best first; tiers are empty where there are no ties.

    For a user there are also the intervals of the scores beside the mean of all items, whether the
    score differs from the consensus by more than chance, and whether the item was compared; the
    first three are empty where the votes are elsewhere.
    """
    if user is None:
        return as_polars(model.ranking())
    return own_scores_table(
        model.ranking(user), model.own_scores(user) if model.has_votes() else None
    )


def users_table(model: ScoreEstimator, fdr: float | None = None) -> pl.DataFrame:
    """Return every user, as in the table of ``model.abnormality_``, whether tested or not.

    Where users were not tested, all that comes from the tests is empty.

    Parameters
    ----------
    fdr
        False discovery rate, where it is not to be the model's own; users are tested at it.
    """
    found = model.test_users(fdr) if fdr is not None else getattr(model, "abnormality_", None)
    return model.everybody().table(found)


def with_cards(table: pl.DataFrame, model: ScoreEstimator) -> pl.DataFrame:
    """Return a table of users with what each is like beside the group, and 95 % intervals.

    Columns are those of ``model.user_cards()``; a model of the paper has none.
    """
    if model.terms_.ties == "bounded" or not model.has_votes():
        return table
    cards = as_polars(model.user_cards())  # of those who have voted
    return table.join(cards, on="user", how="left", maintain_order="left")


def predictions_table(
    model: ScoreEstimator, pairs: pl.DataFrame, estimate: Estimate | None = None
) -> pl.DataFrame:
    """Return the likeliest outcome of every (user, left, right), and the probability of each.

    Pairs may have columns of the model's features; both sides are alike otherwise. Without a
    column of users, everybody is an unknown user. Without ties there is no probability of one.
    """
    predicted, probabilities = model.predict_both(pairs, estimate=estimate)
    words = pl.Series("winner", [WINNERS[-1], WINNERS[0], WINNERS[1]]).gather(predicted + 1)
    outcomes = model.outcome_labels_.outcomes
    chances = {WINNERS[k]: probabilities[:, place] for place, k in enumerate(outcomes)}
    return pairs.select(
        name for name in ("user", "left", "right") if name in pairs.columns
    ).with_columns(
        words,
        *(pl.Series(f"p_{k}", chances[k]) for k in ("left", "tie", "right") if k in chances),
    )
