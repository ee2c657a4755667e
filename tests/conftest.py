import logging
import os
from collections.abc import Iterator
from pathlib import Path

import joblib
import pytest
from hypothesis import HealthCheck, settings

from isplitlbi.diagnostics import individual

# No deadline: numba compiles on the first call. Derandomized: a failure in CI is one on every desk.
settings.register_profile(
    "isplitlbi",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("isplitlbi")


@pytest.fixture(autouse=True)
def remarks_are_heard() -> Iterator[None]:
    """Undo what a command that ran in this process has said about remarks (``--quiet``)."""
    yield
    logging.getLogger("isplitlbi").setLevel(logging.NOTSET)


_measure, _measured = individual.measure, {}


def _measured_once(votes, **settings):
    key = joblib.hash((votes, settings))
    if key not in _measured:
        _measured[key] = _measure(votes, **settings)
    return _measured[key]


@pytest.fixture(autouse=True)
def experiments_are_made_once() -> Iterator[None]:
    """Do not repeat the experiment on individual rankings with the same votes.

    It takes most of the time of a diagnosis, and half of that of a report. The tests of the
    experiment itself, in `tests/diagnostics`, do repeat it.
    """
    individual.measure = _measured_once
    yield
    individual.measure = _measure


@pytest.fixture
def experiments_are_made_anew(experiments_are_made_once: None) -> Iterator[None]:
    """Make every experiment in this test."""
    individual.measure = _measure
    yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real votes beside the project; it is never shipped with it."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ISPLITLBI_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no real votes in {folder}; set ISPLITLBI_DATA to their folder")
    return folder


# Files whose tests take longest come first: otherwise one process would be left alone with them.
# While the first compiles the loops of a fit, another reads data, which takes no loops. The others
# then find the loops on disk and do not all compile the same. Nor do the workers of a cluster after
# the loops by themselves and those of several machines.
LONGEST = (
    "output/test_report_in_browser.py",
    "data/test_readers.py",
    "data/test_presets.py",
    "data/test_layout.py",
    "data/test_times.py",
    "data/test_comparisons.py",
    "solvers/test_schemes.py",
    "kernels/test_loops_of_terms.py",
    "runtime/test_machines.py",
    "runtime/test_dask.py",
    "test_benchmarks.py",
    "abnormal/test_tests.py",
    "estimators/test_standing.py",
    "cli/test_models.py",
    "cli/test_votes.py",
    "solvers/test_implicit.py",
    "test_experiments.py",
    "diagnostics/test_individual.py",
    "output/test_report.py",
    "test_docs_blocks.py",
    "evaluation/test_protocol.py",
    "abnormal/test_terms.py",
    "cli/test_bad_input.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {f"tests/{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.split("::")[0], len(LONGEST)))
