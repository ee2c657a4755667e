"""How far the work has got, and an end to work that is no longer wanted."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

__all__ = ["Progress", "Reporter", "Stopped"]


class Progress(NamedTuple):
    """How far a fit has got."""

    done: float  # share of the work, from 0 to 1
    time: float = 0.0  # on the path
    users_out: int = 0
    doing: str = ""  # what is being done, where that is not the path


class Stopped(Exception):
    """Raised in work that is no longer wanted."""


class Reporter:
    """Tells how far some work has got: one piece, or several parts of it side by side.

    Parameters
    ----------
    tell
        Called with the progress of all the work.
    doing
        What is being done.
    """

    def __init__(self, tell: Callable[[Progress], None] | None = None, doing: str = "") -> None:
        self._tell, self._doing = tell, doing
        self._done, self._lock = 0.0, Lock()
        self._stopped = False

    def part(self, share: float, doing: str = "") -> Reporter:
        """Return what a part is told to that makes up such a share of the work."""
        return _Part(self, share, doing or self._doing)

    def advance(self, share: float, time: float = 0.0, users_out: int = 0) -> None:
        """Add a share to the work done."""
        self._move(share, time, users_out, self._doing)

    def reach(self, progress: Progress) -> None:
        """Say how far the work is by now."""
        doing = progress.doing or self._doing
        self._move(progress.done - self._done, progress.time, progress.users_out, doing)

    def stop(self) -> None:
        """Let the work end where it next tells how far it is."""
        self._stopped = True

    @property
    def is_stopped(self) -> bool:
        """Whether the work is no longer wanted."""
        return self._stopped

    @property
    def is_heard(self) -> bool:
        """Whether anybody is told: otherwise there is no need to find out what to tell."""
        return self._tell is not None

    def _move(self, share: float, time: float, users_out: int, doing: str) -> None:
        if self.is_stopped:
            raise Stopped
        with self._lock:
            self._done += share
            if self._tell is not None:
                self._tell(Progress(min(self._done, 1.0), time, users_out, doing))


class _Part(Reporter):
    def __init__(self, whole: Reporter, share: float, doing: str) -> None:
        super().__init__(None, doing)
        self._whole, self._share = whole, share

    @property
    def is_stopped(self) -> bool:
        return self._stopped or self._whole.is_stopped

    @property
    def is_heard(self) -> bool:
        return self._whole.is_heard

    def _move(self, share: float, time: float, users_out: int, doing: str) -> None:
        super()._move(share, time, users_out, doing)
        self._whole._move(self._share * share, time, users_out, doing)
