"""The settings of a model on the command line: terms, ties, sides, and how large all are."""

import json

import pytest

from commands import in_one_line, invoke, output_of, refused, width
from isplitlbi.model.terms import NAMES
from isplitlbi.storage import load_model

QUICK = ("--time", "0.5", "-q")


def fitted(votes_file, folder, *arguments):
    done = invoke("fit", votes_file, "-o", folder / "model", *QUICK, *arguments)
    assert done.exit_code == 0, done.output
    return load_model(folder / "model")


@pytest.mark.parametrize(
    ("arguments", "names", "ties"),
    [
        ((), ("taste", "sharpness", "side", "threshold"), "log"),
        (("--terms", "all", "--sides", "unknown"), ("taste", "sharpness", "threshold"), "log"),
        (("--terms", "paper"), ("taste", "threshold"), "bounded"),
        (("--terms", "side, taste"), ("taste", "side", "threshold"), "log"),
    ],
)
def test_terms_are_those_that_were_asked_for(votes_file, tmp_path, arguments, names, ties):
    model = fitted(votes_file, tmp_path, *arguments)
    assert (model.terms_.names, model.terms_.ties) == (names, ties)
    assert model.terms_.has_habits == ("side, taste" not in arguments and ties == "log")


def test_sizes_are_used_as_they_are_given(votes_file, tmp_path):
    given = ("--nu", "0.2", "--kappa", "20", "--scale", "sharpness=0.5", "--scale", "side=0")
    model = fitted(votes_file, tmp_path, *given)
    assert (model.nu_, model.kappa_) == (0.2, 20.0)
    assert model.terms_.scale("sharpness") == pytest.approx(0.5)
    assert model.terms_.scale("side") == 0.0


def test_the_paper_still_compares_several(votes_file, tmp_path):
    done = invoke("fit", votes_file, "-o", tmp_path / "m", "-q", "--terms", "paper", "--nu", "0.1",
                  "--nu", "0.3", "--folds", "2", "--format", "json")  # fmt: skip
    assert json.loads(done.stdout)["nu"] in (0.1, 0.3)


REFUSED = {
    "no term": (["--terms", "taste,loud"], "--terms: 'loud' is not all, paper, or names among "),
    "nothing": (["--terms", ""], "--terms: '' is not all"),
    "no choice of ties": (["--ties", "some"], "--ties 'some' is not one of auto, allowed, none."),
    "no choice of sides": (["--sides", "top"], "--sides 'top' is not one of known, unknown."),
    "no number": (["--scale", "side=wide"], "--scale side=wide: expected NAME=VALUE"),
    "no value": (["--scale", "side"], "--scale side: expected NAME=VALUE"),
    "negative": (["--scale", "side=-1"], "--scale side=-1: expected NAME=VALUE"),
    "no such term": (["--scale", "loud=1"], "--scale loud: 'loud' is not one of threshold, "),
    "taste": (["--scale", "taste=1"], "--scale taste: the size of taste is --nu."),
    "twice": (["--scale", "side=1", "--scale", "side=2"], "--scale side is given twice"),
    "several nu": (["--nu", "1", "--nu", "2"], "--nu is given more than once"),
    "several kappa": (["--kappa", "1", "--kappa", "2"], "--kappa is given more than once"),
    "nu": (["--nu", "-1"], "--nu -1: it must be positive and finite."),
    "the paper has ties": (["--terms", "paper", "--ties", "none"], "--ties none: the model of"),
    "the paper has no scales": (["--terms", "paper", "--scale", "side=1"], "--scale: the model"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("command", ["fit", "demo"])
def test_what_cannot_be_is_one_sentence(command, name, votes_file, tmp_path, monkeypatch, capsys):
    arguments, sentence = REFUSED[name]
    more = [votes_file, "-o", tmp_path / "model"] if command == "fit" else []
    told = refused(monkeypatch, capsys, command, *more, *arguments)
    assert told.startswith(f"isplitlbi: {sentence}") and told.count("\n") == 1
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["no term", "no choice of ties", "no choice of sides"])
def test_evaluate_refuses_the_same(name, votes_file, monkeypatch, capsys):
    arguments, sentence = REFUSED[name]
    told = refused(monkeypatch, capsys, "evaluate", votes_file, *arguments)
    assert told.startswith(f"isplitlbi: {sentence}") and told.count("\n") == 1


def test_ties_none_is_refused_where_there_are_some(votes_file, tmp_path, monkeypatch, capsys):
    model = tmp_path / "model"
    told = refused(monkeypatch, capsys, "fit", votes_file, "-o", model, "-q", "--ties", "none")
    assert "votes are ties" in told and told.count("\n") == 1


def test_a_feature_has_a_scale_and_others_have_none(votes_file, tmp_path, monkeypatch, capsys):
    file = tmp_path / "votes.csv"
    header, *rows = votes_file.read_text().splitlines()
    lines = [f"{header},length", *(f"{row},{place % 5 - 2}" for place, row in enumerate(rows))]
    file.write_text("\n".join(lines) + "\n")
    model = fitted(file, tmp_path, "--feature", "length", "--scale", "length=0.3", "--nu", "0.3")
    assert model.terms_.scale("length") == pytest.approx(0.3)
    told = refused(monkeypatch, capsys, "fit", file, "-o", tmp_path / "m", "--scale", "length=1")
    assert "'length' is not one of" in told


@pytest.mark.parametrize("command", ["fit", "demo", "evaluate"])
def test_the_help_names_all_terms_and_what_is_chosen(command):
    shown = in_one_line(invoke(command, "--help").stdout.replace("│", " "))
    for word in (*NAMES, "--terms", "--ties", "--sides"):
        assert word in shown
    if command != "evaluate":
        assert "chosen from the votes" in shown and "NAME=VALUE" in shown


# --- forced choice ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forced_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("forced") / "votes.csv"
    done = invoke("simulate", "-o", file, "--forced", "--users", "12", "--items", "5", "--least",
                  "30", "--most", "40", "--sharpness", "0.5")  # fmt: skip
    assert done.exit_code == 0, done.output
    return file


@pytest.fixture(scope="module")
def forced_folder(forced_file):
    folder = forced_file.with_name("model")
    done = invoke("fit", forced_file, "-o", folder)
    assert done.exit_code == 0, done.output
    assert "Nobody ever declared a tie: there is no tie threshold." in in_one_line(done.stdout)
    return folder


def test_nothing_is_said_of_ties_where_there_are_none(forced_folder, forced_file):
    for name, *rest in (
        ("rank",), ("rank", "--user", "user-01"), ("abnormal",), ("abnormal", "--all"),
        ("recommend", "--better-than", "item-01"), ("predict", forced_file, "--format", "table"),
    ):  # fmt: skip
        shown = output_of(name, forced_folder, *rest)
        assert width(shown) <= 80
        assert "Two items tie" not in shown and "in tiers" not in shown and "p tie" not in shown
    lines = output_of("predict", forced_folder, forced_file).splitlines()
    assert lines[0] == "user,left,right,winner,p_left,p_right"
    for line in lines[1:]:
        *_, winner, left, right = line.split(",")
        assert winner == ("left" if float(left) >= float(right) else "right")
        assert float(left) + float(right) == pytest.approx(1.0)


def test_tiers_are_empty_for_other_programs(forced_folder):
    rows = json.loads(output_of("rank", forced_folder, "--format", "json"))
    assert {row["tier"] for row in rows} == {None}
    assert list(rows[0])[:4] == ["rank", "rank_low", "rank_high", "item"]
    assert list(rows[0])[-2:] == ["tier", "group"]


def test_as_good_as_another_is_refused_in_a_sentence(forced_folder, monkeypatch, capsys):
    told = refused(monkeypatch, capsys, "recommend", forced_folder, "--same-as", "item-01")
    assert "no ties" in told and told.count("\n") == 1


def test_ties_can_be_allowed_where_nobody_declared_one(forced_file, tmp_path):
    model = fitted(forced_file, tmp_path, "--ties", "allowed")
    assert model.threshold_ is not None and model.terms_.has_ties


# --- sides that mean nothing -----------------------------------------------------------------


def test_check_says_nothing_of_sides_that_mean_nothing(tmp_path):
    file = tmp_path / "votes.csv"
    assert invoke("simulate", "-o", file, "--users", "20", "--items", "6", "--least", "30",
                  "--most", "40", "--side", "1.5,0.2").exit_code == 0  # fmt: skip
    codes = [
        [finding["code"] for finding in json.loads(output_of(*asked))["findings"]]
        for asked in (("check", file, "--format", "json"),
                      ("check", file, "--format", "json", "--sides", "unknown"))
    ]  # fmt: skip
    assert "position-bias" in codes[0]
    assert not {"position-bias", "one-sided-users", "one-answer-users"} & set(codes[1])


def test_check_refuses_other_words_for_sides(votes_file, monkeypatch, capsys):
    told = refused(monkeypatch, capsys, "check", votes_file, "--sides", "top")
    assert "--sides 'top' is not one of known, unknown." in told


def test_nobody_is_position_biased_in_a_folder_of_sides_that_mean_nothing(tmp_path):
    file = tmp_path / "votes.csv"
    invoke("simulate", "-o", file, "--users", "20", "--items", "6", "--least", "30", "--most", "30")
    lines = file.read_text().splitlines()
    others = [line.split(",")[1:3] for line in lines[1:61]]
    lines += [",".join(["lefty", *pair, "left"]) for pair in others]
    file.write_text("\n".join(lines) + "\n")
    for sides, kinds in (("known", {"position-biased"}), ("unknown", {"careless", "unclear"})):
        folder = tmp_path / sides
        assert invoke("fit", file, "-o", folder, *QUICK, "--sides", sides).exit_code == 0
        rows = json.loads(output_of("abnormal", folder, "--format", "json", "-q"))
        (lefty,) = (row for row in rows if row["user"] == "lefty")
        assert lefty["kind"] in kinds
        assert ("side" in lefty) == (sides == "known")
        assert ("left" in lefty["explanation"]) == (sides == "known")
