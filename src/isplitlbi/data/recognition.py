"""Which layout a table has: by the names of its columns, and by what a person says of them."""

from __future__ import annotations

from collections.abc import Mapping

from isplitlbi.data.formats import known_columns
from isplitlbi.data.notes import ColumnTaken, Note, NoUsers, ReadAs, UsersSetAside
from isplitlbi.data.presets import NAMED_ONLY, PRESETS, ROLES, Preset
from isplitlbi.data.vocabulary import folded, listed
from isplitlbi.errors import InvalidSetting, InvalidVotes, Setting

__all__ = ["column_named", "find_pairs", "lay_out", "require", "respelled_columns"]

# Those of a pair that nobody has voted on yet: of some user's, or of nobody's in particular.
PAIR = ("user", "left", "right")
PAIR_ALONE = ("left", "right")


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
    return layout, names | _numbered_items(layout, columns, source)


def _numbered_items(layout: Preset, columns: list[str], source: str) -> dict[str, str]:
    """Return the columns of items from the third on, by role; refuse a gap between them."""
    found: dict[int, str] = {}
    for column in columns:
        for start in layout.items:
            number = folded(column).removeprefix(folded(start))
            if number == folded(column) or not (number.isascii() and number.isdecimal()):
                continue
            if (other := found.setdefault(int(number), column)) != column:
                raise InvalidVotes(
                    f"{source}: its columns {other!r} and {column!r} have the same number. Rename "
                    "one of them."
                )
    for place in sorted(found):
        if place == 0 or (place > 1 and place - 1 not in found):
            raise InvalidVotes(
                f"{source}: it has a column {found[place]!r}, and none before it. Number the "
                "columns of the items from 1 on, without a gap."
            )
    return {f"item{place}": column for place, column in found.items() if place > 2}


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
                choices = (asked[role],) if role in asked else layout.columns.get(role, ())
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
    of_several = [each for each in PRESETS.values() if not each.has_sides]
    if set(layout.optional.get("item3", ())) & set(columns) or any(
        not _absent(each, columns, {"user": ""}) for each in of_several
    ):
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
        likely = known_columns(columns, frozenset(known))
        spelled = [name for name in known if column_named(name, likely)]
        absent = {layout.name: _absent(layout, spelled, asked) for layout in layouts}
        fitting = [layout for layout in layouts if not absent[layout.name]]
    # Where a row is of two items with an outcome, a column of rankings says which row it is from.
    fitting = [layout for layout in fitting if layout.has_sides] or fitting
    if len(fitting) == 1 or (fitting and asked and fitting[0].name == "canonical"):
        return fitting[0]
    if fitting:
        raise InvalidVotes(
            f"{source}: its columns fit more than one layout: "
            f"{', '.join(layout.name for layout in fitting)}. Choose one with ",
            Setting("preset"), ".",
        )  # fmt: skip
    # A ranking of one column is near to everything.
    of_pairs = [layout for layout in layouts if layout.has_sides]
    nearest = min(of_pairs, key=lambda layout: len(absent[layout.name]))
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
    own = {name for choices in layout.columns.values() for name in choices} - {"user"}
    if not layout.has_sides and not own & set(columns):
        return [*layout.columns, "nothing"]  # a column that is named can hold anything
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
