"""The commands on files of votes: check, fit, evaluate, simulate."""

import gzip
import io
import json
import shutil
import signal
import subprocess
from time import monotonic, sleep

import numpy as np
import polars as pl
import pytest

from commands import command, invoke, output_of, refused, width
from isplitlbi import Comparisons, ISplitLBI, load_model
from isplitlbi.data.outcomes import WINNERS
from isplitlbi.evaluation.simulate import simulate


def content(folder):
    """Return all that a model folder holds, but for when and from what it was made."""
    return {
        file.name: file.read_bytes()
        for file in sorted(folder.iterdir())
        if file.name != "about.json"
    }


def test_simulated_votes_come_with_their_truth(votes_file):
    votes, truth = pl.read_csv(votes_file), pl.read_csv(votes_file.with_name("truth.csv"))
    assert votes.columns == ["user", "left", "right", "winner"]
    assert set(votes["winner"]) == {"left", "right", "tie"}
    assert truth.columns == ["user", "abnormal", "kind"]
    assert set(votes["user"]) == set(truth["user"])
    piped = invoke("simulate", "-o", "-", "--users", "12", "--items", "6", "--least", "30",
                   "--most", "40")  # fmt: skip
    assert piped.stdout == votes_file.read_text()


def test_simulated_users_differ_in_the_ways_that_are_asked_for(tmp_path):
    invoke("simulate", "-o", str(tmp_path / "votes.csv"), "--truth", str(tmp_path / "truth.csv"),
           "--users", "10", "--least", "20", "--most", "20", "--sharpness", "0,.5,1,2,-1",
           "--side", ".3,.5", "--taste", ".2", "--forced")  # fmt: skip
    votes, truth = (pl.read_csv(tmp_path / f"{name}.csv") for name in ("votes", "truth"))
    assert set(votes["winner"]) == {"left", "right"}
    assert truth.columns == ["user", "abnormal", "kind", "sharpness", "side"]
    assert sorted(truth["sharpness"]) == [-1, -1, 0, 0, 0.5, 0.5, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--sharpness", "sharp"], "--sharpness sharp: expected a number, or numbers separated"),
        (["--side", "1,2,3"], "side must be a number, or a pair"),
        (["--feature", "length"], "--feature length: expected NAME=EFFECT"),
        (["--feature", "length=long"], "--feature length: long: expected a number"),
        (["--feature", "a=1", "--feature", "a=2"], "--feature a is given twice"),
        (["--forced", "--tie-habit", ".3"], "tie_habit needs ties"),
    ],
)
def test_a_study_that_cannot_be_drawn_is_one_sentence(
    flags, message, tmp_path, monkeypatch, capsys
):
    said = refused(monkeypatch, capsys, "simulate", "-o", str(tmp_path / "votes.csv"), *flags)
    assert message in " ".join(said.split())
    assert not (tmp_path / "votes.csv").exists()


def test_the_summary_of_a_fit_says_where_to_go_on(votes_file, tmp_path):
    shown = invoke("fit", str(votes_file), "-o", str(tmp_path / "m"))
    for part in (
        "Fitted in",
        "Consensus, in tiers",
        "unreliable, ",
        " different.",
        "Written to",
    ):
        assert part in " ".join(shown.stdout.split())
    figures = json.loads(
        invoke("fit", str(votes_file), "-o", str(tmp_path / "n"), "--format", "json").stdout
    )
    assert figures["votes"] == len(pl.read_csv(votes_file))
    assert {"log_loss", "micro_f1", "macro_f1"} == set(figures["held_out"])
    as_csv = invoke("fit", str(votes_file), "-o", str(tmp_path / "o"), "--format", "csv").stdout
    assert pl.read_csv(io.StringIO(as_csv))["votes"].to_list() == [figures["votes"]]


def test_the_same_votes_give_the_same_model_in_every_format(votes_file, model_folder, tmp_path):
    frame = pl.read_csv(votes_file)
    files = {name: tmp_path / f"votes.{name}" for name in ("parquet", "jsonl", "tsv", "csv.gz")}
    frame.write_parquet(files["parquet"])
    frame.write_ndjson(files["jsonl"])
    frame.write_csv(files["tsv"], separator="\t")
    files["csv.gz"].write_bytes(gzip.compress(votes_file.read_bytes()))
    expected = content(model_folder)
    for name, file in files.items():
        done = invoke("fit", str(file), "-o", str(tmp_path / name))
        assert done.exit_code == 0, done.output
        assert content(tmp_path / name) == expected
    piped = subprocess.run(
        command("fit", "-", "-o", tmp_path / "piped"), input=votes_file.read_bytes(),
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert piped.returncode == 0, piped.stderr
    assert content(tmp_path / "piped") == expected


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_changes_nothing(votes_file, model_folder, tmp_path, threads):
    folder = tmp_path / "model"
    invoke("fit", str(votes_file), "-o", str(folder), "--threads", str(threads))
    mine, expected = content(folder), content(model_folder)
    for name in expected.keys() - {"model.json"}:  # which tells the number of threads
        assert mine[name] == expected[name]


def test_force_replaces_a_model(votes_file, model_folder, tmp_path):
    folder = shutil.copytree(model_folder, tmp_path / "model")
    done = invoke("fit", str(votes_file), "-o", str(folder), "--force", "--seed", "1")
    assert done.exit_code == 0, done.output
    assert json.loads((folder / "model.json").read_text())["settings"]["random_state"] == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.fixture(scope="module")
def long_study(tmp_path_factory):
    """Votes that take seconds to fit."""
    file = tmp_path_factory.mktemp("long") / "votes.csv"
    invoke("simulate", "-o", str(file), "--users", "200", "--items", "40", "--least", "100",
           "--most", "150")  # fmt: skip
    return file


def interrupted(signal_number, long_study, folder):
    """Start a long fit, wait for its first checkpoint, and send a signal."""
    process = subprocess.Popen(
        command("fit", long_study, "-o", folder, "--quiet", "--checkpoint-seconds", "0.05",
                "--folds", "2"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    until = monotonic() + 60
    while not list(unfinished.glob("*.npz")) and monotonic() < until:
        assert process.poll() is None, process.communicate()
        sleep(0.01)
    process.send_signal(signal_number)
    return process.communicate(timeout=60), process.returncode


def test_a_killed_fit_goes_on_to_the_same_model(long_study, tmp_path, monkeypatch, capsys):
    (_, errors), code = interrupted(signal.SIGKILL, long_study, tmp_path / "model")
    assert (errors, code) == ("", -signal.SIGKILL)
    assert [entry.name for entry in tmp_path.iterdir()] == [".model.unfinished"]
    fit = ("fit", str(long_study), "--folds", "2", "-o")
    again = refused(monkeypatch, capsys, *fit, tmp_path / "model")
    assert "was interrupted; go on with --resume" in again
    other = refused(monkeypatch, capsys, *fit, tmp_path / "model", "--resume", "--nu", "2")
    assert "belong to other votes or settings" in other

    output_of(*fit, tmp_path / "model", "--resume", "--quiet")
    output_of(*fit, tmp_path / "whole", "--quiet")
    assert content(tmp_path / "model") == content(tmp_path / "whole")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model", "whole"]


def test_control_c_ends_with_one_line_and_the_fit_can_go_on(long_study, tmp_path):
    (_, errors), code = interrupted(signal.SIGINT, long_study, tmp_path / "model")
    assert code == 130
    assert errors == "isplitlbi: interrupted; go on with the same command and --resume.\n"
    assert [entry.name for entry in tmp_path.iterdir()] == [".model.unfinished"]


QUICK_METHODS = "per-user,margin-mle"


QUICK_METHODS = "per-user,margin-mle"
QUICK_NAMES = ["per-user", "margin-mle-uniform", "margin-mle-bt", "margin-mle-tm"]


@pytest.fixture(scope="module")
def evaluate_votes(votes_file):
    """Return a function that evaluates methods, quick ones by default, on few splits."""

    def evaluate(*arguments, methods=QUICK_METHODS):
        asked = ["--methods", methods] if methods else []
        options = ["--repeats", "2", "--quiet", *asked, *arguments]
        done = invoke("evaluate", str(votes_file), *options)
        assert done.exit_code == 0, done.output
        return done.stdout

    return evaluate


def test_the_evaluation_shows_the_papers_tables_and_a_verdict(evaluate_votes):
    shown = evaluate_votes(methods=None)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in shown
    for title in ("F1 (standard)", "Log-loss, the published program's F1s, seconds",
                  "Precision and recall by class, medians"):  # fmt: skip
        start = [line.strip() for line in lines].index(title)
        block = lines[start : lines.index("", start)]
        assert [line.split()[0] for line in block[-6:]] == ["isplitlbi", "lbi", *QUICK_NAMES]
    comparison, verdict = " ".join(shown.split()).split("isplitlbi predicts")[1].split("repeats, p")
    assert "of the held-out votes, margin-mle-bt" in comparison
    assert "individual rankings help" in verdict
    assert "Reliability" not in shown


def test_the_evaluation_comes_as_json(evaluate_votes):
    found = json.loads(evaluate_votes("--format", "json", "--seed", "4"))
    assert found["settings"]["repeats"] == 2
    assert found["settings"]["seed"] == 4
    assert found["settings"]["methods"] == QUICK_NAMES
    assert [method["name"] for method in found["methods"]] == QUICK_NAMES
    for method in found["methods"]:
        assert set(method["micro_f1"]) == {"min", "median", "max", "std"}
        assert 0.3 < method["micro_f1"]["median"] < 1.0
        assert sum(bin["predictions"] for bin in method["reliability"]) > 100
    assert "individual rankings help" in found["verdict"]
    assert "predicts" in found["comparison"]


def test_the_evaluation_comes_as_csv_with_a_row_per_method(evaluate_votes):
    table = pl.read_csv(io.StringIO(evaluate_votes("--format", "csv")))
    assert table["method"].to_list() == QUICK_NAMES
    assert {"micro_f1_median", "log_loss_std", "paper_macro_f1_max"} <= set(table.columns)


def test_the_evaluation_depends_on_its_seed_alone(evaluate_votes):
    def table(seed):
        shown = evaluate_votes("--format", "csv", "--seed", seed, methods="margin-mle")
        return pl.read_csv(io.StringIO(shown)).drop(pl.selectors.starts_with("seconds"))

    assert table("0").equals(table("0"))
    assert not table("0").equals(table("1"))


def test_the_options_of_an_evaluation_reach_it(evaluate_votes, votes_file):
    most = pl.read_csv(votes_file)["user"].value_counts()["count"].max()
    options = f"--min-votes {most} --test-share 0.4 --rule threshold --format json".split()
    settings = json.loads(evaluate_votes(*options, methods="margin-mle-bt"))["settings"]
    assert settings["min_votes"] == most
    assert settings["users"] < 12
    assert (settings["test_share"], settings["rule"]) == (0.4, "threshold")


def test_reliability_is_shown_in_bins_when_asked_for(evaluate_votes):
    shown = evaluate_votes("--reliability", methods="margin-mle-bt")
    lines = [line.split() for line in shown.split("Reliability of margin-mle-bt")[1].splitlines()]
    bins = [line for line in lines if len(line) == 5 and line[0].startswith("0.")]
    assert [line[:2] for line in bins] == [
        [f"{k / 10:.1f}", f"{(k + 1) / 10:.1f}"] for k in range(10)
    ]
    assert sum(int(line[2]) for line in bins) > 100
    for low, high, count, predicted, _ in bins:
        assert (count == "0") == (predicted == "-")
        assert count == "0" or float(low) <= float(predicted) <= float(high)
    assert width(shown) <= 80
    assert "of the held-out votes." in " ".join(shown.split())


MISTAKES = {
    "an unknown method": (
        ["--methods", "isplit"],
        "no method 'isplit'; the nearest is 'isplitlbi'",
    ),
    "no method": (["--methods", ""], "no method ''"),
    "no repeats": (["--repeats", "0"], "Invalid value for '--repeats'"),
    "more than all held out": (["--test-share", "1.5"], "test_share is 1.5"),
    "nothing held out": (["--test-share", "0"], "test_share is 0.0"),
    "an unknown rule": (["--rule", "dice"], "rule 'dice' is not one of map, threshold"),
    "more votes than anybody has": (["--min-votes", "1000"], "no user has 1000 votes"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_evaluation_that_cannot_be_is_refused(votes_file, monkeypatch, capsys, name):
    arguments, said = MISTAKES[name]
    complaint = refused(monkeypatch, capsys, "evaluate", votes_file, *arguments)
    assert sum(said in line for line in complaint.splitlines()) == 1
    if name != "no repeats":  # which typer refuses, in more lines
        assert complaint.startswith("isplitlbi: ")
        assert complaint.count("\n") == 1


def test_the_evaluation_of_a_file_that_is_not_there_is_refused(tmp_path, monkeypatch, capsys):
    complaint = refused(monkeypatch, capsys, "evaluate", tmp_path / "nowhere.csv")
    assert complaint.startswith("isplitlbi: ")
    assert "nowhere.csv" in complaint
    assert complaint.count("\n") == 1


# --- leaving out, and strictness -------------------------------------------------------------


def test_the_clean_up_is_one_pipeline(tmp_path, monkeypatch, capsys):
    study = simulate(
        n_users=16, n_items=6, votes_per_user=(60, 80), malicious={"reversed": 0.2}, random_state=1
    )
    votes, truth = study.votes, study.truth
    file, bad = tmp_path / "votes.csv", tmp_path / "bad.csv"
    winner = [WINNERS[outcome] for outcome in votes.outcome.tolist()]
    ids = {"user": votes.users[votes.user], "left": votes.items[votes.left],
           "right": votes.items[votes.right]}  # fmt: skip
    pl.DataFrame(ids | {"winner": winner}).write_csv(file)
    assert invoke("fit", file, "-o", tmp_path / "model").exit_code == 0
    kinds = "careless,reversed,position-biased"
    found = invoke("abnormal", tmp_path / "model", "--kind", kinds, "--format", "csv")
    repeated = invoke("abnormal", tmp_path / "model", "--format", "csv", "--kind", "careless",
                      "--kind", "reversed", "--kind", "position-biased")  # fmt: skip
    assert found.stdout == repeated.stdout
    bad.write_text(found.stdout)
    dropped = set(pl.read_csv(bad)["user"])
    assert dropped == set(votes.users[np.array(truth.kind) == "reversed"])
    done = invoke("fit", file, "--without", bad, "-o", tmp_path / "clean")
    n_votes = int(votes.votes_per_user[np.isin(votes.users, list(dropped))].sum())
    assert f"Left out: {n_votes} votes of {len(dropped)} users." in done.stderr
    assert "Left out" not in done.stdout
    rest = load_model(tmp_path / "clean")
    assert set(rest.users_) == set(votes.users) - dropped
    by_hand = ISplitLBI().fit(Comparisons.read(file).without(users=list(dropped)))
    np.testing.assert_array_equal(rest.consensus_, by_hand.consensus_)


def test_check_and_evaluate_leave_out_what_fit_does(votes_file):
    shown = invoke("check", votes_file, "--without", "user-01", "--without", "item-02")
    assert "by 11 users on 5 items" in shown.stdout
    assert "votes of 1 user and 1 item." in shown.stdout
    done = invoke("evaluate", votes_file, "--without", "user-01", "--repeats", "1",
                  "--methods", "margin-mle-bt")  # fmt: skip
    assert done.exit_code == 0 and "Left out: " in done.stderr


@pytest.mark.parametrize(
    "name, message",
    [
        (
            "user-1",
            "'user-1' is neither a file, nor a user, nor an item of these votes; the nearest",
        ),
        ("", "'' is neither a file"),
    ],
)
def test_what_cannot_be_left_out_is_one_sentence(
    name, message, votes_file, tmp_path, monkeypatch, capsys
):
    said = refused(monkeypatch, capsys, "fit", votes_file, "-o", tmp_path / "m", "--without", name)
    assert message in " ".join(said.split())
    assert not (tmp_path / "m").exists()


def test_a_part_of_a_folder_need_not_have_everybody_who_is_left_out(votes_file, tmp_path):
    rows = pl.read_csv(votes_file).sort("user")
    (tmp_path / "parts").mkdir()
    for number, some in enumerate((rows[:100], rows[100:])):
        some.write_csv(tmp_path / "parts" / f"{number}.csv")
    shown = invoke("check", tmp_path / "parts", "--without", "user-01", "--without", "user-12")
    assert "by 10 users" in shown.stdout


@pytest.mark.parametrize(
    "content, plain, strict",
    [
        # nothing but notes; a warning, one user with one answer; something serious, all ties
        ("a,x,y,left\na,y,x,left\nb,x,y,right\nb,x,y,left\nb,x,y,tie\n" * 5, 0, 0),
        ("a,x,y,left\nb,x,y,right\nb,y,x,left\nb,x,y,tie\n" * 30, 0, 3),
        ("a,x,y,tie\nb,y,x,tie\n" * 5, 3, 3),
    ],
    ids=["notes", "a warning", "serious"],
)
def test_warnings_have_an_exit_code_of_their_own(content, plain, strict, tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("user,left,right,winner\n" + content)
    assert invoke("check", file).exit_code == plain
    for format in ("table", "json", "csv"):
        assert invoke("check", file, "--strict", "--format", format).exit_code == strict


def test_what_is_spelled_otherwise_is_read_and_told(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("User;Left;Right;Winner\na;x;y;Left\nb;x;y;right\nb;x;y;tie\n")
    done = invoke("fit", file, "-o", tmp_path / "model", "--folds", "2", "--time", "1")
    assert done.exit_code == 0, done.output
    for said in ("The fields are separated by ';'.", "In the header, 'User' is read as 'user'.",
                 "In Winner, 'Left' is read as 'left', 1 time."):  # fmt: skip
        assert said in done.stderr
