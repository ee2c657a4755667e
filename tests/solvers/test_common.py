"""What all users have in common."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowds import agreeing, consensus_in, forced
from isplitlbi.data.layout import Shown
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.answering import log_probabilities
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.model.terms import PAPER, Terms
from isplitlbi.solvers import likelihood
from isplitlbi.solvers.common import common_terms, fit_common, restated

LINK = Logistic()


def loss(votes, consensus, link=LINK):
    """Return minus the log-likelihood of every user's votes, by definition."""
    shown = Shown(votes.left, votes.right, votes, np.arange(len(votes)))
    margin, threshold = consensus.margin_and_threshold(votes.left, votes.right, shown)
    said = log_probabilities(link, margin, threshold, has_ties=consensus.terms.has_ties)
    happened = -said[np.arange(len(votes)), 1 - votes.outcome]
    return np.bincount(votes.user, happened, votes.n_users)


def rich(seed=0, **changes):
    settings = {"side": (0.5, 0.0), "tie_habit": 0.5, "features": {"length": 0.7}} | changes
    return simulate(
        n_users=80, n_items=8, votes_per_user=(150, 150), score_sd=1.5, threshold=0.8,
        abnormal_share=0.0, random_state=seed, **settings,
    )  # fmt: skip


def test_the_papers_terms_stay_as_they_are():
    votes = agreeing(30, 30, 0)
    assert common_terms(PAPER) is PAPER
    found = fit_common(votes, LINK, PAPER, variance=2.0)
    expected = likelihood.fit_consensus(votes, LINK, variance=2.0)
    assert_array_equal(found.values, expected.values)
    assert restated(found, PAPER) is found


def test_nobody_has_numbers_of_their_own():
    terms = common_terms(Terms.named("all", features=["length"]))
    assert terms.names == ("taste", "side", "length", "threshold")
    assert terms.scales == (0.0,) * 4
    assert terms.has_habits
    without = common_terms(Terms.named("all"), has_ties=False)
    assert (without.ties, without.has_habits) == ("none", False)
    assert common_terms(PAPER, has_ties=False).ties == "none"


def test_a_consensus_is_the_same_in_other_terms():
    votes = rich().votes
    terms = Terms.named("all", features=["length"])
    fitted = consensus_in(votes)
    again = restated(restated(fitted, terms), fitted.terms)
    assert_array_equal(again.values, fitted.values)
    plain = restated(fitted, common_terms(PAPER, has_ties=False))
    assert plain.threshold == 0.0
    assert_array_equal(plain.scores, fitted.scores)


def test_the_consensus_is_recovered_with_all_it_knows():
    votes, truth = rich()
    found = consensus_in(votes)
    true = truth.scores - truth.scores.mean()
    assert_allclose(found.scores - found.scores.mean(), true, atol=0.3)
    assert found.trait("side") == pytest.approx(0.5, abs=0.07)
    assert found.trait("length") / votes.features.scale[0] == pytest.approx(0.7, abs=0.07)
    of_pair = np.log(found.habits) + 0.5 * np.log(found.threshold)
    assert_allclose(of_pair, truth.habits + 0.5 * np.log(0.8), atol=0.2)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("threshold", [0.8, None])
def test_the_consensus_is_a_minimum(link, threshold):
    votes = forced(1, 40, n_users=30, threshold=threshold, score_sd=0.5).votes
    link = LINKS[link]()
    terms = common_terms(Terms.named("all", has_ties=threshold is not None))
    found = fit_common(votes, link, terms, variance=1.0)
    precision = found.terms.precision(found.vector)

    def objective(values):
        here = replace(found, values=values)
        return loss(votes, here, link).sum() + 0.5 * np.sum(precision * values**2)

    best = objective(found.values)
    places = [place for place in range(found.vector.width) if np.isfinite(precision[place])]
    for place in places:
        for step in (-1e-2, 1e-2):
            moved = found.values.copy()
            moved[place] += step
            assert objective(moved) >= best - 1e-6
