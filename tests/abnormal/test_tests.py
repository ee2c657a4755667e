"""Who does not vote like the consensus: p-values, q-values and flags."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import false_discovery_control, kstest
from threadpoolctl import threadpool_limits

from crowds import SCORES, agreeing, centred, consensus_in, forced, gather, vote
from isplitlbi.abnormal import directions, draws, find_abnormal, ordinary, others
from isplitlbi.abnormal import tests as user_tests
from isplitlbi.abnormal.expectation import Answers, Inputs
from isplitlbi.abnormal.tests import benjamini_hochberg, find_flags
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.evaluation.simulate import malicious_study, simulate
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.likelihood import fit_consensus

LINK = Logistic()


def inputs(votes, consensus):
    return Inputs(votes, Answers.of(votes), LINK, consensus, 1e-3, 0, Local(votes))


def below(flags, fdr=0.05):
    """Say whom either test has found."""
    return (flags.q_value <= fdr) | (flags.q_unreliable <= fdr)


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


def spread_out(seed, **changes):
    """Draw users who differ a little, as people do."""
    settings = {"n_users": 150, "n_items": 10, "votes_per_user": (100, 100), "taste_sd": 0.5}
    return simulate(
        **(settings | changes), score_sd=1.5, threshold=0.8, abnormal_share=0.0, random_state=seed
    ).votes


def all_pairs_of_rankings(seed, n_users=150, n_rankings=6, n_items=12):
    """Let users put five items in order again and again: all pairs of one ranking are a group."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1.5, n_items)
    user = np.repeat(np.arange(n_users), n_rankings)
    shown = np.array([rng.permutation(n_items)[:5] for _ in user])
    order = np.argsort(-(scores[shown] + rng.gumbel(size=shown.shape)), axis=1)
    ranked = np.take_along_axis(shown, order, axis=1)
    better, worse = (ranked[:, places].ravel() for places in np.triu_indices(5, 1))
    swap = rng.random(len(better)) < 0.5
    left, right = np.where(swap, worse, better), np.where(swap, better, worse)
    group = np.repeat(np.arange(len(user)), 10)
    return Comparisons.from_arrays(
        np.repeat(user, 10), left, right, np.where(swap, -1, 1), None, group
    )


def weighted(seed, n_users=150, n_votes=60):
    votes = agreeing(n_users, n_votes, seed)
    weight = np.random.default_rng(seed).lognormal(0.0, 0.7, len(votes))
    return replace(votes, weight=weight)


STUDIES = {
    "1 vote": (2, lambda seed: agreeing(400, 1, seed)),
    "5 votes": (2, lambda seed: agreeing(400, 5, seed)),
    "60 votes": (3, lambda seed: agreeing(200, 60, seed)),
    "forced choice, 5 votes": (4, lambda seed: forced(seed, 5).votes),
    "forced choice, 40 votes": (4, lambda seed: forced(seed, 40).votes),
    "many ties": (4, lambda seed: forced(seed, 40, threshold=6.0).votes),
    "rankings of five": (4, all_pairs_of_rankings),
    "a common side": (4, lambda seed: forced(seed, 40, threshold=0.8, side=(0.4, 0.0)).votes),
    "ordinary spread": (4, spread_out),
    "weights": (4, weighted),
    "weights, 5 votes": (4, lambda seed: weighted(seed, n_votes=5)),
}


@pytest.mark.parametrize("study", STUDIES)
def test_the_p_values_of_users_who_agree_are_uniform(study):
    n_seeds, draw = STUDIES[study]
    parts = [draw(seed) for seed in range(n_seeds)]
    found = [find_abnormal(votes, LINK, consensus_in(votes)) for votes in parts]
    for name in ("p_value", "p_unreliable"):
        p_value = np.concatenate([getattr(each, name) for each in found])
        assert 0.02 < np.mean(p_value < 0.05) < 0.08
        assert kstest(p_value, "uniform").pvalue > 0.001
    assert np.mean(np.concatenate([each.flagged for each in found])) < 0.01


@pytest.mark.parametrize("study", ["60 votes", "rankings of five", "weights"])
def test_the_effects_of_users_who_agree_are_not_told_from_zero(study):
    _, draw = STUDIES[study]
    low = []
    for seed in (30, 31):
        votes = draw(seed)
        found = find_abnormal(votes, LINK, consensus_in(votes))
        low.append(found.effect_low > 0.0)
        assert np.median(found.effect) < 0.1
    assert np.mean(low) < 0.06


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"taste_sd": 0.2},
        {"votes_per_user": (300, 300)},
        {"votes_per_user": (300, 300), "sharpness": 0.2, "side": 0.3, "threshold_sd": 0.3},
    ],
)
def test_ordinary_users_are_on_no_list(changes):
    listed = []
    for seed in (10, 11):
        votes = spread_out(seed, **changes)
        listed.append(find_abnormal(votes, LINK, consensus_in(votes)).flagged)
    assert np.mean(listed) <= 0.05


def test_careless_users_are_found_among_users_who_differ():
    recall, wrong = [], []
    for seed in (20, 21):
        votes, truth = simulate(
            n_users=200, n_items=10, votes_per_user=(300, 300), score_sd=1.5, threshold=0.8,
            abnormal_share=0.0, taste_sd=0.5, malicious={"random": 0.1}, random_state=seed,
        )  # fmt: skip
        listed = find_abnormal(votes, LINK, consensus_in(votes)).on("unreliable")
        recall.append(listed[truth.abnormal].mean())
        wrong.append(np.sum(listed & ~truth.abnormal) / max(listed.sum(), 1))
    assert np.mean(recall) >= 0.95
    assert np.mean(wrong) <= 0.06


def test_a_few_reversed_users_are_found_among_thousands():
    votes, truth = simulate(
        n_users=5_000, n_items=20, votes_per_user=(15, 15), score_sd=2.0, threshold=0.8,
        abnormal_share=0.0, malicious={"reversed": 6 / 5_000}, random_state=0,
    )  # fmt: skip
    found = find_abnormal(votes, LINK, consensus_in(votes))
    assert truth.abnormal.sum() == 6
    assert found.flagged[truth.abnormal].all()
    assert found.flagged[~truth.abnormal].sum() <= 1
    # With so many users, 10,000 draws would be too few to tell anybody from chance.
    smallest = np.minimum(found.p_value, found.p_unreliable)
    assert smallest[truth.abnormal].max() < 1e-4
    assert 0.04 < np.mean(found.p_value[~truth.abnormal] < 0.05) < 0.06


def test_hardly_anybody_who_agrees_is_flagged(found, votes):
    normal = np.char.startswith(votes.users.astype(str), "normal")
    assert found.flagged[normal].sum() <= 1


def test_the_reversed_user_is_flagged_first():
    rng = np.random.default_rng(0)
    voters = {f"normal-{number}": vote(rng, 40) for number in range(30)}
    votes = gather(voters | {"reversed": vote(rng, 40, -SCORES)})
    flags = find_flags(inputs(votes, fit_consensus(votes, LINK)))
    assert votes.users[below(flags)].tolist() == ["reversed"]
    for q_value in (flags.q_value, flags.q_unreliable):
        assert votes.users[np.argmin(q_value)] == "reversed"
        assert np.sum(q_value == q_value.min()) == 1
    assert votes.users[np.argmax(flags.effect)] == "reversed"


@pytest.mark.parametrize("kind", ["reversed", "random", "always-left", "always-tie"])
def test_malicious_users_are_found_among_many(kind):
    votes, truth = malicious_study(kind, 0)
    flagged = below(find_flags(inputs(votes, fit_consensus(votes, LINK))))
    assert flagged[truth.abnormal].all()
    assert flagged[~truth.abnormal].sum() <= 3


def test_who_is_flagged_is_who_has_a_small_q_value(found):
    is_different, is_unreliable = found.q_value <= found.fdr, found.q_unreliable <= found.fdr
    assert np.all(found.flagged[is_different])  # the others are so only if a kind explains it
    assert np.all((is_different | is_unreliable)[found.flagged])
    assert np.all(is_unreliable[found.on("unreliable")])
    enough = found.votes_needed == 0
    expected = benjamini_hochberg(found.p_unreliable)
    assert_allclose(found.q_unreliable[enough], expected[enough])
    # Who is not unreliable is tested among each other, unless both tests say the same.
    others = np.where(found.on("unreliable"), np.nan, found.p_value)
    alone = enough & ~is_unreliable
    assert_allclose(found.q_value[alone], benjamini_hochberg(others)[alone])
    for p_value, q_value in (
        (found.p_value, found.q_value), (found.p_unreliable, found.q_unreliable)
    ):  # fmt: skip
        assert np.all(q_value >= benjamini_hochberg(p_value) - 1e-12)
        assert np.all((p_value > 0) & (p_value <= 1))


def test_the_effect_lies_in_its_interval_and_tells_users_of_equal_p_apart(found, place):
    assert np.all((found.effect_low <= found.effect) & (found.effect <= found.effect_high))
    assert np.all(found.effect_low >= 0.0)
    agree = [found.effect[k] for user, k in place.items() if user.startswith("normal")]
    assert np.median(agree) < 0.2
    assert np.all(found.effect_low[found.q_value <= found.fdr] > 0.0)
    assert found.effect[place["reversed"]] > found.effect[place["tie-shy"]]


def test_users_with_too_few_votes_are_marked_and_not_flagged(votes, found):
    n_votes = votes.votes_per_user
    assert_array_equal(found.votes_needed > 0, n_votes <= 2)
    assert np.all(found.votes_needed[n_votes <= 2] > n_votes[n_votes <= 2])
    assert not found.flagged[n_votes <= 2].any()


def test_the_votes_needed_would_do(found, votes, start, voters):
    # As many votes on the same pair, all of them the least probable: now the user can be flagged.
    n_votes = int(found.votes_needed[votes.users.tolist().index("newcomer-1")])
    expected = np.exp(LINK.log_probabilities(start.scores[3] - start.scores[4], start.threshold))
    least = 1 - int(np.argmin(expected))
    stubborn = np.full(n_votes, 3), np.full(n_votes, 4), np.full(n_votes, least)
    again = gather(voters | {"newcomer-1": stubborn})
    assert find_flags(inputs(again, start)).votes_needed[again.users == "newcomer-1"] == [0]


def test_abnormal_users_do_not_pull_the_consensus(reversing):
    votes, truth = reversing
    pulled = fit_consensus(votes, LINK)
    kept = find_flags(inputs(votes, pulled))
    error = [
        np.linalg.norm(centred(c.scores) - centred(truth.scores)) for c in (pulled, kept.consensus)
    ]
    assert error[1] < 0.5 * error[0]
    assert below(kept)[truth.abnormal].all()
    assert below(kept)[~truth.abnormal].sum() <= 3


def test_users_who_turn_everything_round_are_found_though_they_are_nearly_half():
    rng = np.random.default_rng(8)
    voters = {f"with-{number:02d}": vote(rng, 40) for number in range(44)}
    voters |= {f"against-{number:02d}": vote(rng, 40, -SCORES) for number in range(36)}
    votes = gather(voters)
    found = find_flags(inputs(votes, consensus_in(votes)))
    against = np.array([user.startswith("against") for user in votes.users])
    assert np.mean(found.q_unreliable[against] <= 0.05) > 0.95
    assert np.mean(found.q_unreliable[~against] <= 0.05) < 0.05
    assert_array_equal(np.argsort(found.consensus.scores), np.argsort(SCORES))


def test_a_first_consensus_that_everybody_votes_against_leaves_nobody_out():
    rng = np.random.default_rng(11)
    votes = gather({f"user-{number:02d}": vote(rng, 60) for number in range(30)})
    right = consensus_in(votes)
    values = right.values.copy()
    values[right.vector.scores] *= -1.0
    found = find_flags(inputs(votes, replace(right, values=values)))
    assert_array_equal(np.argsort(found.consensus.scores), np.argsort(right.scores))
    assert np.sum(found.q_value <= 0.05) + np.sum(found.q_unreliable <= 0.05) <= 2


@pytest.mark.parametrize("slope", [3.0, 100.0])
def test_users_who_are_far_surer_than_others_are_found(slope):
    rng = np.random.default_rng(9)
    voters = {f"user-{number:02d}": vote(rng, 150) for number in range(60)}
    voters |= {f"surer-{number}": vote(rng, 400, slope * SCORES) for number in range(4)}
    votes = gather(voters)
    found = find_flags(inputs(votes, consensus_in(votes)))
    surer = np.array([user.startswith("surer") for user in votes.users])
    assert np.all(found.q_value[surer] <= 0.05)
    assert np.sum(found.q_value[~surer] <= 0.05) <= 2


def test_what_a_test_takes_is_not_kept_for_every_user(monkeypatch):
    monkeypatch.setattr(user_tests, "ROUNDS", (100, 200))
    for module in (ordinary, others, draws):
        monkeypatch.setattr(module, "MOST_KEPT", 0)
    monkeypatch.setattr(directions, "NUMBERS_AT_ONCE", 1)
    votes = simulate(
        n_users=80, n_items=400, votes_per_user=(160, 160), score_sd=1.5, random_state=0
    ).votes
    start = fit_consensus(votes, LINK)
    tracemalloc.start()
    with threadpool_limits(1, user_api="blas"):  # as in find_abnormal
        find_flags(inputs(votes, start))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    matrices = 8 * np.sum(Layout.of(votes).slots.sizes ** 2)
    assert peak < 0.5 * matrices


def test_progress_is_told_up_to_the_end(votes, start):
    shares = []
    find_flags(inputs(votes, start), progress=shares.append)
    assert np.all(np.diff(shares) > 0)
    assert shares[0] >= 0.0
    assert shares[-1] == 1.0
    assert len(shares) > 3
