"""The experiment on terms runs as a script; here quickly, on votes of the same shape."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isplitlbi.data.outcomes import WINNERS
from isplitlbi.evaluation.simulate import simulate

SCRIPT = Path(__file__).resolve().parents[1] / "experiments" / "terms.py"


def run(*arguments, expected=0):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == expected, done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    votes = simulate(n_users=12, n_items=6, votes_per_user=(20, 40), random_state=0).votes
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "user": votes.users[votes.user],
            "left": votes.items[votes.left],
            "right": votes.items[votes.right],
            "winner": [WINNERS[outcome] for outcome in votes.outcome.tolist()],
            "ranking": rng.integers(9, size=len(votes)),
        }
    )
    frame.write_csv(folder / "age.csv")
    (folder / "splits").mkdir()
    frame.with_columns(
        is_test=pl.Series((rng.random(len(votes)) < 0.2).astype(int)),
        fold=pl.Series(rng.integers(1, 4, len(votes))),
    ).write_csv(folder / "splits" / "age.csv")
    return folder


def test_fixed_and_random_splits_come_as_tables_and_figures(folder, tmp_path):
    file = tmp_path / "figures.json"
    done = run("age", "--data", folder, "--splits", "2", "--json", file)
    rows = json.loads(file.read_text(encoding="utf-8"))
    assert {(row["setting"], row["split"]) for row in rows} == {
        (setting, split) for setting in ("default", "paper") for split in ("fixed", 100, 101)
    }
    for row in rows:
        assert 0 < row["log_loss"] < np.log(3) and 0 <= row["ece"] < 0.5 < row["micro_f1"] < 1
    assert "| log-loss / micro-F1 / ECE | age |" in done.stdout
    assert "| age | paper | 2 |" in done.stdout
    assert done.stderr == ""


def test_studies_that_are_not_there_are_skipped_with_a_line(folder):
    done = run("college", "--data", folder)
    assert "college.csv is not there" in done.stderr


def test_an_unknown_study_is_refused(folder):
    assert "collage: not one of" in run("collage", "--data", folder, expected=2).stderr
