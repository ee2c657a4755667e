"""Which votes to ask for next: a batch that tells most, one vote after another.

A batch is not the best question many times over: after each vote that is chosen, all others are
worth what they would still tell beside it. Finding that for everybody would take too long, and is
not needed: a question that tells somebody of whom nothing is known a third less than before tells
others about a third less, too. So gains are kept in relation to that (the *usual* gain of a pair),
and only the few that seem to be the best of all are looked at again before one is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from isplitlbi.planning.open_questions import OpenQuestions, quadratic
from isplitlbi.planning.people import Person
from isplitlbi.typing import Floats, Indices, Mask, Places

__all__ = ["Asked", "Candidate", "Parts", "choose"]

AT_ONCE = 64  # pairs of one person whose gains are found again together: it takes as long as one
FIRST_PEOPLE = 4  # whose best votes are looked at again, before the best of all is chosen
USUAL_NOISE = 4.0  # of a vote on an even match, with the logistic link and without ties
LEAST_SHARE, LEAST_TOLD = 1e-9, 1e-200  # of what a vote tells, where that is divided by


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
    most : float
        The gain of the best of them, before any was chosen.
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
        usual = usual_gains(self.questions, self.first, self.second)
        self.most = float(found.max(initial=0.0))
        self.relative = np.where(self.is_left, found / usual, -np.inf)
        self.moment = np.full(len(self.first), self.questions.n_learned)  # when each was found

    @property
    def n_may_be_asked(self) -> int:
        """How many votes the person may still be asked for."""
        return min(self.room, int(np.count_nonzero(self.is_left)))

    def gains(self, usual: Floats) -> Floats:
        """Return the gains of all pairs, about as they are now; nothing of those that are gone."""
        return np.asarray(self.relative * usual)

    def is_up_to_date(self, row: int) -> bool:
        """Say whether the gain of a pair is exactly as it is now."""
        return bool(self.moment[row] == self.questions.n_learned)

    def look_again(self, gains: Floats, usual: Floats) -> None:
        """Find the gains as they are now of the pairs that are best by these gains."""
        n_rows = min(AT_ONCE, len(gains))
        rows = np.argpartition(-gains, n_rows - 1)[:n_rows]
        rows = rows[~np.isneginf(gains[rows])]
        found = self.person.gains(self.questions, self.first[rows], self.second[rows])
        self.relative[rows] = found / usual[rows]
        self.moment[rows] = self.questions.n_learned

    def take(self, row: int) -> tuple[int, int]:
        """Ask about a pair, and never again."""
        first, second = int(self.first[row]), int(self.second[row])
        self.person.give(self.questions, first, second)
        self.relative[row], self.is_left[row] = -np.inf, False
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


def usual_gains(questions: OpenQuestions, first: Places, second: Places) -> Floats:
    """Return what a vote of somebody would tell who is like all others, up to a factor."""
    told = quadratic(questions.told, first, second)
    variance = quadratic(questions.covariance, first, second)
    least = max(LEAST_SHARE * float(told.max(initial=0.0)), LEAST_TOLD)
    return np.maximum(told, least) / (np.maximum(variance, 0.0) + USUAL_NOISE)


def choose(people: Sequence[Candidate], n: int, parts: Parts) -> Iterator[Asked]:
    """Choose votes to ask for, those first that connect parts; fewer where no more are left."""
    connects = parts.n_parts > 1
    search = _Search(people, parts, connects=connects)
    while n > 0:
        found = search.best() if not connects or parts.n_parts > 1 else None
        if found is None and not connects:
            return
        if found is None:  # all is connected, or nobody may be asked for what is missing
            _weigh_again(people)
            connects, search = False, _Search(people, parts, connects=False)
            continue
        number, row, gain = found
        first, second = people[number].take(row)
        parts.connect(first, second)
        search.forget(people[number].questions)
        yield Asked(number, row, first, second, gain)
        n -= 1


def _weigh_again(people: Sequence[Candidate]) -> None:
    """Weigh all questions by what is known once parts are connected: it is another study then."""
    for questions in {id(each.questions): each.questions for each in people}.values():
        questions.look_again()
    for each in people:
        each.find_gains()


class _Search:
    """The best vote of everybody, as far as it is known."""

    def __init__(self, people: Sequence[Candidate], parts: Parts, *, connects: bool) -> None:
        self.people, self.parts, self.connects = people, parts, connects
        self.gain = np.full(len(people), -np.inf)
        self.row = np.zeros(len(people), dtype=np.int64)
        self.is_known = np.zeros(len(people), dtype=np.bool_)
        # People who are asked about the same pairs share what is usual of them.
        self.usual: dict[tuple[int, int], Floats] = {}

    def forget(self, questions: OpenQuestions) -> None:
        """Take in that a vote on these questions was chosen."""
        self.usual.clear()
        for number, person in enumerate(self.people):
            if person.questions is questions:
                self.is_known[number] = False

    def best(self) -> tuple[int, int, float] | None:
        """Return the best vote of all: whose, which row, and its gain."""
        for number in np.flatnonzero(~self.is_known).tolist():
            self._find(number)
        while len(self.people):
            is_settled = True
            for number in self._first_people():
                person = self.people[number]
                if not person.is_up_to_date(int(self.row[number])):
                    person.look_again(self._gains(person), self._usual(person))
                    self._find(number)
                    is_settled = False
            number = int(np.argmax(self.gain))
            if np.isneginf(self.gain[number]):
                break
            if is_settled:
                return number, int(self.row[number]), float(self.gain[number])
        return None

    def _first_people(self) -> list[int]:
        """Return who seems to have the best votes, in their order."""
        n_first = min(FIRST_PEOPLE, len(self.people))
        first = np.sort(np.argpartition(-self.gain, n_first - 1)[:n_first])
        return [int(number) for number in first if not np.isneginf(self.gain[number])]

    def _find(self, number: int) -> None:
        """Find the best pair of somebody."""
        person, self.is_known[number] = self.people[number], True
        if person.n_may_be_asked == 0:
            self.gain[number] = -np.inf
            return
        gains = self._gains(person)
        self.row[number] = at = int(np.argmax(gains))
        self.gain[number] = gains[at]

    def _gains(self, person: Candidate) -> Floats:
        gains = person.gains(self._usual(person))
        if self.connects:
            connected = self.parts.connected_by(person.first, person.second)
            gains = np.where(connected, gains, -np.inf)
        return gains

    def _usual(self, person: Candidate) -> Floats:
        key = id(person.first), id(person.questions)
        if key not in self.usual:
            self.usual[key] = usual_gains(person.questions, person.first, person.second)
        return self.usual[key]
