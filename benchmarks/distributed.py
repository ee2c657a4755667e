"""A path on Dask workers beside the same path in one process.

Votes as in scale.py are followed along one path, to a time that is given: by two threads of one
process, and by two workers with one thread each, which are started on this machine. Compiling comes
before. Every size is also followed by one and by four workers where it is small, so that a round's
cost by itself can be seen: a sum from every worker, and the total back.

    python benchmarks/distributed.py [--votes 10000 100000 1000000] [--workers 1 2 4]

rounds        of one path, the search for its times included
bytes         that a round sends and receives, over all workers
ms a round    from one total to the next, computing included
off           the largest difference in consensus, entry times and deviations

The last line has the ratio at the largest size with two workers; the exit code is 1 where results
differ by more than 1e-8.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

# This script has the name of the library that it measures, and must not be found in its place.
HERE = Path(__file__).resolve().parent
sys.path = [folder for folder in sys.path if Path(folder).resolve() != HERE]

from isplitlbi import Comparisons, ISplitLBI  # noqa: E402
from isplitlbi.distributed import client_of  # noqa: E402

MOST_DIFFERENCE = 1e-8
SMALL = 100_000  # votes up to which all numbers of workers are tried


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--votes", type=float, nargs="+", default=[1e4, 1e5, 1e6])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    asked = parser.parse_args()
    print(f"{'votes':>11}{'where':>20}{'seconds':>10}{'rounds':>8}{'bytes':>9}{'ms a round':>12}"
          f"{'ratio':>8}{'off':>10}")  # fmt: skip
    worst, ratio = 0.0, float("nan")
    sizes = [int(size) for size in asked.votes]
    studies = {size: study(size) for size in sizes}
    warm_up = study(2_000)
    fitted(warm_up)
    alone = {}
    for size, votes in studies.items():
        alone[size] = fitted(votes)
        print(f"{size:>11,}{'2 threads':>20}{alone[size][1]:>10.1f}", flush=True)
    for n_workers in asked.workers:
        with client_of(workers=n_workers) as client:
            fitted(warm_up, client)
            for size, votes in studies.items():
                if size > SMALL and n_workers != 2:
                    continue
                model, seconds = fitted(votes, client)
                costs, (expected, by_threads) = model.costs_, alone[size]
                off = difference(model, expected)
                worst, ratio = max(worst, off), seconds / by_threads
                print(
                    f"{size:>11,}{f'{n_workers} workers':>20}{seconds:>10.1f}{costs.rounds:>8}"
                    f"{costs.bytes_sent / costs.rounds:>9.0f}"
                    f"{1e3 * costs.seconds / costs.rounds:>12.2f}{ratio:>8.2f}{off:>10.1e}",
                    flush=True,
                )
                if n_workers == 2:
                    at_two = ratio
    print(f"distributed: two workers take {at_two:.2f} times as long as two threads at "
          f"{max(sizes):,} votes; results differ by {worst:.1e}")  # fmt: skip
    return int(worst > MOST_DIFFERENCE)


def study(size: int) -> Comparisons:
    scale = runpy.run_path(str(HERE / "scale.py"))
    columns = scale["draw"](size)
    n_users = int(columns.user.max()) + 1
    return Comparisons(np.arange(n_users), np.arange(scale["N_ITEMS"]), *columns, None, None)


def fitted(votes: Comparisons, client: object = None) -> tuple[ISplitLBI, float]:
    begun = perf_counter()
    model = ISplitLBI(time=1.0, n_jobs=2).fit(votes, client=client)
    return model, perf_counter() - begun


def difference(one: ISplitLBI, other: ISplitLBI) -> float:
    left = np.isfinite(one.entry_times_)
    pairs = [
        (one.consensus_, other.consensus_),
        (one.entry_times_[left], other.entry_times_[left]),
        (one.parameters_.deviation, other.parameters_.deviation),
    ]
    return max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs)


if __name__ == "__main__":
    raise SystemExit(main())
