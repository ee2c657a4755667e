"""How carefully users vote: whether their votes depend on the items, whatever their taste."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from isplitlbi.abnormal.expectation import Answers, Expectation
from isplitlbi.abnormal.kinds import KINDS
from isplitlbi.typing import Floats

__all__ = ["find_quality"]

# Quality starts from one half, as if so much had been seen already (in nats).
PRIOR, START = 2.0, 0.5


def find_quality(
    answers: Answers, expected: Expectation, explained: Floats, kind: Sequence[str]
) -> Floats:
    """Rate everybody from 0 to 1, beside what a careful voter would show; nan without votes.

    The yardstick is what the votes would be worth if they did not depend on the items at all, only
    on how often the user says left, tie and right (decided or not, where sides mean nothing); a
    careful voter of the consensus is worth so much more on the same pairs.

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
    given = _by_user(answers, answers.weighted)
    foreseen = _by_user(answers, amount[:, None] * expected.probability)
    total = given.sum(axis=1)
    known = {"has_ties": expected.has_ties, "has_sides": answers.has_sides}
    gain = explained - _without_items(given, total, **known)
    possible = np.maximum(careful - _without_items(foreseen, total, **known), 0.0)
    share = (gain + PRIOR * START) / (possible + PRIOR)
    quality = np.where(total > 0, np.clip(share, 0.0, 1.0), np.nan)
    for user, name in enumerate(kind):
        if name and (own := KINDS[name].quality) is not None:
            quality[user] = own
    return quality


def _by_user(answers: Answers, amounts: Floats) -> Floats:
    """Add up the amounts of the three outcomes: (n_users, 3)."""
    return np.stack([answers.sum_by_user(column) for column in amounts.T], axis=1)


def _without_items(amounts: Floats, total: Floats, *, has_ties: bool, has_sides: bool) -> Floats:
    """Return the log-likelihood of so many answers of each kind, whatever the items.

    Their shares are not known beforehand: all sequences of answers with the same shares. Where
    sides mean nothing, a decided vote goes either way with the same chance.
    """
    by_side: Floats | float = 0.0
    if not has_sides:
        decided = amounts[:, 0] + amounts[:, 2]
        amounts = np.stack([decided, amounts[:, 1]], axis=1)
        by_side = -np.log(2.0) * decided
    n_answers = float(has_sides + has_ties + 1)
    sequences = gammaln(amounts + 1.0).sum(axis=1) - gammaln(total + n_answers) + gammaln(n_answers)
    return np.asarray(sequences + by_side)
