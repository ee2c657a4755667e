"""The simulated study from votes to a report."""

import pytest

from commands import invoke, refused, run, width

SMALL = ["demo", "--users", "8", "--items", "5"]


@pytest.fixture(scope="module")
def small_demo():
    return invoke(*SMALL)


def test_the_demo_shows_tiers_entries_and_scores(small_demo):
    assert small_demo.exit_code == 0
    for part in (
        "by 8 users on 5 items",
        "Consensus, in tiers",
        "Two items tie when their scores differ by at most",
        "unreliable, ",
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
    assert width(small_demo.stdout) <= 80


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
    assert width(done.stdout) <= 80
    assert "Fitting" not in done.stdout
    assert "Traceback" not in done.stderr


def test_the_demo_ends_with_the_report_and_names_the_file(tmp_path):
    file = tmp_path / "report.html"
    done = invoke(*SMALL, "--report", str(file))
    assert done.exit_code == 0
    last = " ".join(done.stdout.split("Report: ")[1].split())
    assert last.endswith("Open it in a browser.")
    assert file.name in last.replace(" ", "")
    assert "The simulated study of isplitlbi demo" in file.read_text(encoding="utf-8")


def test_the_demo_does_not_begin_where_its_report_would_replace_a_file(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "report.html").write_text("mine")
    said = refused(monkeypatch, capsys, *SMALL, "--report", tmp_path / "report.html")
    assert "exists already" in said
    assert (tmp_path / "report.html").read_text() == "mine"
