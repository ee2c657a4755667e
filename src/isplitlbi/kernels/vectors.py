"""What Newton's method does with vectors, in plain NumPy: the meaning of the compiled ones.

Each is a function of its own, and not a line of NumPy where it is needed, because numba compiles
every such line anew, with all that NumPy would say of shapes that do not fit.
"""

from __future__ import annotations

import numpy as np

from isplitlbi.typing import Floats

__all__ = ["VECTORS", "add", "added", "divided", "dot", "fill", "freed", "times", "total"]


def fill(out: Floats, value: float) -> None:
    """Put one value everywhere."""
    out[:] = value


def add(out: Floats, length: float, direction: Floats) -> None:
    """Add a multiple of another vector, in place."""
    out += length * direction


def added(base: Floats, length: float, direction: Floats) -> Floats:
    """Return the sum of a vector and a multiple of another."""
    return base + length * direction


def times(one: Floats, other: Floats) -> Floats:
    """Return the product, place by place."""
    return one * other


def divided(one: Floats, other: Floats) -> Floats:
    """Return the quotient, place by place."""
    return one / other


def freed(free: Floats, one: Floats, other: Floats, otherwise: float) -> Floats:
    """Return the difference of two vectors where something is free to move, else a value."""
    return (one - other) * free + otherwise * (1.0 - free)


def dot(one: Floats, other: Floats) -> float:
    """Return the sum of the products, place by place."""
    # Not BLAS, whose threads may change the last bits, and wait for each other.
    return float(np.sum(one * other))


def total(values: Floats) -> float:
    """Return the sum."""
    return float(np.sum(values))


VECTORS = (fill, add, added, times, divided, freed, dot, total)
