"""How one user is followed along a path whose consensus is known: the users' part of a step alone.

Given the consensus, users are independent. So whoever comes after a fit meets the equations and the
scheme of the fit, with the consensus as it was at every step. Like `newton`, the method is stated
once and runs with readable loops and with compiled ones; the text must be such that numba
understands it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from isplitlbi.kernels import SHORT_STEP, Anchor, Flow, Problem, Rates, System
from isplitlbi.kernels.newton import unbound
from isplitlbi.model.answering import Answering
from isplitlbi.model.parameters import Course
from isplitlbi.typing import Floats

__all__ = ["METHOD", "Pull"]

# What the method is made of, by their names in `numpy_loops` and `numba_loops`.
solve = finish_step = extrapolate = unbound

BEFORE_ENTRY = 0.5  # of the time until the user leaves, if nothing moves before
MOST_GROWTH = 2.0  # of a step over the last, as in a fit
NEARLY = 1.5  # steps: what is left up to the next place of the course is then one step
RESTING = 1e-6  # how closely a user who has not begun to leave is solved for


class Pull(NamedTuple):
    """What decides a path besides the votes: see `solvers.settings.Dynamics`."""

    coupling: float  # what stands for nu between P and Gamma
    kappa: float
    precision: float  # that holds P, whoever has left
    nu: float
    holds: Floats  # (n_terms,) how strongly each term is held


def settle(
    link: Answering,
    problem: Problem,
    anchor: Anchor,
    enough: float,
    deviation: Floats,
    system: System,
) -> Floats:
    """Return the deviations that minimise a step's objective, from a guess that is used up.

    The consensus is that of the anchor.
    """
    settled: Floats
    consensus = anchor.consensus.copy()
    _, settled, _, _ = solve(link, problem, anchor, enough, consensus, deviation, system)
    return settled


def pulled(problem: Problem, base: Floats, damping: float, pull: float) -> None:
    """Move what damps the user's sharpness, so that it pulls, too: as the prior on all does."""
    if len(problem.reference) > 0:
        sharpness = problem.slots.threshold[0] - (len(problem.scales) - 2)
        base[sharpness] -= pull / damping


def beginning(
    link: Answering, problem: Problem, system: System, pull: Pull, consensus: Floats, shared: float
) -> Flow:
    """Return where the user is before anybody leaves: with what the ridge allows.

    Half of the ridge is damping, which a pull can move. The paper's path begins at nothing, for
    everybody.
    """
    n_slots = len(system.residual)
    deviation, nothing, base = np.zeros(n_slots), np.zeros(n_slots), np.zeros(n_slots)
    if problem.bounded == 0.0:
        half = 0.5 / pull.nu
        pulled(problem, base, half, shared)
        step, twice = SHORT_STEP * pull.nu, 2.0 * pull.nu
        anchor = Anchor(consensus, base, nothing, step, twice, 1.0, half, False, 0.0, pull.holds)
        deviation = settle(link, problem, anchor, RESTING, deviation, system)
    return Flow(consensus, deviation, np.zeros(n_slots), np.zeros(n_slots))


def step_from(
    problem: Problem,
    pull: Pull,
    flow: Flow,
    rates: Rates,
    consensus: Floats,
    shared: float,
    steps: tuple[float, float],
) -> tuple[Anchor, Floats]:
    """Return what a step is held to, and a guess where it leads, given it and the last one.

    That is the second-order formula of `solvers.implicit`; a first step is of first order.
    """
    (step, last), slots, users = steps, problem.slots, (0, 1)
    base, pushed, guess = np.empty_like(flow.dual), np.empty_like(flow.dual), flow.deviation.copy()
    ahead, length = 0.0, step
    if last > 0.0:
        ratio = step / last
        ahead = step * ratio / (1.0 + 2.0 * ratio)
        length = step * (1.0 + ratio) / (1.0 + 2.0 * ratio)
        along = (step, step * (step + last))
        extrapolate(
            slots, users, flow.deviation, rates.deviation, rates.deviation_bend, along, guess
        )
    straight = (ahead, 0.0)
    extrapolate(slots, users, flow.deviation, rates.deviation, rates.dual, straight, base)
    extrapolate(slots, users, flow.dual, rates.dual, rates.dual, straight, pushed)
    damping = 1.0 / (pull.kappa * length)
    pulled(problem, base, damping, shared)
    anchor = Anchor(
        consensus, base, pushed, length, pull.coupling, pull.kappa, damping, False, pull.precision,
        pull.holds,
    )  # fmt: skip
    return anchor, guess


def follow_user(
    link: Answering,
    problem: Problem,
    system: System,
    pull: Pull,
    course: Course,
    chosen: float,
    enough: float,
    found: tuple[Floats, Floats],
) -> float:
    """Fill deviation and strong part of the only user at the chosen time; return when they left.

    The pull of the course is what the user's own share in the average person meets.

    A user who has left, and whose deviations are known, is not followed any further. The time of
    leaving is infinite for who stays to the end. A Newton step shorter than ``enough``, relative to
    where it leads, is the last.
    """
    times, known, n_slots, norms = course.times, course.consensus, len(found[0]), np.zeros(1)
    flow = beginning(link, problem, system, pull, known[0], course.pull[0])
    rates = Rates(np.zeros(n_slots), np.zeros(n_slots), np.zeros(n_slots))
    size = math.sqrt(np.sum(flow.deviation * flow.deviation))
    longest = BEFORE_ENTRY * pull.coupling / size if size > 0.0 else math.inf
    time, last, entry, norm, place, is_known = times[0], 0.0, math.inf, 0.0, 1, False
    while place < len(times) and not (is_known and entry < math.inf):
        step, later, consensus = times[place] - time, times[place], known[place]
        shared = course.pull[place]
        if NEARLY * longest < step:
            step, later = longest, time + longest
            share = (later - times[place - 1]) / (times[place] - times[place - 1])
            consensus = known[place - 1] + share * (known[place] - known[place - 1])
            before = course.pull[place - 1]
            shared = before + share * (shared - before)
        else:
            place += 1
        steps = (step, last)
        anchor, guess = step_from(problem, pull, flow, rates, consensus, shared, steps)
        reached = settle(link, problem, anchor, enough, guess, system)
        new = Flow(consensus, reached, np.empty(n_slots), np.empty(n_slots))
        bending = 1.0 / (step + last) if last > 0.0 else 0.0
        finish_step(problem.slots, (0, 1), anchor, flow, new, norms, rates, (step, bending))
        if norms[0] > 1.0 and entry == math.inf:
            entry = time + min(max((1.0 - norm) / (norms[0] - norm), 0.0), 1.0) * (later - time)
        if later >= chosen and not is_known:  # linearly within the step, as a fit has it
            share = (chosen - time) / (later - time)
            found[0][:] = flow.deviation + share * (new.deviation - flow.deviation)
            found[1][:] = flow.sparse + share * (new.sparse - flow.sparse)
            if norm + share * (norms[0] - norm) <= 1.0:
                found[1][:] = 0.0
            is_known = True
        flow, time, last, norm, longest = new, later, step, norms[0], MOST_GROWTH * step
    return entry


METHOD = (pulled, settle, beginning, step_from, follow_user)
