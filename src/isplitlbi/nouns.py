"""What items and users are called in a study: in tables, sentences and figures for people.

Columns of files and of JSON keep their names, whatever things are called: programs read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from isplitlbi.errors import InvalidSetting, Setting

__all__ = ["NOUNS", "Nouns", "capitalized"]

THINGS = ("items", "users")
LONGEST = 30  # characters of a word

# Words such as "models", "GPT-4 variants" and "juges d'essai": nothing that could be markup.
_WORD = re.compile(r"[^\W\d_][\w '’-]*")

_USUAL = re.compile(r"\b(?:(an?) )?(items?|users?)\b", re.IGNORECASE)
# Words that begin with the sound of a vowel: "annotator", "LLM", but not "user".
_VOWEL = re.compile(r"[AEFHILMNORSX](?=[A-Z])|(?i:[aeio]|u(?!s|ni))")

# Endings of plurals, and those of their singulars; the first that fits.
_ENDINGS = (
    ("ovies", "ovie"),
    ("ies", "y"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("ches", "ch"),
    ("xes", "x"),
    ("s", ""),
)


@dataclass(frozen=True)
class Nouns:
    """The words for one item, several items, one user and several users."""

    item: str = "item"
    items: str = "items"
    user: str = "user"
    users: str = "users"

    @classmethod
    def of(cls, call: Mapping[str, str] | None) -> Nouns:
        """Read what items and users are to be called; what is not named keeps its usual word.

        The singular follows from the plural, or stands before it: ``person/people``.

        >>> Nouns.of({"items": "entries", "users": "person/people"})
        Nouns(item='entry', items='entries', user='person', users='people')
        """
        if call is not None and not isinstance(call, Mapping):
            raise InvalidSetting("call must be a mapping, such as ", _EXAMPLE, ".")
        nouns = cls()
        for thing, said in (call or {}).items():
            if thing not in THINGS:
                raise InvalidSetting(
                    f"{thing!r} cannot be called something else, only items and users can, such as "
                    "by ", _EXAMPLE, ".",
                )  # fmt: skip
            singular, plural = _singular_and_plural(thing, said)
            nouns = replace(nouns, **{thing[:-1]: singular, thing: plural})
        if nouns.items == nouns.users or nouns.item == nouns.user:
            raise InvalidSetting(f"items and users cannot both be called {nouns.items!r}.")
        return nouns

    def n_items(self, n: int) -> str:
        """Count items: 1 item, 1,200 items."""
        return f"{n:,} {self.item if n == 1 else self.items}"

    def n_users(self, n: int) -> str:
        """Count users: 1 user, 1,200 users."""
        return f"{n:,} {self.user if n == 1 else self.users}"

    def in_text(self, text: str) -> str:
        """Return a text of ours with these nouns; there must be no ids in it.

        >>> Nouns.of({"items": "models", "users": "annotators"}).in_text("Items of an item's user")
        "Models of a model's annotator"
        """
        return _USUAL.sub(self._in_place_of, text)

    def _in_place_of(self, found: re.Match[str]) -> str:
        article, usual = found.groups()
        word: str = getattr(self, usual.lower())
        if article:
            word = f"{_article(word)} {word}"
        return capitalized(word) if found[0][0].isupper() else word

    def heading(self, column: str) -> str:
        """Return what a column is headed by."""
        return {"item": self.item, "user": self.user}.get(column, column)


_EXAMPLE = Setting("call", {"items": "models"})

NOUNS = Nouns()


def capitalized(text: str) -> str:
    """Return a text with a capital at its beginning; the rest stays as it is.

    >>> capitalized("items of LLMs")
    'Items of LLMs'
    """
    return f"{text[:1].upper()}{text[1:]}"


def _article(word: str) -> str:
    """Return the article of a noun.

    >>> [_article(word) for word in ("model", "annotator", "LLM", "user", "umbrella")]
    ['a', 'an', 'an', 'a', 'an']
    """
    return "an" if _VOWEL.match(word) else "a"


def _singular_and_plural(thing: str, said: str) -> tuple[str, str]:
    words = [word.strip() for word in str(said).split("/")]
    for word in words:
        if not _WORD.fullmatch(word) or len(word) > LONGEST:
            raise InvalidSetting(
                f"{thing} cannot be called {said!r}: a word has letters, digits, spaces and "
                f"hyphens, at most {LONGEST} of them, and begins with a letter."
            )
    if len(words) == 1:
        words.insert(0, _singular(words[0]))
    if len(words) > 2 or not words[0]:
        raise InvalidSetting(
            f"{thing} cannot be called {said!r}: what is one of them called? Give one and several, "
            "such as ", Setting("call", {"users": "person/people"}), ".",
        )  # fmt: skip
    return words[0], words[1]


def _singular(plural: str) -> str:
    """Return the singular of a regular plural; nothing where that cannot be told.

    >>> [_singular(word) for word in ("models", "LLMs", "stories", "boxes", "class", "people")]
    ['model', 'LLM', 'story', 'box', '', '']
    """
    if plural.endswith(("ss", "us", "is")):
        return ""
    for ending, instead in _ENDINGS:
        if plural.lower().endswith(ending) and len(plural) > len(ending) - len(instead):
            return plural[: len(plural) - len(ending)] + instead
    return ""
