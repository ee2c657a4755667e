"""Tables: the same rows for the screen, for files and for other programs."""

import numpy as np
import polars as pl
import pytest

from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.tables import (
    main_figures,
    predictions_table,
    ranking_table,
    recommendations_table,
    users_table,
)

VOTES = simulate(n_users=8, n_items=5, votes_per_user=(20, 30), random_state=3).votes


@pytest.fixture(scope="module")
def model():
    return ISplitLBI(kappa=5.0, n_folds=2, times=np.geomspace(0.05, 1.5, 10)).fit(VOTES)


def test_the_ranking_of_a_user_says_what_was_compared(model):
    assert ranking_table(model).columns == ["tier", "item", "score"]
    own = ranking_table(model, model.users_[0])
    assert own.columns == ["tier", "item", "score", "compared"]
    assert own["score"].is_sorted(descending=True)
    assert own["compared"].dtype == pl.Boolean


def test_users_stand_in_order_of_entry_and_who_stayed_has_none():
    stayed = ISplitLBI(kappa=5.0, times=[0.01, 0.4], time=0.4).fit(VOTES)
    table = users_table(stayed)
    out = int(np.isfinite(stayed.entry_times_).sum())
    assert 0 < out < len(table)
    assert table["entry_time"].null_count() == table["entry_rank"].null_count() == len(table) - out
    assert table["entry_time"][:out].is_sorted()
    assert table["entry_rank"][:out].to_list() == list(range(1, out + 1))
    assert table.filter(pl.col("abnormal"))["user"].to_list() == stayed.abnormal_users_


def test_predictions_carry_their_probabilities(model):
    pairs = pl.DataFrame(
        {"user": [model.users_[0], "nobody"], "left": [VOTES.items[0]] * 2,
         "right": [VOTES.items[1]] * 2}
    )  # fmt: skip
    table = predictions_table(model, pairs)
    assert table.columns == ["user", "left", "right", "winner", "p_left", "p_tie", "p_right"]
    chances = table.select("p_left", "p_tie", "p_right").to_numpy()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    words = np.array(["left", "tie", "right"])
    assert table["winner"].to_list() == words[chances.argmax(axis=1)].tolist()


def test_recommendations_come_with_their_distance(model):
    worst = model.ranking().items[-1]
    table = recommendations_table(model, better_than=worst)
    assert table["item"].to_list() == model.recommend(better_than=worst)
    assert (table["difference"] > 0).all()
    best = model.ranking().items[0]
    assert len(recommendations_table(model, better_than=best)) == 0


def test_a_table_at_another_rate_flags_others_and_leaves_the_model_alone(model):
    own = model.abnormality_
    assert not users_table(model, fdr=1e-9)["abnormal"].any()
    assert model.abnormality_ is own
    assert users_table(model)["abnormal"].sum() == len(model.abnormal_users_)


def test_the_main_figures_are_those_of_the_model(model):
    figures = main_figures(model)
    assert figures["votes"] == len(VOTES)
    assert figures["abnormal_users"] == len(model.abnormal_users_)
    assert figures["steps"] == model.path_.n_steps
    assert figures["held_out"]["log_loss"] == model.selection_.chosen.mean("log_loss").min()
