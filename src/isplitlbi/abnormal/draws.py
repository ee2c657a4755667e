"""An ordinary user in the place of another: votes drawn on the same questions, and what they show.

Two statistics are drawn together: how far the votes are from the consensus in all directions,
beside what is ordinary; and how little the votes tell about the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from isplitlbi.abnormal.directions import SLOPE, Block, Said
from isplitlbi.abnormal.expectation import LEAST, Answers, Inputs, of_answers
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.surprise import read_off, surprise_of
from isplitlbi.model.links import Link, Logistic
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Draws"]

Singles = NDArray[np.float32]

# Users are drawn for in rounds, until this many draws were further out than the user's own votes.
ENOUGH_BEYOND = 10
MOST_NUMBERS = 2**22  # random numbers at a time
SAME = 1e-4  # statistics that differ by less, relative to their size, are taken for equal
DIGITS = 6  # after the point, of what draws are made of
MOST_KEPT = 1 << 22  # numbers that are kept for the next round
NOTHING, TINY = 1e-8, 1e-12  # what is added to a matrix that may be singular, relative and at all

# Questions with more votes than this are drawn as counts, others vote by vote.
MANY_VOTES = 8
SMALLEST = np.float32(1e-30)  # of a number that a logarithm is taken of


class Revote(NamedTuple):
    """An ordinary user in the place of one user.

    A draw moves margins and the threshold's logarithm by deviations of its own, then votes. What a
    vote adds to the statistics is known beforehand, outcome by outcome: to the numbers of traits;
    to those whose squares add up to that of taste; to the log-likelihood; to the answers given.
    """

    n_votes: Places  # per question
    margin: Singles
    level: Singles
    moves: Singles  # (n_questions, n_sources) of the margin, by independent normal numbers
    moves_level: Singles  # (n_sources,)
    adds: Singles  # (n_questions, 3, n_traits + n_directions + 4)
    n_traits: int
    # Mean of the statistic of taste, as how many squares it varies, how surely the threshold is
    # known.
    moments: tuple[float, ...]
    slope: tuple[Floats, Floats]  # what its numbers mean, as a table
    link: Link
    has_ties: bool
    has_sides: bool
    noisy: tuple[Places, Places] | None  # per vote, which noises of (group, item) differ in it

    @classmethod
    def of(
        cls, inputs: Inputs, yardsticks: Sequence[Yardstick], said: Said, block: Block
    ) -> Iterator[list[Revote]]:
        """Prepare draws for the users of a block, one after another, by several yardsticks.

        By the first yardstick the statistic is told; by each of them users are drawn.
        """
        answers, expected = inputs.answers, yardsticks[0].expected
        found = yardsticks[0].surprise(block, said, inputs)
        error = yardsticks[0].others.error(block)
        ordinary = [yardstick.around(block, error) for yardstick in yardsticks]
        roots, sources = found.roots(), [_root(each) for each in ordinary]
        ends = np.searchsorted(block.row, np.arange(len(block.users) + 1))
        for place, user in enumerate(block.users.tolist()):
            mine, here = answers.of_user(user), slice(*ends[place : place + 2])
            width, n_questions = (
                int(yardsticks[0].directions.n_columns[user]),
                mine.stop - mine.start,
            )
            direction, rows = np.zeros((n_questions, width)), np.arange(n_questions)
            for column, amount in zip(block.columns, block.amounts, strict=True):
                direction[rows, column[here]] += amount[here]
            root, by = roots[place, :width, :width].T, answers.weight[mine, None]
            slopes = (by * expected.by_margin[mine])[:, :, None] * (direction @ root)[:, None]
            slopes += (by * expected.by_level[mine])[:, :, None] * root[block.threshold]
            chance = np.log(np.maximum(expected.probability[mine], LEAST))
            given = np.broadcast_to(np.eye(3), (n_questions, 3, 3)) * by[:, :, None]
            adds = _rounded(np.concatenate([slopes, (by * chance)[:, :, None], given], axis=2))
            moments = tuple(
                float(each[place])
                for each in (found.mean, found.freedom, np.sqrt(found.known[:, -1]))
            )
            slope = (found.slope.number[place], found.slope.root[place])
            noisy = _noises(answers, mine)
            yield [
                cls(
                    answers.n_votes[mine], _rounded(expected.margin[mine]),
                    _rounded(expected.level[mine]),
                    _rounded(direction @ source[place, :width, :width]),
                    _rounded(source[place, block.threshold, :width]), adds, block.n_traits, moments,
                    slope, inputs.link, expected.has_ties, answers.has_sides, noisy,
                )
                for source in sources
            ]  # fmt: skip

    def draw(self, n_draws: int, rng: np.random.Generator) -> Floats:
        """Vote so often; return the two statistics of those votes: (2, n_draws)."""
        size = max(1, MOST_NUMBERS // max(int(self.n_votes.sum()), 1))
        parts = [self._draw(min(size, n_draws - begun), rng) for begun in range(0, n_draws, size)]
        return np.concatenate(parts, axis=1)

    def _draw(self, n_draws: int, rng: np.random.Generator) -> Floats:
        # Draws are columns: what belongs to one vote lies together.
        moved = rng.standard_normal((self.moves.shape[1], n_draws), dtype=np.float32)
        margin, by = self.margin[:, None] + self.moves @ moved, self.moves_level @ moved
        within = np.exp(self.level[:, None] + by) if self.has_ties else np.float32(0.0)
        lower, upper = margin - within, margin + within
        many = (self.n_votes > MANY_VOTES) & (self.noisy is None)
        single: Places | slice = slice(None)
        if self.n_votes.max() > 1:
            single = np.repeat(np.flatnonzero(~many), self.n_votes[~many])
        left, tie, right = np.moveaxis(self.adds[single], 1, 0)
        noise = self._noise(len(left), n_draws, rng)
        added = (tie - left).T @ (noise > lower[single]) + left.sum(axis=0)[:, None]
        added += (right - tie).T @ (noise > upper[single])
        for question in np.flatnonzero(many):
            to_left = np.exp(self.link.log_cdf(lower[question].astype(np.float64)))
            to_right = np.exp(self.link.log_cdf(-upper[question].astype(np.float64)))
            chance = np.stack([to_left, np.maximum(1.0 - to_left - to_right, 0.0), to_right], 1)
            counts = rng.multinomial(self.n_votes[question], chance / chance.sum(1)[:, None])
            added += self.adds[question].T @ counts.T.astype(np.float32)
        traits, slopes = added[: self.n_traits].T, added[self.n_traits : -4]
        traits[:, SLOPE] = read_off(traits[:, SLOPE], *self.slope)
        taste = np.einsum("ij,ij->j", slopes, slopes)
        distance = surprise_of(traits, taste, *self.moments)
        answers = of_answers(
            added[-3:].T.astype(np.float64), has_ties=self.has_ties, has_sides=self.has_sides
        )
        return np.stack([distance, answers - added[-4]])

    def _noise(self, n_votes: int, n_draws: int, rng: np.random.Generator) -> Singles:
        """Draw the noise against the left item: (n_votes, n_draws).

        Votes of one group, such as all pairs of one ranking, share the noise of every item: each
        vote by itself is as likely as if it were alone.
        """
        if self.noisy is None:
            share: Any = rng.random((n_votes, n_draws), dtype=np.float32)
            return _single(self.link.quantile(share))
        of_left, of_right = self.noisy
        shape = 1 + int(max(of_left.max(), of_right.max())), n_draws
        if isinstance(self.link, Logistic):  # the difference of two such numbers is logistic
            noises = np.log(rng.standard_exponential(shape, dtype=np.float32) + SMALLEST)
            return np.asarray(noises[of_left] - noises[of_right])
        noises = rng.standard_normal(shape, dtype=np.float32)
        return _single(self.link.quantile(ndtr((noises[of_right] - noises[of_left]) * 0.5**0.5)))


def _noises(answers: Answers, mine: slice) -> tuple[Places, Places] | None:
    """Return which pairs of group and item every vote of a user is about, by number."""
    if answers.group is None:
        return None
    n_votes = answers.n_votes[mine]
    first = int(answers.n_votes[: mine.start].sum())
    group = answers.group[first : first + int(n_votes.sum())].astype(np.int64)
    both = np.concatenate([answers.left[mine].repeat(n_votes), answers.right[mine].repeat(n_votes)])
    keys = np.tile(group, 2) * (int(both.max(initial=0)) + 1) + both
    left, right = np.split(np.unique(keys, return_inverse=True)[1], 2)
    return left, right


def _root(matrices: Floats) -> Floats:
    """Return matrices that give these when multiplied by their transposes."""
    more = NOTHING * np.einsum("nii->n", matrices) + TINY
    return np.linalg.cholesky(matrices + more[:, None, None] * np.eye(matrices.shape[-1]))


def _single(values: Floats) -> Singles:
    """Return single precision: enough to count, and twice as fast."""
    return np.ascontiguousarray(values, dtype=np.float32)


def _rounded(values: Floats) -> Singles:
    """Return the same without the last digits, which depend on who else is looked at."""
    return _single(np.round(values, DIGITS))


class Draws:
    """What draws have shown so far of every user, of both statistics: arrays of (2, n_users)."""

    def __init__(
        self, inputs: Inputs, yardstick: Yardstick, said: Said, statistics: Floats
    ) -> None:
        first, n_users = inputs.runtime.first, inputs.answers.n_users
        self.inputs, self.said = inputs, said
        attentive = yardstick.of_the_attentive(in_all=True)
        self.yardsticks = [yardstick] if attentive is yardstick else [yardstick, attentive]
        self.statistics = statistics
        self.is_settled = np.zeros((2, n_users), dtype=np.bool_)  # who is not to be drawn for
        # For the next round, as far as there is room.
        self.kept: dict[int, list[Revote]] = {}
        self.n_kept = 0
        self.p_value = np.where(inputs.answers.voted, 1.0, np.full((2, n_users), np.nan))
        self.beyond, self.drawn = np.zeros((2, 2, n_users), dtype=np.int64)
        numbers = np.random.default_rng(inputs.seed).random((3, inputs.runtime.n_users))
        self.fate, *self.place = numbers[:, first : first + n_users]

    @property
    def are_enough(self) -> Mask:
        """For which users enough draws were further out than their votes."""
        return self.beyond >= ENOUGH_BEYOND

    def draw(self, total: int, block: Block) -> None:
        """Draw up to that many times, or until enough draws were further out than the votes."""
        users = block.users.tolist()
        known: Iterable[list[Revote]] = [self.kept[user] for user in users if user in self.kept]
        if not all(user in self.kept for user in users):
            known = Revote.of(self.inputs, self.yardsticks, self.said, block)
        for user, mine in zip(users, known, strict=True):
            going = np.flatnonzero(~self.is_settled[:, user]).tolist()
            for some in [going] if len(mine) == 1 else [[test] for test in going]:
                self._draw(total, user, mine[some[0] if len(mine) > 1 else 0], some)
            size = mine[0].adds.size
            if user not in self.kept and self.n_kept + size <= MOST_KEPT:
                self.kept[user], self.n_kept = mine, self.n_kept + size

    def _draw(self, total: int, user: int, revote: Revote, tests: list[int]) -> None:
        before = int(self.drawn[tests, user].min())
        # Every round has numbers of its own, so that it does not matter who was drawn for before.
        rng = np.random.default_rng(
            [self.inputs.seed, self.inputs.runtime.first + user, total, tests[0]]
        )
        drawn = revote.draw(total - before, rng)
        by_chance = rng.random(drawn.shape[1]) < self.fate[user]
        for test in tests:
            last = int(self.drawn[test, user]) - before  # another test may have come further
            self._count(test, user, total, drawn[test, last:], by_chance[last:])

    def _count(self, test: int, user: int, total: int, values: Floats, by_chance: Mask) -> None:
        statistic = float(self.statistics[test, user])
        # Draws that equal the votes themselves fall on either side by chance: with few votes they
        # are many, and p-values would not be uniform otherwise.
        is_tied = np.abs(values - statistic) <= SAME * max(abs(statistic), 1.0)
        beyond = np.where(is_tied, by_chance, values > statistic)
        count = self.beyond[test, user] + np.cumsum(beyond)
        if count[-1] >= ENOUGH_BEYOND:  # the last that counts is the one that makes it enough
            self.drawn[test, user] += np.searchsorted(count, ENOUGH_BEYOND) + 1
            # So many draws or more are needed with a chance of enough / drawn (Besag and Clifford,
            # 1991); anywhere between this and the next is as good, and makes p-values uniform.
            drawn = self.drawn[test, user] + self.place[test][user]
            self.p_value[test, user] = ENOUGH_BEYOND / drawn
        else:
            self.drawn[test, user] = total
            self.p_value[test, user] = (count[-1] + 1) / (total + 1)
        self.beyond[test, user] = min(count[-1], ENOUGH_BEYOND)
