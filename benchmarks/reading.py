"""Reading and indexing a file of votes, beside pandas' own read_csv and factorize.

A CSV file of a million votes with text for ids is made in a temporary folder. All read it in turn,
in one process, with everything already loaded and the file in the system's cache:

    isplitlbi       read_votes(file), with every check made, and the layout of its votes
    pandas          read_csv(file), and factorize of user, left and right, as pandas does it alone
    pandas, pyarrow the same where pyarrow is installed too: pandas then keeps texts in its layout

    python benchmarks/reading.py [--votes 1000000] [--users 10000] [--items 200] [--runs 9]

The last line has the ratios of the medians to both, and those of read_votes alone, which already
has every id as an index; the exit code is 1 where isplitlbi is slower than pandas by itself.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pandas as pd
import polars as pl

from isplitlbi.data.layout import Layout
from isplitlbi.data.readers import read_votes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--runs", type=int, default=9, help="rounds of which medians are taken")
    asked = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "votes.csv"
        made(asked.votes, asked.users, asked.items).write_csv(file)
        print(
            f"{asked.votes:,} votes of {asked.users:,} users on {asked.items:,} items, "
            f"{file.stat().st_size / 1e6:.0f} MB; {pl.thread_pool_size()} threads"
        )
        ways = {
            "isplitlbi": ours_on,
            "pandas": partial(pandas_on, "python"),
            "pandas, pyarrow": partial(pandas_on, "pyarrow"),
        }
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(asked.runs + 1):
            for name, way in ways.items():
                runs[name].append(timed(way, file))

    print(f"{'':<17}{'read s':>9}{'index s':>9}{'both s':>9}{'fastest s':>11}")
    medians = {}
    for name, (_, *seconds) in runs.items():  # the first warms up
        reading, indexing = (median(part) for part in zip(*seconds, strict=True))
        both = [sum(run) for run in seconds]
        medians[name] = median(both)
        print(f"{name:<17}{reading:>9.3f}{indexing:>9.3f}{medians[name]:>9.3f}{min(both):>11.3f}")
    without_edges = median(read for read, _ in runs["isplitlbi"][1:])
    alone, beside = (
        f"{medians['isplitlbi'] / medians[name]:.2f} ({without_edges / medians[name]:.2f})"
        for name in ("pandas", "pandas, pyarrow")
    )
    print(f"reading: {alone} times the time of pandas, {beside} with pyarrow (without the edges)")
    return int(medians["isplitlbi"] >= medians["pandas"])


def made(n_votes: int, n_users: int, n_items: int) -> pl.DataFrame:
    """Make votes without structure, with ids of a usual length."""
    rng = np.random.default_rng(0)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    users = pl.Series([f"user-{k:06d}" for k in range(n_users)])
    items = pl.Series([f"item {k}" for k in range(n_items)])
    return pl.DataFrame(
        {
            "user": users.gather(rng.integers(n_users, size=n_votes)),
            "left": items.gather(left),
            "right": items.gather(right),
            "winner": rng.choice(["left", "right", "tie"], size=n_votes),
        }
    )


def timed(both: Callable[[Path], tuple[float, float]], file: Path) -> tuple[float, float]:
    begun = perf_counter()
    read, done = both(file)
    return read - begun, done - read


def ours_on(file: Path) -> tuple[float, float]:
    votes = read_votes(file).votes
    read = perf_counter()
    assert len(Layout.of(votes).edges.first)
    return read, perf_counter()


def pandas_on(storage: str, file: Path) -> tuple[float, float]:
    with pd.option_context("mode.string_storage", storage):
        frame = pd.read_csv(file)
        read = perf_counter()
        assert frame["user"].dtype.storage == storage
        for name in ("user", "left", "right"):
            frame[name].factorize()
        return read, perf_counter()


if __name__ == "__main__":
    sys.exit(main())
