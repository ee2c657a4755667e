"""What outcomes are called by who asks: the labels of a column of outcomes, and back to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.outcomes import FAMILIES, OUTCOMES, WINNERS, meaning
from isplitlbi.data.vocabulary import as_series, show
from isplitlbi.errors import InvalidVotes
from isplitlbi.lazy import pl

__all__ = ["NUMBERS", "OutcomeLabels", "labels_of"]

# In which ways people write a word.
MANNERS: tuple[Callable[[str], str], ...] = (str, str.capitalize, str.title, str.upper)


class OutcomeLabels(NamedTuple):
    """What each outcome is called, in the order of scikit-learn: by label.

    Examples
    --------
    >>> OutcomeLabels.of({1: "left", 0: "tie", -1: "right"})
    OutcomeLabels(labels=('left', 'right', 'tie'), outcomes=(1, -1, 0))
    """

    labels: tuple[Any, ...]
    outcomes: tuple[int, ...]  # what each label stands for

    @classmethod
    def of(cls, labels: Mapping[int, Any]) -> Self:
        """Sort labels that are known by outcome."""
        pairs = sorted((label, outcome) for outcome, label in labels.items())
        return cls(tuple(label for label, _ in pairs), tuple(outcome for _, outcome in pairs))

    def by_outcome(self) -> dict[int, Any]:
        """Return the label of every outcome."""
        return dict(zip(self.outcomes, self.labels, strict=True))

    def with_ties(self) -> OutcomeLabels:
        """Return the same with a label for ties: 0, or the word tie where labels are words."""
        known = self.by_outcome()
        if 0 in known:
            return self
        are_numbers = all(label == outcome for outcome, label in known.items())
        return OutcomeLabels.of({**known, 0: 0 if are_numbers else "tie"})

    def without_ties(self) -> Self:
        """Return those of left and right only."""
        return self.of({outcome: label for outcome, label in self.by_outcome().items() if outcome})

    def name(self, outcome: NDArray[np.int8]) -> NDArray[Any]:
        """Return the labels of outcomes; numbers stay as they are."""
        if self.labels == self.outcomes:
            return outcome
        called = self.by_outcome()
        return np.array([called.get(each) for each in (-1, 0, 1)])[outcome + 1]


NUMBERS = OutcomeLabels((-1, 0, 1), (-1, 0, 1))


def labels_of(y: Any) -> OutcomeLabels:
    """Return the labels in a column of outcomes: its own words, or the numbers 1, 0 and -1.

    There is one word for each outcome. An outcome that does not occur is called by the word that
    goes with the others.

    Examples
    --------
    >>> labels_of(["Left", "Tie", "Left"]).labels
    ('Left', 'Right', 'Tie')
    """
    column = None if y is None else as_series(y, "y", "y")
    if column is None or column.dtype != pl.String:
        return NUMBERS
    said: dict[int, str] = {}
    for word in column.drop_nulls().unique().sort():
        outcome = meaning(word)
        if outcome is None:
            continue  # whoever makes votes of it refuses it, with its row
        if outcome in said:
            raise InvalidVotes(
                f"y has two words for one outcome, {show(said[outcome])} and {show(word)} for "
                f"{WINNERS[outcome]}, and a model can give back only one. Use one of them."
            )
        said[outcome] = word
    return OutcomeLabels.of(_completed(said)) if said else NUMBERS


def _completed(said: Mapping[int, str]) -> dict[int, str]:
    """Add the words of outcomes that do not occur, in the manner of those that do."""
    for words in FAMILIES:
        for manner in MANNERS:
            like = {outcome: manner(word) for word, outcome in words.items()}
            if all(like[outcome] == word for outcome, word in said.items()):
                return like
    return {outcome: word for word, outcome in OUTCOMES.items()} | dict(said)
