"""Who votes unlike an ordinary user, with an error rate that holds.

Two questions are asked of every user, each with p-values of its own:

different   Do the votes deviate from the consensus by more than is ordinary in this study? A score
            test in all directions at once: sharpness, side, features, tie threshold, taste.
unreliable  Do the votes tell less about the items than an ordinary user's do? The log-likelihood by
            the consensus, beside that of answers that do not depend on the items.

Both distributions are found by letting ordinary users vote on that user's own questions again and
again, so that p-values are as good for three votes as for three thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy

from isplitlbi.abnormal.company import benjamini_hochberg
from isplitlbi.abnormal.directions import Block, Directions, Said, for_each
from isplitlbi.abnormal.draws import Draws
from isplitlbi.abnormal.expectation import Answers, Expectation, Inputs, without_items
from isplitlbi.abnormal.found import LEAST_USERS
from isplitlbi.abnormal.matrices import inverse, times
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.others import Others
from isplitlbi.abnormal.surprise import DEVIATION_VARIANCE, TINY
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.parameters import Consensus
from isplitlbi.solvers.common import fit_common
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Flags", "benjamini_hochberg", "find_flags", "flags_by"]

# A flag needs many draws, since every look is another chance; fewer where there is less doubt. The
# last rounds are for the few who need them: with many users, a p-value must be small to be told
# from chance.
ROUNDS = (30, 100, 300, 1_000, 3_000, 10_000, 50_000, 400_000)
LEAST_BEFORE_FLAG, LEAST_IF_CLEAR, CLEARLY, MANY = 1_000, 300, 3.0, 3_000
MUCH_DRAWN = 5e6  # numbers: with fewer, threads wait for each other
HOPELESS = 0.01  # the chance of as many draws further out, if a user is to be flagged

# The consensus is that of the users of whom it is not more likely that they stand out than not,
# where one in ten does.
OUTSIDE = np.log(9.0)

# How many times users are sorted into those with the consensus and those against it, and how many
# standard deviations against it is clear.
N_TURNS, CLEARLY_AGAINST = 5, 2.0


# In nats: votes that are so much likelier by the consensus do depend on the items.
FAR_FROM_UNINFORMED = -2.0

# Of the scores of the consensus: the first variance, and between which the others are.
FIRST_VARIANCE, VARIANCES = 4.0, (0.05, 25.0)
HABIT_VARIANCE = 0.2  # of the items' tie habits

INTERVAL = (0.025, 0.5, 0.975)  # of effects


class Flags(NamedTuple):
    """The tests of every user; nan for users without votes."""

    yardstick: Yardstick  # what they were compared with
    consensus: Consensus  # of those who agree
    p_value: Floats  # of "deviates no more than an ordinary user"
    q_value: Floats  # Benjamini-Hochberg
    p_unreliable: Floats  # of "tells as much about the items as an ordinary user"
    q_unreliable: Floats
    effect: Floats  # how far from the consensus, in standard deviations of a vote
    effect_low: Floats
    effect_high: Floats
    is_informed: Mask  # whose votes do depend on the items, whatever the test says
    votes_needed: Places  # 0 where there are enough votes to be flagged at all


def find_flags(
    inputs: Inputs, fdr: float = 0.05, progress: Callable[[float], None] | None = None
) -> Flags:
    """Test every user, and flag those below a false discovery rate.

    The consensus that is given is a first one, such as the path's, which abnormal users do not pull
    much. ``progress`` is called now and then with the share of the work done.
    """
    tell = progress or (lambda done: None)
    return flags_by(*_yardstick(inputs, tell), fdr, tell)


def flags_by(
    inputs: Inputs, yardstick: Yardstick, fdr: float, tell: Callable[[float], None]
) -> Flags:
    """Test every user by a yardstick, and flag those below a false discovery rate."""
    answers, runtime, company = inputs.answers, inputs.runtime, inputs.among
    said = _said(inputs, yardstick.expected)
    found = _standing(inputs, yardstick, said)
    draws = Draws(inputs, yardstick, said, found.statistics)
    is_informed = found.uninformed < FAR_FROM_UNINFORMED
    is_informed &= inputs.votes.time is None  # or else there is more to tell by
    going = answers.voted.copy()
    q_value = np.ones((2, answers.n_users))
    for number, total in enumerate(ROUNDS):
        tell(0.5 + 0.5 * number / len(ROUNDS))
        most, is_much = None, None
        if number > 0:  # then a user's draws are the work, and matrices are known already
            most = -(-int(going.sum()) // (2 * runtime.n_threads))
            is_much = draws.work(going, total) >= MUCH_DRAWN
        blocks = yardstick.blocks(going, most)
        for_each(blocks, partial(draws.draw, total), runtime.n_threads, is_much)
        for test, p_value in enumerate(draws.p_value):
            q_value[test] = company.q_value(test, p_value)
        draws.is_settled = _settled(draws, q_value, total, is_informed, fdr)
        going = answers.voted & ~np.all(draws.is_settled, axis=0)
    tell(1.0)
    cut = company.cut(company.count(q_value <= fdr), answers.voted, fdr)
    needed = _votes_needed(answers, yardstick.expected, float(cut[0, 0]))
    # Chance may break a tie below any cut, but nobody is named by that alone. Of two users who do
    # not agree, nobody knows who is the other one.
    unnamed = (needed > 0) | (company.n_voted(answers.voted) < LEAST_USERS)
    q_value[:, unnamed] = np.maximum(q_value[:, unnamed], np.nextafter(fdr, 1.0))
    effect, low, high = _effects(found, answers)
    return Flags(
        yardstick, inputs.consensus, draws.p_value[0], q_value[0], draws.p_value[1], q_value[1],
        effect, low, high, is_informed, needed,
    )  # fmt: skip


def _settled(draws: Draws, q_value: Floats, total: int, is_informed: Mask, fdr: float) -> Mask:
    """Say, for both tests, of whom no more draws are needed after so many: (2, n_users)."""
    answers, company = draws.inputs.answers, draws.inputs.among
    # As many may be flagged in the end as are so far, or as nothing speaks against.
    may_be = np.maximum(
        company.count(q_value <= fdr), company.count((draws.beyond == 0) & answers.voted)
    )
    cut = company.cut(may_be, answers.voted, fdr)
    is_hopeless = (cut * (ROUNDS[-1] + 1) < 1.0) | (
        scipy.special.pdtrc(draws.beyond - 1.0, np.minimum(cut, 1.0) * draws.drawn) < HOPELESS
    )
    is_settled = draws.are_enough | (is_hopeless & (total >= LEAST_IF_CLEAR))
    if total >= LEAST_IF_CLEAR:
        is_settled |= q_value <= (fdr if total >= LEAST_BEFORE_FLAG else fdr / CLEARLY)
        is_settled[1] |= is_informed  # who cannot be listed need not be known so well
    if total >= MANY:  # more are for those of whom no draw, or one, was further out
        is_settled |= draws.beyond > 1
    return np.asarray(is_settled)


# --- everybody beside the yardstick ----------------------------------------------------------


class _Standing(NamedTuple):
    """How everybody stands beside what is ordinary: a number for every user."""

    statistic: Floats  # minus the logarithm of a chance, roughly
    uninformed: Floats  # how little votes tell about the items, in nats
    apart: Floats  # squares of deviations from the consensus in all directions, for the effect
    mean: Floats  # of these, if there are none
    variance: Floats

    @property
    def statistics(self) -> Floats:
        """Both statistics that are drawn: (2, n_users)."""
        return np.stack([self.statistic, self.uninformed])


def _said(inputs: Inputs, expected: Expectation) -> Said:
    return Said.of(
        inputs.link, expected.margin, expected.level, inputs.answers.weighted, expected.has_ties
    )


def _uninformed(inputs: Inputs, said: Said, has_ties: bool) -> Floats:
    """Return by how much votes are likelier if they do not depend on the items, in nats."""
    answers = inputs.answers
    return without_items(answers, has_ties) - answers.sum_by_user(said.log_likelihood)


def _standing(inputs: Inputs, yardstick: Yardstick, said: Said) -> _Standing:
    answers = inputs.answers
    numbers = _Standing(*np.zeros((len(_Standing._fields), answers.n_users)))
    numbers.uninformed[:] = _uninformed(inputs, said, yardstick.expected.has_ties)

    def stand(block: Block) -> None:
        users = block.users
        bend = block.bend(said.mm, said.mt, said.tt)
        pull = block.pull(said.by_margin, said.by_level)
        numbers.statistic[users] = yardstick.surprise(block, said, inputs).statistic(pull)
        spread = block.spread(said, answers)
        one = np.eye(block.width)
        whole, _ = inverse(bend + one / DEVIATION_VARIANCE)
        explained = one - whole / DEVIATION_VARIANCE  # is whole @ bend
        share = explained if spread is None else whole @ spread
        mean = np.einsum("nii->n", share)
        # Errors of the consensus move these numbers as noise of votes does.
        both = bend - explained / DEVIATION_VARIANCE  # is bend @ whole @ bend
        others = yardstick.others
        moved = others.noisier * np.einsum("nij,nij->n", both, others.error(block))
        more = 1.0 + moved / np.maximum(mean, TINY)
        numbers.apart[users] = np.sum(times(whole, pull) * pull, axis=1)
        numbers.mean[users] = mean * more
        numbers.variance[users] = 2.0 * more**2 * np.einsum("nij,nji->n", share, share)

    for_each(yardstick.blocks(answers.voted), stand, inputs.runtime.n_threads)
    return numbers


def _effects(found: _Standing, answers: Answers) -> list[Floats]:
    """Return effects, and the lower and upper ends of their intervals.

    The statistic is about a multiple of a chi-squared number whose noncentrality is the square of
    the effect times the number of votes.
    """
    n_votes = answers.sum_by_user(answers.n_votes)
    there = (found.mean > 0) & (found.variance > 0)
    scale = np.where(there, found.variance / np.where(there, 2 * found.mean, 1.0), 1.0)
    freedom = np.where(there, found.mean / scale, 1.0)
    value = np.where(there, found.apart / scale, 0.0)
    low, middle, high = (
        np.sqrt(scale * _noncentrality(value, freedom, 1.0 - p) / np.maximum(n_votes, 1))
        for p in INTERVAL
    )
    return [np.where(n_votes > 0, each, np.nan) for each in (middle, low, high)]


def _noncentrality(value: Floats, freedom: Floats, share: float) -> Floats:
    """Return with which noncentrality a number lies above so large a share of draws."""
    most = 200.0  # beyond, the square root is as good as normal
    found = scipy.special.chndtrinc(np.minimum(value, most), freedom, share)
    far = (
        np.maximum(np.sqrt(np.maximum(value - freedom, 0.0)) - scipy.special.ndtri(share), 0.0) ** 2
    )
    found = np.where((value > most) | ~np.isfinite(found), far, found)
    return np.where(found > TINY, found, 0.0)


# --- the consensus of those who agree --------------------------------------------------------


def _yardstick(inputs: Inputs, tell: Callable[[float], None]) -> tuple[Inputs, Yardstick]:
    """Fit the consensus again without those who stand out, and find out what is ordinary.

    At least half of the users make the consensus, those who agree best.
    """
    votes, answers, runtime = inputs.votes, inputs.answers, inputs.runtime
    directions = Directions.of(answers, votes)
    tell(0.0)
    inputs = _turned(inputs)
    first = Yardstick.of(inputs, directions, answers.voted, FIRST_VARIANCE)
    said = _said(inputs, first.expected)
    odds = _uninformed(inputs, said, first.expected.has_ties) / answers.noisier

    def stand_out(block: Block) -> None:
        pull = block.pull(said.by_margin, said.by_level)
        odds[block.users] = np.maximum(odds[block.users], first.evidence(block, said, pull))

    for_each(first.blocks(answers.voted), stand_out, runtime.n_threads)
    everybody = runtime.everybody(np.where(answers.voted, odds, np.inf))
    median = float(np.median(everybody[everybody < np.inf]))
    inside = odds <= max(OUTSIDE, median)
    tell(0.2)
    theirs = votes.subset(inside[votes.user])
    inputs = replace(inputs, consensus=_refitted(theirs, inputs, FIRST_VARIANCE))
    variance = _variance_of_scores(inputs, inside)
    inputs = replace(inputs, consensus=_refitted(theirs, inputs, variance))
    tell(0.3)
    return inputs, Yardstick.of(
        inputs, directions, inside & answers.voted, variance, first.variances
    )


def _turned(inputs: Inputs) -> Inputs:
    """Fit the first consensus again without those who clearly vote against it.

    Where nearly as many vote against the others as with them, what all have in common is next to
    nothing. It still tells who turns it round; without these it is clearer, and tells of more.
    """
    votes, answers = inputs.votes, inputs.answers
    against = np.zeros(answers.n_users, dtype=np.bool_)
    for _ in range(N_TURNS):
        expected = inputs.expectation()
        margin = np.asarray(expected.margin - expected.apart)
        said = Said.of(inputs.link, margin, expected.level, answers.weighted, expected.has_ties)
        slope = answers.sum_by_user(expected.apart * said.by_margin)
        noise = np.sqrt(answers.sum_by_user(expected.apart**2 * said.mm))
        before, against = against, slope < -CLEARLY_AGAINST * noise
        n_against, n_voted = inputs.runtime.total(float(against.sum()), float(answers.voted.sum()))
        if 2.0 * n_against > n_voted:  # so many are not against the group: they are the group
            against[:] = False
        elif not inputs.runtime.any(bool(np.any(against != before))):
            break
        inputs = replace(
            inputs, consensus=_refitted(votes.subset(~against[votes.user]), inputs, FIRST_VARIANCE)
        )
    return inputs


def _variance_of_scores(inputs: Inputs, inside: Mask) -> float:
    """Return the variance of the scores of a consensus that was fitted with the first one.

    That of a model would depend on the unit of its weights.
    """
    said, scores = _said(inputs, inputs.expectation()), inputs.consensus.scores
    errors = Others.of(inputs, said, inside, FIRST_VARIANCE).variances
    known = float(np.sum(1.0 - errors / FIRST_VARIANCE))
    found = float(np.sum((scores - scores.mean()) ** 2)) / max(known, 1.0)
    return float(np.clip(found, *VARIANCES))


def _refitted(theirs: Comparisons, inputs: Inputs, variance: float) -> Consensus:
    """Fit a consensus to some votes.

    What they never compared stays where it was, beside what they did.
    """
    before, runtime = inputs.consensus, inputs.runtime
    if theirs.weight is not None:  # beside the prior, it would matter in which unit these are
        theirs = replace(theirs, weight=theirs.weight / inputs.unit, whole=None)
    terms = replace(before.terms, habit_variance=HABIT_VARIANCE)
    refit = fit_common(
        theirs, inputs.link, terms, variance=variance, delta=inputs.delta, runtime=runtime
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
