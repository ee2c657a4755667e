"""What was done to votes while they were read, as records."""

import pickle

import pytest

from isplitlbi.data.notes import (
    ColumnTaken,
    CountedAsTies,
    Dropped,
    DurationTaken,
    NothingThere,
    RowsInOrder,
    TimeTaken,
    added_up,
    gathered,
)

SENTENCES = {
    "1 row dropped: user is missing.": Dropped("row", "user is missing", count=1),
    "1,234 pairs dropped: a rank is missing.": Dropped("pair", "a rank is missing", count=1234),
    "2 both-bad votes dropped.": Dropped("both-bad vote", count=2),
    "1 both-bad vote counted as a tie.": CountedAsTies("both-bad vote", count=1),
    "2 both-bad votes counted as ties.": CountedAsTies("both-bad vote", count=2),
    "The user is taken from 'judge', not from 'user'.": ColumnTaken("user", "judge", "user"),
    "The times of the votes are the dates in 'when'.": TimeTaken("when", "dates"),
    "The durations of the votes are the seconds in 'took'.": DurationTaken("took"),
    "The rows are taken to be in the order in which every user voted.": RowsInOrder(),
    "There are no votes in it.": NothingThere(),
    "a.csv: There are no votes in it.": NothingThere(files=("a.csv",)),
    "a.csv and 1 other part: There are no votes in it.": NothingThere(files=("a.csv", "b.csv")),
    "a and 2 other parts: 5 rows dropped: odd.": Dropped("row", "odd", count=5, files=tuple("abc")),
}


@pytest.mark.parametrize("sentence, note", SENTENCES.items())
def test_a_note_says_what_was_done(sentence, note):
    assert str(note) == sentence


@pytest.mark.parametrize("note", SENTENCES.values(), ids=str)
def test_a_note_travels(note):
    assert pickle.loads(pickle.dumps(note)) == note


def test_what_was_done_twice_is_told_once_with_the_sum():
    found = added_up(
        [
            Dropped("row", "odd", count=2),
            Dropped("row", "even", count=1),
            Dropped("row", "odd", count=2),
            Dropped("pair", "odd", count=1),
        ]
    )
    assert found == (
        Dropped("row", "odd", count=4),
        Dropped("row", "even", count=1),
        Dropped("pair", "odd", count=1),
    )


def test_notes_on_parts_say_which_parts():
    taken = ColumnTaken("user", "judge", "user")
    ties = [CountedAsTies("both-bad vote", count=count) for count in (1, 1234)]
    found = gathered(["a", "b", "c"], [[taken, ties[0]], [ties[1]], [taken]])
    assert [str(note) for note in found] == [
        "a and 1 other part: The user is taken from 'judge', not from 'user'.",
        "a and 1 other part: 1,235 both-bad votes counted as ties.",
    ]
    assert [note.files for note in found] == [("a", "c"), ("a", "b")]
