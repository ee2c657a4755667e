"""Votes without some users and items, who are named one by one or in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.formats import Dropping, RawFile, read_table
from isplitlbi.data.notes import LeftOut, WeightsScaled, on_weights
from isplitlbi.data.readers import Reading
from isplitlbi.data.recognition import column_named
from isplitlbi.data.vocabulary import Vocabulary, listed, show
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.lazy import pl

__all__ = ["leave_out", "read_ids"]

KINDS = ("user", "item")
OF_THESE = "these votes"


class Ids(NamedTuple):
    """Ids of users or of items, as a file has them."""

    kind: str
    ids: pl.Series


def leave_out(reading: Reading, names: Sequence[str]) -> Reading:
    """Leave out users and items; the notes tell how many votes that were.

    Parameters
    ----------
    reading
        Votes whose ids are text, as those of files are.
    names
        Ids of users or items, and files of them, see `read_ids`. A name that is none of these, or
        more than one, is an error.
    """
    votes = reading.votes
    named: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in names:
        kind, ids = _named_by(name, votes)
        named[kind] += ids
    rest = votes.without(users=named["user"], items=named["item"])
    n_users, n_items = (len(set(named[kind])) for kind in KINDS)
    note = LeftOut(
        users=n_users, items=n_items, count=len(votes) - len(rest),
        other_users=votes.n_users - rest.n_users - n_users,
        other_items=votes.n_items - rest.n_items - n_items,
    )  # fmt: skip
    others = [each for each in reading.notes if not isinstance(each, WeightsScaled)]
    notes = (*others, *on_weights(rest.weight_unit), note)
    return reading._replace(votes=rest, notes=notes)


def read_ids(file: str | Path) -> Ids:
    """Read the ids in a file with a column ``user`` or ``item``; other columns are left alone."""
    raw = RawFile.of(file)
    table = read_table(raw, None, frozenset(KINDS), Dropping(False, [], "row", offer=False))
    found = {kind: name for kind in KINDS if (name := column_named(kind, table.columns))}
    if len(found) != 1:
        problem = "a column user and a column item" if found else "no column user, and none item"
        raise InvalidVotes(
            f"{raw.name}: it has {problem}; found: {listed(table.columns)}. Give one of the two."
        )
    ((kind, name),) = found.items()
    ids = table.column(name).cast(pl.String)
    missing = ids.is_null() | (ids == "")
    if missing.any():
        raise InvalidRows.of(
            raw.name, missing, f"{name} is missing", "Fill it in or remove the row"
        )
    return Ids(kind, ids.unique(maintain_order=True))


def _named_by(name: str, votes: Comparisons) -> tuple[str, list[str]]:
    """Return the users or the items that a name stands for."""
    known = {"user": Vocabulary(votes.users, "user"), "item": Vocabulary(votes.items, "item")}
    if votes.is_anonymous and not Path(name).is_file():  # there is no user to leave out
        del known["user"]
    is_one = [kind for kind, ids in known.items() if ids.encode([name])[0] >= 0]
    is_file = Path(name).is_file()
    if len(is_one) + is_file > 1:
        both = " and ".join(["a file"] * is_file + [_one(kind) for kind in is_one])
        raise InvalidVotes(
            f"{show(name)} is {both}, so it is not clear what to leave out. Write it into a "
            "file with a column user or item, and give that file."
        )
    if is_one:
        return is_one[0], [name]
    if not is_file:
        every: Any = Vocabulary.merged(*known.values())
        raise InvalidVotes(
            f"{show(name)} is neither a file, nor a user, nor an item of {OF_THESE}; the nearest "
            f"is {show(every.nearest(name))}."
        )
    kind, ids = read_ids(name)
    try:
        known[kind].require(ids, OF_THESE)
    except InvalidVotes as error:
        raise InvalidVotes(f"{Path(name).name}: ", *error.args) from None
    return kind, ids.to_list()


def _one(kind: str) -> str:
    return f"{'an' if kind == 'item' else 'a'} {kind}"
