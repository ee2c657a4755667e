"""What decides a path: the differential equation, the scheme that follows it, and the times.

The path is the solution of::

    c' = -kappa grad_c L        P' = -kappa (grad_P L + (P - Gamma) / nu)
    Z' = (P - Gamma) / nu       Gamma = kappa shrink(Z)

with the thresholds of the consensus and of every user at least delta. L is the *sum* of the losses
over votes, so that nu, kappa and t mean the same for three thousand votes and thirty million.

Where deviations have a reach r, a prior of variance r nu holds users who have left, too: its pull
P / (r nu) is added to grad_P L. The other pull is weaker by as much, so that together they hold
those who have not left as nu does alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from isplitlbi.data.layout import Layout
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.links import Link
from isplitlbi.model.terms import PAPER, Terms
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.state import State
from isplitlbi.typing import Floats

__all__ = ["Dynamics", "PathSettings", "Scheme", "Stepper"]


@dataclass(frozen=True)
class Dynamics:
    """The differential equation: which path is followed, whatever the scheme.

    Attributes
    ----------
    nu : float
        Prior variance of a user's weak deviations, in units of the link. Towards zero, only users
        outside the consensus deviate at all, and the path becomes that of LBI.
    reach : float
        Prior variance of the deviations of users outside the consensus, over nu: more than 1, or
        infinite. It keeps them finite where nothing else does.
    kappa : float
        Damping: larger values bring the strong deviations closer to unbiased ones.
    delta : float
        Smallest tie threshold allowed.
    """

    nu: float = 0.3
    kappa: float = 30.0
    delta: float = 1e-3
    reach: float = np.inf

    def __post_init__(self) -> None:
        """Refuse values for which there is no path."""
        for name in ("nu", "kappa", "delta"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InvalidSetting(f"{name} is {value}; it must be positive and finite.")
        if not self.reach > 1.0:
            raise InvalidSetting(f"reach is {self.reach}; it must be more than 1.")

    @property
    def coupling(self) -> float:
        """What stands for nu between P and Gamma; with the pull of the reach it holds like nu."""
        return self.nu / (1.0 - 1.0 / self.reach)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The coupling, kappa, and the precision that holds P whoever has left."""
        return self.coupling, self.kappa, 1.0 / (self.reach * self.nu)


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

    @property
    def works_together(self) -> bool:
        """Whether machines that hold different users can follow a path together."""

    def rough(self) -> Scheme:
        """Return settings for paths that only score held-out votes."""

    def prepare(self, layout: Layout, settings: PathSettings, runtime: Runtime) -> Stepper:
        """Return a stepper for these votes."""

    def pack(self, memory: Any) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Return what a checkpoint must hold of the scheme's own `State.memory`.

        The first part must be plain enough for JSON.
        """

    def unpack(self, header: Mapping[str, Any], arrays: Mapping[str, Floats]) -> Any:
        """Return the memory from what `pack` has made of it."""


@dataclass(frozen=True, eq=False)
class PathSettings:
    """Everything that decides a path, besides the votes.

    Attributes
    ----------
    link, dynamics, scheme
        The model, its differential equation, and how that is followed.
    times : (n_times,)
        Increasing times at which to take a snapshot.
    terms : Terms
        In which ways users may differ.
    stop : float
        Where to stop: later times only say where the path would lead, so that its steps are the
        same as without a stop.
    """

    link: Link
    dynamics: Dynamics
    scheme: Scheme
    times: Floats
    terms: Terms = PAPER
    stop: float = np.inf

    def __post_init__(self) -> None:
        """Refuse times that are none."""
        object.__setattr__(self, "times", _checked_times(self.times))

    @property
    def followed(self) -> Floats:
        """The times up to the stop."""
        return self.times[self.times <= self.stop]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it but the times, in plain values."""
        return {
            "link": self.link.name,
            "terms": self.terms.as_dict(),
            "scheme": type(self.scheme).__name__.lower(),
            **asdict(self.dynamics),
            **asdict(self.scheme),  # type: ignore[call-overload]
        }


def _checked_times(times: Sequence[float] | Floats) -> Floats:
    wanted = np.asarray(times, dtype=np.float64)
    if wanted.ndim != 1 or len(wanted) == 0:
        raise InvalidSetting("times must be a list of at least one number.")
    if not (np.isfinite(wanted).all() and wanted[0] > 0 and (np.diff(wanted) > 0).all()):
        raise InvalidSetting("times must be positive, finite and strictly increasing.")
    return wanted
