"""What two models have in common, and how surely the difference of their scores is known.

Users are independent of each other, and votes that are in both models have the same errors in both.
So what counts is by how much each user moves the *difference*: a user whose votes are the same in
both models moves it by next to nothing, one who is in one of them only by as much as that model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.estimators import certainty
from isplitlbi.estimators.certainty import Evidence, no_surer
from isplitlbi.estimators.standing import Footing
from isplitlbi.lazy import pl
from isplitlbi.model.differences import own_variances
from isplitlbi.typing import Floats, Indices, Labels, Mask, Places

__all__ = ["Difference", "Matched", "SharedVotes", "difference_of", "rows_among"]

SEED = 0


# --- ids and votes -------------------------------------------------------------------------


class Matched(NamedTuple):
    """The ids of two models side by side.

    Attributes
    ----------
    ids : (n_ids,)
        All ids of both, as they are spelled after where they are there, sorted.
    before, after : (n_ids,)
        The place of each id; -1 where it is not there.
    """

    ids: Labels
    before: Places
    after: Places

    @classmethod
    def of(cls, before: Labels, after: Labels) -> Matched:
        """Match ids; where they are numbers in one model and texts in the other, as texts."""
        as_text = before.dtype.kind != after.dtype.kind

        def keys(ids: Labels) -> list[Any]:
            return [str(each) for each in ids.tolist()] if as_text else ids.tolist()

        then, now = ({key: n for n, key in enumerate(keys(ids))} for ids in (before, after))
        everything = sorted({**then, **now})
        places = [
            np.array([known.get(key, -1) for key in everything], dtype=np.int64)
            for known in (then, now)
        ]
        ids = [
            after[place] if place >= 0 else before[other]
            for other, place in zip(*places, strict=True)
        ]
        whole = np.empty(len(ids), dtype=object)
        whole[:] = ids
        return cls(whole, *places)

    @property
    def in_both(self) -> Mask:
        """Which ids are in both."""
        return np.asarray((self.before >= 0) & (self.after >= 0))


class SharedVotes(NamedTuple):
    """How many votes two models share: the same user, sides, outcome and weight.

    Attributes
    ----------
    before, after : (n_users,)
        How many votes every user has, in the order of the matched users.
    common : (n_users,)
        How many of them are in both.
    """

    before: Places
    after: Places
    common: Places

    @classmethod
    def of(
        cls, before: Comparisons, after: Comparisons, users: Matched, items: Matched
    ) -> SharedVotes:
        """Count the votes."""
        rows = [
            rows_among(votes, places, of_items)
            for votes, places, of_items in (
                (before, users.before, items.before), (after, users.after, items.after),
            )
        ]  # fmt: skip
        keys = ["user", "left", "right", "outcome", "weight"]
        counted = [each.group_by(keys).len() for each in rows]
        shared = counted[0].join(counted[1], on=keys, suffix="_after")
        common = shared.select("user", pl.min_horizontal("len", "len_after").cast(pl.Int64))
        n_users = len(users.ids)
        of_user = np.bincount(
            common["user"].to_numpy(), common["len"].to_numpy(), n_users
        ).astype(np.int64)  # fmt: skip
        per_user = (np.bincount(each["user"].to_numpy(), minlength=n_users) for each in rows)
        return cls(*per_user, of_user)

    @property
    def are_the_same(self) -> bool:
        """Whether the votes of both models are the same."""
        return bool(np.all((self.before == self.common) & (self.after == self.common)))


def rows_among(votes: Comparisons, users: Places, items: Places) -> pl.DataFrame:
    """Return votes by the places of users and items among those of both models."""
    user, item = (np.zeros(max(int(each.max()) + 1, 1), dtype=np.int64) for each in (users, items))
    for found, places in ((user, users), (item, items)):
        found[places[places >= 0]] = np.flatnonzero(places >= 0)
    weight = np.ones(len(votes)) if votes.weight is None else votes.weight
    return pl.DataFrame(
        {
            "user": user[votes.user],
            "left": item[votes.left],
            "right": item[votes.right],
            "outcome": votes.outcome.astype(np.int64),
            "weight": weight,
        }
    )


# --- the difference of scores --------------------------------------------------------------


class Difference(NamedTuple):
    """By how much scores differ, and how surely that is known: of the items in both models.

    Only differences between items count.

    Attributes
    ----------
    estimate, covariance
        Of the change, item by item.
    before, covariance_before
        Of the scores before.
    between : (n_items, n_items)
        Covariance of the errors before with those of the change.
    freedom : float
        Degrees of freedom of the covariance; infinite where it is not from few users.
    """

    estimate: Floats
    covariance: Floats
    before: Floats
    covariance_before: Floats
    between: Floats
    freedom: float

    def at(self, items: Places) -> Difference:
        """Return the same for some of the items, in some order."""
        pairs = np.ix_(items, items)
        return Difference(
            self.estimate[items], self.covariance[pairs], self.before[items],
            self.covariance_before[pairs], self.between[pairs], self.freedom,
        )  # fmt: skip


class _Sampled(NamedTuple):
    """Users whose votes are evaluated, by their places before and after, and for how many each."""

    before: Places
    after: Places
    stands_for: Floats
    share_of_common: Floats  # of the votes in the smaller of the two models

    def some(self, chosen: Mask) -> _Sampled:
        return _Sampled(*(each[chosen] for each in self))


def difference_of(
    before: Footing, after: Footing, users: Matched, items: Matched, votes: SharedVotes
) -> Difference:
    """Find out how scores differ between two models, by the influence of every user on both."""
    places = items.before[items.in_both], items.after[items.in_both]
    estimates = [
        footing.standing.estimate[place]
        for footing, place in zip((before, after), places, strict=True)
    ]
    covariance = before.standing.covariance[np.ix_(places[0], places[0])]
    if votes.are_the_same and np.array_equal(*estimates):  # the same errors, whatever they are
        nothing = np.zeros_like(covariance)
        return Difference(nothing[0], nothing, estimates[0], covariance, nothing, np.inf)
    # Threads would wait for each other longer than these small matrices take.
    with threadpool_limits(1, user_api="blas"):
        sampled = _sampled(users, votes)
        moved = [
            _influences(footing.evidence, of_user, place)
            for footing, of_user, place in zip(
                (before, after), (sampled.before, sampled.after), places, strict=True
            )
        ]
        expected, freedom = _expected(before.evidence, after.evidence, sampled, items)
    weight = sampled.stands_for[:, None]
    change = moved[1] - moved[0]
    found = change.T @ (weight * change)
    between = moved[0].T @ (weight * change)
    whole = no_surer(found, expected)
    freedom = _freedom(freedom, max(map(np.count_nonzero, votes[:2])) - 1.0, found, whole)
    scale = _off_scale(before, after, estimates, votes)
    return Difference(
        estimates[1] - estimates[0], whole + scale, estimates[0], covariance, between, freedom,
    )  # fmt: skip


def _sampled(users: Matched, votes: SharedVotes) -> _Sampled:
    """Return all users who voted, or a sample of those in both models and of those in one each."""
    voted = votes.before + votes.after > 0
    fewer = np.maximum(np.minimum(votes.before, votes.after), 1)
    whole = _Sampled(
        np.where(votes.before > 0, users.before, -1), np.where(votes.after > 0, users.after, -1),
        np.ones(len(fewer)), votes.common / fewer,
    ).some(voted)  # fmt: skip
    kind = 2 * (whole.before >= 0) + (whole.after >= 0)
    if len(kind) <= certainty.MOST_USERS:
        return whole
    rng, kept = np.random.default_rng(SEED), np.zeros(len(kind), dtype=np.bool_)
    for each in np.unique(kind):
        those = np.flatnonzero(kind == each)
        n_kept = min(len(those), certainty.MOST_USERS)
        kept[rng.choice(those, n_kept, replace=False)] = True
        whole.stands_for[those] = len(those) / n_kept
    return whole.some(kept)


def _influences(evidence: Evidence, users: Places, items: Places) -> Floats:
    """Return by how much each user moves the scores of some items, beside their mean."""
    there = np.flatnonzero(users >= 0)
    moved = np.zeros((len(users), len(items)))
    moved[there] = evidence.influences(users[there])[:, evidence.row[items]]
    return np.asarray(moved - moved.mean(axis=1, keepdims=True))


def _expected(
    before: Evidence, after: Evidence, users: _Sampled, items: Matched
) -> tuple[Floats, float]:
    """Return what the models expect of the covariance, and its degrees of freedom.

    The errors of a score come from the curvature of the votes. Where votes are in both models, they
    make the same errors in both: these cancel, as far as both follow the votes alike. If all votes
    of one model are in the other, the variance of the change is the difference of the variances.
    A user counts in the degrees of freedom by what their votes have in that variance.
    """
    common, same_row = items.in_both, _same_rows(before, after, items)
    sides = []
    for evidence, place in ((before, items.before[common]), (after, items.after[common])):
        rows = evidence.expected[evidence.row[place]]
        sides.append(rows - rows.mean(axis=0))
    total = np.zeros((len(sides[0]), len(sides[0])))
    by_user = np.zeros(len(users.before))
    both = np.zeros((len(before.expected), len(after.expected)))
    for number, (one, other, stands_for, share) in enumerate(zip(*users, strict=True)):
        own = []
        for evidence, of_user, side in ((before, one, sides[0]), (after, other, sides[1])):
            if of_user >= 0:
                at, bent, _, _ = evidence.seen.at_consensus(int(of_user), evidence.row)
                by_user[number] += float(np.sum((side[:, at] @ bent) * side[:, at]))
                own.append((at, bent))
        if len(own) < 2 or share <= 0.0:
            continue
        # The curvature of what they have in common: that of the fewer votes, as far as shared.
        is_smaller = np.trace(own[0][1]) <= np.trace(own[1][1])
        at, bent = own[0] if is_smaller else own[1]
        matched = same_row[at] if is_smaller else _turned(same_row, len(after.expected))[at]
        known = np.flatnonzero(matched >= 0)
        first, second = at[known], matched[known]
        if not is_smaller:
            first, second = second, first
        shared = share * bent[np.ix_(known, known)]
        both[np.ix_(first, second)] += stands_for * shared
        by_user[number] -= 2.0 * float(np.sum((sides[0][:, first] @ shared) * sides[1][:, second]))
    known = np.flatnonzero(same_row >= 0)
    both[known, same_row[known]] += np.minimum(before.held[known], after.held[same_row[known]])
    for evidence, side, place in (
        (before, sides[0], items.before[common]), (after, sides[1], items.after[common])
    ):  # fmt: skip
        covariance = side[:, evidence.row[place]]
        total += covariance - covariance.mean(axis=1, keepdims=True)
    crossed = sides[0] @ both @ sides[1].T
    return total - crossed - crossed.T, _as_many_as(by_user, users.stands_for) - 1.0


def _as_many_as(by_user: Floats, stands_for: Floats) -> float:
    """Return as how many users they count, if each had as much to say as any other."""
    by_user = np.maximum(by_user, 0.0)
    squares = float(stands_for @ by_user**2)
    return float(stands_for @ by_user) ** 2 / squares if squares > 0.0 else 0.0


def _freedom(of_users: float, of_models: float, found: Floats, whole: Floats) -> float:
    """Return the degrees of freedom of a covariance that is partly what the models expect.

    What leaving out users tells is known from those who make the change, which may be few. What the
    models expect is known from all users (Satterthwaite).
    """
    told, total = (float(own_variances(each).sum()) for each in (found, whole))
    if total <= 0.0 or of_models < 1.0:
        return np.inf
    share = min(told / total, 1.0)
    missing = share**2 / max(of_users, 1.0) + (1.0 - share) ** 2 / of_models
    return float(max(np.floor(1.0 / missing), 1.0))


def _same_rows(before: Evidence, after: Evidence, items: Matched) -> Indices:
    """Return which row after is that of every row before: the same item, or the same trait."""
    of_item = np.full(before.seen.parameters.n_items, -1)
    of_item[items.before[items.in_both]] = items.after[items.in_both]
    one, other = before.seen.parameters.vector, after.seen.parameters.vector
    place = np.full(one.width, -1)
    place[one.scores] = of_item
    for trait in set(one.traits) & set(other.traits):
        place[one.place(trait)] = other.place(trait)
    if one.has_habits and other.has_habits:
        place[one.habits] = np.where(of_item >= 0, other.habits.start + of_item, -1)
    found = np.full(len(before.expected), -1)
    kept = np.flatnonzero(before.row >= 0)
    found[before.row[kept]] = np.where(place[kept] >= 0, after.row[place[kept]], -1)
    return found


def _turned(same_row: Indices, n_rows: int) -> Indices:
    turned = np.full(n_rows, -1)
    known = np.flatnonzero(same_row >= 0)
    turned[same_row[known]] = known
    return turned


def _off_scale(
    before: Footing, after: Footing, estimates: list[Floats], votes: SharedVotes
) -> Floats:
    """Return what is added because all scores may be too far apart, or too near to each other.

    As far as votes are in both models, that is the same in both.
    """
    one, other = (
        footing.off_scale * (scores - scores.mean())
        for footing, scores in zip((before, after), estimates, strict=True)
    )
    fewer = min(int(votes.before.sum()), int(votes.after.sum()))
    alike = int(votes.common.sum()) / max(fewer, 1)
    crossed = alike * np.outer(one, other)
    return np.asarray(np.outer(one, one) + np.outer(other, other) - crossed - crossed.T)
