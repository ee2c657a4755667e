"""What every estimator does alike; and all that those can that have scores."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from isplitlbi import (
    LBI,
    AlphaCut,
    InvalidVotes,
    ISplitLBI,
    ISplitLBIError,
    MarginMLE,
    PerUser,
    load_model,
    save_model,
)
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.inputs import as_votes
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output import plots
from isplitlbi.output.report import write_report
from isplitlbi.output.tables import (
    as_polars,
    main_figures,
    predictions_table,
    ranking_table,
    users_table,
)
from isplitlbi.storage import ESTIMATORS
from studies import FEW, columns_of
from votes import rebuilt

# Users are tested where a test needs it.
METHODS = {
    # Without sides, what is predicted turns with the pair.
    "isplitlbi": ISplitLBI(
        kappa=5.0,
        times=np.geomspace(0.1, 1.2, 6).tolist(),
        n_folds=2,
        sides="unknown",
        with_tests=False,
    ),
    "lbi": LBI(kappa=10.0, n_folds=2, with_tests=False),
    "per-user": PerUser([0.003, 0.1, 3.0], n_folds=2),
    "margin-mle": MarginMLE(),
    "alpha-cut": AlphaCut("svm-ridge", **FEW),
}


every_method = pytest.mark.parametrize("name", METHODS)


with_scores = pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if isinstance(method, ScoreEstimator)]
)


@pytest.fixture(scope="module")
def votes(study):
    return study.votes


@pytest.fixture(scope="module")
def pairs(votes):
    """Every user of the study and a stranger, on every pair of items."""
    who = [*votes.users.tolist(), "stranger"]
    items = votes.items.tolist()
    return [(user, left, right) for user in who for left in items for right in items]


@pytest.fixture(scope="module")
def fitted(votes):
    return {name: clone(method).fit(votes) for name, method in METHODS.items()}


def found_by(model):
    """Return all that a fit has found, to the last bit."""
    if isinstance(model, AlphaCut):
        found = (model.degree_, model.alpha_, model.penalty_)
    else:
        chosen = getattr(model, "time_", getattr(model, "ridge_", 0.0))
        found = (model.parameters_.consensus, model.parameters_.deviation, chosen)
    return [np.asarray(array).tobytes() for array in found]


# --- every estimator -----------------------------------------------------------------------


@every_method
def test_a_clone_has_the_same_settings_and_is_not_fitted(name, fitted, votes):
    model = fitted[name]
    copy = clone(model)
    assert repr(copy.get_params()) == repr(model.get_params())
    with pytest.raises(NotFittedError):
        copy.predict(votes)


@every_method
def test_settings_can_be_changed_after_a_clone(name):
    setting = "delta" if name == "margin-mle" else "n_folds"
    changed = clone(METHODS[name]).set_params(**{setting: 4})
    assert clone(changed).get_params()[setting] == 4


@every_method
def test_before_a_fit_there_are_no_predictions(name, votes):
    unfitted = clone(METHODS[name])
    with pytest.raises(NotFittedError):
        unfitted.predict(votes)
    with pytest.raises(NotFittedError):
        unfitted.score(votes)


@every_method
def test_scikit_learn_takes_it_for_a_classifier_and_sees_whether_it_is_fitted(name, fitted):
    assert is_classifier(METHODS[name])
    check_is_fitted(fitted[name])
    with pytest.raises(NotFittedError):
        check_is_fitted(METHODS[name])


@every_method
def test_it_is_shown_with_the_settings_that_are_not_the_default_ones(name):
    plain = type(METHODS[name])()
    assert repr(plain) == f"{type(plain).__name__}()"
    setting = "delta" if name == "margin-mle" else "n_folds"
    assert repr(plain.set_params(**{setting: 4})) == f"{type(plain).__name__}({setting}=4)"


@every_method
def test_fitting_returns_the_model_and_says_whom_it_knows(name, votes):
    model = clone(METHODS[name])
    assert model.fit(votes) is model
    np.testing.assert_array_equal(model.users_, votes.users)
    np.testing.assert_array_equal(model.items_, votes.items)
    np.testing.assert_array_equal(model.classes_, [-1, 0, 1])


@every_method
def test_predictions_are_wins_ties_and_losses_and_turn_with_the_pair(name, fitted, pairs):
    answer = fitted[name].predict(pairs)
    assert set(answer.tolist()) == {1, 0, -1}
    turned = [(user, right, left) for user, left, right in pairs]
    np.testing.assert_array_equal(fitted[name].predict(turned), -answer)
    alike = [left == right for _, left, right in pairs]
    assert not answer[alike].any()


@every_method
def test_the_score_is_the_share_of_votes_predicted_right(name, fitted, votes):
    model, (X, y) = fitted[name], columns_of(votes)
    assert model.score(votes) == pytest.approx(accuracy_score(y, model.predict(X)))
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    expected = accuracy_score(y, model.predict(X), sample_weight=weight)
    assert model.score(X, y, sample_weight=weight) == pytest.approx(expected)
    assert 0.5 < model.score(votes) < 1.0


@every_method
def test_an_unknown_user_gets_an_answer_and_an_unknown_item_an_error(name, fitted, votes):
    model, (best, *_, worst) = fitted[name], votes.items
    assert model.predict([("nobody", best, worst)]).shape == (1,)
    for pair in (("cake", worst), (worst, "cake")):
        with pytest.raises(InvalidVotes, match="item 'cake' is not among the 5 items"):
            model.predict([("user-01", *pair)])


@with_scores
def test_whatever_is_asked_of_an_unknown_user_is_an_error_that_names_the_nearest(name, fitted):
    model, item = fitted[name], fitted[name].items_[0]
    questions = {
        "scores": model.scores,
        "threshold": model.threshold,
        "ranking": model.ranking,
        "ranking_as_shown": model.ranking_as_shown,
        "relation": lambda user: model.relation(item, model.items_[1], user),
        "recommend": lambda user: model.recommend(user, better_than=item),
        "telling_votes": model.telling_votes,
        "user_card": model.user_card,
        "user_index": model.user_index,
    }
    message = "user 'user-1' is not among the 8 users of this model; the nearest is 'user-01'"
    for ask in questions.values():
        with pytest.raises(InvalidVotes, match=message):
            ask("user-1")
    assert model.user_index(None) == -1
    for ask in (model.telling_votes, model.user_card):
        with pytest.raises(ISplitLBIError, match="name a user"):
            ask(None)


@pytest.mark.parametrize("name", ["margin-mle", "alpha-cut"])
def test_where_one_ranking_is_for_all_the_user_does_not_matter(name, fitted, pairs):
    answer = fitted[name].predict(pairs).reshape(9, -1)
    np.testing.assert_array_equal(answer, np.tile(answer[0], (9, 1)))


@every_method
def test_pairs_with_outcomes_fit_as_comparisons_do(name, fitted, votes, pairs):
    X, y = columns_of(votes)
    again = clone(METHODS[name]).fit(X, y)
    np.testing.assert_array_equal(again.predict(pairs), fitted[name].predict(pairs))
    assert found_by(again) == found_by(fitted[name])
    with pytest.raises(ValueError, match="give y"):
        clone(METHODS[name]).fit(X)


@every_method
def test_the_order_of_the_rows_does_not_matter(name, fitted, votes, pairs):
    order = np.random.default_rng(3).permutation(votes.n_votes)
    again = clone(METHODS[name]).fit(rebuilt(votes, order))
    np.testing.assert_array_equal(again.predict(pairs), fitted[name].predict(pairs))


@every_method
def test_the_same_seed_gives_the_same_model(name, fitted, votes):
    assert found_by(clone(METHODS[name]).fit(votes)) == found_by(fitted[name])


@pytest.mark.parametrize("name", ["isplitlbi", "lbi", "alpha-cut"])
def test_the_number_of_threads_does_not_matter(name, fitted, votes):
    for n_jobs in (1, 3):
        again = clone(METHODS[name]).set_params(n_jobs=n_jobs).fit(votes)
        assert found_by(again) == found_by(fitted[name])


@pytest.mark.parametrize(
    ("name", "fixed"),
    # Where folds are drawn, those of doubled votes are others.
    [("isplitlbi", {"time": 0.5}), ("per-user", {"ridge": 0.1}), ("margin-mle", {})],
)
def test_a_vote_counts_as_much_as_its_weight_says(name, fixed, votes, pairs):
    twice = np.random.default_rng(0).random(votes.n_votes) < 0.3
    X, y = columns_of(votes)

    def chances(X, y, weight=None):
        given = as_votes(X, y, weight).in_weight_unit(1.0)
        return clone(METHODS[name]).set_params(**fixed).fit(given).predict_proba(pairs)

    doubled = chances(pl.concat([X, X.filter(twice)]), np.append(y, y[twice]))
    np.testing.assert_allclose(chances(X, y, 1.0 + twice), doubled)
    assert not np.allclose(chances(X, y), doubled)


@with_scores
def test_probabilities_are_three_that_sum_to_one_and_choose_the_prediction(name, fitted, pairs):
    model = fitted[name]
    chances = model.predict_proba(pairs)
    assert chances.shape == (len(pairs), 3)
    assert chances.min() > 0.0
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(pairs)), chances)
    sure = np.ptp(np.sort(chances)[:, 1:], axis=1) > 1e-6
    answer = model.classes_[chances.argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(pairs)[sure], answer[sure])


@with_scores
def test_the_rule_of_a_prediction_can_be_another_than_the_models(name, fitted, pairs, votes):
    model = fitted[name]
    stands = {"better": 1, "tied": 0, "worse": -1}
    expected = [
        stands[model.relation(left, right, None if user == "stranger" else user)]
        for user, left, right in pairs
    ]
    np.testing.assert_array_equal(model.predict(pairs, rule="threshold"), expected)
    assert not np.array_equal(model.predict(pairs), expected)
    own = clone(model).set_params(rule="threshold").fit(votes)
    np.testing.assert_array_equal(own.predict(pairs), expected)
    with pytest.raises(ValueError, match="rule 'dice' is not one of map, threshold"):
        clone(model).set_params(rule="dice").fit(votes)


@with_scores
def test_an_unknown_link_is_an_error(name, votes):
    with pytest.raises(ValueError, match="link 'cauchy' is not one of logistic, probit, uniform"):
        clone(METHODS[name]).set_params(link="cauchy").fit(votes)


@every_method
def test_a_seed_of_another_kind_is_refused_before_anything_else(name):
    method = clone(METHODS[name])
    if "random_state" in method.get_params():
        method.set_params(random_state=np.random.RandomState(0))
        with pytest.raises(ISplitLBIError, match="random_state is"):
            method.fit(None)


@every_method
def test_no_attribute_that_is_set_by_a_fit_is_computed(name):
    for kind in type(METHODS[name]).__mro__[:-1]:
        for attribute, value in vars(kind).items():
            if kind.__module__.startswith("isplitlbi") and isinstance(value, property):
                assert not attribute.endswith("_")


# --- those with scores -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def tested(fitted):
    for model in fitted.values():
        if isinstance(model, ScoreEstimator):
            model.test_users()
    return fitted


def test_every_estimator_with_scores_can_be_stored():
    with_scores = {type(each) for each in METHODS.values() if isinstance(each, ScoreEstimator)}
    assert set(ESTIMATORS.values()) == with_scores


@with_scores
def test_scores_give_rankings_relations_and_recommendations(name, fitted, votes):
    model = fitted[name]
    for user in (None, votes.users[0]):
        scores = dict(zip(model.items_.tolist(), model.scores(user).tolist(), strict=True))
        ranking = model.ranking(user)
        assert ranking.scores.tolist() == sorted(scores.values(), reverse=True)
        best, worst = ranking.items[0], ranking.items[-1]
        own = dict(zip(model.items_.tolist(), model.habits_.tolist(), strict=True))
        threshold = model.threshold(user) * own[best] * own[worst]
        apart = scores[best] - scores[worst] > threshold
        assert model.relation(best, worst, user) == ("better" if apart else "tied")
        assert (best in model.recommend(user, better_than=worst)) == apart
        assert (best in model.recommend(user, same_as=worst)) == (not apart)
    np.testing.assert_array_equal(model.scores(), model.consensus_)
    assert model.threshold() == model.threshold_
    distance = [np.linalg.norm(model.scores(user) - model.consensus_) for user in model.users_]
    np.testing.assert_allclose(model.distance_to_consensus(), distance, atol=1e-12)


@with_scores
def test_scores_come_with_the_votes_and_their_summary(name, fitted, votes):
    model = fitted[name]
    assert model.has_votes() and model.votes() is votes
    assert model.summary_.n_votes == len(votes)
    low, high = model.consensus_intervals()
    assert np.all(low < high)
    figures = main_figures(model)
    assert (figures["votes"], figures["threshold"]) == (len(votes), model.threshold_)


@with_scores
def test_a_leaderboard_has_the_order_of_the_ranking(name, fitted, votes):
    model = fitted[name]
    board = model.leaderboard()
    assert board.n_ranked == votes.n_items
    assert board.items.tolist() == model.ranking().items.tolist()
    np.testing.assert_array_equal(board.score, model.ranking().scores)
    assert np.all((board.rank_low <= board.rank) & (board.rank <= board.rank_high))
    assert np.all((board.low < board.score) & (board.score < board.high))
    assert all(board.group)
    if name == "per-user":  # there is no consensus: nothing is told apart
        assert set(board.group) == {"a"}
    table = as_polars(board)
    assert table["votes"].sum() == 2 * len(votes)
    assert as_polars(model.head_to_head())["votes"].sum() == len(votes)
    own = model.own_scores(votes.users[0])
    assert np.all((own.low <= own.score) & (own.score <= own.high))
    np.testing.assert_array_equal(own.score, model.scores(votes.users[0]))
    with pytest.raises(InvalidVotes, match="user 'nobody' is not among the 8 users of"):
        model.own_scores("nobody")


@with_scores
def test_every_table_can_be_made(name, tested, votes):
    model = tested[name]
    assert len(ranking_table(model)) == len(ranking_table(model, votes.users[0])) == votes.n_items
    users = users_table(model)
    assert sorted(users["user"]) == votes.users.tolist()
    assert users["entry_time"].null_count() == np.isinf(model.entry_times_).sum()
    named = users.filter("abnormal")["user"].to_list()
    assert named == model.unreliable_users_ + model.different_users_
    pairs = pl.DataFrame(columns_of(votes)[0])[:5]
    assert len(predictions_table(model, pairs)) == 5
    best = model.ranking().items[0]
    assert len(as_polars(model.recommend(better_than=best))) == 0
    assert 0 < len(as_polars(model.telling_votes(votes.users[0], most=3))) <= 3
    assert len(as_polars(model.effect_of_leaving_out())) == votes.n_items


@with_scores
def test_a_table_of_users_who_were_not_tested_has_the_same_columns(name, tested, votes):
    untested = clone(METHODS[name]).fit(votes)
    table, with_tests = users_table(untested), users_table(tested[name])
    assert table.schema == with_tests.schema
    assert table["abnormal"].null_count() == len(table)
    assert table["entry_rank"].drop_nulls().is_sorted()
    same = [each.select("user", "distance").sort("user") for each in (table, with_tests)]
    assert same[0].equals(same[1])


@with_scores
@pytest.mark.parametrize("was_tested", [True, False])
def test_what_is_stored_comes_back_to_the_last_bit(name, was_tested, tested, votes, tmp_path):
    model = tested[name] if was_tested else clone(METHODS[name]).fit(votes)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model)
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert found_by(loaded) == found_by(model)
    np.testing.assert_array_equal(loaded.predict_proba(votes), model.predict_proba(votes))
    np.testing.assert_array_equal(loaded.entry_times_, model.entry_times_)
    assert loaded.left_consensus_ == model.left_consensus_
    assert users_table(loaded).equals(users_table(model))
    assert (tmp_path / "model" / "abnormal.npz").exists() == was_tested
    assert hasattr(loaded, "abnormality_") == was_tested
    if was_tested:
        assert loaded.abnormal_users_ == model.abnormal_users_
        assert loaded.unreliable_users_ == model.unreliable_users_
        assert loaded.different_users_ == model.different_users_
        assert loaded.abnormality_.explanation == model.abnormality_.explanation
        np.testing.assert_array_equal(
            loaded.abnormality_.consensus.values, model.abnormality_.consensus.values
        )
    else:
        np.testing.assert_array_equal(
            loaded.test_users().p_value, tested[name].abnormality_.p_value
        )
    assert found_by(loaded.fit(votes)) == found_by(model)


@with_scores
def test_a_report_is_a_page(name, tested, tmp_path):
    pytest.importorskip("plotly", reason="the report needs plotly (pip install .[report])")
    write_report(tested[name], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert ('id="path"' in page) == (tested[name].path_ is not None)


@with_scores
def test_every_figure_is_drawn_or_says_what_is_missing(name, tested, votes):
    pytest.importorskip("matplotlib", reason="figures need matplotlib (pip install .[plots])")
    model = tested[name]
    for draw in (plots.consensus_ladder, plots.deviations, plots.distances, plots.comparison_graph):
        assert draw(model).has_data()
    assert plots.user_against_consensus(model, votes.users[0]).has_data()
    for draw in (plots.path, plots.cross_validation):
        if model.path_ is None:
            with pytest.raises(ISplitLBIError, match="this model has no"):
                draw(model)
        else:
            assert draw(model).has_data()


def test_an_estimator_without_scores_cannot_be_stored(fitted, tmp_path):
    with pytest.raises(ISplitLBIError, match=r"only ISplitLBI, .* can be stored, not AlphaCut"):
        save_model(fitted["alpha-cut"], tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# --- votes without ties, and votes with features -----------------------------------------------


@pytest.fixture(scope="module")
def forced():
    """Votes that all name a winner."""
    return simulate(
        n_users=8, n_items=5, votes_per_user=(35, 50), score_sd=1.5, deviation_sd=3.0,
        threshold=None, abnormal_share=0.25, random_state=5,
    ).votes  # fmt: skip


@pytest.fixture(scope="module")
def with_features():
    """Votes with the length of both sides."""
    return simulate(
        n_users=8, n_items=5, votes_per_user=(35, 50), score_sd=1.0, threshold=0.7,
        abnormal_share=0.0, features={"length": 1.0}, random_state=5,
    ).votes  # fmt: skip


@every_method
def test_votes_without_ties_can_be_fitted(name, forced):
    model = clone(METHODS[name]).fit(forced)
    assert 0.6 < model.score(forced) <= 1.0
    if name == "isplitlbi":
        assert set(model.predict(forced).tolist()) == {1, -1}


@pytest.mark.parametrize("sides", ["known", "unknown"])
@pytest.mark.parametrize("terms", ["all", "taste,side"])
def test_without_ties_there_is_no_tie_anywhere(forced, pairs, terms, sides, tmp_path):
    model = clone(METHODS["isplitlbi"]).set_params(terms=terms, sides=sides).fit(forced)
    assert model.classes_.tolist() == [-1, 1]
    assert model.threshold_ is None and model.threshold(forced.users[0]) is None
    assert "threshold" not in model.spreads_
    chances = model.predict_proba(pairs)
    assert chances.shape == (len(pairs), 2)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(pairs)), chances)
    sure = np.abs(chances[:, 0] - 0.5) > 1e-6
    for rule in ("map", "threshold"):
        answer = model.predict(pairs, rule=rule)
        assert set(answer.tolist()) == {1, -1}
        np.testing.assert_array_equal(answer[sure], np.where(chances[sure, 1] > 0.5, 1, -1))
    ranking = model.ranking()
    assert ranking.tier is None and len(ranking.tiers) == forced.n_items
    best, worst = ranking.items[0], ranking.items[-1]
    assert model.relation(best, worst) == "better" and model.relation(worst, best) == "worse"
    assert best in model.recommend(better_than=worst)
    with pytest.raises(ISplitLBIError, match="no item is as good as another here"):
        model.recommend(same_as=best)
    card = model.user_card(forced.users[0])
    assert card.tie_factor is None


def test_where_ties_are_allowed_they_need_not_occur(forced):
    model = clone(METHODS["isplitlbi"]).set_params(ties="allowed").fit(forced)
    assert model.classes_.tolist() == [-1, 0, 1]
    assert 0.0 < model.threshold_ < 0.2
    assert 0.0 < model.predict_proba(forced)[:, 1].max() < 0.2


@every_method
def test_votes_with_features_can_be_fitted_and_predicted(name, with_features):
    model = clone(METHODS[name]).fit(with_features)
    answer = model.predict(with_features)
    X, _ = columns_of(with_features)
    (length,) = with_features.features.columns
    np.testing.assert_array_equal(model.predict(X.with_columns(length=length)), answer)
    alike = model.predict(X)
    assert np.array_equal(alike, answer) == (name != "isplitlbi")


def test_features_move_what_is_predicted_and_what_is_not_told_is_alike(with_features):
    model = clone(METHODS["isplitlbi"]).fit(with_features)
    user, (a, b, *_) = with_features.users[0], with_features.items
    pair = pl.DataFrame({"user": [user], "left": [a], "right": [b]})
    left = [
        float(model.predict_proba(pair.with_columns(length_left=x, length_right=1.0))[0, 2])
        for x in (-1.0, 1.0, 3.0)
    ]
    assert left == sorted(left) and left[2] - left[0] > 0.1
    assert left[1] == pytest.approx(model.predict_proba(pair)[0, 2])
    with pytest.raises(InvalidVotes, match="length_left is missing"):
        model.predict(pair.with_columns(length_left=None, length_right=1.0))


@with_scores
def test_only_a_model_with_features_tells_of_them(name, fitted, with_features):
    assert fitted[name].features() == ()
    model = clone(METHODS[name]).fit(with_features)
    assert [effect.name for effect in model.features()] == ["length"] * (name == "isplitlbi")
    assert model.ranking_as_shown().items.tolist()
    if name != "isplitlbi":
        assert str(model.ranking_as_shown()) == str(model.ranking())


@with_scores
def test_cards_are_written_where_users_have_deviations_of_some_size(name, fitted, votes):
    model = fitted[name]
    if name in ("isplitlbi", "lbi"):
        assert [card.user for card in model.user_cards()] == votes.users.tolist()
        with pytest.raises(InvalidVotes, match="user 'nobody' is not among the"):
            model.user_card("nobody")
    else:
        with pytest.raises(ISplitLBIError, match=f"{type(model).__name__} does not say by how"):
            model.user_cards()
