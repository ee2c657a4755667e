"""The commands on a fitted model: rank, abnormal, predict, recommend, report."""

import functools
import io
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from polars.testing import assert_frame_equal

from commands import in_one_line, invoke, output_of, refused, run, width
from crowds import crowd, gather
from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.data.pairs import stream_pairs
from isplitlbi.errors import PlaceTaken
from isplitlbi.output.tables import users_table, with_cards
from isplitlbi.storage import save_model

USER_COLUMNS = [
    "user", "votes", "entry_time", "entry_rank", "distance", "p_value", "q_value", "abnormal",
    "kind", "quality", "explanation", "list", "effect", "effect_low", "effect_high",
    "p_unreliable", "q_unreliable",
]  # fmt: skip
CARD_COLUMNS = [
    *(f"{name}{ending}" for name in ("sharpness", "side", "tie_factor")
      for ending in ("", "_low", "_high")),
    "taste",
]  # fmt: skip
BOARD_COLUMNS = [
    "rank", "rank_low", "rank_high", "item", "score", "low", "high", "votes", "wins", "ties",
    "losses", "tier", "group",
]  # fmt: skip
EFFECT_COLUMNS = [
    "item", "rank", "rank_low", "rank_high", "rank_without", "score", "score_without", "tier",
    "tier_without",
]  # fmt: skip


@pytest.mark.parametrize("command", ["rank", "predict"])
def test_a_stored_model_answers_without_loading_a_slow_library(model_folder, votes_file, command):
    arguments = {"rank": [], "predict": [str(votes_file)]}[command]
    slow = {"numba", "sklearn", "pandas", "joblib", "scipy.special", "scipy.sparse", "scipy.stats"}
    slow |= {"matplotlib", "jinja2", "distributed", "isplitlbi.abnormal.finding"}
    if command == "rank":  # others read or write tables
        slow |= {"polars", "narwhals"}
    code = (
        "import sys\nfrom isplitlbi.cli.app import app\n"
        f"app({[command, str(model_folder), *arguments]!r}, standalone_mode=False)\n"
        f"print(sorted({slow!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_report_is_that_of_the_model_and_replaces_nothing_unasked(model_folder, tmp_path):
    from isplitlbi.output.report import TITLE, render
    from isplitlbi.storage import load_model

    file = tmp_path / "report.html"
    done = invoke("report", str(model_folder), "-o", str(file))
    assert done.exit_code == 0, done.output
    assert "".join(done.stdout.split()).startswith(f"Report:{file}")
    assert file.read_text(encoding="utf-8") == render(load_model(model_folder), TITLE)
    again = run("report", str(model_folder), "-o", str(file), "--title", "Mine")
    assert again.returncode == 2
    assert (
        again.stderr == f"isplitlbi: {file} exists already; choose another name or use --force.\n"
    )
    assert "Mine" not in file.read_text(encoding="utf-8")
    forced = invoke("report", str(model_folder), "-o", str(file), "--title", "Mine", "--force")
    assert forced.exit_code == 0
    assert "<h1>Mine</h1>" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("format", ["csv", "json"])
def test_every_result_can_be_piped(model_folder, votes_file, format):
    columns = {
        ("rank",): [*BOARD_COLUMNS, "tie_factor"],
        ("rank", "--user", "user-01"): [
            "tier", "item", "score", "low", "high", "differs", "compared", "tie_factor",
        ],
        ("rank", "--matrix"): [
            "item", "other", "votes", "wins", "ties", "losses", "predicted_wins", "predicted_ties",
            "predicted_losses",
        ],
        ("abnormal",): USER_COLUMNS + CARD_COLUMNS,
        ("decompose",): ["user", "term", "item", "part", "deviation"],
        ("predict", votes_file): ["user", "left", "right", "winner", "p_left", "p_tie", "p_right"],
        ("recommend", "--better-than", "item-01"): ["item", "score", "difference"],
        ("recommend", "--better-than", "item-01", "--user", "user-01"): [
            "item", "score", "difference", "compared",
        ],
    }  # fmt: skip
    for (name, *rest), expected in columns.items():
        shown = invoke(name, str(model_folder), *map(str, rest), "--format", format)
        assert shown.exit_code == 0, shown.output
        if format == "csv":
            table = pl.read_csv(io.StringIO(shown.stdout))
        else:
            table = pl.DataFrame(json.loads(shown.stdout), infer_schema_length=None)
        if len(table):
            assert table.columns == expected
    checked = json.loads(invoke("check", str(votes_file), "--format", "json").stdout)
    assert checked["summary"]["users"] == 12


def test_tables_for_people_fit_80_columns(model_folder, votes_file):
    for name, *rest in (
        ("rank",), ("rank", "--user", "user-01"), ("rank", "--matrix"), ("abnormal", "--all"),
        ("decompose",), ("decompose", "--user", "user-01"),
        ("recommend", "--better-than", "item-01"),
        ("predict", str(votes_file), "--format", "table"),
    ):  # fmt: skip
        shown = invoke(name, str(model_folder), *rest)
        assert shown.exit_code == 0, shown.output
        assert width(shown.stdout) <= 80
    checked = invoke("check", str(votes_file))
    assert width(checked.stdout) <= 80


def test_one_users_ranking_comes_with_what_the_user_is_like(model_folder):
    from isplitlbi.storage import load_model

    shown = in_one_line(output_of("rank", model_folder, "--user", "user-01"))
    for sentence in load_model(model_folder).user_card("user-01").words:
        assert in_one_line(sentence) in shown
    assert "user-01's own ranking, in tiers tier item score 95 % differs ties" in shown
    assert "relative to the mean of all items" in shown


def test_the_leaderboard_has_a_line_per_item_and_says_what_its_words_mean(model_folder):
    from isplitlbi.storage import load_model

    shown = output_of("rank", model_folder)
    board = load_model(model_folder).leaderboard()
    lines = [line.split() for line in shown.splitlines() if " item-" in line]
    assert [line[2] for line in lines] == board.items.tolist()
    assert [line[0] for line in lines] == [str(rank) for rank in board.rank]
    assert "tier items of a tier: people call them equal." in in_one_line(shown)
    assert "group items that share a letter: the votes cannot tell them apart yet." in in_one_line(
        shown
    )


def test_names_are_not_broken_where_the_output_is_piped(tmp_path):
    names = np.array([f"{letter * 70} {letter}" for letter in "abc"])
    rng = np.random.default_rng(0)
    left = rng.integers(3, size=60)
    right = (left + 1) % 3
    votes = Comparisons.from_arrays(
        rng.integers(4, size=60), names[left], names[right], rng.integers(-1, 2, size=60)
    )
    save_model(ISplitLBI(kappa=5.0, times=[0.4], time=0.7).fit(votes), tmp_path / "model")
    for arguments in ((), ("--user", "0"), ("--matrix",)):
        shown = run("rank", tmp_path / "model", *arguments).stdout
        assert all(sum(name in line for line in shown.splitlines()) >= 1 for name in names)


def test_the_sparse_ranking_of_a_user_who_has_not_left_is_the_consensus(stored, model):
    stays = next(user for user in model.users_.tolist() if user not in model.left_consensus_)
    shown = invoke("rank", stored, "--user", stays, "--estimate", "sparse")
    assert shown.exit_code == 0, shown.output
    assert in_one_line(f"{stays} has not left the consensus at the chosen time, so this is the "
                       "consensus.") in in_one_line(shown.stderr)  # fmt: skip
    own = as_csv("rank", stored, "--user", stays, "--estimate", "sparse")
    common = model.ranking()
    assert own["item"].to_list() == common.items.tolist()
    assert_allclose(own["score"], common.scores)
    leaves = model.left_consensus_[0]
    own = as_csv("rank", stored, "--user", leaves, "--estimate", "sparse")
    assert_allclose(own["score"], model.ranking(leaves).scores)
    assert "has left the consensus" in in_one_line(
        invoke("rank", stored, "--user", leaves, "--estimate", "sparse").stderr
    )


def test_predictions_may_be_by_the_sparse_estimate(stored, model, tmp_path):
    votes = model.votes()
    pairs = pl.DataFrame({"user": votes.users[votes.user], "left": votes.items[votes.left],
                          "right": votes.items[votes.right]})  # fmt: skip
    pairs.write_csv(tmp_path / "pairs.csv")
    found = as_csv("predict", stored, tmp_path / "pairs.csv", "--estimate", "sparse")
    expected = model.predict_proba(pairs, estimate="sparse")
    assert_allclose(found["p_left"], expected[:, 2], atol=1e-12)
    plain = as_csv("predict", stored, tmp_path / "pairs.csv")
    assert_allclose(plain["p_left"], model.predict_proba(pairs)[:, 2], atol=1e-12)
    assert np.abs(plain["p_left"] - found["p_left"]).max() > 0.01


def test_estimates_that_cannot_be_asked_for_are_refused(stored, monkeypatch, capsys, tmp_path):
    (tmp_path / "pairs.csv").write_text("left,right\na,b\n")
    complaint = refused(monkeypatch, capsys, "rank", stored, "--estimate", "sparse")
    assert complaint == (
        "isplitlbi: --estimate sparse is for --user: the consensus is the same by any estimate.\n"
    )
    for command in (("predict", stored, tmp_path / "pairs.csv"), ("rank", stored, "--user", "u")):
        complaint = refused(monkeypatch, capsys, *command, "--estimate", "thin")
        assert complaint.count("\n") == 1


def test_pairs_are_not_those_of_one_user(model_folder, monkeypatch, capsys):
    said = refused(monkeypatch, capsys, "rank", model_folder, "--user", "user-01", "--matrix")
    assert said == "isplitlbi: give --user or --matrix, not both: --matrix is for everybody.\n"


def test_a_leaderboard_does_not_wait_for_votes_that_are_elsewhere(model_folder, monkeypatch):
    from isplitlbi.estimators import ScoreEstimator

    monkeypatch.setattr(ScoreEstimator, "has_votes", lambda _: False)
    monkeypatch.setattr(ScoreEstimator, "votes", lambda _: pytest.fail("votes were read"))
    done = invoke("rank", model_folder)
    assert done.exit_code == 0, done.output
    assert "Consensus, in tiers" in done.stdout
    assert "--format csv reads them" in done.stderr
    own = pl.read_csv(
        io.StringIO(output_of("rank", model_folder, "--user", "user-01", "--format", "csv"))
    )
    assert own["low"].null_count() == len(own)


def test_unknown_users_are_predicted_by_the_average_and_named(model_folder, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,left,right\nnobody,item-01,item-02\nuser-01,item-01,item-02\n")
    done = run("predict", model_folder, pairs)
    assert done.returncode == 0
    assert "so the average over its users predicts for: nobody." in done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_without_users_all_are_predicted_as_unknown_and_that_is_said_once(model_folder, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("left,right,winner\nitem-01,item-02,left\nitem-02,item-03,tie\n")
    done = run("predict", model_folder, pairs)
    said = "there is no column of users, so everybody is predicted as an unknown user.\n"
    assert done.stderr == said
    assert done.stdout.startswith("left,right,winner,p_left,p_tie,p_right\nitem-01,item-02,")
    named = tmp_path / "named.csv"
    named.write_text("user,left,right\nnew,item-01,item-02\nnew,item-02,item-03\n")
    of_nobody = output_of("predict", model_folder, named, "-q").replace("new,", "")
    assert of_nobody.replace("user,", "") == done.stdout


def in_small_batches(monkeypatch):
    small = functools.partial(stream_pairs, block=2000)
    monkeypatch.setattr("isplitlbi.data.pairs.stream_pairs", small)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_predictions_may_go_into_a_file(model_folder, votes_file, tmp_path, ending, monkeypatch):
    in_small_batches(monkeypatch)
    file = tmp_path / f"out.{ending}"
    printed = pl.read_csv(io.StringIO(output_of("predict", model_folder, votes_file)))
    shown = output_of("predict", model_folder, votes_file, "-o", file)
    assert shown == f"Predictions: {file} ({printed.height} pairs).\n"
    read = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}[ending]
    assert_frame_equal(read(file), printed)
    again = invoke("predict", model_folder, votes_file, "-o", file)
    assert isinstance(again.exception, PlaceTaken)
    assert output_of("predict", model_folder, votes_file, "-o", file, "--force") == shown
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_a_bad_row_late_in_a_file_leaves_no_output(model_folder, votes_file, tmp_path, monkeypatch):
    in_small_batches(monkeypatch)
    pairs, n_rows = tmp_path / "pairs.csv", len(votes_file.read_text().splitlines()) - 1
    pairs.write_text(votes_file.read_text() + "user-01,item-01,cake,left\n")
    done = invoke("predict", model_folder, pairs, "-o", tmp_path / "out.csv")
    assert f"pairs.csv, row {n_rows + 1}: item 'cake' is not" in str(done.exception)
    assert [each.name for each in tmp_path.iterdir()] == ["pairs.csv"]


# --- abnormal ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return ISplitLBI(kappa=5.0, times=[0.4], time=0.7).fit(gather(crowd(21)))


@pytest.fixture(scope="module")
def stored(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    save_model(model, folder)
    return folder


def as_csv(*arguments):
    return pl.read_csv(io.StringIO(output_of(*arguments, "--format", "csv")))


def test_every_user_is_in_the_csv_and_in_the_json(stored, model):
    table = as_csv("abnormal", stored)
    rows = json.loads(output_of("abnormal", stored, "--format", "json"))
    assert table.columns == USER_COLUMNS + CARD_COLUMNS
    assert all(list(row) == USER_COLUMNS + CARD_COLUMNS for row in rows)
    assert rows == with_cards(users_table(model), model).to_dicts()
    assert [row["user"] for row in rows] == table["user"].to_list()
    assert set(table["user"]) == set(model.users_)
    named = table.filter("abnormal")["user"].to_list()
    assert named == model.unreliable_users_ + model.different_users_
    assert table.filter(pl.col("list") == "different")["user"].to_list() == model.different_users_


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_list_can_be_asked_for(stored, model, format):
    for name, users in (
        ("unreliable", model.unreliable_users_), ("different", model.different_users_)
    ):  # fmt: skip
        told = output_of("abnormal", stored, "--list", name, "--format", format)
        rows = json.loads(told) if format == "json" else pl.read_csv(io.StringIO(told)).to_dicts()
        assert [row["user"] for row in rows] == users
        assert {row["list"] for row in rows} == {name}
    both = as_csv("abnormal", stored, "--list", "different", "--kind", "reversed")
    assert len(both) == 0
    shown = output_of("abnormal", stored, "--list", "different")
    assert "Different: votes differ from the group" in shown
    assert "Unreliable: " not in shown


def test_a_kind_can_be_asked_for_and_so_can_two(stored):
    assert as_csv("abnormal", stored, "--kind", "reversed")["user"].to_list() == ["reversed"]
    both = as_csv("abnormal", stored, "--kind", "position-biased", "--kind", "blunter")
    assert set(both["user"]) == {"always left", "always right", "blunter"}
    shown = output_of("abnormal", stored, "--kind", "tie-happy")
    assert "tie-happy" in shown
    assert "reversed  " not in shown


def test_a_larger_false_discovery_rate_names_more_users(stored):
    strict, usual, lenient = (
        as_csv("abnormal", stored, "--fdr", fdr)["abnormal"].sum()
        for fdr in ("0.001", "0.05", "0.2")
    )
    assert 0 < strict <= usual <= lenient < 82


def test_the_effect_comes_as_csv(stored, model):
    table = as_csv("abnormal", stored, "--effect")
    assert table.columns == EFFECT_COLUMNS
    assert set(table["item"]) == set(model.items_)
    assert_allclose(table["score_without"], model.effect_of_leaving_out().score_without)
    some = as_csv("abnormal", stored, "--effect", "--kind", "reversed")
    expected = model.effect_of_leaving_out(["reversed"])
    assert_allclose(some["score_without"], expected.score_without)
    assert not np.allclose(some["score_without"], table["score_without"])
    others = as_csv("abnormal", stored, "--effect", "--list", "different")
    expected = model.effect_of_leaving_out(lists=["different"])
    assert_allclose(others["score_without"], expected.score_without)


def test_the_effect_and_the_ranking_are_of_one_consensus(stored):
    ranking, effect = as_csv("rank", stored), as_csv("abnormal", stored, "--effect")
    assert effect["item"].to_list() == ranking["item"].to_list()
    assert effect["tier"].to_list() == ranking["tier"].to_list()
    assert_allclose(effect["score"], ranking["score"], rtol=1e-12)


def test_the_table_says_who_in_which_way_and_whether_it_matters(stored, model):
    shown = output_of("abnormal", stored)
    assert width(shown) <= 80
    text = in_one_line(shown)
    counts = len(model.unreliable_users_), len(model.different_users_)
    assert text.startswith(
        f"{counts[0]} of {len(model.users_)} users are unreliable, {counts[1]} are different; "
        "5 % of the names on each list may be there by chance. "
        "Unreliable: votes tell little about the items user votes effect kind quality explanation"
    )
    assert "Different: votes differ from the group more than is usual here user" in text
    assert in_one_line(model.effect_of_leaving_out().sentence()) in text
    for user, effect, low, high in users_table(model).filter("abnormal").select(
        "user", "effect", "effect_low", "effect_high"
    ).iter_rows():  # fmt: skip
        told = f"{effect:.2f} ({low:.2f}-{high:.2f})"
        assert any(line.startswith(user.split()[0]) and told in line for line in shown.splitlines())
    assert "2 users have too few votes to be on a list" in text
    assert "normal-01" not in text
    for user in ("reversed", "careless", "never-tie"):
        assert user in text


def test_the_table_can_show_everybody_in_80_columns(stored):
    shown = output_of("abnormal", stored, "--all")
    assert width(shown) <= 80
    assert "normal-01" in shown
    assert "it would take about" in in_one_line(shown)
    assert shown.index("Unreliable: ") < shown.index("Different: ") < shown.index("On neither")


def test_the_table_of_the_effect_ends_with_its_sentence(stored, model):
    shown = output_of("abnormal", stored, "--effect")
    assert width(shown) <= 80
    assert in_one_line(shown).endswith(model.effect_of_leaving_out().sentence())


def test_where_nobody_is_abnormal_nothing_is_said_of_an_effect(stored, model):
    shown = in_one_line(output_of("abnormal", stored, "--fdr", "1e-9"))
    assert shown.startswith(f"0 of {len(model.users_)} users are unreliable, 0 are different")
    assert "Without" not in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--kind", "evil"), "--kind 'evil' is not one of reversed, careless, position-biased, "),
        (("--list", "evil"), "--list 'evil' is not one of unreliable, different."),
        (("--fdr", "2"), "fdr is 2.0; it must lie between 0 and 1."),
        (("--fdr", "0"), "fdr is 0.0; it must lie between 0 and 1."),
    ],
)
def test_what_cannot_be_asked_for_is_refused_in_one_sentence(
    stored, monkeypatch, capsys, arguments, sentence
):
    complaint = refused(monkeypatch, capsys, "abnormal", stored, "--quiet", *arguments)
    assert complaint.startswith(f"isplitlbi: {sentence}")
    assert complaint.count("\n") == 1


def test_one_user_comes_with_the_votes_that_tell_most(model, stored):
    user = model.abnormal_users_[0]
    shown = output_of("abnormal", stored, "--user", user, "-q")
    kind = model.abnormality_.kind[int(np.flatnonzero(model.users_ == user)[0])]
    assert shown.startswith(f"{user}: ")
    assert f"{kind}: " in shown
    row = users_table(model).row(0, named=True)
    assert (row["user"], row["list"]) == (user, "unreliable")
    effect = f"{row['effect']:.2f} ({row['effect_low']:.2f}-{row['effect_high']:.2f})"
    # No draw was as far from the consensus, so that nobody knows how small p is.
    assert row["p_value"] == pytest.approx(1 / 301)
    assert f"effect {effect}, p < 0.0033, q = " in in_one_line(shown)
    assert "Unreliable: votes tell little about the items (p < 0.00" in in_one_line(shown)
    assert "What the consensus least expected:" in shown
    rows = json.loads(output_of("abnormal", stored, "--user", user, "-q", "--format", "json"))
    assert list(rows[0]) == ["left", "right", "winner", "times", "probability"]


def test_a_user_on_no_list_has_a_p_value_that_is_known(model, stored):
    row = users_table(model).filter(pl.col("user") == "diligent-1").row(0, named=True)
    shown = in_one_line(output_of("abnormal", stored, "--user", "diligent-1", "-q"))
    assert f"p = {row['p_value']:.2g}, q = {row['q_value']:.2g}" in shown
    assert "Unreliable" not in shown and "Different" not in shown


def test_pairs_that_are_spelled_otherwise_are_told_unless_one_wants_quiet(model_folder, tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("User;Left;Right\nuser-01;item-01;item-02\n")
    done = run("predict", model_folder, file)
    assert "pairs.csv: The fields are separated by ';'." in done.stderr
    assert "In the header, 'User' is read as 'user'." in done.stderr
    quiet = run("predict", model_folder, file, "--quiet")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


def test_recommend_marks_what_the_user_never_compared(tmp_path):
    votes = ["user,left,right,winner"]
    for user in ("ann", "bob", "eva"):
        items = "abc" if user == "ann" else "abcde"
        votes += [
            f"{user},{one},{other},{'left' if one < other else 'right'}"
            for one in items
            for other in items
            if one != other
        ]
    (tmp_path / "votes.csv").write_text("\n".join(votes) + "\n")
    output_of("fit", tmp_path / "votes.csv", "-o", tmp_path / "model", "--time", "0.5", "-q")
    asked = ("recommend", tmp_path / "model", "--better-than", "e", "--user")
    told = output_of(*asked, "ann")
    assert "d*" in told and "a*" not in told
    assert "* never compared by this user: placed by the consensus." in told
    assert "never compared" not in output_of(*asked, "bob")
    rows = json.loads(output_of(*asked, "ann", "--format", "json"))
    assert {row["item"]: row["compared"] for row in rows} == dict(a=True, b=True, c=True, d=False)
    called = output_of(*asked, "ann", "--call", "users=person/people", "--call", "items=models")
    assert "by this person" in called
