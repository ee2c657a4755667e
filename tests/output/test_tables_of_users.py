"""What a model says of its users, as tables."""

import polars as pl
import pytest
from numpy.testing import assert_array_equal

from crowds import EFFECT_COLUMNS, QUICK, USER_COLUMNS, crowd_model
from isplitlbi import ISplitLBI
from isplitlbi.output.tables import as_polars, users_table


@pytest.fixture(scope="module")
def model():
    return crowd_model()


@pytest.fixture(scope="module")
def place(model):
    return {user: place for place, user in enumerate(model.users_)}


def test_the_table_of_users_says_what_was_found(model, place):
    found, table = model.abnormality_, users_table(model)
    assert table.columns == USER_COLUMNS
    assert sorted(table["user"]) == model.users_.tolist()
    order = [place[user] for user in table["user"]]
    for name in (
        "p_value", "q_value", "p_unreliable", "q_unreliable", "effect", "effect_low", "effect_high",
        "quality",
    ):  # fmt: skip
        assert_array_equal(table[name].to_numpy(), getattr(found, name)[order])
    assert table["list"].to_list() == [found.list[user] or None for user in order]
    assert_array_equal(table["abnormal"].to_numpy(), found.flagged[order])
    assert table["kind"].to_list() == [found.kind[user] or None for user in order]
    assert users_table(model, fdr=1e-9)["abnormal"].sum() == 0


def test_the_unreliable_come_first_then_the_different_each_by_effect(model):
    table = users_table(model)
    lists = table["list"].to_list()
    n_unreliable, n_different = (lists.count(name) for name in ("unreliable", "different"))
    n_others = len(lists) - n_unreliable - n_different
    assert min(n_unreliable, n_different, n_others) > 1
    assert lists == (
        ["unreliable"] * n_unreliable + ["different"] * n_different + [None] * n_others
    )
    assert table["abnormal"].to_list() == [name is not None for name in lists]
    for part in (table[:n_unreliable], table[n_unreliable : n_unreliable + n_different]):
        assert part["effect"].is_sorted(descending=True)
    assert table[-n_others:]["entry_rank"].drop_nulls().is_sorted()


def test_the_table_explains_who_is_abnormal_and_who_has_too_few_votes(model, place):
    found, table = model.abnormality_, users_table(model)
    for user, abnormal, said in table.select("user", "abnormal", "explanation").iter_rows():
        needed = found.votes_needed[place[user]]
        if abnormal:
            assert said == found.explanation[place[user]]
        elif needed:
            assert said == (
                f"has too few votes to be called abnormal; it would take about {needed}"
            )
        else:
            assert said is None
    assert table.filter(pl.col("explanation").str.contains("too few"))["user"].sort().to_list() == [
        "newcomer-1", "newcomer-2",
    ]  # fmt: skip


def test_a_user_without_votes_has_empty_cells(model, place):
    votes = model.votes()
    part = votes.subset(votes.user != place["reversed"])
    table = users_table(ISplitLBI(**QUICK).fit(part)).filter(pl.col("user") == "reversed")
    (row,) = table.to_dicts()
    assert (row["votes"], row["abnormal"]) == (0, False)
    for name in ("p_value", "q_value", "p_unreliable", "quality", "kind", "explanation", "list"):
        assert row[name] is None


def test_the_table_of_the_effect_has_a_row_per_item_best_first(model):
    effect = model.effect_of_leaving_out()
    table = as_polars(effect)
    assert table.columns == EFFECT_COLUMNS
    assert table["item"].to_list() == effect.items.tolist()
    assert set(table["item"]) == set(model.items_)
    assert table["rank"].to_list() == list(range(1, 9))
    assert_array_equal(table["rank_without"].to_numpy(), effect.rank_without)
    assert_array_equal(table["score_without"].to_numpy(), effect.score_without)
    assert_array_equal(table["tier_without"].to_numpy(), effect.tier_without)
