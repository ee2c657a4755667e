"""How likely a user's votes are, if they come about in some way: evidences, in nats.

Ways in which votes depend on the items start from the consensus of the others and add deviations
with normal priors; what these are worth is integrated by Laplace's method. Ways in which votes do
not depend on the items have a Dirichlet prior on the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isplitlbi.abnormal.directions import NUMBERS_AT_ONCE, SIDE, SLOPE, Block, Said, for_each
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.matrices import Precision, size, times
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.surprise import Rest
from isplitlbi.model.links import Link
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Found", "Way", "explain_by", "explain_by_one_item"]

N_STEPS = 40
ENOUGH = 0.05  # gain in nats below which a step is the last one
MOST_OF_MARGIN, MOST_OF_LEVEL = 6.0, 2.0  # that a step changes any question by
LEAST_SCALE = 0.25  # variance of consensus scores that tastes are relative to
PROMOTION = 9.0  # variance of the score of an item that somebody promotes


class Way(NamedTuple):
    """One way to depart from the consensus: where a user's slope is, and what varies how much.

    Variances are added to those of an ordinary user, but that of the slope, which takes the place
    of it. That of the taste is relative to the variance of the consensus scores.
    """

    slope: float = 1.0
    level: float = 0.0  # of the threshold's logarithm, beside the consensus
    of_slope: float = 0.0
    of_side: float = 0.0
    of_level: float = 0.0
    of_taste: float = 0.0
    of_margin: float = 0.0  # of the slope, told by what it makes of a margin of the consensus


class Found(NamedTuple):
    """What a way comes to, for every user; -inf and zeros for those not asked about."""

    evidence: Floats
    slope: Floats  # where the votes are most likely
    side: Floats  # beside that of the consensus
    level: Floats  # the logarithm of the threshold, beside that of the consensus
    log_likelihood: Floats
    items: Floats  # (n_slots,) what is added to the items' scores, where `Block.slot` says

    @classmethod
    def nobody(cls, n_users: int, n_slots: int) -> Found:
        """Start with nothing found."""
        slope, side, level, likelihood = np.zeros((4, n_users))
        return cls(np.full(n_users, -np.inf), slope, side, level, likelihood, np.zeros(n_slots))

    def near(self, block: Block, way: Way, has_sides: bool) -> Floats:
        """Return where the users of a block are most likely, as far as it was noted: a start."""
        mode = np.where(block.slot >= 0, self.items[block.slot], 0.0)
        mode[:, SLOPE] = self.slope[block.users] - way.slope
        mode[:, block.threshold] = self.level[block.users] - way.level
        if has_sides:
            mode[:, SIDE] = self.side[block.users]
        return mode


def explain_by(
    inputs: Inputs, yardstick: Yardstick, ways: Sequence[Way], asked: Mask,
    ordinary: Found | None = None,
) -> dict[Way, Found]:  # fmt: skip
    """Return how likely votes are in every way, and the numbers that explain them best.

    What was found of them as ordinary users is a start, where it is known.
    """
    n_users, n_slots = inputs.answers.n_users, len(yardstick.directions.item)
    has_sides = inputs.answers.has_sides
    found = {way: Found.nobody(n_users, n_slots) for way in ways}

    def look(block: Block) -> None:
        # Small matrices of several ways at once take hardly longer than those of one.
        n_together = max(1, NUMBERS_AT_ONCE // block.size)
        covariance = yardstick.ordinary(block)
        usual = Precision.of(covariance)
        for begun in range(0, len(ways), n_together):
            some = ways[begun : begun + n_together]
            priors = [_prior(inputs, yardstick, block, way, covariance, usual) for way in some]
            prior = Precision.joined(priors)
            start = None
            if ordinary is not None:
                start = np.concatenate([ordinary.near(block, way, has_sides) for way in some])
            climbed = _climb(inputs, yardstick, block, some, prior, start)
            for number, way in enumerate(some):
                mine = slice(number * len(block.users), (number + 1) * len(block.users))
                _note(found[way], block, way, climbed.of(mine), has_sides)

    for_each(yardstick.blocks(asked), look, inputs.runtime.n_threads)
    return found


def _prior(
    inputs: Inputs, yardstick: Yardstick, block: Block, way: Way, covariance: Floats,
    usual: Precision,
) -> Precision:  # fmt: skip
    """Return what a way allows, beside the covariances of ordinary users and their inverses."""
    scale = max(float(np.var(inputs.consensus.scores)), LEAST_SCALE)
    variance = np.einsum("nii->ni", covariance).copy()
    variance[:, block.threshold] += way.of_level * yardstick.expected.has_ties
    if inputs.answers.has_sides:
        variance[:, SIDE] += way.of_side
    if way.of_slope or way.of_margin:
        variance[:, SLOPE] = way.of_slope + way.of_margin / (2.0 * scale)
    if not way.of_taste:  # traits depend on nothing else: only their units are others
        return usual._replace(unit=np.sqrt(variance))
    variance[:, block.n_traits :] += way.of_taste * scale
    prior = covariance.copy()
    np.einsum("nii->ni", prior)[:] = variance
    return Precision.of(prior)


def _note(found: Found, block: Block, way: Way, climbed: _Climbed, has_sides: bool) -> None:
    """Note what was found of the users of a block."""
    there = block.slot >= 0
    found.evidence[block.users] = climbed.evidence
    found.log_likelihood[block.users] = climbed.log_likelihood
    found.items[block.slot[there]] = climbed.mode[there]
    found.slope[block.users] = way.slope + climbed.mode[:, SLOPE]
    found.level[block.users] = way.level + climbed.mode[:, block.threshold]
    if has_sides:
        found.side[block.users] = climbed.mode[:, SIDE]


class _Climbed(NamedTuple):
    mode: Floats  # (n, width)
    evidence: Floats
    log_likelihood: Floats
    pull: Floats  # slopes of the log-likelihood at the mode, with...
    bend: Floats  # ...how it bends

    def of(self, some: slice) -> _Climbed:
        """Return what was found of some users."""
        return _Climbed(*(each[some] for each in self))


class _Point(NamedTuple):
    """Where users are on their way up."""

    at: Floats  # (n, width)
    cost: Floats  # what the prior makes of it
    log_likelihood: Floats
    pull: Floats
    bend: Floats

    def of(self, some: Mask) -> _Point:
        """Return where some users are."""
        return _Point(*(each[some] for each in self))


class _Climbers(NamedTuple):
    """Users on their way up, with their questions and what the prior allows them."""

    block: Block
    margin: Floats  # of every question
    level: Floats
    counts: Floats
    prior: Precision

    def of(self, some: Mask) -> _Climbers:
        """Return some of them."""
        asked = some[self.block.row]
        return _Climbers(
            self.block.of(some).alone(), self.margin[asked], self.level[asked], self.counts[asked],
            self.prior.some(some),
        )  # fmt: skip

    def look(self, link: Link, has_ties: bool, at: Floats, cost: Floats) -> _Point:
        """Look at the votes from some point."""
        by_margin, by_level = self.block.push(at)
        margin, level = self.margin + by_margin, self.level + by_level
        said = Said.of(link, margin, level, self.counts, has_ties)
        likelihood = np.bincount(self.block.row, said.log_likelihood, len(at)).astype(np.float64)
        pull = self.block.pull(said.by_margin, said.by_level)
        return _Point(at, cost, likelihood, pull, self.block.bend(said.mm, said.mt, said.tt))

    def step(self, point: _Point) -> tuple[Floats, Floats]:
        """Return where a Newton step leads, and what the prior makes of it.

        Far from where votes are likely they bend next to nothing, and a whole step leads beyond.
        """
        whole = point.pull + times(point.bend, point.at)
        both, unit = self.prior.with_votes(point.bend), self.prior.unit
        moved = np.linalg.solve(both, (unit * whole)[:, :, None])[:, :, 0]
        goal = np.asarray(unit * moved, dtype=np.float64)
        cost = 0.5 * np.sum(goal * (whole - times(point.bend, goal)), axis=1)
        by_margin, by_level = self.block.push(goal - point.at)
        furthest = np.maximum(np.abs(by_margin) / MOST_OF_MARGIN, np.abs(by_level) / MOST_OF_LEVEL)
        first = np.searchsorted(self.block.row, np.arange(len(goal)))
        part = 1.0 / np.maximum(np.maximum.reduceat(furthest, first), 1.0)
        # Costs are convex: this is the most that part of the way comes to.
        cost = point.cost + part * (cost - point.cost)
        return point.at + part[:, None] * (goal - point.at), cost


def _climb(
    inputs: Inputs, yardstick: Yardstick, block: Block, ways: Sequence[Way], prior: Precision,
    start: Floats | None = None,
) -> _Climbed:  # fmt: skip
    """Find the likeliest deviations of some users, by Newton steps that do not lead down.

    All users of a block are looked at in the first way, then all in the second, and so on. They
    start from where they are said to be, or else from the middle of what the prior allows.
    """
    answers, expected, question = inputs.answers, yardstick.expected, block.question
    apart, n_ways = expected.apart[question], len(ways)
    margin = np.concatenate([expected.margin[question] + (way.slope - 1.0) * apart for way in ways])
    level = np.concatenate([expected.level[question] + way.level for way in ways])
    counts = np.tile(answers.weighted[question], (n_ways, 1))
    climbers = _Climbers(block.times(n_ways).alone(), margin, level, counts, prior)
    unit = prior.unit
    n_users, width = unit.shape
    found = _Climbed(
        np.zeros((n_users, width)), np.zeros(n_users), np.zeros(n_users),
        np.zeros((n_users, width)), np.zeros((n_users, width, width)),
    )  # fmt: skip
    going, has_ties = np.arange(n_users), expected.has_ties
    at = np.zeros((n_users, width)) if start is None else np.where(unit > 0.0, start, 0.0)
    point = climbers.look(inputs.link, has_ties, at, prior.cost(at))
    goal, cost = climbers.step(point)
    for number in range(N_STEPS):
        there = climbers.look(inputs.link, has_ties, goal, cost)
        gain = (there.log_likelihood - cost) - (point.log_likelihood - point.cost)
        is_worse = gain < -ENOUGH
        # Who would come down goes half way: costs are convex, so that half of both is enough.
        half, half_cost = 0.5 * (goal + point.at), 0.5 * (cost + point.cost)
        for new, old in zip(there, point, strict=True):
            new[is_worse] = old[is_worse]
        point = there
        is_there = (~is_worse & (gain < ENOUGH)) | (number == N_STEPS - 1)
        if is_there.any():
            here, arrived = going[is_there], point.of(is_there)
            both = climbers.prior.some(is_there).with_votes(arrived.bend)
            narrowed = size(both) + prior.size[here]
            evidence = arrived.log_likelihood - arrived.cost - 0.5 * narrowed
            found.mode[here], found.evidence[here] = arrived.at, evidence
            found.log_likelihood[here] = arrived.log_likelihood
            found.pull[here], found.bend[here] = arrived.pull, arrived.bend
            if is_there.all():
                break
            # Often one user has far to go: the others are not taken along.
            left = ~is_there
            going, climbers, point = going[left], climbers.of(left), point.of(left)
            is_worse, half, half_cost = is_worse[left], half[left], half_cost[left]
        goal, cost = climbers.step(point)
        goal[is_worse], cost[is_worse] = half[is_worse], half_cost[is_worse]
    return found


def explain_by_one_item(
    inputs: Inputs, yardstick: Yardstick, asked: Mask, ordinary: Found
) -> tuple[Floats, Places, Floats]:
    """Return how likely votes are if one item is put far from where an ordinary user has it.

    What was found of them as ordinary users, `Way` without anything else, is where it starts.
    Returns the evidence of every user, the item that explains most, and by how much it is raised.
    """
    n_users = inputs.answers.n_users
    evidence, raised = np.full(n_users, -np.inf), np.zeros(n_users)
    which = np.zeros(n_users, dtype=np.int64)

    def look(block: Block) -> None:
        covariance = yardstick.ordinary(block)
        usual = Precision.of(covariance)
        start = ordinary.near(block, Way(), inputs.answers.has_sides)
        climbed = _climb(inputs, yardstick, block, [Way()], usual, start)
        rest = Rest.of(usual, climbed.bend)
        left = times(rest.rows, climbed.pull + times(climbed.bend, climbed.mode))
        known = rest.variances
        gain = 0.5 * PROMOTION * left**2 / (1.0 + PROMOTION * known)
        gain -= 0.5 * np.log1p(PROMOTION * known)
        is_item = block.slot >= 0
        best = np.where(is_item, gain, -np.inf).argmax(axis=1)
        rows = np.arange(len(best))
        covariance[rows, best, best] += PROMOTION
        prior = Precision.of(covariance)
        climbed = _climb(inputs, yardstick, block, [Way()], prior, climbed.mode)
        evidence[block.users] = climbed.evidence - np.log(is_item.sum(axis=1))
        which[block.users] = block.item[rows, best]
        raised[block.users] = climbed.mode[rows, best]

    for_each(yardstick.blocks(asked), look, inputs.runtime.n_threads)
    return evidence, which, raised
