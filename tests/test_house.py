"""What holds the modules together: who imports whom, how large they are, what an import costs."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import version
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

import isplitlbi

ROOT = Path(isplitlbi.__file__).parent

# From the ground to the roof: a room imports from the floors below, never from its own floor.
FLOORS = (
    {"typing", "lazy", "markup"},
    {"errors"},
    {"files", "nouns"},
    {"data"},
    {"model"},
    {"camps", "kernels", "planning"},
    {"runtime"},
    {"path"},
    {"solvers"},
    {"selection"},
    {"jobs", "abnormal"},
    {"sizing", "cross_validation"},
    {"fitting"},
    {"estimators"},
    {"diagnostics"},
    {"evaluation"},
    {"output"},
    {"stored_people", "stored_selection"},
    {"storage"},
    {"unfinished"},
    {"cli"},
    {"__main__"},
)
FLOOR = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}

MOST_LINES_OF_A_MODULE = 500
MOST_LINES_OF_A_FUNCTION = 60
MOST_PARAMETERS = 8

# Who may take more parameters, and why.
MANY_PARAMETERS = {
    # Commands: each parameter is a flag.
    "cli.": "typer reads the flags of a command from its parameters",
    # Constructors in the way of scikit-learn: each parameter is a setting, kept under its name.
    "estimators.isplitlbi.ISplitLBI.__init__": "scikit-learn's get_params reads the settings",
    "estimators.lbi.LBI.__init__": "scikit-learn's get_params reads the settings",
    # Where votes come in, columns have names of the caller's choice.
    "data.readers.": "every column of a table may have a name of its own",
    "data.comparisons.Comparisons.": "every column of a table may have a name of its own",
    # Each parameter is a property of what is studied.
    "evaluation.simulate.": "every property of a simulated study has its name",
    "evaluation.first_plan.plan_study": "every property of a study to come has its name",
    "evaluation.protocol.evaluate": "every property of a comparison of methods has its name",
}


# --- who imports whom ----------------------------------------------------------------------


def name_of(file):
    """Return the dotted name of a file's module or package, within ours."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


FILES = {name_of(file): file for file in sorted(ROOT.rglob("*.py")) if file.parent != ROOT} | {
    name_of(file): file for file in sorted(ROOT.glob("*.py")) if file.stem != "__init__"
}
ROOMS = {name.split(".")[0] for name in FILES}


@cache
def tree_of(module):
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def statements(node):
    """Return all statements within one, function bodies included, but not what is for types only.

    Types are checked by a tool that has no trouble with circles.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        if not isinstance(child, ast.expr):  # which holds no statement
            yield child
            yield from statements(child)


@cache
def imported_by(module):
    """Return the modules of ours that a module imports, wherever in it."""
    file = FILES[module]
    here = f"isplitlbi.{module}"
    package = here if file.stem == "__init__" else here.rpartition(".")[0]
    found = set()
    for node in statements(tree_of(module)):
        if isinstance(node, ast.Import):
            targets = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level
            origin = resolve_name(dots + (node.module or ""), package) if dots else node.module
            targets = {f"{origin}.{alias.name}" for alias in node.names}
        else:
            continue
        for target in targets:
            inside = target.removeprefix("isplitlbi.") if target.startswith("isplitlbi.") else ""
            # A name in a module, a module in a package, or a name that a package offers.
            known = [each for each in (inside, inside.rpartition(".")[0]) if each in FILES]
            found |= set(known[:1])
    return frozenset(found - {module})


def room_of(module):
    return module.split(".")[0]


def circle_in(graph):
    """Return modules that import each other in a circle, if there are some."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_every_room_has_its_floor():
    missing = ROOMS - set(FLOOR)
    assert not missing, f"say in FLOORS (and in the map of the house) where these belong: {missing}"
    assert not set(FLOOR) - ROOMS


@pytest.mark.parametrize("module", FILES)
def test_imports_point_downwards(module):
    here = room_of(module)
    others = {each for each in imported_by(module) if room_of(each) != here}
    upwards = {each for each in others if FLOOR[room_of(each)] >= FLOOR[here]}
    assert not upwards


def test_modules_do_not_import_each_other_in_circles():
    assert circle_in({module: imported_by(module) for module in FILES}) is None
    # The parser is not blind: to packages, to what functions import, and to circles.
    assert {"kernels.newton", "kernels"} <= imported_by("solvers.newton")
    assert "runtime.dask.cluster" in imported_by("runtime.choice")
    assert circle_in({"one": {"other"}, "other": {"one"}})


# Packages that offer what their modules hold.
FRONTS = [
    module
    for module, file in FILES.items()
    if file.stem == "__init__"
    and any(each.startswith(f"{module}.") for each in imported_by(module))
]


@pytest.mark.parametrize("front", FRONTS)
def test_what_a_package_offers_does_not_need_the_package(front):
    offered = {each for each in imported_by(front) if each.startswith(f"{front}.")}
    assert not {each for each in offered if front in imported_by(each)}


# --- how large they are --------------------------------------------------------------------


class Function(NamedTuple):
    """How large a function is."""

    name: str
    n_lines: int
    n_parameters: int


def functions_in(module):
    """Return all functions of a module, by their dotted names."""

    def within(node, name):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from within(child, f"{name}.{child.name}")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                own = f"{name}.{child.name}"
                arguments = child.args
                names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                names += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
                n_parameters = sum(each.arg not in ("self", "cls") for each in names)
                yield Function(own, child.end_lineno - child.lineno + 1, n_parameters)
                yield from within(child, own)
            else:
                yield from within(child, name)

    return list(within(tree_of(module), module))


@pytest.mark.parametrize("module", FILES)
def test_no_module_is_too_long(module):
    n_lines = len(FILES[module].read_text(encoding="utf-8").splitlines())
    assert n_lines <= MOST_LINES_OF_A_MODULE, "which two ideas does it hold?"


@pytest.mark.parametrize("module", FILES)
def test_no_function_is_too_long(module):
    found = {each.name: each.n_lines for each in functions_in(module)}
    long = {name: n for name, n in found.items() if n > MOST_LINES_OF_A_FUNCTION}
    assert not long


@pytest.mark.parametrize("module", FILES)
def test_no_function_takes_too_many_parameters(module):
    found = {each.name: each.n_parameters for each in functions_in(module)}
    many = {name: n for name, n in found.items() if n > MOST_PARAMETERS}
    assert not {name for name in many if not name.startswith(tuple(MANY_PARAMETERS))}


def test_no_exception_outlives_its_function():
    many = [
        each.name
        for module in FILES
        for each in functions_in(module)
        if each.n_parameters > MOST_PARAMETERS
    ]
    unused = [name for name in MANY_PARAMETERS if not any(each.startswith(name) for each in many)]
    assert not unused


# --- what an import costs ------------------------------------------------------------------


def run(code):
    """Run Python in a fresh interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def test_importing_the_package_loads_no_slow_library():
    slow = "{'numba', 'sklearn', 'pandas', 'polars', 'scipy', 'numpy'}"
    assert run(f"import sys, isplitlbi; print(sorted({slow} & set(sys.modules)))") == "[]"


def test_importing_an_estimator_loads_numpy_and_nothing_else_that_is_slow():
    slow = "{'numba', 'sklearn', 'pandas', 'polars', 'narwhals', 'scipy.special', 'joblib'}"
    code = "import sys; from isplitlbi import ISplitLBI; "
    assert run(code + f"print(sorted({slow} & set(sys.modules)))") == "[]"


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
