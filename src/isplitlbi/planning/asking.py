"""Which votes to ask for next: a batch that tells most, one vote after another.

A batch is not the best question many times over: after each vote that is chosen, all others are
worth what they would still tell beside it. The best vote of a person is looked for again only where
it was the best of all before: nearly always, gains fall as a batch grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import scipy

from isplitlbi.planning.open_questions import OpenQuestions
from isplitlbi.planning.people import Person
from isplitlbi.typing import Indices, Mask, Places

__all__ = ["Asked", "Candidate", "Parts", "choose"]

AT_ONCE = 64  # pairs of one person whose gains are found again together: it takes as long as one


class Asked(NamedTuple):
    """A vote to ask for: whom, about which two items, and what it is expected to tell, in bits."""

    person: int
    row: int  # of the pairs that the person might have been asked about
    first: int
    second: int
    gain: float


@dataclass
class Candidate:
    """Somebody who may be asked, with what they may be asked about.

    Attributes
    ----------
    person : Person
    questions : OpenQuestions
        What their votes are to tell; others may be asked for the same.
    first, second : (n_pairs,)
        Pairs of items that the person may be asked about, each once.
    room : int
        How many votes the person may be asked for.
    """

    person: Person
    questions: OpenQuestions
    first: Places
    second: Places
    room: int

    def __post_init__(self) -> None:
        """Find the gains of all pairs."""
        self.is_left = np.ones(len(self.first), dtype=np.bool_)
        self.find_gains()

    def find_gains(self) -> None:
        """Find the gains of all pairs that are left, as they are now."""
        found = self.person.gains(self.questions, self.first, self.second)
        self.gains = np.where(self.is_left, found, -np.inf)
        self.moment = np.full(len(self.first), self.questions.n_learned)  # when each was found

    @property
    def n_may_be_asked(self) -> int:
        """How many votes the person may still be asked for."""
        return min(self.room, int(np.count_nonzero(self.is_left)))

    def best(self, parts: Parts, *, connects: bool) -> tuple[float, int] | None:
        """Return a gain that no pair exceeds, and of which pair; nothing where no pair is left."""
        gains = self.gains
        if connects:
            gains = np.where(parts.connected_by(self.first, self.second), gains, -np.inf)
        if self.n_may_be_asked == 0:
            return None
        at = int(np.argmax(gains))
        return None if np.isneginf(gains[at]) else (float(gains[at]), at)

    def is_up_to_date(self, row: int) -> bool:
        """Say whether the gain of a pair is as it is now; otherwise it is at most as it was."""
        return bool(self.moment[row] == self.questions.n_learned)

    def look_again(self, row: int) -> None:
        """Find the gain of a pair as it is now, and those of the next best with it."""
        rows = np.append(row, self._top())
        rows = rows[~np.isneginf(self.gains[rows])]
        self.gains[rows] = self.person.gains(self.questions, self.first[rows], self.second[rows])
        self.moment[rows] = self.questions.n_learned

    def _top(self) -> Places:
        n_rows = min(AT_ONCE, len(self.gains))
        return np.argpartition(-self.gains, n_rows - 1)[:n_rows]

    def take(self, row: int) -> tuple[int, int]:
        """Ask about a pair, and never again."""
        first, second = int(self.first[row]), int(self.second[row])
        self.person.give(self.questions, first, second)
        self.gains[row], self.is_left[row] = -np.inf, False
        self.room -= 1
        return first, second


class Parts:
    """The parts of a study between which nobody has voted, until votes connect them."""

    def __init__(self, n_items: int, first: Indices, second: Indices) -> None:
        # A stored model answers other questions without this library.
        from scipy.sparse.csgraph import connected_components

        votes = np.ones(len(first)), (first, second)
        graph = scipy.sparse.coo_array(votes, shape=(n_items, n_items))
        self.n_parts, self.of_item = connected_components(graph, directed=False)

    def at(self, items: Places) -> Parts:
        """Return the same of some items alone."""
        some = copy(self)
        some.of_item = self.of_item[items]
        some.n_parts = len(np.unique(some.of_item))
        return some

    def connected_by(self, first: Places, second: Places) -> Mask:
        """Say which pairs would connect two parts."""
        return np.asarray(self.of_item[first] != self.of_item[second])

    def connect(self, first: int, second: int) -> None:
        """Take in a vote."""
        one, other = self.of_item[first], self.of_item[second]
        if one != other:
            self.of_item = np.where(self.of_item == other, one, self.of_item)
            self.n_parts -= 1


def choose(people: Sequence[Candidate], n: int, parts: Parts) -> Iterator[Asked]:
    """Choose votes to ask for, those first that connect parts; fewer where no more are left."""
    is_connecting = parts.n_parts > 1
    queue = _Queue(people, parts, connects=is_connecting)
    while n > 0:
        if is_connecting and parts.n_parts == 1:
            _weigh_again(people)
            is_connecting, queue = False, _Queue(people, parts, connects=False)
        found = queue.first()
        if found is None and not is_connecting:
            return
        if found is None:  # nobody may be asked for what is missing: parts stay apart
            _weigh_again(people)
            is_connecting, queue = False, _Queue(people, parts, connects=False)
            continue
        number, row, gain = found
        first, second = people[number].take(row)
        parts.connect(first, second)
        queue.line_up(number)
        yield Asked(number, row, first, second, gain)
        n -= 1


def _weigh_again(people: Sequence[Candidate]) -> None:
    """Weigh all questions by what is known once parts are connected: it is another study then."""
    for questions in {id(each.questions): each.questions for each in people}.values():
        questions.look_again()
    for each in people:
        each.find_gains()


class _Queue:
    """Everybody by the gain of their best vote, which is looked at again once it comes first."""

    def __init__(self, people: Sequence[Candidate], parts: Parts, *, connects: bool) -> None:
        self.people, self.parts, self.connects = people, parts, connects
        self.waiting: list[tuple[float, int, int]] = []
        for number in range(len(people)):
            self.line_up(number)

    def line_up(self, number: int) -> None:
        """Put somebody in their place."""
        found = self.people[number].best(self.parts, connects=self.connects)
        if found is not None:
            gain, row = found
            heappush(self.waiting, (-gain, number, row))

    def first(self) -> tuple[int, int, float] | None:
        """Return the best vote of all: whose, which row, and its gain."""
        while self.waiting:
            gain, number, row = heappop(self.waiting)
            person = self.people[number]
            if self.connects and not self.parts.connected_by(person.first[row], person.second[row]):
                self.line_up(number)
            elif person.is_up_to_date(row):
                return number, row, -gain
            else:
                person.look_again(row)
                self.line_up(number)
        return None
