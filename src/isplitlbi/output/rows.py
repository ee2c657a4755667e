"""Results of any length, written a batch of rows at a time: to standard output, or into a file.

A file is there as a whole at the end, or not at all; its ending says what is in it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isplitlbi.errors import InvalidSetting
from isplitlbi.files import written_whole
from isplitlbi.lazy import pl
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.output.terminal import Format, as_json, emit, write_csv

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["ENDINGS", "refuse_unknown_ending", "rows_to_file", "rows_to_output"]


# --- standard output -------------------------------------------------------------------------


@contextmanager
def rows_to_output(
    format: Format, nouns: Nouns = NOUNS
) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Give a function that writes batches to standard output: what `emit` writes of them all.

    A table for people is printed at the end, because its columns are as wide as all their cells.
    """
    tables: list[pl.DataFrame] = []
    n_batches = 0

    def write(table: pl.DataFrame) -> None:
        nonlocal n_batches
        if format is Format.csv:
            write_csv(table, header=n_batches == 0)
        elif format is Format.json:
            rows = as_json(table.to_dicts())
            # The rows without the brackets around them, which all batches share.
            sys.stdout.write((",\n" if n_batches else "[\n") + rows[2:-2])
        else:
            tables.append(table)
        n_batches += 1

    yield write
    if format is Format.json:
        sys.stdout.write("\n]\n")
    elif tables:
        emit(pl.concat(tables), format, nouns)


# --- files -----------------------------------------------------------------------------------


@contextmanager
def _to_csv(place: Path) -> Iterator[Callable[[pl.DataFrame], None]]:
    with place.open("wb") as file:
        yield lambda table: table.write_csv(file, include_header=file.tell() == 0)


@contextmanager
def _to_json_lines(place: Path) -> Iterator[Callable[[pl.DataFrame], None]]:
    with place.open("wb") as file:
        yield lambda table: table.write_ndjson(file)


@contextmanager
def _to_parquet(place: Path) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Write each batch to a file of its own, beside the place, and put them together at the end."""
    with tempfile.TemporaryDirectory(prefix=f"{place.name}.", dir=place.parent) as folder:
        parts: list[Path] = []

        def write(table: pl.DataFrame) -> None:
            parts.append(Path(folder) / f"{len(parts)}.parquet")
            table.write_parquet(parts[-1])

        yield write
        pl.scan_parquet(parts, glob=False).sink_parquet(place)


# What a file may end in, and how it is then written.
ENDINGS: dict[str, Callable[[Path], AbstractContextManager[Any]]] = {
    ".csv": _to_csv,
    ".jsonl": _to_json_lines,
    ".ndjson": _to_json_lines,
    ".parquet": _to_parquet,
}


def refuse_unknown_ending(file: Path) -> None:
    """Refuse to write a file whose ending does not say what it is."""
    if file.suffix.lower() not in ENDINGS:
        raise InvalidSetting(
            f"{file}: the ending of the file says how it is written, and {file.suffix or 'none'} "
            f"is not one of {', '.join(ENDINGS)}."
        )


@contextmanager
def rows_to_file(file: Path) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Give a function that writes batches into a file, which is there when all are written."""
    refuse_unknown_ending(file)
    with written_whole(file) as place, ENDINGS[file.suffix.lower()](place) as write:
        yield write
