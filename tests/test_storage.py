"""Model folders: what is written comes back, and nothing half-made or foreign is taken for one."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from isplitlbi import ISplitLBI, storage
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Overview
from isplitlbi.errors import PlaceTaken, UnreadableModel, UnreadablePath
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.output.tables import (
    predictions_table,
    ranking_table,
    recommendations_table,
    users_table,
)
from isplitlbi.solvers import Explicit
from isplitlbi.storage import load_model, save_model
from votes import random_votes

VOTES = simulate(n_users=8, n_items=5, votes_per_user=(20, 30), random_state=3).votes
TIMES = np.geomspace(0.05, 1.5, 10)


def fitted(votes=VOTES, **settings):
    return ISplitLBI(**({"kappa": 5.0, "n_folds": 2, "times": TIMES} | settings)).fit(votes)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture
def folder(model, tmp_path):
    save_model(model, tmp_path / "model")
    return tmp_path / "model"


def assert_same_model(one, other):
    for name in ("consensus_", "entry_times_", "users_", "items_", "classes_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("time_", "nu_", "kappa_", "threshold_", "left_consensus_", "abnormal_users_"):
        assert getattr(one, name) == getattr(other, name)
    np.testing.assert_array_equal(one.parameters_.deviation, other.parameters_.deviation)
    pairs = one.votes()
    np.testing.assert_array_equal(one.predict_proba(pairs), other.predict_proba(pairs))
    assert str(one.ranking(one.users_[0])) == str(other.ranking(one.users_[0]))


# --- there and back ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{}, {"nu": [0.5, 1.0]}, {"time": 0.7}, {"link": "probit"}, {"link": Logistic()},
     {"solver": Explicit(step_scale=0.5), "time": 0.7}],
    ids=["plain", "candidates", "time", "probit", "link", "explicit"],
)  # fmt: skip
def test_a_model_comes_back_as_it_was(tmp_path, settings):
    model = fitted(**settings)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_same_model(loaded, model)
    assert loaded.decompose(2.0).abnormal.shape == model.decompose(2.0).abnormal.shape
    if model.selection_ is None:
        assert loaded.selection_ is None
    else:
        assert loaded.selection_.time == model.selection_.time
        np.testing.assert_array_equal(
            loaded.selection_.chosen.mean("micro_f1"), model.selection_.chosen.mean("micro_f1")
        )
    # It can be fitted again with the same settings, and stored again.
    assert_same_model(loaded.fit(model.votes()), model)
    save_model(loaded, tmp_path / "again")


def test_weights_and_groups_come_back(tmp_path):
    votes = random_votes(0, n_users=4, n_items=4, n_votes=60, weighted=True)
    model = fitted(votes)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.votes().weight, votes.weight)
    assert loaded.votes().group is None
    assert_same_model(loaded, model)


def test_the_folder_holds_what_it_says(folder, model):
    assert sorted(file.name for file in folder.iterdir()) == [
        "abnormal.npz", "consensus.csv", "model.json", "path.npz", "selection.npz", "users.csv",
        "votes.npz",
    ]  # fmt: skip
    described = json.loads((folder / "model.json").read_text())
    assert described["summary"]["votes"] == len(VOTES)
    assert described["chosen"] == {"time": model.time_, "nu": model.nu_, "kappa": model.kappa_}
    assert len(described["fingerprint"]) == 64
    assert pl.read_csv(folder / "consensus.csv").columns == ["tier", "item", "score"]
    users = pl.read_csv(folder / "users.csv")
    assert users.columns == users_table(model).columns
    assert users["votes"].sum() == len(VOTES)


def test_of_a_large_path_only_the_chosen_time_is_stored(tmp_path, model, monkeypatch):
    monkeypatch.setattr(storage, "MOST_SNAPSHOTS", 100.0)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_same_model(loaded, model)
    np.testing.assert_array_equal(loaded.path_.times, [model.time_])


# --- nothing is lost -----------------------------------------------------------------------


def test_an_existing_folder_is_refused_and_left_alone(folder, model):
    before = (folder / "model.json").read_bytes()
    with pytest.raises(PlaceTaken, match="exists already; choose another name or use force=True"):
        save_model(model, folder)
    assert (folder / "model.json").read_bytes() == before


def test_force_replaces_a_model_as_a_whole(folder):
    (folder / "note.txt").write_text("mine")
    save_model(fitted(nu=2.0), folder, force=True)
    assert load_model(folder).nu_ == 2.0
    assert not (folder / "note.txt").exists()
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"]


def test_force_does_not_replace_what_is_no_model(tmp_path, model):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("...")
    with pytest.raises(PlaceTaken, match="not a model folder, and is not replaced"):
        save_model(model, tmp_path / "thesis", force=True)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "..."


def test_a_writing_that_fails_leaves_the_old_model_and_nothing_else(folder, model, monkeypatch):
    def full_disk(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.np, "savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_model(model, folder, force=True)
    with pytest.raises(OSError, match="No space left"):
        save_model(model, folder.with_name("other"))
    monkeypatch.undo()
    assert_same_model(load_model(folder), model)
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"]


def test_a_rename_that_fails_puts_the_old_model_back(folder, model, monkeypatch):
    rename = storage.Path.rename

    def refuse(self, target):
        if self.name.endswith(".tmp"):
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(storage.Path, "rename", refuse)
    with pytest.raises(OSError, match="Permission denied"):
        save_model(model, folder, force=True)
    monkeypatch.undo()
    assert_same_model(load_model(folder), model)
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"]


def test_models_with_parts_of_ones_own_are_refused(tmp_path):
    class Mine(Logistic):
        name = "mine"

    model = fitted(time=0.7, backend="numpy")
    model.link = Mine()
    with pytest.raises(ValueError, match="a link of one's own"):
        save_model(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# --- what is no model ----------------------------------------------------------------------


def change(folder, **values):
    file = folder / "model.json"
    described = json.loads(file.read_text("utf-8", "surrogateescape"))
    file.write_text(json.dumps(described | values))


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (shutil.rmtree, "there is no such folder"),
        (lambda f: (f / "model.json").unlink(), "it has no model.json"),
        (lambda f: (f / "model.json").write_text("{"), "this model is damaged"),
        (lambda f: (f / "model.json").write_text("[]"), "this model is damaged"),
        (lambda f: change(f, format="another"), "this is not a model folder"),
        (lambda f: change(f, version=99), "format version 99 cannot be read here"),
        (lambda f: change(f, fingerprint="0" * 64), "its files do not belong together"),
        (lambda f: change(f, settings={"shoe_size": 43}), "this model is damaged"),
        (lambda f: (f / "votes.npz").unlink(), "this model is damaged"),
        (lambda f: cut(f / "votes.npz"), "this model is damaged"),
        (lambda f: (f / "selection.npz").unlink(), "this model is damaged"),
    ],
)
def test_what_is_no_model_says_so(folder, spoil, message):
    spoil(folder)
    with pytest.raises(UnreadableModel, match=message):
        load_model(folder)


def test_a_damaged_path_says_so(folder):
    cut(folder / "path.npz")
    with pytest.raises(UnreadablePath, match="this is not a regularization path, or it is damaged"):
        load_model(folder)


def test_a_file_is_no_model(tmp_path):
    (tmp_path / "votes.csv").write_text("user,left,right,winner\n")
    with pytest.raises(UnreadableModel, match="this is a file, not a model folder"):
        load_model(tmp_path / "votes.csv")


@pytest.mark.parametrize("stored", ["folder", "of_parts"])
def test_files_of_another_model_do_not_fit(stored, tmp_path, request):
    folder = request.getfixturevalue(stored)
    save_model(fitted(random_votes(1)), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "path.npz", folder / "path.npz")
    with pytest.raises(UnreadableModel, match="do not belong together"):
        load_model(folder)


def test_groups_come_back_with_their_names(tmp_path):
    votes = random_votes(2, group_size=3)
    save_model(fitted(votes, time=0.7), tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").votes().groups, votes.groups)


# --- a model whose votes are in parts -------------------------------------------------------


@pytest.fixture
def of_parts(model, tmp_path):
    """Return the folder of a model that holds its votes no more than one from a cluster does."""
    (tmp_path / "votes").mkdir()
    votes = model.votes()
    frame = pl.DataFrame(
        {
            "user": votes.users[votes.user],
            "left": votes.items[votes.left],
            "right": votes.items[votes.right],
            "said": [{1: "left", 0: "tie", -1: "right"}[each] for each in votes.outcome.tolist()],
        }
    )
    odd = tmp_path / "votes" / os.fsdecode(b"part-\xff.csv")  # a name that is no text
    odd.write_bytes(frame.write_csv().encode())
    parts = Parts.of(tmp_path / "votes", winner="said")
    light = clone(model).adopt(replace(model.fitted_, votes=parts), model.abnormality_)
    save_model(light, tmp_path / "of parts")
    assert not light.has_votes()
    return tmp_path / "of parts"


def test_a_model_of_parts_finds_its_votes_when_they_are_needed(of_parts, model):
    found = load_model(of_parts)
    assert users_table(found).equals(users_table(model))
    assert str(found.summary_) == str(model.summary_)
    assert not found.has_votes()
    assert_same_model(model, found)
    assert Overview.of(found.votes()).fingerprint == model.summary_.fingerprint
    assert found.has_votes()


def without(folder, file, **changed):
    """Write one of a model's files anew, with other arrays."""
    with np.load(folder / file) as content:
        arrays = dict(content)
    np.savez(folder / file, **{name: change(arrays[name]) for name, change in changed.items()},
             **{name: value for name, value in arrays.items() if name not in changed})  # fmt: skip


@pytest.mark.parametrize(
    "spoil",
    [
        lambda f: without(f, "votes.npz", votes_per_user=lambda counts: counts[1:]),
        lambda f: without(f, "votes.npz", votes_per_user=lambda counts: 3 * counts),
        lambda f: without(f, "votes.npz", n_ties=lambda n: n + 1),
        lambda f: without(f, "abnormal.npz", quality=lambda values: values[1:]),
        lambda f: change(f, chosen={"time": 0.7, "nu": 17.0, "kappa": 5.0}),
        lambda f: change(f, votes_in={"folder": "votes", "files": [], "options": {}}),
        lambda f: change(f, votes_in={"folder": "votes", "files": "p.csv", "options": {}}),
        lambda f: change(f, votes_in={"folder": "v", "files": ["p"], "options": {"shoe": 43}}),
        lambda f: change(f, votes_in={"folder": "v", "files": ["p"], "options": None}),
    ],
)
def test_a_damaged_model_of_parts_says_so(of_parts, spoil):
    spoil(of_parts)
    with pytest.raises(UnreadableModel, match=r"fit (it|the model) again"):
        load_model(of_parts)


def test_what_is_not_fitted_is_not_stored(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(ISplitLBI(), tmp_path / "model")
    for name in ("votes_", "overview_", "votes_at_hand_"):
        with pytest.raises(NotFittedError):
            getattr(ISplitLBI(), name)


# --- tables --------------------------------------------------------------------------------


def test_the_ranking_of_a_user_says_what_was_compared(model):
    assert ranking_table(model).columns == ["tier", "item", "score"]
    own = ranking_table(model, model.users_[0])
    assert own.columns == ["tier", "item", "score", "compared"]
    assert own["score"].is_sorted(descending=True)
    assert own["compared"].dtype == pl.Boolean


def test_users_stand_in_order_of_entry_and_who_stayed_has_none():
    stayed = fitted(times=[0.01, 0.4], time=0.4)
    table = users_table(stayed)
    out = int(np.isfinite(stayed.entry_times_).sum())
    assert 0 < out < len(table)
    assert table["entry_time"].null_count() == table["entry_rank"].null_count() == len(table) - out
    assert table["entry_time"][:out].is_sorted()
    assert table["entry_rank"][:out].to_list() == list(range(1, out + 1))
    assert table.filter(pl.col("abnormal"))["user"].to_list() == stayed.abnormal_users_


def test_predictions_carry_their_probabilities(model):
    pairs = pl.DataFrame(
        {"user": [model.users_[0], "nobody"], "left": [VOTES.items[0]] * 2,
         "right": [VOTES.items[1]] * 2}
    )  # fmt: skip
    table = predictions_table(model, pairs)
    assert table.columns == ["user", "left", "right", "winner", "p_left", "p_tie", "p_right"]
    chances = table.select("p_left", "p_tie", "p_right").to_numpy()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    words = np.array(["left", "tie", "right"])
    assert table["winner"].to_list() == words[chances.argmax(axis=1)].tolist()


def test_recommendations_come_with_their_distance(model):
    worst = model.ranking().items[-1]
    table = recommendations_table(model, better_than=worst)
    assert table["item"].to_list() == model.recommend(better_than=worst)
    assert (table["difference"] > 0).all()
    best = model.ranking().items[0]
    assert len(recommendations_table(model, better_than=best)) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_cannot_be_written_to_is_an_error(tmp_path, model):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        save_model(model, tmp_path / "model")
