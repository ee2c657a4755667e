"""Nested exports of other platforms."""

import copy
import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exported import ANSWERED, EXAMPLES, LABELS, LEFT, RANKED, RECORDS, REPORT, TASKS
from isplitlbi import Comparisons, InvalidVotes
from isplitlbi.data.people import stream_people
from isplitlbi.data.platforms import EXPORTS, recognise_export
from isplitlbi.data.readers import read_pairs, read_votes
from isplitlbi.errors import ISplitLBIError
from votes import as_tuples, assert_same


def written(folder, objects, name="export.json", **style):
    path = folder / name
    path.write_text(json.dumps(objects, **style), encoding="utf-8")
    return path


def told(reading):
    return [str(note) for note in reading.notes]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_export_is_recognised_and_its_votes_are_told(name, tmp_path):
    objects, layout, votes, notes = EXAMPLES[name]
    objects = objects[0] if name == "report" else objects
    reading = read_votes(written(tmp_path, objects, indent=1))
    assert reading.preset == layout and told(reading) == notes
    assert [vote[:4] for vote in as_tuples(reading.votes)] == votes


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_export_is_the_same_however_it_is_written(name, tmp_path):
    objects = EXAMPLES[name][0]
    expected = read_votes(written(tmp_path, objects))
    ways = {
        "array": json.dumps(objects, indent=2),
        "lines": "\n".join(map(json.dumps, objects)),
        "one after another": "\n\n".join(json.dumps(each, indent=1) for each in objects) + "\n ",
        "byte order mark": "\ufeff" + json.dumps(objects),
    }
    for way in ways.values():
        for content in (way.encode(), gzip.compress(way.encode())):
            (tmp_path / "votes").write_bytes(content)
            found = read_votes(tmp_path / "votes")
            assert_same(found.votes, expected.votes)
            assert found[1:] == expected[1:]


def test_every_kind_of_export_is_tried_here():
    tried = {recognise_export(objects[0]).name for objects, *_ in EXAMPLES.values()}
    assert tried == {export.name for export in EXPORTS}
    assert recognise_export({"user": "u", "left": "a", "right": "b", "winner": "left"}) is None


def test_what_else_is_in_a_task_can_be_named(tmp_path):
    tasks = copy.deepcopy(TASKS)
    for task in tasks:
        task["data"]["length"] = 1.5
        task["data"] |= {"one": f"m-{task['data']['text1']}", "other": f"m-{task['data']['text2']}"}
    path = written(tmp_path, tasks)
    assert read_votes(path, features=["length"]).votes.features.differences[0] == 1.5
    named = read_votes(path, left="one", right="other", duration="lead_time", time="created_at")
    assert named.votes.items.tolist() == ["m-milk", "m-tea", "m-water"]
    assert named.votes.duration.tolist() == [4.25, 2.0, 4.25]
    assert [len(votes) for votes in (read_pairs(path), read_votes(path).votes)] == [3, 3]
    parts = list(stream_people(path))
    assert sum(len(part.votes) for part in parts) == 3


def test_the_answer_says_which_two_items_it_compares(tmp_path):
    tasks = copy.deepcopy(TASKS[:1])
    tasks[0]["data"] |= {"first": "gpt", "second": "llama"}
    for each in tasks[0]["annotations"][:2]:
        each["result"][0]["to_name"] = "first,second"
    reading = read_votes(written(tmp_path, tasks))
    assert reading.votes.items.tolist() == ["gpt", "llama"]
    assert "The left item of a task is 'first' in its data" in " ".join(told(reading))


def test_of_several_questions_one_is_named(tmp_path):
    tasks = copy.deepcopy(TASKS[:1])
    for each in tasks[0]["annotations"][:2]:
        each["result"].append(
            each["result"][0] | {"from_name": "fun", "value": {"selected": "left"}}
        )
    path = written(tmp_path, tasks)
    with pytest.raises(InvalidVotes, match=r"no column 'selected' .*, pw, fun\."):
        read_votes(path)
    assert read_votes(path, winner="fun").votes.outcome.tolist() == [LEFT, LEFT]
    records = copy.deepcopy(RECORDS)
    records[0]["responses"][0]["values"]["style"] = {"value": RANKED[:2]}
    path = written(tmp_path, records)
    with pytest.raises(InvalidVotes, match="found: user_id, preference, style"):
        read_votes(path)
    assert len(read_votes(path, winner="style", preset="argilla").votes) == 1


def test_scores_of_users_may_be_weights(tmp_path):
    votes = read_votes(written(tmp_path, REPORT | {"results": REPORT["results"][:1]}),
                       weight="userScore").votes  # fmt: skip
    assert votes.weight_as_given.tolist() == [0.5, 0.25, 1.0] and votes.is_anonymous


def test_people_without_an_id_are_not_taken_for_one_another(tmp_path):
    records = [{"fields": {}, "responses": [
        {"user_id": None, "status": "submitted", "values": ANSWERED},
        {"user_id": None, "status": "submitted", "values": ANSWERED},
    ]}]  # fmt: skip
    assert len(read_votes(written(tmp_path, records)).votes) == 6


# --- what is refused -----------------------------------------------------------------------


def changed(objects, path, value):
    objects = copy.deepcopy(objects)
    place = objects
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return objects


ANSWER = (0, "responses", 0, "values", "preference", "value")
CHOICE = (2, "annotations", 0, "result", 0, "value", "selected")
BAD = {
    "an item that is a list": (changed(TASKS, (2, "data", "text1"), ["x"]),
        r"row 3: left is \['x'\], which is neither text nor a whole number"),
    "an item that is a fraction": (changed(TASKS, (2, "data", "text1"), 1.5), "row 3: left is 1.5"),
    "an unknown choice": (changed(TASKS, CHOICE, "both"),
        "row 3: selected 'both' is not one of left, right"),
    "a choice that is a truth": (changed(TASKS, CHOICE, True), "row 3: pw is True"),
    "a task without data": (changed(TASKS, (2, "data"), 3), "row 3: this is no task with data and"),
    "annotations by number": (changed(TASKS, (2, "annotations"), [12]), "row 3: this is no task"),
    "an answer given twice": (
        changed(TASKS, (2, "annotations", 0, "result"), TASKS[0]["annotations"][0]["result"] * 2),
        "row 3: an annotation answers a question twice"),
    "no annotator": (changed(TASKS, (2, "annotations", 0, "completed_by"), None),
        "row 3: completed_by is missing"),
    "no object": ([*TASKS, 5], "row 5: this is not a JSON object"),
    "a rank that is a word": (changed(RECORDS, (*ANSWER, 0, "rank"), "first"),
        "row 1: the answer to 'preference' is no ranking of options"),
    "an option that is none": (changed(RECORDS, (*ANSWER, 0, "value"), None),
        "row 1: the answer to 'preference' is no ranking of options"),
    "an option twice": (changed(RECORDS, (*ANSWER, 0, "value"), "a"), "row 1: item 'a' is there"),
    "two answers of one user": (changed(RECORDS, (0, "responses", 1), RECORDS[0]["responses"][0]),
        "row 1: the answer to 'preference' is there twice for one user"),
    "a user that is a list": (changed(RECORDS, (0, "responses", 0, "user_id"), []), "user_id is"),
    "a classification": ([changed(REPORT, ("results", 0, "aggregatedResults"), {"a": 1})],
        "row 1: its aggregatedResults are not of two options"),
    "sums that differ": ([changed(REPORT, ("results", 0, "aggregatedResults", "a.png"), 4)],
        "row 1: its aggregatedResults are not the sums of its detailedResults"),
    "a fraction of votes": ([changed(REPORT, ("results", 1, "aggregatedResults", "b.png"), 1.5)],
        "row 2: count 1.5 is not a whole number"),
    "another side": (changed(LABELS, (1, "labels", "better", "selection"), "C"),
        "row 2: selection 'C' is not one of A, B, tie"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_understood_is_refused_with_the_number_of_its_object(name, tmp_path):
    objects, message = BAD[name]
    path = written(tmp_path, objects)
    with pytest.raises(InvalidVotes, match=rf"^export\.json, {message}" if "row" in message else
                       message):  # fmt: skip
        read_votes(path)
    try:
        reading = read_votes(path, drop_invalid=True)
    except InvalidVotes as error:
        assert "dropped: " in str(error)  # and nothing is left
    else:
        assert any("dropped: " in note for note in told(reading))


@pytest.mark.parametrize(
    "content, message",
    [
        ('[{"data": {}, "annotations": []}]', "no votes are left. 1 task dropped: nobody"),
        ('[{"data": {}, "annotations": []}, {"data":', "json, row 2: this is not readable JSON"),
        ('{"data": {}, "annotations": []}\n{"data":', "json, row 2: this is not readable JSON"),
        ('[{"data": {"x": ' + "[" * 90_000, "so deeply that they cannot be read"),
        ('[{"data": {}, "annotations": []}, {"data": ' + "[" * 90_000, "so deeply that they"),
        ('{"user": ' + "[" * 90_000, "so deeply that they cannot be read"),
        ('{"user": "u", "left": "a"}\n{"user": ' + "[" * 90_000, "row 2: .* so deeply that they"),
        (json.dumps(changed(TASKS, (0, "data", "text1"), "\ud800")), "half of a character"),
        (json.dumps(changed(LABELS[:1], (0, "left"), None)), "left is missing"),
        (json.dumps([{"instance_id": 1, "user_id": 2, "labels": {"x": {"selection": "A"}}}]),
         "it tells which side was chosen, and not which two items were there. Add them"),
    ],
)  # fmt: skip
def test_a_broken_export_is_one_sentence(content, message, tmp_path):
    path = tmp_path / "export.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidVotes, match=message) as caught:
        read_votes(path)
    assert str(caught.value).startswith("export.json")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_export_is_one_batch_however_short_a_block_is(name, tmp_path):
    path = written(tmp_path, EXAMPLES[name][0])
    try:
        expected = read_votes(path, anonymous=False).votes
        parts = list(stream_people(path, block=16))
    except InvalidVotes as error:  # a crowd, and rankings, which are no people and no pairs
        assert "no users" in str(error)
    else:
        assert_same(Comparisons.joined(*(part.votes for part in parts)), expected)


@pytest.mark.parametrize("read", [read_votes, lambda path: list(stream_people(path)), read_pairs])
def test_a_fraction_is_no_id_in_any_export(read, tmp_path):
    left_out = {"instance_id": "i0", "user_id": "u1", "labels": {}}  # its number counts
    path = written(tmp_path, [left_out, *changed(LABELS, (1, "left"), 1.5)])
    with pytest.raises(InvalidVotes, match=r"row 3: left is 1\.5, which is no id"):
        read(path)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)  # fmt: skip


def places_in(value, path=()):
    """Return the way to everything inside of nested lists and objects."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in inside:
        yield (*path, step)
        if isinstance(inner, dict | list):
            yield from places_in(inner, (*path, step))


@settings(max_examples=40)
@given(st.sampled_from(sorted(EXAMPLES)), st.data())
def test_whatever_stands_in_an_export_is_read_or_refused(tmp_path_factory, name, data):
    objects = EXAMPLES[name][0]
    path = data.draw(st.sampled_from(list(places_in(objects))))
    file = written(tmp_path_factory.mktemp("export"), changed(objects, path, data.draw(anything)))
    try:
        assert len(read_votes(file).votes)
    except ISplitLBIError as error:
        assert str(error).startswith(("export.json", "the ids"))
