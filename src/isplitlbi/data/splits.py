"""Votes, split within users: into a training and a test part, or into folds.

Conventions
-----------
unit       what stays together: one vote, or the votes of one user in one group
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.vocabulary import counted
from isplitlbi.errors import InvalidSetting
from isplitlbi.typing import Floats, Places

__all__ = [
    "DEFAULT_FOLDS",
    "check_folds",
    "fold_of_votes",
    "folds_within_user",
    "held_out_parts",
    "in_order",
    "lower_first",
    "n_units",
    "split_within_user",
    "units",
]

Split = tuple[Comparisons, Comparisons]  # training and held-out votes

DEFAULT_FOLDS = 5


class Machines(Protocol):
    """What is asked of a runtime: how many votes there are on all machines, and their sums."""

    @property
    def n_votes(self) -> int:
        """Number of votes on all machines."""

    def total(self, *parts: Any) -> list[Any]:
        """Add up over all machines."""


def split_within_user(
    votes: Comparisons, test_share: float, rng: np.random.Generator | int | None = None
) -> Split:
    """Split every user's votes into a training and a test part, stratified by outcome.

    Each user's test part is its share of that user's votes to within one vote, and so it is for
    each outcome; votes of one group stay together. The split does not depend on the order of the
    rows.

    Examples
    --------
    >>> votes = Comparisons.from_arrays(["u"] * 10, ["a"] * 10, ["b"] * 10, [1] * 8 + [0] * 2)
    >>> train, test = split_within_user(votes, 0.5, rng=0)
    >>> len(train), len(test), int((test.outcome == 0).sum())
    (5, 5, 1)
    """
    if not 0.0 < test_share < 1.0:
        raise InvalidSetting(f"test_share is {test_share}; it must lie between 0 and 1.")
    unit, place, offset = _deal(votes, np.random.default_rng(rng))
    # Systematic sampling: walk along a user's votes and take one at each whole step of the sum.
    walked = (place + offset / test_share) * test_share
    is_test = (np.floor(walked + test_share) > np.floor(walked))[unit]
    return votes.subset(~is_test), votes.subset(is_test)


def folds_within_user(
    votes: Comparisons,
    n_folds: int,
    rng: np.random.Generator | int | None = None,
    stratified: bool = True,
) -> list[Split]:
    """Return (training, held-out) pairs; every vote is held out in exactly one fold.

    Grouped as in `split_within_user`, and stratified unless that is not wanted: a fold in which
    everybody ties as often as elsewhere flatters thresholds of users' own.
    """
    check_folds(n_folds, votes.n_votes)
    return _folds(votes, int(n_folds), np.random.default_rng(rng), stratified)


def check_folds(n_folds: int, n_votes: int) -> None:
    """Refuse a number of folds that cannot be."""
    if int(n_folds) != n_folds or n_folds < 2:
        raise InvalidSetting(f"n_folds is {n_folds}; it must be an integer, 2 or more.")
    if n_folds > n_votes:
        raise InvalidSetting(
            f"n_folds is {n_folds}, but there {'is' if n_votes == 1 else 'are'} only "
            f"{counted(n_votes, 'vote')} to hold out: give fewer folds or more votes, or leave the "
            "number of folds as it is by default."
        )


def held_out_parts(
    votes: Comparisons,
    n_folds: int,
    rng: Any = None,
    fold: ArrayLike | None = None,
    runtime: Machines | None = None,
    stratified: bool = True,
) -> list[Split]:
    """Return pairs of training and held-out votes; every vote is held out in one of them.

    There are none where the votes are too few: fewer than folds, unless somebody asked for another
    number of folds than the default, or all in one group.

    Votes are dealt at random within users, or as ``fold`` says: a number per vote. The order of the
    votes does not matter. With a runtime, whose numbers ``rng`` draws, they are dealt as if all
    users were here, and either side may be empty here.
    """
    n_votes = len(votes) if runtime is None else runtime.n_votes
    if fold is None and n_votes < n_folds == DEFAULT_FOLDS:
        return []
    if runtime is not None:
        parts = _folds(in_order(votes), n_folds, rng, stratified)
    elif fold is None:
        parts = folds_within_user(in_order(votes), n_folds, rng, stratified)
    else:
        parts = _given_folds(votes, np.asarray(fold))
    sizes = np.array([len(held_out) for _, held_out in parts], dtype=np.float64)
    if runtime is not None:
        (sizes,) = runtime.total(sizes)
    # With very few votes a fold may come out empty on one side; it has nothing to say.
    folds = [part for part, size in zip(parts, sizes, strict=True) if 0 < size < n_votes]
    if not folds and fold is not None:
        raise InvalidSetting("the folds hold out nothing: there must be two of them at least.")
    return folds


def fold_of_votes(votes: Comparisons, n_folds: int, rng: Any, stratified: bool = True) -> Places:
    """Return the fold of every vote; ``rng`` gives a number per unit, and then per user."""
    unit, place, offset = _deal(votes, rng, stratified)
    fold = (place + np.floor(offset * n_folds).astype(np.int64)) % n_folds
    return np.asarray(fold[unit])


def in_order(votes: Comparisons) -> Comparisons:
    """Return the same votes in one order, whatever theirs, so that sums over them round alike."""
    keys: list[NDArray[Any]] = [votes.outcome, votes.right, votes.left, votes.user]
    return votes.subset(np.lexsort([*votes.other_columns, *keys]))


def lower_first(votes: Comparisons) -> Comparisons:
    """Return the same votes with the item of the lower index on the left of each.

    This is for where sides mean nothing: votes that differ in their sides are then the same.
    """
    turned = votes.left > votes.right
    features = votes.features
    if features is not None:
        sign = np.where(turned, -1.0, 1.0)[:, None]
        # Of two zeros, the positive one.
        features = replace(features, differences=sign * features.differences + 0.0)
    return replace(
        votes,
        left=np.minimum(votes.left, votes.right),
        right=np.maximum(votes.left, votes.right),
        outcome=np.where(turned, -votes.outcome, votes.outcome),
        features=features,
    )


def units(votes: Comparisons) -> Places:
    """Return the unit of every vote: the vote itself, or its group.

    Groups are numbered user after user: nobody has one together with another user.
    """
    if votes.group is None:
        return np.arange(len(votes))
    n_groups = int(votes.group.max(initial=0)) + 1
    both = votes.user.astype(np.int64) * n_groups + votes.group
    return np.asarray(np.unique(both, return_inverse=True)[1], dtype=np.int64)


def n_units(votes: Comparisons) -> int:
    """Return the number of units."""
    return len(votes) if votes.group is None else int(units(votes).max(initial=-1)) + 1


def _folds(votes: Comparisons, n_folds: int, rng: Any, stratified: bool = True) -> list[Split]:
    fold = fold_of_votes(votes, n_folds, rng, stratified)
    return [(votes.subset(fold != k), votes.subset(fold == k)) for k in range(n_folds)]


def _given_folds(votes: Comparisons, fold: NDArray[Any]) -> list[Split]:
    if fold.shape != (len(votes),):
        raise InvalidSetting(f"folds of shape {fold.shape} do not fit {len(votes)} votes.")
    return [
        (in_order(votes.subset(fold != k)), in_order(votes.subset(fold == k)))
        for k in np.unique(fold)
    ]


def _deal(votes: Comparisons, rng: Any, stratified: bool = True) -> tuple[Places, Places, Floats]:
    """Put every user's units in a random order, like outcomes adjacent if it is to be stratified.

    Dealing from this order to parts in turn is what makes a split stratified. Returns the unit of
    every vote and, per unit, its place in its user's order and its user's random offset.
    """
    if votes.group is None:
        keys: list[NDArray[Any]] = [votes.right, votes.left, votes.outcome, votes.user]
        unit = np.empty(votes.n_votes, dtype=np.int64)
        # Identical votes aside, their numbers are the same for any order of rows.
        unit[np.lexsort([*votes.other_columns, *keys])] = np.arange(votes.n_votes)
    else:
        unit = units(votes)
    size = np.bincount(unit)
    owner = np.empty(len(size), dtype=np.int32)
    owner[unit] = votes.user
    likeness: list[Floats] = []
    if stratified:
        tie_share = np.bincount(unit, weights=votes.outcome == 0) / size
        likeness = [np.bincount(unit, weights=votes.outcome) / size, tie_share]
    dealt = np.lexsort((rng.random(len(size)), *likeness, owner))
    place = np.empty(len(size), dtype=np.int64)
    place[dealt] = np.arange(len(size))
    first_of_user = np.searchsorted(owner[dealt], np.arange(votes.n_users))
    return unit, place - first_of_user[owner], rng.random(votes.n_users)[owner]
