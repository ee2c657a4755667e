"""What goes into an estimator: votes and pairs in every layout, and seeds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score

from isplitlbi import AlphaCut, Comparisons, InvalidVotes, ISplitLBI, MarginMLE, PerUser
from isplitlbi.errors import InvalidSetting
from isplitlbi.estimators.inputs import as_votes, check_seed
from studies import FEW, LAYOUTS, QUICK, assert_same_fit


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


FRAMES = {"pandas": pl.DataFrame.to_pandas, "polars": lambda frame: frame,
          "arrow": pl.DataFrame.to_arrow}  # fmt: skip


@pytest.fixture(scope="module")
def arena(rows):
    """The votes as an arena would write them."""
    words = rows["outcome"].map({1: "model_a", 0: "tie", -1: "model_b"})
    names = {"user": "judge", "left": "model_a", "right": "model_b"}
    return pl.from_pandas(rows.rename(columns=names).drop(columns="outcome").assign(winner=words))


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_with_outcomes_in_any_layout_is_fitted_and_scored_like_a_file(
    kind, rows, arena, quick, y
):
    for frame in (pl.from_pandas(rows), arena):
        given = FRAMES[kind](frame)
        fitted = ISplitLBI(**QUICK).fit(given)
        assert_same_fit(fitted, quick)
        assert fitted.classes_.tolist() == [-1, 0, 1]
        assert fitted.score(given) == quick.score(quick.votes())


def test_a_bad_frame_is_refused_with_the_row_and_what_to_do(arena, X):
    bad = arena.with_columns(winner=pl.lit("nobody"))
    message = r"X, rows 1, 2, 3 and .* winner 'nobody' is not one of model_a.*from_frame.*give y"
    with pytest.raises(InvalidVotes, match=message):
        ISplitLBI().fit(bad)
    with pytest.raises(InvalidVotes, match="weights in a column weight"):
        ISplitLBI().fit(arena, sample_weight=np.ones(len(arena)))


def test_a_frame_with_two_columns_of_one_name_is_refused(X, y, quick):
    twice = pd.concat([X, X[["left"]]], axis=1)
    for use in (ISplitLBI().fit, lambda X: ISplitLBI().fit(X, y), quick.predict):
        with pytest.raises(InvalidVotes, match="X: two of its columns have the same name"):
            use(twice)


WORDS = {
    "plain": {1: "left", 0: "tie", -1: "right"},
    "of arenas": {1: "model_a", 0: "tie", -1: "model_b"},
    "in capitals": {1: "LEFT", 0: "TIE", -1: "RIGHT"},
}


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize(
    "method", [ISplitLBI(**QUICK), MarginMLE(), PerUser(0.1), AlphaCut(**FEW)],
    ids=lambda method: type(method).__name__,
)  # fmt: skip
def test_outcomes_that_are_words_stay_words(method, words, X, y):
    said = pd.Series(y).map(WORDS[words])
    numbers, fitted = clone(method).fit(X, y), clone(method).fit(X, said)
    assert fitted.classes_.tolist() == sorted(WORDS[words].values())
    expected = [WORDS[words][outcome] for outcome in numbers.predict(X)]
    assert fitted.predict(X).tolist() == expected
    assert fitted.score(X, said) == numbers.score(X, y)
    np.testing.assert_array_equal(fitted.predict_outcomes(X), numbers.predict(X))
    if hasattr(method, "predict_proba"):
        places = [list(WORDS[words].values()).index(word) for word in fitted.classes_]
        by_word = numbers.predict_proba(X)[:, ::-1][:, places]
        np.testing.assert_array_equal(fitted.predict_proba(X), by_word)


def test_scores_of_scikit_learn_are_the_same_for_words_and_numbers(X, y):
    method, said = ISplitLBI(**QUICK), pd.Series(y).map(WORDS["plain"])
    for scoring in ("neg_log_loss", "accuracy", "f1_macro"):
        numbers, words = (
            cross_val_score(method, X, given, cv=3, scoring=scoring) for given in (y, said)
        )
        # A mean over classes is summed in their order, which is another for words.
        tolerance = {"rtol": 1e-15} if scoring == "f1_macro" else {"rtol": 0.0}
        np.testing.assert_allclose(words, numbers, **tolerance)


def test_words_without_a_tie_are_two_classes(X, y):
    decided = y != 0
    said = pd.Series(y[decided]).map(WORDS["plain"])
    fitted = ISplitLBI(**QUICK).fit(X[decided], said)
    assert fitted.classes_.tolist() == ["left", "right"]
    chances = fitted.predict_proba(X)
    sure = np.abs(chances[:, 0] - 0.5) > 1e-6
    likely = fitted.classes_[chances.argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(X)[sure], likely[sure])


def test_a_fit_on_other_outcomes_forgets_the_words(X, y, votes):
    fitted = ISplitLBI(**QUICK).fit(X, pd.Series(y).map(WORDS["plain"]))
    assert fitted.fit(votes).classes_.tolist() == [-1, 0, 1]


def test_integer_ids_come_back_as_integers(numbered):
    assert numbered.users_.tolist() == [0, 1, 2]
    assert numbered.items_.tolist() == list(range(10, 16))
    best = numbered.ranking().items[-1]
    assert all(type(item) is int for item in numbered.recommend(2, better_than=best))
    assert numbered.predict([(99, 10, 11)]).shape == (1,)


def test_a_vote_counts_as_much_as_its_weight_says(X, y):
    twice = np.random.default_rng(0).random(len(y)) < 0.3
    weighted = ISplitLBI(**QUICK).fit(as_votes(X, y, 1.0 + twice).in_weight_unit(1.0))
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
    with pytest.raises(
        InvalidVotes, match="user, left, right, or left and right; found user, left"
    ):
        ISplitLBI().fit(X[["user", "left"]], y)
    with pytest.raises(InvalidVotes, match=r"found an array of shape \(3,\)"):
        quick.predict(["user-01", "item-01", "item-02"])
    with pytest.raises(InvalidVotes, match=r"found an array of shape \(5, 2\)"):
        quick.predict(np.zeros((5, 2), dtype=object))


def test_without_a_column_of_users_all_are_unknown_and_that_is_logged_once(X, y, caplog):
    model = ISplitLBI(kappa=5.0, time=0.7, times=[0.4], with_tests=False).fit(X, y)
    pairs = X[["left", "right"]]
    expected = model.predict_proba(X.assign(user="nobody of these"))
    assert caplog.messages == []
    assert np.array_equal(model.predict_proba(pairs), expected)
    assert np.array_equal(model.predict_proba(pairs.assign(turn=1)), expected)
    assert model.predict(pairs).tolist() == model.classes_[expected.argmax(axis=1)].tolist()
    assert caplog.messages == [
        "there is no column of users, so everybody is predicted as an unknown user."
    ]


@pytest.mark.parametrize(
    "seed", [np.random.RandomState(0), np.random.default_rng(0), -1, 0.5, "0", True]
)
def test_a_seed_is_a_whole_number_or_none(seed):
    with pytest.raises(InvalidSetting, match=r"random_state is .* it must be an integer from 0 on"):
        check_seed(seed)


def test_numbers_from_zero_on_are_seeds():
    for seed in (0, 7, np.int64(3), None):
        check_seed(seed)
