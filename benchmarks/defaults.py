"""Which nu and kappa predict best: the table behind the defaults.

    python benchmarks/defaults.py [--splits 3] [--data NAME ...]

Every data set is split 80/20 within users (rankings kept whole where there are any), the time is
chosen by cross-validation on the training part, and the held-out votes are scored.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from statistics import mean

from data import NAMES, load
from isplitlbi.data.splits import split_within_user
from isplitlbi.estimators.isplitlbi import ISplitLBI
from isplitlbi.model.links import Logistic
from isplitlbi.model.parameters import Parameters
from isplitlbi.selection import score_votes
from isplitlbi.solvers import fit_consensus

LINK = Logistic()
NUS, KAPPAS = (0.1, 0.3, 1.0, 3.0), (10.0, 30.0, 100.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--data", nargs="*", default=list(NAMES))
    asked = parser.parse_args()
    losses: dict[tuple[float, float], list[float]] = {}
    print(f"{'data':<14}{'nu':>5}{'kappa':>6} | log-loss  micro-F1  macro-F1 | users out")
    for name in asked.data:
        votes = load(name)
        if votes is None:
            continue
        splits = [split_within_user(votes, 0.2, rng=seed) for seed in range(asked.splits)]
        alone = []
        for training, held_out in splits:
            consensus = Parameters.of_consensus(training, fit_consensus(training, LINK))
            alone.append(score_votes(held_out, consensus, LINK))
        report(name, "consensus", "", alone, "")
        for nu, kappa in product(NUS, KAPPAS):
            scores, out = [], []
            for training, held_out in splits:
                model = ISplitLBI(terms="paper", nu=nu, kappa=kappa, with_tests=False).fit(training)
                scores.append(score_votes(held_out, model.parameters_, LINK))
                out.append(len(model.left_consensus_))
            report(name, f"{nu:g}", f"{kappa:g}", scores, f"{mean(out):.0f} of {votes.n_users}")
            gain = mean(a["log_loss"] - s["log_loss"] for a, s in zip(alone, scores, strict=True))
            losses.setdefault((nu, kappa), []).append(gain)
    best = max(losses, key=lambda pair: mean(losses[pair]))
    for (nu, kappa), gains in losses.items():
        each = "  ".join(f"{gain:.4f}" for gain in gains)
        print(f"nu {nu:<4g} kappa {kappa:<4g} gain in log-loss over the consensus: {each}")
    print(f"best on average: nu {best[0]:g}, kappa {best[1]:g}, gain {mean(losses[best]):.4f}")
    return 0


def report(name: str, nu: str, kappa: str, scores: list[dict[str, float]], out: str) -> None:
    values = [mean(s[key] for s in scores) for key in ("log_loss", "micro_f1", "macro_f1")]
    columns = "  ".join(f"{value:8.4f}" for value in values)
    print(f"{name:<14}{nu:>5.9}{kappa:>6} | {columns} | {out}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
