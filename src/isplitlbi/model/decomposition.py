"""What users' deviations are made of: abnormal, personal, noise (paper, Sec. 2.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.typing import Floats, Indices

__all__ = ["Decomposition", "decompose"]


class Decomposition(NamedTuple):
    """The three parts of the users' deviations, with disjoint supports.

    Each is a sparse matrix of users and places of the consensus vector: the items, then the traits,
    the threshold last. They add up to P exactly.
    """

    abnormal: csr_array
    personal: csr_array
    noise: csr_array


def decompose(
    votes: Comparisons,
    parameters: Parameters,
    abnormal_users: Indices,
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
    slots, deviation = parameters.slots, parameters.deviation
    out = np.zeros(slots.n_users, dtype=np.bool_)
    out[abnormal_users] = True
    is_abnormal = out[slots.owner]
    information = _information(votes, parameters, link)
    noise_sd = np.sqrt(information) / (information + 1.0 / nu)
    stands_out = ~is_abnormal & (np.abs(deviation) > noise_level * noise_sd)
    return Decomposition(
        *(
            _matrix(parameters, np.where(part, deviation, 0.0))
            for part in (is_abnormal, stands_out, ~is_abnormal & ~stands_out)
        )
    )


def _information(votes: Comparisons, parameters: Parameters, link: Link) -> Floats:
    """Return the Fisher information on every slot, if users voted like the consensus."""
    layout = parameters.terms.layout(votes)
    margin, threshold = layout.margins(parameters.consensus[layout.slots.coordinate])
    probability = np.exp(link.log_probabilities(margin, threshold))
    square = link.gradient(margin, threshold) ** 2
    n_votes = np.sum(layout.edges.counts, axis=0)
    by_margin, by_threshold = n_votes * np.einsum("ek,ekv->ve", probability, square)
    return layout.sum_of_squares(by_margin, by_threshold)


def _matrix(parameters: Parameters, values: Floats) -> csr_array:
    slots, filled = parameters.slots, np.flatnonzero(values)
    where = (slots.owner[filled], slots.coordinate[filled])
    shape = (slots.n_users, parameters.vector.width)
    return csr_array((values[filled], where), shape=shape)
