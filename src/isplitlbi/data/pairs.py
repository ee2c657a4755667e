"""Pairs to predict, from files of any size: batches of checked rows, or all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from isplitlbi.data.features import feature_names, find_columns, numbers_of
from isplitlbi.data.formats import Dropping, Table
from isplitlbi.data.notes import Note, log_changes
from isplitlbi.data.options import Options
from isplitlbi.data.presets import PRESETS
from isplitlbi.data.recognition import column_named, find_pairs, require, respelled_columns
from isplitlbi.data.rows import as_text
from isplitlbi.data.streams import BLOCK, Batch, stream_tables
from isplitlbi.data.vocabulary import refuse_nul, show
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.lazy import pl

__all__ = ["PairBatch", "read_pairs", "stream_pairs"]


class PairBatch(NamedTuple):
    """Some pairs of a file, one after another."""

    source: str  # what errors call the file
    pairs: pl.DataFrame  # user (where there are users), left and right as text; features
    first_row: int  # the number of the first one in the file, from 1
    share: float | None  # how much of the file has been read by now, where that is known


def stream_pairs(
    source: str | Path,
    *,
    format: str | None = None,
    user: str | None = None,
    left: str | None = None,
    right: str | None = None,
    features: Sequence[str] | None = None,
    block: int = BLOCK,
) -> Iterator[PairBatch]:
    """Read pairs to predict batch by batch, from a file that may be larger than memory.

    Parameters are those of `read_pairs`, and the bytes of text in a batch.
    """
    given = {"user": user, "left": left, "right": right}
    asked = {role: column for role, column in given.items() if column is not None}
    known = Options(features=features).known | frozenset(asked.values())
    dropping = Dropping(False, [], "row", offer=False)
    layout = None
    for batch in stream_tables(source, known, dropping, format=format, block=block):
        if layout is None:
            layout = _Columns.of(batch.table.columns, asked, features, batch.source)
            log_changes([*dropping.notes, *layout.notes], batch.source)
            if not batch.table.height:
                raise InvalidVotes(
                    f"{batch.source}: there are no pairs in it. Give at least one row."
                )
        layout.refuse_others(batch, asked, features)
        with batch.counted():
            pairs = layout.checked(batch.table, batch.source)
        yield PairBatch(batch.source, pairs, batch.first_row, batch.share)


def read_pairs(
    source: str | Path,
    *,
    format: str | None = None,
    user: str | None = None,
    left: str | None = None,
    right: str | None = None,
    features: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Read pairs to predict: a frame with the columns user, left and right, as text.

    The file may have any layout of votes; outcomes in it are passed over. Where no column can be
    the user, there is none in the frame. Features, where the file has their columns (as in
    `read_votes`), are beside them as numbers.
    """
    batches = stream_pairs(
        source, format=format, user=user, left=left, right=right, features=features
    )
    return pl.concat([batch.pairs for batch in batches])


class _Columns(NamedTuple):
    """The columns of pairs, by their roles."""

    columns: list[str]  # all that are there
    names: Mapping[str, str]  # of user, left and right
    of_features: Mapping[str, str]
    notes: Sequence[Note]

    @classmethod
    def of(
        cls,
        columns: list[str],
        asked: Mapping[str, str],
        features: Sequence[str] | None,
        source: str,
    ) -> Self:
        """Find the columns; refuse a table without those of the items, or without those asked."""
        fitting = find_pairs(columns, asked, source)
        if fitting is None:
            wanted = {"left": "left", "right": "right"} | dict(asked)
            names = {role: column_named(each, columns) or each for role, each in wanted.items()}
            require(names, columns, source)
            fitting = PRESETS["canonical"], names
        layout, names = fitting
        found = [
            find_columns(feature, columns, layout.sides, source)
            for feature in feature_names(features)
        ]
        of_features = {role: c for each in found if each for role, c in each.roles.items()}
        return cls(columns, names, of_features, respelled_columns(layout, names, asked))

    def refuse_others(
        self, batch: Batch, asked: Mapping[str, str], features: Sequence[str] | None
    ) -> None:
        """Refuse rows of JSON with a column that is of use and that no row before had."""
        if not (new := [name for name in batch.table.columns if name not in self.columns]):
            return
        found = _Columns.of([*self.columns, *new], asked, features, batch.source)
        before = {**self.names, **self.of_features}
        for role, column in {**found.names, **found.of_features}.items():
            if before.get(role) != column:
                raise InvalidVotes(
                    f"{batch.source}, from row {batch.first_row} on: there is a column {column!r}, "
                    "which no row before has. Give all rows the same columns."
                )

    def checked(self, table: Table, source: str) -> pl.DataFrame:
        """Return the pairs of a table; refuse what is none, by the rows that it knows or from 1."""
        try:
            return self._checked(table, source)
        except InvalidRows as error:
            numbers = None if table.row is None else table.row.to_numpy()
            raise InvalidRows.of(
                source, error.rows, error.problem, *error.remedy, numbers=numbers
            ) from None

    def _checked(self, table: Table, source: str) -> pl.DataFrame:
        dropping = Dropping(False, [], "row", offer=False)
        frame = as_text(table, {**self.names, **self.of_features}, source, dropping)
        for role, column in self.names.items():
            if (missing := frame[role].is_null() | (frame[role] == "")).any():
                raise InvalidRows.of(
                    source, missing, f"{column} is missing", "Fill it in or remove the row"
                )
            refuse_nul(frame[role], [frame[role]], column, source)
        if (same := frame["left"] == frame["right"]).any():
            item = show(frame["left"].filter(same)[0])
            raise InvalidRows.of(
                source, same, f"item {item} is compared with itself", "Remove the row"
            )
        numbers = [
            pl.Series(column, numbers_of(frame[role], column, source))
            for role, column in self.of_features.items()
        ]
        return frame.select(*self.names).with_columns(numbers)
