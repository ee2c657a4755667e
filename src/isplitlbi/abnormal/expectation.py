"""What users answered, beside what a consensus expects them to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy

from isplitlbi.abnormal.company import Company, Ordinary, Together
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Sees, tally
from isplitlbi.data.outcomes import all_on_one_side
from isplitlbi.model.answering import Answering, ForcedChoice, LogThreshold, log_probabilities
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Consensus
from isplitlbi.model.terms import PAPER, Feature, Side, Terms
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.common import common_terms, restated
from isplitlbi.typing import Floats, Indices, Mask, Places

__all__ = [
    "Answers",
    "Expectation",
    "Inputs",
    "TellingVote",
    "find_telling_votes",
    "of_answers",
    "share_of_group",
    "without_items",
]

ONE_OF_EACH = np.eye(3)
LEAST = np.finfo(np.float64).smallest_subnormal  # of a probability of which a logarithm is taken


@dataclass(frozen=True, eq=False)
class Answers:
    """The votes of every user, counted by question, user after user.

    A question is a pair of items as it was shown to one user (where sides mean something; else the
    lower one is first), with the weight that the vote has, and its features where the terms know of
    them. Counts are whole numbers of votes: a draw needs these.
    """

    start: Places  # (n_users + 1,) a user's questions are start[u]:start[u + 1]
    user: Indices  # (n_questions,)
    left: Indices
    right: Indices
    weight: Floats  # of one vote
    counts: Places  # (n_questions, 3) votes for left, tie, right
    n_votes: Places  # the sum of these
    columns: Mapping[str, Floats]  # what else may count in a margin: the side, features, by name
    # Votes of one user and one group depend on each other: the group of every vote, in the order of
    # questions.
    group: Indices | None = None

    @classmethod
    def of(
        cls,
        votes: Comparisons,
        terms: Terms = PAPER,
        *,
        has_sides: bool = True,
        by_group: bool = False,
        unit: float = 1.0,
    ) -> Self:
        """Count votes; their order does not matter. Weights are told in some unit.

        By group, votes that depend on each other count for less.
        """
        features = [term for term in terms.all if isinstance(term, Feature)]
        sees = Sees.SIDE if has_sides else Sees.PAIR
        group = votes.group if by_group else None
        if unit != 1.0 or group is not None:
            weight = np.ones(len(votes)) if votes.weight is None else votes.weight / unit
            share = 1.0 if group is None else share_of_group(votes)
            votes = replace(votes, weight=weight * share, whole=None)
        found = tally(votes, by_user=True, by_weight=True, by_features=bool(features), sees=sees)
        if group is not None:
            kept = [] if votes.features is None else list(votes.features.values.T)
            pair = votes.left, votes.right
            if not has_sides:
                kept = [np.where(votes.left < votes.right, each, -each) for each in kept]
                pair = np.minimum(*pair), np.maximum(*pair)
            kept = kept if features else []
            group = group[np.lexsort((group, votes.weight, *kept[::-1], *pair[::-1], votes.user))]
        start = np.searchsorted(found.user, np.arange(votes.n_users + 1))
        ones = np.ones(len(found.user))
        weight = ones if found.weight is None else found.weight
        counts = np.stack(found.counts, axis=1).astype(np.int64)
        columns = {Side.name: ones} if has_sides else {}
        if found.features is not None:
            columns |= {term.name: found.features[term.place] for term in features}
        return cls(
            start, found.user, found.first, found.second, weight, counts, counts.sum(axis=1),
            columns, group,
        )  # fmt: skip

    @property
    def n_users(self) -> int:
        """Number of users in the vocabulary."""
        return len(self.start) - 1

    @property
    def voted(self) -> Mask:
        """Which users have votes."""
        return np.diff(self.start) > 0

    @cached_property
    def weighted(self) -> Floats:
        """The counts as sums of weights."""
        return np.asarray(self.counts * self.weight[:, None])

    @property
    def noisier(self) -> Floats:
        """How many times as much the weighted votes of every user vary as their number tells.

        Votes of one group count for less already, so that they do not.
        """
        if self.group is not None:
            return np.ones(self.n_users)
        whole, squares = (self.sum_by_user(self.n_votes * self.weight**power) for power in (1, 2))
        return np.asarray(np.maximum(squares / np.where(whole > 0.0, whole, 1.0), 1.0))

    def of_user(self, user: int) -> slice:
        """Return the place of one user's questions."""
        return slice(*self.start[user : user + 2])

    @property
    def has_sides(self) -> bool:
        """Whether left and right mean something."""
        return Side.name in self.columns

    def apart(self, consensus: Consensus) -> Floats:
        """Return how far apart the scores of the two items are."""
        scores = consensus.scores
        return np.asarray(scores[self.left] - scores[self.right])

    def beside(self, consensus: Consensus, but: str = "") -> Floats | float:
        """Return what counts in the margin besides the scores, all but one."""
        known = set(consensus.vector.traits) - {but}
        counts = (
            consensus.trait(name) * self.columns[name] for name in self.columns if name in known
        )
        return sum(counts, start=0.0)

    def margin(self, consensus: Consensus) -> Floats:
        """Return by how much the consensus prefers the left item."""
        return np.asarray(self.apart(consensus) + self.beside(consensus))

    def habit(self, consensus: Consensus) -> Floats | float:
        """Return by which factor the habits of the items change the threshold of every question."""
        if not consensus.vector.has_habits:
            return 1.0
        habits = consensus.habits
        return np.asarray(habits[self.left] * habits[self.right])

    def sum_by_user(self, values: Floats | Places) -> Floats:
        """Add up numbers per question."""
        return np.bincount(self.user, values, self.n_users).astype(np.float64, copy=False)

    def by_user(self, amounts: Floats) -> Floats:
        """Add up the amounts of the three outcomes: (n_users, 3)."""
        return np.stack([self.sum_by_user(column) for column in amounts.T], axis=1)

    def log_likelihood(self, log_probability: Floats) -> Floats:
        """Return the log-likelihood of every user's votes, from those of the three outcomes."""
        said = np.sum(self.counts * log_probability, axis=1) * self.weight
        return self.sum_by_user(said)


def share_of_group(votes: Comparisons) -> Floats:
    """Return what one of several votes tells that depend on each other.

    In all pairs of one ranking, two votes on one item share its noise, and correlate by a third.
    """
    keys = np.asarray(votes.group, dtype=np.int64)
    keys = votes.user * (keys.max(initial=0) + 1) + keys
    _, group = np.unique(keys, return_inverse=True)
    items = [group * np.int64(votes.n_items) + item for item in (votes.left, votes.right)]
    items_of_groups = np.sort(np.concatenate(items))
    is_first = np.diff(items_of_groups, prepend=-1) > 0
    n_items = np.bincount(items_of_groups[is_first] // votes.n_items)
    votes_per_item = 2.0 * np.bincount(group) / n_items
    return np.asarray(3.0 / (2.0 + votes_per_item))[group]


def without_items(answers: Answers, has_ties: bool) -> Floats:
    """Return the log-likelihood of everybody's answers, whatever the items."""
    given = answers.by_user(answers.weighted)
    return of_answers(given, has_ties=has_ties, has_sides=answers.has_sides)


def of_answers(amounts: Floats, *, has_ties: bool, has_sides: bool) -> Floats:
    """Return the log-likelihood of so many answers of each kind, (..., 3), whatever the items.

    Their shares are not known beforehand: all sequences of answers with the same shares. Where
    sides mean nothing, a decided vote goes either way with the same chance.
    """
    total, by_side = amounts.sum(axis=-1), 0.0
    if not has_sides:
        decided = amounts[..., 0] + amounts[..., 2]
        amounts = np.stack([decided, amounts[..., 1]], axis=-1)
        by_side = -np.log(2.0) * decided
    n_answers = float(has_sides + has_ties + 1)
    sequences = scipy.special.gammaln(amounts + 1.0).sum(axis=-1) - scipy.special.gammaln(
        total + n_answers
    )
    return np.asarray(sequences + scipy.special.gammaln(n_answers) + by_side)


@dataclass(frozen=True, eq=False)
class Expectation:
    """What a consensus expects of every question; outcomes in the order left, tie, right."""

    link: Link
    margin: Floats
    apart: Floats  # what the scores are of it
    threshold: Floats
    has_ties: bool

    @classmethod
    def of(
        cls,
        answers: Answers,
        consensus: Consensus,
        link: Link,
        *,
        by_scores: Floats | float = 0.0,
        beside: Floats | float = 0.0,
        by_level: Floats | float = 0.0,
    ) -> Self:
        """Find out how a consensus would answer, with something added to what it has."""
        apart = np.asarray(answers.apart(consensus) + by_scores)
        margin = np.asarray(apart + answers.beside(consensus) + beside)
        threshold = consensus.threshold * answers.habit(consensus) * np.exp(by_level)
        threshold = np.broadcast_to(threshold, margin.shape)
        return cls(link, margin, apart, threshold, consensus.terms.has_ties)

    @cached_property
    def level(self) -> Floats:
        """The logarithm of the threshold.

        By its logarithm a threshold near zero surprises no more than a large one. Without ties all
        slopes in it are zero, and nothing is looked for there.
        """
        return np.asarray(np.log(np.maximum(self.threshold, LEAST)))

    @cached_property
    def probability(self) -> Floats:
        """Of the outcomes: (n_questions, 3)."""
        return np.exp(
            log_probabilities(self.link, self.margin, self.threshold, has_ties=self.has_ties)
        )

    @property
    def by_margin(self) -> Floats:
        """Slopes of the outcomes' log-probabilities in the margin: (n_questions, 3)."""
        return self._slopes[0]

    @property
    def by_level(self) -> Floats:
        """Slopes in the logarithm of the threshold: (n_questions, 3)."""
        return self._slopes[1]

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats]:
        answering: Answering = LogThreshold(self.link) if self.has_ties else ForcedChoice(self.link)
        slopes = [
            -np.asarray(np.broadcast_to(slope, self.margin.shape))
            for outcome in ONE_OF_EACH
            for slope in answering.vote_terms(self.margin, self.level, *outcome)[1:3]
        ]
        return np.stack(slopes[::2], 1), np.stack(slopes[1::2], 1)

    @property
    def log_probability(self) -> Floats:
        """The logarithms, which are finite for what cannot happen, too."""
        return np.asarray(np.log(np.maximum(self.probability, LEAST)))


@dataclass(frozen=True)
class Inputs:
    """What the tests of users are given.

    Attributes
    ----------
    votes, answers
        The votes, and the same by question.
    link : Link
        The link of the model.
    consensus : Consensus
        What users are compared with.
    delta : float
        Smallest tie threshold.
    seed : int
        Seed of everything that is drawn; every user has draws of their own.
    runtime : Runtime
        Where these are some of the users only, it knows of the others.
    unit : float
        The weight of a vote, on average: a study is the same in whatever unit weights are told.
    company : Company or None
        Among whom users are tested: by default all of them together.
    """

    votes: Comparisons
    answers: Answers
    link: Link
    consensus: Consensus
    delta: float
    seed: int
    runtime: Runtime
    unit: float = 1.0
    company: Company | None = None

    @property
    def among(self) -> Company:
        """Among whom users are tested."""
        return Together(self.runtime) if self.company is None else self.company

    @classmethod
    def of(
        cls,
        votes: Comparisons,
        link: Link,
        consensus: Consensus,
        *,
        delta: float,
        seed: int,
        runtime: Runtime,
        has_sides: bool = True,
    ) -> Self:
        """Take what these votes have in common with others in the terms of a first consensus.

        There is no threshold where no vote is a tie, and no side where sides mean nothing: either
        that is said, or the consensus has none though its terms are not the paper's, or every
        winner is on the same side.
        """
        terms = consensus.terms
        n_votes, weight, n_left, n_right = runtime.total(
            float(len(votes)), votes.total_weight,
            float(np.count_nonzero(votes.outcome > 0)), float(np.count_nonzero(votes.outcome < 0)),
        )  # fmt: skip
        may_have_sides = terms.ties == "bounded" and not all_on_one_side(n_left, n_right)
        has_sides = has_sides and (may_have_sides or Side.name in terms.names)
        has_ties = runtime.any(bool(np.any(votes.outcome == 0)))
        terms = common_terms(terms, has_ties=has_ties)
        # Users are tested on the items that they compared here, whatever these are a part of.
        votes = votes if votes.whole is None else replace(votes, whole=None)
        unit = weight / n_votes
        answers = Answers.of(votes, terms, has_sides=has_sides, by_group=True, unit=unit)
        consensus = restated(consensus, terms)
        return cls(votes, answers, link, consensus, delta, seed, runtime, unit)

    @classmethod
    def beside(
        cls,
        votes: Comparisons,
        link: Link,
        consensus: Consensus,
        ordinary: Ordinary,
        company: Company,
        *,
        delta: float,
        seed: int,
        runtime: Runtime,
    ) -> Self:
        """Take the votes of newcomers, who are compared with what is known of a study."""
        votes = replace(votes, whole=None)
        answers = Answers.of(
            votes, consensus.terms, has_sides=ordinary.has_sides, by_group=True, unit=ordinary.unit
        )
        return cls(votes, answers, link, consensus, delta, seed, runtime, ordinary.unit, company)

    def expectation(self) -> Expectation:
        """Return what the consensus expects."""
        return Expectation.of(self.answers, self.consensus, self.link)


class TellingVote(NamedTuple):
    """A vote that speaks against the consensus, and how likely the consensus found it."""

    left: Any
    right: Any
    outcome: int
    times: int
    probability: float


class TellingVotes(NamedTuple):
    """The same of many users, user after user, by index."""

    user: Indices
    left: Indices
    right: Indices
    outcome: Places
    times: Places
    probability: Floats


def find_telling_votes(
    votes: Comparisons,
    link: Link,
    consensus: Consensus,
    most: int = 10,
    *,
    has_sides: bool = True,
) -> TellingVotes:
    """Return the votes of every user that the consensus least expected, the least likely first.

    Where sides mean nothing, a pair is one question whichever item was on the left.
    """
    answers = Answers.of(votes, consensus.terms, has_sides=has_sides)
    chance = Expectation.of(answers, consensus, link).probability
    question, said = np.nonzero(answers.counts)
    order = np.lexsort((chance[question, said], answers.user[question]))
    user = answers.user[question[order]]
    place = np.arange(len(user)) - np.searchsorted(user, user)  # among the votes of its user
    question, said = question[order][place < most], said[order][place < most]
    return TellingVotes(
        answers.user[question],
        answers.left[question],
        answers.right[question],
        1 - said,
        answers.counts[question, said],
        chance[question, said],
    )
