"""What is ordinary in a study: by how much users differ, and the consensus of the others."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowds import SCORES, consensus_in, gather, vote
from isplitlbi.abnormal import ordinary
from isplitlbi.abnormal import tests as user_tests
from isplitlbi.abnormal.directions import Directions, Said
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.others import Habits, Others
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.common import fit_common

LINK = Logistic()
SPREADS = ("sharpness", "side", "threshold_sd", "taste_sd")  # in the order of variances
SMALL = 0.15


def inputs_of(votes, names="all"):
    start = consensus_in(votes, names)
    return Inputs.of(votes, LINK, start, delta=1e-3, seed=0, runtime=Local(votes))


def yardstick_of(votes):
    return user_tests._yardstick(inputs_of(votes), lambda done: None)


def study(seed, **changes):
    settings = {"n_users": 150, "n_items": 10, "votes_per_user": (100, 100), "score_sd": 1.5}
    settings |= {"threshold": 0.8, "abnormal_share": 0.0}
    return simulate(**(settings | changes), random_state=seed)


def spreads_of(seeds=(0, 1), **changes):
    """Return by how much ordinary users seem to differ in each way, over some studies."""
    variances = [yardstick_of(study(seed, **changes).votes)[1].variances for seed in seeds]
    return dict(zip(SPREADS, np.sqrt(np.mean(variances, axis=0)), strict=True))


# --- by how much users differ ----------------------------------------------------------------


def test_users_who_do_not_differ_have_hardly_any_spread():
    assert max(spreads_of().values()) < SMALL


@pytest.mark.parametrize(
    ("spread", "amount"),
    [
        ("taste_sd", 0.3),
        ("taste_sd", 0.5),
        ("sharpness", 0.3),
        ("side", 0.4),
        ("threshold_sd", 0.4),
    ],
)
def test_one_spread_is_recovered_and_not_taken_for_another(spread, amount):
    found = spreads_of(**{spread: amount})
    assert found.pop(spread) == pytest.approx(amount, rel=0.25)
    assert max(found.values()) < SMALL


def test_all_spreads_together_are_recovered():
    amounts = {"taste_sd": 0.4, "sharpness": 0.3, "side": 0.4, "threshold_sd": 0.4}
    for name, found in spreads_of(**amounts).items():
        assert found == pytest.approx(amounts[name], rel=0.25), name


@pytest.mark.parametrize("taste_sd", [0.0, 0.4])
@pytest.mark.parametrize(
    "others",
    [
        {"abnormal_share": 0.15, "deviation_sd": 2.0},
        {"malicious": {"random": 0.2}},
        {"malicious": {"random": 0.1, "always-left": 0.05, "always-tie": 0.05}},
    ],
    ids=["wild tastes", "at random", "whatever is shown"],
)
def test_those_who_stand_out_do_not_make_what_they_do_ordinary(others, taste_sd):
    found = spreads_of(taste_sd=taste_sd, **others)
    taste = found.pop("taste_sd")
    assert taste < SMALL if taste_sd == 0.0 else taste == pytest.approx(taste_sd, rel=0.25)
    assert max(found.values()) < SMALL


@pytest.mark.parametrize("taste_sd", [0.0, 0.4])
def test_votes_of_different_weights_are_not_taken_for_users_who_differ(taste_sd):
    votes = study(2, taste_sd=taste_sd).votes
    weight = np.random.default_rng(0).lognormal(0.0, 0.7, len(votes))
    _, yardstick = yardstick_of(replace(votes, weight=weight))
    *traits, taste = np.sqrt(yardstick.variances)
    assert max(traits) < SMALL
    assert taste < SMALL if taste_sd == 0.0 else taste == pytest.approx(taste_sd, rel=0.25)


def test_without_ties_there_is_no_spread_of_thresholds():
    _, yardstick = yardstick_of(study(2, threshold=None, taste_sd=0.4).votes)
    assert yardstick.variances[2] == 0.0
    assert np.sqrt(yardstick.variances[3]) == pytest.approx(0.4, rel=0.25)


def test_spread_among_the_attentive_is_bounded():
    _, yardstick = yardstick_of(study(3, sharpness=0.8, side=1.5, n_users=60).votes)
    attentive = yardstick.of_the_attentive(in_all=True)
    assert yardstick.variances[1] > ordinary.MOST_OF_TRAITS
    assert attentive.variances[0] <= ordinary.MOST_OF_SLOPE
    assert np.all(attentive.variances[1:3] <= ordinary.MOST_OF_TRAITS)
    assert attentive.variances[3] == yardstick.variances[3]
    _, usual = yardstick_of(study(3, n_users=60).votes)
    assert usual.of_the_attentive(in_all=True) is usual


# --- the consensus of the others -------------------------------------------------------------


def test_users_who_stand_out_are_not_inside():
    votes, truth = study(4, votes_per_user=(60, 60), malicious={"reversed": 0.1, "random": 0.1})
    _, yardstick = yardstick_of(votes)
    kind = np.array(truth.kind)
    assert not yardstick.others.inside[kind == "reversed"].any()
    assert yardstick.others.inside[kind == "random"].mean() < 0.25
    assert yardstick.others.inside[~truth.abnormal].mean() > 0.9


def test_at_least_half_of_the_users_are_inside():
    votes, _ = study(5, n_users=40, abnormal_share=1.0, deviation_sd=4.0)
    _, yardstick = yardstick_of(votes)
    assert yardstick.others.inside.mean() >= 0.5


def test_leaving_a_user_out_is_near_the_consensus_fitted_without(monkeypatch):
    monkeypatch.setattr(Yardstick, "_sharpened", lambda self, inputs, inside: 0.0)
    votes = study(6, n_users=40, n_items=40, votes_per_user=(30, 30)).votes  # 60 votes per item
    inputs, yardstick = yardstick_of(votes)
    answers, consensus = inputs.answers, inputs.consensus
    variance = consensus.terms.score_variance
    inside = yardstick.others.inside
    with_user, found, moved = [], [], []
    for user in np.flatnonzero(inside)[:10]:
        theirs = votes.subset(inside[votes.user] & (votes.user != user))
        without = fit_common(theirs, LINK, consensus.terms, variance=variance, delta=1e-3)
        mine = answers.of_user(user)
        apart = answers.apart(without)[mine]
        with_user.append(answers.apart(consensus)[mine] - apart)
        found.append(yardstick.expected.apart[mine] - apart)
        moved.append(np.abs(with_user[-1]).max())
    assert min(moved) > 0.05  # the user does pull
    error, before = (np.sqrt(np.mean(np.concatenate(each) ** 2)) for each in (found, with_user))
    assert error < 0.25 * before


def test_who_is_not_inside_is_not_left_out(monkeypatch):
    monkeypatch.setattr(Yardstick, "_sharpened", lambda self, inputs, inside: 0.0)
    votes = study(7, n_users=60, votes_per_user=(60, 60), malicious={"reversed": 0.1}).votes
    inputs, yardstick = yardstick_of(votes)
    outside = ~yardstick.others.inside[inputs.answers.user]
    assert outside.any()
    apart = inputs.answers.apart(inputs.consensus)
    assert_allclose(yardstick.expected.apart[outside], apart[outside])
    assert not np.allclose(yardstick.expected.apart[~outside], apart[~outside])


def others_of(votes, inside=None, variance=4.0):
    """Return how surely the consensus is known, and what is needed to check that."""
    inputs = inputs_of(votes)
    answers, expected = inputs.answers, inputs.expectation()
    said = Said.of(LINK, expected.margin, expected.level, answers.weighted, True)
    inside = answers.voted if inside is None else inside
    directions = Directions.of(answers, votes)
    return Others.of(inputs, said, inside, variance), inputs, said, directions


def test_errors_are_those_of_the_information_without_the_user():
    votes = study(8, n_users=12, n_items=9, votes_per_user=(15, 15)).votes
    inside = np.arange(12) != 3
    others, inputs, said, directions = others_of(votes, inside)
    answers, each = inputs.answers, np.eye(votes.n_items)
    apart = each[answers.left] - each[answers.right]
    for user in range(5):
        counts = inside[answers.user] & (answers.user != user)
        known = (said.mm * counts) @ (apart[:, :, None] * apart[:, None, :]).reshape(len(apart), -1)
        known = known.reshape(9, 9) + np.eye(9) / 4.0
        block = directions.block(np.array([user]), said.mm)
        items = block.item[0, block.n_traits :]
        (error,) = others.error(block)
        assert_array_equal(error[: block.n_traits], 0.0)
        mine = error[block.n_traits :, block.n_traits :]
        assert_allclose(mine, np.linalg.inv(known)[np.ix_(items, items)], atol=1e-9)


def test_errors_of_very_many_items_are_taken_as_independent(monkeypatch):
    votes = study(8, n_users=30, n_items=9, votes_per_user=(40, 40)).votes
    whole, *_ = others_of(votes)
    monkeypatch.setattr("isplitlbi.abnormal.others.MOST_ITEMS", 5)
    others, _, said, directions = others_of(votes)
    assert others.covariance.shape == (10,)
    # Where the scores lie all together is not known, and does not matter.
    together = whole.covariance[:9, :9]
    apart = np.diag(together)[:, None] + np.diag(together)[None, :] - 2 * together
    alone = others.covariance[:9, None] + others.covariance[None, :9]
    different = ~np.eye(9, dtype=bool)
    assert_allclose(alone[different], apart[different], rtol=0.3)
    block = directions.block(np.array([0, 1]), said.mm)
    assert np.all(np.einsum("nii->ni", others.error(block))[:, block.n_traits :] > 0.0)


def test_errors_are_as_large_as_the_spread_over_refits():
    def drawn(seed):
        rng = np.random.default_rng(seed)
        return gather({f"u{number:02d}": vote(rng, 20) for number in range(15)})

    refits = [consensus_in(drawn(seed)).scores for seed in range(60)]
    apart = np.array([each[:, None] - each[None, :] for each in refits])
    spread = apart.var(axis=0)
    foretold = []
    for seed in range(5):
        own = others_of(drawn(seed))[0].covariance[:8, :8]
        foretold.append(np.diag(own)[:, None] + np.diag(own)[None, :] - 2 * own)
    different = ~np.eye(len(SCORES), dtype=bool)
    ratio = np.mean(foretold, axis=0)[different] / spread[different]
    assert 1 / 1.5 < np.median(ratio) < 1.5
    assert np.all((ratio > 1 / 2.5) & (ratio < 2.5))


def test_what_is_kept_changes_nothing(monkeypatch):
    votes = study(9, n_users=30, taste_sd=0.3).votes
    _, kept = yardstick_of(votes)
    monkeypatch.setattr(ordinary, "MOST_KEPT", 0)
    monkeypatch.setattr("isplitlbi.abnormal.others.MOST_KEPT", 0)
    _, found_again = yardstick_of(votes)
    assert_array_equal(kept.variances, found_again.variances)
    assert_array_equal(kept.expected.margin, found_again.expected.margin)


def test_own_ties_make_no_habits_of_the_items_that_a_user_is_tested_on():
    rng = np.random.default_rng(10)
    voters = {f"user-{number}": vote(rng, 12) for number in range(8)}
    left, right, _ = voters["user-0"]
    voters["user-0"] = left, right, np.zeros(12, dtype=int)  # ties, whatever is shown
    votes = gather(voters)
    inputs = inputs_of(votes)
    inside = np.ones(votes.n_users, dtype=np.bool_)
    whole = inputs.expectation()
    said = Said.of(LINK, whole.margin, whole.level, inputs.answers.weighted, True)
    directions = Directions.of(inputs.answers, votes)
    found = Habits.of_others(inputs, directions, said, inside)
    moved = found.by_level
    others = replace(
        inputs,
        consensus=fit_common(
            votes.subset(votes.user != 0), LINK, inputs.consensus.terms, variance=25.0
        ),
    )
    mine = inputs.answers.of_user(0)
    assert np.all(moved[mine] < 0.0)
    habits, theirs = (
        np.log(inputs.answers.habit(each.consensus))[mine] for each in (inputs, others)
    )
    # One correction of each habit comes near to what a fit without the user gives.
    assert np.corrcoef(moved[mine], theirs - habits)[0, 1] > 0.8
    nobody = np.zeros(votes.n_users, dtype=np.bool_)
    unmoved = Habits.of_others(inputs, directions, said, nobody)
    assert_array_equal(unmoved.by_level, 0.0)
    # What nobody has told is as unsure as its prior: two habits make a level.
    variance = inputs.consensus.terms.habit_variance
    assert np.all(unmoved.variance <= 2.0 * variance)
    assert np.all(found.variance < unmoved.variance)
