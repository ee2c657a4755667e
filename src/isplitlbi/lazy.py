"""What is loaded on first use: the names of a package, and the libraries of data frames.

Importing scikit-learn takes longer than most commands, and importing polars longer than answering
--help or reading a small model.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["lazily", "nw", "pl"]


def lazily(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, whose names are in its modules."""

    def find(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(importlib.import_module(package)), *homes})

    return find, names


class _Later(ModuleType):
    """A module that is imported when something of it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl
else:
    nw, pl = _Later("narwhals"), _Later("polars")
