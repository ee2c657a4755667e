"""What all users have in common, and a few numbers by which one stands apart, without a path.

The consensus alone, with its side, features and tie habits, is the fit before anybody leaves in
which nobody has numbers of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import TASTE, THRESHOLD, Layout, Shown, Vector
from isplitlbi.kernels import Anchor
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Consensus, Parameters
from isplitlbi.model.terms import (
    HELD_FAST,
    Feature,
    Sharpness,
    Side,
    Taste,
    Terms,
    Threshold,
    Trait,
)
from isplitlbi.runtime.base import Runtime
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.likelihood import (
    ACCURACY,
    by_itself,
    fit_before_entries,
    fit_consensus,
)
from isplitlbi.solvers.newton import Solver
from isplitlbi.solvers.settings import Dynamics
from isplitlbi.typing import Floats

__all__ = ["NUMBERS", "SLOPE", "Numbers", "common_terms", "fit_common", "fit_numbers", "restated"]

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


# --- a few numbers per user ------------------------------------------------------------------

SLOPE = "slope"
NUMBERS = (SLOPE, Side.name, THRESHOLD)


class Numbers(NamedTuple):
    """Three numbers of every user that stand between the consensus and the user's votes."""

    slope: Floats  # on the scores of the consensus: 1 for the consensus itself
    side: Floats  # what is added to the margin of the left item
    threshold: Floats  # of two items without a tie habit; 0 without ties


@dataclass(frozen=True, eq=False)
class _Slope(Trait):
    """How steeply the margin of some scores counts, beyond what it counts anyway."""

    scores: Floats
    name = SLOPE

    def column(self, shown: Shown) -> Floats:
        """Return the margin of these scores."""
        return np.asarray(self.scores[shown.first] - self.scores[shown.second])


def fit_numbers(
    votes: Comparisons,
    link: Link,
    consensus: Consensus,
    free: Sequence[str],
    *,
    slope: float = 1.0,
    variance: float = 1.0,
    delta: float = 1e-3,
    runtime: Runtime | None = None,
) -> Numbers:
    """Fit some of `NUMBERS` for every user; those that are not free stay where they are.

    A prior of that variance holds them around the given slope, and the side and the threshold (or
    its logarithm, as the consensus has it) of the consensus. With a slope of zero, votes do not
    depend on the items, nor on anything else that the consensus knows, but for the threshold. Every
    machine fits the users it holds.
    """
    common = consensus.terms
    features = [term for term in common.traits if isinstance(term, Feature)]
    terms = Terms(
        (Taste(), _Slope(consensus.scores), Side(), *features, Threshold()),
        ties=common.ties, has_habits=common.has_habits,
    )  # fmt: skip
    layout = Layout.of(votes, terms.traits, has_habits=terms.has_habits, keep=False)
    vector = layout.vector
    centre = restated(consensus, terms).values
    if slope == 0.0:
        centre[vector.n_items : vector.threshold] = 0.0
        centre[vector.habits] = 0.0
    centre[vector.place(SLOPE)] = slope - 1.0  # scores alone are a slope of 1
    if terms.ties == "bounded":
        centre[vector.threshold] = max(consensus.threshold, delta)
    held = {TASTE, *vector.traits} - set(free)
    holds = np.array([HELD_FAST if name in held else 1.0 for name in layout.terms])
    anchor = Anchor.ridge(centre, layout.n_slots, variance, holds)
    alone = by_itself(votes, runtime or Local(votes))
    solver = Solver(layout, link, delta, alone, terms)
    _, deviation, *_ = solver.solve(anchor, ACCURACY, centre.copy(), np.zeros(layout.n_slots))
    fitted = Parameters(vector, layout.slots, centre, deviation, terms)
    # What is held fast moves by hardly anything; it is to move by nothing.
    numbers = [
        fitted.all_of(name) if name in free else np.full(votes.n_users, fitted.common.trait(name))
        for name in NUMBERS
    ]
    return Numbers(numbers[0] + 1.0, *numbers[1:])
