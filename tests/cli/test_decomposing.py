"""The command on what deviations are made of: table, csv, json, one user, and what is refused."""

import io
import json

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from commands import in_one_line, output_of, refused, width
from crowds import crowd, gather
from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.storage import save_model

COLUMNS = ["user", "term", "item", "part", "deviation"]
CALL = ("--call", "items=models", "--call", "users=annotators")


@pytest.fixture(scope="module", params=["all", "paper"])
def model(request):
    return ISplitLBI(
        kappa=5.0, nu=0.3, terms=request.param, times=[0.1, 0.4], time=0.1, with_tests=False
    ).fit(gather(crowd(21)))


@pytest.fixture(scope="module")
def stored(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    save_model(model, folder)
    return folder


def test_the_table_has_who_left_first_and_fits_80_columns(stored, model):
    shown = output_of("decompose", stored)
    assert width(shown) <= 80
    lines = shown.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("user "))
    users = [line[: lines[begin].index("left as")].strip() for line in lines[begin + 1 :]]
    users = users[: users.index("")]
    assert 0 < len(model.left_consensus_) < len(model.users_)
    assert users[: len(model.left_consensus_)] == model.left_consensus_
    assert sorted(users) == sorted(model.users_)
    n_left = len(model.left_consensus_)
    told = f"{n_left} of {len(model.users_)} users have left the consensus"
    assert in_one_line(shown).startswith(told)


@pytest.mark.parametrize("level", [None, 0.5])
def test_csv_and_json_have_every_number(stored, model, level):
    options = () if level is None else ("--noise-level", level)
    expected = model.decompose(2.0 if level is None else level).to_frame("polars")
    table = pl.read_csv(io.StringIO(output_of("decompose", stored, *options, "--format", "csv")))
    assert table.columns == COLUMNS
    assert_frame_equal(table, expected, check_dtypes=False)
    rows = json.loads(output_of("decompose", stored, *options, "--format", "json"))
    assert rows == expected.to_dicts()
    assert set(expected["part"]) == {"strong", "personal", "noise"}
    assert len(expected) == np.count_nonzero(model.parameters_.deviation)


def test_one_user_has_all_numbers_the_largest_first(stored, model):
    user = model.left_consensus_[0]
    expected = model.decompose().to_frame("polars").filter(pl.col("user") == user)
    table = pl.read_csv(
        io.StringIO(output_of("decompose", stored, "--user", user, "--format", "csv"))
    )
    assert_frame_equal(table, expected, check_dtypes=False)
    assert set(table["part"]) == {"strong"}
    shown = output_of("decompose", stored, "--user", user)
    assert width(shown) <= 80
    assert in_one_line(shown).startswith(f"{user} left as number 1: size ")
    numbers = [float(line.split()[-1]) for line in shown.splitlines() if " strong " in line[10:]]
    assert len(numbers) >= len(expected)
    shown_numbers = numbers[-len(expected) :]
    assert np.all(np.diff(np.abs(shown_numbers)) <= 0)


def test_it_speaks_in_the_words_of_the_study(stored):
    shown = output_of("decompose", stored, *CALL)
    assert "annotators have left the consensus" in in_one_line(shown)
    assert "all of an annotator who has left" in shown
    assert "user" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--user", "nobody"], "user 'nobody' is not among the "),
        (["--noise-level", "-1"], "the noise level must be 0 or more, but it is -1."),
        (["--noise-level", "nan"], "the noise level must be 0 or more, but it is nan."),
    ],
)
def test_what_cannot_be_told_is_refused(stored, monkeypatch, capsys, arguments, said):
    told = refused(monkeypatch, capsys, "decompose", stored, *arguments)
    assert said in told
    assert told.count("\n") == 1


def test_a_fit_without_a_path_and_a_crowd_are_refused(tmp_path, monkeypatch, capsys):
    votes = gather(crowd(21))
    save_model(MarginMLE().fit(votes), tmp_path / "one")
    told = refused(monkeypatch, capsys, "decompose", tmp_path / "one")
    assert told.startswith("isplitlbi: a model of MarginMLE has no path")
    assert told.count("\n") == 1
    items = votes.items
    anonymous = Comparisons.from_arrays(None, items[votes.left], items[votes.right], votes.outcome)
    save_model(ISplitLBI().fit(anonymous), tmp_path / "crowd")
    told = refused(monkeypatch, capsys, "decompose", tmp_path / "crowd")
    assert told == (
        "isplitlbi: the votes of this model have no users, so there is nobody whose "
        "deviations could be split.\n"
    )


def test_a_folder_that_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    told = refused(monkeypatch, capsys, "decompose", tmp_path / "nothing")
    assert told == f"isplitlbi: {tmp_path / 'nothing'}: there is no such folder.\n"
