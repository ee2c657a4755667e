"""No data are unpickled from files: a file with pickled objects is refused, and none of it runs."""

import ast
import zipfile
from pathlib import Path

import numpy as np
import pytest

import isplitlbi
from isplitlbi import ISplitLBI, MarginMLE
from isplitlbi.errors import ISplitLBIError
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.solvers import Implicit
from isplitlbi.storage import load_model, save_model

SOURCES = sorted(Path(isplitlbi.__file__).parent.rglob("*.py"))
VOTES = simulate(n_users=6, n_items=4, votes_per_user=(10, 15), random_state=3).votes
# Compiled code is no data: who can change it can run code in any case (see SECURITY.md).
COMPILED = ("kernels", "numba_compiling.py")
UNPICKLING = {"cloudpickle", "dill", "joblib.load", "marshal", "numpy.load", "pickle", "shelve"}


def imported(tree):
    """Return the names of modules that a module imports, and of what it takes from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{name.name}" for name in node.names))


def calls(tree):
    """Return what a module calls, each with its keywords, as they are written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            words = {word.arg: ast.unparse(word.value) for word in node.keywords}
            yield ast.unparse(node.func), words


def test_no_module_unpickles_what_it_reads():
    loads = 0
    for source in SOURCES:
        tree = ast.parse(source.read_text(encoding="utf-8"))
        unpickling = UNPICKLING & set(imported(tree))
        assert unpickling == ({"pickle"} if source.parts[-2:] == COMPILED else set()), source
        for called, words in calls(tree):
            assert not called.endswith(("joblib.load", "read_pickle")), source
            if called.startswith("np.") and called.endswith((".load", ".read_array")):
                assert words.get("allow_pickle") == "False", source
                loads += 1
    assert loads >= 3  # of paths, of checkpoints, of model folders


class Bomb:
    """An object whose unpickling leaves a file behind."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


def test_a_bomb_goes_off_where_it_is_unpickled(tmp_path):
    np.save(tmp_path / "bomb.npy", np.array([Bomb(tmp_path / "trace")]), allow_pickle=True)
    np.load(tmp_path / "bomb.npy", allow_pickle=True)
    assert (tmp_path / "trace").exists()


def assert_refused_with_bombs(file, read):
    """Replace the arrays of a file by bombs, and see that reading refuses them."""
    whole, trace, bomb = file.read_bytes(), file.with_name("trace"), file.with_name("bomb.npy")
    np.save(bomb, np.array([Bomb(trace)]), allow_pickle=True)
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.write(bomb, name)
    with pytest.raises(ISplitLBIError) as refused:
        read()
    assert "damaged" in str(refused.value) and "\n" not in str(refused.value)
    assert not trace.exists()
    bomb.unlink()
    file.write_bytes(whole)
    read()


@pytest.mark.parametrize("estimator", [ISplitLBI, MarginMLE])
def test_no_file_of_a_model_folder_is_unpickled(tmp_path, estimator):
    folder = tmp_path / "model"
    quick = {"n_folds": 2, "times": [0.3, 0.6], "kappa": 3.0, "nu": 1.0, "terms": "paper"}
    save_model(estimator(**quick if estimator is ISplitLBI else {}).fit(VOTES), folder)
    files = sorted(folder.glob("*.npz"))
    assert len(files) >= 3
    for file in files:
        assert_refused_with_bombs(file, lambda: load_model(folder))


class Interrupted(Exception):
    pass


def test_no_checkpoint_is_unpickled(tmp_path):
    def fit(progress=None):
        quick = {"time": 0.6, "kappa": 3.0, "nu": 1.0, "terms": "paper", "with_tests": False}
        model = ISplitLBI(**quick, solver=Implicit(tol=0.05))
        model.fit(VOTES, checkpoints=tmp_path, checkpoint_every=0.0, progress=progress)

    def interrupt(progress):
        if progress.done > 0.5:
            raise Interrupted

    with pytest.raises(Interrupted):
        fit(interrupt)
    (file,) = tmp_path.rglob("*.npz")
    assert_refused_with_bombs(file, fit)
