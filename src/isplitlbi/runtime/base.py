"""Who does the work: one interface, whether all users are on this machine or on several.

Conventions
-----------
machine    a process that holds the votes of some users, next to each other in the vocabulary
runtime    what a machine knows of the users that are elsewhere, and what it works with
job        something that all machines do together, each for its users
workforce  all machines, as seen from where a fit is asked for
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.summary import Summary
from isplitlbi.runtime.progress import Reporter
from isplitlbi.typing import Floats

__all__ = ["Job", "Numbers", "Runtime", "Stored", "Workforce"]

Found = TypeVar("Found")


class Numbers(Protocol):
    """A generator's numbers, as far as they belong here."""

    def random(self, n: int, /) -> Floats:
        """Draw the next numbers between 0 and 1: as many as there is use for here."""


class Runtime(ABC):
    """What one machine works with, and how it learns of the users that are elsewhere.

    All machines call the same methods in the same order.

    Attributes
    ----------
    loops : module
        Of `kernels`. It decides how fast a path is followed, not where it leads.
    n_threads : int
        Threads that share the users here.
    first : int
        Index, among all users, of the first one here.
    n_users, n_votes : int
        Of all machines.
    """

    loops: ModuleType
    n_threads: int
    first: int
    n_users: int
    n_votes: int

    @property
    @abstractmethod
    def is_alone(self) -> bool:
        """Whether all users are here."""

    @abstractmethod
    def _added(self, values: Floats) -> Floats:
        """Add up one vector over all machines."""

    @abstractmethod
    def numbers(self, seed: int | None) -> Numbers:
        """Return what draws, of one generator's numbers for all users, those that belong here."""

    @property
    @abstractmethod
    def memory(self) -> dict[Hashable, Any]:
        """What jobs leave for later ones; gone on a machine that takes the place of another."""

    @abstractmethod
    def kept(self, key: Hashable, make: Callable[[], Found]) -> Found:
        """Return what is made, which may be kept for the next job that asks for it."""

    def total(self, *parts: Any) -> list[Any]:
        """Add up numbers and vectors over all machines, in one exchange."""
        if self.is_alone:
            return list(parts)
        flat = [np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in parts]
        ends = np.cumsum([len(part) for part in flat])[:-1]
        sums = np.split(self._added(np.concatenate(flat)), ends)
        return [
            values if isinstance(part, np.ndarray) else float(values[0])
            for part, values in zip(parts, sums, strict=True)
        ]

    def any(self, found: bool) -> bool:
        """Say whether something was found on any machine."""
        return bool(self.total(float(found))[0] > 0.0)

    def everybody(self, values: Floats) -> Floats:
        """Return the values of all users, in order, from those of the users here."""
        everyone: Floats = np.zeros(self.n_users)
        everyone[self.first : self.first + len(values)] = values
        return everyone if self.is_alone else self._added(everyone)


class Job(Protocol):
    """Something that all machines do together: frozen, and able to travel."""

    def run(self, votes: Comparisons, runtime: Runtime, reporter: Reporter) -> Any:
        """Do what belongs to the users here; a result may be `Stored`."""

    def join(self, parts: Sequence[Any]) -> Any:
        """Make one result of those of all machines, which come in the order of the users."""


class Stored:
    """A result with large arrays, which stay where they are until they are taken row by row."""

    def __init__(self, value: Any, arrays: dict[str, Floats]) -> None:
        self.value, self._arrays = value, arrays

    def row(self, name: str, row: int) -> Floats:
        """Take one row of an array."""
        taken: Floats = self._arrays[name][row]
        return taken


class Workforce(Protocol):
    """All machines that hold the votes of a fit; they do jobs, one by one or side by side."""

    @property
    def summary(self) -> Summary:
        """What is known of all votes."""

    @property
    def backend(self) -> str | None:
        """What the loops are, if that was chosen."""

    @property
    def costs(self) -> Any:
        """What working together came to, if that is known."""

    @property
    def is_alone(self) -> bool:
        """Whether this is one machine."""

    def run(self, job: Job, reporter: Reporter) -> Any:
        """Do a job; return what its parts are joined to."""

    def side_by_side(self, jobs: Sequence[tuple[Job, Reporter]], reporter: Reporter) -> list[Any]:
        """Do all jobs, or stop them all when one fails; return what they come to, in order."""

    def settle(self, folder: Path) -> None:
        """Note beside checkpoints what they depend on."""
