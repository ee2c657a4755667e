"""Choosing where to stop: curves, the choice made from them, and scores of votes."""

from dataclasses import replace

import numpy as np
import pytest

from isplitlbi.data.layout import Layout
from isplitlbi.model.links import link_named
from isplitlbi.model.parameters import Parameters
from isplitlbi.selection import ESTIMATES, RULES, SCORINGS, Curves, FoldScores, score_votes
from isplitlbi.solvers import Dynamics
from votes import random_votes

DYNAMICS = Dynamics(nu=1.0, kappa=5.0)


def made_up(*rows):
    """Return curves with one row of scores per fold, the same for every estimate and scoring."""
    scores = {estimate: {name: np.array(rows) for name in SCORINGS} for estimate in ESTIMATES}
    return Curves(DYNAMICS, np.arange(1.0, len(rows[0]) + 1), np.ones(len(rows)), scores)


def test_the_mean_counts_each_fold_by_its_votes_and_the_spread_is_its_standard_error():
    curves = replace(made_up([1.0, 4.0], [3.0, 0.0]), fold_weight=np.array([3.0, 1.0]))
    np.testing.assert_allclose(curves.mean("log_loss"), [1.5, 3.0])
    np.testing.assert_allclose(curves.spread("log_loss"), [1.0, 2.0])


def test_one_fold_has_no_spread():
    assert np.isnan(made_up([1.0, 4.0]).spread("log_loss")).all()


@pytest.mark.parametrize("link", ["logistic", "probit", "uniform"])
def test_scores_of_votes_respect_their_weights(link):
    rng = np.random.default_rng(3)
    plain_votes = random_votes(3, n_users=6, n_votes=180)
    vector, slots, _ = layout = Layout.of(plain_votes)
    consensus = np.append(rng.normal(size=vector.n_items), 1.5)
    deviation = rng.normal(scale=0.3, size=layout.n_slots)
    parameters = Parameters(vector, slots, consensus, deviation)
    twice = rng.random(plain_votes.n_votes) < 0.3
    weighted = replace(plain_votes, weight=1.0 + twice)
    doubled = plain_votes.subset(np.append(np.arange(plain_votes.n_votes), np.flatnonzero(twice)))
    for rule in RULES:
        one = score_votes(weighted, parameters, link_named(link), rule)
        other = score_votes(doubled, parameters, link_named(link), rule)
        assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize(("scoring", "best"), [("log_loss", 1), ("micro_f1", 2), ("macro_f1", 2)])
def test_less_log_loss_and_more_f1_are_better_and_the_earliest_of_equals_wins(scoring, best):
    curves = made_up([0.5, 0.25, 0.75, 0.25, 0.75])
    for estimate in ESTIMATES:
        assert curves.best(scoring, estimate) == best


def test_scores_of_machines_are_joined_by_the_votes_that_they_hold():
    rng = np.random.default_rng(0)
    shape = (len(ESTIMATES), 5)
    parts = [
        FoldScores(rng.random(shape), rng.integers(9, size=(*shape, 3, 3)) * 1.0, weight)
        for weight in (2.0, 0.0, 6.0)
    ]
    assert FoldScores.joined(parts[:1]) is parts[0]
    whole = FoldScores.joined(parts)
    assert whole.weight == 8.0
    np.testing.assert_allclose(whole.losses, 0.25 * parts[0].losses + 0.75 * parts[2].losses)
    np.testing.assert_array_equal(whole.tables, sum(part.tables for part in parts))
    assert whole.by_name()["sparse"]["log_loss"].shape == (5,)
