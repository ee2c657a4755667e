"""Votes of any number of people, some people at a time: a file is read as it comes.

All votes of a person stand together in the file, so that nobody must wait for its end. In a file
that is read at once, as small ones are, they may stand anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.formats import Dropping
from isplitlbi.data.loading import NoVotes, load_table
from isplitlbi.data.notes import Note, added_up
from isplitlbi.data.options import Options
from isplitlbi.data.streams import Batch, stream_tables
from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidVotes, Setting
from isplitlbi.lazy import pl
from isplitlbi.typing import Places

__all__ = ["People", "stream_people"]

BLOCK = 2**22  # bytes of text that are read at a time
USERS_AT_ONCE = 500  # of whom votes are given together: nobody waits long, and nothing grows


class People(NamedTuple):
    """All votes of some people."""

    source: str  # what errors call the file
    votes: Comparisons
    users: list[Any]  # in the order of the file
    share: float | None  # how much of the file has been read by now, where that is known
    notes: tuple[Note, ...]  # on all that was read so far


def stream_people(
    source: str | Path, options: Options | None = None, *, block: int = BLOCK
) -> Iterator[People]:
    """Read the votes of people, one after another, from a file that may be larger than memory.

    Parameters
    ----------
    source
        A path, or ``-`` for standard input.
    options
        How votes are read.
    block
        Bytes of text that are read at a time.
    """
    options = options or Options()
    dropping = Dropping(options.drop_invalid, [], "row")
    seen, held, notes = _Seen(), None, list[Note]()
    batch: Batch | None = None
    for batch in stream_tables(source, options.known, dropping, format=options.format, block=block):
        votes = _votes_of(batch, options, dropping, notes)
        if votes is None:
            continue
        seen.refuse_again(votes, batch)
        votes = votes if held is None else Comparisons.joined(held, votes)
        is_last = votes.user == votes.user[-1]
        held = votes.alone(is_last)
        if not is_last.all():
            ended = votes.alone(~is_last)
            seen.note(ended)
            yield from _in_parts(ended, batch, [*dropping.notes, *notes])
    name = "votes" if batch is None else batch.source
    if held is None or batch is None:
        raise NoVotes.of(name, added_up([*dropping.notes, *notes]))
    yield from _in_parts(held, batch, [*dropping.notes, *notes])


def _votes_of(
    batch: Batch, options: Options, dropping: Dropping, notes: list[Note]
) -> Comparisons | None:
    """Return the votes in a batch; nothing where none can be used."""
    if not batch.table.height:
        return None
    dropping = dropping._replace(notes=[])
    try:
        with batch.counted():
            votes, _, found = load_table(
                Comparisons, batch.table, batch.source, options, dropping, is_part=True
            )
    except NoVotes as nothing:
        notes[:] = added_up([*notes, *nothing.notes])
        return None
    if votes.is_anonymous:
        raise InvalidVotes(
            f"{batch.source}: these votes have no users, so that nobody knows whose they are. Name "
            "the column of users with ", Setting("user", of="column"), ".",
        )  # fmt: skip
    notes[:] = added_up([*notes, *found])
    return votes


def _in_parts(votes: Comparisons, batch: Batch, notes: list[Note]) -> Iterator[People]:
    """Give people in the order of the file, not too many at a time."""
    _, first = np.unique(votes.user, return_index=True)
    order = np.argsort(first, kind="stable")
    for begin in range(0, len(order), USERS_AT_ONCE):
        some = order[begin : begin + USERS_AT_ONCE]
        theirs = votes.alone(np.isin(votes.user, some)) if len(order) > len(some) else votes
        users = votes.users[some].tolist()
        yield People(batch.source, theirs, users, batch.share, added_up(notes))


class _Seen:
    """Who has been here before: eight bytes of each."""

    def __init__(self) -> None:
        self._digests: Places = np.empty(0, dtype=np.uint64)

    def note(self, votes: Comparisons) -> None:
        """Remember people."""
        self._digests = np.union1d(self._digests, _digests(votes))

    def refuse_again(self, votes: Comparisons, batch: Batch) -> None:
        """Refuse votes of somebody whose votes seemed to have ended."""
        again = np.isin(_digests(votes), self._digests)
        if again.any():
            user = show(votes.users[int(np.argmax(again))])
            raise InvalidVotes(
                f"{batch.source}, from row {batch.first_row:,} on: user {user} votes again, whose "
                "votes had ended before. Sort the file by user, so that all votes of a user stand "
                "together."
            )


def _digests(votes: Comparisons) -> Places:
    found: Places = pl.Series(votes.users.tolist()).hash(0).to_numpy()
    return found
