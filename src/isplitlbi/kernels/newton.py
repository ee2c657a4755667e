"""How one step's problem is minimised: a convex function of consensus and users.

A semismooth Newton method with a line search; every Newton system by conjugate gradients, without
forming a matrix. The method is stated here once and runs in three ways, by what the names in it
stand for (see `bound`): with readable loops over all users (`numpy_loops`), with compiled ones
(`numba_loops`, which compiles the method, too: a small study is then solved without coming back to
Python), and with users in blocks that threads and machines share (`solvers.newton`). So the text
must be such that numba understands it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from isplitlbi.kernels import Anchor, Sums, System, Users
from isplitlbi.kernels.vectors import add, added, divided, dot, fill, freed, times, total
from isplitlbi.model.answering import Answering
from isplitlbi.typing import Floats

__all__ = ["METHOD", "bound", "unbound"]


def unbound(*_arguments: Any) -> Any:
    """Stand for a loop until a method is bound."""
    raise NotImplementedError("this stands for a loop, which `bound` puts in its place")


# The loops that the method is made of, by their names in `numpy_loops` and `numba_loops`.
assemble = eliminate_users = curvature_product = conjugate_update = unbound
move_users = hold_back = squares = turn = is_free = pull_sharpness = unbound

# How hard one step of the implicit scheme is worked at. The residual of a Newton system: late on
# the path the consensus moves by the small difference of what its users pull, so that a rougher
# solution would drift.
CONJUGATE_ACCURACY = 3e-3
MOST_CONJUGATE_STEPS = 200
MOST_NEWTON_STEPS = 200
# How often, in one Newton step, users are held back whose part of the objective has grown. Where
# somebody is about to leave, the objective has a kink, beyond which Newton's method knows nothing:
# few of very many users are there at a time, and all others need not wait for them.
MOST_HELD_BACK = 3
SHORTEST_MOVE = 1e-12  # of a Newton step: a line search that gets there has met rounding
# How much more closely the consensus must be solved for than its users, for the same reason.
CLOSE_CONSENSUS = 8.0
# Both where no threshold has a bound: there a prior holds the consensus.
ACCURACY_WITHOUT_BOUND, CLOSE_WITHOUT_BOUND = 6e-2, 4.0
ERROR_FLOOR = 1e-2  # added to the size of what an error is relative to
# Without a bound, deviations may be tiny beside the consensus that they are added to: this share of
# it counts as a deviation when errors are told.
SHARE_OF_CONSENSUS = 0.1


def solve(
    link: Answering,
    work: Any,
    anchor: Anchor,
    enough: float,
    consensus: Floats,
    deviation: Floats,
    system: System,
) -> tuple[Floats, Floats, int, int]:
    """Minimise, from a first guess of consensus and deviations, and return these.

    Within, users have coordinates of their own (see `kernels.Problem`).
    """
    work, anchor, system = lent(work), lent(anchor), lent(system)
    users = everybody(work)
    turn(work, users, consensus, deviation, 1.0)
    consensus, own, n_evaluations, n_conjugate_steps = minimise(
        link, work, anchor, enough, consensus, deviation, system
    )
    turn(work, users, consensus, own, -1.0)
    return consensus, own, n_evaluations, n_conjugate_steps


def minimise(
    link: Answering,
    work: Any,
    anchor: Anchor,
    enough: float,
    consensus: Floats,
    own: Floats,
    system: System,
) -> tuple[Floats, Floats, int, int]:
    """Minimise a step's objective, from a first guess that is used up.

    Parameters
    ----------
    work : `Problem`, or with users in blocks the work on it
    enough
        A Newton step shorter than this, relative to where it leads, is the last.

    Returns
    -------
    consensus, the users' own coordinates, and how often the objective was evaluated and its
    curvature multiplied.
    """
    at, delta, users = work.slots.common_threshold, work.delta, everybody(work)
    closely = CLOSE_CONSENSUS if work.bounded > 0.0 else CLOSE_WITHOUT_BOUND
    sums = (np.empty(len(consensus)), np.empty(len(consensus)))  # gradient and diagonal
    value = evaluate(link, work, anchor, consensus, own, system, sums)
    n_evaluations, n_conjugate_steps = 1, 0
    trial_own, pace = np.empty(len(own)), np.empty(len(system.value))
    if not math.isfinite(value):
        fill(own, np.nan)
        return consensus, own, n_evaluations, n_conjugate_steps
    for _ in range(MOST_NEWTON_STEPS):
        toward, slope, n_steps = newton_direction(work, anchor, consensus, own, system, sums)
        n_conjugate_steps += n_steps
        length, n_held_back, before = 1.0, 0, system.value.copy()
        fill(pace, 1.0)
        while True:
            trial = added(consensus, length, toward)
            trial[at] = max(trial[at], delta)
            move_users(work, users, own, system.solution, length, pace, trial_own)
            if length == 1.0 and n_held_back == 0:
                shift = relative(work, consensus, own, trial, trial_own, closely)
                if shift <= enough:  # Newton's method squares the error: it is negligible now
                    return trial, trial_own, n_evaluations, n_conjugate_steps
            n_evaluations += 1
            trial_value = evaluate(link, work, anchor, trial, trial_own, system, sums)
            enough_gain = value - trial_value >= 1e-4 * length * slope
            # Near the solution the gain drowns in rounding, and a full step is right.
            if enough_gain or slope <= 1e-10 * abs(value):
                break
            n_held_back += 1
            may_hold = work.bounded == 0.0 and n_held_back <= MOST_HELD_BACK
            if may_hold and hold_back(work, users, before, system.value, pace) > 0.0:
                continue
            fill(pace, 1.0)  # all together: that goes downhill in the end
            length *= 0.5
            if length < SHORTEST_MOVE:
                return consensus, own, n_evaluations, n_conjugate_steps
        consensus, value, own, trial_own = trial, trial_value, trial_own, own
    return consensus, own, n_evaluations, n_conjugate_steps


def newton_direction(
    work: Any,
    anchor: Anchor,
    consensus: Floats,
    own: Floats,
    system: System,
    sums: Sums,
) -> tuple[Floats, float, int]:
    """Solve the system by preconditioned conjugate gradients.

    The preconditioner couples every slot with its place in the consensus, and with the sharpness of
    its user, and nothing else, so that users are eliminated exactly: consensus and deviations may
    trade places freely, and without this their sum would be found long before their shares.

    The users' part goes to ``system.solution``. Returns the consensus's part, the slope of the
    objective along the direction, negated, and the number of steps.
    """
    at, width, users = work.slots.common_threshold, len(consensus), everybody(work)
    gradient, diagonal = sums
    solution, direction, product = np.zeros(width), np.zeros(width), np.zeros(width)
    residual, of_users = added(solution, -1.0, gradient), np.empty(width)
    free = free_to_move(work, anchor, consensus, sums, solution)
    to_sharpness = np.empty(width)
    reach = eliminate_users(work, users, own, system, of_users, to_sharpness)
    held = times(work.precision, work.toward)
    reach += spare_average(work, held, reach, to_sharpness)
    schur = freed(free, diagonal, of_users, 1.0)
    habits = curvature_of_habits(work, anchor, diagonal)
    per_habit = added(product, 2.0 / max(total(habits), 1e-300), habits)  # to an average vote
    length, momentum, slope, size, target, n_steps = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    while True:
        add(residual, -length, product)
        new_size = conjugate_update(work, users, length, system, of_users)
        add(of_users, of_users[at], per_habit)
        left = freed(free, residual, of_users, 0.0)
        preconditioned = solve_consensus(work, schur, to_sharpness, reach, habits, left)
        new_size += dot(left, preconditioned)
        if n_steps == 0:
            accuracy = CONJUGATE_ACCURACY if work.bounded > 0.0 else ACCURACY_WITHOUT_BOUND
            target = accuracy**2 * new_size
        else:
            momentum = new_size / size
        size = new_size
        if not size > target or n_steps == MOST_CONJUGATE_STEPS:
            return solution, slope, n_steps

        direction = added(preconditioned, momentum, direction)
        preconditioned[at] += dot(per_habit, preconditioned)  # what thresholds of users meet
        along = curvature_product(
            work, users, anchor, system, preconditioned, direction, momentum, of_users
        )
        along += hold_average(work, direction, of_users, system.product, held, 1.0)
        add(of_users, 1.0, held)
        product = times(added(of_users, anchor.damping, direction), free)
        along += dot(direction, product)
        length = size / along
        slope += length * size
        add(solution, length, direction)
        n_steps += 1


def spare_average(work: Any, held: Floats, reach: float, to_sharpness: Floats) -> float:
    """Take the prior from the direction in which the average person stays; return what it was."""
    if reach <= 0.0:
        return 0.0
    add(to_sharpness, 1.0, held)
    return float(dot(held, work.toward))


def free_to_move(
    work: Any, anchor: Anchor, consensus: Floats, sums: Sums, solution: Floats
) -> Floats:
    """Return 1 for what of the consensus may move; a threshold at its bound goes its own way."""
    at, free = work.slots.common_threshold, np.zeros(len(consensus))
    if anchor.moves:
        add(free, 1.0, work.common)
        downhill = -sums[0][at] / sums[1][at]
        if not is_free(consensus[at], downhill, work.delta):
            free[at] = 0.0
            solution[at] = downhill
    return free


def curvature_of_habits(work: Any, anchor: Anchor, diagonal: Floats) -> Floats:
    """Return how much the votes bend by each habit; nothing where there is another number."""
    found = np.zeros(len(diagonal))
    for k in range(len(diagonal)):
        if 0 < work.slots.first_habit <= k:
            found[k] = diagonal[k] - anchor.damping - work.precision[k]
    return found


def solve_consensus(
    work: Any, schur: Floats, to_sharpness: Floats, reach: float, habits: Floats, left: Floats
) -> Floats:
    """Solve for the consensus, roughly: what is left of the system once users are eliminated.

    Every number is solved for by itself, but for two directions in which several numbers together
    may go without the votes noticing much. Scores that are further apart are as good as users who
    are all sharper: what eliminating these takes from the scores is known along the reference, as
    a vector and as its product with the reference. And habits that are all higher are as good as a
    higher threshold: what habits do to an average vote is counted there, and the rest of them is
    D - d d' / sum(d), where d is their curvature and D the same on a diagonal, with its prior.
    """
    solved, at = divided(left, schur), work.slots.common_threshold
    if len(work.reference) > 0:
        per_schur = divided(to_sharpness, schur)
        rest = reach - dot(to_sharpness, per_schur)
        if rest > 1e-9 * reach:
            add(solved, dot(per_schur, left) / rest, per_schur)
    bent = total(habits)
    if bent > 0.0:
        share = divided(habits, schur)
        add(solved, -2.0 / bent * left[at], share)
        rest = bent - dot(habits, share)
        if rest > 1e-9 * bent:
            add(solved, dot(habits, solved) / rest, share)
        solved[at] -= 2.0 / bent * dot(habits, solved)
    return solved


def evaluate(
    link: Answering,
    work: Any,
    anchor: Anchor,
    consensus: Floats,
    own: Floats,
    system: System,
    sums: Sums,
) -> float:
    """Assemble the system; fill gradient and diagonal of the consensus, return the objective."""
    value: float = assemble(link, work, everybody(work), anchor, consensus, own, system, sums)
    gradient, diagonal = sums
    held = np.empty(len(consensus))
    value += 0.5 * hold_average(work, consensus, gradient, system.residual, held, -1.0)
    for k in range(len(consensus)):
        moved = consensus[k] - anchor.consensus[k]
        value += 0.5 * (anchor.damping * moved * moved + held[k] * consensus[k])
        gradient[k] += anchor.damping * moved + held[k]
        diagonal[k] += anchor.damping + work.precision[k]
    return value


def hold_average(
    work: Any, consensus: Floats, of_users: Floats, per_slot: Floats, held: Floats, sign: float
) -> float:
    """Apply the prior, which holds the scores of the average person, to a point or a direction.

    The mean of users' sharpness lies in ``of_users``, at the place of sharpness, and is taken from
    there. Fills what the prior makes of the consensus, and adds its pull on everybody's sharpness,
    with a sign. Returns the product of that pull with the users' part.
    """
    place, mean = work.slots.common_threshold - (len(work.scales) - 2), 0.0
    has_sharpness = len(work.reference) > 0
    if has_sharpness:
        mean = of_users[place]
        of_users[place] = 0.0
    for k in range(len(consensus)):
        held[k] = work.precision[k] * (consensus[k] + mean * work.toward[k])
    if not has_sharpness:
        return 0.0
    pull = dot(held, work.toward)
    pull_sharpness(work, everybody(work), sign * pull, per_slot)
    return mean * pull


def relative(
    work: Any,
    consensus: Floats,
    own: Floats,
    other_consensus: Floats,
    other_own: Floats,
    weight: float,
) -> float:
    """Return how far two points are apart, relative to the second; the consensus has a weight."""
    off, size = squares(work, everybody(work), own, other_own)
    apart = added(consensus, -1.0, other_consensus)
    common_off = math.sqrt(dot(apart, apart))
    common_size = math.sqrt(dot(other_consensus, other_consensus))
    floor = ERROR_FLOOR
    if work.bounded == 0.0:
        floor += SHARE_OF_CONSENSUS * common_size * math.sqrt(work.n_users)
    of_users = math.sqrt(off) / (math.sqrt(size) + floor)
    return max(of_users, weight * common_off / (common_size + ERROR_FLOOR))


def everybody(work: Any) -> Users:
    """Return all users."""
    return 0, len(work.slots.start) - 1


# --- what the names stand for ----------------------------------------------------------------


def lent(record: Any) -> Any:
    """Return a named tuple as compiled functions take it (see `numba_records`): here, as it is."""
    return record


METHOD = (
    everybody,
    hold_average,
    spare_average,
    evaluate,
    relative,
    free_to_move,
    curvature_of_habits,
    solve_consensus,
    newton_direction,
    minimise,
    solve,
)


def _as_it_is(function: Any) -> Any:
    return function


def bound(
    loops: Mapping[str, Any],
    compiled: Callable[[Any], Any] = _as_it_is,
    method: Sequence[Any] = METHOD,
) -> dict[str, Any]:
    """Return the functions of a method, by name, with these loops in place of their names.

    Numba looks names up where a function was defined. These are defined anew, from the same code,
    among names that mean what is given.
    """
    meanings = {**method[0].__globals__, **loops}
    for function in method:
        anew = FunctionType(function.__code__, meanings, function.__name__)
        anew.__doc__ = function.__doc__
        meanings[function.__name__] = compiled(anew)
    return {function.__name__: meanings[function.__name__] for function in method}
