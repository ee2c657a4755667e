"""What is done for speed only must not show in any result."""

import numpy as np
import pytest

from isplitlbi import Comparisons
from isplitlbi.data import layout
from isplitlbi.data.layout import Layout, Sees, tally
from isplitlbi.model.links import Logistic
from isplitlbi.solvers import fit_consensus
from traits import TRAITS
from votes import assert_same, random_votes


def test_a_consensus_never_pays_for_slots():
    votes = random_votes(0, n_votes=200, weighted=True)
    fit_consensus(votes, Logistic())
    fit_consensus(votes.subset(votes.user > 0), Logistic())
    assert votes not in layout._LAYOUTS
    assert Layout.of(votes).n_slots and votes in layout._LAYOUTS


@pytest.mark.parametrize("traits", TRAITS.values(), ids=TRAITS)
@pytest.mark.parametrize("whole_first", [True, False])
def test_parts_share_the_slots_of_the_whole_whoever_asks_first(whole_first, traits):
    votes = random_votes(0, n_users=9, n_votes=40)
    part = votes.subset(votes.user < 4)
    smaller = part.subset(part.outcome != 0)
    asked = (votes, part, smaller) if whole_first else (smaller, part, votes)
    found = {id(each): Layout.of(each, traits) for each in asked}
    assert len({id(each.slots) for each in found.values()}) == 1
    here, there = found[id(smaller)], found[id(part)]
    assert len(here.edges.first) < len(there.edges.first)
    assert set(here.edges.first) | set(here.edges.second) <= set(there.edges.first) | set(
        there.edges.second
    )


@pytest.mark.parametrize("sees", Sees)
@pytest.mark.parametrize("weighted", [True, False])
def test_keys_too_large_to_be_sorted_as_one_number_give_the_same_counts(
    sees, weighted, monkeypatch
):
    votes = random_votes(1, n_users=20, n_items=9, n_votes=300, weighted=weighted)
    packed = tally(votes, by_user=True, sees=sees)
    monkeypatch.setattr(layout, "PACKED_BITS", 0)
    for one, other in zip(tally(votes, by_user=True, sees=sees)[:6], packed[:6], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(3))
def test_slots_found_by_a_table_or_by_searching_are_the_same(seed, monkeypatch):
    by_table = random_votes(seed, n_users=20, n_items=9, n_votes=300)
    Layout.of(by_table)
    monkeypatch.setattr(layout, "TABLE_PER_VOTE", 0)
    monkeypatch.setattr(layout, "PACKED_BITS", 0)
    assert_same(random_votes(seed, n_users=20, n_items=9, n_votes=300), by_table)


def test_a_long_chain_of_close_contests_is_fitted_to_the_end():
    # Each item meets the next alone, so that what is known of distant ones travels step by step.
    n_items = 300
    left, right = np.arange(n_items - 1).repeat(10), np.arange(1, n_items).repeat(10)
    outcome = np.tile([1, 1, 1, 1, 1, 0, 0, -1, -1, -1], n_items - 1)
    votes = Comparisons.from_arrays(np.zeros(len(left), dtype=int), left, right, outcome)
    steps = -np.diff(fit_consensus(votes, Logistic()).scores)
    assert steps.min() > 0.2
    # All contests went alike; only the wide prior bends the line.
    np.testing.assert_allclose(steps, steps.mean(), rtol=0.35)


@pytest.mark.parametrize("spread", [1, 1000])
def test_integer_ids_near_and_far_apart_are_the_same_votes(spread):
    rng = np.random.default_rng(0)
    user, left = rng.integers(-3, 5, size=50), rng.integers(6, size=50)
    columns = [spread * user, spread * left, spread * ((left + 1) % 6)]
    votes = Comparisons.from_arrays(*columns, rng.integers(-1, 2, size=50))
    assert (votes.users[votes.user] == columns[0]).all()
    assert (votes.items[votes.left] == columns[1]).all()
    assert (votes.items[votes.right] == columns[2]).all()
