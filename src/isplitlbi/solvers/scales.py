"""How large the terms of a model are: told by the votes, before anybody leaves (empirical Bayes).

The fit before anybody leaves holds every term around zero by a prior variance. The right variance
is the one that agrees with what is found: the sum of squared estimates, over the number of them
that the votes determine. A few rounds of fitting and correcting find it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.terms import Terms
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.likelihood import fit_before_entries
from isplitlbi.solvers.posterior import Curvature, user_covariances
from isplitlbi.solvers.settings import Dynamics
from isplitlbi.typing import Floats

__all__ = ["Sizes", "estimate_sizes"]

N_ROUNDS = 7
REFERENCES = (0, 2)  # the rounds whose consensus becomes the reference of the sharpness
FIRST_VARIANCES = {"taste": 0.3, "sharpness": 0.2, "side": 0.1, "threshold": 0.3}
OTHER_VARIANCE = 0.05
SMALLEST, LARGEST = 1e-5, 1e2  # variances
POWER = 1.8
DEGREES = 0
MOST_CHANGE = 8.0  # of a variance, in one round
SMALLEST_SHARE = 1e-3  # of numbers that the votes determine
# Cubes of the numbers of parameters, summed over the users who are looked at.
MOST_WORK = 2e8
ROUGH = 1e-2  # of the fits, in all rounds but the last


@dataclass(frozen=True)
class Sizes:
    """What was found: how large terms are, and the fit that tells it."""

    terms: Terms
    nu: float
    fitted: Parameters


def estimate_sizes(
    votes: Comparisons, link: Link, dynamics: Dynamics, terms: Terms, runtime: Runtime, seed: int
) -> Sizes:
    """Estimate nu, the scales of all terms, and the variances of scores and habits."""
    variances = np.array(
        [
            FIRST_VARIANCES.get(name, OTHER_VARIANCE) * (scale > 0.0)
            for name, scale in zip(terms.names, terms.scales, strict=True)
        ]
    )
    of_scores, of_habits = 1.0, 0.1
    sample, fitted = _sample(votes, terms, runtime, seed), None
    for number in range(N_ROUNDS):
        nu = max(variances[0], SMALLEST)
        terms = replace(
            terms, scales=tuple(np.sqrt(variances / nu)),
            score_variance=of_scores, habit_variance=of_habits,
        )  # fmt: skip
        dynamics = replace(dynamics, nu=float(nu))
        fitted = fit_before_entries(
            votes, link, dynamics, runtime, ROUGH, terms, fitted and _rescaled(fitted, terms)
        )
        if number == N_ROUNDS - 1:
            break
        curvature = Curvature.of(votes, link, fitted)
        variances = _corrected(fitted, curvature, nu, sample, variances, runtime)
        new_scores, of_habits = _of_consensus(fitted, curvature, nu, runtime)
        if number <= REFERENCES[-1]: of_scores = new_scores
        if number in REFERENCES:
            terms = terms.referring(fitted.common.scores.copy())
    return Sizes(terms, float(nu), fitted)


def _sample(votes: Comparisons, terms: Terms, runtime: Runtime, seed: int) -> Floats:
    """Draw the users who are looked at: all, or as many as are not too much work."""
    slots = terms.layout(votes).slots
    work = np.where(votes.votes_per_user > 0, slots.sizes.astype(np.float64) ** 3, 0.0)
    (total,) = runtime.total(float(work.sum()))
    drawn = np.asarray(runtime.numbers(seed).random(votes.n_users)) < MOST_WORK / max(total, 1.0)
    return np.flatnonzero(drawn & (work > 0))


def _rescaled(fitted: Parameters, terms: Terms) -> Parameters:
    """Return the same deviations in other units: a guess for the next round."""
    old, new = fitted.units, replace(fitted, terms=terms).units
    ratio = np.divide(old, new, out=np.zeros_like(old), where=new > 0.0)
    return replace(fitted, deviation=fitted.deviation * ratio, terms=terms)


def _corrected(
    fitted: Parameters,
    curvature: Curvature,
    nu: float,
    sample: Floats,
    variances: Floats,
    runtime: Runtime,
) -> Floats:
    """Return variances of users' terms that agree better with what was found."""
    n_terms, slots = len(variances), fitted.slots
    squares, known = np.zeros((2, n_terms))
    everybody = np.full(slots.n_users, nu)
    for users, covariance in user_covariances(curvature, fitted.units, everybody, sample):
        spread = np.diagonal(covariance, axis1=1, axis2=2)
        sizes = slots.sizes[users]
        place = np.arange(spread.shape[1])
        mine = place < sizes[:, None]
        term = np.clip(place - (sizes[:, None] - n_terms), 0, n_terms - 1)
        where = np.where(mine, slots.start[users][:, None] + place, 0)
        square = np.where(mine, fitted.deviation[where] ** 2, 0.0)
        certain = np.where(mine, 1.0 - spread / nu, 0.0)
        weight = (DEGREES + certain.sum(axis=1)) / (DEGREES + square.sum(axis=1) / nu) if DEGREES else np.ones(len(users))
        squares += np.bincount(term.ravel(), (weight[:, None] * square).ravel(), n_terms)
        known += np.bincount(term.ravel(), certain.ravel(), n_terms)
    squares, known = runtime.total(squares, known)
    known = np.maximum(known, 1e-6)
    change = np.clip((squares / known / nu) ** POWER, 1.0 / MOST_CHANGE, MOST_CHANGE)
    return np.where(variances > 0.0, np.clip(variances * change, SMALLEST, LARGEST), 0.0)


def _of_consensus(
    fitted: Parameters, curvature: Curvature, nu: float, runtime: Runtime
) -> tuple[float, float]:
    """Return variances of scores and habits in the consensus that agree with what was found."""
    vector, slots, terms = fitted.vector, fitted.slots, fitted.terms
    bent, units = curvature.of_slots(), fitted.units
    # What is left of a slot's information once the user's own deviation takes its share.
    left = bent / (1.0 + nu * units**2 * bent)
    of_items = np.bincount(slots.coordinate, left, vector.own_width)[vector.scores]
    of_habits = curvature.of_habits()
    of_items, of_habits = runtime.total(of_items, of_habits)
    return (
        _variance(fitted.consensus[vector.scores], of_items, terms.score_variance),
        _variance(fitted.consensus[vector.habits], of_habits, terms.habit_variance)
        if vector.has_habits
        else 1.0,
    )


def _variance(found: Floats, information: Floats, variance: float) -> float:
    known = np.sum(information / (information + 1.0 / variance))
    change = float(np.sum(found**2) / max(known, SMALLEST_SHARE * len(found)) / variance)
    return float(
        np.clip(variance * np.clip(change, 1 / MOST_CHANGE, MOST_CHANGE), SMALLEST, LARGEST)
    )
