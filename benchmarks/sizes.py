"""When does nu fit all users, and when those in the middle? How `fitting.FEW_DIFFER` was settled.

    python benchmarks/sizes.py [--seed 500]

Simulated studies in which a share of the users has a taste of their own beside what everybody has a
little of. Each is fitted twice, with sizes that fit all users and with sizes that fit the user in
the middle, and scored by cross-validation and on a fifth of the votes that neither has seen.
``ordinary`` is how large the taste of the user in the middle is, as a share of what all have: the
one number that decides. A gain is how much smaller the log-loss is with sizes of the middle.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Any

import numpy as np

from isplitlbi import Comparisons, ISplitLBI, fitting
from isplitlbi.data.splits import split_within_user
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.model.terms import Terms
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.scales import estimate_sizes

SHARES, DEVIATIONS, VOTES = (0.0, 0.1, 0.2, 0.4), (1.0, 2.0, 4.0), ((20, 40), (60, 120), (200, 300))
COMMON: dict[str, Any] = {
    "n_users": 60, "n_items": 15, "score_sd": 1.5, "threshold": 0.7, "taste_sd": 0.4,
    "sharpness": 0.3, "threshold_sd": 0.3,
}  # fmt: skip


def losses(training: Comparisons, held_out: Comparisons, few_differ: float) -> np.ndarray:
    """Return log-losses in cross-validation and of held-out votes, with another rule."""
    usual, fitting.FEW_DIFFER = fitting.FEW_DIFFER, few_differ
    try:
        model = ISplitLBI(with_tests=False).fit(training)
    finally:
        fitting.FEW_DIFFER = usual
    assert model.selection_ is not None
    logs = model.predict_log_proba(held_out)
    happened = np.searchsorted(model.classes_, held_out.outcome)
    mean = -np.mean(logs[np.arange(len(happened)), happened])
    return np.array([np.nanmin(model.selection_.chosen.mean("log_loss")), mean])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=500)
    asked = parser.parse_args()
    print("share  their sd  votes of a user  ordinary  gain in folds  of held-out votes")
    rows = []
    for number, (share, deviation, votes) in enumerate(product(SHARES, DEVIATIONS, VOTES)):
        if share == 0.0 and deviation != DEVIATIONS[0]:
            continue
        study = simulate(
            **COMMON, abnormal_share=share, deviation_sd=deviation, votes_per_user=votes,
            random_state=asked.seed + number,
        )  # fmt: skip
        training, held_out = split_within_user(study.votes, 0.2, rng=asked.seed + number)
        terms = Terms.named("all")
        sizes = estimate_sizes(training, Logistic(), terms, Local(training))
        gain = losses(training, held_out, 0.0) - losses(training, held_out, np.inf)
        rows.append((sizes.ordinary, *gain))
        print(
            f"{share:>5}{deviation:>10}{votes[0]:>10} to {votes[1]:<3}{sizes.ordinary:>10.2f}"
            f"{gain[0]:>15.4f}{gain[1]:>19.4f}",
            flush=True,
        )
    found = np.array(rows)
    few = found[:, 0] < fitting.FEW_DIFFER
    for name, those in (("below", few), ("above", ~few)):
        if those.any():
            in_folds, held_out = found[those, 1:].mean(axis=0)
            print(
                f"sizes: {name} {fitting.FEW_DIFFER} ({those.sum()} studies) sizes of the middle "
                f"gain {in_folds:.4f} in folds, {held_out:.4f} on held-out votes"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
