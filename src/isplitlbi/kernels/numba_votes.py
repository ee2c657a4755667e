"""What the compiled loops do with the votes of one user."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isplitlbi.kernels.numba_compiling import inlined, part
from isplitlbi.kernels.numba_links import level_of_vote, varies
from isplitlbi.typing import Floats

# Indices are unsigned: at every access numba would ask a signed one whether it is negative.
index = np.uint64
ONE = index(1)

# Votes that are evaluated together: their numbers lie in one small array, column after
# column, so that the compiler knows that they do not overlap and evaluates several at once.
CHUNK_SIZE = 128
CHUNK, LANES = index(CHUNK_SIZE), index(4)


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
def clear_room(problem, consensus, first_slot, at, room):
    """Make room for what one user's votes add up to."""
    habit = index(problem.slots.first_habit)
    n_items = at - index(len(problem.scales) - 2)
    for k in range(at + ONE):
        room.slope[k] = 0.0
        room.bent[k] = 0.0
    if len(problem.reference) > 0:
        for k in range(n_items + ONE):
            room.sharper[k] = 0.0
    if habit > 0:
        for k in range(n_items):
            room.habit[k] = consensus[habit + index(problem.slots.coordinate[first_slot + k])]
            room.by_habit[k] = 0.0
            room.bent_habit[k] = 0.0


@inlined
def fill_chunk(link, problem, first_slot, at, first_edge, size, room):
    """Fill the chunk with margins, thresholds and counts; return how many are to be evaluated."""
    edges, total, chunk = problem.edges, room.total, room.chunk
    n_columns = index(edges.columns.shape[0])
    for k in range(size):
        edge = first_edge + k
        i, j = index(edges.first[edge]) - first_slot, index(edges.second[edge]) - first_slot
        chunk[k] = total[i] - total[j]
        chunk[k + CHUNK] = edges.first_wins[edge]
        chunk[k + index(2) * CHUNK] = edges.ties[edge]
        chunk[k + index(3) * CHUNK] = edges.second_wins[edge]
    for c in range(n_columns):
        for k in range(size):
            chunk[k] += edges.columns[c, first_edge + k] * total[at - n_columns + c]
    # Filled up to what is evaluated at once: the last votes would take longer one by one.
    filled = min((size + LANES - ONE) // LANES * LANES, CHUNK)
    for k in range(size, filled):
        chunk[k] = 0.0
        chunk[k + CHUNK] = 0.0
        chunk[k + index(2) * CHUNK] = 0.0
        chunk[k + index(3) * CHUNK] = 0.0
    if varies(link):
        for k in range(filled):
            chunk[k + index(10) * CHUNK] = total[at]
        if problem.slots.first_habit > 0:
            for k in range(size):
                i = index(edges.first[first_edge + k]) - first_slot
                j = index(edges.second[first_edge + k]) - first_slot
                chunk[k + index(10) * CHUNK] += room.habit[i] + room.habit[j]
    return filled


@inlined
def scatter_chunk(edges, first_slot, first_edge, size, system, room):
    """Add what was evaluated to items; return the loss, and the sums of the threshold."""
    slope, bent, chunk = room.slope, room.bent, room.chunk
    value, by_threshold, bent_threshold = 0.0, 0.0, 0.0
    for k in range(size):
        edge = first_edge + k
        i, j = index(edges.first[edge]) - first_slot, index(edges.second[edge]) - first_slot
        value += chunk[k + index(4) * CHUNK]
        by_margin, mm = chunk[k + index(5) * CHUNK], chunk[k + index(7) * CHUNK]
        slope[i] += by_margin
        slope[j] -= by_margin
        bent[i] += mm
        bent[j] += mm
        by_threshold += chunk[k + index(6) * CHUNK]
        bent_threshold += chunk[k + index(9) * CHUNK]
        system.curvature[0, edge] = mm
        system.curvature[1, edge] = chunk[k + index(8) * CHUNK]
        system.curvature[2, edge] = chunk[k + index(9) * CHUNK]
    return value, by_threshold, bent_threshold


@inlined
def scatter_to_terms(problem, first_slot, at, first_edge, size, room):
    """Add what was evaluated to traits with a column, to sharpness, and to habits."""
    edges, slope, bent, chunk = problem.edges, room.slope, room.bent, room.chunk
    n_columns = index(edges.columns.shape[0])
    n_items = at - index(len(problem.scales) - 2)
    for c in range(n_columns):
        trait = at - n_columns + c
        by_trait, bent_trait = slope[trait], bent[trait]
        for k in range(size):
            column = edges.columns[c, first_edge + k]
            by_trait += column * chunk[k + index(5) * CHUNK]
            bent_trait += column * column * chunk[k + index(7) * CHUNK]
        slope[trait] = by_trait
        bent[trait] = bent_trait
    if len(problem.reference) > 0:
        alone = 0.0
        for k in range(size):
            first, second = edges.first[first_edge + k], edges.second[first_edge + k]
            apart = problem.reference[index(first)] - problem.reference[index(second)]
            mixed = chunk[k + index(7) * CHUNK] * apart
            room.sharper[index(first) - first_slot] += mixed
            room.sharper[index(second) - first_slot] -= mixed
            alone += mixed * apart
        room.sharper[n_items] += alone
    if problem.slots.first_habit > 0:
        for k in range(size):
            i = index(edges.first[first_edge + k]) - first_slot
            j = index(edges.second[first_edge + k]) - first_slot
            by_threshold, tt = chunk[k + index(6) * CHUNK], chunk[k + index(9) * CHUNK]
            room.by_habit[i] += by_threshold
            room.by_habit[j] += by_threshold
            room.bent_habit[i] += tt
            room.bent_habit[j] += tt


@inlined
def evaluate_votes(link, problem, user, consensus, system, room, sums):
    """Add up the first and second derivatives of one user's losses by slot; return the loss.

    What habits of items get is added to ``sums``.
    """
    edges, coordinate = problem.edges, problem.slots.coordinate
    first_slot, habit = index(problem.slots.start[user]), index(problem.slots.first_habit)
    at = index(problem.slots.threshold[user]) - first_slot
    clear_room(problem, consensus, first_slot, at, room)
    value, by_thresholds, bent_threshold = 0.0, 0.0, 0.0
    for first_edge in range(index(edges.start[user]), index(edges.start[user + 1]), CHUNK):
        size = min(CHUNK, index(edges.start[user + 1]) - first_edge)
        filled = fill_chunk(link, problem, first_slot, at, first_edge, size, room)
        evaluate_chunk(link, room.total[at], filled, room.chunk)
        found = scatter_chunk(edges, first_slot, first_edge, size, system, room)
        value += found[0]
        by_thresholds += found[1]
        bent_threshold += found[2]
        scatter_to_terms(problem, first_slot, at, first_edge, size, room)
    room.slope[at] = by_thresholds
    room.bent[at] = bent_threshold
    if habit > 0:
        for k in range(at - index(len(problem.scales) - 2)):
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
