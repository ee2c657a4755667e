"""How surely the difference of two models is known: by the influence of every user on both."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.estimators import certainty
from isplitlbi.estimators.overlap import Matched, SharedVotes, difference_of
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.differences import own_variances
from studies import QUICK


def study(n_users=24, seed=0, **changes):
    settings = {"n_items": 5, "votes_per_user": (40, 40), "score_sd": 1.0, "threshold": 0.5}
    settings |= {"abnormal_share": 0.0, "taste_sd": 0.5}
    return simulate(n_users=n_users, **(settings | changes), random_state=seed).votes


def part(votes, rows):
    """Return some of the votes as a file of their own would have them."""
    return Comparisons.from_arrays(
        votes.users[votes.user[rows]], votes.items[votes.left[rows]],
        votes.items[votes.right[rows]], votes.outcome[rows],
    )  # fmt: skip


def matched(before, after):
    users, items = Matched.of(before.users, after.users), Matched.of(before.items, after.items)
    return users, items, SharedVotes.of(before, after, users, items)


def difference(before, after, method=MarginMLE):
    then, now = (method().fit(votes).footing() for votes in (before, after))
    return difference_of(then, now, *matched(before, after))


def quick():
    return ISplitLBI(**QUICK)


@pytest.fixture(scope="module")
def votes():
    return study()


# --- ids and votes -------------------------------------------------------------------------


def test_ids_that_are_numbers_in_one_model_and_texts_in_the_other_are_the_same():
    found = Matched.of(np.array([2, 10]), np.array(["10", "x"], dtype=object))
    assert found.ids.tolist() == ["10", 2, "x"]
    assert found.in_both.tolist() == [True, False, False]
    assert found.before.tolist() == [1, 0, -1]
    assert found.after.tolist() == [0, -1, 1]


def test_a_vote_is_shared_as_often_as_it_is_in_both():
    then = Comparisons.from_arrays(["a", "a", "b"], ["x"] * 3, ["y"] * 3, [1, 1, 0])
    now = Comparisons.from_arrays(["a", "a", "c"], ["x", "y", "x"], ["y", "x", "y"], [1, 1, 0])
    _, _, shared = matched(then, now)
    assert shared.before.tolist() == [2, 1, 0]
    assert shared.after.tolist() == [2, 0, 1]
    assert shared.common.tolist() == [1, 0, 0]
    assert not shared.are_the_same
    assert matched(then, then)[2].are_the_same


def test_votes_of_other_weights_are_other_votes():
    then, now = (
        Comparisons.from_arrays(["a", "b"], ["x"] * 2, ["y"] * 2, [1, 0], weight=[1.0, weight])
        for weight in (1.0, 2.0)
    )
    assert matched(then, now)[2].common.tolist() == [1, 0]


# --- the difference ------------------------------------------------------------------------


@pytest.mark.parametrize("method", [MarginMLE, quick])
def test_the_same_votes_differ_by_nothing(votes, method):
    found = difference(votes, part(votes, np.arange(len(votes))[::-1]), method)
    assert not found.estimate.any()
    assert not found.covariance.any()


@pytest.mark.parametrize("method", [MarginMLE, quick])
def test_of_other_users_the_variances_add_up(votes, method):
    before, after = part(votes, votes.user < 12), part(votes, votes.user >= 12)
    found = difference(before, after, method)
    both = sum(method().fit(each).standing().covariance for each in (before, after))
    assert_allclose(own_variances(found.covariance), own_variances(both), rtol=0.15)


@pytest.mark.parametrize("method", [MarginMLE, quick])
def test_the_more_votes_are_shared_the_less_a_difference_is_off(votes, method):
    widths = []
    for n_before in (12, 18, 23):
        before = part(votes, votes.user < n_before)
        widths.append(own_variances(difference(before, votes, method).covariance).mean())
    both = 2.0 * own_variances(method().fit(votes).standing().covariance).mean()
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.2 * both


def test_the_covariance_is_that_of_leaving_out_every_user_from_both_fits():
    votes = study(taste_sd=1.5, n_users=16)
    before = part(votes, votes.user < 12)
    found = difference(before, votes)

    def change(left_out):
        scores = [
            MarginMLE().fit(part(each, each.users[each.user] != left_out)).consensus_
            for each in (before, votes)
        ]
        off = scores[1] - scores[0]
        return off - off.mean()

    moved = np.array([change(user) for user in votes.users])
    slow = 0.0
    for some in (moved[:12], moved[12:]):  # in both fits, and in one
        off = some - some.mean(axis=0)
        slow = slow + off.T @ off * len(some) / (len(some) - 1) * (15 / 16) ** 2
    beside = np.eye(5) - 0.2
    fast = beside @ found.covariance @ beside
    assert_allclose(own_variances(fast), own_variances(slow), rtol=0.25)


def test_what_the_models_expect_of_more_votes_is_the_difference_of_their_variances():
    # All users are alike, so that leaving them out tells no more than the models expect.
    votes = study(taste_sd=0.0, n_users=150, seed=3)
    before = part(votes, votes.user < 100)
    then, now = (MarginMLE().fit(each).footing() for each in (before, votes))
    expected = [own_variances(each.evidence.expected[:5, :5]) for each in (then, now)]
    found = difference_of(then, now, *matched(before, votes))
    told = own_variances(found.covariance)
    assert np.all(told >= 0.9 * (expected[0] - expected[1]))
    assert_allclose(told.mean(), (expected[0] - expected[1]).mean(), rtol=0.4)


def test_that_new_users_see_an_item_otherwise_is_no_error_of_the_change():
    votes = study(taste_sd=0.0, n_users=40, seed=4)
    item, old = votes.items[1], votes.user < 30
    is_left, is_right = (votes.items[each] == item for each in (votes.left, votes.right))
    better = np.where(~old & is_left, 1, np.where(~old & is_right, -1, votes.outcome))
    turned = Comparisons.from_arrays(
        votes.users[votes.user], votes.items[votes.left], votes.items[votes.right], better
    )
    alike, otherwise = (difference(part(votes, old), each) for each in (votes, turned))
    assert otherwise.estimate[1] - otherwise.estimate.mean() > 0.3
    assert own_variances(otherwise.covariance)[1] < 2.0 * own_variances(alike.covariance)[1]


def test_a_sample_of_the_users_tells_about_the_same_as_all(votes, monkeypatch):
    before = part(votes, votes.user < 18)
    footings = [MarginMLE().fit(each).footing() for each in (before, votes)]
    whole = difference_of(*footings, *matched(before, votes))
    monkeypatch.setattr(certainty, "MOST_USERS", 12)
    some = difference_of(*footings, *matched(before, votes))
    assert_array_equal(some.estimate, whole.estimate)
    ratio = own_variances(some.covariance).mean() / own_variances(whole.covariance).mean()
    assert 0.5 < ratio < 2.0


def test_the_difference_the_other_way_round_is_the_same_with_another_sign(votes):
    before = part(votes, votes.user < 18)
    there, back = difference(before, votes, quick), difference(votes, before, quick)
    assert_allclose(there.estimate, -back.estimate)
    assert_allclose(there.covariance, back.covariance, atol=1e-12)
