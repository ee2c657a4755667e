"""Choosing where to stop: score curves along the path on held-out votes, and the best time.

Votes are held out within users, and scored while the path of the rest advances, so that the users'
parameters at every time are never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.frames import Tabular
from isplitlbi.data.layout import Sees
from isplitlbi.errors import InvalidSetting, Setting
from isplitlbi.lazy import pl
from isplitlbi.model.links import Link
from isplitlbi.model.metrics import decide, macro_f1, micro_f1, most_probable, paper_f1
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.temperature import (
    Powers,
    best_power,
    warning_of_one_ranking,
    warning_of_temperature,
)
from isplitlbi.model.terms import Terms
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.settings import Dynamics, PathSettings
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats, Indices, Mask

__all__ = [
    "ESTIMATES",
    "PUBLISHED_SCORINGS",
    "RULES",
    "SCORINGS",
    "Curves",
    "Estimate",
    "Rule",
    "Scoring",
    "Selection",
    "check_scoring",
    "score_votes",
]

Rule = Literal["map", "threshold"]
Scoring = Literal["log_loss", "micro_f1", "macro_f1", "paper_micro_f1", "paper_macro_f1"]
Estimate = Literal["dense", "sparse"]

# By what a time may be chosen; curves have all of them.
SCORINGS = ("log_loss", "micro_f1", "macro_f1")
# So do the F1s of the published program, which are of the threshold rule alone; curves have the one
# by which their time was chosen.
PUBLISHED_SCORINGS = ("paper_micro_f1", "paper_macro_f1")
ESTIMATES = ("dense", "sparse")
RULES = ("map", "threshold")
# Standard errors of a difference that are not enough. Fits of simulated studies predict alike from
# 0 to 1; at a half, the odds are two to one that whoever leaves was right to.
CAUTION = 0.5

# A path without a fold ends where its held-out loss has risen above its best by this much: by ten
# units of log-likelihood, so that the fold's votes are e^10 times less probable there. The noise of
# such a difference is the root of twice itself, so these are more than two standard errors. And by
# one per cent, as exactly as such a path is followed. Where many careless users leave first, losses
# may rise far and fall again: where another fold went on to a time that is better by half as much,
# the folds that had ended are followed to the end. On 123 studies of which this rule was made, and
# 37 others, the time chosen was the same as without; one needed its second half.
ENDED_BY, ENDED_BY_SHARE, IN_DOUBT = 10.0, 0.01, 0.5


def check_scoring(scoring: str, rule: Rule) -> None:
    """Refuse a score by which no time can be chosen."""
    known = (*SCORINGS, *PUBLISHED_SCORINGS)
    if scoring not in known:
        raise InvalidSetting(f"scoring {scoring!r} is not one of {', '.join(known)}.")
    if scoring in PUBLISHED_SCORINGS and rule != "threshold":
        raise InvalidSetting(
            f"scoring {scoring!r} is of the published program, which predicts by the threshold: "
            "it needs ",
            Setting("rule", "threshold"),
            ".",
        )


@dataclass(frozen=True, repr=False)
class Curves:
    """Scores on held-out votes along the path of one choice of nu and kappa.

    ``scores[estimate][scoring]`` has shape (n_folds, n_times). The *dense* estimate uses all of P,
    the *sparse* one only the deviations of users who have left the consensus. A fold whose path has
    ended has NaN at all later times, and so have means.

    ``powers[estimate]`` says how sure the predictions of every fold should have been; curves that
    an older release has stored have none.
    """

    dynamics: Dynamics
    times: Floats
    fold_weight: Floats
    scores: dict[str, dict[str, Floats]]
    powers: dict[str, Powers] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Say of what they are."""
        n_folds, n_times = self.scores[ESTIMATES[0]][SCORINGS[0]].shape
        return (
            f"Curves: {n_folds} folds at {n_times} times, nu {self.dynamics.nu:.3g}, kappa "
            f"{self.dynamics.kappa:.3g}"
        )

    @property
    def n_known(self) -> int:
        """Number of times that the paths of all folds have reached."""
        known = np.isfinite(self.scores[ESTIMATES[0]][SCORINGS[0]]).all(axis=0)
        return int(np.count_nonzero(known))

    def mean(self, scoring: Scoring, estimate: Estimate = "dense") -> Floats:
        """Return the mean over folds at every time, each fold by its votes."""
        return np.average(self.scores[estimate][scoring], axis=0, weights=self.fold_weight)

    def spread(self, scoring: Scoring, estimate: Estimate = "dense") -> Floats:
        """Return the standard error of that mean."""
        scores = self.scores[estimate][scoring]
        if len(scores) < 2:
            return np.full(scores.shape[1], np.nan)
        return np.asarray(np.std(scores, axis=0, ddof=1) / np.sqrt(len(scores)))

    def best(
        self, scoring: Scoring, estimate: Estimate = "dense", *, cautious: bool = False
    ) -> int:
        """Return the index of the best time, the earliest where several are best.

        Cautiously, the earliest that is worse by no more than the noise of the difference: whoever
        leaves has to prove it on more than one fold.
        """
        mean = self.mean(scoring, estimate)
        best = _best(mean, scoring)
        scores = self.scores[estimate][scoring]
        if not cautious or len(scores) < 2:
            return best
        worse = np.abs(mean - mean[best])
        noise = np.std(scores - scores[:, [best]], axis=0, ddof=1) / np.sqrt(len(scores))
        return int(np.flatnonzero(worse <= CAUTION * noise)[0])

    def temperature(self, estimate: Estimate = "dense") -> Floats:
        """Return the best temperature of the predictions at every time, of all folds together."""
        if estimate not in self.powers:
            return np.full(len(self.times), np.nan)
        return self.powers[estimate].temperature

    def ended_too_early(self, estimate: Estimate) -> Indices:
        """Return the folds whose paths should have gone on: none, or all that have ended.

        They should where another fold tells of a better time after one of them had ended.
        """
        losses, n_known = self.scores[estimate]["log_loss"], self.n_known
        nobody = np.arange(0)
        if n_known == len(self.times):
            return nobody
        before = losses[:, self.best("log_loss", estimate)]
        later = np.fmin.reduce(losses[:, n_known:], axis=1)  # NaN of those that have ended
        is_better = _is_above(before, later, self.fold_weight, IN_DOUBT)
        ended = np.flatnonzero(np.isnan(losses[:, -1]))
        return ended if np.any(is_better) else nobody


@dataclass(frozen=True, repr=False)
class Selection(Tabular):
    """The curves of every candidate, and the choice made from them."""

    candidates: tuple[Curves, ...]
    scoring: Scoring
    rule: Rule
    chosen: Curves
    time: float
    estimate: Estimate = "dense"
    one_ranking_by_fold: Floats | None = None  # log-loss; unknown of an older release's model

    def __repr__(self) -> str:
        """Say what was chosen, by what, and from how many."""
        return (
            f"Selection: time {self.time:.3g}, nu {self.dynamics.nu:.3g}, kappa "
            f"{self.dynamics.kappa:.3g} by {self.scoring} ({self.rule}), of "
            f"{len(self.candidates)} candidate{'' if len(self.candidates) == 1 else 's'}"
        )

    def _table(self) -> pl.DataFrame:
        """Return how well every candidate predicts held-out votes at every time.

        Of every scoring there is the mean over folds and its standard error (``_se``), of the
        estimate that was to predict: the *dense* one, unless the other was asked for. They are
        empty at times that the path of some fold has not reached, since its scores had long passed
        their best.
        """
        tables = []
        for curves in self.candidates:
            dynamics, n_times = curves.dynamics, len(curves.times)
            columns: dict[str, Any] = {
                "nu": np.full(n_times, dynamics.nu),
                "kappa": np.full(n_times, dynamics.kappa),
                "time": curves.times,
            }
            names: Any = curves.scores[ESTIMATES[0]]
            for name in names:
                columns[name] = curves.mean(name, self.estimate)
                spread = curves.spread(name, self.estimate)
                columns[name] = pl.Series(columns[name]).fill_nan(None)
                columns[f"{name}_se"] = pl.Series(spread).fill_nan(None)
            columns["temperature"] = pl.Series(curves.temperature(self.estimate)).fill_nan(None)
            columns["chosen"] = (curves is self.chosen) & (curves.times == self.time)
            tables.append(pl.DataFrame(columns))
        return pl.concat(tables)

    @classmethod
    def best_of(
        cls,
        curves: Sequence[Curves],
        scoring: Scoring,
        rule: Rule,
        estimate: Estimate = "dense",
        *,
        cautious: bool = False,
        one_ranking: Floats | None = None,
    ) -> Self:
        """Choose the best candidate, and the best time on its path.

        With these goes the log-loss of one ranking for all, fold by fold, where that is known.
        """
        best = [each.mean(scoring, estimate)[each.best(scoring, estimate)] for each in curves]
        chosen = curves[_best(best, scoring)]
        time = float(chosen.times[chosen.best(scoring, estimate, cautious=cautious)])
        return cls(tuple(curves), scoring, rule, chosen, time, estimate, one_ranking)

    @property
    def dynamics(self) -> Dynamics:
        """The chosen nu and kappa."""
        return self.chosen.dynamics

    @property
    def log_loss(self) -> float:
        """The log-loss of held-out votes at the chosen time."""
        return float(self.chosen.mean("log_loss", self.estimate)[self._at])

    @property
    def temperature(self) -> float | None:
        """How sure the predictions at the chosen time are: above 1, too sure.

        Held-out votes are predicted best by probabilities to the power of its inverse, made to sum
        to one again. It is unknown of a model that an older release has stored.
        """
        temperature = float(self.chosen.temperature(self.estimate)[self._at])
        return None if np.isnan(temperature) else temperature

    @property
    def one_ranking(self) -> float | None:
        """The log-loss of one ranking for all on the same held-out votes.

        It is unknown of a model that an older release has stored.
        """
        alone = self.one_ranking_by_fold
        return None if alone is None else float(np.average(alone, weights=self.chosen.fold_weight))

    def warnings(self, nouns: Nouns = NOUNS) -> list[str]:
        """Say what is wrong with the predictions of held-out votes, a sentence or two for each."""
        said, at = [], self._at
        if (temperature := self.temperature) is not None:
            error = float(self.chosen.powers[self.estimate].error[at])
            said.append(warning_of_temperature(temperature, error, nouns))
        if (alone := self.one_ranking_by_fold) is not None:
            gaps, error = self.chosen.scores[self.estimate]["log_loss"][:, at] - alone, 0.0
            if len(gaps) > 1:
                error = float(np.std(gaps, ddof=1) / np.sqrt(len(gaps)))
            said.append(
                warning_of_one_ranking(self.log_loss, self.one_ranking or 0.0, error, nouns)
            )
        return [sentence for sentence in said if sentence is not None]

    @property
    def _at(self) -> int:
        return int(np.argmin(np.abs(self.chosen.times - self.time)))


class HeldOut:
    """Held-out votes, scored at every time of a path that advances without them.

    All machines find the scores of all users, so that they end a path together.

    Parameters
    ----------
    votes
        What is held out, of the users here.
    settings
        Of the path.
    rule
        How outcomes are predicted.
    runtime
        What the work is done with.
    ends_by
        The estimate whose log-loss ends the path when it has long passed its best; by default the
        path is followed through all times.
    """

    def __init__(
        self,
        votes: Comparisons,
        settings: PathSettings,
        rule: Rule,
        runtime: Runtime,
        ends_by: Estimate | None = None,
    ) -> None:
        self._scorer = _Scorer(votes, settings.link, settings.terms, rule, runtime.loops)
        self._runtime, self._ends_by = runtime, ends_by
        self._everybody = np.ones(votes.n_users, dtype=np.bool_)
        (weight,) = runtime.total(self._scorer.weight)
        self.found = FoldScores.room(len(settings.times), weight)

    def observe(self, index: int, state: State) -> bool:
        """Score the votes at one time of the path; say whether it may end there."""
        for estimate, deviates in enumerate((self._everybody, state.dual_norm > 1.0)):
            self._score(estimate, index, state, deviates)
        if self._ends_by is None:
            return False
        losses = self.found.losses[ESTIMATES.index(self._ends_by), : index + 1]
        return bool(_is_above(losses[-1], losses.min(), self.found.weight))

    def _score(self, estimate: int, index: int, state: State, deviates: Mask) -> None:
        """Find the scores of an estimate, and the best power from that of the last time."""
        table, found = np.empty((3, 3)), self.found
        at = estimate, index

        def derivatives(power: float) -> tuple[float, float]:
            here = self._scorer(state.consensus, state.deviation, deviates, table, power)
            loss, slope, bend, confusion = self._runtime.total(*here, table.ravel())
            found.losses[at] = loss / found.weight if found.weight else 0.0
            found.tables[at] = confusion.reshape(3, 3)
            return slope, bend

        start = float(found.powers[estimate, index - 1]) if index else 1.0
        found.powers[at], found.bends[at] = best_power(derivatives, start)


def _is_above(loss: Any, best: Any, weight: Any, share: float = 1.0) -> Any:
    """Say whether mean losses are above others by as much as ends a path, or by a share of it."""
    rise = loss - best
    return (rise * weight > share * ENDED_BY) & (rise > share * ENDED_BY_SHARE * best)


class FoldScores(NamedTuple):
    """How well a path predicts the votes of one fold: NaN at times that it has not reached."""

    losses: Floats  # (n_estimates, n_times) mean loss of a vote
    tables: Floats  # (n_estimates, n_times, 3, 3) confusions
    powers: Floats  # (n_estimates, n_times) that would have predicted best
    bends: Floats  # (n_estimates, n_times) of the sum of the losses by the power
    weight: float  # of the votes

    @classmethod
    def room(cls, n_times: int, weight: float) -> Self:
        """Return scores to be filled."""
        shape = len(ESTIMATES), n_times
        losses, powers, bends = np.full((3, *shape), np.nan)
        return cls(losses, np.full((*shape, 3, 3), np.nan), powers, bends, weight)

    @property
    def arrays(self) -> dict[str, Floats]:
        """The arrays by name, as a checkpoint keeps them."""
        return {name: value for name, value in self._asdict().items() if name != "weight"}

    def by_name(self) -> dict[str, dict[str, Floats]]:
        """Return the scores by estimate and scoring, over times."""
        n_known = int(np.count_nonzero(np.isfinite(self.losses[0])))
        unknown = np.full(self.losses.shape[1] - n_known, np.nan)
        found = {}
        for estimate, losses, tables in zip(ESTIMATES, self.losses, self.tables, strict=True):
            scores = _scores(losses[:n_known], tables[:n_known])
            found[estimate] = {name: np.append(values, unknown) for name, values in scores.items()}
        return found


def score_votes(
    votes: Comparisons,
    parameters: Parameters,
    link: Link,
    rule: Rule = "map",
    deviates: Mask | None = None,
    loops: ModuleType | None = None,
) -> dict[str, float]:
    """Return all scores of parameters on votes that share their slots, by name.

    Where ``deviates`` is given, the other users vote like the consensus.
    """
    table = np.empty((3, 3))
    who = np.ones(votes.n_users, dtype=np.bool_) if deviates is None else deviates
    scorer = _Scorer(votes, link, parameters.terms, rule, loops or kernels.backend())
    loss, *_ = scorer(parameters.consensus, parameters.deviation, who, table)
    return _scores(loss / scorer.weight if scorer.weight else 0.0, table)


class _Scorer:
    """Scores parameters on votes; those of one user on one pair, the same way round, together."""

    def __init__(
        self, votes: Comparisons, link: Link, terms: Terms, rule: Rule, loops: ModuleType
    ) -> None:
        layout = terms.layout(votes, sees=Sees.SIDE)
        self.weight = float(np.stack(layout.edges.counts, axis=1).sum())
        self._problem = kernels.Problem.of(layout, 0.0, terms)  # no bound has a say in a prediction
        self._answering, self._by_threshold = terms.answering(link), rule == "threshold"
        self._loops = loops

    def __call__(
        self,
        consensus: Floats,
        deviation: Floats,
        deviates: Mask,
        table: Floats,
        power: float = 1.0,
    ) -> tuple[float, float, float]:
        """Fill a confusion; return the sum of losses, and its derivatives by the power."""
        found: tuple[float, float, float] = self._loops.score(
            self._answering, self._problem, consensus, deviation, deviates, self._by_threshold,
            power, table,
        )  # fmt: skip
        return found


def _scores(loss: Any, confusion: Floats) -> dict[str, Any]:
    published = dict(zip(PUBLISHED_SCORINGS, paper_f1(confusion), strict=True))
    standard = {"micro_f1": micro_f1(confusion), "macro_f1": macro_f1(confusion)}
    return {"log_loss": loss} | standard | published


def _best(scores: Floats | Sequence[float], scoring: Scoring) -> int:
    """Return the place of the best score that is known: the smallest loss, or the largest."""
    return int(np.nanargmin(scores) if scoring == "log_loss" else np.nanargmax(scores))


def predict_outcomes(
    rule: Rule, margin: Floats, threshold: Floats, log_probabilities: Floats
) -> NDArray[np.int8]:
    """Decide by the most probable outcome (``map``) or by the threshold (the paper's rule)."""
    return most_probable(log_probabilities) if rule == "map" else decide(margin, threshold)
