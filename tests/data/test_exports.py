"""Nested exports of other platforms; the examples are made up, in the forms that they document."""

import copy
import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isplitlbi import InvalidVotes
from isplitlbi.data.people import stream_people
from isplitlbi.data.platforms import EXPORTS, recognise_export
from isplitlbi.data.readers import read_pairs, read_votes
from isplitlbi.errors import ISplitLBIError
from votes import as_tuples, assert_same

LEFT, TIE, RIGHT = 1, 0, -1


def annotation(who, selected, **more):
    """Return an annotation of Label Studio; of somebody who chose nothing, it is empty."""
    result = {
        "id": "x1", "from_name": "pw", "to_name": "txt-1", "type": "pairwise",
        "value": {"selected": selected},
    }  # fmt: skip
    return {
        "id": 10, "completed_by": who, "result": [result] if selected else [],
        "was_cancelled": False, "lead_time": 4.25, "created_at": "2024-05-01T10:00:00Z",
    } | more  # fmt: skip


TASKS = [
    {
        "id": 1, "data": {"text1": "tea", "text2": "milk", "length": 1.5}, "predictions": [],
        "annotations": [
            annotation(7, "left"),
            annotation({"id": 8, "email": "bob@example.org"}, "right", lead_time=2.0),
            annotation(9, None, was_cancelled=True),
        ],
    },
    {"id": 2, "data": {"text1": "tea", "text2": "water"}, "annotations": [annotation(9, None)]},
    {"id": 3, "data": {"text1": "water", "text2": "tea"}, "annotations": [annotation(8, "left")]},
    {"id": 4, "data": {"text1": "milk", "text2": "tea"}, "annotations": []},
]  # fmt: skip
SHORT_TASKS = [
    {"id": 1, "text1": "tea", "text2": "milk", "pw": [{"selected": "left"}], "annotator": 7,
     "annotation_id": 10, "lead_time": 4.25},
    {"id": 1, "text1": "tea", "text2": "milk", "pw": {"selected": "right"}, "annotator": 8,
     "annotation_id": 11, "lead_time": 2},
    {"id": 3, "text1": "water", "text2": "tea", "pw": [{"selected": "left"}], "annotator": 8,
     "annotation_id": 12, "lead_time": 9},
]  # fmt: skip
OF_TASKS = [
    ("7", "tea", "milk", LEFT), ("8", "tea", "milk", RIGHT), ("8", "water", "tea", LEFT),
]  # fmt: skip

RANKED = [{"value": "b", "rank": 1}, {"value": "a", "rank": 2}, {"value": "c", "rank": 2}]
ANSWERED = {"preference": {"value": RANKED}, "rating": {"value": 4}}
RECORDS = [
    {"fields": {"prompt": "x"}, "responses": [
        {"user_id": "u1", "status": "submitted", "values": ANSWERED},
        {"user_id": "u2", "status": "discarded", "values": None},
        {"user_id": "u3", "status": "draft", "values": ANSWERED},
    ]},
    {"fields": {"prompt": "y"}, "responses": []},
]  # fmt: skip
# The same as rows of a data set: lists of responses, or lists of what they hold.
ROWS = [
    {"prompt": "x", "preference-suggestion": None, "preference": [
        {"user_id": "u1", "value": {"rank": [1, 2, 2], "value": ["b", "a", "c"]},
         "status": "submitted"},
        {"user_id": "u2", "value": {"rank": [1], "value": ["a"]}, "status": "discarded"},
        {"user_id": "u3", "value": {"rank": [1], "value": ["a"]}, "status": "draft"},
    ]},
    {"prompt": "y", "preference-suggestion": None, "preference": []},
]  # fmt: skip
ROWS_OF_LISTS = [
    {"prompt": "x", "preference": {
        "user_id": ["u1", "u2", "u3"], "value": [RANKED, RANKED, RANKED],
        "status": ["submitted", "discarded", "draft"],
    }},
]  # fmt: skip
OF_RECORDS = [("u1", "b", "a", LEFT), ("u1", "b", "c", LEFT), ("u1", "a", "c", TIE)]
UNFINISHED = ["1 discarded response dropped.", "1 draft response dropped."]
ANSWERS = "The rankings are the answers to 'preference'."
PAIRS = "Every row is a ranking. Its pairs are votes: 3 in all."

FLAT_RECORDS = [
    {"id": "1", "prompt": "x", "preference.responses": [["b", "a"], ["a", "b", "c"]],
     "preference.responses.users": ["u1", "u2"],
     "preference.responses.status": ["submitted", "discarded"]},
]  # fmt: skip
NESTED_RECORDS = [
    {"id": "1", "fields": {"prompt": "x"}, "metadata": {}, "suggestions": {}, "vectors": {},
     "responses": {"preference": [{"value": ["b", "a"], "user_id": "u1"}],
                   "comment": [{"value": "both fine", "user_id": "u1"}]}},
]  # fmt: skip
ORDER = f"{ANSWERS} They have an order and no ranks: equal ranks, if any, are not seen."


def vote_for(option, country, score):
    details = {"country": country, "language": "en", "userScores": {"global": score}}
    return {"votedFor": option, "userDetails": details | {"demographics": {}}}


REPORT = {
    "info": {"createdAt": "2025-02-11T07:31:59+00:00", "version": "3.0.0"},
    "results": [
        {"context": "A cat.", "winner_index": 1, "winner": "b.png",
         "aggregatedResults": {"a.png": 1, "b.png": 2},
         "detailedResults": [vote_for("b.png", "DE", 0.5), vote_for("a.png", "KE", 0.25),
                             vote_for("b.png", "BR", 1)]},
        {"context": "A dog.", "winner_index": 0, "winner": "b.png",
         "aggregatedResults": {"b.png": 2, "c.png": 0}},
    ],
    "summary": {"A_wins_total": 1, "B_wins_total": 1},
}  # fmt: skip
OF_REPORT = [
    ("everybody", "a.png", "b.png", RIGHT), ("everybody", "a.png", "b.png", LEFT),
    ("everybody", "a.png", "b.png", RIGHT), ("everybody", "b.png", "c.png", LEFT),
    ("everybody", "b.png", "c.png", LEFT),
]  # fmt: skip
CROWD = (
    "No column can be the user, so all votes are those of one anonymous crowd. If there is a "
    "column of users, name it."
)

LABELS = [
    {"instance_id": "i1", "user_id": "u1", "left": "tea", "right": "milk", "spans": {},
     "labels": {"better": {"selection": "A"}}},
    {"instance_id": "i1", "user_id": "u2", "left": "tea", "right": "milk", "spans": {},
     "labels": {"better": {"selection": "tie"}}},
    {"instance_id": "i2", "user_id": "u2", "left": "milk", "right": "tea", "labels": {}},
]  # fmt: skip
ORDERS = [{"instance_id": "i1", "user_id": "u1", "labels": {"quality": {"rank_order": "b,a=c"}}}]

SKIPPED = [
    "1 annotation dropped: it was skipped.",
    "1 annotation dropped: nothing is chosen in it.",
    "1 task dropped: nobody has annotated it.",
]
ITEMS = "The left item of a task is 'text1' in its data, and the right one 'text2'."

# name: (objects, layout, votes, notes)
EXAMPLES = {
    "tasks": (TASKS, "label-studio", OF_TASKS, [*SKIPPED, ITEMS]),
    "tasks, as they were called once": (
        [{"completions" if k == "annotations" else k: v for k, v in t.items()} for t in TASKS],
        "label-studio", OF_TASKS, [*SKIPPED, ITEMS],
    ),
    "short tasks": (SHORT_TASKS, "label-studio", OF_TASKS, [ITEMS]),
    "records": (RECORDS, "argilla", OF_RECORDS, [*UNFINISHED, ANSWERS, PAIRS]),
    "rows": (ROWS, "argilla", OF_RECORDS, [*UNFINISHED, ANSWERS, PAIRS]),
    "rows of lists": (ROWS_OF_LISTS, "argilla", OF_RECORDS, [*UNFINISHED, ANSWERS, PAIRS]),
    "flat records": (
        FLAT_RECORDS, "argilla", OF_RECORDS[:1],
        [UNFINISHED[0], ORDER, PAIRS.replace("3", "1")],
    ),
    "nested records": (
        NESTED_RECORDS, "argilla", OF_RECORDS[:1],
        [f"{ORDER} They do not say whether they were submitted: all of them are used.",
         PAIRS.replace("3", "1")],
    ),
    "report": (
        [REPORT], "rapidata", OF_REPORT, [CROWD, "By 'count', the rows stand for 5 votes."],
    ),
    "labels": (
        LABELS, "potato", [("u1", "tea", "milk", LEFT), ("u2", "tea", "milk", TIE)],
        ["1 instance dropped: nothing is chosen in it."],
    ),
    "orders": (ORDERS, "potato-ranking", OF_RECORDS, [PAIRS]),
}  # fmt: skip


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
    assert votes.weight.tolist() == [0.5, 0.25, 1.0] and votes.is_anonymous


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
