"""Users' deviations and their parts (strong, personal, noise): whom to show, and in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isplitlbi.markup import printable
from isplitlbi.model.decomposition import Decomposition
from isplitlbi.typing import Floats, Places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from isplitlbi.estimators.base import ScoreEstimator
    from isplitlbi.nouns import Nouns

__all__ = [
    "PartsOfUser",
    "PartsShown",
    "parts_by_user",
    "parts_in_words",
    "percent",
    "print_parts",
    "print_parts_of_user",
]

LEAST_SHARE = 0.1  # of a term that is named
MOST_NAMED = 2  # terms of a user


class PartsShown(NamedTuple):
    """The users and the numbers that a picture of the parts has room for."""

    users: Places  # those who have left come first, in order of entry; then the others
    n_left: int  # how many of them have left
    n_left_of_all: int
    n_users_of_all: int  # who have voted
    items: Places  # the best first
    traits: Places  # those in which somebody deviates

    @classmethod
    def of(
        cls, model: ScoreEstimator, parts: Decomposition, most_users: int | None, most_items: int
    ) -> PartsShown:
        """Choose the first to leave and, where there are too many, as many who have not left.

        Of too many items, those with the largest deviations of these users are shown.
        """
        left, others = _in_order(model, parts)
        most = len(left) + len(others) if most_users is None else most_users
        n_left = min(len(left), max(most - len(others), (most + 1) // 2))
        users = np.concatenate([left[:n_left], others[: most - n_left]])
        n_items, everything = len(parts.items), _total(parts)
        size = np.sqrt(np.asarray((everything[users] ** 2).sum(axis=0)))
        largest = np.argsort(-size[:n_items], kind="stable")[:most_items]
        best = np.argsort(-model.consensus_, kind="stable")
        any_trait = np.diff(everything.tocsc().indptr)[n_items : n_items + len(parts.traits)] > 0
        return cls(
            users, n_left, len(left), len(left) + len(others),
            best[np.isin(best, largest)], np.flatnonzero(any_trait),
        )  # fmt: skip

    def counts_in_words(self) -> tuple[str, str]:
        """Say how many are shown of those who have left, and how many of the others."""
        n_others = len(self.users) - self.n_left
        all_others = self.n_users_of_all - self.n_left_of_all
        counts = ((self.n_left, self.n_left_of_all), (n_others, all_others))
        left, others = (f"{n:,}" if n == n_all else f"{n:,} of {n_all:,}" for n, n_all in counts)
        return left, others

    def panels(self, parts: Decomposition) -> list[Floats]:
        """Return P and its three parts, a row per item and trait, a column per user.

        What is 0, or of another part, is no number.
        """
        rows = np.concatenate([self.items, len(parts.items) + self.traits])
        shown = [part[self.users][:, rows].toarray().T for part in (_total(parts), *parts)]
        return [np.where(each == 0.0, np.nan, each) for each in shown]


def _total(parts: Decomposition) -> Any:
    """Return P."""
    return (parts.strong + parts.personal + parts.noise).tocsr()


def _in_order(model: ScoreEstimator, parts: Decomposition) -> tuple[Places, Places]:
    """Return who has left the consensus in order of entry, then who else has voted."""
    order = np.lexsort((-model.distance_to_consensus(), model.entry_times_))
    has_left = np.diff(parts.strong.indptr) > 0
    voted = model.summary_.votes_per_user > 0
    return order[has_left[order]], order[(voted & ~has_left)[order]]


class PartsOfUser(NamedTuple):
    """What one user's deviation is made of, as it is told."""

    user: Any
    left_as: str  # the how manyth to leave
    size: str
    strong: str
    personal: str
    noise: str
    terms: str  # in which the user differs most


def parts_by_user(
    model: ScoreEstimator, parts: Decomposition, users: Places | None = None
) -> list[PartsOfUser]:
    """Return what users' deviations are made of: who has left first, in order of entry.

    The shares of strong, personal and noise are those of the user's squared deviation.
    """
    left, others = _in_order(model, parts)
    rank = {user: str(place) for place, user in enumerate(left.tolist(), start=1)}
    users = np.concatenate([left, others]) if users is None else users
    size = np.sqrt(np.asarray((_total(parts) ** 2).sum(axis=1)))
    shares = parts.shares_of_parts()
    rows = []
    for user in users.tolist():
        strong, personal, noise = (percent(share) for share in shares[user].tolist())
        terms = _terms_in_words(parts.terms, parts.shares[user])
        left_as, how_far = rank.get(user, "-"), f"{size[user]:.2f}"
        rows.append(
            PartsOfUser(parts.users[user], left_as, how_far, strong, personal, noise, terms)
        )
    return rows


def percent(share: float) -> str:
    """Return a share as it is read.

    >>> percent(0.123), percent(0.001), percent(0.0), percent(1.0), percent(0.999)
    ('12 %', '<1 %', '-', '100 %', '>99 %')
    """
    if share == 0.0:
        return "-"
    if share < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 <= share < 1.0 else f"{100 * share:.0f} %"


def _terms_in_words(names: Sequence[str], shares: Floats) -> str:
    """Say in which terms a user differs most.

    >>> _terms_in_words(["taste", "side", "threshold"], np.array([0.2, 0.05, 0.75]))
    'threshold 75 %, taste 20 %'
    """
    largest = np.argsort(-shares, kind="stable")[:MOST_NAMED].tolist()
    named = [place for place in largest if shares[place] >= LEAST_SHARE]
    return ", ".join(f"{names[place]} {percent(shares[place])}" for place in named) or "-"


def parts_in_words(parts: Decomposition, n_users: int, nouns: Nouns) -> str:
    """Say how many users have left, and how many numbers each part has."""
    n_left = int(np.count_nonzero(np.diff(parts.strong.indptr)))
    strong, personal, noise = (part.nnz for part in parts)
    if n_left == 0:
        strong_ones = "Nobody has left the consensus, so nothing is strong."
    else:
        have, their = ("has", "this") if n_left == 1 else ("have", "these")
        who = nouns.user if n_left == 1 else nouns.users
        strong_ones = (
            f"{n_left:,} of {nouns.n_users(n_users)} {have} left the consensus: all {strong:,} "
            f"deviations of {their} {who} are strong."
        )
    if personal + noise == 0:
        return strong_ones
    of_others = "" if n_left == 0 else " of the others"
    first, second = ("is" if n == 1 else "are" for n in (personal, noise))
    return (
        f"{strong_ones} Of the {personal + noise:,} deviations{of_others}, {personal:,} {first} "
        f"personal and {noise:,} {second} noise."
    )


# --- on a terminal -------------------------------------------------------------------------


def print_parts(
    console: Console, model: ScoreEstimator, parts: Decomposition, noise_level: float
) -> None:
    """Print what every user's deviation is made of, then what the words mean.

    Where a screen is too narrow, only the first term that a user differs in is named.
    """
    from rich.measure import Measurement

    from isplitlbi.output.terminal import WIDEST, print_table

    nouns = model.nouns
    n_users = int(np.count_nonzero(model.summary_.votes_per_user))
    console.print(f"{parts_in_words(parts, n_users, nouns)}\n")
    rows = parts_by_user(model, parts)
    table = _table_of_users(console, rows, nouns)
    unbounded = console.options.update(max_width=WIDEST)
    if Measurement.get(console, unbounded, table).maximum > console.width:
        shorter = [row._replace(terms=row.terms.partition(", ")[0]) for row in rows]
        table = _table_of_users(console, shorter, nouns)
    print_table(console, table)
    console.print()
    for word, means in _meaning(noise_level, nouns).items():
        console.print(f"{word:<10}  {means}.")


def _table_of_users(console: Console, rows: Sequence[PartsOfUser], nouns: Nouns) -> Table:
    from rich.table import Table
    from rich.text import Text

    from isplitlbi.output.terminal import MOST_ROWS, of_ids, say_rest

    table = Table(box=None, pad_edge=False)
    table.add_column(nouns.user, **of_ids(console))
    for name in ("left as", "size", "strong", "personal", "noise"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("differs in", overflow="fold")
    for user, *figures, terms in rows[:MOST_ROWS]:
        table.add_row(*map(Text, (printable(str(user)), *figures, printable(terms))))
    say_rest(table, len(rows))
    return table


def _meaning(noise_level: float, nouns: Nouns) -> dict[str, str]:
    return {
        "strong": nouns.in_text("all of a user who has left (the paper calls it abnormal)"),
        "personal": f"numbers beyond {noise_level:g} standard deviations of noise",
        "noise": "the other numbers; all shares are of the squares",
        "size": "the root of the sum of squares, in units of the terms",
        "differs in": "terms, by their share in how margins and thresholds differ",
    }


def print_parts_of_user(
    console: Console, model: ScoreEstimator, parts: Decomposition, user: Any
) -> None:
    """Print what one user's deviation is made of, before its numbers."""
    index = np.array([model.user_index(user)])
    (row,) = parts_by_user(model, parts, index)
    left = "has not left the consensus" if row.left_as == "-" else f"left as number {row.left_as}"
    shares = [
        f"{name} {share}"
        for name, share in zip(("strong", "personal", "noise"), row[3:6], strict=True)
        if share != "-"
    ]
    figures = f"size {row.size} ({', '.join(shares)})" if shares else "no deviation"
    differs = "" if row.terms == "-" else f"; differs in {printable(row.terms)}"
    console.print(f"{printable(str(user))} {left}: {figures}{differs}.\n", markup=False)
