"""How carefully users vote: whether their votes depend on the items, whatever their taste."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from isplitlbi.abnormal.expectation import Answers, Expectation, of_answers
from isplitlbi.abnormal.kinds import KINDS
from isplitlbi.typing import Floats

__all__ = ["find_quality"]

# Quality starts from one half, as if so much had been seen already (in nats).
PRIOR, START = 2.0, 0.5
# How steeply quality goes from 0 to 1: a careful voter has .9, one who clicks at random .1.
STEEPNESS = 2.0 * np.log(9.0)


def find_quality(
    answers: Answers, expected: Expectation, explained: Floats, kind: Sequence[str]
) -> Floats:
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
    kind
        The kind of every user, if any; some have a quality of their own.
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
    quality = np.where(
        given.sum(axis=1) > 0, scipy.special.expit(STEEPNESS * (share - START)), np.nan
    )
    for user, name in enumerate(kind):
        if name and (own := KINDS[name].quality) is not None:
            quality[user] = own
    return quality
