"""How time and memory grow with the votes, from ten thousand to ten million.

Users grow along, up to a hundred thousand, on a thousand items; one user in ten sees everything
upside down. Each size is fitted in a process of its own: votes are indexed, times chosen and one
path followed by the implicit scheme without keeping snapshots, on all cores. Compiling comes
before. Memory is the peak of the process above what it held just before the votes were indexed,
the integer columns included. An edge is visited by every evaluation of the objective and by every
product with its curvature; the time of a visit is that of the whole path, all work in between
included, over the number of visits. Beside it stands a plain loop that reads the arrays of such a
product once, and once those of the update that belongs to it, and sums them up.
Both are processor time over all threads, which other programs on the machine disturb least.

    python benchmarks/scale.py                1e4 to 1e7 votes
    python benchmarks/scale.py --most 1e6     a quick run
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isplitlbi import Comparisons, RegularizationPath
from isplitlbi.data.layout import Layout
from isplitlbi.kernels import System
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.blocks import Blocks
from isplitlbi.runtime.local import Local, available_threads
from isplitlbi.solvers import Dynamics, Implicit, PathSettings, default_times, follow

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
N_ITEMS, VOTES_PER_USER, N_TIMES = 1000, 100, 5
SAME_AT = 100_000  # votes on which threads and the order of rows are compared
CHUNK = 1_000_000  # votes drawn at once, so that drawing takes less memory than fitting

MOST_GROWTH, MOST_BYTES, MOST_PASSES, MOST_DIFFERENCE = 1.1, 400.0, 5.0, 1e-10

LINK, DYNAMICS = Logistic(), Dynamics()


class Columns(NamedTuple):
    user: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]


def draw(n_votes: int) -> Columns:
    rng = np.random.default_rng(n_votes)
    n_users = max(n_votes // VOTES_PER_USER, 1)
    scores = rng.normal(size=N_ITEMS)
    columns = Columns(*(np.empty(n_votes, dtype) for dtype in (np.int32, np.int32, np.int32, "i1")))
    for begin in range(0, n_votes, CHUNK):
        size = min(CHUNK, n_votes - begin)
        user = rng.integers(n_users, size=size)
        left = rng.integers(N_ITEMS, size=size)
        right = (left + rng.integers(1, N_ITEMS, size=size)) % N_ITEMS
        lead = (scores[left] - scores[right]) * np.where(user % 10 == 0, -1.0, 1.0)
        lead += rng.logistic(size=size)
        outcome = np.where(np.abs(lead) <= 0.5, 0, np.sign(lead))
        for column, values in zip(columns, (user, left, right, outcome), strict=True):
            column[begin : begin + size] = values
    return columns


# --- one size, in a process of its own -----------------------------------------------------


class WatchedScheme(Implicit):
    """The implicit scheme, which gives its stepper away: it counts the visits."""

    def prepare(self, *arguments: Any) -> Any:
        stepper = super().prepare(*arguments)
        object.__setattr__(self, "stepper", stepper)
        return stepper


@njit(nogil=True, fastmath=True)
def stream(slots: Any, edges: Any, system: Any, begin: int, end: int) -> float:
    """Read what a product with the curvature and an update read, once each."""
    total = 0.0
    for edge in range(edges.start[begin], edges.start[end]):
        total += edges.first[edge] + edges.second[edge]
        total += system.curvature[0, edge] + system.curvature[1, edge] + system.curvature[2, edge]
    for slot in range(slots.start[begin], slots.start[end]):
        total += slots.coordinate[slot] + system.residual[slot] + system.coupling[slot]
        total += system.inverse[slot] + system.direction[slot]
    for slot in range(slots.start[begin], slots.start[end]):
        total += slots.coordinate[slot] + system.residual[slot] + system.coupling[slot]
        total += system.inverse[slot] + system.direction[slot]
        total += system.product[slot] + system.solution[slot]
    return total


def streaming_seconds(votes: Comparisons, system: System, n_threads: int) -> float:
    """Time a plain pass, the mean of many, on as many threads as the path."""
    layout = Layout.of(votes)
    blocks = Blocks(layout, Local(votes, n_threads))
    for array in system:
        array[:] = 1

    def sweep() -> None:
        blocks.run(lambda _, users: stream(layout.slots, layout.edges, system, *users))

    sweep()  # compiles
    begun, n_sweeps = process_time(), 0
    while n_sweeps < 10 or process_time() - begun < 1.0:
        sweep()
        n_sweeps += 1
    return (process_time() - begun) / n_sweeps


def resident() -> int:
    """Return the bytes that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def peak() -> int:
    """Return the most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(n_votes: int, n_threads: int) -> dict[str, float]:
    fit(Comparisons.from_arrays(*draw(1000)), n_threads)  # compiles
    columns = draw(n_votes)
    before = resident()
    begun = perf_counter()
    votes = Comparisons.from_arrays(*columns)
    layout = Layout.of(votes)
    n_edges = len(layout.edges.first)
    indexed = perf_counter()
    runtime = Local(votes, n_threads)
    times = default_times(votes, LINK, DYNAMICS, N_TIMES, runtime)
    looked = perf_counter()
    scheme = WatchedScheme()
    busy = process_time()
    path = follow(votes, PathSettings(LINK, DYNAMICS, scheme, times), runtime, keep=False)
    followed, busy = perf_counter(), process_time() - busy
    most = peak()
    stepper = scheme.stepper
    visits = (stepper.evaluations + stepper.conjugate_steps) * n_edges
    return {
        "votes": n_votes,
        "users": votes.n_users,
        "edges": n_edges,
        "slots": layout.n_slots,
        "index": indexed - begun,
        "times": looked - indexed,
        "path": followed - looked,
        "steps": path.n_steps,
        "visits": visits,
        "sweeps": visits / n_edges,
        "bytes": (most - before) / n_votes,
        "visit": busy / visits * 1e9,
        "pass": streaming_seconds(votes, stepper.solver.system, n_threads) / n_edges * 1e9,
    }


def fit(votes: Comparisons, n_threads: int, *, keep: bool = False) -> RegularizationPath:
    runtime = Local(votes, n_threads)
    times = default_times(votes, LINK, DYNAMICS, N_TIMES, runtime)
    return follow(votes, PathSettings(LINK, DYNAMICS, Implicit(), times), runtime, keep=keep)


# --- the same results ----------------------------------------------------------------------


def largest_difference(one: RegularizationPath, other: RegularizationPath) -> float:
    out = np.isfinite(one.entry_times)
    if not np.array_equal(out, np.isfinite(other.entry_times)):
        return np.inf
    pairs = [
        (one.consensus, other.consensus),
        (one.deviation, other.deviation),
        (one.sparse, other.sparse),
        (one.entry_times[out] / one.times[-1], other.entry_times[out] / one.times[-1]),
    ]
    return max(float(np.abs(a - b).max(initial=0.0)) for a, b in pairs)


def compare(n_votes: int) -> tuple[float, float]:
    """Return how far results differ for two threads, and for shuffled rows."""
    columns = draw(n_votes)
    order = np.random.default_rng(0).permutation(n_votes)
    votes = Comparisons.from_arrays(*columns)
    shuffled = Comparisons.from_arrays(*(column[order] for column in columns))
    one = fit(votes, 1, keep=True)
    return (
        largest_difference(one, fit(votes, 2, keep=True)),
        largest_difference(one, fit(shuffled, 2, keep=True)),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=float, default=1e7, help="largest number of votes")
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one, asked.threads)))
        return 0
    if asked.most < SIZES[1] or asked.threads < 1:
        parser.error(f"--most must be at least {SIZES[1]}, --threads at least 1.")

    print(f"{N_ITEMS:,} items, {asked.threads} threads, nu = {DYNAMICS.nu:g}, "
          f"kappa = {DYNAMICS.kappa:g}, tol = {Implicit().tol:g}; no snapshots kept")  # fmt: skip
    print(
        f"{'':>11} {'':>8} {'':>11} {'':>11} {'-------- seconds --------':>26} {'us per':>7} "
        f"{'bytes':>6} {'':>5} {'':>6} {'ns per':>6} {'ns per':>6}\n"
        f"{'votes':>11} {'users':>8} {'edges':>11} {'slots':>11} {'index':>8} {'times':>8} "
        f"{'path':>8} {'vote':>7} {'/vote':>6} {'steps':>5} {'sweeps':>6} {'visit':>6} {'pass':>6}"
    )
    rows = []
    for n_votes in SIZES:
        if n_votes <= asked.most:
            command = [sys.executable, __file__, "--one", str(n_votes)]
            command += ["--threads", str(asked.threads)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            row["seconds"] = row["index"] + row["times"] + row["path"]
            rows.append(row)
            print(
                f"{n_votes:>11,} {row['users']:>8,} {row['edges']:>11,} {row['slots']:>11,} "
                f"{row['index']:>8.2f} {row['times']:>8.2f} {row['path']:>8.2f} "
                f"{row['seconds'] / n_votes * 1e6:>7.1f} {row['bytes']:>6.0f} {row['steps']:>5} "
                f"{row['sweeps']:>6.0f} {row['visit']:>6.1f} {row['pass']:>6.1f}",
                flush=True,
            )
    threads, shuffled = compare(SAME_AT)
    print(f"{SAME_AT:,} votes: 1 and 2 threads differ by {threads:.1e}, "
          f"shuffled rows by {shuffled:.1e}")  # fmt: skip

    votes, seconds = (np.log([row[name] for row in rows]) for name in ("votes", "seconds"))
    growth = float(np.polyfit(votes, seconds, 1)[0])
    largest = rows[-1]
    passes = largest["visit"] / largest["pass"]
    checks = [
        (f"time grows as votes^{growth:.2f}", growth, MOST_GROWTH),
        (f"{largest['bytes']:.0f} bytes per vote beyond the input", largest["bytes"], MOST_BYTES),
        (f"an edge visit takes {passes:.1f} streaming passes", passes, MOST_PASSES),
        (f"results differ by {max(threads, shuffled):.1e}", max(threads, shuffled),
         MOST_DIFFERENCE),
    ]  # fmt: skip
    missed = [f"{what}, above {most:g}" for what, value, most in checks if not value <= most]
    if missed:
        print(f"Target missed: {'; '.join(missed)}.")
    print(
        f"scale, up to {largest['votes']:.0e} votes in {largest['seconds']:.1f} s: "
        f"{', '.join(what for what, *_ in checks)}"
    )
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
