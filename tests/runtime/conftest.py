"""A cluster for tests: a scheduler and workers in processes of their own, on loopback."""

import pytest

from clusters import processes


@pytest.fixture(scope="module")  # workers that wait for the next module cost time, too
def two_workers(tmp_path_factory):
    with processes(tmp_path_factory.mktemp("cluster"), 2) as (_, client):
        yield client
