"""People who came after the fit."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr

from isplitlbi import Comparisons, ISplitLBI, load_model
from isplitlbi.errors import InvalidVotes, ISplitLBIError
from isplitlbi.estimators import placed as module
from isplitlbi.estimators import updated as updating
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.population import ITEMS_OF_OTHERS, TRUST, VOTES_OF_OTHERS
from isplitlbi.storage import save_model
from studies import QUICK, assert_same_fit, columns_of


@pytest.fixture(scope="module")
def drawn():
    return simulate(
        n_users=24, n_items=6, votes_per_user=(30, 50), abnormal_share=0.15,
        malicious={"reversed": 0.1}, random_state=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def parts(drawn):
    """The votes of a study, and those of four people who come later."""
    votes = drawn.votes
    return votes.alone(votes.user < 20), votes.alone(votes.user >= 20)


@pytest.fixture(scope="module")
def study(parts):
    return ISplitLBI(n_folds=3).fit(parts[0])


@pytest.fixture(scope="module")
def people(study, parts):
    return study.place(parts[1])


# --- what they are -------------------------------------------------------------------------


def test_everything_is_there_that_a_fitted_user_has(study, people, parts):
    new = parts[1]
    assert_array_equal(people.users_, new.users)
    assert len(people.entry_times_) == len(people.abnormality_.p_value) == 4
    for user in people.users_:
        own = people.own_scores(user)
        assert np.all((own.low <= own.score) & (own.score <= own.high))
        assert sorted(item for tier in people.ranking(user).tiers for item in tier) == sorted(
            study.items_
        )
        assert str(people.user_card(user)).startswith(f"{user}, ")
        assert people.threshold(user) > 0.0
        first = people.recommend(user, better_than=study.items_[0])
        ranking = people.ranking(user)
        compared = dict(zip(ranking.items, ranking.compared, strict=True))
        assert first.compared == [compared[item] for item in first]
        assert all(people.relation(item, study.items_[0], user) == "better" for item in first)
    assert set(people.abnormal_users_) == {
        *people.unreliable_users_,
        *people.different_users_,
    }


def test_the_model_stays_as_it_is(study, people, parts):
    assert not set(people.users_) & set(study.users_)
    again = ISplitLBI(n_folds=3).fit(parts[0])
    assert_same_fit(study, again)
    assert study.abnormal_users_ == again.abnormal_users_


def test_a_user_of_the_model_is_placed_where_the_fit_has_them(study, parts):
    old = parts[0]
    found = study.place(old, with_tests=False)
    for user in study.users_:
        own, scores = study.scores(user), found.scores(user)
        assert np.linalg.norm(scores - own) <= 0.01 * np.linalg.norm(own - study.consensus_) + 1e-6
        assert_allclose(found.threshold(user), study.threshold(user), rtol=0.005)
    left = np.isfinite(study.entry_times_)
    assert_allclose(found.entry_times_[left], study.entry_times_[left], rtol=0.01)


def test_nobody_depends_on_who_else_is_placed(study, people, parts):
    new = parts[1]
    for number, user in enumerate(new.users):
        alone = study.place(new.without(users=new.users[new.users != user]))
        assert_array_equal(alone.scores(user), people.scores(user))
        assert alone.entry_times_[0] == people.entry_times_[number]
        assert alone.abnormality_.p_value[0] == people.abnormality_.p_value[number]
        assert alone.to_frame()["q_value"][0] == people.to_frame()["q_value"][number]


def test_the_order_of_the_rows_and_the_threads_do_not_matter(study, people, parts):
    new = parts[1]
    order = np.random.default_rng(0).permutation(len(new))
    other = study.place(new.alone(order))
    assert other.to_frame().equals(people.to_frame())


def test_who_has_given_no_votes_has_the_consensus(study, parts):
    found = study.place(parts[1], users=["nobody"], with_tests=False)
    assert_array_equal(found.scores("nobody"), study.consensus_)
    assert found.threshold("nobody") == study.threshold_
    assert np.isinf(found.entry_times_[list(found.users_).index("nobody")])
    pair = [("nobody", study.items_[0], study.items_[1])]
    assert_array_equal(found.predict_proba(pair), study.predict_proba(pair))
    assert found.user_card("nobody").n_votes == 0


def test_words_and_frames_are_those_of_the_model(parts):
    X, y = columns_of(parts[0])
    words = np.array(["right", "tie", "left"])
    model = ISplitLBI(**QUICK).fit(X.to_pandas(), words[y + 1])
    found = model.place(parts[1], with_tests=False)
    pairs = [(parts[1].users[0], "item-01", "item-02"), ("item-01", "item-02", "item-03")]
    assert set(found.predict(pairs)) <= set(words)
    assert type(found.to_frame()).__module__.startswith("pandas")


# --- predictions ---------------------------------------------------------------------------


def test_predictions_are_by_the_person_and_by_users_who_would_have_voted_alike(
    study, people, parts
):
    new = parts[1]
    user = new.users[0]
    n_votes = new.votes_per_user[0]
    pairs = [(user, study.items_[0], study.items_[1]), ("stranger", *study.items_[:2])]
    own = people._people.predict_proba(pairs)[0]
    given = new.alone(new.user == 0)
    left, right = given.items[given.left], given.items[given.right]
    compared, known = [], []
    for number, one in enumerate(study.users_):
        compared.append(study.parameters_.compared_by(number).sum())
        chances = study.predict_log_proba([(one, *pair) for pair in zip(left, right, strict=True)])
        known.append(chances[np.arange(len(given)), given.outcome + 1].sum())
    counts = np.array(compared)
    weight = counts / (counts + ITEMS_OF_OTHERS) * np.exp(TRUST * np.array(known))
    of_users = study.predict_proba([(one, *study.items_[:2]) for one in study.users_])
    others = weight / weight.sum() @ of_users
    share = n_votes / (n_votes + VOTES_OF_OTHERS)
    assert_allclose(people.predict_proba(pairs)[0], share * own + (1.0 - share) * others)
    assert_array_equal(people.predict_proba(pairs)[1], study.predict_proba(pairs)[1])
    assert_allclose(people.predict_proba(pairs).sum(axis=1), 1.0)


def test_predictions_do_not_depend_on_who_else_is_asked_for_or_placed(
    study, people, parts, monkeypatch
):
    new = parts[1]
    together = people.predict_proba(new)
    monkeypatch.setattr(module, "PEOPLE_AT_ONCE", 1)
    assert_array_equal(people.predict_proba(new), together)
    for number in range(new.n_users):
        own = new.user == number
        alone = study.place(new.alone(own), with_tests=False)
        assert_allclose(alone.predict_proba(new.alone(own)), together[own], rtol=1e-14)


def test_who_was_not_placed_votes_as_the_model_says(study, people):
    pairs = [(study.users_[0], study.items_[0], study.items_[1])]
    assert_allclose(people.predict_proba(pairs), study.predict_proba(pairs))
    assert_array_equal(people.predict(pairs, "threshold"), study.predict(pairs, "threshold"))


def test_what_is_predicted_is_the_likeliest(study, people, parts):
    predicted = people.predict(parts[1])
    chances = people.predict_proba(parts[1])
    assert_array_equal(predicted, study.classes_[chances.argmax(axis=1)])
    assert np.mean(predicted == parts[1].outcome) > np.mean(
        study.predict(parts[1]) == parts[1].outcome
    )


# --- as a table ----------------------------------------------------------------------------


def test_the_table_has_a_row_per_user_with_the_columns_of_both_commands(study, people, parts):
    table = people.to_frame()
    assert table["user"].to_list() == people.users_.tolist()
    of_users = study.abnormality_.to_frame().columns + study.user_cards().to_frame().columns[1:]
    of_items = study.own_scores(study.users_[0]).to_frame().columns
    assert table.columns[: len(of_users)] == of_users
    renamed = [f"item_{name}" if name in of_users else name for name in of_items]
    assert table.columns[len(of_users) :] == renamed
    for row in table.iter_rows(named=True):
        own = people.own_scores(row["user"]).to_frame()
        assert row["item"] == own["item"].to_list()
        assert row["score"] == own["score"].to_list()
        assert row["votes"] == parts[1].votes_per_user[parts[1].users == row["user"]][0]


def test_the_rank_of_an_entry_is_that_among_the_users_of_the_model(study, people):
    for time, rank in people.to_frame()[["entry_time", "entry_rank"]].iter_rows():
        if time is None:
            assert rank is None
        else:
            assert rank == 1 + np.sum(study.entry_times_ < time)


def test_without_tests_their_columns_are_empty(study, parts):
    found = study.place(parts[1], with_tests=False)
    assert found.to_frame()["p_value"].null_count() == 4
    assert not hasattr(found, "abnormality_")
    with_cards = found.to_frame()["sharpness"]
    assert with_cards.null_count() == 0


# --- stored models -------------------------------------------------------------------------


def test_a_stored_model_places_the_same(study, people, parts, tmp_path):
    save_model(study, tmp_path / "model")
    found = load_model(tmp_path / "model").place(parts[1])
    assert found.to_frame().equals(people.to_frame())


def test_a_model_of_an_older_release_places_by_its_snapshots(study, people, parts, tmp_path):
    save_model(study, tmp_path / "model")
    for name in ("path.npz", "abnormal.npz"):
        file = tmp_path / "model" / name
        with np.load(file) as content:
            kept = {
                key: values
                for key, values in content.items()
                if not key.startswith(("course_", "ordinary_")) and key != "n_votes"
            }
        np.savez(file, **kept)
    older = load_model(tmp_path / "model")
    assert older.path_.course is None
    found = older.place(parts[1], with_tests=False)
    for user in people.users_:
        off = np.abs(found.scores(user) - people.scores(user)).max()
        assert off <= 0.05 * np.abs(people.scores(user)).max()
    with pytest.raises(ISplitLBIError, match="older release"):
        older.place(parts[1])


# --- what cannot be placed -----------------------------------------------------------------


def changed(votes, **columns):
    X, y = columns_of(votes)
    return Comparisons.from_arrays(
        **{name: X[name] for name in ("user", "left", "right")} | {"outcome": y} | columns
    )


def test_votes_on_new_items_are_refused(study, parts):
    X, _ = columns_of(parts[1])
    new = changed(parts[1], left=X["left"].replace("item-01", "item-99"))
    with pytest.raises(InvalidVotes, match=r"item 'item-99' is not among.*update the model"):
        study.place(new)


def test_ties_are_refused_where_the_model_has_none(parts):
    forced = ISplitLBI(**QUICK).fit(parts[0].alone(parts[0].outcome != 0))
    with pytest.raises(InvalidVotes, match="these votes have ties"):
        forced.place(parts[1])
    decided = parts[1].alone(parts[1].outcome != 0)
    assert forced.place(decided, with_tests=False).predict_proba(decided).shape[1] == 2


def test_features_are_in_the_units_of_the_model(parts):
    rng = np.random.default_rng(0)
    old, new = (
        changed(part, features={"length": scale * rng.normal(size=len(part))})
        for part, scale in zip(parts, (1.0, 5.0), strict=True)
    )
    model = ISplitLBI(**QUICK).fit(old)
    with pytest.raises(InvalidVotes, match="no feature length"):
        model.place(parts[1])
    found = model.place(new, with_tests=False)
    assert_array_equal(found._people.votes().features.scale, model.summary_.units.scale)
    assert np.isfinite(found.user_card(found.users_[0]).features["length"].value)


# --- update --------------------------------------------------------------------------------


def test_an_update_is_a_fit_of_all_votes_by_what_was_chosen(study, parts):
    old, new = parts
    updated = study.update(new)
    sizes = zip(study.terms_.names, study.terms_.scales, strict=True)
    scales = {name: scale for name, scale in sizes if name != "taste"}
    refitted = ISplitLBI(nu=study.nu_, kappa=study.kappa_, scales=scales, time=study.time_).fit(
        Comparisons.joined(old, new)
    )
    assert_same_fit(updated, refitted)
    assert updated.get_params() == study.get_params()
    assert updated.spreads_ == study.spreads_
    assert set(updated.users_) == {*old.users, *new.users}


def assert_same_order_of_leaving(one, other):
    """Hold two to nearly the same order, though not to the same times."""
    assert spearmanr(one.entry_times_, other.entry_times_)[0] > 0.97
    off = np.abs(one.entry_times_ / other.entry_times_ - 1.0)
    assert np.median(off) < 0.05


def test_of_very_many_votes_nothing_is_followed_after_the_time(study, parts, monkeypatch):
    whole = study.update(parts[1])
    monkeypatch.setattr(updating, "MANY_VOTES", 1)
    quick = study.update(parts[1])
    assert_array_equal(quick.consensus_, whole.consensus_)
    assert_array_equal(quick.parameters_.deviation, whole.parameters_.deviation)
    assert quick.left_consensus_ == whole.left_consensus_
    assert quick.path_.times[-1] == study.time_
    assert quick.path_.n_steps < whole.path_.n_steps
    assert_same_order_of_leaving(quick, whole)
    assert not quick._stops_at_time
    # What is done with the model later is the same.
    assert_array_equal(
        quick._fit_again(quick.votes()).parameters.deviation, whole.parameters_.deviation
    )
    here, there = (each.place(whole.votes(), with_tests=False) for each in (quick, whole))
    assert_allclose(here._people.parameters_.deviation, there._people.parameters_.deviation)
    assert_same_order_of_leaving(here, there)
    twice, again = (each.update(parts[1]) for each in (quick, whole))
    assert_array_equal(twice.parameters_.deviation, again.parameters_.deviation)


def test_chosen_anew_it_is_a_new_fit(study, parts):
    updated = study.update(parts[1], reselect=True)
    assert_same_fit(updated, ISplitLBI(n_folds=3).fit(Comparisons.joined(*parts)))
    assert updated.selection_ is not None


def test_new_items_and_words_of_outcomes_are_taken_over(parts):
    X, y = columns_of(parts[0])
    words = np.array(["right", "tie", "left"])
    model = ISplitLBI(**QUICK).fit(X, words[y + 1])
    new = Comparisons.from_arrays(["zoe"] * 3, ["item-9"] * 3, ["item-01", "item-02", "item-03"],
                                  [1, 1, 0])  # fmt: skip
    updated = model.update(new)
    assert "item-9" in updated.items_
    assert set(updated.classes_) == set(words)
    assert updated.ranking("zoe") is not None


def test_few_new_votes_leave_tests_as_they_are(study, parts):
    new = parts[1]
    some = new.alone(new.user == 0)
    updated = study.update(some)
    before, after = study.abnormality_, updated.abnormality_
    place = np.searchsorted(updated.users_, study.users_)
    assert_array_equal(after.p_value[place], before.p_value)
    assert [after.explanation[k] for k in place] == before.explanation
    newcomer = int(np.searchsorted(updated.users_, some.users[0]))
    assert after.p_value[newcomer] == study.place(some).abnormality_.p_value[0]
    assert after.ordinary is before.ordinary
    assert_array_equal(
        study.update(some, retest=True).abnormality_.n_votes, updated.summary_.votes_per_user
    )


def test_whoever_has_a_tenth_more_votes_is_tested_anew(study, parts):
    old = parts[0]
    again = old.alone(np.flatnonzero(old.user == 3)[:10])
    after = study.update(again).abnormality_
    same = after.n_votes == study.abnormality_.n_votes
    assert np.flatnonzero(~same).tolist() == [3]
    assert after.n_votes[3] == study.abnormality_.n_votes[3] + 10
    one = study.update(old.alone(np.flatnonzero(old.user == 3)[:2])).abnormality_
    assert_array_equal(one.p_value, study.abnormality_.p_value)


@pytest.mark.parametrize("many", [True, False])
def test_many_new_votes_or_new_items_mean_that_all_are_tested(study, parts, many):
    new = parts[1] if many else Comparisons.from_arrays(["z"], ["item-9"], ["item-01"], [1])
    updated = study.update(new)
    assert_array_equal(updated.abnormality_.n_votes, updated.summary_.votes_per_user)
    assert updated.abnormality_.ordinary.n_votes == updated.summary_.n_votes


def test_an_update_is_stored_and_loaded(study, parts, tmp_path):
    updated = study.update(parts[1])
    save_model(updated, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_array_equal(loaded.consensus_, updated.consensus_)
    assert loaded.abnormality_.ordinary.n_votes == updated.abnormality_.ordinary.n_votes
    described = json.loads((tmp_path / "model" / "model.json").read_text())
    assert described["settings"]["nu"] is None


def test_a_table_of_placed_people_can_be_shown_in_a_notebook(people):
    assert "PlacedUsers: 4 users" in people._repr_html_()
    assert isinstance(people.to_frame("polars"), pl.DataFrame)


def test_ties_may_come_later(parts, tmp_path):
    old = parts[0].alone(parts[0].outcome != 0)
    model = ISplitLBI(kappa=5.0, times=[0.4], time=0.7).fit(old)
    tie = Comparisons.from_arrays(["new"], ["item-01"], ["item-02"], [0])
    updated = model.update(tie)
    assert updated.classes_.tolist() == [-1, 0, 1]
    assert_allclose(updated.predict_proba(parts[1]).sum(axis=1), 1.0)
    save_model(updated, tmp_path / "model")
    assert load_model(tmp_path / "model").classes_.tolist() == [-1, 0, 1]


def test_features_mean_that_all_are_tested_because_their_units_change(parts):
    rng = np.random.default_rng(0)
    old, new = (changed(part, features={"length": rng.normal(size=len(part))}) for part in parts)
    model = ISplitLBI(kappa=5.0, times=[0.4], time=0.7).fit(old)
    updated = model.update(new.alone(new.user == 0))
    assert updated.abnormality_.ordinary.n_votes == updated.summary_.n_votes


def test_weights_without_a_unit_are_refused(study, parts):
    weighted = changed(parts[1], weight=np.full(len(parts[1]), 10.0))
    with pytest.raises(InvalidVotes, match="Leave out the weights"):
        study.place(weighted)


def test_ids_of_another_kind_can_be_placed_and_predicted(study, parts):
    X, y = columns_of(parts[1])
    numbers = Comparisons.from_arrays(np.arange(len(y)) // 40, X["left"], X["right"], y)
    found = study.place(numbers, with_tests=False)
    assert found.predict_proba([(0, "item-01", "item-02")]).shape == (1, 3)
    assert "ann" in study.place(parts[1], users="ann", with_tests=False).users_
