"""Writing files as a whole: whatever interrupts the writing, the old file is still there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["folder_written_whole", "read_arrays", "write_arrays", "written_whole"]


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Give another place to write to, which takes the file's place at the end."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        yield unfinished
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def folder_written_whole(folder: Path) -> Iterator[Path]:
    """Give another folder to write to, which takes the place of this one at the end."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    replaced = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    try:
        unfinished.mkdir()
        yield unfinished
        if folder.exists():
            folder.rename(replaced)
        unfinished.rename(folder)
    except BaseException:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


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
