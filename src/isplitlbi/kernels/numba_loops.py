"""The loops over votes, compiled by numba: the twins of `numpy_loops`, one user after another.

Signatures and meanings are those of `numpy_loops`.
"""

from __future__ import annotations

import math

from isplitlbi.kernels import HOLD_BACK, MOST_TAKEN, beside, newton
from isplitlbi.kernels.numba_compiling import inlined, inside, loop, part
from isplitlbi.kernels.numba_explicit import (
    explicit_step,
    loss_and_gradient,
    project_thresholds,
    score,
    shrink_groups,
    threshold_curvature,
)
from isplitlbi.kernels.numba_records import lent
from isplitlbi.kernels.numba_vectors import VECTORS
from isplitlbi.kernels.numba_votes import (
    CHUNK_SIZE,
    ONE,
    evaluate_votes,
    index,
    product_of_terms,
    product_of_votes,
    room_for,
)

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
    cost += 0.5 * anchor.precision * deviation_square
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
def lean_on_sharpness(problem, user, system, own, room, gradient):
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
    gradient[index(slots.coordinate[sharpness])] += problem.shares[user] * own[sharpness]


@loop
def assemble(link, problem, users, anchor, consensus, own, system, sums):
    sums[0][:] = 0.0
    sums[1][:] = 0.0
    room = room_for(most_of_one(problem.slots.start, users[0], users[1]), 11 * CHUNK_SIZE)
    point = consensus, own
    return assemble_users(link, lent(problem), users, lent(anchor), point, lent(system), sums, room)


@part
def assemble_users(link, problem, users, anchor, point, system, sums, room):
    """Do so with room for one user, which only another function can lend (`numba_records`)."""
    slots, begin, end = problem.slots, users[0], users[1]
    room = lent(room)
    step, nu, kappa, damping = anchor.step, anchor.nu, anchor.kappa, anchor.damping
    ratio, per_step = kappa * step / nu, 1.0 / step
    consensus, own = point
    gradient, diagonal = sums
    slope, bent = room.slope, room.bent
    common, n_traits = index(slots.common_threshold), index(len(problem.scales) - 2)
    value, bounded = 0.0, problem.bounded
    has_sharpness = len(problem.reference) > 0
    for user in range(begin, end):
        first_slot, last = index(slots.start[user]), index(slots.threshold[user])
        at = last - first_slot
        total_of_user(problem, consensus, own, user, room)
        of_user = evaluate_votes(link, problem, user, consensus, system, room, sums)
        cost, norm = cost_of_deviations(anchor, first_slot, last, n_traits, own, system.pushed)
        of_user += cost
        factor, second = 1.0, 0.0
        if norm > 1.0:
            factor = (1.0 + ratio / norm) / (1.0 + ratio)
            second = ratio / (nu * (1.0 + ratio) * norm**3)
            of_user -= 0.5 * kappa / (step * (1.0 + ratio)) * (norm - 1.0) ** 2
        system.value[user] = of_user
        value += of_user
        first = factor / nu + anchor.precision
        system.bend[user, 0] = first
        system.bend[user, 1] = second
        start, stop = first_slot, last - n_traits
        for term in range(n_traits + index(2)):
            hold, scale = anchor.holds[term], problem.scales[term] if term > 0 else 1.0
            for slot in range(start, stop):
                k, w = slot - first_slot, system.pushed[slot]
                pull = (factor * w - anchor.dual[slot]) * per_step
                pull += damping * (own[slot] - anchor.deviation[slot])
                pull += anchor.precision * own[slot]
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
            lean_on_sharpness(problem, user, system, own, room, gradient)
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
def next_direction(problem, user, system, preconditioned, direction, momentum, room):
    """Take one user's next conjugate direction; fill its sum with that of the consensus."""
    slots, scales, total, bent = problem.slots, problem.scales, room.total, room.bent
    first_slot = index(slots.start[user])
    at = index(slots.threshold[user]) - first_slot
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
    room = room_for(most_of_one(slots.start, begin, end), most_of_one(edges.start, begin, end))
    vectors = preconditioned, direction, product
    return product_of_users(
        lent(problem), users, lent(anchor), lent(system), vectors, momentum, room
    )


@part
def product_of_users(problem, users, anchor, system, vectors, momentum, room):
    """Do so with room for one user."""
    preconditioned, direction, product = vectors
    slots, edges, room = problem.slots, problem.edges, lent(room)
    begin, end = users[0], users[1]
    product[:] = 0.0
    n_columns, scales, bounded = index(edges.columns.shape[0]), problem.scales, problem.bounded
    n_traits, has_sharpness = index(len(scales) - 2), len(problem.reference) > 0
    total, bent = room.total, room.bent
    common, along_product = index(slots.common_threshold), 0.0
    for user in range(begin, end):
        first_slot, last = index(slots.start[user]), index(slots.threshold[user])
        at = last - first_slot
        next_direction(problem, user, system, preconditioned, direction, momentum, room)
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
            product[index(slots.coordinate[last - n_traits])] += problem.shares[user] * sharper
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
def move_users(problem, users, own, direction, length, pace, moved):
    slots, delta = problem.slots, problem.delta
    for user in range(users[0], users[1]):
        far = length * pace[user]
        for slot in range(index(slots.start[user]), index(slots.start[user + 1])):
            moved[slot] = own[slot] + far * direction[slot]
        last = slots.threshold[user]
        lowest = delta + (0.1 * (own[last] - delta) if problem.has_ties[user] else 0.0)
        moved[last] = max(moved[last], lowest)


@loop
def hold_back(problem, users, before, value, pace):
    n_grown = 0.0
    for user in range(users[0], users[1]):
        if not value[user] <= before[user]:
            pace[user] *= HOLD_BACK
            n_grown += 1.0
    return n_grown


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
def pull_sharpness(problem, users, pull, per_slot):
    n_traits = index(len(problem.scales) - 2)
    for user in range(users[0], users[1]):
        per_slot[index(problem.slots.threshold[user]) - n_traits] += pull * problem.shares[user]


@loop
def turn(problem, users, consensus, own, sign):
    slots, reference, n_traits = problem.slots, problem.reference, index(len(problem.scales) - 2)
    common = problem.bounded * consensus[index(slots.common_threshold)]
    for user in range(users[0], users[1]):
        last = index(slots.threshold[user])
        own[last] = max(own[last] + common, problem.delta) if sign > 0.0 else own[last] - common
        if len(reference) > 0:
            sharpness = last - n_traits
            sharper = sign * own[sharpness]
            for slot in range(index(slots.start[user]), sharpness):
                own[slot] += reference[slot] * sharper


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
def most_of_one(start, begin, end):
    """Return the largest number of slots, or edges, of one user."""
    most = 0
    for user in range(begin, end):
        count = start[user + 1] - start[user]
        if count > most:
            most = count
    return most


# --- one block, in one piece -----------------------------------------------------------------

_LOOPS = (
    assemble,
    eliminate_users,
    curvature_product,
    conjugate_update,
    move_users,
    hold_back,
    squares,
    turn,
    is_free,
    pull_sharpness,
)
_IN_ONE = newton.bound(
    {each.py_func.__name__: each for each in VECTORS}
    | {each.py_func.__name__: inside(each) for each in _LOOPS}
    | {"lent": lent},
    compiled=lambda function: (loop if function.__name__ == "solve" else inlined)(function),
)
solve = _IN_ONE["solve"]


follow_user = newton.bound(
    {each.py_func.__name__: each for each in (solve, finish_step, extrapolate)},
    compiled=lambda function: (loop if function.__name__ == "follow_user" else part)(function),
    method=beside.METHOD,
)["follow_user"]
