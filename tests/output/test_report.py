"""The report as a file: what it says, what it holds, and that strangers' ids stay text.

What its script does is tested in a browser, in test_report_in_browser.py.
"""

import base64
import hashlib
import html
import json
import re
import subprocess
import sys
import zlib
from copy import copy
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from isplitlbi import Comparisons, ISplitLBI, MarginMLE, PerUser, agreement, compare
from isplitlbi.abnormal.tests import ROUNDS
from isplitlbi.diagnostics.individual import verdict_on
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.report import TITLE, boards, content, ids, study, write_report
from isplitlbi.output.report.since import since_of
from isplitlbi.output.tables import users_table
from studies import HOSTILE, hostile_model, small_model

pytest.importorskip("plotly", reason="the report needs plotly (pip install .[report])")
pytest.importorskip("jinja2", reason="the report needs jinja2 (pip install .[report])")

TYPES = {"f4": "<f4", "f8": "<f8", "i2": "<i2", "i4": "<i4", "u4": "<u4"}


class Page(HTMLParser):
    """A page as a parser sees it: its elements, the texts of some, everything visible."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.texts, self.open = [], {}, []
        self.visible = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tag, name = self.open[-1] if self.open else (None, None)
        if tag not in ("script", "style"):
            self.visible.append(data)
        self.texts[name] = self.texts.get(name, "") + data


def unpacked(value):
    return np.frombuffer(zlib.decompress(base64.b64decode(value["bytes"])), TYPES[value["type"]])


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def source(model, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    write_report(model, file)
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


@pytest.fixture(scope="module")
def told(page):
    return json.loads(page.texts["study"])


@pytest.mark.usefixtures("experiments_are_made_anew")
def test_the_same_model_gives_the_same_file(model, source, tmp_path):
    write_report(model, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == source


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")


def test_the_policy_runs_no_script_but_the_two_of_the_page(page):
    (policy,) = [a["content"] for _, a in page.elements if "http-equiv" in a]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    library = zlib.decompress(base64.b64decode(page.texts["charts"]))
    own = [a for tag, a in page.elements if tag == "script" and not a]
    assert len(own) == 1
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode()
              for script in (script_of(page), library)]  # fmt: skip
    assert rules["script-src"] == " ".join(f"'sha256-{each}'" for each in hashes)


def script_of(page):
    from importlib import resources

    script = resources.files("isplitlbi.output.report").joinpath("page.js").read_bytes()
    assert script.decode() in "".join(page.texts[None])
    return script


def test_every_label_and_every_heading_points_at_something(page):
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        for name in ("for", "aria-labelledby"):
            assert attributes.get(name, ids[0]) in ids, (tag, attributes)
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


def answer_of(source):
    """Return the sentences under the heading, as text."""
    found = re.findall(r'<p class="answer">(.*)</p>', source)
    return [html.unescape(re.sub("<.*?>", "", sentence)) for sentence in found]


def test_the_answer_says_what_is_first_whom_not_to_trust_and_the_verdict_of_check(model, source):
    asked, ranking, trust, prediction = answer_of(source)
    votes, board = model.votes(), model.leaderboard()
    assert f"{votes.n_users} users compared {votes.n_items} items, two at a time" in asked
    assert f"in {votes.n_votes} votes" in asked
    assert f"{100 * np.mean(votes.outcome == 0):.1f} %" in asked
    n_others = board.rank_high[0] - 1
    sure = {0: "the votes are clear", 1: "the votes cannot tell it from one other yet"}
    expected = sure.get(n_others, f"the votes cannot tell it from {n_others} others yet")
    assert f"{board.items[0]} is first; {expected}." in ranking
    assert f"There are {board.tier[-1]} tiers, with {board.items[0]}" in ranking
    found = model.abnormality_
    kinds = [kind for kind, on in zip(found.kind, found.list, strict=True) if on == "unreliable"]
    n_unreliable, n_different = len(kinds), len(model.different_users_)
    told, named = re.match(r"(.*?) should not be trusted \((.*?)\): look at", trust).groups()
    assert told == f"{n_unreliable} of 16 users" and n_unreliable > 1
    assert set(named.split(", ")) == {f"{kinds.count(kind)} {kind}" for kind in kinds}
    assert "read the ranking without them" in trust
    assert trust.endswith(
        f"{n_different} only {'has' if n_different == 1 else 'have'} another taste."
    )
    assert prediction == verdict_on(votes).sentence


def test_the_page_never_comforts_beside_users_not_to_trust(page, model):
    assert model.unreliable_users_
    visible = " ".join("".join(page.visible).split()).lower()
    for comfort in ("nothing serious", "nothing was found", "stands in the way", "nobody is unrel"):
        assert comfort not in visible


def test_every_table_that_scrolls_says_what_its_rows_are(page):
    regions = [a for tag, a in page.elements if tag == "div" and a.get("class") == "scroll"]
    assert len(regions) > 5 and all(each.get("data-unit") for each in regions)


def test_the_page_leads_with_the_ranking_then_both_lists_then_the_rest(page):
    sections = [a["id"] for tag, a in page.elements if tag == "section"]
    assert sections[:4] == ["ranking", "unreliable", "different", "pairs"]
    assert set(sections[4:]) == {
        "prediction", "plan", "data", "agreement", "people", "groups", "parts", "path", "user",
        "users-section", "settings",
    }  # fmt: skip


def test_the_page_has_the_name_of_the_file_and_the_day_of_the_fit(model, tmp_path):
    model = small_model()
    model.fitted_ = replace(
        model.fitted_, votes=model.votes().read_from("folder/<votes>.csv"), date="2026-01-31"
    )
    _, text = texts_of(model, tmp_path)
    assert "votes of <votes>.csv · fitted on 2026-01-31 · isplitlbi" in text


def rows_of_board(source, name="everybody"):
    """Return the texts of the cells of a leaderboard, row by row."""
    (body,) = re.findall(rf'(?s)<tbody data-board="{name}".*?>(.*?)</tbody>', source)
    return [
        [
            html.unescape(re.sub("<.*?>", "", cell))
            for cell in re.findall(r"(?s)<t[dh].*?</t[dh]>", row)
        ]
        for row in re.findall(r"(?s)<tr.*?</tr>", body)
    ]


def expected_rows(board, shift=0.0):
    ranks, groups = zip(*board.by_item().values(), strict=True)
    return [
        [ranks[k], board.items[k], "", f"{board.score[k] + shift:.2f}",
         f"{board.low[k] + shift:.2f} to {board.high[k] + shift:.2f}", str(board.votes[k]),
         str(board.tier[k]), groups[k]]
        for k in range(len(board))
    ]  # fmt: skip


def test_the_ranking_is_the_leaderboard_of_the_model(model, source):
    rows = rows_of_board(source)
    assert [row[1:9] for row in rows] == expected_rows(model.leaderboard())
    assert [row[0] for row in rows] == [str(rank) for rank in model.leaderboard().rank]


@pytest.mark.parametrize("name", ["without-unreliable", "without-abnormal"])
def test_the_other_rankings_are_of_the_same_estimator_on_the_other_votes(model, source, name):
    lists = ["unreliable"] if name == "without-unreliable" else ["unreliable", "different"]
    effect = model.effect_of_leaving_out(lists=lists)
    board, everybody = effect.others, model.leaderboard()
    assert board.votes.sum() < everybody.votes.sum()
    shift = np.mean(everybody.score) - np.mean(board.score)
    rows = rows_of_board(source, name)
    assert [row[1:9] for row in rows] == expected_rows(board, shift)
    before = {item: int(rank) for item, rank in zip(everybody.items, everybody.rank, strict=True)}
    moved = [before[item] - int(rank) for item, rank in zip(board.items, board.rank, strict=True)]
    arrows = [f" {'▲' if by > 0 else '▼'}{abs(by)}" if by else "" for by in moved]
    assert [row[0] for row in rows] == [
        f"{rank}{arrow}" for rank, arrow in zip(board.rank, arrows, strict=True)
    ]


def test_what_leaving_users_out_changes_is_said(model, page):
    visible = " ".join("".join(page.visible).split())
    for lists in (["unreliable"], ["unreliable", "different"]):
        assert model.effect_of_leaving_out(lists=lists).sentence() in visible


def test_a_large_study_has_one_ranking_and_says_how_to_get_the_others(model, monkeypatch, tmp_path):
    assert not boards.is_large(model)
    sizes = model.parameters_.slots.sizes.astype(float)
    monkeypatch.setattr(boards, "MOST_WORK", 0.99 * np.sum(sizes**3))
    page, text = texts_of(model, tmp_path)
    shown = {attributes.get("data-board") for _, attributes in page.elements}
    assert shown == {None, "everybody"}
    assert "too large to hold the ranking without users on a list. isplitlbi fit --without" in text
    assert "should not be trusted" in text and "fit the others again without them" in text
    assert "nobody is left" not in text


def test_the_bars_of_all_rankings_lie_where_their_figures_say_on_one_scale(source):
    for name in ("everybody", "without-unreliable", "without-abnormal"):
        (body,) = re.findall(rf'(?s)<tbody data-board="{name}".*?>(.*?)</tbody>', source)
        drawn = re.findall(
            r'<i style="left:(.*?)%;width:(.*?)%"></i><b style="left:(.*?)%"></b>', body
        )
        left, width, dot = np.array(drawn, dtype=float).T
        rows = rows_of_board(source, name)
        low, high = np.array([row[5].split(" to ") for row in rows], dtype=float).T
        score = np.array([float(row[4]) for row in rows])
        if name == "everybody":
            slope, first = np.polyfit(np.append(low, high), np.append(left, left + width), 1)
        for shown, value in ((left, low), (left + width, high), (dot, score)):
            np.testing.assert_allclose(shown, first + slope * value, atol=0.02 * slope)


def test_a_tier_begins_with_a_line(model, source):
    (body,) = re.findall(r'(?s)<tbody data-board="everybody".*?>(.*?)</tbody>', source)
    first = np.diff(model.leaderboard().tier, prepend=0) > 0
    assert [
        row.endswith(" opens") for row in re.findall('<tr class="(.*?)"', body)
    ] == first.tolist()


def test_many_items_of_a_tier_are_named_in_part():
    assert content._enumerated(["a"]).striptags() == "a"
    assert content._enumerated(["a", "b"]).striptags() == "a and b"
    assert content._enumerated(list("abc")).striptags() == "a, b and c"
    assert content._enumerated(list("abcdef")).striptags() == "a, b, c and 3 more"


@pytest.mark.parametrize("name", ["unreliable", "different"])
def test_each_list_has_its_users_with_kind_reason_and_quality(model, source, name):
    (section,) = re.findall(rf'(?s)<section id="{name}".*?</section>', source)
    listed = getattr(model, f"{name}_users_")
    assert (
        f"{len(listed)} of 16 users</strong>" in section
        and "5 % of the names on each list" in section
    )
    rows = [
        [html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<t[dh].*?</t[dh]>", row)]
        for row in re.findall(r"(?s)<tr><th scope=\"row\".*?</tr>", section)
    ]
    assert [row[0] for row in rows] == listed
    found = model.abnormality_
    for user, kind, why, quality, _, votes in rows:
        index = model.users_.tolist().index(user)
        assert kind == found.kind[index]
        assert why[1:-1] == found.explanation[index][1:] and why[0].isupper()
        assert quality == f"{found.quality[index]:.2f}"
        assert votes == str(model.votes().votes_per_user[index])


def test_the_page_says_how_far_people_agree_as_the_command_does(model, source):
    (section,) = re.findall(r'(?s)<section id="agreement".*?</section>', source)
    text = html.unescape(re.sub("<.*?>", "", section))
    found = agreement(model.votes())
    assert found.sentence() in text
    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td class="number".*?>(.*?)</td>', section)
    told = {html.unescape(re.sub("<.*?>", "", name)): value for name, value in rows}
    assert told["alpha"] == f"{found.common.alpha.value:.2f}"
    assert told["split half"] == f"{found.split_half.reliability:.2f}"
    least = found.users_table()["user"].head(5).to_list()
    assert list(told)[-len(least) :] == least


def test_a_single_user_cannot_agree_with_anybody(tmp_path):
    votes = simulate(n_users=1, n_items=4, votes_per_user=(30, 30), random_state=0).votes
    page, text = texts_of(MarginMLE().fit(votes), tmp_path)
    assert "How far people agree" not in text
    assert "agreement" not in [attributes.get("id") for _, attributes in page.elements]


def test_a_long_list_is_cut_and_says_where_the_others_are(model, monkeypatch, tmp_path):
    monkeypatch.setattr(content, "MOST_LISTED", 1)
    _, text = texts_of(model, tmp_path)
    n_listed = len(model.unreliable_users_)
    assert f"The first 1 of {n_listed}; the others are in the table of all users." in text


def test_the_table_of_users_says_how_many_there_are_of_each_kind(model, page):
    visible = " ".join("".join(page.visible).split())
    kinds = model.abnormality_.kind
    flagged = len(model.abnormal_users_)
    unreliable, different = len(model.unreliable_users_), len(model.different_users_)
    assert f"unreliable ({unreliable}) different ({different}) " in visible
    assert f"all abnormal users ({flagged}) " in visible and "everybody (16) " in visible
    for kind in set(kinds) - {""}:
        assert f"{kind} ({kinds.count(kind)}) " in visible
    votes = model.votes().votes_per_user
    shown = f"{votes.min()} to {votes.max()} votes each; "
    shown += f"half of the users gave at most {np.median(votes):g}."
    assert shown in visible


def test_the_report_says_how_sure_predictions_are_beside_one_ranking_for_all(model, source):
    found, visible = model.selection_, html.unescape(source)
    assert (
        f"log-loss {found.log_loss:.3f}, with one ranking for all {found.one_ranking:.3f}; "
        f"temperature {found.temperature:.2f}" in visible
    )
    for sentence in found.warnings(model.nouns):
        assert sentence in visible


def test_held_out_scores_are_those_of_the_curves(model, source):
    curves = model.selection_.chosen
    at = int(np.argmin(np.abs(curves.times - model.time_)))
    (section,) = re.findall(r'(?s)<section id="prediction".*?</section>', source)
    rows = re.findall(
        r'<tr><th scope="row">(.*?)</th><td class="number">(.*?)</td><td class="number">(.*?)</td>',
        section,
    )
    assert rows == [
        (content.SCORE_NAMES[scoring], f"{curves.mean(scoring)[at]:.3f}",
         f"{curves.mean(scoring, 'sparse')[0]:.3f}")
        for scoring in ("log_loss", "micro_f1", "macro_f1")
    ]  # fmt: skip


def test_the_findings_of_check_are_in_the_page(model, page):
    from isplitlbi.diagnostics.check import check

    visible = "".join(page.visible)
    for finding in check(model.votes()).findings:
        assert finding.sentence in visible


def test_settings_seed_versions_and_the_paper_are_in_the_page(model, page):
    import isplitlbi

    visible = "".join(page.visible)
    for text in (isplitlbi.__version__, "iSplit LBI: Individualized", f"{model.time_:.6g}"):
        assert text in visible
    assert re.search(r"seed\s*0", visible)


def test_the_script_gets_every_user_in_the_order_of_the_table(model, told):
    table = users_table(model)
    assert told["users"]["user"] == table["user"].to_list()
    assert told["users"]["abnormal"] == table["abnormal"].to_list()
    kinds = [told["kinds"][kind]["name"] if kind >= 0 else None for kind in told["users"]["kind"]]
    assert kinds == table["kind"].to_list()
    assert told["users"]["list"] == table["list"].to_list()
    assert told["users"]["entry_rank"] == table["entry_rank"].to_list()
    assert told["users"]["effect"] == pytest.approx(table["effect"].to_list(), rel=1e-4)
    bounds = [1 / (n_draws + 1) for n_draws in ROUNDS]
    assert told["users"]["is_bound"] == [p in bounds for p in table["p_value"]]
    assert any(told["users"]["is_bound"])
    assert set(told["list_words"]) == {"unreliable", "different"}
    # Exactly, because the script compares them with the times of the path.
    assert told["users"]["entry_time"] == table["entry_time"].to_list()


def deviations_of(path):
    """Follow what the script does with the packed differences."""
    differences = unpacked(path["differences"]).reshape(len(path["kept"]), -1)
    return path["step"] * np.cumsum(differences, axis=0, dtype=np.int16)


def test_the_script_gets_everybodys_deviations_along_the_path(model, told):
    path, along = told["path"], model.path_
    np.testing.assert_array_equal(path["times"], along.times)
    assert along.times[path["chosen"]] == model.time_
    consensus = unpacked(path["consensus"]).reshape(along.consensus.shape)
    np.testing.assert_array_equal(consensus, along.consensus)
    assert (path["n_items"], path["width"]) == (along.vector.n_items, along.vector.width)
    assert path["ties"] == "log"
    assert np.exp(consensus[path["chosen"], path["threshold"]]) == pytest.approx(model.threshold_)
    np.testing.assert_array_equal(unpacked(path["reference"]), model.terms_.reference)
    habits = consensus[path["chosen"], path["habits"] :]
    np.testing.assert_allclose(np.exp(habits), model.habits_)
    start, exact = unpacked(path["start"]), unpacked(path["at_chosen"])
    rough = deviations_of(path)
    assert path["chosen"] in path["kept"]
    for place, user in enumerate(told["users"]["user"]):
        index = model.users_.tolist().index(user)
        mine, slots = slice(*start[place : place + 2]), slice(*along.slots.start[index : index + 2])
        np.testing.assert_array_equal(
            unpacked(path["coordinate"])[mine], along.slots.coordinate[slots]
        )
        units = model.parameters_.units[slots]  # the script gets logits
        found = model.parameters_.deviation[slots] * units
        np.testing.assert_allclose(exact[mine], found, rtol=1e-6)
        expected = along.deviation[path["kept"]][:, slots] * units
        np.testing.assert_allclose(rough[:, mine], expected, atol=0.51 * path["step"])


def test_the_script_gets_the_votes_that_tell_most_of_every_user(model, told):
    telling = {name: unpacked(value) for name, value in told["telling"].items()}
    for place, user in enumerate(told["users"]["user"]):
        votes = range(*telling["start"][place : place + 2])
        shown = [
            (model.items_[telling["left"][k]], model.items_[telling["right"][k]],
             telling["outcome"][k], telling["times"][k])
            for k in votes
        ]  # fmt: skip
        expected = model.telling_votes(user, study.MOST_TELLING)
        assert shown == [(vote.left, vote.right, vote.outcome, vote.times) for vote in expected]
        np.testing.assert_allclose(
            telling["probability"][votes.start : votes.stop],
            [vote.probability for vote in expected], rtol=1e-5,
        )  # fmt: skip


def test_the_same_vote_with_other_weights_is_the_same_thing_said_again():
    n = 60
    model = ISplitLBI(time=0.5, times=[0.5]).fit(
        Comparisons.from_arrays(
            ["ann"] * n, ["a", "b", "c"] * 20, ["b", "c", "a"] * 20, [1, 0, -1] * 20,
            weight=1.0 + np.arange(n) / n,
        )
    )  # fmt: skip
    telling = study.study_of(model)["telling"]
    assert unpacked(telling["times"]).tolist() == [20, 20, 20]


def test_the_curves_of_both_estimates_are_in_the_page(model, told):
    curves = model.selection_.chosen
    for scoring in ("log_loss", "micro_f1", "macro_f1"):
        for estimate in ("dense", "sparse"):
            shown = told["curves"][f"{scoring} {estimate}"]
            for name in ("mean", "spread"):
                expected = getattr(curves, name)(scoring, estimate)[: curves.n_known]
                np.testing.assert_allclose(shown[name], expected, rtol=1e-4)
    assert len(told["curves"]["times"]) == curves.n_known
    known = slice(curves.n_known)
    assert np.any(curves.mean("log_loss")[known] != curves.mean("log_loss", "sparse")[known])


def test_the_script_gets_every_pair_in_the_order_of_the_leaderboard(model, told, monkeypatch):
    items = [told["items"][place] for place in told["pairs"]["items"]]
    assert items == model.leaderboard().items.tolist()
    pairs = {name: unpacked(value) for name, value in told["pairs"].items() if name != "items"}
    found = model.head_to_head()
    assert [items[place] for place in pairs["first"]] == found.item.tolist()
    assert [items[place] for place in pairs["second"]] == found.other.tolist()
    np.testing.assert_array_equal(pairs["votes"], found.votes)
    np.testing.assert_allclose(pairs["observed"].reshape(-1, 3), found.observed, rtol=1e-6)
    np.testing.assert_allclose(pairs["predicted"].reshape(-1, 3), found.predicted, rtol=1e-6)
    monkeypatch.setattr(study, "MOST_IN_MATRIX", 2)
    few = study.study_of(model)["pairs"]
    assert len(few["items"]) == 2 and len(unpacked(few["votes"])) <= 1


def test_a_pair_of_an_item_without_a_rank_is_told_from_the_higher_of_the_two(model, monkeypatch):
    board = model.leaderboard()
    monkeypatch.setattr(model, "_board", replace(board, items=board.items[::-1]))
    pairs = study.study_of(model)["pairs"]
    found = model.head_to_head()
    assert np.all(unpacked(pairs["first"]) < unpacked(pairs["second"]))
    observed = unpacked(pairs["observed"]).reshape(-1, 3)
    np.testing.assert_allclose(observed, found.observed[:, ::-1], rtol=1e-6)


def test_the_share_of_ties_is_what_the_link_says_of_equal_items(model, told):
    for place, user in enumerate(told["users"]["user"]):
        threshold = model.threshold(user)
        _, tie, _ = np.exp(model.link_.log_probabilities(np.zeros(1), np.array([threshold])))[0]
        assert told["users"]["tie_share"][place] == pytest.approx(tie, rel=1e-4)


@pytest.mark.parametrize("largest", [1.0, 65.0, 5_000.0])
def test_large_steps_between_times_survive_packing(largest):
    # What does not fit into 16 bits wraps around, and comes back.
    values = np.array([[-largest], [largest], [-largest]])
    step = max(study.STEP, largest / 30_000)
    in_steps = np.round(values / step).astype(np.int64)
    differences = np.diff(in_steps, axis=0, prepend=0).astype(np.int16)
    back = step * np.cumsum(differences, axis=0, dtype=np.int16)
    np.testing.assert_allclose(back, values, atol=0.51 * step)


def test_a_model_too_large_keeps_fewer_times_and_then_fewer_users(model, monkeypatch):
    n_slots = len(model.path_.slots.coordinate)
    monkeypatch.setattr(study, "MOST_VALUES", 10 * n_slots)
    fewer = study.study_of(model)["path"]
    assert len(fewer["kept"]) in (10, 11)
    assert fewer["kept"][0] == 0 and fewer["kept"][-1] == len(model.path_.times) - 1
    assert fewer["chosen"] in fewer["kept"]
    monkeypatch.setattr(study, "MOST_SLOTS", n_slots // 2)
    small = study.study_of(model)
    start = unpacked(small["path"]["start"])
    assert len(small["users"]["user"]) == len(model.users_)
    assert 0 < len(start) - 1 < len(model.users_)
    assert start[-1] <= n_slots // 2


# --- strangers ------------------------------------------------------------------------------


def test_hostile_ids_add_no_element_and_no_attribute(source, tmp_path):
    strangers = hostile_model()
    write_report(strangers, tmp_path / "hostile.html", title="</title><script>1</script>")
    text = (tmp_path / "hostile.html").read_text(encoding="utf-8")
    ours, theirs = Page(source), Page(text)

    def shapes(page):
        return {(tag, tuple(sorted(attributes))) for tag, attributes in page.elements}

    # A long id has a title, so that it can be read, and users who are all alike are a bar.
    known = {("bdi", ("title",)), ("rect", ("height", "width", "x", "y"))}
    assert shapes(theirs) - shapes(ours) <= known
    assert sum(tag == "script" for tag, _ in theirs.elements) == 3
    assert json.loads(theirs.texts["study"])["items"] == strangers.items_.tolist()
    visible = "".join(theirs.visible)
    for name in HOSTILE[:14]:
        assert name.replace("\u202e", r"\u202e") in visible
    assert "\u202e" not in visible
    assert r"line\nbreak" in visible
    assert "x" * ids.LONGEST_ID + "…" in visible
    assert "x" * (ids.LONGEST_ID + 1) not in visible
    assert r"'\u2003\u200b'" in visible


def test_the_same_two_models_give_the_same_section_and_one_model_gives_none(page, model, tmp_path):
    votes = model.votes()
    earlier = MarginMLE().fit(votes.subset(votes.user < 10))
    for name in ("one.html", "two.html"):
        write_report(model, tmp_path / name, since=earlier)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.html", "two.html"))
    assert one == two
    there = Page(one.decode())
    assert ("section", {"id": "since", "aria-labelledby": "since-title"}) in there.elements
    assert "#since" not in [attributes.get("href") for _, attributes in page.elements]
    said = " ".join(" ".join(there.visible).split())
    assert all(sentence in said for sentence in compare(earlier, model).sentences())


def test_hostile_ids_are_text_in_what_changed_too(tmp_path):
    strangers = hostile_model()
    votes = strangers.votes()
    earlier = MarginMLE().fit(votes.without(users=HOSTILE[3], items=HOSTILE[4]))
    plain = since_of(compare(earlier, strangers))
    assert plain["apart"][0]["rows"][0]["item"] == HOSTILE[4]
    write_report(strangers, tmp_path / "hostile.html", since=earlier)
    hostile = Page((tmp_path / "hostile.html").read_text(encoding="utf-8"))
    assert "img" not in [tag for tag, _ in hostile.elements]
    assert sum(tag == "script" for tag, _ in hostile.elements) == 3
    assert not any("onmouseover" in attributes for _, attributes in hostile.elements)


@pytest.mark.parametrize(
    "sign", ["\x00", "\x1b", "\r", "\x7f", "\x9b", "\u202e", "\u200b", "\u200d", "\u2028", "\ufeff"]
)
def test_control_characters_are_spelled_out(sign):
    assert html.unescape(str(content.shown_id(f"a{sign}b"))) == f"<bdi>a{ascii(sign)[1:-1]}b</bdi>"


def test_the_title_of_a_long_id_stays_text():
    (element,) = Page(str(content.shown_id("' onclick='<b>" * 20))).elements
    assert element == ("bdi", {"title": "' onclick='<b>" * 20})


@pytest.mark.parametrize("blank", [" ", "\xa0", "\u200b", "\u2003\u202e"])
def test_an_id_that_nobody_could_see_is_spelled_out(blank):
    assert html.unescape(str(content.shown_id(blank))) == f"<bdi>{blank!a}</bdi>"


# --- models of every sort -------------------------------------------------------------------


def texts_of(model, tmp_path):
    write_report(model, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    return page, " ".join("".join(page.visible).split())


def test_a_model_whose_time_was_given_says_that_nothing_was_held_out(tmp_path):
    votes = simulate(n_users=6, n_items=4, votes_per_user=(10, 12), random_state=2).votes
    page, text = texts_of(ISplitLBI(time=1.0).fit(votes), tmp_path)
    assert "nothing was held out" in text
    assert "The time to stop was given." in text and "Cross-validation chose" not in text
    assert "curves-chart" not in page.texts
    assert json.loads(page.texts["study"])["curves"] is None


def test_a_single_time_says_that_there_is_nothing_to_slide_along(tmp_path):
    votes = simulate(n_users=6, n_items=4, votes_per_user=(10, 12), random_state=2).votes
    page, text = texts_of(ISplitLBI(times=[1.0], time=1.0).fit(votes), tmp_path)
    assert "single time of its path" in text
    (slider,) = [a for tag, a in page.elements if a.get("type") == "range"]
    assert "disabled" in slider


@pytest.mark.parametrize("method", [MarginMLE(), PerUser(0.1)], ids=str)
def test_a_model_without_a_path_has_a_page_without_one(method, tmp_path):
    votes = simulate(n_users=6, n_items=4, votes_per_user=(10, 12), random_state=2).votes
    page, text = texts_of(method.fit(votes), tmp_path)
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {"ranking", "user", "users-section"} <= ids
    assert not {"path", "time", "leavers", "path-chart"} & ids
    assert "follows no path" in text and type(method).__name__ in text
    told = json.loads(page.texts["study"])
    assert set(told["users"]["entry_time"]) == {None}
    assert told["path"]["kept"] == [0]
    np.testing.assert_array_equal(unpacked(told["path"]["consensus"]), method.parameters_.consensus)


def test_nobody_abnormal_is_said_so(tmp_path):
    votes = simulate(
        n_users=6, n_items=4, votes_per_user=(10, 12), abnormal_share=0.0, random_state=2
    ).votes
    model = ISplitLBI(n_folds=2).fit(votes)
    assert model.abnormal_users_ == []
    page, text = texts_of(model, tmp_path)
    assert "Nobody is unreliable or different beyond chance." in text
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert not {"unreliable", "different", "everybody", "without-abnormal"} & ids


def test_where_everybody_is_unreliable_nobody_is_left_to_compare_with(tmp_path):
    rng = np.random.default_rng(0)
    left = rng.integers(6, size=1_200)
    right = (left + rng.integers(1, 6, size=1_200)) % 6
    user = rng.integers(4, size=1_200)
    taste = np.array([rng.permutation(6) for _ in range(4)])
    outcome = np.sign(taste[user, left] - taste[user, right])
    # All users left before the first time, so that there is no score of the consensus alone.
    model = ISplitLBI(terms="paper", n_folds=2, fdr=0.9, times=[5.0, 6.0]).fit(
        Comparisons.from_arrays(user, left, right, outcome)
    )
    everybody = {"flagged": np.ones(4, dtype=bool), "kind": ["careless"] * 4}
    found = replace(model.abnormality_, list=["unreliable"] * 4, **everybody)
    model.adopt(model.fitted_, found)
    assert len(model.unreliable_users_) == 4
    page, text = texts_of(model, tmp_path)
    assert "4 of 4 users should not be trusted (4 careless)" in text
    assert "nobody is left to make a ranking without them." in text
    assert "everybody" not in {attributes.get("id") for _, attributes in page.elements}
    assert "One ranking for all" not in text


def test_one_abnormal_user_and_one_without_votes_are_counted_right(tmp_path):
    votes = simulate(n_users=8, n_items=5, votes_per_user=(20, 30), random_state=1).votes
    some = votes.subset((votes.user != 0) & (votes.user != 7))
    model = ISplitLBI(time=0.5, times=[0.5]).fit(some)
    assert len(model.abnormal_users_) == len(model.different_users_) == 1
    page, text = texts_of(model, tmp_path)
    assert "6 users compared" in text and f"in {len(some)} votes" in text
    assert "Nobody is unreliable beyond chance; 1 only has another taste." in text
    shown = {attributes.get("id") for _, attributes in page.elements}
    assert {"everybody", "without-abnormal"} <= shown and "without-unreliable" not in shown
    users = json.loads(page.texts["study"])["users"]
    place = users["user"].index("user-01")
    assert (users["votes"][place], users["q_value"][place], users["quality"][place]) == (
        0, None, None,
    )  # fmt: skip


def test_items_that_all_tie_are_one_tier(tmp_path):
    names = np.array(["a", "b", "c"])
    left, right = np.tile([0, 1, 2], 20), np.tile([1, 2, 0], 20)
    users = np.repeat(["ann", "bob"], 30)
    model = ISplitLBI(n_folds=2).fit(
        Comparisons.from_arrays(users, names[left], names[right], np.zeros(60, dtype=int))
    )
    _, text = texts_of(model, tmp_path)
    assert "All items are in one tier: people call them equal." in text


def test_numbers_as_ids_stay_numbers(tmp_path):
    rng = np.random.default_rng(1)
    left = rng.integers(4, size=60)
    votes = Comparisons.from_arrays(
        rng.integers(5, size=60), left, (left + 1) % 4, rng.choice([1, 0, -1], 60)
    )
    page, _ = texts_of(ISplitLBI(n_folds=2).fit(votes), tmp_path)
    assert sorted(json.loads(page.texts["study"])["users"]["user"]) == [0, 1, 2, 3, 4]


def test_numbers_that_a_script_would_round_are_text():
    ids = [2**53 + 1, 2**53, 1]
    votes = Comparisons.from_arrays(ids, ids, ids[1:] + ids[:1], [1, 0, -1])
    told = study.study_of(ISplitLBI(time=1.0, times=[1.0]).fit(votes))
    assert told["items"] == ["1", "9007199254740992", "9007199254740993"]
    assert sorted(told["users"]["user"]) == told["items"]


def test_a_report_that_cannot_be_finished_leaves_the_old_one(model, tmp_path, monkeypatch):
    (tmp_path / "report.html").write_text("old")
    monkeypatch.setattr("isplitlbi.output.report.study_of", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(model, tmp_path / "report.html")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "old"


def test_progress_goes_from_the_start_to_the_end(model, tmp_path):
    told = []
    write_report(
        model, tmp_path / "r.html", progress=lambda share, what: told.append((share, what))
    )
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[0] == 0.0 and 0.5 < shares[-1] <= 1.0
    assert all(what for _, what in told)


@pytest.mark.parametrize("missing", ["plotly", "jinja2"])
def test_without_its_libraries_the_report_says_what_to_install(missing):
    code = f"""
import sys
sys.modules |= {{"{missing}": None}}
from isplitlbi.output.report import render
try:
    render(None, "")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'isplitlbi[report]'" in done.stdout
    assert missing in done.stdout


def test_the_title_is_the_one_asked_for(model, tmp_path):
    write_report(model, tmp_path / "r.html", title="Tea & <coffee>")
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "".join(page.visible).count("Tea & <coffee>") == 2
    assert TITLE not in "".join(page.visible)


def test_the_page_is_in_the_words_of_the_study_and_ids_stay_as_they_are(model, tmp_path):
    called = copy(model)
    called.call = {"items": "models", "users": "annotators"}
    write_report(called, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    visible = " ".join("".join(page.visible).split())
    assert not re.search(r"\b(items?|users?)\b(?!-\d)", visible, re.IGNORECASE)
    assert "how readily a model ties" in visible and "One annotator beside" in visible
    assert "item-01" in visible
    labels = " ".join(attributes.get("aria-label") or "" for _, attributes in page.elements)
    assert "distance of every annotator" in labels and "user" not in labels
