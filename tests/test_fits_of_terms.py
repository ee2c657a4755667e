"""Whole fits with all terms: sizes, folds, path; on studies of all sorts, wherever it is done."""

import numpy as np
import pytest
import scipy

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.errors import UnreadableCheckpoint
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.fitting import FitSettings, fit
from isplitlbi.model.links import Logistic
from isplitlbi.model.terms import Terms
from isplitlbi.runtime import blocks
from isplitlbi.runtime.local import Local
from isplitlbi.solvers import Dynamics, newton
from isplitlbi.solvers.scales import Given
from machines import Threads
from studies import assert_same_fit
from votes import random_votes, rebuilt

QUICK = {"n_folds": 2, "n_jobs": 1, "with_tests": False}
PARTS = ("consensus", "deviation", "sparse")


def study(**others):
    options = {"n_users": 12, "n_items": 5, "votes_per_user": (20, 40), "score_sd": 1.0,
               "threshold": 0.6, "sharpness": 0.5, "side": 0.5, "random_state": 3}  # fmt: skip
    return simulate(**options | others).votes


def fitted(votes, **others):
    return ISplitLBI(**QUICK | others).fit(votes)


@pytest.fixture(scope="module")
def votes():
    return study(features={"length": 0.5})


@pytest.fixture(scope="module")
def model(votes):
    return fitted(votes)


def assert_sound(model):
    """Assert that everything is finite, probabilities among it."""
    for part in PARTS:
        assert np.isfinite(getattr(model.path_, part)).all(), part
    user = np.arange(len(model.users_))
    asked = user, 0 * user, 0 * user + 1
    margin, threshold = model.parameters_.margin_and_threshold(*asked)
    terms = model.parameters_.terms
    with np.errstate(divide="ignore"):  # of no threshold at all
        level = np.log(threshold)
    level = level if terms.has_ties else 0.0 * margin
    probability = np.exp(terms.answering(Logistic()).outcomes(margin, level))
    assert np.isfinite(probability).all()
    np.testing.assert_allclose(probability.sum(axis=0), 1.0, rtol=1e-9)
    assert terms.has_ties or not probability[1].any()


# --- what must not matter ------------------------------------------------------------------


def test_the_number_of_threads_leaves_no_trace(votes, model, monkeypatch):
    assert_same_fit(fitted(votes, n_jobs=2), model)
    monkeypatch.setattr(blocks, "EDGES_PER_BLOCK", 50)
    assert_same_fit(*(fitted(votes, n_jobs=n) for n in (1, 2)))


def test_the_order_of_rows_leaves_no_trace():
    votes = study(tie_habit=0.4)
    shuffled = rebuilt(votes, np.random.default_rng(0).permutation(len(votes)))
    one, other = fitted(votes), fitted(shuffled)
    assert_same_fit(one, other)
    assert one.path_.settings == other.path_.settings


def test_plain_loops_give_nearly_the_same_model(votes, model):
    other = fitted(votes, backend="numpy")
    np.testing.assert_allclose(other.nu_, model.nu_, rtol=1e-3)
    np.testing.assert_allclose(other.consensus_, model.consensus_, atol=0.02)
    np.testing.assert_allclose(other.time_, model.time_, rtol=0.2)


@pytest.mark.parametrize("has_ties", [True, False], ids=["ties", "forced choice"])
def test_several_machines_fit_what_one_fits(has_ties):
    votes = study(threshold=0.6 if has_ties else None)
    terms = Terms.named("all", has_ties=has_ties)
    settings = FitSettings(
        Logistic(), (Dynamics(0.3, 30.0),), Given(), terms=terms, n_folds=2, keeps_kappa=False
    )
    one = fit(votes, settings, Local(votes))
    other = fit(votes, settings, Threads(votes, 3))
    assert one.time == pytest.approx(other.time, rel=1e-6)
    assert one.dynamics.nu == pytest.approx(other.dynamics.nu, rel=1e-6)
    np.testing.assert_allclose(one.parameters.consensus, other.parameters.consensus, atol=1e-5)
    np.testing.assert_allclose(one.parameters.deviation, other.parameters.deviation, atol=1e-4)
    np.testing.assert_allclose(one.path.entry_times, other.path.entry_times, rtol=1e-3)
    for name, value in one.spreads.items():
        assert other.spreads[name] == pytest.approx(value, rel=1e-5)


# --- what is given -------------------------------------------------------------------------


def test_nu_and_scales_that_are_given_are_used_as_given(votes):
    model = fitted(votes, nu=0.4, kappa=7.0, scales={"side": 0.3, "length": 0.0})
    assert (model.nu_, model.kappa_) == (0.4, 7.0)
    terms = model.path_.terms
    assert terms.scale("side") == pytest.approx(0.3)
    assert terms.scale("length") == 0.0
    assert terms.scale("taste") == 1.0


def test_the_model_knows_what_was_chosen(votes, model):
    terms = model.path_.terms
    assert terms.names == ("taste", "sharpness", "side", "length", "threshold")
    assert terms.has_habits and terms.reference.shape == (votes.n_items,)
    assert model.parameters_.terms.scales == terms.scales
    assert model.nu_ == model.path_.settings["nu"]


# --- studies of all sorts ------------------------------------------------------------------


def test_a_forced_choice_has_no_tie_anywhere():
    votes = study(threshold=None)
    model = fitted(votes)
    assert_sound(model)
    vector = model.path_.vector
    assert not model.path_.terms.has_ties and not vector.has_habits
    assert not model.path_.consensus[:, vector.threshold].any()
    assert not model.path_.deviation[:, model.path_.slots.threshold].any()


def test_one_user_alone_is_a_study():
    model = fitted(random_votes(0, n_users=1, n_items=5, n_votes=60))
    assert_sound(model)


def test_one_vote_of_every_user_is_a_study():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 4, 40), 4 + rng.integers(0, 3, 40)
    model = fitted(Comparisons.from_arrays(np.arange(40), left, right, rng.choice([1, 0, -1], 40)))
    assert_sound(model)
    assert np.abs(model.consensus_).max() < 5.0


@pytest.mark.parametrize("ties", [False, True], ids=["forced choice", "neighbours tie"])
def test_votes_that_all_agree_leave_scores_moderate_at_all_times(ties):
    rows = [
        (f"u{user}", f"i{a}", f"i{b}", 0 if ties and b == a + 1 else 1)
        for user in range(6) for a in range(6) for b in range(a + 1, 6) for _ in range(2)
    ]  # fmt: skip
    # Half of the pairs the other way round, or everybody prefers the left.
    turned = [(u, b, a, -o) if k % 2 else (u, a, b, o) for k, (u, a, b, o) in enumerate(rows)]
    model = fitted(Comparisons.from_arrays(*zip(*turned, strict=True)))
    assert_sound(model)
    assert list(np.argsort(-model.consensus_)) == list(range(6))
    scores = np.abs(model.path_.consensus[:, model.path_.vector.scores]).max(axis=1)
    assert scores.max() < 13.0
    assert scores[-1] < 1.001 * scores[-10]  # nor do they grow with time
    last = model.path_.at(model.path_.times[-1])
    own = [last.scores_of(user) for user in range(6)]
    np.testing.assert_allclose(own, np.tile(last.common.scores, (6, 1)), atol=0.5)


def test_votes_of_only_ties_leave_scores_at_nothing():
    model = fitted(random_votes(0, tie_share=1.1))
    assert_sound(model)
    np.testing.assert_allclose(model.consensus_, 0.0, atol=1e-9)
    assert model.path_.consensus[:, model.path_.vector.threshold].max() < 10.0  # a logarithm


def test_two_items_are_a_study():
    assert_sound(fitted(random_votes(1, n_users=6, n_items=2)))
    always = Comparisons.from_arrays(np.arange(30) % 5, ["a"] * 30, ["b"] * 30, [1] * 30)
    model = fitted(always)
    assert_sound(model)
    assert np.abs(model.path_.consensus).max() < 8.0


def test_items_that_most_users_never_compare_are_ranked_with_care():
    votes = random_votes(2, n_users=30, n_items=60, n_votes=150)
    model = fitted(votes)
    assert_sound(model)
    assert np.abs(model.consensus_).max() < 3.0


def test_of_few_users_and_many_items_the_consensus_is_that_of_the_users():
    drawn = simulate(n_users=3, n_items=60, votes_per_user=(400, 400), score_sd=1.5, random_state=5)
    model = fitted(drawn.votes)
    own = np.mean([model.scores(user) for user in model.users_], axis=0)
    slope = np.polyfit(own, model.consensus_, 1)[0]
    assert 0.85 < slope < 1.1  # none of it went into a sharpness that all users share
    assert scipy.stats.kendalltau(own, model.consensus_)[0] > 0.9


def test_a_vote_counts_as_much_as_its_weight_says(votes):
    twice = votes.subset(np.tile(np.arange(len(votes)), 2))
    times = {"times": [0.3, 1.0], "time": 1.0, "nu": 0.3, "scales": dict.fromkeys(
        ("sharpness", "side", "length", "threshold"), 0.7)}  # fmt: skip
    names = votes.users[votes.user], votes.items[votes.left], votes.items[votes.right]
    features = {"length": votes.features.columns[0]}
    weighted = Comparisons.from_arrays(
        *names, votes.outcome, np.full(len(votes), 2.0), features=features
    ).in_weight_unit(1.0)
    one, other = fitted(twice, **times), fitted(weighted, **times)
    np.testing.assert_allclose(one.path_.consensus, other.path_.consensus, atol=1e-6)
    np.testing.assert_allclose(one.path_.deviation, other.path_.deviation, atol=1e-6)


def test_uneven_weights_are_sound():
    model = fitted(random_votes(5, n_users=6, n_votes=100, weighted=True))
    assert_sound(model)
    assert np.abs(model.consensus_).max() < 5.0


@pytest.mark.parametrize("names", ["taste", "sharpness", "side", "threshold", "habit"])
def test_a_term_by_itself_can_be_fitted(names):
    votes = study(tie_habit=0.3)
    model = fitted(votes, terms=names)
    assert_sound(model)
    scales = dict(zip(model.path_.terms.names, model.path_.terms.scales, strict=True))
    assert {name for name, scale in scales.items() if scale > 0.0} <= {names}


# --- where few differ by much ----------------------------------------------------------------

FEW = {"n_users": 30, "n_items": 6, "votes_per_user": (80, 100), "score_sd": 1.5, "threshold": 0.7,
       "abnormal_share": 0.2, "deviation_sd": 3.0}  # fmt: skip


@pytest.fixture(scope="module")
def few_differ():
    return simulate(**FEW, random_state=4).votes


def test_where_few_differ_nu_is_that_of_the_others_and_paths_are_less_damped(few_differ):
    model = fitted(few_differ)
    of_all = model.spreads_["taste"] ** 2 / 2.0  # a margin is between two items
    assert model.nu_ < 0.5 * of_all
    assert model.kappa_ > 40.0
    assert fitted(few_differ, kappa=30.0).kappa_ == 30.0
    assert fitted(few_differ, nu=0.3).nu_ == 0.3


def test_votes_that_count_too_much_do_not_make_everybody_differ(few_differ):
    votes = few_differ
    heavy = Comparisons.from_arrays(
        votes.users[votes.user], votes.items[votes.left], votes.items[votes.right], votes.outcome,
        np.full(len(votes), 100.0),
    )  # fmt: skip
    usual, other = fitted(votes), fitted(heavy)
    loss, of_heavy = (
        each.selection_.log_loss for each in (usual, other)
    )  # of a vote, whatever it counts
    assert of_heavy < loss + 0.08


def test_a_checkpoint_knows_whether_kappa_was_given(few_differ, tmp_path):
    ISplitLBI(**QUICK, time=0.2).fit(few_differ, checkpoints=tmp_path)
    with pytest.raises(UnreadableCheckpoint, match="other votes or settings"):
        ISplitLBI(**QUICK, time=0.2, kappa=30.0).fit(few_differ, checkpoints=tmp_path)


def test_where_nu_is_given_users_who_leave_go_as_far_as_their_votes_say(few_differ):
    narrow = fitted(few_differ, nu=1e-4, terms=["taste", "threshold"])
    assert narrow.fitted_.dynamics.reach == pytest.approx(25.0 / 1e-4)
    assert np.abs(narrow.path_.deviation[-1]).max() > 1.0


def test_users_at_a_kink_are_held_back_and_the_solution_is_the_same(monkeypatch):
    """Very many users with few votes leave at about the same time where nu is next to nothing."""
    votes = simulate(
        n_users=300, n_items=30, votes_per_user=(20, 20), score_sd=1.5, threshold=0.7,
        malicious={"reversed": 0.1}, abnormal_share=0.0, random_state=0,
    ).votes  # fmt: skip
    held_back = []
    original = newton.hold_back

    def counted(*arguments):
        held_back.append(original(*arguments))
        return held_back[-1]

    monkeypatch.setattr(blocks, "EDGES_PER_BLOCK", 1000)
    monkeypatch.setitem(newton.solve.__globals__, "hold_back", counted)
    options = {"nu": 1e-3, "time": 0.05, "times": np.geomspace(0.005, 0.2, 12)}
    found = fitted(votes, **options)
    assert sum(held_back) > 0
    monkeypatch.setitem(newton.solve.__globals__, "MOST_HELD_BACK", 0)
    plain = fitted(votes, **options)
    np.testing.assert_allclose(found.path_.consensus, plain.path_.consensus, atol=0.02)
