"""The leaderboard: the consensus item by item, with all that says how far to trust it.

Two words must not be mixed up. A *tier* says that people call these items equal: their scores
differ by less than the tie threshold. A *group* says that the votes cannot tell these items apart
yet: more votes may.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.frames import Tabular, numbers_or_empty
from isplitlbi.estimators.cells import aligned, amount, as_html
from isplitlbi.estimators.certainty import Standing
from isplitlbi.lazy import pl
from isplitlbi.markup import printable
from isplitlbi.model.differences import (
    LEVEL,
    information,
    n_surely_apart,
    name_groups,
    student,
    surely_better,
    variances,
    weights_of_mean,
)
from isplitlbi.model.parameters import Consensus
from isplitlbi.model.ranking import Ranking
from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.typing import Floats, Labels, Mask, Places

__all__ = ["Counts", "Leaderboard", "score_intervals"]

# An item is not ranked of which less is known than this share of what is known of the item in the
# middle: its standard error is more than three times as large.
LEAST_KNOWN = 1.0 / 9.0
# What a further vote on an item tells, at least, beside a vote on the item in the middle: an item
# that has only lost so far will meet others like it.
LEAST_PER_VOTE = 0.1

# Naming groups takes the third power of their number in steps, and a table of all pairs.
MOST_IN_GROUPS = 2_500

# What the words of the table mean.
LEGEND = {
    "95 %": "intervals for all {like} like these; ranks hold for all {items} at once",
    "W/T/L": "wins, ties and losses",
    "tier": "{items} of a tier: people call them equal",
    "group": "{items} that share a letter: the votes cannot tell them apart yet",
}
NO_GROUPS = "not found of more than {most:,} {items}"
TOO_FEW = "Too few votes to be ranked:"


class Counts(NamedTuple):
    """How often every item was voted on, won, tied and lost: sums of weights where votes have any.

    Numbers are whole where there are no weights.
    """

    votes: Any
    wins: Any
    ties: Any
    losses: Any

    @classmethod
    def of(cls, votes: Comparisons) -> Counts:
        """Count the votes on every item."""
        sides = ((votes.left, 1), (votes.right, -1))

        def count(result: int) -> Any:
            amounts = [
                np.bincount(
                    side[votes.outcome == sign * result],
                    None if votes.weight is None else votes.weight[votes.outcome == sign * result],
                    votes.n_items,
                )
                for side, sign in sides
            ]
            return amounts[0] + amounts[1]

        wins, ties, losses = count(1), count(0), count(-1)
        return cls(wins + ties + losses, wins, ties, losses)

    def at(self, order: Places) -> Counts:
        """Return the same for some items."""
        return Counts(*(each[order] for each in self))


def score_intervals(scores: Floats, standing: Standing) -> tuple[Floats, Floats]:
    """Return the 95 % intervals of scores, in the order of the items.

    They are of what a score is above a mean of all scores, in which an item counts by what is known
    of it. They lie around the best estimate, and always hold the score.
    """
    covariance = standing.covariance
    weight = weights_of_mean(information(covariance, standing.prior_variance))
    off = covariance * weight if covariance.ndim == 1 else covariance @ weight
    variance = variances(covariance) - 2.0 * off + weight @ off
    middle = standing.estimate + weight @ (scores - standing.estimate)
    reach = student(standing.freedom, 0.5 + 0.5 * LEVEL) * np.sqrt(np.maximum(variance, 0.0))
    return np.minimum(middle - reach, scores), np.maximum(middle + reach, scores)


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(Tabular):
    """The consensus item by item, best first; after that, items with too few votes to be ranked.

    All intervals are of 95 %. Those of differences hold for all pairs of items at once, and ranks
    and groups follow from them.

    Attributes
    ----------
    items : (n_items,) ids
    rank : (n_items,)
        Counted from 1; 0 for an item that is not ranked.
    rank_low, rank_high : (n_items,)
        One more than the number of items that are surely better; the number of items without those
        that are surely worse. Both are 0 for an item that is not ranked.
    score, low, high : (n_items,)
        The score of the consensus, and its interval.
    votes, wins, ties, losses : (n_items,)
        How many votes there are on the item, and how it fared; sums of weights where votes have
        weights.
    tier : (n_items,) or None
        People call the items of a tier equal. 0 for an item that is not ranked, None without ties.
    group : tuple of str
        Two items share a letter if and only if the votes cannot tell them apart. Beyond 26 groups,
        numbers with spaces between them. Empty for an item that is not ranked, and for all items
        where more than 2,500 are.
    votes_missing : (n_items,)
        About how many votes more an item needs to be ranked; 0 for those that are.
    tie_factor : (n_items,) or None
        By which factor each item changes the threshold of its pairs, where items have tie habits.
    nouns : Nouns
        What items are called where this is shown.
    is_of_crowd : bool
        Whether nobody knows whose votes they are: intervals are then for other votes like these,
        not for other people.
    """

    items: Labels
    rank: Places
    rank_low: Places
    rank_high: Places
    score: Floats
    low: Floats
    high: Floats
    votes: Any
    wins: Any
    ties: Any
    losses: Any
    tier: Places | None
    group: tuple[str, ...]
    votes_missing: Places
    tie_factor: Floats | None
    nouns: Nouns = NOUNS
    is_of_crowd: bool = False

    @classmethod
    def of(
        cls,
        items: Labels,
        consensus: Consensus,
        standing: Standing,
        counts: Counts,
        *,
        is_of_crowd: bool = False,
    ) -> Leaderboard:
        """Rank items by their scores in the consensus; all is given in the order of the items."""
        scores, terms = consensus.scores, consensus.terms
        by_score = np.argsort(-scores, kind="stable")
        standing, sorted_counts = standing.at(by_score), counts.at(by_score)
        low, high = score_intervals(scores[by_score], standing)
        missing, apart = _ranked(standing, sorted_counts.votes)
        n_ranked, n_unranked = len(apart.better), len(items) - len(apart.better)
        ranked_first = np.argsort(missing > 0, kind="stable")
        order, ranked = by_score[ranked_first], by_score[missing == 0]
        rank = np.arange(1, n_ranked + 1)
        tier = Ranking.of(
            items[ranked], scores[ranked], consensus.threshold if terms.has_ties else None,
            np.ones(n_ranked, dtype=np.bool_), consensus.habits[ranked],
        ).tier  # fmt: skip

        def filled(values: Places) -> Places:
            return np.append(values, np.zeros(n_unranked, dtype=np.int64))

        return cls(
            items=items[order],
            rank=filled(rank),
            rank_low=filled(np.minimum(1 + apart.better, rank)),
            rank_high=filled(np.maximum(n_ranked - apart.worse, rank)),
            score=scores[order],
            low=low[ranked_first],
            high=high[ranked_first],
            **counts.at(order)._asdict(),
            tier=None if tier is None else filled(tier),
            group=(*apart.groups(), *[""] * n_unranked),
            votes_missing=missing[ranked_first],
            tie_factor=consensus.habits[order] if terms.has_habits else None,
            is_of_crowd=is_of_crowd,
        )

    def __len__(self) -> int:
        return len(self.items)

    @property
    def n_ranked(self) -> int:
        """How many items are ranked; the others come after them."""
        return int(np.count_nonzero(self.rank))

    @property
    def has_groups(self) -> bool:
        """Whether groups were found: not where too many items are ranked."""
        return self.n_ranked <= MOST_IN_GROUPS

    def _table(self) -> pl.DataFrame:
        """Return the items best first, with intervals, votes, tiers and groups.

        Items with too few votes to be ranked come last: their ranks, tier and group are empty.
        Tiers are empty where there are no ties. Where items have tie habits, there is also by which
        factor each changes the threshold of its pairs.
        """
        tier = np.zeros(len(self), dtype=np.int64) if self.tier is None else self.tier
        columns = {
            "rank": numbers_or_empty(self.rank),
            "rank_low": numbers_or_empty(self.rank_low),
            "rank_high": numbers_or_empty(self.rank_high),
            "item": pl.Series(self.items),
            "score": pl.Series(self.score),
            "low": pl.Series(self.low),
            "high": pl.Series(self.high),
            "votes": pl.Series(self.votes),
            "wins": pl.Series(self.wins),
            "ties": pl.Series(self.ties),
            "losses": pl.Series(self.losses),
            "tier": numbers_or_empty(tier),
            "group": pl.Series([group or None for group in self.group], dtype=pl.String),
        }
        if self.tie_factor is not None:
            columns["tie_factor"] = pl.Series(self.tie_factor)
        return pl.DataFrame(columns)

    def __repr__(self) -> str:
        """Say how many items there are, and how many of them cannot be ranked yet."""
        n_unranked = len(self) - self.n_ranked
        few = f", {n_unranked} of them with too few votes to be ranked" if n_unranked else ""
        return f"Leaderboard: {len(self)} items{few}"

    # --- as text ----------------------------------------------------------------------------

    def by_item(self) -> dict[Any, tuple[str, str]]:
        """Return the ranks and the groups of every item as texts; both empty for unranked ones."""
        ranks = map(_range, self.rank_low, self.rank_high)
        groups = map(_short, self.group)
        texts = zip(ranks, groups, strict=True)
        return {
            item: text if rank else ("", "")
            for item, rank, text in zip(self.items.tolist(), self.rank, texts, strict=True)
        }

    def cells(self, *, with_counts: bool = True, with_votes: bool = True) -> list[list[str]]:
        """Return the table of ranked items as texts, the headings first; the item is third."""
        columns = [
            ["rank", *map(str, self.rank)],
            ["95 %", *map(_range, self.rank_low, self.rank_high)],
            ["item", *self._names()],
            ["score", *(f"{score:z.2f}" for score in self.score)],
            ["95 %", *self._intervals()],
        ]
        if with_votes:
            columns.append(["votes", *map(amount, self.votes)])
        if with_counts:
            results = zip(self.wins, self.ties, self.losses, strict=True)
            columns.append(["W/T/L", *("/".join(map(amount, each)) for each in results)])
        if self.tier is not None:
            columns.append(["tier", *map(str, self.tier)])
        if self.has_groups:
            columns.append(["group", *map(_short, self.group)])
        rows = zip(*columns, strict=True)
        return [list(row) for row in rows][: 1 + self.n_ranked]

    def cells_of_unranked(self) -> list[list[str]]:
        """Return the table of items with too few votes as texts; nothing where there are none."""
        if self.n_ranked == len(self):
            return []
        columns = (
            self._names(),
            [f"{score:z.2f}" for score in self.score],
            self._intervals(),
            map(amount, self.votes),
            map(str, self.votes_missing),
        )
        rows = [list(row) for row in zip(*columns, strict=True)]
        return [["item", "score", "95 %", "votes", "votes missing"], *rows[self.n_ranked :]]

    def legend(self, *, with_counts: bool = True) -> dict[str, str]:
        """Return what the words of the table mean."""
        left_out = {"W/T/L": with_counts, "tier": self.tier is not None}
        told = LEGEND if self.has_groups else LEGEND | {"group": NO_GROUPS}
        return {
            word: means.format(
                items=self.nouns.items, like="votes" if self.is_of_crowd else "people",
                most=MOST_IN_GROUPS,
            )
            for word, means in told.items()
            if left_out.get(word, True)
        }  # fmt: skip

    def _names(self) -> list[str]:
        return [printable(str(item)) for item in self.items.tolist()]

    def _intervals(self) -> list[str]:
        return [f"{low:.2f} to {high:.2f}" for low, high in zip(self.low, self.high, strict=True)]

    def __str__(self) -> str:
        """Show one line per item, then those with too few votes, then what the words mean."""
        lines = aligned(self.cells(), self.nouns)
        if rest := self.cells_of_unranked():
            lines += ["", TOO_FEW, *aligned(rest, self.nouns)]
        width = max(map(len, LEGEND))
        lines += ["", *(f"{word:<{width}}  {means}" for word, means in self.legend().items())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show the same in a notebook; an id is text there, whatever is in it."""
        told = [as_html(self.cells(), self.nouns)]
        if rest := self.cells_of_unranked():
            told += [f"<p>{TOO_FEW}</p>", as_html(rest, self.nouns)]
        said = (f"<b>{word}</b>: {escape(means)}" for word, means in self.legend().items())
        return "\n".join([*told, f"<p>{'<br>'.join(said)}</p>"])


class _Apart(NamedTuple):
    """How many items are surely better and worse than each; and which, unless they are many."""

    better: Places
    worse: Places
    pairs: Mask | None

    @classmethod
    def of(cls, standing: Standing) -> _Apart:
        """Look at all intervals of differences at once."""
        estimate, covariance, freedom, _ = standing
        if len(estimate) > MOST_IN_GROUPS and covariance.ndim == 1:
            return cls(*n_surely_apart(estimate, covariance, freedom), None)
        pairs = surely_better(estimate, covariance, freedom)
        return cls(pairs.sum(axis=0), pairs.sum(axis=1), pairs)

    def groups(self) -> list[str]:
        """Return the groups of every item; nothing where there are too many items."""
        n_items = len(self.better)
        if self.pairs is None or n_items > MOST_IN_GROUPS:
            return [""] * n_items
        return name_groups(self.pairs)


def _ranked(standing: Standing, votes: Floats) -> tuple[Places, _Apart]:
    """Return how many votes each item lacks to be ranked, and how the others are apart.

    An item of which little is known is ranked all the same where the votes tell it from most
    others: of one that always wins or loses, a single vote tells little, and its place is clear.
    """
    missing = _votes_missing(standing, votes)
    apart = _Apart.of(standing)
    if not missing.any():
        return missing, apart
    missing[2 * (apart.better + apart.worse) >= len(missing) - 1] = 0
    if missing.any():
        apart = _Apart.of(standing.at(np.flatnonzero(missing == 0)))
    return missing, apart


def _votes_missing(standing: Standing, votes: Floats) -> Places:
    """Return about how many votes each item lacks, at what a vote on it tells."""
    known = information(standing.covariance, standing.prior_variance)
    missing = np.zeros(len(known), dtype=np.int64)
    enough = LEAST_KNOWN * float(np.median(known))
    few = np.flatnonzero(known < enough)
    if len(few):
        middle = np.argsort(known, kind="stable")[len(known) // 2]
        usual = known[middle] / max(float(votes[middle]), 1.0)
        own = known[few] / np.maximum(votes[few], 1e-300)
        per_vote = np.where(own > 0.0, np.maximum(own, LEAST_PER_VOTE * usual), usual)
        missing[few] = np.maximum(np.ceil((enough - known[few]) / per_vote), 1)
    return missing


# --- texts ---------------------------------------------------------------------------------


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _short(group: str) -> str:
    """Return the groups of an item with three or more in a row as a range.

    >>> _short("ab"), _short("abcdeg"), _short("3 4 5 9"), _short("12")
    ('ab', 'a-eg', '3-5 9', '12')
    """
    has_numbers = group[:1].isdigit()
    names, between = (group.split(), " ") if has_numbers else (list(group), "")
    numbers = [int(name) if has_numbers else ord(name) for name in names]
    ends = [place + 1 for place, (one, next_) in enumerate(pairwise(numbers)) if next_ != one + 1]
    runs = [names[begin:end] for begin, end in pairwise([0, *ends, len(names)])]
    return between.join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else between.join(run) for run in runs
    )
