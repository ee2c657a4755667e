"""How many camps are found, and who is in which."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from in_camps import model_of, people
from isplitlbi.camps import choice
from isplitlbi.camps.ballots import Ballots
from isplitlbi.camps.choice import find_camps
from isplitlbi.data.splits import in_order


def found_in(votes, most=2, seed=0):
    model, votes = model_of(votes), in_order(votes)
    ballots = Ballots.of(votes, model.parameters_, model.link_)
    return find_camps(votes, ballots, model.consensus_, most, seed)


@pytest.mark.parametrize(("n_camps", "seed"), [(2, 4), (3, 3)])
def test_camps_are_found_and_so_is_who_is_in_them(n_camps, seed):
    votes, camp = people(n_camps, seed=seed, n_users=60)
    found = found_in(votes, most=n_camps)
    assert found.chosen.account.n_camps == n_camps
    assert adjusted_rand_score(camp, found.of_users.argmax(axis=1)) > 0.9


@pytest.mark.parametrize(
    "people_are",
    [{}, {"taste": 0.6}, {"line": 1.0}, {"careless": 0.2}],
    ids=["alike", "of own taste", "along a line", "careless in part"],
)
def test_people_without_camps_are_one(people_are):
    found = found_in(people(seed=11, **people_are)[0])
    assert found.chosen is found.single
    assert found.mixture.n_camps == 1


def test_people_along_a_line_are_predicted_better_by_an_axis_than_by_camps():
    found = found_in(people(seed=11, line=1.0, n_users=60)[0])
    camps, axes = (
        min(each.loss.sum() for each in found.trials if is_of(each.account))
        for is_of in (lambda account: account.n_camps > 1, lambda account: account.n_axes)
    )
    assert axes < camps < found.single.loss.sum()


@pytest.mark.parametrize(
    ("people_are", "has_gaps"),
    [({"n_camps": 2}, True), ({"line": 1.0}, False)],
    ids=["two camps", "along a line"],
)
def test_people_who_were_held_out_show_whether_there_are_gaps(people_are, has_gaps):
    votes, _ = people(seed=12, n_users=60, **people_are)
    model, votes = model_of(votes), in_order(votes)
    ballots = Ballots.of(votes, model.parameters_, model.link_)
    search = choice._Search(votes, ballots, model.consensus_, 0)
    camps, line = (search.trial(choice.Account(*each)) for each in ((2, 0), (1, 1)))
    assert search.has_gaps(camps, [line]) == has_gaps


def test_the_careless_are_in_no_camp():
    votes, camp = people(2, seed=3, careless=0.2)
    found = found_in(votes)
    is_careless = found.of_users.argmax(axis=1) == 2
    assert found.chosen.account.n_camps == 2
    assert np.mean(is_careless == (camp < 0)) > 0.9


def test_users_dealt_to_parts_are_placed_as_if_they_were_one(monkeypatch):
    votes, camp = people(2, seed=4)
    monkeypatch.setattr(choice, "MOST_NUMBERS", 8 * 8 * 30)
    found = found_in(votes)
    assert 0 < found.fitted.sum() < len(found.fitted)
    assert adjusted_rand_score(camp, found.of_users.argmax(axis=1)) > 0.9
    assert not found.chosen.loss[~found.fitted].any()
