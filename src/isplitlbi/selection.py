"""Choosing where to stop: score curves along the path on held-out votes, and the best time.

Votes are held out within users, and scored while the path of the rest advances, so that the users'
parameters at every time are never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.errors import InvalidVotes, PathFailed
from isplitlbi.model.links import Link
from isplitlbi.model.metrics import decide, macro_f1, micro_f1, most_probable
from isplitlbi.model.parameters import Parameters
from isplitlbi.path import Ending
from isplitlbi.solvers import (
    Checkpoints,
    Dynamics,
    Reporter,
    Scheme,
    Share,
    State,
    default_times,
    follow,
)
from isplitlbi.typing import Floats

Rule = Literal["map", "threshold"]
Scoring = Literal["log_loss", "micro_f1", "macro_f1"]
Estimate = Literal["dense", "sparse"]

# Whether more is better.
SCORINGS: dict[str, bool] = {"log_loss": False, "micro_f1": True, "macro_f1": True}
ESTIMATES = ("dense", "sparse")
RULES = ("map", "threshold")


@dataclass(frozen=True)
class Curves:
    """Scores on held-out votes along the path of one choice of nu and kappa.

    ``scores[estimate][scoring]`` has shape (n_folds, n_times). The *dense* estimate uses all of P,
    the *sparse* one only the deviations of users who have left the consensus.
    """

    dynamics: Dynamics
    times: Floats
    fold_weight: Floats
    scores: dict[str, dict[str, Floats]]

    def mean(self, scoring: Scoring, estimate: Estimate = "dense") -> Floats:
        """Return the mean over folds at every time, each fold by its votes."""
        return np.average(self.scores[estimate][scoring], axis=0, weights=self.fold_weight)

    def spread(self, scoring: Scoring, estimate: Estimate = "dense") -> Floats:
        """Return the standard error of that mean."""
        scores = self.scores[estimate][scoring]
        if len(scores) < 2:
            return np.full(scores.shape[1], np.nan)
        return np.asarray(np.std(scores, axis=0, ddof=1) / np.sqrt(len(scores)))

    def best(self, scoring: Scoring, estimate: Estimate = "dense") -> int:
        """Return the index of the best time, the earliest where several are best."""
        mean = self.mean(scoring, estimate)
        return int(np.argmax(mean) if SCORINGS[scoring] else np.argmin(mean))


@dataclass(frozen=True)
class Selection:
    """The curves of every candidate, and the choice made from them."""

    candidates: tuple[Curves, ...]
    scoring: Scoring
    rule: Rule
    chosen: Curves
    time: float

    @classmethod
    def best_of(cls, curves: Sequence[Curves], scoring: Scoring, rule: Rule) -> Self:
        """Choose the best candidate, and the best time on its path."""
        best = [each.mean(scoring)[each.best(scoring)] for each in curves]
        chosen = curves[int(np.argmax(best) if SCORINGS[scoring] else np.argmin(best))]
        time = float(chosen.times[chosen.best(scoring)])
        return cls(tuple(curves), scoring, rule, chosen, time)

    @property
    def dynamics(self) -> Dynamics:
        """The chosen nu and kappa."""
        return self.chosen.dynamics


def select(
    votes: Comparisons,
    link: Link,
    candidates: Sequence[Dynamics],
    scheme: Scheme,
    *,
    times: Sequence[float] | Floats | None = None,
    n_folds: int = 5,
    fold: ArrayLike | None = None,
    scoring: Scoring = "log_loss",
    rule: Rule = "map",
    rng: np.random.Generator | int | None = None,
    n_jobs: int = 1,
    alongside: Sequence[Callable[[], None]] = (),
    checkpoints: Checkpoints | None = None,
    reporter: Reporter | None = None,
    backend: str | None = None,
) -> Selection:
    """Cross-validate the time, and nu and kappa where several candidates are given.

    All candidates are judged on the same folds (see `held_out_parts`), ``n_jobs`` paths side by
    side, together with other work that is to be done ``alongside``. The order of the votes does not
    matter. With ``checkpoints``, a selection that was interrupted goes on where it was.
    """
    folds = held_out_parts(votes, n_folds, rng, fold)
    reporter = reporter or Reporter(len(candidates) * len(folds), None)
    curves = []
    for dynamics in candidates:
        if times is None:
            grid = default_times(votes, link, dynamics, n_threads=n_jobs, backend=backend)
        else:
            grid = np.asarray(times, dtype=np.float64)
        scores = {
            estimate: {scoring: np.empty((len(folds), len(grid))) for scoring in SCORINGS}
            for estimate in ESTIMATES
        }
        weight = np.array([_weight(held_out) for _, held_out in folds])
        curves.append(Curves(dynamics, grid, weight, scores))

    def follow_fold(candidate: int, fold: int) -> None:
        curve, (training, votes) = curves[candidate], folds[fold]
        held_out = HeldOut(votes, link, rule, len(curve.times), backend)
        checkpoint = None
        if checkpoints is not None:
            filled = {"losses": held_out.losses, "tables": held_out.tables}
            checkpoint = checkpoints.of(f"candidate-{candidate}-fold-{fold}", filled)
        path = follow(
            training,
            link,
            curve.dynamics,
            scheme.rough(),
            curve.times,
            observe=held_out.observe,
            keep=False,
            checkpoint=checkpoint,
            reporter=reporter,
            backend=backend,
        )
        if path.ending is not Ending.COMPLETE:
            raise PathFailed(path.ending.value)
        for estimate, scores in held_out.scores().items():
            for scoring, values in scores.items():
                curve.scores[estimate][scoring][fold] = values

    paths = [partial(follow_fold, *each) for each in np.ndindex(len(curves), len(folds))]
    _side_by_side([*alongside, *paths], n_jobs, reporter)
    return Selection.best_of(curves, scoring, rule)


def _side_by_side(jobs: Sequence[Callable[[], None]], n_jobs: int, reporter: Reporter) -> None:
    """Do all jobs, or stop them all when one fails."""
    with ThreadPoolExecutor(n_jobs) as pool:
        started = [pool.submit(job) for job in jobs]
        try:
            for job in as_completed(started):
                job.result()
        except BaseException:
            reporter.stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def held_out_parts(
    votes: Comparisons,
    n_folds: int,
    rng: np.random.Generator | int | None = None,
    fold: ArrayLike | None = None,
    share: Share | None = None,
) -> list[tuple[Comparisons, Comparisons]]:
    """Return pairs of training and held-out votes; every vote is held out in one of them.

    Votes are dealt at random within users, or as ``fold`` says: a number per vote. The order of the
    votes does not matter. With a share, whose numbers ``rng`` draws, they are dealt as if all users
    were here, and either side may be empty here.
    """
    n_votes = len(votes)
    if share is not None:
        n_votes, ordered = share.n_votes, votes.in_order
        dealt = ordered.fold_of_votes(n_folds, rng)
        parts = [(ordered.subset(dealt != k), ordered.subset(dealt == k)) for k in range(n_folds)]
    elif fold is None:
        parts = votes.in_order.folds_within_user(n_folds, rng)
    else:
        given = np.asarray(fold)
        if given.shape != (len(votes),):
            raise ValueError(f"folds of shape {given.shape} do not fit {len(votes)} votes.")
        parts = [
            (votes.subset(given != k).in_order, votes.subset(given == k).in_order)
            for k in np.unique(given)
        ]
    sizes = np.array([len(held_out) for _, held_out in parts], dtype=np.float64)
    if share is not None:
        (sizes,) = share.total(sizes)
    # With very few votes a fold may come out empty on one side; it has nothing to say.
    folds = [part for part, size in zip(parts, sizes, strict=True) if 0 < size < n_votes]
    if not folds and fold is not None:
        raise ValueError("the folds hold out nothing: there must be two of them at least.")
    if not folds:
        raise InvalidVotes(
            f"{n_votes} votes are too few to hold any out: give more, or set the time."
        )
    return folds


def _weight(votes: Comparisons) -> float:
    return float(votes.n_votes if votes.weight is None else votes.weight.sum())


class HeldOut:
    """Held-out votes, scored at every time of a path that advances without them."""

    def __init__(
        self, votes: Comparisons, link: Link, rule: Rule, n_times: int, backend: str | None
    ) -> None:
        self.score, self.weight = _scorer(votes, link, rule, backend), _weight(votes)
        self.everybody = np.ones(votes.n_users, dtype=np.bool_)
        # Losses and confusions by estimate and time.
        self.losses = np.empty((len(ESTIMATES), n_times))
        self.tables = np.empty((len(ESTIMATES), n_times, 3, 3))

    def observe(self, index: int, state: State) -> None:
        """Score the votes at one time of the path."""
        for estimate, deviates in enumerate((self.everybody, state.dual_norm > 1.0)):
            self.losses[estimate, index] = self.score(
                state.consensus, state.deviation, deviates, self.tables[estimate, index]
            )

    def scores(self) -> dict[str, dict[str, Floats]]:
        """Return the scores by estimate and scoring, over times."""
        return self.scores_of(self.losses, self.tables)

    @staticmethod
    def scores_of(losses: Floats, tables: Floats) -> dict[str, dict[str, Floats]]:
        """Return the same of mean losses and confusions that were added up elsewhere."""
        return {
            estimate: _scores(loss, table)
            for estimate, loss, table in zip(ESTIMATES, losses, tables, strict=True)
        }


def score_votes(
    votes: Comparisons,
    parameters: Parameters,
    link: Link,
    rule: Rule = "map",
    deviates: NDArray[np.bool_] | None = None,
    backend: str | None = None,
) -> dict[str, float]:
    """Return log-loss, micro-F1 and macro-F1 of parameters on votes that share their slots.

    Where ``deviates`` is given, the other users vote like the consensus.
    """
    table = np.empty((3, 3))
    who = np.ones(votes.n_users, dtype=np.bool_) if deviates is None else deviates
    score = _scorer(votes, link, rule, backend)
    return _scores(score(parameters.consensus, parameters.deviation, who, table), table)


def _scorer(
    votes: Comparisons, link: Link, rule: Rule, backend: str | None
) -> Callable[[Floats, Floats, NDArray[np.bool_], Floats], float]:
    """Return a function that fills a confusion and returns the mean loss.

    Votes of one user on one pair, the same way round, are scored together.
    """
    loops = kernels.backend(backend)
    key = votes.left_slot * np.int64(len(votes.slots.coordinate)) + votes.right_slot
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    amount = np.bincount(3 * place + (1 - votes.outcome), votes.weight, 3 * len(first))
    counts = amount.astype(np.float64).reshape(-1, 3)
    pairs = (votes.user[first], votes.left_slot[first], votes.right_slot[first], counts)
    total, by_threshold = float(counts.sum()), rule == "threshold"

    def score(
        consensus: Floats, deviation: Floats, deviates: NDArray[np.bool_], table: Floats
    ) -> float:
        loss: float = loops.score(
            link, votes.slots, *pairs, consensus, deviation, deviates, by_threshold, table
        )
        return loss / total if total else 0.0

    return score


def _scores(loss: Any, confusion: Floats) -> dict[str, Any]:
    return {"log_loss": loss, "micro_f1": micro_f1(confusion), "macro_f1": macro_f1(confusion)}


def predict_outcomes(
    rule: Rule, margin: Floats, threshold: Floats, log_probabilities: Floats
) -> NDArray[np.int8]:
    """Decide by the most probable outcome (``map``) or by the threshold (the paper's rule)."""
    return most_probable(log_probabilities) if rule == "map" else decide(margin, threshold)
