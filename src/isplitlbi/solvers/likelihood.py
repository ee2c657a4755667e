"""What is fitted without a path: one optimiser, that of the path's own steps, under a ridge.

The consensus, every user alone, and the state before anybody leaves: each is the minimum of a loss
of votes plus a ridge, in a layout of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import (
    THRESHOLD,
    Edges,
    Layout,
    Slots,
    Vector,
    tally,
)
from isplitlbi.kernels import Anchor
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Consensus, Parameters
from isplitlbi.model.terms import PAPER, START, Terms
from isplitlbi.runtime.base import Runtime
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.implicit import NEWTON_ACCURACY
from isplitlbi.solvers.newton import Solver
from isplitlbi.solvers.settings import Dynamics
from isplitlbi.typing import Floats, Indices

__all__ = [
    "ACCURACY",
    "by_itself",
    "fit_before_entries",
    "fit_consensus",
    "fit_users",
]

# Keeps the score of an item that always wins finite and centres the scores; far too wide to matter
# otherwise.
SCORE_VARIANCE = 1e4

# The last Newton step, relative to where it leads; the error is a small fraction of that.
ACCURACY = 1e-9

# What holds consensus and users to the start of a fit before anybody leaves: hardly anything.
WEAK_HOLD = 1e-5

# How strongly that is held which only must not run away: the threshold of votes that are all ties.
HARDLY_HELD = 1e-8

NUMBERS_AT_ONCE = 1 << 16  # of counts, that machines add up in one exchange


def fit_before_entries(
    votes: Comparisons,
    link: Link,
    dynamics: Dynamics,
    runtime: Runtime | None = None,
    tol: float = 1e-4,
    terms: Terms = PAPER,
    guess: Parameters | None = None,
) -> Parameters:
    """Fit consensus and deviations with every user still in the consensus (Gamma = 0).

    This is where the path rests before the first entry: deviations under a ridge of variance nu. A
    guess makes it faster.
    """
    layout = terms.layout(votes)
    start = terms.start(layout.vector, dynamics.delta)
    solver = Solver(layout, link, dynamics.delta, runtime or Local(votes), terms)
    anchor = Anchor.ridge(
        start, layout.n_slots, dynamics.nu, terms.holds, damping=WEAK_HOLD, moves=True
    )
    first = start.copy() if guess is None else guess.consensus.copy()
    own = np.zeros(layout.n_slots) if guess is None else guess.deviation.copy()
    consensus, deviation, *_ = solver.solve(anchor, NEWTON_ACCURACY * tol, first, own)
    return Parameters(layout.vector, layout.slots, consensus, deviation, terms)


# --- the consensus ---------------------------------------------------------------------------


def fit_consensus(
    votes: Comparisons,
    link: Link,
    delta: float = 1e-3,
    variance: float = SCORE_VARIANCE,
    runtime: Runtime | None = None,
) -> Consensus:
    """Fit one score per item and one threshold, by maximum likelihood, as if all users were one.

    Scores are held towards zero by a prior of that variance, which hardly matters by default. Where
    machines hold other votes, all find the consensus of all.
    """
    runtime = runtime or Local(votes)
    pooled = _pooled(votes.n_items, *_pairs(votes, runtime))
    return _fit_pooled(pooled, link, delta, variance, by_itself(votes, runtime))


def _pairs(votes: Comparisons, runtime: Runtime) -> tuple[Indices, Floats]:
    """Return the pairs ``first * n_items + second`` that occur anywhere, and their counts."""
    found, n_items = tally(votes), votes.n_items
    keys, counts = found.first.astype(np.int64) * n_items + found.second, np.array(found.counts)
    if runtime.is_alone:
        return keys, counts
    pairs, sums = [], []
    at_once = NUMBERS_AT_ONCE // 3
    for begin in range(0, n_items * n_items, at_once):
        end = min(begin + at_once, n_items * n_items)
        here = slice(*np.searchsorted(keys, (begin, end)))
        dense = np.zeros((3, end - begin))
        dense[:, keys[here] - begin] = counts[:, here]
        (dense,) = runtime.total(dense.ravel())
        dense = dense.reshape(3, -1)
        there = np.flatnonzero(dense.any(axis=0))
        pairs.append(begin + there)
        sums.append(dense[:, there])
    # Rows that lie in one piece, as above: of others, the loops would be compiled once more.
    return np.concatenate(pairs), np.ascontiguousarray(np.concatenate(sums, axis=1))


def _pooled(n_items: int, pairs: Indices, counts: Floats) -> Layout:
    """Lay out votes as if one user had given them all."""
    vector = Vector(n_items, (THRESHOLD,))
    slots = Slots.of(np.array([0, vector.width]), np.arange(vector.width, dtype=np.int32), vector)
    first, second = (side.astype(np.int32) for side in np.divmod(pairs, n_items))
    nothing = np.empty((0, len(pairs)))
    first_wins, ties, second_wins = counts
    start = np.array([0, len(pairs)])
    edges = Edges(start, first, second, first_wins, ties, second_wins, nothing)
    return Layout(vector, slots, edges).frozen()


def _fit_pooled(
    pooled: Layout, link: Link, delta: float, variance: float, runtime: Runtime
) -> Consensus:
    """Fit the only user, beside a consensus of no opinion; the threshold is hardly held."""
    vector = pooled.vector
    nothing = np.zeros(vector.width)
    nothing[vector.threshold] = max(START, delta)
    anchor = Anchor.ridge(nothing, vector.width, variance, _holds(pooled, {THRESHOLD: HARDLY_HELD}))
    _, fitted, *_ = Solver(pooled, link, delta, runtime).solve(
        anchor, ACCURACY, nothing.copy(), np.zeros(vector.width)
    )
    fitted[vector.scores] -= np.mean(fitted[vector.scores])  # by the prior, but for rounding
    values = nothing + fitted
    values[vector.threshold] = max(values[vector.threshold], delta)  # the sum may round below
    return Consensus(vector, values)


# --- users -----------------------------------------------------------------------------------


def fit_users(
    votes: Comparisons,
    link: Link,
    ridge: float,
    centre: Consensus,
    delta: float = 1e-3,
    start: Floats | None = None,
    runtime: Runtime | None = None,
) -> Floats:
    """Fit how every user deviates from a centre, as if nobody else had voted: one number per slot.

    The ridge, the inverse of a variance, holds deviations of scores and thresholds towards zero.
    """
    layout = Layout.of(votes)
    solver = Solver(layout, link, delta, runtime or Local(votes))
    anchor = Anchor.ridge(centre.values, layout.n_slots, 1.0 / ridge, _holds(layout))
    guess = np.zeros(layout.n_slots) if start is None else start.copy()
    _, deviation, *_ = solver.solve(anchor, ACCURACY, centre.values.copy(), guess)
    return deviation


def _holds(layout: Layout, others: Mapping[str, float] | None = None) -> Floats:
    """Return how strongly each term is held: by the ridge as it is, but for some others."""
    return np.array([(others or {}).get(name, 1.0) for name in layout.terms])


def by_itself(votes: Comparisons, runtime: Runtime) -> Local:
    """Return a runtime for what every machine does by itself, with the same loops."""
    alone = Local(votes, runtime.n_threads)
    alone.loops = runtime.loops
    return alone
