"""Files larger than memory, read as tables of some rows at a time.

A batch knows the number of its first row, so that errors name the rows of the file. What columns
mean is decided by whoever takes the batches: from the columns of the first one.

Text is cut where rows end, and each block of it is read like a file of its own with the same
header; a file of one block is therefore read as it always is. Parquet is read slice by slice.
"""

from __future__ import annotations

import gzip
import io
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from isplitlbi.data.formats import (
    BLANK,
    DAMAGED,
    Dropping,
    RawFile,
    Table,
    is_one_batch,
    known_columns,
    opened,
    read_as,
    refuse_many,
    settle_format,
    unreadable_parquet,
)
from isplitlbi.data.notes import Dropped
from isplitlbi.data.objects import first_object
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.lazy import pl

__all__ = ["BLOCK", "Batch", "stream_tables"]

BLOCK = 2**23  # bytes of text in a batch
ROWS = 2**18  # rows of Parquet in a batch, about as much
LONGEST = 2**26  # bytes of a row: whatever is longer is no row

BOM = b"\xef\xbb\xbf"


class Batch(NamedTuple):
    """Some rows of a file, one after another."""

    source: str  # what errors call the file
    table: Table
    first_row: int  # the number of its first row in the file, from 1
    share: float | None  # how much of the file has been read by now, where that is known

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Let errors on rows of this batch name the rows of the file."""
        try:
            yield
        except InvalidRows as error:
            if self.first_row == 1:  # they may know the objects that they come from
                raise
            raise error.after(self.first_row - 1) from None


def stream_tables(
    source: str | Path,
    known: frozenset[str],
    dropping: Dropping,
    *,
    format: str | None = None,
    block: int = BLOCK,
) -> Iterator[Batch]:
    """Read a file, or standard input, batch by batch.

    An array of JSON, which is no JSON lines, is one batch, and so is the export of another
    platform. Every other file takes as much memory as a batch does, however long it is.

    Parameters
    ----------
    source
        A path, or ``-`` for standard input; compressed with gzip or not.
    known
        Columns that may be of use; a batch has these at least, as far as they are there.
    dropping
        What becomes of rows that cannot be read. It gathers the notes on all batches.
    format
        One of `FORMATS`; recognised from the first bytes by default.
    block
        Bytes of text in a batch.

    Yields
    ------
    Batch
        None of them is empty, unless there is not a single row: then it is the only one.
    """
    with ExitStack() as files:
        origin = _Source.of(source, files)
        first = origin.read(block)
        while not first.strip(BLANK) and (more := origin.read(block)):
            first = more  # there was nothing but empty lines so far
        if not first.strip(BLANK):
            raise InvalidVotes(f"{origin.name}: the file is empty.")
        found = settle_format(RawFile(origin.name, first), format)
        if found == "parquet":
            yield from _of_parquet(origin, first, files, known)
        else:
            yield from _of_text(origin, first, found, known, dropping, block)


class _Source(NamedTuple):
    """The bytes of a file, decompressed, as they come."""

    name: str
    path: Path | None  # of a plain file, which others may open again
    stream: IO[bytes] | gzip.GzipFile
    raw: IO[bytes]
    size: int  # of the file in bytes; 0 where nobody knows

    @classmethod
    def of(cls, source: str | Path, files: ExitStack) -> _Source:
        """Open a file, until the stack is left, or standard input."""
        path, size = None, 0
        if str(source) == "-":
            name, raw = "standard input", sys.stdin.buffer
        else:
            path = Path(source)
            name = path.name
            with opened(path):
                raw = files.enter_context(path.open("rb"))
                size = path.stat().st_size if path.is_file() else 0
        peeking = raw if hasattr(raw, "peek") else io.BufferedReader(raw)  # type: ignore[type-var]
        if peeking.peek(2)[:2] == b"\x1f\x8b":
            unzipped = files.enter_context(gzip.GzipFile(fileobj=peeking))
            return cls(name, None, unzipped, raw, size)
        is_plain = size > 0 and name.isprintable()
        return cls(name, path if is_plain else None, peeking, raw, size)

    def read(self, n_bytes: int = -1) -> bytes:
        """Return the next bytes, fewer only at the end."""
        try:
            return self.stream.read(n_bytes)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise InvalidVotes(f"{self.name}: {DAMAGED}") from None

    @property
    def share(self) -> float | None:
        """How much of the file has been read."""
        return min(self.raw.tell() / self.size, 1.0) if self.size else None


# --- text ------------------------------------------------------------------------------------


def _of_text(
    origin: _Source,
    first: bytes,
    format: str,
    known: frozenset[str],
    dropping: Dropping,
    size: int,
) -> Iterator[Batch]:
    is_json = format == "jsonl"
    while is_json and len(first) < LONGEST and not first_object(first, f"{origin.name}, row 1"):
        if not (more := origin.read(len(first))):  # by the whole of it one knows what it is
            break
        first += more
    if is_json and is_one_batch(first, origin.name):
        first += origin.read()
    rows_before = lines_before = 0
    header, batch, is_empty = b"", None, True
    for data in _blocks(origin, first, size, has_quotes=not is_json):
        file = RawFile(
            origin.name, header + data, rows_before=rows_before,
            lines_before=lines_before - header.count(b"\n"),
        )  # fmt: skip
        of_block = dropping._replace(notes=[])
        try:
            table = read_as(format, file, known, of_block)
        except InvalidRows as error:
            raise error.after(rows_before) from None
        dropped = [note for note in of_block.notes if isinstance(note, Dropped)]
        dropping.notes.extend(
            note for note in of_block.notes if note in dropped or note not in dropping.notes
        )
        batch = Batch(origin.name, table, rows_before + 1, origin.share)
        if table.height:
            is_empty = False
            yield batch
        rows_before += table.height + sum(note.count for note in dropped)
        lines_before += data.count(b"\n")
        if is_json:  # columns are looked for as they were spelled before
            known = known.union(known_columns(table.columns, known))
        elif not header:
            header = data[: _end_of_header(data)]
    if is_empty and batch is not None:
        yield batch


def _blocks(origin: _Source, first: bytes, size: int, *, has_quotes: bool) -> Iterator[bytes]:
    """Cut a text where rows end.

    As in a file that is read at once, empty lines at both ends of the text are nothing.
    """
    held = first.removeprefix(BOM).lstrip(b"\r\n")
    while more := origin.read(size):
        end = _end_of_rows(held) if has_quotes else held.rfind(b"\n") + 1
        # Empty lines go with what follows them: at the end of the text, they are nothing.
        rows = held[:end].rstrip(b"\r\n")
        if rows:
            end = held.index(b"\n", len(rows)) + 1
            yield held[:end]
            held = held[end:]
        elif len(held) > LONGEST:
            raise InvalidVotes(
                f"{origin.name}: a row is longer than {LONGEST // 2**20} MB; perhaps a quotation "
                "mark is opened and never closed. Put a field with quotation marks in quotation "
                "marks, and write each of those inside twice."
            )
        held += more
    if held.strip(b"\r\n"):
        yield held.rstrip(b"\r\n") + b"\n"


def _end_of_rows(text: bytes) -> int:
    """Return where the last whole row ends; newlines in quotation marks end none."""
    n_quotes, end = text.count(b'"'), len(text)
    while (newline := text.rfind(b"\n", 0, end)) >= 0:
        n_quotes -= text.count(b'"', newline, end)
        if n_quotes % 2 == 0:
            return newline + 1
        end = newline
    return 0


def _end_of_header(text: bytes) -> int:
    """Return where the first row ends."""
    end = text.index(b"\n") + 1
    while text.count(b'"', 0, end) % 2:
        end = text.index(b"\n", end) + 1
    return end


# --- Parquet ---------------------------------------------------------------------------------


def _of_parquet(
    origin: _Source, first: bytes, files: ExitStack, known: frozenset[str]
) -> Iterator[Batch]:
    path = origin.path or _copied(origin, first, files)
    with unreadable_parquet(origin.name):
        columns = list(pl.read_parquet_schema(path))
        refuse_many(columns, origin.name)
        rows = pl.scan_parquet(path, glob=False)
        height = int(rows.select(pl.len()).collect().item())
    wanted = known_columns(columns, known)
    for start in range(0, max(height, 1), ROWS):
        with unreadable_parquet(origin.name):
            frame = rows.select(wanted).slice(start, ROWS).collect()
        share = min((start + ROWS) / max(height, 1), 1.0)
        yield Batch(origin.name, Table.of(frame, columns), start + 1, share)


def _copied(origin: _Source, first: bytes, files: ExitStack) -> Path:
    """Return a copy of what can be read only once: the end of Parquet is read first."""
    folder = Path(files.enter_context(tempfile.TemporaryDirectory()))
    copy = folder / "copy.parquet"
    with copy.open("wb") as file:
        file.write(first)
        while more := origin.read(BLOCK):
            file.write(more)
    return copy
