"""Comparing two models of a study: what changed, and whether it is more than chance.

Scores are compared as the leaderboards show them, at the same mean over the items in both. As
there, intervals lie around the best estimate of the change, and always hold the change shown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from isplitlbi.abnormal import UNRELIABLE
from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators.base import ScoreEstimator
from isplitlbi.estimators.changes import (
    AFTER,
    BEFORE,
    AddedVotes,
    Changes,
    Model,
    OneSided,
    Pairs,
    UserChange,
    Verdict,
)
from isplitlbi.estimators.contract import check_is_fitted
from isplitlbi.estimators.held_out import predict_both
from isplitlbi.estimators.inputs import as_votes
from isplitlbi.estimators.leaderboard import Leaderboard
from isplitlbi.estimators.overlap import Difference, Matched, SharedVotes, difference_of
from isplitlbi.estimators.tested import TestedUsers
from isplitlbi.model.differences import (
    LEVEL,
    information,
    quantile_of_worst,
    root_of,
    student,
    weights_of_mean,
)
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["compare"]

N_DRAWS, SEED = 4_000, 0
# Settings that decide no number of a consensus, or hardly any.
UNIMPORTANT = (
    "backend", "call", "fdr", "n_jobs", "random_state", "rule", "snapshots", "solver", "with_tests",
)  # fmt: skip
LEAST_ITEMS = 2  # in both: of a single item, there is nothing to be better than


def compare(before: ScoreEstimator, after: ScoreEstimator, votes: Any = None) -> Changes:
    """Compare two fitted models of a study.

    Parameters
    ----------
    before, after
        Such as a model of some votes, and a model of these and later ones. They may also share
        nothing but items, or have the same votes and other settings. Items and users are the same
        where their ids are.
    votes
        Votes to predict by both models, which neither was fitted on: whatever a fit takes.

    Examples
    --------
    >>> from isplitlbi import MarginMLE, simulate
    >>> votes = simulate(n_users=8, n_items=4, votes_per_user=(30, 30), random_state=0).votes
    >>> print(compare(MarginMLE().fit(votes), MarginMLE().fit(votes)).sentence())
    Nothing changed: the votes and the scores of both fits are the same.
    """
    for model in (before, after):
        _refuse_without_scores(model)
        model.refuse_without_users("no telling whether a change is more than chance")
    _refuse_other_units(before, after)
    items = Matched.of(before.items_, after.items_)
    _refuse_no_common_items(before, after, items)
    users = Matched.of(before.users_, after.users_)
    has_sides = before.has_sides or after.has_sides
    shared = SharedVotes.of(before.votes(), after.votes(), users, items, has_sides=has_sides)
    difference = _difference(before, after, users, items, shared)
    # Items in the order of the leaderboard after.
    boards = _Side.of(before, items.before), _Side.of(after, items.after)
    common = np.flatnonzero(items.in_both)
    order = np.argsort(boards[1].row[common], kind="stable")
    difference, common = difference.at(order), common[order]
    then, now = boards[0].at(common), boards[1].at(common)
    scores, shift = _changes_of_scores(then["score"], now["score"], difference)
    ranked = (then["rank"] > 0) & (now["rank"] > 0)
    to_predict = None if votes is None else as_votes(votes, None, None)
    return Changes(
        before=_main_figures(before), after=_main_figures(after), items=items.ids[common],
        rank_before=then["rank"], rank_after=now["rank"],
        **_moved(then["score"], now["score"], ranked, difference), **scores,
        votes_before=then["votes"], votes_after=now["votes"],
        new_items=boards[1].alone(items.before < 0),
        gone_items=boards[0].alone(items.after < 0, shift),
        added=_added(shared),
        pairs=_pairs(boards[0].group(common), boards[1].group(common), then, now, ranked),
        users=_users(before, after, users, shared),
        held_out=None if to_predict is None else predict_both(before, after, to_predict),
        is_same=shared.are_the_same and not difference.covariance.any(),
        remarks=tuple(_remarks(before, after)), nouns=after.nouns,
    ).framed_as(after.votes().frame_kind)  # fmt: skip


# --- what is refused -----------------------------------------------------------------------


def _refuse_without_scores(model: Any) -> None:
    if not isinstance(model, ScoreEstimator):
        raise InvalidSetting(
            f"only models with scores can be compared, such as ISplitLBI; {type(model).__name__} "
            "has none."
        )
    check_is_fitted(model, "fitted_")


def _refuse_other_units(before: ScoreEstimator, after: ScoreEstimator) -> None:
    then, now = before.link_.name, after.link_.name
    if then != now:
        raise InvalidSetting(
            f"the scores of these models are in different units: the link is {then} before and "
            f"{now} after. Fit both with the same link."
        )


def _refuse_no_common_items(before: ScoreEstimator, after: ScoreEstimator, items: Matched) -> None:
    n_common = int(items.in_both.sum())
    if n_common < LEAST_ITEMS:
        count = "no item" if n_common == 0 else "only one item"
        raise InvalidVotes(
            f"the models have {count} in common: items are such as {show(before.items_[0])} before "
            f"and {show(after.items_[0])} after. Compare models that share two items or more."
        )


def _difference(
    before: ScoreEstimator,
    after: ScoreEstimator,
    users: Matched,
    items: Matched,
    shared: SharedVotes,
) -> Difference:
    """Return how scores differ, in the order of the matched items in both."""
    then, now = (model.footing() for model in (before, after))
    if min(then.evidence.row[0], now.evidence.row[0]) < 0:
        raise InvalidSetting(
            "models of so many items cannot be compared: the errors of their scores are known one "
            "by one only. Fit models of fewer items, such as with Comparisons.without."
        )
    return difference_of(then, now, users, items, shared)


# --- items ---------------------------------------------------------------------------------


class _Side(NamedTuple):
    """One of the models, by the items of both."""

    board: Leaderboard
    row: Places  # of every item on the leaderboard; -1 where it is not there

    @classmethod
    def of(cls, model: ScoreEstimator, places: Places) -> _Side:
        """Find the items on the leaderboard of a model."""
        board = model.leaderboard()
        known = {item: row for row, item in enumerate(board.items.tolist())}
        of_place = np.array([known[item] for item in model.items_.tolist()])
        return cls(board, np.where(places >= 0, of_place[places], -1))

    def at(self, items: Places) -> dict[str, Any]:
        """Return ranks, scores and votes of some items."""
        rows = self.row[items]
        return {name: getattr(self.board, name)[rows] for name in ("rank", "score", "votes")}

    def group(self, items: Places) -> list[str]:
        """Return the groups of some items."""
        return [self.board.group[row] for row in self.row[items]]

    def alone(self, is_alone: Mask, shift: float = 0.0) -> tuple[OneSided, ...]:
        """Return items that the other model does not have, best first."""
        board = self.board
        rows = np.sort(self.row[is_alone & (self.row >= 0)]).tolist()
        return tuple(
            OneSided(
                item=board.items[row],
                rank=int(board.rank[row]),
                rank_low=int(board.rank_low[row]),
                rank_high=int(board.rank_high[row]),
                score=float(board.score[row]) + shift,
                low=float(board.low[row]) + shift,
                high=float(board.high[row]) + shift,
                votes=float(board.votes[row]),
            )
            for row in rows
        )


def _changes_of_scores(
    then: Floats, now: Floats, difference: Difference
) -> tuple[dict[str, Any], float]:
    """Return the changes of scores with their intervals, and what shifts scores before."""
    # An item of which little is known must not move the mean that all are measured from.
    weight = weights_of_mean(information(difference.covariance))
    shift = float(weight @ (now - then))
    change = now - then - shift
    middle = difference.estimate - weight @ difference.estimate
    beside = np.eye(len(weight)) - weight
    covariance = beside @ difference.covariance @ beside.T
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if not difference.covariance.any():  # the same model: what is left is rounding
        change, shift = np.zeros_like(change), 0.0
    ends = {}
    for name, times in (
        ("", student(difference.freedom, 0.5 + 0.5 * LEVEL)),
        ("_of_all", quantile_of_worst(covariance, difference.freedom)),
    ):
        ends[f"low{name}"] = np.minimum(middle - times * error, change)
        ends[f"high{name}"] = np.maximum(middle + times * error, change)
    changed = (ends["low_of_all"] > 0.0) | (ends["high_of_all"] < 0.0)
    scores = {"score_before": then + shift, "score_after": now, "change": change}
    return scores | ends | {"changed": changed}, shift


def _moved(then: Floats, now: Floats, ranked: Mask, difference: Difference) -> dict[str, Any]:
    """Return by how many places items have risen among those ranked in both, with intervals.

    Scores before and changes are drawn together, as far off as they may be.
    """
    at = np.flatnonzero(ranked)
    found = {name: np.zeros(len(ranked), dtype=np.int64) for name in ("moved", "low", "high")}
    found["moved"][at] = moved = _places(then[at]) - _places(now[at])
    some, n_items = difference.at(at), len(at)
    beside = np.eye(n_items) - 1.0 / max(n_items, 1)
    joint = np.block([
        [beside @ some.covariance_before @ beside, some.between], [some.between.T, some.covariance],
    ])  # fmt: skip
    rng = np.random.default_rng(SEED)
    errors = rng.standard_normal((N_DRAWS, 2 * n_items)) @ root_of(joint)
    if np.isfinite(some.freedom):
        errors /= np.sqrt(rng.chisquare(some.freedom, (N_DRAWS, 1)) / some.freedom)
    before = some.before + errors[:, :n_items]
    change = some.estimate + errors[:, n_items:] if some.covariance.any() else 0.0
    drawn = _places(before) - _places(before + change)
    low, high = np.quantile(drawn, [0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL], axis=0, method="nearest")
    found["low"][at], found["high"][at] = np.minimum(low, moved), np.maximum(high, moved)
    return {"moved": found["moved"], "moved_low": found["low"], "moved_high": found["high"]}


def _places(scores: Floats) -> Places:
    """Return the place of every score among those of its row, from 0 for the best."""
    order = np.argsort(-scores, axis=-1, kind="stable")
    return np.argsort(order, axis=-1, kind="stable")


def _pairs(
    groups_then: list[str],
    groups_now: list[str],
    then: dict[str, Any],
    now: dict[str, Any],
    ranked: Mask,
) -> Pairs:
    """Count the pairs whose order changed, and those that the votes tell apart on one side only."""
    at = np.flatnonzero(ranked)
    apart_then, apart_now = (_apart(groups, at) for groups in (groups_then, groups_now))
    ahead_then, ahead_now = (
        side["score"][at][:, None] > side["score"][at] for side in (then, now)
    )  # fmt: skip
    upper = np.triu(np.ones((len(at), len(at)), dtype=np.bool_), 1)
    turned = (ahead_then != ahead_now) & upper
    counts = (
        upper, turned, turned & apart_then & apart_now, apart_now & ~apart_then & upper,
        apart_then & ~apart_now & upper,
    )  # fmt: skip
    return Pairs(*(int(np.count_nonzero(each)) for each in counts))


def _apart(groups: list[str], items: Places) -> Mask:
    """Return which items share no group."""
    members = [
        set(group.split() if group[:1].isdigit() else group)
        for group in (groups[item] for item in items)
    ]
    names = {name: place for place, name in enumerate(sorted(set().union(*members)))}
    is_in = np.zeros((len(members), len(names)), dtype=np.int64)
    for row, group in enumerate(members):
        is_in[row, [names[name] for name in group]] = 1
    return np.asarray(is_in @ is_in.T == 0)


# --- votes and users -----------------------------------------------------------------------


def _main_figures(model: ScoreEstimator) -> Model:
    votes = model.votes()
    found = getattr(model, "abnormality_", None)
    return Model(
        type(model).__name__, votes.file, model.fitted_.date, votes.n_votes,
        int(np.count_nonzero(votes.votes_per_user)), votes.n_items, model.threshold_,
        found is not None, model.fdr,
    )  # fmt: skip


def _added(shared: SharedVotes) -> AddedVotes:
    n_common = int(shared.common.sum())
    voted_then, voted_now = shared.before > 0, shared.after > 0
    return AddedVotes(
        n_common, int(shared.after.sum()) - n_common, int(shared.before.sum()) - n_common,
        int(np.sum(voted_then & voted_now)), int(np.sum(voted_now & ~voted_then)),
        int(np.sum(voted_then & ~voted_now)),
    )  # fmt: skip


def _users(
    before: ScoreEstimator, after: ScoreEstimator, users: Matched, shared: SharedVotes
) -> tuple[UserChange, ...]:
    """Return who is on another list than before, the largest effect first."""
    if not (hasattr(before, "abnormality_") and hasattr(after, "abnormality_")):
        return ()
    found = []
    for number, user in enumerate(users.ids.tolist()):
        then = _verdict(before.abnormality_, int(users.before[number]))
        now = _verdict(after.abnormality_, int(users.after[number]))
        change = _named(then, now)
        if change:
            votes = int(shared.before[number]), int(shared.after[number])
            found.append(UserChange(user, change, *votes, then, now))
    order = {name: place for place, name in enumerate(("became", "moved", "ceased", "new", "gone"))}
    return tuple(sorted(found, key=lambda each: (order[each.change], -_effect(each))))


def _effect(change: UserChange) -> float:
    verdicts = (change.before, change.after)
    return max(each.effect or 0.0 for each in verdicts if each is not None)


def _verdict(tested: TestedUsers, place: int) -> Verdict | None:
    if place < 0:
        return None
    name = tested.list[place]
    q_value = float((tested.q_unreliable if name == UNRELIABLE else tested.q_value)[place])
    effect = float(tested.effect[place])
    return Verdict(
        name, tested.kind[place], None if np.isnan(effect) else effect,
        None if np.isnan(q_value) else q_value,
    )  # fmt: skip


def _named(then: Verdict | None, now: Verdict | None) -> str:
    """Return what happened to a user; nothing for who is on the same list, or on none."""
    if then is None or now is None:
        there = then or now
        on_list = there is not None and there.list
        return ("new" if then is None else "gone") if on_list else ""
    if then.list == now.list:
        return ""
    if not then.list:
        return "became"
    return "moved" if now.list else "ceased"


def _remarks(before: ScoreEstimator, after: ScoreEstimator) -> list[str]:
    """Say what else may make a difference between the models."""
    said = []
    then, now = type(before).__name__, type(after).__name__
    if then != now:
        said.append(
            f"The fits are of different kinds ({then} before, {now} after): part of a change may "
            "come from that."
        )
    else:
        settings = [model.get_params() for model in (before, after)]
        other = [
            name
            for name in sorted(settings[0])
            if name not in UNIMPORTANT and repr(settings[0][name]) != repr(settings[1][name])
        ]
        if other:
            said.append(
                f"The settings differ ({', '.join(other)}): part of a change may come from that."
            )
    units = [model.summary_.units for model in (before, after)]
    names = [() if each is None else each.names for each in units]
    if set(names[0]) != set(names[1]):
        told = [", ".join(each) or "none" for each in names]
        said.append(
            f"The features differ ({BEFORE}: {told[0]}; {AFTER}: {told[1]}): scores are for sides "
            "that are equal in them."
        )
    if before.fdr != after.fdr:
        said.append(
            f"The false discovery rates differ ({before.fdr:g} {BEFORE}, {after.fdr:g} {AFTER}): "
            "a list may be longer because of that."
        )
    return said
