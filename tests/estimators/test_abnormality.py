"""The users of a model: tested once for each rate, remembered, and left out."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from crowds import (
    KIND_OF,
    QUICK,
    UNRELIABLE_USERS,
    assert_same,
    centred,
    crowd_model,
    reversing_crowd,
)
from isplitlbi import LBI, InvalidVotes, ISplitLBI, MarginMLE, PerUser
from isplitlbi.abnormal import LISTS
from isplitlbi.errors import InvalidSetting
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.tables import users_table


@pytest.fixture(scope="module")
def model():
    return crowd_model()


@pytest.fixture(scope="module")
def reversing():
    return reversing_crowd()


@pytest.fixture
def untested(model):
    """Return a model whose users are not tested yet."""
    return pickle.loads(pickle.dumps(model)).adopt(model.fitted_)


def test_users_are_tested_once_per_false_discovery_rate(untested):
    assert not hasattr(untested, "abnormality_")
    found = untested.test_users()
    assert untested.abnormality_ is untested.test_users(0.05) is found
    assert untested.test_users(0.2) is untested.test_users(0.2)
    assert (found.fdr, untested.test_users(0.2).fdr) == (0.05, 0.2)
    assert untested.abnormality_ is found


def test_another_fit_forgets_what_was_found(model, reversing):
    again = clone(model).fit(model.votes())
    before = again.abnormality_
    again.fit(reversing.votes)
    assert again.abnormality_ is not before
    assert len(again.abnormality_.p_value) == reversing.votes.n_users


def test_the_models_false_discovery_rate_is_used(model):
    strict, lenient = (clone(model).set_params(fdr=fdr).fit(model.votes()) for fdr in (1e-3, 0.5))
    assert strict.abnormality_.fdr == 1e-3
    assert set(strict.abnormal_users_) < set(lenient.abnormal_users_)
    assert strict.test_users(0.5).flagged.sum() == len(lenient.abnormal_users_)


def test_the_lists_are_those_of_the_tests_and_the_largest_effect_is_first(model):
    found, names = model.abnormality_, (model.unreliable_users_, model.different_users_)
    for listed, users in zip(map(found.on, LISTS), names, strict=True):
        assert set(users) == set(model.users_[listed])
    assert set(model.abnormal_users_) == set(model.users_[found.flagged])
    assert sorted(model.abnormal_users_) == sorted(names[0] + names[1])
    effect = dict(zip(model.users_.tolist(), found.effect, strict=True))
    for users in (model.abnormal_users_, *names):
        effects = [effect[user] for user in users]
        assert effects == sorted(effects, reverse=True)
    departing = set(KIND_OF) & set(model.users_)
    assert set(model.unreliable_users_) >= departing & UNRELIABLE_USERS
    assert set(model.different_users_) >= departing - UNRELIABLE_USERS
    assert users_table(model).filter("abnormal")["user"].to_list() == names[0] + names[1]


def test_the_model_tells_progress_and_takes_its_seed(untested, model):
    shares = []
    untested.set_params(random_state=1)
    other = untested.test_users(progress=shares.append)
    assert shares[-1] == 1.0
    assert not np.array_equal(other.p_value, model.abnormality_.p_value)


def test_a_pickled_model_remembers_what_was_found(model):
    restored = pickle.loads(pickle.dumps(model))
    assert_same(restored.abnormality_, model.abnormality_)
    assert restored.test_users() is restored.abnormality_
    assert restored.abnormal_users_ == model.abnormal_users_


def test_a_clone_has_the_settings_and_nothing_else(model):
    twin = clone(model.set_params(fdr=0.05))
    assert twin.fdr == 0.05
    for ask in (
        twin.test_users, twin.effect_of_leaving_out,
        lambda: twin.abnormal_users_, lambda: twin.unreliable_users_, lambda: twin.different_users_,
    ):  # fmt: skip
        with pytest.raises(NotFittedError):
            ask()


def test_the_effect_is_that_of_the_users_asked_about(model):
    found = model.abnormality_

    def left_out(*arguments, **more):
        return set(model.effect_of_leaving_out(*arguments, **more).left_out)

    assert left_out() == left_out(lists=["unreliable"]) == set(model.unreliable_users_)
    assert left_out(lists=["different"]) == set(model.different_users_)
    assert left_out(lists=LISTS) == set(model.users_[found.flagged])
    assert 0 < len(model.unreliable_users_) < len(model.abnormal_users_)
    assert left_out(fdr=1e-9) == set()
    assert left_out(["reversed"]) == {"reversed"}
    assert left_out(["blunter"]) == {"blunter"}  # of both lists, where kinds are given
    assert left_out(["blunter", "reversed"], lists=["different"]) == {"blunter"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"kinds": ["evil"]}, "kind 'evil' is not one of reversed, careless"),
        ({"lists": ["evil"]}, "list 'evil' is not one of unreliable, different"),
    ],
)
def test_an_effect_of_unknown_users_is_refused(model, arguments, complaint):
    with pytest.raises(InvalidSetting, match=complaint):
        model.effect_of_leaving_out(**arguments)


def same_as_ranking(effect, model):
    """Assert that the consensus with everybody is the one that the model ranks items by."""
    ranking = model.ranking()
    np.testing.assert_array_equal(effect.items, ranking.items)
    np.testing.assert_array_equal(effect.score_with, ranking.scores)
    np.testing.assert_array_equal(effect.rank_with, np.arange(1, len(ranking) + 1))
    np.testing.assert_array_equal(effect.tier_with, ranking.tier)


@pytest.mark.parametrize(
    "method",
    [
        ISplitLBI(n_folds=2, n_jobs=1), ISplitLBI(terms="paper", n_folds=2, n_jobs=1),
        LBI(n_folds=2, n_jobs=1), MarginMLE(), PerUser(),
    ],
    ids=["all terms", "paper", "LBI", "MarginMLE", "PerUser"],
)  # fmt: skip
def test_the_effect_has_one_estimator_the_models_own(method, few_votes):
    votes = few_votes.votes
    model = clone(method).fit(votes)
    effect = model.effect_of_leaving_out(lists=LISTS)
    same_as_ranking(effect, model)
    # The same votes once more: nothing is chosen anew, and nothing else is found.
    again = model.refit_without(fdr=1e-9)
    np.testing.assert_array_equal(again.consensus_, model.consensus_)
    np.testing.assert_array_equal(again.parameters_.deviation, model.parameters_.deviation)
    np.testing.assert_array_equal(again.leaderboard().low, model.leaderboard().low)
    nobody = model.effect_of_leaving_out(fdr=1e-9)
    same_as_ranking(nobody, model)
    assert nobody.left_out == []
    np.testing.assert_array_equal(nobody.score_without, nobody.score_with)
    np.testing.assert_array_equal(nobody.rank_without, nobody.rank_with)
    np.testing.assert_array_equal(nobody.tier_without, nobody.tier_with)


@pytest.fixture(scope="module")
def few_votes():
    """Draw a study of many items and few votes on each, where estimators disagree."""
    return simulate(
        n_users=50, n_items=30, votes_per_user=(30, 50), score_sd=1.0, threshold=0.6,
        malicious={"reversed": 0.1}, random_state=7,
    )  # fmt: skip


def test_the_consensus_without_users_is_that_of_the_others_at_the_same_time(few_votes):
    votes, truth = few_votes
    model = ISplitLBI(n_folds=2).fit(votes)
    effect = model.effect_of_leaving_out()
    left_out = np.isin(model.users_, model.unreliable_users_)
    assert 0 < left_out.sum() < 20
    without = model.refit_without()
    assert without.votes().n_votes == np.count_nonzero(~left_out[votes.user]) < len(votes)
    assert without.items_.tolist() == model.items_.tolist()
    others = without.consensus_
    place = {item: place for place, item in enumerate(model.items_)}
    scores = others[[place[item] for item in effect.items]]
    np.testing.assert_allclose(centred(effect.score_without), centred(scores), atol=1e-12)
    true = centred(truth.scores)[[place[item] for item in effect.items]]
    # The scale of scores is the model's own: what counts is the direction.
    close = [
        np.corrcoef(scores, true)[0, 1] for scores in (effect.score_with, effect.score_without)
    ]
    assert close[1] > close[0]


def test_a_model_refuses_an_impossible_false_discovery_rate(model):
    with pytest.raises(InvalidSetting, match=r"fdr is 2\.0; it must lie between 0 and 1"):
        model.test_users(fdr=2.0)


def test_a_rate_that_is_none_is_refused_before_the_fit(reversing):
    with pytest.raises(InvalidSetting, match="fdr is 2"):
        ISplitLBI(**QUICK, fdr=2).fit(reversing.votes)


def test_the_telling_votes_of_a_user_are_those_the_consensus_least_expected(model):
    user = model.abnormal_users_[0]
    told = model.telling_votes(user, most=5)
    chances = [vote.probability for vote in told]
    assert len(told) == 5
    assert chances == sorted(chances)
    index = int(np.flatnonzero(model.users_ == user)[0])
    votes = model.votes()
    mine = votes.subset(votes.user == index)
    pairs = set(
        zip(votes.items[mine.left], votes.items[mine.right], mine.outcome.tolist(), strict=True)
    )
    assert {(vote.left, vote.right, vote.outcome) for vote in told} <= pairs
    consensus = model.abnormality_.consensus
    for vote in told:
        left, right = (int(np.flatnonzero(model.items_ == i)[0]) for i in (vote.left, vote.right))
        shown = consensus.margin_and_threshold(np.array([left]), np.array([right]))
        expected = np.exp(model.link_.log_probabilities(*shown))[0]
        assert vote.probability == pytest.approx(float(expected[1 - vote.outcome]))
    with pytest.raises(InvalidVotes, match="is not among the 83 users"):
        model.telling_votes("nobody")
