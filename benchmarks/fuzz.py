"""Small studies of every sort, with every setting: do all fits end soon, finite, without a warning?

    python benchmarks/fuzz.py [--studies 2000] [--first-seed 0]

A seed is a study of 1 to 300 votes and the settings it is fitted with. Votes are at random, by an
order without exception (separated), all ties, without any tie, ties between neighbours only, or
everything said by one user; with weights or not. Settings: link, terms, ties, sides, rule, scoring,
estimate and solver. Refusals in one of our own sentences are counted. Everything else is a failure:
another exception, a warning of a library, a number that is not finite, probabilities that do not
add up, or more than 5 seconds of the processor once the loops are compiled. The explicit solver,
whose steps are as short as the study is uneven, is tried on few votes and a short path, and its
time does not count.

The exit code is 1 where anything failed; a line names the seed.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from time import process_time
from typing import Any

import numpy as np

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.errors import ISplitLBIError, PathFailed
from isplitlbi.selection import ESTIMATES, RULES, SCORINGS

MOST_SECONDS = 5.0
KINDS = ("random", "separated", "all ties", "no ties", "ties of neighbours", "one user")
TERMS = ("all", "all", "paper", ["taste", "threshold"], ["taste", "sharpness"], ["taste", "side"])


def drawn(seed: int) -> tuple[str, Comparisons, dict[str, Any]]:
    """Draw the kind of a study, its votes, and the settings of its fit."""
    rng = np.random.default_rng(seed)
    kind, is_explicit = str(rng.choice(KINDS)), rng.random() < 0.05
    n_items, n_users = int(rng.integers(2, 16)), int(rng.integers(1, 12))
    n_votes = int(rng.integers(1, 31 if is_explicit or rng.random() < 0.5 else 301))
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    user = (
        np.zeros(n_votes, np.int64) if kind == "one user" else rng.integers(n_users, size=n_votes)
    )
    by_order = np.where(left < right, 1, -1)
    outcome = {
        "separated": by_order,
        "all ties": np.zeros(n_votes, np.int64),
        "no ties": rng.choice([-1, 1], n_votes),
        "ties of neighbours": np.where(np.abs(left - right) == 1, 0, by_order),
    }.get(kind, rng.integers(-1, 2, n_votes))
    weight = rng.choice([0.1, 1.0, 3.0, 40.0], n_votes) if rng.random() < 0.2 else None
    scoring, rule = str(rng.choice(SCORINGS)), str(rng.choice(RULES))
    settings: dict[str, Any] = {
        "link": str(rng.choice(["logistic", "probit", "uniform"], p=[0.4, 0.4, 0.2])),
        "terms": TERMS[rng.integers(len(TERMS))],
        "rule": rule,
        "scoring": scoring,
        "estimate": str(rng.choice(ESTIMATES)),
        "ties": str(rng.choice(["auto", "allowed"])),
        "sides": str(rng.choice(["known", "unknown"])),
        "random_state": seed,
    }
    if is_explicit:
        settings |= {
            "solver": "explicit",
            "time": 0.05,
            "times": [0.01, 0.05],
            "nu": 1.0,
            "kappa": 5,
        }
    votes = Comparisons.from_arrays(user, left, right, outcome, weight=weight)
    return kind, votes, settings


def trial(seed: int) -> tuple[str, float]:
    """Fit the study of a seed; return what came of it, and the seconds that it took."""
    _, votes, settings = drawn(seed)
    begun = process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = ISplitLBI(**settings).fit(votes)
            problem = wrong_numbers(model, votes)
    except PathFailed as error:
        return f"the path failed: {error}", process_time() - begun
    except ISplitLBIError as error:
        return f"refused: {str(error).partition(':')[0][:60]}", process_time() - begun
    except Exception as error:
        return f"{type(error).__name__}: {error}", process_time() - begun
    return problem or "fitted", process_time() - begun


def wrong_numbers(model: ISplitLBI, votes: Comparisons) -> str:
    """Say which numbers of a model cannot be; nothing where all can."""
    numbers = {
        "scores": model.consensus_,
        "deviations": model.parameters_.deviation,
        "intervals": np.concatenate(model.consensus_intervals()),
        "habits": model.habits_,
        "sides": model.side_,
        "thresholds": 0.0 if model.threshold_ is None else model.threshold_,
    }
    if hasattr(model, "abnormality_"):
        tests = model.abnormality_
        is_tested = tests.n_votes > 0
        numbers |= {"p-values": tests.p_value[is_tested], "quality": tests.quality[is_tested]}
    broken = [name for name, values in numbers.items() if not np.isfinite(values).all()]
    chances = model.predict_proba(votes)
    if not (np.isfinite(chances).all() and np.allclose(chances.sum(axis=1), 1.0)):
        broken.append("probabilities")
    return f"not finite: {', '.join(broken)}" if broken else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--first-seed", type=int, default=0)
    asked = parser.parse_args()
    found: Counter[str] = Counter()
    slowest, n_failed = (0.0, 0), 0
    for seed in range(asked.first_seed, asked.first_seed + asked.studies):
        result, seconds = trial(seed)
        kind, votes, settings = drawn(seed)
        if seconds > MOST_SECONDS:
            result_again, seconds = trial(seed)  # the first compiled loops
            assert result_again == result
        is_slow = seconds > MOST_SECONDS and "solver" not in settings
        has_failed = is_slow or not result.startswith(("fitted", "refused"))
        if has_failed:
            n_failed += 1
            print(f"seed {seed}: {result}, {seconds:.1f} s; {kind}, {len(votes)} votes, {settings}")
        if "solver" not in settings:
            slowest = max(slowest, (seconds, seed))
        found[result if not has_failed else "failed"] += 1
    for result, count in found.most_common():
        print(f"{count:>6}  {result}")
    print(f"slowest: {slowest[0]:.1f} s (seed {slowest[1]}); {n_failed} failed")
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
