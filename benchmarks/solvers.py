"""The implicit scheme against the explicit one: how accurate, and how much faster.

    python benchmarks/solvers.py [--budget SECONDS] [--data NAME ...] [--confirm]

The truth is the converged path: the implicit scheme with about ten times the steps. Errors are
relative norms of the difference in P and in c, the worst of five times along the path. The explicit
scheme is run at the largest of a few steps for which it is as accurate as asked of the implicit one
(P within 1 %, c within 0.5 %). A run that would exceed the budget is stopped there; its accuracy is
judged on the part it reached, and its total time follows from the steps that the curvature along
the path asks for (marked with ~).

--confirm halves the explicit step until two runs agree within 0.2 %, and compares them with the
truth.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
from scipy.stats import spearmanr

from data import load
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.path import RegularizationPath
from isplitlbi.runtime.local import Local
from isplitlbi.solvers import Dynamics, Explicit, Implicit, PathSettings, default_times, follow
from isplitlbi.solvers.state import State

LINK = Logistic()
ALLOWED_P, ALLOWED_C = 0.01, 0.005
SCALES = (8.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.5)
TRUTH = Implicit(tol=Implicit().tol / 1000.0)  # third order: a thousandth is ten times the steps


@dataclass
class Errors:
    p: float
    c: float

    def allowed(self) -> bool:
        return self.p <= ALLOWED_P and self.c <= ALLOWED_C

    def __str__(self) -> str:
        return f"{self.p:7.2%} {self.c:7.2%}"


def errors(path: RegularizationPath, truth: RegularizationPath) -> Errors:
    def worst(name: str) -> float:
        mine, true = getattr(path, name), getattr(truth, name)[: len(path.times)]
        gap = np.linalg.norm(mine - true, axis=1) / np.linalg.norm(true, axis=1)
        return float(np.max(gap, initial=0.0))

    return Errors(worst("deviation"), worst("consensus"))


def entry_correlation(path: RegularizationPath, truth: RegularizationPath) -> float:
    last = truth.times[-1]
    return float(
        spearmanr(np.minimum(path.entry_times, last), np.minimum(truth.entry_times, last))[0]
    )


def explicit_steps(
    votes: Comparisons, dynamics: Dynamics, scale: float, times: np.ndarray
) -> float:
    """Return the steps that the explicit scheme takes, from the curvature along the path."""
    scheme = Explicit(step_scale=scale)
    settings = PathSettings(LINK, dynamics, scheme, times)
    stepper = scheme.prepare(Layout.of(votes), settings, Local(votes))
    at, rate = [0.0], [0.0]

    def observe(_index: int, state: State) -> None:
        at.append(state.time)
        rate.append(dynamics.kappa * stepper._curvature(state) / scale)

    grid = np.geomspace(times[0] / 50.0, times[-1], 150)
    settings = PathSettings(LINK, dynamics, Implicit(), grid)
    follow(votes, settings, observe=observe, keep=False)
    rate[0] = rate[1]
    return float(np.trapezoid(rate, at))


def explicit_run(
    votes: Comparisons, dynamics: Dynamics, truth: RegularizationPath, budget: float
) -> tuple[float, Errors, float, bool]:
    """Return scale, errors, seconds for the whole path, and whether they were extrapolated."""
    for scale in SCALES:
        needed = explicit_steps(votes, dynamics, scale, truth.times)
        trial = timed(votes, dynamics, Explicit(step_scale=scale, max_steps=200), truth.times)
        per_step = trial[1] / max(trial[0].n_steps, 1)
        # At least as far as the first time, or there is nothing to judge.
        to_first = 1.2 * explicit_steps(votes, dynamics, scale, truth.times[:1]) + 1000
        most = int(min(needed * 1.5 + 100, max(budget / per_step, to_first)))
        scheme = Explicit(step_scale=scale, max_steps=most)
        path, seconds = timed(votes, dynamics, scheme, truth.times)
        if len(path.times) == 0:
            continue
        found = errors(path, truth)
        if found.allowed():
            whole = len(path.times) == len(truth.times)
            total = seconds if whole else seconds / path.n_steps * needed
            return scale, found, total, not whole
    raise RuntimeError("no explicit step is accurate enough")


def timed(
    votes: Comparisons, dynamics: Dynamics, scheme: Explicit | Implicit, times: np.ndarray
) -> tuple[RegularizationPath, float]:
    begun = perf_counter()
    path = follow(votes, PathSettings(LINK, dynamics, scheme, times))
    return path, perf_counter() - begun


def confirm(name: str, votes: Comparisons, dynamics: Dynamics) -> bool:
    """Halve the explicit step until two runs agree within 0.2 %; compare with the truth."""
    times = default_times(votes, LINK, dynamics)[[5, 20, 32, 45, 59]]
    truth, _ = timed(votes, dynamics, TRUTH, times)
    scale, last = 2.0, None
    while True:
        path, seconds = timed(votes, dynamics, Explicit(step_scale=scale), times)
        against_truth = errors(path, truth)
        between = errors(path, last) if last is not None else None
        print(
            f"{name}: explicit, step scale {scale:g}: {path.n_steps:,} steps, {seconds:.0f} s; "
            f"P, c against the truth {against_truth}"
            + (f"; against twice the step {between}" if between else ""),
            flush=True,
        )
        if between and max(between.p, between.c) <= 0.002:
            return max(against_truth.p, against_truth.c) <= 0.002
        scale, last = scale / 2.0, path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budget", type=float, default=30.0, help="seconds per explicit run")
    parser.add_argument("--data", nargs="*", default=["simulation", "age", "college", "synthetic"])
    parser.add_argument("--runs", type=int, default=5, help="implicit runs to take the median of")
    parser.add_argument("--confirm", action="store_true")
    asked = parser.parse_args()

    studies = {}
    for name in asked.data:
        if name == "synthetic":
            studies[name] = simulate(
                n_users=300, n_items=60, votes_per_user=(10, 120), score_sd=1.5, threshold=0.6,
                deviation_sd=1.0, random_state=0,
            ).votes  # fmt: skip
        elif (votes := load(name)) is not None:
            studies[name] = votes

    if asked.confirm:
        agreed = [
            confirm(name, votes, Dynamics(1.0, 10.0))
            for name, votes in studies.items()
            if name in ("simulation", "age")
        ]
        print(f"truth confirmed within 0.2 %: {'yes' if all(agreed) else 'NO'}")
        return 0 if all(agreed) else 1

    pairs = [(0.1, 100.0), (1.0, 10.0), (Dynamics.nu, Dynamics.kappa)]
    print(
        f"{'data':<11}{'nu':>5}{'kappa':>6} |{'steps':>6}{'s':>7}{'err P':>8}{'err c':>8}"
        f"{'entries':>9} |{'scale':>6}{'err P':>8}{'err c':>8}{'s':>9} |{'ratio':>7}"
    )
    ratios, worst_p, worst_c, worst_entries = {}, 0.0, 0.0, 1.0
    for name, votes in studies.items():
        for nu, kappa in pairs:
            dynamics = Dynamics(nu, kappa)
            times = default_times(votes, LINK, dynamics)[[5, 20, 32, 45, 59]]
            truth, _ = timed(votes, dynamics, TRUTH, times)
            runs = [timed(votes, dynamics, Implicit(), times) for _ in range(asked.runs)]
            path, seconds = runs[0][0], median(run[1] for run in runs)
            mine, entries = errors(path, truth), entry_correlation(path, truth)
            scale, theirs, total, guessed = explicit_run(votes, dynamics, truth, asked.budget)
            ratios[name, nu, kappa] = total / seconds
            worst_p, worst_c = max(worst_p, mine.p), max(worst_c, mine.c)
            worst_entries = min(worst_entries, entries)
            print(
                f"{name:<11}{nu:>5g}{kappa:>6g} |{path.n_steps:>6}{seconds:>7.3f} {mine}"
                f"{entries:>9.5f} |{scale:>6g} {theirs}{'~' if guessed else ' '}{total:>8.1f} |"
                f"{total / seconds:>7.0f}",
                flush=True,
            )
    (name, nu, kappa), least = min(ratios.items(), key=lambda item: item[1])
    good = worst_p <= ALLOWED_P and worst_c <= ALLOWED_C and worst_entries >= 0.999
    print(
        f"worst: P {worst_p:.2%}, c {worst_c:.2%}, entry correlation {worst_entries:.5f}; least "
        f"ratio {least:.0f} ({name}, nu {nu:g}, kappa {kappa:g}): "
        f"{'met' if good and least >= 100 else 'NOT MET'}"
    )
    return 0 if good and least >= 100 else 1


if __name__ == "__main__":
    sys.exit(main())
