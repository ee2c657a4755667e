"""Paths and fits that were interrupted end where they would have ended."""

import json

import numpy as np
import pytest

from isplitlbi import ISplitLBI
from isplitlbi.errors import UnreadableCheckpoint
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.solvers import Dynamics, Explicit, Implicit, PathSettings, follow
from isplitlbi.solvers.checkpoints import Checkpoint, Checkpoints, SharedCheckpoint
from machines import on_machines

TIMES = np.geomspace(0.1, 1.5, 12)
DYNAMICS = Dynamics(1.0, 5.0)
VOTES = simulate(n_users=8, n_items=5, votes_per_user=(20, 30), random_state=3).votes

every_scheme = pytest.mark.parametrize(
    "scheme", [Implicit(), Explicit()], ids=["implicit", "explicit"]
)


def settings_of(scheme):
    return PathSettings(Logistic(), DYNAMICS, scheme, TIMES)


class Interrupted(Exception):
    pass


def interrupt_at(index):
    def observe(here, _state):
        if here == index:
            raise Interrupted

    return observe


def assert_same_path(one, other):
    for name in ("times", "consensus", "deviation", "sparse", "entry_times"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.n_steps == other.n_steps


@every_scheme
@pytest.mark.parametrize("on_disk", [False, True], ids=["in memory", "on disk"])
@pytest.mark.parametrize("index", [1, 6, 11])
def test_an_interrupted_path_goes_on_to_the_same_end(tmp_path, scheme, on_disk, index):
    keep = tmp_path / "snapshots" if on_disk else True
    whole = follow(VOTES, settings_of(scheme))
    file = tmp_path / "path.npz"
    with pytest.raises(Interrupted):
        follow(
            VOTES, settings_of(scheme), keep=keep,
            observe=interrupt_at(index), checkpoint=Checkpoint(file, scheme, every=0.0),
        )  # fmt: skip
    assert file.exists()
    seen = []
    resumed = follow(
        VOTES, settings_of(scheme), keep=keep,
        observe=lambda here, _: seen.append(here), checkpoint=Checkpoint(file, scheme, every=0.0),
    )  # fmt: skip
    assert 0 < len(seen) < len(TIMES)
    assert_same_path(resumed, whole)
    # A path that is done is not followed again.
    again = follow(
        VOTES, settings_of(scheme), keep=keep,
        observe=interrupt_at(11), checkpoint=Checkpoint(file, scheme),
    )  # fmt: skip
    assert_same_path(again, whole)


@every_scheme
def test_a_path_that_its_observer_has_ended_is_not_followed_further(tmp_path, scheme):
    file, seen = tmp_path / "path.npz", []

    def enough(index, _state):
        seen.append(index)
        return index == 7

    def followed():
        checkpoint = Checkpoint(file, scheme, every=1e6)
        return follow(VOTES, settings_of(scheme), observe=enough, checkpoint=checkpoint)

    ended, again, whole = followed(), followed(), follow(VOTES, settings_of(scheme))
    assert seen == list(range(8))
    assert_same_path(again, ended)
    assert ended.ending is whole.ending
    np.testing.assert_array_equal(ended.times, TIMES[:8])
    np.testing.assert_array_equal(ended.deviation, whole.deviation[:8])


def test_snapshots_that_are_gone_are_missed(tmp_path):
    keep, file = tmp_path / "snapshots", tmp_path / "path.npz"
    arguments = (VOTES, settings_of(Implicit()))
    follow(*arguments, keep=keep, checkpoint=Checkpoint(file, Implicit()))
    for part in keep.iterdir():
        part.unlink()
    with pytest.raises(UnreadableCheckpoint, match="snapshots of the interrupted path are gone"):
        follow(*arguments, keep=keep, checkpoint=Checkpoint(file, Implicit()))


def test_nothing_is_written_before_it_is_time(tmp_path):
    file = tmp_path / "path.npz"
    with pytest.raises(Interrupted):
        follow(
            VOTES, settings_of(Implicit()),
            observe=interrupt_at(8), checkpoint=Checkpoint(file, Implicit(), every=1e6),
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PK nonsense", None], ids=["empty", "nonsense", "cut"])
def test_a_damaged_checkpoint_says_so(tmp_path, content):
    file = tmp_path / "path.npz"
    arguments = (VOTES, settings_of(Implicit()))
    follow(*arguments, checkpoint=Checkpoint(file, Implicit()))
    file.write_bytes(file.read_bytes()[:500] if content is None else content)
    with pytest.raises(UnreadableCheckpoint, match="this checkpoint is damaged"):
        follow(*arguments, checkpoint=Checkpoint(file, Implicit()))


# --- several machines ----------------------------------------------------------------------


def test_machines_go_on_from_the_last_time_at_which_all_have_written(tmp_path):
    settings, bounds = settings_of(Implicit()), [0, 3, 8]

    def followed(here, runtime, observe=None):
        checkpoint = SharedCheckpoint(tmp_path, Implicit(), runtime, every=0.0)
        return follow(here, settings, runtime, observe=observe, checkpoint=checkpoint)

    def interrupted(here, runtime):
        return followed(here, runtime, interrupt_at(6))

    whole = on_machines(VOTES, bounds, lambda here, runtime: follow(here, settings, runtime))
    with pytest.raises(Interrupted):
        on_machines(VOTES, bounds, interrupted)
    (last,) = tmp_path.glob("users-from-0-*.npz")
    assert len(list(tmp_path.glob("users-from-3-*.npz"))) == 1
    last.with_name("users-from-0-99.npz").write_bytes(b"the other has not got there")
    seen = []
    resumed = on_machines(
        VOTES, bounds, lambda *here: followed(*here, lambda index, _: seen.append(index))
    )
    assert 0 < len(seen) < 2 * len(TIMES)
    for one, other in zip(resumed, whole, strict=True):
        assert_same_path(one, other)
    assert {file.name for file in tmp_path.iterdir()} == {
        "users-from-0-12.npz", "users-from-3-12.npz",
    }  # fmt: skip


# --- whole fits ----------------------------------------------------------------------------


def settings(**others):
    return {"kappa": 5.0, "n_folds": 3, "times": TIMES, "n_jobs": 1} | others


PAPERS = {"terms": "paper"}


@pytest.mark.parametrize(
    "others", [{}, {"time": 0.7}, PAPERS, PAPERS | {"nu": [0.5, 1.0]}, PAPERS | {"time": 0.7}],
    ids=["sized", "sized, time given", "paper", "paper, two nu", "paper, time given"],
)  # fmt: skip
@pytest.mark.parametrize("moment", [0.05, 0.2, 0.6, 0.95])
def test_an_interrupted_fit_goes_on_to_the_same_model(tmp_path, others, moment):
    whole = ISplitLBI(**settings(**others)).fit(VOTES)

    def interrupt(progress):
        if progress.done > moment:
            raise Interrupted

    interrupted = ISplitLBI(**settings(**others))
    with pytest.raises(Interrupted):
        interrupted.fit(VOTES, progress=interrupt, checkpoints=tmp_path, checkpoint_every=0.0)
    told = []
    resumed = ISplitLBI(**settings(**others))
    resumed.fit(VOTES, progress=told.append, checkpoints=tmp_path)
    assert_same_path(resumed.path_, whole.path_)
    assert (resumed.time_, resumed.nu_) == (whole.time_, whole.nu_)
    assert resumed.path_.settings == whole.path_.settings
    assert told[-1].done == pytest.approx(1.0)
    if whole.selection_ is not None:
        for one, other in zip(
            resumed.selection_.candidates, whole.selection_.candidates, strict=True
        ):
            for estimate, scores in one.scores.items():
                for scoring, values in scores.items():
                    np.testing.assert_array_equal(values, other.scores[estimate][scoring])
                np.testing.assert_array_equal(one.powers[estimate], other.powers[estimate])
        assert resumed.selection_.one_ranking == whole.selection_.one_ranking


def test_checkpoints_of_another_fit_are_refused(tmp_path):
    ISplitLBI(**settings()).fit(VOTES, checkpoints=tmp_path)
    with pytest.raises(UnreadableCheckpoint, match="belong to other votes or settings"):
        ISplitLBI(**settings(nu=2.0)).fit(VOTES, checkpoints=tmp_path)
    fewer = VOTES.subset(np.arange(len(VOTES) - 1))
    with pytest.raises(UnreadableCheckpoint, match="belong to other votes or settings"):
        ISplitLBI(**settings()).fit(fewer, checkpoints=tmp_path)
    (tmp_path / "identity.json").write_text("{")
    with pytest.raises(UnreadableCheckpoint, match="belong to other votes or settings"):
        ISplitLBI(**settings()).fit(VOTES, checkpoints=tmp_path)


def test_the_number_of_threads_is_no_other_fit(tmp_path):
    one = ISplitLBI(**settings()).fit(VOTES, checkpoints=tmp_path)
    other = ISplitLBI(**settings(n_jobs=2)).fit(VOTES, checkpoints=tmp_path)
    assert_same_path(one.path_, other.path_)


def test_folds_without_a_seed_cannot_go_on(tmp_path):
    with pytest.raises(ValueError, match="checkpoints need a random_state"):
        ISplitLBI(random_state=None).fit(VOTES, checkpoints=tmp_path)


def test_the_identity_is_plain_json(tmp_path):
    Checkpoints.of_fit(tmp_path / "new" / "folder", {"a": (1, 2)})
    note = tmp_path / "new" / "folder" / "identity.json"
    assert json.loads(note.read_text()) == {"a": [1, 2]}
    Checkpoints.of_fit(note.parent, {"a": (1, 2)})
