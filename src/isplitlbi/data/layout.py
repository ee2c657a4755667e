"""Where a parameter lies, and votes collapsed to what a model can tell apart.

This is the only place that knows the order of parameters; everything else asks by name.

Conventions
-----------
trait      what a user has one number of, such as the tie threshold; in contrast to taste, of which
           there is a number for every item
habit      what an item adds to the threshold of its pairs; the consensus has it, users do not
consensus  one vector: the scores of the items, then the traits, the threshold last of them, and
           the habits of the items, where there are any
slot       one parameter of one user: an item that the user has compared, or a trait. Slots lie user
           after user, a user's items in order, then the traits as in the consensus. An item that a
           user never compared has no slot: its deviation is exactly zero.
coordinate where a slot meets the consensus vector
edge       votes of one user that the model cannot tell apart, collapsed to three counts
column     what a trait counts for in the margin of an edge; the threshold has none, and the
           sharpness needs none, since it multiplies scores that the whole model has
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.features import HasFeatures
from isplitlbi.typing import Floats, Indices, Integers, Places

__all__ = [
    "SHARPNESS",
    "TASTE",
    "THRESHOLD",
    "Edges",
    "Layout",
    "Sees",
    "Shown",
    "Slots",
    "Tally",
    "Vector",
    "tally",
]

PACKED_BITS = 63  # what a user, a pair and an outcome may take together to be sorted as one number
# A table of all (user, item) finds a slot at once; it may be this many times as long as the votes.
TABLE_PER_VOTE = 16

TASTE, SHARPNESS, THRESHOLD = "taste", "sharpness", "threshold"


class Sees(IntEnum):
    """What a model looks at in a vote: votes that are alike in this are one edge."""

    PAIR = 0  # which two items
    SIDE = 1  # and which of them was on the left
    VOTE = 2  # and what else belongs to the vote alone


class Shown(NamedTuple):
    """What was shown: two items by index (the left one first, where the side is seen)."""

    first: Indices
    second: Indices
    votes: HasFeatures | None = None  # where what belongs to a vote alone is seen: all of them
    row: Indices | None = None  # and which of them


class Trait(Protocol):
    """What the layout asks of a trait that enters the margin."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def sees(self) -> Sees:
        """What it looks at."""

    def column(self, shown: Shown) -> Floats:
        """Return what it counts for in each margin."""


class Vector(NamedTuple):
    """Where the parameters lie in a consensus vector."""

    n_items: int
    traits: tuple[str, ...]  # in order, the threshold last
    has_habits: bool = False

    @property
    def width(self) -> int:
        """The length of the vector."""
        return self.own_width + (self.n_items if self.has_habits else 0)

    @property
    def own_width(self) -> int:
        """The length of the part of which users may have numbers of their own."""
        return self.n_items + len(self.traits)

    @property
    def scores(self) -> slice:
        """The place of the items' scores."""
        return slice(0, self.n_items)

    @property
    def threshold(self) -> int:
        """The place of the tie threshold."""
        return self.place(THRESHOLD)

    @property
    def habits(self) -> slice:
        """The place of the items' tie habits; empty where there are none."""
        return slice(self.own_width, self.width)

    def place(self, trait: str) -> int:
        """Return the place of a trait."""
        return self.n_items + self.traits.index(trait)


class Slots(NamedTuple):
    """The parameters of users that exist, user after user.

    Those that enter the margin come first, and a user's threshold after them.
    """

    start: Places  # (n_users + 1,) a user's slots are start[u]:start[u + 1]
    coordinate: Integers  # (n_slots,) where a slot meets the consensus
    threshold: Places  # (n_users,) the slot of every user's threshold
    common_threshold: int  # where thresholds meet the consensus
    first_habit: int  # where the habits of the items begin in the consensus; 0 if there are none

    @classmethod
    def of(cls, start: Places, coordinate: Integers, vector: Vector) -> Self:
        """Say where the thresholds are."""
        first_habit = vector.own_width if vector.has_habits else 0
        return cls(start, coordinate, start[1:] - 1, vector.threshold, first_habit)

    @property
    def n_users(self) -> int:
        """Number of users in the vocabulary."""
        return len(self.start) - 1

    @property
    def sizes(self) -> Places:
        """Number of slots of every user."""
        return np.diff(self.start)

    @property
    def owner(self) -> Integers:
        """The user of every slot."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.sizes)

    def keys(self, stride: int) -> Places:
        """Return ``user * stride + coordinate`` of every slot: in order, as the slots are."""
        return self.owner * np.int64(stride) + self.coordinate


class Edges(NamedTuple):
    """Votes that are alike, as counts (sums of weights), user after user."""

    start: Places  # (n_users + 1,) a user's edges are start[u]:start[u + 1]
    first: Integers  # (n_edges,) slot of the pair's first item
    second: Integers  # (n_edges,) slot of its second item
    first_wins: Floats
    ties: Floats
    second_wins: Floats
    columns: Floats  # (n_columns, n_edges) of the traits in the margin, in order

    @property
    def owner(self) -> Integers:
        """The user of every edge."""
        return np.repeat(np.arange(len(self.start) - 1, dtype=np.int32), np.diff(self.start))

    @property
    def counts(self) -> tuple[Floats, Floats, Floats]:
        """Amounts of the three outcomes."""
        return self.first_wins, self.ties, self.second_wins


class Layout(NamedTuple):
    """Everything that a fit needs to know of some votes."""

    vector: Vector
    slots: Slots
    edges: Edges

    @classmethod
    def of(
        cls,
        votes: Comparisons,
        traits: Sequence[Trait] = (),
        sees: Sees = Sees.PAIR,
        *,
        has_sharpness: bool = False,
        has_habits: bool = False,
        keep: bool = True,
    ) -> Layout:
        """Lay out votes, for the traits that have a column; found once and, usually, kept.

        Votes that are a part of others have the slots of the whole. They are collapsed by what the
        traits see, or more finely where ``sees`` asks for it. What is kept does not depend on what
        a trait counts for, unless that belongs to the vote.
        """
        of_votes = tuple(trait for trait in traits if trait.sees == Sees.VOTE)
        names: tuple[str, ...] = (SHARPNESS,) if has_sharpness else ()
        names += (*(trait.name for trait in traits), THRESHOLD)
        vector = Vector(votes.n_items, names, has_habits)
        sees = max([sees, *(trait.sees for trait in traits)])
        known, key = _LAYOUTS.setdefault(votes, {}), (vector, of_votes, sees)
        found: Layout | None = known.get(key)
        if found is None:
            found = _lay_out(votes, vector, of_votes, sees)
            if keep:
                known[key] = found
        return found._with_columns(traits) if traits else found

    def _with_columns(self, traits: Sequence[Trait]) -> Layout:
        """Return the same with a column per trait, given those of traits that see the vote."""
        edges, item = self.edges, self.slots.coordinate
        shown = Shown(item[edges.first], item[edges.second])
        of_votes = iter(edges.columns)
        columns = np.empty((len(traits), len(edges.first)))
        for row, trait in zip(columns, traits, strict=True):
            row[:] = next(of_votes) if trait.sees == Sees.VOTE else trait.column(shown)
        columns.setflags(write=False)
        return self._replace(edges=edges._replace(columns=columns))

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of what users differ in: taste first, the traits, the threshold last."""
        return (TASTE, *self.vector.traits)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.slots.n_users

    @property
    def n_slots(self) -> int:
        """Number of parameters of all users together."""
        return len(self.slots.coordinate)

    def frozen(self) -> Layout:
        """Forbid changes. Compiled loops, too, take layouts that may be changed for others."""
        for array in (*self.slots[:3], *self.edges):
            array.setflags(write=False)
        return self

    def sum_by_user(self, values: Floats) -> Floats:
        """Add up numbers per edge."""
        sums = np.bincount(self.edges.owner, values, self.n_users)
        return sums.astype(np.float64, copy=False)

    def _trait_slots(self) -> Places:
        """Return, for every column, the slots of its trait: they stand before the threshold."""
        n_columns = len(self.edges.columns)
        back = np.arange(n_columns, 0, -1)[:, None]
        return self.slots.threshold[self.edges.owner] - back

    def margins(self, total: Floats, habits: Floats | None = None) -> tuple[Floats, Floats]:
        """Return margin and threshold of every edge, given one number per slot."""
        edges = self.edges
        margin = total[edges.first] - total[edges.second]
        for column, slot in zip(edges.columns, self._trait_slots(), strict=True):
            margin += column * total[slot]
        threshold = total[self.slots.threshold[edges.owner]]
        if habits is not None:
            item = self.slots.coordinate
            threshold = threshold + habits[item[edges.first]] + habits[item[edges.second]]
        return margin, threshold

    def sum_of_squares(self, by_margin: Floats, by_threshold: Floats) -> Floats:
        """Return what second derivatives by margin and threshold mean for every slot by itself."""
        edges, n_slots = self.edges, self.n_slots
        squares = (
            np.bincount(edges.first, by_margin, n_slots)
            + np.bincount(edges.second, by_margin, n_slots)
            + np.bincount(self.slots.threshold[edges.owner], by_threshold, n_slots)
        )
        for column, slot in zip(edges.columns, self._trait_slots(), strict=True):
            squares += np.bincount(slot, column**2 * by_margin, n_slots)
        return squares.astype(np.float64, copy=False)


# What was found of votes, for as long as there are these votes.
_LAYOUTS: WeakKeyDictionary[Comparisons, dict[Any, Any]] = WeakKeyDictionary()


# --- votes that are alike --------------------------------------------------------------------


class Tally(NamedTuple):
    """Votes that are alike, counted: in order of users, first and second items."""

    user: Indices  # 0 everywhere, where users are taken together
    first: Indices  # items: the lower one first, or the left one where sides are seen
    second: Indices
    first_wins: Floats  # numbers of votes, or sums of weights
    ties: Floats
    second_wins: Floats
    weight: Floats | None = None  # of one vote, where votes of other weights are kept apart
    features: Floats | None = None  # (n_features, n_rows), where those of others are kept apart

    @property
    def counts(self) -> tuple[Floats, Floats, Floats]:
        """Amounts of the three outcomes."""
        return self.first_wins, self.ties, self.second_wins

    @property
    def amount(self) -> Floats:
        """Amount of votes."""
        return self.first_wins + self.ties + self.second_wins


def tally(
    votes: Comparisons,
    *,
    by_user: bool = False,
    by_weight: bool = False,
    by_features: bool = False,
    sees: Sees = Sees.PAIR,
    weighted: bool = True,
) -> Tally:
    """Count the outcomes of every pair, of all users together or of each.

    Neither the order of the rows matters nor, unless it is seen, which item was on the left. By
    weight, votes of other weights are kept apart, and counted instead of weighed; by features,
    votes of other features are kept apart.
    """
    weight = votes.weight if weighted else None
    n_items, n_users = votes.n_items, votes.n_users if by_user else 1
    first, second, said = _oriented(votes, sees)
    user = votes.user if by_user else np.zeros(len(votes), dtype=np.int32)
    features = None if votes.features is None or not by_features else votes.features.values.T
    if features is not None or (by_weight and weight is not None):
        kept = [] if features is None else list(features)
        if sees == Sees.PAIR:  # what the left item has more of, the right one has less of
            kept = [np.where(first == votes.left, each, -each) for each in kept]
        alone, summed = (weight, None) if by_weight else (None, weight)
        (user, first, second, *kept), counts = _counted_rows(
            (user, first, second, *kept, *([] if alone is None else [alone])), said, summed
        )
        alone = None if alone is None else kept.pop()
        features = None if features is None else np.array(kept)
        return Tally(user, first, second, counts[0], counts[1], counts[2], alone, features)
    # All in one number: sorting numbers is far faster than sorting rows by them.
    stride = _power_of_2(n_items)
    if (4 * n_users * stride * stride).bit_length() <= PACKED_BITS:
        key = first.astype(np.int64)
        if by_user:
            key += votes.user * np.int64(stride)
        pairs, counts = _counted(key, second, said, weight, stride)
        second = pairs & (stride - 1)
        pairs >>= stride.bit_length() - 1
        first = pairs & (stride - 1)
        pairs >>= stride.bit_length() - 1
        return Tally(pairs, first, second, *counts)
    (user, first, second), counts = _counted_rows((user, first, second), said, weight)
    return Tally(user, first, second, *counts)


def _oriented(votes: Comparisons, sees: Sees) -> tuple[Indices, Indices, Indices]:
    """Return first and second items, and 0, 1, 2 where the first won, a tie, the second won."""
    if sees > Sees.PAIR:
        return votes.left, votes.right, 1 - votes.outcome
    lower = np.minimum(votes.left, votes.right)
    said = np.where(lower == votes.left, 1 - votes.outcome, 1 + votes.outcome)
    return lower, np.maximum(votes.left, votes.right), said


def _counted(
    key: Places, second: Indices, said: Indices, weight: Floats | None, stride: int
) -> tuple[Places, Floats]:
    """Return the distinct ``key * stride + second`` in order, and the counts of each."""
    keys = key * stride
    keys += second
    keys *= 4
    keys += said
    if weight is None:
        keys.sort()
    else:  # weights in order too, since the last digits of a sum depend on it
        order = np.lexsort((weight, keys))
        keys, weight = keys[order], weight[order]
    said = keys & 3
    keys >>= 2
    is_first = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return keys[is_first], _counts_of(is_first, said, weight)


def _counted_rows(
    columns: Sequence[NDArray[Any]], said: Indices, weight: Floats | None
) -> tuple[list[NDArray[Any]], Floats]:
    """Return the distinct rows in order, and the counts of each: slower, and for any columns."""
    by_weight = [] if weight is None else [weight]
    order = np.lexsort((*by_weight, said, *columns[::-1]))
    ordered = [column[order] for column in columns]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = np.any([column[1:] != column[:-1] for column in ordered], axis=0)
    weight = None if weight is None else weight[order]
    counts = _counts_of(is_first, said[order].astype(np.int64), weight)
    return [column[is_first] for column in ordered], counts


def _counts_of(is_first: NDArray[np.bool_], said: Places, weight: Floats | None) -> Floats:
    n_rows = int(np.count_nonzero(is_first))
    said *= n_rows
    said += np.cumsum(is_first, dtype=np.int32)
    said -= 1
    weight = np.ones(len(said)) if weight is None else weight
    counts = np.bincount(said, weight, 3 * n_rows).reshape(3, -1)
    return counts.astype(np.float64, copy=False)


# --- slots and edges -------------------------------------------------------------------------


def _lay_out(votes: Comparisons, vector: Vector, of_votes: Sequence[Trait], sees: Sees) -> Layout:
    """Collapse votes to edges between slots, with columns for what belongs to a vote alone."""
    stride = _power_of_2(vector.own_width)
    if sees < Sees.VOTE:
        found = tally(votes, by_user=True, sees=sees)
        columns = np.empty((0, len(found.first)))
    else:
        found, columns = _apart(votes, of_votes)
    of_user = found.user.astype(np.int64) * stride
    slots = _slots(votes, vector)
    first, second = _find(
        slots.keys(stride), votes.n_users * stride, of_user + found.first, of_user + found.second
    )
    start = np.searchsorted(first, slots.start.astype(np.int32))
    return Layout(vector, slots, Edges(start, first, second, *found.counts, columns)).frozen()


def _slots(votes: Comparisons, vector: Vector) -> Slots:
    """Return all slots that the votes need, or those of the whole where they are a part."""
    if votes.whole is not None:
        return _slots(votes.whole, vector)
    known = _LAYOUTS.setdefault(votes, {})
    if vector not in known:
        stride = _power_of_2(vector.own_width)
        of_user = votes.user * np.int64(stride)
        keys = _slot_keys(
            vector, votes.n_users, stride, of_user + votes.left, of_user + votes.right
        )
        coordinate = (keys & (stride - 1)).astype(np.int32)
        ends = np.flatnonzero(coordinate == vector.threshold) + 1
        known[vector] = Slots.of(np.append(0, ends), coordinate, vector)
    found: Slots = known[vector]
    return found


def _apart(votes: Comparisons, traits: Sequence[Trait]) -> tuple[Tally, Floats]:
    """Count votes that are alike in every column, too; return these with the counts."""
    shown = Shown(votes.left, votes.right, votes, np.arange(len(votes)))
    columns = [trait.column(shown) for trait in traits]
    (user, first, second, *kept), counts = _counted_rows(
        (votes.user, votes.left, votes.right, *columns), 1 - votes.outcome, votes.weight
    )
    return Tally(user, first, second, *counts), np.array(kept).reshape(len(traits), -1)


def _power_of_2(least: int) -> int:
    """Return a power of two that large at least: by those, division is fast."""
    return 1 << max(least - 1, 1).bit_length()


def _slot_keys(vector: Vector, n_users: int, stride: int, *keys: Places) -> Places:
    """Return the distinct keys in order, with those of everybody's traits."""
    traits = range(vector.n_items, vector.own_width)
    size = n_users * stride
    if size <= TABLE_PER_VOTE * len(keys[0]):
        occurs = np.zeros(size, dtype=np.bool_)
        for some in keys:
            occurs[some] = True
        for place in traits:
            occurs[place::stride] = True
        return np.flatnonzero(occurs)
    of_users = np.arange(n_users, dtype=np.int64) * stride
    return np.unique(np.concatenate([*keys, *(of_users + place for place in traits)]))


def _find(known: Places, size: int, *keys: Places) -> list[Integers]:
    """Return the places of keys among the known ones, all below ``size``."""
    if size <= TABLE_PER_VOTE * len(keys[0]):
        table = np.empty(size, dtype=np.int32)
        table[known] = np.arange(len(known), dtype=np.int32)
        return [table[some] for some in keys]
    return [np.searchsorted(known, some).astype(np.int32) for some in keys]
