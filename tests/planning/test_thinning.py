"""Leaving out pairs and items that tell little."""

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from isplitlbi.planning.open_questions import OpenQuestions
from isplitlbi.planning.people import Answers, Person
from isplitlbi.planning.thinning import least_certain, pairs_to_ask

SEEDS = st.integers(0, 10_000)


def information(margin, first, second):
    """Return what one logistic vote without ties tells of its margin."""
    return scipy.special.expit(margin) * scipy.special.expit(-margin)


def some_questions(seed, n_items):
    rng = np.random.default_rng(seed)
    covariance = np.diag(rng.uniform(0.01, 1.0, n_items))
    questions = OpenQuestions(2.0 * rng.normal(size=n_items), covariance)
    return questions, Person.without_own(Answers(questions.estimate, 0.0, information))


# --- pairs ---------------------------------------------------------------------------------


@given(SEEDS, st.integers(2, 12))
def test_few_pairs_are_all_kept(seed, n_items):
    questions, anybody = some_questions(seed, n_items)
    all_pairs = np.triu_indices(n_items, 1)
    for most in (len(all_pairs[0]), 1_000):
        assert_array_equal(pairs_to_ask(questions, anybody, most), all_pairs)


@given(SEEDS, st.integers(4, 20), st.floats(0.05, 0.95))
def test_of_many_pairs_about_as_many_are_kept_as_is_said_and_some_of_every_item(
    seed, n_items, share
):
    questions, anybody = some_questions(seed, n_items)
    most = max(int(share * n_items * (n_items - 1) / 2), 1)
    first, second = pairs_to_ask(questions, anybody, most)
    assert np.all(first < second)
    assert len(np.unique(first * n_items + second)) == len(first)
    assert len(first) <= most + n_items
    assert_array_equal(np.union1d(first, second), np.arange(n_items))


@given(SEEDS, st.integers(5, 20))
def test_the_best_pairs_are_kept_and_the_best_of_every_item(seed, n_items):
    questions, anybody = some_questions(seed, n_items)
    all_pairs = np.triu_indices(n_items, 1)
    gains = anybody.gains(questions, *all_pairs)
    most = len(gains) // 2
    kept = set(
        zip(*(side.tolist() for side in pairs_to_ask(questions, anybody, most)), strict=True)
    )
    best = np.argsort(-gains)[: most // 2]
    assert kept >= {(int(all_pairs[0][row]), int(all_pairs[1][row])) for row in best}
    table = np.full((n_items, n_items), -np.inf)
    table[all_pairs] = gains
    table = np.maximum(table, table.T)
    for item, other in enumerate(np.argmax(table, axis=1).tolist()):
        assert (min(item, other), max(item, other)) in kept


# --- items ---------------------------------------------------------------------------------


@given(SEEDS, st.integers(1, 30), st.integers(1, 30))
def test_as_many_items_are_kept_as_is_said_in_order(seed, n_items, most):
    rng = np.random.default_rng(seed)
    kept = least_certain(rng.normal(size=n_items), rng.uniform(0.1, 1.0, n_items), most)
    assert len(kept) == min(n_items, most)
    assert np.all(np.diff(kept) > 0)
    if most >= n_items:
        assert_array_equal(kept, np.arange(n_items))


def test_items_that_are_close_to_others_are_less_certain_than_those_far_away():
    estimate = np.array([50.0, 0.3, -40.0, 0.0, 30.0, -0.2])
    assert_array_equal(least_certain(estimate, np.full(6, 0.1), 3), [1, 3, 5])


def test_of_items_that_are_equally_close_those_with_few_votes_are_less_certain():
    variance = np.array([0.01, 2.0, 0.01, 0.01, 3.0, 0.01])
    assert_array_equal(least_certain(np.linspace(0.0, 5.0, 6), variance, 2), [1, 4])


@pytest.mark.parametrize("constant", [-100.0, 3.0])
def test_only_differences_of_scores_count(constant):
    rng = np.random.default_rng(0)
    estimate, variance = rng.normal(size=40), rng.uniform(0.1, 1.0, 40)
    assert_array_equal(
        least_certain(estimate + constant, variance, 10), least_certain(estimate, variance, 10)
    )
