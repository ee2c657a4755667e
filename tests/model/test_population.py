"""What is probable for somebody unknown."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi.data.layout import Shown
from isplitlbi.model import population as module
from isplitlbi.model.answering import log_probabilities
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.population import ITEMS_OF_OTHERS, TRUST, Population
from isplitlbi.model.terms import PAPER, Terms
from votes import random_votes

# All that a model may have; the paper's; and forced choice.
TERMS = {
    "all": Terms.named("all").referring(np.linspace(-1.0, 1.0, 4)),
    "paper": PAPER,
    "forced": Terms.named(["taste", "sharpness"], has_ties=False).referring(np.linspace(1, -1, 4)),
}


def drawn(terms=TERMS["all"], n_users=6, seed=0, spread=1.0):
    """Return votes, and parameters of the users who gave them."""
    tie_share = 0.2 if terms.has_ties else 0.0
    votes = random_votes(seed, n_users=n_users, n_votes=10 * n_users, tie_share=tie_share)
    layout, rng = terms.layout(votes), np.random.default_rng(seed)
    consensus = rng.normal(size=layout.vector.width) * terms.is_common(layout.vector)
    deviation = spread * rng.normal(size=layout.n_slots)
    if terms.ties == "bounded":
        consensus[layout.vector.threshold] = 1.0
        deviation[layout.slots.threshold] = rng.uniform(-0.5, 0.5, n_users)
    return votes, Parameters(layout.vector, layout.slots, consensus, deviation, terms)


def all_pairs(votes):
    left, right = np.nonzero(~np.eye(votes.n_items, dtype=bool))
    return Shown(left, right)


def of_user(parameters, link, user, shown):
    """Return what a user's own parameters say."""
    margin, threshold = parameters.of_user(user).margin_and_threshold(*shown[:2], shown)
    return log_probabilities(link, margin, threshold, has_ties=parameters.terms.has_ties)


@pytest.mark.parametrize("link", LINKS.values())
@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
def test_it_is_the_mean_of_what_is_probable_for_everybody(terms, link):
    votes, parameters = drawn(terms)
    shown = all_pairs(votes)
    found = Population.of(parameters, link()).log_probabilities(shown)
    compared = np.array([parameters.compared_by(user).sum() for user in range(votes.n_users)])
    weight = compared / (compared + ITEMS_OF_OTHERS)
    own = [np.exp(of_user(parameters, link(), user, shown)) for user in range(votes.n_users)]
    assert_allclose(np.exp(found), np.einsum("u,upk->pk", weight / weight.sum(), own), rtol=1e-11)
    assert_allclose(np.exp(found).sum(axis=1), 1.0, rtol=1e-12)
    assert np.all(np.exp(found[:, 1]) > 0.0) == terms.has_ties


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
def test_where_all_are_alike_it_is_the_consensus(terms):
    votes, parameters = drawn(terms, spread=0.0)
    parameters = replace(parameters, deviation=np.zeros_like(parameters.deviation))
    shown = all_pairs(votes)
    found = Population.of(parameters, Logistic()).log_probabilities(shown)
    assert_array_equal(found, of_user(parameters, Logistic(), -1, shown))


def test_it_is_less_sure_than_the_consensus_where_people_differ_by_chance():
    votes, parameters = drawn(PAPER, n_users=400)
    shown = all_pairs(votes)
    found = Population.of(parameters, Logistic()).log_probabilities(shown)
    margin = parameters.consensus[shown.first] - parameters.consensus[shown.second]
    clear = np.abs(margin) > 1.0
    ahead, plain = (
        np.exp(each[:, 0]) - np.exp(each[:, 2])
        for each in (found, of_user(parameters, Logistic(), -1, shown))
    )
    assert np.all(np.abs(ahead[clear]) < np.abs(plain[clear]))


def test_swapped_sides_give_mirrored_probabilities():
    votes, parameters = drawn(PAPER)
    people, shown = Population.of(parameters, Logistic()), all_pairs(votes)
    there = people.log_probabilities(shown)
    back = people.log_probabilities(Shown(shown.second, shown.first))
    assert_allclose(back, there[:, ::-1], rtol=1e-14)


@given(st.integers(0, 2**16), st.sampled_from(["all", "paper", "forced"]), st.integers(3, 12))
def test_no_row_depends_on_the_others_nor_on_where_parts_end(seed, terms, power):
    votes, parameters = drawn(TERMS[terms], seed=seed)
    people = Population.of(parameters, Logistic())
    rng, shown = np.random.default_rng(seed), all_pairs(votes)
    order = rng.integers(len(shown.first), size=30)
    whole = people.log_probabilities(shown)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "NUMBERS_AT_ONCE", 1 << power)
        assert_array_equal(people.log_probabilities(module.rows_of(shown, order)), whole[order])


def test_no_pairs_have_no_probabilities():
    people = Population.of(drawn()[1], Logistic())
    nothing = np.array([], dtype=np.int64)
    assert people.log_probabilities(Shown(nothing, nothing)).shape == (0, 3)


def test_probabilities_that_vanish_have_logarithms():
    _, parameters = drawn(PAPER)
    far = parameters.consensus.copy()
    far[:2] = 2000.0, -2000.0
    people = Population.of(replace(parameters, consensus=far), Logistic())
    found = people.log_probabilities(Shown(np.array([0]), np.array([1])))
    assert np.all(np.isfinite(found)) and found[0, 2] < -3000.0


def test_users_count_by_how_probable_the_votes_of_somebody_are_for_them():
    votes, parameters = drawn()
    people = Population.of(parameters, Logistic())
    later = random_votes(1, n_users=4, n_votes=40)
    later = later.subset(later.user != 1)
    found = people.log_weights_after(later, np.arange(later.n_users))
    assert_allclose(np.exp(found).sum(axis=1), 1.0)
    assert_array_equal(found[1], people.log_weight)  # who has given no votes
    expected = np.tile(people.log_weight, (later.n_users, 1))
    for user in range(votes.n_users):
        said = of_user(parameters, Logistic(), user, Shown(later.left, later.right))
        said = said[np.arange(len(later)), 1 - later.outcome]
        expected[:, user] += TRUST * np.bincount(later.user, said, later.n_users)
    expected = np.exp(expected)
    assert_allclose(np.exp(found), expected / expected.sum(axis=1, keepdims=True), rtol=1e-11)
    order = np.random.default_rng(0).permutation(len(later))
    again = people.log_weights_after(later.subset(order), np.arange(later.n_users))
    assert_array_equal(again, found)
    assert_array_equal(people.log_weights_after(later, np.array([0, 3])), found[[0, 3]])


def test_so_many_people_that_some_stand_for_all(monkeypatch):
    votes, parameters = drawn(n_users=300)
    shown = all_pairs(votes)
    of_all = Population.of(parameters, Logistic())
    monkeypatch.setattr(module, "MOST_PEOPLE", 100)
    of_some = Population.of(parameters, Logistic())
    assert len(of_some.values) == 100
    off = np.exp(of_some.log_probabilities(shown)) - np.exp(of_all.log_probabilities(shown))
    assert np.abs(off).max() < 0.5 / np.sqrt(100)
