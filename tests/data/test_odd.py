"""Values of JSON that are no ids: never a text of them, always a sentence with the row."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isplitlbi import Comparisons
from isplitlbi.data import odd
from isplitlbi.errors import InvalidVotes

letters = st.characters(codec="utf-8", exclude_characters="\0")
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


@pytest.mark.parametrize("is_array", [False, True], ids=["lines", "array"])
@given(users=st.lists(values, min_size=1, max_size=4))
@example(users=["u", "\U0001f600"])  # a whole pair of surrogates is a character
@settings(max_examples=150, deadline=None)
def test_exactly_these_values_are_found(users, is_array):
    data = json.dumps(objects(users), indent=1).encode() if is_array else as_lines(users)
    found = odd.odd_values(data, "user", is_array=is_array)
    expected = [is_odd(user) for user in users]
    assert (found is not None) == any(expected)
    if found is not None:
        assert found.rows.tolist() == expected
        assert found.first == users[expected.index(True)]


@pytest.mark.parametrize("value", [["u"], {"a": 1}, True, False, 1.5, 1e3, -0.5, "a\ud800"])
@pytest.mark.parametrize("column", ["user", "left", "right", "group", "id"])
@pytest.mark.parametrize("is_array", [False, True], ids=["lines", "array"])
def test_votes_with_such_ids_are_refused_with_their_row(tmp_path, column, value, is_array):
    votes = [{**each, "group": "g", "id": str(k)} for k, each in enumerate(objects(["u", "v"]))]
    votes[1][column] = value
    text = json.dumps(votes) if is_array else "\n".join(map(json.dumps, votes))
    (tmp_path / "votes.jsonl").write_text(text)
    message = rf"votes\.jsonl, row 2: {column} is .*, which is no id\. Write ids as texts"
    with pytest.raises(InvalidVotes, match=message):
        Comparisons.read(tmp_path / "votes.jsonl", group="group", id="id")


def test_numbers_and_other_columns_are_as_they_were(tmp_path):
    votes = [{**each, "tie": True, "score": 1.5, "more": [1]} for each in objects([7, "é"])]
    (tmp_path / "votes.jsonl").write_text("\n".join(map(json.dumps, votes)))
    assert Comparisons.read(tmp_path / "votes.jsonl").users.tolist() == ["7", "é"]


def test_absurdly_many_columns_are_refused_from_the_header_alone(tmp_path):
    (tmp_path / "wide.csv").write_text(",".join(f"c{k}" for k in range(100_000)) + "\n")
    with pytest.raises(InvalidVotes, match=r"wide\.csv: 100,000 columns are more than any votes"):
        Comparisons.read(tmp_path / "wide.csv")
