"""Findings about the answers."""

from itertools import combinations, product

import numpy as np
import polars as pl
import pytest

from diagnosed import (
    WORDS,
    codes,
    columns,
    found,
    from_lines,
    healthy,
    looked_at,
    with_outcomes,
    with_rows,
)
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.diagnostics.findings import Severity
from votes import rebuilt


def test_nothing_but_ties_is_serious_and_ends_the_matter():
    votes = with_outcomes(healthy(), [0] * len(healthy()))
    diagnosis = looked_at(votes)
    assert codes(diagnosis)[0] == "only-ties"
    assert diagnosis.is_serious
    silent = {"individual-rankings", "one-answer-users", "always-wins", "winner-first", "no-ties"}
    assert not silent & set(codes(diagnosis))


def test_no_ties_at_all_is_called_a_forced_choice():
    votes = healthy(threshold=None)
    finding = found(votes, "no-ties")
    assert finding.severity == Severity.NOTE
    assert "forced choices" in finding.sentence
    assert "no tie threshold" in finding.sentence
    assert not looked_at(votes).is_serious
    assert looked_at(votes).summary["tie_share"] == 0.0


def test_a_study_that_leans_to_one_side_is_told_and_an_even_one_is_not():
    votes = healthy(n_users=60)
    rng = np.random.default_rng(0)
    outcome = np.where(rng.random(len(votes)) < 0.2, 1, votes.outcome)
    finding = found(with_outcomes(votes, outcome), "position-bias")
    assert finding.severity == Severity.WARNING
    assert finding.details["left_share"] > 0.55
    assert finding.details["expected_left_share"] == pytest.approx(0.5, abs=0.03)


def the_better_left(votes):
    """Put the item of the lower number to the left, whatever people saw."""
    swap = votes.left > votes.right
    left = np.where(swap, votes.right, votes.left)
    right = np.where(swap, votes.left, votes.right)
    outcome = np.where(swap, -votes.outcome, votes.outcome)
    users, items = votes.users, votes.items
    return Comparisons.from_arrays(users[votes.user], items[left], items[right], outcome)


def test_items_that_keep_their_side_are_no_bias_and_nobodys_habit():
    reported = codes(looked_at(the_better_left(healthy())))
    assert "fixed-sides" in reported
    assert not {"position-bias", "one-sided-users", "one-answer-users"} & set(reported)


def test_a_file_that_lists_the_winner_first_is_no_bias():
    votes = healthy()
    lost = votes.outcome < 0
    left, right = np.where(lost, [votes.right, votes.left], [votes.left, votes.right])
    users, items = votes.users[votes.user], votes.items
    turned = Comparisons.from_arrays(users, items[left], items[right], np.abs(votes.outcome))
    reported = codes(looked_at(turned))
    assert "winner-first" in reported
    assert not {"position-bias", "one-sided-users", "one-answer-users"} & set(reported)
    mirrored = found(rebuilt(turned, swapped=True), "winner-first")
    assert mirrored.details["side"] == "right"
    assert mirrored.severity == Severity.WARNING
    assert "sides unknown" in mirrored.sentence


def test_a_forced_choice_leans_to_one_side_like_any_other():
    assert "position-bias" not in codes(looked_at(healthy(n_users=60, threshold=None)))
    leaning = healthy(n_users=60, threshold=None, side=(0.8, 0.0))
    assert found(leaning, "position-bias").details["left_share"] > 0.55


def once_per_pair():
    """Every user judges every pair once, in both ways round over the users."""
    rng = np.random.default_rng(0)
    lines = [
        (f"user-{u:02}", *rng.permutation([f"item-{i}", f"item-{j}"]), rng.choice(list(WORDS)))
        for u, (i, j) in product(range(20), combinations(range(6), 2))
    ]
    return Comparisons.from_arrays(*zip(*lines, strict=True))


def test_rows_written_twice_are_told_from_pairs_shown_again():
    votes = once_per_pair()
    assert not {"repeats", "duplicate-rows"} & set(codes(looked_at(votes)))
    twice = Comparisons.from_arrays(*(2 * column for column in columns(votes)))
    finding = found(twice, "duplicate-rows")
    assert finding.severity == Severity.WARNING
    assert finding.details == {"repeats": 300, "copies": 300, "differing": 0}
    assert "repeats" not in codes(looked_at(twice))
    again = Comparisons.from_arrays(
        *(a + b for a, b in zip(columns(votes), columns(rebuilt(votes, swapped=True)), strict=True))
    )
    assert found(again, "repeats").details == {"repeats": 300, "copies": 0, "differing": 0}


def test_another_answer_to_the_same_pair_is_counted_whatever_the_side():
    votes = with_rows(
        from_lines("ann tea milk left\nann milk tea left\nann tea milk left\nbob tea milk tie"),
        [("bob", "milk", "rum", "tie")],
    )
    assert found(votes, "repeats").details == {"repeats": 2, "copies": 1, "differing": 1}


def test_rows_of_different_groups_or_weights_are_no_copies():
    row = [["ann", "ann", "bob"], ["a", "a", "b"], ["b", "b", "c"], [1, 1, 0]]
    grouped = Comparisons.from_arrays(*row, group=[1, 2, 3])
    weighted = Comparisons.from_arrays(*row, weight=[0.5, 0.75, 1.0])
    assert found(grouped, "repeats").details["copies"] == 0
    assert found(weighted, "repeats").details["copies"] == 0


def test_votes_that_differ_in_a_feature_are_not_the_same_vote_twice():
    row = [["ann"] * 4 + ["bob"], ["a"] * 4 + ["b"], ["b"] * 4 + ["c"], [1, 1, 1, -1, 0]]
    plain = Comparisons.from_arrays(*row)
    assert found(plain, "repeats").details == {"repeats": 3, "copies": 2, "differing": 1}
    votes = Comparisons.from_arrays(*row, features={"length": [1.0, 2.0, 1.0, 2.0, 0.5]})
    assert found(votes, "repeats").details == {"repeats": 2, "copies": 1, "differing": 1}
    apart = Comparisons.from_arrays(*row, features={"length": [1.0, 2.0, 3.0, 4.0, 0.5]})
    assert "repeats" not in codes(looked_at(apart))


def test_a_feature_is_the_same_whichever_side_has_more_of_it():
    row = [["ann", "ann"], ["a", "b"], ["b", "a"], [1, -1]]
    votes = Comparisons.from_arrays(*row, features={"length": [1.0, -1.0]})
    assert found(votes, "repeats").details == {"repeats": 1, "copies": 0, "differing": 0}
    other = Comparisons.from_arrays(*row, features={"length": [1.0, 1.0]})
    assert "repeats" not in codes(looked_at(other))


def test_votes_with_the_same_id_are_a_warning():
    votes = healthy()
    ids = pl.Series("id", range(len(votes)))
    assert "vote-ids" not in codes(looked_at(votes.changed(id=ids)))
    order = np.random.default_rng(2).permutation(len(votes))
    named = votes.changed(id=pl.Series("id", np.maximum(ids.to_numpy(), 3)))
    for some in (named, named.subset(order)):
        warning = found(some, "vote-ids")
        assert warning.severity == Severity.WARNING
        assert warning.details == {"votes": 3, "ids": [3]}
