"""Files to data frames of votes; `Comparisons` does the checking."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isplitlbi.vocabulary import InvalidVotes


def read_csv(path: Path) -> pl.DataFrame:
    """Read a CSV file with every column as text, so that ids come back unchanged."""
    if not path.exists():
        raise InvalidVotes(f"{path}: there is no such file.")
    if path.is_dir():
        raise InvalidVotes(f"{path}: this is a folder; expected a CSV file.")
    try:
        return pl.read_csv(path, infer_schema=False)
    except pl.exceptions.NoDataError:
        raise InvalidVotes(f"{path.name}: the file is empty.") from None
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise InvalidVotes(f"{path.name}: this is not a readable CSV file ({reason}).") from None
