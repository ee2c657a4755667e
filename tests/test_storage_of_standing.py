"""How surely a model's scores are known, on disk."""

import numpy as np
import pytest

from crowds import QUICK, crowd_model, reversing_crowd
from isplitlbi import ISplitLBI
from isplitlbi.errors import UnreadableModel
from isplitlbi.estimators import measured
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


def test_of_a_large_model_it_is_stored_once_it_is_known(model, tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "FEW", 1)
    fresh = ISplitLBI(**QUICK, with_tests=False).fit(model.votes())
    save_model(fresh, tmp_path / "fresh")
    assert not (tmp_path / "fresh" / "standing.npz").exists()
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


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:200]), "this model is damaged"),
        (lambda file: rewritten(file, estimate=lambda values: values[1:]), "not belong together"),
        (lambda file: rewritten(file, covariance=lambda values: values[1:]), "not belong together"),
    ],
    ids=["cut", "an item missing", "a row missing"],
)
def test_a_damaged_file_is_no_model(folder, spoil, message):
    spoil(folder / "standing.npz")
    with pytest.raises(UnreadableModel, match=message):
        load_model(folder)


def test_the_file_of_another_model_does_not_fit(folder, tmp_path):
    save_model(ISplitLBI(**QUICK).fit(reversing_crowd().votes), tmp_path / "other")
    (tmp_path / "other" / "standing.npz").replace(folder / "standing.npz")
    with pytest.raises(UnreadableModel, match="do not belong together"):
        load_model(folder)
