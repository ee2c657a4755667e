"""The command line, as a person meets it."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import isplitlbi
from isplitlbi.cli import app

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
        "Users who left the consensus, in order",
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
        "import sys\nfrom isplitlbi.cli import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "print(sorted({'numba', 'sklearn', 'polars', 'scipy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines()[-1] == "[]"
