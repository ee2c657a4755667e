"""What two models have in common, and how surely the difference of their scores is known.

Users are independent of each other, and votes that are in both models have the same errors in both.
So what counts is by how much each user moves the *difference*: a user whose votes are the same in
both models moves it by next to nothing, one who is in one of them only by as much as that model.
Users who are in both, and those who are in one of them, are drawn from people of their own.
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
from isplitlbi.typing import Floats, Indices, Labels, Mask, Places

__all__ = ["Difference", "Matched", "SharedVotes", "difference_of", "rows_among"]

SEED = 0
ONLY_AFTER, ONLY_BEFORE, IN_BOTH = 1, 2, 3  # kinds of users, by the models they are in


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

    Where sides mean nothing to both models, they need not be the same.

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
        cls,
        before: Comparisons,
        after: Comparisons,
        users: Matched,
        items: Matched,
        *,
        has_sides: bool = True,
    ) -> SharedVotes:
        """Count the votes."""
        rows = [
            rows_among(votes, places, of_items, has_sides=has_sides)
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
        then, now = (np.bincount(each["user"].to_numpy(), minlength=n_users) for each in rows)
        return cls(then, now, of_user)

    @property
    def are_the_same(self) -> bool:
        """Whether the votes of both models are the same."""
        return bool(np.all((self.before == self.common) & (self.after == self.common)))


def rows_among(
    votes: Comparisons, users: Places, items: Places, *, has_sides: bool = True
) -> pl.DataFrame:
    """Return votes by the places of users and items among those of both models.

    Where sides mean nothing, the first of two items is on the left.
    """
    user, item = (np.zeros(max(int(each.max()) + 1, 1), dtype=np.int64) for each in (users, items))
    for found, places in ((user, users), (item, items)):
        found[places[places >= 0]] = np.flatnonzero(places >= 0)
    # As they were given: their mean is another one where there are other votes beside these.
    given = votes.weight_as_given
    weight = np.ones(len(votes)) if given is None else given
    left, right, outcome = item[votes.left], item[votes.right], votes.outcome.astype(np.int64)
    if not has_sides:
        outcome = np.where(left > right, -outcome, outcome)
        left, right = np.minimum(left, right), np.maximum(left, right)
    return pl.DataFrame(
        {
            "user": user[votes.user],
            "left": left,
            "right": right,
            "outcome": outcome,
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
    """Users whose votes are evaluated."""

    before: Places  # where they are in the model before; -1 where they are not
    after: Places
    stands_for: Floats  # how many users each stands for
    shared_before: Floats  # which share of the votes before is in both models
    shared_after: Floats

    @property
    def kind(self) -> Places:
        """Which users are in both models, which in one of them."""
        return np.asarray(ONLY_BEFORE * (self.before >= 0) + ONLY_AFTER * (self.after >= 0))

    def some(self, chosen: Mask) -> _Sampled:
        """Return some of them."""
        return _Sampled._make(each[chosen] for each in self)


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
    if votes.are_the_same and np.array_equal(
        estimates[0], estimates[1]
    ):  # the same errors, whatever they are
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
        expected = _expected(before.evidence, after.evidence, sampled, items)
    weight = sampled.stands_for[:, None]
    change = _beside_their_like(moved[1] - moved[0], sampled)
    found = change.T @ (weight * change)
    between = _beside_their_like(moved[0], sampled).T @ (weight * change)
    # Where a model is of few users, they make the errors: it counts as for its leaderboard.
    freedom = min(before.standing.freedom, after.standing.freedom)
    scale = _off_scale(before, after, estimates, votes)
    return Difference(
        estimates[1] - estimates[0], no_surer(found, expected) + scale, estimates[0], covariance,
        between, freedom,
    )  # fmt: skip


def _sampled(users: Matched, votes: SharedVotes) -> _Sampled:
    """Return all users who voted, or a sample of those in both models and of those in one each."""
    whole = _Sampled(
        np.where(votes.before > 0, users.before, -1),
        np.where(votes.after > 0, users.after, -1),
        np.ones(len(users.ids)),
        votes.common / np.maximum(votes.before, 1),
        votes.common / np.maximum(votes.after, 1),
    ).some(votes.before + votes.after > 0)
    kind = whole.kind
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


def _beside_their_like(moved: Floats, users: _Sampled) -> Floats:
    """Return by how much users move scores, beside the mean of those who are in the same models.

    If new users see an item otherwise, that is the change itself, and no error of it. A group has
    one degree of freedom less than users; a single new user tells nothing but what models expect.
    """
    kind, found = users.kind, np.zeros_like(moved)
    n_before, n_after = (int(np.count_nonzero(each >= 0)) for each in (users.before, users.after))
    n_in_model = {ONLY_BEFORE: n_before, ONLY_AFTER: n_after, IN_BOTH: max(n_before, n_after)}
    for each, n_voters in n_in_model.items():
        those = kind == each
        n_users = int(those.sum())
        if n_users > 1:
            # The mean of all who voted was left out already.
            wider = n_users / (n_users - 1) * (n_voters - 1) / n_voters
            found[those] = np.sqrt(wider) * (moved[those] - moved[those].mean(axis=0))
    return found


def _expected(before: Evidence, after: Evidence, users: _Sampled, items: Matched) -> Floats:
    """Return what the models expect of the covariance of the change.

    The errors of scores come from votes, as these bend the objective. A vote in one model makes its
    error there. A vote in both makes the same error in both, which cancels but for what the models
    make of it: the more votes there are, the less each counts. So where all votes of one model are
    in the other, the variance of the change is the difference of the two variances. Priors are in
    both models, too.
    """
    same_row, sides = _same_rows(before, after, items), []
    for evidence, place in ((before, items.before), (after, items.after)):
        side = evidence.expected[evidence.row[place[items.in_both]]]
        sides.append(side - side.mean(axis=0))
    known = np.flatnonzero(same_row >= 0)
    matched = known, same_row[known]
    both = np.diag(np.minimum(before.held[matched[0]], after.held[matched[1]]))
    total = np.zeros((len(sides[0]), len(sides[0])))
    for evidence, of_user, shared, side, rows in zip(
        (before, after), users[:2], users[3:], sides, matched, strict=True
    ):
        alone, common = _curvatures(evidence, of_user, users.stands_for, shared)
        total += side @ alone @ side.T
        both += 0.5 * common[np.ix_(rows, rows)]
    differs = sides[1][:, matched[1]] - sides[0][:, matched[0]]
    return np.asarray(total + differs @ both @ differs.T)


def _curvatures(
    evidence: Evidence, users: Places, stands_for: Floats, shared: Floats
) -> tuple[Floats, Floats]:
    """Return how votes in one model only bend its objective, and how those in both do."""
    alone, common = np.zeros((2, *evidence.expected.shape))
    for user, times, share in zip(users, stands_for, shared, strict=True):
        if user >= 0:
            at, bent, _, _ = evidence.seen.at_consensus(int(user), evidence.row)
            at_once = np.ix_(at, at)
            alone[at_once] += times * (1.0 - share) * bent
            common[at_once] += times * share * bent
    return alone, common


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
