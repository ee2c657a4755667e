"""What is known of every user, as a table: the list, the effect, the tests, the entry."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from isplitlbi.abnormal import DIFFERENT, LISTS, UNRELIABLE, Abnormality
from isplitlbi.data.frames import Tabular
from isplitlbi.lazy import pl
from isplitlbi.typing import Floats, Labels, Places

__all__ = ["Everybody", "TestedUsers"]

_NUMBERS = (
    "p_value", "q_value", "p_unreliable", "q_unreliable", "effect", "effect_low", "effect_high",
    "quality",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Everybody:
    """What a fit says of every user, before any test."""

    users: Labels
    votes: Places  # of each
    entry_times: Floats  # infinite for who never left the consensus
    distance: Floats  # to the consensus

    def table(self, found: Abnormality | None) -> pl.DataFrame:
        """Return every user: the unreliable first, then the different, then the others.

        Those on a list stand in order of their effect, the largest first; the others in order of
        entry. Who never left the consensus has no entry time and no rank; among those, the furthest
        from the consensus stands first. List, kind and explanation are those of abnormal users;
        where a user has too few votes to be called abnormal, the explanation says how many it would
        take. Where users were not tested, all that comes from the tests is empty.
        """
        by_entry = np.lexsort([-self.distance, self.entry_times])
        rank = np.empty(len(by_entry), dtype=np.int64)
        rank[by_entry] = np.arange(1, len(by_entry) + 1)
        order = by_entry if found is None else _by_list(found, rank)
        entry = self.entry_times[order]
        stayed = pl.Series(~np.isfinite(entry))
        return pl.DataFrame(
            {
                "user": self.users[order],
                "votes": self.votes[order],
                "entry_time": pl.Series(entry).set(stayed, None),
                "entry_rank": pl.Series(rank[order]).set(stayed, None),
                "distance": self.distance[order],
                **_tests(found, order),
            }
        )


@dataclass(frozen=True, eq=False, repr=False)
class TestedUsers(Abnormality, Tabular):
    """What the tests have found of every user of a model, with what the fit says of them."""

    __test__ = False  # no test of ours, whatever its name looks like

    everybody: Everybody

    _shown = ("user", "votes", "list", "kind", "effect", "quality", "explanation")

    @classmethod
    def of(cls, found: Abnormality, everybody: Everybody) -> Self:
        """Put both together."""
        values = {field.name: getattr(found, field.name) for field in fields(Abnormality)}
        return cls(**values, everybody=everybody)

    def __repr__(self) -> str:
        """Say how many users are on the lists."""
        n_unreliable, n_different = (int(self.on(name).sum()) for name in (UNRELIABLE, DIFFERENT))
        return (
            f"TestedUsers: {n_unreliable} unreliable and {n_different} different of "
            f"{len(self.list)} users, at a false discovery rate of {self.fdr:g}"
        )

    def _table(self) -> pl.DataFrame:
        return self.everybody.table(self)


def _by_list(found: Abnormality, rank: Places) -> Places:
    """Return users list by list, each by effect; who is on none in order of entry."""
    places = np.array([LISTS.index(name) if name else len(LISTS) for name in found.list])
    effect = np.where(found.flagged, found.effect, 0.0)
    return np.lexsort((rank, -effect, places))


def _types_of_tests() -> dict[str, Any]:
    """Return what the tests say of users, in the order of columns, and of which type it is."""
    return {
        "p_value": pl.Float64, "q_value": pl.Float64, "abnormal": pl.Boolean, "kind": pl.String,
        "quality": pl.Float64, "explanation": pl.String, "list": pl.String, "effect": pl.Float64,
        "effect_low": pl.Float64, "effect_high": pl.Float64, "p_unreliable": pl.Float64,
        "q_unreliable": pl.Float64,
    }  # fmt: skip


def _tests(found: Abnormality | None, order: Places) -> dict[str, pl.Series]:
    """Return what the tests say of users, in this order; nothing where there were none."""
    types = _types_of_tests()
    if found is None:
        return {name: pl.Series([None] * len(order), dtype=kind) for name, kind in types.items()}
    explained = [
        said or _too_few(needed)
        for said, needed in zip(found.explanation, found.votes_needed, strict=True)
    ]
    values: dict[str, Any] = {name: getattr(found, name)[order] for name in _NUMBERS}
    values["abnormal"] = found.flagged[order]
    for name, texts in (("list", found.list), ("kind", found.kind), ("explanation", explained)):
        values[name] = [texts[user] or None for user in order]
    columns = {name: pl.Series(values[name], dtype=kind) for name, kind in types.items()}
    return columns | {name: columns[name].fill_nan(None) for name in _NUMBERS}


def _too_few(votes_needed: int) -> str | None:
    if not votes_needed:
        return None
    return f"has too few votes to be called abnormal; it would take about {votes_needed}"
