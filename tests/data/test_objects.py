"""What a table of JSON would hide, and what cannot be read: always a sentence with the row."""

import json
from time import process_time

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isplitlbi import Comparisons
from isplitlbi.data.objects import Objects, table_of_objects
from isplitlbi.data.people import stream_people
from isplitlbi.data.readers import read_pairs
from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidVotes
from votes import letters

plain = st.one_of(st.integers(-9, 9), st.text(letters))
scalars = st.one_of(
    st.none(), st.booleans(), plain, st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["\ud800", "a\udfff", "true", "1.5", "[", '"user": true', '\\"user\\": 1.5']),
)  # fmt: skip
values = st.recursive(scalars, lambda inside: st.lists(inside, max_size=2), max_leaves=3)


def objects(users):
    return [
        {"text": '"user": [1.5, true]', "user": user, "left": "a", "right": "b", "winner": "left"}
        for user in users
    ]


def as_lines(users):
    return "\n".join(json.dumps(each) for each in objects(users)).encode()


def is_odd(value):
    half = isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)
    return half or isinstance(value, bool | float | list)


def column_of(data, name, *, is_array):
    return table_of_objects(data, "votes", {name: pl.String}, is_array=is_array)[name]


@pytest.mark.parametrize("is_array", [False, True], ids=["lines", "array"])
@given(users=st.lists(values, min_size=1, max_size=4))
@example(users=["u", "\U0001f600"])  # a whole pair of surrogates is a character
@settings(max_examples=80, deadline=None)
def test_exactly_these_values_are_found(users, is_array):
    data = json.dumps(objects(users), indent=1).encode() if is_array else as_lines(users)
    expected = [is_odd(user) for user in users]
    try:
        column = column_of(data, "user", is_array=is_array)
    except InvalidVotes as error:  # some halves of characters cannot be read at all
        assert "half of a character" in str(error) and any(expected)
        return
    found = Objects(data, "votes", is_array, 0).odd(column, is_id=True)
    assert (found is not None) == any(expected)
    if found is not None:
        assert found.rows.tolist() == expected
        assert show(users[expected.index(True)]) in found.problem
    else:
        assert column.to_list() == [None if user is None else str(user) for user in users]


# The name of a column as JSON may spell it, and a name that is another.
SPELLED = {
    "user": ['"user"', r'"us\u0065r"', r'"\u0075ser"'],
    'é/"': ['"é/\\""', r'"\u00E9\/\u0022"'],
}


@pytest.mark.parametrize("is_array", [False, True], ids=["lines", "array"])
@pytest.mark.parametrize("name", SPELLED)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_value_of_a_name_that_is_there_twice_is_found_however_it_is_spelled(name, is_array, data):
    spellings = st.lists(st.sampled_from([*SPELLED[name], '"other"', '"nested"']), max_size=3)
    rows = data.draw(st.lists(spellings, min_size=1, max_size=3))
    inside = {'"nested"': f"{{{SPELLED[name][0]}: 2}}"}
    pairs = [[f"{key}: {inside.get(key, 1)}" for key in row] for row in rows]
    texts = [f"{{{', '.join(row)}}}" for row in pairs]
    written = (f"[{','.join(texts)}]" if is_array else "\n".join(texts)).encode()
    twice = [sum(key in SPELLED[name] for key in row) > 1 for row in rows]
    try:
        column = column_of(written, name, is_array=is_array)
    except InvalidVotes as error:
        assert "there twice" in str(error)
        return
    found = Objects(written, "votes", is_array, 0).odd(column, is_id=True)
    assert (found is not None) == any(twice)
    if found is not None:
        assert found.rows.tolist() == twice and "is there twice" in found.problem


@pytest.mark.parametrize("value", [["u"], {"a": 1}, True, False, 1.5, 1e3, -0.5, "a\ud800"])
@pytest.mark.parametrize("column", ["user", "left", "right", "group", "id"])
@pytest.mark.parametrize("is_array", [False, True], ids=["lines", "array"])
def test_votes_with_such_ids_are_refused_with_their_row(tmp_path, column, value, is_array):
    votes = [{**each, "group": "g", "id": str(k)} for k, each in enumerate(objects(["u", "v"]))]
    votes[1][column] = value
    text = json.dumps(votes) if is_array else "\n".join(map(json.dumps, votes))
    (tmp_path / "votes.jsonl").write_text(text)
    why = "holds half of a character" if isinstance(value, str) else "is no id"
    options = {"group": "group", "id": "id"}
    with pytest.raises(InvalidVotes, match=rf"votes\.jsonl, row 2: {column} is .*, which {why}"):
        Comparisons.read(tmp_path / "votes.jsonl", **options)
    kept = Comparisons.read(tmp_path / "votes.jsonl", drop_invalid=True, **options)
    assert kept.users.tolist() == ["u"]


def test_numbers_and_other_columns_are_as_they_were(tmp_path):
    votes = [{**each, "tie": True, "score": 1.5, "more": [1]} for each in objects([7, "é"])]
    (tmp_path / "votes.jsonl").write_text("\n".join(map(json.dumps, votes)))
    assert Comparisons.read(tmp_path / "votes.jsonl").users.tolist() == ["7", "é"]


DEEP = "[" * 2000 + "]" * 2000
BAD_OBJECTS = {
    "an infinite number": ('{"user": 1e999}', "a number in it is too large"),
    "a number that is none": ('{"user": NaN}', "NaN is not JSON"),
    "a number of many digits": (f'{{"user": {"9" * 40}}}', "a number in it has too many digits"),
    "a number of thousands": (f'{{"user": {"9" * 5000}}}', "a number has thousands of digits"),
    "zeros in front": ('{"user": 007}', "Expecting ',' delimiter"),
    "lists in lists": (f'{{"user": {DEEP}}}', "hold one another so deeply"),
    "objects in objects": ('{"a":' * 2000 + "1" + "}" * 2000, "hold one another so deeply"),
    "halves of characters": (r'{"user": "\udc00\ud800"}', "half of a character"),
    "a raw control character": ('{"user": "a\x1b"}', "Invalid control character"),
    "no object": ("5", "this is not a JSON object"),
    "null": ("null", "this is not a JSON object"),
    "a list": ("[1]", "this is not a JSON object"),
    "a mark in the middle": ('\ufeff{"user": "u"}', "UTF-8 BOM|Expecting value"),
}  # fmt: skip


@pytest.mark.parametrize("is_array", [False, True], ids=["lines", "array"])
@pytest.mark.parametrize("name", BAD_OBJECTS)
@pytest.mark.parametrize("n_before", [1, 6])
def test_an_object_that_cannot_be_read_is_refused_with_its_row(tmp_path, name, is_array, n_before):
    content, message = BAD_OBJECTS[name]
    rows = [*map(json.dumps, objects(["u"] * n_before)), content, *map(json.dumps, objects("v"))]
    written = f"[{','.join(rows)}]" if is_array else "\n".join(rows)
    (tmp_path / "votes.jsonl").write_text(written)
    with pytest.raises(InvalidVotes, match=f"votes.jsonl, row {n_before + 1}: .*({message})"):
        Comparisons.read(tmp_path / "votes.jsonl")


def test_whole_numbers_are_ids_to_the_last_digit(tmp_path):
    ids = [2**63, 2**64, 10**37, -(2**127), 7, "007", "7.0"]
    (tmp_path / "votes.jsonl").write_bytes(as_lines(ids))
    votes = Comparisons.read(tmp_path / "votes.jsonl")
    assert votes.users[votes.user].tolist() == [str(each) for each in ids]


N_MANY = 100_000
MANY = ["user", "left", "right", "winner", *(f"c{k}" for k in range(N_MANY))]


@pytest.mark.parametrize("way", ["csv", "tsv", "jsonl", "array", "ranks"])
def test_absurdly_many_columns_are_refused_at_once(tmp_path, way):
    text = {
        "csv": ",".join(MANY) + "\n",
        "tsv": "\t".join(MANY) + "\n",
        "jsonl": json.dumps(dict.fromkeys(MANY, "a")),
        "array": json.dumps([dict.fromkeys(MANY, "a")]),
        "ranks": json.dumps({"user": "u", "rank1": "a", "rank2": "b"}) + "\n"
        + json.dumps({f"rank{k}": "a" for k in range(1, N_MANY)}),
    }[way]  # fmt: skip
    (tmp_path / "wide").write_text(text)
    before = process_time()
    reads = (Comparisons.read, read_pairs, lambda path: list(stream_people(path)))
    for read in reads[: 1 if way == "ranks" else 3]:
        with pytest.raises(
            InvalidVotes, match=r"wide: 1?\d\d,\d\d\d columns are more than any votes"
        ):
            read(tmp_path / "wide")
    assert process_time() - before < 5.0  # of the processor, for all of them


def test_absurdly_many_columns_of_a_frame_are_refused():
    frame = pl.DataFrame({name: ["a"] for name in MANY[: N_MANY // 8]})
    with pytest.raises(InvalidVotes, match="votes: 12,500 columns are more than any votes have"):
        Comparisons.from_frame(frame)
