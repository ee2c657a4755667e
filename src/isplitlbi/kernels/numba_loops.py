"""The loops over votes, compiled by numba: the twins of `numpy_loops`, one user after another.

Signatures and meanings are those of `numpy_loops`.
"""

from __future__ import annotations

import math

import numpy as np

from isplitlbi.kernels import MOST_TAKEN, newton
from isplitlbi.kernels.numba_links import inlined, inside, loop, part
from isplitlbi.kernels.numba_votes import (
    CHUNK,
    ONE,
    evaluate_votes,
    index,
    product_of_terms,
    product_of_votes,
    room_for,
)


@loop
def loss_and_gradient(link, problem, consensus, deviation, gradient):
    slots, edges, scales, reference = problem.slots, problem.edges, problem.scales, problem.reference
    n_columns, n_traits, habit = edges.columns.shape[0], len(scales) - 2, slots.first_habit
    total = 0.0
    gradient.consensus[:] = 0.0
    gradient.slots[:] = 0.0
    for user in range(len(slots.start) - 1):
        last = slots.threshold[user]
        trait, sharpness = last - n_columns, last - n_columns - 1
        for edge in range(edges.start[user], edges.start[user + 1]):
            i, j = edges.first[edge], edges.second[edge]
            left, right = slots.coordinate[i], slots.coordinate[j]
            margin = consensus[left] - consensus[right]
            margin += scales[0] * deviation[i] - scales[0] * deviation[j]
            if len(reference) > 0:
                margin += (reference[i] - reference[j]) * deviation[sharpness]
            for k in range(n_columns):
                own = scales[1 + n_traits - n_columns + k] * deviation[trait + k]
                own += consensus[slots.coordinate[trait + k]]
                margin += edges.columns[k, edge] * own
            threshold = consensus[slots.common_threshold] + scales[-1] * deviation[last]
            if habit:
                threshold += consensus[habit + left] + consensus[habit + right]
            loss, by_margin, by_threshold, _, _, _ = link.vote_terms(
                margin,
                threshold,
                edges.first_wins[edge],
                edges.ties[edge],
                edges.second_wins[edge],
            )
            total += loss
            gradient.slots[i] += by_margin
            gradient.slots[j] -= by_margin
            for k in range(n_columns):
                gradient.slots[trait + k] += edges.columns[k, edge] * by_margin
            gradient.slots[last] += by_threshold
            if habit:
                gradient.consensus[habit + left] += by_threshold
                gradient.consensus[habit + right] += by_threshold
        by_sharpness = 0.0
        for slot in range(slots.start[user], slots.start[user + 1]):
            coordinate = slots.coordinate[slot]
            gradient.consensus[coordinate] += gradient.slots[slot]
            if len(reference) > 0:
                by_sharpness += reference[slot] * gradient.slots[slot]
            gradient.slots[slot] *= scales[max(slot - last + n_traits + 1, 0)]
        if len(reference) > 0:
            gradient.slots[sharpness] = by_sharpness
    for k in range(len(consensus)):
        gradient.consensus[k] += problem.precision[k] * consensus[k]
        gradient.consensus[k] *= problem.common[k]
    return total


@loop
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


@loop
def explicit_step(link, problem, flow, gradient, step, nu, kappa):
    loss = loss_and_gradient(link, problem, flow.consensus, flow.deviation, gradient)
    for coordinate in range(len(flow.consensus)):
        flow.consensus[coordinate] -= kappa * step * gradient.consensus[coordinate]
    for slot in range(len(flow.deviation)):
        pull = (flow.deviation[slot] - flow.sparse[slot]) / nu
        flow.deviation[slot] -= kappa * step * (gradient.slots[slot] + pull)
        flow.dual[slot] += step * pull
    norm = shrink_groups(problem.slots, flow.dual, kappa, flow.sparse)
    return loss, norm


@loop
def project_thresholds(slots, consensus, deviation, delta, joint):
    n_users, at = len(slots.start) - 1, slots.common_threshold
    start = consensus[at]
    center = start
    while joint:
        total, short = start, 1.0
        for user in range(n_users):
            gap = delta - deviation[slots.threshold[user]]
            if gap > center:
                total += gap
                short += 1.0
        if not total / short > center:
            break
        center = total / short
    consensus[at] = max(center, delta)
    for user in range(n_users):
        own = slots.threshold[user]
        deviation[own] = max(deviation[own], delta - consensus[at])


@loop
def threshold_curvature(link, problem, consensus, deviation, decided, ties):
    slots = problem.slots
    total, largest, steepest = 0.0, 0.0, 0.0
    for user in range(len(slots.start) - 1):
        own = consensus[slots.common_threshold] + deviation[slots.threshold[user]]
        win_bound, tie_by_margin, tie_by_threshold = link.curvature_bounds(own)
        here = decided[user] * win_bound
        if ties[user] > 0:
            here += ties[user] * tie_by_threshold
            steepest = max(steepest, tie_by_margin)
        total += here
        largest = max(largest, here)
    return total + largest, steepest


# --- scoring ---------------------------------------------------------------------------------


@loop
def score(link, problem, consensus, deviation, deviates, by_threshold, confusion):
    edges, total = problem.edges, 0.0
    confusion[:] = 0.0
    n_edges, user = index(len(edges.first)), 0
    chunk = np.empty(5 * int(CHUNK))
    for first_edge in range(index(0), n_edges, CHUNK):
        size = min(CHUNK, n_edges - first_edge)
        for k in range(size):
            while first_edge + k >= index(edges.start[user + 1]):
                user += 1
            margin, threshold = predicted_margin(
                problem, user, first_edge + k, consensus, deviation, deviates[user]
            )
            chunk[k] = margin
            chunk[k + CHUNK] = threshold
        for k in range(size):
            left, tie, right = link.outcomes(chunk[k], chunk[k + CHUNK])
            chunk[k + index(2) * CHUNK] = left
            chunk[k + index(3) * CHUNK] = tie
            chunk[k + index(4) * CHUNK] = right
        for k in range(size):
            edge, margin, threshold = first_edge + k, chunk[k], chunk[k + CHUNK]
            left, tie = chunk[k + index(2) * CHUNK], chunk[k + index(3) * CHUNK]
            right = chunk[k + index(4) * CHUNK]
            if by_threshold:
                predicted = int(margin > threshold) - int(margin < -threshold)
            else:
                predicted = int(left > tie and left > right) - int(right > tie and right > left)
            left_wins, ties = edges.first_wins[edge], edges.ties[edge]
            right_wins = edges.second_wins[edge]
            confusion[0, 1 - predicted] += left_wins
            confusion[1, 1 - predicted] += ties
            confusion[2, 1 - predicted] += right_wins
            total -= left_wins * left + ties * tie + right_wins * right
    return total


@inlined
def predicted_margin(problem, user, edge, consensus, deviation, deviates):
    """Return margin and threshold of one edge; a user who does not deviate has the consensus."""
    slots, edges, scales = problem.slots, problem.edges, problem.scales
    i, j, last = index(edges.first[edge]), index(edges.second[edge]), index(slots.threshold[user])
    left, right = index(slots.coordinate[i]), index(slots.coordinate[j])
    margin = consensus[left] - consensus[right]
    threshold = consensus[slots.common_threshold]
    if slots.first_habit:
        habit = index(slots.first_habit)
        threshold += consensus[habit + left] + consensus[habit + right]
    if deviates:
        margin += scales[0] * (deviation[i] - deviation[j])
        threshold += scales[-1] * deviation[last]
    n_columns, n_terms = index(edges.columns.shape[0]), index(len(scales))
    if deviates and len(problem.reference) > 0:
        apart = problem.reference[i] - problem.reference[j]
        margin += apart * deviation[last - n_columns - ONE]
    for c in range(n_columns):
        trait = last - n_columns + c
        own = consensus[index(slots.coordinate[trait])]
        if deviates:
            own += scales[n_terms - n_columns - ONE + c] * deviation[trait]
        margin += edges.columns[c, edge] * own
    return margin, threshold


# --- the implicit scheme ---------------------------------------------------------------------


@inlined
def cost_of_deviations(anchor, first_slot, last, n_traits, own, pushed):
    """Return what one user's deviations cost, and the norm of W, which is filled."""
    per_deviation = anchor.step / anchor.nu
    square, deviation_square, moved_square = 0.0, 0.0, 0.0
    start, stop = first_slot, last - n_traits
    for term in range(n_traits + index(2)):
        hold = anchor.holds[term]
        for slot in range(start, stop):
            deviation = own[slot]
            w = anchor.dual[slot] + per_deviation * deviation
            moved = deviation - anchor.deviation[slot]
            pushed[slot] = w
            square += w * w
            deviation_square += hold * deviation * deviation
            moved_square += hold * moved * moved
        start, stop = stop, stop + ONE
    cost = 0.5 * anchor.damping * moved_square + 0.5 * deviation_square / anchor.nu
    return cost, math.sqrt(square)


@inlined
def total_of_user(problem, consensus, own, user, room):
    """Fill what one user's votes see; then turn own coordinates to deviations, keeping them."""
    slots, scales, bounded = problem.slots, problem.scales, problem.bounded
    total, kept = room.total, room.kept
    n_columns = index(problem.edges.columns.shape[0])
    first_slot, last = index(slots.start[user]), index(slots.threshold[user])
    n_traits = index(len(scales) - 2)
    common, at = index(slots.common_threshold), last - first_slot
    for k in range(at - n_traits):
        slot = first_slot + k
        total[k] = consensus[index(slots.coordinate[slot])] + own[slot]
    for k in range(at - n_columns, at):
        slot = first_slot + k
        of_user = scales[k + n_traits + ONE - at] * own[slot]
        total[k] = consensus[index(slots.coordinate[slot])] + of_user
    total[at] = (1.0 - bounded) * consensus[common] + scales[-1] * own[last]
    kept[at] = own[last]
    own[last] -= bounded * consensus[common]
    if len(problem.reference) > 0:
        sharpness = own[last - n_traits]
        for k in range(at - n_traits):
            slot = first_slot + k
            kept[k] = own[slot]
            own[slot] -= problem.reference[slot] * sharpness


@inlined
def lean_on_sharpness(problem, user, system, own, room):
    """Fill what belongs to one user's sharpness; the user's own coordinates are as they were."""
    slots = problem.slots
    first_slot, last = index(slots.start[user]), index(slots.threshold[user])
    sharpness = last - index(len(problem.scales) - 2)
    pulled, taken = 0.0, 0.0
    for slot in range(first_slot, sharpness):
        k = slot - first_slot
        own[slot] = room.kept[k]
        pulled += problem.reference[slot] * room.pulls[k]
        taken += room.sharper[k] * room.sharper[k] * system.inverse[slot]
    alone = room.sharper[sharpness - first_slot] + 1.0 / system.inverse[sharpness]
    less = math.sqrt(min(1.0, MOST_TAKEN * alone / max(taken, 1e-300)))
    system.residual[sharpness] += pulled
    system.inverse[sharpness] = 1.0 / (alone - less * less * taken)
    system.coupling[sharpness] = 0.0
    for slot in range(first_slot, sharpness):
        mixed = room.sharper[slot - first_slot]
        answer = less * mixed * system.inverse[slot]
        system.lean[slot] = problem.reference[slot] - answer
        system.pull[slot] = mixed - answer * system.coupling[slot]
    for slot in range(sharpness, last + ONE):
        system.lean[slot] = 0.0
        system.pull[slot] = 0.0


@loop
def assemble(link, problem, users, anchor, consensus, own, system, sums):
    slots, begin, end = problem.slots, users[0], users[1]
    step, nu, kappa, damping = anchor.step, anchor.nu, anchor.kappa, anchor.damping
    ratio, per_step = kappa * step / nu, 1.0 / step
    gradient, diagonal = sums
    gradient[:] = 0.0
    diagonal[:] = 0.0
    room = room_for(most_slots(slots, begin, end), 11 * int(CHUNK))
    slope, bent = room.slope, room.bent
    common, n_traits = index(slots.common_threshold), index(len(problem.scales) - 2)
    value, bounded = 0.0, problem.bounded
    has_sharpness = len(problem.reference) > 0
    for user in range(begin, end):
        first_slot, last = index(slots.start[user]), index(slots.threshold[user])
        at = last - first_slot
        total_of_user(problem, consensus, own, user, room)
        value += evaluate_votes(link, problem, user, consensus, system, room, sums)
        cost, norm = cost_of_deviations(anchor, first_slot, last, n_traits, own, system.pushed)
        value += cost
        factor, second = 1.0, 0.0
        if norm > 1.0:
            factor = (1.0 + ratio / norm) / (1.0 + ratio)
            second = ratio / (nu * (1.0 + ratio) * norm**3)
            value -= 0.5 * kappa / (step * (1.0 + ratio)) * (norm - 1.0) ** 2
        first = factor / nu
        system.bend[user, 0] = first
        system.bend[user, 1] = second
        start, stop = first_slot, last - n_traits
        for term in range(n_traits + index(2)):
            hold, scale = anchor.holds[term], problem.scales[term] if term > 0 else 1.0
            for slot in range(start, stop):
                k, w = slot - first_slot, system.pushed[slot]
                pull = (factor * w - anchor.dual[slot]) * per_step
                pull += damping * (own[slot] - anchor.deviation[slot])
                stiffness = hold * (damping + first - second * w * w)
                room.pulls[k] = hold * pull
                system.residual[slot] = -(scale * slope[k] + hold * pull)
                system.inverse[slot] = 1.0 / (scale * scale * bent[k] + stiffness)
                system.coupling[slot] = scale * bent[k]
            start, stop = stop, stop + ONE
        for k in range(at):
            coordinate = index(slots.coordinate[first_slot + k])
            gradient[coordinate] += slope[k]
            diagonal[coordinate] += bent[k]
        own[last] = room.kept[at]
        if has_sharpness:
            lean_on_sharpness(problem, user, system, own, room)
        if bounded == 0.0:
            gradient[common] += slope[at]
            diagonal[common] += bent[at]
        else:
            # Its own coordinate takes the votes; the consensus meets it through the pull.
            gradient[common] += system.residual[last] + slope[at]
            stiffness = anchor.holds[-1] * (damping + first - second * system.pushed[last] ** 2)
            diagonal[common] += stiffness
            system.coupling[last] = -stiffness
    return value


@loop
def eliminate_users(problem, users, own, system, eliminated, along):
    slots, n_traits = problem.slots, index(len(problem.scales) - 2)
    has_sharpness, reach = len(problem.reference) > 0, 0.0
    eliminated[:] = 0.0
    along[:] = 0.0
    for user in range(users[0], users[1]):
        first_slot, last = index(slots.start[user]), index(slots.threshold[user])
        for slot in range(first_slot, last + ONE):
            system.solution[slot] = 0.0
            system.direction[slot] = 0.0
            system.product[slot] = 0.0
        downhill = system.residual[last] * system.inverse[last]
        system.free[user] = is_free(own[last], downhill, problem.delta)
        if not system.free[user]:
            system.solution[last] = downhill
            system.residual[last] = 0.0
            system.coupling[last] = 0.0
        for slot in range(first_slot, last + ONE):
            coupling = system.coupling[slot]
            eliminated[index(slots.coordinate[slot])] += coupling * coupling * system.inverse[slot]
        if has_sharpness:
            sharpness, of_user = last - n_traits, 0.0
            for slot in range(first_slot, sharpness):
                of_user += problem.toward[index(slots.coordinate[slot])] * system.pull[slot]
            scaled = of_user * system.inverse[sharpness]
            for slot in range(first_slot, sharpness):
                along[index(slots.coordinate[slot])] += system.pull[slot] * scaled
            reach += of_user * scaled
    return reach


@inlined
def next_direction(
    problem, first_slot, at, system, preconditioned, direction, momentum, total, bent
):
    """Take one user's next conjugate direction; fill its sum with that of the consensus."""
    slots, scales = problem.slots, problem.scales
    n_traits, followed, of_sharpness = index(len(scales) - 2), 0.0, 0.0
    has_sharpness, sharpness = len(problem.reference) > 0, first_slot + at - n_traits
    if has_sharpness:
        of_sharpness = momentum * system.direction[sharpness]
        followed = system.residual[sharpness]
        for slot in range(first_slot, sharpness):
            pulled = system.pull[slot] * preconditioned[index(slots.coordinate[slot])]
            followed += system.lean[slot] * system.residual[slot] - pulled
        followed *= system.inverse[sharpness]
    start, stop = index(0), at - n_traits
    for term in range(n_traits + index(2)):
        scale = scales[term] if term > 0 else 1.0
        for k in range(start, stop):
            slot = first_slot + k
            coordinate = index(slots.coordinate[slot])
            coupled = system.coupling[slot] * preconditioned[coordinate]
            d = (system.residual[slot] - coupled) * system.inverse[slot]
            if has_sharpness and slot < sharpness:
                d += system.lean[slot] * followed
            d = d + momentum * system.direction[slot]
            system.direction[slot] = d
            total[k] = direction[coordinate] + scale * d
            bent[k] = 0.0
        start, stop = stop, stop + ONE
    if has_sharpness:
        system.direction[sharpness] = followed + of_sharpness
    # A bounded threshold stands by itself.
    if problem.bounded != 0.0:
        total[at] = system.direction[first_slot + at]


@loop
def curvature_product(problem, users, anchor, system, preconditioned, direction, momentum, product):
    slots, edges, begin, end = problem.slots, problem.edges, users[0], users[1]
    product[:] = 0.0
    n_columns, scales, bounded = index(edges.columns.shape[0]), problem.scales, problem.bounded
    n_traits, has_sharpness = index(len(scales) - 2), len(problem.reference) > 0
    room = room_for(most_slots(slots, begin, end), most_edges(edges, begin, end))
    total, bent = room.total, room.bent
    common, along_product = index(slots.common_threshold), 0.0
    for user in range(begin, end):
        first_slot, last = index(slots.start[user]), index(slots.threshold[user])
        at = last - first_slot
        next_direction(
            problem, first_slot, at, system, preconditioned, direction, momentum, total, bent
        )
        if n_columns == 0 and slots.first_habit == 0:
            product_of_votes(edges, user, first_slot, at, system.curvature, total, bent)
        else:
            product_of_terms(problem, user, at, system.curvature, direction, room, product)
        stiffness, push = anchor.damping + system.bend[user, 0], 0.0
        sharper = system.direction[last - n_traits] if has_sharpness else 0.0
        if system.bend[user, 1] != 0.0:  # out of the consensus
            along = -bounded * system.pushed[last] * direction[common]
            for slot in range(first_slot, last + ONE):
                along += system.pushed[slot] * system.direction[slot]
            if has_sharpness:
                for slot in range(first_slot, last - n_traits):
                    reference = problem.reference[slot]
                    along -= system.pushed[slot] * reference * sharper
            push = system.bend[user, 1] * along
        start, stop, pulled = first_slot, last - n_traits, 0.0
        for term in range(n_traits + ONE):
            scale = scales[term] if term > 0 else 1.0
            held, pushed = anchor.holds[term] * stiffness, anchor.holds[term] * push
            for slot in range(start, stop):
                k, d = slot - first_slot, system.direction[slot]
                coordinate, deviation = index(slots.coordinate[slot]), d
                product[coordinate] += bent[k]
                if has_sharpness and term == 0:
                    reference = problem.reference[slot]
                    deviation -= reference * sharper
                    pull = held * deviation - pushed * system.pushed[slot]
                    pulled += reference * pull
                else:
                    pull = held * deviation - pushed * system.pushed[slot]
                own_product = scale * bent[k] + pull
                system.product[slot] = own_product
                along_product += d * own_product
            start, stop = stop, stop + ONE
        if has_sharpness:
            system.product[last - n_traits] -= pulled
            along_product -= sharper * pulled
        threshold = system.direction[last]
        pull = stiffness * (threshold - bounded * direction[common]) - push * system.pushed[last]
        pull *= anchor.holds[-1]
        product[common] += bent[at] if bounded == 0.0 else -pull
        if system.free[user]:
            system.product[last] = scales[-1] * bent[at] + pull
            along_product += threshold * system.product[last]
    return along_product


@loop
def conjugate_update(problem, users, length, system, coupled):
    slots, n_traits = problem.slots, index(len(problem.scales) - 2)
    total = 0.0
    coupled[:] = 0.0
    for slot in range(index(slots.start[users[0]]), index(slots.start[users[1]])):
        system.solution[slot] += length * system.direction[slot]
        left = system.residual[slot] - length * system.product[slot]
        system.residual[slot] = left
        scaled = left * system.inverse[slot]
        coupled[index(slots.coordinate[slot])] += system.coupling[slot] * scaled
        total += left * scaled
    if len(problem.reference) > 0:
        for user in range(users[0], users[1]):
            first_slot = index(slots.start[user])
            sharpness = index(slots.threshold[user]) - n_traits
            alone, followed = system.residual[sharpness], 0.0
            for slot in range(first_slot, sharpness):
                followed += system.lean[slot] * system.residual[slot]
            inverse = system.inverse[sharpness]
            total += followed * (followed + 2.0 * alone) * inverse
            followed = (followed + alone) * inverse
            for slot in range(first_slot, sharpness):
                coupled[index(slots.coordinate[slot])] += system.pull[slot] * followed
    return total


@loop
def move_users(problem, users, own, direction, length, moved):
    slots, delta = problem.slots, problem.delta
    for slot in range(index(slots.start[users[0]]), index(slots.start[users[1]])):
        moved[slot] = own[slot] + length * direction[slot]
    for user in range(users[0], users[1]):
        last = slots.threshold[user]
        lowest = delta + (0.1 * (own[last] - delta) if problem.has_ties[user] else 0.0)
        moved[last] = max(moved[last], lowest)


@loop
def finish_step(slots, users, anchor, old, new, norms, rates, times):
    ratio, length, bending = anchor.kappa * anchor.step / anchor.nu, times[0], times[1]
    for user in range(users[0], users[1]):
        first_slot, stop = index(slots.start[user]), index(slots.start[user + 1])
        square = 0.0
        for slot in range(first_slot, stop):
            w = anchor.dual[slot] + (anchor.step / anchor.nu) * new.deviation[slot]
            new.dual[slot] = w
            square += w * w
        norm = math.sqrt(square)
        factor, shrunk = 1.0, 0.0
        if norm > 1.0:
            factor = (1.0 + ratio / norm) / (1.0 + ratio)
            shrunk = anchor.kappa * (1.0 - 1.0 / (factor * norm))
        norms[user] = factor * norm
        for slot in range(first_slot, stop):
            new.dual[slot] *= factor
            new.sparse[slot] = shrunk * new.dual[slot]
            rate = (new.deviation[slot] - old.deviation[slot]) / length
            rates.deviation_bend[slot] = bending * (rate - rates.deviation[slot])
            rates.deviation[slot] = rate
            rates.dual[slot] = (new.dual[slot] - old.dual[slot]) / length


@loop
def extrapolate(slots, users, base, rate, bend, times, out):
    length, bending = times[0], times[1]
    for slot in range(index(slots.start[users[0]]), index(slots.start[users[1]])):
        out[slot] = base[slot] + length * rate[slot] + bending * bend[slot]


@loop
def lean(problem, users, own, sign):
    slots, n_traits = problem.slots, index(len(problem.scales) - 2)
    for user in range(users[0], users[1]):
        sharpness = index(slots.threshold[user]) - n_traits
        for slot in range(index(slots.start[user]), sharpness):
            own[slot] += sign * problem.reference[slot] * own[sharpness]


@loop
def squares(problem, users, one, other):
    slots = problem.slots
    off, size = 0.0, 0.0
    for slot in range(index(slots.start[users[0]]), index(slots.start[users[1]])):
        off += (one[slot] - other[slot]) ** 2
        size += other[slot] ** 2
    return off, size


@loop
def is_free(threshold, downhill, delta):
    return downhill > 0.0 or (threshold > 1.01 * delta and threshold + downhill > delta)


@part
def most_edges(edges, begin, end):
    """Return the largest number of edges of one user."""
    most = 0
    for user in range(begin, end):
        most = max(most, edges.start[user + 1] - edges.start[user])
    return most


@part
def most_slots(slots, begin, end):
    """Return the largest number of slots of one user."""
    most = 0
    for user in range(begin, end):
        most = max(most, slots.start[user + 1] - slots.start[user])
    return most


# --- one block, in one piece -----------------------------------------------------------------

ENTRIES = ("minimise", "relative")  # what is called from Python
_IN_ONE = newton.bound(
    {
        each.py_func.__name__: inside(each)
        for each in (
            assemble,
            eliminate_users,
            curvature_product,
            conjugate_update,
            move_users,
            squares,
            is_free,
        )
    },
    compiled=lambda function: loop(function) if function.__name__ in ENTRIES else part(function),
)
minimise, relative = _IN_ONE["minimise"], _IN_ONE["relative"]
