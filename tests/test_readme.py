"""What the README says is so: its table is that of its file, its commands and links exist."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isplitlbi.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
DOCS = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
README = PAGES[0].read_text(encoding="utf-8")

BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [
    shlex.split(line.removeprefix("$ "), comments=True)
    for language, block in BLOCKS
    if language == "console"
    for line in block.splitlines()
    if line.startswith("$ ")
]


def test_the_table_of_votes_is_the_head_of_the_file_it_reads():
    rows = re.findall(r"^\| (.+) \|$", README.split("```")[0], flags=re.MULTILINE)
    table = [row.replace(" | ", ",") for row in rows]
    file = (ROOT / "docs" / "votes.csv").read_text(encoding="utf-8").splitlines()
    assert table == file[: len(table)]
    assert len(table) == 5
    assert sum(row.endswith(",tie") for row in table) == 1


def test_the_commands_run_one_after_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = {word for command in COMMANDS for word in command if word.endswith(".csv")}
    assert named
    Path("docs").mkdir()
    for file in named:  # each is where the README says
        shutil.copy(ROOT / file, file)
    for program, *arguments in COMMANDS:
        assert program == "isplitlbi"
        if arguments[0] == "demo":  # the last of two values counts: a small study is enough
            arguments += ["--users", "8", "--items", "5"]
        if arguments[0] == "evaluate":
            arguments += ["--repeats", "1"]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        assert done.stdout


def test_there_are_commands_to_run():
    assert ["isplitlbi", "demo"] in COMMANDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (page.parent / target).is_file()]
    assert not missing
