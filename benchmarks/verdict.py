"""Is the verdict on individual rankings right? Studies of known people, and what is said of them.

In studies where all users are alike, "help" must be rare. In studies where they differ, the table
says how often that is seen, and whether the standard error of the gain is as large as the gain
varies from study to study (*ratio*: 1 where it is).

    python benchmarks/verdict.py               100 studies of each kind
    python benchmarks/verdict.py --studies 5   a trial run

The script fails where a verdict of help is given for more than a twentieth of the studies of alike
users. Settings were settled on the seeds from 0 on; these are others.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from isplitlbi import Comparisons
from isplitlbi.diagnostics.individual import verdict_on

FIRST_SEED = 10_000
MOST_WRONG = 0.05
SEEN = ("help", "thresholds")


class Shape(NamedTuple):
    """How large a study is; without a threshold, every vote names a winner."""

    n_users: int
    n_items: int
    votes: tuple[int, int]  # fewest and most of a user
    threshold: float = 0.5


SHAPES = {
    "60 users, 40 votes, 10 items": Shape(60, 10, (40, 40)),
    "100 users, 10-20 votes, 20 items": Shape(100, 20, (10, 20)),
    "20 users, 30 votes, 6 items": Shape(20, 6, (30, 30)),
}
ALIKE_ONLY = {
    "60 users, 100 votes, 10 items": Shape(60, 10, (100, 100)),
    "8 users, 200 votes, 8 items": Shape(8, 8, (200, 200)),
    "40 users, 3-150 votes, 8 items": Shape(40, 8, (3, 150)),
    "60 users, 40 votes, no ties": Shape(60, 10, (40, 40), threshold=0.0),
}
# Standard deviations by which users differ: in logits, or of a logarithm.
PEOPLE: dict[str, dict[str, float]] = {
    "taste 0.5": {"taste": 0.5},
    "taste 1": {"taste": 1.0},
    "sharpness 0.5": {"sharpness": 0.5},
    "side 0.5": {"side": 0.5},
    "threshold 0.7": {"tie": 0.7},
}


def draw(
    shape: Shape, seed: int, *, taste: float = 0.0, sharpness: float = 0.0, side: float = 0.0,
    tie: float = 0.0,
) -> Comparisons:  # fmt: skip
    """Draw the votes of users who differ by as much; the items are the same in every study."""
    scores = np.random.default_rng(0).normal(size=shape.n_items)
    rng = np.random.default_rng([1, seed])
    n_votes = rng.integers(shape.votes[0], shape.votes[1] + 1, shape.n_users)
    user = np.repeat(np.arange(shape.n_users), n_votes)
    slope = np.exp(sharpness * rng.normal(size=(shape.n_users, 1)))
    own = slope * scores + taste * rng.normal(size=(shape.n_users, shape.n_items))
    lean = side * rng.normal(size=shape.n_users)
    threshold = shape.threshold * np.exp(tie * rng.normal(size=shape.n_users))
    left = rng.integers(shape.n_items, size=user.size)
    right = (left + rng.integers(1, shape.n_items, size=user.size)) % shape.n_items
    seen = own[user, left] - own[user, right] + lean[user] + rng.logistic(size=user.size)
    outcome = (seen > threshold[user]).astype(int) - (seen <= -threshold[user])
    return Comparisons.from_arrays(user, left, right, outcome)


def judge(name: str, shape: Shape, n_studies: int, first: int, **people: float) -> Counter[str]:
    """Print what is said of many studies of a kind; return how often which verdict was given."""
    found: list[Any] = [verdict_on(draw(shape, first + k, **people)) for k in range(n_studies)]
    said = Counter(each.verdict for each in found)
    gain = np.array([each.gain for each in found])
    error = np.sqrt(np.mean([each.standard_error**2 for each in found]))
    shares = "".join(
        f"{said[verdict] / n_studies:>9.2f}" for verdict in (*SEEN, "unclear", "no-help")
    )
    print(
        f"{name:<48}{shares}{gain.mean():>+9.4f}{gain.std(ddof=1):>9.4f}{error:>9.4f}"
        f"{gain.std(ddof=1) / error:>7.2f}",
        flush=True,
    )
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=100, help="studies of each kind")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="seed of the first study")
    asked = parser.parse_args()
    if asked.studies < 2:
        parser.error("--studies must be at least 2.")
    columns = ("help", "ties", "unclear", "no-help", "gain", "varies", "error")
    print(f"{'users':<48}{''.join(f'{each:>9}' for each in columns)}{'ratio':>7}")
    alike: Counter[str] = Counter()
    for name, shape in {**SHAPES, **ALIKE_ONLY}.items():
        alike += judge(f"alike: {name}", shape, asked.studies, asked.first)
    seen: Counter[str] = Counter()
    for name, shape in SHAPES.items():
        for kind, people in PEOPLE.items():
            seen += judge(f"{kind}: {name}", shape, asked.studies, asked.first, **people)
    wrong, right = (sum(said[each] for each in SEEN) / said.total() for said in (alike, seen))
    print(f"verdict: of alike users said to differ {wrong:.4f}, of others {right:.2f}")
    return int(wrong > MOST_WRONG)


if __name__ == "__main__":
    sys.exit(main())
