"""How often the intervals of an anonymous crowd hold the truth.

Votes that follow one ranking are drawn (20 items, 2,000 votes, ties, a common side), and a model of
an anonymous crowd is fitted to them. The 95 % intervals of all differences of two scores should
hold the true difference in 95 of 100 cases. In further studies, votes come in groups of five on the
same pair that mostly agree, so that they say less than single votes do.

    python benchmarks/crowd.py [--studies 100] [--items 20] [--votes 2000]

Columns: how often differences are held by the intervals of the leaderboard (votes drawn again, to
first order), and by the curvature of the model alone; the ratio of the standard errors to those of
200 real draws of votes, each fitted again, in the first studies; seconds of a fit with intervals.
The exit code is 1 where the first column is not between 0.93 and 0.97.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter

import numpy as np

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.model.differences import student

BETWEEN = (0.93, 0.97)
THRESHOLD, SIDE, ALIKE, PER_GROUP = 0.5, 0.2, 0.5, 5
N_DRAWS, N_DRAWN = 200, 2  # draws of votes, and studies of which they are made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--votes", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    asked = parser.parse_args()
    if asked.studies < 1:
        parser.error("--studies must be at least 1.")

    print(f"{'':<14}{'held':>8}{'by curvature':>14}{'to real draws':>15}{'seconds':>9}")
    held = []
    for name, grouped in (("single votes", False), ("groups", True)):
        rows = [studied(seed, asked, grouped) for seed in range(asked.studies)]
        ours, curved, ratio, seconds = (
            float(np.nanmean(each)) if np.isfinite(each).any() else float("nan")
            for each in np.array(rows).T
        )
        held.append(ours)
        print(f"{name:<14}{ours:>8.3f}{curved:>14.3f}{ratio:>15.2f}{seconds:>9.2f}", flush=True)
    print(f"crowd: {held[0]:.3f} of the intervals of single votes hold the truth")
    return int(not BETWEEN[0] <= held[0] <= BETWEEN[1])


def studied(seed: int, asked: argparse.Namespace, grouped: bool) -> tuple[float, ...]:
    rng = np.random.default_rng(seed)
    votes, truth = drawn(rng, asked.items, asked.votes, grouped)
    begun = perf_counter()
    model = ISplitLBI().fit(votes)
    standing = model.standing()
    seconds = perf_counter() - begun
    curvature = model.standing()._replace(covariance=expected(model))
    shares = (share_held(each, truth) for each in (standing, curvature))
    ratio = float("nan")
    if seed < N_DRAWN and asked.draws > 1:
        ratio = against_draws(votes, standing, rng, asked.draws)
    return (*shares, ratio, seconds)


def drawn(
    rng: np.random.Generator, n_items: int, n_votes: int, grouped: bool
) -> tuple[Comparisons, np.ndarray]:
    """Draw votes that follow one ranking."""
    scores = rng.normal(size=n_items)
    n_units = n_votes // PER_GROUP if grouped else n_votes
    left = rng.integers(n_items, size=n_units)
    right = (left + rng.integers(1, n_items, size=n_units)) % n_items
    unit = np.arange(n_units)
    if grouped:
        left, right, unit = (np.repeat(each, PER_GROUP) for each in (left, right, unit))
    margin = scores[left] - scores[right] + SIDE
    wins, loses = (1.0 / (1.0 + np.exp(THRESHOLD - sign * margin)) for sign in (1.0, -1.0))
    chance = rng.random(len(left))
    if grouped:  # half of the votes of a group are the same
        same = rng.random(len(left)) < ALIKE
        chance = np.where(same, rng.random(n_units)[unit], chance)
    outcome = np.where(chance < wins, 1, np.where(chance > 1.0 - loses, -1, 0))
    ids = np.array([f"item-{k:03d}" for k in range(n_items)])
    group = unit if grouped else None
    return Comparisons.from_arrays(None, ids[left], ids[right], outcome, group=group), scores


def expected(model: ISplitLBI) -> np.ndarray:
    certainty, where = model.certainty(), model.parameters_.vector.scores
    row = certainty.row[where]
    return certainty.evidence.expected[np.ix_(row, row)]


def errors(covariance: np.ndarray) -> np.ndarray:
    """Return the standard errors of the differences of all pairs."""
    variance = np.diag(covariance)
    first, second = np.triu_indices(len(variance), 1)
    return np.sqrt(variance[first] + variance[second] - 2.0 * covariance[first, second])


def share_held(standing, truth: np.ndarray) -> float:
    first, second = np.triu_indices(len(truth), 1)
    off = (standing.estimate - truth)[first] - (standing.estimate - truth)[second]
    reach = student(standing.freedom, 0.975) * errors(standing.covariance)
    return float(np.mean(np.abs(off) <= reach))


def against_draws(votes: Comparisons, standing, rng: np.random.Generator, n_draws: int) -> float:
    """Return our standard errors in relation to those of votes that are drawn again."""
    unit = np.arange(len(votes)) if votes.group is None else np.asarray(votes.group)
    n_units, found = int(unit.max()) + 1, []
    for _ in range(n_draws):
        times = rng.multinomial(n_units, np.full(n_units, 1.0 / n_units))[unit]
        again = votes.subset(np.repeat(np.arange(len(votes)), times))
        found.append(ISplitLBI().fit(again).consensus_)
    return float(np.median(errors(standing.covariance) / errors(np.cov(np.array(found).T))))


if __name__ == "__main__":
    sys.exit(main())
