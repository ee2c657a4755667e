"""A fitted model on a terminal of 80 columns."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from commands import in_one_line, width
from isplitlbi.output import summary
from isplitlbi.output.words import NO_TIES, factor, side_in_words, spread_in_words


def shown(printer, *arguments):
    out = io.StringIO()
    printer(Console(file=out, width=80, highlight=False), *arguments)
    assert width(out.getvalue()) <= 80
    return out.getvalue()


def rows_of(text, n_words):
    return [line.split() for line in text.splitlines() if len(line.split()) == n_words]


def test_the_summary_says_what_people_differ_in_and_what_was_chosen(featured):
    text = shown(summary.print_fit, featured, Path("model"), 1.5)
    words = in_one_line(text)
    assert "kappa 30, chosen from the votes);" in words
    sentence = spread_in_words(featured.spreads_)
    assert f"{sentence.capitalize()} (standard deviations, in logits):" in words
    assert side_in_words(featured.side_)[1:] in words
    assert NO_TIES not in words
    assert "isplitlbi report model -o report.html" in words


def test_the_bars_are_as_long_as_people_differ(featured):
    lines = shown(summary.print_differences, featured).splitlines()
    bars = [line for line in lines if "█" in line or "▏" in line]
    assert len(bars) == len(featured.spreads_)
    figures = [float(bar.split()[-2]) for bar in bars]
    assert figures == sorted((round(each, 2) for each in featured.spreads_.values()), reverse=True)
    lengths = [bar.count("█") for bar in bars]
    assert lengths[0] == summary.LONGEST_BAR and lengths == sorted(lengths, reverse=True)


def test_features_come_with_their_intervals(featured):
    (effect,) = featured.features()
    text = in_one_line(shown(summary.print_differences, featured))
    assert f"length {effect.effect:+.2f} {effect.low:.2f} to {effect.high:.2f}" in text
    assert f"{effect.unit:.4g}" in text


def test_without_ties_the_summary_says_so_and_shows_no_tiers(forced):
    text = shown(summary.print_fit, forced, Path("model"), 1.5)
    assert f"{NO_TIES}." in in_one_line(text)
    assert "tiers" not in text and "Two items tie" not in text
    ranking = [row for row in rows_of(text, 3) if row[1].startswith("item-")]
    assert [row[1] for row in ranking] == forced.ranking().items.tolist()
    assert [row[0] for row in ranking] == ["1", "2", "3", "4", "5", "6"]


def test_a_long_ranking_without_tiers_is_cut(forced, monkeypatch):
    monkeypatch.setattr(summary, "MOST_WITHOUT_TIERS", 4)
    assert "... and 2 more items." in shown(summary.print_tiers, forced, None, 6)


def test_items_show_their_tie_habits(featured):
    text = shown(summary.print_ranking, featured)
    ranking = featured.ranking()
    found = {row[-3]: row[-1] for row in map(str.split, text.splitlines()) if "item-" in str(row)}
    expected = zip(ranking.items, ranking.habits, strict=True)
    assert found == {item: factor(habit) for item, habit in expected}
    assert "multiplied by the tie factors of both" in in_one_line(text)
    assert "Scores are for two sides that are equal in length." in text


def test_a_tier_is_numbered_at_its_first_item(featured):
    text = shown(summary.print_ranking, featured)
    lines = [line.split() for line in text.splitlines() if "item-" in line]
    tiers = [int(line[0]) for line in lines if not line[0].startswith("item-")]
    assert tiers == sorted(set(featured.ranking().tier.tolist()))


def test_the_papers_model_is_shown_as_before(papers):
    text = shown(summary.print_fit, papers, Path("model"), 1.5)
    assert "(nu 0.3, kappa 30);" in in_one_line(text)
    assert "differ mostly" not in text and "side" not in text
    assert "tier  items (score)" in text
    assert shown(summary.print_card, papers, papers.users_[0]) == ""


@pytest.mark.parametrize("which", ["featured", "forced"])
def test_the_card_of_a_user_says_it_in_words(request, which):
    model = request.getfixturevalue(which)
    card = model.user_card(model.users_[3])
    text = in_one_line(shown(summary.print_card, model, model.users_[3]))
    assert text.startswith(f"{card.user}, {card.n_votes} votes:")
    assert len(card.words) >= 3
    for sentence in card.words:
        assert in_one_line(sentence) in text


def test_a_ranking_does_not_wait_for_votes_that_are_elsewhere(featured, monkeypatch):
    monkeypatch.setattr(type(featured), "has_votes", lambda _: False)
    monkeypatch.setattr(type(featured), "votes", lambda _: pytest.fail("votes were read"))
    assert shown(summary.print_card, featured, featured.users_[0]) == ""
    assert "differ mostly" in shown(summary.print_differences, featured)
    assert "item-01" in shown(summary.print_ranking, featured, featured.users_[0])


def test_a_leaderboard_has_a_line_per_item(featured):
    text = shown(summary.print_leaderboard, featured)
    lines = [line.split() for line in text.splitlines() if " item-" in line]
    board = featured.leaderboard()
    assert [line[2] for line in lines] == board.items.tolist()
    assert [line[-1] for line in lines] == list(board.group)
    assert "W/T/L" in text and "Too few votes" not in text
    for word, means in board.legend().items():
        assert f"{word} {means}." in in_one_line(text)


@pytest.mark.parametrize(
    ("width", "left_out"), [(100, []), (60, ["W/T/L"]), (50, ["votes", "W/T/L"])]
)
def test_on_a_narrow_screen_columns_are_left_out_and_named(width, left_out, featured):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    summary.print_leaderboard(console, featured)
    heading, first = out.getvalue().splitlines()[1:3]
    assert featured.leaderboard().items[0] in first.split()  # whole
    assert [word for word in ("votes", "W/T/L") if word not in heading.split()] == left_out
    named = f"On a wider screen there are also: {', '.join(left_out)}."
    assert (named in out.getvalue()) == bool(left_out)


def test_the_consensus_says_how_readily_items_tie(featured):
    habits = featured.ranking().habits
    items = featured.ranking().items
    least, most = habits.argmin(), habits.argmax()
    sentence = (
        f"Tie factors go from {factor(habits[least])} ({items[least]}) to {factor(habits[most])} "
        f"({items[most]})."
    )
    for printer in (summary.print_leaderboard, summary.print_tiers):
        assert sentence in in_one_line(shown(printer, featured))
    assert sentence not in in_one_line(shown(summary.print_ranking, featured, featured.users_[0]))


def test_items_with_too_few_votes_come_below(featured, monkeypatch):
    board = featured.leaderboard()
    unranked = replace(
        board, rank=np.append(board.rank[:-1], 0), group=(*board.group[:-1], ""),
        votes_missing=np.append(board.votes_missing[:-1], 7),
    )  # fmt: skip
    monkeypatch.setattr(featured, "_board", unranked)
    above, below = shown(summary.print_leaderboard, featured).split("Too few votes to be ranked:\n")
    assert board.items[-1] in below and board.items[-1] not in above
    row = next(line.split() for line in below.splitlines() if "item-" in line)
    assert row[0] == board.items[-1] and row[-1] == "7"


def test_pairs_come_in_the_order_of_their_items(featured):
    text = shown(summary.print_pairs, featured)
    pairs = featured.head_to_head()
    lines = [line.split() for line in text.splitlines() if line.startswith("item-")]
    assert [line[:2] for line in lines] == [
        [item, other] for item, other in zip(pairs.item, pairs.other, strict=True)
    ]
