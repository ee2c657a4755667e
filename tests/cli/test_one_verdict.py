"""Whether individual rankings help: check, evaluate and the report say the same of a study."""

import html
import json
import re

import polars as pl
import pytest

from commands import in_one_line, output_of
from diagnosed import columns, healthy
from isplitlbi import Comparisons
from isplitlbi.diagnostics.individual import verdict_on

STUDIES = {
    "help": {"n_users": 40, "taste_sd": 1.5},
    "no-help": {"n_users": 40},
    "unclear": {"n_users": 8, "taste_sd": 0.5},
}


@pytest.fixture(scope="module", params=STUDIES)
def study(request, tmp_path_factory):
    """Return a file of votes, and what is to be said of them."""
    votes = healthy(1, votes_per_user=(40, 60), **STUDIES[request.param])
    file = tmp_path_factory.mktemp(request.param) / "votes.csv"
    names = ("user", "left", "right", "winner")
    pl.DataFrame(dict(zip(names, columns(votes), strict=True))).write_csv(file)
    found = verdict_on(Comparisons.read(file))
    assert found.verdict == request.param
    return file, found.sentence


def test_check_evaluate_and_the_report_carry_the_same_sentence(study, tmp_path):
    file, sentence = study
    assert sentence in in_one_line(output_of("check", file))
    methods = ("--methods", "margin-mle-bt,isplitlbi", "--quiet")
    assert sentence in in_one_line(output_of("evaluate", file, "--repeats", "1", *methods))
    output_of("fit", file, "-o", tmp_path / "model")
    output_of("report", tmp_path / "model", "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    said = [html.unescape(each) for each in re.findall(r"<p[^>]*>(.*?)</p>", page, re.DOTALL)]
    assert [each for each in said if "ndividual rankings" in each] == [sentence] * 2
    assert not re.search(r"own rankings (hardly |do not )?predict", page)


def test_the_verdict_does_not_depend_on_how_evaluate_splits_votes(study):
    file, sentence = study
    for options in (("--seed", "7"), ("--repeats", "2", "--test-share", "0.4")):
        shown = output_of("evaluate", file, "--methods", "margin-mle-bt", "--repeats", "1",
                          "--format", "json", *options)  # fmt: skip
        assert json.loads(shown)["verdict"] == sentence
