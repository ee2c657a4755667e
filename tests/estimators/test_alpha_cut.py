"""Ties by abstention: ensembles find the common order, and cuts make partial orders."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.stats import kendalltau

from isplitlbi import AlphaCut, Comparisons
from isplitlbi.estimators.alpha_cut import LEARNERS, Sample, least_acyclic
from studies import FEW, drawn_by_users

every_learner = pytest.mark.parametrize("learner", LEARNERS)


@pytest.fixture(scope="module")
def fitted(votes):
    return AlphaCut("svm-ridge", **FEW).fit(votes)


@every_learner
def test_every_ensemble_finds_the_common_order(learner):
    scores = np.random.default_rng(1).permutation(np.linspace(-4.0, 4.0, 6))
    votes = drawn_by_users(scores)
    model = AlphaCut(learner, **FEW).fit(votes)
    assert kendalltau(model.degree_.sum(axis=1), scores).statistic > 0.9
    better = scores[:, None] - scores > 1.0
    first, second = np.nonzero(better)
    asked = np.column_stack([np.zeros_like(first), first, second])
    assert np.mean(model.predict(asked) == 1) > 0.9


@pytest.mark.parametrize(("family", "strength"), [("lr", 0.03), ("svm", 0.1), ("ls", 0.1)])
def test_a_lasso_makes_scores_equal_where_a_ridge_does_not(family, strength):
    sample = Sample.of(drawn_by_users(np.linspace(-0.5, 0.5, 6)))
    lasso, ridge = (LEARNERS[f"{family}-{kind}"](sample, strength) for kind in ("lasso", "ridge"))
    assert 0 < np.sum(lasso == 0.0) < 6
    assert np.all(ridge != 0.0)
    stronger = LEARNERS[f"{family}-ridge"](sample, 10 * strength)
    assert np.abs(stronger).sum() < np.abs(ridge).sum()


def test_another_seed_gives_another_ensemble(fitted, votes):
    other = AlphaCut("svm-ridge", **FEW, random_state=1).fit(votes)
    assert not np.array_equal(other.degree_, fitted.degree_)


def test_an_ensemble_has_no_probabilities(fitted):
    assert not hasattr(fitted, "predict_proba")
    assert not hasattr(fitted, "predict_log_proba")


def is_acyclic(relation):
    n_parts, _ = connected_components(relation, directed=True, connection="strong")
    return n_parts == len(relation) and not np.diagonal(relation).any()


def agreement(*members):
    """Count how many members, each an order of items from the best, put a row before a column."""
    votes_for = np.zeros((len(members[0]),) * 2, dtype=np.int64)
    for member in members:
        place = np.argsort(member)
        votes_for += place[:, None] < place
    return votes_for


@pytest.mark.parametrize("learner", ["ls-ridge", "ls-lasso", "svm-lasso"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_degrees_and_cut_make_a_partial_order(learner, seed):
    # Scores so close that members disagree.
    votes = drawn_by_users(np.linspace(-0.1, 0.1, 7), n_votes=150, seed=seed)
    model = AlphaCut(learner, **FEW).fit(votes)
    both = model.degree_ + model.degree_.T
    assert both.max() <= 1.0 + 1e-12
    assert not np.diagonal(model.degree_).any()
    assert np.any((model.degree_ > 0) & (model.degree_ < 1))
    assert 0.5 < model.alpha_ <= 1.0
    assert is_acyclic(model.degree_ >= model.alpha_)
    assert model.penalty_ in FEW["penalties"]


def test_votes_in_a_circle_do_not_give_preferences_in_a_circle():
    first = np.tile(np.arange(3), 8)
    user, outcome = np.arange(24) % 4, np.where(np.arange(24) % 5, 1, -1)
    votes = Comparisons.from_arrays(user, first, (first + 1) % 3, outcome)
    circles = 0
    for seed in range(12):
        settings = FEW | {"penalties": [0.01], "n_members": 5, "random_state": seed}
        model = AlphaCut("ls-ridge", **settings).fit(votes)
        assert is_acyclic(model.degree_ >= model.alpha_)
        circles += not is_acyclic(model.degree_ >= 3 / 5)
    assert circles > 0


def test_the_cut_is_raised_until_preferences_run_in_no_circle():
    cycle = [0, 1, 2], [1, 2, 0], [2, 0, 1]
    assert least_acyclic(agreement(*cycle)) == 3
    assert not is_acyclic(agreement(*cycle) >= 2)
    # One more voice for the first order breaks the circle at its weakest link.
    four = agreement(*cycle, [0, 1, 2])
    assert least_acyclic(four) == 3
    assert is_acyclic(four >= 3)
    assert not is_acyclic(agreement(*cycle, *cycle) >= 4)
    assert least_acyclic(agreement(*cycle, *cycle)) == 5


@pytest.mark.parametrize(("n_members", "least"), [(1, 1), (2, 2), (5, 3), (20, 11)])
def test_members_who_agree_need_no_more_than_half(n_members, least):
    assert least_acyclic(agreement(*[[2, 0, 1]] * n_members)) == least


def test_members_who_prefer_nothing_need_no_more_than_one():
    assert least_acyclic(np.zeros((4, 4), dtype=np.int64)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_least_acyclic_cut_is_the_least(seed):
    rng = np.random.default_rng(seed)
    votes_for = agreement(*(rng.permutation(6) for _ in range(9)))
    least = least_acyclic(votes_for)
    levels = [level for level in range(5, 10) if is_acyclic(votes_for >= level)]
    assert least == levels[0]
    assert levels == list(range(least, 10))


def test_where_members_disagree_there_is_a_tie():
    # One clear winner, and two items that mostly tie; where they do not, a coin decides.
    rows = [("u", "best", "one", 1), ("u", "best", "two", 1)] * 20
    rows += [("u", "one", "two", outcome) for outcome in (1, -1, 0, 0, 0)] * 6
    model = AlphaCut("ls-ridge", n_members=20, n_folds=2).fit(
        Comparisons.from_arrays(*zip(*rows, strict=True))
    )
    best, one, two = 0, 1, 2
    assert 0.0 < model.degree_[one, two] < model.alpha_
    assert 0.0 < model.degree_[two, one] < model.alpha_
    assert model.degree_[best, [one, two]].tolist() == [1.0, 1.0]
    asked = [("u", "one", "two"), ("u", "best", "one"), ("u", "two", "best")]
    assert model.predict(asked).tolist() == [0, 1, -1]


def test_an_ensemble_predicts_what_reaches_its_cut(fitted, votes):
    model = fitted
    items = votes.items.tolist()
    for a, left in enumerate(items):
        for b, right in enumerate(items):
            before, after = model.degree_[[a, b], [b, a]] >= model.alpha_
            assert model.predict([("user-01", left, right)]) == int(before) - int(after)


def test_an_agreement_that_just_reaches_the_cut_is_a_preference(votes):
    model = AlphaCut("ls-ridge", **FEW).fit(votes)
    pair = [("user-01", "item-01", "item-02"), ("user-01", "item-02", "item-01")]
    for alpha, answer in ((3 / 5, [1, -1]), (4 / 5, [0, 0])):
        model.degree_, model.alpha_ = np.array([[0.0, 3 / 5], [2 / 5, 0.0]]), alpha
        assert model.predict(pair).tolist() == answer


def test_an_unknown_learner_is_an_error_that_names_the_known_ones(votes):
    with pytest.raises(ValueError, match=r"learner 'forest' is not one of lr-lasso, .*svr-ridge"):
        AlphaCut("forest").fit(votes)


def test_votes_collapse_to_one_row_per_pair_and_outcome():
    votes = Comparisons.from_arrays(
        ["u", "v", "u", "v"], ["a", "b", "b", "c"], ["b", "a", "a", "b"], [1, -1, 0, 1]
    )
    sample = Sample.of(votes)
    counted = {
        (int(a), int(b), int(outcome)): weight
        for a, b, outcome, weight in zip(*sample[1:], strict=True)
        if weight
    }
    assert counted == {(0, 1, 1): 2.0, (0, 1, 0): 1.0, (1, 2, -1): 1.0}
    weighted = Sample.of(replace(votes, weight=np.array([1.0, 2.0, 0.5, 1.0])))
    np.testing.assert_array_equal(weighted.outcome, sample.outcome)
    assert weighted.weight[sample.weight > 0].tolist() == [3.0, 0.5, 1.0]
    signs = sample.differences.toarray()
    np.testing.assert_array_equal(signs.sum(axis=1), 0.0)
    np.testing.assert_array_equal(signs[np.arange(len(signs)), sample.first], 1.0)


def test_a_tie_counts_half_for_either_side_and_every_vote_as_much_as_before():
    votes = Comparisons.from_arrays(["u"] * 3, ["a"] * 3, ["b"] * 3, [1, 1, 0])
    decided = Sample.of(votes).decided()
    assert decided.weight.sum() == 3.0
    won = {
        (int(a), int(b), int(outcome)): 0.0
        for a, b, outcome in zip(decided.first, decided.second, decided.outcome, strict=True)
    }
    for a, b, outcome, weight in zip(*decided[1:], strict=True):
        won[int(a), int(b), int(outcome)] += weight
    assert won == {(0, 1, 1): 1.25, (1, 0, -1): 1.25, (1, 0, 1): 0.25, (0, 1, -1): 0.25}


def test_a_draw_has_as_many_votes_as_there_were():
    sample = Sample.of(drawn_by_users(np.zeros(4), n_votes=90))
    one, other = (sample.drawn(90, np.random.default_rng(seed)) for seed in (0, 1))
    assert one.weight.sum() == other.weight.sum() == 90.0
    assert not np.array_equal(one.weight, other.weight)
    existing = {row for row in zip(*sample[1:4], strict=True)}
    assert set(zip(*one[1:4], strict=True)) <= existing
