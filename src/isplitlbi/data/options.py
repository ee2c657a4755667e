"""How votes are to be read: what a person may say about a file, whatever its layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from isplitlbi.data.features import feature_names
from isplitlbi.data.notes import ColumnAbsent
from isplitlbi.data.presets import PRESETS, ROLES
from isplitlbi.data.recognition import column_named
from isplitlbi.data.times import Span, refuse_two_orders
from isplitlbi.errors import InvalidSetting, Setting

__all__ = ["OPTIONS", "Options"]


@dataclass(frozen=True)
class Options:
    """How to read votes; see `isplitlbi.data.readers.read_votes`."""

    format: str | None = None
    preset: str | None = None
    user: str | None = None
    left: str | None = None
    right: str | None = None
    winner: str | None = None
    weight: str | None = None
    count: str | None = None
    group: str | None = None
    labels: Mapping[str, str] | None = None
    both_bad: str = "tie"
    drop_invalid: bool = False
    features: Sequence[str] | None = None
    time: str | None = None
    duration: str | None = None
    in_order: bool = False
    since: Any = None
    until: Any = None
    anonymous: bool = False
    id: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no file can be read with."""
        feature_names(self.features)
        refuse_two_orders(self.time, self.in_order)
        self.span.refuse_without_times(self.time)
        if self.anonymous and self.user is not None:
            raise InvalidSetting(
                "votes cannot have users and be anonymous. Leave out ",
                Setting("user", of="column"), " or ", Setting("anonymous", True), ".",
            )  # fmt: skip
        if self.both_bad not in ("tie", "drop"):
            raise InvalidSetting(f"both_bad is {self.both_bad!r}; it must be tie or drop.")

    @property
    def columns(self) -> dict[str, str]:
        """The columns that are named, by role."""
        named = {role: getattr(self, role) for role in ROLES}
        return {role: name for role, name in named.items() if name is not None}

    @property
    def span(self) -> Span:
        """The time that votes are to be from."""
        return Span.of(self.since, self.until)

    @property
    def known(self) -> frozenset[str]:
        """Every column that may be of use."""
        of_features = map(_columns_of_feature, feature_names(self.features))
        of_layouts = (each.known for each in PRESETS.values())
        return frozenset().union(*of_layouts, self.columns.values(), *of_features)

    def fitting(self, columns: list[str]) -> tuple[Options, list[ColumnAbsent]]:
        """Return these options without the columns that a table does not have, and which."""
        named = self.columns
        roles = [role for role in named if column_named(named[role], columns) is None]
        features = feature_names(self.features)
        lacking = [name for name in features if not _columns_of_feature(name) & {*columns}]
        notes = [ColumnAbsent(role, named[role]) for role in roles]
        notes += [ColumnAbsent("feature", name) for name in lacking]
        changed: dict[str, Any] = dict.fromkeys(roles)
        changed |= dict.fromkeys(("since", "until")) if "time" in roles else {}
        changed["features"] = [name for name in features if name not in lacking] or None
        return replace(self, **changed), notes


def _columns_of_feature(name: str) -> set[str]:
    """Return what its columns may be called, in any layout."""
    ends = {side for each in PRESETS.values() for pair in each.sides for side in pair}
    return {f"{name}_{side}" for side in ends} | {name}


# What votes may be read with.
OPTIONS = tuple(option.name for option in fields(Options))
