"""The paper's experiments run as a script; here quickly, on votes of the same shape."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.tables import WINNERS

SCRIPT = Path(__file__).resolve().parents[1] / "experiments" / "paper.py"

pytest.importorskip("matplotlib", reason="the figures need matplotlib (pip install .[plots])")


def run(*arguments, expected=0):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == expected, done.stderr
    return done.stdout


def of_method(block, name):
    return next(method for method in block["methods"] if method["name"] == name)


def written(votes, file, **columns):
    frame = pl.DataFrame(
        {
            "user": votes.users[votes.user],
            "left": votes.items[votes.left],
            "right": votes.items[votes.right],
            "winner": [WINNERS[outcome] for outcome in votes.outcome.tolist()],
            **columns,
        }
    )
    file.parent.mkdir(exist_ok=True)
    frame.write_csv(file)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiments")
    votes = simulate(n_users=12, n_items=6, votes_per_user=(20, 40), random_state=0).votes
    rng = np.random.default_rng(0)
    written(votes, folder / "data" / "simulation.csv")
    written(votes, folder / "data" / "wmt16_cze-eng.csv", ranking=rng.integers(9, size=len(votes)))
    written(
        votes, folder / "data" / "splits" / "age.csv",
        is_test=(rng.random(len(votes)) < 0.2).astype(int), fold=rng.integers(1, 6, len(votes)),
    )  # fmt: skip
    printed = run("--quick", "--data", folder / "data", "-o", folder / "results")
    return folder / "results", printed


def test_every_study_that_is_there_has_its_table_and_figures(results):
    folder, _ = results
    assert {file.name for file in folder.iterdir()} == {
        *(f"{study}.{end}" for study in ("simulation", "wmt16_cze-eng")
          for end in ("md", "json")),
        "figures.md",
        *(f"{study}-{figure}.png" for study in ("simulation", "wmt16_cze-eng")
          for figure in ("entries", "distances", "classes")),
        "simulation-supports.png", "simulation-decomposition.png", "example-graph.png",
        "splits.md",
    }  # fmt: skip
    for picture in folder.glob("*.png"):
        assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5_000


def test_the_simulated_study_is_beside_the_published_figures(results):
    folder, _ = results
    text = (folder / "simulation.md").read_text(encoding="utf-8")
    found = json.loads((folder / "simulation.json").read_text(encoding="utf-8"))
    published = {"micro": "0.825 | 0.834 | 0.841 | 0.005", "macro": "0.747 | 0.761 | 0.774 | 0.007"}
    for which, theirs in published.items():
        by_program = found[f"program, time by {which}-F1"]
        assert by_program["settings"]["scoring"] == f"paper_{which}_f1"
        assert by_program["settings"]["rule"] == "threshold"
        scores = of_method(by_program, "isplitlbi-program")[f"paper_{which}_f1"]
        low, middle, high, spread = (f"{each:.3f}" for each in scores.values())
        row = next(
            line for line in text.splitlines()
            if line.startswith(f"| isplitlbi-program | {low} | {middle} |") and theirs in line
        )  # fmt: skip
        assert f"| {high} | {spread} | {theirs} |" in row
    ours, common = (of_method(found["ours"], name) for name in ("isplitlbi", "margin-mle-bt"))
    assert ours["micro_f1"]["median"] > common["micro_f1"]["median"]


def test_the_figures_say_in_numbers_what_they_show(results):
    folder, _ = results
    text = (folder / "figures.md").read_text(encoding="utf-8")
    assert "A study drawn by `isplitlbi.evaluation.simulate.paper_study(0)`" in text
    assert "11 users truly deviate" in text
    for picture in ("example-graph", "simulation-decomposition", "simulation-supports",
                    "simulation-entries", "wmt16_cze-eng-distances"):  # fmt: skip
        assert f"]({picture}.png)" in text


def test_one_ranking_for_all_is_shown_by_both_rules(results):
    folder, _ = results
    text = (folder / "simulation.md").read_text(encoding="utf-8")
    found = json.loads((folder / "simulation.json").read_text(encoding="utf-8"))
    by_map = of_method(found["ours"], "margin-mle-bt")
    by_threshold = of_method(found["program, time by micro-F1"], "margin-mle-bt")
    figures = [by["median"] for rule in (by_map, by_threshold)
               for by in (rule["micro_f1"], rule["macro_f1"])]  # fmt: skip
    assert by_threshold["macro_f1"]["median"] > by_map["macro_f1"]["median"] + 0.02
    assert f"| margin-mle-bt | {' | '.join(f'{each:.3f}' for each in figures)} |" in text


def test_both_estimates_stand_side_by_side(results):
    folder, _ = results
    found = json.loads((folder / "simulation.json").read_text(encoding="utf-8"))
    assert found["sparse"]["settings"]["estimate"] == "sparse"
    text = (folder / "simulation.md").read_text(encoding="utf-8")
    for name, block in (("dense", "ours"), ("sparse", "sparse")):
        scores = of_method(found[block], "isplitlbi")
        medians = (scores[each]["median"] for each in ("micro_f1", "macro_f1", "log_loss"))
        assert f"| {name} | {' | '.join(f'{each:.3f}' for each in medians)} |" in text
    assert "| age | log_loss | sparse |" in (folder / "splits.md").read_text(encoding="utf-8")


def test_rankings_are_kept_whole_where_there_are_any(results):
    folder, _ = results
    grouped = {
        study: json.loads((folder / f"{study}.json").read_text(encoding="utf-8"))["ours"][
            "settings"
        ]
        for study in ("simulation", "wmt16_cze-eng")
    }
    assert grouped["wmt16_cze-eng"]["grouped"] and not grouped["simulation"]["grouped"]
    assert grouped["simulation"]["min_votes"] == 7 and grouped["wmt16_cze-eng"]["min_votes"] == 1


def test_fixed_splits_stand_beside_the_authors_program(results):
    folder, printed = results
    text = (folder / "splits.md").read_text(encoding="utf-8")
    for scoring in ("log_loss", "micro_f1", "macro_f1"):
        assert f"age         authors 0.804 0.723   ours by {scoring}" in printed
        assert f"| age | {scoring} | 0.804 | 0.723 |" in text


def test_an_unknown_study_is_refused(tmp_path):
    run("--quick", "-o", tmp_path / "results", "collage", expected=2)
    assert not (tmp_path / "results").exists()


def test_the_default_fit_is_measured_again_and_the_rest_is_kept(results):
    folder, _ = results
    page, file = (folder / f"simulation.{end}" for end in ("md", "json"))
    text, found = page.read_text(encoding="utf-8"), json.loads(file.read_text(encoding="utf-8"))
    old = json.loads(file.read_text(encoding="utf-8"))
    old["all terms"]["methods"] = []
    old["all terms"]["verdict"] = "An old verdict."
    file.write_text(json.dumps(old), encoding="utf-8")
    outdated = text.replace(found["all terms"]["verdict"], "An old verdict.")
    page.write_text(outdated.replace("| isplitlbi, all terms |", "| isplitlbi, all terms | 9 |"))
    run("simulation", "--all-terms", "--quick", "--data", folder.parent / "data", "-o", folder)
    again = json.loads(file.read_text(encoding="utf-8"))
    scores = of_method(again["all terms"], "isplitlbi")
    assert scores["log_loss"] == of_method(found["all terms"], "isplitlbi")["log_loss"]
    for name in set(found) - {"all terms"}:
        assert again[name] == found[name]
    is_timed = "| isplitlbi, all terms |"  # whose last cell is seconds
    lines = page.read_text(encoding="utf-8").splitlines()
    for line, was in zip(lines, text.splitlines(), strict=True):
        if line.startswith(is_timed):
            assert line.split("|")[:-2] == was.split("|")[:-2]
        else:
            assert line == was
