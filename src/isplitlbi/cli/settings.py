"""The settings of a model that is to be fitted, as options; commands that fit share them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import typer

from isplitlbi.cli.options import gathers
from isplitlbi.errors import InvalidSetting

__all__ = [
    "ModelSettings",
    "SidesOf",
    "refuse_unknown_scales",
    "refuse_unknown_sides",
    "takes_settings",
    "takes_terms",
]

ModelSettings = dict[str, Any]  # of `ISplitLBI`, those that were given

TIES, SIDES = ("auto", "allowed", "none"), ("known", "unknown")

TermNames = Annotated[
    str,
    typer.Option(
        "--terms",
        help="In which ways people may differ: all; or paper (the paper's model: taste and a "
        "threshold); or some of taste, threshold, sharpness, side, habit, such as taste,side.",
    ),
]
TiesOf = Annotated[
    str,
    typer.Option(
        "--ties",
        help="Whether the model has ties: auto (if the votes have any), allowed or none.",
    ),
]
SidesOf = Annotated[
    str,
    typer.Option(
        "--sides",
        help="known; or unknown if left and right mean nothing, such as after a shuffle.",
    ),
]
Nu = Annotated[
    list[float] | None,
    typer.Option(
        show_default="chosen from the votes",
        help="Variance of weak deviations. With --terms paper the default is 0.3, and you can give "
        "several values: the best one is chosen.",
    ),
]
Kappa = Annotated[
    list[float] | None,
    typer.Option(
        show_default="chosen from the votes",
        help="Damping of the path. With --terms paper the default is 30, and you can give several "
        "values: the best one is chosen.",
    ),
]
Scales = Annotated[
    list[str] | None,
    typer.Option(
        "--scale",
        metavar="NAME=VALUE",
        show_default="chosen from the votes",
        help="Size of a term relative to taste, such as sharpness=0.5; may be repeated.",
    ),
]


def _chosen_terms(
    terms: TermNames = "all", ties: TiesOf = "auto", sides: SidesOf = "known"
) -> ModelSettings:
    given: ModelSettings = {"terms": _names(terms), "ties": ties, "sides": sides}
    _refuse_others("--ties", ties, TIES)
    refuse_unknown_sides(sides)
    if given["terms"] == "paper" and ties == "none":
        raise InvalidSetting("--ties none: the model of --terms paper always has a threshold.")
    return given


def _settings(
    terms: TermNames = "all",
    ties: TiesOf = "auto",
    sides: SidesOf = "known",
    nu: Nu = None,
    kappa: Kappa = None,
    scale: Scales = None,
) -> ModelSettings:
    given = _chosen_terms(terms, ties, sides)
    for name, values in (("nu", nu), ("kappa", kappa)):
        for value in values or ():
            if not (math.isfinite(value) and value > 0):
                raise InvalidSetting(f"--{name} {value:g}: it must be positive and finite.")
        if len(values or ()) > 1 and given["terms"] != "paper":
            raise InvalidSetting(
                f"--{name} is given more than once: only --terms paper compares several."
            )
        if values:
            given[name] = values[0] if len(values) == 1 else values
    if scale:
        if given["terms"] == "paper":
            raise InvalidSetting("--scale: the model of --terms paper has no scales.")
        given["scales"] = _scales(scale)
    return given


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of a model in place of its parameter ``settings``."""
    return gathers("settings", _settings)(command)


def takes_terms(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of terms, ties and sides in place of ``settings``."""
    return gathers("settings", _chosen_terms)(command)


def refuse_unknown_scales(settings: ModelSettings, features: list[str] | None = None) -> None:
    """Refuse the scale of what is no term of users beside taste; features are terms, too."""
    from isplitlbi.model.terms import TERMS

    known = [*(name for name in TERMS if name != "taste"), *(features or ())]
    for name in settings.get("scales", ()):
        if name == "taste":
            raise InvalidSetting("--scale taste: the size of taste is --nu.")
        if name not in known:
            raise InvalidSetting(f"--scale {name}: {name!r} is not one of {', '.join(known)}.")


def refuse_unknown_sides(sides: str) -> None:
    """Refuse a word that says nothing about sides."""
    _refuse_others("--sides", sides, SIDES)


def _refuse_others(flag: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidSetting(f"{flag} {value!r} is not one of {', '.join(known)}.")


def _names(text: str) -> str | list[str]:
    """Return all, paper, or the names that commas separate."""
    from isplitlbi.model.terms import NAMES

    names = [name.strip() for name in text.split(",")]
    if len(names) == 1 and names[0] in ("all", "paper"):
        return names[0]
    for name in names:
        if name not in NAMES:
            raise InvalidSetting(
                f"--terms: {name!r} is not all, paper, or names among {', '.join(NAMES)}, "
                "separated by commas."
            )
    return names


def _scales(given: list[str]) -> dict[str, float]:
    """Return scales by the names of terms."""
    scales: dict[str, float] = {}
    for each in given:
        name, equals, text = each.rpartition("=")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (equals and name and math.isfinite(value) and value >= 0):
            raise InvalidSetting(
                f"--scale {each}: expected NAME=VALUE, a number from 0 on, such as sharpness=0.5."
            )
        if name in scales:
            raise InvalidSetting(f"--scale {name} is given twice; give it once.")
        scales[name] = value
    return scales
