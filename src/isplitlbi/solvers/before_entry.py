"""Where on the time axis things will happen, told from the fit before anybody leaves."""

from __future__ import annotations

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Link
from isplitlbi.model.terms import PAPER, Terms
from isplitlbi.runtime.base import Runtime
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.likelihood import fit_before_entries
from isplitlbi.solvers.settings import Dynamics
from isplitlbi.typing import Floats

__all__ = ["default_times", "residuals", "times_of"]

# A user whose votes differ from the consensus by less than this share of one vote has nothing to
# say; if all are like that, the times must still be finite.
SMALLEST_RESIDUAL = 1e-3

# How far beyond the time by which nine in ten have left. Where nu is what the votes tell, whoever
# is still there then has no reason to leave.
PAST_LATE, PAST_LATE_SIZED = 4.0, 1.5


def default_times(
    votes: Comparisons,
    link: Link,
    dynamics: Dynamics,
    n_times: int = 60,
    runtime: Runtime | None = None,
    terms: Terms = PAPER,
) -> Floats:
    """Return geometric times from before the first entry to well past the last useful one.

    Before the entries the dual grows as Z = t P / nu, so that user u leaves at about nu / |P_u|:
    the inverse of what the consensus leaves unexplained of that user's votes.
    Users who say little that is their own leave very late, and waiting for them teaches nothing:
    the range ends at a multiple of the time by which nine in ten of the active users have left.
    """
    return times_of(residuals(votes, link, dynamics, runtime or Local(votes), terms), n_times)


def residuals(
    votes: Comparisons, link: Link, dynamics: Dynamics, runtime: Runtime, terms: Terms = PAPER
) -> Floats:
    """Return what the consensus leaves unexplained of the votes of every user who has some."""
    fitted = fit_before_entries(votes, link, dynamics, runtime, terms=terms)
    norm = np.sqrt(np.add.reduceat(fitted.deviation**2, fitted.slots.start[:-1]))
    return norm[votes.votes_per_user > 0] / dynamics.coupling


def times_of(residual: Floats, n_times: int = 60, *, knows_nu: bool = False) -> Floats:
    """Return the times that `default_times` finds from the residuals of all users.

    Where nu is what the votes tell, the range ends sooner.
    """
    entry = 1.0 / np.maximum(residual, SMALLEST_RESIDUAL)
    first, late = np.min(entry), np.quantile(entry, 0.9)
    past = PAST_LATE_SIZED if knows_nu else PAST_LATE
    return np.geomspace(0.5 * first, max(past * late, 8.0 * first), n_times)
