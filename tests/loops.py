"""The loops of both backends, called one by one, and what they are called with."""

import numpy as np

from isplitlbi import kernels
from isplitlbi.kernels import (
    HOLD_BACK,
    Anchor,
    Flow,
    Gradient,
    Problem,
    Rates,
    System,
    sharpness_told,
)
from isplitlbi.model.terms import PAPER
from votes import random_votes

DELTA = 1e-3

plain, compiled = kernels.backend("numpy"), kernels.backend("numba")


def close(one, other, tolerance=1e-10):
    """Assert equality up to rounding, at the scale of the largest value."""
    one, other = np.asarray(one), np.asarray(other)
    scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


def all_close(found, tolerance=1e-10):
    """Assert that two lists of results are equal, one by one."""
    for one, other in zip(*found, strict=True):
        close(one, other, tolerance)


def random_flow(layout, rng, scale, terms=PAPER):
    """Draw a consensus, deviations and duals; thresholds with a bound are at least delta."""
    n_slots, n_users, at = layout.n_slots, layout.n_users, layout.vector.threshold
    consensus = scale * rng.normal(size=layout.vector.width)
    deviation = scale * rng.normal(size=n_slots)
    others = rng.normal(size=n_slots), rng.normal(size=n_slots)
    if terms.ties != "bounded":
        return Flow(consensus * terms.is_common(layout.vector), deviation, *others)
    consensus[at] = DELTA + rng.exponential()
    own = DELTA + rng.exponential(size=n_users) * (rng.random(n_users) < 0.8)
    deviation[layout.slots.threshold] = own - consensus[at]
    return Flow(consensus, deviation, *others)


def copied(named):
    """Copy all arrays of a named tuple."""
    return type(named)(*(array.copy() for array in named))


def some_layout(seed, weighted, terms=PAPER):
    """Lay out random votes, of few users and many, with the features that the terms have."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers([1, 2, 1], [7, 7, 80])
    tie_share = rng.random() * terms.has_ties
    features = terms.as_dict()["features"]
    votes = random_votes(rng, *sizes, tie_share, weighted=weighted, features=features)
    if terms.reference is not None:
        terms = terms.referring(terms.reference[: votes.n_items])
    return terms, terms.layout(votes), rng


def room_for_gradient(layout):
    return Gradient(np.full(layout.vector.width, np.nan), np.full(layout.n_slots, np.nan))


def decided_and_ties(layout):
    """Return amounts of decided votes and of ties, by user."""
    edges = layout.edges
    return layout.sum_by_user(edges.first_wins + edges.second_wins), layout.sum_by_user(edges.ties)


def problem_of(layout, delta, terms):
    """Take votes as a fit does, with everybody's share in the average person."""
    told = sharpness_told(layout, terms)
    shares = terms.scales[1] * told / max(told.sum(), 1e-300)
    return Problem.of(layout, delta, terms, shares=shares)


class ImplicitLoops:
    """The loops of one step of the implicit scheme, users in two blocks, and what they fill."""

    def __init__(self, loops, link, layout, rng, scale, terms=PAPER):
        self.loops, self.link, self.slots = loops, terms.answering(link), layout.slots
        self.problem = problem_of(layout, DELTA, terms)
        self.width, self.n_slots, self.n_users = layout.vector.width, layout.n_slots, layout.n_users
        self.consensus, *old = random_flow(layout, rng, scale, terms)
        self.own = scale * rng.normal(size=self.n_slots)
        if terms.ties == "bounded":
            self.own[self.slots.threshold] = DELTA + rng.exponential(size=self.n_users)
        step, nu, kappa, damping = rng.uniform([0.01, 0.1, 1.0, 0.0], [3.0, 10.0, 100.0, 5.0])
        holds = rng.choice([0.3, 1.0, 50.0], size=len(layout.terms))
        holds = np.ones_like(holds) if rng.random() < 0.5 else holds
        if terms.scales[0] == 0.0:  # held fast, but not so that rounding is all that is seen
            holds[0] = 1e4
        moves, precision = bool(rng.random() < 0.7), rng.choice([0.0, 0.5])
        at = rng.normal(size=self.width)
        self.anchor = Anchor(at, *old[:2], step, nu, kappa, damping, moves, precision, holds)
        cut = int(rng.integers(self.n_users))
        self.blocks = [(0, cut), (cut, self.n_users)] if cut else [(0, self.n_users)]
        self.system = System.room(layout)
        for array in self.system:
            array[:] = np.nan if array.dtype == float else False

    def over_blocks(self, work, n_arrays):
        """Return the sums over blocks of what the work returns and of what it fills."""
        total, filled = 0.0, np.zeros((n_arrays, self.width))
        for users in self.blocks:
            arrays = np.full((n_arrays, self.width), np.nan)
            total += work(users, *arrays) or 0.0
            filled += arrays
        return total, *filled

    def assemble(self, consensus, own):
        """Return the objective and the consensus's gradient and diagonal; fill the system."""
        return self.over_blocks(
            lambda users, *filled: self.loops.assemble(
                self.link, self.problem, users, self.anchor, consensus, own, self.system,
                filled,
            ),
            2,
        )  # fmt: skip

    def eliminate_users(self):
        """Return what the users take from the consensus; begin the solution."""
        return self.over_blocks(
            lambda users, *filled: self.loops.eliminate_users(
                self.problem, users, self.own, self.system, *filled
            ),
            2,
        )

    def curvature_product(self, preconditioned, towards, momentum):
        """Return the direction's curvature and the consensus's product."""
        return self.over_blocks(
            lambda users, filled: self.loops.curvature_product(
                self.problem, users, self.anchor, self.system, preconditioned, towards, momentum,
                filled,
            ),
            1,
        )  # fmt: skip

    def conjugate_update(self, length):
        """Return the size of the new residual and what it means for the consensus."""
        return self.over_blocks(
            lambda users, filled: self.loops.conjugate_update(
                self.problem, users, length, self.system, filled
            ),
            1,
        )

    def move_users(self, length):
        """Return where the users get to, half of them held back."""
        moved, pace, n_grown = np.full(self.n_slots, np.nan), np.ones(self.n_users), 0.0
        before = self.system.value.copy()
        before[::2] -= 1.0
        for users in self.blocks:
            n_grown += self.loops.hold_back(self.problem, users, before, self.system.value, pace)
            self.loops.move_users(
                self.problem, users, self.own, self.system.solution, length, pace, moved
            )
        assert n_grown == len(before[::2])
        np.testing.assert_array_equal(pace, np.where(np.arange(self.n_users) % 2, 1.0, HOLD_BACK))
        return moved

    def finish_step(self, rng):
        """Return the new dual, the sparse part, the dual's norms, and the rates of change."""
        deviation, dual, *rates = rng.normal(size=(5, self.n_slots))
        old = Flow(self.consensus, deviation, dual, dual)
        filled = [np.full(self.n_slots, np.nan) for _ in range(2)]
        new, rates = Flow(self.consensus, self.own, *filled), Rates(*rates)
        norms = np.full(self.n_users, np.nan)
        for users in self.blocks:
            self.loops.finish_step(
                self.slots, users, self.anchor, old, new, norms, rates, (0.7, 0.2)
            )
        return [*filled, norms, *rates]

    def vectors(self, rng):
        """Return an extrapolation and two sums of squares."""
        base, rate, bend, out = rng.normal(size=(4, self.n_slots))
        sums = np.zeros(2)
        for users in self.blocks:
            self.loops.extrapolate(self.slots, users, base, rate, bend, (0.3, 0.7), out)
            sums += self.loops.squares(self.problem, users, base, rate)
        return [out, sums]
