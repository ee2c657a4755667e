"""Leaving out pairs that tell little, where there are too many to look at.

Of many items, those are kept whose places are least certain. Of many pairs, half of those that are
kept tell somebody of whom nothing is known most; the other half are the best of every item, so that
one item alone cannot fill the list.
"""

from __future__ import annotations

import numpy as np

from isplitlbi.planning.open_questions import OpenQuestions
from isplitlbi.planning.people import Person
from isplitlbi.typing import Floats, Places

__all__ = ["MOST_ITEMS", "MOST_PAIRS", "least_certain", "pairs_to_ask"]

MOST_ITEMS = 1_000
MOST_PAIRS = 5_000
NEIGHBOURS = 50  # on either side: the pairs of an item that are likely to be close


def least_certain(estimate: Floats, variance: Floats, most: int = MOST_ITEMS) -> Places:
    """Return the items whose places are least certain, in order.

    An item is uncertain where its own error is large beside the distances to its neighbours.

    Parameters
    ----------
    estimate, variance : (n_items,)
        Scores, and of their errors, each by itself.
    most
        How many to return.
    """
    if len(estimate) <= most:
        return np.arange(len(estimate))
    order = np.argsort(-estimate, kind="stable")
    scores, errors = estimate[order], variance[order]
    unsure = np.zeros(len(order))
    for offset in range(1, NEIGHBOURS + 1):
        apart = scores[:-offset] - scores[offset:]
        both = np.maximum(errors[:-offset] + errors[offset:], 1e-300)
        close = np.exp(-0.5 * apart**2 / both) / both
        unsure[:-offset] += close * errors[:-offset]
        unsure[offset:] += close * errors[offset:]
    return np.sort(order[np.argsort(-unsure, kind="stable")[:most]])


def pairs_to_ask(
    questions: OpenQuestions, ordinary: Person, most: int = MOST_PAIRS
) -> tuple[Places, Places]:
    """Return pairs to look at, the lower item first: all of them, or those that tell most.

    Parameters
    ----------
    questions
        What is asked for.
    ordinary
        Somebody of whom nothing is known.
    most
        How many to return, about.
    """
    first, second = np.triu_indices(questions.n_items, 1)
    if len(first) <= most:
        return first, second
    gains = ordinary.gains(questions, first, second)
    kept = np.zeros(len(first), dtype=np.bool_)
    kept[np.argpartition(-gains, most // 2)[: most // 2]] = True
    of_each = -(-most // (2 * questions.n_items))  # rounded up
    table = np.full((questions.n_items, questions.n_items), -np.inf)
    table[first, second] = table[second, first] = gains
    best = np.argpartition(-table, of_each, axis=1)[:, :of_each]
    item = np.repeat(np.arange(questions.n_items), of_each)
    mine = np.zeros_like(table, dtype=np.bool_)
    mine[item, best.ravel()] = True
    kept |= (mine | mine.T)[first, second]
    return first[kept], second[kept]
