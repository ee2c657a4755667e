"""The commands on votes that are not there yet: next and plan, and what is refused."""

import io
import json
from pathlib import Path

import polars as pl
import pytest

from commands import in_one_line, invoke, output_of, refused, width
from crowds import crowd, gather
from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.storage import save_model


@pytest.fixture(scope="module")
def model():
    return ISplitLBI(kappa=5.0, nu=0.3, times=[0.1, 0.4], time=0.1, with_tests=False).fit(
        gather(crowd(21))
    )


@pytest.fixture(scope="module")
def stored(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    save_model(model, folder)
    return folder


def rows(text):
    return pl.read_csv(io.StringIO(text), schema_overrides={"user": pl.String})


# --- next ----------------------------------------------------------------------------------


def test_next_writes_the_votes_that_the_library_chooses(stored, model):
    found = rows(output_of("next", stored, "-n", 7, "--format", "csv"))
    assert found.columns == ["user", "left", "right", "gain"]
    expected = model.next_pairs(7).to_frame("polars")
    assert (
        found.select("user", "left", "right").rows()
        == expected.select("user", "left", "right").cast(pl.String).rows()
    )
    assert width(output_of("next", stored, "-n", 7)) <= 80


def test_next_asks_those_who_are_named_one_by_one_or_in_a_file(stored, model, tmp_path):
    one, two = map(str, model.users_[:2])
    file = tmp_path / "who.csv"
    file.write_text(f"user,note\n{two},ask\n", encoding="utf-8")
    options = ("--users", one, "--users", file, "--per-user", 2, "--format", "csv")
    found = rows(output_of("next", stored, "-n", 4, *options))
    assert sorted(found["user"]) == sorted([one, one, two, two])


def test_next_chooses_among_given_pairs_and_leaves_their_sides(stored, model, tmp_path):
    user, (left, right, other) = str(model.users_[0]), map(str, model.items_[:3])
    file = tmp_path / "pairs.csv"
    file.write_text(f"user,left,right\n{user},{left},{right}\n{user},{other},{left}\n")
    found = rows(output_of("next", stored, "-n", 2, "--among", file, "--format", "csv"))
    assert sorted(found.select("left", "right").cast(pl.String).rows()) == sorted(
        [(left, right), (other, left)]
    )


@pytest.mark.parametrize("aim", ["ranking", "person", "top 2", "top2", "top:2"])
def test_next_takes_every_aim(stored, aim):
    assert rows(output_of("next", stored, "-n", 3, "--aim", aim, "--format", "csv")).height == 3


def test_next_writes_a_file_and_replaces_none_unless_asked(stored, tmp_path, monkeypatch, capsys):
    file = tmp_path / "ask.csv"
    assert str(file) in output_of("next", stored, "-n", 3, "-o", file).replace("\n", "")
    before = file.read_bytes()
    assert "--force" in refused(monkeypatch, capsys, "next", stored, "-n", 2, "-o", file)
    assert file.read_bytes() == before
    output_of("next", stored, "-n", 2, "-o", file, "--force")
    assert rows(file.read_text()).height == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-n", 0), "whole number"),
        (("-n", 1_000_000), "only"),
        (("--users", "nobody-at-all"), "not among"),
        (("--aim", "fun"), "ranking, person"),
        (("--aim", "top 99"), "first"),
        (("--per-user", 0), "whole number"),
        (("--among", "missing.csv"), "missing.csv"),
        (("-o", "ask.docx"), ".docx"),
    ],
)
def test_next_refuses_in_one_sentence(stored, monkeypatch, capsys, tmp_path, options, said):
    monkeypatch.chdir(tmp_path)
    error = refused(monkeypatch, capsys, "next", stored, *options)
    assert said in error
    assert list(tmp_path.iterdir()) == []


def test_next_refuses_a_file_of_items_and_unknown_items(
    stored, model, monkeypatch, capsys, tmp_path
):
    file = tmp_path / "who.csv"
    file.write_text("item\ntea\n")
    assert "column user" in refused(monkeypatch, capsys, "next", stored, "--users", file)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(f"user,left,right\n{model.users_[0]},{model.items_[0]},no such item\n")
    error = refused(monkeypatch, capsys, "next", stored, "-n", 1, "--among", pairs)
    assert "no such item" in error


def test_next_says_that_nothing_is_left_to_ask(tmp_path, monkeypatch, capsys):
    votes = Comparisons.from_arrays(
        ["ann"] * 3 + ["bob"] * 3, ["a", "a", "b"] * 2, ["b", "c", "c"] * 2, [1, 1, -1, 1, 0, 1]
    )
    fitted = ISplitLBI(nu=0.3, kappa=5.0, times=[0.1], time=0.1, with_tests=False).fit(votes)
    save_model(fitted, tmp_path / "model")
    error = refused(monkeypatch, capsys, "next", tmp_path / "model", "-n", 1, "--new-only")
    assert "nothing left to ask" in error


# --- plan ----------------------------------------------------------------------------------


def test_plan_says_how_sure_the_order_is_and_fits_80_columns(stored, model):
    shown = output_of("plan", stored, "--target", 0.99)
    assert width(shown) <= 80
    plan = model.plan(target=0.99)
    for sentence in plan.sentences():
        assert in_one_line(sentence) in in_one_line(shown)
    table = rows(output_of("plan", stored, "--format", "csv").replace("way", "user", 1))
    assert table.height == model.plan().to_frame("polars").height


def test_plan_as_json_has_the_numbers_of_the_library(stored, model):
    found = json.loads(output_of("plan", stored, "--aim", "top 2", "--format", "json"))
    plan = model.plan("top 2")
    assert found["top"] == {"places": 2, "probability": plan.sure.top}
    assert found["is_reached"] == plan.is_reached
    assert found["first"]["item"] == plan.items[0]
    assert len(found["borders"]) == len(plan.borders())


def test_plan_without_votes_writes_a_balanced_design(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("design.csv")
    options = ("--items", 6, "--users", 4, "--target", 0.5, "--design", file, "--votes", 30)
    shown = output_of("plan", *options)
    assert width(shown) <= 80
    assert "Kendall's tau of 0.5" in in_one_line(shown)
    design = rows(file.read_text())
    assert design.columns == ["user", "left", "right"]
    assert design.height == 30
    counts = pl.concat([design["left"], design["right"]]).value_counts()["count"]
    assert counts.max() - counts.min() <= 2
    again = invoke("plan", *options)
    assert again.exit_code != 0  # the file is there


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--items"),
        (("--items", 5), "--users"),
        (("--items", 1, "--users", 3), "n_items"),
        (("--items", 5, "--users", 3, "--target", 1.5), "target"),
        (("--items", 5, "--users", 3, "--ties", 1), "ties"),
        (("--items", 5, "--users", 3, "--spread", "nan"), "spread"),
        (("--items", 5, "--users", 3, "--aim", "person"), "consensus"),
        (("--items", 5, "--users", 3, "--votes", 0), "--votes"),
        (("--items", 5, "--users", 3, "--design", "a.xls"), ".xls"),
    ],
)
def test_plan_without_votes_refuses_in_one_sentence(monkeypatch, capsys, options, said):
    assert said in refused(monkeypatch, capsys, "plan", *options)


def test_plan_refuses_a_model_together_with_sizes(stored, monkeypatch, capsys, tmp_path):
    assert "leave out" in refused(monkeypatch, capsys, "plan", stored, "--items", 5)
    assert "consensus" in refused(monkeypatch, capsys, "plan", stored, "--aim", "person")
    refused(monkeypatch, capsys, "plan", tmp_path / "no model")
