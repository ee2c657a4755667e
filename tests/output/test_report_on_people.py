"""The report of people who differ in more than taste: sections, pictures, and forced choice."""

import json
import re
import zlib
from base64 import b64decode

import numpy as np
import pytest

from isplitlbi.output.report import people, study, write_report
from isplitlbi.output.report.people import cards_of, features_of, joined, people_of
from isplitlbi.output.report.strips import MOST_DOTS, WIDTH, Strip, strip_of
from isplitlbi.output.tables import users_table
from isplitlbi.output.words import factor, name_of_term, spread_in_words

pytest.importorskip("plotly", reason="the report needs plotly (pip install .[report])")
pytest.importorskip("jinja2", reason="the report needs jinja2 (pip install .[report])")


def text_of(source):
    """Return what a page says, without its scripts."""
    body = re.sub(r"(?s)<(script|style).*?</\1>", " ", source)
    return " ".join(re.sub("<[^>]*>", " ", body).split())


@pytest.fixture(scope="module")
def sources(featured, forced, papers, tmp_path_factory):
    folder, written = tmp_path_factory.mktemp("reports"), {}
    for name, model in {"featured": featured, "forced": forced, "papers": papers}.items():
        write_report(model, folder / f"{name}.html")
        written[name] = (folder / f"{name}.html").read_text(encoding="utf-8")
    return written


def test_what_people_differ_in_is_said_and_tabulated(featured, sources):
    text = text_of(sources["featured"])
    sentence = spread_in_words(featured.spreads_)
    assert f"{sentence[0].upper()}{sentence[1:]}." in text
    for name, spread in featured.spreads_.items():
        assert f"{name_of_term(name)} {spread:.2f} " in text
    assert f"side is favoured by {abs(featured.side_):.2f} logits" in text


def test_every_user_is_a_dot_of_every_picture(featured, sources):
    people = sources["featured"].partition('<section id="people"')[2].partition("</section>")[0]
    pictures = re.findall(r"(?s)<svg.*?</svg>", people)
    assert len(pictures) == 4  # sharpness, side, ties, length
    for picture in pictures:
        assert picture.count("<circle") == len(featured.users_)
        assert 'role="img" aria-label="24 users, from ' in picture
    cards = featured.user_cards()
    for card in cards[:3]:
        assert f"<title>{card.user}: {card.slope.value:.2f}</title>" in pictures[0]
        assert f"<title>{card.user}: x{card.tie_factor.value:.2f}</title>" in pictures[2]


def test_with_very_many_users_pictures_come_without_cards(featured, monkeypatch):
    monkeypatch.setattr(people, "MOST_CARDS", 20)
    assert cards_of(featured) == ()
    strips = people_of(featured, ())["strips"]
    assert [strip["picture"].count("<circle") for strip in strips] == [24] * 4
    slope = 1.0 + featured.parameters_.all_of("sharpness")[0]
    assert f"<title>{featured.users_[0]}: {slope:.2f}</title>" in strips[0]["picture"]
    packed_words = study.study_of(featured)["words"]
    assert json.loads(zlib.decompress(b64decode(packed_words))) == []


def test_the_script_gets_the_words_of_every_card(featured):
    told = study.study_of(featured, featured.user_cards())
    words = json.loads(zlib.decompress(b64decode(told["words"])))
    cards = {card.user: card for card in featured.user_cards()}
    assert words == [cards[user].words for user in users_table(featured)["user"]]


def test_items_show_their_tie_habits(featured, sources):
    (body,) = re.findall(r'(?s)<tbody data-board="everybody".*?</tbody>', sources["featured"])
    rows = re.findall(
        r'(?s)<th scope="row" class="name"><bdi>([^<]*)</bdi></th>\n<td class="track".*?'
        r'<td class="number" data-label="ties">(x[^<]*)</td></tr>', body,
    )  # fmt: skip
    board = featured.leaderboard()
    assert rows == [
        (item, factor(habit)) for item, habit in zip(board.items, board.tie_factor, strict=True)
    ]


def test_features_come_with_intervals_and_both_rankings(featured, sources):
    text = text_of(sources["featured"])
    (effect,) = featured.features()
    first = featured.ranking().items[0]
    assert f"With equal length, {first} is first" in text
    assert f"length {effect.effect:+.2f} {effect.low:.2f} to {effect.high:.2f}" in text
    rows = features_of(featured)["rows"]
    assert [row["item"] for row in rows] == featured.ranking().items.tolist()
    by_rank = sorted(rows, key=lambda row: row["rank_as_shown"])
    assert [row["item"] for row in by_rank] == featured.ranking_as_shown().items.tolist()


@pytest.mark.parametrize(
    ("names", "text"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_names_are_joined_as_one_says_them(names, text):
    assert joined(names) == text


def test_without_ties_no_section_speaks_of_them(forced, sources):
    text = text_of(sources["forced"])
    first, *_, last = forced.ranking().items
    assert "every vote names a winner" in text
    assert f"{first} is first;" in text and f"{last} is last." in text
    assert "Nobody ever declared a tie: there is no tie threshold, and there are no tiers." in text
    assert "people call" not in text and "in tiers" not in text and "Tier" not in text
    told = study.study_of(forced)
    assert told["path"]["ties"] == "none" and told["path"]["habits"] is None
    assert told["consensus_tie_share"] is None and "tie_share" not in told["users"]
    # Sharpness and side; the parts of deviations; what more votes would give.
    assert sources["forced"].count("<svg") == 2 + 4 + 1


def test_the_papers_model_has_none_of_it(papers, sources):
    ids = set(re.findall(r'<section id="([\w-]+)"', sources["papers"]))
    assert {"ranking", "path"} <= ids and not {"people", "features"} & ids
    assert cards_of(papers) == ()
    assert people_of(papers, ()) is None and features_of(papers) is None
    assert "how readily an item ties" not in text_of(sources["papers"])


def test_settings_say_how_large_terms_are(featured, sources):
    text = text_of(sources["featured"])
    assert f"sharpness {featured.terms_.scale('sharpness'):.3g}" in text
    assert "tie habits of items" in text
    assert "terms paper" in text_of(sources["papers"])


# --- pictures --------------------------------------------------------------------------------


def places(picture):
    return np.array(re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture), dtype=float)


def test_dots_stand_where_their_values_are_and_never_on_each_other():
    values = np.random.default_rng(0).normal(1.0, 0.5, 200)
    picture = str(strip_of(Strip(list(range(200)), values, marks=(0.0, 1.0)), "seen"))
    drawn = places(picture)
    assert len({tuple(each) for each in drawn.tolist()}) == 200
    assert drawn.min() > 0 and drawn[:, 0].max() < WIDTH
    order = [int(text) for text in re.findall(r"<title>(\d+):", picture)]
    assert np.all(np.diff(values[order]) >= 0)
    assert np.all(np.diff(drawn[:, 0]) >= 0)


def test_many_users_are_bars():
    values = np.random.default_rng(0).normal(size=MOST_DOTS + 1)
    picture = str(strip_of(Strip(list(range(len(values))), values, marks=(0.0,)), "seen"))
    assert "<circle" not in picture and picture.count("<rect") > 20


@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0, 1.0], [1e-9, 1e9]])
def test_users_who_are_all_alike_and_far_ones_can_be_drawn(values):
    for is_factor in (False, True):
        strip = Strip(["a"] * len(values), np.array(values), (1.0,), is_factor)
        picture = str(strip_of(strip, "seen"))
        assert "nan" not in picture and picture.count("<circle") == len(values)
        assert "<text" in picture


def test_ids_in_pictures_stay_text():
    strip = Strip(["</title><script>1</script>"], np.array([1.0]), marks=(1.0,))
    picture = str(strip_of(strip, '"><b>'))
    assert "<script" not in picture and "<b>" not in picture
