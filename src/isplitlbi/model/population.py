"""What is probable for somebody unknown: the average over the people who are known.

The probability for an average person is not the average of people's probabilities: people differ,
so that the average is less sure. Somebody unknown may be like anybody known. So the probability of
an outcome is the mean of what is probable for each of them, by their own scores and thresholds.

How much a person counts
------------------------
On items that a person never compared, the person has the scores of the consensus, which are
nobody's. So a person who compared k items counts k / (k + `ITEMS_OF_OTHERS`) in the mean.

As somebody's votes come in, the known people who would have voted like that count for more. Their
weights are multiplied by how probable these votes are for them, to the power `TRUST`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Shown, Vector
from isplitlbi.model.answering import Answering, ForcedChoice
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Parameters, margins_and_thresholds
from isplitlbi.model.terms import Terms
from isplitlbi.typing import Floats, Indices, Places

__all__ = ["ITEMS_OF_OTHERS", "TRUST", "VOTES_OF_OTHERS", "Population", "rows_of"]

# With whole users held out of five studies, 10 predicted better than 0, and 20 or 50 hardly better.
ITEMS_OF_OTHERS = 10.0

# Others count like so many votes beside a person's own. With whole users held out of the same
# studies, of whom 1 to 20 votes were given, 8 to 20 were alike and better than 1 to 5.
VOTES_OF_OTHERS = 10.0

# Votes tell less of whom somebody is like than their probabilities say: what is known of the known
# people are estimates, and nobody is quite like another. In the same studies .5 to .7 were best,
# and 1 was worse from five votes on.
TRUST = 0.5

# So many people stand for all. With 5,000 people of simulated studies, probabilities were off by
# .003 (root mean square) and by .018 at most. A million pairs with features take 20 seconds.
MOST_PEOPLE = 500

NUMBERS_AT_ONCE = 1 << 16  # of people times pairs: tables of so many stay in a processor's cache
# The last bit of a function may depend on whether a number lies in a full register of the
# processor. Tables are filled up to whole registers, so that no result depends on its neighbours.
REGISTER = 8


@dataclass(frozen=True, eq=False)
class Population:
    """The people who are known, as those whom somebody unknown may be like.

    Attributes
    ----------
    values : (n_people, own_width)
        What everybody has instead of the consensus.
    habits : (n_items,)
        By which factor every item changes the threshold of its pairs.
    log_weight : (n_people,)
        How much everybody counts; the weights sum to one.
    """

    link: Link
    vector: Vector
    terms: Terms
    values: Floats
    habits: Floats
    log_weight: Floats

    @classmethod
    def of(cls, parameters: Parameters, link: Link) -> Population:
        """Look at the people who have some parameters."""
        slots = parameters.slots
        compared = np.bincount(slots.owner, slots.coordinate < parameters.n_items, slots.n_users)
        weight = compared / (compared + ITEMS_OF_OTHERS)
        if not parameters.deviation.any():  # all are alike
            people, weight = np.zeros(1, dtype=np.int64), np.ones(1)
        elif np.count_nonzero(weight) <= MOST_PEOPLE:
            people = np.flatnonzero(weight)
            weight = weight[people]
        else:
            people = _evenly_spread(parameters.distance_to_consensus(), weight)
            weight = np.ones(len(people))
        own_width, common = parameters.vector.own_width, parameters.common
        values = np.empty((len(people), own_width))
        for row, user in zip(values, people.tolist(), strict=True):
            row[:] = parameters.of_user(user).values[:own_width]
        log_weight = np.log(weight / weight.sum())
        return cls(link, parameters.vector, parameters.terms, values, common.habits, log_weight)

    def log_probabilities(
        self, shown: Shown, who: Indices | None = None, log_weights: Floats | None = None
    ) -> Floats:
        """Return those of left, tie and right for somebody unknown, pair by pair: (n_pairs, 3).

        Parameters
        ----------
        shown
            The pairs.
        who, log_weights
            Where different people are asked for: who each pair is about, and how much the known
            people count for each of them, as `log_weights_after` returns it.
        """
        if log_weights is None or who is None:
            log_weights, who = self.log_weight[None], np.zeros(len(shown.first), dtype=np.int64)
        row, of_row = self._distinct(shown, who)
        found = np.empty((len(row), 3))
        for begin, end in self._parts(len(row)):
            some = _filled_up(row[begin:end])
            by_person = self._by_person(rows_of(shown, some))
            by_person += log_weights[who[some]].T
            found[begin:end] = _log_sums(by_person, axis=1)[:, : end - begin].T
        return found[of_row]

    def log_weights_after(self, votes: Comparisons, users: Indices) -> Floats:
        """Return how much each person counts for some users, by the votes that these gave.

        Without votes, that is how much they count for anybody. Users are in increasing order; what
        is returned has the shape (n_users, n_people).
        """
        order = np.lexsort((votes.outcome, votes.right, votes.left, votes.user))
        order = order[np.isin(votes.user[order], users)]
        whose = np.searchsorted(users, votes.user[order])
        shown = Shown(votes.left, votes.right, votes, np.arange(len(votes)))
        likely = np.zeros((len(users), len(self.log_weight)))
        for begin, end in self._parts(len(order)):
            some = _filled_up(order[begin:end])
            by_person = self._by_person(rows_of(shown, some))
            outcome = 1 - votes.outcome[some].astype(np.int64)
            said = by_person[outcome, :, np.arange(len(some))]
            if votes.weight is not None:
                said *= votes.weight[some][:, None]
            # One vote after another, so that nobody's sum depends on where a part ends.
            np.add.at(likely, whose[begin:end], said[: end - begin])
        weights = self.log_weight + TRUST * likely
        weights -= _log_sums(weights, axis=1)[:, None]
        # Who has given no votes is anybody, to the last bit.
        has_voted = votes.votes_per_user[users] > 0
        return np.where(has_voted[:, None], weights, self.log_weight)

    def _by_person(self, shown: Shown) -> Floats:
        """Return the log-probabilities of left, tie and right: (3, n_people, n_pairs)."""
        margin, threshold = margins_and_thresholds(
            self.vector, self.values, self.habits, self.terms, shown
        )
        answering: Answering = self.link if self.terms.has_ties else ForcedChoice(self.link)
        return np.stack(answering.outcomes(margin, threshold))

    def _distinct(self, shown: Shown, who: Indices) -> tuple[Places, Places]:
        """Return one row of each question that is asked, and which of them every row asks."""
        if shown.votes is not None and shown.votes.features is not None:
            every = np.arange(len(shown.first))
            return every, every
        n_items = np.int64(self.vector.n_items)
        question = (who * n_items + shown.first) * n_items + shown.second
        _, row, of_row = np.unique(question, return_index=True, return_inverse=True)
        return row, of_row

    def _parts(self, n_rows: int) -> Iterator[tuple[int, int]]:
        """Return where parts of the rows begin and end."""
        step = max(NUMBERS_AT_ONCE // len(self.log_weight) // REGISTER, 1) * REGISTER
        return pairwise([*range(0, n_rows, step), n_rows])


def _evenly_spread(distance: Floats, weight: Floats) -> Places:
    """Return people who stand for all, each for as much: near the consensus and far from it."""
    order = np.argsort(distance, kind="stable")
    total = np.cumsum(weight[order])
    marks = (np.arange(MOST_PEOPLE) + 0.5) / MOST_PEOPLE * total[-1]
    return np.asarray(order[np.searchsorted(total, marks)])


def _filled_up(rows: Places) -> Places:
    """Return rows with the last one repeated, so that they fill whole registers."""
    return np.append(rows, np.full(-len(rows) % REGISTER, rows[-1]))


def rows_of(shown: Shown, rows: Places) -> Shown:
    """Return some of the pairs that were shown."""
    row = rows if shown.row is None else shown.row[rows]
    return Shown(shown.first[rows], shown.second[rows], shown.votes, row)


def _log_sums(logs: Floats, axis: int) -> Floats:
    """Return the logarithms of sums of numbers that are given by their logarithms."""
    largest = logs.max(axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(logs - largest), axis=axis))
    return np.asarray(total + largest.squeeze(axis))
