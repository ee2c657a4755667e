"""What items and users are called."""

import pytest

from isplitlbi.errors import InvalidSetting
from isplitlbi.nouns import NOUNS, Nouns


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("models", "model"),
        ("LLMs", "LLM"),
        ("entries", "entry"),
        ("Movies", "Movie"),
        ("boxes", "box"),
        ("classes", "class"),
        ("search engines", "search engine"),
        ("Modèles", "Modèle"),
    ],
)
def test_the_singular_follows_from_the_plural(plural, singular):
    assert Nouns.of({"items": plural}) == Nouns(item=singular, items=plural)


def test_both_can_be_given_and_the_rest_keeps_its_words():
    nouns = Nouns.of({"users": "person/people"})
    assert nouns == Nouns(user="person", users="people")
    assert (nouns.n_users(1), nouns.n_users(1200), nouns.n_items(2)) == (
        "1 person", "1,200 people", "2 items",
    )  # fmt: skip
    assert Nouns.of(None) == Nouns.of({}) == NOUNS


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ({"votes": "answers"}, "only items and users can"),
        ({"item": "model"}, "only items and users can"),
        ({"items": ""}, "begins with a letter"),
        ({"items": "<b>models</b>"}, "begins with a letter"),
        ({"items": "mod[red]els"}, "a word has letters"),
        ({"items": "mod\nels"}, "a word has letters"),
        ({"items": "m" * 30 + "s"}, "at most 30"),
        ({"users": "people"}, "such as call={'users': 'person/people'}"),
        ({"users": "a/b/c"}, "Give one and several"),
        ({"items": "users"}, "cannot both be called"),
        ("models", "must be a mapping"),
    ],
)
def test_other_words_are_refused_in_a_sentence(call, told):
    with pytest.raises(InvalidSetting, match=r"\.$") as error:
        Nouns.of(call)
    assert told in str(error.value)
