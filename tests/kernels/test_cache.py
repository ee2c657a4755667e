"""Compiled loops are kept on disk, where nothing that a user does may break them."""

import gc
import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.codegen import CPUCodeLibrary

import isplitlbi
from isplitlbi.kernels.numba_compiling import loop, part

# What a process does with a link: the smallest loop that has one.
EVALUATE = """
import numpy as np
from isplitlbi import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.kernels import Gradient, Problem, backend
from isplitlbi.model.links import Logistic

def loss_of(link):
    layout = Layout.of(Comparisons.from_arrays(["ann"], ["tea"], ["milk"], ["tie"]))
    gradient = Gradient(np.empty(3), np.empty(3))
    problem = Problem.of(layout, 1e-3)
    loops = backend("numba").loss_and_gradient
    loss = loops(link, problem, np.array([0.5, 0.0, 1.0]), np.zeros(3), gradient)
    return round(float(loss), 9), sum(loops.stats.cache_hits.values())
"""

MINE = """
from isplitlbi.model.links import Logistic

class Mine(Logistic):
    name = "mine"

    def vote_terms(self, margin, threshold, first_wins, ties, second_wins):
        return 7.0 * ties, margin, margin, margin, margin, margin
"""


def run(code, cache, path=()):
    """Run Python in a process of its own, with compiled code in that folder."""
    source = Path(isplitlbi.__file__).parents[1]
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join(map(str, (source, *path))),
        "PYTHONWARNINGS": "error",
    }
    done = subprocess.run(
        [sys.executable, "-c", EVALUATE + code],
        capture_output=True, text=True, timeout=300, check=False,
        env=environment, cwd=cache,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_link_of_ones_own_does_not_break_later_processes_that_cannot_import_it(tmp_path):
    cache, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    for folder in (cache, elsewhere):
        folder.mkdir()
    (elsewhere / "mine.py").write_text(MINE)
    both = "from mine import Mine; print(*loss_of(Mine()), *loss_of(Logistic()))"
    first = run(both, cache, [elsewhere])
    kept = [file.read_bytes() for file in cache.rglob("*.nbc")]
    assert kept and not any(b"mine" in content.lower() for content in kept)

    later = run("print(*loss_of(Logistic()))", cache)
    assert first[0] == "7.0"
    assert first[2] == later[0]
    assert later[1] == "1"  # found on disk: nothing was compiled anew


TINY = "def double(x):\n    return x + x\n"


def tiny_function(folder):
    """Return a function of a module in that folder."""
    (folder / "tiny.py").write_text(TINY)
    spec = importlib.util.spec_from_file_location("tiny", folder / "tiny.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def hits(compiled):
    return sum(compiled.stats.cache_hits.values())


def only_file(folder):
    """Return the only file of compiled code."""
    (file,) = folder.rglob("*.nbc")
    return file


@pytest.mark.parametrize("content", ["rubbish", "nothing", "a class that is gone", "a half"])
def test_compiled_code_that_cannot_be_read_is_compiled_anew(content, tmp_path):
    double = tiny_function(tmp_path)
    assert loop(double)(1.5) == 3.0
    found = loop(double)
    assert found(1.5) == 3.0 and hits(found) == 1
    file = only_file(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(
        {
            "rubbish": b"\x80\x04 no pickle at all",
            "nothing": b"",
            "a class that is gone": pickle.dumps("0.61") + b"cmine\nMine\n.",
            "a half": whole[: len(whole) // 2],
        }[content]
    )
    anew = loop(double)
    assert anew(1.5) == 3.0 and hits(anew) == 0
    found = loop(double)
    assert found(1.5) == 3.0 and hits(found) == 1


def test_code_for_other_arguments_or_of_other_sources_is_never_run(tmp_path, monkeypatch):
    double = tiny_function(tmp_path)
    assert loop(double)(1.5) == 3.0
    of_floats = only_file(tmp_path)
    content = of_floats.read_bytes()
    of_floats.unlink()
    assert loop(double)(2) == 4
    only_file(tmp_path).write_bytes(content)  # as where processes take each other's names
    anew = loop(double)
    assert anew(2) == 4 and type(anew(2)) is int and hits(anew) == 0
    monkeypatch.setattr("isplitlbi.kernels.numba_compiling._STAMP", "newer")
    newer = loop(double)
    assert newer(2) == 4 and hits(newer) == 0
    only_file(tmp_path)  # which took the place of the older


def test_code_that_cannot_be_kept_is_compiled_in_every_run(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    double = tiny_function(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full_disk)
        assert loop(double)(1.5) == 3.0
    assert not [file for file in tmp_path.rglob("*") if "nbc" in file.name]
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])  # nowhere at all
    assert loop(double)(1.5) == 3.0


def test_a_part_is_kept_and_built_into_what_is_compiled_later(tmp_path):
    double = tiny_function(tmp_path)
    calls = [part(double), part(double)]

    def caller_of(called):
        return loop(lambda x: called(x) + x)

    assert [caller_of(call)(1.5) for call in calls] == [4.5, 4.5]
    assert [hits(call) for call in calls] == [0, 1]
    again = caller_of(calls[1])  # what came from disk is built in like what was compiled
    assert again(2.5) == 7.5 and hits(calls[1]) == 1


@pytest.mark.parametrize("collects", [True, False])
def test_compiling_leaves_the_collection_of_garbage_as_it_was(collects, tmp_path, monkeypatch):
    double, seen = tiny_function(tmp_path), []
    double.__module__ = "isplitlbi.kernels.tiny"
    save = CPUCodeLibrary.finalize

    def finalize(library):
        seen.append(gc.isenabled())
        save(library)

    monkeypatch.setattr(CPUCodeLibrary, "finalize", finalize)
    (gc.enable if collects else gc.disable)()
    try:
        assert loop(double)(1.5) == 3.0
        assert gc.isenabled() == collects
    finally:
        gc.enable()
    assert seen and not any(seen)


def test_a_diagnosis_of_a_small_study_compiles_nothing(tmp_path):
    votes = Path(__file__).parents[2] / "docs" / "votes.csv"
    done = subprocess.run(
        [sys.executable, "-m", "isplitlbi", "check", str(votes)],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0 and "compiling" not in done.stderr
    assert not list(tmp_path.rglob("*.nb?"))
