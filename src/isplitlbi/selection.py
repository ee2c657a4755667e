"""Choosing where to stop: score curves along the path on held-out votes, and the best time.

Votes are held out within users, and scored while the path of the rest advances, so that the users'
parameters at every time are never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from isplitlbi.model.terms import Terms
from isplitlbi.solvers.settings import Dynamics, PathSettings
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats, Mask

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
    the *sparse* one only the deviations of users who have left the consensus.
    """

    dynamics: Dynamics
    times: Floats
    fold_weight: Floats
    scores: dict[str, dict[str, Floats]]

    def __repr__(self) -> str:
        """Say of what they are."""
        n_folds, n_times = self.scores[ESTIMATES[0]][SCORINGS[0]].shape
        return (
            f"Curves: {n_folds} folds at {n_times} times, nu {self.dynamics.nu:.3g}, kappa "
            f"{self.dynamics.kappa:.3g}"
        )

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


@dataclass(frozen=True, repr=False)
class Selection(Tabular):
    """The curves of every candidate, and the choice made from them."""

    candidates: tuple[Curves, ...]
    scoring: Scoring
    rule: Rule
    chosen: Curves
    time: float
    estimate: Estimate = "dense"

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
        estimate that was to predict: the *dense* one, unless the other was asked for.
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
                columns[f"{name}_se"] = pl.Series(spread).fill_nan(None)
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
    ) -> Self:
        """Choose the best candidate, and the best time on its path."""
        best = [each.mean(scoring, estimate)[each.best(scoring, estimate)] for each in curves]
        chosen = curves[_best(best, scoring)]
        time = float(chosen.times[chosen.best(scoring, estimate, cautious=cautious)])
        return cls(tuple(curves), scoring, rule, chosen, time, estimate)

    @property
    def dynamics(self) -> Dynamics:
        """The chosen nu and kappa."""
        return self.chosen.dynamics


class HeldOut:
    """Held-out votes, scored at every time of a path that advances without them.

    Parameters
    ----------
    votes
        What is held out.
    settings
        Of the path.
    rule
        How outcomes are predicted.
    loops
        Module of `kernels`.
    """

    def __init__(
        self, votes: Comparisons, settings: PathSettings, rule: Rule, loops: ModuleType
    ) -> None:
        self.score = _scorer(votes, settings.link, settings.terms, rule, loops)
        self.weight = votes.total_weight
        self.everybody = np.ones(votes.n_users, dtype=np.bool_)
        # Losses and confusions by estimate and time.
        n_times = len(settings.times)
        self.losses = np.empty((len(ESTIMATES), n_times))
        self.tables = np.empty((len(ESTIMATES), n_times, 3, 3))

    def observe(self, index: int, state: State) -> None:
        """Score the votes at one time of the path."""
        for estimate, deviates in enumerate((self.everybody, state.dual_norm > 1.0)):
            self.losses[estimate, index] = self.score(
                state.consensus, state.deviation, deviates, self.tables[estimate, index]
            )


class FoldScores(NamedTuple):
    """How well a path predicts the votes of one fold, of all users or of some."""

    losses: Floats  # (n_estimates, n_times) mean loss of a vote
    tables: Floats  # (n_estimates, n_times, 3, 3) confusions
    weight: float  # of the votes

    @classmethod
    def joined(cls, parts: Sequence[FoldScores]) -> FoldScores:
        """Put together what was found of the users of several machines."""
        if len(parts) == 1:
            return parts[0]
        weight = sum(part.weight for part in parts)
        losses = sum((part.losses * part.weight for part in parts), np.zeros(()))
        return cls(losses / weight, np.sum([part.tables for part in parts], axis=0), weight)

    def by_name(self) -> dict[str, dict[str, Floats]]:
        """Return the scores by estimate and scoring, over times."""
        return {
            estimate: _scores(loss, table)
            for estimate, loss, table in zip(ESTIMATES, self.losses, self.tables, strict=True)
        }


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
    score = _scorer(votes, link, parameters.terms, rule, loops or kernels.backend())
    return _scores(score(parameters.consensus, parameters.deviation, who, table), table)


def _scorer(
    votes: Comparisons, link: Link, terms: Terms, rule: Rule, loops: ModuleType
) -> Callable[[Floats, Floats, Mask, Floats], float]:
    """Return a function that fills a confusion and returns the mean loss.

    Votes of one user on one pair, the same way round, are scored together.
    """
    layout, answering = terms.layout(votes, sees=Sees.SIDE), terms.answering(link)
    problem = kernels.Problem.of(layout, 0.0, terms)  # no bound has a say in a prediction
    total = float(np.stack(layout.edges.counts, axis=1).sum())
    by_threshold = rule == "threshold"

    def score(consensus: Floats, deviation: Floats, deviates: Mask, table: Floats) -> float:
        loss: float = loops.score(
            answering, problem, consensus, deviation, deviates, by_threshold, table
        )
        return loss / total if total else 0.0

    return score


def _scores(loss: Any, confusion: Floats) -> dict[str, Any]:
    published = dict(zip(PUBLISHED_SCORINGS, paper_f1(confusion), strict=True))
    standard = {"micro_f1": micro_f1(confusion), "macro_f1": macro_f1(confusion)}
    return {"log_loss": loss} | standard | published


def _best(scores: Floats | Sequence[float], scoring: Scoring) -> int:
    """Return the place of the best score: the smallest loss, or the largest of any other."""
    return int(np.argmin(scores) if scoring == "log_loss" else np.argmax(scores))


def predict_outcomes(
    rule: Rule, margin: Floats, threshold: Floats, log_probabilities: Floats
) -> NDArray[np.int8]:
    """Decide by the most probable outcome (``map``) or by the threshold (the paper's rule)."""
    return most_probable(log_probabilities) if rule == "map" else decide(margin, threshold)
