"""How certain an order will be after more votes: asked for well, or of random pairs.

Every vote of a person tells of that person, and through them of all people: as often as one person
may be asked, what all people think is known no better than the person is like them. So further
votes are laid out over as many people as there are, each with a taste of their own, and what is
left of their information once these tastes are unknown counts.

Where the estimate will go, nobody knows: but how far it may, and it is drawn. Each draw is one
future of the study, in which the order becomes certain sooner or later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from isplitlbi.model.differences import root_of
from isplitlbi.planning.open_questions import (
    OpenQuestions,
    chances_to_be_among,
    quadratic,
    ranks_of_draws,
)
from isplitlbi.planning.people import Person
from isplitlbi.typing import Floats, Places

__all__ = ["WAYS", "Ahead", "Known", "Outlook", "look_ahead"]

WAYS = ("asked", "random")
N_FUTURES, N_DRAWS, SEED = 200, 400, 1
MOST_NUMBERS = 2_000_000  # pairs of all futures together: with many items there are fewer futures
FEWEST_FUTURES = 20
# How many votes are laid out, in relation to those that are there: so many times, at the end.
FIRST_SHARE, MOST_TIMES, N_POINTS = 0.05, 20.0, 14
# Pairs that the votes between two points are asked about: so many as there are items, within these.
FEWEST_PICKS, MOST_PICKS = 20, 100


class Known(NamedTuple):
    """What is known of a study.

    Attributes
    ----------
    estimate, covariance
        Of the scores of all people like these.
    per_person : (n_items, n_items)
        What the votes of one person tell of their own scores, on the average.
    n_people, n_votes : int
    ordinary : Person
        Somebody of whom nothing is known.
    """

    estimate: Floats
    covariance: Floats
    per_person: Floats
    n_people: int
    n_votes: int
    ordinary: Person


class Outlook(NamedTuple):
    """How certain the order will be along one way of asking.

    Attributes
    ----------
    n_more : (n_points,)
        Further votes; 0 is the first point.
    tau, top : (n_futures, n_points)
        Kendall's tau that is then expected, and the probability that the first places are right.
    """

    n_more: Floats
    tau: Floats
    top: Floats

    def needed(self, values: Floats, target: float) -> Floats:
        """Return after how many further votes each future reaches a target; infinite if never."""
        reached = values >= target
        at = np.argmax(reached, axis=1)
        rows = np.arange(len(values))
        before = np.maximum(at - 1, 0)
        low, high = values[rows, before], values[rows, at]
        share = np.divide(target - low, high - low, out=np.zeros(len(rows)), where=high > low)
        found = self.n_more[before] + np.clip(share, 0.0, 1.0) * (
            self.n_more[at] - self.n_more[before]
        )
        return np.where(reached.any(axis=1), np.where(at == 0, 0.0, found), np.inf)


class Ahead(NamedTuple):
    """Both ways of asking, and what infinitely many votes of the same people would give."""

    asked: Outlook
    random: Outlook
    most_tau: float
    most_top: float


def look_ahead(
    known: Known,
    n_places: int,
    *,
    aims_at_top: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Ahead:
    """Lay out further votes in both ways, and say how certain the order will be.

    Parameters
    ----------
    known
        What is known now.
    n_places
        Of how many first places it is told how certain they are.
    aims_at_top
        Whether votes are asked for these places, or for the whole order.
    progress
        Called now and then with the share of the work done.
    """
    n_more = known.n_votes * np.geomspace(FIRST_SHARE, MOST_TIMES, N_POINTS)
    n_more = np.unique(np.ceil(np.append(0.0, n_more)))
    found = {}
    for number, way in enumerate(WAYS):
        covariances = _covariances(known, n_more, way, n_places if aims_at_top else 0)
        found[way] = Outlook(n_more, *_futures(known.estimate, covariances, n_places))
        if progress is not None:
            progress((number + 1) / len(WAYS))
    last = _after(known, known.per_person + 1e9 * _connected(known))
    tau, top = _futures(known.estimate, [known.covariance, last], n_places)
    return Ahead(found["asked"], found["random"], float(tau[:, 1].mean()), float(top[:, 1].mean()))


# --- votes -----------------------------------------------------------------------------------


def _covariances(known: Known, n_more: Floats, way: str, top: int) -> list[Floats]:
    """Return the covariance of the scores after some further votes."""
    first, second = np.triu_indices(len(known.estimate), 1)
    told = known.ordinary.answers.told_by_one(first, second, np.zeros(len(first)))
    added, found = np.zeros_like(known.covariance), [known.covariance]
    for more in np.diff(n_more):
        if way == "random":
            amounts = np.full(len(first), more / len(first))
        else:
            amounts = _asked(known, _questions(known, found[-1], top), first, second, told, more)
        added = added + _laplacian(first, second, amounts * told, len(known.estimate))
        found.append(_after(known, known.per_person + added / known.n_people))
    return found


def _questions(known: Known, covariance: Floats, top: int) -> OpenQuestions:
    """Return what is open: of the whole order, or of so many first places."""
    importance = None
    if top:
        ranks = ranks_of_draws(known.estimate, covariance, n_draws=N_DRAWS)
        importance = chances_to_be_among(top, ranks)
    return OpenQuestions(known.estimate, covariance, importance)


def _asked(
    known: Known,
    questions: OpenQuestions,
    first: Places,
    second: Places,
    told: Floats,
    more: float,
) -> Floats:
    """Deal further votes to pairs: each part of them to the pair that tells most."""
    n_picks = int(min(np.clip(len(known.estimate), FEWEST_PICKS, MOST_PICKS), more))
    of_each, amounts = more / n_picks, np.zeros(len(first))
    noise = (1.0 / told + 2.0 * known.ordinary.taste_variance) / of_each
    for _ in range(n_picks):
        variance = quadratic(questions.covariance, first, second)
        gains = quadratic(questions.told, first, second)
        at = int(np.argmax(gains / (variance + noise)))
        direction = np.zeros(len(known.estimate))
        direction[first[at]], direction[second[at]] = 1.0, -1.0
        questions.learn(direction, float(variance[at] + noise[at]))
        amounts[at] += of_each
    return amounts


def _after(known: Known, per_person: Floats) -> Floats:
    """Return the covariance of the scores, where people have told so much of themselves."""
    taste = known.ordinary.taste_variance
    more = known.n_people * (_of_all(per_person, taste) - _of_all(known.per_person, taste))
    one = np.eye(len(more))
    # The inverse of the covariance and of what is told more, without an inverse of the first.
    return np.asarray(np.linalg.solve(one + known.covariance @ more, known.covariance))


def _of_all(per_person: Floats, taste: float) -> Floats:
    """Return what somebody's votes tell of all people, whose taste they do not quite share."""
    one = np.eye(len(per_person))
    return np.asarray(np.linalg.solve(one + taste * per_person, per_person))


def _laplacian(first: Places, second: Places, weight: Floats, n_items: int) -> Floats:
    found = np.zeros((n_items, n_items))
    found[first, second] = found[second, first] = -weight
    np.fill_diagonal(found, -found.sum(axis=1))
    return found


def _connected(known: Known) -> Floats:
    """Return what one vote on every pair would tell."""
    n_items = len(known.estimate)
    first, second = np.triu_indices(n_items, 1)
    told = known.ordinary.answers.told_by_one(first, second, np.zeros(len(first)))
    return _laplacian(first, second, told, n_items)


# --- futures ---------------------------------------------------------------------------------


def _futures(estimate: Floats, covariances: list[Floats], n_places: int) -> tuple[Floats, Floats]:
    """Draw where the estimate goes; return tau and how certain the first places are, by future."""
    rng, n_items = np.random.default_rng(SEED), len(estimate)
    n_pairs = n_items * (n_items - 1) // 2
    n_futures = int(np.clip(MOST_NUMBERS // max(n_pairs, 1), FEWEST_FUTURES, N_FUTURES))
    where = np.tile(estimate, (n_futures, 1))
    noise = rng.standard_normal((N_DRAWS, n_items))
    first, second = np.triu_indices(n_items, 1)
    tau = np.empty((n_futures, len(covariances)))
    top, before = np.empty_like(tau), covariances[0]
    for point, covariance in enumerate(covariances):
        shrunk = before - covariance
        where = where + rng.standard_normal(where.shape) @ root_of(0.5 * (shrunk + shrunk.T))
        error = np.sqrt(np.maximum(quadratic(covariance, first, second), 1e-300))
        errors = noise @ root_of(covariance)
        for future, scores in enumerate(where):
            apart = np.abs(scores[first] - scores[second])
            tau[future, point] = 2.0 * scipy.special.ndtr(apart / error).mean() - 1.0
            top[future, point] = _share_of_same(scores, errors, n_places)
        before = covariance
    return tau, top


def _share_of_same(scores: Floats, errors: Floats, n_places: int) -> float:
    """Return how often the first places hold the same items as without errors."""
    if n_places >= len(scores):
        return 1.0
    at = np.argpartition(-scores, n_places - 1)
    drawn = scores + errors
    inside, outside = at[:n_places], at[n_places:]
    return float(np.mean(drawn[:, inside].min(axis=1) > drawn[:, outside].max(axis=1)))
