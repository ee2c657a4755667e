"""Items and users that have other names in a study."""

import re

import pytest

from commands import in_one_line, invoke, output_of, refused
from isplitlbi.storage import load_model

CALL = ("--call", "items=models", "--call", "users=person/people")
# The usual words, but for ids such as item-1.
USUAL = re.compile(r"\b(items?|users?)\b(?!-\d)", re.IGNORECASE)
COMMANDS = (
    ("rank",),
    ("rank", "--matrix"),
    ("rank", "--user", "user-01"),
    ("abnormal", "--all"),
    ("abnormal", "--effect"),
    ("decompose",),
    ("recommend", "--better-than", "item-01"),
)


@pytest.fixture(scope="module")
def called_folder(votes_file):
    folder = votes_file.with_name("called")
    done = invoke("fit", votes_file, "-o", folder, *CALL)
    assert done.exit_code == 0, done.output
    assert "by 12 people on 6 models" in in_one_line(done.stdout)
    assert not USUAL.search(done.stdout)
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_model_keeps_the_words_and_files_keep_their_columns(command, called_folder, model_folder):
    name, *options = command
    text = output_of(name, called_folder, *options)
    assert re.search(r"\b(models?|person|people)\b", text)
    assert not USUAL.search(text)
    for format in ("csv", "json"):
        options_of_file = (*options, "--format", format)
        assert output_of(name, called_folder, *options_of_file) == output_of(
            name, model_folder, *options_of_file
        )


def test_the_words_of_one_command_go_before_those_of_the_model(called_folder):
    text = output_of("rank", called_folder, "--call", "items=dishes")
    assert "all dishes at once" in text and "models" not in text
    assert load_model(called_folder).call == {"items": "models", "users": "person/people"}


def test_check_says_it_in_the_words_of_the_study(votes_file):
    done = invoke("check", votes_file, *CALL)
    assert "Votes per person" in done.stdout
    assert not USUAL.search(done.stdout)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["items"], "--call items: expected THING=WORD, such as items=models."),
        (["votes=answers"], "only items and users can, such as by --call items=models."),
        (["users=people"], "such as --call users=person/people."),
        (["items=a s", "items=b s"], "--call items is given twice; give it once."),
        (["users=models"], "items and users cannot both be called 'models'."),
    ],
)
def test_what_cannot_be_is_one_sentence(given, told, called_folder, monkeypatch, capsys):
    options = [part for each in given for part in ("--call", each)]
    err = refused(monkeypatch, capsys, "rank", called_folder, *options)
    assert err.startswith("isplitlbi: ") and err.endswith(f"{told}\n")
