"""Which votes to ask for next: what a model knows of its items and users, as planning needs it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from isplitlbi.data.frames import Tabular
from isplitlbi.data.vocabulary import counted
from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators.certainty import Certainty, Seen
from isplitlbi.estimators.people import People
from isplitlbi.lazy import pl
from isplitlbi.markup import printable
from isplitlbi.nouns import NOUNS, Nouns, capitalized
from isplitlbi.planning.asking import Asked, Candidate, Parts, choose
from isplitlbi.planning.open_questions import OpenQuestions, chances_to_be_among, ranks_of_draws
from isplitlbi.planning.people import Person
from isplitlbi.planning.sides import Sides
from isplitlbi.planning.thinning import MOST_ITEMS, MOST_PAIRS, least_certain, pairs_to_ask
from isplitlbi.typing import Floats, Labels, Places

if TYPE_CHECKING:
    from isplitlbi.estimators.measured import MeasuredEstimator

__all__ = ["Aim", "Given", "NextPairs", "Wish", "covariance_of", "next_pairs", "variances_of"]

log = logging.getLogger("isplitlbi")

# Votes are spread over people: the consensus is that of all, and not of those whose votes happen to
# tell most. So that somebody whose votes tell little can be passed over, people have room for so
# many times as many votes as are asked for. Settled on seeds 0 to 7 of three studies like those of
# benchmarks/planning.py, which reports on other seeds.
ROOM = 1.25
LITTLE = 1.0 / 3.0  # of what a vote of the user in the middle tells: this is said of a user


class Aim(NamedTuple):
    """What votes are asked for: the order of all items, its first places, or a person's own."""

    name: str
    n_places: int = 0

    @classmethod
    def of(cls, text: str, n_items: int | None = None) -> Aim:
        """Read an aim: ``ranking``, ``person``, or ``top 3`` for the first three places.

        >>> Aim.of("top 3")
        Aim(name='top', n_places=3)
        """
        if text in ("ranking", "person"):
            return cls(text)
        found = re.fullmatch(r"top[ :=-]?([0-9]{1,9})", str(text).strip())
        if found is None:
            raise InvalidSetting(
                f"aim {text!r} is not one of ranking, person, and top with a number: 'top 3'."
            )
        aim = cls("top", int(found.group(1)))
        if aim.n_places < 1 or (n_items is not None and aim.n_places >= n_items):
            raise InvalidSetting(
                f"aim {text!r}: of {n_items} items, there is something to find out about the first "
                f"1 to {max((n_items or 2) - 1, 1)}."
            )
        return aim

    def __str__(self) -> str:
        """Show it as it is asked for."""
        return self.name if self.name != "top" else f"top {self.n_places}"


@dataclass(frozen=True, eq=False, repr=False)
class NextPairs(Tabular):
    """Votes to ask for, those first that tell most.

    Attributes
    ----------
    users : list
        Whom to ask; None everywhere where the votes have no users.
    left, right : (n,) ids
        Every item stands on the left about as often as on the right, for every user.
    gain : (n,)
        What each vote is expected to tell beside those before it, in bits.
    row : (n,)
        Which row of the candidates it is, where these were given.
    worth : mapping
        What a vote of each user may tell, beside one of the user in the middle.
    aim : Aim
    nouns : Nouns
    """

    users: list[Any]
    left: Labels
    right: Labels
    gain: Floats
    row: Places
    worth: dict[Any, float]
    aim: Aim
    nouns: Nouns = NOUNS

    def __len__(self) -> int:
        return len(self.gain)

    def __repr__(self) -> str:
        """Say how many there are, and what they tell."""
        return (
            f"NextPairs: {counted(len(self), 'vote')} to ask for, {self.gain.sum():.2f} bits "
            f"(aim: {self.aim})"
        )

    def _table(self) -> pl.DataFrame:
        """Return whom to ask about which two items, and what that is expected to tell."""
        columns = {"user": self.users, "left": self.left, "right": self.right, "gain": self.gain}
        kinds = {"user": pl.String} if not any(each is not None for each in self.users) else None
        return pl.DataFrame(columns, schema_overrides=kinds)

    @property
    def worth_little(self) -> dict[Any, float]:
        """The users whose votes tell little beside those of the user in the middle."""
        found = {user: worth for user, worth in self.worth.items() if worth < LITTLE}
        return dict(sorted(found.items(), key=lambda each: each[1]))


# --- what to ask next -------------------------------------------------------------------------


class Given(NamedTuple):
    """Votes that may be asked for, where somebody else has chosen them: by index."""

    user: Places
    left: Places
    right: Places


class Wish(NamedTuple):
    """What is asked for; see `PlannedEstimator.next_pairs`."""

    n: int
    aim: Aim
    users: Sequence[Any] | None = None
    per_user: int | None = None
    new_only: bool = False
    among: Given | None = None
    most_pairs: int = MOST_PAIRS  # that are looked at
    most_items: int = MOST_ITEMS


def next_pairs(
    model: MeasuredEstimator, wish: Wish, progress: Callable[[float], None] | None = None
) -> NextPairs:
    """Choose the votes to ask for next; see `PlannedEstimator.next_pairs`."""
    _check_number("n", wish.n)
    if wish.per_user is not None:
        _check_number("per_user", wish.per_user)
    # Threads would wait for each other longer than these small matrices take.
    with threadpool_limits(1, user_api="blas"):
        search = _Search(model, wish)
        people = list(search.candidates(progress))
        if wish.per_user is None and sum(each.n_may_be_asked for each in people) < wish.n:
            for each in people:  # some have too few pairs left: others may be asked for more
                each.room = wish.n
        n_left = sum(each.n_may_be_asked for each in people)
        if n_left < wish.n:
            raise InvalidSetting(_too_few(wish, n_left, model.nouns))
        worth = search.worth(people)
        found: list[Asked] = []
        for vote in choose(people, wish.n, search.parts):
            found.append(vote)
            if progress is not None:
                progress(0.5 + 0.5 * len(found) / wish.n)
    return search.result(found, worth)


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise InvalidSetting(f"{name} is {value!r}; it must be a whole number from 1 on.")


def _too_few(wish: Wish, n_left: int, nouns: Nouns) -> str:
    """Say that so many votes cannot be asked for, and what helps."""
    if n_left:
        said = f"n is {wish.n:,}, but there {'is' if n_left == 1 else 'are'} only "
        said += f"{counted(n_left, 'vote')} to ask for"
        said += "." if wish.among is not None else f": every pair is asked once of a {nouns.user}."
    elif wish.among is not None:
        said = f"there is nothing to ask: none of the candidates is of one of these {nouns.users}."
    else:
        said = f"there is nothing left to ask: the {nouns.users} have voted on every pair already."
    if wish.among is not None:
        return said
    helps = [f"ask more {nouns.users}"]
    if wish.new_only:
        helps.append("allow pairs that they have voted on before")
    if wish.per_user is not None:
        helps.append(f"allow more votes of a {nouns.user}")
    return f"{said} {capitalized(', or '.join(helps))}."


class _Search:
    """Whom and what might be asked, and what is open."""

    def __init__(self, model: MeasuredEstimator, wish: Wish) -> None:
        self.model, self.wish, self.votes = model, wish, model.votes()
        estimate, certainty = model.parameters_.common.scores, model.certainty()
        variance, is_top = variances_of(certainty), wish.aim.name == "top"
        if is_top:  # who may be among the first, and not only who is unsure
            likely = np.argsort(-(estimate + 3.0 * np.sqrt(variance)), kind="stable")
            self.items = np.sort(likely[: wish.most_items])
        else:
            self.items = least_certain(estimate, variance, wish.most_items)
        if wish.among is not None:
            self.items = np.union1d(self.items, np.append(wish.among.left, wish.among.right))
        self.people = People(Seen.of(self.votes, model.fitted_), model.link_, self.items)
        self.parts = Parts(self.votes.n_items, self.votes.left, self.votes.right).at(self.items)
        covariance, importance = covariance_of(certainty, variance, self.items), None
        if is_top:
            ranks = ranks_of_draws(estimate[self.items], covariance)
            importance = chances_to_be_among(wish.aim.n_places, ranks)
        self.questions = OpenQuestions(estimate[self.items], covariance, importance)
        self.users = self._whom()

    # --- whom -------------------------------------------------------------------------------

    def _whom(self) -> list[int]:
        """Return whom to ask: those who are named, or all but the unreliable; -1 for anybody."""
        model, asked = self.model, self.wish.users
        if not model.has_users:
            if asked is not None:
                model.refuse_without_users("nobody to name")
            if self.wish.aim.name == "person":
                model.refuse_without_users("nobody whose own ranking could be asked for")
            return [-1]
        if asked is not None:
            asked = [asked] if isinstance(asked, str | int | np.integer) else list(asked)
            if not asked:
                raise InvalidSetting("users is empty: name at least one, or leave it out.")
            return list(dict.fromkeys(model.user_index(user) for user in asked))
        if self.wish.among is not None:
            return [int(user) for user in np.unique(self.wish.among.user)]
        return self._reliable()

    def _reliable(self) -> list[int]:
        """Return all who have voted but the unreliable, and say who is not asked."""
        model = self.model
        unreliable = getattr(model, "unreliable_users_", [])
        everybody = np.flatnonzero(model.summary_.votes_per_user > 0)
        kept = everybody[~np.isin(model.users_[everybody], unreliable)]
        if not len(kept):
            raise InvalidSetting(
                f"all {model.nouns.users} of this model are unreliable, so there is nobody to ask. "
                "Name those who are to be asked all the same."
            )
        if len(unreliable):
            names = ", ".join(printable(str(user)) for user in unreliable[:5])
            more = ", ..." if len(unreliable) > 5 else ""
            log.warning(
                "%s not asked, because their votes tell little: %s%s. Name them to ask them.",
                model.nouns.n_users(len(unreliable)) + (" is" if len(unreliable) == 1 else " are"),
                names, more,
            )  # fmt: skip
        return [int(user) for user in kept]

    def candidates(self, progress: Callable[[float], None] | None) -> Iterator[Candidate]:
        """Look at everybody, with the pairs that they may be asked about."""
        rooms, most = self._rooms(), max(self.wish.most_pairs, 4 * self.wish.n)
        pairs = pairs_to_ask(self.questions, self.people.ordinary(), most)
        for number, user in enumerate(self.users):
            person, questions = self._person(user)
            yield Candidate(person, questions, *self._pairs_for(user, *pairs), int(rooms[number]))
            if progress is not None:
                progress(0.5 * (number + 1) / len(self.users))

    def _pairs_for(self, user: int, first: Places, second: Places) -> tuple[Places, Places]:
        """Return the pairs that somebody may be asked about."""
        among, index = self.wish.among, self.people.index
        if among is not None:
            rows = self._given_to(user)
            return np.asarray(index[among.left[rows]]), np.asarray(index[among.right[rows]])
        if user < 0:  # anybody: the next vote on a pair is somebody else's
            times = -(-self.wish.n // len(first))
            return np.tile(first, times), np.tile(second, times)
        if not self.wish.new_only:
            return first, second
        known = self._compared_by(user)
        is_new = ~np.isin(first * len(self.items) + second, known)
        if not is_new.any():  # those that tell most are known: any other
            first, second = np.triu_indices(len(self.items), 1)
            is_new = ~np.isin(first * len(self.items) + second, known)
        return first[is_new], second[is_new]

    def _given_to(self, user: int) -> Places:
        """Return which of the given candidates are a user's; of a crowd, all."""
        among = self.wish.among
        assert among is not None
        return np.arange(len(among.user)) if user < 0 else np.flatnonzero(among.user == user)

    def _person(self, user: int) -> tuple[Person, OpenQuestions]:
        if user < 0:
            return Person.without_own(self.people.ordinary().answers), self.questions
        person = self.people.person(user)
        if self.wish.aim.name != "person":
            return person, self.questions
        own = self.people.own_questions(person, self.questions.covariance)
        return Person.without_own(person.answers, person.side_variance), own

    def _rooms(self) -> Places:
        """Return how many votes everybody may be asked for: who has given few comes first."""
        wish, n_users = self.wish, len(self.users)
        if wish.per_user is not None:
            return np.full(n_users, wish.per_user)
        if n_users == 1 or wish.aim.name == "person" or wish.among is not None:
            return np.full(n_users, wish.n)
        given = self.model.summary_.votes_per_user[self.users]
        # Up to which number of votes everybody may go, so that there is room enough for all.
        order = np.sort(given)
        room = np.arange(1, n_users + 1) * np.append(order[1:], np.inf) - np.cumsum(order)
        enough = int(np.argmax(room >= ROOM * wish.n))
        level = -(-(ROOM * wish.n + order[: enough + 1].sum()) // (enough + 1))
        return np.asarray(np.maximum(level - given, 0), dtype=np.int64)

    def _compared_by(self, user: int) -> Places:
        """Return the pairs that a user has voted on, as one number each."""
        rows = np.flatnonzero(self.votes.user == user)
        one, other = (self.people.index[side[rows]] for side in (self.votes.left, self.votes.right))
        return np.asarray(np.minimum(one, other) * len(self.items) + np.maximum(one, other))

    # --- results ----------------------------------------------------------------------------

    def worth(self, people: list[Candidate]) -> dict[Any, float]:
        """Return what the best vote of everybody tells, beside that of the user in the middle."""
        best = np.array([each.most for each in people])
        middle = float(np.median(best)) if len(best) else 0.0
        if middle <= 0.0 or self.users == [-1]:
            return {}
        names = self.model.users_[self.users].tolist()
        return dict(zip(names, (best / middle).tolist(), strict=True))

    def result(self, found: list[Asked], worth: dict[Any, float]) -> NextPairs:
        """Put items on sides, and name everything."""
        model, votes, among = self.model, self.votes, self.wish.among
        whom = np.array([self.users[each.person] for each in found], dtype=np.int64)
        row = np.array([each.row for each in found], dtype=np.int64)
        if among is not None:
            rows = [self._given_to(user)[at] for user, at in zip(whom, row, strict=True)]
            row = np.array(rows, dtype=np.int64)
            left, right = among.left[row], among.right[row]
        else:
            sides = Sides.of(votes.user, votes.left, votes.right)
            shown = [
                sides.put(user, int(self.items[each.first]), int(self.items[each.second]))
                for user, each in zip(whom.tolist(), found, strict=True)
            ]
            left, right = np.array(shown, dtype=np.int64).T
        return NextPairs(
            model.users_[whom].tolist() if model.has_users else [None] * len(found),
            model.items_[left], model.items_[right], np.array([each.gain for each in found]), row,
            worth, self.wish.aim, model.nouns,
        )  # fmt: skip


def variances_of(certainty: Certainty) -> Floats:
    """Return how surely every score is known by itself, as the model expects it."""
    where = certainty.seen.parameters.vector.scores
    row = certainty.row[where]
    if len(row) and row[0] < 0:  # of very many items
        return certainty.scores().covariance.copy()
    return np.diag(certainty.evidence.expected)[row].copy()


def covariance_of(certainty: Certainty, variance: Floats, items: Places) -> Floats:
    """Return the covariance of the scores of some items, as the model expects it."""
    row = certainty.row[items]
    if len(row) and row[0] < 0:
        return np.diag(variance[items])
    found = certainty.evidence.expected[np.ix_(row, row)]
    # Only differences of scores count: what all have in common may be anything, and is left out.
    found = found - found.mean(axis=0)
    return np.asarray(found - found.mean(axis=1, keepdims=True))
