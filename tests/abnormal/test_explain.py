"""Which kind explains a user's votes, in which words and numbers."""

import numpy as np
import pytest

from crowds import SCORES
from isplitlbi.abnormal import KINDS
from isplitlbi.abnormal.explain import EXPLANATIONS


def test_the_cheapest_explanation_is_tried_first():
    cost = [explanation.cost for explanation in EXPLANATIONS]
    assert cost == sorted(cost)
    known = {each for kind in KINDS.values() for each in kind.explanations}
    assert set(EXPLANATIONS) == known
    assert len(EXPLANATIONS) == len(known)


def test_every_kind_was_there(found):
    assert set(found.kind) == {*KINDS, ""}


def test_users_who_are_not_flagged_have_no_kind_and_no_explanation(found):
    for kind, explanation, flagged in zip(
        found.kind, found.explanation, found.flagged, strict=True
    ):
        assert bool(kind) == bool(explanation) == flagged
    assert not all(found.flagged)


def percent(share):
    return f"{100 * np.mean(share):.0f} %"


def test_the_explanation_says_what_was_seen(found, place, voters):
    def said(user):
        return found.explanation[place[user]]

    for side in ("left", "right"):
        assert said(f"always {side}").startswith(f"votes {side} ")
        assert "100 %" in said(f"always {side}")
    ties = percent(voters["tie-happy"][2] == 0)
    assert f"declares {ties} ties in 300 votes (" in said("tie-happy")
    assert "never declares a tie in 300 votes (" in said("never-tie")
    assert "own ranking predicts" in said("different taste")
    for user, words in {
        "reversed": "turns the consensus upside down",
        "careless": "hardly depend on the items",
        "sharper": "is surer of it",
        "blunter": "is less sure of it",
    }.items():
        left, right, outcome = voters[user]
        decided = outcome != 0
        against = percent(np.sign(SCORES[left] - SCORES[right])[decided] != outcome[decided])
        assert words in said(user)
        assert f"{against} of decided votes against it" in said(user)


def test_the_numbers_are_those_behind_the_explanation(found, place):
    by_user = {
        user: (found.slope[k], found.side[k], found.threshold[k]) for user, k in place.items()
    }
    assert by_user["reversed"][0] == pytest.approx(-1.0, abs=0.3)
    assert by_user["blunter"][0] == pytest.approx(0.4, abs=0.2)
    assert by_user["sharper"][0] > 2.0
    assert by_user["always left"][1] > 1.1
    assert by_user["always right"][1] < -1.1
    assert by_user["tie-happy"][2] == pytest.approx(2.4, abs=0.5)
    assert by_user["never-tie"][2] < 0.1
    assert by_user["diligent-1"] == (1.0, 0.0, found.consensus.threshold)
