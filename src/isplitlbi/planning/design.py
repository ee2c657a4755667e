"""What to ask where there are no votes yet: a balanced design of pairs, in a block for every user.

Items meet in rounds, as teams of a tournament do: in a round every item is compared once (one rests
where their number is odd). Two rounds connect all items, and after as many rounds as there are
other items, every pair was compared once; then rounds begin anew, in the same order. Users get one
part of this sequence after another, so that the items of a block are balanced, too, and no block
has a pair twice unless it is longer than all rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import NamedTuple

import numpy as np

from isplitlbi.planning.sides import Sides
from isplitlbi.typing import Places

__all__ = ["FirstDesign", "first_design"]


class FirstDesign(NamedTuple):
    """Votes to ask for first: users, left and right items by number, user after user."""

    user: Places
    left: Places
    right: Places


def first_design(n_items: int, n_users: int, n_votes: int, seed: int = 0) -> FirstDesign:
    """Deal pairs to users: every item about as often, all connected, sides balanced.

    No user is asked about the same pair twice, unless there are more votes of a user than pairs.

    Examples
    --------
    >>> design = first_design(6, 3, 9)
    >>> np.bincount(design.left, minlength=6) + np.bincount(design.right, minlength=6)
    array([3, 3, 3, 3, 3, 3])
    """
    rng, sides = np.random.default_rng(seed), Sides()
    ends = np.arange(1, n_users + 1) * n_votes // n_users
    user = np.searchsorted(ends, np.arange(n_votes), side="right")
    pairs = cycle(_rounds(n_items, rng))
    shown = [sides.put(int(who), *next(pairs)) for who in user]
    left, right = np.array(shown, dtype=np.int64).reshape(-1, 2).T
    return FirstDesign(user, left, right)


def _rounds(n_items: int, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Go through the pairs of all rounds."""
    n_even = n_items + n_items % 2
    order = rng.permutation(n_even)
    fixed, circle = int(order[0]), order[1:]
    for turn in range(n_even - 1):
        turned = np.roll(circle, turn)
        pairs = [(fixed, int(turned[0]))]
        pairs += [(int(turned[at]), int(turned[-at])) for at in range(1, n_even // 2)]
        for number in rng.permutation(len(pairs)):
            if max(pairs[number]) < n_items:  # nobody meets the one who is not there
                yield pairs[number]
