"""The contract of a link: what every distribution of the noise must keep to."""

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose
from scipy.special import expit, log_ndtr, ndtr

from isplitlbi.kernels import numba_links  # noqa: F401  teaches numba the functions
from isplitlbi.model.links import (
    LINKS,
    Link,
    Logistic,
    Probit,
    Uniform,
    link_named,
    log_normal_cdf,
    normal_hazard,
)

links = pytest.mark.parametrize("link", [link() for link in LINKS.values()], ids=list(LINKS))

# Where nothing is said, a link's density changes over a length of 1 and its slope never jumps.
LENGTH = {"uniform": Uniform.TAIL}
KINK = {"uniform": 1.0 - Uniform.TAIL}

SIZES = np.concatenate([np.logspace(-3, 3, 25), np.linspace(0.05, 4.0, 40)])
MARGINS = np.concatenate([-SIZES, [0.0], SIZES])
THRESHOLDS = np.array([1e-3, 3e-3, 0.01, 0.05, 0.2, 0.5, 0.89, 1.0, 1.7, 3.0, 8.0, 20.0, 50.0])
GRID = tuple(part.ravel() for part in np.meshgrid(MARGINS, THRESHOLDS))


def smooth_grid(link, reach):
    """The grid without the points from which a step of `reach` would cross a kink."""
    margin, threshold = GRID
    distance = np.full(len(margin), np.inf)
    for x in (margin - threshold, margin + threshold):
        distance = np.minimum(distance, np.abs(np.abs(x) - KINK.get(link.name, np.inf)))
    away = distance > reach
    return margin[away], threshold[away]


def difference(function, margin, threshold, by, step):
    """The derivative of a function by margin or threshold, from four values around it."""
    dm, dt = (step, 0.0) if by == "margin" else (0.0, step)

    def at(k):
        return function(margin + k * dm, threshold + k * dt)

    return (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * np.expand_dims(step, -1))


def steps(link, margin, threshold):
    """Steps that a derivative of a link's function can bear: small beside what it changes over."""
    length = LENGTH.get(link.name, 1.0)
    by_margin = np.full(len(margin), 0.01 * length)
    return by_margin, 0.01 * np.minimum(length, threshold)


# --- probabilities -------------------------------------------------------------------------


@links
def test_the_three_probabilities_sum_to_one(link):
    assert_allclose(np.exp(link.log_probabilities(*GRID)).sum(axis=-1), 1.0, rtol=1e-12)


@links
def test_swapping_the_sides_mirrors_the_outcomes(link):
    margin, threshold = GRID
    here, there = ((margin, threshold), (-margin, threshold))
    mirrored = slice(None, None, -1)
    assert_allclose(
        link.log_probabilities(*there)[:, mirrored], link.log_probabilities(*here), rtol=1e-14
    )
    assert_allclose(
        link.gradient(*there)[:, mirrored] * [-1, 1], link.gradient(*here), rtol=1e-12, atol=1e-12
    )
    assert_allclose(
        link.curvature(*there)[:, mirrored] * [1, -1, 1], link.curvature(*here), atol=1e-12
    )


@links
def test_probabilities_are_those_of_the_noise_distribution(link):
    margin, threshold = (part[np.abs(GRID[0]) < 5] for part in GRID)

    def cdf(x):
        return np.exp(link.log_cdf(x))

    expected = [
        cdf(margin - threshold),
        cdf(threshold - margin) - cdf(-threshold - margin),
        cdf(-margin - threshold),
    ]
    found = np.exp(link.log_probabilities(margin, threshold))
    assert_allclose(found, np.stack(expected, axis=-1), rtol=1e-9, atol=1e-14)


@links
def test_the_density_is_the_derivative_of_the_distribution_and_symmetric(link):
    x = np.linspace(-6, 6, 481)
    x = x[np.abs(np.abs(x) - KINK.get(link.name, np.inf)) > 1e-3]
    step = 1e-5
    slope = (link.log_cdf(x + step) - link.log_cdf(x - step)) / (2 * step)
    assert_allclose(np.exp(link.log_density(x) - link.log_cdf(x)), slope, rtol=1e-6, atol=1e-9)
    bend = (link.log_density(x + step) - link.log_density(x - step)) / (2 * step)
    assert_allclose(link.density_slope(x), bend, rtol=1e-6, atol=1e-9)
    assert_allclose(link.log_density(-x), link.log_density(x), rtol=1e-15)
    assert_allclose(np.exp(link.log_cdf(x)) + np.exp(link.log_cdf(-x)), 1.0, rtol=1e-14)


@links
def test_everything_is_finite_at_extreme_margins_and_thresholds(link):
    margin, threshold = GRID
    for values in (
        link.log_probabilities(margin, threshold),
        link.gradient(margin, threshold),
        link.curvature(margin, threshold),
        np.stack(link.vote_terms(margin, threshold, 1.5, 2.0, 0.5)),
        np.stack(np.broadcast_arrays(*link.curvature_bounds(threshold))),
    ):
        assert np.isfinite(values).all()
    assert (link.log_probabilities(margin, threshold) <= 0.0).all()


@links
def test_a_larger_margin_helps_the_first_and_a_larger_threshold_helps_the_tie(link):
    margin = np.linspace(-40.0, 40.0, 801)
    for threshold in THRESHOLDS:
        first, tie, second = np.moveaxis(link.gradient(margin, threshold), -2, 0)
        assert (first[:, 0] >= 0).all() and (second[:, 0] <= 0).all()
        assert (tie[:, 1] >= 0).all()
        assert (first[:, 1] <= 0).all() and (second[:, 1] <= 0).all()


@links
def test_scalars_and_arrays_of_any_shape_are_taken_alike(link):
    margin = np.linspace(-2.0, 2.0, 6).reshape(2, 3)
    threshold = np.array([0.3, 0.5, 0.7])
    probabilities = link.log_probabilities(margin, threshold)
    assert probabilities.shape == (2, 3, 3)
    assert link.gradient(margin, threshold).shape == (2, 3, 3, 2)
    assert link.curvature(margin, threshold).shape == (2, 3, 3, 3)
    assert_allclose(link.log_probabilities(margin[1, 2], 0.7), probabilities[1, 2], rtol=1e-14)


# --- derivatives ---------------------------------------------------------------------------


@links
@pytest.mark.parametrize("by", ["margin", "threshold"])
def test_gradients_are_the_slopes_of_the_log_probabilities(link, by):
    margin, threshold = smooth_grid(link, reach=0.03)
    step = steps(link, margin, threshold)[by == "threshold"]
    slope = difference(link.log_probabilities, margin, threshold, by, step)
    found = link.gradient(margin, threshold)[..., int(by == "threshold")]
    # A log-probability is itself rounded; divided by the step, its last digits show.
    rounding = np.abs(link.log_probabilities(margin, threshold)) * 1e-15 / step[:, None]
    assert np.all(np.abs(found - slope) <= 1e-6 * np.abs(found) + 1e-8 + rounding)


@links
@pytest.mark.parametrize("by", ["margin", "threshold"])
def test_curvatures_are_the_slopes_of_the_gradients(link, by):
    margin, threshold = smooth_grid(link, reach=0.03)
    step = steps(link, margin, threshold)[by == "threshold"]
    n_points = len(margin)

    def flat_gradient(m, t):
        return link.gradient(m, t).reshape(n_points, 6)

    slope = difference(flat_gradient, margin, threshold, by, step).reshape(n_points, 3, 2)
    mm, mt, tt = np.moveaxis(link.curvature(margin, threshold), -1, 0)
    found = np.stack((mm, mt) if by == "margin" else (mt, tt), axis=-1)
    # Both sides are rounded: in the tails, a logarithm as large as m^2 / 2 goes through exp.
    noise = 1e-9 * margin**2 + 3e-16 * np.abs(margin) ** 3 / step
    assert np.all(np.abs(found - slope) <= 1e-5 * (1.0 + np.abs(found)) + noise[:, None, None])


@links
def test_log_probabilities_are_jointly_concave(link):
    margin, threshold = GRID
    mm, mt, tt = np.moveaxis(link.curvature(margin, threshold), -1, 0)
    hessian = np.stack([np.stack([mm, mt], -1), np.stack([mt, tt], -1)], -1)
    largest_eigenvalue = np.linalg.eigvalsh(hessian)[..., -1]
    size = np.abs(hessian).max(axis=(-1, -2))
    assert np.all(largest_eigenvalue <= 1e-9 * (1.0 + size + margin[:, None] ** 2))


@links
def test_curvature_bounds_hold_at_every_margin(link):
    around = np.concatenate([np.linspace(-3, 3, 1201), 0.9 + np.linspace(-1e-3, 1e-3, 41)])
    anywhere = np.concatenate([np.linspace(0, 30, 2001), np.logspace(1.5, 3, 40)])
    for threshold in np.logspace(-3, np.log10(50), 30):
        margin = np.concatenate([anywhere, threshold + around, threshold - around])
        found = -link.curvature(np.concatenate([margin, -margin]), threshold)
        decided, by_margin, by_threshold = link.curvature_bounds(threshold)
        room = 1.0 + 1e-9 * np.concatenate([margin, margin]) ** 2
        assert np.all(found[:, [0, 2]].max(axis=(1, 2)) <= decided * room)
        assert np.all(found[:, 1, 0] <= by_margin * room)
        assert np.all(found[:, 1, 2] <= by_threshold * room)


# --- weighted votes ------------------------------------------------------------------------


@links
@pytest.mark.parametrize("counts", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2.5, 0.5, 4.0)])
def test_vote_terms_are_the_weighted_sums_of_the_pointwise_formulas(link, counts):
    margin, threshold = GRID
    loss, by_margin, by_threshold, mm, mt, tt = link.vote_terms(margin, threshold, *counts)
    weights = np.array(counts)

    def total(values):
        return -np.tensordot(values, weights, axes=([1], [0]))

    exact = {"rtol": 1e-10, "atol": 1e-10}
    assert_allclose(loss, total(link.log_probabilities(margin, threshold)), **exact)
    gradient = np.stack([by_margin, by_threshold], axis=-1)
    assert_allclose(gradient, total(link.gradient(margin, threshold)), **exact)
    curvature = np.stack([mm, mt, tt], axis=-1)
    assert_allclose(curvature, total(link.curvature(margin, threshold)), **exact)


def test_the_logistic_closed_forms_agree_with_the_general_ones():
    margin, threshold = (part[np.abs(GRID[0]) <= 300] for part in GRID)
    link = Logistic()
    # The general formulas subtract logarithms as large as the margin.
    close = {"rtol": 1e-8, "atol": 1e-8}
    for own, general in (
        (link.win(margin - threshold), Link.win(link, margin - threshold)),
        (link.tie(margin, threshold), Link.tie(link, margin, threshold)),
        (
            link.vote_terms(margin, threshold, 1.5, 2.0, 0.5),
            Link.vote_terms(link, margin, threshold, 1.5, 2.0, 0.5),
        ),
    ):
        for mine, theirs in zip(own, general, strict=True):
            assert_allclose(mine, theirs, **close)


def test_the_logistic_link_without_ties_is_bradley_terry():
    margin = np.linspace(-8, 8, 33)
    first, tie, _ = np.moveaxis(np.exp(Logistic().log_probabilities(margin, 1e-12)), -1, 0)
    assert_allclose(first, expit(margin), rtol=1e-10)
    assert (tie < 1e-12).all()


# --- uniform and probit --------------------------------------------------------------------


def test_the_uniform_link_is_exactly_uniform_inside_its_support():
    margin = np.linspace(-0.85, 0.85, 69)
    for threshold in (1e-3, 0.02, 0.4):
        inside = np.abs(margin) + threshold <= 1.0 - Uniform.TAIL
        found = np.exp(Uniform().log_probabilities(margin[inside], threshold))
        first, second = 0.5 + 0.5 * (margin - threshold), 0.5 + 0.5 * (-margin - threshold)
        expected = np.stack([first, np.full(len(margin), threshold), second], axis=-1)[inside]
        assert len(expected) > 30
        assert_allclose(found, expected, rtol=1e-12)


def test_the_uniform_link_makes_no_vote_impossible():
    upset = Uniform().log_probabilities(-3.0, 0.5)
    assert np.isfinite(upset).all() and upset[0] < np.log(1e-6)


def test_the_compiled_normal_distribution_is_that_of_scipy():
    @njit
    def compiled_log_cdf(values):
        return np.array([log_normal_cdf(value) for value in values])

    x = np.concatenate([-np.logspace(-3, 3, 400), np.linspace(-30, 40, 1401)])
    assert_allclose(compiled_log_cdf(x), log_ndtr(x), rtol=1e-13, atol=1e-15)
    assert_allclose(log_normal_cdf(x), log_ndtr(x), rtol=0)


def test_the_slope_of_the_normal_distribution_keeps_its_digits_far_out():
    @njit
    def compiled_hazard(values):
        return np.array([normal_hazard(value) for value in values])

    near = np.linspace(-20, 20, 801)
    density = np.exp(-0.5 * near**2) / np.sqrt(2 * np.pi)
    far = -np.logspace(2, 8, 200)  # there it is |x| + 1/|x| - 2/|x|^3 + ...
    for hazard in (compiled_hazard, normal_hazard):
        assert_allclose(hazard(near), density / ndtr(near), rtol=1e-12)
        assert_allclose(hazard(far), -far - 1 / far + 2 / far**3, rtol=1e-9)
        assert_allclose(hazard(far[100:]), -far[100:], rtol=1e-9)
        assert hazard(np.array([100.0]))[0] == 0.0


# --- names ---------------------------------------------------------------------------------


def test_every_link_is_found_by_its_name_and_passes_through():
    assert {type(link_named(name)) for name in LINKS} == set(LINKS.values())
    assert {Logistic, Probit, Uniform} <= set(LINKS.values())
    own = Probit()
    assert link_named(own) is own


@pytest.mark.parametrize("wrong", ["gauss", None, ["probit"], Probit])
def test_an_unknown_link_is_refused_with_the_known_ones(wrong):
    with pytest.raises(ValueError, match="is not one of logistic, probit, uniform"):
        link_named(wrong)
