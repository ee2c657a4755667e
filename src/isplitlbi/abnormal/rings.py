"""Users who stand out together: votes of each are foretold by the scores of the others."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from isplitlbi.abnormal.evidence import Found
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.model.answering import log_probabilities
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["find_rings"]

MOST_USERS = 300  # who are compared with each other
SMALLEST_RING = 3
CLEARLY = 3.0  # nats by which another's scores are to explain votes better than anything else


def find_rings(
    inputs: Inputs, yardstick: Yardstick, own: Found, best: Floats, asked: Mask
) -> Places:
    """Return how many users are in the ring of every user; zero for those in none.

    Parameters
    ----------
    own
        Scores of the users' own, which owe nothing to the consensus.
    best
        How likely everybody's votes are by the best explanation that knows nothing of the others.
    asked
        Who is looked at; of very many, the first ones.
    """
    runtime, answers = inputs.runtime, inputs.answers
    first, n_users = runtime.first, answers.n_users
    together = np.flatnonzero(runtime.everybody(asked.astype(np.float64)))[:MOST_USERS]
    size = np.zeros(runtime.n_users, dtype=np.int64)
    if len(together) < SMALLEST_RING:
        return size[first : first + n_users]
    here = np.flatnonzero((together >= first) & (together < first + n_users))
    places = list(zip(here.tolist(), (together[here] - first).tolist(), strict=True))
    scores, compared = _scores(inputs, yardstick, own, places, len(together))
    gain = np.zeros((len(together), len(together)))
    for place, user in places:
        margin, threshold = _questions(inputs, yardstick, user, scores, compared)
        said = log_probabilities(
            inputs.link, margin, threshold * np.exp(own.level[user]),
            has_ties=yardstick.expected.has_ties,
        )  # fmt: skip
        weighted = answers.weighted[answers.of_user(user)]
        gain[place] = np.sum(weighted * said, axis=(1, 2)) - best[user]
    (gain,) = runtime.total(gain.ravel())
    gain = np.reshape(gain, (len(together), -1))
    np.fill_diagonal(gain, -np.inf)
    # Anybody's scores may fit by chance: the more there are, the better they have to.
    is_bound = gain > CLEARLY + np.log(len(together))
    is_bound &= is_bound.T
    _, ring = connected_components(coo_array(is_bound), directed=False)
    members = np.bincount(ring)[ring]
    size[together] = np.where(members >= SMALLEST_RING, members, 0)
    return size[first : first + n_users]


def _scores(
    inputs: Inputs, yardstick: Yardstick, own: Found, places: list[tuple[int, int]], n_rows: int
) -> tuple[Floats, Floats]:
    """Return the scores that each has of their own, and which items each compared."""
    directions = yardstick.directions
    scores, compared = np.zeros((2, n_rows, inputs.votes.n_items))
    for place, user in places:
        n_items = int(directions.n_columns[user]) - directions.n_traits
        slots = slice(directions.first[user], directions.first[user] + n_items)
        scores[place, directions.item[slots]] = own.items[slots]
        compared[place, directions.item[slots]] = 1.0
    found = inputs.runtime.total(scores.ravel(), compared.ravel())
    scores, compared = (np.reshape(each, (n_rows, -1)) for each in found)
    return scores, compared


def _questions(
    inputs: Inputs, yardstick: Yardstick, user: int, scores: Floats, compared: Floats
) -> tuple[Floats, Floats]:
    """Return margins and thresholds of a user's questions by the scores of each."""
    answers, expected = inputs.answers, yardstick.expected
    mine = answers.of_user(user)
    left, right = answers.left[mine], answers.right[mine]
    known = (compared[:, left] * compared[:, right]) > 0.0
    margin = np.where(known, scores[:, left] - scores[:, right], 0.0)
    margin += (expected.margin - expected.apart)[mine]
    return margin, np.broadcast_to(np.exp(expected.level[mine]), margin.shape)
