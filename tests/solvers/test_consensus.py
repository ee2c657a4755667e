"""The consensus by maximum likelihood, and how far it moves when users are drawn anew."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowds import agreeing, reversing_crowd
from isplitlbi.model.links import Logistic
from isplitlbi.solvers.likelihood import bootstrap_consensus, fit_consensus
from votes import rebuilt

LINK = Logistic()


@pytest.fixture(scope="module")
def reversing():
    return reversing_crowd()


def test_the_seed_alone_decides_which_users_are_drawn(reversing):
    votes = reversing.votes
    drawn = bootstrap_consensus(votes, LINK, 8, seed=3)
    assert drawn.shape == (8, votes.n_items)
    assert_array_equal(bootstrap_consensus(votes, LINK, 8, seed=3), drawn)
    assert not np.array_equal(bootstrap_consensus(votes, LINK, 8, seed=4), drawn)
    order = np.random.default_rng(0).permutation(len(votes))
    assert_allclose(bootstrap_consensus(rebuilt(votes, order), LINK, 8, seed=3), drawn)


def test_with_more_users_the_consensus_is_surer():
    votes = agreeing(160, 30, seed=0)
    spread = [
        bootstrap_consensus(votes.subset(votes.user < n_users), LINK, 40).std(axis=0).mean()
        for n_users in (20, 160)
    ]
    assert 1.5 * spread[1] < spread[0] < 6 * spread[1]  # eight times the users: about 2.8


def test_drawn_users_make_a_consensus_around_that_of_everybody(reversing):
    votes = reversing.votes
    drawn, whole = bootstrap_consensus(votes, LINK, 60), fit_consensus(votes, LINK)
    assert_allclose(
        drawn.mean(axis=0), whole.scores, atol=4 * drawn.std(axis=0).max() / np.sqrt(60)
    )


def test_a_narrower_prior_holds_scores_nearer_to_zero(reversing):
    wide, narrow = (fit_consensus(reversing.votes, LINK, variance=v) for v in (1e4, 1e-3))
    assert np.abs(narrow.scores).max() < 0.5 * np.abs(wide.scores).max()
    assert_array_equal(wide.values, fit_consensus(reversing.votes, LINK).values)
