"""The fit on a real cluster: a scheduler and workers in processes of their own, on loopback."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from clusters import processes
from commands import ended, output_of, refused
from isplitlbi import Comparisons, ISplitLBI, jobs
from isplitlbi.data.readers import Parts
from isplitlbi.data.splits import in_order
from isplitlbi.data.summary import Summary
from isplitlbi.errors import (
    ClusterUnavailable,
    InvalidSetting,
    InvalidVotes,
    PathFailed,
    UnreadableCheckpoint,
    WorkersLost,
)
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.tables import users_table
from isplitlbi.solvers import Implicit
from isplitlbi.storage import load_model, save_model

distributed = pytest.importorskip("distributed", reason="needs dask (pip install .[dask])")

from isplitlbi.runtime.dask import Cluster, client_of, placement, rounds, shards, sources  # noqa: E402
from isplitlbi.runtime.dask import client as connection  # noqa: E402


@pytest.fixture(scope="module")
def study():
    return simulate(n_users=9, n_items=5, votes_per_user=(15, 30), random_state=3).votes


def settings(**changed):
    """Return a model whose path takes few rounds: each costs milliseconds."""
    quick = {"terms": "paper", "kappa": 2.0, "nu": 1.0, "n_folds": 2, "times": [0.2, 0.6, 1.5],
             "solver": Implicit(tol=0.05), "with_tests": False}  # fmt: skip
    return ISplitLBI(**quick | changed)


# Processes that are started for one test need not load what compiles the loops.
PLAIN = {"backend": "numpy"}
QUICKLY = os.environ | {"ISPLITLBI_BACKEND": "numpy"}


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
    np.testing.assert_allclose(one.consensus.values, other.consensus.values, atol=1e-7)
    for name in ("p_value", "q_value", "quality", "slope", "side", "threshold"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-7)


def test_one_two_and_four_workers_fit_what_one_process_fits(tmp_path, study):
    expected = settings(time=1.5, **PLAIN).fit(study)
    with processes(tmp_path, 1) as (started, client):
        for n_workers, more in ((1, 0), (2, 1), (4, 2)):
            started.add(more)
            client.wait_for_workers(n_workers, timeout=60)
            on_cluster = settings(time=1.5, **PLAIN).fit(study, client=client)
            assert_same_model(expected, on_cluster)
            costs = on_cluster.costs_
            assert costs.losses == 0
            # Sums of at most a number and two vectors go to and from every worker.
            most = 2 * n_workers * 8 * (1 + 2 * (study.n_items + 1))
            assert 0 < costs.bytes_sent <= costs.rounds * most


def test_workers_find_the_sizes_of_terms_that_one_process_finds(two_workers, study):
    sized = {"terms": "all", "nu": None, "kappa": None}
    together = settings(**sized).fit(study, client=two_workers)
    alone = settings(**sized).fit(study)
    assert_same_model(alone, together)
    assert together.nu_ == pytest.approx(alone.nu_, rel=1e-8)
    one, other = alone.path_.terms, together.path_.terms
    assert one.names == other.names
    np.testing.assert_allclose(one.scales, other.scales, rtol=1e-8)
    np.testing.assert_allclose(one.reference, other.reference, atol=1e-8)


def test_times_that_are_found_are_the_same_on_a_cluster(two_workers, study):
    there = settings(times=None, time=1.0).fit(study, client=two_workers)
    here = settings(times=None, time=1.0).fit(study)
    np.testing.assert_allclose(there.path_.times, here.path_.times, rtol=1e-10)
    assert_same_model(here, there)


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
    monkeypatch.setattr(
        sources, "AT_ONCE", 2
    )  # the ids of five parts are collected in three stages
    folder = in_parts(tmp_path / "votes", frame_of(study), 5)
    expected = settings().fit(study)
    found = settings().fit(folder, client=two_workers)
    assert_same_model(expected, found)
    assert found.summary_.fingerprint == expected.summary_.fingerprint
    assert str(found.summary_) == str(expected.summary_)
    assert found.users_.tolist() == expected.users_.tolist()
    assert found.items_.tolist() == expected.items_.tolist()
    assert_same_model(expected, settings().fit(folder))  # and so does one process


def test_weights_groups_and_times_in_parts_are_the_same_on_a_cluster(two_workers, tmp_path, study):
    rng = np.random.default_rng(1)
    more = {
        "weight": pl.Series(rng.uniform(0.5, 2.0, len(study))),
        "group": pl.Series(rng.integers(40, size=len(study)).astype(str)),
        "when": pl.Series(rng.permutation(len(study))).cast(pl.Datetime("ms")),
        "took": pl.Series(rng.exponential(size=len(study))),
    }
    times = {"time": "when", "duration": "took"}
    frame = frame_of(study, **more)
    folder = tmp_path / "votes"
    folder.mkdir()
    # A worker that has no votes in a part; one without votes; groups that are in two parts.
    is_first = frame["user"].to_numpy() < study.users[3]
    frame.filter(is_first).write_csv(folder / "part-0.csv")
    frame.clear().write_csv(folder / "part-1.csv")
    frame.filter(~is_first)[::2].write_parquet(folder / "part-2.parquet")
    frame.filter(~is_first)[1::2].write_parquet(folder / "part-3.parquet")
    votes = Comparisons.from_frame(frame_of(study, **more), **times)
    found = settings().fit(Parts.of(folder, **times), client=two_workers)
    assert_same_model(settings().fit(votes), found)
    assert found.summary_.fingerprint == Summary.of(votes).fingerprint


def test_counts_in_parts_are_votes_on_a_cluster(two_workers, tmp_path, study):
    frame = frame_of(study, count=pl.Series(np.arange(len(study)) % 4))
    written_out = frame.select(pl.exclude("count").repeat_by("count")).explode(pl.all())
    expected = settings().fit(Comparisons.from_frame(written_out.drop_nulls()))
    found = settings().fit(in_parts(tmp_path / "votes", frame, 3), client=two_workers)
    assert_same_model(expected, found)
    assert found.summary_.fingerprint == expected.summary_.fingerprint


def test_features_in_parts_have_the_units_of_all_on_a_cluster(two_workers, tmp_path, study, caplog):
    rng = np.random.default_rng(2)
    length = {"length_left": rng.integers(50, size=len(study)), "length_right": 3}
    frame = frame_of(study, **{name: pl.lit(each) for name, each in length.items()})
    votes = Comparisons.from_frame(frame, features=["length"])
    expected = settings(time=0.6).fit(votes)
    in_memory = settings(time=0.6).fit(votes, client=two_workers)
    parts = Parts.of(in_parts(tmp_path / "votes", frame, 3), features=["length"])
    in_folder = settings(time=0.6).fit(parts, client=two_workers)
    for found in (in_memory, in_folder):
        assert_same_model(expected, found)
        assert found.summary_.fingerprint == expected.summary_.fingerprint
        assert found.summary_.units.scale == votes.features.scale
    assert "Feature length: from length_left and length_right; one unit is" in caplog.text
    save_model(in_folder, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.summary_.units.names == ("length",)
    assert loaded.summary_.units.scale == loaded.votes().features.scale
    nothing = frame.with_columns(length_left=pl.lit(3))
    parts = Parts.of(in_parts(tmp_path / "others", nothing, 2), features=["length"])
    with pytest.raises(InvalidVotes, match="the feature length is 0 in every vote"):
        settings(time=0.6).fit(parts, client=two_workers)


def test_shards_see_features_in_units_of_all_votes(tmp_path, study):
    rng = np.random.default_rng(4)
    frame = frame_of(study, length=pl.Series(rng.normal(size=len(study))))
    votes = Comparisons.from_frame(frame, features=["length"])
    folder = in_parts(tmp_path / "votes", frame, 3)
    read = [sources._read(file, {"features": ["length"]}) for file in sorted(folder.iterdir())]
    census = sources.Census.sum([sources.Census.of(part, 1.0) for part in read])
    census = census.complete("votes")
    known, bounds = (census.users, census.items, census.units, 1.0), [0, 4, study.n_users]
    cut = [sources._cut(part, known, bounds, [0, 1]) for part in read]
    for number in range(2):
        first, end = bounds[number : number + 2]
        pieces = [each[number] for each in cut]
        shard = shards.Shard(number, first, end, study.n_items, *pieces)
        mine = votes.subset((votes.user >= first) & (votes.user < end))
        one, other = in_order(shard.votes).features, in_order(mine).features
        np.testing.assert_array_equal(one.values, other.values)


def test_shards_keep_times_and_durations(tmp_path, study):
    rng = np.random.default_rng(5)
    when = pl.Series(rng.integers(10**9, size=len(study))).cast(pl.Datetime("ms"))
    frame = frame_of(study, when=when, took=pl.Series(rng.exponential(size=len(study))))
    how = {"time": "when", "duration": "took"}
    votes = Comparisons.from_frame(frame, **how)
    folder = in_parts(tmp_path / "votes", frame, 3)
    read = [sources._read(file, how) for file in sorted(folder.iterdir())]
    census = sources.Census.sum([sources.Census.of(part, 1.0) for part in read])
    known, bounds = (census.users, census.items, None, 1.0), [0, 4, study.n_users]
    cut = [sources._cut(part, known, bounds, [0, 1]) for part in read]
    for number in range(2):
        first, end = bounds[number : number + 2]
        mine = votes.subset((votes.user >= first) & (votes.user < end))
        for pieces in ([each[number] for each in cut], [shards.Piece.of(mine, first)]):
            there = shards.Shard(number, first, end, study.n_items, *pieces).votes
            for name in ("left", "outcome", "time", "duration"):
                one, other = (getattr(v, name)[v.in_time_order()] for v in (there, mine))
                np.testing.assert_array_equal(one, other)


def test_votes_that_workers_have_read_are_read_here_only_when_needed(two_workers, tmp_path, study):
    folder = in_parts(tmp_path / "votes", frame_of(study), 3)
    model = settings(time=1.5, with_tests=True).fit(folder, client=two_workers)
    tested = settings(time=1.5, with_tests=True).fit(study).abnormality_
    assert_same_tests(tested, model.abnormality_)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    for each in (model, loaded):
        assert isinstance(each.fitted_.votes, Parts)
        assert len(each.ranking()) == study.n_items
        assert users_table(each)["votes"].sum() == len(study)
        assert isinstance(each.fitted_.votes, Parts)
        assert Summary.of(each.votes()).fingerprint == Summary.of(study).fingerprint
    again = load_model(tmp_path / "model")
    frame_of(study)[:-1].write_csv(folder / "part-1.csv")
    with pytest.raises(InvalidVotes, match="these are not the votes of this model any more"):
        again.telling_votes(study.users[0])
    with pytest.raises(InvalidVotes, match="these are not the votes of this model any more"):
        again.test_users(0.2, client=two_workers)
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
    assert found.summary_.n_votes == len(study)
    assert sum(int(line.split(": ")[1].split()[0]) for line in caplog.messages) == 3
    caplog.clear()
    there = connection.Connection(two_workers)
    sources.VotesInParts(there, Parts.of(folder, drop_invalid=True), again=True)
    assert caplog.messages == []  # it was told before


# --- faults ---------------------------------------------------------------------------------


def test_workers_that_are_killed_change_nothing_until_none_is_left(tmp_path, study, monkeypatch):
    folder = in_parts(tmp_path / "votes", frame_of(study), 2)
    expected = settings(time=1.5, **PLAIN).fit(study)
    with processes(tmp_path, 4) as (started, client):
        one_after_another = iter(started.workers)

        def fit_while_one_is_killed(votes, before=lambda: None, **more):
            victim = next(one_after_another)

            def kill(progress):
                if progress.done > 0.4 and victim.poll() is None:
                    before()
                    os.kill(victim.pid, signal.SIGKILL)
                    assert victim.wait() == -signal.SIGKILL

            return settings(time=1.5, **PLAIN).fit(votes, client=client, progress=kill, **more)

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
        monkeypatch.setattr(connection, "PATIENCE", 2.0)
        with pytest.raises(WorkersLost, match="start workers and fit again"):
            fit_while_one_is_killed(study)
        with pytest.raises(ClusterUnavailable, match="the scheduler has no workers"):
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
        settings(**PLAIN).fit(
            study, client=two_workers, progress=interrupt, checkpoints=kept, checkpoint_every=0.0
        )
    whole = settings(**PLAIN).fit(study, client=two_workers)
    assert any(kept.rglob("users-from-*.npz"))
    folder = in_parts(tmp_path / "votes", frame_of(study), 3)  # the same votes from elsewhere
    with processes(tmp_path, 1) as (_, client):
        found = settings(**PLAIN).fit(folder, client=client, checkpoints=kept, checkpoint_every=0.0)
    assert_same_model(whole, found)
    assert found.costs_.rounds < whole.costs_.rounds


def test_checkpoints_without_their_number_of_shards_are_refused(two_workers, tmp_path, study):
    for damaged in ("", "0", "[]"):
        (tmp_path / placement.SHARDS).write_text(damaged)
        with pytest.raises(UnreadableCheckpoint, match="damaged; start a new fit"):
            settings().fit(study, client=two_workers, checkpoints=tmp_path)


def test_shards_belong_to_the_client_of_the_fit_and_not_to_the_newest(two_workers, study):
    with distributed.Client(two_workers.scheduler.address):
        there = Cluster(two_workers, study, "numpy")
        assert all(shard.actor.client is two_workers for shard in there._placement._shards)
        assert there.summary.n_votes == len(study)


class Bomb:
    """An object that ends the process which unpickles it."""

    def __reduce__(self):
        return os._exit, (1,)


def test_no_checkpoint_of_a_shard_is_unpickled(two_workers, tmp_path, study):
    def interrupt(progress):
        if progress.done > 0.6:
            raise Interrupted

    kept = {"checkpoints": tmp_path, "checkpoint_every": 0.0}
    with pytest.raises(Interrupted):
        settings(**PLAIN).fit(study, client=two_workers, progress=interrupt, **kept)
    for file in tmp_path.rglob("users-from-0-*.npz"):
        whole = np.load(file)
        bombs = {name: np.array([Bomb()]) for name in whole.files}
        with zipfile.ZipFile(file, "w") as archive:
            for name, bomb in bombs.items():
                with archive.open(f"{name}.npy", "w") as stream:
                    np.lib.format.write_array(stream, bomb, allow_pickle=True)
    with pytest.raises(
        UnreadableCheckpoint, match=r"users-from-0-.* damaged \(ValueError\); start"
    ):
        settings(**PLAIN).fit(study, client=two_workers, **kept)


IN_ONE_PROCESS = """
from distributed import Client, LocalCluster
import numpy as np
from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate

votes = simulate(n_users=9, n_items=5, votes_per_user=(15, 30), random_state=3).votes
model = ISplitLBI(kappa=2.0, nu=1.0, times=[0.2, 0.6], time=0.6, with_tests=False)
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
        check=False, env=QUICKLY,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_what_goes_wrong_on_a_worker_is_told_as_on_one_machine(two_workers, study):
    with pytest.raises(PathFailed, match="step limit"):
        settings(solver=Implicit(max_steps=3)).fit(study, client=two_workers)
    with pytest.raises(InvalidSetting, match="only the implicit solver"):
        settings(solver="explicit").fit(study, client=two_workers)
    with pytest.raises(InvalidSetting, match="folds cannot be given"):
        settings().fit(study, client=two_workers, folds=np.arange(len(study)) % 2)
    with pytest.raises(InvalidVotes, match="make Comparisons of their own"):
        settings(time=1.5).fit(study.subset(study.user != 0), client=two_workers)


def test_votes_without_users_are_not_shared_out(two_workers, study, tmp_path):
    left, right = study.items[study.left], study.items[study.right]
    crowd = Comparisons.from_arrays(None, left, right, study.outcome)
    (tmp_path / "part.csv").write_text("left,right,winner\na,b,left\nb,c,tie\n")
    for votes in (crowd, tmp_path):
        with pytest.raises(InvalidVotes, match="votes without users cannot be shared out"):
            settings().fit(votes, client=two_workers)


def test_a_full_disk_is_not_taken_for_a_lost_worker(two_workers, study, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jobs, "room_for_snapshots", full)
    with pytest.raises(OSError, match="No space left on device"):
        settings(time=1.5).fit(study, client=two_workers)


def test_workers_with_another_version_are_refused(two_workers, study, monkeypatch):
    import isplitlbi

    monkeypatch.setattr(isplitlbi, "__version__", "9.9")
    with pytest.raises(
        ClusterUnavailable, match=r"has isplitlbi .*, this is 9\.9; install the same"
    ):
        settings().fit(study, client=two_workers)


# --- who is not a scheduler -----------------------------------------------------------------


def test_what_is_not_a_scheduler_is_told_in_one_sentence(two_workers, monkeypatch):
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.5)
    worker = next(iter(two_workers.nthreads()))
    with (
        pytest.raises(ClusterUnavailable, match="is not a Dask scheduler, but a worker"),
        client_of(worker),
    ):
        pass
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for address in (f"tcp://127.0.0.1:{silent.getsockname()[1]}", "http://there", "there"):
            with (
                pytest.raises(ClusterUnavailable, match=r"cannot be reached .* is it running\?"),
                client_of(address),
            ):
                pass


# --- the command line -----------------------------------------------------------------------


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "isplitlbi", *arguments],
        capture_output=True, text=True, timeout=300, check=False, env=QUICKLY,
    )  # fmt: skip


@pytest.fixture(scope="module")
def votes_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("votes") / "votes.csv"
    output_of("simulate", "-o", file, "--users", "8", "--items", "5", "--least", "15",
              "--most", "25")  # fmt: skip
    return file


def test_ctrl_c_ends_a_fit_on_workers_within_seconds(votes_file, tmp_path):
    """As from a terminal, where it reaches the workers, too."""
    fitting = subprocess.Popen(
        [sys.executable, "-m", "isplitlbi", "fit", str(votes_file), "-o", str(tmp_path / "model"),
         "--workers", "2", "--checkpoint-seconds", "0", "-q"],
        stderr=subprocess.PIPE, text=True, start_new_session=True, env=QUICKLY,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not any(tmp_path.rglob("*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(fitting.pid, signal.SIGINT)
    begun = time.monotonic()
    _, errors = fitting.communicate(timeout=60)
    assert fitting.returncode == 130
    assert errors == "isplitlbi: interrupted; go on with the same command and --resume.\n"
    assert not any(tmp_path.rglob("users-from-*-60.npz"))  # no path was followed to its end first
    with pytest.raises(ProcessLookupError):  # nobody is left of the group, in a moment
        while time.monotonic() - begun < 60:
            os.killpg(fitting.pid, 0)
            time.sleep(0.1)


def test_a_scheduler_that_cannot_be_reached_is_one_sentence(
    votes_file, tmp_path, monkeypatch, capsys
):
    done = run("fit", str(votes_file), "-o", str(tmp_path / "m"), "--scheduler",
               "tcp://127.0.0.1:1", "-q")  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("isplitlbi: the scheduler tcp://127.0.0.1:1 cannot be reached")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
    both = refused(monkeypatch, capsys, "fit", votes_file, "-o", tmp_path / "m",
                   "--scheduler", "x", "--workers", "2")  # fmt: skip
    assert "not both" in both


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
    shown = [output_of("abnormal", tmp_path / name, "--all", "-q") for name in ("one", "many")]
    assert "--effect reads the votes" in shown[1] or "0 of " in shown[1]
    output_of("abnormal", tmp_path / "many", "--effect", "-q")


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


def has_checkpoints(folder):
    return any(name.endswith(".npz") for *_, names in os.walk(folder) for name in names)


def test_a_fit_whose_scheduler_dies_ends_in_one_sentence_and_goes_on_with_another(
    two_workers, votes_file, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("ISPLITLBI_BACKEND", "numpy")
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 1.0)
    arguments = ("fit", votes_file, "-o", tmp_path / "model", "--terms", "paper", "--nu", "1",
                 "--kappa", "8", "--time", "1.5", "--checkpoint-seconds", "0", "-q")  # fmt: skip
    with processes(tmp_path, 1) as (started, _):

        def kill():
            while not has_checkpoints(tmp_path / ".model.unfinished"):
                time.sleep(0.01)
            started.scheduler.kill()

        killing = threading.Thread(target=kill)
        killing.start()
        said = refused(monkeypatch, capsys, *arguments, "--scheduler", started.address)
        killing.join()
    assert said == (
        "isplitlbi: the scheduler does not answer any more; start it and its workers, and fit "
        "again, with --resume where there are checkpoints.\n"
    )
    again = ("--resume", "--scheduler", two_workers.scheduler.address)
    assert ended(monkeypatch, capsys, *arguments, *again)[0] == 0
    assert not list(tmp_path.glob(".model*"))


# --- the pieces, without a cluster ----------------------------------------------------------


def shard_of(votes):
    """Return votes as a worker would hold them."""
    return shards.Shard(0, 0, votes.n_users, votes.n_items, shards.Piece.of(votes, 0))


def test_a_message_to_a_job_that_was_closed_is_answered(study):
    mine = shard_of(study)
    mine.close("key")
    for late in (mine.answer("key", np.zeros(1)), mine.begin("key", None, None)):
        assert asyncio.run(late).what == "closed"


def test_shards_that_would_go_different_ways_are_an_error():
    def said(what, value):
        return shards.Heard(what, value, None)

    one = said("sum", np.ones(3))
    np.testing.assert_array_equal(rounds.added([one, said("sum", np.arange(3.0))]), [1, 2, 3])
    for other in (said("sum", np.ones(2)), said("result", None)):
        with pytest.raises(PathFailed, match="the workers disagree"):
            rounds.added([one, other])


# Not by hypothesis: threads of the cluster draw numbers while it does.
@pytest.mark.parametrize("seed", range(50))
def test_users_are_cut_into_shards_that_leave_nobody_out(seed):
    rng = np.random.default_rng(seed)
    votes_per_user = rng.integers(0, 51, size=rng.integers(1, 31)) * rng.integers(0, 2)
    n_shards = int(rng.integers(1, 41))
    bounds = placement.cut_evenly(votes_per_user, n_shards)
    assert bounds[0] == 0 and bounds[-1] == len(votes_per_user)
    assert bounds == sorted(set(bounds))
    assert len(bounds) - 1 <= n_shards
