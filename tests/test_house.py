"""What holds the modules together: who imports whom, and what an import costs."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.metadata import version
from importlib.util import resolve_name
from pathlib import Path

import pytest

import isplitlbi

ROOT = Path(isplitlbi.__file__).parent

# From the top of the house to its bottom: a module imports from its own floor or from below.
FLOORS = (
    {"__main__"},
    {"cli"},
    {"terminal"},
    {"report", "plots", "evaluation", "storage"},
    {"tables"},
    {"estimators", "baselines"},
    {"contract", "distributed"},
    {"selection", "abnormal", "ranking", "checks"},
    {"solvers", "path"},
    {"kernels", "parameters", "simulate"},
    {
        "comparisons",
        "links",
        "metrics",
        "vocabulary",
        "readers",
        "formats",
        "presets",
        "files",
        "overview",
    },
)
FLOOR = {module: -depth for depth, modules in enumerate(FLOORS) for module in modules}


def name_of(file):
    """Return the dotted name of a file's module or package."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(("isplitlbi", *(part for part in parts if part != "__init__")))


def imported_by(file):
    """Return the modules directly under the package that a file imports, wherever in it."""
    name = name_of(file)
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    targets = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            targets |= {f"{origin}.{alias.name}" for alias in node.names}
    inside = {target.split(".")[1] for target in targets if target.startswith("isplitlbi.")}
    return {module for module in inside if module in MODULES} - {name.split(".")[1]}


FILES = [file for file in sorted(ROOT.rglob("*.py")) if file != ROOT / "__init__.py"]
MODULES = {name_of(file).split(".")[1] for file in FILES}


def run(code):
    """Run a line of Python in a fresh interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def test_every_module_has_its_floor():
    homeless = MODULES - set(FLOOR)
    assert not homeless, f"say in FLOORS (and in the design) where these belong: {homeless}"


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_point_downwards(file):
    here = FLOOR[name_of(file).split(".")[1]]
    upwards = {module for module in imported_by(file) if FLOOR[module] > here}
    assert not upwards


def test_modules_do_not_import_each_other_in_circles():
    graph = {module: set() for module in MODULES}
    for file in FILES:
        graph[name_of(file).split(".")[1]] |= imported_by(file)
    assert set(TopologicalSorter(graph).static_order()) == MODULES
    # The parser above is not blind.
    assert {"selection", "ranking", "comparisons"} <= graph["estimators"]
    assert "kernels" in graph["solvers"]


def test_the_simulation_needs_only_comparisons():
    assert imported_by(ROOT / "simulate.py") == {"comparisons"}


def test_importing_the_package_loads_no_slow_library():
    slow = "{'numba', 'sklearn', 'pandas', 'polars', 'scipy', 'numpy'}"
    assert run(f"import sys, isplitlbi; print(sorted({slow} & set(sys.modules)))") == "[]"


def test_reading_votes_loads_neither_a_compiler_nor_scikit_learn():
    slow = "{'numba', 'sklearn', 'pandas', 'matplotlib'}"
    code = "import sys; from isplitlbi import Comparisons; "
    assert run(code + f"print(sorted({slow} & set(sys.modules)))") == "[]"


def test_a_model_is_fitted_without_any_optional_library():
    code = """
import sys
sys.modules |= dict.fromkeys(["pandas", "pyarrow", "matplotlib", "choix"])  # as if not installed
from isplitlbi import ISplitLBI
votes = [("ann", "tea", "milk"), ("bob", "tea", "milk"), ("bob", "milk", "tea")]
model = ISplitLBI(kappa=5, times=[0.5], time=0.5, backend="numpy").fit(votes, [1, 0, -1])
print(model.ranking().items[0])
"""
    assert run(code) == "tea"


@pytest.mark.parametrize("name", isplitlbi.__all__)
def test_every_public_name_resolves_and_is_listed(name):
    assert getattr(isplitlbi, name).__name__ == name
    assert name in dir(isplitlbi)


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        isplitlbi.Nonsense  # noqa: B018


def test_the_version_is_that_of_the_distribution():
    assert isplitlbi.__version__ == version("isplitlbi")
