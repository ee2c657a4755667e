"""Where items stand for the people whom the users stand for."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isplitlbi import ISplitLBI
from isplitlbi.estimators import MarginMLE, standing
from isplitlbi.estimators.certainty import Certainty
from isplitlbi.estimators.standing import standing_of
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.differences import student


def study(seed=0, **changes):
    settings = {"n_users": 60, "n_items": 8, "votes_per_user": (30, 30), "score_sd": 1.2}
    settings |= {"threshold": 0.5, "abnormal_share": 0.0, "taste_sd": 0.7}
    return simulate(**(settings | changes), random_state=seed)


@pytest.fixture(scope="module")
def spread():
    drawn = study()
    return drawn, ISplitLBI(with_tests=False).fit(drawn.votes)


def centred(scores):
    return scores - scores.mean()


def scale(found, truth):
    """Return by which factor scores are further apart than in truth."""
    return float(centred(found) @ centred(truth) / np.sum(centred(truth) ** 2))


def test_where_tastes_spread_the_fit_draws_scores_together_and_this_does_not():
    fitted, found = [], []
    for seed in range(4):
        drawn = study(seed, n_users=120)
        model = ISplitLBI(with_tests=False).fit(drawn.votes)
        fitted.append(scale(model.consensus_, drawn.truth.scores))
        standing = standing_of(drawn.votes, model.fitted_)
        found.append(scale(standing.estimate, drawn.truth.scores))
    assert np.mean(fitted) < 0.95
    assert np.mean(found) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("taste_sd", [0.0, 0.7])
def test_differences_of_scores_are_covered(taste_sd):
    held = []
    for seed in range(10, 18):
        drawn = study(seed, taste_sd=taste_sd, n_users=40)
        model = ISplitLBI(with_tests=False).fit(drawn.votes)
        found = standing_of(drawn.votes, model.fitted_)
        error, own = found.estimate - drawn.truth.scores, np.diag(found.covariance)
        sd = np.sqrt(own[:, None] + own - 2 * found.covariance + 1e-12)
        pairs = np.triu_indices(len(error), 1)
        off = np.abs(error[:, None] - error)[pairs] / sd[pairs]
        held.append(np.mean(off <= student(found.freedom, 0.975)))
    assert 0.88 <= np.mean(held) <= 1.0


def test_the_order_of_rows_changes_nothing(spread):
    drawn, model = spread
    order = np.random.default_rng(0).permutation(len(drawn.votes))
    again = ISplitLBI(with_tests=False).fit(drawn.votes.subset(order))
    one, other = (
        standing_of(votes, fit.fitted_)
        for votes, fit in ((drawn.votes, model), (again.votes(), again))
    )
    for part, same in zip(one, other, strict=True):
        assert_allclose(part, same, atol=1e-8)


def test_some_of_very_many_users_tell_nearly_the_same(spread, monkeypatch):
    drawn, model = spread
    whole = standing_of(drawn.votes, model.fitted_)
    monkeypatch.setattr(standing, "ENOUGH_USERS", 40)
    monkeypatch.setattr(standing, "MOST_USERS", 50)
    some = standing_of(drawn.votes, model.fitted_)
    assert_allclose(some.estimate, whole.estimate, atol=0.1)
    ratio = np.sqrt(np.diag(some.covariance) / np.diag(whole.covariance))
    assert np.all((ratio > 0.7) & (ratio < 1.4))


def test_an_estimator_without_a_path_is_as_sure_as_its_votes_let_it(spread):
    drawn, _ = spread
    model = MarginMLE().fit(drawn.votes)
    found = standing_of(drawn.votes, model.fitted_)
    expected = Certainty.of(drawn.votes, model.fitted_).scores()
    assert_allclose(found.estimate, model.consensus_)
    assert_allclose(found.covariance, expected.covariance)


def test_a_single_user_has_the_errors_that_the_model_expects(spread):
    drawn, _ = spread
    votes = replace(drawn.votes.subset(drawn.votes.user == 0))
    model = ISplitLBI(with_tests=False, n_folds=2).fit(votes)
    found = standing_of(model.votes(), model.fitted_)
    assert np.isinf(found.freedom)
    assert np.all(np.diag(found.covariance) > 0.0)
