"""One loop for every scheme: from an initial state through the requested times.

The path is the solution of::

    c' = -kappa grad_c L        P' = -kappa (grad_P L + (P - Gamma) / nu)
    Z' = (P - Gamma) / nu       Gamma = kappa shrink(Z)

with the thresholds of the consensus and of every user at least delta. L is the *sum* of the losses
over votes, so that nu, kappa and t mean the same for three thousand votes and thirty million.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np

from isplitlbi import kernels
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.errors import UnreadableCheckpoint
from isplitlbi.model.links import Link
from isplitlbi.path import Ending, RegularizationPath
from isplitlbi.runtime.blocks import Exchange, total
from isplitlbi.solvers.checkpoints import Checkpoint
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats

log = logging.getLogger("isplitlbi")

LARGE_SNAPSHOTS = 2e9  # bytes, above which their cost is told beforehand


@dataclass(frozen=True)
class Dynamics:
    """The differential equation: which path is followed, whatever the scheme.

    Attributes
    ----------
    nu : float
        Prior variance of a user's weak deviations, in units of the link. Towards zero, only users
        outside the consensus deviate at all, and the path becomes that of LBI.
    kappa : float
        Damping: larger values bring the strong deviations closer to unbiased ones.
    delta : float
        Smallest tie threshold allowed.
    """

    nu: float = 0.3
    kappa: float = 30.0
    delta: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse values for which there is no path."""
        for name, value in asdict(self).items():
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}; it must be positive and finite.")


class Machine(NamedTuple):
    """What the work is done with; it decides how fast a path is followed, not where it leads."""

    loops: Any  # a module of `kernels`
    n_threads: int
    exchange: Exchange | None = None  # with the machines that hold the other users

    def any(self, found: bool) -> bool:
        """Say whether something was found on any machine."""
        return bool(total(self.exchange, float(found))[0] > 0.0)


class Stepper(Protocol):
    """A scheme made ready for some votes."""

    def step(self, state: State, until: float, last: float) -> None:
        """Advance the state by one step and update its time and its dual's norms.

        The next requested time is ``until``, the last one ``last``. A step may pass the former,
        never the latter; one that passes ``until`` replaces the state's arrays and leaves the old
        ones as they were, for the driver to look between.
        """


class Scheme(Protocol):
    """Settings of a scheme; frozen, and able to get ready for some votes."""

    @property
    def max_steps(self) -> int:
        """Number of steps after which a path is given up."""

    def rough(self) -> Scheme:
        """Return settings for paths that only score held-out votes."""

    def prepare(
        self, votes: Comparisons, link: Link, dynamics: Dynamics, machine: Machine
    ) -> Stepper:
        """Return a stepper for these votes."""


Observer = Callable[[int, State], None]


class Progress(NamedTuple):
    """How far a fit has got."""

    done: float  # share of the work, from 0 to 1
    time: float  # on the path
    users_out: int


class Stopped(Exception):
    """Raised in paths that are no longer wanted."""


class Reporter:
    """Tells of several paths, one after another or side by side, as of one piece of work."""

    def __init__(self, n_paths: int, tell: Callable[[Progress], None] | None) -> None:
        self._n_paths, self._tell = n_paths, tell
        self._done, self._lock = 0.0, Lock()
        self._stopped = False

    def advance(self, share: float, state: State) -> None:
        """Add a share of one path to the work done."""
        if self._stopped:
            raise Stopped
        if self._tell is not None:
            with self._lock:
                self._done += share / self._n_paths
                out = int(np.isfinite(state.entry_times).sum())
                self._tell(Progress(min(self._done, 1.0), state.time, out))

    def stop(self) -> None:
        """Let every path end at its next requested time."""
        self._stopped = True


def follow(
    votes: Comparisons,
    link: Link,
    dynamics: Dynamics,
    scheme: Scheme,
    times: Sequence[float] | Floats,
    *,
    initial: State | None = None,
    observe: Observer | None = None,
    keep: bool | str | Path = True,
    checkpoint: Checkpoint | None = None,
    reporter: Reporter | None = None,
    n_threads: int = 1,
    backend: str | None = None,
    exchange: Exchange | None = None,
) -> RegularizationPath:
    """Follow the path through the requested times.

    Parameters
    ----------
    times
        Increasing times at which to take a snapshot.
    initial
        Where to start; the paper's start by default. It is not changed.
    observe
        Called at every requested time with its index and the state, which it must not change.
    keep
        Whether to keep the users' snapshots; without, memory does not grow with the times. A
        folder keeps them there, memory-mapped.
    checkpoint
        Where the state is kept now and then; a path whose checkpoint exists goes on from it.
    reporter
        Told at every requested time.
    n_threads
        Threads that share the users. The result is the same for any number.
    exchange
        Where these are the votes of some users only: adds up over the machines that hold the
        others, each of which follows the same path.
    """
    wanted = _checked_times(times)
    state = (
        State.initial(votes.slots, votes.n_items, dynamics.delta)
        if initial is None
        else initial.copy()
    )
    if state.time > wanted[0]:
        raise ValueError(f"the first time is {wanted[0]:g}, before the state's {state.time:g}.")
    machine = Machine(kernels.backend(backend), n_threads, exchange)
    stepper = scheme.prepare(votes, link, dynamics, machine)
    snapshots = _Snapshots(len(wanted), votes.n_items + 1, len(votes.slots.coordinate), keep)
    resumed = None if checkpoint is None else checkpoint.restore()
    if resumed is not None:
        state = resumed.state
        snapshots.restore(resumed.n_done, resumed.extra)
        if reporter is not None:
            reporter.advance(resumed.n_done / len(wanted), state)
    ending = Ending.COMPLETE
    before = replace(state)
    for index in range(snapshots.taken, len(wanted)):
        time = wanted[index]
        while state.time < time and ending is Ending.COMPLETE:
            before = replace(state)
            ending = _advance(stepper, machine, state, time, wanted[-1], scheme.max_steps)
        if ending is not Ending.COMPLETE:
            break
        here = state if state.time == time else before.toward(state, time, votes.slots)
        snapshots.take(here)
        if observe is not None:
            observe(index, here)
        if reporter is not None:
            reporter.advance(1.0 / len(wanted), here)
        del here  # frees its arrays before the next step needs some
        # A later path goes on from the state, so that nothing may be left to do before it.
        last = index + 1 == len(wanted)
        if checkpoint is not None and (last or state.time < wanted[index + 1]):
            checkpoint.offer(state, index + 1, snapshots.kept(), last=last)

    return RegularizationPath(
        slots=votes.slots,
        times=wanted[: snapshots.taken],
        consensus=snapshots.consensus[: snapshots.taken],
        deviation=snapshots.deviation[: snapshots.taken],
        sparse=snapshots.sparse[: snapshots.taken],
        entry_times=state.entry_times,
        ending=ending,
        n_steps=state.n_steps,
        settings={
            "link": link.name,
            "scheme": type(scheme).__name__.lower(),
            **asdict(dynamics),
            **asdict(scheme),  # type: ignore[call-overload]
        },
    )


class _Snapshots:
    """Room for the requested snapshots: none, in memory, or in a folder."""

    def __init__(self, n_times: int, width: int, n_slots: int, keep: bool | str | Path) -> None:
        self.taken = 0
        self.keeps_users, self.on_disk = keep is not False, isinstance(keep, str | Path)
        self.consensus = np.empty((n_times, width))
        shape = (n_times if self.keeps_users else 0, n_slots)
        cost = 2 * 8 * shape[0] * shape[1]
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
            room_for_snapshots(shape, name, self.folder) for name in ("deviation", "sparse")
        )

    def take(self, state: State) -> None:
        self.consensus[self.taken] = state.consensus
        if self.keeps_users:
            self.deviation[self.taken] = state.deviation
            self.sparse[self.taken] = state.sparse
        self.taken += 1

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
                f"{self.folder}: the snapshots of the interrupted path are gone; start it anew."
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


def _advance(
    stepper: Stepper, machine: Machine, state: State, until: float, last: float, max_steps: int
) -> Ending:
    if state.n_steps >= max_steps:
        return Ending.STEP_LIMIT
    since, old_norm = state.time, state.dual_norm
    stepper.step(state, until, last)
    state.n_steps += 1
    watched = (state.consensus, state.deviation, state.dual_norm)
    if machine.any(not all(np.isfinite(values).all() for values in watched)):
        return Ending.NOT_FINITE
    state.record_entries(since, old_norm)
    return Ending.COMPLETE


def _checked_times(times: Sequence[float] | Floats) -> Floats:
    wanted = np.asarray(times, dtype=np.float64)
    if wanted.ndim != 1 or len(wanted) == 0:
        raise ValueError("times must be a list of at least one number.")
    if not (np.isfinite(wanted).all() and wanted[0] > 0 and (np.diff(wanted) > 0).all()):
        raise ValueError("times must be positive, finite and strictly increasing.")
    return wanted
