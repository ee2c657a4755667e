"""Small symmetric matrices of many users at once: (n, width, width) each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isplitlbi.typing import Floats, Mask

__all__ = ["Precision", "diagonals", "inverse", "size", "times"]

SMALL = 12  # directions; larger matrices are inverted by halves


def diagonals(values: Floats) -> Floats:
    """Return matrices with these on their diagonals."""
    matrices = np.zeros((*values.shape, values.shape[1]))
    np.einsum("nii->ni", matrices)[:] = values
    return matrices


def times(matrices: Floats, vectors: Floats) -> Floats:
    """Multiply each vector, (n, width), by the matrix of its user."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def size(matrices: Floats) -> Floats:
    """Return the logarithms of the determinants of positive definite matrices."""
    sides = np.einsum("nii->ni", np.linalg.cholesky(matrices))
    return np.asarray(2.0 * np.sum(np.log(sides), axis=1))


def inverse(matrices: Floats) -> tuple[Floats, Floats]:
    """Invert positive definite matrices; return the logarithms of their determinants as well.

    By halves nearly all of the work is products, which are far faster than solving is.
    """
    width = matrices.shape[-1]
    if width <= SMALL:
        return np.linalg.inv(matrices).astype(np.float64, copy=False), size(matrices)
    half = width // 2
    corner = matrices[:, :half, half:]
    first, total = inverse(matrices[:, :half, :half])
    moved = first @ corner
    last, more = inverse(matrices[:, half:, half:] - np.swapaxes(corner, 1, 2) @ moved)
    between = moved @ last
    found = np.empty_like(matrices)
    np.add(first, between @ np.swapaxes(moved, 1, 2), out=found[:, :half, :half])
    np.negative(between, out=found[:, :half, half:])
    np.negative(np.swapaxes(between, 1, 2), out=found[:, half:, :half])
    found[:, half:, half:] = last
    return found, total + more


class Precision(NamedTuple):
    """Inverses of covariances, in units in which each variance is 1, as far as there is one."""

    known: Floats | None  # (n, width, width); none where all deviations are independent
    size: Floats  # (n,) logarithms of the determinants of the covariances, in these units
    unit: Floats  # (n, width)

    @classmethod
    def of(cls, covariance: Floats) -> Precision:
        """Invert covariances."""
        variance = np.einsum("nii->ni", covariance)
        unit = np.sqrt(variance)
        if np.count_nonzero(covariance) == np.count_nonzero(variance):
            return cls(None, np.zeros(len(unit)), unit)
        share = np.where(unit > 0.0, 1.0 / np.where(unit > 0.0, unit, 1.0), 0.0)
        scaled = share[:, :, None] * covariance * share[:, None, :]
        np.einsum("nii->ni", scaled)[:] = 1.0
        return cls(*inverse(scaled), unit)

    @classmethod
    def joined(cls, parts: Sequence[Precision]) -> Precision:
        """Put those of several users together; deviations are independent of all, or of none."""
        known, size, unit = zip(*parts, strict=True)
        whole = None if known[0] is None else np.concatenate(known)
        return cls(whole, np.concatenate(size), np.concatenate(unit))

    def some(self, which: Mask) -> Precision:
        """Return those of some users."""
        known = None if self.known is None else self.known[which]
        return Precision(known, self.size[which], self.unit[which])

    def with_votes(self, bend: Floats) -> Floats:
        """Return how these and votes bend together, in the units."""
        both = np.asarray(self.unit[:, :, None] * bend)
        both *= self.unit[:, None, :]
        if self.known is None:
            np.einsum("nii->ni", both)[:] += 1.0
        else:
            both += self.known
        return both

    def cost(self, deviation: Floats) -> Floats:
        """Return minus the logarithm of how likely deviations are beside none; (n, width)."""
        scaled = deviation / np.where(self.unit > 0.0, self.unit, 1.0)
        weighed = scaled if self.known is None else times(self.known, scaled)
        return np.asarray(0.5 * np.sum(scaled * weighed, axis=1))
