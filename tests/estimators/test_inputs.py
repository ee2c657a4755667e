"""What goes into an estimator: votes and pairs in every layout, and seeds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import accuracy_score

from isplitlbi import Comparisons, InvalidVotes, ISplitLBI
from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators.inputs import check_seed
from studies import LAYOUTS, QUICK, assert_same_fit


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_pairs_gives_the_fit_and_the_predictions_of_comparisons(
    X, y, votes, quick, layout
):
    pairs = LAYOUTS[layout](X)
    assert_same_fit(ISplitLBI(**QUICK).fit(pairs, y), quick)
    np.testing.assert_array_equal(quick.predict_proba(pairs), quick.predict_proba(votes))


@pytest.mark.parametrize(
    "outcomes", [list, pd.Series, pl.Series, lambda y: y.astype(float)],
    ids=["list", "pandas", "polars", "floats"],
)  # fmt: skip
def test_outcomes_come_in_any_column(X, y, quick, outcomes):
    assert_same_fit(ISplitLBI(**QUICK).fit(X, outcomes(y)), quick)


def test_outcomes_may_be_words_in_fit_and_in_score(X, y, quick):
    words = pd.Series(y).map({1: "left", 0: "tie", -1: "right"})
    fitted = ISplitLBI(**QUICK).fit(X, words)
    assert_same_fit(fitted, quick)
    assert fitted.score(X, words) == quick.score(X, y)


def test_integer_ids_come_back_as_integers(numbered):
    assert numbered.users_.tolist() == [0, 1, 2]
    assert numbered.items_.tolist() == list(range(10, 16))
    best = numbered.ranking().items[-1]
    assert all(type(item) is int for item in numbered.recommend(2, better_than=best))
    assert numbered.predict([(99, 10, 11)]).shape == (1,)


def test_a_weight_of_two_is_the_vote_twice(X, y):
    twice = np.random.default_rng(0).random(len(y)) < 0.3
    weighted = ISplitLBI(**QUICK).fit(X, y, sample_weight=1.0 + twice)
    doubled = ISplitLBI(**QUICK).fit(pd.concat([X, X[twice]]), np.append(y, y[twice]))
    assert_same_fit(weighted, doubled)
    once = ISplitLBI(**QUICK).fit(X, y)
    assert not np.array_equal(weighted.consensus_, once.consensus_)


def test_weights_of_comparisons_count(X, y, rows):
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    votes = Comparisons.from_frame(rows.assign(weight=weight), winner="outcome")
    fitted = ISplitLBI(**QUICK).fit(votes)
    assert_same_fit(fitted, ISplitLBI(**QUICK).fit(X, y, sample_weight=weight))
    expected = accuracy_score(y, fitted.predict(X), sample_weight=weight)
    assert fitted.score(votes) == pytest.approx(expected)
    assert fitted.score(X, y, sample_weight=weight) == pytest.approx(expected)


def test_pairs_without_outcomes_are_an_error(X, quick):
    with pytest.raises(ValueError, match="give y"):
        ISplitLBI().fit(X)
    with pytest.raises(ValueError, match="give y"):
        quick.score(X)


def test_comparisons_with_outcomes_beside_them_are_an_error(votes, y):
    with pytest.raises(ValueError, match="give no y"):
        ISplitLBI().fit(votes, y)
    with pytest.raises(ValueError, match="give no y"):
        ISplitLBI().fit(votes, sample_weight=np.ones(len(y)))


def test_pairs_without_three_columns_are_an_error_that_says_what_was_found(X, y, quick):
    with pytest.raises(InvalidVotes, match="user, left, right; found user, left"):
        ISplitLBI().fit(X[["user", "left"]], y)
    with pytest.raises(InvalidVotes, match=r"found an array of shape \(3,\)"):
        quick.predict(["user-01", "item-01", "item-02"])
    with pytest.raises(InvalidVotes, match=r"found an array of shape \(5, 2\)"):
        quick.predict(np.zeros((5, 2), dtype=object))


@pytest.mark.parametrize(
    "seed", [np.random.RandomState(0), np.random.default_rng(0), -1, 0.5, "0", True]
)
def test_a_seed_is_a_whole_number_or_none(seed):
    with pytest.raises(InvalidSetting, match=r"random_state is .* it must be an integer from 0 on"):
        check_seed(seed)


def test_numbers_from_zero_on_are_seeds():
    for seed in (0, 7, np.int64(3), None):
        check_seed(seed)
