"""The ways in which a user may depart from the consensus: a class for each, and their registry.

A kind says what it explains votes by: ways to depart from the consensus (see `evidence`), or
something beyond, such as answers that do not depend on the items; and which outcomes of these it
stands for. Where no vote is a tie, or sides mean nothing, or votes have no time, there is nothing
to explain by, and no such kind. Each belongs to one of two lists: *unreliable* users, whose votes
tell little about the items, and *different* ones.

To add a kind, write its class and put it into `KINDS`: tables, plots and reports take its name, its
list, its sentence and its colour from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, auto
from math import log
from typing import ClassVar, NamedTuple

import numpy as np

from isplitlbi.abnormal.evidence import Way
from isplitlbi.abnormal.found import DIFFERENT, UNRELIABLE
from isplitlbi.typing import Floats, Mask

__all__ = [
    "FLAT",
    "KINDS",
    "LEANING",
    "ONE_ANSWER",
    "ORDINARY",
    "OTHER_THRESHOLD",
    "OWN_SCORES",
    "REVERSED",
    "UNCLEAR",
    "UNTRUSTWORTHY",
    "Beyond",
    "Explanation",
    "Figures",
    "Kind",
    "Outcome",
    "percent",
]

UNCLEAR = "unclear"

# Who gives one answer in less than the first share of votes does not give it whatever is shown; who
# gives it in less than the second hardly ever does.
ONE_ANSWER, NEVER = 0.9, 0.02
# Who votes less than this share of decided votes to one side is not called position-biased.
LOPSIDED = 2 / 3

# Slopes of users who reverse the consensus, and of those who are only less sure of it.
MOST_OF_REVERSED, LEAST_OF_BLUNTER = -0.4, 0.15

# People differ more often than they cheat, and cheat more often in simple ways.
OFTEN, RARE = 3.0, 0.3

ORDINARY = Way()
REVERSED = Way(-1.0, of_slope=0.16)
FLAT = Way(0.0, of_margin=0.04)
BLUNTER = Way(0.5, of_slope=0.04)
SHARPER = Way(2.5, of_slope=1.0)
# Nearly without noise: margins are many times those of the consensus, and so is the threshold. What
# the consensus has wrong is as large then.
COPIED = Way(6.0, level=log(6.0), of_slope=4.0, of_level=0.5, of_taste=1.0)
LEANING = Way(of_side=4.0)
OTHER_THRESHOLD = Way(of_level=2.25)
OTHER_TASTE = Way(of_taste=1.0)
OWN_SCORES = Way(0.0, of_level=0.1, of_taste=1.5)


class Beyond(Enum):
    """What explains votes beyond ways to depart from the consensus."""

    ANSWERS = auto()  # how often each answer is given, whatever is shown
    PATTERN = auto()  # which answer was given before
    TIRING = auto()  # an ordinary user at first, answers alone from some vote on
    ONE_ITEM = auto()  # an ordinary user, but for one item


Explanation = Way | Beyond


class Outcome(NamedTuple):
    """What an explanation found, a number for every user."""

    slope: Floats
    level: Floats  # of the logarithm of the threshold, beside the consensus
    ties: Floats  # share of votes
    # Share of decided votes to the side that the user chooses more often; half where sides mean
    # nothing.
    to_one_side: Floats


class Figures(NamedTuple):
    """What is said of one user: shares of votes, and what the consensus would expect."""

    n_votes: int
    left: float  # share of decided votes
    ties: float
    expected_ties: float
    against: float  # share of decided votes for the item that the consensus ranks lower
    expected_against: float
    item: str  # the one that an explanation by one item is about
    is_raised: bool  # whether the user puts it higher than others do, or lower
    n_together: int  # users of the ring
    has_sides: bool = True  # whether left and right mean something

    @property
    def votes_against(self) -> str:
        """Say how often the user votes against the consensus."""
        return (
            f"{percent(self.against)} of decided votes against the group "
            f"({percent(self.expected_against)} expected)"
        )

    @property
    def one_side(self) -> str:
        """Say which side the user votes for, and how often."""
        share = percent(max(self.left, 1.0 - self.left))
        return f"{'left' if self.left >= 0.5 else 'right'} in {share} of decided votes"

    @property
    def declared_ties(self) -> str:
        """Say how many ties there are, and should be."""
        said = f"declares {percent(self.ties)} ties" if self.ties else "never declares a tie"
        return f"{said} in {self.n_votes} votes ({percent(self.expected_ties)} expected)"


class Kind(ABC):
    """One way to depart from the consensus.

    Attributes
    ----------
    name : str
        What it is called everywhere.
    colour : str
        Of the users of this kind in plots and in the report, such as ``#a50026``: told apart from
        the others by people with any kind of sight, and in print.
    list : {"unreliable", "different"}
        Whether such votes tell little about the items, or are only unlike the group's.
    explanations : tuple of Explanation
        What it explains votes by.
    prior : float
        How much likelier than others it is beforehand.
    quality : float or None
        The quality of every user of this kind, where it does not follow from the votes.
    is_of_ties_alone : bool
        Whether it is the kind of users who declare hardly anything but ties: nearly everything can
        explain these, and only one kind is meant.
    """

    name: ClassVar[str]
    colour: ClassVar[str]
    list: ClassVar[str] = DIFFERENT
    explanations: ClassVar[tuple[Explanation, ...]] = ()
    prior: ClassVar[float] = 1.0
    quality: ClassVar[float | None] = None
    is_of_ties_alone: ClassVar[bool] = False

    def claims(self, explanation: Explanation, found: Outcome) -> Mask:
        """Say of which users it is the kind, if this explanation is right."""
        is_meant = (found.ties >= ONE_ANSWER) == self.is_of_ties_alone
        return np.asarray(is_meant & self.covers(explanation, found))

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Say of which of these users it is the kind."""
        return np.ones(len(found.ties), dtype=np.bool_)

    @abstractmethod
    def sentence(self, figures: Figures) -> str:
        """Say plainly how such a user votes."""


class Reversed(Kind):
    """Prefers what the consensus rejects."""

    name, colour, list = "reversed", "#a50026", UNRELIABLE
    explanations = (REVERSED,)

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by a slope that is clearly negative."""
        return found.slope < MOST_OF_REVERSED

    def sentence(self, figures: Figures) -> str:
        """Say how many votes are the wrong way round."""
        return f"turns the consensus upside down: {figures.votes_against}"


class Careless(Kind):
    """Votes whatever is shown."""

    name, colour, list = "careless", "#d9762b", UNRELIABLE
    explanations = (FLAT, Beyond.ANSWERS)

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by answers of every sort."""
        return (found.to_one_side < LOPSIDED) | (explanation == FLAT)

    def sentence(self, figures: Figures) -> str:
        """Say how little the votes have to do with the consensus."""
        return f"votes hardly depend on what is shown: {figures.votes_against}"


class PositionBiased(Kind):
    """Votes for one side, whatever is shown there."""

    name, colour, list = "position-biased", "#b8860b", UNRELIABLE
    explanations = (LEANING, Beyond.ANSWERS)

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by votes that go mostly to one side; if items count beside it, by nearly all."""
        share = ONE_ANSWER if explanation is LEANING else LOPSIDED
        return found.to_one_side >= share

    def sentence(self, figures: Figures) -> str:
        """Say which side, and how often."""
        return f"votes {figures.one_side}, whatever is shown"


class AlwaysTie(Kind):
    """Declares a tie, whatever is shown."""

    name, colour, list = "always-tie", "#542788", UNRELIABLE
    explanations = (OTHER_THRESHOLD, Beyond.ANSWERS)
    is_of_ties_alone = True

    def sentence(self, figures: Figures) -> str:
        """Say how many ties there are, and should be."""
        return figures.declared_ties


class Pattern(Kind):
    """Answers by what was answered before."""

    name, colour, list = "pattern", "#8c510a", UNRELIABLE
    explanations = (Beyond.PATTERN,)
    prior = RARE

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by more than one answer: always the same is a pattern, too."""
        return found.to_one_side < LOPSIDED

    def sentence(self, figures: Figures) -> str:
        """Say that answers follow each other."""
        return f"answers follow a pattern, whatever is shown: {figures.votes_against}"


class Fatigue(Kind):
    """Votes like others at first, then whatever is shown."""

    name, colour, list = "fatigue", "#bf812d", UNRELIABLE
    explanations = (Beyond.TIRING,)
    prior = RARE

    def sentence(self, figures: Figures) -> str:
        """Say how the votes change."""
        return f"votes with care at first, later without looking: {figures.votes_against}"


class TooFast(Kind):
    """Votes whatever is shown, in far less time than others take."""

    name, colour, list = "too fast", "#c51b7d", UNRELIABLE

    def sentence(self, figures: Figures) -> str:
        """Say how little the votes have to do with the consensus."""
        return f"answers too fast, and hardly looks at what is shown: {figures.votes_against}"


class Leaning(Kind):
    """Prefers one side, and votes by the items all the same."""

    name, colour = "leaning", "#dfc27d"
    explanations = (LEANING,)

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by votes that do not all go to one side."""
        return found.to_one_side < ONE_ANSWER

    def sentence(self, figures: Figures) -> str:
        """Say which side, and how often."""
        return f"leans to one side: {figures.one_side}"


class _OtherThreshold(Kind):
    """Takes ties for something else than the consensus does."""

    explanations = (OTHER_THRESHOLD,)

    def sentence(self, figures: Figures) -> str:
        """Say how many ties there are, and should be."""
        return figures.declared_ties


class TieHappy(_OtherThreshold):
    """Declares more ties than the consensus would."""

    name, colour = "tie-happy", "#7b3294"

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by a larger threshold."""
        return found.level > 0.0


class TieShy(_OtherThreshold):
    """Declares fewer ties than the consensus would."""

    name, colour = "tie-shy", "#c288c9"

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by a smaller threshold."""
        return (found.level <= 0.0) & (found.ties > NEVER)


class NeverTie(_OtherThreshold):
    """Declares hardly any tie where the consensus would."""

    name, colour = "never-tie", "#e7b8ea"

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by a smaller threshold, and no ties."""
        return (found.level <= 0.0) & (found.ties <= NEVER)


class _OtherScale(Kind):
    """Has the order of the consensus, and another certainty."""

    certainty: ClassVar[str]

    def sentence(self, figures: Figures) -> str:
        """Say how many votes go against the consensus."""
        return f"has the order of the consensus but {self.certainty}: {figures.votes_against}"


class Sharper(_OtherScale):
    """Votes more surely than the consensus would."""

    name, colour, certainty = "sharper", "#1b7837", "is more certain of it"
    explanations = (SHARPER,)

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by a larger slope."""
        return found.slope > 1.0


class Copier(_OtherScale):
    """Votes by the order of the consensus, as if there were no noise."""

    name, colour, certainty = "copier", "#00441b", "almost never departs from it"
    explanations = (COPIED,)
    quality = 0.5  # whether such a user looks at the items, the votes cannot tell

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by a larger slope: who turns some items down without any noise is no copier."""
        return found.slope > 1.0


class Blunter(_OtherScale):
    """Votes less surely than the consensus would, but by the items."""

    name, colour, certainty = "blunter", "#74a57f", "is less certain of it"
    explanations = (BLUNTER,)

    def covers(self, explanation: Explanation, found: Outcome) -> Mask:
        """Tell by a smaller slope that is still one."""
        return (found.slope > LEAST_OF_BLUNTER) & (found.slope < 1.0)


class DifferentTaste(Kind):
    """Has a ranking of their own."""

    name, colour = "different taste", "#2166ac"
    explanations = (OTHER_TASTE, OWN_SCORES)
    prior = OFTEN

    def sentence(self, figures: Figures) -> str:
        """Say how far the own ranking is from the consensus."""
        return f"votes by a ranking of their own: {figures.votes_against}"


class Promoter(Kind):
    """Puts one item far higher, or lower, than others do."""

    name, colour = "promoter", "#4393c3"
    explanations = (Beyond.ONE_ITEM,)

    def sentence(self, figures: Figures) -> str:
        """Say which item, and where the user has it."""
        where = "higher" if figures.is_raised else "lower"
        return f"votes like others, but puts {figures.item} far {where}"


class Ring(Kind):
    """Votes as some others do, far beyond what items explain."""

    name, colour = "ring", "#053061"

    def sentence(self, figures: Figures) -> str:
        """Say with how many others."""
        return (
            f"votes by the same ranking as {figures.n_together - 1} others who stand out: "
            f"{figures.votes_against}"
        )


class Unclear(Kind):
    """Departs from the consensus in a way that the votes do not tell yet."""

    name, colour = UNCLEAR, "#878787"

    def sentence(self, figures: Figures) -> str:
        """Say what was seen."""
        seen = [figures.votes_against]
        if figures.has_sides:
            seen.append(f"votes {figures.one_side}")
        if figures.expected_ties:
            share, expected = percent(figures.ties), percent(figures.expected_ties)
            seen.append(f"{share} ties ({expected} expected)")
        return f"differs from others, but it is not clear how: {', '.join(seen)}"


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Reversed(),
        Careless(),
        PositionBiased(),
        AlwaysTie(),
        Pattern(),
        Fatigue(),
        TooFast(),
        Leaning(),
        TieHappy(),
        TieShy(),
        NeverTie(),
        Sharper(),
        Copier(),
        Blunter(),
        DifferentTaste(),
        Promoter(),
        Ring(),
        Unclear(),
    )
}
# Users whose votes spoil a result, as names of kinds.
UNTRUSTWORTHY = tuple(name for name, kind in KINDS.items() if kind.list == UNRELIABLE)


def percent(share: float) -> str:
    """Write a share as a whole percentage."""
    return f"{100 * share:.0f} %"
