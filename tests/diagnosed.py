"""Votes to be diagnosed, and ways to look at the diagnosis."""

import importlib

import pytest

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.diagnostics.check import CHECKS, check
from isplitlbi.diagnostics.individual import CODE, individual_rankings
from isplitlbi.evaluation.simulate import simulate

WORDS = {"left": 1, "tie": 0, "right": -1}


def codes(diagnosis):
    return [finding.code for finding in diagnosis.findings]


def looked_at(votes, **settings):
    """Diagnose votes, but leave out the experiment on individual rankings.

    It takes ten times as long as all other checks together, finds no more than a note, and is
    tested in `test_individual`.
    """
    others = tuple(look for look in CHECKS if look is not individual_rankings)
    assert len(others) == len(CHECKS) - 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module("isplitlbi.diagnostics.check"), "CHECKS", others)
        return check(votes, **settings)


def found(votes, code):
    """Return the finding of this code, which must be there once."""
    diagnosis = check(votes) if code == CODE else looked_at(votes)
    (finding,) = [finding for finding in diagnosis.findings if finding.code == code]
    return finding


def healthy(seed=0, **changes):
    """Draw votes of people who agree: every item wins, loses and ties; sides are random."""
    settings = {"n_users": 30, "n_items": 6, "votes_per_user": (20, 40), "score_sd": 1.0}
    settings |= {"abnormal_share": 0.0, "threshold": 0.5} | changes
    return simulate(**settings, random_state=seed).votes


def columns(votes):
    return [
        votes.users[votes.user].tolist(),
        votes.items[votes.left].tolist(),
        votes.items[votes.right].tolist(),
        votes.outcome.tolist(),
    ]


def with_rows(votes, extra):
    """Add rows such as ("ann", "tea", "milk", "left")."""
    more = [[row[k] for row in extra] for k in range(3)] + [[WORDS[row[3]] for row in extra]]
    return Comparisons.from_arrays(*(a + b for a, b in zip(columns(votes), more, strict=True)))


def with_outcomes(votes, outcome):
    return Comparisons.from_arrays(*columns(votes)[:3], outcome)


def from_lines(text):
    """Build votes of lines such as "ann tea milk left"."""
    lines = [line.split() for line in text.strip().splitlines()]
    return Comparisons.from_arrays(*zip(*lines, strict=True))
