import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons, Slots
from isplitlbi.kernels import Origin, System
from isplitlbi.model.links import LINKS, Logistic, Probit
from isplitlbi.runtime.blocks import Blocks
from isplitlbi.solvers.newton import minimise
from votes import random_votes

DELTA = 1e-3
ONE_BLOCK = ("minimise", "evaluate", "relative", "newton_direction")

plain, compiled = kernels.backend("numpy"), kernels.backend("numba")
every_link = pytest.mark.parametrize("link", [link() for link in LINKS.values()], ids=list(LINKS))
seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([0.0, 0.1, 1.0, 30.0])


def close(one, other, tolerance=1e-10):
    """Assert equality up to rounding, at the scale of the largest value."""
    one, other = np.asarray(one), np.asarray(other)
    scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


def random_state(votes, rng, scale):
    """Draw a consensus, deviations and duals whose thresholds are all at least delta."""
    n_slots = len(votes.slots.coordinate)
    consensus = scale * rng.normal(size=votes.n_items + 1)
    consensus[-1] = DELTA + rng.exponential()
    deviation = scale * rng.normal(size=n_slots)
    own = DELTA + rng.exponential(size=votes.n_users) * (rng.random(votes.n_users) < 0.8)
    deviation[votes.slots.threshold] = own - consensus[-1]
    return consensus, deviation, rng.normal(size=n_slots), rng.normal(size=n_slots)


def some_votes(seed, weighted):
    rng = np.random.default_rng(seed)
    sizes = rng.integers([1, 2, 1], [7, 7, 80])
    return random_votes(rng, *sizes, tie_share=rng.random(), weighted=weighted), rng


def thresholds_only(n_users):
    """Return the slots of users who have a threshold and nothing else."""
    return Slots(np.arange(n_users + 1), np.zeros(n_users, dtype=np.int32))


# --- twin by twin --------------------------------------------------------------------------


@every_link
@given(seed=seeds, weighted=st.booleans(), scale=scales)
def test_loss_and_gradient_is_the_same_compiled(link, seed, weighted, scale):
    votes, rng = some_votes(seed, weighted)
    consensus, deviation, *_ = random_state(votes, rng, scale)
    results = []
    for loops in (plain, compiled):
        gradient = np.full(len(consensus), np.nan), np.full(len(deviation), np.nan)
        args = (link, votes.slots, votes.edges, consensus, deviation, *gradient)
        results.append((loops.loss_and_gradient(*args), *gradient))
    for one, other in zip(*results, strict=True):
        close(one, other)


@given(seed=seeds, kappa=st.floats(0.1, 1e3))
def test_shrink_groups_is_the_same_compiled(seed, kappa):
    votes, rng = some_votes(seed, weighted=False)
    dual = rng.normal(size=len(votes.slots.coordinate)) * rng.choice([0.0, 0.3, 1.0, 10.0])
    results = []
    for loops in (plain, compiled):
        sparse = np.full(len(dual), np.nan)
        results.append((loops.shrink_groups(votes.slots, dual, kappa, sparse), sparse))
    for one, other in zip(*results, strict=True):
        close(one, other)


@every_link
@given(seed=seeds, weighted=st.booleans(), scale=scales)
def test_explicit_step_is_the_same_compiled(link, seed, weighted, scale):
    votes, rng = some_votes(seed, weighted)
    start = random_state(votes, rng, scale)
    numbers = rng.uniform(1e-4, 1e-2), rng.uniform(0.1, 10.0), rng.uniform(1.0, 100.0)
    results = []
    for loops in (plain, compiled):
        state = [array.copy() for array in start]
        work = np.full(votes.n_items + 1, np.nan), np.full(len(start[1]), np.nan)
        args = (link, votes.slots, votes.edges, *state, *work, *numbers)
        results.append((*loops.explicit_step(*args), *state))
    for one, other in zip(*results, strict=True):
        close(one, other)


@pytest.mark.parametrize("joint", [True, False], ids=["joint", "separate"])
@given(seed=seeds, scale=scales)
def test_project_thresholds_is_the_same_compiled(joint, seed, scale):
    votes, rng = some_votes(seed, weighted=False)
    consensus, deviation = (scale * rng.normal(size=n) for n in (4, len(votes.slots.coordinate)))
    results = []
    for loops in (plain, compiled):
        state = consensus.copy(), deviation.copy()
        loops.project_thresholds(votes.slots, *state, DELTA, joint)
        results.append(state)
    for one, other in zip(*results, strict=True):
        close(one, other, 1e-14)


@every_link
@given(seed=seeds, weighted=st.booleans(), scale=scales)
def test_threshold_curvature_is_the_same_compiled(link, seed, weighted, scale):
    votes, rng = some_votes(seed, weighted)
    consensus, deviation, *_ = random_state(votes, rng, scale)
    edges = votes.edges
    decided = np.bincount(edges.owner, edges.first_wins + edges.second_wins, votes.n_users)
    ties = np.bincount(edges.owner, edges.ties, votes.n_users)
    args = (link, votes.slots, consensus, deviation, decided, ties)
    close(compiled.threshold_curvature(*args), plain.threshold_curvature(*args))


def test_users_without_votes_in_a_subset_are_the_same_compiled():
    whole = random_votes(0, n_users=6, weighted=True)
    votes = whole.subset(np.isin(whole.user, [1, 4]))
    rng = np.random.default_rng(1)
    start = random_state(votes, rng, 1.0)
    results = []
    for loops in (plain, compiled):
        state = [array.copy() for array in start]
        work = np.empty(votes.n_items + 1), np.empty(len(start[1]))
        args = (Logistic(), votes.slots, votes.edges, *state, *work, 1e-3, 1.0, 10.0)
        results.append((*loops.explicit_step(*args), *state, *work))
    for one, other in zip(*results, strict=True):
        close(one, other)


# --- the loops of the implicit scheme ------------------------------------------------------


class ImplicitLoops:
    """The loops of one step of the implicit scheme, users in two blocks, and what they fill."""

    def __init__(self, loops, link, votes, rng, scale):
        self.loops, self.link, self.slots, self.edges = loops, link, votes.slots, votes.edges
        self.consensus, old_deviation, old_dual, _ = random_state(votes, rng, scale)
        width, n_slots = len(self.consensus), len(old_dual)
        self.own = scale * rng.normal(size=n_slots)
        self.own[votes.slots.threshold] = DELTA + rng.exponential(size=votes.n_users)
        numbers = rng.uniform([0.01, 0.1, 1.0], [3.0, 10.0, 100.0])
        self.origin = Origin(rng.normal(size=width), old_deviation, old_dual, *numbers)
        cut = int(rng.integers(votes.n_users))
        self.blocks = [(0, cut), (cut, votes.n_users)] if cut else [(0, votes.n_users)]
        self.system = System.room(votes)
        for array in self.system:
            array[:] = np.nan if array.dtype == float else False
        self.width, self.n_slots, self.n_users = width, n_slots, votes.n_users

    def over_blocks(self, work, n_arrays):
        """Return the sums over blocks of what the work returns and of what it fills."""
        total, filled = 0.0, np.zeros((n_arrays, self.width))
        for begin, end in self.blocks:
            arrays = np.full((n_arrays, self.width), np.nan)
            total += work(self.slots, begin, end, *arrays) or 0.0
            filled += arrays
        return total, *filled

    def assemble(self, consensus, own):
        """Return the objective and the consensus's gradient and diagonal; fill the system."""
        return self.over_blocks(
            lambda slots, begin, end, *filled: self.loops.assemble(
                self.link, slots, self.edges, begin, end, consensus, own, self.origin,
                self.system, *filled,
            ),
            2,
        )  # fmt: skip

    def eliminate_users(self):
        """Return what the users take from the consensus; begin the solution."""
        return self.over_blocks(
            lambda slots, begin, end, filled: self.loops.eliminate_users(
                slots, begin, end, self.own, DELTA, self.system, filled
            ),
            1,
        )

    def curvature_product(self, preconditioned, towards, momentum):
        """Return the direction's curvature and the consensus's product."""
        return self.over_blocks(
            lambda slots, begin, end, filled: self.loops.curvature_product(
                slots, self.edges, begin, end, self.system, self.origin.damping, preconditioned,
                towards, momentum, filled,
            ),
            1,
        )  # fmt: skip

    def conjugate_update(self, length):
        """Return the size of the new residual and what it means for the consensus."""
        return self.over_blocks(
            lambda slots, begin, end, filled: self.loops.conjugate_update(
                slots, begin, end, length, self.system, filled
            ),
            1,
        )

    def finish_step(self, rng):
        """Return the new dual, the sparse part, the dual's norms, and the rates of change."""
        old = rng.normal(size=(2, self.n_slots))
        filled = [np.full(self.n_slots, np.nan) for _ in range(2)]
        norms, rates = np.full(self.n_users, np.nan), list(rng.normal(size=(3, self.n_slots)))
        for begin, end in self.blocks:
            self.loops.finish_step(
                self.slots, begin, end, self.origin, *old, 0.7, 0.2, self.own, *filled, norms,
                *rates,
            )  # fmt: skip
        return [*filled, norms, *rates]

    def vectors(self, rng):
        """Return an extrapolation and two sums of squares."""
        base, rate, bend, out = rng.normal(size=(4, self.n_slots))
        sums = np.zeros(2)
        for begin, end in self.blocks:
            self.loops.extrapolate(self.slots, begin, end, base, rate, bend, 0.3, 0.7, out)
            sums += self.loops.squares(self.slots, begin, end, base, rate)
        return [out, sums]


@every_link
@given(seed=seeds, weighted=st.booleans(), scale=st.sampled_from([0.0, 0.1, 1.0, 5.0]))
def test_the_loops_of_the_implicit_scheme_are_the_same_compiled(link, seed, weighted, scale):
    results = []
    for loops in (plain, compiled):
        votes, rng = some_votes(seed, weighted)
        work = ImplicitLoops(loops, link, votes, rng, scale)
        found = [*work.assemble(work.consensus, work.own)]
        found += [array.copy() for array in work.system[:6]]
        found += work.eliminate_users()
        found += [work.system.free.copy(), work.system.residual.copy()]
        for momentum, length in ((0.0, 0.4), (0.3, 0.2)):
            preconditioned, towards = rng.normal(size=(2, work.width))
            found += work.curvature_product(preconditioned, towards, momentum)
            found += work.conjugate_update(length)
        found += [*work.system, *work.finish_step(rng), *work.vectors(rng)]
        results.append(found)
    for one, other in zip(*results, strict=True):
        close(one, other, 1e-9)


@every_link
@given(seed=seeds)
def test_the_curvature_of_a_step_is_the_slope_of_its_slope(link, seed):
    votes, rng = some_votes(seed, weighted=True)
    work = ImplicitLoops(plain, link, votes, rng, 0.3)
    to_consensus, to_own = rng.normal(size=work.width), rng.normal(size=work.n_slots)
    length = 1e-6
    sides = []
    for share in (length, -length):
        at = work.consensus + share * to_consensus, work.own + share * to_own
        value, gradient, _ = work.assemble(*at)
        sides.append((value, gradient, -work.system.residual))
    value, gradient, diagonal = work.assemble(work.consensus, work.own)
    of_users = -work.system.residual
    slope = gradient @ to_consensus + of_users @ to_own
    scale = 1.0 + np.sum(np.abs(gradient)) + np.sum(np.abs(of_users)) + abs(value)
    assert (sides[0][0] - sides[1][0]) / (2 * length) == pytest.approx(slope, abs=2e-5 * scale)

    if link.name == "uniform":  # its density has corners, and its curvature jumps at them
        return
    work.system.free[:] = True
    work.system.residual[:] = to_own / work.system.inverse
    work.system.direction[:] = 0.0
    along, of_consensus = work.curvature_product(np.zeros(work.width), to_consensus, 0.0)
    np.testing.assert_allclose(work.system.direction, to_own, rtol=1e-12)
    assert along == pytest.approx(to_own @ work.system.product, rel=1e-10)
    bend = np.sum(np.abs(diagonal)) + np.sum(1.0 / work.system.inverse)
    for here, there, found in zip(
        *(side[1:] for side in sides), (of_consensus, work.system.product), strict=True
    ):
        np.testing.assert_allclose((here - there) / (2 * length), found, atol=1e-4 * bend)


# Not the uniform link: its curvature jumps, and from a start this far Newton's method is cut short.
@pytest.mark.parametrize("link", [Logistic(), Probit()], ids=["logistic", "probit"])
@given(seed=seeds, scale=st.sampled_from([0.0, 0.1, 1.0, 5.0]))
def test_a_step_is_solved_alike_in_one_piece_and_block_by_block(link, seed, scale):
    votes, rng = some_votes(seed, weighted=True)
    work = ImplicitLoops(compiled, link, votes, rng, scale)
    ties = np.bincount(votes.edges.owner, votes.edges.ties, votes.n_users) > 0
    work.consensus[-1] = max(work.consensus[-1], DELTA)
    problem = (link, votes.slots, votes.edges, work.origin, ties, DELTA, 1e-9)
    one, other = (work.consensus.copy(), work.own.copy()), (work.consensus.copy(), work.own.copy())
    one = compiled.minimise(*problem, *one, work.system)

    class InTwo(Blocks):
        def __init__(self, ranges):
            self.ranges, self._pool, self.exchange = ranges, None, None

    cut = (votes.n_users + 1) // 2
    halves = InTwo(
        [(0, cut), (cut, votes.n_users)] if cut < votes.n_users else [(0, cut), (cut, cut)]
    )
    other = minimise(*problem, *other, work.system, compiled, halves)
    for found, expected in zip(one[:2], other[:2], strict=True):
        close(found, expected, 1e-6)


# --- the gradient --------------------------------------------------------------------------


@every_link
@given(seed=seeds)
def test_the_gradient_is_the_slope_of_the_loss(link, seed):
    votes, rng = some_votes(seed, weighted=True)
    consensus, deviation, *_ = random_state(votes, rng, 0.3)
    deviation[votes.slots.threshold] = 0.2
    consensus[-1] = 0.3
    gradient = np.empty(len(consensus)), np.empty(len(deviation))
    unused = np.empty(len(consensus)), np.empty(len(deviation))

    def loss(share, along):
        moved = consensus + share * along[0], deviation + share * along[1]
        return plain.loss_and_gradient(link, votes.slots, votes.edges, *moved, *unused)

    plain.loss_and_gradient(link, votes.slots, votes.edges, consensus, deviation, *gradient)
    along = [rng.normal(size=len(array)) for array in gradient]
    along = [array / np.sqrt(len(array)) for array in along]
    slope = (loss(1e-6, along) - loss(-1e-6, along)) / 2e-6
    expected = gradient[0] @ along[0] + gradient[1] @ along[1]
    # The uniform link's density has corners, across which a difference is off by its own width.
    size = 1.0 + sum(np.sum(np.abs(array)) for array in gradient)
    assert slope == pytest.approx(expected, abs=2e-5 * size)


def test_the_loss_is_the_sum_over_votes_and_not_their_mean():
    once = random_votes(3, n_votes=20)
    thrice = once.subset(np.tile(np.arange(20), 3))
    consensus, deviation = np.array([0.3, -0.2, 0.5, 0.0, 0.7]), 0.1 * np.ones(100)
    losses = []
    for votes in (once, thrice):
        n_slots = len(votes.slots.coordinate)
        args = (consensus, deviation[:n_slots], np.empty(5), np.empty(n_slots))
        losses.append(plain.loss_and_gradient(Logistic(), votes.slots, votes.edges, *args))
    assert losses[1] == pytest.approx(3 * losses[0], rel=1e-13)


# --- the group soft threshold --------------------------------------------------------------


@given(arrays(float, st.integers(1, 6), elements=st.floats(-5, 5)), st.floats(0.1, 50))
def test_shrinking_minimises_its_own_objective(dual, kappa):
    # kappa * prox of the norm: the minimiser of |x - z|^2 / 2 + |x|, by its optimality condition.
    slots = Slots(np.array([0, len(dual)]), np.arange(len(dual), dtype=np.int32))
    sparse = np.empty(len(dual))
    norm = plain.shrink_groups(slots, dual, kappa, sparse)
    assert norm[0] == pytest.approx(np.linalg.norm(dual), rel=1e-12, abs=1e-300)
    prox = sparse / kappa
    if np.any(prox):
        close(prox + prox / np.linalg.norm(prox), dual, 1e-9)
    else:
        assert np.linalg.norm(dual) <= 1.0 + 1e-8


def test_a_user_within_the_unit_ball_is_exactly_zero_and_others_do_not_matter():
    slots = Slots(np.array([0, 2, 4]), np.array([0, 2, 1, 2], dtype=np.int32))
    dual, sparse = np.array([0.6, 0.8, 3.0, 4.0]), np.full(4, np.nan)
    norm = plain.shrink_groups(slots, dual, 10.0, sparse)
    np.testing.assert_allclose(norm, [1.0, 5.0], rtol=1e-15)
    np.testing.assert_allclose(sparse, [0.0, 0.0, 24.0, 32.0], rtol=1e-15)


# --- the projection of the thresholds ------------------------------------------------------

own_thresholds = arrays(float, st.integers(1, 12), elements=st.floats(-3, 3))
centers = st.floats(-3, 3)
both_kernels = pytest.mark.parametrize("loops", [plain, compiled], ids=["numpy", "numba"])


def project(loops, center, own, joint=True, delta=DELTA):
    consensus, deviation = np.array([center]), own.copy()
    loops.project_thresholds(thresholds_only(len(own)), consensus, deviation, delta, joint)
    return consensus[0], deviation


@both_kernels
@given(center=centers, own=own_thresholds)
def test_joint_projection_is_the_nearest_feasible_point(loops, center, own):
    # Karush-Kuhn-Tucker: the move is a non-negative sum of the constraints that are met exactly.
    c, p = project(loops, center, own)
    push = p - own
    of_center = (c - center) - np.sum(push)
    assert np.all(push >= 0)
    assert of_center >= -1e-13
    assert np.all((push == 0) | (np.abs(c + p - DELTA) < 1e-14))
    assert abs(of_center) < 1e-13 or c == pytest.approx(DELTA, abs=1e-15)
    assert c >= DELTA
    assert np.all(c + p >= DELTA - 1e-15)


@given(center=centers, own=arrays(float, st.integers(1, 5), elements=st.floats(-3, 3)))
def test_joint_projection_agrees_with_a_general_solver(center, own):
    n_users = len(own)
    point = np.concatenate([[center], own])
    inside = np.hstack([np.ones((n_users, 1)), np.eye(n_users)])
    found = minimize(
        lambda x: 0.5 * np.sum((x - point) ** 2),
        np.concatenate([[1.0], np.zeros(n_users)]),
        jac=lambda x: x - point,
        method="SLSQP",
        bounds=[(DELTA, None), *[(None, None)] * n_users],
        constraints={"type": "ineq", "fun": lambda x: inside @ x - DELTA, "jac": lambda _: inside},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    c, p = project(plain, center, own)
    np.testing.assert_allclose(np.concatenate([[c], p]), found.x, atol=1e-6)


@both_kernels
@pytest.mark.parametrize("joint", [True, False], ids=["joint", "separate"])
@given(center=centers, own=own_thresholds)
def test_projecting_twice_changes_nothing_more(loops, joint, center, own):
    once = project(loops, center, own, joint)
    twice = project(loops, *once, joint)
    np.testing.assert_allclose(twice[0], once[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(twice[1], once[1], rtol=0, atol=1e-15)


@both_kernels
@given(center=centers, own=own_thresholds)
def test_separate_projection_is_the_papers_rule(loops, center, own):
    c, p = project(loops, center, own, joint=False)
    assert c == max(center, DELTA)
    np.testing.assert_array_equal(p, np.maximum(own, DELTA - c))


@both_kernels
@pytest.mark.parametrize("joint", [True, False], ids=["joint", "separate"])
def test_feasible_thresholds_are_left_alone(loops, joint):
    own = np.array([0.3, -0.4, 0.0])
    c, p = project(loops, 0.5, own, joint)
    assert c == 0.5
    np.testing.assert_array_equal(p, own)


def test_projection_touches_thresholds_only():
    votes = random_votes(0)
    rng = np.random.default_rng(0)
    consensus, deviation = rng.normal(size=5), rng.normal(size=len(votes.slots.coordinate))
    before = consensus.copy(), deviation.copy()
    plain.project_thresholds(votes.slots, consensus, deviation, 2.0, True)
    np.testing.assert_array_equal(consensus[:-1], before[0][:-1])
    scores = votes.slots.coordinate < votes.n_items
    np.testing.assert_array_equal(deviation[scores], before[1][scores])
    assert not np.array_equal(deviation[~scores], before[1][~scores])


# --- bounds and backends -------------------------------------------------------------------


@every_link
@given(seed=seeds)
def test_threshold_curvature_bounds_the_hessian_of_the_thresholds(link, seed):
    votes, rng = some_votes(seed, weighted=True)
    consensus, deviation, *_ = random_state(votes, rng, 1.0)
    edges = votes.edges
    margin, threshold = plain.margins(votes.slots, edges, consensus, deviation)
    counts = edges.first_wins, edges.ties, edges.second_wins
    bend = link.vote_terms(margin, threshold, *counts)[-1]
    per_user = np.bincount(edges.owner, bend, votes.n_users)
    hessian = np.diag(np.concatenate([[np.sum(per_user)], per_user]))
    hessian[0, 1:] = hessian[1:, 0] = per_user
    decided = np.bincount(edges.owner, edges.first_wins + edges.second_wins, votes.n_users)
    ties = np.bincount(edges.owner, edges.ties, votes.n_users)
    bound, _ = plain.threshold_curvature(link, votes.slots, consensus, deviation, decided, ties)
    assert np.linalg.eigvalsh(hessian)[-1] <= bound * (1 + 1e-9)


def test_an_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="backend 'fortran' is not one of numba, numpy"):
        kernels.backend("fortran")


def test_the_environment_chooses_the_backend(monkeypatch):
    monkeypatch.setenv("ISPLITLBI_BACKEND", "numpy")
    assert kernels.backend() is plain
    monkeypatch.delenv("ISPLITLBI_BACKEND")
    assert kernels.backend() is compiled


def test_twins_have_the_same_names_and_arguments():
    import inspect

    def functions(module):
        return {
            name: list(inspect.signature(getattr(value, "py_func", value)).parameters)
            for name, value in vars(module).items()
            if hasattr(value, "py_func") or inspect.isfunction(value)
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        }

    twins = functions(compiled)
    # These need no twin of their own: they are parts of others, or those of `solvers.newton`.
    for name in ("evaluate_chunk", "most_slots", *ONE_BLOCK):
        assert twins.pop(name)
    assert twins
    assert twins.items() <= functions(plain).items()


def linear_link(slope):
    class Linear(Logistic):
        """A nonsense link, with formulas that carry no annotations."""

        name = "linear"

        def vote_terms(self, margin, threshold, first_wins, ties, second_wins):
            return slope * margin, first_wins, ties, second_wins, threshold, 0.0 * margin

    return Linear()


def test_a_link_of_ones_own_is_compiled_and_never_taken_for_another_of_its_name():
    votes = Comparisons.from_arrays(["u"], ["a"], ["b"], [1])
    consensus = np.array([1.5, 0.0, 1.0])
    for slope in (2.0, 4.0):
        for loops in (plain, compiled):
            arrays = consensus, np.zeros(3), np.empty(3), np.empty(3)
            args = (linear_link(slope), votes.slots, votes.edges, *arrays)
            assert loops.loss_and_gradient(*args) == 1.5 * slope
