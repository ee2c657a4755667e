"""When to stop: how certain the order of a model is, and how many more votes it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from isplitlbi.data.frames import Tabular
from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators.asking import Aim, covariance_of, variances_of
from isplitlbi.estimators.certainty import Seen
from isplitlbi.estimators.people import People
from isplitlbi.lazy import pl
from isplitlbi.markup import printable
from isplitlbi.model.ranking import Ranking
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.planning.ahead import WAYS, Ahead, Known, Outlook, look_ahead
from isplitlbi.planning.asking import Parts
from isplitlbi.planning.sureness import Sureness, how_sure
from isplitlbi.planning.thinning import MOST_ITEMS, least_certain
from isplitlbi.typing import Floats, Places

if TYPE_CHECKING:
    from isplitlbi.estimators.measured import MeasuredEstimator

__all__ = ["Needed", "Plan", "check_plan", "make_plan", "percent"]

ENDS = (0.1, 0.9)  # of the futures: what lies between is said of the number of votes
WORDS = {"asked": "asked for by this model", "random": "on random pairs"}


class Needed(NamedTuple):
    """How many more votes a target takes: in the middle of all futures, and in most of them.

    Infinite where a target is not reached by twenty times as many votes.
    """

    votes: float
    low: float
    high: float

    def __str__(self) -> str:
        """Say it in words."""
        if not np.isfinite(self.votes):
            return "more than can be foreseen"
        if self.votes == 0.0:
            return "none"
        high = f"{_rounded(self.high):,}" if np.isfinite(self.high) else "far more"
        return f"about {_rounded(self.votes):,} ({_rounded(self.low):,} to {high})"


def _rounded(votes: float) -> int:
    """Return a number of votes with two digits that count, rounded up."""
    whole = int(np.ceil(votes))
    unit: int = 10 ** max(len(str(whole)) - 2, 0)
    return -(-whole // unit) * unit


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Tabular):
    """How certain the order of a model is, and how many more votes a target needs.

    Attributes
    ----------
    aim : Aim
        ``ranking``, where the target is Kendall's tau with the true order; or ``top 3``, where it
        is the probability that the first three places are right.
    target : float
    sure : Sureness
        How certain the order is now.
    items : list
        Ids, the best first.
    tiers : list of int
        How many items each tier has.
    ahead : Ahead
        How certain it will be after more votes.
    n_votes, n_users : int
    is_of_crowd : bool
        Whether nobody knows whose votes they are.
    nouns : Nouns
    """

    aim: Aim
    target: float
    sure: Sureness
    items: list[Any]
    tiers: list[int]
    ahead: Ahead
    n_votes: int
    n_users: int
    is_of_crowd: bool = False
    nouns: Nouns = NOUNS

    @property
    def now(self) -> float:
        """How near the target is: Kendall's tau, or a probability."""
        return self.sure.tau if self.aim.name == "ranking" else self.sure.top

    @property
    def is_reached(self) -> bool:
        """Whether the target is reached already: one can stop."""
        return self.now >= self.target

    def needed(self, way: str = "asked") -> Needed:
        """Return how many more votes the target needs, ``asked`` for or on ``random`` pairs."""
        outlook = self._outlook(way)
        if self.is_reached:
            return Needed(0.0, 0.0, 0.0)
        # Not reached is not reached, though the futures may begin a little higher.
        found = np.maximum(np.sort(outlook.needed(self._values(outlook), self.target)), 1.0)
        at = [int(np.ceil(share * len(found))) - 1 for share in (0.5, *ENDS)]
        return Needed(*(float(found[place]) for place in at))

    def _outlook(self, way: str) -> Outlook:
        if way not in WAYS:
            raise InvalidSetting(f"way {way!r} is not one of {', '.join(WAYS)}.")
        return self.ahead.asked if way == "asked" else self.ahead.random

    def _values(self, outlook: Outlook) -> Floats:
        return outlook.tau if self.aim.name == "ranking" else outlook.top

    @property
    def best(self) -> float:
        """What infinitely many votes of the same people would give, of what the target is of."""
        return self.ahead.most_tau if self.aim.name == "ranking" else self.ahead.most_top

    def _table(self) -> pl.DataFrame:
        """Return how certain the order will be after more votes, for both ways of asking.

        In most futures (80 %) it lies between low and high.
        """
        rows: list[dict[str, Any]] = []
        for way in WAYS:
            outlook = self._outlook(way)
            for at, more in enumerate(outlook.n_more.astype(int).tolist()):
                row: dict[str, Any] = {"way": way, "more_votes": more}
                for name, values in (("tau", outlook.tau), ("top", outlook.top)):
                    low, high = np.quantile(values[:, at], ENDS)
                    row |= {
                        name: float(values[:, at].mean()),
                        f"{name}_low": low,
                        f"{name}_high": high,
                    }
                rows.append(row)
        return pl.DataFrame(rows)

    # --- in words ---------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Say how near the target is."""
        return f"Plan: {self.now:.3f} of {self.target:g} (aim: {self.aim})"

    def sentences(self, name: Callable[[Any], str] | None = None) -> list[str]:
        """Return all of it in words; ids by a function."""
        return [*self._on_now(name or (lambda item: printable(str(item)))), *self._on_more()]

    def _on_now(self, name: Callable[[Any], str]) -> Iterator[str]:
        n_items, sure = len(self.items), self.sure
        n_pairs = n_items * (n_items - 1) // 2
        wrong = f"{sure.n_wrong:.1f}" if sure.n_wrong < 100 else f"{sure.n_wrong:,.0f}"
        yield (
            f"Of {n_pairs:,} pairs of {self.nouns.items}, about {wrong} stand in the wrong order "
            f"(Kendall's tau with the true order: {sure.tau:.3f})."
        )
        yield f"{name(self.items[0])} is first with a probability of {percent(sure.first)}."
        if self.aim.n_places > 1:
            yield (
                f"The first {self.aim.n_places} places hold the right {self.nouns.items} with a "
                f"probability of {percent(sure.top)}."
            )

    def _on_more(self) -> Iterator[str]:
        goal = "Kendall's tau" if self.aim.name == "ranking" else "the probability"
        if self.is_reached:
            yield f"The target is reached ({goal} of {self.target:g}): you can stop."
            return
        asked, random = self.needed("asked"), self.needed("random")
        yield (
            f"For {goal} of {self.target:g}, more votes are needed: {asked}, {WORDS['asked']} "
            f"(isplitlbi next); {random}, {WORDS['random']}."
        )
        if self.best < self.target and not self.is_of_crowd:
            yield (
                f"Votes of the same {self.nouns.n_users(self.n_users)} alone, however many, lead "
                f"to {self.best:.3f} on the average. Ask more {self.nouns.users}."
            )

    def cells(self) -> list[list[str]]:
        """Return the table as texts, the headings first: both ways beside each other."""
        title = "tau" if self.aim.name == "ranking" else "probability"
        rows = [["more votes", f"{title}, asked", "80 %", f"{title}, random", "80 %"]]
        for at, more in enumerate(self.ahead.asked.n_more.astype(int).tolist()):
            row = [f"{more:,}"]
            for way in WAYS:
                values = self._values(self._outlook(way))[:, at]
                low, high = np.quantile(values, ENDS)
                row += [f"{values.mean():.3f}", f"{low:.3f} to {high:.3f}"]
            rows.append(row)
        return rows

    def borders(self) -> list[tuple[int, int, float]]:
        """Return the borders of tiers: the tier above, the items above, and how certain it is."""
        above = np.cumsum(self.tiers)[:-1].tolist()
        return [
            (tier, n_above, sure)
            for tier, (n_above, sure) in enumerate(
                zip(above, self.sure.borders, strict=True), start=1
            )
        ]

    def __str__(self) -> str:
        """Show the sentences."""
        return "\n".join(self.sentences())


def percent(share: float) -> str:
    """Return a probability in per cent, never as certain as it cannot be known to be.

    >>> percent(0.934), percent(0.9999)
    ('93 %', 'over 99 %')
    """
    if share > 0.99:
        return "over 99 %"
    return f"{100 * share:.0f} %" if share >= 0.01 else "below 1 %"


def check_plan(aim: Aim, target: Any) -> None:
    """Refuse what cannot be planned for."""
    if aim.name == "person":
        raise InvalidSetting("a plan is of the consensus: aim is ranking, or top and a number.")
    if isinstance(target, str) or not 0.0 < target < 1.0:
        raise InvalidSetting(f"target is {target!r}; it must be between 0 and 1, such as 0.9.")


def make_plan(
    model: MeasuredEstimator,
    aim: Aim,
    target: float,
    progress: Callable[[float], None] | None = None,
) -> Plan:
    """Find out how certain the order is, and how many more votes it needs; see `plan`."""
    check_plan(aim, target)
    if len(model.items_) < 2:
        raise InvalidSetting("there is nothing to plan: the model has a single item.")
    votes = model.votes()
    if Parts(votes.n_items, votes.left, votes.right).n_parts > 1:
        raise InvalidSetting(
            f"there is no order of all {model.nouns.items} yet: nobody has compared those of one "
            "part with those of another. Ask for votes that connect them (isplitlbi next)."
        )
    scores, certainty = model.parameters_.common.scores, model.certainty()
    variance = variances_of(certainty)
    some = least_certain(scores, variance, MOST_ITEMS)
    estimate, covariance = scores[some], covariance_of(certainty, variance, some)
    order = np.argsort(-estimate, kind="stable")
    n_places = max(aim.n_places, 1)
    tiers = _sizes_of_tiers(model, some)
    borders = np.cumsum(tiers)[:-1].tolist()
    # Threads would wait for each other longer than these small matrices take.
    with threadpool_limits(1, user_api="blas"):
        sure = how_sure(order, estimate, covariance, n_places=n_places, borders=borders)
        seen = Seen.of(votes, model.fitted_)
        n_users = max(int(np.count_nonzero(votes.votes_per_user)), 1)
        people = People(seen, model.link_, some)
        known = Known(
            estimate, covariance, _told(seen, some) / n_users, n_users, len(votes),
            people.ordinary(),
        )  # fmt: skip
        ahead = look_ahead(known, n_places, aims_at_top=aim.name == "top", progress=progress)
    return Plan(
        aim, float(target), sure, model.items_[some][order].tolist(), tiers, ahead, len(votes),
        n_users, not model.has_users, model.nouns,
    )  # fmt: skip


def _told(seen: Seen, items: Places) -> Floats:
    """Return what all votes together tell of the scores of some items, pair by pair."""
    curvature, n_items = seen.curvature, seen.parameters.n_items
    edges, item = curvature.layout.edges, curvature.layout.slots.coordinate
    index = np.full(n_items, -1)
    index[items] = np.arange(len(items))
    first, second = index[item[edges.first]], index[item[edges.second]]
    there = (first >= 0) & (second >= 0)
    found = np.zeros((len(items), len(items)))
    np.add.at(found, (first[there], second[there]), -curvature.mm[there])
    found = found + found.T
    np.fill_diagonal(found, -found.sum(axis=1))
    return found


def _sizes_of_tiers(model: MeasuredEstimator, items: Places) -> list[int]:
    """Return how many of some items are in each tier; none without ties."""
    common = model.parameters_.common
    if not common.terms.has_ties:
        return []
    every = np.ones(len(items), dtype=np.bool_)
    ranking = Ranking.of(
        model.items_[items], common.scores[items], common.threshold, every, common.habits[items]
    )
    return [len(tier) for tier in ranking.tiers]
