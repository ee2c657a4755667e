"""The implicit scheme: against the explicit one, and every step against its own objective."""

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import spearmanr

from isplitlbi import ISplitLBI, kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.path import Ending
from isplitlbi.runtime import blocks
from isplitlbi.runtime.local import Local
from isplitlbi.solvers import Dynamics, Explicit, Implicit
from isplitlbi.solvers.state import State
from paths import (
    SLOW,
    SNAPSHOTS,
    TIMES,
    assert_equal_paths,
    assert_within_box,
    common_threshold,
    deviation_of,
    first_state,
    half_never_ties,
    in_agreement,
    mild_rows,
    mixed_votes,
    own_thresholds,
    prepared,
    relative_errors,
    scores,
    walk,
)
from votes import from_rows, random_votes

PARTS = (*SNAPSHOTS, "entry_times")
QUICK = Dynamics(nu=0.5, kappa=100.0)

every_link = pytest.mark.parametrize("link", [link() for link in LINKS.values()], ids=list(LINKS))


# --- the explicit scheme -------------------------------------------------------------------


@cache
def study(name):
    """Return votes, dynamics and times on which the explicit scheme is affordable."""
    if name == "uniform":  # hundreds of times stiffer: less damping, and an early end
        return mixed_votes(), Dynamics(nu=0.1, kappa=1.0), np.linspace(0.1, 0.5, 5)
    return mixed_votes(), SLOW, np.geomspace(0.05, 2.0, 6)


@cache
def true_path(name):
    """Return the limit of the explicit scheme: its error is linear in the step, and taken out."""
    votes, dynamics, times = study(name)
    coarse, fine = (
        walk(votes, Explicit(step_scale=scale), dynamics, times, link=LINKS[name]())
        for scale in {"logistic": (0.4, 0.2), "probit": (0.8, 0.4), "uniform": (1.0, 0.5)}[name]
    )
    assert np.isfinite(fine.entry_times).all()
    assert max(relative_errors(coarse, fine, "deviation")) < 0.01
    return SimpleNamespace(
        n_steps=fine.n_steps,
        **{part: 2.0 * getattr(fine, part) - getattr(coarse, part) for part in PARTS},
    )


def implicit_path(name, tol):
    votes, dynamics, times = study(name)
    return walk(votes, Implicit(tol=tol), dynamics, times, link=LINKS[name]())


# Worst right after the first entries, which are dated to a fraction of a step.
@pytest.mark.parametrize(("tol", "off"), [(Implicit().tol, 0.02), (1e-3, 0.01)])
@pytest.mark.parametrize("name", LINKS)
def test_it_follows_the_path_of_the_explicit_scheme(name, tol, off):
    truth, path = true_path(name), implicit_path(name, tol)
    assert path.ending is Ending.COMPLETE
    assert path.n_steps < truth.n_steps / 20
    assert max(relative_errors(path, truth, "deviation")) < off
    assert max(relative_errors(path, truth, "consensus")) < off / 2
    assert np.median(relative_errors(path, truth, "deviation")) < off / 4
    np.testing.assert_allclose(path.entry_times, truth.entry_times, rtol=off)
    assert np.corrcoef(path.entry_times, truth.entry_times)[0, 1] > 0.999


@pytest.mark.parametrize("name", LINKS)
def test_a_smaller_tolerance_comes_closer_to_the_explicit_path(name):
    truth = true_path(name)
    paths = [implicit_path(name, tol) for tol in (1e-2, 1e-3, 1e-4)]
    for part in ("deviation", "consensus"):
        errors = [np.linalg.norm(relative_errors(path, truth, part)) for path in paths]
        assert errors[1] < errors[0] / 2
        assert errors[2] < errors[1] / 2
        assert errors[2] < 2e-3
    of_entries = [np.max(np.abs(path.entry_times / truth.entry_times - 1)) for path in paths]
    assert of_entries[2] < 2e-3 and of_entries[2] < of_entries[0] / 3
    assert paths[0].n_steps < paths[1].n_steps < paths[2].n_steps


def test_users_leave_in_the_order_of_the_explicit_scheme():
    votes, _ = simulate(n_users=24, n_items=6, votes_per_user=(15, 40), random_state=3)
    times = [0.5, 2.0]
    one, other = (
        walk(votes, scheme, times=times) for scheme in (Implicit(), Explicit(step_scale=0.5))
    )
    assert np.isfinite(one.entry_times).sum() >= 20
    late = times[-1] + 1.0  # for those who never leave
    order = [np.minimum(path.entry_times, late) for path in (one, other)]
    assert spearmanr(*order).statistic > 0.999
    assert np.array_equal(one.sparse[-1] != 0, other.sparse[-1] != 0)


@pytest.mark.backend
@pytest.mark.parametrize("kappa", [5.0, 100.0])
def test_the_end_is_where_the_explicit_scheme_ends_too(kappa):
    votes, dynamics = random_votes(2, n_users=4, n_items=4, n_votes=40), Dynamics(1.0, kappa)
    schemes = (Implicit(), Explicit())
    one, other = (walk(votes, scheme, dynamics, [0.2, 0.6]) for scheme in schemes)
    for part in ("consensus", "deviation"):
        assert max(relative_errors(one, other, part)) < 0.01


# --- compiled and plain --------------------------------------------------------------------


@every_link
def test_a_whole_path_of_weighted_votes_is_the_same_compiled(link):
    votes = random_votes(1, n_users=6, n_items=5, n_votes=120, weighted=True)
    dynamics = Dynamics(nu=0.5, kappa=10.0)
    one, other = (walk(votes, None, dynamics, link=link, backend=b) for b in ("numba", "numpy"))
    assert one.n_steps == other.n_steps
    assert np.isfinite(one.entry_times).sum() >= 5
    for part in PARTS:
        np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=0, atol=1e-8)


def test_close_calls_move_the_compiled_path_by_less_than_the_tolerance():
    scheme, dynamics = Implicit(tol=1e-4), Dynamics(nu=0.5, kappa=10.0)
    one, other = (walk(mixed_votes(), scheme, dynamics, backend=b) for b in ("numba", "numpy"))
    for part in ("consensus", "deviation"):
        assert max(relative_errors(one, other, part)) < 1e-3


# --- one step is what it claims to be ------------------------------------------------------


class DenseStep:
    """One step of backward Euler, vote by vote, on matrices of users x (items + threshold)."""

    def __init__(self, votes, link, dynamics, old, new, step=None):
        self.votes, self.link, self.dynamics = votes, link, dynamics
        self.step = new.time - old.time if step is None else step
        slots = Layout.of(votes).slots
        self.place = slots.owner, slots.coordinate
        self.weight = np.ones(votes.n_votes) if votes.weight is None else votes.weight
        self.old, self.new = self.dense(old), self.dense(new)

    def dense(self, state):
        """Return consensus, deviation, dual and sparse as vectors and matrices."""
        shape = self.votes.n_users, self.votes.n_items + 1
        matrices = []
        for values in (state.deviation, state.dual, state.sparse):
            matrix = np.zeros(shape)
            matrix[self.place] = values
            matrices.append(matrix)
        return SimpleNamespace(c=state.consensus, p=matrices[0], z=matrices[1], gamma=matrices[2])

    def of_votes(self, c, p):
        """Return the margin and the threshold of every vote."""
        own, user = c + p, self.votes.user
        margin = own[user, self.votes.left] - own[user, self.votes.right]
        return margin, own[user, -1]

    def gradient(self, c, p):
        """Return the gradient of the loss in P; its sum over users is the gradient in c."""
        votes = self.votes
        rows = np.arange(votes.n_votes), 1 - votes.outcome
        slopes = self.link.gradient(*self.of_votes(c, p))[rows]
        by_margin, by_threshold = -(self.weight * slopes.T)
        gradient = np.zeros_like(p)
        np.add.at(gradient, (votes.user, votes.left), by_margin)
        np.add.at(gradient, (votes.user, votes.right), -by_margin)
        np.add.at(gradient, (votes.user, np.full(votes.n_votes, -1)), by_threshold)
        return gradient

    def phi(self, p):
        """Return what eliminating the new Z and Gamma leaves, summed over users.

        Z(W) is the proximal map of a/2 dist(., unit ball)^2, hence the gradient of
        |W|^2 / 2 less the Moreau envelope of that function.
        """
        h, nu, kappa = self.step, self.dynamics.nu, self.dynamics.kappa
        w, a = self.old.z + (h / nu) * p, kappa * h / nu
        distance = np.maximum(np.linalg.norm(w, axis=1) - 1.0, 0.0)
        envelope = a / (2.0 * (1.0 + a)) * distance**2
        potential = np.sum(0.5 * w**2) - np.sum(envelope)
        return nu / h**2 * potential - np.sum(self.old.z * p) / h

    def objective(self, c, own):
        """Evaluate the objective in the consensus and the users' own coordinates."""
        p = own.copy()
        p[:, -1] -= c[-1]
        log_probability = self.link.log_probabilities(*self.of_votes(c, p))
        rows = np.arange(self.votes.n_votes), 1 - self.votes.outcome
        moved = np.sum((c - self.old.c) ** 2) + np.sum((p - self.old.p) ** 2)
        return (
            -np.sum(self.weight * log_probability[rows])
            + moved / (2.0 * self.dynamics.kappa * self.step)
            + self.phi(p)
        )

    def residuals(self):
        """Return how far the new state is from the discrete equations.

        For the consensus, for P, and for Z. A threshold at its bound may be pushed against it,
        and what pushes a user's pushes the consensus too.
        """
        h, nu, kappa, delta = self.step, self.dynamics.nu, self.dynamics.kappa, self.dynamics.delta
        old, new = self.old, self.new
        gradient, pull = self.gradient(new.c, new.p), (new.p - new.gamma) / nu
        of_c = new.c - old.c + kappa * h * gradient.sum(axis=0)
        of_p = new.p - old.p + kappa * h * (gradient + pull)
        of_z = new.z - old.z - h * pull
        bound = new.c[-1] + new.p[:, -1] < delta + 1e-14
        of_c[-1] -= np.sum(of_p[bound, -1])
        of_p[bound, -1] = np.minimum(of_p[bound, -1], 0.0)
        if new.c[-1] < delta + 1e-14:
            of_c[-1] = min(of_c[-1], 0.0)
        return of_c, of_p, of_z, int(np.sum(bound))


def midway(votes, dynamics, seed=0):
    """Return a state with users in and out of the consensus and thresholds on and off the bound."""
    rng = np.random.default_rng(seed)
    state, slots = first_state(votes, dynamics.delta), Layout.of(votes).slots
    state.time = 0.7
    state.consensus[:] = np.append(rng.normal(scale=0.5, size=votes.n_items), 0.6)
    state.deviation[:] = rng.normal(scale=0.3, size=len(state.deviation))
    own = np.resize([0.4, dynamics.delta, 0.05, dynamics.delta, 1.0], votes.n_users)
    state.deviation[slots.threshold] = own - 0.6
    state.dual[:] = rng.normal(size=len(state.dual))
    norm = np.sqrt(np.add.reduceat(state.dual**2, slots.start[:-1]))
    wanted = np.resize([0.0, 0.5, 1.5, 4.0, 0.95, 1.05], votes.n_users)
    state.dual *= np.repeat(wanted / norm, slots.sizes)
    state.dual_norm = kernels.backend("numpy").shrink_groups(
        slots, state.dual, dynamics.kappa, state.sparse
    )
    state.entry_times[state.dual_norm > 1.0] = 0.5
    return state


def one_step(votes, link, dynamics, state, length, tol=1e-10):
    """Take a first step from a state: it is a thousandth of the next time asked for."""
    new = state.copy()
    stepper = prepared(Implicit(tol=tol), votes, dynamics, link=link)
    stepper.step(new, 1000.0 * length, 1000.0 * length)
    assert new.time - state.time == pytest.approx(length, rel=1e-9)
    return DenseStep(votes, link, dynamics, state, new), new


STARTS = {
    "start": lambda votes, dynamics: first_state(votes, dynamics.delta),
    "midway": midway,
}
any_start = pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
any_length = pytest.mark.parametrize("length", [1e-3, 0.1, 2.0])


@any_start
@any_length
@every_link
def test_the_first_step_solves_the_discrete_equations(link, length, start):
    votes, dynamics = mixed_votes(), Dynamics(nu=0.5, kappa=10.0)
    dense, new = one_step(votes, link, dynamics, start(votes, dynamics), length)
    of_c, of_p, of_z, at_bound = dense.residuals()
    np.testing.assert_allclose(of_c, 0.0, atol=1e-7)
    np.testing.assert_allclose(of_p, 0.0, atol=1e-7)
    np.testing.assert_allclose(of_z, 0.0, atol=1e-12)
    norm = np.linalg.norm(dense.new.z, axis=1)
    np.testing.assert_allclose(norm, new.dual_norm, rtol=1e-12, atol=1e-15)
    shrunk = np.maximum(1.0 - 1.0 / np.maximum(norm, 1e-300), 0.0)
    np.testing.assert_allclose(
        dense.new.gamma, dynamics.kappa * shrunk[:, None] * dense.new.z, rtol=0, atol=1e-12
    )
    if start is midway:
        assert at_bound >= 2 or length < 0.01
        assert np.sum(norm > 1.0) >= 2
        assert np.sum(norm > 1.0) < votes.n_users or length > 1.0


@any_length
@every_link
def test_a_consensus_threshold_may_rest_at_its_bound(link, length):
    votes, dynamics = random_votes(2, n_users=6, n_items=5, tie_share=0.0), Dynamics(0.5, 10.0)
    start, layout = midway(votes, dynamics), Layout.of(votes)
    at = layout.vector.threshold
    start.consensus[at] = dynamics.delta  # held there by duals that push its users up
    start.dual[layout.slots.threshold] = 3.0
    start.deviation[layout.slots.threshold] = 0.0
    dense, new = one_step(votes, link, dynamics, start, length)
    assert new.consensus[at] == dynamics.delta
    for residual in dense.residuals()[:3]:
        np.testing.assert_allclose(residual, 0.0, atol=1e-7)


@any_start
@any_length
@every_link
def test_the_first_step_minimises_its_objective(link, length, start):
    votes, dynamics = mixed_votes(), Dynamics(nu=0.5, kappa=10.0)
    dense, _ = one_step(votes, link, dynamics, start(votes, dynamics), length)
    c, own = dense.new.c, dense.new.p.copy()
    own[:, -1] += c[-1]
    here, width = dense.objective(c, own), 1e-4
    # By how much a coordinate is off: its slope over its curvature, both from three values.
    for k, value in enumerate((*c, *own[dense.place])):
        move = np.zeros(len(c) + len(dense.place[0]))
        move[k] = width

        def moved(share, move=move):
            there = own.copy()
            there[dense.place] += share * move[len(c) :]
            return dense.objective(c + share * move[: len(c)], there)

        is_threshold = k == len(c) - 1 or (
            k >= len(c) and dense.place[1][k - len(c)] == votes.n_items
        )
        if is_threshold and value < dynamics.delta + 1e-9:
            assert moved(1.0) > here - 1e-9 * abs(here)
        else:
            share = 1.0 if not is_threshold else min(1.0, 0.01 * value / width)
            up, down = moved(share), moved(-share)
            off = 0.5 * (up - down) / (up + down - 2.0 * here) * share * width
            assert abs(off) < 2e-6
            assert up > here and down > here
    # Nor is anything gained by moving all of them at once.
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-2, 0.1):
        to_c, to_own = c + scale * rng.normal(size=len(c)), own.copy()
        to_own[dense.place] += scale * rng.normal(size=len(dense.place[0]))
        to_c[-1] = max(to_c[-1], dynamics.delta)
        to_own[:, -1] = np.maximum(to_own[:, -1], dynamics.delta)
        assert dense.objective(to_c, to_own) > here


@any_length
def test_phi_is_what_eliminating_the_dual_leaves(length):
    # The new Z solves Z + (kappa h / nu) shrink(Z) = W; the slope of phi is (Z - Z_old) / h.
    votes, dynamics = mixed_votes(), Dynamics(nu=0.5, kappa=10.0)
    old = midway(votes, dynamics)
    new = old.copy()
    dense = DenseStep(votes, Logistic(), dynamics, old, new, length)
    ratio = dynamics.kappa * length / dynamics.nu
    w = dense.old.z + length / dynamics.nu * dense.old.p
    norm = np.linalg.norm(w, axis=1)
    assert np.any(norm > 1.0)
    radius = [
        brentq(lambda r, n=n: r + ratio * max(r - 1.0, 0.0) - n, 0.0, n, xtol=1e-15) for n in norm
    ]
    z = w * (np.array(radius) / norm)[:, None]
    rng = np.random.default_rng(1)
    for _ in range(10):
        along = rng.normal(size=dense.old.p.shape)
        ahead, behind = (dense.phi(dense.old.p + share * along) for share in (1e-4, -1e-4))
        expected = np.sum((z - dense.old.z) / length * along)
        assert (ahead - behind) / 2e-4 == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.backend
@any_start
def test_later_steps_are_of_second_order(start):
    # (1 + 2r) / (1 + r) x_new - (1 + r) x + r^2 / (1 + r) x_before = h x', r = h / h_before:
    # a step of backward Euler, somewhat shorter and from somewhat further on.
    votes, dynamics = mixed_votes(), Dynamics(nu=0.5, kappa=10.0)
    stepper = prepared(Implicit(tol=1e-5), votes, dynamics)
    states = [start(votes, dynamics)]
    for _ in range(6):
        states.append(states[-1].copy())
        stepper.step(states[-1], 20.0, 20.0)
    for before, old, new in zip(states[:-2], states[1:-1], states[2:], strict=True):
        r = (new.time - old.time) / (old.time - before.time)
        origin = old.copy()
        for name in ("consensus", "deviation", "dual"):
            now, then = getattr(old, name), getattr(before, name)
            mixed = ((1 + r) ** 2 * now - r**2 * then) / (1 + 2 * r)
            setattr(origin, name, mixed)
        step = (new.time - old.time) * (1 + r) / (1 + 2 * r)
        dense = DenseStep(votes, Logistic(), dynamics, origin, new, step)
        of_c, of_p, of_z, _ = dense.residuals()
        np.testing.assert_allclose(of_c, 0.0, atol=1e-4)
        np.testing.assert_allclose(of_p, 0.0, atol=1e-4)
        np.testing.assert_allclose(of_z, 0.0, atol=1e-11)


# --- users and items of all sorts, for every link ------------------------------------------


def full_path(votes, link, far=3.0, dynamics=QUICK):
    path = walk(votes, None, dynamics, np.geomspace(0.05, far, 10), link=link)
    assert_within_box(path, dynamics.delta)
    return path


@every_link
@given(rows=mild_rows, kappa=st.sampled_from([2.0, 300.0]))
@settings(max_examples=10)
def test_every_threshold_stays_at_least_delta(link, rows, kappa):
    dynamics, times = Dynamics(0.3, kappa, delta=0.05), np.geomspace(0.01, 5.0, 12)
    assert_within_box(walk(from_rows(rows), None, dynamics, times, link=link), 0.05)


@pytest.mark.parametrize("kappa", [10.0, 100.0])
def test_users_who_never_tie_sit_at_delta(kappa):
    path = walk(half_never_ties(), None, Dynamics(nu=0.5, kappa=kappa), [0.3, 1.0, 3.0])
    np.testing.assert_allclose(own_thresholds(path)[1:, 6:], 1e-3, rtol=0, atol=1e-12)


def test_the_consensus_threshold_is_that_of_the_joint_projection():
    dynamics, schemes = Dynamics(nu=0.5, kappa=10.0), (Implicit(), Explicit(step_scale=0.5))
    one, other = (walk(half_never_ties(), each, dynamics, [0.3, 1.0, 3.0]) for each in schemes)
    np.testing.assert_allclose(common_threshold(one), common_threshold(other), rtol=0.01)
    np.testing.assert_allclose(own_thresholds(one), own_thresholds(other), rtol=0.02, atol=1e-3)


@every_link
def test_a_user_with_only_ties_gets_a_wider_threshold_and_flat_scores(link):
    ties = [("tie", left, right, 0) for left, right in ("ab", "bc", "ac") for _ in range(4)]
    votes = in_agreement(*ties)
    path = full_path(votes, link, dynamics=SLOW)
    user = int(np.flatnonzero(votes.users == "tie")[0])
    late = path.at(path.times[-1])
    assert np.all(deviation_of(votes, path, "tie", path.vector.threshold) > 0)
    assert late.threshold_of(user) > 1.5 * late.threshold_of(-1)
    assert np.ptp(late.scores_of(user)) < 0.3 * np.ptp(late.scores_of(-1))


@every_link
def test_votes_without_any_tie_bring_every_threshold_to_delta(link):
    path = full_path(random_votes(0, tie_share=0.0), link, far=5.0)
    np.testing.assert_allclose(own_thresholds(path)[-1], 1e-3, rtol=0, atol=1e-12)
    assert common_threshold(path)[-1] < 0.05


@every_link
def test_votes_of_only_ties_leave_all_scores_at_zero(link):
    path = full_path(random_votes(0, tie_share=1.1), link, far=1.0)
    np.testing.assert_allclose(scores(path), 0.0, atol=1e-12)
    assert np.all(np.diff(common_threshold(path)) >= 0)
    assert common_threshold(path)[-1] > 1.0


@every_link
def test_an_item_that_always_wins_ranks_first_with_a_finite_score(link):
    wins = [(user, "best", item, 1) for user in ("u1", "u2", "u3", "u4") for item in "abc"]
    votes = in_agreement(*wins, *wins)
    path = full_path(votes, link, far=100.0)
    best = list(votes.items).index("best")
    assert np.all(np.argmax(scores(path), axis=1) == best)
    assert 0.5 < scores(path)[-1, best] < 100.0
    late = path.at(path.times[-1])
    assert all(np.argmax(late.scores_of(user)) == best for user in range(votes.n_users))


@pytest.mark.parametrize("outcome", [1, 0, -1])
def test_a_lone_vote_may_be_followed_very_far(outcome):
    votes = Comparisons.from_arrays(["u"], ["a"], ["b"], [outcome])
    lead = -np.diff(scores(full_path(votes, Logistic(), far=100.0)), axis=1)
    assert np.all(np.sign(lead) == outcome)


@every_link
@pytest.mark.parametrize("n_ties", [0, 1])
def test_nearly_separable_votes_do_not_diverge(link, n_ties):
    # Nine users agree in everything, one in nothing; the likelihood alone has no finite maximum.
    votes = []
    for user in range(10):
        for i in range(6):
            votes += [(user, i, j, 1 if user < 9 else -1) for j in range(i) for _ in range(20)]
        votes += [(user, 0, 1, 0)] * n_ties
    votes = Comparisons.from_arrays(*zip(*votes, strict=True))
    times = np.geomspace(1e-3, 1e3, 20)
    path = walk(votes, None, Dynamics(nu=1.0, kappa=1000.0), times, link=link)
    assert_within_box(path, 1e-3)
    assert np.all(np.diff(scores(path)[-1]) > 0)
    assert np.argmin(path.entry_times) == 9
    assert np.all(np.diff(path.at(times[-1]).scores_of(9)) < 0)
    assert path.n_steps < 500


@pytest.mark.parametrize("nu", [1e-3, 1e3])
@pytest.mark.parametrize("kappa", [0.1, 1e4])
@every_link
def test_extreme_dynamics_give_a_path_too(link, nu, kappa):
    path = full_path(mixed_votes(), link, far=50.0, dynamics=Dynamics(nu, kappa))
    assert path.n_steps < 1000


# --- threads and blocks --------------------------------------------------------------------


def many_users():
    votes, _ = simulate(n_users=20, n_items=8, votes_per_user=(10, 30), random_state=5)
    return votes


def test_the_number_of_threads_leaves_no_trace(monkeypatch):
    monkeypatch.setattr(blocks, "EDGES_PER_BLOCK", 16)
    votes = many_users()
    assert len(blocks.Blocks(Layout.of(votes), Local(votes))) > 10
    alone = walk(votes)
    assert np.isfinite(alone.entry_times).sum() > 10
    assert_equal_paths(alone, walk(votes, n_threads=3))


@every_link
def test_the_number_of_blocks_matters_no_more_than_rounding(monkeypatch, link):
    votes = many_users()
    whole = walk(votes, link=link)
    monkeypatch.setattr(blocks, "EDGES_PER_BLOCK", 64)
    path = walk(votes, link=link, n_threads=2)
    assert path.n_steps == whole.n_steps
    for part in PARTS:
        np.testing.assert_allclose(getattr(path, part), getattr(whole, part), rtol=0, atol=1e-9)


# --- times between steps -------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded(Implicit):
    """The implicit scheme, noting the states its steps end in."""

    states: list = field(default_factory=list, compare=False)

    def prepare(self, layout, settings, runtime):
        inner, states = super().prepare(layout, settings, runtime), self.states

        class Recorder:
            def step(self, state, until, last):
                inner.step(state, until, last)
                states.append(state.copy())

        return Recorder()


@every_link
def test_asking_for_more_times_does_not_move_the_path(link):
    # The first time sets the first step and the last time the last one; those between are free.
    votes, more = mixed_votes(), np.union1d(np.linspace(0.05, 2.0, 40), TIMES)
    few_times, many_times = (walk(votes, None, QUICK, times, link=link) for times in (TIMES, more))
    common = np.isin(more, TIMES)
    assert np.sum(common) == len(TIMES)
    for part in ("consensus", "deviation", "sparse"):
        np.testing.assert_allclose(
            getattr(many_times, part)[common], getattr(few_times, part), rtol=0, atol=1e-9
        )
    np.testing.assert_allclose(many_times.entry_times, few_times.entry_times, rtol=0, atol=1e-9)
    assert many_times.n_steps == few_times.n_steps


def test_another_first_or_last_time_moves_the_path_by_little():
    votes = mixed_votes()
    usual = walk(votes, None, QUICK, [0.05, 0.4, 0.8, 1.2, 2.0])
    for times in ([0.005, 0.4, 0.8, 1.2, 2.0], [0.05, 0.4, 0.8, 1.2, 2.7]):
        path = walk(votes, None, QUICK, times)
        for part in ("consensus", "deviation"):
            assert max(relative_errors(path, usual, part)[1:4]) < 0.01


def test_snapshots_lie_on_the_line_between_the_steps_around_them():
    scheme, times = Recorded(), np.linspace(0.05, 2.0, 60)
    path = walk(mixed_votes(), scheme, QUICK, times)
    ends = np.array([state.time for state in scheme.states])
    assert path.n_steps == len(ends)
    assert ends[-1] == 2.0
    assert np.all(np.diff(ends) > 0)
    assert np.mean(np.isin(times, ends)) < 0.2  # steps are not cut at the times asked for
    for part in ("consensus", "deviation"):
        rows = np.array([getattr(state, part) for state in scheme.states])
        for column in range(rows.shape[1]):
            expected = np.interp(times, ends, rows[:, column])
            np.testing.assert_allclose(getattr(path, part)[:, column], expected, atol=1e-12)


def test_who_is_out_agrees_with_the_entry_times_at_every_snapshot():
    votes, times, states = mixed_votes(), np.linspace(0.05, 2.0, 150), []
    path = walk(votes, times=times, observe=lambda _, s: states.append(s.copy()))
    assert np.isfinite(path.entry_times).all()
    for k, (time, state) in enumerate(zip(times, states, strict=True)):
        assert state.time == time
        out = path.entry_times <= time
        group_norm = np.sqrt(np.add.reduceat(path.sparse[k] ** 2, path.slots.start[:-1]))
        np.testing.assert_array_equal(group_norm > 0, out)
        np.testing.assert_array_equal(state.dual_norm > 1.0, out)
        np.testing.assert_array_equal(state.entry_times, np.where(out, path.entry_times, np.inf))
        np.testing.assert_array_equal(np.sort(path.support_at(time)), np.flatnonzero(out))


def test_steps_grow_along_the_path():
    scheme = Recorded()
    walk(many_users(), scheme, QUICK, [0.05, 20.0])
    steps = np.diff([0.0, *(state.time for state in scheme.states)])
    assert steps[0] == pytest.approx(0.05e-3)
    assert np.max(steps) > 1000 * steps[0]
    assert len(steps) < 300


class Patient:
    """The compiled loops, until somebody calls them too often."""

    def __init__(self, calls):
        self.calls = calls

    def __getattr__(self, name):
        def loop(*args):
            self.calls -= 1
            assert self.calls > 0, "the step goes on forever"
            return getattr(kernels.backend(), name)(*args)

        return loop


def test_every_last_time_is_reached():
    # The step to the last time is stretched to land on it. Were it refused and tried again with
    # the same length, it would be refused forever.
    votes, states = mixed_votes(), [first_state(mixed_votes())]
    stepper = prepared(Implicit(), votes, SLOW, loops=Patient(10**6))
    while states[-1].time < 1.0:
        states.append(states[-1].copy())
        stepper.step(states[-1], 0.05, 1e3)
    for state, after in pairwise(states[5:]):
        for share in np.linspace(0.8, 1.5, 15):
            last, landing = state.time + share * (after.time - state.time), state.copy()
            stepper = prepared(Implicit(), votes, SLOW, loops=Patient(3000))
            while landing.time < last:
                stepper.step(landing, last, last)
            assert landing.time == last


# --- from any state ------------------------------------------------------------------------


def without_memory(state):
    """Return the same state, as if no step had led to it."""
    return State(
        state.time, state.consensus, state.deviation, state.dual, state.sparse, state.dual_norm,
        state.entry_times, state.n_steps,
    )  # fmt: skip


def test_a_path_may_go_on_from_a_state_of_any_origin():
    votes, states = mixed_votes(), []
    straight = walk(votes)
    for scheme in (Implicit(), Explicit(step_scale=0.5)):
        walk(votes, scheme, observe=lambda _, s: states.append(s.copy()))
    # Between steps, of the other scheme, and the end of a path whose last steps are forgotten.
    walk(votes, times=TIMES[:4], observe=lambda _, s: states.append(s.copy()))
    assert states[-1].memory is not None
    for state in (states[3], states[8 + 3], without_memory(states[-1])):
        assert state.time == TIMES[3]
        onwards = walk(votes, times=TIMES[4:], initial=state)
        for part in ("consensus", "deviation"):
            found, expected = getattr(onwards, part), getattr(straight, part)[4:]
            off = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
            assert max(off) < 0.015


# --- settings ------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [0.0, -1e-3, 1.0, 7.0, float("nan"), float("inf")])
def test_a_tolerance_must_lie_between_zero_and_one(tol):
    with pytest.raises(ValueError, match=f"tol is {tol}; it must lie between 0 and 1"):
        Implicit(tol=tol)


def test_rough_paths_have_a_larger_tolerance_within_bounds():
    assert Implicit(tol=1e-3).rough().tol == pytest.approx(5e-3)
    assert Implicit(tol=0.05).rough().tol == pytest.approx(0.1)
    assert Implicit(tol=0.5).rough().tol == 0.5


# --- the whole of it -----------------------------------------------------------------------


# All terms need so many explicit steps that the plain loops would take minutes.
@pytest.mark.parametrize(
    ("link", "terms"),
    [
        pytest.param("logistic", "paper", marks=pytest.mark.backend),
        pytest.param("probit", "paper", marks=pytest.mark.backend),
        ("logistic", "all"),
    ],
)
def test_both_solvers_give_nearly_the_same_model(link, terms):
    votes, _ = simulate(n_users=12, n_items=5, votes_per_user=(15, 25), random_state=2)
    settings = {"link": link, "kappa": 5.0, "times": [0.2, 0.5], "time": 0.5, "n_jobs": 1}
    settings |= {"terms": terms, "with_tests": False}
    models = (ISplitLBI(**settings, solver=solver) for solver in ("implicit", "explicit"))
    one, other = (model.fit(votes) for model in models)
    assert one.path_.settings["scheme"] == "implicit"
    np.testing.assert_allclose(one.consensus_, other.consensus_, rtol=0.01, atol=0.01)
    assert one.threshold_ == pytest.approx(other.threshold_, rel=0.02)
    assert 0 < len(one.left_consensus_) < votes.n_users
    assert one.left_consensus_ == other.left_consensus_
    pairs = [(user, one.items_[0], one.items_[1]) for user in one.users_]
    np.testing.assert_allclose(one.predict_proba(pairs), other.predict_proba(pairs), atol=0.01)
