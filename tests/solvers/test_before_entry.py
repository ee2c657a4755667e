import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.kernels import numpy_loops as plain
from isplitlbi.model.links import LINKS, Logistic, Probit
from isplitlbi.solvers import (
    Dynamics,
    Explicit,
    default_times,
    fit_before_entries,
    fit_consensus,
    fit_each_user,
    follow,
)
from votes import random_votes

every_link = pytest.mark.parametrize("link", [link() for link in LINKS.values()], ids=list(LINKS))


def decided_votes(seed=0, n_items=6, n_votes=300):
    """Draw votes without ties from a Bradley-Terry model; many enough for every item to lose."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_items)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    outcome = np.where(rng.random(n_votes) < expit(scores[left] - scores[right]), 1, -1)
    return Comparisons.from_arrays(rng.integers(4, size=n_votes), left, right, outcome)


def centred(scores):
    return scores - scores.mean()


def odd_one_out():
    """Six users who mostly agree on five items, and one who sees them upside down."""
    rng = np.random.default_rng(3)
    scores = np.linspace(-1.5, 1.5, 5)
    votes = []
    for user in range(7):
        for _ in range(25):
            i, j = rng.choice(5, size=2, replace=False)
            lead = (-1 if user == 6 else 1) * (scores[i] - scores[j]) + rng.logistic(scale=0.6)
            outcome = 0 if abs(lead) < 0.5 else int(np.sign(lead))
            votes.append((f"u{user}", f"i{i}", f"i{j}", outcome))
    return Comparisons.from_arrays(*zip(*votes, strict=True))


# --- the consensus alone -------------------------------------------------------------------


@pytest.mark.backend
@pytest.mark.parametrize("seed", [0, 1])
def test_without_ties_the_consensus_is_a_bradley_terry_fit(seed):
    votes = decided_votes(seed)
    consensus = fit_consensus(votes, Logistic(), delta=1e-7)
    assert consensus[-1] == 1e-7
    won = np.where(votes.outcome > 0, votes.left, votes.right).tolist()
    lost = np.where(votes.outcome > 0, votes.right, votes.left).tolist()
    theirs = choix.opt_pairwise(votes.n_items, list(zip(won, lost, strict=True)), alpha=1e-8)
    np.testing.assert_allclose(centred(consensus[:-1]), centred(theirs), atol=1e-3)
    theirs = choix.ilsr_pairwise(votes.n_items, list(zip(won, lost, strict=True)), alpha=1e-10)
    np.testing.assert_allclose(centred(consensus[:-1]), centred(theirs), atol=1e-4)


def test_without_ties_the_consensus_is_a_logistic_regression():
    votes = decided_votes(2)
    rows = np.arange(len(votes))
    design = np.zeros((len(votes), votes.n_items))
    design[rows, votes.left] = 1.0
    design[rows, votes.right] = -1.0
    theirs = LogisticRegression(C=1e6, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(design, votes.outcome)
    consensus = fit_consensus(votes, Logistic(), delta=1e-7)
    np.testing.assert_allclose(centred(consensus[:-1]), centred(theirs.coef_[0]), atol=1e-4)


def test_the_default_bound_on_the_threshold_hardly_moves_a_bradley_terry_fit():
    votes = decided_votes()
    usual, exact = fit_consensus(votes, Logistic()), fit_consensus(votes, Logistic(), delta=1e-7)
    assert usual[-1] == 1e-3
    np.testing.assert_allclose(usual[:-1], exact[:-1], atol=0.01)


def test_with_ties_the_consensus_maximises_the_likelihood_of_rao_and_kupper():
    votes = random_votes(4, n_items=4, n_votes=200, tie_share=0.3)

    def loss(x):
        margin, threshold = x[votes.left] - x[votes.right], np.exp(x[-1])
        of_left, of_right = expit(margin - threshold), expit(-margin - threshold)
        chance = np.where(votes.outcome == 0, 1 - of_left - of_right, 0.0)
        chance = np.where(votes.outcome == 1, of_left, chance)
        chance = np.where(votes.outcome == -1, of_right, chance)
        return -np.sum(np.log(chance)) + 1e-9 * np.sum(x[:-1] ** 2)

    theirs = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-4}).x
    consensus = fit_consensus(votes, Logistic())
    np.testing.assert_allclose(centred(consensus[:-1]), centred(theirs[:-1]), atol=1e-4)
    assert consensus[-1] == pytest.approx(np.exp(theirs[-1]), abs=1e-4)


@every_link
@given(seed=st.integers(0, 1000))
@settings(max_examples=10)
def test_the_consensus_is_the_best_of_its_neighbours(link, seed):
    rng = np.random.default_rng(seed)
    votes = random_votes(rng, n_users=3, n_items=4, n_votes=60, tie_share=0.3, weighted=True)
    consensus = fit_consensus(votes, link)
    nobody = np.zeros(len(votes.slots.coordinate))
    work = np.empty(5), np.empty(len(nobody))

    def loss(at):
        return plain.loss_and_gradient(link, votes.slots, votes.edges, at, nobody, *work)

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
    np.testing.assert_allclose(
        fit_consensus(votes, Logistic()), fit_consensus(as_one, Logistic()), atol=1e-6
    )


def test_the_scores_of_the_consensus_are_centred():
    consensus = fit_consensus(random_votes(0, n_votes=100), Logistic())
    assert np.sum(consensus[:-1]) == pytest.approx(0.0, abs=1e-9)


@every_link
def test_an_item_that_always_wins_has_a_finite_score_above_all(link):
    rows = [("u", "best", item, 1) for item in "abc"] * 3
    rows += [("u", left, right, k) for left, right in ("ab", "bc", "ca") for k in (1, 0, -1)]
    votes = Comparisons.from_arrays(*zip(*rows, strict=True))
    consensus = fit_consensus(votes, link)
    assert np.isfinite(consensus).all()
    best = list(votes.items).index("best")
    others = np.delete(consensus[:-1], best)
    assert consensus[best] > others.max() + 1.0
    assert np.ptp(others) < 0.01


def test_the_threshold_of_the_consensus_never_passes_its_bound():
    votes = random_votes(0, tie_share=0.02, n_votes=100)
    for delta in (1e-3, 0.5, 2.0):
        assert fit_consensus(votes, Logistic(), delta=delta)[-1] >= delta


@every_link
def test_the_fit_before_entries_is_the_same_compiled(link):
    votes, dynamics = odd_one_out(), Dynamics(nu=0.5)
    one, other = (
        np.concatenate(fit_before_entries(votes, link, dynamics, backend=name, tol=1e-8))
        for name in ("numba", "numpy")
    )
    np.testing.assert_allclose(one, other, atol=1e-4)


# --- before anybody leaves -----------------------------------------------------------------


def slopes(votes, link, nu, consensus, deviation):
    """Return the gradient of loss + |P|^2 / (2 nu) in the consensus and in the deviations."""
    gradient, slot_gradient = np.empty(len(consensus)), np.empty(len(deviation))
    plain.loss_and_gradient(
        link, votes.slots, votes.edges, consensus, deviation, gradient, slot_gradient
    )
    return gradient, slot_gradient + deviation / nu


@pytest.mark.backend
@pytest.mark.parametrize("nu", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("name", ["logistic", "probit"])
def test_before_entries_nothing_pulls_any_more(name, nu):
    votes, link = odd_one_out(), LINKS[name]()
    consensus, deviation = fit_before_entries(votes, link, Dynamics(nu=nu), tol=1e-8)
    own = consensus[-1] + deviation[votes.slots.threshold]
    assert np.all(own > 2e-3)  # no bound is active, so that every slope must vanish
    gradient, slot_gradient = slopes(votes, link, nu, consensus, deviation)
    assert np.abs(slot_gradient).max() < 2e-3
    # The consensus carries a prior, far too wide to matter.
    assert np.abs(gradient[:-1] + consensus[:-1] / 1e4).max() < 2e-3
    assert np.abs(gradient[-1]) < 2e-3


def test_before_entries_users_at_the_bound_are_only_pushed_against_it():
    votes, link, nu = random_votes(1, tie_share=0.03, n_votes=120), Logistic(), 1.0
    consensus, deviation = fit_before_entries(votes, link, Dynamics(nu=nu), tol=1e-8)
    own = consensus[-1] + deviation[votes.slots.threshold]
    assert np.all(own >= 1e-3 - 1e-15)
    _, slot_gradient = slopes(votes, link, nu, consensus, deviation)
    at_bound = own < 1e-3 + 1e-12
    assert 0 < np.sum(at_bound) < votes.n_users
    of_threshold = slot_gradient[votes.slots.threshold]
    assert np.all(of_threshold[at_bound] > -1e-3)
    assert np.abs(of_threshold[~at_bound]).max() < 2e-3
    # The consensus meets the users through the ridge alone: it is their mean.
    assert np.sum(deviation[votes.slots.threshold]) == pytest.approx(0.0, abs=2e-3)
    assert consensus[-1] > 1e-3


def test_the_path_rests_at_this_fit_before_the_first_entry():
    votes, dynamics = odd_one_out(), Dynamics(nu=0.02, kappa=100.0)
    consensus, deviation = fit_before_entries(votes, Logistic(), dynamics, tol=1e-8)
    path = follow(votes, Logistic(), dynamics, Explicit(), [0.05])
    assert np.all(np.isinf(path.entry_times))
    np.testing.assert_allclose(path.consensus[-1], consensus, atol=0.01)
    np.testing.assert_allclose(path.deviation[-1], deviation, atol=0.01)


def test_a_small_nu_leaves_the_consensus_alone():
    votes = odd_one_out()
    consensus, deviation = fit_before_entries(votes, Logistic(), Dynamics(nu=1e-5), tol=1e-8)
    np.testing.assert_allclose(consensus, fit_consensus(votes, Logistic()), atol=5e-3)
    assert np.abs(deviation).max() < 1e-3


# --- where to look -------------------------------------------------------------------------


@pytest.mark.backend
@pytest.mark.parametrize("nu", [0.1, 1.0])
def test_default_times_span_the_entries(nu):
    votes, dynamics = odd_one_out(), Dynamics(nu=nu, kappa=10.0)
    times = default_times(votes, Logistic(), dynamics)
    path = follow(votes, Logistic(), dynamics, Explicit(), times, keep=False)
    assert times[0] < path.entry_times.min()
    assert np.isfinite(path.entry_times).mean() > 0.8
    assert times[-1] > 2 * np.quantile(path.entry_times, 0.7)
    # And not by so much that nothing happens in most of them.
    assert np.searchsorted(times, path.entry_times.min()) < 30
    assert np.argmin(path.entry_times) == 6


def test_default_times_are_geometric_and_as_many_as_asked():
    times = default_times(odd_one_out(), Probit(), Dynamics(), n_times=17)
    assert len(times) == 17
    assert np.all(times > 0)
    np.testing.assert_allclose(np.diff(np.log(times), n=2), 0.0, atol=1e-9)


def test_more_votes_of_other_users_hardly_move_the_first_time():
    # The loss is a sum: a user's entry depends on that user's own votes.
    few = odd_one_out()
    rows = np.concatenate([np.arange(len(few)), np.flatnonzero(few.user < 6)])
    names = np.where(np.arange(len(rows)) < len(few), "", "again-")
    many = Comparisons.from_arrays(
        np.char.add(names, few.users[few.user[rows]].astype(str)),
        few.items[few.left[rows]],
        few.items[few.right[rows]],
        few.outcome[rows],
    )
    one, other = (default_times(votes, Logistic(), Dynamics())[0] for votes in (few, many))
    assert other == pytest.approx(one, rel=0.2)


@pytest.mark.parametrize("outcomes", [[1, -1], [1], [0], [1, 0, -1]])
@pytest.mark.parametrize("n_users", [1, 2])
def test_users_in_perfect_agreement_still_give_finite_times(outcomes, n_users):
    rows = [(f"u{user}", "a", "b", outcome) for user in range(n_users) for outcome in outcomes]
    votes = Comparisons.from_arrays(*zip(*rows, strict=True))
    times = default_times(votes, Logistic(), Dynamics())
    assert np.isfinite(times).all()
    assert times[-1] < 1e5


def test_users_without_votes_do_not_count():
    whole = odd_one_out()
    votes = whole.subset(np.isin(whole.user, [0, 1, 6]))
    times = default_times(votes, Logistic(), Dynamics())
    assert np.isfinite(times).all()
    assert times[-1] < 100


# --- every user alone ----------------------------------------------------------------------


def indifferent(votes, threshold):
    """Return a consensus without preferences."""
    return np.append(np.zeros(votes.n_items), threshold)


def penalised(votes, link, ridge, consensus):
    """Return the loss of everybody's own scores and thresholds, vote by vote, as a function."""
    own_threshold = votes.slots.threshold[votes.user]
    rows = np.arange(votes.n_votes)
    weight = np.ones(len(rows)) if votes.weight is None else votes.weight

    def loss(point):
        margin = point[votes.left_slot] - point[votes.right_slot]
        chances = link.log_probabilities(margin, point[own_threshold])
        away = point - consensus[votes.slots.coordinate]
        return -weight @ chances[rows, 1 - votes.outcome] + 0.5 * ridge * away @ away

    return loss


def differences(loss, point, step=1e-6):
    """Return the gradient by differences."""
    away = step * np.eye(len(point))
    return np.array([(loss(point + each) - loss(point - each)) / (2 * step) for each in away])


@every_link
@pytest.mark.parametrize("n_users", [3, 40], ids=["few", "many"])  # by factors, by gradients
def test_every_user_alone_rests_where_nothing_pulls(link, n_users):
    votes = random_votes(2, n_users, 5, 12 * n_users, tie_share=0.15, weighted=True)
    ridge, delta, consensus = 0.2, 1e-3, np.array([0.3, -0.2, 0.0, 0.4, -0.5, 0.7])
    own = fit_each_user(votes, link, ridge, consensus, delta)
    assert (len(own) > 129) == (n_users == 40)
    slope = differences(penalised(votes, link, ridge, consensus), own)
    at_bound = np.zeros(len(own), dtype=bool)
    at_bound[votes.slots.threshold] = own[votes.slots.threshold] == delta
    assert np.abs(slope[~at_bound]).max() < 1e-4
    assert np.all(slope[at_bound] > -1e-4)
    assert np.abs(own - consensus[votes.slots.coordinate])[~at_bound].max() > 0.3


@pytest.mark.parametrize("delta", [1e-3, 0.5])
def test_the_threshold_of_a_user_never_passes_its_bound(delta):
    votes = random_votes(1, n_votes=120, tie_share=0.05)
    consensus = indifferent(votes, 1.0)
    own = fit_each_user(votes, Logistic(), 0.01, consensus, delta)
    thresholds = own[votes.slots.threshold]
    ties = np.bincount(votes.user, votes.outcome == 0)
    assert thresholds.min() == delta
    assert np.all(thresholds[ties == 0] == delta)
    assert thresholds.max() > delta
    slope = differences(penalised(votes, Logistic(), 0.01, consensus), own)
    assert np.all(slope[votes.slots.threshold][thresholds == delta] > 0.0)


@every_link
def test_users_do_not_touch_each_other(link):
    votes = random_votes(5, n_votes=150, tie_share=0.3)
    together = fit_each_user(votes, link, 0.1, indifferent(votes, 0.8))
    for user, name in enumerate(votes.users):
        rows = votes.user == user
        alone = Comparisons.from_arrays(
            [name] * rows.sum(), votes.items[votes.left[rows]], votes.items[votes.right[rows]],
            votes.outcome[rows],
        )  # fmt: skip
        begin, end = votes.slots.start[user : user + 2]
        np.testing.assert_allclose(
            fit_each_user(alone, link, 0.1, indifferent(alone, 0.8)),
            together[begin:end],
            atol=1e-5,
        )


def test_a_user_whose_votes_are_all_gone_has_the_consensus_and_nobody_else_is_moved():
    votes = random_votes(5, n_votes=150, tie_share=0.3)
    consensus = np.array([0.3, -0.2, 0.4, -0.5, 0.8])
    together = fit_each_user(votes, Logistic(), 0.1, consensus)
    others = fit_each_user(votes.subset(votes.user != 2), Logistic(), 0.1, consensus)
    begin, end = votes.slots.start[2:4]
    np.testing.assert_array_equal(others[begin:end], consensus)
    assert np.abs(together[begin:end] - consensus).max() > 0.1
    others[begin:end] = together[begin:end]
    np.testing.assert_allclose(others, together, atol=1e-5)


def test_the_stronger_the_ridge_the_nearer_everybody_is_to_the_consensus():
    votes = random_votes(0, n_votes=100)
    for consensus in (indifferent(votes, 0.6), np.array([0.3, -0.2, 0.4, -0.5, 0.8])):
        distances = []
        for ridge in (0.01, 1.0, 100.0, 1e6):
            own = fit_each_user(votes, Logistic(), ridge, consensus)
            distances.append(np.abs(own - consensus[votes.slots.coordinate]).max())
        assert distances == sorted(distances, reverse=True)
        assert distances[0] > 1.0
        assert distances[-1] < 1e-4


def test_a_fit_of_every_user_does_not_depend_on_its_start():
    votes = random_votes(3, n_votes=150)
    usual = fit_each_user(votes, Logistic(), 0.05, indifferent(votes, 0.9))
    start = np.random.default_rng(0).normal(size=len(usual))
    other = fit_each_user(votes, Logistic(), 0.05, indifferent(votes, 0.9), start=start)
    np.testing.assert_allclose(other, usual, atol=1e-5)


def test_one_user_without_a_ridge_to_speak_of_is_the_consensus():
    votes = random_votes(7, n_users=1, n_votes=150, tie_share=0.3)
    own = fit_each_user(votes, Logistic(), 1e-4, indifferent(votes, 5.0))
    np.testing.assert_allclose(own, fit_consensus(votes, Logistic()), atol=1e-3)
