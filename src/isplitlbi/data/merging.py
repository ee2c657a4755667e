"""Old votes and new ones together; what came twice is told, and kept unless asked otherwise."""

from __future__ import annotations

import logging
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.vocabulary import counted
from isplitlbi.errors import InvalidVotes
from isplitlbi.typing import Mask

__all__ = ["Repeated", "repeated_votes", "with_new_votes"]

Repeated = Literal["keep", "drop"]

log = logging.getLogger("isplitlbi")


def with_new_votes(old: Comparisons, new: Comparisons, repeated: Repeated = "keep") -> Comparisons:
    """Return old and new votes together, and log how many new ones are repeated.

    Examples
    --------
    >>> monday = Comparisons.from_arrays(["ann"], ["tea"], ["milk"], [1])
    >>> tuesday = Comparisons.from_arrays(["ann", "bob"], ["tea"] * 2, ["milk"] * 2, [1, 0])
    >>> with_new_votes(monday, tuesday)
    Comparisons: 3 votes (33.3 % ties) by 2 users on 2 items
    >>> with_new_votes(monday, tuesday, repeated="drop")
    Comparisons: 2 votes (50.0 % ties) by 2 users on 2 items
    """
    together = Comparisons.joined(old, new)
    is_repeated = repeated_votes(together, len(old))
    n_repeated = int(is_repeated.sum())
    if not n_repeated:
        return together
    all_of = "all" if n_repeated == len(new) else f"{n_repeated:,} of"
    what = f"{all_of} {counted(len(new), 'new vote')} {'is' if n_repeated == 1 else 'are'}"
    if repeated == "keep":
        log.warning(
            "%s the same as votes that the model has already. They are kept and count again.", what
        )
        return together
    log.warning("%s the same as votes that the model has already. They are left out.", what)
    if n_repeated == len(new):
        raise InvalidVotes("the model has all of these votes already, so there is nothing new.")
    return together.alone(~is_repeated)


def repeated_votes(votes: Comparisons, n_old: int) -> Mask:
    """Say which of the votes after the first so many stand among these already.

    Every old vote accounts for one new vote that is the same in all that is known of it: who gave
    it on which items, what it says, its weight, time, duration, group and features.
    """
    columns: list[NDArray[Any]] = [votes.user, votes.left, votes.right, votes.outcome]
    columns += [] if votes.group is None else [votes.group]
    columns += votes.other_columns
    is_new = np.arange(len(votes)) >= n_old
    order = np.lexsort((is_new, *columns))
    is_first = np.ones(len(votes), dtype=np.bool_)
    is_first[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    kind = np.cumsum(is_first) - 1
    begins = np.flatnonzero(is_first)
    n_old_of_kind = np.bincount(kind, ~is_new[order], len(begins)).astype(np.int64)
    place = np.arange(len(votes)) - begins[kind] - n_old_of_kind[kind]  # among the new of its kind
    found = np.zeros(len(votes), dtype=np.bool_)
    found[order] = (place >= 0) & (place < n_old_of_kind[kind])
    return found
