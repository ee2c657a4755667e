"""Look through votes before a fit: every check, and what they find together.

A check is a function from `Facts` to findings. A new one is listed in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.outcomes import Sides
from isplitlbi.diagnostics.answers import (
    preferred_sides,
    repeated_ids,
    repeats,
    ties,
    uneven_weights,
)
from isplitlbi.diagnostics.facts import Facts
from isplitlbi.diagnostics.findings import DIGITS, Diagnosis, Finding, amount
from isplitlbi.diagnostics.individual import individual_rankings
from isplitlbi.diagnostics.items import connections, items_with_few_votes, two_items
from isplitlbi.diagnostics.users import balance_of_users, habits, users_with_few_votes
from isplitlbi.errors import InvalidSetting, InvalidVotes

__all__ = ["CHECKS", "check"]

# The more important first.
CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    uneven_weights,
    ties,
    balance_of_users,
    connections,
    items_with_few_votes,
    habits,
    individual_rankings,
    repeated_ids,
    repeats,
    users_with_few_votes,
    preferred_sides,
    two_items,
)
# What there is to find of users alone: nothing where nobody knows whose votes they are.
OF_USERS = (balance_of_users, habits, individual_rankings, repeats, users_with_few_votes)


def check(votes: Comparisons, *, sides: Sides = "known") -> Diagnosis:
    """Look through votes for what a person should know before trusting a fit of them.

    The answer does not depend on the order of the votes, and is the same every time. With sides
    that are unknown, nothing is said of them, nor of users who vote for one side.

    Examples
    --------
    >>> votes = Comparisons.from_arrays(
    ...     user=["ann", "ann", "bob"],
    ...     left=["tea", "tea", "rum"],
    ...     right=["milk", "milk", "gin"],
    ...     outcome=[1, 0, -1],
    ... )
    >>> diagnosis = check(votes)
    >>> diagnosis.is_serious, diagnosis.findings[0].code
    (True, 'disconnected')
    """
    if not len(votes):
        raise InvalidVotes("there are no votes to check. Give at least one.")
    if sides not in get_args(Sides):
        raise InvalidSetting(f"sides {sides!r} is not one of {', '.join(get_args(Sides))}.")
    facts = Facts.of(votes, has_sides=sides == "known")
    looks = [look for look in CHECKS if not (votes.is_anonymous and look in OF_USERS)]
    findings = [finding for look in looks for finding in look(facts)]
    findings.sort(key=lambda finding: -finding.severity)  # stable: the order of CHECKS within
    return Diagnosis(_summary(facts), tuple(findings))


def _summary(facts: Facts) -> dict[str, Any]:
    """Return the main figures of the votes."""
    votes = facts.votes
    per_user = facts.per_user[facts.active_users]
    n_items, n_pairs = len(facts.active_items), len(facts.pairs.first)
    total = float(per_user.sum())
    figures = {
        "votes": len(votes),
        **({} if votes.weight is None else {"weight": amount(total)}),
        **({} if votes.is_anonymous else {"users": len(facts.active_users)}),
        "items": n_items,
        "tie_share": float(facts.answers[:, 1].sum()) / total,
        "pairs": n_pairs,
        "pair_share": n_pairs / (n_items * (n_items - 1) / 2),
    }
    if not votes.is_anonymous:
        figures |= {
            "votes_per_user_min": amount(per_user.min()),
            "votes_per_user_median": amount(float(np.median(per_user))),
            "votes_per_user_max": amount(per_user.max()),
        }
    return {name: round(figure, DIGITS) for name, figure in figures.items()}
