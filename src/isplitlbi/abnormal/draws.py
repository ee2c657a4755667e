"""An ordinary user in the place of another: votes drawn on the same questions, and what they show.

Two statistics are drawn together: how far the votes are from the consensus in all directions,
beside what is ordinary; and how little the votes tell about the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from isplitlbi.abnormal.directions import NUMBERS_AT_ONCE, SLOPE, Block, Said
from isplitlbi.abnormal.expectation import LEAST, Answers, Expectation, Inputs, of_answers
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.surprise import Reading, surprise_of
from isplitlbi.model.links import Link, Logistic
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Draws"]

Singles = NDArray[np.float32]

# Users are drawn for in rounds, until this many draws were further out than the user's own votes.
ENOUGH_BEYOND = 10
MOST_NUMBERS = 2**18  # random numbers at a time, so that they stay near the processor
SMALL, FEWEST = 64, 8  # rows and directions of users who are filled up to be alike
SAME = 1e-4  # statistics that differ by less, relative to their size, are taken for equal
DIGITS = 6  # after the point, of what draws are made of
MOST_KEPT = 1 << 23  # numbers, in single precision, that are kept for the next round
NOTHING, TINY = 1e-8, 1e-12  # what is added to a matrix that may be singular, relative and at all

# Questions with more votes than this are drawn as counts, others vote by vote.
MANY_VOTES = 8
ONE, SMALLEST = np.float32(1.0), np.float32(1e-30)  # the second: of what a logarithm is taken of


class Revote(NamedTuple):
    """An ordinary user in the place of one user.

    A draw moves margins and the threshold's logarithm by deviations of its own, then votes. What a
    vote adds to the statistics is known beforehand, outcome by outcome: to the numbers of traits;
    to those whose squares add up to that of taste; to the log-likelihood; to the answers given.

    Arrays of small users are filled up by zeros, so that many are of the same size.
    """

    n_votes: Places  # per question
    votes: Places  # the question of every vote that is drawn by itself
    many: Places  # questions with votes that are drawn as counts
    is_simple: bool  # whether the rows of the arrays are votes: questions else
    margin: Singles
    level: Singles
    # By every yardstick: of the margin, by independent normal numbers, (n_rows, n_sources), and of
    # the threshold's logarithm, (n_sources,).
    moves: list[tuple[Singles, Singles]]
    # (3, n_traits + n_directions + 4, n_rows): what left adds, then what a tie adds beyond left,
    # and right beyond a tie.
    adds: Singles
    # The same by vote of those that are drawn by themselves: all of them to the left, (n_added,),
    # then beyond it, (2, n_added, n_votes).
    at_left: Singles
    beyond_left: Singles
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
    ) -> Iterator[Revote]:
        """Prepare draws for the users of a block, one after another, by several yardsticks.

        By the first yardstick the statistic is told; by each of them users are drawn.
        """
        answers, expected = inputs.answers, yardsticks[0].expected
        found = yardsticks[0].surprise(block, said, inputs)
        error = yardsticks[0].others.error(block)
        roots = np.ascontiguousarray(np.swapaxes(found.roots(), 1, 2))
        sources = [_root(yardstick.around(block, error)) for yardstick in yardsticks]
        moments = np.stack([found.mean, found.freedom, np.sqrt(found.known[:, -1])], axis=1)
        of_level = [_rounded(source[:, block.threshold]) for source in sources]
        widths = yardsticks[0].directions.n_columns[block.users].tolist()
        for some, here in block.runs(NUMBERS_AT_ONCE // block.width):
            question = block.question[here]
            margin, level = _rounded(expected.margin[question]), _rounded(expected.level[question])
            moves = [_rounded(block.along(source, here)) for source in sources]
            at_level = roots[block.row[here], block.threshold]
            adds = _adds(answers, expected, question, block.along(roots, here), at_level)
            for place in some:
                mine = answers.of_user(int(block.users[place]))
                n_votes, noisy = answers.n_votes[mine], _noises(answers, mine)
                is_many = (n_votes > MANY_VOTES) & (noisy is None)
                votes = np.repeat(np.arange(len(n_votes)), np.where(is_many, 0, n_votes))
                # A row for every vote where these are few, or else for every question.
                is_simple = not is_many.any() and len(votes) <= max(SMALL, len(n_votes))
                first = int(np.searchsorted(block.row[here], place))
                rows = first + (votes if is_simple else np.arange(len(n_votes)))
                width = widths[place]
                shape = _filled(len(rows)), _filled(width)
                added = np.zeros((3, shape[1] + 4, shape[0]), dtype=np.float32)
                added[:, :width, : len(rows)] = adds[rows, :, :width].transpose(1, 2, 0)
                added[:, -4:, : len(rows)] = adds[rows, :, -4:].transpose(1, 2, 0)
                by_vote = added if is_simple else added[:, :, votes]
                all_moves = [
                    (_fill(each[rows, :width], *shape), _fill(by[place, :width], *shape[1:]))
                    for each, by in zip(moves, of_level, strict=True)
                ]
                yield cls(
                    n_votes, votes, np.flatnonzero(is_many), is_simple,
                    _fill(margin[rows], *shape[:1]), _fill(level[rows], *shape[:1]), all_moves,
                    added, by_vote[0].sum(axis=1), by_vote[1:], block.n_traits,
                    tuple(moments[place].tolist()),
                    (found.slope.number[place], found.slope.root[place]), inputs.link,
                    expected.has_ties, answers.has_sides, noisy,
                )  # fmt: skip

    @property
    def n_numbers(self) -> int:
        """About how many numbers a draw takes."""
        return max(len(self.margin), int(self.adds.shape[1]), len(self.votes))

    @property
    def size(self) -> int:
        """About how many numbers it keeps."""
        return int(self.adds.size if self.is_simple else self.adds.size + self.beyond_left.size)

    def draw(self, n_draws: int, rng: np.random.Generator) -> Floats:
        """Vote so often; return the two statistics of those votes: (2, n_draws)."""
        return draw_together([self], (0, 1), n_draws, [rng])[:, 0]

    def counts(
        self, question: int, margin: Singles, within: Singles | float, rng: np.random.Generator
    ) -> Singles:
        """Draw how many votes on a question are any, no win of left, and a win of right."""
        margin = margin.astype(np.float64)
        to_left = np.exp(self.link.log_cdf(margin - within))
        to_right = np.exp(self.link.log_cdf(-margin - within))
        chance = np.stack([to_left, np.maximum(1.0 - to_left - to_right, 0.0), to_right], 1)
        drawn = rng.multinomial(self.n_votes[question], chance / chance.sum(1)[:, None])
        return np.cumsum(drawn[:, ::-1], axis=1)[:, ::-1].T.astype(np.float32)

    def draw_noise(self, noise: Singles, rng: np.random.Generator) -> None:
        """Draw the noise against the left item, (n_votes, n_draws); of votes alone, its shares.

        Votes of one group, such as all pairs of one ranking, share the noise of every item: each
        vote by itself is as likely as if it were alone.
        """
        if self.noisy is None:
            rng.random(out=noise, dtype=np.float32)
            return
        of_left, of_right = self.noisy
        shape = 1 + int(max(of_left.max(), of_right.max())), noise.shape[1]
        if isinstance(self.link, Logistic):  # the difference of two such numbers is logistic
            noises = np.empty(shape, dtype=np.float32)
            rng.random(out=noises, dtype=np.float32)
            for start in (ONE, SMALLEST):
                np.subtract(start, noises, out=noises)
                np.log(noises, out=noises)
            noises.take(of_left, axis=0, out=noise, mode="clip")
            noise -= noises.take(of_right, axis=0, mode="clip")
            return
        noises = rng.standard_normal(shape, dtype=np.float32)
        noise[:] = self.link.quantile(
            scipy.special.ndtr((noises[of_right] - noises[of_left]) * 0.5**0.5)
        )


def draw_together(
    revotes: Sequence[Revote],
    tests: Sequence[int],
    n_draws: int,
    rngs: Sequence[np.random.Generator],
) -> Floats:
    """Vote so often in the place of users whose votes are rows of the same number, or of one user.

    Returns the statistics of these tests, (n_tests, n_users, n_draws), each by its yardstick. What
    is drawn for a user comes from a generator of their own: it does not matter who the others are.
    """
    size = max(1, MOST_NUMBERS // revotes[0].n_numbers)
    parts = [
        _draw(revotes, tests, min(size, n_draws - begun), rngs) for begun in range(0, n_draws, size)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)


def _draw(
    revotes: Sequence[Revote],
    tests: Sequence[int],
    n_draws: int,
    rngs: Sequence[np.random.Generator],
) -> Floats:
    # Draws are the last axis: what belongs to one vote lies together.
    first, n_users = revotes[0], len(revotes)
    n_rows = len(first.margin) if first.is_simple else len(first.votes)
    moved = np.empty((n_users, first.adds.shape[1] - 4, n_draws), dtype=np.float32)
    noise = np.empty((n_users, n_rows, n_draws), dtype=np.float32)
    for revote, rng, moves, mine in zip(revotes, rngs, moved, noise, strict=True):
        rng.random(out=moves, dtype=np.float32)
        revote.draw_noise(mine[: len(revote.votes)], rng)
        mine[len(revote.votes) :] = 0.0
    _make_normal(moved)
    if first.noisy is None:
        share: Any = noise
        noise = _single(first.link.quantile(share))
    if len(first.moves) == 1:
        return _statistics(revotes, 0, tests, moved, noise, rngs)
    return np.concatenate(
        [_statistics(revotes, test, [test], moved, noise, rngs) for test in tests]
    )


def _statistics(
    revotes: Sequence[Revote],
    yardstick: int,
    tests: Sequence[int],
    moved: Singles,
    noise: Singles,
    rngs: Sequence[np.random.Generator],
) -> Floats:
    """Return statistics of the votes of users who are moved so, with this noise."""
    first = revotes[0]
    moves = [each.moves[yardstick] for each in revotes]
    margin = _together([by for by, _ in moves]) @ moved
    margin += _together([each.margin for each in revotes])[:, :, None]
    by_level = np.exp(_together([by for _, by in moves])[:, None] @ moved)
    threshold = np.exp(_together([each.level for each in revotes]))[:, :, None]
    # Of what votes add, only what these tests are about.
    there = slice(0 if 0 in tests else -4, None if 1 in tests else -4)
    by_vote, within = margin, threshold
    if not first.is_simple:
        by_vote, within = (each.take(first.votes, axis=1) for each in (margin, threshold))
    beyond = np.subtract(noise, by_vote, out=by_vote)  # by how much noise turns a vote to the right
    if first.has_ties:
        beyond /= by_level
    tie, right = np.swapaxes(_together([each.beyond_left[:, there] for each in revotes]), 0, 1)
    added = _added(tie, right, beyond, within if first.has_ties else None)
    added += _together([each.at_left[there] for each in revotes])[:, :, None]
    for question in first.many.tolist():
        within = threshold[0, question] * by_level[0, 0] if first.has_ties else 0.0
        counts = first.counts(question, margin[0, question], within, rngs[0])
        added[0] += first.adds[:, there, question].T @ counts
    found = []
    if 0 in tests:
        numbers = added[:, :-4] if 1 in tests else added
        traits: Any = np.swapaxes(numbers[:, : first.n_traits], 1, 2)
        slopes = numbers[:, first.n_traits :]
        slope = Reading(
            *(_together(each) for each in zip(*(r.slope for r in revotes), strict=True))
        )
        traits[:, :, SLOPE] = slope.read(traits[:, :, SLOPE])
        taste = np.einsum("nij,nij->nj", slopes, slopes)
        moments = np.array([each.moments for each in revotes]).T
        found.append(surprise_of(traits, taste, *moments[:, :, None]))
    if 1 in tests:
        given = np.swapaxes(added[:, -3:], 1, 2).reshape(-1, 3).astype(np.float64)
        answers = of_answers(given, has_ties=first.has_ties, has_sides=first.has_sides)
        found.append(answers.reshape(len(revotes), -1) - added[:, -4])
    return np.stack(found)


def _together(arrays: Sequence[Any]) -> Any:
    """Stack arrays of several users; that of one is not copied."""
    return arrays[0][None] if len(arrays) == 1 else np.stack(arrays)


def _make_normal(shares: Singles) -> None:
    """Make normal numbers of shares, (n_users, n, n_draws), in place (Box and Muller, 1958).

    It is far faster than drawing normal numbers one by one.
    """
    first, second = np.split(shares, 2, axis=1)
    radius = np.sqrt(np.float32(-2.0) * np.log(ONE - first))
    angle = np.float32(2.0 * np.pi) * second
    np.multiply(radius, np.cos(angle), out=first)
    np.multiply(radius, np.sin(angle), out=second)


def _added(tie: Singles, right: Singles, beyond: Singles, threshold: Singles | None) -> Singles:
    """Add up what votes add that are turned to the right so far: (n_users, n_added, n_draws)."""
    if threshold is None:  # there are no ties
        return np.asarray((tie + right) @ (beyond > 0.0))
    added = tie @ (beyond > -threshold)
    added += right @ (beyond > threshold)
    return np.asarray(added)


def _adds(
    answers: Answers, expected: Expectation, question: Places, along: Floats, at_level: Floats
) -> Singles:
    """Return what left adds, a tie beyond it, and right beyond a tie: (n_questions, 3, n_added).

    ``along`` and ``at_level`` are what margin and threshold of every question come to.
    """
    by, width = answers.weight[question], along.shape[1]
    chance = np.log(np.maximum(expected.probability[question], LEAST))
    by_margin, by_level, likely = (
        by[:, None] * np.diff(each, axis=1, prepend=0.0)
        for each in (expected.by_margin[question], expected.by_level[question], chance)
    )
    adds = np.empty((len(by), 3, width + 4))
    adds[:, :, :width] = by_margin[:, :, None] * along[:, None]
    adds[:, :, :width] += by_level[:, :, None] * at_level[:, None]
    adds[:, :, width] = likely
    adds[:, :, width + 1 :] = by[:, None, None] * np.diff(np.eye(3), axis=0, prepend=0.0)
    return _rounded(adds)


def _filled(n: int) -> int:
    """Return up to which even number arrays of so many rows are filled."""
    return n + n % 2 if n > SMALL else max(FEWEST, 1 << (n - 1).bit_length())


def _fill(values: Singles, *shape: int) -> Singles:
    """Fill an array up by zeros."""
    filled = np.zeros(shape, dtype=np.float32)
    filled[tuple(slice(length) for length in values.shape)] = values
    return filled


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
        n_users = inputs.answers.n_users
        self.inputs, self.said = inputs, said
        attentive = yardstick.of_the_attentive(in_all=True)
        self.yardsticks = [yardstick] if attentive is yardstick else [yardstick, attentive]
        self.statistics = statistics
        self.is_settled = np.zeros((2, n_users), dtype=np.bool_)  # who is not to be drawn for
        # For the next round, as far as there is room.
        self.kept: dict[int, Revote] = {}
        self.n_kept = 0
        self.p_value = np.where(inputs.answers.voted, 1.0, np.full((2, n_users), np.nan))
        self.beyond, self.drawn = np.zeros((2, 2, n_users), dtype=np.int64)
        self.fate, *self.place = inputs.among.chances(n_users, inputs.seed)
        self.n_votes = inputs.answers.sum_by_user(inputs.answers.n_votes)

    @property
    def are_enough(self) -> Mask:
        """For which users enough draws were further out than their votes."""
        return self.beyond >= ENOUGH_BEYOND

    def work(self, users: Mask, total: int) -> float:
        """Return about how many numbers are to be drawn for some users, up to so many draws."""
        numbers = np.maximum(self.n_votes, self.yardsticks[0].directions.n_columns)
        left = total - self.drawn.max(axis=0, where=~self.is_settled, initial=0)
        return float(np.sum((numbers * left)[users]))

    def draw(self, total: int, block: Block) -> None:
        """Draw up to that many times, or until enough draws were further out than the votes."""
        users = block.users.tolist()
        known: Iterable[Revote] = [self.kept[user] for user in users if user in self.kept]
        if not all(user in self.kept for user in users):
            known = Revote.of(self.inputs, self.yardsticks, self.said, block)
        # Small users who are alike in all that matters here are drawn for together.
        alike: dict[tuple[Any, ...], list[tuple[int, Revote]]] = {}
        n_numbers = 0
        for user, revote in zip(users, known, strict=True):
            tests = np.flatnonzero(~self.is_settled[:, user]).tolist()
            drawn = self.drawn[tests, user].tolist()
            key = tuple(tests), tuple(drawn), revote.adds.shape if revote.is_simple else user
            alike.setdefault(key, []).append((user, revote))
            n_numbers += revote.n_numbers * (total - min(drawn)) + revote.size
            if n_numbers >= MOST_NUMBERS:
                self._draw_for(alike, total)
                n_numbers = 0
            if user not in self.kept and self.n_kept + revote.size <= MOST_KEPT:
                self.kept[user], self.n_kept = revote, self.n_kept + revote.size
        self._draw_for(alike, total)

    def _draw_for(self, alike: dict[tuple[Any, ...], list[tuple[int, Revote]]], total: int) -> None:
        for (tests, drawn, _), some in alike.items():
            before, users = min(drawn), np.array([user for user, _ in some])
            # Every round has numbers of its own, so that it does not matter who was drawn for
            # before.
            rngs = [
                np.random.default_rng(
                    [self.inputs.seed, self.inputs.among.number(user), total, tests[0]]
                )
                for user, _ in some
            ]
            values = draw_together([revote for _, revote in some], tests, total - before, rngs)
            by_chance = np.stack([rng.random(total - before) for rng in rngs])
            by_chance = by_chance < self.fate[users][:, None]
            for test, last, mine in zip(tests, drawn, values, strict=True):
                skipped = last - before  # another test may have come further
                self._count(test, users, total, mine[:, skipped:], by_chance[:, skipped:])
        alike.clear()

    def _count(self, test: int, users: Places, total: int, values: Floats, by_chance: Mask) -> None:
        statistic = self.statistics[test, users][:, None]
        # Draws that equal the votes themselves fall on either side by chance: with few votes they
        # are many, and p-values would not be uniform otherwise.
        is_tied = np.abs(values - statistic) <= SAME * np.maximum(np.abs(statistic), 1.0)
        beyond = np.where(is_tied, by_chance, values > statistic)
        count = self.beyond[test, users][:, None] + np.cumsum(beyond, axis=1)
        # The last that counts is the one that makes it enough.
        needed = self.drawn[test, users] + np.sum(count < ENOUGH_BEYOND, axis=1) + 1
        are_enough = count[:, -1] >= ENOUGH_BEYOND
        # So many draws or more are needed with a chance of enough / drawn (Besag and Clifford,
        # 1991); anywhere between this and the next is as good, and makes p-values uniform.
        by_needed = ENOUGH_BEYOND / (needed + self.place[test][users])
        self.p_value[test, users] = np.where(
            are_enough, by_needed, (count[:, -1] + 1) / (total + 1)
        )
        self.drawn[test, users] = np.where(are_enough, needed, total)
        self.beyond[test, users] = np.minimum(count[:, -1], ENOUGH_BEYOND)
