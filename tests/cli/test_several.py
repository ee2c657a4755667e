"""Several files on the command line, and votes from a span of time."""

import io
import json
import sys

import polars as pl
import pytest

from commands import ended, in_one_line, invoke, output_of, refused
from isplitlbi.storage import load_model


@pytest.fixture(scope="module")
def table(votes_file):
    votes = pl.read_csv(votes_file, infer_schema=False)
    day = (pl.int_range(pl.len()) % 28 + 1).cast(pl.String).str.zfill(2)
    return votes.with_columns(when=pl.format("2024-02-{}", day), length=pl.int_range(pl.len()))


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    """Write the votes of one file to two: in another layout, and in another format."""
    folder = tmp_path_factory.mktemp("several")
    names = {"user": "judge", "left": "model_a", "right": "model_b"}
    words = {"left": "model_a", "right": "model_b"}
    arena = table[::2].rename(names).with_columns(pl.col("winner").replace(words))
    arena.write_csv(folder / "arena.csv")
    table[1::2].write_parquet(folder / "mine.parquet")
    table.write_csv(folder / "whole.csv")
    return folder


FITTED = ("--time", "0.5", "-q")


def test_several_files_give_the_model_of_one(files, tmp_path):
    both = files / "arena.csv", files / "mine.parquet"
    for name, given in (("one", [files / "whole.csv"]), ("two", both), ("other", both[::-1])):
        output_of("fit", *given, "-o", tmp_path / name, *FITTED)
    for name in ("two", "other"):
        for file in ("consensus.csv", "users.csv"):
            expected = (tmp_path / "one" / file).read_bytes()
            assert (tmp_path / name / file).read_bytes() == expected
    assert load_model(tmp_path / "two").votes().file == "arena.csv and mine.parquet"
    output_of("report", tmp_path / "two", "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "votes of arena.csv and mine.parquet" in page


def test_every_file_is_told_of(files, monkeypatch, capsys):
    told = in_one_line(output_of("check", files / "arena.csv", files / "mine.parquet"))
    n_votes = pl.read_csv(files / "arena.csv").height
    assert f"arena.csv: {n_votes} votes; the layout is arena." in told
    assert "(arena, canonical)." in told
    piped = (files / "arena.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
    code, _, err = ended(monkeypatch, capsys, "evaluate", "-", files / "mine.parquet", "--repeats",
                         "2", "--methods", "margin-mle-bt")  # fmt: skip
    assert code == 0, err
    assert f"standard input: {n_votes} votes; the layout is arena." in in_one_line(err)


def test_options_may_stand_anywhere_among_files(files):
    one, other = files / "arena.csv", files / "mine.parquet"
    expected = json.loads(invoke("check", one, other, "--format", "json").stdout)
    assert json.loads(invoke("check", one, "--format", "json", other).stdout) == expected


def test_votes_from_a_span_of_time(files, table, tmp_path):
    span = ("--time-column", "when", "--since", "2024-02-08", "--until", "2024-02-14")
    done = invoke("fit", files / "whole.csv", *span, "-o", tmp_path / "model", "--time", "0.5")
    assert done.exit_code == 0, done.output
    inside = table.filter(pl.col("when").is_between(pl.lit("2024-02-08"), pl.lit("2024-02-14")))
    n_left = table.height - inside.height
    told = f"Left out: {n_left} votes from before 2024-02-08 or after 2024-02-14."
    assert told in in_one_line(done.stderr)
    votes = load_model(tmp_path / "model").votes()
    assert len(votes) == inside.height
    both = invoke("check", files / "arena.csv", files / "mine.parquet", *span, "--format", "json")
    assert json.loads(both.stdout)["summary"]["votes"] == inside.height


REFUSED = {
    "twice": (["whole.csv", "whole.csv"], "whole.csv is given twice. Give every file once"),
    "standard input twice": (["-", "-"], "- is given twice"),
    "no order": (["arena.csv", "mine.parquet", "--in-order"],
        "Leave out --in-order, and name a column of times with --time-column."),
    "a column in one": (["whole.csv", "plain.csv", "--time-column", "when"],
        "whole.csv has a column 'when', and plain.csv has not. All files have a time, or none: add "
        "it, or leave out --time-column."),
    "a column in none": (["whole.csv", "arena.csv", "--user", "who"],
        "no column 'who' for the user in any of whole.csv and arena.csv. Name the right one with "
        "--user."),
    "a feature in one": (["whole.csv", "plain.csv", "--feature", "length"],
        "whole.csv has columns for the feature length, and plain.csv has not. All files have a "
        "feature, or none: add it, or leave out --feature length."),
    "a file that is not there": (["whole.csv", "nowhere.csv"], "there is no such file"),
    "an empty name": (["whole.csv", ""], "the name of the file of votes is empty"),
    "since without times": (["whole.csv", "--since", "2024-02-08"],
        "--since 2024-02-08 needs the times of the votes. Name their column with --time-column."),
    "no date": (["whole.csv", "--time-column", "when", "--until", "now"],
        "--until now: the times in 'when' are dates; give a date such as 2024-01-31"),
    "exchanged": (["whole.csv", "--time-column", "when", "--since", "2025", "--until", "2024"],
        "--since 2025: the times in 'when' are dates"),
    "nothing left": (["whole.csv", "--time-column", "when", "--since", "2025-01-01"],
        "whole.csv: no votes are left."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_together_is_one_sentence(
    name, files, table, tmp_path, monkeypatch, capsys
):
    table.drop("when", "length").write_csv(files / "plain.csv")
    arguments, said = REFUSED[name]
    monkeypatch.chdir(files)
    for command, more in (("check", []), ("fit", ["-o", tmp_path / "model"])):
        told = refused(monkeypatch, capsys, command, *arguments, *more)
        assert said in told and told.count("\n") == 1
    assert not (tmp_path / "model").exists()
