"""Ids that do something to a terminal: every command shows them spelled out."""

import io
import json
import sys

import numpy as np
import polars as pl
import pytest

from commands import output_of
from isplitlbi import Comparisons, MarginMLE
from isplitlbi.storage import load_model, save_model

SIGNS = ["\x1b[31m", "\n", "\t", "\r", "\x07", "\x7f", "\x9b31m", "\u202e", "\u200b", "\u2028"]
USERS = [f"u{sign}x" for sign in SIGNS]
ITEMS = [f"i{sign}x" for sign in SIGNS[:6]]


def rows(rng, users, n_each=14):
    for place, user in enumerate(users):
        for _ in range(n_each):
            left, right = rng.choice(len(ITEMS), 2, replace=False)
            better = (left < right) == (rng.random() < 0.85)
            said = "tie" if rng.random() < 0.15 else "left" if better else "right"
            said = "left" if place == 0 else said  # somebody to be named
            yield {"user": user, "left": ITEMS[left], "right": ITEMS[right], "winner": said}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("hostile"), np.random.default_rng(0)
    votes = list(rows(rng, USERS))
    others = list(rows(rng, [f"n{user}" for user in USERS[:3]]))
    for name, some in (("votes", votes), ("new", others)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, some)))
    output_of("fit", folder / "votes.jsonl", "-o", folder / "model", "--time", "0.5", "-q")
    earlier = Comparisons.read(folder / "votes.jsonl").without(items=ITEMS[:1])
    save_model(MarginMLE().fit(earlier), folder / "earlier")
    return folder


COMMANDS = {
    "check": ["votes"],
    "agree": ["votes", "--by", "users"],
    "fit": ["votes", "-o", "again", "--time", "0.5"],
    "evaluate": ["votes", "--repeats", "1", "--methods", "isplitlbi,margin-mle-bt"],
    "rank": ["model", "--user", USERS[1]],
    "abnormal": ["model", "--user", USERS[0]],
    "decompose": ["model", "--user", USERS[1]],
    "groups": ["model"],
    "predict": ["model", "votes", "--format", "table"],
    "recommend": ["model", "--better-than", ITEMS[1]],
    "report": ["model", "-o", "page.html"],
    "place": ["model", "new"],
    "update": ["model", "new", "-o", "updated"],
    "compare": ["earlier", "model"],
    "next": ["model"],
    "plan": ["model"],
}  # fmt: skip
AS_JSON = ("rank", "predict", "compare", "place")  # of every way in which JSON is written, one


def asked(folder, name, *more):
    files = {"votes": "votes.jsonl", "new": "new.jsonl"}
    places = ["earlier", "model", "again", "updated", "page.html"]
    words = [
        folder / files.get(word, word) if word in (*files, *places) else word
        for word in COMMANDS[name]
    ]
    return [name, *words, *more, *(["--force"] if "-o" in words else [])]


def is_plain(text):
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_writes_nothing_that_does_something_to_a_terminal(folder, name, capsys):
    assert is_plain(output_of(*asked(folder, name)))
    assert is_plain(capsys.readouterr().err)
    if name in AS_JSON:
        told = output_of(*asked(folder, name, "--format", "json"))
        assert is_plain(told) and json.loads(told) is not None


def test_ids_come_back_from_csv_as_they_are_and_a_person_sees_them_spelled_out(folder, monkeypatch):
    told = output_of(*asked(folder, "predict", "--format", "csv"))
    found = pl.read_csv(told.encode(), infer_schema=False)
    assert set(found["user"]) == set(USERS) and set(found["left"]) == set(ITEMS)
    again = Comparisons.read(folder / "votes.jsonl")
    (folder / "predicted.csv").write_bytes(told.encode())
    votes = Comparisons.read(folder / "predicted.csv")
    assert votes.users.tolist() == again.users.tolist() == sorted(USERS)

    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stdout", screen)
    from isplitlbi.output.terminal import Format, emit

    emit(found, Format.csv)
    assert is_plain(screen.getvalue())
    assert len(screen.getvalue().splitlines()) == len(found) + 1


def test_a_ranking_that_is_printed_has_a_line_for_every_tier(folder):
    ranking = load_model(folder / "model").ranking()
    assert is_plain(str(ranking)) and is_plain(ranking._repr_html_())
    assert len(str(ranking).splitlines()) == len(ranking.tiers)


def test_a_model_folder_holds_such_ids_as_they_are(folder):
    users = pl.read_csv(folder / "model" / "users.csv", infer_schema=False)["user"]
    assert set(users) == set(USERS)
    assert is_plain((folder / "model" / "README.txt").read_text())
