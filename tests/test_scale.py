"""What is done for speed only must not show in any result."""

import numpy as np
import pytest

from isplitlbi import Comparisons
from isplitlbi.data import comparisons
from isplitlbi.model.links import Logistic, Probit
from isplitlbi.solvers import fit_consensus
from isplitlbi.solvers import likelihood as ridge
from votes import assert_same, random_votes


def laid(votes):
    return "_layout" in vars(votes) or "edges" in vars(votes)


def test_a_consensus_never_pays_for_slots():
    votes = random_votes(0, n_votes=200, weighted=True)
    fit_consensus(votes, Logistic())
    fit_consensus(votes.subset(votes.user > 0), Logistic())
    assert not laid(votes)
    assert len(votes.slots.coordinate) and laid(votes)


@pytest.mark.parametrize("whole_first", [True, False])
def test_parts_share_the_slots_of_the_whole_whoever_asks_first(whole_first):
    votes = random_votes(0, n_users=9, n_votes=40)
    part = votes.subset(votes.user < 4)
    smaller = part.subset(part.outcome != 0)
    asked = (votes, part, smaller) if whole_first else (smaller, part, votes)
    assert len({id(each.slots) for each in asked}) == 1
    rows = np.flatnonzero((votes.user < 4) & (votes.outcome != 0))
    np.testing.assert_array_equal(smaller.left_slot, votes.left_slot[rows])
    np.testing.assert_array_equal(smaller.right_slot, votes.right_slot[rows])


@pytest.mark.parametrize("seed", range(3))
def test_keys_too_large_to_be_sorted_with_their_rows_give_the_same_slots(seed, monkeypatch):
    packed = random_votes(seed, n_users=20, n_items=9, n_votes=300)
    assert laid(packed) or len(packed.edges.first)
    monkeypatch.setattr(comparisons, "PACKED_BITS", 0)
    assert_same(random_votes(seed, n_users=20, n_items=9, n_votes=300), packed)


@pytest.mark.parametrize("link", [Logistic(), Probit()])
@pytest.mark.parametrize("tie_share, delta", [(0.3, 1e-3), (0.0, 1e-3), (0.1, 1.0)])
def test_many_items_are_fitted_as_few_are(link, tie_share, delta, monkeypatch):
    votes = random_votes(1, n_items=12, n_votes=400, tie_share=tie_share, weighted=True)
    few = fit_consensus(votes, link, delta)
    monkeypatch.setattr(ridge, "MOST_DENSE", 0)
    np.testing.assert_allclose(fit_consensus(votes, link, delta), few, atol=1e-9)


def test_a_long_chain_of_close_contests_is_fitted_to_the_end():
    # Each item meets the next alone, so that what is known of distant ones travels step by step.
    n_items = 300
    left, right = np.arange(n_items - 1).repeat(10), np.arange(1, n_items).repeat(10)
    outcome = np.tile([1, 1, 1, 1, 1, 0, 0, -1, -1, -1], n_items - 1)
    votes = Comparisons.from_arrays(np.zeros(len(left), dtype=int), left, right, outcome)
    scores = fit_consensus(votes, Logistic())[:-1]
    steps = -np.diff(scores)
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
