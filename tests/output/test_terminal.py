"""What results look like on a terminal."""

import io
from contextlib import contextmanager

import polars as pl
import pytest
from rich.console import Console

from commands import width
from isplitlbi.data.readers import read_votes
from isplitlbi.evaluation.protocol import METHODS, METRICS, Evaluation
from isplitlbi.output import terminal
from isplitlbi.output.terminal import (
    Format,
    emit,
    model_bar,
    print_evaluation,
    print_notes,
    printable,
)
from isplitlbi.runtime.progress import Progress


def test_all_methods_and_long_times_fit_80_columns():
    methods = list(METHODS)
    rows = [
        {"method": method, "repeat": repeat} | dict.fromkeys(METRICS, 0.123 + repeat / 2)
        | {"seconds": 12345.678, "log_loss": None if "alpha" in method else 12.345}
        for method in methods for repeat in range(2)
    ]  # fmt: skip
    found = Evaluation({"repeats": 2, "test_share": 0.2}, pl.DataFrame(rows), {})
    out = io.StringIO()
    print_evaluation(Console(file=out, width=80), found, with_reliability=True)
    shown = out.getvalue()
    assert width(shown) <= 80
    assert "…" not in shown
    lines = [line for line in shown.splitlines() if line and "predicts" not in line]
    for method in methods:
        assert [line.split()[0] for line in lines].count(method) == 3
    assert shown.count("12345.678") == len(methods)


@pytest.mark.parametrize(("ties", "n_shown"), [("allowed", 2), ("none", 0)])
def test_where_there_are_no_ties_nothing_is_said_of_how_well_they_are_predicted(ties, n_shown):
    rows = [{"method": "isplitlbi", "repeat": 0} | dict.fromkeys(METRICS, 0.5)]
    settings = {"repeats": 1, "test_share": 0.2, "ties": ties}
    out = io.StringIO()
    found = Evaluation(settings, pl.DataFrame(rows), {})
    print_evaluation(Console(file=out, width=80), found, with_reliability=False)
    assert out.getvalue().split().count("tie") == n_shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("tea", "tea"), ("茶 🥛", "茶 🥛"), ("a\nb", "a\\nb"), ("\x1b[31mred", "\\x1b[31mred")],
)
def test_an_id_cannot_break_a_line_or_a_terminal(text, shown):
    assert printable(text) == shown


def test_a_table_says_yes_no_and_nothing_in_words(capsys):
    emit(pl.DataFrame({"is_tied": [True, False], "score": [0.12345, None]}), Format.table)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["is", "tied", "score"], ["yes", "0.123"], ["no", "-"]]


def test_notes_go_beside_the_results(tmp_path, capsys):
    file = tmp_path / "votes.csv"
    file.write_text("user,left,right,winner\nann,tea,milk,left\nann,tea,tea,left\n")
    print_notes(read_votes(file, drop_invalid=True))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "1 row dropped" in shown.err


def test_the_bar_says_what_is_done_and_how_many_have_left(monkeypatch):
    told = []

    class Bar:
        def __enter__(self):
            return lambda *what: told.append(what)

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(terminal, "progress_bar", lambda what, quiet: Bar())
    with model_bar("Fitting", quiet=False) as progress:
        progress(Progress(0.25, 1.0, 3))
        progress(Progress(0.75, doing="testing users"))
    assert told == [(0.25, "3 users have left"), (0.75, "testing users")]


def test_whoever_wants_quiet_gets_no_bar():
    with model_bar("Fitting", quiet=True) as progress:
        assert progress is None


LONG = [f"{'a very long id ' * 9}{number}" for number in range(3)]


@pytest.mark.parametrize("columns", ["80", None])
def test_no_id_is_broken_where_there_is_no_terminal(columns, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    rows = {"user": LONG, "item": LONG, "explanation": ["one two three four " * 9] * 3}
    emit(pl.DataFrame(rows), Format.table)
    shown = capsys.readouterr().out
    for name in LONG:
        assert shown.count(name) == 2
    if columns is None:  # what is no id is broken only where a width is asked for
        assert len(shown.splitlines()) == 4


def test_on_a_terminal_ids_are_folded(monkeypatch):
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, highlight=False)
    monkeypatch.setattr(terminal, "standard_output", lambda: console)
    emit(pl.DataFrame({"user": LONG, "item": LONG}), Format.table)
    assert LONG[0] not in out.getvalue() and len(out.getvalue().splitlines()) > 4
    assert console.width == 80


def test_on_a_narrow_screen_headings_take_several_lines_before_names_do(monkeypatch):
    out = io.StringIO()
    console = Console(file=out, width=40, force_terminal=True, color_system=None)
    monkeypatch.setattr(terminal, "standard_output", lambda: console)
    emit(pl.DataFrame({"item": ["a name of 20 letters"], "rank_without": [1], "score_low": [0.5]}),
         Format.table)  # fmt: skip
    assert "a name of 20 letters" in out.getvalue()
    assert len(out.getvalue().splitlines()) == 3


def test_a_bar_comes_only_where_work_takes_longer_than_two_seconds(monkeypatch):
    shown = []

    @contextmanager
    def bar(what, quiet):
        yield lambda done, doing: shown.append((what, done, doing))

    monkeypatch.setattr(terminal, "progress_bar", bar)
    with terminal.late_bar("Predicting", quiet=False) as tell:
        tell(0.1, "100 pairs")
    assert shown == []
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    with terminal.late_bar("Predicting", quiet=False) as tell:
        tell(0.1, "100 pairs")
        tell(None, "200 pairs")
    assert shown == [("Predicting", 0.1, "100 pairs"), ("Predicting", None, "200 pairs")]
