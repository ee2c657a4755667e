"""The loops with every term of ours: compiled as plain, and true to what they say."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isplitlbi.kernels import newton
from isplitlbi.model.links import LINKS, Logistic
from loops import (
    DELTA,
    ImplicitLoops,
    all_close,
    close,
    compiled,
    copied,
    decided_and_ties,
    plain,
    problem_of,
    random_flow,
    room_for_gradient,
    some_layout,
)
from traits import SIZED

every_link = pytest.mark.parametrize("link", [link() for link in LINKS.values()], ids=list(LINKS))
every_model = pytest.mark.parametrize("terms", SIZED.values(), ids=SIZED)
seeds = st.integers(0, 2**32 - 1)
strengths = st.sampled_from([0.0, 0.1, 1.0, 2.5])
few, some = settings(max_examples=4), settings(max_examples=8)


# --- twin by twin --------------------------------------------------------------------------


@every_link
@every_model
@given(seed=seeds, weighted=st.booleans(), scale=strengths)
@few
def test_loops_of_the_explicit_scheme_are_the_same_compiled(link, terms, seed, weighted, scale):
    terms, layout, rng = some_layout(seed, weighted, terms)
    problem, start = problem_of(layout, DELTA, terms), random_flow(layout, rng, scale, terms)
    numbers = rng.uniform([1e-4, 0.1, 1.0, 0.0], [1e-2, 10.0, 100.0, 1.0])
    deviates, answering = rng.random(layout.n_users) < 0.5, terms.answering(link)
    results = []
    for loops in (plain, compiled):
        flow, gradient, confusion = copied(start), room_for_gradient(layout), np.empty((3, 3))
        at = flow.consensus, flow.deviation
        bounds = loops.threshold_curvature(answering, problem, *at, *decided_and_ties(layout))
        scored = loops.score(answering, problem, *at, deviates, False, numbers[1], confusion)
        step = loops.explicit_step(answering, problem, flow, gradient, *numbers)
        results.append((*bounds, *scored, confusion, *step, *flow, *gradient))
    all_close(results, 1e-9)


@every_link
@every_model
@given(seed=seeds, weighted=st.booleans(), scale=strengths)
@example(seed=0, weighted=False, scale=2.5)  # thresholds of 1e5
@few
def test_loops_of_the_implicit_scheme_are_the_same_compiled(link, terms, seed, weighted, scale):
    results = []
    for loops in (plain, compiled):
        own_terms, layout, rng = some_layout(seed, weighted, terms)
        work = ImplicitLoops(loops, link, layout, rng, scale, own_terms)
        found = [*work.assemble(work.consensus, work.own)]
        found += [array.copy() for array in work.system[:8]]
        found += work.eliminate_users()
        found += [work.system.free.copy(), work.system.residual.copy()]
        for momentum, length in ((0.0, 0.4), (0.3, 0.2)):
            preconditioned, towards = rng.normal(size=(2, work.width))
            found += work.curvature_product(preconditioned, towards, momentum)
            found += work.conjugate_update(length)
        found += [*work.system, work.move_users(0.5), *work.finish_step(rng), *work.vectors(rng)]
        turned, back = work.own.copy(), work.own.copy()
        for users in work.blocks:
            loops.turn(work.problem, users, work.consensus, turned, 1.0)
            loops.turn(work.problem, users, work.consensus, back, -1.0)
        results.append([*found, turned, back])
    all_close(results, 1e-7 if terms.scales[0] == 0.0 else 1e-9)


# --- what they mean ------------------------------------------------------------------------


@every_link
@every_model
@given(seed=seeds)
@some
def test_the_loss_is_that_of_the_margins_and_its_gradient_its_slope(link, terms, seed):
    terms, layout, rng = some_layout(seed, True, terms)
    problem, answering = problem_of(layout, DELTA, terms), terms.answering(link)
    consensus, deviation, *_ = random_flow(layout, rng, 0.4, terms)
    gradient, unused = room_for_gradient(layout), room_for_gradient(layout)

    def loss(share, along):
        """Return the loss of the votes and the cost of the prior on the average person."""
        moved = consensus + share * along[0], deviation + share * along[1]
        person = moved[0]
        if terms.has_sharpness:
            own = moved[1][layout.slots.threshold - len(terms.traits) - 1]
            person = person + np.sum(problem.shares * own) * problem.toward
        prior = np.sum(problem.precision * person**2)
        return 0.5 * prior + plain.loss_and_gradient(answering, problem, *moved, unused)

    plain.loss_and_gradient(answering, problem, consensus, deviation, gradient)
    along = [rng.normal(size=len(array)) / np.sqrt(len(array)) for array in gradient]
    along[0] *= problem.common  # what is users' own alone does not move
    slope = (loss(1e-6, along) - loss(-1e-6, along)) / 2e-6
    expected = gradient[0] @ along[0] + gradient[1] @ along[1]
    size = 1.0 + sum(np.sum(np.abs(array)) for array in gradient)
    assert slope == pytest.approx(expected, abs=2e-5 * size)
    assert not gradient.consensus[problem.common == 0.0].any()
    if terms.scales[0] == 0.0:
        assert not gradient.slots[layout.slots.coordinate < layout.vector.n_items].any()


@every_model
@given(seed=seeds)
@some
def test_margins_are_those_of_the_model(terms, seed):
    terms, layout, rng = some_layout(seed, False, terms)
    consensus, deviation, *_ = random_flow(layout, rng, 1.0, terms)
    margin, level = plain.margins(problem_of(layout, DELTA, terms), consensus, deviation)
    vector, slots, edges = layout.vector, layout.slots, layout.edges
    own = np.zeros((layout.n_users, vector.own_width))
    own[slots.owner, slots.coordinate] = deviation
    user, left, right = edges.owner, slots.coordinate[edges.first], slots.coordinate[edges.second]
    expected = consensus[left] - consensus[right]
    expected += terms.scales[0] * (own[user, left] - own[user, right])
    if terms.reference is not None:
        slope = terms.scale("sharpness") * own[user, vector.place("sharpness")]
        expected += slope * (terms.reference[left] - terms.reference[right])
    for trait, column in zip(terms.traits, edges.columns, strict=True):
        at = vector.place(trait.name)
        expected += column * (consensus[at] + terms.scale(trait.name) * own[user, at])
    np.testing.assert_allclose(margin, expected, rtol=1e-11, atol=1e-12)
    if terms.has_ties:
        of_user = terms.scale("threshold") * own[user, vector.threshold]
        expected = consensus[vector.threshold] + of_user
        if terms.has_habits:
            habits = consensus[vector.habits]
            expected = expected + habits[left] + habits[right]
        np.testing.assert_allclose(level, expected, rtol=1e-11, atol=1e-12)


class Parabola:
    """An answer that costs a quadratic, so that its slope changes as its curvature says."""

    def vote_terms(self, margin, level, first_wins, ties, second_wins):
        mm, mt, tt = first_wins + ties + 0.2, 0.3 * (first_wins - second_wins), ties + second_wins
        tt = tt + mt**2 / mm
        by_margin, by_level = mm * margin + mt * level, mt * margin + tt * level
        loss = 0.5 * (margin * by_margin + level * by_level)
        return loss, by_margin, by_level, mm, mt, tt


def held(terms, work):
    """Return an anchor at which users are held as on a path; without taste, all are within."""
    anchor = work.anchor._replace(damping=0.1, moves=True, holds=np.ones(len(terms.scales)))
    if terms.scales[0] > 0.0:
        return anchor
    anchor.holds[0] = 1e4
    return anchor._replace(step=1e-3, dual=np.zeros(work.n_slots))


def work_on_parabola(terms, seed, *, out):
    """Return loops on an objective that is quadratic, but for the users who are out."""
    terms, layout, rng = some_layout(seed, True, terms)
    work = ImplicitLoops(plain, Logistic(), layout, rng, 0.3, terms)
    work.link = Parabola()
    work.anchor = held(terms, work)
    if not out:
        work.anchor = work.anchor._replace(step=1e-3, dual=np.zeros(work.n_slots))
    return work


@pytest.mark.parametrize("out", [False, True], ids=["within", "out"])
@every_model
@given(seed=seeds)
@some
def test_the_curvature_of_a_step_is_the_slope_of_its_slope(terms, out, seed):
    work = work_on_parabola(terms, seed, out=out and terms.scales[0] > 0.0)
    rng = np.random.default_rng(seed)
    to_consensus, to_own = rng.normal(size=work.width), rng.normal(size=work.n_slots)
    length, sides = 1e-5, []
    for share in (length, -length):
        at = work.consensus + share * to_consensus, work.own + share * to_own
        value, gradient, _ = work.assemble(*at)
        sides.append((value, gradient, -work.system.residual))
    _, gradient, diagonal = work.assemble(work.consensus, work.own)
    of_users = -work.system.residual
    sloping = gradient.copy()
    if terms.has_sharpness:  # there is the mean of users, which is no slope
        sloping[work.slots.common_threshold - len(terms.traits) - 1] = 0.0
    slope = sloping @ to_consensus + of_users @ to_own
    scale = 1.0 + np.sum(np.abs(gradient)) + np.sum(np.abs(of_users)) + abs(sides[0][0])
    assert (sides[0][0] - sides[1][0]) / (2 * length) == pytest.approx(slope, abs=1e-6 * scale)

    work.system.free[:] = True
    work.system.residual[:] = 0.0
    work.system.direction[:] = to_own
    along, of_consensus = work.curvature_product(np.zeros(work.width), to_consensus, 1.0)
    close(work.system.direction, to_own)
    assert along == pytest.approx(to_own @ work.system.product, rel=1e-9)
    bend = 1.0 + np.sum(np.abs(diagonal)) + np.max(np.abs(work.system.product))
    for here, there, found in zip(
        *(side[1:] for side in sides), (of_consensus, work.system.product), strict=True
    ):
        np.testing.assert_allclose((here - there) / (2 * length), found, atol=1e-6 * bend)


# --- the Newton system ---------------------------------------------------------------------


def matrices_of(work):
    """Return the curvature of a step, and what the preconditioner takes for its inverse.

    Both of all that may move: consensus first, then the users' own coordinates.
    """
    problem, system, anchor, width = work.problem, work.system, work.anchor, work.width
    method = plain.solve.__globals__  # where the functions of the method are by name
    sums = np.empty(width), np.empty(width)
    method["evaluate"](work.link, problem, anchor, work.consensus, work.own, system, sums)
    reach, eliminated, along = work.eliminate_users()
    if reach > 0.0:
        along += problem.precision * problem.toward
        reach += np.sum(problem.precision * problem.toward**2)
    free, at = problem.common, problem.slots.common_threshold
    schur = (sums[1] - eliminated) * free + (1.0 - free)
    habits = method["curvature_of_habits"](problem, anchor, sums[1])
    per_habit = habits * (2.0 / max(np.sum(habits), 1e-300))

    def curved(x):
        system.residual[:], system.direction[:] = 0.0, x[width:]
        _, product = work.curvature_product(np.zeros(width), x[:width], 1.0)
        held = np.empty(width)
        method["hold_average"](problem, x[:width], product, system.product, held, 1.0)
        product += anchor.damping * x[:width] + held
        return np.append(product * free, system.product)

    def preconditioned(r):
        system.residual[:], system.product[:], system.direction[:] = r[width:], 0.0, 0.0
        _, of_users = work.conjugate_update(0.0)
        of_users += of_users[at] * per_habit
        left = (r[:width] - of_users) * free
        solved = method["solve_consensus"](problem, schur, along, reach, habits, left)
        met = solved.copy()
        met[at] += np.sum(per_habit * solved)
        work.curvature_product(met, solved, 0.0)
        return np.append(solved, system.direction)

    moves = np.append(free > 0.0, np.ones(work.n_slots, dtype=bool))
    units = np.eye(width + work.n_slots)[moves]
    return (np.array([of(unit)[moves] for unit in units]) for of in (curved, preconditioned))


@every_model
@given(seed=seeds)
@some
def test_curvature_and_preconditioner_are_symmetric_and_positive(terms, seed):
    terms, layout, rng = some_layout(seed, True, terms)
    work = ImplicitLoops(plain, Logistic(), layout, rng, 0.5, terms)
    work.anchor = held(terms, work)
    for matrix in matrices_of(work):
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-8 * np.abs(matrix).max())
        assert np.linalg.eigvalsh(matrix)[0] > 0.0


@every_model
@given(seed=seeds)
@some
def test_the_direction_of_a_step_solves_its_system(terms, seed):
    terms, layout, rng = some_layout(seed, True, terms)
    work = ImplicitLoops(plain, Logistic(), layout, rng, 0.5, terms)
    work.anchor = held(terms, work)
    curvature, _ = matrices_of(work)
    loops = {name: getattr(plain, name) for name in LOOPS}
    closely = dict.fromkeys(("ACCURACY_WITHOUT_BOUND", "CONJUGATE_ACCURACY"), 1e-9)
    method = newton.bound(loops | closely)
    sums = np.empty(work.width), np.empty(work.width)
    arguments = work.problem, work.anchor, work.consensus, work.own, work.system
    method["evaluate"](work.link, *arguments, sums)
    downhill = -np.append(sums[0], -work.system.residual)
    toward, slope, n_steps = method["newton_direction"](*arguments, sums)
    moves = np.append(work.problem.common > 0.0, np.ones(work.n_slots, dtype=bool))
    expected = np.linalg.solve(curvature, downhill[moves])
    found = np.append(toward, work.system.solution)
    close(found[moves], expected, 1e-5)
    assert slope == pytest.approx(expected @ downhill[moves], rel=1e-6)
    assert not found[~moves].any()
    assert n_steps < 60


LOOPS = (
    "assemble", "eliminate_users", "curvature_product", "conjugate_update", "move_users",
    "hold_back", "squares", "is_free", "pull_sharpness",
)  # fmt: skip
