from dataclasses import replace

import numpy as np
import pytest

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.kernels import Gradient, sharpness_told
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.local import Local
from isplitlbi.solvers import Dynamics, fit_before_entries
from isplitlbi.solvers.average import AveragePerson
from isplitlbi.solvers.state import State
from loops import compiled, problem_of
from traits import sized_terms


def judged(n_users, n_items, n_votes, seed=0, spread=0.3):
    """Draw comparative judgement: some users, and others who have given a few votes only."""
    rng = np.random.default_rng(seed)
    scores, slope = 1.5 * rng.normal(size=n_items), 1.0 + spread * rng.normal(size=n_users)
    user = rng.choice(n_users, n_votes, p=rng.dirichlet(np.full(n_users, 2.0)))
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    lead = slope[user] * (scores[left] - scores[right]) + rng.logistic(size=n_votes)
    return Comparisons.from_arrays(user, left, right, np.where(lead > 0.0, 1, -1)), scores


def resting(votes, reference, score_variance=0.5, sharpness=2.0, nu=0.8):
    terms = sized_terms("taste,sharpness", has_ties=False, refers=False)
    terms = replace(terms, score_variance=score_variance)
    terms = terms.sized({"taste": 1.0, "sharpness": sharpness}).referring(reference)
    found = fit_before_entries(votes, Logistic(), Dynamics(nu), Local(votes), 1e-8, terms)
    return terms, found


@pytest.mark.parametrize(("n_users", "n_items"), [(3, 40), (8, 20), (30, 10)])
def test_before_anybody_leaves_users_are_as_sharp_as_the_consensus_on_average(n_users, n_items):
    votes, _ = judged(n_users, n_items, 12 * n_items)
    reference = np.random.default_rng(1).normal(size=votes.n_items)
    _, found = resting(votes, reference)
    sharper = found.all_of("sharpness")
    assert np.abs(sharper).max() > 0.01
    assert abs(sharper.mean()) < 1e-4


def test_the_fit_is_the_minimum_of_the_loss_and_of_a_prior_on_the_average_person():
    votes, _ = judged(5, 30, 300)
    reference = np.random.default_rng(2).normal(size=votes.n_items)
    terms, found = resting(votes, reference)
    layout = terms.layout(votes)
    problem = problem_of(layout, 0.0, terms)
    gradient = Gradient(np.zeros(layout.vector.width), np.zeros(layout.n_slots))
    at = found.consensus, found.deviation
    compiled.loss_and_gradient(terms.answering(Logistic()), problem, *at, gradient)
    by_users = gradient.slots + found.deviation / 0.8
    size = np.abs(gradient.slots).max()
    np.testing.assert_allclose(gradient.consensus, 0.0, atol=1e-4 * size)
    np.testing.assert_allclose(by_users, 0.0, atol=1e-4 * size)


def test_users_with_few_votes_tell_little_of_the_average():
    votes = Comparisons.from_arrays(
        [0] * 40 + [1], [0, 1] * 20 + [0], [2, 2] * 20 + [2], [1, -1] * 20 + [1]
    )
    terms = sized_terms("taste,sharpness", has_ties=False, refers=False).referring(
        np.array([2.0, -1.0, 0.0])
    )
    told = sharpness_told(terms.layout(votes), terms)
    assert told[0] > 20 * told[1] > 0.0


def test_what_is_shown_predicts_the_same_and_is_the_average_of_those_who_stay():
    votes, _ = judged(12, 9, 600, spread=0.8)
    reference = np.random.default_rng(3).normal(size=votes.n_items)
    terms, found = resting(votes, reference)
    layout, rng = terms.layout(votes), np.random.default_rng(4)
    state = State.initial(layout, found.consensus)
    state.deviation = found.deviation + 0.3 * rng.normal(size=layout.n_slots)
    state.dual_norm = rng.uniform(0.5, 1.5, size=layout.n_users)
    state.sparse = np.where(state.dual_norm[layout.slots.owner] > 1.0, state.deviation, 0.0)
    shown = AveragePerson(layout, terms, Local(votes)).shown(state)
    problem = problem_of(layout, 0.0, terms)

    def margins(state):
        own = state.consensus[layout.slots.coordinate] + terms.scales[0] * state.deviation
        sharp = state.deviation[layout.slots.threshold - 1]
        own = own + problem.reference * sharp[layout.slots.owner]
        return own[layout.edges.first] - own[layout.edges.second]

    np.testing.assert_allclose(margins(shown), margins(state), atol=1e-12)
    stay = state.dual_norm <= 1.0
    sharp = shown.deviation[layout.slots.threshold - 1]
    assert abs(sharp[stay].mean()) < 1e-12
    assert not shown.sparse[~(state.dual_norm > 1.0)[layout.slots.owner]].any()


def test_the_mean_users_scores_are_those_of_the_consensus_with_few_judges():
    votes, scores = judged(8, 60, 1500, seed=5)
    model = ISplitLBI(with_tests=False).fit(votes)
    own = np.mean([model.parameters_.scores_of(user) for user in range(votes.n_users)], axis=0)
    common = model.consensus_ - model.consensus_.mean()
    slope = (own - own.mean()) @ common / (common @ common)
    assert slope == pytest.approx(1.0, abs=0.05)
    true = scores - scores.mean()
    assert common @ true / (true @ true) == pytest.approx(1.0, abs=0.25)  # neither .4 nor 2.5
