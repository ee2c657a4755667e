"""Old votes and new ones together; what came twice is told, and kept unless asked otherwise."""

from __future__ import annotations

import logging
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.vocabulary import counted
from isplitlbi.errors import InvalidVotes
from isplitlbi.lazy import pl
from isplitlbi.typing import Mask, Places

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
    if (old.id is None) != (new.id is None):
        log.warning(
            "The %s votes have ids, and the %s votes have none. So a new vote is the same as an "
            "old one if everything else is the same.",
            *(("new", "old") if old.id is None else ("old", "new")),
        )
    same, differs = _found_again(together, len(old))
    is_dropped = repeated == "drop"
    if n_same := int(same.sum()):
        some = "" if n_same == len(new) else f"{n_same:,} of "
        log.warning(
            "%s%s %s the same as votes that the model has already. %s %s.",
            "All " if n_same == len(new) > 1 else some, counted(len(new), "new vote"),
            "is" if n_same == 1 else "are", "It is" if n_same == 1 else "They are",
            "left out" if is_dropped else f"kept and count{'s' * (n_same == 1)} again",
        )  # fmt: skip
    if n_differs := int(differs.sum()):
        has, says, they_are, old_stay = (
            ("has", "says", "it is", "vote stays")
            if n_differs == 1
            else ("have", "say", "they are", "votes stay")
        )
        what = f"left out, and the old {old_stay}" if is_dropped else "kept beside it"
        log.warning(
            "%s %s the id of an old vote and %s something else; %s %s.",
            counted(n_differs, "new vote"), has, says, they_are, what,
        )  # fmt: skip
    if not is_dropped or not n_same + n_differs:
        return together
    if n_same + n_differs == len(new):
        raise InvalidVotes("the model has all of these votes already, so there is nothing new.")
    return together.alone(~(same | differs))


def repeated_votes(votes: Comparisons, n_old: int) -> Mask:
    """Say which of the votes after the first so many stand among these already.

    Where both have ids, a new vote is repeated if an old one has its id, whatever else it says.
    Otherwise, every old vote accounts for one new vote that is the same in all that is known of it:
    who gave it on which items, what it says, its weight, time, duration, group and features.
    """
    same, differs = _found_again(votes, n_old)
    return same | differs


def _found_again(votes: Comparisons, n_old: int) -> tuple[Mask, Mask]:
    """Return which new votes are the same as an old one, and which have only its id."""
    kind = _kinds(votes)
    is_new = np.arange(len(votes)) >= n_old
    if votes.id is None:
        return _accounted_for(kind, ~is_new, is_new), np.zeros_like(is_new)
    table = pl.DataFrame({"id": votes.id, "kind": kind, "place": np.arange(len(votes))})
    old, new = table[:n_old], table[n_old:]
    has_old_id, same = np.zeros((2, len(votes)), dtype=np.bool_)
    has_old_id[new.join(old, on="id", how="semi")["place"]] = True
    same[new.join(old, on=["id", "kind"], how="semi")["place"]] = True
    differs = has_old_id & ~same
    # What ids do not tell: old votes with an id account for new ones without, unless their id did
    # already; old votes without an id account for all that is left.
    has_id = votes.id.is_not_null().to_numpy()
    is_free = ~is_new & has_id
    is_free[old.join(new, on="id", how="semi")["place"]] = False
    same |= _accounted_for(kind, is_free, is_new & ~has_id)
    same |= _accounted_for(kind, ~is_new & ~has_id, is_new & ~has_old_id & ~same)
    return same, differs


def _kinds(votes: Comparisons) -> Places:
    """Return a number for every vote, which is the same where all but the id is the same."""
    columns: list[NDArray[Any]] = [votes.user, votes.left, votes.right, votes.outcome]
    columns += [] if votes.group is None else [votes.group]
    columns += votes.other_columns
    order = np.lexsort(columns)
    is_first = np.ones(len(votes), dtype=np.bool_)
    is_first[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    kind = np.empty(len(votes), dtype=np.int64)
    kind[order] = np.cumsum(is_first) - 1
    return kind


def _accounted_for(kind: Places, is_old: Mask, is_new: Mask) -> Mask:
    """Say for which new votes there is an old one of their kind, each for one of them."""
    n_old = np.bincount(kind[is_old], minlength=len(kind))
    new = np.flatnonzero(is_new)
    new = new[np.argsort(kind[new], kind="stable")]
    of_kind = kind[new]
    place = np.arange(len(new)) - np.searchsorted(of_kind, of_kind)  # among the new of its kind
    found = np.zeros(len(kind), dtype=np.bool_)
    found[new] = place < n_old[of_kind]
    return found
