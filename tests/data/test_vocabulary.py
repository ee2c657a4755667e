import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.data import vocabulary
from isplitlbi.data.vocabulary import Vocabulary, as_series, first_of, show
from isplitlbi.errors import InvalidVotes
from votes import letters

TEXT = Vocabulary.of(pl.Series(["pear", "apple", "pear"]), pl.Series(["fig"]), what="fruit")
NUMBERS = Vocabulary.of(pl.Series([30, -2, 30, 7]), what="number")


def test_a_vocabulary_is_sorted_distinct_and_cannot_be_changed():
    assert TEXT.labels.tolist() == ["apple", "fig", "pear"] and len(TEXT) == 3
    assert NUMBERS.labels.tolist() == [-2, 7, 30] and len(NUMBERS) == 3
    for ids in (TEXT, NUMBERS):
        assert not ids.labels.flags.writeable


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pl.Series, pa.array])
def test_known_ids_have_their_index_and_others_have_none(kind):
    found = TEXT.encode(kind(["pear", "plum", "apple", "Apple"]))
    assert found.tolist() == [2, -1, 0, -1] and found.dtype == np.int32
    found = NUMBERS.encode(kind([30, 8, -2, -3, 31]))
    assert found.tolist() == [2, -1, 0, -1, -1] and found.dtype == np.int32


@pytest.mark.parametrize("ids", [TEXT, NUMBERS])
def test_nothing_encodes_to_nothing(ids):
    assert ids.encode([]).tolist() == []
    assert ids.encode(ids.labels).tolist() == [0, 1, 2]


def test_a_missing_id_is_unknown():
    assert TEXT.encode(["pear", None]).tolist() == [2, -1]
    assert NUMBERS.encode([7, None]).tolist() == [1, -1]
    zero = Vocabulary.of(pl.Series([0, 1]))
    assert zero.encode([None, 0]).tolist() == [-1, 0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30))
def test_integers_are_told_apart_to_the_last_digit(ids):
    vocabulary = Vocabulary.of(pl.Series(ids, dtype=pl.Int64))
    assert vocabulary.labels[vocabulary.encode(ids)].tolist() == ids
    absent = [value + 1 for value in ids if value + 1 not in ids and value < 2**63 - 1]
    assert vocabulary.encode(pl.Series(absent, dtype=pl.Int64)).tolist() == [-1] * len(absent)


@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
def test_large_integers_are_told_apart_whatever_their_sign_type(dtype):
    ids = np.array([2**60, 2**60 + 1, 2**60 + 2], dtype=dtype)
    vocabulary = Vocabulary.of(pl.Series(ids[:2]))
    assert vocabulary.encode(ids).tolist() == [0, 1, -1]
    assert vocabulary.encode(np.array([2**63], dtype=np.uint64)).tolist() == [-1]


@given(st.lists(st.text(letters), min_size=1, max_size=30))
def test_text_is_told_apart_to_the_last_character(ids):
    vocabulary = Vocabulary.of(pl.Series(ids))
    assert vocabulary.labels[vocabulary.encode(ids)].tolist() == ids
    assert vocabulary.labels.tolist() == sorted(set(ids))
    absent = [text + "\x00" for text in ids if text + "\x00" not in ids]
    assert vocabulary.encode(absent).tolist() == [-1] * len(absent)


@given(
    st.lists(st.text(letters, max_size=20), min_size=1, max_size=40), st.sampled_from([1, 3, 18])
)
def test_collecting_and_indexing_at_once_is_collecting_and_then_indexing(ids, bits):
    # Few places: most ids meet another at theirs. Small blocks: ids are new, then known.
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("PLACE_BITS", bits), ("PLACES", 2**bits), ("FIRST_BLOCK", 7)):
            patch.setattr(vocabulary, name, value)
        found, codes = Vocabulary.indexed(pl.Series(ids[::2]), pl.Series(ids))
    plain = Vocabulary.of(pl.Series(ids[::2]), pl.Series(ids))
    assert found.labels.tolist() == plain.labels.tolist()
    assert found.labels[codes[0]].tolist() == ids[::2] and found.labels[codes[1]].tolist() == ids


def test_integers_are_collected_and_indexed_at_once_too():
    found, (codes,) = Vocabulary.indexed(pl.Series([30, -2, 30, 7]))
    assert found.labels.tolist() == [-2, 7, 30] and codes.tolist() == [2, 0, 2, 1]


@pytest.mark.parametrize(
    "vocabulary, wrong, message",
    [
        (TEXT, [3], "fruit: the ids are strings, such as 'apple', but 3 .* Ask with strings"),
        (NUMBERS, ["7"], "number: the ids are integers, such as -2, but '7' .* with integers"),
        (NUMBERS, [7.0], "number: the ids are integers, such as -2, but 7.0 .* with integers"),
        (NUMBERS, [True], "number: the ids are integers, such as -2, but True .* with integers"),
    ],
)
def test_ids_of_the_other_type_are_refused_and_never_converted(vocabulary, wrong, message):
    with pytest.raises(InvalidVotes, match=message):
        vocabulary.encode(wrong)


@pytest.mark.parametrize(
    "asked, answer", [("aple", "apple"), ("PEAR", "pear"), ("figs", "fig"), ("pear", "pear")]
)
def test_the_nearest_known_id_is_suggested(asked, answer):
    assert TEXT.nearest(asked) == answer


def test_the_nearest_integer_looks_alike_and_is_an_integer():
    assert NUMBERS.nearest(31) == 30
    assert NUMBERS.nearest("nothing like it") in NUMBERS.labels


@pytest.mark.parametrize("vocabulary", [TEXT, NUMBERS])
def test_required_ids_are_encoded_and_an_unknown_one_is_an_error_with_the_nearest(vocabulary):
    every = vocabulary.labels.tolist()
    assert vocabulary.require(every).tolist() == list(range(len(every)))
    stranger = "aple" if vocabulary is TEXT else 31
    near = str(vocabulary.nearest(stranger))
    message = f"{stranger!r} is not among the {len(every)} .* of them; the nearest is '?{near}"
    with pytest.raises(InvalidVotes, match=message):
        vocabulary.require([every[0], stranger], "them")


def test_a_text_is_spelled_as_the_ids_are():
    assert TEXT.spelled("pear") == "pear"
    number = int(NUMBERS.labels[0])
    assert NUMBERS.spelled(str(number)) == number
    for text in ("31", "thirty"):
        with pytest.raises(InvalidVotes, match="the nearest is"):
            NUMBERS.spelled(text)


def test_a_column_keeps_its_nulls_and_its_type():
    assert as_series(["a", None], "x", "here").to_list() == ["a", None]
    assert as_series([1, None], "x", "here").dtype == pl.Int64
    assert as_series([1, 0.5, None], "x", "here").to_list() == [1.0, 0.5, None]
    assert as_series(np.array([1.0, np.nan]), "x", "here").to_list() == [1.0, None]
    assert as_series(pd.Series([1, None], dtype="Int64"), "x", "here").to_list() == [1, None]
    assert as_series(pa.chunked_array([["a"], [None]]), "x", "here").to_list() == ["a", None]
    assert as_series(pl.Series(["b", "a"], dtype=pl.Categorical), "x", "").dtype == pl.String


def test_the_first_row_is_counted_from_one_and_none_is_zero():
    assert first_of(np.array([False, True, True])) == 2
    assert first_of(pl.Series([True])) == 1
    assert first_of(np.array([False])) == 0


def test_values_are_shown_short_and_plain():
    assert show("tea") == "'tea'" and show(np.int64(3)) == "3" and show(np.float64(0.5)) == "0.5"
    assert len(show("x" * 1000)) == 60 and show("x" * 1000).endswith("...")
