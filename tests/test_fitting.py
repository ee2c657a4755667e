"""One fit: curves against a count by hand, the choice made from them, and the order of work."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import f1_score
from sklearn.metrics import log_loss as sklearn_log_loss

from isplitlbi import ISplitLBI, fitting
from isplitlbi import selection as selection_module
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.splits import folds_within_user
from isplitlbi.errors import InvalidSetting, PathFailed, UnreadableCheckpoint
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.fitting import FitSettings, fit
from isplitlbi.model.links import Logistic
from isplitlbi.model.parameters import Parameters
from isplitlbi.path import Ending
from isplitlbi.runtime.local import Local
from isplitlbi.selection import ESTIMATES, RULES, SCORINGS, Curves, score_votes
from isplitlbi.solvers import (
    Dynamics,
    Explicit,
    Implicit,
    PathSettings,
    fit_consensus,
    follow,
)
from machines import Threads
from votes import random_votes

TIMES = np.geomspace(0.1, 1.5, 8)
DYNAMICS = Dynamics(nu=1.0, kappa=5.0)
N_FOLDS = 3
SEED = 7

every_scheme = pytest.mark.parametrize(
    "scheme", [Explicit(), Implicit()], ids=lambda scheme: type(scheme).__name__.lower()
)


def selected(votes, candidates=(DYNAMICS,), scheme=None, **options):
    """Select on few times and folds, with a fixed seed."""
    return fitted(votes, candidates, scheme, **options).selection


def fitted(votes, candidates=(DYNAMICS,), scheme=None, n_threads=1, runtime=None, **options):
    told = {name: options.pop(name) for name in ("progress", "checkpoints") if name in options}
    options = {"times": TIMES, "n_folds": N_FOLDS, "seed": SEED} | options
    settings = FitSettings(Logistic(), tuple(candidates), scheme=scheme or Explicit(), **options)
    return fit(votes, settings, runtime or Local(votes, n_threads), **told)


def followed(votes, scheme, times=TIMES):
    return follow(votes, PathSettings(Logistic(), DYNAMICS, scheme, times))


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
    for fold, (training, held_out) in enumerate(folds_within_user(votes, N_FOLDS, SEED)):
        path = followed(training, scheme.rough())
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


def test_without_times_the_grid_is_found_from_all_votes(plain_votes):
    found = selected(plain_votes, times=None, n_folds=2)
    (curves,) = found.candidates
    assert found.time in curves.times
    assert curves.scores["dense"]["log_loss"].shape == (2, len(curves.times))
    assert np.all(np.diff(curves.times) > 0)


def test_before_anybody_leaves_the_sparse_estimate_is_the_consensus_alone(plain_votes):
    (curves,) = selected(plain_votes, times=np.array([0.01])).candidates
    for fold, (training, held_out) in enumerate(folds_within_user(plain_votes, N_FOLDS, SEED)):
        path = followed(training, Explicit(), [0.01])
        assert len(path.support_at(0.01)) == 0
        alone = replace(path.at(0.01), deviation=np.zeros(path.deviation.shape[1]))
        expected = score_votes(held_out, alone, Logistic())
        assert curves.scores["sparse"]["log_loss"][fold, 0] == pytest.approx(expected["log_loss"])


# --- the choice ----------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_chosen_time_is_the_best_of_the_mean_curve(plain_votes, scoring):
    found = selected(plain_votes, scoring=scoring)
    mean = found.chosen.mean(scoring)
    best = mean.min() if scoring == "log_loss" else mean.max()
    assert found.scoring == scoring
    assert mean[np.flatnonzero(found.time == TIMES)] == best


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


def test_another_seed_gives_other_folds(plain_votes, selection):
    other = selected(plain_votes, seed=SEED + 1)
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
    assert_same_selection(one, selected(plain_votes, candidates, scheme=scheme, n_threads=4))


# --- what can go wrong ---------------------------------------------------------------------


def test_a_path_that_fails_says_why(plain_votes):
    with pytest.raises(PathFailed) as caught:
        selected(plain_votes, scheme=Explicit(max_steps=10))
    assert str(caught.value) == Ending.STEP_LIMIT.value


def test_rough_settings_change_scores_by_less_than_their_noise(plain_votes):
    (fine,) = selected(plain_votes, scheme=Implicit(1e-4)).candidates
    (usual,) = selected(plain_votes, scheme=Implicit()).candidates
    assert Implicit().rough().tol > Implicit().tol
    difference = np.abs(usual.mean("log_loss") - fine.mean("log_loss"))
    assert 0.0 < difference.max() < 0.3 * fine.spread("log_loss").min()


def test_where_nothing_can_be_held_out_the_time_is_the_first(caplog):
    one_group = Comparisons.from_arrays(
        ["ann"] * 4, ["tea"] * 4, ["milk"] * 4, [1, 0, -1, 1], group=[1] * 4
    )
    model = ISplitLBI(n_folds=2, with_tests=False).fit(one_group)
    assert model.selection_ is None and model.time_ == model.path_.times[0]
    assert "4 votes are too few to hold some out" in caplog.text


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


def test_a_fit_is_cross_validated_on_the_folds_it_is_given(plain_votes):
    fold = np.random.default_rng(4).integers(4, size=plain_votes.n_votes)

    def scores(folds):
        found = fitted(plain_votes, scheme=Implicit(), folds=folds)
        assert found.time == found.selection.time
        (curves,) = found.selection.candidates
        return curves

    curves = scores(fold)
    np.testing.assert_array_equal(curves.fold_weight, np.bincount(fold))
    for k in range(4):
        training, held_out = plain_votes.subset(fold != k), plain_votes.subset(fold == k)
        path = followed(training, Implicit().rough())
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
    fold = np.arange(plain_votes.n_votes) % 2
    fitted(plain_votes, scheme=Implicit(), n_folds=5, folds=fold, progress=told.append)
    assert told[-1].done == pytest.approx(1.0)


# --- the whole path ------------------------------------------------------------------------


def assert_same_path(one, other, atol=0.0):
    for name in ("times", "consensus", "deviation", "sparse", "entry_times"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0.0, atol=atol)
    for here, there in zip(one.slots, other.slots, strict=True):
        np.testing.assert_array_equal(here, there)


def test_a_time_that_is_given_is_on_the_path(plain_votes):
    found = fitted(plain_votes, scheme=Implicit(), time=0.77)
    assert found.selection is None
    assert found.time == 0.77 in found.path.times
    np.testing.assert_array_equal(found.parameters.consensus, found.path.at(0.77).consensus)
    assert found.votes is plain_votes
    assert found.summary.n_votes == len(plain_votes)


def test_the_path_is_the_same_beside_the_folds_and_after_them(plain_votes):
    beside = fitted(plain_votes, scheme=Implicit(), n_threads=3)
    other = Dynamics(1.0, 1e-3)  # a candidate that hardly moves is never chosen
    after = fitted(plain_votes, [DYNAMICS, other], scheme=Implicit(), n_threads=3)
    assert after.dynamics == DYNAMICS
    assert_same_path(beside.path, after.path)
    assert_same_path(beside.path, followed(plain_votes, Implicit()))


def test_progress_goes_from_nothing_to_all_whatever_is_fitted(plain_votes):
    for options in ({}, {"time": 0.5}, {"candidates": [DYNAMICS, Dynamics(0.2, 5.0)]}):
        told = []
        fitted(plain_votes, scheme=Implicit(), progress=told.append, **options)
        done = [each.done for each in told]
        assert done == sorted(done)
        assert done[0] < 0.2
        assert done[-1] == pytest.approx(1.0)


def test_several_candidates_need_cross_validation():
    with pytest.raises(InvalidSetting, match="leave time unset"):
        FitSettings(Logistic(), (DYNAMICS, Dynamics(0.2, 5.0)), time=1.0)


def test_checkpoints_belong_to_their_settings(plain_votes, tmp_path):
    one = fitted(plain_votes, scheme=Implicit(), time=0.5, checkpoints=tmp_path)
    again = fitted(plain_votes, scheme=Implicit(), time=0.5, checkpoints=tmp_path)
    assert_same_path(one.path, again.path)
    for changed in ({"rule": "threshold"}, {"seed": 3}, {"times": TIMES[:-1]}):
        with pytest.raises(UnreadableCheckpoint, match="belong to other votes or settings"):
            fitted(plain_votes, scheme=Implicit(), time=0.5, checkpoints=tmp_path, **changed)
    with pytest.raises(InvalidSetting, match="checkpoints need a random_state"):
        fitted(plain_votes, scheme=Implicit(), seed=None, checkpoints=tmp_path / "other")


# --- several machines ----------------------------------------------------------------------


@pytest.mark.parametrize("n_machines", [1, 3])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_several_machines_fit_what_one_fits(request, n_machines, weighted):
    votes = request.getfixturevalue("weighted_votes" if weighted else "plain_votes")
    options = {"scheme": Implicit(), "times": None, "n_folds": 2}
    here = fitted(votes, **options)
    there = fitted(votes, runtime=Threads(votes, n_machines), **options)
    assert there.time == pytest.approx(here.time, rel=1e-12)
    assert_same_path(here.path, there.path, atol=1e-8)
    for estimate, scoring in product(ESTIMATES, SCORINGS):
        np.testing.assert_allclose(
            there.selection.chosen.scores[estimate][scoring],
            here.selection.chosen.scores[estimate][scoring], atol=1e-8,
        )  # fmt: skip


def test_a_path_of_which_few_snapshots_come_back_is_the_same(plain_votes, monkeypatch, tmp_path):
    monkeypatch.setattr(fitting, "MOST_SNAPSHOTS", 0.0)
    options = {"scheme": Implicit(), "time": TIMES[3], "snapshots": tmp_path}
    there = fitted(plain_votes, runtime=Threads(plain_votes, 2), **options)
    here = fitted(plain_votes, **options | {"snapshots": None})
    assert there.path.times.tolist() == [TIMES[3]]
    assert (tmp_path / "deviation.npy").exists()
    for name in ("consensus", "deviation"):
        one, other = (getattr(found.parameters, name) for found in (here, there))
        np.testing.assert_allclose(one, other, atol=1e-8)
    np.testing.assert_allclose(there.path.entry_times, here.path.entry_times, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": np.zeros(3)}, "folds cannot be given"),
        ({"seed": None}, "needs a random_state"),
        ({"scheme": Explicit()}, "only the implicit solver"),
    ],
)
def test_what_several_machines_cannot_do_is_told(plain_votes, options, message):
    with pytest.raises(InvalidSetting, match=message):
        fitted(plain_votes, runtime=Threads(plain_votes, 2), **{"scheme": Implicit()} | options)


@pytest.mark.parametrize("n_machines", [1, 3])
def test_a_fit_may_stop_at_a_given_time_wherever_it_is_done(plain_votes, n_machines):
    runtime = Threads(plain_votes, n_machines) if n_machines > 1 else None
    given = {"scheme": Implicit(), "time": TIMES[4]}
    part = fitted(plain_votes, runtime=runtime, stops_at_time=True, **given)
    whole = fitted(plain_votes, **given)
    np.testing.assert_array_equal(part.path.times, TIMES[:5])
    np.testing.assert_allclose(part.parameters.consensus, whole.parameters.consensus, atol=1e-9)
    np.testing.assert_allclose(part.parameters.deviation, whole.parameters.deviation, atol=1e-9)
    later = whole.path.entry_times > TIMES[4]
    np.testing.assert_allclose(
        part.path.entry_times[~later], whole.path.entry_times[~later], rtol=1e-9
    )
    assert np.all(part.path.entry_times[later] > TIMES[4])


@pytest.mark.parametrize("n_votes", [1, 2, 4])
def test_too_few_votes_to_choose_a_time_take_the_first(n_votes, caplog):
    votes = random_votes(3, n_users=2, n_items=3, n_votes=n_votes)
    model = ISplitLBI(with_tests=False).fit(votes)
    assert model.selection_ is None and model.time_ == model.path_.times[0]
    assert model.left_consensus_ == [] and np.isfinite(model.consensus_).all()
    assert f"{n_votes} vote" in caplog.text and "too few to hold some out" in caplog.text
    assert "Give more votes, or set the time" in caplog.text


def test_folds_that_somebody_asked_for_are_not_left_out_in_silence():
    votes = random_votes(3, n_users=2, n_items=3, n_votes=4)
    with pytest.raises(InvalidSetting, match="n_folds is 6, but there are only 4 votes"):
        ISplitLBI(n_folds=6).fit(votes)


# --- paths that end when they have passed their best --------------------------------------------


def through_all_times(monkeypatch):
    monkeypatch.setattr(selection_module, "ENDED_BY", np.inf)


FAR = [Dynamics(10.0, 30.0)]  # people go so far that they are soon predicted worse
STUDIES = {
    "few differ": {"n_users": 20, "n_items": 8, "votes_per_user": (30, 80)},
    "tastes": {"n_users": 15, "n_items": 10, "votes_per_user": (40, 90), "taste_sd": 0.6},
    "small tastes": {"n_users": 30, "n_items": 12, "votes_per_user": (30, 60), "taste_sd": 0.3,
                     "abnormal_share": 0.0},
    "no ties": {"n_users": 8, "n_items": 30, "votes_per_user": (80, 120), "threshold": None,
                "abnormal_share": 0.0},
}  # fmt: skip


@pytest.mark.parametrize("design", STUDIES.values(), ids=STUDIES)
def test_folds_that_end_early_choose_the_time_of_those_that_do_not(design, monkeypatch):
    votes = simulate(random_state=1, **design).votes
    ending = ISplitLBI(with_tests=False, n_jobs=1).fit(votes)
    through_all_times(monkeypatch)
    whole = ISplitLBI(with_tests=False, n_jobs=1).fit(votes)
    assert_same_path(ending.path_, whole.path_, atol=0.0)
    assert ending.time_ == whole.time_
    one, other = ending.selection_.chosen, whole.selection_.chosen
    assert one.n_known < other.n_known == len(one.times) == len(ending.path_.times)
    for estimate, scoring in product(ESTIMATES, SCORINGS):
        np.testing.assert_array_equal(
            one.scores[estimate][scoring][:, : one.n_known],
            other.scores[estimate][scoring][:, : one.n_known],
        )
    assert ending.selection_.temperature == whole.selection_.temperature


def test_folds_whose_loss_rises_and_falls_again_are_followed_to_the_end(monkeypatch):
    """Many who vote for one side leave first, and make everybody's predictions worse at first."""
    votes = simulate(
        n_users=80, n_items=40, votes_per_user=(4, 16), abnormal_share=0.5, deviation_sd=1.0,
        threshold=0.3, sharpness=0.3, malicious={"always-left": 0.2}, random_state=4,
    ).votes  # fmt: skip
    ending = ISplitLBI(with_tests=False, n_jobs=1).fit(votes)
    through_all_times(monkeypatch)
    whole = ISplitLBI(with_tests=False, n_jobs=1).fit(votes)
    assert ending.time_ == whole.time_
    monkeypatch.undo()
    monkeypatch.setattr(Curves, "ended_too_early", lambda *_: np.arange(0))
    hasty = ISplitLBI(with_tests=False, n_jobs=1).fit(votes)
    assert hasty.time_ < whole.time_


def test_folds_of_several_candidates_end_each_for_itself(plain_votes, monkeypatch):
    candidates = [Dynamics(nu, 30.0) for nu in (0.3, 10.0)]
    options = {"scheme": Implicit(), "times": None}
    ending = fitted(plain_votes, candidates, **options).selection
    through_all_times(monkeypatch)
    whole = fitted(plain_votes, candidates, **options).selection
    assert (ending.time, ending.dynamics) == (whole.time, whole.dynamics)
    assert min(each.n_known for each in ending.candidates) < 60


@pytest.mark.parametrize("scoring", ["micro_f1", "macro_f1"])
def test_no_fold_ends_early_where_the_time_is_not_chosen_by_log_loss(plain_votes, scoring):
    found = fitted(plain_votes, scheme=Implicit(), times=None, scoring=scoring).selection
    assert found.chosen.n_known == len(found.chosen.times)


def test_folds_that_ended_too_early_are_followed_to_the_end(plain_votes, monkeypatch):
    options = {"scheme": Implicit(), "times": None}
    ending = fitted(plain_votes, FAR, **options).selection.chosen
    assert ending.n_known < len(ending.times)
    monkeypatch.setattr(Curves, "ended_too_early", lambda *_: np.arange(N_FOLDS))
    told = []
    again = fitted(plain_votes, FAR, progress=told.append, **options).selection.chosen
    assert told[-1].done == pytest.approx(1.0)
    through_all_times(monkeypatch)
    assert_same_curves(again, fitted(plain_votes, FAR, **options).selection.chosen)


@pytest.mark.parametrize("n_machines", [1, 3])
def test_several_machines_end_a_path_at_the_same_time(plain_votes, n_machines):
    options = {"scheme": Implicit(), "times": None}
    here = fitted(plain_votes, FAR, **options).selection
    machines = Threads(plain_votes, n_machines)
    there = fitted(plain_votes, FAR, runtime=machines, **options).selection
    assert there.chosen.n_known == here.chosen.n_known < len(here.chosen.times)
    assert there.temperature == pytest.approx(here.temperature, rel=1e-6)
    assert there.one_ranking == pytest.approx(here.one_ranking, rel=1e-6)
    np.testing.assert_allclose(there.chosen.fold_weight, here.chosen.fold_weight)


# --- how sure predictions are, beside one ranking for all ---------------------------------------


def log_probabilities(votes, parameters):
    """Return those of what was voted, and of all outcomes: left, tie, right."""
    scores = [parameters.scores_of(user) for user in range(votes.n_users)]
    margin = np.array([
        scores[user][left] - scores[user][right]
        for user, left, right in zip(votes.user, votes.left, votes.right, strict=True)
    ])  # fmt: skip
    threshold = np.array([parameters.threshold_of(user) for user in votes.user])
    log = Logistic().log_probabilities(margin, threshold)
    return log[np.arange(len(votes)), 1 - votes.outcome], log


@pytest.mark.backend
def test_the_temperature_is_the_best_for_the_votes_of_all_folds(plain_votes):
    found = selected(plain_votes, scheme=Implicit())
    parts = []
    for training, held_out in folds_within_user(plain_votes, N_FOLDS, SEED):
        path = followed(training, Implicit().rough())
        parts.append(log_probabilities(held_out, path.at(found.time)))
    happened, log = (np.concatenate(each) for each in zip(*parts, strict=True))
    powers = np.exp(np.linspace(-1.0, 1.0, 2001))
    losses = [np.sum(np.log(np.exp(p * log).sum(axis=1)) - p * happened) for p in powers]
    assert found.temperature == pytest.approx(1.0 / powers[np.argmin(losses)], rel=0.02)


def test_one_ranking_is_fitted_and_scored_on_the_same_folds(plain_votes):
    found = selected(plain_votes, scheme=Implicit())
    losses = []
    for training, held_out in folds_within_user(plain_votes, N_FOLDS, SEED):
        consensus = fit_consensus(training, Logistic(), DYNAMICS.delta)
        alike = Parameters.of_consensus(held_out, consensus)
        losses.append(-np.mean(log_probabilities(held_out, alike)[0]))
    np.testing.assert_allclose(found.one_ranking_by_fold, losses, rtol=1e-8)
    assert found.one_ranking == pytest.approx(np.average(losses, weights=found.chosen.fold_weight))


def test_a_fit_warns_of_predictions_that_are_too_sure_and_of_rankings_that_do_not_help(caplog):
    design = {"n_users": 6, "n_items": 40, "votes_per_user": (60, 80), "threshold": None}
    votes = simulate(abnormal_share=0.0, random_state=0, score_sd=0.5, **design).votes
    # Far too large a prior for people who are all alike.
    model = ISplitLBI(with_tests=False, nu=30.0, scales={"sharpness": 0.0, "side": 0.0}).fit(votes)
    assert model.selection_.temperature > 1.2
    assert model.selection_.log_loss > model.selection_.one_ranking
    for sentence in model.selection_.warnings():
        assert sentence in caplog.messages
    assert len(model.selection_.warnings()) == 2
