"""Writing files as a whole: whatever interrupts the writing, the old file is still there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Give another place to write to, which takes the file's place at the end."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        yield unfinished
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
