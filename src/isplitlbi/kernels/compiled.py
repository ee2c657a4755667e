"""The loops over votes, compiled by numba: the twins of `plain`, one user after another.

Signatures and meanings are those of `plain`. Links are compiled from their own formulas: numba is
taught here that a `Link` is a type whose methods are the Python methods of its class.
"""

from __future__ import annotations

import logging
import math
from functools import cache
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import event
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

from isplitlbi import links
from isplitlbi.links import Link, log_normal_cdf


class _Announcer(event.Listener):
    """Says once that loops are being compiled; nothing is compiled that the disk still has."""

    def on_start(self, event: Any) -> None:
        if not self.announced and event.data["dispatcher"].py_func.__module__ == __name__:
            self.announced = True
            logging.getLogger("isplitlbi").warning(
                "compiling the loops for this machine; later runs find them ready."
            )

    def on_end(self, event: Any) -> None:
        """Say nothing."""

    announced = False


event.register("numba:compile", _Announcer())

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
    """The numba type of one link class; a link holds no data, so its value is nothing.

    Its name carries a digest of the formulas: numba keeps compiled loops on disk by the types of
    their arguments, and would otherwise reuse those of an older formula.
    """

    def __init__(self, link_class: type[Link]) -> None:
        self.link_class = link_class
        name = f"{link_class.__module__}.{link_class.__qualname__}@{_digest(link_class)}"
        super().__init__(name=name)


@cache
def _digest(link_class: type[Link]) -> str:
    digest = sha256(Path(links.__file__).read_bytes())
    for formula in FORMULAS:
        function = getattr(link_class, formula)
        code, around = function.__code__, function.__globals__
        # Compiled code holds the values of what a formula refers to.
        values = [around[n] for n in code.co_names if isinstance(around.get(n), int | float)]
        values += [cell.cell_contents for cell in function.__closure__ or ()]
        digest.update(repr((code.co_code, code.co_consts, code.co_names, values)).encode())
    return digest.hexdigest()[:16]


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
    # Not strict: a subclass may name its parameters as it likes.
    options: dict[str, Any] = {"strict": False, "jit_options": OPTIONS}
    overload_method(LinkType, formula, **options)(implementation)


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


# --- scoring -------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def score(
    link,
    slots,
    user,
    left_slot,
    right_slot,
    outcome,
    weight,
    consensus,
    deviation,
    deviates,
    by_threshold,
    confusion,
):
    total = 0.0
    confusion[:] = 0.0
    for vote in range(len(outcome)):
        who, i, j = user[vote], left_slot[vote], right_slot[vote]
        margin = consensus[slots.coordinate[i]] - consensus[slots.coordinate[j]]
        threshold = consensus[-1]
        if deviates[who]:
            margin += deviation[i] - deviation[j]
            threshold += deviation[slots.start[who + 1] - 1]
        left = link.win(margin - threshold)[0]
        tie = link.tie(margin, threshold)[0]
        right = link.win(-margin - threshold)[0]
        predicted = 0
        if by_threshold:
            if margin > threshold:
                predicted = 1
            elif margin < -threshold:
                predicted = -1
        elif left > tie and left > right:
            predicted = 1
        elif right > tie and right > left:
            predicted = -1
        confusion[1 - outcome[vote], 1 - predicted] += weight[vote]
        if outcome[vote] == 0:
            total -= weight[vote] * tie
        else:
            total -= weight[vote] * (left if outcome[vote] > 0 else right)
    return total


# --- the implicit scheme -------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def assemble(
    link,
    slots,
    edges,
    begin,
    end,
    consensus,
    own,
    old_deviation,
    old_dual,
    step,
    nu,
    kappa,
    gradient,
    diagonal,
    coupling,
    curvature,
    pushed,
    bend,
    total,
    consensus_gradient,
    consensus_diagonal,
):
    damping, ratio = 1.0 / (kappa * step), kappa * step / nu
    consensus_gradient[:] = 0.0
    consensus_diagonal[:] = 0.0
    value = 0.0
    for user in range(begin, end):
        first_slot, last = slots.start[user], slots.start[user + 1] - 1
        for slot in range(first_slot, last + 1):
            total[slot] = consensus[slots.coordinate[slot]] + own[slot]
            gradient[slot] = 0.0
            diagonal[slot] = 0.0
        threshold = own[last]
        slope, bent = 0.0, 0.0
        for edge in range(edges.start[user], edges.start[user + 1]):
            i, j = edges.first[edge], edges.second[edge]
            loss, by_margin, by_threshold, mm, mt, tt = link.vote_terms(
                total[i] - total[j],
                threshold,
                edges.first_wins[edge],
                edges.ties[edge],
                edges.second_wins[edge],
            )
            value += loss
            gradient[i] += by_margin
            gradient[j] -= by_margin
            diagonal[i] += mm
            diagonal[j] += mm
            slope += by_threshold
            bent += tt
            curvature[edge, 0] = mm
            curvature[edge, 1] = mt
            curvature[edge, 2] = tt

        square, deviation_square, moved_square = 0.0, 0.0, 0.0
        for slot in range(first_slot, last + 1):
            deviation = own[slot] - (consensus[-1] if slot == last else 0.0)
            w = old_dual[slot] + (step / nu) * deviation
            moved = deviation - old_deviation[slot]
            pushed[slot] = w
            square += w * w
            deviation_square += deviation * deviation
            moved_square += moved * moved
        norm = math.sqrt(square)
        value += 0.5 * damping * moved_square + 0.5 * deviation_square / nu
        factor, second = 1.0, 0.0
        if norm > 1.0:
            factor = (1.0 + ratio / norm) / (1.0 + ratio)
            second = ratio / (nu * (1.0 + ratio) * norm**3)
            value -= 0.5 * kappa / (step * (1.0 + ratio)) * (norm - 1.0) ** 2
        first = factor / nu
        bend[user, 0] = first
        bend[user, 1] = second
        for slot in range(first_slot, last + 1):
            w = pushed[slot]
            deviation = own[slot] - (consensus[-1] if slot == last else 0.0)
            pull = (factor * w - old_dual[slot]) / step
            pull += damping * (deviation - old_deviation[slot])
            stiffness = damping + first - second * w * w
            if slot == last:
                consensus_gradient[-1] -= pull
                consensus_diagonal[-1] += stiffness
                coupling[slot] = -stiffness
                gradient[slot] = slope + pull
                diagonal[slot] = bent + stiffness
            else:
                coordinate = slots.coordinate[slot]
                consensus_gradient[coordinate] += gradient[slot]
                consensus_diagonal[coordinate] += diagonal[slot]
                coupling[slot] = diagonal[slot]
                gradient[slot] += pull
                diagonal[slot] += stiffness
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def curvature_product(
    slots,
    edges,
    begin,
    end,
    curvature,
    pushed,
    bend,
    damping,
    free,
    diagonal,
    coupling,
    residual,
    consensus_preconditioned,
    consensus_direction,
    momentum,
    direction,
    total,
    product,
    consensus_product,
):
    consensus_product[:] = 0.0
    along_product = 0.0
    for user in range(begin, end):
        first_slot, last = slots.start[user], slots.start[user + 1] - 1
        along = 0.0
        for slot in range(first_slot, last + 1):
            coordinate = slots.coordinate[slot]
            left = residual[slot] - coupling[slot] * consensus_preconditioned[coordinate]
            direction[slot] = left / diagonal[slot] + momentum * direction[slot]
            total[slot] = consensus_direction[coordinate] + direction[slot]
            product[slot] = 0.0
            along += pushed[slot] * direction[slot]
        along -= pushed[last] * consensus_direction[-1]
        threshold = direction[last]
        by_thresholds = 0.0
        for edge in range(edges.start[user], edges.start[user + 1]):
            i, j = edges.first[edge], edges.second[edge]
            margin = total[i] - total[j]
            mt = curvature[edge, 1]
            by_margin = curvature[edge, 0] * margin + mt * threshold
            by_thresholds += mt * margin + curvature[edge, 2] * threshold
            product[i] += by_margin
            product[j] -= by_margin
        stiffness, push = damping + bend[user, 0], bend[user, 1] * along
        for slot in range(first_slot, last):
            consensus_product[slots.coordinate[slot]] += product[slot]
            product[slot] += stiffness * direction[slot] - push * pushed[slot]
            along_product += direction[slot] * product[slot]
        pull = stiffness * (threshold - consensus_direction[-1]) - push * pushed[last]
        consensus_product[-1] -= pull
        if free[user]:
            product[last] = by_thresholds + pull
            along_product += threshold * product[last]
    return along_product


@njit(cache=True, nogil=True, error_model="numpy")
def conjugate_update(
    slots,
    begin,
    end,
    length,
    direction,
    product,
    diagonal,
    coupling,
    solution,
    residual,
    consensus_coupled,
):
    total = 0.0
    consensus_coupled[:] = 0.0
    for slot in range(slots.start[begin], slots.start[end]):
        solution[slot] += length * direction[slot]
        left = residual[slot] - length * product[slot]
        residual[slot] = left
        scaled = left / diagonal[slot]
        consensus_coupled[slots.coordinate[slot]] += coupling[slot] * scaled
        total += left * scaled
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def eliminate_users(slots, begin, end, diagonal, coupling, eliminated):
    eliminated[:] = 0.0
    for slot in range(slots.start[begin], slots.start[end]):
        taken = coupling[slot] * coupling[slot] / diagonal[slot]
        eliminated[slots.coordinate[slot]] += taken


@njit(cache=True, nogil=True, error_model="numpy")
def finish_step(slots, begin, end, pushed, ratio, kappa, dual, sparse, norms):
    for user in range(begin, end):
        first_slot, stop = slots.start[user], slots.start[user + 1]
        square = 0.0
        for slot in range(first_slot, stop):
            square += pushed[slot] * pushed[slot]
        norm = math.sqrt(square)
        factor, shrunk = 1.0, 0.0
        if norm > 1.0:
            factor = (1.0 + ratio / norm) / (1.0 + ratio)
            shrunk = kappa * (1.0 - 1.0 / (factor * norm))
        norms[user] = factor * norm
        for slot in range(first_slot, stop):
            dual[slot] = factor * pushed[slot]
            sparse[slot] = shrunk * dual[slot]
