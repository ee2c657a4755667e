"""What every runtime does, whether all users are on one machine or on several."""

import importlib.util

import numpy as np
import pytest

from isplitlbi.runtime.base import Stored
from isplitlbi.runtime.local import Local
from isplitlbi.runtime.progress import Progress, Reporter, Stopped
from machines import Ask, Threads
from votes import random_votes

VOTES = random_votes(0, n_users=7, n_items=4, n_votes=120)

WORKFORCES = {
    "local": lambda _: Local(VOTES, n_threads=2),
    "one of threads": lambda _: Threads(VOTES, 1),
    "three of threads": lambda _: Threads(VOTES, 3),
}


def on_dask(request):
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("needs dask (pip install .[dask])")
    from isplitlbi.runtime.dask import Cluster

    return Cluster(request.getfixturevalue("two_workers"), VOTES)


WORKFORCES["dask"] = on_dask


@pytest.fixture(scope="module", params=WORKFORCES)
def workforce(request):
    return WORKFORCES[request.param](request)


def asked(workforce, question, argument=None):
    return workforce.run(Ask(question, argument), Reporter())


def test_machines_hold_all_users_one_after_another(workforce):
    here = asked(workforce, "users_here")
    assert [first for first, _ in here] == [0, *np.cumsum([n for _, n in here])[:-1]]
    assert sum(n for _, n in here) == VOTES.n_users
    assert (len(here) == 1) >= workforce.is_alone


def test_every_machine_knows_of_all(workforce):
    for found in asked(workforce, "known_of_all"):
        assert found == (VOTES.n_users, len(VOTES), True, True)


def test_totals_are_of_all_machines_and_keep_their_kind(workforce):
    found = asked(workforce, "totals")
    for n_users, n_votes, vector in found:
        assert (n_users, n_votes) == (VOTES.n_users, len(VOTES))
        assert isinstance(n_votes, float)
        np.testing.assert_array_equal(vector, np.full(3, len(found)))
    expected = np.bincount(np.append(VOTES.left, VOTES.right), minlength=VOTES.n_items)
    for counts in asked(workforce, "votes_by_item"):
        np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("user", range(-1, 8))
def test_what_one_machine_has_found_all_know(workforce, user):
    assert set(asked(workforce, "somebody_is", user)) == {0 <= user < VOTES.n_users}


def test_the_values_of_everybody_are_in_order_and_nan_stays_where_it_was(workforce):
    values = np.array([np.nan, 0.5, -1.0, np.nan, 1e-300, 1.0, np.inf])
    for everyone in asked(workforce, "everybody", values):
        np.testing.assert_array_equal(everyone, values)


def test_together_machines_draw_the_numbers_of_one_generator(workforce):
    drawn = asked(workforce, "drawn", 9)
    rng = np.random.default_rng(9)
    for column, size in enumerate((len(VOTES), VOTES.n_users)):
        together = np.concatenate([each[column] for each in drawn])
        np.testing.assert_array_equal(together, rng.random(size))


def test_what_is_kept_is_what_was_made(workforce):
    assert asked(workforce, "kept") == [first for first, _ in asked(workforce, "users_here")]


def test_progress_is_told_of_all_users_and_grows_to_the_end(workforce):
    told = []
    n_machines = len(asked(workforce, "users_here"))
    workforce.run(Ask("progress"), Reporter(told.append))
    done = [each.done for each in told]
    assert done == sorted(done)
    assert done[-1] == pytest.approx(1.0)
    assert told[-1].time == 1.5
    assert told[-1].users_out in (1, n_machines)


def test_an_error_on_a_machine_comes_out_as_it_was(workforce):
    with pytest.raises(ZeroDivisionError, match="out of luck"):
        asked(workforce, "failure")


def test_jobs_side_by_side_come_back_in_order_and_are_stopped_together(workforce):
    reporter = Reporter()
    jobs = [(Ask("somebody_is", user), reporter.part(0.5)) for user in (0, 99)]
    found = workforce.side_by_side(jobs, reporter)
    assert [set(each) for each in found] == [{True}, {False}]
    with pytest.raises(ZeroDivisionError):
        workforce.side_by_side([(Ask("failure"), reporter), (Ask("progress"), reporter)], reporter)


# --- one machine ---------------------------------------------------------------------------


def test_a_local_runtime_keeps_what_is_made_whatever_the_threads():
    runtime, made = Local(VOTES, n_threads=2), []

    def make():
        made.append(1)
        return made

    assert runtime.kept("a", make) is runtime.with_threads(1).kept("a", make)
    assert runtime.kept("b", make) == [1, 1]


def test_when_one_job_fails_the_others_end_where_they_next_tell():
    reporter = Reporter()
    with pytest.raises(ZeroDivisionError):
        Local(VOTES).side_by_side([(Ask("failure"), reporter)], reporter)
    for part in (reporter, reporter.part(0.1)):
        with pytest.raises(Stopped):
            part.advance(0.1)


def test_arrays_that_are_stored_are_taken_row_by_row():
    stored = Stored("value", {"a": np.arange(6.0).reshape(2, 3)})
    assert stored.value == "value"
    np.testing.assert_array_equal(stored.row("a", 1), [3.0, 4.0, 5.0])


# --- progress ------------------------------------------------------------------------------


def test_parts_of_the_work_add_up():
    told = []
    whole = Reporter(told.append)
    one, other = whole.part(0.25), whole.part(0.75, "testing users")
    one.advance(0.5, 2.0, 3)
    other.reach(Progress(0.5))
    other.reach(Progress(1.0))
    one.advance(0.5)
    assert [each.done for each in told] == pytest.approx([0.125, 0.5, 0.875, 1.0])
    assert told[0] == Progress(0.125, 2.0, 3, "")
    assert [each.doing for each in told] == ["", "testing users", "testing users", ""]


def test_more_than_all_is_never_told():
    told = []
    whole = Reporter(told.append)
    whole.advance(0.7)
    whole.advance(0.7)
    assert told[-1].done == 1.0


def test_a_part_that_is_stopped_does_not_stop_the_others():
    whole = Reporter()
    one, other = whole.part(0.5), whole.part(0.5)
    one.stop()
    with pytest.raises(Stopped):
        one.advance(0.1)
    other.advance(0.1)
