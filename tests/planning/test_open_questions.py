"""What is open in an order: updates beside plain algebra, and gains beside exact information."""

from itertools import pairwise

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi.planning.open_questions import (
    OpenQuestions,
    chances_to_be_among,
    quadratic,
    ranks_of_draws,
)
from isplitlbi.planning.people import Answers, Person

THRESHOLD = 0.5
PAIRS = np.triu_indices(3, 1)
SEEDS = st.integers(0, 10_000)


def chances(margin):
    """Return how probable the three outcomes of a logistic vote are."""
    wins, loses = (scipy.special.expit(sign * margin - THRESHOLD) for sign in (1.0, -1.0))
    return np.array([wins, np.expm1(2.0 * THRESHOLD) * wins * loses, loses])


def information(margin, first, second):
    """Return what one vote tells of its margin, as Fisher defined it."""
    wins, ties, loses = chances(margin)
    return wins * (1.0 - wins) ** 2 + ties * (wins - loses) ** 2 + loses * (1.0 - loses) ** 2


def a_covariance(rng, n_items, sd=1.0):
    """Draw a covariance of scores, by the mean error of their differences."""
    root = np.eye(n_items) + 0.5 * rng.normal(size=(n_items, n_items))
    found = root @ root.T
    return found * sd**2 / quadratic(found, *np.triu_indices(n_items, 1)).mean()


def gains(estimate, covariance, pairs=PAIRS, importance=None):
    somebody = Person.without_own(Answers(estimate, 0.0, information))
    return somebody.gains(OpenQuestions(estimate, covariance, importance), *pairs)


# --- learning ------------------------------------------------------------------------------


@given(SEEDS, st.integers(2, 6), st.integers(1, 8))
def test_what_is_learned_vote_by_vote_is_what_plain_algebra_gives(seed, n_items, n_votes):
    rng = np.random.default_rng(seed)
    covariance = a_covariance(rng, n_items)
    questions = OpenQuestions(rng.normal(size=n_items), covariance)
    weights, precision = questions.open.copy(), np.linalg.inv(covariance)
    for _ in range(n_votes):
        direction, noise = rng.normal(size=n_items), rng.uniform(0.5, 5.0)
        questions.learn(direction, float(direction @ questions.covariance @ direction + noise))
        precision = precision + np.outer(direction, direction) / noise
    afresh = np.linalg.inv(precision)
    assert_allclose(questions.covariance, afresh, atol=1e-9)
    assert_allclose(questions.told, afresh @ weights @ afresh, atol=1e-9)
    assert_array_equal(questions.open, weights)  # they are weighed again only when that is asked
    assert questions.n_learned == n_votes


def test_weights_are_those_of_today_once_they_are_looked_at_again():
    rng = np.random.default_rng(0)
    questions = OpenQuestions(rng.normal(size=4), a_covariance(rng, 4))
    questions.learn(np.array([1.0, -1.0, 0.0, 0.0]), 4.0)
    questions.look_again()
    anew = OpenQuestions(questions.estimate, questions.covariance)
    assert_allclose(questions.open, anew.open)
    assert_allclose(questions.told, anew.told)


def test_the_covariance_that_was_given_stays_as_it_is():
    covariance = np.eye(3)
    OpenQuestions(np.zeros(3), covariance).learn(np.array([1.0, -1.0, 0.0]), 4.0)
    assert_array_equal(covariance, np.eye(3))


@given(SEEDS)
def test_a_gain_is_what_the_weighted_errors_of_all_differences_shrink_by(seed):
    rng = np.random.default_rng(seed)
    questions = OpenQuestions(rng.normal(size=4), a_covariance(rng, 4))
    first, second = np.triu_indices(4, 1)
    weight, before = -questions.open[first, second], quadratic(questions.covariance, first, second)
    gain = quadratic(questions.told, np.array([0]), np.array([2]))[0] / 3.0
    questions.learn(np.array([1.0, 0.0, -1.0, 0.0]), 3.0)
    after = quadratic(questions.covariance, first, second)
    assert gain == pytest.approx(weight @ (before - after))


# --- beside exact information --------------------------------------------------------------


def exact_gains(estimate, covariance, n_nodes=150):
    """Find what one vote on each of three pairs tells of all three questions, by integration.

    Given the difference that is voted on, every other one is normal: so an integral over that
    difference is enough, in two parts where its own question changes its answer.
    """
    to_pairs = np.eye(3)[PAIRS[0]] - np.eye(3)[PAIRS[1]]
    mean, spread = to_pairs @ estimate, to_pairs @ covariance @ to_pairs.T
    node, weight = np.polynomial.legendre.leggauss(n_nodes)
    found = np.zeros(3)
    for asked in range(3):
        error = np.sqrt(spread[asked, asked])
        low, high = mean[asked] - 9.0 * error, mean[asked] + 9.0 * error
        ends = [low, 0.0, high] if low < 0.0 < high else [low, high]
        parts = list(pairwise(ends))
        apart = np.concatenate([0.5 * (a + b) + 0.5 * (b - a) * node for a, b in parts])
        share = np.concatenate([0.5 * (b - a) * weight for a, b in parts])
        share = share * np.exp(-0.5 * ((apart - mean[asked]) / error) ** 2)
        said = chances(apart) * share / share.sum()
        for question in range(3):
            is_better = (apart > 0.0).astype(float)
            if question != asked:
                follows = spread[question, asked] / spread[asked, asked]
                there = mean[question] + follows * (apart - mean[asked])
                left = spread[question, question] - follows * spread[question, asked]
                is_better = scipy.special.ndtr(there / np.sqrt(left))
            together = (said * is_better).sum(axis=1)
            found[asked] += entropy(together.sum())
            found[asked] -= said.sum(axis=1) @ entropy(together / said.sum(axis=1))
    return found


def entropy(chance):
    """Return how many bits are missing of a question."""
    return (scipy.special.entr(chance) + scipy.special.entr(1.0 - chance)) / np.log(2.0)


def test_the_exact_information_is_that_of_many_drawn_scores():
    estimate, covariance = np.array([0.4, 0.0, -0.3]), np.diag([0.5, 0.2, 0.8])
    even = np.outer(np.arange(1, 1 << 16), [0.8191725134, 0.6710436067, 0.5497004779]) % 1.0
    scores = estimate + scipy.special.ndtri(even) @ np.sqrt(covariance)
    apart = scores[:, PAIRS[0]] - scores[:, PAIRS[1]]
    found = np.zeros(3)
    for asked in range(3):
        said = chances(apart[:, asked])
        after = said @ (apart > 0.0) / said.sum(axis=1)[:, None]
        expected = said.mean(axis=1) @ entropy(after)
        found[asked] = np.sum(entropy((apart > 0.0).mean(axis=0)) - expected)
    assert_allclose(found, exact_gains(estimate, covariance), rtol=5e-3)


@given(SEEDS)
def test_where_errors_are_small_gains_are_the_exact_information(seed):
    rng = np.random.default_rng(seed)
    covariance = a_covariance(rng, 3, sd=0.3)
    estimate = 0.3 * rng.normal(size=3)
    exact, found = exact_gains(estimate, covariance), gains(estimate, covariance)
    counts = exact > 0.1 * exact.max()  # of nothing, a share has no meaning
    assert_allclose(found[counts], exact[counts], rtol=0.15)
    assert exact[np.argmax(found)] > 0.97 * exact.max()


@given(SEEDS, st.sampled_from([0.3, 0.7, 1.5]))
def test_of_items_that_are_known_equally_well_pairs_come_in_the_right_order(seed, sd):
    estimate = sd * np.random.default_rng(seed).normal(size=3)
    covariance = 0.5 * sd**2 * np.eye(3)
    exact, found = exact_gains(estimate, covariance), gains(estimate, covariance)
    first, second = (np.argsort(each) for each in (exact, found))
    # Where two of them are as good as equal, they may change places.
    assert_allclose(exact[first], exact[second], rtol=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_where_errors_are_large_gains_are_too_low_by_some_tens_of_per_cent(seed):
    rng = np.random.default_rng(seed)
    covariance = a_covariance(rng, 3, sd=1.5)
    estimate = 1.5 * rng.normal(size=3)
    exact, found = exact_gains(estimate, covariance), gains(estimate, covariance)
    assert np.argmax(found) == np.argmax(exact)
    assert 0.6 < found.max() / exact.max() < 1.1


def test_where_errors_are_large_the_pair_of_most_gain_is_nearly_always_the_best():
    rng, kept = np.random.default_rng(1), []
    for _ in range(60):
        covariance, estimate = a_covariance(rng, 3, sd=1.5), 1.5 * rng.normal(size=3)
        exact = exact_gains(estimate, covariance, n_nodes=60)
        kept.append(exact[np.argmax(gains(estimate, covariance))] / exact.max())
    assert np.mean(kept) > 0.98
    assert np.mean(np.array(kept) == 1.0) > 0.9


# --- what changes nothing ------------------------------------------------------------------


@given(SEEDS, st.integers(2, 6), st.floats(-20.0, 20.0))
def test_only_differences_of_scores_count(seed, n_items, constant):
    rng = np.random.default_rng(seed)
    estimate, covariance = rng.normal(size=n_items), a_covariance(rng, n_items)
    pairs = np.triu_indices(n_items, 1)
    found = gains(estimate, covariance, pairs)
    assert_allclose(gains(estimate + constant, covariance, pairs), found, rtol=1e-6)
    # Nor does it matter how much all scores may move together.
    assert_allclose(gains(estimate, covariance + abs(constant), pairs), found, rtol=1e-6)


@given(SEEDS, st.integers(2, 6), st.booleans())
def test_names_of_items_do_not_matter(seed, n_items, is_weighted):
    rng = np.random.default_rng(seed)
    estimate, covariance = rng.normal(size=n_items), a_covariance(rng, n_items)
    importance = rng.uniform(size=(n_items, n_items)) if is_weighted else None
    if importance is not None:
        importance = importance + importance.T
    first, second = np.triu_indices(n_items, 1)
    order = rng.permutation(n_items)
    place = np.argsort(order)
    there = None if importance is None else importance[np.ix_(order, order)]
    found = gains(
        estimate[order], covariance[np.ix_(order, order)], (place[first], place[second]), there
    )
    assert_allclose(found, gains(estimate, covariance, (first, second), importance))


@given(SEEDS, st.integers(2, 6), st.sampled_from([1e-4, 0.1, 1.0, 30.0]))
def test_gains_are_never_negative_and_at_most_half_a_bit_for_every_question(seed, n_items, sd):
    rng = np.random.default_rng(seed)
    estimate, covariance = sd * rng.normal(size=n_items), a_covariance(rng, n_items, sd)
    found = gains(estimate, covariance, np.triu_indices(n_items, 1))
    assert np.all(found >= 0.0) and np.all(np.isfinite(found))
    assert found.max() <= 0.5 * len(found)


def test_of_items_that_are_far_apart_there_is_nothing_to_ask():
    assert np.all(gains(np.array([100.0, 0.0, -100.0]), 0.01 * np.eye(3)) == 0.0)
    assert np.all(gains(np.array([1.0, 0.0, -1.0]), np.zeros((3, 3))) == 0.0)


def test_questions_of_no_importance_are_worth_nothing():
    importance = np.zeros((3, 3))
    estimate, covariance = np.array([0.1, 0.0, -0.1]), np.eye(3)
    assert np.all(gains(estimate, covariance, PAIRS, importance) == 0.0)
    importance[0, 1] = importance[1, 0] = 1.0
    assert np.argmax(gains(estimate, covariance, PAIRS, importance)) == 0


# --- places --------------------------------------------------------------------------------


@given(SEEDS, st.integers(2, 6), st.sampled_from([np.inf, 3.0]))
def test_every_draw_gives_every_rank_once(seed, n_items, freedom):
    rng = np.random.default_rng(seed)
    ranks = ranks_of_draws(rng.normal(size=n_items), a_covariance(rng, n_items), freedom, 50)
    assert_array_equal(np.sort(ranks, axis=1), np.tile(np.arange(n_items), (50, 1)))


def test_ranks_are_those_of_the_estimate_where_it_is_certain_and_even_where_nothing_is_known():
    certain = ranks_of_draws(np.array([0.0, 2.0, 1.0]), 1e-12 * np.eye(3))
    assert_array_equal(certain, np.tile([2, 0, 1], (len(certain), 1)))
    even = ranks_of_draws(np.zeros(3), np.eye(3))
    assert_allclose(even.mean(axis=0), 1.0, atol=0.08)


def test_draws_of_few_degrees_of_freedom_go_further():
    estimate = np.array([3.0, 0.0])
    wrong = [np.mean(ranks_of_draws(estimate, np.eye(2), each)[:, 0]) for each in (np.inf, 2.0)]
    assert wrong[0] == pytest.approx(scipy.stats.norm.cdf(-3.0 / np.sqrt(2.0)), abs=0.01)
    assert wrong[1] == pytest.approx(scipy.stats.t.cdf(-3.0 / np.sqrt(2.0), 2.0), abs=0.02)


@given(SEEDS, st.integers(2, 6))
def test_chances_to_be_among_the_first_grow_with_the_places_up_to_certainty(seed, n_items):
    rng = np.random.default_rng(seed)
    ranks = ranks_of_draws(rng.normal(size=n_items), a_covariance(rng, n_items), n_draws=100)
    found = [chances_to_be_among(places, ranks) for places in range(n_items + 1)]
    assert np.all(found[0] == 0.0)
    assert np.all(np.diff(found, axis=0) >= -1e-12)
    # Of two items, one is always among all places but the last.
    apart = ~np.eye(n_items, dtype=bool)
    assert_allclose(found[n_items - 1][apart], 1.0)
    assert_allclose(found[n_items], 1.0)
    for places in range(n_items + 1):
        assert_array_equal(found[places], found[places].T)
        assert_allclose(np.diag(found[places]), (ranks < places).mean(axis=0), atol=1e-12)
