"""The explicit scheme against its own definition: Eq. 9, written again on dense matrices."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.kernels import Gradient, Problem
from isplitlbi.model.links import LINKS, Logistic, Probit
from isplitlbi.model.terms import PAPER
from isplitlbi.solvers import Dynamics, Explicit
from paths import (
    SLOW,
    SNAPSHOTS,
    TIMES,
    common_threshold,
    first_state,
    half_never_ties,
    mixed_votes,
    own_thresholds,
    prepared,
    walk,
)
from traits import SIZED, Leftmost, Newest, terms_with
from votes import random_votes

PROJECTIONS = ["joint", "separate"]
SPARSE = ["new", "old"]
CLOSE_TO_BOUND = Dynamics(nu=0.5, kappa=5.0, delta=0.01)
MODELS = {"paper": PAPER, "traits": terms_with(Leftmost(), Newest())}

every_model = pytest.mark.parametrize("terms", MODELS.values(), ids=MODELS)


@dataclass(frozen=True)
class Recorded(Explicit):
    """The explicit scheme, noting its steps."""

    steps: list = field(default_factory=list, compare=False)

    def prepare(self, layout, settings, runtime):
        inner, steps = super().prepare(layout, settings, runtime), self.steps

        class Recorder:
            def step(self, state, until, last):
                since = state.time
                inner.step(state, until, last)
                steps.append(state.time - since)

        return Recorder()


# --- the definition ------------------------------------------------------------------------


class DenseEquation9:
    """Eq. 9 with the logistic link, vote by vote, on matrices of users x (items + threshold)."""

    def __init__(self, votes, nu, kappa, delta, projection, sparse_from="new"):
        self.votes = list(zip(votes.user, votes.left, votes.right, votes.outcome, strict=True))
        self.index = tuple(np.array(column) for column in zip(*self.votes, strict=True))
        self.nu, self.kappa, self.delta, self.projection = nu, kappa, delta, projection
        self.sparse_from = sparse_from
        self.c = np.zeros(votes.n_items + 1)
        self.c[-1] = 1.0
        self.p, self.z, self.gamma = (
            np.zeros((votes.n_users, votes.n_items + 1)) for _ in range(3)
        )

    def gradient(self):
        """Return the gradient in P; its sum over users is the gradient in c."""
        own = self.c + self.p
        user, left, right, outcome = self.index
        margin, threshold = own[user, left] - own[user, right], own[user, -1]
        lost = 1.0 - expit(outcome * margin - threshold)
        high, low = expit(threshold - margin), expit(-threshold - margin)
        density_high, density_low = high * (1.0 - high), low * (1.0 - low)
        tie = outcome == 0
        by_margin = np.where(tie, (density_high - density_low) / (high - low), -outcome * lost)
        by_threshold = np.where(tie, -(density_high + density_low) / (high - low), lost)
        gradient = np.zeros_like(self.p)
        np.add.at(gradient, (user, left), by_margin)
        np.add.at(gradient, (user, right), -by_margin)
        np.add.at(gradient, (user, np.full(len(user), -1)), by_threshold)
        return gradient

    def step(self, alpha):
        gradient, pull = self.gradient(), (self.p - self.gamma) / self.nu
        self.c = self.c - self.kappa * alpha * gradient.sum(axis=0)
        self.p = self.p - self.kappa * alpha * (gradient + pull)
        old, self.z = self.z, self.z + alpha * pull
        z = old if self.sparse_from == "old" else self.z
        norm = np.linalg.norm(z, axis=1, keepdims=True)
        self.gamma = self.kappa * np.maximum(0.0, 1.0 - 1.0 / np.maximum(norm, 1e-300)) * z
        self.project()

    def project(self):
        center, own = self.c[-1], self.p[:, -1]
        if self.projection == "joint":
            # However many users share the move with the consensus, the highest mean is the root.
            gaps = np.sort(self.delta - own)[::-1]
            means = (center + np.cumsum(gaps)) / (2.0 + np.arange(len(gaps)))
            center = max(center, means.max())
        self.c[-1] = max(center, self.delta)
        self.p[:, -1] = np.maximum(own, self.delta - self.c[-1])


@pytest.mark.backend
@pytest.mark.parametrize("sparse_from", SPARSE)
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_the_path_is_equation_9_on_dense_matrices(projection, sparse_from):
    votes, scheme = mixed_votes(), Recorded(projection=projection, sparse_from=sparse_from)
    path = walk(votes, scheme, CLOSE_TO_BOUND)
    assert 500 < path.n_steps == len(scheme.steps)
    assert np.isfinite(path.entry_times).sum() >= 4

    dense = DenseEquation9(votes, 0.5, 5.0, 0.01, projection, sparse_from)
    compared = np.zeros(dense.p.shape, dtype=bool)
    place = path.slots.owner, path.slots.coordinate
    compared[place] = True
    assert not compared.all()
    time, index, at_bound = 0.0, 0, 0
    for alpha in scheme.steps:
        dense.step(alpha)
        time += alpha
        at_bound += np.any(dense.c[-1] + dense.p[:, -1] < 0.01 + 1e-12)
        if abs(time - TIMES[index]) < 1e-9:
            np.testing.assert_allclose(path.consensus[index], dense.c, rtol=0, atol=1e-8)
            np.testing.assert_allclose(path.deviation[index], dense.p[place], rtol=0, atol=1e-8)
            np.testing.assert_allclose(path.sparse[index], dense.gamma[place], rtol=0, atol=1e-8)
            # What a user never compared has no slot here, and stays exactly zero there.
            assert not dense.p[~compared].any()
            assert not dense.gamma[~compared].any()
            np.testing.assert_allclose(
                [path.at(time_).scores_of(3) for time_ in TIMES[[index]]],
                [(dense.c + dense.p[3])[:-1]],
                rtol=0,
                atol=1e-8,
            )
            index += 1
    assert index == len(TIMES)
    assert at_bound > 10  # the projection had something to do


def test_entry_times_are_when_the_dense_dual_passes_one():
    votes, scheme = mixed_votes(), Recorded()
    path = walk(votes, scheme, CLOSE_TO_BOUND)
    dense = DenseEquation9(votes, 0.5, 5.0, 0.01, "joint")
    entered, time = np.full(votes.n_users, np.inf), 0.0
    for alpha in scheme.steps:
        old = np.linalg.norm(dense.z, axis=1)
        dense.step(alpha)
        norm = np.linalg.norm(dense.z, axis=1)
        for u in np.flatnonzero((old <= 1) & (norm > 1) & np.isinf(entered)):
            entered[u] = np.interp(1.0, [old[u], norm[u]], [time, time + alpha])
        time += alpha
    np.testing.assert_allclose(path.entry_times, entered, rtol=0, atol=1e-8)


# --- the step ------------------------------------------------------------------------------


def hessian_by_differences(votes, terms, link, state, nu):
    """Return the same from slopes of the gradient, with all that terms and a prior add."""
    layout, plain = terms.layout(votes), kernels.backend("numpy")
    problem, answering = Problem.of(layout, 1e-3, terms), terms.answering(link)
    width, n_slots = layout.vector.width, layout.n_slots
    room, step = Gradient(np.empty(width), np.empty(n_slots)), 1e-5

    def gradient(moved):
        plain.loss_and_gradient(answering, problem, moved[:width], moved[width:], room)
        return np.append(room.consensus, room.slots + moved[width:] / nu)

    at = np.append(state.consensus, state.deviation)
    units = step * np.eye(len(at))
    rows = [(gradient(at + unit) - gradient(at - unit)) / (2.0 * step) for unit in units]
    moves = np.append(problem.common > 0.0, np.ones(n_slots, dtype=bool))
    hessian = np.array(rows)[np.ix_(moves, moves)]
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-5 * (1.0 + np.abs(hessian).max()))
    return 0.5 * (hessian + hessian.T)


def dense_hessian(votes, terms, link, state, nu):
    """Return the curvature of loss + |P - Gamma|^2 / (2 nu) in (c, P), vote by vote."""
    layout = Layout.of(votes, terms.traits)
    slots, width, n_slots = layout.slots, layout.vector.width, layout.n_slots
    own = state.consensus[slots.coordinate] + state.deviation
    hessian = np.zeros((width + n_slots, width + n_slots))
    edges, owner = layout.edges, layout.edges.owner
    columns_of_edges = zip(edges.first, edges.second, *edges.counts, strict=True)
    for edge, (i, j, *counts) in enumerate(columns_of_edges):
        last, columns = slots.threshold[owner[edge]], edges.columns[:, edge]
        traits = last - len(columns) + np.arange(len(columns))
        margin = own[i] - own[j] + columns @ own[traits]
        mm, mt, tt = link.vote_terms(margin, own[last], *counts)[3:]
        by_margin, by_threshold = np.zeros(width + n_slots), np.zeros(width + n_slots)
        for slot, share in zip((i, j, *traits), (1.0, -1.0, *columns), strict=True):
            by_margin[[slots.coordinate[slot], width + slot]] = share
        by_threshold[[layout.vector.threshold, width + last]] = 1.0
        both = np.stack([by_margin, by_threshold])
        hessian += both.T @ np.array([[mm, mt], [mt, tt]]) @ both
    hessian[width:, width:] += np.eye(n_slots) / nu
    return hessian


def step_and_curvature(votes, link, nu, state, terms=PAPER):
    """Return kappa times the first step from a state, and the largest curvature there."""
    curvature = np.linalg.eigvalsh(dense_hessian(votes, terms, link, state, nu))[-1]
    dynamics = Dynamics(nu=nu, kappa=10.0)
    stepper = prepared(Explicit(), votes, dynamics, link=link, terms=terms, backend="numpy")
    stepper.step(state, 1e9, 1e9)
    return 10.0 * state.time, curvature


@every_model
@pytest.mark.parametrize("name", LINKS)
@given(seed=st.integers(0, 10_000), nu=st.sampled_from([0.05, 1.0, 20.0]))
@settings(max_examples=20)
def test_a_step_is_stable_at_any_state(name, terms, seed, nu):
    rng = np.random.default_rng(seed)
    votes = random_votes(rng, *rng.integers([1, 2, 1], [5, 6, 40]), tie_share=rng.random())
    state, layout = first_state(votes, terms=terms), Layout.of(votes, terms.traits)
    state.consensus[:] = rng.normal(size=len(state.consensus))
    state.consensus[layout.vector.threshold] = common = rng.uniform(0.01, 1.0)
    state.deviation = rng.normal(size=len(state.deviation))
    own = rng.choice([0.01, 0.1, 1.0, 3.0], size=votes.n_users)
    state.deviation[layout.slots.threshold] = own - common
    step, curvature = step_and_curvature(votes, LINKS[name](), nu, state, terms)
    assert step * curvature <= 2.0 + 1e-9
    assert step * 2.0 / nu <= 1.0 + 1e-9


@pytest.mark.parametrize("terms", SIZED.values(), ids=SIZED)
@given(seed=st.integers(0, 10_000), nu=st.sampled_from([0.05, 1.0, 20.0]), probit=st.booleans())
@settings(max_examples=6)
def test_a_step_is_stable_at_any_state_whatever_the_terms(terms, seed, nu, probit):
    link = Probit() if probit else Logistic()
    rng = np.random.default_rng(seed)
    sizes = rng.integers([1, 2, 1], [5, 6, 40])
    features = terms.as_dict()["features"]
    votes = random_votes(rng, *sizes, rng.random() * terms.has_ties, features=features)
    if terms.has_sharpness:
        terms = terms.referring(rng.normal(size=votes.n_items))
    layout, state = terms.layout(votes), first_state(votes, terms=terms)
    state.consensus[:] = rng.normal(size=len(state.consensus)) * terms.is_common(layout.vector)
    state.deviation[:] = rng.normal(size=len(state.deviation))
    if terms.scales[0] == 0.0:
        state.deviation[layout.slots.coordinate < layout.vector.n_items] = 0.0
    hessian = hessian_by_differences(votes, terms, link, state, nu)
    stepper = prepared(
        Explicit(), votes, Dynamics(nu=nu, kappa=10.0), link=link, terms=terms, backend="numpy"
    )
    stepper.step(state, 1e9, 1e9)
    assert 10.0 * state.time * np.linalg.eigvalsh(hessian)[-1] <= 2.0 + 1e-4
    assert 10.0 * state.time * 2.0 / nu <= 1.0 + 1e-9


def test_without_a_bound_nothing_is_projected():
    terms = SIZED["all"]
    votes = mixed_votes()
    path = walk(votes, Explicit(), times=[0.1], terms=terms)
    separate = walk(votes, Explicit(projection="separate"), times=[0.1], terms=terms)
    assert common_threshold(path)[0] < 0.0  # a logarithm
    np.testing.assert_array_equal(path.deviation, separate.deviation)


@pytest.mark.parametrize("n_users", [1, 3])
def test_a_step_is_stable_where_scores_and_threshold_curve_together(n_users):
    # Wins at a margin near the threshold, on one pair: nothing is steeper for so few votes.
    rows = [(user, "a", "b", 1) for user in range(n_users) for _ in range(10)]
    votes = Comparisons.from_arrays(*zip(*rows, strict=True))
    state = first_state(votes)
    state.consensus[:] = [0.005, -0.005, 0.01]
    step, curvature = step_and_curvature(votes, Logistic(), 1e6, state)
    assert 1.0 < step * curvature <= 2.0


def test_the_objective_falls_at_every_step_before_anybody_leaves():
    votes, values = mixed_votes(), []
    plain, layout = kernels.backend("numpy"), Layout.of(votes)
    problem = Problem.of(layout, SLOW.delta)
    room = Gradient(np.empty(layout.vector.width), np.empty(layout.n_slots))

    def note(_, state):
        loss = plain.loss_and_gradient(Logistic(), problem, state.consensus, state.deviation, room)
        values.append(loss + state.deviation @ state.deviation / (2 * SLOW.nu))

    path = walk(votes, Explicit(), times=np.linspace(1e-3, 0.2, 400), observe=note)
    assert np.all(path.entry_times > 0.2)
    assert np.all(np.diff(values) <= 1e-12)


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_halving_the_step_halves_the_error(projection):
    votes, ends = mixed_votes(), []
    for scale in (0.4, 0.2, 0.1):
        scheme = Explicit(step_scale=scale, projection=projection)
        path = walk(votes, scheme, times=np.linspace(0.2, 1.5, 8))
        ends.append(np.hstack([path.consensus, path.deviation]))
    coarse, fine = np.linalg.norm(ends[0] - ends[1]), np.linalg.norm(ends[1] - ends[2])
    assert 1.7 < coarse / fine < 2.4
    assert fine < 0.01 * np.linalg.norm(ends[2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step_scale": 0.0}, "step_scale is 0.0; it must lie in"),
        ({"step_scale": 100.0}, "step_scale is 100.0"),
        ({"step_scale": float("nan")}, "step_scale is nan"),
        ({"projection": "none"}, "projection 'none' is not one of joint, separate"),
        ({"sparse_from": "none"}, "sparse_from 'none' is not one of new, old"),
    ],
)
def test_settings_that_make_no_step_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Explicit(**settings)


# --- the limit of small nu -----------------------------------------------------------------


def lbi(votes, kappa, times, n_steps):
    """Follow linearized Bregman iterations: the limit in which P = Gamma.

    Z' = (P - Gamma) / nu = -grad L - P' / kappa, so that V = Z + P / kappa follows V' = -grad L;
    from P = kappa shrink(Z) it has P = kappa / 2 shrink(V): LBI with half the damping.
    """
    dense = DenseEquation9(votes, 1.0, kappa, 1e-3, "joint")
    v, results = np.zeros_like(dense.p), []
    alpha = times[-1] / n_steps
    for k in range(1, n_steps + 1):
        gradient = dense.gradient()
        dense.c = dense.c - kappa * alpha * gradient.sum(axis=0)
        v = v - alpha * gradient
        norm = np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
        dense.p = 0.5 * kappa * np.maximum(0.0, 1.0 - 1.0 / norm) * v
        assert np.all(dense.c[-1] + dense.p[:, -1] > 0.01)  # the bounds play no part
        if np.any(np.abs(k * alpha - times) < 0.5 * alpha):
            results.append((dense.c, dense.p))
    return [np.array(rows) for rows in zip(*results, strict=True)]


def test_small_nu_gives_linearized_bregman_iterations():
    votes = random_votes(5, n_users=4, n_items=4, n_votes=50, tie_share=0.35)
    times, kappa = np.array([0.2, 0.4, 0.6, 0.8]), 3.0
    consensus, deviation = lbi(votes, kappa, times, 8000)
    assert np.any(deviation[-1]) and np.all(deviation[0] == 0)
    errors = []
    for nu in (0.1, 0.01, 0.001):
        path = walk(votes, Explicit(), Dynamics(nu=nu, kappa=kappa), times)
        place = (slice(None), path.slots.owner, path.slots.coordinate)
        errors.append(
            max(
                np.abs(path.consensus - consensus).max(),
                np.abs(path.deviation - deviation[place]).max(),
                np.abs(path.sparse - deviation[place]).max(),
            )
        )
    assert errors[1] < errors[0] / 3
    assert errors[2] < errors[1] / 3
    assert errors[2] < 0.02


# --- the paper's projection ----------------------------------------------------------------


def test_the_papers_literal_rule_lets_users_who_never_tie_drag_the_consensus_threshold_down():
    dynamics = Dynamics(nu=0.5, kappa=10.0)
    scheme = Explicit(projection="separate")
    path = walk(half_never_ties(), scheme, dynamics, [0.3, 1.0, 3.0])
    assert common_threshold(path)[-1] == pytest.approx(dynamics.delta)
    own = own_thresholds(path)[-1]
    assert np.all(own[:6] > 0.2)
    assert np.all(own[6:] < 0.05)


# --- the paper's order ---------------------------------------------------------------------


def test_gamma_of_the_old_dual_comes_one_step_later():
    votes, schemes = mixed_votes(), [Recorded(sparse_from=each) for each in SPARSE]
    new, old = (walk(votes, scheme, CLOSE_TO_BOUND) for scheme in schemes)
    left = np.isfinite(new.entry_times)
    assert left.sum() >= 4
    later = (old.entry_times - new.entry_times)[left]
    assert np.all(later > 0.0) and later.max() < 3.0 * max(schemes[0].steps)
    moved = np.linalg.norm(old.deviation[-1] - new.deviation[-1])
    assert 0.0 < moved < 0.01 * np.linalg.norm(new.deviation[-1])


# --- from any state ------------------------------------------------------------------------


@pytest.mark.backend
@pytest.mark.parametrize("sparse_from", SPARSE)
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_a_path_that_is_taken_up_again_is_the_same_to_the_last_bit(projection, sparse_from):
    votes, states = mixed_votes(), []
    scheme = Explicit(projection=projection, sparse_from=sparse_from)
    straight = walk(votes, scheme)
    walk(votes, scheme, times=TIMES[:5], observe=lambda _, s: states.append(s.copy()))
    onwards = walk(votes, scheme, times=TIMES[5:], initial=states[-1])
    for name in SNAPSHOTS:
        np.testing.assert_array_equal(getattr(onwards, name), getattr(straight, name)[5:])
    np.testing.assert_array_equal(onwards.entry_times, straight.entry_times)
    assert onwards.n_steps == straight.n_steps
