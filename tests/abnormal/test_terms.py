"""Tests of users where votes have no ties, sides mean nothing, or margins more than scores."""

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowds import (
    SCORES,
    assert_same_ordinary,
    consensus_in,
    consensus_of,
    crowd,
    forced,
    gather,
    vote,
)
from isplitlbi import ISplitLBI
from isplitlbi.abnormal import find_abnormal, find_telling_votes, joined
from isplitlbi.abnormal.expectation import Answers, Expectation
from isplitlbi.abnormal.job import FindAbnormal, find_abnormal_on
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.likelihood import fit_consensus
from machines import even_bounds, on_machines

LINK = Logistic()
FLOATS = ("effect", "effect_low", "effect_high", "quality", "slope", "side", "threshold")
TIE_KINDS = {"tie-happy", "tie-shy", "never-tie", "always-tie"}


def findings(votes, names="all", **settings):
    return find_abnormal(votes, LINK, consensus_in(votes, names), **settings)


# --- forced choices --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "n_votes", "recall"), [("reversed", 20, 0.95), ("random", 40, 0.8)]
)
@pytest.mark.parametrize("names", ["all", "paper"])
def test_malicious_users_are_found_without_ties(kind, n_votes, recall, names):
    found_share, wrong, null = [], 0, []
    for seed in range(3):
        votes, truth = forced(seed, n_votes, malicious={kind: 0.1})
        start = fit_consensus(votes, LINK) if names == "paper" else consensus_in(votes, names)
        found = find_abnormal(votes, LINK, start)
        found_share.append(found.flagged[truth.abnormal].mean())
        wrong += found.flagged[~truth.abnormal].sum()
        null.append(found.p_value[~truth.abnormal] < 0.05)
        assert not TIE_KINDS & set(found.kind)
    assert np.mean(found_share) >= recall
    assert wrong <= 0.1 * 3 * 15
    assert 0.02 < np.mean(null) < 0.08


@pytest.mark.parametrize("n_votes", [5, 20, 60])
def test_the_p_values_of_who_agrees_are_uniform_without_ties(n_votes):
    p_value = np.concatenate([findings(forced(seed, n_votes).votes).p_value for seed in range(6)])
    assert 0.03 <= np.mean(p_value < 0.05) <= 0.07


def test_there_is_no_threshold_without_ties():
    votes, truth = forced(1, 60, malicious={"reversed": 0.1, "always-left": 0.1})
    found = findings(votes)
    assert not found.consensus.terms.has_ties
    assert found.consensus.threshold == 0.0
    assert_array_equal(found.threshold, 0.0)
    assert np.isfinite(found.quality).all()
    kind = np.array(found.kind)
    mirrored = kind[np.array(truth.kind) == "reversed"]
    assert set(mirrored) <= {"reversed", "unclear"}
    assert np.mean(mirrored == "reversed") > 0.8
    assert np.mean(kind[np.array(truth.kind) == "always-left"] == "position-biased") > 0.9
    assert found.quality[found.on("unreliable")].max() < 0.3
    assert np.mean(found.quality[truth.abnormal] < 0.3) > 0.9  # the others are unclear
    assert np.median(found.quality[~truth.abnormal]) > 0.7
    assert not any("tie" in sentence for sentence in found.explanation)


def test_without_ties_the_consensus_expects_none():
    votes = forced(2, 30).votes
    answers, consensus = Answers.of(votes), consensus_in(votes)
    expected = Expectation.of(Answers.of(votes, consensus.terms), consensus, LINK)
    assert_array_equal(expected.probability[:, 1], 0.0)
    assert_allclose(expected.probability.sum(axis=1), 1.0)
    assert_array_equal(expected.by_level, 0.0)
    assert np.isfinite(answers.log_likelihood(expected.log_probability)).all()
    for column in (0, 2):
        log = np.log(expected.probability[:, column])
        shifted = consensus.values.copy()
        shifted[consensus.vector.place("side")] += 1e-6
        moved = Expectation.of(answers, replace(consensus, values=shifted), LINK)
        slope = (np.log(moved.probability[:, column]) - log) / 1e-6
        assert_allclose(expected.by_margin[:, column], slope, atol=1e-5)


def test_telling_votes_of_a_forced_choice_have_chances_of_two_outcomes():
    votes = forced(3, 20).votes
    consensus = findings(votes).consensus
    told = find_telling_votes(votes, LINK, consensus, most=3)
    assert np.all((told.probability > 0.0) & (told.probability < 1.0))
    assert set(told.outcome) <= {-1, 1}
    side = consensus.trait("side")
    margin = consensus.scores[told.left] - consensus.scores[told.right] + side
    assert_allclose(told.probability, np.exp(LINK.win(told.outcome * margin)[0]), rtol=1e-9)


@pytest.mark.parametrize("link", LINKS)
def test_every_link_knows_forced_choices(link):
    rng = np.random.default_rng(2)
    voters = {f"normal-{number}": vote(rng, 50, 0.5 * SCORES, 0.0) for number in range(20)}
    votes = gather(voters | {"reversed": vote(rng, 200, -0.5 * SCORES, 0.0)})
    found = find_abnormal(votes, LINKS[link](), consensus_of(0.4 * SCORES, 0.1))
    assert votes.users[found.flagged].tolist() == ["reversed"]
    assert found.kind[-1] == "reversed"


def test_one_tie_in_many_votes_is_not_a_fault():
    votes = forced(5, 40, n_users=80).votes
    outcome = votes.outcome.copy()
    outcome[[np.flatnonzero(votes.user == user)[0] for user in range(4)]] = 0
    votes = replace(votes, outcome=outcome)
    found = findings(votes)
    assert not found.flagged[:4].any()


# --- sides -----------------------------------------------------------------------------------


def test_where_sides_mean_nothing_nobody_prefers_one():
    votes = gather(crowd(n_users=30))
    place = {user: number for number, user in enumerate(votes.users)}
    for names in ("all", "paper"):
        start = consensus_in(votes, names, has_sides=False)
        job = FindAbnormal(LINK, start, has_sides=False)
        found = find_abnormal_on(Local(votes), job)
        assert "position-biased" not in found.kind
        assert found.kind[place["reversed"]] == "reversed"
        assert found.kind[place["careless"]] == "careless"
        assert_array_equal(found.side, 0.0)


@pytest.mark.parametrize("threshold", [0.8, None])
def test_where_sides_mean_nothing_they_may_be_exchanged(threshold):
    votes = forced(6, 30, n_users=40, threshold=threshold, malicious={"reversed": 0.2}).votes
    start = consensus_in(votes, has_sides=False)
    found = find_abnormal(votes, LINK, start)
    swap = np.random.default_rng(0).random(len(votes)) < 0.5
    left, right = np.where(swap, [votes.right, votes.left], [votes.left, votes.right])
    users, items = votes.users[votes.user], votes.items
    other = type(votes).from_arrays(
        users, items[left], items[right], np.where(swap, -votes.outcome, votes.outcome)
    )
    again = find_abnormal(other, LINK, consensus_in(other, has_sides=False))
    assert_array_equal(again.p_value, found.p_value)
    assert again.kind == found.kind
    assert_allclose(again.quality, found.quality, atol=1e-6)


def test_a_side_that_all_prefer_is_nobodys_fault():
    p_value = []
    for seed in range(4):
        votes = forced(seed, 40, threshold=0.8, side=(0.6, 0.0)).votes
        found = findings(votes)
        p_value.append(found.p_value)
        assert found.consensus.trait("side") == pytest.approx(0.6, abs=0.15)
    assert 0.02 <= np.mean(np.array(p_value) < 0.05) <= 0.08


# --- tie habits and features -----------------------------------------------------------------


def test_tie_habits_of_items_belong_to_what_is_expected():
    votes = forced(7, 200, n_users=40, threshold=0.8, tie_habit=0.6).votes
    consensus = consensus_in(votes)
    answers = Answers.of(votes, consensus.terms)
    expected = Expectation.of(answers, consensus, LINK)
    margin, threshold = consensus.margin_and_threshold(answers.left, answers.right)
    assert np.ptp(threshold) > 0.5
    assert_allclose(expected.margin, margin)
    assert_allclose(expected.probability, np.exp(LINK.log_probabilities(margin, threshold)))
    # The slope is that in the logarithm of the threshold.
    by_level = LINK.gradient(margin, threshold)[..., 1] * threshold[:, None]
    assert_allclose(expected.by_level, by_level, atol=1e-9)
    assert_allclose(expected.level, np.log(threshold))


def with_features(seed=8, **changes):
    return simulate(
        n_users=60, n_items=8, votes_per_user=(60, 60), score_sd=1.5, threshold=0.8,
        abnormal_share=0.0, features={"length": 0.8}, random_state=seed, **changes,
    ).votes  # fmt: skip


def test_questions_with_other_features_are_other_questions():
    votes = with_features()
    consensus = consensus_in(votes)
    answers = Answers.of(votes, consensus.terms)
    assert len(answers.user) == len(votes)
    assert len(Answers.of(votes).user) < len(votes)
    apart = consensus.scores[answers.left] - consensus.scores[answers.right]
    by_length = consensus.trait("length") * answers.columns["length"]
    assert_allclose(answers.margin(consensus), apart + by_length + consensus.trait("side"))
    in_logits = consensus.trait("length") / votes.features.scale[0]
    assert in_logits == pytest.approx(0.8, abs=0.1)


def test_what_all_make_of_a_feature_is_nobodys_fault_and_another_effect_is():
    votes = with_features()
    outcome = votes.outcome.copy()
    rng = np.random.default_rng(0)
    mine = votes.user < 3  # who judge by length alone, the other way round
    shorter = -votes.features.differences[mine, 0]
    outcome[mine] = np.sign(shorter + 0.2 * rng.normal(size=mine.sum()))
    odd = replace(votes, outcome=outcome)
    found = findings(odd)
    assert found.flagged[:3].all()
    assert found.flagged[3:].sum() <= 2


# --- on several machines, in any order -------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.8, None])
def test_several_machines_find_what_one_finds_in_all_terms(threshold):
    votes = forced(9, 40, n_users=30, threshold=threshold, malicious={"reversed": 0.2}).votes
    start = consensus_in(votes)
    whole = find_abnormal(votes, LINK, start, seed=5)
    parts = on_machines(
        votes,
        even_bounds(votes, 3),
        lambda shard, runtime: find_abnormal(shard, LINK, start, seed=5, runtime=runtime),
    )
    together = joined(parts)
    assert whole.flagged.any()
    for field in fields(whole):
        here, there = getattr(together, field.name), getattr(whole, field.name)
        if field.name == "consensus":
            assert_allclose(here.values, there.values, atol=1e-6)
        elif field.name == "ordinary":
            assert_same_ordinary(here, there)
        elif field.name in FLOATS:
            assert_allclose(here, there, atol=1e-6, err_msg=field.name)
        else:
            assert_array_equal(here, there, err_msg=field.name)


def test_the_order_of_rows_does_not_matter_with_features():
    votes = with_features()
    order = np.random.default_rng(1).permutation(len(votes))
    one, other = findings(votes), findings(votes.subset(order))
    assert_array_equal(one.p_value, other.p_value)
    assert one.kind == other.kind


# --- by the estimator ------------------------------------------------------------------------


def test_the_model_tests_users_in_its_own_terms():
    quick = {"kappa": 5.0, "times": [0.4], "time": 0.7}
    votes, truth = forced(10, 40, n_users=60, malicious={"reversed": 0.1})
    model = ISplitLBI(**quick).fit(votes)
    assert not model.abnormality_.consensus.terms.has_ties
    assert model.abnormality_.flagged[truth.abnormal].all()
    assert model.effect_of_leaving_out().tier_with is None
    assert 0.0 < model.telling_votes(model.abnormal_users_[0])[0].probability < 0.5
    unknown = ISplitLBI(terms="paper", sides="unknown", **quick).fit(gather(crowd(n_users=20)))
    assert "position-biased" not in unknown.abnormality_.kind
