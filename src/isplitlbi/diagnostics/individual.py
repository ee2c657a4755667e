"""Do individual rankings help? An experiment on held-out votes, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import TASTE, THRESHOLD, Shown
from isplitlbi.data.splits import n_units, units
from isplitlbi.diagnostics.facts import Facts, sums
from isplitlbi.diagnostics.findings import Finding, Severity
from isplitlbi.model.answering import log_probabilities
from isplitlbi.model.links import Logistic
from isplitlbi.model.terms import Terms
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.common import common_terms, fit_common
from isplitlbi.solvers.scales import Sizes, estimate_sizes, fit_sized
from isplitlbi.typing import Floats

__all__ = ["individual_rankings"]

# Individual rankings are judged on at most so many votes: more would only sharpen the last digit.
MOST_MEASURED = 200_000
FEWEST_HELD_OUT = 100
N_FOLDS = 5
TASTES = (1.0, 0.25)  # of the variance of tastes that the votes suggest, and closer together
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
    own_thresholds_log_loss: float | None  # none without ties
    own_rankings_log_loss: float
    gain: float  # by all that people differ in
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

    consensus: Floats  # all users alike
    thresholds: Floats | None  # everybody's own threshold, if there are ties; else alike
    own: Floats  # everybody's own in all terms
    weight: Floats
    nu: float  # for which people's own did best, on average over the folds

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

    Own rankings are those at the very start of the path of the model that is fitted by default,
    where the votes of all users already count but nobody has left the consensus. All have what the
    consensus of that model has: a side, features, tie habits. Returns None where too few votes can
    be held out.
    """
    rng = np.random.default_rng(0)
    if len(votes) > MOST_MEASURED:
        votes = _some_users(votes, rng)
    # Not stratified by outcome: a user's held-out ties would then match those in training even
    # where both are chance, and thresholds of one's own would seem to help people who are alike.
    fold = rng.integers(N_FOLDS, size=n_units(votes))[units(votes)]
    n_folds = N_FOLDS if len(votes) * N_FOLDS <= MOST_MEASURED else 1  # one says enough of many
    losses, nus = np.zeros((2 + len(TASTES), votes.n_users)), np.zeros(len(TASTES))
    weight, terms = np.zeros(votes.n_users), _terms(votes)
    n_held_out = 0
    for number in range(n_folds):
        training, held_out = votes.subset(fold != number), votes.subset(fold == number)
        if len(training) and len(held_out):
            sizes = estimate_sizes(training, Logistic(), terms, Local(training))
            candidates = [sizes.resized({TASTE: factor}) for factor in TASTES]
            losses += _losses(training, held_out, candidates)
            nus += [each.nu / n_folds for each in candidates]
            weight += sums(held_out.user, held_out.weight, votes.n_users)
            n_held_out += len(held_out)
    if n_held_out < FEWEST_HELD_OUT:
        return None
    alone, thresholds, *own = losses
    best = int(np.argmin([loss.sum() for loss in own]))
    own_thresholds = thresholds if terms.has_ties else None
    return Measurement(alone, own_thresholds, own[best], weight, float(nus[best]))


def _verdict(measured: Measurement) -> Finding:
    """Judge by what is gained, how surely, and by what."""
    gain, error = measured.gain(measured.consensus, measured.own)
    thresholds = measured.consensus if measured.thresholds is None else measured.thresholds
    of_ties, error_of_ties = measured.gain(measured.consensus, thresholds)
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
        own_thresholds_log_loss=(
            None if measured.thresholds is None else measured.mean(measured.thresholds)
        ),
        own_rankings_log_loss=measured.mean(measured.own),
        gain=gain,
        standard_error=error,
        nu=measured.nu,
    )


def _terms(votes: Comparisons) -> Terms:
    """Return what people may differ in: the terms of the model that is fitted by default."""
    return Terms.named(
        "all",
        features=() if votes.features is None else votes.features.names,
        has_ties=bool(np.any(votes.outcome == 0)),
        has_sides=bool(votes.outcome.min() < 0 < votes.outcome.max()),  # or winners come first
    )


def _losses(training: Comparisons, held_out: Comparisons, sizes: Sequence[Sizes]) -> Floats:
    """Return losses per user for one ranking, for own thresholds, and for own rankings by sizes."""
    link, runtime, terms = Logistic(), Local(training), sizes[0].terms
    shown = Shown(held_out.left, held_out.right, held_out, np.arange(len(held_out)))
    happened = np.arange(len(held_out)), 1 - held_out.outcome
    weight = 1.0 if held_out.weight is None else held_out.weight

    def losses(margin: Floats, threshold: Floats) -> Floats:
        said = log_probabilities(link, margin, threshold, has_ties=terms.has_ties)
        return sums(held_out.user, -weight * said[happened], held_out.n_users)

    alike = common_terms(terms)
    own_threshold = alike.sized({THRESHOLD: terms.scale(THRESHOLD)})
    thresholds = Sizes(own_threshold, sizes[0].nu)
    consensus = fit_common(training, link, alike, variance=terms.score_variance)
    everybodys_own = [fit_sized(training, link, each, runtime) for each in (thresholds, *sizes)]
    known = [consensus.margin_and_threshold(shown.first, shown.second, shown)]
    known += [
        own.margin_and_threshold(held_out.user, shown.first, shown.second, shown)
        for own in everybodys_own
    ]
    return np.stack([losses(*each) for each in known])


def _some_users(votes: Comparisons, rng: np.random.Generator) -> Comparisons:
    """Draw users, at least two, until together they have as many votes as are measured."""
    order = rng.permutation(np.flatnonzero(votes.votes_per_user))
    n_drawn = int(np.searchsorted(np.cumsum(votes.votes_per_user[order]), MOST_MEASURED))
    drawn = np.zeros(votes.n_users, dtype=np.bool_)
    drawn[order[: max(n_drawn, 2)]] = True
    part = votes.subset(drawn[votes.user])
    # Built anew: a part keeps the slots of the whole, and a fit would visit them all.
    return replace(
        Comparisons.from_arrays(
            part.user, part.left, part.right, part.outcome, part.weight, part.group
        ),
        features=part.features,
    )
