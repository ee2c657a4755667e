"""Votes, split within users."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons
from isplitlbi.data.splits import (
    fold_of_votes,
    folds_within_user,
    held_out_parts,
    in_order,
    lower_first,
    n_units,
    split_within_user,
    units,
)
from isplitlbi.errors import InvalidSetting
from votes import as_tuples, assert_same, from_rows, multiset, random_votes, rebuilt
from votes import rows as vote_rows

FIVE = random_votes(0, n_votes=5)

SHARES = st.floats(0.05, 0.95)
SEEDS = st.integers(0, 2**32 - 1)


def sizes(votes, by_outcome):
    """The number of votes of every user, or of every user and outcome."""
    keys = votes.user * 3 + (votes.outcome + 1 if by_outcome else 0)
    return np.bincount(keys, minlength=3 * votes.n_users)


@given(vote_rows, SHARES, SEEDS)
def test_a_split_gives_every_user_and_outcome_its_share_within_one_vote(rows, share, seed):
    votes = from_rows(rows, weighted=False)
    _, test = split_within_user(votes, share, seed)
    for by_outcome in (False, True):
        difference = sizes(test, by_outcome) - share * sizes(votes, by_outcome)
        assert np.abs(difference).max() < 1.0 + 1e-9


@given(vote_rows, SHARES, SEEDS, st.booleans())
def test_the_parts_of_a_split_are_disjoint_and_complete(rows, share, seed, grouped):
    votes = from_rows(rows, grouped=grouped)
    train, test = split_within_user(votes, share, seed)
    assert multiset(train) + multiset(test) == multiset(votes)
    for part in (train, test):
        assert part.users is votes.users and part.items is votes.items
        assert part.whole is votes


@given(vote_rows, SHARES, SEEDS, st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_a_split_does_not_depend_on_the_order_of_the_rows(
    rows, share, seed, weighted, grouped, random
):
    votes = from_rows(rows, weighted=weighted, grouped=grouped)
    order = list(range(len(rows)))
    random.shuffle(order)
    other = rebuilt(votes, order=order)
    for one, two in zip(
        split_within_user(votes, share, seed), split_within_user(other, share, seed), strict=True
    ):
        assert multiset(one) == multiset(two)


def test_the_same_seed_gives_the_same_split_and_another_seed_another():
    votes = random_votes(0, n_votes=200)
    splits = [split_within_user(votes, 0.3, seed) for seed in (1, 1, 2)]
    generated = split_within_user(votes, 0.3, np.random.default_rng(1))
    assert_same(splits[0][1], splits[1][1])
    assert_same(splits[0][1], generated[1])
    assert multiset(splits[0][1]) != multiset(splits[2][1])


def test_every_vote_has_the_same_chance_to_be_in_the_test_part():
    votes = Comparisons.from_arrays(["u"] * 7, ["a"] * 7, list("bcdefgh"), [1, 1, 1, 1, 0, 0, -1])
    rng = np.random.default_rng(0)
    draws = 3000
    counts = np.zeros(votes.n_items)
    for _ in range(draws):
        counts[split_within_user(votes, 0.3, rng)[1].right] += 1
    # Five standard deviations of a proportion of 0.3.
    assert np.abs(counts[1:] / draws - 0.3).max() < 5 * np.sqrt(0.21 / draws)


def test_one_generator_gives_one_split_after_another():
    votes, rng = random_votes(0, n_votes=200), np.random.default_rng(1)
    first, second = (split_within_user(votes, 0.3, rng)[1] for _ in range(2))
    assert multiset(first) != multiset(second)


@given(vote_rows, SHARES, SEEDS, st.integers(2, 6))
def test_votes_of_one_group_stay_together(rows, share, seed, n_folds):
    votes = from_rows(rows, grouped=True)
    parts = [split_within_user(votes, share, seed)]
    if n_folds <= len(votes):
        parts += folds_within_user(votes, n_folds, seed)
    for train, test in parts:
        both = {(u, g) for u, g in zip(train.user, train.group, strict=True)} & {
            (u, g) for u, g in zip(test.user, test.group, strict=True)
        }
        assert not both


def test_groups_are_split_to_within_one_group_per_user():
    user = np.repeat(np.arange(4), 60)
    group = np.tile(np.repeat(np.arange(20), 3), 4)
    votes = Comparisons.from_arrays(user, ["a"] * 240, ["b"] * 240, [1, 0, -1] * 80, group=group)
    _, test = split_within_user(votes, 0.25, 0)
    assert (test.votes_per_user == 15).all()
    for _, held_out in folds_within_user(votes, 5, 0):
        assert (held_out.votes_per_user == 12).all()


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(InvalidSetting, match=r"test_share is .* must lie between 0 and 1"):
        split_within_user(random_votes(0), share)


@given(vote_rows, st.integers(2, 7), SEEDS, st.booleans())
def test_every_vote_is_held_out_in_exactly_one_fold(rows, n_folds, seed, grouped):
    votes = from_rows(rows * 2, grouped=grouped)
    n_folds = min(n_folds, len(votes))
    folds = folds_within_user(votes, n_folds, seed)
    assert len(folds) == n_folds
    assert sum((multiset(held_out) for _, held_out in folds), Counter()) == multiset(votes)
    for train, held_out in folds:
        assert multiset(train) + multiset(held_out) == multiset(votes)
        for part in (train, held_out):
            assert part.users is votes.users and part.items is votes.items
            assert part.whole is votes


@given(vote_rows, st.integers(2, 7), SEEDS)
def test_folds_share_every_user_and_outcome_to_within_one_vote(rows, n_folds, seed):
    votes = from_rows(rows * 2, weighted=False)
    folds = folds_within_user(votes, min(n_folds, len(votes)), seed)
    for by_outcome in (False, True):
        counts = np.array([sizes(held_out, by_outcome) for _, held_out in folds])
        assert (counts.max(axis=0) - counts.min(axis=0) <= 1).all()


@given(vote_rows, SEEDS, st.booleans(), st.randoms(use_true_random=False))
def test_folds_do_not_depend_on_the_order_of_the_rows(rows, seed, grouped, random):
    votes = from_rows(rows * 2, grouped=grouped)
    order = list(range(len(votes)))
    random.shuffle(order)
    other = rebuilt(votes, order=order)
    for one, two in zip(
        folds_within_user(votes, 2, seed), folds_within_user(other, 2, seed), strict=True
    ):
        assert multiset(one[1]) == multiset(two[1])


@pytest.mark.parametrize("n_folds", [-1, 0, 1, 2.5, 6])
def test_a_number_of_folds_that_cannot_be_dealt_is_refused(n_folds):
    with pytest.raises(
        InvalidSetting, match=rf"n_folds is {n_folds}[;,] .*(2 or more|only 5 votes)"
    ):
        folds_within_user(FIVE, n_folds)


@pytest.mark.parametrize("seed", range(5))
def test_a_split_of_weighted_votes_does_not_depend_on_the_order_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    votes = random_votes(rng, n_users=1, n_items=2, n_votes=200, weighted=True)
    other = rebuilt(votes, order=rng.permutation(200))
    for one, two in zip(
        split_within_user(votes, 0.3, seed), split_within_user(other, 0.3, seed), strict=True
    ):
        assert multiset(one) == multiset(two)


# --- units and order -----------------------------------------------------------------------


@given(vote_rows, st.booleans())
def test_a_unit_is_a_vote_or_a_group_of_one_user(rows, grouped):
    votes = from_rows(rows, grouped=grouped)
    found = units(votes)
    kinds = set(zip(votes.user, votes.group, strict=True)) if grouped else range(len(votes))
    assert n_units(votes) == len(set(found.tolist())) == len(kinds)
    for unit in set(found.tolist()):
        mine = found == unit
        assert len(set(votes.user[mine])) == 1
        if grouped:
            assert len(set(votes.group[mine])) == 1
    if grouped:  # numbered user after user
        assert (np.diff(votes.user[np.argsort(found)]) >= 0).all()


def test_no_votes_are_no_units():
    for votes in (random_votes(0), random_votes(0, group_size=3)):
        assert n_units(votes.subset([])) == 0


@given(vote_rows, st.booleans(), st.randoms(use_true_random=False))
def test_votes_in_order_are_the_same_whatever_their_order_was(rows, weighted, random):
    votes = from_rows(rows, weighted=weighted)
    order = list(range(len(votes)))
    random.shuffle(order)
    assert as_tuples(in_order(votes)) == as_tuples(in_order(rebuilt(votes, order=order)))
    assert multiset(in_order(votes)) == multiset(votes)


# --- parts that are held out ---------------------------------------------------------------


def assert_same_parts(some, others):
    """Assert that there are the same votes in the same parts."""
    assert len(some) == len(others)
    for one, other in zip(some, others, strict=True):
        assert [multiset(part) for part in one] == [multiset(part) for part in other]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_given_folds_are_the_parts_that_are_held_out(weighted):
    votes = random_votes(3, n_votes=120, weighted=weighted)
    fold = np.random.default_rng(1).choice([3, 5, 9, 11], size=votes.n_votes)
    parts = held_out_parts(votes, 2, fold=fold)
    expected = [(votes.subset(fold != k), votes.subset(fold == k)) for k in (3, 5, 9, 11)]
    assert_same_parts(parts, expected)
    assert sum((multiset(held_out) for _, held_out in parts), Counter()) == multiset(votes)


def test_given_folds_may_have_names_and_go_with_their_votes():
    votes, rng = random_votes(3, n_votes=120), np.random.default_rng(2)
    fold = rng.choice(["a", "b", "c"], size=votes.n_votes)
    order = rng.permutation(votes.n_votes)
    one = held_out_parts(votes, 5, fold=fold)
    other = held_out_parts(votes.subset(order), 5, fold=fold[order])
    assert len(one) == 3
    assert_same_parts(one, other)
    for here, there in zip(one, other, strict=True):
        for part, same in zip(here, there, strict=True):
            assert as_tuples(part) == as_tuples(same)  # and in one order
    wrong = held_out_parts(votes.subset(order), 5, fold=fold)
    assert multiset(wrong[0][1]) != multiset(one[0][1])


def test_folds_that_are_drawn_do_not_depend_on_the_order_of_the_votes():
    votes = random_votes(3, n_users=6, n_votes=200)
    order = np.random.default_rng(2).permutation(votes.n_votes)
    one, other = (held_out_parts(some, 4, 3) for some in (votes, votes.subset(order)))
    assert_same_parts(one, other)
    held_out_sizes = [np.bincount(held_out.user, minlength=6) for _, held_out in one]
    assert np.ptp(held_out_sizes, axis=0).max() <= 1
    again = held_out_parts(votes, 4, 4)
    assert multiset(again[0][1]) != multiset(one[0][1])


@pytest.mark.parametrize("fold", [np.zeros(4), np.zeros((5, 1)), 3], ids=["few", "table", "one"])
def test_folds_that_do_not_fit_the_votes_are_refused(fold):
    with pytest.raises(InvalidSetting, match="do not fit 5 votes"):
        held_out_parts(FIVE, 5, fold=fold)


def test_one_fold_for_all_votes_leaves_nothing_to_learn_from():
    with pytest.raises(InvalidSetting, match="two of them at least"):
        held_out_parts(FIVE, 5, fold=np.zeros(5))


def test_one_unit_cannot_be_held_out():
    votes = Comparisons.from_arrays(["u"] * 2, ["a"] * 2, ["b"] * 2, [1, 0], group=["g", "g"])
    assert held_out_parts(votes, 2, 0) == []


def test_fewer_votes_than_folds_are_held_out_only_where_somebody_asked_for_so_many_folds():
    assert held_out_parts(FIVE.subset([0, 1, 2]), 5, 0) == []
    with pytest.raises(InvalidSetting, match="n_folds is 4, but there are only 3 votes to hold"):
        held_out_parts(FIVE.subset([0, 1, 2]), 4, 0)


def test_with_a_runtime_folds_are_those_of_all_machines_and_may_be_empty_here():
    here, elsewhere = FIVE, np.array([3.0] * 40)

    def total(sizes):
        return [sizes + elsewhere]

    everybody = SimpleNamespace(n_votes=125, total=total)
    parts = held_out_parts(here, 40, np.random.default_rng(7), runtime=everybody)
    dealt = fold_of_votes(in_order(here), 40, np.random.default_rng(7))
    assert len(parts) == 40
    assert [len(held_out) for _, held_out in parts] == np.bincount(dealt, minlength=40).tolist()


def test_a_fold_that_holds_out_nothing_on_any_machine_is_left_out():
    everybody = SimpleNamespace(n_votes=5, total=lambda sizes: [sizes])
    parts = held_out_parts(FIVE, 40, np.random.default_rng(7), runtime=everybody)
    assert all(len(held_out) for _, held_out in parts) and len(parts) <= 5


# --- real votes ------------------------------------------------------------------------------


def test_real_rankings_stay_together(shared_data):
    votes = Comparisons.read(shared_data / "wmt16_cze-eng.csv", group="ranking")
    train, test = split_within_user(votes, 0.2, 0)
    assert not set(zip(train.user, train.group, strict=True)) & set(
        zip(test.user, test.group, strict=True)
    )
    assert len(test) / len(votes) == pytest.approx(0.2, abs=0.01)


@given(vote_rows, SEEDS)
def test_votes_with_the_lower_item_first_do_not_depend_on_sides(rows, seed):
    votes = from_rows(rows)
    mirrored = rebuilt(votes, swapped=np.random.default_rng(seed).random(len(votes)) < 0.5)
    here, there = lower_first(votes), lower_first(mirrored)
    assert as_tuples(here) == as_tuples(there)
    assert np.all(here.left < here.right)
    either = zip(as_tuples(votes), as_tuples(rebuilt(votes, swapped=True)), strict=True)
    assert all(vote in both for vote, both in zip(as_tuples(here), either, strict=True))


# --- what folds depend on ------------------------------------------------------------------


@given(vote_rows, SEEDS, st.data())
def test_counted_rows_are_dealt_as_the_same_rows_written_out_in_any_order(rows, seed, data):
    counts = [data.draw(st.integers(2, 4)) for _ in rows]
    user, left, step, outcome, *_ = zip(*rows, strict=True)
    right = [(i + k) % 5 for i, k in zip(left, step, strict=True)]
    counted = Comparisons.from_arrays(user, left, right, outcome, count=counts)
    written_out = [row for row, n in zip(rows, counts, strict=True) for _ in range(n)]
    shuffled = data.draw(st.permutations(written_out))
    for one, other in zip(
        held_out_parts(counted, 2, np.random.default_rng(seed)),
        held_out_parts(from_rows(shuffled, weighted=False), 2, np.random.default_rng(seed)),
        strict=True,
    ):
        assert_same(one[0], other[0])
        assert_same(one[1], other[1])


@pytest.mark.parametrize("n_wins", [2, 3, 7])
def test_whoever_votes_on_one_pair_has_wins_and_losses_in_every_training_part(n_wins):
    said = [1] * n_wins + [-1] * 4
    votes = Comparisons.from_arrays(["u"] * len(said), ["a"] * len(said), ["b"] * len(said), said)
    for seed in range(50):
        for train, held_out in folds_within_user(votes, 5, seed):
            assert {1, -1} <= set(train.outcome.tolist())
            assert np.sum(held_out.outcome == 1) <= -(-n_wins // 5)


def test_a_vote_is_as_likely_to_be_in_any_fold_whatever_its_outcome():
    outcomes = [1, 1, 1, -1, -1, 0, 1]
    votes = Comparisons.from_arrays(["u"] * 7, list("abcabca"), list("bcabcab"), outcomes)
    times = np.zeros((7, 5))
    for seed in range(2000):
        fold = fold_of_votes(votes, 5, np.random.default_rng(seed))
        times[np.arange(7), fold] += 1
    assert np.abs(times / 2000 - 0.2).max() < 0.04  # four standard errors
