"""What a model says of single users, of features and of items, with intervals and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.features import Units
from isplitlbi.data.frames import Tabular
from isplitlbi.data.layout import SHARPNESS, THRESHOLD
from isplitlbi.estimators.certainty import Certainty, OfUser
from isplitlbi.lazy import pl
from isplitlbi.model.decomposition import squares_by_term
from isplitlbi.model.differences import LEVEL, student
from isplitlbi.model.parameters import Consensus
from isplitlbi.model.ranking import Ranking
from isplitlbi.model.terms import Feature, Side
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Floats, Mask

__all__ = [
    "FeatureEffect",
    "Measured",
    "OwnScores",
    "UserCard",
    "effect_of_features",
    "feature_effects",
    "habit_intervals",
    "own_scores",
    "own_scores_table",
    "user_cards",
]

# An interval of a slope that is longer, or one of a factor whose ends are further apart, tells
# little.
UNCLEAR, UNCLEAR_TIMES = 2.0, 6.0


NORMAL = 1.959964  # the quantile of a normal distribution that 95 % intervals reach to
# Intervals are wider by this: how large terms are is itself an estimate, and what users have of
# them is not quite normal. Measured on simulated users of known truth, for users and habits, for
# what users add to the scores, and for effects of features, which the sizes of all terms have a say
# in.
WIDER, WIDER_OF_SCORES, WIDER_OF_FEATURES = 1.07, 1.15, 1.15
ENDS = (0.025, 0.975)


class Measured(NamedTuple):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def around(cls, value: float, variance: float) -> Measured:
        """Return the interval of what is nearly normal."""
        reach = NORMAL * WIDER * float(np.sqrt(max(variance, 0.0)))
        return cls(value, value - reach, value + reach)

    def excludes(self, value: float) -> bool:
        """Say whether a value is outside the interval."""
        return not self.low <= value <= self.high

    def __str__(self) -> str:
        """Show the estimate and, in brackets, between what it lies."""
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


class FeatureEffect(NamedTuple):
    """What a feature counts for in the consensus.

    Attributes
    ----------
    name : str
    unit : float
        What one unit is, in the numbers that were given: their root mean square.
    effect, low, high : float
        What one unit more on the left adds to its margin, in logits, and a 95 % interval.
    per_unit : float
        The same for a difference of 1 in the numbers that were given.
    """

    name: str
    unit: float
    effect: float
    low: float
    high: float
    per_unit: float


def feature_effects(certainty: Certainty, units: Units) -> tuple[FeatureEffect, ...]:
    """Return what every feature counts for in the consensus."""
    effects = []
    quantile = student(max(certainty.n_users - 1, 1), ENDS[1])
    common, vector = certainty.seen.parameters.common, certainty.seen.parameters.vector
    for name, unit in zip(units.names, units.scale, strict=True):
        at = vector.place(name)
        effect = common.trait(name) + float(certainty.shift[at])
        reach = (
            quantile
            * WIDER_OF_FEATURES
            * float(np.sqrt(certainty.covariance(np.array([at]))[0, 0]))
        )
        effects.append(
            FeatureEffect(
                name, float(unit), effect, effect - reach, effect + reach, effect / float(unit)
            )
        )
    return tuple(effects)


def effect_of_features(votes: Comparisons, own: Consensus) -> Floats:
    """Return what the features of items, as they were shown, add to their scores.

    Only differences of two sides are known. Every item gets the number by which, together with
    those of the others, these differences are met best.
    """
    added = np.zeros(votes.n_items)
    if votes.features is None:
        return added
    effects = [
        own.trait(name) if name in own.vector.traits else 0.0 for name in votes.features.names
    ]
    difference = votes.features.values @ np.array(effects)
    weight = np.ones(len(votes)) if votes.weight is None else votes.weight
    left, right = votes.left, votes.right
    n_items = votes.n_items
    total = np.bincount(left, weight * difference, n_items)
    total = total - np.bincount(right, weight * difference, n_items)
    together = np.zeros((n_items, n_items))
    np.add.at(together, (left, left), weight)
    np.add.at(together, (right, right), weight)
    np.add.at(together, (left, right), -weight)
    np.add.at(together, (right, left), -weight)
    return np.asarray(np.linalg.lstsq(together, total)[0])


def habit_intervals(certainty: Certainty) -> tuple[Floats, Floats]:
    """Return between what the tie habits of items lie, as factors, in relation to all of them."""
    parameters = certainty.seen.parameters
    where, n_items = parameters.vector.habits, parameters.n_items
    if not parameters.vector.has_habits:
        return np.ones(n_items), np.ones(n_items)
    place = np.arange(where.start, where.stop)
    if certainty.row[where.start] < 0:  # with very many items: each by itself
        information = certainty.seen.curvature.of_habits()
        variance = 1.0 / (information + 1.0 / parameters.terms.habit_variance)
    else:
        around = np.eye(n_items) - 1.0 / n_items
        variance = np.maximum(np.diag(around @ certainty.covariance(place) @ around), 0.0)
    shift = certainty.shift[where]
    factor = parameters.common.habits * np.exp(shift - shift.mean())
    reach = np.exp(NORMAL * WIDER * np.sqrt(variance))
    return factor / reach, factor * reach


# --- users -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class OwnScores(Tabular):
    """The scores of one user, in the order of the items; as a table, best first.

    Attributes
    ----------
    score, low, high : (n_items,)
        With a 95 % interval, of scores beside the mean of all items: errors of the consensus count.
    differs : (n_items,) bool
        Whether the score differs from the consensus, as it is, by more than chance. The chance that
        this is said of any item in error is 5 % (Bonferroni). It is never said of an item that the
        user has not compared.
    ranking : Ranking
        That of the user.
    """

    score: Floats
    low: Floats
    high: Floats
    differs: Mask
    ranking: Ranking

    def __repr__(self) -> str:
        """Say how many scores differ from the consensus."""
        n_differ, n_items = int(np.count_nonzero(self.differs)), len(self.score)
        return (
            f"OwnScores of {self.ranking.user!r}: {n_items} items, {n_differ} of them differ from "
            "the consensus"
        )

    def _table(self) -> pl.DataFrame:
        return own_scores_table(self.ranking, self)


def own_scores_table(ranking: Ranking, found: OwnScores | None) -> pl.DataFrame:
    """Return the ranking of a user with intervals, and what differs; empty where not known."""
    kinds: dict[str, Any] = {"low": pl.Float64, "high": pl.Float64, "differs": pl.Boolean}
    columns = {name: [None] * len(ranking) for name in kinds}
    if found is not None:
        order = np.argsort(-found.score, kind="stable")
        columns = {name: getattr(found, name)[order] for name in kinds}
    table: pl.DataFrame = ranking.to_frame("polars")
    for place, (name, kind) in enumerate(kinds.items(), table.columns.index("score") + 1):
        table.insert_column(place, pl.Series(name, columns[name], dtype=kind))
    return table


def own_scores(certainty: Certainty, user: int, ranking: Ranking) -> OwnScores:
    """Return the scores of one user, and between what they lie."""
    parameters, found = certainty.seen.parameters, certainty.of_user(user)
    vector, n_items, n_slots = parameters.vector, parameters.n_items, len(found.units)
    place = found.place[:n_slots]
    moves = np.zeros((n_items, n_slots))  # what every number of the user does to each score
    is_score = np.flatnonzero(place < n_items)
    moves[place[is_score], is_score] = found.units[is_score]
    if parameters.terms.reference is not None:
        at = int(np.flatnonzero(place == vector.place(SHARPNESS))[0])
        moves[:, at] += found.units[at] * parameters.terms.reference
    variance = np.sum(moves @ found.inverse * moves, axis=1)
    compared = parameters.compared_by(user)
    # Of an item that the user never compared, the taste is as unknown as before any vote.
    taste = parameters.terms.scales[0] ** 2 * certainty.seen.variance[user]
    variance += np.where(compared, 0.0, taste)
    score = parameters.scores_of(user)
    off = np.abs(score - parameters.common.scores)
    missed = 0.5 * (1.0 - LEVEL) / max(int(compared.sum()), 1)
    differs = compared & (off > -scipy.special.ndtri(missed) * WIDER * np.sqrt(variance))
    variance *= WIDER_OF_SCORES**2
    variance += _of_consensus(certainty, found, moves @ found.follows)
    reach = NORMAL * np.sqrt(variance)
    return OwnScores(score, score - reach, score + reach, differs, ranking)


def _of_consensus(certainty: Certainty, found: OfUser, follows: Floats) -> Floats:
    """Return what errors of the consensus add to the variances of a user's scores.

    They are the user's errors, too, as far as the user's own votes do not mend them. Only
    differences of scores count.
    """
    vector, place = certainty.seen.parameters.vector, found.place
    n_items, of_scores = vector.n_items, certainty.scores().covariance
    if of_scores.ndim == 2:
        by_consensus = np.zeros((n_items, vector.width))
        by_consensus[:, vector.scores] = np.eye(n_items)
        by_consensus[:, place] += follows
        by_consensus -= by_consensus.mean(axis=0)
        common = certainty.covariance(np.arange(vector.width))
        common[vector.scores, vector.scores] = of_scores
        return np.asarray(np.sum(by_consensus @ common * by_consensus, axis=1))
    # Errors of very many items are independent: no table of all of them is needed.
    at = np.flatnonzero(place < n_items)
    items, own = place[at], of_scores[place[at]]
    common = certainty.covariance(place)
    common[at, at] = own
    follows = follows - follows.mean(axis=0)
    variance = of_scores * (1.0 - 2.0 / n_items) + of_scores.sum() / n_items**2
    variance += np.sum(follows @ common * follows, axis=1)
    variance -= 2.0 / n_items * (follows[:, at] @ own)
    variance[items] += 2.0 * follows[items, at] * own
    return np.asarray(np.maximum(variance, 0.0))


@dataclass(frozen=True)
class UserCard:
    """In which ways one user differs from the group, each with a 95 % interval.

    Attributes
    ----------
    user
        The id.
    n_votes : int
    slope : Measured or None
        How sharply the user tells items apart that the group tells apart: 1 is like everybody, 0 is
        careless, below 0 the other way round. None where the model has no sharpness.
    side : Measured or None
        What the user adds to the margin of the left item, in logits, the common side included.
    tie_factor : Measured or None
        The user's tie threshold over that of the group.
    features : mapping
        What a unit of each feature counts for, the consensus included.
    taste : float
        By how much the user's own taste moves the margin of a vote: a root mean square, in logits.
    taste_range : (float, float)
        Its interval.
    shares : mapping
        The share that each term has in how the user differs from the consensus.
    words : list of str
        All of it in sentences.
    """

    user: Any
    n_votes: int
    slope: Measured | None
    side: Measured | None
    tie_factor: Measured | None
    features: Mapping[str, Measured]
    taste: float
    taste_range: tuple[float, float]
    shares: Mapping[str, float]
    words: list[str]

    def __str__(self) -> str:
        """Show the sentences, one per line."""
        return "\n".join([f"{self.user}, {self.n_votes:,} votes", *self.words])


def user_cards(
    votes: Comparisons, certainty: Certainty, which: Sequence[int], nouns: Nouns = NOUNS
) -> tuple[UserCard, ...]:
    """Write the cards of some users."""
    terms = certainty.seen.parameters.terms
    squares, names = squares_by_term(votes, certainty.seen.parameters), votes.users.tolist()
    return tuple(
        _card(
            names[user],
            int(votes.votes_per_user[user]),
            _Measures(certainty, user, certainty.of_user(user)),
            dict(zip(terms.names, squares[user].tolist(), strict=True)),
            nouns,
        )
        for user in which
    )


def _card(
    user: Any, n_votes: int, of_user: _Measures, squares: dict[str, float], nouns: Nouns
) -> UserCard:
    names = of_user.terms.names
    total = sum(squares.values())
    shares = {name: square / total if total > 0.0 else 0.0 for name, square in squares.items()}
    slope = of_user.trait(SHARPNESS, 1.0) if SHARPNESS in names else None
    side = of_user.trait(Side.name) if Side.name in names else None
    features = {
        term.name: of_user.trait(term.name)
        for term in of_user.terms.all
        if isinstance(term, Feature)
    }
    tie_factor = of_user.tie_factor() if of_user.terms.has_ties else None
    taste, *taste_range = of_user.taste()
    words = _sentences(slope, side, of_user.common_side, tie_factor, features, nouns)
    if taste_range[1] > 0.0:
        found = Measured(taste, taste_range[0], taste_range[1])
        words.append(f"Own taste moves the margin of a vote by {found} logits.")
    if total > 0.0:
        most = max(shares, key=lambda name: shares[name])
        words.append(f"Differs from the group mostly in {most} ({100 * shares[most]:.0f} %).")
    low, high = taste_range
    return UserCard(
        user, n_votes, slope, side, tie_factor, features, taste, (low, high), shares, words
    )


class _Measures(NamedTuple):
    """Estimates of one user, with how sure they are."""

    certainty: Certainty
    user: int
    found: OfUser

    @property
    def terms(self) -> Any:
        return self.certainty.seen.parameters.terms

    @property
    def common_side(self) -> float:
        """What the group adds to the margin of the left item."""
        common = self.certainty.seen.parameters.common
        return common.trait(Side.name) if Side.name in common.vector.traits else 0.0

    def trait(self, name: str, more: float = 0.0) -> Measured:
        """Return what the user has of a trait."""
        parameters = self.certainty.seen.parameters
        common = float(parameters.consensus[parameters.vector.place(name)])
        value = more + common + self._own(name) + self.certainty.shift_of(name, self.found)
        return Measured.around(value, self.certainty.variance_of(name, self.found))

    def tie_factor(self) -> Measured:
        """Return the user's threshold over that of the consensus."""
        parameters = self.certainty.seen.parameters
        variance, own = self.certainty.variance_of(THRESHOLD, self.found), self._own(THRESHOLD)
        if self.terms.ties == "log":
            own += self.certainty.shift_of(THRESHOLD, self.found)
            return Measured(*np.exp(Measured.around(own, variance)).tolist())
        common = parameters.common.threshold
        value, low, high = Measured.around((common + own) / common, variance / common**2)
        return Measured(value, max(low, 0.0), max(high, 0.0))

    def taste(self) -> Measured:
        """Return by how much taste moves margins: the root of the mean square over the votes.

        Of a normal taste, that mean has about a gamma distribution.
        """
        layout, found = self.certainty.seen.curvature.layout, self.found
        begin = layout.slots.start[self.user]
        mine = slice(*layout.edges.start[self.user : self.user + 2])
        first, second = layout.edges.first[mine] - begin, layout.edges.second[mine] - begin
        n_votes = np.sum([each[mine] for each in layout.edges.counts], axis=0)
        items = slice(0, int(np.sum(found.place[: len(found.units)] < layout.vector.n_items)))
        moves = np.zeros((len(first), items.stop))
        row, units = np.arange(len(first)), found.units[items]
        moves[row, first], moves[row, second] = units[first], -units[second]
        deviation = self.certainty.seen.parameters.deviation[begin : begin + items.stop]
        square = moves.T @ (n_votes[:, None] * moves) / max(float(n_votes.sum()), 1e-300)
        spread = square @ found.inverse[items, items]
        mean = float(deviation @ square @ deviation + np.trace(spread))
        if mean <= 0.0:
            return Measured(0.0, 0.0, 0.0)
        variance = 4.0 * deviation @ spread @ square @ deviation + 2.0 * np.sum(spread * spread.T)
        shape = mean**2 / float(variance)
        low, high = (
            float(np.sqrt(mean / shape * scipy.special.gammaincinv(shape, end))) for end in ENDS
        )
        return Measured(float(np.sqrt(mean)), low, high)

    def _own(self, name: str) -> float:
        """Return what the user adds to the consensus."""
        seen = self.certainty.seen
        at = int(np.flatnonzero(self.found.place == seen.parameters.vector.place(name))[0])
        begin = seen.curvature.layout.slots.start[self.user]
        return float(self.found.units[at] * seen.parameters.deviation[begin + at])


# --- in words --------------------------------------------------------------------------------


def _sentences(
    slope: Measured | None,
    side: Measured | None,
    common_side: float,
    tie_factor: Measured | None,
    features: Mapping[str, Measured],
    nouns: Nouns,
) -> list[str]:
    words = []
    if slope is not None:
        words.append(f"{_of_slope(slope, nouns)}: slope {slope}.")
    if side is not None:
        words.append(f"{_of_side(side, common_side)}: {side} logits.")
    if tie_factor is not None:
        words.append(f"{_of_ties(tie_factor)}: factor {tie_factor}.")
    for name, effect in features.items():
        words.append(f"One unit of {name} counts for {effect} logits.")
    return words


def _of_slope(slope: Measured, nouns: Nouns) -> str:
    if slope.high < 0.0:
        return "Votes against the order of the group"
    if not slope.excludes(1.0):
        if slope.high - slope.low > UNCLEAR:
            return "Too few votes to know the sharpness"
        return f"Tells {nouns.items} apart about as sharply as the group"
    if slope.low > 1.0:
        return f"Tells {nouns.items} apart more sharply than the group"
    if not slope.excludes(0.0):
        return "Hardly follows the order of the group"
    return f"Tells {nouns.items} apart less sharply than the group"


def _of_side(side: Measured, common_side: float) -> str:
    if not side.excludes(0.0):
        return "Leans to neither side with certainty"
    where = "left" if side.value > 0.0 else "right"
    return f"Leans to the {where}{'' if side.excludes(common_side) else ', as the group does'}"


def _of_ties(factor: Measured) -> str:
    if not factor.excludes(1.0):
        if factor.high > UNCLEAR_TIMES * factor.low:
            return "Too few votes to say how readily ties are declared"
        return "Declares ties about as readily as the group"
    return f"Declares ties {'more' if factor.value > 1.0 else 'less'} readily than the group"
