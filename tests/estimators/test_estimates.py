"""The dense and the sparse estimate (Sec. 2.2): who deviates, and what is predicted by either."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi import ISplitLBI, MarginMLE, load_model
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.metrics import confusion, decide, paper_f1
from isplitlbi.selection import PUBLISHED_SCORINGS, SCORINGS, score_votes
from isplitlbi.storage import save_model
from studies import TIMES, USER


@pytest.fixture(scope="module", params=["paper", "all"])
def early(request, votes):
    """A model whose time comes when some users have left the consensus, and others have not."""
    found = ISplitLBI(terms=request.param, kappa=5.0, times=TIMES, time=0.42, with_tests=False)
    found.fit(votes)
    assert 0 < len(found.left_consensus_) < len(found.users_)
    return found


def test_only_users_who_have_left_deviate_by_the_sparse_estimate(early):
    for user in early.users_.tolist():
        whose = user if user in early.left_consensus_ else None
        assert_array_equal(early.scores(user, "sparse"), early.scores(whose))
        assert early.threshold(user, "sparse") == early.threshold(whose)
        assert_array_equal(early.ranking(user, "sparse").scores, early.ranking(whose).scores)
    assert_array_equal(early.scores(estimate="sparse"), early.consensus_)


def test_the_sparse_estimate_is_p_on_the_support_of_gamma(early):
    gamma = early.path_.sparse_at(early.time_)
    of_user = np.logical_or.reduceat(gamma != 0.0, early.parameters_.slots.start[:-1])
    support = of_user[early.parameters_.slots.owner]
    expected = np.where(support, early.parameters_.deviation, 0.0)
    assert_array_equal(early.estimated("sparse").deviation, expected)


def test_predictions_are_those_of_the_users_or_of_the_consensus(early, X):
    has_left = X.user.isin(early.left_consensus_).to_numpy()
    dense, sparse = (early.predict_proba(X, estimate=each) for each in ("dense", "sparse"))
    left, right = (np.searchsorted(early.items_, X[side]) for side in ("left", "right"))
    margin, threshold = early.parameters_.common.margin_and_threshold(left, right)
    common = np.exp(early.link_.log_probabilities(margin, threshold))[:, ::-1]
    assert_array_equal(sparse[has_left], dense[has_left])
    assert_allclose(sparse[~has_left], common[~has_left], rtol=1e-12)
    assert np.abs(sparse - dense)[~has_left].max() > 0.01
    assert_array_equal(early.predict_proba(X), dense)
    by_threshold = early.predict(X, "threshold", "sparse")
    assert_array_equal(by_threshold[~has_left], decide(margin, threshold)[~has_left])


def test_an_estimate_that_is_none_is_refused(early, X, votes):
    for ask in (early.predict, early.predict_proba, early.predict_log_proba):
        with pytest.raises(InvalidSetting, match="estimate 'thin' is not one of dense, sparse"):
            ask(X, estimate="thin")
    with pytest.raises(InvalidSetting, match="estimate 'thin' is not one of dense, sparse"):
        early.ranking(USER, "thin")
    with pytest.raises(InvalidSetting, match="estimate 'thin' is not one of dense, sparse"):
        ISplitLBI(estimate="thin").fit(votes)


def test_without_a_path_there_is_no_sparse_estimate(votes, X):
    model = MarginMLE().fit(votes)
    with pytest.raises(InvalidSetting, match="MarginMLE follows no path here"):
        model.predict(X, estimate="sparse")
    assert_array_equal(model.predict(X, estimate="dense"), model.predict(X))


def test_the_consensus_of_a_crowd_is_both_estimates(X, y):
    model = ISplitLBI(estimate="sparse").fit(X[["left", "right"]].assign(winner=y))
    assert not model.has_users
    pairs = X[["left", "right"]]
    assert_array_equal(model.predict_proba(pairs), model.predict_proba(pairs, estimate="dense"))


def test_the_folds_choose_the_time_by_the_estimate_that_is_to_predict(votes, X, tmp_path):
    settings = {"terms": "paper", "kappa": 5.0, "times": TIMES, "n_folds": 3, "with_tests": False}
    dense, sparse = (
        ISplitLBI(estimate=each, **settings).fit(votes) for each in ("dense", "sparse")
    )
    curves = sparse.selection_.chosen
    assert_array_equal(curves.scores["sparse"]["log_loss"],
                       dense.selection_.chosen.scores["sparse"]["log_loss"])  # fmt: skip
    assert sparse.time_ == curves.times[np.argmin(curves.mean("log_loss", "sparse"))]
    assert dense.time_ == curves.times[np.argmin(curves.mean("log_loss", "dense"))]
    assert_array_equal(sparse.predict_proba(X), sparse.predict_proba(X, estimate="sparse"))
    save_model(sparse, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.estimate == again.selection_.estimate == "sparse"
    assert_array_equal(again.predict_proba(X), sparse.predict_proba(X))


# --- the F1s of the published program ------------------------------------------------------


@pytest.mark.parametrize("scoring", PUBLISHED_SCORINGS)
def test_a_time_may_be_chosen_by_the_f1s_of_the_published_program(votes, scoring, tmp_path):
    model = ISplitLBI(
        terms="paper", kappa=5.0, times=TIMES, n_folds=3, rule="threshold", scoring=scoring,
        with_tests=False,
    ).fit(votes)  # fmt: skip
    curves = model.selection_.chosen
    assert set(curves.scores["dense"]) == {*SCORINGS, scoring}
    assert model.time_ == curves.times[np.argmax(curves.mean(scoring))]
    assert scoring in model.selection_.to_frame("polars").columns
    # The score of a path that has seen the votes, at one time, is that of its predictions.
    found = score_votes(votes, model.parameters_, model.link_, "threshold")[scoring]
    expected = paper_f1(confusion(votes.outcome, model.predict(votes)))
    assert_allclose(found, expected[PUBLISHED_SCORINGS.index(scoring)])
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model").selection_.chosen.scores["dense"][scoring]
    assert_array_equal(again, curves.scores["dense"][scoring])


def test_the_f1s_of_the_published_program_are_of_the_threshold_rule(votes):
    with pytest.raises(InvalidSetting, match="it needs rule='threshold'"):
        ISplitLBI(scoring="paper_micro_f1").fit(votes)
