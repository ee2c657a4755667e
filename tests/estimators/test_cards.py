"""Cards of users, effects of features and habits of items: are they right, and how surely?"""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.estimators.cards import Measured, effect_of_features, own_scores
from isplitlbi.estimators.certainty import Certainty
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.solvers.posterior import Curvature, user_covariances


@pytest.fixture(scope="module")
def study():
    return simulate(
        n_users=60, n_items=8, votes_per_user=(60, 90), score_sd=1.5, threshold=0.7,
        abnormal_share=0.0, sharpness=(0, 0.5, 1, 2, -1), side=0.6, taste_sd=0.5, threshold_sd=0.4,
        tie_habit=0.4, features={"length": (0.5, 0.2)}, random_state=11,
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(study):
    return ISplitLBI(with_tests=False, n_folds=3).fit(study.votes)


def test_cards_tell_of_the_terms_as_they_are(model, study):
    cards, truth = model.user_cards(), study.truth
    assert [card.user for card in cards] == model.users_.tolist()
    assert [card.n_votes for card in cards] == study.votes.votes_per_user.tolist()
    expected = {
        "slope": truth.sharpness,
        "side": truth.common_side + truth.side,
        "tie_factor": truth.user_thresholds() / truth.threshold,
    }
    for name, true in expected.items():
        value, low, high = np.array([getattr(card, name) for card in cards]).T
        assert np.corrcoef(value, true)[0, 1] > 0.75
        assert np.all((low < value) & (value < high))
    assert model.user_card(cards[3].user) == cards[3]


def test_intervals_cover_the_truth_about_as_often_as_they_say(model, study):
    truth, cards = study.truth, model.user_cards()
    _, low, high = np.array([card.side for card in cards]).T
    side = truth.common_side + truth.side
    assert 0.85 < np.mean((low <= side) & (side <= high)) <= 1.0
    low, high = np.log(model.habit_intervals())
    habits = truth.habits - truth.habits.mean()
    centre = np.mean(np.log(model.habits_))
    assert np.mean((low - centre <= habits) & (habits <= high - centre)) >= 0.75
    (effect,) = model.features()
    assert effect.low < 0.5 * effect.unit < effect.high
    assert effect.per_unit == pytest.approx(effect.effect / effect.unit)


def test_shares_add_up_and_are_those_of_the_decomposition(model):
    shares = model.decompose().shares
    for card, row in zip(model.user_cards(), shares, strict=True):
        assert list(card.shares.values()) == pytest.approx(row.tolist())
        assert sum(card.shares.values()) == pytest.approx(1.0)
        assert card.taste_range[0] < card.taste < card.taste_range[1]


def test_words_fit_a_line_and_say_who_is_reversed(model, study):
    cards = model.user_cards()
    assert all(len(line) <= 80 for card in cards for line in card.words)
    assert str(cards[0]).splitlines()[0] == f"user-01, {cards[0].n_votes} votes"
    reversed_users = np.flatnonzero(study.truth.sharpness == -1)
    first = [cards[user].words[0] for user in reversed_users]
    assert np.mean([line.startswith("Votes against the order") for line in first]) > 0.5
    careful = [cards[user].words[0] for user in np.flatnonzero(study.truth.sharpness == 2)]
    assert not any(line.startswith("Votes against") for line in careful)


def test_a_model_without_a_term_has_no_such_line(study):
    model = ISplitLBI(terms="taste", sides="unknown", time=0.1, with_tests=False).fit(study.votes)
    card = model.user_card(model.users_[0])
    assert card.slope is None and card.side is None
    assert card.tie_factor == Measured(1.0, 1.0, 1.0)  # nobody has a threshold of their own


def test_a_users_covariance_is_the_inverse_of_their_curvature(model):
    parameters, votes = model.parameters_, model.votes()
    certainty = Certainty.of(votes, model.fitted_)
    curvature = Curvature.of(votes, model.link_, parameters)
    everybody = np.arange(len(model.users_))
    found = user_covariances(curvature, parameters.units, certainty.seen.variance, everybody)
    for users, covariances in found:
        for user, expected in zip(users, covariances, strict=True):
            own = certainty.of_user(int(user)).inverse
            np.testing.assert_allclose(own, expected[: len(own), : len(own)], atol=1e-10)


def test_the_certainty_of_one_side_is_that_of_a_share():
    """Where all users are alike and all items equal, a common side is the logit of a share."""
    rng = np.random.default_rng(0)
    n_users, n_votes = 400, 20
    user = np.repeat(np.arange(n_users), n_votes)
    outcome = np.where(rng.random(len(user)) < 0.6, 1, -1)
    left = rng.integers(2, size=len(user))
    votes = Comparisons.from_arrays(user, left, 1 - left, outcome)
    model = ISplitLBI(terms="taste,side", with_tests=False).fit(votes)
    share = np.mean(outcome == 1)
    assert model.side_ == pytest.approx(logit(share), abs=0.02)
    certainty = Certainty.of(votes, model.fitted_)
    at = certainty.row[model.parameters_.vector.place("side")]
    expected = 1.0 / np.sqrt(len(user) * share * (1.0 - share))
    assert 0.95 * expected < np.sqrt(certainty.consensus[at, at]) < 1.2 * expected


def test_a_ranking_as_shown_has_the_features_of_the_items():
    """Item b wins only by its length; with equal length, both are alike."""
    rng = np.random.default_rng(2)
    n_votes = 3000
    user, left = rng.integers(30, size=n_votes), rng.integers(2, size=n_votes)
    length = np.where(left == 1, 2.0, -2.0) + rng.normal(size=n_votes)
    wins = rng.random(n_votes) < 1.0 / (1.0 + np.exp(-0.5 * length))
    names = np.array(["a", "b"])
    votes = Comparisons.from_arrays(
        user, names[left], names[1 - left], np.where(wins, 1, -1), features={"length": length}
    )
    model = ISplitLBI(with_tests=False, n_folds=3).fit(votes)
    (effect,) = model.features()
    assert effect.per_unit == pytest.approx(0.5, abs=0.1)
    assert effect.low < 0.5 * effect.unit < effect.high
    scores = model.scores()
    assert abs(scores[1] - scores[0]) < 0.4
    shown = model.ranking_as_shown()
    assert shown.items.tolist() == ["b", "a"]
    assert shown.scores[0] - shown.scores[1] == pytest.approx(1.0, abs=0.25)
    added = effect_of_features(votes, model.parameters_.common)
    assert added.sum() == pytest.approx(0.0, abs=1e-9)


def test_of_very_many_items_the_traits_are_known_about_as_surely(model, monkeypatch):
    (effect,) = model.features()
    low, high = model.habit_intervals()
    monkeypatch.setattr("isplitlbi.estimators.certainty.MOST_PLACES", 3)
    wide = pickle.loads(pickle.dumps(model)).adopt(model.fitted_)
    (again,) = wide.features()
    assert again.effect == pytest.approx(effect.effect, abs=0.05)
    assert again.high - again.low == pytest.approx(effect.high - effect.low, rel=0.2)
    rough_low, rough_high = wide.habit_intervals()
    assert np.log(rough_high / rough_low) == pytest.approx(np.log(high / low), rel=0.8)
    assert wide.user_card(wide.users_[0]).side.value == pytest.approx(
        model.user_card(wide.users_[0]).side.value, abs=0.1
    )


def test_own_scores_need_no_table_of_all_items_where_errors_are_independent(model, monkeypatch):
    monkeypatch.setattr("isplitlbi.estimators.certainty.MOST_PLACES", 3)
    certainty = pickle.loads(pickle.dumps(model)).adopt(model.fitted_).certainty()
    standing = certainty.scores()
    assert standing.covariance.ndim == 1
    as_table = replace(
        certainty, standing=standing._replace(covariance=np.diag(standing.covariance))
    )
    for user in range(3):
        ranking = model.ranking(model.users_[user])
        one, other = (own_scores(each, user, ranking) for each in (certainty, as_table))
        np.testing.assert_allclose(one.high - one.low, other.high - other.low, rtol=1e-9)
