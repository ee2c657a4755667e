"""Before there are votes: how many does a study need? Simulated, with a balanced design to begin.

Studies are drawn whose truth is known, everybody answers the pairs of a balanced design, and one
ranking for all is fitted by maximum likelihood, which takes milliseconds. How near it comes to the
truth says how many votes are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.frames import Tabular
from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators.asking import Aim
from isplitlbi.estimators.margin_mle import MarginMLE
from isplitlbi.estimators.plans import check_plan
from isplitlbi.lazy import pl
from isplitlbi.planning.design import FirstDesign, first_design
from isplitlbi.typing import Floats

__all__ = ["FirstPlan", "plan_study"]

N_STUDIES = 40
# Votes for each item that are tried, one after another, until the target is reached.
PER_ITEM = (3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
BEYOND = 1  # sizes that are shown after the one that reaches the target
MOST_ITEMS, MOST_USERS = 1_000, 100_000
ENDS = (0.1, 0.9)


@dataclass(frozen=True, eq=False, repr=False)
class FirstPlan(Tabular):
    """How many votes a study needs that has none yet.

    Attributes
    ----------
    n_items, n_users : int
    aim : Aim
    target : float
    n_votes : (n_sizes,)
        The sizes that were tried.
    tau : (n_sizes, n_studies)
        Kendall's tau of the order that was found with the true one.
    top : (n_sizes, n_studies)
        Whether the first places held the right items.
    """

    n_items: int
    n_users: int
    aim: Aim
    target: float
    n_votes: Floats
    tau: Floats
    top: Floats

    @property
    def reached(self) -> Floats:
        """What the target is of, for every size: mean tau, or how often the top was right."""
        found = self.tau if self.aim.name == "ranking" else self.top
        return np.asarray(found.mean(axis=1))

    @property
    def enough(self) -> int | None:
        """How many votes are enough; None where no size that was tried is."""
        there = np.flatnonzero(self.reached >= self.target)
        return int(self.n_votes[there[0]]) if len(there) else None

    def design(self, n_votes: int | None = None, seed: int = 0) -> pl.DataFrame:
        """Return a balanced first design of as many votes, or of as many as are enough.

        That is a table of user, left and right, a block of rows for every user.
        """
        n_votes = n_votes or self.enough or int(self.n_votes[-1])
        return design_table(first_design(self.n_items, self.n_users, n_votes, seed), self)

    def _table(self) -> pl.DataFrame:
        """Return what every size gives; in most studies (80 %) tau lies between low and high."""
        low, high = np.quantile(self.tau, ENDS, axis=1)
        return pl.DataFrame(
            {
                "votes": self.n_votes.astype(np.int64),
                "votes_per_user": self.n_votes / self.n_users,
                "votes_per_item": 2.0 * self.n_votes / self.n_items,
                "tau": self.tau.mean(axis=1),
                "tau_low": low,
                "tau_high": high,
                "top": self.top.mean(axis=1),
                "is_enough": self.reached >= self.target,
            }
        )

    def __repr__(self) -> str:
        """Say how many votes are enough."""
        return f"FirstPlan: {self.enough or 'more than'} votes for {self.n_items} items"

    def sentences(self) -> list[str]:
        """Say how many votes are enough, and what that means for every user."""
        goal = "Kendall's tau" if self.aim.name == "ranking" else f"the probability ({self.aim})"
        if self.enough is None:
            return [
                f"Even {int(self.n_votes[-1]):,} votes do not give {goal} of {self.target:g}, but "
                f"{self.reached[-1]:.3f}. Ask more people, or aim lower."
            ]
        return [
            f"For {goal} of {self.target:g}, ask for about {self.enough:,} votes: "
            f"{self.enough / self.n_users:.0f} of every user, "
            f"{2 * self.enough / self.n_items:.0f} on every item."
        ]


def design_table(design: FirstDesign, plan: FirstPlan) -> pl.DataFrame:
    """Return a design with names for users and items."""
    users, items = (
        np.array([f"{what}-{number:0{max(2, len(str(count)))}d}" for number in range(1, count + 1)])
        for what, count in (("user", plan.n_users), ("item", plan.n_items))
    )
    return pl.DataFrame(
        {"user": users[design.user], "left": items[design.left], "right": items[design.right]}
    )


def plan_study(
    n_items: int,
    n_users: int,
    *,
    ties: float = 0.2,
    spread: float = 1.0,
    taste: float = 0.3,
    aim: str = "ranking",
    target: float = 0.9,
    n_studies: int = N_STUDIES,
    random_state: int = 0,
    progress: Callable[[float], None] | None = None,
) -> FirstPlan:
    """Find out by simulation how many votes a study needs.

    Parameters
    ----------
    n_items, n_users
        How many there will be.
    ties
        The share of ties that is expected of the votes.
    spread, taste
        Standard deviations, in logits: of the items' scores, and of everybody's own taste.
    aim, target
        ``ranking`` and Kendall's tau with the true order; or ``top 3`` and the probability that the
        first three places hold the right items.
    n_studies
        How many studies are drawn of every size.
    random_state
        The seed.
    progress
        Called now and then with the share of the work done, as far as it can be known.

    Examples
    --------
    >>> plan = plan_study(10, 5, n_studies=5)
    >>> plan.design(20).columns
    ['user', 'left', 'right']
    """
    _check(n_items, n_users, ties, spread, taste)
    of = Aim.of(aim, n_items)
    check_plan(of, target)
    drawn = _Study(
        n_items, n_users, spread, taste, _threshold(ties, spread, taste, random_state),
        max(of.n_places, 1),
    )  # fmt: skip
    # The same studies for every size: a larger one is not better by chance.
    seeds = np.random.SeedSequence(random_state).spawn(n_studies)
    sizes = [max(n_items * per_item // 2, n_items) for per_item in PER_ITEM]
    found: list[Floats] = []
    n_enough = 0
    for number, n_votes in enumerate(sizes):
        found.append(np.array([drawn.accuracy(n_votes, seed) for seed in seeds]))
        n_enough += found[-1][:, 0 if of.name == "ranking" else 1].mean() >= target
        if progress is not None:
            progress((number + 1) / len(sizes))
        if n_enough > BEYOND:
            break
    tried = np.array(sizes[: len(found)], dtype=np.float64)
    return FirstPlan(n_items, n_users, of, target, tried, *np.moveaxis(np.array(found), 2, 0))


@dataclass(frozen=True)
class _Study:
    n_items: int
    n_users: int
    spread: float
    taste: float
    threshold: float
    n_places: int

    def accuracy(self, n_votes: int, seed: np.random.SeedSequence) -> tuple[float, float]:
        """Draw a study, let people answer, fit; return tau, and whether the top is right."""
        rng = np.random.default_rng(seed)
        scores = rng.normal(0.0, self.spread, self.n_items)
        own = scores + rng.normal(0.0, self.taste, (self.n_users, self.n_items))
        user, left, right = first_design(
            self.n_items, self.n_users, n_votes, int(rng.integers(1 << 31))
        )
        said = own[user, left] - own[user, right] + rng.logistic(size=n_votes)
        outcome = (said > self.threshold).astype(np.int8) - (said < -self.threshold)
        items = np.arange(self.n_items)
        votes = Comparisons.from_arrays(user, items[left], items[right], outcome)
        model = MarginMLE().fit(votes)
        true = scores[np.asarray(model.items_, dtype=np.int64)]
        best, found = (
            set(np.argsort(-each, kind="stable")[: self.n_places].tolist())
            for each in (true, model.consensus_)
        )
        tau = scipy.stats.kendalltau(model.consensus_, true).statistic
        return float(np.nan_to_num(tau)), float(best == found)


def _threshold(ties: float, spread: float, taste: float, seed: int) -> float:
    """Return the tie threshold that gives a share of ties, of pairs at random."""
    if ties == 0.0:
        return 0.0
    rng = np.random.default_rng(seed)
    margin = rng.normal(0.0, np.sqrt(2.0 * (spread**2 + taste**2)), 20_000)
    said = np.sort(np.abs(margin + rng.logistic(size=len(margin))))
    return float(said[min(int(ties * len(said)), len(said) - 1)])


def _check(n_items: int, n_users: int, ties: float, spread: float, taste: float) -> None:
    for name, value, least, most in (
        ("n_items", n_items, 2, MOST_ITEMS), ("n_users", n_users, 1, MOST_USERS),
    ):  # fmt: skip
        if not least <= value <= most:
            raise InvalidSetting(
                f"{name} is {value!r}; it must be a whole number from {least} to {most:,}."
            )
    if not 0.0 <= ties < 1.0:
        raise InvalidSetting(f"ties is {ties!r}; it must be a share from 0 to below 1.")
    if not (np.isfinite(spread) and spread > 0.0):
        raise InvalidSetting(f"spread is {spread!r}; it must be positive and finite.")
    if not (np.isfinite(taste) and taste >= 0.0):
        raise InvalidSetting(f"taste is {taste!r}; it must be from 0 on, and finite.")
