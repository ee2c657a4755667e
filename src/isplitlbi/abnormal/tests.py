"""Who does not vote like the consensus, with an error rate that holds.

For every user a score test of "votes like the consensus" against all ways of deviating at once: a
sharper or blunter scale, a side that is preferred, other effects of features, another tie
threshold, another taste; as far as there are sides, features and ties at all. Its distribution is
found by letting the consensus vote on that user's own pairs again and again, so that the p-value is
as good for three votes as for three thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gamma

from isplitlbi.abnormal.expectation import Answers, Expectation, Inputs
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.model.parameters import Consensus
from isplitlbi.solvers.common import fit_common
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["find_flags"]

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

    consensus: Consensus  # what they were compared with: the consensus of the others who agree
    p_value: Floats  # nan for users without votes
    q_value: Floats  # Benjamini-Hochberg
    flagged: Mask
    votes_needed: Places  # 0 where there are enough votes to be flagged at all


def find_flags(
    inputs: Inputs, fdr: float = 0.05, progress: Callable[[float], None] | None = None
) -> Flags:
    """Test every user, and flag those below a false discovery rate.

    The consensus that is given is a first one, such as the path's, which abnormal users do not pull
    much. ``progress`` is called now and then with the share of the work done.
    """
    tell = progress or (lambda done: None)
    answers, runtime = inputs.answers, inputs.runtime
    mine = slice(runtime.first, runtime.first + answers.n_users)  # among all users
    voted = answers.voted
    consensus, tests, found = _consensus_of_those_who_agree(inputs, tell)
    draws = _Draws(tests, found, inputs)
    is_clear = _approximate_p(found) < CLEARLY
    going = voted.copy()
    for number, total in enumerate(ROUNDS):
        tell(0.5 + 0.5 * number / len(ROUNDS))
        _for_each(np.flatnonzero(going).tolist(), partial(draws.draw, total), runtime.n_threads)
        q_value = benjamini_hochberg(runtime.everybody(draws.p_value))[mine]
        may_be_flagged = (total >= LEAST_BEFORE_FLAG) | (total >= LEAST_IF_CLEAR) & is_clear
        going = voted & ~(draws.are_enough | may_be_flagged & (q_value <= fdr))
        draws.forget_all_but(np.flatnonzero(going).tolist())
    tell(1.0)
    flagged = voted & (q_value <= fdr)
    n_flagged, n_voted = runtime.total(float(flagged.sum()), float(voted.sum()))
    cut = fdr * max(n_flagged, 1.0) / max(n_voted, 1.0)
    needed = _votes_needed(answers, tests.expected, cut)
    # Chance may break a tie below any cut, but nobody is named by that alone.
    return Flags(consensus, draws.p_value, q_value, flagged & (needed == 0), needed)


def benjamini_hochberg(p_value: Floats) -> Floats:
    """Return q-values: the false discovery rate at which each would just be flagged."""
    known = np.flatnonzero(~np.isnan(p_value))
    order = known[np.argsort(p_value[known], kind="stable")]
    q_value = np.full(len(p_value), np.nan)
    scaled = p_value[order] * len(order) / np.arange(1, len(order) + 1)
    q_value[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(max=1.0)
    return q_value


class _Directions(NamedTuple):
    """How every user's deviations move the margin, question by question.

    The first column is for how far the consensus puts the items apart (a sharper or blunter scale),
    then there is one for a preferred side and for every feature, and one for every item that the
    user compared.
    """

    left: Places  # per question, the column of its left item
    right: Places
    n_columns: Places  # per user
    others: list[Floats]  # the columns of side and features

    @classmethod
    def of(cls, answers: Answers, votes: Comparisons) -> Self:
        """Find the columns of all users."""
        vector, slots, _ = Layout.of(votes)
        first_slot = slots.start[answers.user]
        keys, stride = slots.keys(vector.width), np.int64(vector.width)
        others = list(answers.columns.values())
        first = 1 + len(others)
        left, right = (
            np.searchsorted(keys, answers.user * stride + item) - first_slot + first
            for item in (answers.left, answers.right)
        )
        # A user's items without the traits, with scale and the others.
        return cls(left, right, slots.sizes - len(vector.traits) + first, others)

    def of_user(self, user: int, questions: slice, apart: Floats) -> Floats:
        """Form the directions of one user: (n_questions, n_columns)."""
        direction = np.zeros((len(apart), self.n_columns[user]))
        rows = np.arange(len(direction))
        direction[:, 0] = apart
        for place, column in enumerate(self.others, start=1):
            direction[:, place] = column[questions]
        direction[rows, self.left[questions]] = 1.0
        direction[rows, self.right[questions]] = -1.0
        return direction


class _Test(NamedTuple):
    """The test of one user, in numbers."""

    statistic: float
    mean: float  # of the statistic, if the user votes like the consensus
    variance: float


class _Tests(NamedTuple):
    """Everybody's test against one consensus.

    Directions and matrices are far larger than the votes: a user's are formed whenever they are
    needed, and not kept.
    """

    answers: Answers
    expected: Expectation
    directions: _Directions
    scores: list[Floats]  # per question: by margin, by threshold
    information: list[Floats]  # per question: of the margin, mixed, of the threshold

    @classmethod
    def of(cls, answers: Answers, expected: Expectation, directions: _Directions) -> Self:
        """Prepare what takes one number per question."""
        weight, foreseen = answers.weight, answers.n_votes[:, None] * expected.probability
        by_margin, by_threshold = expected.by_margin, expected.by_threshold
        scores = [weight * np.sum(answers.counts * by, axis=1) for by in (by_margin, by_threshold)]
        information = [
            weight**2 * np.sum(foreseen * one * other, axis=1)
            for one, other in (
                (by_margin, by_margin), (by_margin, by_threshold), (by_threshold, by_threshold),
            )
        ]  # fmt: skip
        return cls(answers, expected, directions, scores, information)

    def found(self, n_threads: int) -> Floats:
        """Return the test of every user: (n_users, 3)."""
        users = range(self.answers.n_users)
        tests = np.empty((len(users), len(_Test._fields)))

        def test(user: int) -> None:
            tests[user] = self.test(user)

        _for_each(users, test, n_threads)
        return tests

    def test(self, user: int) -> _Test:
        """Form a user's score statistic, weighted by curvature and prior."""
        mine, direction, matrix = self._form(user)
        inverse = np.linalg.inv(matrix)
        by_margin, by_threshold = self.scores
        score = np.append(by_margin[mine] @ direction, by_threshold[mine].sum())
        # The share of the variance that votes explain, and the prior does not, is I - inverse / V.
        size, trace = len(matrix), float(np.trace(inverse)) / DEVIATION_VARIANCE
        squares = float(np.vdot(inverse, inverse)) / DEVIATION_VARIANCE**2
        variance = 2.0 * (size - 2.0 * trace + squares)
        return _Test(float(score @ inverse @ score), size - trace, variance)

    def revote(self, user: int) -> _Revote:
        """Prepare to let the consensus vote on the same pairs."""
        mine, direction, matrix = self._form(user)
        whiten = np.linalg.inv(np.linalg.cholesky(matrix))
        weight = self.answers.weight[mine, None]
        by_margin, by_threshold = (
            (weight * slope[mine])[:, :, None]
            for slope in (self.expected.by_margin, self.expected.by_threshold)
        )
        push = by_margin * (direction @ whiten[:, :-1].T)[:, None]
        push += by_threshold * whiten[:, -1]
        n_votes = self.answers.n_votes[mine]
        # Single precision is enough to count, and twice as fast.
        return _Revote(n_votes, self.expected.probability[mine], push.astype(np.float32))

    def _form(self, user: int) -> tuple[slice, Floats, Floats]:
        """Return a user's questions, directions, and the matrix that the statistic inverts."""
        mine = self.answers.of_user(user)
        direction = self.directions.of_user(user, mine, self.expected.apart[mine])
        of_margin, mixed, of_threshold = (each[mine] for each in self.information)
        matrix = np.empty((direction.shape[1] + 1, direction.shape[1] + 1))
        matrix[:-1, :-1] = direction.T @ (of_margin[:, None] * direction)
        matrix[-1, :-1] = matrix[:-1, -1] = mixed @ direction
        matrix[-1, -1] = of_threshold.sum()
        matrix.flat[:: len(matrix) + 1] += 1.0 / DEVIATION_VARIANCE
        return mine, direction, matrix


class _Revote(NamedTuple):
    """The consensus in the place of one user."""

    n_votes: Places  # per question
    probability: Floats  # (n_questions, 3)
    push: NDArray[np.float32]  # (n_questions, 3, n_directions) of one vote, on the whitened score

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
            for question in np.flatnonzero(many):
                counts = rng.multinomial(self.n_votes[question], self.probability[question], some)
                whitened += counts.astype(np.float32) @ self.push[question]
            found.append(np.einsum("ij,ij->i", whitened, whitened))
        return np.concatenate(found)


class _Draws:
    """What draws have shown so far of every user."""

    def __init__(self, tests: _Tests, found: Floats, inputs: Inputs) -> None:
        first, n_users = inputs.runtime.first, inputs.answers.n_users
        self.tests, self.statistic = tests, found[:, 0]
        self.seed, self.first = inputs.seed, first
        self.p_value = np.where(inputs.answers.voted, 1.0, np.nan)
        self.beyond, self.drawn = np.zeros((2, n_users), dtype=np.int64)
        self.generators: dict[int, np.random.Generator] = {}  # of users who may be drawn for again
        numbers = np.random.default_rng(inputs.seed).random((2, inputs.runtime.n_users))
        self.fate, self.place = numbers[:, first : first + n_users]

    @property
    def are_enough(self) -> Mask:
        """For which users enough draws were further out than their votes."""
        return self.beyond >= ENOUGH_BEYOND

    def draw(self, total: int, user: int) -> None:
        """Draw up to that many times, or until enough draws were further out than the votes."""
        seed = [self.seed, self.first + user]
        rng = self.generators.pop(user, None) or np.random.default_rng(seed)
        values = self.tests.revote(user).draw(total - self.drawn[user], rng)
        statistic = float(self.statistic[user])
        # Draws that equal the votes themselves fall on either side by chance: with few votes they
        # are many, and p-values would not be uniform otherwise.
        is_tied = np.abs(values - statistic) <= SAME * max(statistic, 1.0)
        by_chance = rng.random(len(values)) < self.fate[user]
        count = self.beyond[user] + np.cumsum(np.where(is_tied, by_chance, values > statistic))
        if count[-1] >= ENOUGH_BEYOND:  # the last that counts is the one that makes it enough
            self.drawn[user] += np.searchsorted(count, ENOUGH_BEYOND) + 1
            # So many draws or more are needed with a chance of enough / drawn (Besag and Clifford,
            # 1991); anywhere between this and the next is as good, and makes p-values uniform.
            self.p_value[user] = ENOUGH_BEYOND / (self.drawn[user] + self.place[user])
        else:
            self.drawn[user] = total
            self.p_value[user] = (count[-1] + 1) / (total + 1)
            self.generators[user] = rng
        self.beyond[user] = min(count[-1], ENOUGH_BEYOND)

    def forget_all_but(self, users: Iterable[int]) -> None:
        """Forget the generators of users who are settled."""
        for user in self.generators.keys() - set(users):
            del self.generators[user]


def _for_each(users: Iterable[int], work: Callable[[int], None], n_threads: int) -> None:
    """Call for every user, on several threads."""
    left = iter(list(users))  # each thread takes the next one

    def take() -> None:
        for user in left:
            work(user)

    with ThreadPoolExecutor(n_threads) as pool:
        for thread in [pool.submit(take) for _ in range(n_threads)]:
            thread.result()


def _approximate_p(tests: Floats) -> Floats:
    """Return p-values by gamma distributions with the first two moments; 1 for nobody's votes."""
    statistic, mean, variance = tests.T
    voted = (mean > 0) & (variance > 0)  # where nothing can surprise, both round to zero
    scale = np.divide(variance, mean, out=np.ones_like(mean), where=voted)
    shape = np.divide(mean, scale, out=np.ones_like(mean), where=voted)
    return np.where(voted, gamma.sf(statistic, shape, scale=scale), 1.0)


def _consensus_of_those_who_agree(
    inputs: Inputs, tell: Callable[[float], None]
) -> tuple[Consensus, _Tests, Floats]:
    """Fit the consensus without those who are clearly outside it, until they stay the same.

    At least half of the users make the consensus, those who agree best. Returns it with everybody's
    tests against it, and what they found.
    """
    votes, answers, runtime = inputs.votes, inputs.answers, inputs.runtime
    directions = _Directions.of(answers, votes)
    variance = max(float(np.var(inputs.consensus.scores)), 1.0)
    inside = np.zeros(runtime.n_users, dtype=np.bool_)
    for refits in range(MOST_REFITS + 1):
        tell(0.5 * refits / (MOST_REFITS + 1))
        tests = _Tests.of(answers, inputs.expectation(), directions)
        found = tests.found(runtime.n_threads)
        p_value = runtime.everybody(np.where(answers.voted, _approximate_p(found), -1.0))
        median = float(np.median(p_value[p_value >= 0.0]))
        before, inside = inside, p_value >= min(OUTSIDE, median)
        if refits == MOST_REFITS or np.array_equal(before, inside):
            break
        theirs = votes.subset(inside[runtime.first + votes.user])
        consensus = _refitted(theirs, inputs, variance)
        inputs = replace(inputs, consensus=consensus)
    return inputs.consensus, tests, found


def _refitted(theirs: Comparisons, inputs: Inputs, variance: float) -> Consensus:
    """Fit a consensus to some votes.

    What they never compared stays where it was, beside what they did.
    """
    before, runtime = inputs.consensus, inputs.runtime
    refit = fit_common(
        theirs, inputs.link, before.terms, variance=variance, delta=inputs.delta, runtime=runtime
    )
    (seen,) = runtime.total(
        np.bincount(np.append(theirs.left, theirs.right), minlength=theirs.n_items)
    )
    unseen = seen == 0
    if not unseen.any():
        return refit
    values = refit.values.copy()
    shift = np.mean(refit.scores[~unseen] - before.scores[~unseen])
    values[refit.vector.scores][unseen] = before.scores[unseen] + shift
    if refit.vector.has_habits:
        values[refit.vector.habits][unseen] = before.values[before.vector.habits][unseen]
    return Consensus(refit.vector, values, refit.terms)


def _votes_needed(answers: Answers, expected: Expectation, cut: float) -> Places:
    """Return how many votes like theirs users need to be flagged at all; 0 where they have them.

    However a user votes, those votes have some probability under the consensus; the p-value is at
    least the smallest.
    """
    n_votes = answers.n_votes.astype(np.float64)
    probability = expected.probability[:, :: 1 if expected.has_ties else 2]
    surprise = np.asarray(-np.log(probability.min(axis=1)), dtype=np.float64)
    most, votes = answers.sum_by_user(n_votes * surprise), answers.sum_by_user(n_votes)
    enough = (most >= -np.log(cut)) | (votes == 0)
    needed = -np.log(cut) * votes / np.where(enough, 1.0, most)
    return np.where(enough, 0, np.ceil(needed)).astype(np.int64)
