"""How large the terms of a model are: told by the votes, before anybody leaves (empirical Bayes).

The fit before anybody leaves holds every term around zero by a prior variance. The right variance
is the one that agrees with what is found: the sum of squared estimates, over the number of them
that the votes determine. A few rounds of fitting and correcting find it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import SHARPNESS, TASTE, THRESHOLD
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.terms import Terms
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.likelihood import fit_before_entries
from isplitlbi.solvers.posterior import Curvature, user_covariances
from isplitlbi.solvers.settings import Dynamics
from isplitlbi.typing import Floats, Indices

__all__ = ["Given", "Sizes", "estimate_sizes", "fit_sized", "of_the_many", "refreshed"]

N_ROUNDS = 7
SCORES = "scores"  # the name of what the consensus has a variance of
REFERENCES = (0, 2)  # the rounds whose consensus becomes the reference of the sharpness
OVER_RELAXED = 1.8  # power of a correction; plain ones take several times as many rounds
FIRST_VARIANCES = {"taste": 0.3, "sharpness": 0.2, "side": 0.1, "threshold": 0.3}
OTHER_VARIANCE = 0.05
SMALLEST, LARGEST = 1e-5, 1e2  # variances
LARGEST_OF_SCORES = 25.0  # in the consensus: votes without a contradiction would have no limit
MOST_CHANGE = 8.0  # of a variance, in one round
SMALLEST_SHARE = 1e-3  # of numbers that the votes determine
N_ROUNDS_OF_MANY, N_ROUNDS_OF_SHARPNESS = 3, 5
STANDS_OUT = 4.0  # times the variance of the user in the middle
# Cubes of the numbers of parameters, summed over the users who are looked at closely. Users with
# very many parameters have so many votes that each can be looked at by itself.
MOST_WORK, MANY = 5e7, 64
ROUGH = 1e-2  # accuracy of the fits: the noise of what they tell is much larger


@dataclass(frozen=True)
class Given:
    """What is not to be estimated: nu, and scales by the names of terms."""

    nu: float | None = None
    scales: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        return {"nu": self.nu, "scales": dict(self.scales)}

    def unknown(self, terms: Terms) -> tuple[str, ...]:
        """Return the variances that held-out votes are to choose, in order.

        A side, or the weight of a feature, is one number that all votes of a user tell of: there,
        the variance that agrees with the estimates is right.
        """
        known = {*self.scales, *(() if self.nu is None else (TASTE,))}
        there = {name for name, scale in zip(terms.names, terms.scales, strict=True) if scale > 0.0}
        own = (TASTE, SHARPNESS, THRESHOLD)
        return (SCORES, *(name for name in own if name in there - known))

    def correct(self, names: tuple[str, ...], variances: Floats) -> Floats:
        """Return the variances, with those that are given in their places."""
        corrected = variances.copy()
        if self.nu is not None:
            corrected[0] = self.nu * (corrected[0] > 0.0)
        for place, name in enumerate(names):
            if name in self.scales and name != TASTE:
                corrected[place] = self.scales[name] ** 2 * (self.nu or corrected[0])
        return corrected


@dataclass(frozen=True)
class Sizes:
    """How large terms are.

    Attributes
    ----------
    terms, nu
        With the scales and the reference that were found.
    ordinary : float
        How large the tastes of the user in the middle are, as a share of the variance of all. Far
        below one, few users differ by much and the others hardly.
    spreads : mapping
        By how much users differ in each term, as a standard deviation of margin or threshold.
    """

    terms: Terms
    nu: float
    ordinary: float = 1.0
    spreads: Mapping[str, float] = field(default_factory=dict)
    of_all: Floats | None = None  # the variances of all, where the sizes are those of the many

    @property
    def variances(self) -> Floats:
        """Of all terms, in the order of their names."""
        return self.nu * np.array(self.terms.scales) ** 2

    def resized(self, factors: Mapping[str, float]) -> Sizes:
        """Return the same with some variances multiplied, that of `SCORES` among them."""
        names = self.terms.names
        factor = np.array([factors.get(name, 1.0) for name in names])
        nu = float(np.clip(self.nu * factors.get(TASTE, 1.0), SMALLEST, LARGEST))
        terms = _with_variances(self.terms, self.variances * factor, nu)
        of_scores = terms.score_variance * factors.get(SCORES, 1.0)
        of_scores = float(np.clip(of_scores, SMALLEST, LARGEST_OF_SCORES))
        return replace(self, terms=replace(terms, score_variance=of_scores), nu=nu)


def estimate_sizes(
    votes: Comparisons,
    link: Link,
    terms: Terms,
    runtime: Runtime,
    given: Given | None = None,
    seed: int = 0,
) -> Sizes:
    """Estimate nu, the scales of all terms, and the variances of scores and habits.

    Machines that hold other users find the same.
    """
    first = np.array([
        FIRST_VARIANCES.get(name, OTHER_VARIANCE) * (scale > 0.0)
        for name, scale in zip(terms.names, terms.scales, strict=True)
    ])  # fmt: skip
    nu = float(first[0] or first.max()) or 1.0
    start = Sizes(_with_variances(terms, first, nu), nu)
    sizes, found = _rounds(votes, link, start, runtime, N_ROUNDS, seed, given)
    return replace(sizes, ordinary=found.ordinary)


def _rounds(
    votes: Comparisons,
    link: Link,
    sizes: Sizes,
    runtime: Runtime,
    n_rounds: int,
    seed: int,
    given: Given | None = None,
) -> tuple[Sizes, _Spread]:
    """Fit and correct again and again; return the last sizes, and what was found with them."""
    terms, variances, guess, given = sizes.terms, sizes.variances, None, given or Given()
    sample = _sample(votes, terms, runtime, seed)
    for number in range(n_rounds):
        variances = given.correct(terms.names, variances)
        nu = given.nu or max(float(variances[0] or variances.max()), SMALLEST)
        terms = _with_variances(terms, variances, nu)
        guess = guess and _rescaled(guess, terms)
        fitted = fit_before_entries(votes, link, Dynamics(nu), runtime, ROUGH, terms, guess)
        curvature, guess = Curvature.of(votes, link, fitted), fitted
        found = _spread(fitted, curvature, nu, sample, runtime)
        if number == n_rounds - 1:
            break
        variances = found.corrected(variances)
        of_scores, of_habits = _of_consensus(fitted, curvature, nu, runtime)
        if number <= REFERENCES[-1]:  # it changes with the reference, and folds choose it later
            terms = replace(terms, score_variance=of_scores)
        terms = replace(terms, habit_variance=of_habits)
        if number in REFERENCES:
            terms = terms.referring(fitted.common.scores.copy())
    return replace(sizes, terms=terms, nu=nu), found


def fit_sized(
    votes: Comparisons,
    link: Link,
    sizes: Sizes,
    runtime: Runtime,
    start: Floats | None = None,
) -> Parameters:
    """Fit consensus and users before anybody leaves, roughly.

    A consensus to start from is also the reference of the sharpness; without one, the reference is
    found here, and refreshed once.
    """
    terms, dynamics, guess = sizes.terms, Dynamics(sizes.nu), None
    if start is not None:
        layout = terms.layout(votes)
        terms = terms.referring(start[layout.vector.scores])
        nothing = np.zeros(layout.n_slots)
        guess = Parameters(layout.vector, layout.slots, start, nothing, terms)
    fitted = fit_before_entries(votes, link, dynamics, runtime, ROUGH, terms, guess)
    for _ in range(2 if terms.has_sharpness and start is None else 0):
        terms = terms.referring(fitted.common.scores.copy())
        fitted = fit_before_entries(votes, link, dynamics, runtime, ROUGH, terms, fitted)
    return fitted


def refreshed(votes: Comparisons, link: Link, sizes: Sizes, runtime: Runtime) -> Sizes:
    """Return sizes with the reference of the sharpness that belongs to them, and the spreads."""
    terms = sizes.terms
    fitted = fit_before_entries(votes, link, Dynamics(sizes.nu), runtime, ROUGH, terms)
    terms = terms.referring(fitted.common.scores.copy())
    of_all = sizes.variances if sizes.of_all is None else sizes.of_all
    spreads = dict(zip(terms.names, np.sqrt(of_all).tolist(), strict=True))
    spreads[TASTE] *= 2.0**0.5  # a margin is between two items
    spreads[THRESHOLD] *= fitted.common.threshold
    if terms.has_sharpness:
        scores = fitted.common.scores
        square = (scores[votes.left] - scores[votes.right]) ** 2
        total, n_votes = runtime.total(float(square.sum()), float(len(votes)))
        spreads[SHARPNESS] *= float(np.sqrt(total / max(n_votes, 1.0)))
    if not terms.has_ties:
        del spreads[THRESHOLD]
    return replace(sizes, terms=terms, spreads=spreads)


def _with_variances(terms: Terms, variances: Floats, nu: float) -> Terms:
    scales = np.sqrt(variances / nu)
    scales[0] = float(variances[0] > 0.0)
    return replace(terms, scales=tuple(scales.tolist()))


def _sample(votes: Comparisons, terms: Terms, runtime: Runtime, seed: int) -> Indices:
    """Draw the users who are looked at: all, or as many as are not too much work."""
    sizes = terms.layout(votes).slots.sizes
    work = np.where(sizes <= MANY, sizes.astype(np.float64) ** 3, sizes)
    work[votes.votes_per_user == 0] = 0.0
    (total,) = runtime.total(float(work.sum()))
    drawn = np.asarray(runtime.numbers(seed).random(votes.n_users)) < MOST_WORK / max(total, 1.0)
    return np.flatnonzero(drawn & (work > 0.0))


def _rescaled(fitted: Parameters, terms: Terms) -> Parameters:
    """Return the same deviations in other units: a guess for the next fit."""
    old, new = fitted.units, replace(fitted, terms=terms).units
    ratio = np.divide(old, new, out=np.zeros_like(old), where=new > 0.0)
    return replace(fitted, deviation=fitted.deviation * ratio, terms=terms)


@dataclass(frozen=True)
class _Spread:
    """What users' estimates add up to, term by term, and how many of them the votes determine."""

    squares: Floats  # (n_terms,) in units of nu
    known: Floats  # (n_terms,)
    taste_squares: Floats  # (n_users,) of every user's taste alone
    taste_known: Floats  # (n_users,)

    @property
    def ordinary(self) -> float:
        """Squares over known numbers of taste: the median, every user by what is known of them."""
        there = self.taste_known > SMALLEST_SHARE
        if not there.any():
            return 1.0
        weight = self.taste_known[there]
        ratio = self.taste_squares[there] / weight
        order = np.argsort(ratio, kind="stable")
        return float(ratio[order][np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum())])

    def corrected(self, variances: Floats) -> Floats:
        """Return variances that agree better with it."""
        change = (self.squares / np.maximum(self.known, 1e-9)) ** OVER_RELAXED
        change = np.clip(change, 1.0 / MOST_CHANGE, MOST_CHANGE)
        return np.where(variances > 0.0, np.clip(variances * change, SMALLEST, LARGEST), 0.0)


def _spread(
    fitted: Parameters, curvature: Curvature, nu: float, sample: Indices, runtime: Runtime
) -> _Spread:
    n_terms, slots, units = len(fitted.terms.scales), fitted.slots, fitted.units
    spread = 1.0 / (units**2 * curvature.of_slots() + 1.0 / nu)
    closely = sample[slots.sizes[sample] <= MANY]
    everybody = np.full(slots.n_users, nu)
    for users, covariance in user_covariances(curvature, units, everybody, closely):
        place = np.arange(covariance.shape[1])
        mine = place < slots.sizes[users][:, None]
        where = slots.start[users][:, None] + place
        spread[where[mine]] = np.diagonal(covariance, axis1=1, axis2=2)[mine]
    looked_at = np.zeros(slots.n_users, dtype=np.bool_)
    looked_at[sample] = True
    counts = looked_at[slots.owner]
    square = np.where(counts, fitted.deviation**2 / nu, 0.0)
    certain = np.where(counts, 1.0 - spread / nu, 0.0)
    term = np.maximum(slots.coordinate - fitted.n_items + 1, 0)
    squares, known = (np.bincount(term, each, n_terms) for each in (square, certain))
    squares, known = runtime.total(squares, known)
    of_users = (
        np.bincount(slots.owner, np.where(term == 0, each, 0.0), slots.n_users)
        for each in (square, certain)
    )
    return _Spread(squares, known, *(runtime.everybody(each.astype(float)) for each in of_users))


def of_the_many(
    votes: Comparisons, link: Link, sizes: Sizes, runtime: Runtime, given: Given, seed: int
) -> Sizes:
    """Return sizes that fit the users in the middle, where others differ by far more.

    Sharpness is that of users who do not stand out: what others have of it, their taste tells, and
    what they do to the consensus would seem to be sharpness of everybody else.
    """
    sizes = replace(sizes, of_all=sizes.variances)
    for _ in range(N_ROUNDS_OF_MANY):
        sizes = sizes.resized(dict.fromkeys(sizes.terms.names, sizes.ordinary))
        found = _rounds(votes, link, sizes, runtime, 1, seed)[1]
        sizes = replace(sizes, ordinary=min(found.ordinary, 1.0))
    if not sizes.terms.has_sharpness or SHARPNESS in given.scales:
        return sizes
    stands_out = found.taste_squares > STANDS_OUT * found.ordinary * found.taste_known
    here = stands_out[runtime.first : runtime.first + votes.n_users]
    others = votes.subset(~here[votes.user])
    alone, _ = _rounds(others, link, sizes, runtime, N_ROUNDS_OF_SHARPNESS, seed, given)
    at = sizes.terms.names.index(SHARPNESS)
    return sizes.resized({SHARPNESS: min(alone.variances[at] / sizes.variances[at], 1.0)})


def _of_consensus(
    fitted: Parameters, curvature: Curvature, nu: float, runtime: Runtime
) -> tuple[float, float]:
    """Return variances of scores and habits in the consensus that agree with what was found."""
    vector, slots, terms = fitted.vector, fitted.slots, fitted.terms
    bent, units = curvature.of_slots(), fitted.units
    # What is left of a slot's information once the user's own deviation takes its share.
    left = bent / (1.0 + nu * units**2 * bent)
    of_items = np.bincount(slots.coordinate, left, vector.own_width)[vector.scores]
    of_items, of_habits = runtime.total(of_items, curvature.of_habits())
    scores = fitted.consensus[vector.scores]
    return (
        min(_variance(scores, of_items, terms.score_variance), LARGEST_OF_SCORES),
        _variance(fitted.consensus[vector.habits], of_habits, terms.habit_variance)
        if vector.has_habits
        else terms.habit_variance,
    )


def _variance(found: Floats, information: Floats, variance: float) -> float:
    known = np.sum(information / (information + 1.0 / variance))
    change = float(np.sum(found**2) / max(known, SMALLEST_SHARE * len(found)) / variance)
    change = float(np.clip(change, 1.0 / MOST_CHANGE, MOST_CHANGE))
    return float(np.clip(variance * change, SMALLEST, LARGEST))
