"""What votes tell of a user's scores, beside the loss itself."""

import numpy as np
from numpy.testing import assert_allclose

from in_camps import model_of, people
from isplitlbi.camps.ballots import Ballots
from isplitlbi.camps.told import told_by
from isplitlbi.data.splits import in_order


def ballots_of(votes):
    model, votes = model_of(votes), in_order(votes)
    return Ballots.of(votes, model.parameters_, model.link_), model, votes


def test_edges_hold_all_votes_and_none_is_of_taste():
    ballots, model, votes = ballots_of(people()[0])
    assert ballots.counts.sum() == len(votes)
    assert_allclose(ballots.offset, 0.0, atol=1e-12)  # of this model, sides and features are none
    assert_allclose(ballots.threshold, model.threshold_)
    half = np.arange(len(votes)) % 2 == 0
    both = ballots.counted(votes, half) + ballots.counted(votes, ~half)
    assert_allclose(both, ballots.counts)


def test_readings_are_the_bowl_of_the_loss_around_the_best_scores():
    ballots, model, _ = ballots_of(people(n_users=12)[0])
    variance, centre = 1.0, model.consensus_
    told = told_by(ballots, ballots.counts, centre, variance)
    for user in (0, 7):
        mine = ballots.user == user
        left, right = ballots.left[mine], ballots.right[mine]
        rows = told.owner == user
        along, precision, value = told.along[rows], told.precision[rows], told.value[rows]
        # The scores that readings and the prior agree on are where the loss and the prior do.
        system = along.T @ (along * precision[:, None]) + np.eye(8) / variance
        scores = np.linalg.solve(system, along.T @ (precision * value) + centre / variance)
        margin = scores[left] - scores[right]
        slope, curvature = ballots.bend(margin, ballots.counts, np.flatnonzero(mine))
        down = np.bincount(left, slope, 8) - np.bincount(right, slope, 8)
        assert_allclose(down + (scores - centre) / variance, 0.0, atol=1e-5)
        bend = np.zeros((8, 8))
        for one, other, sign in ((left, left, 1), (right, right, 1), (left, right, -1),
                                 (right, left, -1)):  # fmt: skip
            np.add.at(bend, (one, other), sign * curvature)
        assert_allclose(along.T @ (along * precision[:, None]), bend, atol=1e-3)


def test_information_added_up_is_that_of_all_readings():
    ballots, model, _ = ballots_of(people(n_users=12)[0])
    told = told_by(ballots, ballots.counts, model.consensus_, 1.0)
    weight = np.arange(12.0)
    expected = told.along * (weight[told.owner] / (1.0 / told.precision + 0.3))[:, None]
    found = told.together(told.information(0.3), weight)
    assert_allclose(found, told.along.T @ expected, atol=1e-9)
