"""What notebooks show: short, and no id is ever taken for HTML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, MarginMLE
from isplitlbi.markup import as_html, printable, printable_sentence
from studies import small_model

HOSTILE = "<script>alert(1)</script>"
VOTES = Comparisons.from_arrays(
    [HOSTILE, "bob", "x" * 500] * 10, ["a&b", "tea", "rum"] * 10, ["tea", "rum", "a&b"] * 10,
    [1, 0, -1] * 10,
)  # fmt: skip


@given(st.text())
def test_no_text_becomes_markup(text):
    shown = as_html([text], [text], [[text]])
    inner = shown.replace("<div>", "").replace("</div>", "")
    for tag in ("p", "table", "tr", "th", "td"):
        inner = inner.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
    assert "<" not in inner and ">" not in inner


@given(st.text())
def test_no_text_does_anything_to_a_terminal_and_what_can_be_seen_stays(text):
    shown = printable_sentence(text)
    assert all(sign.isprintable() or sign in "\u200c\u200d" for sign in shown)
    if not any(sign in "\u200c\u200d" for sign in text):
        each = [sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text]
        assert shown == "".join(each)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("👩\u200d👧", "👩\u200d👧"), ("می\u200cخواهم", "می\u200cخواهم"),
        ("te\u200da", r"te\u200da"),
        ("é\u200d", r"é\u200d"), ("\u200dé", r"\u200dé"), ("é\u200d\u200dé", r"é\u200d\u200dé"),
        ("a\\b", "a\\b"), ("thé\n", r"thé\n"),
    ],
)  # fmt: skip
def test_what_joins_letters_or_an_emoji_is_no_hidden_character(text, shown):
    assert printable(text) == shown


def test_votes_show_their_figures_and_the_first_of_them():
    shown = VOTES._repr_html_()
    assert "30 votes" in shown and shown.count("<tr>") == 7
    assert "&lt;script&gt;" in shown and "<script>" not in shown and "a&amp;b" in shown
    assert "x" * 100 not in shown and len(shown) < 2000


def test_a_model_shows_its_votes_and_tiers_and_settings_where_it_is_not_fitted():
    model = MarginMLE().fit(VOTES)
    shown = model._repr_html_()
    assert "MarginMLE, fitted on 30 votes" in shown and "a&amp;b" in shown and len(shown) < 2000
    unfitted = MarginMLE(link="probit")._repr_html_()
    assert "not fitted" in unfitted and "<td>link</td><td>probit</td>" in unfitted


def test_a_model_whose_users_were_tested_says_how_many_are_abnormal():
    model = small_model()
    shown = model._repr_html_()
    assert f"Unreliable users: {len(model.unreliable_users_)}." in shown
    for thing in (model.path_, model.selection_, model.selection_.chosen):
        assert "\n" not in repr(thing) and len(repr(thing)) < 120
    assert repr(model.path_).startswith(f"RegularizationPath: {len(model.path_.times)} times from")
    assert f"time {model.time_:.3g}" in repr(model.selection_)
    assert f"kappa {model.kappa_:.3g}" in repr(model.selection_)


@given(st.text(min_size=201))
def test_an_id_that_would_fill_a_screen_is_shown_by_its_beginning_and_its_end(text):
    shown, whole = printable(text), printable_sentence(text)
    assert len(shown) < 200
    assert shown.startswith(whole[:100]) and f"{whole[-60:]} ({len(text):,} characters)" in shown


@given(st.text(max_size=20))
def test_an_id_of_usual_length_is_shown_whole(text):
    assert printable(text) == printable_sentence(text)
