"""Does `compare` call changed what has changed, and nothing else?

    python benchmarks/comparing.py [--studies 40] [--first-seed 5000] [--cell TEXT]

Simulated studies whose truth is known: people who are alike, whose tastes spread, of whom few
differ by far, or who are of two camps. A model is fitted, then another one on more votes. Where
nothing has changed, a line says how often the interval of an item holds 0, how often any item of a
study is called changed, and how often the interval of the change of a rank holds 0. Where one item
has become better by a logit in the eyes of the new users, it says how often that item is called
changed, and how often another. --cell runs only the lines whose name has that text.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from isplitlbi import Comparisons, ISplitLBI, compare

N_ITEMS, SCORE_SD, THRESHOLD = 12, 1.2, 0.5
TASTE_SD, CAMP_SD, FEW, FAR = 0.7, 1.0, 0.15, 2.5
SIZES = {20: 60, 200: 30}  # users, and votes of each
KINDS = ("alike", "spread", "few differ", "two camps")
MORE = {
    "10 % more votes": 0.1, "30 % more votes": 0.3, "other users": None,
    "30 % more votes, one item changed": 0.3, "other users, one item changed": None,
}  # fmt: skip
CHANGED = "changed"


class People:
    """People whose votes can be drawn, as many as one likes."""

    def __init__(self, rng: np.random.Generator, kind: str) -> None:
        self.rng, self.kind = rng, kind
        self.scores = rng.normal(0, SCORE_SD, N_ITEMS)
        self.camps = rng.normal(0, CAMP_SD, N_ITEMS)

    def own(self, n_users: int) -> NDArray[np.float64]:
        """Draw some of them: what each has beside the scores of all."""
        rng, shape = self.rng, (n_users, N_ITEMS)
        if self.kind == "spread":
            return rng.normal(0, TASTE_SD, shape)
        if self.kind == "few differ":
            return np.where(rng.random((n_users, 1)) < FEW, rng.normal(0, FAR, shape), 0.0)
        if self.kind == "two camps":
            return np.where(rng.random((n_users, 1)) < 0.5, 1, -1) * self.camps
        return np.zeros(shape)

    def votes(
        self, own: NDArray[np.float64], first_user: int, n_votes: int, better: float = 0.0
    ) -> Comparisons:
        """Draw votes, shared out evenly; the first item may be better than it was."""
        rng, n_users = self.rng, len(own)
        user = np.arange(n_votes) % n_users
        left = rng.integers(N_ITEMS, size=n_votes)
        right = (left + rng.integers(1, N_ITEMS, size=n_votes)) % N_ITEMS
        of_users = self.scores + own + better * (np.arange(N_ITEMS) == 0)
        perceived = of_users[user, left] - of_users[user, right] + rng.logistic(size=n_votes)
        outcome = (perceived > THRESHOLD).astype(int) - (perceived <= -THRESHOLD)
        users = np.array([f"user-{first_user + number:03d}" for number in range(n_users)])
        items = np.array([f"item-{number:02d}" for number in range(N_ITEMS)])
        return Comparisons.from_arrays(users[user], items[left], items[right], outcome)


def fitted(votes: Comparisons) -> ISplitLBI:
    """Fit votes; without tests of users, which are not compared here."""
    return ISplitLBI(with_tests=False, n_jobs=1).fit(votes)


def one_study(rng: np.random.Generator, n_users: int, kind: str, what: str) -> dict[str, float]:
    """Draw a study and what came later; return what was called changed."""
    people, n_votes, share = People(rng, kind), n_users * SIZES[n_users], MORE[what]
    own, better = people.own(n_users), float(what.endswith(CHANGED))
    before = people.votes(own, 0, n_votes)
    if share is None:
        after = people.votes(people.own(n_users), n_users, n_votes, better)
    else:  # half by the same users, half by new ones; those who see a change are all new
        of_same = 0 if better else round(share * n_votes / 2)
        of_new = round(share * n_votes) - of_same
        n_new = max(round(of_new / SIZES[n_users]), 1)
        parts = [before, people.votes(people.own(n_new), n_users, of_new, better)]
        parts += [people.votes(own, 0, of_same)] if of_same else []
        after = Comparisons.joined(*parts)
    found = compare(fitted(before), fitted(after))
    if better:
        is_first = found.items == "item-00"
        return {
            "found": float(found.changed[is_first][0]),
            "any other": float(found.changed[~is_first].any()),
        }
    ranked = (found.rank_before > 0) & (found.rank_after > 0)
    moved = (found.moved_low[ranked] > 0) | (found.moved_high[ranked] < 0)
    return {
        "interval holds 0": float(np.mean((found.low <= 0) & (found.high >= 0))),
        "any item changed": float(found.changed.any()),
        "rank holds 0": float(1.0 - moved.mean()),
        "width": float(np.mean(found.high - found.low)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=40, help="of each line")
    parser.add_argument("--first-seed", type=int, default=5000)
    parser.add_argument("--cell", default="", help="only lines whose name has this text")
    asked = parser.parse_args()
    cells = [(n_users, kind, what) for what in MORE for n_users in SIZES for kind in KINDS]
    for number, (n_users, kind, what) in enumerate(cells):
        title = f"{what}: {n_users} users, {kind}"
        if asked.cell not in title:
            continue
        found = [
            one_study(np.random.default_rng([seed, number]), n_users, kind, what)
            for seed in range(asked.first_seed, asked.first_seed + asked.studies)
        ]
        shares = {name: np.mean([each[name] for each in found]) for name in found[0]}
        said = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        print(f"{title}: {said}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
