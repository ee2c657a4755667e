"""How far people agree: beside another implementation of alpha, its intervals, and its time.

    python benchmarks/agreement.py [--only alpha intervals time] [--studies 200]
                                   [--votes 100000 300000 1000000]

*alpha*: real votes, beside the package krippendorff, which knows one answer for each user and pair:
the first vote of each is kept for both, and every pair counts in both directions. "all votes" is
beside the definition, by all pairs of users who judged the same pair.
*intervals*: how often the 95 % interval for other people holds the alpha of the crowd that people
are drawn from, beside the percentiles of users drawn again (bootstrap, in the first 60 studies).
*time*: seconds of the processor for alpha with its interval, and for all of `agreement`; each user
has 100 votes on 200 items.

The exit code is 1 where an alpha is off by more than 1e-9, where intervals hold in fewer than 90 %
of all studies, or where ten times as many votes take more than 15 times as long.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from itertools import permutations
from time import process_time

import numpy as np

from data import load
from isplitlbi import Comparisons, agreement, simulate
from isplitlbi.data.layout import tally
from isplitlbi.diagnostics.answered import INTERVAL, NOMINAL, Answers, pair_numbers
from isplitlbi.diagnostics.estimates import by_leaving_out

FILES = ("age", "llmfao", "wmt16_cze-eng")
DISTANCES = {"nominal": NOMINAL, "interval": INTERVAL, "ordinal": INTERVAL}
MOST_OFF, LEAST_HELD, MOST_TIMES = 1e-9, 0.90, 1.5  # the last: beside growth of the votes
N_BOOTSTRAPPED, N_DRAWS, N_CROWD = 60, 100, 3000
PER_USER, N_ITEMS = 100, 200


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("alpha", "intervals", "time")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--votes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    asked = parser.parse_args()
    if asked.studies < 1 or min(asked.votes) < PER_USER * 4:
        parser.error("--studies must be at least 1, and --votes at least 400.")
    missed, figures = False, list[str]()
    if "alpha" in asked.only:
        off = alphas()
        missed |= off is None or off > MOST_OFF
        figures.append("no alpha compared" if off is None else f"alpha off by at most {off:.1e}")
    if "intervals" in asked.only:
        held = intervals(asked.studies)
        missed |= held < LEAST_HELD
        figures.append(f"{held:.3f} of the intervals hold")
    if "time" in asked.only:
        growth, last = times(sorted(asked.votes))
        missed |= growth > MOST_TIMES
        figures.append(f"time grows {growth:.2f} times as fast as votes, to {last:.1f} s")
    print(f"agreement: {', '.join(figures)}")
    return int(missed)


def answers_of(votes: Comparisons) -> Answers:
    cells = tally(votes, by_user=True)
    return Answers.of(cells, pair_numbers(cells, votes.n_items))


def alpha_of(answers: Answers, distance: np.ndarray) -> float:
    return float(answers.at(distance).sums().alpha(distance))


# --- another implementation ----------------------------------------------------------------------


def alphas() -> float | None:
    """Print our alphas and those of others; return the largest difference, if there are any."""
    if find_spec("krippendorff") is None:
        print(
            "krippendorff is not installed and left out. Install it with: pip install krippendorff"
        )
    heads = ("ours", "others", "seconds", "theirs")
    print(f"{'':<34}{'answers':>9}" + "".join(f"{each:>12}" for each in heads))
    off = list[float]()
    for name in FILES:
        votes = load(name)
        if votes is None:
            continue
        for level, distance in DISTANCES.items():
            if find_spec("krippendorff") is not None:
                off.append(compared(f"{name}, {level}", first_votes(votes), distance, level))
            if level != "ordinal":  # which is the same as interval where both directions count
                label = f"{name}, {level}, all votes"
                off.append(compared(label, votes, distance, None))
    return max(off, default=None)


def compared(label: str, votes: Comparisons, distance: np.ndarray, level: str | None) -> float:
    begun = process_time()
    answers = answers_of(votes)
    ours = alpha_of(answers, distance)
    middle = process_time()
    theirs = by_package(votes, level) if level else by_definition(answers, distance)
    end = process_time()
    print(
        f"{label:<34}{len(answers):>9,}{ours:>12.6f}{theirs:>12.6f}"
        f"{middle - begun:>12.3f}{end - middle:>12.3f}", flush=True,
    )  # fmt: skip
    return abs(ours - theirs)


def first_votes(votes: Comparisons) -> Comparisons:
    """Return the first vote of every user on every pair."""
    lower, upper = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    key = (votes.user.astype(np.int64) * votes.n_items + lower) * votes.n_items + upper
    return votes.subset(np.unique(key, return_index=True)[1])


def by_package(votes: Comparisons, level: str) -> float:
    """Return the alpha of the package, on a table of users and pairs in both directions."""
    import krippendorff

    pair = np.minimum(votes.left, votes.right) * votes.n_items
    pair = np.unique(pair + np.maximum(votes.left, votes.right), return_inverse=True)[1]
    said = np.where(votes.left < votes.right, votes.outcome, -votes.outcome)
    table = np.full((votes.n_users, int(pair.max()) + 1), np.nan)
    table[votes.user, pair] = said
    both = np.hstack([table, -table])
    return float(krippendorff.alpha(reliability_data=both, level_of_measurement=level))


def by_definition(answers: Answers, distance: np.ndarray) -> float:
    """Return alpha by all pairs of answers, within pairs of items and over all of them."""
    observed = 0.0
    for rows in np.split(
        np.argsort(answers.unit, kind="stable"), np.cumsum(np.bincount(answers.unit))[:-1]
    ):
        shares = answers.shares[rows]
        apart = shares @ distance @ shares.T
        pairs = permutations(range(len(rows)), 2)
        observed += sum(apart[one, other] for one, other in pairs) / (len(rows) - 1)
    every = np.vstack([answers.shares, answers.shares[:, ::-1]])
    expected, n = 0.0, len(every)
    for begin in range(0, n, 1000):
        apart = every[begin : begin + 1000] @ distance @ every.T
        apart[np.arange(len(apart)), begin + np.arange(len(apart))] = 0.0
        expected += float(apart.sum())
    return 1.0 - (observed / len(answers)) / (expected / (n * (n - 1)))


# --- intervals -----------------------------------------------------------------------------------


def intervals(n_studies: int) -> float:
    """Print how often intervals hold the alpha of a crowd; return that of all studies."""
    print(f"{'':<40}{'alpha':>6}{'held':>12}{'width':>12}{'drawn again':>13}")
    every = []
    for label, settings in (
        ("a fifth have their own taste", {"abnormal_share": 0.2}),
        ("clear differences", {"abnormal_share": 0.05, "score_sd": 4.0}),
    ):
        crowd = simulate(
            n_users=N_CROWD, n_items=8, votes_per_user=(20, 40), random_state=1, **settings
        ).votes
        truth = alpha_of(answers_of(crowd), NOMINAL)
        for n_users in (5, 10, 30, 100):
            rng, held, widths, drawn_again = np.random.default_rng(0), [], [], []
            for study in range(n_studies):
                chosen = np.isin(np.arange(crowd.n_users), rng.permutation(N_CROWD)[:n_users])
                answers = answers_of(crowd.alone(chosen[crowd.user]))
                found = answers.at(NOMINAL)
                without = found.without_users().alpha(NOMINAL)
                each = by_leaving_out(alpha_of(answers, NOMINAL), without, -1.0)
                if each.low is None or each.high is None:
                    continue
                held.append(each.low <= truth <= each.high)
                widths.append(each.high - each.low)
                if study < N_BOOTSTRAPPED:
                    low, high = bootstrapped(answers, rng)
                    drawn_again.append(low <= truth <= high)
            every += held
            print(
                f"{f'{label}, {n_users} users':<40}{truth:>6.2f}{np.mean(held):>12.3f}"
                f"{np.mean(widths):>12.3f}{np.mean(drawn_again):>13.3f}", flush=True,
            )  # fmt: skip
    return float(np.mean(every))


def bootstrapped(answers: Answers, rng: np.random.Generator) -> tuple[float, float]:
    """Return the percentiles of alpha where users are drawn again; copies are not compared."""
    users, owner = np.unique(answers.user, return_inverse=True)
    squares, found = np.sum(answers.shares**2, axis=1), []
    for _ in range(N_DRAWS):
        times = rng.multinomial(len(users), np.full(len(users), 1 / len(users)))[owner] * 1.0
        unit, n = answers.unit, answers.n_units
        sums = np.column_stack([np.bincount(unit, times * p, n) for p in answers.shares.T])
        many = np.bincount(unit, times, n)
        pairs = many**2 - np.bincount(unit, times**2, n)
        same = np.sum(sums**2, axis=1) - np.bincount(unit, times**2 * squares, n)
        there = pairs > 0
        if not there.any():
            continue
        observed = 1.0 - np.sum((many * same)[there] / pairs[there]) / many[there].sum()
        both = sums[there].sum(axis=0)
        both = (both + both[::-1]) / (2.0 * both.sum())
        expected = 1.0 - float(both @ both)
        if expected > 0:
            found.append(1.0 - observed / expected)
    return tuple(np.quantile(found, (0.025, 0.975)))


# --- time ----------------------------------------------------------------------------------------


def times(sizes: list[int]) -> tuple[float, float]:
    """Print seconds; return how fast they grow beside the votes, and the last of them."""
    agreement(drawn(5_000, 0), n_splits=1)  # all that is loaded once
    agreement(drawn(min(sizes[-1], 40_000), 0), n_splits=1)  # and compiled
    print(f"{'':<34}{'users':>9}{'alpha':>12}{'all':>12}")
    seconds = []
    for n_votes in sizes:
        votes, of_alpha, of_all = drawn(n_votes, 1), [], []
        for _ in range(2):
            begun = process_time()
            answers = answers_of(votes)
            by_leaving_out(0.0, answers.at(NOMINAL).without_users().alpha(NOMINAL))
            middle = process_time()
            agreement(votes)
            of_alpha.append(middle - begun)
            of_all.append(process_time() - middle)
        print(
            f"{f'{n_votes:,} votes':<34}{votes.n_users:>9,}{min(of_alpha):>12.2f}"
            f"{min(of_all):>12.2f}", flush=True,
        )  # fmt: skip
        seconds.append(min(of_all))
    return (seconds[-1] / seconds[0]) / (sizes[-1] / sizes[0]), seconds[-1]


def drawn(n_votes: int, seed: int) -> Comparisons:
    """Draw votes that follow one ranking."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=N_ITEMS)
    left = rng.integers(N_ITEMS, size=n_votes)
    right = (left + rng.integers(1, N_ITEMS, size=n_votes)) % N_ITEMS
    margin = scores[left] - scores[right] + rng.logistic(size=n_votes)
    outcome = (margin > 0.5).astype(int) - (margin < -0.5)
    return Comparisons.from_arrays(np.arange(n_votes) // PER_USER, left, right, outcome)


if __name__ == "__main__":
    sys.exit(main())
