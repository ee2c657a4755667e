"""What is published works: the wheel, made from the source distribution, where it is installed.

Nothing of the checkout can be reached from the environment that the wheel is installed into. It
holds the wheel alone, and beside it (by a path in a .pth file, whose own .pth files Python does not
read) the libraries of the environment that runs the tests. An editable install of the checkout is
therefore out of reach, and the first test says where every module was loaded from.

Whether the dependencies that the wheel names are enough is not seen here: the workflow `release`
installs the wheel with its dependencies from the registry.
"""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
TOOLS = ("build", "hatchling")
DATA = ["py.typed", "output/report/page.html", "output/report/page.js", "output/report/style.css"]


def environment(**more):
    """Return the variables of this process without those that lead Python elsewhere."""
    leading = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NUMBA_CACHE_DIR")
    return {name: value for name, value in os.environ.items() if name not in leading} | more


def run(*command, cwd, **variables):
    """Run a command that must succeed; return what it wrote to standard output."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, encoding="utf-8", timeout=300,
        check=False, cwd=cwd, env=environment(PYTHONIOENCODING="utf-8", COLUMNS="80", **variables),
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


def python_of(folder):
    return folder / SCRIPTS / ("python.exe" if os.name == "nt" else "python")


def site_packages_of(folder):
    scheme = {"base": str(folder), "platbase": str(folder)}
    return Path(sysconfig.get_path("purelib", "venv", scheme)).resolve()


def python_that_builds(folder):
    """Return a Python that has the tools; where this one lacks them, they are fetched."""
    if all(importlib.util.find_spec(name) for name in TOOLS):
        return sys.executable
    venv.create(folder, with_pip=True)
    fetched = subprocess.run(
        [python_of(folder), "-m", "pip", "install", "--quiet", *TOOLS],
        capture_output=True, text=True, timeout=300, check=False, env=environment(),
    )  # fmt: skip
    if fetched.returncode:
        reason = (fetched.stderr.strip() or "pip said nothing").splitlines()[-1]
        pytest.skip(f"{' and '.join(TOOLS)} are not here and cannot be installed: {reason}")
    return python_of(folder)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Return the source distribution of this checkout and the wheel that was built from it."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("these tests are not in a checkout")
    folder = tmp_path_factory.mktemp("distributions")
    python = python_that_builds(folder / "tools")
    # Without --sdist and --wheel, build makes the wheel from the unpacked source distribution.
    run(python, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT, cwd=folder)
    (source,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return SimpleNamespace(source=source, wheel=wheel)


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """Return an environment that holds the wheel, and a folder that is far from the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False)
    python, site_packages = python_of(folder / "venv"), site_packages_of(folder / "venv")
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
        "--no-index", "--disable-pip-version-check", distributions.wheel, cwd=folder,
    )  # fmt: skip
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site_packages / "libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    work = folder / "work"
    work.mkdir()
    return SimpleNamespace(
        python=python, site_packages=site_packages, work=work,
        command=folder / "venv" / SCRIPTS / ("isplitlbi.exe" if os.name == "nt" else "isplitlbi"),
    )  # fmt: skip


def test_the_package_is_that_of_the_wheel_and_not_that_of_the_checkout(installed):
    code = """
import importlib.metadata, json, pathlib, sys
import isplitlbi, isplitlbi.storage, isplitlbi.output.report
ours = [module for name, module in sys.modules.items() if name.split('.')[0] == 'isplitlbi']
found = importlib.metadata.distribution('isplitlbi')
place = str(found.locate_file(''))
loaded = [module.__file__ for module in ours]
print(json.dumps([loaded, sys.path, place, found.version, isplitlbi.__version__]))
"""
    loaded, path, place, version, own_version = json.loads(
        run(installed.python, "-c", code, cwd=installed.work)
    )
    assert len(loaded) > 20
    for file in loaded:
        assert Path(file).resolve().is_relative_to(installed.site_packages)
    assert Path(place).resolve() == installed.site_packages
    assert not [each for each in path if each and Path(each).resolve().is_relative_to(ROOT / "src")]
    assert version == own_version


def test_what_is_no_python_is_installed_too(installed):
    package = installed.site_packages / "isplitlbi"
    for name in DATA:
        assert (package / name).read_bytes() == (ROOT / "src" / "isplitlbi" / name).read_bytes()


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(distributions):
    with zipfile.ZipFile(distributions.wheel) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
    package = ROOT / "src" / "isplitlbi"
    there = {
        f"isplitlbi/{file.relative_to(package).as_posix()}"
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == there


def test_the_metadata_says_what_pyproject_says(distributions):
    with zipfile.ZipFile(distributions.wheel) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(wheel.read(name))
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert {"all", "plots", "report", "dask", "frames"} <= set(metadata.get_all("Provides-Extra"))


def test_the_source_distribution_holds_what_its_tests_look_at(distributions):
    with tarfile.open(distributions.source) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    wanted = ["pyproject.toml", "CHANGELOG.md", "SECURITY.md", "Makefile", "docs/votes.csv",
              "tests/test_wheel.py", ".github/workflows/release.yml"]  # fmt: skip
    assert set(wanted) <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(".venv")]


def test_the_installed_command_says_how_it_is_used(installed):
    assert "--users" in run(installed.command, "demo", "--help", cwd=installed.work)


def test_the_installed_command_goes_from_votes_to_a_report(installed):
    # Compiling all loops of a fit takes half a minute, so this fit runs without; the next test
    # compiles one.
    def isplitlbi(*arguments):
        return run(installed.command, *arguments, cwd=installed.work, ISPLITLBI_BACKEND="numpy")

    isplitlbi(
        "simulate",
        "--users",
        "8",
        "--items",
        "5",
        "--least",
        "60",
        "--most",
        "80",
        "-o",
        "votes.csv",
    )
    isplitlbi("fit", "votes.csv", "-o", "model", "--quiet")
    ranking = json.loads(isplitlbi("rank", "model", "--format", "json"))
    assert [row["rank"] for row in ranking] == sorted(row["rank"] for row in ranking)
    assert len(ranking) == 5
    isplitlbi("report", "model", "-o", "report.html")
    report = (installed.work / "report.html").read_text(encoding="utf-8")
    style = (installed.site_packages / "isplitlbi/output/report/style.css").read_text("utf-8")
    assert style.splitlines()[0] in report


def test_loops_are_compiled_where_the_wheel_is_installed(installed):
    code = """
import numpy as np
from isplitlbi import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.kernels import Gradient, Problem, backend
from isplitlbi.model.links import Logistic
votes = Comparisons.from_arrays(["ann"], ["tea"], ["milk"], ["tie"])
problem = Problem.of(Layout.of(votes), 1e-3)
loss = [
    float(backend(name).loss_and_gradient(
        Logistic(), problem, np.array([0.5, 0.0, 1.0]), np.zeros(3),
        Gradient(np.empty(3), np.empty(3)),
    ))
    for name in ("numba", "numpy")
]
print(*loss, len(backend("numba").loss_and_gradient.signatures))
"""
    compiled, plain, n_compiled = run(installed.python, "-c", code, cwd=installed.work).split()
    assert float(compiled) == pytest.approx(float(plain), rel=1e-12)
    assert int(n_compiled) == 1
