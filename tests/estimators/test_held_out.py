"""Which of two models predicts other votes better."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.errors import InvalidVotes
from isplitlbi.estimators.held_out import Paired, predict_both
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.metrics import log_loss
from studies import QUICK


def study(seed=0, threshold=0.5):
    return simulate(
        n_users=8, n_items=4, votes_per_user=(40, 40), score_sd=1.5, threshold=threshold,
        abnormal_share=0.0, random_state=seed,
    ).votes  # fmt: skip


@pytest.fixture(scope="module")
def models():
    votes = study()
    return MarginMLE().fit(votes.subset(np.arange(20))), MarginMLE().fit(votes)


def held_out(seed=1):
    votes = study(seed)
    names = np.array(["new", *study().users[1:]], dtype=object)  # one whom nobody knows
    columns = (names[votes.user], votes.items[votes.left], votes.items[votes.right])
    return Comparisons.from_arrays(*columns, votes.outcome)


def test_figures_are_those_of_each_model_by_itself(models):
    votes = held_out()
    found = predict_both(*models, votes)
    for model, loss, accuracy in zip(
        models, found.log_loss[:2], found.accuracy[:2], strict=True
    ):  # fmt: skip
        chances = model.predict_log_proba(votes)[:, ::-1]  # left, tie, right
        assert loss == pytest.approx(log_loss(votes.outcome, chances))
        assert accuracy == pytest.approx(model.score(votes))
    assert (found.n_votes, found.n_users) == (len(votes), 8)
    assert (found.n_unknown_before, found.n_unknown_after) == (1, 1)
    assert found.n_unknown_items == found.n_ties == 0


def test_votes_on_items_that_a_model_does_not_know_are_left_out_and_counted(models):
    some = Comparisons.from_arrays(
        ["a"] * 3, ["item-01", "rum", "item-02"], ["item-02", "item-01", "item-01"], [1, 1, 0]
    )
    found = predict_both(*models, some)
    assert (found.n_votes, found.n_unknown_items) == (2, 1)
    assert "1 vote was left out" in " ".join(found.remarks())


def test_ties_are_left_out_where_a_model_has_none(models):
    forced = ISplitLBI(**QUICK).fit(study(threshold=None))
    votes = held_out()
    found = predict_both(models[1], forced, votes)
    assert found.n_ties == int(np.sum(votes.outcome == 0)) > 0
    assert found.n_votes == len(votes) - found.n_ties
    assert "ties were left out" in " ".join(found.remarks())


def test_votes_that_a_model_was_fitted_on_are_counted_and_said(models):
    votes = study()
    found = predict_both(*models, votes)
    assert found.n_trained_after == len(votes)
    assert 20 <= found.n_trained_before < len(votes)
    assert "a fit predicts its own votes too well" in " ".join(found.remarks())


def test_nothing_to_predict_is_an_error(models):
    with pytest.raises(InvalidVotes, match="Give votes on items that both models have"):
        predict_both(*models, Comparisons.from_arrays(["a"], ["rum"], ["gin"], [1]))


def test_ids_that_are_numbers_here_and_texts_there_are_the_same():
    votes = study()
    numbers = Comparisons.from_arrays(votes.user, votes.left, votes.right, votes.outcome)
    texts = Comparisons.from_arrays(
        *(each.astype(str).astype(object) for each in (votes.user, votes.left, votes.right)),
        votes.outcome,
    )
    model = MarginMLE().fit(numbers)
    found = predict_both(model, model, texts)
    assert found.n_unknown_before == found.n_unknown_items == 0
    assert found.log_loss == predict_both(model, model, numbers).log_loss


def test_one_model_beside_itself_predicts_alike(models):
    found = predict_both(models[1], models[1], held_out())
    assert found.log_loss[2:] == found.accuracy[2:] == (0.0, 0.0, 0.0)
    assert "predict these votes alike" in found.sentence()


def test_the_better_model_is_named_where_users_agree():
    votes = study()
    columns = votes.users[votes.user], votes.items[votes.left], votes.items[votes.right]
    turned = Comparisons.from_arrays(*columns, -votes.outcome)
    wrong, right = MarginMLE().fit(turned), MarginMLE().fit(votes)
    assert "The fit after predicts" in predict_both(wrong, right, votes).sentence()
    assert "The fit before predicts" in predict_both(right, wrong, votes).sentence()


@given(st.integers(0, 1000), st.integers(2, 6))
def test_a_user_who_votes_twice_as_often_is_still_one_user(seed, n_users):
    rng = np.random.default_rng(seed)
    before, after = rng.random((2, n_users))
    once = Paired.of(before, after, np.ones(n_users), np.arange(n_users, dtype=np.int32))
    both = [np.tile(each, 2) for each in (before, after)]
    twice = Paired.of(*both, np.ones(2 * n_users), np.tile(np.arange(n_users, dtype=np.int32), 2))
    assert twice == pytest.approx(once)


def test_of_a_single_user_there_is_no_interval():
    found = Paired.of(np.zeros(3), np.ones(3), np.ones(3), np.zeros(3, dtype=np.int32))
    assert found == (0.0, 1.0, 1.0, None, None)
