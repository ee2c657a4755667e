"""The other methods: known truth comes back, the contract holds, and what is special to each."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.stats import kendalltau
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score

from isplitlbi import Comparisons, InvalidVotes, ISplitLBI
from isplitlbi.estimators import LBI, LEARNERS, AlphaCut, MarginMLE, PerUser
from isplitlbi.estimators.alpha_cut import Sample, least_acyclic
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.selection import held_out_parts
from votes import rebuilt

# What makes an ensemble quick.
FEW = {"penalties": (2.0**-9, 2.0**-5), "n_members": 7, "n_folds": 2}
RIDGES = (0.003, 0.1, 3.0)

METHODS = {
    "isplitlbi": ISplitLBI(kappa=5.0, times=np.geomspace(0.1, 1.2, 6).tolist(), n_folds=2),
    "lbi": LBI(kappa=10.0, n_folds=2),
    "per-user": PerUser(RIDGES, n_folds=2),
    "margin-mle": MarginMLE(),
    "alpha-cut": AlphaCut("svm-ridge", **FEW),
}
every_method = pytest.mark.parametrize("name", METHODS)
with_probabilities = pytest.mark.parametrize("name", [n for n in METHODS if n != "alpha-cut"])
every_learner = pytest.mark.parametrize("learner", LEARNERS)


def drawn(scores, n_votes=400, n_users=5, threshold=0.5, seed=0):
    """Draw votes by users who share scores and threshold, or have their own each."""
    rng = np.random.default_rng(seed)
    n_items = np.shape(scores)[-1]
    user = rng.integers(n_users, size=n_votes)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    own = np.broadcast_to(scores, (n_users, n_items))
    lead = own[user, left] - own[user, right] + rng.logistic(size=n_votes)
    own_threshold = np.broadcast_to(threshold, n_users)[user]
    outcome = np.where(np.abs(lead) <= own_threshold, 0, np.sign(lead)).astype(int)
    return Comparisons.from_arrays(user, left, right, outcome)


def columns(votes):
    """Return the votes as X and y."""
    X = {"user": votes.users[votes.user], "left": votes.items[votes.left],
         "right": votes.items[votes.right]}  # fmt: skip
    return pl.DataFrame(X), votes.outcome


@pytest.fixture(scope="module")
def study():
    """Eight users, three of them with a taste of their own, on five items."""
    return simulate(
        n_users=8, n_items=5, votes_per_user=(35, 50), score_sd=1.5, deviation_sd=3.0,
        threshold=0.7, abnormal_share=0.25, random_state=5,
    )  # fmt: skip


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


@pytest.fixture(scope="module")
def two_camps():
    """Six users, the odd ones of whom see five items upside down."""
    scores = np.linspace(-2.0, 2.0, 5)
    return drawn([scores * (-1) ** user for user in range(6)], n_votes=900, n_users=6)


def found_by(model):
    """Return all that a fit has found, to the last bit."""
    if isinstance(model, AlphaCut):
        found = (model.degree_, model.alpha_, model.penalty_)
    else:
        chosen = getattr(model, "time_", getattr(model, "ridge_", 0.0))
        found = (model.parameters_.consensus, model.parameters_.deviation, chosen)
    return [np.asarray(array).tobytes() for array in found]


# --- a known truth -------------------------------------------------------------------------

NOISES = {"logistic": ("logistic", 1.0, 0.6), "probit": ("normal", 0.7, 0.4),
          "uniform": ("uniform", 0.2, 0.3)}  # fmt: skip


@pytest.mark.parametrize("link", NOISES)
def test_many_votes_of_a_link_give_back_scores_and_threshold(link):
    noise, score_sd, threshold = NOISES[link]
    votes, truth = simulate(
        n_users=10, n_items=6, votes_per_user=(2000, 2000), score_sd=score_sd, threshold=threshold,
        abnormal_share=0.0, noise=noise, random_state=2,
    )  # fmt: skip
    expected = truth.scores - truth.scores.mean()

    def error(name):
        *scores, tie = MarginMLE(name).fit(votes).parameters_.consensus
        return max(np.abs(scores - expected).max(), abs(tie - threshold))

    assert error(link) < 0.05
    for other in NOISES.keys() - {link}:  # whose scores are on another scale
        assert error(other) > 0.1
    scores = MarginMLE(link).fit(votes).parameters_.consensus[:-1]
    np.testing.assert_array_equal(np.argsort(scores), np.argsort(expected))


@every_learner
def test_every_ensemble_finds_the_common_order(learner):
    scores = np.random.default_rng(1).permutation(np.linspace(-4.0, 4.0, 6))
    votes = drawn(scores)
    model = AlphaCut(learner, **FEW).fit(votes)
    assert kendalltau(model.degree_.sum(axis=1), scores).statistic > 0.9
    better = scores[:, None] - scores > 1.0
    first, second = np.nonzero(better)
    asked = np.column_stack([np.zeros_like(first), first, second])
    assert np.mean(model.predict(asked) == 1) > 0.9


@pytest.mark.parametrize(("family", "strength"), [("lr", 0.03), ("svm", 0.1), ("ls", 0.1)])
def test_a_lasso_makes_scores_equal_where_a_ridge_does_not(family, strength):
    sample = Sample.of(drawn(np.linspace(-0.5, 0.5, 6)))
    lasso, ridge = (LEARNERS[f"{family}-{kind}"](sample, strength) for kind in ("lasso", "ridge"))
    assert 0 < np.sum(lasso == 0.0) < 6
    assert np.all(ridge != 0.0)
    stronger = LEARNERS[f"{family}-ridge"](sample, 10 * strength)
    assert np.abs(stronger).sum() < np.abs(ridge).sum()


def test_only_a_model_per_user_sees_two_camps(two_camps):
    own, common = PerUser(RIDGES, n_folds=2).fit(two_camps), MarginMLE().fit(two_camps)
    for user in range(6):
        scores = own.parameters_.scores_of(user)
        order = np.arange(5) if user % 2 == 0 else np.arange(5)[::-1]
        np.testing.assert_array_equal(np.argsort(scores), order)
    assert own.score(two_camps) > 0.75
    assert common.score(two_camps) < 0.5


def test_many_votes_of_a_user_give_back_her_own_scores_and_threshold():
    scores = np.array([[-1.0, 0.0, 1.0], [1.5, 0.0, -1.5]])
    thresholds = [0.3, 1.2]
    votes = drawn(scores, n_votes=4000, n_users=2, threshold=thresholds)
    found = PerUser(0.1).fit(votes).parameters_
    for user in range(2):
        np.testing.assert_allclose(found.scores_of(user), scores[user], atol=0.15)
        assert found.threshold_of(user) == pytest.approx(thresholds[user], abs=0.1)


def test_lbi_leaves_users_in_the_consensus_no_deviation_of_their_own(study):
    votes, truth = study
    furthest = {}
    for method in (LBI(n_folds=3), ISplitLBI(n_folds=3)):
        model = method.fit(votes)
        inside = model.entry_times_ > model.time_
        assert 0 < inside.sum() < votes.n_users
        assert not inside[truth.abnormal].any()
        distance = model.distance_to_consensus()
        furthest[type(method)] = distance[inside].max()
        assert distance[truth.abnormal].min() > 1.0
    assert furthest[LBI] < 0.05
    assert furthest[ISplitLBI] > 0.2


# --- the contract --------------------------------------------------------------------------


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
    model, (X, y) = fitted[name], columns(votes)
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


@pytest.mark.parametrize("name", ["margin-mle", "alpha-cut"])
def test_where_one_ranking_is_for_all_the_user_does_not_matter(name, fitted, pairs):
    answer = fitted[name].predict(pairs).reshape(9, -1)
    np.testing.assert_array_equal(answer, np.tile(answer[0], (9, 1)))


def test_to_a_model_per_user_strangers_are_indifferent(fitted, votes):
    left, right = votes.items[:2]
    (chances,) = fitted["per-user"].predict_proba([("nobody", left, right)])
    assert chances[0] == pytest.approx(chances[2])
    threshold = fitted["margin-mle"].parameters_.threshold_of(-1)
    assert chances[2] == pytest.approx(1 / (1 + np.exp(threshold)))


@every_method
def test_pairs_with_outcomes_fit_as_comparisons_do(name, fitted, votes, pairs):
    X, y = columns(votes)
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


def test_another_seed_gives_another_ensemble(fitted, votes):
    other = clone(METHODS["alpha-cut"]).set_params(random_state=1).fit(votes)
    assert not np.array_equal(other.degree_, fitted["alpha-cut"].degree_)


@pytest.mark.parametrize(
    ("name", "fixed"),
    # Where folds are drawn, those of doubled votes are others.
    [("isplitlbi", {"time": 0.5}), ("per-user", {"ridge": 0.1}), ("margin-mle", {})],
)
def test_a_weight_of_two_is_the_vote_twice(name, fixed, votes, pairs):
    twice = np.random.default_rng(0).random(votes.n_votes) < 0.3
    X, y = columns(votes)

    def chances(X, y, weight=None):
        return clone(METHODS[name]).set_params(**fixed).fit(X, y, weight).predict_proba(pairs)

    doubled = chances(pl.concat([X, X.filter(twice)]), np.append(y, y[twice]))
    np.testing.assert_allclose(chances(X, y, 1.0 + twice), doubled)
    assert not np.allclose(chances(X, y), doubled)


@with_probabilities
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


@with_probabilities
def test_the_rule_of_a_prediction_can_be_another_than_the_models(name, fitted, pairs, votes):
    model = fitted[name]
    margin, threshold = model._margins(pairs)
    expected = np.where(np.abs(margin) <= threshold, 0, np.sign(margin))
    np.testing.assert_array_equal(model.predict(pairs, rule="threshold"), expected)
    assert not np.array_equal(model.predict(pairs), expected)
    own = clone(model).set_params(rule="threshold").fit(votes)
    np.testing.assert_array_equal(own.predict(pairs), expected)
    with pytest.raises(ValueError, match="rule 'dice' is not one of map, threshold"):
        clone(model).set_params(rule="dice").fit(votes)


def test_an_ensemble_has_no_probabilities(fitted):
    assert not hasattr(fitted["alpha-cut"], "predict_proba")
    assert not hasattr(fitted["alpha-cut"], "predict_log_proba")


@with_probabilities
def test_an_unknown_link_is_an_error(name, votes):
    with pytest.raises(ValueError, match="link 'cauchy' is not one of logistic, probit, uniform"):
        clone(METHODS[name]).set_params(link="cauchy").fit(votes)


# --- a model per user ----------------------------------------------------------------------


def test_the_ridge_with_the_least_held_out_loss_is_chosen(votes):
    model = PerUser(RIDGES, n_folds=3, random_state=4).fit(votes)
    losses = []
    for ridge in RIDGES:
        loss = 0.0
        for training, held_out in held_out_parts(votes, 3, 4):
            X, y = columns(held_out)
            chances = PerUser(ridge).fit(training).predict_log_proba(X)
            loss -= chances[np.arange(len(y)), y + 1].sum()
        losses.append(loss)
    assert model.ridge_ == RIDGES[int(np.argmin(losses))] == 0.1
    alone = PerUser(model.ridge_).fit(votes)
    np.testing.assert_allclose(model.parameters_.deviation, alone.parameters_.deviation, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, -1.0, [], [0.1, 0.0], np.nan])
def test_a_ridge_that_is_not_positive_is_an_error(votes, ridge):
    with pytest.raises(ValueError, match=r"ridge is .* must be positive"):
        PerUser(ridge).fit(votes)


# --- the ensemble --------------------------------------------------------------------------


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
    votes = drawn(np.linspace(-0.1, 0.1, 7), n_votes=150, seed=seed)
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
    model = fitted["alpha-cut"]
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
    sample = Sample.of(drawn(np.zeros(4), n_votes=90))
    one, other = (sample.drawn(90, np.random.default_rng(seed)) for seed in (0, 1))
    assert one.weight.sum() == other.weight.sum() == 90.0
    assert not np.array_equal(one.weight, other.weight)
    existing = {row for row in zip(*sample[1:4], strict=True)}
    assert set(zip(*one[1:4], strict=True)) <= existing
