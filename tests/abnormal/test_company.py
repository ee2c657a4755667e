"""Among whom users are tested."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi.abnormal import find_abnormal, find_abnormal_beside
from isplitlbi.abnormal.company import Newcomers, Ordinary, benjamini_hochberg
from isplitlbi.data.vocabulary import Vocabulary
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.solvers.likelihood import fit_consensus

NOTHING = np.zeros(0)
NOBODY = np.zeros(0, dtype=object)
chances = st.floats(1e-6, 1.0)


def newcomers(p_values, is_unreliable=None, users=NOBODY):
    ordinary = Ordinary(NOTHING, NOTHING, NOTHING, 1.0, NOTHING, 1.0, True, 3.0, 100)
    known = np.asarray(p_values, dtype=float)
    nobody = np.zeros(len(known), dtype=bool)
    return Newcomers(
        users, ordinary, (known, known), nobody if is_unreliable is None else is_unreliable, 0.05
    )


@given(st.lists(chances, max_size=20), chances)
def test_the_q_value_of_a_newcomer_is_that_of_one_more_user(known, p_value):
    found = newcomers(known).q_value(0, np.array([p_value]))
    expected = benjamini_hochberg(np.array([*known, p_value]))[-1]
    assert_allclose(found, [expected])


@given(st.lists(chances, min_size=2, max_size=10), st.lists(chances, min_size=1, max_size=5))
def test_other_newcomers_do_not_matter(known, p_values):
    company, each = newcomers(known), np.array(p_values)
    alone = [company.q_value(0, each[k : k + 1])[0] for k in range(len(each))]
    assert_array_equal(company.q_value(0, each), alone)


def test_among_the_different_nobody_counts_who_is_unreliable():
    known, is_unreliable = np.array([0.001, 0.002, 0.5]), np.array([True, True, False])
    found = newcomers(known, is_unreliable).q_value(0, np.array([0.02]), of_different=True)
    assert_allclose(found, benjamini_hochberg(np.array([0.5, 0.02]))[1:])


def test_who_has_no_votes_has_no_q_value():
    assert np.isnan(newcomers([0.2]).q_value(1, np.array([np.nan, 0.1]))).tolist() == [True, False]


def test_draws_are_a_newcomers_own_whoever_else_is_there():
    both = newcomers([0.2], users=np.array(["ann", "bob"], dtype=object))
    one = newcomers([0.2], users=np.array(["bob"], dtype=object))
    assert both.number(1) == one.number(0) != both.number(0)
    assert_array_equal(both.chances(2, 7)[:, 1:], one.chances(1, 7))
    assert both.middle(np.array([1.0, np.nan])) == 3.0


@pytest.fixture(scope="module")
def study():
    """Draw users of whom few have another taste, and few turn the consensus around."""
    return simulate(
        n_users=44, n_items=8, votes_per_user=(60, 80), abnormal_share=0.05,
        malicious={"reversed": 0.05}, random_state=4,
    )  # fmt: skip


def on_items_of(votes, some):
    return some.renumbered(Vocabulary(some.users, "user"), Vocabulary(votes.items, "item"))


def test_newcomers_are_found_as_they_would_be_in_the_study(study):
    votes, link = study.votes, Logistic()
    whole = find_abnormal(votes, link, fit_consensus(votes, link))
    held = [int(np.argmax(whole.on("unreliable"))), int(np.argmax(whole.on("different")))]
    held.append(int(np.flatnonzero(whole.p_value > 0.3)[0]))
    others = votes.without(users=votes.users[held])
    known = find_abnormal(others, link, fit_consensus(others, link))
    new = on_items_of(votes, votes.alone(np.isin(votes.user, held)))
    found = find_abnormal_beside(new, link, known)
    place = np.searchsorted(new.users, votes.users[held])
    assert [found.list[k] for k in place] == ["unreliable", "different", ""]
    assert [found.kind[k] for k in place] == [whole.kind[u] for u in held]
    assert_allclose(found.effect[place], whole.effect[held], atol=0.25)
    assert_allclose(found.quality[place], whole.quality[held], atol=0.15)
    for k in place:  # and each alone is found the same
        alone = on_items_of(votes, new.alone(new.user == k))
        again = find_abnormal_beside(alone, link, known)
        assert again.p_value[0] == found.p_value[k]
        assert again.q_value[0] == found.q_value[k]
        assert again.explanation == [found.explanation[k]]
        assert_allclose(again.effect[0], found.effect[k], rtol=1e-9, atol=1e-12)


def test_p_values_of_ordinary_newcomers_are_uniform():
    drawn = simulate(
        n_users=260, n_items=6, votes_per_user=(20, 30), abnormal_share=0.0, random_state=8
    ).votes
    link = Logistic()
    study, new = (drawn.alone(part) for part in (drawn.user < 60, drawn.user >= 60))
    known = find_abnormal(study, link, fit_consensus(study, link))
    found = find_abnormal_beside(on_items_of(study, new), link, known)
    for p_value in (found.p_value, found.p_unreliable):
        assert 0.01 <= np.mean(p_value < 0.05) <= 0.1
        assert 0.4 <= np.mean(p_value) <= 0.6
    assert np.mean(found.flagged) <= 0.03
