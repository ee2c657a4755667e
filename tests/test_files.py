from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest

from isplitlbi.files import folder_written_whole, read_whole, remove, written_whole


def test_a_file_is_there_as_a_whole_or_as_it_was(tmp_path):
    file = tmp_path / "notes.txt"
    with written_whole(file) as unfinished:
        unfinished.write_text("first")
        assert not file.exists()
    with pytest.raises(KeyboardInterrupt), written_whole(file) as unfinished:
        unfinished.write_text("sec")
        raise KeyboardInterrupt
    assert file.read_text() == "first"
    assert list(tmp_path.iterdir()) == [file]


def test_threads_that_write_one_file_do_not_meet(tmp_path):
    file = tmp_path / "notes.txt"
    with written_whole(file) as one, written_whole(file) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert file.read_text() in ("one", "other")
    assert list(tmp_path.iterdir()) == [file]


def pair(folder, text):
    """Write the same into two files of a folder that replaces another."""
    with folder_written_whole(folder) as unfinished:
        for name in ("a", "b"):
            (unfinished / name).write_text(text)


def test_who_reads_a_folder_while_it_is_replaced_sees_the_old_or_the_new_one(tmp_path):
    folder, done = tmp_path / "model", []
    pair(folder, "0")

    def both(place):
        return [(place / name).read_text() for name in ("a", "b")]

    def replace():
        for number in range(300):
            pair(folder, str(number))
        done.append(True)

    writer = Thread(target=replace)
    writer.start()
    while not done:
        one, other = read_whole(folder, both)
        assert one == other
    writer.join()
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_what_cannot_be_read_is_an_error_at_once(tmp_path):
    calls = []

    def fail(place):
        calls.append(place)
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        read_whole(tmp_path / "model", fail)
    assert len(calls) == 1


def test_of_two_who_write_a_folder_at_once_one_is_refused_and_nothing_is_mixed(tmp_path):
    folder = tmp_path / "model"
    with (
        pytest.raises(FileExistsError),
        folder_written_whole(folder, replaces=False) as late,
    ):
        (late / "late").touch()
        pair(folder, "early")
    assert sorted(entry.name for entry in folder.iterdir()) == ["a", "b"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_of_many_who_replace_a_folder_at_once_each_has_done_it_or_is_refused(tmp_path):
    folder = tmp_path / "model"

    def write(text):
        for _ in range(50):
            try:
                pair(folder, text)
            except (FileExistsError, FileNotFoundError):
                continue

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, "xyz"))
    one, other = ((folder / name).read_text() for name in ("a", "b"))
    assert one == other
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_an_interrupted_removal_is_done_to_its_end(tmp_path, monkeypatch):
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.touch()
    interrupts = [KeyboardInterrupt]

    def interrupted(*arguments, **options):
        if interrupts:
            raise interrupts.pop()
        return rmtree(*arguments, **options)

    rmtree = __import__("shutil").rmtree
    monkeypatch.setattr("isplitlbi.files.shutil.rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remove(folder, file)
    assert not list(tmp_path.iterdir())
