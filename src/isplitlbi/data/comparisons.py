"""Votes, checked once and indexed: the data that everything else trusts.

Conventions
-----------
outcome    1 the left item wins, 0 tie, -1 the right item wins
user, left, right
           indices into the vocabularies ``users`` and ``items``, which are sorted, so that nothing
           depends on the order in which the votes came
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from typing import Any, Self

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from isplitlbi.data.vocabulary import Vocabulary, as_series, first_of, show
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.typing import Floats, Integers

__all__ = ["Comparisons"]

OUTCOMES = {"left": 1, "tie": 0, "right": -1}

_PER_VOTE = ("user", "left", "right", "outcome", "weight", "group")


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons:
    """Votes by many users on pairs of items. Immutable; build it with one of the ``from`` methods.

    Examples
    --------
    >>> votes = Comparisons.from_arrays(
    ...     user=["ann", "ann", "bob"],
    ...     left=["tea", "tea", "milk"],
    ...     right=["milk", "coffee", "coffee"],
    ...     outcome=[1, 0, -1],
    ... )
    >>> votes
    Comparisons: 3 votes (33.3 % ties) by 2 users on 3 items
    """

    users: NDArray[Any]
    items: NDArray[Any]
    user: Integers
    left: Integers
    right: Integers
    outcome: NDArray[np.int8]
    weight: Floats | None
    group: Integers | None
    groups: NDArray[Any] | None = field(default=None, kw_only=True)  # the ids of the groups
    # The votes that these are a part of, if they are: parameters of both then lie alike.
    whole: Comparisons | None = field(default=None, kw_only=True)

    # --- how votes come in -----------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        user: ArrayLike,
        left: ArrayLike,
        right: ArrayLike,
        outcome: ArrayLike,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        labels: Mapping[Any, str] | None = None,
        source: str = "votes",
    ) -> Self:
        """Check and index votes given as columns of equal length.

        Parameters
        ----------
        user, left, right
            Ids: strings or integers, which come back unchanged.
        outcome
            What the user said: ``left``, ``right``, ``tie``, or 1, -1, 0.
        weight
            A positive weight per vote; a vote of weight 2 counts as that vote twice.
        group
            Votes of one user with the same group (say, from one ranking) stay together in splits.
        labels
            Other words for the outcomes, such as ``{"draw": "tie"}``.
        source
            What to call these votes in an error.
        """
        columns = {"user": user, "left": left, "right": right, "winner": outcome}
        if weight is not None:
            columns["weight"] = weight
        if group is not None:
            columns["group"] = group
        return cls.from_series(
            {name: as_series(values, name, source) for name, values in columns.items()},
            {name: name for name in columns},
            labels,
            source,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str = "user",
        left: str = "left",
        right: str = "right",
        winner: str = "winner",
        weight: str | None = None,
        group: str | None = None,
        labels: Mapping[Any, str] | None = None,
        source: str = "votes",
    ) -> Self:
        """Check and index votes in a data frame (pandas, polars, pyarrow, ...).

        The columns ``weight`` and ``group`` are optional; they are used where the frame has them.

        Examples
        --------
        >>> frame = pl.DataFrame({"who": ["ann"], "a": [1], "b": [2], "winner": ["left"]})
        >>> Comparisons.from_frame(frame, user="who", left="a", right="b").items
        array([1, 2])
        """
        try:
            table = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise InvalidVotes(
                f"{source}: expected a data frame, found {type(frame).__name__}. "
                "Use Comparisons.from_arrays for separate columns."
            ) from None
        wanted = {"user": user, "left": left, "right": right, "winner": winner}
        for role, asked in (("weight", weight), ("group", group)):
            if asked is not None or role in table.columns:
                wanted[role] = asked or role
        for role, name in wanted.items():
            if name not in table.columns:
                found = ", ".join(map(str, table.columns)) or "no columns at all"
                raise InvalidVotes(
                    f"{source}: no column {name!r} for the {role}; found: {found}. "
                    f"Name the right one with {role}=... (--{role})."
                )
        series = {
            role: as_series(table[name].to_native(), name, source) for role, name in wanted.items()
        }
        return cls.from_series(series, wanted, labels, source)

    @classmethod
    def read(cls, path: str | Path, **options: Any) -> Comparisons:
        """Read votes from a file: CSV, TSV, Parquet or JSON lines, in one of many layouts.

        Ids are read as text, so that ``007`` stays ``007``. The options are those of
        `isplitlbi.data.readers.read_votes`, which also tells what it understood.
        """
        # By name: the readers build on this module, and imports go one way.
        readers = import_module("isplitlbi.data.readers")
        votes: Comparisons = readers.read_votes(path, **options).votes
        return votes

    @classmethod
    def from_series(
        cls,
        series: Mapping[str, pl.Series],
        names: Mapping[str, str],
        labels: Mapping[Any, str] | None = None,
        source: str = "votes",
    ) -> Self:
        """Check and index columns by their role; ``names`` is what errors call them."""
        n_votes = len(series["user"])
        for role, column in series.items():
            if len(column) != n_votes:
                raise InvalidVotes(
                    f"{source}: {names[role]!r} has {len(column)} rows, "
                    f"{names['user']!r} has {n_votes}. Give columns of equal length."
                )
        if n_votes == 0:
            raise InvalidVotes(f"{source}: there are no votes in it. Give at least one row.")
        for role, column in series.items():
            if column.null_count():
                raise _missing(source, column.is_null(), names[role])

        with ThreadPoolExecutor(1) as beside:  # the users take about as long as the items
            of_users = beside.submit(
                Vocabulary.indexed, series["user"], what=names["user"], source=source
            )
            items, (left, right) = Vocabulary.indexed(
                series["left"], series["right"],
                what=f"{names['left']}/{names['right']}", source=source,
            )  # fmt: skip
            users, (user,) = of_users.result()
        for role, vocabulary, codes in (
            ("user", users, user), ("left", items, left), ("right", items, right),
        ):  # fmt: skip
            if vocabulary.labels[0] == "" and (codes == 0).any():  # the first in order, if any
                raise _missing(source, codes == 0, names[role])
        same = left == right
        if row := first_of(same):
            raise InvalidRows.of(
                source, same, f"item {show(series['left'][row - 1])} is compared with itself",
                "Remove the row or correct one of its items",
            )  # fmt: skip
        outcome = _outcomes(series["winner"], names["winner"], labels or {}, source)
        weight = _weights(series["weight"], names["weight"], source) if "weight" in series else None
        group = groups = None
        if "group" in series:
            grouped, (group,) = Vocabulary.indexed(
                series["group"], what=names["group"], source=source
            )
            groups = grouped.labels

        _freeze(user, left, right, outcome, weight, group)
        return cls(
            users.labels, items.labels, user, left, right, outcome, weight, group, groups=groups
        )

    @classmethod
    def joined(cls, *parts: Comparisons) -> Self:
        """Put votes from several places together; the same id is the same user, item or group.

        All have weights or none has, and so with groups.

        Examples
        --------
        >>> monday = Comparisons.from_arrays(["ann"], ["tea"], ["milk"], [1])
        >>> tuesday = Comparisons.from_arrays(["bob"], ["tea"], ["coffee"], [0])
        >>> Comparisons.joined(monday, tuesday)
        Comparisons: 2 votes (50.0 % ties) by 2 users on 3 items
        """
        for name in ("weight", "group"):
            if len({getattr(part, name) is None for part in parts}) != 1:
                raise InvalidVotes(f"of votes that are joined, all have a {name} or none has.")
        if any(part.group is not None and part.groups is None for part in parts):
            raise InvalidVotes("votes whose groups have no names cannot be joined.")
        users, items = (
            Vocabulary.merged(*(Vocabulary(getattr(part, name), name[:-1]) for part in parts))
            for name in ("users", "items")
        )
        named = [part.groups for part in parts if part.groups is not None]
        groups = Vocabulary.merged(*(Vocabulary(ids, "group") for ids in named)) if named else None
        known = [part.renumbered(users, items, groups) for part in parts]
        columns: dict[str, Any] = {
            name: None
            if getattr(parts[0], name) is None
            else np.concatenate([getattr(part, name) for part in known])
            for name in _PER_VOTE
        }
        _freeze(*columns.values())
        return cls(
            users.labels, items.labels, **columns,
            groups=None if groups is None else groups.labels,
        )  # fmt: skip

    def renumbered(
        self, users: Vocabulary, items: Vocabulary, groups: Vocabulary | None = None
    ) -> Comparisons:
        """Return the same votes as indices into larger vocabularies."""
        of_user, of_item = users.encode(self.users), items.encode(self.items)
        if min(of_user.min(initial=0), of_item.min(initial=0)) < 0:
            raise InvalidVotes("an id of these votes is not among those that are known.")
        group = self.group
        if group is not None and groups is not None:
            group = groups.encode(self.groups)[group]
        return Comparisons(
            users.labels, items.labels, of_user[self.user], of_item[self.left],
            of_item[self.right], self.outcome, self.weight, group,
            groups=self.groups if groups is None else groups.labels,
        )  # fmt: skip

    # --- what they look like ---------------------------------------------------------------

    @property
    def n_votes(self) -> int:
        """Number of votes (rows, whatever their weight)."""
        return len(self.user)

    @property
    def n_users(self) -> int:
        """Number of users in the vocabulary."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items in the vocabulary."""
        return len(self.items)

    def __len__(self) -> int:
        """Return the number of votes."""
        return self.n_votes

    def __repr__(self) -> str:
        """Say what is in it."""
        ties = f" ({np.mean(self.outcome == 0):.1%} ties)".replace("%", " %") if len(self) else ""
        return (
            f"Comparisons: {self.n_votes:,} votes{ties} by {self.n_users:,} users "
            f"on {self.n_items:,} items"
        )

    @property
    def votes_per_user(self) -> NDArray[np.int64]:
        """Number of votes of every user."""
        return np.bincount(self.user, minlength=self.n_users)

    # --- parts of it -----------------------------------------------------------------------

    def subset(self, rows: ArrayLike) -> Self:
        """Return some of the votes, by mask or index, with the vocabularies and slots of the whole.

        Parameters of a part therefore align with those of the whole.
        """
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_:
            if len(chosen) != self.n_votes:
                raise ValueError(f"a mask of {len(chosen)} rows does not fit {self.n_votes} votes.")
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64)
        parts: dict[str, Any] = {}
        for name in _PER_VOTE:
            values = getattr(self, name)
            if values is not None:
                parts[name] = values[chosen]
        _freeze(*parts.values())
        return replace(self, **parts, whole=self if self.whole is None else self.whole)

    def split_within_user(
        self, test_share: float, rng: np.random.Generator | int | None = None
    ) -> tuple[Self, Self]:
        """Split every user's votes into a training and a test part, stratified by outcome.

        Each user's test part is its share of that user's votes to within one vote, and so it is for
        each outcome; votes of one group stay together. The split does not depend on the order of
        the rows.

        Examples
        --------
        >>> votes = Comparisons.from_arrays(["u"] * 10, ["a"] * 10, ["b"] * 10, [1] * 8 + [0] * 2)
        >>> train, test = votes.split_within_user(0.5, rng=0)
        >>> len(train), len(test), int((test.outcome == 0).sum())
        (5, 5, 1)
        """
        if not 0.0 < test_share < 1.0:
            raise ValueError(f"test_share is {test_share}; it must lie between 0 and 1.")
        units, place, offset = self._deal(np.random.default_rng(rng))
        # Systematic sampling: walk along a user's votes and take one at each whole step of the sum.
        walked = (place + offset / test_share) * test_share
        is_test = (np.floor(walked + test_share) > np.floor(walked))[units]
        return self.subset(~is_test), self.subset(is_test)

    def folds_within_user(
        self, n_folds: int, rng: np.random.Generator | int | None = None
    ) -> list[tuple[Self, Self]]:
        """Return (training, held-out) pairs; every vote is held out in exactly one fold.

        Stratified and grouped as in `split_within_user`.
        """
        if int(n_folds) != n_folds or not 2 <= n_folds <= self.n_votes:
            raise ValueError(
                f"n_folds is {n_folds}; it must be an integer from 2 to the {self.n_votes} votes."
            )
        fold = self.fold_of_votes(n_folds, np.random.default_rng(rng))
        return [(self.subset(fold != k), self.subset(fold == k)) for k in range(n_folds)]

    def fold_of_votes(self, n_folds: int, rng: Any) -> NDArray[np.int64]:
        """Return the fold of every vote; ``rng`` gives a number per unit, and then per user."""
        units, place, offset = self._deal(rng)
        fold = (place + np.floor(offset * n_folds).astype(np.int64)) % n_folds
        return np.asarray(fold[units])

    @property
    def in_order(self) -> Self:
        """The same votes in one order, whatever theirs, so that sums over them round alike."""
        keys: list[NDArray[Any]] = [self.outcome, self.right, self.left, self.user]
        if self.weight is not None:
            keys.insert(0, self.weight)
        return self.subset(np.lexsort(keys))

    @property
    def n_units(self) -> int:
        """Number of votes, or of groups of every user's votes, that are dealt to folds."""
        return self.n_votes if self.group is None else int(self.numbered_groups.max(initial=-1)) + 1

    @property
    def numbered_groups(self) -> NDArray[np.int64]:
        """The group of every vote, numbered user after user: nobody shares one with another."""
        assert self.group is not None
        n_groups = int(self.group.max(initial=0)) + 1
        both = self.user.astype(np.int64) * n_groups + self.group
        return np.asarray(np.unique(both, return_inverse=True)[1], dtype=np.int64)

    def _deal(self, rng: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Put every user's votes (or groups of votes) in a random order, like outcomes adjacent.

        Dealing from this order to parts in turn is what makes a split stratified. Returns the unit
        of every vote and, per unit, its place in its user's order and its user's random offset.
        """
        keys: list[NDArray[Any]] = [self.right, self.left, self.outcome, self.user]
        if self.weight is not None:
            keys.insert(0, self.weight)
        if self.group is not None:
            keys.insert(0, self.group)
        order = np.lexsort(keys)  # identical votes aside, this is the same for any order of rows
        units = np.empty(self.n_votes, dtype=np.int64)
        if self.group is None:
            units[order] = np.arange(self.n_votes)
        else:
            units = self.numbered_groups
        size = np.bincount(units)
        tie_share = np.bincount(units, weights=self.outcome == 0) / size
        balance = np.bincount(units, weights=self.outcome) / size
        owner = np.empty(len(size), dtype=np.int32)
        owner[units] = self.user

        dealt = np.lexsort((rng.random(len(size)), balance, tie_share, owner))
        place = np.empty(len(size), dtype=np.int64)
        place[dealt] = np.arange(len(size))
        first_of_user = np.searchsorted(owner[dealt], np.arange(self.n_users))
        return units, place - first_of_user[owner], rng.random(self.n_users)[owner]


def _outcomes(
    column: pl.Series, name: str, labels: Mapping[Any, str], source: str
) -> NDArray[np.int8]:
    if bad := [target for target in labels.values() if target not in OUTCOMES]:
        raise InvalidVotes(
            f"{source}: a label is mapped to {bad[0]!r}, which is not one of {', '.join(OUTCOMES)}."
        )
    if column.dtype == pl.Int8 and not labels and column.is_between(-1, 1).all():
        return column.to_numpy(writable=True)  # as it should be
    words: dict[Any, int] = {word: OUTCOMES[target] for word, target in labels.items()}
    values = column
    if column.dtype == pl.String:
        words, allowed = OUTCOMES | words, ", ".join(OUTCOMES)
    else:
        allowed = "1 (left), 0 (tie), -1 (right)"
        if not column.dtype.is_numeric():
            raise InvalidVotes(
                f"{source}: {name} holds values of type {column.dtype}; expected left, right, tie "
                f"or {allowed}."
            )
        numbers = {word: code for word, code in words.items() if isinstance(word, int | float)}
        words = {float(word): code for word, code in ({1: 1, 0: 0, -1: -1} | numbers).items()}
        values = column.cast(pl.Float64)
    outcome, known = translate(values, words)
    if known is not None:
        value = column.filter(~known)[0]
        raise InvalidRows.of(
            source, ~known, f"{name} {show(value)} is not one of {allowed}",
            f"Map it with labels={{{show(value)}: 'tie'}} (--label {value}=tie), or left, or right",
        )  # fmt: skip
    return outcome


def translate(
    values: pl.Series, words: Mapping[Any, int]
) -> tuple[NDArray[np.int8], pl.Series | None]:
    """Return the outcome that each value stands for, and which are known unless all are."""
    outcome = np.zeros(len(values), dtype=np.int8)
    said = {word: values.eq_missing(word) for word in words}
    for word, code in words.items():
        if code:
            outcome += said[word].to_numpy().view(np.int8) * np.int8(code)
    if sum(rows.sum() for rows in said.values()) == len(values):
        return outcome, None
    return outcome, reduce(or_, said.values(), pl.Series(np.zeros(len(values), dtype=np.bool_)))


def _weights(column: pl.Series, name: str, source: str) -> Floats:
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise InvalidVotes(
            f"{source}: {name} holds values of type {column.dtype}; expected positive numbers."
        )
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count():
        value = column.filter(numbers.is_null())[0]
        raise InvalidRows.of(
            source, numbers.is_null(), f"{name} {show(value)} is not a number",
            "Correct it or remove the row",
        )  # fmt: skip
    weight = numbers.to_numpy(writable=True)
    bad = ~(np.isfinite(weight) & (weight > 0))
    if row := first_of(bad):
        raise InvalidRows.of(
            source, bad, f"{name} {weight[row - 1]} is not a positive, finite number",
            "Correct it, or remove votes that should not count",
        )  # fmt: skip
    return weight


def _freeze(*arrays: NDArray[Any] | None) -> None:
    for array in arrays:
        if array is not None:
            array.setflags(write=False)


def _missing(source: str, rows: pl.Series | NDArray[np.bool_], name: str) -> InvalidRows:
    return InvalidRows.of(source, rows, f"{name} is missing", "Fill it in or remove the row")
