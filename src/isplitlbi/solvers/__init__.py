"""Solvers: they follow the path of Split LBI in time (Eq. 8 and 9).

`driver.follow` owns the loop; a scheme says how to take one step; `pilot` says where to look.
`ridge` fits what needs no path.
"""

from isplitlbi.errors import UnreadableCheckpoint
from isplitlbi.runtime.blocks import Exchange, available_threads
from isplitlbi.runtime.share import Share
from isplitlbi.solvers.before_entry import default_times, fit_before_entries, residuals, times_of
from isplitlbi.solvers.checkpoints import Checkpoint, Checkpoints
from isplitlbi.solvers.driver import (
    Dynamics,
    Progress,
    Reporter,
    Scheme,
    Stopped,
    follow,
    room_for_snapshots,
)
from isplitlbi.solvers.explicit import Explicit
from isplitlbi.solvers.implicit import Implicit
from isplitlbi.solvers.likelihood import bootstrap_consensus, fit_consensus, fit_each_user
from isplitlbi.solvers.state import State

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Dynamics",
    "Exchange",
    "Explicit",
    "Implicit",
    "Progress",
    "Reporter",
    "Scheme",
    "Share",
    "State",
    "Stopped",
    "UnreadableCheckpoint",
    "available_threads",
    "bootstrap_consensus",
    "default_times",
    "fit_before_entries",
    "fit_consensus",
    "fit_each_user",
    "follow",
    "residuals",
    "room_for_snapshots",
    "times_of",
]
