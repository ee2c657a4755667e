"""Findings about the items."""

from itertools import combinations

import pytest

from diagnosed import WORDS, codes, found, from_lines, healthy, looked_at, with_rows
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.diagnostics.findings import Severity


def test_items_that_no_vote_connects_are_serious():
    votes = with_rows(healthy(), [("user-01", "gin", "rum", w) for w in WORDS] * 5)
    finding = found(votes, "disconnected")
    assert finding.severity == Severity.SERIOUS
    assert finding.details["groups"] == 2
    assert finding.details["items"][1] == ["gin", "rum"]
    assert "'gin', 'rum'" in finding.sentence
    assert looked_at(votes).is_serious
    assert codes(looked_at(votes))[0] == "disconnected"
    assert "one-way-groups" not in codes(looked_at(votes))


@pytest.mark.parametrize(
    "code, answer, end", [("always-wins", "left", "top"), ("always-loses", "right", "bottom")]
)
def test_an_item_that_always_wins_or_loses_is_named_with_its_votes(code, answer, end):
    votes = with_rows(healthy(), [(f"user-{k:02}", "gin", "item-01", answer) for k in range(1, 13)])
    finding = found(votes, code)
    assert finding.severity == Severity.WARNING
    assert finding.details == {"items": ["gin"], "votes": [12]}
    assert "'gin', with 12 votes" in finding.sentence
    assert end in finding.sentence
    one_tie = with_rows(votes, [("user-01", "gin", "item-01", "tie")])
    assert code not in codes(looked_at(one_tie))
    assert "one-way-groups" not in codes(looked_at(votes))


def test_a_group_that_always_beats_the_rest_is_found():
    inner = [(f"user-{k:02}", "gin", "rum", w) for k in range(1, 5) for w in WORDS]
    outer = [(f"user-{k:02}", "rum", f"item-0{1 + k % 6}", "left") for k in range(1, 13)]
    finding = found(with_rows(healthy(), inner + outer), "one-way-groups")
    assert finding.details == {"groups": 1, "items": [["gin", "rum"]]}
    diagnosis = looked_at(
        with_rows(healthy(), [*inner, *outer, ("user-01", "item-01", "gin", "left")])
    )
    assert "one-way-groups" not in codes(diagnosis)


def test_an_item_between_two_others_that_never_meet_it_from_both_sides_is_a_group():
    chain = [("user-01", "gin", "rum", "left"), ("user-02", "rum", "item-01", "left")]
    diagnosis = looked_at(with_rows(healthy(), chain * 6))
    assert found(with_rows(healthy(), chain * 6), "one-way-groups").details["items"] == [["rum"]]
    assert "always-wins" in codes(diagnosis)


def test_votes_without_any_contradiction_are_told_and_nothing_else_of_the_kind():
    order = ["a", "b", "c", "d"]
    lines = [(u, x, y, "left") for u in ("ann", "bob") for x, y in combinations(order, 2)]
    lines += [("ann", "b", "c", "tie")]
    votes = with_rows(from_lines("bob d a right"), lines)
    reported = codes(looked_at(votes))
    assert "no-contradictions" in reported
    assert not {"always-wins", "always-loses", "one-way-groups"} & set(reported)
    circle = with_rows(votes, [("ann", "d", "a", "left")])
    assert "no-contradictions" not in codes(looked_at(circle))


def test_an_item_with_few_votes_is_named():
    votes = with_rows(healthy(), [("user-01", "gin", "item-01", w) for w in WORDS])
    finding = found(votes, "few-votes-items")
    assert finding.details == {"items": ["gin"], "votes": [3]}
    enough = with_rows(votes, [("user-02", "gin", "item-02", w) for w in WORDS] * 3)
    assert "few-votes-items" not in codes(looked_at(enough))


def test_two_items_are_told():
    votes = healthy(n_items=2)
    assert found(votes, "two-items").severity == Severity.NOTE
    assert not looked_at(votes).is_serious


def test_integer_ids_come_back_as_integers():
    votes = Comparisons.from_arrays([1, 1, 2], [10, 10, 30], [20, 20, 40], [1, 0, -1])
    assert found(votes, "disconnected").details["items"] == [[10, 20], [30, 40]]
