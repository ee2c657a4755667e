"""The mixture of camps: its density, and what the EM algorithm does to it."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from in_camps import model_of, people
from isplitlbi.camps.ballots import Ballots
from isplitlbi.camps.mixture import CARELESS_VARIANCE, Mixture, improved, shares_of
from isplitlbi.camps.predicted import loss_of_users
from isplitlbi.camps.told import told_by
from isplitlbi.data.splits import in_order


def told_of(n_camps=2, **more):
    votes, camp = people(n_camps, n_users=20, seed=4, **more)
    model, votes = model_of(votes), in_order(votes)
    ballots = Ballots.of(votes, model.parameters_, model.link_)
    return told_by(ballots, ballots.counts, model.consensus_, 2.0), ballots, camp


def any_mixture(n_axes=1):
    rng = np.random.default_rng(0)
    start = Mixture.starting(rng.normal(size=(2, 8)), rng.normal(size=(n_axes, 8)))
    return start


def test_the_density_of_a_user_is_that_of_the_readings_written_out():
    (told, _, _), mixture = told_of(), any_mixture()
    found = shares_of(told, mixture)
    rows = told.owner == 3
    along, noise = told.along[rows], np.diag(1.0 / told.precision[rows])
    density = []
    for scores in mixture.scores:
        own = mixture.taste * np.eye(8) + mixture.scale * np.outer(scores, scores)
        own += mixture.axes.T @ mixture.axes
        covariance = along @ own @ along.T + noise
        density.append(multivariate_normal(along @ scores, covariance).pdf(told.value[rows]))
    spread = noise + CARELESS_VARIANCE * np.eye(rows.sum())
    density.append(multivariate_normal(np.zeros(rows.sum()), spread).pdf(told.value[rows]))
    joint = mixture.shares * density
    assert_allclose(found.of_camps[3], joint / joint.sum(), rtol=1e-6, atol=1e-12)
    constant = 0.5 * rows.sum() * np.log(2.0 * np.pi)
    assert_allclose(found.log_density[3], np.log(joint.sum()) + constant, rtol=1e-8)


def test_steps_make_the_readings_more_probable():
    (told, _, _), mixture = told_of(taste=0.3), any_mixture()
    reached = [improved(told, mixture, n_steps)[1] for n_steps in (0, 2, 6, 20)]
    assert reached == sorted(reached)


def test_probabilities_of_camps_add_up_to_one_and_so_do_their_shares():
    (told, _, _), mixture = told_of(), any_mixture(n_axes=2)
    mixture, _ = improved(told, mixture, 5)
    assert_allclose(shares_of(told, mixture).of_camps.sum(axis=1), 1.0)
    assert_allclose(mixture.shares.sum(), 1.0)


def test_votes_are_predicted_better_by_the_true_camps_than_by_equal_scores():
    told, ballots, _ = told_of()
    scores = np.stack([np.zeros(8), np.zeros(8)])
    equal = Mixture.starting(scores)
    fitted, _ = improved(told, any_mixture(n_axes=0))
    nothing = told_by(ballots, 0.0 * ballots.counts, np.zeros(8), 1.0)
    without, with_camps = (
        loss_of_users(ballots, nothing, each, ballots.counts).sum() for each in (equal, fitted)
    )
    seen = loss_of_users(ballots, told, fitted, ballots.counts).sum()
    assert seen < with_camps < without
