"""Times and durations of votes on the command line."""

import json

import polars as pl
import pytest

from commands import in_one_line, invoke, refused
from isplitlbi.storage import load_model


@pytest.fixture(scope="module")
def table(votes_file):
    votes = pl.read_csv(votes_file, infer_schema=False)
    row = pl.int_range(pl.len())
    start = pl.datetime(2024, 5, 1)
    return votes.with_columns(when=start + pl.duration(minutes=-row), took=(row % 7) / 2, time=row)


@pytest.fixture(scope="module")
def file(table, votes_file):
    path = votes_file.with_name("with times.csv")
    table.write_csv(path)
    return path


COLUMNS = ("--time-column", "when", "--duration-column", "took")


def notes_of(*arguments):
    return json.loads(invoke("check", *arguments, "--format", "json").stdout)["notes"]


def test_check_says_what_was_understood(file):
    assert notes_of(file) == []  # nothing is used that is not named
    assert notes_of(file, *COLUMNS) == [
        "The times of the votes are the dates in 'when'.",
        "The durations of the votes are the seconds in 'took'.",
    ]
    assert notes_of(file, "--time-column", "time") == [
        "The times of the votes are the numbers in 'time'."
    ]
    (note,) = notes_of(file, "--in-order")
    assert note == "The rows are taken to be in the order in which every user voted."
    assert note in in_one_line(invoke("check", file, "--in-order").stdout)


def test_a_model_keeps_times_and_durations_and_is_the_same_with_them(file, table, tmp_path):
    models = {}
    for name, arguments in (("plain", ()), ("columns", COLUMNS), ("rows", ("--in-order",))):
        done = invoke("fit", file, *arguments, "-o", tmp_path / name, "--time", "0.5")
        assert done.exit_code == 0, done.output
        models[name] = load_model(tmp_path / name)
    votes = models["columns"].votes()
    assert votes.duration.tolist() == table["took"].to_list()
    assert votes.time.tolist() == (table["when"].dt.epoch("us") / 1e6).to_list()
    assert models["rows"].votes().time.tolist() == list(range(1, table.height + 1))
    assert models["plain"].votes().time is None
    consensus = {(tmp_path / name / "consensus.csv").read_text() for name in models}
    assert len(consensus) == 1


def test_evaluate_takes_times(file):
    done = invoke("evaluate", file, *COLUMNS, "--repeats", "2", "--methods", "margin-mle-bt")
    assert done.exit_code == 0, done.output
    assert "The times of the votes are the dates in 'when'." in in_one_line(done.stderr)


REFUSED = {
    "no such column": (["--time-column", "date"], "Name the right one with --time-column, or"),
    "no such durations": (["--duration-column", "d"], "Name the right one with --duration-column"),
    "both orders": (["--time-column", "when", "--in-order"],
        "Use either --time-column when or --in-order."),
    "empty name": (["--time-column", ""], "no column '' for the time"),
    "a word": (["--time-column", "word"], "more: word 'late' is not a number, or a date such as"),
    "missing": (["--time-column", "gap"], "row 2: gap is missing."),
    "no duration": (["--duration-column", "gap"], "row 2: gap is missing."),
    "negative": (["--duration-column", "less"], "less -1.0 is less than 0 seconds."),
    "infinite": (["--duration-column", "endless"], "endless 'inf' is not a finite number."),
    "a date": (["--duration-column", "when"], "is not a number of seconds."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("command", ["check", "fit", "evaluate"])
def test_bad_times_are_one_sentence(command, name, table, tmp_path, monkeypatch, capsys):
    arguments, sentence = REFUSED[name]
    path = tmp_path / "votes.csv"
    gap = pl.Series(["1.5", None] + ["2"] * (table.height - 2))
    table.with_columns(
        word=pl.lit("late"), gap=gap, less=pl.lit(-1), endless=pl.lit("inf")
    ).write_csv(path)  # fmt: skip
    more = ["-o", tmp_path / "model"] if command == "fit" else []
    told = refused(monkeypatch, capsys, command, path, *arguments, *more)
    assert sentence.removesuffix(".") in told and told.count("\n") == 1
    assert not (tmp_path / "model").exists()


def test_the_rows_of_a_folder_have_no_order(file, tmp_path, monkeypatch, capsys):
    (tmp_path / "votes").mkdir()
    (tmp_path / "votes" / "part-1.csv").write_bytes(file.read_bytes())
    for command in ("check", "evaluate"):
        told = refused(monkeypatch, capsys, command, tmp_path / "votes", "--in-order")
        assert "Leave out --in-order, and name a column of times with --time-column." in told
        assert told.count("\n") == 1
