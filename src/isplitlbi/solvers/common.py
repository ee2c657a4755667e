"""What all users have in common, without a path.

The consensus alone, with its side, features and tie habits, is the fit before anybody leaves in
which nobody has numbers of their own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Vector
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Consensus
from isplitlbi.model.terms import (
    Sharpness,
    Terms,
)
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.likelihood import (
    fit_before_entries,
    fit_consensus,
)
from isplitlbi.solvers.settings import Dynamics

__all__ = ["common_terms", "fit_common", "restated"]

COMMON_ACCURACY = 1e-6  # of the fit before anybody leaves; far below what votes tell


def common_terms(terms: Terms, *, has_ties: bool = True) -> Terms:
    """Return the terms of a consensus alone: nobody has numbers of their own.

    Where no vote is a tie there is no threshold, whatever the model allows. The paper's terms, in
    which the consensus is as simple as it can be, stay as they are.
    """
    if terms.ties == "bounded" and has_ties:
        return terms
    shared = tuple(term for term in terms.all if not isinstance(term, Sharpness))
    return replace(
        terms,
        all=shared,
        scales=(0.0,) * len(shared),
        ties=terms.ties if has_ties else "none",
        has_habits=terms.has_habits and has_ties,
    )


def restated(consensus: Consensus, terms: Terms) -> Consensus:
    """Return the same consensus in other terms; what they do not have is left out."""
    if terms == consensus.terms:
        return consensus
    before, names = consensus.vector, terms.names[1:]  # after taste
    after = Vector(before.n_items, names, terms.has_habits)
    values = np.zeros(after.width)
    values[after.scores] = consensus.scores
    for name in set(names) & set(before.traits):
        values[after.place(name)] = consensus.values[before.place(name)]
    if not terms.has_ties:
        values[after.threshold] = 0.0
    elif after.has_habits and before.has_habits:
        values[after.habits] = consensus.values[before.habits]
    return Consensus(after, values, terms)


def fit_common(
    votes: Comparisons,
    link: Link,
    terms: Terms,
    *,
    variance: float,
    delta: float = 1e-3,
    runtime: Runtime | None = None,
) -> Consensus:
    """Fit what all users have in common, as if they were one; see `common_terms`.

    Scores are held towards zero by a prior of that variance. Where machines hold other votes, all
    find the consensus of all.
    """
    if terms.ties == "bounded":
        return fit_consensus(votes, link, delta, variance, runtime)
    terms = replace(terms, score_variance=variance)
    fitted = fit_before_entries(votes, link, Dynamics(1.0), runtime, COMMON_ACCURACY, terms)
    return fitted.common
