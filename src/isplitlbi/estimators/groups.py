"""Do people fall into groups that want the same: how many, who is in which, what they disagree on.

The numbers are those of `isplitlbi.camps`; here they become ids, rankings and sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isplitlbi.camps.ballots import Ballots
from isplitlbi.camps.choice import Camps, Trial, find_camps
from isplitlbi.data.frames import Tabular, numbers_or_empty
from isplitlbi.data.splits import in_order
from isplitlbi.data.vocabulary import counted
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.lazy import pl
from isplitlbi.markup import printable
from isplitlbi.model.ranking import Ranking
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Floats, Labels, Mask, Places

if TYPE_CHECKING:
    from isplitlbi.estimators.measured import MeasuredEstimator

__all__ = ["Group", "Groups", "Other", "Turned", "groups_of"]

LEAST_USERS, LEAST_ITEMS, LEAST_VOTES = 10, 3, 50
MOST_ITEMS, MOST_GROUPS = 1_000, 8
LEVEL = 0.05  # how often any item or pair of a group may be named by chance
MOST_NAMED = 3  # items or pairs in a sentence
UNSURE = 0.8  # a user whose group is less probable than this is said to be unsure
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight")


class Other(NamedTuple):
    """An item that stands elsewhere for a group than for the rest of the people."""

    item: Any
    place: int
    place_of_rest: int
    difference: float  # of the scores, both beside the mean of all items
    error: float  # its standard error
    is_clear: bool  # whether that is more than chance, of all items


class Turned(NamedTuple):
    """A pair of items that two groups put in opposite orders, each beyond chance."""

    above: Any  # of the first of the two groups
    below: Any
    groups: tuple[int, int]
    differences: tuple[float, float]  # of their scores


@dataclass(frozen=True, eq=False)
class Group:
    """One group: who is in it, what it wants, and where it differs from the rest.

    Attributes
    ----------
    number : int
        From 1, the largest group first.
    users : list of ids
    n_votes : int
    ranking : Ranking
    errors : (n_items,)
        Standard errors of the scores beside the mean of all items, in the order of the ranking.
    loss, loss_of_one : float
        Log-loss per vote on held-out votes of its members: with the groups, and with one group.
    others : tuple of Other
        Every item, those first whose place differs most and is more than chance; none of one group.
    """

    number: int
    users: list[Any]
    n_votes: int
    ranking: Ranking
    errors: Floats
    loss: float
    loss_of_one: float
    others: tuple[Other, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Groups(Tabular):
    """Whether people fall into groups, and into which.

    Attributes
    ----------
    groups : tuple of Group
        The largest first.
    users : ids
        All who have voted.
    group : (n_users,)
        The number of each user's group; 0 for who is in none, because the votes fit no ranking.
    sure : (n_users,)
        How probable that is.
    votes : (n_users,)
    amount : float
        The sum of the weights of all votes on which groups were tried.
    turned : tuple of Turned
        Pairs of items that two groups put in opposite orders, the clearest first.
    trials : tuple of Trial
        How well each number of groups predicts held-out votes, and people without groups who differ
        along one or more axes.
    chosen, single : Trial
        That which was chosen, and one group.
    """

    groups: tuple[Group, ...]
    users: Labels
    group: Places
    sure: Floats
    votes: Places
    amount: float
    turned: tuple[Turned, ...]
    trials: tuple[Trial, ...]
    chosen: Trial
    single: Trial
    nouns: Nouns = NOUNS

    _shown = ("user", "group", "sure", "votes")

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        """Say how many groups there are, and how large."""
        sizes = ", ".join(f"{len(each.users):,}" for each in self.groups)
        return f"Groups: {len(self)} ({sizes} {self.nouns.users})"

    def _table(self) -> pl.DataFrame:
        """Return who is in which group, and how probable that is; empty for who is in none."""
        return pl.DataFrame(
            {
                "user": pl.Series(self.users),
                "group": numbers_or_empty(self.group),
                "sure": self.sure,
                "votes": self.votes,
            }
        )

    @property
    def n_unassigned(self) -> int:
        """How many users are in no group."""
        return int(np.sum(self.group == 0))

    def tried(self) -> list[dict[str, Any]]:
        """Return how well each account of the votes predicts those that were held out.

        The gain over one group is the mean per user, in units of log-loss, with its standard error.
        """
        rows = []
        for each in self.trials:
            gain, error = (0.0, 0.0) if each is self.single else each.gain_over(self.single)
            rows.append({
                "groups": each.account.n_camps, "axes": each.account.n_axes,
                "log_loss": float(each.loss.sum()) / self.amount, "gain": gain, "error": error,
                "chosen": each is self.chosen,
            })  # fmt: skip
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, such as for JSON."""
        return {
            "groups": [
                {
                    "group": each.number, "users": each.users, "votes": each.n_votes,
                    "log_loss": each.loss, "log_loss_of_one_group": each.loss_of_one,
                    "ranking": [
                        {**row, "error": float(error)} for row, error in
                        zip(each.ranking.to_frame("polars").to_dicts(), each.errors, strict=True)
                    ],
                    "unlike_the_rest": [other._asdict() for other in each.others],
                }
                for each in self.groups
            ],
            "users": self.to_frame("polars").to_dicts(),
            "opposite_pairs": [each._asdict() for each in self.turned],
            "tried": self.tried(),
        }  # fmt: skip

    # --- in words ---------------------------------------------------------------------------

    def sentences(self, show: Callable[[Any], str] | None = None) -> list[str]:
        """Say what was found; ``show`` says how ids are written."""
        said = [self._one() if len(self) == 1 else self._several()]
        n_none = self.n_unassigned
        if n_none:
            was = "is" if n_none == 1 else "are"
            said.append(
                f"{self.nouns.n_users(n_none)} {was} in no group: the votes fit no ranking better "
                f"than equal scores of all {self.nouns.items}."
            )
        if len(self) > 1:
            n_unsure = int(np.sum((self.sure < UNSURE) & (self.group > 0)))
            if n_unsure:
                said.append(
                    f"Of {self.nouns.n_users(n_unsure)}, the group is less than "
                    f"{100 * UNSURE:.0f} % certain."
                )
            show = show or _printed
            said += [self._of_group(each, show) for each in self.groups]
            said += self._of_pairs(show)
        return said

    def _one(self) -> str:
        """Say why there is one group."""
        several = [each for each in self.trials if each.account.n_camps > 1]
        if not several:
            return "One group: more were not tried."
        best = min(several, key=lambda each: float(each.loss.sum()))
        gain, error = best.gain_over(self.single)
        gain += 0.0 if round(gain, 2) else -gain  # no minus before 0.00
        by_degrees = [each for each in self.trials if each.account.n_axes]
        if by_degrees and min(each.loss.sum() for each in by_degrees) < self.single.loss.sum():
            return (
                f"One group: {self.nouns.users} differ by degrees. Held-out votes, or "
                f"{self.nouns.users}, are predicted as well without groups, if everybody has a "
                "place of their own on a line."
            )
        return (
            f"One group: {best.account.n_camps} groups do not predict held-out votes clearly "
            f"better than one (gain per {self.nouns.user} {gain:.2f}, with a standard error of "
            f"{error:.2f})."
        )

    def _several(self) -> str:
        sizes = [f"{len(each.users):,}" for each in self.groups]
        gain, error = self.chosen.gain_over(self.single)
        return (
            f"{NUMBERS[len(self)]} groups, of {', '.join(sizes[:-1])} and {sizes[-1]} "
            f"{self.nouns.users}. They predict held-out votes better than one group does: the "
            f"log-loss is {self.chosen.loss.sum() / self.amount:.3f} instead of "
            f"{self.single.loss.sum() / self.amount:.3f} (gain per {self.nouns.user} {gain:.2f}, "
            f"with a standard error of {error:.2f})."
        )

    def _of_group(self, group: Group, show: Callable[[Any], str]) -> str:
        best = ", ".join(show(item) for item in group.ranking.items[:MOST_NAMED])
        said = f"Group {group.number} has on top: {best}."
        clear = [each for each in group.others if each.is_clear][:MOST_NAMED]
        moved = [each for each in clear if each.place != each.place_of_rest]
        if not moved:
            return f"{said} No {self.nouns.item} stands clearly elsewhere for the rest."
        told = ", ".join(
            f"{show(each.item)} in place {each.place} (for the rest: {each.place_of_rest})"
            for each in moved
        )
        return f"{said} It differs most from the rest on {told}."

    def _of_pairs(self, show: Callable[[Any], str]) -> list[str]:
        """Say which pairs of items two groups put in opposite orders."""
        said = []
        for pair in sorted({each.groups for each in self.turned}):
            these = [each for each in self.turned if each.groups == pair]
            told = ", ".join(f"{show(each.above)} above {show(each.below)}" for each in these[:3])
            pairs = counted(len(these), "pair")
            said.append(
                f"Groups {pair[0]} and {pair[1]} clearly put {pairs} of {self.nouns.items} in "
                f"opposite orders. Group "
                f"{pair[0]}, unlike group {pair[1]}, has {told}."
            )
        return said


# --- from a model ------------------------------------------------------------------------------


def groups_of(
    model: MeasuredEstimator,
    most: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> Groups:
    """Find groups of the users of a model; see `groups`."""
    if isinstance(most, bool) or most not in range(1, MOST_GROUPS + 1):
        raise InvalidSetting(f"most is {most}; it must be a whole number from 1 to {MOST_GROUPS}.")
    votes = in_order(model.votes())
    voted = votes.votes_per_user > 0
    n_voters, nouns = int(voted.sum()), model.nouns
    if n_voters < LEAST_USERS or votes.n_items < LEAST_ITEMS or len(votes) < LEAST_VOTES:
        raise InvalidVotes(
            f"{counted(len(votes), 'vote')} of {nouns.n_users(n_voters)} on "
            f"{nouns.n_items(votes.n_items)} are too few to find groups: there must be "
            f"{LEAST_VOTES} votes, {LEAST_USERS} {nouns.users} and {LEAST_ITEMS} {nouns.items}."
        )
    if votes.n_items > MOST_ITEMS:
        raise InvalidVotes(
            f"groups are found of at most {MOST_ITEMS:,} {nouns.items}; here are "
            f"{votes.n_items:,}. Fit a model of fewer."
        )
    ballots = Ballots.of(votes, model.parameters_, model.link_)
    centre = model.parameters_.common.scores
    found = find_camps(votes, ballots, centre, int(most), seed, progress)
    weight = np.ones(len(votes)) if votes.weight is None else votes.weight
    amount = np.bincount(votes.user, weight, votes.n_users)
    return _named(model, found, voted, np.where(found.fitted, amount, 0.0))


def _named(model: MeasuredEstimator, found: Camps, voted: Mask, amount: Floats) -> Groups:
    """Bring camps in the order of their sizes, and call everything by its id."""
    n_camps = found.mixture.n_camps
    of_user = np.where(voted, found.of_users.argmax(axis=1), n_camps + 1)
    size = np.bincount(of_user, minlength=n_camps)[:n_camps]
    order = np.lexsort((np.arange(n_camps), -size))
    number = np.zeros(n_camps + 2, dtype=np.int64)
    number[order] = np.arange(1, n_camps + 1)
    scores, errors = found.mixture.scores[order], found.mixture.errors[order]
    scores = scores - scores.mean(axis=1, keepdims=True)
    weight = np.maximum(size[order].astype(np.float64), 1.0)
    groups = tuple(
        _group(model, found, each, of_user == camp, (scores, errors, weight), amount)
        for each, camp in enumerate(order.tolist())
    )
    group, sure = number[of_user][voted], found.of_users.max(axis=1)[voted]
    return Groups(
        groups, model.users_[voted], group, sure, model.summary_.votes_per_user[voted],
        float(amount.sum()),
        _turned(model.items_, scores, errors), found.trials, found.chosen, found.single,
        model.nouns,
    )  # fmt: skip


def _group(
    model: MeasuredEstimator,
    found: Camps,
    place: int,
    members: Mask,
    of_all: tuple[Floats, Floats, Floats],
    amount: Floats,
) -> Group:
    """Say what one group wants, and where it differs from the rest."""
    scores, errors, weight = of_all
    n_groups, n_items = scores.shape
    middle = np.eye(n_items) - 1.0 / n_items
    covariance = middle @ errors @ middle
    common = model.parameters_.common
    habits = common.habits if model.parameters_.terms.has_habits else None
    threshold = common.threshold if model.parameters_.terms.has_ties else None
    every = np.ones(n_items, dtype=np.bool_)
    ranking = Ranking.of(model.items_, scores[place], threshold, every, habits)
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    order = np.argsort(-scores[place], kind="stable")
    n_votes = int(model.summary_.votes_per_user[members].sum())
    held_out = members & found.fitted
    n_held_out = max(float(amount[members].sum()), 1e-12)
    rest = np.arange(n_groups) != place
    others: tuple[Other, ...] = ()
    if rest.any():
        share = weight[rest] / weight[rest].sum()
        of_rest = share @ scores[rest]
        error = np.sqrt(variance[place] + share**2 @ variance[rest])
        others = _others(model.items_, scores[place], of_rest, error)
    return Group(
        place + 1, model.users_[members].tolist(), n_votes,
        ranking, np.sqrt(variance[place])[order],
        float(found.chosen.loss[held_out].sum()) / n_held_out,
        float(found.single.loss[held_out].sum()) / n_held_out, others,
    )  # fmt: skip


def _others(items: Labels, own: Floats, of_rest: Floats, error: Floats) -> tuple[Other, ...]:
    """Return all items, those first that stand elsewhere for the rest, beyond chance."""
    difference = own - of_rest
    clear = np.abs(difference) > _quantile(0.5 * LEVEL / len(items)) * error
    place, place_of_rest = _places(own), _places(of_rest)
    moved = np.abs(place - place_of_rest)
    order = np.lexsort((np.arange(len(items)), -np.abs(difference), -moved, ~clear))
    return tuple(
        Other(
            items[at].item() if hasattr(items[at], "item") else items[at], int(place[at]),
            int(place_of_rest[at]), float(difference[at]), float(error[at]), bool(clear[at]),
        )
        for at in order
    )  # fmt: skip


def _turned(items: Labels, scores: Floats, errors: Floats) -> tuple[Turned, ...]:
    """Return pairs of items that two groups put in opposite orders, the clearest first."""
    n_groups, n_items = scores.shape
    first, second = np.triu_indices(n_items, 1)
    apart = scores[:, first] - scores[:, second]
    diagonal = np.diagonal(errors, axis1=1, axis2=2)
    variance = diagonal[:, first] + diagonal[:, second] - 2.0 * errors[:, first, second]
    ratio = apart / np.sqrt(np.maximum(variance, 1e-12))
    enough = _quantile(LEVEL / max(len(first), 1))
    ids, found = items.tolist(), []
    for one in range(n_groups):
        for other in range(one + 1, n_groups):
            least = np.minimum(np.abs(ratio[one]), np.abs(ratio[other]))
            for at in np.flatnonzero((ratio[one] * ratio[other] < 0.0) & (least > enough)):
                above, below = ids[first[at]], ids[second[at]]
                by = float(apart[one, at]), float(apart[other, at])
                if by[0] < 0.0:
                    above, below, by = below, above, (-by[0], -by[1])
                told = Turned(above, below, (one + 1, other + 1), by)
                found.append((-min(abs(by[0]), abs(by[1])), one, other, int(at), told))
    return tuple(each[-1] for each in sorted(found, key=lambda each: each[:4]))


def _quantile(tail: float) -> float:
    return NormalDist().inv_cdf(1.0 - tail)


def _places(scores: Floats) -> Places:
    """Return the place of every score, from 1 for the best."""
    places = np.empty(len(scores), dtype=np.int64)
    places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return places


def _printed(name: Any) -> str:
    """Show an id on one line."""
    return printable(str(name))
