"""How likely a user's votes are, if they come about in some way: evidences, in nats.

Ways in which votes depend on the items start from the consensus of the others and add deviations
with normal priors; what these are worth is integrated by Laplace's method. Ways in which votes do
not depend on the items have a Dirichlet prior on the answers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isplitlbi.abnormal.directions import SLOPE, Block, Said, for_each
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.ordinary import Yardstick, diagonals
from isplitlbi.abnormal.surprise import Rest
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Found", "Way", "explain_by", "explain_by_one_item"]

SIDE = 1  # the column after that of the slope, where sides mean something
N_STEPS = 12
ENOUGH = 0.05  # gain in nats below which a step is the last one
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


def explain_by(
    inputs: Inputs, yardstick: Yardstick, way: Way, asked: Mask, start: Found | None = None
) -> Found:
    """Return how likely votes are in one way, and the numbers that explain them best.

    What another way found of the items is a start.
    """
    found = Found.nobody(inputs.answers.n_users, len(yardstick.directions.item))
    scale = max(float(np.var(inputs.consensus.scores)), 0.25)

    def look(block: Block) -> None:
        prior = yardstick.ordinary(block)
        more = np.zeros((len(block.users), block.width))
        more[:, block.threshold] = way.of_level * yardstick.expected.has_ties
        if way.of_slope:
            prior[:, SLOPE, SLOPE] = way.of_slope
        if inputs.answers.has_sides:
            more[:, SIDE] = way.of_side
        more[:, block.n_traits :] = way.of_taste * scale
        prior += diagonals(more)
        there = block.slot >= 0
        first = np.zeros_like(more)
        if start is not None:
            first[there] = start.items[block.slot[there]]
        climbed = _climb(inputs, yardstick, block, way, prior, first)
        found.evidence[block.users] = climbed.evidence
        found.log_likelihood[block.users] = climbed.log_likelihood
        found.items[block.slot[there]] = climbed.mode[there]
        found.slope[block.users] = way.slope + climbed.mode[:, SLOPE]
        found.level[block.users] = way.level + climbed.mode[:, block.threshold]
        if inputs.answers.has_sides:
            found.side[block.users] = climbed.mode[:, SIDE]

    for_each(yardstick.blocks(asked), look, inputs.runtime.n_threads)
    return found


class _Climbed(NamedTuple):
    mode: Floats  # (n, width)
    evidence: Floats
    log_likelihood: Floats
    pull: Floats  # slopes of the log-likelihood at the mode, with...
    bend: Floats  # ...how it bends


def _climb(
    inputs: Inputs, yardstick: Yardstick, block: Block, way: Way, prior: Floats, start: Floats
) -> _Climbed:
    """Find the likeliest deviations of some users, by Newton steps that do not lead down.

    The first step may lead anywhere: what a start costs is not known.
    """
    answers, expected, question = inputs.answers, yardstick.expected, block.question
    margin = expected.margin[question] + (way.slope - 1.0) * expected.apart[question]
    level, counts = expected.level[question] + way.level, answers.weighted[question]
    n_users = len(block.users)
    local = block.alone()

    def look(at: Floats) -> tuple[Floats, Floats, Floats]:
        by_margin, by_level = block.push(at)
        said = Said.of(inputs.link, margin + by_margin, level + by_level, counts, expected.has_ties)
        likelihood = np.bincount(block.row, said.log_likelihood, n_users).astype(np.float64)
        return (
            likelihood, local.pull(said.by_margin, said.by_level),
            local.bend(said.mm, said.mt, said.tt),
        )  # fmt: skip

    at, one = start, np.eye(block.width)
    likelihood, pull, bend = look(at)
    single = prior.astype(np.float32)
    cost = np.where(start.any(axis=1), np.inf, 0.0)
    is_there = np.zeros(n_users, dtype=np.bool_)
    for _ in range(N_STEPS):
        whole = pull + np.einsum("nij,nj->ni", bend, at)
        # Single precision does for a step, and is faster; what it leads to is told in double.
        both = one.astype(np.float32) + single @ bend.astype(np.float32)
        pulled = np.einsum("nij,nj->ni", prior, whole)[:, :, None]
        goal = np.linalg.solve(both, pulled.astype(np.float32))[:, :, 0].astype(np.float64)
        # Of a goal without a part that has no variance, this is its cost.
        rest = whole - np.einsum("nij,nj->ni", bend, goal)
        # Who has arrived stays there, however far others of the block have to go.
        next_cost = np.where(is_there, cost, 0.5 * np.sum(goal * rest, axis=1))
        goal = np.where(is_there[:, None], at, goal)
        there = look(goal)
        worse = there[0] - next_cost < likelihood - cost - ENOUGH
        for _ in range(6):
            if not worse.any():
                break
            # Half way there: costs are convex, so that half of both is enough.
            goal = np.where(worse[:, None], 0.5 * (goal + at), goal)
            next_cost = np.where(worse, 0.5 * (next_cost + cost), next_cost)
            there = look(goal)
            worse = there[0] - next_cost < likelihood - cost - ENOUGH
        gain = (there[0] - next_cost) - (likelihood - cost)
        at, cost, (likelihood, pull, bend) = goal, next_cost, there
        is_there |= gain < ENOUGH
        if is_there.all():
            break
    size = np.linalg.slogdet(one + prior @ bend)[1]
    return _Climbed(at, likelihood - cost - 0.5 * size, likelihood, pull, bend)


def explain_by_one_item(
    inputs: Inputs, yardstick: Yardstick, asked: Mask
) -> tuple[Floats, Places, Floats]:
    """Return how likely votes are if one item is put far from where an ordinary user has it.

    Returns the evidence of every user, the item that explains most, and by how much it is raised.
    """
    n_users = inputs.answers.n_users
    evidence, raised = np.full(n_users, -np.inf), np.zeros(n_users)
    which = np.zeros(n_users, dtype=np.int64)

    def look(block: Block) -> None:
        prior = yardstick.ordinary(block)
        nothing = np.zeros((len(block.users), block.width))
        climbed = _climb(inputs, yardstick, block, Way(), prior, nothing)
        rest = Rest.of(prior, climbed.bend)
        whole = climbed.pull + np.einsum("nij,nj->ni", climbed.bend, climbed.mode)
        left = np.einsum("nij,nj->ni", rest.rows, whole)
        known = np.einsum("nii->ni", rest.known)
        gain = 0.5 * PROMOTION * left**2 / (1.0 + PROMOTION * known)
        gain -= 0.5 * np.log1p(PROMOTION * known)
        is_item = block.slot >= 0
        best = np.where(is_item, gain, -np.inf).argmax(axis=1)
        rows = np.arange(len(best))
        prior[rows, best, best] += PROMOTION
        climbed = _climb(inputs, yardstick, block, Way(), prior, climbed.mode)
        evidence[block.users] = climbed.evidence - np.log(is_item.sum(axis=1))
        which[block.users] = block.item[rows, best]
        raised[block.users] = climbed.mode[rows, best]

    for_each(yardstick.blocks(asked), look, inputs.runtime.n_threads)
    return evidence, which, raised
