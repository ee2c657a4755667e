"""The settings of the library, spelled as options of the command line."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isplitlbi.errors import Setting

__all__ = ["as_option"]

# From the name of a setting in Python to the option that sets it. Where two settings have the same
# name, what one of them belongs to stands before it.
OPTIONS = {
    # how votes are read
    "format": "--input-format",
    "preset": "--preset",
    "user": "--user",
    "left": "--left",
    "right": "--right",
    "winner": "--winner",
    "weight": "--weight",
    "count": "--count",
    "group": "--group",
    "labels": "--label",
    "both_bad": "--both-bad",
    "drop_invalid": "--drop-invalid",
    "features": "--feature",
    "column:time": "--time-column",
    "column:duration": "--duration-column",
    "in_order": "--in-order",
    "since": "--since",
    "until": "--until",
    "anonymous": "--anonymous",
    "id": "--id",
    # how a model is fitted
    "nu": "--nu",
    "kappa": "--kappa",
    "terms": "--terms",
    "scales": "--scale",
    "ties": "--ties",
    "sides": "--sides",
    "link": "--link",
    "rule": "--rule",
    "scoring": "--scoring",
    "n_folds": "--folds",
    "time": "--time",
    "n_jobs": "--threads",
    "random_state": "--seed",
    "call": "--call",
    "client": "--scheduler",
    "checkpoints": "--resume",
    "checkpoint_every": "--checkpoint-seconds",
    "resume": "--resume",
    "force": "--force",
    # what is asked of a model, and of an evaluation
    "fdr": "--fdr",
    "kinds": "--kind",
    "same_as": "--same-as",
    "better_than": "--better-than",
    "title": "--title",
    "methods": "--methods",
    "repeats": "--repeats",
    "test_share": "--test-share",
    "min_votes": "--min-votes",
    "seed": "--seed",
}

# Options that are there or not, and take no value.
SWITCHES = ("--drop-invalid", "--in-order", "--anonymous", "--resume", "--force")


def as_option(setting: Setting) -> str:
    """Spell a setting as it is typed, ready for a shell.

    A setting that has no option is spelled as in Python.

    >>> from isplitlbi.errors import Setting
    >>> as_option(Setting("labels", {"draw": "tie", "no idea": "tie"}))
    "--label draw=tie --label 'no idea=tie'"
    >>> as_option(Setting("drop_invalid", True)), as_option(Setting("format"))
    ('--drop-invalid', '--input-format')
    """
    flag = OPTIONS.get(f"{setting.of}:{setting.name}", OPTIONS.get(setting.name))
    value = setting.value
    if flag is None:
        return setting.in_python()
    if value is None or value is False:
        return f"no {flag}"
    if value is ... or flag in SWITCHES:
        return flag
    if isinstance(value, dict):
        value = [f"{word}={meaning}" for word, meaning in value.items()]
    values = value if isinstance(value, list | tuple) else [value]
    return " ".join(f"{flag} {shlex.quote(str(each))}" for each in values)
