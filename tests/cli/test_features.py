"""Features of votes on the command line."""

import json

import numpy as np
import polars as pl
import pytest

from commands import in_one_line, invoke, output_of, refused
from isplitlbi.storage import load_model


@pytest.fixture(scope="module")
def table(votes_file):
    votes = pl.read_csv(votes_file, infer_schema=False)
    rng = np.random.default_rng(0)
    length = rng.integers(1, 100, size=(2, votes.height))
    return votes.with_columns(
        length_left=pl.Series(length[0]), length_right=pl.Series(length[1]),
        turns=pl.Series(rng.normal(size=votes.height)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def file(table, votes_file):
    path = votes_file.with_name("with features.csv")
    table.write_csv(path)
    return path


FEATURES = ("--feature", "length", "--feature", "turns")


def test_check_says_what_was_understood(file, table):
    difference = table["length_left"] - table["length_right"]
    unit = f"{np.sqrt((difference**2).mean()):.4g}"
    notes = json.loads(invoke("check", file, *FEATURES, "--format", "json").stdout)["notes"]
    assert notes[0] == f"Feature length: from length_left and length_right; one unit is {unit}."
    assert notes[1].startswith("Feature turns: from turns, left minus right; one unit is ")
    shown = in_one_line(invoke("check", file, *FEATURES).stdout)
    assert notes[0] in shown and notes[1] in shown
    assert "Feature" not in invoke("check", file).stdout


def test_fit_and_predict_know_of_features(file, table, tmp_path):
    done = invoke("fit", file, *FEATURES, "-o", tmp_path / "model", "--time", "0.5")
    assert done.exit_code == 0 and "Feature length: from" in in_one_line(done.stderr)
    model = load_model(tmp_path / "model")
    assert model.votes().features.names == ("length", "turns")
    pairs = tmp_path / "pairs.csv"
    table.drop("winner").write_csv(pairs)
    assert output_of("predict", tmp_path / "model", pairs).count("\n") == table.height + 1
    table.drop("winner", "length_left", "length_right", "turns").write_csv(pairs)
    assert output_of("predict", tmp_path / "model", pairs).count("\n") == table.height + 1


def test_bad_features_of_pairs_are_refused(file, table, tmp_path, monkeypatch, capsys):
    invoke("fit", file, *FEATURES, "-o", tmp_path / "model", "--time", "0.5")
    pairs = tmp_path / "pairs.csv"
    for change, sentence in (
        ({"turns": pl.Series(["1"] * (table.height - 1) + ["x"])}, "turns 'x' is not a number."),
        ({"length_left": pl.lit(None)}, "length_left is missing."),
    ):
        table.with_columns(**change).write_csv(pairs)
        assert sentence in refused(monkeypatch, capsys, "predict", tmp_path / "model", pairs)
    table.drop("length_right").write_csv(pairs)
    told = refused(monkeypatch, capsys, "predict", tmp_path / "model", pairs)
    assert "the feature length has a column 'length_left' but no column 'length_right'" in told


REFUSED = {
    "no such columns": (["--feature", "width"], "leave out --feature width."),
    "twice": (["--feature", "length", "--feature", "length"], "length is given more than once."),
    "a role": (["--feature", "winner"], "a feature cannot be called winner"),
    "empty": (["--feature", ""], "'' is not a name of a feature"),
    "no number": (["--feature", "word"], "more: word 'long' is not a number."),
    "missing": (["--feature", "gap"], "row 2: gap is missing."),
    "zero": (["--feature", "zero"], "0 in every vote, so nothing can be learnt about it."),
    "one side": (["--feature", "half"], "has a column 'half_left' but no column 'half_right'."),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("command", ["check", "fit", "evaluate"])
def test_bad_features_are_one_sentence(command, name, table, tmp_path, monkeypatch, capsys):
    arguments, sentence = REFUSED[name]
    path = tmp_path / "votes.csv"
    gap = pl.Series(["1.5", None] + ["2"] * (table.height - 2))
    table.with_columns(
        word=pl.lit("long"), gap=gap, zero=pl.lit(0), half_left=pl.lit(1)
    ).write_csv(path)  # fmt: skip
    more = ["-o", tmp_path / "model"] if command == "fit" else []
    told = refused(monkeypatch, capsys, command, path, *arguments, *more)
    assert sentence in told and told.count("\n") == 1
    assert not (tmp_path / "model").exists()
