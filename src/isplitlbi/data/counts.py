"""How often a row was voted: rows that stand for several votes that are alike.

A count is not a weight. A row of count 3 is three votes, to all that is done with them; a vote of
weight 3 is one vote that matters three times as much.
"""

from __future__ import annotations

import os

import numpy as np

from isplitlbi.data.features import cast_to_numbers
from isplitlbi.errors import InvalidRows, InvalidVotes, Setting
from isplitlbi.lazy import pl
from isplitlbi.typing import Places

__all__ = ["BYTES_PER_PAIR", "MOST_VOTES", "are_too_many", "counts_of", "is_zero", "votes_in"]

MOST_VOTES = 2**31 - 1  # what votes are numbered by
ENOUGH = 1e15  # which is too many in any case
BYTES_PER_VOTE = 40  # at least, while votes are counted out
BYTES_PER_PAIR = 250  # about, while rankings become pairs


def counts_of(column: pl.Series, name: str, source: str) -> Places:
    """Return how many votes every row stands for; what is no whole number is refused with its row.

    So are more votes than can be held, before any memory is taken for them.
    """
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise InvalidVotes(
            f"{source}: {name} holds values of type {column.dtype}; expected whole numbers. "
            "Convert the column."
        )
    missing = column.is_null() | (column == "") if column.dtype == pl.String else column.is_null()
    if missing.any():
        raise InvalidRows.of(source, missing, f"{name} is missing", "Fill it in or remove the row")
    found = cast_to_numbers(column, name, source)
    bad = ~(np.isfinite(found) & (found >= 0) & (np.floor(found) == found))
    if bad.any():
        raise InvalidRows.of(
            source, bad, f"{name} {found[bad][0]:.15g} is not a whole number from 0 on",
            "Correct it, or use ", Setting("weight", of="column"),
            " for a column of how important votes are",
        )  # fmt: skip
    total = float(np.minimum(found, ENOUGH).sum())
    if are_too_many(total):
        many = f"{total:,.0f}" if total < ENOUGH else f"{total:.0e} or more"
        raise InvalidVotes(
            f"{source}: by {name}, its rows stand for {many} votes, which is more than can be held "
            "here. Correct them, or use ", Setting("weight", of="column"),
            " for a column of how important votes are.",
        )  # fmt: skip
    return found.astype(np.int64)


def are_too_many(n_votes: float, bytes_each: int = BYTES_PER_VOTE) -> bool:
    """Tell whether so many votes cannot be held on this machine, or on any."""
    return n_votes > MOST_VOTES or n_votes * bytes_each > _memory()


def is_zero(column: pl.Series) -> pl.Series:
    """Tell which counts are 0, whatever else is wrong with others."""
    return (column.cast(pl.Float64, strict=False) == 0.0).fill_null(False)


def votes_in(rows: pl.DataFrame) -> int:
    """Return how many votes the rows of a table stand for, as far as their counts are numbers."""
    if "count" not in rows.columns:
        return rows.height
    counts = rows["count"].cast(pl.Float64, strict=False)
    return int(counts.filter(counts.is_finite().fill_null(False)).sum())


def _memory() -> float:
    """Return how many bytes this machine has; infinity where it does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
