"""Who agrees with whom: every user with all others, and pairs of users who judged the same pairs.

What is said of users is about these users. Their intervals are for other pairs of items that they
might have been shown, and take the votes of one group for as much as they differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.splits import units
from isplitlbi.diagnostics.answered import Answers, added
from isplitlbi.diagnostics.estimates import of_share
from isplitlbi.lazy import pl
from isplitlbi.typing import Floats, Indices, Labels, Places

__all__ = ["FEWEST_COMMON", "MOST_JOINED", "PairsOfUsers", "UsersWithOthers", "independent_share"]

FEWEST_COMMON = 5  # pairs of items that two users both judged, before anything is said of the two

# Answers of two users to one pair, added up over all pairs: what comparing all users takes. Beyond
# this, only the users with the most answers are compared with each other.
MOST_JOINED = 50_000_000
JOINED_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class UsersWithOthers:
    """How far each user agrees with all others who judged the same pairs.

    Who agrees least comes first, as far as that is certain: the order is that of ``high``.

    Attributes
    ----------
    users : (n,) ids
    n_pairs : (n,)
        How many pairs of items the user and somebody else judged.
    agreement, low, high : (n,)
        How often somebody else gave the same answer, with a 95 % interval.
    """

    users: Labels
    n_pairs: Places
    agreement: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, answers: Answers, users: Labels, independent: Floats) -> Self:
        """Compare every answer with those of all others to the same pair."""
        same = np.sum(answers.shares * answers.of_others(), axis=1)
        n_pairs = np.bincount(answers.user, minlength=len(users))
        there = np.flatnonzero(n_pairs)
        share = np.clip(added(answers.user, same, len(users))[there] / n_pairs[there], 0.0, 1.0)
        low, high = of_share(share, (independent * n_pairs)[there])
        order = np.lexsort((there, share, high))
        who = there[order]
        return cls(users[who], n_pairs[who], share[order], low[order], high[order])

    def table(self, expected: float) -> pl.DataFrame:
        """Return a row for each user: user, pairs, agreement, low, high, alpha."""
        return pl.DataFrame({
            "user": self.users, "pairs": self.n_pairs, "agreement": self.agreement,
            "low": self.low, "high": self.high, "alpha": beyond_chance(self.agreement, expected),
        })  # fmt: skip


@dataclass(frozen=True, eq=False)
class PairsOfUsers:
    """How far two users agree on the pairs of items that both judged; most such pairs come first.

    Attributes
    ----------
    users, others : (n,) ids
    n_pairs : (n,)
        How many pairs of items both judged.
    agreement, low, high : (n,)
        How often both gave the same answer, with a 95 % interval.
    n_left_out : int
        How many users are not compared with each other, because there are too many.
    """

    users: Labels
    others: Labels
    n_pairs: Places
    agreement: Floats
    low: Floats
    high: Floats
    n_left_out: int

    @classmethod
    def of(cls, answers: Answers, users: Labels, independent: Floats) -> Self:
        """Compare all users who have enough pairs of items in common."""
        kept = _not_too_many(answers)
        n_left_out = len(np.unique(answers.user)) - len(np.unique(answers.user[kept]))
        user, unit, shares = answers.user[kept], answers.unit[kept], answers.shares[kept]
        shape = (len(users), answers.n_units)
        one, other, n_pairs, same = _compared(
            _matrix(user, unit, np.ones((len(user), 1)), *shape),
            _matrix(user, unit, shares, *shape),
            float(np.sum(np.bincount(unit).astype(np.float64) ** 2)),
        )
        share = np.clip(same / np.maximum(n_pairs, 1), 0.0, 1.0)
        low, high = of_share(share, np.minimum(independent[one], independent[other]) * n_pairs)
        order = np.lexsort((other, one, -n_pairs))
        return cls(
            users[one[order]], users[other[order]], n_pairs[order], share[order], low[order],
            high[order], n_left_out,
        )  # fmt: skip

    def table(self, expected: float) -> pl.DataFrame:
        """Return a row for every two users: user, other, pairs, agreement, low, high, alpha."""
        return pl.DataFrame({
            "user": self.users, "other": self.others, "pairs": self.n_pairs,
            "agreement": self.agreement, "low": self.low, "high": self.high,
            "alpha": beyond_chance(self.agreement, expected),
        })  # fmt: skip


def beyond_chance(agreement: Floats, expected: float) -> pl.Series:
    """Return alpha of some agreement; empty where all answers are the same."""
    if not expected < 1.0 - 1e-12:
        return pl.Series([None] * len(agreement), dtype=pl.Float64)
    return pl.Series(1.0 - (1.0 - agreement) / (1.0 - expected), dtype=pl.Float64)


def independent_share(votes: Comparisons, answers: Answers) -> Floats:
    """Return for every user how many independent answers one answer stands for, at most 1.

    Without groups, that is 1. Answers from one group (such as one ranking) are taken for as many as
    there would be if each group were one answer: the effective number of groups (Kish), by how many
    answers are in each.
    """
    share = np.ones(votes.n_users)
    if votes.group is None:
        return share
    cell = _cells(votes)
    is_answer = np.zeros(int(cell.max(initial=-1)) + 1, dtype=np.bool_)
    is_answer[answers.cell] = True
    group, here = units(votes), np.flatnonzero(is_answer[cell])
    here = here[np.lexsort((cell[here], group[here]))]  # sums must not depend on the rows' order
    size = added(group[here], 1.0 / np.bincount(cell)[cell[here]], int(group.max()) + 1)
    owner = np.zeros(len(size), dtype=np.int64)
    owner[group] = votes.user
    total, squares = (added(owner, each, votes.n_users) for each in (size, size**2))
    effective = total**2 / np.maximum(squares, 1e-300)
    return np.asarray(np.clip(effective / np.maximum(total, 1e-300), 0.0, 1.0))


def _matrix(
    user: Indices, unit: Places, numbers: Floats, n_users: int, n_units: int
) -> scipy.sparse.csr_array:
    """Return numbers of answers as a matrix of users and units, each as many columns wide."""
    row, what = np.nonzero(numbers)
    at = (user[row], unit[row] * numbers.shape[1] + what)
    shape = (n_users, n_units * numbers.shape[1])
    return scipy.sparse.csr_array((numbers[row, what], at), shape=shape)


def _compared(
    judged: scipy.sparse.csr_array, said: scipy.sparse.csr_array, joined: float
) -> tuple[Places, Places, Places, Floats]:
    """Return every two users with enough units in common, how many, and on how many they agree.

    Some users at a time are compared with all, so that memory does not grow with the pairs.
    """
    n_users = judged.shape[0]
    at_once = max(int(n_users * JOINED_AT_ONCE / max(joined, 1.0)), 1)
    found: list[tuple[Places, Places, Places, Floats]] = []
    for begin in range(0, n_users, at_once):
        some = slice(begin, min(begin + at_once, n_users))
        common = (judged[some] @ judged.T).tocoo()
        row, other = (each.astype(np.int64) for each in common.coords)
        enough = np.flatnonzero((common.data >= FEWEST_COMMON) & (other > row + begin))
        row, other, n_units = row[enough], other[enough], common.data[enough]
        if len(row):
            same = np.asarray((said[some] @ said.T)[row, other], dtype=np.float64).ravel()
            found.append((row + begin, other, np.rint(n_units).astype(np.int64), same))
    if not found:
        nobody: Places = np.empty(0, dtype=np.int64)
        return nobody, nobody, nobody, np.empty(0)
    one, other, n_units, same = (np.concatenate(each) for each in zip(*found, strict=True))
    return one, other, n_units, same


def _cells(votes: Comparisons) -> Places:
    """Return the number of the user and the pair of every vote, in the order of a tally."""
    lower, upper = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    key = (votes.user.astype(np.int64) * votes.n_items + lower) * votes.n_items + upper
    return np.asarray(np.unique(key, return_inverse=True)[1], dtype=np.int64)


def _not_too_many(answers: Answers) -> Places:
    """Return the answers of as many users as can be compared, those with the most answers."""
    n_of_user = np.bincount(answers.user)
    rank = np.empty(len(n_of_user), dtype=np.int64)
    rank[np.argsort(-n_of_user, kind="stable")] = np.arange(len(n_of_user))
    most = int(np.count_nonzero(n_of_user))
    while True:
        kept = np.flatnonzero(rank[answers.user] < most)
        joined = float(np.sum(np.bincount(answers.unit[kept]).astype(np.float64) ** 2))
        if joined <= MOST_JOINED or most <= 2:
            return kept
        most = max(4 * most // 5, 2)
