"""Compiled loops and their readable twins do the same, for every link and any traits."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import THRESHOLD, Layout, Slots, Vector, tally
from isplitlbi.kernels import Problem
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.model.terms import PAPER, Terms
from loops import (
    DELTA,
    ImplicitLoops,
    all_close,
    close,
    compiled,
    copied,
    decided_and_ties,
    plain,
    random_flow,
    room_for_gradient,
    some_layout,
)
from traits import TRAITS, terms_with
from votes import random_votes

every_link = pytest.mark.parametrize("link", [link() for link in LINKS.values()], ids=list(LINKS))
seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([0.0, 0.1, 1.0, 30.0])
some_traits = st.sampled_from(list(TRAITS.values()))


def slots_of(sizes):
    """Return the slots of users who each have so many parameters, the threshold among them."""
    vector = Vector(max(sizes) - 1, (THRESHOLD,))
    of_users = [np.append(np.arange(size - 1), vector.threshold) for size in sizes]
    start = np.cumsum([0, *sizes])
    slots = Slots.of(start, np.concatenate(of_users).astype(np.int32), vector)
    for array in slots[:3]:
        array.setflags(write=False)  # as in every layout: compiled loops are for those
    return slots


# --- twin by twin --------------------------------------------------------------------------


@every_link
@given(seed=seeds, weighted=st.booleans(), scale=scales, traits=some_traits)
def test_loss_and_gradient_is_the_same_compiled(link, seed, weighted, scale, traits):
    terms, layout, rng = some_layout(seed, weighted, terms_with(*traits))
    problem = Problem.of(layout, DELTA, terms)
    flow = random_flow(layout, rng, scale)
    results = []
    for loops in (plain, compiled):
        gradient = room_for_gradient(layout)
        loss = loops.loss_and_gradient(link, problem, flow.consensus, flow.deviation, gradient)
        results.append((loss, *gradient))
    all_close(results)


@given(seed=seeds, kappa=st.floats(0.1, 1e3), traits=some_traits)
def test_shrink_groups_is_the_same_compiled(seed, kappa, traits):
    _, layout, rng = some_layout(seed, False, terms_with(*traits))
    dual = rng.normal(size=layout.n_slots) * rng.choice([0.0, 0.3, 1.0, 10.0])
    results = []
    for loops in (plain, compiled):
        sparse = np.full(len(dual), np.nan)
        results.append((loops.shrink_groups(layout.slots, dual, kappa, sparse), sparse))
    all_close(results)


@every_link
@given(seed=seeds, weighted=st.booleans(), scale=scales, traits=some_traits)
def test_explicit_step_is_the_same_compiled(link, seed, weighted, scale, traits):
    terms, layout, rng = some_layout(seed, weighted, terms_with(*traits))
    problem = Problem.of(layout, DELTA, terms)
    start = random_flow(layout, rng, scale)
    numbers = rng.uniform([1e-4, 0.1, 1.0, 0.0], [1e-2, 10.0, 100.0, 1.0])
    results = []
    for loops in (plain, compiled):
        flow = copied(start)
        step = loops.explicit_step(link, problem, flow, room_for_gradient(layout), *numbers)
        results.append((*step, *flow))
    all_close(results)


@pytest.mark.parametrize("joint", [True, False], ids=["joint", "separate"])
@given(seed=seeds, scale=scales, traits=some_traits)
def test_project_thresholds_is_the_same_compiled(joint, seed, scale, traits):
    _, layout, rng = some_layout(seed, False, terms_with(*traits))
    start = [scale * rng.normal(size=n) for n in (layout.vector.width, layout.n_slots)]
    results = []
    for loops in (plain, compiled):
        moved = [array.copy() for array in start]
        loops.project_thresholds(layout.slots, *moved, DELTA, joint)
        results.append(moved)
    all_close(results, 1e-14)


@every_link
@given(seed=seeds, weighted=st.booleans(), scale=scales, traits=some_traits)
def test_threshold_curvature_is_the_same_compiled(link, seed, weighted, scale, traits):
    terms, layout, rng = some_layout(seed, weighted, terms_with(*traits))
    problem = Problem.of(layout, DELTA, terms)
    flow = random_flow(layout, rng, scale)
    args = (link, problem, flow.consensus, flow.deviation, *decided_and_ties(layout))
    close(compiled.threshold_curvature(*args), plain.threshold_curvature(*args))


@every_link
@pytest.mark.parametrize("by_threshold", [True, False], ids=["by threshold", "most probable"])
@given(seed=seeds, weighted=st.booleans(), scale=scales, traits=some_traits)
def test_score_is_the_same_compiled(link, by_threshold, seed, weighted, scale, traits):
    terms, layout, rng = some_layout(seed, weighted, terms_with(*traits))
    problem = Problem.of(layout, DELTA, terms)
    flow = random_flow(layout, rng, scale)
    deviates, power = rng.random(layout.n_users) < 0.5, np.exp(rng.uniform(-2.8, 2.8))
    results = []
    for loops in (plain, compiled):
        confusion = np.full((3, 3), np.nan)
        found = loops.score(
            link, problem, flow.consensus, flow.deviation, deviates, by_threshold, power, confusion
        )
        results.append((*found, confusion))
    all_close(results)
    assert results[0][-1].sum() == pytest.approx(np.sum(layout.edges.counts))


def test_users_without_votes_in_a_subset_are_the_same_compiled():
    whole = random_votes(0, n_users=6, weighted=True)
    layout = Layout.of(whole.subset(np.isin(whole.user, [1, 4])))
    link, problem = Logistic(), Problem.of(layout, DELTA)
    start = random_flow(layout, np.random.default_rng(1), 1.0)
    results = []
    for loops in (plain, compiled):
        flow, gradient = copied(start), room_for_gradient(layout)
        results.append(
            (*loops.explicit_step(link, problem, flow, gradient, 1e-3, 1.0, 10.0, 0.1), *flow)
        )
        silent = ~np.isin(layout.slots.owner, [1, 4])
        assert silent.any() and not gradient.slots[silent].any()
    all_close(results)


# --- the loops of the implicit scheme ------------------------------------------------------


@every_link
@given(
    seed=seeds,
    weighted=st.booleans(),
    scale=st.sampled_from([0.0, 0.1, 1.0, 5.0]),
    traits=some_traits,
)
def test_the_loops_of_the_implicit_scheme_are_the_same_compiled(
    link, seed, weighted, scale, traits
):
    results = []
    for loops in (plain, compiled):
        terms, layout, rng = some_layout(seed, weighted, terms_with(*traits))
        work = ImplicitLoops(loops, link, layout, rng, scale, terms)
        found = [*work.assemble(work.consensus, work.own)]
        found += [array.copy() for array in work.system[:8]]
        found += work.eliminate_users()
        found += [work.system.free.copy(), work.system.residual.copy()]
        for momentum, length in ((0.0, 0.4), (0.3, 0.2)):
            preconditioned, towards = rng.normal(size=(2, work.width))
            found += work.curvature_product(preconditioned, towards, momentum)
            found += work.conjugate_update(length)
        found += [*work.system, work.move_users(0.5), *work.finish_step(rng), *work.vectors(rng)]
        results.append(found)
    all_close(results, 1e-9)


@every_link
@given(seed=seeds, traits=some_traits)
def test_the_curvature_of_a_step_is_the_slope_of_its_slope(link, seed, traits):
    terms, layout, rng = some_layout(seed, True, terms_with(*traits))
    work = ImplicitLoops(plain, link, layout, rng, 0.3, terms)
    # A strength of its own for each term is for users in the consensus.
    if not np.all(work.anchor.holds == 1.0):
        work.anchor = work.anchor._replace(dual=np.zeros(work.n_slots), step=1e-3)
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
    bend = np.sum(np.abs(diagonal)) + np.sum(np.abs(1.0 / work.system.inverse))
    for here, there, found in zip(
        *(side[1:] for side in sides), (of_consensus, work.system.product), strict=True
    ):
        np.testing.assert_allclose((here - there) / (2 * length), found, atol=1e-4 * bend)


# --- the gradient --------------------------------------------------------------------------


@every_link
@given(seed=seeds, traits=some_traits)
def test_the_gradient_is_the_slope_of_the_loss(link, seed, traits):
    terms, layout, rng = some_layout(seed, True, terms_with(*traits))
    problem = Problem.of(layout, DELTA, terms)
    consensus, deviation, *_ = random_flow(layout, rng, 0.3)
    deviation[layout.slots.threshold] = 0.2
    consensus[layout.vector.threshold] = 0.3
    gradient, unused = room_for_gradient(layout), room_for_gradient(layout)

    def loss(share, along):
        moved = consensus + share * along[0], deviation + share * along[1]
        return plain.loss_and_gradient(link, problem, *moved, unused)

    plain.loss_and_gradient(link, problem, consensus, deviation, gradient)
    along = [rng.normal(size=len(array)) / np.sqrt(len(array)) for array in gradient]
    slope = (loss(1e-6, along) - loss(-1e-6, along)) / 2e-6
    expected = gradient[0] @ along[0] + gradient[1] @ along[1]
    # The uniform link's density has corners, across which a difference is off by its own width.
    size = 1.0 + sum(np.sum(np.abs(array)) for array in gradient)
    assert slope == pytest.approx(expected, abs=2e-5 * size)


@every_link
@pytest.mark.backend
@pytest.mark.parametrize("traits", TRAITS.values(), ids=TRAITS)
def test_the_loss_is_the_sum_of_minus_the_log_probabilities_of_the_votes(link, traits):
    votes = random_votes(4, n_users=7, n_items=6, n_votes=200, weighted=True)
    layout = Layout.of(votes, traits)
    flow = random_flow(layout, np.random.default_rng(3), 1.0)
    loss = kernels.backend().loss_and_gradient(
        link, Problem.of(layout, DELTA, terms_with(*traits)), flow.consensus, flow.deviation,
        room_for_gradient(layout),
    )  # fmt: skip
    own = np.tile(flow.consensus, (votes.n_users, 1))
    own[layout.slots.owner, layout.slots.coordinate] += flow.deviation
    margin = own[votes.user, votes.left] - own[votes.user, votes.right]
    for trait in traits:
        preference = own[votes.user, layout.vector.place(trait.name)]
        margin += preference * (
            1.0 if trait.name == "leftmost" else 0.5 * (votes.left - votes.right)
        )
    threshold = own[votes.user, layout.vector.threshold]
    of_vote = link.log_probabilities(margin, threshold)[np.arange(len(votes)), 1 - votes.outcome]
    assert loss == pytest.approx(-np.sum(votes.weight * of_vote), rel=1e-12)


def test_the_loss_is_the_sum_over_votes_and_not_their_mean():
    once = random_votes(3, n_votes=20)
    thrice = once.subset(np.tile(np.arange(20), 3))
    consensus, losses = np.array([0.3, -0.2, 0.5, 0.0, 0.7]), []
    for votes in (once, thrice):
        layout = Layout.of(votes)
        problem = Problem.of(layout, DELTA)
        args = (consensus, np.full(layout.n_slots, 0.1), room_for_gradient(layout))
        losses.append(plain.loss_and_gradient(Logistic(), problem, *args))
    assert losses[1] == pytest.approx(3 * losses[0], rel=1e-13)


@every_link
def test_a_score_is_the_loss_of_the_votes_and_what_would_be_said_of_them(link):
    votes = random_votes(6, n_users=5, n_items=5, n_votes=120)
    layout = Layout.of(votes)
    flow = random_flow(layout, np.random.default_rng(0), 1.0)
    problem, confusion = Problem.of(layout, DELTA), np.empty((3, 3))
    everybody, nobody = np.ones(layout.n_users, dtype=bool), np.zeros(layout.n_users, dtype=bool)
    args = (link, problem, flow.consensus, flow.deviation)
    for deviates, deviation in ((everybody, flow.deviation), (nobody, 0.0 * flow.deviation)):
        expected = plain.loss_and_gradient(
            link, problem, flow.consensus, deviation, room_for_gradient(layout)
        )
        loss, *_ = plain.score(*args, deviates, True, 1.0, confusion)
        assert loss == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(confusion.sum(axis=1), np.sum(layout.edges.counts, axis=1))
    margin, threshold = plain.margins(problem, flow.consensus, 0.0 * flow.deviation)
    of_ties = np.sum(np.array(layout.edges.counts)[:, np.abs(margin) <= threshold])
    assert confusion[:, 1].sum() == pytest.approx(of_ties)


@every_link
@pytest.mark.parametrize("ties", ["bounded", "log", "none"])
@pytest.mark.parametrize("power", [0.3, 1.0, 2.5])
def test_a_score_knows_how_the_loss_bends_by_the_power_of_the_probabilities(link, ties, power):
    terms = PAPER if ties == "bounded" else Terms.named(["taste"], has_ties=ties == "log")
    votes = random_votes(6, n_users=5, n_items=5, n_votes=120, tie_share=0.3 * terms.has_ties)
    layout = terms.layout(votes)
    flow = random_flow(layout, np.random.default_rng(0), 1.0, terms)
    problem, everybody = Problem.of(layout, DELTA, terms), np.ones(layout.n_users, dtype=bool)
    answering, confusion = terms.answering(link), np.empty((3, 3))
    at = answering, problem, flow.consensus, flow.deviation
    _, slope, bend = plain.score(*at, everybody, False, power, confusion)

    def loss(power):
        log = np.stack(answering.outcomes(*plain.margins(*at[1:])), axis=-1)
        log = log if terms.has_ties else log[:, ::2]
        counts = np.stack(layout.edges.counts, axis=1)
        counts = counts if terms.has_ties else counts[:, ::2]
        raised = np.exp(log) ** power
        return -np.sum(counts * np.log(raised / raised.sum(axis=1, keepdims=True)))

    step = 1e-4
    assert slope == pytest.approx((loss(power + step) - loss(power - step)) / (2 * step), rel=1e-5)
    second = (loss(power + step) - 2.0 * loss(power) + loss(power - step)) / step**2
    assert bend == pytest.approx(second, rel=1e-3)


# --- the group soft threshold --------------------------------------------------------------


@given(arrays(float, st.integers(1, 6), elements=st.floats(-5, 5)), st.floats(0.1, 50))
def test_shrinking_minimises_its_own_objective(dual, kappa):
    # kappa * prox of the norm: the minimiser of |x - z|^2 / 2 + |x|, by its optimality condition.
    sparse = np.empty(len(dual))
    norm = plain.shrink_groups(slots_of([len(dual)]), dual, kappa, sparse)
    assert norm[0] == pytest.approx(np.linalg.norm(dual), rel=1e-12, abs=1e-300)
    prox = sparse / kappa
    if np.any(prox):
        close(prox + prox / np.linalg.norm(prox), dual, 1e-9)
    else:
        assert np.linalg.norm(dual) <= 1.0 + 1e-8


def test_a_user_within_the_unit_ball_is_exactly_zero_and_others_do_not_matter():
    dual, sparse = np.array([0.6, 0.8, 3.0, 4.0]), np.full(4, np.nan)
    norm = plain.shrink_groups(slots_of([2, 2]), dual, 10.0, sparse)
    np.testing.assert_allclose(norm, [1.0, 5.0], rtol=1e-15)
    np.testing.assert_allclose(sparse, [0.0, 0.0, 24.0, 32.0], rtol=1e-15)


# --- the projection of the thresholds ------------------------------------------------------

own_thresholds = arrays(float, st.integers(1, 12), elements=st.floats(-3, 3))
centers = st.floats(-3, 3)
both_kernels = pytest.mark.parametrize("loops", [plain, compiled], ids=["numpy", "numba"])


def project(loops, center, own, joint=True, delta=DELTA):
    """Project the thresholds of users who have nothing else."""
    consensus, deviation = np.array([center]), own.copy()
    loops.project_thresholds(slots_of([1] * len(own)), consensus, deviation, delta, joint)
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


@both_kernels
def test_a_projection_of_what_is_not_a_number_ends(loops):
    assert np.isnan(project(loops, np.nan, np.array([0.3, np.nan]))[1]).any()
    assert np.isnan(project(loops, 0.3, np.array([0.3, np.nan]))[1]).any()


@pytest.mark.parametrize("traits", TRAITS.values(), ids=TRAITS)
def test_projection_touches_thresholds_only(traits):
    layout = Layout.of(random_votes(0), traits)
    rng = np.random.default_rng(0)
    consensus, deviation = rng.normal(size=layout.vector.width), rng.normal(size=layout.n_slots)
    before = consensus.copy(), deviation.copy()
    plain.project_thresholds(layout.slots, consensus, deviation, 2.0, True)
    at = layout.vector.threshold
    np.testing.assert_array_equal(np.delete(consensus, at), np.delete(before[0], at))
    others = layout.slots.coordinate != at
    np.testing.assert_array_equal(deviation[others], before[1][others])
    assert not np.array_equal(deviation[~others], before[1][~others])


# --- bounds and backends -------------------------------------------------------------------


@every_link
@given(seed=seeds, traits=some_traits)
def test_threshold_curvature_bounds_the_hessian_of_the_thresholds(link, seed, traits):
    terms, layout, rng = some_layout(seed, True, terms_with(*traits))
    consensus, deviation, *_ = random_flow(layout, rng, 1.0)
    problem = Problem.of(layout, DELTA, terms)
    margin, threshold = plain.margins(problem, consensus, deviation)
    bend = link.vote_terms(margin, threshold, *layout.edges.counts)[-1]
    per_user = layout.sum_by_user(bend)
    hessian = np.diag(np.concatenate([[np.sum(per_user)], per_user]))
    hessian[0, 1:] = hessian[1:, 0] = per_user
    bound, _ = plain.threshold_curvature(
        link, problem, consensus, deviation, *decided_and_ties(layout)
    )
    assert np.linalg.eigvalsh(hessian)[-1] <= bound * (1 + 1e-9)


@pytest.mark.parametrize("traits", TRAITS.values(), ids=TRAITS)
def test_margins_are_those_that_the_layout_tells(traits):
    layout = Layout.of(random_votes(0, n_users=6, n_items=5, n_votes=100), traits)
    flow = random_flow(layout, np.random.default_rng(2), 1.0)
    problem = Problem.of(layout, DELTA, terms_with(*traits))
    found = plain.margins(problem, flow.consensus, flow.deviation)
    expected = layout.margins(flow.consensus[layout.slots.coordinate] + flow.deviation)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_problem_knows_who_declared_a_tie():
    votes = random_votes(3, n_users=9, n_votes=40, tie_share=0.15)
    problem = Problem.of(Layout.of(votes), DELTA)
    found = tally(votes, by_user=True)
    expected = np.bincount(found.user, found.ties, votes.n_users) > 0
    np.testing.assert_array_equal(problem.has_ties, expected)
    assert 0 < np.sum(expected) < votes.n_users


def test_an_unknown_backend_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="backend 'fortran' is not one of numba, numpy"):
        kernels.backend("fortran")
    monkeypatch.setenv("ISPLITLBI_BACKEND", "algol")
    with pytest.raises(ValueError, match="backend 'algol' is not one of numba, numpy"):
        kernels.backend()


def test_the_environment_chooses_the_backend(monkeypatch):
    monkeypatch.setenv("ISPLITLBI_BACKEND", "numpy")
    assert kernels.backend() is plain
    monkeypatch.delenv("ISPLITLBI_BACKEND")
    assert kernels.backend() is compiled


def loops_of(module):
    """Return the names and the parameters of a module's loops."""
    return {
        name: list(inspect.signature(getattr(value, "py_func", value)).parameters)
        for name, value in vars(module).items()
        if hasattr(value, "py_func") or inspect.isfunction(value)
        if not name.startswith("_")
        if value.__module__
        in (
            module.__name__,
            module.__name__.replace("_loops", "_explicit"),
            "isplitlbi.kernels.newton",
        )
    }


def test_twins_have_the_same_names_and_arguments():
    readable, fast = loops_of(plain), loops_of(compiled)
    twins = readable.keys() & fast.keys()
    assert {"solve", "assemble", "explicit_step"} <= twins
    assert {name: fast[name] for name in twins} == {name: readable[name] for name in twins}


def test_nobody_calls_a_compiled_loop_that_has_no_twin():
    # Such loops are parts of others, in the same module.
    alone = loops_of(compiled).keys() - loops_of(plain).keys()
    assert "next_direction" in alone
    for file in Path(kernels.__file__).parents[1].rglob("*.py"):
        if file.stem not in ("numba_loops", "numba_explicit"):
            names = set(re.findall(r"\w+", file.read_text(encoding="utf-8")))
            assert not alone & names, file


def linear_link(slope):
    class Linear(Logistic):
        """A nonsense link, with formulas that carry no annotations."""

        name = "linear"

        def vote_terms(self, margin, threshold, first_wins, ties, second_wins):
            return slope * margin, first_wins, ties, second_wins, threshold, 0.0 * margin

    return Linear()


def test_a_link_of_ones_own_is_compiled_and_never_taken_for_another_of_its_name():
    layout = Layout.of(Comparisons.from_arrays(["u"], ["a"], ["b"], [1]))
    consensus = np.array([1.5, 0.0, 1.0])
    for slope in (2.0, 4.0):
        for loops in (plain, compiled):
            problem = Problem.of(layout, DELTA)
            args = (linear_link(slope), problem, consensus, np.zeros(3), room_for_gradient(layout))
            assert loops.loss_and_gradient(*args) == 1.5 * slope
