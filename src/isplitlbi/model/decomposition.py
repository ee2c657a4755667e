"""What a user's deviation is made of: what is abnormal, what is personal, and what is noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout, Slots
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.typing import Floats


class Decomposition(NamedTuple):
    """The three parts of the users' deviations (paper, Sec. 2.3), with disjoint supports.

    Each is a sparse matrix with a row for every user and a column for every place of the consensus
    vector. They add up to P exactly.
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
    slots = parameters.slots
    out = np.zeros(slots.n_users, dtype=np.bool_)
    out[abnormal_users] = True
    is_abnormal = out[slots.owner]
    information = _information(votes, parameters, link)
    noise_sd = np.sqrt(information) / (information + 1.0 / nu)
    stands_out = ~is_abnormal & (np.abs(parameters.deviation) > noise_level * noise_sd)
    shape = (slots.n_users, parameters.vector.width)
    return Decomposition(
        *(
            _matrix(slots, np.where(part, parameters.deviation, 0.0), shape)
            for part in (is_abnormal, stands_out, ~is_abnormal & ~stands_out)
        )
    )


def _information(votes: Comparisons, parameters: Parameters, link: Link) -> Floats:
    """Return the Fisher information on every slot, if users voted like the consensus."""
    vector, slots, edges = Layout.of(votes, parameters.terms.traits)
    common = parameters.consensus[slots.coordinate]
    margin = common[edges.first] - common[edges.second]
    traits = [vector.place(trait.name) for trait in parameters.terms.traits]
    for place, column in zip(traits, edges.columns, strict=True):
        margin += parameters.consensus[place] * column
    threshold = np.full(len(margin), parameters.common.threshold)
    probability = np.exp(link.log_probabilities(margin, threshold))
    square = link.gradient(margin, threshold) ** 2
    n_votes = edges.first_wins + edges.ties + edges.second_wins
    by_margin, by_threshold = n_votes * np.einsum("ek,ekv->ve", probability, square)
    n_slots = len(slots.coordinate)
    information = (
        np.bincount(edges.first, by_margin, n_slots)
        + np.bincount(edges.second, by_margin, n_slots)
        + np.bincount(slots.threshold[edges.owner], by_threshold, n_slots)
    )
    for place, column in zip(traits, edges.columns, strict=True):
        of_user = np.bincount(edges.owner, by_margin * column**2, slots.n_users)
        where = slots.coordinate == place
        information[where] += of_user[slots.owner[where]]
    return np.asarray(information)


def _matrix(slots: Slots, values: Floats, shape: tuple[int, int]) -> csr_array:
    owner, filled = slots.owner, np.flatnonzero(values)
    where = (owner[filled], slots.coordinate[filled])
    return csr_array((values[filled], where), shape=shape)
