"""The loops over votes, twice: readable in `numpy_loops`, fast in `numba_loops`.

Both modules hold the same functions with the same signatures; tests hold them equal. The compiled
one is used unless ``ISPLITLBI_BACKEND=numpy`` is set. It is imported on first use, because
importing numba takes longer than most commands. `newton` states, once for both, how a step's
problem is minimised with these loops.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, NamedTuple, Self

import numpy as np

from isplitlbi.data.layout import SHARPNESS, Edges, Layout, Slots
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.terms import PAPER, Terms
from isplitlbi.typing import Floats, Mask

__all__ = [
    "BACKENDS",
    "SHORT_STEP",
    "Anchor",
    "Flow",
    "Gradient",
    "Problem",
    "Rates",
    "Sums",
    "System",
    "Users",
    "backend",
    "sharpness_told",
]

BACKENDS = {"numba": "numba_loops", "numpy": "numpy_loops"}

Users = tuple[int, int]  # those from the first to before the second
Sums = tuple[Floats, Floats]  # what users add to gradient and diagonal of the consensus


def backend(name: str | None = None) -> Any:
    """Return the module with the loops; by default the compiled one."""
    chosen = name or os.environ.get("ISPLITLBI_BACKEND", "numba")
    if chosen not in BACKENDS:
        raise InvalidSetting(f"backend {chosen!r} is not one of {', '.join(BACKENDS)}.")
    return importlib.import_module(f"{__name__}.{BACKENDS[chosen]}")


class Problem(NamedTuple):
    """What the loss is made of, besides the link: it stays the same all along a path.

    The link is an argument of its own: numba recognises tuples of arrays quickly, but not with an
    object of ours among them.

    Within a step, users have *own* coordinates, which are deviations in units of their terms, with
    two exceptions. Those of items are all that a user adds to the consensus, by taste and by
    sharpness, so that votes do not know of sharpness, and only the cost of deviations does. And a
    threshold with a bound is the threshold itself, so that the bound is a box, and the consensus
    meets it only through the deviation.

    The prior holds the scores of the average person, c + s m: m is the reference, and s the mean of
    users' sharpness, by how much their votes tell of it. Held by itself, c would hide in a
    sharpness of all users, which costs n_users small numbers instead of n_items large ones.
    """

    slots: Slots
    edges: Edges
    scales: Floats  # (n_terms,) how large the unit of each term is; of taste, 1 or 0
    reference: Floats  # (n_slots,) what sharpness multiplies, in its unit; empty without
    toward: Floats  # (width,) the same in the consensus; nothing where sharpness multiplies nothing
    precision: Floats  # (width,) of a prior on the average person, around zero
    shares: Floats  # (n_users,) of everybody's sharpness in that of the average person
    common: Floats  # (width,) 1 for what the consensus has a number of, else 0
    bounded: float  # 1 where thresholds have a bound, else 0
    has_ties: Mask  # (n_users,) which users declared a tie, where thresholds have a bound
    delta: float  # smallest threshold
    n_users: int  # of all machines

    @classmethod
    def of(
        cls,
        layout: Layout,
        delta: float,
        terms: Terms = PAPER,
        n_users: int | None = None,
        shares: Floats | None = None,
    ) -> Self:
        """Take votes as they are laid out for these terms; machines may hold other users."""
        vector, scales, reference = layout.vector, np.array(terms.scales), np.empty(0)
        if terms.has_sharpness:
            reference = scales[1] * _centred(layout, terms.reference)
        toward = np.zeros(vector.width)
        if terms.reference is not None:
            toward[vector.scores] = terms.reference - np.mean(terms.reference)
        bounded = terms.ties == "bounded"
        has_ties = (layout.sum_by_user(layout.edges.ties) > 0) & bounded
        n_users = layout.n_users if n_users is None else n_users
        shares = np.zeros(layout.n_users) if shares is None else shares
        delta = delta if bounded else -np.inf
        return cls(
            layout.slots, layout.edges, scales, reference, toward, terms.precision(vector), shares,
            terms.is_common(vector), float(bounded), has_ties, delta, n_users,
        )  # fmt: skip


def _centred(layout: Layout, scores: Floats | None) -> Floats:
    """Return the scores of every user's items, around their mean.

    Votes do not know the difference, since they compare; so centred, sharpness is not mixed up with
    what is the same for all items. Nothing is elsewhere.
    """
    centred, slots = np.zeros(layout.n_slots), layout.slots
    if scores is None:
        return centred
    item = slots.coordinate < layout.vector.n_items
    centred[item] = scores[slots.coordinate[item]]
    n_compared = np.add.reduceat(item.astype(np.float64), slots.start[:-1])
    middle = np.add.reduceat(centred, slots.start[:-1]) / np.maximum(n_compared, 1.0)
    return np.where(item, centred - middle[slots.owner], 0.0)


def sharpness_told(layout: Layout, terms: Terms) -> Floats:
    """Return how much the votes of every user tell of sharpness.

    That is the information on a slope along the reference, votes (m_i - m_j)^2 p (1 - p), with p of
    logistic votes by the reference. A plain mean would let users with few votes, whose sharpness
    nothing holds, pay for that of all others.
    """
    if not terms.has_sharpness or terms.reference is None or terms.scales[1] == 0.0:
        return np.zeros(layout.n_users)
    edges, item = layout.edges, layout.slots.coordinate
    apart = terms.reference[item[edges.first]] - terms.reference[item[edges.second]]
    spread = 1.0 / (2.0 * np.cosh(0.5 * np.minimum(np.abs(apart), MOST_APART)))
    return layout.sum_by_user(np.sum(edges.counts, axis=0) * (apart * spread) ** 2)


class Flow(NamedTuple):
    """What moves along a path."""

    consensus: Floats  # c in Eq. 5
    deviation: Floats  # (n_slots,) what a user adds to the consensus: P
    dual: Floats  # (n_slots,) Z in Eq. 9
    sparse: Floats  # (n_slots,) Gamma = kappa * shrink(Z)


class Anchor(NamedTuple):
    """What a solution is held to: the state that a step of the implicit scheme starts from.

    Everything is damped towards that state, and users' deviations are held by the dual term, which
    with a dual of zero and a short step is a ridge of variance nu.
    """

    consensus: Floats  # (width,)
    deviation: Floats  # (n_slots,)
    dual: Floats  # (n_slots,)
    step: float
    nu: float
    kappa: float
    damping: float  # 1 / (kappa * step) on the path
    moves: bool  # whether the consensus may move
    precision: float  # of a prior on deviations, around zero, whoever has left
    holds: Floats  # (n_terms,) how strongly each term is held: 1 on the path

    @classmethod
    def of_step(
        cls, flow: Flow, step: float, dynamics: tuple[float, float, float], holds: Floats
    ) -> Self:
        """Return what a step of the path is held to, given nu, kappa and that precision."""
        nu, kappa, precision = dynamics
        damping = 1.0 / (kappa * step)
        consensus, deviation, dual, _ = flow
        return cls(consensus, deviation, dual, step, nu, kappa, damping, True, precision, holds)

    @classmethod
    def ridge(
        cls,
        consensus: Floats,
        n_slots: int,
        variance: float,
        holds: Floats,
        *,
        damping: float = 0.0,
        moves: bool = False,
    ) -> Self:
        """Hold deviations around zero by that variance: a step so short that nobody leaves."""
        nothing = np.zeros(n_slots)
        step = SHORT_STEP * variance
        return cls(consensus, nothing, nothing, step, variance, 1.0, damping, moves, 0.0, holds)


MOST_APART = 600.0  # beyond it, votes tell nothing of a slope, and a hyperbolic cosine overflows


SHORT_STEP = 1e-6  # of nu: W stays inside the unit ball for deviations up to its inverse


HOLD_BACK = 0.25  # the share of a move that is left to a user whom it does no good


# Of its own second derivative, what eliminating items may take from a user's sharpness.
MOST_TAKEN = 0.8


class System(NamedTuple):
    """The Newton system of one step, as far as it belongs to the users.

    A user's own coordinates are the deviations of what enters the margin, and the threshold itself.
    """

    residual: Floats  # (n_slots,) minus the objective's gradient, until a direction is found
    inverse: Floats  # (n_slots,) of the second derivative of every slot with itself; of sharpness,
    # of what is left of it when those of items are eliminated
    lean: Floats  # (n_slots,) by how much an item's solution follows sharpness; empty without
    pull: Floats  # (n_slots,) by how much sharpness pulls at the consensus; empty without
    coupling: Floats  # (n_slots,) second derivative with the slot's place in the consensus
    pushed: Floats  # (n_slots,) W = Z_old + (step / nu) P
    bend: Floats  # (n_users, 2) the dual term's second derivative is bend0 I - bend1 W W'
    curvature: Floats  # (3, n_edges) second derivatives of the losses: mm, mt, tt
    free: Mask  # (n_users,) whether the threshold is off its bound
    value: Floats  # (n_users,) of the objective, as far as it is of that user
    direction: Floats  # (n_slots,) of the conjugate gradients
    product: Floats  # (n_slots,) of the curvature with that direction
    solution: Floats  # (n_slots,)

    @classmethod
    def room(cls, layout: Layout) -> Self:
        """Return a system to be filled."""
        n_slots, n_users = layout.n_slots, layout.n_users
        residual, inverse, coupling, pushed, direction, product, solution = (
            np.empty(n_slots) for _ in range(7)
        )
        bend, curvature = np.empty((n_users, 2)), np.empty((3, len(layout.edges.first)))
        free, value = np.empty(n_users, dtype=np.bool_), np.empty(n_users)
        n_leaning = n_slots if SHARPNESS in layout.vector.traits else 0
        lean, pull = np.empty(n_leaning), np.empty(n_leaning)
        return cls(
            residual, inverse, lean, pull, coupling, pushed, bend, curvature, free, value,
            direction, product, solution,
        )  # fmt: skip


class Gradient(NamedTuple):
    """Room for the gradient of the loss."""

    consensus: Floats
    slots: Floats


class Rates(NamedTuple):
    """How users' parameters changed in the last step, and how that change changes."""

    deviation: Floats
    dual: Floats
    deviation_bend: Floats
