"""Whatever a person gives the command line: one sentence, an exit code, nothing lost.

The commands run in this process, which is faster by far than a process each; what a process alone
can show (signals, a full disk) is in test_votes.py and test_exits.py.
"""

import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.cli import main
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.storage import save_model

HEADER = "user,left,right,winner\n"
GOOD = HEADER + "ann,tea,milk,left\nann,milk,tea,tie\nbob,tea,milk,right\nbob,tea,milk,left\n"


def run(monkeypatch, *arguments, stdin=b""):
    """Run a command; return its exit code and what it wrote to both outputs."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "argv", ["isplitlbi", *map(str, arguments)])
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    else:
        code = 0
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    votes = simulate(n_users=5, n_items=4, votes_per_user=(15, 20), random_state=1).votes
    folder = tmp_path_factory.mktemp("models") / "model"
    save_model(ISplitLBI(kappa=5.0, times=[0.1, 0.5, 1.0], n_folds=2).fit(votes), folder)
    return folder


# --- files of votes ------------------------------------------------------------------------

ROWS = {
    # name: (content, arguments, exit code of check, what standard error says)
    "empty file": (b"", [], 2, "empty"),
    "header only": (HEADER, [], 2, "no votes"),
    "blank lines only": (b"\n\n\n", [], 2, ""),
    "binary junk": (bytes(range(256)) * 4, [], 2, ""),
    "zeros": (b"\x00" * 500, [], 2, ""),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), [], 2, ""),
    "latin-1": (HEADER.encode() + "jürgen,tea,milk,left\n".encode("latin-1"), [], 2, ""),
    "utf-16": (GOOD.encode("utf-16"), [], 2, "UTF-16"),
    "truncated gzip": (b"\x1f\x8b\x08\x00abc", [], 2, ""),
    "truncated parquet": (b"PAR1abcdef", [], 2, ""),
    "broken json": (b'{"user": "ann", "left"', [], 2, ""),
    "too few fields": (GOOD + "eve,tea\n", [], 2, ""),
    "too many fields": (GOOD + "eve,tea,milk,left,really\n", [], 2, ""),
    "an open quote": (GOOD + 'eve,"tea,milk,left\n', [], 2, ""),
    "duplicate header": ("user,left,right,winner,left\na,b,c,left,d\n", [], 2, "left"),
    "missing column": ("user,left,right\na,b,c\n", [], 2, ""),
    "no header": ("ann,tea,milk,left\nbob,tea,milk,tie\n", [], 2, ""),
    "one column": ("votes\nann\n", [], 2, ""),
    "empty user": (GOOD + ",tea,milk,left\n", [], 2, "user"),
    "empty item": (GOOD + "ann,,milk,left\n", [], 2, "left"),
    "empty winner": (GOOD + "ann,tea,milk,\n", [], 2, "winner"),
    "unknown label": (GOOD + "ann,tea,milk,draw\n", [], 2, "--label draw=tie"),
    "numeric 0/1/2": (HEADER + "a,x,y,0\na,x,y,1\nb,y,x,2\n", [], 2, "--label"),
    "numeric 0/0.5/1": (HEADER + "a,x,y,0\na,x,y,0.5\nb,y,x,1\n", [], 2, "--label"),
    "numeric 0/1": (HEADER + "a,x,y,0\na,x,y,1\n", [], 2, "--label"),
    "self-comparison": (GOOD + "ann,tea,tea,left\n", [], 2, "itself"),
    "negative weight": ("user,left,right,winner,weight\na,x,y,left,-1\n", [], 2, "weight"),
    "zero weight": ("user,left,right,winner,weight\na,x,y,left,0\n", [], 2, "weight"),
    "weight that is no number": (
        "user,left,right,winner,weight\na,x,y,left,much\n", [], 2, "weight",
    ),
    "infinite weight": ("user,left,right,winner,weight\na,x,y,left,inf\n", [], 2, "weight"),
    "a fraction of a vote": ("user,left,right,winner,count\na,x,y,tie,1.5\n", [], 2, "--weight"),
    "a negative count": ("user,left,right,winner,count\na,x,y,tie,-1\n", [], 2, "row 1: count -1"),
    "an infinite count": ("user,left,right,winner,count\na,x,y,tie,inf\n", [], 2, "count inf"),
    "no count": ("user,left,right,winner,count\na,x,y,tie,\n", [], 2, "row 1: count is missing"),
    "counts of 0 only": ("user,left,right,winner,count\na,x,y,tie,0\n", [], 2, "count is 0"),
    "too many votes": ("user,left,right,winner,count\na,x,y,tie,9e99\n", [], 2, "--weight"),
    "a fraction among counts": ("user,item1,item2,win1,win2\na,x,y,1,.5\n", [], 2, "--weight"),
    "a count that is not there": (GOOD, ["--count", "n"], 2, "with --count"),
    "no id": ("user,left,right,winner,n\na,x,y,tie,\n", ["--id", "n"], 2, "row 1: n is missing"),
    "an id that is not there": (GOOD, ["--id", "n"], 2, "with --id"),
    "several votes of one id": (
        "user,left,right,winner,count,n\na,x,y,tie,2,v1\n", ["--id", "n"], 2, "row 1: count is 2",
    ),
    "ids of counted pairs": (
        "user,item1,item2,win1,win2,n\na,x,y,1,1,v1\n", ["--id", "n"], 2, "Leave out --id",
    ),
    "a column that is not there": (GOOD, ["--user", "worker"], 2, "worker"),
    "an unknown preset": (GOOD, ["--preset", "nonsense"], 2, "nonsense"),
    "a preset that does not fit": (GOOD, ["--preset", "gavel"], 2, ""),
    "an unknown format": (GOOD, ["--input-format", "xlsx"], 2, "xlsx"),
    "a label that means nothing": (GOOD, ["--label", "draw=both"], 2, "'both'"),
    "a label without a meaning": (GOOD, ["--label", "draw"], 2, "--label draw"),
    "all rows invalid": (HEADER + "a,x,x,left\n", ["--drop-invalid"], 2, ""),
    "one user": (HEADER + "a,x,y,left\na,y,x,tie\n" * 5, [], 3, ""),
    "all ties": (HEADER + "a,x,y,tie\nb,y,x,tie\n" * 5, [], 3, ""),
    "a place left out": ("user,rank1,rank2,rank4\na,x,y,z\n", [], 2, "'rank4', and none before"),
    "an item twice in a ranking": ("user,ranking\na,x > y > x\n", [], 2, "item 'x' is there"),
    "a ranking of one": ("user,ranking\na,x\n", [], 2, "fewer than two items"),
    "a best item that is not there": (
        "user,item1,item2,item3,best,worst\na,x,y,z,w,x\n", [], 2, "row 1: best 'w' is not one",
    ),
    "objects in objects": ('[{"data": ' + "[" * 90_000, [], 2, "so deeply"),
    "an export that breaks off": ('[{"data": {}, "annotations": [', [], 2, "not readable JSON"),
    "an export without a vote": ('[{"data": {}, "annotations": []}]', [], 2, "1 task dropped"),
    "sides without items": (
        '{"instance_id": 1, "user_id": 2, "labels": {"x": {"selection": "A"}}}', [], 2, "as left",
    ),
    "a graph in two parts": (GOOD * 1 + "ann,cat,dog,left\nbob,dog,cat,left\n", [], 3, ""),
    "no ties": (HEADER + "a,x,y,left\na,y,x,left\nb,x,y,right\nb,x,y,left\n" * 5, [], 0, ""),
    "unicode, quotes and newlines in ids": (
        HEADER + '"élan ""x""\nz",茶,🥛,left\nbob,🥛,茶,tie\nbob,茶,🥛,right\n', [], 0, "",
    ),
    "huge ids": (HEADER + f"{'a' * 100_000},x,y,left\nb,y,x,left\nb,x,y,tie\n", [], 0, ""),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD.encode(), [], 0, ""),
    "windows line ends": (GOOD.replace("\n", "\r\n"), [], 0, ""),
    "invalid rows, dropped": (GOOD + "ann,tea,tea,left\n", ["--drop-invalid"], 0, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_file_of_votes_is_judged_in_one_sentence(name, tmp_path, monkeypatch):
    content, arguments, expected, said = ROWS[name]
    file = tmp_path / "votes.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = file.read_bytes()
    code, out, err = run(monkeypatch, "check", file, *arguments)
    assert code == expected, err
    assert "Traceback" not in err + out
    if expected == 2:
        assert out == ""
        assert err.startswith("isplitlbi: ")
        assert err.count("\n") == 1, err
        assert said in err
        assert "votes.csv" in err or arguments
    else:
        assert out
    # And fit says the same, and leaves nothing behind.
    if expected == 2:
        again = run(monkeypatch, "fit", file, "-o", tmp_path / "model", *arguments)
        assert again == (code, out, err)
    assert file.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["votes.csv"]


def test_a_file_that_is_not_there(tmp_path, monkeypatch):
    code, out, err = run(monkeypatch, "check", tmp_path / "nowhere.csv")
    assert (code, out) == (2, "")
    assert "nowhere.csv" in err
    assert err.count("\n") == 1


def test_a_directory_is_no_file(tmp_path, monkeypatch):
    code, out, err = run(monkeypatch, "check", tmp_path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_nothing_on_standard_input(monkeypatch):
    code, out, err = run(monkeypatch, "check", "-")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


# --- models and what is asked of them ------------------------------------------------------


def spoil(folder, how):
    described = json.loads((folder / "model.json").read_text())
    if how == "another version":
        (folder / "model.json").write_text(json.dumps(described | {"version": 99}))
    elif how == "another format":
        (folder / "model.json").write_text(json.dumps(described | {"format": "cake"}))
    elif how == "no json":
        (folder / "model.json").write_text("{")
    else:
        file = folder / how
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize(
    "how",
    ["another version", "another format", "no json", "votes.npz", "path.npz", "selection.npz"],
)
@pytest.mark.parametrize(
    "command",
    [
        ["rank"], ["abnormal"], ["decompose"], ["recommend", "--same-as", "item-01"],
        ["report", "-o", "r.html"],
    ],
)  # fmt: skip
def test_a_spoilt_model_is_named_so(tmp_path, model_folder, monkeypatch, how, command):
    folder = shutil.copytree(model_folder, tmp_path / "model")
    spoil(folder, how)
    code, out, err = run(monkeypatch, command[0], folder, *command[1:])
    assert (code, out) == (2, "")
    assert err.startswith("isplitlbi: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize("how", ["no json", "votes.npz", "path.npz"])
@pytest.mark.parametrize("command", ["compare", "report"])
def test_a_spoilt_earlier_model_is_named_so(tmp_path, model_folder, monkeypatch, how, command):
    folder = shutil.copytree(model_folder, tmp_path / "earlier")
    spoil(folder, how)
    file = tmp_path / "report.html"
    asked = {
        "compare": ["compare", folder, model_folder],
        "report": ["report", model_folder, "--since", folder, "-o", file],
    }
    code, out, err = run(monkeypatch, *asked[command])
    assert (code, out) == (2, "")
    assert str(folder) in err
    assert err.count("\n") == 1
    assert not file.exists()


COMPARED = {
    # name: (what is done to the ids of items, votes to predict, what standard error says)
    "no common item": ("other-", None, "the models have no item in common"),
    "votes on other items": ("", HEADER + "u,cake,pie,left\n", "Give votes on items that both"),
    "votes without outcomes": ("", "user,left,right\nu,item-1,item-2\n", "winner"),
    "no votes": ("", HEADER, "no votes"),
}


@pytest.mark.parametrize("name", COMPARED)
def test_what_cannot_be_compared(tmp_path, model_folder, monkeypatch, name):
    before, held_out, said = COMPARED[name]
    votes = simulate(n_users=5, n_items=4, votes_per_user=(15, 20), random_state=2).votes
    items = votes.items if not before else before + votes.items
    other = Comparisons.from_arrays(
        votes.users[votes.user], items[votes.left], items[votes.right], votes.outcome
    )
    save_model(MarginMLE().fit(other), tmp_path / "other")
    arguments = []
    if held_out is not None:
        (tmp_path / "held-out.csv").write_text(held_out)
        arguments = ["--votes", tmp_path / "held-out.csv"]
    code, out, err = run(monkeypatch, "compare", tmp_path / "other", model_folder, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("isplitlbi: ")
    assert err.count("\n") == 1


ASKED = {
    "unknown user": (["rank", "--user", "nobody"], "user 'nobody' is not among the 5 users"),
    "unknown item": (
        ["recommend", "--same-as", "cake"], "item 'cake' is not among the 4 items",
    ),
    "nothing to compare with": (["recommend"], "exactly one of --same-as and --better-than"),
    "two things to compare with": (
        ["recommend", "--same-as", "item-01", "--better-than", "item-02"], "exactly one of",
    ),
    "parts of an unknown user": (
        ["decompose", "--user", "nobody"], "user 'nobody' is not among the 5 users",
    ),
    "noise below nothing": (
        ["decompose", "--noise-level", "-0.5"],
        "the noise level must be 0 or more, but it is -0.5.",
    ),
    "predictions in a file of no known kind": (
        ["predict", "pairs.csv", "-o", "out.xlsx"], ".xlsx is not one of .csv, .jsonl",
    ),
    "predictions in a file of two formats": (
        ["predict", "pairs.csv", "-o", "out.csv", "--format", "json"],
        "give --output or --format: the ending of a file is its format.",
    ),
    "predictions in a folder that is not there": (
        ["predict", "pairs.csv", "-o", "no/such/out.csv"], "no/such: there is no such folder.",
    ),
    "a report in place of a folder": (["report", "-o", "."], ". is a folder; name a file in it."),
    "a report in a folder that is not there": (
        ["report", "-o", "no/such/report.html"], "no/such: there is no such folder.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_what_a_model_cannot_answer(model_folder, monkeypatch, name):
    (command, *arguments), said = ASKED[name]
    code, out, err = run(monkeypatch, command, model_folder, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


PAIRS = {
    "unknown item": ("user,left,right\nu,item-01,cake\n", "pairs.csv, row 1: item 'cake' is not"),
    "missing column": ("user,left\nu,item-01\n", "right"),
    "empty user": ("user,left,right\n,item-01,item-02\n", "user"),
    "empty": ("", ""),
    "header only": ("user,left,right\n", ""),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_that_cannot_be_predicted(tmp_path, model_folder, monkeypatch, name):
    content, said = PAIRS[name]
    (tmp_path / "pairs.csv").write_text(content)
    code, out, err = run(monkeypatch, "predict", model_folder, tmp_path / "pairs.csv")
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("isplitlbi: ")
    assert err.count("\n") == 1


SETTINGS = {
    "unknown link": (["--link", "cauchy"], "cauchy"),
    "unknown rule": (["--rule", "dice"], "dice"),
    "unknown scoring": (["--scoring", "auc"], "auc"),
    "score of another rule": (["--scoring", "paper_macro_f1"], "--rule threshold"),
    "unknown estimate": (["--estimate", "thin"], "thin"),
    "negative nu": (["--nu", "-1"], "nu"),
    "no time on the path": (["--time", "-1"], "time"),
    "more folds than votes": (["--folds", "1000"], "1000"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_cannot_be(tmp_path, monkeypatch, name):
    arguments, said = SETTINGS[name]
    (tmp_path / "votes.csv").write_text(GOOD)
    output = tmp_path / "model"
    code, out, err = run(monkeypatch, "fit", tmp_path / "votes.csv", "-q", "-o", output, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1, err
    assert [entry.name for entry in tmp_path.iterdir()] == ["votes.csv"]


def test_an_existing_model_is_not_overwritten(tmp_path, model_folder, monkeypatch):
    (tmp_path / "votes.csv").write_text(GOOD)
    folder = shutil.copytree(model_folder, tmp_path / "model")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    code, _, err = run(monkeypatch, "fit", tmp_path / "votes.csv", "-o", folder)
    assert code == 2
    assert "exists already; choose another name or use --force" in err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_folder_that_is_no_model_is_not_replaced_even_by_force(tmp_path, monkeypatch):
    (tmp_path / "votes.csv").write_text(GOOD)
    (tmp_path / "photos").mkdir()
    code, _, err = run(
        monkeypatch, "fit", tmp_path / "votes.csv", "-o", tmp_path / "photos", "--force"
    )
    assert code == 2
    assert "is not a model folder" in err
    assert (tmp_path / "photos").is_dir()


def test_simulated_votes_do_not_overwrite_a_file(tmp_path, monkeypatch):
    file = tmp_path / "votes.csv"
    file.write_text("mine")
    code, _, err = run(monkeypatch, "simulate", "-o", file)
    assert code == 2
    assert "exists already" in err
    assert file.read_text() == "mine"


# --- whatever comes ------------------------------------------------------------------------


def judge(monkeypatch, file, content):
    file.write_bytes(content)
    code, out, err = run(monkeypatch, "check", file, "--format", "json")
    assert code in (0, 2, 3)
    assert "Traceback" not in err
    if code == 2:
        assert out == ""
        assert err.startswith("isplitlbi: ")
        assert err.count("\n") == 1
    else:
        json.loads(out)


# The reader alone is tried with many more, in tests/data/test_readers.py.
many = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@many
@given(content=st.binary(max_size=300))
def test_random_bytes_never_give_a_traceback(tmp_path, monkeypatch, content):
    judge(monkeypatch, tmp_path / "votes.csv", content)


@st.composite
def mutated(draw):
    """A good file with a few bytes replaced, removed, inserted or repeated."""
    content = bytearray((GOOD * 2).encode())
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(content) - 1))
        change = draw(st.sampled_from(["replace", "remove", "insert", "repeat"]))
        junk = draw(
            st.sampled_from([b",", b'"', b"\n", b"\r", b"\0", b"\xff", b"1", b"tie", b"\t"])
        )
        if change == "replace":
            content[place : place + 1] = junk
        elif change == "remove":
            del content[place : place + draw(st.integers(1, 20))]
            content = content or bytearray(b"x")
        elif change == "insert":
            content[place:place] = junk
        else:
            content[place:place] = content[place : place + draw(st.integers(1, 40))]
    return bytes(content)


@pytest.mark.slow
@many
@given(content=mutated())
def test_mutated_votes_never_give_a_traceback(tmp_path, monkeypatch, content):
    judge(monkeypatch, tmp_path / "votes.csv", content)


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_typed_files_with_odd_columns_never_give_a_traceback(tmp_path, monkeypatch, suffix):
    odd = {
        "dates": pl.Series(["2024-01-01", "2024-01-02"]).str.to_date(),
        "lists": [[1], [2]],
        "floats": [0.5, np.nan],
        "nulls": [None, None],
        "booleans": [True, False],
    }
    for name, column in odd.items():
        frame = pl.DataFrame(
            {"user": column, "left": ["a", "b"], "right": ["b", "a"], "winner": ["left", "tie"]}
        )
        file = Path(tmp_path / f"{name}.{suffix}")
        frame.write_parquet(file) if suffix == "parquet" else frame.write_ndjson(file)
        code, _, err = run(monkeypatch, "check", file)
        assert code in (0, 2, 3)
        assert "Traceback" not in err
