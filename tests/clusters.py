"""Clusters for tests: a scheduler and its workers, in processes of their own, on loopback."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

DASK = Path(sys.executable).with_name("dask")
# As a nanny sets it, which these workers do not have: their threads would wait for each other.
ALONE = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Processes:
    """A scheduler and its workers, started from the command line.

    Settings are variables of the environment that Dask reads.
    """

    def __init__(self, folder, protocol="tcp", **settings):
        self.folder, self.workers, self.settings = folder, [], settings
        self.file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--protocol", protocol,
            "--scheduler-file", str(self.file),
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _start(self, *arguments):
        # Workers find the jobs that tests give them beside this file.
        paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        return subprocess.Popen(
            [sys.executable, DASK, *arguments], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=self.folder,
            env=os.environ | ALONE | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
            | self.settings,
        )  # fmt: skip

    def add(self, n_workers):
        for _ in range(n_workers):
            self.workers.append(
                self._start(
                    "worker", "--scheduler-file", str(self.file), "--host", "127.0.0.1",
                    "--nthreads", "1", "--no-nanny", "--no-dashboard",
                )
            )  # fmt: skip

    @property
    def address(self):
        return json.loads(self.file.read_text(encoding="utf-8"))["address"]

    def client(self, n_workers, **how):
        from distributed import Client

        client = Client(scheduler_file=str(self.file), direct_to_workers=True, **how)
        if n_workers:
            client.wait_for_workers(n_workers, timeout=60)
        return client

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def processes(folder, n_workers, security=None, **settings):
    """Give a cluster of so many workers, and a client of it."""
    started = Processes(folder, **settings)
    try:
        started.add(n_workers)
        with started.client(n_workers, security=security) as client:
            yield started, client
    finally:
        started.stop()
