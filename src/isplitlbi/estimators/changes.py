"""What changed between two models of a study, and whether it is more than chance.

Sentences for people call the two models fits: in many studies, models are what is ranked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.frames import Tabular, numbers_or_empty
from isplitlbi.data.vocabulary import counted
from isplitlbi.estimators.cells import aligned
from isplitlbi.estimators.held_out import HeldOut
from isplitlbi.lazy import pl
from isplitlbi.markup import printable
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Floats, Labels, Mask, Places

__all__ = ["AddedVotes", "Changes", "Model", "OneSided", "Pairs", "UserChange", "Verdict"]

NAMED = 3  # items in a sentence
BEFORE, AFTER, BOTH = "before", "after", "both"

LEGEND = {
    "moved": "places gained or lost among the {items} in both fits, with a 95 % interval",
    "change": "of the score, beside the mean of the {items} in both fits",
    "95 %": "interval of the change; all intervals of a table hold at once",
    "changed": "whether that interval leaves out 0",
}


def _printable(label: Any) -> str:
    return printable(str(label))


class Model(NamedTuple):
    """What there is to know of one of the models: the main figures."""

    estimator: str
    file: str | None
    date: str
    n_votes: int
    n_users: int
    n_items: int
    threshold: float | None
    is_tested: bool
    fdr: float


class AddedVotes(NamedTuple):
    """What was added and what is gone: votes, and users and items who have any.

    The same vote has the same user, sides (where these mean something), outcome and weight.
    """

    votes_in_both: int
    votes_added: int
    votes_gone: int
    users_in_both: int
    users_added: int
    users_gone: int


class OneSided(NamedTuple):
    """An item of one model only, as it stands on that leaderboard."""

    item: Any
    rank: int
    rank_low: int
    rank_high: int
    score: float
    low: float
    high: float
    votes: float


class Pairs(NamedTuple):
    """What became of pairs of items that are ranked by both models.

    Attributes
    ----------
    n_pairs : int
    turned : int
        The other item is ahead now.
    surely_turned : int
        Of these: the votes are sure of the order before, and of the order after.
    parted : int
        Pairs that only the votes after can tell apart.
    joined : int
        Pairs that only the votes before could tell apart.
    """

    n_pairs: int
    turned: int
    surely_turned: int
    parted: int
    joined: int


class Verdict(NamedTuple):
    """What the tests say of a user in one model: list, kind, effect and q-value.

    The list is empty for who is on none; the q-value is that of the list, or of being different.
    """

    list: str
    kind: str
    effect: float | None
    q_value: float | None


@dataclass(frozen=True)
class UserChange:
    """A user who is on another list than before, or on a list and in one model only.

    Attributes
    ----------
    change : str
        ``became`` or ``ceased`` to be abnormal, ``moved`` between lists, ``new`` or ``gone``.
    votes_before, votes_after : int
    before, after : Verdict or None
        None for a model without this user.
    """

    user: Any
    change: str
    votes_before: int
    votes_after: int
    before: Verdict | None
    after: Verdict | None


@dataclass(frozen=True, eq=False, repr=False)
class Changes(Tabular):
    """What changed between two models: of the items in both, best after first.

    Attributes
    ----------
    before, after : Model
        The main figures of both models.
    items : (n_items,) ids
        In both models.
    rank_before, rank_after : (n_items,)
        On the leaderboards of both; 0 for an item that is not ranked.
    moved, moved_low, moved_high : (n_items,)
        By how many places an item has risen among the items ranked in both, with a 95 % interval;
        0 for others.
    score_before, score_after : (n_items,)
        Of the leaderboards; those before are shifted, so that the mean of these items is the same.
    change, low, high : (n_items,)
        Of the score, with a 95 % interval for each item by itself.
    low_of_all, high_of_all : (n_items,)
        Intervals that hold for all items at once, in 95 % of studies.
    changed : (n_items,) bool
        Whether that interval leaves out 0.
    votes_before, votes_after : (n_items,)
    new_items, gone_items : tuple of OneSided
    added : AddedVotes
    pairs : Pairs
    users : tuple of UserChange
    held_out : HeldOut or None
        How well both models predict other votes, where some were given.
    is_same : bool
        Whether both models are of the same votes, and their scores are the same.
    remarks : tuple of str
        What else may make a difference, such as other settings.
    nouns : Nouns
        What items and users are called where this is shown.
    """

    before: Model
    after: Model
    items: Labels
    rank_before: Places
    rank_after: Places
    moved: Places
    moved_low: Places
    moved_high: Places
    score_before: Floats
    score_after: Floats
    change: Floats
    low: Floats
    high: Floats
    low_of_all: Floats
    high_of_all: Floats
    changed: Mask
    votes_before: Any
    votes_after: Any
    new_items: tuple[OneSided, ...]
    gone_items: tuple[OneSided, ...]
    added: AddedVotes
    pairs: Pairs
    users: tuple[UserChange, ...]
    held_out: HeldOut | None
    is_same: bool
    remarks: tuple[str, ...]
    nouns: Nouns = NOUNS

    _shown = ("item", "rank_before", "rank_after", "score_after", "change", "low", "high")

    # --- as tables --------------------------------------------------------------------------

    def _table(self) -> pl.DataFrame:
        """Return every item of either model; ``found_in`` says whether it is in both.

        Those in both come first, then the new ones, then those that are gone. What an item lacks
        in one of the models is empty.
        """
        n_items = len(self.items)
        common: dict[str, Any] = {
            "item": self.items.tolist(),
            "found_in": [BOTH] * n_items,
            "rank_before": numbers_or_empty(self.rank_before),
            "rank_after": numbers_or_empty(self.rank_after),
            **{name: self._of_ranked(name) for name in ("moved", "moved_low", "moved_high")},
            "score_before": self.score_before,
            "score_after": self.score_after,
            "change": self.change,
            "low": self.low,
            "high": self.high,
            "low_of_all": self.low_of_all,
            "high_of_all": self.high_of_all,
            "changed": self.changed,
            "votes_before": np.asarray(self.votes_before, dtype=np.float64),
            "votes_after": np.asarray(self.votes_after, dtype=np.float64),
        }
        table = pl.DataFrame(common)
        parts = [table]
        for which, some in ((AFTER, self.new_items), (BEFORE, self.gone_items)):
            if some:
                apart = pl.DataFrame(
                    {
                        "item": [each.item for each in some],
                        "found_in": [which] * len(some),
                        f"rank_{which}": numbers_or_empty(each.rank for each in some),
                        f"score_{which}": [each.score for each in some],
                        f"votes_{which}": [float(each.votes) for each in some],
                    }
                )
                parts.append(apart.cast({"item": table.schema["item"]}))
        return pl.concat(parts, how="diagonal")

    def _of_ranked(self, name: str) -> pl.Series:
        """Return a column that only items have which are ranked in both models."""
        ranked = pl.Series((self.rank_before > 0) & (self.rank_after > 0))
        return pl.Series(getattr(self, name)).set(~ranked, None)

    def users_table(self) -> pl.DataFrame:
        """Return the users who became abnormal or ceased to be, with what was before and after."""
        columns: dict[str, Any] = {
            "user": [each.user for each in self.users],
            "change": [each.change for each in self.users],
            "votes_before": [each.votes_before for each in self.users],
            "votes_after": [each.votes_after for each in self.users],
        }
        types = {"list": pl.String, "kind": pl.String, "effect": pl.Float64, "q_value": pl.Float64}
        for which in (BEFORE, AFTER):
            for name, kind in types.items():
                verdicts = (getattr(each, which) for each in self.users)
                values = [
                    None if verdict is None else getattr(verdict, name) or None
                    for verdict in verdicts
                ]
                columns[f"{name}_{which}"] = pl.Series(values, dtype=kind)
        return pl.DataFrame(columns)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, such as for JSON."""
        return {
            "sentences": self.sentences(),
            "remarks": list(self.remarks),
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "added": self.added._asdict(),
            "items": self._table().to_dicts(),
            "new_items": [each._asdict() for each in self.new_items],
            "gone_items": [each._asdict() for each in self.gone_items],
            "pairs": self.pairs._asdict(),
            "users": self.users_table().to_dicts(),
            "held_out": None if self.held_out is None else self.held_out.as_dict(),
        }

    def cells(self) -> list[list[str]]:
        """Return the table of the items in both models as texts, the headings first."""
        rows = [["item", "rank", "moved", "95 %", "score", "change", "95 %", "changed"]]
        for at, item in enumerate(self.items.tolist()):
            then, now = int(self.rank_before[at]), int(self.rank_after[at])
            moved, between = "-", "-"
            if then and now:
                moved = f"{self.moved[at]:+d}" if self.moved[at] else "0"
                between = _between(int(self.moved_low[at]), int(self.moved_high[at]), "d")
            rows.append(
                [
                    printable(str(item)),
                    f"{then or '-'} > {now or '-'}" if then != now else str(now or "-"),
                    moved,
                    between,
                    f"{self.score_after[at]:.2f}",
                    _signed(self.change[at]),
                    _between(self.low_of_all[at], self.high_of_all[at], ".2f"),
                    "yes" if self.changed[at] else "no",
                ]
            )
        return rows

    def cells_of_one_sided(self, items: Sequence[OneSided]) -> list[list[str]]:
        """Return items of one model only as texts, the headings first."""
        rows = [["rank", "95 %", "item", "score", "95 %", "votes"]]
        for each in items:
            ranks = "-" if not each.rank else str(each.rank_low)
            if each.rank_low != each.rank_high:
                ranks = f"{each.rank_low}-{each.rank_high}"
            rows.append(
                [
                    str(each.rank or "-"),
                    ranks,
                    printable(str(each.item)),
                    f"{each.score:.2f}",
                    f"{each.low:.2f} to {each.high:.2f}",
                    f"{each.votes:g}",
                ]
            )
        return rows

    def legend(self) -> dict[str, str]:
        """Return what the words of the table mean."""
        return {word: means.format(items=self.nouns.items) for word, means in LEGEND.items()}

    # --- in words ---------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Say whether anything changed."""
        return f"Changes: {self.sentence()}"

    def __str__(self) -> str:
        """Show all sentences, then the table of the items in both models."""
        lines = [*self.sentences(), "", *aligned(self.cells(), self.nouns), ""]
        width = max(map(len, LEGEND))
        lines += [f"{word:<{width}}  {means}" for word, means in self.legend().items()]
        return "\n".join(lines)

    def _said(self) -> list[str]:
        return self.sentences()

    def sentences(self, named: Callable[[Any], str] = _printable) -> list[str]:
        """Say everything, a sentence for each thing; how an id is written, a function may say."""
        said = [self.of_votes(), self.sentence(named), self.of_pairs(), self.of_threshold()]
        said += [self.of_users(), *self.remarks]
        if self.held_out is not None:
            said += [self.held_out.sentence(), *self.held_out.remarks(self.nouns)]
        return [each for each in said if each]

    def sentence(self, named: Callable[[Any], str] = _printable) -> str:
        """Say which items changed by more than chance, or that none did."""
        nouns, n_changed = self.nouns, int(self.changed.sum())
        n_items = nouns.n_items(len(self.items))
        if self.is_same:
            return "Nothing changed: the votes and the scores of both fits are the same."
        if n_changed == 0:
            return (
                f"Nothing changed by more than chance: the intervals of all {n_items} hold 0 "
                "(95 % for all at once)."
            )
        by_size = np.argsort(-np.abs(self.change), kind="stable")
        told = [
            f"{named(self.items[at])} {'rose' if self.change[at] > 0.0 else 'fell'} by "
            f"{abs(self.change[at]):.2f} ({self._ends(int(at))})"
            for at in by_size
            if self.changed[at]
        ]
        rest = n_changed - NAMED
        more = [f"{rest} more"] if rest > 0 else []
        verb = "changed" if n_changed > 1 else "has changed"
        return (
            f"{n_changed} of {n_items} {verb} by more than chance (95 % for all at once): "
            f"{_listed([*told[:NAMED], *more])}."
        )

    def _ends(self, at: int) -> str:
        ends = self.low_of_all[at], self.high_of_all[at]
        low, high = ends if self.change[at] > 0.0 else (-ends[1], -ends[0])
        return f"{low:.2f} to {high:.2f}"

    def of_votes(self) -> str:
        """Say how many votes, users and items were added, and how many are gone."""
        if self.is_same:
            return ""
        found, nouns = self.added, self.nouns
        n_new, n_gone = len(self.new_items), len(self.gone_items)
        if not found.votes_added and not found.votes_gone:
            return "Both fits have the same votes: all differences come from the settings."
        more = [counted(found.votes_added, "vote")] if found.votes_added else []
        more += [nouns.n_users(found.users_added)] if found.users_added else []
        more += [nouns.n_items(n_new)] if n_new else []
        less = [counted(found.votes_gone, "vote")] if found.votes_gone else []
        less += [nouns.n_users(found.users_gone)] if found.users_gone else []
        less += [nouns.n_items(n_gone)] if n_gone else []
        parts = [f"{_listed(more)} {_are(more)} new"] if more else []
        parts += [f"{_listed(less)} {_are(less)} gone"] if less else []
        common = f"{counted(found.votes_in_both, 'vote')} by {nouns.n_users(found.users_in_both)}"
        if not found.votes_in_both:
            common = f"no vote, and {nouns.n_users(found.users_in_both)}"
        return f"Both fits share {common}; {'; '.join(parts)}."

    def of_pairs(self) -> str:
        """Say how many pairs of items changed their order, and which the votes tell apart."""
        found, items = self.pairs, self.nouns.items
        if self.is_same or found.n_pairs == 0:
            return ""
        n_pairs = f"{found.n_pairs:,} pair{'' if found.n_pairs == 1 else 's'} of {items}"
        if found.turned == 0:
            said = f"No pair of {items} changed order"
        else:
            sure = "none" if found.surely_turned == 0 else f"{found.surely_turned:,}"
            said = f"{found.turned:,} of {n_pairs} changed order, {sure} of them surely"
        groups = []
        if found.parted:
            groups.append(f"the votes now tell {_pairs(found.parted)} apart that they could not")
        if found.joined:
            groups.append(f"the votes no longer tell {_pairs(found.joined)} apart")
        return f"{'; '.join([said, *groups])}."

    def of_threshold(self) -> str:
        """Say how the tie threshold changed."""
        then, now = self.before.threshold, self.after.threshold
        if self.is_same or (then is None and now is None):
            return ""
        if then is None or now is None:
            without = BEFORE if then is None else AFTER
            return f"The fit {without} has no tie threshold: none of its votes is a tie."
        return f"The tie threshold was {then:.2f} and is {now:.2f}."

    def of_users(self) -> str:
        """Say how many users became abnormal, and how many ceased to be."""
        untested = [
            which
            for which, model in ((BEFORE, self.before), (AFTER, self.after))
            if not model.is_tested
        ]
        users = self.nouns.users
        if untested:
            which = "neither fit" if len(untested) == 2 else f"the fit {untested[0]}"
            verb = "tested its" if len(untested) == 2 else "did not test its"
            said = f"{which} {verb} {users}"
            return f"{said[0].upper()}{said[1:]}, so there is no telling who became abnormal."
        if self.is_same:
            return ""
        count = {name: 0 for name in ("became", "ceased", "moved", "new", "gone")}
        for each in self.users:
            count[each.change] += 1
        said = (
            f"Of {self.nouns.n_users(self.added.users_in_both)} in both fits, {count['became']} "
            f"became abnormal, {count['ceased']} ceased to be"
        )
        if count["moved"]:
            said += f", {count['moved']} moved to the other list"
        if self.added.users_added:
            said += f"; {count['new']} of {self.added.users_added:,} new {users} are abnormal"
        if self.added.users_gone:
            said += f"; {count['gone']} of {self.added.users_gone:,} {users} who are gone were"
        return f"{said}."


def _pairs(n: int) -> str:
    return "one pair" if n == 1 else f"{n:,} pairs"


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 and names[0].startswith("1 ") else "are"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _signed(value: float) -> str:
    """Return a number with its sign; none where it is nothing.

    >>> _signed(0.123), _signed(-0.001), _signed(-1.0)
    ('+0.12', '0.00', '-1.00')
    """
    text = f"{value:+.2f}"
    return text[1:] if not text.strip("+-0.") else text


def _between(low: float, high: float, how: str) -> str:
    """Return an interval; an end that is below zero by little keeps its sign.

    >>> _between(-0.001, 0.5, ".2f"), _between(-1, 2, "d"), _between(-0.0, 0.0, ".2f")
    ('-0.00 to 0.50', '-1 to 2', '0.00 to 0.00')
    """
    return " to ".join(f"{value or 0:{how}}" for value in (low, high))
