"""How carefully users vote: whether their votes depend on the items, whatever their taste."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln

from isplitlbi.abnormal.expectation import Answers, Expectation
from isplitlbi.typing import Floats

__all__ = ["find_quality", "of_answers", "without_items"]

# Quality starts from one half, as if so much had been seen already (in nats).
PRIOR, START = 2.0, 0.5
# How steeply quality goes from 0 to 1: a careful voter has .9, one who clicks at random .1.
STEEPNESS = 2.0 * np.log(9.0)


def find_quality(answers: Answers, expected: Expectation, explained: Floats) -> Floats:
    """Rate everybody between 0 and 1, beside what a careful voter would show; nan without votes.

    The yardstick is what the votes would be worth if they did not depend on the items at all, only
    on how often the user says left, tie and right (decided or not, where sides mean nothing); a
    careful voter of the consensus is worth so much more on the same pairs. About .9 is that of a
    careful voter, .1 that of somebody who clicks at random; nobody has 0 or 1.

    Parameters
    ----------
    answers, expected
        The votes, and what the consensus expects.
    explained
        The log-likelihood of every user's votes, as far as they depend on the items.
    """
    amount = answers.n_votes * answers.weight
    careful = answers.sum_by_user(
        amount * np.sum(expected.probability * expected.log_probability, axis=1)
    )
    given = answers.by_user(answers.weighted)
    foreseen = answers.by_user(amount[:, None] * expected.probability)
    known = {"has_ties": expected.has_ties, "has_sides": answers.has_sides}
    gain = explained - of_answers(given, **known)
    possible = np.maximum(careful - of_answers(foreseen, **known), 0.0)
    share = (gain + PRIOR * START) / (possible + PRIOR)
    return np.where(given.sum(axis=1) > 0, expit(STEEPNESS * (share - START)), np.nan)


def without_items(answers: Answers, has_ties: bool) -> Floats:
    """Return the log-likelihood of everybody's answers, whatever the items."""
    given = answers.by_user(answers.weighted)
    return of_answers(given, has_ties=has_ties, has_sides=answers.has_sides)


def of_answers(amounts: Floats, *, has_ties: bool, has_sides: bool) -> Floats:
    """Return the log-likelihood of so many answers of each kind, (..., 3), whatever the items.

    Their shares are not known beforehand: all sequences of answers with the same shares. Where
    sides mean nothing, a decided vote goes either way with the same chance.
    """
    total, by_side = amounts.sum(axis=-1), 0.0
    if not has_sides:
        decided = amounts[..., 0] + amounts[..., 2]
        amounts = np.stack([decided, amounts[..., 1]], axis=-1)
        by_side = -np.log(2.0) * decided
    n_answers = float(has_sides + has_ties + 1)
    sequences = gammaln(amounts + 1.0).sum(axis=-1) - gammaln(total + n_answers)
    return np.asarray(sequences + gammaln(n_answers) + by_side)
