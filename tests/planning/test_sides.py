"""Which item stands on the left."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.planning.sides import Sides

PAIRS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=80
)


def put_all(sides, asked):
    """Put pairs on sides: of a user, an item, and how far the other is from it."""
    return [(user, *sides.put(user, one, (one + step) % 5)) for user, one, step in asked]


def more_often_left(shown):
    found = Counter()
    for user, left, right in shown:
        found[user, left] += 1
        found[user, right] -= 1
    return found


@given(PAIRS)
def test_a_pair_stays_a_pair_and_is_counted(asked):
    sides = Sides()
    shown = put_all(sides, asked)
    for (user, left, right), (who, one, step) in zip(shown, asked, strict=True):
        assert (user, {left, right}) == (who, {one, (one + step) % 5})
    assert sides.of_user == more_often_left(shown)
    in_all = Counter()
    for (_, item), more in sides.of_user.items():
        in_all[item] += more
    assert sides.of_all == in_all


@given(PAIRS)
def test_every_user_sees_every_item_about_as_often_on_the_left(asked):
    assert max(abs(more) for more in more_often_left(put_all(Sides(), asked)).values()) <= 4


def test_one_pair_changes_sides_every_time():
    sides = Sides()
    assert put_all(sides, [(0, 1, 1)] * 4) == [(0, 1, 2), (0, 2, 1)] * 2


def test_what_the_user_has_seen_decides_and_then_what_all_have():
    sides = Sides.of(np.array([0, 1, 1]), np.array([7, 8, 8]), np.array([8, 9, 9]))
    assert sides.put(0, 7, 8) == (8, 7)  # here it was on the right, though more often left in all
    assert sides.put(2, 8, 9) == (9, 8)  # this user has seen neither


def test_votes_that_are_there_count_as_if_they_had_been_put():
    asked = [(0, 1, 1), (0, 2, 1), (1, 1, 2), (0, 1, 2)]
    whole = Sides()
    shown = put_all(whole, asked)
    again = Sides.of(*(np.array(column) for column in zip(*shown, strict=True)))
    assert (again.of_user, again.of_all) == (whole.of_user, whole.of_all)
    assert again.put(0, 1, 2) == whole.put(0, 1, 2)
