"""Who does not vote like the consensus, with an error rate that holds.

For every user a score test of "votes like the consensus" against all ways of deviating at once: a
sharper or blunter scale, a side that is preferred, another tie threshold, another taste. Its
distribution is found by letting the consensus vote on that user's own pairs again and again, so
that the p-value is as good for three votes as for three thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gamma

from isplitlbi.abnormal.ballots import Ballots, Expectation
from isplitlbi.comparisons import Comparisons
from isplitlbi.links import Link
from isplitlbi.solvers import fit_consensus

Floats = NDArray[np.float64]

# The variance of deviations that the test looks for, in logits; of the slope, relative to it.
DEVIATION_VARIANCE = 1.0

# Users are drawn for in rounds, until this many draws were further out than the user's own votes,
# or the user is flagged. That needs many draws, since every look is another chance; fewer where a
# rough p-value says that there is no doubt.
ROUNDS = (100, 200, 1_000, 10_000)
LEAST_BEFORE_FLAG, LEAST_IF_CLEAR, CLEARLY = 1_000, 200, 1e-6
ENOUGH_BEYOND = 10
MOST_NUMBERS = 2**22  # random numbers at a time
SAME = 1e-4  # statistics that differ by less, relative to their size, are taken for equal

# The consensus is that of the users who are not clearly outside it: a p-value below this.
OUTSIDE = 1e-3
MOST_REFITS = 1

# Pairs on which somebody has more votes than this are drawn as counts, others one by one.
MANY_VOTES = 8


class Flags(NamedTuple):
    """The test of every user."""

    consensus: Floats  # what they were compared with: the consensus of the others who agree
    p_value: Floats  # nan for users without votes
    q_value: Floats  # Benjamini-Hochberg
    flagged: NDArray[np.bool_]
    votes_needed: NDArray[np.int64]  # 0 where there are enough votes to be flagged at all


def find_flags(
    votes: Comparisons,
    link: Link,
    consensus: Floats,
    *,
    fdr: float = 0.05,
    seed: int = 0,
    n_threads: int = 1,
    delta: float = 1e-3,
    progress: Callable[[float], None] | None = None,
) -> Flags:
    """Test every user, and flag those below a false discovery rate.

    Parameters
    ----------
    votes, link
        The votes, and the link of the model.
    consensus
        A first consensus, such as the path's, which abnormal users do not pull much.
    fdr
        Expected share of users flagged wrongly among those flagged.
    seed
        Seed of the draws; every user has draws of their own.
    n_threads
        Threads; the result does not depend on them.
    delta
        Smallest tie threshold.
    progress
        Called now and then with the share of the work done.
    """
    tell = progress or (lambda share: None)
    ballots = Ballots.of(votes)
    voted = np.diff(ballots.start) > 0
    consensus, expected, tests = _consensus_of_those_who_agree(
        votes, ballots, link, consensus, delta, tell
    )
    beyond, drawn = np.zeros((2, votes.n_users), dtype=np.int64)
    p_value = np.where(voted, 1.0, np.nan)
    at_work: dict[int, tuple[_Revote, np.random.Generator]] = {}
    fate, place = np.random.default_rng(seed).random((2, votes.n_users))

    def draw(total: int, user: int) -> None:
        """Draw up to that many times, or until enough draws were further out than the votes."""
        if user not in at_work:
            at_work[user] = (
                tests[user].revote(ballots, expected),
                np.random.default_rng([seed, user]),
            )
        consensus_votes, rng = at_work[user]
        values = consensus_votes.draw(total - drawn[user], rng)
        statistic = tests[user].statistic
        # Draws that equal the votes themselves fall on either side by chance: with few votes they
        # are many, and p-values would not be uniform otherwise.
        is_tied = np.abs(values - statistic) <= SAME * max(statistic, 1.0)
        is_beyond = np.where(is_tied, rng.random(len(values)) < fate[user], values > statistic)
        count = beyond[user] + np.cumsum(is_beyond)
        if count[-1] >= ENOUGH_BEYOND:  # the last that counts is the one that makes it enough
            drawn[user] += np.searchsorted(count, ENOUGH_BEYOND) + 1
            # So many draws or more are needed with a chance of enough / drawn (Besag and Clifford,
            # 1991); anywhere between this and the next is as good, and makes p-values uniform.
            p_value[user] = ENOUGH_BEYOND / (drawn[user] + place[user])
        else:
            drawn[user] = total
            p_value[user] = (count[-1] + 1) / (total + 1)
        beyond[user] = min(count[-1], ENOUGH_BEYOND)

    is_clear = _approximate_p(tests) < CLEARLY
    going = voted.copy()
    with ThreadPoolExecutor(n_threads) as pool:
        for number, total in enumerate(ROUNDS):
            tell(0.5 + 0.5 * number / len(ROUNDS))
            list(pool.map(partial(draw, total), np.flatnonzero(going).tolist()))
            q_value = benjamini_hochberg(p_value)
            settled = beyond >= ENOUGH_BEYOND
            may_be_flagged = (total >= LEAST_BEFORE_FLAG) | (total >= LEAST_IF_CLEAR) & is_clear
            settled |= may_be_flagged & (q_value <= fdr)
            going = voted & ~settled
            for user in at_work.keys() - np.flatnonzero(going).tolist():
                del at_work[user]
    tell(1.0)
    flagged = voted & (q_value <= fdr)
    cut = fdr * max(int(flagged.sum()), 1) / max(int(voted.sum()), 1)
    needed = _votes_needed(ballots, expected.probability, cut)
    # Chance may break a tie below any cut, but nobody is named by that alone.
    return Flags(consensus, p_value, q_value, flagged & (needed == 0), needed)


def benjamini_hochberg(p_value: Floats) -> Floats:
    """Return q-values: the false discovery rate at which each would just be flagged."""
    known = np.flatnonzero(~np.isnan(p_value))
    order = known[np.argsort(p_value[known], kind="stable")]
    q_value = np.full(len(p_value), np.nan)
    scaled = p_value[order] * len(order) / np.arange(1, len(order) + 1)
    q_value[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(max=1.0)
    return q_value


class _Test(NamedTuple):
    """The test of one user: everything that is needed to repeat it on other votes of the same."""

    statistic: float
    mean: float  # of the statistic, if the user votes like the consensus
    variance: float
    ballots: slice
    direction: Floats  # (n_ballots, n_directions - 1) how deviations move the margin
    matrix: Floats  # its inverse is between the scores in the statistic

    def revote(self, ballots: Ballots, expected: Expectation) -> _Revote:
        """Prepare to let the consensus vote on the same pairs."""
        whiten = np.linalg.inv(np.linalg.cholesky(self.matrix))
        weight = ballots.weight[self.ballots, None]
        by_margin, by_threshold = (
            (weight * slope[self.ballots])[:, :, None]
            for slope in (expected.by_margin, expected.by_threshold)
        )
        push = by_margin * (self.direction @ whiten[:, :-1].T)[:, None]
        push += by_threshold * whiten[:, -1]
        n_votes = ballots.n_votes[self.ballots]
        # Single precision is enough to count, and twice as fast.
        return _Revote(n_votes, expected.probability[self.ballots], push.astype(np.float32))


class _Revote(NamedTuple):
    """The consensus in the place of one user."""

    n_votes: NDArray[np.int64]  # per ballot
    probability: Floats  # (n_ballots, 3)
    push: NDArray[np.float32]  # (n_ballots, 3, n_directions) of one vote, on the whitened score

    def draw(self, n_draws: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Vote so often; return the statistics of those votes."""
        many = self.n_votes > MANY_VOTES
        single = np.repeat(np.flatnonzero(~many), self.n_votes[~many])
        left, tie, right = np.moveaxis(self.push[single], 1, 0)
        chance = np.cumsum(self.probability[single], axis=1, dtype=np.float32)
        size = max(1, MOST_NUMBERS // max(len(single), 1))
        found = []
        for begun in range(0, n_draws, size):
            some = min(size, n_draws - begun)
            luck = rng.random((some, len(single)), dtype=np.float32)
            whitened = left.sum(axis=0) + (luck > chance[:, 0]) @ (tie - left)
            whitened += (luck > chance[:, 1]) @ (right - tie)
            for ballot in np.flatnonzero(many):
                counts = rng.multinomial(self.n_votes[ballot], self.probability[ballot], some)
                whitened += counts.astype(np.float32) @ self.push[ballot]
            found.append(np.einsum("ij,ij->i", whitened, whitened))
        return np.concatenate(found)


def _directions(ballots: Ballots, votes: Comparisons) -> list[Floats]:
    """Return how a user's deviations move the margin, ballot by ballot.

    The first column is for the consensus margin itself (a sharper or blunter scale), the second
    for a preferred side, and one for every item that the user compared.
    """
    first_slot = votes.slots.start[ballots.user]
    keys, stride = votes.slots.keys(votes.n_items + 1), np.int64(votes.n_items + 1)
    places = [
        np.searchsorted(keys, ballots.user * stride + item) - first_slot + 2
        for item in (ballots.left, ballots.right)
    ]
    widths = np.diff(votes.slots.start) + 1  # without the threshold, with scale and side
    found = []
    for user, width in enumerate(widths):
        mine = slice(*ballots.start[user : user + 2])
        direction = np.zeros((mine.stop - mine.start, width))
        rows = np.arange(len(direction))
        direction[:, 1] = 1.0
        direction[rows, places[0][mine]] = 1.0
        direction[rows, places[1][mine]] = -1.0
        found.append(direction)
    return found


def _tests(ballots: Ballots, expected: Expectation, directions: list[Floats]) -> list[_Test]:
    """Form every user's score statistic, weighted by curvature and prior."""
    weight, foreseen = ballots.weight, ballots.n_votes[:, None] * expected.probability
    by_margin, by_threshold = expected.by_margin, expected.by_threshold
    information = [
        weight**2 * np.sum(foreseen * one * other, axis=1)
        for one, other in (
            (by_margin, by_margin), (by_margin, by_threshold), (by_threshold, by_threshold),
        )
    ]  # fmt: skip
    scores = [weight * np.sum(ballots.counts * by, axis=1) for by in (by_margin, by_threshold)]
    tests = []
    for user, direction in enumerate(directions):
        mine = slice(*ballots.start[user : user + 2])
        direction[:, 0] = expected.margin[mine]
        of_margin, mixed, of_threshold = (each[mine] for each in information)
        matrix = np.empty((direction.shape[1] + 1, direction.shape[1] + 1))
        matrix[:-1, :-1] = direction.T @ (of_margin[:, None] * direction)
        matrix[-1, :-1] = matrix[:-1, -1] = mixed @ direction
        matrix[-1, -1] = of_threshold.sum()
        matrix.flat[:: len(matrix) + 1] += 1.0 / DEVIATION_VARIANCE
        inverse = np.linalg.inv(matrix)
        score = np.append(scores[0][mine] @ direction, scores[1][mine].sum())
        # The share of the variance that votes explain, and the prior does not, is I - inverse / V.
        size, trace = len(matrix), float(np.trace(inverse)) / DEVIATION_VARIANCE
        squares = float(np.vdot(inverse, inverse)) / DEVIATION_VARIANCE**2
        variance = 2.0 * (size - 2.0 * trace + squares)
        tests.append(
            _Test(float(score @ inverse @ score), size - trace, variance, mine, direction, matrix)
        )
    return tests


def _approximate_p(tests: list[_Test]) -> Floats:
    """Return p-values by gamma distributions with the first two moments; 1 for nobody's votes."""
    statistic, mean, variance = np.array([test[:3] for test in tests]).T
    voted = (mean > 0) & (variance > 0)  # where nothing can surprise, both round to zero
    scale = np.divide(variance, mean, out=np.ones_like(mean), where=voted)
    shape = np.divide(mean, scale, out=np.ones_like(mean), where=voted)
    return np.where(voted, gamma.sf(statistic, shape, scale=scale), 1.0)


def _consensus_of_those_who_agree(
    votes: Comparisons,
    ballots: Ballots,
    link: Link,
    consensus: Floats,
    delta: float,
    tell: Callable[[float], None],
) -> tuple[Floats, Expectation, list[_Test]]:
    """Fit the consensus without those who are clearly outside it, until they stay the same.

    At least half of the users make the consensus, those who agree best. Returns it with everybody's
    test against it.
    """
    voted = np.diff(ballots.start) > 0
    directions = _directions(ballots, votes)
    spread = float(np.var(consensus[:-1]))
    inside = np.zeros_like(voted)
    for refits in range(MOST_REFITS + 1):
        tell(0.5 * refits / (MOST_REFITS + 1))
        expected = Expectation.of(ballots, consensus, link)
        tests = _tests(ballots, expected, directions)
        p_value = np.where(voted, _approximate_p(tests), -1.0)
        before, inside = inside, p_value >= min(OUTSIDE, float(np.median(p_value[voted])))
        if refits == MOST_REFITS or np.array_equal(before, inside):
            break
        theirs = votes.subset(inside[votes.user])
        refit = fit_consensus(theirs, link, delta, variance=max(spread, 1.0))
        # What they never compared stays where it was, beside what they did.
        unseen = np.bincount(theirs.left, minlength=votes.n_items) == 0
        unseen &= np.bincount(theirs.right, minlength=votes.n_items) == 0
        if unseen.any():
            shift = np.mean(refit[:-1][~unseen] - consensus[:-1][~unseen])
            refit[:-1][unseen] = consensus[:-1][unseen] + shift
        consensus = refit
    return consensus, expected, tests


def _votes_needed(ballots: Ballots, probability: Floats, cut: float) -> NDArray[np.int64]:
    """Return how many votes like theirs users need to be flagged at all; 0 where they have them.

    However a user votes, those votes have some probability under the consensus; the p-value is at
    least the smallest.
    """
    n_votes = ballots.n_votes.astype(np.float64)
    surprise = np.asarray(-np.log(probability.min(axis=1)), dtype=np.float64)
    most, votes = ballots.sum_by_user(n_votes * surprise), ballots.sum_by_user(n_votes)
    enough = (most >= -np.log(cut)) | (votes == 0)
    needed = -np.log(cut) * votes / np.where(enough, 1.0, most)
    return np.where(enough, 0, np.ceil(needed)).astype(np.int64)
