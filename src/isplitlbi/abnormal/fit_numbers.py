"""A few numbers for every user, by Newton's method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isplitlbi.model.links import Link
from isplitlbi.runtime.base import Runtime
from isplitlbi.typing import Floats, Indices

MOST_STEPS, MOST_HALVINGS, ACCURACY = 50, 30, 1e-3  # in nats


def fit_numbers(
    link: Link,
    counts: Floats,
    user: Indices,
    columns: Floats,
    start: Floats,
    free: tuple[int, ...],
    variance: Floats,
    delta: float,
    runtime: Runtime,
) -> tuple[Floats, Floats]:
    """Fit some numbers of all users at once; return them, and the log-likelihood of every user.

    Parameters
    ----------
    counts : (n_rows, 3)
        Sums of weights of the three outcomes.
    user : (n_rows,)
        Whose votes these are.
    columns : (n_numbers - 1, n_rows)
        What each number but the last counts for in the margin; the last is the threshold.
    start : (n_users, n_numbers)
        Where to start from, and the mean of the prior.
    free
        Which of the numbers are fitted, in order; the others stay.
    variance : (n_numbers,)
        Of the prior.
    delta
        Smallest threshold.
    """
    problem = _Numbers(link, counts.T, user, columns, start, list(free), variance)
    last, at = start.shape[1] - 1, start.copy()
    value, gradient, bend = problem.evaluate(at)
    diagonal = np.eye(len(free), dtype=np.bool_)
    for _ in range(MOST_STEPS):
        held = np.zeros(gradient.shape, dtype=np.bool_)
        if last in free:
            held[:, -1] = (at[:, last] <= delta) & (gradient[:, -1] > 0)
        matrix = np.where((held[:, :, None] | held[:, None, :]) & ~diagonal, 0.0, bend)
        downhill = np.where(held, 0.0, gradient)[:, :, None]
        step = np.zeros_like(at)
        step[:, problem.free] = -np.linalg.solve(matrix, downhill)[:, :, 0]
        length = np.ones(len(at))
        for _ in range(MOST_HALVINGS):
            trial = at + length[:, None] * step
            trial[:, last] = np.maximum(trial[:, last], delta)
            new = problem.evaluate(trial)
            worse = new[0] > value + 1e-12 * np.abs(value)
            if not worse.any():
                break
            length[worse] *= 0.5
        gained = np.max(value - new[0], initial=0.0)
        at, (value, gradient, bend) = trial, new
        # Everybody takes as many steps, wherever the others are.
        if not runtime.any(not gained <= ACCURACY):
            break
    return at, problem.log_likelihood(at)


class _Numbers(NamedTuple):
    """Minus the posterior of a few numbers per user."""

    link: Link
    counts: Floats  # (3, n_rows)
    user: Indices
    columns: Floats
    centre: Floats
    free: list[int]
    variance: Floats

    def evaluate(self, at: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, gradient and curvature in what is free, by user."""
        loss, by_margin, by_threshold, mm, mt, tt = self.link.vote_terms(
            *self._margin_and_threshold(at), *self.counts
        )
        away, variance = (at - self.centre)[:, self.free], self.variance[self.free]
        gradient, bend = away / variance, np.empty((len(at), len(self.free), len(self.free)))
        in_margin = dict(enumerate(self.columns))  # all but the threshold
        for i, one in enumerate(self.free):
            slopes = by_margin * in_margin[one] if one in in_margin else by_threshold
            gradient[:, i] += self._sum_by_user(slopes)
            for j, other in enumerate(self.free[: i + 1]):
                both = [in_margin[each] for each in (one, other) if each in in_margin]
                terms = (tt, mt, mm)[len(both)] * np.prod(both, axis=0)
                bend[:, i, j] = bend[:, j, i] = self._sum_by_user(terms)
            bend[:, i, i] += 1.0 / variance[i]
        value = self._sum_by_user(loss) + 0.5 * np.sum(away**2 / variance, axis=1)
        return value, gradient, bend

    def log_likelihood(self, at: Floats) -> Floats:
        """Return the log-likelihood of the votes alone, by user."""
        log_probability = self.link.log_probabilities(*self._margin_and_threshold(at))
        return self._sum_by_user(np.sum(self.counts.T * log_probability, axis=1))

    def _margin_and_threshold(self, at: Floats) -> tuple[Floats, Floats]:
        *numbers, threshold = at[self.user].T
        margin = sum(number * column for number, column in zip(numbers, self.columns, strict=True))
        return np.asarray(margin), threshold

    def _sum_by_user(self, values: Floats) -> Floats:
        return np.bincount(self.user, values, len(self.centre)).astype(np.float64, copy=False)
