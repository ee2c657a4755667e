"""The loops of the explicit scheme and of scoring, compiled: the twins of `numpy_explicit`."""

from __future__ import annotations

import math

import numpy as np

from isplitlbi.kernels.numba_compiling import loop, part
from isplitlbi.kernels.numba_links import varies
from isplitlbi.kernels.numba_records import lent
from isplitlbi.kernels.numba_votes import CHUNK, CHUNK_SIZE, ONE, index
from isplitlbi.model.answering import NEVER
from isplitlbi.model.links import exp_minus, threshold_of


@part
def fill_margins(problem, user, first_edge, size, consensus, deviation, deviates, chunk):
    """Fill the chunk with margins and thresholds; return the user of the last edge.

    A user who does not deviate has the consensus.
    """
    slots, edges, scales, reference = (
        problem.slots,
        problem.edges,
        problem.scales,
        problem.reference,
    )
    start, first, second, columns = edges.start, edges.first, edges.second, edges.columns
    coordinate, thresholds, habit = slots.coordinate, slots.threshold, index(slots.first_habit)
    common, n_columns, n_terms = slots.common_threshold, index(len(columns)), index(len(scales))
    for k in range(size):
        edge = first_edge + k
        while edge >= index(start[user + 1]):
            user += 1
        i, j, last = index(first[edge]), index(second[edge]), index(thresholds[user])
        left, right = index(coordinate[i]), index(coordinate[j])
        margin, threshold = consensus[left] - consensus[right], consensus[common]
        if habit > 0:
            threshold += consensus[habit + left] + consensus[habit + right]
        for c in range(n_columns):
            margin += columns[c, edge] * consensus[index(coordinate[last - n_columns + c])]
        if deviates[user]:
            margin += scales[0] * (deviation[i] - deviation[j])
            threshold += scales[-1] * deviation[last]
            if len(reference) > 0:
                margin += (reference[i] - reference[j]) * deviation[last - n_columns - ONE]
            for c in range(n_columns):
                own = scales[n_terms - n_columns - ONE + c] * deviation[last - n_columns + c]
                margin += columns[c, edge] * own
        chunk[k] = margin
        chunk[k + CHUNK] = threshold
    return user


@part
def hold_average(problem, consensus, deviation, gradient):
    """Add what the prior on the average person's scores tells."""
    slots, n_traits = problem.slots, len(problem.scales) - 2
    n_sharp = len(slots.start) - 1 if len(problem.reference) > 0 else 0
    sharper, pull = 0.0, 0.0
    for user in range(n_sharp):
        sharper += problem.shares[user] * deviation[slots.threshold[user] - n_traits]
    for k in range(len(consensus)):
        held = problem.precision[k] * (consensus[k] + sharper * problem.toward[k])
        pull += held * problem.toward[k]
        gradient.consensus[k] += held
        gradient.consensus[k] *= problem.common[k]
    for user in range(n_sharp):
        gradient.slots[slots.threshold[user] - n_traits] += problem.shares[user] * pull


@loop
def loss_and_gradient(link, problem, consensus, deviation, gradient):
    slots, edges, scales, reference = (
        problem.slots,
        problem.edges,
        problem.scales,
        problem.reference,
    )
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
    hold_average(problem, consensus, deviation, gradient)
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
def explicit_step(link, problem, flow, gradient, step, nu, kappa, precision):
    loss = loss_and_gradient(link, problem, flow.consensus, flow.deviation, gradient)
    for coordinate in range(len(flow.consensus)):
        flow.consensus[coordinate] -= kappa * step * gradient.consensus[coordinate]
    for slot in range(len(flow.deviation)):
        pull = (flow.deviation[slot] - flow.sparse[slot]) / nu
        held = pull + precision * flow.deviation[slot]
        flow.deviation[slot] -= kappa * step * (gradient.slots[slot] + held)
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
    if problem.bounded == 0.0:
        return log_threshold_curvature(link, problem, consensus, deviation)
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


@part
def log_threshold_curvature(link, problem, consensus, deviation):
    """Return the same where thresholds are told by their logarithms, and items have habits."""
    slots, edges, steepest = problem.slots, problem.edges, 0.0
    if not varies(link):
        return 0.0, 0.0
    total, largest, degree = 0.0, 0.0, np.zeros(len(consensus))
    chunk, everybody = np.empty(2 * CHUNK_SIZE), np.ones(len(slots.start) - 1, np.bool_)
    for user in range(len(slots.start) - 1):
        of_user, begin = 0.0, index(edges.start[user])
        for edge in range(begin, index(edges.start[user + 1])):
            k = (edge - begin) % CHUNK
            if k == 0:
                size = min(CHUNK, index(edges.start[user + 1]) - edge)
                fill_margins(
                    lent(problem), user, edge, size, consensus, deviation, everybody, chunk
                )
            margin, level = chunk[k], chunk[k + CHUNK]
            wins, tied, losses = edges.first_wins[edge], edges.ties[edge], edges.second_wins[edge]
            by_level = link.vote_terms(margin, level, wins, tied, losses)[2]
            threshold = threshold_of(level)
            win_bound, tie_by_margin, tie_by_threshold = link.curvature_bounds(threshold)
            bent = (wins + losses) * win_bound
            if tied > 0:
                bent += tied * tie_by_threshold
                steepest = max(steepest, tie_by_margin)
            bent = threshold * threshold * bent + 0.5 * abs(by_level)
            of_user += bent
            if slots.first_habit:
                degree[slots.coordinate[edges.first[edge]]] += bent
                degree[slots.coordinate[edges.second[edge]]] += bent
        total += of_user
        largest = max(largest, of_user)
    most = 0.0
    if slots.first_habit:
        for edge in range(len(edges.first)):
            left = degree[slots.coordinate[edges.first[edge]]]
            most = max(most, left + degree[slots.coordinate[edges.second[edge]]])
    return total + problem.scales[-1] ** 2 * largest + most, steepest


# --- scoring ---------------------------------------------------------------------------------


@part
def fill_outcomes(link, size, power, chunk):
    """Fill the chunk with the log-probabilities of outcomes, their mean, and their variance."""
    for k in range(size):
        left, tie, right = link.outcomes(chunk[k], chunk[k + CHUNK])
        chunk[k + index(2) * CHUNK] = left
        chunk[k + index(3) * CHUNK] = tie
        chunk[k + index(4) * CHUNK] = right
        occurs = 1.0 * (tie > 0.5 * NEVER)
        most = max(left, right, tie)
        left, tie, right = left - most, occurs * (tie - most), right - most
        of_left, of_right = exp_minus(-power * left), exp_minus(-power * right)
        of_tie = occurs * exp_minus(-power * tie)
        whole = of_left + of_tie + of_right
        mean = (of_left * left + of_tie * tie + of_right * right) / whole
        left, tie, right = left - mean, tie - mean, right - mean
        variance = of_left * left * left + of_tie * tie * tie + of_right * right * right
        chunk[k + index(5) * CHUNK] = most + mean
        chunk[k + index(6) * CHUNK] = variance / whole


@loop
def score(link, problem, consensus, deviation, deviates, by_threshold, power, confusion):
    edges, happened, expected, variance = problem.edges, 0.0, 0.0, 0.0
    confusion[:] = 0.0
    n_edges, user = index(len(edges.first)), np.int64(0)
    chunk = np.empty(7 * CHUNK_SIZE)
    for first_edge in range(index(0), n_edges, CHUNK):
        size = min(CHUNK, n_edges - first_edge)
        user = fill_margins(
            lent(problem), user, first_edge, size, consensus, deviation, deviates, chunk
        )
        fill_outcomes(link, size, power, chunk)
        for k in range(size):
            edge, margin, threshold = first_edge + k, chunk[k], chunk[k + CHUNK]
            left, tie = chunk[k + index(2) * CHUNK], chunk[k + index(3) * CHUNK]
            right = chunk[k + index(4) * CHUNK]
            if by_threshold:
                within = link.tie_within(threshold)
                predicted = int(margin > within) - int(margin < -within)
            else:
                predicted = int(left > tie and left > right) - int(right > tie and right > left)
            left_wins, ties = edges.first_wins[edge], edges.ties[edge]
            right_wins = edges.second_wins[edge]
            confusion[0, 1 - predicted] += left_wins
            confusion[1, 1 - predicted] += ties
            confusion[2, 1 - predicted] += right_wins
            happened += left_wins * left + ties * tie + right_wins * right
            n_votes = left_wins + ties + right_wins
            expected += n_votes * chunk[k + index(5) * CHUNK]
            variance += n_votes * chunk[k + index(6) * CHUNK]
    return -happened, expected - happened, variance
