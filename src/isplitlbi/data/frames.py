"""Results as tables: frames of the kind that the votes came in.

Whoever brings votes in a pandas frame gets pandas frames, polars frames for polars, tables of Arrow
for such; of all other votes (files, arrays, stored models) the frames are those of polars. What
the columns of a result are is said once, where the result is: files and the command line have them
from there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

from isplitlbi.errors import InvalidSetting, MissingLibrary
from isplitlbi.lazy import nw, pl
from isplitlbi.markup import as_html

__all__ = ["DEFAULT_KIND", "FRAME_KINDS", "Tabular", "kind_of", "numbers_or_empty"]

FRAME_KINDS = ("polars", "pandas", "pyarrow")
DEFAULT_KIND = "polars"

FIRST = 10  # rows that a notebook shows


class Tabular:
    """A result that is a table, too."""

    frame_kind = DEFAULT_KIND  # of which kind its frames are by default
    # The columns that a notebook shows; all of them where none are named.
    _shown: tuple[str, ...] = ()

    def to_frame(self, kind: str | None = None) -> Any:
        """Return a table with named columns, as a new frame.

        Parameters
        ----------
        kind
            ``polars``, ``pandas`` or ``pyarrow``; by default the kind of frame that the votes came
            in, and polars where they came in none.
        """
        return _converted(self._table(), self.frame_kind if kind is None else kind)

    def framed_as(self, kind: str) -> Self:
        """Remember of which kind frames are by default; return the same result."""
        object.__setattr__(self, "frame_kind", kind)  # a result may be frozen
        return self

    def _table(self) -> pl.DataFrame:
        """Return the columns: the one place where they are defined."""
        raise NotImplementedError

    def _said(self) -> list[str]:
        """Return the sentences that a notebook shows above the table."""
        return [repr(self)]

    def _repr_html_(self) -> str:
        """Show a notebook the first rows; an id is text there, whatever is in it."""
        table = self._table()
        table = table.select(self._shown or table.columns)
        rows: list[list[str]] = [[_cell(value) for value in row] for row in table[:FIRST].rows()]
        more = [["..."] * table.width] if table.height > FIRST else []
        return as_html(self._said(), table.columns, [*rows, *more])


def kind_of(frame: nw.DataFrame[Any]) -> str:
    """Return the kind of a frame; the default of one that nobody gets back here."""
    name = str(frame.implementation)
    return name if name in FRAME_KINDS else DEFAULT_KIND


def numbers_or_empty(numbers: Any) -> pl.Series:
    """Return numbers from 1 on; zeros, which stand for none, are empty."""
    return pl.Series([int(number) or None for number in numbers], dtype=pl.Int64)


def _converted(table: pl.DataFrame, kind: str) -> Any:
    if kind not in FRAME_KINDS:
        raise InvalidSetting(f"kind {kind!r} is not one of {', '.join(FRAME_KINDS)}.")
    if kind == "polars":
        return table
    try:
        library = import_module(kind)
    except ImportError:
        raise MissingLibrary(
            f"{kind} is not installed, so such a frame cannot be made. Install it, or ask for "
            'another kind: to_frame("polars").'
        ) from None
    if kind == "pyarrow":
        return table.to_arrow()
    columns = {column.name: _as_pandas(column, library) for column in table}
    return library.DataFrame(columns, columns=table.columns)


def _as_pandas(column: pl.Series, pandas: Any) -> Any:
    """Return a column of pandas, without the help of Arrow; whole numbers stay whole."""
    if column.null_count() and column.dtype.is_integer():
        return pandas.Series(column.to_list(), dtype="Int64")
    if column.null_count() and column.dtype == pl.Boolean:
        return pandas.Series(column.to_list(), dtype="boolean")
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return pandas.Series(column.to_numpy())
    is_empty = column.null_count() == len(column)
    return pandas.Series(column.to_list(), dtype="object" if is_empty else None)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)
