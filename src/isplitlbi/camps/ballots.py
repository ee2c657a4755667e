"""Votes as the search for camps sees them: who chose what, and all that is no matter of taste.

Conventions
-----------
edge       the votes of one user on one ordered pair; where votes have features, one vote
offset     what a margin holds besides the scores: side and features, as the model knows them
slot       one item that one user has compared; the slots of a user lie together
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Shown
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Ballots", "Batch"]

WIDER = 1.2  # by which factor users of a batch may have more items than the first
AT_ONCE = 1 << 19  # numbers of the matrices of some users, which are worked on together


class Batch(NamedTuple):
    """Some users with about as many items each, and their edges."""

    users: Places  # (n_users,)
    items: Places  # (n_users, n_slots); the number of items where a user has fewer
    edges: Places
    row: Places  # of the user of every edge, in this batch
    left: Places  # the slot of the left item of every edge
    right: Places


@dataclass(frozen=True, eq=False)
class Ballots:
    """All edges, user after user, and their votes."""

    n_users: int
    n_items: int
    user: Places  # (n_edges,)
    left: Places
    right: Places
    offset: Floats
    threshold: Floats
    counts: Floats  # (3, n_edges): left is better, tie, right is better
    edge: Places  # (n_votes,) of every vote
    link: Link
    has_ties: bool

    @classmethod
    def of(cls, votes: Comparisons, parameters: Parameters, link: Link) -> Self:
        """Take what is no matter of taste from a model of these votes."""
        n_items, n_votes = votes.n_items, len(votes)
        left, right = votes.left.astype(np.int64), votes.right.astype(np.int64)
        user = votes.user.astype(np.int64)
        keys = [right, left, user]
        if votes.features is not None:
            keys = [np.arange(n_votes), *keys]
        order = np.lexsort(keys)
        ordered = np.stack([key[order] for key in keys])
        is_new = np.ones(n_votes, dtype=np.bool_)
        is_new[1:] = (np.diff(ordered, axis=1) != 0).any(axis=0)
        edge = np.empty(n_votes, dtype=np.int64)
        edge[order] = np.cumsum(is_new) - 1
        first = order[is_new]
        shown = Shown(left[first], right[first], votes, first)
        offset, threshold = _without_scores(parameters).margin_and_threshold(
            user[first], left[first], right[first], shown
        )
        return cls(
            votes.n_users, n_items, user[first], left[first], right[first], offset, threshold,
            _counts(votes, edge, len(first)), edge, link, parameters.terms.has_ties,
        )  # fmt: skip

    def counted(self, votes: Comparisons, which: Mask) -> Floats:
        """Return the votes of every edge, of some votes only; ``votes`` are those of `of`."""
        return _counts(votes, self.edge, len(self.user), which)

    def only_of(self, users: Mask) -> Self:
        """Return the edges of some users; the places of users stay as they are."""
        kept = users[self.user]
        return replace(
            self, user=self.user[kept], left=self.left[kept], right=self.right[kept],
            offset=self.offset[kept], threshold=self.threshold[kept], counts=self.counts[:, kept],
            edge=np.where(kept, np.cumsum(kept) - 1, -1)[self.edge],
        )  # fmt: skip

    def bend(self, margin: Floats, counts: Floats, edges: Places) -> tuple[Floats, Floats]:
        """Return the first two derivatives of the loss of some edges by their margins."""
        left, ties, right = counts[:, edges]
        if not self.has_ties:
            _, slope, curvature = self.link.forced_terms(margin, left, right)
        else:
            terms = self.link.vote_terms(margin, self.threshold[edges], left, ties, right)
            slope, curvature = terms[1], terms[3]
        return np.asarray(slope), np.maximum(curvature, 0.0)

    def log_probabilities(self, margin: Floats, edges: Places) -> Floats:
        """Return those of left, tie and right, in the first place; no tie where there are none."""
        if not self.has_ties:
            nothing = np.full_like(margin, -np.inf)
            return np.stack([self.link.win(margin)[0], nothing, self.link.win(-margin)[0]])
        threshold = self.threshold[edges].reshape(-1, *[1] * (margin.ndim - 1))
        found = self.link.log_probabilities(margin, np.broadcast_to(threshold, margin.shape))
        return np.moveaxis(found, -1, 0)

    def batches(self) -> Iterator[Batch]:
        """Yield users with about as many items, few enough for matrices of them all."""
        keys = np.concatenate([self.user, self.user]) * self.n_items
        keys += np.concatenate([self.left, self.right])
        slots, slot = np.unique(keys, return_inverse=True)
        owner, item = np.divmod(slots, self.n_items)
        size = np.bincount(owner, minlength=self.n_users)
        start = np.concatenate([[0], np.cumsum(size)])
        left, right = slot.reshape(2, -1) - start[self.user]
        voters = np.flatnonzero(size)
        voters = voters[np.argsort(size[voters], kind="stable")]
        begin, first_edge = 0, np.searchsorted(self.user, np.arange(self.n_users + 1))
        while begin < len(voters):
            widest = size[voters[begin:]]
            fits = np.arange(1, len(widest) + 1) * widest**2 <= AT_ONCE
            fits &= widest <= WIDER * widest[0] + 1
            end = begin + max(int(fits.sum()), 1)
            users, width = voters[begin:end], int(size[voters[end - 1]])
            place = np.arange(width)
            there = place < size[users][:, None]
            at = np.where(there, start[users][:, None] + place, 0)
            edges = np.concatenate([np.arange(*first_edge[u : u + 2]) for u in users])
            row = np.repeat(np.arange(len(users)), np.diff(first_edge)[users])
            items = np.where(there, item[at], self.n_items)
            yield Batch(users, items, edges, row, left[edges], right[edges])
            begin = end


def _without_scores(parameters: Parameters) -> Parameters:
    """Return parameters that tell of sides, features and thresholds only."""
    is_score = parameters.slots.coordinate < parameters.n_items
    consensus = parameters.consensus.copy()
    consensus[parameters.vector.scores] = 0.0
    return replace(
        parameters, consensus=consensus, terms=parameters.terms.referring(None),
        deviation=np.where(is_score, 0.0, parameters.deviation),
    )  # fmt: skip


def _counts(votes: Comparisons, edge: Places, n_edges: int, which: Mask | None = None) -> Floats:
    """Count votes, or weigh them, by edge and outcome."""
    weight = np.ones(len(votes)) if votes.weight is None else votes.weight
    weight = weight if which is None else np.where(which, weight, 0.0)
    weight = np.where(edge >= 0, weight, 0.0)
    key = (1 - votes.outcome.astype(np.int64)) * n_edges + np.maximum(edge, 0)
    return np.asarray(np.bincount(key, weight, 3 * n_edges), dtype=np.float64).reshape(3, n_edges)
