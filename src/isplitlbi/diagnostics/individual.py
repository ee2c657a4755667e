"""Do individual rankings help? One experiment on held-out votes, and one verdict on it.

All that says something on it calls `verdict_on`: `check`, the report and `evaluate`.

How sure the verdict is. Every vote is held out once, in one of five parts, and predicted twice:
with one ranking for all, and with everybody's own. What is gained is added up user by user, and the
standard error of the mean gain is that of a ratio of sums over users: votes of one user, predicted
from other votes of the same user, are one observation and not many. The parts share most of their
training votes; this reaches a user's own gain, which counts as one, and other users only through
what all have in common: the consensus and how much people differ. To a change of these two the
total gain does not answer, to first order, where they are the ones that predict best. The consensus
is so by its fit. How much tastes differ is therefore chosen among several sizes by the held-out
votes themselves; with a size that is off, the standard error would be up to a quarter too small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import TASTE, THRESHOLD, Shown
from isplitlbi.data.outcomes import Sides
from isplitlbi.data.splits import lower_first, n_units, units
from isplitlbi.diagnostics.facts import Facts, runtime_for, sums
from isplitlbi.diagnostics.findings import Finding, Severity
from isplitlbi.model.answering import log_probabilities
from isplitlbi.model.differences import LEVEL
from isplitlbi.model.links import Logistic
from isplitlbi.model.temperature import (
    USEFUL_GAIN,
    Powers,
    best_power,
    log_probability_at,
    warning_of_one_ranking,
    warning_of_temperature,
)
from isplitlbi.model.terms import Terms
from isplitlbi.nouns import Nouns
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.common import common_terms, fit_common
from isplitlbi.solvers.scales import Sizes, estimate_sizes, fit_sized
from isplitlbi.typing import Floats

__all__ = ["CODE", "individual_rankings", "verdict_on"]

CODE = "individual-rankings"  # of the verdict among the findings
TOO_FEW = "There are too few {users} or votes to tell whether individual rankings help"

# Individual rankings are judged on at most so many votes: more would only sharpen the last digit.
MOST_MEASURED = 200_000
FEWEST_HELD_OUT = 100
N_FOLDS = 5
TASTES = (1.0, 4.0, 2.0, 0.5, 0.25)  # multiples of the variance of tastes that votes suggest
MOSTLY = 0.75  # of the gain is due to thresholds: rankings are not worth the word


def verdict_on(votes: Comparisons, *, sides: Sides = "known") -> Finding | None:
    """Return whether individual rankings help; None where nobody has anybody to differ from."""
    facts = Facts.of(votes, has_sides=sides == "known")
    return next(individual_rankings(facts), None)


def individual_rankings(facts: Facts) -> Iterator[Finding]:
    """Find out whether individual rankings help, by measurement, and how well they predict."""
    if len(facts.active_users) < 2 or facts.decided == 0:
        return
    if not facts.has_sides:  # which side an item was on must not count, in folds neither
        facts = Facts.of(lower_first(facts.votes), has_sides=False)
    measured = measure(facts.votes, has_sides=facts.has_sides)
    if measured is None:
        yield TooFewVotes()
        return
    yield _verdict(measured)
    yield from _warnings(measured)


# --- the findings -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _IndividualRankings(Finding):
    """Whether individual rankings help."""

    severity = Severity.NOTE
    code = CODE
    verdict: ClassVar[str]

    @property
    def details(self) -> dict[str, Any]:
        """The verdict and what it rests on."""
        return {"verdict": self.verdict, **super().details}


@dataclass(frozen=True)
class TooFewVotes(_IndividualRankings):
    """Too few votes were held out."""

    verdict = "unclear"

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person who calls items and users by these nouns."""
        return f"{TOO_FEW.format(users=nouns.users)}."


@dataclass(frozen=True)
class _Measured(_IndividualRankings):
    """A verdict that rests on losses per held-out vote."""

    consensus_log_loss: float
    own_thresholds_log_loss: float | None  # none without ties
    own_rankings_log_loss: float
    consensus_accuracy: float  # shares of held-out votes that are predicted
    own_rankings_accuracy: float
    gain: float  # of log-loss, by all that people differ in
    standard_error: float
    gain_low: float
    gain_high: float
    nu: float  # for which people's own rankings did best

    @property
    def _interval(self) -> str:
        return f"95 % interval {self.gain_low:.3f} to {self.gain_high:.3f}"

    @property
    def _predicted(self) -> str:
        return (
            f"they predict {100 * self.own_rankings_accuracy:.0f} of 100 held-out votes, "
            f"one ranking for all predicts {100 * self.consensus_accuracy:.0f}"
        )

    @property
    def _both(self) -> str:
        return (
            f"{self._predicted}. The log-loss is {self.own_rankings_log_loss:.3f} and "
            f"{self.consensus_log_loss:.3f}, a gain of {self.gain:.3f} ({self._interval})."
        )


@dataclass(frozen=True)
class Help(_Measured):
    """Individual rankings help."""

    verdict = "help"

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        return f"Individual rankings help: {self._both}"


@dataclass(frozen=True)
class ThresholdsHelp(_Measured):
    """Individual thresholds help, and rankings hardly more."""

    verdict = "thresholds"

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        return (
            f"Individual fits help, mostly by tie thresholds: {self._predicted}. People differ "
            "more in how readily they call a tie than in what they prefer: the log-loss is "
            f"{self.consensus_log_loss:.3f} with one ranking for all, "
            f"{self.own_thresholds_log_loss:.3f} with everybody's own threshold, and "
            f"{self.own_rankings_log_loss:.3f} with everybody's own ranking as well, a gain of "
            f"{self.gain:.3f} in all ({self._interval})."
        )


@dataclass(frozen=True)
class NoHelp(_Measured):
    """Individual rankings do not help."""

    verdict = "no-help"

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        help_little = "hardly help" if self.gain_low > 0.0 else "do not help"
        return f"Individual rankings {help_little}: {self._both}"


@dataclass(frozen=True)
class Unclear(_Measured):
    """The difference cannot be told from chance."""

    verdict = "unclear"

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person who calls items and users by these nouns."""
        return f"{TOO_FEW.format(users=nouns.users)}: {self._both}"


@dataclass(frozen=True)
class WrongTemperature(Finding):
    """The model is too sure of itself, or not sure enough."""

    severity = Severity.WARNING
    code = "temperature"
    temperature: float  # of the predictions of held-out votes by everybody's own rankings
    standard_error: float  # of its logarithm

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person who calls items and users by these nouns."""
        return warning_of_temperature(self.temperature, self.standard_error, nouns) or ""


@dataclass(frozen=True)
class WorseThanOneRanking(Finding):
    """One ranking for all predicts better than everybody's own."""

    severity = Severity.WARNING
    code = "worse-than-one-ranking"
    own_rankings_log_loss: float
    consensus_log_loss: float
    standard_error: float  # of the difference

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person who calls items and users by these nouns."""
        losses = self.own_rankings_log_loss, self.consensus_log_loss
        return warning_of_one_ranking(*losses, self.standard_error, nouns) or ""


# --- the experiment -----------------------------------------------------------------------------


class Gain(NamedTuple):
    """The mean gain per vote, its standard error, and its interval."""

    mean: float
    standard_error: float
    low: float
    high: float


class Measurement(NamedTuple):
    """Losses of held-out votes, summed per user, and the weights they belong to."""

    consensus: Floats  # all users alike
    thresholds: Floats | None  # everybody's own threshold, if there are ties; else alike
    own: Floats  # everybody's own in all terms
    weight: Floats
    predicted: tuple[float, float]  # shares of the votes, by one ranking for all and by own ones
    nu: float  # for which people's own did best, on average over the folds
    powers: Powers  # by fold, that would have predicted best from those by own rankings

    def mean(self, losses: Floats) -> float:
        """Return the mean loss per vote."""
        return float(losses.sum() / self.weight.sum())

    def gain(self, before: Floats, after: Floats) -> Gain:
        """Return the mean gain per vote; users are the independent units."""
        gain, total = self.mean(before - after), float(self.weight.sum())
        n_users = int(np.count_nonzero(self.weight))
        spread = float(np.sum((before - after - gain * self.weight) ** 2))
        error = float(np.sqrt(spread * n_users / max(n_users - 1, 1))) / total
        # Few users, or few who have most of the votes, tell little of how much users vary.
        freedom = max(total**2 / float(np.sum(self.weight**2)) - 1.0, 1.0)
        reach = float(scipy.special.stdtrit(freedom, 0.5 + 0.5 * LEVEL)) * error
        return Gain(gain, error, gain - reach, gain + reach)


def measure(votes: Comparisons, *, has_sides: bool = True) -> Measurement | None:
    """Compare, on held-out votes, one ranking for all with everybody's own.

    Own rankings are those at the very start of the path of the model that is fitted by default,
    where the votes of all users already count but nobody has left the consensus. All have what the
    consensus of that model has: a side (where sides mean something), features, tie habits. Returns
    None where too few votes can be held out.
    """
    rng = np.random.default_rng(0)
    if len(votes) > MOST_MEASURED:
        votes = _some_users(votes, rng)
    # Not stratified by outcome: a user's held-out ties would then match those in training even
    # where both are chance, and thresholds of one's own would seem to help people who are alike.
    fold = rng.integers(N_FOLDS, size=n_units(votes))[units(votes)]
    n_folds = N_FOLDS if len(votes) * N_FOLDS <= MOST_MEASURED else 1  # one says enough of many
    losses, nus = np.zeros((2 + len(TASTES), votes.n_users)), np.zeros(len(TASTES))
    powers: list[list[Powers]] = []
    predicted = np.zeros(len(losses))
    weight, terms = np.zeros(votes.n_users), _terms(votes, has_sides)
    n_held_out = 0
    for number in range(n_folds):
        training, held_out = votes.subset(fold != number), votes.subset(fold == number)
        if len(training) and len(held_out):
            runtime = runtime_for(training)
            sizes = estimate_sizes(training, Logistic(), terms, runtime)
            candidates = [sizes.resized({TASTE: factor}) for factor in TASTES]
            lost, right, of_fold = _losses(held_out, candidates, runtime)
            powers.append(of_fold)
            losses, predicted = losses + lost, predicted + right
            nus += [each.nu / n_folds for each in candidates]
            weight += sums(held_out.user, held_out.weight, votes.n_users)
            n_held_out += len(held_out)
    if n_held_out < FEWEST_HELD_OUT:
        return None
    alone, thresholds, *own = losses
    best = int(np.argmin([loss.sum() for loss in own]))
    own_thresholds = thresholds if terms.has_ties else None
    shares = predicted / weight.sum()
    return Measurement(
        alone, own_thresholds, own[best], weight, (float(shares[0]), float(shares[2 + best])),
        float(nus[best]), Powers(*np.array([each[best] for each in powers]).T[..., None]),
    )  # fmt: skip


def _verdict(measured: Measurement) -> Finding:
    """Judge by what is gained, how surely, and by what."""
    gain = measured.gain(measured.consensus, measured.own)
    thresholds = measured.consensus if measured.thresholds is None else measured.thresholds
    of_ties = measured.gain(measured.consensus, thresholds)
    kind: type[_Measured]
    if _is_useful(of_ties) and of_ties.mean > MOSTLY * gain.mean:
        kind = ThresholdsHelp
    elif _is_useful(gain):
        kind = Help
    elif gain.high < 2.0 * USEFUL_GAIN:
        kind = NoHelp
    else:
        kind = Unclear
    return kind(
        consensus_log_loss=measured.mean(measured.consensus),
        own_thresholds_log_loss=(
            None if measured.thresholds is None else measured.mean(measured.thresholds)
        ),
        own_rankings_log_loss=measured.mean(measured.own),
        consensus_accuracy=measured.predicted[0],
        own_rankings_accuracy=measured.predicted[1],
        gain=gain.mean,
        standard_error=gain.standard_error,
        gain_low=gain.low,
        gain_high=gain.high,
        nu=measured.nu,
    )


def _warnings(measured: Measurement) -> Iterator[Finding]:
    """Say what is wrong with the predictions by everybody's own rankings."""
    temperature = WrongTemperature(
        float(measured.powers.temperature[0]), float(measured.powers.error[0])
    )
    gain = measured.gain(measured.consensus, measured.own)
    worse = WorseThanOneRanking(
        measured.mean(measured.own), measured.mean(measured.consensus), gain.standard_error
    )
    yield from (each for each in (temperature, worse) if each.sentence)


def _is_useful(gain: Gain) -> bool:
    return gain.low > 0.0 and gain.mean > USEFUL_GAIN


def _terms(votes: Comparisons, has_sides: bool) -> Terms:
    """Return what people may differ in: the terms of the model that is fitted by default."""
    return Terms.named(
        "all",
        features=() if votes.features is None else votes.features.names,
        has_ties=bool(np.any(votes.outcome == 0)),
        # Or winners come first.
        has_sides=has_sides and bool(votes.outcome.min() < 0 < votes.outcome.max()),
    )


def _losses(
    held_out: Comparisons, sizes: Sequence[Sizes], runtime: Local
) -> tuple[Floats, Floats, list[Powers]]:
    """Return losses per user, how many votes are predicted in all, and the best powers.

    The first two are of one ranking, of own thresholds, and of own rankings by sizes, the last of
    the latter; the runtime has the votes that these are fitted to.
    """
    training, link, terms = runtime.votes, Logistic(), sizes[0].terms
    shown = Shown(held_out.left, held_out.right, held_out, np.arange(len(held_out)))
    happened = np.arange(len(held_out)), 1 - held_out.outcome
    weight = 1.0 if held_out.weight is None else held_out.weight

    def judged(margin: Floats, threshold: Floats) -> tuple[Floats, float, Powers]:
        said = log_probabilities(link, margin, threshold, has_ties=terms.has_ties)
        lost = sums(held_out.user, -weight * said[happened], held_out.n_users)
        right = float(np.sum(weight * (said.argmax(axis=1) == happened[1])))

        def derivatives(power: float) -> tuple[float, float]:
            mean, variance = log_probability_at(said, power)
            return float(np.sum(weight * (mean - said[happened]))), float(np.sum(weight * variance))

        return lost, right, Powers(*np.array(best_power(derivatives)))

    alike = common_terms(terms)
    own_threshold = alike.sized({THRESHOLD: terms.scale(THRESHOLD)})
    thresholds = Sizes(own_threshold, sizes[0].nu)
    consensus = fit_common(training, link, alike, variance=terms.score_variance, runtime=runtime)
    everybodys_own = [fit_sized(training, link, each, runtime) for each in (thresholds, *sizes)]
    known = [consensus.margin_and_threshold(shown.first, shown.second, shown)]
    known += [
        own.margin_and_threshold(held_out.user, shown.first, shown.second, shown)
        for own in everybodys_own
    ]
    lost, right, powers = zip(*(judged(*each) for each in known), strict=True)
    return np.stack(lost), np.array(right), list(powers[2:])


def _some_users(votes: Comparisons, rng: np.random.Generator) -> Comparisons:
    """Draw users, at least two, until together they have as many votes as are measured."""
    order = rng.permutation(np.flatnonzero(votes.votes_per_user))
    n_drawn = int(np.searchsorted(np.cumsum(votes.votes_per_user[order]), MOST_MEASURED))
    drawn = np.zeros(votes.n_users, dtype=np.bool_)
    drawn[order[: max(n_drawn, 2)]] = True
    part = votes.subset(drawn[votes.user])
    # Alone: a part keeps the slots of the whole, and a fit would visit them all. Units stay.
    return replace(
        part.alone(np.arange(len(part)), is_part=True).in_weight_unit(votes.weight_unit),
        features=part.features, time=None, duration=None, id=None,
    )  # fmt: skip
