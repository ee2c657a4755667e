"""Links on other scales: thresholds told by their logarithms, and choices that are forced."""

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose

from isplitlbi.kernels import numba_links  # noqa: F401  teaches numba the links
from isplitlbi.model.answering import NEVER, ForcedChoice, LogThreshold
from isplitlbi.model.links import HIGHEST_LOG, LINKS, LOWEST_LOG, Link, Logistic, Uniform

links = pytest.mark.parametrize("link", [link() for link in LINKS.values()], ids=list(LINKS))

MARGINS, LEVELS = (
    part.ravel() for part in np.meshgrid(np.linspace(-4.03, 4.05, 23), np.linspace(-6.1, 1.5, 17))
)
COUNTS = 1.5, 0.7, 2.0
EXTREMES = tuple(
    part.ravel()
    for part in np.meshgrid(
        np.concatenate([-np.geomspace(1e-3, 1e3, 13), [0.0], np.geomspace(1e-3, 1e3, 13)]),
        np.linspace(-40.0, 40.0, 41),
    )
)
OUTCOMES = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]


def is_smooth(link, margin, threshold, reach):
    """Say where no step of that reach crosses a corner of the density."""
    if not isinstance(link, Uniform):
        return np.ones(len(margin), dtype=bool)
    sides = margin - threshold, margin + threshold
    apart = [np.abs(np.abs(side) - (1.0 - Uniform.TAIL)) for side in sides]
    return np.minimum(*apart) > reach * (1.0 + threshold)


def slope_of(function, step=1e-5):
    """Return the derivative at zero, from four values around it."""
    near, far = (function(k * step) - function(-k * step) for k in (1, 2))
    return (8.0 * near - far) / (12.0 * step)


# --- by the logarithm of the threshold -----------------------------------------------------


@links
def test_the_loss_by_the_logarithm_is_that_of_the_threshold(link):
    found = LogThreshold(link).vote_terms(MARGINS, LEVELS, *COUNTS)
    threshold = np.exp(LEVELS)
    expected = link.vote_terms(MARGINS, threshold, *COUNTS)
    assert_allclose(found[0], expected[0], rtol=1e-9)
    assert_allclose(found[1], expected[1], rtol=1e-7, atol=1e-8)
    assert_allclose(found[2], threshold * expected[2], rtol=1e-7, atol=1e-8)


@links
def test_outcomes_by_the_logarithm_are_those_of_the_threshold_and_sum_to_one(link):
    found = np.array(LogThreshold(link).outcomes(MARGINS, LEVELS))
    assert_allclose(found, link.outcomes(MARGINS, np.exp(LEVELS)), rtol=1e-12)
    assert_allclose(np.exp(found).sum(axis=0), 1.0, rtol=1e-9)


@links
def test_derivatives_by_the_logarithm_are_slopes(link):
    smooth = is_smooth(link, MARGINS, np.exp(LEVELS), 1e-3)
    margin, level = MARGINS[smooth], LEVELS[smooth]
    _, by_margin, by_level, *_ = link.log_scale_terms(margin, level, *COUNTS)
    of_margin = slope_of(lambda e: link.log_scale_terms(margin + e, level, *COUNTS)[0])
    of_level = slope_of(lambda e: link.log_scale_terms(margin, level + e, *COUNTS)[0])
    assert_allclose(by_margin, of_margin, rtol=1e-6, atol=1e-6)
    assert_allclose(by_level, of_level, rtol=1e-6, atol=1e-6)


@links
def test_the_curvature_is_what_so_many_votes_would_bend_by_on_average(link):
    smooth = is_smooth(link, MARGINS, np.exp(LEVELS), 1e-3) & (np.abs(MARGINS) < 3.0)
    margin, level = MARGINS[smooth], LEVELS[smooth]
    probability = np.exp(LogThreshold(link).outcomes(margin, level))
    n_votes = sum(COUNTS)

    def expected(by, of):
        """Average, over outcomes, the slope of a slope."""
        shifts = [lambda e: (margin + e, level), lambda e: (margin, level + e)]
        slopes = [
            slope_of(lambda e, c=counts: link.log_scale_terms(*shifts[by](e), *c)[1 + of])
            for counts in OUTCOMES
        ]
        return n_votes * np.sum(probability * slopes, axis=0)

    mm, mt, tt = link.log_scale_terms(margin, level, *COUNTS)[3:]
    size = 1.0 + np.abs(mm).max() + np.abs(tt).max()
    for found, (by, of) in ((mm, (0, 0)), (mt, (1, 0)), (mt, (0, 1)), (tt, (1, 1))):
        assert_allclose(found, expected(by, of), rtol=1e-4, atol=1e-6 * size)


@links
def test_the_curvature_is_never_negative(link):
    for margin, level in ((MARGINS, LEVELS), EXTREMES):
        for counts in (COUNTS, *OUTCOMES):
            mm, mt, tt = link.log_scale_terms(margin, level, *counts)[3:]
            assert np.all(mm >= 0.0) and np.all(tt >= 0.0)
            assert np.all(mt**2 <= mm * tt * (1.0 + 1e-9) + 1e-30)


@links
def test_everything_is_finite_at_extremes(link):
    margin, level = EXTREMES
    for counts in (COUNTS, *OUTCOMES, (0.0, 0.0, 0.0)):
        for found in LogThreshold(link).vote_terms(margin, level, *counts):
            assert np.isfinite(found).all()
    assert np.isfinite(LogThreshold(link).outcomes(margin, level)).all()
    for counts in (COUNTS, (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)):
        for found in ForcedChoice(link).vote_terms(margin, level, *counts):
            assert np.isfinite(found).all()


@links
def test_beyond_the_last_logarithms_nothing_changes(link):
    margin = np.array([-2.0, 0.0, 0.7])
    for inside, beyond in ((LOWEST_LOG, -60.0), (HIGHEST_LOG, 60.0)):
        here, there = (link.log_scale_terms(margin, level, *COUNTS) for level in (inside, beyond))
        assert_allclose(here, there, rtol=1e-14)


def test_the_logistic_closed_form_agrees_with_the_general_one():
    found = Logistic().log_scale_terms(MARGINS, LEVELS, *COUNTS)
    expected = Link.log_scale_terms(Logistic(), MARGINS, LEVELS, *COUNTS)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-7, atol=1e-10)


# --- forced choice -------------------------------------------------------------------------


@links
def test_a_forced_choice_has_two_outcomes_that_sum_to_one(link):
    first, tie, second = ForcedChoice(link).outcomes(MARGINS, LEVELS)
    assert_allclose(np.exp(first) + np.exp(second), 1.0, rtol=1e-12)
    assert np.all(tie == NEVER) and not np.exp(tie).any()
    assert np.all(0.0 * tie == 0.0)  # none of such votes cost nothing
    assert_allclose(first, link.log_cdf(MARGINS), rtol=1e-12, atol=1e-15)


@links
def test_derivatives_of_a_forced_choice_are_slopes_and_the_threshold_is_nothing(link):
    margin = MARGINS[is_smooth(link, MARGINS, 0.0 * MARGINS, 1e-3)]
    terms = ForcedChoice(link).vote_terms(margin, 0.0 * margin, 1.5, 0.0, 2.0)
    loss, by_margin, by_level, mm, mt, tt = terms
    assert_allclose(loss, -1.5 * link.log_cdf(margin) - 2.0 * link.log_cdf(-margin), rtol=1e-12)
    slope = slope_of(lambda e: link.forced_terms(margin + e, 1.5, 2.0)[0])
    bend = slope_of(lambda e: link.forced_terms(margin + e, 1.5, 2.0)[1])
    assert_allclose(by_margin, slope, rtol=1e-6, atol=1e-7)
    assert_allclose(mm, bend, rtol=1e-5, atol=1e-6)
    assert np.all(mm >= 0.0)
    for nothing in (by_level, mt, tt):
        assert not np.any(nothing)


# --- compiled ------------------------------------------------------------------------------


@njit
def all_terms(answering, margin, level, first_wins, ties, second_wins):
    return (
        answering.vote_terms(margin, level, first_wins, ties, second_wins),
        answering.outcomes(margin, level),
    )


@links
@pytest.mark.parametrize("scale", [LogThreshold, ForcedChoice])
def test_compiled_formulas_are_the_plain_ones(link, scale):
    answering, ties = scale(link), 0.7 if scale is LogThreshold else 0.0
    for margin, level in zip(MARGINS[::3], LEVELS[::3], strict=True):
        arguments = margin, level, 1.5, ties, 2.0
        terms, outcomes = all_terms(answering, *arguments)
        assert_allclose(terms, answering.vote_terms(*arguments), rtol=1e-8, atol=1e-9)
        assert_allclose(outcomes, answering.outcomes(margin, level), rtol=1e-9, atol=1e-9)
    for margin, level in zip(*(part[::29] for part in EXTREMES), strict=True):
        terms, outcomes = all_terms(answering, margin, level, 1.5, ties, 2.0)
        assert np.isfinite(terms).all() and np.isfinite(outcomes).all()
