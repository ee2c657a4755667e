"""Files of votes without users, on the command line."""

import json

import polars as pl
import pytest

from commands import in_one_line, invoke, output_of, refused
from isplitlbi.storage import load_model

NO_COLUMN = "No column can be the user, so all votes are those of one anonymous crowd."


@pytest.fixture(scope="module")
def crowd_file(votes_file, tmp_path_factory):
    file = tmp_path_factory.mktemp("crowd") / "crowd.csv"
    pl.read_csv(votes_file).drop("user").write_csv(file)
    return file


@pytest.fixture(scope="module")
def crowd_model(crowd_file):
    folder = crowd_file.with_name("model")
    done = invoke("fit", crowd_file, "-o", folder)
    assert done.exit_code == 0, done.output
    assert NO_COLUMN in done.stderr
    assert "There are no users, so there is one ranking for all." in done.stdout
    assert "abnormal" not in done.stdout
    return folder


def test_users_that_are_set_aside_are_said_to_be_and_give_the_same(
    votes_file, crowd_model, tmp_path
):
    done = invoke("fit", votes_file, "--anonymous", "-o", tmp_path / "model")
    assert "The users in 'user' are set aside: all votes are those of one crowd." in done.stderr
    for command in (["rank"], ["rank", "--matrix"]):
        ours, theirs = (
            output_of(command[0], folder, *command[1:], "--format", "csv")
            for folder in (tmp_path / "model", crowd_model)
        )
        assert ours == theirs


def test_nothing_is_said_of_users(crowd_file, crowd_model):
    checked = invoke("check", crowd_file)
    assert checked.exit_code == 0
    assert "Votes per user" not in checked.stdout
    assert "of one anonymous crowd on 6 items (canonical)" in in_one_line(checked.stdout)
    assert "users" not in json.loads(output_of("check", crowd_file, "--format", "json"))["summary"]
    ranked = output_of("rank", crowd_model)
    assert "intervals for all votes like these" in in_one_line(ranked)
    assert "user" not in ranked
    assert "item-0" in output_of("recommend", crowd_model, "--better-than", "item-01")
    told = output_of("evaluate", crowd_file, "--repeats", "2", "--methods", "isplitlbi", "-q")
    assert "user" not in told and "ndividual" not in told


def test_what_needs_users_is_refused(crowd_file, crowd_model, monkeypatch, capsys):
    for command, said in (
        (["rank", crowd_model, "--user", "u"], "no user to ask for."),
        (["recommend", crowd_model, "--same-as", "item-01", "--user", "u"], "no user to ask for."),
        (["abnormal", crowd_model], "nobody to test."),
    ):
        told = refused(monkeypatch, capsys, *command)
        assert told == f"isplitlbi: the votes of this model have no users, so there is {said}\n"
    command = ["evaluate", crowd_file, "--methods", "lbi", "-q"]
    assert "the method lbi is about users" in refused(monkeypatch, capsys, *command)
    command = ["check", crowd_file, "--anonymous", "--user", "left"]
    assert "Leave out --user or --anonymous." in refused(monkeypatch, capsys, *command)


def test_a_crowd_predicts_pairs_with_users_and_without(crowd_file, crowd_model, votes_file):
    done, named = (invoke("predict", crowd_model, file) for file in (crowd_file, votes_file))
    assert done.stderr == ""
    assert done.stdout.startswith("left,right,winner,p_left")
    assert named.stderr == (
        "The votes of this model have no users, so the consensus predicts for everybody.\n"
    )
    chances = [pl.read_csv(each.stdout.encode())["p_left"] for each in (done, named)]
    assert chances[0].equals(chances[1])


def test_the_report_has_no_sections_on_users(crowd_model, tmp_path):
    file = tmp_path / "report.html"
    output_of("report", crowd_model, "-o", file, "-q")
    page = file.read_text(encoding="utf-8")
    assert "An anonymous crowd compared 6 items" in page
    for section in ("ranking", "pairs", "prediction", "data", "settings"):
        assert f'<section id="{section}"' in page
    for section in ("user", "users-section", "people", "path", "unreliable", "different"):
        assert f'<section id="{section}"' not in page
        assert f'href="#{section}"' not in page
    assert "other votes that might have been given" in page
    assert len(page) < 1_000_000  # without the library of charts
    assert load_model(crowd_model).leaderboard().items[0] in page
