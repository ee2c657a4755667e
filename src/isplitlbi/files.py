"""Writing files as a whole: whatever interrupts the writing, the old file is still there."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import numpy as np

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "folder_written_whole",
    "read_arrays",
    "read_whole",
    "remove",
    "write_arrays",
    "write_table",
    "written_whole",
]

Found = TypeVar("Found")

PATIENCE, PAUSE = 1.0, 0.01  # seconds to wait for a folder that is being replaced


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Give another place to write to, which takes the file's place at the end."""
    unfinished = _beside(file, "tmp")
    try:
        yield unfinished
        unfinished.replace(file)
    finally:
        remove(unfinished)


@contextmanager
def folder_written_whole(folder: Path, *, replaces: bool = True) -> Iterator[Path]:
    """Give another folder to write to, which takes the place of this one at the end.

    What is there by then is replaced, or is an error.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished, replaced = _beside(folder, "tmp"), _beside(folder, "old")
    try:
        unfinished.mkdir()
        yield unfinished
        if replaces and folder.exists():
            folder.rename(replaced)
        try:
            unfinished.rename(folder)
        except OSError as error:
            # Another one was there, though it may have gone again by now.
            if folder.exists() or error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise FileExistsError(errno.EEXIST, "it is there by now", str(folder)) from None
            raise
    except BaseException:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        raise
    finally:
        remove(unfinished, replaced)


def read_whole(folder: Path, read: Callable[[Path], Found]) -> Found:
    """Read a folder that others may replace meanwhile: all of it is old, or all of it is new.

    While it is replaced, the folder is missing for a moment.
    """
    until = monotonic() + PATIENCE
    while True:
        before = _identity(folder)
        try:
            found = read(folder)
        except Exception:
            is_changing = before != _identity(folder) or _is_being_replaced(folder)
            if not is_changing or monotonic() > until:
                raise
        else:
            if before == _identity(folder):
                return found
        sleep(PAUSE)


def remove(*places: Path) -> None:
    """Remove files and folders, to the end where that is interrupted."""
    for place in places:
        try:
            _remove(place)
        except BaseException:
            for each in places:
                _remove(each)
            raise


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def _beside(place: Path, ending: str) -> Path:
    """Return a hidden place that no other thread or process uses."""
    return place.with_name(f".{place.name}.{uuid4().hex[:12]}.{ending}")


def _is_being_replaced(folder: Path) -> bool:
    """Say whether what was in a folder waits beside it."""
    if not folder.parent.is_dir():
        return False
    begin = f".{folder.name}."
    return any(
        each.name.startswith(begin) and each.suffix == ".old" for each in folder.parent.iterdir()
    )


def _identity(folder: Path) -> tuple[int, int, int] | None:
    """Return what tells a folder from another one that takes its place."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def write_table(file: Path, table: pl.DataFrame) -> None:
    """Write a table as CSV, also where the name of a folder is no text, or the disk is full."""
    file.write_bytes(table.write_csv().encode())


def write_arrays(file: Path, values: Mapping[str, Any]) -> None:
    """Write arrays and numbers as they are, and texts, lists and mappings as the bytes of JSON."""
    plain = {
        name: np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
        if isinstance(value, str | list | dict)
        else value
        for name, value in values.items()
    }
    np.savez(file, allow_pickle=False, **plain)


def read_arrays(file: Path) -> dict[str, Any]:
    """Read what `write_arrays` wrote."""
    # Opened here, because NumPy leaves a damaged file open.
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
        return {
            name: json.loads(value.tobytes()) if value.dtype == np.uint8 else value
            for name, value in content.items()
        }
