"""What results look like on a terminal."""

import io

import polars as pl
from rich.console import Console

from commands import width
from isplitlbi.evaluation.protocol import METHODS, METRICS, Evaluation
from isplitlbi.output.terminal import print_evaluation


def test_all_methods_and_long_times_fit_80_columns():
    methods = list(METHODS)
    rows = [
        {"method": method, "repeat": repeat} | dict.fromkeys(METRICS, 0.123 + repeat / 2)
        | {"seconds": 12345.678, "log_loss": None if "alpha" in method else 12.345}
        for method in methods for repeat in range(2)
    ]  # fmt: skip
    found = Evaluation({"repeats": 2, "test_share": 0.2}, pl.DataFrame(rows), {})
    out = io.StringIO()
    print_evaluation(Console(file=out, width=80), found, with_reliability=True)
    shown = out.getvalue()
    assert width(shown) <= 80
    assert "…" not in shown
    for method in methods:
        assert [line.split()[0] for line in shown.splitlines() if line].count(method) == 3
    assert shown.count("12345.678") == len(methods)
