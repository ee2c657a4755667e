"""Which items the votes tell apart: intervals of all differences of scores at once, and groups.

Only differences of scores have a meaning, and so have their errors: a covariance of scores may have
anything in the direction in which all scores move together.

Conventions
-----------
apart      (n_items, n_items) bool: row i, column j is true where i is surely better than j
covariance (n_items, n_items), or of independent errors (n_items,) variances
group      items of which the votes cannot tell any two apart
"""

from __future__ import annotations

import math
from statistics import NormalDist
from string import ascii_lowercase

import numpy as np

from isplitlbi.typing import Floats, Mask, Places

__all__ = [
    "LEVEL",
    "information",
    "n_surely_apart",
    "name_groups",
    "own_variances",
    "quantile_of_largest",
    "quantile_of_worst",
    "root_of",
    "student",
    "surely_better",
    "variances",
    "weights_of_mean",
]

LEVEL = 0.95  # of every interval, and of all intervals of differences together
N_DRAWS = 10_000
DRAWS_AT_ONCE = 500
PAIRS_AT_ONCE = 1 << 22
SEED = 0
# With more items, drawing takes long, and the bound for independent pairs is used instead: it is
# never too small.
MOST_ITEMS_DRAWN = 400
# An item counts for at most this many times what the item in the middle does, and at least for this
# share of it: no item alone is what all others are measured from.
MOST_TIMES, LEAST_SHARE = 20.0, 1e-3


# --- Student's distribution ----------------------------------------------------------------

CLOSE = 1e-13  # a relative change of a quantile that is the last one


def student(freedom: float, probability: float) -> float:
    """Return a quantile of Student's distribution; of the normal one for infinite freedom.

    Freedom is a whole number otherwise. Its formulas are short, and importing those of SciPy takes
    longer than all else that a ranking needs.

    >>> round(student(10.0, 0.975), 3), round(student(float("inf"), 0.975), 3)
    (2.228, 1.96)
    """
    normal = NormalDist().inv_cdf(probability)
    if np.isinf(freedom) or normal == 0.0:
        return normal
    # Beyond zero the c.d.f. is concave, and the normal quantile is too near: Newton's steps go out
    # to the quantile, and never past it.
    share, quantile = abs(2.0 * probability - 1.0), abs(normal)
    step = quantile
    while step > CLOSE * quantile:
        missing = share - _share_within(quantile, int(freedom))
        step = 0.5 * missing / _density(quantile, freedom)
        quantile += step
    return math.copysign(quantile, normal)


def _share_within(reach: float, freedom: int) -> float:
    """Return how often Student's variable is no further from zero (Abramowitz, Stegun 26.7.3-4)."""
    angle = math.atan(reach / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    number = np.arange(2.0 + is_odd, freedom - 1.0, 2.0)
    series = 1.0 + float(np.sum(np.cumprod((number - 1.0) / number * cosine**2)))
    if not is_odd:
        return sine * series
    return 2.0 / math.pi * (angle + (sine * cosine * series if freedom > 1 else 0.0))


def _density(value: float, freedom: float) -> float:
    log_gammas = math.lgamma(0.5 * freedom + 0.5) - math.lgamma(0.5 * freedom)
    falls = 0.5 * (freedom + 1.0) * math.log1p(value**2 / freedom)
    return math.exp(log_gammas - falls) / math.sqrt(freedom * math.pi)


# --- scores --------------------------------------------------------------------------------


def variances(covariance: Floats) -> Floats:
    """Return the variances of a covariance."""
    return covariance if covariance.ndim == 1 else np.diag(covariance)


def own_variances(covariance: Floats) -> Floats:
    """Return a variance for every item, so that those of two add up to that of their difference.

    Such numbers are called quasi-variances (Firth and de Menezes, 2004). They are found by least
    squares, and are exact where errors are independent, up to what all scores have in common.

    Examples
    --------
    >>> own_variances(np.diag([1.0, 2.0, 3.0]) + 5.0)
    array([1., 2., 3.])
    """
    n_items, own = len(covariance), variances(covariance)
    if n_items < 3:  # one difference alone says nothing about each of two
        between = 0.0 if covariance.ndim == 1 else float(covariance.sum() - own.sum())
        apart = (float(own.sum()) - between) / 2.0 if n_items == 2 else 0.0
        return np.full(n_items, max(apart, 0.0))
    if covariance.ndim == 1:
        return np.asarray(np.maximum(own, np.median(own) / MOST_TIMES))
    of_item = n_items * own + own.sum() - 2.0 * covariance.sum(axis=1)
    found = (of_item - of_item.sum() / (2.0 * (n_items - 1))) / (n_items - 2)
    return np.asarray(np.maximum(found, np.median(found) / MOST_TIMES))


def information(covariance: Floats, prior_variance: float = np.inf) -> Floats:
    """Return what is known of every item beyond the prior, as the inverse of a variance."""
    variance = own_variances(covariance)
    largest = float(variance.max(initial=0.0))
    if largest <= 0.0:
        return np.ones(len(variance))
    known = 1.0 / np.maximum(variance, 1e-12 * largest) - 1.0 / prior_variance
    return np.asarray(np.maximum(known, 0.0))


def weights_of_mean(known: Floats) -> Floats:
    """Return the weights of a mean that an item of which little is known does not move."""
    middle = float(np.median(known)) if len(known) else 0.0
    if middle <= 0.0:
        return np.full(len(known), 1.0 / max(len(known), 1))
    weight = np.clip(known, LEAST_SHARE * middle, MOST_TIMES * middle)
    return np.asarray(weight / weight.sum())


# --- differences ---------------------------------------------------------------------------


def surely_better(estimate: Floats, covariance: Floats, freedom: float = np.inf) -> Mask:
    """Say which item is surely better than which: all intervals of differences hold at once.

    Examples
    --------
    >>> surely_better(np.array([3.0, 1.0, 0.9]), 0.1 * np.eye(3)).astype(int)
    array([[0, 1, 1],
           [0, 0, 0],
           [0, 0, 0]])
    """
    reach = quantile_of_largest(covariance, freedom) * _errors_of_differences(covariance)
    return np.asarray(estimate[:, None] - estimate > reach)


def n_surely_apart(
    estimate: Floats, covariance: Floats, freedom: float = np.inf
) -> tuple[Places, Places]:
    """Return how many items are surely better than each, and how many are surely worse.

    Errors are independent here: of very many items, no table of all pairs is made.

    Examples
    --------
    >>> better, worse = n_surely_apart(np.array([3.0, 1.0, 0.9]), np.full(3, 0.1))
    >>> better.tolist(), worse.tolist()
    ([0, 1, 1], [2, 0, 0])
    """
    n_items, reach = len(estimate), quantile_of_largest(covariance, freedom)
    order = np.argsort(-estimate, kind="stable")
    score, variance = estimate[order], covariance[order]
    better, worse = np.zeros((2, n_items), dtype=np.int64)
    least, begin = float(variance.min(initial=np.inf)), 0
    while begin < n_items:
        end = min(n_items, begin + max(PAIRS_AT_ONCE // n_items, 1))
        # Nobody nearer than this to the best of these is surely worse than any of them.
        nearest = reach * np.sqrt(variance[begin:end].min() + least)
        far = int(np.searchsorted(-score, nearest - score[begin], side="right"))
        if far < n_items:
            off = score[begin:end, None] - score[far:]
            apart = off > reach * np.sqrt(variance[begin:end, None] + variance[far:])
            worse[begin:end] = apart.sum(axis=1)
            better[far:] += apart.sum(axis=0)
        begin = end
    found = np.empty((2, n_items), dtype=np.int64)
    found[:, order] = better, worse
    return found[0], found[1]


def quantile_of_largest(covariance: Floats, freedom: float = np.inf) -> float:
    """Return how far the worst of all differences goes, in its standard errors, in 95 % of draws.

    Errors are drawn with the covariance, and with a common scale where that covariance has few
    degrees of freedom. With more than 400 items it is the bound for independent pairs (Šidák).
    """
    n_items = len(covariance)
    n_pairs = n_items * (n_items - 1) // 2
    if n_pairs == 0:
        return 0.0
    if n_items > MOST_ITEMS_DRAWN:
        # Of a single pair, the chance to miss is that of all pairs divided among them.
        missed = -np.expm1(np.log(LEVEL) / n_pairs)
        return -student(freedom, 0.5 * missed)
    if covariance.ndim == 1:
        covariance = np.diag(covariance)
    error = _errors_of_differences(covariance)
    scale = np.divide(1.0, error, out=np.zeros_like(error), where=error > 0.0).astype(np.float32)
    rng, root = np.random.default_rng(SEED), root_of(covariance)
    largest, room = np.zeros(N_DRAWS), np.empty((n_items, DRAWS_AT_ONCE), dtype=np.float32)
    for begin in range(0, N_DRAWS, DRAWS_AT_ONCE):
        # One row per item, so that the draws of two items lie side by side in memory. Without what
        # all items have in common, single precision is enough, and twice as fast.
        errors = root @ rng.standard_normal((DRAWS_AT_ONCE, n_items)).T
        drawn = (errors - errors.mean(axis=0)).astype(np.float32)
        for item in range(n_items - 1):
            off = np.subtract(drawn[item + 1 :], drawn[item], out=room[item + 1 :])
            np.abs(off, out=off)
            off *= scale[item, item + 1 :, None]
            part = largest[begin : begin + DRAWS_AT_ONCE]
            np.maximum(part, off.max(axis=0), out=part)
    if np.isfinite(freedom):
        largest /= np.sqrt(rng.chisquare(freedom, N_DRAWS) / freedom)
    return float(np.quantile(largest, LEVEL))


def quantile_of_worst(covariance: Floats, freedom: float = np.inf) -> float:
    """Return how far the worst of some numbers goes, in its standard error, in 95 % of draws.

    Unlike in `quantile_of_largest`, that is of the numbers themselves, not of their differences.

    Examples
    --------
    >>> bool(1.9 < quantile_of_worst(np.eye(1)) < 2.0 < quantile_of_worst(np.eye(5)) < 2.7)
    True
    """
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    counts = error > 0.0
    n_numbers = int(np.count_nonzero(counts))
    if n_numbers == 0:
        return 0.0
    if n_numbers > MOST_ITEMS_DRAWN:
        missed = -np.expm1(np.log(LEVEL) / n_numbers)
        return -student(freedom, 0.5 * missed)
    rng, root = np.random.default_rng(SEED), root_of(covariance)[counts] / error[counts, None]
    largest = np.concatenate([
        np.abs(root @ rng.standard_normal((DRAWS_AT_ONCE, len(covariance))).T).max(axis=0)
        for _ in range(0, N_DRAWS, DRAWS_AT_ONCE)
    ])  # fmt: skip
    if np.isfinite(freedom):
        largest /= np.sqrt(rng.chisquare(freedom, N_DRAWS) / freedom)
    return float(np.quantile(largest, LEVEL))


def _errors_of_differences(covariance: Floats) -> Floats:
    own = variances(covariance)
    together = np.diag(covariance) if covariance.ndim == 1 else covariance
    return np.sqrt(np.maximum(own[:, None] + own - 2.0 * together, 0.0))


def root_of(covariance: Floats) -> Floats:
    """Return the symmetric root: the same whichever way its eigenvectors point."""
    value, vector = np.linalg.eigh(covariance)
    return np.asarray((vector * np.sqrt(np.maximum(value, 0.0))) @ vector.T)


# --- groups --------------------------------------------------------------------------------


def name_groups(apart: Mask) -> list[str]:
    """Return the groups that every item is in: a compact letter display.

    Two items share a letter if and only if neither is surely better than the other. Groups are
    named in the order of their first items. Where there are more than 26, they have numbers instead
    of letters, with spaces between them.

    Examples
    --------
    >>> name_groups(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool))
    ['a', 'ab', 'b']
    """
    groups = _groups(~(apart | apart.T))
    has_letters = len(groups) <= len(ascii_lowercase)
    names = ascii_lowercase if has_letters else [str(n) for n in range(1, len(groups) + 1)]
    between = "" if has_letters else " "
    member = np.array(groups, dtype=np.bool_).reshape(len(groups), len(apart))
    return [between.join(names[group] for group in np.flatnonzero(of)) for of in member.T]


def _groups(alike: Mask) -> list[Mask]:
    """Return groups so that every two items that are alike share one; not more than are needed.

    A group starts from two items that share none yet, and takes in whoever is alike to all of it.
    """
    n_items = len(alike)
    missing = alike & ~np.eye(n_items, dtype=np.bool_)
    groups = []
    for item in range(n_items):
        while missing[item].any():
            group = _grown(alike, item, int(np.argmax(missing[item])))
            missing[np.ix_(group, group)] = False
            groups.append(group)
        if not any(group[item] for group in groups):
            groups.append(np.arange(n_items) == item)
    shared = np.zeros((n_items, n_items), dtype=np.int64)
    for group in groups:
        shared[np.ix_(group, group)] += 1
    kept = []
    for group in groups:  # one that others make up together is not needed
        pairs = np.ix_(group, group)
        if shared[pairs].min() > 1:
            shared[pairs] -= 1
        else:
            kept.append(group)
    return sorted(kept, key=lambda group: (int(np.argmax(group)), tuple(~group)))


def _grown(alike: Mask, first: int, second: int) -> Mask:
    group = np.zeros(len(alike), dtype=np.bool_)
    group[[first, second]] = True
    may_join = alike[first] & alike[second] & ~group
    while may_join.any():
        later = may_join[first:]  # neighbours below first: those above have groups already
        joins = first + int(np.argmax(later)) if later.any() else int(np.argmax(may_join))
        group[joins] = True
        may_join &= alike[joins]
        may_join[joins] = False
    return group
