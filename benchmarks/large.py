"""Studies that are large in one way: what each command takes, and how much it writes.

    python benchmarks/large.py [--only items users one ids] [--commands check fit rank ...]

- *items*: 100,000 votes on 100,000 items by 1,000 users, about one vote per user and item.
- *users*: 100,000 users with one vote each, on 50 items.
- *one*: a million votes of one user, on 100 items.
- *ids*: 2,000 votes by 40 users on 20 items, all of whose ids are 10,000 characters long.

Each command is the real one, in a process of its own, on files: `isplitlbi check votes.csv`, `fit
votes.csv -o model`, `rank model`, `abnormal model`, `report model -o report.html`. Its seconds are
of the processor, over all threads; its memory is the largest that it ever had (maximum resident
set). *says* is what it writes to the screen, *writes* is the model folder or the report.

The exit code is 1 where a command fails, takes more than 4 GB or more than 30 minutes of the
processor, or says more than 1 MB.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

MOST_GIGABYTES, MOST_SECONDS, MOST_SAID = 4.0, 1800.0, 1e6
LONG = 10_000  # characters of an id


class Case(NamedTuple):
    """How large a study is, and how its ids end."""

    n_votes: int
    n_users: int
    n_items: int
    end_of_ids: str = ""


CASES = {
    "items": Case(100_000, 1_000, 100_000),
    "users": Case(100_000, 100_000, 50),
    "one": Case(1_000_000, 1, 100),
    "ids": Case(2_000, 40, 20, "-" + "x" * LONG),
}
COMMANDS = ("check", "fit", "rank", "abnormal", "report")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--share", type=float, default=1.0, help="of all sizes, for a quick run")
    asked = parser.parse_args()
    if not 0.0 < asked.share <= 1.0:
        parser.error("--share must be above 0 and at most 1.")

    # A process counts the memory of its parent as its own: this one must stay small.
    others, missed = multiprocessing.get_context("spawn").Pool(1), []
    print(f"{'':<7}{'':<10}{'seconds':>9}{'memory MB':>11}{'says kB':>10}{'writes MB':>11}")
    with tempfile.TemporaryDirectory() as folder, others:
        for name in asked.only:
            case = Path(folder) / name
            case.mkdir()
            others.apply(write, (case / "votes.csv", sized(CASES[name], asked.share)))
            for command in asked.commands:
                found = measured(case, command)
                print(
                    f"{name:<7}{command:<10}{found.seconds:>9.1f}{found.megabytes:>11,.0f}"
                    f"{found.said / 1e3:>10,.1f}{found.written / 1e6:>11,.1f}",
                    flush=True,
                )
                missed += [f"{name}, {command}: {what}" for what in found.missed()]
    for line in missed:
        print(line)
    n_runs = len(asked.only) * len(asked.commands)
    print(f"large: {n_runs} commands, {len(missed)} beyond what they may take")
    return int(bool(missed))


def sized(case: Case, share: float) -> Case:
    """Return a smaller study of the same kind."""
    sizes = (max(int(share * size), least) for size, least in zip(case, (50, 1, 4), strict=False))
    return Case(*sizes, case.end_of_ids)


def write(file: Path, case: Case) -> None:
    """Draw votes, and write them as a file."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    n_votes, n_users, n_items, end = case
    scores = rng.normal(size=n_items)
    user = rng.permutation(np.arange(n_votes) % n_users)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    lead = scores[left] - scores[right] + rng.logistic(size=n_votes)
    winner = np.select([lead > 0.5, lead < -0.5], ["left", "right"], "tie")
    items = pl.Series([f"item-{k}{end}" for k in range(n_items)])
    users = pl.Series([f"user-{k}{end}" for k in range(n_users)])
    pl.DataFrame(
        {
            "user": users.gather(user),
            "left": items.gather(left),
            "right": items.gather(right),
            "winner": winner,
        }
    ).write_csv(file)


class Measured(NamedTuple):
    """What a command took, and what came of it."""

    code: int
    error: str
    seconds: float
    megabytes: float
    said: int
    written: int

    def missed(self) -> list[str]:
        """Say in which ways that is more than it may be."""
        found = []
        if self.code not in (0, 3):  # 3 is that of votes with serious warnings
            found.append(f"exit code {self.code}: {self.error[-500:]}")
        if self.megabytes > 1e3 * MOST_GIGABYTES:
            found.append(f"more than {MOST_GIGABYTES:g} GB")
        if self.seconds > MOST_SECONDS:
            found.append(f"more than {MOST_SECONDS / 60.0:g} minutes")
        if self.said > MOST_SAID:
            found.append(f"says more than {MOST_SAID / 1e6:g} MB")
        return found


def measured(folder: Path, command: str) -> Measured:
    """Run a command in a process of its own."""
    votes, model, report = folder / "votes.csv", folder / "model", folder / "report.html"
    arguments = {
        "check": [votes],
        "fit": [votes, "-o", model],
        "rank": [model],
        "abnormal": [model],
        "report": [model, "-o", report],
    }[command]
    before = size_of(model)
    screen = [folder / f"{command}.{end}" for end in ("out", "err")]
    with screen[0].open("wb") as out, screen[1].open("wb") as err:
        line = [sys.executable, "-m", "isplitlbi", command, *arguments]
        process = subprocess.Popen(list(map(str, line)), stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    in_bytes = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    written = size_of(report) if command == "report" else size_of(model) - before
    return Measured(
        process.returncode, screen[1].read_text().strip(), used.ru_utime + used.ru_stime,
        in_bytes / 1e6, sum(map(size_of, screen)), written,
    )  # fmt: skip


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files if each.is_file())


if __name__ == "__main__":
    sys.exit(main())
