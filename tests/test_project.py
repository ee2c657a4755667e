"""What the files of the project say of it agrees: versions, extras, systems, workflows."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import isplitlbi
from isplitlbi import storage

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OF_DEVELOPERS = {"test", "lint", "bench", "docs", "dev"}
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

FILES = sorted((ROOT / ".github" / "workflows").iterdir())
WORKFLOWS = {file.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in FILES}
JOBS = {
    f"{name}: {job}": described
    for name, workflow in WORKFLOWS.items()
    for job, described in workflow["jobs"].items()
}
STEPS = [(job, step) for job, described in JOBS.items() for step in described["steps"]]
each_workflow = pytest.mark.parametrize("name", WORKFLOWS)
each_job = pytest.mark.parametrize("name", JOBS)
USES = re.compile(r"uses: ([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # v(\d+\.\d+\.\d+)$")


def own(extra):
    """Return the requirements of an extra, but not its mentions of other extras."""
    return {r.name for r in map(Requirement, EXTRAS[extra]) if r.name != PROJECT["name"]}


def mentioned(extra):
    """Return the extras that an extra mentions, and those that these mention in turn."""
    direct = {
        each
        for r in map(Requirement, EXTRAS[extra])
        if r.name == PROJECT["name"]
        for each in r.extras
    }
    return direct.union(*(mentioned(each) for each in direct))


# --- versions -------------------------------------------------------------------------------------


def test_the_version_is_the_same_everywhere():
    assert isplitlbi.__version__ == PROJECT["version"] == str(CITATION["version"])
    assert f"version = {{{PROJECT['version']}}}" in README
    assert str(Version(PROJECT["version"])) == PROJECT["version"]


def test_the_licence_is_the_same_everywhere():
    assert PROJECT["license"] == CITATION["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")


def test_the_page_of_versions_names_the_model_folders_that_load():
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"writes version (\d+) and reads versions\s+(\d+)\s+and (\d+)\.", page)
    written, *readable = map(int, found)
    assert written == storage.FORMAT_VERSION
    assert tuple(readable) == storage.READABLE


def test_the_citations_in_the_readme_are_those_of_the_citation_file():
    paper, program = re.findall(r"^@(?:inproceedings|software)\{.*?^\}", README, re.M | re.S)
    (reference,) = CITATION["references"]
    authors = " and ".join(
        f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]
    )
    plain = paper.replace("{", "").replace("}", "")
    for value in (authors, reference["title"], reference["collection-title"]):
        assert f"= {value}," in plain
    assert str(reference["year"]) in plain
    assert f"title   = {{{CITATION['title']}}}" in program
    assert CITATION["authors"][0]["name"] in program


# --- extras ---------------------------------------------------------------------------------------


def texts():
    """Return the pages and the sources, which tell people what to install."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    sources = [file for name in ("src", "benchmarks") for file in (ROOT / name).rglob("*.py")]
    workflows = [*FILES, ROOT / "Makefile"]
    return [file.read_text(encoding="utf-8") for file in (*pages, *sources, *workflows)]


def test_every_extra_that_people_are_told_of_exists():
    named = [
        extra
        for text in texts()
        for names in re.findall(r"(?:\bisplitlbi|'\.|whl\)?)\[([a-z,]+)\]", text)
        for extra in names.split(",")
    ]
    assert {"plots", "report", "dask", "frames", "all"} <= set(named)
    assert not set(named) - EXTRAS.keys()


def test_all_holds_every_extra_of_users_and_no_tool_of_developers():
    assert mentioned("all") == EXTRAS.keys() - OF_DEVELOPERS - {"all"}
    installed = own("all").union(*(own(extra) for extra in mentioned("all")))
    assert {"matplotlib", "plotly", "jinja2", "distributed"} <= installed
    assert not installed & (own("test") | own("lint"))


def test_a_developer_gets_every_extra():
    assert mentioned("dev") == EXTRAS.keys() - {"dev"}


@pytest.mark.parametrize("extra", [None, *EXTRAS])
def test_every_requirement_has_a_lower_bound_and_no_upper_one(extra):
    named = PROJECT["dependencies"] if extra is None else EXTRAS[extra]
    for requirement in map(Requirement, named):
        if requirement.name == PROJECT["name"]:
            assert requirement.extras <= EXTRAS.keys()
        else:
            assert [each.operator for each in requirement.specifier] == [">="], requirement


def test_a_library_has_one_lower_bound():
    bounds = {}
    for requirement in map(Requirement, sum(EXTRAS.values(), PROJECT["dependencies"])):
        if requirement.name != PROJECT["name"]:
            bounds.setdefault(requirement.name, set()).add(str(requirement.specifier))
    assert not {name: each for name, each in bounds.items() if len(each) > 1}


# --- Python and systems ---------------------------------------------------------------------------


def versions_of_python():
    """Return the versions of Python that the classifiers name, the oldest first."""
    named = [c.removeprefix("Programming Language :: Python :: ") for c in PROJECT["classifiers"]]
    return sorted((c for c in named if re.fullmatch(r"3\.\d+", c)), key=Version)


def combinations(job):
    """Return the pairs of a system and a Python in which a job runs."""
    matrix = job["strategy"]["matrix"]
    pairs = {(system, python) for system in matrix["os"] for python in matrix["python"]}
    return pairs | {(each["os"], each["python"]) for each in matrix.get("include", [])}


def test_the_versions_of_python_have_no_gap_and_begin_with_the_oldest_that_is_allowed():
    versions = versions_of_python()
    minors = [Version(version).minor for version in versions]
    assert minors == list(range(minors[0], minors[-1] + 1))
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert all(version in allowed for version in versions)
    assert f"3.{minors[0] - 1}.99" not in allowed
    assert f"sys.version_info < (3, {minors[0]})" in MAKEFILE
    assert f"Python {versions[0]} or newer" in README


def test_the_tests_run_with_every_python_and_on_every_system_with_the_oldest_and_the_newest():
    versions = versions_of_python()
    runs = combinations(WORKFLOWS["tests.yml"]["jobs"]["tests"])
    assert [v for v in versions if ("ubuntu-latest", v) in runs] == versions
    ends = {
        (system, version)
        for system in ("macos-latest", "windows-latest")
        for version in (versions[0], versions[-1])
    }
    assert runs == {("ubuntu-latest", version) for version in versions} | ends
    released = combinations(WORKFLOWS["release.yml"]["jobs"]["wheel"])
    assert released == ends | {("ubuntu-latest", v) for v in (versions[0], versions[-1])}


def test_the_lowest_bounds_are_tested_with_the_oldest_python():
    steps = WORKFLOWS["tests.yml"]["jobs"]["lowest"]["steps"]
    (python,) = [step["with"]["python-version"] for step in steps if "setup-python" in str(step)]
    assert python == versions_of_python()[0]
    tests = re.search(r"^LOWEST := (.*?[^\\])$", MAKEFILE, re.M | re.S)[1].replace("\\", "").split()
    assert len(tests) > 5
    assert not [name for name in tests if not (ROOT / name).exists()]


# --- workflows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_action_is_pinned_to_a_commit_and_says_its_version(file):
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    assert not [line for line in lines if not USES.search(line)]


def test_an_action_has_one_version_in_all_workflows():
    pins = {}
    for file in FILES:
        for line in file.read_text(encoding="utf-8").splitlines():
            if found := USES.search(line):
                pins.setdefault(found[1], set()).add(found.groups()[1:])
    assert {"actions/checkout", "actions/setup-python"} <= pins.keys()
    assert not {name: each for name, each in pins.items() if len(each) > 1}


@each_workflow
def test_a_workflow_may_only_read_and_does_not_run_twice_at_once(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert "github.ref" in workflow["concurrency"]["group"]
    assert "pull_request_target" not in workflow[True]  # YAML reads the key `on` as true


@each_job
def test_only_publishing_may_more_than_read_and_every_job_ends(name):
    job = JOBS[name]
    assert job["timeout-minutes"] <= 60
    wanted = {"id-token": "write"} if name == "release.yml: publish" else None
    assert job.get("permissions") == wanted


def test_no_password_is_used_and_none_is_left_in_a_checkout():
    assert not [file.name for file in FILES if "secrets." in file.read_text(encoding="utf-8")]
    checkouts = [step for _, step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_nothing_that_a_stranger_names_gets_into_a_script():
    assert not [job for job, step in STEPS if "${{" in step.get("run", "")]


def test_only_a_tag_publishes_and_only_what_was_built_and_tried_and_approved():
    release = WORKFLOWS["release.yml"]
    assert release[True] == {"push": {"tags": ["v[0-9]*"]}}
    publish = release["jobs"]["publish"]
    assert publish["environment"] == "release"
    assert set(publish["needs"]) == {"build", "wheel"}
    assert not [step for step in publish["steps"] if "run" in step]


CHECK_OF_THE_TAG = next(
    step["run"] for job, step in STEPS if job == "release.yml: build" and "The tag" in str(step)
)


@pytest.mark.skipif(shutil.which("bash") is None or os.name == "nt", reason="there is no bash")
@pytest.mark.parametrize(
    ("tag", "changelog", "said"),
    [
        ("v1.2.3", "## [1.2.3] - 2030-01-01", ""),
        ("v1.2.4", "## [1.2.4]", "pyproject.toml says 1.2.3: tag v1.2.3"),
        ("1.2.3", "## [1.2.3]", "tag v1.2.3"),
        ("v1.2.3", "## [Unreleased]", "no section [1.2.3]"),
    ],
)
def test_a_tag_is_refused_that_is_not_the_version_or_that_the_changelog_does_not_know(
    tag, changelog, said, tmp_path
):
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}\n", encoding="utf-8")
    (tmp_path / "python").symlink_to(sys.executable)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-c", CHECK_OF_THE_TAG], cwd=tmp_path, capture_output=True, text=True,
        check=False, env=os.environ | {"PATH": path, "GITHUB_REF_NAME": tag},
    )  # fmt: skip
    assert (done.returncode == 0) is (said == ""), done.stderr
    assert said in done.stderr


def test_dependabot_looks_after_actions_and_libraries():
    settings = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))
    updates = {each["package-ecosystem"]: each for each in settings["updates"]}
    assert updates.keys() == {"github-actions", "pip"}
    assert all(each["directory"] == "/" and each["groups"] for each in updates.values())


# --- what people are asked ------------------------------------------------------------------------


def test_a_report_of_an_error_asks_for_the_version_and_the_diagnosis():
    file = ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml"
    body = yaml.safe_load(file.read_text(encoding="utf-8"))["body"]
    asked = {part["id"]: part for part in body if "id" in part}
    assert "isplitlbi --version" in asked["version"]["attributes"]["description"]
    assert "isplitlbi check votes.csv --format json" in asked["check"]["attributes"]["description"]
    assert asked["version"]["validations"]["required"] is True
    assert asked["check"]["validations"]["required"] is True


@pytest.mark.parametrize("name", ["bug", "feature", "question"])
def test_a_form_has_a_name_and_fields_with_ids_of_their_own(name):
    file = ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml"
    form = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert form["name"] and form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    ids = [field["id"] for field in fields]
    assert len(set(ids)) == len(ids) > 0
    assert all(field["attributes"].get("label") for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)
