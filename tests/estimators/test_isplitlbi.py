"""iSplit LBI: what comes out, where to stop, and what scikit-learn asks of it."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from isplitlbi import ISplitLBI, RegularizationPath
from isplitlbi.errors import PathFailed
from isplitlbi.model.links import Probit
from isplitlbi.model.parameters import Parameters
from isplitlbi.path import Ending
from isplitlbi.selection import Selection
from isplitlbi.solvers import SOLVERS, Explicit
from studies import LAYOUTS, QUICK, TIMES, USER, assert_same_fit

# --- what comes out ------------------------------------------------------------------------


@pytest.mark.backend
@pytest.mark.parametrize("solver", SOLVERS)
def test_from_votes_to_abnormal_users_predictions_and_rankings(votes, X, y, study, solver):
    truth = study.truth
    fitted = ISplitLBI(
        kappa=5.0, terms="paper", times=TIMES, n_folds=3, solver=solver
    ).fit(votes)  # fmt: skip
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
    assert model.threshold_ > 0.0
    assert model.habits_.shape == (votes.n_items,) and np.all(model.habits_ > 0.0)
    assert isinstance(model.side_, float)
    assert model.terms_.names == ("taste", "sharpness", "side", "threshold")
    assert set(model.spreads_) == set(model.terms_.names)
    assert model.entry_times_.shape == (votes.n_users,)
    assert model.nu_ > 0.0 and model.kappa_ == model.kappa
    assert model.time_ == model.selection_.time
    assert model.time_ in TIMES
    assert isinstance(model.path_, RegularizationPath)
    assert isinstance(model.selection_, Selection)
    assert isinstance(model.parameters_, Parameters)
    np.testing.assert_array_equal(model.path_.times, TIMES)


def test_who_left_the_consensus_is_the_support_in_order_of_entry(X, y):
    model = ISplitLBI(terms="paper", kappa=5.0, times=TIMES, n_folds=3, with_tests=False)
    model.fit(X, y)
    assert 0 < len(model.left_consensus_) < len(model.users_)
    entry = dict(zip(model.users_.tolist(), model.entry_times_, strict=True))
    times = [entry[user] for user in model.left_consensus_]
    assert times == sorted(times)
    assert set(model.left_consensus_) == {u for u, time in entry.items() if time <= model.time_}


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
    assert reports[-1].doing == "testing users"
    reports = []
    clone(model).set_params(with_tests=False).fit(X, y, progress=reports.append)
    assert reports[-1].done == pytest.approx(1.0)


def test_the_decomposition_adds_up_and_its_strong_part_is_that_of_users_who_have_left(model):
    parts = model.decompose()
    expected = model.parameters_.table()
    total = parts.strong + parts.personal + parts.noise
    np.testing.assert_array_equal(total.toarray(), expected)
    rows_used = np.flatnonzero(np.diff(parts.strong.indptr))
    assert set(model.users_[rows_used]) == set(model.left_consensus_)
    assert model.decompose(noise_level=np.inf).personal.nnz == 0
    assert model.decompose(noise_level=0.0).noise.nnz == 0


# --- where to stop -------------------------------------------------------------------------


def test_a_given_time_skips_the_selection(quick):
    assert quick.selection_ is None
    assert quick.time_ == QUICK["time"]
    np.testing.assert_array_equal(quick.path_.times, [0.4, 0.7])
    np.testing.assert_array_equal(quick.consensus_, quick.path_.consensus_at(0.7).scores)


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
    settings = {"terms": "paper", "times": TIMES, "n_folds": 3}
    fitted = ISplitLBI(nu=[0.2, 1.0], kappa=[2.0, 5.0], **settings).fit(X, y)
    tried = [(c.dynamics.nu, c.dynamics.kappa) for c in fitted.selection_.candidates]
    assert tried == [(0.2, 2.0), (0.2, 5.0), (1.0, 2.0), (1.0, 5.0)]
    best = [c.mean("log_loss").min() for c in fitted.selection_.candidates]
    assert (fitted.nu_, fitted.kappa_) == tried[int(np.argmin(best))]
    assert (fitted.path_.settings["nu"], fitted.path_.settings["kappa"]) == (
        fitted.nu_,
        fitted.kappa_,
    )
    alone = ISplitLBI(nu=fitted.nu_, kappa=fitted.kappa_, **settings).fit(X, y)
    assert_same_fit(fitted, alone)


@pytest.mark.parametrize("scoring", ["log_loss", "micro_f1", "macro_f1"])
def test_the_scoring_asked_for_decides_the_time(X, y, scoring):
    fitted = ISplitLBI(kappa=5.0, times=TIMES, n_folds=3, scoring=scoring).fit(X, y)
    chosen = fitted.selection_.chosen
    mean = chosen.mean(scoring)
    best = np.argmin(mean) if scoring == "log_loss" else np.argmax(mean)
    # The earliest time that is worse than the best by no more than the noise of the difference.
    scores = chosen.scores["dense"][scoring]
    noise = np.std(scores - scores[:, [best]], axis=0, ddof=1) / np.sqrt(3)
    assert fitted.time_ == TIMES[np.flatnonzero(np.abs(mean - mean[best]) <= noise)[0]]
    settings = {"kappa": 5.0, "times": TIMES, "n_folds": 3, "terms": "paper"}
    of_paper = ISplitLBI(**settings, scoring=scoring, with_tests=False).fit(X, y)
    mean = of_paper.selection_.chosen.mean(scoring)
    best = np.argmin(mean) if scoring == "log_loss" else np.argmax(mean)
    assert of_paper.time_ == TIMES[best]


def test_a_scheme_and_a_link_are_taken_as_they_are(X, y):
    settings = {**QUICK, "time": 0.4, "terms": "paper"}
    fitted = ISplitLBI(**settings, solver=Explicit(projection="separate"), link=Probit()).fit(X, y)
    assert fitted.path_.settings["projection"] == "separate"
    assert fitted.path_.settings["link"] == "probit"
    named = ISplitLBI(**settings, solver=Explicit(projection="separate"), link="probit").fit(X, y)
    assert_same_fit(fitted, named)


def test_both_backends_give_the_same_model(X, y):
    compiled = ISplitLBI(**QUICK, backend="numba").fit(X, y)
    plain = ISplitLBI(**QUICK, backend="numpy").fit(X, y)
    np.testing.assert_allclose(compiled.path_.deviation, plain.path_.deviation, atol=1e-9)
    assert compiled.test_users().kind == plain.test_users().kind


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
        ({"n_folds": 1}, "n_folds is 1; it must be an integer, 2 or more"),
        ({"n_folds": 10_000}, "n_folds is 10000, but there are only"),
        ({"nu": [0.1, 1.0]}, "one nu and one kappa"),
        ({"terms": "paper", "time": 0.5, "nu": [0.1, 1.0]}, "need cross-validation: leave time"),
        ({"terms": "paper", "time": 0.5, "kappa": [5.0, 10.0]}, "need cross-validation: leave"),
        ({"time": -0.5}, "times must be positive"),
        ({"times": [0.5, 0.2]}, "strictly increasing"),
        ({"times": []}, "at least one number"),
        ({"random_state": np.random.RandomState(0)}, "random_state is .* an integer from 0 on"),
        ({"random_state": -1}, "random_state is -1; it must be an integer from 0 on"),
        ({"fdr": 1.0}, "fdr is 1.0; it must lie between 0 and 1"),
        ({"terms": "mood"}, "term 'mood' is not one of all, paper, taste, threshold"),
        ({"ties": "few"}, "ties 'few' is not one of auto, allowed, none"),
        ({"ties": "none"}, r"ties is 'none', but \d+ votes are ties. Leave these out"),
        ({"sides": "both"}, "sides 'both' is not one of known, unknown"),
        ({"scales": {"mood": 1.0}}, "no scale of 'mood' in this model: sharpness, side, threshold"),
        ({"scales": {"side": -1.0}}, "the scale of side is -1.0; it must be from 0 on"),
        ({"scales": {"side": 1.0}, "terms": "paper"}, "no scale of 'side' in this model"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_setting_that_cannot_be_is_a_clear_error(X, y, settings, message):
    unfitted = ISplitLBI(**{"kappa": 5.0, "times": TIMES, **settings})
    with pytest.raises(ValueError, match=message):
        unfitted.fit(X, y)


def test_a_path_that_fails_says_why_and_leaves_no_half_fitted_model(X, y):
    unfitted = ISplitLBI(**QUICK, terms="paper", solver=Explicit(max_steps=5))
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
        lambda model: model.test_users(),
        lambda model: model.votes(),
        lambda model: model.has_votes(),
        lambda model: model.consensus_intervals(),
        lambda model: model.leaderboard(),
        lambda model: model.head_to_head(),
        lambda model: model.own_scores(USER),
        lambda model: model.features(),
        lambda model: model.habit_intervals(),
        lambda model: model.user_card(USER),
        lambda model: model.user_cards(),
        lambda model: model.ranking_as_shown(),
    ],
    ids=[
        "predict", "predict_proba", "score", "scores", "scores of a user", "threshold", "ranking",
        "relation", "recommend", "distance_to_consensus", "decompose", "test_users", "votes",
        "has_votes", "consensus_intervals", "leaderboard", "head_to_head", "own_scores",
        "features", "habit_intervals", "user_card", "user_cards", "ranking_as_shown",
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
    with pytest.raises(ValueError, match="no setting 'lambda_'"):
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
