"""Tables: the same rows for the screen, for files and for other programs."""

import numpy as np
import polars as pl
import pytest

from isplitlbi import ISplitLBI
from isplitlbi.errors import InvalidVotes
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.tables import (
    as_polars,
    main_figures,
    predictions_table,
    ranking_table,
    users_table,
    with_cards,
)

VOTES = simulate(n_users=8, n_items=5, votes_per_user=(20, 30), random_state=3).votes


@pytest.fixture(scope="module")
def model():
    return ISplitLBI(kappa=5.0, n_folds=2, times=np.geomspace(0.05, 1.5, 10)).fit(VOTES)


def test_the_ranking_of_a_user_says_what_was_compared(model):
    assert ranking_table(model).columns == ["tier", "item", "score", "tie_factor"]
    own = ranking_table(model, model.users_[0])
    assert own.columns == [
        "tier", "item", "score", "low", "high", "differs", "compared", "tie_factor",
    ]  # fmt: skip
    assert own["score"].is_sorted(descending=True)
    assert (own["low"] < own["score"]).all() and (own["score"] < own["high"]).all()
    with pytest.raises(InvalidVotes, match="the nearest is"):
        ranking_table(model, "stranger")
    assert own["compared"].dtype == pl.Boolean


def test_the_ranking_of_the_papers_model_has_the_columns_it_had(papers):
    assert ranking_table(papers).columns == ["tier", "item", "score"]


def test_the_table_of_the_leaderboard_is_the_leaderboard(model, papers, forced):
    board = model.leaderboard()
    table = as_polars(board)
    assert table.columns[-2:] == ["group", "tie_factor"]
    assert as_polars(papers.leaderboard()).columns == table.columns[:-1]
    assert table["item"].to_list() == model.ranking().items.tolist()
    for name in ("rank", "rank_low", "rank_high", "score", "low", "high", "votes", "tier"):
        assert table[name].to_list() == getattr(board, name).tolist()
    no_tiers = as_polars(forced.leaderboard())
    assert no_tiers["tier"].null_count() == len(no_tiers) and no_tiers["ties"].sum() == 0


def test_the_table_of_pairs_has_shares_that_add_up(model):
    table = as_polars(model.head_to_head())
    assert table["votes"].sum() == len(VOTES)
    for before in ("", "predicted_"):
        shares = table.select(f"{before}{name}" for name in ("wins", "ties", "losses"))
        np.testing.assert_allclose(shares.sum_horizontal(), 1.0)


def test_without_ties_tiers_are_empty_and_no_tie_is_predicted(forced):
    table = ranking_table(forced)
    assert table.columns == ["tier", "item", "score"]
    assert table["tier"].null_count() == len(table) and table["tier"].dtype == pl.Int64
    pairs = pl.DataFrame({"user": ["u"], "left": forced.items_[:1], "right": forced.items_[1:2]})
    predicted = predictions_table(forced, pairs)
    assert predicted.columns == ["user", "left", "right", "winner", "p_left", "p_right"]
    assert predicted["winner"][0] in ("left", "right")
    assert main_figures(forced)["threshold"] is None


def test_predictions_use_the_features_of_pairs(featured):
    left, right = featured.items_[:2]
    pairs = pl.DataFrame({"user": ["u"] * 2, "left": [left] * 2, "right": [right] * 2})
    alike = predictions_table(featured, pairs)
    longer = predictions_table(featured, pairs.with_columns(length=pl.Series([2.0, 0.0])))
    assert longer["p_left"][0] > alike["p_left"][0]
    assert longer.row(1) == alike.row(1)
    sides = pairs.with_columns(length_left=pl.Series([3.0, 1.0]), length_right=pl.lit(1.0))
    assert predictions_table(featured, sides).equals(longer)


def test_the_cards_of_users_stand_beside_what_was_known_of_them(featured, forced, papers):
    table = users_table(featured)
    more = with_cards(table, featured)
    assert more.columns[: len(table.columns)] == table.columns
    three = [f"{name}{end}" for name in ("sharpness", "side", "tie_factor", "feature_length")
             for end in ("", "_low", "_high")]  # fmt: skip
    assert more.columns[len(table.columns) :] == [*three, "taste"]
    card = featured.user_card(table["user"][3])
    found = more.row(3, named=True)
    assert (found["side"], found["side_low"], found["side_high"]) == card.side
    assert (found["sharpness"], found["taste"]) == (card.slope.value, card.taste)
    assert "tie_factor" not in with_cards(users_table(forced), forced).columns
    assert with_cards(users_table(papers), papers).equals(users_table(papers))


def test_the_main_figures_say_how_much_people_differ(featured):
    figures = main_figures(featured)
    assert figures["side"] == featured.side_
    for name, spread in featured.spreads_.items():
        assert figures[f"spread_{name}"] == spread


def test_users_on_no_list_stand_in_order_of_entry_and_who_stayed_has_none():
    settings = {"kappa": 5.0, "times": [0.01, 0.4], "time": 0.4}
    tested = users_table(ISplitLBI(**settings).fit(VOTES))
    for part in tested.partition_by("abnormal"):
        if not part["abnormal"][0]:
            assert part["entry_rank"].drop_nulls().is_sorted()
    stayed = ISplitLBI(**settings, with_tests=False).fit(VOTES)
    table = users_table(stayed)
    ranks = dict(tested.select("user", "entry_rank").iter_rows())
    assert dict(table.select("user", "entry_rank").iter_rows()) == ranks
    out = int(np.isfinite(stayed.entry_times_).sum())
    assert 0 < out < len(table)
    assert table["entry_time"].null_count() == table["entry_rank"].null_count() == len(table) - out
    assert table["entry_time"][:out].is_sorted()
    assert table["entry_rank"][:out].to_list() == list(range(1, out + 1))


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
    table = as_polars(model.recommend(better_than=worst))
    assert table["item"].to_list() == model.recommend(better_than=worst)
    assert (table["difference"] > 0).all()
    best = model.ranking().items[0]
    assert len(as_polars(model.recommend(better_than=best))) == 0


def test_a_table_at_another_rate_flags_others_and_leaves_the_model_alone(model):
    own = model.abnormality_
    assert not users_table(model, fdr=1e-9)["abnormal"].any()
    assert model.abnormality_ is own
    assert users_table(model)["abnormal"].sum() == len(model.abnormal_users_)


def test_the_main_figures_are_those_of_the_model(model):
    figures = main_figures(model)
    assert figures["votes"] == len(VOTES)
    assert figures["abnormal_users"] == len(model.abnormal_users_)
    assert figures["unreliable_users"] == len(model.unreliable_users_)
    assert figures["different_users"] == len(model.different_users_)
    assert figures["steps"] == model.path_.n_steps
    assert figures["held_out"]["log_loss"] == model.selection_.chosen.mean("log_loss").min()
