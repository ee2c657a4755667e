"""Results of any length: batches give what all rows at once give, and a file is whole or absent."""

import errno
import json
import subprocess
import sys
import textwrap

import polars as pl
import pytest

from isplitlbi.errors import InvalidSetting
from isplitlbi.output.rows import ENDINGS, rows_to_file, rows_to_output
from isplitlbi.output.terminal import Format, emit

TABLE = pl.DataFrame(
    {"user": ["a", 'b "c"', "ü\n", "d"], "n": [1, 2, 3, 4], "p": [0.1, 1e-9, 1.0, 2 / 3]}
)
READ = {
    ".csv": pl.read_csv,
    ".jsonl": pl.read_ndjson,
    ".ndjson": pl.read_ndjson,
    ".parquet": pl.read_parquet,
}


@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize("format", Format)
def test_batches_print_what_all_rows_print_at_once(format, size, capsys):
    emit(TABLE, format)
    expected = capsys.readouterr().out
    with rows_to_output(format) as write:
        for batch in TABLE.iter_slices(size):
            write(batch)
    assert capsys.readouterr().out == expected
    if format is Format.json:
        assert json.loads(expected) == TABLE.to_dicts()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_has_all_rows_in_their_order_and_nothing_is_left_beside_it(ending, tmp_path):
    file = tmp_path / f"out{ending.upper() if ending == '.csv' else ending}"
    with rows_to_file(file) as write:
        for batch in TABLE.iter_slices(3):
            write(batch)
        assert not file.exists()
    assert READ[ending](file).equals(TABLE)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ValueError, OSError])
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_interrupted_file_leaves_what_was_there_before(ending, interruption, tmp_path):
    file = tmp_path / f"out{ending}"
    for before in (None, "something"):
        if before is not None:
            file.write_text(before)
        with pytest.raises(interruption), rows_to_file(file) as write:
            write(TABLE)
            raise interruption
        assert [each.read_text() for each in tmp_path.iterdir()] == [before] * file.exists()


def test_an_ending_that_says_nothing_is_refused_before_anything_is_written(tmp_path):
    for name, ending in (("out.xlsx", ".xlsx"), ("out", "none"), ("out.csv.gz", ".gz")):
        with pytest.raises(InvalidSetting, match=f"{ending} is not one of .csv, .jsonl"):
            rows_to_file(tmp_path / name).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_parquet_asks_for_a_name_that_is_text_before_anything_is_written(tmp_path):
    with pytest.raises(InvalidSetting, match="only where the names of file and folders are text"):
        rows_to_file(tmp_path / "out-\udcff.parquet").__enter__()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit to the size of files here")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_disk_that_is_full_is_an_error_of_the_system(ending, tmp_path):
    limited = textwrap.dedent(f"""
        import resource, signal
        from pathlib import Path
        import polars as pl
        from isplitlbi.output.rows import rows_to_file
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        try:
            with rows_to_file(Path({str(tmp_path)!r}, "out{ending}")) as write:
                write(pl.DataFrame({{"n": range(1000)}}))
        except OSError as error:
            print(error.errno)
    """)
    done = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() in map(str, (errno.EFBIG, errno.EIO)), done.stderr
    assert not list(tmp_path.iterdir())
