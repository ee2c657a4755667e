"""The fit on a real cluster: a scheduler and workers in processes of their own, on loopback."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from isplitlbi import Comparisons, InvalidVotes, ISplitLBI
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Summary
from isplitlbi.errors import PathFailed, UnreadableCheckpoint
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.tables import users_table
from isplitlbi.solvers import Implicit
from isplitlbi.storage import load_model, save_model
from votes import from_rows, rows

distributed = pytest.importorskip("distributed", reason="needs dask (pip install .[dask])")

from isplitlbi.errors import WorkersLost  # noqa: E402
from isplitlbi.runtime.dask import VotesInMemory, cluster, fit, jobs, parts, shard  # noqa: E402

DASK = Path(sys.executable).with_name("dask")


class Processes:
    """A scheduler and its workers, started from the command line."""

    def __init__(self, folder):
        self.folder, self.workers = folder, []
        self.file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(self.file),
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _start(self, *arguments):
        return subprocess.Popen(
            [sys.executable, DASK, *arguments], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=self.folder,
        )  # fmt: skip

    def add(self, n_workers):
        for _ in range(n_workers):
            self.workers.append(
                self._start(
                    "worker", "--scheduler-file", str(self.file), "--host", "127.0.0.1",
                    "--nthreads", "1", "--no-nanny", "--no-dashboard",
                )
            )  # fmt: skip

    def client(self, n_workers):
        client = distributed.Client(scheduler_file=str(self.file), direct_to_workers=True)
        if n_workers:
            client.wait_for_workers(n_workers, timeout=60)
        return client

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def processes(folder, n_workers):
    started = Processes(folder)
    try:
        started.add(n_workers)
        with started.client(n_workers) as client:
            yield started, client
    finally:
        started.stop()


@pytest.fixture(scope="module")
def study():
    return simulate(n_users=9, n_items=5, votes_per_user=(15, 30), random_state=3).votes


def settings(**changed):
    """Return a model whose path takes few rounds: each costs milliseconds."""
    quick = {"kappa": 2.0, "nu": 1.0, "n_folds": 2, "times": [0.2, 0.6, 1.5],
             "solver": Implicit(tol=0.05)}  # fmt: skip
    return ISplitLBI(**quick | changed)


def assert_same_model(one, other):
    assert one.time_ == other.time_
    np.testing.assert_allclose(one.consensus_, other.consensus_, atol=1e-8)
    np.testing.assert_allclose(one.entry_times_, other.entry_times_, atol=1e-8)
    np.testing.assert_allclose(one.path_.deviation, other.path_.deviation, atol=1e-8)
    np.testing.assert_array_equal(one.path_.slots.start, other.path_.slots.start)
    np.testing.assert_array_equal(one.path_.slots.coordinate, other.path_.slots.coordinate)
    asked = [(user, *one.items_[:2]) for user in one.users_[:4]]
    np.testing.assert_allclose(one.predict_proba(asked), other.predict_proba(asked), atol=1e-8)
    if one.selection_ is not None:
        mine, theirs = one.selection_.chosen, other.selection_.chosen
        np.testing.assert_allclose(mine.times, theirs.times, rtol=1e-10)
        np.testing.assert_allclose(mine.fold_weight, theirs.fold_weight)
        for estimate, scores in mine.scores.items():
            for name, values in scores.items():
                np.testing.assert_allclose(values, theirs.scores[estimate][name], atol=1e-8)


def assert_same_tests(one, other):
    assert (one.kind, one.explanation) == (other.kind, other.explanation)
    np.testing.assert_array_equal(one.flagged, other.flagged)
    np.testing.assert_array_equal(one.votes_needed, other.votes_needed)
    for name in ("consensus", "p_value", "q_value", "quality", "slope", "side", "threshold"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-7)


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    with processes(tmp_path_factory.mktemp("cluster"), 2) as (_, client):
        yield client


def test_one_two_and_four_workers_fit_what_one_process_fits(tmp_path, study):
    expected = settings(time=1.5).fit(study)
    with processes(tmp_path, 1) as (started, client):
        for n_workers, more in ((1, 0), (2, 1), (4, 2)):
            started.add(more)
            client.wait_for_workers(n_workers, timeout=60)
            on_cluster = settings(time=1.5).fit(study, client=client)
            assert_same_model(expected, on_cluster)
            costs = on_cluster.costs_
            assert costs.losses == 0
            # Sums of at most a number and two vectors go to and from every worker.
            most = 2 * n_workers * 8 * (1 + 2 * (study.n_items + 1))
            assert 0 < costs.bytes_sent <= costs.rounds * most


def test_times_that_are_found_are_the_same_on_a_cluster(two_workers, study):
    there = settings(times=None, time=1.0).fit(study, client=two_workers)
    here = settings(times=None, time=1.0).fit(study)
    np.testing.assert_allclose(there.path_.times, here.path_.times, rtol=1e-10)
    assert_same_model(here, there)


def test_a_path_of_which_few_snapshots_come_back_is_the_same(two_workers, study, monkeypatch):
    monkeypatch.setattr(fit, "MOST_SNAPSHOTS", 0.0)
    there = settings(time=0.6).fit(study, client=two_workers)
    here = settings(time=0.6).fit(study)
    assert there.path_.times.tolist() == [0.6]
    np.testing.assert_allclose(there.consensus_, here.consensus_, atol=1e-8)
    np.testing.assert_allclose(there.entry_times_, here.entry_times_, atol=1e-8)
    np.testing.assert_allclose(there.parameters_.deviation, here.parameters_.deviation, atol=1e-8)
    assert there.left_consensus_ == here.left_consensus_


# --- parts that the workers read ------------------------------------------------------------


def frame_of(votes, **more):
    names = votes.users[votes.user], votes.items[votes.left], votes.items[votes.right]
    return pl.DataFrame(dict(zip(("user", "left", "right"), names, strict=True))).with_columns(
        winner=pl.Series([{1: "left", 0: "tie", -1: "right"}[o] for o in votes.outcome]), **more
    )


def in_parts(folder, frame, n_parts, seed=0):
    """Write votes to parts of unequal size, in no order at all."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    part = np.minimum(rng.geometric(0.3, len(frame)) - 1, n_parts - 1)
    part[:n_parts] = np.arange(n_parts)  # none is empty
    order = rng.permutation(len(frame))
    for number in range(n_parts):
        rows = order[part[order] == number]
        if number % 2:
            frame[rows].write_csv(folder / f"part-{number}.csv")
        else:
            frame[rows].write_parquet(folder / f"part-{number}.parquet")
    return folder


def test_workers_read_parts_and_fit_what_one_process_fits(
    two_workers, tmp_path, study, monkeypatch
):
    monkeypatch.setattr(parts, "AT_ONCE", 2)  # the ids of five parts are collected in three stages
    folder = in_parts(tmp_path / "votes", frame_of(study), 5)
    expected = settings().fit(study)
    found = settings().fit(folder, client=two_workers)
    assert_same_model(expected, found)
    assert found.overview_.fingerprint == expected.overview_.fingerprint
    assert str(found.overview_) == str(expected.overview_)
    assert found.users_.tolist() == expected.users_.tolist()
    assert found.items_.tolist() == expected.items_.tolist()
    assert_same_model(expected, settings().fit(folder))  # and so does one process


def test_weights_and_groups_in_parts_are_the_same_on_a_cluster(two_workers, tmp_path, study):
    rng = np.random.default_rng(1)
    more = {
        "weight": pl.Series(rng.uniform(0.5, 2.0, len(study))),
        "group": pl.Series(rng.integers(40, size=len(study)).astype(str)),
    }
    frame = frame_of(study, **more)
    folder = tmp_path / "votes"
    folder.mkdir()
    # A worker that has no votes in a part; one without votes; groups that are in two parts.
    is_first = frame["user"].to_numpy() < study.users[3]
    frame.filter(is_first).write_csv(folder / "part-0.csv")
    frame.clear().write_csv(folder / "part-1.csv")
    frame.filter(~is_first)[::2].write_parquet(folder / "part-2.parquet")
    frame.filter(~is_first)[1::2].write_parquet(folder / "part-3.parquet")
    votes = Comparisons.from_frame(frame_of(study, **more))
    found = settings().fit(folder, client=two_workers)
    assert_same_model(settings().fit(votes), found)
    assert found.overview_.fingerprint == Summary.of(votes).fingerprint


def test_votes_that_workers_have_read_are_read_here_only_when_needed(two_workers, tmp_path, study):
    folder = in_parts(tmp_path / "votes", frame_of(study), 3)
    model = settings(time=1.5).fit(folder, client=two_workers)
    tested = model.abnormality(client=two_workers)
    assert_same_tests(settings(time=1.5).fit(study).abnormality(), tested)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    for each in (model, loaded):
        assert isinstance(each._votes, Parts)
        assert len(each.ranking()) == study.n_items
        assert users_table(each)["votes"].sum() == len(study)
        assert isinstance(each._votes, Parts)
        assert Summary.of(each.votes_).fingerprint == Summary.of(study).fingerprint
    again = load_model(tmp_path / "model")
    frame_of(study)[:-1].write_csv(folder / "part-1.csv")
    with pytest.raises(InvalidVotes, match="these are not the votes of this model any more"):
        again.telling_votes(study.users[0])
    with pytest.raises(InvalidVotes, match="these are not the votes of this model any more"):
        again.abnormality(0.2, client=two_workers)
    shutil.rmtree(folder)
    with pytest.raises(InvalidVotes, match="are not stored with it, and this needs them"):
        again.effect_of_leaving_out()


def test_a_damaged_part_is_told_with_its_name(two_workers, tmp_path, study):
    folder = in_parts(tmp_path / "votes", frame_of(study), 4)
    whole = (folder / "part-2.parquet").read_bytes()
    (folder / "part-2.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidVotes, match=r"^part-2\.parquet: this is not a readable Parquet"):
        settings().fit(folder, client=two_workers)
    frame_of(study).with_columns(right="left").write_csv(folder / "part-1.csv")
    with pytest.raises(InvalidVotes, match=r"^part-1\.csv, rows 1, 2, 3 and .*: item"):
        settings().fit(folder, client=two_workers)
    (folder / "part-2.parquet").unlink()
    (folder / "part-2.parquet").symlink_to(tmp_path / "not there")
    (folder / "part-1.csv").unlink()
    with pytest.raises(InvalidVotes, match="a worker does not find this part"):
        settings().fit(folder, client=two_workers)


def test_rows_that_workers_drop_are_told(two_workers, tmp_path, study, caplog):
    bad = frame_of(study)[:3].with_columns(right="left")
    folder = in_parts(tmp_path / "votes", pl.concat([frame_of(study), bad]), 3)
    found = settings(time=1.5).fit(Parts.of(folder, drop_invalid=True), client=two_workers)
    assert found.overview_.n_votes == len(study)
    assert sum(int(line.split(": ")[1].split()[0]) for line in caplog.messages) == 3
    caplog.clear()
    parts.VotesInParts(two_workers, Parts.of(folder, drop_invalid=True), again=True)
    assert caplog.messages == []  # it was told before


# --- faults ---------------------------------------------------------------------------------


def test_workers_that_are_killed_change_nothing_until_none_is_left(tmp_path, study, monkeypatch):
    folder = in_parts(tmp_path / "votes", frame_of(study), 2)
    expected = settings(time=1.5).fit(study)
    with processes(tmp_path, 4) as (started, client):
        one_after_another = iter(started.workers)

        def fit_while_one_is_killed(votes, before=lambda: None, **more):
            victim = next(one_after_another)

            def kill(progress):
                if progress.done > 0.4 and victim.poll() is None:
                    before()
                    os.kill(victim.pid, signal.SIGKILL)
                    assert victim.wait() == -signal.SIGKILL

            return settings(time=1.5).fit(votes, client=client, progress=kill, **more)

        from_parts = fit_while_one_is_killed(folder)
        kept = {"checkpoints": tmp_path / "kept", "checkpoint_every": 0.0}
        from_checkpoint = fit_while_one_is_killed(study, **kept)
        for found in (from_parts, from_checkpoint):
            assert found.costs_.losses == 1
            assert_same_model(expected, found)

        with pytest.raises(InvalidVotes, match="the votes have changed during the fit"):
            fit_while_one_is_killed(
                folder, before=lambda: frame_of(study)[:5].write_csv(folder / "part-1.csv")
            )
        monkeypatch.setattr(cluster, "PATIENCE", 2.0)
        with pytest.raises(WorkersLost, match="start workers and fit again"):
            fit_while_one_is_killed(study)
        with pytest.raises(ValueError, match="the scheduler has no workers"):
            settings().fit(study, client=client)


class Interrupted(Exception):
    pass


def test_an_interrupted_fit_goes_on_from_its_checkpoints_on_another_cluster(
    two_workers, tmp_path, study
):
    def interrupt(progress):
        if progress.done > 0.6:
            raise Interrupted

    kept = tmp_path / "kept"
    with pytest.raises(Interrupted):
        settings().fit(
            study, client=two_workers, progress=interrupt, checkpoints=kept, checkpoint_every=0.0
        )
    whole = settings().fit(study, client=two_workers)
    assert any(kept.rglob("shard-1-*.npz"))
    folder = in_parts(tmp_path / "votes", frame_of(study), 3)  # the same votes from elsewhere
    with processes(tmp_path, 1) as (_, client):
        found = settings().fit(folder, client=client, checkpoints=kept, checkpoint_every=0.0)
    assert_same_model(whole, found)
    assert found.costs_.rounds < whole.costs_.rounds


def test_checkpoints_without_their_number_of_shards_are_refused(two_workers, tmp_path, study):
    for damaged in ("", "0", "[]"):
        (tmp_path / cluster.SHARDS).write_text(damaged)
        with pytest.raises(UnreadableCheckpoint, match="damaged; start the fit anew"):
            settings().fit(study, client=two_workers, checkpoints=tmp_path)


IN_ONE_PROCESS = """
from distributed import Client, LocalCluster
import numpy as np
from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate

votes = simulate(n_users=9, n_items=5, votes_per_user=(15, 30), random_state=3).votes
model = ISplitLBI(kappa=2.0, nu=1.0, times=[0.2, 0.6], time=0.6)
with (
    LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as it,
    Client(it, direct_to_workers=True) as client,
):
    there = model.fit(votes, client=client).consensus_
np.testing.assert_allclose(there, model.fit(votes).consensus_, atol=1e-8)
"""


def test_workers_in_one_process_fit_the_same():
    # In a process of its own, for Dask cannot tell such workers from others in the same process.
    done = subprocess.run(
        [sys.executable, "-c", IN_ONE_PROCESS], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_what_goes_wrong_on_a_worker_is_told_as_on_one_machine(two_workers, study):
    with pytest.raises(PathFailed, match="step limit"):
        settings(solver=Implicit(max_steps=3)).fit(study, client=two_workers)
    with pytest.raises(ValueError, match="only the implicit solver"):
        settings(solver="explicit").fit(study, client=two_workers)
    with pytest.raises(ValueError, match="folds cannot be given"):
        settings().fit(study, client=two_workers, folds=np.arange(len(study)) % 2)
    with pytest.raises(ValueError, match="make Comparisons of their own"):
        settings(time=1.5).fit(study.subset(study.user != 0), client=two_workers)


def test_a_full_disk_is_not_taken_for_a_lost_worker(two_workers, study, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fit, "room_for_snapshots", full)
    with pytest.raises(OSError, match="No space left on device"):
        settings(time=1.5).fit(study, client=two_workers)


def test_workers_with_another_version_are_refused(two_workers, study, monkeypatch):
    import isplitlbi

    monkeypatch.setattr(isplitlbi, "__version__", "9.9")
    with pytest.raises(ValueError, match=r"has isplitlbi .*, this is 9\.9; install the same"):
        settings().fit(study, client=two_workers)


# --- the command line -----------------------------------------------------------------------


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "isplitlbi", *arguments],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def votes_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("votes") / "votes.csv"
    made = run("simulate", "-o", str(file), "--users", "8", "--items", "5", "--least", "15",
               "--most", "25")  # fmt: skip
    assert made.returncode == 0, made.stderr
    return file


def test_ctrl_c_ends_a_fit_on_workers_within_seconds(votes_file, tmp_path):
    """As from a terminal, where it reaches the workers, too."""
    fitting = subprocess.Popen(
        [sys.executable, "-m", "isplitlbi", "fit", str(votes_file), "-o", str(tmp_path / "model"),
         "--workers", "2", "--checkpoint-seconds", "0", "-q"],
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not any(tmp_path.rglob("*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(fitting.pid, signal.SIGINT)
    begun = time.monotonic()
    _, errors = fitting.communicate(timeout=60)
    assert fitting.returncode == 130
    assert errors == "isplitlbi: interrupted; go on with the same command and --resume.\n"
    assert not any(tmp_path.rglob("shard-*-60.npz"))  # no path was followed to its end first
    with pytest.raises(ProcessLookupError):  # nobody is left of the group, in a moment
        while time.monotonic() - begun < 60:
            os.killpg(fitting.pid, 0)
            time.sleep(0.1)


def test_a_scheduler_that_cannot_be_reached_is_one_sentence(votes_file, tmp_path):
    done = run("fit", str(votes_file), "-o", str(tmp_path / "m"), "--scheduler",
               "tcp://127.0.0.1:1", "-q")  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("isplitlbi: the scheduler tcp://127.0.0.1:1 cannot be reached")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
    both = run("fit", str(votes_file), "-o", str(tmp_path / "m"), "--scheduler", "x",
               "--workers", "2")  # fmt: skip
    assert both.returncode == 2 and "not both" in both.stderr


def test_the_command_line_fits_parts_on_a_scheduler(two_workers, votes_file, tmp_path):
    folder = in_parts(tmp_path / "votes", pl.read_csv(votes_file), 3)

    def fitted(source, name, *more):
        return run("fit", str(source), "-o", str(tmp_path / name), "--kappa", "2", "--nu", "1",
                   "--time", "1", "-q", *more)  # fmt: skip

    address = two_workers.scheduler.address
    done = fitted(votes_file, "one"), fitted(folder, "many", "--scheduler", address)
    for each in done:
        assert (each.returncode, each.stderr) == (0, "")
    assert not list(tmp_path.glob(".*"))
    described = json.loads((tmp_path / "many" / "model.json").read_text())
    assert described["votes_in"]["files"] == sorted(file.name for file in folder.iterdir())
    for table in ("consensus.csv", "users.csv"):
        here, there = (pl.read_csv(tmp_path / name / table) for name in ("one", "many"))
        assert_frame_equal(here, there, abs_tol=1e-7)
    shown = [run("abnormal", str(tmp_path / name), "--all", "-q") for name in ("one", "many")]
    assert [each.returncode for each in shown] == [0, 0]
    assert "--effect reads the votes" in shown[1].stdout or "0 of " in shown[1].stdout
    told = run("abnormal", str(tmp_path / "many"), "--effect", "-q")
    assert told.returncode == 0, told.stderr


def test_the_command_line_tells_of_a_damaged_part_in_one_sentence(votes_file, tmp_path):
    folder = in_parts(tmp_path / "votes", pl.read_csv(votes_file), 3)
    part = folder / "part-1.csv"
    part.write_text(part.read_text() + "u,a,b,maybe\n")
    refused = run("fit", str(folder), "-o", str(tmp_path / "model"), "--workers", "1", "-q")
    assert refused.returncode == 2
    assert refused.stderr.startswith("isplitlbi: part-1.csv, row ")
    assert "winner 'maybe' is not one of" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["votes"]


# --- parts without a cluster ----------------------------------------------------------------


def shards_of(votes, n_shards):
    """Return the shards of votes as the workers would hold them, and their random numbers."""

    class Client:
        def scatter(self, piece, **_):
            return piece

    source = VotesInMemory(Client(), votes)
    bounds = cluster.cut_evenly(source.votes_per_user, n_shards)
    pieces = source.pieces(bounds, dict.fromkeys(range(len(bounds) - 1), "here"))
    shards = [
        shard.Shard(number, *bounds[number : number + 2], votes.n_items, *pieces[number])
        for number in pieces
    ]
    units = np.cumsum([0, *(each.votes.n_units for each in shards)])
    stretches = [
        shard.Stretch(7, int(before), int(units[-1]), first)
        for before, first in zip(units[:-1], bounds[:-1], strict=True)
    ]
    return shards, stretches, bounds


@given(rows, st.integers(1, 4), st.booleans())
def test_shards_deal_their_votes_to_the_folds_of_the_whole(rows, n_shards, grouped):
    votes = from_rows(rows, grouped=grouped)
    if len(votes) < 2:
        return
    shards, stretches, bounds = shards_of(votes, n_shards)
    ordered = votes.in_order
    whole = ordered.fold_of_votes(2, np.random.default_rng(7))
    for mine, stretch, first, end in zip(shards, stretches, bounds[:-1], bounds[1:], strict=True):
        held = (ordered.user >= first) & (ordered.user < end)
        np.testing.assert_array_equal(mine.folds(2, stretch), whole[held])


def test_a_message_to_a_job_that_was_closed_is_answered(study):
    (mine, *_), _, _ = shards_of(study, 2)
    mine.close("key")
    for late in (mine.answer("key", np.zeros(1)), mine.begin("key", None)):
        assert asyncio.run(late).what == "closed"


def test_shards_that_would_go_different_ways_are_an_error():
    def said(what, value):
        return shard.Heard(what, value, None)

    one = said("sum", np.ones(3))
    np.testing.assert_array_equal(cluster._added([one, said("sum", np.arange(3.0))]), [1, 2, 3])
    for other in (said("sum", np.ones(2)), said("result", None)):
        with pytest.raises(PathFailed, match="the workers disagree"):
            cluster._added([one, other])


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 40))
def test_users_are_cut_into_shards_that_leave_nobody_out(votes_per_user, n_shards):
    bounds = cluster.cut_evenly(np.array(votes_per_user), n_shards)
    assert bounds[0] == 0 and bounds[-1] == len(votes_per_user)
    assert bounds == sorted(set(bounds))
    assert len(bounds) - 1 <= n_shards


def test_a_checkpoint_that_not_all_shards_have_is_passed_over(tmp_path, study):
    from isplitlbi.solvers import State

    state = State.initial(study.slots, study.n_items, 1e-3)

    def kept(number, exchange):
        return jobs.SharedCheckpoint(tmp_path, number, 2, 0.0, exchange, {})

    alone = kept(0, lambda values: values)
    alone.offer(state, 1, {}, last=True)
    shutil.copy(tmp_path / "shard-0-1.npz", tmp_path / "shard-1-1.npz")
    shutil.copy(tmp_path / "shard-0-1.npz", tmp_path / "shard-0-2.npz")  # the other has no such
    exchanged = [np.array([2.0 + 1.0]), None]

    def with_the_other(values):
        if len(values) == 1:
            return exchanged[0]
        other = np.zeros_like(values)
        other[1] = 1.0
        return values + other

    resumed = kept(0, with_the_other)
    assert resumed.restore().n_done == 1
    assert resumed.file.name == "shard-0-1.npz"
