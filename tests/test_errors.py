"""What a person can mend, told in a sentence."""

import pickle

import numpy as np
import pytest

from isplitlbi import errors
from isplitlbi.errors import InvalidRows, ISplitLBIError, Setting

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ISplitLBIError)
]


def flag(setting):
    """Spell a setting as the command line might."""
    return f"--{setting.name}" if setting.value is ... else f"--{setting.name} {setting.value}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_tells_its_parts_and_travels(kind):
    error = kind("votes: it is so. Say ", Setting("format", "csv"), ", or mend it.")
    there = pickle.loads(pickle.dumps(error))
    for each in (error, there):
        assert type(each) is kind
        assert str(each) == "votes: it is so. Say format='csv', or mend it."
        assert each.told(flag) == "votes: it is so. Say --format csv, or mend it."


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_also_one_that_python_knows(kind):
    usual = ValueError | RuntimeError | ImportError
    assert kind is ISplitLBIError or isinstance(kind("no"), usual)


def test_settings_side_by_side_are_kept_apart():
    error = ISplitLBIError("Use ", Setting("preset", "wmt"), Setting("user", "who"), ".")
    assert str(error) == "Use preset='wmt', user='who'."
    assert error.told(flag) == "Use --preset wmt --user who."


def test_a_setting_without_a_value_ends_a_sentence_with_three_dots():
    error = ISplitLBIError("Name it with ", Setting("user"), ".")
    assert str(error) == "Name it with user=..."
    assert error.told(flag) == "Name it with --user."


# --- rows ------------------------------------------------------------------------------------


def rows(*numbers, size=50):
    found = np.zeros(size, dtype=bool)
    found[[number - 1 for number in numbers]] = True
    return found


@pytest.mark.parametrize(
    "numbers, named",
    [
        ([4], "row 4"),
        ([4, 1], "rows 1 and 4"),
        ([4, 1, 50], "rows 1, 4 and 50"),
        (range(3, 51), "rows 3, 4, 5 and 45 more"),
    ],
)
def test_rows_are_named_from_one_the_first_three_of_them(numbers, named):
    error = InvalidRows.of("here", rows(*numbers), "it is so", "Do this")
    assert str(error) == f"here, {named}: it is so. Do this."


def test_rows_may_have_other_numbers_some_of_them_the_same():
    numbers = np.array([3, 3, 3, 8])
    error = InvalidRows.of("here", rows(1, 2, 4, size=4), "so", "Do this", numbers=numbers)
    assert str(error) == "here, rows 3 and 8: so. Do this."


def test_invalid_rows_travel_with_all_they_know():
    remedy = ("Map it with ", Setting("labels", {"draw": "tie"}))
    error = InvalidRows.of("here", rows(2, size=3), "it is so", *remedy)
    there = pickle.loads(pickle.dumps(error))
    assert str(there) == "here, row 2: it is so. Map it with labels={'draw': 'tie'}."
    assert (there.source, there.problem, there.remedy) == ("here", "it is so", remedy)
    np.testing.assert_array_equal(there.rows, error.rows)
