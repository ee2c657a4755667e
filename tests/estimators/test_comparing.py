"""What changed between two models: items, pairs, users and votes."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi import AlphaCut, Comparisons, ISplitLBI, MarginMLE, PerUser, compare, load_model
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators import LBI, certainty
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import link_named
from isplitlbi.storage import save_model
from studies import QUICK

METHODS = {
    "ISplitLBI": lambda: ISplitLBI(**QUICK),
    "terms of the paper": lambda: ISplitLBI(terms="paper", **QUICK),
    "LBI": lambda: LBI(n_folds=2),
    "MarginMLE": MarginMLE,
    "PerUser": PerUser,
}


def study(n_users=24, seed=0, **changes):
    settings = {"n_items": 6, "votes_per_user": (40, 40), "score_sd": 1.0, "threshold": 0.5}
    settings |= {"abnormal_share": 0.0}
    return simulate(n_users=n_users, **(settings | changes), random_state=seed).votes


def columns(votes, rows=slice(None)):
    return (votes.users[votes.user[rows]], votes.items[votes.left[rows]],
            votes.items[votes.right[rows]], votes.outcome[rows])  # fmt: skip


def part(votes, rows):
    return Comparisons.from_arrays(*columns(votes, rows))


@pytest.fixture(scope="module")
def votes():
    return study()


@pytest.fixture(scope="module")
def earlier(votes):
    """Fit the votes of two thirds of the users."""
    return MarginMLE().fit(part(votes, votes.user < 16))


@pytest.fixture(scope="module")
def later(votes):
    return MarginMLE().fit(votes)


@pytest.fixture(scope="module")
def found(earlier, later):
    return compare(earlier, later)


# --- items ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_every_estimator_that_can_be_stored_can_be_compared(votes, name, tmp_path):
    before, after = (
        METHODS[name]().fit(each) for each in (part(votes, votes.user < 16), votes)
    )  # fmt: skip
    there = compare(before, after)
    assert np.all(there.low_of_all <= there.low)
    assert np.all(there.low <= there.change)
    assert np.all(there.change <= there.high)
    assert np.all(there.high <= there.high_of_all)
    assert_array_equal(there.changed, (there.low_of_all > 0) | (there.high_of_all < 0))
    assert np.all((there.moved_low <= there.moved) & (there.moved <= there.moved_high))
    save_model(before, tmp_path / "before")
    again = compare(load_model(tmp_path / "before"), after)
    assert_array_equal(again.low_of_all, there.low_of_all)
    assert_array_equal(again.moved_high, there.moved_high)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_votes_twice_change_by_exactly_nothing(votes, name):
    turned = part(votes, np.arange(len(votes))[::-1])
    there = compare(METHODS[name]().fit(votes), METHODS[name]().fit(turned))
    for each in ("change", "low", "high", "low_of_all", "high_of_all", "moved_low", "moved_high"):
        assert not getattr(there, each).any(), each
    assert there.is_same
    assert there.sentence().startswith("Nothing changed: the votes and the scores")
    assert (there.added.votes_added, there.added.votes_gone) == (0, 0)


def test_scores_are_those_of_the_leaderboards_at_the_same_mean(found, earlier, later):
    board = later.leaderboard()
    assert found.items.tolist() == board.items.tolist()
    assert_array_equal(found.score_after, board.score)
    assert_array_equal(found.rank_after, board.rank)
    assert_allclose(found.change, found.score_after - found.score_before)
    place = {item: at for at, item in enumerate(earlier.leaderboard().items.tolist())}
    rows = [place[item] for item in found.items.tolist()]
    assert_array_equal(found.rank_before, earlier.leaderboard().rank[rows])
    shift = found.score_before - earlier.leaderboard().score[rows]
    assert_allclose(shift, shift[0])


def test_back_again_everything_has_the_other_sign(found, earlier, later):
    back = compare(later, earlier)
    order = [back.items.tolist().index(item) for item in found.items.tolist()]
    assert_allclose(back.change[order], -found.change, atol=1e-12)
    assert_allclose(back.low_of_all[order], -found.high_of_all, rtol=0.01)  # drawn anew
    assert_array_equal(back.moved[order], -found.moved)
    assert (back.added.votes_gone, back.added.users_gone) == (
        found.added.votes_added, found.added.users_added,
    )  # fmt: skip


def test_an_item_that_others_see_otherwise_has_changed_and_no_more_than_it():
    before, after = study(60, 1), study(60, 1)
    user, left, right, outcome = columns(after)
    item, rng = after.items[2], np.random.default_rng(0)
    up = ((left == item) | (right == item)) & (rng.random(len(left)) < 0.6)
    better = np.where(up, np.where(left == item, 1, -1), outcome)
    new = np.array([f"new {each}" for each in user], dtype=object)
    models = (
        MarginMLE().fit(before),
        MarginMLE().fit(Comparisons.from_arrays(new, left, right, better)),
    )
    there = compare(*models)
    at = there.items.tolist().index(item)
    assert there.changed[at]
    assert there.change[at] > 0
    assert f"{item} rose by" in there.sentence()
    assert there.added.users_in_both == there.added.votes_in_both == 0


def test_items_of_one_model_only_are_listed_apart_as_they_stand_there(votes):
    first, last = votes.items[0], votes.items[-1]
    user, left, right, _ = columns(votes)
    without = [
        part(votes, (left != item) & (right != item)) for item in (first, last)
    ]  # fmt: skip
    before, after = (MarginMLE().fit(each) for each in without)
    there = compare(before, after)
    assert first not in there.items
    assert last not in there.items
    (new,), (gone,) = there.new_items, there.gone_items
    assert (new.item, gone.item) == (first, last)
    board = after.leaderboard()
    at = board.items.tolist().index(first)
    assert (new.rank, new.score) == (board.rank[at], board.score[at])
    table = there.to_frame()
    assert table["found_in"].value_counts().sort("found_in").rows() == [
        ("after", 1), ("before", 1), ("both", 4),
    ]  # fmt: skip
    assert table.filter(pl.col("found_in") == "before")["rank_after"].to_list() == [None]
    assert len(user) == len(votes)


def test_a_new_item_alone_moves_no_item_of_both(votes):
    item = votes.items[0]
    _, left, right, _ = columns(votes)
    before = MarginMLE().fit(part(votes, (left != item) & (right != item)))
    there = compare(before, MarginMLE().fit(votes))
    assert set(there.moved.tolist()) <= {-1, 0, 1}
    assert there.moved.sum() == 0


def test_pairs_that_changed_order_are_those_of_the_leaderboards(found):
    order = np.argsort(found.rank_after)
    then = found.rank_before[order]
    turned = sum(int(np.sum(then[:at] > then[at])) for at in range(len(then)))
    assert found.pairs.turned == turned
    assert found.pairs.n_pairs == 15
    assert found.pairs.surely_turned <= found.pairs.turned


def test_items_with_too_few_votes_to_be_ranked_have_no_move(votes):
    user, left, right, outcome = columns(votes)
    rare = Comparisons.from_arrays(
        np.append(user, user[:2]), np.append(left, ["rare"] * 2), np.append(right, right[:2]),
        np.append(outcome, [1, -1]),
    )  # fmt: skip
    fewer = part(rare, np.arange(len(rare)) > 40)
    there = compare(*(ISplitLBI(**QUICK).fit(each) for each in (fewer, rare)))
    at = there.items.tolist().index("rare")
    assert there.rank_after[at] == 0
    assert there.to_frame()["moved"][at] is None
    assert there.cells()[1 + at][1:4] == ["-", "-", "-"]


# --- votes and users -----------------------------------------------------------------------


def test_what_was_added_is_counted(found, votes):
    n_before = int(np.sum(votes.user < 16))
    assert found.added == (n_before, len(votes) - n_before, 0, 16, 8, 0)
    assert found.of_votes() == (
        f"Both fits share {n_before} votes by 16 users; {len(votes) - n_before} votes and 8 users "
        "are new."
    )


@pytest.fixture(scope="module")
def tested():
    """Fit users of whom one turns around in the later votes, and a new one is as bad."""
    votes = study(14, 2, votes_per_user=(60, 60), score_sd=2.0)
    user, left, right, outcome = columns(votes)
    first, last = votes.users[0], votes.users[-1]
    half = np.arange(len(user)) % 2 == 0
    turned = np.where(((user == first) & ~half) | (user == last), -outcome, outcome)
    before = Comparisons.from_arrays(*(
        each[half & (user != last)] for each in (user, left, right, outcome)
    ))  # fmt: skip
    after = Comparisons.from_arrays(user, left, right, turned)
    return [ISplitLBI(kappa=5.0, times=[0.4], time=0.7).fit(each) for each in (before, after)]


def test_users_on_another_list_are_listed_with_what_was_before_and_after(tested):
    before, after = tested
    there = compare(before, after)
    became = {each.user for each in there.users if each.change == "became"}
    new = {each.user for each in there.users if each.change == "new"}
    then, now = set(before.abnormal_users_), set(after.abnormal_users_)
    assert became == (now - then) & set(before.users_)
    assert new == now - set(before.users_)
    assert new == {after.users_[-1]}
    for each in there.users:
        place = after.users_.tolist().index(each.user)
        assert each.after.list == after.abnormality_.list[place]
        assert each.after.effect == after.abnormality_.effect[place]
        assert each.votes_after == after.summary_.votes_per_user[place]
    assert "1 of 1 new users are abnormal" in there.of_users()
    back = compare(after, before)
    assert {each.user for each in back.users if each.change == "ceased"} == became
    assert {each.user for each in back.users if each.change == "gone"} == new
    assert there.users_table().columns[:2] == ["user", "change"]


def test_models_without_tests_say_so(found, tested, votes):
    assert found.of_users().startswith("Neither fit tested its users")
    there = compare(tested[0], ISplitLBI(**QUICK).fit(tested[1].votes()))
    assert there.of_users().startswith("The fit after did not test its users")
    assert there.users == ()


def test_the_words_of_the_study_are_used(earlier, votes):
    later = MarginMLE().fit(votes)
    later.call = {"items": "models", "users": "annotators"}
    said = " ".join(compare(earlier, later).sentences())
    assert "8 annotators are new" in said
    assert "6 models" in said
    assert "item" not in said
    assert "users" not in said


# --- settings, and what is refused -----------------------------------------------------------


def test_other_settings_and_other_estimators_are_named(votes, later):
    one, other = ISplitLBI(**QUICK).fit(votes), ISplitLBI(**QUICK | {"time": 0.4}).fit(votes)
    there = compare(one, other)
    assert there.of_votes().startswith("Both fits have the same votes")
    assert "The settings differ (time)" in " ".join(there.remarks)
    assert "different kinds (MarginMLE before, ISplitLBI after)" in compare(later, one).remarks[0]


def test_models_of_other_links_are_refused(votes, later):
    other = MarginMLE().fit(votes)
    other.link_ = link_named("probit")
    with pytest.raises(InvalidSetting, match="link is logistic before and probit after"):
        compare(later, other)


def test_models_without_common_items_are_refused(votes, later):
    user, left, right, outcome = columns(votes)
    others = Comparisons.from_arrays(user, "x" + left, "x" + right, outcome)
    with pytest.raises(InvalidVotes, match="no item in common"):
        compare(later, MarginMLE().fit(others))


def test_models_without_scores_or_without_a_fit_are_refused(votes, later):
    with pytest.raises(InvalidSetting, match="AlphaCut has none"):
        compare(later, AlphaCut())
    with pytest.raises(ValueError, match="not fitted yet"):
        compare(later, MarginMLE())


def test_so_many_items_that_errors_are_known_one_by_one_are_refused(votes, monkeypatch):
    model = MarginMLE().fit(votes)
    monkeypatch.setattr(certainty, "MOST_PLACES", 3)
    with pytest.raises(InvalidSetting, match="Fit models of fewer items"):
        compare(model, model)


def test_a_single_user_has_intervals_by_the_curvature(votes):
    one = MarginMLE().fit(part(votes, votes.user == 0))
    there = compare(one, MarginMLE().fit(part(votes, votes.user == 1)))
    assert np.all(there.high - there.low > 0)
    assert np.isfinite(there.high).all()


# --- as a table ------------------------------------------------------------------------------


def test_everything_is_plain_values_for_json(found, tested, votes):
    told = json.loads(json.dumps(compare(*tested, votes=tested[1].votes()).as_dict()))
    assert told["held_out"]["log_loss"]["before"] > 0
    assert len(told["items"]) == 6
    assert told["users"][0]["user"]
    assert found.as_dict()["held_out"] is None


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_the_table_comes_as_any_frame(found, kind):
    frame = found.to_frame(kind)
    assert list(frame["item"].to_pylist() if kind == "pyarrow" else frame["item"]) == (
        found.items.tolist()
    )


def test_text_and_notebook_show_sentences_and_items(found):
    assert all(sentence in str(found) for sentence in found.sentences())
    assert found.items[0] in found._repr_html_()
    assert repr(found) == f"Changes: {found.sentence()}"
