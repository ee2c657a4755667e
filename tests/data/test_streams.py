"""Files larger than memory: batches have the rows of the file, and the numbers of these rows."""

import gzip
import io
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.data import streams
from isplitlbi.data.formats import Dropping, RawFile, read_table
from isplitlbi.data.streams import stream_tables
from isplitlbi.errors import InvalidRows, InvalidVotes

KNOWN = frozenset({"user", "left", "right"})
TABLE = pl.DataFrame(
    {
        "user": [f"u{k}" for k in range(40)],
        "left": ['a "quoted"\nline' if k % 3 == 0 else "plain, and more" for k in range(40)],
        "right": [f"item {k % 7}" for k in range(40)],
    }
)
TEXTS = {
    "csv": lambda table: table.write_csv().encode(),
    "crlf": lambda table: table.write_csv(line_terminator="\r\n").encode(),
    "tsv": lambda table: table.write_csv(separator="\t").encode(),
    "marked": lambda table: b"\xef\xbb\xbf\n" + table.write_csv().encode() + b"\n\n\n",
    "jsonl": lambda table: table.write_ndjson().encode(),
}


def dropping(allowed=False):
    return Dropping(allowed, [], "row")


def batches_of(path, block, known=KNOWN, drop=None):
    return list(stream_tables(path, known, drop or dropping(), block=block))


def frame_of(batches):
    return pl.concat([pl.DataFrame([b.table.column(c) for c in TABLE.columns]) for b in batches])


def numbered(batches):
    """Say whether every batch begins after the rows of those before."""
    before = 0
    for batch in batches:
        if batch.first_row != before + 1 or not batch.table.height:
            return False
        before += batch.table.height
    return True


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("way", TEXTS)
@pytest.mark.parametrize("block", [1, 17, 200, 2**20])
def test_batches_have_all_rows_of_a_text_in_their_order(way, zipped, block, tmp_path):
    content = TEXTS[way](TABLE)
    path = tmp_path / "pairs.txt"
    path.write_bytes(gzip.compress(content) if zipped else content)
    found = batches_of(path, block)
    assert frame_of(found).equals(TABLE)
    assert numbered(found)
    assert len(found) > 1 or block > 1000
    assert 0.99 < found[-1].share <= 1.0


@pytest.mark.parametrize("way", ["a file", "gzipped", "through standard input"])
def test_batches_of_parquet_are_slices_of_it(way, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "ROWS", 7)
    path = tmp_path / "pairs.parquet"
    TABLE.write_parquet(path)
    if way == "gzipped":
        path.write_bytes(gzip.compress(path.read_bytes()))
    elif way == "through standard input":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        path = "-"
    found = batches_of(path, 100)
    assert frame_of(found).equals(TABLE)
    assert numbered(found)
    assert [batch.table.height for batch in found] == [7, 7, 7, 7, 7, 5]


cells = st.text(st.sampled_from('a,"\n\r;\t '), max_size=4)


@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=12), st.integers(1, 40))
def test_wherever_a_text_is_cut_it_is_the_same_as_read_whole(rows, block):
    table = pl.DataFrame(rows, schema=TABLE.columns, orient="row")
    content = table.write_csv(quote_style="always").encode()
    whole = read_table(RawFile("x", content), None, KNOWN, dropping())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        found = batches_of("-", block)
    expected = pl.DataFrame([whole.column(name) for name in TABLE.columns])
    assert frame_of(found).equals(expected)
    assert numbered(found)


@pytest.mark.parametrize("block", [1, 30, 2**20])
@pytest.mark.parametrize("row", [1, 17, 40])
def test_a_row_that_cannot_be_read_is_named_by_its_number_in_the_file(row, block, tmp_path):
    lines = TABLE.with_columns(left=pl.lit("x")).write_csv().splitlines()
    path = tmp_path / "pairs.csv"
    lines[row] += ",more"
    path.write_text("\n".join(lines))
    with pytest.raises(InvalidRows, match=rf"^pairs.csv, row {row}: 4 fields where"):
        batches_of(path, block)
    lines[row] = ""
    path.write_text("\n".join([*lines, "a,b,c"]))
    with pytest.raises(InvalidRows, match=rf"^pairs.csv, row {row}: 1 field where"):
        batches_of(path, block)
    bad = [b'{"user": "u", "left": "a", "right": "b"}'] * 40
    bad[row - 1] = b"cake"
    path.write_bytes(b"\n".join(bad))
    with pytest.raises(InvalidVotes, match=rf"^pairs.csv, row {row}: this is not a JSON object"):
        list(stream_tables(path, KNOWN, dropping(), format="jsonl", block=block))


@pytest.mark.parametrize("block", [1, 30, 2**20])
def test_rows_that_are_dropped_count_as_rows(block, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("user;left;right\n" + "u;a;b\nu;a\n" * 10 + "v;a;b\n")
    drop = dropping(allowed=True)
    found = batches_of(path, block, drop=drop)
    assert frame_of(found)["user"].to_list() == ["u"] * 10 + ["v"]
    assert sum(note.count for note in drop.notes) == 10
    assert [str(note) for note in drop.notes].count("The fields are separated by ';'.") == 1
    if block == 1:
        assert found[-1].first_row == 21


def test_a_byte_that_is_no_text_is_named_by_its_line(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(b"user,left,right\n" + b"u,a,b\n" * 50 + b"u,\xe4,b\n")
    for block in (1, 40, 2**20):
        with pytest.raises(InvalidVotes, match="line 52: byte 0xe4 is not UTF-8"):
            batches_of(path, block)


def test_a_compressed_file_that_ends_too_early_is_refused_where_it_ends(tmp_path):
    path = tmp_path / "pairs.csv.gz"
    path.write_bytes(gzip.compress(TEXTS["csv"](TABLE))[:-20])
    with pytest.raises(InvalidVotes, match="incomplete or damaged"):
        batches_of(path, 10)


def test_a_quotation_mark_that_is_never_closed_does_not_take_all_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "LONGEST", 2**20)
    path = tmp_path / "pairs.csv"
    path.write_text('user,left,right\nu,"a,b\n' + "u,a,b\n" * 400_000)
    with pytest.raises(InvalidVotes, match="a row is longer than 1 MB; perhaps a quotation mark"):
        batches_of(path, 2**18)


def test_a_file_without_rows_is_one_empty_batch(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("user,left,right\n\n\n")
    for block in (1, 2**20):
        (only,) = batches_of(path, block)
        assert (only.table.height, only.table.columns) == (0, TABLE.columns)
    path.write_text("\n" * 100)
    with pytest.raises(InvalidVotes, match="the file is empty"):
        batches_of(path, 8)


def test_columns_of_json_are_found_again_as_they_were_spelled(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(
        '{"User": "u", "left": "a", "right": "b"}\n{"left": "a", "User": null, "right": "b"}\n'
        '{"left": "a", "right": "b", "User": "v"}\n'
    )
    found = batches_of(path, 1)
    assert [batch.table.column("User").to_list() for batch in found] == [["u"], [None], ["v"]]


def test_an_array_of_json_is_one_batch(tmp_path):
    path = tmp_path / "pairs.json"
    TABLE.write_json(path)
    assert frame_of(batches_of(path, 10)).equals(TABLE)
