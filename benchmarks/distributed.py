"""A path on Dask workers beside the same path in one process, from parts in a folder.

Votes as in scale.py lie in Parquet parts. One path is followed to a given time: by two threads of
one process, which reads the folder, and by workers with one thread each, started on this machine,
which read the parts themselves. Each run is a process of its own; compiling and starting workers
comes before the clock starts, reading after. Small sizes are also run on one and on four workers,
so that the cost of a round by itself can be seen: a sum from every worker, and the total back.

    python benchmarks/distributed.py [--votes 1e4 1e5 1e6 1e7] [--workers 1 2 4] [--parts 20]
                                     [--repeats 1]

seconds       to read the parts and to follow the path: the median of the repeats
rounds        of one path
bytes         that a round sends and receives for each worker, the largest vectors included
ms a round    from one total to the next, computing included
MB            the peak memory of the process, or of the client
ratio         of the seconds to those of two threads
off           the largest difference in consensus, entry times and predictions

    python benchmarks/distributed.py --equal [--workers 1 2 4]

Whole fits, cross-validation and tests of users included, of a simulated study, of llmfao where it
is (see data.py) and of a synthetic set, from parts of any size and order: off as above, and for the
p-values of the users.

Three costs are fitted to the runs on workers: of a vote, of a round, and of a worker in a round.

The last lines are what is asked of it. The exit code is 1 where one is missed: results that differ
by more than 1e-8; at ten million votes two workers that take more than 1.3 times as long as two
threads, or a client of more than 1 GB; rounds that grow with votes and users.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import runpy
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import lsq_linear

# This script has the name of the library that it measures, and must not be found in its place.
HERE = Path(__file__).resolve().parent
sys.path = [folder for folder in sys.path if Path(folder).resolve() != HERE]

from isplitlbi import Comparisons, ISplitLBI  # noqa: E402
from isplitlbi.evaluation.simulate import simulate  # noqa: E402
from isplitlbi.runtime.dask import client_of  # noqa: E402

MOST_DIFFERENCE, MOST_RATIO, MOST_MEMORY, MOST_GROWTH = 1e-8, 1.3, 1000.0, 1.1
SMALL = 100_000  # votes up to which all numbers of workers are tried
LARGE = 10_000_000  # votes at which ratio and memory are asked for
TIMES = [0.25, 0.5, 1.0]
COSTS = ("a vote", "a round", "a worker in a round")
BILLION = 1_000_000_000
N_ASKED = 1000  # predictions that are compared

missed: list[str] = []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--votes", type=float, nargs="+", default=[1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--parts", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)  # a folder, and how many workers
    asked = parser.parse_args()
    if asked.run:
        print(json.dumps(run(Path(asked.run[0]), int(asked.run[1]))))
        return 0
    if asked.equal:
        compare_whole_fits(asked.workers)
    else:
        compare_paths(asked)
    print("\n".join(lines))
    return int(bool(missed))


def compare_paths(asked: argparse.Namespace) -> None:
    print(f"{'votes':>11}{'where':>11}{'seconds':>9}{'rounds':>8}{'bytes':>8}{'ms a round':>12}"
          f"{'MB':>7}{'ratio':>7}{'off':>9}")  # fmt: skip
    bytes_a_round, worst, measured = [], 0.0, []
    for size in map(int, asked.votes):
        with TemporaryDirectory() as folder:
            write_parts(size, asked.parts, Path(folder))
            runs = [0, *(n for n in asked.workers if n == 2 or size <= SMALL)]
            # Side by side in time: what else goes on here disturbs all of them alike.
            found = {n: [] for n in runs}
            for _ in range(asked.repeats):
                for n_workers in runs:
                    found[n_workers].append(in_a_process(Path(folder), n_workers))
        alone = median(each["seconds"] for each in found[0])
        for n_workers, repeats in found.items():
            one, seconds = repeats[0], median(each["seconds"] for each in repeats)
            off = max(difference(each, found[0][0]) for each in repeats)
            memory = max(each["megabytes"] for each in repeats)
            rounds = ""
            if n_workers:
                bytes_a_round.append(one["bytes"] / one["rounds"] / n_workers)
                rounds = (f"{one['rounds']:>8}{bytes_a_round[-1]:>8.0f}"
                          f"{1e3 * one['seconds_of_rounds'] / one['rounds']:>12.2f}")  # fmt: skip
            where = f"{n_workers} workers" if n_workers else "2 threads"
            print(f"{size:>11,}{where:>11}{seconds:>9.1f}{rounds:28}{memory:>7.0f}"
                  f"{seconds / alone:>7.2f}{off:>9.1e}", flush=True)  # fmt: skip
            worst = max(worst, off)
            if n_workers:
                measured.append(Measured(size, n_workers, one["rounds"], seconds))
            if size >= LARGE and n_workers == 2:
                ratio = seconds / alone
                hold(ratio <= MOST_RATIO, f"two workers take {ratio:.2f} times as long as two "
                     f"threads at {size:,} votes, at most {MOST_RATIO} asked")  # fmt: skip
                hold(memory <= MOST_MEMORY, f"the client takes {memory:.0f} MB at {size:,} votes, "
                     f"at most {MOST_MEMORY:.0f} asked")  # fmt: skip
    hold(
        worst <= MOST_DIFFERENCE, f"results differ by {worst:.1e}, at most {MOST_DIFFERENCE} asked"
    )
    growth = max(bytes_a_round) / min(bytes_a_round)
    hold(growth <= MOST_GROWTH, f"bytes of a round and worker are {min(bytes_a_round):.0f} to "
         f"{max(bytes_a_round):.0f}, whatever the votes and users")  # fmt: skip
    if len(measured) > len(COSTS):
        tell_costs(measured)


class Measured(NamedTuple):
    votes: int
    workers: int
    rounds: int
    seconds: float


def tell_costs(measured: list[Measured]) -> None:
    """Fit what a path costs, to relative errors, and say what that means for a billion votes."""
    cores = len(os.sched_getaffinity(0))
    seconds = np.array([each.seconds for each in measured])
    terms = np.array(
        [(each.votes / min(each.workers, cores), each.rounds, each.rounds * each.workers)
         for each in measured]
    )  # fmt: skip
    cost = lsq_linear(terms / seconds[:, None], np.ones(len(seconds)), (0.0, np.inf)).x
    error = np.abs(terms @ cost / seconds - 1.0).max()
    vote, a_round, worker = cost
    print(f"\nseconds = {1e6 * vote:.1f} us votes / workers + rounds ({1e3 * a_round:.2f} ms + "
          f"{1e3 * worker:.2f} ms workers), off by at most {100 * error:.0f} %")  # fmt: skip
    rounds = measured[-1].rounds
    for workers in (10, 100, 1000):
        minutes = np.dot((BILLION / workers, rounds, rounds * workers), cost) / 60.0
        print(f"{BILLION:,} votes on {workers:,} workers: {minutes:.0f} minutes for one path")
    best = np.sqrt(vote * BILLION / (worker * rounds)) if worker else np.inf
    print(f"more than {best:.0f} workers only cost\n")


def compare_whole_fits(workers: list[int]) -> None:
    print(f"{'study':<12}{'workers':>8}{'parts':>7}{'rounds':>8}{'off':>10}"
          f"{'off in p':>10}")  # fmt: skip
    worst = 0.0
    frames = studies()
    expected = {name: whole_fit(Comparisons.from_frame(frame)) for name, frame in frames.items()}
    for n_workers in workers:
        with client_of(workers=n_workers) as client:
            for seed, (name, frame) in enumerate(frames.items()):
                rng = np.random.default_rng([n_workers, seed])
                n_parts = int(rng.integers(2, 9))
                with TemporaryDirectory() as folder:
                    part = rng.choice(n_parts, len(frame), p=rng.dirichlet(np.ones(n_parts)))
                    for number in np.unique(part):
                        rows = frame.filter(part == number)
                        rows.write_csv(Path(folder) / f"part-{number}.csv")
                    found = whole_fit(Path(folder), client)
                off = difference(found, expected[name])
                of_p = abs(np.subtract(found["p_values"], expected[name]["p_values"])).max()
                print(f"{name:<12}{n_workers:>8}{len(np.unique(part)):>7}"
                      f"{found['rounds']:>8}{off:>10.1e}{of_p:>10.1e}", flush=True)  # fmt: skip
                worst = max(worst, off, of_p)
    hold(worst <= MOST_DIFFERENCE, f"whole fits differ by {worst:.1e}, at most {MOST_DIFFERENCE} "
         "asked")  # fmt: skip


def studies() -> dict[str, pl.DataFrame]:
    """Return frames of votes: simulated, real where it is, synthetic; ids as text."""
    words = {1: "left", 0: "tie", -1: "right"}
    real = runpy.run_path(str(HERE / "data.py"))["load"]("llmfao")
    scale = runpy.run_path(str(HERE / "scale.py"))["draw"](20_000)
    found = {
        "simulation": simulate(random_state=0).votes,
        "llmfao": real,
        "synthetic": Comparisons.from_arrays(*(np.char.mod("%d", c) for c in scale[:3]), scale[3]),
    }
    return {
        name: pl.DataFrame(
            {
                "user": votes.users[votes.user],
                "left": votes.items[votes.left],
                "right": votes.items[votes.right],
                "winner": [words[outcome] for outcome in votes.outcome.tolist()],
            }
        )
        for name, votes in found.items()
        if votes is not None
    }


def whole_fit(votes: Any, client: Any = None) -> dict[str, Any]:
    model = ISplitLBI().fit(votes, client=client)
    found = results(model) | {"p_values": model.abnormality_.p_value}
    return found | ({} if client is None else {"rounds": model.costs_.rounds})


lines: list[str] = []


def hold(is_well: bool, line: str) -> None:
    lines.append(f"distributed: {line}{'' if is_well else '   MISSED'}")
    if not is_well:
        missed.append(line)


def write_parts(size: int, n_parts: int, folder: Path) -> None:
    scale = runpy.run_path(str(HERE / "scale.py"))
    columns = scale["draw"](size)
    words = np.array(["right", "tie", "left"])
    for number, rows in enumerate(np.array_split(np.arange(size), n_parts)):
        user, left, right, outcome = (column[rows] for column in columns)
        frame = pl.DataFrame(
            {"user": user, "left": left, "right": right, "winner": words[outcome + 1]}
        )
        frame.write_parquet(folder / f"part-{number:02}.parquet")


# --- one run, in a process of its own ------------------------------------------------------


def in_a_process(folder: Path, n_workers: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--run", str(folder), str(n_workers)],
        stdout=subprocess.PIPE, check=True, text=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(folder: Path, n_workers: int) -> dict[str, Any]:
    with TemporaryDirectory() as small:
        write_parts(2_000, 2, Path(small))
        if n_workers == 0:
            fitted(Path(small))
            return fitted(folder)
        with client_of(workers=n_workers) as client:
            fitted(Path(small), client)
            return fitted(folder, client)


def fitted(folder: Path, client: Any = None) -> dict[str, Any]:
    begun = perf_counter()
    model = ISplitLBI(times=TIMES, time=TIMES[-1], n_jobs=2, with_tests=False)
    model.fit(folder, client=client)
    seconds = perf_counter() - begun
    found: dict[str, Any] = {
        "seconds": seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }
    if client is not None:
        found |= {"rounds": model.costs_.rounds, "bytes": model.costs_.bytes_sent,
                  "seconds_of_rounds": model.costs_.seconds}  # fmt: skip
    return found | results(model)


def results(model: ISplitLBI) -> dict[str, Any]:
    users, items = model.users_, model.items_
    some = np.random.default_rng(0).integers(len(users), size=N_ASKED)
    asked = pl.DataFrame({"user": users[some], "left": items[some % len(items)],
                          "right": items[(some + 1) % len(items)]})  # fmt: skip
    left = np.where(np.isfinite(model.entry_times_), model.entry_times_, -1.0)
    return {
        "consensus": model.consensus_.tolist(),
        "entry_times": left.tolist(),
        "predictions": model.predict_proba(asked).ravel().tolist(),
    }


def difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    return max(
        float(np.max(np.abs(np.subtract(one[name], other[name]))))
        for name in ("consensus", "entry_times", "predictions")
    )


if __name__ == "__main__":
    raise SystemExit(main())
