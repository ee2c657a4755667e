"""Votes and a model that several files of tests look at, and none changes."""

import pytest

from commands import invoke


@pytest.fixture(scope="session")
def votes_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("votes") / "votes.csv"
    done = invoke("simulate", "-o", file, "--users", "12", "--items", "6", "--least", "30",
                  "--most", "40", "--truth", file.with_name("truth.csv"))  # fmt: skip
    assert done.exit_code == 0, done.output
    return file


@pytest.fixture(scope="session")
def model_folder(votes_file):
    folder = votes_file.with_name("model")
    done = invoke("fit", votes_file, "-o", folder)
    assert done.exit_code == 0, done.output
    return folder
