"""Scores and thresholds by maximum likelihood with a ridge: what can be fitted without a path.

One problem serves for the consensus (one score per item, one threshold) and for every user alone
(all users' scores and thresholds side by side, which do not touch each other).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import coo_array
from scipy.sparse.linalg import LinearOperator, cg

from isplitlbi.data.comparisons import Comparisons, tally
from isplitlbi.model.links import Link
from isplitlbi.runtime.blocks import Exchange, total
from isplitlbi.typing import Floats, Places

# Keeps the score of an item that always wins finite and centres the scores; far too wide to matter
# otherwise.
SCORE_VARIANCE = 1e4

# A step shorter than this is the last: Newton's method squares the error.
NEWTON_ACCURACY = 1e-7
BOOTSTRAP_ACCURACY = 1e-2  # far below the spread that is looked for
MOST_NEWTON_STEPS = 200
MOST_HALVINGS = 40  # of one such step
# Beyond, conjugate gradients are as fast as factors, and do not set all cores to work.
MOST_DENSE = 128


def fit_consensus(
    votes: Comparisons,
    link: Link,
    delta: float = 1e-3,
    variance: float = SCORE_VARIANCE,
    exchange: Exchange | None = None,
) -> Floats:
    """Fit one score per item and one threshold, by maximum likelihood, as if all users were one.

    Votes collapse to counts per pair, so few that NumPy needs no compiled loop. Scores are held
    towards zero by a prior of that variance, which hardly matters by default. With an exchange,
    other machines hold other votes, and all find the consensus of all.
    """
    pairs, counts = tally(votes.left, votes.right, votes.outcome, votes.weight, votes.n_items)
    problem = _of_consensus(votes.n_items, pairs, counts, link, delta, variance, exchange)
    return problem.fit(np.append(problem.centre[:-1], max(1.0, delta)))


def bootstrap_consensus(
    votes: Comparisons, link: Link, n_draws: int, seed: int = 0, delta: float = 1e-3
) -> Floats:
    """Fit the consensus of users drawn with replacement, again and again; a row for each draw."""
    rng, n_items, edges = np.random.default_rng(seed), votes.n_items, votes.edges
    coordinate = votes.slots.coordinate.astype(np.int64)
    keys = coordinate[edges.first] * n_items + coordinate[edges.second]
    pairs, place = np.unique(keys, return_inverse=True)
    start, owner = fit_consensus(votes, link, delta), edges.owner
    voters = np.flatnonzero(votes.votes_per_user)
    drawn = np.empty((n_draws, n_items + 1))
    for row in drawn:
        times = np.bincount(rng.choice(voters, len(voters)), minlength=votes.n_users)[owner]
        first_wins, ties, second_wins = (
            np.bincount(place, times * counts, len(pairs))
            for counts in (edges.first_wins, edges.ties, edges.second_wins)
        )
        problem = _of_consensus(
            n_items, pairs, (first_wins, ties, second_wins), link, delta, SCORE_VARIANCE
        )
        row[:] = problem.fit(start, BOOTSTRAP_ACCURACY)
    return drawn


def _of_consensus(
    n_items: int,
    pairs: NDArray[np.int64],
    counts: tuple[Any, Any, Any],
    link: Link,
    delta: float,
    variance: float,
    exchange: Exchange | None = None,
) -> Ridge:
    precision = np.full(n_items + 1, 1.0 / variance)
    precision[-1] = 0.0
    places = Coordinates(*np.divmod(pairs, n_items), np.full(len(pairs), n_items))
    centre = np.zeros(n_items + 1)
    bounded = np.array([n_items])
    return Ridge(places, counts, link, centre, precision, bounded, delta, True, exchange)


def fit_each_user(
    votes: Comparisons,
    link: Link,
    ridge: float,
    consensus: Floats,
    delta: float = 1e-3,
    start: Floats | None = None,
) -> Floats:
    """Fit every user's own scores and threshold, one number per slot, as if nobody else had voted.

    The ridge holds scores and thresholds towards those of the consensus that is given.
    """
    edges, slots = votes.edges, votes.slots
    centre = consensus[slots.coordinate]
    places = Coordinates(edges.first, edges.second, slots.threshold[edges.owner])
    counts = (edges.first_wins, edges.ties, edges.second_wins)
    precision = np.full(len(centre), ridge)
    problem = Ridge(places, counts, link, centre, precision, slots.threshold, delta)
    return problem.fit(centre if start is None else start)


class Coordinates(NamedTuple):
    """Per row of counts, where the scores of both items and the threshold stand in the unknown."""

    first: Places
    second: Places
    threshold: Places


@dataclass(frozen=True)
class Ridge:
    """A convex problem: the loss of counted votes, and a ridge around a centre."""

    places: Coordinates
    counts: tuple[Floats, Floats, Floats]
    link: Link
    centre: Floats
    precision: Floats
    bounded: Places  # coordinates that are thresholds, at least delta
    delta: float
    is_centred: bool = False  # whether all but the last are scores around zero
    exchange: Exchange | None = None  # with machines that hold other counts for the same unknown

    def fit(self, start: Floats, accuracy: float = NEWTON_ACCURACY) -> Floats:
        """Minimise by Newton's method with a line search, thresholds at their bound held there."""
        point = start.copy()
        point[self.bounded] = np.maximum(point[self.bounded], self.delta)
        value, gradient, curvature = self._at(point)
        for _ in range(MOST_NEWTON_STEPS):
            free = np.ones(len(point), dtype=np.bool_)
            free[self.bounded] = (point[self.bounded] > self.delta) | (gradient[self.bounded] < 0.0)
            step = curvature.solve(-gradient * free, free, min(0.1 * accuracy, 1e-2))
            if self.is_centred:  # by the prior, but rounding moves the scores
                step[:-1] -= np.mean(step[:-1])
            for halvings in range(MOST_HALVINGS):
                trial = point + 0.5**halvings * step
                trial[self.bounded] = np.maximum(trial[self.bounded], self.delta)
                new = self._at(trial)
                slope = float(gradient @ (point - trial))
                # Near the solution the gain drowns in rounding, and a full step is right.
                if value - new[0] >= 1e-4 * slope or slope <= 1e-12 * abs(value):
                    break
            moved = float(np.max(np.abs(trial - point)))
            point, (value, gradient, curvature) = trial, new
            if moved <= accuracy:
                break
        return point

    def _at(self, point: Floats) -> tuple[float, Floats, Curvature]:
        first, second, threshold = self.places
        margin = point[first] - point[second]
        loss, by_margin, by_threshold, *curvature = self.link.vote_terms(
            margin, point[threshold], *self.counts
        )
        value, of_first, of_second, of_threshold = total(
            self.exchange,
            float(np.sum(loss)),
            np.bincount(first, by_margin, len(point)),
            np.bincount(second, by_margin, len(point)),
            np.bincount(threshold, by_threshold, len(point)),
        )
        away = point - self.centre
        value += 0.5 * float(self.precision @ away**2)
        gradient = self.precision * away + of_first - of_second + of_threshold
        return value, gradient, Curvature(self.places, self.precision, self.exchange, *curvature)


class Curvature(NamedTuple):
    """The second derivatives of such a problem, row by row."""

    places: Coordinates
    precision: Floats
    exchange: Exchange | None
    by_margin: Floats
    mixed: Floats
    by_threshold: Floats

    def solve(self, right: Floats, free: NDArray[np.bool_], accuracy: float) -> Floats:
        """Solve for a Newton direction; a coordinate that is not free stays where it is."""
        (first, second, threshold), width = self.places, len(right)
        of_threshold, of_first, of_second = total(
            self.exchange,
            np.bincount(threshold, self.by_threshold, width),
            np.bincount(first, self.by_margin, width),
            np.bincount(second, self.by_margin, width),
        )
        diagonal = self.precision + of_threshold + of_first + of_second
        free = free & (diagonal > 0.0)
        diagonal = np.where(free, diagonal, 1.0)
        held = free.astype(np.float64)
        off_diagonal = np.concatenate([-self.by_margin, self.mixed, -self.mixed])
        rows, columns = (
            np.concatenate([first, first, second]),
            np.concatenate([second, threshold, threshold]),
        )
        half = coo_array(
            (off_diagonal * held[rows] * held[columns], (rows, columns)), shape=(width, width)
        )
        if width <= MOST_DENSE + 1:
            (entries,) = total(self.exchange, half.toarray().ravel())
            dense = entries.reshape(width, width)
            dense = dense + dense.T
            np.fill_diagonal(dense, diagonal)
            return np.asarray(cho_solve(cho_factor(dense, check_finite=False), right * held))
        one = half.tocsr()
        other = one.T.tocsr()
        shape = (width, width)

        def multiply(x: Floats) -> Floats:
            (product,) = total(self.exchange, one @ x + other @ x)
            return np.asarray(product + diagonal * x)

        solution, _ = cg(
            LinearOperator(shape, matvec=multiply, dtype=np.float64),
            right * held,
            rtol=accuracy,
            maxiter=10 * width,
            M=LinearOperator(shape, matvec=lambda x: x / diagonal, dtype=np.float64),
        )
        return np.asarray(solution)
