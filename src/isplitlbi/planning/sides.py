"""Which of two items stands on the left: each about as often as on the right, for every user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from isplitlbi.typing import Indices

__all__ = ["Sides"]

Item = TypeVar("Item")
UNEVEN = 2  # by how much one item was on the left more often than the other


class Sides:
    """How often items stood on the left more often than on the right: of each user, and in all.

    Examples
    --------
    >>> sides = Sides()
    >>> [sides.put("ann", "a", "b") for _ in range(3)]
    [('a', 'b'), ('b', 'a'), ('a', 'b')]
    """

    def __init__(self) -> None:
        self.of_user: Counter[tuple[object, object]] = Counter()
        self.of_all: Counter[object] = Counter()

    @classmethod
    def of(cls, user: Indices, left: Indices, right: Indices) -> Sides:
        """Count the sides of some votes."""
        found = cls()
        found.count(zip(user.tolist(), left.tolist(), right.tolist(), strict=True))
        return found

    def count(self, shown: Iterable[tuple[object, object, object]]) -> None:
        """Take in what was shown: user, left and right item."""
        for user, left, right in shown:
            self.of_user[user, left] += 1
            self.of_user[user, right] -= 1
            self.of_all[left] += 1
            self.of_all[right] -= 1

    def put(self, user: object, one: Item, other: Item) -> tuple[Item, Item]:
        """Return two items, the left one first, and take that in.

        What the user has seen decides where it is uneven; otherwise, what all have.
        """
        more = self.of_user[user, one] - self.of_user[user, other]
        if abs(more) < UNEVEN:
            more = self.of_all[one] - self.of_all[other] or more
        left, right = (other, one) if more > 0 else (one, other)
        self.count([(user, left, right)])
        return left, right
