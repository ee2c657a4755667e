"""Solvers: they follow the path of Split LBI in time (Eq. 8 and 9).

`driver.follow` owns the loop; a scheme says how to take one step; `pilot` says where to look.
"""

from isplitlbi.solvers.blocks import available_threads
from isplitlbi.solvers.driver import Dynamics, Progress, Reporter, Scheme, State, follow
from isplitlbi.solvers.explicit import Explicit
from isplitlbi.solvers.implicit import Implicit
from isplitlbi.solvers.pilot import default_times, fit_before_entries, fit_consensus

__all__ = [
    "Dynamics",
    "Explicit",
    "Implicit",
    "Progress",
    "Reporter",
    "Scheme",
    "State",
    "available_threads",
    "default_times",
    "fit_before_entries",
    "fit_consensus",
    "follow",
]
