"""Where a fit in progress is kept."""

import pytest

from isplitlbi.errors import PlaceTaken
from isplitlbi.unfinished import Unfinished


def interrupted_fit(model_folder):
    """Leave behind what an interrupted fit leaves."""
    place = Unfinished(model_folder)
    place.folder.mkdir(exist_ok=True)
    (place.folder / "path.npz").write_bytes(b"state")
    return place


def test_the_place_is_hidden_beside_the_model_and_made_by_whoever_writes_to_it(tmp_path):
    place = Unfinished.fit_of(tmp_path / "model")
    assert place.folder == tmp_path / ".model.unfinished"
    assert place.snapshots.is_relative_to(place.folder)
    assert not place.exists
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_of_a_fit_that_ended_well(tmp_path):
    with Unfinished.fit_of(tmp_path / "model") as place:
        interrupted_fit(tmp_path / "model")
        assert place.exists
        assert place.can_be_resumed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, OSError])
def test_what_can_be_resumed_is_kept_and_what_cannot_is_removed(tmp_path, error):
    for name, has_state in (("kept", True), ("removed", False)):
        place = Unfinished.fit_of(tmp_path / name)
        with pytest.raises(error), place:
            place.snapshots.mkdir(parents=True)
            if has_state:
                (place.folder / "path.npz").write_bytes(b"state")
            raise error
    assert [entry.name for entry in tmp_path.iterdir()] == [".kept.unfinished"]


def test_a_checkpoint_anywhere_in_the_folder_can_be_resumed(tmp_path):
    place = Unfinished(tmp_path / "model")
    (place.folder / "folds").mkdir(parents=True)
    assert not place.can_be_resumed
    (place.folder / "folds" / "fold-1.npz").touch()
    assert place.can_be_resumed


def test_an_interrupted_fit_is_refused_unless_it_goes_on_or_is_given_up(tmp_path):
    place = interrupted_fit(tmp_path / "model")
    with pytest.raises(PlaceTaken, match=r"interrupted; go on with resume=True, or .* force=True"):
        Unfinished.fit_of(tmp_path / "model")
    assert Unfinished.fit_of(tmp_path / "model", resume=True).can_be_resumed
    assert Unfinished.fit_of(tmp_path / "model", resume=True, force=True).can_be_resumed
    assert not Unfinished.fit_of(tmp_path / "model", force=True).exists
    assert not place.exists


def test_a_place_that_is_taken_is_refused_and_keeps_what_was_begun(tmp_path):
    (tmp_path / "model").mkdir()
    place = interrupted_fit(tmp_path / "model")
    for settings in ({}, {"resume": True}, {"force": True}):
        with pytest.raises(PlaceTaken, match=r"exists already|is not a model folder"):
            Unfinished.fit_of(tmp_path / "model", **settings)
        assert place.can_be_resumed


def test_two_fits_of_one_model_do_not_meet(tmp_path):
    pytest.importorskip("fcntl")
    with Unfinished.fit_of(tmp_path / "model"):
        interrupted_fit(tmp_path / "model")
        for settings in ({}, {"resume": True}, {"force": True}):
            with pytest.raises(PlaceTaken, match=r"another process is fitting .*model; wait until"):
                Unfinished.fit_of(tmp_path / "model", **settings)
        with pytest.raises(PlaceTaken, match="another process"), Unfinished(tmp_path / "model"):
            pytest.fail("both are in")
        assert Unfinished(tmp_path / "model").can_be_resumed  # whoever is refused removes nothing
    with Unfinished.fit_of(tmp_path / "model"):
        pass
    assert not list(tmp_path.iterdir())
