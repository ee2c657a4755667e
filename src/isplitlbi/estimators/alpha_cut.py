"""Ties by abstention: an ensemble of rankers, cut at a degree of agreement (Cheng et al., 2010)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC, LinearSVR
from threadpoolctl import threadpool_limits

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.labels import labels_of
from isplitlbi.data.layout import tally
from isplitlbi.data.splits import held_out_parts
from isplitlbi.data.summary import Summary
from isplitlbi.data.vocabulary import counted
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators.inputs import as_votes, check_choice, check_seed, threads_of
from isplitlbi.estimators.voting import VoteEstimator
from isplitlbi.model.metrics import confusion
from isplitlbi.typing import Floats, Indices

__all__ = ["LEARNERS", "AlphaCut"]

PENALTIES = tuple(2.0**exponent for exponent in range(-15, -4, 2))


# Errors that a support vector regression does not see, and how often its Lasso form is refined.
INSENSITIVE, MOST_TURNS = 0.1, 20


class Sample(NamedTuple):
    """Votes of everybody, collapsed to one row per pair of items and outcome."""

    n_items: int
    first: Indices
    second: Indices
    outcome: Floats  # 1 the first item wins, 0 tie, -1 the second item wins
    weight: Floats

    @classmethod
    def of(cls, votes: Comparisons) -> Self:
        """Collapse votes."""
        found = tally(votes)
        first, second = (np.tile(item, 3).astype(np.int32) for item in (found.first, found.second))
        outcome = np.repeat([1.0, 0.0, -1.0], len(found.first))
        return cls(votes.n_items, first, second, outcome, np.concatenate(found.counts))

    def drawn(self, n_votes: int, rng: np.random.Generator) -> Self:
        """Draw as many votes as there are, with replacement."""
        drawn = rng.multinomial(n_votes, self.weight / self.weight.sum())
        kept = np.flatnonzero(drawn)
        return self._replace(
            first=self.first[kept],
            second=self.second[kept],
            outcome=self.outcome[kept],
            weight=drawn[kept].astype(np.float64),
        )

    def decided(self) -> Self:
        """Return who beat whom, seen from both sides; a tie is half of one and half of the other.

        Both sides, because a classifier must see both answers.
        """
        for_first, for_second = (1 + self.outcome) / 2, (1 - self.outcome) / 2
        winner = np.concatenate([self.first, self.second])
        loser = np.concatenate([self.second, self.first])
        weight = np.tile(self.weight, 2) * np.concatenate([for_first, for_second]) / 2
        won = weight > 0
        return type(self)(
            self.n_items,
            np.concatenate([winner[won], loser[won]]),
            np.concatenate([loser[won], winner[won]]),
            np.repeat([1.0, -1.0], won.sum()),
            np.tile(weight[won], 2),
        )

    @property
    def differences(self) -> csr_array:
        """Per row, +1 at the first item and -1 at the second."""
        n_rows = len(self.first)
        places = np.column_stack([self.first, self.second]).ravel()
        starts = np.arange(0, 2 * n_rows + 1, 2, dtype=np.int32)
        signs = np.tile([1.0, -1.0], n_rows)
        return csr_array((signs, places, starts), shape=(n_rows, self.n_items))


# --- weak learners: scores of items from a sample, under the mean loss plus a penalty ------------


def _learn(model: Any, sample: Sample) -> Floats:
    model.fit(sample.differences, sample.outcome, sample_weight=sample.weight)
    return np.asarray(model.coef_).ravel()


def _classify(make: Callable[[float], Any], sample: Sample, penalty: float) -> Floats:
    return _learn(make(1.0 / (penalty * sample.weight.sum())), sample.decided())


def _regress(make: Callable[[float, float], Any], sample: Sample, penalty: float) -> Floats:
    return _learn(make(penalty, float(sample.weight.sum())), sample)


def _support_vector_lasso(sample: Sample, penalty: float) -> Floats:
    """Fit a support vector regression with Lasso: what is off by less than a margin is no error.

    The squared error beyond the margin is the least squared error over all shifts of the outcomes
    within it, so that shifts and Lasso in turn go down to the minimum of both.
    """
    model = Lasso(penalty, fit_intercept=False, warm_start=True)
    score, shifted = np.zeros(sample.n_items), sample
    for _ in range(MOST_TURNS):
        before, score = score, _learn(model, shifted).copy()
        off = sample.outcome - sample.differences @ score
        shifted = sample._replace(outcome=sample.outcome - np.clip(off, -INSENSITIVE, INSENSITIVE))
        if np.max(np.abs(score - before)) <= 1e-3:
            break
    return score


LEARNERS: dict[str, Callable[[Sample, float], Floats]] = {
    "lr-lasso": partial(
        _classify,
        lambda c: LogisticRegression(
            l1_ratio=1.0, C=c, solver="liblinear", fit_intercept=False, random_state=0
        ),
    ),
    "lr-ridge": partial(
        _classify, lambda c: LogisticRegression(C=c, fit_intercept=False, max_iter=300)
    ),
    "svm-lasso": partial(
        _classify,
        lambda c: LinearSVC(penalty="l1", C=c, dual=False, fit_intercept=False, random_state=0),
    ),
    "svm-ridge": partial(
        _classify, lambda c: LinearSVC(C=c, dual=False, fit_intercept=False, random_state=0)
    ),
    "ls-lasso": partial(_regress, lambda alpha, _: Lasso(alpha, fit_intercept=False)),
    "ls-ridge": partial(_regress, lambda alpha, n: Ridge(alpha * n, fit_intercept=False)),
    "svr-lasso": _support_vector_lasso,
    "svr-ridge": partial(
        _regress,
        lambda alpha, n: LinearSVR(
            C=1.0 / (alpha * n),
            epsilon=INSENSITIVE,
            loss="squared_epsilon_insensitive",
            dual=False,
            fit_intercept=False,
            random_state=0,
        ),
    ),
}


class AlphaCut(VoteEstimator):
    """One partial ranking for everybody: what enough members of a bagged ensemble agree on.

    Every member is a linear ranker of the items, learned from votes drawn with replacement. The
    degree P(a, b) is the share of members that put a before b. Item a is preferred to b where that
    is at least alpha, and there is a tie elsewhere; alpha is never so small that preferences could
    run in a circle.

    Parameters
    ----------
    learner : str, default "lr-ridge"
        One of `LEARNERS`: logistic regression, support vector machine, least squares or support
        vector regression, with Lasso or Ridge.
    penalties : list of float
        Strengths of the regularization; the best is chosen together with alpha by
        cross-validation on the share of votes predicted right.
    n_members : int, default 20
        Size of the ensemble.
    n_folds : int, default 5
        Folds of the cross-validation, within users.
    n_jobs : int, optional
        Threads; all that there are by default. The result does not depend on it.
    random_state : int or None, default 0
        Seed of the folds and of what the members are given.
    """

    def __init__(
        self,
        learner: str = "lr-ridge",
        penalties: Sequence[float] = PENALTIES,
        n_members: int = 20,
        n_folds: int = 5,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.learner = learner
        self.penalties = penalties
        self.n_members = n_members
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on `Comparisons`, a frame of votes, or on pairs X with outcomes y."""
        check_seed(self.random_state)
        check_choice("learner", self.learner, tuple(LEARNERS))
        if len(self.penalties) == 0 or self.n_members < 1:
            raise InvalidSetting("alpha-cut needs at least one penalty and one member.")
        labels, votes = labels_of(y), as_votes(X, y, sample_weight)
        Summary.of(votes).tell_if_uneven(votes)
        seeds = np.random.SeedSequence(self.random_state)
        parts = held_out_parts(votes, self.n_folds, np.random.default_rng(seeds.spawn(1)[0]))
        if not parts:
            raise InvalidVotes(
                f"{counted(len(votes), 'vote')} cannot be split into votes to learn from and votes "
                "to choose the penalty on: alpha-cut needs more votes."
            )
        # How often each degree of agreement was right, over all folds.
        levels = np.arange(self.n_members // 2 + 1, self.n_members + 1)
        trials = [(part, penalty) for part in parts for penalty in self.penalties]
        # The problems are small: threads of the linear algebra would only wait for each other.
        # And a ranker that is not quite done still ranks.
        with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = Parallel(n_jobs=threads_of(self.n_jobs), prefer="threads")(
                delayed(self._try)(training, held_out, penalty, levels, seed)
                for ((training, held_out), penalty), seed in zip(
                    trials, seeds.spawn(len(trials)), strict=True
                )
            )
            right = np.sum(np.reshape(found, (len(parts), len(self.penalties), -1)), axis=0)
            best, level = np.unravel_index(np.argmax(right), right.shape)
            self.penalty_ = float(self.penalties[int(best)])
            votes_for = self._agreement(votes, self.penalty_, seeds.spawn(1)[0])
        self.degree_: Floats = votes_for / self.n_members
        self.alpha_ = max(int(levels[level]), least_acyclic(votes_for)) / self.n_members
        return self._know(votes.users, votes.items, labels)

    def predict_outcomes(self, X: Any) -> NDArray[np.int8]:
        """Predict the outcome of each (user, left, right), the same for all users."""
        _, left, right = self._indices(X)
        return _cut(self.degree_, self.alpha_, left, right)

    def _try(
        self,
        training: Comparisons,
        held_out: Comparisons,
        penalty: float,
        levels: NDArray[np.int64],
        seed: np.random.SeedSequence,
    ) -> Floats:
        """Return how much of the held-out votes each level of agreement predicts right."""
        votes_for = self._agreement(training, penalty, seed)
        least = least_acyclic(votes_for)
        right = []
        for level in levels:
            answer = _cut(votes_for, max(level, least), held_out.left, held_out.right)
            right.append(np.trace(confusion(held_out.outcome, answer, held_out.weight)))
        return np.array(right)

    def _agreement(
        self, votes: Comparisons, penalty: float, seed: np.random.SeedSequence
    ) -> NDArray[np.int64]:
        """Return how many members put each item (row) before each other (column)."""
        rng, sample, learn = np.random.default_rng(seed), Sample.of(votes), LEARNERS[self.learner]
        votes_for = np.zeros((votes.n_items, votes.n_items), dtype=np.int64)
        for _ in range(self.n_members):
            score = learn(sample.drawn(len(votes), rng), penalty)
            votes_for += score[:, None] > score
        return votes_for


def least_acyclic(votes_for: NDArray[np.int64]) -> int:
    """Return the least agreement, above one half, from which preferences never run in a circle.

    Members are rankings, so that what all of them agree on is one too.
    """
    n_members = int((votes_for + votes_for.T).max(initial=0))
    low, high = n_members // 2 + 1, max(n_members, 1)
    while low < high:
        middle = (low + high) // 2
        n_parts, _ = connected_components(votes_for >= middle, directed=True, connection="strong")
        low, high = (low, middle) if n_parts == len(votes_for) else (middle + 1, high)
    return low


def _cut(degree: NDArray[Any], alpha: float, left: Indices, right: Indices) -> NDArray[np.int8]:
    answer: NDArray[np.int8] = np.subtract(
        degree[left, right] >= alpha, degree[right, left] >= alpha, dtype=np.int8
    )
    return answer
