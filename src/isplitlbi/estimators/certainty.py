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

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import SHARPNESS, THRESHOLD
from isplitlbi.fitting import Fitted
from isplitlbi.model.parameters import Parameters
from isplitlbi.solvers.posterior import Curvature
from isplitlbi.typing import Floats, Indices

__all__ = ["Certainty", "OfUser"]

MOST_USERS = 4000  # that the curvature of the consensus is added up from; beyond, a sample
MOST_PLACES = 2500  # of a consensus whose covariance is found as a whole
SEED = 0
ORDINARY_WEIGHT = 10.0  # what the ordinary variance counts beside a user's own numbers
LITTLE = 1e-4  # of a difference that stands for a derivative
LEAST_CURVATURE = 1e-9  # of the consensus, where nothing holds it, as the sum of all scores


class OfUser(NamedTuple):
    """What the votes of one user say at some parameters."""

    place: Indices  # (n_local,)
    units: Floats  # (n_slots,) of the user's own, the first of the local places
    curvature: Floats  # (n_local, n_local)
    pull: Floats  # (n_local,) at the consensus
    inverse: (
        Floats  # (n_slots, n_slots) the covariance of the user's deviations, given the consensus
    )
    follows: Floats  # (n_slots, n_local) by how much these change with the consensus
    drift: Floats  # (n_slots,) from the likeliest deviations to their mean, given the consensus
    unsure: Floats  # (n_local,) how the logarithm of that covariance's determinant changes, halved

    @property
    def eliminated(self) -> Floats:
        """What is left of the curvature once the user's deviations follow."""
        own = self.units[:, None] * self.follows
        return self.curvature + self.curvature[:, : len(self.units)] @ own


@dataclass(frozen=True, eq=False)
class _Seen:
    """All votes, as they are at the parameters of a fit."""

    parameters: Parameters
    curvature: Curvature
    variance: Floats  # (n_users,) of the prior of everybody's deviations
    bent_by_margin: Floats  # (3, n_edges) how the curvature (mm, mt, tt) changes with the margin
    bent_by_level: Floats  # (3, n_edges) and with the threshold
    units: Floats  # (n_slots,) how large that of every slot is

    @classmethod
    def of(cls, votes: Comparisons, fitted: Fitted) -> _Seen:
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
            parameters, curvature, _variances(fitted), change(LITTLE, 0.0), change(0.0, LITTLE),
            parameters.units,
        )  # fmt: skip

    def of_user(self, user: int) -> OfUser:
        """Evaluate the votes of one user."""
        curvature = self.curvature
        mine = slice(*curvature.layout.edges.start[user : user + 2])
        place, margin, level = self._touched(user)
        own = slice(*curvature.layout.slots.start[user : user + 2])
        units, n_slots = self.units[own], own.stop - own.start
        mm, mt, tt = (each[mine, None] for each in (curvature.mm, curvature.mt, curvature.tt))
        bent = margin.T @ (mm * margin + mt * level) + level.T @ (mt * margin + tt * level)
        pull = curvature.by_margin[mine] @ margin + curvature.by_threshold[mine] @ level
        held = np.eye(n_slots) / self.variance[user]
        inverse = np.linalg.inv(units[:, None] * bent[:n_slots, :n_slots] * units + held)
        follows = -inverse @ (units[:, None] * bent[:n_slots])
        # How sure margin and level of every edge are, and what becomes of that.
        of_margin, of_level = (each[:, :n_slots] * units for each in (margin, level))
        spread = np.array([
            np.sum(one @ inverse * other, axis=1)
            for one, other in ((of_margin, of_margin), (of_margin, of_level), (of_level, of_level))
        ])  # fmt: skip
        spread[1] *= 2.0
        by_margin, by_level = (
            0.5 * np.sum(spread * each[:, mine], axis=0)
            for each in (self.bent_by_margin, self.bent_by_level)
        )
        drift = -inverse @ (by_margin @ of_margin + by_level @ of_level)
        margin, level = margin + of_margin @ follows, level + of_level @ follows
        unsure = by_margin @ margin + by_level @ level
        return OfUser(place, units, bent, pull, inverse, follows, drift, unsure)

    def at_consensus(self, user: int, row: Indices) -> tuple[Indices, Floats, Floats, Floats]:
        """Return what a user does to the consensus, with deviations that follow.

        That is: in which rows, how the objective bends there, the user's pull, and what comes from
        deviations that are not quite known.
        """
        found, slots = self.of_user(user), self.curvature.layout.slots
        own = self.parameters.deviation[slots.start[user] : slots.start[user + 1]]
        slope = found.units * found.pull[: len(found.units)] + own / self.variance[user]
        pull = found.pull + found.follows.T @ slope
        there = np.flatnonzero(row[found.place] >= 0)
        bent = found.eliminated[np.ix_(there, there)]
        return row[found.place[there]], bent, pull[there], found.unsure[there]

    def _touched(self, user: int) -> tuple[Indices, Floats, Floats]:
        """Return the local places, and what each counts for in margins and levels."""
        layout, vector = self.curvature.layout, self.parameters.vector
        slots, edges = layout.slots, layout.edges
        begin, end = slots.start[user : user + 2]
        mine = slice(*edges.start[user : user + 2])
        place = slots.coordinate[begin:end].astype(np.int64)
        n_slots, items = len(place), place[place < vector.n_items]
        if vector.has_habits:
            place = np.append(place, vector.own_width + items)
        first, second = edges.first[mine] - begin, edges.second[mine] - begin
        row = np.arange(len(first))
        margin, level = np.zeros((2, len(row), len(place)))
        margin[row, first], margin[row, second] = 1.0, -1.0
        threshold, n_columns = n_slots - 1, len(edges.columns)
        margin[:, threshold - n_columns : threshold] = edges.columns[:, mine].T
        if self.curvature.apart is not None:
            margin[:, threshold - n_columns - 1] = self.curvature.apart[mine]
        level[:, threshold] = 1.0
        if vector.has_habits:
            level[row, n_slots + first] = level[row, n_slots + second] = 1.0
        return place, margin, level


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
    row : (width,)
        Which row is that of a place; -1 for those that are known, or are of users alone.
    """

    seen: _Seen
    n_users: int
    consensus: Floats
    shift: Floats
    row: Indices

    @classmethod
    def of(cls, votes: Comparisons, fitted: Fitted) -> Certainty:
        """Evaluate all votes of a fit."""
        seen = _Seen.of(votes, fitted)
        voters = np.flatnonzero(votes.votes_per_user)
        return cls(seen, len(voters), *_of_consensus(seen, voters))

    def of_user(self, user: int) -> OfUser:
        """Evaluate the votes of one user."""
        return self.seen.of_user(user)

    def covariance(self, place: Indices) -> Floats:
        """Return the covariance of some places of the consensus."""
        found, row = np.zeros((len(place), len(place))), self.row[place]
        there = np.flatnonzero(row >= 0)
        found[np.ix_(there, there)] = self.consensus[np.ix_(row[there], row[there])]
        return found

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


def _of_consensus(seen: _Seen, voters: Indices) -> tuple[Floats, Floats, Indices]:
    """Return covariance and shift of the consensus, and which row is that of every place.

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
    precision = terms.precision(vector)[kept]
    total = total / share + np.diag(precision + LEAST_CURVATURE)
    inverse = np.linalg.inv(total).astype(np.float64, copy=False)
    shift = np.zeros(vector.width)
    shift[kept] = -inverse @ (slope / share + precision * parameters.consensus[kept])
    covariance = _without_each(seen, voters, inverse, row) / share
    # Of few users, those who are there may happen to be alike: no less than the model expects. (Of
    # scores and thresholds, only differences are known, so that it has no expectation.)
    larger = np.ones(len(kept))
    for trait in terms.traits:
        at = row[vector.place(trait.name)]
        larger[at] = np.sqrt(max(1.0, inverse[at, at] / max(covariance[at, at], 1e-300)))
    return covariance * np.outer(larger, larger), shift, row


def _without_each(seen: _Seen, voters: Indices, inverse: Floats, row: Indices) -> Floats:
    """Return the covariance of the consensus by leaving out every user in turn (jackknife).

    Without a user, the consensus is elsewhere by their pull, under the curvature of the others.
    """
    moved = np.zeros((len(voters), len(inverse)))
    for without, user in zip(moved, voters, strict=True):
        at, eliminated, pull, _ = seen.at_consensus(int(user), row)
        others = np.eye(len(at)) - eliminated @ inverse[np.ix_(at, at)]
        without[:] = inverse[:, at] @ np.linalg.solve(others, pull)
    n_users = len(voters)
    moved -= moved.mean(axis=0)
    return np.asarray(moved.T @ moved * ((n_users - 1) / n_users))


def _own_variances(seen: _Seen, voters: Indices) -> Floats:
    """Return a variance of every user's deviations: by their squares, and by what is ordinary."""
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


def _variances(fitted: Fitted) -> Floats:
    """Return the prior variance of users: nu, or more for those who have left the consensus."""
    slots = fitted.parameters.slots
    if fitted.dynamics is None:
        return np.full(slots.n_users, np.inf)
    variance = np.full(slots.n_users, fitted.dynamics.nu)
    if fitted.path is not None and fitted.time is not None:
        out = fitted.path.support_at(fitted.time)
        square = np.add.reduceat(fitted.parameters.deviation**2, slots.start[:-1]) / slots.sizes
        variance[out] = np.maximum(variance[out], square[out])
    return variance
