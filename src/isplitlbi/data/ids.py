"""Ids that votes have of their own: they tell a vote that came twice, and decide nothing else.

They are columns of polars, text or integers, and not indices into a vocabulary, since hardly any
id is there twice. A vote without an id, beside others that have one, has a null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isplitlbi.data.columns import missing
from isplitlbi.data.vocabulary import refuse_nul, show
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.lazy import pl
from isplitlbi.typing import Mask, Places

__all__ = ["ids_of", "joined_ids", "refuse_counts", "stand_before"]


def ids_of(column: pl.Series, name: str, source: str) -> pl.Series:
    """Return the ids of votes, checked: text or whole numbers, and none of them missing."""
    if column.dtype == pl.String:
        if (empty := column == "").any():
            raise missing(source, empty, name)
        refuse_nul(column, [column], name, source)
        return column.alias("id")
    if not column.dtype.is_integer():
        raise InvalidVotes(
            f"{source}: {name} holds values of type {column.dtype}, such as {show(column[0])}; "
            "ids are strings or integers. Convert the column to one."
        )
    try:
        return column.cast(pl.Int64).alias("id")
    except pl.exceptions.PolarsError:
        raise InvalidVotes(
            f"{source}: {name} {show(column.max())} is beyond 64-bit integers. "
            "Give such ids as text."
        ) from None


def refuse_counts(ids: pl.Series, times: Places, names: Mapping[str, str], source: str) -> None:
    """Refuse a row that stands for several votes: they cannot all have one id."""
    if (several := times > 1).any():
        row = int(several.argmax())
        raise InvalidRows.of(
            source, several,
            f"{names['count']} is {times[row]:,}, and so many votes cannot all have the "
            f"{names['id']} {show(ids[row])}", "Write a row for every vote",
        )  # fmt: skip


def joined_ids(parts: Sequence[tuple[pl.Series | None, int]]) -> pl.Series | None:
    """Put the ids of votes from several places together, each with its number of votes.

    Where some places have ids, the votes of the others have nulls.
    """
    known = [ids for ids, _ in parts if ids is not None]
    if not known:
        return None
    kind = known[0].dtype
    if other := [ids for ids in known if ids.dtype != kind]:
        one, another = (show(ids.drop_nulls().first()) for ids in (known[0], other[0]))
        raise InvalidVotes(
            "the ids of votes are text in one place and integers in the other, such as "
            f"{one} and {another}. Convert both to one type."
        )
    return pl.concat(
        [pl.Series("id", [None], kind).new_from_index(0, n) if ids is None else ids
         for ids, n in parts], rechunk=True,
    )  # fmt: skip


def stand_before(ids: pl.Series) -> Mask:
    """Tell which votes have the id of a vote before them."""
    found: Mask = (ids.is_not_null() & ~ids.is_first_distinct()).to_numpy()
    return found
