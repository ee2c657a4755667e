"""Users who are followed beside a path that is known already."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.local import Local
from isplitlbi.solvers import Dynamics, Explicit, Implicit, PathSettings, follow
from isplitlbi.solvers.beside import follow_beside
from traits import SIZED, TRAITS, terms_with

TIMES = np.geomspace(0.03, 1.5, 12)
AT = 8
TIME = TIMES[AT]


@pytest.fixture(scope="module")
def votes():
    return simulate(
        n_users=9, n_items=6, votes_per_user=(15, 40), abnormal_share=0.3, random_state=3
    ).votes


def with_features(votes):
    rng = np.random.default_rng(0)
    names = {"user": votes.users[votes.user], "left": votes.items[votes.left]}
    names["right"] = votes.items[votes.right]
    features = {name: rng.normal(size=len(votes)) for name in ("length", "price")}
    return Comparisons.from_arrays(**names, outcome=votes.outcome, features=features)


def settings_of(terms, scheme=None, **dynamics):
    known = Dynamics(**{"nu": 0.4, "kappa": 10.0, **dynamics})
    # So closely that what is left is what placing alone adds.
    return PathSettings(Logistic(), known, scheme or Implicit(tol=2e-4), TIMES, terms)


def placed(votes, settings, path, *, backend=None, n_threads=1):
    return follow_beside(votes, settings, path.course, TIME, Local(votes, n_threads, backend))


def as_shown(found, path):
    """Return deviations from the consensus that a path shows: the average of those who stay."""
    moved, sharper = found.deviation.copy(), path.sharper_by(TIME)
    if "sharpness" in path.vector.traits:
        moved[path.slots.threshold - len(path.terms.traits) - 1] -= sharper
    return moved


def assert_same_as_on_path(found, path, tolerance):
    found = found._replace(deviation=as_shown(found, path))
    own = path.deviation[AT]
    assert np.linalg.norm(found.deviation - own) <= tolerance * np.linalg.norm(own) + 1e-9
    assert_array_equal(np.isfinite(found.entry_times), np.isfinite(path.entry_times))
    left = np.isfinite(path.entry_times)
    assert_allclose(found.entry_times[left], path.entry_times[left], rtol=5e-3)
    out = np.logical_or.reduceat(found.sparse != 0.0, path.slots.start[:-1])
    assert_array_equal(out, np.logical_or.reduceat(path.sparse[AT] != 0.0, path.slots.start[:-1]))


@pytest.mark.parametrize("name", SIZED)
def test_a_user_of_the_study_is_placed_where_the_path_has_them(votes, name):
    terms = SIZED[name]
    some = with_features(votes) if "feature" in name else votes
    if not terms.has_ties:
        some = some.subset(some.outcome != 0)
    settings = settings_of(terms, reach=1000.0)
    path = follow(some, settings)
    assert_same_as_on_path(placed(some, settings, path), path, 0.001)


@pytest.mark.parametrize("traits", TRAITS)
def test_so_it_is_with_thresholds_that_have_a_bound(votes, traits):
    settings = settings_of(terms_with(*TRAITS[traits]))
    path = follow(votes, settings)
    assert_same_as_on_path(placed(votes, settings, path), path, 0.002)


def test_the_course_of_an_explicit_path_will_do(votes):
    settings = settings_of(terms_with(), Explicit(), kappa=5.0)
    path = follow(votes, settings)
    assert len(path.course.times) < path.n_steps
    found = placed(votes, settings, path)
    own = path.deviation[AT]
    assert np.linalg.norm(found.deviation - own) <= 0.02 * np.linalg.norm(own)


@pytest.mark.parametrize("name", ["all", "forced choice"])
def test_nobody_depends_on_who_else_is_placed_nor_on_threads(votes, name):
    terms = SIZED[name]
    some = votes if terms.has_ties else votes.subset(votes.outcome != 0)
    settings = settings_of(terms)
    path = follow(some, settings)
    together = placed(some, settings, path)
    for user in (0, 4):
        alone = placed(some.subset(some.user == user), settings, path)
        mine = slice(*path.slots.start[user : user + 2])
        assert_array_equal(alone.deviation[mine], together.deviation[mine])
        assert alone.entry_times[user] == together.entry_times[user]
        assert np.isinf(np.delete(alone.entry_times, user)).all()  # who has no votes stays
    threads = placed(some, settings, path, n_threads=3)
    assert_array_equal(threads.deviation, together.deviation)


@pytest.mark.backend
@pytest.mark.parametrize("name", ["all", "taste"])
def test_readable_loops_say_the_same(votes, name):
    settings = settings_of(SIZED[name])
    few = votes.subset(votes.user < 3)
    path = follow(votes, settings)
    compiled, plain = (placed(few, settings, path, backend=each) for each in (None, "numpy"))
    assert_allclose(compiled.deviation, plain.deviation, rtol=1e-6, atol=1e-9)
    assert_allclose(compiled.entry_times, plain.entry_times, rtol=1e-6)


def test_who_stands_out_more_than_anybody_leaves_before_the_first_step_of_the_course(votes):
    settings = settings_of(SIZED["all"])
    path = follow(votes, settings)
    worst = int(np.argmin(path.entry_times))
    mine = votes.subset(np.repeat(np.flatnonzero(votes.user == worst), 20))
    found = placed(mine, settings, path)
    assert 0.0 < found.entry_times[worst] < 0.5 * path.entry_times[worst]
    # More steps change little, though they begin before those of the course.
    times, consensus, pull = path.course
    between = np.sort(np.concatenate([times, 0.5 * (times[1:] + times[:-1])]))
    # In rows, as a course is: loops for arrays in columns would be compiled for this test alone.
    finer = np.column_stack([np.interp(between, times, column) for column in consensus.T])
    again = placed(mine, settings, replace(path, course=path.course._replace(
        times=between, consensus=finer, pull=np.interp(between, times, pull))))  # fmt: skip
    assert_allclose(again.entry_times[worst], found.entry_times[worst], rtol=0.01)


def test_a_path_that_is_resumed_has_the_same_course(votes, tmp_path):
    from isplitlbi.solvers.checkpoints import Checkpoint

    class Enough(Exception):
        pass

    def stop(index, _state):
        if index == 6:
            raise Enough

    settings = settings_of(SIZED["all"])
    whole = follow(votes, settings)
    checkpoint = Checkpoint(tmp_path / "path.npz", settings.scheme, every=0.0)
    with pytest.raises(Enough):
        follow(votes, settings, checkpoint=checkpoint, observe=stop)
    resumed = follow(
        votes, settings, checkpoint=Checkpoint(tmp_path / "path.npz", settings.scheme, every=0.0)
    )
    for one, other in zip(whole.course, resumed.course, strict=True):
        assert_array_equal(one, other)
