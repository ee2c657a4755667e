"""What to ask where there are no votes yet."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from isplitlbi.planning.asking import Parts
from isplitlbi.planning.design import first_design

DESIGNS = st.tuples(
    st.integers(2, 13), st.integers(1, 8), st.integers(1, 150), st.integers(0, 1_000)
)


def counts(n_items, *sides):
    return sum(np.bincount(side, minlength=n_items) for side in sides)


def pairs_of(design, rows):
    return np.sort(np.stack([design.left[rows], design.right[rows]], axis=1), axis=1)


@given(DESIGNS)
def test_every_item_is_asked_about_as_often(settings):
    n_items, *_ = settings
    design = first_design(*settings)
    found = counts(n_items, design.left, design.right)
    assert np.all(design.left != design.right)
    assert found.max() - found.min() <= (2 if n_items % 2 else 1)


@given(DESIGNS)
def test_every_user_is_asked_for_as_many_votes_and_one_after_another(settings):
    n_items, n_users, n_votes, seed = settings
    design = first_design(n_items, n_users, n_votes, seed)
    assert len(design.user) == len(design.left) == len(design.right) == n_votes
    blocks = np.bincount(design.user, minlength=n_users)
    assert len(blocks) == n_users and blocks.max() - blocks.min() <= 1
    assert_array_equal(design.user, np.sort(design.user))


@given(DESIGNS)
def test_items_stand_on_either_side_about_as_often(settings):
    n_items, n_users, *_ = settings
    design = first_design(*settings)
    more_left = counts(n_items, design.left) - counts(n_items, design.right)
    assert np.abs(more_left).max() <= 6
    for user in range(n_users):
        rows = design.user == user
        more_left = counts(n_items, design.left[rows]) - counts(n_items, design.right[rows])
        assert np.abs(more_left).max() <= 4


def test_items_stand_on_either_side_about_as_often_for_many_users_with_short_blocks():
    for seed in range(5):
        design = first_design(5, 20, 100, seed)
        assert np.abs(counts(5, design.left) - counts(5, design.right)).max() <= 6


@given(st.integers(2, 20), st.integers(1, 8), st.integers(0, 1_000))
def test_two_rounds_connect_all_items(n_items, n_users, seed):
    design = first_design(n_items, n_users, 2 * (n_items // 2), seed)
    assert Parts(n_items, design.left, design.right).n_parts == 1


@given(st.integers(2, 12), st.integers(0, 1_000), st.integers(1, 3))
def test_after_all_rounds_every_pair_was_asked_as_often(n_items, seed, times):
    n_pairs = n_items * (n_items - 1) // 2
    design = first_design(n_items, 1, times * n_pairs, seed)
    _, found = np.unique(pairs_of(design, slice(None)), axis=0, return_counts=True)
    assert_array_equal(found, np.full(n_pairs, times))


@given(DESIGNS)
def test_nobody_is_asked_about_a_pair_twice_where_there_are_enough_pairs(settings):
    n_items, n_users, *_ = settings
    design = first_design(*settings)
    for user in range(n_users):
        rows = design.user == user
        if rows.sum() <= n_items * (n_items - 1) // 2:
            assert len(np.unique(pairs_of(design, rows), axis=0)) == rows.sum()


@given(st.integers(2, 12), st.integers(1, 8), st.integers(0, 1_000))
def test_nobody_is_asked_about_a_pair_twice_where_all_votes_are_one_turn(n_items, n_users, seed):
    n_pairs = n_items * (n_items - 1) // 2
    design = first_design(n_items, n_users, n_pairs, seed)
    assert len(np.unique(pairs_of(design, slice(None)), axis=0)) == n_pairs


def test_a_seed_gives_one_design_and_another_seed_another():
    one, same, other = (np.array(first_design(8, 3, 40, seed)) for seed in (1, 1, 2))
    assert_array_equal(one, same)
    assert np.any(one != other)


def test_there_may_be_more_users_than_votes_and_no_votes_at_all():
    assert len(np.unique(first_design(5, 20, 7).user)) == 7
    assert all(len(column) == 0 for column in first_design(5, 2, 0))
