"""Abnormal users: who is flagged, called what, rated how, and what leaving them out would do."""

import io
import json
import pickle
import sys
import tracemalloc
from dataclasses import fields, replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import false_discovery_control, kstest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

from isplitlbi import Comparisons, InvalidVotes, ISplitLBI
from isplitlbi.abnormal import (
    KINDS,
    UNTRUSTWORTHY,
    Abnormality,
    Effect,
    find_abnormal,
    find_effect,
    flags,
)
from isplitlbi.abnormal.expectation import Ballots, Expectation
from isplitlbi.abnormal.kinds import _fit_numbers
from isplitlbi.abnormal.tests import benjamini_hochberg, find_flags
from isplitlbi.cli.commands import app, main
from isplitlbi.errors import UnreadableModel
from isplitlbi.estimators import isplitlbi as estimators
from isplitlbi.evaluation.simulate import malicious_study, simulate
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.output.tables import effect_table, users_table
from isplitlbi.solvers import Share, bootstrap_consensus, fit_consensus
from isplitlbi.storage import load_model, save_model
from votes import random_votes, rebuilt

LINK = Logistic()
SCORES, THRESHOLD = np.linspace(-2, 2, 8), 0.8  # what the crowd agrees on
ITEMS = np.array([f"item-{number}" for number in range(8)])

USER_COLUMNS = [
    "user", "votes", "entry_time", "entry_rank", "distance", "p_value", "q_value", "abnormal",
    "kind", "quality", "explanation",
]  # fmt: skip
EFFECT_COLUMNS = [
    "item", "rank", "rank_low", "rank_high", "rank_without", "score", "score_without", "tier",
    "tier_without",
]  # fmt: skip


def vote(rng, n_votes, scores=SCORES, threshold=THRESHOLD, side=0.0):
    """Draw left, right and outcome of one user's votes on random pairs."""
    left = rng.integers(8, size=n_votes)
    right = (left + rng.integers(1, 8, size=n_votes)) % 8
    perceived = scores[left] - scores[right] + side + rng.logistic(size=n_votes)
    return left, right, (perceived > threshold) * 1 - (perceived <= -threshold)


def gather(voters):
    """Put the votes of many users together."""
    n_votes = [len(outcome) for _, _, outcome in voters.values()]
    left, right, outcome = map(np.concatenate, zip(*voters.values(), strict=True))
    return Comparisons.from_arrays(
        np.repeat(list(voters), n_votes), ITEMS[left], ITEMS[right], outcome
    )


def crowd(seed, n_users=60):
    """Let many users vote like the consensus, and one in each other way."""
    rng = np.random.default_rng(seed)
    voters = {f"normal-{number:02d}": vote(rng, 60) for number in range(n_users)}
    taste = rng.permutation(SCORES)

    def instead(outcome, n_votes=300):
        return *vote(rng, n_votes)[:2], np.broadcast_to(outcome, n_votes)

    return voters | {
        "reversed": vote(rng, 300, -SCORES),
        "careless": instead(rng.integers(-1, 2, size=300)),
        "always left": instead(1),
        "always right": instead(-1),
        "tie-happy": vote(rng, 300, threshold=2.4),
        "never-tie": vote(rng, 300, threshold=0.0),
        "sharper": vote(rng, 300, 3.0 * SCORES),
        "blunter": vote(rng, 300, 0.4 * SCORES),
        "different taste": vote(rng, 300, taste),
        "diligent-1": vote(rng, 300),
        "diligent-2": vote(rng, 300),
        "newcomer-1": (np.array([3]), np.array([4]), np.array([0])),
        "newcomer-2": (np.array([3, 5]), np.array([4, 4]), np.array([1, 0])),
    }


KIND_OF = {name: name for name in KINDS if name != "position-biased"} | {
    "always left": "position-biased",
    "always right": "position-biased",
}


@pytest.fixture(scope="module")
def voters():
    return crowd(21)


@pytest.fixture(scope="module")
def votes(voters):
    return gather(voters)


@pytest.fixture(scope="module")
def start(votes):
    return fit_consensus(votes, LINK)


@pytest.fixture(scope="module")
def found(votes, start):
    return find_abnormal(votes, LINK, start)


@pytest.fixture(scope="module")
def place(votes):
    return {user: place for place, user in enumerate(votes.users)}


@pytest.fixture(scope="module")
def reversing():
    """Fifty users, three in ten of whom turn the consensus upside down."""
    return simulate(
        n_users=50, n_items=8, votes_per_user=(60, 60), score_sd=1.5, threshold=0.8,
        abnormal_share=0.0, malicious={"reversed": 0.3}, random_state=1,
    )  # fmt: skip


def agreeing(n_users, n_votes, seed):
    """Draw users who all vote like the consensus."""
    return simulate(
        n_users=n_users, n_items=8, votes_per_user=(n_votes, n_votes), score_sd=1.5,
        threshold=0.8, abnormal_share=0.0, random_state=seed,
    ).votes  # fmt: skip


def assert_same(one, other):
    """Assert that two findings are equal to the last bit, texts included."""
    for field in fields(one):
        here, there = getattr(one, field.name), getattr(other, field.name)
        if isinstance(here, np.ndarray):
            assert_array_equal(here, there, err_msg=field.name, strict=True)
        else:
            assert here == there, field.name


def centred(scores):
    return scores - scores.mean()


# --- ballots -------------------------------------------------------------------------------


def test_votes_collapse_per_user_pair_side_and_weight():
    votes = Comparisons.from_arrays(
        ["u", "u", "u", "u", "u", "v"],
        ["a", "a", "b", "a", "a", "a"],
        ["b", "b", "a", "b", "b", "b"],
        [1, -1, 1, 1, 0, 0],
        [1.0, 1.0, 1.0, 1.0, 2.5, 1.0],
    )
    ballots = Ballots.of(votes)
    rows = zip(ballots.user, ballots.left, ballots.right, ballots.weight, strict=True)
    assert {row: counts.tolist() for row, counts in zip(rows, ballots.counts, strict=True)} == {
        (0, 0, 1, 1.0): [2, 0, 1],
        (0, 0, 1, 2.5): [0, 1, 0],
        (0, 1, 0, 1.0): [1, 0, 0],
        (1, 0, 1, 1.0): [0, 1, 0],
    }
    assert ballots.start.tolist() == [0, 3, 4]
    assert ballots.n_votes.tolist() == [3, 1, 1, 1]


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_sum_to_the_votes_of_every_user(weighted):
    votes = random_votes(0, n_votes=200, weighted=weighted)
    ballots = Ballots.of(votes)
    n_votes = ballots.n_votes.astype(float)
    assert_array_equal(ballots.sum_by_user(n_votes), votes.votes_per_user)
    for place, outcome in enumerate((1, 0, -1)):
        assert ballots.counts[:, place].sum() == np.sum(votes.outcome == outcome)
    for user in range(votes.n_users):
        mine = slice(*ballots.start[user : user + 2])
        assert set(ballots.user[mine]) == {user}


def test_a_user_without_votes_has_no_ballots():
    votes = random_votes(0)
    ballots = Ballots.of(votes.subset(votes.user != 2))
    assert np.diff(ballots.start)[2] == 0
    assert np.diff(ballots.start).sum() == len(ballots.user)
    assert ballots.sum_by_user(ballots.n_votes.astype(float))[2] == 0.0


@pytest.mark.parametrize("weighted", [False, True])
def test_ballots_do_not_depend_on_the_order_of_rows(weighted):
    votes = random_votes(1, n_votes=200, weighted=weighted)
    order = np.random.default_rng(0).permutation(len(votes))
    for one, other in zip(Ballots.of(votes), Ballots.of(rebuilt(votes, order)), strict=True):
        assert_array_equal(one, other, strict=True)


def test_the_side_on_which_an_item_was_shown_is_kept_apart():
    votes = random_votes(2, n_votes=300)
    ballots, swapped = Ballots.of(votes), Ballots.of(rebuilt(votes, swapped=True))
    assert len(ballots.user) > len(votes.edges.first)
    consensus = np.array([1.0, 0.5, -0.5, 2.0, 0.7])
    by_pair = {tuple(row): counts for *row, counts in _rows(ballots)}
    assert by_pair == {(u, j, i): counts[::-1] for u, i, j, counts in _rows(swapped)}
    assert set(ballots.margin(consensus)) == set(-swapped.margin(consensus))
    item = votes.items.tolist().index("i3")
    assert_array_equal(ballots.margin(consensus)[ballots.left == item] > 0, True)


def _rows(ballots):
    columns = (ballots.user, ballots.left, ballots.right)
    return zip(*(c.tolist() for c in columns), map(tuple, ballots.counts.tolist()), strict=True)


@pytest.fixture(scope="module", params=LINKS)
def expectation(request):
    ballots = Ballots.of(random_votes(3, n_items=6, n_votes=150))
    consensus = np.append(np.random.default_rng(0).normal(0, 0.5, 6), 0.3)
    link = LINKS[request.param]()
    return Expectation.of(ballots, consensus, link), ballots.margin(consensus), 0.3, link


def test_expected_probabilities_sum_to_one(expectation):
    expected, margin, threshold, link = expectation
    assert_allclose(expected.probability.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(np.log(expected.probability), link.log_probabilities(margin, threshold))
    assert_array_equal(expected.margin, margin)


def test_slopes_are_those_of_the_log_probabilities(expectation):
    expected, margin, threshold, link = expectation
    h = 1e-6
    for slope, (dm, dt) in ((expected.by_margin, (h, 0.0)), (expected.by_threshold, (0.0, h))):
        above = link.log_probabilities(margin + dm, threshold + dt)
        below = link.log_probabilities(margin - dm, threshold - dt)
        assert_allclose(slope, (above - below) / (2 * h), rtol=1e-5, atol=1e-6)


def test_the_expected_slope_is_zero(expectation):
    expected, *_ = expectation
    for slope in (expected.by_margin, expected.by_threshold):
        assert np.abs(slope).max() > 0.1
        assert_allclose(np.sum(expected.probability * slope, axis=1), 0.0, atol=1e-12)


# --- flags ---------------------------------------------------------------------------------


def test_q_values_are_those_of_benjamini_and_hochberg():
    p_value = np.array([0.01, 0.04, 0.03, 0.005, 0.9])
    assert_allclose(benjamini_hochberg(p_value), [0.025, 0.05, 0.05, 0.025, 0.9])
    many = np.random.default_rng(0).random(50) ** 2
    assert_allclose(benjamini_hochberg(many), false_discovery_control(many))


def test_q_values_ignore_users_without_votes():
    p_value = np.array([np.nan, 0.02, np.nan, 0.6, 0.01])
    expected = [np.nan, 0.03, np.nan, 0.6, 0.03]
    assert_allclose(benjamini_hochberg(p_value), expected)
    assert np.isnan(benjamini_hochberg(np.full(3, np.nan))).all()


@pytest.mark.parametrize(("n_votes", "n_users"), [(1, 400), (5, 300), (60, 200)])
def test_the_p_values_of_users_who_agree_are_uniform(n_votes, n_users):
    votes = agreeing(n_users, n_votes, seed=1)
    p_value = find_flags(votes, LINK, fit_consensus(votes, LINK)).p_value
    assert 0.01 < np.mean(p_value < 0.05) < 0.1
    assert kstest(p_value, "uniform").pvalue > 0.001


def test_hardly_anybody_who_agrees_is_flagged(found, votes):
    normal = np.char.startswith(votes.users.astype(str), "normal")
    assert found.flagged[normal].sum() <= 1


def test_the_reversed_user_is_flagged_first():
    rng = np.random.default_rng(0)
    voters = {f"normal-{number}": vote(rng, 40) for number in range(30)}
    votes = gather(voters | {"reversed": vote(rng, 40, -SCORES)})
    flagged = find_flags(votes, LINK, fit_consensus(votes, LINK))
    assert votes.users[flagged.flagged].tolist() == ["reversed"]
    assert votes.users[np.argmin(flagged.q_value)] == "reversed"
    assert np.sum(flagged.q_value == flagged.q_value.min()) == 1


@pytest.mark.parametrize("kind", ["reversed", "random", "always-left", "always-tie"])
def test_malicious_users_are_found_among_many(kind):
    votes, truth = malicious_study(kind, 0)
    flagged = find_flags(votes, LINK, fit_consensus(votes, LINK)).flagged
    assert flagged[truth.abnormal].all()
    assert flagged[~truth.abnormal].sum() <= 3


def test_who_is_flagged_is_who_has_a_small_q_value(found):
    assert_array_equal(found.flagged, found.q_value <= found.fdr)
    assert_allclose(found.q_value, benjamini_hochberg(found.p_value))
    assert np.all((found.p_value > 0) & (found.p_value <= 1))


def test_nothing_depends_on_the_order_of_rows(votes, found):
    again = rebuilt(votes, np.random.default_rng(0).permutation(len(votes)))
    assert_same(find_abnormal(again, LINK, fit_consensus(again, LINK)), found)


def test_nothing_depends_on_the_number_of_threads(votes, start, found):
    assert_same(find_abnormal(votes, LINK, start, n_threads=3), found)


def test_the_seed_decides_the_p_values_but_not_by_much(votes, start, found):
    assert_same(find_abnormal(votes, LINK, start), found)
    other = find_abnormal(votes, LINK, start, seed=1)
    many = votes.votes_per_user > 2
    assert not np.array_equal(other.p_value, found.p_value)
    assert np.corrcoef(other.p_value[many], found.p_value[many])[0, 1] > 0.9
    assert_array_equal(other.consensus, found.consensus)


def test_weights_of_one_are_no_weights(votes, start, found):
    weighted = replace(votes, weight=np.ones(len(votes)))
    assert_same(find_abnormal(weighted, LINK, start), found)


def test_users_without_votes_are_unknown_and_never_flagged(votes, place):
    silent = place["reversed"]
    part = votes.subset(votes.user != silent)
    found = find_abnormal(part, LINK, fit_consensus(part, LINK))
    assert np.isnan([found.p_value[silent], found.q_value[silent], found.quality[silent]]).all()
    assert np.isnan(found.p_value).sum() == np.isnan(found.quality).sum() == 1
    assert not found.flagged[silent]
    assert (found.kind[silent], found.votes_needed[silent]) == ("", 0)
    assert found.flagged[place["careless"]]


def test_users_with_too_few_votes_are_marked_and_not_flagged(votes, found):
    n_votes = votes.votes_per_user
    assert_array_equal(found.votes_needed > 0, n_votes <= 2)
    assert np.all(found.votes_needed[n_votes <= 2] > n_votes[n_votes <= 2])
    assert not found.flagged[n_votes <= 2].any()


def test_the_votes_needed_would_do(found, votes, start, voters):
    # As many votes on the same pair, all of them the least probable: now the user can be flagged.
    n_votes = int(found.votes_needed[votes.users.tolist().index("newcomer-1")])
    expected = np.exp(LINK.log_probabilities(start[3] - start[4], start[-1]))
    least = 1 - int(np.argmin(expected))
    stubborn = np.full(n_votes, 3), np.full(n_votes, 4), np.full(n_votes, least)
    again = gather(voters | {"newcomer-1": stubborn})
    assert find_flags(again, LINK, start).votes_needed[again.users == "newcomer-1"] == [0]


def test_abnormal_users_do_not_pull_the_consensus(reversing):
    votes, truth = reversing
    pulled = fit_consensus(votes, LINK)
    kept = find_flags(votes, LINK, pulled)
    error = [
        np.linalg.norm(centred(c[:-1]) - centred(truth.scores)) for c in (pulled, kept.consensus)
    ]
    assert error[1] < 0.5 * error[0]
    assert kept.flagged[truth.abnormal].all()
    assert kept.flagged[~truth.abnormal].sum() <= 3


@pytest.fixture(scope="module")
def repeated():
    """Return the test of one user who voted often on some pairs, and how to draw for it."""
    rng = np.random.default_rng(4)
    left, right, outcome = vote(rng, 40)
    often = np.repeat([0, 2], 15), np.repeat([1, 5], 15), rng.integers(-1, 2, size=30)
    votes = gather({"u": tuple(map(np.append, (left, right, outcome), often))})
    ballots = Ballots.of(votes)
    assert np.any(ballots.n_votes > flags.MANY_VOTES)
    assert np.any(ballots.n_votes <= flags.MANY_VOTES)
    expected = Expectation.of(ballots, np.append(SCORES, THRESHOLD), LINK)
    tests = flags._Tests.of(ballots, expected, flags._Directions.of(ballots, votes))

    def draw(n_draws, seed):
        return tests.revote(0).draw(n_draws, np.random.default_rng(seed))

    return tests.test(0), draw, ballots


def test_the_statistic_is_the_score_weighted_by_information_and_prior(repeated):
    test, _, ballots = repeated
    margin = SCORES[ballots.left] - SCORES[ballots.right]
    each = np.eye(len(SCORES))
    direction = np.column_stack(
        [margin, np.ones(len(margin)), each[ballots.left] - each[ballots.right]]
    )
    slope = LINK.gradient(margin, THRESHOLD)
    one_vote = np.concatenate([slope[:, :, :1] * direction[:, None], slope[:, :, 1:]], axis=2)
    foreseen = ballots.n_votes[:, None] * np.exp(LINK.log_probabilities(margin, THRESHOLD))
    score = np.einsum("bo,boi->i", ballots.counts, one_vote)
    information = np.einsum("bo,boi,boj->ij", foreseen, one_vote, one_vote)
    prior = np.eye(len(score)) / flags.DEVIATION_VARIANCE
    expected = score @ np.linalg.solve(information + prior, score)
    assert test.statistic == pytest.approx(expected)


def test_the_moments_of_the_statistic_are_those_of_many_draws(repeated):
    test, draw, _ = repeated
    drawn = draw(5_000, 0)
    assert abs(drawn.mean() - test.mean) < 4 * drawn.std() / np.sqrt(len(drawn))
    assert test.variance == pytest.approx(drawn.var(), rel=0.3)


def test_the_rough_p_value_is_near_the_share_of_draws_beyond(repeated):
    test, draw, _ = repeated
    drawn = draw(5_000, 0)
    for share in (0.5, 0.9, 0.99):
        at = test._replace(statistic=float(np.quantile(drawn, share)))
        assert flags._approximate_p(np.array([at])) == pytest.approx(1 - share, abs=0.03)


def test_votes_drawn_as_counts_are_like_those_drawn_one_by_one(repeated, monkeypatch):
    _, draw, _ = repeated
    drawn = []
    for many in (0, 10**9):
        monkeypatch.setattr(flags, "MANY_VOTES", many)
        drawn.append(draw(5_000, 1))
    counted, single = drawn
    assert not np.array_equal(counted, single)
    error = np.sqrt((counted.var() + single.var()) / len(single))
    assert abs(counted.mean() - single.mean()) < 4 * error
    assert counted.var() == pytest.approx(single.var(), rel=0.15)


def test_draws_in_small_parts_are_the_same_number_of_draws(repeated, monkeypatch):
    test, draw, _ = repeated
    monkeypatch.setattr(flags, "MOST_NUMBERS", 1_000)
    drawn = draw(3_000, 2)
    assert drawn.shape == (3_000,)
    assert abs(drawn.mean() - test.mean) < 4 * drawn.std() / np.sqrt(len(drawn))


def test_what_a_test_takes_is_not_kept_for_every_user(monkeypatch):
    monkeypatch.setattr(flags, "ROUNDS", (100, 200))
    votes = simulate(
        n_users=150, n_items=400, votes_per_user=(80, 80), score_sd=1.5, random_state=0
    ).votes
    start = fit_consensus(votes, LINK)
    tracemalloc.start()
    find_flags(votes, LINK, start)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    matrices = 8 * np.sum(np.diff(votes.slots.start) ** 2)
    assert peak < 0.5 * matrices


@pytest.mark.parametrize("fdr", [0.0, 1.0, -0.1, 2.0, np.nan])
def test_a_false_discovery_rate_lies_between_zero_and_one(votes, start, fdr):
    with pytest.raises(ValueError, match="it must lie between 0 and 1"):
        find_abnormal(votes, LINK, start, fdr=fdr)


def test_progress_is_told_up_to_the_end(votes, start):
    shares = []
    find_flags(votes, LINK, start, progress=shares.append)
    assert np.all(np.diff(shares) > 0)
    assert shares[0] >= 0.0
    assert shares[-1] == 1.0
    assert len(shares) > 3


@pytest.mark.parametrize("link", LINKS)
def test_every_link_finds_the_reversed_user(link):
    link = LINKS[link]()
    rng = np.random.default_rng(2)
    # Near items, so that each of the three links can tell what it sees.
    voters = {f"normal-{number}": vote(rng, 50, 0.5 * SCORES, 0.4) for number in range(20)}
    votes = gather(voters | {"reversed": vote(rng, 200, -0.5 * SCORES, 0.4)})
    found = find_abnormal(votes, link, fit_consensus(votes, link))
    assert votes.users[found.flagged].tolist() == ["reversed"]
    assert found.kind[votes.n_users - 1] == "reversed"


# --- kinds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("user", KIND_OF)
def test_every_way_to_vote_gets_its_kind(found, place, user):
    assert found.kind[place[user]] == KIND_OF[user]


def test_every_kind_was_there(found):
    assert set(found.kind) == {*KINDS, ""}
    assert set(UNTRUSTWORTHY) < set(KINDS)


def test_users_who_are_not_flagged_have_no_kind_and_no_explanation(found):
    for kind, explanation, flagged in zip(
        found.kind, found.explanation, found.flagged, strict=True
    ):
        assert bool(kind) == bool(explanation) == flagged
    assert not all(found.flagged)


def percent(share):
    return f"{100 * np.mean(share):.0f} %"


def test_the_explanation_says_what_was_seen(found, place, voters):
    def said(user):
        return found.explanation[place[user]]

    for side in ("left", "right"):
        assert said(f"always {side}").startswith(f"votes {side} ")
        assert "100 %" in said(f"always {side}")
    ties = percent(voters["tie-happy"][2] == 0)
    assert f"declares {ties} ties in 300 votes (" in said("tie-happy")
    assert "never declares a tie in 300 votes (" in said("never-tie")
    assert "own ranking predicts" in said("different taste")
    for user, words in {
        "reversed": "turns the consensus upside down",
        "careless": "hardly depend on the items",
        "sharper": "is surer of it",
        "blunter": "is less sure of it",
    }.items():
        left, right, outcome = voters[user]
        decided = outcome != 0
        against = percent(np.sign(SCORES[left] - SCORES[right])[decided] != outcome[decided])
        assert words in said(user)
        assert f"{against} of decided votes against it" in said(user)


def test_the_numbers_are_those_behind_the_explanation(found, place, votes):
    by_user = {
        user: (found.slope[k], found.side[k], found.threshold[k]) for user, k in place.items()
    }
    assert by_user["reversed"][0] == pytest.approx(-1.0, abs=0.3)
    assert by_user["blunter"][0] == pytest.approx(0.4, abs=0.2)
    assert by_user["sharper"][0] > 2.0
    assert by_user["always left"][1] > 1.1
    assert by_user["always right"][1] < -1.1
    assert by_user["tie-happy"][2] == pytest.approx(2.4, abs=0.5)
    assert by_user["never-tie"][2] < 0.1
    assert by_user["diligent-1"] == (1.0, 0.0, found.consensus[-1])


def test_slope_side_and_threshold_are_recovered_from_many_votes():
    rng = np.random.default_rng(5)
    numbers = np.array([[1.0, 0.0, 0.8], [-0.7, 0.5, 1.2], [0.0, -1.0, 0.3], [2.0, 0.3, 2.0]])
    votes = gather(
        {f"u{k}": vote(rng, 20_000, a * SCORES, t, b) for k, (a, b, t) in enumerate(numbers)}
    )
    ballots, alone = Ballots.of(votes), Share.alone(votes)
    margin = ballots.margin(np.append(SCORES, THRESHOLD))
    start = np.tile([1.0, 0.0, THRESHOLD], (4, 1))
    fitted, likelihood = _fit_numbers(ballots, margin, LINK, start, (0, 1, 2), 1e-3, alone)
    assert_allclose(fitted, numbers, atol=0.08)
    held, less = _fit_numbers(ballots, margin, LINK, start, (0,), 1e-3, alone)
    assert_array_equal(held[:, 1:], start[:, 1:])
    assert_allclose(held[0, 0], 1.0, atol=0.05)
    assert np.all(less <= likelihood + 1e-3)
    assert np.all(less[1:] < likelihood[1:] - 10)


def test_a_threshold_is_never_below_the_smallest():
    rng = np.random.default_rng(6)
    votes = gather({"u": vote(rng, 500, threshold=0.0)})
    ballots, alone = Ballots.of(votes), Share.alone(votes)
    margin = ballots.margin(np.append(SCORES, THRESHOLD))
    start = np.array([[1.0, 0.0, THRESHOLD]])
    fitted, _ = _fit_numbers(ballots, margin, LINK, start, (0, 1, 2), 0.05, alone)
    ((slope, side, threshold),) = fitted
    assert threshold == 0.05
    assert slope == pytest.approx(1.0, abs=0.3)
    assert side == pytest.approx(0.0, abs=0.3)


# --- quality -------------------------------------------------------------------------------


def test_quality_lies_between_zero_and_one(found):
    assert np.all((found.quality >= 0) & (found.quality <= 1))
    assert np.ptp(found.quality) > 0.5


@pytest.mark.parametrize("user", ["diligent-1", "diligent-2", "different taste", "sharper"])
def test_careful_voters_are_rated_high_whatever_their_taste(found, place, user):
    assert found.quality[place[user]] > 0.8


@pytest.mark.parametrize("user", ["careless", "always left", "always right"])
def test_votes_that_do_not_depend_on_the_items_are_rated_low(found, place, user):
    assert found.quality[place[user]] < 0.2


def test_the_reversed_user_is_rated_zero(found, place):
    assert found.quality[place["reversed"]] == 0.0


def test_one_usual_vote_leaves_the_quality_near_one_half(found, place):
    assert found.quality[place["newcomer-1"]] == pytest.approx(0.5, abs=0.2)


# --- effect --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def effect(reversing):
    return find_effect(reversing.votes, LINK, reversing.truth.abnormal)


def test_leaving_nobody_out_changes_nothing_and_says_so(reversing):
    votes = reversing.votes
    same = find_effect(votes, LINK, np.zeros(votes.n_users, dtype=bool), n_bootstrap=5)
    assert same.left_out == []
    assert_array_equal(same.score_without, same.score_with)
    assert_array_equal(same.rank_without, same.rank_with)
    assert_array_equal(same.tier_without, same.tier_with)
    assert (same.most_moved, same.regrouped) == (0, 0)
    assert same.sentence() == "Nobody was left out, so the consensus stays as it is."


def test_leaving_out_the_reversed_moves_the_scores_towards_the_truth(reversing, effect):
    votes, truth = reversing
    place = {item: place for place, item in enumerate(votes.items)}
    true = centred(truth.scores)[[place[item] for item in effect.items]]
    error = [
        np.linalg.norm(centred(scores) - true)
        for scores in (effect.score_with, effect.score_without)
    ]
    assert error[1] < 0.5 * error[0]
    assert (effect.score_without - effect.score_with) @ true > 0
    assert effect.left_out == votes.users[truth.abnormal].tolist()
    assert effect.score_with.mean() == pytest.approx(effect.score_without.mean(), abs=1e-9)


def test_ranks_are_permutations_and_items_come_best_first(effect):
    n_items = len(effect.items)
    assert_array_equal(effect.rank_with, np.arange(1, n_items + 1))
    assert_array_equal(np.sort(effect.rank_without), effect.rank_with)
    assert np.all(np.diff(effect.score_with) <= 0)
    order = np.argsort(effect.rank_without)
    assert np.all(np.diff(effect.score_without[order]) <= 0)
    assert np.all(np.diff(effect.tier_with) >= 0)
    assert np.all(np.diff(effect.tier_without[order]) >= 0)


def test_ranks_lie_in_their_intervals_but_for_few(effect):
    inside = (effect.rank_low <= effect.rank_with) & (effect.rank_with <= effect.rank_high)
    assert inside.mean() > 0.75
    assert np.all(effect.rank_low <= effect.rank_high)
    assert np.any(effect.rank_low < effect.rank_high)
    assert effect.rank_low.min() == 1
    assert effect.rank_high.max() == len(effect.items)


def test_the_seed_alone_decides_which_users_are_drawn(reversing):
    votes = reversing.votes
    drawn = bootstrap_consensus(votes, LINK, 8, seed=3)
    assert drawn.shape == (8, votes.n_items + 1)
    assert_array_equal(bootstrap_consensus(votes, LINK, 8, seed=3), drawn)
    assert not np.array_equal(bootstrap_consensus(votes, LINK, 8, seed=4), drawn)
    order = np.random.default_rng(0).permutation(len(votes))
    assert_allclose(bootstrap_consensus(rebuilt(votes, order), LINK, 8, seed=3), drawn)


def test_with_more_users_the_consensus_is_surer():
    votes = agreeing(160, 30, seed=0)
    spread = [
        bootstrap_consensus(votes.subset(votes.user < n_users), LINK, 40)[:, :-1].std(axis=0).mean()
        for n_users in (20, 160)
    ]
    assert 1.5 * spread[1] < spread[0] < 6 * spread[1]  # eight times the users: about 2.8


def test_drawn_users_make_a_consensus_around_that_of_everybody(reversing):
    votes = reversing.votes
    drawn, whole = bootstrap_consensus(votes, LINK, 60), fit_consensus(votes, LINK)
    assert_allclose(drawn.mean(axis=0), whole, atol=4 * drawn.std(axis=0).max() / np.sqrt(60))


def test_a_narrower_prior_holds_scores_nearer_to_zero(reversing):
    wide, narrow = (fit_consensus(reversing.votes, LINK, variance=v) for v in (1e4, 1e-3))
    assert np.abs(narrow[:-1]).max() < 0.5 * np.abs(wide[:-1]).max()
    assert_array_equal(wide, fit_consensus(reversing.votes, LINK))


def test_leaving_out_everybody_is_refused(reversing):
    votes = reversing.votes
    with pytest.raises(InvalidVotes, match="nobody would be left"):
        find_effect(votes, LINK, np.ones(votes.n_users, dtype=bool))


def made(*, left_out=("u",), ranks=((1, 2, 3), (1, 2, 3)), tiers=((1, 2, 3), (1, 2, 3)), at_most=3):
    """Make an effect by hand; every rank may lie between 1 and that."""
    scores = np.zeros(3)
    return Effect(
        np.array(["a", "b", "c"]), list(left_out), scores, scores, *map(np.array, ranks),
        np.ones(3, dtype=int), np.full(3, at_most), *map(np.array, tiers),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tiers", "pairs"),
    [
        (((1, 2, 3), (1, 2, 3)), 0),
        (((1, 1, 2), (2, 2, 3)), 0),  # the same groups under other numbers
        (((1, 2, 3), (1, 1, 2)), 1),
        (((1, 1, 2), (1, 2, 2)), 2),
        (((1, 1, 1), (1, 2, 3)), 3),
    ],
)
def test_pairs_that_share_a_tier_on_one_side_only_are_counted(tiers, pairs):
    assert made(tiers=tiers).regrouped == pairs


TURNED = (1, 2, 3), (3, 2, 1)


@pytest.mark.parametrize(
    ("effect", "sentence"),
    [
        (made(left_out=()), "Nobody was left out, so the consensus stays as it is."),
        (made(), "Without 1 user the consensus has the same order and the same tiers."),
        (
            made(left_out=("u", "v"), tiers=((1, 2, 3), (1, 1, 2))),
            "Without 2 users the consensus has the same order; 1 pair of items come to share a "
            "tier or cease to.",
        ),
        (
            made(tiers=((1, 1, 1), (1, 2, 3))),
            "Without 1 user the consensus has the same order; 3 pairs of items come to share a "
            "tier or cease to.",
        ),
        (
            made(ranks=TURNED),
            "Without 1 user 2 of 3 items change their rank, by at most 2; no move goes beyond what "
            "drawing other users would do.",
        ),
        (
            made(ranks=TURNED, left_out=("u", "v", "w"), at_most=2, tiers=((1, 1, 2), (1, 2, 2))),
            "Without 3 users 2 of 3 items change their rank, by at most 2; 2 pairs of items come "
            "to share a tier or cease to; 1 of these moves goes beyond what drawing other users "
            "would do.",
        ),
    ],
    ids=["nobody", "nothing", "one pair", "pairs", "within", "beyond"],
)  # fmt: skip
def test_the_sentence_says_whether_it_matters(effect, sentence):
    assert effect.sentence() == sentence


# --- the estimator -------------------------------------------------------------------------

QUICK = {"kappa": 5.0, "times": [0.4], "time": 0.7}


@pytest.fixture(scope="module")
def model(votes):
    return ISplitLBI(**QUICK).fit(votes)


@pytest.fixture
def refitted(model):
    """Return a model that has found nothing yet."""
    return pickle.loads(pickle.dumps(model))._adopt(
        model.votes_, None, model.path_, model._candidates()[0], model.time_
    )


def test_users_are_tested_once_per_false_discovery_rate(refitted, monkeypatch):
    asked = []

    def count(*arguments, **settings):
        asked.append(settings["fdr"])
        return find_abnormal(*arguments, **settings)

    monkeypatch.setattr(estimators, "find_abnormal", count)
    found = refitted.abnormality()
    assert refitted.abnormality(0.05) is found
    assert refitted.abnormality(0.2) is refitted.abnormality(0.2)
    assert refitted.abnormal_users_
    assert asked == [0.05, 0.2]
    assert (found.fdr, refitted.abnormality(0.2).fdr) == (0.05, 0.2)


def test_another_fit_forgets_what_was_found(model, reversing):
    again = clone(model).fit(model.votes_)
    before = again.abnormality()
    again.fit(reversing.votes)
    assert again.abnormality() is not before
    assert len(again.abnormality().p_value) == reversing.votes.n_users


def test_the_models_false_discovery_rate_is_used(model):
    strict, lenient = (clone(model).set_params(fdr=fdr).fit(model.votes_) for fdr in (1e-3, 0.5))
    assert strict.abnormality().fdr == 1e-3
    assert set(strict.abnormal_users_) < set(lenient.abnormal_users_)
    assert strict.abnormality(0.5).flagged.sum() == len(lenient.abnormal_users_)


def test_the_abnormal_users_are_the_flagged_in_order_of_entry(model):
    table = users_table(model)
    assert table.filter("abnormal")["user"].to_list() == model.abnormal_users_
    entry = dict(zip(model.users_.tolist(), model.entry_times_, strict=True))
    times = [entry[user] for user in model.abnormal_users_]
    assert times == sorted(times)
    assert set(model.abnormal_users_) == set(model.users_[model.abnormality().flagged])
    assert set(KIND_OF) <= set(model.abnormal_users_)


def test_the_model_tells_progress_and_takes_its_seed(refitted, model):
    shares = []
    refitted.set_params(random_state=1)
    other = refitted.abnormality(progress=shares.append)
    assert shares[-1] == 1.0
    assert not np.array_equal(other.p_value, model.abnormality().p_value)


def test_a_pickled_model_remembers_what_was_found(model, monkeypatch):
    model.abnormality()
    restored = pickle.loads(pickle.dumps(model))
    monkeypatch.delattr(estimators, "find_abnormal")
    assert_same(restored.abnormality(), model.abnormality())
    assert restored.abnormal_users_ == model.abnormal_users_


def test_a_clone_has_the_settings_and_nothing_else(model):
    twin = clone(model.set_params(fdr=0.05))
    assert twin.fdr == 0.05
    for ask in (twin.abnormality, twin.effect_of_leaving_out, lambda: twin.abnormal_users_):
        with pytest.raises(NotFittedError):
            ask()


def test_the_effect_is_that_of_the_users_asked_about(model):
    found = model.abnormality()
    everybody, some = model.effect_of_leaving_out(), model.effect_of_leaving_out(UNTRUSTWORTHY)
    assert everybody.left_out == model.users_[found.flagged].tolist()
    kind = dict(zip(model.users_.tolist(), found.kind, strict=True))
    assert some.left_out == [user for user in everybody.left_out if kind[user] in UNTRUSTWORTHY]
    assert 0 < len(some.left_out) < len(everybody.left_out)
    assert model.effect_of_leaving_out(fdr=1e-9).left_out == []
    assert model.effect_of_leaving_out(["reversed"]).left_out == ["reversed"]
    assert_same(everybody, find_effect(model.votes_, model.link_, found.flagged))


def test_a_model_refuses_an_impossible_false_discovery_rate(model):
    with pytest.raises(ValueError, match=r"fdr is 2\.0; it must lie between 0 and 1"):
        model.abnormality(fdr=2.0)


# --- tables --------------------------------------------------------------------------------


def test_the_table_of_users_says_what_was_found(model, place):
    found, table = model.abnormality(), users_table(model)
    assert table.columns == USER_COLUMNS
    assert sorted(table["user"]) == model.users_.tolist()
    order = [place[user] for user in table["user"]]
    for name in ("p_value", "q_value", "quality"):
        assert_array_equal(table[name].to_numpy(), getattr(found, name)[order])
    assert_array_equal(table["abnormal"].to_numpy(), found.flagged[order])
    assert table["kind"].to_list() == [found.kind[user] or None for user in order]
    assert users_table(model, fdr=1e-9)["abnormal"].sum() == 0


def test_the_table_explains_who_is_abnormal_and_who_has_too_few_votes(model, place):
    found, table = model.abnormality(), users_table(model)
    for user, abnormal, said in table.select("user", "abnormal", "explanation").iter_rows():
        needed = found.votes_needed[place[user]]
        if abnormal:
            assert said == found.explanation[place[user]]
        elif needed:
            assert said == (
                f"has too few votes to be called abnormal; it would take about {needed}"
            )
        else:
            assert said is None
    assert table.filter(pl.col("explanation").str.contains("too few"))["user"].sort().to_list() == [
        "newcomer-1", "newcomer-2",
    ]  # fmt: skip


def test_a_user_without_votes_has_empty_cells(votes, place):
    part = votes.subset(votes.user != place["reversed"])
    table = users_table(ISplitLBI(**QUICK).fit(part)).filter(pl.col("user") == "reversed")
    (row,) = table.to_dicts()
    assert (row["votes"], row["abnormal"]) == (0, False)
    for name in ("p_value", "q_value", "quality", "kind", "explanation"):
        assert row[name] is None


def test_the_table_of_the_effect_has_a_row_per_item_best_first(model):
    effect = model.effect_of_leaving_out()
    table = effect_table(effect)
    assert table.columns == EFFECT_COLUMNS
    assert table["item"].to_list() == effect.items.tolist()
    assert set(table["item"]) == set(model.items_)
    assert table["rank"].to_list() == list(range(1, 9))
    assert_array_equal(table["rank_without"].to_numpy(), effect.rank_without)
    assert_array_equal(table["score_without"].to_numpy(), effect.score_without)
    assert_array_equal(table["tier_without"].to_numpy(), effect.tier_without)


# --- on disk -------------------------------------------------------------------------------


@pytest.fixture
def folder(model, tmp_path):
    save_model(model, tmp_path / "model")
    return tmp_path / "model"


def test_what_was_found_comes_back_from_disk(folder, model, monkeypatch):
    monkeypatch.delattr(estimators, "find_abnormal")
    loaded = load_model(folder)
    assert_same(loaded.abnormality(), model.abnormality())
    assert all(type(text) is str for text in loaded.abnormality().explanation)
    assert loaded.abnormal_users_ == model.abnormal_users_
    assert users_table(loaded).equals(users_table(model))


def test_a_loaded_model_finds_the_rest_as_before(folder, model):
    assert_same(load_model(folder).abnormality(0.3), model.abnormality(0.3))


def test_the_folder_holds_the_table_of_users(folder, model):
    table = pl.read_csv(folder / "users.csv")
    assert table.columns == USER_COLUMNS
    assert table["explanation"].to_list() == users_table(model)["explanation"].to_list()


def rewritten(file, change):
    with np.load(file) as content:
        arrays = dict(content)
    np.savez(file, allow_pickle=False, **change(arrays))


def without_last_user(arrays):
    return {name: a[:-1] if name in ("p_value", "q_value") else a for name, a in arrays.items()}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda file: file.unlink(), "this model is damaged"),
        (lambda file: file.write_bytes(file.read_bytes()[:1000]), "this model is damaged"),
        (lambda file: file.write_text("not an archive"), "this model is damaged"),
        (
            lambda file: rewritten(file, lambda a: {k: a[k] for k in a if k != "kind"}),
            "this model is damaged",
        ),
        (
            lambda file: rewritten(file, lambda a: a | {"kind": a["kind"][:-3]}),
            "this model is damaged",
        ),
        (lambda file: rewritten(file, without_last_user), "do not belong together"),
    ],
    ids=["missing", "cut", "text", "a column missing", "broken text", "users missing"],
)
def test_a_damaged_file_of_users_is_no_model(folder, spoil, message):
    spoil(folder / "abnormal.npz")
    with pytest.raises(UnreadableModel, match=message):
        load_model(folder)


def test_the_file_of_users_of_another_model_does_not_fit(folder, tmp_path, reversing):
    save_model(ISplitLBI(**QUICK).fit(reversing.votes), tmp_path / "other")
    (tmp_path / "other" / "abnormal.npz").replace(folder / "abnormal.npz")
    with pytest.raises(UnreadableModel, match="do not belong together"):
        load_model(folder)


def test_every_finding_is_stored(folder):
    with np.load(folder / "abnormal.npz") as content:
        findings = {field.name for field in fields(Abnormality)}
        assert set(content.files) == findings | {"fingerprint"}


# --- the command line ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    save_model(model, folder)
    return str(folder)


def invoke(*arguments):
    """Run a command in this process, on a terminal of 80 columns."""
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert done.exit_code == 0, done.output
    return done.stdout


def as_csv(*arguments):
    return pl.read_csv(io.StringIO(invoke(*arguments, "--format", "csv")))


def test_every_user_is_in_the_csv_and_in_the_json(stored, model):
    table = as_csv("abnormal", stored)
    rows = json.loads(invoke("abnormal", stored, "--format", "json"))
    assert table.columns == USER_COLUMNS
    assert all(list(row) == USER_COLUMNS for row in rows)
    assert rows == users_table(model).to_dicts()
    assert [row["user"] for row in rows] == table["user"].to_list()
    assert set(table["user"]) == set(model.users_)
    assert table.filter("abnormal")["user"].to_list() == model.abnormal_users_


def test_a_kind_can_be_asked_for_and_so_can_two(stored):
    assert as_csv("abnormal", stored, "--kind", "reversed")["user"].to_list() == ["reversed"]
    both = as_csv("abnormal", stored, "--kind", "position-biased", "--kind", "blunter")
    assert set(both["user"]) == {"always left", "always right", "blunter"}
    shown = invoke("abnormal", stored, "--kind", "tie-happy")
    assert "tie-happy" in shown
    assert "reversed  " not in shown


def test_a_larger_false_discovery_rate_names_more_users(stored):
    strict, usual, lenient = (
        as_csv("abnormal", stored, "--fdr", fdr)["abnormal"].sum()
        for fdr in ("0.001", "0.05", "0.2")
    )
    assert 0 < strict <= usual <= lenient < 73


def test_the_effect_comes_as_csv(stored, model):
    table = as_csv("abnormal", stored, "--effect")
    assert table.columns == EFFECT_COLUMNS
    assert set(table["item"]) == set(model.items_)
    assert_allclose(table["score_without"], model.effect_of_leaving_out().score_without)
    some = as_csv("abnormal", stored, "--effect", "--kind", "reversed")
    expected = model.effect_of_leaving_out(["reversed"])
    assert_allclose(some["score_without"], expected.score_without)
    assert not np.allclose(some["score_without"], table["score_without"])


def in_one_line(text):
    return " ".join(text.split())


def test_the_table_says_who_in_which_way_and_whether_it_matters(stored, model):
    shown = invoke("abnormal", stored)
    assert max(map(len, shown.splitlines())) <= 80
    text = in_one_line(shown)
    assert f"{len(model.abnormal_users_)} of 73 users do not vote like the consensus" in text
    assert in_one_line(model.effect_of_leaving_out().sentence()) in text
    some = model.effect_of_leaving_out(UNTRUSTWORTHY).sentence()
    assert some.lower() in text.split("Only reversed, careless, position-biased")[1].lower()
    assert "2 users have too few votes to be named at all" in text
    assert "normal-01" not in text
    for user in ("reversed", "careless", "never-tie"):
        assert user in text


def test_the_table_can_show_everybody_in_80_columns(stored):
    shown = invoke("abnormal", stored, "--all")
    assert max(map(len, shown.splitlines())) <= 80
    assert "normal-01" in shown
    assert "it would take about" in in_one_line(shown)


def test_the_table_of_the_effect_ends_with_its_sentence(stored, model):
    shown = invoke("abnormal", stored, "--effect")
    assert max(map(len, shown.splitlines())) <= 80
    assert in_one_line(shown).endswith(model.effect_of_leaving_out().sentence())


def test_where_nobody_is_abnormal_nothing_is_said_of_an_effect(stored):
    shown = in_one_line(invoke("abnormal", stored, "--fdr", "1e-9"))
    assert shown.startswith("0 of 73 users do not vote like the consensus")
    assert "Without" not in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--kind", "evil"), "--kind 'evil' is not one of reversed, careless, position-biased, "),
        (("--fdr", "2"), "fdr is 2.0; it must lie between 0 and 1."),
        (("--fdr", "0"), "fdr is 0.0; it must lie between 0 and 1."),
    ],
)
def test_what_cannot_be_asked_for_is_refused_in_one_sentence(
    stored, monkeypatch, capsys, arguments, sentence
):
    monkeypatch.setattr(sys, "argv", ["isplitlbi", "abnormal", stored, "--quiet", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (2, "")
    assert shown.err.startswith(f"isplitlbi: {sentence}")
    assert shown.err.count("\n") == 1


def test_the_telling_votes_of_a_user_are_those_the_consensus_least_expected(model, stored):
    user = model.abnormal_users_[0]
    told = model.telling_votes(user, most=5)
    chances = [vote.probability for vote in told]
    assert len(told) == 5
    assert chances == sorted(chances)
    index = int(np.flatnonzero(model.users_ == user)[0])
    votes = model.votes_
    mine = votes.subset(votes.user == index)
    pairs = set(
        zip(votes.items[mine.left], votes.items[mine.right], mine.outcome.tolist(), strict=True)
    )
    assert {(vote.left, vote.right, vote.outcome) for vote in told} <= pairs
    consensus = model.abnormality().consensus
    for vote in told:
        left, right = (int(np.flatnonzero(model.items_ == i)[0]) for i in (vote.left, vote.right))
        margin = consensus[left] - consensus[right]
        expected = np.exp(model.link_.log_probabilities(margin, consensus[-1]))[1 - vote.outcome]
        assert vote.probability == pytest.approx(float(expected))
    with pytest.raises(InvalidVotes, match="has no votes in this model"):
        model.telling_votes("nobody")


def test_one_user_and_the_votes_that_tell_most_on_the_command_line(model, stored):
    user = model.abnormal_users_[0]
    done = CliRunner().invoke(app, ["abnormal", str(stored), "--user", user, "-q"])
    assert done.exit_code == 0, done.output
    kind = model.abnormality().kind[int(np.flatnonzero(model.users_ == user)[0])]
    assert done.stdout.startswith(f"{user}: ")
    assert f"{kind}: " in done.stdout
    assert "What the consensus least expected:" in done.stdout
    command = ["abnormal", str(stored), "--user", user, "-q", "--format", "json"]
    rows = json.loads(CliRunner().invoke(app, command).stdout)
    assert list(rows[0]) == ["left", "right", "winner", "times", "probability"]


def test_who_has_too_few_votes_is_never_named():
    votes, _ = simulate(
        n_users=200, n_items=5, votes_per_user=(1, 2), score_sd=1.0, threshold=0.7,
        abnormal_share=0.0, random_state=55,
    )  # fmt: skip
    found = find_abnormal(votes, Logistic(), fit_consensus(votes, Logistic()), seed=55)
    assert (found.votes_needed > 0).any()
    assert not found.flagged[found.votes_needed > 0].any()


def test_votes_that_cannot_surprise_are_no_error():
    votes = Comparisons.from_arrays(["u", "v", "w"], ["a"] * 3, ["b"] * 3, [1] * 3)
    found = find_abnormal(votes, Logistic(), np.array([40.0, -40.0, 0.3]))
    assert not found.flagged.any()


def test_a_rate_that_is_none_is_refused_before_the_fit(reversing):
    with pytest.raises(ValueError, match="fdr is 2"):
        ISplitLBI(**QUICK, fdr=2).fit(reversing.votes)


def test_a_part_whose_users_are_gone_cannot_be_stored(reversing, tmp_path):
    part = reversing.votes.subset(reversing.votes.user > 0)
    with pytest.raises(ValueError, match="cannot be stored"):
        save_model(ISplitLBI(**QUICK).fit(part), tmp_path / "part")
    assert not (tmp_path / "part").exists()
