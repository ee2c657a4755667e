"""What the compiled loops do with the votes of one user."""

from __future__ import annotations

import numpy as np

from isplitlbi.kernels.numba_links import inlined, part

# Indices are unsigned: at every access numba would ask a signed one whether it is negative.
index = np.uint64
ONE = index(1)

# Votes that are evaluated together: their numbers lie in one small array, column after
# column, so that the compiler knows that they do not overlap and evaluates several at once.
CHUNK, LANES = index(128), index(4)


@part
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


@inlined
def evaluate_votes(link, problem, user, total, system, slope, bent, chunk):
    """Add up the first and second derivatives of one user's losses by slot; return the loss.

    ``total`` are the user's scores and traits in the margin, consensus and deviation together, and
    the threshold last; ``slope`` and ``bent`` are filled.
    """
    edges = problem.edges
    first_slot = index(problem.slots.start[user])
    n_columns = index(edges.columns.shape[0])
    at = index(problem.slots.threshold[user]) - first_slot
    trait, threshold = at - n_columns, total[at]
    for k in range(at + ONE):
        slope[k] = 0.0
        bent[k] = 0.0
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
    return value


@part
def product_of_columns(edges, user, first_slot, at, curvature, total, bent):
    """Add what traits in the margin add to the product of one user; return the threshold's part."""
    n_columns = index(edges.columns.shape[0])
    trait, threshold, by_threshold = at - n_columns, total[at], 0.0
    for edge in range(index(edges.start[user]), index(edges.start[user + 1])):
        i, j = index(edges.first[edge]) - first_slot, index(edges.second[edge]) - first_slot
        of_traits = 0.0
        for c in range(n_columns):
            of_traits += edges.columns[c, edge] * total[trait + c]
        mm, mt = curvature[0, edge], curvature[1, edge]
        by_margin = mm * (total[i] - total[j] + of_traits) + mt * threshold
        for c in range(n_columns):
            bent[trait + c] += edges.columns[c, edge] * by_margin
        bent[i] += mm * of_traits
        bent[j] -= mm * of_traits
        by_threshold += mt * of_traits
    return by_threshold
