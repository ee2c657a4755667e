"""Settings of the library as options."""

import shlex

import pytest
import typer

from isplitlbi.cli.app import app
from isplitlbi.cli.flags import OPTIONS, SWITCHES, as_option
from isplitlbi.errors import Setting


@pytest.mark.parametrize(
    ("setting", "option"),
    [
        (Setting("labels", {"draw": "tie"}), "--label draw=tie"),
        (Setting("labels", {"a tie": "tie", "1": "left"}), "--label 'a tie=tie' --label 1=left"),
        (Setting("labels"), "--label"),
        (Setting("drop_invalid", True), "--drop-invalid"),
        (Setting("format"), "--input-format"),
        (Setting("format", "csv"), "--input-format csv"),
        (Setting("force", True), "--force"),
        (Setting("checkpoints", "folder"), "--resume"),
        (Setting("preset", "wmt"), "--preset wmt"),
        (Setting("user"), "--user"),
        (Setting("winner", "who won?"), "--winner 'who won?'"),
        (Setting("nu", [0.3, 1.0]), "--nu 0.3 --nu 1.0"),
        (Setting("time", None), "no --time"),
        (Setting("time", "when", of="column"), "--time-column when"),
        (Setting("duration", of="column"), "--duration-column"),
        (Setting("user", "who", of="column"), "--user who"),
        (Setting("id", of="column"), "--id"),
        (Setting("in_order", True), "--in-order"),
        (Setting("snapshots", None), "snapshots=None"),
    ],
)
def test_a_setting_is_spelled_as_it_is_typed(setting, option):
    assert as_option(setting) == option


def test_a_label_survives_the_shell():
    words = {"it's": "tie", "$HOME; rm *": "left", "ничья": "tie"}
    typed = shlex.split(as_option(Setting("labels", words)))
    assert typed[::2] == ["--label"] * 3
    assert [pair.rpartition("=")[::2] for pair in typed[1::2]] == list(words.items())


def test_every_option_that_is_named_exists():
    parameters = [
        parameter
        for command in typer.main.get_command(app).commands.values()
        for parameter in command.params
    ]
    assert set(OPTIONS.values()) <= {flag for each in parameters for flag in each.opts}
    switches = {
        flag for each in parameters if getattr(each, "is_flag", False) for flag in each.opts
    }
    assert {flag for flag in OPTIONS.values() if flag in switches} == set(SWITCHES)
