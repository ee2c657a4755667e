"""Rankings to pairs: what a row says of many items at once becomes a vote on each two of them.

Conventions
-----------
line    one item of one row; the lines of a row stand together, in the order of the row
place   of an item in its row: the lower place is better, and equal places tie

In a pair that comes from places the better item is the left one, since nobody knows who saw which
item on the left. The pairs of a row are one group; of a counted row, every count is one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from isplitlbi.data.counts import BYTES_PER_PAIR, MOST_VOTES, are_too_many
from isplitlbi.data.times import TIMES
from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.lazy import pl
from isplitlbi.typing import Floats, Mask, Places

__all__ = [
    "ORIGIN",
    "best_and_worst",
    "better_rank",
    "numbered",
    "ranking_by_columns",
    "ranking_by_commas",
    "ranking_by_signs",
]

ORIGIN = "origin"  # a column of pairs: where the row that they come from stands, from 0
OF_ROW = ("row", "user", "weight", "count", "group", *TIMES)  # what all pairs of a row have
BEST, BETWEEN, WORST = 1.0, 2.0, 3.0  # places in a set of which the best and the worst are said

Tiers = list[list[str]]  # a ranking: the best items first, those that tie together


def numbered(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with the numbers of its rows, from 1, unless it has them."""
    if "row" in table.columns:
        return table
    return table.with_row_index("row", offset=1).with_columns(pl.col("row").cast(pl.Int64))


# --- lines and pairs -------------------------------------------------------------------------


class _Lines(NamedTuple):
    """The items of all rows, one after another."""

    row: Places  # where the row of every line stands in the table, from 0
    item: pl.Series

    @classmethod
    def across(cls, table: pl.DataFrame, columns: Sequence[str], source: str) -> Self:
        """Take the items of a row from its columns."""
        row = np.repeat(np.arange(table.height), len(columns))
        return cls(row, _across(table, columns, source))

    def only(self, kept: Mask) -> Self:
        """Return some of the lines."""
        return type(self)(self.row[kept], self.item.filter(pl.Series(kept)))

    def pairs(self, source: str) -> tuple[Places, Places]:
        """Return the lines of both items of all pairs that rows hold; the rows in their order."""
        size = np.bincount(self.row)
        n_pairs = float((size * (size - 1.0)).sum()) / 2.0
        if are_too_many(n_pairs, BYTES_PER_PAIR):
            raise InvalidVotes(
                f"{source}: its rows stand for {n_pairs:,.0f} pairs, which is more than can be "
                "held here. Leave out some of them."
            )
        start = np.cumsum(size) - size
        found = []
        for n_items in np.unique(size[size > 1]):
            first = start[size == n_items, np.newaxis]
            found.append([(first + each).ravel() for each in np.triu_indices(n_items, 1)])
        if not found:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        one, other = (np.concatenate(lines) for lines in zip(*found, strict=True))
        if len(found) > 1:
            order = np.argsort(self.row[one], kind="stable")
            one, other = one[order], other[order]
        return one, other

    def table_of(self, table: pl.DataFrame, one: Places, other: Places) -> pl.DataFrame:
        """Return a row per pair, with what belongs to the row that it comes from."""
        table = numbered(table)
        of_row = table.select(name for name in OF_ROW if name in table.columns)
        return of_row[self.row[one]].with_columns(
            pl.Series(ORIGIN, self.row[one]),
            left=self.item.gather(one), right=self.item.gather(other), winner=pl.lit(""),
        )  # fmt: skip

    def refuse_twice(self, n_rows: int, source: str) -> None:
        """Refuse rows that name an item twice."""
        again = pl.DataFrame({"row": self.row, "item": self.item}).is_duplicated().to_numpy()
        if again.any():
            item = show(self.item.filter(pl.Series(again))[0])
            raise InvalidRows.of(
                source, _rows(self.row[again], n_rows), f"item {item} is there twice",
                "Name every item of a row once",
            )  # fmt: skip


def _across(table: pl.DataFrame, columns: Sequence[str], source: str) -> pl.Series:
    """Return the values of some columns, row by row."""
    series = [table[column] for column in columns]
    known = [_as_ids(each, source) for each in series if each.dtype != pl.Null]
    texts = [each for each in known if each.dtype == pl.String]
    if 0 < len(texts) < len(known):
        number = next(each for each in known if each.dtype != pl.String)
        raise InvalidVotes(
            f"{source}: its items are text in one column and integers in the other, such as "
            f"{show(texts[0][0])} and {show(number[0])}. Convert both to one type."
        )
    kind = pl.String if texts or not known else pl.Int64
    one_after_another = pl.concat([each.cast(kind).alias("item") for each in series])
    place = np.arange(len(one_after_another)).reshape(len(columns), -1).T
    return one_after_another.gather(np.ascontiguousarray(place).ravel())


def _as_ids(column: pl.Series, source: str) -> pl.Series:
    """Return texts or whole numbers; refuse a column of others, which no cast may make an id."""
    if isinstance(column.dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if not (column.dtype == pl.String or column.dtype.is_integer()):
        raise InvalidVotes(
            f"{source}: its items hold values of type {column.dtype}, such as "
            f"{show(column.drop_nulls().first())}; expected text or whole numbers. Convert the "
            "columns."
        )
    try:
        return column if column.dtype == pl.String else column.cast(pl.Int64)
    except pl.exceptions.PolarsError:
        raise InvalidVotes(
            f"{source}: item {show(column.max())} is beyond 64-bit integers. Give such ids as text."
        ) from None


def _rows(places: Places, n_rows: int) -> Mask:
    """Tell which rows of a table these are."""
    found = np.zeros(n_rows, dtype=np.bool_)
    found[places] = True
    return found


def _as_groups(pairs: pl.DataFrame) -> pl.DataFrame:
    """Make the pairs of a row a group, unless there are groups; of counted rows, every count."""
    if "group" in pairs.columns:
        return pairs
    row = pairs[ORIGIN].to_numpy()
    start = np.flatnonzero(np.diff(row, prepend=-1))
    size = np.diff(np.append(start, len(row)))
    times = _times(pairs[start]) if "count" in pairs.columns else np.ones(len(start), np.int64)
    if are_too_many(float((size * times.astype(np.float64)).sum())):
        return pairs  # which others refuse, with the name of the column
    start, size = np.repeat(start, times), np.repeat(size, times)
    group = np.repeat(np.arange(1, len(start) + 1), size)
    before = np.cumsum(size) - size
    grouped = pairs[np.repeat(start - before, size) + np.arange(len(group))]
    if "count" in pairs.columns:
        each = pl.Series(np.repeat(times > 1, times)[group - 1])
        grouped = grouped.with_columns(count=pl.when(each).then(pl.lit("1")).otherwise("count"))
    return grouped.with_columns(group=pl.Series(group).cast(pl.String))


def _times(rows: pl.DataFrame) -> Places:
    """Return how often rows count; what is no count stays once, for others to refuse."""
    count = pl.col("count").cast(pl.Float64, strict=False)
    is_count = (count.is_finite() & (count >= 1.0) & (count % 1.0 == 0.0)).fill_null(False)
    times = rows.select(pl.when(is_count).then(count).otherwise(1.0)).to_series()
    return times.clip(upper_bound=MOST_VOTES).cast(pl.Int64).to_numpy()


def _by_place(
    table: pl.DataFrame,
    lines: _Lines,
    place: Floats,
    source: str,
    *,
    ties: bool = True,
    grouped: bool = True,
) -> pl.DataFrame:
    """Compare the items of all rows by their places; those in one place only where they tie."""
    one, other = lines.pairs(source)
    if not ties:
        apart = place[one] != place[other]
        one, other = one[apart], other[apart]
    is_turned = place[one] > place[other]
    better, worse = np.where(is_turned, other, one), np.where(is_turned, one, other)
    outcome = (place[better] < place[worse]).astype(np.int8)
    pairs = lines.table_of(table, better, worse).with_columns(outcome=pl.Series(outcome))
    return _as_groups(pairs) if grouped else pairs


# --- the ways in which rankings are written --------------------------------------------------


def better_rank(table: pl.DataFrame, source: str) -> pl.DataFrame:
    """Compare all systems of a row by their ranks; those of one row of many are one group."""
    systems = [("left", "left_rank"), ("right", "right_rank")]
    systems += [
        (f"item{k}", f"rank{k}")
        for k in range(3, 6)
        if {f"item{k}", f"rank{k}"} <= {*table.columns}
    ]
    items, ranks = zip(*systems, strict=True)
    lines, said = _Lines.across(table, items, source), _across(table, ranks, source)
    rank = said.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    is_rank = np.isfinite(rank) & (rank >= 1.0)
    one, other = lines.pairs(source)
    known = is_rank[one] & is_rank[other]
    outcome = (rank[one] < rank[other]).astype(np.int8) - (rank[one] > rank[other])
    pairs = lines.table_of(table, one, other).with_columns(
        winner=said.gather(np.where(is_rank[one], other, one)),  # what is no rank, if either is not
        outcome=pl.when(pl.Series(known)).then(pl.Series(outcome)),
    )
    return _as_groups(pairs) if len(systems) > 2 else pairs


def ranking_by_columns(table: pl.DataFrame, source: str) -> pl.DataFrame:
    """Compare all items of a row, of which the best stands first; empty fields are passed over."""
    lines, field, n_fields = _items_across(table, source)
    return _by_place(table, lines, field.astype(np.float64), source, grouped=n_fields > 2)


def best_and_worst(table: pl.DataFrame, source: str) -> pl.DataFrame:
    """Compare the best item of a set with all others, and all others with the worst."""
    lines, field, n_fields = _items_across(table, source)
    place = np.full(len(field), BETWEEN)
    for role, its_place in (("best", BEST), ("worst", WORST)):
        said = table[role].cast(pl.String) if table[role].dtype == pl.Null else table[role]
        said = _as_ids(said, source).cast(pl.String)
        if (missing := (said.is_null() | (said == "")).to_numpy()).any():
            raise InvalidRows.of(
                source, missing, f"{role} is missing", "Fill it in or remove the row"
            )
        is_it = (lines.item.cast(pl.String) == said.gather(lines.row)).to_numpy()
        if (nowhere := ~_rows(lines.row[is_it], table.height)).any():
            raise InvalidRows.of(
                source, nowhere,
                f"{role} {show(said.filter(pl.Series(nowhere))[0])} is not one of the items",
                "Correct it, or name the item in the row",
            )  # fmt: skip
        if (both := is_it & (place == BEST)).any():
            raise InvalidRows.of(
                source, _rows(lines.row[both], table.height),
                f"item {show(lines.item.filter(pl.Series(both))[0])} is both best and worst",
                "Correct one of them",
            )  # fmt: skip
        place[is_it] = its_place
    return _by_place(table, lines, place, source, ties=False, grouped=n_fields > 2)


def _items_across(table: pl.DataFrame, source: str) -> tuple[_Lines, Places, int]:
    """Return the items in numbered columns, in which field each stands, and how many there are."""
    columns = sorted(
        (name for name in table.columns if name.startswith("item") and name[4:].isdigit()),
        key=lambda name: int(name[4:]),
    )
    lines = _Lines.across(table, columns, source)
    there = (lines.item.is_not_null() & (lines.item.cast(pl.String) != "")).to_numpy()
    lines = lines.only(there)
    lines.refuse_twice(table.height, source)
    return lines, np.flatnonzero(there) % len(columns), len(columns)


def ranking_by_signs(table: pl.DataFrame, source: str) -> pl.DataFrame:
    """Compare all items of rankings that are written as ``A > B = C``, or as lists of JSON."""
    return _written(table, source, ">")


def ranking_by_commas(table: pl.DataFrame, source: str) -> pl.DataFrame:
    """Compare all items of rankings that are written as ``A,B=C``, or as lists of JSON."""
    return _written(table, source, ",")


def _written(table: pl.DataFrame, source: str, separator: str) -> pl.DataFrame:
    rankings = [_tiers(text, separator) for text in table["winner"].cast(pl.String)]
    for problem, remedy in _PROBLEMS.items():
        if (bad := np.array([found == problem for found in rankings], dtype=np.bool_)).any():
            raise InvalidRows.of(source, bad, problem, remedy)
    names: list[str] = []
    rows: list[int] = []
    places: list[int] = []
    for row, tiers in enumerate(rankings):
        for place, tier in enumerate(tiers):
            names += tier
            rows += [row] * len(tier)
            places += [place] * len(tier)
    lines = _Lines(np.array(rows, dtype=np.int64), pl.Series("item", names, dtype=pl.String))
    lines.refuse_twice(table.height, source)
    return _by_place(table, lines, np.array(places, dtype=np.float64), source)


_MISSING, _EMPTY = "the ranking is missing", "an item of the ranking has no name"
_NO_LIST = "the ranking is a list of something else than names and lists of names"
_PROBLEMS = {
    _MISSING: "Fill it in or remove the row",
    _EMPTY: "Name it, or leave out the sign beside it",
    _NO_LIST: "Write names as text or whole numbers, and those that tie as a list",
}


def _tiers(text: str | None, separator: str) -> Tiers | str:
    """Return what a ranking says, or what is wrong with it."""
    if text is None or not text.strip():
        return _MISSING
    if text.lstrip().startswith("["):
        try:
            return _tiers_of_list(json.loads(text))
        except ValueError:
            pass  # it is the name of an item that begins so
        except RecursionError:
            return _NO_LIST
    tiers = [[name.strip() for name in tier.split("=")] for tier in text.split(separator)]
    return tiers if all(map(all, tiers)) else _EMPTY


def _tiers_of_list(values: list[Any]) -> Tiers | str:
    tiers = [value if isinstance(value, list) else [value] for value in values]
    names = [name for tier in tiers for name in tier]
    if any(isinstance(name, bool) or not isinstance(name, str | int) for name in names):
        return _NO_LIST
    if not names:
        return _MISSING
    return [[str(name) for name in tier] for tier in tiers] if "" not in names else _EMPTY
