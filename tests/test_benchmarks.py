"""The benchmarks run; what they measure is in docs/benchmarks.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

FIGURES = re.compile(
    r"recovery: mean AUC (?P<auc>[01]\.\d{4}), min AUC (?P<least>[01]\.\d{4}), "
    r"mean gain in micro-F1 (?P<gain>-?0\.\d{4})"
)


def run(script, *arguments, **environment):
    return subprocess.run(
        [sys.executable, BENCHMARKS / script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("solver", ["implicit", "explicit"])
def test_recovery_prints_a_table_and_a_last_line_with_the_figures(solver):
    done = run("recovery.py", "--seeds", "1", "--quick", "--solver", solver)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("seed 0 ") for line in lines) == 1
    figures = FIGURES.fullmatch(lines[-1])
    assert figures is not None, lines[-1]
    assert float(figures["auc"]) == float(figures["least"]) >= 0.9


def test_recovery_refuses_to_run_on_no_seed():
    done = run("recovery.py", "--seeds", "0")
    assert done.returncode == 2
    assert "--seeds and --splits must be at least 1." in done.stderr


def test_absent_data_is_skipped_with_one_line_each(tmp_path):
    done = run("data.py", ISPLITLBI_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert all("skipped" in line and "ISPLITLBI_DATA" in line for line in lines)
