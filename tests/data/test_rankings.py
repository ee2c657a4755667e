import json
import time
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.notes import PairsTaken
from isplitlbi.data.readers import read_pairs, read_votes
from isplitlbi.data.splits import fold_of_votes
from votes import as_tuples, assert_same

LEFT, TIE, RIGHT = 1, 0, -1

RANKINGS = "user,ranking\nann,tea > milk = water\nbob,water\ncid,milk>tea\n"
SETS = (
    "user,item1,item2,item3,item4,best,worst\n"
    "ann,tea,milk,water,juice,milk,juice\nbob,tea,milk,water,,water,tea\n"
)


def written(folder, content, name="votes.csv"):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def votes_in(path, **options):
    """Return who, which two, what was said, and the group."""
    votes = as_tuples(read_votes(path, **options).votes)
    return [(*vote[:4], vote[5]) for vote in votes]


def told(reading):
    return [str(note) for note in reading.notes]


# --- rankings ------------------------------------------------------------------------------


def test_a_ranking_is_a_vote_on_every_pair_and_its_pairs_are_a_group(tmp_path):
    path = written(tmp_path, RANKINGS)
    assert votes_in(path) == [
        ("ann", "tea", "milk", LEFT, 0),
        ("ann", "tea", "water", LEFT, 0),
        ("ann", "milk", "water", TIE, 0),
        ("cid", "milk", "tea", LEFT, 1),
    ]
    assert told(read_votes(path)) == [
        "1 row dropped: fewer than two items are in it.",
        "Every row is a ranking. Its pairs are votes: 4 in all.",
    ]


names = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters=">=,"), min_size=1
).filter(lambda name: not name.startswith("["))
tiers = st.lists(st.lists(names, min_size=1, max_size=3), min_size=1, max_size=4).filter(
    lambda tiers: len({name for tier in tiers for name in tier}) == sum(map(len, tiers)) > 1
)


@settings(max_examples=25)
@given(st.lists(tiers, min_size=1, max_size=4))
def test_all_ways_to_write_a_ranking_say_the_same_and_what_is_not_named_is_not_compared(rankings):
    users = [f"u{k}" for k in range(len(rankings))]
    place = [{name: k for k, tier in enumerate(each) for name in tier} for each in rankings]
    expected = [
        (user, one, other, int(np.sign(of_user[other] - of_user[one])))
        for user, of_user in zip(users, place, strict=True)
        for one, other in combinations(of_user, 2)
    ]
    signs = [" > ".join(" = ".join(tier) for tier in each) for each in rankings]
    commas = [",".join("=".join(tier) for tier in each) for each in rankings]
    lists = [json.dumps([tier if len(tier) > 1 else tier[0] for tier in each]) for each in rankings]
    for user, column, written_so in (
        ("user", "ranking", signs), ("user", "ranking", lists), ("user_id", "rank_order", commas),
        ("user_id", "responses", lists),
    ):  # fmt: skip
        votes = Comparisons.from_frame(pl.DataFrame({user: users, column: written_so}))
        assert [vote[:4] for vote in as_tuples(votes)] == expected


def test_a_list_in_json_is_a_ranking_whatever_signs_are_in_the_names(tmp_path):
    rows = [{"user": 1, "ranking": ["a > b", ["c = d", 7]]}, {"user": 2, "ranking": "7 > e"}]
    lines = written(tmp_path, "\n".join(map(json.dumps, rows)), "votes.jsonl")
    expected = [
        ("1", "a > b", "c = d", LEFT, 0),
        ("1", "a > b", "7", LEFT, 0),
        ("1", "c = d", "7", TIE, 0),
        ("2", "7", "e", LEFT, 1),
    ]
    assert votes_in(lines) == expected
    assert votes_in(written(tmp_path, json.dumps(rows), "votes.json")) == expected


def test_columns_of_places_may_be_any_number_and_end_early(tmp_path):
    path = written(
        tmp_path, "user,rank1,rank2,rank3\nann,tea,milk,water\nbob,,milk,tea\ncid,tea,,\n"
    )
    assert votes_in(path) == [
        ("ann", "tea", "milk", LEFT, 0),
        ("ann", "tea", "water", LEFT, 0),
        ("ann", "milk", "water", LEFT, 0),
        ("bob", "milk", "tea", LEFT, 1),
    ]
    objects = [{"user": "a", "rank1": "x", "rank2": "y"},
               {"user": "b", "rank1": "z", "rank2": "x", "Rank_3": "y"}]  # fmt: skip
    for content in ("\n".join(map(json.dumps, objects)), json.dumps(objects)):
        found = votes_in(written(tmp_path, content, "votes.jsonl"))
        assert [vote[1:3] for vote in found] == [("x", "y"), ("z", "x"), ("z", "y"), ("x", "y")]
    pl.DataFrame(objects).write_parquet(tmp_path / "votes.parquet")
    assert votes_in(tmp_path / "votes.parquet") == found


def test_a_ranking_of_300_items_is_44_850_votes_at_once_and_that_is_told(tmp_path):
    items = [f"i{k:03}" for k in range(300)]
    header = ",".join(f"rank{k}" for k in range(1, 301))
    wide = written(tmp_path, f"user,{header}\nann,{','.join(items)}\n")
    long = written(tmp_path, f"user,ranking\nann,{'>'.join(items)}\n", "long.csv")
    began = time.perf_counter()
    readings = [read_votes(path) for path in (wide, long)]
    assert time.perf_counter() - began < 5.0  # a tenth of a second, on an idle machine
    for reading in readings:
        assert reading.notes == (PairsTaken("a ranking", count=44_850),)
        assert "44,850 in all" in str(reading.notes[0])
        assert len(reading.votes) == 44_850
    assert_same(*(reading.votes for reading in readings))


def test_folds_keep_a_ranking_together_and_every_count_is_a_ranking_of_its_own(tmp_path):
    rows = "".join(f"u{k % 3},a > b > c > d\n" for k in range(12))
    votes = read_votes(written(tmp_path, "user,ranking\n" + rows)).votes
    fold = fold_of_votes(votes, 3, np.random.default_rng(1))
    assert all(len(set(fold[votes.group == group])) == 1 for group in range(12))
    counted = written(tmp_path, "user,ranking,count\nann,a > b > c,2\nbob,b > a,1\ncid,a > b,0\n")
    found = votes_in(counted)
    assert [vote[4] for vote in found] == [0, 0, 0, 1, 1, 1, 2]
    assert told(read_votes(counted)) == [
        "1 row dropped: count is 0.",
        "By 'count', the rows stand for 7 votes.",
        "Every row is a ranking. Its pairs are votes: 7 in all.",
    ]
    given = written(tmp_path, "user,ranking,group,weight\nann,a > b,g,2\nann,b > c > a,g,3\n")
    assert {vote[4] for vote in votes_in(given)} == {0}
    assert read_votes(given).votes.weight_as_given.tolist() == [2, 3, 3, 3]


# --- the best and the worst ----------------------------------------------------------------


def test_the_best_wins_against_all_others_and_all_others_against_the_worst(tmp_path):
    reading = read_votes(written(tmp_path, SETS))
    found = {(*vote[:3], vote[5]) for vote in as_tuples(reading.votes)}
    assert reading.preset == "best-worst" and set(reading.votes.outcome) == {LEFT}
    assert found == {
        ("ann", "milk", "tea", 0), ("ann", "milk", "water", 0), ("ann", "milk", "juice", 0),
        ("ann", "tea", "juice", 0), ("ann", "water", "juice", 0),
        ("bob", "water", "milk", 1), ("bob", "water", "tea", 1), ("bob", "milk", "tea", 1),
    }  # fmt: skip
    assert len(reading.votes) == 5 + 3
    assert told(reading) == [
        "Every row is a set with its best and its worst item. Its pairs are votes: 8 in all."
    ]


@settings(max_examples=25)
@given(st.integers(2, 7), st.data())
def test_a_set_of_n_items_is_2n_minus_3_votes(n, data):
    items = list(range(n))
    best, worst = data.draw(st.permutations(items).map(lambda order: order[:2]))
    row = {"user": "u", "best": best, "worst": worst} | {f"item{k + 1}": k for k in items}
    votes = Comparisons.from_frame(pl.DataFrame([row]))
    assert len(votes) == 2 * n - 3 and votes.items.tolist() == items  # which are integers still
    assert all(best in pair or worst in pair for pair in zip(
        votes.items[votes.left], votes.items[votes.right], strict=True))  # fmt: skip


# --- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, message",
    [
        (RANKINGS + "eve,tea > > milk\n", "row 4: an item of the ranking has no name. Name it"),
        (RANKINGS + "eve,\n", "row 4: the ranking is missing. Fill it in"),
        (RANKINGS + "eve,[]\n", "row 4: the ranking is missing"),
        (RANKINGS + 'eve,"[1.5, 2]"\n', "row 4: the ranking is a list of something else than name"),
        (RANKINGS + f"eve,{'[' * 90_000}\n", "row 4: the ranking is a list of something else"),
        (RANKINGS + "eve,tea > milk > tea\n", "row 4: item 'tea' is there twice. Name every"),
        (RANKINGS + ",tea > milk\n", "row 4: user is missing"),
        (SETS + "eve,tea,milk,water,,beer,tea\n", "row 3: best 'beer' is not one of the items"),
        (SETS + "eve,tea,milk,water,,,tea\n", "row 3: best is missing"),
        (SETS + "eve,tea,milk,water,,tea,tea\n", "row 3: item 'tea' is both best and worst"),
        (SETS + "eve,tea,milk,tea,,milk,tea\n", "row 3: item 'tea' is there twice"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_named_or_dropped(content, message, tmp_path):
    path = written(tmp_path, content)
    with pytest.raises(InvalidVotes, match=message + ".*or drop such rows with drop_invalid=True"):
        read_votes(path)
    expected = read_votes(written(tmp_path, RANKINGS if "ranking" in content else SETS, "good.csv"))
    reading = read_votes(path, drop_invalid=True)
    assert [vote[:4] for vote in as_tuples(reading.votes)] == [
        vote[:4] for vote in as_tuples(expected.votes)
    ]
    assert any("dropped: " in each for each in told(reading))


@pytest.mark.parametrize(
    "header, message",
    [
        ("user,rank1,rank2,rank4", "a column 'rank4', and none before it. Number the columns"),
        ("user,rank0,rank1,rank2", "a column 'rank0', and none before it"),
        ("user,rank1,rank2,rank3,Rank_3", "'rank3' and 'Rank_3' have the same number"),
        ("user,foo,bar", "fit no layout"),
        ("foo,bar", "fit no layout"),
    ],
)
def test_columns_that_are_no_ranking_are_refused(header, message, tmp_path):
    row = ",".join(f"x{k}" for k, _ in enumerate(header.split(",")))
    with pytest.raises(InvalidVotes, match=message):
        read_votes(written(tmp_path, f"{header}\n{row}\n"))


def test_a_named_column_of_outcomes_is_no_ranking(tmp_path):
    path = written(tmp_path, "model_a,model_b,verdict\ngpt,llama,model_a\n")
    assert read_votes(path, winner="verdict").preset == "arena"
    path = written(tmp_path, "user,says\nann,tea > milk\n")
    with pytest.raises(InvalidVotes, match="fit no layout"):
        read_votes(path, winner="says")
    assert len(read_votes(path, winner="says", preset="rankings").votes) == 1


def test_ids_of_two_kinds_in_one_row_are_refused():
    frame = pl.DataFrame({"user": ["u"], "rank1": ["a"], "rank2": [2]})
    with pytest.raises(InvalidVotes, match="text in one column and integers in the other, such as"):
        Comparisons.from_frame(frame)
    frame = pl.DataFrame({"user": ["u"], "rank1": [1], "rank2": [2]}, schema_overrides={
        "rank2": pl.Int8})  # fmt: skip
    assert Comparisons.from_frame(frame).items.tolist() == [1, 2]


def test_more_pairs_than_can_be_held_are_refused_before_memory_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("isplitlbi.data.counts._memory", lambda: 1000.0)
    with pytest.raises(InvalidVotes, match="rows stand for 45 pairs, which is more than can be"):
        read_votes(written(tmp_path, "user,ranking\nann," + ">".join("abcdefghij") + "\n"))


def test_pairs_to_predict_are_not_taken_from_sets(tmp_path):
    with pytest.raises(InvalidVotes, match="has more than two items"):
        read_pairs(written(tmp_path, SETS))
