import io
import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isplitlbi.data.layout import Slots, Vector
from isplitlbi.errors import UnreadablePath
from isplitlbi.model.terms import PAPER
from isplitlbi.path import FORMAT_VERSION, Ending, RegularizationPath, spread_out

ARRAYS = ("times", "consensus", "deviation", "sparse", "entry_times")


def small_path(**changes):
    """Return a path of three users on two items; the second user enters first, the third never."""
    rng = np.random.default_rng(0)
    vector = Vector(2, ("threshold",))
    coordinate = np.array([0, 1, 2, 0, 1, 2, 2], dtype=np.int32)
    slots = Slots.of(np.array([0, 3, 6, 7]), coordinate, vector)
    sparse = np.zeros((4, 7))
    sparse[1:, 3:6] = rng.normal(size=(3, 3))
    sparse[2:, 0:3] = rng.normal(size=(2, 3))
    path = RegularizationPath(
        vector=vector,
        slots=slots,
        times=np.array([1.0, 2.0, 4.0, 8.0]),
        consensus=rng.normal(size=(4, 3)),
        deviation=rng.normal(size=(4, 7)) / 3.0,
        sparse=sparse,
        entry_times=np.array([3.5, 1.25, np.inf]),
        ending=Ending.COMPLETE,
        n_steps=17,
        settings={
            "link": "logistic",
            "terms": PAPER.as_dict(),
            "nu": 0.1,
            "kappa": 1e300,
            "projection": "joint",
            "sparse_from": "new",
        },
    )
    return replace(path, **changes)


def assert_same(one, other):
    for name in ARRAYS:
        here, there = getattr(one, name), getattr(other, name)
        assert here.dtype == there.dtype
        assert here.shape == there.shape
        assert here.tobytes() == there.tobytes(), name
    for here, there in zip(one.slots, other.slots, strict=True):
        np.testing.assert_array_equal(here, there)
    assert one.vector == other.vector
    assert one.ending is other.ending
    assert one.n_steps == other.n_steps
    assert one.settings == other.settings


# --- between snapshots ---------------------------------------------------------------------


def test_at_a_snapshot_its_values_come_back_unchanged():
    path = small_path()
    for k, time in enumerate(path.times):
        parameters = path.at(time)
        np.testing.assert_array_equal(parameters.consensus, path.consensus[k])
        np.testing.assert_array_equal(path.consensus_at(time).scores, path.consensus[k, :2])
        assert parameters.threshold_of(-1) == path.consensus[k, 2]
        np.testing.assert_array_equal(parameters.deviation, path.deviation[k])
        np.testing.assert_array_equal(path.sparse_at(time), path.sparse[k])


def test_a_snapshot_cannot_be_changed_through_the_values_at_its_time():
    path = small_path()
    kept = path.consensus.copy()
    path.at(2.0).consensus[:] = 0.0  # a copy
    np.testing.assert_array_equal(path.consensus, kept)
    for large in (path.at(2.0).deviation, path.sparse_at(2.0)):
        with pytest.raises(ValueError, match="read-only"):
            large[:] = 0.0


@given(st.floats(1.0, 8.0))
def test_between_snapshots_values_are_interpolated(time):
    path = small_path()
    parameters = path.at(time)
    for rows, found in (
        (path.consensus, parameters.consensus),
        (path.deviation, parameters.deviation),
        (path.sparse, path.sparse_at(time)),
    ):
        expected = [np.interp(time, path.times, column) for column in rows.T]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("time", [0.0, 0.999, 8.001, -1.0, np.inf, np.nan])
def test_a_time_outside_the_path_is_refused(time):
    with pytest.raises(ValueError, match=r"is not on the path, which spans 1 to 8\."):
        small_path().at(time)


def test_a_path_without_snapshots_of_users_says_so():
    path = small_path(deviation=np.empty((0, 7)), sparse=np.empty((0, 7)))
    for ask in (path.at, path.sparse_at, path.support_at):
        with pytest.raises(ValueError, match="without keeping snapshots of the users"):
            ask(2.0)


def test_a_path_that_reached_no_time_says_how_it_ended():
    nothing = {"consensus": np.empty((0, 3)), "deviation": np.empty((0, 7))}
    path = small_path(
        times=np.empty(0), sparse=np.empty((0, 7)), ending=Ending.STEP_LIMIT, **nothing
    )
    with pytest.raises(ValueError, match=r"no snapshots\. The path stopped at the step limit"):
        path.at(1.0)


# --- who is out ----------------------------------------------------------------------------


def test_the_support_lists_users_in_order_of_entry():
    path = small_path()
    assert path.support_at(1.0).tolist() == []
    assert path.support_at(2.0).tolist() == [1]
    assert path.support_at(4.0).tolist() == [1, 0]
    assert path.support_at(8.0).tolist() == [1, 0]


def test_between_snapshots_nobody_is_out_before_their_entry():
    path = small_path()
    assert path.support_at(1.2).tolist() == []
    assert path.support_at(1.3).tolist() == [1]
    assert path.support_at(3.4).tolist() == [1]
    assert path.support_at(3.6).tolist() == [1, 0]


def test_a_user_who_came_back_is_not_in_the_support():
    path = small_path()
    path.sparse[3, 3:6] = 0.0
    assert path.support_at(4.0).tolist() == [1, 0]
    assert path.support_at(8.0).tolist() == [0]


# --- how it ended --------------------------------------------------------------------------


@pytest.mark.parametrize("ending", Ending)
def test_every_ending_is_a_sentence(ending):
    assert ending.value[0].isupper()
    assert ending.value.endswith(".")


# --- saved and loaded ----------------------------------------------------------------------


@pytest.mark.parametrize("ending", Ending)
def test_a_saved_path_comes_back_exactly(tmp_path, ending):
    path = small_path(ending=ending)
    path.deviation[0, :3] = [np.nextafter(0, 1), -0.0, 1 / 3]
    path.save(tmp_path / "path.npz")
    assert_same(RegularizationPath.load(tmp_path / "path.npz"), path)
    assert os.listdir(tmp_path) == ["path.npz"]


def test_a_path_without_users_or_without_times_comes_back_too(tmp_path):
    no_users = small_path(deviation=np.empty((0, 7)), sparse=np.empty((0, 7)))
    no_times = replace(no_users, times=np.empty(0), consensus=np.empty((0, 3)))
    for path in (no_users, no_times):
        path.save(tmp_path / "path")
        assert_same(RegularizationPath.load(tmp_path / "path"), path)


def test_any_file_name_is_kept_as_given(tmp_path):
    small_path().save(str(tmp_path / "no-suffix"))
    assert os.listdir(tmp_path) == ["no-suffix"]


def test_saving_replaces_what_was_there(tmp_path):
    file = tmp_path / "path.npz"
    file.write_bytes(b"something else")
    small_path().save(file)
    small_path(n_steps=99).save(file)
    assert RegularizationPath.load(file).n_steps == 99


def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file, path = tmp_path / "path.npz", small_path()
    path.save(file)

    def interrupted(stream, **_):
        stream.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small_path(n_steps=99).save(file)
    assert os.listdir(tmp_path) == ["path.npz"]
    assert_same(RegularizationPath.load(file), path)


def test_settings_that_cannot_be_written_leave_nothing_behind(tmp_path):
    with pytest.raises(TypeError):
        small_path(settings={"link": object()}).save(tmp_path / "path.npz")
    assert os.listdir(tmp_path) == []


def test_a_file_holds_no_pickle(tmp_path):
    small_path().save(tmp_path / "path.npz")
    with zipfile.ZipFile(tmp_path / "path.npz") as content:
        for name in content.namelist():
            np.load(io.BytesIO(content.read(name)), allow_pickle=False)


# --- files that are not a path -------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    small_path().save(tmp_path / "path.npz")
    return tmp_path / "path.npz"


def refused(file, message=""):
    """Assert that loading gives one sentence, which names the file, and return it."""
    with pytest.raises(UnreadablePath, match=message) as caught:
        RegularizationPath.load(file)
    said = str(caught.value)
    assert said.startswith(f"{file}: ")
    assert said.endswith(".")
    assert "\n" not in said
    error = caught.value  # without a chain of somebody else's tracebacks
    assert error.__suppress_context__ or error.__context__ is None
    return said


def rewritten(file, *, in_header=None, **arrays):
    """Write the file again with some arrays or parts of its header changed (None removes one)."""
    with np.load(file) as content:
        everything = dict(content)
    if in_header is not None:
        changed = json.loads(everything["header"].tobytes()) | in_header
        arrays["header"] = np.frombuffer(json.dumps(changed).encode(), dtype=np.uint8)
    everything = {k: v for k, v in (everything | arrays).items() if v is not None}
    with file.open("wb") as stream:
        np.savez(stream, **everything)


def test_a_missing_file_is_called_missing(tmp_path):
    refused(tmp_path / "nowhere.npz", "there is no such file")


def test_a_folder_is_not_a_path(tmp_path):
    refused(tmp_path, "not a regularization path, or it is damaged")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_called_damaged(saved, share):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(share * len(whole))])
    refused(saved, "not a regularization path, or it is damaged")


@pytest.mark.parametrize("content", [b"", b"user,left,right\n", b"\x00\xff" * 500, b"PK\x03\x04"])
def test_foreign_bytes_are_called_foreign(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    refused(tmp_path / "file", "not a regularization path, or it is damaged")


def test_other_numpy_files_are_called_foreign(tmp_path):
    np.save(tmp_path / "one.npy", np.arange(3))
    np.savez(tmp_path / "two.npz", a=np.arange(3))
    np.savez(tmp_path / "three.npz", header=np.arange(3))
    np.savez(tmp_path / "four.npz", header=np.frombuffer(b'["format"]', dtype=np.uint8))
    for name in ("one.npy", "two.npz", "three.npz", "four.npz"):
        refused(tmp_path / name, "not a regularization path, or it is damaged")


def test_pickled_objects_are_refused(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    refused(tmp_path / "objects.npy", "not a regularization path")


def test_another_format_is_called_another(saved):
    rewritten(saved, in_header={"format": "somebody else's"})
    refused(saved, r"this is not a regularization path\.")


def test_another_version_is_named(saved):
    rewritten(saved, in_header={"version": FORMAT_VERSION + 1})
    said = refused(saved, f"format version {FORMAT_VERSION + 1} cannot be read here")
    assert f"reads version {FORMAT_VERSION}. Fit the votes again." in said


@pytest.mark.parametrize("name", [*ARRAYS, "header", "slot_start", "slot_coordinate"])
def test_a_missing_array_is_called_damage(saved, name):
    rewritten(saved, **{name: None})
    refused(saved, "not a regularization path, or it is damaged")


@pytest.mark.parametrize(
    "header",
    [
        {"ending": "BOREDOM"},
        {"ending": None},
        {"n_steps": "many"},
        {"settings": None},
        {"settings": {}},
        {"settings": {"terms": ["taste", "smell"]}},
        {"n_items": None},
        {"traits": None},
        {"traits": ["side"]},
    ],
    ids=str,
)
def test_a_strange_header_is_called_damage(saved, header):
    rewritten(saved, in_header=header)
    refused(saved, "not a regularization path, or it is damaged")


@pytest.mark.parametrize(
    "arrays",
    [
        {"times": np.ones(3)},
        {"times": np.ones((4, 1))},
        {"times": np.array(1.0)},
        {"times": np.array(["a", "b", "c", "d"])},
        {"consensus": np.ones((4, 2))},
        {"consensus": np.ones((3, 3))},
        {"deviation": np.ones((4, 6))},
        {"sparse": np.ones((4, 6))},
        {"sparse": np.empty((0, 7))},
        {"entry_times": np.ones(2)},
        {"entry_times": np.array(1.0)},
        {"slot_start": np.array([0, 3, 6])},
        {"slot_start": np.array([0, 3, 6, 9])},
        {"slot_start": np.array([0, 3, 3, 7])},
        {"slot_start": np.empty(0, dtype=np.int64)},
        {"slot_coordinate": np.zeros(6, dtype=np.int32)},
        {"slot_coordinate": np.zeros(7, dtype=np.int32)},
        {"slot_coordinate": np.array([0, 5, 2, 0, 1, 2, 2], dtype=np.int32)},
        {"slot_coordinate": np.array([0, -1, 2, 0, 1, 2, 2], dtype=np.int32)},
    ],
    ids=lambda arrays: " ".join(f"{k}{v.shape}{v.dtype.kind}" for k, v in arrays.items()),
)
def test_arrays_that_do_not_fit_together_are_called_damage(saved, arrays):
    rewritten(saved, **arrays)
    refused(saved, "damaged")


@given(st.data())
@settings(max_examples=150)
def test_changed_bytes_are_noticed_or_harmless(tmp_path_factory, data):
    path = small_path()
    file = tmp_path_factory.mktemp("flipped") / "path.npz"
    path.save(file)
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    try:
        found = RegularizationPath.load(file)
    except UnreadablePath:
        return
    assert_same(found, path)


@given(st.integers(1, 80), st.integers(0, 80), st.data())
def test_times_are_spread_from_the_first_to_the_last_with_the_chosen_one_among_them(
    n_times, n_kept, data
):
    chosen = data.draw(st.integers(0, n_times - 1))
    places = spread_out(n_times, n_kept, chosen)
    assert chosen in places
    assert np.all(np.diff(places) > 0) and places[0] >= 0 and places[-1] < n_times
    assert len(places) <= n_kept + 1
    if n_kept >= 2:
        assert (places[0], places[-1]) == (0, n_times - 1)
        without = np.delete(places, np.searchsorted(places, chosen))
        gaps = np.diff(without) if chosen not in (0, n_times - 1) else np.diff(places)
        assert gaps.max(initial=0) <= 2 * np.ceil((n_times - 1) / (n_kept - 1)) + 1
