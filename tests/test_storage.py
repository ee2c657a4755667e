"""Model folders: what is written comes back, and nothing half-made or foreign is taken for one."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from isplitlbi import ISplitLBI, MarginMLE, PerUser, storage
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Summary
from isplitlbi.errors import PlaceTaken, UnreadableModel, UnreadablePath
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.output.tables import predictions_table, users_table
from isplitlbi.output.words import held_out_in_words
from isplitlbi.solvers import Explicit
from isplitlbi.storage import load_model, save_model
from studies import QUICK, columns_of
from votes import assert_same, random_votes

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
    for name in ("consensus_", "entry_times_", "users_", "items_", "classes_", "habits_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("time_", "nu_", "kappa_", "threshold_", "side_", "spreads_", "left_consensus_"):
        assert getattr(one, name) == getattr(other, name)
    assert one.terms_.as_dict() == other.terms_.as_dict()
    if hasattr(one, "abnormal_users_") or hasattr(other, "abnormal_users_"):
        assert one.abnormal_users_ == other.abnormal_users_
    np.testing.assert_array_equal(one.parameters_.deviation, other.parameters_.deviation)
    pairs = one.votes()
    np.testing.assert_array_equal(one.predict_proba(pairs), other.predict_proba(pairs))
    assert str(one.ranking(one.users_[0])) == str(other.ranking(one.users_[0]))


# --- there and back ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text", "integers", "integers and none"])
def test_ids_of_votes_come_back_and_change_nothing_else(folder, model, tmp_path, kind):
    ids = pl.Series("id", [7 - n if n or kind != "integers and none" else None
                           for n in range(len(VOTES))])  # fmt: skip
    ids = ids.cast(pl.String) if kind == "text" else ids
    named = replace(model.fitted_, votes=VOTES.changed(id=ids))
    save_model(clone(model).adopt(named), tmp_path / "named")
    back = load_model(tmp_path / "named")
    assert back.votes().id.equals(ids)
    assert back.votes().id.dtype == ids.dtype
    assert back.summary_.fingerprint == load_model(folder).summary_.fingerprint
    assert load_model(folder).votes().id is None


def test_votes_of_which_none_has_an_id_come_back_without(model, tmp_path):
    nobody = pl.Series("id", [None] * len(VOTES), dtype=pl.String)
    named = replace(model.fitted_, votes=VOTES.changed(id=nobody))
    save_model(clone(model).adopt(named), tmp_path / "named")
    assert load_model(tmp_path / "named").votes().id is None


@pytest.mark.parametrize(
    "settings",
    [{}, {"nu": [0.5, 1.0], "terms": "paper"}, {"time": 0.7}, {"link": "probit"},
     {"link": Logistic()}, {"solver": Explicit(step_scale=0.5), "time": 0.7, "terms": "paper"},
     {"terms": ["taste", "side"], "scales": {"side": 0.5}}, {"sides": "unknown"}],
    ids=["plain", "candidates", "time", "probit", "link", "explicit", "some terms", "no sides"],
)  # fmt: skip
def test_a_model_comes_back_as_it_was(tmp_path, settings):
    model = fitted(**settings)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_same_model(loaded, model)
    assert loaded.decompose(2.0).strong.shape == model.decompose(2.0).strong.shape
    if model.selection_ is None:
        assert loaded.selection_ is None
    else:
        assert loaded.selection_.time == model.selection_.time
        assert loaded.selection_.temperature == model.selection_.temperature is not None
        assert loaded.selection_.one_ranking == model.selection_.one_ranking is not None
        assert loaded.selection_.warnings() == model.selection_.warnings()
        np.testing.assert_array_equal(
            loaded.selection_.chosen.mean("micro_f1"), model.selection_.chosen.mean("micro_f1")
        )
    # It can be fitted again with the same settings, and stored again.
    assert_same_model(loaded.fit(model.votes()), model)
    save_model(loaded, tmp_path / "again")


def test_a_folder_of_an_older_release_does_not_know_the_temperature(tmp_path):
    save_model(fitted(), tmp_path / "model")
    file = tmp_path / "model" / "selection.npz"
    with np.load(file) as content:
        known = {name: content[name] for name in content.files}
    old = {name: known[name] for name in known if "power" not in name and name != "one_ranking"}
    assert len(old) < len(known)
    np.savez(file, **old)
    loaded = load_model(tmp_path / "model")
    assert loaded.selection_.temperature is None
    assert loaded.selection_.one_ranking is None
    assert loaded.selection_.warnings() == []
    assert loaded.selection_.to_frame("polars")["temperature"].is_null().all()
    assert "temperature" not in held_out_in_words(loaded.selection_)


def test_the_day_of_the_fit_and_the_name_of_the_file_come_back(tmp_path):
    file = tmp_path / "tea.csv"
    pl.DataFrame(
        {"user": ["ann", "bob"] * 9, "left": ["tea"] * 18, "right": ["milk"] * 18,
         "winner": ["left", "right"] * 9}
    ).write_csv(file)  # fmt: skip
    model = ISplitLBI(**QUICK).fit(file)
    model.fitted_ = replace(model.fitted_, date="2026-01-31")
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert (loaded.votes().file, loaded.fitted_.date) == ("tea.csv", "2026-01-31")
    # A folder from before they were kept can be read, too.
    (tmp_path / "model" / "about.json").unlink()
    older = load_model(tmp_path / "model")
    assert (older.votes().file, older.fitted_.date) == (None, "")


@pytest.mark.parametrize("threshold", [None, 0.7])
def test_votes_without_ties_and_votes_with_features_come_back(tmp_path, threshold):
    votes = simulate(
        n_users=8, n_items=5, votes_per_user=(20, 30), score_sd=1.0, threshold=threshold,
        features={"length": (0.5, 0.3)}, random_state=3,
    ).votes  # fmt: skip
    model = fitted(votes, with_tests=False)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_same_model(loaded, model)
    assert (loaded.threshold_ is None) == (threshold is None)
    assert loaded.features() == model.features()
    assert loaded.user_cards() == model.user_cards()
    assert str(loaded.ranking_as_shown()) == str(model.ranking_as_shown())
    np.testing.assert_array_equal(loaded.habit_intervals(), model.habit_intervals())


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
        "README.txt", "abnormal.npz", "about.json", "consensus.csv", "model.json", "path.npz",
        "selection.npz", "standing.npz", "users.csv", "votes.npz",
    ]  # fmt: skip
    described = json.loads((folder / "model.json").read_text())
    assert described["summary"]["votes"] == len(VOTES)
    chosen = {"time": model.time_, "nu": model.nu_, "kappa": model.kappa_, "delta": model.delta}
    assert described["chosen"] == chosen | {"reach": model.fitted_.dynamics.reach}
    assert described["estimator"] == "ISplitLBI"
    assert len(described["fingerprint"]) == 64
    assert pl.read_csv(folder / "consensus.csv").columns == [
        "tier", "item", "score", "tie_factor",
    ]  # fmt: skip
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


def test_a_model_that_another_process_wrote_meanwhile_is_kept(folder, model, monkeypatch):
    monkeypatch.setattr(storage, "refuse_existing", lambda *_, **__: None)  # nothing was there
    with pytest.raises(PlaceTaken, match=r"wrote .* meanwhile"):
        save_model(fitted(kappa=4.0), folder)
    assert_same_model(load_model(folder), model)
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"]


def test_a_file_where_a_folder_should_be_is_an_error_of_the_system(model, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        save_model(model, tmp_path / "file" / "model")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(sys.platform != "linux", reason="names of folders are always text here")
def test_the_name_of_a_folder_need_not_be_text(model, tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/model-\xff"))
    save_model(model, folder)
    assert_same_model(load_model(folder), model)


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


def test_outcomes_that_were_words_come_back_as_words(tmp_path):
    pairs, y = columns_of(VOTES)
    words = {1: "model_a", 0: "tie", -1: "model_b"}
    model = MarginMLE().fit(pairs, [words[outcome] for outcome in y.tolist()])
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.classes_.tolist() == ["model_a", "model_b", "tie"]
    assert loaded.predict(pairs).tolist() == model.predict(pairs).tolist()
    np.testing.assert_array_equal(loaded.predict_proba(pairs), model.predict_proba(pairs))
    told = predictions_table(loaded, pairs)
    assert set(told["winner"]) <= {"left", "tie", "right"}
    assert told.equals(predictions_table(MarginMLE().fit(VOTES), pairs))


def test_a_folder_of_the_version_before_has_numbers_for_outcomes(folder, model):
    file = folder / "model.json"
    described = json.loads(file.read_text(encoding="utf-8"))
    del described["labels"]
    file.write_text(json.dumps(described | {"version": 7}), encoding="utf-8")
    assert_same_model(load_model(folder), model)


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
        (lambda f: change(f, version=99), "format version 99 cannot be read here.*fit the model"),
        (lambda f: change(f, version=4), "format version 4 cannot be read here.*fit the model"),
        (lambda f: change(f, version=3), "format version 3 cannot be read here.*fit the model"),
        (lambda f: change(f, labels={"left": "a", "right": "b"}), "no words for some outcomes"),
        (lambda f: change(f, labels={"up": 1}), "this model is damaged"),
        (lambda f: change(f, estimator="Oracle"), "this model is damaged"),
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


def test_times_and_durations_come_back(tmp_path):
    votes = random_votes(2, timed=True)
    model = fitted(votes, time=0.7)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_same(loaded.votes(), votes)
    assert loaded.summary_.fingerprint == model.summary_.fingerprint
    assert_same_model(loaded, model)


def test_features_come_back_with_their_units(tmp_path):
    votes = random_votes(2, features=("length", "price"), weighted=True)
    model = fitted(votes, time=0.7)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_same(loaded.votes(), votes)
    assert loaded.votes().features.names == votes.features.names == loaded.summary_.units.names
    assert loaded.summary_.fingerprint == model.summary_.fingerprint
    assert_same_model(loaded, model)


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
    assert Summary.of(found.votes()).fingerprint == model.summary_.fingerprint
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
        lambda f: change(f, chosen={"time": 0.7, "nu": 17.0, "kappa": 5.0, "delta": 1e-3}),
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


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_cannot_be_written_to_is_an_error(tmp_path, model):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        save_model(model, tmp_path / "model")


# --- estimators without a path ---------------------------------------------------------------


@pytest.fixture
def of_mle(tmp_path):
    save_model(MarginMLE().fit(VOTES), tmp_path / "mle")
    return tmp_path / "mle"


def test_a_model_without_a_path_keeps_its_parameters(of_mle):
    assert sorted(file.name for file in of_mle.iterdir()) == [
        "README.txt", "about.json", "consensus.csv", "model.json", "parameters.npz", "standing.npz",
        "users.csv", "votes.npz",
    ]  # fmt: skip
    loaded = load_model(of_mle)
    assert loaded.path_ is None
    assert not hasattr(loaded, "abnormal_users_")
    assert pl.read_csv(of_mle / "users.csv")["abnormal"].null_count() == VOTES.n_users


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "parameters.npz").unlink(), "this model is damaged"),
        (lambda f: cut(f / "parameters.npz"), "this model is damaged"),
        (lambda f: without(f, "parameters.npz", deviation=lambda d: d[1:]), "do not belong"),
        (lambda f: without(f, "parameters.npz", consensus=lambda c: c[1:]), "do not belong"),
        (lambda f: without(f, "parameters.npz", slot_coordinate=lambda c: c[::-1]), "not belong"),
    ],
)
def test_damaged_parameters_say_so(of_mle, spoil, message):
    spoil(of_mle)
    with pytest.raises(UnreadableModel, match=message):
        load_model(of_mle)


def test_what_was_chosen_comes_back(tmp_path):
    model = PerUser((0.1, 3.0), n_folds=2).fit(VOTES)
    save_model(model, tmp_path / "model")
    assert load_model(tmp_path / "model").ridge_ == model.ridge_


def test_storing_computes_nothing(tmp_path, monkeypatch):
    model = fitted(time=0.7, with_tests=False)
    monkeypatch.setattr(type(model), "test_users", None)
    save_model(model, tmp_path / "model")
    assert not (tmp_path / "model" / "abnormal.npz").exists()


# --- what decides no number ------------------------------------------------------------------


def test_models_of_any_number_of_threads_have_the_same_files(tmp_path):
    for n_jobs in (None, 1, 2):
        save_model(fitted(VOTES, n_jobs=n_jobs), tmp_path / f"{n_jobs}")
    files = sorted(file.name for file in (tmp_path / "None").iterdir())
    for n_jobs in (1, 2):
        same = [
            (tmp_path / "None" / name).read_bytes() == (tmp_path / f"{n_jobs}" / name).read_bytes()
            for name in files
        ]
        assert [name for name, is_same in zip(files, same, strict=True) if not is_same] == [
            "about.json"
        ]
        assert load_model(tmp_path / f"{n_jobs}").n_jobs == n_jobs
    assert load_model(tmp_path / "None").n_jobs is None


def test_the_copies_for_people_decide_nothing_and_the_folder_says_so(folder, model):
    (folder / "consensus.csv").write_text("edited")
    (folder / "users.csv").unlink()
    assert_same_model(load_model(folder), model)
    said = (folder / "README.txt").read_text()
    assert "consensus.csv and users.csv are copies for people" in said
