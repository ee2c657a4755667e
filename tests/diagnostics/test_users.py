"""Findings about the users."""

import numpy as np
import pytest

from diagnosed import WORDS, codes, columns, found, healthy, looked_at, with_outcomes, with_rows
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.diagnostics.findings import Severity
from isplitlbi.evaluation.simulate import malicious_study


def test_one_user_alone_is_serious():
    diagnosis = looked_at(healthy(n_users=1, votes_per_user=(300, 300)))
    assert codes(diagnosis)[0] == "one-user"
    assert diagnosis.is_serious
    assert "individual-rankings" not in codes(diagnosis)


def test_a_user_with_most_of_the_votes_is_named():
    votes = healthy()
    share = columns(healthy(1, n_users=1, votes_per_user=(2000, 2000)))
    share[0] = ["eve"] * len(share[0])
    both = Comparisons.from_arrays(*(a + b for a, b in zip(columns(votes), share, strict=True)))
    finding = found(both, "dominant-user")
    assert finding.details["user"] == "eve"
    assert finding.details["share"] == pytest.approx(2000 / (2000 + len(votes)), abs=1e-6)


def test_users_with_few_votes_are_a_note_and_a_warning_when_nobody_has_enough():
    lines = [("eve", "item-01", f"item-0{k}", "left") for k in range(2, 6)]
    finding = found(with_rows(healthy(), lines), "few-votes-users")
    assert finding.severity == Severity.NOTE
    assert finding.details["users"] == ["eve"]
    everyone = found(healthy(n_users=200, votes_per_user=(1, 6)), "few-votes-users")
    assert everyone.severity == Severity.WARNING
    assert len(everyone.details["users"]) == 200


def test_users_who_reverse_the_consensus_are_not_taken_for_one_sided():
    assert "one-sided-users" not in codes(looked_at(malicious_study("reversed", 0).votes))


@pytest.mark.parametrize("answer", WORDS)
def test_users_with_one_answer_only_are_named(answer):
    votes = healthy()
    who = [f"user-{k:02}" for k in (3, 7)]
    outcome = np.where(np.isin(votes.users[votes.user], who), WORDS[answer], votes.outcome)
    finding = found(with_outcomes(votes, outcome), "one-answer-users")
    assert sorted(finding.details["users"][answer]) == who
    assert list(finding.details["users"]) == [answer]
    assert finding.details["votes"] == np.isin(votes.users[votes.user], who).sum()
    assert "one-sided-users" not in codes(looked_at(with_outcomes(votes, outcome)))


def test_the_same_answer_to_a_handful_of_votes_is_no_habit():
    votes = with_rows(healthy(), [("eve", "item-01", f"item-0{k}", "left") for k in range(2, 6)])
    assert "one-answer-users" not in codes(looked_at(votes))


def test_a_user_who_leans_to_one_side_beyond_chance_is_named():
    votes = healthy(votes_per_user=(60, 60))
    rng = np.random.default_rng(0)
    leans = (votes.users[votes.user] == "user-05") & (rng.random(len(votes)) < 0.9)
    finding = found(with_outcomes(votes, np.where(leans, -1, votes.outcome)), "one-sided-users")
    assert finding.details["users"] == ["user-05"]
    assert finding.details["left_shares"][0] < 0.2
    assert "right" in finding.sentence


def test_votes_of_one_group_are_no_more_evidence_than_one():
    votes = with_rows(
        healthy(), [("eve", "item-01", f"item-0{2 + k % 5}", "left") for k in range(8)]
    )
    votes = with_rows(votes, [("eve", f"item-0{2 + k % 5}", "item-01", "left") for k in range(8)])
    assert "one-answer-users" in codes(looked_at(votes))
    groups = np.arange(len(votes)) // 8
    assert "one-answer-users" not in codes(
        looked_at(Comparisons.from_arrays(*columns(votes), group=groups))
    )
