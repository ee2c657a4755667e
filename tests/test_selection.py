"""Choosing where to stop: curves, the choice made from them, and scores of votes."""

from dataclasses import replace

import numpy as np
import pytest

from isplitlbi.data.layout import Layout
from isplitlbi.model.links import Logistic, link_named
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.temperature import Powers
from isplitlbi.model.terms import PAPER
from isplitlbi.runtime.local import Local
from isplitlbi.selection import (
    ESTIMATES,
    RULES,
    SCORINGS,
    Curves,
    FoldScores,
    HeldOut,
    Selection,
    score_votes,
)
from isplitlbi.solvers import Dynamics, Implicit, PathSettings
from isplitlbi.solvers.state import State
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


# --- paths that have ended ------------------------------------------------------------------------


def ended(*rows, weight=100.0):
    """Return curves whose folds have ended where a row is NaN."""
    return replace(made_up(*rows), fold_weight=np.full(len(rows), weight))


NAN = np.nan


def test_a_time_that_some_fold_has_not_reached_is_unknown_and_never_the_best():
    curves = ended([3.0, 2.0, 4.0, NAN], [3.0, 2.0, 2.5, 0.0])
    np.testing.assert_array_equal(curves.mean("log_loss"), [3.0, 2.0, 3.25, NAN])
    assert np.isnan(curves.spread("log_loss")[-1])
    assert curves.n_known == 3
    for cautious in (False, True):
        assert curves.best("log_loss", cautious=cautious) == 1
    assert curves.best("micro_f1") == 2
    table = Selection.best_of([curves], "log_loss", "map").to_frame("polars")
    assert table["log_loss"].to_list() == [3.0, 2.0, 3.25, None]
    assert table["log_loss_se"].to_list()[3] is None
    assert table["temperature"].null_count() == 4  # nobody has told of it


def test_folds_that_ended_go_on_where_another_fold_tells_of_a_better_time_later():
    apart = [3.0, 2.0, 2.9, 1.0]
    assert ended([3.0, 2.0, 4.0, NAN], apart).ended_too_early("dense").tolist() == [0]
    assert ended(apart, [3.0, 2.0, 4.0, 5.0]).ended_too_early("dense").tolist() == []
    # Better by no more than noise: half of ten units of log-likelihood.
    nearly = [3.0, 2.0, 2.9, 1.96]
    assert ended([3.0, 2.0, 4.0, NAN], nearly).ended_too_early("dense").tolist() == []


class Bowl:
    """Stands for held-out votes whose mean loss is given."""

    def __init__(self, losses, weight):
        self.losses, self.weight = losses, weight

    def __call__(self, consensus, deviation, deviates, table, power=1.0):
        table[:] = 0.0
        return self.weight * self.losses[int(consensus[0])], 0.0, 0.0


def times_followed(losses, weight, ends_by="dense"):
    """Return how many times are scored until a path with such losses may end."""
    votes = random_votes(0, n_users=3, n_votes=40)
    settings = PathSettings(Logistic(), DYNAMICS, Implicit(), np.arange(1.0, len(losses) + 1))
    held_out = HeldOut(votes, settings, "map", Local(votes), ends_by)
    held_out._scorer = Bowl(losses, weight)
    held_out.found = FoldScores.room(len(losses), weight)
    layout = PAPER.layout(votes)
    for index in range(len(losses)):
        if held_out.observe(index, State.initial(layout, np.full(layout.vector.width, index))):
            assert np.isnan(held_out.found.losses[:, index + 1 :]).all()
            scores = held_out.found.by_name()["dense"]
            assert np.isfinite(scores["micro_f1"]).sum() == index + 1
            assert len(scores["micro_f1"]) == len(losses)
            return index + 1
    return len(losses)


def test_a_path_ends_when_its_loss_has_risen_by_more_than_noise():
    losses = [1.0, 0.5, 0.59, 0.61, 0.7, 0.4]
    assert times_followed(losses, weight=100.0) == 4  # eleven units of log-likelihood
    assert times_followed(losses, weight=10.0) == 6
    assert times_followed(losses, weight=100.0, ends_by=None) == 6
    # Of very many votes any rise is more than noise; but paths are followed to a per cent only.
    assert times_followed([1.0, 0.5, 0.504, 0.506, 0.4], weight=1e9) == 4


# --- temperature, and one ranking for all -----------------------------------------------------


def with_powers(best, bend, losses=0.6, one_ranking=None):
    """Return a selection whose folds are predicted best by such powers."""
    curves = made_up(*([losses, losses + 0.1] for _ in best))
    both = Powers(np.outer(best, [1.0, 1.0]), np.outer(bend, [1.0, 1.0]))
    curves = replace(curves, powers={"dense": both, "sparse": both})
    return Selection.best_of([curves], "log_loss", "map", one_ranking=one_ranking)


def test_the_temperature_is_that_of_the_chosen_time_and_a_column_of_the_table():
    found = with_powers([0.5, 0.5], [100.0, 300.0])
    assert found.temperature == pytest.approx(2.0)
    assert found.to_frame("polars")["temperature"].to_list() == pytest.approx([2.0, 2.0])


def test_the_temperature_of_older_models_is_unknown():
    found = Selection.best_of([made_up([0.5, 0.6])], "log_loss", "map")
    assert found.temperature is None
    assert found.one_ranking is None
    assert found.warnings() == []


@pytest.mark.parametrize(
    ("power", "bend", "message"),
    [
        (0.5, 1e4, "too sure of itself: where it says 90 %, about 75 % come true"),
        (2.0, 1e4, "not sure enough of itself: where it says 70 %, about 84 % come true"),
        (0.9, 1e4, None),
        (1.2, 1e4, None),
        (0.7, 1.0, None),  # of few votes, by chance
    ],
)
def test_a_temperature_far_from_one_is_told_unless_it_may_be_chance(power, bend, message):
    said = with_powers([power, power], [bend, bend]).warnings()
    if message is None:
        assert said == []
    else:
        (sentence,) = said
        assert message in sentence


def test_a_fit_that_one_ranking_beats_says_so():
    one_ranking = np.array([0.49, 0.51])
    (sentence,) = with_powers([1.0, 1.0], [1e4, 1e4], one_ranking=one_ranking).warnings()
    assert "One ranking for all predicts held-out votes better" in sentence
    assert "(log-loss 0.500 and 0.600; less is better)" in sentence
    by_chance = np.array([0.3, 0.8])
    assert with_powers([1.0, 1.0], [1e4, 1e4], one_ranking=by_chance).warnings() == []
    assert with_powers([1.0, 1.0], [1e4, 1e4], one_ranking=one_ranking + 0.2).warnings() == []
