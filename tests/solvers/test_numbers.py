"""Three numbers of every user, between the consensus and the user's votes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowds import SCORES, THRESHOLD, consensus_of, gather, vote
from isplitlbi.model.links import Logistic
from isplitlbi.solvers.common import NUMBERS, SLOPE, fit_numbers

LINK, CONSENSUS = Logistic(), consensus_of(SCORES, THRESHOLD)


def test_slope_side_and_threshold_are_recovered_from_many_votes():
    rng = np.random.default_rng(5)
    numbers = np.array([[1.0, 0.0, 0.8], [-0.7, 0.5, 1.2], [0.0, -1.0, 0.3], [2.0, 0.3, 2.0]])
    votes = gather(
        {f"u{k}": vote(rng, 20_000, a * SCORES, t, b) for k, (a, b, t) in enumerate(numbers)}
    )
    fitted = fit_numbers(votes, LINK, CONSENSUS, NUMBERS, variance=25.0)
    assert_allclose(np.stack(fitted, axis=1), numbers, atol=0.08)
    held = fit_numbers(votes, LINK, CONSENSUS, (SLOPE,), variance=25.0)
    assert_allclose(held.side, 0.0, atol=1e-6)
    assert_allclose(held.threshold, THRESHOLD, atol=1e-6)
    assert_allclose(held.slope[0], 1.0, atol=0.05)


def test_a_threshold_is_never_below_the_smallest():
    votes = gather({"u": vote(np.random.default_rng(6), 500, threshold=0.0)})
    fitted = fit_numbers(votes, LINK, CONSENSUS, NUMBERS, variance=25.0, delta=0.05)
    assert fitted.threshold[0] == pytest.approx(0.05, abs=1e-12)
    assert fitted.slope[0] == pytest.approx(1.0, abs=0.3)
    assert fitted.side[0] == pytest.approx(0.0, abs=0.3)
