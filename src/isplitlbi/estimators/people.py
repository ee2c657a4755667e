"""The users of a model as people to ask: what another vote of each would tell."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isplitlbi.data.layout import SHARPNESS as SHARPNESS_OF_USERS
from isplitlbi.estimators.certainty import Seen
from isplitlbi.model.answering import Answering
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Consensus, Parameters
from isplitlbi.model.terms import Side
from isplitlbi.planning.open_questions import OpenQuestions
from isplitlbi.planning.people import NOTHING, SHARPNESS, TASTES, Answers, Person
from isplitlbi.typing import Floats, Places

__all__ = ["Information", "People"]


@dataclass(frozen=True)
class Information:
    """What one vote tells of its margin, at the tie threshold of a person and the items' habits."""

    answering: Answering
    level: float
    habits: Floats

    @classmethod
    def of(cls, link: Link, own: Consensus) -> Information:
        """Look at the thresholds of a person, or of the consensus."""
        vector, terms = own.vector, own.terms
        habits = own.values[vector.habits] if vector.has_habits else np.zeros(vector.n_items)
        return cls(terms.answering(link), float(own.values[vector.threshold]), habits)

    def __call__(self, margin: Floats, first: Places, second: Places) -> Floats:
        """Return Fisher's information about margins."""
        level = self.level + self.habits[first] + self.habits[second]
        chances = [np.exp(each) for each in self.answering.outcomes(margin, level)]
        bent = self.answering.vote_terms(margin, level, *chances)[3]
        return np.asarray(np.broadcast_to(bent, margin.shape), dtype=np.float64)


class People:
    """The users of a model as people to ask about some items, by what their votes told already.

    Parameters
    ----------
    seen
        All votes, as they are at the parameters of the fit.
    link
        That of the fit.
    items
        The items that may be asked about, in order.
    """

    def __init__(self, seen: Seen, link: Link, items: Places) -> None:
        self.seen, self.link, self.items = seen, link, items
        self.parameters: Parameters = seen.parameters
        self.index = np.full(self.parameters.n_items, -1)
        self.index[items] = np.arange(len(items))
        reference = self.parameters.terms.reference
        self.reference = np.zeros(len(items)) if reference is None else reference[items]
        self._slope_of_reference = self._reference_slope()

    def ordinary(self) -> Person:
        """Return somebody of whom nothing is known."""
        taste = self._taste(float(np.median(self.seen.variance)))
        return Person.without_own(self._answers(-1), taste_variance=taste)

    def person(self, user: int) -> Person:
        """Return a user. What they think of other items than these is left out."""
        parameters, found = self.parameters, self.seen.of_user(user)
        vector = parameters.vector
        place = found.place[: len(found.units)]
        index = np.where(place < vector.n_items, self.index[place % vector.n_items], -1)
        items = np.flatnonzero(index >= 0)
        rows, at, slope = items, TASTES + np.arange(len(items)), 1.0
        if parameters.terms.reference is not None:
            sharpness = np.flatnonzero(place == vector.place(SHARPNESS_OF_USERS))
            rows, at = np.append(items, sharpness), np.append(at, SHARPNESS)
            own = float(parameters.all_of(SHARPNESS_OF_USERS)[user])
            slope += own * self._slope_of_reference
        units, n_own = found.units[rows], TASTES + len(items)
        covariance, follows = np.zeros((n_own, n_own)), np.zeros((n_own, len(items)))
        covariance[np.ix_(at, at)] = units[:, None] * found.inverse[np.ix_(rows, rows)] * units
        follows[at] = units[:, None] * found.follows[np.ix_(rows, items)]
        position = np.full(len(self.items), NOTHING)
        position[index[items]] = TASTES + np.arange(len(items))
        side = 0.0
        if Side.name in parameters.terms.names:
            where = int(np.flatnonzero(place == vector.place(Side.name))[0])
            side = float(found.units[where] ** 2 * found.inverse[where, where])
        return Person(
            self._answers(user), slope, position, covariance, follows, self.reference,
            self._taste(float(self.seen.variance[user])), side,
        )  # fmt: skip

    def _answers(self, user: int) -> Answers:
        own = self.parameters.of_user(user)
        side = own.trait(Side.name) if Side.name in own.terms.names else 0.0
        information = Information.of(self.link, own)
        some = replace(information, habits=information.habits[self.items])
        return Answers(own.scores[self.items], side, some)

    def _taste(self, variance: float) -> float:
        """Return the variance of a taste for an item that was not compared, in logits."""
        return float(self.parameters.terms.scales[0] ** 2 * variance)

    def _reference_slope(self) -> float:
        """Return how far the reference of sharpness goes along with the consensus."""
        scores, reference = self.parameters.common.scores, self.parameters.terms.reference
        if reference is None:
            return 0.0
        scores = scores - scores.mean()
        return float(scores @ (reference - reference.mean()) / max(float(scores @ scores), 1e-12))

    def own_questions(self, person: Person, covariance: Floats) -> OpenQuestions:
        """Return what is open in a person's own order, given the covariance of the consensus."""
        n_items = len(self.items)
        moves = np.zeros((n_items, len(person.covariance)))  # own numbers to scores
        moves[np.arange(n_items), person.position] = person.position != NOTHING
        moves[:, SHARPNESS] += person.reference
        by_consensus = np.eye(n_items)
        by_consensus[:, person.compared] += moves @ person.follows
        own = moves @ person.covariance @ moves.T
        own += np.diag(np.where(person.position == NOTHING, person.taste_variance, 0.0))
        own += person.slope**2 * by_consensus @ covariance @ by_consensus.T
        return OpenQuestions(person.answers.scores, own)
