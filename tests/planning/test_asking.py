"""A batch of votes, beside one that looks at everything again after every pick."""

from itertools import islice

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi.planning.asking import Candidate, Parts, choose
from isplitlbi.planning.open_questions import OpenQuestions
from isplitlbi.planning.people import NOTHING, TASTES, Answers, Person

N_ITEMS = 5
PAIRS = np.triu_indices(N_ITEMS, 1)
SEEDS = st.integers(0, 10_000)


def information(margin, first, second):
    """Return what one logistic vote without ties tells of its margin."""
    return scipy.special.expit(margin) * scipy.special.expit(-margin)


def somebody(rng, n_items, n_votes):
    """Draw a person who has given some votes on random pairs already."""
    n_compared = int(rng.integers(2, n_items + 1))
    compared, position = rng.permutation(n_items)[:n_compared], np.full(n_items, NOTHING)
    position[compared] = TASTES + np.arange(n_compared)
    person = Person(
        Answers(rng.normal(size=n_items), 0.0, information), 1.0, position,
        np.diag([0.0, 0.1] + [0.3] * n_compared), np.zeros((TASTES + n_compared, n_compared)),
        rng.normal(size=n_items), taste_variance=0.3,
    )  # fmt: skip
    nothing_asked = OpenQuestions(np.zeros(n_items), np.eye(n_items))
    for _ in range(n_votes):
        person.give(nothing_asked, *(int(item) for item in rng.choice(compared, 2, replace=False)))
    return person


def some_people(seed, n_items=N_ITEMS, n_people=4, room=6):
    """Draw people who may be asked about one order, or everybody about their own."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_items, n_items))
    covariance = rng.uniform(0.1, 1.0) * (np.eye(n_items) + 0.3 * root @ root.T / n_items)
    questions, pairs = (
        OpenQuestions(rng.normal(size=n_items), covariance),
        np.triu_indices(n_items, 1),
    )
    return [
        Candidate(somebody(rng, n_items, int(rng.integers(0, 10))), questions, *pairs, room)
        for _ in range(n_people)
    ]  # fmt: skip


def one_part(n_items=N_ITEMS):
    return Parts(n_items, np.arange(n_items - 1), np.arange(1, n_items))


def greedy(people, n, parts):
    """Choose as `choose` does, the slow way: all gains of everybody are found before every pick."""
    found, asked = [], [np.zeros(len(each.first), dtype=bool) for each in people]
    for _ in range(n):
        gains = [each.person.gains(each.questions, each.first, each.second) for each in people]
        for each, those, taken in zip(people, gains, asked, strict=True):
            those[taken | (each.room == 0)] = -np.inf
        connects = [parts.connected_by(each.first, each.second) for each in people]
        if any(
            np.any(which & (those > -np.inf)) for which, those in zip(connects, gains, strict=True)
        ):
            gains = [
                np.where(which, those, -np.inf)
                for which, those in zip(connects, gains, strict=True)
            ]
        best = [those.max(initial=-np.inf) for those in gains]
        number = int(np.argmax(best))
        if np.isneginf(best[number]):
            break
        row, person = int(np.argmax(gains[number])), people[number]
        first, second = int(person.first[row]), int(person.second[row])
        person.person.give(person.questions, first, second)
        parts.connect(first, second)
        asked[number][row], person.room = True, person.room - 1
        found.append((number, row, first, second, best[number]))
    return found


def batch(people, n, parts=None):
    return [tuple(each) for each in choose(people, n, parts or one_part())]


# --- the slow twin -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_a_batch_is_that_of_looking_at_everything_after_every_pick(seed):
    found, slow = batch(some_people(seed), 12), greedy(some_people(seed), 12, one_part())
    assert [each[:4] for each in found] == [each[:4] for each in slow]
    assert_allclose([each[4] for each in found], [each[4] for each in slow], rtol=1e-9)


@given(SEEDS, st.integers(1, 14))
def test_where_a_gain_has_grown_meanwhile_next_to_nothing_is_lost(seed, n):
    # Mostly gains fall, but a vote may also make another one tell more. That is not looked for.
    found, slow = batch(some_people(seed), n), greedy(some_people(seed), n, one_part())
    assert sum(each[4] for each in found) > 0.99 * sum(each[4] for each in slow)


def test_of_many_pairs_only_some_are_looked_at_again_and_the_batch_is_the_same():
    n_items = 14  # 91 pairs: more than are looked at again together
    for seed in range(3):
        found = batch(some_people(seed, n_items, 2, 10), 15, one_part(n_items))
        slow = greedy(some_people(seed, n_items, 2, 10), 15, one_part(n_items))
        assert [each[:4] for each in found] == [each[:4] for each in slow]


@given(SEEDS)
def test_everybody_may_be_asked_for_an_order_of_their_own(seed):
    def own():
        rng = np.random.default_rng(seed)
        return [
            Candidate(
                Person.without_own(Answers(scores, 0.0, information)),
                OpenQuestions(scores, rng.uniform(0.1, 1.0) * np.eye(N_ITEMS)), *PAIRS, 9,
            )
            for scores in rng.normal(size=(3, N_ITEMS))
        ]  # fmt: skip

    found, slow = batch(own(), 12), greedy(own(), 12, one_part())
    assert sum(each[4] for each in found) > 0.99 * sum(each[4] for each in slow)


@given(SEEDS)
def test_a_gain_is_what_the_vote_tells_beside_those_before_it(seed):
    found, again = batch(some_people(seed), 8), some_people(seed)
    for number, row, first, second, gain in found:
        person = again[number]
        assert (person.first[row], person.second[row]) == (first, second)
        now = person.person.gains(person.questions, np.array([first]), np.array([second]))[0]
        assert gain == pytest.approx(now)
        person.person.give(person.questions, first, second)


def test_the_same_people_give_the_same_batch():
    for seed in range(3):
        assert batch(some_people(seed), 10) == batch(some_people(seed), 10)


def test_a_batch_begins_as_a_shorter_one_does():
    assert batch(some_people(0), 12)[:5] == batch(some_people(0), 5)
    endless = choose(some_people(0), 12, one_part())
    assert [tuple(each) for each in islice(endless, 5)] == batch(some_people(0), 5)


# --- room ----------------------------------------------------------------------------------


@given(SEEDS, st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_nobody_is_asked_for_more_than_there_is_room_for(seed, rooms):
    people = some_people(seed, n_people=len(rooms))
    for person, room in zip(people, rooms, strict=True):
        person.room = room
    found = batch(people, 30)
    assert [sum(each[0] == k for each in found) for k in range(len(rooms))] == rooms
    assert all(each.n_may_be_asked == 0 for each in people)


def test_nobody_is_asked_about_a_pair_twice_and_there_are_fewer_votes_where_none_are_left():
    people = some_people(1, n_people=2, room=100)
    found = batch(people, 1_000)
    assert len(found) == len({each[:2] for each in found}) == 2 * len(PAIRS[0])
    assert batch(people, 1) == []


def test_who_has_no_pairs_is_not_asked():
    people = some_people(2, n_people=2)
    nothing = np.zeros(0, dtype=np.int64)
    people[0] = Candidate(people[0].person, people[0].questions, nothing, nothing, 5)
    assert people[0].n_may_be_asked == 0
    assert {each[0] for each in batch(people, 4)} == {1}
    assert batch(people[:1], 4) == []


# --- parts ---------------------------------------------------------------------------------


def test_parts_are_those_between_which_nobody_has_voted():
    parts = Parts(6, np.array([0, 1, 3]), np.array([1, 2, 4]))
    assert parts.n_parts == 3
    assert_array_equal(
        parts.connected_by(np.array([0, 0, 4]), np.array([2, 3, 5])), [False, True, True]
    )
    parts.connect(2, 0)
    assert parts.n_parts == 3
    parts.connect(2, 5)
    assert parts.n_parts == 2
    assert not parts.connected_by(np.array([0]), np.array([5]))[0]
    parts.connect(4, 5)
    assert parts.n_parts == 1


def test_some_items_have_the_parts_of_all():
    # Two of them are connected by votes on one that is left out.
    parts = Parts(5, np.array([0, 1, 3]), np.array([1, 2, 4]))
    some = parts.at(np.array([0, 2, 4]))
    assert (some.n_parts, parts.n_parts) == (2, 2)
    assert_array_equal(some.connected_by(np.array([0, 0]), np.array([1, 2])), [False, True])
    some.connect(0, 2)
    assert (some.n_parts, parts.n_parts) == (1, 2)


@given(SEEDS, st.integers(2, N_ITEMS))
def test_votes_that_connect_parts_come_first(seed, n_parts):
    part = np.arange(N_ITEMS) % n_parts
    voted = np.nonzero(np.triu(part[:, None] == part, 1))
    found = batch(some_people(seed), 9, Parts(N_ITEMS, *voted))
    slow = greedy(some_people(seed), 9, Parts(N_ITEMS, *voted))
    for number in range(n_parts - 1):
        _, _, first, second, _ = found[number]
        assert part[first] != part[second]
        part[part == part[second]] = part[first]
    assert len(set(part)) == 1
    assert sum(each[4] for each in found) > 0.95 * sum(each[4] for each in slow)


def test_parts_stay_apart_where_nobody_may_be_asked_to_connect_them():
    people, parts = some_people(3), Parts(N_ITEMS, np.array([0, 1, 3]), np.array([1, 2, 4]))
    within = ~parts.connected_by(*PAIRS)
    people = [
        Candidate(each.person, each.questions, PAIRS[0][within], PAIRS[1][within], 2)
        for each in people
    ]
    assert len(batch(people, 8, parts)) == 8
    assert parts.n_parts == 2
