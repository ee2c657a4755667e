"""How items fared against each other, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.frames import Tabular
from isplitlbi.estimators.cells import aligned, amount
from isplitlbi.lazy import pl
from isplitlbi.markup import printable
from isplitlbi.model.parameters import Consensus
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Floats, Labels

__all__ = ["HeadToHead", "head_to_head"]


@dataclass(frozen=True, eq=False, repr=False)
class HeadToHead(Tabular):
    """How items fared against each other, pair by pair; better items first.

    Attributes
    ----------
    item, other : (n_pairs,) ids
        The first of the two stands higher in the consensus.
    votes : (n_pairs,)
        On this pair; sums of weights where votes have weights.
    observed, predicted : (n_pairs, 3)
        Shares of the votes that the first wins, ties and loses: as they are, and as they are to be
        expected from people like these, whoever they are, with the sides and the features that
        these votes had. In a crowd, the consensus expects them.
    nouns : Nouns
        What items are called where this is shown.
    """

    item: Labels
    other: Labels
    votes: Any
    observed: Floats
    predicted: Floats
    nouns: Nouns = NOUNS

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        """Say how many pairs there are."""
        return f"HeadToHead: {len(self)} pairs"

    def _table(self) -> pl.DataFrame:
        """Return every pair that was compared: shares of votes, observed and predicted."""
        shares = {
            f"{before}{name}": values[:, place]
            for before, values in (("", self.observed), ("predicted_", self.predicted))
            for place, name in enumerate(("wins", "ties", "losses"))
        }
        return pl.DataFrame({"item": self.item, "other": self.other, "votes": self.votes, **shares})

    def cells(self) -> list[list[str]]:
        """Return the table as texts, the headings first: shares are in per cent."""
        rows = [
            [
                printable(str(item)), printable(str(other)), amount(votes), _shares(observed),
                _shares(predicted),
            ]
            for item, other, votes, observed, predicted in zip(
                self.item.tolist(), self.other.tolist(), self.votes, self.observed, self.predicted,
                strict=True,
            )
        ]  # fmt: skip
        return [["item", "other", "votes", "W/T/L %", "predicted"], *rows]

    def __str__(self) -> str:
        """Show one line per pair."""
        return "\n".join(aligned(self.cells(), self.nouns))


def head_to_head(
    votes: Comparisons, consensus: Consensus, log_probabilities: Floats, nouns: Nouns = NOUNS
) -> HeadToHead:
    """Put what the votes say of every pair beside what is expected of them.

    Parameters
    ----------
    votes
        All votes.
    consensus
        Decides which of two items is the first.
    log_probabilities : (n_votes, 3)
        Those of left, tie and right of every vote, if somebody unknown had given it.
    nouns
        What items are called where this is shown.
    """
    place = np.empty(votes.n_items, dtype=np.int64)
    order = np.argsort(-consensus.scores, kind="stable")
    place[order] = np.arange(votes.n_items)
    left, right = place[votes.left], place[votes.right]
    is_turned = left > right
    pair = np.minimum(left, right) * np.int64(votes.n_items) + np.maximum(left, right)
    pairs, of_vote = np.unique(pair, return_inverse=True)
    weight = np.ones(len(votes)) if votes.weight is None else votes.weight
    amount = np.bincount(of_vote, weight, len(pairs))

    def shares(chances: Floats) -> Floats:
        """Return the mean over the votes of each pair, as the first of it sees them."""
        seen = np.where(is_turned[:, None], chances[:, ::-1], chances)
        sums = [np.bincount(of_vote, weight * each, len(pairs)) for each in seen.T]
        return np.column_stack(sums) / amount[:, None]

    observed = votes.outcome[:, None] == np.array([1, 0, -1])
    return HeadToHead(
        votes.items[order[pairs // votes.n_items]],
        votes.items[order[pairs % votes.n_items]],
        amount if votes.weight is not None else amount.astype(np.int64),
        shares(observed.astype(np.float64)),
        shares(np.exp(log_probabilities)),
        nouns,
    )


def _shares(parts: Floats) -> str:
    return "/".join(f"{100 * part:.0f}" for part in parts)
