"""Several files of any layouts that are read as one set of votes."""

import io
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes, ISplitLBI
from isplitlbi.data.readers import read_votes
from isplitlbi.data.splits import folds_within_user
from isplitlbi.data.summary import Summary
from isplitlbi.errors import InvalidSetting, ISplitLBIError
from votes import as_tuples, multiset

CANONICAL = "user,left,right,winner\nann,tea,milk,left\nbob,milk,tea,tie\n"
ARENA = "judge,model_a,model_b,winner\nann,tea,rum,model_b\neve,rum,tea,both_bad\n"
COUNTS = "user,item1,item2,win1,win2\nbob,tea,rum,2,1\n"


def written(folder, content, name="votes.csv"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def told(reading):
    return [str(note) for note in reading.notes]


def fingerprint(votes):
    return Summary.of(votes).fingerprint


# --- layouts and formats ----------------------------------------------------------------------


def test_files_of_different_layouts_and_formats_are_one_set_of_votes(tmp_path):
    pl.read_csv(written(tmp_path, COUNTS, "x.csv")).write_parquet(tmp_path / "c.parquet")
    files = [written(tmp_path, CANONICAL, "a.csv"), written(tmp_path, ARENA, "b.csv")]
    files.append(tmp_path / "c.parquet")
    reading = read_votes(files)
    assert [row[:4] for row in as_tuples(reading.votes)] == [
        ("ann", "tea", "milk", 1), ("bob", "milk", "tea", 0),
        ("ann", "tea", "rum", -1), ("eve", "rum", "tea", 0),
        ("bob", "tea", "rum", 1), ("bob", "tea", "rum", 1), ("bob", "tea", "rum", -1),
    ]  # fmt: skip
    assert reading.votes.users.tolist() == ["ann", "bob", "eve"]
    assert reading.preset == "canonical, arena, counts"
    assert reading.votes.file == "a.csv, b.csv and c.parquet"
    assert told(reading) == [
        "a.csv: 2 votes; the layout is canonical.",
        "b.csv: 2 votes; the layout is arena.",
        "c.parquet: 3 votes; the layout is counts.",
        "b.csv: 1 both-bad vote counted as a tie.",
        "c.parquet: By 'win1' and 'win2', the rows stand for 3 votes.",
    ]
    assert fingerprint(Comparisons.read(files)) == fingerprint(reading.votes)
    assert fingerprint(Comparisons.read(tuple(map(str, files)))) == fingerprint(reading.votes)


@given(st.lists(st.sampled_from([0, 1, 2]), min_size=6, max_size=20))
def test_files_are_the_rows_of_one_file_whatever_their_order(tmp_path_factory, places):
    folder = tmp_path_factory.mktemp("votes")
    words = ["left", "tie", "right"]
    lines = [f"u{k % 3},a{k % 2},b{k % 4},{words[k % 3]}" for k in range(len(places))]
    header = "user,left,right,winner\n"
    whole = written(folder, header + "\n".join(lines))
    files = []
    for number in sorted(set(places)):
        mine = [line for line, place in zip(lines, places, strict=True) if place == number]
        files.append(written(folder, header + "\n".join(mine), f"{number}.csv"))
    expected = read_votes(whole).votes
    for order in (files, files[::-1]):
        found = read_votes(order).votes
        assert multiset(found) == multiset(expected)
        assert fingerprint(found) == fingerprint(expected)


def test_one_file_in_a_list_is_that_file(tmp_path):
    path = written(tmp_path, CANONICAL)
    assert read_votes([path]).notes == read_votes(path).notes == ()
    assert read_votes([path]).votes.file == "votes.csv"


def test_standard_input_and_folders_may_be_among_them(tmp_path, monkeypatch):
    folder = written(tmp_path, ARENA, "parts/1.csv").parent
    written(tmp_path, ARENA, "parts/2.csv")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CANONICAL.encode())))
    reading = read_votes(["-", folder])
    assert len(reading.votes) == 6
    assert reading.votes.file == "standard input and parts"
    assert told(reading) == [
        "standard input: 2 votes; the layout is canonical.",
        "parts: 4 votes; the layout is arena.",
        "1.csv and 1 other part: 2 both-bad votes counted as ties.",
    ]


def test_files_of_one_name_are_called_by_their_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for month in ("may", "june"):
        written(tmp_path, CANONICAL, f"{month}/votes.csv")
    reading = read_votes(["may/votes.csv", "june/votes.csv"])
    assert reading.votes.file == "may/votes.csv and june/votes.csv"
    written(tmp_path, CANONICAL + "bob,tea,tea,left\n", "june/votes.csv")
    with pytest.raises(InvalidVotes, match=r"^june/votes\.csv, row 3: item 'tea' is compared"):
        read_votes(["may/votes.csv", "june/votes.csv"])


def test_an_estimator_takes_a_list_of_files(tmp_path):
    rows = CANONICAL + "".join(f"u{k},tea,milk,{'left' if k % 3 else 'tie'}\n" for k in range(9))
    files = [written(tmp_path, rows, "a.csv"), written(tmp_path, ARENA, "b.csv")]
    settings = {"time": 0.5, "with_tests": False}
    found = ISplitLBI(**settings).fit(files)
    expected = ISplitLBI(**settings).fit(Comparisons.read(files))
    np.testing.assert_array_equal(found.consensus_, expected.consensus_)
    assert found.votes().file == "a.csv and b.csv"


# --- named columns ----------------------------------------------------------------------------


def test_a_named_column_holds_for_the_files_that_have_it(tmp_path):
    mine = written(tmp_path, CANONICAL.replace("user", "rater"), "mine.csv")
    reading = read_votes([mine, written(tmp_path, ARENA, "b.csv")], user="rater")
    assert reading.votes.users.tolist() == ["ann", "bob", "eve"]
    assert told(reading)[2] == (
        "b.csv: There is no column 'rater' for the user in it, so that this file is read as its "
        "layout says."
    )
    with pytest.raises(
        InvalidVotes, match=r"there is no column 'who' for the user in any of mine\.csv and b\.csv"
    ):
        read_votes([mine, tmp_path / "b.csv"], user="who")
    other = written(tmp_path, CANONICAL, "a.csv")
    with pytest.raises(
        InvalidVotes, match=r"no column 'who' for the user in any of a\.csv and b\.csv.*user="
    ):
        read_votes([other, tmp_path / "b.csv"], user="who")


# --- what one file has and another has not -----------------------------------------------------


def test_votes_of_a_file_without_weights_have_the_weight_1(tmp_path):
    heavy = "user,left,right,winner,weight\nann,tea,milk,left,2.5\n"
    files = [written(tmp_path, heavy, "a.csv"), written(tmp_path, CANONICAL, "b.csv")]
    reading = read_votes(files)
    assert reading.votes.weight_as_given.tolist() == [2.5, 1.0, 1.0]
    assert told(reading)[2:] == [
        "b.csv: There are no weights in it, so that every vote of it has the weight 1.",
        "The weights are 1.5 on average. Only how they compare with each other counts: a fit "
        "divides them by their mean.",
    ]


def test_groups_of_different_files_are_different_groups(tmp_path):
    content = "user,left,right,winner,group\nann,tea,milk,left,1\nann,tea,rum,left,1\n"
    files = [written(tmp_path, content, name) for name in ("a.csv", "b.csv")]
    reading = read_votes(files)
    assert reading.votes.group.tolist() == [0, 0, 1, 1]
    assert told(reading)[-1] == (
        "Groups of different files are different groups, also where their ids are the same."
    )
    assert read_votes(tmp_path).votes.group.tolist() == [0] * 4  # parts of one folder are one


def test_votes_of_a_file_without_groups_are_groups_of_their_own_whatever_the_order(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"u{rng.integers(3)},i{rng.integers(3)},j{rng.integers(3)},{rng.choice(['left', 'tie'])}"
        for _ in range(30)
    ]
    header = "user,left,right,winner"
    grouped = "\n".join([f"{header},group", *(f"{row},{k // 3}" for k, row in enumerate(rows))])
    files = [written(tmp_path, grouped, "b.csv")]
    files.append(written(tmp_path, "\n".join([header, *rows]), "a.csv"))
    reading = read_votes(files)
    assert len(np.unique(reading.votes.group[30:])) == 30
    assert not set(reading.votes.group[:30]) & set(reading.votes.group[30:])
    assert "a.csv: There are no groups in it, so that every vote of it is a group of its own." in (
        told(reading)
    )
    folds = [len(held_out) for _, held_out in folds_within_user(reading.votes, 3, 0)]
    written(tmp_path, "\n".join([header, *rng.permutation(rows)]), "a.csv")
    for order in (files, files[::-1]):
        again = read_votes(order).votes
        assert fingerprint(again) == fingerprint(reading.votes)
        assert [len(held_out) for _, held_out in folds_within_user(again, 3, 0)] == folds


TIMED = "user,left,right,winner,when,took,length\nann,tea,milk,left,2024-05-01,3,1.5\n"


@pytest.mark.parametrize(
    "option, message",
    [
        ({"time": "when"}, r"a\.csv has a column 'when', and b\.csv has not.*leave out time="),
        ({"duration": "took"}, r"a\.csv has a column 'took', and b\.csv has not.*duration="),
        ({"features": ["length"]},
         r"a\.csv has columns for the feature length, and b\.csv has not.*features="),
    ],
)  # fmt: skip
def test_times_durations_and_features_are_in_all_files_or_in_none(option, message, tmp_path):
    files = [written(tmp_path, TIMED, "a.csv"), written(tmp_path, CANONICAL, "b.csv")]
    assert len(read_votes(files).votes) == 3
    for order in (files, files[::-1]):
        with pytest.raises(InvalidVotes, match=message):
            read_votes(order, **option)
    other = written(tmp_path, CANONICAL, "c.csv")
    with pytest.raises(InvalidVotes, match=r"in any of b\.csv and c\.csv\."):
        read_votes([files[1], other], **option)
    again = written(tmp_path, TIMED.replace("1.5", "-1.5"), "c.csv")
    votes = read_votes([files[0], again], **option).votes
    (name,) = option
    assert len(getattr(votes, name)) == 2


def test_dates_and_numbers_do_not_mix(tmp_path):
    files = [written(tmp_path, TIMED, "a.csv")]
    files.append(written(tmp_path, TIMED.replace("2024-05-01", "7"), "b.csv"))
    with pytest.raises(InvalidVotes, match=r"in a\.csv are dates, and those in b\.csv are numbers"):
        read_votes(files, time="when")


def test_the_unit_of_a_feature_is_that_of_all_files(tmp_path):
    files = [written(tmp_path, TIMED, "a.csv")]
    files.append(written(tmp_path, TIMED.replace("1.5", "0"), "b.csv"))
    reading = read_votes(files, features=["length"])
    assert reading.votes.features.scale.tolist() == pytest.approx([1.5 / np.sqrt(2)])
    assert "a.csv: Feature length: from length, left minus right; one unit is 1.061." in (
        told(reading)
    )


def test_a_file_without_votes_is_passed_over_with_a_note(tmp_path):
    empty = written(tmp_path, "user,left,right,winner\n", "b.csv")
    reading = read_votes([written(tmp_path, CANONICAL, "a.csv"), empty])
    assert len(reading.votes) == 2
    assert told(reading)[-1] == "b.csv: There are no votes in it."
    other = written(tmp_path, "user,left,right,winner\n", "c.csv")
    with pytest.raises(InvalidVotes, match=r"b\.csv and c\.csv: there are no votes in any of"):
        read_votes([empty, other])


# --- what is refused --------------------------------------------------------------------------


def test_a_file_is_not_read_twice(tmp_path):
    path = written(tmp_path, CANONICAL, "a.csv")
    (tmp_path / "link.csv").symlink_to(path)
    other = written(tmp_path, ARENA, "b.csv")
    for again in (path, tmp_path / "x" / ".." / "a.csv", tmp_path / "link.csv"):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(InvalidVotes, match=r"is given twice.*its votes would count twice"):
            read_votes([path, other, again])
    (tmp_path / "x").rmdir()
    (tmp_path / "link.csv").unlink()
    for files in ([tmp_path, path], [path, tmp_path]):
        with pytest.raises(InvalidVotes, match=r"a\.csv is given twice, as .* and as "):
            read_votes(files)
    with pytest.raises(InvalidVotes, match="- is given twice"):
        read_votes(["-", path, "-"])


def test_what_cannot_be_several_files_is_refused(tmp_path):
    path = written(tmp_path, CANONICAL, "a.csv")
    for bad in ([], [path, 3], [pl.DataFrame()]):
        with pytest.raises(InvalidVotes, match="expected the path of a file, or a list of paths"):
            read_votes(bad)
    with pytest.raises(InvalidSetting, match="the name of a file of votes is empty"):
        read_votes([path, ""])
    with pytest.raises(InvalidVotes, match=r"nowhere\.csv: there is no such file"):
        read_votes([path, tmp_path / "nowhere.csv"])
    other = written(tmp_path, ARENA, "b.csv")
    with pytest.raises(InvalidSetting, match=r"several files have no common order.*in_order=True"):
        read_votes([path, other], in_order=True)
    with pytest.raises(ISplitLBIError, match=r"b\.csv: no column 'user' for the user"):
        read_votes([path, other], preset="canonical")
