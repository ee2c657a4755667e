"""People who may be asked, and what their next votes would tell.

The margin of a vote on two items, given by a person, is

    slope * (score of the first - of the second)   the consensus, as far as the person follows it
    + taste for the first - for the second         the person's own
    + sharpness * (reference of the first - of the second)

What the person has of their own is known up to errors, and these hang together with those of the
consensus: somebody who has voted often on two items has told already what they think of them, and
another vote of theirs tells little of what all people think. All of that is Gaussian, so that a
vote is taken in by an update of rank one.

Conventions
-----------
own        numbers of a person: a place that is always zero (of all items not compared), the
           sharpness, then the tastes for the items that the person has compared
follows    (n_own, n_compared) by how much the expected own numbers change with the scores of the
           consensus for these items, where the person follows it with a slope of one
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from isplitlbi.planning.open_questions import OpenQuestions, quadratic
from isplitlbi.typing import Floats, Places

__all__ = ["NOTHING", "SHARPNESS", "TASTES", "Answers", "Person"]

NOTHING, SHARPNESS, TASTES = 0, 1, 2  # places among own numbers; tastes begin at the last
LEAST_INFORMATION = 1e-12

# Nodes and weights of Gauss and Hermite for a normal variable.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Answers:
    """How a person answers, on the average.

    Attributes
    ----------
    scores : (n_items,)
        The person's own.
    side : float
        What is added to the margin of the left item.
    information : callable
        Of margins and pairs (first, second): what one vote tells of its margin.
    """

    scores: Floats
    side: float
    information: Callable[[Floats, Places, Places], Floats]

    def told_by_one(self, first: Places, second: Places, variance: Floats) -> Floats:
        """Return what a vote tells of its margin, with either item on the left.

        The margin is known up to a variance: far from an even match, a vote tells less.
        """
        margin = self.scores[first] - self.scores[second]
        spread = np.sqrt(variance)
        sides = (self.side, -self.side) if self.side else (0.0,)
        found = np.zeros(len(margin))
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            for side in sides:
                there = margin + side + node * spread
                found += weight / len(sides) * self.information(there, first, second)
        return np.maximum(found, LEAST_INFORMATION)


@dataclass
class Person:
    """Somebody who may be asked, and what is known of them.

    Attributes
    ----------
    answers : Answers
    slope : float
        How far the person follows the consensus: 0 for somebody who votes whatever the items are,
        negative for somebody who turns the consensus upside down.
    position : (n_items,)
        Where the taste for every item is among the own numbers; `NOTHING` if it was not compared.
    covariance : (n_own, n_own)
        Of the own numbers, given the consensus.
    follows : (n_own, n_compared)
    reference : (n_items,)
        What the sharpness multiplies.
    taste_variance : float
        Of the taste for an item that the person has not compared.
    side_variance : float
        Of the side.
    """

    answers: Answers
    slope: float
    position: Places
    covariance: Floats
    follows: Floats
    reference: Floats
    taste_variance: float = 0.0
    side_variance: float = 0.0
    compared: Places = field(init=False)

    def __post_init__(self) -> None:
        """Find the compared items, in the order of their tastes."""
        there = np.flatnonzero(self.position != NOTHING)
        self.compared = there[np.argsort(self.position[there], kind="stable")]

    @classmethod
    def without_own(
        cls, answers: Answers, side_variance: float = 0.0, taste_variance: float = 0.0
    ) -> Person:
        """Return somebody of whom nothing is known."""
        n_items = len(answers.scores)
        return cls(
            answers, 1.0, np.full(n_items, NOTHING), np.zeros((TASTES, TASTES)),
            np.zeros((TASTES, 0)), np.zeros(n_items), taste_variance, side_variance,
        )  # fmt: skip

    # --- what a vote would tell ----------------------------------------------------------------

    def gains(self, questions: OpenQuestions, first: Places, second: Places) -> Floats:
        """Return what one vote on each pair would tell of all questions, in bits."""
        known = self._of_consensus(questions.covariance, first, second)
        told = self._of_consensus(questions.told, first, second)
        variance = np.maximum(known + self._of_own(first, second), 0.0)
        noise = 1.0 / self.answers.told_by_one(first, second, variance)
        return np.asarray(np.maximum(told, 0.0) / (variance + noise))

    def _of_own(self, first: Places, second: Places) -> Floats:
        """Return the variance of the person's own part of the margin, given the consensus."""
        new = (self.position[first] == NOTHING).astype(np.float64)
        new += self.position[second] == NOTHING
        apart = self.reference[first] - self.reference[second]
        at = self.position[first], self.position[second]
        own = _form(self.covariance, *at, apart)
        return np.asarray(own + self.taste_variance * new + self.side_variance)

    def _of_consensus(self, matrix: Floats, first: Places, second: Places) -> Floats:
        """Return the form of a matrix of the consensus, along what a margin follows of it."""
        found = quadratic(matrix, first, second)
        if len(self.compared):
            one, other = self.position[first], self.position[second]
            apart = self.reference[first] - self.reference[second]
            rows = self.follows @ matrix[self.compared]
            found = found + _form(rows[:, self.compared] @ self.follows.T, one, other, apart)
            by_taste = rows[one, first] - rows[one, second] - rows[other, first]
            by_taste = by_taste + rows[other, second]
            by_sharpness = apart * (rows[SHARPNESS, first] - rows[SHARPNESS, second])
            found = found + 2.0 * (by_taste + by_sharpness)
        return np.asarray(self.slope**2 * found)

    # --- taking in a vote ----------------------------------------------------------------------

    def give(self, questions: OpenQuestions, first: int, second: int) -> None:
        """Take in that the person is asked about a pair: here, and of the questions."""
        pair = np.array([first]), np.array([second])
        known = self._of_consensus(questions.covariance, *pair)
        variance = np.maximum(known + self._of_own(*pair), 0.0)
        noise = 1.0 / self.answers.told_by_one(*pair, variance)
        self._compare(first)
        self._compare(second)
        apart = self.reference[first] - self.reference[second]
        amount = np.zeros(len(self.covariance))
        amount[self.position[first]] += 1.0
        amount[self.position[second]] -= 1.0
        amount[NOTHING], amount[SHARPNESS] = 0.0, apart
        direction = np.zeros(questions.n_items)
        direction[self.compared] = self.follows.T @ amount
        direction[first] += 1.0
        direction[second] -= 1.0
        self._learn(amount, direction[self.compared], float(noise[0]) + self.side_variance)
        questions.learn(self.slope * direction, float(variance[0] + noise[0]))

    def _learn(self, amount: Floats, direction: Floats, noise: float) -> None:
        along = self.covariance @ amount
        moved = along / (amount @ along + noise)
        self.covariance = self.covariance - np.outer(moved, along)
        self.follows = self.follows - np.outer(moved, direction)

    def _compare(self, item: int) -> None:
        """Give the person a taste for an item that they have not compared before."""
        has_own = self.taste_variance > 0.0 or self.covariance.any()
        if self.position[item] != NOTHING or not has_own:
            return
        n_own = len(self.covariance)
        self.covariance = np.pad(self.covariance, (0, 1))
        self.covariance[n_own, n_own] = self.taste_variance
        self.follows = np.pad(self.follows, (0, 1))
        self.position = self.position.copy()
        self.position[item] = n_own
        self.compared = np.append(self.compared, item)


def _form(matrix: Floats, one: Places, other: Places, apart: Floats) -> Floats:
    """Return the form of a matrix of own numbers along the own part of margins."""
    by_sharpness = matrix[one, SHARPNESS] - matrix[other, SHARPNESS]
    crossed = 2.0 * apart * by_sharpness + apart**2 * matrix[SHARPNESS, SHARPNESS]
    return np.asarray(quadratic(matrix, one, other) + crossed)
