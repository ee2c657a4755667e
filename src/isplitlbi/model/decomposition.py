"""What users' deviations are made of: strong, personal, noise (paper, Sec. 2.3); and by term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.frames import Tabular
from isplitlbi.data.layout import SHARPNESS, TASTE, Layout
from isplitlbi.errors import InvalidSetting
from isplitlbi.lazy import pl
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.typing import Floats, Indices, Labels

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Decomposition", "decompose", "squares_by_term"]


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(Tabular):
    """The three parts of the users' deviations, with disjoint supports.

    Each is a sparse matrix of users and places of the consensus vector: the items, then the traits,
    the threshold last. They add up to P exactly.

    The paper calls the strong part abnormal (P_abn). Here *abnormal* always means what the tests of
    users have found; the strong part is of users who have left the consensus.

    Attributes
    ----------
    strong, personal, noise : csr_array
    shares : (n_users, n_terms)
        What each term, in the order of ``model.terms_.names``, has to do with how a user's margins
        and thresholds differ from the consensus, over the user's own votes: a share of all squares.
        Nothing for a user who does not differ.
    users, items : arrays of ids
    traits : tuple of str
        What the places after the items are.
    """

    strong: csr_array
    personal: csr_array
    noise: csr_array
    shares: Floats
    users: Labels
    items: Labels
    traits: tuple[str, ...]

    def __repr__(self) -> str:
        """Say how many numbers each part has."""
        sizes = ", ".join(f"{part.nnz:,} {name}" for name, part in self._parts().items())
        return f"Decomposition: {sizes} deviations of {len(self.users):,} users"

    @property
    def terms(self) -> tuple[str, ...]:
        """What the columns of ``shares`` are."""
        return (TASTE, *self.traits)

    def shares_of_parts(self) -> Floats:
        """Return how much of every user's squared deviation is strong, personal, noise.

        That is (n_users, 3): shares that add up to one, or nothing for a user without deviations.
        """
        squares = np.column_stack([np.asarray((part**2).sum(axis=1)) for part in self])
        return _shares(squares)

    def _parts(self) -> dict[str, csr_array]:
        return {"strong": self.strong, "personal": self.personal, "noise": self.noise}

    def _table(self) -> pl.DataFrame:
        """Return every number that is not zero: whose it is, of which term and item, which part.

        Only taste is of items.
        """
        terms = pl.Series([TASTE] * len(self.items) + list(self.traits), dtype=pl.String)
        nothing = pl.Series([None] * len(self.traits), dtype=pl.Series(self.items).dtype)
        items, users, tables = pl.Series(self.items).append(nothing), pl.Series(self.users), []
        for name, part in self._parts().items():
            entries = part.tocoo()
            at = entries.col.astype(np.int64)
            whose = entries.row.astype(np.int64)
            columns = {"user": users.gather(whose), "term": terms.gather(at)}
            columns |= {
                "item": items.gather(at),
                "part": pl.Series([name] * len(at), dtype=pl.String),
            }
            columns["deviation"] = pl.Series(entries.data)
            tables.append(pl.DataFrame(columns).with_columns(_user=whose, _place=at))
        return pl.concat(tables).sort("_user", "_place").drop("_user", "_place")

    def __iter__(self) -> Iterator[csr_array]:
        """Return the three parts one after another."""
        return iter((self.strong, self.personal, self.noise))


def decompose(
    votes: Comparisons,
    parameters: Parameters,
    left_users: Indices,
    link: Link,
    nu: float,
    noise_level: float,
) -> Decomposition:
    """Split P into what is strong, what is personal, and what is noise.

    Strong is all of a user who has left the consensus. Of the rest, an entry is personal where it
    exceeds ``noise_level`` times the standard deviation it would have if the user voted like the
    consensus: with information h of the user's own votes on that entry, a ridge of variance nu
    turns their noise into a deviation of variance h / (h + 1/nu)**2.
    """
    if not noise_level >= 0.0:  # which is so of what is no number, too
        raise InvalidSetting(f"the noise level must be 0 or more, but it is {noise_level:g}.")
    slots, deviation = parameters.slots, parameters.deviation
    out = np.zeros(slots.n_users, dtype=np.bool_)
    out[left_users] = True
    is_strong = out[slots.owner]
    information = parameters.units**2 * _information(votes, parameters, link)
    noise_sd = np.sqrt(information) / (information + 1.0 / nu)
    stands_out = ~is_strong & (np.abs(deviation) > noise_level * noise_sd)
    shares = _shares(squares_by_term(votes, parameters))
    strong, personal, noise = (
        _matrix(parameters, np.where(part, deviation, 0.0))
        for part in (is_strong, stands_out, ~is_strong & ~stands_out)
    )
    traits = parameters.vector.traits
    return Decomposition(strong, personal, noise, shares, votes.users, votes.items, traits)


def squares_by_term(votes: Comparisons, parameters: Parameters) -> Floats:
    """Return by how much users differ from the consensus, (n_users, n_terms).

    For each term this is the mean over a user's votes of the square of what the term adds to the
    margin or, of the threshold, to the threshold of the pair.
    """
    layout, terms = parameters.terms.layout(votes), parameters.terms
    slots, edges, item = layout.slots, layout.edges, layout.slots.coordinate
    own = parameters.units * parameters.deviation
    n_votes = np.sum(edges.counts, axis=0)
    added = [own[edges.first] - own[edges.second]]
    apart = _apart(layout, parameters)
    if apart is not None:
        added.append(apart * parameters.all_of(SHARPNESS)[edges.owner])
    for back, column in zip(range(len(edges.columns), 0, -1), edges.columns, strict=True):
        added.append(column * own[slots.threshold - back][edges.owner])
    if terms.has_ties:
        more = parameters.all_of(terms.names[-1]) - parameters.common.threshold
        habits = parameters.common.habits
        of_pair = habits[item[edges.first]] * habits[item[edges.second]]
        added.append(of_pair * more[edges.owner])
    else:
        added.append(np.zeros(len(n_votes)))
    total = np.maximum(layout.sum_by_user(n_votes), 1e-300)
    return np.column_stack([layout.sum_by_user(n_votes * each**2) / total for each in added])


def _shares(squares: Floats) -> Floats:
    """Return what share of its row every square is; nothing where all of a row are zero."""
    total = squares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(squares, total, out=np.zeros_like(squares), where=total > 0.0))


def _apart(layout: Layout, parameters: Parameters) -> Floats | None:
    """Return by how much the reference of sharpness prefers the first item of every edge."""
    if not parameters.terms.has_sharpness:
        return None
    reference, item = parameters.terms.reference, layout.slots.coordinate
    reference = np.zeros(parameters.n_items) if reference is None else reference
    return np.asarray(reference[item[layout.edges.first]] - reference[item[layout.edges.second]])


def _information(votes: Comparisons, parameters: Parameters, link: Link) -> Floats:
    """Return the Fisher information on every slot, if users voted like the consensus."""
    terms, vector = parameters.terms, parameters.vector
    layout = terms.layout(votes)
    habits = parameters.consensus[vector.habits] if vector.has_habits else None
    margin, level = layout.margins(parameters.consensus[layout.slots.coordinate], habits)
    n_votes = np.sum(layout.edges.counts, axis=0)
    if terms.ties == "bounded":
        probability = np.exp(link.log_probabilities(margin, level))
        square = link.gradient(margin, level) ** 2
        by_margin, by_level = n_votes * np.einsum("ek,ekv->ve", probability, square)
    else:
        bends = terms.answering(link).vote_terms(margin, level, *layout.edges.counts)[3:]
        by_margin, _, by_level = (np.broadcast_to(each, margin.shape) for each in bends)
    information = layout.sum_of_squares(by_margin, by_level)
    apart = _apart(layout, parameters)
    if apart is not None:
        sharpness = layout.slots.threshold - len(layout.edges.columns) - 1
        information[sharpness] = layout.sum_by_user(by_margin * apart**2)
    return information


def _matrix(parameters: Parameters, values: Floats) -> csr_array:
    slots, filled = parameters.slots, np.flatnonzero(values)
    where = (slots.owner[filled], slots.coordinate[filled])
    shape = (slots.n_users, parameters.vector.width)
    return scipy.sparse.csr_array((values[filled], where), shape=shape)
