"""Commands for what comes after a fit: place and update."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import polars as pl
import pytest

from commands import command, ended, in_one_line, invoke, output_of, refused, width
from isplitlbi import load_model

HEADER = "user,left,right,winner\n"


@pytest.fixture(scope="module")
def new_file(votes_file, tmp_path_factory):
    """The votes of two users of the study under other names, one after the other."""
    votes = pl.read_csv(votes_file)
    names = {"user-02": "zoe", "user-07": "ann"}
    some = pl.concat(
        votes.filter(user=old).with_columns(user=pl.lit(new)) for old, new in names.items()
    )
    file = tmp_path_factory.mktemp("new") / "new.csv"
    some.write_csv(file)
    return file


def content_of(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


# --- place ---------------------------------------------------------------------------------


def test_place_shows_people_in_the_order_of_the_file(model_folder, new_file):
    out = output_of("place", model_folder, new_file)
    assert [line.split()[0] for line in out.splitlines()] == ["user", "zoe", "ann"]
    assert width(out) <= 80


def test_rows_of_csv_have_the_columns_of_abnormal_and_of_rank(model_folder, new_file, tmp_path):
    table = pl.read_csv(output_of("place", model_folder, new_file, "--format", "csv").encode())
    of_users = pl.read_csv(output_of("abnormal", model_folder, "--format", "csv").encode()).columns
    of_items = pl.read_csv(
        output_of("rank", model_folder, "--user", "user-02", "--format", "csv").encode()
    ).columns
    assert table.columns[0] == "user"
    assert table["user"].to_list() == ["zoe", "ann"]
    assert set(of_users) <= set(table.columns)
    renamed = {f"item_{name}" if name in of_users else name for name in of_items}
    assert renamed <= set(table.columns)
    assert len(json.loads(table["item"][0])) == len(json.loads(table["score"][0])) == 6
    rows = json.loads(output_of("place", model_folder, new_file, "--format", "json"))
    assert [row["user"] for row in rows] == ["zoe", "ann"]
    assert rows[0]["item"] == json.loads(table["item"][0])
    assert np.allclose(rows[1]["high"], json.loads(table["high"][1]))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_rows_go_into_a_file(model_folder, new_file, tmp_path, ending, monkeypatch, capsys):
    file = tmp_path / f"people.{ending}"
    out = output_of("place", model_folder, new_file, "-o", file, "--without-tests")
    assert "2 users" in out
    read = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}[ending]
    table = read(file)
    assert table["user"].to_list() == ["zoe", "ann"]
    assert table["p_value"].null_count() == 2
    err = refused(monkeypatch, capsys, "place", model_folder, new_file, "-o", file)
    assert "exists already" in in_one_line(err)


def test_votes_on_unknown_items_are_left_out_and_counted_where_that_is_asked_for(
    model_folder, new_file, tmp_path
):
    file = tmp_path / "votes.csv"
    file.write_text(new_file.read_text() + "eve,item-01,item-77,left\nzed,item-01,item-02,tie\n")
    done = invoke("place", model_folder, file, "--drop-invalid", "--format", "csv")
    assert pl.read_csv(done.stdout.encode())["user"].to_list() == ["zoe", "ann", "zed"]
    assert "1 vote left out" in in_one_line(done.stderr)


def test_rows_that_are_dropped_are_told(model_folder, new_file, tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text(new_file.read_text() + "eve,item-01\n")
    done = invoke("place", model_folder, file, "--drop-invalid", "--format", "csv")
    assert "1 row dropped" in in_one_line(done.stderr)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_nobody_to_place_is_an_error(model_folder, tmp_path, monkeypatch, capsys, ending):
    file, out = tmp_path / "votes.csv", tmp_path / f"people.{ending}"
    file.write_text(f"{HEADER}eve,item-01,item-77,left\n")
    err = refused(monkeypatch, capsys, "place", model_folder, file, "--drop-invalid", "-o", out)
    assert "nobody is left to place" in in_one_line(err)
    assert not out.exists()


def test_users_of_the_model_are_told(model_folder, votes_file):
    done = invoke("place", model_folder, votes_file, "--without-tests", "--format", "csv")
    assert "12 of them are in the model already" in in_one_line(done.stderr)
    assert pl.read_csv(done.stdout.encode()).height == 12


HOSTILE = {
    "empty": (b"", "empty"),
    "header only": (HEADER.encode(), "no votes"),
    "binary": (bytes(range(256)) * 3, ""),
    "unknown item": (f"{HEADER}ann,item-01,item-99,left\n".encode(), "update the model"),
    "no such outcome": (f"{HEADER}ann,item-01,item-02,maybe\n".encode(), "row 1"),
    "item with itself": (f"{HEADER}ann,item-01,item-01,left\n".encode(), "with itself"),
    "no votes but a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), ""),
    "no users": (b"left,right,winner\nitem-01,item-02,left\n", "no users"),
    "empty user": (f"{HEADER},item-01,item-02,left\n".encode(), "user"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("what", ["place", "update"])
def test_hostile_files_are_refused_in_one_sentence(
    model_folder, tmp_path, monkeypatch, capsys, name, what
):
    content, sentence = HOSTILE[name]
    file, out = tmp_path / "votes.csv", tmp_path / "out.csv"
    file.write_bytes(content)
    if (what, name) == ("update", "unknown item"):
        pytest.skip("it is then a new one")
    if (what, name) == ("update", "no users"):
        sentence = "users"
    before = content_of(model_folder)
    err = refused(monkeypatch, capsys, what, model_folder, file, "-o", out)
    assert sentence in in_one_line(err)
    assert len(err.strip().splitlines()) <= 4
    assert [each.name for each in tmp_path.iterdir()] == ["votes.csv"]
    assert content_of(model_folder) == before


def test_what_cannot_be_is_refused(model_folder, new_file, tmp_path, monkeypatch, capsys):
    for arguments, sentence in (
        ((tmp_path / "nothing", new_file), "no such folder"),
        ((model_folder, tmp_path / "nothing.csv"), "no such file"),
        ((model_folder, tmp_path), "is a folder"),
        ((model_folder, new_file, new_file), "name one file"),
        ((model_folder, new_file, "-o", tmp_path / "people.xlsx"), ".parquet"),
        ((model_folder, new_file, "--without", "zoe"), "--without"),
    ):
        assert sentence in in_one_line(refused(monkeypatch, capsys, "place", *arguments))


def test_features_of_the_model_are_read_without_naming_them(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    lines = [
        f"u{k % 6},{a},{b},{rng.choice(['left', 'tie', 'right'])},{rng.normal():.3f}\n"
        for k in range(120)
        for a, b in [rng.choice(["x", "y", "z"], size=2, replace=False)]
    ]
    header = "user,left,right,winner,length\n"
    old, new, bare = (tmp_path / name for name in ("old.csv", "new.csv", "bare.csv"))
    old.write_text(header + "".join(lines))
    new.write_text(header + "".join(line.replace("u", "v", 1) for line in lines[:12]))
    bare.write_text(HEADER + "w,x,y,left\n")
    model = tmp_path / "model"
    output_of("fit", old, "-o", model, "--feature", "length", "--time", "0.3", "-q")
    table = pl.read_csv(output_of("place", model, new, "--format", "csv").encode())
    assert "feature_length" in table.columns
    output_of("update", model, new, "-o", tmp_path / "model2", "-q")
    assert load_model(tmp_path / "model2").summary_.units.names == ("length",)
    assert "length" in in_one_line(refused(monkeypatch, capsys, "place", model, bare))


# --- update --------------------------------------------------------------------------------


def test_update_writes_another_model_and_leaves_the_first(model_folder, new_file, tmp_path):
    before = content_of(model_folder)
    out = output_of("update", model_folder, new_file, "-o", tmp_path / "model2")
    assert "with 2 users and 0 items that are new" in in_one_line(out)
    assert width(out) <= 80
    assert content_of(model_folder) == before
    one, two = load_model(model_folder), load_model(tmp_path / "model2")
    assert {*two.users_} == {*one.users_, "ann", "zoe"}
    assert (two.nu_, two.kappa_, two.time_) == (one.nu_, one.kappa_, one.time_)
    shown = output_of("compare", model_folder, tmp_path / "model2")
    assert "2 users are new" in in_one_line(shown)


def test_repeated_votes_are_told_and_kept_unless_asked_otherwise(
    model_folder, votes_file, tmp_path, monkeypatch, capsys, caplog
):
    n_votes = load_model(model_folder).summary_.n_votes
    lines = votes_file.read_text().splitlines(keepends=True)
    file = tmp_path / "again.csv"
    file.write_text("".join(lines[:11]) + "new,item-01,item-02,left\n")
    output_of("update", model_folder, file, "-o", tmp_path / "kept")
    assert "10 of 11 new votes are the same" in caplog.text
    assert load_model(tmp_path / "kept").summary_.n_votes == n_votes + 11
    invoke("update", model_folder, file, "-o", tmp_path / "dropped", "--drop-repeated", "-q")
    assert load_model(tmp_path / "dropped").summary_.n_votes == n_votes + 1
    err = refused(
        monkeypatch, capsys, "update", model_folder, votes_file, "-o", tmp_path / "none",
        "--drop-repeated",
    )  # fmt: skip
    assert "nothing new" in in_one_line(err)
    assert not (tmp_path / "none").exists()


def test_reselect_and_retest_are_as_they_say(model_folder, new_file, tmp_path):
    output_of("update", model_folder, new_file, "-o", tmp_path / "anew", "--reselect")
    assert load_model(tmp_path / "anew").selection_ is not None
    output_of("update", model_folder, new_file, "-o", tmp_path / "tested", "--retest")
    tested = load_model(tmp_path / "tested")
    assert tested.abnormality_.ordinary.n_votes == tested.summary_.n_votes


def test_an_existing_model_is_replaced_only_by_force(
    model_folder, new_file, tmp_path, monkeypatch, capsys
):
    target = tmp_path / "model2"
    output_of("update", model_folder, new_file, "-o", target, "-q")
    before = content_of(target)
    err = refused(monkeypatch, capsys, "update", model_folder, new_file, "-o", target)
    assert "exists already" in in_one_line(err)
    assert content_of(target) == before
    code, _, err = ended(
        monkeypatch, capsys, "update", model_folder, new_file, "-o", target, "--force", "-q"
    )
    assert code == 0, err


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_an_interrupted_update_leaves_the_old_model_as_it_was(votes_file, tmp_path):
    simulated = tmp_path / "many.csv"
    output_of("simulate", "-o", simulated, "--users", "400", "--items", "40", "--least", "60",
              "--most", "80")  # fmt: skip
    votes = pl.read_csv(simulated)
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    votes.head(2000).write_csv(old)
    votes.tail(votes.height - 2000).write_csv(new)
    output_of("fit", old, "-o", tmp_path / "model", "--time", "0.2", "-q")
    before = content_of(tmp_path / "model")
    for target in (tmp_path / "model2", tmp_path / "model"):  # beside it, and in its place
        process = subprocess.Popen(
            command("update", tmp_path / "model", new, "-o", target, "--reselect", "--force"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        hidden = target.with_name(f".{target.name}.unfinished")
        deadline = time.monotonic() + 60
        while not hidden.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        assert content_of(tmp_path / "model") == before
    assert not (tmp_path / "model2").exists()
