"""How surely the consensus of an anonymous crowd is known: there, votes are drawn, and not users.

If nobody knows whose votes they are, the votes themselves are the independent units, or groups of
them where they have groups. How the consensus would vary if the votes were drawn again (bootstrap)
is found to first order without drawing: each unit moves the consensus by its pull under the
curvature of all (the sandwich, or infinitesimal jackknife). That needs no draws and no fits, it
does not change with a seed, and holds for whichever way the votes are distributed.

A vote of twice the average weight counts as two independent ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Shown
from isplitlbi.data.splits import units
from isplitlbi.estimators.certainty import (
    LEAST_CURVATURE,
    MOST_PLACES,
    Certainty,
    Evidence,
    Seen,
)
from isplitlbi.fitting import Fitted
from isplitlbi.typing import Floats

__all__ = ["certainty_of"]


def certainty_of(votes: Comparisons, fitted: Fitted) -> Certainty:
    """Find out how surely a fit knows its consensus: by its users, or by votes without users."""
    is_large = fitted.parameters.vector.width > MOST_PLACES
    if not votes.is_anonymous or is_large:
        return Certainty.of(votes, fitted)
    vector, terms = fitted.parameters.vector, fitted.parameters.terms
    kept, row = np.flatnonzero(terms.is_common(vector) > 0.0), np.full(vector.width, -1)
    row[kept] = np.arange(len(kept))
    bent, pulls, weight = _told(votes, fitted)
    bent, precision = bent[np.ix_(kept, kept)], terms.precision(vector)[kept]
    held = bent + np.diag(precision + LEAST_CURVATURE)
    scores = row[vector.scores]
    if not precision[scores].any():  # only differences of scores count: their mean may be held
        held[np.ix_(scores, scores)] += float(np.diag(bent)[scores].mean())
    inverse = np.asarray(np.linalg.inv(held), dtype=np.float64)
    squares = (pulls.T @ _times(pulls, weight)).toarray()[np.ix_(kept, kept)]
    # Units that take part in a fit are nearer to it than others: as with residuals.
    n_units = float(weight.sum())
    n_known = float(np.sum(inverse * bent))
    wider = n_units / max(n_units - n_known, 1.0)
    covariance = wider * inverse @ squares @ inverse
    seen, crowd = Seen.of(votes, fitted), np.zeros(1, dtype=np.int64)
    evidence = Evidence(seen, crowd, 1.0, row, inverse, precision)
    return Certainty(seen, max(int(n_units), 2), covariance, np.zeros(vector.width), evidence)


def _told(votes: Comparisons, fitted: Fitted) -> tuple[Floats, scipy.sparse.csr_matrix, Floats]:
    """Return the curvature of all votes, the pull of every unit, and how often each unit counts."""
    terms, n_votes = fitted.parameters.terms, len(votes)
    shown = Shown(votes.left, votes.right, votes, np.arange(n_votes))
    common = fitted.parameters.common
    margin, threshold = common.margin_and_threshold(votes.left, votes.right, shown)
    level = threshold if terms.ties == "bounded" else np.zeros(n_votes)
    if terms.ties == "log":
        level = np.log(threshold)
    said = [(votes.outcome == outcome).astype(np.float64) for outcome in (1, 0, -1)]
    found = terms.answering(fitted.link).vote_terms(margin, level, *said)
    pull_margin, pull_level, mm, mt, tt = (
        np.broadcast_to(each, margin.shape) for each in found[1:]
    )
    by_margin, by_level = _rows(votes, shown, fitted)
    weight = np.ones(n_votes) if votes.weight is None else votes.weight
    mixed = by_margin.T @ _times(by_level, weight * mt)
    bent = by_margin.T @ _times(by_margin, weight * mm) + by_level.T @ _times(by_level, weight * tt)
    bent = (bent + mixed + mixed.T).toarray()
    pulls = _times(by_margin, pull_margin) + _times(by_level, pull_level)
    if votes.group is None:
        return bent, pulls, weight
    unit = units(votes)
    n_units = int(unit.max()) + 1
    gathered = scipy.sparse.csr_matrix((weight, (unit, np.arange(n_votes))), (n_units, n_votes))
    return bent, gathered @ pulls, np.ones(n_units)


def _rows(
    votes: Comparisons, shown: Shown, fitted: Fitted
) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
    """Return what every place of the consensus counts for in every margin and every level."""
    vector, terms = fitted.parameters.vector, fitted.parameters.terms
    of_margin: list[tuple[Any, Any]] = [(votes.left, 1.0), (votes.right, -1.0)]
    of_margin += [(vector.place(each.name), each.column(shown)) for each in terms.traits]
    of_level: list[tuple[Any, Any]] = [(vector.threshold, 1.0)] if terms.has_ties else []
    if vector.has_habits:
        of_level += [(vector.habits.start + side, 1.0) for side in (votes.left, votes.right)]
    every, shape = np.arange(len(votes)), (len(votes), vector.width)
    by_margin, by_level = (
        sum(
            (
                scipy.sparse.csr_matrix(
                    (
                        np.broadcast_to(amount, every.shape),
                        (every, np.broadcast_to(at, every.shape)),
                    ),
                    shape,
                )
                for at, amount in columns
            ),
            start=scipy.sparse.csr_matrix(shape),
        )
        for columns in (of_margin, of_level)
    )
    return by_margin, by_level


def _times(rows: scipy.sparse.csr_matrix, factors: Floats) -> scipy.sparse.csr_matrix:
    return scipy.sparse.diags(factors) @ rows
