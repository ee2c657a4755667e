"""Files of votes in which anything may stand, and what must come of them: votes, or one sentence.

A file is drawn from a `random.Random`, so that hypothesis can draw it as well as a seed. It is the
small example of a layout or of an export, in some format, with some values replaced by others of
every type of JSON, of a text file, or of a column of Parquet.
"""

import csv
import datetime as dt
import decimal
import gzip
import io
import json
import re
import sys
from typing import NamedTuple
from unittest.mock import patch

import polars as pl
from polars.exceptions import PanicException

from exported import EXAMPLES
from isplitlbi import Comparisons
from isplitlbi.data.pairs import stream_pairs
from isplitlbi.data.people import stream_people
from isplitlbi.data.presets import PRESETS
from isplitlbi.data.readers import read_votes
from isplitlbi.errors import ISplitLBIError
from layouts import LAYOUTS

__all__ = ["DRAWN", "PanicException", "frame_of", "judged", "judged_frame", "of_parquet"]

DEEP = 2000
TEXTS = [
    "", " ", "\0", "a\0", "\x1b[31m", "a\nb", "a\tb", "\r", "\u202eabc", "\u200b", "\ufeff", "é",
    "🦆", "1", "1.5", "-1", "inf", "nan", "NaN", "1e999", "1e308", "007", "true", "null", "None",
    "x" * 10_000, "[", "[]", "{", '["a", ["b", "c"]]', '["a", true]', "[" * DEEP, "a > b = c",
    "a,b=c", ">", "=", ",", "a > a", '"', "'", "left", "right", "tie", "model_a", "tea", "milk",
    "2024-01-31", "2024-01-31T12:30Z",
]  # fmt: skip
# As JSON writes them; some are no JSON.
WRITTEN = [
    "null", "true", "false", "0", "-0", "1", "-1", "7", "1.0", "1.5", "-0.0", "1e5", "1e-400",
    "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "007", "+1", ".5", "0x1", str(2**53 + 1),
    str(2**63), str(2**64), "9" * 38, "9" * 39, "9" * 400, "9" * 5000, "[]", "{}", '["u"]', "[1]",
    '{"a": 1}', "[[]]", '[["a"], "b"]', '["a", 1.5]', '{"rank": [1], "value": ["a"]}',
    "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "[" * DEEP, r'"\ud800"',
    r'"a\udfff"', r'"\udc00\ud800"', r'"\ud83e\udd86"', r'"\u0000"', r'"\u001b"', '"\x1b"', '"',
    "", "x",
]  # fmt: skip
COLUMNS = [
    [1.0, 2.0], [1.5, None], [float("nan"), 1.0], [float("inf"), 1.0], [1e300, -0.0], [True, False],
    [["a"], []], [[1], None], [{"a": 1}, {"a": None}], [b"a", b"\xff"], [None, None],
    [dt.date(2024, 1, 1), None], [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None],
    [dt.timedelta(days=1), None], [dt.time(1), None], [decimal.Decimal("1.5"), None],
    [2**63, 1], [2**100, 1], [-1, 0], ["a", None], ["a\0", "b"], ["", "\x1b"], ["left", "tie"],
    [1, 0],
]  # fmt: skip
KINDS = [None, None, None, pl.Float32, pl.Categorical, pl.UInt8, pl.Int128, pl.Binary]

# What is said of a whole column or of a whole file, and names no row.
OF_ALL = re.compile(
    r"fit no layout|fit more than one layout|no column '|can mean more than one thing|ids of items"
    r"|holds? values of type|use one type|is beyond 64-bit|stand for .* (votes|pairs)|there are no"
    r"|no votes are left|file is empty|this is not text|more than once|none before it|same number"
    r"|is not UTF-8|quotation mark|readable CSV|readable header|separated by|votes again|array has"
    r"|no users|text in one column|convert the column|what is not about|half of a character"
    r"|which side was chosen|Sort the file|more than two items|found: "
)


class Hostile(NamedTuple):
    """A file, and what texts ids may be that come from it."""

    name: str  # of the example, and how it is written
    content: bytes
    texts: frozenset[str]
    users: list[str | None] | None  # of every row, where a row is a vote


# --- values ----------------------------------------------------------------------------------


def written_value(random):
    """Return any value of JSON, as it is written."""
    if random.random() < 0.6:
        return random.choice(WRITTEN)
    text = random.choice(TEXTS)
    return json.dumps(text, ensure_ascii=random.random() < 0.5)


def texts_in(value):
    """Return all texts and whole numbers in a value, and what rankings can make of them."""
    held, found = [value], set()
    while held:
        each = held.pop()
        if isinstance(each, dict):
            held += [*each, *each.values()]
        elif isinstance(each, list):
            held += each
        elif isinstance(each, int) and not isinstance(each, bool):
            found.add(str(each))
        elif isinstance(each, str):
            found |= {name.strip() for signs in ("[>=]", "[,=]") for name in re.split(signs, each)}
            found.add(each)
            if each.lstrip().startswith("["):
                held += listed_in(each)
    return found


def listed_in(text):
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


# --- files -----------------------------------------------------------------------------------


def of_layout(random, name):
    """Draw a file of a layout, as JSON: lines or an array."""
    rows = list(csv.DictReader(io.StringIO(LAYOUTS[name][0])))
    rows = [{key: json.dumps(value) for key, value in row.items()} for row in rows for _ in "12"]
    for _ in range(random.choice([1, 1, 2, 5])):
        row, value = random.choice(rows), written_value(random)
        for key in random.sample(list(row), random.choice([1, 1, 2, len(row)])):
            row[key] = value
    texts = [[f"{json.dumps(key)}: {value}" for key, value in row.items()] for row in rows]
    if random.random() < 0.2:
        some = random.choice(texts)
        some.append(f"{spelled(random, random.choice(list(rows[0])))}: {written_value(random)}")
    lines = [f"{{{', '.join(row)}}}" for row in texts]
    if random.random() < 0.1:
        lines[random.randrange(len(lines))] = written_value(random) or "x"
    is_array = random.random() < 0.5
    text = f"[{','.join(lines)}]" if is_array else "\n".join(lines)
    (*_, of_user) = (key for key in PRESETS[name.split(",")[0]].columns["user"] if key in rows[0])
    found = [parsed(line) for line in lines]
    one_vote = PRESETS[name.split(",")[0]].unit == "row"
    users = [as_id(each, of_user) for each in found] if one_vote else None
    way = "array" if is_array else "lines"
    return Hostile(f"{name}, {way}", as_bytes(text), frozenset(texts_in(found)), users)


def spelled(random, name):
    """Write a name in one of the ways of JSON."""
    return '"' + "".join(
        f"\\u{ord(sign):04x}" if random.random() < 0.3 else sign for sign in name
    ) + '"'  # fmt: skip


def parsed(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def as_id(row, name):
    value = row.get(name) if isinstance(row, dict) else None
    return None if isinstance(value, float | list | dict | bool | None) else str(value)


def as_bytes(text):
    return text.encode("utf-8", "surrogatepass")


def of_export(random, name):
    """Draw an export of a platform: one of its values is replaced, or several."""
    objects = json.loads(json.dumps(EXAMPLES[name][0]))
    marks = []
    for _ in range(random.choice([1, 1, 2, 4])):
        within, step = random.choice(list(places_in(objects)))
        marks.append((f"<<{len(marks)}>>", written_value(random)))
        within[step] = marks[-1][0]
    is_array = random.random() < 0.5
    text = json.dumps(objects) if is_array else "\n".join(map(json.dumps, objects))
    for mark, value in marks:
        text = text.replace(f'"{mark}"', value)
    try:
        documents = [text] if is_array else [line for line in text.split("\n") if line]
        found = list(map(json.loads, documents))
    except (ValueError, RecursionError):
        found = []
    return Hostile(f"{name}, export", as_bytes(text), frozenset(texts_in(found)), None)


def places_in(value):
    """Return every place in nested lists and objects."""
    for step, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, step
        if isinstance(inner, dict | list):
            yield from places_in(inner)


def of_text(random, name):
    """Draw a CSV or a TSV: some fields are others."""
    header, *rows = csv.reader(io.StringIO(LAYOUTS[name][0]))
    rows = [list(row) for row in rows for _ in "12"]
    for _ in range(random.choice([1, 1, 2, 5])):
        row, value = random.choice(rows), random.choice(TEXTS)
        for place in random.sample(range(len(row)), random.choice([1, 1, 2, len(row)])):
            row[place] = value
    text = io.StringIO()
    separator = random.choice(",\t")
    writer = csv.writer(text, delimiter=separator, lineterminator=random.choice(["\n", "\r\n"]))
    writer.writerows([header, *rows])
    of_user = next(key for key in PRESETS[name.split(",")[0]].columns["user"] if key in header)
    one_vote = PRESETS[name.split(",")[0]].unit == "row"
    users = [row[header.index(of_user)] for row in rows] if one_vote else None
    content = text.getvalue().encode("utf-8", "surrogatepass")
    return Hostile(f"{name}, text", content, frozenset(texts_in(rows)), users)


def frame_of(random, name):
    """Draw a table of a layout: some columns are of other types, with values of these."""
    table = pl.read_csv(LAYOUTS[name][0].encode(), infer_schema=random.random() < 0.5)
    values = random.choice(COLUMNS)
    for column in random.sample(table.columns, random.choice([1, 1, 2, table.width])):
        values = random.choice([values, values, *COLUMNS])
        values = [values[row % 2] for row in range(table.height)]
        kind = random.choice(KINDS)
        try:
            series = pl.Series(column, values, strict=False)
            series = series if kind is None else series.cast(kind, strict=False)
        except (pl.exceptions.PolarsError, OverflowError, TypeError):
            continue
        table = table.with_columns(series)
    return table


def of_parquet(random, name):
    """Draw a Parquet file with columns of all types."""
    table, content = frame_of(random, name), io.BytesIO()
    table.write_parquet(content)
    texts = {str(value) for column in table for value in column.to_list() if is_text(value)}
    return Hostile(f"{name}, parquet", content.getvalue(), frozenset(texts_in(list(texts))), None)


def is_text(value):
    return isinstance(value, str | int) and not isinstance(value, bool)


# --- what must come of them -------------------------------------------------------------------


def judged(random, hostile, folder):
    """Read a file in every way; return `read` or the sentence, as `read_votes` has it."""
    content = gzip.compress(hostile.content) if random.random() < 0.2 else hostile.content
    file = folder / "votes"
    file.write_bytes(content)
    told = outcome_of(lambda: read_votes(file), hostile, "votes", is_whole=True)
    outcome_of(lambda: read_votes(file, drop_invalid=True), hostile, "votes")
    outcome_of(
        lambda: list(stream_people(file, block=random.choice([64, 2**20]))), hostile, "votes"
    )
    pairs = outcome_of(lambda: list(stream_pairs(file, block=64)), hostile, "votes")
    assert pairs is not None
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "votes").write_bytes(content)
    same = outcome_of(lambda: read_votes(folder / "parts"), hostile, r"votes|\S*parts")
    assert same == told or "in any of its files" in same
    with patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(content))):
        same = outcome_of(lambda: read_votes("-"), hostile, "standard input")
    assert same.replace("standard input", "votes") == told or "iconv" in same
    return told


def judged_frame(table):
    """Read a table in every kind of frame; return what came of the first."""
    kinds = [table]
    for convert in (table.to_pandas, table.to_arrow):
        try:
            kinds.append(convert())
        except Exception:  # there is no such frame, which is none of ours
            continue
    texts = {str(value) for column in table for value in column.to_list() if is_text(value)}
    hostile = Hostile("frame", b"", frozenset(texts_in(list(texts))), None)
    told = [outcome_of(lambda k=k: Comparisons.from_frame(k), hostile, "votes") for k in kinds]
    return told[0]


def outcome_of(read, hostile, source, *, is_whole=False):
    """Return `read` where votes came of it, and else the sentence; anything else is a failure."""
    try:
        found = read()
    except ISplitLBIError as error:
        said = str(error)
        assert re.match(rf"({source})[:,]", said), said
        assert said.isprintable() and len(said) < 1500, said
        assert re.search(r", (rows|row|line) [0-9]", said) or OF_ALL.search(said), said
        return said
    votes = [
        getattr(each, "votes", each) for each in (found if isinstance(found, list) else [found])
    ]
    for some in votes:
        if isinstance(some, Comparisons):
            ids = {*some.users.tolist(), *some.items.tolist()} - {"everybody"}
            assert {str(each) for each in ids} <= hostile.texts, ids - hostile.texts
            assert not any("\0" in str(each) for each in ids)
    whole = votes[0]
    if is_whole and hostile.users is not None and not whole.is_anonymous and not found.notes:
        assert whole.users[whole.user].tolist() == hostile.users
    return "read"


DRAWN = {
    **{f"{name}, JSON": (of_layout, name) for name in LAYOUTS},
    **{f"{name}, text": (of_text, name) for name in LAYOUTS},
    **{f"{name}, Parquet": (of_parquet, name) for name in LAYOUTS},
    **{f"{name}, export": (of_export, name) for name in EXAMPLES},
}
