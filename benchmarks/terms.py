"""What terms cost: a path and a whole fit with all of them, beside the paper's terms.

The same votes, one after the other in each of several rounds, so that other programs on the machine
disturb both alike; medians of the ratios. A path has the same nu and kappa in both models; the
scales of the terms are those that a fit finds. Processor time; compiling comes before.

    python benchmarks/terms.py [--runs 5] [--data NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from statistics import median
from time import process_time

import numpy as np

from data import NAMES, load
from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.terms import PAPER, Terms
from isplitlbi.solvers import Dynamics, Implicit, PathSettings, default_times, follow

MOST_PATH, MOST_FIT = 1.6, 2.5


def path_of(votes: Comparisons, model: ISplitLBI, terms: Terms) -> float:
    """Follow a path with the usual nu and kappa; return the seconds."""
    dynamics = Dynamics()
    times = default_times(votes, model.link_, dynamics, terms=terms)
    begun = process_time()
    follow(votes, PathSettings(model.link_, dynamics, Implicit(), times, terms), keep=False)
    return process_time() - begun


def fit_of(votes: Comparisons, terms: str) -> float:
    """Fit as anybody would; return the seconds."""
    begun = process_time()
    ISplitLBI(terms=terms, with_tests=False).fit(votes)
    return process_time() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="rounds of which medians are taken")
    parser.add_argument("--data", nargs="*", default=["synthetic", *NAMES])
    asked = parser.parse_args()
    print(f"{'data':<15}{'path s':>9}{'ratio':>7}{'fit s':>9}{'ratio':>7}")
    worst_path = worst_fit = 0.0
    for name in asked.data:
        votes = simulate(random_state=0).votes if name == "synthetic" else load(name)
        if votes is None:
            continue
        model = ISplitLBI(with_tests=False).fit(votes)
        fit_of(votes, "paper")
        variances = model.nu_ * np.array(model.terms_.scales) ** 2
        scales = np.sqrt(variances / Dynamics.nu)
        terms = replace(model.terms_, scales=(1.0, *scales[1:].tolist()))
        rounds = [
            (
                path_of(votes, model, PAPER),
                path_of(votes, model, terms),
                fit_of(votes, "paper"),
                fit_of(votes, "all"),
            )
            for _ in range(asked.runs)
        ]
        paths = median(with_terms / paper for paper, with_terms, *_ in rounds)
        fits = median(with_terms / paper for *_, paper, with_terms in rounds)
        seconds = [median(column) for column in zip(*rounds, strict=True)]
        print(
            f"{name:<15}{seconds[1]:>9.3f}{paths:>7.2f}{seconds[3]:>9.3f}{fits:>7.2f}", flush=True
        )
        worst_path, worst_fit = max(worst_path, paths), max(worst_fit, fits)
    met = worst_path <= MOST_PATH and worst_fit <= MOST_FIT
    print(
        f"terms: a path at most {worst_path:.2f} times the paper's, a fit at most {worst_fit:.2f} "
        f"times: {'met' if met else 'NOT MET'}"
    )
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
