"""In which ways users may deviate, beside the same written out in full."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi.abnormal.directions import Directions, Said
from isplitlbi.abnormal.expectation import Answers
from isplitlbi.model.links import LINKS, Logistic
from votes import random_votes


@pytest.fixture(scope="module", params=[False, True], ids=["votes", "weighted"])
def known(request):
    """Return votes with answers and directions, and some numbers per question."""
    votes = random_votes(5, n_items=7, n_votes=150, weighted=request.param)
    answers = Answers.of(votes)
    directions = Directions.of(answers, votes)
    numbers = np.random.default_rng(0).normal(size=(6, len(answers.user)))
    return votes, answers, directions, numbers


def written_out(votes, answers, apart, user):
    """Return a user's questions, with the directions of margin and threshold, column by column."""
    mine = answers.of_user(user)
    items = np.unique([answers.left[mine], answers.right[mine]])
    each = np.eye(votes.n_items)
    n_questions = mine.stop - mine.start
    by_margin = np.column_stack([
        apart[mine], np.ones(n_questions), np.zeros(n_questions),
        (each[answers.left[mine]] - each[answers.right[mine]])[:, items],
    ])  # fmt: skip
    by_level = np.zeros_like(by_margin)
    by_level[:, 2] = 1.0
    return mine, items, by_margin, by_level


def test_every_user_is_in_one_block(known):
    votes, answers, directions, _ = known
    blocks = list(directions.blocks(answers.voted, np.zeros(len(answers.user))))
    users = np.concatenate([block.users for block in blocks])
    assert_array_equal(np.sort(users), np.arange(votes.n_users))
    assert sum(len(block.question) for block in blocks) == len(answers.user)


def test_slopes_and_curvatures_are_those_of_the_directions(known):
    votes, answers, directions, (apart, by_margin, by_level, mm, mt, tt) = known
    for block in directions.blocks(answers.voted, apart):
        pulled, bent = block.pull(by_margin, by_level), block.bend(mm, mt, tt)
        for place, user in enumerate(block.users):
            mine, items, margin, level = written_out(votes, answers, apart, user)
            width = margin.shape[1]
            assert width == directions.n_columns[user]
            assert_array_equal(block.item[place, 3:width], items)
            assert_array_equal(block.item[place, width:], votes.n_items)
            assert_allclose(
                pulled[place, :width], by_margin[mine] @ margin + by_level[mine] @ level
            )
            assert_array_equal(pulled[place, width:], 0.0)
            mixed = (mt[mine, None] * margin).T @ level
            whole = (mm[mine, None] * margin).T @ margin + mixed + mixed.T
            whole += (tt[mine, None] * level).T @ level
            assert_allclose(bent[place, :width, :width], whole, atol=1e-12)


def test_deviations_move_margins_and_thresholds(known):
    votes, answers, directions, (apart, *_) = known
    rng = np.random.default_rng(1)
    for block in directions.blocks(answers.voted, apart):
        deviation = rng.normal(size=block.item.shape)
        by_margin, by_level = block.push(deviation)
        root = rng.normal(size=(len(block.users), block.width, block.width))
        covariance = root @ np.swapaxes(root, 1, 2)
        varies = block.variance(covariance)
        for place, user in enumerate(block.users):
            mine, _, margin, level = written_out(votes, answers, apart, user)
            here, width = block.row == place, margin.shape[1]
            assert_array_equal(block.question[here], np.arange(mine.start, mine.stop))
            assert_allclose(by_margin[here], margin @ deviation[place, :width])
            assert_allclose(by_level[here], level @ deviation[place, :width])
            own = covariance[place, :width, :width]
            assert_allclose(varies[here], np.einsum("qi,ij,qj->q", margin, own, margin))


def test_slopes_vary_as_votes_bend_unless_weights_differ(known):
    votes, answers, directions, _ = known
    apart, level = np.zeros(len(answers.user)), np.zeros(len(answers.user))
    said = Said.of(Logistic(), apart, level, answers.weighted, True)
    for block in directions.blocks(answers.voted, apart):
        spread = block.spread(said, answers)
        assert (spread is None) == (votes.weight is None)
        if spread is not None:
            heavier = block.bend(*(answers.weight * each for each in (said.mm, said.mt, said.tt)))
            assert_allclose(spread, heavier)
        assert block.spread(said, replace(answers, group=votes.user)) is None


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("has_ties", [True, False])
def test_what_is_said_are_log_likelihoods_and_their_slopes(link, has_ties):
    rng, h = np.random.default_rng(2), 1e-6
    margin, level = rng.normal(0, 0.5, 20), rng.normal(-0.5, 0.3, 20)
    counts = rng.integers(0, 4, size=(20, 3)) * [1, int(has_ties), 1]

    def at(dm, dl):
        return Said.of(LINKS[link](), margin + dm, level + dl, counts, has_ties)

    said = at(0.0, 0.0)
    slope = (at(h, 0.0).log_likelihood - at(-h, 0.0).log_likelihood) / (2 * h)
    assert_allclose(said.by_margin, slope, atol=1e-4)
    slope = (at(0.0, h).log_likelihood - at(0.0, -h).log_likelihood) / (2 * h)
    assert_allclose(said.by_level, slope, atol=1e-4)
    assert np.all(said.mm >= 0.0)
    assert np.all(said.tt >= 0.0)
