"""The explicit scheme against its own definition: Eq. 9, written again on dense matrices."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.solvers import Dynamics, Explicit, State, follow
from isplitlbi.solvers.driver import Machine
from votes import from_rows, random_votes

PROJECTIONS = ["joint", "separate"]
TIMES = np.geomspace(0.05, 2.0, 8)

few = settings(max_examples=15)


def mixed_votes(n_items=6):
    """Six users of all sorts: often and never a tie, many votes and few, and tastes that clash."""
    rng = np.random.default_rng(7)
    scores = np.linspace(-1.0, 1.0, n_items)
    votes = []
    for name, sign, threshold, n in [
        ("ann", 1, 0.8, 25),
        ("bob", 1, 0.0, 20),
        ("cas", -1, 0.5, 20),
        ("dee", 1, 0.0, 12),
        ("eve", -1, 0.0, 6),
        ("fay", 1, 2.5, 15),
    ]:
        for _ in range(n):
            i, j = rng.choice(n_items - (name != "ann"), size=2, replace=False)
            lead = sign * (scores[i] - scores[j]) + rng.logistic(scale=0.7)
            votes.append((name, f"i{i}", f"i{j}", int(np.sign(lead)) * (abs(lead) > threshold)))
    return Comparisons.from_arrays(*zip(*votes, strict=True))


def own_thresholds(path):
    return path.consensus[:, -1:] + path.deviation[:, path.slots.threshold]


def assert_equal_paths(one, other):
    """Assert that two paths are equal to the last bit."""
    for name in ("times", "consensus", "deviation", "sparse", "entry_times"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.n_steps == other.n_steps
    assert one.ending is other.ending


@dataclass(frozen=True)
class Recorded(Explicit):
    """The explicit scheme, noting its steps."""

    steps: list = field(default_factory=list, compare=False)

    def prepare(self, votes, link, dynamics, loops):
        inner, steps = super().prepare(votes, link, dynamics, loops), self.steps

        class Recorder:
            def step(self, state, until, last):
                since = state.time
                inner.step(state, until, last)
                steps.append(state.time - since)

        return Recorder()


# --- compiled and plain --------------------------------------------------------------------


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("name", LINKS)
def test_a_whole_path_is_the_same_compiled(name, projection):
    # The uniform link's curvature is two hundred times larger, and so is its number of steps.
    far = 2.0 if name != "uniform" else 0.05
    dynamics = Dynamics(nu=0.5, kappa=5.0) if name != "uniform" else Dynamics(nu=0.01, kappa=5.0)
    votes, times = mixed_votes(), np.linspace(far / 5, far, 5)
    args = (votes, LINKS[name](), dynamics, Explicit(projection=projection), times)
    one, other = (follow(*args, backend=backend) for backend in ("numba", "numpy"))
    assert one.n_steps == other.n_steps > 100
    assert np.isfinite(one.entry_times).any()
    for part in ("consensus", "deviation", "sparse", "entry_times"):
        np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=0, atol=1e-10)


# --- the definition ------------------------------------------------------------------------


class DenseEquation9:
    """Eq. 9 with the logistic link, vote by vote, on matrices of users x (items + threshold)."""

    def __init__(self, votes, nu, kappa, delta, projection):
        self.votes = list(zip(votes.user, votes.left, votes.right, votes.outcome, strict=True))
        self.index = tuple(np.array(column) for column in zip(*self.votes, strict=True))
        self.nu, self.kappa, self.delta, self.projection = nu, kappa, delta, projection
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
        self.z = self.z + alpha * pull
        norm = np.linalg.norm(self.z, axis=1, keepdims=True)
        self.gamma = self.kappa * np.maximum(0.0, 1.0 - 1.0 / np.maximum(norm, 1e-300)) * self.z
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
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_the_path_is_equation_9_on_dense_matrices(projection):
    votes, dynamics = mixed_votes(), Dynamics(nu=0.5, kappa=5.0, delta=0.01)
    scheme = Recorded(projection=projection)
    path = follow(votes, Logistic(), dynamics, scheme, TIMES)
    assert 500 < path.n_steps == len(scheme.steps)
    assert np.isfinite(path.entry_times).sum() >= 4

    dense = DenseEquation9(votes, 0.5, 5.0, 0.01, projection)
    compared = np.zeros(dense.p.shape, dtype=bool)
    place = votes.slots.owner, votes.slots.coordinate
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
    votes, dynamics = mixed_votes(), Dynamics(nu=0.5, kappa=5.0, delta=0.01)
    scheme = Recorded()
    path = follow(votes, Logistic(), dynamics, scheme, TIMES)
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


def dense_hessian(votes, link, state, nu):
    """Return the curvature of loss + |P - Gamma|^2 / (2 nu) in (c, P), vote by vote."""
    width, n_slots = votes.n_items + 1, len(votes.slots.coordinate)
    own = state.consensus[votes.slots.coordinate] + state.deviation
    hessian = np.zeros((width + n_slots, width + n_slots))
    counts = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
    for user, i, j, outcome in zip(
        votes.user, votes.left_slot, votes.right_slot, votes.outcome, strict=True
    ):
        last = votes.slots.threshold[user]
        terms = link.vote_terms(own[i] - own[j], own[last], *counts[1 - outcome])
        mm, mt, tt = terms[3:]
        by_margin, by_threshold = np.zeros(width + n_slots), np.zeros(width + n_slots)
        for slot, sign in ((i, 1.0), (j, -1.0)):
            by_margin[[votes.slots.coordinate[slot], width + slot]] = sign
        by_threshold[[width - 1, width + last]] = 1.0
        both = np.stack([by_margin, by_threshold])
        hessian += both.T @ np.array([[mm, mt], [mt, tt]]) @ both
    hessian[width:, width:] += np.eye(n_slots) / nu
    return hessian


def step_and_curvature(votes, link, nu, state):
    """Return kappa times the first step from a state, and the largest curvature there."""
    curvature = np.linalg.eigvalsh(dense_hessian(votes, link, state, nu))[-1]
    dynamics = Dynamics(nu=nu, kappa=10.0)
    machine = Machine(kernels.backend("numpy"), n_threads=1)
    Explicit().prepare(votes, link, dynamics, machine).step(state, 1e9, 1e9)
    return 10.0 * state.time, curvature


@pytest.mark.parametrize("name", LINKS)
@given(seed=st.integers(0, 10_000), nu=st.sampled_from([0.05, 1.0, 20.0]))
@settings(max_examples=20)
def test_a_step_is_stable_at_any_state(name, seed, nu):
    rng = np.random.default_rng(seed)
    votes = random_votes(rng, *rng.integers([1, 2, 1], [5, 6, 40]), tie_share=rng.random())
    state = State.initial(votes.slots, votes.n_items, 1e-3)
    state.consensus[:-1] = rng.normal(size=votes.n_items)
    state.consensus[-1] = rng.uniform(0.01, 1.0)
    state.deviation = rng.normal(size=len(state.deviation))
    own = rng.choice([0.01, 0.1, 1.0, 3.0], size=votes.n_users)
    state.deviation[votes.slots.threshold] = own - state.consensus[-1]
    step, curvature = step_and_curvature(votes, LINKS[name](), nu, state)
    assert step * curvature <= 2.0 + 1e-9
    assert step * 2.0 / nu <= 1.0 + 1e-9


@pytest.mark.parametrize("n_users", [1, 3])
def test_a_step_is_stable_where_scores_and_threshold_curve_together(n_users):
    # Wins at a margin near the threshold, on one pair: nothing is steeper for so few votes.
    rows = [(user, "a", "b", 1) for user in range(n_users) for _ in range(10)]
    votes = Comparisons.from_arrays(*zip(*rows, strict=True))
    state = State.initial(votes.slots, 2, 1e-3)
    state.consensus[:] = [0.005, -0.005, 0.01]
    step, curvature = step_and_curvature(votes, Logistic(), 1e6, state)
    assert 1.0 < step * curvature <= 2.0


def test_the_objective_falls_at_every_step_before_anybody_leaves():
    votes, link, dynamics = mixed_votes(), Logistic(), Dynamics(nu=0.5, kappa=5.0)
    plain = kernels.backend("numpy")
    work = np.empty(votes.n_items + 1), np.empty(len(votes.slots.coordinate))
    values = []

    def note(_, state):
        loss = plain.loss_and_gradient(
            link, votes.slots, votes.edges, state.consensus, state.deviation, *work
        )
        values.append(loss + state.deviation @ state.deviation / (2 * dynamics.nu))

    path = follow(votes, link, dynamics, Explicit(), np.linspace(1e-3, 0.2, 400), observe=note)
    assert np.all(path.entry_times > 0.2)
    assert np.all(np.diff(values) <= 1e-12)


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_halving_the_step_halves_the_error(projection):
    votes, dynamics = mixed_votes(), Dynamics(nu=0.5, kappa=5.0)
    ends = []
    for scale in (0.4, 0.2, 0.1):
        scheme = Explicit(step_scale=scale, projection=projection)
        path = follow(votes, Logistic(), dynamics, scheme, np.linspace(0.2, 1.5, 8))
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
        ({"max_steps": 0}, "max_steps is 0; it must be at least 1"),
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
    place = (slice(None), votes.slots.owner, votes.slots.coordinate)
    errors = []
    for nu in (0.1, 0.01, 0.001):
        path = follow(votes, Logistic(), Dynamics(nu=nu, kappa=kappa), Explicit(), times)
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


# --- what must not matter ------------------------------------------------------------------

mild_rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 4),
        st.integers(1, 4),
        st.sampled_from([1, 0, -1]),
        st.sampled_from([0.1, 0.3, 1.0]),
        st.just(0),
    ),
    min_size=1,
    max_size=25,
)


def short_path(votes, **scheme):
    dynamics = Dynamics(nu=0.3, kappa=5.0, delta=0.05)
    return follow(votes, Logistic(), dynamics, Explicit(**scheme), [0.1, 0.5, 1.5])


def by_label(votes, path):
    """Return everything on the path by the labels of users and items."""
    found = {}
    for k in range(len(path.times)):
        for item, score in zip(votes.items, path.consensus[k], strict=False):
            found[k, "consensus", item] = score
        found[k, "threshold"] = path.consensus[k, -1]
        for slot, (u, i) in enumerate(zip(votes.slots.owner, votes.slots.coordinate, strict=True)):
            item = votes.items[i] if i < votes.n_items else "threshold"
            found[k, votes.users[u], item] = path.deviation[k, slot], path.sparse[k, slot]
    return found | dict(zip(votes.users, path.entry_times, strict=True))


@pytest.mark.parametrize("projection", PROJECTIONS)
@given(rows=mild_rows, users=st.permutations(range(4)), items=st.permutations(range(5)))
@few
def test_relabelling_users_and_items_permutes_the_path(projection, rows, users, items):
    user, left, step, outcome, weight, _ = (np.array(column) for column in zip(*rows, strict=True))
    right = (left + step) % 5
    users, items = np.array(users), np.array(items)
    votes = Comparisons.from_arrays(user, left, right, outcome, weight)
    renamed = Comparisons.from_arrays(users[user], items[left], items[right], outcome, weight)
    here = by_label(votes, short_path(votes, projection=projection))
    there = by_label(renamed, short_path(renamed, projection=projection))

    def new_name(key):
        if not isinstance(key, tuple):
            return users[key]
        if len(key) == 2:
            return key
        k, who, item = key
        item = item if isinstance(item, str) else items[item]
        return (k, who if isinstance(who, str) else users[who], item)

    assert len(here) == len(there)
    for key, value in here.items():
        np.testing.assert_allclose(value, there[new_name(key)], rtol=1e-9, atol=1e-9)


@given(rows=mild_rows, data=st.data())
@few
def test_the_order_of_rows_leaves_no_trace(rows, data):
    shuffled = data.draw(st.permutations(rows))
    assert_equal_paths(short_path(from_rows(rows)), short_path(from_rows(shuffled)))


@given(rows=mild_rows, data=st.data())
@few
def test_swapping_the_sides_of_any_vote_leaves_no_trace(rows, data):
    swapped = [
        (user, (left + step) % 5, 5 - step, -outcome, weight, group) if swap else row
        for row in rows
        for swap in [data.draw(st.booleans())]
        for user, left, step, outcome, weight, group in [row]
    ]
    assert_equal_paths(short_path(from_rows(rows)), short_path(from_rows(swapped)))


@given(rows=mild_rows, data=st.data())
@few
def test_weight_two_is_the_vote_twice(rows, data):
    copies = [data.draw(st.integers(1, 2)) for _ in rows]
    weighted = [(*row[:4], float(n), 0) for row, n in zip(rows, copies, strict=True)]
    repeated = [row for row, n in zip(rows, copies, strict=True) for _ in range(n)]
    one = short_path(from_rows(weighted))
    other = short_path(from_rows(repeated, weighted=False))
    assert_equal_paths(one, other)


# --- thresholds ----------------------------------------------------------------------------


@pytest.mark.parametrize("projection", PROJECTIONS)
@given(rows=mild_rows)
@few
def test_every_threshold_stays_at_least_delta(projection, rows):
    path = short_path(from_rows(rows), projection=projection)
    assert np.all(path.consensus[:, -1] >= 0.05)
    assert np.all(own_thresholds(path) >= 0.05 - 1e-15)


def half_never_ties():
    """Twelve users of one taste; the second half decides even the closest pairs."""
    rng = np.random.default_rng(0)
    scores = np.linspace(-1.0, 1.0, 5)
    votes = []
    for user in range(12):
        for _ in range(20):
            i, j = rng.choice(5, size=2, replace=False)
            lead = scores[i] - scores[j] + rng.logistic(scale=0.5)
            tie = user < 6 and abs(lead) < 0.8
            votes.append((f"u{user:02}", f"i{i}", f"i{j}", 0 if tie else int(np.sign(lead))))
    return Comparisons.from_arrays(*zip(*votes, strict=True))


def test_users_who_never_tie_do_not_drag_the_consensus_threshold_down():
    votes, times = half_never_ties(), [0.3, 1.0, 3.0]
    dynamics = Dynamics(nu=0.5, kappa=10.0)
    joint, separate = (
        follow(votes, Logistic(), dynamics, Explicit(projection=projection), times)
        for projection in PROJECTIONS
    )
    assert joint.consensus[-1, -1] > 0.2
    assert joint.consensus[-1, -1] > 0.8 * joint.consensus[0, -1]
    # The paper's literal rule does let them.
    assert separate.consensus[-1, -1] == pytest.approx(dynamics.delta)
    for path in (joint, separate):
        own = own_thresholds(path)[-1]
        assert np.all(own[:6] > 0.2)
        assert np.all(own[6:] < 0.05)


# --- users and items of all sorts ----------------------------------------------------------


def crowd(*others):
    """Return four users who agree on a > b > c, with some ties, and these other votes."""
    votes = []
    for user in ("u1", "u2", "u3", "u4"):
        for left, right in (("a", "b"), ("b", "c"), ("a", "c")):
            votes += [(user, left, right, outcome) for outcome in (1, 1, 1, 0, -1)]
    return Comparisons.from_arrays(*zip(*votes, *others, strict=True))


def full_path(votes, far=3.0):
    path = follow(
        votes, Logistic(), Dynamics(nu=0.5, kappa=5.0), Explicit(), np.geomspace(0.05, far, 10)
    )
    for part in ("consensus", "deviation", "sparse"):
        assert np.isfinite(getattr(path, part)).all()
    assert np.all(path.consensus[:, -1] >= 1e-3)
    assert np.all(own_thresholds(path) >= 1e-3 - 1e-15)
    return path


def deviation_of(votes, path, user, coordinate):
    (u,) = np.flatnonzero(votes.users == user)
    (here,) = np.flatnonzero((votes.slots.owner == u) & (votes.slots.coordinate == coordinate))
    return path.deviation[:, here]


@pytest.mark.backend
def test_a_user_with_one_vote_leans_the_way_of_that_vote():
    votes = crowd(("one", "c", "a", 1))
    path = full_path(votes)
    assert np.all(deviation_of(votes, path, "one", 2) > 0)
    assert np.all(deviation_of(votes, path, "one", 0) < 0)
    np.testing.assert_allclose(  # only the difference of the two scores can be seen in one vote
        deviation_of(votes, path, "one", 2), -deviation_of(votes, path, "one", 0), rtol=1e-9
    )
    assert votes.slots.start[1] == 3  # no slot for b
    assert list(votes.items[np.argsort(-path.consensus[-1, :3])]) == ["a", "b", "c"]


def test_a_user_with_only_ties_gets_a_wider_threshold_and_flat_scores():
    ties = [("tie", left, right, 0) for left, right in ("ab", "bc", "ac") for _ in range(4)]
    votes = crowd(*ties)
    path = full_path(votes)
    user = int(np.flatnonzero(votes.users == "tie")[0])
    late = path.at(path.times[-1])
    assert np.all(deviation_of(votes, path, "tie", 3) > 0)
    assert late.threshold_of(user) > 2 * late.threshold_of(-1)
    assert np.ptp(late.scores_of(user)) < 0.2 * np.ptp(late.scores_of(-1))
    assert np.argmin(path.entry_times) == user


def test_a_user_without_ties_keeps_a_positive_threshold():
    decided = [("sure", left, right, 1) for left, right in ("ab", "bc", "ac") for _ in range(8)]
    votes = crowd(*decided)
    path = full_path(votes)
    own = own_thresholds(path)[:, list(votes.users).index("sure")]
    assert np.all(deviation_of(votes, path, "sure", 3) < 0)
    assert np.all(own >= 1e-3 - 1e-15)
    assert own[-1] < 0.5 * path.consensus[-1, -1]
    assert path.consensus[-1, -1] > 0.1


def test_votes_without_any_tie_bring_every_threshold_to_delta():
    votes = random_votes(0, tie_share=0.0)
    path = full_path(votes, far=2.0)
    np.testing.assert_allclose(own_thresholds(path)[-1], 1e-3, atol=1e-9)
    assert path.consensus[-1, -1] < 0.05


def test_votes_of_only_ties_leave_all_scores_at_zero():
    votes = random_votes(0, tie_share=1.1)
    path = full_path(votes, far=1.0)
    scores = votes.slots.coordinate < votes.n_items
    assert np.all(path.consensus[:, :-1] == 0)
    assert np.all(path.deviation[:, scores] == 0)
    assert np.all(np.diff(path.consensus[:, -1]) > 0)


def test_disconnected_items_are_each_ranked_among_their_own():
    apart = [
        (user, "x", "y", outcome) for user in ("u1", "u2", "v") for outcome in (1, 1, 1, 0, -1)
    ]
    path = full_path(crowd(*apart))
    a, b, c, x, y = path.consensus[:, :-1].T
    assert np.all(a > b) and np.all(b > c) and np.all(x > y)
    # Nothing says how the two groups compare: each keeps the mean it started with.
    np.testing.assert_allclose(a + b + c, 0.0, atol=1e-12)
    np.testing.assert_allclose(x + y, 0.0, atol=1e-12)


def test_a_group_of_items_is_ranked_as_it_would_be_alone():
    # Steps differ, so that the paths agree only up to their error.
    apart = [("v", "x", "y", outcome) for outcome in (1, 1, 0)]
    together, alone = full_path(crowd(*apart)), full_path(crowd())
    np.testing.assert_allclose(together.consensus[:, :3], alone.consensus[:, :3], atol=0.05)


def test_an_item_that_always_wins_ranks_first_with_a_finite_score():
    wins = [(user, "best", item, 1) for user in ("u1", "u2", "u3", "u4") for item in "abc"]
    votes = crowd(*wins, *wins)
    path = full_path(votes, far=10.0)
    best = list(votes.items).index("best")
    assert np.all(np.argmax(path.consensus[:, :-1], axis=1) == best)
    assert 1.0 < path.consensus[-1, best] < 20.0
    late = path.at(path.times[-1])
    assert all(np.argmax(late.scores_of(user)) == best for user in range(votes.n_users))


def test_a_lone_vote_is_a_study_too():
    votes = Comparisons.from_arrays(["u"], ["a"], ["b"], [1])
    path = full_path(votes)
    assert np.all(path.consensus[:, 0] > path.consensus[:, 1])


# --- from any state ------------------------------------------------------------------------


@pytest.mark.backend
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_a_path_can_be_left_and_taken_up_again(projection):
    votes, dynamics = mixed_votes(), Dynamics(nu=0.5, kappa=5.0)
    link, scheme = Logistic(), Explicit(projection=projection)
    states = []
    straight = follow(votes, link, dynamics, scheme, TIMES)
    follow(votes, link, dynamics, scheme, TIMES[:5], observe=lambda _, s: states.append(s.copy()))
    before = states[-1].copy()
    onwards = follow(votes, link, dynamics, scheme, TIMES[5:], initial=states[-1])
    for name in ("consensus", "deviation", "sparse"):
        np.testing.assert_array_equal(getattr(onwards, name), getattr(straight, name)[5:])
    np.testing.assert_array_equal(onwards.entry_times, straight.entry_times)
    assert onwards.n_steps == straight.n_steps
    assert vars(before).keys() == vars(states[-1]).keys()
    for name, value in vars(before).items():
        np.testing.assert_array_equal(getattr(states[-1], name), value, err_msg=name)


def test_a_path_may_start_anywhere():
    # Far along, the consensus of few votes depends little on where its path began.
    votes, dynamics = crowd(), Dynamics(nu=0.5, kappa=5.0)
    start = State.initial(votes.slots, votes.n_items, dynamics.delta)
    start.consensus[:] = [-1.0, 0.0, 1.0, 0.2]
    times = [2.0, 4.0]
    usual = follow(votes, Logistic(), dynamics, Explicit(), times)
    other = follow(votes, Logistic(), dynamics, Explicit(), times, initial=start)
    np.testing.assert_array_equal(start.consensus, [-1.0, 0.0, 1.0, 0.2])
    assert list(np.argsort(-other.consensus[-1, :3])) == [0, 1, 2]
    np.testing.assert_allclose(other.consensus[-1], usual.consensus[-1], atol=0.02)
