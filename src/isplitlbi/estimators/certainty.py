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

    def pull_of(self, user: int, found: OfUser) -> Floats:
        """Return how a user pulls at the consensus, with deviations that follow."""
        slots = self.curvature.layout.slots
        own = self.parameters.deviation[slots.start[user] : slots.start[user + 1]]
        slope = found.units * found.pull[: len(found.units)] + own / self.variance[user]
        return np.asarray(found.pull + found.follows.T @ slope)

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
    consensus : (width, width)
        Covariance of the consensus.
    shift : (width,)
        From the consensus of the fit to its best estimate. In a fit, users' deviations are taken
        for known, which makes margins too small (Laplace), and all users for equally different.
    """

    seen: _Seen
    n_users: int
    consensus: Floats
    shift: Floats

    @classmethod
    def of(cls, votes: Comparisons, fitted: Fitted) -> Certainty:
        """Evaluate all votes of a fit."""
        seen = _Seen.of(votes, fitted)
        voters = np.flatnonzero(votes.votes_per_user)
        return cls(seen, len(voters), *_of_consensus(seen, voters))

    def of_user(self, user: int) -> OfUser:
        """Evaluate the votes of one user."""
        return self.seen.of_user(user)

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
        common = self.consensus[np.ix_(found.place, found.place)]
        return float(found.units[at] ** 2 * found.inverse[at, at] + moves @ common @ moves)


def _of_consensus(seen: _Seen, voters: Indices) -> tuple[Floats, Floats]:
    """Return covariance and shift of the consensus.

    Users are taken with variances of their own here: where few differ by much, a common one would
    let the others differ too freely. One Newton step brings the consensus there.
    """
    parameters = seen.parameters
    vector, terms = parameters.vector, parameters.terms
    width, share = vector.width, 1.0
    if len(voters) > MOST_USERS:
        share = MOST_USERS / len(voters)
        voters = np.random.default_rng(SEED).choice(voters, MOST_USERS, replace=False)
    seen = replace(seen, variance=_own_variances(seen, voters))
    is_common, precision = terms.is_common(vector), terms.precision(vector)
    total, slope = np.zeros((width, width)), np.zeros(width)
    for user in voters:
        found = seen.of_user(int(user))
        total[np.ix_(found.place, found.place)] += found.eliminated
        slope[found.place] += seen.pull_of(int(user), found) + found.unsure
    total *= np.outer(is_common, is_common) / share
    total[np.diag_indices(width)] += precision + (1.0 - is_common) + LEAST_CURVATURE
    inverse = np.linalg.inv(total)
    slope = is_common * (slope / share + precision * parameters.consensus)
    # Of few users, those who are there may happen to be alike: no less than the model expects.
    covariance = _without_each(seen, voters, inverse, is_common) / share
    spread, least = np.sqrt(np.diag(covariance)), np.sqrt(np.diag(inverse)) * is_common
    larger = np.divide(np.maximum(spread, least), spread, out=np.ones(width), where=spread > 0.0)
    return covariance * np.outer(larger, larger), -inverse @ slope


def _without_each(seen: _Seen, voters: Indices, inverse: Floats, is_common: Floats) -> Floats:
    """Return the covariance of the consensus by leaving out every user in turn (jackknife).

    Without a user, the consensus is elsewhere by their pull, under the curvature of the others.
    """
    moved = np.zeros((len(voters), len(inverse)))
    for row, user in zip(moved, voters, strict=True):
        found = seen.of_user(int(user))
        counts = is_common[found.place]
        own = found.eliminated * np.outer(counts, counts)
        others = np.eye(len(own)) - own @ inverse[np.ix_(found.place, found.place)]
        pull = np.linalg.solve(others, counts * seen.pull_of(int(user), found))
        row[:] = inverse[:, found.place] @ pull
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
    ordinary = square[middle] / max(known[middle], 1e-9)
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
