"""How certain an order will be after more votes, beside futures that are drawn here."""

import numpy as np
import pytest
import scipy
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi.planning.ahead import Known, Outlook, look_ahead
from isplitlbi.planning.open_questions import quadratic
from isplitlbi.planning.people import Answers, Person

N_ITEMS, N_PEOPLE, VOTES_OF_EACH = 6, 10, 6
ESTIMATE = np.array([0.9, 0.7, 0.4, 0.0, -0.3, -1.2])
PAIRS = np.triu_indices(N_ITEMS, 1)
NOISE = 0.01  # of a mean over all futures; the same futures are looked at after every vote


def information(margin, first, second):
    """Return what one logistic vote without ties tells of its margin."""
    return scipy.special.expit(margin) * scipy.special.expit(-margin)


def told_by(n_votes, estimate=ESTIMATE):
    """Return what so many votes of one person tell of their own scores, the same for every pair."""
    pairs = np.triu_indices(len(estimate), 1)
    rows = np.eye(len(estimate))[pairs[0]] - np.eye(len(estimate))[pairs[1]]
    weight = information(rows @ estimate, *pairs) * n_votes / len(rows)
    return rows.T @ (weight[:, None] * rows)


def of_all(told, taste_variance):
    """Return what that tells of all people: tastes are unknown numbers that are eliminated."""
    if taste_variance == 0.0:
        return told
    return told - told @ np.linalg.inv(told + np.eye(len(told)) / taste_variance) @ told


def a_study(taste_variance=0.2, n_people=N_PEOPLE, estimate=ESTIMATE):
    n_items = len(estimate)
    told = told_by(VOTES_OF_EACH, estimate)
    precision = n_people * of_all(told, taste_variance) + 0.5 * np.eye(n_items)
    somebody = Person.without_own(
        Answers(estimate, 0.0, information), taste_variance=taste_variance
    )
    return Known(
        estimate, np.linalg.inv(precision), told, n_people, n_people * VOTES_OF_EACH, somebody
    )


@pytest.fixture(scope="module")
def ahead():
    return look_ahead(a_study(), 2)


@pytest.fixture(scope="module")
def without_taste():
    return look_ahead(a_study(0.0), 2)


# --- a target ------------------------------------------------------------------------------


def test_a_target_is_needed_where_a_future_first_reaches_it():
    outlook = Outlook(np.array([0.0, 10.0, 30.0]), np.zeros((1, 3)), np.zeros((1, 3)))
    values = np.array([
        [0.90, 0.95, 0.99],  # it is there
        [0.50, 0.90, 0.95],  # on the point
        [0.50, 0.70, 0.90],  # on the last
        [0.40, 0.80, 1.00],  # halfway between two points
        [0.85, 0.85, 0.95],  # nothing happens, and then it does
        [0.50, 0.95, 0.60],  # it was there once
        [0.50, 0.60, 0.89],  # never
    ])  # fmt: skip
    found = outlook.needed(values, 0.9)
    assert_allclose(found, [0.0, 10.0, 30.0, 20.0, 20.0, 10.0 * 0.4 / 0.45, np.inf])


def test_one_point_is_enough_to_say_whether_a_target_is_reached():
    outlook = Outlook(np.zeros(1), np.zeros((2, 1)), np.zeros((2, 1)))
    assert_array_equal(outlook.needed(np.array([[0.5], [0.95]]), 0.9), [np.inf, 0.0])


@pytest.mark.parametrize("target", [0.8, 0.9])
def test_a_higher_target_never_needs_fewer_votes(ahead, target):
    outlook = ahead.asked
    lower = outlook.needed(outlook.tau, target - 0.05)
    assert np.all(lower <= outlook.needed(outlook.tau, target))


# --- along more votes ----------------------------------------------------------------------


def test_points_go_from_now_to_twenty_times_as_many_votes(ahead):
    for outlook in (ahead.asked, ahead.random):
        assert outlook.n_more[0] == 0.0
        assert outlook.n_more[-1] == 20 * N_PEOPLE * VOTES_OF_EACH
        assert np.all(np.diff(outlook.n_more) >= 1.0)
        assert outlook.tau.shape == outlook.top.shape == (200, len(outlook.n_more))
        assert np.abs(outlook.tau).max() <= 1.0
        assert 0.0 <= outlook.top.min() <= outlook.top.max() <= 1.0


def test_now_is_as_certain_as_the_scores_are(ahead):
    known = a_study()
    error = np.sqrt(quadratic(known.covariance, *PAIRS))
    apart = np.abs(ESTIMATE[PAIRS[0]] - ESTIMATE[PAIRS[1]])
    tau = 2.0 * scipy.special.ndtr(apart / error).mean() - 1.0
    drawn = np.random.default_rng(5).multivariate_normal(ESTIMATE, known.covariance, 4_000)
    top = np.mean(drawn[:, :2].min(axis=1) > drawn[:, 2:].max(axis=1))
    for outlook in (ahead.asked, ahead.random):
        assert_allclose(outlook.tau[:, 0], tau)
        assert_allclose(outlook.top[:, 0], top, atol=0.06)


@pytest.mark.parametrize("taste_variance", [0.0, 0.2])
def test_certainty_does_not_fall_with_more_votes(ahead, without_taste, taste_variance):
    found = ahead if taste_variance else without_taste
    for outlook in (found.asked, found.random):
        for values in (outlook.tau, outlook.top):
            assert np.all(np.diff(values.mean(axis=0)) > -NOISE)
        assert outlook.tau[:, -1].mean() > outlook.tau[:, 0].mean() + 0.1


def test_votes_that_are_asked_for_are_no_worse_than_random_ones_and_mostly_better(
    ahead, without_taste
):
    for found in (ahead, without_taste):
        better = found.asked.tau.mean(axis=0) - found.random.tau.mean(axis=0)
        assert np.all(better > -NOISE)
        assert better.max() > 0.01


def test_votes_that_are_asked_for_the_first_places_make_these_certain_sooner(without_taste):
    found = look_ahead(a_study(0.0), 2, aims_at_top=True)
    better = (found.asked.top - without_taste.asked.top).mean(axis=0)
    assert np.all(better > -2.0 * NOISE)
    assert better.max() > 0.01
    assert_array_equal(found.random.top, without_taste.random.top)  # these do not know of an aim


@pytest.mark.parametrize("point", [4, 9])
def test_after_random_votes_the_order_is_as_right_as_in_studies_that_are_drawn(ahead, point):
    known, taste = a_study(), 0.2
    more = told_by(ahead.random.n_more[point] / N_PEOPLE)
    precision = np.linalg.inv(known.covariance) - N_PEOPLE * of_all(known.per_person, taste)
    after = np.linalg.inv(precision + N_PEOPLE * of_all(known.per_person + more, taste))
    rng = np.random.default_rng(3)
    estimates = rng.multivariate_normal(ESTIMATE, known.covariance - after, 1_500)
    truths = estimates + rng.multivariate_normal(np.zeros(N_ITEMS), after, 1_500)
    ahead_of, true = (each[:, PAIRS[0]] - each[:, PAIRS[1]] for each in (estimates, truths))
    tau = np.mean(np.sign(ahead_of) * np.sign(true))
    best, found = (set_of_two(each) for each in (truths, estimates))
    assert ahead.random.tau[:, point].mean() == pytest.approx(tau, abs=0.03)
    assert ahead.random.top[:, point].mean() == pytest.approx(np.mean(best == found), abs=0.05)


def set_of_two(scores):
    """Return the two best as one number."""
    first = np.sort(np.argsort(-scores, axis=1)[:, :2], axis=1)
    return first[:, 0] * N_ITEMS + first[:, 1]


# --- how far the same people lead ----------------------------------------------------------


def test_people_without_a_taste_of_their_own_tell_everything_in_the_end(without_taste):
    assert without_taste.most_tau > 0.995
    assert without_taste.most_top > 0.99


def test_people_with_a_taste_of_their_own_leave_something_unknown(ahead):
    assert ahead.most_tau < 0.97
    assert ahead.most_tau > ahead.asked.tau[:, -1].mean() - NOISE


def test_more_people_lead_further(ahead):
    many = look_ahead(a_study(n_people=100), 2)
    assert many.most_tau > ahead.most_tau + 0.02


# --- the rest ------------------------------------------------------------------------------


def test_the_same_study_has_the_same_outlook_and_progress_is_told(ahead):
    told = []
    again = look_ahead(a_study(), 2, progress=told.append)
    assert told[-1] == 1.0 and np.all(np.diff(told) > 0.0)
    for one, other in ((ahead.asked, again.asked), (ahead.random, again.random)):
        for here, there in zip(one, other, strict=True):
            assert_array_equal(here, there)
    assert (ahead.most_tau, ahead.most_top) == (again.most_tau, again.most_top)


def test_two_items_are_a_study_and_all_places_are_right():
    found = look_ahead(a_study(estimate=np.array([0.3, -0.3])), 2)
    assert np.all(found.asked.top == 1.0)
    # Of one pair there is nothing to choose.
    assert_allclose(found.asked.tau, found.random.tau, atol=1e-6)
