"""What users answered, and what a consensus expects."""

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowds import consensus_of
from isplitlbi.abnormal import find_telling_votes
from isplitlbi.abnormal.expectation import Answers, Expectation
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.model.links import LINKS, Logistic
from votes import random_votes, rebuilt


def test_votes_collapse_per_user_pair_side_and_weight():
    votes = Comparisons.from_arrays(
        ["u", "u", "u", "u", "u", "v"],
        ["a", "a", "b", "a", "a", "a"],
        ["b", "b", "a", "b", "b", "b"],
        [1, -1, 1, 1, 0, 0],
        [1.0, 1.0, 1.0, 1.0, 2.5, 1.0],
    ).in_weight_unit(1.0)
    answers = Answers.of(votes)
    rows = zip(answers.user, answers.left, answers.right, answers.weight, strict=True)
    assert {row: counts.tolist() for row, counts in zip(rows, answers.counts, strict=True)} == {
        (0, 0, 1, 1.0): [2, 0, 1],
        (0, 0, 1, 2.5): [0, 1, 0],
        (0, 1, 0, 1.0): [1, 0, 0],
        (1, 0, 1, 1.0): [0, 1, 0],
    }
    assert answers.start.tolist() == [0, 3, 4]
    assert answers.n_votes.tolist() == [3, 1, 1, 1]


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_sum_to_the_votes_of_every_user(weighted):
    votes = random_votes(0, n_votes=200, weighted=weighted)
    answers = Answers.of(votes)
    n_votes = answers.n_votes.astype(float)
    assert_array_equal(answers.sum_by_user(n_votes), votes.votes_per_user)
    for place, outcome in enumerate((1, 0, -1)):
        assert answers.counts[:, place].sum() == np.sum(votes.outcome == outcome)
    for user in range(votes.n_users):
        mine = slice(*answers.start[user : user + 2])
        assert set(answers.user[mine]) == {user}


def test_a_user_without_votes_has_no_answers():
    votes = random_votes(0)
    answers = Answers.of(votes.subset(votes.user != 2))
    assert np.diff(answers.start)[2] == 0
    assert np.diff(answers.start).sum() == len(answers.user)
    assert answers.sum_by_user(answers.n_votes.astype(float))[2] == 0.0


@pytest.mark.parametrize("weighted", [False, True])
def test_answers_do_not_depend_on_the_order_of_rows(weighted):
    votes = random_votes(1, n_votes=200, weighted=weighted)
    order = np.random.default_rng(0).permutation(len(votes))
    _assert_same_answers(Answers.of(votes), Answers.of(rebuilt(votes, order)))


def test_the_side_on_which_an_item_was_shown_is_kept_apart():
    votes = random_votes(2, n_votes=300)
    answers, swapped = Answers.of(votes), Answers.of(rebuilt(votes, swapped=True))
    assert len(answers.user) > len(Layout.of(votes).edges.first)
    consensus = consensus_of([1.0, 0.5, -0.5, 2.0], 0.7)
    by_pair = {tuple(row): counts for *row, counts in _rows(answers)}
    assert by_pair == {(u, j, i): counts[::-1] for u, i, j, counts in _rows(swapped)}
    assert set(answers.margin(consensus)) == set(-swapped.margin(consensus))
    item = votes.items.tolist().index("i3")
    assert_array_equal(answers.margin(consensus)[answers.left == item] > 0, True)


def _rows(answers):
    columns = (answers.user, answers.left, answers.right)
    return zip(*(c.tolist() for c in columns), map(tuple, answers.counts.tolist()), strict=True)


@pytest.fixture(scope="module", params=LINKS)
def expectation(request):
    answers = Answers.of(random_votes(3, n_items=6, n_votes=150))
    consensus = consensus_of(np.random.default_rng(0).normal(0, 0.5, 6), 0.3)
    link = LINKS[request.param]()
    return Expectation.of(answers, consensus, link), answers.margin(consensus), 0.3, link


def test_expected_probabilities_sum_to_one(expectation):
    expected, margin, threshold, link = expectation
    assert_allclose(expected.probability.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(np.log(expected.probability), link.log_probabilities(margin, threshold))
    assert_array_equal(expected.margin, margin)


def test_slopes_are_those_of_the_log_probabilities(expectation):
    expected, margin, threshold, link = expectation
    h = 1e-6
    assert_allclose(expected.level, np.log(threshold))
    for slope, (dm, dl) in ((expected.by_margin, (h, 0.0)), (expected.by_level, (0.0, h))):
        above = link.log_probabilities(margin + dm, threshold * np.exp(dl))
        below = link.log_probabilities(margin - dm, threshold * np.exp(-dl))
        assert_allclose(slope, (above - below) / (2 * h), rtol=1e-5, atol=1e-6)


def test_the_expected_slope_is_zero(expectation):
    expected, *_ = expectation
    for slope in (expected.by_margin, expected.by_level):
        assert np.abs(slope).max() > 0.1
        assert_allclose(np.sum(expected.probability * slope, axis=1), 0.0, atol=1e-12)


# --- votes that tell ------------------------------------------------------------------------


def test_the_telling_votes_of_every_user_are_those_the_consensus_least_expected():
    votes = random_votes(4, n_votes=200)
    consensus = consensus_of([1.0, 0.5, -0.5, 2.0], 0.7)
    told = find_telling_votes(votes, Logistic(), consensus, most=3)
    answers = Answers.of(votes)
    chance = Expectation.of(answers, consensus, Logistic()).probability
    assert np.all(np.diff(told.user) >= 0)
    for user in range(votes.n_users):
        mine, its = answers.of_user(user), told.user == user
        said = answers.counts[mine] > 0
        assert_allclose(told.probability[its], np.sort(chance[mine][said])[:3])
        for left, right, outcome, times in zip(
            told.left[its], told.right[its], told.outcome[its], told.times[its], strict=True
        ):
            rows = (votes.user == user) & (votes.left == left) & (votes.right == right)
            assert np.sum(rows & (votes.outcome == outcome)) == times


def _assert_same_answers(one, other):
    for name in {field.name for field in fields(Answers)} - {"columns"}:
        here, there = getattr(one, name), getattr(other, name)
        assert (here is None) == (there is None), name
        if here is not None:
            assert_array_equal(here, there, err_msg=name, strict=True)
    assert one.columns.keys() == other.columns.keys()
    for name, column in one.columns.items():
        assert_array_equal(column, other.columns[name], strict=True)
