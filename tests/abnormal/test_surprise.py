"""Whether deviations are larger than ordinary, beside densities of normal numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, multivariate_normal, norm

from isplitlbi.abnormal.matrices import Precision
from isplitlbi.abnormal.surprise import (
    DEVIATION_VARIANCE,
    SLOPES,
    Reading,
    Rest,
    Surprise,
    evidence_of_more,
    read_off,
    rows_of_traits,
    surprise_of,
)

N_TRAITS, WIDTH = 2, 6


@pytest.fixture(scope="module")
def known():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, 5, WIDTH, WIDTH))
    bend, ordinary = roots @ np.swapaxes(roots, 2, 3)
    ordinary *= 0.05
    pull = rng.normal(size=(5, WIDTH)) * 3
    return ordinary, bend, pull, Surprise.of(Rest.of(Precision.of(ordinary), bend), N_TRAITS)


def covariance(ordinary, bend, more):
    return bend + bend @ (ordinary + np.diag(more)) @ bend


def test_the_evidence_compares_normal_densities(known):
    ordinary, bend, pull, _ = known
    usual = Precision.of(ordinary)
    rows = rows_of_traits(usual, bend, N_TRAITS)
    assert_allclose(rows, Rest.of(usual, bend).rows[:, :N_TRAITS])
    evidence = evidence_of_more(rows, ordinary, usual, bend, pull)
    for user in range(len(pull)):
        nothing = np.zeros(WIDTH)
        usual = multivariate_normal(nothing, covariance(ordinary[user], bend[user], nothing))
        gains = []
        larger = [np.arange(WIDTH) == trait for trait in range(N_TRAITS)]
        for which in [*larger, np.arange(WIDTH) >= N_TRAITS]:
            more = covariance(ordinary[user], bend[user], DEVIATION_VARIANCE * which)
            other = multivariate_normal(nothing, more)
            gains.append(other.logpdf(pull[user]) - usual.logpdf(pull[user]))
        assert evidence[user] == pytest.approx(np.log(np.mean(np.exp(gains))), rel=1e-6)


def test_roots_give_the_numbers_that_the_statistic_is_made_of(known):
    _, _, pull, found = known
    numbers = np.einsum("nij,nj->ni", found.roots(), pull)
    traits, taste = numbers[:, :N_TRAITS], np.sum(numbers[:, N_TRAITS:] ** 2, axis=1)
    known = np.sqrt(found.known[:, -1])
    expected = surprise_of(traits, taste, found.mean, found.freedom, known)
    assert_allclose(found.statistic(pull), expected)


def test_numbers_of_ordinary_users_have_the_moments_that_are_told(known):
    ordinary, bend, _, found = known
    rng = np.random.default_rng(1)
    for user in range(2):
        usual = covariance(ordinary[user], bend[user], np.zeros(WIDTH))
        drawn = rng.multivariate_normal(np.zeros(WIDTH), usual, 20_000) @ found.roots()[user].T
        assert_allclose(drawn[:, :N_TRAITS].std(axis=0), 1.0, rtol=0.03)
        taste = np.sum(drawn[:, N_TRAITS:] ** 2, axis=1)
        assert taste.mean() == pytest.approx(found.mean[user], rel=0.03)
        freedom = 2 * found.mean[user] ** 2 / taste.var()
        assert freedom == pytest.approx(found.freedom[user], rel=0.1)


def test_slopes_of_weighted_votes_have_a_variance_of_their_own(known):
    ordinary, bend, _, usual = known
    same = bend + bend @ ordinary @ bend
    rest = Rest.of(Precision.of(ordinary), bend)
    for field, value in usual._asdict().items():
        assert_allclose(getattr(Surprise.of(rest, N_TRAITS, same), field), value, rtol=1e-6)
    twice = Surprise.of(rest, N_TRAITS, 2 * same)
    assert_allclose(twice.mean, 2 * usual.mean)
    assert_allclose(twice.known, 2 * usual.known)


def test_the_statistic_is_minus_the_logarithm_of_the_smallest_chance():
    traits, taste, mean = np.array([[-3.0, 0.5]]), np.array([4.0]), 5.0
    smallest = 2 * norm.sf(3.0)
    assert surprise_of(traits, taste, mean, 5.0, 2.0) == pytest.approx(-np.log(smallest))
    far = np.array([40.0])
    chance = chi2(5).sf(40.0)
    assert surprise_of(0 * traits, far, mean, 5.0, 2.0) == pytest.approx(-np.log(chance), rel=0.1)


def test_no_ties_at_all_are_as_surprising_as_their_logarithm():
    known = 3.0  # of the logarithm: a third

    def surprising(share):  # of the ties expected
        traits = np.array([[0.0, known * (share - 1.0)]])
        return float(surprise_of(traits, np.zeros(1), 1.0, 1.0, known)[0])

    for share in (0.3, 0.5, 2.0, 4.0):
        chance = 2 * norm.sf(abs(known * np.log(share)))
        assert surprising(share) == pytest.approx(-np.log(chance))
    assert surprising(0.0) > surprising(0.1) > surprising(0.5)
    assert np.isfinite(surprising(0.0))


def test_what_nothing_is_known_of_surprises_nobody():
    nothing = np.zeros((1, 4, 4))
    usual = Precision.of(nothing)
    rest = Rest.of(usual, nothing)
    pull = np.zeros((1, 4))
    assert Surprise.of(rest, 2).statistic(pull) == 0.0
    assert evidence_of_more(rest.rows[:, :2], nothing, usual, nothing, pull) == pytest.approx(0.0)


# --- what the number of a slope means -------------------------------------------------------


def saturating(steepness=1.0):
    """Return what is agreed by slope for two users: less and less, or in proportion."""
    away = SLOPES - 1.0
    return np.stack([np.log1p(steepness * away) / steepness, away])


def test_where_agreement_grows_with_the_slope_numbers_mean_what_they_are():
    reading = Reading.of(saturating(), np.array([3.0, 3.0]), 0.05)
    numbers = np.array([0.5, 0.5])
    for number in (-4.0, -1.0, 0.0, 0.3, 2.0, 40.0):
        assert reading.read(number * numbers)[1] == pytest.approx(0.5 * number, abs=0.02)
    assert_allclose(Reading.as_they_are(3).read(np.array([-7.0, 0.0, 9.0])), [-7.0, 0.0, 9.0])


@pytest.mark.parametrize(
    ("known", "variance"), [(0.8, 1e-5), (0.8, 0.05), (0.8, 0.5), (19.0, 1e-5), (19.0, 0.05)]
)
def test_the_meaning_of_a_slope_is_the_root_of_a_gain_in_likelihood(known, variance):
    agreed = saturating()[:1]
    reading = Reading.of(agreed, np.array([known]), variance)
    information = 1.0 / (1.0 / known - variance)
    slopes = np.linspace(SLOPES[0], SLOPES[-1], 40_001)
    expected = np.interp(slopes, SLOPES, agreed[0])
    area = np.concatenate(
        [[0.0], np.cumsum(0.5 * (expected[1:] + expected[:-1]) * np.diff(slopes))]
    )
    prior = 0.5 * (slopes - 1.0) ** 2 / variance
    for number, root in zip(reading.number[0], reading.root[0], strict=True):
        gained = information * (number / np.sqrt(known) * (slopes - 1.0) - area)
        gain = 2.0 * (gained.max() - (gained - prior).max())
        assert root == pytest.approx(np.sqrt(gain), rel=0.01, abs=0.01)


def test_a_larger_number_never_means_less():
    reading = Reading.of(saturating(3.0), np.array([5.0, 5.0]), 0.1)
    numbers = np.linspace(-30.0, 30.0, 500)
    for user in range(2):
        read = read_off(numbers, reading.number[user], reading.root[user])
        assert np.all(np.diff(read) > 0.0)
        assert_allclose(read[numbers < 0.0], numbers[numbers < 0.0])
    # Who agrees as far as a much sharper user would is more of a surprise than it seems.
    sharp = reading.number[0][-3]
    assert reading.read(np.array([sharp, sharp]))[0] > 1.5 * sharp
