"""The loops over votes, compiled by numba: the twins of `plain`, one user after another.

Signatures and meanings are those of `plain`; the last ones have their twins in `solvers.newton`.
"""

from __future__ import annotations

import math

import numpy as np

from isplitlbi.kernels import (
    CLOSE_CONSENSUS,
    CONJUGATE_ACCURACY,
    ERROR_FLOOR,
    MOST_CONJUGATE_STEPS,
    MOST_NEWTON_STEPS,
    SHORTEST_MOVE,
)
from isplitlbi.kernels.numba_links import loop

# Indices are unsigned: at every access numba would ask a signed one whether it is negative.
index = np.uint64
ONE = index(1)

# Votes that are evaluated together: their numbers lie in one small array, column after
# column, so that the compiler knows that they do not overlap and evaluates several at once.
CHUNK, LANES = index(128), index(4)


@loop
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


@loop
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


@loop
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


@loop
def score(
    link,
    slots,
    user,
    left_slot,
    right_slot,
    counts,
    consensus,
    deviation,
    deviates,
    by_threshold,
    confusion,
):
    total = 0.0
    confusion[:] = 0.0
    n_pairs = index(len(user))
    chunk = np.empty(5 * int(CHUNK))
    for first_pair in range(index(0), n_pairs, CHUNK):
        size = min(CHUNK, n_pairs - first_pair)
        for k in range(size):
            pair = first_pair + k
            who, i, j = index(user[pair]), index(left_slot[pair]), index(right_slot[pair])
            margin = consensus[index(slots.coordinate[i])] - consensus[index(slots.coordinate[j])]
            threshold = consensus[-1]
            if deviates[who]:
                margin += deviation[i] - deviation[j]
                threshold += deviation[slots.start[who + ONE] - 1]
            chunk[k] = margin
            chunk[k + CHUNK] = threshold
        for k in range(size):
            left, tie, right = link.outcomes(chunk[k], chunk[k + CHUNK])
            chunk[k + index(2) * CHUNK] = left
            chunk[k + index(3) * CHUNK] = tie
            chunk[k + index(4) * CHUNK] = right
        for k in range(size):
            pair = first_pair + k
            margin, threshold = chunk[k], chunk[k + CHUNK]
            left, tie = chunk[k + index(2) * CHUNK], chunk[k + index(3) * CHUNK]
            right = chunk[k + index(4) * CHUNK]
            if by_threshold:
                predicted = int(margin > threshold) - int(margin < -threshold)
            else:
                predicted = int(left > tie and left > right) - int(right > tie and right > left)
            for outcome in range(3):
                confusion[outcome, 1 - predicted] += counts[pair, outcome]
            total -= counts[pair, 0] * left + counts[pair, 1] * tie + counts[pair, 2] * right
    return total


# --- the implicit scheme -------------------------------------------------------------------------


@loop
def evaluate_chunk(link, threshold, size, chunk):
    """Evaluate the losses of up to ``CHUNK`` votes; from columns 0 to 3 into 4 to 9."""
    for k in range(size):
        loss, by_margin, by_threshold, mm, mt, tt = link.vote_terms(
            chunk[k],
            threshold,
            chunk[k + CHUNK],
            chunk[k + index(2) * CHUNK],
            chunk[k + index(3) * CHUNK],
        )
        chunk[k + index(4) * CHUNK] = loss
        chunk[k + index(5) * CHUNK] = by_margin
        chunk[k + index(6) * CHUNK] = by_threshold
        chunk[k + index(7) * CHUNK] = mm
        chunk[k + index(8) * CHUNK] = mt
        chunk[k + index(9) * CHUNK] = tt


@loop
def assemble(
    link,
    slots,
    edges,
    begin,
    end,
    consensus,
    own,
    origin,
    system,
    consensus_gradient,
    consensus_diagonal,
):
    step, nu, kappa = origin.step, origin.nu, origin.kappa
    damping, ratio, per_step = 1.0 / (kappa * step), kappa * step / nu, 1.0 / step
    consensus_gradient[:] = 0.0
    consensus_diagonal[:] = 0.0
    most = most_slots(slots, begin, end)
    total, slope, bent = np.empty(most), np.empty(most), np.empty(most)
    chunk = np.empty(10 * int(CHUNK))
    value = 0.0
    for user in range(begin, end):
        first_slot, last = index(slots.start[user]), index(slots.start[user + 1]) - ONE
        n_scores = last - first_slot
        threshold = own[last]
        for k in range(n_scores):
            total[k] = consensus[index(slots.coordinate[first_slot + k])] + own[first_slot + k]
            slope[k] = 0.0
            bent[k] = 0.0
        slope[n_scores] = 0.0
        bent[n_scores] = 0.0
        for first_edge in range(index(edges.start[user]), index(edges.start[user + 1]), CHUNK):
            size = min(CHUNK, index(edges.start[user + 1]) - first_edge)
            for k in range(size):
                edge = first_edge + k
                i, j = index(edges.first[edge]) - first_slot, index(edges.second[edge]) - first_slot
                chunk[k] = total[i] - total[j]
                chunk[k + CHUNK] = edges.first_wins[edge]
                chunk[k + index(2) * CHUNK] = edges.ties[edge]
                chunk[k + index(3) * CHUNK] = edges.second_wins[edge]
            # Filled up to what is evaluated at once: the last votes would take longer one by one.
            filled = min((size + LANES - ONE) // LANES * LANES, CHUNK)
            for k in range(size, filled):
                chunk[k] = 0.0
                chunk[k + CHUNK] = 0.0
                chunk[k + index(2) * CHUNK] = 0.0
                chunk[k + index(3) * CHUNK] = 0.0
            evaluate_chunk(link, threshold, filled, chunk)
            for k in range(size):
                edge = first_edge + k
                i, j = index(edges.first[edge]) - first_slot, index(edges.second[edge]) - first_slot
                value += chunk[k + index(4) * CHUNK]
                by_margin, mm = chunk[k + index(5) * CHUNK], chunk[k + index(7) * CHUNK]
                slope[i] += by_margin
                slope[j] -= by_margin
                bent[i] += mm
                bent[j] += mm
                slope[n_scores] += chunk[k + index(6) * CHUNK]
                bent[n_scores] += chunk[k + index(9) * CHUNK]
                system.curvature[0, edge] = mm
                system.curvature[1, edge] = chunk[k + index(8) * CHUNK]
                system.curvature[2, edge] = chunk[k + index(9) * CHUNK]

        # From here on, what the deviations themselves cost; a threshold's is from the consensus's.
        own[last] -= consensus[-1]
        square, deviation_square, moved_square = 0.0, 0.0, 0.0
        for slot in range(first_slot, last + ONE):
            deviation = own[slot]
            w = origin.dual[slot] + (step / nu) * deviation
            moved = deviation - origin.deviation[slot]
            system.pushed[slot] = w
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
        system.bend[user, 0] = first
        system.bend[user, 1] = second
        for k in range(n_scores + ONE):
            slot = first_slot + k
            w = system.pushed[slot]
            pull = (factor * w - origin.dual[slot]) * per_step
            pull += damping * (own[slot] - origin.deviation[slot])
            stiffness = damping + first - second * w * w
            system.residual[slot] = -(slope[k] + pull)
            system.inverse[slot] = 1.0 / (bent[k] + stiffness)
            system.coupling[slot] = bent[k]
        for k in range(n_scores):
            coordinate = index(slots.coordinate[first_slot + k])
            consensus_gradient[coordinate] += slope[k]
            consensus_diagonal[coordinate] += bent[k]
        # A threshold's own coordinate takes the votes; the consensus meets it through the pull.
        own[last] = threshold
        consensus_gradient[-1] += system.residual[last] + slope[n_scores]
        stiffness = damping + first - second * system.pushed[last] ** 2
        consensus_diagonal[-1] += stiffness
        system.coupling[last] = -stiffness
    return value


@loop
def eliminate_users(slots, begin, end, own, delta, system, eliminated):
    eliminated[:] = 0.0
    for user in range(begin, end):
        last = index(slots.start[user + 1]) - ONE
        for slot in range(index(slots.start[user]), last + ONE):
            system.solution[slot] = 0.0
            system.direction[slot] = 0.0
            system.product[slot] = 0.0
        downhill = system.residual[last] * system.inverse[last]
        system.free[user] = is_free(own[last], downhill, delta)
        if not system.free[user]:
            system.solution[last] = downhill
            system.residual[last] = 0.0
            system.coupling[last] = 0.0
        for slot in range(index(slots.start[user]), last + ONE):
            coupling = system.coupling[slot]
            eliminated[index(slots.coordinate[slot])] += coupling * coupling * system.inverse[slot]


@loop
def curvature_product(
    slots,
    edges,
    begin,
    end,
    system,
    damping,
    consensus_preconditioned,
    consensus_direction,
    momentum,
    consensus_product,
):
    consensus_product[:] = 0.0
    most = most_slots(slots, begin, end)
    total, bent = np.empty(most), np.empty(most)
    mm, mt, tt = system.curvature[0], system.curvature[1], system.curvature[2]
    along_product = 0.0
    for user in range(begin, end):
        first_slot, last = index(slots.start[user]), index(slots.start[user + 1]) - ONE
        n_scores = last - first_slot
        for k in range(n_scores + ONE):
            slot = first_slot + k
            coordinate = index(slots.coordinate[slot])
            coupled = system.coupling[slot] * consensus_preconditioned[coordinate]
            preconditioned = (system.residual[slot] - coupled) * system.inverse[slot]
            direction = preconditioned + momentum * system.direction[slot]
            system.direction[slot] = direction
            total[k] = consensus_direction[coordinate] + direction
            bent[k] = 0.0
        threshold = system.direction[last]
        by_thresholds = 0.0
        for edge in range(index(edges.start[user]), index(edges.start[user + 1])):
            i, j = index(edges.first[edge]) - first_slot, index(edges.second[edge]) - first_slot
            margin = total[i] - total[j]
            by_margin = mm[edge] * margin + mt[edge] * threshold
            by_thresholds += mt[edge] * margin + tt[edge] * threshold
            bent[i] += by_margin
            bent[j] -= by_margin
        stiffness, push = damping + system.bend[user, 0], 0.0
        for k in range(n_scores):
            slot = first_slot + k
            consensus_product[index(slots.coordinate[slot])] += bent[k]
            direction = system.direction[slot]
            product = bent[k] + stiffness * direction
            system.product[slot] = product
            along_product += direction * product
        if system.bend[user, 1] != 0.0:  # out of the consensus
            along = -system.pushed[last] * consensus_direction[-1]
            for slot in range(first_slot, last + ONE):
                along += system.pushed[slot] * system.direction[slot]
            push = system.bend[user, 1] * along
            for slot in range(first_slot, last):
                system.product[slot] -= push * system.pushed[slot]
                along_product -= push * system.pushed[slot] * system.direction[slot]
        pull = stiffness * (threshold - consensus_direction[-1]) - push * system.pushed[last]
        consensus_product[-1] -= pull
        if system.free[user]:
            system.product[last] = by_thresholds + pull
            along_product += threshold * system.product[last]
    return along_product


@loop
def conjugate_update(slots, begin, end, length, system, consensus_coupled):
    total = 0.0
    consensus_coupled[:] = 0.0
    for slot in range(index(slots.start[begin]), index(slots.start[end])):
        system.solution[slot] += length * system.direction[slot]
        left = system.residual[slot] - length * system.product[slot]
        system.residual[slot] = left
        scaled = left * system.inverse[slot]
        consensus_coupled[index(slots.coordinate[slot])] += system.coupling[slot] * scaled
        total += left * scaled
    return total


@loop
def finish_step(
    slots, begin, end, origin, old_deviation, old_dual, length, bending,
    deviation, dual, sparse, norms, deviation_rate, dual_rate, deviation_bend,
):  # fmt: skip
    ratio = origin.kappa * origin.step / origin.nu
    for user in range(begin, end):
        first_slot, stop = index(slots.start[user]), index(slots.start[user + 1])
        square = 0.0
        for slot in range(first_slot, stop):
            w = origin.dual[slot] + (origin.step / origin.nu) * deviation[slot]
            dual[slot] = w
            square += w * w
        norm = math.sqrt(square)
        factor, shrunk = 1.0, 0.0
        if norm > 1.0:
            factor = (1.0 + ratio / norm) / (1.0 + ratio)
            shrunk = origin.kappa * (1.0 - 1.0 / (factor * norm))
        norms[user] = factor * norm
        for slot in range(first_slot, stop):
            dual[slot] *= factor
            sparse[slot] = shrunk * dual[slot]
            rate = (deviation[slot] - old_deviation[slot]) / length
            deviation_bend[slot] = bending * (rate - deviation_rate[slot])
            deviation_rate[slot] = rate
            dual_rate[slot] = (dual[slot] - old_dual[slot]) / length


@loop
def extrapolate(slots, begin, end, base, rate, bend, length, bending, out):
    for slot in range(index(slots.start[begin]), index(slots.start[end])):
        out[slot] = base[slot] + length * rate[slot] + bending * bend[slot]


@loop
def squares(slots, begin, end, one, other):
    off, size = 0.0, 0.0
    for slot in range(index(slots.start[begin]), index(slots.start[end])):
        off += (one[slot] - other[slot]) ** 2
        size += other[slot] ** 2
    return off, size


@loop
def is_free(threshold, downhill, delta):
    return downhill > 0.0 or (threshold > 1.01 * delta and threshold + downhill > delta)


@loop
def most_slots(slots, begin, end):
    """Return the largest number of slots of one user."""
    most = 0
    for user in range(begin, end):
        most = max(most, slots.start[user + 1] - slots.start[user])
    return most


# --- the implicit scheme, with all users in one block --------------------------------------------
#
# The twins of `solvers.newton`: a small study is solved without coming back to Python, which would
# take as long as the loops and keep paths from running side by side.


@loop
def minimise(link, slots, edges, origin, has_ties, delta, enough, consensus, own, system):
    n_users = len(slots.start) - 1
    gradient, diagonal = np.empty_like(consensus), np.empty_like(consensus)
    value = evaluate(link, slots, edges, origin, consensus, own, system, gradient, diagonal)
    n_evaluations, n_conjugate_steps = 1, 0
    trial, trial_own = np.empty_like(consensus), np.empty_like(own)
    if not math.isfinite(value):
        own[:] = np.nan
        return consensus, own, n_evaluations, n_conjugate_steps
    for _ in range(MOST_NEWTON_STEPS):
        toward, slope, n_steps = newton_direction(
            slots, edges, origin, delta, consensus, own, system, gradient, diagonal
        )
        n_conjugate_steps += n_steps
        length = 1.0
        while True:
            trial[:] = consensus + length * toward
            trial[-1] = max(trial[-1], delta)
            extrapolate(slots, 0, n_users, own, system.solution, own, length, 0.0, trial_own)
            for user in range(n_users):
                last = slots.start[user + 1] - 1
                lowest = delta + (0.1 * (own[last] - delta) if has_ties[user] else 0.0)
                trial_own[last] = max(trial_own[last], lowest)
            if (
                length == 1.0
                and relative(slots, consensus, own, trial, trial_own, CLOSE_CONSENSUS) <= enough
            ):
                return trial, trial_own, n_evaluations, n_conjugate_steps
            n_evaluations += 1
            trial_value = evaluate(
                link, slots, edges, origin, trial, trial_own, system, gradient, diagonal
            )
            enough_gain = value - trial_value >= 1e-4 * length * slope
            if enough_gain or slope <= 1e-10 * abs(value):
                break
            length *= 0.5
            if length < SHORTEST_MOVE:
                return consensus, own, n_evaluations, n_conjugate_steps
        consensus, trial = trial, consensus
        own, trial_own = trial_own, own
        value = trial_value
    return consensus, own, n_evaluations, n_conjugate_steps


@loop
def evaluate(link, slots, edges, origin, consensus, own, system, gradient, diagonal):
    """Assemble the system of all users; return the objective, the consensus's part included."""
    n_users = len(slots.start) - 1
    value = assemble(
        link, slots, edges, 0, n_users, consensus, own, origin, system, gradient, diagonal
    )
    damping = 1.0 / (origin.kappa * origin.step)
    for k in range(len(consensus)):
        moved = consensus[k] - origin.consensus[k]
        value += 0.5 * damping * moved * moved
        gradient[k] += damping * moved
        diagonal[k] += damping
    return value


@loop
def relative(slots, consensus, own, other_consensus, other_own, weight):
    """Return how far two points are apart, relative to the second."""
    off, size = squares(slots, 0, len(slots.start) - 1, own, other_own)
    of_users = math.sqrt(off) / (math.sqrt(size) + ERROR_FLOOR)
    off, size = np.sum((consensus - other_consensus) ** 2), np.sum(other_consensus**2)
    return max(of_users, weight * math.sqrt(off) / (math.sqrt(size) + ERROR_FLOOR))


@loop
def newton_direction(slots, edges, origin, delta, consensus, own, system, gradient, diagonal):
    n_users, width = len(slots.start) - 1, len(consensus)
    damping = 1.0 / (origin.kappa * origin.step)
    residual, of_users = -gradient, np.empty(width)
    downhill = residual[-1] / diagonal[-1]
    free = is_free(consensus[-1], downhill, delta)
    eliminate_users(slots, 0, n_users, own, delta, system, of_users)
    schur = diagonal - of_users
    solution, direction, product = np.zeros(width), np.zeros(width), np.zeros(width)
    if not free:
        solution[-1] = downhill
    length, momentum, slope, size, target, n_steps = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    while True:
        residual -= length * product
        new_size = conjugate_update(slots, 0, n_users, length, system, of_users)
        left = residual - of_users
        if not free:
            left[-1] = 0.0
        preconditioned = left / schur
        new_size += np.sum(left * preconditioned)
        if n_steps == 0:
            target = CONJUGATE_ACCURACY**2 * new_size
        else:
            momentum = new_size / size
        size = new_size
        if not size > target or n_steps == MOST_CONJUGATE_STEPS:
            return solution, slope, n_steps

        direction = momentum * direction + preconditioned
        along = curvature_product(
            slots, edges, 0, n_users, system, damping,
            preconditioned, direction, momentum, of_users,
        )  # fmt: skip
        product = of_users + damping * direction
        if not free:
            product[-1] = 0.0
        along += np.sum(direction * product)
        length = size / along
        slope += length * size
        solution += length * direction
        n_steps += 1
