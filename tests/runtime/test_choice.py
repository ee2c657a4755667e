import numpy as np
import pytest

from isplitlbi.data.readers import Parts
from isplitlbi.errors import InvalidSetting
from isplitlbi.runtime.choice import runtime_for
from isplitlbi.runtime.local import Local
from votes import random_votes


def test_without_a_client_the_work_is_done_here():
    votes = random_votes(0)
    runtime = runtime_for(votes, n_threads=3, backend="numpy")
    assert isinstance(runtime, Local)
    assert runtime.is_alone
    assert (runtime.n_threads, runtime.backend) == (3, "numpy")
    assert runtime.summary.n_votes == len(votes)
    assert runtime.costs is None


def test_parts_are_read_where_there_are_no_workers_to_do_so(tmp_path):
    for name, winner in (("one", "left"), ("two", "tie")):
        (tmp_path / f"{name}.csv").write_text(f"user,left,right,winner\nann,tea,milk,{winner}\n")
    runtime = runtime_for(Parts.of(tmp_path))
    np.testing.assert_array_equal(np.sort(runtime.votes.outcome), [0, 1])


def test_an_unknown_backend_is_refused():
    with pytest.raises(InvalidSetting, match="is not one of numba, numpy"):
        runtime_for(random_votes(0), backend="abacus")
