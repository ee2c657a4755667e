"""Users beside a path that was followed without them: everybody alone, at the same times."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.kernels import Problem, System, sharpness_told
from isplitlbi.kernels.beside import Pull
from isplitlbi.model.parameters import Course
from isplitlbi.runtime.base import Runtime
from isplitlbi.solvers.implicit import NEWTON_ACCURACY, Implicit
from isplitlbi.solvers.settings import PathSettings
from isplitlbi.typing import Floats, Mask

__all__ = ["Followed", "follow_beside"]

USERS_AT_ONCE = 64  # that a thread takes, one after another


class Followed(NamedTuple):
    """Where users are beside a path at some time, and when they left the consensus."""

    deviation: Floats  # (n_slots,)
    sparse: Floats  # (n_slots,)
    entry_times: Floats  # (n_users,) infinite for who never did

    def has_left(self, time: float) -> Mask:
        """Say who has left by then."""
        return self.entry_times <= time


def follow_beside(
    votes: Comparisons, settings: PathSettings, course: Course, time: float, runtime: Runtime
) -> Followed:
    """Follow every user along the consensus of a path, up to a time and until they leave.

    The items are those of the path, features are in its units. Nobody depends on who else is here.
    """
    layout, dynamics = settings.terms.layout(votes), settings.dynamics
    found = Followed(
        np.zeros(layout.n_slots), np.zeros(layout.n_slots), np.full(layout.n_users, np.inf)
    )
    problem = Problem.of(layout, dynamics.delta, settings.terms)
    told = sharpness_told(layout, settings.terms)
    link, start = settings.terms.answering(settings.link), layout.slots.start
    pull = Pull(*dynamics.numbers, dynamics.nu, settings.terms.holds)
    tol = settings.scheme.tol if isinstance(settings.scheme, Implicit) else Implicit().tol
    voted = np.flatnonzero(np.diff(layout.edges.start))

    def follow(some: list[int]) -> None:
        for user in some:
            alone, mine = _alone(layout, problem, user), slice(start[user], start[user + 1])
            met = course._replace(pull=float(told[user]) * course.pull)
            found.entry_times[user] = runtime.loops.follow_user(
                link, alone, _room(layout, alone), pull, met, time,
                NEWTON_ACCURACY * tol, (found.deviation[mine], found.sparse[mine]),
            )  # fmt: skip

    parts = list(_in_parts(voted.tolist()))
    if runtime.n_threads == 1 or len(parts) <= 1:
        for part in parts:
            follow(part)
        return found
    with ThreadPoolExecutor(runtime.n_threads) as pool:
        for done in [pool.submit(follow, part) for part in parts]:
            done.result()
    return found


def _in_parts(users: list[int]) -> Iterator[list[int]]:
    bounds = [*range(0, len(users), USERS_AT_ONCE), len(users)]
    return (users[begin:end] for begin, end in pairwise(bounds))


def _alone(layout: Layout, problem: Problem, user: int) -> Problem:
    """Return the problem of one user, as if there were nobody else."""
    slots, edges = layout.slots, layout.edges
    begin, end = (int(each) for each in slots.start[user : user + 2])
    mine = slice(*edges.start[user : user + 2])
    own_slots = slots._replace(
        start=_fixed(np.array([0, end - begin])),
        coordinate=slots.coordinate[begin:end],
        threshold=_fixed(np.array([end - begin - 1])),
    )
    own_edges = edges._replace(
        start=_fixed(np.array([0, mine.stop - mine.start])),
        first=_fixed(edges.first[mine] - np.int32(begin)),
        second=_fixed(edges.second[mine] - np.int32(begin)),
        first_wins=edges.first_wins[mine],
        ties=edges.ties[mine],
        second_wins=edges.second_wins[mine],
        columns=_fixed(np.ascontiguousarray(edges.columns[:, mine])),
    )
    reference = problem.reference[begin:end] if len(problem.reference) else problem.reference
    return problem._replace(
        slots=own_slots, edges=own_edges, reference=reference,
        has_ties=problem.has_ties[user : user + 1], n_users=1, shares=_fixed(np.zeros(1)),
    )  # fmt: skip


def _room(layout: Layout, alone: Problem) -> System:
    return System.room(layout._replace(slots=alone.slots, edges=alone.edges))


def _fixed(array: Any) -> Any:
    """Forbid changes: compiled loops take arrays that may be changed for others."""
    array.setflags(write=False)
    return array
