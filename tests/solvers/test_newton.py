"""The Newton method: stated once, and the same in all three of its forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isplitlbi import kernels
from isplitlbi.data.layout import Layout
from isplitlbi.kernels import Anchor, Flow, Gradient, Problem, newton
from isplitlbi.model.links import Logistic, Probit
from isplitlbi.runtime import blocks
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.newton import Solver
from isplitlbi.solvers.newton import solve as in_blocks
from traits import TRAITS, terms_with
from votes import random_votes

DELTA = 1e-3

plain, compiled = kernels.backend("numpy"), kernels.backend("numba")
# Not the uniform link: its curvature jumps, and from a start this far Newton's method is cut short.
smooth_links = pytest.mark.parametrize("link", [Logistic(), Probit()], ids=["logistic", "probit"])
seeds = st.integers(0, 2**32 - 1)
some_traits = st.sampled_from(list(TRAITS.values()))


def some_votes(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers([1, 2, 1], [7, 7, 80])
    return random_votes(rng, *sizes, tie_share=rng.random(), weighted=True), rng


def some_anchor(layout, rng, kind):
    """Return a step of a path, or a ridge under which some terms are held differently."""
    width, n_slots, at = layout.vector.width, layout.n_slots, layout.vector.threshold
    consensus = rng.normal(size=width)
    consensus[at] = DELTA + rng.exponential()
    holds = np.ones(len(layout.terms))
    if kind == "step":
        step, nu, kappa = rng.uniform([0.01, 0.1, 1.0], [3.0, 10.0, 100.0])
        deviation, dual = rng.normal(size=(2, n_slots))
        own = DELTA + rng.exponential(size=layout.n_users)
        deviation[layout.slots.threshold] = own - consensus[at]
        flow = Flow(consensus, deviation, dual, np.zeros(n_slots))
        return Anchor.of_step(flow, step, (nu, kappa, rng.choice([0.0, 0.5])), holds)
    variance = rng.uniform(0.1, 10.0)
    if kind == "free consensus":
        return Anchor.ridge(consensus, n_slots, variance, holds, damping=1e-3, moves=True)
    holds = rng.choice([0.1, 1.0, 1e6], size=len(holds))
    return Anchor.ridge(consensus, n_slots, variance, holds)


any_anchor = pytest.mark.parametrize("kind", ["step", "free consensus", "users alone"])


def solvers_of(votes, traits, link):
    """Return the readable form, the compiled one, and that with users in blocks."""
    terms, layout = terms_with(*traits), Layout.of(votes, traits)
    forms = [
        Solver(layout, link, DELTA, Local(votes, backend=each), terms)
        for each in ("numpy", "numba")
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "EDGES_PER_BLOCK", 2)
        forms.append(Solver(layout, link, DELTA, Local(votes, 2), terms))
    return layout, forms


@any_anchor
@smooth_links
@given(seed=seeds, scale=st.sampled_from([0.0, 0.1, 1.0, 5.0]), traits=some_traits)
@settings(max_examples=15)
def test_a_problem_has_the_same_solution_in_all_three_forms(link, kind, seed, scale, traits):
    votes, rng = some_votes(seed)
    layout, forms = solvers_of(votes, traits, link)
    anchor = some_anchor(layout, rng, kind)
    guess = anchor.consensus.copy(), scale * rng.normal(size=layout.n_slots)
    solved = [form.solve(anchor, 1e-9, *(part.copy() for part in guess))[:2] for form in forms]
    for other in solved[1:]:
        for found, expected in zip(other, solved[0], strict=True):
            size = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * size)
    if not anchor.moves:
        np.testing.assert_array_equal(solved[0][0], anchor.consensus)
    near = [form.relative(guess, solved[0], 2.0) for form in forms]
    np.testing.assert_allclose(near, near[0], rtol=1e-12)
    assert forms[0].relative(solved[0], solved[0], 2.0) == 0.0


@any_anchor
@smooth_links
@given(seed=seeds, traits=some_traits)
@settings(max_examples=15)
def test_at_the_solution_nothing_pulls_any_more(link, kind, seed, traits):
    votes, rng = some_votes(seed)
    terms, layout = terms_with(*traits), Layout.of(votes, traits)
    anchor = some_anchor(layout, rng, kind)
    solver = Solver(layout, link, DELTA, Local(votes), terms)
    start = anchor.consensus.copy(), anchor.deviation.copy()
    consensus, deviation, *_ = solver.solve(anchor, 1e-10, *start)

    gradient = Gradient(np.empty(layout.vector.width), np.empty(layout.n_slots))
    problem = Problem.of(layout, DELTA, terms)
    plain.loss_and_gradient(link, problem, consensus, deviation, gradient)
    w = anchor.dual + anchor.step / anchor.nu * deviation
    norm = np.sqrt(np.add.reduceat(w * w, layout.slots.start[:-1]))
    ratio = anchor.kappa * anchor.step / anchor.nu
    factor = np.where(norm > 1.0, (1.0 + ratio / np.maximum(norm, 1.0)) / (1.0 + ratio), 1.0)
    dual = np.repeat(factor, layout.slots.sizes) * w
    place = np.maximum(layout.slots.coordinate - layout.vector.n_items + 1, 0)
    held = anchor.holds[place]
    pull = held * (
        (dual - anchor.dual) / anchor.step
        + anchor.damping * (deviation - anchor.deviation)
        + anchor.precision * deviation
    )
    of_users = gradient.slots + pull
    at = layout.slots.threshold
    own = consensus[layout.vector.threshold] + deviation[at]
    assert np.all(own >= DELTA - 1e-15)
    bound = at[own < DELTA + 1e-12]
    size = 1.0 + np.abs(gradient.slots).max() + np.abs(pull).max()
    pushed = of_users[bound].copy()
    assert np.all(pushed > -1e-5 * size)
    of_users[bound] = 0.0
    np.testing.assert_allclose(of_users, 0.0, atol=1e-5 * size)
    if anchor.moves:
        # A user at the bound pushes the consensus instead, which may rest at the bound itself.
        of_consensus = gradient.consensus + anchor.damping * (consensus - anchor.consensus)
        of_consensus[layout.vector.threshold] -= np.sum(pushed)
        if consensus[layout.vector.threshold] < DELTA + 1e-12:
            of_consensus[layout.vector.threshold] = min(of_consensus[layout.vector.threshold], 0.0)
        np.testing.assert_allclose(of_consensus, 0.0, atol=1e-5 * size * layout.n_users)


def test_what_cannot_be_evaluated_comes_back_as_not_a_number():
    votes = random_votes(0)
    layout, forms = solvers_of(votes, (), Logistic())
    anchor = some_anchor(layout, np.random.default_rng(0), "step")
    for form in forms:
        _, deviation, *_ = form.solve(
            anchor, 1e-6, np.full(layout.vector.width, np.nan), np.zeros(layout.n_slots)
        )
        assert np.isnan(deviation).all()


def test_the_number_of_threads_leaves_no_trace(monkeypatch):
    monkeypatch.setattr(blocks, "EDGES_PER_BLOCK", 8)
    votes = random_votes(1, n_users=30, n_votes=400)
    layout = Layout.of(votes)
    anchor = some_anchor(layout, np.random.default_rng(0), "step")
    found = []
    for n_threads in (1, 2, 3):
        solver = Solver(layout, Logistic(), DELTA, Local(votes, n_threads))
        assert len(solver.blocks) > 10
        start = anchor.consensus.copy(), anchor.deviation.copy()
        found.append(solver.solve(anchor, 1e-6, *start))
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_the_method_is_stated_once():
    forms = (plain.solve, compiled.solve.py_func, in_blocks)
    assert all(form.__code__ is newton.solve.__code__ for form in forms)
    with pytest.raises(NotImplementedError, match="stands for a loop"):
        newton.assemble()
