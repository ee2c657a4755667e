"""Whether a user deviates by more than is ordinary: one trait after another, then the taste."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from isplitlbi.abnormal.matrices import Precision, diagonals, inverse, times
from isplitlbi.typing import Floats

__all__ = [
    "DEVIATION_VARIANCE",
    "SLOPES",
    "TINY",
    "Reading",
    "Rest",
    "Surprise",
    "evidence_of_more",
    "read_off",
    "rows_of_traits",
    "surprise_of",
]

# By how much more than ordinary a user deviates who stands out: a variance in logits; of the slope,
# relative to it.
DEVIATION_VARIANCE = 1.0
TINY = 1e-12
FEWEST_TIES = 0.02  # as a share of those expected
# At which slopes it is known how far votes go with the consensus; the first is that of all.
SLOPES = np.array([1.0, 1.35, 1.7, 2.2, 3.0, 5.0, 10.0])


class Rest(NamedTuple):
    """What is left of slopes once ordinary deviations took their share."""

    rows: Floats  # (n, width, width) by which slopes are multiplied to leave the rest
    bend: Floats  # (n, width, width) how votes bend
    size: Floats  # (n,) by how much votes narrow the deviations down: a logarithm

    @classmethod
    def of(cls, ordinary: Precision, bend: Floats) -> Rest:
        """Find it for deviations of some covariance, and votes that bend so much."""
        after, size = inverse(ordinary.with_votes(bend))
        unit = ordinary.unit
        is_still = unit == 0.0  # where nobody deviates
        if ordinary.known is None and not np.any(np.einsum("nii->ni", bend)[is_still]):
            unit = np.where(is_still, 1.0, unit)
            rows = after * unit[:, None, :] / unit[:, :, None]  # the same, without a product
        else:
            rows = (bend * -unit[:, None, :]) @ (after * unit[:, None, :])
            np.einsum("nii->ni", rows)[:] += 1.0
        return cls(rows, bend, ordinary.size + size)

    @property
    def variances(self) -> Floats:
        """The variance of the rest: (n, width)."""
        return np.asarray(np.einsum("nij,nij->ni", self.rows, self.bend))


class Reading(NamedTuple):
    """What the numbers of the slope mean: those of a table, user by user, and normal ones for them.

    Who always votes with the consensus cannot do so more often, however sharp: the number of a
    slope of 3 is not much larger than that of 2. What it is worth is the root of the gain in
    likelihood, from the slope that an ordinary user may have to the one that fits best. Who votes
    with the consensus less than others has numbers that are large enough as they are.
    """

    number: Floats  # (n, n_slopes)
    root: Floats  # (n, n_slopes)

    @classmethod
    def of(cls, agreed: Floats, known: Floats, variance: float) -> Reading:
        """Make the table.

        ``agreed``, (n, n_slopes), is what is expected of a user of every slope, in units in which
        it grows like the slope itself around an ordinary one; ``known`` is how surely a slope is
        known beside what is ordinary, ``variance`` what is ordinary.
        """
        away, variance = SLOPES - 1.0, max(variance, TINY)
        known = np.maximum(known, TINY)[:, None]
        information = 1.0 / np.maximum(1.0 / known - variance, 1e-6 / known)
        means = 0.5 * (agreed[:, 1:] + agreed[:, :-1]) * np.diff(away)
        area = np.pad(np.cumsum(means, axis=1), ((0, 0), (1, 0)))
        free = agreed * away - area
        # The best slope of an ordinary user lies where votes and prior pull alike: between two of
        # the table, where what is agreed is a straight line.
        held = agreed + away / (variance * information)
        after = np.sum(agreed[:, :, None] > held[:, None, :], axis=2).clip(1, len(SLOPES) - 1)
        start, end = (np.take_along_axis(held, each, axis=1) for each in (after - 1, after))
        part = np.clip((agreed - start) / np.maximum(end - start, TINY), 0.0, 1.0)
        step = part * np.diff(away)[after - 1]
        best = away[after - 1] + step
        low, high = (np.take_along_axis(agreed, each, axis=1) for each in (after - 1, after))
        below = np.take_along_axis(area, after - 1, axis=1) + step * (
            low + 0.5 * part * (high - low)
        )
        bound = agreed * best - below - 0.5 * best**2 / (variance * information)
        gain = np.maximum(2.0 * information * (free - bound), 0.0)
        return cls(agreed * np.sqrt(known), np.sqrt(gain))

    @classmethod
    def as_they_are(cls, n_users: int) -> Reading:
        """Take numbers for what they are."""
        return cls(*np.tile([-1.0, 1.0], (2, n_users, 1)))

    def read(self, numbers: Floats) -> Floats:
        """Return what a number of every user means."""
        return np.array([
            read_off(each, *mine) for each, *mine in zip(numbers, *self, strict=True)
        ])  # fmt: skip


def read_off(numbers: Floats, known: Floats, roots: Floats) -> Floats:
    """Look numbers of one user up in a table; beyond its ends they go on as they are."""
    beyond = np.maximum(numbers - known[-1], 0.0) + np.minimum(numbers - known[0], 0.0)
    return np.asarray(np.interp(numbers, known, roots) + beyond)


class Surprise(NamedTuple):
    """Whether deviations larger than ordinary would explain votes better, user by user.

    One trait after another is asked about, then the taste: a user who stands out in one way is not
    to be lost among all the others.
    """

    rows: Floats  # (n, width, width): what slopes are multiplied by
    known: Floats  # (n, n_traits) how surely each trait is known beside what is ordinary
    weigh: Floats  # (n, n_items, n_items): the statistic of taste weighs what is left by it
    mean: Floats  # (n,) of the statistic of taste, if a user is ordinary
    freedom: Floats  # (n,) and as how many squares it varies
    slope: Reading  # what the numbers of the first trait mean

    @classmethod
    def of(
        cls, rest: Rest, n_traits: int, varies: Floats | None = None,
        agreed: Floats | None = None, variance: float = 0.0,
    ) -> Surprise:  # fmt: skip
        """Compare ordinary deviations with those of `DEVIATION_VARIANCE` more.

        Slopes of votes with different weights vary otherwise than votes bend. For ``agreed`` and
        ``variance`` see `Reading`.
        """
        own = rest.rows[:, n_traits:] @ rest.bend[:, :, n_traits:]
        one = np.eye(own.shape[-1])
        weigh, _ = inverse(0.5 * (own + np.swapaxes(own, 1, 2)) + one / DEVIATION_VARIANCE)
        if varies is None:
            known = rest.variances[:, :n_traits]
            share = one - weigh / DEVIATION_VARIANCE
        else:
            whole = rest.rows @ varies @ np.swapaxes(rest.rows, 1, 2)
            known = np.einsum("nii->ni", whole)[:, :n_traits]
            share = weigh @ whole[:, n_traits:, n_traits:]
        mean = np.einsum("nii->n", share)
        freedom = mean**2 / np.maximum(np.einsum("nij,nji->n", share, share), TINY)
        slope = Reading.as_they_are(len(own))
        if agreed is not None:
            first = rest.variances[:, 0]
            slope = Reading.of(agreed, first**2 / np.maximum(known[:, 0], TINY), variance)
        return cls(rest.rows, known, weigh, mean, freedom, slope)

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
        traits[:, 0] = self.slope.read(traits[:, 0])
        return surprise_of(traits, taste, self.mean, self.freedom, np.sqrt(self.known[:, -1]))


def rows_of_traits(ordinary: Precision, bend: Floats, n_traits: int) -> Floats:
    """Return the rows of `Rest` for traits alone, the first directions: far less work than all."""
    both, unit = ordinary.with_votes(bend), ordinary.unit[:, :, None]
    rows = np.swapaxes(-unit * np.linalg.solve(both, unit * bend[:, :, :n_traits]), 1, 2)
    np.einsum("nii->ni", rows[:, :, :n_traits])[:] += 1.0
    return np.asarray(rows, dtype=np.float64)


def evidence_of_more(
    rows: Floats, ordinary: Floats, usual: Precision, bend: Floats, pull: Floats,
    varies: Floats | None = None,
) -> Floats:  # fmt: skip
    """Return how much more likely slopes are if one trait, or taste, is larger: a logarithm.

    ``rows`` are those of the traits, ``usual`` is the inverse of what is ordinary. Slopes of votes
    with different weights vary otherwise than votes bend.
    """
    n_traits = rows.shape[1]
    explained = bend[:, :n_traits] if varies is None else rows @ varies
    known = np.einsum("nij,nij->ni", explained, rows)
    more = DEVIATION_VARIANCE / (1.0 + DEVIATION_VARIANCE * known)
    of_traits = times(rows, pull) ** 2 * more + np.log(more / DEVIATION_VARIANCE)
    larger = np.zeros(pull.shape)
    larger[:, n_traits:] = DEVIATION_VARIANCE
    of_taste = _worth(Precision.of(ordinary + diagonals(larger)), bend, pull)
    of_taste -= _worth(usual, bend, pull)
    found = 0.5 * np.column_stack([of_traits, of_taste])
    return np.asarray(np.logaddexp.reduce(found, axis=1) - np.log(found.shape[1]))


def _worth(prior: Precision, bend: Floats, pull: Floats) -> Floats:
    """Return twice the logarithm of how much likelier slopes are with such deviations than without.

    The slopes are one more row of the matrix that is factorised: its last row solves for them.
    """
    n_users, width = pull.shape
    both = np.empty((n_users, width + 1, width + 1))
    both[:, :width, :width] = prior.with_votes(bend)
    both[:, width, :width] = prior.unit * pull
    # No matrix of correlations is larger than its width in any direction: this is large enough.
    both[:, width, width] = 1.0 + width * np.sum(both[:, width, :width] ** 2, axis=1)
    root = np.linalg.cholesky(both)  # which looks below the diagonal alone
    sides = np.einsum("nii->ni", root)[:, :width]
    solved = np.sum(root[:, width, :width] ** 2, axis=1)
    return np.asarray(solved - 2.0 * np.sum(np.log(sides), axis=1) - prior.size)


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
    of_taste = -scipy.special.log_ndtr(-(root - 1.0 + part) / np.sqrt(part))
    unit = np.maximum(of_threshold, TINY**0.5)
    threshold = unit * np.log(np.maximum(1.0 + traits[..., -1] / unit, FEWEST_TIES))
    most = np.maximum(np.abs(traits[..., :-1]).max(axis=-1, initial=0.0), np.abs(threshold))
    of_traits = -scipy.special.log_ndtr(-most) - np.log(2.0)
    return np.asarray(np.maximum(np.where(mean > TINY, of_taste, 0.0), of_traits))
