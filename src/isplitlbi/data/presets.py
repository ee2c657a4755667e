"""The layouts in which votes come, each a small declaration; a new one goes into `PRESETS`.

Conventions
-----------
role       what a column is for: user, left, right, winner, weight, count, group, time, duration,
           id, or a name that only the layout's own ``pairs`` knows
pairs      a table with a column per role becomes one with a row per vote. It may add
           ``outcome``   1, 0 or -1 where the row says it without a word, null where it does not
           ``row``       the number in the file of the row that a vote comes from
           ``count``     how many votes the row stands for
All values are text, as it stands in the file. What else is in the table, such as features, belongs
to the row and to every vote of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from isplitlbi.data.counts import are_too_many
from isplitlbi.data.features import LEFT_AND_RIGHT, FeatureColumns, require_columns
from isplitlbi.data.notes import ColumnTaken, Note, NoUsers, ReadAs, UsersSetAside
from isplitlbi.data.outcomes import BOTH_BAD, MODELS, Wording
from isplitlbi.data.times import TIMES
from isplitlbi.data.vocabulary import folded, listed
from isplitlbi.errors import InvalidSetting, InvalidVotes, Setting
from isplitlbi.lazy import pl

__all__ = [
    "PRESETS",
    "ROLES",
    "Preset",
    "column_named",
    "find_pairs",
    "lay_out",
    "numbered",
    "require",
    "respelled_columns",
]

# Those that people may name.
ROLES = ("user", "left", "right", "winner", "weight", "count", "group", *TIMES, "id")

# Those of a pair that nobody has voted on yet: of some user's, or of nobody's in particular.
PAIR = ("user", "left", "right")
PAIR_ALONE = ("left", "right")

# Times and ids of votes have no names of their own: they are used only where people name their
# columns.
NAMED_ONLY: dict[str, tuple[str, ...]] = dict.fromkeys((*TIMES, "id"), ())
OPTIONAL = {"weight": ("weight",), "count": ("count",), "group": ("group",), **NAMED_ONLY}

# Where a row is several votes, they cannot all have one id.
OPTIONAL_OF_SEVERAL = {role: names for role, names in OPTIONAL.items() if role != "id"}


def _as_they_are(table: pl.DataFrame) -> pl.DataFrame:
    return table


@dataclass(frozen=True)
class Preset:
    """One layout: its columns, its words for the outcomes, and how its rows become votes."""

    name: str
    about: str  # its columns in one line, for people
    columns: Mapping[str, tuple[str, ...]]  # role: names it may have, the first found is used
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: OPTIONAL)
    wording: Wording = field(default_factory=Wording)  # how the winner is told
    pairs: Callable[[pl.DataFrame], pl.DataFrame] = _as_they_are
    called: Mapping[str, str] = field(default_factory=dict)  # roles that are no column of the file
    unit: str = "row"  # what a vote comes from: a row, or a pair of a row
    # What the columns of a feature may end in, of the left and of the right item; where there is
    # nothing, rows are not of two items and have no features.
    sides: tuple[tuple[str, str], ...] = (LEFT_AND_RIGHT,)

    @property
    def known(self) -> frozenset[str]:
        """Every column that the layout may use."""
        choices = [*self.columns.values(), *self.optional.values()]
        return frozenset(name for names in choices for name in names)

    def without_users(self) -> Preset:
        """Return the same without a column of users."""
        others = {role: names for role, names in self.columns.items() if role != "user"}
        return replace(self, columns=others)

    def features(
        self, names: Sequence[str], columns: list[str], source: str
    ) -> list[FeatureColumns]:
        """Return the columns of features."""
        if names and not self.sides:
            raise InvalidVotes(
                f"{source}: the layout {self.name} makes pairs of rankings, and its rows have no "
                "features of a pair. Write a row for every pair, or leave out ",
                Setting("features", list(names)), ".",
            )  # fmt: skip
        return require_columns(names, columns, self.sides, source)


def _item_that_won(table: pl.DataFrame) -> pl.DataFrame:
    won = pl.col("winner")
    is_left, is_right = (won == pl.col(side).cast(pl.String) for side in ("left", "right"))
    return table.with_columns(
        outcome=pl.when(is_left).then(1).when(is_right).then(-1).cast(pl.Int8)
    )


def _left_won(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(winner=pl.lit(""), outcome=pl.lit(1, dtype=pl.Int8))


def _better_rank(table: pl.DataFrame) -> pl.DataFrame:
    """Compare all systems of a row by their ranks; those of one row of many are one group."""
    systems = [("left", "left_rank"), ("right", "right_rank")]
    systems += [
        (f"item{k}", f"rank{k}")
        for k in range(3, 6)
        if {f"item{k}", f"rank{k}"} <= {*table.columns}
    ]
    table = numbered(table)
    if len(systems) > 2 and "group" not in table.columns:
        table = _one_row_per_count(table).with_row_index("group", offset=1)
        table = table.with_columns(pl.col("group").cast(pl.String))
    of_row = ("row", "user", "weight", "count", "group", *TIMES)
    kept = [name for name in of_row if name in table.columns]
    pairs = []
    for (one, its_rank), (other, others_rank) in combinations(systems, 2):
        first, second = (
            pl.col(rank).cast(pl.Float64, strict=False) for rank in (its_rank, others_rank)
        )
        is_rank = [rank.is_not_null() & (rank >= 1) for rank in (first, second)]
        pairs.append(
            table.select(
                *kept,
                left=one,
                right=other,
                winner=pl.when(is_rank[0]).then(others_rank).otherwise(its_rank),
                outcome=pl.when(is_rank[0] & is_rank[1])
                .then((second - first).sign())
                .cast(pl.Int8),
            )
        )
    return pl.concat(pairs).sort("row", maintain_order=True)


def _one_row_per_count(table: pl.DataFrame) -> pl.DataFrame:
    """Write a row as often as its count says, where each is to be a group of its own.

    What is no count, or too many, stays for others to refuse.
    """
    if "count" not in table.columns:
        return table
    count = pl.col("count").cast(pl.Float64, strict=False)
    is_count = (count.is_finite() & (count >= 1.0) & (count % 1.0 == 0.0)).fill_null(False)
    times = table.select(pl.when(is_count).then(count).otherwise(1.0)).to_series()
    if are_too_many(float(times.sum())):
        return table
    once = table.with_columns(count=pl.when(is_count).then(pl.lit("1")).otherwise("count"))
    return once[np.repeat(np.arange(table.height), times.cast(pl.Int64).to_numpy())]


def numbered(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with the numbers of its rows, from 1, unless it has them."""
    if "row" in table.columns:
        return table
    return table.with_row_index("row", offset=1).with_columns(pl.col("row").cast(pl.Int64))


def _one_vote_per_count(table: pl.DataFrame) -> pl.DataFrame:
    table = numbered(table)
    own = ("left_wins", "right_wins", "ties")
    kept = [name for name in table.columns if name not in own]
    votes = [
        table.select(*kept, count=name, winner=pl.lit(""), outcome=pl.lit(outcome, dtype=pl.Int8))
        for name, outcome in (("left_wins", 1), ("right_wins", -1), ("ties", 0))
        if name in table.columns
    ]
    return pl.concat(votes).sort("row", maintain_order=True)


_LEFT_AND_RIGHT = {"left": ("left",), "right": ("right",)}
_LEFT_RIGHT_TIE = Wording({"left": "left", "right": "right", "tie": "tie"}, numbers=True)
_YES_AND_NO = {"1": "left", "0": "right"} | {
    spelled: outcome
    for word, outcome in (("true", "left"), ("false", "right"))
    for spelled in (word, word.title(), word.upper())
}

_ALL = (
    Preset(
        "canonical", "user,left,right,winner (left, right, tie) or outcome (1, 0, -1)",
        {"user": ("user",), **_LEFT_AND_RIGHT, "winner": ("winner", "outcome")},
        wording=_LEFT_RIGHT_TIE,
    ),
    Preset(
        "evalica", "worker,left,right,winner (left, right, tie)",
        {"user": ("worker",), **_LEFT_AND_RIGHT, "winner": ("winner",)},
        wording=_LEFT_RIGHT_TIE,
    ),
    Preset(
        "crowd-kit", "worker or performer,left,right,label (the id of the item that won)",
        {"user": ("worker", "performer"), **_LEFT_AND_RIGHT, "winner": ("label",)},
        wording=Wording(expected="one of the two items"), pairs=_item_that_won,
    ),
    Preset(
        "arena", "judge or user,model_a,model_b,winner (model_a, model_b, tie, tie (bothbad))",
        {
            "user": ("judge", "judge_hash", "user"), "left": ("model_a",), "right": ("model_b",),
            "winner": ("winner",),
        },
        wording=Wording(MODELS, both_bad=BOTH_BAD),
        sides=(LEFT_AND_RIGHT, ("a", "b")),
    ),
    Preset(
        "wmt", "judgeID,system1Id,system1rank,system2Id,system2rank, and up to system5 (low wins)",
        {
            "user": ("judgeID", "judgeId"),
            "left": ("system1Id",), "left_rank": ("system1rank",),
            "right": ("system2Id",), "right_rank": ("system2rank",),
        },
        {f"{role}{k}": (f"system{k}{name}",)
            for k in range(3, 6) for role, name in (("item", "Id"), ("rank", "rank"))}
        | OPTIONAL_OF_SEVERAL | {"group": ("group", "rankingID")},
        wording=Wording(expected="a number from 1 on", takes_labels=False),
        pairs=_better_rank, called={"winner": "a rank"}, unit="pair", sides=(),
    ),
    Preset(
        "alpaca-eval", "annotator,generator_1,generator_2 (or output_),preference (1, 2, 1.5)",
        {
            "user": ("annotator",), "left": ("generator_1", "output_1"),
            "right": ("generator_2", "output_2"), "winner": ("preference",),
        },
        wording=Wording({"1": "left", "2": "right", "1.5": "tie"}),
        sides=(LEFT_AND_RIGHT, ("1", "2")),
    ),
    Preset(
        "gavel", "Annotator ID,Winner ID,Loser ID",
        {"user": ("Annotator ID",), "left": ("Winner ID",), "right": ("Loser ID",)},
        pairs=_left_won, sides=(("winner", "loser"),),
    ),
    Preset(
        "winner-loser", "user,winner,loser",
        {"user": ("user",), "left": ("winner",), "right": ("loser",)},
        pairs=_left_won, sides=(("winner", "loser"),),
    ),
    Preset(
        "counts", "user,item1,item2,win1,win2 and, where there are ties, tied",
        {
            "user": ("user",), "left": ("item1",), "right": ("item2",),
            "left_wins": ("win1",), "right_wins": ("win2",),
        },
        {"ties": ("tied",), "weight": ("weight",), "group": ("group",)},
        pairs=_one_vote_per_count, called={"count": "a count"}, unit="pair",
        sides=(LEFT_AND_RIGHT, ("1", "2")),
    ),
    Preset(
        "pwcmp", "observer,condition_A,condition_B,is_A_selected (1, 0)",
        {
            "user": ("observer",), "left": ("condition_A",),
            "right": ("condition_B",), "winner": ("is_A_selected",),
        },
        wording=Wording(_YES_AND_NO), sides=(LEFT_AND_RIGHT, ("A", "B")),
    ),
)  # fmt: skip

PRESETS: dict[str, Preset] = {preset.name: preset for preset in _ALL}
PRESETS["llmfao"] = PRESETS["evalica"]


# --- which layout a table has ----------------------------------------------------------------


def lay_out(
    columns: list[str],
    asked: dict[str, str],
    preset: str | None,
    source: str,
    notes: list[Note],
    *,
    anonymous: bool = False,
) -> tuple[Preset, dict[str, str]]:
    """Return the layout of a table and the column of every role.

    A column whose name differs from the known one in case or spaces only is taken, with a note.
    Without users there is no column of theirs: where it is asked for, or none can be it.
    """
    asked = {role: column_named(name, columns) or name for role, name in asked.items()}
    require(asked, columns, source)
    if preset is not None:
        if preset not in PRESETS:
            raise InvalidSetting(f"preset {preset!r} is not one of {', '.join(PRESETS)}.")
        layout = PRESETS[preset]
    else:
        # These say nothing about the layout.
        telling = {role: name for role, name in asked.items() if role not in NAMED_ONLY}
        layout = _recognise_layout(columns, telling, source, anonymous=anonymous)
    if anonymous or not ("user" in asked or _columns_of_users(columns)):
        aside: list[Note] = [UsersSetAside(name) for name in _columns_of_users(columns)[:1]]
        notes += aside if anonymous else [NoUsers()]
        layout = layout.without_users()
    roles = {**layout.columns, **layout.optional}
    for role in asked:
        if role not in roles:
            raise InvalidVotes(
                f"{source}: the layout {layout.name} ({layout.about}) has no column for the "
                f"{role}. Leave out ", Setting(role, of="column"),
                ", or choose another layout with ", Setting("preset"), ".",
            )  # fmt: skip
    names = {}
    for role, choices in roles.items():
        found = {column_named(choice, columns): choice for choice in reversed(choices)}
        present = [column for column in reversed(found) if column is not None]
        present.sort(key=lambda column: column not in choices)  # stable: as they are known first
        if role in asked:
            names[role] = asked[role]
        elif present:
            names[role] = present[0]
            if present[0] not in choices:
                notes.append(ReadAs("the header", present[0], found[present[0]]))
            if len(present) > 1 and role in ("user", "winner"):
                notes.append(ColumnTaken(role, present[0], present[1]))
    require(
        {role: names.get(role, choices[0]) for role, choices in layout.columns.items()},
        columns,
        source,
    )
    return layout, names


def find_pairs(
    columns: list[str], asked: Mapping[str, str], source: str
) -> tuple[Preset, dict[str, str]] | None:
    """Return the layout of a table of pairs, and its columns of user, left and right.

    Layouts are those of votes. Whatever else is in the table, such as outcomes, says nothing here.
    Where no column can be the user, there is none of it. There is nothing to return where no
    layout fits.
    """
    fitting: list[tuple[Preset, dict[str, str]]] = []
    # As they are known, or else in other letters.
    ways = [
        (roles, find) for roles in (PAIR, PAIR_ALONE) for find in (_column_spelled, column_named)
    ]
    for roles, find in ways[: 2 if "user" in asked else 4]:
        for layout in {layout.name: layout for layout in PRESETS.values()}.values():
            names: dict[str, str] = {}
            for role in roles:
                choices = (asked[role],) if role in asked else layout.columns[role]
                there = [name for choice in choices if (name := find(choice, columns))]
                names |= {role: there[0]} if there else {}
            if len(names) == len(roles):
                fitting.append((layout, names))
        if fitting:
            break
    if not fitting:
        return None
    layout, names = fitting[0]
    if layout.name != "canonical" and any(others != names for _, others in fitting):
        raise InvalidVotes(
            f"{source}: its columns fit more than one layout: "
            f"{', '.join(each.name for each, _ in fitting)}. Keep the columns of one."
        )
    if set(layout.optional.get("item3", ())) & set(columns):
        raise InvalidVotes(
            f"{source}: a row of the layout {layout.name} has more than two items. Write a row for "
            "every pair."
        )
    return layout, names


def respelled_columns(
    layout: Preset, names: Mapping[str, str], asked: Mapping[str, str]
) -> list[Note]:
    """Return a note on every column whose name differs from the known one in case or spaces."""
    known = {role: (asked[role],) if role in asked else layout.columns[role] for role in names}
    return [
        ReadAs("the header", name, next(c for c in known[role] if folded(c) == folded(name)))
        for role, name in names.items()
        if name not in known[role]
    ]


def _column_spelled(name: str, columns: list[str]) -> str | None:
    return name if name in columns else None


def column_named(name: str, columns: list[str]) -> str | None:
    """Return the column of a name, or the only one that differs in case or spaces only."""
    if name in columns:
        return name
    alike = [column for column in columns if folded(column) == folded(name)]
    return alike[0] if len(alike) == 1 else None


def _columns_of_users(columns: list[str]) -> list[str]:
    """Return the columns that have the name of users in any layout."""
    names = {folded(name) for layout in PRESETS.values() for name in layout.columns["user"]}
    return [column for column in columns if folded(column) in names]


def _recognise_layout(
    columns: list[str], asked: dict[str, str], source: str, *, anonymous: bool = False
) -> Preset:
    layouts = {layout.name: layout for layout in PRESETS.values()}.values()
    if anonymous or not ("user" in asked or _columns_of_users(columns)):
        asked = {"user": "", **asked}  # there need be none
    absent = {layout.name: _absent(layout, columns, asked) for layout in layouts}
    fitting = [layout for layout in layouts if not absent[layout.name]]
    if not fitting:
        known = {name for layout in layouts for name in layout.known}
        spelled = [name for name in known if column_named(name, columns)]
        absent = {layout.name: _absent(layout, spelled, asked) for layout in layouts}
        fitting = [layout for layout in layouts if not absent[layout.name]]
    if len(fitting) == 1 or (fitting and asked and fitting[0].name == "canonical"):
        return fitting[0]
    if fitting:
        raise InvalidVotes(
            f"{source}: its columns fit more than one layout: "
            f"{', '.join(layout.name for layout in fitting)}. Choose one with ",
            Setting("preset"), ".",
        )  # fmt: skip
    nearest = min(layouts, key=lambda layout: len(absent[layout.name]))
    if len(absent[nearest.name]) == 1:
        (role,) = absent[nearest.name]
        require({role: nearest.columns[role][0]}, columns, source)
    raise InvalidVotes(
        f"{source}: its columns fit no layout known here; found: {listed(columns)}. Say which is "
        "which with ", Setting("user"), ", ", Setting("left"), ", ", Setting("right"), " and ",
        Setting("winner"), ".",
    )  # fmt: skip


def _absent(layout: Preset, columns: list[str], asked: dict[str, str]) -> list[str]:
    """Return the roles of a layout that no column has; all of them where it has not those asked."""
    if not set(asked) <= {*layout.columns, *layout.optional}:
        return [*layout.columns, "nothing"]
    return [
        role
        for role, choices in layout.columns.items()
        if role not in asked and not set(choices) & set(columns)
    ]


def require(names: Mapping[str, str], columns: list[str], source: str) -> None:
    """Refuse a table without the column of some role."""
    for role, name in names.items():
        if name not in columns:
            may_be_named = ("Name the right one with ", Setting(role, of="column"))
            raise InvalidVotes(
                f"{source}: no column {name!r} for the {role.replace('_', ' ')}; "
                f"found: {listed(columns)}. ", *(may_be_named if role in ROLES else ("Add it",)),
                ", or another layout with ", Setting("preset"), ".",
            )  # fmt: skip
