"""The loops over votes, compiled by numba: the twins of `plain`, one user after another.

Signatures and meanings are those of `plain`. Links are compiled from their own formulas: numba is
taught here that a `Link` is a type whose methods are the Python methods of its class.
"""

from __future__ import annotations

import math
from inspect import signature
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import (
    NativeValue,
    models,
    overload,
    overload_method,
    register_model,
    typeof_impl,
    unbox,
)

from isplitlbi.links import Link, log_normal_cdf

# Division by zero gives inf, as in NumPy: no checks in the loops. Never fastmath, which breaks
# comparisons with inf and nan.
OPTIONS = {"error_model": "numpy"}

FORMULAS = (
    "log_cdf",
    "log_density",
    "density_slope",
    "curvature_bounds",
    "win",
    "tie",
    "vote_terms",
)


class LinkType(types.Opaque):
    """The numba type of one link class; a link holds no data, so its value is nothing."""

    def __init__(self, link_class: type[Link]) -> None:
        self.link_class = link_class
        super().__init__(name=f"{link_class.__module__}.{link_class.__qualname__}")


register_model(LinkType)(models.OpaqueModel)


@typeof_impl.register(Link)
def _type_of_link(value: Link, _context: Any) -> LinkType:
    return LinkType(type(value))


@unbox(LinkType)
def _unbox_link(_type: Any, _value: Any, context: Any) -> NativeValue:
    return NativeValue(context.context.get_dummy_value())


def _teach(formula: str) -> None:
    def implementation(link: Any, *_arguments: Any) -> Any:
        return getattr(link.link_class, formula)

    implementation.__signature__ = signature(getattr(Link, formula))  # type: ignore[attr-defined]
    overload_method(LinkType, formula, jit_options=OPTIONS)(implementation)


for _formula in FORMULAS:
    _teach(_formula)


@overload(log_normal_cdf)
def _log_normal_cdf(x: Any) -> Any:
    if not isinstance(x, types.Float):
        raise TypingError("log_normal_cdf is compiled for one number at a time")

    def implementation(x: Any) -> Any:
        if x > -25.0:
            return math.log(0.5 * math.erfc(-x * 0.7071067811865476))
        # Far in the tail erfc underflows; the Mills ratio's asymptotic series is exact here.
        y = 1.0 / (x * x)
        series = 1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y * (1.0 - 7.0 * y * (1.0 - 9.0 * y))))
        return -0.5 * x * x - 0.9189385332046727 - math.log(-x) + math.log(series)

    return implementation


@njit(cache=True, nogil=True, error_model="numpy")
def loss_and_gradient(link, slots, edges, consensus, deviation, consensus_gradient, slot_gradient):
    total = 0.0
    consensus_gradient[:] = 0.0
    slot_gradient[:] = 0.0
    n_users = len(slots.start) - 1
    for user in range(n_users):
        last = slots.start[user + 1] - 1
        threshold = consensus[-1] + deviation[last]
        for edge in range(edges.start[user], edges.start[user + 1]):
            i, j = edges.first[edge], edges.second[edge]
            margin = (
                consensus[slots.coordinate[i]]
                + deviation[i]
                - consensus[slots.coordinate[j]]
                - deviation[j]
            )
            loss, by_margin, by_threshold, _, _, _ = link.vote_terms(
                margin,
                threshold,
                edges.first_wins[edge],
                edges.ties[edge],
                edges.second_wins[edge],
            )
            total += loss
            slot_gradient[i] += by_margin
            slot_gradient[j] -= by_margin
            slot_gradient[last] += by_threshold
        for slot in range(slots.start[user], last + 1):
            consensus_gradient[slots.coordinate[slot]] += slot_gradient[slot]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def shrink_groups(slots, dual, kappa, sparse):
    n_users = len(slots.start) - 1
    norms = np.empty(n_users)
    for user in range(n_users):
        begin, end = slots.start[user], slots.start[user + 1]
        square = 0.0
        for slot in range(begin, end):
            square += dual[slot] * dual[slot]
        norms[user] = math.sqrt(square)
        factor = kappa * (1.0 - 1.0 / norms[user]) if norms[user] > 1.0 else 0.0
        for slot in range(begin, end):
            sparse[slot] = factor * dual[slot]
    return norms


@njit(cache=True, nogil=True, error_model="numpy")
def explicit_step(
    link,
    slots,
    edges,
    consensus,
    deviation,
    dual,
    sparse,
    consensus_gradient,
    slot_gradient,
    step,
    nu,
    kappa,
):
    loss = loss_and_gradient(
        link, slots, edges, consensus, deviation, consensus_gradient, slot_gradient
    )
    for coordinate in range(len(consensus)):
        consensus[coordinate] -= kappa * step * consensus_gradient[coordinate]
    for slot in range(len(deviation)):
        pull = (deviation[slot] - sparse[slot]) / nu
        deviation[slot] -= kappa * step * (slot_gradient[slot] + pull)
        dual[slot] += step * pull
    norm = shrink_groups(slots, dual, kappa, sparse)
    return loss, norm


@njit(cache=True, nogil=True, error_model="numpy")
def project_thresholds(slots, consensus, deviation, delta, joint):
    n_users = len(slots.start) - 1
    start = consensus[-1]
    center = start
    while joint:
        total, short = start, 1.0
        for user in range(n_users):
            gap = delta - deviation[slots.start[user + 1] - 1]
            if gap > center:
                total += gap
                short += 1.0
        if total / short <= center:
            break
        center = total / short
    consensus[-1] = max(center, delta)
    for user in range(n_users):
        last = slots.start[user + 1] - 1
        deviation[last] = max(deviation[last], delta - consensus[-1])


@njit(cache=True, nogil=True, error_model="numpy")
def threshold_curvature(link, slots, consensus, deviation, decided, ties):
    total, largest, steepest = 0.0, 0.0, 0.0
    for user in range(len(slots.start) - 1):
        own = consensus[-1] + deviation[slots.start[user + 1] - 1]
        win_bound, tie_by_margin, tie_by_threshold = link.curvature_bounds(own)
        here = decided[user] * win_bound
        if ties[user] > 0:
            here += ties[user] * tie_by_threshold
            steepest = max(steepest, tie_by_margin)
        total += here
        largest = max(largest, here)
    return total + largest, steepest
