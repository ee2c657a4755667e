"""What the order of votes tells, beside the same vote after vote."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowds import SCORES, THRESHOLD, consensus_in, consensus_of, gather, vote
from isplitlbi.abnormal.expectation import Inputs, share_of_group
from isplitlbi.abnormal.sequence import EARLIEST, explain_by_order, typical_duration
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.local import Local
from votes import rebuilt

LINK = Logistic()


def inputs_of(votes, consensus=None):
    start = consensus or consensus_of(SCORES, THRESHOLD)
    return Inputs.of(votes, LINK, start, delta=1e-3, seed=0, runtime=Local(votes))


def tiring(rng, n_votes):
    left, right, outcome = vote(rng, n_votes)
    at_random = rng.integers(-1, 2, size=n_votes)
    return left, right, np.where(np.arange(n_votes) < n_votes // 2, outcome, at_random)


@pytest.fixture(scope="module")
def voters():
    rng = np.random.default_rng(3)
    return {
        "alternating": (*vote(rng, 40)[:2], np.resize([1, -1], 40)),
        "blocks": (*vote(rng, 40)[:2], np.repeat([1, 0, -1, 0], 10)),
        "one": vote(rng, 1),
        "ordinary": vote(rng, 40),
        "random": (*vote(rng, 40)[:2], rng.integers(-1, 2, size=40)),
        "seven": vote(rng, 7),
        "tires": tiring(rng, 200),
    }


@pytest.fixture(scope="module")
def votes(voters):
    return gather(voters)


def asked(votes):
    return np.ones(votes.n_users, dtype=bool)


def one_by_one(answers, n_answers=3):
    """Return how likely answers are, each foretold by the shares of those before."""
    given, log = np.zeros(n_answers), 0.0
    for answer in answers:
        log += np.log((given[answer] + 1) / (given.sum() + n_answers))
        given[answer] += 1
    return log


@pytest.mark.parametrize("has_ties", [True, False])
def test_a_pattern_is_foretold_by_the_answer_before(voters, has_ties):
    if has_ties:
        votes, consensus = gather(voters), None
    else:
        voters = {user: (*pair, np.where(said, said, 1)) for user, (*pair, said) in voters.items()}
        votes = gather(voters)
        consensus = consensus_in(votes)
    found = explain_by_order(inputs_of(votes, consensus), asked(votes))
    n_answers = 3 if has_ties else 2
    for user, name in enumerate(votes.users):
        answers = 1 - voters[name][2]
        answers = answers if has_ties else answers // 2
        likely = one_by_one(answers[:1], n_answers)
        for before in range(n_answers):
            likely += one_by_one(answers[1:][answers[:-1] == before], n_answers)
        assert found.pattern[user] == pytest.approx(likely), name


def test_tiring_is_the_consensus_up_to_any_vote_in_the_middle_and_answers_then(voters, votes):
    found = explain_by_order(inputs_of(votes), asked(votes))
    for user, name in enumerate(votes.users):
        left, right, outcome = voters[name]
        said = LINK.log_probabilities(SCORES[left] - SCORES[right], THRESHOLD)
        likely, n_votes = said[np.arange(len(said)), 1 - outcome], len(outcome)
        changes = [
            likely[: last + 1].sum() + one_by_one(1 - outcome[last + 1 :])
            for last in range(ceil(EARLIEST * n_votes), int((1 - EARLIEST) * n_votes))
        ]
        expected = np.logaddexp.reduce(changes) - np.log(len(changes)) if changes else -np.inf
        assert found.tiring[user] == pytest.approx(expected), name


def test_patterns_and_tiring_are_told_from_what_else_votes_may_be(votes):
    inputs = inputs_of(votes)
    found = explain_by_order(inputs, asked(votes))
    usual = inputs.answers.log_likelihood(inputs.expectation().log_probability)
    answers = np.array([one_by_one(1 - votes.outcome[votes.user == k]) for k in range(len(usual))])
    place = {user: number for number, user in enumerate(votes.users)}
    for user in ("alternating", "blocks"):
        assert found.pattern[place[user]] > answers[place[user]] + 5.0
        assert found.pattern[place[user]] > usual[place[user]] + 5.0
    assert found.pattern[place["random"]] < answers[place["random"]]
    assert found.tiring[place["tires"]] > max(usual[place["tires"]], answers[place["tires"]]) + 5.0
    assert found.tiring[place["ordinary"]] < usual[place["ordinary"]]


def test_the_order_of_rows_does_not_matter_but_that_of_times_does(votes):
    found = explain_by_order(inputs_of(votes), asked(votes))
    rng = np.random.default_rng(0)
    again = rebuilt(votes, rng.permutation(len(votes)))
    for here, there in zip(explain_by_order(inputs_of(again), asked(votes)), found, strict=True):
        assert_array_equal(here, there)
    other = explain_by_order(inputs_of(replace(votes, time=rng.random(len(votes)))), asked(votes))
    place = votes.users.tolist().index("alternating")
    assert other.pattern[place] < found.pattern[place] - 5.0


def test_votes_of_the_same_time_have_no_order_of_rows(votes):
    same = replace(votes, time=np.zeros(len(votes)))
    again = rebuilt(same, np.random.default_rng(1).permutation(len(votes)))
    one, other = (explain_by_order(inputs_of(each), asked(votes)) for each in (same, again))
    assert_array_equal(one, other)


def test_only_those_asked_about_are_looked_at(votes):
    some = np.arange(votes.n_users) % 2 == 0
    whole = explain_by_order(inputs_of(votes), asked(votes))
    found = explain_by_order(inputs_of(votes), some)
    for here, there in zip(found, whole, strict=True):
        assert_array_equal(here, np.where(some, there, -np.inf))


def test_the_unit_of_weights_does_not_matter(votes):
    found = explain_by_order(inputs_of(votes), asked(votes))
    heavy = replace(votes, weight=np.full(len(votes), 50.0))
    for here, there in zip(explain_by_order(inputs_of(heavy), asked(votes)), found, strict=True):
        assert_allclose(here, there)


def test_votes_of_one_group_count_for_as_much_as_elsewhere(votes):
    grouped = replace(votes, group=np.arange(len(votes), dtype=np.int32) // 3)
    inputs = inputs_of(grouped)
    share = share_of_group(grouped)
    assert share.min() < 0.9
    weighted = replace(inputs, votes=replace(votes, weight=share), unit=1.0)
    found, expected = (explain_by_order(each, asked(votes)) for each in (inputs, weighted))
    for here, there in zip(found, expected, strict=True):
        assert_allclose(here, there)


def test_without_times_there_is_no_order(votes):
    assert explain_by_order(inputs_of(replace(votes, time=None)), asked(votes)) is None


# --- durations -------------------------------------------------------------------------------


def test_without_durations_nobody_is_fast(votes):
    inputs = inputs_of(votes)
    assert np.isnan(typical_duration(inputs)).all()
    assert inputs.among.middle(typical_duration(inputs)) == 0.0


def test_the_typical_duration_is_the_one_in_the_middle():
    votes = Comparisons.from_arrays(
        ["u", "v", "u", "w", "u", "v"], ["a"] * 6, ["b"] * 6, [1, 0, -1, 1, 0, 1],
        duration=[9.0, 4.0, 1.0, 7.0, 2.0, 4.0],
    )  # fmt: skip
    part = votes.subset(votes.user != 2)
    consensus = consensus_of([0.5, -0.5], 0.4)
    assert typical_duration(inputs_of(votes, consensus)).tolist() == [2.0, 4.0, 7.0]
    found = typical_duration(inputs_of(part, consensus))
    assert_array_equal(found, [2.0, 4.0, np.nan])
