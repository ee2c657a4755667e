"""The platforms whose nested exports are known: how each is recognised, and where its votes are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from isplitlbi.data.exports import (
    Export,
    Found,
    Object,
    are_objects,
    as_text,
    as_word,
    is_id,
    is_plain,
    objects_of,
    plain,
)
from isplitlbi.data.notes import AnswersTaken, ItemsTaken
from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidVotes

__all__ = ["EXPORTS", "recognise_export"]


# --- Label Studio ----------------------------------------------------------------------------

# What the data of a task may call its two items.
_PAIRS = (
    ("left", "right"), ("text1", "text2"), ("answer1", "answer2"), ("image1", "image2"),
    ("item1", "item2"), ("response1", "response2"), ("model_a", "model_b"),
)  # fmt: skip
_OF_ANNOTATION = {"id": "annotation_id"} | {
    name: name for name in ("created_at", "updated_at", "lead_time")
}


def _is_task(first: Object) -> bool:
    return isinstance(first.get("data"), dict) and (
        "annotations" in first or "completions" in first
    )


def _find_in_tasks(tasks: Iterable[Object], found: Found) -> None:
    """Find the choices between two items in tasks with annotations."""
    questions: dict[str, None] = {}
    pairs: dict[tuple[str, str], None] = {}
    for number, task in found.numbered(tasks):
        data = task.get("data")
        annotations = task.get("annotations", task.get("completions"))
        if not isinstance(data, dict) or not are_objects(annotations or []):
            found.refuse(number, "this is no task with data and annotations", "Export it again")
            continue
        if not annotations:
            found.pass_over("task", "nobody has annotated it")
        for annotation in objects_of(annotations):
            answers, keys = _choices_of(annotation, number, found)
            if not answers:
                continue
            questions |= dict.fromkeys(answers)
            pair = _items_of(data, keys)
            items = dict(zip(("left", "right"), map(data.get, pair), strict=True)) if pair else {}
            pairs |= {pair: None} if pair else {}
            about = {
                ours: as_text(annotation[theirs])
                for theirs, ours in _OF_ANNOTATION.items()
                if annotation.get(theirs) is not None
            }
            who = {"completed_by": who} if (who := _annotator(annotation)) is not None else {}
            found.add(number, {**plain(data), **items, **about, **who, **answers})
    found.name_only_question(list(questions), "selected")
    found.notes += [ItemsTaken(pair) for pair in pairs if pair != _PAIRS[0]]


def _choices_of(annotation: Object, number: int, found: Found) -> tuple[dict[str, Any], list[str]]:
    """Return what an annotation chooses, by question, and what it says the two items are called."""
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        found.pass_over("annotation", "it was skipped")
        return {}, []
    results = [each for each in objects_of(annotation.get("result")) if _is_choice(each)]
    if not results:
        found.pass_over("annotation", "nothing is chosen in it")
        return {}, []
    answers = {
        str(each.get("from_name", "selected")): each["value"]["selected"] for each in results
    }
    if len(answers) < len(results):
        found.refuse(number, "an annotation answers a question twice", "Remove one of the answers")
    return answers, [name.strip() for name in str(results[0].get("to_name", "")).split(",")]


def _is_choice(result: Object) -> bool:
    value = result.get("value")
    return result.get("type") == "pairwise" and isinstance(value, dict) and "selected" in value


def _items_of(data: Object, names: Sequence[str]) -> tuple[str, str] | None:
    """Return what the data of a task calls its two items."""
    pairs = [(names[0], names[1])] if len(names) == 2 else []
    return next((pair for pair in (*pairs, *_PAIRS) if set(pair) <= set(data)), None)


def _annotator(annotation: Object) -> Any:
    """Return the id of whoever annotated: it may be there with a name and an address."""
    who = annotation.get("completed_by")
    return who.get("id", who.get("email")) if isinstance(who, dict) else who


def _is_short_task(first: Object) -> bool:
    return {"annotator", "annotation_id"} <= set(first) and bool(_short_choices(first))


def _short_choices(task: Object) -> dict[str, Any]:
    """Return what is chosen in a task of the short form, by question."""
    listed = {name: value if isinstance(value, list) else [value] for name, value in task.items()}
    return {
        name: some[0]["selected"]
        for name, value in listed.items()
        if len(some := objects_of(value)) == 1 and "selected" in some[0]
    }


def _find_in_short_tasks(tasks: Iterable[Object], found: Found) -> None:
    """Find the choices between two items in the short form, of one annotation per object."""
    questions: dict[str, None] = {}
    pairs: dict[tuple[str, str], None] = {}
    for number, task in found.numbered(tasks):
        answers = _short_choices(task)
        if not answers:
            found.pass_over("annotation", "nothing is chosen in it")
            continue
        questions |= dict.fromkeys(answers)
        pair = _items_of(task, ())
        items = dict(zip(("left", "right"), map(task.get, pair), strict=True)) if pair else {}
        pairs |= {pair: None} if pair else {}
        found.add(number, {**plain(task), **items, **answers})
    found.name_only_question(list(questions), "selected")
    found.notes += [ItemsTaken(pair) for pair in pairs if pair != _PAIRS[0]]


# --- Argilla ---------------------------------------------------------------------------------


def _is_record(first: Object) -> bool:
    return ("fields" in first and "responses" in first) or any(
        name.endswith(".responses") or _has_responses(value) for name, value in first.items()
    )


def _has_responses(value: Any) -> bool:
    """Tell whether this is a list of responses, or an object of lists of what they hold."""
    some = value[0] if isinstance(value, list) and value else value
    return isinstance(some, dict) and {"user_id", "value", "status"} <= set(some)


class _Response(NamedTuple):
    """What somebody answered to a question."""

    question: str
    value: Any
    user: Any
    place: int  # among the answers to the question
    status: Any

    @classmethod
    def of(cls, question: str, value: Any, about: Object, place: int) -> _Response:
        """Take an answer with what is known about it."""
        return cls(question, value, about.get("user_id"), place, about.get("status"))

    @property
    def who(self) -> tuple[Any, int]:
        """Whose answer it is; of people without an id, everybody is another."""
        return (self.user, 0 if self.user is not None else self.place)


def _find_in_records(records: Iterable[Object], found: Found) -> None:
    """Find the rankings in the responses to records."""
    answers: dict[tuple[int, Any], dict[str, str]] = {}
    ranked: dict[str, bool] = {}  # whether the answers to a question have ranks
    has_status = False
    for number, record in found.numbered(records):
        unfinished: dict[Any, str] = {}
        for response in _responses_of(record, number, found):
            has_status |= response.status is not None
            if not is_plain(response.user):
                found.refuse(number, f"user_id is {show(response.user)}", "Write ids as text")
            elif response.status not in (None, "submitted"):
                unfinished[response.who] = as_word(response.status)
            elif isinstance(response.value, list | dict):
                tiers, has_ranks = _tiers_of(response.value)
                of_user = answers.setdefault((number, response.who), {})
                if tiers is None or response.question in of_user:
                    what = "no ranking of options" if tiers is None else "there twice for one user"
                    found.refuse(
                        number, f"the answer to {show(response.question)} is {what}",
                        "Correct it or remove it",
                    )  # fmt: skip
                    continue
                ranked[response.question] = ranked.get(response.question, False) or has_ranks
                of_user[response.question] = json.dumps(tiers, ensure_ascii=False)
        for status in unfinished.values():
            found.pass_over(f"{status} response", "")
    # A list of options without ranks may as well be the answer to a question of many labels.
    asked = [name for name, has_ranks in ranked.items() if has_ranks] or list(ranked)
    for (number, (user, _)), given in answers.items():
        of_user = {name: given[name] for name in asked if name in given}
        if of_user:
            found.add(number, of_user if user is None else {"user_id": user, **of_user})
    found.name_only_question(asked, "responses")
    if len(asked) == 1:
        found.notes.append(AnswersTaken(asked[0], ranked[asked[0]], has_status))


def _responses_of(record: Object, number: int, found: Found) -> Iterator[_Response]:
    """Return the responses to a record, in whichever of its forms it is."""
    responses = record.get("responses")
    if isinstance(responses, list):  # by user, as the server has them
        if not are_objects(responses):
            found.refuse(number, "its responses are no objects", "Export it again")
        for place, about in enumerate(objects_of(responses)):
            values = about.get("values")
            for question, answer in (values if isinstance(values, dict) else {"": None}).items():
                value = answer.get("value") if isinstance(answer, dict) else answer
                yield _Response.of(question, value, about, place)
    by_question = dict(responses) if isinstance(responses, dict) else {}
    for name, value in record.items():
        question = name.removesuffix(".responses")
        if question != name:
            lists = {"value": value, "user_id": record.get(f"{name}.users")}
            by_question[question] = lists | {"status": record.get(f"{name}.status")}
        elif _has_responses(value):
            by_question[name] = value
    for question, given in by_question.items():
        for place, about in enumerate(_one_by_one(given)):
            yield _Response.of(question, about.get("value"), about, place)


def _one_by_one(responses: Any) -> list[Object]:
    """Return responses one by one, also where there are lists of what they hold."""
    if not isinstance(responses, dict):
        return objects_of(responses)
    lists = {name: value for name, value in responses.items() if isinstance(value, list)}
    n_responses = max(map(len, lists.values()), default=0)
    return [
        {name: value[k] for name, value in lists.items() if k < len(value)}
        for k in range(n_responses)
    ]


def _tiers_of(value: Any) -> tuple[list[list[Any]] | None, bool]:
    """Return a ranking, best first, and whether it has ranks; None where it is no ranking."""
    if isinstance(value, dict):  # a list of options and a list of their ranks
        value = _one_by_one(value)
    options = [each if isinstance(each, dict) else {"value": each} for each in value]
    names = [each.get("value") for each in options if is_id(each.get("value"))]
    ranks = [each.get("rank") for each in options]
    has_ranks = any(rank is not None for rank in ranks)
    if not names or len(names) < len(options):
        return None, has_ranks
    if not has_ranks:
        return [[name] for name in names], False
    found: dict[int, list[Any]] = {}
    for name, rank in zip(names, ranks, strict=True):
        if not isinstance(rank, int | None) or isinstance(rank, bool):
            return None, True
        if rank is not None:  # else it was not ranked, and is not compared
            found.setdefault(rank, []).append(name)
    return [found[rank] for rank in sorted(found)], True


# --- potato ----------------------------------------------------------------------------------


def _is_labelled(first: Object) -> bool:
    return {"instance_id", "user_id"} <= set(first) and isinstance(first.get("labels"), dict)


def _find_in_labels(instances: Iterable[Object], found: Found) -> None:
    """Find choices between two items, and rankings, in labels."""
    columns: dict[str, dict[str, None]] = {"selection": {}, "rank_order": {}}
    for number, instance in found.numbered(instances):
        labels = instance.get("labels")
        answers = {}
        for schema, given in labels.items() if isinstance(labels, dict) else ():
            for column, questions in columns.items():
                if isinstance(given, dict) and given.get(column) is not None:
                    name = f"{schema}.{column}"
                    answers[name] = given[column]
                    questions[name] = None
        if not answers:
            found.pass_over("instance", "nothing is chosen in it")
            continue
        found.add(number, {**plain(instance), **answers})
    for column, questions in columns.items():
        found.name_only_question(list(questions), column)
    if columns["selection"] and all(len(row) <= len(_OF_INSTANCE) for row in _others(found)):
        raise InvalidVotes(
            f"{found.source}: it tells which side was chosen, and not which two items were there. "
            "Add them to every object as left and right, from the data, by instance_id."
        )


_OF_INSTANCE = ("instance_id", "user_id")


def _others(found: Found) -> Iterator[list[str]]:
    """Return what every row says besides its answers."""
    for row in found.rows:
        yield [name for name in row if name.rpartition(".")[2] not in ("selection", "rank_order")]


# --- Rapidata --------------------------------------------------------------------------------


def _is_report(first: Object) -> bool:
    return isinstance(first.get("info"), dict) and isinstance(first.get("results"), list)


def _find_in_reports(reports: Iterable[Object], found: Found) -> None:
    """Find the votes in the results of comparisons, of whom nobody knows the users."""
    results = [report.get("results") if isinstance(report, dict) else report for report in reports]
    listed = [each if isinstance(each, list) else [each] for each in results]
    for number, result in found.numbered(chain.from_iterable(listed)):
        totals = result.get("aggregatedResults")
        if not isinstance(totals, dict) or len(totals) != 2:
            found.refuse(
                number, "its aggregatedResults are not of two options",
                "Give the results of comparisons only",
            )  # fmt: skip
            continue
        left, right = totals
        votes = objects_of(result.get("detailedResults"))
        if votes and _totals_differ(votes, totals):
            found.refuse(
                number, "its aggregatedResults are not the sums of its detailedResults",
                "Export it again",
            )  # fmt: skip
            continue
        for vote in votes:
            about = vote.get("userDetails")
            about = about if isinstance(about, dict) else {}
            scores = about.get("userScores")
            score = scores.get("global") if isinstance(scores, dict) else None
            known = {name: about[name] for name in ("country", "language") if about.get(name)}
            known |= {"userScore": as_text(score)} if score is not None else {}
            row = {"left": left, "right": right, "votedFor": vote.get("votedFor"), **known}
            found.add(number, row)
        for option, count in totals.items() if not votes else ():
            found.add(
                number, {"left": left, "right": right, "votedFor": option, "count": as_text(count)}
            )
    if any("count" in row for row in found.rows):
        for row in found.rows:
            row.setdefault("count", "1")


def _totals_differ(votes: Sequence[Object], totals: Object) -> bool:
    sums = Counter(str(vote.get("votedFor")) for vote in votes)
    return any(sums[option] != count for option, count in totals.items())


_OF_CHOICES = ("completed_by", "left", "right", "selected")

EXPORTS = (
    Export("Label Studio", _is_task, _find_in_tasks, _OF_CHOICES),
    Export("Label Studio, short", _is_short_task, _find_in_short_tasks, _OF_CHOICES),
    Export("Rapidata", _is_report, _find_in_reports, ("left", "right", "votedFor")),
    Export("potato", _is_labelled, _find_in_labels, ("user_id", "left", "right", "selection")),
    Export("Argilla", _is_record, _find_in_records, ("user_id", "responses")),
)


def recognise_export(first: Any) -> Export | None:
    """Return the kind of an export, by its first object."""
    if not isinstance(first, dict):
        return None
    return next((export for export in EXPORTS if export.is_one(first)), None)
