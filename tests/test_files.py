import pytest

from isplitlbi.files import written_whole


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
