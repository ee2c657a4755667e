"""An ordinary user in the place of another: votes drawn on the same questions, and what they show.

Two statistics are drawn together: how far the votes are from the consensus in all directions, beside
what is ordinary; and how little the votes tell about the items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from isplitlbi.abnormal.expectation import Answers, Inputs
from isplitlbi.abnormal.ordinary import Yardstick, surprise
from isplitlbi.abnormal.directions import Said
from isplitlbi.abnormal.quality import of_answers
from isplitlbi.model.links import Link
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Draws"]

Singles = NDArray[np.float32]

# Users are drawn for in rounds, until this many draws were further out than the user's own votes.
ENOUGH_BEYOND = 10
MOST_NUMBERS = 2**22  # random numbers at a time
SAME = 1e-4  # statistics that differ by less, relative to their size, are taken for equal
NOTHING, TINY = 1e-8, 1e-12  # what is added to a matrix that may be singular, relative and at all

# Questions with more votes than this are drawn as counts, others vote by vote.
MANY_VOTES = 8


class Revote(NamedTuple):
    """An ordinary user in the place of one user.

    A draw moves margins and the threshold's logarithm by deviations of its own, then votes. What a
    vote adds to the statistics is known beforehand, outcome by outcome: to the slopes in every
    direction, weighed so that their squares add up; to the log-likelihood; to the answers given.
    """

    n_votes: Places  # per question
    margin: Singles
    level: Singles
    moves: Singles  # (n_sources, n_questions) of the margin, by independent normal numbers
    moves_level: Singles  # (n_sources,)
    adds: Singles  # (n_questions, 3, n_directions + 4)
    link: Link
    has_ties: bool
    has_sides: bool
    noisy: tuple[Places, Places] | None  # per vote, which noises of (group, item) differ in it

    @classmethod
    def of(cls, inputs: Inputs, yardstick: Yardstick, said: Said, user: int) -> Revote:
        """Prepare draws for a user."""
        answers, expected = inputs.answers, yardstick.expected
        block = yardstick.directions.block(np.array([user]), expected.apart)
        mine = answers.of_user(user)
        direction = np.zeros((len(block.question), block.width))
        rows = np.arange(len(direction))
        for column, amount in zip(block.columns, block.amounts, strict=True):
            direction[rows, column] += amount
        ordinary = yardstick.ordinary(block)
        weigh = surprise(ordinary, block.bend(said.mm, said.mt, said.tt)).weigh
        source, root = _root(ordinary[0]), _root(weigh[0])
        weight = answers.weight[mine, None]
        slopes = (weight * expected.by_margin[mine])[:, :, None] * (direction @ root)[:, None]
        slopes += (weight * expected.by_level[mine])[:, :, None] * root[block.threshold]
        likelihood = weight * expected.log_probability[mine]
        given = np.broadcast_to(np.eye(3), (len(rows), 3, 3)) * weight[:, :, None]
        adds = np.concatenate([slopes, likelihood[:, :, None], given], axis=2)
        return cls(
            answers.n_votes[mine], _single(expected.margin[mine]), _single(expected.level[mine]),
            _single((direction @ source).T), _single(source[block.threshold]), _single(adds),
            inputs.link, expected.has_ties, answers.has_sides, _noises(answers, mine),
        )  # fmt: skip

    def draw(self, n_draws: int, rng: np.random.Generator) -> Floats:
        """Vote so often; return the two statistics of those votes: (2, n_draws)."""
        size = max(1, MOST_NUMBERS // max(int(self.n_votes.sum()), 1))
        parts = [
            self._draw(min(size, n_draws - begun), rng) for begun in range(0, n_draws, size)
        ]
        return np.concatenate(parts, axis=1)

    def _draw(self, n_draws: int, rng: np.random.Generator) -> Floats:
        moved = rng.standard_normal((n_draws, len(self.moves)), dtype=np.float32)
        margin, by = self.margin + moved @ self.moves, moved @ self.moves_level
        within = np.exp(self.level + by[:, None]) if self.has_ties else np.float32(0.0)
        lower, upper = margin - within, margin + within
        many = self.n_votes > MANY_VOTES if self.noisy is None else np.zeros_like(self.n_votes) > 0
        single = np.repeat(np.flatnonzero(~many), self.n_votes[~many])
        noise = self._noise((n_draws, len(single)), rng)
        left, tie, right = np.moveaxis(self.adds[single], 1, 0)
        added = left.sum(axis=0) + (noise > lower[:, single]) @ (tie - left)
        added += (noise > upper[:, single]) @ (right - tie)
        for question in np.flatnonzero(many):
            to_left = np.exp(self.link.log_cdf(lower[:, question].astype(np.float64)))
            to_right = np.exp(self.link.log_cdf(-upper[:, question].astype(np.float64)))
            chance = np.stack([to_left, np.maximum(1.0 - to_left - to_right, 0.0), to_right], 1)
            counts = rng.multinomial(self.n_votes[question], chance / chance.sum(1)[:, None])
            added += counts.astype(np.float32) @ self.adds[question]
        slopes, likelihood, given = added[:, :-4], added[:, -4], added[:, -3:]
        distance = np.einsum("ij,ij->i", slopes, slopes)
        answers = of_answers(
            given.astype(np.float64), has_ties=self.has_ties, has_sides=self.has_sides
        )
        return np.stack([distance, answers - likelihood])

    def _noise(self, shape: tuple[int, int], rng: np.random.Generator) -> Singles:
        """Draw the noise against the left item.

        Votes of one group, such as all pairs of one ranking, share the noise of every item: each
        vote by itself is as likely as if it were alone.
        """
        if self.noisy is None:
            share = rng.random(shape, dtype=np.float32)
        else:
            of_left, of_right = self.noisy
            of_items = rng.standard_normal((shape[0], 1 + max(of_left.max(), of_right.max())))
            share = ndtr((of_items[:, of_right] - of_items[:, of_left]) * 0.5**0.5)
        return _single(self.link.quantile(share))


def _noises(answers: Answers, mine: slice) -> tuple[Places, Places] | None:
    """Number the pairs of group and item of a user, and return both of every vote."""
    if answers.group is None:
        return None
    n_votes, group = answers.n_votes[mine], answers.group[mine].astype(np.int64)
    both = np.concatenate([answers.left[mine], answers.right[mine]]).astype(np.int64)
    _, known = np.unique(np.tile(group, 2) * (both.max(initial=0) + 1) + both, return_inverse=True)
    left, right = np.split(known, 2)
    return np.repeat(left, n_votes), np.repeat(right, n_votes)


def _root(matrix: Floats) -> Floats:
    """Return a matrix that gives this one when multiplied by its transpose."""
    size = len(matrix)
    return np.linalg.cholesky(matrix + (NOTHING * np.trace(matrix) + TINY) * np.eye(size))


def _single(values: Floats) -> Singles:
    """Return single precision: enough to count, and twice as fast."""
    return np.ascontiguousarray(values, dtype=np.float32)


class Draws:
    """What draws have shown so far of every user, of both statistics: arrays of (2, n_users)."""

    def __init__(
        self, inputs: Inputs, yardstick: Yardstick, said: Said, statistics: Floats
    ) -> None:
        first, n_users = inputs.runtime.first, inputs.answers.n_users
        self.inputs, self.yardstick, self.said = inputs, yardstick, said
        self.statistics = statistics
        self.p_value = np.where(inputs.answers.voted, 1.0, np.full((2, n_users), np.nan))
        self.beyond, self.drawn = np.zeros((2, 2, n_users), dtype=np.int64)
        numbers = np.random.default_rng(inputs.seed).random((3, inputs.runtime.n_users))
        self.fate, *self.place = numbers[:, first : first + n_users]

    @property
    def are_enough(self) -> Mask:
        """For which users enough draws were further out than their votes."""
        return self.beyond >= ENOUGH_BEYOND

    def draw(self, total: int, user: int) -> None:
        """Draw up to that many times, or until enough draws were further out than the votes."""
        going = np.flatnonzero(~self.are_enough[:, user])
        before = int(self.drawn[going, user].max(initial=0))
        # Every round has numbers of its own, so that it does not matter who was drawn for before.
        rng = np.random.default_rng([self.inputs.seed, self.inputs.runtime.first + user, total])
        revote = Revote.of(self.inputs, self.yardstick, self.said, user)
        drawn = revote.draw(total - before, rng)
        by_chance = rng.random(drawn.shape[1]) < self.fate[user]
        for test in going.tolist():
            self._count(test, user, total, drawn[test], by_chance)

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
