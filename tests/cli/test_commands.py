"""The command line, as a person meets it."""

import gzip
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

import isplitlbi
from isplitlbi.cli.commands import app, main
from isplitlbi.evaluation.protocol import METHODS, METRICS, Evaluation
from isplitlbi.output.terminal import print_evaluation

SMALL = ["demo", "--users", "8", "--items", "5"]


def invoke(*arguments):
    """Run a command in this process, on a terminal of 80 columns."""
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})


def run(*arguments, columns=80):
    """Run a command as a person does."""
    return subprocess.run(
        [sys.executable, "-m", "isplitlbi", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8"},
    )


@pytest.fixture(scope="module")
def small_demo():
    return invoke(*SMALL)


def test_the_demo_shows_tiers_entries_and_scores(small_demo):
    assert small_demo.exit_code == 0
    for part in (
        "by 8 users on 5 items",
        "Consensus, in tiers",
        "Two items tie when their scores differ by at most",
        "Abnormal users, in order of leaving",
        "truly abnormal users found",
        "On held-out votes",
        "consensus only",
        "iSplit LBI",
        "Fitted in",
    ):
        assert part in " ".join(small_demo.stdout.split())


def test_the_demo_ranks_every_item_once(small_demo):
    table = small_demo.stdout.split("Consensus, in tiers")[1].split("Two items tie")[0]
    words = table.replace(",", " ").split()
    assert sorted(word for word in words if word.startswith("item-")) == [
        f"item-0{number}" for number in range(1, 6)
    ]


def test_the_demo_fits_80_columns(small_demo):
    assert max(map(len, small_demo.stdout.splitlines())) <= 80


def test_the_demo_depends_on_its_seed_alone(small_demo):
    def without_seconds(text):
        return text.split("Fitted in")[0]

    again, other = invoke(*SMALL, "--seed", "0"), invoke(*SMALL, "--seed", "3")
    assert without_seconds(again.stdout) == without_seconds(small_demo.stdout)
    assert without_seconds(other.stdout) != without_seconds(small_demo.stdout)


def test_the_module_runs_as_a_command_and_keeps_results_and_progress_apart():
    done = run(*SMALL)
    assert done.returncode == 0, done.stderr
    assert "Consensus, in tiers" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Fitting" not in done.stdout
    assert "Traceback" not in done.stderr


def test_the_version_is_shown():
    shown = invoke("--version")
    assert (shown.exit_code, shown.stdout) == (0, f"isplitlbi {isplitlbi.__version__}\n")


def test_the_demo_ends_with_the_report_and_names_the_file(tmp_path):
    file = tmp_path / "report.html"
    done = invoke(*SMALL, "--report", str(file))
    assert done.exit_code == 0
    last = " ".join(done.stdout.split("Report: ")[1].split())
    assert last.endswith("Open it in a browser.")
    assert file.name in last.replace(" ", "")
    assert "The simulated study of isplitlbi demo" in file.read_text(encoding="utf-8")


def test_the_demo_does_not_begin_where_its_report_would_replace_a_file(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    done = run(*SMALL, "--report", str(tmp_path / "report.html"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "exists already" in done.stderr
    assert (tmp_path / "report.html").read_text() == "mine"


@pytest.mark.parametrize("arguments", [("--help",), ("demo", "--help")])
def test_help_is_shown_and_lists_the_options(arguments):
    shown = invoke(*arguments)
    assert shown.exit_code == 0
    assert "Usage: " in shown.stdout
    wanted = ["--seed", "--users", "--items"] if "demo" in arguments else ["--version", "demo"]
    assert all(word in shown.stdout for word in wanted)
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_without_arguments_the_help_is_shown():
    assert "Usage: " in invoke().output
    assert "demo" in invoke().output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("demo", "--colour", "red"), "No such option: --colour"),
        (("demo", "--users", "many"), "Invalid value for '--users'"),
        (("demo", "--users", "1"), "Invalid value for '--users'"),
        (("dance",), "No such command 'dance'"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_clear_line(arguments, complaint):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert sum(complaint in line for line in done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_help_comes_without_loading_a_slow_library():
    code = (
        "import sys\nfrom isplitlbi.cli.commands import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "print(sorted({'numba', 'sklearn', 'polars', 'scipy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines()[-1] == "[]"


# --- from a file to an answer --------------------------------------------------------------


def command(*arguments):
    return [sys.executable, "-m", "isplitlbi", *map(str, arguments)]


def content(folder):
    """Return all that a model folder holds, but for when it was made."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def votes_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("votes") / "votes.csv"
    done = invoke("simulate", "-o", str(file), "--users", "12", "--items", "6", "--least", "30",
                  "--most", "40", "--truth", str(file.with_name("truth.csv")))  # fmt: skip
    assert done.exit_code == 0, done.output
    return file


@pytest.fixture(scope="module")
def model_folder(votes_file):
    folder = votes_file.with_name("model")
    done = invoke("fit", str(votes_file), "-o", str(folder))
    assert done.exit_code == 0, done.output
    return folder


def test_simulated_votes_come_with_their_truth(votes_file):
    votes, truth = pl.read_csv(votes_file), pl.read_csv(votes_file.with_name("truth.csv"))
    assert votes.columns == ["user", "left", "right", "winner"]
    assert set(votes["winner"]) == {"left", "right", "tie"}
    assert truth.columns == ["user", "abnormal", "kind"]
    assert set(votes["user"]) == set(truth["user"])
    piped = invoke("simulate", "-o", "-", "--users", "12", "--items", "6", "--least", "30",
                   "--most", "40")  # fmt: skip
    assert piped.stdout == votes_file.read_text()


def test_the_summary_of_a_fit_says_where_to_go_on(votes_file, tmp_path):
    shown = invoke("fit", str(votes_file), "-o", str(tmp_path / "m"))
    for part in (
        "Fitted in",
        "Consensus, in tiers",
        "are abnormal beyond chance",
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


def test_the_report_is_that_of_the_model_and_replaces_nothing_unasked(model_folder, tmp_path):
    from isplitlbi.output.report import TITLE, render
    from isplitlbi.storage import load_model

    file = tmp_path / "report.html"
    done = invoke("report", str(model_folder), "-o", str(file))
    assert done.exit_code == 0, done.output
    assert "".join(done.stdout.split()).startswith(f"Report:{file}")
    assert file.read_text(encoding="utf-8") == render(load_model(model_folder), TITLE)
    again = run("report", str(model_folder), "-o", str(file), "--title", "Mine")
    assert again.returncode == 2
    assert (
        again.stderr == f"isplitlbi: {file} exists already; choose another name or use --force.\n"
    )
    assert "Mine" not in file.read_text(encoding="utf-8")
    forced = invoke("report", str(model_folder), "-o", str(file), "--title", "Mine", "--force")
    assert forced.exit_code == 0
    assert "<h1>Mine</h1>" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("format", ["csv", "json"])
def test_every_result_can_be_piped(model_folder, votes_file, format):
    columns = {
        ("rank",): ["tier", "item", "score"],
        ("rank", "--user", "user-01"): ["tier", "item", "score", "compared"],
        ("abnormal",): [
            "user",
            "votes",
            "entry_time",
            "entry_rank",
            "distance",
            "p_value",
            "q_value",
            "abnormal",
            "kind",
            "quality",
            "explanation",
        ],
        ("predict", votes_file): ["user", "left", "right", "winner", "p_left", "p_tie", "p_right"],
        ("recommend", "--same-as", "item-01"): ["item", "score", "difference"],
    }
    for (name, *rest), expected in columns.items():
        shown = invoke(name, str(model_folder), *map(str, rest), "--format", format)
        assert shown.exit_code == 0, shown.output
        if format == "csv":
            table = pl.read_csv(io.StringIO(shown.stdout))
        else:
            table = pl.DataFrame(json.loads(shown.stdout), infer_schema_length=None)
        if len(table):
            assert table.columns == expected
    checked = json.loads(invoke("check", str(votes_file), "--format", "json").stdout)
    assert checked["summary"]["users"] == 12


def test_tables_for_people_fit_80_columns(model_folder, votes_file):
    for name, *rest in (
        ("rank",), ("rank", "--user", "user-01"), ("abnormal", "--all"),
        ("recommend", "--better-than", "item-01"),
        ("predict", str(votes_file), "--format", "table"),
    ):  # fmt: skip
        shown = invoke(name, str(model_folder), *rest)
        assert shown.exit_code == 0, shown.output
        assert max(map(len, shown.stdout.splitlines())) <= 80
    checked = invoke("check", str(votes_file))
    assert max(map(len, checked.stdout.splitlines())) <= 80


def test_unknown_users_are_taken_for_the_consensus_and_said_to_be(model_folder, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,left,right\nnobody,item-01,item-02\nuser-01,item-01,item-02\n")
    done = subprocess.run(
        command("predict", model_folder, pairs),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    assert "taken for the consensus: nobody." in done.stderr
    assert len(done.stdout.splitlines()) == 3


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


# --- what only a process can show ----------------------------------------------------------


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


def test_a_killed_fit_goes_on_to_the_same_model(long_study, tmp_path):
    (_, errors), code = interrupted(signal.SIGKILL, long_study, tmp_path / "model")
    assert (errors, code) == ("", -signal.SIGKILL)
    assert [entry.name for entry in tmp_path.iterdir()] == [".model.unfinished"]
    fit = ("fit", str(long_study), "--folds", "2", "-o")
    refused = run(*fit, str(tmp_path / "model"))
    assert refused.returncode == 2
    assert "was interrupted; go on with --resume" in refused.stderr
    other = run(*fit, str(tmp_path / "model"), "--resume", "--nu", "2")
    assert other.returncode == 2
    assert "belong to other votes or settings" in other.stderr

    resumed = run(*fit, str(tmp_path / "model"), "--resume", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    whole = run(*fit, str(tmp_path / "whole"), "--quiet")
    assert whole.returncode == 0, whole.stderr
    assert content(tmp_path / "model") == content(tmp_path / "whole")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model", "whole"]


def test_control_c_ends_with_one_line_and_the_fit_can_go_on(long_study, tmp_path):
    (_, errors), code = interrupted(signal.SIGINT, long_study, tmp_path / "model")
    assert code == 130
    assert errors == "isplitlbi: interrupted; go on with the same command and --resume.\n"
    assert [entry.name for entry in tmp_path.iterdir()] == [".model.unfinished"]


def test_a_reader_that_has_seen_enough_is_no_error(model_folder, votes_file):
    shell = f"{shlex.join(command('predict', model_folder, votes_file))} | head -n 2"
    done = subprocess.run(
        shell, shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_that_cannot_be_written_is_said_so(model_folder):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("rank", model_folder, "--format", "csv"), stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


@pytest.fixture
def small_disk(tmp_path):
    """Mount a disk of one hundred kilobytes, where that is allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(place)]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small disk is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_one_sentence_and_nothing_half_made(votes_file, small_disk):
    done = run("fit", str(votes_file), "-o", str(small_disk / "model"), "--quiet")
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (small_disk / "model").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_one_sentence(votes_file, tmp_path):
    tmp_path.chmod(0o500)
    done = run("fit", str(votes_file), "-o", str(tmp_path / "model"), "--quiet")
    assert done.returncode == 2
    assert "Permission denied" in done.stderr
    assert done.stderr.count("\n") == 1


# --- whether it pays -----------------------------------------------------------------------

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
    for title in ("F1 (standard)", "Log-loss, the paper's own F1s, seconds",
                  "Precision and recall by class, medians"):  # fmt: skip
        start = [line.strip() for line in lines].index(title)
        block = lines[start : lines.index("", start)]
        assert [line.split()[0] for line in block[-6:]] == ["isplitlbi", "lbi", *QUICK_NAMES]
    verdict = " ".join(shown.split())[-300:]
    assert "Individual rankings" in verdict
    assert "of the held-out votes, margin-mle-bt" in verdict
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
    assert "predicts best" in found["verdict"]


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
    assert max(map(len, shown.splitlines())) <= 80
    assert " ".join(shown.split()).endswith("of the held-out votes.")


def test_all_methods_and_long_times_fit_80_columns():
    methods = list(METHODS)
    rows = [
        {"method": method, "repeat": repeat} | dict.fromkeys(METRICS, 0.123 + repeat / 2)
        | {"seconds": 12345.678, "log_loss": None if "alpha" in method else 12.345}
        for method in methods for repeat in range(2)
    ]  # fmt: skip
    found = Evaluation({"repeats": 2, "test_share": 0.2}, pl.DataFrame(rows), {})
    out = io.StringIO()
    print_evaluation(Console(file=out, width=80), found, with_reliability=True)
    shown = out.getvalue()
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    for method in methods:
        assert [line.split()[0] for line in shown.splitlines() if line].count(method) == 3
    assert shown.count("12345.678") == len(methods)


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


def refused(monkeypatch, capsys, *arguments):
    """Run a command that must fail; return what it wrote to standard error."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["isplitlbi", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (2, "")
    assert "Traceback" not in shown.err
    return shown.err


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
