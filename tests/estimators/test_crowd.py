"""Votes of an anonymous crowd: one ranking for all, and intervals that take votes as drawn."""

import numpy as np
import pytest

from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators.crowd import certainty_of
from isplitlbi.storage import load_model, save_model

SCORES = np.linspace(1.2, -1.2, 8)
ITEMS = np.array([f"item-{k}" for k in range(8)])


def drawn(seed=0, n_votes=800, scores=SCORES, side=0.3, **more):
    """Draw votes of nobody in particular that follow one ranking."""
    rng = np.random.default_rng(seed)
    left = rng.integers(len(scores), size=n_votes)
    right = (left + rng.integers(1, len(scores), size=n_votes)) % len(scores)
    margin, chance = scores[left] - scores[right] + side, rng.random(n_votes)
    wins, loses = (1.0 / (1.0 + np.exp(0.5 - sign * margin)) for sign in (1.0, -1.0))
    outcome = np.where(chance < wins, 1, np.where(chance > 1.0 - loses, -1, 0))
    return Comparisons.from_arrays(None, ITEMS[left], ITEMS[right], outcome, **more)


def repeated(votes, rows, **columns):
    """Return votes of their own, some rows of others; other columns may be added."""
    return Comparisons.from_arrays(
        None, votes.items[votes.left[rows]], votes.items[votes.right[rows]], votes.outcome[rows],
        **columns,
    )  # fmt: skip


def errors_of(model):
    covariance = model.standing().covariance
    variance = np.diag(covariance)
    first, second = np.triu_indices(len(variance), 1)
    return np.sqrt(variance[first] + variance[second] - 2.0 * covariance[first, second])


@pytest.fixture(scope="module")
def votes():
    return drawn()


@pytest.fixture(scope="module")
def model(votes):
    return ISplitLBI().fit(votes)


def test_a_crowd_has_one_ranking_with_all_that_a_consensus_has(model, votes):
    assert repr(votes).endswith("of one anonymous crowd on 8 items")
    assert not model.has_users
    assert model.users_.tolist() == ["everybody"]
    assert np.corrcoef(model.consensus_, SCORES)[0, 1] > 0.97
    assert abs(model.threshold_ - 0.5) < 0.15
    assert abs(model.side_ - 0.3) < 0.15
    assert len(model.habits_) == 8
    assert not model.parameters_.deviation.any()
    assert (model.path_, model.selection_, model.time_) == (None, None, None)
    assert "sharpness" not in model.terms_.names


def test_scores_are_held_by_a_prior_so_that_votes_without_a_contradiction_stay_finite():
    votes = Comparisons.from_arrays(None, ["a", "a", "b"], ["b", "c", "c"], [1, 1, 1])
    model = ISplitLBI(sides="unknown").fit(votes)
    assert np.abs(model.consensus_).max() < 20.0
    assert model.ranking().items.tolist() == ["a", "b", "c"]
    assert np.isfinite(model.leaderboard().high).all()


@pytest.mark.parametrize("settings", [{"terms": "paper"}, {"terms": "side"}])
def test_other_settings_give_one_ranking_too(votes, settings):
    model = ISplitLBI(**settings).fit(votes)
    assert np.corrcoef(model.consensus_, SCORES)[0, 1] > 0.95
    board = model.leaderboard()
    assert np.all((board.low < board.score) & (board.score < board.high))


def test_votes_without_ties_and_with_features_have_a_crowd_as_well():
    rng = np.random.default_rng(1)
    length = rng.normal(size=800)
    votes = drawn(features={"length": length})
    decided = votes.outcome != 0
    forced = repeated(votes, decided, features={"length": length[decided]})
    for model in (ISplitLBI().fit(votes), ISplitLBI().fit(forced)):
        (effect,) = model.features()
        assert effect.low < 0.0 < effect.high
        assert effect.high - effect.low < 0.5
    assert model.threshold_ is None and model.leaderboard().tier is None


def test_the_same_votes_in_another_order_give_the_same_crowd(model, votes):
    rows = np.random.default_rng(3).permutation(len(votes))
    other = ISplitLBI().fit(repeated(votes, rows))
    np.testing.assert_allclose(other.consensus_, model.consensus_, atol=1e-9)
    np.testing.assert_allclose(other.standing().covariance, model.standing().covariance, atol=1e-9)


# --- intervals -----------------------------------------------------------------------------


def test_intervals_are_those_of_votes_drawn_again(model, votes):
    rng, found = np.random.default_rng(5), []
    for _ in range(150):
        again = votes.subset(rng.integers(len(votes), size=len(votes)))
        found.append(ISplitLBI().fit(again).consensus_)
    covariance = np.cov(np.array(found).T)
    variance, pairs = np.diag(covariance), np.triu_indices(8, 1)
    bootstrap = np.sqrt(variance[pairs[0]] + variance[pairs[1]] - 2.0 * covariance[pairs])
    assert 0.9 < np.median(errors_of(model) / bootstrap) < 1.15


def test_intervals_of_differences_hold_the_truth():
    n_held = []
    for seed in range(12):
        standing = ISplitLBI().fit(drawn(seed + 100)).standing()
        off = standing.estimate - SCORES
        first, second = np.triu_indices(8, 1)
        variance = np.diag(standing.covariance)
        error = np.sqrt(
            variance[first] + variance[second] - 2.0 * standing.covariance[first, second]
        )
        n_held.append(np.mean(np.abs(off[first] - off[second]) <= 1.96 * error))
    assert 0.88 < np.mean(n_held) <= 1.0


def test_a_vote_of_weight_three_is_that_vote_three_times(votes):
    rows = np.arange(len(votes))
    times = np.where(rows % 4 == 0, 3, 1)
    heavy = repeated(votes, rows, weight=times.astype(float))
    thrice = repeated(votes, np.repeat(rows, times))
    one, other = ISplitLBI().fit(heavy.in_weight_unit(1.0)), ISplitLBI().fit(thrice)
    np.testing.assert_allclose(one.consensus_, other.consensus_, atol=1e-6)
    np.testing.assert_allclose(one.standing().covariance, other.standing().covariance, atol=1e-6)


def test_votes_of_a_group_count_as_one_draw(votes):
    rows = np.repeat(np.arange(len(votes)), 4)
    alone, grouped = (
        ISplitLBI().fit(repeated(votes, rows, group=group)) for group in (None, rows.astype(str))
    )
    assert np.allclose(alone.consensus_, grouped.consensus_)
    # Four copies of a vote tell no more than the vote does.
    ratio = errors_of(grouped) / errors_of(alone)
    assert 1.7 < np.median(ratio) < 2.2


def test_the_certainty_of_votes_with_users_is_that_of_users():
    votes = Comparisons.from_arrays(
        np.repeat(["ann", "bob", "eve"], 4), ["a", "b"] * 6, ["c", "c"] * 6, [1, 0, -1] * 4
    )
    certainty = certainty_of(votes, MarginMLE().fit(votes).fitted_)
    assert certainty.n_users == 3


# --- what needs users ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.test_users(),
        lambda model: model.ranking("everybody"),
        lambda model: model.user_cards(),
        lambda model: model.own_scores("everybody"),
        lambda model: model.effect_of_leaving_out(),
        lambda model: model.leaderboard_without(["everybody"]),
        lambda model: model.decompose(),
        lambda model: model.recommend("everybody", same_as="item-1"),
    ],
)
def test_what_needs_users_is_refused_in_one_sentence(model, ask):
    with pytest.raises(InvalidSetting, match=r"^the votes of this model have no users, so there"):
        ask(model)


def test_lists_of_users_say_that_there_are_none(model):
    for name in ("abnormality_", "abnormal_users_", "unreliable_users_"):
        with pytest.raises(AttributeError, match="the votes of this model have no users to test"):
            getattr(model, name)
        assert not hasattr(model, name)


def test_a_crowd_predicts_with_users_and_without_and_says_nothing_of_it(model, caplog):
    pairs = [("somebody", "item-0", "item-7"), ("everybody", "item-0", "item-7")]
    named = model.predict_proba(pairs)
    assert np.array_equal(named[0], named[1])
    import polars as pl

    frame = pl.DataFrame({"left": ["item-0"], "right": ["item-7"]})
    assert np.array_equal(model.predict_proba(frame)[0], named[0])
    assert caplog.messages == []


def test_pairs_with_outcomes_and_without_users_are_a_crowd(votes, model):
    import polars as pl

    pairs = pl.DataFrame({"left": votes.items[votes.left], "right": votes.items[votes.right]})
    other = ISplitLBI().fit(pairs, votes.outcome)
    assert not other.has_users
    np.testing.assert_allclose(other.consensus_, model.consensus_, atol=1e-9)


# --- storage -------------------------------------------------------------------------------


def test_a_stored_crowd_is_still_one(model, tmp_path):
    save_model(model, tmp_path / "model")
    assert not (tmp_path / "model" / "users.csv").exists()
    loaded = load_model(tmp_path / "model")
    assert not loaded.has_users and loaded.votes().is_anonymous
    assert loaded.leaderboard().to_frame().equals(model.leaderboard().to_frame())
    assert loaded.leaderboard().is_of_crowd
    with pytest.raises(InvalidSetting, match="nobody to test"):
        loaded.test_users()


def test_a_user_called_everybody_is_a_user(votes):
    named = Comparisons.from_arrays(
        ["everybody"] * len(votes), votes.items[votes.left], votes.items[votes.right], votes.outcome
    )
    assert not named.is_anonymous
    assert named.users.tolist() == votes.users.tolist()
    with pytest.raises(InvalidVotes, match="all have users or none has"):
        Comparisons.joined(named, votes)
    assert Comparisons.joined(votes, votes).is_anonymous
    assert votes.subset([0, 1]).is_anonymous
    assert votes.without(items=["item-0"]).is_anonymous
    with pytest.raises(InvalidVotes, match="these votes have no users to leave out"):
        votes.without(users="everybody")
