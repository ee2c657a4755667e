"""What is tested here is done in every test anew."""

import pytest


@pytest.fixture(autouse=True)
def experiments_are_made_once() -> None:
    """Replace the fixture of all other tests: every experiment is made."""
