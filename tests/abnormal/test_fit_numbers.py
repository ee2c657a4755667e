"""A few numbers for every user."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowds import SCORES, THRESHOLD, consensus_of, gather, vote
from isplitlbi.abnormal.expectation import Answers
from isplitlbi.abnormal.explain import PRIOR_VARIANCE
from isplitlbi.abnormal.fit_numbers import fit_numbers
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.local import Local


def fitted_to(votes, start, free, delta=1e-3):
    """Fit slope, side and threshold."""
    answers = Answers.of(votes)
    margin = answers.margin(consensus_of(SCORES, THRESHOLD))
    columns = np.stack([margin, np.ones_like(margin)])
    return fit_numbers(
        Logistic(), answers.weighted, answers.user, columns, start, free, PRIOR_VARIANCE, delta,
        Local(votes),
    )  # fmt: skip


def test_slope_side_and_threshold_are_recovered_from_many_votes():
    rng = np.random.default_rng(5)
    numbers = np.array([[1.0, 0.0, 0.8], [-0.7, 0.5, 1.2], [0.0, -1.0, 0.3], [2.0, 0.3, 2.0]])
    votes = gather(
        {f"u{k}": vote(rng, 20_000, a * SCORES, t, b) for k, (a, b, t) in enumerate(numbers)}
    )
    start = np.tile([1.0, 0.0, THRESHOLD], (4, 1))
    fitted, likelihood = fitted_to(votes, start, (0, 1, 2))
    assert_allclose(fitted, numbers, atol=0.08)
    held, less = fitted_to(votes, start, (0,))
    assert_array_equal(held[:, 1:], start[:, 1:])
    assert_allclose(held[0, 0], 1.0, atol=0.05)
    assert np.all(less <= likelihood + 1e-3)
    assert np.all(less[1:] < likelihood[1:] - 10)


def test_a_threshold_is_never_below_the_smallest():
    rng = np.random.default_rng(6)
    votes = gather({"u": vote(rng, 500, threshold=0.0)})
    start = np.array([[1.0, 0.0, THRESHOLD]])
    fitted, _ = fitted_to(votes, start, (0, 1, 2), 0.05)
    ((slope, side, threshold),) = fitted
    assert threshold == 0.05
    assert slope == pytest.approx(1.0, abs=0.3)
    assert side == pytest.approx(0.0, abs=0.3)
