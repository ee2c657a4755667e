"""How one user is followed along a path whose consensus is known: the users' part of a step alone.

Given the consensus, users are independent. So whoever comes after a fit meets the equations and the
scheme of the fit, with the consensus as it was at every step. Like `newton`, the method is stated
once and runs with readable loops and with compiled ones; the text must be such that numba
understands it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isplitlbi.kernels import SHORT_STEP, Anchor, Flow, Problem, Rates, System
from isplitlbi.kernels.newton import unbound
from isplitlbi.model.answering import Answering
from isplitlbi.typing import Floats

__all__ = ["METHOD"]

# What the method is made of, by their names in `numpy_loops` and `numba_loops`.
minimise = finish_step = extrapolate = lean = unbound

BEFORE_ENTRY = 0.5  # of the time until the user leaves, if nothing moves before
MOST_GROWTH = 2.0  # of a step over the last, as in a fit
NEARLY = 1.5  # steps: what is left up to the next place of the course is then one step
RESTING = 1e-6  # how closely a user who has not begun to leave is solved for


def settle(
    link: Answering,
    problem: Problem,
    anchor: Anchor,
    enough: float,
    consensus: Floats,
    deviation: Floats,
    system: System,
) -> Floats:
    """Return the deviations that minimise a step's objective, from a guess that is used up."""
    at, last = problem.slots.common_threshold, problem.slots.threshold[0]
    deviation[last] = max(deviation[last] + problem.bounded * consensus[at], problem.delta)
    if len(problem.reference) > 0:
        lean(problem, (0, 1), deviation, 1.0)
    own: Floats
    _, own, _, _ = minimise(link, problem, anchor, enough, consensus.copy(), deviation, system)
    own[last] -= problem.bounded * consensus[at]
    if len(problem.reference) > 0:
        lean(problem, (0, 1), own, -1.0)
    return own


def follow_user(
    link: Answering,
    problem: Problem,
    system: System,
    dynamics: tuple[float, float, float, float],
    holds: Floats,
    times: Floats,
    course: Floats,
    chosen: float,
    enough: float,
    found: Any,
) -> float:
    """Fill deviation and strong part of the only user at the chosen time; return when they left.

    Parameters
    ----------
    dynamics
        What stands for nu between P and Gamma, kappa, the precision that holds P, and nu itself.
    times, course
        Where the consensus is known, from the beginning of the path on.
    enough
        A Newton step shorter than this, relative to where it leads, is the last.
    found : (deviation, sparse)

    A user who has left, and whose deviations are known, is not followed any further. The time of
    leaving is infinite for who stays to the end.
    """
    coupling, kappa, precision, nu = dynamics
    n_slots, slots, users = len(found[0]), problem.slots, (0, 1)
    nothing, norms = np.zeros(n_slots), np.zeros(1)
    flow = Flow(course[0], np.zeros(n_slots), np.zeros(n_slots), np.zeros(n_slots))
    rates = Rates(np.zeros(n_slots), np.zeros(n_slots), np.zeros(n_slots))
    first = math.inf  # the longest first step
    if problem.bounded == 0.0:  # everybody begins with what the ridge allows
        anchor = Anchor(
            course[0], nothing, nothing, SHORT_STEP * nu, nu, 1.0, 0.0, False, 0.0, holds
        )
        resting = settle(link, problem, anchor, RESTING, course[0], flow.deviation, system)
        flow = Flow(course[0], resting, flow.dual, flow.sparse)
        size = math.sqrt(np.sum(resting * resting))
        first = BEFORE_ENTRY * coupling / max(size, 1e-300)
    time, last_step, entry, norm, place = times[0], 0.0, math.inf, 0.0, 1
    is_known = False
    while place < len(times) and not (is_known and entry < math.inf):
        step, later, consensus = times[place] - time, times[place], course[place]
        longest = MOST_GROWTH * last_step if last_step > 0.0 else first
        if NEARLY * longest < step:
            step, later = longest, time + longest
            share = (later - times[place - 1]) / (times[place] - times[place - 1])
            consensus = course[place - 1] + share * (course[place] - course[place - 1])
        reached, pushed = np.empty(n_slots), np.empty(n_slots)
        length, bending, bent, ahead = step, 0.0, 0.0, 0.0
        if last_step > 0.0:  # the second-order formula
            ratio = step / last_step
            ahead = step * ratio / (1.0 + 2.0 * ratio)
            length = step * (1.0 + ratio) / (1.0 + 2.0 * ratio)
            bending, bent = 1.0 / (step + last_step), step * (step + last_step)
        base = np.empty(n_slots)
        extrapolate(slots, users, flow.deviation, rates.deviation, nothing, (ahead, 0.0), base)
        extrapolate(slots, users, flow.dual, rates.dual, nothing, (ahead, 0.0), pushed)
        guess = (step if last_step > 0.0 else 0.0, bent)
        extrapolate(
            slots, users, flow.deviation, rates.deviation, rates.deviation_bend, guess, reached
        )
        damping = 1.0 / (kappa * length)
        anchor = Anchor(
            consensus, base, pushed, length, coupling, kappa, damping, False, precision, holds
        )
        reached = settle(link, problem, anchor, enough, consensus, reached, system)
        new = Flow(consensus, reached, np.empty(n_slots), np.empty(n_slots))
        finish_step(slots, users, anchor, flow, new, norms, rates, (step, bending))
        if norms[0] > 1.0 and entry == math.inf:
            entry = time + min(max((1.0 - norm) / (norms[0] - norm), 0.0), 1.0) * (later - time)
        if later >= chosen and not is_known:  # linearly within the step, as a fit has it
            share = (chosen - time) / (later - time)
            found[0][:] = flow.deviation + share * (new.deviation - flow.deviation)
            found[1][:] = flow.sparse + share * (new.sparse - flow.sparse)
            if norm + share * (norms[0] - norm) <= 1.0:
                found[1][:] = 0.0
            is_known = True
        flow, time, last_step, norm = new, later, step, norms[0]
        if time >= times[place]:
            place += 1
    return entry


METHOD = (settle, follow_user)
