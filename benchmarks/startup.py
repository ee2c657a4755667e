"""What starting costs: the processor time of commands on a small stored model, and of imports.

The model is that of the README, six items and twenty users, in a temporary folder. Every row is a
process of its own:

    bare            Python that does nothing
    libraries       import sklearn.base, polars: what everything else is measured by
    import          import isplitlbi; isplitlbi.ISplitLBI
    rank, ...       the command on the stored model; predict reads docs/pairs.csv
    compiling       the first fit of the study of `isplitlbi demo`, where nothing is compiled yet,
                    less the same where all is; the median of three

    python benchmarks/startup.py [--runs 7]

Seconds are user and system time together, medians of runs that take turns, with files and bytecode
cached by a run before. The exit code is 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from isplitlbi import Comparisons, ISplitLBI, save_model

DOCS = Path(__file__).resolve().parents[1] / "docs"
TARGETS = {  # at most, in seconds
    "import": 0.6,
    "rank": 0.6,
    "predict": 0.6,
    "abnormal": 0.6,
    "compiling": 7.0,
}
FIT = """
from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate
ISplitLBI(random_state=0).fit(simulate(random_state=0).votes)
"""
COMPILING_RUNS = 3
LIBRARIES = "libraries"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stored = str(Path(folder) / "model")
        save_model(ISplitLBI().fit(Comparisons.read(DOCS / "votes.csv")), stored)
        command = ("-m", "isplitlbi")
        rows = {
            "bare": ("-c", "pass"),
            LIBRARIES: ("-c", "import sklearn.base, polars"),
            "import": ("-c", "import isplitlbi; isplitlbi.ISplitLBI"),
            "rank": (*command, "rank", stored),
            "predict": (*command, "predict", stored, str(DOCS / "pairs.csv")),
            "abnormal": (*command, "abnormal", stored),
        }
        found: dict[str, list[float]] = {name: [] for name in rows}
        for run in range(asked.runs + 1):
            for name, arguments in rows.items():
                taken = processor_time(arguments)
                if run > 0:  # the first fills the caches
                    found[name].append(taken)
    seconds = {name: median(times) for name, times in found.items()}
    seconds["compiling"] = median(compiling() for _ in range(min(asked.runs, COMPILING_RUNS)))
    print(f"{'':<10}{'s':>7}{'ratio':>7}{'target':>8}")
    for name, time in seconds.items():
        target = f"{TARGETS[name]:>8.2f}" if name in TARGETS else ""
        print(f"{name:<10}{time:>7.3f}{time / seconds[LIBRARIES]:>7.2f}{target}")
    missed = [name for name, most in TARGETS.items() if seconds[name] > most]
    told = ", ".join(f"{name} {seconds[name]:.2f} s" for name in TARGETS)
    print(f"startup: {told}: {'NOT MET by ' + ', '.join(missed) if missed else 'met'}")
    return int(bool(missed))


def compiling() -> float:
    """Return what compiling for a first fit takes of the processor, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = (processor_time(("-c", FIT), NUMBA_CACHE_DIR=folder) for _ in range(2))
    return first - second


def processor_time(arguments: tuple[str, ...], **variables: str) -> float:
    """Return what a process with these arguments of Python takes of the processor, in seconds."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= variables
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, env=environment, capture_output=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
