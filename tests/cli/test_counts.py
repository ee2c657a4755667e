"""Votes as rows, as rows with a count, and as counts: the commands say the same of all three."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from commands import in_one_line, invoke, output_of, refused
from isplitlbi.data.summary import Summary
from isplitlbi.storage import load_model

FORMS = ("rows", "count", "counts")
PAIR = ["user", "left", "right"]


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """Let people vote on a few pairs again and again, one of them upside down, one at random."""
    folder, rng = tmp_path_factory.mktemp("forms"), np.random.default_rng(1)
    scores, n_votes, rows = np.linspace(-2.0, 2.0, 4), 60, []
    for number in range(24):
        own = {0: -scores, 1: 0.0 * scores}.get(number, scores)
        left = rng.integers(4, size=n_votes)
        right = (left + rng.integers(1, 4, size=n_votes)) % 4
        perceived = own[left] - own[right] + rng.logistic(size=n_votes)
        said = np.where(perceived > 0.8, "left", np.where(perceived <= -0.8, "right", "tie"))
        rows += [
            (f"u{number:02d}", f"i{a}", f"i{b}", str(w))
            for a, b, w in zip(left, right, said, strict=True)
        ]
    frame = pl.DataFrame(rows, schema=[*PAIR, "winner"], orient="row")
    frame.write_csv(folder / "rows.csv")
    counted = frame.group_by(frame.columns).agg(count=pl.len())
    counted.write_csv(folder / "count.csv")
    table = frame.select(PAIR).unique()
    for word, name in (("left", "win1"), ("right", "win2"), ("tie", "tied")):
        part = counted.filter(winner=word).drop("winner").rename({"count": name})
        table = table.join(part, on=PAIR, how="left")
    table = table.rename({"left": "item1", "right": "item2"}).fill_null(0)
    table.write_csv(folder / "counts.csv")
    assert table.height < counted.height < frame.height
    for form in FORMS:
        done = invoke("fit", folder / f"{form}.csv", "-o", folder / form, "--folds", "2")
        assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize("form", FORMS[1:])
def test_the_model_and_all_that_is_found_of_users_is_the_same(forms, form):
    expected, found = load_model(forms / "rows"), load_model(forms / form)
    assert_array_equal(found.consensus_, expected.consensus_)
    assert_array_equal(found.path_.deviation, expected.path_.deviation)
    assert (found.time_, found.nu_) == (expected.time_, expected.nu_)
    one, other = expected.abnormality_, found.abnormality_
    assert "u00" in expected.unreliable_users_
    for name in ("list", "kind", "explanation"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("p_value", "q_value", "p_unreliable", "q_unreliable", "effect", "effect_low"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert found.leaderboard().to_frame().equals(expected.leaderboard().to_frame())
    assert Summary.of(found.votes()).fingerprint == Summary.of(expected.votes()).fingerprint


@pytest.mark.parametrize("form", FORMS[1:])
def test_what_is_written_of_it_is_the_same(forms, form, tmp_path):
    for name in ("consensus.csv", "users.csv"):
        assert (forms / form / name).read_bytes() == (forms / "rows" / name).read_bytes()
    pages = {}
    for each in ("rows", form):
        output_of("report", forms / each, "-o", tmp_path / f"{each}.html")
        pages[each] = (tmp_path / f"{each}.html").read_bytes()
    assert b"votes of rows.csv" in pages["rows"]
    renamed = pages[form].replace(f"{form}.csv".encode(), b"rows.csv")
    assert renamed == pages["rows"]


@pytest.mark.parametrize("form", FORMS[1:])
def test_check_finds_the_same(forms, form):
    checked = {
        each: json.loads(invoke("check", forms / f"{each}.csv", "--format", "json").stdout)
        for each in ("rows", form)
    }
    (note,) = checked[form].pop("notes")
    assert checked["rows"].pop("notes") == []
    assert note.endswith("the rows stand for 1,440 votes.")
    assert checked["rows"].pop("preset") == "canonical" and checked[form].pop("preset")
    assert checked[form] == checked["rows"]


def test_a_column_of_counts_can_be_named(forms, tmp_path):
    renamed = tmp_path / "renamed.csv"
    pl.read_csv(forms / "count.csv").rename({"count": "n"}).write_csv(renamed)
    named = output_of("check", renamed, "--count", "n")
    assert "By 'n', the rows stand for 1,440 votes." in in_one_line(named)
    assert "1,440 votes" not in output_of("check", renamed)


def test_a_fraction_is_pointed_to_weights(tmp_path, monkeypatch, capsys):
    file = tmp_path / "votes.csv"
    file.write_text("user,left,right,winner,n\na,x,y,tie,1\na,x,y,tie,0.5\n")
    told = refused(monkeypatch, capsys, "check", file, "--count", "n")
    assert told == (
        "isplitlbi: votes.csv, row 2: n 0.5 is not a whole number from 0 on. Correct it, or use "
        "--weight for a column of how important votes are, or drop such rows with --drop-invalid.\n"
    )
