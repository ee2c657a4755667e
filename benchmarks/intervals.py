"""Do the intervals of the leaderboard hold what they promise?

    python benchmarks/intervals.py [--studies 40] [--first-seed 5000] [--cell TEXT]

Simulated studies whose truth is known: people who are alike, whose tastes spread, of whom few
differ by far, or who are of two camps; and one item with three votes. A line says how often the
truth lies within the nominal 95 %: the score of an item (beside the mean of all, weighed as the
interval is), its rank, a difference of two items, all differences at once, and the scores of a
user. What is covered is the mean score of the people whom the users are drawn from. The first line
says what four votes for a new item do to the intervals of the others. --cell runs only the lines
whose name has that text.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.estimators.standing import standing_of
from isplitlbi.model.differences import (
    LEVEL,
    information,
    quantile_of_largest,
    student,
    weights_of_mean,
)

N_ITEMS, SCORE_SD, THRESHOLD = 12, 1.2, 0.5
TASTE_SD, CAMP_SD, FEW, FAR = 0.7, 1.0, 0.15, 2.5
SIZES = {20: 60, 200: 30}  # users, and votes of each
KINDS = ("alike", "spread", "few differ", "two camps")


def study(
    rng: np.random.Generator, n_users: int, kind: str, *, has_rare_item: bool
) -> tuple[Comparisons, NDArray[np.float64], NDArray[np.float64]]:
    """Draw votes; return them with the scores of the people and of every user."""
    scores = rng.normal(0, SCORE_SD, N_ITEMS)
    own = np.zeros((n_users, N_ITEMS))
    if kind == "spread":
        own = rng.normal(0, TASTE_SD, own.shape)
    elif kind == "few differ":
        own = np.where(rng.random((n_users, 1)) < FEW, rng.normal(0, FAR, own.shape), 0.0)
    elif kind == "two camps":
        own = np.where(rng.random((n_users, 1)) < 0.5, 1, -1) * rng.normal(0, CAMP_SD, N_ITEMS)
    usual = N_ITEMS - has_rare_item
    user = np.repeat(np.arange(n_users), SIZES[n_users])
    left = rng.integers(usual, size=user.size)
    right = (left + rng.integers(1, usual, size=user.size)) % usual
    if has_rare_item:
        user = np.append(user, rng.choice(n_users, 3, replace=False))
        left, right = np.append(left, [usual] * 3), np.append(right, rng.integers(usual, size=3))
    of_users = scores + own
    perceived = of_users[user, left] - of_users[user, right] + rng.logistic(size=user.size)
    outcome = (perceived > THRESHOLD).astype(int) - (perceived <= -THRESHOLD)
    items = np.array([f"item-{number:02d}" for number in range(N_ITEMS)])
    users = np.array([f"user-{number:03d}" for number in range(n_users)])
    votes = Comparisons.from_arrays(users[user], items[left], items[right], outcome)
    return votes, scores, of_users


def covered(
    votes: Comparisons, scores: NDArray[np.float64], of_users: NDArray[np.float64]
) -> dict[str, float]:
    """Return the shares of intervals that hold the truth."""
    model = ISplitLBI(with_tests=False).fit(votes)
    standing = standing_of(votes, model.fitted_)
    covariance = standing.covariance
    weights = weights_of_mean(information(covariance, standing.prior_variance))
    beside = np.eye(N_ITEMS) - weights
    error = beside @ (standing.estimate - scores)
    reach = student(standing.freedom, 0.5 + LEVEL / 2)
    holds = np.abs(error) <= reach * np.sqrt(np.diag(beside @ covariance @ beside.T))
    first, second = np.triu_indices(N_ITEMS, 1)
    own = np.diag(covariance)
    sd = np.sqrt(own[first] + own[second] - 2 * covariance[first, second])
    apart = np.abs(error[first] - error[second]) / sd
    board = model.leaderboard()
    ranked = board.rank > 0
    true_scores = scores[np.searchsorted(votes.items, board.items[ranked])]
    true_rank = 1 + np.sum(true_scores[:, None] < true_scores, axis=1)
    in_rank = (board.rank_low[ranked] <= true_rank) & (true_rank <= board.rank_high[ranked])
    of_user = []
    for number in range(0, len(of_users), max(len(of_users) // 10, 1)):
        found, true = model.own_scores(votes.users[number]), of_users[number]
        shift = np.mean(0.5 * (found.low + found.high) - true)  # only differences count
        of_user.append(np.mean((found.low - shift <= true) & (true <= found.high - shift)))
    largest = quantile_of_largest(covariance, standing.freedom)
    return {
        "score": float(holds[:-1].mean()), "last item": float(holds[-1]),
        "rank": float(in_rank.mean()), "difference": float(np.mean(apart <= reach)),
        "all differences": float(np.all(apart <= largest)),
        "a user's scores": float(np.mean(of_user)),
    }  # fmt: skip


def with_four_more(seed: int) -> str:
    """Say what four votes for a new item do to the intervals of the others."""
    votes, *_ = study(np.random.default_rng(seed), 20, "alike", has_rare_item=False)
    four = Comparisons.from_arrays(
        votes.users[:4], ["new"] * 4, votes.items[[0, 3, 6, 9]], np.ones(4, dtype=int)
    )
    before, after = (
        ISplitLBI(with_tests=False).fit(each).leaderboard()
        for each in (votes, Comparisons.joined(votes, four))
    )
    place = {item: number for number, item in enumerate(after.items)}
    rows = np.array([place[item] for item in before.items])
    wider = (after.high - after.low)[rows] / (before.high - before.low)
    low, high, new = before.low[0], before.high[0], rows[0]
    then = f"{after.low[new]:.2f} to {after.high[new]:.2f}"
    rank = after.rank[place["new"]]
    return (
        f"four votes for a new item: {before.items[0]} has {low:.2f} to {high:.2f}, then {then}; "
        f"all intervals are {wider.mean():.2f} times as wide on average, "
        f"{wider.max():.2f} at most; the new item is "
        + (f"ranked {rank}" if rank > 0 else "not ranked")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=40, help="of each line")
    parser.add_argument("--first-seed", type=int, default=5000)
    parser.add_argument("--cell", default="", help="only lines whose name has this text")
    asked = parser.parse_args()
    cells = [(n_users, kind, False) for n_users in SIZES for kind in KINDS]
    cells += [(20, "alike", True), (200, "spread", True)]
    if asked.cell in "four votes for a new item":
        print(with_four_more(asked.first_seed), flush=True)
    for number, (n_users, kind, has_rare_item) in enumerate(cells):
        title = f"{n_users} users, {kind}{', one item with three votes' if has_rare_item else ''}"
        if asked.cell not in title:
            continue
        found = []
        for seed in range(asked.first_seed, asked.first_seed + asked.studies):
            rng = np.random.default_rng([seed, number])
            found.append(covered(*study(rng, n_users, kind, has_rare_item=has_rare_item)))
        shares = {name: np.mean([each[name] for each in found]) for name in found[0]}
        if not has_rare_item:
            del shares["last item"]
        said = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        print(f"{title}: {said}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
