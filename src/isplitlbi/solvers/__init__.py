"""Solvers: they follow the path of Split LBI in time (Eq. 8 and 9).

`driver.follow` owns the loop; a scheme says how to take one step; `settings` are what decides a
path. `likelihood` fits what needs no path, and `before_entry` says where on the time axis to look.
"""

from isplitlbi.solvers.before_entry import default_times, residuals, times_of
from isplitlbi.solvers.checkpoints import Checkpoint, Checkpoints
from isplitlbi.solvers.driver import follow, room_for_snapshots
from isplitlbi.solvers.explicit import Explicit
from isplitlbi.solvers.implicit import Implicit
from isplitlbi.solvers.likelihood import (
    bootstrap_consensus,
    fit_before_entries,
    fit_consensus,
    fit_numbers,
    fit_users,
)
from isplitlbi.solvers.settings import Dynamics, PathSettings, Scheme
from isplitlbi.solvers.state import State

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Dynamics",
    "Explicit",
    "Implicit",
    "PathSettings",
    "Scheme",
    "State",
    "bootstrap_consensus",
    "default_times",
    "fit_before_entries",
    "fit_consensus",
    "fit_numbers",
    "fit_users",
    "follow",
    "residuals",
    "room_for_snapshots",
    "times_of",
]
