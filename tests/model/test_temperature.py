"""How sure a model is: the best power of probabilities, and what is told of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.model.answering import NEVER
from isplitlbi.model.temperature import (
    LEAST_POWER,
    MOST_POWER,
    Powers,
    best_power,
    log_probability_at,
)

POWERS = np.exp(np.linspace(np.log(LEAST_POWER), np.log(MOST_POWER), 20_001))


def drawn(seed, n_votes, n_outcomes, spread, power):
    """Draw votes that are predicted best by about that power of some probabilities."""
    rng = np.random.default_rng(seed)
    log = rng.normal(scale=spread, size=(n_votes, n_outcomes))
    log -= np.log(np.exp(log).sum(axis=1, keepdims=True))
    true = np.exp(power * log)
    true /= true.sum(axis=1, keepdims=True)
    return log, (rng.random(n_votes)[:, None] > true.cumsum(axis=1)).sum(axis=1)


def loss_at(log, happened, power):
    raised = power * log
    beside = raised[np.arange(len(log)), happened] - raised.max(axis=1)
    return np.sum(np.log(np.exp(raised - raised.max(axis=1)[:, None]).sum(axis=1)) - beside)


def derivatives_of(log, happened):
    def derivatives(power):
        mean, variance = log_probability_at(log, power)
        return np.sum(mean - log[np.arange(len(log)), happened]), np.sum(variance)

    return derivatives


@given(
    seed=st.integers(0, 2**32 - 1), n_outcomes=st.sampled_from([2, 3]),
    spread=st.sampled_from([0.1, 1.0, 10.0]), power=st.sampled_from([0.2, 0.8, 1.5, 6.0]),
    start=st.sampled_from([LEAST_POWER, 1.0, MOST_POWER]),
)  # fmt: skip
def test_newtons_power_is_the_best_of_all(seed, n_outcomes, spread, power, start):
    log, happened = drawn(seed, 60, n_outcomes, spread, power)
    found, bend = best_power(derivatives_of(log, happened), start)
    losses = [loss_at(log, happened, each) for each in POWERS[::20]]
    # What a wrong digit of the power costs is nothing beside a unit of log-likelihood.
    assert loss_at(log, happened, found) <= min(losses) + 1e-3
    assert bend >= 0.0


def test_from_close_by_one_evaluation_is_enough():
    log, happened = drawn(1, 500, 3, 1.0, 0.7)
    derivatives, asked = derivatives_of(log, happened), []
    best = best_power(derivatives)[0]
    for _ in range(2):
        best = best_power(derivatives, best)[0]

    def counted(power):
        asked.append(power)
        return derivatives(power)

    assert best_power(counted, 1.01 * best)[0] == pytest.approx(best, rel=2e-3)
    assert len(asked) == 1


def test_votes_that_are_all_predicted_surely_take_the_largest_power():
    log = np.log(np.array([[0.9, 0.1], [0.2, 0.8]]))
    assert best_power(derivatives_of(log, np.array([0, 1])))[0] == pytest.approx(MOST_POWER)
    assert best_power(derivatives_of(log, np.array([1, 0])))[0] == pytest.approx(LEAST_POWER)


def test_probabilities_that_are_all_even_leave_the_power_as_it_is():
    log = np.log(np.full((3, 2), 0.5))
    assert best_power(derivatives_of(log, np.array([0, 1, 1]))) == pytest.approx((1.0, 0.0))


def test_an_outcome_that_never_occurs_counts_for_nothing():
    two, _ = drawn(0, 20, 2, 1.0, 1.0)
    three = np.insert(two, 1, NEVER, axis=1)
    for power in (LEAST_POWER, 1.0, MOST_POWER):
        np.testing.assert_allclose(log_probability_at(two, power), log_probability_at(three, power))


def test_folds_are_pooled_to_what_is_best_for_all_of_their_votes():
    folds = [drawn(seed, 400, 3, 1.0, 0.6) for seed in range(5)]
    alone = np.array([best_power(derivatives_of(*fold)) for fold in folds])
    powers = Powers(*alone.T[..., None])
    log, happened = (np.concatenate(each) for each in zip(*folds, strict=True))
    together = POWERS[np.argmin([loss_at(log, happened, each) for each in POWERS[::5]]) * 5]
    assert 1.0 / powers.temperature[0] == pytest.approx(together, rel=0.01)
    assert abs(np.log(0.6 * powers.temperature[0])) < 4.0 * powers.error[0]


def test_a_fold_whose_votes_tell_nothing_counts_for_nothing():
    powers = Powers(np.array([[0.5], [8.0]]), np.array([[100.0], [0.0]]))
    assert powers.temperature[0] == pytest.approx(2.0)
    nothing = Powers(np.ones((2, 1)), np.zeros((2, 1)))
    assert nothing.temperature[0] == 1.0
    assert np.isinf(nothing.error[0])
