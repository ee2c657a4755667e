"""Where items stand for the people whom the users stand for."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isplitlbi import Comparisons, ISplitLBI
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


def camps(seed, n_users=120, n_items=8, sd=1.0):
    """Return votes of two camps that differ in one way, and the mean scores of both."""
    rng = np.random.default_rng(seed)
    scores, way = rng.normal(0.0, 1.2, n_items), rng.normal(0.0, sd, n_items)
    of_users = scores + np.where(rng.random((n_users, 1)) < 0.5, way, -way)
    user = np.repeat(np.arange(n_users), 30)
    left = rng.integers(n_items, size=user.size)
    right = (left + rng.integers(1, n_items, size=user.size)) % n_items
    margin = of_users[user, left] - of_users[user, right] + rng.logistic(size=user.size)
    outcome = (margin > 0.5).astype(int) - (margin <= -0.5)
    return Comparisons.from_arrays(user, left, right, outcome), scores, way


def rounds_of(votes, model):
    voters = np.flatnonzero(votes.votes_per_user)
    return standing._Rounds(votes, model.fitted_, voters, model.nu_).settled()


def test_two_camps_differ_in_one_way_and_people_with_tastes_of_their_own_do_not(spread):
    votes, _, way = camps(3)
    taste = rounds_of(votes, ISplitLBI(with_tests=False).fit(votes)).of_tastes()
    values, vectors = np.linalg.eigh(taste)
    assert abs(np.corrcoef(vectors[:, -1], way)[0, 1]) > 0.95
    assert values[-1] == pytest.approx(np.sum(centred(way) ** 2), rel=0.5)
    assert_allclose(values[:-1], values[0])  # in every other way they are alike
    drawn, model = spread
    assert rounds_of(drawn.votes, model).of_tastes() is None


def test_the_scores_of_two_camps_are_nearer_to_the_truth_for_it(monkeypatch):
    errors = {True: [], False: []}
    for seed in range(4):
        votes, scores, _ = camps(seed)
        fitted = ISplitLBI(with_tests=False).fit(votes).fitted_
        for knows in (True, False):
            monkeypatch.setattr(standing, "MOST_ITEMS", 100 if knows else 0)
            error = centred(standing_of(votes, fitted).estimate) - centred(scores)
            errors[knows].append(np.mean(error**2))
    assert np.mean(errors[True]) < np.mean(errors[False])


def test_an_item_with_three_votes_may_be_anywhere_among_the_others():
    drawn = study(5, n_users=40, taste_sd=0.3)
    users, items = drawn.votes.users[drawn.votes.user], drawn.votes.items
    left, right = items[drawn.votes.left], items[drawn.votes.right]
    rare = Comparisons.from_arrays(
        [*users, *users[[0, 40, 80]]], [*left, "rare", "rare", "rare"], [*right, *items[:3]],
        [*drawn.votes.outcome, 1, 0, -1],
    )  # fmt: skip
    model = ISplitLBI(with_tests=False).fit(rare)
    found = standing_of(rare, model.fitted_)
    at, others = rare.items.tolist().index("rare"), drawn.truth.scores
    assert found.prior_variance > np.var(others)  # it is known from few items
    assert found.covariance[at, at] > 4 * np.median(np.diag(found.covariance))
    assert model.leaderboard().rank[-1] == 0 and model.leaderboard().items[-1] == "rare"


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_taste_that_all_share_is_no_way_in_which_people_differ(is_shared):
    n_items, n_users, usual = 6, 20, 0.2 * np.eye(6)
    way = np.array([1.0, -1.0, 0.5, -0.5, 0.0, 0.0])
    told = standing._Told.of(usual)
    for user in range(n_users):
        mean = way if is_shared or user % 2 else -way
        told.note(SimpleNamespace(
            place=np.arange(n_items), units=np.ones(n_items), inverse=0.05 * np.eye(n_items)
        ), mean)  # fmt: skip
    along = way @ told.learned(usual) @ way / (way @ way)
    assert (along < 0.3) if is_shared else (along > 1.0)
