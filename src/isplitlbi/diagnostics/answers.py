"""What is found about the answers: ties, sides, and votes that are there again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isplitlbi.data.ids import stand_before
from isplitlbi.data.layout import tally
from isplitlbi.data.summary import Summary
from isplitlbi.data.weights import Unevenness
from isplitlbi.diagnostics.facts import FEWEST_DECIDED, Facts
from isplitlbi.diagnostics.findings import (
    SENTENCE_ONLY,
    Finding,
    Severity,
    amount,
    are,
    have,
    number_of,
    percent,
    some_of,
)
from isplitlbi.nouns import Nouns, capitalized

__all__ = ["preferred_sides", "repeated_ids", "repeats", "ties", "uneven_weights"]

# A preference for one side is told when it is this many standard errors from none, and this large.
SURE_BIAS = 3.3
SMALL_BIAS, LARGE_BIAS = 0.02, 0.05

SIDES_UNKNOWN = "sides unknown"  # what to fit with where left and right mean nothing

COPIED = 0.95  # of the repeats are copies: an export that wrote votes twice, not people
FEWEST_COPIES = 10  # before anything is said about exports


def uneven_weights(facts: Facts) -> Iterator[Finding]:
    """Find out whether a few votes weigh so much that the others hardly count."""
    found = Summary.of(facts.votes).unevenness
    if found is not None:
        yield UnevenWeights(*found)


def ties(facts: Facts) -> Iterator[Finding]:
    """Find out whether ties are all there is, or missing."""
    if facts.decided == 0:
        yield OnlyTies(amount(float(facts.answers[:, 1].sum())))
    elif not facts.has_ties:
        yield NoTies(amount(facts.decided))


def preferred_sides(facts: Facts) -> Iterator[Finding]:
    """Find out whether the study as a whole prefers a side, and whether that can be told."""
    left, decided = float(facts.answers[:, 0].sum()), facts.decided
    if not facts.has_sides or decided < FEWEST_DECIDED:
        return
    if facts.is_winner_first:
        yield WinnerFirst("left" if left else "right", amount(decided))
        return
    share, expected = left / decided, float(facts.expected_left.sum()) / decided
    bias = abs(share - expected)
    is_sure = bias > SURE_BIAS * np.sqrt(0.25 * facts.votes_per_unit / decided)
    if is_sure and bias >= SMALL_BIAS:
        kind = LargePositionBias if bias >= LARGE_BIAS else PositionBias
        yield kind(share, expected)
    if facts.sides_are_fixed:
        yield FixedSides()


def repeats(facts: Facts) -> Iterator[Finding]:
    """Find rows that are there twice, and pairs that a user judged more than once."""
    votes = facts.votes
    # A pair with other features is another question; weights only say how much a vote matters.
    pairs = tally(votes, by_user=True, by_features=True, weighted=False)
    again = int(np.sum(pairs.amount - 1))
    if not again:
        return
    differing = int(np.sum(pairs.amount - np.max(pairs.counts, axis=0)))
    if facts.copies >= FEWEST_COPIES and facts.copies >= COPIED * again:
        yield DuplicateRows(again, facts.copies, differing, len(votes), facts.has_sides)
    else:
        yield Repeats(again, facts.copies, differing)


def repeated_ids(facts: Facts) -> Iterator[Finding]:
    """Find votes that have the same id."""
    ids = facts.votes.id
    if ids is not None and (again := stand_before(ids)).any():
        yield RepeatedIds(int(again.sum()), ids.filter(again).unique().sort().to_list())


# --- the findings -------------------------------------------------------------------------------


@dataclass(frozen=True)
class UnevenWeights(Finding):
    """A few votes weigh so much that the others hardly count."""

    severity = Severity.WARNING
    code = "uneven-weights"

    effective: float  # as many votes of equal weight would tell as much
    votes: int

    @property
    def sentence(self) -> str:
        """Say what it means, and what to do."""
        told = str(Unevenness(self.effective, self.votes))
        return f"{told[0].upper()}{told[1:]}"


@dataclass(frozen=True)
class OnlyTies(Finding):
    """Every vote is a tie."""

    severity = Severity.SERIOUS
    code = "only-ties"

    ties: float

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        return (
            f"Every vote is a tie: nothing tells one {nouns.item} from another. Check the column "
            "of the winner and its labels."
        )


@dataclass(frozen=True)
class NoTies(Finding):
    """No vote is a tie."""

    severity = Severity.NOTE
    code = "no-ties"
    sentence = (
        "No vote is a tie: these are forced choices. So the model has no tie threshold and never "
        "predicts a tie, and a ranking has no tiers. If people could answer with a tie, check that "
        "ties were not dropped."
    )

    votes: float


@dataclass(frozen=True)
class WinnerFirst(Finding):
    """All decided votes are for the same side."""

    severity = Severity.WARNING
    code = "winner-first"

    side: str
    votes: float

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        return (
            f"Every decided vote is for the {self.side} {nouns.item}. If the file simply lists "
            f"the winner on the {self.side}, sides mean nothing: fit with {SIDES_UNKNOWN}. "
            "Otherwise the model believes that people prefer that side. Nobody's habits can be "
            "checked. If the file has the sides as people saw them, check the column of the winner."
        )


@dataclass(frozen=True)
class PositionBias(Finding):
    """People prefer a side, a little."""

    severity = Severity.NOTE
    code = "position-bias"

    left_share: float  # of the decided votes
    expected_left_share: float  # from the items alone

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        side, won, expected = "left", self.left_share, self.expected_left_share
        if won <= expected:
            side, won, expected = "right", 1.0 - won, 1.0 - expected
        return (
            f"The {side} {nouns.item} wins {percent(won, 1)} of the decided votes, but "
            f"{percent(expected, 1)} would be expected from the {nouns.items} alone: people lean "
            "to that side. The model takes a common side into account, unless it is fitted with "
            f"{SIDES_UNKNOWN}."
        )


@dataclass(frozen=True)
class LargePositionBias(PositionBias):
    """People prefer a side, so much that it matters."""

    severity = Severity.WARNING


@dataclass(frozen=True)
class FixedSides(Finding):
    """Items keep their side."""

    severity = Severity.NOTE
    code = "fixed-sides"

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        return (
            f"{capitalized(nouns.items)} do not change sides at random. So a habit of answering "
            "left looks much like a preference, and was not checked. If people saw the "
            f"{nouns.items} on these sides, choose the sides at random next time. If they did not, "
            f"fit with {SIDES_UNKNOWN}."
        )


@dataclass(frozen=True)
class Repeats(Finding):
    """Pairs that a user judged more than once."""

    severity = Severity.NOTE
    code = "repeats"

    repeats: int  # votes on a pair that their user had judged already
    copies: int  # rows that are the same as another in everything
    differing: int  # votes that are not their user's usual answer to the pair

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        return (
            f"{number_of(self.repeats, 'vote')} {are(self.repeats)} on a pair that the same "
            f"{nouns.user} had judged before: {percent(self.differing / self.repeats)} of them "
            f"differ from that {nouns.user}'s usual answer, and {self.copies:,} {are(self.copies)} "
            "exact copies of another row. This is normal if pairs are shown again, or if "
            f"{nouns.items} come in several forms, such as one system on many texts."
        )


@dataclass(frozen=True)
class DuplicateRows(Repeats):
    """Rows that seem to have been written twice."""

    severity = Severity.WARNING
    code = "duplicate-rows"

    n_rows: int = field(metadata=SENTENCE_ONLY)
    has_sides: bool = field(default=True, metadata=SENTENCE_ONLY)

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        otherwise = "with the sides exchanged or " if self.has_sides else ""
        return (
            f"{self.copies:,} of {self.n_rows:,} rows are exact copies of another row, and almost "
            f"no {nouns.user} judged a pair again {otherwise}with another answer: "
            "the export may have written votes twice. Every copy counts as a vote; remove the "
            "copies unless people really gave these votes."
        )


@dataclass(frozen=True)
class RepeatedIds(Finding):
    """Votes that have the id of another vote."""

    severity = Severity.WARNING
    code = "vote-ids"

    votes: int  # beside the first of every id
    ids: list[Any]

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        return (
            f"{number_of(self.votes, 'vote')} {have(self.votes)} the id of another vote: "
            f"{some_of(self.ids)}. All of them count. Remove the votes that were written twice, or "
            "give every vote an id of its own."
        )
