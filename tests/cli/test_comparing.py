"""compare, and report --since: on two models of a study."""

import json
import shutil

import polars as pl
import pytest

from commands import invoke, output_of, refused, width
from isplitlbi import compare, load_model


@pytest.fixture(scope="module")
def later_folder(votes_file):
    """Fit the same votes and some by two new users."""
    table = pl.read_csv(votes_file)
    some = table.head(60).with_columns(user=pl.lit("new-") + pl.col("winner"))
    file = votes_file.with_name("later.csv")
    pl.concat([table, some]).write_csv(file)
    folder = votes_file.with_name("later")
    assert invoke("fit", file, "-o", folder).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def held_out(votes_file):
    """Votes that neither model has seen: the others would never have the same ids."""
    file = votes_file.with_name("held-out.csv")
    table = pl.read_csv(votes_file).head(80).with_columns(user=pl.lit("x-") + pl.col("user"))
    table.rename({"user": "who"}).write_csv(file)
    return file


def test_the_table_fits_80_columns_and_says_everything_the_library_says(model_folder, later_folder):
    shown = output_of("compare", model_folder, later_folder)
    assert all(width(line) <= 80 for line in shown.splitlines())
    told = " ".join(shown.split())
    found = compare(load_model(model_folder), load_model(later_folder))
    for sentence in found.sentences():
        assert sentence in told
    for item in found.items:
        assert item in told
    assert "60 votes and 3 users are new" in told


def test_csv_has_a_row_for_every_item(model_folder, later_folder):
    text = output_of("compare", model_folder, later_folder, "--format", "csv")
    table = pl.read_csv(text.encode())
    expected = compare(load_model(model_folder), load_model(later_folder)).to_frame("polars")
    assert table.columns == expected.columns
    assert table["item"].to_list() == expected["item"].to_list()


def test_json_has_everything_with_the_votes_to_predict(model_folder, later_folder, held_out):
    arguments = ("compare", model_folder, later_folder, "--votes", held_out, "--user", "who")
    told = json.loads(output_of(*arguments, "--format", "json"))
    assert told["held_out"]["n_votes"] == 80
    assert told["held_out"]["n_trained_after"] == 0
    assert told["added"]["votes_added"] == 60
    assert told["sentences"]
    table = " ".join(output_of(*arguments).split())
    assert "On the votes to predict" in table
    assert "accuracy" in table


def test_things_are_called_by_the_words_of_the_study(model_folder, later_folder):
    said = output_of("compare", model_folder, later_folder, "--call", "items=models",
                     "--call", "users=annotators")  # fmt: skip
    assert "3 annotators are new" in said
    assert "item " not in said.replace("item-", "")


def test_a_model_that_was_copied_has_not_changed(model_folder, tmp_path):
    shutil.copytree(model_folder, tmp_path / "copy")
    said = output_of("compare", model_folder, tmp_path / "copy")
    assert said.startswith("Nothing changed: the votes and the scores of both fits are the same.")


def test_a_model_is_not_compared_with_itself(model_folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "link").symlink_to(model_folder)
    for other in (model_folder, tmp_path / "link"):
        said = refused(monkeypatch, capsys, "compare", model_folder, other)
        assert "the same folder, so nothing can have changed" in said


def test_how_votes_are_read_is_not_asked_without_votes(
    model_folder, later_folder, monkeypatch, capsys
):
    said = refused(monkeypatch, capsys, "compare", model_folder, later_folder, "--winner", "w")
    assert "--winner says how votes are read; give --votes, too." in said


def test_votes_that_were_fitted_are_remarked(model_folder, later_folder, votes_file):
    asked = ("compare", model_folder, later_folder, "--votes", votes_file, "--format", "csv")
    done = invoke(*asked)
    assert done.exit_code == 0, done.output
    assert "a fit predicts its own votes too well" in done.stderr
    quiet = invoke(*asked, "--quiet")
    assert quiet.stderr == ""
    assert quiet.stdout == done.stdout


def test_a_report_says_what_changed_since_an_earlier_model(
    model_folder, later_folder, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("plotly", reason="the report needs plotly (pip install .[report])")
    file = tmp_path / "report.html"
    output_of("report", later_folder, "--since", model_folder, "-o", file, "--quiet")
    page = file.read_text(encoding="utf-8")
    assert 'id="since"' in page
    assert "60 votes and 3 users are new" in page
    other = ("--since", later_folder, "-o", tmp_path / "other.html")
    refused(monkeypatch, capsys, "report", later_folder, *other)
    assert not (tmp_path / "other.html").exists()
