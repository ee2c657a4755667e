"""Groups of users on a terminal: sentences, and every item's place in each group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isplitlbi.markup import printable
from isplitlbi.output.terminal import print_whole, text_table

if TYPE_CHECKING:
    from rich.console import Console

    from isplitlbi.estimators.groups import Groups

__all__ = ["members_in_cells", "places_in_cells", "print_groups", "tried_in_cells"]

MOST_ROWS = 20  # items that a screen shows
MOST_MEMBERS = 5  # ids of a group that a screen shows


def print_groups(console: Console, found: Groups) -> None:
    """Print what was found, who is in which group, and where the items stand in each."""
    from rich.text import Text

    for sentence in found.sentences():
        console.print(Text(sentence))
    console.print()
    print_whole(console, text_table(tried_in_cells(found), found.nouns))
    console.print(
        "Gain over one group, in log-loss per " + found.nouns.user + ", with its standard error. "
        "Axes: differing by degrees.",
        markup=False,
    )
    if len(found) < 2:
        return
    console.print()
    print_whole(console, text_table(members_in_cells(found), found.nouns))
    console.print()
    cells = places_in_cells(found)
    print_whole(console, text_table(cells[: 1 + MOST_ROWS], found.nouns))
    if len(cells) - 1 > MOST_ROWS:
        n_more = found.nouns.n_items(len(cells) - 1 - MOST_ROWS)
        console.print(f"And {n_more} more: --format json has all.", markup=False)
    console.print(
        f"Scores beside the mean of all {found.nouns.items}; in brackets the place.", markup=False
    )


def tried_in_cells(found: Groups) -> list[list[str]]:
    """Return how well each account of the votes predicts held-out votes, as texts."""
    rows = [["groups", "axes", "log-loss", "gain", "error", "chosen"]]
    for row in found.tried():
        is_first = row["groups"] == 1 and not row["axes"]
        rows.append([
            str(row["groups"]), str(row["axes"]) if row["axes"] else "-", f"{row['log_loss']:.4f}",
            "-" if is_first else f"{row['gain']:+.2f}", "-" if is_first else f"{row['error']:.2f}",
            "yes" if row["chosen"] else "",
        ])  # fmt: skip
    return rows


def members_in_cells(found: Groups) -> list[list[str]]:
    """Return the sizes of the groups and how they predict, as texts."""
    rows = [["number", found.nouns.users, "votes", "log-loss", "with one group"]]
    rows += [
        [
            str(each.number), f"{len(each.users):,}", f"{each.n_votes:,}", f"{each.loss:.3f}",
            f"{each.loss_of_one:.3f}",
        ]
        for each in found.groups
    ]  # fmt: skip
    return rows


def places_in_cells(found: Groups) -> list[list[str]]:
    """Return every item's score and place in each group, those that differ most first."""
    score, place = [], []
    for group in found.groups:
        items = group.ranking.items.tolist()
        score.append(dict(zip(items, group.ranking.scores.tolist(), strict=True)))
        place.append({item: at for at, item in enumerate(items, 1)})
    items = list(place[0])
    apart = {item: max(each[item] for each in score) - min(each[item] for each in score)
             for item in items}  # fmt: skip
    items.sort(key=lambda item: -apart[item])
    rows = [["item", *(f"group {each.number}" for each in found.groups)]]
    for item in items:
        cells = [
            f"{one[item]:+.2f} ({at[item]})" for one, at in zip(score, place, strict=True)
        ]  # fmt: skip
        rows.append([printable(str(item)), *cells])
    return rows
