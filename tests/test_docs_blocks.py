"""The code of pages runs, and prints what they show: Python, commands, and commands with output.

The Python of the README, the tutorials and the gallery is run by `test_docs`, the commands of the
README by `test_readme`. Everything else is run here, and what cannot be run is listed here.
"""

import gzip
import io
import re
import shlex
import tomllib
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import polars as pl
import pytest

from commands import invoke
from isplitlbi import ISplitLBI, save_model
from test_docs import shown

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md"))]
BLOCK = re.compile(
    r"^```(python|console|sh)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)

REAL = "real votes, which cannot be shipped"
CLUSTER = "the workers of a real cluster"
# Blocks that cannot run, by their page and their first line, with what is missing.
NOT_RUN = {
    ("README.md", "pip install .          # or '.[all]': with all that some commands need"): (
        "an installation of its own"
    ),
    ("abnormal.md", "$ isplitlbi abnormal age --user u5"): REAL,
    ("abnormal.md", "$ isplitlbi abnormal llmfao --user w32"): REAL,
    ("abnormal.md", "$ isplitlbi abnormal college --user u192"): REAL,
    ("abnormal.md", "$ isplitlbi abnormal llmfao --user w70"): REAL,
    ("abnormal.md", "$ isplitlbi abnormal age --user u89"): REAL,
    ("commands.md", "$ isplitlbi evaluate age.csv --sides unknown --min-votes 7 --repeats 3 "
     "--methods isplitlbi,margin-mle"): REAL,
    ("commands.md", "$ isplitlbi check age.csv --sides unknown"): REAL,
    ("commands.md", "$ isplitlbi check llmfao.csv"): REAL,
    ("leaderboard.md", "$ isplitlbi rank age"): REAL,
    ("scaling.md", "pip install '.[dask]'"): CLUSTER,
    ("scaling.md", "from distributed import Client"): CLUSTER,
    ("scaling.md", "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
     "-days 365 -subj /CN=cluster -out cluster.pem -keyout cluster-key.pem"): CLUSTER,
    ("scaling.md", "from distributed.security import Security"): CLUSTER,
    ("scaling.md", "export DASK_DISTRIBUTED__COMM__TLS__CA_FILE=cluster.pem"): CLUSTER,
    ("cluster.md", "dask scheduler                                                    # on one "
     "machine; it says its address"): CLUSTER,
}  # fmt: skip


class Block(NamedTuple):
    """Code of a page, and the text that it prints, if the page shows any."""

    page: Path
    language: str
    code: str
    printed: str | None

    @property
    def key(self) -> tuple[str, str]:
        """Its place in the list of what is not run."""
        return self.page.name, self.code.partition("\n")[0]

    @property
    def is_run_elsewhere(self) -> bool:
        """Whether another test runs it."""
        if self.language == "python":
            return self.page in shown.PAGES
        return self.page == README and self.language == "console"


BLOCKS = [
    Block(page, *found.groups())
    for page in PAGES
    for found in BLOCK.finditer(page.read_text(encoding="utf-8"))
]
HERE = [block for block in BLOCKS if not block.is_run_elsewhere and block.key not in NOT_RUN]


# --- what pages take for granted ------------------------------------------------------------


@pytest.fixture(scope="module")
def study():
    """Fit the two small studies of docs/, once for all pages."""
    drinks_frame = pl.read_csv(ROOT / "docs" / "votes.csv")
    arena = pl.read_csv(ROOT / "docs" / "data" / "arena.csv")
    return SimpleNamespace(
        drinks=drinks_frame,
        few=drinks_frame.head(300),  # where only the columns matter
        arena=arena,
        lengths=pl.read_csv(ROOT / "docs" / "data" / "lengths.csv"),
        model=ISplitLBI().fit(drinks_frame),
        arena_model=ISplitLBI(with_tests=False).fit(arena),
    )


@pytest.fixture
def folder(study, tmp_path, monkeypatch):
    """Return a folder with the files that pages name; `docs` is that of the project."""
    (tmp_path / "docs").symlink_to(ROOT / "docs", target_is_directory=True)
    study.drinks.write_csv(tmp_path / "votes.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_weeks(study, folder):
    """Write the votes of a study as two weeks, the second with those of both."""
    study.arena.head(1300).write_csv(folder / "week1.csv")
    study.arena.write_csv(folder / "week2.csv")
    study.arena.tail(300).write_csv(folder / "held-out.csv")


def with_model(study, folder):
    """Write the model of the drinks, newcomers, and pairs to predict."""
    save_model(study.model, folder / "model")
    newcomers = pl.read_csv(ROOT / "docs" / "newcomers.csv")
    newcomers.with_columns(pl.col("user").replace("uma", "ann")).write_csv(folder / "new.csv")
    pl.read_csv(ROOT / "docs" / "pairs.csv").write_parquet(folder / "pairs.parquet")


def with_arena_model(study, folder):
    """Write the model of the arena."""
    save_model(study.arena_model, folder / "model")


def with_next_week(study, folder):
    """Write the votes of the arena's second week: those of new people, and those to trust."""
    later = pl.read_csv(ROOT / "docs" / "data" / "arena-next-week.csv")
    is_new = later["judge"].is_in(["ann-31", "ann-32", "ann-33"])
    later.filter(is_new).write_csv(folder / "people.csv")
    later.filter(~later["judge"].is_in(["ann-32", "ann-33"])).write_csv(folder / "trusted.csv")


def in_many_formats(study, folder):
    """Write votes of several files, each in another format and layout."""
    ids = pl.Series("vote_id", [f"v{number}" for number in range(len(study.few))])
    with_ids = study.few.with_columns(ids)
    with_ids.head(200).write_csv(folder / "may.csv")
    with_ids.tail(100).write_csv(folder / "june.csv")
    study.few.tail(100).write_parquet(folder / "june.parquet")
    study.arena.head(300).write_ndjson(folder / "arena.jsonl")
    with gzip.open(folder / "votes.csv.gz", "wb") as file:
        file.write((folder / "votes.csv").read_bytes())


BEFORE_A_PAGE = {
    "after-the-fit.md": with_model,
    "commands.md": with_model,
    "comparing.md": in_weeks,
    "formats.md": in_many_formats,
    "groups.md": with_model,
    "report.md": with_model,
    "asking.md": with_arena_model,
    "next-week.md": with_next_week,
}


def as_rater(study):
    names = {"user": "rater", "left": "first", "right": "second", "winner": "verdict"}
    return study.few.rename(names)


def as_arena(study):
    return study.arena.head(300).rename({"judge": "rater"})


def as_crowd_kit(study):
    decided = study.few.filter(pl.col("winner") != "tie")
    is_left = pl.col("winner") == "left"
    return decided.with_columns(winner=pl.when(is_left).then("left").otherwise("right"))


def with_times(study):
    numbers = pl.int_range(pl.len())
    return study.few.with_columns(submitted_at=numbers, seconds=4.0 + numbers % 7)


def with_features(study):
    lengths = study.lengths.head(300)
    prices = pl.Series(range(len(lengths))) % 7
    return lengths.with_columns(price_left=prices, price_right=prices.reverse())


def in_numbers(study):
    words = {"right": "0", "tie": "0.5", "left": "1"}
    return study.few.with_columns(pl.col("winner").replace(words))


def without_users(study):
    return study.arena.drop("judge")


# What is in votes.csv where it is not the study of the drinks.
VOTES_OF = {
    "--user rater --left first": as_rater,
    "--preset arena": as_arena,
    "--preset crowd-kit": as_crowd_kit,
    "--time-column": with_times,
    "--feature length --feature price": with_features,
    "--label 0=right": in_numbers,
    r"check votes\.csv$": without_users,
    "--call items=models --call users": lambda study: study.arena,
}


# --- running --------------------------------------------------------------------------------


def run_python(code, name, namespace):
    """Run code, and return what it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, name, "exec"), namespace)
    return printed.getvalue()


def run_line(line, study, folder):
    """Run a command of a page as a shell would, and return what it prints."""
    line, _, file = line.partition(" > ")
    before, _, command = line.rpartition(" | ")
    program, *arguments = shlex.split(command, comments=True)
    if program == "pip":
        return check_installation(arguments)
    assert program == "isplitlbi"
    made = next((made for words, made in VOTES_OF.items() if re.search(words, command)), None)
    (made(study) if made else study.drinks).write_csv(folder / "votes.csv")
    if "fit" in arguments and (folder / arguments[arguments.index("-o") + 1]).exists():
        arguments.append("--force")  # another block of the page has written that model
    given = b""
    if before:
        zcat, archive = shlex.split(before)
        assert zcat == "zcat"
        given = gzip.decompress((folder / archive).read_bytes())
    done = invoke(*arguments, input=given)
    usable = (0, 3) if arguments[0] == "check" else (0,)  # 3: the votes can be used, with warnings
    assert done.exit_code in usable, f"{line}\n{done.output}"
    if file:
        (folder / file).write_text(done.stdout, encoding="utf-8")
    return done.output  # of a terminal: with remarks


def check_installation(arguments):
    """See that what is installed is this project, with extras that it has."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert arguments[0] == "install"
    assert arguments[1].startswith(".")
    extras = re.findall(r"[\w-]+", arguments[1])
    assert set(extras) <= set(known["optional-dependencies"])
    return ""


def sessions(code):
    """Split what is shown of a terminal into commands, each with its output."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def assert_shows(printed, output):
    """See that what a page shows was printed: line by line, but for lines of three dots."""
    rest = [without_seconds(line) for line in printed.splitlines()]
    for part in re.split(r"^\.\.\.$|\.\.\.$", output, flags=re.MULTILINE):
        lines = [without_seconds(line) for line in part.strip("\n").splitlines()]
        places = range(len(rest) - len(lines) + 1)
        found = next((place for place in places if rest[place : place + len(lines)] == lines), None)
        assert found is not None, f"{part}\nis not in\n{printed}"
        rest = rest[found + len(lines) :]


def without_seconds(line):
    return re.sub(r"in \d+\.\d+ s:", "in some seconds:", line.rstrip())


PAGES_RUN_HERE = sorted({block.page for block in HERE})


@pytest.mark.parametrize("page", PAGES_RUN_HERE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, study, folder):
    BEFORE_A_PAGE.get(page.name, lambda *_: None)(study, folder)
    namespace = {"model": study.model, "frame": study.drinks}
    for block in HERE:
        if block.page != page:
            continue
        if block.language == "python":
            printed = run_python(block.code, page.name, namespace)
            assert printed == (block.printed or "")
        elif block.language == "sh":
            for line in block.code.splitlines():
                run_line(line, study, folder)
        else:
            for command, output in sessions(block.code):
                assert_shows(run_line(command, study, folder), output)


def test_what_is_not_run_is_still_there_and_nothing_is_listed_twice():
    keys = [block.key for block in BLOCKS]
    assert not set(NOT_RUN) - set(keys)
    assert all(keys.count(key) == 1 for key in NOT_RUN)


def test_most_blocks_are_run():
    assert len(BLOCKS) - len(NOT_RUN) > 4 * len(NOT_RUN)


def test_scripts_that_pages_name_exist():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"python ((?:benchmarks|experiments|examples|docs)/[\w/]+\.py)", text))
    assert len(named) > 20
    assert not [script for script in named if not (ROOT / script).is_file()]
