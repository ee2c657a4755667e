"""What is ordinary in a study: the consensus of the others, and by how much users differ from it.

"Differs at all" is true of everybody who votes enough. A user is compared with an ordinary one: who
has a slope, a side, a threshold and a taste of their own, drawn with the variances that users of
this study have who are neither careless nor far from the others. These are found by empirical Bayes
in a mixture, so that those who stand out do not make what they do ordinary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from isplitlbi.abnormal.company import Ordinary
from isplitlbi.abnormal.directions import SLOPE, Block, Directions, Said, for_each
from isplitlbi.abnormal.expectation import Answers, Expectation, Inputs, without_items
from isplitlbi.abnormal.matrices import Precision, diagonals, times
from isplitlbi.abnormal.others import LEAST_KNOWN, MOST_KEPT, SMALLEST, Habits, Kept, Others
from isplitlbi.abnormal.sequence import typical_duration
from isplitlbi.abnormal.surprise import SLOPES, Rest, Surprise, evidence_of_more, rows_of_traits
from isplitlbi.model.answering import log_probabilities
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Yardstick"]

# Variances of those who look at the items: of the slope; of sides, features and thresholds.
MOST_OF_SLOPE, MOST_OF_TRAITS = 0.0625, 0.25

MOST_STORED = 1_000  # items whose errors are stored with how they depend on each other

N_ROUNDS, N_ROUNDS_AGAIN = 7, 3
FIRST_VARIANCE, LARGEST = 0.05, 4.0
MORE, LESS, MOST_CHANGE = 1.6, 2.4, np.log(8.0)  # of a correction: times up or down, and most
MOST_MEAN, LARGEST_MARGIN = 1.0, 1e3  # further out, a step went astray; formulas hold up to here
N_STEPS, N_SHARES = 4, 1_000
FIRST_SHARE, LEAST_SHARE, MOST_SHARE = 0.1, 0.01, 0.5  # of users who stand out
# Cubes of the numbers of directions, summed over the users who are looked at closely.
MOST_WORK = 1e7


@dataclass(frozen=True)
class Yardstick:
    """What everybody is compared with.

    Attributes
    ----------
    directions
        In which ways users may deviate.
    expected
        What the consensus of the others expects of every question.
    others
        How surely that consensus is known.
    variances : (n_traits + 1,)
        Of ordinary users: of the slope, the side, features, the threshold's logarithm, the taste.
    of_habits : (n_users,)
        What the errors of tie habits add to that of the threshold.
    means : (n_traits + 1,)
        Of ordinary users: by how much they deviate on average; expected is with these.
    known_of_habits : (n_items,)
        How much is known of every tie habit; empty where there are none.
    """

    directions: Directions
    expected: Expectation
    others: Others
    variances: Floats
    of_habits: Floats
    kept: dict[bytes, Surprise] = field(default_factory=dict)
    means: Floats = field(default_factory=lambda: np.zeros(0))
    known_of_habits: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def beside(cls, inputs: Inputs, ordinary: Ordinary) -> Yardstick:
        """Compare newcomers with what was ordinary in a study: nobody of them made it."""
        answers = inputs.answers
        directions = Directions.of(answers, inputs.votes)
        whole, inside = inputs.expectation(), np.zeros(answers.n_users, dtype=np.bool_)
        said = Said.of(inputs.link, whole.margin, whole.level, answers.weighted, whole.has_ties)
        others = Others(ordinary.covariance, inside, said.mm, Kept(), ordinary.noisier)
        habits = Habits.of_others(inputs, directions, said, inside, ordinary.of_habits)
        found = cls(
            directions, whole, others, ordinary.variances, others.noisier * habits.variance,
            means=ordinary.means, known_of_habits=ordinary.of_habits,
        )  # fmt: skip
        return replace(found, expected=found._foreseen(inputs, 0.0, habits))

    @classmethod
    def of(
        cls, inputs: Inputs, directions: Directions, inside: Mask, variance: float,
        variances: Floats | None = None,
    ) -> Yardstick:  # fmt: skip
        """Leave everybody out of the consensus in turn, and find out what is ordinary.

        ``inside`` are the users who make the consensus, ``variance`` is that of the prior of its
        scores. A first yardstick takes the consensus as it is; its variances are a start for the
        next.
        """
        answers, n_threads = inputs.answers, inputs.runtime.n_threads
        whole = inputs.expectation()
        said = Said.of(inputs.link, whole.margin, whole.level, answers.weighted, whole.has_ties)
        is_first = variances is None
        others = Others.of(inputs, said, inside, 0.0 if is_first else variance)
        moved = np.zeros(len(directions.item))

        def leave_out(block: Block) -> None:
            pull = block.pull(said.by_margin, said.by_level)
            pull[:, : block.n_traits] = 0.0
            step = -times(others.error(block), pull)
            there = (block.slot >= 0) & inside[block.users][:, None]
            moved[block.slot[there]] = step[there]

        habits = Habits.none(inputs)
        if not is_first:
            for_each(directions.blocks(answers.voted, whole.apart), leave_out, n_threads)
            habits = Habits.of_others(inputs, directions, said, inside)
        first = directions.first[answers.user] - directions.n_traits
        shift = moved[first + directions.left] - moved[first + directions.right]
        expected = Expectation.of(
            answers, inputs.consensus, inputs.link, by_scores=shift, by_level=habits.by_level
        )
        n_rounds = N_ROUNDS if is_first else N_ROUNDS_AGAIN
        if variances is None:
            variances = np.full(directions.n_traits + 1, FIRST_VARIANCE)
            variances[directions.threshold] *= float(whole.has_ties)
        found = cls(directions, expected, others, variances, others.noisier * habits.variance)
        means, variances = _estimated(inputs, found, n_rounds)
        found = replace(found, variances=variances)
        means[SLOPE] = found._sharpened(inputs, inside)
        found = replace(found, means=means, known_of_habits=habits.known)
        return replace(found, expected=found._foreseen(inputs, shift, habits), kept={})

    def _foreseen(self, inputs: Inputs, shift: Floats | float, habits: Habits) -> Expectation:
        """Return what is expected of users who deviate as they do on average."""
        means, directions = self.means, self.directions
        of_others = zip(means[1 : directions.threshold], directions.others, strict=True)
        return Expectation.of(
            inputs.answers, inputs.consensus, inputs.link,
            by_scores=shift + means[SLOPE] * self.expected.apart,
            beside=sum((mean * column for mean, column in of_others), start=0.0),
            by_level=habits.by_level + means[directions.threshold],
        )  # fmt: skip

    def in_short(self, inputs: Inputs) -> Ordinary:
        """Return what it takes to test others later."""
        covariance, duration = self.others.covariance, typical_duration(inputs)
        if len(covariance) > MOST_STORED:  # as of very many items: each by itself
            covariance = np.append(self.others.variances, 0.0)
        return Ordinary(
            self.means, self.variances, covariance, self.others.noisier, self.known_of_habits,
            inputs.unit, inputs.answers.has_sides, inputs.among.middle(duration),
            inputs.runtime.n_votes,
        )  # fmt: skip

    def _sharpened(self, inputs: Inputs, inside: Mask) -> float:
        """Return by how much more sharply each tells items apart than all together seem to.

        Deviations of every sort blur what is seen of many users, as more noise would.
        """
        answers, expected = inputs.answers, self.expected
        moved = np.zeros(len(answers.user))

        def vary(block: Block) -> None:
            moved[block.question] = block.variance(self.ordinary(block))

        for_each(self.blocks(answers.voted & inside), vary, inputs.runtime.n_threads)
        middle = (np.arange(1, N_SHARES) / N_SHARES).astype(np.float64)
        blur = 1.0 / np.sqrt(1.0 + moved / np.var(inputs.link.quantile(middle)))
        counts = answers.weighted * inside[answers.user][:, None]
        beside, level = expected.margin - expected.apart, expected.level + np.log(blur)
        slope = 1.0
        for _ in range(N_STEPS):
            margin = blur * (slope * expected.apart + beside)
            said = Said.of(inputs.link, margin, level, counts, expected.has_ties)
            by = blur * expected.apart
            pull, bend = inputs.runtime.total(
                float(np.sum(by * said.by_margin)), float(np.sum(by * by * said.mm))
            )
            slope = float(np.clip(slope + pull / max(bend, LEAST_KNOWN), 0.5, 2.0))
        return slope - 1.0

    def of_the_attentive(self, *, in_all: bool) -> Yardstick:
        """Return the same of users whose votes tell about the items: by their slopes, or in all.

        However many users say tie, or left, or anything, to whatever is shown: that is not
        ordinary.
        """
        most = np.full(len(self.variances), np.inf)
        most[SLOPE] = MOST_OF_SLOPE
        if in_all:
            most[1 : self.directions.n_traits] = MOST_OF_TRAITS
        variances = np.minimum(self.variances, most)
        if np.all(variances == self.variances):
            return self
        return replace(self, variances=variances, kept={})

    def ordinary(self, block: Block) -> Floats:
        """Return covariances of ordinary users' deviations, errors of the consensus included."""
        return self.around(block, self.others.error(block))

    def around(self, block: Block, error: Floats) -> Floats:
        """Return the same, given the covariances of the errors of the consensus."""
        there = block.item < len(self.others.covariance) - 1
        there[:, : block.n_traits] = True
        component = np.minimum(np.arange(block.width), block.n_traits)
        varies = self.variances[component] * there
        varies[:, block.threshold] += self.of_habits[block.users]
        return diagonals(varies) + self.others.noisier * error

    def surprise(self, block: Block, said: Said, inputs: Inputs) -> Surprise:
        """Return what is more than ordinary of these users; found once, as far as there is room."""
        key = block.users.tobytes()
        if key in self.kept:
            return self.kept[key]
        bend, ordinary = block.bend(said.mm, said.mt, said.tt), self.ordinary(block)
        varies = _varies(block, said, inputs.answers, bend, ordinary)
        agreed = self._agreed(block, inputs)
        agreed /= np.maximum(bend[:, SLOPE, SLOPE], LEAST_KNOWN)[:, None]
        rest = Rest.of(Precision.of(ordinary), bend)
        found = Surprise.of(rest, block.n_traits, varies, agreed, float(self.variances[SLOPE]))
        if bend.size + sum(each.rows.size for each in self.kept.values()) <= MOST_KEPT:
            self.kept[key] = found
        return found

    def evidence(self, block: Block, said: Said, pull: Floats) -> Floats:
        """Return how likely deviations larger than ordinary make these slopes: a logarithm."""
        bend, ordinary = block.bend(said.mm, said.mt, said.tt), self.ordinary(block)
        varies = _varies(block, said, self.directions.answers, bend, ordinary)
        usual = Precision.of(ordinary)
        rows = rows_of_traits(usual, bend, block.n_traits)
        return evidence_of_more(rows, ordinary, usual, bend, pull, varies)

    def _agreed(self, block: Block, inputs: Inputs) -> Floats:
        """Return how far votes would go with the consensus, by slope: (n_users, n_slopes)."""
        expected, answers, question = self.expected, inputs.answers, block.question
        apart = expected.apart[question]
        margin = expected.margin[question] + np.multiply.outer(SLOPES - 1.0, apart)
        threshold = np.exp(expected.level[question])
        chance = np.exp(
            log_probabilities(inputs.link, margin, threshold, has_ties=expected.has_ties)
        )
        amount = apart * (answers.n_votes * answers.weight)[question]
        moved = amount * np.einsum("sqo,qo->sq", chance, expected.by_margin[question])
        agreed = [np.bincount(block.row, each, len(block.users)) for each in moved]
        return np.stack(agreed, axis=1).astype(np.float64)

    def blocks(self, users: Mask | Places, most: int | None = None) -> list[Block]:
        """Return users in blocks, of so many at most."""
        return list(self.directions.blocks(users, self.expected.apart, most))


def _varies(
    block: Block, said: Said, answers: Answers, bend: Floats, ordinary: Floats
) -> Floats | None:
    """Return the variance of ordinary users' slopes, where it is not told by how votes bend."""
    spread = block.spread(said, answers)
    return None if spread is None else spread + bend @ ordinary @ bend


# --- by how much users differ ----------------------------------------------------------------


class _Sums(NamedTuple):
    """What ordinary users add up to, by slope, side, features, threshold and taste."""

    squares: Floats  # of what is left of slopes
    known: Floats  # what these would be, if the variances were right
    slopes: Floats
    outside: float  # number of users who are not ordinary
    total: float

    @classmethod
    def nothing(cls, n: int) -> _Sums:
        """Start with nobody."""
        return cls(np.zeros(n), np.zeros(n), np.zeros(n), 0.0, 0.0)

    def plus(self, other: _Sums) -> _Sums:
        """Add those of other users."""
        return _Sums(
            self.squares + other.squares, self.known + other.known, self.slopes + other.slopes,
            self.outside + other.outside, self.total + other.total,
        )  # fmt: skip


def _estimated(inputs: Inputs, start: Yardstick, n_rounds: int) -> tuple[Floats, Floats]:
    """Estimate means and variances of ordinary users' deviations, in rounds."""
    answers, expected = inputs.answers, start.expected
    yardstick, means, share = start, np.zeros(start.directions.n_traits + 1), FIRST_SHARE
    careless, noisier = without_items(answers, expected.has_ties), answers.noisier
    looks = [
        _Look(block, start.others.error(block), careless[block.users], noisier[block.users])
        for block in start.blocks(_sample(inputs, start.directions))
    ]
    before, boldness = np.zeros_like(means), np.ones_like(means)
    for number in range(n_rounds):
        margin, level = expected.margin.copy(), expected.level.copy()
        for look in looks:
            by_margin, by_level = look.block.push(look.mode)
            margin[look.block.question] += by_margin
            level[look.block.question] += by_level
        np.clip(margin, -LARGEST_MARGIN, LARGEST_MARGIN, out=margin)
        said = Said.of(inputs.link, margin, level, answers.weighted, expected.has_ties)
        if number % 2 == 0:  # who stands out does not change often
            likelihood: Floats | None = answers.sum_by_user(said.log_likelihood)
        else:
            likelihood = None
        again = partial(
            _Look.again, yardstick=yardstick, said=said, means=means, likelihood=likelihood,
            share=share,
        )  # fmt: skip
        for_each(looks, again, inputs.runtime.n_threads)
        sums = reduce(_Sums.plus, (look.sums for look in looks), _Sums.nothing(len(means)))
        found = _Sums(*inputs.runtime.total(*sums))
        change = np.log(
            np.maximum(found.squares, LEAST_KNOWN) / np.maximum(found.known, LEAST_KNOWN)
        )
        # A correction that went too far is taken back by less.
        boldness = np.where(change * before < 0.0, 0.5 * boldness, boldness)
        before, change = change, change * boldness * np.where(change > 0.0, MORE, LESS)
        change = np.exp(np.clip(change, -MOST_CHANGE, MOST_CHANGE))
        variances = np.clip(yardstick.variances * change, SMALLEST, LARGEST)
        variances *= yardstick.variances > 0.0
        yardstick = replace(yardstick, variances=variances)
        step = found.slopes / np.maximum(found.known, LEAST_KNOWN)
        means = np.clip(means + step, -MOST_MEAN, MOST_MEAN)
        means[-1] = 0.0  # of tastes it is the consensus
        share = float(np.clip(found.outside / max(found.total, 1.0), LEAST_SHARE, MOST_SHARE))
    return means, yardstick.variances


class _Look:
    """Users who are looked at closely: where their deviations are most likely, and who stands out.

    Votes are taken as if they were normal around where they are looked at.
    """

    def __init__(self, block: Block, error: Floats, careless: Floats, noisier: Floats) -> None:
        self.block, self.error, self.careless, self.noisier = block, error, careless, noisier
        self.mode = np.zeros((len(block.users), block.width))
        self.odds = np.zeros(len(block.users))  # that a user is not an ordinary one
        self.sums = _Sums.nothing(0)  # of the last look

    @property
    def work(self) -> int:
        """About how much there is to do."""
        return self.block.work

    def again(
        self, yardstick: Yardstick, said: Said, means: Floats, likelihood: Floats | None,
        share: float,
    ) -> None:  # fmt: skip
        """Look once more; given log-likelihoods, find out who stands out as well."""
        block = self.block
        component = np.minimum(np.arange(block.width), block.n_traits)
        bend = block.bend(said.mm, said.mt, said.tt)
        pull = block.pull(said.by_margin, said.by_level)
        centre = means[component]
        whole = pull + times(bend, self.mode - centre)
        ordinary = yardstick.around(block, self.error)
        usual = Precision.of(ordinary)
        rest = Rest.of(usual, bend)
        varies = _varies(block, said, yardstick.directions.answers, bend, ordinary)
        left = times(rest.rows, whole)
        own = times(ordinary, left)
        if likelihood is not None:
            step = centre + own - self.mode
            gained = np.sum((pull - 0.5 * times(bend, step)) * step, axis=1)
            evidence = likelihood[block.users] + gained
            evidence -= 0.5 * (np.sum(own * left, axis=1) + rest.size)
            traits = rest.rows[:, : block.n_traits]
            more = evidence_of_more(traits, ordinary, usual, bend, whole, varies)
            self.odds = np.logaddexp(more, (self.careless - evidence) / self.noisier)
        self.mode = centre + own
        # Yes or no: weights between would favour those who, by chance, agree best.
        is_ordinary = (self.odds < np.log(1.0 / share - 1.0)).astype(np.float64)
        explained = rest.variances
        if varies is not None:  # votes of different weights
            explained = np.einsum("nij,nij->ni", rest.rows @ varies, rest.rows)
        squares, known, slopes = (
            np.bincount(component, is_ordinary @ each, len(means)).astype(np.float64)
            for each in (left**2, explained, left)
        )
        outside = float(np.sum(1.0 - is_ordinary))
        self.sums = _Sums(squares, known, slopes, outside, float(len(is_ordinary)))


def _sample(inputs: Inputs, directions: Directions) -> Places:
    """Draw the users who are looked at: all, or as many as are not too much work."""
    work = directions.n_columns.astype(np.float64) ** 3 * inputs.answers.voted
    (total,) = inputs.runtime.total(float(work.sum()))
    drawn = np.asarray(inputs.runtime.numbers(inputs.seed).random(len(work)))
    return np.flatnonzero((drawn < MOST_WORK / max(total, 1.0)) & (work > 0.0))
