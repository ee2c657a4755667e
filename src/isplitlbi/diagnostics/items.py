"""What is found about the items: whether votes connect them, and whether there are enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy

from isplitlbi.diagnostics.facts import Facts, fewest_first, sums
from isplitlbi.diagnostics.findings import (
    NAMED,
    SENTENCE_ONLY,
    Finding,
    Severity,
    amount,
    amounts,
    are,
    have,
    number_of,
    some_of,
)
from isplitlbi.nouns import Nouns
from isplitlbi.typing import Floats, Indices, Mask, Places

__all__ = ["connections", "items_with_few_votes", "two_items"]

FEW_VOTES_OF_ITEM = 10  # fewer leave a score uncertain by about 0.7 or more


def connections(facts: Facts) -> Iterator[Finding]:
    """Find out whether votes connect all items, and in both directions."""
    pairs, active = facts.pairs, facts.active_items
    forward, tied, backward = pairs.first_wins > 0, pairs.ties > 0, pairs.second_wins > 0
    compared = _components(facts, forward | tied | backward, np.zeros_like(tied), "weak")
    groups = _members(compared, active)
    if len(groups) > 1:
        yield Disconnected([facts.items(group) for group in groups])
    if facts.decided == 0:
        return
    circles = _members(_components(facts, forward, backward, "strong"), active)
    if len(circles) == len(active) and facts.decided >= 2 * len(active):
        yield NoContradictions(amount(facts.decided))
        return
    wins, losses = _wins_and_losses(facts)
    for kind, none in ((AlwaysWins, losses == 0), (AlwaysLoses, wins == 0)):
        found = fewest_first(active[none[active]], facts.per_item)
        if len(found):
            yield kind(facts.items(found), amounts(facts.per_item[found]))
    reached = _components(facts, forward | tied, backward | tied, "strong")
    apart = _apart(facts, compared, reached, (wins == 0) | (losses == 0))
    if apart:
        yield OneWayGroups([facts.items(group) for group in apart])


def items_with_few_votes(facts: Facts) -> Iterator[Finding]:
    """Find items whose votes are too few for a rank."""
    active, votes = facts.active_items, facts.per_item
    few = fewest_first(active[votes[active] < FEW_VOTES_OF_ITEM], votes)
    if len(few):
        yield ItemsWithFewVotes(facts.items(few), amounts(votes[few]), len(active))


def two_items(facts: Facts) -> Iterator[Finding]:
    """Find out whether there is hardly anything to rank."""
    if len(facts.active_items) == 2:
        yield TwoItems(facts.items(facts.active_items))


# --- the findings -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Disconnected(Finding):
    """Items that no vote connects."""

    severity = Severity.SERIOUS
    code = "disconnected"

    items: list[list[Any]]  # by group, the largest first

    @property
    def details(self) -> dict[str, Any]:
        """The groups and their number."""
        return {"groups": len(self.items), "items": self.items}

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        largest, *others = self.items
        outside = [item for group in others for item in group]
        return (
            f"The {nouns.items} fall into {len(self.items):,} groups that no vote connects, so "
            "scores and ranks cannot be compared across groups. "
            f"The largest group has {nouns.n_items(len(largest))}; outside it {are(len(outside))} "
            f"{some_of(outside)}. "
            "Rank every group by itself, or collect votes on pairs across groups."
        )


@dataclass(frozen=True)
class NoContradictions(Finding):
    """All decided votes fit one order."""

    severity = Severity.WARNING
    code = "no-contradictions"

    votes: float  # that are decided

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        return (
            f"No decided vote contradicts another: all fit one order of the {nouns.items}. Trust "
            "that order, but not the distances between scores: such votes do not show them. Votes "
            "as clean as this are rare: check that people really gave them, one by one."
        )


@dataclass(frozen=True)
class _OneResult(Finding):
    """Items with the same result in every vote."""

    severity = Severity.WARNING
    verb: ClassVar[str]
    end: ClassVar[str]

    items: list[Any]
    votes: list[float]  # of every item, the fewest first

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        one = len(self.items) == 1
        return (
            f"{nouns.n_items(len(self.items))} {self.verb} every vote: {some_of(self.items)}"
            f"{', with ' if one else ', with as few as '}{number_of(self.votes[0], 'vote')}. "
            f"Only {'its' if one else 'their'} place at the {self.end} is known. The distance to "
            f"the other {nouns.items} is not known until there are votes against close rivals."
        )


@dataclass(frozen=True)
class AlwaysWins(_OneResult):
    """Items that won every vote."""

    code = "always-wins"
    verb, end = "won", "top"


@dataclass(frozen=True)
class AlwaysLoses(_OneResult):
    """Items that lost every vote."""

    code = "always-loses"
    verb, end = "lost", "bottom"


@dataclass(frozen=True)
class OneWayGroups(Finding):
    """Groups of items of which all votes across go one way."""

    severity = Severity.WARNING
    code = "one-way-groups"

    items: list[list[Any]]  # by group

    @property
    def details(self) -> dict[str, Any]:
        """The groups and their number."""
        return {"groups": len(self.items), "items": self.items}

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        shown = "; ".join(some_of(group) for group in self.items[:NAMED])
        n_more = len(self.items) - NAMED
        more = f"; and {n_more:,} more" if n_more > 0 else ""
        return (
            f"All votes between {number_of(len(self.items), 'group')} of {nouns.items} "
            f"({shown}{more}) and the other {nouns.items} go one way, so the distance to the "
            "others is not known. Collect more votes on such pairs."
        )


@dataclass(frozen=True)
class ItemsWithFewVotes(Finding):
    """Items whose votes are too few for a rank."""

    severity = Severity.WARNING
    code = "few-votes-items"

    items: list[Any]
    votes: list[float]  # of every one of them, the fewest first
    n_items: int = field(metadata=SENTENCE_ONLY)  # in all

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        few = len(self.items)
        return (
            f"{few:,} of {nouns.n_items(self.n_items)} {have(few)} fewer than "
            f"{FEW_VOTES_OF_ITEM} votes: {some_of(self.items)}. Such ranks are little more than "
            f"guesses: collect more votes on these {nouns.items}, or leave them out."
        )


@dataclass(frozen=True)
class TwoItems(Finding):
    """There are only two items."""

    severity = Severity.NOTE
    code = "two-items"

    items: list[Any]

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        return (
            f"There are only two {nouns.items}, so a ranking is one answer: which of them is "
            "better, or a tie."
        )


# --- how items are connected --------------------------------------------------------------------


def _components(facts: Facts, first_to_second: Mask, back: Mask, connection: str) -> Indices:
    """Return the component of every item, where pairs point to their second item, or back."""
    pairs, n_items = facts.pairs, facts.votes.n_items
    start = np.concatenate([pairs.first[first_to_second], pairs.second[back]])
    end = np.concatenate([pairs.second[first_to_second], pairs.first[back]])
    ones = np.ones(len(start), dtype=np.int8)
    graph = scipy.sparse.coo_array((ones, (start, end)), shape=(n_items, n_items)).tocsr()
    _, component = scipy.sparse.csgraph.connected_components(
        graph, directed=True, connection=connection
    )
    return np.asarray(component)


def _members(component: Indices, active: Places) -> list[Places]:
    """Return the active members of every component, the largest first."""
    ordered = active[np.argsort(component[active], kind="stable")]
    groups = np.split(ordered, np.flatnonzero(np.diff(component[ordered])) + 1)
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _wins_and_losses(facts: Facts) -> tuple[Floats, Floats]:
    """Return the amounts of votes that every item won and lost; a tie is both."""
    pairs, n_items = facts.pairs, facts.votes.n_items
    by_first, by_second = pairs.first_wins + pairs.ties, pairs.second_wins + pairs.ties
    wins = sums(pairs.first, by_first, n_items) + sums(pairs.second, by_second, n_items)
    losses = sums(pairs.first, by_second, n_items) + sums(pairs.second, by_first, n_items)
    return wins, losses


def _apart(facts: Facts, compared: Indices, reached: Indices, extreme: Mask) -> list[Places]:
    """Return groups of items to or from which no vote leads; of extreme items more is said."""
    # In what votes connect, every item should be reached from every other along wins and ties.
    members = _members(reached, facts.active_items)
    members.sort(key=lambda group: bool(extreme[group[0]]))  # stable: the largest first, still
    heads = np.array([group[0] for group in members])
    cores = set(np.unique(compared[heads], return_index=True)[1].tolist())
    return [
        group for place, group in enumerate(members) if place not in cores and not extreme[group[0]]
    ]
