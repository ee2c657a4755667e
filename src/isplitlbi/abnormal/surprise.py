"""Whether a user deviates by more than is ordinary: one trait after another, then the taste."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from isplitlbi.abnormal.matrices import inverse, precision
from isplitlbi.typing import Floats

__all__ = ["DEVIATION_VARIANCE", "TINY", "Rest", "Surprise", "surprise_of"]

# By how much more than ordinary a user deviates who stands out: a variance in logits; of the slope,
# relative to it.
DEVIATION_VARIANCE = 1.0
TINY = 1e-12
FEWEST_TIES = 0.02  # as a share of those expected


class Rest(NamedTuple):
    """What is left of slopes once ordinary deviations took their share: (n, width, width) each."""

    rows: Floats  # by which slopes are multiplied to leave the rest
    bend: Floats  # how votes bend
    size: Floats  # (n,) by how much votes narrow the deviations down: a logarithm

    @classmethod
    def of(cls, ordinary: Floats, bend: Floats) -> Rest:
        """Find it for deviations of some covariance, and votes that bend so much."""
        known, before, unit = precision(ordinary)
        after, size = inverse(known + unit[:, :, None] * bend * unit[:, None, :])
        rows = (bend * -unit[:, None, :]) @ (after * unit[:, None, :])
        np.einsum("nii->ni", rows)[:] += 1.0
        return cls(rows, bend, before + size)

    @property
    def known(self) -> Floats:
        """The variance of the rest."""
        return np.asarray(self.rows @ self.bend)

    @property
    def variances(self) -> Floats:
        """The diagonals of these: (n, width)."""
        return np.asarray(np.einsum("nij,nij->ni", self.rows, self.bend))


class Surprise(NamedTuple):
    """Whether deviations larger than ordinary would explain votes better, user by user.

    One trait after another is asked about, then the taste: a user who stands out in one way is not
    to be lost among all the others.
    """

    rows: Floats  # (n, width, width): what slopes are multiplied by
    known: Floats  # (n, n_traits) how surely each trait is known beside what is ordinary
    weigh: Floats  # (n, n_items, n_items): the statistic of taste weighs what is left by it
    cost: Floats  # (n,) what a larger variance of taste costs, in nats
    mean: Floats  # (n,) of the statistic of taste, if a user is ordinary
    freedom: Floats  # (n,) and as how many squares it varies

    @classmethod
    def of(cls, rest: Rest, n_traits: int, varies: Floats | None = None) -> Surprise:
        """Compare ordinary deviations with those of `DEVIATION_VARIANCE` more.

        Slopes of votes with different weights vary otherwise than votes bend.
        """
        own = rest.rows[:, n_traits:] @ rest.bend[:, :, n_traits:]
        one = np.eye(own.shape[-1])
        weigh, size = inverse(0.5 * (own + np.swapaxes(own, 1, 2)) + one / DEVIATION_VARIANCE)
        cost = 0.5 * (size + len(one) * np.log(DEVIATION_VARIANCE))
        if varies is None:
            known = rest.variances[:, :n_traits]
            share = one - weigh / DEVIATION_VARIANCE
        else:
            whole = rest.rows @ varies @ np.swapaxes(rest.rows, 1, 2)
            known = np.einsum("nii->ni", whole)[:, :n_traits]
            share = weigh @ whole[:, n_traits:, n_traits:]
        mean = np.einsum("nii->n", share)
        freedom = mean**2 / np.maximum(np.einsum("nij,nji->n", share, share), TINY)
        return cls(rest.rows, known, weigh, cost, mean, freedom)

    @property
    def _scale(self) -> Floats:
        """What makes the numbers of traits standard normal, by an ordinary user."""
        return np.where(self.known > TINY, 1.0 / np.sqrt(np.maximum(self.known, TINY)), 0.0)

    def _split(self, pull: Floats) -> tuple[Floats, Floats]:
        """Return the numbers of traits, and the statistic of taste."""
        left, n_traits = np.einsum("nij,nj->ni", self.rows, pull), self.known.shape[1]
        own = left[:, n_traits:]
        return left[:, :n_traits] * self._scale, np.einsum("ni,nij,nj->n", own, self.weigh, own)

    def roots(self) -> Floats:
        """Return rows: the first give the numbers of traits, the squares of the others taste."""
        n_traits = self.known.shape[1]
        roots = np.swapaxes(np.linalg.cholesky(self.weigh), 1, 2) @ self.rows[:, n_traits:]
        return np.concatenate([self.rows[:, :n_traits] * self._scale[:, :, None], roots], axis=1)

    def statistic(self, pull: Floats) -> Floats:
        """Return how surprising the most surprising of them is: minus the logarithm of a chance."""
        traits, taste = self._split(pull)
        return surprise_of(traits, taste, self.mean, self.freedom, np.sqrt(self.known[:, -1]))

    def evidence(self, pull: Floats) -> Floats:
        """Return the logarithm of how much more likely slopes are if one of them is larger."""
        traits, taste = self._split(pull)
        more = DEVIATION_VARIANCE * self.known
        of_traits = 0.5 * (traits**2 * more / (1.0 + more) - np.log1p(more))
        found = np.column_stack([of_traits, 0.5 * taste - self.cost])
        return np.asarray(np.logaddexp.reduce(found, axis=1) - np.log(found.shape[1]))


def surprise_of(
    traits: Floats,
    taste: Floats,
    mean: Floats | float,
    freedom: Floats | float,
    of_threshold: Floats | float,
) -> Floats:
    """Return minus the logarithm of the smallest chance of traits and a sum of squares.

    The cube root of a sum of squares is about normal (Wilson and Hilferty, 1931). So is the
    logarithm of a threshold, the last trait, and not how many ties there are: nobody can have fewer
    than none. ``of_threshold`` is how surely it is known, as a standard deviation.
    """
    part = 2.0 / (9.0 * np.maximum(freedom, TINY))
    root = np.cbrt(np.maximum(taste, 0.0) / np.maximum(mean, TINY))
    of_taste = -log_ndtr(-(root - 1.0 + part) / np.sqrt(part))
    unit = np.maximum(of_threshold, TINY**0.5)
    threshold = unit * np.log(np.maximum(1.0 + traits[..., -1] / unit, FEWEST_TIES))
    most = np.maximum(np.abs(traits[..., :-1]).max(axis=-1, initial=0.0), np.abs(threshold))
    of_traits = -log_ndtr(-most) - np.log(2.0)
    return np.asarray(np.maximum(np.where(mean > TINY, of_taste, 0.0), of_traits))
