"""What is in these votes, and what stands in the way of using them: the diagnosis before a fit.

Conventions
-----------
amount     a number of votes as the fit counts them: a sum of weights, the number of rows where
           there are no weights
sentence   what was found, what it means, and what to do, for a person who runs a study
serious    a fit would go through and mislead; everything else leaves the fit usable

Every check is a function from `_Facts` to findings; `CHECKS` lists them, the more important first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import betainc, expit

from isplitlbi.data.comparisons import Comparisons, tally
from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidVotes
from isplitlbi.model.links import Link, Logistic
from isplitlbi.solvers import Dynamics, fit_before_entries, fit_consensus
from isplitlbi.typing import Floats, Mask

__all__ = ["Finding", "Report", "Severity", "check"]


FEW_VOTES_OF_USER = 7  # fewer say nothing of their own; the paper leaves such users out
FEW_VOTES_OF_ITEM = 10  # fewer leave a score uncertain by about 0.7 or more
NAMED = 3  # ids in a sentence; all of them are in the details

# How improbable a habit must be by chance, over all users together, before they are named.
CHANCE = 0.01
# A preference for one side is told when it is this many standard errors from none, and this large.
SURE_BIAS = 3.3
SMALL_BIAS, LARGE_BIAS = 0.02, 0.05
FEWEST_DECIDED = 10  # votes before anything is said about sides

# Two votes on one pair show it the same way round (1), or as often one way as the other (0). From
# these values on, over pairs and over items, sides are taken as fixed.
FIXED_PAIRS, FIXED_ITEMS = 0.25, 0.1
SURE_FIXED = 4.0

COPIED = 0.95  # of the repeats are copies: an export that wrote votes twice, not people

# Individual rankings are judged on at most so many votes: more would only sharpen the last digit.
MOST_MEASURED = 200_000
FEWEST_HELD_OUT = 100
N_FOLDS = 5
NUS = (0.1, 1.0)  # users held close to the consensus, and less so
HIGHEST_THRESHOLD = 20.0  # above the consensus: one at which all votes are ties
HALVINGS = 12  # of the logarithms between, which leaves less than a per cent
USEFUL_GAIN = 0.01  # of log-loss per vote
MOSTLY = 0.75  # of the gain is due to thresholds: rankings are not worth the word
STANDARD_ERRORS = 2.0


class Severity(IntEnum):
    """How much a finding matters to who uses the fit."""

    NOTE = 1
    WARNING = 2
    SERIOUS = 3


@dataclass(frozen=True)
class Finding:
    """One thing found in the votes: a sentence for people; a code and details for programs."""

    severity: Severity
    code: str
    sentence: str
    details: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return {
            "severity": self.severity.name.lower(),
            "code": self.code,
            "sentence": self.sentence,
            "details": self.details,
        }


@dataclass(frozen=True)
class Report:
    """What is in the votes, and the findings, the most serious first."""

    summary: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def is_serious(self) -> bool:
        """Whether a fit of these votes would mislead."""
        return any(finding.severity == Severity.SERIOUS for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return {
            "summary": self.summary,
            "serious": self.is_serious,
            "findings": [finding.as_dict() for finding in self.findings],
        }


def check(votes: Comparisons) -> Report:
    """Look through votes for what a person should know before trusting a fit of them.

    The answer does not depend on the order of the votes, and is the same every time.

    Examples
    --------
    >>> votes = Comparisons.from_arrays(
    ...     user=["ann", "ann", "bob"],
    ...     left=["tea", "tea", "rum"],
    ...     right=["milk", "milk", "gin"],
    ...     outcome=[1, 0, -1],
    ... )
    >>> report = check(votes)
    >>> report.is_serious, report.findings[0].code
    (True, 'disconnected')
    """
    if not len(votes):
        raise InvalidVotes("there are no votes to check. Give at least one.")
    keys: list[NDArray[Any]] = [votes.outcome, votes.right, votes.left, votes.user]
    keys[:0] = [column for column in (votes.group, votes.weight) if column is not None]
    # In one order, so that sums over votes round alike.
    facts = _Facts(votes.subset(np.lexsort(keys)))
    findings = [finding for look in CHECKS for finding in look(facts)]
    findings.sort(key=lambda finding: -finding.severity)  # stable: the order of CHECKS within
    return Report(_summary(facts), tuple(findings))


class _Pairs(NamedTuple):
    """Distinct pairs of items and the amounts of their outcomes."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    first_wins: Floats
    ties: Floats
    second_wins: Floats


@dataclass(frozen=True, eq=False)
class _Facts:
    """What several checks ask of the votes, counted once. Ids that occur in no vote stay out."""

    votes: Comparisons

    @cached_property
    def weight(self) -> Floats:
        weight = self.votes.weight
        return np.ones(len(self.votes)) if weight is None else weight

    @cached_property
    def answers(self) -> Floats:
        """Amounts of left, tie and right per user, shape (n_users, 3)."""
        votes = self.votes
        cell = votes.user.astype(np.int64) * 3 + (1 - votes.outcome)
        return _sums(cell, votes.weight, 3 * votes.n_users).reshape(-1, 3)

    @cached_property
    def per_user(self) -> Floats:
        return np.asarray(self.answers.sum(axis=1))

    @cached_property
    def active_users(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.per_user)

    @cached_property
    def per_item(self) -> Floats:
        votes = self.votes
        as_left = _sums(votes.left, votes.weight, votes.n_items)
        return as_left + _sums(votes.right, votes.weight, votes.n_items)

    @cached_property
    def active_items(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.per_item)

    @cached_property
    def pairs(self) -> _Pairs:
        votes = self.votes
        keys, counts = tally(votes.left, votes.right, votes.outcome, votes.weight, votes.n_items)
        first, second = np.divmod(keys, votes.n_items)
        return _Pairs(first, second, *counts)

    @cached_property
    def decided(self) -> float:
        """Amount of votes that are no ties."""
        return float(self.answers[:, [0, 2]].sum())

    @cached_property
    def is_winner_first(self) -> bool:
        """Whether all decided votes are for the same side."""
        left, _, right = self.answers.sum(axis=0)
        return self.decided >= FEWEST_DECIDED and min(left, right) == 0

    @cached_property
    def sides_are_fixed(self) -> bool:
        """Whether items keep their side: then a habit looks like a preference."""
        votes = self.votes
        as_left, as_right = (_sums(side, None, votes.n_items) for side in (votes.left, votes.right))
        # The same for pairs: if the left item always won, their counts would be those of sides.
        left_wins = np.ones(len(votes), dtype=np.int8)
        _, (forth, _, back) = tally(votes.left, votes.right, left_wins, None, votes.n_items)
        return _keep_side(forth, back, FIXED_PAIRS) or _keep_side(as_left, as_right, FIXED_ITEMS)

    @cached_property
    def expected_left(self) -> Floats:
        """Amount of decided votes per user that would go left if only the items mattered."""
        votes, link = self.votes, Logistic()
        consensus = fit_consensus(votes, link)
        margin = consensus[votes.left] - consensus[votes.right]
        left, _, right = link.outcomes(margin, consensus[-1])
        share = np.where(votes.outcome == 0, 0.0, expit(left - right))
        return _sums(votes.user, share * self.weight, votes.n_users)

    @cached_property
    def votes_per_unit(self) -> float:
        """Votes per group: those of one group are no more independent than one vote."""
        return len(self.votes) / (int(_units(self.votes).max()) + 1)

    @cached_property
    def improbability(self) -> Floats:
        """Chance of as one-sided votes, per user, from somebody with any taste but no habit.

        Binomial tails on both sides; real numbers of votes come from weights and groups.
        """
        left, right = self.answers[:, 0], self.answers[:, 2]
        decided = left + right
        by_items = self.expected_left / np.maximum(decided, 1e-300)
        # What the items alone would bring to one side, for who agrees with the consensus and for
        # who turns it upside down; with random sides, half.
        share = np.clip(0.5 + np.abs(by_items - 0.5), 0.5, 1.0)
        more, less = np.maximum(left, right), np.minimum(left, right)
        unit = self.votes_per_unit
        tail = betainc(np.maximum(more / unit, 1e-9), less / unit + 1.0, share)
        return np.where(decided > 0, np.minimum(2.0 * tail, 1.0), 1.0)


# --- the items ----------------------------------------------------------------------------------


def _connections(facts: _Facts) -> Iterator[Finding]:
    """Whether votes connect all items, and in both directions."""
    items = facts.votes.items
    pairs = facts.pairs
    n_items = len(items)
    n_apart = n_items - len(facts.active_items)  # no votes, so each would be a group of its own
    forward, tied, backward = pairs.first_wins > 0, pairs.ties > 0, pairs.second_wins > 0

    def groups(one_way: Mask, other_way: Mask, connection: str) -> tuple[int, NDArray[np.int32]]:
        winner = np.concatenate([pairs.first[one_way], pairs.second[other_way]])
        loser = np.concatenate([pairs.second[one_way], pairs.first[other_way]])
        ones = np.ones(len(winner), dtype=np.int8)
        graph = coo_array((ones, (winner, loser)), shape=(n_items, n_items)).tocsr()
        number, labels = connected_components(graph, directed=True, connection=connection)
        return number - n_apart, labels

    n_groups, label = groups(forward | tied | backward, np.zeros_like(tied), "weak")
    if n_groups > 1:
        members = _members(label, facts.active_items)
        outside = np.concatenate(members[1:])
        largest = f"The largest has {len(members[0]):,} items"
        others = f"{largest}; outside it {_are(len(outside))} {_ids(items[outside])}."
        yield Finding(
            Severity.SERIOUS,
            "disconnected",
            f"The items fall into {n_groups:,} groups that no vote connects, so that scores and "
            f"ranks cannot be compared across groups. {others} "
            "Rank every group by itself, or collect votes on pairs across them.",
            {"groups": n_groups, "items": [items[group].tolist() for group in members]},
        )
    if facts.decided == 0:
        return

    _, strong = groups(forward | tied, backward | tied, "strong")
    n_circles, _ = groups(forward, backward, "strong")
    n_active = len(facts.active_items)
    if n_circles == n_active and facts.decided >= 2 * n_active:
        yield Finding(
            Severity.WARNING,
            "no-contradictions",
            "No decided vote contradicts another: all fit one order of the items. Trust that "
            "order, but not the distances between scores, which such votes leave open. Votes as "
            "clean as this are rare: check that people gave them, one by one.",
            {"votes": _plain(facts.decided)},
        )
        return
    losses = np.bincount(pairs.first, pairs.second_wins + pairs.ties, n_items)
    losses += np.bincount(pairs.second, pairs.first_wins + pairs.ties, n_items)
    wins = np.bincount(pairs.first, pairs.first_wins + pairs.ties, n_items)
    wins += np.bincount(pairs.second, pairs.second_wins + pairs.ties, n_items)
    extreme = np.zeros(n_items, dtype=np.bool_)
    for code, never, verb, end in (
        ("always-wins", losses, "won", "top"),
        ("always-loses", wins, "lost", "bottom"),
    ):
        found = facts.active_items[never[facts.active_items] == 0]
        extreme[found] = True
        if not len(found):
            continue
        found = _fewest_first(found, facts.per_item)
        few = _number(facts.per_item[found[0]], "vote")
        yield Finding(
            Severity.WARNING,
            code,
            f"{_number(len(found), 'item')} {verb} every vote: {_ids(items[found])}"
            f"{', with as few as ' if len(found) > 1 else ', with '}{few}. "
            f"{'Its' if len(found) == 1 else 'Their'} place at the {end} is all that follows: the "
            "distance to the others is open, until votes against near rivals show it.",
            {"items": items[found].tolist(), "votes": _plain(facts.per_item[found])},
        )
    # In what votes connect, every item should be reached from every other along wins and ties.
    members = _members(strong, facts.active_items)
    members.sort(key=lambda group: bool(extreme[group[0]]))  # stable: the largest first, still
    heads = np.array([group[0] for group in members])
    cores = set(np.unique(label[heads], return_index=True)[1].tolist())
    apart = [
        group for place, group in enumerate(members) if place not in cores and not extreme[group[0]]
    ]
    if apart:
        shown = "; ".join(_ids(items[group]) for group in apart[:NAMED])
        more = f"; and {len(apart) - NAMED:,} more" if len(apart) > NAMED else ""
        yield Finding(
            Severity.WARNING,
            "one-way-groups",
            f"Between {_number(len(apart), 'group')} of items ({shown}{more}) and the rest all "
            "votes go one way, so that the distance to the rest is open. Collect more votes on "
            "pairs across.",
            {"groups": len(apart), "items": [items[group].tolist() for group in apart]},
        )


def _items_with_few_votes(facts: _Facts) -> Iterator[Finding]:
    items, amount = facts.votes.items, facts.per_item
    few = facts.active_items[amount[facts.active_items] < FEW_VOTES_OF_ITEM]
    if len(few):
        few = _fewest_first(few, amount)
        yield Finding(
            Severity.WARNING,
            "few-votes-items",
            f"{len(few):,} of {_number(len(facts.active_items), 'item')} "
            f"{'has' if len(few) == 1 else 'have'} fewer than {FEW_VOTES_OF_ITEM} votes: "
            f"{_ids(items[few])}. Such ranks are little more than guesses: collect more votes on "
            "these items, or leave them out.",
            {"items": items[few].tolist(), "votes": _plain(amount[few])},
        )


def _two_items(facts: _Facts) -> Iterator[Finding]:
    if len(facts.active_items) == 2:
        yield Finding(
            Severity.NOTE,
            "two-items",
            "There are only two items, so that a ranking is one answer: which of them is better, "
            "or a tie.",
            {"items": facts.votes.items[facts.active_items].tolist()},
        )


# --- the answers --------------------------------------------------------------------------------


def _ties(facts: _Facts) -> Iterator[Finding]:
    ties = float(facts.answers[:, 1].sum())
    if facts.decided == 0:
        yield Finding(
            Severity.SERIOUS,
            "only-ties",
            "Every vote is a tie: nothing tells one item from another, and the tie threshold grows "
            "without bound. Check the column of the winner and its labels.",
            {"ties": _plain(ties)},
        )
    elif ties == 0:
        yield Finding(
            Severity.WARNING,
            "no-ties",
            "No vote is a tie, so that the tie threshold falls to its lower bound: ties are never "
            "predicted, and items count as different however close they are. If people could "
            "answer with a tie, check that ties were not dropped.",
            {"votes": _plain(facts.decided)},
        )


def _sides(facts: _Facts) -> Iterator[Finding]:
    """Whether the study as a whole, or some of its users, prefer a side."""
    left = float(facts.answers[:, 0].sum())
    decided = facts.decided
    if decided < FEWEST_DECIDED:
        return
    if facts.is_winner_first:
        side = "left" if left else "right"
        yield Finding(
            Severity.NOTE,
            "winner-first",
            f"Every decided vote is for the {side} item. If the file simply lists the winner "
            f"on the {side}, that is harmless, but then nobody's habits can be checked; if it "
            "kept the sides as people saw them, check the column of the winner.",
            {"side": side, "votes": _plain(decided)},
        )
        return
    share, expected = left / decided, float(facts.expected_left.sum()) / decided
    bias = share - expected
    sure = abs(bias) > SURE_BIAS * np.sqrt(0.25 * facts.votes_per_unit / decided)
    if sure and abs(bias) >= SMALL_BIAS:
        side = "left" if bias > 0 else "right"
        more, fair = (share, expected) if bias > 0 else (1.0 - share, 1.0 - expected)
        yield Finding(
            Severity.WARNING if abs(bias) >= LARGE_BIAS else Severity.NOTE,
            "position-bias",
            f"The {side} item wins {_percent(more, 1)} of the decided votes, where "
            f"{_percent(fair, 1)} would be expected from the items alone: people lean to that "
            "side. The model does not correct for this; with sides drawn at random it only adds "
            "noise.",
            {"left_share": round(share, 6), "expected_left_share": round(expected, 6)},
        )
    if facts.sides_are_fixed:
        yield Finding(
            Severity.NOTE,
            "fixed-sides",
            "Items do not change sides at random, so that a user's habit of answering left cannot "
            "be told from a preference and was not checked. If people saw the items so, draw the "
            "sides at random next time.",
            {},
        )


def _habits(facts: _Facts) -> Iterator[Finding]:
    """Users who always give the same answer, or one side too often to be chance."""
    users, answers, amount = facts.votes.users, facts.answers, facts.per_user
    enough = amount >= FEW_VOTES_OF_USER
    if facts.decided == 0 or len(facts.active_users) < 2:
        return
    level = CHANCE / max(int(enough.sum()), 1)
    tie_share = float(answers[:, 1].sum() / amount.sum())
    by_chance = max(tie_share, 0.5) ** (amount / facts.votes_per_unit)
    always = {"tie": enough & (answers[:, 1] == amount) & (by_chance < level)}
    one_sided = np.zeros(len(users), dtype=np.bool_)
    if not (facts.is_winner_first or facts.sides_are_fixed):
        one_sided = enough & (facts.improbability < level)
        always |= {
            "left": one_sided & (answers[:, 0] == amount),
            "right": one_sided & (answers[:, 2] == amount),
        }
    same = {
        answer: _most_first(np.flatnonzero(always[answer]), amount)
        for answer in ("left", "right", "tie")
        if answer in always and always[answer].any()
    }
    if same:
        listed = "; ".join(f"{answer}: {_ids(users[who])}" for answer, who in same.items())
        everyone = np.concatenate(list(same.values()))
        yield Finding(
            Severity.WARNING,
            "one-answer-users",
            f"{_number(len(everyone), 'user')} always gave the same answer, too often for chance "
            f"({listed}). Such votes say nothing about the items: consider a fit without them.",
            {
                "users": {answer: users[who].tolist() for answer, who in same.items()},
                "votes": _plain(float(amount[everyone].sum())),
            },
        )
    for who in same.values():
        one_sided[who] = False
    found = np.flatnonzero(one_sided)
    if len(found):
        found = found[np.argsort(facts.improbability[found], kind="stable")]
        decided = answers[found, 0] + answers[found, 2]
        share = answers[found, 0] / decided
        first = f"{_percent(max(share[0], 1 - share[0]))} {'left' if share[0] > 0.5 else 'right'}"
        yield Finding(
            Severity.WARNING,
            "one-sided-users",
            f"{_number(len(found), 'user')} chose one side more often than chance allows: "
            f"{_ids(users[found])} ({show(users[found[0]])}: {first}). Look at their votes before "
            "you trust them.",
            {"users": users[found].tolist(), "left_shares": np.round(share, 6).tolist()},
        )


def _repeats(facts: _Facts) -> Iterator[Finding]:
    """Rows that are there twice, and pairs that a user judged more than once."""
    votes = facts.votes
    n_slots = len(votes.slots.coordinate)
    # Whole weights are counts of votes; others only say how much a row matters.
    counted = votes.weight is not None and bool(np.all(votes.weight % 1.0 == 0.0))
    weight = votes.weight if counted else None
    _, counts = tally(votes.left_slot, votes.right_slot, votes.outcome, weight, n_slots)
    total = np.sum(counts, axis=0)
    repeats = int(np.sum(total - 1))
    if not repeats:
        return
    differing = int(np.sum(total - np.max(counts, axis=0)))
    row = votes.left_slot.astype(np.int64) * n_slots + votes.right_slot
    row = row * 3 + (1 - votes.outcome)
    for column in (votes.group, votes.weight):
        if column is not None:
            values, place = np.unique(column, return_inverse=True)
            row = np.unique(row, return_inverse=True)[1] * len(values) + place
    copies = int(np.count_nonzero(np.diff(np.sort(row)) == 0))
    details = {"repeats": repeats, "copies": copies, "differing": differing}
    if copies >= FEWEST_DECIDED and copies >= COPIED * repeats:
        yield Finding(
            Severity.WARNING,
            "duplicate-rows",
            f"{copies:,} of {len(votes):,} rows are exact copies of another, and hardly any user "
            "judged a pair again with the sides exchanged or another answer: the export may have "
            "written votes twice. Every copy counts as a vote; remove them unless they are real.",
            details,
        )
        return
    yield Finding(
        Severity.NOTE,
        "repeats",
        f"{_number(repeats, 'vote')} {_are(repeats)} on a pair that the same user had judged "
        f"already: {_percent(differing / repeats)} of them differ from that user's usual answer, "
        f"and {copies:,} {_are(copies)} exact copies of another row. That is natural where pairs "
        "are shown again, or items come in several forms, such as one system on many texts.",
        details,
    )


# --- the users ----------------------------------------------------------------------------------


def _balance_of_users(facts: _Facts) -> Iterator[Finding]:
    users, amount = facts.votes.users, facts.per_user
    if len(facts.active_users) == 1:
        yield Finding(
            Severity.SERIOUS,
            "one-user",
            f"All votes are by one user, {show(users[facts.active_users[0]])}: the consensus is "
            "that user's ranking, and individual rankings and abnormal users mean nothing. If "
            "there were more people, name the column that tells them apart.",
            {"user": users[facts.active_users].tolist()[0]},
        )
    top = int(np.argmax(amount))
    share = float(amount[top] / amount.sum())
    if len(facts.active_users) > 2 and share > 0.5:
        yield Finding(
            Severity.WARNING,
            "dominant-user",
            f"User {show(users[top])} gave {_percent(share)} of all votes, so that the consensus "
            "is mostly that one person's. Compare it with a fit without these votes.",
            {"user": users[[top]].tolist()[0], "share": round(share, 6)},
        )


def _users_with_few_votes(facts: _Facts) -> Iterator[Finding]:
    active, amount = facts.active_users, facts.per_user
    few = active[amount[active] < FEW_VOTES_OF_USER]
    if not len(few):
        return
    few = _fewest_first(few, amount)
    details = {
        "users": facts.votes.users[few].tolist(),
        "share_of_votes": round(float(amount[few].sum() / amount.sum()), 6),
    }
    if len(few) == len(active):
        yield Finding(
            Severity.WARNING,
            "few-votes-users",
            f"No user has {FEW_VOTES_OF_USER} votes or more: these votes carry a consensus, but "
            "nobody's own ranking, and cannot show who is abnormal. If people voted more often, "
            "check the column of the user.",
            details,
        )
        return
    yield Finding(
        Severity.NOTE,
        "few-votes-users",
        f"{len(few):,} of {len(active):,} users {'has' if len(few) == 1 else 'have'} fewer than "
        f"{FEW_VOTES_OF_USER} votes: {_ids(facts.votes.users[few])}. Their votes count in the "
        "consensus, but hardly make a ranking of their own.",
        details,
    )


class _Measured(NamedTuple):
    """Losses of held-out votes, summed per user, and the weights they belong to."""

    consensus: Floats  # one ranking and one threshold for all
    thresholds: Floats  # everybody's own threshold, one ranking
    own: Floats  # everybody's own ranking and threshold
    weight: Floats
    nu: float  # for which people's own did best

    def mean(self, losses: Floats) -> float:
        return float(losses.sum() / self.weight.sum())

    def gain(self, before: Floats, after: Floats) -> tuple[float, float]:
        """Return the mean gain per vote and its standard error; users are the independent units."""
        gain = self.mean(before - after)
        n_users = int(np.count_nonzero(self.weight))
        spread = float(np.sum((before - after - gain * self.weight) ** 2))
        return gain, np.sqrt(spread * n_users / max(n_users - 1, 1)) / float(self.weight.sum())


def _measure(votes: Comparisons) -> _Measured | None:
    """Compare, on held-out votes, one ranking for all with everybody's own.

    Own rankings are those at the very start of the path, where the votes of all users already count
    but nobody has left the consensus.
    """
    rng = np.random.default_rng(0)
    if len(votes) > MOST_MEASURED:
        votes = _some_users(votes, rng)
    # Not stratified by outcome: a user's held-out ties would then match those in training even
    # where both are chance, and thresholds of one's own would seem to help people who are alike.
    unit = _units(votes)
    fold = rng.integers(N_FOLDS, size=int(unit.max()) + 1)[unit]
    n_folds = N_FOLDS if len(votes) * N_FOLDS <= MOST_MEASURED else 1  # one says enough of many
    losses = np.zeros((2 + len(NUS), votes.n_users))
    weight = np.zeros(votes.n_users)
    n_held_out = 0
    for number in range(n_folds):
        training, held_out = votes.subset(fold != number), votes.subset(fold == number)
        if len(training) and len(held_out):
            losses += _losses(training, held_out)
            weight += _sums(held_out.user, held_out.weight, votes.n_users)
            n_held_out += len(held_out)
    if n_held_out < FEWEST_HELD_OUT:
        return None
    alone, thresholds, *own = losses
    best = int(np.argmin([loss.sum() for loss in own]))
    return _Measured(alone, thresholds, own[best], weight, NUS[best])


def _losses(training: Comparisons, held_out: Comparisons) -> Floats:
    """Return losses per user for one ranking, for own thresholds, and for own rankings per nu."""
    link, slots, delta = Logistic(), held_out.slots, Dynamics().delta
    happened = np.arange(len(held_out)), 1 - held_out.outcome
    weight = 1.0 if held_out.weight is None else held_out.weight

    def losses(consensus: Floats, deviation: Floats) -> Floats:
        own = consensus[slots.coordinate] + deviation
        margin = own[held_out.left_slot] - own[held_out.right_slot]
        log_probabilities = link.log_probabilities(margin, own[slots.threshold][held_out.user])
        return _sums(held_out.user, -weight * log_probabilities[happened], held_out.n_users)

    consensus = fit_consensus(training, link, delta)
    deviation = np.zeros(len(slots.coordinate))
    alone = losses(consensus, deviation)
    deviation[slots.threshold] = _own_thresholds(training, link, consensus, delta) - consensus[-1]
    thresholds = losses(consensus, deviation)
    own = [losses(*fit_before_entries(training, link, Dynamics(nu=nu))) for nu in NUS]
    return np.stack([alone, thresholds, *own])


def _some_users(votes: Comparisons, rng: np.random.Generator) -> Comparisons:
    """Draw users, at least two, until together they have as many votes as are measured."""
    order = rng.permutation(np.flatnonzero(votes.votes_per_user))
    n_drawn = int(np.searchsorted(np.cumsum(votes.votes_per_user[order]), MOST_MEASURED))
    drawn = np.zeros(votes.n_users, dtype=np.bool_)
    drawn[order[: max(n_drawn, 2)]] = True
    part = votes.subset(drawn[votes.user])
    # Built anew: a part keeps the slots of the whole, and a fit would visit them all.
    return Comparisons.from_arrays(
        part.user, part.left, part.right, part.outcome, part.weight, part.group
    )


def _own_thresholds(votes: Comparisons, link: Link, consensus: Floats, delta: float) -> Floats:
    """Fit everybody's tie threshold to the scores of the consensus, under a ridge of variance 1.

    The loss is convex in a threshold, so that its slope tells on which side the best one lies.
    """
    edges, at = votes.edges, consensus[votes.slots.coordinate]
    counts = edges.first_wins, edges.ties, edges.second_wins
    margin = at[edges.first] - at[edges.second]
    low = np.full(votes.n_users, np.log(delta))
    high = np.full(votes.n_users, np.log(consensus[-1] + HIGHEST_THRESHOLD))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        threshold = np.exp(middle)
        slope = link.vote_terms(margin, threshold[edges.owner], *counts)[2]
        too_high = _sums(edges.owner, slope, votes.n_users) + threshold - consensus[-1] > 0.0
        low, high = np.where(too_high, low, middle), np.where(too_high, middle, high)
    return np.asarray(np.exp(0.5 * (low + high)))


def _individual_rankings(facts: _Facts) -> Iterator[Finding]:
    """Whether individual rankings can be expected to help, by measurement."""
    code = "individual-rankings"
    if len(facts.active_users) < 2 or facts.decided == 0:
        return
    measured = _measure(facts.votes)
    if measured is None:
        yield Finding(
            Severity.NOTE,
            code,
            "There are too few votes to tell whether individual rankings can be expected to help.",
            {"verdict": "unclear"},
        )
        return
    gain, error = measured.gain(measured.consensus, measured.own)
    of_ties, error_of_ties = measured.gain(measured.consensus, measured.thresholds)
    before, after = measured.mean(measured.consensus), measured.mean(measured.own)
    by_ties = measured.mean(measured.thresholds)
    helps = gain > max(STANDARD_ERRORS * error, USEFUL_GAIN)
    ties_help = of_ties > max(STANDARD_ERRORS * error_of_ties, USEFUL_GAIN)
    if ties_help and of_ties > MOSTLY * gain:
        verdict = "thresholds"
        sentence = (
            "Individual fits can be expected to help, mostly by tie thresholds: people differ more "
            "in how readily they call a tie than in what they prefer. On held-out votes the "
            f"log-loss is {before:.3f} with one ranking for all, {by_ties:.3f} with everybody's "
            f"own threshold, and {after:.3f} with everybody's own ranking as well."
        )
    elif helps:
        verdict = "help"
        sentence = (
            "Individual rankings can be expected to help: on held-out votes they lower the "
            f"log-loss from {before:.3f} to {after:.3f}."
        )
    elif gain + STANDARD_ERRORS * error < 2.0 * USEFUL_GAIN:
        verdict = "no-help"
        can = "can hardly" if gain > STANDARD_ERRORS * error else "cannot"
        sentence = (
            f"Individual rankings {can} be expected to help with these votes: held out, their "
            f"log-loss is {before:.3f} with one ranking for all and {after:.3f} with everybody's "
            "own."
        )
    else:
        verdict = "unclear"
        sentence = (
            "These votes are too few to tell whether individual rankings help: on held-out votes "
            f"the log-loss is {before:.3f} with one ranking for all and {after:.3f} with "
            f"everybody's own, a difference of {gain:.3f} give or take {error:.3f}."
        )
    details = {
        "consensus_log_loss": before,
        "own_thresholds_log_loss": by_ties,
        "own_rankings_log_loss": after,
        "gain": gain,
        "standard_error": error,
        "nu": measured.nu,
    }
    rounded = {name: round(float(value), 6) for name, value in details.items()}
    yield Finding(Severity.NOTE, code, sentence, {"verdict": verdict, **rounded})


CHECKS: tuple[Callable[[_Facts], Iterator[Finding]], ...] = (
    _ties,
    _balance_of_users,
    _connections,
    _items_with_few_votes,
    _habits,
    _individual_rankings,
    _repeats,
    _users_with_few_votes,
    _sides,
    _two_items,
)


# --- numbers and words --------------------------------------------------------------------------


def _summary(facts: _Facts) -> dict[str, Any]:
    votes = facts.votes
    amount = facts.per_user[facts.active_users]
    n_items, n_pairs = len(facts.active_items), len(facts.pairs.first)
    total = float(amount.sum())
    return {
        "votes": len(votes),
        **({} if votes.weight is None else {"weight": _plain(total)}),
        "users": len(facts.active_users),
        "items": n_items,
        "tie_share": round(float(facts.answers[:, 1].sum()) / total, 6),
        "pairs": n_pairs,
        "pair_share": round(n_pairs / (n_items * (n_items - 1) / 2), 6),
        "votes_per_user_min": _plain(float(amount.min())),
        "votes_per_user_median": _plain(float(np.median(amount))),
        "votes_per_user_max": _plain(float(amount.max())),
    }


def _units(votes: Comparisons) -> NDArray[np.int64]:
    """Return the independent unit of every vote: the user's group, or the vote itself."""
    if votes.group is None:
        return np.arange(len(votes))
    both = votes.user.astype(np.int64) * (int(votes.group.max()) + 1) + votes.group
    return np.asarray(np.unique(both, return_inverse=True)[1], dtype=np.int64)


def _sums(index: NDArray[np.integer], values: Floats | None, size: int) -> Floats:
    """Sum values by index, or count where there are none."""
    return np.bincount(index, values, size).astype(np.float64)


def _keep_side(as_left: Floats, as_right: Floats, least: float) -> bool:
    """Tell whether things shown so often left and right do not change sides at random."""
    times = as_left + as_right
    excess = float(np.sum((as_left - as_right) ** 2 - times))  # zero on average at random
    most = float(np.sum(times * (times - 1.0)))
    return excess > SURE_FIXED * np.sqrt(2.0 * most) and excess > least * most


def _members(label: NDArray[np.int32], active: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the active members of every group, the largest group first."""
    ordered = active[np.argsort(label[active], kind="stable")]
    groups = np.split(ordered, np.flatnonzero(np.diff(label[ordered])) + 1)
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _fewest_first(found: NDArray[np.int64], amount: Floats) -> NDArray[np.int64]:
    return found[np.argsort(amount[found], kind="stable")]


def _most_first(found: NDArray[np.int64], amount: Floats) -> NDArray[np.int64]:
    return found[np.argsort(-amount[found], kind="stable")]


def _plain(amount: Any) -> Any:
    """Return amounts for JSON: integers where they are whole."""
    if isinstance(amount, np.ndarray):
        return [_plain(value) for value in amount.tolist()]
    return int(amount) if float(amount).is_integer() else round(float(amount), 6)


def _number(amount: float, noun: str) -> str:
    """Return a count with its noun, such as 1 vote and 1,200 votes."""
    digits = f"{amount:,.0f}" if float(amount).is_integer() else f"{amount:,.1f}"
    return f"{digits} {noun}{'' if amount == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def _ids(ids: NDArray[Any]) -> str:
    """Name the first few ids and count the rest."""
    named = ", ".join(show(value) for value in ids[:NAMED])
    return f"{named} and {len(ids) - NAMED:,} more" if len(ids) > NAMED else named
