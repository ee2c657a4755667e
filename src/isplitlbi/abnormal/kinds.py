"""The ways in which a user may depart from the consensus: a class for each, and their registry.

A user's votes are explained by the consensus through three numbers: a slope on its scores (1 for
the consensus, 0 for votes that do not depend on the items, negative for reversed ones), a
preference for the left side, and a tie threshold. Where no vote is a tie, or sides mean nothing,
there is no such number, and no kind that rests on it. A kind says which of these are free when it
explains votes, and which values of them it stands for; or else that scores of the user's own
explain the votes.

To add a kind, write its class and put it into `KINDS`: tables, plots and reports take its name, its
sentence and its colour from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from isplitlbi.data.layout import THRESHOLD
from isplitlbi.model.terms import Side
from isplitlbi.solvers.common import SLOPE
from isplitlbi.typing import Floats, Mask

__all__ = [
    "FLAT",
    "KINDS",
    "LOPSIDED",
    "NO_SLOPE",
    "OTHER_SIDE",
    "OTHER_SLOPE",
    "OTHER_THRESHOLD",
    "REVERSED",
    "SIDE_ALONE",
    "UNTRUSTWORTHY",
    "Blunter",
    "Careless",
    "DifferentTaste",
    "Evidence",
    "Explanation",
    "Figures",
    "Kind",
    "NeverTie",
    "PositionBiased",
    "Reversed",
    "Sharper",
    "TieHappy",
    "percent",
]

SIDE = Side.name

# A slope between these: the votes hardly depend on the items.
REVERSED, FLAT = -0.5, 0.25
# Who votes less than this share of decided votes to one side is not called position-biased.
LOPSIDED = 2 / 3


class Explanation(NamedTuple):
    """One way to explain votes: which of the three numbers are free, and where the slope stands."""

    free: tuple[str, ...]
    slope: float = 1.0
    cost: int = 1  # numbers that it takes

    def where(self, *, has_ties: bool, has_sides: bool) -> Explanation | None:
        """Return it without what a study does not have; none where nothing is left to explain by.

        Examples
        --------
        >>> NO_SLOPE.where(has_ties=False, has_sides=True)
        Explanation(free=(), slope=0.0, cost=1)
        >>> OTHER_THRESHOLD.where(has_ties=False, has_sides=True) is None
        True
        """
        if SIDE in self.free and not has_sides:
            return None
        if has_ties or THRESHOLD not in self.free:
            return self
        if self.free == (THRESHOLD,) and self.slope == 1.0:
            return None
        return Explanation(
            tuple(name for name in self.free if name != THRESHOLD), self.slope, self.cost - 1
        )


OTHER_SLOPE = Explanation((SLOPE,))
OTHER_SIDE = Explanation((SIDE,))
OTHER_THRESHOLD = Explanation((THRESHOLD,))
NO_SLOPE = Explanation((THRESHOLD,), slope=0.0, cost=2)
SIDE_ALONE = Explanation((SIDE, THRESHOLD), slope=0.0, cost=3)


class Evidence(NamedTuple):
    """What a kind is told by, a number for every user."""

    slope: Floats
    side: Floats
    threshold: Floats
    common_threshold: float  # of the consensus
    to_one_side: Floats  # share of decided votes to the side that the user chooses more often


class Figures(NamedTuple):
    """What is said of one user: shares of votes, and what the consensus would expect."""

    n_votes: int
    left: float  # share of decided votes
    ties: float
    expected_ties: float
    against: float  # share of decided votes for the item that the consensus ranks lower
    expected_against: float
    own_right: float  # share of held-out votes that scores of the user's own predict
    consensus_right: float

    @property
    def votes_against(self) -> str:
        """Say how often the user votes against the consensus."""
        return (
            f"{percent(self.against)} of decided votes against it "
            f"({percent(self.expected_against)} expected)"
        )


class Kind(ABC):
    """One way to depart from the consensus.

    Attributes
    ----------
    name : str
        What it is called everywhere.
    colour : str
        Of the users of this kind in plots and in the report, such as ``#a50026``: told apart from
        the others by people with any kind of sight, and in print.
    is_untrustworthy : bool
        Whether such votes spoil a result, in contrast to what is only another opinion or another
        way to answer.
    quality : float or None
        The quality of every user of this kind, where it does not follow from the votes.
    explanations : tuple of Explanation
        The ways in which it explains votes.
    by_own_scores : bool
        Whether it is the kind of users whose votes are best explained by scores of their own.
    """

    name: ClassVar[str]
    colour: ClassVar[str]
    is_untrustworthy: ClassVar[bool] = False
    quality: ClassVar[float | None] = None
    explanations: ClassVar[tuple[Explanation, ...]] = ()
    by_own_scores: ClassVar[bool] = False

    def covers(self, found: Evidence) -> Mask:
        """Say of which users it is the kind, once one of its explanations was fitted."""
        return np.ones(len(found.slope), dtype=np.bool_)

    @abstractmethod
    def sentence(self, figures: Figures) -> str:
        """Say plainly how such a user votes."""


class Reversed(Kind):
    """Prefers what the consensus rejects."""

    name, colour, is_untrustworthy, quality = "reversed", "#a50026", True, 0.0
    explanations = (OTHER_SLOPE,)

    def covers(self, found: Evidence) -> Mask:
        """Tell by a slope that is clearly negative."""
        return found.slope < REVERSED

    def sentence(self, figures: Figures) -> str:
        """Say how many votes are the wrong way round."""
        return f"turns the consensus upside down: {figures.votes_against}"


class Careless(Kind):
    """Votes whatever is shown."""

    name, colour, is_untrustworthy = "careless", "#d9762b", True
    explanations = (OTHER_SLOPE, NO_SLOPE)

    def covers(self, found: Evidence) -> Mask:
        """Tell by a slope near zero, or by none at all."""
        return (found.slope >= REVERSED) & (found.slope <= FLAT)

    def sentence(self, figures: Figures) -> str:
        """Say how little the votes have to do with the consensus."""
        return f"votes hardly depend on the items, nor on the consensus: {figures.votes_against}"


class PositionBiased(Kind):
    """Votes for one side, whatever is shown there."""

    name, colour, is_untrustworthy = "position-biased", "#b8860b", True
    explanations = (OTHER_SIDE, SIDE_ALONE)

    def covers(self, found: Evidence) -> Mask:
        """Tell by votes that go mostly to one side."""
        return found.to_one_side >= LOPSIDED

    def sentence(self, figures: Figures) -> str:
        """Say which side, and how often."""
        side = "left" if figures.left >= 0.5 else "right"
        share = percent(max(figures.left, 1.0 - figures.left))
        return f"votes {side} in {share} of decided votes, whatever is shown"


class _OtherThreshold(Kind):
    """Takes ties for something else than the consensus does."""

    explanations = (OTHER_THRESHOLD,)

    def sentence(self, figures: Figures) -> str:
        """Say how many ties there are, and should be."""
        said = f"declares {percent(figures.ties)} ties" if figures.ties else "never declares a tie"
        return f"{said} in {figures.n_votes} votes ({percent(figures.expected_ties)} expected)"


class TieHappy(_OtherThreshold):
    """Declares more ties than the consensus would."""

    name, colour = "tie-happy", "#7b3294"

    def covers(self, found: Evidence) -> Mask:
        """Tell by a larger threshold."""
        return found.threshold > found.common_threshold


class NeverTie(_OtherThreshold):
    """Declares fewer ties than the consensus would, or none."""

    name, colour = "never-tie", "#c288c9"

    def covers(self, found: Evidence) -> Mask:
        """Tell by a smaller threshold."""
        return found.threshold <= found.common_threshold


class _OtherScale(Kind):
    """Has the order of the consensus, and another certainty."""

    explanations = (OTHER_SLOPE,)
    certainty: ClassVar[str]

    def sentence(self, figures: Figures) -> str:
        """Say how many votes go against the consensus."""
        return (
            f"has the order of the consensus but is {self.certainty} of it: {figures.votes_against}"
        )


class Sharper(_OtherScale):
    """Votes more surely than the consensus would."""

    name, colour, certainty = "sharper", "#1b7837", "surer"

    def covers(self, found: Evidence) -> Mask:
        """Tell by a larger slope."""
        return found.slope > 1.0


class Blunter(_OtherScale):
    """Votes less surely than the consensus would, but by the items."""

    name, colour, certainty = "blunter", "#74a57f", "less sure"

    def covers(self, found: Evidence) -> Mask:
        """Tell by a slope that is smaller, and not near zero."""
        return (found.slope > FLAT) & (found.slope <= 1.0)


class DifferentTaste(Kind):
    """Has a ranking of their own, which predicts their votes."""

    name, colour, by_own_scores = "different taste", "#2166ac", True

    def sentence(self, figures: Figures) -> str:
        """Say how well the own ranking predicts, beside the consensus."""
        return (
            f"own ranking predicts {percent(figures.own_right)} of held-out votes, "
            f"the consensus {percent(figures.consensus_right)}"
        )


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Reversed(),
        Careless(),
        PositionBiased(),
        TieHappy(),
        NeverTie(),
        Sharper(),
        Blunter(),
        DifferentTaste(),
    )
}
# Users whose votes spoil a result, as names of kinds.
UNTRUSTWORTHY = tuple(name for name, kind in KINDS.items() if kind.is_untrustworthy)


def percent(share: float) -> str:
    """Write a share as a whole percentage."""
    return f"{100 * share:.0f} %"
