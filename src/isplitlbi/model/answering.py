"""How votes follow from margin and threshold: a link, and on which scale its threshold is.

The loops take any `Answering`: they know one number per margin and one per threshold, and not what
the second means. A `Link` by itself is the paper's model, with the threshold as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isplitlbi.model.links import Link, Real, threshold_of
from isplitlbi.typing import Floats

__all__ = ["NEVER", "Answering", "ForcedChoice", "LogThreshold", "log_probabilities"]

NEVER = -1e300  # log-probability of what does not occur; none of such votes still cost nothing


class Answering(Protocol):
    """What the loops ask for."""

    def vote_terms(
        self, margin: Real, level: Real, first_wins: Real, ties: Real, second_wins: Real
    ) -> tuple[Real, Real, Real, Real, Real, Real]:
        """Return the loss of weighted votes on one pair, and what it bends by: see `Link`."""

    def outcomes(self, margin: Real, level: Real) -> tuple[Real, Real, Real]:
        """Return the log-probabilities of first wins, tie, second wins."""

    def tie_within(self, level: Real) -> Real:
        """Return within which margin the threshold says a tie."""


@dataclass(frozen=True)
class LogThreshold:
    """A link whose threshold is told by its logarithm: terms add up there, without a bound."""

    link: Link

    def vote_terms(
        self, margin: Real, level: Real, first_wins: Real, ties: Real, second_wins: Real
    ) -> tuple[Real, Real, Real, Real, Real, Real]:
        """Return the loss, and what it bends by on average."""
        return self.link.log_scale_terms(margin, level, first_wins, ties, second_wins)

    def outcomes(self, margin: Real, level: Real) -> tuple[Real, Real, Real]:
        """Return the log-probabilities of first wins, tie, second wins."""
        return self.link.outcomes(margin, threshold_of(level))

    def tie_within(self, level: Real) -> Real:
        """Return the threshold."""
        return threshold_of(level)


@dataclass(frozen=True)
class ForcedChoice:
    """A link without a threshold: one of two wins, and there is nothing between."""

    link: Link

    def vote_terms(
        self, margin: Real, level: Real, first_wins: Real, ties: Real, second_wins: Real
    ) -> tuple[Real, Real, Real, Real, Real, Real]:
        """Return the loss and how it bends by the margin; there is no threshold to bend by."""
        loss, by_margin, mm = self.link.forced_terms(margin, first_wins, second_wins)
        nothing = 0.0 * level
        return loss, by_margin, nothing, mm, nothing, nothing

    def outcomes(self, margin: Real, level: Real) -> tuple[Real, Real, Real]:
        """Return the log-probabilities of first wins, tie, second wins."""
        return self.link.win(margin)[0], NEVER + 0.0 * level, self.link.win(-margin)[0]

    def tie_within(self, level: Real) -> Real:
        """Return nothing: there are no ties."""
        return 0.0 * level


def log_probabilities(
    link: Link, margin: Floats, threshold: Floats | float, *, has_ties: bool
) -> Floats:
    """Return those of left, tie and right, given thresholds as they are; or there are no ties.

    Examples
    --------
    >>> from isplitlbi.model.links import Logistic
    >>> np.exp(log_probabilities(Logistic(), np.zeros(1), 0.0, has_ties=False))
    array([[0.5, 0. , 0.5]])
    """
    if has_ties:
        return link.log_probabilities(margin, threshold)
    return np.stack(ForcedChoice(link).outcomes(margin, np.zeros_like(margin)), axis=-1)
