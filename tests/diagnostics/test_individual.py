"""Whether individual rankings help: the experiment and its verdicts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from diagnosed import columns, found, healthy
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.diagnostics import facts, individual
from isplitlbi.diagnostics.check import check
from isplitlbi.evaluation.simulate import few_votes_study, malicious_study, paper_study, simulate
from isplitlbi.model.temperature import Powers
from votes import random_votes, rebuilt


def verdict(votes):
    return found(votes, "individual-rankings").details["verdict"]


def test_individual_rankings_help_where_tastes_differ():
    finding = found(paper_study(0).votes, "individual-rankings")
    assert finding.details["verdict"] == "help"
    assert finding.details["own_rankings_log_loss"] < finding.details["consensus_log_loss"]
    assert finding.details["own_rankings_accuracy"] > finding.details["consensus_accuracy"]
    own, alone = (
        f"{100 * finding.details[name]:.0f}"
        for name in ("own_rankings_accuracy", "consensus_accuracy")
    )
    told = f"they predict {own} of 100 held-out votes, one ranking for all predicts {alone}."
    assert finding.sentence.startswith(f"Individual rankings help: {told}")


@pytest.mark.parametrize("seed", range(3))
def test_individual_rankings_do_not_help_where_people_agree(seed):
    votes = healthy(seed, n_users=60, votes_per_user=(100, 150), n_items=10)
    assert verdict(votes) == "no-help"


@pytest.mark.parametrize("seed", range(6))
def test_ties_that_differ_by_chance_are_no_reason_for_thresholds(seed):
    votes = healthy(seed, n_users=60, votes_per_user=(8, 60), n_items=8)
    details = found(votes, "individual-rankings").details
    assert details["verdict"] in ("no-help", "unclear")
    assert details["own_thresholds_log_loss"] > details["consensus_log_loss"] - 1e-3


def test_people_who_differ_in_ties_only_need_thresholds_of_their_own():
    one = columns(healthy(0, threshold=0.1, votes_per_user=(80, 120)))
    other = columns(healthy(0, threshold=2.0, votes_per_user=(80, 120)))
    other[0] = [f"other {user}" for user in other[0]]
    votes = Comparisons.from_arrays(*(a + b for a, b in zip(one, other, strict=True)))
    assert verdict(votes) == "thresholds"


def test_a_few_votes_are_too_few_to_tell():
    assert verdict(random_votes(0, n_votes=60)) == "unclear"
    one_of_ten = simulate(n_users=10, votes_per_user=(40, 60), random_state=3).votes
    finding = found(one_of_ten, "individual-rankings")
    assert finding.details["verdict"] == "unclear"
    assert finding.sentence.startswith("There are too few users or votes to tell")
    low, high = finding.details["gain_low"], finding.details["gain_high"]
    assert f"(95 % interval {low:.3f} to {high:.3f})." in finding.sentence


def test_users_are_the_independent_units_of_the_interval():
    before, after, weight = np.array([[3.0, 5.0, 4.0], [2.0, 4.5, 4.0], [2.0, 5.0, 5.0]])
    rest = (0.0, 0.0), 1.0, Powers(*np.ones((2, 5, 1)))
    once = individual.Measurement(before, None, after, weight, *rest).gain(before, after)
    gains = before - after
    mean = gains.sum() / weight.sum()
    error = np.sqrt(np.sum((gains - mean * weight) ** 2) * 3 / 2) / weight.sum()
    assert once[:2] == pytest.approx((mean, error))
    freedom = weight.sum() ** 2 / np.sum(weight**2) - 1.0
    assert once.high - mean == pytest.approx(student.ppf(0.975, freedom) * error)
    # Every vote held out twice tells nothing new.
    twice = individual.Measurement(2 * before, None, 2 * after, 2 * weight, *rest)
    assert twice.gain(2 * before, 2 * after) == pytest.approx(once)


def test_large_studies_are_judged_on_a_part_of_their_users(monkeypatch):
    votes = malicious_study("reversed", 0).votes
    whole = found(votes, "individual-rankings").details
    monkeypatch.setattr(individual, "MOST_MEASURED", 4000)
    part = found(votes, "individual-rankings").details
    assert part["verdict"] == whole["verdict"]
    assert part != whole
    monkeypatch.setattr(individual, "MOST_MEASURED", 1)  # two users, however many votes they have
    assert found(votes, "individual-rankings")


def test_small_studies_are_measured_without_compiling_to_the_same_verdict(monkeypatch):
    votes = few_votes_study(0).votes
    plain = individual.verdict_on(votes)
    monkeypatch.setattr(facts, "FEWEST_COMPILED", 0)
    compiled = individual.verdict_on(votes)
    assert type(plain) is type(compiled)
    assert plain.gain == pytest.approx(compiled.gain, abs=1e-6)


def test_forced_choices_are_judged_without_thresholds():
    alike = healthy(1, n_users=60, votes_per_user=(100, 150), n_items=10, threshold=None)
    details = found(alike, "individual-rankings").details
    assert details["verdict"] == "no-help"
    assert details["own_thresholds_log_loss"] is None
    differing = healthy(1, n_users=60, votes_per_user=(100, 150), threshold=None, taste_sd=1.5)
    details = found(differing, "individual-rankings").details
    assert details["verdict"] == "help"
    assert details["own_rankings_log_loss"] < details["consensus_log_loss"] < np.log(2.0)


def test_features_are_no_reason_for_rankings_of_ones_own():
    votes = healthy(
        2, n_users=40, votes_per_user=(100, 150), n_items=8, features={"length": 1.0}
    )  # fmt: skip
    details = found(votes, "individual-rankings").details
    assert details["verdict"] == "no-help"
    assert details["consensus_log_loss"] < 0.95 * individual_loss_without_features(votes)


def individual_loss_without_features(votes):
    plain = replace(votes, features=None)
    return found(plain, "individual-rankings").details["consensus_log_loss"]


def test_large_studies_keep_their_features(monkeypatch):
    votes = healthy(0, n_users=40, votes_per_user=(60, 60), features={"length": 1.0})
    monkeypatch.setattr(individual, "MOST_MEASURED", 1200)
    assert found(votes, "individual-rankings").details["consensus_log_loss"] < 1.0


def test_winners_that_come_first_are_no_side_that_all_like():
    votes = healthy(votes_per_user=(60, 60), threshold=None)
    lost = votes.outcome < 0
    left, right = np.where(lost, [votes.right, votes.left], [votes.left, votes.right])
    users, items = votes.users[votes.user], votes.items
    turned = Comparisons.from_arrays(users, items[left], items[right], np.abs(votes.outcome))
    assert found(turned, "individual-rankings").details["consensus_log_loss"] > 0.3


def test_the_measurement_does_not_depend_on_the_order_of_rows_either():
    votes = few_votes_study(0).votes
    diagnosis = check(votes).as_dict()
    order = np.random.default_rng(1).permutation(len(votes))
    assert check(rebuilt(votes, order)).as_dict() == diagnosis
    assert check(votes).as_dict() == diagnosis


@pytest.mark.parametrize(
    "name, expected",
    [
        ("age", "help"),
        ("college", "thresholds"),
        ("llmfao", "help"),
        ("simulation", "help"),
        ("wmt16_cze-eng", "thresholds"),
    ],
)
def test_real_votes_are_usable_and_judged(shared_data, name, expected):
    file = shared_data / f"{name}.csv"
    if not file.is_file():
        pytest.skip(f"no {file.name} among the real votes")
    votes = Comparisons.read(file)
    diagnosis = check(votes)
    assert not diagnosis.is_serious
    (finding,) = (each for each in diagnosis.findings if each.code == individual.CODE)
    assert finding.details["verdict"] == expected


# --- how sure predictions are -------------------------------------------------------------------


def test_predictions_that_are_about_as_sure_as_they_should_be_are_no_finding():
    codes = [finding.code for finding in check(paper_study(0).votes).findings]
    assert "temperature" not in codes
    assert "worse-than-one-ranking" not in codes


@pytest.mark.parametrize(("factor", "said"), [(3.0, "too sure"), (0.3, "not sure enough")])
def test_a_temperature_far_from_one_is_a_warning(monkeypatch, factor, said):
    whole = individual.log_probabilities

    def too_sure(*arguments, **options):
        log = factor * whole(*arguments, **options)
        return log - np.log(np.exp(log).sum(axis=-1, keepdims=True))

    monkeypatch.setattr(individual, "log_probabilities", too_sure)
    (finding,) = [
        each for each in check(paper_study(0).votes).findings if each.code == "temperature"
    ]
    assert finding.severity.name == "WARNING"
    assert finding.sentence.startswith(f"The model is {said} of itself")
    assert finding.temperature == pytest.approx(factor, rel=0.15)
    assert set(finding.details) == {"temperature", "standard_error"}


def test_own_rankings_that_one_ranking_beats_are_a_warning(monkeypatch):
    """Where tastes are taken to be far larger than they are."""
    monkeypatch.setattr(individual, "TASTES", (200.0,))
    finding = next(
        each for each in check(healthy(n_users=40)).findings
        if each.code == "worse-than-one-ranking"
    )  # fmt: skip
    assert finding.own_rankings_log_loss > finding.consensus_log_loss
    assert finding.sentence.startswith("One ranking for all predicts held-out votes better")
