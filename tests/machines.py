"""Users on several machines, for tests: threads that exchange sums, and jobs to ask runtimes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.summary import Summary
from isplitlbi.runtime.dask.shards import ShardRuntime, Whole
from isplitlbi.runtime.progress import Reporter


class Meeting:
    """An exchange between threads: everybody waits until all have said their part."""

    def __init__(self, n_machines):
        self.said = [None] * n_machines
        self.barrier = threading.Barrier(n_machines, timeout=20)

    def of(self, number):
        def exchange(values):
            self.said[number] = values
            self.barrier.wait()
            total = np.sum(np.stack(self.said), axis=0)
            self.barrier.wait()  # before anybody says the next
            return total

        return exchange


def shards_of(votes, bounds):
    """Return the votes of the users between bounds, counted from the first of them."""
    shards = []
    for first, end in pairwise(bounds):
        rows = np.flatnonzero((votes.user >= first) & (votes.user < end))
        columns = (votes.left, votes.right, votes.outcome, votes.weight, votes.group)
        times = {"time": votes.time, "duration": votes.duration}
        shards.append(
            Comparisons(
                np.arange(end - first), votes.items, votes.user[rows] - np.int32(first),
                *(None if column is None else column[rows] for column in columns),
                features=None if votes.features is None else votes.features.subset(rows),
                **{name: None if each is None else each[rows] for name, each in times.items()},
            )
        )  # fmt: skip
    return shards


def even_bounds(votes, n_machines):
    return np.linspace(0, votes.n_users, n_machines + 1).astype(int).tolist()


def on_machines(votes, bounds, work, n_threads=1):
    """Call ``work(shard, runtime)`` of all shards side by side; return the results in order."""
    shards, meeting = shards_of(votes, bounds), Meeting(len(bounds) - 1)
    whole = Whole(len(shards), votes.n_users, len(votes), n_threads, None)

    def run(number):
        exchange = meeting.of(number)
        runtime = ShardRuntime(number, bounds[number], whole, exchange)
        try:
            return work(shards[number], runtime)
        except BaseException:
            meeting.barrier.abort()  # the others need not wait
            raise

    with ThreadPoolExecutor(len(shards)) as pool:
        started = [pool.submit(run, number) for number in range(len(shards))]
    broken = [job.exception() for job in started if job.exception() is not None]
    for error in broken:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [job.result() for job in started]


class Threads:
    """A workforce of threads, each of which holds some users."""

    costs = backend = None
    is_alone = False

    def __init__(self, votes, n_machines):
        self.votes, self.bounds = votes, even_bounds(votes, n_machines)
        self.summary = Summary.of(votes)

    def run(self, job, reporter):
        parts = on_machines(
            self.votes, self.bounds, lambda *here: job.run(*here, Reporter(reporter.reach))
        )
        return job.join(parts)

    def side_by_side(self, jobs, reporter):
        return [self.run(*each) for each in jobs]


@dataclass(frozen=True)
class Ask:
    """A job that calls one of the functions below on every machine, and returns all they say."""

    question: str
    argument: Any = None

    def run(self, votes, runtime, reporter):
        return globals()[self.question](votes, runtime, reporter, self.argument)

    def join(self, parts):
        return list(parts)


def users_here(votes, runtime, reporter, argument):
    return runtime.first, votes.n_users


def known_of_all(votes, runtime, reporter, argument):
    return runtime.n_users, runtime.n_votes, runtime.n_threads >= 1, bool(runtime.loops.__name__)


def totals(votes, runtime, reporter, argument):
    return runtime.total(votes.n_users, votes.votes_per_user.astype(float).sum(), np.ones(3))


def votes_by_item(votes, runtime, reporter, argument):
    counts = np.bincount(np.append(votes.left, votes.right), minlength=votes.n_items)
    return runtime.total(counts)[0]


def somebody_is(votes, runtime, reporter, user):
    return runtime.any(runtime.first <= user < runtime.first + votes.n_users)


def everybody(votes, runtime, reporter, values):
    return runtime.everybody(values[runtime.first :][: votes.n_users])


def drawn(votes, runtime, reporter, seed):
    numbers = runtime.numbers(seed)
    return numbers.random(len(votes)), numbers.random(votes.n_users)


def kept(votes, runtime, reporter, argument):
    return runtime.kept("key", lambda: runtime.first)


def progress(votes, runtime, reporter, argument):
    for _ in range(4):
        reporter.advance(0.25, 1.5, 1)
        runtime.any(False)


def failure(votes, runtime, reporter, argument):
    runtime.any(False)
    raise ZeroDivisionError("out of luck")
