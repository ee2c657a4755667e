"""Write cli.md, the reference of the command line, from what the commands say in --help.

    python docs/cli.py            writes the page anew
    python docs/cli.py --check    exits with 1 if the page is out of date

Arguments and options are read from the functions of `isplitlbi.cli.app.COMMANDS`: their texts are
those of --help.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from typer.models import ArgumentInfo

from isplitlbi.cli.app import COMMANDS

PAGE = Path(__file__).with_name("cli.md")

HEAD = """\
# Commands and options

Written by `python docs/cli.py` from the texts of `isplitlbi COMMAND --help`. What the commands are
for, with examples, is in [commands.md](commands.md).

Every command takes `--help`; `isplitlbi --version` shows the version. Exit codes: 0, the command
did what was asked; 2, it was refused, and a sentence says what to do; 3, of `check` alone, the
votes can be used, with warnings; 130, the command was interrupted; 143 and 129, SIGTERM or a closed
terminal ended it.
"""

PLACEHOLDERS = {
    bool: "",
    int: "NUMBER",
    float: "NUMBER",
    str: "TEXT",
    Path: "PATH",
}


@dataclass(frozen=True)
class Parameter:
    """An argument or an option of a command, as --help has it."""

    spelling: str  # how it is written
    default: str
    text: str
    is_argument: bool


def name_of(command: Callable[..., None]) -> str:
    """Return what a command is called: next is a word of Python's, so its function is next_."""
    return command.__name__.rstrip("_")


def parameters_of(command: Callable[..., None]) -> list[Parameter]:
    """Return the arguments and options of a command, in the order of --help."""
    return [
        parameter_of(parameter)
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if not parameter.annotation.__metadata__[0].hidden
    ]


def parameter_of(parameter: inspect.Parameter) -> Parameter:
    """Return what --help says of one parameter of a command."""
    kind, info = get_args(parameter.annotation)[0], parameter.annotation.__metadata__[0]
    is_required = parameter.default is inspect.Parameter.empty
    if isinstance(info, ArgumentInfo):
        name = info.metavar or parameter.name
        spelling = f"{name}..." if get_origin(kind) is list else name
        return Parameter(f"`{spelling}`", told(parameter.default), one_line(info.help), True)
    # An annotated option has its first spelling where a default would stand otherwise.
    first = [info.default] if isinstance(info.default, str) else []
    spellings = [*first, *(info.param_decls or ())] or [f"--{parameter.name.replace('_', '-')}"]
    words = info.metavar or placeholder(kind)
    spelling = ", ".join(f"`{spelling}`" for spelling in spellings)
    default = "required" if is_required else told(parameter.default, info.show_default)
    return Parameter(
        spelling + (f" `{words}`" if words else ""), default, one_line(info.help), False
    )


def placeholder(kind: Any) -> str:
    """Return what stands for the value of an option."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not types.NoneType)
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return "|".join(str(member.value) for member in kind)
    return PLACEHOLDERS.get(kind, "TEXT")


def told(default: Any, shown: bool | str = True) -> str:
    """Return a default as the table has it."""
    if default is inspect.Parameter.empty:
        return "required"
    if isinstance(shown, str):
        return shown
    if default is None or default is False:
        return ""
    value = default.value if isinstance(default, enum.Enum) else default
    return f"`{value}`"


def one_line(text: str | None) -> str:
    """Return a text that fits into a cell: on one line, and without bars that end it."""
    return " ".join((text or "").split()).replace("|", "\\|")


def table(of: str, parameters: list[Parameter]) -> Iterator[str]:
    """Return a table of arguments, or of options, as lines."""
    if parameters:
        yield f"| {of} | what it says | by default |"
        yield "|---|---|---|"
        for parameter in parameters:
            spelling = parameter.spelling.replace("|", "\\|")
            yield f"| {spelling} | {parameter.text} | {parameter.default} |"
        yield ""


def section(command: Callable[..., None]) -> Iterator[str]:
    """Return the section on a command, as lines."""
    parameters = parameters_of(command)
    arguments = [parameter for parameter in parameters if parameter.is_argument]
    options = [parameter for parameter in parameters if not parameter.is_argument]
    usage = " ".join(
        name.strip("`") if argument.default == "required" else f"[{name.strip('`')}]"
        for argument in arguments
        for name in [argument.spelling]
    )
    yield f"## {name_of(command)}"
    yield ""
    yield f"    isplitlbi {name_of(command)} {usage} [OPTIONS]".replace("  [", " [")
    yield ""
    first, *more = (inspect.getdoc(command) or "").split("\n\n")
    yield one_line(first)
    yield ""
    for paragraph in more:
        lines = [one_line(line) for line in paragraph.splitlines()]
        is_list = all(line.startswith("Exit code") for line in lines)
        yield from ([f"- {line}" for line in lines] if is_list else [" ".join(lines)])
        yield ""
    yield from table("argument", arguments)
    yield from table("option", options)


def page() -> str:
    """Return the page."""
    lines = [HEAD, "| command | what it does |", "|---|---|"]
    for command in COMMANDS:
        text = one_line((inspect.getdoc(command) or "").partition("\n\n")[0])
        lines.append(f"| [{name_of(command)}](#{name_of(command)}) | {text} |")
    lines.append("")
    for command in COMMANDS:
        lines += section(command)
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or say whether it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if out of date")
    check = parser.parse_args(arguments).check
    anew = page()
    if not check:
        PAGE.write_text(anew, encoding="utf-8")
    elif not PAGE.is_file() or anew != PAGE.read_text(encoding="utf-8"):
        print(f"docs/{PAGE.name} is out of date. Run: python docs/cli.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
