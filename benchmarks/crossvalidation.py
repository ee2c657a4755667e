"""What cross-validation costs: five folds and the final path, beside one path alone.

Both on the same votes with the same times, one after the other in each of several rounds, so that
other programs on the machine disturb both alike; medians over the rounds. A path alone runs on one
thread, the fit on all (two in the target). Compiling comes before.

    python benchmarks/crossvalidation.py [--runs 7] [--data NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from statistics import median
from time import perf_counter

from data import NAMES, load
from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.local import available_threads
from isplitlbi.solvers import Dynamics, Implicit, PathSettings, default_times, follow

LINK = Logistic()
MOST_PATHS = 4.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="rounds of which medians are taken")
    parser.add_argument("--data", nargs="*", default=["synthetic", *NAMES])
    asked = parser.parse_args()
    # Of users: abnormal.py measures these. What other terms cost: terms.py.
    model = ISplitLBI(terms="paper", with_tests=False)
    dynamics = Dynamics()

    print(f"nu = {dynamics.nu:g}, kappa = {dynamics.kappa:g}; {available_threads()} threads")
    print(f"{'data':<15}{'votes':>9}{'users':>7}{'items':>7}{'path s':>9}{'fit s':>9}{'paths':>7}")
    ratios, seconds = {}, {}
    for name in asked.data:
        votes = simulate(random_state=0).votes if name == "synthetic" else load(name)
        if votes is None:
            continue
        times = default_times(votes, LINK, dynamics)
        settings = PathSettings(LINK, dynamics, Implicit(), times)
        model.fit(votes)  # compiles, and indexes the votes
        paths, fits = [], []
        for _ in range(asked.runs):
            begun = perf_counter()
            follow(votes, settings)
            followed = perf_counter()
            model.fit(votes)
            paths.append(followed - begun)
            fits.append(perf_counter() - followed)
        seconds[name] = median(fits)
        ratios[name] = median(fit / path for fit, path in zip(fits, paths, strict=True))
        print(
            f"{name:<15}{votes.n_votes:>9,}{votes.n_users:>7}{votes.n_items:>7}"
            f"{median(paths):>9.3f}{seconds[name]:>9.3f}{ratios[name]:>7.2f}",
            flush=True,
        )
    worst = max(ratios, key=lambda name: ratios[name])
    print(
        f"cross-validation: {', '.join(f'{name} {s:.2f} s' for name, s in seconds.items())}; "
        f"at most {ratios[worst]:.2f} paths ({worst}): "
        f"{'met' if ratios[worst] <= MOST_PATHS else 'NOT MET'}"
    )
    return int(ratios[worst] > MOST_PATHS)


if __name__ == "__main__":
    sys.exit(main())
