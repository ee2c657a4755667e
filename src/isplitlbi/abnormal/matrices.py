"""Small symmetric matrices of many users at once: (n, width, width) each."""

from __future__ import annotations

import numpy as np

from isplitlbi.typing import Floats

__all__ = ["diagonals", "inverse", "precision", "size", "times"]

SMALL = 20  # directions; larger matrices are inverted by halves


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


def precision(covariance: Floats) -> tuple[Floats, Floats, Floats]:
    """Invert covariances, in units in which each variance is 1, as far as there is one.

    Returns the inverses, the logarithms of the determinants, and the units, (n, width).
    """
    variance = np.einsum("nii->ni", covariance)
    unit = np.sqrt(variance)
    if np.count_nonzero(covariance) == np.count_nonzero(variance):  # all are independent
        return np.broadcast_to(np.eye(unit.shape[1]), covariance.shape), np.zeros(len(unit)), unit
    share = np.where(unit > 0.0, 1.0 / np.where(unit > 0.0, unit, 1.0), 0.0)
    scaled = share[:, :, None] * covariance * share[:, None, :]
    np.einsum("nii->ni", scaled)[:] = 1.0
    return (*inverse(scaled), unit)
