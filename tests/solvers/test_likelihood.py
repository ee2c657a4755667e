"""What is fitted without a path: each fit rests where nothing pulls any more."""

import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from crowds import centred, consensus_of, reversing_crowd
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.kernels import Gradient, Problem
from isplitlbi.kernels import numpy_loops as plain
from isplitlbi.model.links import LINKS, Logistic, Probit
from isplitlbi.runtime.local import Local
from isplitlbi.solvers import (
    Dynamics,
    Explicit,
    fit_before_entries,
    fit_consensus,
    fit_users,
    likelihood,
)
from machines import even_bounds, on_machines
from paths import odd_one_out, walk
from traits import Leftmost, Newest, terms_with
from votes import random_votes

LINK = Logistic()

every_link = pytest.mark.parametrize("link", [link() for link in LINKS.values()], ids=list(LINKS))


def decided_votes(seed=0, n_items=6, n_votes=300):
    """Draw votes without ties from a Bradley-Terry model; many enough for every item to lose."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_items)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    outcome = np.where(rng.random(n_votes) < expit(scores[left] - scores[right]), 1, -1)
    return Comparisons.from_arrays(rng.integers(4, size=n_votes), left, right, outcome)


def differences(loss, point, step=1e-6):
    """Return the gradient by differences."""
    away = step * np.eye(len(point))
    return np.array([(loss(point + each) - loss(point - each)) / (2 * step) for each in away])


def loss_of(votes, link, margin, threshold):
    """Return the loss of votes, one by one."""
    chances = link.log_probabilities(margin, threshold)[np.arange(len(votes)), 1 - votes.outcome]
    return -np.sum(chances if votes.weight is None else votes.weight * chances)


# --- the consensus alone -------------------------------------------------------------------


def loss_of_consensus(votes, link):
    """Return the loss of one ranking for everybody, as a function; the threshold comes last."""

    def loss(point):
        margin = point[votes.left] - point[votes.right]
        return loss_of(votes, link, margin, np.full(len(votes), point[-1]))

    return loss


@pytest.mark.backend
@pytest.mark.parametrize("seed", [0, 1])
def test_without_ties_the_consensus_is_a_bradley_terry_fit(seed):
    votes = decided_votes(seed)
    consensus = fit_consensus(votes, LINK, delta=1e-7)
    assert consensus.threshold == 1e-7
    won = np.where(votes.outcome > 0, votes.left, votes.right).tolist()
    lost = np.where(votes.outcome > 0, votes.right, votes.left).tolist()
    pairs = list(zip(won, lost, strict=True))
    theirs = choix.opt_pairwise(votes.n_items, pairs, alpha=1e-8)
    assert_allclose(centred(consensus.scores), centred(theirs), atol=1e-3)
    theirs = choix.ilsr_pairwise(votes.n_items, pairs, alpha=1e-10)
    assert_allclose(centred(consensus.scores), centred(theirs), atol=1e-4)


def test_without_ties_the_consensus_is_a_logistic_regression():
    votes = decided_votes(2)
    rows = np.arange(len(votes))
    design = np.zeros((len(votes), votes.n_items))
    design[rows, votes.left] = 1.0
    design[rows, votes.right] = -1.0
    theirs = LogisticRegression(C=1e6, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(design, votes.outcome)
    consensus = fit_consensus(votes, LINK, delta=1e-7)
    assert_allclose(centred(consensus.scores), centred(theirs.coef_[0]), atol=1e-4)


def test_the_default_bound_on_the_threshold_hardly_moves_a_bradley_terry_fit():
    votes = decided_votes()
    usual, loose = (fit_consensus(votes, LINK, delta=delta).scores for delta in (1e-3, 1e-7))
    assert_allclose(usual, loose, atol=1e-2)


@every_link
def test_the_consensus_is_that_of_a_general_optimiser(link):
    votes = random_votes(3, n_votes=200, tie_share=0.3, weighted=True)
    loss = loss_of_consensus(votes, link)

    def with_log_threshold(point):
        return loss(np.append(point[:-1], np.exp(point[-1]))) + 5e-5 * np.sum(point[:-1] ** 2)

    theirs = minimize(with_log_threshold, np.zeros(5), method="BFGS", options={"gtol": 1e-4}).x
    consensus = fit_consensus(votes, link)
    assert_allclose(centred(consensus.scores), centred(theirs[:-1]), atol=2e-3)
    assert consensus.threshold == pytest.approx(np.exp(theirs[-1]), abs=2e-3)


@pytest.mark.parametrize("link", [Logistic(), Probit()], ids=["logistic", "probit"])
@given(seed=st.integers(0, 1000))
@settings(max_examples=10)
def test_at_the_consensus_nothing_pulls_any_more(link, seed):
    votes = random_votes(seed, n_users=3, n_votes=60, tie_share=0.3, weighted=True)
    consensus = fit_consensus(votes, link)
    slope = differences(loss_of_consensus(votes, link), consensus.values)
    slope[:-1] += consensus.scores / likelihood.SCORE_VARIANCE
    if consensus.threshold <= 1e-3:
        assert slope[-1] > -1e-4
        slope[-1] = 0.0
    assert np.abs(slope).max() < 1e-4 * (1.0 + np.sum(votes.weight))


@every_link
@given(seed=st.integers(0, 1000))
@settings(max_examples=10)
def test_the_consensus_is_the_best_of_its_neighbours(link, seed):
    rng = np.random.default_rng(seed)
    votes = random_votes(rng, n_users=3, n_items=4, n_votes=60, tie_share=0.3, weighted=True)
    consensus, loss = fit_consensus(votes, link).values, loss_of_consensus(votes, link)
    best = loss(consensus)
    for _ in range(20):
        other = consensus + 0.05 * rng.normal(size=5)
        other[-1] = max(other[-1], 1e-3)
        assert loss(other) > best - 1e-6 * (1 + best)


def test_the_consensus_does_not_know_who_voted():
    votes = random_votes(0, n_votes=100)
    as_one = Comparisons.from_arrays(
        ["all"] * 100, votes.items[votes.left], votes.items[votes.right], votes.outcome
    )
    assert_array_equal(fit_consensus(votes, LINK).values, fit_consensus(as_one, LINK).values)


def test_the_scores_of_the_consensus_are_centred():
    consensus = fit_consensus(random_votes(0, n_votes=100), LINK)
    assert np.sum(consensus.scores) == pytest.approx(0.0, abs=1e-9)


@every_link
def test_an_item_that_always_wins_has_a_finite_score_above_all(link):
    rows = [("u", "best", item, 1) for item in "abc"] * 3
    rows += [("u", left, right, k) for left, right in ("ab", "bc", "ca") for k in (1, 0, -1)]
    votes = Comparisons.from_arrays(*zip(*rows, strict=True))
    consensus = fit_consensus(votes, link)
    assert np.isfinite(consensus.values).all()
    best = list(votes.items).index("best")
    others = np.delete(consensus.scores, best)
    assert consensus.scores[best] > others.max() + 1.0
    assert np.ptp(others) < 0.01


def test_the_threshold_of_the_consensus_never_passes_its_bound():
    votes = random_votes(0, tie_share=0.02, n_votes=100)
    for delta in (1e-3, 0.5, 2.0):
        assert fit_consensus(votes, LINK, delta=delta).threshold >= delta
    assert fit_consensus(votes, LINK, delta=2.0).threshold == 2.0


def test_a_narrower_prior_holds_scores_nearer_to_zero():
    votes = reversing_crowd().votes
    wide, narrow = (fit_consensus(votes, LINK, variance=v) for v in (1e4, 1e-3))
    assert np.abs(narrow.scores).max() < 0.5 * np.abs(wide.scores).max()
    assert_array_equal(wide.values, fit_consensus(votes, LINK).values)


# --- every user alone ----------------------------------------------------------------------


def indifferent(votes, threshold):
    """Return a consensus without preferences."""
    return consensus_of(np.zeros(votes.n_items), threshold)


CENTRE = consensus_of(np.array([0.3, -0.2, 0.4, -0.5]), 0.8)


def loss_of_users(votes, link, ridge, centre):
    """Return the loss of everybody's deviations, vote by vote, as a function of the slots."""
    slots, user = Layout.of(votes).slots, votes.user

    def loss(deviation):
        own = np.tile(centre.values, (votes.n_users, 1))
        own[slots.owner, slots.coordinate] += deviation
        margin = own[user, votes.left] - own[user, votes.right]
        return loss_of(votes, link, margin, own[user, -1]) + 0.5 * ridge * deviation @ deviation

    return loss


def own_thresholds(votes, centre, deviation):
    return centre.threshold + deviation[Layout.of(votes).slots.threshold]


@every_link
@pytest.mark.parametrize("n_users", [3, 30], ids=["few", "many"])
def test_every_user_alone_rests_where_nothing_pulls(link, n_users):
    votes = random_votes(2, n_users, 4, 12 * n_users, tie_share=0.15, weighted=True)
    ridge, delta = 0.2, 1e-3
    deviation = fit_users(votes, link, ridge, CENTRE, delta)
    slope = differences(loss_of_users(votes, link, ridge, CENTRE), deviation)
    at_bound = np.zeros(len(deviation), dtype=bool)
    own = own_thresholds(votes, CENTRE, deviation)
    at_bound[Layout.of(votes).slots.threshold] = own < delta + 1e-12
    assert np.abs(slope[~at_bound]).max() < 1e-3
    assert np.all(slope[at_bound] > -1e-3)
    assert np.abs(deviation[~at_bound]).max() > 0.3


def test_a_user_alone_is_fitted_as_by_a_general_optimiser():
    votes = random_votes(8, n_users=2, n_votes=60, tie_share=0.4)
    loss = loss_of_users(votes, LINK, 0.5, CENTRE)
    deviation = fit_users(votes, LINK, 0.5, CENTRE)
    theirs = minimize(loss, np.zeros(len(deviation)), options={"gtol": 1e-6}).x
    assert_allclose(deviation, theirs, atol=1e-4)


@pytest.mark.parametrize("delta", [1e-3, 0.5])
def test_the_threshold_of_a_user_never_passes_its_bound(delta):
    votes = random_votes(1, n_votes=120, tie_share=0.05)
    centre = indifferent(votes, 1.0)
    deviation = fit_users(votes, LINK, 0.01, centre, delta)
    own, ties = (
        own_thresholds(votes, centre, deviation),
        np.bincount(votes.user, votes.outcome == 0),
    )
    assert_allclose(own.min(), delta, rtol=0, atol=1e-15)
    assert_allclose(own[ties == 0], delta, rtol=0, atol=1e-15)
    assert own.max() > delta + 1e-3
    slope = differences(loss_of_users(votes, LINK, 0.01, centre), deviation)
    at = Layout.of(votes).slots.threshold[own < delta + 1e-12]
    assert np.all(slope[at] > 0.0)


@every_link
def test_users_do_not_touch_each_other(link):
    votes = random_votes(5, n_votes=150, tie_share=0.3)
    together, slots = fit_users(votes, link, 0.1, indifferent(votes, 0.8)), Layout.of(votes).slots
    for user, name in enumerate(votes.users):
        rows = votes.user == user
        alone = Comparisons.from_arrays(
            [name] * rows.sum(), votes.items[votes.left[rows]], votes.items[votes.right[rows]],
            votes.outcome[rows],
        )  # fmt: skip
        found = fit_users(alone, link, 0.1, indifferent(alone, 0.8))
        assert_allclose(found, together[slice(*slots.start[user : user + 2])], atol=1e-5)


def test_a_user_whose_votes_are_all_gone_has_the_consensus_and_nobody_else_is_moved():
    votes = random_votes(5, n_votes=150, tie_share=0.3)
    together = fit_users(votes, LINK, 0.1, CENTRE)
    others = fit_users(votes.subset(votes.user != 2), LINK, 0.1, CENTRE)
    gone = Layout.of(votes).slots.owner == 2
    assert_allclose(others[gone], 0.0, atol=1e-12)
    assert np.abs(together[gone]).max() > 0.1
    assert_allclose(others[~gone], together[~gone], atol=1e-5)


def test_the_stronger_the_ridge_the_nearer_everybody_is_to_the_centre():
    votes = random_votes(0, n_votes=100)
    for centre in (indifferent(votes, 0.6), CENTRE):
        ridges = (0.01, 1.0, 100.0, 1e6)
        far = [np.abs(fit_users(votes, LINK, ridge, centre)).max() for ridge in ridges]
        assert far == sorted(far, reverse=True)
        assert far[0] > 1.0
        assert far[-1] < 1e-4


def test_a_fit_of_every_user_does_not_depend_on_its_start():
    votes = random_votes(3, n_votes=150)
    usual = fit_users(votes, LINK, 0.05, indifferent(votes, 0.9))
    start = np.random.default_rng(0).normal(size=len(usual))
    before = start.copy()
    other = fit_users(votes, LINK, 0.05, indifferent(votes, 0.9), start=start)
    assert_allclose(other, usual, atol=1e-5)
    assert_array_equal(start, before)


def test_one_user_without_a_ridge_to_speak_of_is_the_consensus():
    votes = random_votes(7, n_users=1, n_votes=150, tie_share=0.3)
    centre = indifferent(votes, 5.0)
    own = centre.values + fit_users(votes, LINK, 1e-4, centre)
    assert_allclose(own, fit_consensus(votes, LINK).values, atol=1e-3)


# --- before anybody leaves -----------------------------------------------------------------


def slopes(votes, link, nu, fitted):
    """Return the gradient of loss + |P|^2 / (2 nu) in the consensus and in the deviations."""
    layout = Layout.of(votes, fitted.terms.traits)
    gradient = Gradient(np.empty(layout.vector.width), np.empty(layout.n_slots))
    problem = Problem.of(layout, 1e-3)
    plain.loss_and_gradient(link, problem, fitted.consensus, fitted.deviation, gradient)
    return gradient.consensus, gradient.slots + fitted.deviation / nu


@pytest.mark.backend
@pytest.mark.parametrize("traits", [(), (Leftmost(), Newest())], ids=["paper", "traits"])
@pytest.mark.parametrize("nu", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("name", ["logistic", "probit"])
def test_before_entries_nothing_pulls_any_more(name, nu, traits):
    votes, link, dynamics = odd_one_out(), LINKS[name](), Dynamics(nu=nu)
    fitted = fit_before_entries(votes, link, dynamics, tol=1e-8, terms=terms_with(*traits))
    assert np.all(fitted.all_of("threshold") > 2e-3)  # no bound is active: every slope vanishes
    of_consensus, of_users = slopes(votes, link, nu, fitted)
    assert np.abs(of_users).max() < 2e-3
    # The consensus is held to its start, far too weakly to matter.
    assert np.abs(of_consensus).max() < 2e-3


def test_before_entries_users_at_the_bound_are_only_pushed_against_it():
    votes, nu = random_votes(1, tie_share=0.03, n_votes=120), 1.0
    fitted = fit_before_entries(votes, LINK, Dynamics(nu=nu), tol=1e-8)
    own = fitted.all_of("threshold")
    assert np.all(own >= 1e-3 - 1e-15)
    _, of_users = slopes(votes, LINK, nu, fitted)
    at_bound = own < 1e-3 + 1e-12
    assert 0 < np.sum(at_bound) < votes.n_users
    of_thresholds = of_users[fitted.slots.threshold]
    assert np.all(of_thresholds[at_bound] > -1e-3)
    assert np.abs(of_thresholds[~at_bound]).max() < 2e-3
    # The consensus meets the users through the ridge alone: it is their mean.
    of_mean = np.sum(fitted.deviation[fitted.slots.threshold])
    assert of_mean == pytest.approx(0.0, abs=2e-3)
    assert fitted.common.threshold > 1e-3


def test_the_path_rests_at_this_fit_before_the_first_entry():
    votes, dynamics = odd_one_out(), Dynamics(nu=0.02, kappa=100.0)
    fitted = fit_before_entries(votes, LINK, dynamics, tol=1e-8)
    path = walk(votes, Explicit(), dynamics, [0.05])
    assert np.all(np.isinf(path.entry_times))
    assert_allclose(path.consensus[-1], fitted.consensus, atol=0.01)
    assert_allclose(path.deviation[-1], fitted.deviation, atol=0.01)


def test_a_small_nu_leaves_the_consensus_alone():
    votes = odd_one_out()
    fitted = fit_before_entries(votes, LINK, Dynamics(nu=1e-5), tol=1e-8)
    assert_allclose(fitted.consensus, fit_consensus(votes, LINK).values, atol=5e-3)
    assert np.abs(fitted.deviation).max() < 1e-3


# --- backends and machines -----------------------------------------------------------------


@every_link
def test_every_fit_is_the_same_compiled(link):
    votes, dynamics = odd_one_out(), Dynamics(nu=0.5)
    centre = consensus_of(np.linspace(-1.0, 1.0, 5), 0.5)
    found = []
    for name in ("numba", "numpy"):
        runtime = Local(votes, backend=name)
        before = fit_before_entries(votes, link, dynamics, runtime, tol=1e-8)
        found.append((
            fit_consensus(votes, link, runtime=runtime).values,
            fit_users(votes, link, 0.5, centre, runtime=runtime),
            before.consensus,
            before.deviation,
        ))  # fmt: skip
    for one, other in zip(*found, strict=True):
        assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("at_once", [7, 1 << 16])
def test_several_machines_find_the_consensus_of_all(at_once, monkeypatch):
    monkeypatch.setattr(likelihood, "NUMBERS_AT_ONCE", at_once)
    votes = odd_one_out()
    alone = fit_consensus(votes, LINK)
    for found in on_machines(
        votes, even_bounds(votes, 3), lambda *here: fit_consensus(here[0], LINK, runtime=here[1])
    ):
        assert_array_equal(found.values, alone.values)


def test_several_machines_fit_of_their_users_what_one_does():
    votes = odd_one_out()

    def fits(here, runtime):
        before = fit_before_entries(here, LINK, Dynamics(nu=0.5), runtime)
        return before.consensus, before.deviation

    alone = fits(votes, Local(votes))
    parts = list(zip(*on_machines(votes, even_bounds(votes, 2), fits), strict=True))
    for one in parts[0]:
        assert_allclose(one, alone[0], atol=1e-6)
    assert_allclose(np.concatenate(parts[1]), alone[1], atol=1e-6)
