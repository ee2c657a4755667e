import numpy as np
import pytest
from scipy.stats import chisquare, logistic, norm, uniform

from isplitlbi.errors import InvalidSetting
from isplitlbi.evaluation.simulate import (
    MALICIOUS_KINDS,
    few_votes_study,
    malicious_study,
    paper_study,
    simulate,
    small_deviations_study,
)

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
        ({"noise": "cauchy"}, "noise must be one of logistic, normal, uniform, not 'cauchy'"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_named_in_the_error(parameters, message):
    with pytest.raises(InvalidSetting, match=message):
        simulate(**parameters, random_state=0)
