"""The consensus of all but one: how surely it is known, and its tie habits without that user."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isplitlbi.abnormal.directions import Block, Directions, Said
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.matrices import diagonals
from isplitlbi.typing import Floats, Mask

__all__ = ["LEAST_KNOWN", "MOST_KEPT", "SMALLEST", "Habits", "Kept", "Others"]

# Errors of the consensus depend on each other; beyond so many items they are taken as independent.
MOST_ITEMS = 2_000
MOST_KEPT = 1 << 22  # numbers of matrices that are needed again
SMALLEST, LEAST_KNOWN = 1e-5, 1e-9


class Kept(dict[int, Floats]):
    """Matrices of users that are needed again, as far as there is room."""

    def __init__(self) -> None:
        super().__init__()
        self.room = MOST_KEPT

    def note(self, user: int, matrix: Floats) -> None:
        """Keep that of one user."""
        if user not in self and matrix.size <= self.room:
            self[user] = matrix.copy()
            self.room -= matrix.size


class Others(NamedTuple):
    """How surely the scores of the consensus are known, and what that would be without a user."""

    covariance: Floats  # (n_items + 1, n_items + 1) of errors, or (n_items + 1,) of each by itself
    inside: Mask  # whose votes the consensus is made of
    mm: Floats  # how the votes on every question bend by its margin
    kept: Kept  # errors that were found already
    # How many times as much errors vary as the bend of votes tells, where these have weights.
    noisier: float = 1.0

    @classmethod
    def of(cls, inputs: Inputs, said: Said, inside: Mask, variance: float) -> Others:
        """Invert the information of all votes that make the consensus.

        ``variance`` is that of the prior of its scores; with none, they are known exactly.
        """
        answers, n_items = inputs.answers, inputs.votes.n_items
        if not variance:
            return cls(np.zeros(n_items + 1), inside, said.mm, Kept())
        counts = inside[answers.user]
        left, right, mm = answers.left[counts], answers.right[counts], said.mm[counts]
        noisier = 1.0
        if answers.group is None:  # votes of one group count for less already
            weighted, bent = inputs.runtime.total(
                float(np.sum(answers.weight[counts] * mm)), float(np.sum(mm))
            )
            noisier = max(weighted / max(bent, LEAST_KNOWN), 1.0)
        own = np.bincount(left, mm, n_items) + np.bincount(right, mm, n_items)
        if n_items > MOST_ITEMS:
            (own,) = inputs.runtime.total(own)
            alone = np.append(1.0 / (own + 1.0 / variance), 0.0)
            return cls(alone, inside, said.mm, Kept(), noisier)
        between = np.bincount(left * np.int64(n_items) + right, mm, n_items * n_items)
        (own, between) = inputs.runtime.total(own, between)
        between = between.reshape(n_items, n_items)
        known = np.diag(own + 1.0 / variance) - between - between.T
        return cls(np.pad(np.linalg.inv(known), (0, 1)), inside, said.mm, Kept(), noisier)

    @property
    def variances(self) -> Floats:
        """Of the errors of every item."""
        every = self.covariance if self.covariance.ndim == 1 else np.diagonal(self.covariance)
        return np.asarray(every[:-1])

    def error(self, block: Block) -> Floats:
        """Return the covariances of the errors of the consensus of all but each: (n, w, w)."""
        if self.covariance.ndim == 1 and not self.covariance.any():  # known exactly
            return np.zeros((len(block.users), block.width, block.width))
        users, first = block.users.tolist(), block.n_traits
        ends = first + np.sum(block.slot >= 0, axis=1)
        if all(user in self.kept for user in users):
            found = np.zeros((len(users), block.width, block.width))
            for each, user, end in zip(found, users, ends.tolist(), strict=True):
                each[first:end, first:end] = self.kept[user]
            return found
        found = self._error(block)
        for each, user, end in zip(found, users, ends.tolist(), strict=True):
            self.kept.note(user, each[first:end, first:end])
        return found

    def _error(self, block: Block) -> Floats:
        nothing, item = np.zeros_like(self.mm), block.item
        bend = block.bend(self.mm, nothing, nothing)
        bend[:, : block.n_traits] = bend[:, :, : block.n_traits] = 0.0  # items alone
        bend *= self.inside[block.users][:, None, None]
        if self.covariance.ndim == 1:
            diagonal = np.einsum("nii->ni", bend)
            variance = self.covariance[item]
            return diagonals(variance / np.maximum(1.0 - variance * diagonal, SMALLEST))
        together = self.covariance[item[:, :, None], item[:, None, :]]
        return np.asarray(np.linalg.solve(np.eye(block.width) - together @ bend, together))


class Habits(NamedTuple):
    """The tie habits of items by the votes of the others, for every user."""

    by_level: Floats  # (n_questions,) by how much these change the level
    variance: Floats  # (n_users,) of the error that they make in the levels of a user, on average
    known: Floats  # (n_items,) how much the votes of all, and the prior, tell of each

    @classmethod
    def of_others(
        cls,
        inputs: Inputs,
        directions: Directions,
        said: Said,
        inside: Mask,
        known: Floats | None = None,
    ) -> Habits:
        """Take a user's own votes out of the habits of the items that were shown.

        Each habit is corrected by itself: pairs of items that are compared at random give the same
        as all habits together. How much is known of habits may be given, of votes that are not
        here.
        """
        answers, consensus, n_items = inputs.answers, inputs.consensus, inputs.votes.n_items
        if not consensus.vector.has_habits:
            return cls.none(inputs)
        first = directions.first[answers.user] - directions.n_traits
        left, right = first + directions.left, first + directions.right
        pull, own, amount = (
            np.bincount(left, each, len(directions.item))
            + np.bincount(right, each, len(directions.item))
            for each in (said.by_level, said.tt, answers.n_votes * answers.weight)
        )
        owner, counts = np.zeros((2, len(directions.item)), dtype=np.int64)
        owner[left] = owner[right] = answers.user
        counts[left] = counts[right] = inside[answers.user]
        item = np.minimum(directions.item, n_items)  # slots of traits are of no item
        if known is None:
            (total,) = inputs.runtime.total(np.bincount(item, own * counts, n_items + 1))
            known = total[:-1] + 1.0 / consensus.terms.habit_variance
        by_others = np.maximum(np.append(known, np.inf)[item] - counts * own, LEAST_KNOWN)
        step = -counts * pull / by_others
        votes = np.maximum(answers.sum_by_user(answers.n_votes * answers.weight), LEAST_KNOWN)
        share = amount / votes[owner]
        variance = np.bincount(owner, share**2 / by_others, answers.n_users).astype(np.float64)
        return cls(np.asarray(step[left] + step[right]), variance, known)

    @classmethod
    def none(cls, inputs: Inputs) -> Habits:
        """Take habits as they are."""
        n_questions, n_users = len(inputs.answers.user), inputs.answers.n_users
        return cls(np.zeros(n_questions), np.zeros(n_users), np.zeros(0))
