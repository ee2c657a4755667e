"""The section of the report on groups of people: with several, with one, and without any."""

import re
from dataclasses import replace

import pytest

from in_camps import model_of, people
from isplitlbi.output.report import groups as section
from isplitlbi.output.report.groups import groups_of


@pytest.fixture(scope="module")
def model():
    return model_of(people(2, seed=4, n_users=30)[0])


@pytest.fixture(scope="module")
def told(model):
    return groups_of(model)


def test_the_section_has_the_sentences_a_table_and_a_dot_per_item_and_group(told):
    assert told["sentences"][0].startswith("Two groups, of ")
    assert len(told["members"]) == 2
    assert told["picture"].count("<circle") == 2 * 8
    assert [row[5] for row in told["tried"]].count("yes") == 1


def test_a_hostile_id_stays_text_in_the_picture(model, monkeypatch):
    found = model.groups(2)
    nasty = [replace(each.ranking, items=each.ranking.items.astype(object))
             for each in found.groups]  # fmt: skip
    for ranking in nasty:
        ranking.items[ranking.items == "item-0"] = "</svg><script>"
    changed = [replace(each, ranking=own) for each, own in zip(found.groups, nasty, strict=True)]
    picture = section._dots(replace(found, groups=tuple(changed)))
    assert "<script>" not in picture
    assert "&lt;script&gt;" in re.sub(r"\s", "", picture)


def test_a_study_that_would_take_long_is_told_the_command_instead(model, monkeypatch):
    monkeypatch.setattr(section, "MOST_WORK", 10)
    assert not groups_of(model)["sentences"]


def test_too_few_votes_have_no_section():
    assert groups_of(model_of(people(n_users=9)[0])) is None
