"""Predicting many pairs from a file: rows per second, and how much memory that takes.

A model of 1,000 users and 100 items is fitted, and files of more and more pairs are predicted by
the command line, each in a process of its own: `isplitlbi predict model pairs.csv -o out.csv`.

    python benchmarks/bulk.py [--pairs 100000 1000000 5000000] [--ways csv csv.gz jsonl parquet]

Memory is the largest that the process ever had (its maximum resident set). The last line has the
ratio of the memory of the largest file to that of the second largest, over all ways the largest
one; the exit code is 1 where it is above 1.2.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

# The way in, and the way out.
WAYS = {"csv": "csv", "csv.gz": "csv", "jsonl": "jsonl", "parquet": "parquet"}
LEVEL = 1.2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--items", type=int, default=100)
    asked = parser.parse_args()
    if min(asked.pairs) < 1:
        parser.error("--pairs must be at least 1.")

    # A process counts the memory of its parent as its own: this one must stay small.
    others = multiprocessing.get_context("spawn").Pool(1)
    print(f"{'':<10}{'pairs':>11}{'file MB':>9}{'seconds':>9}{'rows/s':>12}{'memory MB':>11}")
    ratios = []
    with tempfile.TemporaryDirectory() as folder, others:
        model, *ids = others.apply(fitted, (Path(folder), asked.users, asked.items))
        for way in asked.ways:
            memory = []
            for n_pairs in sorted(asked.pairs):
                file = others.apply(made, (Path(folder), way, n_pairs, *ids))
                output = Path(folder) / f"predictions.{WAYS[way]}"
                seconds, megabytes = measured(model, file, output)
                assert others.apply(height, (output,)) == n_pairs
                output.unlink()
                memory.append(megabytes)
                size = file.stat().st_size / 1e6
                print(
                    f"{way:<10}{n_pairs:>11,}{size:>9.1f}{seconds:>9.1f}{n_pairs / seconds:>12,.0f}"
                    f"{megabytes:>11.0f}",
                    flush=True,
                )
                file.unlink()
            ratios.append(memory[-1] / memory[max(len(memory) - 2, 0)])
    print(f"bulk: at most {max(ratios):.2f} times the memory for the largest file")
    return int(max(ratios) > LEVEL)


def fitted(folder: Path, n_users: int, n_items: int) -> tuple[Path, list[str], list[str]]:
    from isplitlbi import ISplitLBI
    from isplitlbi.evaluation.simulate import simulate
    from isplitlbi.storage import save_model

    votes = simulate(
        n_users=n_users, n_items=n_items, votes_per_user=(20, 40), random_state=0
    ).votes
    model = ISplitLBI(nu=0.3, kappa=30.0, time=0.5, times=[1.0], with_tests=False)
    save_model(model.fit(votes), folder / "model")
    return folder / "model", votes.users.tolist(), votes.items.tolist()


def made(folder: Path, way: str, n_pairs: int, users: list[str], items: list[str]) -> Path:
    """Write pairs as a file, of users of whom one in ten is not known."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(n_pairs)
    file = folder / f"pairs.{way}"
    users = [*users, *(f"nobody-{k}" for k in range(len(users) // 9))]
    left = rng.integers(len(items), size=n_pairs)
    right = (left + rng.integers(1, len(items), size=n_pairs)) % len(items)
    table = pl.DataFrame(
        {
            "user": pl.Series(users).gather(rng.integers(len(users), size=n_pairs)),
            "left": pl.Series(items).gather(left),
            "right": pl.Series(items).gather(right),
        }
    )
    if way == "parquet":
        table.write_parquet(file)
    elif way == "jsonl":
        table.write_ndjson(file)
    else:
        plain = folder / "plain.csv"
        table.write_csv(plain)
        if way == "csv":
            return plain.rename(file)
        with plain.open("rb") as text, gzip.open(file, "wb", compresslevel=1) as packed:
            shutil.copyfileobj(text, packed)
        plain.unlink()
    return file


def measured(model: Path, file: Path, output: Path) -> tuple[float, float]:
    """Predict a file in a process of its own; return the seconds and the megabytes it took."""
    command = [sys.executable, "-m", "isplitlbi", "predict", model, file, "-o", output, "--quiet"]
    begun = perf_counter()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    in_bytes = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return perf_counter() - begun, in_bytes / 1e6


def height(file: Path) -> int:
    """Return the number of rows of a file."""
    import polars as pl

    scan = {".csv": pl.scan_csv, ".jsonl": pl.scan_ndjson, ".parquet": pl.scan_parquet}
    return int(scan[file.suffix](file).select(pl.len()).collect().item())


if __name__ == "__main__":
    sys.exit(main())
