"""Which votes a model asks for next: whom, about what, and what it refuses."""

import logging
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.errors import ISplitLBIError
from isplitlbi.estimators.asking import Aim, Wish, next_pairs
from isplitlbi.estimators.people import Information
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import LINKS, link_named
from isplitlbi.storage import load_model, save_model

N_USERS, N_ITEMS, N_CARELESS = 30, 8, 6


@pytest.fixture(scope="module")
def drawn():
    """Thirty users, a fifth of whom answer at random."""
    return simulate(
        n_users=N_USERS, n_items=N_ITEMS, votes_per_user=(50, 50), score_sd=1.5, threshold=0.5,
        abnormal_share=0.0, taste_sd=0.3, malicious={"random": 0.2}, random_state=0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def fitted(drawn):
    return ISplitLBI(with_tests=False).fit(drawn.votes)


@pytest.fixture(scope="module")
def tested(drawn):
    return ISplitLBI().fit(drawn.votes)


def voted(pairs_of, seed=0, n_items=N_ITEMS, n_users=12, n_votes=30):
    """Let users with tastes of their own vote on pairs that a function draws."""
    rng = np.random.default_rng(seed)
    own = np.linspace(1.5, -1.5, n_items) + rng.normal(0.0, 0.3, (n_users, n_items))
    user = np.repeat(np.arange(n_users), n_votes)
    left, right = pairs_of(rng, len(user))
    said = own[user, left] - own[user, right] + rng.logistic(size=len(user))
    outcome = (said > 0.5).astype(int) - (said < -0.5)
    named = [np.char.add(what, number.astype(str)) for what, number in
             (("user-", user), ("item-", left), ("item-", right))]  # fmt: skip
    return Comparisons.from_arrays(*named, outcome)


def at_random(rng, n, n_items=N_ITEMS):
    left = rng.integers(n_items, size=n)
    return left, (left + rng.integers(1, n_items, size=n)) % n_items


def within_parts(n_parts):
    def pairs_of(rng, n):
        size = N_ITEMS // n_parts
        left, right = at_random(rng, n, size)
        part = size * rng.integers(n_parts, size=n)
        return left + part, right + part

    return pairs_of


def pairs_in(found):
    return [frozenset(pair) for pair in zip(found.left.tolist(), found.right.tolist(), strict=True)]


def pairs_of_users(votes):
    """Return everybody's pairs: (user, both items)."""
    columns = votes.users[votes.user], votes.items[votes.left], votes.items[votes.right]
    return [(user, frozenset((left, right))) for user, left, right in zip(*columns, strict=True)]


def one_sentence(refused):
    said = str(refused.value)
    assert isinstance(refused.value, ISplitLBIError)
    assert said.endswith((".", "?")) and "\n" not in said
    return said


# --- the table -----------------------------------------------------------------------------


def test_votes_to_ask_for_are_a_table_of_users_items_and_gains(fitted, drawn):
    found = fitted.next_pairs(20)
    table = found.to_frame()
    assert table.columns == ["user", "left", "right", "gain"]
    assert len(found) == table.height == 20
    assert set(table["user"]) <= set(drawn.votes.users)
    assert set(table["left"]) | set(table["right"]) <= set(drawn.votes.items)
    assert (table["left"] != table["right"]).all()
    assert table["gain"].max() == table["gain"][0]  # the first tells most
    assert table["gain"].min() > 0.0
    assert repr(found).startswith("NextPairs: 20 votes to ask for, 0.")
    assert "(aim: ranking)" in repr(found)
    assert len(set(zip(found.users, pairs_in(found), strict=True))) == 20


def test_tables_are_of_the_kind_that_the_votes_came_in(quick):
    table = quick.next_pairs(3).to_frame()
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == ["user", "left", "right", "gain"]


def test_ids_may_be_numbers(numbered):
    table = numbered.next_pairs(3, users=1).to_frame("polars")
    assert table["user"].to_list() == [1, 1, 1]
    assert table["left"].dtype.is_integer()


def test_one_user_may_be_named_by_a_number_of_numpy(numbered):
    assert len(numbered.next_pairs(1, users=numbered.users_[1])) == 1


def test_an_item_that_stood_on_the_left_more_often_than_the_other_stands_on_the_right(
    fitted, drawn
):
    votes, found = drawn.votes, fitted.next_pairs(60)
    of_user, in_all = Counter(), Counter()

    def shown(user, left, right):
        of_user.update({(user, left): 1, (user, right): -1})
        in_all.update({left: 1, right: -1})

    for user, left, right in zip(votes.user, votes.left, votes.right, strict=True):
        shown(votes.users[user], votes.items[left], votes.items[right])
    for user, left, right, _ in found.to_frame().rows():
        more = of_user[user, left] - of_user[user, right]
        assert more <= -2 or (abs(more) < 2 and in_all[left] <= in_all[right])
        shown(user, left, right)


def test_sides_are_balanced_in_a_long_batch(fitted, drawn):
    votes = drawn.votes
    before = np.bincount(votes.left, minlength=8) - np.bincount(votes.right, minlength=8)
    found = fitted.next_pairs(200)
    left, right = (np.searchsorted(votes.items, side) for side in (found.left, found.right))
    after = before + np.bincount(left, minlength=8) - np.bincount(right, minlength=8)
    assert np.abs(after).max() < np.abs(before).max()


# --- the same whoever computes it ----------------------------------------------------------


def test_the_same_votes_in_another_order_ask_for_the_same(fitted, drawn):
    order = np.random.default_rng(1).permutation(len(drawn.votes))
    again = ISplitLBI(with_tests=False).fit(drawn.votes.subset(order))
    for settings in ({}, {"aim": "top 2"}, {"aim": "person"}):
        one, other = (model.next_pairs(30, **settings) for model in (fitted, again))
        assert one.to_frame().drop("gain").equals(other.to_frame().drop("gain"))
        assert_allclose(one.gain, other.gain, rtol=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_any_number_of_threads_asks_for_the_same(fitted, drawn, n_jobs):
    again = ISplitLBI(with_tests=False, n_jobs=n_jobs).fit(drawn.votes)
    assert again.next_pairs(30).to_frame().equals(fitted.next_pairs(30).to_frame())


def test_a_stored_model_asks_for_the_same_and_asking_changes_nothing(fitted, tmp_path):
    before = fitted.next_pairs(30).to_frame()
    save_model(fitted, tmp_path / "model")
    assert load_model(tmp_path / "model").next_pairs(30).to_frame().equals(before)
    assert fitted.next_pairs(30).to_frame().equals(before)


def test_progress_goes_to_the_end(fitted):
    told = []
    fitted.next_pairs(10, progress=told.append)
    assert told[-1] == pytest.approx(1.0)
    assert np.all(np.diff(told) > 0.0)


# --- whom ----------------------------------------------------------------------------------


def test_only_users_who_are_named_are_asked(fitted):
    found = fitted.next_pairs(12, users=["user-03", "user-01", "user-03"])
    assert set(found.users) == {"user-01", "user-03"}
    assert set(found.worth) == {"user-01", "user-03"}
    assert set(fitted.next_pairs(2, users="user-02").users) == {"user-02"}


def test_votes_are_spread_over_users_and_nobody_is_asked_for_more_than_is_said(fitted):
    assert max(Counter(fitted.next_pairs(N_USERS).users).values()) == 2
    assert max(Counter(fitted.next_pairs(20, per_user=1).users).values()) == 1
    assert max(Counter(fitted.next_pairs(20, per_user=10).users).values()) > 2


def test_who_has_given_few_votes_is_asked_first():
    votes = voted(at_random)
    rows = np.concatenate([np.flatnonzero(votes.user == user)[: 10 if user < 3 else 30]
                           for user in range(votes.n_users)])  # fmt: skip
    model = ISplitLBI(with_tests=False).fit(votes.subset(rows))
    assert set(model.next_pairs(24).users) == set(votes.users[:3])


def test_unreliable_users_are_not_asked_unless_they_are_named(tested, caplog):
    unreliable = list(tested.unreliable_users_)
    assert unreliable
    with caplog.at_level(logging.WARNING, "isplitlbi"):
        found = tested.next_pairs(60)
    assert not set(found.users) & set(unreliable)
    assert not set(found.worth) & set(unreliable)
    (said,) = caplog.messages
    assert str(unreliable[0]) in said and "not asked" in said
    caplog.clear()
    assert set(tested.next_pairs(3, users=unreliable).users) <= set(unreliable)
    assert not caplog.messages


def test_votes_of_careless_users_are_worth_little(fitted, drawn):
    is_careless = np.array(drawn.truth.kind) == "random"
    found = fitted.next_pairs(60)
    worth = np.array([found.worth[user] for user in drawn.votes.users])
    assert np.count_nonzero(is_careless) == N_CARELESS
    assert worth[is_careless].max() < 0.5 * worth[~is_careless].min()
    assert np.median(worth) == pytest.approx(1.0)
    careless = set(drawn.votes.users[is_careless])
    assert careless <= set(found.worth_little)
    assert not careless & set(found.users)
    assert list(found.worth_little.values()) == sorted(found.worth_little.values())


# --- about what ----------------------------------------------------------------------------


def test_an_item_with_few_votes_is_asked_about_more_often_than_others():
    def one_is_new(rng, n):
        left, right = at_random(rng, n, N_ITEMS - 1)
        right[rng.permutation(n)[:5]] = N_ITEMS - 1
        return left, right

    found = ISplitLBI(with_tests=False).fit(voted(one_is_new)).next_pairs(24)
    asked = Counter(found.left.tolist()) + Counter(found.right.tolist())
    assert asked.pop("item-7") > 1.5 * max(asked.values())


@pytest.mark.parametrize("estimator", [ISplitLBI(with_tests=False), MarginMLE()])
@pytest.mark.parametrize("n_parts", [2, 4])
def test_the_first_votes_connect_parts_that_nobody_has_compared(estimator, n_parts):
    model = estimator.fit(voted(within_parts(n_parts)))
    size = N_ITEMS // n_parts
    found = model.next_pairs(n_parts + 2)
    part = np.arange(N_ITEMS) // size
    for left, right in list(zip(found.left, found.right, strict=True))[: n_parts - 1]:
        one, other = (part[int(item.removeprefix("item-"))] for item in (left, right))
        assert one != other
        part[part == other] = one
    assert len(set(part)) == 1


def test_one_vote_between_two_parts_is_not_enough():
    found = MarginMLE().fit(voted(within_parts(2))).next_pairs(6)
    half = [[int(item.removeprefix("item-")) // 4 for item in pair] for pair in pairs_in(found)]
    assert sum(one != other for one, other in half) > 1


def test_pairs_that_somebody_has_voted_on_may_be_left_out(fitted, drawn):
    known = set(pairs_of_users(drawn.votes))
    found = fitted.next_pairs(60, new_only=True)
    assert not known & set(zip(found.users, pairs_in(found), strict=True))
    again = fitted.next_pairs(60)
    assert known & set(zip(again.users, pairs_in(again), strict=True))


def test_of_candidates_rows_are_chosen_and_sides_stay_as_they_are(fitted, drawn):
    rng = np.random.default_rng(0)
    left, right = at_random(rng, 80)
    rows = {"user": drawn.votes.users[rng.integers(N_USERS, size=80)],
            "left": drawn.votes.items[left], "right": drawn.votes.items[right]}  # fmt: skip
    among = pl.DataFrame(rows)
    found = fitted.next_pairs(25, among=among)
    assert len(set(found.row.tolist())) == 25
    assert among[found.row].equals(found.to_frame().drop("gain"))
    # All of them, best first: the first half tells more than the second.
    gains = fitted.next_pairs(80, among=among).gain
    assert gains[:40].sum() > gains[40:].sum()
    only = fitted.next_pairs(2, users=[rows["user"][0], rows["user"][1]], among=among)
    assert set(only.users) <= {rows["user"][0], rows["user"][1]}


def test_candidates_may_be_votes_that_exist(fitted, drawn):
    votes = drawn.votes.subset(np.arange(40))
    found = fitted.next_pairs(5, among=votes)
    assert_array_equal(found.users, votes.users[votes.user[found.row]])
    assert_array_equal(found.left, votes.items[votes.left[found.row]])
    assert_array_equal(found.right, votes.items[votes.right[found.row]])


def test_an_unreliable_user_is_asked_where_the_candidates_are_theirs(tested, caplog):
    who = tested.unreliable_users_[0]
    found = tested.next_pairs(1, among=[(who, "item-01", "item-02")])
    assert found.users == [who] and not caplog.messages


def test_candidates_are_looked_at_whatever_items_would_be_left_out_of_very_many(fitted):
    rows = [("user-01", "item-05", "item-07"), ("user-01", "item-01", "item-03")]
    given = fitted._candidates(rows)
    found = next_pairs(fitted, Wish(2, Aim.of("ranking"), among=given, most_items=1))
    assert sorted(found.row.tolist()) == [0, 1]
    assert np.all(found.gain > 0.0)


# --- aims ----------------------------------------------------------------------------------


def test_for_the_first_places_votes_are_asked_about_items_that_may_be_there(fitted):
    best = set(fitted.ranking().items[:3].tolist())
    share = {
        aim: np.mean([bool(pair & best) for pair in pairs_in(fitted.next_pairs(40, aim=aim))])
        for aim in ("ranking", "top 2")
    }
    assert share["top 2"] > 0.9 > share["ranking"]
    assert str(fitted.next_pairs(1, aim="top 2").aim) == "top 2"


def test_for_persons_votes_are_asked_about_items_that_are_close_in_their_own_order(fitted):
    users = ["user-01", "user-02", "user-03"]
    found = fitted.next_pairs(18, users=users, aim="person")
    assert set(found.users) == set(users)
    place = {item: number for number, item in enumerate(fitted.items_.tolist())}
    for user in users:
        scores = fitted.scores(user)
        apart = [abs(scores[place[left]] - scores[place[right]])
                 for who, left, right, _ in found.to_frame().rows() if who == user]  # fmt: skip
        every = np.abs(scores[:, None] - scores)[np.triu_indices(N_ITEMS, 1)]
        assert np.mean(apart) < np.mean(every)


@pytest.mark.parametrize("text", ["top 3", "top3", "top:3", "top-3", "top=3"])
def test_an_aim_may_be_written_in_some_ways(text):
    assert Aim.of(text, 8) == ("top", 3)


# --- other models --------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"terms": "paper"}, {"terms": "side"}, {"sides": "unknown"}])
def test_models_with_other_settings_ask_as_well(drawn, settings):
    found = ISplitLBI(with_tests=False, **settings).fit(drawn.votes).next_pairs(10)
    assert np.all(np.isfinite(found.gain)) and np.all(found.gain > 0.0)


def test_where_all_users_are_one_it_does_not_matter_who_is_asked(drawn):
    found = MarginMLE().fit(drawn.votes).next_pairs(30)
    assert set(found.worth.values()) == {1.0}
    assert set(found.users) == set(drawn.votes.users)
    assert np.all(found.gain > 0.0)


def test_votes_without_ties_ask_as_well():
    votes = simulate(
        n_users=10, n_items=5, votes_per_user=(20, 20), score_sd=1.0, threshold=None,
        abnormal_share=0.0, random_state=0,
    ).votes  # fmt: skip
    assert np.all(ISplitLBI(with_tests=False).fit(votes).next_pairs(10).gain > 0.0)


@pytest.fixture(scope="module")
def crowd():
    votes = voted(at_random)
    return ISplitLBI().fit(Comparisons.from_arrays(
        None, votes.items[votes.left], votes.items[votes.right], votes.outcome
    ))  # fmt: skip


def test_of_an_anonymous_crowd_anybody_is_asked(crowd):
    found = crowd.next_pairs(10)
    assert found.users == [None] * 10
    assert found.worth == found.worth_little == {}
    table = found.to_frame()
    assert table["user"].dtype == pl.String and table["user"].null_count() == 10
    assert np.all(found.gain > 0.0)
    assert len(set(pairs_in(found))) == 10


def test_of_a_crowd_candidates_are_pairs_of_items(crowd):
    among = pl.DataFrame({"left": ["item-1", "item-0"], "right": ["item-2", "item-7"]})
    found = crowd.next_pairs(2, among=among)
    assert among[found.row].equals(found.to_frame().select("left", "right"))


def test_of_a_crowd_candidates_may_be_votes_that_exist(crowd):
    assert len(crowd.next_pairs(2, among=crowd.votes().subset(np.arange(20)))) == 2


def test_nobody_of_a_crowd_can_be_named(crowd):
    for settings in ({"users": ["user-1"]}, {"aim": "person"}):
        with pytest.raises(ISplitLBIError, match="no users") as refused:
            crowd.next_pairs(1, **settings)
        one_sentence(refused)


# --- what is refused -----------------------------------------------------------------------

PAIR = ("user-01", "item-01", "item-02")
REFUSED = {
    "an unknown user": ({"users": ["nobody"]}, "'nobody'"),
    "no user at all": ({"users": []}, "users is empty"),
    "an unknown item": ({"among": [("user-01", "item-01", "thing")]}, "'thing'"),
    "an unknown user of a candidate": ({"among": [("nobody", *PAIR[1:])]}, "'nobody'"),
    "candidates of others": ({"among": [PAIR], "users": ["user-02"]}, "nothing to ask"),
    "candidates without users": (
        {"among": pl.DataFrame({"left": ["item-01"], "right": ["item-02"]})}, "need users",
    ),
    "no votes": ({"n": 0}, "n is 0"),
    "half a vote": ({"n": 1.5}, "n is 1.5"),
    "yes": ({"n": True}, "n is True"),
    "no votes of a user": ({"per_user": 0}, "per_user is 0"),
    "more votes than pairs": ({"n": 10_000}, "n is 10,000, but there are only 840 votes"),
    "more votes than pairs of a user": ({"n": 29, "users": ["user-01"]}, "only 28 votes"),
    "more votes than may be asked of a user": (
        {"n": 3, "per_user": 2, "users": ["user-01"]}, "only 2 votes .* allow more votes",
    ),
    "more votes than candidates": ({"n": 2, "among": [PAIR]}, "only 1 vote "),
    "more places than items": ({"aim": "top 99"}, "'top 99'.* first 1 to 7"),
    "all places": ({"aim": "top 8"}, "first 1 to 7"),
    "no place": ({"aim": "top 0"}, "first 1 to 7"),
    "another aim": ({"aim": "nonsense"}, "'nonsense' is not one of"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused_in_a_sentence(fitted, what):
    settings, said = REFUSED[what]
    with pytest.raises(ISplitLBIError, match=said) as refused:
        fitted.next_pairs(**({"n": 1} | settings))
    one_sentence(refused)


def test_where_everything_was_compared_nothing_is_left_to_ask():
    def every_pair(rng, n):
        first, second = np.triu_indices(4, 1)
        return np.resize(first, n), np.resize(second, n)

    model = ISplitLBI(with_tests=False).fit(voted(every_pair, n_items=4, n_users=5, n_votes=12))
    assert len(model.next_pairs(30)) == 30
    with pytest.raises(ISplitLBIError, match=r"nothing left to ask.* voted on before") as refused:
        model.next_pairs(1, new_only=True)
    one_sentence(refused)


def test_nobody_is_left_where_all_are_unreliable(tested, monkeypatch):
    monkeypatch.setattr(
        type(tested), "unreliable_users_", property(lambda model: model.users_), raising=False
    )
    with pytest.raises(ISplitLBIError, match="nobody to ask"):
        tested.next_pairs(1)


# --- what one vote tells -------------------------------------------------------------------


@pytest.fixture(scope="module")
def consensus(fitted, drawn):
    """What all have in common, by all terms and by those of the paper."""
    paper = ISplitLBI(with_tests=False, terms="paper").fit(drawn.votes)
    return {"all": fitted.parameters_.common, "paper": paper.parameters_.common}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("terms", ["all", "paper"])
def test_what_a_vote_tells_of_its_margin_is_as_fisher_defined_it(consensus, link, terms):
    margin, step = np.linspace(-0.35, 0.4, 9), 1e-5
    found = Information.of(link_named(link), consensus[terms])
    level = np.full(9, found.level + found.habits[0] + found.habits[3])

    def chances(at):
        return np.exp(np.array(found.answering.outcomes(at, level)))

    slope = (chances(margin + step) - chances(margin - step)) / (2.0 * step)
    assert_allclose(chances(margin).sum(axis=0), 1.0, atol=1e-9)
    told = found(margin, np.zeros(9, dtype=int), np.full(9, 3))
    assert_allclose(told, (slope**2 / chances(margin)).sum(axis=0), rtol=1e-4)
