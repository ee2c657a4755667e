"""Which items can be told apart, and how honestly: our groups beside the intervals of the peers.

    pip install isplitlbi evalica arena-rank
    python benchmarks/groups.py --markdown      the tables of docs/leaderboard.md
    python benchmarks/groups.py --studies 2     a trial run

    isplitlbi     ranks and groups of the leaderboard: intervals of all differences at once, users
                  as the independent units
    arena-rank    its 95 % intervals by the sandwich estimator, which is its default; a tie is half
                  a win for either side, and votes are the independent units
    evalica       its bootstrap of Bradley-Terry with ties as half wins: 95 % percentiles over
                  resampled votes (its default, BCa, fits the votes once more for every vote)

Two items are told apart where their intervals do not overlap. From this follow ranks and groups, by
the same rule as ours. A peer that is not installed is left out, with a line that says so.

First the real votes of llmfao.csv, where they are; then simulated studies whose truth is known: 12
items in four sets of three, equal within a set. *Found* is the share of truly different pairs that
are told apart in the right order; *false* the share of equal pairs that are told apart, or of
different ones in the wrong order, among all pairs; *any false* the share of studies with one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import data
from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.model.differences import name_groups

Floats, Mask = NDArray[np.float64], NDArray[np.bool_]

FIRST_SEED = 20_000
LEVELS = np.repeat([0.9, 0.3, -0.3, -0.9], 3)  # scores of the items: equal in threes
THRESHOLD, TASTE_SD, FEW, FAR, CAMP_SD = 0.5, 0.7, 0.15, 2.5, 1.0
SIZES = {20: 150, 200: 30}  # users, and votes of each
KINDS = ("alike", "own tastes", "few differ", "two camps")
FIGURES = ("found", "false", "any false")
RESAMPLES = {"real": 1000, "simulated": 200}


class Told(NamedTuple):
    """Which item is surely better than which, in the order of ``votes.items``."""

    better: Mask  # (n_items, n_items)
    ranked: Mask  # (n_items,) ours leaves out items with too few votes


# --- the methods ---------------------------------------------------------------------------


def of_isplitlbi(votes: Comparisons, n_resamples: int) -> Told:
    """Read from the ranks and groups of the leaderboard who is surely better."""
    del n_resamples
    board = ISplitLBI(with_tests=False).fit(votes).leaderboard()
    place = np.searchsorted(votes.items, board.items)
    groups = [_members(group) for group in board.group]
    better = np.zeros((len(place), len(place)), dtype=np.bool_)
    for first in range(board.n_ranked):
        for second in range(first + 1, board.n_ranked):
            better[place[first], place[second]] = not groups[first] & groups[second]
    ranked = np.zeros(len(place), dtype=np.bool_)
    ranked[place[: board.n_ranked]] = True
    return Told(better, ranked)


def of_arena_rank(votes: Comparisons, n_resamples: int) -> Told:
    del n_resamples
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    frame = pd.DataFrame(
        {"model_a": votes.left, "model_b": votes.right, "winner": (votes.outcome + 1) / 2}
    )
    pairs = PairDataset.from_pandas(frame, outcome_map=float)
    found = BradleyTerry(n_competitors=len(pairs.competitors)).compute_ratings_and_cis(pairs)
    return _by_overlap(np.asarray(found["rating_lower"]), np.asarray(found["rating_upper"]))


def of_evalica(votes: Comparisons, n_resamples: int) -> Told:
    import evalica

    words = {1: evalica.Winner.X, 0: evalica.Winner.Draw, -1: evalica.Winner.Y}
    winners = [words[outcome] for outcome in votes.outcome.tolist()]
    found = evalica.bootstrap(
        evalica.bradley_terry, votes.left.tolist(), votes.right.tolist(), winners,
        n_resamples=n_resamples, bootstrap_method="percentile", random_state=0,
    )  # fmt: skip
    return _by_overlap(found.low.sort_index().to_numpy(), found.high.sort_index().to_numpy())


def _members(groups: str) -> set[str]:
    """Return the groups of an item one by one: letters, or numbers where there are many."""
    return set(groups.split() if groups[:1].isdigit() else groups)


def _by_overlap(low: Floats, high: Floats) -> Told:
    return Told(low[:, None] > high[None, :], np.ones(len(low), dtype=np.bool_))


METHODS: dict[str, Callable[[Comparisons, int], Told]] = {
    "isplitlbi": of_isplitlbi,
    "arena-rank": of_arena_rank,
    "evalica": of_evalica,
}


def installed() -> list[str]:
    """Return the methods that are here; say of the others that they are not."""
    here = []
    for name in METHODS:
        if find_spec(name.replace("-", "_")) is None:
            print(f"{name} is not installed and left out. Install it with: pip install {name}")
        else:
            here.append(name)
    return here


# --- real votes ----------------------------------------------------------------------------


def on_real_votes(methods: Iterable[str]) -> list[list[str]]:
    """Return a row per method: what it tells apart on llmfao."""
    votes = data.load("llmfao")
    rows = [["", "items", "pairs told apart", "of all pairs", "groups", "mean width of ranks"]]
    for name in methods if votes is not None else ():
        told = METHODS[name](votes, RESAMPLES["real"])
        better = told.better[np.ix_(told.ranked, told.ranked)]
        n_items = len(better)
        low, high = 1 + better.sum(axis=0), n_items - better.sum(axis=1)
        order = np.argsort(low + high, kind="stable")
        groups = set().union(*map(_members, name_groups(better[np.ix_(order, order)])))
        share = better.sum() / (n_items * (n_items - 1) / 2)
        rows.append(
            [name, str(n_items), str(better.sum()), f"{share:.2f}", str(len(groups)),
             f"{np.mean(high - low + 1):.1f}"]
        )  # fmt: skip
    return rows


# --- simulated votes -----------------------------------------------------------------------


def study(kind: str, n_users: int, seed: int) -> Comparisons:
    """Draw votes of users of a kind; the mean scores of their people are `LEVELS`."""
    rng = np.random.default_rng([KINDS.index(kind), n_users, seed])
    n_items = len(LEVELS)
    own = np.zeros((n_users, n_items))
    if kind == "own tastes":
        own = rng.normal(0, TASTE_SD, own.shape)
    elif kind == "few differ":
        own = np.where(rng.random((n_users, 1)) < FEW, rng.normal(0, FAR, own.shape), 0.0)
    elif kind == "two camps":
        own = np.where(rng.random((n_users, 1)) < 0.5, 1, -1) * rng.normal(0, CAMP_SD, n_items)
    user = np.repeat(np.arange(n_users), SIZES[n_users])
    left = rng.integers(n_items, size=user.size)
    right = (left + rng.integers(1, n_items, size=user.size)) % n_items
    scores = LEVELS + own
    seen = scores[user, left] - scores[user, right] + rng.logistic(size=user.size)
    outcome = (seen > THRESHOLD).astype(int) - (seen <= -THRESHOLD)
    return Comparisons.from_arrays(user, left, right, outcome)


def on_simulated_votes(methods: list[str], n_studies: int, first_seed: int) -> list[list[str]]:
    """Return a row per kind of users: what each method finds, and how often it is false."""
    gap = LEVELS[:, None] - LEVELS[None, :]
    n_different, n_pairs = np.sum(gap > 0), len(LEVELS) * (len(LEVELS) - 1) / 2
    rows = [["", *(f"{name}: {what}" for name in methods for what in FIGURES)]]
    for n_users in SIZES:
        for kind in KINDS:
            figures: dict[str, list[Any]] = {name: [] for name in methods}
            for seed in range(first_seed, first_seed + n_studies):
                votes = study(kind, n_users, seed)
                for name in methods:
                    better = METHODS[name](votes, RESAMPLES["simulated"]).better
                    right, wrong = np.sum(better & (gap > 0)), np.sum(better & (gap <= 0))
                    figures[name].append((right / n_different, wrong / n_pairs, wrong > 0))
            cells = [f"{n_users} users, {kind}"]
            for name in methods:
                found, false, ever = np.mean(figures[name], axis=0)
                cells += [f"{found:.2f}", f"{false:.3f}", f"{ever:.2f}"]
            print(", ".join(cells), file=sys.stderr, flush=True)
            rows.append(cells)
    return rows


def show(rows: list[list[str]], markdown: bool) -> None:
    if markdown:
        head, *body = (f"| {' | '.join(row)} |" for row in rows)
        print("\n".join([head, f"|---{'|---:' * (len(rows[0]) - 1)}|", *body]))
        return
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [each.rjust(size) for each, size in zip(others, width[1:], strict=True)]
        print("  ".join([first.ljust(width[0]), *cells]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=20, help="simulated studies of each kind")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    asked = parser.parse_args()
    if asked.studies < 1:
        parser.error("--studies must be at least 1.")
    methods = installed()
    for rows in (
        on_real_votes(methods), on_simulated_votes(methods, asked.studies, asked.first_seed)
    ):  # fmt: skip
        show(rows, asked.markdown)
        print()
    print(f"groups: {', '.join(f'{name} {version(name)}' for name in methods)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
