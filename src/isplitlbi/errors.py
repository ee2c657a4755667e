"""What a person can mend, told in a sentence: one base, and a class for each kind.

Whoever catches `ISplitLBIError` has all that this package refuses. Anything else that escapes from
it is a bug of ours. Errors travel between processes: all that they know is in ``args`` or in
attributes, and none of them has an ``__init__`` of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from isplitlbi.typing import Mask, Places

__all__ = [
    "ClusterUnavailable",
    "ISplitLBIError",
    "InvalidRows",
    "InvalidSetting",
    "InvalidVotes",
    "MissingLibrary",
    "PathFailed",
    "PlaceTaken",
    "Setting",
    "UnreadableCheckpoint",
    "UnreadableModel",
    "UnreadablePath",
    "WorkersLost",
]


class Setting(NamedTuple):
    """A setting that a sentence tells of, by its name in Python and what to set it to."""

    name: str
    value: Any = ...
    of: str = ""  # what it belongs to, where another setting may have the same name

    def in_python(self) -> str:
        """Spell it as a keyword argument, such as ``preset='wmt'``."""
        return f"{self.name}=..." if self.value is ... else f"{self.name}={self.value!r}"


class ISplitLBIError(Exception):
    """The base of all that is refused; the message says why, and what to do.

    Parameters
    ----------
    *parts
        What the sentence consists of: texts, and settings, which the command line spells in its
        own way.

    Examples
    --------
    >>> error = ISplitLBIError("Read it with ", Setting("user", "who"), Setting("force", True), ".")
    >>> str(error)
    "Read it with user='who', force=True."
    >>> error.told(lambda setting: f"--{setting.name}")
    'Read it with --user --force.'
    """

    def __str__(self) -> str:
        """Tell it to somebody who calls from Python."""
        return self.told(Setting.in_python, ", ").replace("=....", "=...")  # at its end

    def told(self, spell: Callable[[Setting], str], between: str = " ") -> str:
        """Return the sentence, with settings spelled by a function.

        Settings that stand side by side have ``between`` between them.
        """
        told, after_setting = "", False
        for part in self.args:
            is_setting = isinstance(part, Setting)
            told += between if is_setting and after_setting else ""
            told += spell(part) if is_setting else str(part)
            after_setting = is_setting
        return told


class InvalidSetting(ISplitLBIError, ValueError):
    """A value that a parameter cannot have."""


class InvalidVotes(ISplitLBIError, ValueError):
    """Votes, pairs or ids that cannot be used."""


class InvalidRows(InvalidVotes):
    """Some rows that cannot be used; without them, the others perhaps can.

    Attributes
    ----------
    source : str
        What the votes are called.
    rows : (n_rows,) bool
        Which rows.
    problem : str
        What is wrong with them, such as the first one: a sentence without a stop.
    remedy : tuple of str and Setting
        What to do: parts of another.
    """

    source: str
    rows: Mask
    problem: str
    remedy: tuple[str | Setting, ...]

    @classmethod
    def of(
        cls,
        source: str,
        rows: Any,
        problem: str,
        *remedy: str | Setting,
        numbers: Places | None = None,
    ) -> Self:
        """Name the rows: as ``numbers`` calls them, or as they are counted, from 1."""
        import numpy as np  # here, because the command line answers --help without it

        mask = np.asarray(rows)
        found = np.flatnonzero(mask)
        names = found + 1 if numbers is None else np.unique(numbers[found])
        error = cls(f"{source}, {_rows_named(names)}: {problem}. ", *remedy, ".")
        error.source, error.rows, error.problem, error.remedy = source, mask, problem, remedy
        return error

    def after(self, n_rows: int, source: str | None = None) -> Self:
        """Return the same error on rows that come after so many others, perhaps of a file."""
        import numpy as np

        numbers = np.arange(n_rows + 1, n_rows + 1 + len(self.rows))
        source = self.source if source is None else source
        return self.of(source, self.rows, self.problem, *self.remedy, numbers=numbers)


class UnreadableModel(ISplitLBIError, ValueError):
    """A folder that does not hold a model."""


class UnreadablePath(ISplitLBIError, ValueError):
    """A file that does not hold a path."""


class UnreadableCheckpoint(ISplitLBIError, ValueError):
    """A checkpoint that cannot be used."""


class PlaceTaken(ISplitLBIError, ValueError):
    """A place that something is in already, and is not overwritten."""


class PathFailed(ISplitLBIError, RuntimeError):
    """A path that did not reach its last time."""


class ClusterUnavailable(ISplitLBIError, RuntimeError):
    """A cluster that cannot be worked with."""


class WorkersLost(PathFailed, ClusterUnavailable):
    """There are no workers left to go on with."""


class MissingLibrary(ISplitLBIError, ImportError):
    """An optional library that is not installed."""


def _rows_named(numbers: Places) -> str:
    if len(numbers) == 1:
        return f"row {numbers[0]}"
    *shown, last = [*map(str, numbers[:3]), f"{len(numbers) - 3:,} more"][: len(numbers)]
    return f"rows {', '.join(shown)} and {last}"
