"""Which list a user is on, and which kind explains the votes, in which words and numbers."""

from dataclasses import replace

import numpy as np
import pytest

from crowds import SCORES, agreeing, gather, vote
from isplitlbi import Comparisons
from isplitlbi.abnormal import KINDS, find_abnormal
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.solvers.likelihood import fit_consensus

LINK = Logistic()


def findings(votes):
    return find_abnormal(votes, LINK, fit_consensus(votes, LINK))


def test_users_who_are_not_flagged_have_no_list_no_kind_and_no_explanation(found):
    for name, kind, explanation, flagged in zip(
        found.list, found.kind, found.explanation, found.flagged, strict=True
    ):
        assert bool(name) == bool(kind) == bool(explanation) == flagged
    assert not all(found.flagged)


def test_a_list_is_that_of_the_kind_unless_the_kind_is_unclear(found):
    for name, kind in zip(found.list, found.kind, strict=True):
        assert kind in ("", "unclear") or KINDS[kind].list == name
    for name in ("unreliable", "different"):
        assert found.on(name).tolist() == [each == name for each in found.list]


def percent(share):
    return f"{100 * np.mean(share):.0f} %"


def test_the_explanation_says_what_was_seen(found, place, voters):
    def said(user):
        return found.explanation[place[user]]

    for side in ("left", "right"):
        assert (
            said(f"always {side}") == f"votes {side} in 100 % of decided votes, whatever is shown"
        )
    ties = percent(voters["tie-happy"][2] == 0)
    assert f"declares {ties} ties in 300 votes (" in said("tie-happy")
    assert "never declares a tie in 300 votes (" in said("never-tie")
    assert said("promoter") == "votes like others, but puts item-1 far higher"
    assert "as 2 others who stand out" in said("ring-1")
    for user, words in {
        "reversed": "turns the consensus upside down",
        "careless": "hardly depend on what is shown",
        "sharper": "is more certain of it",
        "blunter": "is less certain of it",
        "different taste": "votes by a ranking of their own",
        "pattern": "answers follow a pattern",
        "fatigue": "with care at first",
    }.items():
        left, right, outcome = voters[user]
        decided = outcome != 0
        against = percent(np.sign(SCORES[left] - SCORES[right])[decided] != outcome[decided])
        assert words in said(user)
        assert f"{against} of decided votes against the group" in said(user)


def test_the_numbers_are_those_of_the_votes(found, place):
    by_user = {
        user: (found.slope[k], found.side[k], found.threshold[k]) for user, k in place.items()
    }
    assert by_user["reversed"][0] == pytest.approx(-1.0, abs=0.4)
    assert by_user["blunter"][0] == pytest.approx(0.4, abs=0.25)
    assert by_user["careless"][0] == pytest.approx(0.0, abs=0.25)
    assert by_user["careless"][0] != 0.0  # fitted, though the kind knows of none
    assert by_user["sharper"][0] > 2.0
    assert by_user["always left"][1] > 1.1
    assert by_user["always right"][1] < -1.1
    assert by_user["tie-happy"][2] == pytest.approx(2.4, abs=0.5)
    assert by_user["never-tie"][2] < 0.1
    assert by_user["diligent-1"] == (1.0, 0.0, found.consensus.threshold)


def test_honest_dissenters_are_not_called_unreliable():
    listed, named = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        voters = {f"normal-{number}": vote(rng, 30) for number in range(60)}
        tastes = [rng.normal(0, 2.0, 8) for _ in range(10)]
        dissenters = {f"own-{number}": vote(rng, 30, own) for number, own in enumerate(tastes)}
        votes = gather(voters | dissenters)
        found = findings(votes)
        own = np.char.startswith(votes.users.astype(str), "own")
        listed += found.on("unreliable")[own].tolist()
        named += [kind for kind, each in zip(found.kind, own, strict=True) if each and kind]
    assert np.mean(listed) <= 0.03
    assert np.mean(np.isin(named, ["different taste", "unclear", "ring"])) > 0.9
    assert len(named) > 100


def test_without_times_no_order_is_looked_at(votes, found, place):
    timeless = findings(replace(votes, time=None))
    assert {"pattern", "fatigue"} <= set(found.kind)
    assert not {"pattern", "fatigue"} & set(timeless.kind)
    assert timeless.list[place["pattern"]] == "unreliable"


def test_careless_users_who_take_no_time_are_too_fast(votes, place):
    duration = np.full(len(votes), 5.0)
    for user in ("careless", "diligent-1"):
        duration[votes.user == place[user]] = 0.4
    found = findings(replace(votes, duration=duration))
    assert found.kind[place["careless"]] == "too fast"
    assert found.list[place["careless"]] == "unreliable"
    assert not found.flagged[place["diligent-1"]]  # nobody is named for being fast alone


def test_two_honest_users_of_a_kind_are_no_ring(place, found):
    assert found.kind[place["different taste"]] == "different taste"
    assert sum(kind == "ring" for kind in found.kind) == 3


def test_hardly_anybody_is_listed_where_all_agree():
    for seed in range(3):
        assert findings(agreeing(150, 40, seed)).flagged.sum() <= 2


def test_who_turns_the_best_items_down_whenever_they_are_shown_is_no_copier():
    honest = simulate(
        n_users=60, n_items=20, votes_per_user=(40, 40), score_sd=1.0, threshold=0.5,
        abnormal_share=0.0, random_state=0,
    ).votes  # fmt: skip
    rng = np.random.default_rng(0)
    order = np.argsort(-fit_consensus(honest, LINK).scores)
    best, other = rng.choice(order[:4], 640), rng.choice(order[4:], 640)
    is_left = rng.random(640) < 0.5
    left, right = np.where(is_left, [best, other], [other, best])
    hostile = Comparisons.from_arrays(
        ["hostile"] * 640, honest.items[left], honest.items[right], np.where(is_left, -1, 1)
    )
    votes = Comparisons.joined(honest, hostile)
    found = findings(votes)
    user = votes.users.tolist().index("hostile")
    assert found.flagged[user]
    assert found.kind[user] != "copier"
    assert "has the order of the consensus" not in found.explanation[user]
