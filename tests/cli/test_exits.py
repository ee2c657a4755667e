"""How a command ends: the sentence, the exit code, and what only a process can show."""

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import command, ended, run
from isplitlbi.cli import exits
from isplitlbi.errors import (
    InvalidSetting,
    InvalidVotes,
    ISplitLBIError,
    MissingLibrary,
    PathFailed,
    PlaceTaken,
    Setting,
)


def end_with(error):
    """Run a command that raises an error."""

    def fail():
        raise error

    exits.run(fail)


def end_of(capsys, error):
    """Return how a command ends that raises an error: its exit code and its last words."""
    with pytest.raises(SystemExit) as ending:
        end_with(error)
    shown = capsys.readouterr()
    assert shown.out == ""
    return ending.value.code, shown.err


@pytest.mark.parametrize(
    "kind", [ISplitLBIError, InvalidSetting, InvalidVotes, MissingLibrary, PathFailed, PlaceTaken]
)
def test_a_refusal_is_one_sentence_that_speaks_the_command_line(capsys, kind):
    error = kind("row 1: 'draw' is unknown. Map it with ", Setting("labels", {"draw": "tie"}), ".")
    sentence = "isplitlbi: row 1: 'draw' is unknown. Map it with --label draw=tie.\n"
    assert end_of(capsys, error) == (2, sentence)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (FileNotFoundError(2, "No such file or directory", "v.csv"),
         "v.csv: No such file or directory."),
        (OSError(28, "No space left on device"), "the system: No space left on device."),
        (MemoryError(), "there is not enough memory for this."),
    ],
)  # fmt: skip
def test_what_the_outside_world_refuses_is_one_sentence(capsys, error, sentence):
    assert end_of(capsys, error) == (2, f"isplitlbi: {sentence}\n")


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), SystemExit(130)])
def test_an_interrupt_is_one_sentence(capsys, ending):
    assert end_of(capsys, ending) == (130, "isplitlbi: interrupted.\n")


def test_an_interrupt_while_python_runs_a_text_has_the_same_exit_code(tmp_path):
    (tmp_path / "interrupted.py").write_text(
        "from isplitlbi.cli import exits\nexits.run(lambda: exec('raise KeyboardInterrupt'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (exits.INTERRUPTED, "isplitlbi: interrupted.\n")


def test_an_interrupt_says_how_to_go_on(capsys):
    ending = exits.Interrupted("go on with --resume.")
    assert end_of(capsys, ending) == (130, "isplitlbi: interrupted; go on with --resume.\n")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_what_asks_a_process_to_end_is_told_as_an_interrupt_is(capsys, name):
    number = getattr(signal, name, None)
    if number is None or sys.platform == "win32":
        pytest.skip("there is no such signal here")
    before, cleaned = signal.signal(number, signal.SIG_DFL), []

    def work():
        try:
            signal.raise_signal(number)
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)  # who asks again does not disturb the tidying up
            cleaned.append(True)

    with pytest.raises(SystemExit) as ending:
        exits.run(work)
    assert (ending.value.code, cleaned) == (128 + number, [True])
    assert capsys.readouterr().err == "isplitlbi: interrupted.\n"
    assert signal.signal(number, before) is signal.SIG_DFL


def test_what_is_to_survive_a_closed_terminal_does(capsys):
    if not hasattr(signal, "SIGHUP"):
        pytest.skip("there is no such signal here")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    exits.run(lambda: signal.raise_signal(signal.SIGHUP))
    assert signal.signal(signal.SIGHUP, before) is signal.SIG_IGN
    assert capsys.readouterr().err == ""


def test_closed_outputs_are_written_nowhere(monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    exits.run(lambda: sys.stdout.write("result"))
    with pytest.raises(SystemExit) as ending:
        end_with(InvalidSetting("no."))
    assert ending.value.code == 2
    for output in (sys.stdout, sys.stderr):
        output.close()


class Full(io.StringIO):
    """An output that cannot be written, which shows when what was held back is written."""

    def flush(self):
        if self.getvalue():
            raise OSError(28, "No space left on device")


def test_what_was_held_back_and_cannot_be_written_is_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(SystemExit) as ending:
        exits.run(lambda: print("result"))
    assert ending.value.code == 2
    assert capsys.readouterr().err == "isplitlbi: the system: No space left on device.\n"
    assert sys.stdout is None  # so that Python does not try again


def test_a_sign_that_the_output_has_not_is_named_and_tables_for_people_show_its_number(
    tmp_path, monkeypatch, capsys
):
    file = tmp_path / "votes.csv"
    file.write_text("user,left,right,winner\nann,чай,milk,left\nbob,milk,чай,tie\n", "utf-8")
    fit = ("fit", file, "--time", "0.1", "--quiet", "--force", "-o", tmp_path / "model")
    outputs = []
    for arguments in (fit, ("rank", tmp_path / "model", "--format", "csv")):
        outputs.append(io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
        monkeypatch.setattr(sys, "stdout", outputs[-1])
        code, _, err = ended(monkeypatch, capsys, *arguments)
    assert r"\u0447\u0430\u0439" in outputs[0].buffer.getvalue().decode("ascii")
    assert code == 2
    assert err == (
        r"isplitlbi: the output is written in ascii, which has no '\u0447'; set "
        "PYTHONIOENCODING=utf-8.\n"
    )


def test_other_exit_codes_are_left_alone(capsys):
    assert end_of(capsys, SystemExit(1)) == (1, "")


@pytest.mark.parametrize("kind", [ValueError, TypeError, IndexError, ImportError, RuntimeError])
def test_any_other_error_is_a_bug_with_its_traceback(capsys, kind):
    code, shown = end_of(capsys, kind("operands could not be broadcast together"))
    assert code == 1
    *lines, last = shown.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == f"{kind.__name__}: operands could not be broadcast together"
    assert last.startswith("isplitlbi: this is a bug in isplitlbi")


def test_a_bug_inside_a_command_shows_its_traceback(tmp_path, monkeypatch, capsys):
    def broken(*_, **__):
        raise ValueError("shapes (3,) and (4,) not aligned")

    monkeypatch.setattr("isplitlbi.data.readers.read_votes", broken)
    code, out, err = ended(monkeypatch, capsys, "check", tmp_path / "votes.csv")
    assert (code, out) == (1, "")
    assert err.startswith("Traceback")
    assert "ValueError: shapes (3,) and (4,) not aligned\nisplitlbi: this is a bug" in err


# --- what only a process can show ----------------------------------------------------------


def test_a_reader_that_has_seen_enough_is_no_error(model_folder, votes_file):
    shell = f"{shlex.join(command('predict', model_folder, votes_file))} | head -n 2"
    done = subprocess.run(
        shell, shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    assert len(done.stdout.splitlines()) == 2
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_reads_nothing_is_no_error(model_folder):
    shell = f"{shlex.join(command('rank', model_folder, '--format', 'csv'))}; echo $? >&2"
    done = subprocess.run(
        ["sh", "-c", f"{{ {shell}; }} | true"], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.stderr == "0\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_that_cannot_be_written_is_said_so(model_folder):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("rank", model_folder, "--format", "csv"), stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "isplitlbi: the system: No space left on device.\n"


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
