"""The users of a model: tested once for each rate, remembered, and left out."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from crowds import KIND_OF, QUICK, assert_same, crowd_model, reversing_crowd
from isplitlbi import InvalidVotes, ISplitLBI
from isplitlbi.abnormal import UNTRUSTWORTHY, find_effect
from isplitlbi.errors import InvalidSetting
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


def test_the_abnormal_users_are_the_flagged_in_order_of_entry(model):
    table = users_table(model)
    assert table.filter("abnormal")["user"].to_list() == model.abnormal_users_
    entry = dict(zip(model.users_.tolist(), model.entry_times_, strict=True))
    times = [entry[user] for user in model.abnormal_users_]
    assert times == sorted(times)
    assert set(model.abnormal_users_) == set(model.users_[model.abnormality_.flagged])
    assert set(KIND_OF) <= set(model.abnormal_users_)


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
    for ask in (twin.test_users, twin.effect_of_leaving_out, lambda: twin.abnormal_users_):
        with pytest.raises(NotFittedError):
            ask()


def test_the_effect_is_that_of_the_users_asked_about(model):
    found = model.abnormality_
    everybody, some = model.effect_of_leaving_out(), model.effect_of_leaving_out(UNTRUSTWORTHY)
    assert everybody.left_out == model.users_[found.flagged].tolist()
    kind = dict(zip(model.users_.tolist(), found.kind, strict=True))
    assert some.left_out == [user for user in everybody.left_out if kind[user] in UNTRUSTWORTHY]
    assert 0 < len(some.left_out) < len(everybody.left_out)
    assert model.effect_of_leaving_out(fdr=1e-9).left_out == []
    assert model.effect_of_leaving_out(["reversed"]).left_out == ["reversed"]
    assert_same(
        everybody,
        find_effect(model.votes(), model.link_, found.flagged, terms=found.consensus.terms),
    )


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
    with pytest.raises(InvalidVotes, match="has no votes in this model"):
        model.telling_votes("nobody")
