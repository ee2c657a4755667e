"""Where items stand for the people whom these users stand for, and how surely that is known.

A fit predicts best when it takes users to differ a little less than they do, and takes each of them
for what is likeliest. Both draw the scores of the consensus together. Here users differ by as much
as their votes say, and all that they may be counts (the marginal likelihood, by Laplace's method).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.estimators.certainty import (
    LEAST_CURVATURE,
    MOST_PLACES,
    MOST_USERS,
    SEED,
    Evidence,
    OfUser,
    Seen,
    Standing,
    no_surer,
    prior_variances,
)
from isplitlbi.estimators.crowd import certainty_of
from isplitlbi.fitting import Fitted
from isplitlbi.model.differences import LEVEL, student
from isplitlbi.model.parameters import Parameters
from isplitlbi.typing import Floats, Indices

__all__ = ["Footing", "footing_of", "standing_of"]

N_ROUNDS, N_ROUNDS_OF_ALL, N_ROUNDS_OF_TASTES = 12, 3, 6
SETTLED = 0.003  # a relative change of the variance that is the last one
FEWEST_TIMES, MOST_TIMES, MOST_CHANGE = 1.8, 8.0, 4.0  # of a correction
ENOUGH_USERS = 500  # to tell by how much users differ
LEAST_VARIANCE, LEAST_OF_SCORES, MOST_VARIANCE = 1e-6, 0.01, 25.0
# Of any score or deviation, in logits: far from the end, a whole step may go astray.
MOST_STEP = 1.0
# People differ in one way where it has so large a share of how tastes vary.
ONE_WAY = 0.6
# How tastes vary together is found for so many items at most. Beside what users tell, the usual
# variance counts like so many users; a part of a taste of which votes know less than this counts as
# if they knew it; and in no way do tastes vary by less than this share of the usual. Settled, like
# the next, on seeds 1000 and up of benchmarks/intervals.py.
MOST_ITEMS, USUAL_WEIGHT, LEAST_TOLD, LEAST_SHARE = 100, 2.0, 0.08, 0.02
# All scores may be too far apart, or too near to each other, by this share: by how much users
# differ is itself an estimate, and what they may be is integrated roughly. More users do not help.
# Settled on the same seeds.
OFF_SCALE = 0.045


class Footing(NamedTuple):
    """Where items stand, with what that was found from.

    Attributes
    ----------
    standing : Standing
    evidence : Evidence
        What every user says of the consensus.
    off_scale : float
        By which share all scores may be too far apart, or too near to each other.
    """

    standing: Standing
    evidence: Evidence
    off_scale: float


def standing_of(votes: Comparisons, fitted: Fitted) -> Standing:
    """Find out where the items stand."""
    return footing_of(votes, fitted).standing


def footing_of(votes: Comparisons, fitted: Fitted) -> Footing:
    """Find out where the items stand, and keep what that was found from.

    Users are a draw from many: how the scores move when each is left out (jackknife) holds for
    other users, too. An estimator that takes all users for one has no variance to find, thresholds
    with a bound may stand at it, and very many items together would take too long: there, one step
    has to do. Of an anonymous crowd, votes are drawn, and not users.
    """
    voters, vector = np.flatnonzero(votes.votes_per_user), fitted.parameters.vector
    is_bounded = fitted.parameters.terms.ties == "bounded"
    is_large = vector.width > MOST_PLACES
    if fitted.dynamics is None or is_bounded or is_large or len(voters) < 2:
        certainty = certainty_of(votes, fitted)
        return Footing(certainty.scores(), certainty.evidence, 0.0)
    rng, nu = np.random.default_rng(SEED), fitted.dynamics.nu
    # Threads would wait for each other longer than these small matrices take.
    with threadpool_limits(1, user_api="blas"):
        some = _some(voters, ENOUGH_USERS, rng)
        settled = _Rounds(votes, fitted, some, nu).settled()
        variance, of_scores = settled.variance, settled.variance_of_scores()
        taste = settled.of_tastes()
        some = _some(voters, MOST_USERS, rng)
        share = len(some) / len(voters)
        last = _Rounds(votes, fitted, some, variance, share, taste=taste, of_scores=of_scores)
        last.go(N_ROUNDS_OF_ALL)
        estimate = last.scores
        if share < 1.0:
            # Some of the users are elsewhere than all: what counts is by how much scores move.
            plain = _Rounds(votes, fitted, some, nu, share, is_marginal=False)
            estimate = fitted.parameters.consensus[vector.scores] + estimate
            estimate -= plain.go(N_ROUNDS_OF_ALL).scores
        evidence = last.evidence()
        covariance = last.covariance(evidence)
    standing = Standing(estimate, covariance, float(len(voters) - 1), of_scores)
    return Footing(standing, evidence, OFF_SCALE)


def _held(step: Floats) -> Floats:
    """Return a step that is not too long."""
    return np.asarray(step * min(1.0, MOST_STEP / max(float(np.abs(step).max(initial=0.0)), 1e-12)))


def _some(users: Indices, most: int, rng: np.random.Generator) -> Indices:
    """Return all users, or as many as may be, drawn at random."""
    return users if len(users) <= most else np.sort(rng.choice(users, most, replace=False))


@dataclass
class _Told:
    """What users tell of how tastes vary together: arrays of (n_items, n_items).

    Two camps differ in one way from each other, whatever the items. If each item's taste were taken
    to vary by itself, as much as any other's, the scores of such a study would be off.
    """

    taste: Floats  # how tastes are taken to vary
    more: Floats  # by how much more they do, as far as the votes know it
    mean: Floats  # (n_items,) the sum of all tastes: what people share is none of their differences
    known: Floats  # which part of a taste they know
    n_users: int = 0

    @classmethod
    def of(cls, taste: Floats) -> _Told:
        """Begin with nobody."""
        return cls(taste, np.zeros_like(taste), np.zeros(len(taste)), np.zeros_like(taste))

    def note(self, found: OfUser, mean: Floats) -> None:
        """Add what a user tells, whose deviations have this mean."""
        at = np.flatnonzero(found.place[: len(found.units)] < len(self.taste))
        items, error = found.place[at], found.inverse[np.ix_(at, at)]
        taken = self.taste[np.ix_(items, items)]
        whole = np.linalg.solve(taken, self.taste[items]).T  # from these items to all
        squares = np.outer(mean[at], mean[at]) + error
        self.more += whole @ (squares - taken) @ whole.T
        self.mean += whole @ mean[at]
        self.known[:, items] += whole - whole @ np.linalg.solve(taken, error).T
        self.n_users += 1

    def learned(self, usual: Floats) -> Floats:
        """Return how tastes vary, beside what is usual.

        An EM step goes only as far as votes know; here it is made as long as that leaves out.
        """
        n_users = max(self.n_users, 1)
        longer = np.linalg.inv(self.known / n_users + LEAST_TOLD * np.eye(len(usual)))
        shared = np.outer(self.mean, self.mean) / n_users
        found = self.taste + longer @ ((self.more - shared) / n_users) @ longer.T
        found = (n_users * found + USUAL_WEIGHT * usual) / (n_users + USUAL_WEIGHT)
        values, vectors = np.linalg.eigh(0.5 * (found + found.T))
        # Votes that no tastes contradict would have them vary without end.
        values = np.clip(values, LEAST_SHARE * usual[0, 0], MOST_VARIANCE * len(usual))
        return np.asarray((vectors * values) @ vectors.T)


@dataclass
class _Rounds:
    """Newton steps of the consensus, with users who follow, and corrections of their variance."""

    votes: Comparisons
    fitted: Fitted
    voters: Indices
    variance: float  # by which users differ, in units of their terms
    share: float = 1.0  # of the users, that these are
    is_marginal: bool = True  # whether it counts how surely deviations are known
    taste: Floats | None = None  # (n_items, n_items) how tastes vary, where that is known better
    of_scores: float | None = None  # the variance of the prior of the scores, if not that of a fit

    def __post_init__(self) -> None:
        """Begin where the fit has ended."""
        self.parameters: Parameters = self.fitted.parameters
        vector, terms = self.parameters.vector, self.parameters.terms
        self.kept = np.flatnonzero(terms.is_common(vector) > 0.0)
        self.row = np.full(vector.width, -1)
        self.row[self.kept] = np.arange(len(self.kept))
        if self.of_scores is not None:
            terms = replace(terms, score_variance=self.of_scores)
        self.prior = np.diag(terms.precision(vector)[self.kept])
        self.variance = max(self.variance, LEAST_VARIANCE)
        self.told: _Told | None = None
        self.errors = self._nothing()  # the covariance of those of the consensus, by its curvature
        # Who has left the consensus differs by as much as was found, and hardly pulls it.
        self.of_those_who_left = np.zeros(self.votes.n_users)
        if self.fitted.path is not None and self.fitted.time is not None:
            left = self.fitted.path.support_at(self.fitted.time)
            self.of_those_who_left[left] = prior_variances(self.fitted)[left]

    @property
    def scores(self) -> Floats:
        """Those of the consensus, so far."""
        return self.parameters.consensus[self.parameters.vector.scores]

    def go(self, n_rounds: int) -> _Rounds:
        """Take some steps."""
        for _ in range(n_rounds):
            self._step()
        return self

    def settled(self) -> _Rounds:
        """Take steps, and correct by how much users differ until that has settled."""
        before, times = 0.0, FEWEST_TIMES
        for _ in range(N_ROUNDS):
            change = float(np.log(self._step()))
            # The corrections of many rounds at once, as far as the last two tell.
            if before * change > 0.0 and abs(change) < abs(before):
                times = float(np.clip(times / (1.0 - change / before), FEWEST_TIMES, MOST_TIMES))
            else:
                times = FEWEST_TIMES
            factor = np.clip(np.exp(times * change), 1.0 / MOST_CHANGE, MOST_CHANGE)
            variance = float(np.clip(self.variance * factor, LEAST_VARIANCE, MOST_VARIANCE))
            is_at_end, self.variance, before = variance == self.variance, variance, change
            if abs(change) < SETTLED or is_at_end:
                break
        return self

    def variance_of_scores(self) -> float:
        """Return the variance of the scores, for the prior of items of which votes tell little.

        It is known from few items. The prior is wider by what Student's distribution is, twice: for
        the variance that is not known, and for an item that may lie where no other does (settled on
        seeds 1000 and up of benchmarks/intervals.py).
        """
        vector, before = self.parameters.vector, self.parameters.terms.score_variance
        at = self.row[vector.scores]
        known = max(float(np.sum(1.0 - np.diag(self.errors)[at] / before)), 1.0)
        found = float(np.sum((self.scores - self.scores.mean()) ** 2)) / known
        wider = student(np.floor(known), 0.5 + 0.5 * LEVEL) / student(np.inf, 0.5 + 0.5 * LEVEL)
        return float(np.clip(found * wider**4, LEAST_OF_SCORES, MOST_VARIANCE))

    def of_tastes(self) -> Floats | None:
        """Find out whether people differ in one way, once it is known by how much; and in which.

        Returns the covariance of tastes, or nothing where no way stands out: then these are
        independent. It is not asked of many items.
        """
        n_items = self.parameters.n_items
        if n_items > MOST_ITEMS:
            return None
        usual = self.variance * np.eye(n_items)
        self.taste = usual
        for _ in range(N_ROUNDS_OF_TASTES):
            self.told = _Told.of(self.taste)
            self._step()
            self.taste = self.told.learned(usual)
        values, vectors = np.linalg.eigh(self.taste)
        if values[-1] < ONE_WAY * values.sum():
            return None
        rest, way = float(values[:-1].mean()), vectors[:, -1]
        return np.asarray(rest * np.eye(n_items) + (values[-1] - rest) * np.outer(way, way))

    def _seen(self) -> Seen:
        fitted = replace(self.fitted, parameters=self.parameters)
        everybody = np.maximum(self.of_those_who_left, self.variance)
        seen = replace(Seen.of(self.votes, fitted), variance=everybody)
        if self.taste is None:
            return seen
        return replace(seen, taste=self.taste - self.variance * np.eye(len(self.taste)))

    def _step(self) -> float:
        """Take a step; return how many times as much users differ as they were taken to."""
        parameters, seen = self.parameters, self._seen()
        own, start = parameters.deviation.copy(), parameters.slots.start
        bent, slope, following = self._nothing(), np.zeros(len(self.kept)), []
        for user in self.voters.tolist():
            found, mine = seen.of_user(user), slice(start[user], start[user + 1])
            pull = found.units * found.pull[: len(found.units)] + seen.held(user, own[mine])
            there = np.flatnonzero(self.row[found.place] >= 0)
            at = self.row[found.place[there]]
            moved = found.pull + found.follows.T @ pull + self.is_marginal * found.unsure
            bent[np.ix_(at, at)] += found.eliminated[np.ix_(there, there)]
            slope[at] += moved[there]
            own[mine] -= _held(found.inverse @ pull)
            following.append((mine, found, self.of_those_who_left[user] == 0.0))
        step = np.zeros(parameters.vector.width)
        held = self.prior @ parameters.consensus[self.kept]
        self.errors = self._inverse(bent)
        step[self.kept] = _held(-self.errors @ (slope / self.share + held))
        squares = known = 0.0
        for mine, found, is_inside in following:
            own[mine] += _held(found.follows @ step[found.place])
            if is_inside:
                squares += float(np.sum((own[mine] + found.drift) ** 2))
                if self.told is not None:
                    self.told.note(found, own[mine] + found.drift)
                known += float(np.sum(1.0 - np.diag(found.inverse) / self.variance))
        self.parameters = replace(parameters, consensus=parameters.consensus + step, deviation=own)
        return max(squares, LEAST_VARIANCE) / max(known, LEAST_VARIANCE) / self.variance

    def _nothing(self) -> Floats:
        return np.zeros((len(self.kept), len(self.kept)))

    def _inverse(self, bent: Floats) -> Floats:
        held = self.prior + LEAST_CURVATURE * np.eye(len(self.kept))
        return np.asarray(np.linalg.inv(bent / self.share + held), dtype=np.float64)

    def evidence(self) -> Evidence:
        """Return what users say of the consensus that was reached."""
        seen, bent = self._seen(), self._nothing()
        for user in self.voters.tolist():
            at, eliminated, _, _ = seen.at_consensus(user, self.row)
            bent[np.ix_(at, at)] += eliminated
        held = np.diag(self.prior) + LEAST_CURVATURE
        return Evidence(seen, self.voters, self.share, self.row, self._inverse(bent), held)

    def covariance(self, evidence: Evidence) -> Floats:
        """Return that of the scores: by leaving out users, and no less than the model expects."""
        rows = self.row[self.parameters.vector.scores]
        scores = np.ix_(rows, rows)
        by_users, expected = evidence.covariance()[scores], evidence.expected[scores]
        off = OFF_SCALE * (self.scores - self.scores.mean())
        return no_surer(by_users, expected) + np.outer(off, off)
