"""Users who stand out together: votes of each are foretold by the scores of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from isplitlbi.abnormal.evidence import Found
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.model.answering import log_probabilities
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["find_rings"]

MOST_USERS = 300  # who are compared with each other
SMALLEST_RING = 3
SLOPES = (1.0, 1.5, 2.5)
CLEARLY = 1.5  # nats by which others' scores are to explain votes better than anything else


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
    runtime, n_users = inputs.runtime, inputs.answers.n_users
    mine = slice(runtime.first, runtime.first + n_users)
    together = np.flatnonzero(runtime.everybody(asked.astype(np.float64)))[:MOST_USERS]
    size = np.zeros(runtime.n_users, dtype=np.int64)
    if len(together) < SMALLEST_RING:
        return size[mine]
    suspects = _Suspects.of(inputs, yardstick, own, best, together)
    alone = np.eye(len(together))
    gain = suspects.foretold(alone)
    np.fill_diagonal(gain, -np.inf)
    # Anybody's scores may fit by chance: the more there are, the better they have to.
    is_bound = gain > CLEARLY + np.log(len(together))
    graph = scipy.sparse.coo_array(is_bound & is_bound.T)
    n_rings, ring = scipy.sparse.csgraph.connected_components(graph, directed=False)
    # Scores of several are surer than those of each: who did not fit to one may fit to all.
    members = ring == np.arange(n_rings)[:, None]
    members = members[members.sum(axis=1) > 1]
    if len(members):
        gain = suspects.foretold(members.astype(np.float64))
        gain[gain < CLEARLY + np.log(len(together))] = -np.inf
        joins = gain.argmax(axis=1)
        members = (joins == np.arange(len(members))[:, None]) & np.isfinite(gain.max(axis=1))
        sizes = members.sum(axis=1)
        size[together] = np.where(sizes >= SMALLEST_RING, sizes, 0) @ members
    return size[mine]


class _Suspects(NamedTuple):
    """Users who may stand out together, with their scores, wherever they are."""

    inputs: Inputs
    yardstick: Yardstick
    own: Found
    best: Floats
    here: list[tuple[int, int]]  # of those here, the place among all of them, and the user
    scores: Floats  # (n, n_items)
    compared: Floats  # (n, n_items) whether there is such a score

    @classmethod
    def of(
        cls, inputs: Inputs, yardstick: Yardstick, own: Found, best: Floats, together: Places
    ) -> _Suspects:
        first, directions = inputs.runtime.first, yardstick.directions
        is_here = (together >= first) & (together < first + inputs.answers.n_users)
        places = np.flatnonzero(is_here)
        here = list(zip(places.tolist(), (together[places] - first).tolist(), strict=True))
        scores, compared = np.zeros((2, len(together), inputs.votes.n_items))
        for place, user in here:
            n_items = int(directions.n_columns[user]) - directions.n_traits
            slots = slice(directions.first[user], directions.first[user] + n_items)
            scores[place, directions.item[slots]] = own.items[slots]
            compared[place, directions.item[slots]] = 1.0
        found = inputs.runtime.total(scores.ravel(), compared.ravel())
        scores, compared = (np.reshape(each, (len(together), -1)) for each in found)
        return cls(inputs, yardstick, own, best, here, scores, compared)

    def foretold(self, groups: Floats) -> Floats:
        """Return how much better groups of others explain everybody's votes: (n, n_groups).

        ``groups``, (n_groups, n), are ones for members. Nobody foretells their own votes.
        """
        answers, expected = self.inputs.answers, self.yardstick.expected
        gain, beside = np.zeros((len(self.scores), len(groups))), expected.margin - expected.apart
        for place, user in self.here:
            others = groups.copy()
            others[:, place] = 0.0
            amount = others @ self.compared
            mean = (others @ self.scores) / np.maximum(amount, 1.0)
            mine = answers.of_user(user)
            left, right = answers.left[mine], answers.right[mine]
            known = (amount[:, left] > 0.0) & (amount[:, right] > 0.0)
            apart = np.where(known, mean[:, left] - mean[:, right], 0.0)
            threshold = np.exp(expected.level[mine] + self.own.level[user])
            # Scores that few votes tell are nearer to each other than they are.
            likely = [
                np.sum(answers.weighted[mine] * log_probabilities(
                    self.inputs.link, slope * apart + beside[mine],
                    np.broadcast_to(threshold, apart.shape), has_ties=expected.has_ties,
                ), axis=(1, 2))
                for slope in SLOPES
            ]  # fmt: skip
            likelihood = np.logaddexp.reduce(likely, axis=0) - np.log(len(SLOPES))
            gain[place] = np.where(others.any(axis=1), likelihood - self.best[user], -1e300)
        (gain,) = self.inputs.runtime.total(gain.ravel())
        return np.reshape(gain, (len(self.scores), -1))
