"""How certain an order is, beside orders that are drawn here."""

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from isplitlbi.planning.sureness import expected_tau, how_sure

SEEDS = st.integers(0, 10_000)
N_DRAWS = 4_000


def some_scores(seed, n_items=5):
    rng = np.random.default_rng(seed)
    root = 0.4 * (np.eye(n_items) + 0.4 * rng.normal(size=(n_items, n_items)))
    return rng, rng.normal(size=n_items), root @ root.T


@pytest.mark.parametrize("freedom", [np.inf, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_everything_is_as_often_right_as_in_scores_that_are_drawn(seed, freedom):
    rng, estimate, covariance = some_scores(seed)
    order = np.argsort(-estimate)
    drawn = rng.multivariate_normal(np.zeros(5), covariance, size=N_DRAWS)
    if np.isfinite(freedom):
        drawn = drawn / np.sqrt(rng.chisquare(freedom, size=(N_DRAWS, 1)) / freedom)
    true = (estimate + drawn)[:, order]
    found = how_sure(order, estimate, covariance, freedom, n_places=2, borders=[1, 3, 5])
    right = true[:, :, None] > true[:, None]
    assert found.n_wrong == pytest.approx(np.triu(~right, 1).sum(axis=(1, 2)).mean(), abs=0.08)
    tau = [scipy.stats.kendalltau(scores, np.arange(5, 0, -1)).statistic for scores in true[:1_000]]
    assert found.tau == pytest.approx(np.mean(tau), abs=0.04)
    holds = [np.mean(true[:, :n].min(axis=1) > true[:, n:].max(axis=1)) for n in (1, 2, 3)]
    assert_allclose([found.first, found.top, found.borders[1]], holds, atol=0.04)
    assert found.borders[0] == found.first
    assert found.borders[2] == 1.0  # below the last item there is nothing


def test_an_order_that_is_certain_is_right_and_upside_down_it_is_wrong():
    estimate, covariance = np.array([0.0, 3.0, -3.0, 6.0]), 1e-6 * np.eye(4)
    order = np.argsort(-estimate)
    sure = how_sure(order, estimate, covariance, n_places=2, borders=[1, 2])
    assert sure == (0.0, 1.0, 1.0, 1.0, (1.0, 1.0))
    assert how_sure(order[::-1], estimate, covariance, n_places=2, borders=[3]) == (
        6.0, -1.0, 0.0, 0.0, (0.0,),
    )  # fmt: skip


@pytest.mark.parametrize("n_items", [2, 4, 8])
def test_of_equal_items_each_is_as_likely_the_best(n_items):
    sure = how_sure(np.arange(n_items), np.zeros(n_items), np.eye(n_items), n_places=n_items)
    assert sure.first == pytest.approx(1.0 / n_items, abs=0.03)
    assert sure.tau == pytest.approx(0.0, abs=1e-12)
    assert sure.n_wrong == pytest.approx(n_items * (n_items - 1) / 4)
    assert sure.top == 1.0  # all of them are always among all places


@given(SEEDS, st.integers(2, 6), st.floats(-10.0, 10.0))
def test_only_differences_of_scores_count(seed, n_items, constant):
    _, estimate, covariance = some_scores(seed, n_items)
    found = expected_tau(estimate, covariance)
    assert expected_tau(estimate + constant, covariance + abs(constant)) == pytest.approx(found)
    assert expected_tau(estimate[::-1], covariance[::-1, ::-1]) == pytest.approx(-found)
    assert -1.0 <= found <= 1.0


@given(SEEDS, st.integers(2, 6))
def test_less_error_is_more_certain_for_the_best_order(seed, n_items):
    _, estimate, covariance = some_scores(seed, n_items)
    order = np.argsort(-estimate)
    found = [
        how_sure(order, estimate, share * covariance, n_places=1).tau
        for share in (4.0, 1.0, 0.25, 0.0)
    ]
    assert np.all(np.diff(found) > -1e-12)
    assert found[0] >= 0.0 and found[-1] == pytest.approx(1.0)


def test_a_single_item_is_certain():
    assert how_sure(np.array([0]), np.zeros(1), np.eye(1)) == (0.0, 1.0, 1.0, 1.0, ())
