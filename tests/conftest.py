import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: numba compiles on the first call. Derandomized: a failure in CI is one on every desk.
settings.register_profile(
    "isplitlbi",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("isplitlbi")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real votes beside the project; it is never shipped with it."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ISPLITLBI_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no real votes in {folder}; set ISPLITLBI_DATA to their folder")
    return folder
