"""The estimator: what goes in, what comes out, and what scikit-learn asks of it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from isplitlbi import Comparisons, InvalidVotes, ISplitLBI, RegularizationPath
from isplitlbi.errors import PathFailed
from isplitlbi.estimators.isplitlbi import SOLVERS
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import LINKS, Probit
from isplitlbi.model.parameters import Parameters
from isplitlbi.path import Ending
from isplitlbi.selection import Selection
from isplitlbi.solvers import Explicit

TIMES = np.geomspace(0.1, 1.2, 10)
# With the time given there is one path to follow and no cross-validation.
QUICK = {"kappa": 5.0, "times": [0.4], "time": 0.7}

USER, ITEM = "user-01", "item-05"  # she never compared it


@pytest.fixture(scope="session")
def study():
    """Eight users, three of them with a taste of their own, on five items."""
    return simulate(
        n_users=8, n_items=5, votes_per_user=(35, 50), score_sd=1.5, deviation_sd=3.0,
        threshold=0.7, abnormal_share=0.25, random_state=5,
    )  # fmt: skip


@pytest.fixture(scope="session")
def rows(study):
    """Votes as columns user, left, right, outcome; one user never compares one item."""
    votes, _ = study
    table = pd.DataFrame(
        {
            "user": votes.users[votes.user],
            "left": votes.items[votes.left],
            "right": votes.items[votes.right],
            "outcome": votes.outcome,
        }
    )
    unseen = (table.user == USER) & ((table.left == ITEM) | (table.right == ITEM))
    return table[~unseen].reset_index(drop=True)


@pytest.fixture(scope="session")
def X(rows):
    return rows[["user", "left", "right"]]


@pytest.fixture(scope="session")
def y(rows):
    return rows["outcome"].to_numpy()


@pytest.fixture(scope="session")
def votes(rows):
    return Comparisons.from_frame(rows, winner="outcome")


@pytest.fixture(scope="session")
def model(votes):
    return ISplitLBI(kappa=5.0, times=TIMES, n_folds=3).fit(votes)


@pytest.fixture(scope="session")
def quick(votes):
    return ISplitLBI(**QUICK).fit(votes)


@pytest.fixture(scope="session")
def numbered():
    """Fit a model whose ids are integers."""
    rng = np.random.default_rng(0)
    left = rng.integers(10, 14, size=90)
    pairs = np.column_stack([rng.integers(3, size=90), left, left + rng.integers(1, 3, size=90)])
    return ISplitLBI(**QUICK).fit(pairs, np.sign(pairs[:, 1] - 12) * rng.integers(0, 2, 90))


def assert_same_fit(one, other):
    """Assert that two models are equal to the last bit."""
    assert one.time_ == other.time_
    np.testing.assert_array_equal(one.users_, other.users_)
    np.testing.assert_array_equal(one.items_, other.items_)
    for name in ("times", "consensus", "deviation", "sparse", "entry_times"):
        np.testing.assert_array_equal(getattr(one.path_, name), getattr(other.path_, name))


# --- what goes in --------------------------------------------------------------------------

LAYOUTS = {
    "pandas": lambda X: X,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "columns in another order, and one more": lambda X: X[["right", "user", "left"]].assign(z=1),
    "three columns of other names": lambda X: X.set_axis(["who", "a", "b"], axis=1),
    "categories": lambda X: X.astype("category"),
    "array of objects": lambda X: X.to_numpy(dtype=object),
    "array of strings": lambda X: X.to_numpy(dtype=str),
    "list of tuples": lambda X: list(X.itertuples(index=False, name=None)),
    "list of lists": lambda X: X.to_numpy().tolist(),
}


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


# --- what comes out ------------------------------------------------------------------------


@pytest.mark.backend
@pytest.mark.parametrize("solver", SOLVERS)
def test_from_votes_to_abnormal_users_predictions_and_rankings(votes, X, y, study, solver):
    truth = study.truth
    fitted = ISplitLBI(kappa=5.0, times=TIMES, n_folds=3, solver=solver).fit(votes)
    # The users with a taste of their own leave the consensus before all the others.
    entry = fitted.entry_times_
    assert entry[truth.abnormal].max() < entry[~truth.abnormal].min()
    assert set(votes.users[truth.abnormal]) <= set(fitted.abnormal_users_)
    # The consensus is the truth's, and individual scores predict better than it alone.
    assert np.corrcoef(fitted.consensus_, truth.scores)[0, 1] > 0.95
    assert fitted.score(X, y) > fitted.score(X.assign(user="stranger"), y) + 0.05
    assert fitted.ranking().items[0] == votes.items[np.argmax(truth.scores)]
    assert fitted.path_.settings["scheme"] == solver


def test_fitted_attributes_are_as_documented(model, votes):
    np.testing.assert_array_equal(model.users_, votes.users)
    np.testing.assert_array_equal(model.items_, votes.items)
    np.testing.assert_array_equal(model.classes_, [-1, 0, 1])
    assert model.n_features_in_ == 3
    assert model.consensus_.shape == (votes.n_items,)
    assert isinstance(model.threshold_, float)
    assert model.threshold_ >= model.delta
    assert model.entry_times_.shape == (votes.n_users,)
    assert (model.nu_, model.kappa_) == (model.nu, model.kappa)
    assert model.time_ == model.selection_.time
    assert model.time_ in TIMES
    assert isinstance(model.path_, RegularizationPath)
    assert isinstance(model.selection_, Selection)
    assert isinstance(model.parameters_, Parameters)
    np.testing.assert_array_equal(model.path_.times, TIMES)


def test_who_left_the_consensus_is_the_support_in_order_of_entry(model):
    assert 0 < len(model.left_consensus_) < len(model.users_)
    entry = dict(zip(model.users_.tolist(), model.entry_times_, strict=True))
    times = [entry[user] for user in model.left_consensus_]
    assert times == sorted(times)
    assert set(model.left_consensus_) == {u for u, time in entry.items() if time <= model.time_}


def test_abnormal_users_are_those_flagged_in_order_of_entry(model, study):
    found = model.abnormality()
    assert set(model.abnormal_users_) == set(model.users_[found.flagged])
    assert set(study.votes.users[study.truth.abnormal]) <= set(model.abnormal_users_)
    entry = dict(zip(model.users_.tolist(), model.entry_times_, strict=True))
    times = [entry[user] for user in model.abnormal_users_]
    assert times == sorted(times)
    assert model.abnormality() is found  # found once
    assert model.abnormality(fdr=1e-9).flagged.sum() == 0


def test_fitting_returns_the_model_and_leaves_its_settings_alone(X, y):
    settings = {**QUICK, "nu": 0.5, "random_state": 3}
    unfitted = ISplitLBI(**settings)
    before = dict(unfitted.get_params())
    assert unfitted.fit(X, y) is unfitted
    assert unfitted.get_params() == before


def test_a_second_fit_replaces_the_first(X, y, quick):
    fitted = ISplitLBI(**QUICK).fit(X[:100], y[:100])
    assert_same_fit(fitted.fit(X, y), quick)


def test_the_same_seed_gives_the_same_model_whatever_the_order_of_the_votes(X, y, model):
    order = np.random.default_rng(0).permutation(len(y))
    again = clone(model).fit(X.iloc[order], y[order])
    assert_same_fit(again, model)
    np.testing.assert_array_equal(
        again.selection_.chosen.mean("log_loss"), model.selection_.chosen.mean("log_loss")
    )


def test_the_number_of_threads_does_not_matter(X, y, model):
    for n_jobs in (1, 3):
        assert_same_fit(clone(model).set_params(n_jobs=n_jobs).fit(X, y), model)


def test_progress_is_reported_up_to_the_end(X, y, model):
    reports = []
    clone(model).fit(X, y, progress=reports.append)
    shares = [report.done for report in reports]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


# --- prediction ----------------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
def test_probabilities_sum_to_one_and_swapping_sides_mirrors_them(X, y, link):
    fitted = ISplitLBI(**QUICK, link=link).fit(X, y)
    swapped = X.rename(columns={"left": "right", "right": "left"})
    probabilities = fitted.predict_proba(X)
    assert probabilities.shape == (len(X), 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(swapped), probabilities[:, ::-1], rtol=1e-9)
    for rule in ("map", "threshold"):
        fitted.set_params(rule=rule)
        np.testing.assert_array_equal(fitted.predict(swapped), -fitted.predict(X))


def test_probabilities_stand_in_the_order_of_the_classes(X, model):
    probabilities = model.predict_proba(X)
    for row, expected in zip(X.itertuples(index=False), probabilities, strict=True):
        scores = dict(zip(model.items_, model.scores(row.user), strict=True))
        margin, threshold = scores[row.left] - scores[row.right], model.threshold(row.user)
        right, left = expit(-margin - threshold), expit(margin - threshold)
        np.testing.assert_allclose(expected, [right, 1 - left - right, left], rtol=1e-9)


def test_the_two_rules_predict_as_they_say(X, y, model):
    by_threshold = ISplitLBI(**QUICK, rule="threshold").fit(X, y)
    by_map = ISplitLBI(**QUICK).fit(X, y)
    assert_same_fit(by_threshold, by_map)
    likely = by_map.classes_[by_map.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(by_map.predict(X), likely)
    within = [
        {"better": 1, "tied": 0, "worse": -1}[by_threshold.relation(left, right, user)]
        for user, left, right in X.itertuples(index=False)
    ]
    np.testing.assert_array_equal(by_threshold.predict(X), within)
    # The paper's rule declares more ties.
    assert np.sum(by_threshold.predict(X) == 0) > np.sum(by_map.predict(X) == 0)


def test_the_score_is_the_share_predicted_correctly(X, y, votes, model):
    assert model.score(X, y) == pytest.approx(accuracy_score(y, model.predict(X)))
    assert model.score(votes) == model.score(X, y)
    assert model.predict(X).dtype == np.int8


def test_an_unknown_user_gets_the_consensus(model):
    np.testing.assert_array_equal(model.scores("stranger"), model.consensus_)
    np.testing.assert_array_equal(model.scores(), model.consensus_)
    assert model.threshold("stranger") == model.threshold() == model.threshold_
    assert str(model.ranking("stranger")) == str(model.ranking())
    a, b = model.items_[:2]
    margin = model.consensus_[0] - model.consensus_[1]
    ((_, _, left),) = model.predict_proba([("stranger", a, b)])
    assert left == pytest.approx(expit(margin - model.threshold_))


def test_known_and_unknown_users_may_be_asked_together(model):
    a, b = model.items_[:2]
    known = model.abnormal_users_[0]
    both = model.predict_proba([(known, a, b), ("stranger", a, b)])
    np.testing.assert_array_equal(both[:1], model.predict_proba([(known, a, b)]))
    assert not np.array_equal(both[0], both[1])


def test_no_pairs_give_no_predictions(model):
    nothing = pd.DataFrame({"user": [], "left": [], "right": []}, dtype=object)
    assert model.predict(nothing).shape == (0,)
    assert model.predict_proba(nothing).shape == (0, 3)


def test_an_unknown_item_is_an_error_that_names_it_and_the_nearest(model):
    message = "item 'item-3' is not among the 5 items of this model; the nearest is 'item-03'"
    pairs = [(USER, "item-01", "item-02"), (USER, "item-01", "item-3")]
    for ask in (
        lambda: model.predict(pairs),
        lambda: model.predict_proba(pd.DataFrame(pairs)),
        lambda: model.relation("item-01", "item-3"),
        lambda: model.recommend(USER, same_as="item-3"),
        lambda: model.recommend(USER, better_than="item-3"),
    ):
        with pytest.raises(InvalidVotes, match=message):
            ask()


def test_a_user_of_another_type_is_an_error_not_a_stranger(model, numbered):
    with pytest.raises(InvalidVotes, match="user: the ids are strings, such as 'user-01', but 3"):
        model.scores(3)
    with pytest.raises(InvalidVotes, match="user: the ids are strings"):
        model.predict([(1, "item-01", "item-02")])
    with pytest.raises(InvalidVotes, match="user: the ids are integers, such as 0, but '0'"):
        numbered.ranking("0")


# --- rankings and users --------------------------------------------------------------------


def test_an_item_that_a_user_never_compared_stands_where_the_consensus_puts_it(model):
    place = model.items_.tolist().index(ITEM)
    assert model.scores(USER)[place] == model.consensus_[place]
    assert np.all(np.delete(model.scores(USER) != model.consensus_, place))
    ranking = model.ranking(USER)
    assert ranking.items[~ranking.compared].tolist() == [ITEM]
    assert f"({ITEM})" in str(ranking)
    assert model.ranking().compared.all()


def test_a_ranking_is_made_of_the_users_scores_and_threshold(model):
    user = model.abnormal_users_[0]
    ranking = model.ranking(user)
    np.testing.assert_array_equal(np.sort(ranking.scores), np.sort(model.scores(user)))
    assert ranking.threshold == model.threshold(user)
    assert ranking.items.tolist() != model.ranking().items.tolist()


def test_the_relation_is_the_one_of_that_user(model):
    ranking = model.ranking()
    best, worst = ranking.items[0], ranking.items[-1]
    assert model.relation(best, worst) == "better"
    assert model.relation(worst, best) == "worse"
    assert model.relation(best, best) == "tied"
    user = model.abnormal_users_[0]
    own = model.ranking(user)
    assert model.relation(own.items[0], own.items[-1], user=user) == "better"


@pytest.mark.parametrize("user", [None, USER, "user-03", "stranger"])
def test_recommendations_stand_as_asked_and_come_nearest_first(model, user):
    score = dict(zip(model.items_, model.scores(user), strict=True))
    for item in model.items_:
        same = model.recommend(user, same_as=item)
        better = model.recommend(user, better_than=item)
        others = [other for other in model.items_ if other != item]
        assert set(same) == {o for o in others if model.relation(o, item, user) == "tied"}
        assert set(better) == {o for o in others if model.relation(o, item, user) == "better"}
        for chosen in (same, better):
            distance = [abs(score[other] - score[item]) for other in chosen]
            assert distance == sorted(distance)


@pytest.mark.parametrize("asked", [{}, {"same_as": "item-01", "better_than": "item-02"}])
def test_a_recommendation_needs_exactly_one_question(model, asked):
    with pytest.raises(ValueError, match="exactly one of same_as and better_than"):
        model.recommend(USER, **asked)


def test_the_distance_to_the_consensus_is_that_of_the_scores(model):
    expected = [np.linalg.norm(model.scores(user) - model.consensus_) for user in model.users_]
    np.testing.assert_allclose(model.distance_to_consensus(), expected, rtol=1e-9)


def test_the_decomposition_adds_up_and_its_abnormal_part_is_that_of_the_abnormal_users(model):
    parts = model.decompose()
    expected = np.zeros((len(model.users_), len(model.items_) + 1))
    slots = model.parameters_.slots
    expected[slots.owner, slots.coordinate] = model.parameters_.deviation
    total = parts.abnormal + parts.personal + parts.noise
    np.testing.assert_array_equal(total.toarray(), expected)
    rows_used = np.flatnonzero(np.diff(parts.abnormal.indptr))
    assert set(model.users_[rows_used]) == set(model.left_consensus_)
    assert model.decompose(noise_level=np.inf).personal.nnz == 0
    assert model.decompose(noise_level=0.0).noise.nnz == 0


# --- where to stop -------------------------------------------------------------------------


def test_a_given_time_skips_the_selection(quick):
    assert quick.selection_ is None
    assert quick.time_ == QUICK["time"]
    np.testing.assert_array_equal(quick.path_.times, [0.4, 0.7])
    np.testing.assert_array_equal(quick.consensus_, quick.path_.consensus[1, :-1])


def test_a_given_time_joins_the_times_found_from_the_votes(X, y):
    fitted = ISplitLBI(kappa=5.0, time=0.7).fit(X, y)
    assert fitted.time_ == 0.7
    assert 0.7 in fitted.path_.times
    assert len(fitted.path_.times) > 10


def test_without_times_they_are_found_from_the_votes(X, y):
    fitted = ISplitLBI(kappa=2.0, n_folds=2).fit(X, y)
    np.testing.assert_array_equal(fitted.path_.times, fitted.selection_.chosen.times)
    assert fitted.path_.times[0] < fitted.entry_times_.min() < fitted.path_.times[-1]


def test_lists_of_nu_and_kappa_are_chosen_from(X, y):
    fitted = ISplitLBI(nu=[0.2, 1.0], kappa=[2.0, 5.0], times=TIMES, n_folds=3).fit(X, y)
    tried = [(c.dynamics.nu, c.dynamics.kappa) for c in fitted.selection_.candidates]
    assert tried == [(0.2, 2.0), (0.2, 5.0), (1.0, 2.0), (1.0, 5.0)]
    best = [c.mean("log_loss").min() for c in fitted.selection_.candidates]
    assert (fitted.nu_, fitted.kappa_) == tried[int(np.argmin(best))]
    assert (fitted.path_.settings["nu"], fitted.path_.settings["kappa"]) == (
        fitted.nu_,
        fitted.kappa_,
    )
    alone = ISplitLBI(nu=fitted.nu_, kappa=fitted.kappa_, times=TIMES, n_folds=3).fit(X, y)
    assert_same_fit(fitted, alone)


@pytest.mark.parametrize("scoring", ["log_loss", "micro_f1", "macro_f1"])
def test_the_scoring_asked_for_decides_the_time(X, y, scoring):
    fitted = ISplitLBI(kappa=5.0, times=TIMES, n_folds=3, scoring=scoring).fit(X, y)
    mean = fitted.selection_.chosen.mean(scoring)
    best = np.argmin(mean) if scoring == "log_loss" else np.argmax(mean)
    assert fitted.time_ == TIMES[best]


def test_a_scheme_and_a_link_are_taken_as_they_are(X, y):
    settings = {**QUICK, "time": 0.4}
    fitted = ISplitLBI(**settings, solver=Explicit(projection="separate"), link=Probit()).fit(X, y)
    assert fitted.path_.settings["projection"] == "separate"
    assert fitted.path_.settings["link"] == "probit"
    named = ISplitLBI(**settings, solver=Explicit(projection="separate"), link="probit").fit(X, y)
    assert_same_fit(fitted, named)


def test_both_backends_give_the_same_model(X, y):
    compiled = ISplitLBI(**QUICK, backend="numba").fit(X, y)
    plain = ISplitLBI(**QUICK, backend="numpy").fit(X, y)
    np.testing.assert_allclose(compiled.path_.deviation, plain.path_.deviation, atol=1e-9)
    assert compiled.abnormal_users_ == plain.abnormal_users_


# --- what can go wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": "majority"}, "rule 'majority' is not one of map, threshold"),
        ({"scoring": "auc"}, "scoring 'auc' is not one of log_loss, micro_f1, macro_f1"),
        ({"link": "cauchy"}, "link 'cauchy' is not one of logistic, probit, uniform"),
        ({"solver": "magic"}, "solver 'magic' is not one of .*explicit"),
        ({"backend": "cuda"}, "backend 'cuda' is not one of numba, numpy"),
        ({"nu": 0.0}, "nu is 0.0; it must be positive"),
        ({"nu": [1.0, -1.0]}, "nu is -1.0; it must be positive"),
        ({"nu": []}, "at least one value"),
        ({"kappa": np.inf}, "kappa is inf; it must be positive and finite"),
        ({"delta": 0.0}, "delta is 0.0; it must be positive"),
        ({"n_folds": 1}, "n_folds is 1; it must be an integer from 2 to"),
        ({"n_folds": 10_000}, "n_folds is 10000; it must be an integer from 2 to"),
        ({"time": 0.5, "nu": [0.1, 1.0]}, "need cross-validation: leave time unset"),
        ({"time": 0.5, "kappa": [5.0, 10.0]}, "need cross-validation: leave time unset"),
        ({"time": -0.5}, "times must be positive"),
        ({"times": [0.5, 0.2]}, "strictly increasing"),
        ({"times": []}, "at least one number"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_is_a_clear_error(X, y, settings, message):
    unfitted = ISplitLBI(**{"kappa": 5.0, "times": TIMES, **settings})
    with pytest.raises(ValueError, match=message):
        unfitted.fit(X, y)


def test_a_path_that_fails_says_why_and_leaves_no_half_fitted_model(X, y):
    unfitted = ISplitLBI(**QUICK, solver=Explicit(max_steps=5))
    with pytest.raises(PathFailed) as caught:
        unfitted.fit(X, y)
    assert str(caught.value) == Ending.STEP_LIMIT.value
    with pytest.raises(NotFittedError):
        unfitted.predict(X)


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.predict([(USER, "item-01", "item-02")]),
        lambda model: model.predict_proba([(USER, "item-01", "item-02")]),
        lambda model: model.score([(USER, "item-01", "item-02")], [1]),
        lambda model: model.scores(),
        lambda model: model.scores(USER),
        lambda model: model.threshold(USER),
        lambda model: model.ranking(),
        lambda model: model.relation("item-01", "item-02"),
        lambda model: model.recommend(USER, same_as="item-01"),
        lambda model: model.distance_to_consensus(),
        lambda model: model.decompose(),
    ],
    ids=[
        "predict", "predict_proba", "score", "scores", "scores of a user", "threshold", "ranking",
        "relation", "recommend", "distance_to_consensus", "decompose",
    ],
)  # fmt: skip
def test_using_an_unfitted_model_says_so(use):
    with pytest.raises(NotFittedError):
        use(ISplitLBI())


# --- scikit-learn --------------------------------------------------------------------------


def test_a_clone_has_the_settings_and_nothing_fitted(model):
    copy = clone(model)
    original, copied = model.get_params(), copy.get_params()
    np.testing.assert_array_equal(copied.pop("times"), original.pop("times"))
    assert copied == original
    with pytest.raises(NotFittedError):
        copy.predict([(USER, "item-01", "item-02")])


def test_settings_can_be_changed_by_name():
    changed = ISplitLBI().set_params(nu=[0.1, 1.0], link="probit")
    assert (changed.get_params()["nu"], changed.link) == ([0.1, 1.0], "probit")
    with pytest.raises(ValueError, match="Invalid parameter 'lambda_'"):
        changed.set_params(lambda_=1.0)


@pytest.mark.parametrize("layout", ["pandas", "polars", "array of objects", "list of tuples"])
def test_it_works_in_cross_val_score(X, y, layout):
    splits = StratifiedKFold(3, shuffle=True, random_state=0)
    found = cross_val_score(ISplitLBI(**QUICK), LAYOUTS[layout](X), y, cv=splits)
    by_hand = []
    for train, test in splits.split(X, y):
        fitted = ISplitLBI(**QUICK).fit(X.iloc[train], y[train])
        by_hand.append(accuracy_score(y[test], fitted.predict(X.iloc[test])))
    np.testing.assert_allclose(found, by_hand)


def test_cross_val_score_reads_its_probabilities(X, y):
    splits = StratifiedKFold(2, shuffle=True, random_state=0)
    found = cross_val_score(ISplitLBI(**QUICK), X, y, cv=splits, scoring="neg_log_loss")
    train, test = next(splits.split(X, y))
    fitted = ISplitLBI(**QUICK).fit(X.iloc[train], y[train])
    expected = log_loss(y[test], fitted.predict_proba(X.iloc[test]), labels=[-1, 0, 1])
    assert found[0] == pytest.approx(-expected)
    assert np.all(found > -np.log(3))


def test_it_works_in_a_grid_search(X, y):
    search = GridSearchCV(
        ISplitLBI(**QUICK), {"time": [0.2, 0.6], "rule": ["map", "threshold"]}, cv=2
    ).fit(X, y)
    assert search.best_estimator_.time_ == search.best_params_["time"]
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()


def test_a_fitted_model_survives_pickling(X, model):
    again = pickle.loads(pickle.dumps(model))
    assert_same_fit(again, model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.abnormal_users_ == model.abnormal_users_
    assert str(again.ranking(USER)) == str(model.ranking(USER))
    assert again.decompose().personal.nnz == model.decompose().personal.nnz
    assert again.selection_.time == model.selection_.time
