import numpy as np
import polars as pl
import pytest

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.notes import ReadAs
from isplitlbi.data.presets import PRESETS
from isplitlbi.data.readers import read_votes
from isplitlbi.errors import InvalidSetting, ISplitLBIError
from layouts import LAYOUTS, LEFT, RIGHT, TIE
from votes import as_tuples, assert_same

# Rows that may be of any number of items: each is a group.
GROUPED = ("argilla", "potato-ranking", "rankings")

COUNTS = "user,item1,item2,win1,win2,tied\nann,tea,milk,3,0,1\nbob,milk,tea,0,2.0,0\n"

SYSTEMS = ["a", "b", "c", "d", "e"]
FIVE_WAY = (
    "srclang,judgeId," + ",".join(f"system{k}Number,system{k}Id" for k in range(1, 6)) + ","
    + ",".join(f"system{k}rank" for k in range(1, 6)) + "\n"
    "ces,j1,-1,a,-1,b,-1,c,-1,d,-1,e,1,2,2,5,3\n"
    "ces,j2,-1,e,-1,d,-1,c,-1,b,-1,a,1,1,1,1,1\n"
)  # fmt: skip


def written(folder, content, name="votes.csv"):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def told(reading):
    return [str(note) for note in reading.notes]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_recognised_and_its_rows_are_votes(layout, tmp_path):
    content, expected = LAYOUTS[layout]
    name = layout.split(",")[0]
    path = written(tmp_path, content)
    reading = read_votes(path)
    assert reading.preset == name
    assert [row[:4] for row in as_tuples(reading.votes)] == expected
    assert reading.votes.weight is None
    assert (reading.votes.group is not None) == (name in GROUPED)
    assert_same(read_votes(path, preset=name).votes, reading.votes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_the_same_in_every_format(layout, tmp_path):
    expected = read_votes(written(tmp_path, LAYOUTS[layout][0])).votes
    text = pl.read_csv(tmp_path / "votes.csv", infer_schema=False)
    for frame in (text, pl.read_csv(tmp_path / "votes.csv")):
        frame.write_parquet(tmp_path / "votes.parquet")
        frame.write_ndjson(tmp_path / "votes.jsonl")
        frame.write_csv(tmp_path / "votes.tsv", separator="\t")
        for name in ("votes.parquet", "votes.jsonl", "votes.tsv"):
            assert_same(read_votes(tmp_path / name).votes, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_weights_and_groups_are_used_in_every_layout(layout, tmp_path):
    content, expected = LAYOUTS[layout]
    header, *rows = content.splitlines()
    lines = [f"{header},weight,group"] + [f"{row},{k + 1},g{k % 2}" for k, row in enumerate(rows)]
    votes = read_votes(written(tmp_path, "\n".join(lines))).votes
    assert votes.weight_as_given.tolist() == [k + 1 for k in range(len(expected))]
    assert votes.group.tolist() == [k % 2 for k in range(len(expected))]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_count_is_used_in_every_layout(layout, tmp_path):
    content, expected = LAYOUTS[layout]
    header, *rows = content.splitlines()
    lines = [f"{header},count"] + [f"{row},{k}" for k, row in enumerate(rows)]
    path = written(tmp_path, "\n".join([*lines, f"{rows[0]},2"]))
    votes = [row[:4] for row in as_tuples(read_votes(path).votes)]
    counted = [vote for k, vote in enumerate(expected) for _ in range(k)] + 2 * expected[:1]
    assert votes == counted


def test_every_preset_is_tried_here_and_tells_of_its_columns():
    tried = {layout.split(",")[0] for layout in LAYOUTS} | {"counts", "llmfao"}
    assert tried == set(PRESETS)
    assert PRESETS["llmfao"] is PRESETS["evalica"]
    for preset in PRESETS.values():
        assert preset.about and "user" in preset.columns
        assert ({"left", "right"} <= set(preset.columns)) == (not preset.holds)


def test_llmfao_is_another_name_for_evalica(tmp_path):
    path = written(tmp_path, LAYOUTS["evalica"][0])
    assert read_votes(path, preset="llmfao").preset == "evalica"


# --- rankings and counts -------------------------------------------------------------------


def test_a_ranking_of_five_is_ten_votes_of_one_group(tmp_path):
    reading = read_votes(written(tmp_path, FIVE_WAY))
    votes = as_tuples(reading.votes)
    assert reading.preset == "wmt" and len(votes) == 20
    rank = dict(zip(SYSTEMS, (1, 2, 2, 5, 3), strict=True))
    first, second = votes[:10], votes[10:]
    for user, left, right, outcome, _, group in first:
        assert (user, outcome, group) == ("j1", np.sign(rank[right] - rank[left]), 0)
    assert {(left, right) for _, left, right, *_ in first} == {
        (one, other) for one in SYSTEMS for other in SYSTEMS if one < other
    }
    assert {(user, outcome, group) for user, _, _, outcome, _, group in second} == {("j2", TIE, 1)}


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("others", [1.0, np.inf, -np.inf])
def test_a_rank_that_is_not_finite_is_refused_with_its_row_in_every_format(value, others, tmp_path):
    columns = ["judgeID", "system1Id", "system1rank", "system2Id", "system2rank"]
    rows = [("j", "a", 1.0, "b", 2.0), ("j", "a", value, "b", others)]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    frame.write_parquet(tmp_path / "votes.parquet")
    frame.write_csv(tmp_path / "votes.csv")
    for source in (frame, frame.to_pandas(), tmp_path / "votes.parquet", tmp_path / "votes.csv"):
        with pytest.raises(InvalidVotes, match=r", row 2: a rank .*(is not a number|is missing)"):
            read_votes(source)


def test_a_ranking_of_three_is_three_votes(tmp_path):
    header = "judgeID,system1Id,system1rank,system2Id,system2rank,system3Id,system3rank,group\n"
    votes = read_votes(written(tmp_path, header + "j,a,1,b,2,c,3,x\nj,a,3,b,2,c,1,x\n")).votes
    assert [row[3] for row in as_tuples(votes)] == [LEFT] * 3 + [RIGHT] * 3
    assert votes.group.tolist() == [0] * 6


def test_pairs_of_one_ranking_stay_together(tmp_path):
    header = "judgeID,system1Id,system1rank,system2Id,system2rank,rankingID\n"
    votes = read_votes(written(tmp_path, header + "j,a,1,b,2,7\nj,a,1,c,2,7\nj,a,1,b,2,8\n")).votes
    assert votes.group.tolist() == [0, 0, 1]


@pytest.mark.parametrize("rank", ["-1", "", "0", "best", "inf", "-inf", "1e999", "nan"])
def test_a_system_without_a_rank_is_refused_or_its_pairs_are_dropped(rank, tmp_path):
    path = written(tmp_path, FIVE_WAY.replace("1,1,1,1,1", f"1,1,{rank},1,1"))
    problem = "a rank is missing" if rank == "" else f"a rank '{rank}' is not a number from 1 on"
    with pytest.raises(InvalidVotes, match=f"row 2: {problem}.*drop_invalid=True"):
        read_votes(path)
    reading = read_votes(path, drop_invalid=True)
    assert len(reading.votes) == 16 and told(reading) == [f"4 pairs dropped: {problem}."]


STAND_FOR = "By 'win1', 'win2' and 'tied', the rows stand for 6 votes."


def test_counts_are_votes_and_no_weights(tmp_path):
    reading = read_votes(written(tmp_path, COUNTS))
    assert reading.preset == "counts" and told(reading) == [STAND_FOR]
    assert reading.votes.weight is None
    assert [row[:4] for row in as_tuples(reading.votes)] == [
        *[("ann", "tea", "milk", LEFT)] * 3,
        ("ann", "tea", "milk", TIE),
        *[("bob", "milk", "tea", RIGHT)] * 2,
    ]


def test_votes_that_are_counted_may_have_weights_and_groups(tmp_path):
    header, *rows = COUNTS.splitlines()
    lines = [f"{header},weight,group", *(f"{row},{k + 0.5},g" for k, row in enumerate(rows))]
    votes = read_votes(written(tmp_path, "\n".join(lines))).votes
    assert votes.weight_as_given.tolist() == [0.5] * 4 + [1.5] * 2
    assert votes.weight_unit == 5 / 6  # the mean over votes, not over rows
    assert votes.group.tolist() == [0] * 6


def test_counts_may_come_without_ties(tmp_path):
    votes = read_votes(written(tmp_path, "user,item1,item2,win1,win2\nann,tea,milk,3,1\n")).votes
    assert votes.outcome.tolist() == [LEFT] * 3 + [RIGHT] and votes.weight is None


def test_a_row_of_zeros_is_no_vote_and_is_told(tmp_path):
    reading = read_votes(written(tmp_path, COUNTS + "eve,tea,milk,0,0.0,0\n"))
    assert len(reading.votes) == 6 and "eve" not in reading.votes.users
    assert told(reading) == ["1 row dropped: all counts are 0.", STAND_FOR]


@pytest.mark.parametrize(
    "row, problem",
    [
        ("eve,tea,milk,-1,0,0", "row 3: a count -1 is not a whole number from 0 on"),
        ("eve,tea,milk,1,2.5,0", "row 3: a count 2.5 is not a whole number.*use weight="),
        ("eve,tea,milk,1,inf,0", "row 3: a count inf is not a whole number"),
        ("eve,tea,milk,1,1e300,0", "rows stand for .* votes, which is more than can be held"),
        ("eve,tea,milk,1,many,0", "row 3: a count 'many' is not a number"),
        ("eve,tea,milk,1,,0", "row 3: a count is missing"),
        ("eve,tea,tea,1,1,1", "row 3: item 'tea' is compared with itself"),
        (",tea,milk,1,1,1", "row 3: user is missing"),
    ],
)
def test_bad_counts_are_refused_with_the_row_of_the_file(row, problem, tmp_path):
    with pytest.raises(InvalidVotes, match=f"votes.csv.* {problem}"):
        read_votes(written(tmp_path, COUNTS + row + "\n"))


# --- both bad ------------------------------------------------------------------------------


def test_both_bad_is_a_tie_or_dropped_and_counted_either_way(tmp_path):
    path = written(tmp_path, LAYOUTS["arena"][0])
    assert told(read_votes(path)) == ["2 both-bad votes counted as ties."]
    reading = read_votes(path, both_bad="drop")
    assert told(reading) == ["2 both-bad votes dropped."]
    assert reading.votes.outcome.tolist() == [LEFT, RIGHT, TIE]
    reading = read_votes(path, labels={"both_bad": "left"}, both_bad="drop")
    assert told(reading) == ["1 both-bad vote dropped."]
    assert reading.votes.outcome.tolist() == [LEFT, RIGHT, TIE, LEFT]


def test_rows_keep_their_numbers_when_others_were_dropped(tmp_path):
    path = written(tmp_path, LAYOUTS["arena"][0] + "86,gpt,llama,model_c,j1,1\n")
    with pytest.raises(
        InvalidVotes, match="row 6: winner 'model_c' is not one of model_a, model_b"
    ):
        read_votes(path, both_bad="drop")


def test_another_wish_for_both_bad_is_refused(tmp_path):
    with pytest.raises(InvalidSetting, match="it must be tie or drop"):
        read_votes(written(tmp_path, LAYOUTS["arena"][0]), both_bad="win")


# --- which layout --------------------------------------------------------------------------


def test_columns_may_have_other_names_in_every_layout(tmp_path):
    for layout, (content, expected) in LAYOUTS.items():
        preset = PRESETS[layout.split(",")[0]]
        header, rows = content.split("\n", 1)
        columns = header.split(",")
        named = {}
        for role in ("user", "left", "right", "winner"):
            found = [name for name in preset.columns.get(role, ()) if name in columns]
            if found:
                columns[columns.index(found[0])] = named[role] = f"the {role}"
        path = written(tmp_path, ",".join(columns) + "\n" + rows)
        votes = read_votes(path, preset=preset.name, **named).votes
        assert [row[:4] for row in as_tuples(votes)] == expected


def test_named_columns_without_a_preset_are_canonical_where_that_fits(tmp_path):
    path = written(tmp_path, "rater,a,b,says,w\nann,tea,milk,left,2\n")
    options = {"user": "rater", "left": "a", "right": "b", "winner": "says", "weight": "w"}
    reading = read_votes(path, **options)
    assert reading.preset == "canonical" and reading.votes.weight_as_given.tolist() == [2]


def test_a_layout_is_recognised_with_one_column_of_another_name(tmp_path):
    content = LAYOUTS["arena"][0].replace("judge", "rater")
    reading = read_votes(written(tmp_path, content), user="rater")
    assert reading.preset == "arena" and reading.votes.users.tolist() == ["j1", "j2", "j3"]


def test_two_layouts_that_fit_are_named(tmp_path):
    path = written(tmp_path, "user,worker,left,right,winner\nu,w,tea,milk,left\n")
    with pytest.raises(
        InvalidVotes, match=r"more than one layout: canonical, evalica.* with preset="
    ):
        read_votes(path)
    assert read_votes(path, preset="canonical").votes.users.tolist() == ["u"]
    assert read_votes(path, preset="evalica").votes.users.tolist() == ["w"]


def test_of_two_columns_for_one_role_the_choice_is_told(tmp_path):
    path = written(tmp_path, "user,left,right,winner,outcome\nu,tea,milk,left,-1\n")
    reading = read_votes(path)
    assert reading.votes.outcome.tolist() == [LEFT]
    assert told(reading) == ["The winner is taken from 'winner', not from 'outcome'."]


@pytest.mark.parametrize(
    "header, options, message",
    [
        ("a,b,c", {}, "fit no layout.* found: a, b, c.* user=..., left=..., right=... and winner="),
        ("user,left,right", {}, "no column 'winner' for the winner; found: user, left, right"),
        ("judgeID,system1Id,system1rank,system2Id", {}, "no column 'system2rank' for the right"),
        ("user,left,right,winner", {"user": "who"}, "no column 'who' for the user"),
        ("user,left,right,winner", {"preset": "arena"}, "no column 'model_a' for the left"),
        ("user,left,right,winner", {"preset": "mine"}, "'mine' is not one of canonical, evalica"),
        ("user,winner,loser", {"preset": "winner-loser", "winner": "winner"},
         "layout winner-loser .* has no column for the winner. Leave out winner=..., or"),
        ("user,item1,item2,win1,win2,n", {"preset": "counts", "count": "n"},
         "layout counts .* has no column for the count"),
        (",".join(f"c{k}" for k in range(30)), {}, "c18, c19, and 10 more"),
    ],
)  # fmt: skip
def test_columns_that_fit_nothing_are_refused_with_what_to_do(header, options, message, tmp_path):
    row = ",".join("x" for _ in header.split(","))
    with pytest.raises(ISplitLBIError, match=message):
        read_votes(written(tmp_path, f"{header}\n{row}\n"), **options)


@pytest.mark.parametrize(
    "layout, old, new, message",
    [
        ("crowd-kit", "w1,tea,milk,tea", "w1,tea,milk,tie",
         "row 1: label 'tie' is not one of the two items. Map it with labels={'tie': 'tie'}"),
        ("alpaca-eval", "a1,2.0", "a1,1.73", "row 2: preference '1.73' is not one of 1, 2, 1.5"),
        ("pwcmp", "jpeg,avif,0", "jpeg,avif,0.5", "row 1: is_A_selected '0.5' is not one of 1, 0"),
        ("arena", "model_b,j1", "model_c,j1",
         r"row 2: winner 'model_c' is not one of model_a, model_b, tie, tie \(bothbad\)"),
        ("gavel", "3,12,7", "3,12,12", "row 1: item '12' is compared with itself"),
        ("winner-loser", "ann,tea", ",tea", "row 1: user is missing"),
    ],
)  # fmt: skip
def test_what_a_layout_does_not_know_is_refused(layout, old, new, message, tmp_path):
    content = LAYOUTS[layout][0]
    assert old in content
    with pytest.raises(InvalidVotes, match=message):
        read_votes(written(tmp_path, content.replace(old, new)))


def test_a_tie_can_be_declared_where_the_winner_is_an_item(tmp_path):
    content = LAYOUTS["crowd-kit"][0].replace("w1,tea,milk,tea", "w1,tea,milk,equal")
    reading = read_votes(written(tmp_path, content), labels={"equal": "tie"})
    assert reading.votes.outcome.tolist() == [TIE, RIGHT, LEFT]


@pytest.mark.parametrize("yes, no", [("true", "false"), ("True", "False"), ("TRUE", "FALSE")])
def test_truths_may_be_spelled_out(yes, no, tmp_path):
    content = LAYOUTS["pwcmp"][0].replace("avif,0", f"avif,{no}").replace("avif,1", f"avif,{yes}")
    assert read_votes(written(tmp_path, content)).votes.outcome.tolist() == [RIGHT, LEFT]


# --- frames --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["polars", "pandas", "arrow"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read_from_a_frame_as_from_a_file(layout, kind, tmp_path):
    path = written(tmp_path, LAYOUTS[layout][0])
    text = pl.read_csv(path, infer_schema=False)
    frame = {"polars": text, "pandas": text.to_pandas(), "arrow": text.to_arrow()}[kind]
    expected, found = read_votes(path), read_votes(frame)
    assert_same(found.votes, expected.votes)
    assert (found.preset, found.notes) == (expected.preset, expected.notes)
    assert_same(Comparisons.from_frame(frame), expected.votes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_types_of_a_frame_change_nothing_but_ids_that_are_numbers(layout, tmp_path):
    path = written(tmp_path, LAYOUTS[layout][0])
    found, expected = read_votes(pl.read_csv(path)).votes, read_votes(path).votes
    assert [tuple(map(str, row[:3])) + row[3:5] for row in as_tuples(found)] == [
        row[:5] for row in as_tuples(expected)
    ]


@pytest.mark.parametrize(
    "layout, old, new",
    [
        ("arena", "model_b,j1", "model_c,j1"),
        ("gavel", "3,12,7", "3,12,12"),
        ("winner-loser", "ann,tea", ",tea"),
        ("alpaca-eval", "a1,2.0", "a1,1.73"),
    ],
)
def test_a_bad_row_of_a_frame_is_named_as_in_a_file(layout, old, new, tmp_path):
    path = written(tmp_path, LAYOUTS[layout][0].replace(old, new))
    frame = pl.read_csv(path, infer_schema=False)
    with pytest.raises(InvalidVotes) as of_file:
        read_votes(path)
    with pytest.raises(InvalidVotes) as of_frame:
        Comparisons.from_frame(frame, source="votes.csv")
    assert str(of_frame.value) == str(of_file.value)
    rest = Comparisons.from_frame(frame, drop_invalid=True)
    assert_same(rest, read_votes(path, drop_invalid=True).votes)


def test_what_changes_votes_is_logged_where_nobody_is_handed_the_notes(tmp_path, caplog):
    path = written(tmp_path, LAYOUTS["arena"][0])
    for read in (Comparisons.read, lambda path: Comparisons.from_frame(pl.read_csv(path))):
        caplog.clear()
        read(path)
        (record,) = caplog.records
        assert record.getMessage().endswith(": 2 both-bad votes counted as ties.")


def test_a_frame_has_options_but_no_format():
    frame = pl.DataFrame({"who": [1], "a": [2], "b": [3], "verdict": [0]})
    columns = {"user": "who", "left": "a", "right": "b", "winner": "verdict"}
    with pytest.raises(InvalidVotes, match="can mean more than one thing"):
        Comparisons.from_frame(frame, **columns)
    for label in (0, 0.0, "0"):
        votes = Comparisons.from_frame(frame, **columns, labels={label: "right"})
        assert as_tuples(votes)[0][:4] == (1, 2, 3, RIGHT)
    with pytest.raises(InvalidSetting, match="a data frame has no format"):
        Comparisons.from_frame(frame, format="csv")


# --- spelling ------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spell", [str.upper, str.title, lambda name: f" {name} "])
def test_names_of_columns_may_differ_in_case_and_spaces(layout, spell, tmp_path):
    content = LAYOUTS[layout][0]
    header, rows = content.split("\n", 1)
    path = written(tmp_path, ",".join(map(spell, header.split(","))) + "\n" + rows, "other.csv")
    reading, expected = read_votes(path), read_votes(written(tmp_path, content))
    assert_same(reading.votes, expected.votes)
    changed = [note for note in reading.notes if isinstance(note, ReadAs)]
    assert changed and reading.preset == expected.preset
    assert str(changed[0]).startswith("In the header, ")
    jsonl = tmp_path / "other.jsonl"
    jsonl.write_text(pl.read_csv(path, infer_schema=False).write_ndjson(), encoding="utf-8")
    pl.read_csv(path, infer_schema=False).write_parquet(tmp_path / "other.parquet")
    for other in (jsonl, tmp_path / "other.parquet"):
        assert_same(read_votes(other).votes, expected.votes)


def test_a_name_that_is_known_goes_before_one_that_is_spelled_otherwise(tmp_path):
    path = written(tmp_path, "User,user,left,right,winner,Loser\nx,u,a,b,tie,c\n")
    reading = read_votes(path)
    assert reading.votes.users.tolist() == ["u"] and reading.notes == ()
    path = written(tmp_path, "user,left,right,winner,Weight\nu,a,b,tie,1\n")
    assert told(read_votes(path)) == ["In the header, 'Weight' is read as 'weight'."]


@pytest.mark.parametrize(
    "layout, said, known",
    [
        ("canonical", "Left", "left"),
        ("canonical", " LEFT ", "left"),
        ("evalica", "Left", "left"),
        ("arena", "Model A", "model_a"),
        ("arena", "both bad", "both_bad"),
    ],
)
def test_words_for_the_winner_may_differ_in_case_and_spaces_and_that_is_told(
    layout, said, known, tmp_path
):
    content = LAYOUTS[layout][0]
    header, rows = content.split("\n", 1)
    assert f",{known}" in rows
    path = written(tmp_path, header + "\n" + rows.replace(f",{known}", f",{said}"))
    assert as_tuples(read_votes(path).votes) == as_tuples(
        read_votes(written(tmp_path, content, "known.csv")).votes
    )
    assert f"In winner, {said!r} is read as {known!r}, 1 time." in told(read_votes(path))


def test_a_word_that_could_be_two_things_is_refused(tmp_path):
    path = written(tmp_path, "user,left,right,winner\nu,a,b,X\n")
    with pytest.raises(InvalidVotes, match="winner 'X' is not one of"):
        read_votes(path, labels={"x": "left", " x": "right"})
    path = written(tmp_path, "user,left,right,winner\nu,Left,b,Left\n")
    with pytest.raises(InvalidVotes, match="holds the ids of items"):
        read_votes(path)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_fields_may_be_separated_otherwise_and_that_is_told(separator, tmp_path):
    content = LAYOUTS["canonical"][0]
    expected = read_votes(written(tmp_path, content))
    path = written(tmp_path, content.replace(",", separator), "other.csv")
    reading = read_votes(path, format="csv")
    assert_same(reading.votes, expected.votes)
    assert told(reading) == [f"The fields are separated by {separator!r}."]
    both = written(tmp_path, content.replace(",", separator).replace("user", "us;e\tr", 1))
    with pytest.raises(InvalidVotes, match=r"separated by ';' and '\\t'. Export it with commas"):
        read_votes(both, format="csv")


# --- without users -------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_may_lack_its_users(name, tmp_path):
    content, votes = LAYOUTS[name]
    table = pl.read_csv(content.encode(), infer_schema=False)
    known = {column for preset in PRESETS.values() for column in preset.columns["user"]}
    path = tmp_path / "votes.csv"
    table.drop(known, strict=False).write_csv(path)
    without = read_votes(path)
    assert any(str(note).startswith("No column can be the user") for note in without.notes)
    path.write_text(content)
    aside = read_votes(path, anonymous=True)
    assert any("are set aside" in str(note) for note in aside.notes)
    for reading in (without, aside):
        found = reading.votes
        assert found.is_anonymous
        assert found.users.tolist() == ["everybody"]
        assert [each[1:4] for each in as_tuples(found)] == [each[1:4] for each in votes]


def test_a_column_that_may_be_the_user_is_not_passed_over():
    frame = pl.DataFrame({"left": ["a"], "right": ["b"], "winner": ["tie"], "Annotator": ["x"]})
    with pytest.raises(InvalidVotes, match="no column 'user' for the user; found: left"):
        read_votes(frame)
    reading = read_votes(frame, anonymous=True)
    assert [str(note) for note in reading.notes] == [
        "The users in 'Annotator' are set aside: all votes are those of one crowd."
    ]
    assert read_votes(frame, user="Annotator").votes.users.tolist() == ["x"]
    with pytest.raises(InvalidSetting, match="votes cannot have users and be anonymous"):
        read_votes(frame, user="Annotator", anonymous=True)


def test_frames_without_users_are_a_crowd_and_that_is_logged(caplog):
    frame = pl.DataFrame({"left": ["a"], "right": ["b"], "winner": ["tie"]})
    assert Comparisons.from_frame(frame, anonymous=True).is_anonymous
    assert caplog.messages == []
    assert Comparisons.from_frame(frame).is_anonymous
    (said,) = caplog.messages
    assert said.startswith("votes: No column can be the user, so all votes are those of one")


def test_parts_of_a_folder_all_have_users_or_none_has(tmp_path):
    (tmp_path / "a.csv").write_text("left,right,winner\na,b,left\n")
    (tmp_path / "b.csv").write_text("left,right,winner\nb,c,tie\n")
    assert read_votes(tmp_path).votes.is_anonymous
    (tmp_path / "b.csv").write_text("user,left,right,winner\nu,b,c,tie\n")
    with pytest.raises(InvalidVotes, match="no users"):
        read_votes(tmp_path)
    assert len(read_votes(tmp_path, anonymous=True).votes) == 2


def test_votes_on_pairs_may_say_which_ranking_they_are_from(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("user,left,right,winner,ranking\nann,tea,milk,left,1\nann,tea,juice,tie,1\n")
    votes = Comparisons.read(file)
    assert len(votes) == 2 and votes.items.tolist() == ["juice", "milk", "tea"]
    assert len(Comparisons.read(file, group="ranking").group) == 2
