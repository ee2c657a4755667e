"""What leaving users out does to the consensus."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crowds import centred, forced, reversing_crowd
from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.errors import InvalidVotes
from isplitlbi.estimators.effect import Effect
from isplitlbi.estimators.leaderboard import Leaderboard
from isplitlbi.estimators.margin_mle import MarginMLE


def effect_on(votes, left_out):
    """Leave users out of a consensus by maximum likelihood."""
    model = MarginMLE().fit(votes)
    users = votes.users[left_out]
    return Effect(users.tolist(), model.leaderboard(), model.leaderboard_without(users))


@pytest.fixture(scope="module")
def reversing():
    return reversing_crowd()


@pytest.fixture(scope="module")
def effect(reversing):
    return effect_on(reversing.votes, reversing.truth.abnormal)


def test_leaving_nobody_out_changes_nothing_and_says_so(reversing):
    votes = reversing.votes
    same = effect_on(votes, np.zeros(votes.n_users, dtype=bool))
    assert same.left_out == []
    assert same.others is same.everybody
    assert (same.most_moved, same.pairs_joined, same.pairs_parted) == (0, 0, 0)
    assert same.sentence() == "Nobody was left out, so the consensus stays as it is."


def test_users_who_never_voted_can_be_left_out_and_nothing_changes(reversing):
    part = reversing.votes.subset(reversing.votes.user > 0)
    same = effect_on(part, np.arange(part.n_users) == 0)
    assert len(same.left_out) == 1
    assert same.others is same.everybody


def test_leaving_users_out_of_a_forced_choice_knows_no_tiers():
    votes, truth = forced(4, 40, malicious={"reversed": 0.3})
    model = ISplitLBI(n_folds=2, with_tests=False).fit(votes)
    users = votes.users[truth.abnormal].tolist()
    effect = Effect(users, model.leaderboard(), model.leaderboard_without(users))
    assert effect.tier_with is None
    assert effect.tier_without is None
    assert (effect.pairs_joined, effect.pairs_parted) == (0, 0)
    assert "tier" not in effect.sentence()
    assert np.ptp(effect.score_without) > np.ptp(effect.score_with)


def test_leaving_out_the_reversed_moves_the_scores_towards_the_truth(reversing, effect):
    votes, truth = reversing
    place = {item: place for place, item in enumerate(votes.items)}
    true = centred(truth.scores)[[place[item] for item in effect.items]]
    error = [
        np.linalg.norm(centred(scores) - true)
        for scores in (effect.score_with, effect.score_without)
    ]
    assert error[1] < 0.5 * error[0]
    assert (effect.score_without - effect.score_with) @ true > 0
    assert effect.left_out == votes.users[truth.abnormal].tolist()
    assert effect.score_with.mean() == pytest.approx(effect.score_without.mean(), abs=1e-9)


def test_ranks_are_permutations_and_items_come_best_first(effect):
    n_items = len(effect.items)
    assert_array_equal(effect.rank_with, np.arange(1, n_items + 1))
    assert_array_equal(np.sort(effect.rank_without), effect.rank_with)
    assert np.all(np.diff(effect.score_with) <= 0)
    order = np.argsort(effect.rank_without)
    assert np.all(np.diff(effect.score_without[order]) <= 0)
    assert np.all(np.diff(effect.tier_with) >= 0)
    assert np.all(np.diff(effect.tier_without[order]) >= 0)


def test_intervals_are_those_of_the_leaderboard(reversing, effect):
    board = MarginMLE().fit(reversing.votes).leaderboard()
    assert_array_equal(effect.rank_low, board.rank_low)
    assert_array_equal(effect.rank_high, board.rank_high)
    assert np.any(effect.rank_low < effect.rank_high)


def test_the_others_have_the_leaderboard_of_their_votes_alone(reversing):
    votes, truth = reversing
    users = votes.users[truth.abnormal]
    found = MarginMLE().fit(votes).leaderboard_without(users)
    alone = MarginMLE().fit(votes.without(users=users)).leaderboard()
    assert_array_equal(found.items, alone.items)
    assert_array_equal(found.votes, alone.votes)
    assert_array_equal(found.rank_high, alone.rank_high)
    np.testing.assert_allclose(found.low, alone.low, atol=1e-6)


def test_without_the_same_users_it_is_fitted_once(reversing):
    model = MarginMLE().fit(reversing.votes)
    one, other = model.users_[:2].tolist()
    found = model.leaderboard_without([one, other])
    assert model.leaderboard_without([other, one]) is found
    assert model.leaderboard_without(one) is not found
    with pytest.raises(InvalidVotes, match="'nobody'"):
        model.leaderboard_without("nobody")


def test_leaving_out_everybody_is_refused(reversing):
    votes = reversing.votes
    with pytest.raises(InvalidVotes, match="nobody would be left"):
        effect_on(votes, np.ones(votes.n_users, dtype=bool))


def test_an_item_that_only_those_left_out_have_voted_on_is_not_ranked_without_them(reversing):
    votes = reversing.votes
    columns = (votes.users[votes.user], votes.items[votes.left], votes.items[votes.right])
    others = np.tile(votes.items, 75)
    more = (np.tile(["fan", "foe"], 300), np.repeat(["new"], 600), others)
    user, left, right = (np.concatenate(both) for both in zip(columns, more, strict=True))
    outcome = np.concatenate([votes.outcome, np.tile([1, 0, -1], 200)])
    votes = Comparisons.from_arrays(user, left, right, outcome)
    effect = effect_on(votes, np.isin(votes.users, ["fan", "foe"]))
    at = effect.items.tolist().index("new")
    assert effect.rank_with[at] > 0
    assert effect.rank_without[at] == 0
    assert "one item then has too few votes to be ranked" in effect.sentence()


def board(ranks, tiers, at_most):
    """Make a leaderboard by hand; every rank may lie between 1 and that."""
    rank, nothing = np.array(ranks), np.zeros(3)
    return Leaderboard(
        np.array(["a", "b", "c"]), rank, np.ones(3, dtype=int), np.full(3, at_most), *[nothing] * 7,
        np.array(tiers), ("", "", ""), nothing, None,
    )  # fmt: skip


def made(*, left_out=("u",), ranks=((1, 2, 3), (1, 2, 3)), tiers=((1, 2, 3), (1, 2, 3)), at_most=3):
    """Make an effect by hand."""
    return Effect(
        list(left_out), *(board(*each, at_most) for each in zip(ranks, tiers, strict=True))
    )


@pytest.mark.parametrize(
    ("tiers", "joined", "parted"),
    [
        (((1, 2, 3), (1, 2, 3)), 0, 0),
        (((1, 1, 2), (2, 2, 3)), 0, 0),  # the same groups under other numbers
        (((1, 2, 3), (1, 1, 2)), 1, 0),
        (((1, 1, 2), (1, 2, 2)), 1, 1),
        (((1, 1, 1), (1, 2, 3)), 0, 3),
        (((1, 1, 2), (1, 0, 0)), 0, 0),  # what is not ranked has no tier
    ],
)
def test_pairs_that_share_a_tier_on_one_side_only_are_counted(tiers, joined, parted):
    effect = made(tiers=tiers)
    assert (effect.pairs_joined, effect.pairs_parted) == (joined, parted)


TURNED = (1, 2, 3), (3, 2, 1)


@pytest.mark.parametrize(
    ("effect", "sentence"),
    [
        (made(left_out=()), "Nobody was left out, so the consensus stays as it is."),
        (made(), "Without 1 user the consensus has the same order and the same tiers."),
        (
            made(left_out=("u", "v"), tiers=((1, 2, 3), (1, 1, 2))),
            "Without 2 users the consensus has the same order; one pair of items moves into the "
            "same tier.",
        ),
        (
            made(tiers=((1, 1, 1), (1, 2, 3))),
            "Without 1 user the consensus has the same order; 3 pairs of items move into different "
            "tiers.",
        ),
        (
            made(ranks=TURNED),
            "Without 1 user 2 of 3 items change their rank, by at most 2; no move goes beyond the "
            "95 % interval of the rank.",
        ),
        (
            made(ranks=TURNED, left_out=("u", "v", "w"), at_most=2, tiers=((1, 1, 2), (1, 2, 2))),
            "Without 3 users 2 of 3 items change their rank, by at most 2; 1 of these moves goes "
            "beyond the 95 % interval of the rank; one pair of items moves into the same tier; "
            "one pair of items moves into different tiers.",
        ),
        (
            made(ranks=((1, 2, 3), (1, 0, 0)), tiers=((1, 2, 3), (1, 0, 0))),
            "Without 1 user the consensus has the same order and the same tiers; 2 items then have "
            "too few votes to be ranked.",
        ),
    ],
    ids=["nobody", "nothing", "one pair", "pairs", "within", "beyond", "unranked"],
)  # fmt: skip
def test_the_sentence_says_whether_it_matters(effect, sentence):
    assert effect.sentence() == sentence
