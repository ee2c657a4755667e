"""Groups of the users of a model: what they are called, what is said of them, what is refused."""

import json

import numpy as np
import pytest

from in_camps import model_of, people
from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.errors import ISplitLBIError
from isplitlbi.evaluation.simulate import simulate


@pytest.fixture(scope="module")
def votes():
    return people(2, seed=4, n_users=40, careless=0.1)[0]


@pytest.fixture(scope="module")
def several(votes):
    return model_of(votes).groups(2)


@pytest.fixture(scope="module")
def one():
    return model_of(people(seed=1, n_users=30)[0]).groups(2)


def test_the_table_has_a_row_for_every_user_and_groups_hold_who_is_in_them(several):
    table = several.to_frame("polars")
    assert table.columns == ["user", "group", "sure", "votes"]
    assert table["user"].to_list() == sorted(table["user"])
    for group in several.groups:
        assert table.filter(table["group"] == group.number)["user"].to_list() == group.users
        assert group.n_votes == 40 * len(group.users)
    assert table["group"].null_count() == several.n_unassigned > 0
    sizes = [len(group.users) for group in several.groups]
    assert sizes == sorted(sizes, reverse=True)
    assert repr(several) == f"Groups: 2 ({sizes[0]}, {sizes[1]} users)"


def test_groups_predict_their_members_better_than_one_group_does(several):
    assert all(group.loss < group.loss_of_one for group in several.groups)
    chosen = [row for row in several.tried() if row["chosen"]]
    assert [(row["groups"], row["axes"]) for row in chosen] == [(2, 0)]


def test_pairs_in_opposite_orders_are_so_in_the_rankings(several):
    assert several.turned
    for pair in several.turned:
        places = [
            [group.ranking.items.tolist().index(item) for item in (pair.above, pair.below)]
            for group in (several.groups[number - 1] for number in pair.groups)
        ]
        assert places[0][0] < places[0][1]
        assert places[1][0] > places[1][1]


def test_items_that_stand_elsewhere_come_first_and_their_places_are_those_of_the_ranking(several):
    for group in several.groups:
        assert len(group.others) == 8
        clear = [other.is_clear for other in group.others]
        assert clear == sorted(clear, reverse=True)
        for other in group.others:
            assert group.ranking.items[other.place - 1] == other.item


def test_sentences_say_sizes_tops_and_disagreements(several):
    said = " ".join(several.sentences())
    assert said.startswith("Two groups, of ")
    assert "in no group" in said
    assert "opposite orders" in said
    json.dumps(several.as_dict(), allow_nan=False)


def test_one_group_says_so_with_the_gain_of_more(one):
    assert len(one) == 1
    assert one.sentences()[0].startswith("One group: ")
    assert not one.turned
    assert not one.groups[0].others
    json.dumps(one.as_dict(), allow_nan=False)


def test_the_order_of_the_rows_does_not_matter(votes, several):
    order = np.random.default_rng(0).permutation(len(votes))
    shuffled = Comparisons.from_arrays(
        votes.users[votes.user][order], votes.items[votes.left][order],
        votes.items[votes.right][order], votes.outcome[order],
    )  # fmt: skip
    again = model_of(shuffled).groups(2)
    np.testing.assert_array_equal(again.group, several.group)
    np.testing.assert_array_equal(again.chosen.loss, several.chosen.loss)


def test_at_most_one_group_is_tried_where_that_is_asked_for(votes):
    found = model_of(votes).groups(1)
    assert len(found) == 1
    assert found.sentences()[0] == "One group: more were not tried."


def test_votes_without_ties_with_features_and_weights_are_grouped_too():
    votes = simulate(
        n_users=12, n_items=5, votes_per_user=(15, 15), threshold=None, score_sd=1.0,
        abnormal_share=0.0, features={"length": 1.0}, side=(0.3, 0.2), random_state=0,
    ).votes  # fmt: skip
    votes = votes.changed(weight=np.full(len(votes), 2.0)).in_weight_unit(1.0)
    found = ISplitLBI(time=0.5, times=[0.2], kappa=5.0, with_tests=False).fit(votes).groups(2)
    assert len(found) == 1
    assert found.amount == 2.0 * len(votes)
    assert found.groups[0].ranking.tier is None


@pytest.mark.parametrize("most", [0, 9, 2.5, True, "two"])
def test_a_number_of_groups_that_makes_no_sense_is_refused(votes, most):
    with pytest.raises(ISplitLBIError, match="whole number from 1 to 8"):
        model_of(votes).groups(most)


def test_too_few_votes_are_refused_in_a_sentence():
    with pytest.raises(ISplitLBIError, match="9 users on 8 items are too few to find groups"):
        model_of(people(n_users=9)[0]).groups()


def test_an_anonymous_crowd_has_no_groups():
    model = ISplitLBI().fit(
        Comparisons.from_arrays(None, ["a", "b", "c"] * 9, ["b", "c", "a"] * 9, [1, 1, 0] * 9)
    )
    with pytest.raises(ISplitLBIError, match="nobody who could be in a group"):
        model.groups()
