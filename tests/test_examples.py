"""Examples run as they stand."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_a_live_study_ends_with_what_was_saved():
    small = ("--items", "6", "--users", "8", "--sure", "0.6")
    done = subprocess.run(
        [sys.executable, EXAMPLES / "live_study.py", *small],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert "votes by choosing" in last
    assert "A balanced first design: 24 votes." in done.stdout
    assert done.stdout.count("is first, which is") == 2
