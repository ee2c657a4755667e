"""What follows from votes and from scores: predictions, rankings, tests of users."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score

from isplitlbi import Comparisons, InvalidVotes, ISplitLBI
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.links import LINKS
from isplitlbi.model.metrics import decide
from isplitlbi.model.population import ITEMS_OF_OTHERS
from studies import ITEM, QUICK, USER, assert_same_fit

# --- prediction ----------------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
def test_probabilities_sum_to_one_and_swapping_sides_mirrors_them(X, y, link):
    fitted = ISplitLBI(**QUICK, link=link, sides="unknown").fit(X, y)
    swapped = X.rename(columns={"left": "right", "right": "left"})
    probabilities = fitted.predict_proba(X)
    assert probabilities.shape == (len(X), 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(swapped), probabilities[:, ::-1], rtol=1e-9)
    for rule in ("map", "threshold"):
        fitted.set_params(rule=rule)
        np.testing.assert_array_equal(fitted.predict(swapped), -fitted.predict(X))


def test_probabilities_stand_in_the_order_of_the_classes(X, model):
    probabilities = model.predict_proba(X)
    for row, expected in zip(X.itertuples(index=False), probabilities, strict=True):
        own = model.parameters_.of_user(model.user_index(row.user))
        left, right = (model.items_.tolist().index(item) for item in (row.left, row.right))
        np.testing.assert_array_equal(own.scores, model.scores(row.user))
        margin = own.scores[left] - own.scores[right] + own.trait("side")
        threshold = model.threshold(row.user) * model.habits_[left] * model.habits_[right]
        right, left = expit(-margin - threshold), expit(margin - threshold)
        np.testing.assert_allclose(expected, [right, 1 - left - right, left], rtol=1e-9)


def test_the_two_rules_predict_as_they_say(X, y, model):
    by_threshold = ISplitLBI(**QUICK, sides="unknown", rule="threshold").fit(X, y)
    by_map = ISplitLBI(**QUICK, sides="unknown").fit(X, y)
    assert_same_fit(by_threshold, by_map)
    likely = by_map.classes_[by_map.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(by_map.predict(X), likely)
    within = [
        {"better": 1, "tied": 0, "worse": -1}[by_threshold.relation(left, right, user)]
        for user, left, right in X.itertuples(index=False)
    ]
    np.testing.assert_array_equal(by_threshold.predict(X), within)
    # The paper's rule declares more ties.
    assert np.sum(by_threshold.predict(X) == 0) > np.sum(by_map.predict(X) == 0)


def test_the_score_is_the_share_predicted_correctly(X, y, votes, model):
    assert model.score(X, y) == pytest.approx(accuracy_score(y, model.predict(X)))
    assert model.score(votes) == model.score(X, y)
    assert model.predict(X).dtype == np.int8


def test_without_a_user_there_is_the_consensus(model):
    np.testing.assert_array_equal(model.scores(None), model.consensus_)
    assert model.threshold(None) == model.threshold_


def test_the_threshold_rule_decides_for_an_unknown_user_by_the_consensus(model):
    first, second = np.triu_indices(len(model.items_), 1)
    pairs = [
        ("stranger", model.items_[a], model.items_[b]) for a, b in zip(first, second, strict=True)
    ]
    margin = model.consensus_[first] - model.consensus_[second] + model.side_
    threshold = model.threshold_ * model.habits_[first] * model.habits_[second]
    np.testing.assert_array_equal(model.predict(pairs, "threshold"), decide(margin, threshold))


@pytest.mark.parametrize("estimate", ["dense", "sparse"])
def test_an_unknown_user_is_the_average_of_all_users_by_how_much_they_compared(model, estimate):
    a, b = model.items_[:2]
    pairs = [(user, a, b) for user in model.users_]
    compared = np.array([model.parameters_.compared_by(user).sum() for user in range(len(pairs))])
    weight = compared / (compared + ITEMS_OF_OTHERS)
    expected = weight / weight.sum() @ model.predict_proba(pairs, estimate)
    (found,) = model.predict_proba([("stranger", a, b)], estimate)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    (outcome,) = model.predict([("stranger", a, b)], estimate=estimate)
    assert outcome == model.classes_[found.argmax()]


def test_head_to_head_expects_what_unknown_people_would_vote(model, votes):
    found = model.head_to_head()
    pairs = list(zip(found.item, found.other, strict=True))
    place = {pair: number for number, pair in enumerate(pairs)}
    expected = np.zeros((len(pairs), 3))
    asked = [("stranger", votes.items[left], votes.items[right])
             for left, right in zip(votes.left, votes.right, strict=True)]  # fmt: skip
    for (_, left, right), chances in zip(asked, model.predict_proba(asked), strict=True):
        if (left, right) in place:
            expected[place[left, right]] += chances[::-1]
        else:
            expected[place[right, left]] += chances
    np.testing.assert_allclose(found.predicted, expected / found.votes[:, None], rtol=1e-12)


def test_known_and_unknown_users_may_be_asked_together(model):
    a, b = model.items_[:2]
    known = model.abnormal_users_[0]
    both = model.predict_proba([(known, a, b), ("stranger", a, b)])
    # On some processors, the last bit of exp depends on the length of the array.
    np.testing.assert_allclose(both[:1], model.predict_proba([(known, a, b)]), rtol=1e-15)
    assert not np.array_equal(both[0], both[1])


def test_no_pairs_give_no_predictions(model):
    nothing = pd.DataFrame({"user": [], "left": [], "right": []}, dtype=object)
    assert model.predict(nothing).shape == (0,)
    assert model.predict_proba(nothing).shape == (0, 3)


def test_an_unknown_item_is_an_error_that_names_it_and_the_nearest(model):
    message = "item 'item-3' is not among the 5 items of this model; the nearest is 'item-03'"
    pairs = [(USER, "item-01", "item-02"), (USER, "item-01", "item-3")]
    for ask in (
        lambda: model.predict(pairs),
        lambda: model.predict_proba(pd.DataFrame(pairs)),
        lambda: model.relation("item-01", "item-3"),
        lambda: model.recommend(USER, same_as="item-3"),
        lambda: model.recommend(USER, better_than="item-3"),
    ):
        with pytest.raises(InvalidVotes, match=message):
            ask()


def test_a_user_of_another_type_is_an_error_not_a_stranger(model, numbered):
    with pytest.raises(InvalidVotes, match="user: the ids are strings, such as 'user-01', but 3"):
        model.scores(3)
    with pytest.raises(InvalidVotes, match="user: the ids are strings"):
        model.predict([(1, "item-01", "item-02")])
    with pytest.raises(InvalidVotes, match="user: the ids are integers, such as 0, but '0'"):
        numbered.ranking("0")


# --- rankings ------------------------------------------------------------------------------


def test_an_item_that_a_user_never_compared_stands_where_the_consensus_puts_it(votes, model):
    paper = ISplitLBI(**QUICK, terms="paper").fit(votes)
    place = model.items_.tolist().index(ITEM)
    assert paper.scores(USER)[place] == paper.consensus_[place]
    assert np.all(np.delete(paper.scores(USER) != paper.consensus_, place))
    # A user's sharpness is that on all items.
    sharper = model.parameters_.all_of("sharpness")[model.user_index(USER)]
    expected = model.consensus_[place] + sharper * model.terms_.reference[place]
    assert model.scores(USER)[place] == pytest.approx(expected)
    ranking = model.ranking(USER)
    assert ranking.items[~ranking.compared].tolist() == [ITEM]
    assert f"({ITEM})" in str(ranking)
    assert model.ranking().compared.all()


def test_a_ranking_is_made_of_the_users_scores_and_threshold(model):
    user = model.abnormal_users_[0]
    ranking = model.ranking(user)
    np.testing.assert_array_equal(np.sort(ranking.scores), np.sort(model.scores(user)))
    assert ranking.threshold == model.threshold(user)
    assert ranking.items.tolist() != model.ranking().items.tolist()


def test_the_relation_is_the_one_of_that_user(model):
    ranking = model.ranking()
    best, worst = ranking.items[0], ranking.items[-1]
    assert model.relation(best, worst) == "better"
    assert model.relation(worst, best) == "worse"
    assert model.relation(best, best) == "tied"
    user = model.abnormal_users_[0]
    own = model.ranking(user)
    assert model.relation(own.items[0], own.items[-1], user=user) == "better"


@pytest.mark.parametrize("user", [None, USER, "user-03"])
def test_recommendations_stand_as_asked_and_come_nearest_first(model, user):
    score = dict(zip(model.items_, model.scores(user), strict=True))
    for item in model.items_:
        same = model.recommend(user, same_as=item)
        better = model.recommend(user, better_than=item)
        others = [other for other in model.items_ if other != item]
        assert set(same) == {o for o in others if model.relation(o, item, user) == "tied"}
        assert set(better) == {o for o in others if model.relation(o, item, user) == "better"}
        for chosen in (same, better):
            distance = [abs(score[other] - score[item]) for other in chosen]
            assert distance == sorted(distance)


def test_recommendations_say_what_the_user_never_compared():
    rng = np.random.default_rng(0)
    users, pairs = np.repeat(["ann", "bob", "eva"], 40), rng.permuted([np.arange(5)] * 120, axis=1)
    left, right = np.array(["a", "b", "c", "d", "e"])[pairs[:, :2].T]
    seen = (users != "ann") | ((left < "d") & (right < "d"))  # of d and e, ann knows nothing
    votes = Comparisons.from_arrays(
        users[seen], left[seen], right[seen], np.where(left < right, 1, -1)[seen]
    )
    model = ISplitLBI(**QUICK).fit(votes)
    found = model.recommend("ann", better_than="e")
    table = found.to_frame()
    assert set(found) == {"a", "b", "c", "d"}
    assert table["compared"].to_list() == found.compared == [item != "d" for item in found]
    assert model.ranking("ann").compared.sum() == 3
    assert all(model.recommend("bob", better_than="e").compared)
    common = model.recommend(better_than="e")
    assert all(common.compared)
    assert "compared" not in common.to_frame().columns
    assert "never compared" in found._repr_html_()
    assert "never compared" not in common._repr_html_()


@pytest.mark.parametrize("asked", [{}, {"same_as": "item-01", "better_than": "item-02"}])
def test_a_recommendation_needs_exactly_one_question(model, asked):
    with pytest.raises(ValueError, match="exactly one of same_as and better_than"):
        model.recommend(USER, **asked)


def test_the_distance_to_the_consensus_is_that_of_the_scores(model):
    expected = [
        np.linalg.norm(
            (model.scores(user) - model.consensus_)[model.parameters_.compared_by(place)]
        )
        for place, user in enumerate(model.users_)
    ]
    np.testing.assert_allclose(model.distance_to_consensus(), expected, rtol=1e-9)


def test_intervals_lie_around_the_consensus_and_are_found_once(model):
    low, high = model.consensus_intervals()
    assert np.all(low < model.consensus_) and np.all(model.consensus_ < high)
    again, _ = model.consensus_intervals()
    np.testing.assert_array_equal(again, low)


# --- tests of users ------------------------------------------------------------------------


def test_abnormal_users_are_those_flagged_the_largest_effect_first(model, study):
    found = model.abnormality_
    assert set(model.abnormal_users_) == set(model.users_[found.flagged])
    assert set(study.votes.users[study.truth.abnormal]) <= set(model.abnormal_users_)
    effect = dict(zip(model.users_.tolist(), found.effect, strict=True))
    effects = [effect[user] for user in model.abnormal_users_]
    assert effects == sorted(effects, reverse=True)
    assert model.test_users() is found  # found once


@pytest.fixture
def untested(votes):
    return ISplitLBI(**QUICK).fit(votes)


@pytest.mark.parametrize(
    "name", ["abnormality_", "abnormal_users_", "unreliable_users_", "different_users_"]
)
def test_what_was_not_tested_is_not_there_and_says_what_to_call(untested, name):
    assert not hasattr(untested, name)
    with pytest.raises(AttributeError, match=r"not been tested. Call test_users\(\) first"):
        getattr(untested, name)
    with pytest.raises(NotFittedError):
        getattr(ISplitLBI(), name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense_'"):
        untested.nonsense_  # noqa: B018


def test_testing_users_stores_what_is_found(untested, votes):
    found = untested.test_users()
    assert untested.abnormality_ is found
    assert set(untested.abnormal_users_) == set(untested.users_[found.flagged])
    assert untested.test_users() is found  # found once
    in_fit = ISplitLBI(**{**QUICK, "with_tests": True}).fit(votes)
    assert in_fit.abnormal_users_ == untested.abnormal_users_
    np.testing.assert_array_equal(in_fit.abnormality_.p_value, found.p_value)


def test_another_rate_is_answered_and_not_stored(untested):
    assert untested.test_users(fdr=1e-9).flagged.sum() == 0
    assert not hasattr(untested, "abnormality_")
    own = untested.test_users()
    assert untested.test_users(fdr=1e-9) is not own
    assert untested.abnormality_ is own
    untested.set_params(fdr=1e-9)
    untested.fit(untested.votes())
    assert untested.test_users().fdr == 1e-9
    assert untested.abnormal_users_ == []


@pytest.mark.parametrize("fdr", [0.0, 1.0, -0.1, np.nan])
def test_a_rate_that_is_none_is_refused(untested, fdr):
    with pytest.raises(InvalidSetting, match=r"fdr is .*; it must lie between 0 and 1"):
        untested.test_users(fdr=fdr)


def test_a_new_fit_forgets_the_tests_of_the_old_one(untested, votes):
    untested.test_users()
    untested.fit(votes)
    for name in ("abnormality_", "abnormal_users_", "unreliable_users_", "different_users_"):
        assert not hasattr(untested, name)


def test_the_effect_and_the_telling_votes_test_users_who_were_not(untested):
    model = clone(untested).fit(untested.votes())
    with pytest.raises(InvalidVotes, match="user 'nobody' is not among the"):
        model.telling_votes("nobody")
    assert not hasattr(model, "abnormality_")
    assert model.telling_votes(USER)
    assert hasattr(model, "abnormality_")
    assert model.effect_of_leaving_out().sentence()
