"""The contract of a scheme: what every way to follow a path must keep to."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.links import LINKS, Logistic, Probit
from isplitlbi.model.terms import PAPER, Side
from isplitlbi.path import Ending
from isplitlbi.solvers import Dynamics, Explicit, Implicit, fit_before_entries
from paths import (
    SLOW,
    SNAPSHOTS,
    TIMES,
    assert_equal_paths,
    assert_within_box,
    by_label,
    common_threshold,
    deviation_of,
    first_state,
    half_never_ties,
    in_agreement,
    mild_rows,
    mixed_votes,
    own_thresholds,
    prepared,
    relative_errors,
    scores,
    walk,
)
from traits import SIZED, Leftmost, Newest, sized_terms, terms_with
from votes import from_rows, random_votes, rebuilt

SCHEMES = {"implicit": Implicit(), "explicit": Explicit()}
# The paper's literal projection is no constraint of Eq. 8, but must keep to most of this, too.
VARIANTS = SCHEMES | {"explicit, separate": Explicit(projection="separate")}
BOUNDED = {"paper": PAPER, "side": terms_with(Leftmost())}
MODELS = BOUNDED | {"terms": sized_terms("taste,threshold,side,habit")}

every_scheme = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
every_variant = pytest.mark.parametrize("scheme", VARIANTS.values(), ids=VARIANTS)
every_model = pytest.mark.parametrize("terms", MODELS.values(), ids=MODELS)
every_bounded_model = pytest.mark.parametrize("terms", BOUNDED.values(), ids=BOUNDED)
few = settings(max_examples=8)


def short_path(votes, scheme, terms=PAPER):
    dynamics = Dynamics(nu=0.3, kappa=5.0, delta=0.05)
    return walk(votes, scheme, dynamics, [0.1, 0.5, 1.5], terms=terms)


def full_path(votes, scheme, far=3.0, dynamics=SLOW):
    path = walk(votes, scheme, dynamics, np.geomspace(0.05, far, 10))
    assert_within_box(path, dynamics.delta)
    return path


# --- what must not matter ------------------------------------------------------------------


@every_variant
@every_model
@given(rows=mild_rows, users=st.permutations(range(4)), items=st.permutations(range(5)))
@few
def test_relabelling_users_and_items_permutes_the_path(scheme, terms, rows, users, items):
    user, left, step, outcome, weight, _ = (np.array(column) for column in zip(*rows, strict=True))
    right = (left + step) % 5
    users, items = np.array(users), np.array(items)
    votes = Comparisons.from_arrays(user, left, right, outcome, weight)
    renamed = Comparisons.from_arrays(users[user], items[left], items[right], outcome, weight)
    here = by_label(votes, short_path(votes, scheme, terms))
    there = by_label(renamed, short_path(renamed, scheme, terms))

    def new_name(key):
        if not isinstance(key, tuple):
            return users[key]
        k, who, what = key
        if isinstance(what, str) and what.startswith("habit of "):
            what = f"habit of {items[int(what.removeprefix('habit of '))]}"
        elif not isinstance(what, str):
            what = items[what]
        return (k, who if isinstance(who, str) else users[who], what)

    assert len(here) == len(there)
    for key, value in here.items():
        np.testing.assert_allclose(value, there[new_name(key)], rtol=1e-7, atol=1e-7)


@every_scheme
@every_model
@given(rows=mild_rows, data=st.data())
@few
def test_the_order_of_rows_leaves_no_trace(scheme, terms, rows, data):
    shuffled = data.draw(st.permutations(rows))
    one, other = (short_path(from_rows(each), scheme, terms) for each in (rows, shuffled))
    assert_equal_paths(one, other)


@every_scheme
@given(rows=mild_rows, data=st.data())
@few
def test_swapping_the_sides_of_any_vote_leaves_no_trace_where_no_term_sees_them(scheme, rows, data):
    swapped = [
        (user, (left + step) % 5, 5 - step, -outcome, weight, group) if swap else row
        for row in rows
        for swap in [data.draw(st.booleans())]
        for user, left, step, outcome, weight, group in [row]
    ]
    one, other = (short_path(from_rows(each), scheme) for each in (rows, swapped))
    assert_equal_paths(one, other)


@every_scheme
def test_swapping_all_sides_turns_a_preference_for_the_left_around(scheme):
    terms = terms_with(Leftmost())
    votes = random_votes(2, n_users=4, n_votes=60)
    one, other = (
        by_label(each, short_path(each, scheme, terms))
        for each in (votes, rebuilt(votes, swapped=True))
    )
    for key, value in one.items():
        sign = -1.0 if isinstance(key, tuple) and key[-1] == "leftmost" else 1.0
        np.testing.assert_allclose(other[key], sign * np.array(value), rtol=1e-6, atol=1e-7)
    last = max(key[0] for key in one if isinstance(key, tuple))
    assert abs(one[last, "consensus", "leftmost"]) > 1e-3


@every_scheme
@every_model
@given(rows=mild_rows, data=st.data())
@few
def test_a_vote_counts_as_much_as_its_weight_says(scheme, terms, rows, data):
    copies = [data.draw(st.integers(1, 2)) for _ in rows]
    weighted = [(*row[:4], float(n), 0) for row, n in zip(rows, copies, strict=True)]
    repeated = [row for row, n in zip(rows, copies, strict=True) for _ in range(n)]
    one = short_path(from_rows(weighted).in_weight_unit(1.0), scheme, terms)
    assert_equal_paths(one, short_path(from_rows(repeated, weighted=False), scheme, terms))


@every_scheme
def test_the_same_votes_give_the_same_path_twice(scheme):
    assert_equal_paths(*(walk(mixed_votes(), scheme) for _ in range(2)))


@every_variant
@every_bounded_model
@pytest.mark.parametrize("name", LINKS)
def test_a_whole_path_is_the_same_compiled(scheme, terms, name):
    # The uniform link's curvature is two hundred times larger, and so is its number of steps.
    stiff = name == "uniform" and isinstance(scheme, Explicit)
    dynamics = Dynamics(nu=0.01, kappa=5.0) if stiff else Dynamics(nu=0.5, kappa=5.0)
    times = np.linspace(0.01, 0.05, 5) if stiff else np.linspace(0.3, 1.5, 5)
    # Rounding may decide whether one more Newton step is taken, which moves the path by less than
    # the tolerance. At the usual tolerance such a close call is rare, and there is none here.
    one, other = (
        walk(mixed_votes(), scheme, dynamics, times, link=LINKS[name](), terms=terms, backend=each)
        for each in ("numba", "numpy")
    )
    assert one.n_steps == other.n_steps
    assert np.isfinite(one.entry_times).any()
    for part in (*SNAPSHOTS, "entry_times"):
        np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=0, atol=1e-8)


@every_scheme
@pytest.mark.parametrize("has_ties", [True, False], ids=["ties", "forced choice"])
def test_a_whole_path_of_terms_is_the_same_compiled(scheme, has_ties):
    terms, votes = sized_terms("all", features=("length",), has_ties=has_ties), with_features()
    votes = votes if has_ties else votes.subset(votes.outcome != 0)
    times, steady = np.linspace(0.2, 1.0, 4), Implicit(tol=1e-3)
    scheme = steady if isinstance(scheme, Implicit) else scheme
    one, other = (
        walk(votes, scheme, times=times, terms=terms, backend=each) for each in ("numba", "numpy")
    )
    assert one.n_steps == other.n_steps
    assert np.isfinite(one.entry_times).any()
    for part in (*SNAPSHOTS, "entry_times"):
        np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=0, atol=1e-7)


def with_features():
    """Return mixed votes that know of a length."""
    votes, rng = mixed_votes(), np.random.default_rng(5)
    names = votes.users[votes.user], votes.items[votes.left], votes.items[votes.right]
    return Comparisons.from_arrays(
        *names, votes.outcome, features={"length": rng.normal(size=len(votes))}
    )


# The uniform link is hundreds of times stiffer: less damping, and an early end.
TRUE_PATHS = {
    **{name: (name, "logistic") for name in SIZED if name not in ("none", "forced choice, taste")},
    "all, probit": ("all", "probit"),
    "all, uniform": ("all", "uniform"),
}


@pytest.mark.parametrize(("model", "name"), TRUE_PATHS.values(), ids=TRUE_PATHS)
def test_the_implicit_scheme_follows_the_explicit_one_whatever_the_terms(model, name):
    # No time is one at which somebody leaves: there, a small error in time is a large one.
    terms, votes, dynamics, times = SIZED[model], with_features(), SLOW, np.geomspace(0.05, 2.2, 6)
    if "features" in model:  # the first of two
        terms = sized_terms("all", features=("length",), has_ties=terms.has_ties)
    if not terms.has_ties:
        votes = votes.subset(votes.outcome != 0)
    if model in ("all", "taste", "forced choice"):  # whoever leaves is held, too
        dynamics = replace(SLOW, reach=5.0)
    scales = 0.4, 0.2
    if name == "uniform":
        dynamics, times, scales = Dynamics(nu=0.1, kappa=1.0), np.linspace(0.1, 0.5, 4), (1.0, 0.5)
    options = {"link": LINKS[name](), "terms": terms}
    # The error of the explicit scheme is linear in the step, and taken out.
    coarse, fine = (
        walk(votes, Explicit(step_scale=scale), dynamics, times, **options) for scale in scales
    )
    parts = {part: (getattr(coarse, part), getattr(fine, part)) for part in SNAPSHOTS}
    late = 10.0 * times[-1]  # for those who never leave
    parts["entry_times"] = [np.minimum(each.entry_times, late) for each in (coarse, fine)]
    truth = SimpleNamespace(**{part: 2.0 * b - a for part, (a, b) in parts.items()})
    has_own = any(terms.scales)  # or nobody deviates in anything
    for scheme, off in ((Implicit(), 0.012), (Implicit(tol=3e-4), 0.005)):
        path = walk(votes, scheme, dynamics, times, **options)
        assert path.ending is Ending.COMPLETE
        assert path.n_steps < fine.n_steps / 10
        for part in ("deviation", "consensus") if has_own else ("consensus",):
            errors = relative_errors(path, truth, part)
            assert max(errors) < off
            assert np.median(errors) < 0.6 * off
        entry_times = np.minimum(path.entry_times, late)
        np.testing.assert_allclose(entry_times, truth.entry_times, rtol=off)
    assert has_own or np.abs(path.deviation).max() < 1e-9
    assert np.isfinite(path.entry_times).any() or sum(terms.scales) < 1.0


@every_scheme
def test_both_schemes_follow_the_same_path_whatever_the_terms(scheme):
    terms = terms_with(Leftmost(), Newest())
    votes = mixed_votes()
    path = walk(votes, scheme, terms=terms)
    truth = walk(votes, Explicit(step_scale=0.3), terms=terms)
    assert path.vector.traits == ("leftmost", "newest", "threshold")
    for part in ("consensus", "deviation"):
        assert max(relative_errors(path, truth, part)) < 0.03


# --- how far users may go ------------------------------------------------------------------


@every_scheme
@every_model
def test_before_anybody_leaves_the_reach_leaves_no_trace(scheme, terms):
    votes, early = mixed_votes(), [0.02, 0.04]
    near, far = (
        walk(votes, scheme, replace(SLOW, reach=reach), early, terms=terms)
        for reach in (2.0, np.inf)
    )
    assert not near.sparse.any() and not far.sparse.any()
    np.testing.assert_allclose(near.deviation, far.deviation, atol=2e-3)
    np.testing.assert_allclose(near.consensus, far.consensus, atol=2e-3)


def test_in_the_end_everybody_is_held_by_the_reach_alone():
    terms, votes, dynamics = MODELS["terms"], mixed_votes(), replace(SLOW, reach=4.0)
    path = walk(votes, Implicit(), dynamics, [10.0, 150.0], terms=terms)
    assert np.isfinite(path.entry_times).all()
    wide = Dynamics(nu=dynamics.nu * dynamics.reach)
    resting = fit_before_entries(votes, Logistic(), wide, terms=terms, tol=1e-6)
    np.testing.assert_allclose(path.deviation[-1], resting.deviation, atol=0.02)
    np.testing.assert_allclose(path.sparse[-1], path.deviation[-1], atol=0.02)


@pytest.mark.parametrize("reach", [1.0, 0.5, -3.0, np.nan])
def test_a_reach_that_is_no_further_than_the_others_is_refused(reach):
    with pytest.raises(InvalidSetting, match=r"reach is .*; it must be more than 1"):
        Dynamics(reach=reach)


# --- thresholds ----------------------------------------------------------------------------


@every_variant
@every_bounded_model
@given(rows=mild_rows)
@few
def test_every_threshold_stays_at_least_delta(scheme, terms, rows):
    assert_within_box(short_path(from_rows(rows), scheme, terms), 0.05)


@every_scheme
def test_a_large_delta_is_kept_from_the_start(scheme):
    assert_within_box(walk(mixed_votes(), scheme, Dynamics(0.5, 10.0, delta=2.5)), 2.5)


@every_scheme
def test_users_who_never_tie_do_not_drag_the_consensus_threshold_down(scheme):
    path = walk(half_never_ties(), scheme, Dynamics(nu=0.5, kappa=10.0), [0.3, 1.0, 3.0])
    assert_within_box(path, 1e-3)
    common, own = common_threshold(path), own_thresholds(path)[-1]
    assert np.all(common > 0.2)
    assert common[-1] > 0.8 * common[0]
    assert np.all(own[:6] > 0.2)
    assert np.all(own[6:] < 0.05)


# --- users and items of all sorts ----------------------------------------------------------


@every_scheme
@pytest.mark.backend
def test_a_user_with_one_vote_leans_the_way_of_that_vote(scheme):
    votes = in_agreement(("one", "c", "a", 1))
    path = full_path(votes, scheme)
    assert np.all(deviation_of(votes, path, "one", 2) > 0)
    assert np.all(deviation_of(votes, path, "one", 0) < 0)
    np.testing.assert_allclose(  # only the difference of the two scores can be seen in one vote
        deviation_of(votes, path, "one", 2), -deviation_of(votes, path, "one", 0), rtol=1e-9
    )
    assert path.slots.start[1] == 3  # no slot for b
    assert list(votes.items[np.argsort(-scores(path)[-1])]) == ["a", "b", "c"]


@every_scheme
def test_a_user_with_only_ties_gets_a_wider_threshold_and_flat_scores(scheme):
    ties = [("tie", left, right, 0) for left, right in ("ab", "bc", "ac") for _ in range(4)]
    votes = in_agreement(*ties)
    path = full_path(votes, scheme)
    user = int(np.flatnonzero(votes.users == "tie")[0])
    late = path.at(path.times[-1])
    assert np.all(deviation_of(votes, path, "tie", path.vector.threshold) > 0)
    assert late.threshold_of(user) > 2 * late.threshold_of(-1)
    assert np.ptp(late.scores_of(user)) < 0.2 * np.ptp(late.scores_of(-1))
    assert np.argmin(path.entry_times) == user


@every_scheme
def test_a_user_without_ties_keeps_a_positive_threshold(scheme):
    decided = [("sure", left, right, 1) for left, right in ("ab", "bc", "ac") for _ in range(8)]
    votes = in_agreement(*decided)
    path = full_path(votes, scheme)
    own = own_thresholds(path)[:, list(votes.users).index("sure")]
    assert np.all(deviation_of(votes, path, "sure", path.vector.threshold) < 0)
    assert own[-1] < 0.5 * common_threshold(path)[-1]
    assert common_threshold(path)[-1] > 0.1


@every_scheme
def test_votes_without_any_tie_bring_every_threshold_to_delta(scheme):
    path = full_path(random_votes(0, tie_share=0.0), scheme, far=2.0)
    np.testing.assert_allclose(own_thresholds(path)[-1], 1e-3, atol=1e-9)
    assert common_threshold(path)[-1] < 0.05


@every_scheme
def test_votes_of_only_ties_leave_all_scores_at_zero(scheme):
    path = full_path(random_votes(0, tie_share=1.1), scheme, far=1.0)
    of_scores = path.slots.coordinate < path.vector.n_items
    np.testing.assert_allclose(scores(path), 0.0, atol=1e-12)
    np.testing.assert_allclose(path.deviation[:, of_scores], 0.0, atol=1e-12)
    assert np.all(np.diff(common_threshold(path)) > 0)


@every_scheme
def test_disconnected_items_are_each_ranked_among_their_own(scheme):
    apart = [
        (user, "x", "y", outcome) for user in ("u1", "u2", "v") for outcome in (1, 1, 1, 0, -1)
    ]
    a, b, c, x, y = scores(full_path(in_agreement(*apart), scheme)).T
    assert np.all(a > b) and np.all(b > c) and np.all(x > y)
    # Nothing says how the two groups compare: each keeps the mean it started with.
    np.testing.assert_allclose(a + b + c, 0.0, atol=1e-10)
    np.testing.assert_allclose(x + y, 0.0, atol=1e-10)


@every_scheme
def test_a_group_of_items_is_ranked_as_it_would_be_alone(scheme):
    # Steps differ, so that the paths agree only up to their error.
    apart = [("v", "x", "y", outcome) for outcome in (1, 1, 0)]
    together, alone = full_path(in_agreement(*apart), scheme), full_path(in_agreement(), scheme)
    np.testing.assert_allclose(scores(together)[:, :3], scores(alone), atol=0.05)


@every_scheme
def test_an_item_that_always_wins_ranks_first_with_a_finite_score(scheme):
    wins = [(user, "best", item, 1) for user in ("u1", "u2", "u3", "u4") for item in "abc"]
    votes = in_agreement(*wins, *wins)
    path = full_path(votes, scheme, far=10.0)
    best = list(votes.items).index("best")
    assert np.all(np.argmax(scores(path), axis=1) == best)
    assert 1.0 < scores(path)[-1, best] < 20.0
    late = path.at(path.times[-1])
    assert all(np.argmax(late.scores_of(user)) == best for user in range(votes.n_users))


@every_scheme
@pytest.mark.parametrize("outcome", [1, 0, -1])
def test_a_lone_vote_is_a_study_too(scheme, outcome):
    path = full_path(Comparisons.from_arrays(["u"], ["a"], ["b"], [outcome]), scheme)
    lead = scores(path)[:, 0] - scores(path)[:, 1]
    assert np.all(np.sign(lead) == outcome)


@every_scheme
def test_a_user_without_votes_in_a_subset_stays_in_the_consensus(scheme):
    whole = random_votes(1, n_users=4, n_items=4, n_votes=60)
    path = full_path(whole.subset(whole.user != 2), scheme)
    silent = path.slots.owner == 2
    of_scores = silent & (path.slots.coordinate < path.vector.n_items)
    assert of_scores.any()
    assert not path.deviation[:, of_scores].any()
    assert not path.sparse[:, silent].any()
    assert np.isinf(path.entry_times[2])


@every_scheme
def test_a_user_who_prefers_the_left_differs_in_that_and_hardly_in_taste(scheme):
    always_left = [
        ("lefty", *pair, 1) for pair in ("ab", "ba", "bc", "cb", "ac", "ca") for _ in range(4)
    ]
    votes = in_agreement(*always_left)
    path = walk(votes, scheme, times=[1.0, 2.0], terms=terms_with(Side()))
    user = list(votes.users).index("lefty")
    late = path.at(2.0)
    preference = late.all_of("side")
    assert np.argmax(preference) == user
    assert preference[user] > 1.0 + late.common.trait("side")
    assert late.distance_to_consensus()[user] < preference[user]
    # Without the term, all that the user does can only be taste.
    assert np.ptp(late.scores_of(user)) < np.ptp(late.scores_of(-1)) + 0.5


# --- from any state ------------------------------------------------------------------------


@every_variant
@pytest.mark.backend
def test_a_path_can_be_left_and_taken_up_again(scheme):
    votes, states = mixed_votes(), []
    straight = walk(votes, scheme)
    first = walk(votes, scheme, times=TIMES[:6], observe=lambda _, s: states.append(s.copy()))
    left = states[-1]
    assert left.time == TIMES[5]
    before = left.copy()
    onwards = walk(votes, scheme, times=TIMES[6:], initial=left)
    assert onwards.ending is Ending.COMPLETE
    assert onwards.n_steps > first.n_steps
    for part in ("consensus", "deviation"):
        found, expected = getattr(onwards, part), getattr(straight, part)[6:]
        off = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
        assert max(off) < 0.01
    np.testing.assert_allclose(onwards.entry_times, straight.entry_times, rtol=0.01)
    early = first.entry_times < TIMES[5]
    assert early.any() and not early.all()
    np.testing.assert_array_equal(onwards.entry_times[early], first.entry_times[early])
    assert vars(before).keys() == vars(left).keys()
    for name, value in vars(before).items():  # the state that was given is as it was
        if name != "memory":
            np.testing.assert_array_equal(getattr(left, name), value, err_msg=name)


@every_scheme
def test_a_path_may_start_anywhere(scheme):
    # Far along, the consensus of few votes depends little on where its path began.
    votes, times = in_agreement(), [2.0, 4.0]
    start = first_state(votes)
    start.consensus[:] = [-1.0, 0.0, 1.0, 0.2]
    usual, other = (walk(votes, scheme, times=times, initial=each) for each in (None, start))
    np.testing.assert_array_equal(start.consensus, [-1.0, 0.0, 1.0, 0.2])
    assert list(np.argsort(-scores(other)[-1])) == [0, 1, 2]
    np.testing.assert_allclose(other.consensus[-1], usual.consensus[-1], atol=0.02)


@every_scheme
def test_a_checkpoint_takes_all_that_a_scheme_remembers(scheme):
    votes = mixed_votes()
    state, stepper = first_state(votes), prepared(scheme, votes, SLOW)
    assert scheme.unpack(*scheme.pack(state.memory)) is None  # nothing yet
    for _ in range(5):
        stepper.step(state, 1.0, 2.0)
    resumed = state.copy()
    header, arrays = scheme.pack(state.memory)
    on_disk = {name: values.copy() for name, values in arrays.items()}
    resumed.memory = scheme.unpack(json.loads(json.dumps(header)), on_disk)
    for each in (state, resumed):
        stepper.step(each, 1.0, 2.0)
    assert resumed.time == state.time
    for one, other in zip(state.flow, resumed.flow, strict=True):
        np.testing.assert_array_equal(one, other)


# --- steps, settings and endings -----------------------------------------------------------


@every_scheme
def test_a_step_goes_forward_and_never_past_the_last_time(scheme):
    votes = mixed_votes()
    state, stepper = first_state(votes), prepared(scheme, votes, SLOW)
    while state.time < 0.3:
        since, norms = state.time, state.dual_norm
        stepper.step(state, 0.3, 0.3)
        assert since < state.time <= 0.3
        assert state.dual_norm is not norms  # the driver compares the two
    assert state.time == 0.3


@every_scheme
def test_a_scheme_is_frozen_and_its_rough_form_is_of_the_same_kind(scheme):
    assert type(scheme.rough()) is type(scheme)
    assert scheme == type(scheme)()
    with pytest.raises(AttributeError):
        scheme.max_steps = 3


@every_scheme
@pytest.mark.parametrize("max_steps", [0, -5])
def test_a_path_needs_at_least_one_step(scheme, max_steps):
    with pytest.raises(ValueError, match=f"max_steps is {max_steps}; it must be at least 1"):
        type(scheme)(max_steps=max_steps)


@every_scheme
def test_the_step_limit_ends_a_path_with_what_it_has(scheme):
    votes, kind = mixed_votes(), type(scheme)
    whole = walk(votes, scheme)
    path = walk(votes, kind(max_steps=whole.n_steps - 10))
    assert path.ending is Ending.STEP_LIMIT
    assert path.n_steps == whole.n_steps - 10
    reached = len(path.times)
    assert 0 < reached < len(TIMES)
    for part in SNAPSHOTS:
        np.testing.assert_array_equal(getattr(path, part), getattr(whole, part)[:reached])
    assert_equal_paths(walk(votes, kind(max_steps=whole.n_steps)), whole)


@every_scheme
@pytest.mark.parametrize("keep", [True, False])
def test_a_path_that_reaches_no_time_has_the_right_shapes(scheme, keep):
    votes = mixed_votes()
    path = walk(votes, type(scheme)(max_steps=3), keep=keep)
    assert path.ending is Ending.STEP_LIMIT
    assert path.times.shape == (0,)
    assert path.consensus.shape == (0, 7)
    assert path.deviation.shape == path.sparse.shape == (0, Layout.of(votes).n_slots)


@every_scheme
@every_model
def test_a_result_echoes_its_settings(scheme, terms):
    dynamics = Dynamics(nu=0.25, kappa=4.0, delta=0.01, reach=50.0)
    path = walk(mixed_votes(), scheme, dynamics, [0.01], link=Probit(), terms=terms)
    assert path.settings == {
        "link": "probit",
        "terms": terms.as_dict(),
        "scheme": type(scheme).__name__.lower(),
        "nu": 0.25,
        "kappa": 4.0,
        "delta": 0.01,
        "reach": 50.0,
        **vars(scheme),
    }


class Nowhere(Logistic):
    """A link that has no answer."""

    name = "nowhere"

    def vote_terms(self, margin, threshold, first_wins, ties, second_wins):
        return (np.nan * margin,) * 6


@every_scheme
def test_a_link_without_an_answer_ends_the_path_and_says_so(scheme):
    votes = random_votes(0, n_votes=30)
    path = walk(votes, scheme, times=[0.1, 1.0], link=Nowhere(), backend="numpy")
    assert path.ending is Ending.NOT_FINITE
