"""What stands in a table as rows of text, and these as a row for every vote."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isplitlbi.data.counts import is_zero
from isplitlbi.data.features import FEATURE
from isplitlbi.data.formats import Dropping, Table
from isplitlbi.data.notes import Dropped, Note
from isplitlbi.data.presets import Preset
from isplitlbi.data.rankings import ORIGIN, numbered
from isplitlbi.data.times import TIMES
from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.lazy import pl

__all__ = ["as_text", "rows_of_votes"]

# Roles of ids; those of several items have a number behind.
IDS = ("user", "left", "right", "group", "id", "item", "best", "worst")


def as_text(
    table: Table, names: Mapping[str, str], source: str, dropping: Dropping
) -> pl.DataFrame:
    """Return the columns of all roles as text; ids of a frame as they are."""
    taken = {}
    kept = np.ones(table.height, dtype=np.bool_)
    for role, name in names.items():
        column = table.column(name)
        kind, is_id = column.dtype, role.rstrip("0123456789") in IDS
        if table.odd is not None and (odd := table.odd(name, is_id=is_id)) is not None:
            if (rows := odd.rows & kept).any():  # a row that is dropped is dropped once
                numbers = None if table.row is None else table.row.to_numpy()
                bad = InvalidRows.of(source, rows, odd.problem, odd.remedy, numbers=numbers)
                dropping.note_or_raise(bad, numbers)
            kept &= ~odd.rows
        if table.keeps_ids and is_id and (kind == pl.String or kind.is_numeric()):
            pass  # of numbers, only whole ones become votes
        elif isinstance(kind, pl.Categorical | pl.Enum) or kind.is_integer() or kind == pl.Null:
            column = column.cast(pl.String)
        elif kind.is_float() and (role in ("weight", *TIMES) or role.startswith(FEATURE)):
            column = column.fill_nan(None)
        elif role in TIMES and kind.is_temporal():
            pass
        elif not is_id and (kind.is_float() or kind == pl.Boolean):
            column = (column.fill_nan(None) if kind.is_float() else column).cast(pl.String)
        elif kind != pl.String:
            raise InvalidVotes(
                f"{source}: {name} holds values of type {kind}, such as "
                f"{show(column.drop_nulls().first())}; expected text or whole numbers. "
                "Convert the column."
            )
        taken[role] = column.alias(role)
    text = pl.DataFrame(taken)
    text = text if table.row is None else text.with_columns(row=table.row)
    return text if kept.all() else numbered(text).filter(pl.Series(kept))


def rows_of_votes(
    text: pl.DataFrame, layout: Preset, names: Mapping[str, str], source: str, dropping: Dropping
) -> pl.DataFrame:
    """Return a row per vote, or per so many as it counts; those that are none are left out."""
    text = _without_zeros(text, f"{names.get('count')} is 0", dropping.notes)
    pairs = _pairs_of(text, layout, source, dropping)
    return _without_zeros(pairs, "all counts are 0", dropping.notes)


def _pairs_of(text: pl.DataFrame, layout: Preset, source: str, dropping: Dropping) -> pl.DataFrame:
    """Return a row per vote, without rows that are to be dropped or that compare nothing."""
    while True:
        try:
            pairs = layout.pairs(text, source)
            break
        except InvalidRows as error:
            dropping.note_or_raise(error, numbered(text)["row"].to_numpy())
            text = numbered(text).filter(pl.Series(~error.rows))
    if ORIGIN not in pairs.columns:
        return pairs
    if n_alone := text.height - pairs[ORIGIN].n_unique():
        dropping.notes.append(Dropped("row", "fewer than two items are in it", count=n_alone))
    return pairs.drop(ORIGIN)


def _without_zeros(frame: pl.DataFrame, why: str, notes: list[Note]) -> pl.DataFrame:
    """Leave out rows that stand for no vote at all, and tell how many rows of the file those are.

    What is left has the numbers that it has in the file.
    """
    if "count" not in frame.columns:
        return frame
    frame = numbered(frame)
    left = frame.filter(~is_zero(frame["count"]))
    if gone := frame["row"].n_unique() - left["row"].n_unique():
        notes.append(Dropped("row", why, count=gone))
    return left
