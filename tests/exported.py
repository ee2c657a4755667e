"""Nested exports of platforms for tests: made up, in the forms that these document."""

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
