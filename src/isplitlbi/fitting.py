"""One fit, wherever it is done: votes and settings in, `Fitted` out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Overview
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.path import RegularizationPath
from isplitlbi.selection import Selection
from isplitlbi.solvers import Dynamics


@dataclass(frozen=True)
class Fitted:
    """What a fit has found, and what it was found from.

    Attributes
    ----------
    votes : Comparisons or Parts
        The votes, or the files that hold them.
    summary : Overview
        The main figures of the votes.
    dynamics, time, path, selection
        Of a fit that follows a path; None for others, and without cross-validation.
    parameters : Parameters
        Consensus and deviations, at the chosen time where there is one.
    costs : Costs or None
        What the rounds of a fit on a cluster came to.
    chosen : mapping
        Other numbers that were chosen, by name.
    """

    votes: Comparisons | Parts
    summary: Overview
    link: Link
    dynamics: Dynamics | None
    time: float | None
    parameters: Parameters
    path: RegularizationPath | None = None
    selection: Selection | None = None
    costs: Any = None
    chosen: Mapping[str, float] = field(default_factory=dict)
