"""The command on how far people agree: table, csv, json, whose agreement, and what is refused."""

import io
import json

import numpy as np
import polars as pl
import pytest

from commands import in_one_line, invoke, output_of, refused, width
from isplitlbi import Comparisons, agreement
from votes import random_votes

SPLITS = ("--splits", "2")
CALL = ("--call", "items=models", "--call", "users=annotators")


def written(votes, file):
    columns = {
        "user": votes.users[votes.user], "left": votes.items[votes.left],
        "right": votes.items[votes.right], "winner": votes.outcome,
    }  # fmt: skip
    labels = {1: "left", 0: "tie", -1: "right"}
    columns["winner"] = [labels[each] for each in votes.outcome.tolist()]
    pl.DataFrame(columns).write_csv(file)
    return file


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    return written(random_votes(0, n_users=9, n_items=5, n_votes=300), folder / "votes.csv")


@pytest.fixture(scope="module")
def found(file):
    return agreement(file, n_splits=2)


def test_the_table_says_it_in_a_sentence_and_fits_80_columns(file, found):
    shown = output_of("agree", file, *SPLITS)
    assert width(shown) <= 80
    assert in_one_line(shown).startswith(found.sentence())
    assert "at least two users judged 10 of these" in in_one_line(shown)
    value, low, high = found.measures()["alpha"]
    row = next(line for line in shown.splitlines() if line.startswith("alpha "))
    assert row.split()[1:] == [f"{value:.2f}", f"{low:.2f}", "to", f"{high:.2f}"]
    least = found.users_table()["user"][0]
    lines = shown.splitlines()
    begin = lines.index("Users who agree least with the others")
    assert lines[begin + 2].split()[0] == least
    assert "--by users and --by pairs list all." in shown


def test_csv_has_a_row_for_each_number_and_json_has_everything(file, found):
    table = pl.read_csv(io.StringIO(output_of("agree", file, *SPLITS, "--format", "csv")))
    assert table.to_dicts() == found.to_frame("polars").to_dicts()
    told = json.loads(output_of("agree", file, *SPLITS, "--format", "json"))
    assert told == json.loads(json.dumps(found.as_dict()))
    assert told["users"] == 9 and len(told["by_pair_of_users"]) == 36


@pytest.mark.parametrize("by", ["users", "pairs"])
def test_all_users_and_pairs_of_users_are_listed_on_request(file, found, by):
    expected = found.users_table() if by == "users" else found.pairs_table()
    listed = output_of("agree", file, *SPLITS, "--by", by, "--format", "csv")
    assert pl.read_csv(io.StringIO(listed)).to_dicts() == expected.to_dicts()
    rows = json.loads(output_of("agree", file, *SPLITS, "--by", by, "--format", "json"))
    assert rows == expected.to_dicts()
    shown = output_of("agree", file, *SPLITS, "--by", by)
    assert width(shown) <= 80 and len(shown.splitlines()) == len(expected) + 1


def test_it_speaks_in_the_words_of_the_study(file):
    shown = output_of("agree", file, *SPLITS, *CALL)
    assert "Two annotators who judge the same pair" in shown
    assert "separation, annotators" in shown
    assert "user" not in shown.replace("--by users", "")


def test_what_cannot_be_found_is_said_on_standard_error(tmp_path):
    left, right = np.triu_indices(6, 1)
    votes = Comparisons.from_arrays(np.arange(15) % 2, left, right, np.ones(15))
    file = written(votes, tmp_path / "votes.csv")
    done = invoke("agree", file, "--format", "csv")
    assert done.exit_code == 0
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "measure", "separation", "separation_of_people",
    ]  # fmt: skip
    assert len(done.stderr.splitlines()) == 2
    assert not invoke("agree", file, "--format", "csv", "--quiet").stderr
    shown = in_one_line(output_of("agree", file))
    assert shown.startswith("No pair of items was judged by two users")
    assert shown.count("No pair of items") == 1 and "Split halves need" in shown


def test_ids_of_strangers_stay_text_on_a_terminal(tmp_path):
    votes = random_votes(1, n_users=4, n_items=4, n_votes=100)
    names = np.array(["[red]x[/]", "a\x1b[31mb", "ann", "=1+1"], dtype=object)
    hostile = Comparisons.from_arrays(
        names[votes.user], votes.items[votes.left], votes.items[votes.right], votes.outcome
    )
    shown = output_of("agree", written(hostile, tmp_path / "votes.csv"), *SPLITS)
    assert "[red]x[/]" in shown
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("left,right,winner\na,b,left\n", [], "these votes have no users"),
        ("user,left,right,winner\nann,a,b,left\nann,b,c,tie\n", [], "the votes of 1 user"),
        (
            "user,left,right,winner\nann,a,b,left\nbob,a,b,tie\n", ["--anonymous"],
            "these votes have no users",
        ),
    ],
)  # fmt: skip
def test_votes_that_cannot_agree_are_refused_in_one_sentence(
    tmp_path, monkeypatch, capsys, text, arguments, said
):
    file = tmp_path / "votes.csv"
    file.write_text(text, encoding="utf-8")
    told = refused(monkeypatch, capsys, "agree", file, "--quiet", *arguments)
    assert said in told
    assert told.count("\n") == 1
