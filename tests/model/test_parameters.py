"""Parameters of consensus and users, asked for by name."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons
from isplitlbi.data.layout import THRESHOLD, Layout, Shown, Vector
from isplitlbi.kernels import Problem
from isplitlbi.kernels import numpy_loops as plain
from isplitlbi.model.parameters import Consensus, Parameters
from isplitlbi.model.terms import PAPER, Terms
from traits import TRAITS, Leftmost, Newest, terms_with
from votes import from_rows
from votes import rows as vote_rows

some_terms = st.sampled_from([terms_with(*traits) for traits in TRAITS.values()])

VOTES = Comparisons.from_arrays(
    user=["ann", "ann", "bob"],
    left=["a", "b", "c"],
    right=["b", "d", "d"],
    outcome=[1, 0, -1],
)
LAYOUT = Layout.of(VOTES)
# Ann compared a, b, d; Bob c, d. Deviations in the order of the slots, thresholds last.
PARAMETERS = Parameters(
    LAYOUT.vector,
    LAYOUT.slots,
    consensus=np.array([1.0, 2.0, 3.0, 4.0, 0.5]),
    deviation=np.array([0.1, 0.2, -0.4, 0.25, -3.0, 4.0, -0.1]),
)


def random_parameters(votes, seed=0, terms=PAPER):
    rng, layout = np.random.default_rng(seed), Layout.of(votes, terms.traits)
    values = rng.normal(size=layout.vector.width), rng.normal(size=layout.n_slots)
    return Parameters(layout.vector, layout.slots, *values, terms)


def dense(parameters):
    """Every user's own vector as a table, built one slot after another."""
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


def test_nobody_in_particular_has_the_consensus_and_compared_nothing():
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


@given(vote_rows, some_terms)
def test_every_way_to_ask_gives_the_same_numbers(rows, terms):
    votes = from_rows(rows)
    parameters = random_parameters(votes, terms=terms)
    table, vector = dense(parameters), parameters.vector
    n_users, n_items = votes.n_users, votes.n_items
    np.testing.assert_array_equal(parameters.consensus + parameters.table(), table)
    for user in range(n_users):
        np.testing.assert_array_equal(parameters.of_user(user).values, table[user])
        np.testing.assert_array_equal(parameters.scores_of(user), table[user, :n_items])
        assert parameters.threshold_of(user) == table[user, vector.threshold]
    for name in vector.traits:
        np.testing.assert_array_equal(parameters.all_of(name), table[:, vector.place(name)])
    user, left, right = (
        part.ravel() for part in np.meshgrid(range(n_users), range(n_items), range(n_items))
    )
    margin, threshold = parameters.margin_and_threshold(user, left, right)
    expected = table[user, left] - table[user, right]
    for trait in terms.traits:
        expected += trait.column(Shown(left, right)) * table[user, vector.place(trait.name)]
    np.testing.assert_allclose(margin, expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(threshold, table[user, vector.threshold])


@given(vote_rows, some_terms, st.integers(0, 99))
def test_layouts_and_parameters_see_the_same_margins(rows, terms, seed):
    votes = from_rows(rows)
    parameters = random_parameters(votes, seed, terms)
    part = votes.subset(np.random.default_rng(seed).random(len(votes)) < 0.7)
    for some in (votes, part):
        layout = Layout.of(some, terms.traits)
        edges, item = layout.edges, layout.slots.coordinate
        asked = edges.owner, item[edges.first], item[edges.second]
        expected = parameters.margin_and_threshold(*asked)
        own = parameters.consensus[item] + parameters.deviation
        np.testing.assert_allclose(layout.margins(own), expected, rtol=1e-13, atol=1e-14)
        state = parameters.consensus, parameters.deviation
        found = plain.margins(Problem.of(layout, 1e-3, terms), *state)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@given(vote_rows, some_terms)
def test_the_distance_to_the_consensus_is_the_norm_of_the_score_deviations(rows, terms):
    votes = from_rows(rows)
    parameters = random_parameters(votes, terms=terms)
    before = parameters.deviation.copy()
    expected = [
        np.linalg.norm(parameters.scores_of(user) - parameters.common.scores)
        for user in range(votes.n_users)
    ]
    assert parameters.distance_to_consensus() == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(parameters.deviation, before)


def test_a_threshold_of_ones_own_is_no_distance():
    only_threshold = np.zeros(7)
    only_threshold[LAYOUT.slots.threshold] = 9.0
    parameters = replace(PARAMETERS, deviation=only_threshold)
    assert parameters.distance_to_consensus().tolist() == [0.0, 0.0]


def test_asking_changes_nothing():
    consensus, deviation = PARAMETERS.consensus.copy(), PARAMETERS.deviation.copy()
    PARAMETERS.scores_of(0)[:] = 99.0
    PARAMETERS.scores_of(-1)[:] = 99.0
    np.testing.assert_array_equal(PARAMETERS.consensus, consensus)
    np.testing.assert_array_equal(PARAMETERS.deviation, deviation)


def test_a_consensus_tells_its_parts_by_name():
    vector = Vector(2, ("leftmost", THRESHOLD))
    consensus = Consensus(vector, np.array([0.5, -0.5, 0.1, 0.7]))
    assert consensus.scores.tolist() == [0.5, -0.5]
    assert consensus.threshold == consensus.trait(THRESHOLD) == 0.7
    assert consensus.trait("leftmost") == 0.1
    assert isinstance(consensus.threshold, float)
    with pytest.raises(ValueError, match="not in tuple"):
        consensus.trait("newest")


def test_nobody_deviates_from_a_consensus_alone():
    common = PARAMETERS.common
    nobody = Parameters.of_consensus(VOTES, common)
    assert not nobody.deviation.any()
    assert nobody.common.scores.tolist() == [1.0, 2.0, 3.0, 4.0]
    for user in (-1, 0, 1):
        assert nobody.scores_of(user).tolist() == common.scores.tolist()
    assert nobody.all_of(THRESHOLD).tolist() == [0.5, 0.5]
    assert nobody.distance_to_consensus().tolist() == [0.0, 0.0]


def test_a_trait_changes_the_margin_of_who_has_it():
    terms = terms_with(Leftmost(), Newest())
    layout = Layout.of(VOTES, terms.traits)
    consensus = np.array([1.0, 2.0, 3.0, 4.0, 0.25, 0.0, 0.5])
    parameters = Parameters(layout.vector, layout.slots, consensus, np.zeros(layout.n_slots), terms)
    back = layout.slots.threshold[0] - 2
    parameters.deviation[back] = 3.0  # Ann looks to the left
    user, left, right = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 1], [-1, 0, 1]]).T
    margin, _ = parameters.margin_and_threshold(user, left, right)
    assert margin.tolist() == [2.25, 4.25, -0.75, -0.75]
    assert parameters.all_of("leftmost").tolist() == [3.25, 0.25]
    assert parameters.distance_to_consensus().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("has_ties", [True, False])
@given(rows=vote_rows, seed=st.integers(0, 99))
def test_with_all_terms_loops_and_parameters_see_the_same(has_ties, rows, seed):
    votes, rng = from_rows(rows), np.random.default_rng(seed)
    terms = Terms.named("all", has_ties=has_ties).referring(rng.normal(size=votes.n_items))
    terms = terms.sized({"sharpness": 0.5, "side": 2.0} | ({"threshold": 0.3} if has_ties else {}))
    layout = terms.layout(votes)
    values = rng.normal(size=layout.vector.width), rng.normal(size=layout.n_slots)
    parameters = Parameters(layout.vector, layout.slots, *values, terms)
    parameters.consensus[layout.vector.place("sharpness")] = 0.0  # there is none in common
    edges, item = layout.edges, layout.slots.coordinate
    asked = edges.owner, item[edges.first], item[edges.second]
    margin, threshold = parameters.margin_and_threshold(*asked)
    found, level = plain.margins(Problem.of(layout, 0.0, terms), *values)
    np.testing.assert_allclose(found, margin, rtol=1e-12, atol=1e-12)
    if has_ties:
        np.testing.assert_allclose(np.exp(level), threshold, rtol=1e-12)
    else:
        assert not threshold.any()
    for user in range(votes.n_users):
        own = parameters.of_user(user)
        mine = edges.owner == user
        one, other = own.margin_and_threshold(*(each[mine] for each in asked[1:]))
        np.testing.assert_allclose(one, margin[mine], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(other, threshold[mine], rtol=1e-12)
