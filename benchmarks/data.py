"""The real votes that benchmarks measure on, where they are.

They lie in ``../shared/data`` beside the project, or in the folder that ISPLITLBI_DATA names, and
are never shipped with it. Run as a script, this says which are there.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from isplitlbi import Comparisons
from isplitlbi.data.splits import split_within_user

NAMES = ("simulation", "age", "college", "llmfao", "wmt16_cze-eng")

# Votes that come from one ranking stay together in every split.
GROUPS = {"wmt16_cze-eng": "ranking"}

# The sides of age and college were drawn with seed 0: a split with that seed would know them.
FIRST_SEED = 100


def folder() -> Path:
    """Return the folder of all files."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("ISPLITLBI_DATA", beside))


def find(name: str) -> Path | None:
    """Return the file of that name, or say in a line that it is not there."""
    file = folder() / f"{name}.csv"
    if file.is_file():
        return file
    print(f"{name}.csv: skipped, it is not here; set ISPLITLBI_DATA to its folder.")
    return None


def load(name: str) -> Comparisons | None:
    """Return the votes of that name, or None and a line where they are not."""
    file = find(name)
    return None if file is None else Comparisons.read(file, group=GROUPS.get(name))


def load_fixed_split(name: str) -> tuple[Comparisons, Comparisons] | None:
    """Return the training and the test part of a fixed split, or None and a line."""
    file = find(f"splits/{name}")
    if file is None:
        return None
    frame = pl.read_csv(file, infer_schema=False)
    votes, is_test = Comparisons.from_frame(frame), frame["is_test"].to_numpy() == "1"
    return votes.subset(~is_test), votes.subset(is_test)


def random_splits(votes: Comparisons, n_splits: int) -> Iterator[tuple[Comparisons, Comparisons]]:
    """Split 80/20 within users, rankings kept whole; the splits of experiments/terms.py."""
    for seed in range(FIRST_SEED, FIRST_SEED + n_splits):
        yield split_within_user(votes, 0.2, rng=seed)


if __name__ == "__main__":
    for name in NAMES:
        votes = load(name)
        if votes is not None:
            print(f"{name:<14} {repr(votes).removeprefix('Comparisons: ')}")
