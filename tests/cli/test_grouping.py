"""The command groups: what it prints in each format, and what is refused."""

import io
import json

import polars as pl
import pytest

from commands import in_one_line, output_of, refused, width
from in_camps import model_of, people
from isplitlbi.storage import save_model


@pytest.fixture(scope="module")
def model():
    return model_of(people(2, seed=4, n_users=30)[0])


@pytest.fixture(scope="module")
def found(model):
    return model.groups(2)


@pytest.fixture(scope="module")
def stored(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    save_model(model, folder)
    return folder


def test_groups_are_told_in_80_columns(stored, found):
    printed = output_of("groups", stored, "--most", 2)
    assert width(printed) <= 80
    for sentence in found.sentences():
        assert sentence in in_one_line(printed)
    for group in (1, 2):
        assert f"group {group}" in printed


def test_csv_and_json_have_every_user(stored, found):
    table = pl.read_csv(io.StringIO(output_of("groups", stored, "--most", 2, "--format", "csv")))
    assert table["group"].fill_null(0).to_list() == found.group.tolist()
    told = json.loads(output_of("groups", stored, "--most", 2, "--format", "json"))
    assert [each["users"] for each in told["groups"]] == [each.users for each in found.groups]
    assert [row["group"] or 0 for row in told["users"]] == found.group.tolist()


def test_a_number_of_groups_out_of_range_is_refused(stored, monkeypatch, capsys):
    assert "from 1 to 8" in refused(monkeypatch, capsys, "groups", stored, "--most", 9)
