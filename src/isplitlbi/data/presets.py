"""The layouts in which votes come, each a small declaration; a new one goes into `PRESETS`.

Conventions
-----------
role       what a column is for: user, left, right, winner, weight, count, group, time, duration,
           id, or a name that only the layout's own ``pairs`` knows
pairs      a table with a column per role becomes one with a row per vote; rows that cannot be
           used are `InvalidRows`, of what errors call the ``source``. It may add
           ``outcome``   1, 0 or -1 where the row says it without a word, null where it does not
           ``row``       the number in the file of the row that a vote comes from
           ``count``     how many votes the row stands for
           ``origin``    where its row stands in the table, from 0, where rows are several votes
All values are text, as it stands in the file. What else is in the table, such as features, belongs
to the row and to every vote of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from isplitlbi.data.features import LEFT_AND_RIGHT, FeatureColumns, require_columns
from isplitlbi.data.formats import ANY_NUMBER
from isplitlbi.data.outcomes import BOTH_BAD, MODELS, Wording
from isplitlbi.data.rankings import (
    best_and_worst,
    better_rank,
    numbered,
    ranking_by_columns,
    ranking_by_commas,
    ranking_by_signs,
)
from isplitlbi.data.times import TIMES
from isplitlbi.errors import InvalidVotes, Setting
from isplitlbi.lazy import pl

__all__ = ["NAMED_ONLY", "PRESETS", "ROLES", "Preset"]

# Those that people may name.
ROLES = ("user", "left", "right", "winner", "weight", "count", "group", *TIMES, "id")

# Times and ids of votes have no names of their own: they are used only where people name their
# columns.
NAMED_ONLY: dict[str, tuple[str, ...]] = dict.fromkeys((*TIMES, "id"), ())
OPTIONAL = {"weight": ("weight",), "count": ("count",), "group": ("group",), **NAMED_ONLY}

# Where a row is several votes, they cannot all have one id.
OPTIONAL_OF_SEVERAL = {role: names for role, names in OPTIONAL.items() if role != "id"}


def _as_they_are(table: pl.DataFrame, source: str) -> pl.DataFrame:
    return table


@dataclass(frozen=True)
class Preset:
    """One layout: its columns, its words for the outcomes, and how its rows become votes."""

    name: str
    about: str  # its columns in one line, for people
    columns: Mapping[str, tuple[str, ...]]  # role: names it may have, the first found is used
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: OPTIONAL)
    wording: Wording = field(default_factory=Wording)  # how the winner is told
    pairs: Callable[[pl.DataFrame, str], pl.DataFrame] = _as_they_are
    called: Mapping[str, str] = field(default_factory=dict)  # roles that are no column of the file
    unit: str = "row"  # what a vote comes from: a row, or a pair of a row
    holds: str = ""  # what a row is, where that is many votes and is to be told
    # Columns of items that are numbered from 1: what their names begin with. There may be any
    # number of them, beside those that are in `columns`.
    items: tuple[str, ...] = ()
    # What the columns of a feature may end in, of the left and of the right item; where there is
    # nothing, rows are not of two items and have no features.
    sides: tuple[tuple[str, str], ...] = (LEFT_AND_RIGHT,)

    @property
    def known(self) -> frozenset[str]:
        """Every column that the layout may use."""
        choices = [*self.columns.values(), *self.optional.values()]
        numbered = {f"{start}{ANY_NUMBER}" for start in self.items}
        return frozenset(name for names in choices for name in names) | numbered

    @property
    def has_sides(self) -> bool:
        """Whether a row is of two items, and not a ranking of some."""
        return "left" in self.columns

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


def _item_that_won(table: pl.DataFrame, source: str) -> pl.DataFrame:
    won = pl.col("winner")
    is_left, is_right = (won == pl.col(side).cast(pl.String) for side in ("left", "right"))
    return table.with_columns(
        outcome=pl.when(is_left).then(1).when(is_right).then(-1).cast(pl.Int8)
    )


def _left_won(table: pl.DataFrame, source: str) -> pl.DataFrame:
    return table.with_columns(winner=pl.lit(""), outcome=pl.lit(1, dtype=pl.Int8))


def _one_vote_per_count(table: pl.DataFrame, source: str) -> pl.DataFrame:
    table = numbered(table)
    own = ("left_wins", "right_wins", "ties")
    kept = [name for name in table.columns if name not in own]
    votes = [
        table.select(*kept, count=name, winner=pl.lit(""), outcome=pl.lit(outcome, dtype=pl.Int8))
        for name, outcome in (("left_wins", 1), ("right_wins", -1), ("ties", 0))
        if name in table.columns
    ]
    return pl.concat(votes).sort("row", maintain_order=True)


def _ranking(
    name: str,
    about: str,
    columns: Mapping[str, tuple[str, ...]],
    pairs: Callable[[pl.DataFrame, str], pl.DataFrame],
    *,
    holds: str = "a ranking",
    items: tuple[str, ...] = (),
) -> Preset:
    """Declare a layout whose rows are of several items each."""
    return Preset(
        name, about, columns, OPTIONAL_OF_SEVERAL, Wording(takes_labels=False), pairs,
        unit="pair", holds=holds, items=items, sides=(),
    )  # fmt: skip


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
        pairs=better_rank, called={"winner": "a rank"}, unit="pair", sides=(),
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
    Preset(
        "comparative-judgement", "judge,candidate_chosen,candidate_not_chosen",
        {
            "user": ("judge", "judgeId"), "left": ("candidate_chosen", "chosen", "won"),
            "right": ("candidate_not_chosen", "notChosen", "not_chosen", "lost"),
        },
        pairs=_left_won, sides=(("chosen", "not_chosen"),),
    ),
    Preset(
        "label-studio", "completed_by or annotator,left,right,selected (left, right)",
        {
            "user": ("completed_by", "annotator"), **_LEFT_AND_RIGHT, "winner": ("selected",),
        },
        wording=Wording({"left": "left", "right": "right"}),
    ),
    Preset(
        "potato", "user_id,left,right,selection (A, B, tie)",
        {"user": ("user_id",), **_LEFT_AND_RIGHT, "winner": ("selection",)},
        wording=Wording({"A": "left", "B": "right", "tie": "tie"}),
        sides=(LEFT_AND_RIGHT, ("A", "B")),
    ),
    Preset(
        "rapidata", "user,left,right,votedFor (the item that won)",
        {"user": ("user",), **_LEFT_AND_RIGHT, "winner": ("votedFor",)},
        wording=Wording(expected="one of the two items"), pairs=_item_that_won,
    ),
    _ranking(
        "argilla", "user_id,responses (a ranking: A > B = C, or a list)",
        {"user": ("user_id",), "winner": ("responses",)}, ranking_by_signs,
    ),
    _ranking(
        "potato-ranking", "user_id,rank_order (a ranking: A,B=C)",
        {"user": ("user_id",), "winner": ("rank_order",)}, ranking_by_commas,
    ),
    _ranking(
        "rankings", "user,ranking (A > B = C, or a list)",
        {"user": ("user",), "winner": ("ranking",)}, ranking_by_signs,
    ),
    _ranking(
        "ranks", "user,rank1,rank2, and so on (the items, the best first)",
        {"user": ("user",), "item1": ("rank1", "rank_1"), "item2": ("rank2", "rank_2")},
        ranking_by_columns, items=("rank", "rank_"),
    ),
    _ranking(
        "best-worst", "user,best,worst and the items of the set: item1,item2, and so on",
        {
            "user": ("user",), "best": ("best",), "worst": ("worst",),
            "item1": ("item1", "item_1"), "item2": ("item2", "item_2"),
        },
        best_and_worst, holds="a set with its best and its worst item", items=("item", "item_"),
    ),
)  # fmt: skip

PRESETS: dict[str, Preset] = {preset.name: preset for preset in _ALL}
PRESETS["llmfao"] = PRESETS["evalica"]
