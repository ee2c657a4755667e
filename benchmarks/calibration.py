"""Are the probabilities right, and would a temperature help?

    python benchmarks/calibration.py [--splits 3] [--terms paper] [--data NAME ...]

Every data set is split 80/20 within users (rankings kept whole where there are any). On held-out
votes: the log-loss, and the calibration error (ECE: 15 bins of the probability of the predicted
class), as predicted and at one temperature, by which log-probabilities are multiplied; below 1 the
model was too sure. The best temperature is found on half of the held-out votes and judged on the
other half, both ways round.
"""

from __future__ import annotations

import argparse
import sys
from statistics import mean
from typing import Any

import numpy as np

from data import NAMES, load, random_splits
from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.evaluation.calibration import (
    at_temperature,
    best_temperature,
    calibration_error,
)

COLUMNS = ("temperature", "loss", "ece", "loss_after", "ece_after")


def measure(model: ISplitLBI, held_out: Comparisons, seed: int) -> dict[str, float]:
    """Return the figures of one model on votes that it has not seen."""
    logs = np.asarray(model.predict_log_proba(held_out))
    happened = np.searchsorted(model.classes_, held_out.outcome)
    is_first = np.random.default_rng(seed).permutation(len(happened)) % 2 == 0
    after, temperatures = np.empty_like(logs), []
    for here in (is_first, ~is_first):
        temperatures.append(best_temperature(happened[~here], logs[~here]))
        after[here] = at_temperature(logs[here], temperatures[-1])
    rows = np.arange(len(happened))
    return {
        "temperature": mean(temperatures),
        "loss": float(-logs[rows, happened].mean()),
        "ece": calibration_error(happened, np.exp(logs)),
        "loss_after": float(-after[rows, happened].mean()),
        "ece_after": calibration_error(happened, np.exp(after)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--terms", help="terms of the model; its default by default")
    parser.add_argument("--data", nargs="*", default=list(NAMES))
    asked = parser.parse_args()
    if asked.splits < 1:
        parser.error("--splits must be at least 1.")
    settings: dict[str, Any] = {} if asked.terms is None else {"terms": asked.terms}
    print(f"{'data':<14} | temperature | as predicted      | at the temperature")
    print(f"{'':<14} |             | log-loss      ECE | log-loss      ECE")
    temperatures = []
    for name in asked.data:
        votes = load(name)
        if votes is None:
            continue
        found = [
            measure(ISplitLBI(**settings, with_tests=False).fit(training), held_out, seed)
            for seed, (training, held_out) in enumerate(random_splits(votes, asked.splits))
        ]
        temperature, *others = (mean(each[column] for each in found) for column in COLUMNS)
        loss, ece, loss_after, ece_after = others
        print(
            f"{name:<14} | {temperature:11.3f} | {loss:8.4f} {ece:8.4f} | "
            f"{loss_after:8.4f} {ece_after:8.4f}",
            flush=True,
        )
        temperatures.append(temperature)
    if temperatures:
        print(
            f"calibration: temperatures from {min(temperatures):.3f} to {max(temperatures):.3f}, "
            f"mean {mean(temperatures):.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
