"""The command line in tests: ways to run a command."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from isplitlbi.cli import main
from isplitlbi.cli.app import app


def invoke(*arguments, **more):
    """Run a command in this process, on a terminal of 80 columns."""
    env = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    return CliRunner().invoke(app, list(map(str, arguments)), env=env, **more)


def output_of(*arguments):
    """Run a command that must succeed; return what it wrote to standard output."""
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def command(*arguments):
    """Return the command of a process of its own."""
    return [sys.executable, "-m", "isplitlbi", *map(str, arguments)]


def run(*arguments, columns=80, **more):
    """Run a command as a person does."""
    return subprocess.run(
        command(*arguments), timeout=120, check=False,
        env={**os.environ, "COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8"},
        **{"capture_output": True, "text": True, "encoding": "utf-8"} | more,
    )  # fmt: skip


def ended(monkeypatch, capsys, *arguments):
    """Run a command in this process to its end; return its exit code and both its outputs."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["isplitlbi", *map(str, arguments)])
    with pytest.raises(SystemExit) as ending:
        main()
    outputs = capsys.readouterr()
    return ending.value.code or 0, outputs.out, outputs.err


def refused(monkeypatch, capsys, *arguments):
    """Run a command that must be refused; return what it wrote to standard error."""
    code, out, err = ended(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    return err


def in_one_line(text):
    """Return a text without its line breaks."""
    return " ".join(text.split())


def width(text):
    """Return the length of the longest line."""
    return max(map(len, text.splitlines()), default=0)
