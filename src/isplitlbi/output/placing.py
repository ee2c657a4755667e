"""People placed in bulk: some of them at a time in, rows out, and what to say in the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.notes import Note
from isplitlbi.data.people import People
from isplitlbi.data.vocabulary import Vocabulary, counted
from isplitlbi.errors import InvalidVotes
from isplitlbi.estimators import ISplitLBI
from isplitlbi.lazy import pl
from isplitlbi.markup import printable
from isplitlbi.nouns import Nouns
from isplitlbi.output.tables import as_polars

__all__ = ["InBulk", "as_text_cells", "for_people", "place_in_bulk"]

FEW_ITEMS = 3  # that a table for people names


@dataclass
class InBulk:
    """What was placed."""

    n_users: int = 0
    n_votes: int = 0
    n_abnormal: int = 0
    n_known: int = 0  # users of the model
    n_left_out: int = 0  # votes on items that the model does not know
    n_without_votes: int = 0  # users who had no others
    notes: tuple[Note, ...] = ()

    def sentences(self, nouns: Nouns) -> list[str]:
        """Say what a person should know, besides the rows."""
        said = []
        if self.n_known:
            said.append(
                f"{self.n_known:,} of them {'is' if self.n_known == 1 else 'are'} in the model "
                "already, and placed by these votes alone."
            )
        if self.n_left_out:
            said.append(
                f"{counted(self.n_left_out, 'vote')} left out: on {nouns.items} that the model "
                f"does not know. {nouns.n_users(self.n_without_votes)} had no other votes."
            )
        return said


def place_in_bulk(
    model: ISplitLBI,
    people: Iterable[People],
    write: Callable[[pl.DataFrame], None],
    progress: Callable[[float | None, str], None] | None = None,
    *,
    with_tests: bool = True,
    drops_unknown: bool = False,
) -> InBulk:
    """Place people and write a row for each, in the order of the file.

    Parameters
    ----------
    people
        As `isplitlbi.data.people.stream_people` gives them.
    write
        Called with the rows of some people at a time.
    progress
        Called with the share of the file that was read, and how many people were placed.
    with_tests
        Whether to test everybody.
    drops_unknown
        Whether votes on items that the model does not know are left out; by default they are an
        error.
    """
    found, known = InBulk(), Vocabulary(model.users_, "user")
    for some in people:
        votes, users = _spelled_as_in(model, some.votes), some.users
        if drops_unknown:
            votes, users = _on_known_items(model, votes, users, found)
        found.notes = some.notes
        if len(users):
            placed = model.place(votes, with_tests=with_tests)
            rows = as_polars(placed)
            order = pl.DataFrame({"user": pl.Series(users, dtype=rows["user"].dtype)})
            write(order.join(rows, on="user", how="left", maintain_order="left"))
            found.n_users += len(users)
            found.n_votes += len(votes)
            found.n_abnormal += len(getattr(placed, "abnormal_users_", ()))
            if votes.users.dtype == model.users_.dtype:
                found.n_known += int(np.sum(known.encode(votes.users) >= 0))
        if progress is not None:
            progress(some.share, f"{found.n_users:,} users")
    if not found.n_users:
        raise InvalidVotes(
            f"nobody is left to place: all {found.n_left_out:,} votes are on items that the model "
            "does not know. Update the model with these votes."
        )
    return found


def _spelled_as_in(model: ISplitLBI, votes: Comparisons) -> Comparisons:
    """Return votes with ids of items that are numbers where those of the model are."""
    if model.items_.dtype.kind not in "iu" or votes.items.dtype.kind in "iu":
        return votes
    items = Vocabulary(model.items_, "item")
    return votes.with_items([items.spelled(str(item)) for item in votes.items])


def _on_known_items(
    model: ISplitLBI, votes: Comparisons, users: list[Any], found: InBulk
) -> tuple[Comparisons, list[Any]]:
    """Leave out votes on items that the model does not know, and count them."""
    is_known = Vocabulary(model.items_, "item").encode(votes.items) >= 0
    kept = is_known[votes.left] & is_known[votes.right]
    if kept.all():
        return votes, users
    found.n_left_out += int(np.sum(~kept))
    if not kept.any():
        found.n_without_votes += len(users)
        return votes, []
    votes = votes.alone(kept)
    left = set(votes.users.tolist())
    found.n_without_votes += len(users) - len(left)
    return votes, [user for user in users if user in left]


def as_text_cells(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose lists are texts, as JSON writes them: a cell of CSV holds no list."""
    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    return table.with_columns(
        pl.Series(name, [json.dumps(each, ensure_ascii=False) for each in table[name].to_list()])
        for name in lists
    )


def for_people(table: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that a person reads first: who, how many votes, what was found."""
    best = [
        ", ".join(printable(str(item)) for item in items[:FEW_ITEMS])
        for items in table["item"].to_list()
    ]
    shown = ["user", "votes", "list", "kind", "quality", "effect"]
    numbers = pl.col("quality", "effect").round(2)
    return table.select(shown).with_columns(numbers, pl.Series("best", best))
