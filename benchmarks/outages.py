"""A fit on a cluster that is not well: workers and schedulers that stop, die, come and fill up.

A scheduler and two workers with one thread each run in processes of their own, on 127.0.0.1. When a
fit has done a third of its work, something happens. Then the fit ends with the bits of a fit to
which nothing has happened, or with one sentence, in bounded time.

    python benchmarks/outages.py [--only NAME ...] [--seconds 60]

--only       some of the outages, by their names
--seconds    how long a process is stopped that goes on afterwards

asked        how it is to end: with the same bits, or with a sentence
seconds      from the outage to the end
lost         how often workers were taken for lost
said         what the library says meanwhile, seconds after the outage, and how it ends

The last line is what is asked of it. The exit code is 1 where a fit ends in another way, or takes
more than three minutes.
"""

from __future__ import annotations

import argparse
import logging
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread, Timer
from time import monotonic, sleep
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import psutil

# A script beside this one has the name of a library, and must not be found in its place.
HERE = Path(__file__).resolve().parent
sys.path = [folder for folder in sys.path if Path(folder).resolve() != HERE]

from distributed import Client  # noqa: E402

from isplitlbi import ISplitLBI  # noqa: E402
from isplitlbi.errors import ISplitLBIError  # noqa: E402
from isplitlbi.evaluation.simulate import simulate  # noqa: E402
from isplitlbi.storage import load_model  # noqa: E402

VOTES = simulate(n_users=40, n_items=8, votes_per_user=(40, 80), random_state=1).votes
HAPPENS_AT = 0.3  # of the work
MOST_SECONDS = 180.0
SETTINGS = {"terms": "paper", "nu": 1.0, "kappa": 4.0, "time": 1.0}
OPTIONS = ("--terms", "paper", "--nu", "1", "--kappa", "4", "--time", "1")
SAME, SENTENCE = "same bits", "sentence"
WORDS = {1: "left", 0: "tie", -1: "right"}
N_SPILLED, N_PARTS = 300_000, 10


class Machines:
    """A scheduler and its workers, which can be stopped, killed and started again."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment, self.port = folder, environment, free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.start_scheduler()

    def start_scheduler(self) -> None:
        self.scheduler = self._started(
            "scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"
        )

    def start_workers(self, n_workers: int, *options: str) -> None:
        for _ in range(n_workers):
            self.workers.append(
                self._started(
                    "worker", self.address, "--host", "127.0.0.1", "--nthreads", "1",
                    "--no-dashboard", *(options or ("--no-nanny",)),
                )
            )  # fmt: skip

    def kill_workers(self) -> None:
        for worker in self.workers:
            worker.kill()

    def begin_anew(self) -> None:
        """Start another scheduler in the place of one that is killed, and workers."""
        self.scheduler.kill()
        self.scheduler.wait()
        self.start_scheduler()
        self.start_workers(2)

    def _started(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | self.environment,
        )  # fmt: skip

    def client(self, n_workers: int) -> Client:
        client = Client(self.address, direct_to_workers=True, timeout=30)
        deadline = monotonic() + 60  # not by Client.wait_for_workers: paused ones are there, too
        while len(client.scheduler_info(n_workers=-1)["workers"]) < n_workers:
            assert monotonic() < deadline, "workers do not start"
            sleep(0.1)
        return client

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.send_signal(signal.SIGTERM)  # nannies end their workers
            process.send_signal(signal.SIGCONT)
        for process in (*self.workers, self.scheduler):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def machines(*options: str, **settings: str) -> Iterator[Machines]:
    environment = {f"DASK_DISTRIBUTED__{name}": value for name, value in settings.items()}
    with TemporaryDirectory() as folder:
        started = Machines(Path(folder), environment)
        try:
            started.start_workers(2, *options)
            yield started
        finally:
            started.end()


# --- what happens -----------------------------------------------------------------------------


class Outage(NamedTuple):
    name: str
    happens: Callable[[Machines], None]
    asked: str = SAME
    options: tuple[str, ...] = ()  # of workers
    settings: dict[str, str] = {}  # of Dask  # noqa: RUF012


def after(seconds: float, call: Callable[[], object]) -> None:
    timer = Timer(seconds, call)
    timer.daemon = True
    timer.start()


def let_go_on(process: Any) -> None:
    with suppress(psutil.NoSuchProcess):  # Dask has ended it
        process.send_signal(signal.SIGCONT)


def outages(seconds: float) -> list[Outage]:
    def stopped(which: Callable[[Machines], Any], *, goes_on: bool) -> Callable[[Machines], None]:
        def stop(cluster: Machines) -> None:
            process = which(cluster)
            process.send_signal(signal.SIGSTOP)
            if goes_on:
                after(seconds, lambda: let_go_on(process))

        return stop

    def first(cluster: Machines) -> Any:
        """Return the process that works: a nanny's is its youngest child."""
        begun = psutil.Process(cluster.workers[0].pid)
        return (begun.children(recursive=True) or [begun])[-1]

    def scheduler(cluster: Machines) -> Any:
        return cluster.scheduler

    def replaced(cluster: Machines) -> None:
        cluster.start_workers(1)
        cluster.workers[0].kill()

    def gone_and_back(cluster: Machines) -> None:
        cluster.kill_workers()
        after(5.0, lambda: cluster.start_workers(2))

    worker_stops = stopped(first, goes_on=True)
    ttl = {"SCHEDULER__WORKER_TTL": "15s"}
    tiny = ("--no-nanny", "--memory-limit", "60MB")
    ended = ("--nanny", "--memory-limit", "100MB")

    def nothing(cluster: Machines) -> None:
        """Workers are unwell from the beginning."""

    return [
        Outage("a worker stops for a while", worker_stops),
        Outage("a worker stops for longer than worker-ttl", worker_stops, settings=ttl),
        Outage("the same, with nannies", worker_stops, options=("--nanny",), settings=ttl),
        Outage("a worker stops for good", stopped(first, goes_on=False)),
        Outage("two workers join", lambda cluster: cluster.start_workers(2)),
        Outage("a worker is killed, another one joins", replaced),
        Outage("all workers are killed, and others come after 5 s", gone_and_back),
        Outage("all workers are killed", Machines.kill_workers, SENTENCE),
        Outage("the scheduler stops for a while", stopped(scheduler, goes_on=True)),
        Outage("the scheduler stops for good", stopped(scheduler, goes_on=False)),
        Outage("the scheduler dies", lambda cluster: cluster.scheduler.kill(), SENTENCE),
        Outage("the scheduler dies, and begins anew", Machines.begin_anew),
        Outage("the memory of workers is too small to begin", nothing, SENTENCE, tiny),
        Outage("nannies end workers for their memory", nothing, SENTENCE, ended),
    ]  # fmt: skip


# --- a fit meanwhile --------------------------------------------------------------------------


class Ended(NamedTuple):
    how: str
    seconds: float
    lost: int | None
    said: list[str]


class Told(logging.Handler):
    """What the library says, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[float, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((monotonic(), record.getMessage()))


def fit_during(outage: Outage, expected: list[bytes]) -> Ended:
    told, begun = Told(), 0.0

    def look(progress: Any) -> None:
        nonlocal begun
        if progress.done > HAPPENS_AT and not begun:
            begun = monotonic()
            outage.happens(cluster)

    with machines(*outage.options, **outage.settings) as cluster, cluster.client(2) as client:
        logging.getLogger("isplitlbi").addHandler(told)
        asked = monotonic()
        try:
            model = ISplitLBI(**SETTINGS).fit(VOTES, client=client, progress=look)
            how = SAME if bits(model) == expected else "OTHER BITS"
            lost, last = model.costs_.losses, []
        except ISplitLBIError as error:
            how, lost, last = SENTENCE, None, [str(error)]
        except Exception as error:
            how, lost, last = "A BUG", None, [repr(error)]
        finally:
            logging.getLogger("isplitlbi").removeHandler(told)
        begun = begun or asked
        said = [f"{at - begun:.0f} s: {line}" for at, line in told.lines]
        return Ended(how, monotonic() - begun, lost, said + last)


def bits(model: ISplitLBI) -> list[bytes]:
    found = [model.consensus_, model.entry_times_, model.path_.deviation]
    if model.with_tests:
        found.append(model.abnormality_.p_value)
    return [np.ascontiguousarray(each).tobytes() for each in found]


# --- the command line -------------------------------------------------------------------------


def has_checkpoints(folder: str) -> bool:
    return any(name.endswith(".npz") for *_, names in os.walk(folder) for name in names)


def resume_with_another_scheduler() -> Ended:
    """Fit from the command line, kill the scheduler, and go on with another one."""
    with TemporaryDirectory() as folder:
        votes = Path(folder) / "votes.csv"
        names = VOTES.users[VOTES.user], VOTES.items[VOTES.left], VOTES.items[VOTES.right]
        columns = dict(zip(("user", "left", "right"), names, strict=True))
        columns["winner"] = [WORDS[outcome] for outcome in VOTES.outcome.tolist()]
        pl.DataFrame(columns).write_csv(votes)

        def begun(cluster: Machines, name: str, *options: str) -> subprocess.Popen[str]:
            cluster.client(2).close()
            return subprocess.Popen(
                [sys.executable, "-m", "isplitlbi", "fit", str(votes), "-o", f"{folder}/{name}",
                 "--scheduler", cluster.address, "--checkpoint-seconds", "0", *OPTIONS, *options],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip

        with machines() as cluster:
            assert begun(cluster, "undisturbed").wait() == 0
            fitting = begun(cluster, "disturbed")
            while not has_checkpoints(f"{folder}/.disturbed.unfinished"):
                assert fitting.poll() is None
            at = monotonic()
            cluster.scheduler.kill()
            _, sentence = fitting.communicate()
            seconds = monotonic() - at
        said = sentence.splitlines()
        how = SENTENCE if fitting.returncode == 2 else f"EXIT CODE {fitting.returncode}"
        if how == SENTENCE:
            with machines() as cluster:
                code = begun(cluster, "disturbed", "--resume").wait()
            is_same = code == 0 and (
                bits(load_model(f"{folder}/disturbed")) == bits(load_model(f"{folder}/undisturbed"))
            )
            how = SAME if is_same else "OTHER BITS"
        return Ended(how, seconds, None, said)


# --- memory -----------------------------------------------------------------------------------


def spill() -> Ended:
    """Read parts on workers that keep next to nothing of them in memory."""
    small = {"WORKER__MEMORY__TARGET": "0.01", "WORKER__MEMORY__SPILL": "0.02"}
    draw = runpy.run_path(str(HERE / "scale.py"))["draw"]
    spilled = 0
    with TemporaryDirectory() as folder:
        user, left, right, outcome = draw(N_SPILLED)
        words = np.array([WORDS[each] for each in (-1, 0, 1)])[outcome + 1]
        frame = pl.DataFrame({"user": user, "left": left, "right": right, "winner": words})
        for number in range(N_PARTS):
            frame[number::N_PARTS].write_parquet(f"{folder}/part-{number}.parquet")

        def fitted(client: Client) -> list[bytes]:
            model = ISplitLBI(**SETTINGS | {"time": 0.2}, with_tests=False)
            model.fit(folder, client=client)
            return bits(model)

        with machines() as cluster, cluster.client(2) as client:
            expected = fitted(client)
        with machines("--nanny", "--memory-limit", "2GB", **small) as cluster:
            ending = Event()

            def look() -> None:
                nonlocal spilled
                with cluster.client(2) as other:
                    while not ending.wait(0.05):
                        there = other.scheduler_info(n_workers=-1)["workers"].values()
                        on_disk = (each["metrics"]["spilled_bytes"]["disk"] for each in there)
                        spilled = max(spilled, sum(on_disk))

            looking = Thread(target=look)
            with cluster.client(2) as client:
                looking.start()
                begun = monotonic()
                how = SAME if fitted(client) == expected else "OTHER BITS"
                seconds = monotonic() - begun
                ending.set()
                looking.join()
    if not spilled:
        how = "NO SPILL"
    return Ended(how, seconds, 0, [f"at most {spilled / 1e6:.1f} MB were on disk at a time"])


RESUMED = "the scheduler dies during isplitlbi fit, then --resume"
SPILLED = "workers spill to disk"
OTHERS = {RESUMED: resume_with_another_scheduler, SPILLED: spill}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    known = {each.name: each for each in outages(asked.seconds)}
    names = asked.only or [*known, *OTHERS]
    if unknown := set(names) - {*known, *OTHERS}:
        parser.error(f"there is no outage {sorted(unknown)[0]!r}")
    missed = 0
    with machines() as cluster, cluster.client(2) as client:
        expected = bits(ISplitLBI(**SETTINGS).fit(VOTES, client=client))
    print(f"{'outage':<54}{'asked':>10}{'ended':>11}{'seconds':>9}{'lost':>6}")
    for name in names:
        wanted = known[name].asked if name in known else SAME
        ended = fit_during(known[name], expected) if name in known else OTHERS[name]()
        is_well = ended.how == wanted and ended.seconds <= MOST_SECONDS
        missed += not is_well
        lost = "" if ended.lost is None else ended.lost
        print(f"{name:<54}{wanted:>10}{ended.how:>11}{ended.seconds:>9.1f}{lost:>6}"
              f"{'' if is_well else '   MISSED'}", flush=True)  # fmt: skip
        for line in ended.said:
            print(f"    {line}", flush=True)
    print(f"outages: {len(names) - missed} of {len(names)} fits ended as asked")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
