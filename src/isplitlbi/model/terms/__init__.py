"""The terms of a model: in which ways users differ, and what else the consensus knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout, Sees, Vector
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.answering import Answering, ForcedChoice, LogThreshold
from isplitlbi.model.links import Link
from isplitlbi.model.terms.base import Term, Trait
from isplitlbi.model.terms.feature import Feature
from isplitlbi.model.terms.sharpness import Sharpness
from isplitlbi.model.terms.side import Side
from isplitlbi.model.terms.taste import Taste
from isplitlbi.model.terms.threshold import Threshold
from isplitlbi.typing import Floats

__all__ = [
    "HABIT",
    "HELD_FAST",
    "NAMES",
    "PAPER",
    "START",
    "TERMS",
    "Feature",
    "Sharpness",
    "Side",
    "Taste",
    "Term",
    "Terms",
    "Threshold",
    "Trait",
]

# Those that a person may name; a new one goes here.
TERMS: dict[str, type[Any]] = {term.name: term for term in (Taste, Threshold, Sharpness, Side)}
HABIT = "habit"  # the tie habit of items: the consensus has it, users do not
NAMES = (*TERMS, HABIT)

Ties = Literal["bounded", "log", "none"]

START = 1.0  # of the threshold, at the beginning of a path: the paper's
# Of the logarithm of the consensus threshold: votes that are all ties must not let it run away.
LOG_THRESHOLD_VARIANCE = 9.0
HELD_FAST = 1e12  # how strongly that is held which is to stay where it is


@dataclass(frozen=True)
class Terms:
    """The terms of one model, and how large they are.

    Attributes
    ----------
    all : tuple of Term
        In which ways users differ.
    scales : tuple of float
        How large the unit of each is, of taste first, of the threshold last; a term without users'
        own numbers has a scale of zero. All have the prior variance nu in these units.
    ties : {"bounded", "log", "none"}
        Whether thresholds add up as they are, never below a bound (the paper's); by their
        logarithms; or whether there is none, because there are no ties.
    has_habits : bool
        Whether items have a tie habit, which adds to the logarithm of the threshold.
    score_variance, habit_variance : float
        Of the items' scores and habits in the consensus, around zero.
    """

    all: tuple[Term, ...]
    scales: tuple[float, ...] = ()
    ties: Ties = "bounded"
    has_habits: bool = False
    score_variance: float = float("inf")
    habit_variance: float = 1.0

    def __post_init__(self) -> None:
        """Take units as they are where nothing else is said."""
        if not self.scales:
            object.__setattr__(self, "scales", (1.0,) * len(self.all))

    @classmethod
    def named(
        cls,
        names: str | Iterable[str],
        *,
        features: Sequence[str] = (),
        has_ties: bool = True,
        has_sides: bool = True,
    ) -> Terms:
        """Return the terms of some names; ``paper`` stands for those of the paper.

        Parameters
        ----------
        names
            ``all``, ``paper``, or names among `NAMES`.
        features
            Those of the votes; each is a term, but in the paper's model.
        has_ties
            Whether anybody may declare a tie.
        has_sides
            Whether left and right mean something.

        Examples
        --------
        >>> Terms.named("paper").names
        ('taste', 'threshold')
        >>> Terms.named("all").names
        ('taste', 'sharpness', 'side', 'threshold')
        """
        if isinstance(names, str):
            if names == "paper":
                return PAPER
            names = NAMES if names == "all" else names.split(",")
        asked = tuple(dict.fromkeys(name.strip() for name in names))
        for name in asked:
            if name not in NAMES:
                raise InvalidSetting(f"term {name!r} is not one of all, paper, {', '.join(NAMES)}.")
        traits: list[Term] = [Sharpness()] if Sharpness.name in asked else []
        for name, term in TERMS.items():
            if name in asked and issubclass(term, Trait) and (has_sides or term.sees < Sees.SIDE):
                traits.append(term())
        traits += [Feature(name, place) for place, name in enumerate(features)]
        own = (Taste.name in asked, *(True for _ in traits), Threshold.name in asked and has_ties)
        return cls(
            (Taste(), *traits, Threshold()),
            tuple(float(each) for each in own),
            ties="log" if has_ties else "none",
            has_habits=HABIT in asked and has_ties,
            score_variance=1.0,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called, in the order of the scales."""
        return tuple(term.name for term in self.all)

    @property
    def traits(self) -> tuple[Trait, ...]:
        """Those of one number per user that have a column: what a layout needs to know."""
        return tuple(term for term in self.all if isinstance(term, Trait))

    @property
    def has_sharpness(self) -> bool:
        """Whether users have a slope of their own on a reference consensus."""
        return any(isinstance(term, Sharpness) for term in self.all)

    @property
    def has_ties(self) -> bool:
        """Whether there is a threshold."""
        return self.ties != "none"

    def layout(self, votes: Comparisons, sees: Sees = Sees.PAIR) -> Layout:
        """Lay out votes."""
        return Layout.of(
            votes, self.traits, sees,
            has_sharpness=self.has_sharpness, has_habits=self.has_habits,
        )  # fmt: skip

    def answering(self, link: Link) -> Answering:
        """Return how votes follow from margin and threshold."""
        if self.ties == "bounded":
            return link
        return LogThreshold(link) if self.has_ties else ForcedChoice(link)

    # --- the consensus ----------------------------------------------------------------------

    def start(self, vector: Vector, delta: float) -> Floats:
        """Return the consensus at the beginning of a path."""
        start = np.zeros(vector.width)
        if self.ties == "bounded":
            start[vector.threshold] = max(START, delta)
        return start

    def precision(self, vector: Vector) -> Floats:
        """Return how strongly a prior holds each number of the consensus around zero."""
        variance = np.full(vector.width, np.inf)
        variance[vector.scores] = self.score_variance
        for trait in self.traits:
            variance[vector.place(trait.name)] = trait.consensus_variance
        if self.ties == "log":
            variance[vector.threshold] = LOG_THRESHOLD_VARIANCE
        variance[vector.habits] = self.habit_variance
        return 1.0 / variance

    def is_common(self, vector: Vector) -> Floats:
        """Return 1 for what the consensus has a number of, 0 for what is users' own alone."""
        common = np.ones(vector.width)
        if self.has_sharpness:
            common[vector.place(Sharpness.name)] = 0.0
        common[vector.threshold] = float(self.has_ties)
        return common

    @property
    def holds(self) -> Floats:
        """How strongly each term is held beside others: taste may be held to nothing at all."""
        return np.array([1.0 if self.scales[0] > 0.0 else HELD_FAST, *(1.0 for _ in self.all[1:])])

    # --- other sizes ------------------------------------------------------------------------

    def sized(self, scales: Mapping[str, float]) -> Terms:
        """Return the same with some other scales."""
        sizes = zip(self.names, self.scales, strict=True)
        return replace(self, scales=tuple(scales.get(name, scale) for name, scale in sizes))

    def of_crowd(self) -> Terms:
        """Return the same without anything of users' own: what one ranking for all consists of."""
        if self.ties == "bounded":
            return replace(self, scales=(0.0,) * len(self.all))
        common = tuple(term for term in self.all if not isinstance(term, Sharpness))
        return replace(self, all=common, scales=(0.0,) * len(common))

    def scale(self, name: str) -> float:
        """Return the scale of a term."""
        return self.scales[self.names.index(name)]

    @property
    def reference(self) -> Floats | None:
        """The consensus that sharpness refers to, where there is such a term."""
        for term in self.all:
            if isinstance(term, Sharpness):
                return term.reference
        return None

    @property
    def per_sharpness(self) -> Floats:
        """What one unit of sharpness adds to the scores, around their mean."""
        reference = np.asarray(self.reference)
        return np.asarray(self.scale(Sharpness.name) * (reference - np.mean(reference)))

    def referring(self, scores: Floats | None) -> Terms:
        """Return the same with another reference of the sharpness."""
        sharp = (Sharpness(scores) if isinstance(term, Sharpness) else term for term in self.all)
        return replace(self, all=tuple(sharp))

    # --- plain values -----------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        reference = self.reference
        return {
            "names": list(self.names),
            "features": [term.name for term in self.all if isinstance(term, Feature)],
            "scales": list(self.scales),
            "ties": self.ties,
            "has_habits": self.has_habits,
            "score_variance": self.score_variance,
            "habit_variance": self.habit_variance,
            "reference": None if reference is None else reference.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Terms:
        """Return the terms that `as_dict` has told of."""
        features, reference = list(values["features"]), values["reference"]
        found: list[Term] = []
        for name in values["names"]:
            if name in features:
                found.append(Feature(name, features.index(name)))
            elif name == Sharpness.name:
                found.append(Sharpness(None if reference is None else np.array(reference)))
            else:
                found.append(TERMS[name]())
        return cls(
            tuple(found), tuple(values["scales"]), values["ties"], values["has_habits"],
            values["score_variance"], values["habit_variance"],
        )  # fmt: skip


PAPER = Terms((Taste(), Threshold()))
