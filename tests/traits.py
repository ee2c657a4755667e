"""Traits that no model of ours has, for tests: one sees the pair, one the side."""

from dataclasses import dataclass, replace

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


# --- models of ours, in units of their own --------------------------------------------------

SCALES = {"sharpness": 0.8, "side": 0.6, "threshold": 0.9, "length": 0.7, "price": 0.4}


def sized_terms(names, *, n_items=6, features=(), has_ties=True, refers=True):
    """Return terms whose units differ, with a reference of the sharpness unless there is none."""
    terms = Terms.named(names, features=features, has_ties=has_ties)
    if terms.has_sharpness and refers:
        terms = terms.referring(np.linspace(-1.0, 1.5, n_items) ** 3)
    owned = {name: SCALES[name] for name in terms.names if name in SCALES and terms.scale(name)}
    return replace(terms.sized(owned), score_variance=0.8, habit_variance=0.3)


# Every term by itself and all together, with the two ways to have no threshold of one's own.
SIZED = {
    "all": sized_terms("all"),
    "all, with features": sized_terms("all", features=("length", "price")),
    "taste": sized_terms("taste"),
    "threshold": sized_terms("threshold"),
    "sharpness": sized_terms("sharpness"),
    "sharpness, no reference": sized_terms("sharpness,taste", refers=False),
    "side": sized_terms("side"),
    "habit": sized_terms("habit"),
    "feature": sized_terms("taste", features=("length",)),
    "none": sized_terms([]),
    "forced choice": sized_terms("all", has_ties=False),
    "forced choice, with features": sized_terms("all", features=("length",), has_ties=False),
    "forced choice, taste": sized_terms("taste", has_ties=False),
}
