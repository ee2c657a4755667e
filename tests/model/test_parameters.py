import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons
from isplitlbi.kernels import numpy_loops as plain
from isplitlbi.model.parameters import Parameters
from votes import from_rows, random_votes
from votes import rows as vote_rows

VOTES = Comparisons.from_arrays(
    user=["ann", "ann", "bob"],
    left=["a", "b", "c"],
    right=["b", "d", "d"],
    outcome=[1, 0, -1],
)
# Ann compared a, b, d; Bob c, d. Deviations in the order of the slots, thresholds last.
PARAMETERS = Parameters(
    VOTES.slots,
    consensus=np.array([1.0, 2.0, 3.0, 4.0, 0.5]),
    deviation=np.array([0.1, 0.2, -0.4, 0.25, -3.0, 4.0, -0.1]),
)


def random_parameters(votes, seed=0):
    rng = np.random.default_rng(seed)
    consensus = rng.normal(size=votes.n_items + 1)
    return Parameters(votes.slots, consensus, rng.normal(size=len(votes.slots.coordinate)))


def dense(parameters):
    """Every user's scores and threshold as a table, built one slot after another."""
    table = np.tile(parameters.consensus, (parameters.slots.n_users, 1))
    for user in range(parameters.slots.n_users):
        for slot in range(parameters.slots.start[user], parameters.slots.start[user + 1]):
            table[user, parameters.slots.coordinate[slot]] += parameters.deviation[slot]
    return table


def test_a_user_has_the_consensus_plus_own_deviations():
    assert PARAMETERS.n_items == 4
    assert PARAMETERS.scores_of(0) == pytest.approx([1.1, 2.2, 3.0, 3.6])
    assert PARAMETERS.threshold_of(0) == pytest.approx(0.75)
    assert PARAMETERS.scores_of(1) == pytest.approx([1.0, 2.0, 0.0, 8.0])
    assert PARAMETERS.threshold_of(1) == pytest.approx(0.4)
    assert isinstance(PARAMETERS.threshold_of(1), float)


def test_an_item_never_compared_has_exactly_the_consensus_score():
    assert PARAMETERS.scores_of(0)[2] == 3.0
    assert PARAMETERS.scores_of(1)[:2].tolist() == [1.0, 2.0]
    assert PARAMETERS.compared_by(0).tolist() == [True, True, False, True]
    assert PARAMETERS.compared_by(1).tolist() == [False, False, True, True]


def test_an_unknown_user_has_the_consensus_and_compared_nothing():
    assert PARAMETERS.scores_of(-1).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert PARAMETERS.threshold_of(-1) == 0.5
    assert not PARAMETERS.compared_by(-1).any()
    margin, threshold = PARAMETERS.margin_and_threshold(
        np.array([-1, -1]), np.array([3, 0]), np.array([0, 2])
    )
    assert margin.tolist() == [3.0, -2.0] and threshold.tolist() == [0.5, 0.5]


def test_margins_of_any_pair_use_the_consensus_where_the_user_never_compared():
    user, left, right = np.array([[0, 2, 0], [0, 3, 1], [1, 0, 1], [1, 3, 0]]).T
    margin, threshold = PARAMETERS.margin_and_threshold(user, left, right)
    assert margin == pytest.approx([3.0 - 1.1, 3.6 - 2.2, -1.0, 8.0 - 1.0])
    assert threshold == pytest.approx([0.75, 0.75, 0.4, 0.4])


def test_no_pairs_give_no_margins():
    nothing = np.array([], dtype=np.int32)
    margin, threshold = PARAMETERS.margin_and_threshold(nothing, nothing, nothing)
    assert len(margin) == len(threshold) == 0


@given(vote_rows)
def test_every_way_to_ask_gives_the_same_numbers(rows):
    votes = from_rows(rows)
    parameters = random_parameters(votes)
    table = dense(parameters)
    n_users, n_items = votes.n_users, votes.n_items
    for user in range(n_users):
        np.testing.assert_array_equal(parameters.scores_of(user), table[user, :-1])
        assert parameters.threshold_of(user) == table[user, -1]
    user, left, right = (
        part.ravel() for part in np.meshgrid(range(n_users), range(n_items), range(n_items))
    )
    margin, threshold = parameters.margin_and_threshold(user, left, right)
    np.testing.assert_array_equal(margin, table[user, left] - table[user, right])
    np.testing.assert_array_equal(threshold, table[user, -1])


@given(vote_rows, st.integers(0, 99))
def test_the_slots_of_votes_are_those_of_their_users_and_pairs(rows, seed):
    votes = from_rows(rows)
    parameters = random_parameters(votes, seed)
    part = votes.subset(np.random.default_rng(seed).random(len(votes)) < 0.7)
    for some in (votes, part):
        own = parameters.consensus[some.slots.coordinate] + parameters.deviation
        threshold = own[some.slots.threshold][some.user]
        found = own[some.left_slot] - own[some.right_slot], threshold
        expected = parameters.margin_and_threshold(some.user, some.left, some.right)
        np.testing.assert_array_equal(found, expected)


def test_kernels_and_parameters_see_the_same_margins():
    votes = random_votes(0, n_users=6, n_items=5, n_votes=100)
    parameters = random_parameters(votes)
    edges, item = votes.edges, votes.slots.coordinate
    found = plain.margins(votes.slots, edges, parameters.consensus, parameters.deviation)
    expected = parameters.margin_and_threshold(edges.owner, item[edges.first], item[edges.second])
    np.testing.assert_array_equal(found, expected)


@given(vote_rows)
def test_the_distance_to_the_consensus_is_the_norm_of_the_score_deviations(rows):
    votes = from_rows(rows)
    parameters = random_parameters(votes)
    before = parameters.deviation.copy()
    expected = [
        np.linalg.norm(parameters.scores_of(user) - parameters.consensus[:-1])
        for user in range(votes.n_users)
    ]
    assert parameters.distance_to_consensus() == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(parameters.deviation, before)


def test_a_threshold_of_ones_own_is_no_distance():
    only_threshold = np.zeros(7)
    only_threshold[VOTES.slots.threshold] = 9.0
    parameters = Parameters(VOTES.slots, PARAMETERS.consensus, only_threshold)
    assert parameters.distance_to_consensus().tolist() == [0.0, 0.0]


def test_asking_changes_nothing():
    consensus, deviation = PARAMETERS.consensus.copy(), PARAMETERS.deviation.copy()
    PARAMETERS.scores_of(0)[:] = 99.0
    PARAMETERS.scores_of(-1)[:] = 99.0
    np.testing.assert_array_equal(PARAMETERS.consensus, consensus)
    np.testing.assert_array_equal(PARAMETERS.deviation, deviation)
