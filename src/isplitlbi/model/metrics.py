"""How good predictions are: log-loss, the three-class F1s, and the two decision rules.

Conventions, here and everywhere in the package:

- an outcome is 1 (left wins), 0 (tie) or -1 (right wins);
- classes stand in the order 1, 0, -1, so the class of an outcome is ``1 - outcome``;
- probabilities have shape (n, 3), columns left, tie, right.

Nothing is checked here: these functions run at every time of a path, on votes that
``Comparisons`` has checked once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isplitlbi.errors import InvalidVotes

__all__ = [
    "confusion",
    "decide",
    "log_loss",
    "macro_f1",
    "micro_f1",
    "most_probable",
    "paper_f1",
    "precision",
    "recall",
    "reliability",
]


def decide(margin: ArrayLike, threshold: ArrayLike) -> NDArray[np.int8]:
    """Predict by the paper's rule: a tie when ``|margin| <= threshold``, else the better item.

    Parameters
    ----------
    margin : array of shape (n,)
        Score of the left item minus score of the right item.
    threshold : float or array of shape (n,)
        Tie threshold, the voter's own or one for all.

    Returns
    -------
    array of int8, shape (n,)
        Predicted outcomes.

    Examples
    --------
    >>> decide([2.0, 1.0, -0.5, -3.0], 1.0)
    array([ 1,  0,  0, -1], dtype=int8)
    """
    margin, threshold = np.asarray(margin), np.asarray(threshold)
    answer: NDArray[np.int8] = np.subtract(margin > threshold, margin < -threshold, dtype=np.int8)
    return answer


def most_probable(log_probabilities: ArrayLike) -> NDArray[np.int8]:
    """Predict by the Bayes rule: the outcome with the largest probability.

    A side is predicted only when it is strictly the most probable outcome; when the largest
    probability is shared, the answer is a tie. So mirrored probabilities give the mirrored answer.

    Parameters
    ----------
    log_probabilities : array of shape (n, 3)
        Log-probabilities (or any increasing function of the probabilities).

    Returns
    -------
    array of int8, shape (n,)
        Predicted outcomes.

    Examples
    --------
    >>> most_probable([[0.5, 0.3, 0.2], [0.4, 0.2, 0.4], [0.1, 0.2, 0.7]])
    array([ 1,  0, -1], dtype=int8)
    """
    left, tie, right = np.asarray(log_probabilities, dtype=np.float64).T
    left_wins = left > np.maximum(tie, right)
    right_wins = right > np.maximum(tie, left)
    answer: NDArray[np.int8] = np.subtract(left_wins, right_wins, dtype=np.int8)
    return answer


def log_loss(
    outcome: ArrayLike, log_probabilities: ArrayLike, weight: ArrayLike | None = None
) -> float:
    """Weighted mean of minus the log-probability of what happened.

    Parameters
    ----------
    outcome : array of int, shape (n,)
        Observed outcomes.
    log_probabilities : array of shape (n, 3)
        Predicted log-probabilities of left, tie, right.
    weight : array of shape (n,), optional
        Weight of each vote; one by default.

    Returns
    -------
    float
        The loss, in nats; smaller is better. Three equal probabilities give log 3 = 1.0986.

    Raises
    ------
    InvalidVotes
        If there are no votes, or their weights sum to zero.

    Examples
    --------
    >>> round(log_loss([1, -1], np.log([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])), 4)
    0.6931
    """
    log_probabilities = np.asarray(log_probabilities)
    rows = np.arange(len(log_probabilities))
    happened = log_probabilities[rows, 1 - np.asarray(outcome)]
    weight = np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=np.float64)
    total = weight.sum()
    if not total > 0:
        raise InvalidVotes("the log-loss needs at least one vote with a positive weight.")
    return float(-(weight @ happened) / total)


def confusion(
    outcome: ArrayLike, predicted: ArrayLike, weight: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Weight of the votes by true class (rows) and predicted class (columns).

    Parameters
    ----------
    outcome, predicted : array of int, shape (n,)
        Observed and predicted outcomes.
    weight : array of shape (n,), optional
        Weight of each vote; one by default.

    Returns
    -------
    array of shape (3, 3)
        Rows and columns in the order 1 (left wins), 0 (tie), -1 (right wins).

    Examples
    --------
    >>> confusion([1, 1, 0, -1], [1, 0, 0, 1])
    array([[1., 1., 0.],
           [0., 1., 0.],
           [1., 0., 0.]])
    """
    cell = 4 - 3 * np.asarray(outcome) - np.asarray(predicted)
    counts = np.bincount(cell, weights=None if weight is None else np.asarray(weight), minlength=9)
    return counts.astype(np.float64).reshape(3, 3)


def precision(confusion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the predictions of each class that are right; 0 for a class never predicted.

    Parameters
    ----------
    confusion : array of shape (3, 3)
        From `confusion`.

    Returns
    -------
    array of shape (3,)
        For the classes 1, 0, -1.

    Examples
    --------
    >>> precision(np.array([[3.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 2.0, 0.0]]))
    array([0.75, 0.25, 0.  ])
    """
    return _ratio(np.diagonal(confusion), confusion.sum(axis=0))


def recall(confusion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the votes of each class that are predicted right; 0 for a class that never occurs.

    Parameters
    ----------
    confusion : array of shape (3, 3)
        From `confusion`.

    Returns
    -------
    array of shape (3,)
        For the classes 1, 0, -1.

    Examples
    --------
    >>> recall(np.array([[3.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 2.0, 0.0]]))
    array([0.75, 0.5 , 0.  ])
    """
    return _ratio(np.diagonal(confusion), confusion.sum(axis=1))


def micro_f1(confusion: NDArray[np.float64]) -> float | NDArray[np.float64]:
    """Micro-averaged F1: with one prediction per vote, the share of votes predicted right.

    Parameters
    ----------
    confusion : array of shape (..., 3, 3)
        From `confusion`, one or many.

    Returns
    -------
    float, or array of them
        Between 0 and 1; 0 if there are no votes.

    Examples
    --------
    >>> micro_f1(confusion([1, 1, 0, -1], [1, 0, 0, 1]))
    0.5
    """
    right = np.trace(confusion, axis1=-2, axis2=-1)
    return _plain(_ratio(right, confusion.sum(axis=(-2, -1))))


def macro_f1(confusion: NDArray[np.float64]) -> float | NDArray[np.float64]:
    """Macro-averaged F1: the plain mean of the F1s of the classes.

    A class that neither occurs nor is predicted counts as 0, but for ties: where nobody declares or
    predicts any, there are two classes.

    Parameters
    ----------
    confusion : array of shape (..., 3, 3)
        From `confusion`, one or many.

    Returns
    -------
    float, or array of them
        Between 0 and 1.

    Examples
    --------
    >>> round(macro_f1(confusion([1, 1, 0, -1], [1, 0, 0, 1])), 4)
    0.3889
    """
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    both = confusion.sum(axis=-2) + confusion.sum(axis=-1)
    n_classes = np.where(both[..., 1] > 0, 3, 2)
    return _plain(_ratio(2 * right, both).sum(axis=-1) / n_classes)


def paper_f1(
    confusion: NDArray[np.float64],
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """Micro- and macro-F1 as the published program computes them, for comparison with its tables.

    The paper names micro- and macro-F1 without a formula. The program that was published with it
    computes them in an unusual way, and its tables can be compared with such figures only.

    For left wins, a predicted tie counts as a prediction of a win where that is wrong, and as none
    where it would be right: predicted positive is ``margin > -threshold`` for false positives and
    false negatives, but ``margin > threshold`` for true positives. The micro-F1 pools the counts
    of the three classes; the macro-F1 is the harmonic mean of mean precision and mean recall.

    Parameters
    ----------
    confusion : array of shape (..., 3, 3)
        From `confusion`, one or many, of predictions by the threshold rule (`decide`).

    Returns
    -------
    micro, macro : float, or array of them
        Between 0 and 1.

    Examples
    --------
    >>> micro, macro = paper_f1(np.array([[4.0, 1, 1], [1, 2, 1], [0, 2, 4]]))
    >>> round(micro, 4), round(macro, 4)
    (0.5714, 0.5697)
    """
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    false_positive = confusion.sum(axis=-2) - right
    false_negative = confusion.sum(axis=-1) - right
    false_positive[..., 0] = confusion[..., 1:, :2].sum(axis=(-2, -1))
    false_negative[..., 0] = confusion[..., 0, 2]
    counts = (right, false_positive, false_negative)
    pooled = [each.sum(axis=-1, keepdims=True) for each in counts]
    micro, macro = (
        _harmonic(_ratio(tp, tp + fp).mean(axis=-1), _ratio(tp, tp + fn).mean(axis=-1))
        for tp, fp, fn in (pooled, counts)
    )
    return micro, macro


def reliability(
    outcome: ArrayLike,
    probabilities: ArrayLike,
    n_bins: int = 10,
    weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Compare what was predicted with what happened, in bins of the predicted probability.

    Every vote counts three times, once for each outcome that it might have had.

    Parameters
    ----------
    outcome : array of int, shape (n,)
        Observed outcomes.
    probabilities : array of shape (n, 3)
        Predicted probabilities of left, tie, right.
    n_bins : int, default 10
        Bins of equal width from 0 to 1.
    weight : array of shape (n,), optional
        Weight of each vote; one by default.

    Returns
    -------
    array of shape (n_bins, 3)
        Per bin: how many predictions (or the sum of their weights), their mean, and the share that
        came true; not a number where there are none.

    Examples
    --------
    >>> reliability([1, 0], [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1]], n_bins=2)
    array([[4.  , 0.15, 0.25],
           [2.  , 0.7 , 0.5 ]])
    """
    predicted = np.asarray(probabilities, dtype=np.float64)
    happened = np.zeros(predicted.shape)
    happened[np.arange(len(predicted)), 1 - np.asarray(outcome)] = 1.0
    place = np.minimum((predicted * n_bins).astype(np.int64), n_bins - 1).ravel()
    amount = np.ones(len(predicted)) if weight is None else np.asarray(weight, dtype=np.float64)
    count, *sums = (
        np.bincount(place, (amount[:, None] * each).ravel(), n_bins)
        for each in (np.ones(predicted.shape), predicted, happened)
    )
    some = np.where(count > 0, count, np.nan)
    return np.column_stack([count, *(each / some for each in sums)])


def _harmonic(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | NDArray[np.float64]:
    return _plain(_ratio(2 * one * other, one + other))


def _plain(values: NDArray[np.float64]) -> float | NDArray[np.float64]:
    """Return one number as such."""
    return float(values) if np.ndim(values) == 0 else values


def _ratio(part: ArrayLike, whole: ArrayLike) -> NDArray[np.float64]:
    """Divide, with 0 where there is nothing to divide by."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    ratio: NDArray[np.float64] = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return ratio
