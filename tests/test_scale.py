"""What is done for speed only must not show in any result."""

import numpy as np
import pytest

from isplitlbi import Comparisons
from isplitlbi.data import layout
from isplitlbi.model.links import Logistic
from isplitlbi.solvers import fit_consensus
from votes import random_votes


def test_a_consensus_never_pays_for_slots(monkeypatch):
    votes = random_votes(0, n_votes=200, weighted=True)
    asked = []
    monkeypatch.setattr(layout, "_lay_out", lambda votes, *_: asked.append(votes))
    fit_consensus(votes, Logistic())
    fit_consensus(votes.subset(votes.user > 0), Logistic())
    assert not asked


@pytest.mark.parametrize("seed", range(3))
def test_keys_too_large_to_be_sorted_with_their_rows_give_the_same_slots(seed, monkeypatch):
    packed = random_votes(seed, n_users=20, n_items=9, n_votes=300)
    edges = layout.Layout.of(packed).edges
    monkeypatch.setattr(layout, "PACKED_BITS", 0)
    others = layout.Layout.of(random_votes(seed, n_users=20, n_items=9, n_votes=300)).edges
    for one, other in zip(edges, others, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_long_chain_of_close_contests_is_fitted_to_the_end():
    # Each item meets the next alone, so that what is known of distant ones travels step by step.
    n_items = 300
    left, right = np.arange(n_items - 1).repeat(10), np.arange(1, n_items).repeat(10)
    outcome = np.tile([1, 1, 1, 1, 1, 0, 0, -1, -1, -1], n_items - 1)
    votes = Comparisons.from_arrays(np.zeros(len(left), dtype=int), left, right, outcome)
    scores = fit_consensus(votes, Logistic()).scores
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
