import gzip

import polars as pl
import pytest

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.readers import read_csv

HEADER = b"user,left,right,winner\n"


def written(folder, content):
    path = folder / "votes.csv"
    path.write_bytes(content)
    return path


def test_every_column_is_read_as_text(tmp_path):
    path = written(tmp_path, b"user,left,right,winner,weight\n007,1,2.0,left,1e3\n7,true,b,tie,2\n")
    frame = read_csv(path)
    assert set(frame.dtypes) == {pl.String}
    assert frame.rows() == [("007", "1", "2.0", "left", "1e3"), ("7", "true", "b", "tie", "2")]


@pytest.mark.parametrize(
    "content",
    [
        HEADER + b"u,a,b,left\n",
        HEADER + b"u,a,b,left",
        (HEADER + b"u,a,b,left\n").replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + HEADER + b"u,a,b,left\n",
        b'"user","left","right","winner"\n"u","a","b","left"\n',
        b"winner,right,left,user\nleft,b,a,u\n",
        gzip.compress(HEADER + b"u,a,b,left\n"),
    ],
    ids=["plain", "no last newline", "Windows", "byte order mark", "quoted", "reordered", "gzip"],
)
def test_the_usual_kinds_of_csv_are_read(content, tmp_path):
    votes = Comparisons.read(written(tmp_path, content))
    assert votes.users.tolist() == ["u"] and votes.items.tolist() == ["a", "b"]
    assert votes.outcome.tolist() == [1]


def test_quotes_commas_newlines_and_unicode_come_back_unchanged(tmp_path):
    row = '"say ""hi""","a, b","two\nlines",tie\n日本,żółw,😀,tie\n'
    frame = read_csv(written(tmp_path, HEADER + row.encode()))
    assert frame.rows() == [
        ('say "hi"', "a, b", "two\nlines", "tie"),
        ("日本", "żółw", "😀", "tie"),
    ]


def test_numbers_first_and_words_far_below_are_still_text(tmp_path):
    content = HEADER + b"1,2,3,tie\n" * 3000 + b"ann,2,3,tie\n"
    assert Comparisons.read(written(tmp_path, content)).users.tolist() == ["1", "ann"]


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "no such.csv"
    with pytest.raises(InvalidVotes, match=r"no such\.csv: there is no such file"):
        Comparisons.read(path)
    with pytest.raises(InvalidVotes, match=r"no such\.csv: there is no such file"):
        read_csv(path)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(InvalidVotes, match=r"this is a folder; expected a CSV file"):
        Comparisons.read(tmp_path)


BAD_FILES = {
    "empty": (b"", ["the file is empty"]),
    "blank lines": (b"\n\n", ["the file is empty"]),
    "header only": (HEADER, ["there are no votes"]),
    "header without newline": (HEADER.strip(), ["there are no votes"]),
    "row too long": (HEADER + b"u,a,b,tie\nu,a,b,tie,5\n", ["not a readable CSV"]),
    "row too short": (HEADER + b"u,a,b,tie\nu,a,b\n", ["row 2", "winner is missing"]),
    "blank line inside": (HEADER + b"u,a,b,tie\n\nu,a,b,tie\n", ["row 2", "missing"]),
    "unfinished quote": (HEADER + b'u,"a,b,tie\nu,a,b,tie\n', ["not a readable CSV"]),
    "semicolons": (HEADER.replace(b",", b";") + b"u;a;b;tie\n",
        ["no column 'user'", "user;left;right;winner"]),
    "no header": (b"u,a,b,tie\nv,a,b,tie\n", ["no column 'user'", "found: u, a, b, tie"]),
    "another alphabet": (HEADER + "é,a,b,tie\n".encode("latin-1"), ["not a readable CSV", "utf-8"]),
    "UTF-16": ((HEADER + b"u,a,b,tie\n").decode().encode("utf-16"), []),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00", []),
    "every byte": (bytes(range(256)) * 4, []),
    "zeros": (bytes(1000), []),
    "a broken archive": (gzip.compress(HEADER * 50)[:40], []),
}  # fmt: skip


@pytest.mark.parametrize("content, fragments", BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_without_usable_votes_gives_one_clear_error(content, fragments, tmp_path):
    with pytest.raises(InvalidVotes) as caught:
        Comparisons.read(written(tmp_path, content))
    for fragment in ["votes.csv", *fragments]:
        assert fragment in str(caught.value)
