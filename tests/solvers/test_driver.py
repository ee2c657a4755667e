import re
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from isplitlbi.data.layout import Layout
from isplitlbi.model.links import Logistic, Probit
from isplitlbi.model.terms import PAPER
from isplitlbi.path import Ending
from isplitlbi.runtime.local import Local
from isplitlbi.runtime.progress import Reporter
from isplitlbi.solvers import Dynamics, Explicit, Implicit, PathSettings, driver, follow
from isplitlbi.solvers.state import State, time_to_leave
from votes import random_votes

VOTES = random_votes(0, n_users=3, n_items=4, n_votes=40)
LAYOUT = Layout.of(VOTES)
FAST = Dynamics(nu=0.5, kappa=5.0)


@dataclass(frozen=True)
class Clockwork:
    """A scheme whose steps have a given length and whose duals grow at a rate of one per user."""

    length: float = 0.25
    rates: tuple = (1.0, 0.5, 0.0)
    max_steps: int = 1000
    break_after: float = np.inf
    broken: str = "consensus"
    overshoots: bool = False
    visited: list = field(default_factory=list, compare=False)

    def prepare(self, layout, settings, runtime):
        return ClockworkStepper(self)


class ClockworkStepper:
    def __init__(self, scheme):
        self.scheme = scheme

    def step(self, state, until, last):
        assert state.time < until <= last
        bound = last if self.scheme.overshoots else until
        state.time = min(state.time + self.scheme.length, bound)
        state.consensus = state.consensus + 1.0
        state.dual_norm = state.time * np.array(self.scheme.rates)
        if state.time > self.scheme.break_after:
            getattr(state, self.scheme.broken)[0] = np.nan
        self.scheme.visited.append(state.time)


def beginning(delta=1e-3):
    return State.initial(LAYOUT, PAPER.start(LAYOUT.vector, delta))


def run(scheme, times, **options):
    return follow(VOTES, PathSettings(Logistic(), FAST, scheme, times), **options)


# --- what may be asked ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "times", [[0.0, 1.0], [-1.0], [1.0, 1.0], [2.0, 1.0], [np.nan], [1.0, np.inf]]
)
def test_times_must_be_positive_finite_and_increasing(times):
    with pytest.raises(ValueError, match="times must be positive, finite and strictly increasing"):
        run(Clockwork(), times)


@pytest.mark.parametrize("times", [[], 1.0, [[1.0, 2.0]]])
def test_times_must_be_a_list_of_numbers(times):
    with pytest.raises(ValueError, match="times must be a list of at least one number"):
        run(Clockwork(), times)


def test_a_path_cannot_go_back_in_time():
    start = beginning()
    start.time = 2.0
    with pytest.raises(ValueError, match="the first time is 1, before the state's 2"):
        run(Clockwork(), [1.0, 3.0], initial=start)


@pytest.mark.parametrize("name", ["nu", "kappa", "delta"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_a_path_needs_positive_and_finite_dynamics(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be positive and finite"):
        Dynamics(**{name: value})


def test_an_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="is not one of numba, numpy"):
        run(Clockwork(), [1.0], runtime=Local(VOTES, backend="abacus"))


# --- where it goes -------------------------------------------------------------------------


def test_the_start_is_the_papers():
    start = beginning()
    assert start.time == 0.0
    assert start.consensus.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert not any(map(np.any, (start.deviation, start.dual, start.sparse, start.dual_norm)))
    assert np.all(np.isinf(start.entry_times))


def test_the_start_respects_a_large_delta():
    assert beginning(delta=2.5).consensus[LAYOUT.vector.threshold] == 2.5


def test_a_copied_state_shares_nothing():
    start = beginning()
    copy = start.copy()
    for name, value in vars(copy).items():
        if isinstance(value, np.ndarray):
            assert not np.shares_memory(value, getattr(start, name)), name


def test_every_requested_time_is_reached_exactly():
    scheme = Clockwork(length=0.3)
    path = run(scheme, [0.5, 0.6, 2.0])
    assert path.times.tolist() == [0.5, 0.6, 2.0]
    assert {0.5, 0.6, 2.0} <= set(scheme.visited)
    assert path.ending is Ending.COMPLETE
    assert path.n_steps == len(scheme.visited)


@pytest.mark.backend
def test_the_explicit_scheme_reaches_every_requested_time_exactly():
    seen = []
    times = [0.1, 0.1 + 1e-12, 0.25, 0.3]
    path = run(Explicit(), times, observe=lambda _, state: seen.append(state.time))
    assert seen == times == path.times.tolist()
    assert path.ending is Ending.COMPLETE


def test_more_requested_times_do_not_move_the_path():
    # They shorten some steps, so that the paths agree up to the error of a step.
    one = run(Explicit(step_scale=0.1), [1.0])
    other = run(Explicit(step_scale=0.1), np.linspace(0.05, 1.0, 20))
    np.testing.assert_allclose(one.consensus[-1], other.consensus[-1], atol=1e-3)
    np.testing.assert_allclose(one.deviation[-1], other.deviation[-1], atol=1e-3)


def test_a_state_already_at_the_first_time_is_its_snapshot():
    start = beginning()
    start.time, start.consensus[:] = 1.0, 7.0
    path = run(Clockwork(), [1.0, 2.0], initial=start)
    assert path.consensus[0].tolist() == [7.0] * 5
    assert path.n_steps == 4


def test_a_step_may_pass_requested_times_which_are_then_looked_up_within_it():
    # The consensus of the clockwork starts at (0, ..., 1) and grows by one a step.
    scheme, states = Clockwork(length=1.0, rates=(1.0, 0.8, 0.5), overshoots=True), []
    path = run(scheme, [0.5, 1.5, 1.75, 2.5], observe=lambda _, s: states.append(s.copy()))
    assert scheme.visited == [1.0, 2.0, 2.5]
    assert path.n_steps == 3
    np.testing.assert_allclose(path.consensus[:, 0], [0.5, 1.5, 1.75, 3.0])
    np.testing.assert_allclose(path.consensus[:, -1], [1.5, 2.5, 2.75, 4.0])
    assert [state.time for state in states] == [0.5, 1.5, 1.75, 2.5]
    np.testing.assert_allclose(states[2].dual_norm, [1.75, 1.4, 0.875])
    np.testing.assert_allclose(path.entry_times, [1.0, 1.25, 2.0])
    # Nobody is out, at a time looked up within a step, who leaves later in that step.
    np.testing.assert_allclose(states[0].entry_times, [np.inf, np.inf, np.inf])
    np.testing.assert_allclose(states[1].entry_times, [1.0, 1.25, np.inf])


def test_looking_up_a_time_within_a_step_does_not_move_the_path():
    steps = Clockwork(length=1.0, overshoots=True), Clockwork(length=1.0, overshoots=True)
    one, other = run(steps[0], [4.0]), run(steps[1], [0.3, 0.9, 2.0, 2.2, 4.0])
    assert steps[0].visited == steps[1].visited
    np.testing.assert_array_equal(one.consensus[-1], other.consensus[-1])
    np.testing.assert_array_equal(one.entry_times, other.entry_times)


def test_the_observer_sees_every_requested_time_once_and_in_order():
    seen = []

    def observe(index, state):
        seen.append((index, state.time, state.consensus.copy()))

    path = run(Clockwork(), [0.5, 1.0, 4.0], observe=observe)
    assert [(index, time) for index, time, _ in seen] == [(0, 0.5), (1, 1.0), (2, 4.0)]
    np.testing.assert_array_equal([consensus for *_, consensus in seen], path.consensus)


# --- how it ends ---------------------------------------------------------------------------


def test_the_step_limit_ends_a_path_with_what_it_has():
    path = run(Clockwork(max_steps=6), [0.5, 1.0, 2.0, 3.0])
    assert path.ending is Ending.STEP_LIMIT
    assert path.times.tolist() == [0.5, 1.0]
    assert path.consensus.shape == (2, 5)
    assert path.deviation.shape == path.sparse.shape == (2, LAYOUT.n_slots)
    assert path.n_steps == 6


def test_a_step_limit_met_at_the_last_time_is_no_limit():
    assert run(Clockwork(max_steps=8), [2.0]).ending is Ending.COMPLETE


@pytest.mark.backend
@pytest.mark.parametrize("keep", [True, False])
def test_a_path_that_reaches_no_time_has_the_right_shapes(keep):
    path = run(Explicit(max_steps=2), [100.0], keep=keep)
    assert path.ending is Ending.STEP_LIMIT
    assert path.times.shape == (0,)
    assert path.consensus.shape == (0, 5)
    assert path.deviation.shape == path.sparse.shape == (0, LAYOUT.n_slots)
    assert np.all(np.isinf(path.entry_times))


@pytest.mark.parametrize("broken", ["consensus", "dual_norm", "deviation"])
def test_a_value_that_is_not_finite_ends_the_path_before_its_snapshot(broken):
    path = run(Clockwork(break_after=1.1, broken=broken), [0.5, 1.0, 1.25, 3.0])
    assert path.ending is Ending.NOT_FINITE
    assert path.times.tolist() == [0.5, 1.0]
    assert np.isfinite(path.consensus).all()
    assert np.isfinite(path.deviation).all()
    assert path.n_steps == 5


def test_the_observer_is_not_shown_values_that_are_not_finite():
    seen = []
    run(Clockwork(break_after=1.1), [0.5, 2.0], observe=lambda index, _: seen.append(index))
    assert seen == [0]


# --- who left when -------------------------------------------------------------------------


def test_entry_times_are_interpolated_within_the_step():
    path = run(Clockwork(length=0.7, rates=(1.0, 0.45, 0.1)), [3.0])
    np.testing.assert_allclose(path.entry_times, [1.0, 1 / 0.45, np.inf], rtol=1e-12)


def test_the_first_entry_counts():
    # The dual of a user who comes back and leaves again passes 1 twice.
    @dataclass(frozen=True)
    class Wave(Clockwork):
        def prepare(self, *given):
            inner = super().prepare(*given)

            class Stepper:
                def step(self, state, until, last):
                    inner.step(state, until, last)
                    height = 1.5 * np.abs(np.sin(state.time))
                    state.dual_norm = np.full(3, height)

            return Stepper()

    path = run(Wave(length=0.01), [9.0])
    np.testing.assert_allclose(path.entry_times, np.arcsin(1 / 1.5), atol=1e-4)


@pytest.mark.backend
def test_users_enter_when_their_dual_norm_passes_one():
    norms, states = [], []

    def observe(_, state):
        norms.append(state.dual_norm.copy())
        states.append(state.copy())

    times = np.linspace(0.02, 2.0, 100)
    path = run(Explicit(), times, observe=observe)
    norms = np.array(norms)
    assert np.isfinite(path.entry_times).all()
    assert np.all(np.diff(norms[: np.argmax(norms > 1, axis=0).min()], axis=0) >= 0)
    for user, entry in enumerate(path.entry_times):
        first_out = int(np.argmax(norms[:, user] > 1))
        assert times[first_out - 1] <= entry <= times[first_out]
        begin, end = LAYOUT.slots.start[user : user + 2]
        assert not path.sparse[:first_out, begin:end].any()
        assert path.sparse[first_out, begin:end].any()
    for state in states:
        for user, norm in enumerate(state.dual_norm):
            begin, end = LAYOUT.slots.start[user : user + 2]
            assert norm == pytest.approx(np.linalg.norm(state.dual[begin:end]), abs=1e-12)


# --- what comes back -----------------------------------------------------------------------


@pytest.mark.backend
def test_without_keeping_users_everything_else_is_the_same():
    kept = run(Explicit(), [0.2, 0.5, 1.5])
    path = run(Explicit(), [0.2, 0.5, 1.5], keep=False)
    assert path.deviation.shape == path.sparse.shape == (0, LAYOUT.n_slots)
    np.testing.assert_array_equal(path.consensus, kept.consensus)
    np.testing.assert_array_equal(path.entry_times, kept.entry_times)
    with pytest.raises(ValueError, match="without keeping snapshots"):
        path.at(0.5)


def test_a_result_echoes_its_settings():
    dynamics = Dynamics(nu=0.25, kappa=4.0, delta=0.01)
    scheme = Explicit(step_scale=0.5, projection="separate", max_steps=10_000)
    path = follow(VOTES, PathSettings(Probit(), dynamics, scheme, [0.01]))
    assert path.settings == {
        "link": "probit",
        "terms": PAPER.as_dict(),
        "scheme": "explicit",
        "nu": 0.25,
        "kappa": 4.0,
        "delta": 0.01,
        "reach": np.inf,
        "step_scale": 0.5,
        "projection": "separate",
        "sparse_from": "new",
        "max_steps": 10_000,
    }


def test_snapshots_are_independent_of_each_other():
    path = run(Explicit(), [0.1, 0.2])
    assert not np.array_equal(path.consensus[0], path.consensus[1])
    assert not np.array_equal(path.deviation[0], path.deviation[1])


def test_the_same_votes_give_the_same_path_twice():
    one, other = run(Explicit(), [0.3, 1.0]), run(Explicit(), [0.3, 1.0])
    np.testing.assert_array_equal(one.deviation, other.deviation)
    np.testing.assert_array_equal(one.entry_times, other.entry_times)


@pytest.mark.backend
def test_a_user_without_votes_in_a_subset_stays_in_the_consensus():
    whole = random_votes(1, n_users=4, n_items=4, n_votes=60)
    votes = whole.subset(whole.user != 2)
    path = follow(votes, PathSettings(Logistic(), FAST, Explicit(), [0.5, 2.0]))
    slots = Layout.of(votes).slots
    silent = slots.owner == 2
    scores = silent & (slots.coordinate < votes.n_items)
    assert not path.deviation[:, scores].any()
    assert not path.sparse[:, silent].any()
    assert np.isinf(path.entry_times[2])
    np.testing.assert_array_equal(path.at(2.0).scores_of(2), path.consensus_at(2.0).scores)


# --- where it stops ------------------------------------------------------------------------

WITH_STOP = np.geomspace(0.05, 3.0, 12)


def stopped(scheme, at, votes=VOTES):
    settings = PathSettings(Logistic(), FAST, scheme, WITH_STOP, stop=WITH_STOP[at])
    return follow(votes, settings)


@pytest.mark.parametrize("scheme", [Explicit(), Implicit()])
@pytest.mark.parametrize("at", [0, 5, 11])
def test_a_path_is_the_same_up_to_its_stop(scheme, at):
    part, whole = stopped(scheme, at), run(scheme, WITH_STOP)
    assert part.ending is Ending.COMPLETE
    np.testing.assert_array_equal(part.times, WITH_STOP[: at + 1])
    for name in ("consensus", "deviation", "sparse"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[: at + 1])
    left = whole.entry_times <= WITH_STOP[at]
    np.testing.assert_array_equal(part.entry_times[left], whole.entry_times[left])
    assert np.all(part.entry_times[~left] > WITH_STOP[at])


def test_after_the_stop_the_consensus_stays_up_to_the_last_time():
    course, whole = stopped(Implicit(), 5).course, run(Implicit(), WITH_STOP).course
    n_before = int(np.sum(course.times < WITH_STOP[5]))
    np.testing.assert_array_equal(course.times[:n_before], whole.times[:n_before])
    assert course.times[-1] == WITH_STOP[-1]
    assert np.all(np.diff(course.times) > 0.0)
    after = course.consensus[course.times > WITH_STOP[6]]
    assert len(after) > 3
    assert np.all(after == after[0])


def test_who_will_leave_after_the_stop_is_told_closely():
    votes = random_votes(3, n_users=40, n_items=6, n_votes=2000)
    settings = PathSettings(Logistic(), FAST, Implicit(), WITH_STOP, stop=WITH_STOP[4])
    part, whole = follow(votes, settings), follow(votes, replace(settings, stop=np.inf))
    later = np.isfinite(whole.entry_times) & (whole.entry_times > WITH_STOP[4])
    assert later.sum() > 10
    np.testing.assert_allclose(part.entry_times[later], whole.entry_times[later], rtol=0.1)


def test_a_dual_has_size_one_after_the_time_to_leave():
    rng, slots = np.random.default_rng(0), LAYOUT.slots
    dual, rate = rng.normal(size=(2, LAYOUT.n_slots))
    dual *= 0.3 / np.sqrt(np.add.reduceat(dual**2, slots.start[:-1]))[slots.owner]
    after = dual + time_to_leave(dual, rate, slots)[slots.owner] * rate
    np.testing.assert_allclose(np.add.reduceat(after**2, slots.start[:-1]), 1.0)


def test_a_dual_that_does_not_move_never_leaves():
    nothing = np.zeros(LAYOUT.n_slots)
    assert np.all(np.isinf(time_to_leave(nothing, nothing, LAYOUT.slots)))


# --- how far it is ---------------------------------------------------------------------------


def test_short_steps_are_told_by_the_time_between_the_times_asked_for(monkeypatch):
    monkeypatch.setattr(driver, "TOLD_EVERY", 5)
    heard = []
    run(Explicit(), [0.02, 1.0], reporter=Reporter(heard.append))
    done, time = np.array([each.done for each in heard]), np.array([each.time for each in heard])
    assert len(heard) > 5
    np.testing.assert_allclose(done, time)
    assert done[-1] == 1.0


def test_long_steps_are_told_by_the_times_asked_for():
    heard = []
    run(Implicit(), [0.02, 0.5, 1.0, 2.0], reporter=Reporter(heard.append))
    np.testing.assert_allclose([each.done for each in heard], [0.0, 0.25, 0.5, 0.75, 1.0])


def test_how_long_short_steps_take_is_said_beforehand(monkeypatch, caplog):
    settings = PathSettings(Logistic(), FAST, Explicit(), np.array([1.0, 5.0]))
    votes = random_votes(0, n_users=5, n_items=4, n_votes=200)
    driver.foretell(votes, settings, Local(votes), 6)
    assert not caplog.messages  # some seconds are not worth a word
    monkeypatch.setattr(driver, "WORTH_TELLING", 0.0)
    driver.foretell(votes, settings, Local(votes), 6)
    (said,) = caplog.messages
    told = re.search(r"the explicit solver takes about ([\d,]+) steps", said)[1]
    n_steps = int(told.replace(",", ""))
    path = follow(votes, settings)
    assert 0.5 * path.n_steps < n_steps < 2.0 * path.n_steps
    assert "follows 6: about" in said
    # A path that is at its end after some steps is not worth a word, either.
    driver.foretell(votes, replace(settings, times=np.array([1e-6])), Local(votes), 6)
    assert len(caplog.messages) == 1
