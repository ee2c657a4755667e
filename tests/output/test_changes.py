"""What changed between two models, on a terminal and in the report."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from isplitlbi import Comparisons, MarginMLE, compare
from isplitlbi.estimators.changes import Verdict
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.changes import print_changes, verdict_in_words
from isplitlbi.output.report.since import since_of


@pytest.fixture(scope="module")
def found():
    votes = simulate(n_users=12, n_items=5, votes_per_user=(30, 30), random_state=0).votes
    rows = votes.user < 8
    names = np.array(["tea", "a name that is rather long", "rum", "gin", "ale"])
    columns = votes.users[votes.user], names[votes.left], names[votes.right], votes.outcome
    before = Comparisons.from_arrays(*(each[rows & (votes.left != 4) & (votes.right != 4)]
                                       for each in columns))  # fmt: skip
    models = MarginMLE().fit(before), MarginMLE().fit(Comparisons.from_arrays(*columns))
    return compare(*models, votes=Comparisons.from_arrays(*columns))


def printed(changes, columns):
    console = Console(file=io.StringIO(), width=columns, force_terminal=True, no_color=True,
                      highlight=False)  # fmt: skip
    print_changes(console, changes)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())


def test_a_narrow_screen_leaves_out_moves_before_it_breaks_names(found):
    wide, narrow = printed(found, 110), printed(found, 76)
    assert "moved" in wide
    assert "On a wider screen" not in wide
    assert "a name that is rather long" in narrow
    assert "On a wider screen there are also: moved." in narrow
    assert max(map(len, narrow.splitlines())) <= 76


def test_items_of_one_model_and_predictions_have_tables_of_their_own(found):
    told = printed(found, 110)
    assert "New items" in told
    assert "that are gone" not in told
    assert "log-loss" in told


def test_what_tests_say_of_a_user_is_put_into_words():
    verdict = Verdict("unreliable", "careless", 1.234, 0.0123)
    assert verdict_in_words(verdict) == "unreliable, careless, effect 1.23, q 0.012"
    assert verdict_in_words(Verdict("", "", 0.1, None)) == "on no list, effect 0.10"
    assert verdict_in_words(None) == "-"


def test_bars_of_the_report_lie_where_their_figures_say(found):
    rows = since_of(found)["rows"]
    ends = [(row["left_of_all"], row["left_of_all"] + row["width_of_all"]) for row in rows]
    assert min(low for low, _ in ends) == pytest.approx(0.0)
    assert max(high for _, high in ends) == pytest.approx(100.0)
    span = found.high_of_all.max() - found.low_of_all.min()
    for row, change in zip(rows, found.change, strict=True):
        assert (row["dot"] - row["zero"]) / 100.0 * span == pytest.approx(change)


def test_the_earlier_model_is_called_by_its_day_or_its_file(found):
    before = found.before._replace(date="2026-01-31", file="votes.csv")
    assert since_of(replace(found, before=before))["when"] == "2026-01-31"
    same_day = before._replace(date=found.after.date)
    assert since_of(replace(found, before=same_day))["when"] == "votes.csv"
    assert since_of(replace(found, before=same_day._replace(file=None)))["when"] == (
        "the earlier fit"
    )
