"""What the compiled loops do with the votes of one user."""

from __future__ import annotations

import numpy as np

from isplitlbi.kernels.numba_links import inlined, level_of_vote, part, varies

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


@inlined
def evaluate_votes(
    link, problem, user, consensus, total, system, slope, bent, with_sharpness, chunk, sums
):
    """Add up the first and second derivatives of one user's losses by slot; return the loss.

    ``total`` are the user's scores and traits in the margin, consensus and deviation together, and
    the threshold last; ``slope`` and ``bent`` are filled, and so is how votes would bend by
    sharpness and each item together, and by sharpness alone. What habits of items get is added to
    ``sums``.
    """
    edges, coordinate = problem.edges, problem.slots.coordinate
    habit = index(problem.slots.first_habit)
    first_slot = index(problem.slots.start[user])
    n_columns = index(edges.columns.shape[0])
    at = index(problem.slots.threshold[user]) - first_slot
    trait, threshold = at - n_columns, total[at]
    has_sharpness = len(problem.reference) > 0
    for k in range(at + ONE):
        slope[k] = 0.0
        bent[k] = 0.0
        with_sharpness[k] = 0.0
    value = 0.0
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
                    edge = first_edge + k
                    left, right = coordinate[edges.first[edge]], coordinate[edges.second[edge]]
                    added = consensus[habit + index(left)] + consensus[habit + index(right)]
                    chunk[k + index(10) * CHUNK] += added
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
            slope[at] += chunk[k + index(6) * CHUNK]
            bent[at] += chunk[k + index(9) * CHUNK]
            system.curvature[0, edge] = mm
            system.curvature[1, edge] = chunk[k + index(8) * CHUNK]
            system.curvature[2, edge] = chunk[k + index(9) * CHUNK]
        for c in range(n_columns):
            for k in range(size):
                column = edges.columns[c, first_edge + k]
                slope[trait + c] += column * chunk[k + index(5) * CHUNK]
                bent[trait + c] += column * column * chunk[k + index(7) * CHUNK]
        if has_sharpness:
            for k in range(size):
                first, second = index(edges.first[first_edge + k]), index(edges.second[first_edge + k])
                apart = problem.reference[first] - problem.reference[second]
                mixed = chunk[k + index(7) * CHUNK] * apart
                with_sharpness[first - first_slot] += mixed
                with_sharpness[second - first_slot] -= mixed
                with_sharpness[at] += mixed * apart
        if habit > 0:
            for k in range(size):
                edge = first_edge + k
                left = habit + index(coordinate[edges.first[edge]])
                right = habit + index(coordinate[edges.second[edge]])
                by_threshold, tt = chunk[k + index(6) * CHUNK], chunk[k + index(9) * CHUNK]
                sums[0][left] += by_threshold
                sums[0][right] += by_threshold
                sums[1][left] += tt
                sums[1][right] += tt
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


@part
def product_of_terms(problem, user, at, curvature, direction, total, bent, product):
    """Do the same with traits in the margin and habits in the threshold."""
    edges, coordinate = problem.edges, problem.slots.coordinate
    first_slot, habit = index(problem.slots.start[user]), index(problem.slots.first_habit)
    n_columns = index(edges.columns.shape[0])
    trait, by_thresholds = at - n_columns, 0.0
    for edge in range(index(edges.start[user]), index(edges.start[user + 1])):
        first, second = index(edges.first[edge]), index(edges.second[edge])
        i, j = first - first_slot, second - first_slot
        margin, threshold = total[i] - total[j], total[at]
        for c in range(n_columns):
            margin += edges.columns[c, edge] * total[trait + c]
        left, right = habit + index(coordinate[first]), habit + index(coordinate[second])
        if habit > 0:
            threshold += direction[left] + direction[right]
        mm, mt, tt = curvature[0, edge], curvature[1, edge], curvature[2, edge]
        by_margin = mm * margin + mt * threshold
        by_threshold = mt * margin + tt * threshold
        bent[i] += by_margin
        bent[j] -= by_margin
        for c in range(n_columns):
            bent[trait + c] += edges.columns[c, edge] * by_margin
        by_thresholds += by_threshold
        if habit > 0:
            product[left] += by_threshold
            product[right] += by_threshold
    bent[at] = by_thresholds
