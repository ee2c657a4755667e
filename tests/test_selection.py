"""Choosing where to stop: curves against a count by hand, and the choice made from them."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import f1_score
from sklearn.metrics import log_loss as sklearn_log_loss

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.errors import InvalidVotes, PathFailed
from isplitlbi.estimators.isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic, link_named
from isplitlbi.model.parameters import Parameters
from isplitlbi.path import Ending
from isplitlbi.selection import (
    ESTIMATES,
    RULES,
    SCORINGS,
    Curves,
    held_out_parts,
    score_votes,
    select,
)
from isplitlbi.solvers import Dynamics, Explicit, Implicit, Reporter, State, follow
from isplitlbi.solvers.driver import Stopped
from votes import as_tuples, multiset

TIMES = np.geomspace(0.1, 1.5, 8)
DYNAMICS = Dynamics(nu=1.0, kappa=5.0)
N_FOLDS = 3
SEED = 7

every_scheme = pytest.mark.parametrize(
    "scheme", [Explicit(), Implicit()], ids=lambda scheme: type(scheme).__name__.lower()
)


def selected(votes, candidates=(DYNAMICS,), scheme=None, **options):
    """Select on few times and folds, with a fixed seed."""
    options = {"times": TIMES, "n_folds": N_FOLDS, "rng": SEED} | options
    return select(votes, Logistic(), candidates, scheme or Explicit(), **options)


def by_hand(held_out, path, time, estimate, rule):
    """Score held-out votes at one time of a path, vote by vote, in scikit-learn's terms."""
    parameters = path.at(time)
    outside = set(path.support_at(time).tolist())
    probabilities, predicted = [], []
    for user, left, right in zip(held_out.user, held_out.left, held_out.right, strict=True):
        who = user if estimate == "dense" or user in outside else -1
        scores, threshold = parameters.scores_of(who), parameters.threshold_of(who)
        margin = scores[left] - scores[right]
        wins, loses = expit(margin - threshold), expit(-margin - threshold)
        row = [loses, 1 - wins - loses, wins]
        probabilities.append(row)
        if rule == "map":
            predicted.append(np.argmax(row) - 1)
        else:
            predicted.append(0 if abs(margin) <= threshold else np.sign(margin))
    options = {"labels": [-1, 0, 1], "sample_weight": held_out.weight}
    f1s = {
        f"{kind}_f1": f1_score(
            held_out.outcome, predicted, average=kind, zero_division=0, **options
        )
        for kind in ("micro", "macro")
    }
    return f1s | {"log_loss": sklearn_log_loss(held_out.outcome, probabilities, **options)}


def assert_same_curves(one, other):
    """Assert that the curves of a candidate are equal to the last bit."""
    assert one.dynamics == other.dynamics
    np.testing.assert_array_equal(one.times, other.times)
    np.testing.assert_array_equal(one.fold_weight, other.fold_weight)
    for estimate, scoring in product(ESTIMATES, SCORINGS):
        np.testing.assert_array_equal(
            one.scores[estimate][scoring], other.scores[estimate][scoring]
        )


def assert_same_selection(one, other):
    """Assert that curves and choice are equal to the last bit."""
    assert (one.time, one.dynamics) == (other.time, other.dynamics)
    for here, there in zip(one.candidates, other.candidates, strict=True):
        assert_same_curves(here, there)


@pytest.fixture(scope="session")
def plain_votes():
    return simulate(
        n_users=6, n_items=4, votes_per_user=(25, 35), score_sd=1.0, deviation_sd=3.0,
        threshold=0.8, abnormal_share=0.3, random_state=3,
    ).votes  # fmt: skip


@pytest.fixture(scope="session")
def weighted_votes(plain_votes):
    weight = np.random.default_rng(0).lognormal(sigma=0.7, size=plain_votes.n_votes)
    return replace(plain_votes, weight=weight)


@pytest.fixture(scope="session")
def selection(plain_votes):
    return selected(plain_votes)


@pytest.fixture(scope="session")
def among_four(plain_votes):
    candidates = [Dynamics(nu, kappa) for nu in (0.2, 1.0) for kappa in (2.0, 5.0)]
    return selected(plain_votes, candidates)


def made_up(*rows):
    """Return curves with one row of scores per fold, the same for every estimate and scoring."""
    scores = {estimate: {name: np.array(rows) for name in SCORINGS} for estimate in ESTIMATES}
    return Curves(DYNAMICS, np.arange(1.0, len(rows[0]) + 1), np.ones(len(rows)), scores)


# --- the curves ----------------------------------------------------------------------------


@pytest.mark.backend
@every_scheme
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("rule", RULES)
def test_curves_equal_a_count_by_hand(request, rule, weighted, scheme):
    votes = request.getfixturevalue("weighted_votes" if weighted else "plain_votes")
    (curves,) = selected(votes, scheme=scheme, rule=rule).candidates
    # At a time when some users have left and others not; the two estimates differ there.
    index = 5
    differ = False
    for fold, (training, held_out) in enumerate(votes.folds_within_user(N_FOLDS, SEED)):
        path = follow(training, Logistic(), DYNAMICS, scheme.rough(), TIMES)
        assert 0 < len(path.support_at(TIMES[index])) < votes.n_users
        total = held_out.n_votes if held_out.weight is None else held_out.weight.sum()
        assert curves.fold_weight[fold] == pytest.approx(total)
        for estimate in ESTIMATES:
            expected = by_hand(held_out, path, TIMES[index], estimate, rule)
            found = {name: curves.scores[estimate][name][fold, index] for name in SCORINGS}
            assert found == pytest.approx(expected, rel=1e-9)
        differ |= (
            curves.scores["dense"]["log_loss"][fold, index]
            != (curves.scores["sparse"]["log_loss"][fold, index])
        )
    assert differ


def test_curves_have_a_row_per_fold_and_a_column_per_time(selection):
    (curves,) = selection.candidates
    np.testing.assert_array_equal(curves.times, TIMES)
    assert curves.fold_weight.shape == (N_FOLDS,)
    for estimate, scoring in product(ESTIMATES, SCORINGS):
        assert curves.scores[estimate][scoring].shape == (N_FOLDS, len(TIMES))
        assert curves.mean(scoring, estimate).shape == (len(TIMES),)
        assert curves.spread(scoring, estimate).shape == (len(TIMES),)


def test_the_mean_counts_each_fold_by_its_votes_and_the_spread_is_its_standard_error():
    curves = replace(made_up([1.0, 4.0], [3.0, 0.0]), fold_weight=np.array([3.0, 1.0]))
    np.testing.assert_allclose(curves.mean("log_loss"), [1.5, 3.0])
    np.testing.assert_allclose(curves.spread("log_loss"), [1.0, 2.0])


def test_one_fold_has_no_spread():
    assert np.isnan(made_up([1.0, 4.0]).spread("log_loss")).all()


def test_without_times_the_grid_is_found_from_all_votes(plain_votes):
    found = selected(plain_votes, times=None, n_folds=2)
    (curves,) = found.candidates
    assert found.time in curves.times
    assert curves.scores["dense"]["log_loss"].shape == (2, len(curves.times))
    assert np.all(np.diff(curves.times) > 0)


def test_before_anybody_leaves_the_sparse_estimate_is_the_consensus_alone(plain_votes):
    (curves,) = selected(plain_votes, times=[0.01]).candidates
    for fold, (training, held_out) in enumerate(plain_votes.folds_within_user(N_FOLDS, SEED)):
        path = follow(training, Logistic(), DYNAMICS, Explicit(), [0.01])
        assert len(path.support_at(0.01)) == 0
        alone = replace(path.at(0.01), deviation=np.zeros(path.deviation.shape[1]))
        expected = score_votes(held_out, alone, Logistic())
        assert curves.scores["sparse"]["log_loss"][fold, 0] == pytest.approx(expected["log_loss"])


@pytest.mark.parametrize("link", ["logistic", "probit", "uniform"])
def test_scores_of_votes_respect_their_weights(plain_votes, link):
    rng = np.random.default_rng(3)
    n_slots = len(plain_votes.slots.coordinate)
    consensus = np.append(rng.normal(size=plain_votes.n_items), 1.5)
    parameters = Parameters(plain_votes.slots, consensus, rng.normal(scale=0.3, size=n_slots))
    twice = rng.random(plain_votes.n_votes) < 0.3
    weighted = replace(plain_votes, weight=1.0 + twice)
    doubled = plain_votes.subset(np.append(np.arange(plain_votes.n_votes), np.flatnonzero(twice)))
    for rule in RULES:
        one = score_votes(weighted, parameters, link_named(link), rule)
        other = score_votes(doubled, parameters, link_named(link), rule)
        assert one == pytest.approx(other, rel=1e-12)


# --- the choice ----------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_chosen_time_is_the_best_of_the_mean_curve(plain_votes, scoring):
    found = selected(plain_votes, scoring=scoring)
    mean = found.chosen.mean(scoring)
    best = mean.max() if SCORINGS[scoring] else mean.min()
    assert found.scoring == scoring
    assert mean[np.flatnonzero(found.time == TIMES)] == best


@pytest.mark.parametrize(("scoring", "best"), [("log_loss", 1), ("micro_f1", 2), ("macro_f1", 2)])
def test_less_log_loss_and_more_f1_are_better_and_the_earliest_of_equals_wins(scoring, best):
    curves = made_up([0.5, 0.25, 0.75, 0.25, 0.75])
    for estimate in ESTIMATES:
        assert curves.best(scoring, estimate) == best


def test_all_candidates_are_judged_on_the_same_folds(plain_votes, among_four):
    assert len(among_four.candidates) == 4
    for curves in among_four.candidates:
        (alone,) = selected(plain_votes, [curves.dynamics]).candidates
        assert_same_curves(alone, curves)


def test_the_candidate_with_the_best_score_is_chosen(among_four):
    best = [curves.mean("log_loss").min() for curves in among_four.candidates]
    assert len(set(best)) == 4
    chosen = among_four.candidates[int(np.argmin(best))]
    assert among_four.chosen is chosen
    assert among_four.dynamics == chosen.dynamics
    assert among_four.time == chosen.times[np.argmin(chosen.mean("log_loss"))]


def test_every_candidate_finds_its_own_times(plain_votes):
    found = selected(plain_votes, [Dynamics(0.2, 2.0), Dynamics(1.0, 2.0)], times=None, n_folds=2)
    small, large = found.candidates
    assert small.times[0] != large.times[0]
    assert found.time in found.chosen.times


def test_the_same_seed_gives_the_same_selection(plain_votes, selection):
    assert_same_selection(selection, selected(plain_votes))
    assert_same_selection(selection, selected(plain_votes, rng=np.random.default_rng(SEED)))


def test_another_seed_gives_other_folds(plain_votes, selection):
    other = selected(plain_votes, rng=SEED + 1)
    assert not np.array_equal(
        other.chosen.scores["dense"]["log_loss"], selection.chosen.scores["dense"]["log_loss"]
    )


@every_scheme
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_order_of_the_votes_does_not_matter_to_the_last_bit(request, weighted, scheme):
    votes = request.getfixturevalue("weighted_votes" if weighted else "plain_votes")
    shuffled = votes.subset(np.random.default_rng(5).permutation(votes.n_votes))
    assert_same_selection(selected(votes, scheme=scheme), selected(shuffled, scheme=scheme))


@every_scheme
def test_paths_side_by_side_are_the_same_paths(plain_votes, scheme):
    candidates = [DYNAMICS, Dynamics(0.2, 5.0)]
    one = selected(plain_votes, candidates, scheme=scheme)
    assert_same_selection(one, selected(plain_votes, candidates, scheme=scheme, n_jobs=4))


# --- what can go wrong ---------------------------------------------------------------------


def test_a_path_that_fails_says_why(plain_votes):
    with pytest.raises(PathFailed) as caught:
        selected(plain_votes, scheme=Explicit(max_steps=10))
    assert str(caught.value) == Ending.STEP_LIMIT.value


def test_when_one_path_fails_the_others_end_at_their_next_time(plain_votes):
    def fail():
        raise RuntimeError("out of luck")

    told = []
    reporter = Reporter(1, told.append)
    with pytest.raises(RuntimeError, match="out of luck"):
        selected(plain_votes, alongside=[fail], reporter=reporter)
    assert len(told) < N_FOLDS * len(TIMES)
    state = State.initial(plain_votes.slots, plain_votes.n_items, 1e-3)
    with pytest.raises(Stopped):
        reporter.advance(0.1, state)


def test_work_alongside_is_done_with_the_folds(plain_votes):
    done = []
    selected(plain_votes, alongside=[lambda: done.append(1), lambda: done.append(2)], n_jobs=2)
    assert sorted(done) == [1, 2]


def test_rough_settings_change_scores_by_less_than_their_noise(plain_votes):
    (fine,) = selected(plain_votes, scheme=Implicit(1e-4)).candidates
    (usual,) = selected(plain_votes, scheme=Implicit()).candidates
    assert Implicit().rough().tol > Implicit().tol
    difference = np.abs(usual.mean("log_loss") - fine.mean("log_loss"))
    assert 0.0 < difference.max() < 0.3 * fine.spread("log_loss").min()


def test_votes_that_leave_nothing_to_hold_out_are_a_clear_error():
    one_group = Comparisons.from_arrays(
        ["ann"] * 4, ["tea"] * 4, ["milk"] * 4, [1, 0, -1, 1], group=[1] * 4
    )
    with pytest.raises(InvalidVotes, match="4 votes are too few to hold any out"):
        selected(one_group, n_folds=2)


def test_an_empty_fold_of_very_few_votes_is_left_out():
    # Two groups of one user in three folds: one fold holds out nothing.
    votes = Comparisons.from_arrays(
        ["ann"] * 4, ["tea"] * 4, ["milk"] * 4, [1, 1, 1, 0], group=[1, 1, 2, 2]
    )
    (curves,) = selected(votes, n_folds=3).candidates
    assert curves.scores["dense"]["log_loss"].shape == (2, len(TIMES))
    np.testing.assert_array_equal(curves.fold_weight, [2, 2])


@pytest.mark.parametrize("n_folds", [1, 10_000])
def test_a_number_of_folds_that_cannot_be_is_an_error(plain_votes, n_folds):
    with pytest.raises(ValueError, match=f"n_folds is {n_folds}"):
        selected(plain_votes, n_folds=n_folds)


# --- folds that are given ------------------------------------------------------------------


def assert_same_parts(some, others):
    """Assert that there are the same votes in the same parts."""
    assert len(some) == len(others)
    for one, other in zip(some, others, strict=True):
        assert [multiset(part) for part in one] == [multiset(part) for part in other]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_given_folds_are_the_parts_that_are_held_out(request, weighted):
    votes = request.getfixturevalue("weighted_votes" if weighted else "plain_votes")
    fold = np.random.default_rng(1).choice([3, 5, 9, 11], size=votes.n_votes)
    parts = held_out_parts(votes, 2, fold=fold)
    expected = [(votes.subset(fold != k), votes.subset(fold == k)) for k in (3, 5, 9, 11)]
    assert_same_parts(parts, expected)
    assert sum((multiset(held_out) for _, held_out in parts), Counter()) == multiset(votes)


def test_given_folds_may_have_names_and_go_with_their_votes(plain_votes):
    rng = np.random.default_rng(2)
    fold = rng.choice(["a", "b", "c"], size=plain_votes.n_votes)
    order = rng.permutation(plain_votes.n_votes)
    one = held_out_parts(plain_votes, 5, fold=fold)
    other = held_out_parts(plain_votes.subset(order), 5, fold=fold[order])
    assert len(one) == 3
    assert_same_parts(one, other)
    for here, there in zip(one, other, strict=True):
        for part, same in zip(here, there, strict=True):
            assert as_tuples(part) == as_tuples(same)  # and in one order
    wrong = held_out_parts(plain_votes.subset(order), 5, fold=fold)
    assert multiset(wrong[0][1]) != multiset(one[0][1])


def test_folds_that_are_drawn_do_not_depend_on_the_order_of_the_votes(plain_votes):
    order = np.random.default_rng(2).permutation(plain_votes.n_votes)
    one, other = (held_out_parts(votes, 4, 3) for votes in (plain_votes, plain_votes.subset(order)))
    assert_same_parts(one, other)
    sizes = [np.bincount(held_out.user, minlength=6) for _, held_out in one]
    assert np.ptp(sizes, axis=0).max() <= 1
    again = held_out_parts(plain_votes, 4, 4)
    assert multiset(again[0][1]) != multiset(one[0][1])


def test_folds_that_do_not_fit_the_votes_are_an_error(plain_votes):
    n = plain_votes.n_votes
    for fold in (np.zeros(n - 1), np.zeros((n, 1)), 3):
        with pytest.raises(ValueError, match=f"do not fit {n} votes"):
            held_out_parts(plain_votes, 5, fold=fold)
        with pytest.raises(ValueError, match=f"do not fit {n} votes"):
            ISplitLBI(times=TIMES).fit(plain_votes, folds=fold)


def test_one_fold_for_all_votes_leaves_nothing_to_learn_from(plain_votes):
    with pytest.raises(ValueError, match="two of them at least"):
        held_out_parts(plain_votes, 5, fold=np.zeros(plain_votes.n_votes))


def test_a_fit_is_cross_validated_on_the_folds_it_is_given(plain_votes):
    fold = np.random.default_rng(4).integers(4, size=plain_votes.n_votes)

    def scores(folds):
        model = ISplitLBI(nu=1.0, kappa=5.0, times=TIMES, n_folds=3).fit(plain_votes, folds=folds)
        assert model.time_ == model.selection_.time
        (curves,) = model.selection_.candidates
        return curves

    curves = scores(fold)
    np.testing.assert_array_equal(curves.fold_weight, np.bincount(fold))
    for k in range(4):
        training, held_out = plain_votes.subset(fold != k), plain_votes.subset(fold == k)
        path = follow(training, Logistic(), DYNAMICS, Implicit().rough(), TIMES)
        expected = by_hand(held_out, path, TIMES[3], "dense", "map")
        found = curves.scores["dense"]["log_loss"][k, 3]
        assert found == pytest.approx(expected["log_loss"], rel=1e-6)
    # Other names for the same folds are the same folds, in another order.
    renamed = scores(np.array([7, 2, 9, 4])[fold])
    for estimate, scoring in product(ESTIMATES, SCORINGS):
        np.testing.assert_array_equal(
            renamed.scores[estimate][scoring], curves.scores[estimate][scoring][[1, 3, 0, 2]]
        )
    np.testing.assert_allclose(renamed.mean("log_loss"), curves.mean("log_loss"))
    for others in (np.roll(fold, 1), None):
        assert not np.allclose(scores(others).mean("log_loss"), curves.mean("log_loss"))


def test_given_folds_are_counted_in_the_progress(plain_votes):
    told = []
    ISplitLBI(kappa=5.0, times=TIMES, n_folds=5).fit(
        plain_votes, folds=np.arange(plain_votes.n_votes) % 2, progress=told.append
    )
    assert told[-1].done == pytest.approx(1.0)
