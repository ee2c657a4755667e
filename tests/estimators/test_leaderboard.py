"""The leaderboard: what always holds of it, and what few votes on an item do."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.data.frames import FIRST
from isplitlbi.estimators.certainty import Certainty, Standing
from isplitlbi.estimators.leaderboard import Counts, Leaderboard, score_intervals
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.tables import as_polars
from studies import HOSTILE, QUICK, drawn_by_users, hostile_model
from votes import rebuilt


def columns_of(votes):
    return (
        votes.users[votes.user], votes.items[votes.left], votes.items[votes.right], votes.outcome
    )  # fmt: skip


def as_dict(board, name):
    return dict(zip(board.items.tolist(), getattr(board, name).tolist(), strict=True))


@pytest.fixture(scope="module")
def votes():
    return simulate(
        n_users=20, n_items=8, votes_per_user=(40, 60), threshold=0.5, random_state=2
    ).votes


@pytest.fixture(scope="module")
def model(votes):
    return ISplitLBI(**QUICK).fit(votes)


def test_ranks_and_scores_lie_in_their_intervals(model):
    board = model.leaderboard()
    assert board.items.tolist() == model.ranking().items.tolist()
    np.testing.assert_array_equal(board.rank, np.arange(1, 9))
    assert np.all((board.rank_low <= board.rank) & (board.rank <= board.rank_high))
    assert np.all((board.rank_low >= 1) & (board.rank_high <= 8))
    assert np.all((board.low <= board.score) & (board.score <= board.high))
    assert board.tier.tolist() == model.ranking().tier.tolist()
    assert model.leaderboard() is board  # found once
    low, high = model.consensus_intervals()
    by_item = np.argsort(board.items)
    np.testing.assert_allclose(low, board.low[by_item])
    np.testing.assert_allclose(high, board.high[by_item])


@pytest.mark.parametrize("seed", range(5))
def test_ranks_hold_whatever_the_covariance(seed):
    rng = np.random.default_rng(seed)
    votes = drawn_by_users(np.linspace(2.0, 0.0, 6), seed=seed)
    consensus = MarginMLE().fit(votes).parameters_.common
    root = rng.normal(size=(6, 6)) * rng.lognormal(sigma=0.5)
    standing = Standing(consensus.scores + rng.normal(size=6), root @ root.T / 30, 4.0)
    board = Leaderboard.of(votes.items, consensus, standing, Counts.of(votes))
    n_ranked = board.n_ranked
    ranks = (each[:n_ranked] for each in (board.rank_low, board.rank, board.rank_high))
    low, rank, high = ranks
    assert np.all((low >= 1) & (low <= rank) & (rank <= high) & (high <= n_ranked))
    assert np.all((board.low <= board.score) & (board.score <= board.high))
    assert not board.rank[n_ranked:].any() and not any(board.group[n_ranked:])
    assert np.all(board.votes_missing[n_ranked:] > 0)


def test_wins_ties_and_losses_add_up_to_votes(votes, model):
    board = model.leaderboard()
    np.testing.assert_array_equal(board.wins + board.ties + board.losses, board.votes)
    assert board.votes.sum() == 2 * len(votes) and board.wins.sum() == board.losses.sum()
    first = board.items[0]
    user, left, right, outcome = columns_of(votes)
    won = ((left == first) & (outcome == 1)) | ((right == first) & (outcome == -1))
    assert board.wins[0] == np.count_nonzero(won)
    weight = np.full(len(votes), 0.5)
    half = Comparisons.from_arrays(user, left, right, outcome, weight).in_weight_unit(1.0)
    weighted = Counts.of(half)
    np.testing.assert_allclose(weighted.wins, Counts.of(votes).wins / 2)


def test_other_names_and_another_order_change_nothing(votes, model):
    board = as_polars(model.leaderboard())
    order = np.random.default_rng(0).permutation(len(votes))
    again = ISplitLBI(**QUICK).fit(rebuilt(votes, order))
    shuffled = as_polars(again.leaderboard())
    user, left, right, outcome = columns_of(votes)
    turned = {item: f"z{99 - place}" for place, item in enumerate(votes.items.tolist())}
    names = [[turned[item] for item in side] for side in (left, right)]
    other = ISplitLBI(**QUICK).fit(Comparisons.from_arrays(user, *names, outcome))
    renamed = as_polars(other.leaderboard())
    renamed = renamed.with_columns(pl.col("item").replace({v: k for k, v in turned.items()}))
    for table in (shuffled, renamed):
        for name in ("item", "rank", "rank_low", "rank_high", "group", "tier", "votes", "wins"):
            assert table[name].to_list() == board[name].to_list(), name
        for name in ("score", "low", "high"):
            np.testing.assert_allclose(table[name], board[name], atol=1e-6)


@pytest.mark.parametrize("outcomes", [(1, 1), (1, -1), (-1, -1), (0, 1)])
def test_an_item_with_two_votes_is_listed_apart_and_hardly_moves_the_others(votes, model, outcomes):
    user, left, right, outcome = columns_of(votes)
    more = Comparisons.from_arrays(
        np.append(user, user[:2]), np.append(left, ["new", "new"]), np.append(right, left[:2]),
        np.append(outcome, outcomes),
    )  # fmt: skip
    before, board = model.leaderboard(), ISplitLBI(**QUICK).fit(more).leaderboard()
    assert board.n_ranked == 8 and board.items[-1] == "new"
    assert board.votes[-1] == 2 and board.votes_missing[-1] > 2
    assert board.rank.tolist() == [*range(1, 9), 0]
    assert board.tier[-1] == 0 and board.group[-1] == ""
    table = as_polars(board)
    for name in ("rank", "rank_low", "rank_high", "tier", "group"):
        assert table[name][-1] is None and table[name][:-1].null_count() == 0
    lengths = before.high - before.low
    for name in ("low", "high"):
        old, new = as_dict(before, name), as_dict(board, name)
        moved = np.array([new[item] - old[item] for item in before.items])
        assert np.all(np.abs(moved - np.median(moved)) < 0.25 * lengths)
    assert "Too few votes to be ranked:" in str(board)
    assert str(board).split("Too few")[0].count("\n") == 8 + 2


def test_an_item_that_always_loses_is_ranked_all_the_same():
    estimate = np.array([0.3, 0.2, 0.1, 0.0, -9.0])
    votes = drawn_by_users(np.array([0.3, 0.2, 0.1, 0.0, -2.0]), n_votes=600)
    consensus = MarginMLE().fit(votes).parameters_.common
    standing = Standing(estimate, np.diag([0.1, 0.1, 0.1, 0.1, 2.0]), np.inf)
    board = Leaderboard.of(votes.items, consensus, standing, Counts.of(votes))
    assert board.n_ranked == 5 and board.rank_low[-1] == 5
    unclear = standing._replace(estimate=np.array([0.3, 0.2, 0.1, 0.0, -0.5]))
    board = Leaderboard.of(votes.items, consensus, unclear, Counts.of(votes))
    assert board.n_ranked == 4 and board.items[-1] == 4


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    covered = []
    for seed in range(6):
        study = simulate(
            n_users=40, n_items=8, votes_per_user=(40, 60), abnormal_share=0.0, taste_sd=0.5,
            score_sd=1.0, threshold=0.5, random_state=seed,
        )  # fmt: skip
        model = ISplitLBI(**QUICK).fit(study.votes)
        low, high = model.consensus_intervals()
        truth = study.truth.scores + np.mean(0.5 * (low + high) - study.truth.scores)
        covered.append((low <= truth) & (truth <= high))
    assert np.mean(covered) > 0.85


# --- one user, and none --------------------------------------------------------------------


def test_of_a_single_user_the_intervals_are_those_of_the_models_curvature():
    votes = drawn_by_users(np.linspace(1.0, -1.0, 5), n_votes=800)
    user, left, right, outcome = columns_of(votes)
    alone = MarginMLE().fit(Comparisons.from_arrays(["x"] * len(user), left, right, outcome))
    standing = alone.certainty().scores()
    assert standing.freedom == np.inf
    np.testing.assert_array_equal(standing.estimate, alone.consensus_)
    board = alone.leaderboard()
    assert np.all(board.low < board.high) and np.all(board.high - board.low < 2.0)
    four = np.full(len(user), 4.0)
    heavy = Comparisons.from_arrays(["x"] * len(user), left, right, outcome, four)
    twice = MarginMLE().fit(heavy.in_weight_unit(1.0))
    ratio = (board.high - board.low) / (twice.leaderboard().high - twice.leaderboard().low)
    np.testing.assert_allclose(ratio, 2.0, rtol=1e-2)


def test_with_very_many_items_errors_are_taken_for_independent(model, votes, monkeypatch):
    usual = model.certainty().scores()
    monkeypatch.setattr("isplitlbi.estimators.certainty.MOST_PLACES", 3)
    rough = Certainty.of(votes, model.fitted_).scores()
    assert rough.covariance.shape == (8,)
    usual_low, usual_high = score_intervals(model.consensus_, usual)
    low, high = score_intervals(model.consensus_, rough)
    assert np.all(high - low < 3.0 * (usual_high - usual_low))
    assert np.all(high - low > (usual_high - usual_low) / 3.0)


def test_where_users_do_not_deviate_an_interval_is_that_of_a_sandwich_by_user():
    """Of two items and no ties, the score is a logit, and users are clusters of votes."""
    rng = np.random.default_rng(1)
    n_users, n_votes = 200, 20
    user = np.repeat(np.arange(n_users), n_votes)
    wins = rng.random(len(user)) < 0.6
    votes = Comparisons.from_arrays(
        user, ["a"] * len(user), ["b"] * len(user), np.where(wins, 1, -1)
    )
    low, high = MarginMLE().fit(votes).consensus_intervals()
    share = wins.mean()
    expected = 1.96 / np.sqrt(len(user) * share * (1.0 - share))
    assert high[0] - low[0] == pytest.approx(expected, rel=0.15)  # half of it on either side


# --- one user's own scores -----------------------------------------------------------------


def test_the_scores_of_a_user_come_with_intervals_given_the_consensus(votes, model):
    for place, user in enumerate(votes.users[:5]):
        own = model.own_scores(user)
        np.testing.assert_array_equal(own.score, model.scores(user))
        assert np.all((own.low < own.score) & (own.score < own.high))
        assert not np.any(own.differs & ~model.parameters_.compared_by(place))


def test_who_has_another_taste_differs_and_who_has_not_does_not():
    scores = np.tile([2.0, 1.0, 0.0, -1.0, -2.0], (12, 1))
    scores[0] = scores[0][::-1]
    votes = drawn_by_users(scores, n_votes=1500, n_users=12)
    model = ISplitLBI(with_tests=False, n_folds=3).fit(votes)
    assert model.own_scores(0).differs[[0, 4]].all()
    assert not MarginMLE().fit(votes).own_scores(0).differs.any()  # nobody has scores of their own
    votes = drawn_by_users(scores[1], n_votes=1500, n_users=12)
    alike = ISplitLBI(with_tests=False, n_folds=3).fit(votes)
    assert sum(alike.own_scores(user).differs.sum() for user in range(12)) <= 2


# --- pairs ---------------------------------------------------------------------------------


def test_pairs_have_the_shares_of_their_votes(votes, model):
    pairs = model.head_to_head()
    assert pairs.votes.sum() == len(votes)
    np.testing.assert_allclose(pairs.observed.sum(axis=1), 1.0)
    np.testing.assert_allclose(pairs.predicted.sum(axis=1), 1.0)
    rank = as_dict(model.leaderboard(), "rank")
    places = [(rank[a], rank[b]) for a, b in zip(pairs.item, pairs.other, strict=True)]
    assert places == sorted(places) and all(a < b for a, b in places)
    _, left, right, outcome = columns_of(votes)
    item, other = pairs.item[0], pairs.other[0]
    seen = outcome[(left == item) & (right == other)].tolist()
    seen += (-outcome[(left == other) & (right == item)]).tolist()
    assert pairs.votes[0] == len(seen)
    np.testing.assert_allclose(pairs.observed[0], [np.mean(np.equal(seen, k)) for k in (1, 0, -1)])


def test_what_the_consensus_expects_of_all_votes_is_about_what_was_voted():
    votes = drawn_by_users(np.array([1.0, 0.5, 0.0, -1.0]), n_votes=2000)
    pairs = MarginMLE().fit(votes).head_to_head()
    mean = np.average(pairs.predicted - pairs.observed, axis=0, weights=pairs.votes)
    np.testing.assert_allclose(mean, 0.0, atol=1e-3)
    assert np.abs(pairs.predicted - pairs.observed).max() < 0.12
    assert len(str(pairs).splitlines()) == 1 + len(pairs)


# --- texts ---------------------------------------------------------------------------------


def test_hostile_ids_are_text_in_a_notebook_and_stay_on_their_line():
    model = hostile_model()
    board, pairs = model.leaderboard(), model.head_to_head()
    for page in (board._repr_html_(), pairs._repr_html_()):
        assert "<script" not in page and "<img" not in page and "<!--" not in page
        assert "&lt;script&gt;" in page
    assert page.count("<tr>") == 2 + FIRST < len(pairs)  # and a row of dots
    table = str(board).split("\n\n")[0]
    assert len(table.splitlines()) == 1 + board.n_ranked
    assert len(board) == len(HOSTILE)


def test_a_score_that_rounds_to_zero_has_no_sign(model):
    board = model.leaderboard()
    near_zero = replace(board, score=np.full(len(board.score), -0.001))
    assert "  -0.00  " not in str(near_zero)
    assert "  0.00  " in str(near_zero)


def test_the_text_has_a_line_per_item_and_the_meaning_of_its_words(model):
    table, words = str(model.leaderboard()).split("\n\n")
    lines = table.splitlines()
    assert [line.split()[2] for line in lines[1:]] == model.ranking().items.tolist()
    assert max(map(len, lines)) <= 80
    assert [line.split("  ")[0].strip() for line in words.splitlines()] == [
        "95 %", "W/T/L", "tier", "group",
    ]  # fmt: skip


def test_more_items_than_groups_are_found_of_have_ranks_and_no_groups(votes, monkeypatch):
    model = MarginMLE().fit(votes)
    monkeypatch.setattr("isplitlbi.estimators.certainty.MOST_PLACES", 3)
    standing = Certainty.of(votes, model.fitted_).scores()
    consensus, counts = model.parameters_.common, Counts.of(votes)
    grouped = Leaderboard.of(votes.items, consensus, standing, counts)
    monkeypatch.setattr("isplitlbi.estimators.leaderboard.MOST_IN_GROUPS", 3)
    board = Leaderboard.of(votes.items, consensus, standing, counts)
    for name in ("rank", "rank_low", "rank_high", "low", "high", "votes_missing"):
        np.testing.assert_array_equal(getattr(board, name), getattr(grouped, name))
    assert not any(board.group) and "group" not in board.cells()[0]
    assert "group  not found of more than 3 items" in str(board)
