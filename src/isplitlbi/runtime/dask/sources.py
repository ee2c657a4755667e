"""Votes that can be put on workers: those that the client holds, and parts that workers read.

The parts of a folder that all workers reach are read by the workers, never by the client. Every
part is read by some worker, with the checks of any file of votes. The ids in it are collected from
all parts, on the workers, and only then come to the client, which cuts the users into shards. Each
part is then cut in turn, and its pieces go to the workers of their shards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import compress, pairwise
from operator import add, itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.features import Squares, Units
from isplitlbi.data.layout import Layout
from isplitlbi.data.loading import Described
from isplitlbi.data.notes import on_weights, with_units
from isplitlbi.data.readers import Parts, Reading, described, read_part
from isplitlbi.data.vocabulary import Vocabulary
from isplitlbi.data.weights import WeightSum
from isplitlbi.errors import InvalidVotes
from isplitlbi.runtime.dask.client import Connection, is_loss, nobody_answers
from isplitlbi.runtime.dask.shards import Piece
from isplitlbi.typing import Labels, Places

__all__ = ["VoteSource", "VotesInMemory", "VotesInParts"]

log = logging.getLogger("isplitlbi")

NO_USERS = (
    "votes without users cannot be shared out to workers, who hold users: fit them on one machine."
)
AT_ONCE = 8  # censuses that one worker adds up


class VoteSource(Protocol):
    """Votes that can be put on workers, again and again."""

    @property
    def users(self) -> Labels:
        """The ids of all users, sorted."""

    @property
    def items(self) -> Labels:
        """The ids of all items, sorted."""

    @property
    def votes_per_user(self) -> Places:
        """Number of votes of every user."""

    @property
    def units(self) -> Units | None:
        """What one unit of the features is, where votes have some."""

    @property
    def weight_unit(self) -> float:
        """What the weights of all votes are divided by."""

    def pieces(self, bounds: list[int], hosts: Mapping[int, str]) -> dict[int, list[Any]]:
        """Return the futures of the pieces of some shards, each for its host.

        Shard number k has the users from ``bounds[k]`` to ``bounds[k + 1]``.
        """

    def release(self) -> None:
        """Forget what is kept on the workers besides: the shards are made."""


class VotesInMemory:
    """Votes that the client holds."""

    def __init__(self, there: Connection, votes: Comparisons) -> None:
        if votes.is_anonymous:
            raise InvalidVotes(NO_USERS)
        _refuse_incomplete(votes)
        self._there, self._votes = there, votes
        self.users, self.items = votes.users, votes.items
        self.votes_per_user = votes.votes_per_user
        self.units = None if votes.features is None else votes.features.units
        self.weight_unit = votes.weight_unit

    def pieces(self, bounds: list[int], hosts: Mapping[int, str]) -> dict[int, list[Any]]:
        """Send every shard's votes to its host."""
        votes, sent = self._votes, {}
        for number, host in hosts.items():
            first, end = bounds[number : number + 2]
            mine = votes.subset((votes.user >= first) & (votes.user < end))
            piece = Piece.of(mine, first)
            # In a list: a piece is a tuple itself, and releases of Dask take tuples differently.
            sent[number] = self._there.scattered([piece], [host])
        return sent

    def release(self) -> None:
        """Keep nothing."""


def _refuse_incomplete(votes: Comparisons) -> None:
    """Refuse votes that are a part of others: workers would not know of the others' slots."""
    if votes.whole is None:
        return
    layout = Layout.of(votes)
    is_used = np.zeros(layout.n_slots, dtype=np.bool_)
    for place in (layout.edges.first, layout.edges.second, layout.slots.threshold):
        is_used[place] = True
    if not is_used.all():
        raise InvalidVotes(
            "a part of votes cannot be fitted on a cluster; make Comparisons of their own."
        )


class VotesInParts:
    """Votes in the parts of a folder; unless ``again``, notes on them are told."""

    def __init__(self, there: Connection, parts: Parts, again: bool = False) -> None:
        self._there, self._parts, self._files = there, parts, parts.files
        self._read: list[Any] = []  # futures
        try:
            self._census = self._count(again)
        except Exception as error:
            if is_loss(error):
                raise nobody_answers(error) from None
            raise

    def _count(self, again: bool) -> Census:
        """Let the workers read all parts; collect the ids that are in them."""
        client, parts = self._there.client, self._parts
        found = [client.submit(_describe, part, pure=False) for part in self._readings()]
        descriptions = [self._there.result_of(each) for each in found]
        for error in descriptions:
            if isinstance(error, InvalidVotes):
                raise error
        notes = parts.agree(descriptions)
        # From here on, parts without votes need not be read.
        has_votes = [bool(each.kind) for each in descriptions]
        self._files = tuple(compress(parts.files, has_votes))
        self._read = list(compress(self._read, has_votes))
        unit = self._added_up(WeightSum.sum, _given_weights)
        self.weight_unit = 1.0 if unit is None else unit.mean()
        census: Census = self._added_up(Census.sum, Census.of, self.weight_unit)
        census = census.complete(str(parts.folder))
        notes = (*notes, *on_weights(self.weight_unit))
        notes = notes if census.units is None else with_units(notes, census.units)
        for note in () if again else notes:
            log.warning("%s", note)
        return census

    def _added_up(self, add_up: Callable[..., Any], count: Callable[..., Any], *known: Any) -> Any:
        """Let the workers count something in every part, and add it up."""
        client = self._there.client
        counts = [client.submit(count, part, *known, pure=False) for part in self._readings()]
        while len(counts) > 1:
            some = [counts[begin : begin + AT_ONCE] for begin in range(0, len(counts), AT_ONCE)]
            counts = [client.submit(add_up, each, pure=False) for each in some]
        return self._there.result_of(counts[0])

    @property
    def users(self) -> Labels:
        """The ids of all users, sorted."""
        return self._census.users.labels

    @property
    def items(self) -> Labels:
        """The ids of all items, sorted."""
        return self._census.items.labels

    @property
    def votes_per_user(self) -> Places:
        """Number of votes of every user."""
        return self._census.votes_per_user

    @property
    def units(self) -> Units | None:
        """What one unit of the features is, where votes have some."""
        return self._census.units

    def pieces(self, bounds: list[int], hosts: Mapping[int, str]) -> dict[int, list[Any]]:
        """Cut every part, and let the pieces of every shard go to its host."""
        client = self._there.client
        census = self._census
        known = self._there.scattered(
            (census.users, census.items, census.units, self.weight_unit),
            sorted(set(hosts.values())),
        )
        cut = [
            client.submit(_cut, part, known, bounds, list(hosts), pure=False)
            for part in self._readings()
        ]
        return {
            number: [client.submit(itemgetter(number), each, pure=False) for each in cut]
            for number in hosts
        }

    def release(self) -> None:
        """Forget the parts as they were read; they are read again where a worker is lost."""
        self._read = []

    def _readings(self) -> list[Any]:
        if not self._read:
            self._read = [
                self._there.client.submit(_read, file, self._parts.options, pure=False)
                for file in self._files
            ]
        return self._read


class Census(NamedTuple):
    """Who and what occurs in some parts, and how often."""

    users: Vocabulary
    items: Vocabulary
    votes_per_user: Places
    squares: Squares | None  # of the features
    units: Units | None  # of the features: of all votes, once all parts are counted

    @classmethod
    def of(cls, part: Reading, weight_unit: float) -> Census:
        """Count one part."""
        votes = part.votes.in_weight_unit(weight_unit)
        users, items = Vocabulary(votes.users, "user"), Vocabulary(votes.items, "item")
        if votes.features is None:
            return cls(users, items, votes.votes_per_user, None, None)
        squares = Squares.of(votes.features.differences, votes.weight)
        return cls(users, items, votes.votes_per_user, squares, votes.features.units)

    @classmethod
    def sum(cls, counted: Sequence[Census]) -> Census:
        """Add up several."""
        users = Vocabulary.merged(*(each.users for each in counted))
        items = Vocabulary.merged(*(each.items for each in counted))
        votes_per_user = np.zeros(len(users), dtype=np.int64)
        for each in counted:
            votes_per_user[users.encode(each.users.labels)] += each.votes_per_user
        squares = [each.squares for each in counted if each.squares is not None]
        total = reduce(add, squares) if squares else None
        return cls(users, items, votes_per_user, total, counted[0].units)

    def complete(self, source: str) -> Census:
        """Return it with the units of all votes."""
        if self.units is None or self.squares is None:
            return self
        return self._replace(units=self.squares.units(self.units.names, source))


# --- on the workers -------------------------------------------------------------------------


def _read(file: Path, options: Mapping[str, Any]) -> Reading | Described | InvalidVotes:
    """Read a part. An error is a result like another: Dask would print one that is raised."""
    try:
        file.stat()
        part = read_part(file, options)
        is_anonymous = isinstance(part, Reading) and part.votes.is_anonymous
        return InvalidVotes(NO_USERS) if is_anonymous else part
    except InvalidVotes as error:
        return InvalidVotes(*error.args)  # the plain kind, which travels
    except OSError as error:
        return InvalidVotes(
            f"{file}: a worker does not find this part ({error.strerror}). Put the folder where "
            "all workers reach it, under the same name."
        )


def _given_weights(part: Reading) -> WeightSum | None:
    given = part.votes.weight_as_given
    return None if given is None else WeightSum.of(given)


def _describe(part: Reading | Described | InvalidVotes) -> Described | InvalidVotes:
    return part if isinstance(part, InvalidVotes) else described(part)


def _cut(
    part: Reading | Described | InvalidVotes,
    known: tuple[Vocabulary, Vocabulary, Units | None, float],
    bounds: list[int],
    wanted: list[int],
) -> dict[int, Piece]:
    """Cut one part into the pieces of some shards, users and items by their place among all."""
    if not isinstance(part, Reading):  # as it was before
        raise InvalidVotes("the votes have changed during the fit; fit them again.")
    users, items, units, weight_unit = known
    votes = part.votes.renumbered(users, items).in_weight_unit(weight_unit)
    if votes.features is not None and units is not None:
        votes = replace(votes, features=replace(votes.features, scale=units.scale))
    order = np.argsort(votes.user, kind="stable")
    cuts = list(pairwise(np.searchsorted(votes.user[order], bounds).tolist()))
    return {
        number: Piece.of(votes.subset(order[slice(*cuts[number])]), bounds[number])
        for number in wanted
    }
