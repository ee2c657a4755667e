"""Results as frames: named columns, of the kind of frame that the votes came in."""

import pickle
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isplitlbi import Comparisons, ISplitLBI, load_model, save_model
from isplitlbi.data.outcomes import WINNERS
from isplitlbi.errors import InvalidSetting, InvalidVotes, MissingLibrary
from isplitlbi.evaluation.simulate import simulate

VOTES = simulate(
    n_users=12, n_items=6, votes_per_user=(30, 40), threshold=0.5, malicious={"reversed": 0.2},
    random_state=5,
).votes  # fmt: skip
FRAME = pl.DataFrame(
    {
        "user": VOTES.users[VOTES.user],
        "left": VOTES.items[VOTES.left],
        "right": VOTES.items[VOTES.right],
        "winner": [WINNERS[outcome] for outcome in VOTES.outcome.tolist()],
    }
)
QUICK = {"nu": 0.3, "kappa": 10.0, "n_folds": 2}
USER, ITEM = VOTES.users[0], VOTES.items[0]
KINDS = {
    "polars": (FRAME, pl.DataFrame),
    "pandas": (FRAME.to_pandas(), pd.DataFrame),
    "pyarrow": (FRAME.to_arrow(), pa.Table),
}

RESULTS = {
    "leaderboard": lambda model: model.leaderboard(),
    "leaderboard without a user": lambda model: model.leaderboard_without(USER),
    "ranking": lambda model: model.ranking(),
    "ranking of a user": lambda model: model.ranking(USER),
    "as shown": lambda model: model.ranking_as_shown(),
    "own scores": lambda model: model.own_scores(USER),
    "pairs": lambda model: model.head_to_head(),
    "users": lambda model: model.abnormality_,
    "users at another rate": lambda model: model.test_users(0.2),
    "effect": lambda model: model.effect_of_leaving_out(),
    "telling votes": lambda model: model.telling_votes(USER),
    "recommended": lambda model: model.recommend(better_than=model.ranking().items[-1]),
    "parts": lambda model: model.decompose(),
    "selection": lambda model: model.selection_,
    "features": lambda model: model.features(),
    "cards": lambda model: model.user_cards(),
}


@pytest.fixture(scope="module")
def models():
    return {kind: ISplitLBI(**QUICK).fit(frame) for kind, (frame, _) in KINDS.items()}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_every_result_is_a_frame_of_the_kind_that_came_in(result, models):
    expected = result(models["polars"]).to_frame()
    assert expected.width >= 3
    for kind, (_, frame_type) in KINDS.items():
        found = result(models[kind])
        frame = found.to_frame()
        assert isinstance(frame, frame_type)
        columns = frame.column_names if kind == "pyarrow" else list(frame.columns)
        assert columns == expected.columns
        assert found.to_frame("polars").equals(expected)
        assert isinstance(found.to_frame("pyarrow"), pa.Table)


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_every_result_is_short_where_it_shows_itself(result, models):
    found = result(models["polars"])
    page = found._repr_html_()
    assert "<table>" in page
    assert page.count("<tr>") <= 12
    if not isinstance(found, list):
        assert len(repr(found)) < 300
        assert "array(" not in repr(found)


def test_pandas_keeps_whole_numbers_whole_and_what_is_empty_empty(models):
    table = models["pandas"].abnormality_.to_frame()
    ranks = table["entry_rank"]
    assert str(ranks.dtype) == ("Int64" if ranks.isna().any() else "int64")
    assert table["list"].isna().sum() == (~table["abnormal"]).sum() > 0
    assert table["user"].tolist() == models["polars"].abnormality_.to_frame()["user"].to_list()
    places = models["pandas"].decompose().to_frame()
    assert places["item"].isna().equals(places["term"] != "taste")


def test_votes_from_files_arrays_and_stored_models_give_polars(tmp_path, models):
    FRAME.write_csv(tmp_path / "votes.csv")
    read = Comparisons.read(tmp_path / "votes.csv")
    pairs, outcomes = FRAME.select("user", "left", "right"), VOTES.outcome
    save_model(models["pandas"], tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    by_file = ISplitLBI(**QUICK, with_tests=False).fit(read)
    for model in (loaded, by_file):
        assert isinstance(model.leaderboard().to_frame(), pl.DataFrame)
    assert isinstance(loaded.abnormality_.to_frame(), pl.DataFrame)
    by_rows = ISplitLBI(**QUICK, with_tests=False).fit(pairs.to_numpy(), outcomes)
    assert isinstance(by_rows.ranking().to_frame(), pl.DataFrame)
    by_frame = ISplitLBI(**QUICK, with_tests=False).fit(pairs.to_pandas(), outcomes)
    assert isinstance(by_frame.ranking().to_frame(), pd.DataFrame)


def test_parts_of_votes_and_pickles_remember_the_kind(models):
    votes = Comparisons.from_frame(KINDS["pandas"][0])
    for some in (votes, votes.subset(votes.user > 0), votes.without(users=USER)):
        assert some.frame_kind == "pandas"
    other = Comparisons.from_frame(KINDS["pyarrow"][0])
    assert Comparisons.joined(votes, votes).frame_kind == "pandas"
    assert Comparisons.joined(votes, other).frame_kind == "polars"
    for result in (models["pandas"].leaderboard(), models["pandas"].recommend(same_as=ITEM)):
        assert isinstance(pickle.loads(pickle.dumps(result)).to_frame(), pd.DataFrame)


def test_another_kind_can_be_asked_for_and_an_unknown_one_is_refused(models, monkeypatch):
    board = models["pandas"].leaderboard()
    assert isinstance(board.to_frame("polars"), pl.DataFrame)
    with pytest.raises(InvalidSetting, match="kind 'excel' is not one of polars, pandas, pyarrow"):
        board.to_frame("excel")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingLibrary, match=r"pandas is not installed.*to_frame\(\"polars\"\)"):
        board.to_frame()


def test_lists_stay_lists(models):
    model = models["polars"]
    best, *others = model.ranking().items.tolist()
    found = model.recommend(better_than=others[-1])
    assert isinstance(found, list)
    assert found == found.to_frame()["item"].to_list()
    assert (found.to_frame()["difference"] > 0).all()
    nothing = model.recommend(better_than=best)
    assert nothing == []
    assert nothing.to_frame().schema == found.to_frame().schema
    told = model.telling_votes(USER, most=2)
    assert [vote.left for vote in told] == told.to_frame()["left"].to_list()


def test_the_table_of_a_selection_marks_what_was_chosen(models):
    selection = models["polars"].selection_
    (chosen,) = selection.to_frame().filter("chosen").to_dicts()
    assert chosen["time"] == selection.time
    assert chosen["nu"] == selection.dynamics.nu
    assert (
        chosen["log_loss"]
        == selection.chosen.mean("log_loss")[selection.chosen.times.tolist().index(selection.time)]
    )


def test_the_parts_of_deviations_add_up_to_all_of_them(models):
    model = models["polars"]
    parts = model.decompose()
    table = parts.to_frame()
    of_user = table.filter(pl.col("user") == USER, pl.col("item") == ITEM)["deviation"].sum()
    total = sum(part.toarray()[0, 0] for part in parts)
    assert of_user == total != 0.0
    assert set(table["term"]) == set(model.terms_.names)


# --- pairs to predict ----------------------------------------------------------------------

LAYOUTS = {
    "with outcomes": FRAME,
    "other letters": FRAME.rename({"user": "User", "left": "LEFT"}),
    "evalica": FRAME.rename({"user": "worker"}),
    "arena": FRAME.rename({"user": "judge", "left": "model_a", "right": "model_b"}),
    "gavel": FRAME.rename({"user": "Annotator ID", "left": "Winner ID", "right": "Loser ID"}),
    "counts": FRAME.rename({"left": "item1", "right": "item2"}).with_columns(win1=1, win2=0),
    "three columns": FRAME.select(who="user", one="left", other="right"),
}


@pytest.mark.parametrize("frame", LAYOUTS.values(), ids=LAYOUTS)
def test_pairs_to_predict_may_have_the_layouts_of_votes(frame, models):
    model = models["polars"]
    expected = model.predict_proba(FRAME.select("user", "left", "right"))
    assert (model.predict_proba(frame) == expected).all()
    assert (model.predict_proba(frame.to_pandas()) == expected).all()


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        (FRAME.rename({"left": "first"}), "needs the columns"),
        (
            FRAME.rename({"left": "item1", "right": "item2"}).with_columns(model_a=1, model_b=2),
            "more than one layout: arena, counts. Keep the columns of one",
        ),
        (
            FRAME.rename({"user": "judgeID", "left": "system1Id", "right": "system2Id"})
            .with_columns(system3Id=pl.lit("x")),
            "the layout wmt has more than two items. Write a row for every pair",
        ),
    ],
    ids=["unknown", "two layouts", "many items"],
)  # fmt: skip
def test_pairs_of_no_clear_layout_are_refused(frame, complaint, models):
    with pytest.raises(InvalidVotes, match=complaint):
        models["polars"].predict(frame)
