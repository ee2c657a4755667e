import hashlib
import inspect

import numpy as np
import pytest
from scipy.stats import chisquare, logistic, norm, uniform

from isplitlbi import Comparisons
from isplitlbi.errors import InvalidSetting
from isplitlbi.evaluation.simulate import (
    MALICIOUS_KINDS,
    few_votes_study,
    malicious_study,
    paper_study,
    simulate,
    small_deviations_study,
)
from isplitlbi.evaluation.truth import Truth

CDF = {"logistic": logistic.cdf, "normal": norm.cdf, "uniform": uniform(-1, 2).cdf}


def margins_and_thresholds(study):
    votes, truth = study
    scores = truth.user_scores()
    margin = scores[votes.user, votes.left] - scores[votes.user, votes.right]
    return margin, truth.user_thresholds()[votes.user]


def frequencies(outcome):
    return np.array([(outcome == value).mean() for value in (1, 0, -1)])


def votes_of_kind(study, kind):
    """Rows of the votes by users of this kind."""
    return (np.array(study.truth.kind) == kind)[study.votes.user]


@pytest.mark.parametrize("noise", CDF)
def test_outcomes_occur_as_often_as_the_model_says(noise):
    study = simulate(
        n_items=5,
        votes_per_user=(1000, 1000),
        score_sd=1.0,
        deviation_sd=1.0,
        threshold=0.4,
        malicious={"reversed": 0.2, "random": 0.2},
        noise=noise,
        random_state=1,
    )
    margin, threshold = margins_and_thresholds(study)
    left = CDF[noise](margin - threshold)
    right = CDF[noise](-margin - threshold)
    probabilities = np.stack([left, 1 - left - right, right], axis=1)
    happened = np.stack([study.votes.outcome == value for value in (1, 0, -1)], axis=1)
    # Also within bins of the margin, so that an error at one end cannot hide in the total.
    for rows in np.array_split(np.argsort(margin, kind="stable"), 10):
        p = probabilities[rows]
        error = np.sqrt((p * (1 - p)).sum(axis=0)) + 1e-9
        excess = happened[rows].sum(axis=0) - p.sum(axis=0)
        assert np.all(np.abs(excess) <= 4 * error)


def test_pairs_are_uniform_over_distinct_items_with_sides_at_random():
    votes, _ = simulate(n_users=10, n_items=4, votes_per_user=(2000, 2000), random_state=2)
    assert np.all(votes.left != votes.right)
    pair = 4 * votes.left + votes.right
    counts = np.bincount(pair, minlength=16).reshape(4, 4)
    assert chisquare(counts[~np.eye(4, dtype=bool)]).pvalue > 1e-3


def test_the_same_seed_gives_the_same_study():
    one, two = (simulate(malicious={"random": 0.1}, random_state=7) for _ in range(2))
    for name in ("users", "items", "user", "left", "right", "outcome"):
        np.testing.assert_array_equal(getattr(one.votes, name), getattr(two.votes, name))
    np.testing.assert_array_equal(one.truth.deviations, two.truth.deviations)
    assert one.truth.kind == two.truth.kind


def test_different_seeds_give_different_studies():
    assert not np.array_equal(paper_study(0).truth.scores, paper_study(1).truth.scores)


def test_a_generator_is_accepted_and_advances():
    rng = np.random.default_rng(0)
    one, two = paper_study(rng), paper_study(rng)
    np.testing.assert_array_equal(one.truth.scores, paper_study(0).truth.scores)
    assert not np.array_equal(one.truth.scores, two.truth.scores)


def test_the_papers_study_has_the_papers_numbers():
    votes, truth = paper_study(0)
    assert (votes.n_users, votes.n_items, truth.threshold) == (50, 20, 1.5)
    per_user = np.bincount(votes.user)
    assert 200 <= per_user.min() <= per_user.max() <= 400
    assert set(truth.kind) == {"consensus", "different taste"}
    assert np.all(truth.deviations[~truth.abnormal] == 0)
    assert np.all(truth.threshold_deviations[~truth.abnormal] == 0)
    assert np.all(truth.deviations[truth.abnormal] != 0)
    assert np.all(np.abs(truth.threshold_deviations) <= 0.75)
    assert 0.10 < (votes.outcome == 0).mean() < 0.25


def test_scores_and_deviations_have_the_spread_asked_for():
    _, truth = simulate(
        n_users=400, n_items=400, abnormal_share=0.5, score_sd=3.0, deviation_sd=2.0, random_state=3
    )
    assert truth.scores.std() == pytest.approx(3.0, rel=0.15)
    assert truth.deviations[truth.abnormal].std() == pytest.approx(2.0, rel=0.02)
    spread = truth.threshold_deviations[truth.abnormal]
    assert spread.std() == pytest.approx(0.75 / np.sqrt(3), rel=0.1)


def test_votes_per_user_span_the_range_with_both_ends():
    votes, _ = simulate(n_users=300, votes_per_user=(3, 6), random_state=0)
    assert set(np.bincount(votes.user)) == {3, 4, 5, 6}


def test_truth_is_aligned_with_the_votes_when_items_get_no_vote():
    study = simulate(
        n_users=3, n_items=150, votes_per_user=(20, 20), abnormal_share=1.0, score_sd=50.0,
        deviation_sd=0.1, random_state=4,
    )  # fmt: skip
    votes, truth = study
    assert votes.n_items < 150
    assert truth.scores.shape == (votes.n_items,)
    assert truth.deviations.shape == truth.user_scores().shape == (3, votes.n_items)
    # With differences this large the better item nearly always wins: a shifted truth would not do.
    margin, threshold = margins_and_thresholds(study)
    clear = np.abs(margin) > threshold + 6
    assert clear.sum() > 30
    np.testing.assert_array_equal(votes.outcome[clear], np.sign(margin[clear]))


@pytest.mark.parametrize(
    ("n_users", "first", "last"), [(3, "user-01", "user-03"), (120, "user-001", "user-120")]
)
def test_ids_are_padded_so_that_they_sort_by_number(n_users, first, last):
    votes, _ = simulate(n_users=n_users, votes_per_user=(1, 2), random_state=0)
    assert votes.n_users == n_users
    assert (votes.users[0], votes.users[-1]) == (first, last)


def test_the_share_of_users_with_a_different_taste_is_right_on_average():
    _, truth = simulate(
        n_users=4000, votes_per_user=(1, 1), abnormal_share=0.3, malicious={"random": 0.5},
        random_state=0,
    )  # fmt: skip
    count = truth.kind.count("different taste")
    assert abs(count - 1200) < 4 * np.sqrt(2000 * 0.6 * 0.4)


def test_malicious_shares_are_exact_and_count_as_abnormal():
    shares = {"reversed": 0.1, "random": 0.2, "always-left": 0.05, "always-tie": 0.15}
    _, truth = simulate(n_users=100, abnormal_share=0.0, malicious=shares, random_state=0)
    assert {kind: truth.kind.count(kind) for kind in shares} == {
        kind: round(100 * share) for kind, share in shares.items()
    }
    assert truth.abnormal.sum() == 50
    np.testing.assert_array_equal(truth.abnormal, np.array(truth.kind) != "consensus")


def test_shares_that_sum_to_one_leave_nobody_in_the_consensus():
    third = dict.fromkeys(MALICIOUS_KINDS[:3], 1 / 3)
    for n_users in (1, 4, 5, 100):
        _, truth = simulate(n_users=n_users, abnormal_share=0.0, malicious=third, random_state=0)
        assert truth.abnormal.all()
    _, truth = simulate(abnormal_share=0.5, malicious={"random": 0.5}, random_state=0)
    assert truth.abnormal.all()


def test_who_is_malicious_does_not_depend_on_the_order_of_the_mapping():
    shares = {"random": 0.3, "reversed": 0.2}
    one = simulate(malicious=shares, random_state=0)
    two = simulate(malicious=dict(reversed(shares.items())), random_state=0)
    assert one.truth.kind == two.truth.kind


def test_reversed_users_vote_by_the_consensus_upside_down():
    study = malicious_study("reversed", 0)
    votes, truth = study
    consensus_margin = truth.scores[votes.left] - truth.scores[votes.right]
    agrees = votes.outcome * np.sign(consensus_margin)
    rows = votes_of_kind(study, "reversed")
    assert agrees[~rows].mean() > 0.6
    assert agrees[rows].mean() < -0.6


@pytest.mark.parametrize("noise", CDF)
def test_random_users_give_each_answer_a_third_of_the_time_whatever_the_items(noise):
    study = simulate(
        n_users=20, abnormal_share=0.0, malicious={"random": 1.0}, noise=noise, random_state=5
    )
    votes, truth = study
    better_on_the_left = truth.scores[votes.left] > truth.scores[votes.right]
    for rows in (better_on_the_left, ~better_on_the_left):
        error = np.sqrt(2 / 9 / rows.sum())
        np.testing.assert_allclose(frequencies(votes.outcome[rows]), 1 / 3, atol=4 * error)


@pytest.mark.parametrize(("kind", "answer"), [("always-left", 1), ("always-tie", 0)])
def test_users_of_one_answer_always_give_it_and_have_no_scores(kind, answer):
    study = malicious_study(kind, 0)
    votes, truth = study
    rows = votes_of_kind(study, kind)
    assert np.all(votes.outcome[rows] == answer)
    assert set(votes.outcome[~rows]) == {1, 0, -1}
    np.testing.assert_array_equal(np.isnan(truth.user_scores()).all(axis=1), truth.abnormal)
    np.testing.assert_array_equal(np.isnan(truth.user_thresholds()), truth.abnormal)


@pytest.mark.parametrize("kind", MALICIOUS_KINDS)
def test_a_malicious_study_has_ten_malicious_users_and_no_other_abnormal_ones(kind):
    votes, truth = malicious_study(kind, 0)
    assert truth.kind.count(kind) == truth.abnormal.sum() == 10
    np.testing.assert_array_equal(np.bincount(votes.user), np.full(100, 60))


def test_a_few_votes_study_has_five_to_forty_votes_per_user():
    votes, _ = few_votes_study(0)
    per_user = np.bincount(votes.user)
    assert (votes.n_users, per_user.min(), per_user.max()) == (200, 5, 40)


def test_small_deviations_are_a_fifth_of_the_papers():
    paper, small = paper_study(0).truth, small_deviations_study(0).truth
    assert paper.abnormal.any()
    np.testing.assert_allclose(small.deviations, paper.deviations / 5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_users": 0}, "n_users must be at least 1, not 0"),
        ({"n_items": 1}, "n_items must be at least 2"),
        ({"votes_per_user": (0, 5)}, "1 <= least <= most"),
        ({"votes_per_user": (9, 5)}, r"not \(9, 5\)"),
        ({"score_sd": 0.0}, "score_sd must be positive"),
        ({"threshold": -1.0}, "threshold must be positive"),
        ({"deviation_sd": float("nan")}, "deviation_sd must be positive"),
        ({"threshold_spread": 1.0}, "so that every threshold stays positive"),
        ({"abnormal_share": 1.2}, "'abnormal_share' must be between 0 and 1, not 1.2"),
        ({"malicious": {"random": -0.1}}, "'random' must be between 0 and 1"),
        ({"malicious": {"lazy": 0.1}}, "'lazy' is not one of reversed, random"),
        ({"malicious": {"random": 0.5, "reversed": 0.4}}, "at most 1, not 1.1"),
        ({"sharpness": -1.0}, "sharpness, a standard deviation, must be at least 0 and finite"),
        ({"sharpness": "sharp"}, "sharpness, a standard deviation"),
        ({"sharpness": ()}, "sharpness is an empty list"),
        ({"sharpness": (1.0, float("inf"))}, "a slope of sharpness must be a finite number"),
        ({"side": -0.1}, "side, a standard deviation"),
        ({"side": (0.1, -0.1)}, "the second number of side, a standard deviation"),
        ({"side": (0.1, 0.2, 0.3)}, "side must be a number, or a pair"),
        ({"taste_sd": float("nan")}, "taste_sd, a standard deviation"),
        ({"threshold_sd": -1}, "threshold_sd, a standard deviation"),
        ({"tie_habit": float("inf")}, "tie_habit, a standard deviation"),
        ({"features": {"length": "long"}}, "effect of feature 'length' must be a finite number"),
        ({"features": {"length": (0.5, -1)}}, "second number of the effect of feature 'length'"),
        ({"features": {"left": 0.5}}, "a feature cannot be called 'left'"),
        ({"features": {"  ": 0.5}}, "a feature cannot be called"),
        ({"threshold": None, "tie_habit": 0.3}, "tie_habit needs ties: give a threshold"),
        ({"threshold": None, "threshold_sd": 0.3}, "threshold_sd needs ties"),
        ({"threshold": None, "malicious": {"always-tie": 0.1}}, "nobody can always answer a tie"),
        ({"noise": "cauchy"}, "noise must be one of logistic, normal, uniform, not 'cauchy'"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_named_in_the_error(parameters, message):
    with pytest.raises(InvalidSetting, match=message):
        simulate(**parameters, random_state=0)


# --- users who differ in more than taste, and items in the ties they invite -----------------------

HAS_FEATURES = "features" in inspect.signature(Comparisons.from_arrays).parameters
needs_features = pytest.mark.skipif(not HAS_FEATURES, reason="votes without features")

TERMS = {
    "sharpness": 0.4, "side": (0.3, 0.5), "taste_sd": 0.6, "threshold_sd": 0.3, "tie_habit": 0.25,
}  # fmt: skip


def fingerprint(study):
    votes, truth = study
    digest = hashlib.sha256()
    for array in (
        *(getattr(votes, name).astype(np.int64) for name in ("user", "left", "right")),
        votes.outcome, truth.scores, truth.deviations, truth.threshold_deviations,
    ):  # fmt: skip
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(repr((truth.kind, truth.threshold)).encode())
    return digest.hexdigest()[:16]


def test_studies_of_the_papers_kind_are_what_they_were_before_there_were_terms():
    mixed = {
        "n_users": 30, "n_items": 150, "votes_per_user": (5, 30), "noise": "normal",
        "malicious": {"reversed": 0.1, "always-tie": 0.1}, "random_state": 5,
    }  # fmt: skip
    rng = np.random.default_rng(0)
    found = [
        paper_study(rng), paper_study(1), few_votes_study(3), malicious_study("random", 2),
        simulate(**mixed), paper_study(rng),
    ]  # fmt: skip
    # Computed by the version before.
    before = ["409b9a6d9d6f5a21", "1a204e094ff015ea", "f0a11962d46c0477", "ee691fcb3df62ebb",
              "aed6d9f28ae9f56f", "8e6586f44633d65c"]  # fmt: skip
    assert [fingerprint(study) for study in found] == before


def test_without_terms_the_truth_is_neutral():
    _, truth = paper_study(0)
    assert np.all(truth.sharpness == 1) and np.all(truth.side == 0) and truth.common_side == 0
    assert np.all(truth.habits == 0) and truth.features.names == ()
    np.testing.assert_array_equal(truth.user_scores(), truth.scores + truth.deviations)
    bare = Truth(truth.scores, truth.threshold, truth.deviations, truth.threshold_deviations,
                 truth.abnormal, truth.kind)  # fmt: skip
    np.testing.assert_array_equal(bare.sharpness, np.ones(50))
    np.testing.assert_array_equal(bare.habits, np.zeros(20))
    assert bare.features.own.shape == (50, 0)


def test_terms_have_the_spread_asked_for():
    _, truth = simulate(
        n_users=2000, n_items=2000, votes_per_user=(20, 20), abnormal_share=0.0, **TERMS,
        random_state=0,
    )  # fmt: skip
    near = {"rel": 0.08}
    assert truth.sharpness.mean() == pytest.approx(1.0, abs=0.04)
    assert truth.sharpness.std() == pytest.approx(0.4, **near)
    assert (truth.common_side, truth.side.mean()) == (0.3, pytest.approx(0, abs=0.05))
    assert truth.side.std() == pytest.approx(0.5, **near)
    assert truth.deviations.std() == pytest.approx(0.6, **near)
    assert np.log(truth.user_thresholds() / 1.5).std() == pytest.approx(0.3, **near)
    assert truth.habits.std() == pytest.approx(0.25, **near)
    assert not truth.abnormal.any()


def test_slopes_are_dealt_evenly_and_in_random_order():
    slopes = (0, 0.5, 1, 2, -1)
    _, truth = simulate(n_users=52, sharpness=slopes, random_state=0)
    counts = [int((truth.sharpness == slope).sum()) for slope in slopes]
    assert sum(counts) == 52 and set(counts) == {10, 11}
    assert not np.array_equal(truth.sharpness, np.resize(slopes, 52))
    as_array = simulate(n_users=52, sharpness=np.array(slopes), random_state=0).truth
    np.testing.assert_array_equal(as_array.sharpness, truth.sharpness)


def test_each_term_leaves_the_numbers_of_the_others_alone():
    everything = simulate(**TERMS, random_state=3)
    for name, value in TERMS.items():
        alone = simulate(**{name: value}, random_state=3)
        field = {"taste_sd": "deviations", "threshold_sd": "threshold_deviations",
                 "tie_habit": "habits"}.get(name, name)  # fmt: skip
        np.testing.assert_array_equal(getattr(alone.truth, field), getattr(everything.truth, field))
        np.testing.assert_array_equal(alone.votes.left, everything.votes.left)


def test_the_same_seed_gives_the_same_terms():
    one, two, other = (simulate(**TERMS, random_state=seed) for seed in (7, 7, 8))
    for name in ("sharpness", "side", "habits", "deviations", "threshold_deviations"):
        np.testing.assert_array_equal(getattr(one.truth, name), getattr(two.truth, name))
        assert not np.array_equal(getattr(one.truth, name), getattr(other.truth, name))
    np.testing.assert_array_equal(one.votes.outcome, two.votes.outcome)


@pytest.mark.parametrize("threshold", [0.7, None])
def test_outcomes_occur_as_often_as_the_terms_say(threshold):
    terms = TERMS if threshold else {"sharpness": (0, 0.5, 2, -1), "side": (0.3, 0.5)}
    votes, truth = simulate(
        n_users=100, n_items=6, votes_per_user=(500, 500), score_sd=1.0, threshold=threshold,
        malicious={"random": 0.2, "reversed": 0.1}, **terms, random_state=1,
    )  # fmt: skip
    margin = truth.margins(votes.user, votes.left, votes.right)
    width = truth.thresholds(votes.user, votes.left, votes.right)
    random = np.array(truth.kind)[votes.user] == "random"
    np.testing.assert_allclose(margin[random], 0, atol=1e-12)
    width[random] = truth.user_thresholds()[votes.user[random]]
    left, right = logistic.cdf(margin - width), logistic.cdf(-margin - width)
    probabilities = np.stack([left, 1 - left - right, right], axis=1)
    happened = np.stack([votes.outcome == value for value in (1, 0, -1)], axis=1)
    for key in (margin, width, truth.side[votes.user], truth.sharpness[votes.user]):
        for rows in np.array_split(np.argsort(key, kind="stable"), 10):
            p = probabilities[rows]
            error = np.sqrt((p * (1 - p)).sum(axis=0).clip(0)) + 1e-6
            assert np.all(np.abs(happened[rows].sum(axis=0) - p.sum(axis=0)) <= 4 * error)


@pytest.mark.parametrize("noise", CDF)
def test_forced_choice_has_no_ties_and_no_threshold(noise):
    votes, truth = simulate(
        threshold=None, malicious={"random": 0.2, "always-left": 0.1}, noise=noise, random_state=0
    )
    assert set(votes.outcome) == {1, -1}
    always = np.array(truth.kind) == "always-left"
    assert truth.threshold == 0 and np.all(truth.user_thresholds()[~always] == 0)
    random = (np.array(truth.kind) == "random")[votes.user]
    assert abs(votes.outcome[random].mean()) < 4 / np.sqrt(random.sum())


def test_the_malicious_have_no_terms_of_their_own():
    _, truth = simulate(
        n_users=100, malicious=dict.fromkeys(MALICIOUS_KINDS, 0.2), abnormal_share=0.0, **TERMS,
        random_state=0,
    )  # fmt: skip
    kind = np.array(truth.kind)
    malicious = np.isin(kind, MALICIOUS_KINDS)
    assert np.all(truth.sharpness[malicious] == 1) and np.all(truth.sharpness[~malicious] != 1)
    assert np.all(truth.side[kind == "reversed"] == 0)
    np.testing.assert_array_equal(truth.side[kind == "random"], -truth.common_side)
    assert np.isnan(truth.side[np.isin(kind, ["always-left", "always-tie"])]).all()
    np.testing.assert_allclose(truth.user_scores()[kind == "reversed"][0], -truth.scores)


def test_habits_stay_with_their_items_when_some_get_no_vote():
    votes, truth = simulate(
        n_users=3, n_items=150, votes_per_user=(20, 20), tie_habit=0.5, random_state=4
    )
    assert truth.habits.shape == (votes.n_items,) != (150,)
    whole = simulate(n_users=3, n_items=150, votes_per_user=(2000, 2000), tie_habit=0.5,
                     random_state=4).truth.habits  # fmt: skip
    numbers = [int(item.removeprefix("item-")) - 1 for item in votes.items]
    np.testing.assert_array_equal(truth.habits, whole[numbers])


@needs_features
def test_features_add_their_effect_to_the_margin():
    votes, truth = simulate(
        n_users=200, n_items=5, votes_per_user=(200, 200), score_sd=0.5, abnormal_share=0.0,
        features={"length": 0.5, "price": (-1.0, 0.3)}, threshold=None, random_state=0,
    )  # fmt: skip
    assert votes.features.names == truth.features.names == ("length", "price")
    np.testing.assert_array_equal(truth.features.effects, [0.5, -1.0])
    assert np.all(truth.features.own[:, 0] == 0)
    assert truth.features.own[:, 1].std() == pytest.approx(0.3, rel=0.2)
    raw = (votes.features.values * votes.features.scale).T
    np.testing.assert_allclose(raw.std(axis=1), 1, rtol=0.02)
    probability = logistic.cdf(truth.margins(votes.user, votes.left, votes.right, raw))
    for values in raw:
        for rows in np.array_split(np.argsort(values), 10):
            p = probability[rows]
            excess = (votes.outcome[rows] == 1).sum() - p.sum()
            assert abs(excess) < 4 * np.sqrt((p * (1 - p)).sum())


@needs_features
def test_features_leave_pairs_and_scores_alone():
    plain, featured = (simulate(features=f, random_state=0) for f in (None, {"length": 0.5}))
    np.testing.assert_array_equal(plain.votes.left, featured.votes.left)
    np.testing.assert_array_equal(plain.truth.scores, featured.truth.scores)
    assert not np.array_equal(plain.votes.outcome, featured.votes.outcome)
