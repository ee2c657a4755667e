"""When votes were given and how long they took: what is read, what is refused, what keeps them."""

import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.notes import DurationTaken, OutsideSpan, RowsInOrder, TimeTaken
from isplitlbi.data.readers import described, read_part, read_votes
from isplitlbi.data.splits import folds_within_user, in_order, split_within_user
from isplitlbi.data.summary import Summary, digest_of
from isplitlbi.data.times import are_dates, durations_of, times_of
from isplitlbi.data.vocabulary import Vocabulary
from isplitlbi.errors import InvalidRows, InvalidSetting
from votes import assert_same, multiset, random_votes, rebuilt

MOMENTS = [
    dt.datetime(2024, 1, 31, 12, 30, tzinfo=dt.UTC),
    dt.datetime(2024, 1, 31, 12, 30, 0, 250_000, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC),
]
SECONDS = [moment.timestamp() for moment in MOMENTS]
NAIVE = [moment.replace(tzinfo=None) for moment in MOMENTS]
EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))


def with_columns(n_votes=3, **more):
    return {
        "user": ["ann", "ann", "bob"][:n_votes], "left": ["tea", "milk", "tea"][:n_votes],
        "right": ["milk", "tea", "milk"][:n_votes], "outcome": [1, 0, -1][:n_votes],
    } | more  # fmt: skip


FRAME = pl.DataFrame(with_columns()).rename({"outcome": "winner"})


# --- what is a time, and what a duration -----------------------------------------------------

TIMES = {
    "whole numbers": ([3, -1, 2], [3, -1, 2]),
    "fractions": (np.array([0.5, -0.0, 1e300]), [0.5, 0.0, 1e300]),
    "text of numbers": (["3", "-1.5", "2e3"], [3, -1.5, 2000]),
    "datetimes": (NAIVE, SECONDS),
    "datetimes with a zone": ([m.astimezone(EAST) for m in MOMENTS], SECONDS),
    "dates": ([dt.date(1970, 1, 2), dt.date(1969, 12, 31), dt.date(2000, 1, 1)],
        [86_400, -86_400, 946_684_800]),
    "text of dates": (["1970-01-02", "1969-12-31", "2000-01-01"], [86_400, -86_400, 946_684_800]),
    "text": ([m.isoformat() for m in NAIVE], SECONDS),
    "text, a space": ([str(m) for m in NAIVE], SECONDS),
    "text, minutes": (["1970-01-01T00:01", "1970-01-01 01:00", "1970-01-01"], [60, 3600, 0]),
    "text, nanoseconds": (["1970-01-01T00:00:00.123456789", "1970-01-01 00:00:01,5", "1970-01-01"],
        [0.123456, 1.5, 0]),
    "text, UTC": ([m.isoformat().replace("+00:00", "Z") for m in MOMENTS], SECONDS),
    "text, zones": (["1970-01-01T05:30:00+05:30", "1969-12-31 18:00 -0600", "1970-01-01T02:00+02"],
        [0, 0, 0]),
    "NumPy, days": (np.array(["1970-01-02", "1969-12-31", "2000-01-01"], "M8[D]"),
        [86_400, -86_400, 946_684_800]),
    "NumPy, seconds": (np.array([5, 0, -5], "M8[s]"), [5, 0, -5]),
    "NumPy, nanoseconds": (np.array(NAIVE, "M8[ns]"), SECONDS),
    "pandas": (pd.Series(NAIVE), SECONDS),
    "pandas, a zone": (pd.Series(MOMENTS).dt.tz_convert("Asia/Kolkata"), SECONDS),
    "pandas, text": (pd.Series([str(m) for m in NAIVE]), SECONDS),
    "pyarrow": (pa.array(NAIVE), SECONDS),
    "polars, nanoseconds": (pl.Series(NAIVE, dtype=pl.Datetime("ns")), SECONDS),
}  # fmt: skip


@pytest.mark.parametrize("given, expected", TIMES.values(), ids=TIMES)
def test_times_are_numbers_or_become_seconds(given, expected):
    votes = Comparisons.from_arrays(**with_columns(time=given))
    np.testing.assert_array_equal(votes.time, np.array(expected, dtype=float), strict=True)
    assert not np.signbit(votes.time[votes.time == 0]).any()
    assert votes.duration is None


DURATIONS = {
    "whole numbers": ([3, 0, 2], [3, 0, 2]),
    "fractions": ([0.5, -0.0, 1e9], [0.5, 0, 1e9]),
    "text": (["3", "0.25", "1e1"], [3, 0.25, 10]),
    "spans": ([dt.timedelta(seconds=s) for s in (1.5, 0, 60)], [1.5, 0, 60]),
    "NumPy": (np.array([1500, 0, 60_000], "m8[ms]"), [1.5, 0, 60]),
    "pandas": (pd.Series(pd.to_timedelta([1.5, 0, 60], unit="s")), [1.5, 0, 60]),
}


@pytest.mark.parametrize("given, expected", DURATIONS.values(), ids=DURATIONS)
def test_durations_are_seconds(given, expected):
    votes = Comparisons.from_arrays(**with_columns(duration=given))
    np.testing.assert_array_equal(votes.duration, np.array(expected, dtype=float), strict=True)
    assert not np.signbit(votes.duration).any()
    assert votes.time is None


@given(st.lists(st.datetimes(dt.datetime(1, 1, 1)), min_size=1), st.sampled_from("T "))
def test_a_date_in_text_is_the_date_itself(moments, between):
    text = pl.Series([moment.isoformat(between) for moment in moments])
    dates = pl.Series(moments, dtype=pl.Datetime("us"))
    assert are_dates(text) and are_dates(dates)
    np.testing.assert_array_equal(times_of(text, "t", "v"), times_of(dates, "t", "v"))


BAD = {
    "time is missing": ({"time": [1, None, 3]}, ["row 2: time is missing", "Fill it in"]),
    "time is NaN": ({"time": [1.0, np.nan, 3.0]}, ["row 2: time is missing"]),
    "no date": ({"time": np.array(["NaT", "2024-01-31", "NaT"], "M8[ns]")},
        ["rows 1 and 3: time is missing"]),
    "no date of pandas": ({"time": pd.Series([*NAIVE[:2], pd.NaT])}, ["row 3: time is missing"]),
    "empty text": ({"time": ["1", "2", ""]}, ["row 3: time is missing"]),
    "infinite": ({"time": [1.0, np.inf, 3.0]}, ["row 2: time inf is not a finite number"]),
    "infinite text": ({"time": ["1", "-inf", "nan"]}, ["rows 2 and 3: time '-inf' is not a fin"]),
    "no number": ({"time": ["1", "soon", "3"]}, ["row 2: time 'soon' is not a number. Correct it"]),
    "neither": ({"time": ["soon", "later", "31/01/2024"]},
        ["rows 1, 2 and 3: time 'soon' is not a number, or a date such as 2024-01-31"]),
    "a date among numbers": ({"time": ["1", "2", "2024-01-31"]},
        ["row 3: time '2024-01-31' is not a number"]),
    "a number among dates": ({"time": ["2024-01-31", "2", "2024-01-30 12:00"]},
        ["row 2: time '2' is not a date such as 2024-01-31"]),
    "a day that is not": ({"time": ["2024-01-31", "2024-02-30", "2024-03-01"]},
        ["row 2: time '2024-02-30' is not a date"]),
    "an hour that is not": ({"time": ["2024-01-31", "2024-01-31 24:01", "2024-03-01"]},
        ["row 2: time '2024-01-31 24:01' is not a date"]),
    "some with a zone": ({"time": ["2024-01-31T12:00Z", "2024-01-31T12:00", "2024-01-31"]},
        ["rows 2 and 3: time '2024-01-31T12:00' has no time zone", "all with a time zone"]),
    "truths": ({"time": [True, False, True]}, ["time holds values of type Boolean", "Convert"]),
    "lists": ({"time": pl.Series([[1], [2], [3]])}, ["type List", "expected numbers, or dates"]),
    "clocks": ({"time": pl.Series([dt.time(12)] * 3)}, ["type Time", "expected numbers, or dates"]),
    "spans as times": ({"time": pl.Series([dt.timedelta(1)] * 3)}, ["type Duration"]),
    "too few": ({"time": [1, 2]}, ["'time' has 2 rows, 'user' has 3"]),
    "duration is missing": ({"duration": [1, None, 3]}, ["row 2: duration is missing"]),
    "negative": ({"duration": [1, -2.5, 3]}, ["row 2: duration -2.5 is less than 0 seconds"]),
    "negative span": ({"duration": [dt.timedelta(seconds=-1)] * 3}, ["duration -1.0 is less than"]),
    "infinite duration": ({"duration": [1.0, 2.0, np.inf]}, ["row 3: duration inf is not a fin"]),
    "a word": ({"duration": ["1", "long", "3"]}, ["row 2: duration 'long' is not a number of sec"]),
    "empty duration": ({"duration": ["1", "", "3"]}, ["row 2: duration is missing"]),
    "dates": ({"duration": NAIVE}, ["duration holds values of type Datetime", "expected seconds"]),
    "truths as durations": ({"duration": [True] * 3}, ["type Boolean", "expected seconds"]),
}  # fmt: skip


@pytest.mark.parametrize("columns, fragments", BAD.values(), ids=BAD)
def test_what_is_no_time_or_duration_is_refused_with_its_row(columns, fragments):
    with pytest.raises(InvalidVotes) as caught:
        Comparisons.from_arrays(**with_columns(**columns), source="study 3")
    for fragment in ["study 3", *fragments]:
        assert fragment in str(caught.value)


@given(st.lists(st.text(max_size=20) | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d"), min_size=1))
def test_any_text_is_a_time_or_refused(values):
    column = pl.Series(values)
    for read in (times_of, durations_of):
        try:
            assert np.isfinite(read(column, "when", "votes")).all()
        except InvalidRows as error:
            assert error.rows.any()


# --- frames ----------------------------------------------------------------------------------


def test_columns_of_a_frame_are_used_only_where_they_are_named():
    frame = FRAME.with_columns(time=pl.Series([3, 1, 2]), duration=pl.Series([0.5, 1, 2]))
    votes = Comparisons.from_frame(frame)
    assert votes.time is None and votes.duration is None
    votes = Comparisons.from_frame(frame, time="time", duration="duration")
    assert votes.time.tolist() == [3, 1, 2] and votes.duration.tolist() == [0.5, 1, 2]
    assert Comparisons.from_frame(frame, duration="time").duration.tolist() == [3, 1, 2]


def test_rows_are_in_order_only_where_that_is_said():
    assert Comparisons.from_frame(FRAME).time is None
    assert Comparisons.from_frame(FRAME, in_order=True).time.tolist() == [1, 2, 3]
    with pytest.raises(InvalidSetting, match=r"Use either time='left' or in_order=True\."):
        Comparisons.from_frame(FRAME, time="left", in_order=True)


@pytest.mark.parametrize("role", ["time", "duration"])
def test_a_bad_column_is_called_as_in_its_frame(role):
    with pytest.raises(InvalidVotes, match="rows 1, 2 and 3: left 'tea' is not a number"):
        Comparisons.from_frame(FRAME, **{role: "left"})


# --- what keeps them -------------------------------------------------------------------------


def timed(seed=0, **more):
    return random_votes(seed, n_users=3, n_items=3, n_votes=80, timed=True, **more)


def times_and_durations(votes):
    """Return every vote with its time and duration, without their order."""
    ids = (votes.users[votes.user], votes.items[votes.left], votes.items[votes.right])
    columns = (*ids, votes.outcome, votes.time, votes.duration)
    return Counter(zip(*(column.tolist() for column in columns), strict=True))


def test_a_subset_keeps_its_own():
    votes = timed()
    part = votes.subset([7, 3, 5]).subset([2, 0])
    np.testing.assert_array_equal(part.time, votes.time[[5, 7]])
    np.testing.assert_array_equal(part.duration, votes.duration[[5, 7]])


def test_votes_that_are_joined_keep_theirs():
    votes = timed()
    first, second = (rebuilt(votes, np.arange(80)[k::2]) for k in range(2))
    together = Comparisons.joined(first, second)
    assert_same(together, rebuilt(votes, np.r_[0:80:2, 1:80:2]))
    assert times_and_durations(together) == times_and_durations(votes)


def test_votes_that_are_renumbered_keep_theirs():
    votes = timed()
    users, items = (
        Vocabulary.merged(Vocabulary(ids), Vocabulary(np.array(["a", "z"], object)))
        for ids in (votes.users, votes.items)
    )
    found = votes.subset(np.arange(10)).renumbered(users, items)
    assert found.whole is None and found.n_users == votes.n_users + 2
    assert times_and_durations(found) == times_and_durations(votes.subset(np.arange(10)))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("seed", range(3))
def test_splits_keep_them_whatever_the_order_of_the_rows(seed, weighted):
    votes = timed(seed, weighted=weighted)
    other = rebuilt(votes, np.random.default_rng(seed).permutation(80))
    parts = [
        [*split_within_user(some, 0.3, seed), *folds_within_user(some, 2, seed)[0], in_order(some)]
        for some in (votes, other)
    ]
    for one, two in zip(*parts, strict=True):
        assert times_and_durations(one) == times_and_durations(two)
    np.testing.assert_array_equal(in_order(votes).time, in_order(other).time)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_times_do_not_change_how_votes_are_split(weighted):
    votes = timed(weighted=weighted)
    plain = Comparisons.from_arrays(
        votes.users[votes.user], votes.items[votes.left], votes.items[votes.right], votes.outcome,
        votes.weight_as_given,
    )  # fmt: skip
    for one, two in zip(
        split_within_user(votes, 0.3, 1), split_within_user(plain, 0.3, 1), strict=True
    ):
        assert multiset(one) == multiset(two)


def test_digests_of_parts_add_up_with_times():
    votes = timed()
    parts = votes.subset(votes.user < 1), votes.subset(votes.user >= 1)
    np.testing.assert_array_equal(sum(map(digest_of, parts)), digest_of(votes))
    shuffled = votes.subset(np.random.default_rng(0).permutation(80))
    assert Summary.of(shuffled).fingerprint == Summary.of(votes).fingerprint


# --- the order of time -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_votes_in_the_order_of_time_are_the_same_whatever_their_rows(seed):
    votes = timed(seed, weighted=True, group_size=2, features=("length",))
    found = votes.subset(votes.in_time_order())
    assert (np.diff(found.user) >= 0).all()
    same_user = np.diff(found.user) == 0
    assert (np.diff(found.time)[same_user] >= 0).all()
    assert (np.diff(found.time)[same_user] == 0).any()  # votes of the same time are there
    other = rebuilt(votes, np.random.default_rng(seed).permutation(80))
    assert_same(found, other.subset(other.in_time_order()))


def test_votes_of_the_same_time_are_ordered_by_items_and_outcome():
    votes = Comparisons.from_arrays(
        ["u"] * 5, list("bbaac"), list("cacca"), [1, 1, 1, -1, 0], time=[1, 1, 1, 1, 0]
    )
    assert votes.in_time_order().tolist() == [4, 3, 2, 1, 0]


def test_votes_without_times_have_an_order_that_is_not_that_of_the_rows():
    votes = random_votes(0)
    other = rebuilt(votes, np.arange(60)[::-1])
    one, two = (each.subset(each.in_time_order()) for each in (votes, other))
    assert_same(one, two)


# --- files -----------------------------------------------------------------------------------

TABLE = FRAME.with_columns(
    winner=pl.Series(["left", "tie", "right"]),
    when=pl.Series(NAIVE),
    place=pl.Series([3, 1, 2]),
    took=pl.Series([0.1 + 0.2, 1.0, 2e-7]),
)
WRITERS = {
    "csv": pl.DataFrame.write_csv, "parquet": pl.DataFrame.write_parquet,
    "jsonl": pl.DataFrame.write_ndjson,
}  # fmt: skip


@pytest.mark.parametrize("way", WRITERS)
def test_every_format_gives_the_same_times(way, tmp_path):
    path = tmp_path / f"votes.{way}"
    WRITERS[way](TABLE, path)
    reading = read_votes(path, time="when", duration="took")
    assert reading.votes.time.tolist() == SECONDS
    assert reading.votes.duration.tolist() == TABLE["took"].to_list()
    assert reading.notes == (TimeTaken("when", "dates"), DurationTaken("took"))
    votes, _, (note,) = read_votes(path, time="place")
    assert votes.time.tolist() == [3, 1, 2] and votes.duration is None
    assert note == TimeTaken("place", "numbers")
    votes, _, (note,) = read_votes(path, in_order=True)
    assert votes.time.tolist() == [1, 2, 3] and note == RowsInOrder()
    votes, _, notes = read_votes(path)
    assert votes.time is None and votes.duration is None and notes == ()
    assert Comparisons.read(path, time="place").time.tolist() == [3, 1, 2]


def test_types_of_parquet_are_times_and_durations(tmp_path):
    path = tmp_path / "votes.parquet"
    spans = pl.Series([dt.timedelta(seconds=s) for s in (1, 2, 0.5)])
    zone = pl.Series(NAIVE).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Kolkata")
    frame = TABLE.with_columns(day=pl.col("when").dt.date(), spans=spans, zone=zone)
    frame.write_parquet(path)
    assert read_votes(path, duration="spans").votes.duration.tolist() == [1, 2, 0.5]
    assert read_votes(path, time="zone").votes.time.tolist() == SECONDS
    votes = read_votes(path, time="day").votes
    assert votes.time.tolist() == [1706659200, 1706659200, -86400]


HEADER = "user,left,right,winner,when,took\n"
REFUSED = {
    "no such column": ({"time": "then"}, "no column 'then' for the time; found: .* time=..."),
    "no such durations": ({"duration": "d"}, "no column 'd' for the duration; .*duration=..."),
    "missing": ({"time": "when"}, "row 2: when is missing. Fill it in or remove the row, or drop"),
    "no seconds": ({"duration": "took"}, "row 3: took 'x' is not a number of seconds. Correct it"),
    "both": ({"time": "when", "in_order": True}, "Use either time='when' or in_order=True."),
}


@pytest.mark.parametrize("options, message", REFUSED.values(), ids=REFUSED)
def test_bad_times_in_a_file_are_one_sentence(options, message, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(f"{HEADER}u,a,b,left,1,1\nu,a,b,tie,,2\nu,a,b,tie,2,x\n")
    with pytest.raises((InvalidVotes, InvalidSetting), match=message):
        read_votes(path, **options)


def test_rows_without_times_are_dropped_where_that_is_asked(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(f"{HEADER}u,a,b,left,1,1\nu,a,a,tie,5,2\nu,a,b,tie,,-2\nu,b,a,tie,2,-3\n")
    votes, _, notes = read_votes(path, time="when", drop_invalid=True)
    assert votes.time.tolist() == [1, 2] and [note.count for note in notes[:-1]] == [1, 1]
    votes, _, notes = read_votes(path, duration="took", drop_invalid=True)
    assert votes.duration.tolist() == [1]
    assert "2 rows dropped: took -2.0 is less than 0 seconds." in map(str, notes)
    # Rows that are in order keep their numbers when others are dropped.
    assert read_votes(path, in_order=True, drop_invalid=True).votes.time.tolist() == [1, 3, 4]


def test_parts_have_times_of_one_kind_and_no_common_order_of_rows(tmp_path):
    for place in range(3):
        TABLE[place].write_csv(tmp_path / f"part-{place}.csv")
    votes, _, notes = read_votes(tmp_path, time="when", duration="took")
    assert votes.time.tolist() == SECONDS
    assert str(notes[0]).startswith("part-0.csv and 2 other parts: The times of the votes are")
    with pytest.raises(
        InvalidSetting, match=r"no common order. Leave out in_order=True, .*time=..."
    ):
        read_votes(tmp_path, in_order=True)
    TABLE[2].with_columns(when=pl.lit(17)).write_csv(tmp_path / "part-2.csv")
    with pytest.raises(
        InvalidVotes, match=r"times as numbers, and part-0\.csv has .*times as dates"
    ):
        read_votes(tmp_path, time="when")
    part = read_part(tmp_path / "part-2.csv", {"time": "when"})
    assert described(part).kind == "the layout canonical, times as numbers"


# --- layouts ---------------------------------------------------------------------------------


def test_a_column_of_times_does_not_change_the_layout(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(
        "Annotator ID,Winner ID,Loser ID,Time\n3,12,7,2016-09-18 14:02\n3,7,9,2016-09-17\n"
    )
    votes, preset, _ = read_votes(path, time="Time")
    assert preset == "gavel" and votes.in_time_order().tolist() == [1, 0]
    path.write_text("user,left,right,winner,loser,t\nu,a,b,left,x,1\n")
    with pytest.raises(InvalidVotes, match="fit more than one layout"):
        read_votes(path, time="t")


def test_pairs_of_a_ranking_have_its_time(tmp_path):
    path = tmp_path / "votes.csv"
    systems = ",".join(f"system{k}Id,system{k}rank" for k in (1, 2, 3))
    path.write_text(f"judgeID,{systems},t,s\nj,a,1,b,2,c,3,5,9\nj,a,2,b,2,c,3,4,8\n")
    votes = read_votes(path, time="t", duration="s").votes
    assert votes.time.tolist() == [5] * 3 + [4] * 3
    assert votes.duration.tolist() == [9] * 3 + [8] * 3
    assert read_votes(path, in_order=True).votes.time.tolist() == [1] * 3 + [2] * 3


def test_counts_have_no_times(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("user,item1,item2,win1,win2,t\nu,a,b,3,1,5\n")
    for role in ("time", "duration"):
        with pytest.raises(InvalidVotes, match=f"counts .* no column for the {role}. Leave out"):
            read_votes(path, **{role: "t"})
    with pytest.raises(InvalidVotes, match=r"counts .* stands for several votes.*in_order=True"):
        read_votes(path, in_order=True)


# --- a span of time ----------------------------------------------------------------------------

DAYS = ["2024-05-01T23:59:59.5", "2024-05-02", "2024-05-02T12:00", "2024-05-03T00:00:00"]


def read_span(tmp_path, times, **span):
    rows = [f"u{k},i{k},j{k},tie,{time}" for k, time in enumerate(times)]
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["user,left,right,winner,when", *rows]))
    return read_votes(path, time="when", **span)


SPANS = {
    "since a day": ({"since": "2024-05-02"}, [1, 2, 3], "1 vote from before 2024-05-02"),
    "until a day": ({"until": "2024-05-02"}, [0, 1, 2], "1 vote from after 2024-05-02"),
    "one day": ({"since": "2024-05-02", "until": "2024-05-02"}, [1, 2],
        "2 votes from before 2024-05-02 or after 2024-05-02"),
    "a clock": ({"until": "2024-05-02T12:00"}, [0, 1, 2], "1 vote from after 2024-05-02T12:00"),
    "a clock, since": ({"since": "2024-05-02 12:00"}, [2, 3],
        "2 votes from before 2024-05-02 12:00"),
    "a zone": ({"since": "2024-05-02T14:00+02:00"}, [2, 3],
        "2 votes from before 2024-05-02T14:00+02:00"),
    "a date": ({"until": dt.date(2024, 5, 2)}, [0, 1, 2], "1 vote from after 2024-05-02"),
    "a moment": ({"since": dt.datetime(2024, 5, 2, 12)}, [2, 3],
        "2 votes from before 2024-05-02T12:00:00"),
    "of pandas": ({"since": pd.Timestamp("2024-05-02 12:00")}, [2, 3],
        "2 votes from before 2024-05-02T12:00:00"),
    "of NumPy": ({"until": np.datetime64("2024-05-02")}, [0, 1, 2], "1 vote from after 2024-05-02"),
    "all": ({"since": "2000-01-01"}, [0, 1, 2, 3], "0 votes from before 2000-01-01"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPANS)
def test_votes_from_a_span_of_time_are_used_and_the_others_told(name, tmp_path):
    span, kept, told = SPANS[name]
    reading = read_span(tmp_path, DAYS, **span)
    assert reading.votes.users.tolist() == [f"u{k}" for k in kept]
    assert len(reading.votes.items) == 2 * len(kept)  # as if there were no others
    assert str(reading.notes[-1]) == f"Left out: {told}."


@given(st.lists(st.integers(-9, 9), min_size=1), st.integers(-9, 9), st.integers(0, 9))
def test_both_ends_of_a_span_are_included(times, first, length):
    frame = pl.DataFrame({"user": range(len(times)), "left": 1, "right": 2, "winner": "tie"})
    frame, last = frame.with_columns(when=pl.Series(times)), first + length
    inside = [k for k, time in enumerate(times) if first <= time <= last]
    if not inside:
        with pytest.raises(InvalidVotes, match=r"no votes are left\..*Left out: "):
            read_votes(frame, time="when", since=first, until=last)
        return
    for ends in ((first, last), (str(first), f"{last}.0"), (np.int64(first), float(last))):
        votes = read_votes(frame, time="when", since=ends[0], until=ends[1]).votes
        assert votes.users.tolist() == inside


BAD_SPANS = {
    "no column": ({"since": "2024-05-02", "time": None}, "since='2024-05-02' needs the times"),
    "rows in order": ({"until": 3, "time": None, "in_order": True}, "until='3.0' needs the times"),
    "no date": ({"since": "soon"}, "since='soon': the times in 'when' are dates; give a date such"),
    "no day": ({"until": "2024-02-30"}, "until='2024-02-30': the times in 'when' are dates"),
    "a number": ({"since": 5}, "since='5.0': the times in 'when' are dates"),
    "exchanged": ({"since": "2024-05-03", "until": "2024-05-02"},
        "since='2024-05-03' is later than until='2024-05-02'. Exchange"),
    "another type": ({"since": [1]}, r"since is \[1\]; give a date, a number, or a text"),
    "nothing left": ({"since": "2025-01-01"},
        r"votes.csv: no votes are left\..* Left out: 4 votes from before 2025-01-01"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SPANS)
def test_a_span_that_cannot_be_is_refused(name, tmp_path):
    span, message = BAD_SPANS[name]
    read_span(tmp_path, DAYS)
    with pytest.raises((InvalidSetting, InvalidVotes), match=message):
        read_votes(tmp_path / "votes.csv", **{"time": "when"} | span)


def test_numbers_have_numbers_for_ends(tmp_path):
    for end in ("2024-05-02", "inf", "x"):
        with pytest.raises(InvalidSetting, match="the times in 'when' are numbers; give a number"):
            read_span(tmp_path, [1, 2], since=end)


def test_a_span_holds_for_all_parts_and_files(tmp_path):
    (tmp_path / "parts").mkdir()
    for number, time in enumerate((*DAYS, "2023-01-01")):
        file = tmp_path / "parts" / f"{number}.csv"
        file.write_text(f"user,left,right,winner,when,count\nu{number},a,b,tie,{time},2\n")
    files = sorted((tmp_path / "parts").iterdir())
    for source in (tmp_path / "parts", files):
        reading = read_votes(source, time="when", since=dt.date(2024, 5, 2))
        assert reading.votes.users.tolist() == ["u1", "u2", "u3"] and len(reading.votes) == 6
        outside = [note.count for note in reading.notes if isinstance(note, OutsideSpan)]
        assert sum(outside) == 4
        with pytest.raises(InvalidVotes, match=r"no votes in any of.*Left out: "):
            read_votes(source, time="when", since="2030-01-01")


def test_features_are_scaled_by_the_votes_of_the_span():
    frame = FRAME.with_columns(when=pl.Series([1, 2, 3]), x=pl.Series([100.0, 3.0, 4.0]))
    votes = read_votes(frame, time="when", since=2, features=["x"]).votes
    assert votes.features.scale.tolist() == pytest.approx([np.sqrt(12.5)])
