"""People and what their votes tell, beside the whole Gaussian algebra that is done at once here."""

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi.planning.open_questions import OpenQuestions
from isplitlbi.planning.people import NOTHING, SHARPNESS, TASTES, Answers, Person

THRESHOLD = 0.5
N_ITEMS = 5
PAIRS = np.triu_indices(N_ITEMS, 1)
SEEDS = st.integers(0, 10_000)
SLOPES = st.sampled_from([1.0, 0.3, 0.0, -1.0])


def information(margin, first, second):
    """Return what one logistic vote tells of its margin, as Fisher defined it."""
    wins, loses = (scipy.special.expit(sign * margin - THRESHOLD) for sign in (1.0, -1.0))
    ties = np.expm1(2.0 * THRESHOLD) * wins * loses
    return wins * (1.0 - wins) ** 2 + ties * (wins - loses) ** 2 + loses * (1.0 - loses) ** 2


def some_questions(rng, n_items=N_ITEMS):
    root = np.eye(n_items) + 0.4 * rng.normal(size=(n_items, n_items))
    return OpenQuestions(rng.normal(size=n_items), 0.5 * root @ root.T)


def somebody(rng, compared, slope=1.0, taste_variance=0.4, side_variance=0.0, side=0.0):
    """Draw a person who has compared some items and has told something of themselves."""
    position = np.full(N_ITEMS, NOTHING)
    position[compared] = TASTES + np.arange(len(compared))
    n_own = TASTES + len(compared)
    root = rng.normal(size=(n_own, n_own))
    covariance, follows = 0.2 * root @ root.T, 0.3 * rng.normal(size=(n_own, len(compared)))
    covariance[NOTHING] = covariance[:, NOTHING] = follows[NOTHING] = 0.0
    answers = Answers(rng.normal(size=N_ITEMS), side, information)
    return Person(
        answers, slope, position, covariance, follows, rng.normal(size=N_ITEMS), taste_variance,
        side_variance,
    )  # fmt: skip


class Whole:
    """Consensus, tastes for all items, sharpness and side of one person: all their covariances.

    Tastes and sharpness are what they follow of the consensus, and errors of their own.
    """

    def __init__(self, person, covariance):
        n = len(covariance)
        self.n, self.person = n, person
        self.sharpness, self.side = 2 * n, 2 * n + 1
        own = np.zeros((n + 2, n + 2))  # tastes, sharpness, side: given the consensus
        follow = np.zeros((n + 2, n))
        at = np.append(person.compared, n)
        rows = np.append(person.position[person.compared], SHARPNESS)
        own[np.ix_(at, at)] = person.covariance[np.ix_(rows, rows)]
        new = np.setdiff1d(np.arange(n), person.compared)
        own[new, new] = person.taste_variance
        own[n + 1, n + 1] = person.side_variance
        follow[np.ix_(at, person.compared)] = person.follows[rows]
        moved = np.vstack([np.eye(n), person.slope * follow])
        self.covariance = moved @ covariance @ moved.T
        self.covariance[n:, n:] += own

    def row(self, first, second):
        """Return how the margin of a vote moves with all of it."""
        found, person = np.zeros(2 * self.n + 2), self.person
        found[first], found[second] = person.slope, -person.slope
        found[self.n + first], found[self.n + second] = 1.0, -1.0
        found[self.sharpness] = person.reference[first] - person.reference[second]
        found[self.side] = 1.0
        return found

    def after(self, first, second, noise):
        """Return the covariance of all of it after a vote."""
        row = self.row(first, second)
        along = self.covariance @ row
        return self.covariance - np.outer(along, along) / (row @ along + noise)

    def noise(self, first, second):
        """Return the noise of a vote: it tells less where the margin may be far from zero."""
        row, pair = self.row(first, second), (np.array([first]), np.array([second]))
        variance = row @ self.covariance @ row
        return 1.0 / self.person.answers.told_by_one(*pair, np.array([variance]))[0]


def weighted_errors(questions, covariance):
    """Return the errors of all differences, each times what its question is worth."""
    return float(np.sum(questions.open * covariance))


# --- what a vote would tell ----------------------------------------------------------------


@given(SEEDS, SLOPES, st.integers(0, N_ITEMS), st.sampled_from([0.0, 0.3]))
def test_a_gain_is_what_the_whole_algebra_takes_from_the_errors(seed, slope, n_compared, side):
    rng = np.random.default_rng(seed)
    questions = some_questions(rng)
    compared = rng.permutation(N_ITEMS)[:n_compared]
    person = somebody(rng, compared, slope, side_variance=side, side=side)
    whole = Whole(person, questions.covariance)
    found = person.gains(questions, *PAIRS)
    for gain, first, second in zip(found, *PAIRS, strict=True):
        after = whole.after(first, second, whole.noise(first, second))[:N_ITEMS, :N_ITEMS]
        before = weighted_errors(questions, questions.covariance)
        assert gain == pytest.approx(before - weighted_errors(questions, after), abs=1e-10)


@given(SEEDS, st.integers(0, N_ITEMS))
def test_somebody_who_votes_whatever_the_items_are_tells_nothing(seed, n_compared):
    rng = np.random.default_rng(seed)
    person = somebody(rng, rng.permutation(N_ITEMS)[:n_compared], slope=0.0)
    questions = some_questions(rng)
    before = questions.covariance.copy()
    assert np.all(person.gains(questions, *PAIRS) == 0.0)
    person.give(questions, 0, 1)
    assert_allclose(questions.covariance, before)


@given(SEEDS)
def test_who_turns_the_consensus_upside_down_tells_as_much_as_who_follows_it(seed):
    rng = np.random.default_rng(seed)
    questions, compared = some_questions(rng), np.array([3, 0, 1])
    state = rng.bit_generator.state
    found = []
    for slope in (1.0, -1.0):
        rng.bit_generator.state = state
        found.append(somebody(rng, compared, slope).gains(questions, *PAIRS))
    assert_allclose(found[0], found[1])


@given(SEEDS, SLOPES)
def test_the_order_of_two_items_does_not_matter(seed, slope):
    rng = np.random.default_rng(seed)
    questions = some_questions(rng)
    person = somebody(rng, np.array([2, 4, 0]), slope, side=0.4)
    assert_allclose(person.gains(questions, *PAIRS), person.gains(questions, *PAIRS[::-1]))


def test_an_uncertain_side_takes_from_every_vote():
    rng = np.random.default_rng(0)
    questions = some_questions(rng)
    answers = Answers(questions.estimate, 0.0, information)
    known, unknown = (
        Person.without_own(answers, variance).gains(questions, *PAIRS) for variance in (0.0, 2.0)
    )
    assert np.all(unknown < known)


def test_a_vote_on_an_even_match_tells_most_and_a_side_makes_even_matches_rarer():
    answers = Answers(np.array([0.0, 0.0, 3.0]), 0.0, information)
    even, uneven = answers.told_by_one(np.array([0, 0]), np.array([1, 2]), np.zeros(2))
    assert even > 2.0 * uneven
    leaning = Answers(answers.scores, 2.0, information)
    assert leaning.told_by_one(np.array([0]), np.array([1]), np.zeros(1)) < even


@pytest.mark.parametrize("margin", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("variance", [0.0, 0.3, 1.0])
def test_what_a_vote_tells_is_the_mean_over_what_the_margin_may_be(margin, variance):
    answers, pair = (
        Answers(np.array([margin, 0.0]), 0.0, information),
        (np.array([0]), np.array([1])),
    )
    draws = margin + np.sqrt(variance) * scipy.special.ndtri((np.arange(20_000) + 0.5) / 20_000)
    found = answers.told_by_one(*pair, np.array([variance]))[0]
    assert found == pytest.approx(information(draws, *pair).mean(), rel=0.01)


# --- taking in a vote ----------------------------------------------------------------------


@given(SEEDS, SLOPES, st.integers(0, N_ITEMS), st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_votes_are_taken_in_as_the_whole_algebra_does(seed, slope, n_compared, asked):
    rng = np.random.default_rng(seed)
    questions = some_questions(rng)
    person = somebody(rng, rng.permutation(N_ITEMS)[:n_compared], slope)
    whole = Whole(person, questions.covariance)
    for number in asked:
        first, second = int(PAIRS[0][number]), int(PAIRS[1][number])
        noise = whole.noise(first, second)
        whole.covariance = whole.after(first, second, noise)
        person.give(questions, first, second)
        # What the person is, given the consensus, and what the consensus is: the same together.
        assert_allclose(Whole(person, questions.covariance).covariance, whole.covariance, atol=1e-9)
        assert_allclose(questions.covariance, whole.covariance[:N_ITEMS, :N_ITEMS], atol=1e-9)


@given(SEEDS, st.sampled_from([1.0, 0.3, -1.0]))
def test_what_a_person_follows_is_found_from_the_whole_algebra(seed, slope):
    rng = np.random.default_rng(seed)
    questions = some_questions(rng)
    person = somebody(rng, np.array([4, 1, 2]), slope)
    whole = Whole(person, questions.covariance)
    after = whole.after(1, 3, whole.noise(1, 3))  # nobody has asked about the last before
    person.give(questions, 1, 3)
    assert_array_equal(person.compared, [4, 1, 2, 3])
    assert_array_equal(person.position[[4, 1, 2, 3]], TASTES + np.arange(4))
    assert person.position[0] == NOTHING
    own = np.append(2 * N_ITEMS, N_ITEMS + person.compared)  # sharpness, then tastes
    among, across = after[:N_ITEMS, :N_ITEMS], after[np.ix_(own, np.arange(N_ITEMS))]
    moves = across @ np.linalg.inv(among)
    assert_allclose(person.follows[SHARPNESS:], moves[:, person.compared] / slope, atol=1e-7)
    assert_allclose(moves[:, 0], 0.0, atol=1e-7)
    given_consensus = after[np.ix_(own, own)] - moves @ across.T
    assert_allclose(person.covariance[SHARPNESS:, SHARPNESS:], given_consensus, atol=1e-9)
    assert np.all(person.covariance[NOTHING] == 0.0) and np.all(person.follows[NOTHING] == 0.0)


def test_a_side_that_is_not_known_counts_as_noise_of_every_vote():
    # The side is the same in every vote, but so far nobody learns it from these votes.
    rng = np.random.default_rng(3)
    questions = some_questions(rng)
    person = somebody(rng, np.array([0, 1]), side_variance=0.7)
    whole = Whole(person, questions.covariance)
    after = whole.after(0, 1, whole.noise(0, 1))
    person.give(questions, 0, 1)
    again = Whole(person, questions.covariance)
    not_side = np.arange(2 * N_ITEMS + 1)
    assert_allclose(
        again.covariance[np.ix_(not_side, not_side)], after[np.ix_(not_side, not_side)], atol=1e-12
    )
    assert person.side_variance == 0.7


def test_another_person_is_left_as_they_were():
    rng = np.random.default_rng(0)
    questions, one, other = (
        some_questions(rng),
        *(somebody(rng, np.array([0, 1])) for _ in range(2)),
    )
    kept = [each.copy() for each in (other.covariance, other.follows, other.position)]
    one.give(questions, 0, 2)
    for before, now in zip(kept, (other.covariance, other.follows, other.position), strict=True):
        assert_array_equal(before, now)


@given(SEEDS, st.floats(0.1, 3.0))
def test_the_same_person_tells_less_about_the_same_pair_than_another(seed, taste_variance):
    rng = np.random.default_rng(seed)
    questions = some_questions(rng)
    answers = Answers(questions.estimate, 0.0, information)
    asked, other = (Person.without_own(answers, taste_variance=taste_variance) for _ in range(2))
    pair = np.array([0]), np.array([1])
    first = asked.gains(questions, *pair)[0]
    asked.give(questions, 0, 1)
    again, of_other = asked.gains(questions, *pair)[0], other.gains(questions, *pair)[0]
    assert again < of_other < first


def test_without_a_taste_of_their_own_it_does_not_matter_who_is_asked():
    questions = some_questions(np.random.default_rng(0))
    one, other = (Person.without_own(Answers(np.zeros(5), 0.0, information)) for _ in range(2))
    one.give(questions, 0, 1)
    assert_allclose(one.gains(questions, *PAIRS), other.gains(questions, *PAIRS))
    assert len(one.compared) == 0
