"""A cluster that is not well: processes that stop or die, strangers in their place, certificates.

`python benchmarks/outages.py` tries more of it, for as long as people have to wait.
"""

import shutil
import signal
import subprocess
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from clusters import processes
from isplitlbi import ISplitLBI
from isplitlbi.errors import ClusterUnavailable, WorkersLost
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.solvers import Implicit

distributed = pytest.importorskip("distributed", reason="needs dask (pip install .[dask])")

from isplitlbi.runtime.dask import client as connection  # noqa: E402
from isplitlbi.runtime.dask import client_of  # noqa: E402

VOTES = simulate(n_users=9, n_items=5, votes_per_user=(15, 30), random_state=3).votes
# Processes that are started for one test need not load what compiles the loops.
QUICK = {"terms": "paper", "kappa": 2.0, "nu": 1.0, "time": 1.5, "with_tests": False,
         "backend": "numpy", "solver": Implicit(tol=0.05)}  # fmt: skip


def fitted(client, **more):
    return ISplitLBI(**QUICK).fit(VOTES, client=client, **more)


def assert_same_bits(one, other):
    for name in ("consensus_", "entry_times_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.path_.deviation, other.path_.deviation)


def at_half(happens):
    """Return a listener that lets something happen once, when half of a fit is done."""
    waiting = [happens]

    def listen(progress):
        if progress.done > 0.5 and waiting:
            waiting.pop()()

    return listen


def stop(process, seconds=None):
    process.send_signal(signal.SIGSTOP)
    if seconds is not None:
        threading.Timer(seconds, process.send_signal, [signal.SIGCONT]).start()


@pytest.fixture
def impatient(monkeypatch):
    """Let a minute be four seconds."""
    for name, seconds in {
        "PATIENCE": 4.0,
        "PULSE": 0.5,
        "WORRY": 1.5,
        "CONNECT_TIMEOUT": 1.0,
    }.items():
        monkeypatch.setattr(connection, name, seconds)


def test_workers_that_join_or_stop_change_nothing_and_without_a_scheduler_the_fit_ends(
    tmp_path, impatient, caplog
):
    with processes(tmp_path, 1) as (started, client):
        expected = fitted(client)
        first = started.workers[0]

        for_a_while = fitted(client, progress=at_half(lambda: stop(first, 2.5)))
        assert for_a_while.costs_.losses == 0
        assert_same_bits(expected, for_a_while)
        assert "has been silent for 2 s; the fit waits for it." in caplog.text

        def replace_for_good():
            started.add(1)
            client.wait_for_workers(2, timeout=60)
            stop(first)

        for_good = fitted(client, progress=at_half(replace_for_good))
        assert for_good.costs_.losses == 1
        assert_same_bits(expected, for_good)
        assert "is silent); its users get new places" in caplog.text

        begun = time.monotonic()
        with pytest.raises(WorkersLost, match="the scheduler does not answer any more; start it"):
            fitted(client, progress=at_half(started.scheduler.kill))
        assert time.monotonic() - begun < 30


# --- who is there -----------------------------------------------------------------------------


class Clock:
    """A client of a scheduler that knows one worker, and the clock that both go by."""

    status, scheduler, now, beat, answers = (
        "running",
        SimpleNamespace(identity=None),
        0.0,
        0.0,
        True,
    )

    def sync(self, _, callback_timeout):
        if not self.answers:
            raise TimeoutError
        return {"workers": {"one": {"last_seen": self.beat, "status": "running", "nthreads": 1}}}


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(connection, "monotonic", lambda: clock.now)
    return clock


def test_a_worker_is_gone_when_it_was_silent_for_a_minute_and_somebody_looked(clock):
    there = connection.Connection(clock)
    assert there.workers() == ["one"]
    clock.now += 1000.0  # of rounds in which nobody had to ask
    assert there.workers() == ["one"]
    for _ in range(24):
        clock.now += 2.0
        assert there.workers() == ["one"]
    clock.now += 2.0
    assert there.workers() == []
    assert there.absence_of("one") == "the worker one is silent"
    clock.beat += 1.0
    assert there.workers() == ["one"]


def test_a_scheduler_is_gone_when_it_has_not_answered_for_a_minute(clock):
    there = connection.Connection(clock)
    assert there.workers() == ["one"]
    clock.now, clock.answers = 1000.0, False
    for _ in range(31):
        assert there.workers() == ["one"]
        clock.now += 2.0
    with pytest.raises(WorkersLost, match="the scheduler does not answer any more"):
        there.workers()


# --- certificates ---------------------------------------------------------------------------


def certificate(folder, name):
    """Make a certificate that signs itself; return how Dask is told to use it."""
    files = {"cert": folder / f"{name}.pem", "key": folder / f"{name}-key.pem"}
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "1", "-subj", "/CN=tests", "-out", files["cert"], "-keyout",
         files["key"]], check=True, capture_output=True,
    )  # fmt: skip
    tls = {"ca-file": str(files["cert"])}
    for who in ("scheduler", "worker", "client"):
        tls |= {f"{who}.{what}": str(file) for what, file in files.items()}
    return {f"distributed.comm.tls.{name}": file for name, file in tls.items()}


def in_environment(settings):
    return {f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": value
            for name, value in settings.items()}  # fmt: skip


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_a_fit_with_certificates_is_the_same_and_without_them_it_is_refused(tmp_path):
    from dask import config
    from distributed.security import Security

    ours, theirs = certificate(tmp_path, "ours"), certificate(tmp_path, "theirs")
    how = in_environment(ours) | {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    of = "distributed.comm.tls."
    security = Security(
        tls_ca_file=ours[f"{of}ca-file"], tls_client_cert=ours[f"{of}client.cert"],
        tls_client_key=ours[f"{of}client.key"], require_encryption=True,
    )  # fmt: skip
    with processes(tmp_path, 1, security, protocol="tls", **how) as (started, client):
        assert started.address.startswith("tls://")
        np.testing.assert_allclose(fitted(None).consensus_, fitted(client).consensus_, atol=1e-8)
        with config.set(ours), client_of(started.address) as there:
            assert len(there.nthreads()) == 1
        asked = "and are the certificates of Dask's configuration those that it knows"
        for reason, settings in (("Dask has no certificates", {}), (".*", theirs)):
            with (
                config.set(settings),
                pytest.raises(ClusterUnavailable, match=f"reached \\({reason}\\); .*, {asked}\\?$"),
                client_of(started.address),
            ):
                pass
        plain = started.address.replace("tls://", "tcp://")
        with pytest.raises(ClusterUnavailable, match="cannot be reached"), client_of(plain):
            pass
