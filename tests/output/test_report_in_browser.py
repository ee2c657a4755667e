"""The report in a real browser: Debian's Chromium, without a head, from file://."""

import csv
import os
import re
import shutil
from contextlib import contextmanager
from copy import copy
from time import monotonic

import numpy as np
import pytest

from isplitlbi import Comparisons, ISplitLBI, MarginMLE, PerUser
from isplitlbi.output.report import TITLE, study, write_report
from isplitlbi.output.tables import users_table
from studies import HOSTILE, crowd_model, hostile_model, small_model

sync_api = pytest.importorskip("playwright.sync_api", reason="tests in a browser need playwright")
pytest.importorskip("plotly", reason="the report needs plotly (pip install .[report])")
from axe_playwright_python.sync_playwright import Axe  # noqa: E402

CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium here (Debian: apt-get install chromium)"
)

DESKTOP, PHONE = (1200, 900), (390, 844)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        # A container has no user namespaces to make a sandbox of, and root may not use one.
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.getuid() == 0 else []
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def report(model, folder):
    write_report(model, folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def hostile_report(folder):
    write_report(hostile_model(), folder / "hostile.html")
    return folder / "hostile.html"


@pytest.fixture(scope="module")
def later_report(folder):
    """What changed, with ids of strangers, items that are new, and users who became abnormal."""
    later = hostile_model()
    votes = later.votes()
    earlier = ISplitLBI(n_folds=2, kappa=10).fit(votes.without(users=HOSTILE[0], items=HOSTILE[4]))
    write_report(later, folder / "later.html", since=earlier)
    return folder / "later.html"


@contextmanager
def opened(browser, file, size=DESKTOP, scheme="light", **options):
    """Open a report; whatever it says on the console or asks of a network is an error."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, **options
    )
    page = context.new_page()
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda request: requests.append(request.url))
    try:
        page.goto(file.as_uri())
        page.locator("html[data-ready=yes]").wait_for(timeout=60_000)
        yield page
        assert complaints == []
        asked = {url for url in requests if not url.startswith(("blob:", "data:"))}
        assert asked == {file.as_uri()}
    finally:
        context.close()


@pytest.fixture(scope="module")
def used(browser, report):
    with opened(browser, report) as page:
        yield page


@pytest.fixture
def page(used):
    """One page for many tests, because loading takes seconds; each finds it as it opened."""
    yield used
    used.emulate_media(media="screen", color_scheme="light")
    if used.locator("#time-chosen").is_enabled():
        used.locator("#time-chosen").click()
    for field in ("#search", "#filter"):
        used.locator(field).fill("")
    used.locator("#show-kind").select_option("everybody")
    used.locator("#everybody").check()
    used.locator("#scoring").select_option("log_loss")
    used.locator("#pick").select_option(index=0)
    # No heading sorts list by list: the page begins so, and is loaded again where one was used.
    if used.locator("#users thead th:not([aria-sort=none])").count():
        used.reload()
        used.locator("html[data-ready=yes]").wait_for(timeout=60_000)
    used.evaluate("scrollTo(0, 0)")


# axe brings a script of its own, which the page's policy would not run.
FOR_AXE = {"bypass_csp": True}
ON_PHONE = {"size": PHONE, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def opened_dark(browser, report):
    with opened(browser, report, scheme="dark", **FOR_AXE) as page:
        yield page


@pytest.fixture(scope="module")
def on_phone(browser, report):
    with opened(browser, report, **ON_PHONE, **FOR_AXE) as page:
        yield page


@pytest.fixture(scope="module")
def later_on_phone(browser, later_report):
    with opened(browser, later_report, **ON_PHONE, **FOR_AXE) as page:
        yield page


@pytest.fixture(scope="module")
def hostile_on_phone(browser, hostile_report):
    with opened(browser, hostile_report, **ON_PHONE) as page:
        yield page


@pytest.fixture(scope="module")
def hostile(browser, hostile_report):
    with opened(browser, hostile_report) as page:
        yield page


def until(page, expression, argument=None):
    """Wait until something holds, asked from outside: a page's policy forbids it to ask itself."""
    deadline = monotonic() + 30.0
    while not page.evaluate(expression, argument):
        assert monotonic() < deadline, f"in vain waited for: {expression}"
        page.wait_for_timeout(20)


def coloured(page, scheme):
    """Ask a page for its light or its dark colours, and wait until its charts have them."""
    page.emulate_media(color_scheme=scheme)
    until(
        page,
        """() => {
            const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
            const charts = [...document.querySelectorAll(".js-plotly-plot")];
            return charts.length > 0 && charts.every((chart) => chart.layout.font.color === ink);
        }""",
    )
    return page


def slide(page, position):
    page.locator("#time").evaluate(
        "(slider, at) => { slider.value = at; slider.dispatchEvent(new Event('input')); }", position
    )


def own_ranking(page):
    """Return (tier, item, score, compared) of every row of the user's ladder."""
    rows = page.locator("#own tbody tr").evaluate_all(
        """rows => rows.map(row => [row.cells[0].textContent, row.querySelector('bdi').textContent,
        row.cells[3].textContent, !row.classList.contains('absent')])"""
    )
    return [(int(tier), item, float(score), seen) for tier, item, score, seen in rows]


def users_shown(page):
    return page.locator("#users tbody tr th").all_inner_texts()


def column(page, title):
    titles = [text.strip() for text in page.locator("#users thead th").all_inner_texts()]
    place = [text.split()[0] for text in titles].index(title.split()[0])
    return page.locator(f"#users tbody tr :nth-child({place + 1}):is(th, td)").all_inner_texts()


def serious_violations(page):
    """Return what axe finds that keeps people from using the page."""
    return [
        (each["id"], node["html"][:200])
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def focused(page):
    return page.evaluate("document.activeElement.id")


def items_shown(page):
    """Return the items of the ranking that is shown."""
    return page.locator("#board tbody:visible th").all_inner_texts()


def shown_in_board(page, name):
    return page.locator(f"#board tbody:visible td.{name}").all_inner_texts()


# --- the ranking ----------------------------------------------------------------------------

SWITCH = {"without-unreliable": ["unreliable"], "without-abnormal": ["unreliable", "different"]}


@pytest.mark.parametrize("name", SWITCH)
def test_the_switch_changes_ranks_scores_and_intervals_in_place(page, model, name):
    everybody = model.leaderboard()
    assert items_shown(page) == everybody.items.tolist()
    before = shown_in_board(page, "interval")
    page.locator(f"#{name}").check()
    board = model.effect_of_leaving_out(lists=SWITCH[name]).others
    assert items_shown(page) == board.items.tolist()
    ranks, groups = zip(*board.by_item().values(), strict=True)
    assert shown_in_board(page, "ranks") == list(ranks)
    assert shown_in_board(page, "group") == list(groups)
    shift = np.mean(everybody.score) - np.mean(board.score)
    intervals = [f"{low + shift:.2f} to {high + shift:.2f}"
                 for low, high in zip(board.low, board.high, strict=True)]  # fmt: skip
    assert shown_in_board(page, "interval") == intervals != before
    assert page.locator(".change:visible").count() == 1
    assert page.evaluate("location.hash") == f"#{name}"
    page.locator("#everybody").check()
    assert shown_in_board(page, "interval") == before
    assert page.locator(".change:visible").count() == 0


def test_the_keyboard_and_the_address_move_the_switch(page, browser, report):
    first = shown_in_board(page, "interval")
    page.locator("#everybody").focus()
    page.keyboard.press("ArrowDown")
    assert focused(page) == "without-unreliable"
    second = shown_in_board(page, "interval")
    assert second != first
    page.locator("#everybody").check()
    page.locator(".answer a", has_text="read the ranking without them").click()
    until(page, "document.getElementById('without-unreliable').checked")
    assert shown_in_board(page, "interval") == second
    context = browser.new_context()
    opened_there = context.new_page()
    opened_there.goto(report.as_uri() + "#without-abnormal")
    opened_there.locator("html[data-ready=yes]").wait_for()
    assert opened_there.locator("#without-abnormal").is_checked()
    assert shown_in_board(opened_there, "interval") not in (first, second)
    context.close()


def test_a_user_of_a_list_can_be_picked(page, model):
    user = model.different_users_[0]
    page.locator("#different button", has_text=user).click()
    assert page.locator("#who-name").inner_text() == user


# --- tables that do not fit ------------------------------------------------------------------


def test_a_table_that_does_not_fit_says_how_many_rows_are_in_view(browser, crowded_board):
    with opened(browser, crowded_board) as page:
        region = page.locator("#ranking .scroll")
        note = page.locator("#ranking .in-view")
        heights = region.locator("tbody:visible tr").evaluate_all(
            "rows => rows.map(row => row.getBoundingClientRect().height)"
        )
        room = region.evaluate("e => e.clientHeight - e.querySelector('thead').offsetHeight")
        n_whole = int(np.searchsorted(np.cumsum(heights), room, side="right"))
        shown = int(note.inner_text().split()[1 if "↕" in note.inner_text() else 0])
        assert 0 < n_whole <= shown <= n_whole + 1 < 60
        assert note.inner_text().endswith(f"{shown} of 60 items, scroll")
        region.evaluate("e => { e.style.maxHeight = '20rem'; }")
        until(
            page,
            f"!document.querySelector('#ranking .in-view').textContent.startsWith('{shown} ')",
        )
        fewer = int(note.inner_text().split(" of ")[0])
        assert 0 < fewer < shown
        region.evaluate("e => { e.style.maxHeight = 'none'; }")
        note.wait_for(state="hidden")
        region.evaluate("e => { e.style.width = '12rem'; }")
        note.wait_for()
        assert note.inner_text() == "more columns, scroll"
        # A matrix of sixty fits with its headings in sight.
        matrix = page.locator("#pairs .scroll")
        matrix.evaluate("e => e.scrollTo(10000, 10000)")
        box, head, side = (
            each.bounding_box()
            for each in (
                matrix, page.locator("#matrix thead th").last,
                page.locator("#matrix tbody th").last,
            )
        )  # fmt: skip
        assert head["y"] == pytest.approx(box["y"], abs=2)
        assert side["x"] == pytest.approx(box["x"], abs=2)


@pytest.fixture(scope="module")
def crowded_board(folder):
    rng = np.random.default_rng(0)
    left = rng.integers(60, size=3000)
    right = (left + rng.integers(1, 60, size=3000)) % 60
    outcome = np.where(rng.random(3000) < 0.2, 0, np.sign(right - left))
    votes = Comparisons.from_arrays(rng.integers(6, size=3000), left, right, outcome)
    write_report(MarginMLE().fit(votes), folder / "sixty.html")
    return folder / "sixty.html"


# --- head to head ----------------------------------------------------------------------------


def test_the_matrix_has_every_pair_in_the_order_of_the_ranking(page, model):
    items = model.leaderboard().items.tolist()
    assert page.locator("#matrix thead th").all_inner_texts() == items
    assert page.locator("#matrix tbody th bdi").all_inner_texts() == items
    found = model.head_to_head()
    for k in range(len(found)):
        row, column = items.index(found.item[k]), items.index(found.other[k])
        cell = page.locator("#matrix tbody tr").nth(row).locator("td").nth(column)
        told = cell.get_attribute("title").replace("\u2068", "").replace("\u2069", "")
        votes = "1 vote" if found.votes[k] == 1 else f"{found.votes[k]} votes"
        assert told.startswith(f"{found.item[k]} against {found.other[k]}: {votes}; ")
        shares = np.array([int(each) for each in re.findall(r"\d+(?= %)", told)])
        expected = 100 * np.append(found.observed[k], found.predicted[k])
        np.testing.assert_allclose(shares, expected, atol=0.51)
        wins, ties, _ = expected[:3]
        assert int(cell.inner_text()) == pytest.approx(wins + ties / 2, abs=0.51)
    cell.click()
    shown = page.locator("#pairs-told").inner_text()
    assert shown.replace("\u2068", "").replace("\u2069", "") == told
    page.locator("#pairs-show").select_option("votes")
    assert cell.inner_text() == str(found.votes[-1])
    page.locator("#pairs-show").select_option("observed")
    page.locator("#pairs-row").select_option(str(column))
    assert page.locator("#pairs-told").inner_text() == "Choose two items."


# --- the slider -----------------------------------------------------------------------------


def test_the_page_opens_at_the_chosen_time_with_whoever_has_left_by_then(page, model):
    told = page.locator("#time-told").inner_text()
    assert "the chosen time" in told
    assert f"{len(model.left_consensus_)} of 16 users" in told
    assert page.locator("#time-chosen").is_disabled()


def positions(model):
    return np.linspace(0, len(model.path_.times) - 1, 6).round().astype(int).tolist()


def test_the_slider_moves_who_has_left(page, model):
    for position in positions(model):
        slide(page, position)
        out = model.entry_times_ <= model.path_.times[position]
        verb = "has" if out.sum() == 1 else "have"
        told = page.locator("#time-told").inner_text()
        assert told.endswith(f"{out.sum()} of 16 users {verb} left the consensus.")
        order = np.argsort(model.entry_times_, kind="stable")[: out.sum()]
        latest = [str(model.users_[user]) for user in order[::-1][:12]]
        assert page.locator("#leavers button").all_inner_texts() == latest
        assert page.locator("#time").get_attribute("aria-valuetext") == told


def test_the_slider_moves_the_line_in_the_chart(page, model):
    slide(page, 3)
    lines = page.locator("#path-chart").evaluate("chart => chart.layout.shapes.map(s => s.x0)")
    assert lines == pytest.approx([model.time_, model.path_.times[3]])


def test_the_slider_moves_the_users_own_ranking(page, model):
    user = page.locator("#who-name").inner_text()
    index = model.users_.tolist().index(user)
    for position in positions(model):
        slide(page, position)
        shown = {item: score for _, item, score, _ in own_ranking(page)}
        expected = model.path_.at(model.path_.times[position]).scores_of(index)
        for item, score in zip(model.items_, expected, strict=True):
            assert shown[item] == pytest.approx(score, abs=0.01)
        scores = [score for _, _, score, _ in own_ranking(page)]
        assert scores == sorted(scores, reverse=True)


def test_the_keyboard_moves_the_slider_and_a_button_brings_it_back(page):
    before = page.locator("#time-told").inner_text()
    page.locator("#time").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#time-told").inner_text() != before
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#time-told").inner_text() == before
    # The button is off now: the keyboard is back on the slider, not nowhere.
    assert focused(page) == "time"
    page.keyboard.press("ArrowLeft")
    assert page.locator("#time-told").inner_text() != before


# --- the picker -----------------------------------------------------------------------------


def test_every_user_can_be_picked_and_shows_the_models_own_ranking(page, model):
    assert page.locator("#pick option").count() == len(model.users_)
    for user in [*model.abnormal_users_[:2], model.users_[-1]]:
        page.locator("#search").fill(str(user))
        page.locator("#pick").select_option(index=0)
        assert page.locator("#who-name").inner_text() == user
        ranking = model.ranking(user)
        expected = zip(ranking.tier, ranking.items, ranking.scores, ranking.compared, strict=True)
        for (tier, item, score, seen), row in zip(own_ranking(page), expected, strict=True):
            assert (tier, item, seen) == (row[0], row[1], row[3])
            assert score == pytest.approx(row[2], abs=0.0051)
        unexpected = [vote for vote in model.telling_votes(user) if vote.probability < 0.5]
        assert page.locator("#telling li").count() <= len(unexpected)
        assert page.locator("#telling-none").is_visible() == (not unexpected)
        common = model.ranking().items.tolist()
        up = [common.index(item) - place for place, item in enumerate(ranking.items)]
        assert page.locator("#own tbody td:last-child").all_inner_texts() == [
            f"{'▲' if by > 0 else '▼'} {abs(by)}" if by else "–" for by in up
        ]


def test_the_ladder_puts_the_user_and_the_consensus_where_their_scores_are(page, model):
    user = page.locator("#who-name").inner_text()
    ranking = model.ranking(user)
    drawn = page.locator("#own tbody tr").evaluate_all(
        "rows => rows.map(row => ['b', 's'].map(tag => row.querySelector(tag).style.left))"
    )
    own = ranking.scores
    common = model.consensus_[[model.items_.tolist().index(item) for item in ranking.items]]
    least, most = min(own.min(), common.min()), max(own.max(), common.max())
    shown = np.array([[float(left.rstrip("%")) for left in row] for row in drawn])
    expected = 100 * (np.stack([own, common], 1) - least) / (most - least)
    np.testing.assert_allclose(shown, expected, atol=0.01)


def test_a_picked_user_comes_with_kind_reason_quality_and_ties(page, model):
    found = model.abnormality_
    user = model.abnormal_users_[0]
    index = model.users_.tolist().index(user)
    page.locator("#search").fill(user)
    page.keyboard.press("Enter")
    assert page.locator("#who-kind").inner_text() == found.kind[index]
    why = page.locator("#who-explanation").inner_text()
    assert why[1:-1] == found.explanation[index][1:]
    facts = page.locator("#who-facts").inner_text()
    assert (found.kind[index], found.list[index]) == ("reversed", "unreliable")
    assert f"{found.quality[index]:.2f} of 1, votes tell little about the items" in facts
    rank = 1 + int(np.sum(model.entry_times_ < model.entry_times_[index]))
    assert f"as number {rank}, " in facts
    assert "unreliable: votes tell little about the items" in facts
    low, high = found.effect_low[index], found.effect_high[index]
    assert f"{found.effect[index]:.2f} ({low:.2f} to {high:.2f})" in facts
    words = model.user_card(user).words
    assert page.locator("#who-words li").all_inner_texts() == words
    assert any("Declares ties" in sentence for sentence in words)
    assert found.p_value[index] == 1 / 1001  # as small as 1,000 draws let it be
    assert f"q = {found.q_value[index]:.3f} (p < 1e-3)" in facts
    assert found.q_value[index] != found.p_value[index]


def test_the_votes_that_speak_most_against_the_consensus_are_listed(page, model):
    user = page.locator("#who-name").inner_text()
    expected = {}
    for vote in model.telling_votes(user, 10):
        winner, loser = (vote.left, vote.right) if vote.outcome > 0 else (vote.right, vote.left)
        says = "ties with" if vote.outcome == 0 else "beats"
        if vote.outcome == 0:
            winner, loser = sorted((winner, loser))
        sentence = f"{winner} {says} {loser}"
        times, _ = expected.get(sentence, (0, None))
        expected[sentence] = times + vote.times, vote.probability
    shown = page.locator("#telling li").all_inner_texts()
    assert len(shown) == 5
    for text, (sentence, (times, share)) in zip(shown, expected.items(), strict=False):
        again = f", said {times} times" if times > 1 else ""
        chance = "less than 1" if share < 0.01 else round(100 * share)
        assert text == f"{sentence}{again}; the consensus gave this a chance of {chance} %."


def test_search_finds_by_name_and_by_kind_and_says_how_many(page, model):
    page.locator("#search").fill("REVERSED")
    assert page.locator("#pick option").count() == model.abnormality_.kind.count("reversed") > 0
    assert page.locator("#pick-told").inner_text() == "2 users found."
    page.locator("#search").fill("unreliable")
    assert page.locator("#pick option").count() == len(model.unreliable_users_)
    page.locator("#search").fill("no such user")
    assert page.locator("#pick option").count() == 0
    assert page.locator("#pick-told").inner_text() == "0 users found."


def test_a_click_in_the_table_picks_the_user_even_when_the_search_hides_them(page):
    page.locator("#search").fill("no such user")
    row = page.locator("#users tbody tr").nth(2)
    user = row.locator("bdi").inner_text()
    row.locator("button").press("Enter")
    assert page.locator("#who-name").inner_text() == user
    assert focused(page) == "user-title"
    assert page.locator("#pick option:checked").inner_text().strip("\u2068").startswith(user)


def test_the_picked_user_stands_out_in_the_chart(page, model):
    user = model.abnormal_users_[1]
    page.locator("#leavers button", has_text=user).first.click()
    height = page.locator("#path-chart").evaluate("chart => chart.data.at(-1).y.at(-1)")
    index = model.users_.tolist().index(user)
    last = model.path_.at(model.path_.times[-1]).distance_to_consensus()[index]
    assert height == pytest.approx(last, rel=0.01)
    page.locator("#path-chart").evaluate(
        "chart => chart.emit('plotly_click', { points: [{ customdata: 5 }] })"
    )
    assert page.locator("#who-name").inner_text() == users_table(model)["user"][5]


def test_the_chart_has_a_line_for_every_user_and_a_ring_for_who_leaves(page, model):
    lines, rings = page.locator("#path-chart").evaluate(
        """chart => ['lines', 'markers'].map(mode => new Set(chart.data.filter(t => t.mode === mode)
        .flatMap(t => t.customdata ?? []).filter(user => user !== null)).size)"""
    )
    assert lines == len(model.users_)
    assert rings == np.isfinite(model.entry_times_).sum()
    heights = page.locator("#path-chart").evaluate(
        """chart => chart.data.filter(t => t.mode === 'markers')
        .flatMap(t => t.customdata.map((user, k) => [user, t.x[k], t.y[k]]))"""
    )
    along = np.array([model.path_.at(t).distance_to_consensus() for t in model.path_.times])
    for place, left_at, height in heights:
        index = model.users_.tolist().index(users_table(model)["user"][place])
        assert left_at == model.entry_times_[index]
        expected = np.interp(left_at, model.path_.times, along[:, index])
        assert height == pytest.approx(expected, abs=0.005)
    kinds = model.abnormality_.kind
    assert sorted(page.locator("#path-legend li").all_inner_texts()) == sorted(
        f"{kind or 'not abnormal'} ({kinds.count(kind)})" for kind in set(kinds)
    )


def test_times_are_labelled_in_round_numbers_when_zoomed_too(page, model):
    ticks = "chart => [chart.layout.xaxis.tickvals, chart.layout.xaxis.ticktext]"
    for id_ in ("path-chart", "curves-chart"):
        values, texts = page.locator(f"#{id_}").evaluate(ticks)
        assert len(values) > 1 and [float(text) for text in texts] == values
        assert {float(f"{value:e}".split("e")[0]) for value in values} <= {1.0, 2.0, 5.0}
    low, high = model.path_.times[[0, -1]]
    page.locator("#path-chart").evaluate(
        "(chart, range) => Plotly.relayout(chart, { 'xaxis.range': range })",
        [np.log10(low), np.log10(low) + 0.5],
    )
    zoomed, _ = page.locator("#path-chart").evaluate(ticks)
    assert zoomed and min(zoomed) >= low and max(zoomed) <= low * 10**0.5 < high
    page.locator("#path-chart").evaluate(
        "chart => Plotly.relayout(chart, { 'xaxis.autorange': true })"
    )


def test_no_button_of_a_chart_sends_it_anywhere(page):
    titles = page.locator(".modebar-btn").evaluate_all(
        "buttons => buttons.map(each => each.getAttribute('aria-label') ?? each.dataset.title)"
    )
    assert set(titles) == {
        "Download plot as a PNG", "Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"
    }  # fmt: skip


# --- the table ------------------------------------------------------------------------------


def test_the_table_opens_with_everybody_and_has_the_abnormal_users_list_by_list(page, model):
    assert users_shown(page) == users_table(model)["user"].to_list()
    page.locator("#show-kind").select_option("abnormal")
    assert users_shown(page) == model.unreliable_users_ + model.different_users_
    assert len(model.unreliable_users_) > 1 and model.different_users_
    lists = column(page, "List")
    assert lists == sorted(lists, reverse=True)
    for shown, user in zip(column(page, "Effect"), users_shown(page), strict=True):
        index = model.users_.tolist().index(user)
        found = model.abnormality_
        low, high = found.effect_low[index], found.effect_high[index]
        assert shown == f"{found.effect[index]:.2f} ({low:.2f}–{high:.2f})"
    assert page.locator("#table-told").inner_text() == f"{len(model.abnormal_users_)} users shown."


def numbers_in(page, title):
    """Return the numbers of a column; who never left has none, and stands last."""
    texts = [text.split()[0] for text in column(page, title)]
    numbers = [float(text) for text in texts if text != "–"]
    assert "–" not in texts[: len(numbers)]
    return numbers


def test_a_heading_sorts_one_way_and_then_the_other(page):
    page.locator("#show-kind").select_option("everybody")
    page.locator("#users thead button", has_text="User").click()
    for title in ("Votes", "Effect", "Quality", "Left at"):
        heading = page.locator("#users thead th", has_text=title)
        heading.locator("button").click()
        upwards = numbers_in(page, title)
        assert upwards == sorted(upwards) and len(set(upwards)) > 1
        assert heading.get_attribute("aria-sort") == "ascending"
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == "descending"
        downwards = numbers_in(page, title)
        assert downwards == sorted(upwards, reverse=True)
        assert page.locator("#users th[aria-sort=none]").count() == 7


def test_who_has_no_kind_stands_last_either_way(page, model):
    page.locator("#show-kind").select_option("everybody")
    kinds = sorted(kind for kind in model.abnormality_.kind if kind)
    rest = ["–"] * (len(model.users_) - len(kinds))
    for expected in (kinds, kinds[::-1]):
        page.locator("#users thead button", has_text="Kind").click()
        assert column(page, "Kind") == expected + rest


def test_users_are_sorted_by_the_numbers_in_their_names(page):
    page.locator("#show-kind").select_option("everybody")
    page.locator("#users thead button", has_text="User").click()
    assert users_shown(page) == sorted(users_shown(page))
    page.locator("#users thead button", has_text="User").click()
    assert users_shown(page) == sorted(users_shown(page), reverse=True)


def test_the_filters_by_kind_and_by_name_work_together(page, model):
    kinds = model.abnormality_.kind
    page.locator("#show-kind").select_option("reversed")
    assert sorted(users_shown(page)) == [
        user for user, kind in zip(model.users_, kinds, strict=True) if kind == "reversed"
    ]
    page.locator("#show-kind").select_option("different")
    assert users_shown(page) == model.different_users_
    page.locator("#show-kind").select_option("unreliable")
    assert users_shown(page) == model.unreliable_users_
    name = users_shown(page)[0]
    page.locator("#filter").fill(name.upper())
    assert users_shown(page) == [name]
    page.locator("#show-kind").select_option("everybody")
    page.locator("#filter").fill("")
    assert len(users_shown(page)) == len(model.users_)


def downloaded(page, folder):
    with page.expect_download() as waiting:
        page.locator("#download").click()
    assert waiting.value.suggested_filename == "users.csv"
    waiting.value.save_as(folder / "users.csv")
    with (folder / "users.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_download_has_the_rows_that_are_shown_with_the_columns_of_the_command(
    page, model, tmp_path
):
    page.locator("#show-kind").select_option("abnormal")
    rows = downloaded(page, tmp_path)
    table = users_table(model)
    assert list(rows[0]) == table.columns
    assert [row["user"] for row in rows] == model.unreliable_users_ + model.different_users_
    expected = {row["user"]: row for row in table.iter_rows(named=True)}
    for row in rows:
        true = expected[row["user"]]
        assert int(row["votes"]) == true["votes"]
        assert (row["kind"], row["explanation"]) == (true["kind"], true["explanation"])
        assert row["abnormal"] == "true"
        assert row["list"] == true["list"]
        for name in ("entry_time", "distance", "p_value", "q_value", "quality", "effect"):
            assert float(row[name]) == pytest.approx(true[name], rel=1e-4)
    page.locator("#show-kind").select_option("reversed")
    page.locator("#users thead button", has_text="Left at").click()
    forwards = users_shown(page)
    page.locator("#users thead button", has_text="Left at").click()
    shown = users_shown(page)
    assert [row["user"] for row in downloaded(page, tmp_path)] == shown == forwards[::-1]


# --- how well it predicts -------------------------------------------------------------------


def test_the_curve_follows_the_choice_of_score(page, model):
    curves = model.selection_.chosen
    at = int(np.argmin(np.abs(curves.times - model.time_)))
    for scoring in ("log_loss", "macro_f1"):
        page.locator("#scoring").select_option(scoring)
        drawn = page.locator("#curves-chart").evaluate("chart => chart.data.map(t => t.y)")
        expected = []
        for estimate in ("dense", "sparse"):
            mean, spread = curves.mean(scoring, estimate), curves.spread(scoring, estimate)
            expected += [mean - spread, mean + spread, mean]
        known = [line[: curves.n_known] for line in expected]  # folds may end before the last time
        np.testing.assert_allclose(drawn, known, rtol=1e-4)
        caption = page.locator("#curves-caption").inner_text()
        assert scoring.replace("_", "-").lower() in caption.lower()
        assert f"is {drawn[2][at]:.3f}, plus or minus {drawn[1][at] - drawn[2][at]:.3f}" in caption


# --- many users -----------------------------------------------------------------------------

HELD = 440  # users whose rankings are in the file


@pytest.fixture(scope="module")
def crowd():
    return crowd_model()


@pytest.fixture(scope="module")
def crowded(browser, crowd, folder):
    """Open a report of 450 users that holds some times of some of them; opened once."""
    n_slots = int(np.diff(crowd.path_.slots.start).max()) * HELD
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "MOST_SLOTS", n_slots)
        patch.setattr(study, "MOST_VALUES", 1)
        write_report(crowd, folder / "crowd.html")
    with opened(browser, folder / "crowd.html") as page:
        yield page


def test_between_the_times_that_are_kept_rankings_are_linear(crowded, crowd):
    along, kept = crowd.path_, [0, 3, 6, 7, 9]
    assert crowded.locator("#path-chart").evaluate("chart => chart.data.at(-1).x") == (
        pytest.approx(along.times[kept])
    )
    index = crowd.users_.tolist().index(crowded.locator("#who-name").inner_text())
    mine = slice(*along.slots.start[index : index + 2])
    for position in range(len(along.times)):
        slide(crowded, position)
        own = along.consensus[position].copy()
        own[along.slots.coordinate[mine]] += [
            np.interp(along.times[position], along.times[kept], values)
            for values in along.deviation[kept][:, mine].T
        ]
        shown = {item: score for _, item, score, _ in own_ranking(crowded)}
        np.testing.assert_allclose([shown[item] for item in crowd.items_], own[:-1], atol=0.01)
    crowded.locator("#time-chosen").click()


def test_who_has_no_line_of_their_own_is_in_the_band(crowded, crowd):
    legend = crowded.locator("#path-legend li").all_inner_texts()
    assert legend[-1] == "grey band: the middle 80 % of 40 users without a line"
    assert f"rankings of {HELD} of 450 users" in crowded.locator("#path-caption").inner_text()
    found = crowd.abnormality_.flagged
    table = users_table(crowd)["user"].to_list()
    held = [crowd.users_.tolist().index(user) for user in table[:HELD]]
    others = [user for user in held if not found[user]][400 - found[held].sum() :]
    assert len(others) == 40
    bands = crowded.locator("#path-chart").evaluate(
        "chart => chart.data.slice(0, 3).map(t => t.y[3])"  # at the chosen time, where it is exact
    )
    heights = np.sort(crowd.distance_to_consensus()[others])
    assert bands == pytest.approx(heights[[4, 36, 20]], rel=1e-4)


def test_a_long_list_says_what_it_leaves_out_and_still_has_the_picked_user(crowded, crowd):
    table = users_table(crowd)["user"].to_list()
    assert crowded.locator("#pick option").count() == 200
    assert crowded.locator("#pick-told").inner_text() == (
        "200 of 450 users listed; search to narrow them down."
    )
    crowded.locator("#search").fill(table[300])
    crowded.locator("#search").press("Enter")
    crowded.locator("#search").fill("")
    assert table[300] in crowded.locator("#pick option:checked").inner_text()
    assert "Left the consensus\nnever" in crowded.locator("#who-facts").inner_text()


def test_quality_and_readiness_to_tie_are_put_into_words(crowded, crowd):
    def ties(threshold):
        return np.exp(crowd.link_.log_probabilities(np.zeros(1), np.array([threshold])))[0, 1]

    careful = ["votes tell little about the items", "doubtful", "mostly careful", "careful"]
    ready = ["hardly", "less ready", "about as readily", "readier", "much readier"]
    seen = set()
    crowded.locator("#search").fill("")
    table = users_table(crowd)
    least = np.argsort(table["quality"].to_numpy())[:3]  # few are so careless
    for place in [*range(0, 200, 5), *least.tolist()]:
        user = table["user"][place]
        crowded.locator("#search").fill(user if place >= 200 else "")
        crowded.locator("#pick").select_option(value=str(place))
        quality, readiness = crowded.locator("#who-facts dd").all_inner_texts()[-2:]
        value = crowd.abnormality_.quality[crowd.users_.tolist().index(user)]
        seen.add(word := careful[np.searchsorted([0.2, 0.5, 0.8], value)])
        assert quality == f"{value:.2f} of 1, {word}"
        ratio = ties(crowd.threshold(user)) / ties(crowd.threshold_)
        word = ready[np.searchsorted([0.5, 0.87, 1.15, 1.5], ratio)]
        assert readiness.startswith(word) or f"calls ties {word}" in readiness
    assert seen == set(careful)


def test_a_user_whose_ranking_is_not_in_the_file_has_no_ladder_and_no_line(crowded, crowd):
    crowded.locator("#search").fill(users_table(crowd)["user"][449])
    crowded.locator("#search").press("Enter")
    assert "too large to hold" in crowded.locator("#own tbody").inner_text()
    picked = "chart => chart.data.at(-1).y.length"
    assert crowded.locator("#path-chart").evaluate(picked) == 0
    crowded.locator("#leavers button").first.click()
    assert crowded.locator("#own tbody tr").count() == len(crowd.items_)
    assert crowded.locator("#path-chart").evaluate(picked) > 0


def test_a_long_table_comes_in_parts_and_the_keyboard_stays_in_it(crowded, crowd, tmp_path):
    crowded.locator("#show-kind").select_option("everybody")
    told = crowded.locator("#table-told")
    assert told.inner_text() == "100 of 450 users shown; the download has them all."
    table = users_table(crowd)["user"].to_list()
    assert users_shown(crowded) == table[:100]
    for shown in (200, 300, 400, 450):
        crowded.locator("#more").press("Enter")
        assert users_shown(crowded) == table[:shown]
        first = crowded.evaluate("document.activeElement.closest('tr').sectionRowIndex")
        assert first == 100 * ((shown - 1) // 100)
    assert not crowded.locator("#more").is_visible()
    assert [row["user"] for row in downloaded(crowded, tmp_path)] == table


# --- strangers ------------------------------------------------------------------------------


def test_hostile_ids_do_nothing_and_show_as_text(hostile, tmp_path):
    page = hostile
    page.locator("#show-kind").select_option("everybody")
    for place in range(len(HOSTILE)):
        page.locator("#pick").select_option(index=place)
        page.locator("#users tbody button").nth(place).hover()
    lines = page.locator("#path-chart .scatterlayer .lines path")
    lines.first.hover(force=True)
    shown = set(page.locator("#users tbody bdi").all_text_contents())
    assert {name.replace("\u202e", r"\u202e") for name in HOSTILE[:15]} <= shown
    assert {"a" + 79 * "🦆" + "…", r"'\u2003\u200b'"} <= shown
    assert r"line\x0abreak,and" + '"quote' in shown
    assert page.title() == TITLE
    assert page.locator("img, iframe, b:not(.track b)").count() == 0
    rows = downloaded(page, tmp_path)
    # A spreadsheet would take some ids for formulas: a quote stops it. The others are exact.
    assert {row["user"] for row in rows} == {
        f"'{name}" if name[0] in "=+-@" else name for name in HOSTILE
    }


def test_charts_show_hostile_ids_as_text(hostile):
    texts = hostile.locator("#path-chart").evaluate(
        "chart => chart.data.flatMap(t => t.hovertext ?? []).filter(text => text)"
    )
    names = {text.split("<br>")[0] for text in texts}
    assert any("&lt;script&gt;" in name for name in names)
    assert not any("<" in name for name in names)


# --- every screen ---------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["on_phone", "hostile_on_phone", "later_on_phone"])
def test_a_phone_does_not_scroll_sideways(request, which):
    page = request.getfixturevalue(which)
    width, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= screen == PHONE[0]


def test_a_phone_keeps_intervals_groups_and_reasons_in_sight(on_phone, model):
    board, found = model.leaderboard(), model.abnormality_
    first = on_phone.locator("#board tbody:visible tr").first
    for name in ("interval", "ranks", "group", "score"):
        cell = first.locator(f"td.{name}")
        box = cell.bounding_box()
        assert cell.is_visible() and box["x"] >= 0 and box["x"] + box["width"] <= PHONE[0]
    assert f"{board.low[0]:.2f} to {board.high[0]:.2f}" in first.inner_text()
    for table in ("#unreliable", "#users-section"):
        why = on_phone.locator(f"{table} tbody tr").first.locator("td.why")
        index = model.users_.tolist().index(model.unreliable_users_[0])
        assert why.is_visible() and found.explanation[index][1:] in why.inner_text()


# One page was opened in the dark and the other in the light.
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["opened_dark", "on_phone"])
def test_axe_finds_nothing_serious(request, which, scheme):
    assert serious_violations(coloured(request.getfixturevalue(which), scheme)) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_changed_can_be_read_by_everybody_and_has_a_bar_for_every_item(later_on_phone, scheme):
    page = coloured(later_on_phone, scheme)
    assert serious_violations(page) == []
    section = page.locator("#since")
    assert section.locator("table.changes tbody tr").count() == len(HOSTILE) - 1
    for bar in section.locator("table.changes .track i:not(.thin)").all():
        box, around = bar.bounding_box(), bar.locator("..").bounding_box()
        assert around["x"] - 1 <= box["x"]
        assert box["x"] + box["width"] <= around["x"] + around["width"] + 1
    assert page.title() != "owned"


def test_dark_and_light_differ_and_charts_follow_a_change(page, opened_dark):
    ink = "chart => chart.layout.font.color"
    background = "getComputedStyle(document.body).backgroundColor"
    light, light_paper = page.locator("#path-chart").evaluate(ink), page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    until(
        page,
        "light => document.getElementById('path-chart').layout.font.color !== light",
        light,
    )
    dark = coloured(opened_dark, "dark")
    assert page.locator("#path-chart").evaluate(ink) == dark.locator("#path-chart").evaluate(ink)
    dark_paper = page.evaluate(background)
    assert dark_paper == dark.evaluate(background)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(background) == light_paper != dark_paper


def test_on_paper_the_tables_are_whole_and_the_controls_are_gone(page):
    page.emulate_media(media="print")
    assert not page.locator("#download").is_visible()
    assert page.locator(".scroll").first.evaluate("e => getComputedStyle(e).maxHeight") == "none"
    assert page.locator("#users").is_visible()
    assert page.pdf()[:5] == b"%PDF-"
    width = "['path-chart', 'curves-chart'].map(id => document.getElementById(id).layout.width)"
    screen = page.evaluate(width)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(width) == [680, 680]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(width) == screen != [680, 680]


def test_without_scripts_the_tables_are_there_and_the_page_says_what_is_missing(
    browser, report, model
):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "need scripts" in page.locator("main noscript").inner_text()
    assert items_shown(page) == model.leaderboard().items.tolist()
    assert not page.locator("#without-abnormal").is_visible()
    for name in ("unreliable", "different"):
        listed = page.locator(f"#{name} tbody th").all_inner_texts()
        assert listed == getattr(model, f"{name}_users_")
    assert not page.locator("#time").is_visible()
    context.close()


def test_a_browser_that_cannot_unpack_says_so_and_keeps_the_tables(browser, report, model):
    context = browser.new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator("html[data-ready=no]").wait_for()
    assert "too old" in page.locator("#broken").inner_text()
    assert not page.locator("#time").is_visible()
    assert items_shown(page) == model.leaderboard().items.tolist()
    context.close()


def test_a_model_without_a_path_shows_users_and_nothing_to_slide_along(browser, folder, model):
    model = PerUser(0.1).fit(model.votes())
    file = folder / "per-user.html"
    write_report(model, file)
    with opened(browser, file, **FOR_AXE) as page:
        for width, height in (DESKTOP, PHONE):
            page.set_viewport_size({"width": width, "height": height})
            assert page.locator("#time, #path-chart, #leavers").count() == 0
            for user in users_table(model)["user"][:3]:
                page.locator("#search").fill(user)
                page.locator("#search").press("Enter")
                assert page.locator("#who-name").inner_text() == user
                ranking = model.ranking(user)
                shown = own_ranking(page)
                assert [item for _, item, _, _ in shown] == ranking.items.tolist()
                assert [tier for tier, _, _, _ in shown] == ranking.tier.tolist()
                assert page.locator("#own-title").inner_text() == "Own ranking"
                assert "never" in page.locator("#who-facts").inner_text()
            assert serious_violations(page) == []


# --- people who differ in more than taste ----------------------------------------------------


def slide_to(page, model, place, user):
    """Put the slider somewhere and pick a user; return the user's parameters there."""
    slide(page, place)
    page.locator("#search").fill(str(user))
    page.locator("#search").press("Enter")
    assert page.locator("#who-name").inner_text() == user
    along = model.path_.at(model.path_.times[place])
    return along.of_user(model.users_.tolist().index(user)), along


def expected_ranking(model, own, along, user):
    from isplitlbi.model.ranking import Ranking

    index = model.users_.tolist().index(user)
    threshold = own.threshold if model.terms_.has_ties else None
    return Ranking.of(
        model.items_, own.scores, threshold, along.compared_by(index), own.habits
    )  # fmt: skip


@pytest.fixture(scope="module")
def featured_report(featured, folder):
    write_report(featured, folder / "featured.html")
    return folder / "featured.html"


@pytest.fixture(scope="module")
def forced_report(forced, folder):
    write_report(forced, folder / "forced.html")
    return folder / "forced.html"


@pytest.mark.parametrize("which", ["featured", "forced"])
def test_the_slider_knows_sharpness_habits_and_thresholds(browser, request, which):
    model = request.getfixturevalue(which)
    with opened(browser, request.getfixturevalue(f"{which}_report"), **FOR_AXE) as page:
        first = users_table(model)["user"][0]
        chosen = model.path_.times.tolist().index(model.time_)
        for user in (*model.users_[:2], first):
            for place in [*positions(model), chosen]:
                own, along = slide_to(page, model, place, user)
                expected = expected_ranking(model, own, along, user)
                shown = own_ranking(page)
                scores = {item: score for _, item, score, _ in shown}
                for item, score in zip(expected.items, expected.scores, strict=True):
                    assert scores[item] == pytest.approx(score, abs=0.02)
                if place == chosen:  # there it is exact
                    assert [item for _, item, _, _ in shown] == expected.items.tolist()
                    numbers = (
                        np.arange(1, len(expected) + 1) if expected.tier is None else expected.tier
                    )
                    assert [tier for tier, _, _, _ in shown] == numbers.tolist()
            card = model.user_card(user)
            assert page.locator("#who-words li").all_inner_texts() == card.words
        heights = page.locator("#path-chart").evaluate("chart => chart.data.at(-1).y")
        index = model.users_.tolist().index(first)
        last = model.path_.at(model.path_.times[-1]).distance_to_consensus()[index]
        assert heights[-1] == pytest.approx(last, rel=0.01)
        assert serious_violations(page) == []


def test_the_pictures_of_people_fit_a_phone_and_follow_the_dark(browser, featured_report):
    colours = []
    with opened(browser, featured_report, **ON_PHONE) as page:
        for scheme in ("light", "dark"):
            coloured(page, scheme)
            width, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert width <= screen
            dot = page.locator("#people circle").first
            colours.append(dot.evaluate("dot => getComputedStyle(dot).fill"))
            assert dot.bounding_box()["width"] > 2
    assert colours[0] != colours[1]


def test_the_script_speaks_in_the_words_of_the_study(browser, model, folder):
    called = copy(model)
    called.call = {"items": "models", "users": "annotators"}
    write_report(called, folder / "called.html")
    with opened(browser, folder / "called.html") as page:
        said = page.locator("main").inner_text()
    assert not re.search(r"\b(items?|users?)\b(?!-\d)", said, re.IGNORECASE)
    assert f"of {len(model.users_)} annotators have left the consensus" in said


def test_the_page_of_an_anonymous_crowd_works_without_users(browser, model, folder):
    votes = model.votes()
    left, right = votes.items[votes.left], votes.items[votes.right]
    crowd = Comparisons.from_arrays(None, left, right, votes.outcome)
    file = folder / "crowd.html"
    write_report(ISplitLBI().fit(crowd), file)
    with opened(browser, file) as page:
        for width, height in (DESKTOP, PHONE):
            page.set_viewport_size({"width": width, "height": height})
            sections = page.eval_on_selector_all("section", "all => all.map((each) => each.id)")
            assert sections == ["ranking", "pairs", "prediction", "plan", "data", "settings"]
            assert "user" not in page.locator("body").inner_text().lower()
            page.locator("#pairs-show").select_option("votes")
            assert "vote" in page.locator("#pairs-told").inner_text()
            assert page.locator("#matrix tbody tr").count() == votes.n_items
            assert serious_violations(page) == []
