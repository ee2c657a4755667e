"""Votes, checked once and indexed: the data that everything else trusts.

Conventions
-----------
outcome    1 the left item wins, 0 tie, -1 the right item wins
user, left, right
           indices into the vocabularies ``users`` and ``items``, which are sorted, so that nothing
           depends on the order in which the votes came
time       when a vote was given: any numbers that increase with time, if that is known
duration   how many seconds the answer took, if that is known
features   numbers that belong to a vote, such as how much longer the left item is, if there are any
id         what the vote itself is called, if that is known: it tells votes that came twice, no more
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isplitlbi.data.columns import (
    Columns,
    check_alike,
    check_lengths,
    check_shape,
    first_votes,
    freeze,
    in_use,
    indexed_ids,
    rows_without,
)
from isplitlbi.data.counts import counts_of
from isplitlbi.data.features import FeatureColumns, Features
from isplitlbi.data.frames import DEFAULT_KIND
from isplitlbi.data.ids import ids_of, joined_ids, refuse_counts
from isplitlbi.data.loading import load_frame
from isplitlbi.data.notes import log_changes, on_weights
from isplitlbi.data.options import Options
from isplitlbi.data.outcomes import outcomes_of_column
from isplitlbi.data.several import load_any, name_of_all
from isplitlbi.data.times import durations_of, times_of
from isplitlbi.data.vocabulary import Vocabulary, as_series, main_figures
from isplitlbi.data.weights import Weighed, weights_of
from isplitlbi.errors import InvalidRows, InvalidSetting, InvalidVotes
from isplitlbi.lazy import pl
from isplitlbi.markup import as_html
from isplitlbi.typing import Floats, Integers, Labels, Mask, Places

__all__ = ["Comparisons"]

_READERS: dict[str, Any] = {
    "weight": weights_of, "time": times_of, "duration": durations_of, "id": ids_of,
}  # fmt: skip
_UNWEIGHED = ("user", "left", "right", "outcome", "group", "time", "duration")
_PER_VOTE = (*_UNWEIGHED, "weight", "given_weight")


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

    users: Labels
    items: Labels
    user: Integers
    left: Integers
    right: Integers
    outcome: NDArray[np.int8]
    weight: Floats | None  # in units of the mean, see `data.weights`
    group: Integers | None
    groups: Labels | None = field(default=None, kw_only=True)  # the ids of the groups
    features: Features | None = field(default=None, kw_only=True)
    time: Floats | None = field(default=None, kw_only=True)
    duration: Floats | None = field(default=None, kw_only=True)
    id: pl.Series | None = field(default=None, kw_only=True)  # null where a vote has none
    # The votes that these are a part of, if they are: parameters of both then lie alike.
    whole: Comparisons | None = field(default=None, kw_only=True)
    # Of which kind the frame was that they came in: results are frames of that kind, too.
    frame_kind: str = field(default=DEFAULT_KIND, kw_only=True)
    file: str | None = field(default=None, kw_only=True)  # the name of that which was read
    # Whether nobody knows whose votes they are: all are then those of one user, `columns.CROWD`.
    is_anonymous: bool = field(default=False, kw_only=True)
    given_weight: Floats | None = field(default=None, kw_only=True)  # where this is not the weight
    weight_unit: float = field(default=1.0, kw_only=True)  # what weights were divided by

    # --- how votes come in -----------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        user: ArrayLike | None,
        left: ArrayLike,
        right: ArrayLike,
        outcome: ArrayLike,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        count: ArrayLike | None = None,
        time: ArrayLike | None = None,
        duration: ArrayLike | None = None,
        features: Mapping[str, Any] | None = None,
        id: ArrayLike | None = None,
        labels: Mapping[Any, str] | None = None,
        source: str = "votes",
    ) -> Self:
        """Check and index votes given as columns of equal length.

        Parameters
        ----------
        user, left, right
            Ids: strings or integers, which come back unchanged. Without users (None), the votes are
            those of one anonymous crowd.
        outcome
            What the user said: ``left``, ``right``, ``tie``, or 1, -1, 0.
        weight
            How important every vote is: a positive number. Only how weights compare with each other
            counts; they are divided by their mean.
        group
            Votes of one user with the same group (say, from one ranking) stay together in splits.
        count
            How many votes every row stands for: whole numbers from 0 on. A row of count 2 is that
            row twice, to everything.
        time
            When every vote was given: dates, or numbers that increase with time.
        duration
            How many seconds every answer took.
        features
            Numbers of every vote by the name of the feature: differences, left minus right, or a
            tuple of two columns, of the left and of the right items.
        id
            Ids of the votes themselves, which tell votes that came twice (`ISplitLBI.update`).
        labels
            Other words for the outcomes, such as ``{"draw": "tie"}``.
        source
            What to call these votes in an error.
        """
        given = {
            "user": user, "left": left, "right": right, "winner": outcome, "weight": weight,
            "count": count, "group": group, "time": time, "duration": duration,
            "id": id,
        }  # fmt: skip
        series, names, found = Columns.of(given, features, source)
        votes = cls.from_series(series, names, labels, source, features=found)
        log_changes(on_weights(votes.weight_unit), source)
        return votes

    @classmethod
    def from_frame(cls, frame: Any, *, source: str = "votes", **options: Any) -> Self:
        """Check and index votes in a data frame (pandas, polars, pyarrow, ...), in any layout.

        Layouts and options are those of files (`isplitlbi.data.readers.read_votes`, but for the
        format), and rows are counted in the same way, from 1. Ids stay what they are, text or
        integers. ``source`` is what errors call the frame.

        Examples
        --------
        >>> frame = pl.DataFrame({"judge": [7], "model_a": [1], "model_b": [2], "winner": ["tie"]})
        >>> Comparisons.from_frame(frame).items
        array([1, 2])
        """
        votes, _, notes = load_frame(cls, frame, source, Options(**options))
        log_changes(notes, source)
        return votes

    @classmethod
    def read(cls, path: str | Path | Sequence[str | Path], **options: Any) -> Self:
        """Read votes from a file: CSV, TSV, Parquet or JSON lines, in one of many layouts.

        Or from several files, each in a layout of its own: give a list of paths. Ids are read as
        text, so that ``007`` stays ``007``. The options are those of
        `isplitlbi.data.readers.read_votes`, which also tells what it understood. Here, what was
        dropped or read otherwise than it stands is only logged.
        """
        votes, _, notes = load_any(cls, path, Options(**options))
        log_changes(notes, str(path) if isinstance(path, str | Path) else "votes")
        return votes.read_from(path)

    def read_from(self, path: str | Path | Sequence[str | Path]) -> Self:
        """Return the same votes with the name of their files; standard input has none."""
        return replace(self, file=name_of_all(path))

    @classmethod
    def from_series(
        cls,
        series: Mapping[str, pl.Series],
        names: Mapping[str, str],
        labels: Mapping[Any, str] | None = None,
        source: str = "votes",
        *,
        features: Sequence[FeatureColumns] = (),
        is_part: bool = False,
    ) -> Self:
        """Check and index columns by their role; ``names`` is what errors call them.

        Parts of votes, of which others are to come, need not have all that votes need. Rows that
        stand for several votes become as many. Without users, the votes are those of one anonymous
        crowd.
        """
        if "count" in series:
            return cls._from_counts(series, names, labels, source, features, is_part)
        check_shape(series, names, source)
        users, items, user, left, right = indexed_ids(series, names, source)
        outcome = outcomes_of_column(series["winner"], names["winner"], labels, source)
        given, time, duration, ids = (
            read(series[role], names[role], source) if role in series else None
            for role, read in _READERS.items()
        )
        weight = Weighed.of(given, 1.0 if is_part else None)
        group = groups = None
        if "group" in series:
            grouped, (group,) = Vocabulary.indexed(
                series["group"], what=names["group"], source=source
            )
            groups = grouped.labels
        numbers = None
        if features:
            numbers = Features.from_series(series, features, weight[0], source, is_part=is_part)
        freeze(user, left, right, outcome, group, time, duration)
        return cls(
            users.labels, items.labels, user, left, right, outcome, group=group,
            groups=groups, features=numbers, time=time, duration=duration, id=ids,
            is_anonymous="user" not in series, **weight._asdict(),
        )  # fmt: skip

    @classmethod
    def _from_counts(
        cls,
        series: Mapping[str, pl.Series],
        names: Mapping[str, str],
        labels: Mapping[Any, str] | None,
        source: str,
        features: Sequence[FeatureColumns],
        is_part: bool,
    ) -> Self:
        """Check rows that stand for some number of votes, and make these votes of them."""
        check_lengths(series, names, source)
        times = counts_of(series["count"], names["count"], source)
        if "id" in series:
            refuse_counts(series["id"], times, names, source)
        there = np.flatnonzero(times)
        rows = {role: column.gather(there) for role, column in series.items() if role != "count"}
        try:
            votes = cls.from_series(rows, names, labels, source, features=features, is_part=True)
        except InvalidRows as error:  # by the numbers of all rows
            bad = np.zeros(len(times), dtype=np.bool_)
            bad[there[error.rows]] = True
            raise InvalidRows.of(error.source, bad, error.problem, *error.remedy) from None
        again = np.repeat(np.arange(len(votes)), times[there])
        return votes.alone(again, source, is_part=is_part)

    @classmethod
    def joined(cls, *parts: Comparisons) -> Self:
        """Put votes from several places together; the same id is the same user, item or group.

        All have weights or none has, and so with groups, times, durations and features; features
        and weights are scaled anew. Where some have ids and others have none, these stay without.

        Examples
        --------
        >>> monday = Comparisons.from_arrays(["ann"], ["tea"], ["milk"], [1])
        >>> tuesday = Comparisons.from_arrays(["bob"], ["tea"], ["coffee"], [0])
        >>> Comparisons.joined(monday, tuesday)
        Comparisons: 2 votes (50.0 % ties) by 2 users on 3 items
        """
        check_alike(parts)
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
            for name in _UNWEIGHED
        }
        columns |= Weighed.joined([part.weight_as_given for part in parts])._asdict()
        freeze(*(columns[name] for name in _PER_VOTE))
        numbers = None
        if of_parts := [part.features for part in parts if part.features is not None]:
            numbers = Features.joined(of_parts)
            numbers = Features.of(numbers.names, numbers.differences, columns["weight"])
        kinds = {part.frame_kind for part in parts}
        return cls(
            users.labels, items.labels, **columns,
            groups=None if groups is None else groups.labels, features=numbers,
            id=joined_ids([(part.id, len(part)) for part in parts]),
            frame_kind=kinds.pop() if len(kinds) == 1 else DEFAULT_KIND,
            is_anonymous=parts[0].is_anonymous,
        )  # fmt: skip

    def framed_as(self, kind: str) -> Self:
        """Return the same votes, whose results are frames of some kind (see `to_frame`)."""
        return replace(self, frame_kind=kind)

    def with_items(self, items: Sequence[Any]) -> Self:
        """Return the same votes, whose items have other ids: those are given in the same order."""
        named = as_series(items, "item", "these votes")
        vocabulary = Vocabulary.of(named, what="item")
        place = vocabulary.encode(named)
        return replace(
            self, items=vocabulary.labels, left=place[self.left], right=place[self.right],
            whole=None,
        )  # fmt: skip

    def changed(self, **columns: Any) -> Self:
        """Return the same votes with other columns, such as weights, in any unit."""
        if "weight" in columns:
            columns |= Weighed.of(columns["weight"])._asdict()
        return replace(self, **columns, whole=None)

    def in_weight_unit(self, unit: float) -> Self:
        """Return the same votes with the weights, as they were given, divided by a unit."""
        return replace(self, **Weighed.of(self.weight_as_given, unit)._asdict())

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
        return replace(
            self, users=users.labels, items=items.labels, user=of_user[self.user],
            left=of_item[self.left], right=of_item[self.right], group=group,
            groups=self.groups if groups is None else groups.labels, whole=None,
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

    @property
    def total_weight(self) -> float:
        """Number of votes, each by its weight."""
        return float(self.n_votes if self.weight is None else self.weight.sum())

    @property
    def weight_as_given(self) -> Floats | None:
        """The weights as they came in."""
        return self.weight if self.given_weight is None else self.given_weight

    def __len__(self) -> int:
        """Return the number of votes."""
        return self.n_votes

    def __repr__(self) -> str:
        """Say what is in it."""
        n_ties = int(np.count_nonzero(self.outcome == 0))
        n_users = 0 if self.is_anonymous else self.n_users
        return f"Comparisons: {main_figures(self.n_votes, n_ties, n_users, self.n_items)}"

    def _repr_html_(self) -> str:
        """Show a notebook what is in it, and the first votes."""
        return as_html([repr(self)], *first_votes(self))

    @property
    def votes_per_user(self) -> Places:
        """Number of votes of every user."""
        return np.bincount(self.user, minlength=self.n_users)

    @property
    def other_columns(self) -> list[Floats]:
        """The columns in which votes with the same user, items and outcome may still differ.

        They are in the order of `numpy.lexsort`, the column that comes first in sorting last.
        """
        of_features = [] if self.features is None else self.features.columns
        columns = (self.duration, self.time, *of_features, self.weight_as_given)
        return [column for column in columns if column is not None]

    def in_time_order(self) -> Places:
        """Return the places of the votes sorted by user, and those of one user by time.

        This needs ``time``: without it, a user's votes are sorted by their items and outcomes, as
        are votes of the same time. The order of the rows never matters.

        Examples
        --------
        >>> votes = Comparisons.from_arrays(
        ...     ["bob", "ann", "ann"],
        ...     ["tea"] * 3,
        ...     ["milk"] * 3,
        ...     [1, 0, -1],
        ...     time=["2024-05-01", "2024-05-03", "2024-05-02"],
        ... )
        >>> votes.in_time_order()
        array([2, 1, 0])
        """
        keys: list[NDArray[Any]] = [] if self.group is None else [self.group]
        keys += [*self.other_columns, self.outcome, self.right, self.left]
        keys += [self.user] if self.time is None else [self.time, self.user]
        return np.lexsort(keys)

    def subset(self, rows: ArrayLike) -> Self:
        """Return some of the votes, by mask or index, with the vocabularies and slots of the whole.

        Parameters of a part therefore align with those of the whole.
        """
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_:
            if len(chosen) != self.n_votes:
                raise InvalidSetting(
                    f"a mask of {len(chosen)} rows does not fit {self.n_votes} votes."
                )
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64)
        parts: dict[str, Any] = {}
        for name in _PER_VOTE:
            values = getattr(self, name)
            if values is not None:
                parts[name] = values[chosen]
        freeze(*parts.values())
        if self.features is not None:
            parts["features"] = self.features.subset(chosen)
        if self.id is not None:
            parts["id"] = self.id.gather(chosen)
        return replace(self, **parts, whole=self if self.whole is None else self.whole)

    def without(self, users: Any = (), items: Any = ()) -> Self:
        """Return the votes without those of some users and on some items.

        These are gone from the vocabularies, as is everybody who has no votes left: what remains is
        what a file without such rows would give. An unknown id is an error that names the nearest.

        Examples
        --------
        >>> votes = Comparisons.from_arrays(
        ...     ["ann", "bob", "bob"], ["tea"] * 3, ["milk", "milk", "rum"], [1, 0, -1]
        ... )
        >>> votes.without(items=["rum"])
        Comparisons: 2 votes (50.0 % ties) by 2 users on 2 items
        >>> votes.without(users="bob").users
        array(['ann'], dtype=object)
        """
        if self.is_anonymous and (np.ndim(users) == 0 or len(users)):
            raise InvalidVotes("these votes have no users to leave out; leave out items only.")
        kept = ~rows_without(self, users, items)
        if kept.all():
            return self
        if not kept.any():
            raise InvalidVotes("no votes are left without these users and items. Leave out fewer.")
        return self.alone(kept)

    def alone(self, rows: Places | Mask, source: str = "votes", *, is_part: bool = False) -> Self:
        """Return some of the votes with vocabularies, units of features and weights, of their own.

        They are told by mask or index. A vote may be among them several times.
        """
        parts: dict[str, Any] = {"whole": None}
        for name in _UNWEIGHED:
            values = getattr(self, name)
            parts[name] = None if values is None else values[rows]
        parts |= Weighed.alone(self.weight_as_given, rows, is_part=is_part)._asdict()
        parts["users"], (parts["user"],) = in_use(self.users, parts["user"])
        sides = parts["left"], parts["right"]
        parts["items"], (parts["left"], parts["right"]) = in_use(self.items, *sides)
        if self.groups is not None and parts["group"] is not None:
            parts["groups"], (parts["group"],) = in_use(self.groups, parts["group"])
        freeze(*(parts[name] for name in (*_PER_VOTE, "users", "items")))
        parts["id"] = None if self.id is None else self.id.gather(np.arange(len(self))[rows])
        if self.features is not None:
            differences = self.features.differences[rows]
            parts["features"] = Features.of(
                self.features.names, differences, parts["weight"], source, is_part=is_part
            )
        return replace(self, **parts)
