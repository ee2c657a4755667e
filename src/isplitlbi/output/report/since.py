"""What changed since an earlier model: a section of the report."""

from __future__ import annotations

from typing import Any

from isplitlbi.estimators.changes import Changes, OneSided
from isplitlbi.nouns import capitalized
from isplitlbi.output.changes import verdict_in_words
from isplitlbi.output.report.ids import isolated_id, plain_id
from isplitlbi.typing import Floats

__all__ = ["since_of"]

MOST_LISTED = 200  # users; the command line has the others


def since_of(changes: Changes) -> dict[str, Any]:
    """Return what the section says: sentences, and tables of items and users."""
    sentence = changes.sentence(isolated_id)
    nouns = changes.nouns
    apart = (
        (f"New {nouns.items}", changes.new_items),
        (f"{capitalized(nouns.items)} that are gone", changes.gone_items),
    )
    return {
        "when": _when(changes),
        "sentence": sentence,
        "more": [each for each in changes.sentences(isolated_id) if each != sentence],
        "rows": _rows(changes),
        "apart": [
            {"title": title, "rows": [_alone(each) for each in items]}
            for title, items in apart
            if items
        ],
        "users": [
            {
                "user": each.user,
                "change": each.change,
                "before": verdict_in_words(each.before),
                "after": verdict_in_words(each.after),
                "votes": _from_to(each.votes_before, each.votes_after),
            }
            for each in changes.users[:MOST_LISTED]
        ],
        "n_more_users": max(len(changes.users) - MOST_LISTED, 0),
    }


def _when(changes: Changes) -> str:
    """Say which the earlier model is: by its day, or by its file where days are the same."""
    then, now = changes.before, changes.after
    if then.date and then.date != now.date:
        return then.date
    if then.file and then.file != now.file:
        return plain_id(then.file)
    return "the earlier fit"


def _rows(changes: Changes) -> list[dict[str, Any]]:
    """Return the items in both models row by row; bars are in per cent of what all of them span."""
    least = min(float(changes.low_of_all.min()), float(changes.low.min()), 0.0)
    most = max(float(changes.high_of_all.max()), float(changes.high.max()), 0.0)
    span = max(most - least, 1e-9)

    def at(values: Floats) -> Floats:
        return 100.0 * (values - least) / span

    left, right, dot = at(changes.low), at(changes.high), at(changes.change)
    left_of_all, right_of_all = at(changes.low_of_all), at(changes.high_of_all)
    cells = changes.cells()[1:]
    rows = []
    for place, item in enumerate(changes.items.tolist()):
        _, rank, moved, moved_between, now, change, of_all, changed = cells[place]
        rows.append(
            {
                "rank": rank.replace(">", "→"),
                "item": item,
                "moved": f"{moved} ({moved_between})" if moved_between != "-" else "–",
                "change": change,
                "of_all": of_all,
                "interval": f"{changes.low[place]:.2f} to {changes.high[place]:.2f}",
                "before": f"{changes.score_before[place]:.2f}",
                "after": now,
                "changed": changed,
                "zero": 100.0 * -least / span,
                "left": left[place],
                "width": right[place] - left[place],
                "left_of_all": left_of_all[place],
                "width_of_all": right_of_all[place] - left_of_all[place],
                "dot": dot[place],
            }
        )
    return rows


def _alone(each: OneSided) -> dict[str, Any]:
    return {
        "rank": each.rank or "–",
        "item": each.item,
        "score": f"{each.score:.2f}",
        "interval": f"{each.low:.2f} to {each.high:.2f}",
        "votes": f"{each.votes:,g}",
    }


def _from_to(then: int, now: int) -> str:
    return f"{then:,} → {now:,}" if then != now else f"{now:,}"
