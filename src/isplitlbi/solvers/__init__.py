"""Solvers: they follow the path of Split LBI in time (Eq. 8 and 9).

`driver.follow` owns the loop, and a scheme (`Implicit`, `Explicit`) says how to take one step.
`likelihood` fits what needs no path, `before_entry` tells where on the time axis to look.
"""

from isplitlbi.errors import InvalidSetting
from isplitlbi.solvers.before_entry import default_times
from isplitlbi.solvers.driver import follow
from isplitlbi.solvers.explicit import Explicit
from isplitlbi.solvers.implicit import Implicit
from isplitlbi.solvers.likelihood import (
    fit_before_entries,
    fit_consensus,
    fit_users,
)
from isplitlbi.solvers.settings import Dynamics, PathSettings, Scheme

__all__ = [
    "SOLVERS",
    "Dynamics",
    "Explicit",
    "Implicit",
    "PathSettings",
    "Scheme",
    "default_times",
    "fit_before_entries",
    "fit_consensus",
    "fit_users",
    "follow",
    "scheme_named",
]

SOLVERS: dict[str, type[Scheme]] = {"implicit": Implicit, "explicit": Explicit}


def scheme_named(solver: str | Scheme) -> Scheme:
    """Return the scheme of a name, or the scheme that is given."""
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    if isinstance(solver, str | type) or not hasattr(solver, "prepare"):
        raise InvalidSetting(f"solver {solver!r} is not one of {', '.join(SOLVERS)}, nor a scheme.")
    return solver
