"""How surely users' parameters are known: their votes' curvature, user by user, inverted.

Given the consensus, users are independent, so that each has a small matrix of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import SHARPNESS, Layout
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.typing import Floats, Indices, Places

__all__ = ["Curvature", "user_covariances"]

# Users are inverted together with those who have up to so many times as many parameters.
ALIKE = 1.3
NUMBERS_AT_ONCE = 1 << 24  # of all matrices that are inverted together


class Curvature(NamedTuple):
    """Slope and expected curvature of the loss at some parameters, edge by edge."""

    layout: Layout
    margin: Floats
    level: Floats  # the threshold, on whatever scale terms add up
    by_margin: Floats
    by_threshold: Floats
    mm: Floats
    mt: Floats
    tt: Floats
    apart: Floats | None  # by how much the reference of sharpness prefers the first item

    @classmethod
    def of(cls, votes: Comparisons, link: Link, parameters: Parameters) -> Curvature:
        """Evaluate all votes."""
        terms, layout = parameters.terms, parameters.terms.layout(votes)
        vector, slots = parameters.vector, parameters.slots
        units = parameters.units
        total = parameters.consensus[slots.coordinate] + units * parameters.deviation
        habits = parameters.consensus[vector.habits] if vector.has_habits else None
        margin, level = layout.margins(total, habits)
        apart = None
        if terms.has_sharpness:
            reference = np.zeros(vector.n_items) if terms.reference is None else terms.reference
            item, edges = slots.coordinate, layout.edges
            apart = reference[item[edges.first]] - reference[item[edges.second]]
            margin = margin + apart * parameters.all_of(SHARPNESS)[edges.owner]
        found = terms.answering(link).vote_terms(margin, level, *layout.edges.counts)
        by_margin, by_threshold, mm, mt, tt = (
            np.broadcast_to(each, margin.shape) for each in found[1:]
        )
        return cls(layout, margin, level, by_margin, by_threshold, mm, mt, tt, apart)

    def of_slots(self) -> Floats:
        """Return what that means for every slot by itself, where its unit is one."""
        bent = self.layout.sum_of_squares(self.mm, self.tt)
        if self.apart is not None:
            sharpness = self.layout.slots.threshold - len(self.layout.edges.columns) - 1
            bent[sharpness] = self.layout.sum_by_user(self.mm * self.apart**2)
        return bent

    def of_habits(self) -> Floats:
        """Return what it means for the tie habit of every item."""
        edges, item = self.layout.edges, self.layout.slots.coordinate
        n_items = self.layout.vector.n_items
        first, second = item[edges.first], item[edges.second]
        both = np.bincount(first, self.tt, n_items) + np.bincount(second, self.tt, n_items)
        return both.astype(np.float64, copy=False)


def user_covariances(
    curvature: Curvature, units: Floats, nu: Floats, users: Indices
) -> Iterator[tuple[Indices, Floats]]:
    """Return the covariances of users' deviations, given the consensus, some users at a time.

    Parameters
    ----------
    curvature
        At the parameters.
    units : (n_slots,)
        How large the unit of every slot is.
    nu : (n_users,)
        Variance of everybody's prior.
    users
        Whom to look at.

    Yields
    ------
    users and their matrices : (n, size, size), filled up with zeros beyond a user's own slots
    """
    sizes = curvature.layout.slots.sizes
    order = users[np.argsort(sizes[users], kind="stable")]
    begin = 0
    while begin < len(order):
        smallest = sizes[order[begin]]
        end = int(np.searchsorted(sizes[order], ALIKE * smallest + 4, side="right"))
        most = max(1, NUMBERS_AT_ONCE // int(sizes[order[end - 1]]) ** 2)
        end = min(end, begin + most)
        together = order[begin:end]
        yield together, _inverted(curvature, units, nu[together], together)
        begin = end


def _inverted(curvature: Curvature, units: Floats, nu: Floats, users: Indices) -> Floats:
    """Return the covariances of users who have about as many slots."""
    layout = curvature.layout
    slots, edges = layout.slots, layout.edges
    sizes = slots.sizes[users]
    width = int(sizes.max())
    edge = _all_between(edges.start[users], edges.start[users + 1])
    row = np.repeat(np.arange(len(users)), np.diff(edges.start)[users])
    start = slots.start[users][row]
    # What every edge touches: two items, the traits, the threshold; and how much.
    last = slots.threshold[users][row] - start
    n_columns = len(edges.columns)
    places = [edges.first[edge] - start, edges.second[edge] - start]
    places += [last - n_columns + c for c in range(n_columns)]
    one = np.ones(len(edge))
    amounts = [one, -one, *(column[edge] for column in edges.columns)]
    if curvature.apart is not None:
        places.append(last - n_columns - 1)
        amounts.append(curvature.apart[edge])
    by_margin = [
        amount * units[place + start] for amount, place in zip(amounts, places, strict=True)
    ]
    by_threshold = units[last + start]
    mm, mt, tt = (each[edge] for each in (curvature.mm, curvature.mt, curvature.tt))
    where, values = [], []

    def add(place: Places, other: Places, value: Floats) -> None:
        where.append((row * width + place) * width + other)
        values.append(value)

    for place, amount in zip(places, by_margin, strict=True):
        for other, second in zip(places, by_margin, strict=True):
            add(place, other, mm * amount * second)
        add(place, last, mt * amount * by_threshold)
        add(last, place, mt * amount * by_threshold)
    add(last, last, tt * by_threshold**2)
    matrix = np.bincount(
        np.concatenate(where), np.concatenate(values), len(users) * width * width
    ).astype(np.float64, copy=False)
    matrices = matrix.reshape(len(users), width, width)
    diagonal = np.arange(width)
    matrices[:, diagonal, diagonal] += 1.0 / nu[:, None]
    inverse = np.linalg.inv(matrices)
    inverse[:, diagonal, diagonal] *= diagonal < sizes[:, None]
    return np.asarray(inverse)


def _all_between(start: Places, end: Places) -> Places:
    """Return all numbers from each start to before its end."""
    sizes = end - start
    offset = np.repeat(start - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.asarray(offset + np.arange(sizes.sum()))
