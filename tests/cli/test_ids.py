"""Ids of votes on the command line."""

import json

import polars as pl
import pytest

from commands import in_one_line, output_of, refused
from isplitlbi.storage import load_model


@pytest.fixture(scope="module")
def table(votes_file):
    votes = pl.read_csv(votes_file, infer_schema=False)
    return votes.with_columns(vote=pl.format("v{}", pl.int_range(pl.len())))


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """Fit all votes but the last ten; two of those come again, and one of these says otherwise."""
    folder = tmp_path_factory.mktemp("ids")
    old, new = table[:-10], table[-10:]
    old.write_csv(folder / "old.csv")
    said = pl.col("winner").replace_strict({"left": "tie", "tie": "right", "right": "left"})
    pl.concat([new, old[:1], old[1:2].with_columns(said)]).write_csv(folder / "new.csv")
    for name, options in (("model", ["--id", "vote"]), ("plain", [])):
        output_of("fit", folder / "old.csv", "-o", folder / name, "--time", "0.5", "-q", *options)
    return folder


def test_ids_do_not_change_a_fit(folder):
    for file in ("consensus.csv", "users.csv", "model.json"):
        assert (folder / "model" / file).read_bytes() == (folder / "plain" / file).read_bytes()
    assert load_model(folder / "model").votes().id[0] == "v0"


@pytest.mark.parametrize("drop", [False, True])
def test_an_update_tells_votes_that_came_twice_by_their_ids(folder, table, tmp_path, caplog, drop):
    arguments = ["update", folder / "model", folder / "new.csv", "--id", "vote"]
    arguments += ["-o", tmp_path / "next", *(["--drop-repeated"] if drop else [])]
    out, said = output_of(*arguments), caplog.text
    assert "1 of 12 new votes is the same as votes that the model has already" in said
    assert "1 new vote has the id of an old vote and says something else" in said
    assert f"New: {10 if drop else 12} votes" in out
    votes = load_model(tmp_path / "next").votes()
    assert len(votes) == len(table) + (0 if drop else 2)
    assert votes.id.n_unique() == len(table)


@pytest.mark.parametrize("options", [[], ["--id", "vote"]])
def test_nothing_new_is_refused_with_ids_and_without(
    folder, tmp_path, monkeypatch, capsys, caplog, options
):
    said = refused(monkeypatch, capsys, "update", folder / "model", folder / "old.csv",
                   "--drop-repeated", "-o", tmp_path / "next", *options)  # fmt: skip
    assert "nothing new" in in_one_line(said)
    assert ("The old votes have ids" in caplog.text) is not bool(options)
    assert not (tmp_path / "next").exists()


def test_check_warns_of_votes_with_the_same_id(table, tmp_path):
    pl.concat([table, table[4:5]]).write_csv(tmp_path / "twice.csv")
    found = json.loads(
        output_of("check", tmp_path / "twice.csv", "--id", "vote", "--format", "json")
    )
    row = len(table) + 1
    assert f"1 vote has the id of a vote before it, in row {row:,}. It is kept." in found["notes"]
    (warning,) = [each for each in found["findings"] if each["code"] == "vote-ids"]
    assert warning["severity"] == "warning"
    assert warning["details"] == {"votes": 1, "ids": ["v4"]}
