"""Does the order of entry find the abnormal users, and do individual rankings predict better?

Per seed: draw the paper's simulated study, hold out a fifth of every user's votes, fit the rest.
Reported are the AUC of the entry order against the truth (the earlier out, the more abnormal; who
never leaves comes last) and the scores on held-out votes of the individual fit beside those of the
consensus alone. Then the same scores on real votes, where they are (see data.py).

    python benchmarks/recovery.py                               20 seeds, default settings
    python benchmarks/recovery.py --seeds 1 --solver explicit   one seed by the paper's own scheme

The explicit scheme is slow: it follows a single path, with kappa = 10, and stops where
cross-validation with the implicit scheme says. Both schemes approximate the same path.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import data
from isplitlbi import Comparisons, ISplitLBI, RegularizationPath
from isplitlbi.data.splits import split_within_user
from isplitlbi.evaluation.simulate import Study, paper_study, simulate
from isplitlbi.model.links import Logistic
from isplitlbi.model.parameters import Parameters
from isplitlbi.runtime.progress import Progress, Reporter
from isplitlbi.selection import score_votes
from isplitlbi.solvers import Dynamics, Explicit, PathSettings, fit_consensus, follow

LEAST_AUC, LEAST_GAIN, LEAST_ON_FILE = 0.99, 0.03, 0.86  # AUC and gain are means over seeds

LINK = Logistic()

HEADER = (
    f"{'':<22}----- micro-F1 -----   - macro-F1 -   - log-loss -   left the consensus\n"
    f"{'':<17}AUC  alone    own   gain   alone    own   alone    own    out  true  both     s"
)


class Fit(NamedTuple):
    """A fitted path, the time to stop on it, how long it took, and what else is to be said."""

    path: RegularizationPath
    time: float
    seconds: float
    note: str = ""


class Row(NamedTuple):
    """One line of the table; the truth is not known for votes from a file."""

    alone: dict[str, float]
    own: dict[str, float]
    out: int
    seconds: float
    auc: float | None = None
    true: int | None = None
    both: int | None = None

    @property
    def gain(self) -> float:
        return self.own["micro_f1"] - self.alone["micro_f1"]

    def show(self, name: str) -> str:
        def known(value: float | None, digits: int = 0) -> str:
            return "    -" if value is None else f"{value:5.{digits}f}"

        scores = "  ".join(
            f"{self.alone[score]:.3f}  {self.own[score]:.3f} " for score in ("macro_f1", "log_loss")
        )
        return (
            f"{name:<13}  {known(self.auc, 3)}  "
            f"{self.alone['micro_f1']:.3f}  {self.own['micro_f1']:.3f} {self.gain:+.3f}   {scores}"
            f"{self.out:>5} {known(self.true)} {known(self.both)} {self.seconds:>5.1f}"
        )


def measure(
    training: Comparisons, held_out: Comparisons, fit: Fit, rule: str, truth: Any = None
) -> Row:
    """Score a fit and the consensus alone on the same held-out votes."""
    alone = Parameters.of_consensus(training, fit_consensus(training, LINK))
    scores = [score_votes(held_out, each, LINK, rule) for each in (alone, fit.path.at(fit.time))]
    out = fit.path.support_at(fit.time)
    if truth is None:
        return Row(*scores, len(out), fit.seconds)
    latest = 2.0 * fit.path.times[-1]
    auc = roc_auc_score(truth.abnormal, -np.minimum(fit.path.entry_times, latest))
    both = int(truth.abnormal[out].sum())
    return Row(*scores, len(out), fit.seconds, auc, int(truth.abnormal.sum()), both)


def fit_implicit(votes: Comparisons, settings: dict[str, Any]) -> Fit:
    """Fit as anybody would: five folds choose the time."""
    begun = perf_counter()
    model = ISplitLBI(terms="paper", **settings, with_tests=False).fit(votes)
    return Fit(model.path_, model.time_, perf_counter() - begun)


def fit_explicit(votes: Comparisons, settings: dict[str, Any]) -> Fit:
    """Follow one path by Eq. 9; the folds that choose the time go by the implicit scheme."""
    chosen = fit_implicit(votes, settings)
    times = chosen.path.times
    dynamics = Dynamics(settings["nu"], settings["kappa"])
    begun = told = perf_counter()

    def tell(progress: Progress) -> None:
        nonlocal told
        if perf_counter() - told > 5.0:
            told = perf_counter()
            where = f"explicit path at t = {progress.time:.3g} of {times[-1]:.3g}"
            out = f"{progress.users_out} users out, {told - begun:.0f} s"
            print(f"  {where}, {out}", file=sys.stderr, flush=True)

    path_settings = PathSettings(LINK, dynamics, Explicit(), times)
    path = follow(votes, path_settings, reporter=Reporter(tell))
    seconds = perf_counter() - begun
    both = np.isfinite(path.entry_times) & np.isfinite(chosen.path.entry_times)
    order = spearmanr(path.entry_times[both], chosen.path.entry_times[both]).statistic
    note = (
        f"{path.n_steps:,} explicit steps for {chosen.path.n_steps} implicit ones; "
        f"Spearman correlation of their entry times {order:.4f}"
    )
    return Fit(path, chosen.time, seconds, note)


def tiny_study(seed: int) -> Study:
    """Draw a study that is fitted in a moment, to see that this script works."""
    return simulate(
        n_users=12, n_items=6, votes_per_user=(60, 80), abnormal_share=0.3, random_state=seed
    )


def mean_row(rows: list[Row]) -> Row:
    """Average rows; counts are rounded."""

    def mean(name: str) -> float:
        return float(np.mean([getattr(row, name) for row in rows]))

    scores = [
        {
            score: float(np.mean([getattr(row, which)[score] for row in rows]))
            for score in rows[0].own
        }
        for which in ("alone", "own")
    ]
    known = {} if rows[0].auc is None else {"auc": mean("auc")}
    counts = {
        name: None if getattr(rows[0], name) is None else round(mean(name))
        for name in ("out", "true", "both")
    }
    return Row(*scores, seconds=mean("seconds"), **counts, **known)


def votes_from_files(settings: dict[str, Any], n_splits: int) -> float | None:
    """Print rows for real votes, where they are; return the micro-F1 on simulation.csv."""
    rule = settings["rule"]
    votes = data.load("simulation")
    rows = []
    if votes is not None:
        for split in range(n_splits):
            training, held_out = split_within_user(votes, 0.2, rng=split)
            rows.append(measure(training, held_out, fit_implicit(training, settings), rule))
            print(rows[-1].show(f"file, split {split}"), flush=True)
        print(mean_row(rows).show("file, mean"))
    for name in ("simulation", "age", "college"):
        parts = data.load_fixed_split(name)
        if parts is not None:
            row = measure(*parts, fit_implicit(parts[0], settings), rule)
            print(row.show(f"{name}*"), flush=True)
    return float(np.mean([row.own["micro_f1"] for row in rows])) if rows else None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="how many studies (default 20)")
    parser.add_argument("--solver", choices=("implicit", "explicit"), default="implicit")
    parser.add_argument("--nu", type=float, help="default: the estimator's")
    parser.add_argument("--kappa", type=float, help="default: the estimator's; explicit 10")
    parser.add_argument(
        "--rule", choices=("map", "threshold"), default="map", help="most probable, or the paper's"
    )
    parser.add_argument("--splits", type=int, default=5, help="splits of simulation.csv")
    parser.add_argument(
        "--quick", action="store_true", help="a tiny study, no files, no targets: a trial run"
    )
    asked = parser.parse_args()
    if asked.seeds < 1 or asked.splits < 1:
        parser.error("--seeds and --splits must be at least 1.")
    usual = Dynamics(1.0, 10.0) if asked.solver == "explicit" else Dynamics()
    asked.nu = usual.nu if asked.nu is None else asked.nu
    asked.kappa = usual.kappa if asked.kappa is None else asked.kappa
    return asked


def main() -> int:
    asked = parse()
    explicit = asked.solver == "explicit"
    fit = fit_explicit if explicit else fit_implicit
    draw = tiny_study if asked.quick else paper_study
    settings = {"nu": asked.nu, "kappa": asked.kappa, "rule": asked.rule}
    print(f"{asked.solver} scheme, nu {asked.nu}, kappa {asked.kappa}, rule {asked.rule}; ", end="")
    print(f"seeds: {asked.seeds}; a fifth of the votes held out")
    fit_implicit(tiny_study(0).votes, {"n_folds": 2})  # compiles, so that no row is timed for it
    print(HEADER, flush=True)
    rows, notes = [], []
    for seed in range(asked.seeds):
        votes, truth = draw(seed)
        training, held_out = split_within_user(votes, 0.2, rng=seed)
        fitted = fit(training, settings)
        rows.append(measure(training, held_out, fitted, asked.rule, truth))
        notes += [f"seed {seed}: {fitted.note}"] if fitted.note else []
        print(rows[-1].show(f"seed {seed}"), flush=True)
    if len(rows) > 1:
        print(mean_row(rows).show("mean"))

    on_file = None
    if explicit:
        notes.append("votes from files: skipped, they are measured with the implicit scheme")
    elif not asked.quick:
        on_file = votes_from_files(settings, asked.splits)
    for note in notes:
        print(note)
    print("alone: the consensus only; own: iSplit LBI; * the fixed split beside the file")

    auc, gain = [row.auc for row in rows], float(np.mean([row.gain for row in rows]))
    checks = [
        (f"mean AUC {np.mean(auc):.4f}", np.mean(auc), LEAST_AUC),
        (f"mean gain in micro-F1 {gain:.4f}", gain, LEAST_GAIN),
    ]
    if on_file is not None:
        checks.append((f"simulation.csv {on_file:.4f}", on_file, LEAST_ON_FILE))
    missed = [f"{what} is below {least:g}" for what, value, least in checks if value < least]
    failed = bool(missed) and not asked.quick
    if failed:
        print(f"Target missed: {'; '.join(missed)}.")
    figures = [checks[0][0], f"min AUC {np.min(auc):.4f}", *(what for what, *_ in checks[1:])]
    print(f"recovery: {', '.join(figures)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
