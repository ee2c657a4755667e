"""In which ways users may deviate from the consensus, and what their votes tell of each way.

A user's directions are the slope on the consensus scores (how sharply they are told apart), the
preferred side and the effect of every feature (as far as there are such), the logarithm of the tie
threshold, and the score of every item that the user compared. Directions and matrices of all users
are far larger than the votes: they are formed for some users at a time, and not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from isplitlbi.abnormal.expectation import Answers
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.model.answering import Answering, ForcedChoice, LogThreshold
from isplitlbi.model.links import Link
from isplitlbi.typing import Floats, Indices, Mask, Places

__all__ = ["SIDE", "SLOPE", "Block", "Directions", "Said", "for_each"]

# The first columns of every user; the second is that of the side where sides mean something.
SLOPE, SIDE = 0, 1
# Users are looked at together with those who have up to so many times as many directions.
ALIKE, FEW = 1.4, 16
NUMBERS_AT_ONCE = 1 << 18  # of one matrix of every user of a block
MUCH_WORK = 2e7  # cubes of numbers of directions: with less, threads wait for each other


class Said(NamedTuple):
    """What the votes on every question say at some margin and threshold.

    Slopes are those of the log-likelihood, by the margin and by the logarithm of the threshold;
    then there is how it bends, which is what so many votes tell on average.
    """

    log_likelihood: Floats
    by_margin: Floats
    by_level: Floats
    mm: Floats
    mt: Floats
    tt: Floats

    @classmethod
    def of(cls, link: Link, margin: Floats, level: Floats, counts: Floats, has_ties: bool) -> Self:
        """Evaluate votes: (n_questions, 3) for left, tie and right."""
        answering: Answering = LogThreshold(link) if has_ties else ForcedChoice(link)
        found = answering.vote_terms(margin, level, *counts.T)
        loss, by_margin, by_level, *bends = (
            np.asarray(np.broadcast_to(each, margin.shape)) for each in found
        )
        return cls(-loss, -by_margin, -by_level, *bends)


class Work(Protocol):
    """Something that there is work on: a block, or what is known of one."""

    @property
    def work(self) -> int:
        """About how much: cubes of numbers of directions."""


Some = TypeVar("Some", bound=Work)


def for_each(
    parts: Iterable[Some], call: Callable[[Some], None], n_threads: int, is_much: bool | None = None
) -> None:
    """Call for each part, on several threads where that is worth it.

    Whether it is, is either known, or told by the matrices of the parts.
    """
    some = list(parts)
    left = iter(some[::-1])  # each thread takes the next one; the largest are last

    def take() -> None:
        for part in left:
            call(part)

    if is_much is None:
        is_much = sum(part.work for part in some) >= MUCH_WORK
    n_threads = min(n_threads, len(some))
    if n_threads <= 1 or not is_much:
        take()
        return
    with ThreadPoolExecutor(n_threads - 1) as pool:
        others = [pool.submit(take) for _ in range(n_threads - 1)]
        take()
        for other in others:
            other.result()


@dataclass(frozen=True)
class Directions:
    """The directions of all users.

    Attributes
    ----------
    answers : Answers
        The questions.
    others : list of (n_questions,)
        The columns of side and features.
    left, right : (n_questions,)
        Among the user's directions, that of the left and of the right item.
    n_columns : (n_users,)
        How many directions everybody has.
    item : (n_slots,)
        The item of every direction that is one, user after user, and...
    first : (n_users,)
        ...where those of each user begin.
    """

    answers: Answers
    others: list[Floats]
    left: Places
    right: Places
    n_columns: Places
    item: Indices
    first: Places
    n_items: int

    @classmethod
    def of(cls, answers: Answers, votes: Comparisons) -> Self:
        """Find the directions of all users."""
        vector, slots, _ = Layout.of(votes)
        others = list(answers.columns.values())
        before = len(others) + 2  # slope, others, threshold
        keys, stride = slots.keys(vector.width), np.int64(vector.width)
        first = slots.start[:-1].astype(np.int64)
        left, right = (
            np.searchsorted(keys, answers.user * stride + item) - first[answers.user] + before
            for item in (answers.left, answers.right)
        )
        n_columns = slots.sizes.astype(np.int64) - len(vector.traits) + before
        return cls(
            answers, others, left, right, n_columns, slots.coordinate, first, votes.n_items
        )  # fmt: skip

    @property
    def threshold(self) -> int:
        """The column of the threshold."""
        return 1 + len(self.others)

    @property
    def n_traits(self) -> int:
        """The number of columns before those of items."""
        return 2 + len(self.others)

    def blocks(
        self, users: Mask | Places, apart: Floats, most: int | None = None
    ) -> Iterator[Block]:
        """Return users who have about as many directions together, so many at most.

        ``apart`` is how far apart the consensus puts the items of every question: the column of
        the slope.
        """
        some = np.flatnonzero(users) if users.dtype == np.bool_ else users.astype(np.int64)
        order = some[np.argsort(self.n_columns[some], kind="stable")]
        sizes = self.n_columns[order]
        begin = 0
        while begin < len(order):
            end = int(np.searchsorted(sizes, ALIKE * sizes[begin] + FEW, side="right"))
            end = min(end, begin + max(1, NUMBERS_AT_ONCE // int(sizes[end - 1]) ** 2))
            end = end if most is None else min(end, begin + max(1, most))
            yield self.block(order[begin:end], apart)
            begin = end

    def block(self, users: Places, apart: Floats) -> Block:
        """Return these users together."""
        answers = self.answers
        start, n_questions = answers.start[users], np.diff(answers.start)[users]
        row = np.repeat(np.arange(len(users)), n_questions)
        before = np.concatenate([[0], np.cumsum(n_questions)[:-1]])
        question = np.arange(len(row)) + np.repeat(start - before, n_questions)
        n_traits, width = self.n_traits, int(self.n_columns[users].max())
        place = np.arange(width - n_traits)
        there = place < (self.n_columns[users] - n_traits)[:, None]
        item = np.full((len(users), width), self.n_items)
        where = np.where(there, self.first[users][:, None] + place, 0)
        item[:, n_traits:] = np.where(there, self.item[where], self.n_items)
        slot = np.full((len(users), width), -1)
        slot[:, n_traits:] = np.where(there, where, -1)
        one = np.ones(len(question))
        columns = [np.zeros_like(question)]
        columns += [np.full_like(question, 1 + place) for place in range(len(self.others))]
        columns += [self.left[question], self.right[question]]
        amounts = [apart[question], *(other[question] for other in self.others), one, -one]
        return Block(users, question, row, columns, amounts, self.threshold, item, slot)


class Block(NamedTuple):
    """Some users, with matrices filled up by zeros beyond a user's own directions."""

    users: Places
    question: Places  # their questions
    row: Places  # who of them was asked
    columns: list[Places]  # the directions that a question's margin depends on
    amounts: list[Floats]  # and how much
    threshold: int
    item: Places  # (n_users, width) the item of every direction; n_items where it is none
    slot: Places  # (n_users, width) where the item's number lies among those of all users, or -1

    @property
    def n_traits(self) -> int:
        """The number of directions before those of items."""
        return self.threshold + 1

    @property
    def width(self) -> int:
        """The largest number of directions."""
        return int(self.item.shape[1])

    @property
    def size(self) -> int:
        """The number of numbers in a matrix of every user."""
        return len(self.users) * self.width**2

    @property
    def work(self) -> int:
        """About how much there is to do with such matrices."""
        return self.size * self.width

    def alone(self) -> Block:
        """Return the same for numbers of these users' questions alone, in their order."""
        return self._replace(question=np.arange(len(self.question)))

    def of(self, some: Mask) -> Block:
        """Return some of these users, with matrices as wide as before."""
        asked = some[self.row]
        place = np.cumsum(some) - 1
        return Block(
            self.users[some], self.question[asked], place[self.row[asked]],
            [each[asked] for each in self.columns], [each[asked] for each in self.amounts],
            self.threshold, self.item[some], self.slot[some],
        )  # fmt: skip

    def times(self, n: int) -> Block:
        """Return these users so often, one set after another."""
        n_questions = len(self.question)
        offset = np.repeat(np.arange(n) * len(self.users), n_questions)
        return Block(
            np.tile(self.users, n), np.tile(self.question, n), np.tile(self.row, n) + offset,
            [np.tile(each, n) for each in self.columns],
            [np.tile(each, n) for each in self.amounts],
            self.threshold, np.tile(self.item, (n, 1)), np.tile(self.slot, (n, 1)),
        )  # fmt: skip

    def runs(self, most: int) -> Iterator[tuple[range, slice]]:
        """Return users one after another who have so many questions at most, and where these are.

        One user may have more.
        """
        ends = np.searchsorted(self.row, np.arange(len(self.users) + 1))
        begun = 0
        while begun < len(self.users):
            end = int(np.searchsorted(ends, ends[begun] + most, side="right")) - 1
            end = max(end, begun + 1)
            yield range(begun, end), slice(ends[begun], ends[end])
            begun = end

    def along(self, matrices: Floats, some: slice) -> Floats:
        """Return what matrices, (n_users, width, n), make of margins of some questions: rows."""
        row = self.row[some]
        return np.asarray(sum(
            amount[some, None] * matrices[row, column[some]]
            for column, amount in zip(self.columns, self.amounts, strict=True)
        ))  # fmt: skip

    def pull(self, by_margin: Floats, by_level: Floats) -> Floats:
        """Return slopes by every direction, given those of every question: (n_users, width)."""
        size, first = len(self.users) * self.width, self.row * self.width
        by_margin, by_level = by_margin[self.question], by_level[self.question]
        where = [first + self.threshold, *(first + column for column in self.columns)]
        values = [by_level, *(amount * by_margin for amount in self.amounts)]
        pulled = np.bincount(np.concatenate(where), np.concatenate(values), size)
        return np.asarray(pulled.reshape(-1, self.width))

    def bend(self, mm: Floats, mt: Floats, tt: Floats) -> Floats:
        """Return curvatures: (n_users, width, width)."""
        n_users, width, last = len(self.users), self.width, self.threshold
        mm, mt, tt = mm[self.question], mt[self.question], tt[self.question]
        *traits, left, right = self.columns
        first, begins = self.row * width, np.searchsorted(self.row, np.arange(n_users))
        items = np.concatenate([first + left, first + right])

        def by_item(of_left: Floats, of_right: Floats) -> Floats:
            added = np.bincount(items, np.concatenate([of_left, of_right]), n_users * width)
            return np.asarray(added.reshape(n_users, width))

        # What two items have in common, then their diagonals; the right one counts the other way.
        pairs = np.bincount((first + left) * width + right, -mm, n_users * width * width)
        half: Floats = pairs.reshape(n_users, width, width).astype(np.float64, copy=False)
        found = np.asarray(half + np.swapaxes(half, 1, 2))
        np.einsum("nii->ni", found)[:] += by_item(mm, mm)
        # The rows of traits, of which the threshold is the last; then their columns.
        moved = [amount * mm for amount in self.amounts[: len(traits)]] + [mt]
        for one, by in enumerate(moved):
            found[:, one] += by_item(by, -by)
            for other, amount in enumerate(self.amounts[: len(traits)]):
                found[:, one, other] = np.add.reduceat(amount * by, begins)
        found[:, last, last] = np.add.reduceat(tt, begins)
        found[:, :last, last] = found[:, last, :last]
        found[:, last + 1 :, : last + 1] = np.swapaxes(found[:, : last + 1, last + 1 :], 1, 2)
        return found

    def spread(self, said: Said, answers: Answers) -> Floats | None:
        """Return the variance of slopes, where it is not how votes bend.

        Of one vote of weight 2 the slope varies more than that of two votes. Votes of one group
        count for less, so that their slopes vary as they bend.
        """
        weight = answers.weight
        if answers.group is not None or np.all(weight[self.question] == 1.0):
            return None
        return self.bend(weight * said.mm, weight * said.mt, weight * said.tt)

    def variance(self, covariance: Floats) -> Floats:
        """Return how much the margins of questions vary with deviations, (n_users, w, w)."""
        flat, first = covariance.ravel(), self.row * self.width
        parts = list(zip(self.columns, self.amounts, strict=True))
        return np.asarray(sum(
            one * other * flat[(first + column) * self.width + place]
            for column, one in parts
            for place, other in parts
        ))  # fmt: skip

    def push(self, deviation: Floats) -> tuple[Floats, Floats]:
        """Return by how much deviations, (n_users, width), move margin and level of questions."""
        flat, first = deviation.ravel(), self.row * self.width
        margin = sum(
            amount * flat[first + column]
            for column, amount in zip(self.columns, self.amounts, strict=True)
        )
        return np.asarray(margin), flat[first + self.threshold]
