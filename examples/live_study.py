"""A study from the first pair to the last, simulated: design, votes, update, next, stop.

    python examples/live_study.py [--items 12] [--users 20] [--sure 0.9] [--seed 0]

Two studies of the same people run side by side. In one, every next batch of votes is chosen by
`model.next_pairs`; in the other, users and pairs are drawn at random. Both stop when `model.plan`
is sure enough of the first place. At the end it says what choosing has saved. The votes are drawn
from known scores, so that it can also say whether the first place was right.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import polars as pl

from isplitlbi import ISplitLBI
from isplitlbi.estimators.asking import NextPairs
from isplitlbi.evaluation.first_plan import plan_study

SPREAD, TASTE, THRESHOLD = 1.0, 0.3, 0.5
BATCH, MOST_VOTES = 30, 2_000
Choose = Callable[[ISplitLBI, "People"], pl.DataFrame]


class People:
    """Simulated people, who answer whatever they are asked."""

    def __init__(self, n_items: int, n_users: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.scores = self.rng.normal(0.0, SPREAD, n_items)
        self.own = self.scores + self.rng.normal(0.0, TASTE, (n_users, n_items))

    def answer(self, asked: pl.DataFrame) -> pl.DataFrame:
        """Return what was asked, with the winner of each pair."""
        user, left, right = (self._numbers(asked[name]) for name in ("user", "left", "right"))
        said = self.own[user, left] - self.own[user, right] + self.rng.logistic(size=len(user))
        winner = np.select([said > THRESHOLD, said < -THRESHOLD], ["left", "right"], "tie")
        return asked.select("user", "left", "right").with_columns(winner=pl.Series(winner))

    @property
    def best(self) -> str:
        """The item that is truly first."""
        return f"item-{np.argmax(self.scores) + 1:02d}"

    @staticmethod
    def _numbers(ids: pl.Series) -> np.ndarray:
        return ids.str.split("-").list.last().cast(pl.Int64).to_numpy() - 1


def chosen(model: ISplitLBI, people: People) -> pl.DataFrame:
    """Ask for what tells most about the first place."""
    found: NextPairs = model.next_pairs(BATCH, aim="top 1")
    return found.to_frame("polars")


def at_random(model: ISplitLBI, people: People) -> pl.DataFrame:
    """Ask anybody about any pair."""
    n_users, n_items = people.own.shape
    left = people.rng.integers(n_items, size=BATCH)
    right = (left + people.rng.integers(1, n_items, size=BATCH)) % n_items
    user = people.rng.integers(n_users, size=BATCH)
    return pl.DataFrame({
        "user": [f"user-{number + 1:02d}" for number in user],
        "left": [f"item-{number + 1:02d}" for number in left],
        "right": [f"item-{number + 1:02d}" for number in right],
    })  # fmt: skip


def run(people: People, design: pl.DataFrame, choose: Choose, sure: float) -> ISplitLBI:
    """Ask until the plan is sure of the first place."""
    model = ISplitLBI(with_tests=False).fit(people.answer(design))
    while model.summary_.n_votes < MOST_VOTES:
        plan = model.plan(aim="top 1", target=sure)
        print(f"  {model.summary_.n_votes:>5} votes: {plan.sentences()[1]}", flush=True)
        if plan.is_reached:
            break
        # New votes are added to the model. Now and then, everything is chosen anew.
        n_votes = model.summary_.n_votes
        doubled = n_votes.bit_length() < (n_votes + BATCH).bit_length()
        model = model.update(people.answer(choose(model, people)), reselect=doubled)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=12)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--sure", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    plan = plan_study(asked.items, asked.users, spread=SPREAD, taste=TASTE, aim="top 1",
                      target=asked.sure)  # fmt: skip
    print("Before there are votes:", *plan.sentences())
    design = plan.design(4 * asked.items)
    print(f"A balanced first design: {design.height} votes.")
    n_votes = {}
    for name, choose in (("chosen", chosen), ("random", at_random)):
        print(f"\nVotes {name}:" if name == "chosen" else "\nVotes at random:")
        people = People(asked.items, asked.users, asked.seed)
        model = run(people, design, choose, asked.sure)
        first = str(model.leaderboard().items[0])
        n_votes[name] = model.summary_.n_votes
        verdict = "right" if first == people.best else f"wrong: it is {people.best}"
        print(f"  {first} is first, which is {verdict}.")
    saved = 1.0 - n_votes["chosen"] / n_votes["random"]
    more = f"{saved:.0%} fewer" if saved >= 0 else f"{-saved:.0%} more"
    print(f"\n{n_votes['chosen']:,} votes by choosing, {n_votes['random']:,} at random: {more}.")


if __name__ == "__main__":
    main()
