"""What Newton's method does with vectors, compiled: the twins of `vectors`."""

from __future__ import annotations

import numpy as np

from isplitlbi.kernels.numba_compiling import part


@part
def fill(out, value):
    for k in range(len(out)):
        out[k] = value


@part
def add(out, length, direction):
    for k in range(len(out)):
        out[k] += length * direction[k]


@part
def added(base, length, direction):
    found = np.empty(len(base))
    for k in range(len(base)):
        found[k] = base[k] + length * direction[k]
    return found


@part
def times(one, other):
    found = np.empty(len(one))
    for k in range(len(one)):
        found[k] = one[k] * other[k]
    return found


@part
def divided(one, other):
    found = np.empty(len(one))
    for k in range(len(one)):
        found[k] = one[k] / other[k]
    return found


@part
def freed(free, one, other, otherwise):
    found = np.empty(len(one))
    for k in range(len(one)):
        found[k] = (one[k] - other[k]) * free[k] + otherwise * (1.0 - free[k])
    return found


@part
def dot(one, other):
    total = 0.0
    for k in range(len(one)):
        total += one[k] * other[k]
    return total


@part
def total(values):
    found = 0.0
    for k in range(len(values)):
        found += values[k]
    return found


VECTORS = (fill, add, added, times, divided, freed, dot, total)
