"""Which items the votes tell apart: properties of simultaneous intervals and of groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit
from scipy.stats import studentized_range

from isplitlbi.model import differences
from isplitlbi.model.differences import (
    information,
    n_surely_apart,
    name_groups,
    own_variances,
    quantile_of_largest,
    quantile_of_worst,
    student,
    surely_better,
    weights_of_mean,
)


def drawn_covariance(rng, n_items):
    """Draw a covariance whose errors hang together."""
    root = rng.normal(size=(n_items, n_items)) * rng.lognormal(size=n_items)[:, None]
    return root @ root.T / n_items


def letters_of(name):
    return set(name.split() if name[:1].isdigit() else name)


# --- quantiles -----------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [np.inf, 12.0])
@pytest.mark.parametrize("n_numbers", [1, 10])
def test_the_worst_of_independent_numbers_is_as_far_off_as_their_number_says(n_numbers, freedom):
    found = quantile_of_worst(np.diag(np.arange(1.0, n_numbers + 1.0)), freedom)
    alone = 0.5 * (1.0 + 0.95 ** (1.0 / n_numbers))
    exact = student(freedom, alone)
    # With a common scale, the worst of several is a little nearer than if each had its own.
    assert 0.96 * exact < found < 1.03 * exact


def test_numbers_that_move_together_are_one_number_and_what_is_known_is_none():
    together = np.full((20, 20), 2.0)
    assert quantile_of_worst(together) == pytest.approx(student(np.inf, 0.975), rel=0.03)
    known = np.zeros((3, 3))
    assert quantile_of_worst(known) == 0.0
    known[1, 1] = 1.0
    assert quantile_of_worst(known) == pytest.approx(student(np.inf, 0.975), rel=0.03)


def test_of_very_many_numbers_the_bound_for_independent_ones_is_used():
    n_numbers = differences.MOST_ITEMS_DRAWN + 1
    exact = student(np.inf, 0.5 * (1.0 + 0.95 ** (1.0 / n_numbers)))
    assert quantile_of_worst(np.eye(n_numbers)) == pytest.approx(exact)


@pytest.mark.parametrize(("n_items", "freedom"), [(3, 10.0), (6, 20.0), (10, np.inf)])
def test_of_equal_independent_items_the_quantile_is_that_of_the_studentized_range(n_items, freedom):
    expected = studentized_range.ppf(0.95, n_items, freedom) / np.sqrt(2.0)
    assert quantile_of_largest(np.eye(n_items), freedom) == pytest.approx(expected, rel=0.02)


def test_of_two_items_the_quantile_is_students():
    for freedom in (4.0, np.inf):
        found = quantile_of_largest(np.diag([1.0, 3.0]), freedom)
        assert found == pytest.approx(student(freedom, 0.975), rel=0.05)


@given(st.integers(1, 3000), st.floats(1e-6, 1.0 - 1e-6))
def test_students_quantiles_are_those_of_scipy(freedom, probability):
    expected = pytest.approx(stdtrit(freedom, probability), rel=1e-7, abs=1e-12)
    assert student(float(freedom), probability) == expected


def test_of_very_many_items_the_bound_is_no_smaller_than_the_draws(monkeypatch):
    covariance = drawn_covariance(np.random.default_rng(0), 12)
    drawn = quantile_of_largest(covariance, 30.0)
    monkeypatch.setattr(differences, "MOST_ITEMS_DRAWN", 5)
    assert drawn <= quantile_of_largest(covariance, 30.0) < 1.4 * drawn


def test_what_all_scores_have_in_common_changes_nothing():
    rng = np.random.default_rng(1)
    covariance, estimate = drawn_covariance(rng, 7), 3.0 * rng.normal(size=7)
    moved = covariance + 4.0
    np.testing.assert_allclose(own_variances(moved), own_variances(covariance))
    assert quantile_of_largest(moved) == pytest.approx(quantile_of_largest(covariance), rel=0.02)
    np.testing.assert_array_equal(
        surely_better(estimate + 5.0, covariance), surely_better(estimate, covariance)
    )


def test_all_intervals_hold_at_once_as_often_as_they_say():
    rng = np.random.default_rng(2)
    covariance = drawn_covariance(rng, 6)
    drawn = rng.multivariate_normal(np.zeros(6), covariance, size=400)
    missed = np.mean([surely_better(estimate, covariance).any() for estimate in drawn])
    assert 0.02 < missed < 0.085


def test_an_item_is_never_surely_better_where_nothing_is_known():
    assert not surely_better(np.zeros(4), np.zeros((4, 4))).any()
    assert quantile_of_largest(np.ones((1, 1))) == 0.0


# --- what is known of items ----------------------------------------------------------------


def test_the_variances_of_two_items_add_up_to_that_of_their_difference():
    variance = np.array([1.0, 0.5, 2.0, 9.0])
    np.testing.assert_allclose(own_variances(np.diag(variance) + 0.3), variance)
    np.testing.assert_allclose(own_variances(np.diag([1.0, 3.0])), [2.0, 2.0])


def test_an_item_of_which_little_is_known_has_little_weight():
    known = information(np.diag([0.1, 0.1, 0.1, 50.0]))
    weight = weights_of_mean(known)
    assert weight.sum() == pytest.approx(1.0)
    assert weight[3] < 0.01 * weight[0]
    np.testing.assert_allclose(information(np.diag([0.5, 0.5, 1.0]), 1.0), [1.0, 1.0, 0.0])
    np.testing.assert_allclose(weights_of_mean(np.zeros(4)), 0.25)


# --- groups --------------------------------------------------------------------------------


@given(n_items=st.integers(1, 9), seed=st.integers(0, 10**6), spread=st.floats(0.1, 10.0))
@settings(max_examples=60, deadline=None)
def test_items_share_a_letter_if_and_only_if_they_are_not_told_apart(n_items, seed, spread):
    rng = np.random.default_rng(seed)
    estimate = np.sort(spread * rng.normal(size=n_items))[::-1]
    reach = np.abs(rng.normal(size=(n_items, n_items)))  # no draws: any relation must do
    better = estimate[:, None] - estimate > reach + reach.T
    letters = [letters_of(name) for name in name_groups(better)]
    for i in range(n_items):
        assert letters[i]
        for j in range(n_items):
            assert bool(letters[i] & letters[j]) == (not (better[i, j] or better[j, i]))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_groups_of_random_covariances_are_those_of_their_intervals(seed):
    rng = np.random.default_rng(seed)
    covariance, estimate = drawn_covariance(rng, 8), np.sort(4.0 * rng.normal(size=8))[::-1]
    better = surely_better(estimate, covariance, 12.0)
    letters = [letters_of(name) for name in name_groups(better)]
    for i in range(8):
        for j in range(8):
            assert bool(letters[i] & letters[j]) == (not (better[i, j] or better[j, i]))


def test_no_group_is_one_too_many_and_the_first_is_called_a():
    better = np.triu(np.ones((5, 5), dtype=bool), 2)  # only neighbours are alike
    assert name_groups(better) == ["a", "ab", "bc", "cd", "d"]
    assert name_groups(np.zeros((3, 3), dtype=bool)) == ["a", "a", "a"]


def test_many_groups_have_numbers_with_spaces_between():
    names = name_groups(np.triu(np.ones((30, 30), dtype=bool), 2))
    assert names[:3] == ["1", "1 2", "2 3"]
    assert names[-1] == "29"
    assert name_groups(np.triu(np.ones((26, 26), dtype=bool), 1))[-1] == "z"


# --- very many items -------------------------------------------------------------------------


@pytest.mark.parametrize("n_items", [1, 2, 5, 450])
@pytest.mark.parametrize("pairs_at_once", [1, 1 << 22])
def test_independent_errors_need_no_table_of_all_pairs(n_items, pairs_at_once, monkeypatch):
    monkeypatch.setattr("isplitlbi.model.differences.PAIRS_AT_ONCE", pairs_at_once)
    rng = np.random.default_rng(n_items)
    estimate, variance = 3.0 * rng.normal(size=n_items), rng.uniform(1e-3, 0.5, n_items)
    pairs = surely_better(estimate, np.diag(variance), 12.0)
    np.testing.assert_array_equal(surely_better(estimate, variance, 12.0), pairs)
    better, worse = n_surely_apart(estimate, variance, 12.0)
    np.testing.assert_array_equal(better, pairs.sum(axis=0))
    np.testing.assert_array_equal(worse, pairs.sum(axis=1))
    np.testing.assert_allclose(own_variances(variance), own_variances(np.diag(variance)))
