"""How far people agree: a section of the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isplitlbi.diagnostics.agreement import Splits, measure
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.output.agreement import counts_in_words, measures_in_cells, users_in_cells
from isplitlbi.runtime.local import Local

__all__ = ["agreement_of"]


def agreement_of(
    model: ScoreEstimator, progress: Callable[[float, str], None]
) -> dict[str, Any] | None:
    """Return what the section says: sentences, a table of numbers, and who agrees least.

    There is nothing of an anonymous crowd and of a single user.
    """
    if not model.has_users or np.count_nonzero(model.summary_.votes_per_user) < 2:
        return None
    # With the loops of the fit: they are compiled by now.
    backend = model.get_params().get("backend")
    found = measure(
        model.votes(), Splits(), model.nouns, progress, lambda votes: Local(votes, backend=backend)
    )
    return {
        "sentence": found.sentence(),
        "counts": counts_in_words(found),
        "remarks": [each for each in found.remarks if each != found.sentence()],
        "measures": measures_in_cells(found),
        "users": users_in_cells(found.users_table()),
    }
