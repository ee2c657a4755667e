"""Columns that are to be votes: as they are given, checked, and with indices for ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.features import LEFT_AND_RIGHT, FeatureColumns, feature_names
from isplitlbi.data.outcomes import WINNERS
from isplitlbi.data.vocabulary import Vocabulary, as_series, first_of, show
from isplitlbi.errors import InvalidRows, InvalidSetting, InvalidVotes
from isplitlbi.lazy import pl
from isplitlbi.typing import Integers, Labels, Mask

__all__ = [
    "CROWD",
    "Columns",
    "check_alike",
    "check_lengths",
    "check_shape",
    "first_votes",
    "freeze",
    "in_use",
    "indexed_ids",
    "missing",
    "rows_without",
]

FIRST = 5  # votes that a notebook shows
CROWD = "everybody"  # who gave votes that nobody in particular has given


class Columns(NamedTuple):
    """Columns by their role, what errors call them, and which of them are features."""

    series: dict[str, pl.Series]
    names: dict[str, str]
    features: list[FeatureColumns]

    @classmethod
    def of(cls, given: Mapping[str, Any], features: Any, source: str) -> Columns:
        """Take arrays by their role, those that are None aside, and features by their names."""
        if not isinstance(features, Mapping | None):
            raise InvalidSetting("give features as a mapping from their names to their numbers.")
        columns = {role: values for role, values in given.items() if values is not None}
        names, found = {name: name for name in columns}, []
        for name in feature_names(features):
            numbers = (features or {})[name]
            both = isinstance(numbers, tuple) and len(numbers) == 2 and np.ndim(numbers[0]) > 0
            sides = tuple(f"{name}_{side}" for side in LEFT_AND_RIGHT) if both else (name,)
            found.append(FeatureColumns(name, sides))
            names |= found[-1].roles
            columns |= zip(found[-1].roles, numbers if both else (numbers,), strict=True)
        series = {role: as_series(values, names[role], source) for role, values in columns.items()}
        return cls(series, names, found)


def check_lengths(series: Mapping[str, pl.Series], names: Mapping[str, str], source: str) -> None:
    """Refuse columns of unequal length."""
    first = "user" if "user" in series else "left"
    n_votes = len(series[first])
    for role, column in series.items():
        if len(column) != n_votes:
            raise InvalidVotes(
                f"{source}: {names[role]!r} has {len(column)} rows, "
                f"{names[first]!r} has {n_votes}. Give columns of equal length."
            )


def check_shape(series: Mapping[str, pl.Series], names: Mapping[str, str], source: str) -> None:
    """Refuse columns of unequal length, without rows, or with missing values."""
    check_lengths(series, names, source)
    if len(series["left"]) == 0:
        raise InvalidVotes(f"{source}: there are no votes in it. Give at least one row.")
    for role, column in series.items():
        if column.null_count():
            raise missing(source, column.is_null(), names[role])


class Indexed(NamedTuple):
    """The ids of users and items, and the index of each vote's."""

    users: Vocabulary
    items: Vocabulary
    user: Integers
    left: Integers
    right: Integers


def indexed_ids(series: Mapping[str, pl.Series], names: Mapping[str, str], source: str) -> Indexed:
    """Index the ids of votes; refuse empty ones, and items that are compared with themselves.

    Where there is no column of users, all votes are those of one crowd.
    """
    with ThreadPoolExecutor(1) as beside:  # the users take about as long as the items
        if "user" in series:
            of_users = beside.submit(
                Vocabulary.indexed, series["user"], what=names["user"], source=source
            )
        else:
            of_users = beside.submit(_one_crowd, len(series["left"]))
        items, (left, right) = Vocabulary.indexed(
            series["left"], series["right"],
            what=f"{names['left']}/{names['right']}", source=source,
        )  # fmt: skip
        users, (user,) = of_users.result()
    for role, vocabulary, codes in (
        ("user", users, user), ("left", items, left), ("right", items, right),
    ):  # fmt: skip
        if vocabulary.labels[0] == "" and (codes == 0).any():  # the first in order, if any
            raise missing(source, codes == 0, names[role])
    same = left == right
    if row := first_of(same):
        raise InvalidRows.of(
            source, same, f"item {show(series['left'][row - 1])} is compared with itself",
            "Remove the row or correct one of its items",
        )  # fmt: skip
    return Indexed(users, items, user, left, right)


def _one_crowd(n_votes: int) -> tuple[Vocabulary, list[Integers]]:
    """Return the only user of votes without users, and whose every vote is."""
    crowd = Vocabulary(np.array([CROWD], dtype=object), "user")
    return crowd, [np.zeros(n_votes, dtype=np.int32)]


def check_alike(parts: Sequence[Any]) -> None:
    """Refuse votes of several places where some have a column that others have not."""
    for name, what in (
        ("weight", "a weight"), ("group", "a group"), ("features", "features"),
        ("time", "a time"), ("duration", "a duration"),
    ):  # fmt: skip
        if len({getattr(part, name) is None for part in parts}) != 1:
            raise InvalidVotes(f"votes can only be joined if all have {what} or none has.")
    if len({part.is_anonymous for part in parts}) != 1:
        raise InvalidVotes("votes can only be joined if all have users or none has.")
    if any(part.group is not None and part.groups is None for part in parts):
        raise InvalidVotes("votes whose groups have no names cannot be joined.")


def in_use(labels: Labels, *columns: Integers) -> tuple[Labels, list[Integers]]:
    """Return the labels that columns of indices use, and the columns as indices into these."""
    used = np.zeros(len(labels), dtype=np.bool_)
    for column in columns:
        used[column] = True
    place = (np.cumsum(used) - 1).astype(np.int32)
    return labels[used], [place[column] for column in columns]


def rows_without(votes: Any, users: Any, items: Any) -> Mask:
    """Say which votes go if some users and items are left out; refuse unknown ones."""
    gone = np.zeros(len(votes), dtype=np.bool_)
    for ids, labels, what, columns in (
        (users, votes.users, "user", (votes.user,)),
        (items, votes.items, "item", (votes.left, votes.right)),
    ):
        one = isinstance(ids, str | int | np.integer)
        chosen = as_series([ids] if one else ids, what, "these votes")
        if len(chosen):
            places = Vocabulary(labels, what).require(chosen, "these votes")
            dropped = np.isin(np.arange(len(labels)), places)
            for column in columns:
                gone |= dropped[column]
    return gone


def first_votes(votes: Any) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the main columns, and the first rows, to show them."""
    skipped = int(votes.is_anonymous)  # there is no column of users then
    columns = votes.user, votes.left, votes.right, votes.outcome
    rows = [
        [votes.users[u], votes.items[a], votes.items[b], WINNERS[outcome]][skipped:]
        for u, a, b, outcome in zip(*(each[:FIRST].tolist() for each in columns), strict=True)
    ]
    names = ["user", "left", "right", "winner"][skipped:]
    more = [["..."] * len(names)] if len(votes) > FIRST else []
    return names, [*rows, *more]


def freeze(*arrays: NDArray[Any] | None) -> None:
    """Forbid changes of arrays."""
    for array in arrays:
        if array is not None:
            array.setflags(write=False)


def missing(source: str, rows: pl.Series | Mask, name: str) -> InvalidRows:
    """Return what is said of rows without a value."""
    return InvalidRows.of(source, rows, f"{name} is missing", "Fill it in or remove the row")
