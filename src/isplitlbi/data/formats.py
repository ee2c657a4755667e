"""Files to tables: the bytes of any common format, every column of use as it stands.

What cannot be read, or is of another kind, is refused in a sentence that says what to do.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import shlex
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from isplitlbi.data.exports import Export
from isplitlbi.data.notes import Dropped, Note, SeparatorTaken
from isplitlbi.data.objects import (
    Objects,
    Odd,
    first_object,
    objects_in,
    table_of_objects,
)
from isplitlbi.data.platforms import recognise_export
from isplitlbi.data.vocabulary import counted, folded
from isplitlbi.errors import InvalidRows, InvalidSetting, InvalidVotes, ISplitLBIError, Setting
from isplitlbi.lazy import pl
from isplitlbi.typing import Mask, Places

__all__ = [
    "ANY_NUMBER",
    "BLANK",
    "DAMAGED",
    "FORMATS",
    "Dropping",
    "RawFile",
    "Table",
    "is_one_batch",
    "known_columns",
    "opened",
    "read_as",
    "read_table",
    "refuse_many",
    "settle_format",
    "unreadable_parquet",
]

FORMATS = {
    "csv": "text, fields separated by commas, names in the first line",
    "tsv": "the same with tabs",
    "parquet": "Apache Parquet",
    "jsonl": "one JSON object a line, or an array of objects",
}

_EXPECTED = "CSV, TSV, Parquet or JSON lines, also with gzip"

# What else people hand in, by the first bytes.
_FOREIGN = {
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"PK\x03\x04": "a ZIP archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\xfd7zXZ": "compressed with xz",
    b"BZh": "compressed with bzip2",
}


class FindOdd(Protocol):
    """Return what a column of a table holds that its texts do not tell, if anything."""

    def __call__(self, column: str, *, is_id: bool) -> Odd | None:
        """Look for it in one column, of ids or of others."""


class Table(NamedTuple):
    """What stands in a file or a frame: columns that may be of use, and the names of all."""

    column: Callable[[str], pl.Series]
    columns: list[str]
    height: int
    keeps_ids: bool = False  # whether ids stay as they are, numbers too, and do not become text
    row: pl.Series | None = None  # where in the file every row comes from, if rows are not its own
    odd: FindOdd | None = None  # what a column holds that its texts do not tell

    @classmethod
    def of(cls, frame: pl.DataFrame, columns: list[str]) -> Table:
        """Take what was read from a file."""
        return cls(frame.get_column, columns, frame.height)


class Dropping(NamedTuple):
    """What becomes of rows that cannot be used."""

    allowed: bool
    notes: list[Note]
    unit: str  # what the rows are
    offer: bool = True  # whether to tell of the option

    def note_or_raise(self, error: InvalidRows, numbers: Places | None = None) -> None:
        """Note that rows were dropped, or refuse them where that is not allowed."""
        if not self.allowed:
            remedy = error.remedy
            if self.offer:
                remedy += (", or drop such rows with ", Setting("drop_invalid", True))
            raise InvalidRows.of(
                error.source, error.rows, error.problem, *remedy, numbers=numbers
            ) from None
        self.notes.append(Dropped(self.unit, error.problem, count=int(error.rows.sum())))


# --- bytes -----------------------------------------------------------------------------------

HEAD = 2**16
MOST_COLUMNS = 10_000
BLANK = b"\xef\xbb\xbf \t\r\n"
ANY_NUMBER = "{}"  # at the end of the name of a column: there may be any number of such
DAMAGED = "the compressed file is incomplete or damaged. Copy it again."


class RawFile:
    """What to call a file (or standard input), and its bytes, decompressed.

    A plain file is not read as a whole before that is needed: polars reads it faster by itself.
    The bytes may also be a block of a file, after so many rows and lines of it.
    """

    def __init__(
        self,
        name: str,
        data: bytes | None = None,
        path: Path | None = None,
        *,
        rows_before: int = 0,
        lines_before: int = 0,
    ) -> None:
        self.name, self.path, self._data = name, path, data
        self.rows_before, self.lines_before = rows_before, lines_before
        if path is None:
            self.head, self.tail = self.data[:HEAD], self.data[-HEAD:]
        else:
            with path.open("rb") as file:
                self.head = file.read(HEAD)
                file.seek(max(path.stat().st_size - HEAD, 0))
                self.tail = file.read(HEAD)

    @classmethod
    def of(cls, source: str | Path) -> RawFile:
        """Open a file, or take what comes through standard input."""
        if str(source) == "-":
            found = cls("standard input", sys.stdin.buffer.read())
        else:
            path = Path(source)
            with opened(path):
                # What is no file, such as a named pipe, can be read only once; a file whose name
                # is no text, only by bytes.
                plain = path.is_file() and _is_text(path.name)
                found = cls(path.name, *((None, path) if plain else (path.read_bytes(),)))
        if found.head[:2] == b"\x1f\x8b":
            try:
                found = cls(found.name, gzip.decompress(found.data))
            except (OSError, EOFError, zlib.error):
                raise InvalidVotes(f"{found.name}: {DAMAGED}") from None
        if not found.head.strip(BLANK) and not found.data.strip(BLANK):
            raise InvalidVotes(f"{found.name}: the file is empty.")
        return found

    @property
    def data(self) -> bytes:
        """All bytes."""
        if self._data is None:
            assert self.path is not None
            self._data = self.path.read_bytes()
        return self._data

    def trimmed(self) -> RawFile:
        """Return the same text without a mark or empty lines at its ends, and one newline last."""
        plain = not self.head.startswith((b"\xef\xbb\xbf", b"\n", b"\r"))
        if plain and self.tail[-1:] == b"\n" and not self.tail.endswith((b"\n\n", b"\n\r\n")):
            return self
        return RawFile(self.name, self.data.removeprefix(b"\xef\xbb\xbf").strip(b"\r\n") + b"\n")


@contextmanager
def opened(path: Path) -> Iterator[None]:
    """Say in a sentence why a file cannot be opened or read."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidVotes(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise InvalidVotes(f"{path}: this is a folder; expected a file.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ISplitLBIError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise InvalidVotes(f"{path}: it cannot be read ({reason}).") from None


def _is_text(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _recognise_format(file: RawFile) -> str:
    if file.head[:4] == b"PAR1":
        return "parquet"
    line = file.head.lstrip(BLANK).split(b"\n", 1)[0]
    if line[:1] in (b"{", b"["):
        return "jsonl"
    has_tabs_by_name = file.name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
    return "tsv" if b"\t" in line and (has_tabs_by_name or b"," not in line) else "csv"


def read_table(
    file: RawFile, format: str | None, known: frozenset[str], dropping: Dropping
) -> Table:
    """Read a file of one of `FORMATS`, recognised by default: the known columns at least."""
    format = settle_format(file, format)
    if format == "parquet":
        return _read_parquet(file.data, file.name, known)
    return read_as(format, file if format == "jsonl" else file.trimmed(), known, dropping)


def read_as(format: str, file: RawFile, known: frozenset[str], dropping: Dropping) -> Table:
    """Read the text of a file, or of a block of it with the header before; as it stands."""
    if format == "jsonl":
        return _read_json(file, known, dropping)
    return _read_text(file, "\t" if format == "tsv" else ",", dropping)


def settle_format(file: RawFile, format: str | None) -> str:
    """Return one of `FORMATS`; refuse what the first bytes are not of."""
    if format is not None and format not in FORMATS:
        raise InvalidSetting(f"format {format!r} is not one of {', '.join(FORMATS)}.")
    found = _recognise_format(file)
    format = format or found
    if "parquet" in (format, found) and format != found:
        raise InvalidVotes(
            f"{file.name}: this is {'' if found == 'parquet' else 'not '}a Parquet file. Say ",
            Setting("format", found), ", or leave the option out.",
        )  # fmt: skip
    if format != "parquet":
        _refuse_foreign(file)
    return format


# --- text ------------------------------------------------------------------------------------


def _read_text(file: RawFile, separator: str, dropping: Dropping) -> Table:
    name = file.name
    columns = _header(file, separator)
    if len(columns) == 1 and (other := _other_separator(file, columns[0])):
        dropping.notes.append(SeparatorTaken(other))
        return _read_text(file, other, dropping)
    reason = None
    try:
        text = file.path or file.data
        frame = pl.read_csv(text, separator=separator, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError as error:
        frame, reason = pl.DataFrame(schema=columns), _first_line(error)
        _refuse_other_encodings(file)
    # A row that is too short ends in nulls; a longer one is an error.
    if reason or (frame.height and frame.to_series(-1).null_count()):
        rows = _Rows.of(file.data, separator)
        if rows.n_quotes % 2:
            raise InvalidVotes(
                f"{name}: a quotation mark is opened and never closed. Put a field with quotation "
                "marks in quotation marks, and write each of those inside twice."
            )
        ragged = rows.n_fields[1:] != len(columns)
        if ragged.any():
            first = int(rows.n_fields[1:][ragged][0])
            problem = f"{counted(first, 'field')} where the header has {len(columns)}"
            remedy = "Put a field with separators, quotation marks or newlines in quotation marks"
            dropping.note_or_raise(InvalidRows.of(name, ragged, problem, remedy))
            rest = RawFile(name, rows.without(file.data, ragged))
            return _read_text(rest.trimmed(), separator, dropping)
    if reason or frame.width != len(columns):
        raise InvalidVotes(
            f"{name}: this is not a readable CSV or TSV file ({reason or 'unclear header'}). Put a "
            "field with quotation marks in quotation marks, and write each of those inside twice."
        )
    frame.columns = columns
    return Table.of(frame, columns)


def _header(file: RawFile, separator: str) -> list[str]:
    name = file.name
    stream = file.path.open("rb") if file.path else io.BytesIO(file.data)
    try:
        with io.TextIOWrapper(stream, encoding="utf-8", newline="") as lines:
            columns = next(csv.reader(lines, delimiter=separator, strict=True))
    except UnicodeDecodeError:
        _refuse_other_encodings(file)
        raise
    except (csv.Error, StopIteration) as error:
        raise InvalidVotes(
            f"{name}: its first line is not a readable header ({error}). "
            "Give the names of the columns there."
        ) from None
    if len(set(columns)) < len(columns):
        twice = Counter(columns).most_common(1)[0][0]
        raise InvalidVotes(f"{name}: its header has {twice!r} more than once. Rename one.")
    refuse_many(columns, name)
    return columns


def refuse_many(columns: Collection[str], name: str) -> None:
    """Refuse more columns than any votes have, before anything else is done with them."""
    if len(columns) > MOST_COLUMNS:
        raise InvalidVotes(
            f"{name}: {len(columns):,} columns are more than any votes have; at most "
            f"{MOST_COLUMNS:,} are read. Leave out those that are not about votes."
        )


def _other_separator(file: RawFile, header: str) -> str | None:
    """Return what separates the fields of a header without commas; refuse what is not clear."""
    found = [character for character in ";\t|" if character in header]
    if not found:
        return None
    if len(found) > 1 or found[0] == "|":
        these = " and ".join(map(repr, found))
        raise InvalidVotes(
            f"{file.name}: its fields are separated by {these}. Export it with commas or tabs."
        )
    return found[0]


class _Rows(NamedTuple):
    """Where the rows of a text lie, the header first, and how many fields each has."""

    ends: Places
    n_fields: Places
    n_quotes: int

    @classmethod
    def of(cls, data: bytes, separator: str) -> _Rows:
        characters = np.frombuffer(data, dtype=np.uint8)
        quotes = np.flatnonzero(characters == ord('"'))
        ends = np.flatnonzero(characters == ord("\n"))
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]  # the others are inside of a field
        separators = np.flatnonzero(characters == ord(separator))
        separators = separators[np.searchsorted(quotes, separators) % 2 == 0]
        n_fields = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
        return cls(ends, n_fields, len(quotes))

    def without(self, data: bytes, dropped: Mask) -> bytes:
        kept = np.repeat(np.append(True, ~dropped), np.diff(self.ends, prepend=-1))
        return bytes(np.frombuffer(data, dtype=np.uint8)[: len(kept)][kept])


def _refuse_foreign(file: RawFile) -> None:
    """Refuse what is no text at all, or text of two bytes a character."""
    name, head = file.name, file.head[:4096]
    kind = next((kind for start, kind in _FOREIGN.items() if head.startswith(start)), None)
    if kind is None and 0 in head:
        every_other = max(head[::2].count(0), head[1::2].count(0)) > 0.4 * len(head[::2])
        is_utf_16 = every_other and min(head[::2].count(0), head[1::2].count(0)) == 0
        kind = "UTF-16 text" if is_utf_16 else "not text"
    if kind is not None and kind.startswith("UTF-16"):
        raise InvalidVotes(f"{name}: this is {kind}; expected UTF-8. {_convert('UTF-16', name)}")
    if kind is not None:
        raise InvalidVotes(f"{name}: this is {kind}; expected {_EXPECTED}.")


_HALF = re.compile(rb"\xed[\xa0-\xbf]")  # how UTF-8 would write a surrogate, if it did


def _refuse_other_encodings(file: RawFile) -> None:
    name, data = file.name, file.data
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if any(byte < 32 and byte not in b"\t\n\r" for byte in data[:4096]):
            raise InvalidVotes(f"{name}: this is not text; expected {_EXPECTED}.") from None
        line = file.lines_before + data.count(b"\n", 0, error.start) + 1
        if _HALF.match(data, error.start):
            raise InvalidVotes(
                f"{name}, line {line}: it holds half of a character (a lone surrogate), which is "
                "no text. Export it again as UTF-8."
            ) from None
        raise InvalidVotes(
            f"{name}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; the file looks "
            f"like Latin-1 (Windows-1252). {_convert('WINDOWS-1252', name)}"
        ) from None


def _convert(encoding: str, name: str) -> str:
    file = "" if name == "standard input" else f" {shlex.quote(name)}"
    return f"Convert it with: iconv -f {encoding} -t UTF-8{file}"


# --- typed formats ---------------------------------------------------------------------------


def _read_parquet(data: bytes, name: str, known: frozenset[str]) -> Table:
    with unreadable_parquet(name):
        columns = list(pl.read_parquet_schema(io.BytesIO(data)))
        refuse_many(columns, name)
        wanted = known_columns(columns, known)
        return Table.of(pl.read_parquet(io.BytesIO(data), columns=wanted), columns)


@contextmanager
def unreadable_parquet(name: str) -> Iterator[None]:
    """Say in a sentence that a file is not readable Parquet."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InvalidVotes(
            f"{name}: this is not a readable Parquet file ({_first_line(error)}). Write it again."
        ) from None


def known_columns(columns: Iterable[str], known: frozenset[str]) -> list[str]:
    """Return the columns that may be of use, also where they are spelled a little differently.

    A known name that ends in `ANY_NUMBER` stands for all that have one there.
    """
    spellings = {folded(name) for name in known}
    return [
        column
        for column in columns
        if folded(column) in spellings
        or re.sub(r"[0-9]+$", ANY_NUMBER, folded(column)) in spellings
    ]


def _read_json(file: RawFile, known: frozenset[str], dropping: Dropping) -> Table:
    """Read the columns that may be of use; the others are those of the first object."""
    _refuse_other_encodings(file)
    name, data = file.name, file.data.removeprefix(b"\xef\xbb\xbf").strip()
    is_array = data[:1] == b"["
    first = first_object(data, f"{name}, row {file.rows_before + 1}")
    refuse_many(first, name)
    if (export := recognise_export(first)) is not None:
        return _of_export(export, file, data, dropping)
    spelled = known.union(known_columns(first, known))
    spelled = spelled.union(_numbered_later(data, first, known))
    schema = {column: pl.String for column in sorted(spelled) if not column.endswith(ANY_NUMBER)}
    refuse_many(schema, name)
    frame = table_of_objects(data, name, schema, is_array=is_array, rows_before=file.rows_before)
    used = [column for column in schema if frame[column].null_count() < frame.height]

    objects = Objects(data, name, is_array, file.rows_before)

    def odd(column: str, *, is_id: bool) -> Odd | None:
        return objects.odd(frame[column], is_id=is_id)

    return Table.of(frame, list(dict.fromkeys([*first, *used])))._replace(odd=odd)


def _numbered_later(data: bytes, first: Iterable[str], known: frozenset[str]) -> list[str]:
    """Return the columns with numbers that any object has, where the first one has some."""
    numbered = frozenset(name for name in known if name.endswith(ANY_NUMBER))
    if not known_columns(first, numbered):
        return []
    found = {name.decode("utf-8", "ignore") for name in _NUMBERED.findall(data)}
    return known_columns(sorted(found), numbered)


_NUMBERED = re.compile(rb'"([^"\\]{1,40}[0-9] *)"\s*:')  # the name of a value in an object


def is_one_batch(data: bytes, name: str) -> bool:
    """Tell whether some JSON, of which this is the beginning, has to be read as a whole."""
    data = data.lstrip(BLANK)
    return data[:1] == b"[" or recognise_export(first_object(data, name)) is not None


def _of_export(export: Export, file: RawFile, data: bytes, dropping: Dropping) -> Table:
    """Read the export of another platform, whatever its objects are one after another."""
    found = export.read(objects_in(data.decode("utf-8"), file.name), file.name)
    for error in found.errors():
        dropping.note_or_raise(error)
    dropping.notes.extend(found.told())
    frame, row = found.table()
    refuse_many(frame.columns, file.name)
    return Table.of(frame, frame.columns)._replace(row=row, odd=found.odd)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
