"""Traits that no model of ours has, for tests: one sees the pair, one the side."""

from dataclasses import dataclass

import numpy as np

from isplitlbi.data.layout import Sees
from isplitlbi.model.terms import PAPER, Taste, Terms, Threshold, Trait


@dataclass(frozen=True)
class Newest(Trait):
    """A preference for items that came later."""

    name = "newest"

    def column(self, shown):
        return 0.5 * (shown.first - shown.second)


@dataclass(frozen=True)
class Leftmost(Trait):
    """A preference for what is on the left."""

    name = "leftmost"
    sees = Sees.SIDE

    def column(self, shown):
        return np.ones(len(shown.first))


# The traits of some models, by what these see; the first is that of the paper.
TRAITS = {
    "paper": (),
    "pair": (Newest(),),
    "side": (Leftmost(),),
    "both": (Leftmost(), Newest()),
}


def terms_with(*traits):
    """Return the terms of the paper and some traits."""
    return Terms((Taste(), *traits, Threshold())) if traits else PAPER
