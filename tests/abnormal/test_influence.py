"""What leaving users out does to the consensus."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crowds import centred, consensus_in, forced
from isplitlbi.abnormal import Effect, find_effect
from isplitlbi.errors import InvalidVotes
from isplitlbi.model.links import Logistic
from isplitlbi.solvers import bootstrap_consensus, fit_consensus

LINK = Logistic()


def common(votes):
    return fit_consensus(votes, LINK)


def effect_on(votes, left_out, fit=common, n_draws=200):
    """Leave users out of a consensus by maximum likelihood."""
    drawn = bootstrap_consensus(votes, LINK, n_draws, 0)
    return find_effect(votes, left_out, fit(votes), fit, drawn)


@pytest.fixture(scope="module")
def effect(reversing):
    return effect_on(reversing.votes, reversing.truth.abnormal)


def test_leaving_nobody_out_changes_nothing_and_says_so(reversing):
    votes = reversing.votes
    same = effect_on(votes, np.zeros(votes.n_users, dtype=bool), n_draws=5)
    assert same.left_out == []
    assert_array_equal(same.score_without, same.score_with)
    assert_array_equal(same.rank_without, same.rank_with)
    assert_array_equal(same.tier_without, same.tier_with)
    assert (same.most_moved, same.pairs_joined, same.pairs_parted) == (0, 0, 0)
    assert same.sentence() == "Nobody was left out, so the consensus stays as it is."


def test_users_who_never_voted_can_be_left_out_and_nothing_changes(reversing):
    part = reversing.votes.subset(reversing.votes.user > 0)
    left_out = np.arange(part.n_users) == 0
    same = find_effect(part, left_out, common(part), lambda _: pytest.fail("refitted"), DRAWN)
    assert len(same.left_out) == 1
    assert_array_equal(same.score_without, same.score_with)


DRAWN = np.random.default_rng(0).normal(size=(5, 8))


def test_intervals_of_ranks_have_the_spread_of_the_draws_around_the_consensus(reversing):
    votes, everybody = reversing.votes, common(reversing.votes)
    nobody = np.zeros(votes.n_users, dtype=bool)
    here, elsewhere = (
        find_effect(votes, nobody, everybody, common, 0.05 * DRAWN + shift)
        for shift in (0.0, np.linspace(0, 9, 8))
    )
    assert_array_equal(here.rank_low, elsewhere.rank_low)
    assert_array_equal(here.rank_high, elsewhere.rank_high)
    assert np.all((here.rank_low <= here.rank_with) & (here.rank_with <= here.rank_high))


def test_leaving_users_out_of_a_forced_choice_knows_no_tiers():
    votes, truth = forced(4, 40, malicious={"reversed": 0.3})
    effect = effect_on(votes, truth.abnormal, consensus_in, n_draws=10)
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


def test_ranks_lie_in_their_intervals_but_for_few(effect):
    inside = (effect.rank_low <= effect.rank_with) & (effect.rank_with <= effect.rank_high)
    assert inside.mean() > 0.75
    assert np.all(effect.rank_low <= effect.rank_high)
    assert np.any(effect.rank_low < effect.rank_high)
    assert effect.rank_low.min() == 1
    assert effect.rank_high.max() == len(effect.items)


def test_leaving_out_everybody_is_refused(reversing):
    votes = reversing.votes
    with pytest.raises(InvalidVotes, match="nobody would be left"):
        effect_on(votes, np.ones(votes.n_users, dtype=bool), n_draws=5)


def made(*, left_out=("u",), ranks=((1, 2, 3), (1, 2, 3)), tiers=((1, 2, 3), (1, 2, 3)), at_most=3):
    """Make an effect by hand; every rank may lie between 1 and that."""
    scores = np.zeros(3)
    return Effect(
        np.array(["a", "b", "c"]), list(left_out), scores, scores, *map(np.array, ranks),
        np.ones(3, dtype=int), np.full(3, at_most), *map(np.array, tiers),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tiers", "joined", "parted"),
    [
        (((1, 2, 3), (1, 2, 3)), 0, 0),
        (((1, 1, 2), (2, 2, 3)), 0, 0),  # the same groups under other numbers
        (((1, 2, 3), (1, 1, 2)), 1, 0),
        (((1, 1, 2), (1, 2, 2)), 1, 1),
        (((1, 1, 1), (1, 2, 3)), 0, 3),
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
            "Without 1 user 2 of 3 items change their rank, by at most 2; no move goes beyond what "
            "drawing other users would do.",
        ),
        (
            made(ranks=TURNED, left_out=("u", "v", "w"), at_most=2, tiers=((1, 1, 2), (1, 2, 2))),
            "Without 3 users 2 of 3 items change their rank, by at most 2; 1 of these moves goes "
            "beyond what drawing other users would do; one pair of items moves into the same tier; "
            "one pair of items moves into different tiers.",
        ),
    ],
    ids=["nobody", "nothing", "one pair", "pairs", "within", "beyond"],
)  # fmt: skip
def test_the_sentence_says_whether_it_matters(effect, sentence):
    assert effect.sentence() == sentence
