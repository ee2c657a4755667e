"""How far people agree: held to the definitions, pair of answers by pair of answers."""

from collections import defaultdict
from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes, agreement, simulate
from isplitlbi.data.layout import tally
from isplitlbi.diagnostics import pairs_of_users
from isplitlbi.diagnostics.answered import INTERVAL, NOMINAL, Answers, pair_numbers
from isplitlbi.diagnostics.estimates import by_leaving_out, of_share
from isplitlbi.diagnostics.reliability import Tables, separation, split_half
from isplitlbi.errors import InvalidSetting
from votes import as_tuples, from_rows, random_votes, rebuilt, rows

DISTANCES = {"nominal": NOMINAL, "interval": INTERVAL}


def answers_of(votes):
    cells = tally(votes, by_user=True)
    return Answers.of(cells, pair_numbers(cells, votes.n_items))


# --- the slow twin: the definition, by all pairs of answers ------------------------------------


def answers_by_definition(votes, without=None):
    """Return what every user said to every pair, in both directions: {(a, b): {user: shares}}."""
    said = defaultdict(lambda: defaultdict(lambda: np.zeros(3)))
    for user, left, right, outcome, weight, _ in as_tuples(votes):
        if user != without:
            said[left, right][user][1 - outcome] += weight
            said[right, left][user][1 + outcome] += weight
    shares = {
        pair: {user: each / each.sum() for user, each in of_users.items()}
        for pair, of_users in said.items()
    }
    return {pair: each for pair, each in shares.items() if len(each) > 1}


def by_definition(votes, distance, without=None):
    """Return the observed and the expected distance; nothing where no pair was judged twice."""
    units = [list(each.values()) for each in answers_by_definition(votes, without).values()]
    if not units:
        return None
    n = sum(map(len, units))
    observed = sum(
        one @ distance @ other / (len(unit) - 1)
        for unit in units
        for one, other in permutations(unit, 2)
    )
    every = [answer for unit in units for answer in unit]
    expected = sum(one @ distance @ other for one, other in permutations(every, 2))
    return observed / n, expected / (n * (n - 1))


@pytest.mark.parametrize("distance", DISTANCES.values(), ids=DISTANCES)
@given(rows=rows, weighted=st.booleans())
@settings(max_examples=60, deadline=None)
def test_alpha_is_that_of_the_definition(distance, rows, weighted):
    votes = from_rows(rows, weighted=weighted)
    expected = by_definition(votes, distance)
    answers = answers_of(votes)
    assert (len(answers) == 0) == (expected is None)
    if expected is None:
        return
    sums = answers.at(distance).sums()
    assert float(sums.observed()) == pytest.approx(expected[0], abs=1e-12)
    assert float(sums.expected(distance)) == pytest.approx(expected[1], abs=1e-12)
    if expected[1] > 1e-6:
        alpha = 1.0 - expected[0] / expected[1]
        assert float(sums.alpha(distance)) == pytest.approx(alpha, abs=1e-9)
    elif expected[1] < 1e-13:
        assert np.isnan(sums.alpha(distance))


@pytest.mark.parametrize("distance", DISTANCES.values(), ids=DISTANCES)
@given(rows=rows)
@settings(max_examples=40, deadline=None)
def test_what_is_left_without_a_user_is_that_of_the_other_votes(distance, rows):
    votes = from_rows(rows, weighted=False)
    answers = answers_of(votes)
    if not len(answers):
        return
    without = answers.at(distance).without_users()
    users = votes.users[np.unique(answers.user)].tolist()
    for place, user in enumerate(users):
        expected = by_definition(votes, distance, without=user)
        if expected is None:
            assert np.isnan(without.observed()[place])
        else:
            assert without.observed()[place] == pytest.approx(expected[0], abs=1e-9)
            assert without.expected(distance)[place] == pytest.approx(expected[1], abs=1e-9)


def test_what_is_left_without_a_pair_is_that_of_the_other_pairs():
    votes = random_votes(0, n_users=2, n_items=5, n_votes=50)
    answers = answers_of(votes)
    without = answers.at(NOMINAL).without_units().alpha(NOMINAL)
    lower, upper = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    pair = np.unique(lower * votes.n_items + upper, return_inverse=True)[1]
    for place, number in enumerate(answers.pair):
        observed, expected = by_definition(votes.subset(pair != number), NOMINAL)
        assert without[place] == pytest.approx(1.0 - observed / expected)


def test_one_vote_for_each_user_and_pair_gives_the_alpha_of_a_textbook():
    # Three people and two pairs. Of the three pairs of people, one agrees on each: 1 in 3. In both
    # directions there are 12 answers, of which 4 are left, 4 ties and 4 right.
    said = {"tea": ("left", "left", "tie"), "rum": ("tie", "right", "right")}
    table = [
        (user, item, "milk", each)
        for item, answers in said.items()
        for user, each in zip(("ann", "bob", "cat"), answers, strict=True)
    ]
    votes = Comparisons.from_arrays(*zip(*table, strict=True))
    found = agreement(votes, n_splits=1)
    expected = 1.0 - 3 * 4 * 4 * 2 / (12 * 11)
    assert found.common.agreement.value == pytest.approx(1 / 3)
    assert found.common.expected == pytest.approx(expected)
    assert found.common.alpha.value == pytest.approx(1.0 - (2 / 3) / (1.0 - expected))


# --- users, and pairs of users ------------------------------------------------------------------


def test_users_and_pairs_of_users_agree_as_their_answers_do():
    votes = random_votes(1, n_users=6, n_items=5, n_votes=200, weighted=True)
    found = agreement(votes, n_splits=1)
    said = {pair: each for pair, each in answers_by_definition(votes).items() if pair[0] < pair[1]}
    for row in found.users_table().to_dicts():
        mine = [each for each in said.values() if row["user"] in each]
        shares = [
            np.mean([each[row["user"]] @ p for user, p in each.items() if user != row["user"]])
            for each in mine
        ]
        assert row["pairs"] == len(mine)
        assert row["agreement"] == pytest.approx(np.mean(shares))
        assert row["low"] < row["agreement"] < row["high"]
        chance = found.common.expected
        assert row["alpha"] == pytest.approx(1 - (1 - np.mean(shares)) / (1 - chance))
    both = found.pairs_table().to_dicts()
    assert len(both) == 15
    for row in both:
        common = [each for each in said.values() if {row["user"], row["other"]} <= set(each)]
        same = [each[row["user"]] @ each[row["other"]] for each in common]
        assert row["pairs"] == len(common)
        assert row["agreement"] == pytest.approx(np.mean(same))


def test_who_agrees_least_comes_first_and_most_common_pairs_come_first():
    found = agreement(random_votes(2, n_users=8, n_items=6, n_votes=500), n_splits=1)
    assert found.users_table()["high"].is_sorted()
    assert found.pairs_table()["pairs"].is_sorted(descending=True)


def test_two_users_with_too_few_common_pairs_are_not_listed():
    votes = Comparisons.from_arrays(
        ["ann", "bob"] * 4, ["a"] * 8, list("bbccddee"), [1, 1, 0, 0, 1, -1, 1, 1]
    )
    assert len(agreement(votes).pairs_table()) == 0
    assert len(agreement(votes).users_table()) == 2


def test_too_many_users_are_not_compared_two_by_two_and_that_is_said(monkeypatch):
    votes = random_votes(3, n_users=30, n_items=4, n_votes=2000)
    everybody = agreement(votes, n_splits=1)
    assert len(everybody.pairs_table()) == 30 * 29 / 2 and not everybody.remarks
    monkeypatch.setattr(pairs_of_users, "MOST_JOINED", 6 * 10**2)
    some = agreement(votes, n_splits=1)
    (told,) = some.remarks
    n_left = len(set(some.pairs_table()["user"]) | set(some.pairs_table()["other"]))
    assert 2 <= n_left <= 10
    assert told.startswith("Only the users with the most answers are compared two by two: ")
    assert f"{30 - n_left} others" in told
    assert some.users_table().equals(everybody.users_table())


def test_comparing_some_users_at_a_time_changes_nothing(monkeypatch):
    votes = random_votes(7, n_users=9, n_items=5, n_votes=400)
    whole = agreement(votes, n_splits=1).pairs_table()
    monkeypatch.setattr(pairs_of_users, "JOINED_AT_ONCE", 100)
    assert agreement(votes, n_splits=1).pairs_table().equals(whole)


def test_votes_of_one_group_count_as_fewer():
    columns = random_votes(4, n_users=6, n_items=6, n_votes=300)
    alone = agreement(columns, n_splits=1).users_table()
    group = np.unique(columns.user, return_inverse=True)[1] * 3 + np.arange(300) % 3
    grouped = columns.changed(group=group.astype(np.int32), groups=np.arange(18))
    together = agreement(grouped, n_splits=1).users_table()
    alone, together = (each.sort("user") for each in (alone, together))
    assert (together["agreement"] - alone["agreement"]).abs().max() < 1e-12
    assert (together["high"] - together["low"] > alone["high"] - alone["low"]).all()
    of_one = columns.changed(group=np.arange(300, dtype=np.int32), groups=np.arange(300))
    np.testing.assert_allclose(
        agreement(of_one, n_splits=1).users_table().sort("user")["high"], alone["high"], atol=0.1
    )


# --- what it must not depend on ------------------------------------------------------------------


def figures(found):
    return found.to_frame("polars").to_dicts(), found.users_table().to_dicts()


@pytest.fixture(scope="module")
def some_votes():
    return random_votes(5, n_users=7, n_items=5, n_votes=250, weighted=True, group_size=4)


def test_the_order_of_the_rows_and_the_sides_do_not_matter(some_votes):
    rng = np.random.default_rng(0)
    first = figures(agreement(some_votes, n_splits=2))
    turned = rebuilt(some_votes, rng.permutation(250), swapped=rng.random(250) < 0.5)
    assert figures(agreement(turned, n_splits=2)) == first


def test_the_names_of_the_items_do_not_matter(some_votes):
    found = agreement(some_votes, n_splits=2)
    renamed = agreement(some_votes.with_items(["x", "c", "z", "a", "b"]), n_splits=2)
    numbers, again = (each.to_frame("polars") for each in (found, renamed))
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(
            numbers[name].to_numpy(), again[name].to_numpy(), atol=1e-6, equal_nan=True
        )


def test_a_count_is_as_many_rows():
    columns = ["ann", "ann", "bob", "cat"], ["a"] * 4, ["b", "c", "b", "b"], [1, 1, 0, 1]
    counted = Comparisons.from_arrays(*columns, count=[3, 1, 2, 1])
    rows = [np.repeat(each, [3, 1, 2, 1]) for each in columns]
    assert figures(agreement(counted)) == figures(agreement(Comparisons.from_arrays(*rows)))


def test_a_vote_given_twice_changes_no_agreement_and_is_told_as_the_same_again(some_votes):
    twice = Comparisons.joined(some_votes, some_votes)
    once, both = agreement(some_votes, n_splits=1), agreement(twice, n_splits=1)
    assert both.common.alpha == pytest.approx(once.common.alpha)
    single = Comparisons.from_arrays(
        ["ann", "ann", "bob", "bob", "bob"], ["a"] * 5, ["b"] * 5, [1, 1, 1, 0, -1]
    )
    # Ann says the same again; of Bob's six ordered pairs of votes, none is the same.
    assert agreement(single).repeats.value == pytest.approx(2 / 5)
    assert agreement(single.subset([0, 2])).repeats is None


def test_the_seed_decides_the_splits_alone(some_votes):
    one, same, other = (agreement(some_votes, n_splits=2, seed=seed) for seed in (1, 1, 2))
    assert figures(one) == figures(same)
    assert one.split_half != other.split_half
    assert one.common.alpha == other.common.alpha


# --- what it finds -------------------------------------------------------------------------------


def test_people_who_say_the_same_agree_fully_and_those_who_guess_do_not():
    rng = np.random.default_rng(0)
    user, pair = np.divmod(np.arange(20 * 15), 15)
    first, second = np.triu_indices(6, 1)
    left, right = first[pair], second[pair]
    alike = agreement(Comparisons.from_arrays(user, left, right, np.full(300, 1)), n_splits=5)
    assert alike.common.agreement.value == alike.common.alpha.value == 1.0
    assert alike.common.agreement.low is None  # nobody makes any difference
    assert alike.split_half.reliability > 0.99
    assert "agree on 100 % of what chance leaves open" in alike.sentence()
    guessed = Comparisons.from_arrays(user, left, right, rng.choice([1, 0, -1], 300))
    found = agreement(guessed, n_splits=5)
    assert found.common.alpha.low < 0.0 < found.common.alpha.high
    assert "no more than chance may bring" in found.sentence()
    assert abs(found.split_half.reliability) < 0.6


def test_two_who_contradict_each_other_agree_less_than_by_chance():
    left, right = np.triu_indices(7, 1)
    votes = Comparisons.from_arrays(
        ["ann"] * 21 + ["bob"] * 21, [*left, *left], [*right, *right], [1] * 21 + [-1] * 21
    )
    found = agreement(votes)
    assert found.common.alpha.value == pytest.approx(-1.0, abs=0.1)
    assert found.common.drawn == "pairs"
    assert "less than by chance" in found.sentence()


def test_where_all_answers_are_ties_there_is_no_alpha():
    votes = Comparisons.from_arrays(list("abc"), [1, 1, 1], [2, 2, 2], ["tie"] * 3)
    found = agreement(votes)
    assert "alpha" not in found.measures() and found.measures()["agreement"].value == 1.0
    assert "all answers are ties" in found.sentence()
    assert found.users_table()["alpha"].null_count() == 3
    assert found.as_dict()["measures"]["chance"]["value"] == 1.0


def test_without_ties_both_alphas_are_the_same_and_one_is_shown():
    votes = random_votes(6, n_users=5, n_items=4, n_votes=100, tie_share=0.0)
    found = agreement(votes, n_splits=1)
    assert "alpha_of_distances" not in found.measures()
    assert found.common.alpha_of_distances.value == pytest.approx(found.common.alpha.value)


def test_pairs_that_nobody_judged_twice_leave_the_reliability_of_the_scores():
    left, right = np.triu_indices(8, 1)
    votes = Comparisons.from_arrays(np.arange(28) % 2, left, right, np.ones(28))
    found = agreement(votes)
    assert found.common is None and found.separation is not None
    assert found.sentence().startswith("No pair of items was judged by two users")
    assert "Split halves need at least 4 users, and 2 voted." in found.remarks
    assert len(found.users_table()) == len(found.pairs_table()) == 0
    assert found.pairs_table().columns[:2] == ["user", "other"]
    assert list(found.measures()) == ["separation", "separation_of_people"]


# --- reliability of the scores --------------------------------------------------------------------


def tables_of(votes):
    cells = tally(votes, by_user=True)
    return Tables(votes, cells, pair_numbers(cells, votes.n_items))


def drawn(rng, n_votes, n_users, scores):
    left = rng.integers(len(scores), size=n_votes)
    right = (left + rng.integers(1, len(scores), size=n_votes)) % len(scores)
    margin = scores[left] - scores[right] + rng.logistic(size=n_votes)
    outcome = (margin > 0.5).astype(int) - (margin < -0.5)
    return Comparisons.from_arrays(np.arange(n_votes) % n_users, left, right, outcome)


def test_the_separation_is_how_well_scores_tell_the_true_ones():
    rng, expected, found = np.random.default_rng(1), [], []
    for _ in range(12):
        truth = rng.normal(scale=0.7, size=15)
        votes = drawn(rng, 400, 40, truth)
        apart = separation(tables_of(votes))
        assert apart.of_people == pytest.approx(apart.of_votes, abs=0.1)  # votes are independent
        assert apart.variance == pytest.approx(0.49, rel=1.5)
        found.append(apart.of_votes)
        wins = votes.outcome.astype(float)
        gained = np.bincount(votes.left, wins, 15) - np.bincount(votes.right, wins, 15)
        shown = np.bincount(votes.left, minlength=15) + np.bincount(votes.right, minlength=15)
        expected.append(np.corrcoef(gained / shown, truth)[0, 1] ** 2)
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=0.06)


def test_people_with_tastes_of_their_own_separate_items_less_than_their_votes_do():
    crowd = simulate(
        abnormal_share=0.5, n_users=12, n_items=8, votes_per_user=(60, 60), random_state=0
    )
    apart = separation(tables_of(crowd.votes))
    assert apart.of_people < apart.of_votes


def test_halves_of_people_who_vote_alike_predict_each_other():
    votes = drawn(np.random.default_rng(2), 3000, 40, np.linspace(-2, 2, 8))
    found = split_half(tables_of(votes), 10, 0, lambda _done: None)
    assert 0.95 < found.correlation < found.reliability <= 1.0
    assert found.low <= found.reliability <= found.high and found.n_splits == 10


def test_items_that_votes_do_not_connect_have_no_common_scale():
    votes = Comparisons.from_arrays(list("abcdefgh"), [1, 3] * 4, [2, 4] * 4, [1, 0] * 4)
    found = agreement(votes)
    assert found.split_half is None and found.separation is None
    assert len(found.remarks) == 2
    assert all(each.count(".") == 1 and "connect" in each for each in found.remarks)


# --- what is refused, and what it looks like ------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "said"),
    [
        (None, "these votes have no users, so that nobody can tell who agrees with whom"),
        (["ann"] * 3, "these are the votes of 1 user: agreement needs two at least."),
    ],
)
def test_votes_of_nobody_in_particular_or_of_one_user_are_refused(user, said):
    votes = Comparisons.from_arrays(user, [1, 1, 2], [2, 3, 3], [1, 0, 1])
    with pytest.raises(InvalidVotes, match=said):
        agreement(votes)


@pytest.mark.parametrize(
    ("setting", "said"),
    [*(({"n_splits": each}, "n_splits is .* from 1 on") for each in (0, -1, 1.5, True, "two")),
     *(({"seed": each}, "seed is .* from 0 on") for each in (-1, 0.5, None))],
)  # fmt: skip
def test_a_number_of_splits_or_a_seed_that_is_none_is_refused(some_votes, setting, said):
    with pytest.raises(InvalidSetting, match=said):
        agreement(some_votes, **setting)


def test_it_takes_what_a_fit_takes_and_gives_frames_of_that_kind():
    frame = pl.DataFrame({
        "user": ["ann", "bob"] * 3, "left": [1, 1, 1, 1, 2, 2], "right": [2, 2, 3, 3, 3, 3],
        "winner": ["left", "left", "tie", "right", "left", "left"],
    })  # fmt: skip
    found = agreement(frame, n_splits=1)
    assert found.to_frame().columns == ["measure", "value", "low", "high"]
    assert repr(found) == found.sentence()
    of_pandas = agreement(frame.to_pandas(), n_splits=1)
    assert type(of_pandas.to_frame()).__module__.startswith("pandas")


def test_it_speaks_in_the_words_of_the_study(some_votes):
    found = agreement(some_votes, n_splits=1, call={"users": "judges"})
    assert found.sentence().startswith("Two judges who judge the same pair")


def test_progress_goes_from_nothing_to_nearly_all(some_votes):
    shares = []
    agreement(some_votes, n_splits=4, progress=lambda share, _what: shares.append(share))
    assert shares == sorted(shares) and shares[0] == 0.0 and 0.8 < shares[-1] <= 1.0


def test_intervals_that_votes_do_not_tell_are_not_given():
    assert by_leaving_out(0.5, np.array([0.4, 0.6])).low is None
    assert by_leaving_out(0.5, np.array([0.4, np.nan, 0.6])).low is None
    assert by_leaving_out(0.9, np.array([0.5, 0.9, 1.0])).high == 1.0
    low, high = of_share(np.array([0.0, 0.5]), np.array([4.0, 400.0]))
    assert low[0] == 0.0 and 0.4 < high[0] < 0.6
    np.testing.assert_allclose([low[1], high[1]], [0.451, 0.549], atol=1e-3)


def test_the_unit_of_weights_does_not_matter():
    votes = random_votes(3, n_users=8, n_votes=300, weighted=True)
    one, other = (agreement(votes.changed(weight=unit * votes.weight)) for unit in (1.0, 1024.0))
    assert one.as_dict() == other.as_dict()
