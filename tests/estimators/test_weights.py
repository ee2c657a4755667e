"""Weights in any unit give the same model, and extreme ones give a finite one."""

import numpy as np
import pytest

from commands import invoke
from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.data.readers import read_votes
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.storage import load_model, save_model

UNITS = [1e-6, 1 / 260, 1e6, 1e300]
QUICK = {"with_tests": False, "n_jobs": 1, "n_folds": 2}


@pytest.fixture(scope="module")
def study():
    return simulate(n_users=12, n_items=6, votes_per_user=(15, 30), random_state=3)[0]


@pytest.fixture(scope="module")
def weight(study):
    return np.random.default_rng(0).lognormal(size=len(study))


@pytest.fixture(scope="module")
def model(study, weight):
    return fitted(study, weight)


def fitted(votes, weight=None, **settings):
    weighted = votes if weight is None else votes.changed(weight=weight)
    return ISplitLBI(**QUICK | settings).fit(weighted)


def assert_alike(one, other, tolerance=1e-9):
    for name in ("consensus", "deviation"):
        here, there = (getattr(each.parameters_, name) for each in (one, other))
        np.testing.assert_allclose(here, there, rtol=0.0, atol=tolerance)
    for name in ("entry_times_", "spreads_"):
        here, there = (getattr(each, name) for each in (one, other))
        here, there = (list(each.values()) if isinstance(each, dict) else each
                       for each in (here, there))  # fmt: skip
        np.testing.assert_allclose(here, there, rtol=1e-9)


# --- the unit ----------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
def test_a_fit_is_the_same_in_any_unit_of_weights(study, weight, model, unit):
    other = fitted(study, weight * unit)
    assert_alike(other, model)
    assert other.time_ == pytest.approx(model.time_, rel=1e-9)
    one, two = (each.leaderboard().to_frame("polars") for each in (model, other))
    for name in ("score", "votes", "wins"):
        np.testing.assert_allclose(one[name], two[name], atol=1e-9)


def test_a_power_of_two_as_unit_changes_no_bit(study, weight, model):
    other = fitted(study, weight * 2.0**-500)
    assert_alike(other, model, 0.0)
    assert other.summary_.fingerprint == model.summary_.fingerprint


@pytest.mark.parametrize("settings", [{}, {"terms": "paper"}])
def test_weights_that_are_all_the_same_are_none(study, settings):
    plain = fitted(study, **settings)
    for weight in (1.0, 2.0, 0.3, 1e-300):
        assert_alike(fitted(study, np.full(len(study), weight), **settings), plain, 0.0)


@pytest.mark.parametrize("unit", UNITS)
def test_one_ranking_for_all_is_the_same_in_any_unit_of_weights(study, weight, unit):
    one, other = (
        MarginMLE().fit(study.changed(weight=each)) for each in (weight, weight * unit)
    )  # fmt: skip
    assert_alike(one, other)


def test_the_sums_of_a_leaderboard_are_in_units_of_an_average_vote(study, weight):
    board = fitted(study, 1e6 * weight).leaderboard().to_frame("polars")
    assert board["votes"].sum() == pytest.approx(2 * len(study))


def test_the_command_line_gives_the_same_in_any_unit_and_tells_it(study, weight, tmp_path):
    names = study.users[study.user], study.items[study.left], study.items[study.right]
    said = np.array(["tie", "left", "right"])[study.outcome]
    models = {}
    for unit in (1.0, 1e6):
        lines = [
            f"{u},{a},{b},{o},{w!r}"
            for u, a, b, o, w in zip(*names, said, (unit * weight).tolist(), strict=True)
        ]
        file = tmp_path / f"votes-{unit:g}.csv"
        file.write_text("\n".join(["user,left,right,winner,weight", *lines]))
        folder = tmp_path / f"model-{unit:g}"
        told = invoke("fit", file, "-o", folder, "--threads", "1", "--folds", "2")
        assert told.exit_code == 0
        assert told.stderr.count("Only how they compare with each other counts") == 1
        models[unit] = load_model(folder)
    assert_alike(models[1.0], models[1e6])
    factor = models[1e6].summary_.weight_unit / models[1.0].summary_.weight_unit
    assert factor == pytest.approx(1e6)


# --- after the fit -----------------------------------------------------------------------------


def test_a_model_folder_keeps_the_unit(study, weight, tmp_path):
    model = fitted(study, 1e-6 * weight)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.summary_.weight_unit == model.summary_.weight_unit == model.votes().weight_unit
    np.testing.assert_array_equal(loaded.votes().weight, model.votes().weight)
    np.testing.assert_array_equal(loaded.votes().weight_as_given, 1e-6 * weight)


def test_a_model_folder_from_before_keeps_its_weights(study, tmp_path):
    as_it_was = study.changed(weight=np.full(len(study), 3.0)).in_weight_unit(1.0)
    save_model(fitted(as_it_was), tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.summary_.weight_unit == 1.0
    np.testing.assert_array_equal(loaded.votes().weight, 3.0)


def test_an_update_puts_old_and_new_votes_on_one_scale(study, weight):
    votes = study.changed(weight=1e3 * weight)
    old, new = (votes.alone(rows) for rows in (study.user < 8, study.user >= 8))
    updated = fitted(old).update(new)
    again = ISplitLBI(**QUICK | {"time": updated.time_, "nu": updated.nu_, "kappa": updated.kappa_,
                      "scales": dict(zip(updated.terms_.names[1:], updated.terms_.scales[1:],
                                         strict=True))})  # fmt: skip
    again.fit(votes)
    np.testing.assert_array_equal(updated.votes().weight, again.votes().weight)
    np.testing.assert_allclose(updated.consensus_, again.consensus_, atol=1e-9)


def test_newcomers_weigh_what_they_would_among_the_users_of_the_model(study, weight):
    models = [fitted(study, unit * weight) for unit in (1.0, 1e6)]
    some = study.user == 3
    mine = study.alone(some)
    found = [
        model.place(mine.changed(weight=unit * factor * weight[some]), with_tests=False)
        for model, unit, factor in ((models[0], 1.0, 1.0), (models[1], 1e6, 1.0),
                                    (models[0], 1.0, 5.0))
    ]  # fmt: skip
    user = mine.users[0]
    np.testing.assert_allclose(found[0].scores(user), found[1].scores(user), atol=1e-9)
    assert np.abs(found[2].scores(user) - found[0].scores(user)).max() > 1e-3


def test_folds_keep_the_weights_of_the_whole(study, weight):
    votes = study.changed(weight=weight)
    train = votes.subset(np.arange(len(votes)) % 2 == 0)
    np.testing.assert_array_equal(train.weight, votes.weight[::2])
    assert ISplitLBI(**QUICK).fit(train).summary_.weight_unit == votes.weight_unit


# --- extremes ----------------------------------------------------------------------------------

EXTREMES = {
    "two": lambda n, rng: np.where(rng.random(n) < 0.5, 1e-300, 1e300),
    "all": lambda n, rng: 10.0 ** rng.uniform(-300, 300, n),
    "one": lambda n, rng: np.where(np.arange(n) == 7, 1e9, 1e-9),
    "subnormal": lambda n, rng: rng.choice([5e-324, 1e-310, 1.7e308], n),
}


@pytest.mark.parametrize("settings", [{}, {"terms": "paper"}], ids=["all", "paper"])
@pytest.mark.parametrize("kind", EXTREMES)
def test_extreme_weights_give_finite_numbers_and_a_warning(study, kind, settings, caplog):
    weight = EXTREMES[kind](len(study), np.random.default_rng(1))
    model = fitted(study, weight, **settings)
    assert np.isfinite(model.consensus_).all() and np.ptp(model.consensus_) > 1e-3
    assert np.isfinite(model.parameters_.deviation).all()
    board = model.leaderboard().to_frame("polars")
    assert np.isfinite(board["score"].to_numpy()).all()
    assert np.isfinite(model.predict_proba(study)).all()
    is_uneven = model.summary_.n_effective < 0.1 * len(study)
    told = [each.getMessage() for each in caplog.records if "so uneven" in each.getMessage()]
    assert len(told) == is_uneven


@pytest.mark.parametrize("make", [lambda: ISplitLBI(**QUICK), MarginMLE])
def test_uneven_weights_are_told_once_by_a_fit_and_not_by_its_folds(study, make, caplog):
    weight = np.where(np.arange(len(study)) < 5, 1e6, 1.0)
    votes = study.changed(weight=weight)
    make().fit(votes)
    (told,) = [text for each in caplog.records if "so uneven" in (text := each.getMessage())]
    assert told.endswith(
        "tell about as much as 5 of equal weight would: limit the largest weights, or leave the "
        "weights out."
    )
    make().fit(votes.subset(np.arange(len(study)) % 2 == 0))
    assert sum("so uneven" in each.getMessage() for each in caplog.records) == 1


def test_counts_and_weights_together_are_the_rows_written_out(study, weight, tmp_path):
    file, n = tmp_path / "votes.csv", 60
    said = np.array(["tie", "left", "right"])[study.outcome]
    rows = [
        (study.users[study.user[k]], study.items[study.left[k]], study.items[study.right[k]],
         said[k], f"{weight[k]:.3f}")
        for k in range(n)
    ]  # fmt: skip
    header = "user,left,right,winner,weight"
    lines = [",".join(row) for row in rows]
    file.write_text("\n".join([f"{header},count", *(f"{x},{k % 3}" for k, x in enumerate(lines))]))
    counted = read_votes(file).votes
    file.write_text("\n".join([header, *(x for k, x in enumerate(lines) for _ in range(k % 3))]))
    one, other = fitted(counted), fitted(read_votes(file).votes)
    assert isinstance(counted, Comparisons)
    np.testing.assert_array_equal(one.consensus_, other.consensus_)
    np.testing.assert_array_equal(one.parameters_.deviation, other.parameters_.deviation)
