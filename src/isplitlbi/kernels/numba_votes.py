"""What the compiled loops do with the votes of one user."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isplitlbi.kernels.numba_links import inlined, level_of_vote, part, varies
from isplitlbi.typing import Floats

# Indices are unsigned: at every access numba would ask a signed one whether it is negative.
index = np.uint64
ONE = index(1)

# Votes that are evaluated together: their numbers lie in one small array, column after
# column, so that the compiler knows that they do not overlap and evaluates several at once.
CHUNK, LANES = index(128), index(4)


@part
def evaluate_chunk(link, threshold, size, chunk):
    """Evaluate the losses of up to ``CHUNK`` votes; from columns 0 to 3 into 4 to 9.

    Thresholds are in column 10 where votes of one user may have several, or else one number.
    """
    for k in range(size):
        loss, by_margin, by_threshold, mm, mt, tt = link.vote_terms(
            chunk[k],
            level_of_vote(link, threshold, k, chunk),
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


class Room(NamedTuple):
    """Room for what belongs to one user, slot by slot, and for votes evaluated together."""

    total: Floats  # what the votes see: consensus and own together
    slope: Floats  # of the losses
    bent: Floats  # and how they bend, slot by slot
    kept: Floats  # own coordinates, while these are turned to deviations
    pulls: Floats  # what deviations cost more for moving
    sharper: Floats  # how the losses would bend by sharpness and each item, and by sharpness alone
    habit: Floats  # of the user's items
    by_habit: Floats  # slope of the losses by these
    bent_habit: Floats
    chunk: Floats


@part
def room_for(most, n_edges):
    """Return room for a user with so many slots, and that many more numbers."""
    empty = np.empty
    return Room(
        empty(most), empty(most), empty(most), empty(most), empty(most), empty(most), empty(most),
        empty(most), empty(most), empty(n_edges),
    )  # fmt: skip


@inlined
def evaluate_votes(link, problem, user, consensus, system, room, sums):
    """Add up the first and second derivatives of one user's losses by slot; return the loss.

    What habits of items get is added to ``sums``.
    """
    edges, coordinate = problem.edges, problem.slots.coordinate
    total, slope, bent, chunk = room.total, room.slope, room.bent, room.chunk
    first_slot, habit = index(problem.slots.start[user]), index(problem.slots.first_habit)
    n_columns = index(edges.columns.shape[0])
    at = index(problem.slots.threshold[user]) - first_slot
    trait, threshold = at - n_columns, total[at]
    n_items = at - index(len(problem.scales) - 2)
    has_sharpness = len(problem.reference) > 0
    for k in range(at + ONE):
        slope[k] = 0.0
        bent[k] = 0.0
    if has_sharpness:
        for k in range(n_items + ONE):
            room.sharper[k] = 0.0
    if habit > 0:
        for k in range(n_items):
            room.habit[k] = consensus[habit + index(coordinate[first_slot + k])]
            room.by_habit[k] = 0.0
            room.bent_habit[k] = 0.0
    value, by_thresholds, bent_threshold, by_sharpness = 0.0, 0.0, 0.0, 0.0
    for first_edge in range(index(edges.start[user]), index(edges.start[user + 1]), CHUNK):
        size = min(CHUNK, index(edges.start[user + 1]) - first_edge)
        for k in range(size):
            edge = first_edge + k
            i, j = index(edges.first[edge]) - first_slot, index(edges.second[edge]) - first_slot
            chunk[k] = total[i] - total[j]
            chunk[k + CHUNK] = edges.first_wins[edge]
            chunk[k + index(2) * CHUNK] = edges.ties[edge]
            chunk[k + index(3) * CHUNK] = edges.second_wins[edge]
        for c in range(n_columns):
            for k in range(size):
                chunk[k] += edges.columns[c, first_edge + k] * total[trait + c]
        # Filled up to what is evaluated at once: the last votes would take longer one by one.
        filled = min((size + LANES - ONE) // LANES * LANES, CHUNK)
        for k in range(size, filled):
            chunk[k] = 0.0
            chunk[k + CHUNK] = 0.0
            chunk[k + index(2) * CHUNK] = 0.0
            chunk[k + index(3) * CHUNK] = 0.0
        if varies(link):
            for k in range(filled):
                chunk[k + index(10) * CHUNK] = threshold
            if habit > 0:
                for k in range(size):
                    i = index(edges.first[first_edge + k]) - first_slot
                    j = index(edges.second[first_edge + k]) - first_slot
                    chunk[k + index(10) * CHUNK] += room.habit[i] + room.habit[j]
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
            by_thresholds += chunk[k + index(6) * CHUNK]
            bent_threshold += chunk[k + index(9) * CHUNK]
            system.curvature[0, edge] = mm
            system.curvature[1, edge] = chunk[k + index(8) * CHUNK]
            system.curvature[2, edge] = chunk[k + index(9) * CHUNK]
        for c in range(n_columns):
            by_trait, bent_trait = slope[trait + c], bent[trait + c]
            for k in range(size):
                column = edges.columns[c, first_edge + k]
                by_trait += column * chunk[k + index(5) * CHUNK]
                bent_trait += column * column * chunk[k + index(7) * CHUNK]
            slope[trait + c] = by_trait
            bent[trait + c] = bent_trait
        if has_sharpness:
            for k in range(size):
                first, second = edges.first[first_edge + k], edges.second[first_edge + k]
                apart = problem.reference[index(first)] - problem.reference[index(second)]
                mixed = chunk[k + index(7) * CHUNK] * apart
                room.sharper[index(first) - first_slot] += mixed
                room.sharper[index(second) - first_slot] -= mixed
                by_sharpness += mixed * apart
        if habit > 0:
            for k in range(size):
                i = index(edges.first[first_edge + k]) - first_slot
                j = index(edges.second[first_edge + k]) - first_slot
                by_threshold, tt = chunk[k + index(6) * CHUNK], chunk[k + index(9) * CHUNK]
                room.by_habit[i] += by_threshold
                room.by_habit[j] += by_threshold
                room.bent_habit[i] += tt
                room.bent_habit[j] += tt
    slope[at] = by_thresholds
    bent[at] = bent_threshold
    if has_sharpness:
        room.sharper[n_items] = by_sharpness
    if habit > 0:
        for k in range(n_items):
            place = habit + index(coordinate[first_slot + k])
            sums[0][place] += room.by_habit[k]
            sums[1][place] += room.bent_habit[k]
    return value


@inlined
def product_of_votes(edges, user, first_slot, at, curvature, total, bent):
    """Add the product of one user's curvature with a direction, where there is taste alone."""
    mm, mt, tt = curvature[0], curvature[1], curvature[2]
    threshold, by_thresholds = total[at], 0.0
    for edge in range(index(edges.start[user]), index(edges.start[user + 1])):
        i, j = index(edges.first[edge]) - first_slot, index(edges.second[edge]) - first_slot
        margin = total[i] - total[j]
        by_margin = mm[edge] * margin + mt[edge] * threshold
        by_thresholds += mt[edge] * margin + tt[edge] * threshold
        bent[i] += by_margin
        bent[j] -= by_margin
    bent[at] = by_thresholds


@inlined
def product_of_terms(problem, user, at, curvature, direction, room, product):
    """Do the same with traits in the margin and habits in the threshold."""
    edges, coordinate = problem.edges, problem.slots.coordinate
    mm, mt, tt = curvature[0], curvature[1], curvature[2]
    total, bent, flow = room.total, room.bent, room.chunk
    first_slot, habit = index(problem.slots.start[user]), index(problem.slots.first_habit)
    n_columns, n_items = index(edges.columns.shape[0]), at - index(len(problem.scales) - 2)
    first_edge = index(edges.start[user])
    n_edges = index(edges.start[user + 1]) - first_edge
    trait, threshold, by_thresholds = at - n_columns, total[at], 0.0
    for k in range(n_items):
        room.habit[k] = 0.0
        room.by_habit[k] = 0.0
    if habit > 0:
        for k in range(n_items):
            room.habit[k] = direction[habit + index(coordinate[first_slot + k])]
    for k in range(n_edges):
        flow[k] = 0.0
    for c in range(n_columns):
        along = total[trait + c]
        for k in range(n_edges):
            flow[k] += edges.columns[c, first_edge + k] * along
    for k in range(n_edges):
        edge = first_edge + k
        i, j = index(edges.first[edge]) - first_slot, index(edges.second[edge]) - first_slot
        margin = total[i] - total[j] + flow[k]
        level = threshold + room.habit[i] + room.habit[j]
        by_margin = mm[edge] * margin + mt[edge] * level
        by_threshold = mt[edge] * margin + tt[edge] * level
        flow[k] = by_margin
        bent[i] += by_margin
        bent[j] -= by_margin
        room.by_habit[i] += by_threshold
        room.by_habit[j] += by_threshold
        by_thresholds += by_threshold
    for c in range(n_columns):
        by_trait = 0.0
        for k in range(n_edges):
            by_trait += edges.columns[c, first_edge + k] * flow[k]
        bent[trait + c] = by_trait
    bent[at] = by_thresholds
    if habit > 0:
        for k in range(n_items):
            product[habit + index(coordinate[first_slot + k])] += room.by_habit[k]
