"""Rankings with ties, recommendations from them, and what a user's deviation is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from isplitlbi.data.comparisons import Comparisons, Slots
from isplitlbi.kernels import numpy_loops
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.typing import Floats

Relation = Literal["better", "tied", "worse"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Items from best to worst, in tiers.

    One item beats another when their scores differ by more than the threshold; otherwise they tie.
    Being tied is not transitive (this is a *semiorder*), so tiers are a summary: a tier starts at
    its best item and takes in all that tie with it. `relation` is exact.

    Attributes
    ----------
    items, scores, tier : (n_items,)
        Best first; tiers are counted from 1.
    threshold : float
    compared : (n_items,) bool
        Whether this user ever compared the item; everywhere true for the consensus. An item that
        was not compared stands where the consensus puts it.
    """

    items: NDArray[Any]
    scores: Floats
    threshold: float
    tier: NDArray[np.intp]
    compared: NDArray[np.bool_]

    @classmethod
    def of(
        cls, items: NDArray[Any], scores: Floats, threshold: float, compared: NDArray[np.bool_]
    ) -> Ranking:
        """Rank items by score.

        Examples
        --------
        >>> names, seen = np.array(["a", "b", "c"]), np.ones(3, dtype=bool)
        >>> Ranking.of(names, np.array([0.0, 2.0, 1.5]), 1.0, seen).tiers
        [['b', 'c'], ['a']]
        """
        order = np.argsort(-scores, kind="stable")
        tier = np.empty(len(order), dtype=np.intp)
        current, best = 0, np.inf
        for place, score in enumerate(scores[order]):
            if best - score > threshold:
                current, best = current + 1, score
            tier[place] = current
        return cls(items[order], scores[order], threshold, tier, compared[order])

    @property
    def tiers(self) -> list[list[Any]]:
        """The items, tier by tier."""
        ends = np.flatnonzero(np.diff(self.tier)) + 1
        return [part.tolist() for part in np.split(self.items, ends)]

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        """Show one line per tier."""
        width = len(str(len(self.tiers)))
        unseen = set(self.items[~self.compared].tolist())
        lines = [
            f"{number:>{width}}  " + ", ".join(f"({i})" if i in unseen else str(i) for i in tier)
            for number, tier in enumerate(self.tiers, start=1)
        ]
        if unseen:
            lines.append("(in brackets: never compared by this user, placed by the consensus)")
        return "\n".join(lines)


def relation(scores: Floats, threshold: float, a: int, b: int) -> Relation:
    """Say how item a stands to item b."""
    difference = scores[a] - scores[b]
    if abs(difference) <= threshold:
        return "tied"
    return "better" if difference > 0 else "worse"


def as_good_as(scores: Floats, threshold: float, item: int) -> NDArray[np.intp]:
    """Return the items that tie with one, nearest first."""
    distance = np.abs(scores - scores[item])
    near = np.argsort(distance, kind="stable")
    tied = (distance[near] <= threshold) & (near != item)
    return np.asarray(near[tied])


def better_than(scores: Floats, threshold: float, item: int) -> NDArray[np.intp]:
    """Return the items that beat one, the slightest step up first."""
    gain = scores - scores[item]
    near = np.argsort(gain, kind="stable")
    return np.asarray(near[gain[near] > threshold])


class Decomposition(NamedTuple):
    """The three parts of the users' deviations (paper, Sec. 2.3), with disjoint supports.

    Each is a sparse matrix of shape (n_users, n_items + 1), the last column for the threshold. They
    add up to P exactly.
    """

    abnormal: csr_array
    personal: csr_array
    noise: csr_array


def decompose(
    votes: Comparisons,
    parameters: Parameters,
    abnormal_users: NDArray[np.intp],
    link: Link,
    nu: float,
    noise_level: float,
) -> Decomposition:
    """Split P into what is abnormal, what is personal, and what is noise.

    Abnormal is all of a user outside the consensus. Of the rest, an entry is personal where it
    exceeds ``noise_level`` times the standard deviation it would have if the user voted like the
    consensus: with information h of the user's own votes on that entry, a ridge of variance nu
    turns their noise into a deviation of variance h / (h + 1/nu)**2.
    """
    slots = votes.slots
    out = np.zeros(slots.n_users, dtype=np.bool_)
    out[abnormal_users] = True
    is_abnormal = out[slots.owner]
    information = _information(votes, parameters, link)
    noise_sd = np.sqrt(information) / (information + 1.0 / nu)
    stands_out = ~is_abnormal & (np.abs(parameters.deviation) > noise_level * noise_sd)
    shape = (slots.n_users, parameters.n_items + 1)
    return Decomposition(
        *(
            _matrix(slots, np.where(part, parameters.deviation, 0.0), shape)
            for part in (is_abnormal, stands_out, ~is_abnormal & ~stands_out)
        )
    )


def _information(votes: Comparisons, parameters: Parameters, link: Link) -> Floats:
    """Return the Fisher information on every slot, if users voted like the consensus."""
    slots, edges = votes.slots, votes.edges
    nobody = np.zeros(len(slots.coordinate))
    margin, threshold = numpy_loops.margins(slots, edges, parameters.consensus, nobody)
    probability = np.exp(link.log_probabilities(margin, threshold))
    square = link.gradient(margin, threshold) ** 2
    n_votes = edges.first_wins + edges.ties + edges.second_wins
    by_margin, by_threshold = n_votes * np.einsum("ek,ekv->ve", probability, square)
    n_slots = len(slots.coordinate)
    return np.asarray(
        np.bincount(edges.first, by_margin, n_slots)
        + np.bincount(edges.second, by_margin, n_slots)
        + np.bincount(slots.threshold[edges.owner], by_threshold, n_slots)
    )


def _matrix(slots: Slots, values: Floats, shape: tuple[int, int]) -> csr_array:
    owner, filled = slots.owner, np.flatnonzero(values)
    where = (owner[filled], slots.coordinate[filled])
    return csr_array((values[filled], where), shape=shape)
