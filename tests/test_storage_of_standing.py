"""How surely a model's scores are known, on disk."""

import numpy as np
import pytest

from crowds import QUICK, crowd_model, reversing_crowd
from isplitlbi import ISplitLBI
from isplitlbi.errors import UnreadableModel
from isplitlbi.estimators import base, measured
from isplitlbi.storage import load_model, save_model


@pytest.fixture(scope="module")
def model():
    return crowd_model()


@pytest.fixture
def folder(model, tmp_path):
    save_model(model, tmp_path / "model")
    return tmp_path / "model"


def test_a_loaded_model_knows_where_items_stand(folder, model, monkeypatch):
    monkeypatch.setattr(measured, "footing_of", None)  # nothing is worked out again
    loaded = load_model(folder)
    for here, there in zip(loaded.standing(), model.standing(), strict=True):
        np.testing.assert_array_equal(here, there)
    assert loaded.leaderboard().to_frame().equals(model.leaderboard().to_frame())


def test_a_loaded_model_knows_the_leaderboard_without_the_unreliable(folder, model, monkeypatch):
    monkeypatch.setattr(base, "standing_of", None)  # nothing is worked out again
    loaded = load_model(folder)
    effect, expected = loaded.effect_of_leaving_out(), model.effect_of_leaving_out()
    assert effect.left_out == expected.left_out != []
    assert effect.others.to_frame().equals(expected.others.to_frame())
    assert effect.to_frame().equals(expected.to_frame())
    with pytest.raises(TypeError, match="not callable"):  # others left out are another question
        loaded.leaderboard_without(loaded.users_[:1].tolist())


def test_of_a_large_model_it_is_stored_once_it_is_known(model, tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "FEW", 1)
    fresh = ISplitLBI(**QUICK, with_tests=False).fit(model.votes())
    save_model(fresh, tmp_path / "fresh")
    assert not (tmp_path / "fresh" / "standing.npz").exists()
    assert not (tmp_path / "fresh" / "without.npz").exists()
    board = fresh.leaderboard().to_frame()
    assert load_model(tmp_path / "fresh").leaderboard().to_frame().equals(board)
    save_model(fresh, tmp_path / "known")
    assert (tmp_path / "known" / "standing.npz").exists()


def test_a_refit_forgets_where_items_stood(model):
    refitted = ISplitLBI(**QUICK, with_tests=False).fit(model.votes())
    before = refitted.standing()
    refitted.fit(reversing_crowd().votes)
    assert refitted.standing() is not before


def rewritten(file, **changed):
    with np.load(file) as content:
        arrays = dict(content)
    np.savez(file, **(arrays | {name: change(arrays[name]) for name, change in changed.items()}))


def all_but_one(values):
    return values[1:]


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("standing", lambda file: file.write_bytes(file.read_bytes()[:200]), "model is damaged"),
        ("standing", lambda file: rewritten(file, estimate=all_but_one), "not belong together"),
        ("standing", lambda file: rewritten(file, covariance=all_but_one), "not belong together"),
        ("without", lambda file: file.write_bytes(file.read_bytes()[:200]), "model is damaged"),
        ("without", lambda file: rewritten(file, left_out=all_but_one), "not belong together"),
        ("without", lambda file: rewritten(file, score=all_but_one), "not belong together"),
    ],
)
def test_a_damaged_file_is_no_model(folder, name, spoil, message):
    spoil(folder / f"{name}.npz")
    with pytest.raises(UnreadableModel, match=message):
        load_model(folder)


@pytest.mark.parametrize("name", ["standing.npz", "without.npz"])
def test_the_file_of_another_model_does_not_fit(folder, tmp_path, name):
    save_model(ISplitLBI(**QUICK).fit(reversing_crowd().votes), tmp_path / "other")
    (tmp_path / "other" / name).replace(folder / name)
    with pytest.raises(UnreadableModel, match="do not belong together"):
        load_model(folder)
