"""What is found about the users: how many votes they gave, and by which habits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isplitlbi.data.vocabulary import show
from isplitlbi.diagnostics.facts import Facts, fewest_first, most_first
from isplitlbi.diagnostics.findings import (
    SENTENCE_ONLY,
    Finding,
    Severity,
    amount,
    have,
    percent,
    some_of,
)
from isplitlbi.nouns import Nouns, capitalized
from isplitlbi.typing import Floats, Mask

__all__ = ["balance_of_users", "habits", "users_with_few_votes"]

# Fewer say nothing of their own; the program that was published with the paper leaves such users
# out.
FEW_VOTES_OF_USER = 7
DOMINANT = 0.5  # of all votes by one user

# How improbable a habit must be by chance, over all users together, before they are named.
CHANCE = 0.01


def balance_of_users(facts: Facts) -> Iterator[Finding]:
    """Find out whether the votes are by one user, all or most of them."""
    active, votes = facts.active_users, facts.per_user
    if len(active) == 1:
        yield OneUser(facts.users(active)[0])
    top = int(np.argmax(votes))
    share = float(votes[top] / votes.sum())
    if len(active) > 2 and share > DOMINANT:
        yield DominantUser(facts.users(np.array([top]))[0], share)


def users_with_few_votes(facts: Facts) -> Iterator[Finding]:
    """Find users whose votes are too few for a ranking of their own."""
    active, votes = facts.active_users, facts.per_user
    few = fewest_first(active[votes[active] < FEW_VOTES_OF_USER], votes)
    if len(few):
        kind = UsersWithFewVotes if len(few) < len(active) else NobodyWithEnoughVotes
        yield kind(facts.users(few), float(votes[few].sum() / votes.sum()), len(active))


def habits(facts: Facts) -> Iterator[Finding]:
    """Find users who always give the same answer, or one side too often to be chance."""
    answers, votes = facts.answers, facts.per_user
    if facts.decided == 0 or len(facts.active_users) < 2:
        return
    one_sided, always = _improbable(facts)
    same = {answer: most_first(np.flatnonzero(who), votes) for answer, who in always.items()}
    same = {answer: who for answer, who in same.items() if len(who)}
    if same:
        everyone = np.concatenate(list(same.values()))
        one_sided[everyone] = False
        yield OneAnswerUsers(
            {answer: facts.users(who) for answer, who in same.items()},
            amount(votes[everyone].sum()),
        )
    found = np.flatnonzero(one_sided)
    if len(found):
        found = fewest_first(found, facts.improbability)
        left, right = answers[found, 0], answers[found, 2]
        yield OneSidedUsers(facts.users(found), (left / (left + right)).tolist())


def _improbable(facts: Facts) -> tuple[Mask, dict[str, Mask]]:
    """Return users with too many votes for one side, and those with one answer only, by answer."""
    answers, votes = facts.answers, facts.per_user
    enough = votes >= FEW_VOTES_OF_USER
    level = CHANCE / max(int(enough.sum()), 1)
    one_sided = np.zeros(len(votes), dtype=np.bool_)
    if facts.has_sides and not (facts.is_winner_first or facts.sides_are_fixed):
        one_sided = enough & (facts.improbability < level)
    tie_share = float(answers[:, 1].sum() / votes.sum())
    ties_by_chance: Floats = max(tie_share, 0.5) ** (votes / facts.votes_per_unit)
    return one_sided, {
        "left": one_sided & (answers[:, 0] == votes),
        "right": one_sided & (answers[:, 2] == votes),
        "tie": enough & (answers[:, 1] == votes) & (ties_by_chance < level),
    }


# --- the findings -------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneUser(Finding):
    """All votes are by one user."""

    severity = Severity.SERIOUS
    code = "one-user"

    user: Any

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        return (
            f"All votes are by one {nouns.user}, {show(self.user)}: the consensus is that "
            f"{nouns.user}'s ranking, and individual rankings and abnormal {nouns.users} mean "
            "nothing. If there were more people, name the column that tells them apart."
        )


@dataclass(frozen=True)
class DominantUser(Finding):
    """Most votes are by one user."""

    severity = Severity.WARNING
    code = "dominant-user"

    user: Any
    share: float

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        return (
            f"{capitalized(nouns.user)} {show(self.user)} gave {percent(self.share)} of all votes, "
            "so the consensus is mostly the ranking of that one person. Compare it with a fit "
            "without these votes."
        )


@dataclass(frozen=True)
class UsersWithFewVotes(Finding):
    """Users whose votes are too few for a ranking of their own."""

    severity = Severity.NOTE
    code = "few-votes-users"

    users: list[Any]  # the one with the fewest votes first
    share_of_votes: float
    n_users: int = field(metadata=SENTENCE_ONLY)  # in all

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        few = len(self.users)
        return (
            f"{few:,} of {nouns.n_users(self.n_users)} {have(few)} fewer than {FEW_VOTES_OF_USER} "
            f"votes: {some_of(self.users)}. Their votes count in the consensus, but are too "
            "few for a ranking of their own."
        )


@dataclass(frozen=True)
class NobodyWithEnoughVotes(UsersWithFewVotes):
    """No user has enough votes for a ranking of their own."""

    severity = Severity.WARNING

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        return (
            f"No {nouns.user} has {FEW_VOTES_OF_USER} votes or more: these votes are enough for a "
            "consensus, but not for anybody's own ranking. They cannot show who is abnormal. If "
            f"people voted more often, check the column of the {nouns.user}."
        )


@dataclass(frozen=True)
class OneAnswerUsers(Finding):
    """Users who always gave the same answer."""

    severity = Severity.WARNING
    code = "one-answer-users"

    users: dict[str, list[Any]]  # by answer: left, right, tie
    votes: float  # of all of them

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        listed = "; ".join(f"{answer}: {some_of(who)}" for answer, who in self.users.items())
        n_users = sum(map(len, self.users.values()))
        return (
            f"{nouns.n_users(n_users)} always gave the same answer, more often than chance allows "
            f"({listed}). Such votes say nothing about the {nouns.items}: consider a fit without "
            "them."
        )


@dataclass(frozen=True)
class OneSidedUsers(Finding):
    """Users who chose one side too often."""

    severity = Severity.WARNING
    code = "one-sided-users"

    users: list[Any]  # the least probable first
    left_shares: list[float]  # of every one's decided votes

    def in_words(self, nouns: Nouns) -> str:
        """Say it to a person."""
        left = self.left_shares[0]
        first = f"{percent(max(left, 1 - left))} {'left' if left > 0.5 else 'right'}"
        return (
            f"{nouns.n_users(len(self.users))} chose one side more often than chance allows: "
            f"{some_of(self.users)} ({show(self.users[0])}: {first}). Look at their votes before "
            "you trust them."
        )
