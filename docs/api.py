"""Write api.md, the public surface: what `isplitlbi` and its modules list in ``__all__``.

    python docs/api.py            writes the page anew
    python docs/api.py --check    exits with 1 if the page is out of date

A name is described where it comes first, and only named after that. What no module lists is
private.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Hashable, Iterator
from functools import cached_property
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any, ForwardRef

import isplitlbi

PAGE = Path(__file__).with_name("api.md")

HEAD = """\
# The public surface

Written by `python docs/api.py` from what `isplitlbi` and its modules list in `__all__`. What is
not listed here is private: it may change from one version to the next. Most programs need the first
section alone.
"""


class Bare(str):
    """An annotation that is shown without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the text itself."""
        return str(self)


def public_modules() -> list[ModuleType]:
    """Return the package and those of its modules that say what they export, in order."""
    found = [module.name for module in pkgutil.walk_packages(isplitlbi.__path__, "isplitlbi.")]
    names = sorted(name for name in found if not name.endswith("__main__"))
    modules = [isplitlbi, *(importlib.import_module(name) for name in names)]
    return [module for module in modules if hasattr(module, "__all__")]


def public_classes() -> set[type]:
    """Return all classes that are listed somewhere."""
    things = (getattr(module, name) for module in public_modules() for name in module.__all__)
    return {thing for thing in things if inspect.isclass(thing)}


def first_line(thing: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def signature(thing: Any) -> str:
    """Return how something is called, with the types as they are written."""
    found = inspect.signature(thing)
    parameters = [
        parameter.replace(annotation=bare(parameter.annotation))
        for parameter in found.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    told = str(
        found.replace(parameters=parameters, return_annotation=bare(found.return_annotation))
    )
    told = re.sub(r"<(\w+\.\w+): [^>]*>", r"\1", told)  # a member of an enumeration
    return re.sub(r"<(factory|function|class)[^>]*>", "...", told)


def bare(annotation: Any) -> Any:
    """Return an annotation that shows as it was written."""
    if isinstance(annotation, ForwardRef):
        return Bare(annotation.__forward_arg__)
    return Bare(annotation) if isinstance(annotation, str) else annotation


def described(name: str, thing: Any, public: set[type]) -> list[str]:
    """Return a name, how it is called and what it is for, as lines of a list."""
    if isinstance(thing, GenericAlias):  # a type, written out once
        return [f"- `{name}`: {str(thing).replace('typing.', '')}"]
    if inspect.isclass(thing):
        return [f"- `{name}{arguments_of(thing)}`: {first_line(thing)}", *members(thing, public)]
    if callable(thing):
        return [f"- `{name}{signature(thing)}`: {first_line(thing)}"]
    return [f"- `{name}`: {value(thing)}"]


def arguments_of(thing: type) -> str:
    """Return the arguments of a class, where a caller makes objects of it."""
    is_protocol = getattr(thing, "_is_protocol", False)
    if is_protocol or inspect.isabstract(thing) or issubclass(thing, (enum.Enum, Exception)):
        return ""
    told = signature(thing).removesuffix(" -> None")
    return "" if told in ("()", "(*args, **kwargs)") else told


def value(thing: Any) -> str:
    """Return what a constant is; of a table, the names in it."""
    if isinstance(thing, (dict, list, tuple, set, frozenset)) and thing:
        names = sorted(thing) if isinstance(thing, (set, frozenset)) else list(thing)
        if all(isinstance(name, (str, int, float)) for name in names):
            return ", ".join(f"`{name}`" for name in names)
        return f"{len(names)} of `{type(names[0]).__name__}`"
    if isinstance(thing, (str, int, float)):
        return f"`{thing!r}`"
    return f"of the class `{type(thing).__name__}`"


def members(thing: type, public: set[type]) -> Iterator[str]:
    """Return the public methods and properties of a class; those of a public base by its name."""
    if issubclass(thing, enum.Enum):
        yield "  - " + ", ".join(f"`{member.name}`" for member in thing)
    bases = [base for base in thing.__mro__[1:] if base in public]
    told_there = {part for base in bases for part in base.__mro__}
    for home in (part for part in thing.__mro__ if part.__module__.startswith("isplitlbi")):
        for name, member in sorted(vars(home).items()):
            if name.startswith("_") or home in told_there or vars_first(thing, name) is not home:
                continue
            if isinstance(member, (property, cached_property)):
                yield f"  - `.{name}`: {first_line(member)}"
            elif is_method(member):
                method = getattr(thing, name)
                yield f"  - `.{name}{signature(method)}`: {first_line(method)}"
    if bases:
        yield f"  - and all of `{bases[0].__name__}`"


def vars_first(thing: type, name: str) -> type:
    """Return the class that an attribute comes from."""
    return next(part for part in thing.__mro__ if name in vars(part))


def is_method(member: Any) -> bool:
    """Say whether a member was written as a method."""
    return isinstance(member, (classmethod, staticmethod)) or inspect.isfunction(member)


def page() -> str:
    """Return the page."""
    lines, public = [HEAD], public_classes()
    told: dict[Hashable, str] = {}
    for module in public_modules():
        lines += [f"## {module.__name__}", "", first_line(module), ""]
        again = []
        for name in module.__all__:
            thing = getattr(module, name)
            key = thing if callable(thing) else (name, repr(thing))
            if key in told:
                again.append(f"`{name}` ({told[key]})")
            else:
                told[key] = module.__name__
                lines += described(name, thing, public)
        if again:
            lines.append(f"- described above: {', '.join(again)}")
        lines.append("")
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
        print(f"docs/{PAGE.name} is out of date. Run: python docs/api.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
