"""What a vote says: the only place where words and numbers become outcomes, and labels are checked.

Conventions
-----------
outcome    1 the left item wins, 0 tie, -1 the right item wins
label      another word for an outcome, which a person declares: ``{"draw": "tie"}``
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.counts import votes_in
from isplitlbi.data.notes import CountedAsTies, Dropped, Note, ReadAs, log_changes
from isplitlbi.data.vocabulary import LONGEST, counted, folded, show
from isplitlbi.errors import InvalidRows, InvalidSetting, InvalidVotes, Setting
from isplitlbi.lazy import pl

__all__ = [
    "BOTH_BAD",
    "FAMILIES",
    "MODELS",
    "OUTCOMES",
    "WINNERS",
    "Sides",
    "Wording",
    "all_on_one_side",
    "meaning",
    "outcomes_of_column",
    "outcomes_of_labels",
    "outcomes_of_text",
    "respelled",
    "settle_both_bad",
]

Sides = Literal["known", "unknown"]  # whether left and right mean something

OUTCOMES = {"left": 1, "tie": 0, "right": -1}
WINNERS = {outcome: word for word, outcome in OUTCOMES.items()}

# The words of arenas of language models, and those that say: neither is good.
MODELS = {"model_a": "left", "model_b": "right", "tie": "tie"}
BOTH_BAD = ("tie (bothbad)", "both_bad", "bothbad")
# Words for outcomes that go together.
FAMILIES = (OUTCOMES, {word: OUTCOMES[target] for word, target in MODELS.items()})

# What others call outcomes, for a remedy that is likely to be right.
_HINTS = {
    "left": ("left", "model a", "a", "l", "first", "one", "top", "option a", "win"),
    "right": ("right", "model b", "b", "r", "second", "two", "bottom", "option b", "loss"),
    "tie": ("tie", "tied", "draw", "equal", "same", "neither", "both", "none"),
}
_HINTED = {hint: outcome for outcome, hints in _HINTS.items() for hint in hints}
_NUMERALS = {"1": "left", "2": "right", "-1": "right"}

_NUMBERS = {1: 1, 0: 0, -1: -1}  # what numbers mean where they can mean nothing else

FEWEST_WINNERS = 20  # on one side and none on the other: by chance once in a million studies


def all_on_one_side(n_left: float, n_right: float) -> bool:
    """Say whether all winners are on one side, of so many votes that it cannot be chance."""
    return bool(min(n_left, n_right) == 0 and max(n_left, n_right) >= FEWEST_WINNERS)


def outcomes_of_labels(labels: Mapping[Any, Any] | None, source: str) -> dict[Any, int]:
    """Return the outcome that each label stands for; refuse what stands for none."""
    for word, target in (labels or {}).items():
        if not isinstance(target, str) or target not in OUTCOMES:
            raise InvalidSetting(
                f"{source}: the label {show(word)} is mapped to {target!r}, which is not one of "
                f"{', '.join(OUTCOMES)}."
            )
    return {word: OUTCOMES[target] for word, target in (labels or {}).items()}


def meaning(word: str) -> int | None:
    """Return the outcome that a word stands for, however it is spelled; None where it is none."""
    known = dict.fromkeys(BOTH_BAD, 0) | FAMILIES[1] | FAMILIES[0]
    found = known_as(word, known)
    return None if found is None else known[found]


def known_as(word: str, known: Mapping[str, int]) -> str | None:
    """Return the known word that another one is but for its spelling, if that is clear."""
    if word in known:
        return word
    alike = [each for each in known if folded(each) == folded(word)]
    return alike[0] if len({known[each] for each in alike}) == 1 else None


def likely_labels(value: Any) -> Setting:
    """Return the setting that maps an unknown value to what it most likely means.

    Of a value that would drown the sentence, it is the setting alone.
    """
    if len(str(value)) > LONGEST:
        return Setting("labels")
    if isinstance(value, str) and value.strip() in _NUMERALS:
        return Setting("labels", {value: _NUMERALS[value.strip()]})
    close = difflib.get_close_matches(folded(str(value)), _HINTED, n=1, cutoff=0.7)
    return Setting("labels", {value: _HINTED[close[0]] if close else "tie"})


# --- columns at hand -------------------------------------------------------------------------


def outcomes_of_column(
    column: pl.Series, name: str, labels: Mapping[Any, str] | None, source: str
) -> NDArray[np.int8]:
    """Return 1, 0 or -1 for every value of a column of words or of numbers, none of it missing."""
    words = outcomes_of_labels(labels, source)
    if column.dtype == pl.Int8 and not words and column.is_between(-1, 1).all():
        return column.to_numpy(writable=True)  # as it should be
    values = column
    if column.dtype == pl.String:
        words, allowed = OUTCOMES | words, ", ".join(OUTCOMES)
        if not column.is_in(list(words)).all():
            words |= _other_words(column, name, words, source)
    else:
        allowed = "1 (left), 0 (tie), -1 (right)"
        if not column.dtype.is_numeric():
            raise InvalidVotes(
                f"{source}: {name} holds values of type {column.dtype}; expected left, right, tie "
                f"or {allowed}."
            )
        numbers = {word: code for word, code in words.items() if isinstance(word, int | float)}
        words = {float(word): code for word, code in (_NUMBERS | numbers).items()}
        values = column.cast(pl.Float64)
    outcome, known = _translate(values, words)
    if known is not None:
        value = column.filter(~known)[0]
        remedy = likely_labels(value)
        said = OUTCOMES if remedy.value is ... else remedy.value.values()
        others = [f", or {word}" for word in ("left", "tie", "right") if word not in said]
        raise InvalidRows.of(
            source, ~known, f"{name} {show(value)} is not one of {allowed}",
            "Map it with ", remedy, *others,
        )  # fmt: skip
    return outcome


def _other_words(
    column: pl.Series, name: str, words: Mapping[str, int], source: str
) -> dict[str, int]:
    """Return words that the readers of files know, too; what is not quite said so is logged."""
    found: dict[str, int] = {}
    notes: list[Note] = []
    for word in column.drop_nulls().unique(maintain_order=True):
        spelled = known_as(word, words)
        outcome = meaning(word) if spelled is None else words[spelled]
        if word in words or outcome is None:
            continue
        found[word] = outcome
        count = int((column == word).sum())
        if folded(word) in map(folded, BOTH_BAD):
            notes.append(CountedAsTies("both-bad vote", count=count))
        elif spelled is not None:
            notes.append(ReadAs(name, word, spelled, count=count))
    log_changes(notes, source)
    return found


# --- text of files ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Wording:
    """How a layout of files says who won."""

    words: Mapping[str, str] = field(default_factory=dict)
    both_bad: tuple[str, ...] = ()  # values that say: neither is good
    numbers: bool = False  # whether 1, 0 and -1 may stand for the words
    expected: str = ""  # what the value must be, where that is no list of words
    takes_labels: bool = True  # whether a value that is not known may be a word for an outcome

    @property
    def outcomes(self) -> dict[str, int]:
        """The outcome of every word."""
        words = {word: OUTCOMES[target] for word, target in self.words.items()}
        return words | dict.fromkeys(self.both_bad, 0)

    def unknown(self, values: pl.Series, known: pl.Series, name: str, source: str) -> InvalidRows:
        """Return the error on values that are not known."""
        found = values.filter(~known).unique(maintain_order=True)
        expected = self.expected or f"one of {', '.join([*self.words, *self.both_bad])}"
        problem = f"{name} {show(found[0])} is not {expected}"
        example = likely_labels(found[0])
        remedy: tuple[str | Setting, ...] = ("Map it with ", example)
        if len(found) > 1:
            others = counted(len(found) - 1, "other value")
            problem += f", nor {'is' if len(found) == 2 else 'are'} {others}"
            remedy = ("Map each with ", Setting("labels"), ", such as ", example)
        if not self.takes_labels:
            remedy = ("Correct it",)
        return InvalidRows.of(source, ~known, problem, *remedy)


def respelled(
    frame: pl.DataFrame,
    wording: Wording,
    declared: Mapping[Any, int],
    name: str,
    notes: list[Note],
) -> pl.DataFrame:
    """Write words for the winner as they are known, where only case or spaces differ; tell it."""
    known = wording.outcomes | {_as_word(word): code for word, code in declared.items()}
    if "winner" not in frame.columns or not known:
        return frame
    said = frame["winner"]
    if "outcome" in frame.columns:
        said = said.filter(frame["outcome"].is_null())
    if sum((said == word).sum() for word in known) == len(said):
        return frame  # as it should be, and faster than to count all words
    found = {}
    for word, count in said.value_counts().drop_nulls().sort("winner").iter_rows():
        spelled = known_as(word, known)
        if spelled is None or spelled == word:
            continue
        if any((frame[side].cast(pl.String) == word).any() for side in ("left", "right")):
            continue  # it is the id of an item
        found[word] = spelled
        notes.append(ReadAs(name, word, spelled, count=count))
    return frame.with_columns(pl.col("winner").replace(found)) if found else frame


def settle_both_bad(
    frame: pl.DataFrame,
    wording: Wording,
    labels: Mapping[str, str],
    both_bad: str,
    notes: list[Note],
) -> pl.DataFrame:
    """Drop votes that neither item is good, or leave them to count as ties; tell how many."""
    words = [word for word in wording.both_bad if word not in labels]
    if not words:
        return frame
    said = frame["winner"].is_in(words).fill_null(False)
    if not said.any():
        return frame
    n_said = votes_in(frame.filter(said))
    if both_bad == "drop":
        notes.append(Dropped("both-bad vote", count=n_said))
        if "row" not in frame.columns:
            frame = frame.with_columns(row=pl.Series(np.arange(1, frame.height + 1)))
        return frame.filter(~said)
    notes.append(CountedAsTies("both-bad vote", count=n_said))
    return frame


def outcomes_of_text(
    frame: pl.DataFrame,
    wording: Wording,
    names: Mapping[str, str],
    labels: Mapping[Any, int],
    source: str,
) -> pl.Series:
    """Return 1, 0 or -1 for every vote; what cannot be understood is an error.

    Where the frame has a column ``outcome``, it goes before the words in ``winner``.
    """
    decided = frame["outcome"] if "outcome" in frame.columns else None
    if decided is not None and not decided.null_count():
        return decided
    values, name = frame["winner"], names["winner"]
    declared = {_as_word(word): outcome for word, outcome in labels.items()}
    words = wording.outcomes | declared
    outcome, known = _translate_rest(values, words, decided)
    if known is None:
        return outcome
    unknown = values.filter(~known & values.is_not_null() & (values != "")).unique(
        maintain_order=True
    )
    numbers = _plain_numbers(unknown)
    spelled = {text: words[plain] for text, plain in numbers.items() if plain in words}
    undeclared = {text: plain for text, plain in numbers.items() if plain not in words}
    if undeclared and wording.numbers and not values.is_in(list(OUTCOMES)).any():
        _refuse_items(frame, known, names, source)
        spelled |= _by_convention(undeclared, name, declared, source)
    if spelled:
        outcome, known = _translate_rest(values, words | spelled, decided)
    if known is None:
        return outcome
    missing = ~known & (values.is_null() | (values == ""))
    if missing.any():
        raise InvalidRows.of(source, missing, f"{name} is missing", "Fill it in or remove the row")
    if wording.numbers:
        _refuse_items(frame, known, names, source)
    raise wording.unknown(values, known, name, source)


def _translate(
    values: pl.Series, words: Mapping[Any, int]
) -> tuple[NDArray[np.int8], pl.Series | None]:
    """Return the outcome that each value stands for, and which are known unless all are."""
    outcome = np.zeros(len(values), dtype=np.int8)
    said = {word: values.eq_missing(word) for word in words}
    for word, code in words.items():
        if code:
            outcome += said[word].to_numpy().view(np.int8) * np.int8(code)
    if sum(rows.sum() for rows in said.values()) == len(values):
        return outcome, None
    return outcome, reduce(or_, said.values(), pl.Series(np.zeros(len(values), dtype=np.bool_)))


def _translate_rest(
    values: pl.Series, words: Mapping[str, int], decided: pl.Series | None
) -> tuple[pl.Series, pl.Series | None]:
    """Do the same, where some outcomes are decided already."""
    codes, known = _translate(values, words)
    outcome = pl.Series(codes)
    if decided is None:
        return outcome, known
    known = decided.is_not_null() if known is None else known | decided.is_not_null()
    return decided.fill_null(outcome), None if known.all() else known


def _as_word(label: Any) -> str:
    """Return a label as the text of a file would have it: 1.0 is 1."""
    return f"{label:.12g}" if isinstance(label, float) else str(label)


def _plain_numbers(texts: pl.Series) -> dict[str, str]:
    """Return those texts that are numbers, each with its plainest spelling: 1.0 is 1."""
    numbers = texts.cast(pl.Float64, strict=False)
    is_number = numbers.is_finite().fill_null(False)
    plain = [f"{number + 0.0:.12g}" for number in numbers.filter(is_number)]
    return dict(zip(texts.filter(is_number), plain, strict=True))


def _by_convention(
    numbers: Mapping[str, str], name: str, declared: Mapping[str, int], source: str
) -> dict[str, int]:
    """Read 1, 0 and -1 as left, tie and right where they can mean nothing else."""
    found = sorted(set(numbers.values()), key=float)
    nothing_declared = not _plain_numbers(pl.Series(list(declared), dtype=pl.String))
    if nothing_declared and "-1" in found:
        meaning = {str(number): outcome for number, outcome in _NUMBERS.items()}
        return {text: meaning[plain] for text, plain in numbers.items() if plain in meaning}
    raise InvalidVotes(
        f"{source}: {name} holds the numbers {_shortened(found)}, which can mean more than one "
        "thing. Declare each of them, for example with ", Setting("labels", {found[0]: "right"}),
        ".",
    )  # fmt: skip


def _refuse_items(
    frame: pl.DataFrame, known: pl.Series, names: Mapping[str, str], source: str
) -> None:
    """Refuse a winner that is an item's id, where left or right was expected, with the remedy."""
    rest = frame.filter(~known & frame["winner"].is_not_null() & (frame["winner"] != ""))
    won = rest["winner"]
    left, right = (rest[side].cast(pl.String) for side in ("left", "right"))
    if len(rest) and ((won == left) | (won == right)).all():
        raise InvalidVotes(
            f"{source}: {names['winner']} holds the ids of items, such as {show(won[0])}; expected "
            "left, right or tie. Read it with ", Setting("preset", "crowd-kit"),
            *(Setting(role, names[role]) for role in ("user", "winner")), ".",
        )  # fmt: skip


def _shortened(words: list[str]) -> str:
    *first, last = words[:3] + ([f"{len(words) - 3:,} more"] if len(words) > 3 else [])
    return f"{', '.join(first)} and {last}" if first else last
