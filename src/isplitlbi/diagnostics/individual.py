"""Do individual rankings help? An experiment on held-out votes, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import THRESHOLD
from isplitlbi.data.splits import n_units, units
from isplitlbi.diagnostics.facts import Facts, sums
from isplitlbi.diagnostics.findings import Finding, Severity
from isplitlbi.model.links import Link, Logistic
from isplitlbi.model.parameters import Consensus
from isplitlbi.solvers.likelihood import fit_before_entries, fit_consensus, fit_numbers
from isplitlbi.solvers.settings import Dynamics
from isplitlbi.typing import Floats

__all__ = ["individual_rankings"]

# Individual rankings are judged on at most so many votes: more would only sharpen the last digit.
MOST_MEASURED = 200_000
FEWEST_HELD_OUT = 100
N_FOLDS = 5
NUS = (0.1, 1.0)  # users held close to the consensus, and less so
USEFUL_GAIN = 0.01  # of log-loss per vote
MOSTLY = 0.75  # of the gain is due to thresholds: rankings are not worth the word
STANDARD_ERRORS = 2.0


def individual_rankings(facts: Facts) -> Iterator[Finding]:
    """Find out whether individual rankings can be expected to help, by measurement."""
    if len(facts.active_users) < 2 or facts.decided == 0:
        return
    measured = measure(facts.votes)
    yield TooFewVotes() if measured is None else _verdict(measured)


# --- the findings -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _IndividualRankings(Finding):
    """Whether individual rankings can be expected to help."""

    severity = Severity.NOTE
    code = "individual-rankings"
    verdict: ClassVar[str]

    @property
    def details(self) -> dict[str, Any]:
        """The verdict and what it rests on."""
        return {"verdict": self.verdict, **super().details}


@dataclass(frozen=True)
class TooFewVotes(_IndividualRankings):
    """Too few votes were held out."""

    verdict = "unclear"
    sentence = (
        "There are too few votes to tell whether individual rankings can be expected to help."
    )


@dataclass(frozen=True)
class _Measured(_IndividualRankings):
    """A verdict that rests on losses per held-out vote."""

    consensus_log_loss: float
    own_thresholds_log_loss: float
    own_rankings_log_loss: float
    gain: float  # by rankings and thresholds together
    standard_error: float
    nu: float  # for which people's own rankings did best


@dataclass(frozen=True)
class Help(_Measured):
    """Individual rankings help."""

    verdict = "help"

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        return (
            "Individual rankings can be expected to help: on held-out votes they lower the "
            f"log-loss from {self.consensus_log_loss:.3f} to {self.own_rankings_log_loss:.3f}."
        )


@dataclass(frozen=True)
class ThresholdsHelp(_Measured):
    """Individual thresholds help, and rankings hardly more."""

    verdict = "thresholds"

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        return (
            "Individual fits can be expected to help, mostly by tie thresholds: people differ more "
            "in how readily they call a tie than in what they prefer. On held-out votes the "
            f"log-loss is {self.consensus_log_loss:.3f} with one ranking for all, "
            f"{self.own_thresholds_log_loss:.3f} with everybody's own threshold, and "
            f"{self.own_rankings_log_loss:.3f} with everybody's own ranking as well."
        )


@dataclass(frozen=True)
class NoHelp(_Measured):
    """Individual rankings do not help."""

    verdict = "no-help"

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        can = "can hardly" if self.gain > STANDARD_ERRORS * self.standard_error else "cannot"
        return (
            f"Individual rankings {can} be expected to help with these votes: held out, their "
            f"log-loss is {self.consensus_log_loss:.3f} with one ranking for all and "
            f"{self.own_rankings_log_loss:.3f} with everybody's own."
        )


@dataclass(frozen=True)
class Unclear(_Measured):
    """The difference cannot be told from chance."""

    verdict = "unclear"

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        return (
            "These votes are too few to tell whether individual rankings help: on held-out votes "
            f"the log-loss is {self.consensus_log_loss:.3f} with one ranking for all and "
            f"{self.own_rankings_log_loss:.3f} with everybody's own, a difference of "
            f"{self.gain:.3f} give or take {self.standard_error:.3f}."
        )


# --- the experiment -----------------------------------------------------------------------------


class Measurement(NamedTuple):
    """Losses of held-out votes, summed per user, and the weights they belong to."""

    consensus: Floats  # one ranking and one threshold for all
    thresholds: Floats  # everybody's own threshold, one ranking
    own: Floats  # everybody's own ranking and threshold
    weight: Floats
    nu: float  # for which people's own did best

    def mean(self, losses: Floats) -> float:
        """Return the mean loss per vote."""
        return float(losses.sum() / self.weight.sum())

    def gain(self, before: Floats, after: Floats) -> tuple[float, float]:
        """Return the mean gain per vote and its standard error; users are the independent units."""
        gain = self.mean(before - after)
        n_users = int(np.count_nonzero(self.weight))
        spread = float(np.sum((before - after - gain * self.weight) ** 2))
        error = np.sqrt(spread * n_users / max(n_users - 1, 1)) / float(self.weight.sum())
        return gain, float(error)


def measure(votes: Comparisons) -> Measurement | None:
    """Compare, on held-out votes, one ranking for all with everybody's own.

    Own rankings are those at the very start of the path, where the votes of all users already count
    but nobody has left the consensus. Returns None where too few votes can be held out.
    """
    rng = np.random.default_rng(0)
    if len(votes) > MOST_MEASURED:
        votes = _some_users(votes, rng)
    # Not stratified by outcome: a user's held-out ties would then match those in training even
    # where both are chance, and thresholds of one's own would seem to help people who are alike.
    fold = rng.integers(N_FOLDS, size=n_units(votes))[units(votes)]
    n_folds = N_FOLDS if len(votes) * N_FOLDS <= MOST_MEASURED else 1  # one says enough of many
    losses = np.zeros((2 + len(NUS), votes.n_users))
    weight = np.zeros(votes.n_users)
    n_held_out = 0
    for number in range(n_folds):
        training, held_out = votes.subset(fold != number), votes.subset(fold == number)
        if len(training) and len(held_out):
            losses += _losses(training, held_out)
            weight += sums(held_out.user, held_out.weight, votes.n_users)
            n_held_out += len(held_out)
    if n_held_out < FEWEST_HELD_OUT:
        return None
    alone, thresholds, *own = losses
    best = int(np.argmin([loss.sum() for loss in own]))
    return Measurement(alone, thresholds, own[best], weight, NUS[best])


def _verdict(measured: Measurement) -> Finding:
    """Judge by what is gained, how surely, and by what."""
    gain, error = measured.gain(measured.consensus, measured.own)
    of_ties, error_of_ties = measured.gain(measured.consensus, measured.thresholds)
    kind: type[_Measured]
    ties_help = of_ties > max(STANDARD_ERRORS * error_of_ties, USEFUL_GAIN)
    if ties_help and of_ties > MOSTLY * gain:
        kind = ThresholdsHelp
    elif gain > max(STANDARD_ERRORS * error, USEFUL_GAIN):
        kind = Help
    elif gain + STANDARD_ERRORS * error < 2.0 * USEFUL_GAIN:
        kind = NoHelp
    else:
        kind = Unclear
    return kind(
        consensus_log_loss=measured.mean(measured.consensus),
        own_thresholds_log_loss=measured.mean(measured.thresholds),
        own_rankings_log_loss=measured.mean(measured.own),
        gain=gain,
        standard_error=error,
        nu=measured.nu,
    )


def _losses(training: Comparisons, held_out: Comparisons) -> Floats:
    """Return losses per user for one ranking, for own thresholds, and for own rankings per nu."""
    link, delta = Logistic(), Dynamics().delta
    pairs = held_out.user, held_out.left, held_out.right
    happened = np.arange(len(held_out)), 1 - held_out.outcome
    weight = 1.0 if held_out.weight is None else held_out.weight

    def losses(margin: Floats, threshold: Floats | float) -> Floats:
        log_probabilities = link.log_probabilities(margin, threshold)
        return sums(held_out.user, -weight * log_probabilities[happened], held_out.n_users)

    consensus = fit_consensus(training, link, delta)
    margin = consensus.scores[held_out.left] - consensus.scores[held_out.right]
    own_threshold = own_thresholds(training, link, consensus, delta)[held_out.user]
    everybodys_own = [fit_before_entries(training, link, Dynamics(nu=nu)) for nu in NUS]
    return np.stack(
        [
            losses(margin, consensus.threshold),
            losses(margin, own_threshold),
            *(losses(*own.margin_and_threshold(*pairs)) for own in everybodys_own),
        ]
    )


def _some_users(votes: Comparisons, rng: np.random.Generator) -> Comparisons:
    """Draw users, at least two, until together they have as many votes as are measured."""
    order = rng.permutation(np.flatnonzero(votes.votes_per_user))
    n_drawn = int(np.searchsorted(np.cumsum(votes.votes_per_user[order]), MOST_MEASURED))
    drawn = np.zeros(votes.n_users, dtype=np.bool_)
    drawn[order[: max(n_drawn, 2)]] = True
    part = votes.subset(drawn[votes.user])
    # Built anew: a part keeps the slots of the whole, and a fit would visit them all.
    return Comparisons.from_arrays(
        part.user, part.left, part.right, part.outcome, part.weight, part.group
    )


def own_thresholds(votes: Comparisons, link: Link, consensus: Consensus, delta: float) -> Floats:
    """Fit everybody's tie threshold to the scores of the consensus, under a ridge of variance 1."""
    return fit_numbers(votes, link, consensus, [THRESHOLD], variance=1.0, delta=delta).threshold
