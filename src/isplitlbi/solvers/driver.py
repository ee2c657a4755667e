"""One loop for every scheme: from an initial state through the requested times."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Self

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.errors import InvalidSetting, UnreadableCheckpoint
from isplitlbi.model.parameters import Course
from isplitlbi.path import Ending, RegularizationPath
from isplitlbi.runtime.base import Runtime
from isplitlbi.runtime.local import Local
from isplitlbi.runtime.progress import Progress, Reporter
from isplitlbi.solvers.average import AveragePerson
from isplitlbi.solvers.checkpoints import Checkpoint
from isplitlbi.solvers.likelihood import fit_before_entries
from isplitlbi.solvers.settings import PathSettings
from isplitlbi.solvers.state import State, time_to_leave
from isplitlbi.typing import Floats

__all__ = ["follow", "foretell", "room_for_snapshots"]

log = logging.getLogger("isplitlbi")

LARGE_SNAPSHOTS = 2e9  # bytes, above which their cost is told beforehand

SNAPSHOTS = ("consensus", "deviation", "sparse")

# The course of the consensus is noted whenever so large a share of the time has passed: at nearly
# every step of a scheme with long steps, at few of one with short ones.
NOTED_EVERY = 0.004

# Where steps are short, how far the path is is told every so many, and how long it will take is
# told beforehand, from so many; unless it takes no longer than this many seconds.
TOLD_EVERY, TRIED_STEPS, WORTH_TELLING = 500, 20, 5.0

Observer = Callable[[int, State], bool | None]


def follow(
    votes: Comparisons,
    settings: PathSettings,
    runtime: Runtime | None = None,
    *,
    initial: State | None = None,
    observe: Observer | None = None,
    keep: bool | str | Path = True,
    checkpoint: Checkpoint | None = None,
    reporter: Reporter | None = None,
) -> RegularizationPath:
    """Follow the path through the requested times.

    Parameters
    ----------
    votes
        Of the users here.
    settings
        What decides the path.
    runtime
        What the work is done with; where these are the votes of some users only, all machines
        follow the same path. By default one thread, and no other machine.
    initial
        Where to start; by default where a path of these terms begins. It is not changed.
    observe
        Called at every requested time with its index and the state, which it must not change. The
        path ends there where it returns true: on all machines, or on none.
    keep
        Whether to keep the users' snapshots, or the folder for them, where they are memory-mapped.
    checkpoint
        Where the state is kept now and then; a path whose checkpoint exists goes on from it.
    reporter
        Told at every requested time.
    """
    runtime = runtime or Local(votes)
    layout, times = settings.terms.layout(votes), settings.followed
    snapshots = _Snapshots((len(times), layout.vector.width), layout.n_slots, keep)
    average = AveragePerson(layout, settings.terms, runtime)
    resumed = None if checkpoint is None else checkpoint.restore()
    if resumed is None:
        state, is_over = _beginning(votes, settings, runtime, initial), False
        course = _Noted(average, state)
    else:
        state, is_over = resumed.state, resumed.is_over
        course = _Noted.restored(average, resumed.extra)
        snapshots.restore(resumed.n_done, resumed.extra)
    told = _Told(settings, reporter)
    told.now(state, is_over=is_over)
    walk = _Walk(layout, settings, runtime, state, course, told)
    while not is_over and (here := walk.to(times[snapshots.taken])) is not None:
        index, here = snapshots.taken, average.shown(here)
        snapshots.take(here)
        is_over = observe is not None and bool(observe(index, here))
        is_over |= index + 1 == len(times)
        told.now(here, is_over=is_over)
        del here  # frees its arrays before the next step needs some
        # A later path goes on from the state, so that nothing may be left to do before it.
        if checkpoint is not None and (is_over or walk.state.time < times[index + 1]):
            checkpoint.offer(walk.state, index + 1, snapshots.kept() | course.kept(), last=is_over)
    return walk.path(snapshots)


def _beginning(
    votes: Comparisons, settings: PathSettings, runtime: Runtime, initial: State | None
) -> State:
    """Return where a path begins, unless that is given.

    The paper's begins at nothing, and is soon where consensus and deviations come to rest. Others
    begin there: everybody has what the ridge allows, and nobody has begun to leave.
    """
    terms, dynamics, first = settings.terms, settings.dynamics, settings.times[0]
    if initial is not None:
        if initial.time > first:
            raise InvalidSetting(
                f"the first time is {first:g}, before the state's {initial.time:g}."
            )
        return initial.copy()
    layout = terms.layout(votes)
    state = State.initial(layout, terms.start(layout.vector, dynamics.delta))
    if terms.ties != "bounded":
        resting = fit_before_entries(votes, settings.link, dynamics, runtime, terms=terms)
        state.consensus, state.deviation = resting.consensus, resting.deviation
    return state


def foretell(votes: Comparisons, settings: PathSettings, runtime: Runtime, n_paths: int) -> None:
    """Say how long so many paths will take, of a scheme whose steps are short: some are tried."""
    horizon, state = settings.followed[-1], _beginning(votes, settings, runtime, None)
    stepper = settings.scheme.prepare(settings.terms.layout(votes), settings, runtime)
    stepper.step(state, horizon, horizon)  # compiles
    since, begun = state.time, perf_counter()
    for _ in range(TRIED_STEPS):
        stepper.step(state, horizon, horizon)
    each = (perf_counter() - begun) / TRIED_STEPS
    if state.time >= horizon:
        return
    n_steps = TRIED_STEPS * horizon / (state.time - since)
    seconds = n_steps * each * n_paths  # threads would wait for each other between short steps
    if seconds > WORTH_TELLING:
        long = f"{seconds / 60.0:,.0f} minutes" if seconds > 120.0 else f"{seconds:.0f} seconds"
        log.warning(
            "the %s solver takes about %s steps for a path, and follows %s: about %s. The implicit "
            "solver follows the same in a small part of that.",
            settings.as_dict()["scheme"], f"{n_steps:,.0f}",
            "one" if n_paths == 1 else f"{n_paths}", long,
        )  # fmt: skip


class _Told:
    """Tells how far a path is: by the times asked for or, where steps are short, by time."""

    def __init__(self, settings: PathSettings, reporter: Reporter | None) -> None:
        self._times, self._reporter = settings.followed, reporter
        self._is_by_time = reporter is not None and not settings.scheme.works_together

    def now(self, state: State, *, is_over: bool = False) -> None:
        """Tell, at a time that was asked for; of a path that is over, nothing is left to do."""
        if self._reporter is not None:
            n_out = int(np.isfinite(state.entry_times).sum()) if self._reporter.is_heard else 0
            done = np.searchsorted(self._times, state.time, "right") / len(self._times)
            if self._is_by_time:
                done = state.time / self._times[-1]
            self._reporter.reach(Progress(1.0 if is_over else float(done), state.time, n_out))

    def on_the_way(self, state: State) -> None:
        """Tell now and then, between such times."""
        if self._is_by_time and state.n_steps % TOLD_EVERY == 0:
            self.now(state)


class _Noted:
    """The course of the consensus, noted as a path is followed."""

    def __init__(self, average: AveragePerson, start: State | None = None) -> None:
        self._average = average
        self.times: list[float] = []
        self.consensus: list[Floats] = []
        self.pull: list[float] = []
        if start is not None:
            self._note(start, start.time)

    @classmethod
    def restored(cls, average: AveragePerson, kept: dict[str, Floats]) -> Self:
        """Take what a checkpoint held; nothing is left of it there."""
        noted = cls(average)
        noted.times, noted.pull = (
            kept.pop(f"course_{name}").tolist() for name in ("times", "pull")
        )
        noted.consensus = list(kept.pop("course_consensus"))
        return noted

    def note(self, state: State, last: float) -> None:
        """Note where the consensus is, unless it was noted a moment ago."""
        if state.time >= (1.0 + NOTED_EVERY) * self.times[-1] or state.time == last:
            self._note(state, state.time)

    def _note(self, state: State, time: float) -> None:
        self.times.append(time)
        self.consensus.append(state.consensus.copy())
        self.pull.append(self._average.pull(state))

    def course(self) -> Course:
        """Return all that was noted."""
        return Course(np.array(self.times), np.array(self.consensus), np.array(self.pull))

    def stay(self, state: State, times: Floats) -> None:
        """Note that the consensus stays where it is at all later times."""
        for time in np.union1d(state.time, times):
            if time > self.times[-1]:
                self._note(state, float(time))

    def kept(self) -> dict[str, Floats]:
        """Return what a checkpoint must hold of it."""
        return {f"course_{name}": values for name, values in self.course()._asdict().items()}


class _Walk:
    """A state that advances step by step, and how that ended."""

    def __init__(
        self,
        layout: Layout,
        settings: PathSettings,
        runtime: Runtime,
        state: State,
        course: _Noted,
        told: _Told,
    ) -> None:
        self.state, self._before = state, replace(state)
        self._course, self._told = course, told
        self.ending = Ending.COMPLETE
        self._stepper = settings.scheme.prepare(layout, settings, runtime)
        self._runtime = runtime
        self._layout, self._settings = layout, settings

    def to(self, time: float) -> State | None:
        """Return the state at that time, to be looked at; nothing if it is not reached."""
        state, slots = self.state, self._layout.slots
        while state.time < time:
            self._before = replace(state)
            self.ending = self._step(time)
            if self.ending is not Ending.COMPLETE:
                return None
            self._told.on_the_way(state)
        return state if state.time == time else self._before.toward(state, time, slots)

    def path(self, snapshots: _Snapshots) -> RegularizationPath:
        """Return what was followed, as far as it was."""
        entry_times = self.state.entry_times
        if self.ending is Ending.COMPLETE and self.state.time < self._horizon:
            entry_times = self._expected_entries()
            self._course.stay(self.state, self._settings.times)
        return RegularizationPath(
            self._layout.vector,
            self._layout.slots,
            self._settings.times[: snapshots.taken],
            **snapshots.all_taken(),
            entry_times=entry_times,
            ending=self.ending,
            n_steps=self.state.n_steps,
            settings=self._settings.as_dict(),
            course=self._course.course(),
        )

    @property
    def _horizon(self) -> float:
        return float(self._settings.times[-1])

    def _expected_entries(self) -> Floats:
        """Return when users left or, after the stop, will leave if nobody moves before that."""
        state, known = self.state, self.state.entry_times
        rate = state.deviation / self._settings.dynamics.coupling
        later = state.time + time_to_leave(state.dual, rate, self._layout.slots)
        return np.where(np.isinf(known) & (later <= self._horizon), later, known)

    def _step(self, until: float) -> Ending:
        state = self.state
        if state.n_steps >= self._settings.scheme.max_steps:
            return Ending.STEP_LIMIT
        since, old_norm = state.time, state.dual_norm
        self._stepper.step(state, until, self._horizon)
        state.n_steps += 1
        watched = (state.consensus, state.deviation, state.dual_norm)
        if self._runtime.any(not all(np.isfinite(values).all() for values in watched)):
            return Ending.NOT_FINITE
        state.record_entries(since, old_norm)
        self._course.note(state, self._horizon)
        return Ending.COMPLETE


class _Snapshots:
    """Room for the requested snapshots: none, in memory, or in a folder."""

    def __init__(self, shape: tuple[int, int], n_slots: int, keep: bool | str | Path) -> None:
        self.taken = 0
        self.keeps_users, self.on_disk = keep is not False, isinstance(keep, str | Path)
        self.consensus, n_times = np.empty(shape), shape[0]
        of_users = (n_times if self.keeps_users else 0, n_slots)
        cost = 2 * 8 * of_users[0] * of_users[1]
        if cost > LARGE_SNAPSHOTS:
            log.warning(
                "keeping %d snapshots of %s parameters takes %.1f GB%s",
                n_times,
                f"{n_slots:,}",
                cost / 1e9,
                "." if self.on_disk else "; ask for fewer times, or name a folder for them.",
            )
        self.folder = Path(keep) if isinstance(keep, str | Path) else None
        self.deviation, self.sparse = (
            room_for_snapshots(of_users, name, self.folder) for name in ("deviation", "sparse")
        )

    def take(self, state: State) -> None:
        self.consensus[self.taken] = state.consensus
        if self.keeps_users:
            self.deviation[self.taken] = state.deviation
            self.sparse[self.taken] = state.sparse
        self.taken += 1

    def all_taken(self) -> dict[str, Floats]:
        return {name: getattr(self, name)[: self.taken] for name in SNAPSHOTS}

    def kept(self) -> dict[str, Floats]:
        """Return what a checkpoint must hold of them: what is not on disk already."""
        kept = {"consensus": self.consensus[: self.taken]}
        if self.on_disk:
            for values in (self.deviation, self.sparse):
                values.flush()  # type: ignore[attr-defined]
        elif self.keeps_users:
            kept["deviation"] = self.deviation[: self.taken]
            kept["sparse"] = self.sparse[: self.taken]
        return kept

    def restore(self, taken: int, kept: Mapping[str, Floats]) -> None:
        """Take back what a checkpoint held."""
        if self.on_disk and not np.any(self.deviation[:taken]) and np.any(kept["consensus"]):
            raise UnreadableCheckpoint(
                f"{self.folder}: the snapshots of the interrupted path are gone; start a new fit."
            )
        self.taken = taken
        for name, values in kept.items():
            getattr(self, name)[:taken] = values


def room_for_snapshots(shape: tuple[int, int], name: str, folder: Path | None) -> Floats:
    """Make room in memory, or in a folder, where it is mapped."""
    if folder is None:
        return np.empty(shape)
    folder.mkdir(parents=True, exist_ok=True)
    return _mapped(folder / f"{name}.npy", shape)


def _mapped(file: Path, shape: tuple[int, int]) -> Floats:
    """Map a file of that shape into memory, with what it holds if it is there already."""
    if file.exists():
        try:
            found: Floats = np.lib.format.open_memmap(file, mode="r+")
        except (ValueError, OSError):
            found = np.empty(0)
        if found.shape == shape and found.dtype == np.float64:
            return found
    mapped = np.lib.format.open_memmap(file, mode="w+", dtype=np.float64, shape=shape)
    if hasattr(os, "posix_fallocate"):
        # A disk that fills up under mapped memory would end the process; now it is an error.
        with file.open("r+b") as stream:
            os.posix_fallocate(stream.fileno(), 0, file.stat().st_size)
    return mapped
