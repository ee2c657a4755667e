"""The benchmarks run; what they measure is in docs/benchmarks.md."""

import importlib
import os
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import isplitlbi
from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

FIGURES = re.compile(
    r"recovery: mean AUC (?P<auc>[01]\.\d{4}), min AUC (?P<least>[01]\.\d{4}), "
    r"mean gain in micro-F1 (?P<gain>-?0\.\d{4})"
)


def run(script, *arguments, **environment):
    return subprocess.run(
        [sys.executable, BENCHMARKS / script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture
def run_here(monkeypatch, capsys):
    """Run a script in this process, where all that it imports is loaded already."""

    def run(script, *arguments, **environment):
        with monkeypatch.context() as patch:
            patch.syspath_prepend(BENCHMARKS)
            patch.setattr(sys, "argv", [str(BENCHMARKS / script), *arguments])
            for name, value in environment.items():
                patch.setenv(name, value)
            before = set(sys.modules)
            try:
                runpy.run_path(str(BENCHMARKS / script), run_name="__main__")
                code = 0
            except SystemExit as ended:
                code = ended.code or 0
            for name in set(sys.modules) - before:
                if Path(getattr(sys.modules[name], "__file__", None) or "").parent == BENCHMARKS:
                    del sys.modules[name]  # the next one may find other data
        said = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=said.out, stderr=said.err)

    return run


# This script runs in a process of its own, as people do it.
@pytest.mark.parametrize("solver", ["implicit", "explicit"])
def test_recovery_prints_a_table_and_a_last_line_with_the_figures(solver, run_here):
    start = run if solver == "implicit" else run_here
    done = start("recovery.py", "--seeds", "1", "--quick", "--solver", solver)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("seed 0 ") for line in lines) == 1
    figures = FIGURES.fullmatch(lines[-1])
    assert figures is not None, lines[-1]
    assert float(figures["auc"]) == float(figures["least"]) >= 0.9


def test_recovery_refuses_to_run_on_no_seed(run_here):
    done = run_here("recovery.py", "--seeds", "0")
    assert done.returncode == 2
    assert "--seeds and --splits must be at least 1." in done.stderr


def test_absent_data_is_skipped_with_one_line_each(run_here, tmp_path):
    done = run_here("data.py", ISPLITLBI_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert all("skipped" in line and "ISPLITLBI_DATA" in line for line in lines)


def test_every_kind_of_simulated_user_votes_as_its_row_says():
    done = run("people.py")
    assert done.returncode == 0, done.stderr
    header, *lines = done.stdout.splitlines()
    assert header.split()[:5] == ["kind", "left", "tie", "right", "agrees"]
    rows = {line[:19].strip(): line[19:45].split() for line in lines}
    assert len(rows) == 15
    assert rows["always-left"][:3] == ["1.00", "0.00", "0.00"]
    assert rows["always-tie"] == ["0.00", "1.00", "0.00", "-"]
    assert rows["never-tie"][1] == "0.00"
    assert rows["copies"][3] == "1.00"
    agrees = {kind: float(rows[kind][3]) for kind in rows if kind != "always-tie"}
    assert agrees["reversed"] < 0.3 < 0.4 < agrees["random"] < 0.6 < agrees["blunter"]
    assert agrees["blunter"] < agrees["ordinary"] < agrees["sharper"]


def test_the_verdict_is_not_measured_on_one_study(run_here):
    done = run_here("verdict.py", "--studies", "1")
    assert done.returncode == 2
    assert "--studies must be at least 2." in done.stderr


def test_comparing_runs_the_lines_asked_for(run_here):
    done = run_here("comparing.py", "--studies", "1", "--cell", "other users: 20 users, alike")
    assert done.returncode == 0, done.stderr
    title, figures = done.stdout.strip().split(", alike: ")
    assert title == "other users: 20 users"
    names = [figure.rsplit(" ", 1)[0] for figure in figures.split(", ")]
    assert names == ["interval holds 0", "any item changed", "rank holds 0", "width"]


@pytest.fixture
def groups(monkeypatch):
    """The script that puts our groups beside the intervals of the peers."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("groups")


def test_a_peer_that_is_not_installed_is_left_out_and_named(groups, monkeypatch, capsys):
    monkeypatch.setattr(groups, "find_spec", lambda name: None if "arena" in name else name)
    assert groups.installed() == ["isplitlbi", "evalica"]
    assert capsys.readouterr().out.splitlines() == [
        "arena-rank is not installed and left out. Install it with: pip install arena-rank"
    ]


def test_what_is_told_apart_is_what_the_leaderboard_says(groups):
    votes = groups.study("alike", 20, 0)
    told = groups.of_isplitlbi(votes, 0)
    board = ISplitLBI(with_tests=False).fit(votes).leaderboard()
    place = np.searchsorted(votes.items, board.items)
    assert told.ranked.all()
    assert (1 + told.better.sum(axis=0))[place].tolist() == board.rank_low.tolist()
    assert (len(place) - told.better.sum(axis=1))[place].tolist() == board.rank_high.tolist()
    apart = groups._by_overlap(np.array([0.0, 2.0, 2.5]), np.array([1.0, 3.0, 4.0])).better
    assert np.argwhere(apart).tolist() == [[1, 0], [2, 0]]


def test_abnormal_does_not_pass_where_nothing_was_measured(run_here):
    done = run_here("abnormal.py", "--only", "calibration", "--cell", "no such study")
    assert done.returncode == 1
    assert done.stdout.startswith("nothing was measured")


def test_bulk_predicts_files_of_all_formats():
    done = run("bulk.py", "--pairs", "300", "600", "--users", "20", "--items", "8")
    assert done.returncode == 0, done.stdout + done.stderr
    _, *lines, last = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [way, n] for way in ("csv", "csv.gz", "jsonl", "parquet") for n in ("300", "600")
    ]
    assert last.startswith("bulk: at most 1.")


def test_the_intervals_of_a_crowd_are_measured(run_here):
    done = run_here("crowd.py", "--studies", "8", "--draws", "0", "--items", "8", "--votes", "600")
    assert done.returncode in (0, 1), done.stderr
    header, single, groups, last = done.stdout.splitlines()
    assert header.split()[0] == "held"
    assert 0.85 < float(single.split()[2]) <= 1.0
    assert float(groups.split()[2]) < float(groups.split()[1])  # which takes them for single
    assert last.startswith("crowd: ")


def test_an_update_is_measured_beside_a_fit(run_here):
    done = run_here("placing.py", "--only", "update", "--votes", "3000")
    assert done.returncode in (0, 1), done.stderr
    header, *lines = done.stdout.splitlines()
    assert header.startswith("Comparisons: 3,000 votes")
    assert [line.split(":")[0] for line in lines] == ["without tests", "with tests"]
    assert all("consensus off by 0.0e+00" in line for line in lines)


def test_agreement_is_timed_and_data_that_is_absent_is_skipped(run_here, tmp_path):
    arguments = ("--only", "alpha", "time", "--votes", "500", "1000")
    done = run_here("agreement.py", *arguments, ISPLITLBI_DATA=str(tmp_path))
    assert done.returncode == 1, done.stderr  # nothing was compared
    assert "1,000 votes" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("agreement: no alpha compared, time grows ")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what a process holds is in /proc")
def test_what_a_process_holds_after_many_fits_is_measured(run_here):
    done = run_here("soak.py", "--only", "fits", "--fits", "3")
    assert done.returncode in (0, 1), done.stderr
    assert [line.split(":")[1].strip() for line in done.stdout.splitlines()[:3]] == [
        "kB of memory",
        "open files",
        "threads",
    ]
    assert done.stdout.splitlines()[-1].startswith("fits: 3 checks, ")


@pytest.mark.parametrize("which", [("160", "--only-fits"), ("40", "--first-seed", "50000")])
def test_no_small_study_breaks_a_fit_or_what_is_asked_of_it_whatever_its_settings(which, run_here):
    done = run_here("fuzz.py", "--most-votes", "20", "--studies", *which)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"fuzz: {which[0]} studies, ") and last.endswith("; 0 failed")


def test_large_studies_are_measured_by_the_command_line():
    done = run("large.py", "--only", "users", "ids", "--commands", "check", "--share", "0.005")
    assert done.returncode == 0, done.stdout + done.stderr
    _, *lines, last = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["users", "check"], ["ids", "check"]]
    assert last == "large: 2 commands, 0 beyond what they may take"


def test_the_page_on_clusters_shows_every_outage_that_is_tried(run_here, monkeypatch):
    pytest.importorskip("distributed", reason="needs dask (pip install .[dask])")
    done = run_here("outages.py", "--only", "an earthquake")
    assert done.returncode == 2
    assert "there is no outage 'an earthquake'" in done.stderr
    monkeypatch.syspath_prepend(BENCHMARKS)
    outages = importlib.import_module("outages")
    names = [*(each.name for each in outages.outages(1.0)), *outages.OTHERS]
    page = (BENCHMARKS.parent / "docs" / "scaling.md").read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if line.startswith(tuple(names))]
    assert [line[:54].rstrip() for line in shown] == names
    assert not any("MISSED" in line for line in shown)


def test_files_in_which_anything_stands_are_read_or_refused(run_here):
    done = run_here("hostile_files.py", "--files", "40")
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("hostile files: 40 files, ") and " 0 failed, at most " in last


def test_an_attack_of_one_account_is_measured_in_all_ways(run_here):
    done = run_here("attack.py", "--studies", "1", "--cell", "promote 1", "--votes", "640")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100
    rows = {line[15:36].strip(): line[36:].split() for line in done.stdout.splitlines()}
    assert rows["one ranking"] == [rows["ours"][0], "1.0", "25"]
    assert float(rows["ours"][1]) > 3.0
    assert rows["hostile on a list"] == ["-", "1.00"]
    assert rows["one, no devoted"] == [rows["one ranking"][0]] * 2 + ["-"]
    assert rows["hostile among them"] == ["0.00", "1.00"]
    assert "promote     1  kinds with 640 votes: promoter 1" in done.stdout


def test_an_attack_that_is_unknown_is_not_passed_in_silence(run_here):
    done = run_here("attack.py", "--cell", "no such attack")
    assert done.returncode == 1
    assert done.stdout.startswith("nothing was measured")


# --- the scale of scores ---------------------------------------------------------------------


@pytest.fixture
def scale(monkeypatch):
    """The script that measures the scale of scores."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("right_scale")


@pytest.fixture
def votes_in_a_folder(tmp_path):
    """One file of votes, of which every fifth is a test vote, one of them on a new item."""
    votes = simulate(
        n_users=8, n_items=6, votes_per_user=(40, 40), score_sd=1.5, taste_sd=0.5,
        abnormal_share=0.0, threshold=0.5, random_state=3,
    ).votes  # fmt: skip
    left = votes.items[votes.left].astype(object)
    is_test = np.arange(len(votes)) % 5 == 0
    left[0] = "new"
    frame = {
        "user": votes.users[votes.user].tolist(),
        "left": left.tolist(),
        "right": votes.items[votes.right].tolist(),
        "winner": np.array(["tie", "left", "right"])[votes.outcome].tolist(),
        "is_test": is_test.astype(int),
    }
    pl.DataFrame(frame).write_csv(tmp_path / "study.csv")
    (tmp_path / "README.md").write_text("no votes", encoding="utf-8")
    return tmp_path


def test_test_votes_of_every_file_are_scored_beside_one_ranking(run_here, votes_in_a_folder):
    folder = str(votes_in_a_folder)
    done = run_here("right_scale.py", "--only", "judgement", "splits", "--data", folder)
    assert done.returncode in (0, 1), done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100
    header, judged, means, worst, again, row, _ = done.stdout.splitlines()
    assert header.split()[:3] == ["users", "items", "votes"] and header == again
    assert judged == row
    name, users, items, votes, ours, f1, temperature, ridge, more = row.split()
    assert [name, users, items, votes] == ["study", "8", "6", "319"]  # not that on a new item
    assert 0.3 < float(ours) < 1.1 and 0.3 < float(ridge) < 1.1 and 0.0 < float(f1) < 1.0
    assert float(more) == pytest.approx(float(ours) - float(ridge), abs=1.1e-4)
    assert 0.1 < float(temperature) < 10.0
    assert means.startswith("judgement, all files (1): log-loss ")
    assert "judgement: at worst" in worst and "(study)" in worst


def test_users_who_were_held_out_are_predicted(run_here, votes_in_a_folder):
    arguments = ("--only", "whole-users", "--splits", "2", "--data", str(votes_in_a_folder))
    done = run_here("right_scale.py", *arguments)
    assert done.returncode in (0, 1), done.stderr
    _, row, last = done.stdout.splitlines()
    name, splits, *numbers = row.split()
    assert (name, splits, len(numbers)) == ("study", "2", 6)
    assert np.isfinite([float(each) for each in numbers]).all()
    assert last.startswith("whole users: ")


def test_two_versions_are_timed_in_turn(run_here, votes_in_a_folder):
    code = str(Path(isplitlbi.__file__).parents[1])
    arguments = ("--only", "time", "--runs", "1", "--old", code, "--data", str(votes_in_a_folder))
    done = run_here("right_scale.py", *arguments)
    assert done.returncode in (0, 1), done.stderr
    assert float(done.stdout.splitlines()[1].split()[3]) > 0.0
    assert run_here("right_scale.py", "--only", "time").returncode == 2


def test_the_error_of_the_consensus_is_measured_in_every_cell(run_here):
    done = run_here("right_scale.py", "--only", "consensus", "--seeds", "1-3")
    assert done.returncode == 0, done.stderr  # no cell has studies enough to be judged
    _, *rows, last = done.stdout.splitlines()
    assert sum(int(row[28:36]) for row in rows) == 3
    assert last.startswith("consensus: ")


def test_files_that_are_not_there_are_told_and_nothing_is_met(run_here, tmp_path):
    done = run_here("right_scale.py", "--only", "judgement", "splits", ISPLITLBI_DATA=str(tmp_path))
    assert done.returncode == 1
    assert done.stdout.count("skipped, no files; name their folder with --data.") == 2


def test_the_mean_user_of_users_who_are_all_alike_is_the_consensus(scale):
    votes = simulate(n_users=6, n_items=5, votes_per_user=(30, 30), random_state=0).votes
    model = ISplitLBI(with_tests=False).fit(votes)
    flat = replace(model.parameters_, deviation=np.zeros_like(model.parameters_.deviation))
    model.parameters_ = flat
    assert scale.slopes(model) == pytest.approx([1.0, 1.0, 1.0])


def test_weights_that_break_a_fit_are_a_row_and_no_traceback(scale, monkeypatch, capsys):
    found = iter([(np.ones(2), np.ones(2)), (np.ones(2), np.ones(2) + 1e-12)])
    broken = ("  PathFailed: infinite",) * 2
    monkeypatch.setattr(scale, "weighted", lambda *_: next(found, broken))
    monkeypatch.setattr(scale, "FACTORS", (1e6,))
    assert not scale.weights(SimpleNamespace(seeds=range(1), jobs=1))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["even", "1e+06", "0.0e+00", "1.0e-12"]
    assert lines[2].split() == ["uneven", "1e+06", "PathFailed:", "infinite"]
    assert lines[-1] == "weights: results differ by inf: NOT MET"


def test_probabilities_that_come_true_have_no_calibration_error(scale):
    outcome = np.repeat([1, 0, -1], [50, 30, 20]).astype(np.int8)
    right = np.tile([0.5, 0.3, 0.2], (100, 1))
    assert scale.calibration_error(outcome, right, n_bins=3) == pytest.approx(0.0)
    forced = np.repeat([1, -1], [60, 40]).astype(np.int8)  # nobody ties: two bins, of .1 and of .9
    too_sure = np.tile([0.9, 0.0, 0.1], (100, 1))
    assert scale.calibration_error(forced, too_sure, n_bins=2) == pytest.approx(0.3)


def test_near_pairs_are_asked_of_the_same_users_on_items_that_lie_close(scale):
    study = simulate(
        n_users=6, n_items=60, votes_per_user=(60, 60), threshold=None, abnormal_share=0.0,
        score_sd=2.0, random_state=1,
    )  # fmt: skip
    near = scale.near_pairs(study, np.random.default_rng(0))
    assert np.array_equal(near.votes_per_user, study.votes.votes_per_user)
    scores = dict(zip(study.votes.items, study.truth.scores, strict=True))
    of_items = np.array([scores[item] for item in near.items])
    apart = np.abs(of_items[near.left] - of_items[near.right])
    of_all = study.truth.scores
    assert apart.mean() < 0.7 * np.abs(of_all[study.votes.left] - of_all[study.votes.right]).mean()
    assert set(near.outcome) == {1, -1}
