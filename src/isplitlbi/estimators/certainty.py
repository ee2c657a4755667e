"""How surely a model knows its consensus and its users: from the curvature of their votes.

Users are independent given the consensus. So each is eliminated by a small matrix of their own, and
what is left of the curvature is that of the consensus. The users themselves are a draw from many:
how the consensus moves when each is left out holds for other users, too, whether or not they are
distributed as the model takes them to be.

Conventions
-----------
place      where a number lies in the consensus vector
local      the places that a user's votes touch: the user's slots, then the habits of their items
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import SHARPNESS, THRESHOLD
from isplitlbi.estimators.entries import Entries
from isplitlbi.fitting import Fitted
from isplitlbi.model.differences import own_variances
from isplitlbi.model.parameters import Parameters
from isplitlbi.solvers.posterior import Curvature
from isplitlbi.typing import Floats, Indices, Places

__all__ = [
    "Certainty",
    "Evidence",
    "OfUser",
    "Seen",
    "Standing",
    "no_surer",
    "prior_variances",
]

MOST_USERS = 4000  # that the curvature of the consensus is added up from; beyond, a sample
MOST_PLACES = 2500  # of a consensus whose covariance is found as a whole
SEED = 0
ORDINARY_WEIGHT = 10.0  # what the ordinary variance counts beside a user's own numbers
LITTLE = 1e-4  # of a difference that stands for a derivative
LEAST_CURVATURE = 1e-9  # of the consensus, where nothing holds it, as the sum of all scores
LEAST_VARIANCE = 1e-12  # of a user who does not deviate at all, where it is divided by


class Standing(NamedTuple):
    """How surely the scores of the consensus are known. Only differences of scores count.

    Attributes
    ----------
    estimate : (n_items,)
        The best estimate of the scores, in the order of the items.
    covariance : (n_items, n_items)
        Of its errors; (n_items,) their variances, where there are so many items that errors are
        taken for independent.
    freedom : float
        Degrees of freedom of the covariance (Student); infinite where it is not from few users.
    prior_variance : float
        Of a score before any vote; infinite where nothing holds the scores.
    """

    estimate: Floats
    covariance: Floats
    freedom: float
    prior_variance: float = float("inf")

    def at(self, items: Places) -> Standing:
        """Return the same for some items, in some order."""
        pairs = items if self.covariance.ndim == 1 else np.ix_(items, items)
        covariance = self.covariance[pairs]
        return self._replace(estimate=self.estimate[items], covariance=covariance)


def no_surer(found: Floats, expected: Floats) -> Floats:
    """Return a covariance of scores that takes no item for surer than it is expected to be.

    An item that few have voted on may happen to be the same without each of them.
    """
    missing = np.maximum(own_variances(expected) - own_variances(found), 0.0)
    return np.asarray(found + np.diag(missing))


class OfUser(NamedTuple):
    """What the votes of one user say at some parameters."""

    place: Indices  # (n_local,)
    units: Floats  # (n_slots,) of the user's own, the first of the local places
    curvature: Floats  # (n_local, n_local)
    pull: Floats  # (n_local,) at the consensus
    inverse: Floats  # (n_slots, n_slots) covariance of the user's deviations, given the consensus
    follows: Floats  # (n_slots, n_local) by how much these change with the consensus
    drift: Floats  # (n_slots,) from the likeliest deviations to their mean, given the consensus
    unsure: Floats  # (n_local,) how the logarithm of that covariance's determinant changes, halved

    @property
    def eliminated(self) -> Floats:
        """What is left of the curvature once the user's deviations follow."""
        own = self.units[:, None] * self.follows
        return self.curvature + self.curvature[:, : len(self.units)] @ own


@dataclass(frozen=True, eq=False)
class Seen:
    """All votes, as they are at the parameters of a fit."""

    parameters: Parameters
    curvature: Curvature
    variance: Floats  # (n_users,) of the prior of everybody's deviations
    bent_by_margin: Floats  # (3, n_edges) how the curvature (mm, mt, tt) changes with the margin
    bent_by_level: Floats  # (3, n_edges) and with the threshold
    units: Floats  # (n_slots,) how large that of every slot is
    # (n_items, n_items) how tastes vary together, beyond that variance, where it is known.
    taste: Floats | None = None

    @classmethod
    def of(cls, votes: Comparisons, fitted: Fitted) -> Seen:
        """Evaluate all votes."""
        parameters, link = fitted.parameters, fitted.link
        curvature = Curvature.of(votes, link, parameters)
        answering, counts = parameters.terms.answering(link), curvature.layout.edges.counts

        def change(by_margin: float, by_level: float) -> Floats:
            if parameters.terms.ties == "bounded":  # near the bound there is no telling
                return np.zeros((3, len(curvature.margin)))
            ends = []
            for sign in (1.0, -1.0):
                margin = curvature.margin + sign * by_margin
                level = curvature.level + sign * by_level
                bends = answering.vote_terms(margin, level, *counts)[3:]
                ends.append(np.array([np.broadcast_to(each, margin.shape) for each in bends]))
            return np.asarray((ends[0] - ends[1]) / (2.0 * LITTLE))

        return cls(
            parameters, curvature, prior_variances(fitted), change(LITTLE, 0.0),
            change(0.0, LITTLE), parameters.units,
        )  # fmt: skip

    def of_user(self, user: int) -> OfUser:
        """Evaluate the votes of one user."""
        curvature = self.curvature
        mine = slice(*curvature.layout.edges.start[user : user + 2])
        place, margin, level = self._touched(user)
        own = slice(*curvature.layout.slots.start[user : user + 2])
        units, n, n_slots = self.units[own], len(place), own.stop - own.start
        mm, mt, tt = curvature.mm[mine], curvature.mt[mine], curvature.tt[mine]
        mixed = margin.crossed(level, mt, n)
        bent = margin.crossed(margin, mm, n) + mixed + mixed.T + level.crossed(level, tt, n)
        pull = margin.added(curvature.by_margin[mine], n)
        pull += level.added(curvature.by_threshold[mine], n)
        inverse = self._given_consensus(user, units[:, None] * bent[:n_slots, :n_slots] * units)
        follows = -inverse @ (units[:, None] * bent[:n_slots])
        # How sure margin and level of every edge are, and what becomes of that.
        of_margin, of_level = margin.within(units), level.within(units)
        spread = np.array([
            of_margin.spread(of_margin, inverse), 2.0 * of_margin.spread(of_level, inverse),
            of_level.spread(of_level, inverse),
        ])  # fmt: skip
        by_margin, by_level = (
            0.5 * np.sum(spread * each[:, mine], axis=0)
            for each in (self.bent_by_margin, self.bent_by_level)
        )
        on_own = of_margin.added(by_margin, n_slots) + of_level.added(by_level, n_slots)
        unsure = margin.added(by_margin, n) + level.added(by_level, n) + on_own @ follows
        return OfUser(place, units, bent, pull, inverse, follows, -inverse @ on_own, unsure)

    def _given_consensus(self, user: int, bent: Floats) -> Floats:
        """Return the covariance of a user's deviations, by their prior and how votes bend."""
        one, free = np.eye(len(bent)), self.variance[user]  # of who never deviates, this is zero
        if self.taste is None:
            return np.asarray(free * np.linalg.inv(one + free * bent))
        prior = self.prior(user)
        return np.asarray(prior @ np.linalg.inv(one + bent @ prior))

    def at_consensus(self, user: int, row: Indices) -> tuple[Indices, Floats, Floats, Floats]:
        """Return what a user does to the consensus, with deviations that follow.

        That is: in which rows, how the objective bends there, the user's pull, and what comes from
        deviations that are not quite known.
        """
        found, slots = self.of_user(user), self.curvature.layout.slots
        own = self.parameters.deviation[slots.start[user] : slots.start[user + 1]]
        held = self.held(user, own)
        slope = found.units * found.pull[: len(found.units)] + held
        pull = found.pull + found.follows.T @ slope
        there = np.flatnonzero(row[found.place] >= 0)
        bent = found.eliminated[np.ix_(there, there)]
        return row[found.place[there]], bent, pull[there], found.unsure[there]

    def prior(self, user: int) -> Floats:
        """Return the covariance of the prior of a user's deviations: (n_slots, n_slots)."""
        slots = self.curvature.layout.slots
        place = slots.coordinate[slots.start[user] : slots.start[user + 1]]
        prior: Floats = self.variance[user] * np.eye(len(place))
        if self.taste is not None:
            at = np.flatnonzero(place < self.parameters.n_items)
            prior[np.ix_(at, at)] += self.taste[np.ix_(place[at], place[at])]
        return prior

    def held(self, user: int, own: Floats) -> Floats:
        """Return the slope of the prior at some deviations."""
        if self.taste is None:
            return np.asarray(own / max(self.variance[user], LEAST_VARIANCE))
        return np.asarray(np.linalg.solve(self.prior(user), own))

    def _touched(self, user: int) -> tuple[Indices, Entries, Entries]:
        """Return the local places, and what each counts for in margins and levels."""
        layout, vector = self.curvature.layout, self.parameters.vector
        slots, edges = layout.slots, layout.edges
        begin, end = slots.start[user : user + 2]
        mine = slice(*edges.start[user : user + 2])
        place = slots.coordinate[begin:end].astype(np.int64)
        n_slots, items = len(place), place[place < vector.n_items]
        first, second = edges.first[mine] - begin, edges.second[mine] - begin
        one, threshold = np.ones(len(first)), n_slots - 1
        margin, level = [(first, one), (second, -one)], [(np.full(len(first), threshold), one)]
        trait = threshold - len(edges.columns)
        others = list(edges.columns[:, mine])
        if self.curvature.apart is not None:
            trait, others = trait - 1, [self.curvature.apart[mine], *others]
        margin += [(np.full(len(first), trait + k), amount) for k, amount in enumerate(others)]
        if vector.has_habits:
            place = np.append(place, vector.own_width + items)
            level += [(n_slots + first, one), (n_slots + second, one)]
        return place, Entries(margin), Entries(level)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What every user says of the consensus: all that its covariance is made of.

    Attributes
    ----------
    seen : Seen
        All votes, at the best estimate of the consensus.
    voters : (n_voters,)
        Users from whom the curvature was added up: all who voted, or some of them.
    share : float
        Which share of those who voted they are.
    row : (width,)
        Which row is that of a place; -1 for those that are known, or are of users alone.
    expected : (n_rows, n_rows)
        What the model itself takes the covariance for: its inverse curvature.
    held : (n_rows,)
        What the prior has in that curvature.
    """

    seen: Seen
    voters: Indices
    share: float
    row: Indices
    expected: Floats
    held: Floats

    def influences(self, users: Indices | None = None) -> Floats:
        """Return by how much every user moves the consensus: (n_users, n_rows).

        That is from leaving out each in turn (jackknife): without a user, the consensus is
        elsewhere by their pull, under the curvature of the others. The squares of all users add up
        to the covariance of the consensus. Users are those of the curvature, or others who voted.
        """
        users = self.voters if users is None else users
        moved, inverse = np.zeros((len(users), len(self.expected))), self.expected
        for without, user in zip(moved, users, strict=True):
            at, eliminated, pull, _ = self.seen.at_consensus(int(user), self.row)
            others = np.eye(len(at)) - eliminated @ inverse[np.ix_(at, at)]
            without[:] = inverse[:, at] @ np.linalg.solve(others, pull)
        n_users = max(len(users), 1)
        moved -= moved.sum(axis=0) / n_users
        return np.asarray(moved * np.sqrt((n_users - 1) / n_users))

    def covariance(self) -> Floats:
        """Return the covariance of the consensus: (n_rows, n_rows)."""
        moved = self.influences()
        return np.asarray(moved.T @ moved / self.share)


@dataclass(frozen=True, eq=False)
class Certainty:
    """Covariances of all that a model has fitted.

    Attributes
    ----------
    n_users : int
        Who voted.
    consensus : (n_rows, n_rows)
        Covariance of the consensus. With very many items, scores and habits are taken for known.
    shift : (width,)
        From the consensus of the fit to its best estimate. In a fit, users' deviations are taken
        for known, which makes margins too small (Laplace), and all users for equally different.
    evidence : Evidence
        What the covariance was found from.
    standing : Standing or None
        How surely the scores are known, where others have told it: see `beside`.
    """

    seen: Seen
    n_users: int
    consensus: Floats
    shift: Floats
    evidence: Evidence
    standing: Standing | None = None

    @classmethod
    def of(cls, votes: Comparisons, fitted: Fitted) -> Certainty:
        """Evaluate all votes of a fit."""
        seen = Seen.of(votes, fitted)
        voters = np.flatnonzero(votes.votes_per_user)
        # Threads would wait for each other longer than these small matrices take.
        with threadpool_limits(1, user_api="blas"):
            found = cls(seen, len(voters), *_of_consensus(seen, voters))
        if fitted.dynamics is None:  # the consensus is what it is: nobody's deviations move it
            found = replace(found, shift=np.zeros_like(found.shift))
        return found

    def beside(self, seen: Seen) -> Certainty:
        """Return the same beside users who had no part in the consensus."""
        return replace(self, seen=seen, standing=self.scores())

    @property
    def row(self) -> Indices:
        """Which row is that of a place; -1 for those that are known, or are of users alone."""
        return self.evidence.row

    def of_user(self, user: int) -> OfUser:
        """Evaluate the votes of one user."""
        return self.seen.of_user(user)

    def covariance(self, place: Indices) -> Floats:
        """Return the covariance of some places of the consensus."""
        found, row = np.zeros((len(place), len(place))), self.row[place]
        there = np.flatnonzero(row >= 0)
        found[np.ix_(there, there)] = self.consensus[np.ix_(row[there], row[there])]
        return found

    def scores(self) -> Standing:
        """Return how surely the scores of the consensus are known.

        Users are a draw from many, so that the covariance is that of leaving out every user in
        turn. An item that few have voted on may be the same without each of them by chance: no
        variance is below what the model itself expects. Of a single user, there is no leaving out:
        the covariance is what the model expects (its inverse curvature), and so it is with votes
        that do not tell users apart. With very many items, the errors of all items are taken for
        independent, with the curvature of each by itself.
        """
        if self.standing is not None:
            return self.standing
        parameters = self.seen.parameters
        where, n_items = parameters.vector.scores, parameters.n_items
        estimate = parameters.consensus[where] + self.shift[where]
        freedom = float(self.n_users - 1) if self.n_users > 1 else np.inf
        prior = parameters.terms.score_variance
        row = self.row[where]
        if n_items and row[0] < 0:
            variance = 1.0 / (self._score_information() + 1.0 / prior + LEAST_CURVATURE)
            return Standing(estimate, variance, freedom, prior)
        expected, found = self.evidence.expected[np.ix_(row, row)], self.consensus[np.ix_(row, row)]
        if self.n_users < 2:
            return Standing(estimate, expected, freedom, prior)
        return Standing(estimate, no_surer(found, expected), freedom, prior)

    def _score_information(self) -> Floats:
        """Return what the votes say about every item by itself, whoever has which taste."""
        slots, n_items = self.seen.curvature.layout.slots, self.seen.parameters.n_items
        bent = self.seen.curvature.of_slots()
        free = self.seen.units**2 * self.seen.variance[slots.owner]
        is_score = slots.coordinate < n_items
        told = (bent / (1.0 + free * bent))[is_score]
        return np.bincount(slots.coordinate[is_score], told, n_items).astype(np.float64, copy=False)

    def shift_of(self, trait: str, found: OfUser) -> float:
        """Return how far the mean of what a user has of a trait is from what is likeliest.

        For sharpness and threshold, that is in relation to the consensus.
        """
        place = self.seen.parameters.vector.place(trait)
        at = int(np.flatnonzero(found.place == place)[0])
        own = found.units[at] * (found.drift[at] + found.follows[at] @ self.shift[found.place])
        return float(own if trait in (SHARPNESS, THRESHOLD) else own + self.shift[place])

    def variance_of(self, trait: str, found: OfUser) -> float:
        """Return the variance of what consensus and a user have of a trait together.

        Of sharpness and threshold, the user's own is told in relation to the consensus.
        """
        at = int(np.flatnonzero(found.place == self.seen.parameters.vector.place(trait))[0])
        moves = found.units[at] * found.follows[at]
        if trait not in (SHARPNESS, THRESHOLD):
            moves[at] += 1.0
        common = self.covariance(found.place)
        return float(found.units[at] ** 2 * found.inverse[at, at] + moves @ common @ moves)


def _of_consensus(seen: Seen, voters: Indices) -> tuple[Floats, Floats, Evidence]:
    """Return covariance and shift of the consensus, and what they were found from.

    Users are taken with variances of their own here: where few differ by much, a common one would
    let the others differ too freely. One Newton step brings the consensus there.
    """
    parameters = seen.parameters
    vector, terms, share = parameters.vector, parameters.terms, 1.0
    if len(voters) > MOST_USERS:
        share = MOST_USERS / len(voters)
        voters = np.random.default_rng(SEED).choice(voters, MOST_USERS, replace=False)
    seen = replace(seen, variance=_own_variances(seen, voters))
    is_kept = terms.is_common(vector) > 0.0
    if vector.width > MOST_PLACES:
        is_kept[vector.scores] = is_kept[vector.habits] = False
    kept, row = np.flatnonzero(is_kept), np.full(vector.width, -1)
    row[kept] = np.arange(len(kept))
    total, slope = np.zeros((len(kept), len(kept))), np.zeros(len(kept))
    for user in voters:
        at, eliminated, pull, unsure = seen.at_consensus(int(user), row)
        total[np.ix_(at, at)] += eliminated
        slope[at] += pull + unsure
    prior = np.diag(terms.precision(vector)[kept])
    total = total / share + prior + LEAST_CURVATURE * np.eye(len(kept))
    inverse = np.linalg.inv(total).astype(np.float64, copy=False)
    shift = np.zeros(vector.width)
    shift[kept] = -inverse @ (slope / share + prior @ parameters.consensus[kept])
    held = np.diag(prior) + LEAST_CURVATURE
    evidence = Evidence(seen, voters, share, row, inverse, held)
    covariance = evidence.covariance()
    # Of few users, those who are there may happen to be alike: no less than the model expects. (Of
    # scores and thresholds, only differences are known, so that it has no expectation.)
    larger = np.ones(len(kept))
    for trait in terms.traits:
        at = row[vector.place(trait.name)]
        larger[at] = np.sqrt(max(1.0, inverse[at, at] / max(covariance[at, at], 1e-300)))
    return covariance * np.outer(larger, larger), shift, evidence


def _own_variances(seen: Seen, voters: Indices) -> Floats:
    """Return a variance of every user's deviations: by their squares, and by what is ordinary."""
    if not seen.variance.any():  # nobody deviates
        return seen.variance
    slots, deviation = seen.parameters.slots, seen.parameters.deviation
    square = np.add.reduceat(deviation**2, slots.start[:-1])
    known = np.zeros(slots.n_users)
    for user in voters:
        spread = np.diag(seen.of_user(int(user)).inverse) / seen.variance[user]
        known[user] = max(float(np.sum(1.0 - spread)), 0.0)
    order = voters[np.argsort(square[voters] / np.maximum(known[voters], 1e-9), kind="stable")]
    weight = np.cumsum(known[order])
    middle = order[min(int(np.searchsorted(weight, 0.5 * weight[-1])), len(order) - 1)]
    ordinary = min(square[middle] / max(known[middle], 1e-9), float(seen.variance.min()))
    return np.asarray((ORDINARY_WEIGHT * ordinary + square) / (ORDINARY_WEIGHT + known))


def prior_variances(fitted: Fitted) -> Floats:
    """Return the prior variance of users: nu, or more for those who have left the consensus.

    Without a path, it is that of a ridge, or nothing where everybody has the consensus.
    """
    slots = fitted.parameters.slots
    if fitted.dynamics is None:
        ridge = fitted.chosen.get("ridge", np.inf)
        return np.full(slots.n_users, 1.0 / ridge)
    variance = np.full(slots.n_users, fitted.dynamics.nu)
    if fitted.path is not None and fitted.time is not None:
        out = fitted.path.support_at(fitted.time)
        square = np.add.reduceat(fitted.parameters.deviation**2, slots.start[:-1]) / slots.sizes
        variance[out] = np.maximum(variance[out], square[out])
    return variance
