import gzip
import io
import json
import os
import pickle
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.formats import FORMATS
from isplitlbi.data.loading import NoVotes
from isplitlbi.data.notes import Dropped, NothingThere, WeightsScaled
from isplitlbi.data.readers import (
    Described,
    Parts,
    Reading,
    described,
    read_pairs,
    read_part,
    read_votes,
)
from isplitlbi.errors import ISplitLBIError
from votes import as_tuples, assert_same

HEADER = b"user,left,right,winner\n"

TABLE = pl.DataFrame(
    {
        "user": ["7", "12", "7", "3"],
        "left": ["1", "2", "10", "2"],
        "right": ["2", "10", "1", "1"],
        "winner": ["left", "tie", "right", "left"],
        "weight": [1.0, 0.1 + 0.2, 1e-9, 12345678.9],
        "group": ["5", "5", "40", "5"],
    }
)
INTEGERS = TABLE.with_columns(pl.col("user", "left", "right", "group").cast(pl.Int64))


def written(folder, content, name="votes.csv"):
    path = folder / name
    path.write_bytes(content)
    return path


def jsonl(frame):
    return "\n".join(json.dumps(row) for row in frame.to_dicts()).encode()


def parquet(frame):
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


WAYS = {
    "csv": lambda frame: frame.write_csv().encode(),
    "csv, quoted": lambda frame: frame.write_csv(quote_style="always").encode(),
    "csv, Windows": lambda frame: frame.write_csv(line_terminator="\r\n").encode(),
    "csv, byte order mark": lambda frame: b"\xef\xbb\xbf" + frame.write_csv().encode(),
    "csv, reordered": lambda frame: frame.select(reversed(frame.columns)).write_csv().encode(),
    "csv, no last newline": lambda frame: frame.write_csv().rstrip("\n").encode(),
    "csv, blank lines around": lambda frame: f"\n{frame.write_csv()}\n\r\n\n".encode(),
    "tsv": lambda frame: frame.write_csv(separator="\t").encode(),
    "parquet": parquet,
    "jsonl": jsonl,
    "jsonl, other columns": lambda frame: jsonl(frame.with_columns(turns=pl.lit([1, 2]))),
    "json array": lambda frame: json.dumps(frame.to_dicts(), indent=1).encode(),
}


# --- every format is the same --------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("table", [TABLE, INTEGERS], ids=["text ids", "integer ids"])
@pytest.mark.parametrize("way", WAYS)
def test_every_format_gives_the_same_votes(way, table, packed, tmp_path, monkeypatch):
    expected = Comparisons.from_frame(TABLE)
    content = WAYS[way](table)
    content = gzip.compress(content) if packed else content
    for name in ("votes", "votes.csv", f"votes.{way[:4].strip(',')}", "votes.gz"):
        reading = read_votes(written(tmp_path, content, name))
        assert_same(reading.votes, expected)
        assert reading.preset == "canonical"
        assert reading.notes == (WeightsScaled(unit=expected.weight_unit),)
    assert_same(Comparisons.read(tmp_path / "votes.csv"), expected)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert_same(read_votes("-").votes, expected)


@pytest.mark.parametrize("format", FORMATS)
def test_the_format_can_be_said(format, tmp_path):
    path = written(tmp_path, WAYS[format](TABLE), "votes")
    assert_same(read_votes(path, format=format).votes, Comparisons.from_frame(TABLE))


@pytest.mark.parametrize(
    "format, content, message",
    [
        ("csv", parquet(TABLE), "this is a Parquet file. Say format='parquet', or leave"),
        ("parquet", HEADER, "this is not a Parquet file. Say format='csv', or leave"),
        ("jsonl", HEADER + b"u,a,b,tie\n", "votes, row 1: this is not a JSON object"),
        ("tsv", HEADER + b"u,a,b,tie\n", "fit no layout .* found: user,left,right,winner"),
        ("xlsx", HEADER, "format 'xlsx' is not one of csv, tsv, parquet, jsonl"),
    ],
)
def test_the_wrong_format_is_refused(format, content, message, tmp_path):
    with pytest.raises(ISplitLBIError, match=message):
        read_votes(written(tmp_path, content, "votes"), format=format)


texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8
)


@settings(max_examples=60)
@given(st.lists(texts, min_size=2, max_size=12, unique=True), st.data())
def test_any_text_is_an_id_in_every_format(ids, data):
    n = data.draw(st.integers(1, 20))
    left = data.draw(st.lists(st.sampled_from(ids), min_size=n, max_size=n))
    rights = [data.draw(st.sampled_from([other for other in ids if other != one])) for one in left]
    users = data.draw(st.lists(st.sampled_from(ids), min_size=n, max_size=n))
    table = pl.DataFrame(
        {"user": users, "left": left, "right": rights, "winner": ["tie"] * n, "comment": [None] * n}
    ).with_columns(pl.col("comment").cast(pl.String))
    with pytest.MonkeyPatch.context() as patch:
        for way in ("csv", "csv, quoted", "tsv", "parquet", "jsonl", "json array"):
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WAYS[way](table))))
            found = read_votes("-")
            assert [row[:3] for row in as_tuples(found.votes)] == list(
                zip(users, left, rights, strict=True)
            )


def test_ids_are_text_as_written(tmp_path):
    path = written(tmp_path, HEADER + b"007,1,2.0,left\n7,true,null,tie\n")
    votes = read_votes(path).votes
    assert votes.users.tolist() == ["007", "7"]
    assert votes.items.tolist() == ["1", "2.0", "null", "true"]


def test_numbers_first_and_words_far_below_are_still_text(tmp_path):
    content = HEADER + b"1,2,3,tie\n" * 3000 + b"ann,2,3,tie\n"
    assert read_votes(written(tmp_path, content)).votes.users.tolist() == ["1", "ann"]


def test_a_column_that_only_later_objects_have_is_not_overlooked(tmp_path):
    rows = [{"user": "u", "left": "a", "right": "b", "winner": "tie"}, {"weight": 2}]
    rows[1] = rows[0] | rows[1]
    with pytest.raises(InvalidVotes, match="row 1: weight is missing"):
        read_votes(written(tmp_path, "\n".join(map(json.dumps, rows)).encode()))


# --- files that cannot be used -------------------------------------------------------------


def test_a_file_that_is_not_there_is_named(tmp_path):
    for read in (Comparisons.read, read_votes, read_pairs):
        with pytest.raises(InvalidVotes, match=r"no such\.csv: there is no such file"):
            read(tmp_path / "no such.csv")


# --- parts in a folder ----------------------------------------------------------------------


@pytest.mark.parametrize("way", ["csv", "parquet", "jsonl"])
def test_the_parts_of_a_folder_are_read_as_one_file_would_be(tmp_path, way):
    for place in range(len(TABLE)):
        written(tmp_path, WAYS[way](TABLE[place]), f"part-{place}.{way}")
    written(tmp_path, b"", "_SUCCESS")
    written(tmp_path, b"x", ".part-0.crc")
    whole = read_votes(written(tmp_path.parent, WAYS[way](TABLE), f"whole.{way}")).votes
    reading = read_votes(tmp_path)
    assert_same(reading.votes, whole)
    np.testing.assert_array_equal(reading.votes.group, whole.group)
    np.testing.assert_array_equal(reading.votes.groups, whole.groups)
    assert reading.notes == (WeightsScaled(unit=whole.weight_unit),)


def test_what_is_wrong_in_a_part_is_told_with_its_name(tmp_path):
    with pytest.raises(InvalidVotes, match="there are no files of votes in this folder"):
        read_votes(tmp_path)
    written(tmp_path, HEADER + b"u,a,b,tie\n", "part-1.csv")
    written(tmp_path, HEADER + b"u,a,b,tie\nu,a,a,left\n", "part-2.csv")
    with pytest.raises(InvalidVotes, match=r"^part-2\.csv, row 2: item 'a' is compared"):
        read_votes(tmp_path)
    written(tmp_path, b"user,left,right,winner,weight\nu,a,b,tie,2\n", "part-2.csv")
    with pytest.raises(
        InvalidVotes, match=r"^part-2\.csv: it has .*, weights, and part-1\.csv has"
    ):
        read_votes(tmp_path)
    (tmp_path / "more").mkdir()
    with pytest.raises(InvalidVotes, match="it holds another folder, more"):
        read_votes(tmp_path)


def test_notes_on_many_parts_are_told_once_with_their_sum(tmp_path):
    for place, n_bad in enumerate((0, 1, 2)):
        bad = b"u,a,a,left\n" * n_bad
        written(tmp_path, HEADER + b"u,a,b,tie\n" + bad, f"part-{place}.csv")
    (note,) = read_votes(tmp_path, drop_invalid=True).notes
    why = "item 'a' is compared with itself"
    assert note == Dropped("row", why, count=3, files=("part-1.csv", "part-2.csv"))
    assert str(note) == f"part-1.csv and 1 other part: 3 rows dropped: {why}."


def test_parts_without_votes_are_passed_over_with_a_note(tmp_path):
    written(tmp_path, HEADER, "part-0.csv")
    written(tmp_path, HEADER + b"u,a,a,left\n", "part-1.csv")
    with pytest.raises(InvalidVotes, match="item 'a' is compared with itself"):
        read_votes(tmp_path)
    with pytest.raises(InvalidVotes, match="there are no votes in any of its files"):
        read_votes(tmp_path, drop_invalid=True)
    written(tmp_path, HEADER + b"u,a,b,tie\n", "part-2.csv")
    reading = read_votes(tmp_path, drop_invalid=True)
    assert len(reading.votes) == 1
    assert [str(note) for note in reading.notes] == [
        "part-0.csv: There are no votes in it.",
        "part-1.csv: 1 row dropped: item 'a' is compared with itself.",
    ]
    written(tmp_path, b"", "part-3.csv")  # which may well be damage
    with pytest.raises(InvalidVotes, match=r"part-3\.csv: the file is empty"):
        read_votes(tmp_path, drop_invalid=True)


def test_a_part_is_read_or_there_is_what_to_say_of_it(tmp_path):
    file = written(tmp_path, HEADER + b"u,a,b,tie\nu,a,a,tie\n")
    part = read_part(file, {"drop_invalid": True})
    why = "item 'a' is compared with itself"
    notes = (Dropped("row", why, count=1),)
    assert isinstance(part, Reading)
    assert described(part) == Described("the layout canonical, no weights or groups", notes)
    nothing = read_part(written(tmp_path, HEADER), {})
    assert nothing == described(nothing) == Described("", (NothingThere(),))


def test_an_error_on_a_file_without_votes_travels(tmp_path):
    with pytest.raises(NoVotes) as caught:
        read_votes(written(tmp_path, HEADER + b"u,a,a,left\n"), drop_invalid=True)
    there = pickle.loads(pickle.dumps(caught.value))
    assert str(there) == str(caught.value) and there.notes == caught.value.notes


def test_a_file_whose_name_is_no_text_is_read(tmp_path):
    odd = os.fsdecode(b"part-\xff.csv")
    try:
        written(tmp_path, HEADER + b"u,a,b,tie\n", odd)
    except OSError:
        pytest.skip("this file system has no such names")
    assert len(read_votes(tmp_path / odd).votes) == len(read_votes(tmp_path).votes) == 1


def test_parts_are_found_from_any_folder(tmp_path, monkeypatch):
    written(tmp_path, HEADER + b"u,a,b,tie\n", "part-0.csv")
    monkeypatch.chdir(tmp_path.parent)
    parts = Parts.of(tmp_path.name)
    monkeypatch.chdir("/")
    assert len(parts.read().votes) == 1


def test_no_name_is_not_the_name_of_a_folder(tmp_path, monkeypatch):
    written(tmp_path, HEADER + b"u,a,b,tie\n", "part-0.csv")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidVotes, match="the name of the folder of votes is empty"):
        read_votes("")


def test_pairs_are_not_read_from_a_folder(tmp_path):
    with pytest.raises(InvalidVotes, match=r"this is a folder; expected a file"):
        read_pairs(tmp_path)


# --- what is refused ------------------------------------------------------------------------


def test_a_path_that_no_system_has_is_refused():
    with pytest.raises(InvalidVotes, match="cannot be read"):
        read_votes("votes\x00.csv")


ROW = b"u,a,b,tie\n"
GOOD = {"user": "u", "left": "a", "right": "b", "winner": "tie"}
DROP = "or drop such rows with drop_invalid=True."

BAD_FILES = {
    "empty": (b"", ["votes.csv: the file is empty."]),
    "blank lines": (b"\n\n", ["the file is empty"]),
    "only a byte order mark": (b"\xef\xbb\xbf", ["the file is empty"]),
    "header only": (HEADER, ["there are no votes"]),
    "header without newline": (HEADER.strip(), ["there are no votes"]),
    "row too long": (HEADER + ROW + b"u,a,b,tie,5\n",
        ["row 2: 5 fields where the header has 4", DROP]),
    "last row too long by nothing": (HEADER + ROW + b"u,a,b,tie,",
        ["row 2: 5 fields where the header has 4"]),
    "row too long in a file of many columns": (b"user,left,right,winner,x\nu,a,b,tie,1,2\n",
        ["row 1: 6 fields where the header has 5"]),
    "row too short": (HEADER + ROW + b"u,a,b\n", ["row 2: 3 fields where the header has 4", DROP]),
    "row too short where the last column may be empty": (
        b"user,left,right,winner,x\nu,a,b,tie,\nu,a,b,tie\n",
        ["row 2: 4 fields where the header has 5"]),
    "rows of many lengths": (HEADER + b"a\n" * 3 + ROW + b"a,b\n" * 40,
        ["rows 1, 2, 3 and 40 more: 1 field where the header has 4"]),
    "blank line inside": (HEADER + ROW + b"\n" + ROW, ["row 2: 1 field where the header has 4"]),
    "unfinished quote": (HEADER + b'u,"a,b,tie\nu,a,b,tie\n',
        ["a quotation mark is opened and never closed", "inside twice"]),
    "stray quotes": (HEADER + b'u,5" disk,b,tie\nu,6" disk,b,tie\n',
        ["not a readable CSV", "inside twice"]),
    "text after a quote": (HEADER + b'u,"a"x,b,tie\n', ["not a readable CSV", "inside twice"]),
    "bars": (HEADER.replace(b",", b"|") + b"u|a|b|tie\n",
        ["separated by '|'", "commas or tabs"]),
    "no header": (b"u,a,b,tie\nv,a,b,tie\n",
        ["fit no layout", "found: u, a, b, tie",
         "Say which is which with user=..., left=..., right=... and winner=..."]),
    "a column twice": (b"user,left,right,winner,winner\nu,a,b,tie,tie\n",
        ["its header has 'winner' more than once", "Rename"]),
    "another column twice": (b"user,left,right,winner,x,x\nu,a,b,tie,1,2\n",
        ["its header has 'x' more than once"]),
    "a header with a broken quote": (b'"user,left,right,winner\n', ["not a readable header"]),
    "two names alike": (b"User,USER,left,right,winner\nu,v,a,b,tie\n",
        ["no column 'user' for the user", "found: User, USER, left, right, winner"]),
    "Latin-1": (HEADER + ROW + "é,a,b,tie\n".encode("latin-1"),
        ["line 3: byte 0xe9 is not UTF-8", "Latin-1", "iconv -f WINDOWS-1252 -t UTF-8 votes.csv"]),
    "Latin-1 in the header": ("usér,left,right,winner\n".encode("latin-1") + ROW,
        ["line 1: byte 0xe9", "Latin-1"]),
    "UTF-16": ((HEADER + ROW).decode().encode("utf-16"),
        ["this is UTF-16 text", "iconv -f UTF-16 -t UTF-8 votes.csv"]),
    "UTF-16 without a mark": ((HEADER + ROW).decode().encode("utf-16-le"), ["this is UTF-16 text"]),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00", ["this is not text"]),
    "a workbook": (b"PK\x03\x04\x14\x00\x06\x00", ["ZIP archive or an Excel workbook"]),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00", ["compressed with zstd", "gzip"]),
    "every byte": (bytes(range(256)) * 4, ["this is not text"]),
    "bytes beyond text": (bytes(range(1, 256)) * 4, ["this is not text"]),
    "zeros": (bytes(1000), ["this is not text"]),
    "a broken archive": (gzip.compress(HEADER * 50)[:40], ["incomplete or damaged"]),
    "not really an archive": (b"\x1f\x8bnonsense", ["incomplete or damaged"]),
    "a broken Parquet file": (parquet(TABLE)[:-9], ["not a readable Parquet file"]),
    "Parquet and nothing else": (b"PAR1", ["not a readable Parquet file"]),
    "Parquet with fractions for ids": (parquet(TABLE.with_columns(user=pl.lit(1.5))),
        ["user holds values of type Float64, such as 1.5", "Convert"]),
    "Parquet with truths for ids": (parquet(TABLE.with_columns(left=pl.lit(True))),
        ["left holds values of type Boolean, such as True"]),
    "Parquet with lists": (parquet(TABLE.with_columns(winner=pl.lit([1]))),
        ["winner holds values of type List"]),
    "Parquet with no rows": (parquet(TABLE.clear()), ["there are no votes"]),
    "a JSON object left open": (jsonl(TABLE)[:-1], ["row 4: this is not a JSON object"]),
    "JSON values in place of objects": (jsonl(TABLE) + b"\n3\n", ["row 5: this is not a JSON"]),
    "JSON with NaN": (b'{"user": NaN}', ["row 1: this is not a JSON object (NaN is not JSON)"]),
    "an open JSON array": (b'[{"user": 1},', ["this is not readable JSON"]),
    "JSON without a column": (b'{"user": "u", "left": "a", "winner": "tie"}',
        ["no column 'right' for the right", "found: user, left, winner", "right=..."]),
    "JSON with null": (json.dumps(GOOD | {"left": None}).encode(), ["row 1: left is missing"]),
    "JSON in Latin-1": ('{"user": "é"}'.encode("latin-1"), ["Latin-1"]),
    "one column missing": (b"user,left,right\nu,a,b\n",
        ["no column 'winner' for the winner", "found: user, left, right", "winner=..."]),
    "unknown word": (HEADER + ROW + b"u,a,b,draw\n" * 43,
        ["votes.csv, rows 2, 3, 4 and 40 more: winner 'draw' is not one of left, right, tie. "
         f"Map it with labels={{'draw': 'tie'}}, {DROP}"]),
    "unknown words": (HEADER + b"u,a,b,both bad\nu,a,b,skip\nu,a,b,Left\n",
        ["rows 1 and 2: winner 'both bad' is not one of left, right, tie, nor is 1 other "
         "value. Map each with labels=..., such as labels={'both bad': 'tie'}"]),
    "a word that is nearly known": (HEADER + b"u,a,b,Right!\n",
        ["winner 'Right!' is not one of", "labels={'Right!': 'right'}"]),
    "winner missing": (HEADER + ROW + b"u,a,b,\n" + b'u,a,b,""\n',
        ["rows 2 and 3: winner is missing", DROP]),
    "user missing": (HEADER + ROW + b",a,b,tie\n", ["row 2: user is missing", DROP]),
    "user missing in quotes": (HEADER + ROW + b'"",a,b,tie\n', ["row 2: user is missing", DROP]),
    "right missing": (HEADER + ROW + b"u,a,,tie\n", ["row 2: right is missing", DROP]),
    "item against itself": (HEADER + ROW + b"u,b,b,tie\n", ["row 2: item 'b' is compared", DROP]),
    "negative weight": (b"user,left,right,winner,weight\nu,a,b,tie,-1\n",
        ["row 1: weight -1.0 is not a positive, finite number", DROP]),
    "no weight": (b"user,left,right,winner,weight\nu,a,b,tie,0\n", ["row 1: weight 0.0"]),
    "infinite weight": (b"user,left,right,winner,weight\nu,a,b,tie,inf\n", ["row 1: weight inf"]),
    "weight in words": (b"user,left,right,winner,weight\nu,a,b,tie,2\nu,a,b,tie,heavy\n",
        ["row 2: weight 'heavy' is not a number", DROP]),
    "the ids of items": (HEADER + b"u,a,b,a\nu,c,b,b\n",
        ["holds the ids of items, such as 'a'",
         "Read it with preset='crowd-kit', user='user', winner='winner'."]),
}  # fmt: skip


@pytest.mark.parametrize("content, fragments", BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_without_usable_votes_gives_one_clear_error(content, fragments, tmp_path):
    with pytest.raises(InvalidVotes) as caught:
        Comparisons.read(written(tmp_path, content))
    message = str(caught.value)
    for fragment in ["votes.csv", *fragments]:
        assert fragment in message
    assert "\n" not in message and message.replace("...", "").count(". ") <= 1


@settings(max_examples=300)
@given(st.binary(max_size=200), st.sampled_from([None, *FORMATS]))
def test_random_bytes_never_give_another_error(content, format):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(InvalidVotes, match=r"\.$|UTF-8$"):
            read_votes("-", format=format)


@settings(max_examples=300)
@given(
    st.sampled_from(["csv", "csv, quoted", "tsv", "jsonl", "json array", "parquet"]),
    st.lists(st.tuples(st.integers(0, 5000), st.binary(max_size=3)), min_size=1, max_size=4),
    st.booleans(),
)
def test_damaged_files_are_read_or_refused(way, damages, drop):
    content = bytearray(WAYS[way](TABLE))
    for place, inserted in damages:
        place %= len(content)
        content[place : place + len(inserted)] = inserted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bytes(content))))
        try:
            reading = read_votes("-", drop_invalid=drop)
        except InvalidVotes:
            return
    assert 0 < len(reading.votes) <= TABLE.height


# --- rows that are dropped -----------------------------------------------------------------


def test_rows_are_dropped_when_asked_and_counted_by_reason(tmp_path):
    content = (
        HEADER.strip()
        + b",weight\n"
        + b"""u,a,b,tie,1
,a,b,left,1
u,a,b,draw,1
u,,b,left,1
u,a,a,left,1
u,a,b,left
u,a,b,left,0
u,a,b,skip,1
u,a,b,left,x
u,a,b,,1
u,a,b,left,1,1
v,"a
b",b,right,1
"""
    )
    reading = read_votes(written(tmp_path, content), drop_invalid=True)
    assert as_tuples(reading.votes) == [("u", "a", "b", 0, 1, 0), ("v", "a\nb", "b", -1, 1, 0)]
    assert [str(note) for note in reading.notes] == [
        "2 rows dropped: 4 fields where the header has 5.",
        "1 row dropped: winner is missing.",
        "2 rows dropped: winner 'draw' is not one of left, right, tie, nor is 1 other value.",
        "1 row dropped: user is missing.",
        "1 row dropped: left is missing.",
        "1 row dropped: item 'a' is compared with itself.",
        "1 row dropped: weight 'x' is not a number.",
        "1 row dropped: weight 0.0 is not a positive, finite number.",
    ]


def test_a_value_is_missing_whether_it_is_null_or_empty(tmp_path):
    content = HEADER + b'u,a,b,tie\nu,,b,left\nu,"",b,left\n'
    (note,) = read_votes(written(tmp_path, content), drop_invalid=True).notes
    assert note == Dropped("row", "left is missing", count=2)


def test_where_nothing_is_left_the_reasons_are_told(tmp_path):
    with pytest.raises(InvalidVotes, match=r"no votes are left\. 2 rows dropped: winner 'draw'"):
        read_votes(written(tmp_path, HEADER + b"u,a,b,draw\n" * 2), drop_invalid=True)


GOOD_LINES = ["u,a,b,tie", 'v,"a,\n""b",c,left', "v,c,a,right"]
BAD_LINES = ["u,a,b", "u,a,b,", ",a,b,tie", "u,b,b,left", "u,a,b,x", "u,a,b,tie,", "x"]


@given(st.lists(st.sampled_from(GOOD_LINES + BAD_LINES), min_size=1, max_size=20))
def test_what_is_kept_and_what_is_dropped_is_everything(lines):
    n_good = sum(line in GOOD_LINES for line in lines)
    content = HEADER + "\n".join([*lines, ""]).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        if n_good == 0:
            with pytest.raises(InvalidVotes, match="no votes"):
                read_votes("-", drop_invalid=True)
            return
        reading = read_votes("-", drop_invalid=True)
    assert len(reading.votes) == n_good
    assert sum(note.count for note in reading.notes) == len(lines) - n_good


# --- numbers for outcomes ------------------------------------------------------------------


@pytest.mark.parametrize("way", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.Float64, pl.String])
def test_numbers_are_the_same_in_every_format(way, dtype, tmp_path):
    for said, expected in (([1, 0, -1, -1], [1, 0, -1, -1]), ([1, 0, 1, 1], None)):
        table = TABLE.with_columns(winner=pl.Series(said, dtype=pl.Int64).cast(dtype))
        path = written(tmp_path, WAYS[way](table))
        if expected is None:
            with pytest.raises(InvalidVotes, match="winner holds the numbers 0 and 1"):
                read_votes(path)
        else:
            assert read_votes(path).votes.outcome.tolist() == expected


# --- pairs to predict ----------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_pairs_are_read_from_every_format_as_text(way, tmp_path):
    expected = TABLE.select("user", "left", "right")
    for table in (TABLE, INTEGERS.drop("winner", "weight", "group")):
        path = written(tmp_path, WAYS[way](table))
        assert read_pairs(path).equals(expected)


def test_columns_of_pairs_may_have_other_names(tmp_path):
    path = written(tmp_path, b"who,a,b\nann,tea,milk\n")
    found = read_pairs(path, user="who", left="a", right="b")
    assert found.rows(named=True) == [{"user": "ann", "left": "tea", "right": "milk"}]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "the file is empty"),
        (b"user,left,right\n", "there are no pairs in it"),
        (b"user,left\nu,a\n", "no column 'right' for the right; found: user, left.* right="),
        (b"user,left,right\nu,a,b\n,a,b\n", "row 2: user is missing. Fill it in"),
        (b'user,left,right\nu,a,b\nu,"",b\n', "row 2: left is missing"),
        (b"user,left,right\nu,a,b\nu,b,b\n", "row 2: item 'b' is compared with itself"),
        (b"user,left,right\nu,a,b\nu,b\n", r"row 2: 2 fields .* in quotation marks\.$"),
    ],
)
def test_bad_pairs_are_refused_as_bad_votes_are(content, message, tmp_path):
    with pytest.raises(InvalidVotes, match=message):
        read_pairs(written(tmp_path, content))


def test_a_large_file_is_read_whole(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            "user": rng.integers(5000, size=200_000),
            "left": rng.integers(500, size=200_000),
            "right": 500 + rng.integers(500, size=200_000),
            "winner": rng.choice(["left", "right", "tie"], size=200_000),
        }
    )
    table.write_csv(tmp_path / "votes.csv")
    text = table.with_columns(pl.col("user", "left", "right").cast(pl.String))
    assert_same(Comparisons.read(tmp_path / "votes.csv"), Comparisons.from_frame(text))
