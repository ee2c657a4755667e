"""What deviations are made of: a section of the report."""

import re

import numpy as np
import pytest

from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.output.parts import parts_by_user, parts_in_words
from isplitlbi.output.report import parts as section
from isplitlbi.output.report import render
from isplitlbi.output.report.parts import parts_of


def cells(picture, kinds="more|less"):
    """Return how many cells of some kinds a picture has."""
    column = float(re.search(r'class="whose" x="[^"]*" y="0" width="([^"]*)"', picture)[1])
    paths = re.findall(rf'<path class="(?:{kinds})"[^>]* d="([^"]*)"', picture)
    runs = (run for path in paths for run in re.findall(r"h([\d.]+)v", path))
    return sum(round(float(run) / column) for run in runs)


@pytest.mark.parametrize("name", ["leaving", "papers", "forced", "featured"])
def test_the_pictures_have_a_cell_for_every_number(name, request):
    model = request.getfixturevalue(name)
    told, parts = parts_of(model), model.decompose()
    sizes = [sum(part.nnz for part in parts), *(part.nnz for part in parts)]
    assert [cells(each["picture"]) for each in told["pictures"]] == sizes
    for each, size in zip(told["pictures"], sizes, strict=True):
        assert f"({size:,})" in each["title"]
        assert each["picture"].count("<title>") == len(model.users_)
    assert told["sentence"] == parts_in_words(parts, len(model.users_), model.nouns)
    assert [row["user"] for row in told["rows"]] == [
        row.user for row in parts_by_user(model, parts)
    ]
    assert told["some"] == "" and not told["is_part"]


def test_of_many_users_and_items_some_are_shown_and_the_section_says_so(leaving, monkeypatch):
    whole = sum(len(each["picture"]) for each in parts_of(leaving)["pictures"])
    monkeypatch.setattr(section, "MOST_USERS", 6)
    monkeypatch.setattr(section, "MOST_ITEMS", 4)
    told = parts_of(leaving)
    n_left, n_users = len(leaving.left_consensus_), len(leaving.users_)
    assert told["some"] == (
        f"Shown are 3 of {n_left} users who have left and 3 of {n_users - n_left} who have not. "
        "Shown are the 4 of 6 items with the largest deviations."
    )
    assert len(told["rows"]) == 6 and told["is_part"]
    assert cells(told["pictures"][0]["picture"]) == 6 * (4 + 4)
    assert sum(len(each["picture"]) for each in told["pictures"]) < whole / 2


def test_the_section_is_in_the_page_and_in_the_words_of_the_study(leaving, monkeypatch):
    monkeypatch.setattr(leaving, "call", {"items": "models", "users": "judges"})
    page = render(leaving, "x")
    part = page.partition('<section id="parts"')[2].partition("</section>")[0]
    assert '<a href="#parts">' in page
    text = " ".join(re.sub(r"<[^>]*>", " ", part).split())
    assert f"{len(leaving.left_consensus_)} of 24 judges have left the consensus" in text
    assert "the paper calls this part abnormal" in text
    assert not re.search(r"\b(items?|users?)\b(?!-\d)", text, re.IGNORECASE)


def test_there_is_none_of_a_crowd_nor_of_a_fit_without_a_path(leaving):
    votes = leaving.votes()
    assert parts_of(MarginMLE().fit(votes)) is None
    items = votes.items
    crowd = Comparisons.from_arrays(None, items[votes.left], items[votes.right], votes.outcome)
    assert parts_of(ISplitLBI().fit(crowd)) is None


def test_hostile_ids_stay_text_in_the_pictures():
    rng = np.random.default_rng(0)
    items = np.array(["<script>x</script>", '"><b>', "a\nb", "y" * 500])
    users = np.array(['"/><script>', "</title><i>", "c"])
    left = rng.integers(4, size=90)
    right = (left + rng.integers(1, 4, size=90)) % 4
    votes = Comparisons.from_arrays(
        users[rng.integers(3, size=90)], items[left], items[right], rng.integers(-1, 2, size=90)
    )
    model = ISplitLBI(time=0.3, with_tests=False).fit(votes)
    for each in parts_of(model)["pictures"]:
        tags = set(re.findall(r"<(\w+)", each["picture"]))
        assert tags <= {"svg", "path", "line", "text", "rect", "title"}
        assert "y" * 20 not in each["picture"]
