"""What can be found in votes: records with fields, each of which makes its own sentence.

Conventions
-----------
amount     a number of votes as the fit counts them: a sum of weights, the number of rows where
           there are no weights
sentence   what was found, what it means, and what to do, for a person who runs a study
details    the same for programs
serious    a fit would go through and mislead; everything else leaves the fit usable
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar

from isplitlbi.data.vocabulary import show
from isplitlbi.nouns import NOUNS, Nouns

__all__ = ["Diagnosis", "Finding", "Severity"]

NAMED = 3  # ids in a sentence; all of them are in the details
DIGITS = 6  # of a number in the details

# Of a field that the sentence needs and the details do not have.
SENTENCE_ONLY = {"in_details": False}


class Severity(IntEnum):
    """How much a finding matters to who uses the fit."""

    NOTE = 1
    WARNING = 2
    SERIOUS = 3


@dataclass(frozen=True)
class Finding:
    """One thing found in the votes. A subclass has what belongs to it as its fields.

    It has a ``sentence`` or, where items or users are in the sentence, ``in_words``.
    """

    severity: ClassVar[Severity]
    code: ClassVar[str]

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        return self.in_words(NOUNS)

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person who calls items and users by these nouns."""
        return self.sentence

    @property
    def details(self) -> dict[str, Any]:
        """The fields as plain values, numbers rounded."""
        return {
            each.name: _rounded(getattr(self, each.name))
            for each in fields(self)
            if each.metadata.get("in_details", True)
        }

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return {
            "severity": self.severity.name.lower(),
            "code": self.code,
            "sentence": self.sentence,
            "details": self.details,
        }


@dataclass(frozen=True)
class Diagnosis:
    """What is in the votes, and the findings, the most serious first."""

    summary: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def is_serious(self) -> bool:
        """Whether a fit of these votes would mislead."""
        return any(finding.severity == Severity.SERIOUS for finding in self.findings)

    @property
    def has_warnings(self) -> bool:
        """Whether there is more than notes to say of these votes."""
        return any(finding.severity >= Severity.WARNING for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return {
            "summary": self.summary,
            "serious": self.is_serious,
            "findings": [finding.as_dict() for finding in self.findings],
        }


# --- numbers and words --------------------------------------------------------------------------


def amount(number: float) -> float:
    """Return an amount for the fields of a finding: an integer where it is whole."""
    return int(number) if float(number).is_integer() else float(number)


def amounts(numbers: Iterable[float]) -> list[float]:
    """Return several of them."""
    return [amount(number) for number in numbers]


def number_of(many: float, noun: str) -> str:
    """Return a count with its noun, such as 1 vote and 1,200 votes."""
    digits = f"{many:,.0f}" if float(many).is_integer() else f"{many:,.1f}"
    return f"{digits} {noun}{'' if many == 1 else 's'}"


def are(number: int) -> str:
    """Return the verb for so many."""
    return "is" if number == 1 else "are"


def have(number: int) -> str:
    """Return the verb for so many."""
    return "has" if number == 1 else "have"


def percent(share: float, digits: int = 0) -> str:
    """Return a share such as 12 %."""
    return f"{100 * share:.{digits}f} %"


def some_of(ids: Sequence[Any]) -> str:
    """Name the first few ids and count the rest."""
    named = ", ".join(show(value) for value in ids[:NAMED])
    return f"{named} and {len(ids) - NAMED:,} more" if len(ids) > NAMED else named


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, DIGITS) if isinstance(value, float) else value
