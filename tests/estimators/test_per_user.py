"""A model per user: own tastes come back, and the ridge is chosen."""

import numpy as np
import pytest

from isplitlbi import MarginMLE, PerUser
from isplitlbi.data.splits import held_out_parts
from studies import columns_of, drawn_by_users

RIDGES = (0.003, 0.1, 3.0)


@pytest.fixture(scope="module")
def two_camps():
    """Six users, the odd ones of whom see five items upside down."""
    scores = np.linspace(-2.0, 2.0, 5)
    return drawn_by_users([scores * (-1) ** user for user in range(6)], n_votes=900, n_users=6)


def test_only_a_model_per_user_sees_two_camps(two_camps):
    own, common = PerUser(RIDGES, n_folds=2).fit(two_camps), MarginMLE().fit(two_camps)
    for user in range(6):
        scores = own.parameters_.scores_of(user)
        order = np.arange(5) if user % 2 == 0 else np.arange(5)[::-1]
        np.testing.assert_array_equal(np.argsort(scores), order)
    assert own.score(two_camps) > 0.75
    assert common.score(two_camps) < 0.5


def test_many_votes_of_a_user_give_back_her_own_scores_and_threshold():
    scores = np.array([[-1.0, 0.0, 1.0], [1.5, 0.0, -1.5]])
    thresholds = [0.3, 1.2]
    votes = drawn_by_users(scores, n_votes=4000, n_users=2, threshold=thresholds)
    found = PerUser(0.1).fit(votes).parameters_
    for user in range(2):
        np.testing.assert_allclose(found.scores_of(user), scores[user], atol=0.15)
        assert found.threshold_of(user) == pytest.approx(thresholds[user], abs=0.1)


def test_the_ridge_with_the_least_held_out_loss_is_chosen(votes):
    model = PerUser(RIDGES, n_folds=3, random_state=4).fit(votes)
    losses = []
    for ridge in RIDGES:
        loss = 0.0
        for training, held_out in held_out_parts(votes, 3, 4):
            X, y = columns_of(held_out)
            chances = PerUser(ridge).fit(training).predict_log_proba(X)
            loss -= chances[np.arange(len(y)), y + 1].sum()
        losses.append(loss)
    assert model.ridge_ == RIDGES[int(np.argmin(losses))] == 0.1
    alone = PerUser(model.ridge_).fit(votes)
    np.testing.assert_allclose(model.parameters_.deviation, alone.parameters_.deviation, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, -1.0, [], [0.1, 0.0], np.nan])
def test_a_ridge_that_is_not_positive_is_an_error(votes, ridge):
    with pytest.raises(ValueError, match=r"ridge is .* must be positive"):
        PerUser(ridge).fit(votes)


def test_to_a_model_per_user_strangers_are_indifferent(study):
    votes, ridge = study.votes, 0.1
    left, right = votes.items[:2]
    (chances,) = PerUser(ridge).fit(votes).predict_proba([("nobody", left, right)])
    assert chances[0] == pytest.approx(chances[2])
    threshold = MarginMLE().fit(votes).threshold_
    assert chances[2] == pytest.approx(1 / (1 + np.exp(threshold)))
