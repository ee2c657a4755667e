"""How far people agree: on pairs that several judged, and in the scores that their votes give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.frames import Tabular
from isplitlbi.data.layout import tally
from isplitlbi.data.vocabulary import counted
from isplitlbi.diagnostics.answered import INTERVAL, NOMINAL, Answers, Sums, added, pair_numbers
from isplitlbi.diagnostics.estimates import Estimate, by_leaving_out
from isplitlbi.diagnostics.facts import runtime_for
from isplitlbi.diagnostics.findings import percent
from isplitlbi.diagnostics.pairs_of_users import (
    PairsOfUsers,
    UsersWithOthers,
    independent_share,
)
from isplitlbi.diagnostics.reliability import (
    Separation,
    SplitHalf,
    Tables,
    separation,
    split_half,
)
from isplitlbi.errors import InvalidSetting, InvalidVotes, Setting
from isplitlbi.estimators.inputs import as_votes
from isplitlbi.lazy import pl
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.runtime.base import Runtime
from isplitlbi.typing import Floats

__all__ = ["Agreement", "Common", "Splits", "agreement", "measure"]

N_SPLITS = 40
FEWEST_USERS = 3  # to be a draw from many people; of two, the pairs of items are the draw

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class Common:
    """Agreement on the pairs of items that at least two users judged.

    Attributes
    ----------
    n_pairs, n_answers : int
        Pairs of items, and answers to them: one for each user and pair.
    agreement : Estimate
        How often two users give the same answer to the same pair.
    expected : float
        How often two answers are the same, whatever pairs they are answers to: chance.
    alpha : Estimate
        Krippendorff's alpha: how much of what chance leaves open is agreement. It is nan where all
        answers are ties.
    alpha_of_distances : Estimate
        The same where a tie is half way between left and right. Without ties it is ``alpha``.
    drawn : {"users", "pairs"}
        What the intervals take for a draw: users, or pairs of items where only two users voted.
    users : UsersWithOthers
    pairs_of_users : PairsOfUsers
    """

    n_pairs: int
    n_answers: int
    agreement: Estimate
    expected: float
    alpha: Estimate
    alpha_of_distances: Estimate
    drawn: str
    users: UsersWithOthers
    pairs_of_users: PairsOfUsers


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Tabular):
    """How far people agree; as a table, one row for each number.

    Attributes
    ----------
    n_users, n_pairs : int
        Who voted, and how many pairs of items were judged at all.
    common : Common or None
        Agreement on pairs that several users judged, where there are some.
    repeats : Estimate or None
        How often a user who judges a pair again gives the same answer, where that was asked.
    split_half : SplitHalf or None
        Whether the scores of one half of the people are those of the other half.
    separation : Separation or None
        Whether the scores are further apart than their errors.
    remarks : tuple of str
        Why something is missing.
    """

    n_users: int
    n_pairs: int
    has_ties: bool
    common: Common | None
    repeats: Estimate | None
    split_half: SplitHalf | None
    separation: Separation | None
    remarks: tuple[str, ...]
    nouns: Nouns = field(default=NOUNS, kw_only=True)

    def __repr__(self) -> str:
        """Say what it means."""
        return self.sentence()

    def sentence(self) -> str:
        """Say in one sentence how far people agree."""
        if self.common is None:
            return self.remarks[0]
        asked, found = self.common, self.common.alpha
        same = percent(asked.agreement.value)
        who = f"Two {self.nouns.users} who judge the same pair"
        told = f"{who} give the same answer {same} of the time"
        if not np.isfinite(found.value):
            return f"{told}: all answers are ties, so that chance alone would give as much."
        chance = f"{told}, where chance would give {percent(asked.expected)}"
        if found.low is not None and found.low <= 0.0 <= (found.high or 0.0):
            return f"{chance}: no more than chance may bring."
        if found.value <= 0.0:
            return f"{chance}: they agree less than by chance."
        return f"{chance}: they agree on {percent(found.value)} of what chance leaves open."

    def measures(self) -> dict[str, Estimate]:
        """Return all numbers that were found, by their names."""
        found: dict[str, Estimate] = {}
        if self.common is not None:
            found["agreement"] = self.common.agreement
            found["chance"] = Estimate(self.common.expected)
            if np.isfinite(self.common.alpha.value):
                found["alpha"] = self.common.alpha
                if self.has_ties:
                    found["alpha_of_distances"] = self.common.alpha_of_distances
        if self.repeats is not None:
            found["same_again"] = self.repeats
        if self.split_half is not None:
            halves = self.split_half
            found["split_half"] = Estimate(halves.reliability, halves.low, halves.high)
        if self.separation is not None:
            found["separation"] = Estimate(self.separation.of_votes)
            if self.separation.of_people is not None:
                found["separation_of_people"] = Estimate(self.separation.of_people)
        return found

    def users_table(self) -> pl.DataFrame:
        """Return how far each user agrees with all others: who agrees least comes first.

        Columns are user, pairs (of items that somebody else judged, too), agreement, low, high and
        alpha, which has the chance of all users.
        """
        return _nobody() if self.common is None else self.common.users.table(self.common.expected)

    def pairs_table(self) -> pl.DataFrame:
        """Return how far two users agree: those with the most pairs of items in common come first.

        Columns are user, other, pairs, agreement, low, high and alpha. Two users with fewer than
        five common pairs are not there.
        """
        if self.common is None:
            return _nobody().insert_column(1, pl.Series("other", [], dtype=pl.String))
        return self.common.pairs_of_users.table(self.common.expected)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, such as for JSON."""
        common = self.common
        return {
            "sentence": self.sentence(),
            "remarks": list(self.remarks),
            "users": self.n_users,
            "pairs": self.n_pairs,
            "common_pairs": 0 if common is None else common.n_pairs,
            "answers_to_common_pairs": 0 if common is None else common.n_answers,
            "intervals_for_other": None if common is None else common.drawn,
            "measures": {name: each._asdict() for name, each in self.measures().items()},
            "by_user": self.users_table().to_dicts(),
            "by_pair_of_users": self.pairs_table().to_dicts(),
        }

    def _table(self) -> pl.DataFrame:
        """Return a row for each number: measure, value, low, high."""
        found = self.measures()
        numbers = {
            name: pl.Series([getattr(each, name) for each in found.values()], dtype=pl.Float64)
            for name in Estimate._fields
        }
        return pl.DataFrame({"measure": pl.Series(list(found), dtype=pl.String), **numbers})


def _nobody() -> pl.DataFrame:
    """Return a table of users with nobody in it."""
    numbers = dict.fromkeys(("agreement", "low", "high", "alpha"), pl.Float64)
    return pl.DataFrame(schema={"user": pl.String, "pairs": pl.Int64, **numbers})


def agreement(
    votes: Any,
    *,
    n_splits: int = N_SPLITS,
    seed: int = 0,
    call: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Agreement:
    """Find out how far people agree.

    Parameters
    ----------
    votes
        Whatever a fit takes: `Comparisons`, a frame of votes, or files.
    n_splits
        How many times people are split in halves.
    seed
        Of these splits; nothing else is random.
    call
        Other words for items or users, such as ``{"users": "annotators"}``.
    progress
        Called now and then with the share of the work done and what comes next.

    Examples
    --------
    >>> from isplitlbi import simulate
    >>> votes = simulate(n_users=12, n_items=5, votes_per_user=(40, 40), random_state=0).votes
    >>> found = agreement(votes)
    >>> sorted(found.measures())[:3]
    ['agreement', 'alpha', 'alpha_of_distances']
    >>> found.common.n_pairs
    10
    """
    asked: dict[str, tuple[Any, int]] = {"n_splits": (n_splits, 1), "seed": (seed, 0)}
    for name, (given, least) in asked.items():
        is_whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
        if not is_whole or given < least:
            raise InvalidSetting(f"{name} is {given!r}; it must be a whole number from {least} on.")
    found = as_votes(votes, None, None)
    _refuse_without_users(found)
    splits = Splits(int(n_splits), int(seed))
    return measure(found, splits, Nouns.of(call), progress or (lambda _share, _what: None))


class Splits(NamedTuple):
    """How people are split in halves."""

    number: int = N_SPLITS
    seed: int = 0


def measure(
    votes: Comparisons,
    splits: Splits,
    nouns: Nouns,
    progress: Progress,
    runtime_of: Callable[[Comparisons], Runtime] = runtime_for,
) -> Agreement:
    """Find out how far people agree, of votes by at least two users; a runtime fits halves."""
    progress(0.0, "comparing answers")
    cells = tally(votes, by_user=True)
    tables = Tables(votes, cells, pair_numbers(cells, votes.n_items), runtime_of)
    answers = Answers.of(cells, tables.pair)
    common = _common(votes, answers) if len(answers) else None
    progress(0.2, "fitting halves")
    halves = split_half(tables, *splits, lambda done: progress(0.2 + 0.7 * done, "fitting halves"))
    progress(0.9, "comparing scores with their errors")
    apart = separation(tables)
    remarks = [] if common is not None else [_NO_PAIR_TWICE]
    remarks += [each for each in (halves, apart) if isinstance(each, str)]
    n_left_out = 0 if common is None else common.pairs_of_users.n_left_out
    if n_left_out:
        remarks.append(
            "Only the users with the most answers are compared two by two: "
            f"{n_left_out:,} others are not, because that would take too long."
        )
    return Agreement(
        len(np.unique(votes.user)), len(np.unique(tables.pair)), bool((votes.outcome == 0).any()),
        common, _repeats(votes), None if isinstance(halves, str) else halves,
        None if isinstance(apart, str) else apart,
        tuple(nouns.in_text(each) for each in remarks), nouns=nouns,
    ).framed_as(votes.frame_kind)  # fmt: skip


_NO_PAIR_TWICE = (
    "No pair of items was judged by two users, so that it cannot be told how far users agree on "
    "the same pair."
)


def _refuse_without_users(votes: Comparisons) -> None:
    if votes.is_anonymous:
        raise InvalidVotes(
            "these votes have no users, so that nobody can tell who agrees with whom. Name the "
            "column of users with ", Setting("user", of="column"), ".",
        )  # fmt: skip
    n_users = len(np.unique(votes.user))
    if n_users < 2:
        raise InvalidVotes(
            f"these are the votes of {counted(n_users, 'user')}: agreement needs two at least."
        )


def _common(votes: Comparisons, answers: Answers) -> Common:
    """Measure agreement on pairs that several users judged."""
    n_users = len(np.unique(answers.user))
    drawn = "users" if n_users >= FEWEST_USERS else "pairs"

    def estimates(distance: Floats) -> tuple[Sums, Estimate, Estimate]:
        found = answers.at(distance)
        sums = found.sums()
        without = found.without_users() if drawn == "users" else found.without_units()
        agree = by_leaving_out(1.0 - float(sums.observed()), 1.0 - without.observed())
        alpha = by_leaving_out(float(sums.alpha(distance)), without.alpha(distance), -1.0)
        return sums, agree, alpha

    sums, agree, alpha = estimates(NOMINAL)
    *_, alpha_of_distances = estimates(INTERVAL)
    independent = independent_share(votes, answers)
    return Common(
        answers.n_units, len(answers), agree, 1.0 - float(sums.expected(NOMINAL)), alpha,
        alpha_of_distances, drawn,
        UsersWithOthers.of(answers, votes.users, independent),
        PairsOfUsers.of(answers, votes.users, independent),
    )  # fmt: skip


def _repeats(votes: Comparisons) -> Estimate | None:
    """Return how often two votes of one user on one pair are the same, if there are some.

    Each vote counts as one here, whatever its weight.
    """
    cells = tally(votes, by_user=True, weighted=False)
    counts = np.array(cells.counts)
    n_votes = counts.sum(axis=0)
    again = n_votes > 1.0
    if not again.any():
        return None
    counts, n_votes, user = counts[:, again], n_votes[again], cells.user[again]
    same = np.sum(counts * (counts - 1.0), axis=0) / (n_votes - 1.0)
    n_users = votes.n_users
    by_user, amount = (added(user, each, n_users) for each in (same, n_votes))
    there = amount > 0.0
    left, rest = by_user.sum() - by_user[there], amount.sum() - amount[there]
    without = left / np.maximum(rest, 1e-300) if there.sum() > 1 else np.array([])
    return by_leaving_out(float(by_user.sum() / amount.sum()), without)
