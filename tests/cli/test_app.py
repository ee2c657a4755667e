"""What can be asked for, and what the help says."""

import subprocess
import sys

import pytest

import isplitlbi
from commands import invoke, run, width


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
    assert width(shown.stdout) <= 80


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
        "import sys\nfrom isplitlbi.cli.app import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "print(sorted({'numba', 'sklearn', 'polars', 'scipy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines()[-1] == "[]"
